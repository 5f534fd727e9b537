"""Progress bars, if tqdm is there."""
import sys
from contextlib import contextmanager


@contextmanager
def progress_bar(progress, total, unit):
    """Give a function that hears how much more is done: it moves a bar, or does nothing."""
    wanted = sys.stderr.isatty() if progress is None else progress
    bar = _tqdm(total, unit, required=progress) if wanted else None
    if bar is None:
        yield lambda done: None
        return
    with bar:
        yield bar.update


def _tqdm(total, unit, required):
    try:
        from tqdm import tqdm
    except ImportError as error:
        if not required:
            return None
        message = "progress=True needs tqdm, which is not installed: pip install tqdm"
        raise ImportError(message) from error
    return tqdm(total=total, unit=unit, unit_scale="examples" in unit, leave=False)
