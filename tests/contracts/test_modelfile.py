"""Model files: a reloaded model continues bit for bit; what is not an intact model file is refused.

A file is refused with a ValueError that names it and says what is wrong.  Loading never executes code.
"""
import zlib
import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from fractions import Fraction

import numpy as np
from numpy.lib import format as npformat
import pytest
from cases import each
from contracts.registry import KINDS
from small_models import same_state

import onlinekernels as ok
from onlinekernels.base import files

RNG = np.random.default_rng(8)
N = 60
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
TARGETS = np.sin(X[:, 0]) + X[:, 1]


def overlap(a, b):
    return float(len(set(a) & set(b)))


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
    "loss": [ok.Hinge(0.7), ok.NuHinge(0.3, 0.5), ok.Logistic(), ok.Novelty(0.4), ok.NuNovelty(0.2, 0.3), ok.Squared(),
             ok.Absolute(), ok.Quantile(0.8), ok.Insensitive(0.2), ok.NuInsensitive(0.3, 0.5),
             ok.SquaredInsensitive(0.3), ok.Huber(0.7), ok.NuHuber(0.3, 0.4), "NuHinge", "nu-huber"],
    "kernel": [ok.Linear(), 0.5 * ok.Linear(), ok.Gaussian(1.3), ok.Polynomial(3, 0.3, 1.0), ok.Laplacian(0.7),
               ok.Constant(0.7), ok.Gaussian(0.9) + ok.Noise(0.5), ok.Normalized(ok.Polynomial(2)),
               ok.Normalized("laplacian"), ok.Gaussian(2) * ok.Polynomial(2) + ok.Laplacian(0.5),
               ok.AdditiveMatern(0.7, 2.5), ok.Nystroem("laplacian"), ok.Nystroem(ok.Gaussian(2), 9),
               ok.RandomFourier(ok.Gaussian(2), 12, seed=3) + ok.Linear()],
    "step": [0.2, ok.Fixed(0.2), ok.InverseSqrt(0.4), ok.Decaying(0.3, 5), 1, ok.MetaDescent(0.1, 0.2, 0.9),
             ok.MetaDescent(quadratic=True)],
    "budget": [None, ok.Unlimited(), 7, ok.Recent(7), ok.Window(9), ok.Smallest(6), ok.Sublinear(0.6, 4),
               ok.RandomRemoval(6, 2), ok.Projecting(6), ok.Absorbing(6), ok.Quantized(0.8)],
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


class TestPaths:
    MODEL = ok.NORMA("squared").partial_fit(X, TARGETS)

    def test_names_and_folders(self, tmp_path):
        self.MODEL.save(tmp_path / "model")
        assert os.listdir(tmp_path) == ["model.npz"] and ok.load(tmp_path / "model.npz").t_ == N
        with pytest.raises(FileNotFoundError, match="nothing.npz"):
            ok.load(tmp_path / "nothing.npz")
        with pytest.raises(FileNotFoundError, match="nowhere"):
            self.MODEL.save(tmp_path / "nowhere" / "m.npz")


class TestAtomicWriting:
    def saved(self, tmp_path):
        path = tmp_path / "m.npz"
        ok.NORMA("squared").partial_fit(X[:10], TARGETS[:10]).save(path)
        return path, path.read_bytes()

    @each("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()], ids=repr)
    @each("where", ["write", "fsync", "replace"])
    def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch, where, error):
        path, content = self.saved(tmp_path)

        def fail(file, *args, **kwargs):
            if where == "write":
                file.write(b"half a file")
            raise error

        monkeypatch.setattr(*{"write": (npformat, "write_array"), "fsync": (os, "fsync"), "replace": (os, "replace")}[where], fail)
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
            thread = threading.Thread(target=files.write_atomically,
                                      args=(str(path), lambda other: other.write(b"quick")))
            thread.start()
            thread.join()
            seen.append(path.read_bytes())
            file.write(b"and steady")

        path, seen = tmp_path / "file", []
        files.write_atomically(str(path), slowly)
        assert seen == [b"quick"] and path.read_bytes() == b"slow and steady"
        assert os.listdir(tmp_path) == ["file"]

    def test_what_load_would_refuse_is_not_written(self, tmp_path):
        path, content = self.saved(tmp_path)
        model = ok.NORMA("squared", "linear").partial_fit(X, TARGETS)
        model._state.function.weights[0, 0] = np.nan
        with pytest.raises(ValueError, match="cannot be saved.*weights is not finite"):
            model.save(path)
        assert os.listdir(tmp_path) == ["m.npz"] and path.read_bytes() == content


@each("params, name", [({"kernel": overlap}, "kernel"), ({"kernel": ok.Gaussian() + np.dot}, "kernel"),
                       ({"kernel": ok.Normalized(np.dot)}, "kernel"), ({"kernel": lambda a, b: 1.0}, "kernel"),
                       ({"loss": OwnLoss()}, "loss"),], ids=["function", "in a sum", "normalized", "lambda", "loss"])
def test_python_code_is_not_in_the_file_and_load_says_so(tmp_path, params, name):
    for model in (ok.NORMA(**params), ok.NORMA(**params).partial_fit(X, LABELS)):
        model.save(tmp_path / "m.npz")
        refused(tmp_path / "m.npz", re.escape(f"its {name} is Python code, which files do not hold; give it as load("
                                              f"path, {name}=...)"))
        assert repr(ok.load(tmp_path / "m.npz", **params)) == repr(model)
    if name == "kernel":
        refused(tmp_path / "m.npz", "loss of its own", **params, loss="squared")


def test_what_is_given_must_fit_the_file_and_other_objects_are_refused(tmp_path):
    ok.NORMA("squared").partial_fit(X, TARGETS).save(tmp_path / "whole.npz")
    refused(tmp_path / "whole.npz", "kernel of its own", kernel=overlap)
    ok.NORMA("squared", overlap).partial_fit(["abc", "bcd", "", "xyz", "aaa"], np.ones(5)).save(tmp_path / "m.npz")
    for kernel in ("gaussian", "linear", 5, "bogus", ok.Gaussian(-1), ok.Normalized(ok.Linear())):
        refused(tmp_path / "m.npz", kernel=kernel)

    class Own(ok.NORMA):
        pass

    for model, words in ((ok.NORMA(step=Fraction(1, 10)), "'step' .*is Python code or an object.*Pickle the model"),
                         (ok.Stacking([ok.NORMA(kernel=overlap), ok.NORMA()]), "'kernel'.*Pickle the model"),
                         (Own(), "Own")):
        with pytest.raises(TypeError, match=words):
            model.save(tmp_path / "n.npz")
    assert not (tmp_path / "n.npz").exists()


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

    @each("content", [b"", b"hello", b"PK", b"PK\x03\x04" + bytes(100), bytes(1000), b"\x93NUMPY\x01\x00",
                      pickle.dumps([1]), b"{}"], ids=repr)
    def test_what_is_not_a_zip_is_refused(self, tmp_path, content):
        (tmp_path / "f.npz").write_bytes(content)
        message = refused(tmp_path / "f.npz", "not a model file|damaged")
        assert "pickle.load" not in message

    @each("arrays", [{"a": np.zeros(3)}, {}, {"header": np.zeros(3)}, {"header": np.array("abc")},
                     {"header": np.zeros((2, 2), dtype=np.uint8)}, {"header": np.frombuffer(b"{}", dtype=np.uint8)},
                     {"header": np.frombuffer(b"[1]", dtype=np.uint8)},
                     {"header": np.frombuffer(b'"onlinekernels model"', dtype=np.uint8)},
                     {"header": np.frombuffer(b'{"format": "other"}', dtype=np.uint8)},
                     {"header": np.frombuffer(b"\xff\xfe", dtype=np.uint8)}, {"header": np.frombuffer(b"[" * 100_000,
                                                                                                      dtype=np.uint8)},
                     *({"header": np.frombuffer(b'{"format": "onlinekernels model", "version": 1, "a": ' + b"[" * n
                                                + b"]" * n + b"}", dtype=np.uint8)} for n in (500, 900, 990, 2000,
                                                                                              5000)),],
          ids=lambda arrays: str(arrays)[:60])
    def test_a_foreign_npz_is_refused(self, tmp_path, arrays):
        np.savez(tmp_path / "f.npz", **arrays)
        refused(tmp_path / "f.npz", "not a model file|checksum")

    def test_what_is_empty_is_not_stored(self, tmp_path):
        rng = np.random.default_rng(0)
        numbers, y = rng.normal(size=(300, 8)), rng.normal(size=300)
        words = [[f"{name}{code}" for name, code in zip("abc", codes)] for codes in rng.integers(0, 12, (700, 3))]
        for model in (ok.OnlineKernelClassifier(), ok.OnlineKernelRegressor(), ok.OnlineKernelDetector()):
            for rows in (numbers, words):
                targets = np.resize(np.digitize(y, [0.0]) if "Classifier" in repr(model) else y, len(rows))
                model.fit(rows, targets).save(tmp_path / "m.npz")
                assert (tmp_path / "m.npz").stat().st_size < (1.5e6 if rows is numbers else 2e6), model

    def test_a_small_file_is_refused_before_it_is_unpacked_to_a_large_one(self, saved, tmp_path):
        with np.load(saved) as file:
            np.savez_compressed(tmp_path / "c.npz", **dict(file), more=np.zeros(10**6))
        refused(tmp_path / "c.npz", "too little for their size")


def rewritten(path, edit, *, honest=True, name="edited.npz"):
    """The file with its header and arrays edited; an honest one has the right digest for them."""
    header, arrays = files.read(path, lambda *parts: parts)
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(header, arrays)
    if honest:
        header["digest"] = files._digest(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    target = os.path.join(os.path.dirname(path), name)
    np.savez(target, **arrays)
    return target


class TestTampering:
    @each("version", [files.VERSION + 1, 99, 0, -1, None, "1", [1], 1.5], ids=repr)
    def test_another_version_is_refused_with_its_number(self, saved, version):
        path = rewritten(saved, lambda header, arrays: header.update(version=version))
        refused(path, "version", re.escape(str(version)), f"version {files.VERSION}")

    @each("edit", [lambda header: header["params"].update(step=0.2),
                   lambda header: header.update(algorithm="Perceptron"),
                   lambda header: header["state"]["learned"].update(t=1), lambda header: header.update(more=1),
                   lambda header: header.pop("state"), lambda header: header.pop("digest"),])
    def test_a_changed_header_is_refused(self, saved, edit):
        refused(rewritten(saved, lambda header, arrays: edit(header), honest=False), "checksum")


def in_state(**values):
    return lambda header, arrays: header["state"].update(values)


def in_learned(**values):
    return lambda header, arrays: header["state"]["learned"].update(values)


def in_labels(**values):
    return lambda header, arrays: header["state"]["labels"].update(values)


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


NAN = float("nan")
INCONSISTENT = {
    # Numbers
    "frame singular": in_array("frame", lambda a: 0 * a),
    "frame due for a fold": in_array("frame", lambda a: 1e-200 * a),
    "birthdays out of order": in_array("birthdays", lambda a: a[::-1].copy()),
    "birthdays in the future": in_array("birthdays", lambda a: a + 10**6),
    **{f"t {value!r}": in_learned(t=value) for value in (-1, 2**70, 1.5, NAN)},
    **{f"n_features {value!r}": in_state(n_features=value)
       for value in (0, 2, 3.0, "3", 2**31)},
    **{f"dtype {value!r}": in_state(dtype=value)
       for value in ("|O", "<f2", ">f8", "<i8", "bogus", 5)},
    # Origin
    **{f"origin {name}": new_array("origin", origin) for name, origin in {
        "short": np.zeros(1), "long": np.zeros(7), "2d": np.zeros((1, 3)), "nan": [0.0, NAN, 0.0],
        "strings": ["a", "b", "c"], "number": 5.0}.items()},
    # Labels
    "labels missing": in_state(labels=None),
    **{f"labels {classes!r}": in_state(labels={"classes": classes, "dtype": "<i8", "open": False})
       for classes in ([1, 2, 3], [[1], [2]], ["a", "b"], [1, 1])},
    # Parameters
    "budget too small": in_params(budget={"component": "Recent", "params": {"size": 3}}),
    **{f"budget of size {size!r}": in_params(budget={"component": "Recent", "params": {"size": size}})
       for size in (0, 2**70, "a")},
    **{f"kernel of width {width!r}": in_params(kernel={"component": "Gaussian", "params": {"width": width}})
       for width in (0, NAN)},
    "average": in_params(average=True, budget={"component": "Unlimited", "params": {}}),
    "offset not a flag": in_params(offset="yes"),
    "loss of another task": in_params(loss={"component": "Squared", "params": {}}),
    "kernel on objects": in_params(kernel={"component": "Custom", "params": {"function": "eval"}}),
    "kernel a step": in_params(kernel={"component": "Fixed", "params": {"rate": 1.0}}),
    "weights instead of terms": in_params(kernel={"component": "Linear", "params": {}},
                                          budget={"component": "Unlimited", "params": {}}),
    "unknown parameter": lambda header, arrays: header["params"].update(bogus=1),
    "rule of another algorithm": in_rule("Ball", radius=0.1),
    "rule without parameters": removed("state", "plan", "rule", "params", "step"),
    "plan missing": removed("state", "plan"),
    "state empty": lambda header, arrays: header.update(state={}),
    "without a number": lambda header, arrays: header.update(without=5),
    **{f"algorithm {name!r}": lambda header, arrays, name=name: header.update(algorithm=name, params={}, state=None)
       for name in ("norma", "os", "__class__", "Estimator", 5)},
}


@pytest.mark.filterwarnings("ignore")
@each("name", INCONSISTENT)
def test_a_consistent_digest_does_not_excuse_an_inconsistent_state(saved, name):
    refused(rewritten(saved, INCONSISTENT[name]))


WORDS = list("abcde")
GRAM = ok.Precomputed(np.eye(3) + 1)
OTHERS = {  # (a model, an edit of its file, what load is given)
    **{f"pairs {n}": (lambda: ok.NORMA("multiclass_hinge", budget=9).partial_fit(X, np.arange(N) % 3),
                      in_array("pairs", lambda pairs, n=n: pairs + n), {}) for n in (1, -1, 2**30)},
    **{f"weights {weights}": (lambda: ok.NORMA("squared", "linear").partial_fit(X, TARGETS),
                              new_array("weights", weights), {})
       for weights in (np.zeros((1, 2)), np.zeros((2, 3)), np.zeros(3), [[NAN, 0, 0]], [["a", "b", "c"]], 5)},
    **{f"objects {objects}": (lambda: ok.NORMA("squared", overlap).partial_fit(WORDS, np.ones(5)),
                              in_learned(objects={"objects": objects}), {"kernel": overlap})
       for objects in ([], ["a"], ["a"] * 50, 5, None, {"a": 1})},
    **{f"indices {points}": (lambda: ok.NORMA("squared", GRAM).partial_fit([[0], [1], [2]], [1.0, 2.0, 3.0]),
                             new_array("points", points), {})
       for points in ([[0.0], [1.0], [99.0]], [[0.0], [-1.0], [2.0]], [[0.0], [0.5], [2.0]])},
    **{f"rule of {cls.__name__}": (lambda cls=cls, y=y: cls(kernel="gaussian").partial_fit(X, y),
                                   lambda header, arrays: header["state"]["plan"].update(rule="gradient"), {})
       for cls, y in ((ok.LASVM, LABELS), (ok.KRLS, TARGETS))},
}


@each("name", OTHERS)
def test_states_of_other_models_that_cannot_be(tmp_path, name):
    make, edit, given = OTHERS[name]
    make().save(tmp_path / "m.npz")
    assert repr(ok.load(tmp_path / "m.npz", **given)) == repr(make())
    refused(rewritten(tmp_path / "m.npz", edit), **given)


class Evil:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_an_object_array_beside_an_honest_header_is_not_unpickled(saved, tmp_path):
    objects = np.empty(3, dtype=object)
    objects[:] = [Evil(tmp_path / "executed")] * 3
    with np.load(saved) as file:
        arrays = dict(file)
    for name in [*arrays, "more"]:
        np.savez(tmp_path / "f.npz", **{**arrays, name: objects}, allow_pickle=True)
        refused(tmp_path / "f.npz")
    assert not (tmp_path / "executed").exists()
    # names are looked up in the library's own tables only
    for component in ("os.system", "builtins.eval", "__import__", "Parameterized", "np", "bad_parameter"):
        refused(rewritten(saved, in_params(kernel={"component": component, "params": {}})))


# ---- The archive ------------------------------------------------------------------------------------


def with_header(text, data=b""):
    """An .npz whose only member has this .npy header."""
    text = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("header.npy", b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + data)
    return buffer.getvalue()


class TestArchive:
    """What numpy writes of plain numbers, and nothing else."""

    @each("header, data", [
        *((f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}", data) for descr, order, shape, data in [
            ("'<f8'", False, (2**42,), b"x" * 64), ("'<f8'", False, (2**62, 4), b""), ("'<f8'", False, (0, 10**23), b""),
            ("'<f8'", 0, (8,), b"x" * 64), ("'<f8'", False, "(1,) * 8", b"x" * 64),
            *(("'<f8'", False, (n,), b"x" * 64) for n in (-8, 7, 9)), ("'<c16'", False, (4,), b"x" * 64),
            ("'(2,)<f8'", False, (4,), b"x" * 64),
            *((descr, False, (8,), b"x" * 64)
              for descr in ("'|O'", "'|S8'", "'<M8[s]'", "'|V8'", "[('a', '<f8')]", "'<f3'", "'<b8'"))]),
        ("{'descr': '<f8', 'shape': (8,), }", b"x" * 64), ("(" * 3000, b""), ("{'descr'", b""), ("", b""), ("\\", b""),
    ], ids=str)
    def test_arrays_that_it_refuses(self, tmp_path, header, data):
        (tmp_path / "f.npz").write_bytes(with_header(header, data))
        refused(tmp_path / "f.npz", "not a model file")

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

    def test_members_that_share_their_bytes_are_refused(self, saved, tmp_path):
        """A hundred entries of the directory, one array: the file is small, the arrays would not be."""
        name, data = "a.npy", io.BytesIO()
        np.save(data, np.zeros(1000))
        data = data.getvalue()
        local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0, zlib.crc32(data), len(data), len(data), 5, 0)
        entries = b"".join(
            struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 0, zlib.crc32(data), len(data), len(data), 5, 0, 0,
                        0, 0, 0, 0)
            + name.encode() for _ in range(100))
        body = local + name.encode() + data
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 100, 100, len(entries), len(body), 0)
        (tmp_path / "f.npz").write_bytes(body + entries + end)
        refused(tmp_path / "f.npz", "overlap|twice")


def resized(state, name, size, of_members):
    """Set a size in the state of a model, or in those of its members if it has any."""
    paths = [path for path in state["learned"] if path.endswith(f"/model/{name}")] if of_members else []
    (state["learned"] if paths else state).update(dict.fromkeys(paths or [name], size))


class TestSizesThatAFileClaims:
    """What a file says about sizes is compared with its arrays before anything of that size is made."""

    @each("name", ["scaled", "smoother", "selftuned", "front door numbers"])
    def test_a_small_file_takes_little_memory(self, tmp_path, name):
        """Whatever it says, of itself or of a member: 86 KB took gigabytes before they were refused."""
        model, path = KINDS[name].make(), tmp_path / "m.npz"
        KINDS[name].call(model, 0, 30)()
        model.save(path)
        for place in ("n_features", "targets"):
            for size in (10_000, 2**25):
                for part in (False, True):
                    edited = rewritten(path, lambda header, arrays: resized(header["state"], place, size, part))
                    tracemalloc.start()
                    try:
                        refused(edited)
                        assert tracemalloc.get_traced_memory()[1] < 20 * path.stat().st_size + 2_000_000
                    finally:
                        tracemalloc.stop()

    def test_of_labels_too(self, tmp_path):
        model, path = KINDS["front door numbers"].make(), tmp_path / "m.npz"
        KINDS["front door numbers"].call(model, 0, 30)()
        model.save(path)
        refused(rewritten(path, lambda header, arrays: header["state"]["learned"].update(n_seen=2**40)), "labels")

    @each("labels", [ok.Taxonomy({"a": "r", "b": "r", "c": "r"}), ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])],
          ids=["taxonomy", "graph"])
    @each("kernel", ["linear", "gaussian"])
    def test_labels_of_a_structure(self, tmp_path, labels, kernel):
        model = ok.NORMA("graph_hinge", kernel, labels=labels).partial_fit(np.eye(3), ["a", "b", "c"])
        model.save(tmp_path / "m.npz")

        refused(rewritten(tmp_path / "m.npz", in_labels(fixed=False)), "labels of a structure are fixed")
        for order in (["a", "b"], ["a"], [], ["a", "b", "c", "r"], ["a", "b", "z"], ["a", "b", "b"], [["a"], "b", "c"],
                      None, ["a", "b", None], ["a", "b", NAN], {"a": 1}):
            refused(rewritten(tmp_path / "m.npz", in_labels(order=order)))
        for count in (0, 1, 2, 4, -1):
            refused(rewritten(tmp_path / "m.npz", in_learned(labels=count)))


def test_an_archive_is_checked_before_numpy_sees_it():
    """A wrong checksum, a shape that is not that of the bytes, and a member inside of another one: each has its
    sentence."""
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
    with pytest.raises(ValueError, match="the archive is damaged: Bad CRC-32"):
        files.read_arrays(bytes(content))
    with pytest.raises(ValueError, match="shape .* has 24 bytes"):
        files.read_arrays(zipped(a=npy(np.arange(3.0)).replace(b"(3,)", b"(4,)")))
    # All of the inner archive's local record is the data of an outer member; one more entry of the directory points
    # into it.
    inner = zipped(b=npy(np.zeros(5000)))
    record, entry = inner[: inner.index(b"PK\1\2")], inner[inner.index(b"PK\1\2") : inner.rindex(b"PK\5\6")]
    outer = zipped(a=npy(np.frombuffer(record, dtype=np.uint8)))
    begin, end = outer.rindex(b"PK\1\2"), outer.rindex(b"PK\5\6")
    entry = entry[:42] + struct.pack("<I", outer.index(record)) + entry[46:]
    last = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, end - begin + len(entry), begin, 0)
    with pytest.raises(ValueError, match="members of the archive overlap"):
        files.read_arrays(outer[:end] + entry + last)


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
