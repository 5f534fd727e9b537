"""Rows of arrays in .npy and .npz files, without loading them whole."""

import zipfile
from contextlib import ExitStack, contextmanager

import numpy as np

from onlinekernels.streams.parsers import Delimited, bad_option

__all__ = ["open_npy", "open_npz", "as_points"]


@contextmanager
def open_npy(path, name, options):
    """Give a function that takes the next rows of a memory-mapped array; a column may be the target."""
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is not a .npy file with an array of numbers: {error}.") from error
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        raise ValueError(f"{name} must hold a 2-d array. Got {getattr(table, 'shape', 'several arrays')} instead.")
    columns = Delimited(",".join("0" * table.shape[1]), name, {**options, "format": "csv", "header": False, "kinds": None})
    begin = 0

    def take(count):
        nonlocal begin
        rows = table[begin : begin + count]
        begin += len(rows)
        targets = columns.targets if columns.has_several else columns.targets[0] if columns.has_target else None
        return rows[:, columns.columns], None if targets is None else rows[:, targets]

    yield take


@contextmanager
def open_npz(path, name, options):
    """Give a function that takes the next rows of the arrays X and y of an archive."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name} is not a .npz file: {error}.") from error
    with archive, ExitStack() as members:
        arrays = [member.removesuffix(".npy") for member in archive.namelist()]
        points = "X" if options["features"] is None else options["features"][0]
        target = options["target"]
        if target is None and "y" in arrays:
            target = "y"
        for parameter, key in (("features", points), ("target", target)):
            if key is not None and key not in arrays:
                raise bad_option(parameter, f"an array in {name}, one of {', '.join(map(repr, arrays))}", key)
        X = _Member(members.enter_context(archive.open(f"{points}.npy")), points, name, 2)
        y = None
        if target is not None:
            y = _Member(members.enter_context(archive.open(f"{target}.npy")), target, name, 1, 2)
        if y is not None and y.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must have as many labels as rows, {X.shape[0]}. Got {y.shape[0]} instead.")
        yield lambda count: (X.take(count), None if y is None else y.take(count))


class _Member:
    """An array in an .npz archive, compressed or not, read row by row without unpacking it whole.

    Only an array that is stored column by column has to be.
    """

    def __init__(self, file, key, name, *dimensions):
        self.file = file
        version = np.lib.format.read_magic(self.file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise ValueError(f"The array {key!r} in {name} must be of numbers or strings.")
        self.shape, is_fortran, self.dtype = header[version](self.file)
        if len(self.shape) not in dimensions or self.dtype.hasobject:
            expected = " or ".join(map(str, dimensions))
            raise ValueError(
                f"The array {key!r} in {name} must have {expected} dimension(s) and hold numbers or strings. "
                f"Got shape {self.shape} and dtype {self.dtype} instead."
            )
        self.left = self.shape[0]
        self.whole = None
        if is_fortran and len(self.shape) > 1:  # stored column by column: its rows are not together
            self.whole = self._read(self.shape[::-1]).T

    def take(self, count):
        count = min(count, self.left)
        self.left -= count
        if self.whole is not None:
            begin = self.shape[0] - self.left - count
            return self.whole[begin : begin + count]
        return self._read((count, *self.shape[1:]))

    def _read(self, shape):
        size = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        content = self.file.read(size)
        if len(content) < size:
            raise ValueError(f"{self.file.name} ends too early: expected {size} bytes. Got {len(content)} instead.")
        return np.frombuffer(content, dtype=self.dtype).reshape(shape)


def as_points(X, name):
    """Rows as float32 or float64 numbers in memory."""
    if X.dtype.kind not in "fiub":
        raise ValueError(f"The array of points in {name} must hold numbers. Got dtype {X.dtype} instead.")
    return np.array(X, dtype=X.dtype if X.dtype == np.float32 else float, order="C")
