"""Model files: a reloaded model continues bit for bit; what is not an intact model file is refused.

A file is refused with a ValueError that names it and says what is wrong.  Loading never executes code.
"""
import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import threading
import zipfile
import zlib
from fractions import Fraction

import numpy as np
import pytest
from cases import each
from small_models import same_state

import onlinekernels as ok
from onlinekernels.base import files
from onlinekernels.base.state import State

RNG = np.random.default_rng(8)
N = 60
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
TARGETS = np.sin(X[:, 0]) + X[:, 1]


def dot(x, z):
    return float(np.dot(x, z))


def overlap(a, b):
    return float(len(set(a) & set(b)))


class Overlap(ok.Kernel):
    """The same as a kernel of the user's own."""

    def __init__(self):
        pass

    def pair(self, x, z):
        return overlap(x, z)


class OwnLoss(ok.Loss):
    """A loss of the user's own."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def derivative(self, score, y):
        return self.scale * np.tanh(score - y)


def targets(model):
    name = type(model._current_loss()).__name__
    return None if "Novelty" in name else LABELS if name in ("Hinge", "NuHinge", "Logistic") else TARGETS


def part(y, rows):
    return None if y is None else y[rows]


PARTS = {
    "loss": [ok.Hinge(0.7), ok.NuHinge(0.3, 0.5), ok.Logistic(), ok.Novelty(0.4), ok.NuNovelty(0.2, 0.3), ok.Squared(), ok.Absolute(),
             ok.Quantile(0.8), ok.Insensitive(0.2), ok.NuInsensitive(0.3, 0.5), ok.SquaredInsensitive(0.3), ok.Huber(0.7),
             ok.NuHuber(0.3, 0.4), "NuHinge", "nu-huber"],
    "kernel": [ok.Linear(), 0.5 * ok.Linear(), ok.Gaussian(1.3), ok.Polynomial(3, 0.3, 1.0), ok.Laplacian(0.7), ok.Constant(0.7),
               ok.Gaussian(0.9) + ok.Noise(0.5), ok.Normalized(ok.Polynomial(2)), ok.Normalized("laplacian"),
               ok.Gaussian(2) * ok.Polynomial(2) + ok.Laplacian(0.5), ok.AdditiveMatern(0.7, 2.5), ok.Nystroem("laplacian"),
               ok.RandomFourier(ok.Gaussian(2), 12, seed=3) + ok.Linear(), ok.Nystroem(ok.Gaussian(2), 9)],
    "step": [0.2, ok.Fixed(0.2), ok.InverseSqrt(0.4), ok.Decaying(0.3, 5), 1, ok.MetaDescent(0.1, 0.2, 0.9)],
    "budget": [None, ok.Unlimited(), 7, ok.Recent(7), ok.Window(9), ok.Smallest(6), ok.Sublinear(0.6, 4), ok.RandomRemoval(6, 2),
               ok.Projecting(6)],
}


@each("name, part", [(name, part) for name, parts in PARTS.items() for part in parts])
@each("learned", [False, True])
def test_every_part_is_saved_with_its_parameters(tmp_path, name, part, learned):
    """What it has learned goes on, too; the contracts see to that for all estimators."""
    model = ok.NORMA(**{"loss": "squared", "step": 0.01, "regularization": 0.3, name: part})
    y = targets(model)
    if learned:
        model.partial_fit(X[:30], None if y is None else y[:30])
    model.save(tmp_path / "m.npz")
    twin = ok.load(tmp_path / "m.npz")
    assert repr(twin) == repr(model)
    if learned:
        rest = X[30:], None if y is None else y[30:]
        assert (twin.progressive(*rest) == model.progressive(*rest)).all()
        same_state(twin, model)


@each("y", [[-1, 1], [0, 1], [False, True], ["ham", "spam"], [0.25, 0.5], [2**60, 2**61], ["", "\u00e4\u4e2d"],
            np.array(["ham", "spam"], dtype=object), np.array([3, 5], dtype=np.int8)], ids=repr)
def test_labels_are_kept(tmp_path, y):
    model = ok.NORMA().partial_fit(X[:2], y)
    model.save(tmp_path / "m.npz")
    twin = ok.load(tmp_path / "m.npz")
    assert twin.classes_.tolist() == model.classes_.tolist() and twin.classes_.dtype == model.classes_.dtype
    assert twin.predict(X).tolist() == model.predict(X).tolist()
    assert twin.learn_one(X[0], y[0]).t_ == 3


@each("other", [0, -1])
def test_a_lone_one_still_waits_for_its_counterpart_after_reloading(tmp_path, other):
    ok.NORMA().partial_fit(X[:2], [1, 1]).save(tmp_path / "m.npz")
    assert ok.load(tmp_path / "m.npz").partial_fit(X[:2], [other, 1]).classes_.tolist() == [other, 1]


@each("y", [[b"a", b"b"], np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), [1j, 2j],
            np.array([Fraction(1, 2), Fraction(1, 3)])], ids=["bytes", "dates", "complex", "fractions"])
def test_labels_that_are_not_numbers_or_strings_are_refused(tmp_path, y):
    model = ok.NORMA().partial_fit(X[:2], y)
    with pytest.raises(TypeError, match="(?i)labels must be numbers or strings"):
        model.save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_the_same_model_gives_the_same_file(tmp_path):
    model = ok.NORMA("squared", budget=7).partial_fit(X, TARGETS)
    contents = []
    for name in ("a.npz", "b.npz"):
        model.save(tmp_path / name)
        with np.load(tmp_path / name) as file:
            contents.append({key: file[key].tobytes() for key in file.files})
    assert contents[0] == contents[1]


@each("change", [{"kernel__width": 3.0}, {"budget": 3}, {"kernel__width": -1}], ids=str)
def test_a_model_saved_after_a_change_of_parameters_predicts_the_same(tmp_path, change):
    model = ok.NORMA("squared", ok.Gaussian(1.0)).partial_fit(X, TARGETS)
    values = model.predict(X)
    model.set_params(**change)
    model.save(tmp_path / "m.npz")
    assert (ok.load(tmp_path / "m.npz").predict(X) == values).all()


# ---- Names of files ---------------------------------------------------------------------------------


class TestPaths:
    MODEL = ok.NORMA("squared").partial_fit(X, TARGETS)

    def test_a_name_without_the_suffix_gets_it(self, tmp_path):
        self.MODEL.save(tmp_path / "model")
        assert os.listdir(tmp_path) == ["model.npz"]
        assert ok.load(tmp_path / "model.npz").t_ == N

    def test_a_missing_file_or_folder_is_an_os_error(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nothing.npz"):
            ok.load(tmp_path / "nothing.npz")
        with pytest.raises(FileNotFoundError, match="nowhere"):
            self.MODEL.save(tmp_path / "nowhere" / "m.npz")

    @pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
    def test_the_file_has_the_usual_permissions(self, tmp_path):
        old = os.umask(0o022)
        try:
            self.MODEL.save(tmp_path / "m.npz")
            (tmp_path / "plain").write_text("")
        finally:
            os.umask(old)
        assert (tmp_path / "m.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_it_is_an_ordinary_npz(self, tmp_path):
        self.MODEL.save(tmp_path / "m.npz")
        with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
        assert (header["version"], header["algorithm"]) == (files.VERSION, "NORMA")


class TestAtomicWriting:
    def saved(self, tmp_path):
        path = tmp_path / "m.npz"
        ok.NORMA("squared").partial_fit(X[:10], TARGETS[:10]).save(path)
        return path, path.read_bytes()

    @each("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()], ids=repr)
    @each("where", ["savez", "fsync", "replace"])
    def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch, where, error):
        path, content = self.saved(tmp_path)

        def fail(file, *args, **kwargs):
            if where == "savez":
                file.write(b"half a file")
            raise error

        monkeypatch.setattr(*{"savez": (np, "savez"), "fsync": (os, "fsync"), "replace": (os, "replace")}[where], fail)
        with pytest.raises(type(error)):
            ok.NORMA("squared").partial_fit(X, TARGETS).save(path)
        monkeypatch.undo()
        assert os.listdir(tmp_path) == ["m.npz"]
        assert path.read_bytes() == content
        assert ok.load(path).t_ == 10

    def test_two_threads_may_write_one_file(self, tmp_path):
        """The last to be ready wins, and each file was whole."""

        def slowly(file):
            file.write(b"slow ")
            thread = threading.Thread(target=files.write_atomically, args=(str(path), lambda other: other.write(b"quick")))
            thread.start()
            thread.join()
            seen.append(path.read_bytes())
            file.write(b"and steady")

        path, seen = tmp_path / "file", []
        files.write_atomically(str(path), slowly)
        assert seen == [b"quick"] and path.read_bytes() == b"slow and steady"
        assert os.listdir(tmp_path) == ["file"]

    def test_a_model_that_cannot_be_saved_leaves_the_old_file_and_nothing_else(self, tmp_path):
        path, content = self.saved(tmp_path)
        for model in (ok.NORMA(step=Fraction(1, 10)), ok.NORMA().partial_fit(X[:2], [b"a", b"b"])):
            with pytest.raises(TypeError):
                model.save(path)
        assert os.listdir(tmp_path) == ["m.npz"] and path.read_bytes() == content

    def test_what_load_would_refuse_is_not_written(self, tmp_path):
        path, content = self.saved(tmp_path)
        model = ok.NORMA("squared", "linear").partial_fit(X, TARGETS)
        model._state.function.weights[0, 0] = np.nan
        with pytest.raises(ValueError, match="cannot be saved.*weights is not finite"):
            model.save(path)
        assert os.listdir(tmp_path) == ["m.npz"] and path.read_bytes() == content


# ---- Python code ------------------------------------------------------------------------------------


class TestPythonCode:
    WORDS = ["abc", "bcd", "", "xyz", "aaa"]

    @each("params, name", [
        ({"kernel": overlap}, "kernel"), ({"kernel": ok.Gaussian() + dot}, "kernel"), ({"kernel": ok.Normalized(dot)}, "kernel"),
        ({"kernel": lambda a, b: 1.0}, "kernel"), ({"loss": OwnLoss()}, "loss"),
    ], ids=["function", "in a sum", "normalized", "lambda", "loss"])
    def test_load_says_that_it_is_not_in_the_file(self, tmp_path, params, name):
        for model in (ok.NORMA(**params), ok.NORMA(**params).partial_fit(X, LABELS)):
            model.save(tmp_path / "m.npz")
            with pytest.raises(ValueError, match=re.escape(f"its {name} is Python code, which files do not hold; give it as load(path, {name}=...)")):
                ok.load(tmp_path / "m.npz")
            assert repr(ok.load(tmp_path / "m.npz", **params)) == repr(model)

    def test_other_objects_are_refused(self, tmp_path):
        for model in (ok.NORMA(step=Fraction(1, 10)), ok.Stacking([ok.NORMA(kernel=overlap), ok.NORMA()])):
            with pytest.raises(TypeError, match="'(step|kernel)' of this model is Python code or an object.*Pickle the model"):
                model.save(tmp_path / "m.npz")
        assert os.listdir(tmp_path) == []

    @each("objects", [[{1}, {2}], [(1, 2), (3,)], [None, None], [np.zeros(2), np.zeros(3)], [b"a", b"b"]],
          ids=str)
    def test_terms_that_a_file_cannot_hold_are_refused(self, tmp_path, objects):
        model = ok.NORMA("squared", lambda a, b: 1.0).partial_fit(objects, [1.0, 2.0])
        with pytest.raises(TypeError, match="(?i)pickle"):
            model.save(tmp_path / "m.npz")
        assert os.listdir(tmp_path) == []

    def test_load_says_what_is_missing_or_too_much(self, tmp_path):
        ok.NORMA("squared", dot).partial_fit(X, TARGETS).save(tmp_path / "without.npz")
        ok.NORMA("squared").partial_fit(X, TARGETS).save(tmp_path / "whole.npz")
        with pytest.raises(ValueError, match="kernel=..."):
            ok.load(tmp_path / "without.npz")
        with pytest.raises(ValueError, match="kernel of its own"):
            ok.load(tmp_path / "whole.npz", kernel=dot)
        with pytest.raises(ValueError, match="loss of its own"):
            ok.load(tmp_path / "without.npz", kernel=dot, loss="squared")

    @each("kernel", ["gaussian", "linear", 5, "bogus", ok.Gaussian(-1), ok.Normalized(ok.Linear())], ids=repr)
    def test_a_kernel_of_another_kind_is_refused(self, tmp_path, kernel):
        ok.NORMA("squared", overlap).partial_fit(self.WORDS, np.ones(5)).save(tmp_path / "m.npz")
        with pytest.raises(ValueError, match="m.npz"):
            ok.load(tmp_path / "m.npz", kernel=kernel)

    def test_a_loss_of_another_task_is_refused(self, tmp_path):
        ok.NORMA(OwnLoss()).partial_fit(X, TARGETS).save(tmp_path / "m.npz")
        with pytest.raises(ValueError, match="m.npz.*loss"):
            ok.load(tmp_path / "m.npz", loss="hinge")

    def test_a_subclass_of_an_algorithm_is_refused(self, tmp_path):
        class Own(ok.NORMA):
            pass

        with pytest.raises(TypeError, match="Own"):
            Own().save(tmp_path / "m.npz")


# ---- Damaged and foreign files ----------------------------------------------------------------------


def refused(path, *words, **given):
    with pytest.raises(ValueError) as info:
        ok.load(path, **given)
    assert os.path.basename(path) in str(info.value)
    for word in words:
        assert re.search(word, str(info.value)), str(info.value)
    return str(info.value)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.npz"
    ok.NORMA(ok.NuHinge(0.3), ok.Gaussian(1.5), budget=4, offset=True).partial_fit(3 * X, LABELS).save(path)
    return path


class TestDamagedFiles:
    def test_a_truncated_file_is_refused_at_every_length(self, saved, tmp_path):
        content = saved.read_bytes()
        cut = tmp_path / "cut.npz"
        for length in [*range(0, len(content), 23), *range(len(content) - 30, len(content))]:
            cut.write_bytes(content[:length])
            refused(cut)


    def test_a_flipped_byte_is_refused_or_harmless(self, saved, tmp_path):
        content, expected = saved.read_bytes(), pickle.dumps(ok.load(saved))
        flipped = tmp_path / "flipped.npz"
        for place in range(0, len(content), 7):
            flipped.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1:])
            try:
                model = ok.load(flipped)
            except ValueError as error:
                assert "flipped.npz" in str(error)
            else:
                assert pickle.dumps(model) == expected

    @each("content", [b"", b"hello", b"PK", b"PK\x03\x04" + bytes(100), bytes(1000), b"\x93NUMPY\x01\x00",
                      pickle.dumps([1]), b"{}"],
          ids=["empty", "text", "two_bytes", "half_a_zip", "zeros", "half_an_npy", "pickle", "json"])
    def test_what_is_not_a_zip_is_refused(self, tmp_path, content):
        (tmp_path / "f.npz").write_bytes(content)
        message = refused(tmp_path / "f.npz", "not a model file|damaged")
        assert "pickle.load" not in message

    @each("arrays", [
        {"a": np.zeros(3)}, {}, {"header": np.zeros(3)}, {"header": np.array("abc")}, {"header": np.zeros((2, 2), dtype=np.uint8)},
        {"header": np.frombuffer(b"{}", dtype=np.uint8)}, {"header": np.frombuffer(b"[1]", dtype=np.uint8)},
        {"header": np.frombuffer(b'"onlinekernels model"', dtype=np.uint8)},
        {"header": np.frombuffer(b'{"format": "other"}', dtype=np.uint8)},
        {"header": np.frombuffer(b"\xff\xfe", dtype=np.uint8)},
        {"header": np.frombuffer(b"[" * 100_000, dtype=np.uint8)},
        *({"header": np.frombuffer(b'{"format": "onlinekernels model", "version": 1, "a": ' + b"[" * n + b"]" * n + b"}", dtype=np.uint8)}
          for n in (500, 900, 990, 2000, 5000)),
    ], ids=["another_array", "nothing", "floats", "text", "2d", "empty", "list", "string", "other_format", "not_utf8", "deep",
            *(f"nested{n}" for n in (500, 900, 990, 2000, 5000))])
    def test_a_foreign_npz_is_refused(self, tmp_path, arrays):
        np.savez(tmp_path / "f.npz", **arrays)
        refused(tmp_path / "f.npz", "not a model file|checksum")

    def test_an_npy_is_refused(self, tmp_path):
        with open(tmp_path / "f.npz", "wb") as file:
            np.save(file, np.zeros(3))
        refused(tmp_path / "f.npz", "not a model file")

    def test_a_zip_of_something_else_is_refused(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "f.npz", "w") as file:
            file.writestr("header", "text")
            file.writestr("header.npy", "text")
        refused(tmp_path / "f.npz", "not a model file")

    def test_a_damaged_compressed_zip_is_refused(self, tmp_path):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, header=np.arange(5000) % 7)
        content = bytearray(buffer.getvalue())
        content[60:80] = b"x" * 20
        (tmp_path / "f.npz").write_bytes(content)
        refused(tmp_path / "f.npz", "not a model file|damaged")

    def test_a_file_written_with_compression_is_refused_before_it_is_unpacked(self, saved, tmp_path):
        with np.load(saved) as file:
            np.savez_compressed(tmp_path / "c.npz", **dict(file), more=np.zeros(10**6))
        refused(tmp_path / "c.npz", "compressed")


def rewritten(path, edit, *, honest=True, name="edited.npz"):
    """The file with its header and arrays edited; an honest one has the right digest for them."""
    header, arrays = files._read(path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(header, arrays)
    if honest:
        header["digest"] = files._digest(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    target = os.path.join(os.path.dirname(path), name)
    np.savez(target, **arrays)
    return target


class TestTampering:
    def test_rewriting_without_a_change_keeps_the_model(self, saved):
        twin = ok.load(rewritten(saved, lambda header, arrays: None))
        assert pickle.dumps(twin) == pickle.dumps(ok.load(saved))

    @each("version", [files.VERSION + 1, 99, 0, -1, None, "1", [1], 1.5], ids=repr)
    def test_another_version_is_refused_with_its_number(self, saved, version):
        path = rewritten(saved, lambda header, arrays: header.update(version=version))
        refused(path, "version", re.escape(str(version)), f"version {files.VERSION}")

    def test_an_averaged_model_knows_its_averaged_margin(self, tmp_path):
        model = ok.NORMA(ok.NuHinge(0.3), "linear", average=True).partial_fit(X, LABELS)
        model.save(tmp_path / "m.npz")
        assert ok.load(tmp_path / "m.npz").margin_ == model.margin_ != model._state.hypothesis.scalar(latest=True)

    def test_a_gram_matrix_is_written_once(self, tmp_path):
        gram = np.exp(-np.abs(np.arange(50.0)[:, None] - np.arange(50.0)))
        model = ok.NORMA("squared", ok.Precomputed(gram)).partial_fit(np.arange(50)[:, None], np.arange(50.0))
        model.save(tmp_path / "m.npz")
        assert sum(array.shape == gram.shape for array in files._read(tmp_path / "m.npz")[1].values()) == 1
        np.testing.assert_array_equal(ok.load(tmp_path / "m.npz").predict([[3]]), model.predict([[3]]))

    @each("algorithm", [ok.LASVM, ok.KRLS])
    def test_an_algorithm_with_the_rule_of_another_is_refused(self, algorithm, tmp_path):
        model = algorithm(kernel="gaussian").partial_fit(X, LABELS if algorithm is ok.LASVM else X[:, 0])
        model.save(tmp_path / "m.npz")
        changed = rewritten(tmp_path / "m.npz", lambda header, arrays: header["state"]["plan"].update(rule="gradient"))
        refused(changed, "rule of")

    def test_a_missing_version_is_refused(self, saved):
        refused(rewritten(saved, lambda header, arrays: header.pop("version")), "version")

    def test_a_changed_array_is_refused(self, saved):
        for name in files._read(saved)[1]:
            def edit(header, arrays):
                arrays[name].ravel()[0] += 1
            refused(rewritten(saved, edit, honest=False), "checksum")

    @each("edit", [
        lambda header: header["params"].update(step=0.2), lambda header: header["params"]["kernel"]["params"].update(width=2.0),
        lambda header: header["state"].update(n_features=2), lambda header: header["state"]["learned"].update(t=1),
        lambda header: header.update(algorithm="Perceptron"), lambda header: header.update(more=1),
        lambda header: header.pop("state"), lambda header: header.update(digest="0" * 64), lambda header: header.pop("digest"),
    ])
    def test_a_changed_header_is_refused(self, saved, edit):
        refused(rewritten(saved, lambda header, arrays: edit(header), honest=False), "checksum")


def in_state(**values):
    return lambda header, arrays: header["state"].update(values)


def in_learned(**values):
    return lambda header, arrays: header["state"]["learned"].update(values)


def in_params(**values):
    """Parameters, both as the user gave them and as they are in force."""
    def edit(header, arrays):
        header["params"].update(values)
        plan = header["state"]["plan"]
        for name, value in values.items():
            (plan["rule"]["params"] if name in plan["rule"]["params"] else plan)[name] = value
    return edit


def in_rule(component, **params):
    return lambda header, arrays: header["state"]["plan"].update(rule={"component": component, "params": params})


def in_array(name, change):
    def edit(header, arrays):
        key = header["state"]["learned"][name]["array"]
        arrays[key] = change(arrays[key])
    return edit


def new_array(name, array):
    def edit(header, arrays):
        arrays["new"] = np.asarray(array)
        header["state"]["learned"][name] = {"array": "new"}
    return edit


def removed(*path):
    def edit(header, arrays):
        for key in path[:-1]:
            header = header[key]
        del header[path[-1]]
    return edit


NAN, INF = float("nan"), float("inf")
INCONSISTENT = {
    # Numbers
    "frame singular": in_array("frame", lambda a: 0 * a),
    "frame due for a fold": in_array("frame", lambda a: 1e-200 * a),
    "birthdays out of order": in_array("birthdays", lambda a: a[::-1].copy()),
    "birthdays equal": in_array("birthdays", lambda a: 0 * a + 3),
    "birthdays in the future": in_array("birthdays", lambda a: a + 10**6),
    **{f"t {value!r}": in_learned(t=value) for value in (-1, 2**70, 1.5, NAN)},
    **{f"n_features {value!r}": in_state(n_features=value)
       for value in (0, -1, 2, 4, 3.0, "3", None, 2**31, 2**70)},
    **{f"dtype {value!r}": in_state(dtype=value)
       for value in ("|O", "<f2", ">f8", "<i8", "<c16", "<U3", "|V8", "bogus", 5, "")},
    # Origin
    **{f"origin {name}": new_array("origin", origin) for name, origin in {
        "short": np.zeros(1), "long": np.zeros(7), "2d": np.zeros((1, 3)), "nan": [0.0, NAN, 0.0],
        "strings": ["a", "b", "c"], "number": 5.0}.items()},
    "origin a string": in_learned(origin="abc"),
    # Labels
    "labels missing": in_state(labels=None),
    **{f"labels {classes!r}": in_state(labels={"classes": classes, "dtype": "<i8", "open": False})
       for classes in ([1, 2, 3], [1], [], [[1], [2]], ["a", "b"], [1, 1], None)},
    **{f"labels of type {dtype!r}": in_state(labels={"classes": [1, 2], "dtype": dtype, "open": False})
       for dtype in ("bogus", 5)},
    "labels without classes": in_state(labels={}),
    # Parameters
    "budget too small": in_params(budget={"component": "Recent", "params": {"size": 3}}),
    **{f"budget of size {size!r}": in_params(budget={"component": "Recent", "params": {"size": size}})
       for size in (0, -1, 2**70, "a", None)},
    **{f"step {rate!r}": in_params(step={"component": "Fixed", "params": {"rate": rate}}) for rate in (0, -1.0, NAN, "a")},
    **{f"regularization {value!r}": in_params(regularization=value) for value in (-1.0, NAN, "a", None)},
    **{f"kernel of width {width!r}": in_params(kernel={"component": "Gaussian", "params": {"width": width}})
       for width in (0, -1.0, NAN, "a", None)},
    "budget of another kind": in_params(budget={"component": "Gaussian", "params": {"width": 9.0}}),
    "budget zero": in_params(budget=0),
    "average": in_params(average=True, budget={"component": "Unlimited", "params": {}}),
    "offset not a flag": in_params(offset="yes"),
    "average not a flag": in_params(average="yes", budget={"component": "Unlimited", "params": {}}),
    "loss of another task": in_params(loss={"component": "Squared", "params": {}}),
    "loss unknown": in_params(loss={"component": "Bogus", "params": {}}),
    "loss of bad parameters": in_params(loss={"component": "Hinge", "params": {"margin": -1}}),
    "loss with unknown parameters": in_params(loss={"component": "Hinge", "params": {"bogus": 1}}),
    "kernel on objects": in_params(kernel={"component": "Custom", "params": {"function": "eval"}}),
    "kernel abstract": in_params(kernel={"component": "Kernel", "params": {}}),
    "kernel of indices": in_params(kernel={"component": "Precomputed", "params": {"gram": {"array": "array0"}}}),
    "kernel a step": in_params(kernel={"component": "Fixed", "params": {"rate": 1.0}}),
    "kernel of nonsense": in_params(kernel={"component": "Sum", "params": {"left": 1, "right": None}}),
    "kernel without parameters": in_params(kernel={"component": "Gaussian"}),
    "weights instead of terms": in_params(kernel={"component": "Linear", "params": {}}, budget={"component": "Unlimited", "params": {}}),
    "step times regularization": in_params(step={"component": "Fixed", "params": {"rate": 1.0}}, regularization=2.0),
    "unknown parameter": lambda header, arrays: header["params"].update(bogus=1),
    "parameter missing": removed("params", "kernel"),
    "part of the plan missing": removed("state", "plan", "kernel"),
    "part of the plan unknown": lambda header, arrays: header["state"]["plan"].update(threshold=0.0),
    "rule by name": lambda header, arrays: header["state"]["plan"].update(rule="gradient"),
    "rule unknown": in_rule("Bogus"),
    "rule a step": in_rule("Fixed", rate=0.1),
    "rule of another algorithm": in_rule("Ball", radius=0.1),
    "rule without parameters": removed("state", "plan", "rule", "params", "step"),
    "rule with unknown parameters": in_rule("Gradient", step={"component": "Fixed", "params": {"rate": 0.1}}, bogus=1),
    "rule with a step of another kind": in_rule("Gradient", step={"component": "Gaussian", "params": {"width": 1.0}}),
    "plan missing": removed("state", "plan"),
    "plan a list": in_state(plan=[1]),
    "parameters a list": lambda header, arrays: header.update(params=[1]),
    "state a list": lambda header, arrays: header.update(state=[1]),
    "state empty": lambda header, arrays: header.update(state={}),
    "learned missing": removed("state", "learned"),
    "without missing": removed("without"),
    "without a number": lambda header, arrays: header.update(without=5),
    **{f"algorithm {name!r}": lambda header, arrays, name=name: header.update(algorithm=name, params={}, state=None)
       for name in ("Bogus", "norma", "os", "__doc__", "__repr__", "__dir__", "__class__", "OnlineLearner", 5, None)},
}


@pytest.mark.filterwarnings("ignore")
@each("name", INCONSISTENT)
def test_a_consistent_digest_does_not_excuse_an_inconsistent_state(saved, name):
    refused(rewritten(saved, INCONSISTENT[name]))


class TestInconsistentWeightsAndObjects:
    @each("change", [lambda pairs: pairs + 1, lambda pairs: pairs - 1, lambda pairs: pairs + 2**30])
    def test_pairs_of_labels(self, tmp_path, change):
        model = ok.NORMA("multiclass_hinge", ok.Gaussian(1.5), budget=9).partial_fit(X, np.arange(len(X)) % 3)
        model.save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", in_array("pairs", change)))

    @each("weights", [np.zeros((1, 2)), np.zeros((2, 3)), np.zeros(3), [[NAN, 0, 0]], [["a", "b", "c"]], 5])
    def test_weights(self, tmp_path, weights):
        ok.NORMA("squared", "linear").partial_fit(X, TARGETS).save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", new_array("weights", weights)))

    def test_enormous_weights_are_refused_before_memory_is_asked_for(self, tmp_path):
        ok.NORMA("squared", "linear").partial_fit(X, TARGETS).save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", in_state(n_features=2**50)))


    @each("objects", [[], ["a"], ["a"] * 50, 5, None, {"a": 1}], ids=str)
    def test_objects(self, tmp_path, objects):
        ok.NORMA("squared", Overlap()).partial_fit(list("abcde"), np.ones(5)).save(tmp_path / "m.npz")
        assert ok.load(tmp_path / "m.npz", kernel=Overlap()).n_terms_ == 5
        refused(rewritten(tmp_path / "m.npz", in_learned(objects={"objects": objects})), kernel=Overlap())

    @each("points", [[[0.0], [1.0], [99.0]], [[0.0], [-1.0], [2.0]], [[0.0], [0.5], [2.0]]], ids=str)
    def test_indices_into_a_gram_matrix(self, tmp_path, points):
        model = ok.NORMA("squared", ok.Precomputed(np.eye(3) + 1)).partial_fit([[0], [1], [2]], [1.0, 2.0, 3.0])
        model.save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", new_array("points", points)), "(?i)whole numbers|indices")

    def test_a_singular_frame_of_the_average(self, tmp_path):
        ok.NORMA("squared", average=True).partial_fit(X, TARGETS).save(tmp_path / "m.npz")
        for frame in ([[1.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], [[1.0]], [[NAN, 0.0], [0.0, 1.0]]):
            refused(rewritten(tmp_path / "m.npz", new_array("frame", frame)), "frame")

    def test_too_many_terms_for_smallest(self, tmp_path):
        ok.NORMA("squared", budget=ok.Smallest(9)).partial_fit(X, TARGETS).save(tmp_path / "m.npz")
        edit = in_params(budget={"component": "Smallest", "params": {"size": 8}})
        refused(rewritten(tmp_path / "m.npz", edit), "9 terms", "8")

    @each("size", [0, -1])
    @each("component", ["Recent", "Smallest"])
    def test_no_room_for_a_model_without_terms(self, tmp_path, component, size):
        ok.NORMA("squared", budget=3).partial_fit(X[:1], [1.0], sample_weight=[0.0]).save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", in_params(budget={"component": component, "params": {"size": size}})))


# ---- No code runs -----------------------------------------------------------------------------------


class Evil:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


class TestNoCodeRuns:
    def objects(self, tmp_path):
        array = np.empty(3, dtype=object)
        array[:] = [Evil(tmp_path / "executed")] * 3
        return array

    def test_the_trap_works(self, tmp_path):
        pickle.loads(pickle.dumps(Evil(tmp_path / "executed"))).close()
        assert (tmp_path / "executed").exists()

    def test_an_object_array_as_header_is_not_unpickled(self, tmp_path):
        np.savez(tmp_path / "f.npz", header=self.objects(tmp_path), allow_pickle=True)
        refused(tmp_path / "f.npz")
        assert not (tmp_path / "executed").exists()

    def test_an_object_array_beside_an_honest_header_is_not_unpickled(self, saved, tmp_path):
        with np.load(saved) as file:
            arrays = dict(file)
        for name in arrays:
            np.savez(tmp_path / "f.npz", **{**arrays, name: self.objects(tmp_path)}, allow_pickle=True)
            refused(tmp_path / "f.npz")
        np.savez(tmp_path / "f.npz", **arrays, more=self.objects(tmp_path), allow_pickle=True)
        refused(tmp_path / "f.npz")
        assert not (tmp_path / "executed").exists()

    def test_a_bare_pickle_is_not_unpickled(self, tmp_path):
        (tmp_path / "f.npz").write_bytes(pickle.dumps(Evil(tmp_path / "executed")))
        refused(tmp_path / "f.npz")
        assert not (tmp_path / "executed").exists()

    def test_a_model_file_has_no_pickle_inside(self, saved):
        with zipfile.ZipFile(saved) as file:
            for name in file.namelist():
                assert name.endswith(".npy")
                assert b"|O" not in file.read(name)[:128]

    def test_names_are_looked_up_in_the_librarys_own_tables_only(self, saved):
        for component in ("os.system", "builtins.eval", "__import__", "Parameterized", "np", "bad_parameter"):
            refused(rewritten(saved, in_params(kernel={"component": component, "params": {}})))

    def test_loading_and_saving_import_no_pickle_machinery_of_their_own(self, saved):
        code = ("import sys, pickle, numpy, onlinekernels as ok\n"
                "def trap(*args, **kwargs): raise SystemExit('unpickled')\n"
                "pickle.load = pickle.loads = pickle.Unpickler = trap\n"
                "import numpy.lib.format; numpy.lib.format.pickle = pickle\n"
                f"ok.load({str(saved)!r}).predict([[0.0, 0.0, 0.0]])")
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr


@each("kernel", ["linear", "gaussian"])
def test_a_file_with_more_outputs_than_labels_is_refused(tmp_path, kernel):
    model = ok.NORMA("multiclass_hinge", kernel).partial_fit(np.eye(3), ["a", "b", "c"])
    model.save(tmp_path / "m.npz")
    refused(rewritten(tmp_path / "m.npz", lambda header, arrays: header["state"]["labels"].update(order=["a"])))


def test_a_model_with_room_for_labels_that_did_not_join_goes_on_bit_for_bit(tmp_path):
    for kernel in ("linear", "gaussian"):
        for loss in ("multiclass_hinge", "multiclass_logistic", "multiclass_squared"):
            model = ok.NORMA(loss, kernel, offset=True).partial_fit(np.eye(3), ["a", "b", "c"])
            with pytest.raises(FloatingPointError):
                model.partial_fit(np.full((2, 3), 1e200), ["d", "e"])
            model.save(tmp_path / "m.npz")
            twin = ok.load(tmp_path / "m.npz")
            for either in (model, twin):
                either.partial_fit(np.eye(3), ["d", "a", "b"])
            same_state(twin, model)


# ---- The archive ------------------------------------------------------------------------------------


def with_header(text, data=b""):
    """An .npz whose only member has this .npy header."""
    text = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("header.npy", b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + data)
    return buffer.getvalue()


class TestArchive:
    """A reader of our own: what numpy writes of plain numbers, and nothing else."""

    @each("array", [np.arange(6.0).reshape(2, 3), np.float32(5), np.zeros((0, 3)), np.zeros((2, 0)),
                    np.arange(3, dtype=">i4"), np.array([True, False]), np.arange(24).reshape(2, 3, 4),
                    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros(10**5, dtype=np.uint8)],
          ids=lambda a: f"{a.dtype} {a.shape}")
    def test_it_reads_what_numpy_writes(self, array):
        buffer = io.BytesIO()
        np.savez(buffer, a=array, other=np.arange(3))
        again = files.read_arrays(buffer.getvalue())
        assert set(again) == {"a", "other"} and again["a"].dtype == array.dtype and again["a"].flags.writeable
        np.testing.assert_array_equal(again["a"], array)

    def test_a_comment_is_allowed(self, saved):
        with zipfile.ZipFile(saved, "a") as file:
            file.comment = b"PK\5\6 and so on " * 100
        assert ok.load(saved).t_ == N

    @each("header, data", [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4398046511104,), }", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999999), }", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-8,), }", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }", b"x" * 64),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '|S8', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (4,), }", b"x" * 64),
        ("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '|V8', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '(2,)<f8', 'fortran_order': False, 'shape': (4,), }", b"x" * 64),
        ("{'descr': '<f3', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '<b8', 'fortran_order': False, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': 0, 'shape': (8,), }", b"x" * 64),
        ("{'descr': '<f8', 'shape': (8,), }", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (8,), } # and more", b"x" * 64),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,) * 8, }", b"x" * 64),
        ("(" * 3000, b""), ("{'descr'", b""), ("", b""), ("\\", b""),
    ], ids=str)
    def test_arrays_that_it_refuses(self, tmp_path, header, data):
        (tmp_path / "f.npz").write_bytes(with_header(header, data))
        refused(tmp_path / "f.npz", "not a model file")

    def test_members_that_share_their_bytes_are_refused(self, saved, tmp_path):
        """A hundred entries of the directory, one array: the file is small, the arrays would not be."""
        name, data = "a.npy", io.BytesIO()
        np.save(data, np.zeros(1000))
        data = data.getvalue()
        local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0, zlib.crc32(data), len(data), len(data), 5, 0)
        entries = b"".join(
            struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 0, zlib.crc32(data), len(data), len(data), 5, 0, 0, 0, 0, 0, 0)
            + name.encode() for _ in range(100))
        body = local + name.encode() + data
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 100, 100, len(entries), len(body), 0)
        (tmp_path / "f.npz").write_bytes(body + entries + end)
        refused(tmp_path / "f.npz", "overlap|twice")

    def test_zip64_is_understood(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            for i in range(10):
                with file.open(f"a{i}.npy", "w", force_zip64=True) as member:
                    np.save(member, np.array([i]))
        assert files.read_arrays(buffer.getvalue())["a7"].tolist() == [7]

    def test_files_of_more_than_2_gb(self, monkeypatch):
        """From there on, not from 4 GB, Python writes the record for large files and keeps the numbers in the small one."""
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)  # as if that were 2 GB
        buffer = io.BytesIO()
        np.savez(buffer, **{f"a{i}": np.full(300, float(i)) for i in range(5)})
        assert b"PK\6\6" in buffer.getvalue()
        assert [array[7] for array in files.read_arrays(buffer.getvalue()).values()] == [0.0, 1.0, 2.0, 3.0, 4.0]

    @pytest.mark.slow
    def test_more_members_than_two_bytes_count(self):
        """The record for many is used."""
        empty = io.BytesIO()
        np.save(empty, np.zeros(0))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            for i in range(65_600):
                file.writestr(f"{i}.npy", empty.getvalue())
        assert len(files.read_arrays(buffer.getvalue())) == 65_600

    @pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
    def test_a_bomb_takes_no_memory(self, tmp_path):
        np.savez_compressed(tmp_path / "bomb.npz", header=np.zeros(2**24))  # 128 MB
        code = (
            "import resource, onlinekernels as ok\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            f"try: ok.load({str(tmp_path / 'bomb.npz')!r})\n"
            "except ValueError: print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 60_000)\n")
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.stdout == "True\n", result.stderr


class TestSizesThatAFileClaims:
    """What a file says about sizes is compared with its arrays before anything of that size is made."""

    @each("model", [
        ok.NORMA("squared").partial_fit(X, TARGETS), ok.NORMA("squared", "linear").partial_fit(X, TARGETS),
        ok.NORMA("squared", ok.AdditiveExponential()).partial_fit(X, TARGETS),
        ok.NORMA("squared", ok.AdditiveExponential(), budget=5).partial_fit(X, TARGETS),
        ok.NORMA("squared", "linear").partial_fit(X, np.column_stack([TARGETS, TARGETS])),
        ok.NORMA("squared").partial_fit(X, np.column_stack([TARGETS, TARGETS])),
    ], ids=str)
    def test_features_and_targets(self, tmp_path, model, monkeypatch):
        model.save(tmp_path / "m.npz")
        edited = [rewritten(tmp_path / "m.npz", in_state(**change), name=f"{i}.npz") for i, change in enumerate((
            {"n_features": 2**31 - 1}, {"n_features": 10**6}, {"targets": 2**31 - 1}, {"targets": 10**6}, {"targets": 3}))]
        assert ok.load(tmp_path / "m.npz").t_ == N

        def never(*args, **kwargs):
            raise AssertionError("an engine of that size was made")

        monkeypatch.setattr(State, "__init__", never)
        for path in edited:
            refused(path, "features|targets|weights|origin|trees")

    @each("labels", [ok.Taxonomy({"a": "r", "b": "r", "c": "r"}), ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])],
          ids=["taxonomy", "graph"])
    @each("kernel", ["linear", "gaussian"])
    def test_labels_of_a_structure(self, tmp_path, labels, kernel):
        model = ok.NORMA("graph_hinge", kernel, labels=labels).partial_fit(np.eye(3), ["a", "b", "c"])
        model.save(tmp_path / "m.npz")

        def labelled(**values):
            return lambda header, arrays: header["state"]["labels"].update(values)

        refused(rewritten(tmp_path / "m.npz", labelled(fixed=False)), "labels of a structure are fixed")
        for order in (["a", "b"], ["a"], [], ["a", "b", "c", "r"], ["a", "b", "z"], ["a", "b", "b"], [["a"], "b", "c"], None,
                      ["a", "b", None], ["a", "b", NAN], {"a": 1}):
            refused(rewritten(tmp_path / "m.npz", labelled(order=order)))
        for count in (0, 1, 2, 4, -1):
            refused(rewritten(tmp_path / "m.npz", in_learned(labels=count)))

    @each("class_order", [[0, 1], [0, 0, 1], [0.0, 1.0, 2.0], [True, False, 2], "012", 5, [2, 1, 3]], ids=repr)
    def test_the_order_that_users_see(self, tmp_path, class_order):
        ok.NORMA("multiclass_hinge").fit(np.eye(3), ["c", "b", "a"]).save(tmp_path / "m.npz")
        refused(rewritten(tmp_path / "m.npz", lambda header, arrays: header["state"]["labels"].update(class_order=class_order)))


def test_an_archive_is_checked_before_numpy_sees_it():
    """A wrong checksum, a shape that is not that of the bytes, and a member inside of another one: each has its sentence."""
    def npy(array):
        buffer = io.BytesIO()
        np.save(buffer, array)
        return buffer.getvalue()

    def zipped(**members):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            for name, data in members.items():
                file.writestr(f"{name}.npy", data)
        return buffer.getvalue()

    content = bytearray(zipped(a=npy(np.arange(3.0))))
    content[content.index(b"PK\1\2") + 16] ^= 1
    with pytest.raises(ValueError, match="a member of the archive is damaged"):
        files.read_arrays(bytes(content))
    with pytest.raises(ValueError, match="shape .* has 24 bytes"):
        files.read_arrays(zipped(a=npy(np.arange(3.0)).replace(b"(3,)", b"(4,)")))
    # All of the inner archive's local record is the data of an outer member; one more entry of the directory points into it.
    inner = zipped(b=npy(np.zeros(5000)))
    record, entry = inner[: inner.index(b"PK\1\2")], inner[inner.index(b"PK\1\2") : inner.rindex(b"PK\5\6")]
    outer = zipped(a=npy(np.frombuffer(record, dtype=np.uint8)))
    begin, end = outer.rindex(b"PK\1\2"), outer.rindex(b"PK\5\6")
    entry = entry[:42] + struct.pack("<I", outer.index(record)) + entry[46:]
    last = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, end - begin + len(entry), begin, 0)
    with pytest.raises(ValueError, match="members of the archive overlap"):
        files.read_arrays(outer[:end] + entry + last)
