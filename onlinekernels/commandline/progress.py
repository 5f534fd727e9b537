"""A bar of tqdm, which is optional, on a terminal."""

import sys
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(rows, wanted=True):
    """Give a function to call with the number of rows done: it moves a bar, or does nothing."""
    bar = _tqdm(rows) if wanted and sys.stderr.isatty() else None
    if bar is None:
        yield lambda rows_done: None
        return
    with bar:
        yield bar.update


def _tqdm(rows):
    """Return a bar of tqdm, or None."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=rows, unit=" examples", unit_scale=True, leave=False)
