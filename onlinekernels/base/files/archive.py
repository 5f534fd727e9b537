"""Arrays in an .npz file, read strictly: nothing is unpacked, unpickled or allocated on a file's word.

NumPy writes a zip of .npy members, one after another and not compressed, with a directory at the end.  This reader
takes that and nothing else: each size that the file declares is checked against the bytes that are there.
"""
import math
import re
import struct
import zlib

import numpy as np

__all__ = ["read_arrays", "is_storable"]

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
