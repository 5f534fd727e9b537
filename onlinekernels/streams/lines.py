"""Where lines come from: files, compressed ones too, and pipes, which may pause."""

import codecs
import gzip
import os
import select
import stat
import sys
import zlib
from contextlib import contextmanager

__all__ = ["open_lines", "numbered", "can_reopen", "name_of"]

_BYTES_AT_A_TIME = 1 << 16


def numbered(lines):
    """Yield (number, line), counted from 1; a pause, None, does not count."""
    number = 0
    for text in lines:
        number += text is not None
        yield number, text


@contextmanager
def open_lines(source, pause):
    """Give an iterator over lines; None among them means that the input pauses."""
    if isinstance(source, (str, os.PathLike)) and source != "-":
        with _open_text(os.fspath(source)) as file:
            yield _live_lines(file.fileno(), pause) if _is_pipe(source) else _file_lines(file, source)
    elif source != "-":
        yield (str(line) for line in source)
    elif _has_descriptor(sys.stdin) and os.name != "nt":  # Windows cannot wait for a pipe
        yield _live_lines(sys.stdin.fileno(), pause)
    else:
        yield iter(sys.stdin.readline, "")


def _open_text(path):
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


def _file_lines(file, path):
    try:
        yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{os.fspath(path)} is not a complete gzip file: {error}.") from error


def _live_lines(descriptor, pause):
    """Yield lines as soon as they come, and None when none has come for `pause` seconds."""
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape").decode
    rest, can_pause = "", False
    while True:
        if can_pause and not select.select([descriptor], [], [], pause)[0]:
            yield None
        can_pause = True
        received = os.read(descriptor, _BYTES_AT_A_TIME)
        *lines, rest = (rest + decode(received, final=not received)).split("\n")
        yield from lines
        if not received:
            if rest:
                yield rest
            return


def _is_pipe(path):
    return stat.S_ISFIFO(os.stat(path).st_mode) and os.name != "nt" and not os.fspath(path).endswith(".gz")


def _has_descriptor(file):
    try:
        file.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


def can_reopen(source):
    """Whether a source can be read a second time."""
    if not isinstance(source, (str, os.PathLike)) or source == "-":
        return False
    return not os.path.exists(source) or stat.S_ISREG(os.stat(source).st_mode)


def name_of(source):
    if source == "-":
        return "standard input"
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "the input"))
