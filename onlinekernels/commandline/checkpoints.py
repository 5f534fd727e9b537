"""Model files that remember their place in the stream.

The place is a line of JSON in the comment of the .npz archive. So it is written in one breath with the
model, and `onlinekernels.load` reads such a file like any other.
"""

import glob
import hashlib
import json
import os
import zipfile

__all__ = ["save", "stream_of", "names_in", "brief", "remove_leftovers", "with_suffix", "found"]

FORMAT = "onlinekernels stream"
VERSION = 2
_LEFTOVER = ".checkpoint.npz"
# A comment of an archive holds 65535 bytes.
_LONGEST = 60_000


def with_suffix(path):
    """The name that a model file gets."""
    return path if path.endswith(".npz") else path + ".npz"


def found(path):
    """A model file's name, which may be given without its suffix."""
    return path if os.path.exists(path) else with_suffix(path)


def save(model, path, stream):
    """Write a model and its place in the stream so that a kill at any moment leaves the old file or the new one."""
    temporary = path + _LEFTOVER
    try:
        model.save(temporary)
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = _encoded(stream)
        _flush_to_disk(temporary, os.O_RDWR)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    if os.name != "nt":  # Windows cannot open folders
        _flush_to_disk(os.path.dirname(path) or ".", os.O_RDONLY)


def remove_leftovers(path):
    """Remove what a killed process may have left beside a model file."""
    for leftover in glob.glob(glob.escape(path + _LEFTOVER) + "*"):
        os.unlink(leftover)


def stream_of(path):
    """The place in the stream that a model file remembers, or None."""
    try:
        with zipfile.ZipFile(path) as archive:
            stream = json.loads(archive.comment)
    except (zipfile.BadZipFile, ValueError):
        return None
    if not isinstance(stream, dict) or (stream.get("format"), stream.get("version")) != (FORMAT, VERSION):
        return None
    return stream if {"place", "totals", "options"} <= set(stream) else None


def names_in(path, model):
    """Names of the columns that the model in a file was learned from, or None."""
    stream = stream_of(found(path))
    if stream is not None and stream["place"]["features"] is not None:
        return stream["place"]["features"]
    return list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None


def brief(option):
    """An option as it is compared: itself, or a digest of a very long one."""
    text = json.dumps(option)
    return option if len(text) <= 1000 else "sha256 " + hashlib.sha256(text.encode()).hexdigest()


def _encoded(stream):
    content = json.dumps({"format": FORMAT, "version": VERSION, **stream}).encode()
    if len(content) > _LONGEST:  # very many features: do without their names
        place = {**stream["place"], "features": None}
        content = json.dumps({"format": FORMAT, "version": VERSION, **stream, "place": place}).encode()
    return content


def _flush_to_disk(path, mode):
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
