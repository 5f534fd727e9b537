"""Model files that remember their stream: what was read and how far, the figures so far, the options.

These are notes in the model file, so they are written in one breath with the model, and `onlinekernels.load` reads
such a file like any other.
"""

import hashlib
import json
import os

from onlinekernels.files import modelfile

__all__ = ["save", "stream_of", "names_in", "brief", "with_suffix", "found"]

FORMAT = "onlinekernels stream"
VERSION = 3
_PARTS = {"options", "totals", "counts", "columns", "files"}


def with_suffix(path):
    """The name that a model file gets."""
    return path if path.endswith(".npz") else path + ".npz"


def found(path):
    """A model file's name, which may be given without its suffix."""
    return path if os.path.exists(path) else with_suffix(path)


def save(model, path, stream):
    """Write a model and its stream so that a kill at any moment leaves the old file or the new one."""
    modelfile.save(model, path, notes={"format": FORMAT, "version": VERSION, **stream})


def stream_of(model):
    """The stream that a loaded model's file remembers, or None."""
    stream = modelfile.notes_of(model)
    if not isinstance(stream, dict) or (stream.get("format"), stream.get("version")) != (FORMAT, VERSION):
        return None
    return stream if _PARTS <= set(stream) else None


def names_in(model):
    """Names of the columns that a loaded model was learned from, or None."""
    stream = stream_of(model)
    if stream is not None and stream["columns"] is not None:
        return stream["columns"]
    return list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None


def brief(option):
    """An option as it is compared: itself, or a digest of a very long one."""
    text = json.dumps(option)
    return option if len(text) <= 1000 else "sha256 " + hashlib.sha256(text.encode()).hexdigest()
