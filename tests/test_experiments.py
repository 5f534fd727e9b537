"""The papers' experiments: each runs in its quick form, writes what it found, and judges by its own figures."""

import csv
import os
import pathlib
import sys
from dataclasses import replace

import numpy as np
import pytest
from cases import each

from onlinekernels import SILK, NuHinge, Perceptron

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
if not (DOCS / "experiments").exists():
    pytest.skip("the experiments are not here", allow_module_level=True)
sys.path.insert(0, str(DOCS))

from experiments import EXPERIMENTS, svmd_digits
from experiments.data import Data, stand_in
from experiments.experiment import Check, Experiment, Results, write
from experiments.learners import mistaken, mistakes
from experiments.norma_fig3 import alerts_of, detector
from experiments.run import main

SHARED = pathlib.Path(os.environ.get("ONLINEKERNELS_SHARED", pathlib.Path(__file__).parents[2] / "shared"))
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


# ---- The registry ---------------------------------------------------------------------------------


def test_every_promised_experiment_is_there():
    assert sorted(EXPERIMENTS) == sorted(PROMISED)


def test_pages_have_claim_and_verdict_of_each_report():
    """A claim that has changed wants a new run of docs/images/make_experiments.py, which writes both."""
    pages = " ".join(" ".join(page.read_text().split()) for page in DOCS.glob("reference/experiments-*.md"))
    for name in EXPERIMENTS:
        said = (DOCS / "images" / "experiments" / f"{name}.txt").read_text()
        assert f"\nclaim: {EXPERIMENTS[name].claim}\n" in said, name
        verdict = said.partition("\nverdict: ")[2].strip()
        for text in (f"**Claim.** {EXPERIMENTS[name].claim}", f"**Verdict.** {verdict} [All figures](../images/experiments/{name}.txt)"):
            assert text in pages, name
    for name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        assert experiment.name == name
        assert experiment.claim.endswith(".")
        assert experiment.paper[0] in "KIVH"


# ---- Each of them, quickly ------------------------------------------------------------------------


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


# ---- The command ----------------------------------------------------------------------------------


def test_the_command_prints_the_claim_the_table_and_the_verdict(tmp_path, capsys):
    assert main(["svmd-fig6", "--quick", "--out", str(tmp_path / "new" / "folder")]) == 0
    text = capsys.readouterr().out
    assert EXPERIMENTS["svmd-fig6"].claim in text
    assert "19%" not in text.replace(EXPERIMENTS["svmd-fig6"].claim, ""), "the paper's figure, which is of a longer run"
    assert "data: usps from a stand-in" in text
    assert "verdict: made-up data: no verdict" in text and "The claim" not in text.partition("verdict:")[2]
    assert "  -   the schedule hardly learns" in text and "  yes " not in text and "  NO " not in text
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())[:2] == [
        "svmd-fig6-curves.csv",
        "svmd-fig6.csv",
    ]


def test_missing_data_is_said_and_nothing_is_written(tmp_path, capsys):
    assert main(["svmd-fig8", "--out", str(tmp_path / "out"), "--data", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "'wipo_alpha_D_lsa100' is not there in" in captured.err
    assert "--quick" in captured.err
    assert not (tmp_path / "out").exists()


@each(
    "arguments, message",
    [
        ([], "which one?"),
        (["norma-fig9"], "there is no experiment 'norma-fig9'"),
        (["--all", "norma-fig2"], "give no names with it"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


# ---- Verdicts and tables --------------------------------------------------------------------------


@each(
    "holds, words",
    [
        ([True, True], "The claim holds."),
        ([False], "The claim does not hold. Not so: claim 0 (0)."),
        ([True, False, True], "The claim holds in part: 2 of 3. Not so: claim 1 (1)."),
    ],
)
def test_verdicts(holds, words):
    results = Results(checks=[Check(f"claim {i}", str(i), value) for i, value in enumerate(holds)])
    assert results.verdict == words


def test_only_made_up_data_takes_the_verdict_away(tmp_path):
    """A quick run on real data has one, and so has one that needs no data."""
    np.savez(tmp_path / "usps.npz", **stand_in("usps"))
    results = Results(table=[{"a": "b"}], checks=[Check("first", "1 of 2", True)])
    data = Data(tmp_path, quick=True)
    data.load("usps"), data.load("mnist")
    for needs, verdict in (((), "The claim holds. (A quick run"), (("usps",), "The claim holds. (A quick run"),
                           (("usps", "mnist"), "made-up data: no verdict")):
        said = Experiment("x", "K", "title", "Claim.", run=None, needs=needs).report(results, data)
        assert f"\nverdict: {verdict}" in said


# ---- Data -----------------------------------------------------------------------------------------


# ---- The pieces -----------------------------------------------------------------------------------


def test_the_scheduled_control_moves_the_logarithm_of_its_margin():
    """By -eta eps (1{error} - nu), V (55)-(56); the steps are those of (59)."""
    model = svmd_digits.scheduled(NuHinge(0.2, 0.5), delay=10)
    scores, steps = model.progressive(np.zeros((1, 3)), [1], classes=[-1, 1], return_steps=True)
    assert steps[0] == np.sqrt(10 / 11) and (model.kernel.width, model.regularization) == (svmd_digits.KERNEL_WIDTH, 1.0)
    assert np.log(model.margin_ / 0.5) == pytest.approx(-np.sqrt(10 / 11) * 0.5 * (1 - 0.2))


def test_alerts_are_the_examples_below_the_margin_of_their_time():
    X = np.random.default_rng(3).normal(size=(40, 2))
    model, other = detector(1.0, 0.3), detector(1.0, 0.3)
    expected = [True]  # f is 0 and the first margin 1
    other.learn_one(X[0])
    for x in X[1:]:
        expected.append(other.predict([x])[0] == -1)
        other.learn_one(x)
    found = alerts_of(model, X)
    assert found.tolist() == expected
    assert 5 < found.sum() < 35


def test_mistakes_are_those_of_predict():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b", "c"])[rng.integers(3, size=60)]
    for model, labels in ((Perceptron(), np.where(y == "a", 0, 1)), (SILK("multiclasshinge"), y)):
        wrong = mistakes(model, X, labels, classes=np.unique(labels))
        again = type(model)(**model.get_params(deep=False)).partial_fit(X[:40], labels[:40], classes=np.unique(labels))
        assert wrong[40] == (again.predict(X[40:41])[0] != labels[40])


def test_a_tie_is_a_mistake():
    """K (25) is y f <= 0: whatever its label, the first example is one."""
    for label in (-1, 1):
        assert mistakes(Perceptron("linear"), [[label], [label]], [label, label], classes=[-1, 1]).tolist() == [True, False]
    for label in range(3):
        model = SILK("multiclasshinge", "linear")
        assert mistakes(model, [[1.0], [1.0]], [label, label], classes=range(3)).tolist() == [True, False]
    scores = np.array([[0.0, 2.0, 1.0], [2.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
    assert mistaken(list("abc"), scores, list("bbc")).tolist() == [False, True, False]


# ---- Figures of the papers, on their data ---------------------------------------------------------


@pytest.mark.slow
@each("name, seeds, not_so", [
    ("svmd-fig3", 1, ["SVMD is slower at first", "memory 0 is the fastest at first"]),
    ("svmd-fig4", 1, []), ("svmd-fig6", 2, []), ("svmd-fig8", 1, []), ("norma-fig3", 1, []),
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
