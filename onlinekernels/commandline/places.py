"""Which files a model has read, and how far.

A file is known again by its path, or by its beginning if it was moved or copied. Whether it still is what was read is
for the reader to find out, on its way to the place where it stopped.
"""

import hashlib
import os

from onlinekernels.streams.lines import can_reopen

__all__ = ["Places"]


class Places:
    """A record for each file: beginning, name, path (hashed), size, and the place that was reached.

    Parameters
    ----------
    records : list of dict
        What `records` was when the model was saved.
    """

    def __init__(self, records=()):
        self.records = [dict(record) for record in records]

    def found(self, source, opened, sources=None):
        """The record of a source, or None if it is new or cannot be read twice.

        With `sources`, all that are to be read, it is also known by its beginning, unless another one of them is the
        file that began so: `opened` gives a reader that looks.
        """
        if not can_reopen(source):
            return None
        path = _path(source)
        for record in self.records:
            if record["path"] == path:
                return record
        for record in [] if sources is None else self._without(map(_path, filter(can_reopen, sources))):
            if opened().begins(*record["beginning"]):
                record["path"] = path
                return record
        return None

    def _without(self, paths):
        paths = set(paths)
        return [record for record in self.records if record["path"] not in paths]

    def forget(self, source):
        """Forget that a source was read."""
        if can_reopen(source):
            self.records = self._without([_path(source)])

    @staticmethod
    def new(source, reader):
        """A record for a source, to be put into `records` when something was learned from it."""
        if not can_reopen(source):
            return None
        return {"unit": reader.unit}

    def reach(self, source, record, epoch, reader):
        """Note how far a source, if it has a record, was learned."""
        if record is None:
            return
        if not any(known is record for known in self.records):
            self.records.append(record)
        record.update(name=os.path.basename(source), path=_path(source), bytes=os.path.getsize(source))
        record.update(epoch=epoch, position=reader.position, beginning=list(reader.beginning))


def _path(source):
    """A model file is passed around; where its data were is nobody's business."""
    return hashlib.blake2b(os.path.abspath(source).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
