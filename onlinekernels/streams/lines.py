"""Where lines come from: files, compressed ones too, and live input, which is waited for but not for too long."""

import codecs
import gzip
import os
import select
import stat
import sys
import threading
import zlib
from contextlib import contextmanager
from time import monotonic

__all__ = ["open_lines", "numbered", "Waiting", "can_reopen", "name_of"]

_BYTES_AT_A_TIME = 1 << 16
# What is left of the marks at the beginning of UTF-16 files when they are read as UTF-8.
_MARKS_OF_UTF16 = ("\udcff\udcfe", "\udcfe\udcff")
_MARK_OF_GZIP = "\x1f\udc8b"


def numbered(lines, name):
    """Yield (number, line), counted from 1; None, a chunk that is due, does not count."""
    number = 0
    for text in lines:
        if text is not None:
            number += 1
            if number == 1:
                _check_encoding(text, name)
        yield number, text


def _check_encoding(text, name):
    if text.startswith(_MARK_OF_GZIP):
        raise ValueError(f"{name} is compressed, without a name that ends in .gz. Unpack it: gzip -dc old.gz > new.csv")
    if text.startswith(_MARKS_OF_UTF16) or text.count("\0") > len(text) / 4:
        raise ValueError(
            f"{name} is not UTF-8 text: it looks like UTF-16, as spreadsheets write it. Save it as \"CSV UTF-8\", or "
            "convert it: iconv -f UTF-16 -t UTF-8 old.csv > new.csv"
        )


class Waiting:
    """How live input is waited for: until the oldest line of a chunk is `pause` seconds old, or until `stop`."""

    def __init__(self, pause):
        self.pause = pause
        self.is_live = False
        self.is_stopped = False
        self.is_opening = False  # a named pipe, which waits for its writer
        self._until = None  # when the oldest line of the chunk is old enough
        self._alarm = None  # both ends of a pipe on which `stop` ends a select
        self._lock = threading.RLock()  # a signal handler may come in between

    @contextmanager
    def live(self):
        """While this is open, `for_input` can be called, and `stop` ends it."""
        self._alarm = os.pipe()
        self.is_live = True
        try:
            yield
        finally:
            with self._lock:
                alarm, self._alarm = self._alarm, None
            for end in alarm:
                os.close(end)

    def begin(self):
        """A chunk has got its first line."""
        self._until = monotonic() + self.pause

    def end(self):
        """The chunk is given away."""
        self._until = None

    @property
    def is_over(self):
        return self._until is not None and monotonic() >= self._until

    def for_input(self, descriptor):
        """Whether there is input; False when the chunk is due, or after `stop`."""
        left = None if self._until is None else max(0.0, self._until - monotonic())
        ready = select.select([descriptor, self._alarm[0]], [], [], left)[0]
        return descriptor in ready and not self.is_stopped

    def stop(self):
        """Wait no longer; may be called by a signal handler or another thread."""
        self.is_stopped = True
        with self._lock:
            if self._alarm is not None:
                os.write(self._alarm[1], b".")


@contextmanager
def open_lines(source, waiting):
    """Give an iterator over lines; None among them means that a chunk is due."""
    if isinstance(source, (str, os.PathLike)) and source != "-":
        waiting.is_opening = is_pipe = _is_pipe(source)
        try:
            file = _open_text(os.fspath(source))
        finally:
            waiting.is_opening = False
        with file:
            if not is_pipe:
                yield _file_lines(file, source)
                return
            with waiting.live():
                yield _live_lines(file.fileno(), waiting)
    elif source != "-":
        yield (str(line) for line in source)
    elif _has_descriptor(sys.stdin) and os.name != "nt":  # Windows cannot wait for a pipe
        with waiting.live():
            yield _live_lines(sys.stdin.fileno(), waiting)
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


def _live_lines(descriptor, waiting):
    """Yield lines as soon as they come, and None when a chunk is due; after `stop`, those that were read."""
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape").decode
    rest = ""
    while True:
        if not waiting.for_input(descriptor):
            if waiting.is_stopped:
                return
            yield None
            continue
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
