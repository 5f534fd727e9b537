"""Model files: one .npz, versioned, with a checksum and without pickle.

The file holds arrays and one JSON header (as bytes).  The header names the algorithm, its parameters, the labels, and
everything that is learned, by name and not by where it is in memory; it has a SHA-256 digest over everything.  Loading looks names
up in the library's own tables, validates every shape and index, and never executes code.
"""
from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import algorithms
from onlinekernels.base.files import atomic
from onlinekernels.base.files.archive import is_storable, read_arrays
from onlinekernels import budgets, kernels, labels, losses, preprocessing, steps
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss
from onlinekernels.base.params import Parameterized

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Path

__all__ = ["save", "load", "notes_of"]

FORMAT = "onlinekernels model"
VERSION = 1
PLAIN = (bool, int, float, str)  # a subclass, such as an enumeration, would come back as something else

NOUNS = {
    name: cls
    for module in (kernels, losses, steps, budgets, labels, preprocessing)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Parameterized) and cls.__module__.startswith(module.__name__)
}
RULES = {rule.__name__: rule for rule in (getattr(algorithms, name)._rule for name in algorithms.__all__) if rule is not None}
NOUNS.update(RULES)


def save(model, path, *, notes=None):
    """Write a model; see `OnlineLearner.save`.

    `notes` is any JSON value to keep beside it; `notes_of` a loaded model gives it back.
    """
    arrays, params = {}, model.get_params(deep=False)
    without = [name for name in ("kernel", "loss") if _is_code(params.get(name), name)]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": _algorithm_name(model),
        "without": without,
        "params": {name: None if name in without else _encoded(value, name, arrays) for name, value in params.items()},
        "state": None,
    }
    if model._state is not None:
        state = model._state.to_dict()
        _check_labels(state["labels"])
        try:
            model._state.check_learned()
        except ValueError as error:  # what `load` would say, when it is too late
            raise ValueError(f"This model cannot be saved, its file would not load: {error}. Nothing was written.") from error
        state["plan"] = {
            name: None if name in without else _encoded(value, name, arrays)
            for name, value in state["plan"].items()
        }
        state["learned"] = {
            name: _encoded_objects(value, arrays) if name == "objects" else _encoded(value, name, arrays)
            for name, value in state["learned"].items()
        }
        if state.get("beginning") is not None:  # a composite has none
            state["beginning"] = {name: _encoded(value, name, arrays) for name, value in state["beginning"].items()}
        header["state"] = state
        if model._encoder is not None:
            header["encoder"] = {"noun": _encoded(model._encoder, "encode", arrays), "learned": model._encoder.to_dict()}
    if notes is not None:
        header["notes"] = notes
    header["digest"] = _digest(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _write(os.fspath(path), arrays)


def load(path: Path, kernel: Any = None, loss: Any = None) -> Any:
    """Read a model that `save` wrote; it continues bit for bit.

    Parameters
    ----------
    path : str or path
    kernel, loss : Python callable or object
        Python code of the model, which the file does not hold.

    Raises
    ------
    ValueError
        If the file is not a complete, unchanged model file of a version that this library knows.
    OSError
        If it cannot be opened.
    """
    path = os.fsdecode(path)
    header, arrays = _read(path if os.path.exists(path) or path.endswith(".npz") else path + ".npz")
    try:
        given = {"kernel": kernel, "loss": loss}
        params = {name: _decoded(value, arrays) for name, value in header["params"].items()}
        plan = {}
        if header["state"] is not None:
            plan = {name: _decoded(value, arrays) for name, value in header["state"]["plan"].items()}
        for name, value in given.items():
            if name in header["without"] and value is None:
                raise ValueError(f"its {name} is Python code, which files do not hold; give it as load(path, {name}=...)")
            if name not in header["without"] and value is not None:
                raise ValueError(f"it has a {name} of its own; load it without {name}=...")
            if value is not None:
                params[name] = value
                plan[name] = as_kernel(value, "load") if name == "kernel" else as_loss(value, "load")
        if header["algorithm"] not in algorithms.__all__:
            raise ValueError(f"there is no algorithm {header['algorithm']!r}")
        algorithm = getattr(algorithms, header["algorithm"])
        missing = {p.name for p in algorithm._signature()} - set(params)
        if missing:
            raise ValueError(f"it lacks the parameter {min(missing)!r}")
        model = algorithm(**params)
        if header["state"] is not None:
            if type(plan["rule"]) is not (algorithm._rule or type(None)):
                raise ValueError(f"the rule of {header['algorithm']} is not {plan['rule']!r}")
            state = dict(header["state"], plan=plan)
            state["learned"] = {name: _decoded(value, arrays) for name, value in state["learned"].items()}
            if state.get("beginning") is not None:
                state["beginning"] = {name: _decoded(value, arrays) for name, value in state["beginning"].items()}
            model.__dict__["_state"] = model._restored(state)
            if header.get("encoder") is not None:
                encoder = _decoded(header["encoder"]["noun"], arrays)
                encoder.restore(header["encoder"]["learned"])
                model.take_encoder(encoder)
    except Exception as error:  # whatever the file says, and however deep it says it
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ValueError(f"{path} cannot be loaded: {reason}.") from error
    if header.get("notes") is not None:
        model.__dict__["_notes"] = header["notes"]
    return model


def notes_of(model):
    """The notes of the file that a model was loaded from, or None."""
    return model.__dict__.get("_notes")


def _algorithm_name(model):
    name = type(model).__name__
    if getattr(algorithms, name, None) is not type(model):
        raise TypeError(f"{name} is not an algorithm of this library and cannot be saved; pickle can.")
    return name


def _encoded(value, name, arrays):
    """A parameter or state value as JSON, with arrays put aside."""
    if isinstance(value, np.ndarray) and is_storable(value):
        return {"array": _key_of(value, arrays)}
    if isinstance(value, dict) and any(isinstance(v, Parameterized) for v in value.values()):
        return {"table": [[_plain(key, name), _encoded(v, name, arrays)] for key, v in value.items()]}
    if isinstance(value, (list, tuple)) and any(isinstance(v, Parameterized) for v in value):
        return {"list": [_encoded(v, name, arrays) for v in value]}
    if isinstance(value, dict):
        return {"pairs": [[_plain(key, name), _plain(v, name)] for key, v in value.items()]}
    if isinstance(value, (list, tuple)):
        if name == "labels" and any(isinstance(row, (list, tuple)) for row in value):
            return {"rows": [[_plain(v, name) for v in row] for row in value]}
        if name == "labels" or all(type(v) in PLAIN for v in value):
            return {"objects": [_plain(v, name) for v in value]}
        if np.asarray(value).dtype.kind in "fiub":
            return _encoded(np.asarray(value), name, arrays)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in PLAIN:
        return value
    cls = type(value)
    if cls.__name__ in algorithms.__all__ and getattr(algorithms, cls.__name__) is cls:  # a member, as it was given
        params = value.get_params(deep=False)
        return {"model": cls.__name__, "params": {key: _encoded(v, key, arrays) for key, v in params.items()}}
    if NOUNS.get(cls.__name__) is cls and cls is not kernels.Custom:
        value = value.settled() if isinstance(value, labels.Labels) else value
        params = value.get_params(deep=False)
        return {"noun": cls.__name__, "params": {key: _encoded(v, name, arrays) for key, v in params.items()}}
    raise TypeError(
        f"The {name!r} of this model is Python code or an object, {value!r}, which a model file cannot hold. Pickle the model instead."
    )


def _is_code(noun, name):
    """Whether a kernel or loss is Python code, which a file cannot hold, and `load` is given."""
    try:
        _encoded(noun, name, {})
    except TypeError:
        return True
    return False


def _key_of(array, arrays):
    """The name of an array in the file: what is there twice, such as the Gram matrix of a kernel, is written once."""
    for key, other in arrays.items():
        if other.dtype == array.dtype and other.shape == array.shape and other.tobytes() == array.tobytes():
            return key
    key = f"array{len(arrays)}"
    arrays[key] = np.asarray(array, order="C")
    return key


def _plain(value, name):
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) in PLAIN:
        return value
    raise TypeError(f"The {name!r} of this model holds {value!r}; a model file takes numbers and strings only.")


def _decoded(value, arrays):
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "objects" in value:
        return value["objects"]
    if "pairs" in value:
        return {key: v for key, v in value["pairs"]}
    if "rows" in value:
        return [tuple(row) for row in value["rows"]]
    if "table" in value:
        return {key: _decoded(v, arrays) for key, v in value["table"]}
    if "list" in value:
        return [_decoded(v, arrays) for v in value["list"]]
    params = {key: _decoded(v, arrays) for key, v in value["params"].items()}
    if "model" in value:
        if value["model"] not in algorithms.__all__:
            raise ValueError(f"there is no algorithm {value['model']!r}")
        return getattr(algorithms, value["model"])(**params)
    return NOUNS[value["noun"]](**params)


def _encoded_objects(objects, arrays):
    """Points that are numbers, strings or arrays of one shape."""
    if objects and all(isinstance(x, np.ndarray) and x.dtype.kind in "fiub" for x in objects):
        if len({(x.shape, x.dtype) for x in objects}) == 1:
            return _encoded(np.stack(objects), "points", arrays)
    plain = [x.item() if isinstance(x, np.generic) else x for x in objects]
    if all(type(x) in PLAIN for x in plain):
        return {"objects": plain}
    raise TypeError(
        "The terms of this model are Python objects other than numbers, strings or arrays of one shape, which a "
        "model file cannot hold. Pickle the model instead."
    )


def _check_labels(labels):
    names = [] if labels is None else labels.get("classes", labels.get("order"))
    if not all(type(label) in PLAIN for label in names):
        raise TypeError("Labels must be numbers or strings to be saved. Pickle the model instead.")


def _digest(header, arrays):
    digest = hashlib.sha256()
    rest = {key: value for key, value in header.items() if key != "digest"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8))
    return digest.hexdigest()


def _write(path, arrays):
    atomic.write(path if path.endswith(".npz") else path + ".npz", lambda file: np.savez(file, **arrays))


def _read(path):
    """(header, arrays) of a file whose format, version and digest are right."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{path} is not a model file of onlinekernels: it is not a zip archive.")
        try:
            file.seek(0)
            arrays = read_arrays(file.read())
            header = json.loads(arrays.pop("header").tobytes())
            is_ours = isinstance(header, dict) and header.get("format") == FORMAT
            digest = _digest(header, arrays) if is_ours else None
        except Exception as error:  # MemoryError and RecursionError among them
            raise ValueError(f"{path} is not a model file of onlinekernels, or it is damaged: {error}.") from error
    if not is_ours:
        raise ValueError(f"{path} is not a model file of onlinekernels.")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise ValueError(
            f"{path} has version {header.get('version')} of the file format; this library reads version {VERSION}. "
            "Update onlinekernels to load it."
        )
    if header.get("digest") != digest:
        raise ValueError(f"{path} was changed after it was written: its checksum does not match.")
    return header, arrays
