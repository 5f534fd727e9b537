"""A hash of what was read, by which a file is known again."""

import hashlib

__all__ = ["BEGINNING", "Digest"]

BEGINNING = 100  # rows by which a file is known again


class Digest:
    """A running hash of lines, or of rows of arrays; it does not depend on how they were cut into chunks.

    Parameters
    ----------
    header : list of str
        Lines that are no rows.

    >>> one, other = Digest(["a,b"]), Digest(["a,b"])
    >>> one.add_lines(["1,2", "3,4"])
    >>> other.add_lines(["1,2"]); other.add_lines(["3,4"])
    >>> one.value == other.value, one.beginning == other.beginning == (2, one.value)
    (True, True)
    """

    def __init__(self, header=()):
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in "Xy"]
        self._first = None  # what they were after BEGINNING rows
        self.count = 0
        self._update(_as_bytes(header), None)

    def _update(self, *parts):
        for hash, part in zip(self._hashes, parts, strict=True):
            if part is not None:
                hash.update(part)

    def add_lines(self, texts):
        """Take in lines, without their ends."""
        for part in self._parts(len(texts)):
            self._update(_as_bytes(texts[part]), None)

    def add_rows(self, X, y):
        """Take in rows of arrays; y may be None."""
        for part in self._parts(len(X)):
            self._update(X[part].tobytes(), None if y is None else y[part].tobytes())

    def _parts(self, n):
        """Slices of n rows: those that belong to the beginning, and the others."""
        left = min(n, max(0, BEGINNING - self.count))
        for part in (slice(0, left), slice(left, n)):
            if part.stop > part.start:
                yield part
                self.count += part.stop - part.start
                if self.count == BEGINNING:
                    self._first = self.value

    @property
    def value(self):
        return "".join(hash.hexdigest() for hash in self._hashes)

    @property
    def beginning(self):
        """(number, digest) of the first rows, at most BEGINNING."""
        return min(self.count, BEGINNING), self.value if self._first is None else self._first


def _as_bytes(texts):
    return "\n".join([*texts, ""]).encode("utf-8", "surrogateescape") if texts else b""
