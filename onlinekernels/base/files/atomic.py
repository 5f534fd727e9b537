"""Files that are there as a whole or not at all, whenever a process is killed."""
import os
import stat
import threading

__all__ = ["write"]


def write(path, write_to):
    """Let `write_to(file)` write beside the target, and rename: no reader ever sees half a file, nor does the disk.

    A symbolic link stays one, and a file that is replaced hands down its mode.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(os.path.join(folder, "a"), lambda file: file.write(b"whole"))
    ...     os.listdir(folder)
    ['a']
    """
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        with open(temporary, "wb") as file:
            if os.path.exists(path):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
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


def _flush_to_disk(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
