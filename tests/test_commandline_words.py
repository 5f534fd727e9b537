"""What the commands say: reports in JSON, closing lines, errors that name a way out, names of programs."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import each
from command_line import SINGLE, WAVE, X, Y, learn, reports, write_table

import onlinekernels
from onlinekernels import (
    KRLS,
    SILK,
    SVMD,
    Gaussian,
    Linear,
    Normalized,
    Nystroem,
    Polynomial,
    RandomFourier,
    OnlineKernelClassifier,
    RunningEncoder,
    evaluate,
    load,
)
from onlinekernels.__main__ import main
from onlinekernels.commandline import specifications


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "data.csv")


def refused(arguments, capsys):
    """What is said of arguments that are refused with status 2."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    return capsys.readouterr().err


# ---- Reports -------------------------------------------------------------------------------------


def test_reports_in_json_are_those_of_the_table(data, tmp_path, capsys):
    options = ("--report", 1000, "--chunk", 500, "--save", tmp_path / "m.npz")
    learn(data, "sign", *options)
    rows = reports(capsys.readouterr().out)
    learn(data, "sign", *options, "--json")
    *lines, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert end == {"saved": str(tmp_path / "m.npz"), "skipped": 0}
    assert [str(line["examples"]) for line in lines] == [row[0] for row in rows] == ["1000", "2000", "3000"]
    for line, row in zip(lines, rows, strict=True):
        rates, others = ["mistakes", "mistakes_lately", "constant_mistakes"], ["f1", "auc"]
        assert list(line) == ["examples", *rates, *others, "terms", "microseconds"]
        shown = [f"{line[name]:.2%}" for name in rates] + [f"{line[name]:.3f}" for name in others]
        assert [*shown, str(line["terms"])] == row[1:7]


def test_what_stands_beside_the_models_errors(data, tmp_path, capsys):
    """A constant that knows all rows before each, F1, and AUC up to rounding; the same for a run that was interrupted."""
    *lines, _ = said(data, "sign", tmp_path / "a", capsys)
    expected = evaluate.progressive(SILK(), (X, Y))
    leaders = [np.sign(Y[:t].sum()) or Y[:t][0] for t in range(1, 3000)]  # never a tie that matters: see below
    ties = [Y[:t].sum() == 0 for t in range(1, 3000)]
    wrong = np.sum((leaders != Y[1:]) & ~np.array(ties)) + 1
    assert wrong <= 3000 * lines[-1]["constant_mistakes"] <= wrong + np.sum(ties)
    assert lines[-1]["f1"] == expected.f1 and abs(lines[-1]["auc"] - expected.auc) < 1e-3
    *lines, _ = said(data, "wave", tmp_path / "b", capsys, "--loss", "squared")
    errors = WAVE - np.concatenate([[0.0], np.cumsum(WAVE)[:-1] / np.arange(1, 3000)])
    figures = [lines[-1]["constant_mean_absolute_error"], lines[-1]["constant_squared_error"]]
    np.testing.assert_allclose(figures, [np.abs(errors).mean(), (errors**2).mean()])
    *lines, _ = said(data, "corner", tmp_path / "c", capsys, "--loss", "multiclasshinge")
    assert 0.6 < lines[-1]["constant_mistakes"] < 0.8 and not {"f1", "auc"} & set(lines[-1])
    *lines, _ = said(data, "sign", tmp_path / "d", capsys, "--loss", "novelty")
    assert not [name for name in lines[-1] if "constant" in name]
    for target, loss, whole in (("sign", "hinge", "a"), ("wave", "squared", "b"), ("corner", "multiclasshinge", "c")):
        said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--limit", 1000)
        _, *lines, _ = said(data, target, tmp_path / "parts", capsys, "--loss", loss, "--resume")
        *once, _ = said(data, target, tmp_path / whole, capsys, "--loss", loss)
        for name, value in once[-1].items():
            if "lately" not in name and name != "microseconds":
                assert lines[-1][name] == value, name
        (tmp_path / "parts.npz").unlink()


def said(data, target, path, capsys, *options):
    """The lines of JSON that a run of learn prints."""
    assert learn(data, target, "--json", "--chunk", 500, "--save", path, *options) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_of_numbers_and_of_resumed_runs(data, tmp_path, capsys):
    options = ("--loss", "squared", "--json", "--chunk", 500, "--save", tmp_path / "m", "--resume")
    learn(data, "wave", *options, "--limit", 1000)
    model = SILK("squared")
    errors = WAVE[:1000] - np.concatenate([model.progressive(X[i : i + 500], WAVE[i : i + 500]) for i in (0, 500)])
    line = json.loads(capsys.readouterr().out.splitlines()[0])
    np.testing.assert_allclose(
        [line["mean_absolute_error"], line["squared_error"], line["squared_error_lately"]],
        [np.abs(errors).mean(), (errors**2).mean(), (errors**2).mean()],
    )
    for _ in range(2):
        learn(data, "wave", *options)
        first, *_, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"file": str(data), "after_line": 3001} and end["skipped"] == 0


def test_json_has_no_nan(data, tmp_path, capsys):
    """A resumed run that learns nothing has no figures since the last report: null, as JSON has no NaN."""
    options = ("--json", "--save", tmp_path / "m", "--resume")
    for _ in range(2):
        capsys.readouterr()
        learn(data, "sign", *options)
    report = json.loads(capsys.readouterr().out.splitlines()[1])
    assert report["mistakes"] > 0 and report["mistakes_lately"] is None and report["microseconds"] is None


def test_no_two_columns_have_one_name(data, capsys):
    for target, loss in (("wave", "squared"), ("sign", "hinge"), ("sign", "novelty")):
        learn(data, target, "--loss", loss, "--limit", 100)
        heading = capsys.readouterr().out.splitlines()[0]
        names = [name.strip() for name in heading.split("  ") if name.strip()]
        assert len(names) == len(set(names)), names
        assert "examples" in names and any("lately" in name for name in names)


def test_without_save_a_closing_line_says_so(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 100)
    assert capsys.readouterr().err == "Nothing was kept: --save FILE keeps the model.\n"
    learn(data, "sign", "--limit", 100, "--save", tmp_path / "m")
    assert capsys.readouterr().err == ""


def test_a_rare_class_that_is_never_found_is_said_so(tmp_path, capsys):
    path = tmp_path / "rare.csv"
    path.write_text("a,y\n" + "".join(f"{a:.3f},{'odd' if i % 25 == 24 else 'even'}\n" for i, a in enumerate(X[:400, 0])))
    hint = "--set threshold=f1"
    assert main(["learn", str(path), "--effort", "low"]) == 0
    assert hint in capsys.readouterr().err
    assert main(["learn", str(path), "--effort", "low", "--set", "threshold=f1"]) == 0
    assert hint not in capsys.readouterr().err


def test_predictions_are_counted_in_json(data, tmp_path, capsys):
    learn(data, "wave", "--loss", "squared", "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--target", "wave", "--json"]) == 0
    said = json.loads(capsys.readouterr().err)
    errors = load(tmp_path / "m.npz").predict(X) - WAVE
    assert said["examples"] == 3000 and said["skipped"] == 0
    np.testing.assert_allclose(said["mean_absolute_error"], np.abs(errors).mean())


def test_show_in_json(data, tmp_path, capsys):
    learn(data, "corner", "--loss", "multiclasshinge", "--kernel", "gaussian:0.5", "--save", tmp_path / "m")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "m"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    model = load(tmp_path / "m.npz")
    assert facts["algorithm"] == "SILK" and facts["parameters"]["kernel"] == "Gaussian(width=0.5)"
    assert facts["classes"] == model.classes_.tolist() and facts["norm"] == model.norm_
    assert facts["examples"] == 3000 and facts["columns"] == ["x", "y"] and 0 < facts["while_learning"]["mistakes"] < 1


# ---- Models --------------------------------------------------------------------------------------


@each(
    "text, expected",
    [
        ("normalized:linear", Normalized(Linear())),
        ("normalized:polynomial:degree=2,bias=0.5", Normalized(Polynomial(degree=2, bias=0.5))),
        ("2*normalized:linear + gaussian:3", 2 * Normalized(Linear()) + Gaussian(3)),
        ("normalized:(0.5*linear + gaussian:3)", Normalized(0.5 * Linear() + Gaussian(3))),
        ("nystroem:linear", Nystroem(Linear())),
        ("fourier:400:gaussian:3 + 0.5*linear", RandomFourier(Gaussian(3), 400) + 0.5 * Linear()),
        ("random-fourier:size=40,seed=2:gaussian", RandomFourier(Gaussian(), 40, seed=2)),
        ("2*nystroem:size=30:(gaussian:3+linear)", 2 * Nystroem(Gaussian(3) + Linear(), 30)),
        ("0.5*(linear+gaussian:3) + linear", 0.5 * (Linear() + Gaussian(3)) + Linear()),
    ],
)
def test_normalized_kernels_and_parentheses(text, expected):
    assert repr(specifications.kernel(text)) == repr(expected)


@each("text", ["normalized", "normalized:", "(linear", "normalized:nothing", "nystroem", "fourier:400",
               "nystroem:300:nothing"])
def test_kernels_that_are_not_complete(text):
    with pytest.raises(ValueError, match="must|needs"):
        specifications.kernel(text)


def test_a_normalized_kernel_learns(data, tmp_path):
    assert learn(data, "sign", "--kernel", "normalized:polynomial:2", "--chunk", 3000, "--save", tmp_path / "m") == 0
    expected = SILK(kernel=Normalized(Polynomial(2))).partial_fit(X, Y)
    assert (load(tmp_path / "m.npz").dual_coef_ == expected.dual_coef_).all()


def test_the_step_may_change_on_a_model(data, tmp_path, capsys):
    learn(data, "sign", "--chunk", 3000, "--save", tmp_path / "a")
    options = ["--step", "0.25", "--regularization", "0.1", "--penalty", "0.5"]
    assert learn(data, "sign", "--chunk", 3000, "--model", tmp_path / "a.npz", *options, "--save", tmp_path / "b") == 0
    expected = SILK().partial_fit(X, Y).set_params(step=0.25, regularization=0.1, penalty=0.5).partial_fit(X, Y)
    model = load(tmp_path / "b.npz")
    assert (model.dual_coef_ == expected.dual_coef_).all() and model.step == 0.25
    arguments = ["learn", data, "--target", "sign", "--model", tmp_path / "a.npz"]
    for change, message in ((["--step", "-1"], "'step' parameter"), (["--kernel", "linear"], "cannot be given with")):
        assert message in refused([*arguments, *change], capsys)


def test_what_an_algorithm_has_of_its_own_may_change_on_a_model(data, tmp_path, capsys):
    """As far as `set_params` on a fitted model lets it."""
    cases = [
        ("krls", KRLS(budget=30), {"noise": 0.5}, [("--memory", 0.9), ("--set", "tolerance=0.1"), ("--tolerance", 0.1)]),
        ("svmd", SVMD("squared", budget=30), {"memory": 0.8, "meta_step": 0.02}, [("--set", "offset=True"), ("--noise", 1)]),
    ]
    for name, model, changes, refusals in cases:
        begin = ["--algorithm", name, "--loss", "squared", "--budget", 30, "--chunk", 500, "--limit", 500]
        learn(data, "wave", *begin, "--save", tmp_path / "a")
        model.partial_fit(X[:500], WAVE[:500]).set_params(**changes).partial_fit(X[:500], WAVE[:500])
        options = []
        for key, value in changes.items():
            options += [f"--{key}", value] if key in ("noise", "memory") else ["--set", f"{key}={value}"]
        going_on = [*begin[-4:], "--model", tmp_path / "a.npz"]
        assert learn(data, "wave", *going_on, *options, "--save", tmp_path / "b") == 0
        np.testing.assert_array_equal(load(tmp_path / "b.npz").predict(X[:50]), model.predict(X[:50]))
        for option in refusals:
            capsys.readouterr()
            arguments = ["learn", data, "--features", "x,y", "--target", "wave", *going_on, *option]
            message = refused(arguments, capsys)
            assert "cannot be given with --model" in message or "has no parameter" in message


def test_probabilities_need_a_logistic_loss(data, tmp_path, capsys):
    learn(data, "sign", "--limit", 100, "--save", tmp_path / "m")
    capsys.readouterr()
    assert "learn with --loss logistic" in refused(["predict", tmp_path / "m", data, "--probabilities"], capsys)


def test_probabilities(data, tmp_path, capsys):
    learn(data, "corner", "--loss", "multiclasslogistic", "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(data), "--probabilities", "--limit", "5"]) == 0
    heading, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert heading == ["prediction", *(f"probability {label}" for label in model.classes_)]
    np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows], model.predict_proba(X[:5]))


def test_deviations_need_second_order(data, tmp_path, capsys):
    learn(data, "wave", "--loss", "squared", "--limit", 100, "--save", tmp_path / "m")
    for option in (["--std"], ["--interval", "0.9"]):
        assert "with --algorithm krls" in refused(["predict", tmp_path / "m", data, *option], capsys)
    learn(data, "word", "--algorithm", "krls", "--loss", "multiclasssquared", "--limit", 100, "--save", tmp_path / "m")
    assert "MulticlassSquared()" in refused(["predict", tmp_path / "m", data, "--interval", "0.9"], capsys)
    assert "must be a number in (0, 1). Got 1.5" in refused(["predict", tmp_path / "m", data, "--interval", "1.5"], capsys)
    arguments = ["learn", data, "--target", "wave", "--algorithm", "krls"]
    assert "'noise' parameter of KRLS" in refused([*arguments, "--noise", "-1"], capsys)
    assert "'memory' parameter of KRLS" in refused([*arguments, "--memory", "1.5"], capsys)
    assert "SILK has no parameter 'noise'" in refused([*arguments[:-2], "--noise", "0.1"], capsys)


# ---- Errors that name a way out ------------------------------------------------------------------


def test_without_a_target_it_is_the_last_column(data, tmp_path, capsys):
    assert main(["learn", str(data), "--loss", "squared", "--limit", "50", "--save", str(tmp_path / "m")]) == 0
    assert capsys.readouterr().err == "The target is the last column; --target COLUMN names another.\n"
    assert list(load(tmp_path / "m.npz").feature_names_in_) == ["x", "y", "sign", "word", "corner"]
    assert main(["learn", str(data), "--loss", "novelty", "--features", "x,y", "--limit", "50"]) == 0
    assert "target" not in capsys.readouterr().err


def test_words_in_a_column(data, tmp_path, capsys):
    assert main(["learn", str(data), "--target", "sign", "--no-encode"]) == 1
    assert (
        "data.csv, line 2, column 'word': expected a number. Got 'no' instead. "
        "(--features A,B,... leaves columns out, --on-error skip such rows.)"
    ) in capsys.readouterr().err
    assert main(["learn", str(data), "--target", "sign", *SINGLE]) == 0


RETURNS = Path(__file__).parent.parent / "docs" / "examples" / "returns.csv"


def test_a_table_as_it_comes(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("make_returns", RETURNS.with_name("make_returns.py"))
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    rows = [row.split(",")[0] for row in RETURNS.read_text(encoding="utf-8").splitlines()]
    assert rows == [row[0] for row in made.orders()]  # it is what the script writes
    options = ["--loss", "logistic", "--kernel", "linear", "--save", str(tmp_path / "m")]
    assert main(["learn", str(RETURNS), "--json", *options]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[0])
    assert said["examples"] == 600 and said["auc"] > 0.8
    model = load(tmp_path / "m.npz")
    assert model.scale is True and model.encoder_.kinds_ == {
        "ordered": "date", "price": "number", "weight": "number", "kind": "word", "channel": "word", "city": "word", "member": "word"}
    assert "Saint-Denis, La Réunion" in model.encoder_.words_["city"]
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    y = [row.pop("returned") for row in table]
    expected = SILK("logistic", "linear", scale=True, encode=RunningEncoder(columns=list(table[0])))
    expected.partial_fit(table, y, classes=["no", "yes"])
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(table), atol=1e-9)
    # columns in another order, some of them others, and one chunk after another, are the same table
    wanted = ["city", "member", "other", "kind", "channel", "ordered", "weight", "price"]
    with open(tmp_path / "new.tsv", "w", encoding="utf-8") as file:
        for row in [dict(zip(wanted, wanted)), *table]:
            print(*(row.get(name, "?") for name in wanted), sep="\t", file=file)
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "new.tsv"), "--chunk", "7"]) == 0
    assert capsys.readouterr().out.split() == model.predict(table).tolist()
    for chunk in (["--limit", "300", "--chunk", "100"], ["--resume", "--chunk", "100"]):
        assert main(["learn", str(RETURNS), *options[:-1], str(tmp_path / "n"), "--checkpoint", "100", *chunk]) == 0
    np.testing.assert_allclose(load(tmp_path / "n.npz").decision_function(table), model.decision_function(table), atol=1e-9)


def test_a_word_among_numbers_is_an_error_that_names_the_place(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("code;when;kind\n1;2024-01-01;a\n2;;b\nB3;2024-01-02;a\n4;today;b\n")
    assert main(["learn", str(path), *SINGLE]) == 1
    assert "a.csv, line 4, column 'code': expected a number, as in rows before. Got 'B3' instead. (--features A,B" in (
        capsys.readouterr().err)
    assert main(["learn", str(path), *SINGLE, "--on-error", "skip"]) == 0
    assert "Skipped bad rows: 2." in capsys.readouterr().err


def test_numbers_as_labels(data, capsys):
    for options in ([], ["--loss", "multiclasshinge"]):
        assert learn(data, "wave", *options) == 1
        assert "data.csv, line 2: the target -" in (err := capsys.readouterr().err) and "or --loss squared" in err
    assert learn(data, "corner") == 1
    assert "--loss hinge is for two. Use --loss multiclasshinge for many classes, --loss squared for numbers, or neither" in (
        capsys.readouterr().err
    )


def test_labels_that_begin_with_one(tmp_path):
    """The label 1 alone leaves open whether its counterpart is 0 or -1."""
    for other in (0, -1):
        (tmp_path / "a.csv").write_text(f"1,1\n2,1\n3,1\n4,{other}\n5,1\n")
        arguments = ["learn", str(tmp_path / "a.csv"), "--target", "1", *SINGLE, "--chunk", "2"]
        assert main([*arguments, "--save", str(tmp_path / "m")]) == 0
        assert load(tmp_path / "m.npz").classes_.tolist() == [other, 1]
    (tmp_path / "a.csv").write_text("1,1\n2,1\n3,2\n")
    assert main(arguments) == 1


def test_utf_16_files(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    assert main(["learn", str(tmp_path / "a.csv"), "--target", "b"]) == 1
    assert "a.csv is not UTF-8 text: it looks like UTF-16" in capsys.readouterr().err


@each("options", [SINGLE, ["--scale"], [*SINGLE, "--chunk", "2"], [*SINGLE, "--chunk", "1"], ["--effort", "low"]])
def test_a_value_that_is_too_large_is_blamed_on_its_line(tmp_path, options, capsys):
    for row in (0, 3, 5):
        lines = [f"{i},{i},{i % 2}" for i in range(8)]
        lines[row] = f"1e200,1,{row % 2}"
        (tmp_path / "a.csv").write_text("a,b,c\n\n" + "\n".join(lines) + "\n")
        assert main(["learn", str(tmp_path / "a.csv"), "--target", "c", *options]) == 1
        err = capsys.readouterr().err
        assert f"a.csv, line {row + 3}, " in err and "too large" in err and err.count("\n") == 1 + ("--effort" in options)


def test_unknown_options_print_the_usage_of_their_command(data, capsys):
    for command, arguments in (("learn", [data]), ("predict", ["m", data]), ("show", ["m"]), ("demo", [])):
        said = refused([command, *arguments, "--kernal", "linear"], capsys)
        assert said.startswith(f"usage: python -m onlinekernels {command} ")
        assert "unrecognized arguments: --kernal" in said
        assert ("(is --kernel meant?)" in said) == ("meant" in said) == (command == "learn")


# ---- Programs ------------------------------------------------------------------------------------


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"onlinekernels {onlinekernels.__version__}\n"


def test_the_script_is_called_by_its_name(monkeypatch, capsys):
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
    module, _, function = tomllib.loads(project.read_text())["project"]["scripts"]["onlinekernels"].partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    environment = {**os.environ, "PYTHONPATH": str(project.parent)}
    result = subprocess.run([sys.executable, "-c", code, "--version"], env=environment, capture_output=True, text=True)
    assert result.stdout == f"onlinekernels {onlinekernels.__version__}\n" and result.returncode == 0


def test_hints_to_install_name_packages_that_exist():
    """From a checkout or an sdist, `pip install "onlinekernels[plot]"` would look for a package of that name."""
    for path in Path(onlinekernels.__file__).parent.rglob("*.py"):
        assert "onlinekernels[" not in path.read_text(), path


# ---- The front door ------------------------------------------------------------------------------


def test_the_target_says_who_learns(data, tmp_path, capsys):
    """Words and few whole numbers are classes, other numbers are numbers, and nothing is for the detector."""
    def learned(*options):
        model = str(tmp_path / "m.npz")
        assert main(["learn", str(data), "--effort", "low", "--features", "x,y", "--limit", "120", "--save", model, *options]) == 0
        return type(load(model)).__name__, capsys.readouterr().err

    for target, kind, words in (("word", "Classifier", "words: classes"), ("corner", "Classifier", "words: classes"),
                                ("sign", "Classifier", "2 different whole numbers in 120 rows: classes"),
                                ("wave", "Regressor", "numbers"), ("none", "Detector", "no target"),
                                ("wave,sign", "Regressor", "several targets")):
        name, said = learned("--target", target)
        assert name == "OnlineKernel" + kind and said.startswith(name + " learns ") and words in said and said.count("\n") == 1
        assert "--target COLUMN (or none), --effort and --algorithm choose otherwise." in said
    assert learned() == ("OnlineKernelRegressor", "OnlineKernelRegressor learns the last column, whose values are numbers. --target "
                         "COLUMN (or none), --effort and --algorithm choose otherwise.\n")
    assert learned("--target", "sign", "--algorithm", "onlinekernelregressor") == ("OnlineKernelRegressor", "")
    assert learned("--target", "wave", "--label-type", "string")[0] == "OnlineKernelClassifier"
    np.savez(tmp_path / "a.npz", X=X[:200])
    assert main(["learn", str(tmp_path / "a.npz"), "--effort", "low"]) == 0
    assert capsys.readouterr().err.startswith("OnlineKernelDetector learns all columns")
    assert "'effort' parameter" in refused(["learn", data, "--set", "effort=most"], capsys)
    assert "SILK has no parameter 'effort'" in refused(["learn", data, "--kernel", "linear", "--effort", "low"], capsys)
    assert "--effort cannot be given with --model" in refused(["learn", data, "--model", tmp_path / "m.npz", "--effort", "low"], capsys)


def test_a_table_without_any_option(tmp_path, capsys):
    """Words, dates and empty fields; then as of now, by intervals, and on with it."""
    model = tmp_path / "m.npz"
    assert main(["learn", str(RETURNS), "--json", "--effort", "low", "--save", str(model)]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[0])
    assert said["examples"] == 600 and said["auc"] > 0.75 and said["mistakes"] < said["constant_mistakes"] and 0 < said["f1"] < 1
    with open(RETURNS, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    y = [row.pop("returned") for row in table]
    expected = OnlineKernelClassifier("low", encode=RunningEncoder(columns=list(table[0]))).partial_fit(table, y)
    np.testing.assert_allclose(load(model).predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert main(["predict", str(model), str(RETURNS), "--target", "returned", "--probabilities"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("prediction,probability no,probability yes\n") and "600 examples, " in said.err
    assert main(["show", str(model)]) == 0
    assert "OnlineKernelClassifier" in (said := capsys.readouterr().out) and "near 500" in said
    for part in (["--limit", "300"], ["--resume"]):  # the choice is taken up again, and the figures go on
        assert main(["learn", str(RETURNS), "--effort", "low", "--save", str(tmp_path / "n"), "--chunk", "100", *part]) == 0
    np.testing.assert_allclose(load(tmp_path / "n.npz").predict_proba(table), expected.predict_proba(table), atol=1e-9)
    assert reports(capsys.readouterr().out)[-1][0] == "600"
    numbers = ["learn", str(RETURNS), "--target", "price", "--on-error", "skip", "--effort", "low", "--save", str(model)]
    assert main(numbers[:4]) == 1 and "Got an empty field instead. (--on-error skip leaves such rows out.)" in capsys.readouterr().err
    assert main(numbers) == 0 and main(["predict", str(model), str(RETURNS), "--std", "--interval", "0.9"]) == 0
    assert "prediction,std,lower,upper\n" in capsys.readouterr().out


def test_live_input_says_who_learns(tmp_path, monkeypatch, capsys):
    """Words and fractions say it at once; whole numbers are waited for, and learned in one."""
    def learned(labels, pieces):
        out, into = os.pipe()
        with os.fdopen(out) as stdin, os.fdopen(into, "w") as pipe:
            monkeypatch.setattr(sys, "stdin", stdin)
            pipe.writelines(f"{a!r},{b!r},{label}\n" for (a, b), label in zip(X.tolist(), labels))
            pipe.close()
            arguments = ["learn", "-", "--effort", "low", "--chunk", "10", "--report", "1", "--save", str(tmp_path / "m")]
            assert main(arguments) == 0
        said = capsys.readouterr()
        assert [int(row[0]) for row in reports(said.out)][:2] == pieces
        return type(load(tmp_path / "m.npz")).__name__ if said.err.count("\n") == 1 else said.err

    assert learned(["a", "b"] * 60, [10, 20]) == "OnlineKernelClassifier"
    assert learned([1.5, 2, 3] * 20, [10, 20]) == "OnlineKernelRegressor"
    assert learned([1, 2, 3] * 50, [100, 110]) == "OnlineKernelClassifier"
    assert learned([1, 0] * 15, [30]) == "OnlineKernelClassifier"
    assert learned(range(130), [100, 110]) == "OnlineKernelRegressor"
