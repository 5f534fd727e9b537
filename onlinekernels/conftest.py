"""For pytest: a doctest that fails names its line in the file, where shared descriptions take no lines."""
from importlib.util import find_spec

from onlinekernels.base.docstrings import LINES_ADDED

collect_ignore = [] if find_spec("river") else ["river.py"]  # its examples need the library


def pytest_collection_modifyitems(items):
    for test in (item.dtest for item in items if getattr(item, "dtest", None) is not None):
        if test.lineno is not None:
            test.lineno -= LINES_ADDED.get(test.name, 0)
