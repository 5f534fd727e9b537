"""Model files: one .npz, versioned, with a checksum and without pickle.

The file holds arrays and one JSON header (as bytes). The header names the algorithm, its parameters, the labels, and
everything that is learned, by name and not by where it is in memory; it has a SHA-256 digest over everything. Loading
looks names up in the library's own tables, validates every shape and index, and never executes code. Saving loads what
it is about to write, so nothing is replaced by what cannot be loaded.
"""
from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import threading
import zipfile
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from onlinekernels import algorithms, budgets, kernels, labels, losses, preprocessing, steps
from onlinekernels.base.params import Parameterized
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Path

DENSEST = 16  # bytes of arrays at most for each of a file

FORMAT, VERSION = "onlinekernels model", 1

PLAIN = (bool, int, float, str)  # a subclass, such as an enumeration, would come back as something else

COMPONENTS = {
    name: cls
    for module in (kernels, losses, steps, budgets, labels, preprocessing)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Parameterized) and cls.__module__.startswith(module.__name__)
}

COMPONENTS.update({rule.__name__: rule for name in algorithms.__all__ if (rule := getattr(algorithms, name)._rule)})

ENCODED = ("plan", "learned", "warm_up", "scaler", "target_scaler")  # parts of a state that may hold arrays


def save(model, path, *, notes=None):
    """Write a model; see `Estimator.save`.

    `notes` is any JSON value to keep beside it; `notes_of` a loaded model gives it back.
    """
    arrays, params, algorithm = {}, model.get_params(deep=False), type(model).__name__
    if getattr(algorithms, algorithm, None) is not type(model):
        raise TypeError(f"{algorithm} is not an algorithm of this library and cannot be saved; pickle can.")
    code = {name: params[name] for name in ("kernel", "loss") if _is_code(params.get(name), name)}
    header = {"algorithm": algorithm,
              "without": list(code),
              "params": encoded({**params, **dict.fromkeys(code)}, arrays),
              "state": None}
    if model._state is not None:
        state = model._state.to_dict()
        names = state["labels"] or {"order": []}
        if not all(type(label) in PLAIN for label in names.get("classes", names.get("order"))):
            raise TypeError("Labels must be numbers or strings to be saved. Pickle the model instead.")
        state["plan"].update(dict.fromkeys(code))
        header["state"] = state
        state.update({part: encoded(state[part], arrays) for part in ENCODED if state.get(part) is not None})
        if model._encoder is not None:
            header["encoder"] = {"component": _encoded(model._encoder, "encode", arrays),
                                 "learned": model._encoder.to_dict()}
    if notes is not None:
        header["notes"] = notes
    write(os.fspath(path), header, arrays, lambda header, arrays: _model(header, arrays, code))


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
    return read(path, lambda header, arrays: _model(header, arrays, {"kernel": kernel, "loss": loss}))


def _model(header, arrays, given):
    """The model of a file; `given` is Python code for it, {"kernel": ..., "loss": ...}."""
    if header["algorithm"] == "Bank":
        from onlinekernels.bank import Bank

        return Bank._of_file(header, arrays)
    params, state = decoded(header["params"], arrays), header["state"]
    if state is not None:
        parts = {part: decoded(state[part], arrays) for part in ENCODED if state.get(part) is not None}
        state = {**state, **parts}
    for name in ("kernel", "loss"):
        value = given.get(name)
        if name in header["without"] and value is None:
            raise ValueError(f"its {name} is Python code, which files do not hold; give it as load(path, {name}=...)")
        if name not in header["without"] and value is not None:
            raise ValueError(f"it has a {name} of its own; load it without {name}=...")
        if value is not None:
            params[name] = value
            if state is not None:
                state["plan"][name] = as_kernel(value, "load") if name == "kernel" else as_loss(value, "load")
    if header["algorithm"] not in algorithms.__all__:
        raise ValueError(f"there is no algorithm {header['algorithm']!r}")
    algorithm = getattr(algorithms, header["algorithm"])
    missing = {p.name for p in algorithm._signature()} - set(params)
    if missing:
        raise ValueError(f"it lacks the parameter {min(missing)!r}")
    model = algorithm(**params)
    if state is not None:
        if type(state["plan"]["rule"]) is not (algorithm._rule or type(None)):
            raise ValueError(f"the rule of {header['algorithm']} is not {state['plan']['rule']!r}")
        model.__dict__["_state"] = model._restored(state)
        if header.get("encoder") is not None:
            encoder = _decoded(header["encoder"]["component"], arrays)
            encoder.restore(header["encoder"]["learned"])
            if encoder._state is not None and encoder.n_features_out_ != model._state.n_features:
                raise ValueError("the encoder does not fit the number of features")
            model._encoder = encoder
    if header.get("notes") is not None:
        model.__dict__["_notes"] = header["notes"]
    return model


def notes_of(model):
    """The notes of the file that a model was loaded from, or None."""
    return model.__dict__.get("_notes")


# ---- Values as JSON, with arrays put aside ----


def encoded(parts, arrays):
    """{name: value} as JSON, with arrays put aside."""
    return {name: _encoded(value, name, arrays) for name, value in parts.items()}


def decoded(parts, arrays):
    """The values that `encoded` was given."""
    return {name: _decoded(value, arrays) for name, value in parts.items()}


def _encoded(value, name, arrays):
    """A parameter or state value as JSON, with arrays put aside; `name` is that of the parameter it belongs to."""
    if isinstance(value, (list, tuple)) and value:
        kinds = {(part.shape, part.dtype) if isinstance(part, np.ndarray) else None for part in value}
        if name == "objects" and len(kinds) == 1 and None not in kinds:  # points that are arrays of one shape
            value = np.stack(value)
        elif name not in ("objects", "labels") and not all(type(part) in PLAIN for part in value):
            value = _as_numbers(value)
    if isinstance(value, np.ndarray) and is_storable(value):
        is_symmetric = value.ndim == 2 and len(value) > 16 and np.array_equal(value, value.T)
        return {"lower half" if is_symmetric else "array": _key_of(np.tril(value) if is_symmetric else value, arrays)}
    if isinstance(value, dict):
        return {"table": [[_encoded(key, name, arrays), _encoded(v, name, arrays)] for key, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "objects": [_encoded(v, name, arrays) for v in value]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in PLAIN:
        return value
    if _named(type(value).__name__) is type(value) and type(value) is not kernels.Custom:
        value = value.resolved() if isinstance(value, labels.Labels) else value
        is_model = type(value).__name__ not in COMPONENTS
        params = {key: _encoded(v, key if is_model else name, arrays)
                  for key, v in value.get_params(deep=False).items()}
        return {"component": type(value).__name__, "params": params}
    what = {"objects": "The terms of this model are Python objects other than numbers, strings or arrays of one shape",
            "labels": f"The labels of this model hold {value!r}, which is neither a number nor a string"}
    raise TypeError(f"{what.get(name, f'The {name!r} of this model is Python code or an object, {value!r}')}; a model "
                    "file cannot hold that. Pickle the model instead.")


def _as_numbers(value):
    """Nested lists of numbers as an array, and others as they are."""
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    return array if array.dtype.kind in "fiub" else value


def _named(name):
    """The class of a component, or of a model, which may be a member; None if there is none."""
    return COMPONENTS.get(name) or (getattr(algorithms, name) if name in algorithms.__all__ else None)


def _is_code(component, name):
    """Whether a kernel or loss is Python code, which a file cannot hold, and `load` is given."""
    try:
        _encoded(component, name, {})
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


def _decoded(value, arrays):
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "lower half" in value:
        lower = arrays[value["lower half"]]
        return lower + np.tril(lower, -1).T
    if "objects" in value:
        return [_decoded(v, arrays) for v in value["objects"]]
    if "tuple" in value:
        return tuple(_decoded(v, arrays) for v in value["tuple"])
    if "table" in value:
        return {_decoded(key, arrays): _decoded(v, arrays) for key, v in value["table"]}
    component = _named(value["component"])
    if component is None:
        raise ValueError(f"there is no component {value['component']!r}")
    return component(**{key: _decoded(v, arrays) for key, v in value["params"].items()})


# ---- Files ----


def write(path, header, arrays, make):
    """Write a header and arrays, once `make(header, arrays)` could make a model from what would be in the file."""
    path = path if path.endswith(".npz") else path + ".npz"
    header = {"format": FORMAT, "version": VERSION, **header}
    header["digest"] = _digest(header, arrays)
    content = _archive({"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays})
    try:
        make(*_content(content, path))
    except Exception as error:
        raise ValueError(f"This model cannot be saved, its file would not load: {_reason(error)} Nothing was written."
                         ) from error
    write_atomically(path, lambda file: file.write(content))


def _archive(arrays):
    """The content of an .npz file; arrays of which much is empty are compressed, unless the file would say too little
    of how large it is."""
    for emptiness in (0.3, np.inf):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                is_empty = array.size and np.count_nonzero(array) < (1.0 - emptiness) * array.size
                place = zipfile.ZipInfo(f"{name}.npy")
                place.compress_type = zipfile.ZIP_DEFLATED if is_empty else zipfile.ZIP_STORED
                with archive.open(place, "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)
            total = sum(member.file_size for member in archive.infolist())
        if total <= DENSEST * len(file.getvalue()):
            break
    return file.getvalue()


def read(path, make):
    """What `make(header, arrays)` makes of a file that `write` wrote; ValueError, with its path, if it is another."""
    path = os.fsdecode(path)
    path = path if os.path.exists(path) or path.endswith(".npz") else path + ".npz"
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{path} is not a model file of onlinekernels: it is not a zip archive.")
        file.seek(0)
        header, arrays = _content(file.read(), path)
    try:
        return make(header, arrays)
    except Exception as error:  # whatever the file says, and however deep it says it
        raise ValueError(f"{path} cannot be loaded: {_reason(error)}") from error


def _reason(error):
    """Why a file cannot be loaded, with a full stop."""
    text = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return f"{text.rstrip('.')}."


def _content(content, path):
    """(header, arrays) of a file whose format, version and digest are right."""
    try:
        arrays = read_arrays(content)
        header = json.loads(arrays.pop("header").tobytes())
        is_ours = isinstance(header, dict) and header.get("format") == FORMAT
        digest = _digest(header, arrays) if is_ours else None
    except Exception as error:  # MemoryError and RecursionError among them
        raise ValueError(f"{path} is not a model file of onlinekernels, or it is damaged: {error}.") from error
    if not is_ours:
        raise ValueError(f"{path} is not a model file of onlinekernels.")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise ValueError(f"{path} has version {header.get('version')} of the file format; this library reads version "
                         f"{VERSION}. Update onlinekernels to load it.")
    if header.get("digest") != digest:
        raise ValueError(f"{path} was changed after it was written: its checksum does not match.")
    return header, arrays


def _digest(header, arrays):
    digest = hashlib.sha256()
    rest = {key: value for key, value in header.items() if key != "digest"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8))
    return digest.hexdigest()


def is_storable(array):
    """Whether an array is one that `read_arrays` reads: of plain numbers or truth values."""
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def read_arrays(content):
    """{name: array} of an .npz file in memory; ValueError for anything but what `numpy.savez` writes of plain numbers.

    It takes at most `DENSEST` times as much memory as the file has bytes, whatever the file says.

    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.arange(3.0))
    >>> read_arrays(file.getvalue())
    {'a': array([0., 1., 2.])}
    """
    arrays, total, packed = {}, 0, 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                name, total = member.filename, total + member.file_size
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
                    raise ValueError("a member of the archive is encrypted, or compressed in another way")
                packed += member.compress_size
                if packed > len(content) or total > DENSEST * len(content):
                    raise ValueError("members of the archive overlap, or hold too little for their size")
                if not name.endswith(".npy") or name[:-4] in arrays:
                    raise ValueError(f"the archive holds {name!r}, or holds it twice")
                arrays[name[:-4]] = _array(archive.read(member))
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"the archive is damaged: {error}") from error
    return arrays


def _array(data):
    """The array of an .npy member, whose header must tell how long it is."""
    file = io.BytesIO(data)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, is_fortran, dtype = readers[npy.read_magic(file)](file)
    size = len(data) - file.tell()
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError("an array is not of plain numbers")
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of shape {shape} has {size} bytes")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if is_fortran else "C").copy()


def write_atomically(path, write_to):
    """Let `write_to(file)` write beside the target, and rename: no reader ever sees half a file, nor does the disk.

    A symbolic link stays one, and a file that is replaced hands down its mode.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(os.path.join(folder, "a"), lambda file: file.write(b"whole"))
    ...     os.listdir(folder)
    ['a']
    """
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        with open(temporary, "wb") as file:
            if os.path.exists(path):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    if os.name == "nt":  # Windows cannot open folders
        return
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
