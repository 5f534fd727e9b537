"""The commands learn, predict and show: what they print and write, how they end, how they survive."""

import csv
import io
import re
import sys

import numpy as np
import pytest
from cases import each
from command_line import CORNERS, SINGLE, WAVE, WORDS, X, Y, learn, reports, write_table

from onlinekernels import KRLS, NORMA, SILK, Gaussian, Hinge, load
from onlinekernels.__main__ import main
from onlinekernels.commandline import specifications


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
    model = load(tmp_path / "m.npz")
    assert (model.decision_function(X) == expected.decision_function(X)).all()


def test_words_need_classes_only_if_the_first_chunk_shows_one(data, capsys):
    assert learn(data, "word") == 0
    first = capsys.readouterr().out
    assert learn(data, "word", "--chunk", 1, "--limit", 50) == 1
    assert "--classes A,B" in capsys.readouterr().err
    assert learn(data, "word", "--classes", "no,yes") == 0
    assert reports(capsys.readouterr().out)[-1][:4] == reports(first)[-1][:4]


def test_many_classes_grow(data, tmp_path, capsys):
    options = ("--loss", "multiclasshinge", "--kernel", "gaussian:1.0", "--save", tmp_path / "m")
    assert learn(data, "corner", *options) == 0
    grown = float(reports(capsys.readouterr().out)[-1][1].rstrip("%"))
    assert grown < 10
    seen = list(dict.fromkeys(CORNERS.tolist()))
    assert load(tmp_path / "m.npz").classes_.tolist() == seen
    assert learn(data, "corner", *options, "--chunk", 1) == 0  # the mistakes do not depend on chunks
    assert reports(capsys.readouterr().out)[-1][1] == f"{grown:.2f}%"
    assert learn(data, "corner", *options, "--classes", "NE,NW,SE,SW") == 0
    assert load(tmp_path / "m.npz").classes_.tolist() == ["NE", "NW", "SE", "SW"]


def test_numbers(data, capsys):
    assert learn(data, "wave", "--loss", "insensitive:0.01", "--kernel", "gaussian:1+0.1*linear+constant") == 0
    text = capsys.readouterr().out
    assert "mean absolute error" in text and "squared error" in text
    assert float(reports(text)[-1][1]) < 0.2


def test_novelty_needs_no_target(data, capsys):
    arguments = ["learn", str(data), "--features", "x,y", "--loss", "nunovelty:0.05", "--algorithm", "norma"]
    assert main([*arguments, "--kernel", "gaussian:1", "--chunk", "50"]) == 0
    assert 0 < float(reports(capsys.readouterr().out)[-1][1].rstrip("%")) < 15


def test_epochs_go_through_the_file_again(data, tmp_path):
    assert learn(data, "sign", "--epochs", 3, "--save", tmp_path / "m", "--limit", 500) == 0
    model = SILK()
    for _ in range(3):
        model.partial_fit(X[:500], Y[:500])
    assert (load(tmp_path / "m.npz").dual_coef_ == model.dual_coef_).all()


def test_going_on_with_a_model(data, tmp_path, capsys):
    learn(data, "sign", "--save", tmp_path / "a")
    assert learn(data, "sign", "--model", tmp_path / "a.npz", "--save", tmp_path / "b") == 0
    assert load(tmp_path / "a.npz").t_ == 3000 and load(tmp_path / "b.npz").t_ == 6000
    with pytest.raises(SystemExit):
        learn(data, "sign", "--model", tmp_path / "a.npz", "--kernel", "linear")
    assert "--kernel cannot be given with --model" in capsys.readouterr().err


@each(
    "name, options",
    [
        ("NORMA", ["--offset", "--average"]),
        ("SILK", ["--scale", "--set", "exact=True"]),
        ("Perceptron", ["--kernel", "polynomial:degree=2,bias=0.5"]),
        ("PassiveAggressive", ["--penalty", "0.5", "--set", "variant=PA-II"]),
        ("SVMD", ["--step", "0.2", "--set", "meta_step=0.5", "--set", "memory=0.9"]),
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
            assert str(getattr(model, key)) == value


@each("suffix", ["csv.gz", "npz", "libsvm"])
def test_other_formats(tmp_path, suffix, capsys):
    path, options = tmp_path / f"a.{suffix}", []
    if suffix == "npz":
        np.savez(path, X=X, y=Y)
    elif suffix == "libsvm":
        path.write_text("".join(f"{t} 1:{a!r} 2:{b!r}\n" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True)))
        options = ["--n-features", "2"]
    else:
        import gzip

        with gzip.open(path, "wt") as file:
            file.writelines(f"{a!r},{b!r},{t}\n" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True))
        options = ["--target", "-1"]
    assert main(["learn", str(path), *options, *SINGLE, "--save", str(tmp_path / "m")]) == 0
    expected = SILK()
    for i in range(0, 3000, 1024):
        expected.partial_fit(X[i : i + 1024], Y[i : i + 1024])
    assert (load(tmp_path / "m.npz").dual_coef_ == expected.dual_coef_).all()
    assert main(["predict", str(tmp_path / "m.npz"), str(path), *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3000 + 2


def test_sparse_data(tmp_path, capsys):
    pytest.importorskip("scipy")
    path, model = tmp_path / "a.libsvm", str(tmp_path / "m")
    path.write_text("".join(f"{t} 1:{a!r} 2:{b!r}\n" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True)))
    options = [str(path), "--n-features", "5", "--sparse"]
    assert main(["learn", *options, "--kernel", "linear", "--budget", "none", "--save", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, *options]) == 0
    sparse = capsys.readouterr().out.split()
    assert len(sparse) == 3000 and main(["predict", model, *options[:-1]]) == 0
    assert capsys.readouterr().out.split() == sparse


# ---- Specifications ------------------------------------------------------------------------------


@each(
    "maker, text, message",
    [
        ("kernel", "gausian", "kernel must be one of .*gaussian.* Got 'gausian'"),
        ("kernel", "gaussian:wide=2", "Gaussian takes width. Got 'gaussian:wide=2'"),
        ("kernel", "gaussian:1,2", "Gaussian takes width"),
        ("kernel", "x*linear", "factor of a kernel must be a number. Got 'x'"),
        ("loss", "hinges", "loss must be one of"),
        ("step", "fast", "step must be one of"),
        ("budget", "big", "budget must be one of"),
        ("algorithm", "adatron", "algorithm must be one of"),
        ("assignment", "a", "form name=value"),
    ],
)
def test_bad_specifications(maker, text, message):
    with pytest.raises(ValueError, match=message):
        getattr(specifications, maker)(text)


def test_every_kernel_and_loss_has_a_name():
    for name in specifications.KERNELS:
        specifications.kernel(f"{name}+2*{name}")
    for name in specifications.LOSSES:
        specifications.loss(name)
    assert repr(specifications.kernel("additive-spline:bounds=-1..1")) == "AdditiveSpline(bounds=(-1, 1))"
    assert specifications.budget("none") is None and specifications.budget("7") == 7


# ---- predict and show ----------------------------------------------------------------------------


def test_predictions(data, tmp_path, capsys):
    learn(data, "word", "--kernel", "gaussian:0.4", "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m.npz"), str(data)]) == 0
    assert capsys.readouterr().out.split() == model.predict(X).tolist()  # columns by their names
    out = tmp_path / "out.csv"
    assert main(["predict", str(tmp_path / "m"), str(data), "--target", "word", "--scores", "--output", str(out)]) == 0
    with open(out) as file:
        heading, *rows = csv.reader(file)
    assert heading == ["prediction", "score"]
    assert [float(row[1]) for row in rows] == model.decision_function(X).tolist()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"3000 examples, {1 - model.score(X, WORDS):.2%} mistakes\n"


def test_scores_of_other_tasks(data, tmp_path, capsys):
    for target, loss, columns in (("corner", "multiclasshinge", 5), ("wave", "squared", 1), ("sign", "novelty", 2)):
        learn(data, target, "--loss", loss, "--limit", 200, "--save", tmp_path / "m")
        capsys.readouterr()
        assert main(["predict", str(tmp_path / "m"), str(data), "--target", target, "--scores", "--limit", "9"]) == 0
        rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
        assert [len(row) for row in rows] == [columns] * 10
    learn(data, "word", "--loss", "multiclasshinge", "--classes", "yes,no", "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--scores", "--limit", "9"]) == 0
    assert capsys.readouterr().out.startswith("prediction,score\n")


def test_predicting_with_the_wrong_columns_says_what_helps(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 200, "--save", tmp_path / "m")
    (tmp_path / "new.csv").write_text("1,2,3\n")
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "new.csv")]) == 1
    said = capsys.readouterr().err
    assert "new.csv has 3 columns to predict from, and the model learned 2" in said
    assert "--target names a column to leave out" in said
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--target", "2"]) == 0


def reordered(path, names, rows=slice(None)):
    """The features and the signs, with columns in an order of one's own; names may be new."""
    columns = {"x": X[rows, 0], "y": X[rows, 1], "sign": Y[rows]}
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names.values())
        writer.writerows(zip(*(columns[name].tolist() for name in names), strict=True))
    return path


def test_columns_go_by_their_names(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 1000, "--chunk", 500, "--save", tmp_path / "m")
    other = reordered(tmp_path / "o.csv", {"y": "y", "sign": "sign", "x": "x"})
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(other), "--target", "sign"]) == 0
    assert capsys.readouterr().out.split() == list(map(str, model.predict(X)))
    going_on = ["--target", "sign", "--chunk", "500"]
    later = reordered(tmp_path / "l.csv", {"y": "y", "sign": "sign", "x": "x"}, slice(1000, None))
    assert main(["learn", str(later), *going_on, "--model", str(tmp_path / "m.npz"), "--save", str(tmp_path / "n")]) == 0
    for begin in range(1000, 3000, 500):
        model.partial_fit(X[begin : begin + 500], Y[begin : begin + 500])
    assert (load(tmp_path / "n.npz").dual_coef_ == model.dual_coef_).all()
    first = reordered(tmp_path / "f.csv", {"x": "x", "y": "y", "sign": "sign"}, slice(0, 1000))
    assert main(["learn", str(first), *going_on, *SINGLE, "--save", str(tmp_path / "r")]) == 0
    assert main(["learn", str(later), *going_on, *SINGLE, "--resume", "--save", str(tmp_path / "r")]) == 0
    assert (load(tmp_path / "r.npz").dual_coef_ == model.dual_coef_).all()


def test_a_column_that_is_missing_is_an_error(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 500, "--save", tmp_path / "m")
    wrong = reordered(tmp_path / "w.csv", {"y": "y", "x": "X", "sign": "sign"})
    capsys.readouterr()
    for arguments in (["predict", str(tmp_path / "m"), str(wrong)],
                      ["learn", str(wrong), "--target", "sign", "--model", str(tmp_path / "m.npz")]):
        assert main(arguments) == 1
        err = capsys.readouterr().err
        assert "w.csv has no column 'x'; expected columns 'x', 'y'. Got 'y', 'X', 'sign'" in err and "--features" in err
    assert main(["predict", str(tmp_path / "m"), str(wrong), "--features", "X,y"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--target", "x"]) == 1
    assert "--target must not be one of the columns of X, 'x', 'y'. Got 'x'" in capsys.readouterr().err


def test_names_of_folders_are_told_as_they_are(tmp_path, capsys):
    folder = tmp_path / "format=csv"
    folder.mkdir()
    (folder / "bad.csv").write_text("1,2\nx,1\n")
    assert main(["learn", str(folder / "bad.csv"), "--target", "1"]) == 1
    assert "format=csv/bad.csv, line 2" in capsys.readouterr().err


def test_names_of_a_model_from_a_data_frame(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    model = SILK().partial_fit(pandas.DataFrame(X, columns=["x", "y"]), Y)
    model.save(tmp_path / "m.npz")
    other = reordered(tmp_path / "o.csv", {"y": "y", "sign": "sign", "x": "x"})
    assert main(["predict", str(tmp_path / "m.npz"), str(other)]) == 0
    assert capsys.readouterr().out.split() == list(map(str, model.predict(X)))
    arguments = ["learn", str(other), "--target", "sign", "--chunk", "3000", "--save", str(tmp_path / "n")]
    assert main([*arguments, "--model", str(tmp_path / "m.npz")]) == 0
    assert (load(tmp_path / "n.npz").dual_coef_ == model.partial_fit(X, Y).dual_coef_).all()


def test_what_predict_says_of_a_target(data, tmp_path, capsys):
    for target, options, words in (
        ("wave", ["--loss", "squared"], r"3000 examples, mean absolute error 0\.\d+, squared error 0\.\d+"),
        ("word", ["--loss", "nunovelty:0.3", "--algorithm", "norma"], r"3000 examples, \d+\.\d+% alerts: \d+ of no, \d+ of yes"),
    ):
        learn(data, target, *options, "--save", tmp_path / "m")
        capsys.readouterr()
        assert main(["predict", str(tmp_path / "m"), str(data), "--target", target]) == 0
        assert re.fullmatch(words, capsys.readouterr().err.strip())


def test_probabilities(data, tmp_path, capsys):
    learn(data, "word", "--loss", "logistic", "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--scores", "--limit", "5"]) == 0
    heading, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == ["prediction", "score", "probability no", "probability yes"]
    expected = load(tmp_path / "m.npz").predict_proba(X[:5])
    np.testing.assert_allclose([[float(value) for value in row[2:]] for row in rows], expected)


def test_a_failure_leaves_the_output_alone(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 200, "--save", tmp_path / "m")
    (tmp_path / "out.csv").write_text("old\n")
    (tmp_path / "new.csv").write_text("1,2,3\n")
    arguments = ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--output", str(tmp_path / "out.csv")]
    assert main(arguments) == 1
    assert (tmp_path / "out.csv").read_text() == "old\n"
    (tmp_path / "new.csv").write_text("")
    assert main(arguments) == 0
    assert (tmp_path / "out.csv").read_text() == ""


def test_several_targets(data, tmp_path, capsys):
    model = str(tmp_path / "m")
    assert learn(data, "wave,sign", "--loss", "squared", "--chunk", 500, "--save", model) == 0
    expected = SILK("squared")
    for begin in range(0, 3000, 500):
        expected.partial_fit(X[begin : begin + 500], np.column_stack([WAVE, Y])[begin : begin + 500])
    assert (load(model).dual_coef_ == expected.dual_coef_).all()
    capsys.readouterr()
    assert main(["predict", model, str(data), "--target", "wave,sign", "--scores"]) == 0
    captured = capsys.readouterr()
    heading, *rows = csv.reader(io.StringIO(captured.out))
    assert heading == ["prediction wave", "prediction sign"]
    answers = expected.predict(X)
    np.testing.assert_allclose(np.array(rows, dtype=float), answers)
    error = np.abs(answers - np.column_stack([WAVE, Y])).mean()
    assert f"3000 examples, mean absolute error {error:.4g}, squared error" in captured.err
    (tmp_path / "new.csv").write_text("0.5,1.0\n0.25,0.75\n")
    assert main(["predict", model, str(tmp_path / "new.csv")]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    np.testing.assert_allclose(np.array(rows, dtype=float), expected.predict([[0.5, 1.0], [0.25, 0.75]]))
    with pytest.raises(SystemExit):
        main(["predict", model, str(tmp_path / "new.csv"), "--target", "1"])
    assert "--target must name as many columns as" in capsys.readouterr().err


# ---- Second order --------------------------------------------------------------------------------


def table(out):
    """(headings, numbers) of a table of numbers."""
    headings, *rows = csv.reader(io.StringIO(out))
    return headings, np.array(rows, dtype=float)


def test_deviations_and_intervals(data, tmp_path, capsys):
    options = "--algorithm krls --noise 0.01 --memory 0.999 --tolerance 0.01 --budget 30 --scale".split()
    options += ["--kernel", "gaussian:1+constant", "--chunk", 500]
    assert learn(data, "wave", *options, "--save", tmp_path / "m") == 0
    expected = KRLS("squared", Gaussian(1) + 1, noise=0.01, memory=0.999, tolerance=0.01, budget=30, scale=True)
    scores = np.concatenate([expected.progressive(X[i : i + 500], WAVE[i : i + 500]) for i in range(0, 3000, 500)])
    assert float(reports(capsys.readouterr().out)[-1][1]) == float(f"{np.abs(scores - WAVE).mean():.4g}")
    assert main(["predict", str(tmp_path / "m"), str(data), "--std", "--interval", "0.8", "--limit", "50"]) == 0
    headings, rows = table(capsys.readouterr().out)
    assert headings == ["prediction", "std", "lower", "upper"]
    mean, std = expected.predict(X[:50], return_std=True)
    np.testing.assert_array_equal(rows, np.column_stack([mean, std, *expected.predict_interval(X[:50], 0.8)]))
    assert main(["show", str(tmp_path / "m.npz")]) == 0
    assert re.search(r"^noise +0\.01$", capsys.readouterr().out, re.MULTILINE)


@each("options", [[], ["--set", "scale_target=True"]])
def test_deviations_of_several_targets(data, tmp_path, capsys, options):
    learn(data, "wave,sign", "--algorithm", "krls", "--noise", "auto", "--limit", 500, *options, "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    assert model.noise == "auto" and model.noise_ != 0.1
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--limit", "9", "--std", "--interval", "0.9"]) == 0
    headings, rows = table(capsys.readouterr().out)
    assert headings == [f"{kind} {name}" for kind in ("prediction", "std", "lower", "upper") for name in ("wave", "sign")]
    mean, std = model.predict(X[:9], return_std=True)
    np.testing.assert_array_equal(rows[:, 2:4], np.broadcast_to(std.reshape(9, -1), (9, 2)))
    np.testing.assert_array_equal(rows[:, 4:], np.hstack([*model.predict_interval(X[:9])]))
    np.testing.assert_array_equal(rows[:, :2], mean)


def test_second_order_classes(data, tmp_path, capsys):
    options = ["--algorithm", "krls", "--loss", "multiclasssquared", "--kernel", "gaussian:1", "--noise", "0.3"]
    assert learn(data, "corner", *options, "--save", tmp_path / "m") == 0
    assert float(reports(capsys.readouterr().out)[-1][1].rstrip("%")) < 10
    assert main(["predict", str(tmp_path / "m"), str(data), "--limit", "9", "--probabilities", "--std"]) == 0
    headings, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    model = load(tmp_path / "m.npz")
    assert headings == ["prediction", *(f"probability {label}" for label in model.classes_), "std"]
    labels, std = model.predict(X[:9], return_std=True)
    assert [row[0] for row in rows] == labels.tolist() and [float(row[-1]) for row in rows] == std.tolist()


def test_second_order_goes_on_bit_for_bit(data, tmp_path):
    options = ["--algorithm", "krls", "--noise", "auto", "--memory", "0.99", "--budget", 40, "--chunk", 100]
    learn(data, "wave", *options, "--save", tmp_path / "whole", "--limit", 1200)
    learn(data, "wave", *options, "--save", tmp_path / "parts", "--limit", 700)
    learn(data, "wave", *options, "--save", tmp_path / "parts", "--limit", 1200, "--resume")
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "parts.npz").read_bytes()


def test_libsvm_data_have_as_many_features_as_the_model(tmp_path, capsys):
    (tmp_path / "a.libsvm").write_text("1 1:0.5 3:1\n-1 2:1\n")
    assert main(["learn", str(tmp_path / "a.libsvm"), "--n-features", "5", *SINGLE, "--save", str(tmp_path / "m")]) == 0
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "a.libsvm")]) == 0
    assert "2 examples, 0.00% mistakes" in capsys.readouterr().err
    assert main(["learn", str(tmp_path / "a.libsvm"), "--model", str(tmp_path / "m.npz")]) == 0


def test_other_delimiters(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a;b\n1;1\n2;-1\n")
    arguments = ["learn", str(tmp_path / "a.csv"), "--target", "b", *SINGLE]
    assert main([*arguments, "--delimiter", ","]) == 1
    assert "is --delimiter ';' meant?" in capsys.readouterr().err
    assert main([*arguments, "--delimiter", ";"]) == main(arguments) == 0
    (tmp_path / "a.csv").write_text("a\tb\n1\t1\n2\t-1\n")
    for tab in ("\t", "\\t", "tab"):  # a shell has its ways with tabs
        assert main([*arguments, "--delimiter", tab]) == 0


def test_a_scaler_that_forgets(data, tmp_path, capsys):
    assert learn(data, "sign", "--scale-memory", "0.99", "--save", tmp_path / "m") == 0
    assert load(tmp_path / "m.npz").scale.memory == 0.99
    with pytest.raises(SystemExit):
        learn(data, "sign", "--scale-memory", "2")
    assert "--scale-memory must be a number in (0, 1]. Got 2" in capsys.readouterr().err


def test_very_many_columns(tmp_path, capsys):
    names = [f"a_rather_long_name_of_a_column_{i}" for i in range(4000)]
    with open(tmp_path / "wide.csv", "w") as file:
        file.write(",".join([*names, "label"]) + "\n")
        for sign in (1, -1, 1):
            file.write(",".join(["0.5"] * 4000) + f",{sign}\n")
    arguments = ["learn", str(tmp_path / "wide.csv"), "--target", "label", *SINGLE, "--features", ",".join(names)]
    assert main([*arguments, "--chunk", "1", "--limit", "2", "--save", str(tmp_path / "m")]) == 0
    assert main([*arguments, "--chunk", "1", "--resume", "--save", str(tmp_path / "m")]) == 0
    assert load(tmp_path / "m.npz").t_ == 3
    with pytest.raises(SystemExit):
        main([*arguments[:-1], ",".join(names[1:]), "--chunk", "1", "--resume", "--save", str(tmp_path / "m")])
    assert "--features must be as it was" in capsys.readouterr().err


def test_show(data, tmp_path, capsys):
    options = "--loss nu-multiclass-hinge --kernel gaussian:0.5 --offset".split()
    learn(data, "corner", *options, "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "m")]) == 0
    text = capsys.readouterr().out
    for words in ("algorithm  SILK", "kernel = Gaussian(width=0.5)", "many classes", "NE", "examples   3000",
                  "terms      ", "margin", "intercept", "columns    x, y", "read       data.csv, pass 1, line 3001", "mistakes"):
        assert words in text, words


def test_two_classes_are_not_many(data, tmp_path, capsys):
    learn(data, "word", "--loss", "multiclasshinge", "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "m")]) == 0
    assert "two classes" in capsys.readouterr().out


def test_show_leaves_room_after_long_words(data, tmp_path, capsys):
    learn(data, "wave", "--loss", "squared", "--save", tmp_path / "m")
    capsys.readouterr()
    main(["show", str(tmp_path / "m")])
    assert re.search(r"^mean absolute error  \d", capsys.readouterr().out, flags=re.MULTILINE)


def test_show_a_model_of_another_origin(tmp_path, capsys):
    SILK("squared").save(tmp_path / "m.npz")
    assert main(["show", str(tmp_path / "m.npz")]) == 0
    assert "nothing yet" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "m.npz"), "-"]) == 1
    assert "has not learned anything" in capsys.readouterr().err


# ---- Errors, help, exit status -------------------------------------------------------------------


@each(
    "arguments, message",
    [
        (["learn", "missing.csv", "--target", "y"], "learn: missing.csv: No such file or directory"),
        (["learn", "{data}", "--target", "nothing"], "--target must be a column, one of 'x'"),
        (["learn", "{data}", "--target", "sign", "--no-encode"], "data.csv, line 2, column 'word': expected a number. Got"),
        (["learn", "{data}", "--target", "sign", "--no-encode"],
         "(--features A,B,... leaves columns out, --on-error skip such rows.)"),
        (["learn", "{data}", "--target", "corner", *SINGLE, "--features", "x,y"], "Use --loss multiclasshinge for many classes"),
        (["learn", "{data}", "--target", "wave", *SINGLE, "--features", "x,y"], "is a number, and --loss hinge learns classes."),
        (["learn", "{data}", "--target", "sign", "--features", "x", "--save", "no/m"], "no: there is no such folder"),
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
        (["learn", "{data}", "--kernel", "gausian"], "kernel must be one of"),
        (["learn", "{data}", "--chunk", "0"], "must be at least 1"),
        (["learn", "{data}", "--checkpoint", "10"], "--checkpoint needs --save"),
        (["learn", "{data}", "--resume"], "--resume needs --save"),
        (["learn", "-", "--epochs", "2"], "--epochs must be 1 for standard input"),
        (["learn", "{data}", "--algorithm", "perceptron", "--loss", "hinge"], "Perceptron has no parameter 'loss'"),
        (["learn", "{data}", "--set", "nonsense=1"], "has no parameter 'nonsense'"),
        (["learn", "{data}", "--step", "-1"], "'step' parameter of SILK"),
        (["learn", "{data}", "--kernel", "gaussian:-1"], "'width' parameter of Gaussian"),
        (["learn", "data.txt"], "data must be a file that ends in one of"),
        (["learn", "data.libsvm"], "--n-features must be"),
        (["learn", "{data}", "--features", "x,,y"], "names of columns"),
        (["predict", "m.npz"], "required"),
        (["show"], "required"),
    ],
)
def test_wrong_arguments_have_status_2(data, arguments, message, capsys):
    features = ["--features", "x,y"] if "{data}" in arguments else []
    with pytest.raises(SystemExit) as end:
        main([argument.format(data=data) for argument in arguments] + features)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@each("command", ["learn", "predict", "show"])
def test_help_teaches_with_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text and f"python -m onlinekernels {command} " in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_help_of_all_names_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(command in text for command in ("demo", "learn", "predict", "show"))


def test_the_examples_of_the_help_parse(capsys):
    from onlinekernels.__main__ import _parser
    from onlinekernels.commandline import learning, predicting, showing

    for module in (learning, predicting, showing):
        lines = " ".join(module.EXAMPLES).replace("\\ ", " ").split("exit status")[0]
        for command in re.split(r"python -m onlinekernels", lines)[1:]:
            words = re.split(r"tail -f|>", command)[0].split()
            assert _parser().parse_args(words).run


def test_a_bad_row_leaves_the_rest_saved(tmp_path, capsys):
    rows = [f"{a!r},{b!r},{t}" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True)]
    rows[1500] = "oops"
    path, model = tmp_path / "a.csv", str(tmp_path / "m.npz")
    path.write_text("\n".join(rows))
    arguments = ["learn", str(path), "--target", "2", *SINGLE, "--chunk", "100", "--save", model]
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert "a.csv, line 1501: expected 3 fields. Got 1 instead. The 1500 examples before it are saved" in err
    assert load(model).t_ == 1500
    rows[1500] = "0,0,1"  # mended
    path.write_text("\n".join(rows))
    assert main([*arguments, "--resume"]) == 0
    assert load(model).t_ == 3000
    rows[1500] = "oops"
    path.write_text("\n".join(rows))
    assert main([*arguments, "--on-error", "skip"]) == 0
    assert "Skipped bad rows: 1." in capsys.readouterr().err


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


def test_values_that_are_too_large_for_a_kernel_end_in_one_line(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("1,2\n1e300,1e-3\n")
    arguments = ["learn", str(tmp_path / "a.csv"), "--target", "1", "--loss", "squared", "--algorithm", "norma"]
    assert main([*arguments, "--kernel", "polynomial:3", "--save", str(tmp_path / "m")]) == 1
    err = capsys.readouterr().err
    assert "too large for the kernel" in err and err.count("\n") == 1
    assert not (tmp_path / "m.npz").exists()  # a part of a chunk has no place in the stream
