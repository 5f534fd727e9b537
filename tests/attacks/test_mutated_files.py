"""Model files with changed content and right checksums: some hundred every day, and as long as you like.

ONLINEKERNELS_MUTATIONS sets for how many minutes; see `mutations.py`, which is a script as well.
"""
import os
import pathlib
import subprocess
import sys

import pytest


MINUTES = os.environ.get("ONLINEKERNELS_MUTATIONS", "0")
CODE = "import sys; sys.path.append({!r}); import mutations; sys.exit(mutations.main({}, {}, {!r}, {}))"


def storm(minutes, folder, least):
    """A storm in a process of its own: a crash there is a failure here."""
    code = CODE.format(str(pathlib.Path(__file__).parents[1]), 1, minutes, str(folder), least)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, f"{result.returncode}\n{result.stdout[-5000:]}\n{result.stderr[-3000:]}"


def test_a_changed_file_is_refused_or_gives_a_model_that_works(tmp_path):
    storm(MINUTES, tmp_path, 400)


@pytest.mark.slow
def test_arrays_of_zeros_and_of_enormous_numbers_are_refused_or_work(tmp_path):
    storm(0, tmp_path, 0)
