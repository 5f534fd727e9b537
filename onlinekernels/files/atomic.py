"""Files that are there as a whole or not at all, whenever a process is killed."""
import glob
import os
import threading

__all__ = ["remove_leftovers", "write"]


def write(path, write_to):
    """Let `write_to(file)` write beside the target, and rename: no reader ever sees half a file, nor does the disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(os.path.join(folder, "a"), lambda file: file.write(b"whole"))
    ...     os.listdir(folder)
    ['a']
    """
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        with open(temporary, "wb") as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    if os.name != "nt":  # Windows cannot open folders
        _flush_to_disk(os.path.dirname(path) or ".")


def remove_leftovers(path):
    """Remove what a killed process may have left beside a file."""
    for leftover in glob.glob(f"{glob.escape(path)}.[0-9]*.[0-9]*.tmp"):
        os.unlink(leftover)


def _flush_to_disk(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
