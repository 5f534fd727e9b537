"""Progressive validation against plain loops; comparison, tuning on executors, plots, the page's recipes."""
import copy
import multiprocessing
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import evaluate
from onlinekernels.losses import LOSSES
from onlinekernels.streams import drifting_gaussians

KERNEL = ok.Gaussian(1.0)
TREE = ok.Taxonomy({"a": "top", "b": "top", "c": "side", "d": "side", "top": "root", "side": "root"})


def data(task, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if task == "binary":
        return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    if task == "multiclass":
        # "d" joins late.
        corner = (X[:, 0] > 0) + 2 * (X[:, 1] > 0) * (np.arange(n) > n // 3)
        return X, np.array(["b", "a", "c", "d"])[corner]
    if task == "regression":
        return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
    return X, None


def model_for(name):
    loss = LOSSES[name]()
    return ok.NORMA(loss, KERNEL, step=0.3, labels=TREE if loss.structured else None)


# ---- Against a plain loop ----


def loop(model, X, y, delay=0):
    """(errors, margins) of a model that learns example t - delay after it has predicted example t."""
    errors, margins, loss = [], [], model._current_loss()
    for t, x in enumerate(X):
        fresh, name = not hasattr(model, "t_"), loss.scalar_name
        margins.append(np.nan if name is None else getattr(loss, name) if fresh else getattr(model, name + "_"))
        if loss.task == "novelty":
            errors.append((0.0 if fresh else model.score_samples([x])[0]) < margins[-1])
        elif loss.task == "regression":
            errors.append(abs(y[t] - (0.0 if fresh else model.predict_one(x))))
        else:
            errors.append(fresh or model.predict_one(x) != y[t])
        if t >= delay:
            model.learn_one(X[t - delay], None if y is None else y[t - delay])
    for t in range(max(0, len(X) - delay), len(X)):
        model.learn_one(X[t], y[t])
    return np.array(errors, dtype=float), np.array(margins)


@each("name, delay", [(name, 0) for name in sorted(LOSSES)] + [(name, [1, 7, 149, 150, 500][i % 5]) for i, name
                                                               in enumerate(sorted(LOSSES)) if "novelty" not in name])


def test_errors_are_those_of_a_loop(name, delay):
    model, first = model_for(name), int(delay == 0 and "graph" in name)  # of fixed labels the first may be guessed
    X, y = data(model.loss.task)
    twin = copy.deepcopy(model)
    expected, margins = loop(twin, X, y, delay)
    report = evaluate.progressive(model, X if y is None else (X, y), window=40, chunk=1, delay=delay)
    come = max(0, 150 - delay)  # before the stream ended
    assert report.history["examples"].tolist() == list(dict.fromkeys([*range(1, come + 1), 150]))
    errors = np.diff(report.history["error"] * report.history["examples"], prepend=0.0)
    np.testing.assert_allclose(errors[first:come], expected[first:come], atol=1e-9)
    np.testing.assert_allclose(report.error * 150 - errors[:first].sum(), expected[first:].sum(), rtol=1e-9)
    np.testing.assert_allclose(report.window_error, expected[-40:].mean(), rtol=1e-9)
    if delay == 0:
        np.testing.assert_allclose(report.history["margin"][:-1], margins[1:], rtol=1e-9)
    assert report.history["terms"][-1] == report.terms == model.n_terms_ and report.step == model.step_
    score = "predict" if model.loss.task == "regression" else "decision_function"
    np.testing.assert_allclose(getattr(model, score)(X), getattr(twin, score)(X), rtol=1e-9, atol=1e-12)


def test_labels_that_join_late_and_labels_in_another_order():
    """A class to come is never predicted, though its score of 0 beats negative ones."""
    X, y = np.random.default_rng(1).normal(size=(60, 3)), np.repeat(["a", "b", "c"], 20)
    y[:40] = np.random.default_rng(2).permutation(y[:40])
    rows, letters = data("multiclass")
    letters[:4] = ["c", "a", "d", "b"]  # sorted order and order of appearance differ, and so do the ways between them
    fitted = ok.NORMA("multiclasshinge", KERNEL, step=0.3).fit(rows, letters)
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    for model, stream in ((ok.NORMA("multiclasslogistic", "linear", step=2.0), (X, y)), (fitted, (rows, letters))):
        errors, _ = loop(copy.deepcopy(model), *stream)
        assert evaluate.progressive(model, stream).mistakes == errors.sum() < 0.8 * len(errors)


# ---- Streams ----


def forms_of(X, y):
    def pieces(*lengths):
        begin = 0
        while begin < len(X):
            for length in lengths:
                yield X[begin : begin + length], y[begin : begin + length]
                begin += length

    return {"lists": (X.tolist(), y.tolist()), "list of chunks": list(pieces(30, 1, 0, 7)), "generator": pieces(1),
            "function": lambda: pieces(64), "one chunk": [(X, y)], "chunks as lists": [[X[:70], y[:70]], [X[70:],
                                                                                                          y[70:]]],}


@each("form", forms_of(*data("binary")))
@each("name", ["hinge", "nuhinge"])
def test_the_form_of_the_stream_makes_no_difference(form, name):
    X, y = data("binary")
    expected = evaluate.progressive(model_for(name), (X, y), chunk=20, window=33).history
    history = evaluate.progressive(model_for(name), forms_of(X, y)[form], chunk=20, window=33).history
    assert history["examples"].tolist() == [20, 40, 60, 80, 100, 120, 140, 150]
    for column in set(history.dtype.names) - {"seconds"}:
        np.testing.assert_allclose(history[column], expected[column], atol=1e-9, err_msg=column)


@each("kind", ["csr_matrix", "csc_array"])
def test_sparse_streams_and_data_frames(kind):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = data("binary")
    X[X < 0.5] = 0.0
    rows = getattr(sparse, kind)(X)
    expected = evaluate.progressive(model_for("hinge"), (X, y))
    for stream in ((rows, y), [(rows.tocsr()[:70], y[:70]), (rows.tocsr()[70:], y[70:])]):
        report = evaluate.progressive(model_for("hinge"), stream)
        assert (report.mistakes, report.terms) == (expected.mistakes, expected.terms)
    assert evaluate.tune(model_for("hinge"), [{"step": 0.3}], (rows, y)).best_value == expected.error
    alone = [evaluate.progressive(model_for("novelty"), stream).alerts
             for stream in (X, rows, (X[i : i + 11] for i in range(0, len(X), 11)))]
    assert alone[0] == alone[1] == alone[2] > 0
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert evaluate.progressive(model_for("hinge"), (frame, pandas.Series(y))).mistakes == expected.mistakes


# ---- Reports and comparisons ----


def test_comparing_is_running_each():
    text = str(evaluate.progressive(ok.NORMA(ok.Insensitive(0.2), KERNEL), data("regression")))
    assert re.search(r"mean absolute error +0\.\d+ +0\.\d+\n", text)
    assert "last 150" in text and text.endswith(", width 0.2")
    X, y = data("binary")
    models = {"b": ok.Perceptron(KERNEL), "a": ok.SILK(None, KERNEL), "c": ok.SILK("multiclasshinge", KERNEL)}
    alone = {name: evaluate.progressive(copy.deepcopy(model), (X, y)) for name, model in models.items()}
    chunks = ((X[i : i + 13], y[i : i + 13]) for i in range(0, len(X), 13))
    comparison = evaluate.compare(models, chunks)
    errors = [report.error for report in comparison.reports.values()]
    assert errors == sorted(errors)
    assert comparison.best == next(iter(comparison.reports))
    for name in models:
        assert comparison[name].mistakes == alone[name].mistakes
        assert comparison[name].terms == alone[name].terms
    lines = str(comparison).splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(comparison.reports)
    assert {len(line) for line in lines} == {len(lines[0])}


# ---- What is refused ----

BINARY = data("binary")
ONE = ok.NORMA()  # never learns


@each(
    "call, kind, message",
    [
        *(
            (lambda stream=stream: evaluate.progressive(ONE, stream), kind, message)
            for stream, kind, message in [
                (7, TypeError, r"stream must be \(X, y\), an array X, or an iterable of such chunks. Got int"),
                ("file.csv", TypeError, "Got str instead"),
                ([], ValueError, "stream must hold at least one example"),
                ((np.zeros((0, 2)), []), ValueError, "stream must hold at least one example"),
                ([(1, 2, 3)], TypeError, r"pairs \(X, y\) or arrays X. Got a tuple of length 3"),
                ((np.zeros((3, 1)), [1, -1]), ValueError, "inconsistent numbers of samples: X has 3, y has 2"),
                (np.zeros((3, 1)), ValueError, "requires y"),
            ]
        ),
        *(
            (lambda name=name, value=value: evaluate.progressive(ONE, BINARY, **{name: value}), ValueError,
             f"'{name}' parameter of progressive must be an integer of at least {least}")
            for name, least in [("window", 1), ("chunk", 1), ("delay", 0)]
            for value in (least - 1, 1.5, True, "many")
        ),
        (lambda: evaluate.progressive("norma", BINARY), TypeError, "model must be an online learner such as NORMA"),
        (lambda: evaluate.progressive(ok.Adatron(), BINARY), TypeError, "Adatron learns by fit only"),
        (lambda: evaluate.progressive(ok.NORMA("novelty"), BINARY[0], delay=1), ValueError, "learns without labels"),
        (lambda: evaluate.progressive(ONE, BINARY, novel="fault"), ValueError,
         "novel='fault' says which label is novel"),
        (lambda: evaluate.compare({"a": ONE, "b": ONE}, BINARY), ValueError, "as each learns. 'a' and 'b' are one"),
        (lambda: evaluate.compare({"a": ONE, "b": ok.NORMA("squared")}, BINARY), ValueError, "same task"),
        (lambda: evaluate.compare({}, BINARY), TypeError, "models must be a dict"),
        (lambda: evaluate.compare([ONE], BINARY), TypeError, "models must be a dict"),
        *(
            (lambda params=params: evaluate.tune(ONE, params, BINARY), ValueError, message)
            for params, message in [
                ([], "params must hold at least one setting"),
                ([1.0], "params must be an iterable of settings {name: value}.* Got .1.0. instead"),
                (1.0, "params must be an iterable of settings .* Got 1.0"),
                ("step", "params must be an iterable of settings .* Got 'step'"),
                ({"step": [1.0]}, "params must be an iterable of settings .*ParameterGrid"),
                ([{"step": -1.0}] * 2,
                 "All 2 settings failed. The first, {'step': -1.0}: ValueError: The 'step' param"),
            ]
        ),
        *(
            (lambda metric=metric: evaluate.tune(ONE, [{"step": 1.0}], BINARY, metric=metric), ValueError, message)
            for metric, message in [
                ("accuracy", "'metric' parameter of tune must be a function of a report or one of error,"),
                ("squared_error", "'squared_error' is NaN for all settings"),
            ]
        ),
        (lambda: evaluate.tune(ok.NORMA("nunovelty"), [{"step": 1.0}], BINARY[0]), ValueError, "fewer are not better"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
    assert not hasattr(ONE, "t_")


# ---- Tuning ----

BASE = ok.NORMA("hinge", ok.Gaussian(), regularization=0.1, budget=50)
PARAMS = [{"kernel__width": width, "step": step} for width in (0.3, 1.0, 3.0) for step in (0.1, 1.0, 100.0)]


def steps(*values):
    return [{"step": value} for value in values]


def check_tuning(tuning, stream):
    """What holds for PARAMS, however it ran."""
    assert len(tuning.trials) == 9
    values = [trial.value for trial in tuning.trials[:6]]
    assert values == sorted(values)
    for trial in tuning.trials[:6]:
        model = ok.NORMA("hinge", ok.Gaussian(trial.params["kernel__width"]), step=trial.params["step"],
                         regularization=0.1, budget=50)
        assert trial.value == trial.report.error == evaluate.progressive(model, stream).error
    for trial in tuning.trials[6:]:
        assert trial.params["step"] == 100.0 and np.isnan(trial.value)
        assert trial.error.startswith("ValueError: step * regularization must be at most 1")
    assert tuning.best_params == tuning.trials[0].params
    assert not hasattr(tuning.best, "t_")
    assert tuning.best.get_params()["kernel__width"] == tuning.best_params["kernel__width"]
    assert str(tuning).count("failed") == 3


@pytest.fixture(scope="module")
def stream():
    return drifting_gaussians(600)


def test_tuning_one_after_the_other_and_on_threads(stream):
    check_tuning(evaluate.tune(BASE, PARAMS, stream), stream)
    with ThreadPoolExecutor(2) as executor:
        check_tuning(evaluate.tune(BASE, PARAMS, stream, executor=executor), stream)
    assert BASE.kernel.width == 1.0 and not hasattr(BASE, "t_")


def test_tuning_in_processes(stream):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        check_tuning(evaluate.tune(BASE, PARAMS, stream, executor=executor), stream)
        chunks = (stream[0][:300], stream[1][:300]), (stream[0][300:], stream[1][300:])
        check_tuning(evaluate.tune(BASE, PARAMS, iter(chunks), executor=executor), stream)
        with pytest.raises(ValueError, match="All 1 settings failed.*([Pp]ickl|local object)"):
            evaluate.tune(ok.NORMA(None, lambda a, b: 1.0), steps(1.0), stream, executor=executor)


def test_metrics(stream):
    budgets = [{"budget": 5}, {"budget": 50}]
    assert evaluate.tune(BASE, budgets, stream, metric="terms").best_params == {"budget": 5}

    def largest(report):
        return -report.terms

    tuning = evaluate.tune(BASE, budgets, stream, metric=largest)
    assert tuning.best_params == {"budget": 50} and tuning.metric == "largest" and tuning.best_value == -50
    assert evaluate.tune(ok.NORMA("nunovelty"), budgets, stream[0],
                         metric=lambda report: abs(report.error - 0.01)).best_value >= 0


def test_many_classes_that_are_two_have_an_area():
    """Two outputs rank by their difference; with a third class there is no such order any more."""
    X, y = data("binary", 300)
    for make in (lambda: ok.KRLS("multiclass_squared", KERNEL, budget=30), lambda: ok.SILK("multiclass_hinge", KERNEL)):
        labels, first = np.where(y > 0, "yes", "no"), np.flatnonzero(y > 0)[0]
        fitted = make().fit(X[first:], labels[first:])  # it shows "no" first, and has seen "yes" first
        for delay in (0, 5):
            for model in (make(), copy.deepcopy(fitted)):
                report = evaluate.progressive(model, (X, labels), delay=delay, chunk=40, window=50)
                assert 0.8 < report.auc <= 1.0 and 0.8 < report.window_auc <= 1.0
        scores = make().progressive(X, y, classes=[-1, 1])
        scores = scores[:, 1] - scores[:, 0]
        positive, negative = scores[y == y.max()], scores[y == y.min()]
        pairs = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
        assert evaluate.progressive(make(), (X, y), classes=[-1, 1]).auc == pytest.approx(pairs.mean())
        three = np.where(np.arange(300) == 200, 7, y)
        report = evaluate.progressive(make(), (X, three), chunk=40)
        assert np.isnan(report.auc) and np.isfinite(report.history["auc"][2])


# ---- Plots and bars ----


@pytest.fixture(scope="module")
def comparison(stream):
    return evaluate.compare({"NORMA": ok.NORMA(step=1.0), "SVMD": ok.SVMD(ok.NuHinge())}, stream)


@pytest.fixture
def figures(tmp_path):
    """A check of what a plot returns and saves."""
    pytest.importorskip("matplotlib")

    def check(plot, panels, **options):
        path = tmp_path / "picture.png"
        figure = plot(path=path, **options)
        assert path.read_bytes().startswith(b"\x89PNG")
        assert len(figure.axes) == panels
        return figure.axes[0]

    return check


def test_plots_of_reports_and_comparisons(comparison, figures, monkeypatch):
    axes = figures(comparison["SVMD"].plot, 4)  # errors, terms, step, margin
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), comparison["SVMD"].history["error"])
    assert "step" not in [panel.get_ylabel() for panel in comparison["NORMA"].plot().axes]
    axes = figures(comparison.plot, 1)
    reports = list(comparison.reports.values())
    assert [round(line.get_ydata()[-1]) for line in axes.lines] == [report.mistakes for report in reversed(reports)]
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)  # given ones
    assert comparison["NORMA"].plot(axes=axes[0]) is axes[0].figure
    comparison.plot(axes=axes[1])
    assert [len(panel.lines) for panel in axes] == [2, 2]
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    for plot in (comparison.plot, comparison["NORMA"].plot):
        with pytest.raises(ImportError, match="pip install matplotlib"):
            plot()
