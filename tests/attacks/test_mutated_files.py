"""Model files with changed content and right checksums: refused with ValueError, or a model that works.

Nothing here knows what the header and the arrays mean: they are walked, and parts are changed, dropped, exchanged and
taken from other files.  Some hundred files every day; ONLINEKERNELS_MUTATIONS sets for how many of each kind.
"""
import copy
import os
import random
import zlib

import numpy as np
import pytest

import onlinekernels as ok
from contracts.registry import KINDS, Own, Transformer, near, overlap
from small_models import read_file, write_file

COUNT = int(os.environ.get("ONLINEKERNELS_MUTATIONS", "6"))
NAMES = [name for name, kind in KINDS.items() if not isinstance(kind, Transformer)
         and name not in ("stacking own code", "stacking own loss labels", "stacking nested")]  # files hold no code
VALUES = [0, 1, -1, 2, 3, 7, 0.5, -2.5, 1e-300, 1e300, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**70, 10**400, -0.0,
          float("nan"), float("inf"), "", "a", "b", "linear", "gradient", "implicit", None, True, False, [], [1],
          ["a", "b"], ["a"] * 3, [[1]], {}]
ENTRIES = [0, 1, -1, 7, -5, 1e9, 1e300, 2**31 - 1, float("nan"), float("inf")]
TYPES = ["f4", "f8", "i4", "i8", "u1", "b1", ">f8"]


def places_in(part, path=()):
    """Paths to all values within a header."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places_in(value, (*path, key))


def at(part, path):
    for key in path:
        part = part[key]
    return part


def change_header(header, others, rnd):
    """Another value, a nudge, none, two, another place's, another file's, another name."""
    paths = [path for path in places_in(header) if path not in (("format",), ("version",), ("digest",))]
    path, other = rnd.choice(paths), rnd.choice(paths)
    parent, key = at(header, path[:-1]), path[-1]
    value, theirs = parent[key], rnd.choice(others)[0]
    alike = [p for p in places_in(theirs) if p[-1] == key]
    how = rnd.choice(["value", "value", "nudge", "drop", "double", "elsewhere", "other file", "rename"])
    if how == "value":
        parent[key] = copy.deepcopy(rnd.choice(VALUES))
    elif how == "nudge":
        parent[key] = rnd.choice([value + 1, value - 1, -value, 2 * value, value * 1e9, value / 3])
    elif how == "drop":
        parent.pop(key)
    elif how == "double":
        parent.append(copy.deepcopy(value))
    elif how == "elsewhere":
        parent[key] = copy.deepcopy(at(header, other))
    elif how == "other file":
        parent[key] = copy.deepcopy(at(theirs, rnd.choice(alike)))
    else:
        parent[rnd.choice([p[-1] for p in paths if isinstance(p[-1], str)])] = parent.pop(key)


def change_arrays(arrays, others, rnd):
    """Another shape, type, order or entry; or none, another array, or that of another file."""
    name, other, theirs = rnd.choice(sorted(arrays)), rnd.choice(sorted(arrays)), rnd.choice(others)[1]
    array = arrays[name]
    entry = array.copy()
    if array.size:
        entry.ravel()[rnd.randrange(array.size)] = rnd.choice(ENTRIES)
    arrays[name] = rnd.choice([
        lambda: array[..., :-1], lambda: array[:-1], lambda: np.concatenate([array, array[:1]]), lambda: array[None],
        lambda: array.reshape(-1), lambda: array.astype(rnd.choice(TYPES)), lambda: entry, lambda: entry,
        lambda: array.ravel()[::-1].reshape(array.shape), lambda: arrays[other], lambda: theirs[name],
        lambda: (array * rnd.choice([0, -1, 2, 1e300])).astype(array.dtype), lambda: np.ascontiguousarray(array.T),
        lambda: np.zeros((0, *array.shape[1:]), array.dtype), lambda: theirs[rnd.choice(sorted(theirs))]])()
    if rnd.random() < 0.1:
        del arrays[name]


def mutated(header, arrays, others, rnd):
    """A changed copy: one change mostly, sometimes two or three."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    for _ in range(rnd.choice([1, 1, 1, 2, 3])):
        try:
            with np.errstate(all="ignore"):
                if arrays and rnd.random() < 0.4:
                    change_arrays(arrays, others, rnd)
                else:
                    change_header(header, others, rnd)
        except (ValueError, OverflowError, LookupError, TypeError, AttributeError):  # this part cannot suffer it
            pass
    return header, arrays


def use(model, kind, path):
    """A model predicts, learns, and can be saved, or says in a ValueError why not; it stays sound."""
    def save():
        model.save(path)
        ok.load(path, **given(model))

    for call in (lambda: kind.scores(model), save, kind.call(model, 0, 6), lambda: kind.scores(model), save):
        try:
            call()
        except (ValueError, FloatingPointError):  # a refusal
            pass
        # it says that it has learned dense rows, numbers, or an object that files do not hold
        except TypeError as error:
            assert any(words in str(error) for words in ("X is sparse", "y must hold numbers", "model file")), error
        for part in (model._state, *vars(model._state or object).values()):
            getattr(part, "_check", int)()


def given(model):
    params = model.get_params(deep=False)
    return {part: params[part] for part in ("kernel", "loss") if params.get(part) in (overlap, near)
            or isinstance(params.get(part), Own)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(header, arrays) of a file of each kind."""
    path, found = tmp_path_factory.mktemp("files") / "m.npz", {}
    for name in NAMES:
        model = KINDS[name].make()
        KINDS[name].call(model, 0, 24)()
        model.save(path)
        found[name] = read_file(path)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_changed_file_is_refused_or_gives_a_model_that_works(name, saved, tmp_path):
    rnd, path, loaded = random.Random(zlib.crc32(name.encode())), tmp_path / "m.npz", 0
    for number in range(-1, COUNT):
        header, arrays = saved[name] if number < 0 else mutated(*saved[name], list(saved.values()), rnd)
        try:
            write_file(path, header, arrays)
        except (TypeError, ValueError, OverflowError):  # JSON or NumPy cannot write it
            continue
        try:
            model = ok.load(path, **given(KINDS[name].make()))
        except ValueError as error:
            assert number >= 0 and "checksum" not in str(error), error
            continue
        loaded += 1
        use(model, KINDS[name], path)
    assert loaded > 0
