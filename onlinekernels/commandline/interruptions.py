"""Ctrl-C and polite kills."""

import signal
import threading

__all__ = ["Interruption"]


class Interruption:
    """Ctrl-C and a polite kill end a command early, in good order: what was read is dealt with, and no more is read.

    The first signal only stops the reader; a second one ends at once.

    Attributes
    ----------
    signal : int or None
        The signal that came.
    reader : Reader or None
        What a signal stops.
    """

    def __init__(self):
        self.signal = None
        self.reader = None

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def status(self):
        """The exit status after a signal, as shells have it."""
        return 128 + (self.signal or signal.SIGINT)

    def stops(self, reader):
        """The reader, which a signal stops from now on; also one that came before."""
        self.reader = reader
        if self.signal is not None:
            reader.stop()
        return reader

    def _note(self, number, _):
        is_first, self.signal = self.signal is None, number
        if not is_first or self.reader is not None and self.reader.is_opening:
            raise KeyboardInterrupt
        if self.reader is not None:
            self.reader.stop()
