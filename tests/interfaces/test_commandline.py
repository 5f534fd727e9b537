"""The commands learn, predict and show: what they print and write, what they refuse, and in which words."""

from onlinekernels import evaluate
from onlinekernels import SILK
import csv
import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import each
from command_line import (CORNERS, SINGLE, WAVE, WORDS, X, Y, command_line, failed, learn, main, refused, reports,
                          write_table,)

import onlinekernels
from onlinekernels import (NORMA, SVMD, Gaussian, Hinge, OnlineKernelClassifier, RunningEncoder, load,)
from onlinekernels.cli.models import component, names_of

RETURNS = Path(__file__).parents[2] / "docs" / "examples" / "returns.csv"


def said(data, target, path, capsys, *options):
    assert learn(data, target, "--chunk", 500, "--save", path, *options) == 0
    return figures(capsys)


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
    assert rows[-1][6] == "100"
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
    assert load(tmp_path / "m.npz").classes_.tolist() == sorted(set(CORNERS.tolist()))
    assert learn(data, "corner", *options, "--classes", "NE,NW,SE,SW") == 0
    assert load(tmp_path / "m.npz").classes_.tolist() == ["NE", "NW", "SE", "SW"]
    capsys.readouterr()
    assert learn(data, "wave", "--loss", "insensitive:0.01", "--kernel", "gaussian:1") == 0
    text = capsys.readouterr().out
    assert "mean absolute error" in text and "squared error" in text and float(reports(text)[-1][1]) < 0.2
    arguments = ["learn", data, "--features", "x,y", "--loss", "nunovelty:0.05", "--algorithm", "norma", "--chunk", 50]
    assert main([*arguments, "--kernel", "gaussian:1"]) == 0
    assert 0 < float(reports(capsys.readouterr().out)[-1][1].rstrip("%")) < 15


def test_a_report_whose_columns_change_has_a_new_heading(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2] if i < 50 else 'c'}\n" for i in range(100)))
    assert main(["learn", tmp_path / "a.csv", "--loss", "multiclasshinge", "--report", "25", "--chunk", "25"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["examples", "25", "50", "examples", "75", "100"]
    assert ["F1" in line for line in lines if line[0] == "examples"] == [True, False]


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
        model = tmp_path / "m.npz"
        assert main(["learn", data, "--effort", "low", "--features", "x,y", "--limit", "120", "--save", model,
                     *options]) == 0
        return type(load(model)).__name__, capsys.readouterr().err

    for target, kind, words in (("word", "Classifier", "words: classes"),
                                ("sign", "Classifier", "2 different whole numbers in 120 rows: classes"),
                                ("wave", "Regressor", "numbers"), ("none", "Detector", "no target")):
        name, said = learned("--target", target)
        assert name == "OnlineKernel" + kind
        assert said.startswith(name + " learns ")
        assert words in said
        assert said.count("\n") == 1
        assert "--target COLUMN (or none), --effort and --algorithm choose otherwise." in said
    assert learned()[1].startswith("OnlineKernelRegressor learns the last column, whose values are numbers.")
    assert learned("--target", "sign", "--algorithm", "onlinekernelregressor") == ("OnlineKernelRegressor", "")
    assert "'effort' parameter" in refused(["learn", data, "--set", "effort=most"], capsys)
    assert "SILK has no parameter 'effort'" in refused(["learn", data, "--kernel", "linear", "--effort", "low"], capsys)


def test_an_afternoon_with_a_table(tmp_path, capsys):
    """Words, ISO dates and empty fields: learned, shown, predicted, interrupted, and gone on with."""
    model = tmp_path / "m.npz"
    assert main(["learn", RETURNS, "--effort", "low", "--save", model]) == 0
    (said,) = figures(capsys)
    assert said["examples"] == 600 and said["AUC"] > 0.75 and said["mistakes"] < said["constant"] and 0 < said["F1"] < 1
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    y = [row.pop("returned") for row in table]
    expected = OnlineKernelClassifier("low", encode=RunningEncoder(columns=list(table[0]))).partial_fit(table, y)
    np.testing.assert_allclose(load(model).predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert main(["show", model]) == 0
    assert "OnlineKernelClassifier" in (said := capsys.readouterr().out)
    assert "near 500" in said
    assert "returns.csv, row 600" in said
    for part in (["--limit", "300"], ["--resume"]):  # the choice is taken up again, and the figures go on
        assert main(["learn", RETURNS, "--effort", "low", "--save", tmp_path / "n", "--chunk", "100", *part]) == 0
    np.testing.assert_allclose(load(tmp_path / "n.npz").predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert reports(capsys.readouterr().out)[-1][0] == "600"
    # columns in another order, some of them others, and one chunk after another, are the same table
    wanted = ["city", "member", "other", "kind", "channel", "ordered", "weight", "price"]
    with open(tmp_path / "new.tsv", "w", encoding="utf-8") as file:
        for row in [dict(zip(wanted, wanted)), *table]:
            print(*(row.get(name, "?") for name in wanted), sep="\t", file=file)
    assert main(["predict", model, tmp_path / "new.tsv", "--chunk", "7"]) == 0
    assert capsys.readouterr().out.split() == expected.predict(table).tolist()
    numbers = ["learn", RETURNS, "--target", "price", "--on-error", "skip", "--effort", "low", "--save", model]
    assert "Got a missing value instead. (--on-error skip leaves such rows out.)" in failed(numbers[:4], capsys)
    assert main(numbers) == 0 and main(["predict", model, RETURNS, "--interval", "0.9"]) == 0
    assert "prediction,lower,upper\n" in capsys.readouterr().out


# ---- Reports -------------------------------------------------------------------------------------


def figures(capsys):
    """The rows of a report by their headings; rates as fractions."""
    lines = [line for line in capsys.readouterr().out.splitlines() if ":" not in line]
    names, *rows = ([cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines)
    return [dict(zip(names, map(_number, row), strict=True)) for row in rows]


def _number(cell):
    return None if cell == "-" else float(cell.rstrip("%")) / (100 if "%" in cell else 1)


# ---- Alerts, JSON lines, files that exist ----------------------------------------------------------


def test_alerts_are_named(data, tmp_path, capsys):
    """By learn and by predict, as text and as JSON; only of detectors."""
    options = ["--features", "x,y", "--target", "none", "--loss", "nunovelty:0.05", "--algorithm", "norma",
               "--limit", 400]
    assert main(["learn", data, *options, "--alerts", "--save", tmp_path / "m"]) == 0
    expected = load(tmp_path / "m.npz")
    lines = capsys.readouterr().out.splitlines()
    alerts = [line for line in lines if line.startswith("alert: ")]
    assert 0 < len(alerts) < 100 and re.fullmatch(r"alert: .*data.csv, line \d+, score -?[\d.e-]+", alerts[0])
    assert f"{len(alerts) / 400:.2%}" == lines[-1].split()[1]
    assert main(["learn", data, *options, "--alerts", "--json"]) == 0
    *rows, report = map(json.loads, capsys.readouterr().out.splitlines())
    assert [row["line"] for row in rows] == [int(re.search(r"line (\d+)", line)[1]) for line in alerts]
    assert report["examples"] == 400 and report["alerts"] == len(alerts) / 400
    assert main(["predict", tmp_path / "m", data, "--features", "x,y", "--alerts"]) == 0
    heading, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == ["file", "line", "score"]
    assert [int(row[1]) for row in rows] == (np.flatnonzero(expected.predict(X) == -1) + 2).tolist()
    assert main(["predict", tmp_path / "m", data, "--features", "x,y", "--alerts", "--json"]) == 0
    assert [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()] == [int(row[1]) for row in rows]
    assert "--alerts needs a detector" in refused(["learn", data, "--kernel", "linear", "--alerts"], capsys)
    learn(data, "sign", "--save", tmp_path / "m")
    assert "--alerts needs a detector" in refused(["predict", tmp_path / "m", data, "--alerts"], capsys)


def test_a_model_is_replaced_only_if_that_is_wanted(data, tmp_path, capsys):
    model = tmp_path / "m.npz"
    arguments = ["learn", data, "--features", "x,y", "--target", "sign", *SINGLE, "--save"]
    assert command_line([*map(str, arguments), str(model), "--limit", "100"]) == 0
    for path in (model, tmp_path / "m"):
        assert "--resume goes on, --force replaces it." in refused([*arguments, path], capsys)
    assert load(model).t_ == 100
    assert command_line([*map(str, arguments), str(model), "--resume"]) == 0 and load(model).t_ == 3000
    assert command_line([*map(str, arguments), str(model), "--force", "--limit", "200"]) == 0 and load(model).t_ == 200
    assert "not allowed with argument" in refused([*arguments, model, "--force", "--resume"], capsys)


def test_json_lines_in_and_out(tmp_path, capsys):
    """Numbers, words, dates, null and keys that are missing: the same as the table of text."""
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    lines = [json.dumps({key: _value(text) for key, text in row.items()}) for row in table]
    lines[1:] = [line.replace(', "weight": null', "") for line in lines[1:]]  # a key that is missing is a hole
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    options = ["--effort", "low", "--target", "returned", "--save"]
    assert main(["learn", tmp_path / "a.jsonl", *options, tmp_path / "a", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert main(["learn", RETURNS, *options, tmp_path / "b"]) == 0
    assert report.keys() == figures(capsys)[0].keys()
    assert report["examples"] == 600 and 0 < report["mistakes"] < report["constant"]
    assert main(["predict", tmp_path / "a", tmp_path / "a.jsonl", "--probabilities", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["predict", tmp_path / "b", RETURNS, "--probabilities", "--output", tmp_path / "out.jsonl"]) == 0
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == rows
    assert list(rows[0]) == ["prediction", "probability no", "probability yes"]
    at, holed = next((i, line) for i, line in enumerate(lines) if '"weight"' not in line)
    lines = [lines[0], "[1]", lines[1], "{", lines[2].replace("{", '{"more": 1, ')]
    (tmp_path / "bad.jsonl").write_text("\n".join(lines), encoding="utf-8")
    err = failed(["predict", tmp_path / "a", tmp_path / "bad.jsonl"], capsys)
    assert "bad.jsonl, line 2: expected an object of JSON whose values are" in err
    assert main(["predict", tmp_path / "a", tmp_path / "bad.jsonl", "--on-error", "skip", "--json"]) == 0
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    answer = [{"prediction": row["prediction"]} for row in rows]
    assert predictions == [answer[0], None, answer[1], None, answer[2]]
    (tmp_path / "bad.jsonl").write_text("\n".join([holed, lines[0]]), encoding="utf-8")
    assert main(["predict", tmp_path / "a", tmp_path / "bad.jsonl", "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [answer[at], answer[0]]


def _value(text):
    try:
        return float(text) if text else None
    except ValueError:
        return text


# ---- predict and show ----------------------------------------------------------------------------


def predicted(capsys, *arguments):
    """(headings or None, rows, what is said on stderr)."""
    capsys.readouterr()
    assert main(["predict", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    rows = list(csv.reader(io.StringIO(captured.out)))
    has_headings = rows and rows[0][0].startswith("prediction")
    return (rows[0], rows[1:], captured.err) if has_headings else (None, rows, captured.err)


def test_predictions(data, tmp_path, capsys):
    learn(data, "word", "--loss", "logistic", "--kernel", "gaussian:0.4", "--save", tmp_path / "m")
    model, out = load(tmp_path / "m.npz"), tmp_path / "out.csv"
    _, rows, _ = predicted(capsys, tmp_path / "m.npz", data)  # columns by their names
    assert [row[0] for row in rows] == model.predict(X).tolist()
    _, nothing, words = predicted(capsys, tmp_path / "m", data, "--target", "word", "--scores", "--output", out)
    assert nothing == [] and words.endswith(f"\n3000 examples, {1 - model.score(X, WORDS):.2%} mistakes\n")
    heading, *rows = csv.reader(io.StringIO(out.read_text()))
    assert heading == ["prediction", "score", "probability no", "probability yes"]
    assert [float(row[1]) for row in rows] == model.decision_function(X).tolist()
    np.testing.assert_allclose([[float(cell) for cell in row[2:]] for row in rows], model.predict_proba(X))
    learn(data, "wave", "--loss", "squared", "--save", tmp_path / "m")
    _, _, words = predicted(capsys, tmp_path / "m", data, "--target", "wave")
    error = np.abs(load(tmp_path / "m.npz").predict(X) - WAVE).mean()
    assert f"3000 examples, mean absolute error {error:.4g}, squared" in words


def test_a_failure_leaves_the_output_alone(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 200, "--save", tmp_path / "m")
    (tmp_path / "out.csv").write_text("old\n")
    (tmp_path / "new.csv").write_text("1,2,3\n")
    arguments = ["predict", tmp_path / "m", tmp_path / "new.csv", "--output", tmp_path / "out.csv"]
    err = failed(arguments, capsys)
    assert "has 3 columns to predict from, and the model learned 2. (--target names a column to leave out" in err
    assert (tmp_path / "out.csv").read_text() == "old\n"
    assert main([*arguments, "--target", "2"]) == 0 and (tmp_path / "out.csv").read_text() != "old\n"
    packed = tmp_path / "out.csv.gz"
    assert main([*arguments[:-1], packed, "--target", "2"]) == 0
    assert gzip.decompress(packed.read_bytes()) == (tmp_path / "out.csv").read_bytes()
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
        arguments = ["predict", tmp_path / "m", tmp_path / "new.csv", "--on-error", "skip", "--chunk", str(chunk)]
        assert main(arguments) == 0
        captured = capsys.readouterr()
        expected = ["" if i in bad else label for i, label in enumerate(model.predict(X[:10]).tolist())]
        assert captured.out.split("\n") == [*expected, ""]
        assert "Skipped bad rows, which have an empty line: 4." in captured.err
        assert main([*arguments, "--probabilities"]) == 0
        heading, *rows = capsys.readouterr().out.split("\n")
        assert heading == "prediction,probability no,probability yes"
        assert [i for i, row in enumerate(rows[:10]) if row == ""] == bad


def test_show(data, tmp_path, capsys):
    learn(data, "corner", "--loss", "multiclasshinge", "--kernel", "gaussian:0.5", "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert str(tmp_path).encode() not in (tmp_path / "m.npz").read_bytes()  # folders are nobody's business
    assert main(["show", tmp_path / "m.npz"]) == 0
    text = capsys.readouterr().out
    for name, fact in (("algorithm", "SILK"), ("", "kernel = Gaussian(width=0.5)"), ("kind", "classifier"),
                       ("examples", "3000"), ("classes", ", ".join(model.classes_)), ("norm", f"{model.norm_:.6g}"),
                       ("columns", "x, y"), ("read", "data.csv, row 3000")):
        assert re.search(f"^{name} +{re.escape(fact)}$", text, re.M), name
    assert re.search(r"^file +.*m.npz, \d+ bytes$", text, re.M)
    assert re.search(r"^while learning +\d+\.\d+% mistakes$", text, re.M)
    SVMD().save(tmp_path / "new.npz")
    assert main(["show", tmp_path / "new"]) == 0 and re.search(r"^learned +nothing yet$", capsys.readouterr().out, re.M)


# ---- What is refused -----------------------------------------------------------------------------


@each(
    "arguments, message",
    [
        (["learn", "missing.csv", "--target", "2"], "missing.csv: No such file"),
        (["learn", "{data}", "--target", "label"], "--target must be one of 'x', 'y', 'sign'"),
        (["learn", "{data}", "--target", "wave", *SINGLE, "--features", "x,y"],
         "Use --algorithm onlinekernelregressor or --loss squared"),
        (["learn", "{data}", "--target", "corner", *SINGLE, "--features", "x,y"], "label"),
        (["learn", "{data}", "--target", "sign", "--features", "x", "--save", "no/m"], "no: cannot be saved to"),
        (["learn", os.devnull, "--delimiter", ","], "no examples to learn from"),
        (["predict", "missing.npz", "{data}"], "missing.npz: No such file"),
        (["show", "{data}"], "not a model file"),
        (["show", "missing"], "No such file"),
    ],
)
def test_errors_take_one_line_and_status_1(data, arguments, message, capsys):
    err = failed([argument.format(data=data) for argument in arguments], capsys)
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
    assert "'lern'" in (said := refused(["lern", data], capsys)) and "(Is learn meant?)" in said


def test_what_is_read_is_never_written_over(data, tmp_path, capsys):
    """Known by device and inode, before anything is written: by its name, by links of both kinds, on standard input."""
    learn(data, "sign", "--save", tmp_path / "m")
    os.symlink(data, tmp_path / "soft.csv")
    os.link(data, tmp_path / "hard.csv")
    files = {path: path.read_bytes() for path in (data, tmp_path / "m.npz")}
    for output in (data, "soft.csv", "hard.csv", "m.npz"):
        arguments = ["predict", tmp_path / "m.npz", data, "--output", tmp_path / output]
        assert "--output must not be a file that is read" in refused(arguments, capsys)
    with open(data) as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        assert "must not be" in refused(["predict", tmp_path / "m.npz", "-", "--output", data], capsys)
    os.link(data, tmp_path / "hard.npz")
    assert "--save must not be a file that is read" in refused(["learn", data, "--save", tmp_path / "hard"], capsys)
    assert all(path.read_bytes() == content for path, content in files.items())


def test_where_nothing_can_be_saved_nothing_is_learned(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(onlinekernels.cli.learn._Run, "learn_all", None)  # not reached
    (tmp_path / "folder.npz").mkdir()
    for path in (data / "m.npz", tmp_path / "no" / "m.npz", tmp_path / "folder.npz",
                 *([Path("/proc/m.npz")] if os.path.isdir("/proc") else [])):
        err = failed(["learn", data, "--target", "sign", "--save", path], capsys)
        assert str(path if path.is_dir() else path.parent) in err


def test_files_of_others_stay(data, tmp_path):
    """What another process is writing, and what looks like it; modes and links of a file that is replaced."""
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
    assert last["constant"] == pytest.approx(np.abs(errors).mean(), rel=1e-3)
    assert last["squared error"] == pytest.approx(np.mean((WAVE - SILK("squared").progressive(X, WAVE)) ** 2), rel=1e-3)
    last = said(data, "corner", tmp_path / "c", capsys, "--loss", "multiclasshinge")[-1]
    assert 0.6 < last["constant"] < 0.8 and not {"F1", "AUC"} & set(last)
    last = said(data, "sign", tmp_path / "d", capsys, "--loss", "novelty")[-1]
    assert "constant" not in last
    for target, loss, whole in (("sign", "hinge", "a"), ("wave", "squared", "b"), ("corner", "multiclasshinge", "c")):
        said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--limit", 1000)
        last = said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--resume")[-1]
        for name, value in said(data, target, tmp_path / whole, capsys, "--loss", loss)[-1].items():
            if "lately" not in name:
                assert last[name] == value, name
        (tmp_path / "parts.npz").unlink()


def test_predict_says_what_the_model_has_seen(data, tmp_path, capsys):
    """Of the same file, not of others; and only where mistakes are counted."""
    learn(data, "sign", "--limit", 500, "--save", tmp_path / "m")
    other = write_table(tmp_path / "other.csv", slice(500, 1000))
    for path, target, is_said in ((data, "sign", 1), (other, "sign", 0), (data, "none", 0)):
        assert main(["predict", tmp_path / "m", path, "--features", "x,y", "--target", target]) == 0
        said = f"{path}: the model has learned the first 500 of these rows, and figures of new rows are worse."
        assert capsys.readouterr().err.count(said) == is_said


def test_evaluate_chooses_a_model_and_takes_detectors(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv", slice(300))
    for options, name in (([], "OnlineKernelRegressor"), (["--target", "word"], "OnlineKernelClassifier"),
                          (["--target", "none"], "OnlineKernelDetector"),
                          (["--target", "none", "--algorithm", "silk", "--loss", "nunovelty:0.02"], "SILK")):
        effort = [] if "silk" in options else ["--effort", "low"]
        assert main(["evaluate", data, "--features", "x,y", *options, *effort]) == 0
        assert name in capsys.readouterr().out
    assert "cannot be saved to" in failed(["evaluate", data, "--plot", tmp_path / "nowhere" / "a.png"], capsys)
    assert "--plot must not be" in refused(["evaluate", data, "--plot", data], capsys)
