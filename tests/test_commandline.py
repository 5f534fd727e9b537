"""The commands learn, predict and show: what they print and write, what they refuse, and in which words."""

import csv
import io
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import each
from command_line import CORNERS, SINGLE, WAVE, WORDS, X, Y, learn, learned_alike, refused, reports, write_table

import onlinekernels
from onlinekernels import KRLS, NORMA, SILK, SVMD, Gaussian, Hinge, OnlineKernelClassifier, RunningEncoder, evaluate, load
from onlinekernels.__main__ import main
from onlinekernels.cli.options import component, names_of

RETURNS = Path(__file__).parent.parent / "docs" / "examples" / "returns.csv"


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "data.csv")


# ---- learn ---------------------------------------------------------------------------------------


def test_learn_does_what_the_library_does(data, tmp_path, capsys):
    options = "--algorithm norma --kernel gaussian:0.4 --step 1 --regularization 0.07 --budget 100".split()
    assert learn(data, "sign", *options, "--save", tmp_path / "m.npz", "--report", 1000, "--chunk", 500) == 0
    expected = NORMA(Hinge(), Gaussian(0.4), step=1, regularization=0.07, budget=100)
    scores = np.concatenate([expected.progressive(X[i : i + 500], Y[i : i + 500]) for i in range(0, 3000, 500)])
    rows = reports(capsys.readouterr().out)
    assert [row[0] for row in rows] == ["1000", "2000", "3000"]
    wrong = Y * scores <= 0
    assert rows[-1][1] == f"{wrong.mean():.2%}" and rows[-1][2] == f"{wrong[2000:].mean():.2%}"
    assert rows[-1][6] == "100" and float(rows[-1][7]) > 0
    assert (load(tmp_path / "m.npz").decision_function(X) == expected.decision_function(X)).all()


def test_classes_numbers_novelty(data, tmp_path, capsys):
    assert learn(data, "word") == 0
    first = capsys.readouterr().out
    assert learn(data, "word", "--chunk", 1, "--limit", 50) == 1
    assert "--classes A,B" in capsys.readouterr().err  # the first chunk shows one class alone
    assert learn(data, "word", "--classes", "no,yes") == 0
    assert reports(capsys.readouterr().out)[-1][:4] == reports(first)[-1][:4]
    options = ("--loss", "multiclasshinge", "--kernel", "gaussian:1.0", "--save", tmp_path / "m")
    mistakes = set()
    for chunk in (1024, 1):  # the mistakes do not depend on chunks
        assert learn(data, "corner", *options, "--chunk", chunk) == 0
        mistakes.add(reports(capsys.readouterr().out)[-1][1])
    assert len(mistakes) == 1 and float(mistakes.pop().rstrip("%")) < 10
    assert load(tmp_path / "m.npz").classes_.tolist() == list(dict.fromkeys(CORNERS.tolist()))
    assert learn(data, "corner", *options, "--classes", "NE,NW,SE,SW") == 0
    assert load(tmp_path / "m.npz").classes_.tolist() == ["NE", "NW", "SE", "SW"]
    capsys.readouterr()
    assert learn(data, "wave", "--loss", "insensitive:0.01", "--kernel", "gaussian:1") == 0
    text = capsys.readouterr().out
    assert "mean absolute error" in text and "squared error" in text and float(reports(text)[-1][1]) < 0.2
    arguments = ["learn", str(data), "--features", "x,y", "--loss", "nunovelty:0.05", "--algorithm", "norma", "--chunk", "50"]
    assert main([*arguments, "--kernel", "gaussian:1"]) == 0
    assert 0 < float(reports(capsys.readouterr().out)[-1][1].rstrip("%")) < 15


def test_going_on_with_a_model(data, tmp_path, capsys):
    assert learn(data, "sign", "--save", tmp_path / "m", "--limit", 500) == 0
    model = SILK().partial_fit(X[:500], Y[:500])
    assert learned_alike(tmp_path / "m.npz", model)
    options = ["--step", 0.25, "--regularization", 0.1, "--set", "penalty=0.5", "--chunk", 3000]
    assert learn(data, "sign", "--model", tmp_path / "m.npz", *options, "--save", tmp_path / "n") == 0
    model.set_params(step=0.25, regularization=0.1, penalty=0.5).partial_fit(X, Y)
    assert learned_alike(tmp_path / "n.npz", model) and load(tmp_path / "m.npz").t_ == 500
    arguments = ["learn", data, "--target", "sign", "--model", tmp_path / "m.npz", "--kernel", "linear"]
    assert "--kernel cannot be given with --model" in refused(arguments, capsys)


@each(
    "name, options",
    [
        ("NORMA", ["--offset", "--set", "average=True"]),
        ("SILK", ["--scale", "--set", "exact=True"]),
        ("Perceptron", ["--kernel", "polynomial:2", "--set", "kernel__bias=0.5"]),
        ("PassiveAggressive", ["--set", "penalty=0.5", "--set", "variant=PA-II"]),
        ("SVMD", ["--step", "0.2", "--set", "memory=0.9"]),
        ("Projection", ["--loss", "hinge:0.5", "--set", "radius=3"]),
        ("ILK", ["--budget", "window:50", "--loss", "logistic"]),
        ("KRLS", ["--loss", "multiclasssquared", "--set", "noise=0.3", "--set", "memory=0.99"]),
    ],
)
def test_every_parameter_can_be_set(data, tmp_path, name, options):
    assert learn(data, "sign", "--algorithm", name, *options, "--limit", 300, "--save", tmp_path / "m") == 0
    model = load(tmp_path / "m.npz")
    assert type(model).__name__ == name
    for option, text in zip(options, options[1:], strict=False):
        if option == "--set":
            key, _, value = text.partition("=")
            assert str(model.get_params()[key]) == value


def test_what_stands_for_components(capsys):
    assert repr(component("kernel", "gaussian:2")) == "Gaussian(width=2)" and component("budget", "7") == 7
    for kind in ("kernel", "loss", "step", "budget"):
        assert len(names_of(kind)) > 3 and names_of(kind).keys().isdisjoint({kind, "silk"})
    for kind, text, message in (
        ("kernel", "gausian", "kernel must be one of .*gaussian.* Got 'gausian' instead. .Is gaussian meant?"),
        ("kernel", "gaussian:wide", "Gaussian takes width, and --set sets the others. Got 'gaussian:wide'"),
        ("kernel", "linear:2", "Linear takes no parameter"),
        ("loss", "hinges", "Is hinge meant?"),
        ("step", "fast", "step must be one of"),
        ("budget", "big", "budget must be one of"),
        ("algorithm", "adatron", "algorithm must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            component(kind, text)


# ---- The default ensembles -----------------------------------------------------------------------


def test_the_target_says_who_learns(data, tmp_path, capsys):
    """Words and few whole numbers are classes, other numbers are numbers, and nothing is for the detector."""
    def learned(*options):
        model = str(tmp_path / "m.npz")
        assert main(["learn", str(data), "--effort", "low", "--features", "x,y", "--limit", "120", "--save", model, *options]) == 0
        return type(load(model)).__name__, capsys.readouterr().err

    for target, kind, words in (("word", "Classifier", "words: classes"), ("sign", "Classifier", "2 different whole numbers in 120 rows: classes"),
                                ("wave", "Regressor", "numbers"), ("none", "Detector", "no target")):
        name, said = learned("--target", target)
        assert name == "OnlineKernel" + kind and said.startswith(name + " learns ") and words in said and said.count("\n") == 1
        assert "--target COLUMN (or none), --effort and --algorithm choose otherwise." in said
    assert learned()[1].startswith("OnlineKernelRegressor learns the last column, whose values are numbers.")
    assert learned("--target", "sign", "--algorithm", "onlinekernelregressor") == ("OnlineKernelRegressor", "")
    np.savez(tmp_path / "a.npz", X=X[:200])
    assert main(["learn", str(tmp_path / "a.npz"), "--effort", "low"]) == 0
    assert capsys.readouterr().err.startswith("OnlineKernelDetector learns all columns")
    assert "'effort' parameter" in refused(["learn", data, "--set", "effort=most"], capsys)
    assert "SILK has no parameter 'effort'" in refused(["learn", data, "--kernel", "linear", "--effort", "low"], capsys)


def test_an_afternoon_with_a_table(tmp_path, capsys):
    """Words, ISO dates and empty fields: learned, shown, predicted, interrupted, and gone on with."""
    model = tmp_path / "m.npz"
    assert main(["learn", str(RETURNS), "--effort", "low", "--save", str(model)]) == 0
    (said,) = figures(capsys)
    assert said["examples"] == 600 and said["AUC"] > 0.75 and said["mistakes"] < said["constant"] and 0 < said["F1"] < 1
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    y = [row.pop("returned") for row in table]
    expected = OnlineKernelClassifier("low", encode=RunningEncoder(columns=list(table[0]))).partial_fit(table, y)
    np.testing.assert_allclose(load(model).predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert main(["show", str(model)]) == 0
    assert "OnlineKernelClassifier" in (said := capsys.readouterr().out) and "near 500" in said and "returns.csv, row 600" in said
    for part in (["--limit", "300"], ["--resume"]):  # the choice is taken up again, and the figures go on
        assert main(["learn", str(RETURNS), "--effort", "low", "--save", str(tmp_path / "n"), "--chunk", "100", *part]) == 0
    np.testing.assert_allclose(load(tmp_path / "n.npz").predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert reports(capsys.readouterr().out)[-1][0] == "600"
    # columns in another order, some of them others, and one chunk after another, are the same table
    wanted = ["city", "member", "other", "kind", "channel", "ordered", "weight", "price"]
    with open(tmp_path / "new.tsv", "w", encoding="utf-8") as file:
        for row in [dict(zip(wanted, wanted)), *table]:
            print(*(row.get(name, "?") for name in wanted), sep="\t", file=file)
    assert main(["predict", str(model), str(tmp_path / "new.tsv"), "--chunk", "7"]) == 0
    assert capsys.readouterr().out.split() == expected.predict(table).tolist()
    numbers = ["learn", str(RETURNS), "--target", "price", "--on-error", "skip", "--effort", "low", "--save", str(model)]
    assert main(numbers[:4]) == 1 and "Got an empty field instead. (--on-error skip leaves such rows out.)" in capsys.readouterr().err
    assert main(numbers) == 0 and main(["predict", str(model), str(RETURNS), "--interval", "0.9"]) == 0
    assert "prediction,lower,upper\n" in capsys.readouterr().out


def test_a_single_learner_takes_words_as_well(tmp_path):
    """It encodes them, and scales the numbers that it makes of them."""
    assert main(["learn", str(RETURNS), "--loss", "logistic", "--kernel", "linear", "--save", str(tmp_path / "m")]) == 0
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    y = [row.pop("returned") for row in table]
    expected = SILK("logistic", "linear", scale=True, encode=RunningEncoder(columns=list(table[0])))
    expected.partial_fit(table, y, classes=["no", "yes"])
    np.testing.assert_allclose(load(tmp_path / "m.npz").decision_function(table), expected.decision_function(table), atol=1e-9)


def test_a_rare_class_that_is_never_found_is_said_so(tmp_path, capsys):
    path = tmp_path / "rare.csv"
    path.write_text("a,y\n" + "".join(f"{a:.3f},{'odd' if i % 25 == 24 else 'even'}\n" for i, a in enumerate(X[:400, 0])))
    for options, is_said in (([], True), (["--set", "threshold=f1"], False)):
        assert main(["learn", str(path), "--effort", "low", *options]) == 0
        assert ("--set threshold=f1" in capsys.readouterr().err) == is_said


# ---- Reports -------------------------------------------------------------------------------------


def figures(capsys):
    """The rows of a report by their headings; rates as fractions."""
    names, *rows = ([cell.strip() for cell in line.split("  ") if cell.strip()] for line in capsys.readouterr().out.splitlines()
                    if not line.count(":"))
    values = ([float(cell.rstrip("%")) / (100 if "%" in cell else 1) if cell != "-" else None for cell in row] for row in rows)
    return [dict(zip(names, row, strict=True)) for row in values]


def said(data, target, path, capsys, *options):
    assert learn(data, target, "--chunk", 500, "--save", path, *options) == 0
    return figures(capsys)


def test_figures_are_those_of_plain_loops_whatever_interrupts_them(data, tmp_path, capsys):
    """Errors, those of a constant that knows all rows before each, F1 of the rarer class, and AUC."""
    last = said(data, "sign", tmp_path / "a", capsys)[-1]
    expected = evaluate.progressive(SILK(), (X, Y))
    rarer = min((-1, 1), key=Y.tolist().count)
    guesses = np.where(np.concatenate([(m := SILK()).progressive(X, Y)]) > 0, 1, -1)
    f1 = 2 * np.sum((guesses == rarer) & (Y == rarer)) / (np.sum(guesses == rarer) + np.sum(Y == rarer))
    assert abs(last["F1"] - f1) < 1e-3 and abs(last["AUC"] - expected.auc) < 1e-3 and m.t_ == 3000
    wrong, counts, leader = 0, {}, None
    for label in Y.tolist():
        wrong += label != leader
        counts[label] = counts.get(label, 0) + 1
        leader = label if leader is None or counts[label] > counts[leader] else leader
    assert last["constant"] == pytest.approx(wrong / 3000, abs=1e-4)
    last = said(data, "wave", tmp_path / "b", capsys, "--loss", "squared")[-1]
    errors = WAVE - np.concatenate([[0.0], np.cumsum(WAVE)[:-1] / np.arange(1, 3000)])
    constants = [last["absolute constant"], last["squared constant"]]
    np.testing.assert_allclose(constants, [np.abs(errors).mean(), (errors**2).mean()], rtol=1e-3)
    last = said(data, "corner", tmp_path / "c", capsys, "--loss", "multiclasshinge")[-1]
    assert 0.6 < last["constant"] < 0.8 and not {"F1", "AUC"} & set(last)
    last = said(data, "sign", tmp_path / "d", capsys, "--loss", "novelty")[-1]
    assert "constant" not in last
    for target, loss, whole in (("sign", "hinge", "a"), ("wave", "squared", "b"), ("corner", "multiclasshinge", "c")):
        said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--limit", 1000)
        last = said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--resume")[-1]
        for name, value in said(data, target, tmp_path / whole, capsys, "--loss", loss)[-1].items():
            if "lately" not in name and name != "microseconds":
                assert last[name] == value, name
        (tmp_path / "parts.npz").unlink()


def test_a_resumed_run_that_learns_nothing_has_no_figures_of_late(data, tmp_path, capsys):
    for _ in range(2):
        (last,) = said(data, "sign", tmp_path / "m", capsys, "--resume")
    assert last["mistakes"] > 0 and last["lately"] is None and last["microseconds"] is None


def test_no_two_columns_have_one_name_and_a_closing_line(data, tmp_path, capsys):
    for target, loss in (("wave", "squared"), ("sign", "hinge"), ("sign", "novelty")):
        learn(data, target, "--loss", loss, "--limit", 100)
        captured = capsys.readouterr()
        names = [name.strip() for name in captured.out.splitlines()[0].split("  ") if name.strip()]
        assert len(names) == len(set(names)) and "examples" in names and any("lately" in name for name in names)
        assert captured.err == "Nothing was kept: --save FILE keeps the model.\n"
    learn(data, "sign", "--limit", 100, "--save", tmp_path / "m")
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    """A stderr that claims to be a terminal."""

    def isatty(self):
        return True


def test_a_bar_if_wanted(data, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    learn(data, "sign")
    assert "examples" not in terminal.getvalue()
    learn(data, "sign", "--progress", "--chunk", 100)
    assert "examples" in terminal.getvalue()


# ---- predict and show ----------------------------------------------------------------------------


def predicted(capsys, *arguments):
    """(headings or None, rows, what is said on stderr)."""
    capsys.readouterr()
    assert main(["predict", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    rows = list(csv.reader(io.StringIO(captured.out)))
    return (rows[0], rows[1:], captured.err) if rows and rows[0][0].startswith("prediction") else (None, rows, captured.err)


def test_predictions(data, tmp_path, capsys):
    learn(data, "word", "--loss", "logistic", "--kernel", "gaussian:0.4", "--save", tmp_path / "m")
    model, out = load(tmp_path / "m.npz"), tmp_path / "out.csv"
    _, rows, _ = predicted(capsys, tmp_path / "m.npz", data)  # columns by their names
    assert [row[0] for row in rows] == model.predict(X).tolist()
    _, nothing, words = predicted(capsys, tmp_path / "m", data, "--target", "word", "--scores", "--output", out)
    assert nothing == [] and words == f"3000 examples, {1 - model.score(X, WORDS):.2%} mistakes\n"
    heading, *rows = csv.reader(io.StringIO(out.read_text()))
    assert heading == ["prediction", "score", "probability no", "probability yes"]
    assert [float(row[1]) for row in rows] == model.decision_function(X).tolist()
    np.testing.assert_allclose([[float(cell) for cell in row[2:]] for row in rows], model.predict_proba(X))
    learn(data, "wave", "--loss", "squared", "--save", tmp_path / "m")
    _, _, words = predicted(capsys, tmp_path / "m", data, "--target", "wave")
    assert f"3000 examples, mean absolute error {np.abs(load(tmp_path / 'm.npz').predict(X) - WAVE).mean():.4g}, squared" in words


def test_scores_of_other_tasks(data, tmp_path, capsys):
    for target, loss, columns, words in (
        ("corner", "multiclasshinge", 5, r"9 examples, \d+\.\d+% mistakes"),
        ("wave", "squared", 1, r"9 examples, mean absolute error .*, squared error .*"),
        ("sign", "novelty", 2, r"9 examples, \d+\.\d+% alerts.*"),
    ):
        learn(data, target, "--loss", loss, "--limit", 200, "--save", tmp_path / "m")
        heading, rows, words_said = predicted(capsys, tmp_path / "m", data, "--target", target, "--scores", "--limit", 9)
        assert {len(row) for row in [heading, *rows]} == {columns} and re.fullmatch(words, words_said.strip())


def test_several_targets_are_learned_by_a_program(data, tmp_path, capsys):
    expected = KRLS("squared", Gaussian(1.0)).fit(X[:500], np.column_stack([WAVE, Y])[:500])
    expected.save(tmp_path / "m.npz")
    arguments = [tmp_path / "m.npz", data, "--features", "x,y", "--limit", 9]
    heading, rows, _ = predicted(capsys, *arguments, "--interval", 0.9)
    assert heading == [f"{kind} {i}" for kind in ("prediction", "lower", "upper") for i in range(2)]
    ends = np.hstack([*expected.predict_interval(X[:9])])
    np.testing.assert_array_equal(np.array(rows, dtype=float), np.hstack([expected.predict(X[:9]), ends]))
    assert "--target needs a model of one number. Got one of 2." in refused(["predict", *arguments, "--target", "sign"], capsys)


def test_deviations_and_what_has_none(data, tmp_path, capsys):
    options = "--algorithm krls --set noise=0.01 --set memory=0.999 --set tolerance=0.01 --budget 30 --scale --kernel gaussian:1 --chunk 500"
    assert learn(data, "wave", *options.split(), "--save", tmp_path / "m") == 0
    expected = KRLS("squared", Gaussian(1), noise=0.01, memory=0.999, tolerance=0.01, budget=30, scale=True)
    scores = np.concatenate([expected.progressive(X[i : i + 500], WAVE[i : i + 500]) for i in range(0, 3000, 500)])
    assert float(reports(capsys.readouterr().out)[-1][1]) == float(f"{np.abs(scores - WAVE).mean():.4g}")
    heading, rows, _ = predicted(capsys, tmp_path / "m", data, "--interval", 0.8, "--limit", 50)
    assert heading == ["prediction", "lower", "upper"]
    mean = expected.predict(X[:50])
    np.testing.assert_array_equal(np.array(rows, dtype=float), np.column_stack([mean, *expected.predict_interval(X[:50], 0.8)]))
    learn(data, "wave", "--loss", "squared", "--limit", 100, "--save", tmp_path / "m")
    assert "with --algorithm krls" in refused(["predict", tmp_path / "m", data, "--interval", "0.9"], capsys)
    assert "learn with --loss logistic" in refused(["predict", tmp_path / "m", data, "--probabilities"], capsys)
    assert "must be a number in (0, 1). Got 1.5" in refused(["predict", tmp_path / "m", data, "--interval", "1.5"], capsys)


def test_a_failure_leaves_the_output_alone(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 200, "--save", tmp_path / "m")
    (tmp_path / "out.csv").write_text("old\n")
    (tmp_path / "new.csv").write_text("1,2,3\n")
    arguments = ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--output", str(tmp_path / "out.csv")]
    assert main(arguments) == 1
    assert "has 3 columns to predict from, and the model learned 2. (--target names a column to leave out" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text() == "old\n"
    assert main([*arguments, "--target", "2"]) == 0 and (tmp_path / "out.csv").read_text() != "old\n"
    (tmp_path / "new.csv").write_text("")
    assert main(arguments) == 0
    assert (tmp_path / "out.csv").read_text() == ""


def test_predictions_line_up_with_rows_that_are_skipped(data, tmp_path, capsys):
    learn(data, "word", "--loss", "logistic", "--save", tmp_path / "m")
    model, bad = load(tmp_path / "m.npz"), [0, 1, 4, 9]
    texts = [f"{a!r},{b!r}" for a, b in X[:10].tolist()]
    for i in bad:
        texts[i] = "oops,1" if i % 2 else "1,oops"
    (tmp_path / "new.csv").write_text("x,y\n" + "\n".join(texts) + "\n")
    for chunk in (1, 3, 100):
        capsys.readouterr()
        arguments = ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--on-error", "skip", "--chunk", str(chunk)]
        assert main(arguments) == 0
        captured = capsys.readouterr()
        expected = ["" if i in bad else label for i, label in enumerate(model.predict(X[:10]).tolist())]
        assert captured.out.split("\n") == [*expected, ""]
        assert "Skipped bad rows, which have an empty line: 4." in captured.err
        assert main([*arguments, "--probabilities"]) == 0
        heading, *rows = capsys.readouterr().out.split("\n")
        assert heading == "prediction,probability no,probability yes" and [i for i, row in enumerate(rows[:10]) if row == ""] == bad


def test_show(data, tmp_path, capsys):
    learn(data, "corner", "--loss", "multiclasshinge", "--kernel", "gaussian:0.5", "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert str(tmp_path).encode() not in (tmp_path / "m.npz").read_bytes()  # folders are nobody's business
    assert main(["show", str(tmp_path / "m.npz")]) == 0
    text = capsys.readouterr().out
    for name, fact in (("algorithm", "SILK"), ("", "kernel = Gaussian(width=0.5)"), ("task", "many classes"), ("examples", "3000"),
                       ("classes", ", ".join(model.classes_)), ("norm", f"{model.norm_:.6g}"), ("columns", "x, y"),
                       ("read", "data.csv, row 3000")):
        assert re.search(f"^{name} +{re.escape(fact)}$", text, re.M), name
    assert re.search(r"^file +.*m.npz, \d+ bytes$", text, re.M) and re.search(r"^mistakes +\d+\.\d+% while learning$", text, re.M)
    SVMD().save(tmp_path / "new.npz")
    assert main(["show", str(tmp_path / "new")]) == 0 and re.search(r"^learned +nothing yet$", capsys.readouterr().out, re.M)


# ---- What is refused -----------------------------------------------------------------------------


@each(
    "arguments, message",
    [
        (["learn", "missing.csv", "--target", "2"], "missing.csv: No such file"),
        (["learn", "{data}", "--target", "label"], "--target must be a column, one of 'x', 'y', 'sign'"),
        (["learn", "{data}", "--target", "wave", *SINGLE, "--features", "x,y"], "Use --algorithm onlinekernelregressor or --loss squared"),
        (["learn", "{data}", "--target", "corner", *SINGLE, "--features", "x,y"], "label"),
        (["learn", "{data}", "--target", "sign", "--features", "x", "--save", "no/m"], "no: cannot be saved to"),
        (["learn", "{data}", "--features", "x", "--target", "sign", "--limit", "0"], "no examples to learn from"),
        (["predict", "missing.npz", "{data}"], "missing.npz: No such file"),
        (["show", "{data}"], "not a model file"),
        (["show", "missing"], "No such file"),
    ],
)
def test_errors_take_one_line_and_status_1(data, arguments, message, capsys):
    assert main([argument.format(data=data) for argument in arguments]) == 1
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1 and err.startswith("python -m onlinekernels ")


@each(
    "arguments, message",
    [
        (["learn"], "required"),
        (["learn", "{data}", "--kernel", "gausian"], "Is gaussian meant?"),
        (["learn", "{data}", "--chunk", "0"], "must be at least 1"),
        (["learn", "{data}", "--checkpoint", "10"], "--checkpoint needs --save"),
        (["learn", "{data}", "--resume"], "--resume needs --save"),
        (["learn", "{data}", "{data}"], "data must be different files. Got"),
        (["learn", "{data}", "--algorithm", "perceptron", "--loss", "hinge"], "Perceptron has no parameter 'loss'"),
        (["learn", "{data}", "--set", "nonsense=1"], "has no parameter 'nonsense'"),
        (["learn", "{data}", "--set", "nonsense"], "form name=value"),
        (["learn", "{data}", "--step", "-1"], "'step' parameter of SILK"),
        (["learn", "{data}", "--kernel", "gaussian:-1"], "'width' parameter of Gaussian"),
        (["learn", "data.libsvm"], "data must be a file that ends in .csv, .tsv"),
        (["learn", "{data}", "--features", "x,,y"], "names of columns"),
        (["learn", "{data}", "--kernal", "linear"], "unrecognized arguments: --kernal linear (is --kernel meant?)"),
        (["learn", "{data}", "--noise", "0.1"], "unrecognized arguments: --noise 0.1"),
        (["predict", "m", "{data}", "--kernal", "linear"], "unrecognized arguments: --kernal linear"),
        (["predict", "m.npz"], "required"),
        (["show"], "required"),
    ],
)
def test_wrong_arguments_have_status_2(data, arguments, message, capsys):
    features = ["--features", "x,y"] if "{data}" in arguments else []
    said = refused([argument.format(data=data) for argument in arguments] + features, capsys)
    assert message in said and said.startswith(f"usage: python -m onlinekernels {arguments[0]} ")


def test_what_is_read_is_never_written_over(data, tmp_path, capsys):
    """Known by device and inode, before anything is written: by its name, by links of both kinds, on standard input."""
    learn(data, "sign", "--save", tmp_path / "m")
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    os.symlink(data, tmp_path / "soft.csv")
    os.link(data, tmp_path / "hard.csv")
    files = {path: path.read_bytes() for path in (data, tmp_path / "data.npz", tmp_path / "m.npz")}
    for output in (data, "soft.csv", "hard.csv", "m.npz"):
        arguments = ["predict", tmp_path / "m.npz", data, "--output", tmp_path / output]
        assert "--output must not be a file that is read" in refused(arguments, capsys)
    with open(data) as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        assert "must not be" in refused(["predict", tmp_path / "m.npz", "-", "--output", data], capsys)
    assert "--save must not be a file that is read" in refused(["learn", tmp_path / "data.npz", "--save", tmp_path / "data"], capsys)
    assert all(path.read_bytes() == content for path, content in files.items())


def test_where_nothing_can_be_saved_nothing_is_learned(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(onlinekernels.cli.learn._Run, "learn_all", None)  # not reached
    (tmp_path / "folder.npz").mkdir()
    for path in (data / "m.npz", tmp_path / "no" / "m.npz", tmp_path / "folder.npz", *([Path("/proc/m.npz")] if os.path.isdir("/proc") else [])):
        assert main(["learn", str(data), "--target", "sign", "--save", str(path)]) == 1
        assert str(path if path.is_dir() else path.parent) in capsys.readouterr().err


def test_files_of_others_stay(data, tmp_path):
    """What another process is writing, and what only looks like it; and modes and links of the file that is replaced."""
    other, real = tmp_path / "m.npz.4711.17.tmp", tmp_path / "real.npz"
    other.write_text("somebody's")
    real.write_bytes(b"old")
    real.chmod(0o600)
    (tmp_path / "m.npz").symlink_to(real)
    assert learn(data, "sign", "--limit", 100, "--save", tmp_path / "m", "--checkpoint", 50, "--chunk", 50) == 0
    assert other.read_text() == "somebody's" and (tmp_path / "m.npz").is_symlink()
    assert load(real).t_ == 100 and real.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["data.csv", "m.npz", "m.npz.4711.17.tmp", "real.npz"]


# ---- Help ----------------------------------------------------------------------------------------


def test_help_teaches_with_examples_that_parse(capsys):
    from onlinekernels.__main__ import _parser
    from onlinekernels.cli import learn as learning
    from onlinekernels.cli import predict, show

    for command, module in (("learn", learning), ("predict", predict), ("show", show)):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        text = capsys.readouterr().out
        assert end.value.code == 0 and "examples:" in text and f"python -m onlinekernels {command} " in text
        assert max(map(len, text.splitlines())) <= 120
        lines = " ".join(module.EXAMPLES).replace("\\ ", " ").split("exit status")[0]
        for example in re.split(r"python -m onlinekernels", lines)[1:]:
            assert _parser().parse_args(re.split(r"tail -f|>", example)[0].split()).run
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(command in text for command in ("demo", "learn", "predict", "show"))


def test_names_and_versions(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"onlinekernels {onlinekernels.__version__}\n"
    for program, name in (("/usr/bin/onlinekernels", "onlinekernels"), ("/x/__main__.py", "python -m onlinekernels")):
        monkeypatch.setattr(sys, "argv", [program, "learn", "--help"])
        with pytest.raises(SystemExit):
            main()
        out = capsys.readouterr().out
        assert out.startswith(f"usage: {name} learn data") and f"\n  {name} learn data.csv" in out


def test_the_script_is_declared():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = Path(onlinekernels.__file__).parents[1] / "pyproject.toml"
    if not project.exists():
        pytest.skip("the package is installed without its project")
    assert tomllib.loads(project.read_text())["project"]["scripts"] == {"onlinekernels": "onlinekernels.__main__:main"}


def test_hints_to_install_name_packages_that_exist():
    """From a checkout or an sdist, `pip install "onlinekernels[plot]"` would look for a package of that name."""
    for path in Path(onlinekernels.__file__).parent.rglob("*.py"):
        assert "onlinekernels[" not in path.read_text(), path
