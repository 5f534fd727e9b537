"""Pages whose examples need a library that is not there are skipped."""
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NEEDS = {
    "howto/capymoa.md": ("capymoa",),
    "howto/river.md": ("river", "pandas"),
    "howto/scikit-learn.md": ("sklearn", "pandas"),
    "howto/sparse.md": ("scipy", "sklearn"),
    "howto/parallel.md": ("dask", "distributed", "pandas"),
}


def pytest_collection_modifyitems(items):
    missing = {HERE / page: [name for name in names if find_spec(name) is None] for page, names in NEEDS.items()}
    for item in items:
        if missing.get(item.path):
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing[item.path])}"))
