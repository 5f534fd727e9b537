"""Pages whose examples need a library that is not there are skipped; `run` on a page is the command line."""
import contextlib
import io
import shlex
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "examples"))  # video.py
NEEDS = {
    "howto/river.md": ("river", "pandas"),
    "howto/scikit-learn.md": ("sklearn", "pandas"),
    "howto/sparse.md": ("scipy", "sklearn"),
    "howto/data.md": ("pandas",),
    "howto/streams.md": ("pandas",),
    "howto/parallel.md": ("dask", "distributed"),
}


def pytest_collection_modifyitems(items):
    missing = {HERE / page: [name for name in names if find_spec(name) is None] for page, names in NEEDS.items()}
    for item in items:
        if missing.get(item.path):
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing[item.path])}"))


def run(command):
    """What `onlinekernels command` prints, folded to the width of a page."""
    from onlinekernels.__main__ import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = main(shlex.split(command))
        except SystemExit as end:
            status = end.code
    for line in said.getvalue().splitlines():
        print(line[4:] if line.startswith("    ") else textwrap.fill(line, 88))
    if status:
        print("exit status", status)


@pytest.fixture(autouse=True)
def shell(doctest_namespace):
    doctest_namespace["run"] = run
