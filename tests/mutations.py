"""Model files whose content is changed, with a right checksum: refused with ValueError, or a model that works.

As a script it does so for a while and tells what it found:

    python tests/mutations.py SEED MINUTES [FOLDER]

With 0 minutes it goes through all arrays of all files instead.

Nothing here knows what the header and the arrays mean: they are walked, and parts are changed, dropped, exchanged and
taken from other files. Only `read` and `write` know the format. A file that is neither refused nor fine stays in the
folder, and so does the last one when the process dies.
"""
import copy
import faulthandler
import json
import pathlib
import random
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np

import onlinekernels as ok
from contracts.registry import KINDS, POINTS, SIGNS, Own, near, overlap
from onlinekernels.base import files

ROWS = 24
SLOW = 20.0  # seconds for one file, on a machine that does other things as well


def models():
    """Models of every kind that a file may hold: (model, its kind, what `load` must be given)."""
    for name, kind in KINDS.items():
        model = kind.make()
        # files hold no code
        if not hasattr(model, "save") or "own code" in name or "own loss labels" in name or "nested" in name:
            continue
        params = model.get_params(deep=False)
        given = {part: params[part] for part in ("kernel", "loss") if params.get(part) in (overlap, near)
                 or isinstance(params.get(part), Own)}
        kind.call(model, 0, ROWS)()
        yield model, kind, given
    yield ok.Adatron(ok.Gaussian(1.5)).fit(POINTS[:ROWS], SIGNS[:ROWS]), KINDS["norma"], {}
    yield KINDS["norma"].make(), KINDS["norma"], {}  # has learned nothing
    yield learned_long(KINDS["selftuned"]), KINDS["selftuned"], {}


def learned_long(kind):
    """A model that has chosen its parameters, for which it takes more rows."""
    model = kind.make()
    kind.call(model, 0, len(POINTS))()
    return model


def read(path):
    """(header, arrays) of a model file."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays):
    """A model file of this content, with the checksum that belongs to it."""
    header = {**header, "digest": files._digest(header, arrays)}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


# ---- Changes ---------------------------------------------------------------------------------------------------

VALUES = [0, 1, -1, 2, 3, 7, 0.5, -2.5, 1e-300, 1e300, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**70, 10**400, -0.0,
          float("nan"), float("inf"), "", "a", "b", "linear", "gradient", "implicit", None, True, False, [], [1], ["a",
                                                                                                                   "b"],
          ["a"] * 3, [[1]], {}]
NUMBERS_IN_ARRAYS = [0, 1, -1, 7, -5, 1e9, 1e300, 2**31 - 1, float("nan"), float("inf")]
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
    """Change one place of a header: another value, a nudge, none, two, another place's, another file's, another
    name."""
    paths = [path for path in places_in(header) if path not in (("format",), ("version",), ("digest",))]
    path = rnd.choice(paths)
    parent, key = at(header, path[:-1]), path[-1]
    value = parent[key]
    how = rnd.choice(["value", "value", "nudge", "drop", "double", "swap", "elsewhere", "other file", "rename"])
    if how == "value":
        parent[key] = copy.deepcopy(rnd.choice(VALUES))
    elif how == "nudge" and type(value) in (int, float):
        parent[key] = rnd.choice([value + 1, value - 1, -value, 2 * value, value * 1e9, value / 3])
    elif how == "drop":
        parent.pop(key)
    elif how == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(value))
    elif how == "swap":
        other = rnd.choice(paths)
        if other[: len(path)] != path and path[: len(other)] != other:
            at(header, other[:-1])[other[-1]], parent[key] = value, at(header, other)
    elif how == "elsewhere":
        parent[key] = copy.deepcopy(at(header, rnd.choice(paths)))
    elif how == "other file":
        other = rnd.choice(others)[0]
        alike = [p for p in places_in(other) if p[-1] == key]
        if alike:
            parent[key] = copy.deepcopy(at(other, rnd.choice(alike)))
    elif how == "rename" and isinstance(parent, dict):
        parent[rnd.choice([p[-1] for p in paths if isinstance(p[-1], str)])] = parent.pop(key)


def change_arrays(arrays, others, rnd):
    """Change one array: its shape, type, order or an entry; or drop it, exchange it, take one of another file."""
    name = rnd.choice(sorted(arrays))
    array = arrays[name]
    how = rnd.choice(["shorter", "longer", "axis", "type", "backwards", "entry", "entry", "scale", "empty", "turn",
                      "drop", "swap", "other file", "more"])
    if how == "shorter":
        arrays[name] = array[..., :-1] if rnd.random() < 0.5 else array[:-1]
    elif how == "longer" and array.ndim:
        arrays[name] = np.concatenate([array, array[:1]], axis=0)
    elif how == "axis":
        arrays[name] = array[None] if rnd.random() < 0.5 else array.reshape(-1)
    elif how == "type":
        arrays[name] = array.astype(rnd.choice(TYPES))
    elif how == "backwards":
        arrays[name] = array.ravel()[::-1].reshape(array.shape)
    elif how == "entry" and array.size:
        arrays[name] = array.copy()
        arrays[name].ravel()[rnd.randrange(array.size)] = rnd.choice(NUMBERS_IN_ARRAYS)
    elif how == "scale":
        arrays[name] = (array * rnd.choice([0, -1, 2, 1e300])).astype(array.dtype)
    elif how == "empty":
        arrays[name] = np.zeros((0, *array.shape[1:]) if array.ndim else 0, array.dtype)
    elif how == "turn":
        arrays[name] = np.ascontiguousarray(array.T)
    elif how == "drop":
        del arrays[name]
    elif how == "swap":
        other = rnd.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif how == "other file":
        theirs = rnd.choice(others)[1]
        if theirs:
            arrays[name] = theirs[name if name in theirs and rnd.random() < 0.7 else rnd.choice(sorted(theirs))]
    elif how == "more":
        arrays[name + "0"] = array


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
        except (ValueError, OverflowError, IndexError, TypeError):  # a change that this part cannot suffer
            pass
    return header, arrays


# ---- What must hold --------------------------------------------------------------------------------------------


def check(model):
    """All invariants of what a model holds."""
    if model._state is None:
        return
    parts = [part for part in (model._state, *vars(model._state).values()) if hasattr(part, "_check")]
    assert parts, "nothing to check"
    for part in parts:
        part._check()


def use(model, kind, given, folder):
    """A model predicts, learns, and can be saved, or says in a ValueError why not; nothing else, and it stays sound."""
    examples = kind.points(0, ROWS)

    def predict():
        return (model.predict if hasattr(model, "predict") else model.transform)(examples)

    def learn():
        kind.call(model, 0, 6)()

    def save():
        path = folder / "again.npz"
        try:
            model.save(path)
        except TypeError as error:  # an object that files do not hold
            assert "model file" in str(error)
            return
        again = ok.load(path, **given)
        np.testing.assert_array_equal((again.predict if hasattr(again, "predict") else again.transform)(examples),
                                      predict())

    def look():
        names = ("t_", "norm_", "support_vectors_", "dual_coef_", "coef_", "intercept_", "classes_", "knots_", "step_")
        return repr(model), [getattr(model, name, None) for name in names]

    for call in (predict, look, save, learn, predict, look, save):
        if call is not learn or hasattr(model, "partial_fit"):
            try:
                call()
            except (ValueError, FloatingPointError):  # a refusal
                pass
            # a model that says it has learned dense rows, or numbers, refuses sparse ones, and letters
            except TypeError as error:
                assert "X is sparse" in str(error) or "y must hold numbers" in str(error), error
            check(model)


class Storm:
    """Mutations, one after another; the same for the same seed."""

    def __init__(self, seed, folder):
        self.rnd = random.Random(seed)
        self.folder = pathlib.Path(folder)
        self.path = self.folder / f"mutated{seed}.npz"
        self.files, self.kinds = [], []
        for model, kind, given in models():
            model.save(self.path)
            self.files.append(read(self.path))
            self.kinds.append((kind, given))
            write(self.path, *self.files[-1])
            check(ok.load(self.path, **given))  # what is not changed is not refused: checksums are right
        self.count = self.loaded = 0
        self.faults = []

    def step(self):
        """One mutation at random."""
        number = self.rnd.randrange(len(self.files))
        self.attempt(number, *mutated(*self.files[number], self.files, self.rnd))

    def sweep(self):
        """Every array of every file, with all its numbers changed in one way."""
        for number, (header, arrays) in enumerate(self.files):
            for name, array in arrays.items():
                for factor in (0, -1, 1e200):
                    with np.errstate(all="ignore"):
                        self.attempt(number, header, {**arrays, name: (array * factor).astype(array.dtype)})

    def attempt(self, number, header, arrays):
        """A file instead of that of this number: refused, or used."""
        try:
            write(self.path, header, arrays)
        except (TypeError, ValueError, OverflowError):  # JSON or NumPy cannot write it
            return
        self.count += 1
        begun = time.perf_counter()
        try:
            self.try_out(*self.kinds[number])
            if time.perf_counter() - begun > SLOW:
                raise TimeoutError(f"{time.perf_counter() - begun:.1f} seconds")
        except BaseException as error:
            kept = self.folder / f"fault{len(self.faults)}.npz"
            write(kept, header, arrays)
            self.faults.append(f"{kept}: {error!r}\n{traceback.format_exc()}")

    def try_out(self, kind, given):
        try:
            model = ok.load(self.path, **given)
        except ValueError as error:
            assert "checksum" not in str(error)
            return
        self.loaded += 1
        check(model)
        use(model, kind, given, self.folder)


def run(seed, folder, minutes=0.0, least=0):
    """A storm of at least so many mutations and minutes; it ends early after ten faults."""
    warnings.simplefilter("ignore")
    storm = Storm(seed, folder)
    end = time.monotonic() + 60 * minutes
    while (storm.count < least or time.monotonic() < end) and len(storm.faults) < 10:
        storm.step()
    return storm


def main(seed, minutes, folder=None, least=0):
    """What a script does; without minutes and a least number of files it is the sweep."""
    faulthandler.enable()
    storm = run(int(seed), folder or tempfile.mkdtemp(), float(minutes), int(least))
    if storm.count == 0:
        storm.sweep()
    print(f"{storm.count} files, {storm.loaded} of them loaded, {len(storm.faults)} faults")
    print("\n\n".join(storm.faults))
    return 1 if storm.faults or storm.loaded * 20 < storm.count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
