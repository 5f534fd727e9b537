"""Which part has a key: the same answer in every process, or what a worker saved could not be found again."""
from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["part_of"]

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: neighbours, and multiples of anything, go to different parts
PLAIN = 2**61 - 1  # whole numbers below it are their own hash


def part_of(keys: Any, parts: int) -> Any:
    """The part, from 0 to parts - 1, that each of some keys belongs to.

    Keys that are equal have one part. For numbers, strings, bytes and tuples of them it is the same in every process
    and on every machine; for other objects it is as stable as their ``hash``.

    Parameters
    ----------
    keys : array or list of n hashables
    parts : int

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from onlinekernels.parallel import part_of
    >>> part_of(["hall", "cellar", 17], 4)
    array([0, 0, 1])
    """
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        if not keys.size or (-PLAIN < keys.min() and keys.max() < PLAIN):
            hashes = keys.astype(np.int64)
            hashes[hashes == -1] = -2  # as Python does
            return _spread(hashes.view(np.uint64), parts)
        keys = keys.tolist()
    hashes = np.fromiter((_stable_hash(key) & MASK for key in keys), dtype=np.uint64, count=len(keys))
    return _spread(hashes, parts)


def _spread(hashes, parts):
    return (((hashes * np.uint64(GOLDEN)) >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def _stable_hash(key):
    """Python's hash where that is the same everywhere: it is not for strings."""
    if isinstance(key, str):
        return zlib.crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key)
    if isinstance(key, tuple):
        mixed = len(key)
        for item in key:
            mixed = (1_000_003 * mixed ^ _stable_hash(item)) & MASK
        return mixed
    return 0 if key is None else hash(key)
