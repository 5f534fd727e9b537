"""What the tests of the command line share: a table, and how to run commands."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinekernels
from onlinekernels import load
from onlinekernels.__main__ import main as command_line
from onlinekernels.streams import drifting_gaussians

X, Y = drifting_gaussians(3000, seed=4)
WORDS = np.where(Y > 0, "yes", "no")
CORNERS = np.array(["NE", "NW", "SE", "SW"])[2 * (X[:, 1] < 0) + (X[:, 0] < 0)]
WAVE = np.sin(X[:, 0])
LABELS = {"sign": Y, "word": WORDS, "corner": CORNERS, "wave": WAVE}
needs_posix = pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")


def write_table(path, rows=slice(None)):
    """A table with two features and one column for each kind of label."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y", *LABELS])
        columns = [*X.T, *LABELS.values()]
        writer.writerows(zip(*(column[rows].tolist() for column in columns), strict=True))
    return path


def main(arguments):
    """Run the command line; files may be replaced, unless it goes on with them."""
    replaces = ["--force"] if "--save" in arguments and "--resume" not in arguments else []
    return command_line([*map(str, arguments), *replaces])


SINGLE = ["--algorithm", "silk"]  # whatever the target is


def learn(data, target, *options):
    """Learn two features of a table, with one learner unless the options say which."""
    single = [] if {"--algorithm", "--effort"} & set(options) else SINGLE
    return main(["learn", data, "--features", "x,y", "--target", target, *single, *options])


def reports(text):
    """Rows of the report as lists of words."""
    rows = [line.split() for line in text.splitlines()]
    return [row for row in rows if row and row[0].isdigit()]


def learned_alike(path, model):
    """Whether a file's model has learned what another one has."""
    loaded = load(path)
    return loaded.t_ == model.t_ and (loaded.dual_coef_ == model.dual_coef_).all()


def refused(arguments, capsys):
    """What is said of arguments that are refused with status 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        command_line([*map(str, arguments)])
    assert end.value.code == 2
    return capsys.readouterr().err


def failed(arguments, capsys):
    """What is said of a run that ends with status 1."""
    capsys.readouterr()
    assert main(arguments) == 1
    return capsys.readouterr().err


def start(*arguments, **options):
    """A process of its own."""
    root = str(Path(onlinekernels.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "onlinekernels", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, **options)
