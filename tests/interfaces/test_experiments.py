"""The papers' experiments: each runs in its quick form, writes what it found, and judges by its own figures."""

import csv
import os
import pathlib
import sys
from dataclasses import replace

import numpy as np
import pytest
from cases import each


DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "experiments").exists():
    pytest.skip("the experiments are not here", allow_module_level=True)
sys.path.insert(0, str(DOCS))

from experiments import EXPERIMENTS
from experiments.data import Data
from experiments.experiment import write

SHARED = pathlib.Path(os.environ.get("ONLINEKERNELS_SHARED", pathlib.Path(__file__).parents[3] / "shared"))
PROMISED = (
    "norma-fig2 norma-fig3 norma-bounds ilk-fig1 ilk-fig2 ilk-fig3 ilk-fig4 svmd-fig3 svmd-fig4 svmd-fig6 svmd-fig7 "
    "svmd-fig8 herbster-speed herbster-additive"
).split()
LONG = ["ilk-fig4", "svmd-fig7", "svmd-fig8"]  # more than a second even in their quick form


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def quick():
    """Runs an experiment in its quick form on stand-ins, once."""
    data, done = Data(quick=True), {}

    def run(name):
        if name not in done:
            done[name] = EXPERIMENTS[name].results(data)
        return done[name]

    return run


def test_every_promised_experiment_is_there():
    assert sorted(EXPERIMENTS) == sorted(PROMISED)


def test_pages_have_claim_and_verdict_of_each_report():
    """A claim that has changed wants a new run of docs/images/make_experiments.py, which writes both."""
    pages = " ".join(" ".join(page.read_text().split()) for page in DOCS.glob("reference/experiments-*.md"))
    for name in EXPERIMENTS:
        said = (DOCS / "images" / "experiments" / f"{name}.txt").read_text()
        assert f"\nclaim: {EXPERIMENTS[name].claim}\n" in said, name
        verdict = said.partition("\nverdict: ")[2].strip()
        for text in (f"**Claim.** {EXPERIMENTS[name].claim}",
                     f"**Verdict.** {verdict} [All figures](../images/experiments/{name}.txt)"):
            assert text in pages, name
    for name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        assert experiment.name == name
        assert experiment.claim.endswith(".")
        assert experiment.paper[0] in "KIVH"


@pytest.mark.parametrize("names", [
    [name for name in EXPERIMENTS if name not in LONG], pytest.param(LONG, marks=pytest.mark.slow)
], ids=["quick", "longer"])
def test_experiments(names, quick, tmp_path):
    @each("name", names)
    def is_sound(name):
        results = quick(name)
        what_is_written_is_what_was_found(name, results, tmp_path)
        a_learner_without_tuning_is_in_the_table(results)
        checks_have_figures_and_decide(results)

    is_sound()


def what_is_written_is_what_was_found(name, results, folder):
    write(name, results, folder)
    rows = rows_of(folder / f"{name}.csv")
    assert rows == [{key: "" if value is None else str(value) for key, value in row.items()} for row in results.table]
    points = rows_of(folder / f"{name}-curves.csv")
    drawn = {(panel.title, curve) for panel in results.panels for curve, _, _ in panel.points()}
    assert {(point["panel"], point["curve"]) for point in points} == drawn
    assert drawn and all(np.isfinite(float(point["x"])) for point in points)


def a_learner_without_tuning_is_in_the_table(results):
    cells = [str(cell) for row in results.table for pair in row.items() for cell in pair]
    assert any("untuned" in cell for cell in cells)
    assert len({tuple(row) for row in results.table}) == 1, "rows differ in their columns"


def checks_have_figures_and_decide(results):
    assert results.checks
    for check in results.checks:
        assert any(letter.isdigit() for letter in check.found), check
        assert check.holds in (True, False)
        assert "nan" not in check.found


@pytest.mark.slow
@each("name, seeds, not_so", [
    ("svmd-fig3", 1, ["both tuned", "SVMD is slower at first", "memory 0 is the fastest at first"]),
    ("svmd-fig4", 1, ["both tuned", "the schedule is best with a first step"]),
    ("svmd-fig6", 2, ["the schedule errs in almost 90%", "so does a schedule that is tuned"]),
    ("svmd-fig8", 1, []), ("norma-fig3", 1, ["with K's lambda = 1"]),
])  # fmt: skip
def test_what_holds_on_real_data(name, seeds, not_so):
    """Claim by claim; those that fail are as well known as those that hold."""
    for needed in EXPERIMENTS[name].needs:
        if not (SHARED / "data" / f"{needed}.npz").exists():
            pytest.skip(f"{needed} is not there")
    results = replace(EXPERIMENTS[name], seeds=seeds).results(Data(SHARED / "data"))
    failed = [check.claim for check in results.checks if not check.holds and not check.ours]
    assert len(failed) == len(not_so)
    assert all(claim.startswith(known) for claim, known in zip(failed, not_so, strict=True))
