"""Model files: one .npz, versioned, with a checksum and without pickle.

The file holds arrays and one JSON header (as bytes). The header names the algorithm, its parameters, the labels, and
everything that is learned, by name and not by where it is in memory; it has a SHA-256 digest over everything. Loading
looks names up in the library's own tables, validates every shape and index, and never executes code.
"""
from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import threading
import zlib
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import algorithms, budgets, kernels, labels, losses, preprocessing, steps
from onlinekernels.base.params import Parameterized
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Path

__all__ = ["write_atomically", "read_arrays", "is_storable", "save", "load", "notes_of"]


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
    if os.name != "nt":  # Windows cannot open folders
        _flush_to_disk(os.path.dirname(path) or ".")


def _flush_to_disk(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_END = struct.Struct("<4s4H2LH")

_END64_LOCATOR = struct.Struct("<4sLQL")

_END64 = struct.Struct("<4sQ2H2L4Q")

_ENTRY = struct.Struct("<4s6H3L5H2L")

_LOCAL = struct.Struct("<4s5H3L2H")

_HARMLESS_FLAGS = 0x0808  # sizes behind the data as well; names in UTF-8

_LAST, _LONGEST_COMMENT = b"PK\5\6", 0xFFFF

_LARGE = 0xFFFFFFFF  # "see the field with 8 bytes"

_NPY = re.compile(
    rb"\{'descr': '([<>|][biuf][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)


def is_storable(array):
    """Whether an array is one that `read_arrays` reads: of plain numbers or truth values."""
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def read_arrays(content):
    """{name: array} of an .npz file in memory; ValueError for anything but what `numpy.savez` writes of plain numbers.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.arange(3.0))
    >>> read_arrays(file.getvalue())
    {'a': array([0., 1., 2.])}
    """
    content = memoryview(content)
    arrays, total = {}, 0
    for name, data in _members(content):
        total += len(data)
        if total > len(content):
            raise ValueError("members of the archive overlap")
        if not name.endswith(".npy") or name[:-4] in arrays:
            raise ValueError(f"the archive holds {name!r}, or holds it twice")
        arrays[name[:-4]] = _array(data)
    return arrays


def _members(content):
    """(name, bytes) of each member."""
    count, place, end = _directory(content)
    for _ in range(count):
        (signature, _, _, flags, method, _, _, crc, packed, size, name_size, extra_size, comment_size, _, _, _,
         local) = _unpacked(_ENTRY, content, place, end)
        place += _ENTRY.size
        name, extra = content[place : place + name_size], content[place + name_size : place + name_size + extra_size]
        place += name_size + extra_size + comment_size
        if signature != b"PK\1\2" or place > end:
            raise ValueError("the directory of the archive is damaged")
        size, packed, local = _large_values(extra, size, packed, local)
        if method != 0 or packed != size or flags & ~_HARMLESS_FLAGS:
            raise ValueError("a member of the archive is compressed or encrypted")
        data = _data(content, local, name, size)
        if zlib.crc32(data) != crc:
            raise ValueError("a member of the archive is damaged")
        yield bytes(name).decode(), data
    if place != end:
        raise ValueError("the directory of the archive is damaged")


def _directory(content):
    """(number of members, begin and end of the directory), from the record at the end; behind it is a comment."""
    last = _last_record(content)
    _, disk, first_disk, here, count, size, begin, _ = _unpacked(_END, content, last, len(content))
    end = last
    if begin + size != end:  # another record follows the directory: of many members, or of more than 2 GB
        locator = last - _END64_LOCATOR.size
        mark, _, end, _ = _unpacked(_END64_LOCATOR, content, locator, last)
        mark64, _, _, _, disk, first_disk, here, count, size, begin = _unpacked(_END64, content, end, locator)
        if mark != b"PK\6\7" or mark64 != b"PK\6\6":
            raise ValueError("the end of the archive is damaged")
    if disk or first_disk or here != count or begin + size != end:
        raise ValueError("the directory of the archive is damaged")
    return count, begin, end


def _last_record(content):
    """Where the last record begins: a comment of the length that it declares ends the file."""
    tail = bytes(content[-_END.size - _LONGEST_COMMENT :])
    place = tail.rfind(_LAST)
    while place >= 0:
        if place + _END.size <= len(tail) == place + _END.size + _END.unpack_from(tail, place)[-1]:
            return len(content) - len(tail) + place
        place = tail.rfind(_LAST, 0, place)
    raise ValueError("the end of the archive is missing")


def _large_values(extra, *values):
    """Sizes and places, those that do not fit 4 bytes from the extra field 1."""
    missing = sum(value == _LARGE for value in values)
    if not missing:
        return values
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 1 and 8 * missing <= size <= len(extra) - 4:
            larger = iter(struct.unpack_from(f"<{missing}Q", extra, 4))
            return [next(larger) if value == _LARGE else value for value in values]
        extra = extra[4 + size :]
    raise ValueError("a size in the archive is missing")


def _data(content, place, name, size):
    """The bytes of a member, whose own header must bear its name."""
    signature, *_, name_size, extra_size = _unpacked(_LOCAL, content, place, len(content))
    place += _LOCAL.size
    data = content[place + name_size + extra_size :][:size]
    if signature != b"PK\3\4" or content[place : place + name_size] != name or len(data) != size:
        raise ValueError("a member of the archive is damaged")
    return data


def _unpacked(record, content, place, end):
    if not 0 <= place <= end - record.size:
        raise ValueError("the archive ends too early")
    return record.unpack_from(content, place)


def _array(data):
    """The array of an .npy member."""
    start = {b"\x93NUMPY\1\0": 10, b"\x93NUMPY\2\0": 12}.get(bytes(data[:8]), math.inf)
    if len(data) < start:
        raise ValueError("a member of the archive is not an .npy file")
    start += int.from_bytes(data[8:start], "little")
    header = _NPY.fullmatch(data[:start], 10 if data[6] == 1 else 12)
    if header is None:
        raise ValueError("an array is not of plain numbers")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(length) for length in re.findall(rb"\d+", header[3]))
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"an array of shape {shape} has {len(data) - start} bytes")
    order = "F" if header[2] == b"True" else "C"  # column by column in files of version 0.1
    return np.frombuffer(data, dtype, offset=start).reshape(shape, order=order).copy()


FORMAT = "onlinekernels model"

VERSION = 1

PLAIN = (bool, int, float, str)  # a subclass, such as an enumeration, would come back as something else

COMPONENTS = {
    name: cls
    for module in (kernels, losses, steps, budgets, labels, preprocessing)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Parameterized) and cls.__module__.startswith(module.__name__)
}

RULES = {
    rule.__name__: rule for rule in (getattr(algorithms, name)._rule for name in algorithms.__all__) if rule is not None
}

COMPONENTS.update(RULES)


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
            raise ValueError(
                f"This model cannot be saved, its file would not load: {error}. Nothing was written."
            ) from error
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
            header["encoder"] = {
                "component": _encoded(model._encoder, "encode", arrays),
                "learned": model._encoder.to_dict(),
            }
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
                raise ValueError(
                    f"its {name} is Python code, which files do not hold; give it as load(path, {name}=...)"
                )
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
                encoder = _decoded(header["encoder"]["component"], arrays)
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
    if COMPONENTS.get(cls.__name__) is cls and cls is not kernels.Custom:
        value = value.resolved() if isinstance(value, labels.Labels) else value
        params = value.get_params(deep=False)
        return {"component": cls.__name__, "params": {key: _encoded(v, name, arrays) for key, v in params.items()}}
    raise TypeError(
        f"The {name!r} of this model is Python code or an object, {value!r}, which a model file cannot hold. Pickle "
        "the model instead."
    )


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
    return COMPONENTS[value["component"]](**params)


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
    write_atomically(path if path.endswith(".npz") else path + ".npz", lambda file: np.savez(file, **arrays))


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
