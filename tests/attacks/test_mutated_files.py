"""Model files with changed content and right checksums: some hundred every day, and as long as you like.

ONLINEKERNELS_MUTATIONS sets for how many minutes; see `mutations.py`, which is a script as well.
"""
import os
import pathlib
import subprocess
import sys

import mutations
import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels.base import files

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


@each("fault", [AssertionError, IndexError, TypeError, MemoryError])
def test_a_fault_is_found(tmp_path, monkeypatch, fault):
    """A loader that lets a broken model through, and one that raises something else, are both caught."""
    def load(path, **given):
        model = files.load(path, **given)
        monkeypatch.setattr(type(model), "predict", broken)
        return model

    def broken(model, examples):
        raise fault

    storm = mutations.Storm(2, tmp_path)
    monkeypatch.setattr(ok, "load", load)
    while not storm.faults and storm.count < 200:
        storm.step()
    assert storm.faults and fault.__name__ in storm.faults[0]
    header, arrays = mutations.read(tmp_path / "fault0.npz")  # it is kept
    assert header["format"] and all(isinstance(array, np.ndarray) for array in arrays.values())
