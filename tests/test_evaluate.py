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
from onlinekernels.losses import LOSSES, Loss
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


def loop(model, X, y):
    """(errors, margins before each example) by predicting and learning one example at a time."""
    errors, margins = [], []
    task = model._current_loss().task
    for i, x in enumerate(X):
        fresh = not hasattr(model, "t_")
        name = model._current_loss().scalar_name
        if name:
            margins.append(getattr(model._current_loss(), name) if fresh else getattr(model, name + "_"))
        target = None if y is None else y[i]
        if task == "novelty":
            errors.append((0.0 if fresh else model.score_samples([x])[0]) < margins[-1])
        elif task == "regression":
            errors.append(abs(target - (0.0 if fresh else model.predict_one(x))))
        else:
            errors.append(fresh or model.predict_one(x) != target)
        model.learn_one(x, target)
    return np.array(errors, dtype=float), np.array(margins)


@each("name", sorted(LOSSES))
def test_errors_are_those_of_a_loop(name):
    model = model_for(name)
    X, y = data(model.loss.task)
    expected, margins = loop(copy.deepcopy(model), X, y)
    report = evaluate.progressive(model, X if y is None else (X, y), window=40, chunk=1)
    errors = np.diff(report.history["error"] * report.history["examples"], prepend=0.0)
    if name != "graphhinge" and name != "nugraphhinge":  # a fixed label set: the first example may be guessed
        np.testing.assert_allclose(errors, expected, atol=1e-9)
    np.testing.assert_allclose(errors[1:], expected[1:], atol=1e-9)
    np.testing.assert_allclose(report.window_error, errors[-40:].mean())
    if len(margins):
        np.testing.assert_allclose(report.history["margin"][:-1], margins[1:], rtol=1e-9)
    assert report.history["terms"][-1] == report.terms == model.n_terms_
    assert report.step == model.step_


def test_squared_errors_of_a_regression():
    X, y = data("regression")
    scores = ok.SILK("squared", KERNEL).progressive(X, y)
    report = evaluate.progressive(ok.SILK("squared", KERNEL), (X, y), window=50)
    np.testing.assert_allclose(report.squared_error, np.mean((scores - y) ** 2))
    np.testing.assert_allclose(report.window_squared_error, np.mean((scores - y)[-50:] ** 2))
    assert report.mistakes is None and report.alerts is None


def test_ties():
    """Conventions at kinks are those of the losses; a first score is exactly 0."""
    first = np.zeros((1, 1))
    report = evaluate.progressive(ok.Perceptron(), (first, [1]))
    assert report.mistakes == 1
    assert evaluate.progressive(ok.NORMA(ok.Novelty(margin=0.0)), first).alerts == 0


def test_a_class_to_come_is_never_predicted():
    """Its score of 0 would beat the negative ones of the classes that are known."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), np.repeat(["a", "b", "c"], 20)
    y[:40] = rng.permutation(y[:40])
    errors, _ = loop(ok.NORMA("multiclasslogistic", "linear", step=2.0), X, y)
    report = evaluate.progressive(ok.NORMA("multiclasslogistic", "linear", step=2.0), (X, y))
    assert report.mistakes == errors.sum()


def test_classes_shown_in_sorted_order_after_fit():
    X, y = data("multiclass")
    y[:4] = ["c", "a", "d", "b"]  # sorted order and order of appearance differ, and so do the ways between them
    fitted = ok.NORMA("multiclasshinge", KERNEL, step=0.3).fit(X, y)
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    errors, _ = loop(copy.deepcopy(fitted), X, y)
    assert errors.mean() < 0.3
    assert evaluate.progressive(fitted, (X, y)).mistakes == errors.sum()


def test_two_labels_that_come_one_after_the_other():
    X = np.arange(10.0)[:, None]
    y = np.repeat(["no", "yes"], 5)
    for loss in ("hinge", "nuhinge"):
        assert evaluate.progressive(ok.NORMA(loss), (X, y), chunk=2).examples == 10
        chunks = [(X[:5], y[:5]), (X[5:], y[5:])]
        assert evaluate.progressive(ok.NORMA(loss), chunks, classes=["no", "yes"]).examples == 10
        with pytest.raises(ValueError, match="one class only"):
            evaluate.progressive(ok.NORMA(loss), chunks)


def test_losses_of_your_own():
    class Softmax(Loss):
        task = "multiclass"

        def derivative(self, scores, y):
            return ok.MulticlassLogistic().derivative(scores, y)

    X, y = data("multiclass")
    own = evaluate.progressive(ok.NORMA(Softmax()), (X, y))
    built_in = evaluate.progressive(ok.NORMA("multiclasslogistic"), (X, y))
    assert own.mistakes == built_in.mistakes


def test_objects():
    words, y = ["walking", "gehen", "talking", "reden"] * 5, ["en", "de"] * 10
    model = ok.NORMA("hinge", lambda a, b: float(a[-2:] == b[-2:]))
    assert evaluate.progressive(model, (words, y), chunk=3).mistakes == 2
    detector = ok.NORMA(ok.Novelty(margin=0.5), lambda a, b: float(a[-2:] == b[-2:]), step=1.0)
    assert evaluate.progressive(detector, (words, None)).alerts == 2


# ---- Streams ----


def forms_of(X, y):
    def pieces(*lengths):
        begin = 0
        while begin < len(X):
            for length in lengths:
                yield X[begin : begin + length], y[begin : begin + length]
                begin += length

    return {
        "lists": (X.tolist(), y.tolist()),
        "list of chunks": list(pieces(30, 1, 0, 7)),
        "generator": pieces(1),
        "function": lambda: pieces(64),
        "one chunk": [(X, y)],
        "chunks as lists": [[X[:70], y[:70]], [X[70:], y[70:]]],
    }


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
        report = evaluate.progressive(model_for("hinge"), stream, progress=False)
        assert (report.mistakes, report.terms) == (expected.mistakes, expected.terms)
    assert evaluate.tune(model_for("hinge"), [{"step": 0.3}], (rows, y)).best_value == expected.error
    alone = [evaluate.progressive(model_for("novelty"), stream).alerts for stream in (X, rows, (X[i : i + 11] for i in range(0, len(X), 11)))]
    assert alone[0] == alone[1] == alone[2] > 0
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert evaluate.progressive(model_for("hinge"), (frame, pandas.Series(y))).mistakes == expected.mistakes


@each("model", [ok.NORMA("insensitive", KERNEL), ok.SVMD("squared", KERNEL), ok.ILK("huber", KERNEL)],
      ids=str)
def test_several_targets_are_averaged(model):
    X, y = data("regression")
    Y = np.column_stack([y, X[:, 1], 2 * y])
    scores = copy.deepcopy(model).progressive(X, Y)
    for stream in ((X, Y), (X, Y.tolist()), [(X[:70], Y[:70]), (X[70:], Y[70:])]):
        report = evaluate.progressive(copy.deepcopy(model), stream)
        np.testing.assert_allclose(report.error, np.abs(scores - Y).mean())
        np.testing.assert_allclose(report.squared_error, ((scores - Y) ** 2).mean())


def test_a_loss_of_ones_own_sees_classes_in_one_order():
    seen = []

    class Costs(ok.Loss):
        task = "multiclass"

        def __init__(self):
            pass

        def derivative(self, scores, y):
            seen.append(int(y))
            return np.eye(len(scores))[scores.argmax()] - np.eye(len(scores))[y]

    model = ok.NORMA(Costs(), "linear").fit(np.eye(3), ["c", "b", "a"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    seen.clear()
    evaluate.progressive(model, (np.eye(3), ["c", "a", "b"]))
    assert seen == [0, 2, 1]


def test_a_model_goes_on_from_where_it_is():
    X, y = data("binary")
    model = ok.SILK(None, KERNEL)
    first = evaluate.progressive(model, (X[:100], y[:100]))
    second = evaluate.progressive(model, (X[100:], y[100:]))
    assert first.mistakes + second.mistakes == evaluate.progressive(ok.SILK(None, KERNEL), (X, y)).mistakes
    assert model.t_ == 150


@each(
    "stream, kind, message",
    [
        (7, TypeError, r"stream must be \(X, y\), an array X, or an iterable of such chunks. Got int"),
        ("file.csv", TypeError, "Got str instead"),
        ([], ValueError, "stream must hold at least one example"),
        ((np.zeros((0, 2)), []), ValueError, "stream must hold at least one example"),
        ([(1, 2, 3)], TypeError, r"pairs \(X, y\) or arrays X. Got a tuple of length 3"),
        ((np.zeros((3, 1)), [1, -1]), ValueError, "inconsistent numbers of samples: X has 3, y has 2"),
        (np.zeros((3, 1)), ValueError, "requires y"),
    ],
)
def test_bad_streams(stream, kind, message):
    with pytest.raises(kind, match=message):
        evaluate.progressive(ok.NORMA(), stream)


def test_bad_arguments():
    X, y = data("binary")
    for name in ("window", "chunk"):
        for value in (0, 1.5, True, "many"):
            with pytest.raises(ValueError, match=f"'{name}' parameter of progressive must be an integer of at least 1"):
                evaluate.progressive(ok.NORMA(), (X, y), **{name: value})
    with pytest.raises(TypeError, match="model must be an online learner such as NORMA"):
        evaluate.progressive("norma", (X, y))
    with pytest.raises(TypeError, match="Adatron learns by fit only"):
        evaluate.progressive(ok.Adatron(), (X, y))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes on exceptions came with Python 3.11")
def test_an_error_says_how_far_the_model_came():
    X, y = data("binary")
    X[70, 0] = np.nan
    model = ok.NORMA()
    with pytest.raises(ValueError, match="contains NaN") as caught:
        evaluate.compare({"mine": model}, (X, y), chunk=50)
    assert "mine had learned 50 examples of the stream before this chunk." in caught.value.__notes__
    assert model.t_ == 50


# ---- Reports and comparisons ----


def test_the_report_reads_well():
    X, y = data("regression")
    text = str(evaluate.progressive(ok.NORMA(ok.Insensitive(0.2), KERNEL), (X, y)))
    assert re.search(r"mean absolute error +0\.\d+ +0\.\d+\n", text)
    assert "last 150" in text and text.endswith(", width 0.2")
    assert "history" not in repr(evaluate.progressive(ok.NORMA(), data("binary")))


def test_comparing_is_running_each():
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


@each("first", ["ham", "spam"])
def test_columns_of_a_comparison_have_one_definition(first):
    """F1 of two classes is of the second in sorted order, whoever counts, whichever comes first; beside it the mean."""
    X, y = data("binary", 400)
    y = np.where(y > 0.7 * X[:, 0], "spam", "ham")  # not as many of each, so that the two F1 differ
    begin = np.flatnonzero(y == first)[0]
    X, y = X[begin:], y[begin:]
    models = {"two": ok.NORMA("hinge", KERNEL), "many": ok.KRLS("multiclass_squared", KERNEL, budget=30)}
    guesses = {name: copy.deepcopy(model).progressive(X, y, return_labels=True)[1] for name, model in models.items()}
    comparison = evaluate.compare(models, (X, y))
    for name, labels in guesses.items():
        f1 = {}
        for label in ("ham", "spam"):
            hits = sum((guess == label) & (true == label) for guess, true in zip(labels[1:], y[1:]))
            f1[label] = 2 * hits / (sum(guess == label for guess in labels[1:]) + np.sum(y == label))
        assert comparison[name].f1 == pytest.approx(f1["spam"]) and abs(f1["spam"] - f1["ham"]) > 0.01
        assert comparison[name].macro_f1 == pytest.approx(np.mean(list(f1.values())))
    columns = str(comparison).splitlines()[0]
    assert re.search(r"F1 +macro F1 +AUC +terms", columns) and "loss" not in columns  # each has its own loss
    three = evaluate.compare({"many": ok.KRLS("multiclass_squared", KERNEL, budget=30)}, data("multiclass"))
    assert np.isnan(three["many"].f1) and three["many"].macro_f1 > 0
    assert re.search(r"last \d+ +macro F1 +terms", str(three))


def test_comparisons_that_make_no_sense():
    X, y = data("binary")
    model = ok.NORMA()
    with pytest.raises(ValueError, match="different objects, as each learns. 'a' and 'b' are one"):
        evaluate.compare({"a": model, "b": model}, (X, y))
    with pytest.raises(ValueError, match="same task"):
        evaluate.compare({"a": model, "b": ok.NORMA("squared")}, (X, y))
    for models in ({}, [model]):
        with pytest.raises(TypeError, match="models must be a dict"):
            evaluate.compare(models, (X, y))
    assert not hasattr(model, "t_")


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


def test_tuning_keeps_what_a_generator_gives(stream):
    def reader():
        X, y = np.empty((100, 2)), np.empty(100)
        for begin in range(0, 600, 100):
            X[:], y[:] = stream[0][begin : begin + 100], stream[1][begin : begin + 100]
            yield X, y  # the same arrays, again and again

    check_tuning(evaluate.tune(BASE, iter(PARAMS), reader()), stream)
    check_tuning(evaluate.tune(BASE, PARAMS, reader), stream)


def test_settings_are_those_of_scikit_learn(stream):
    """Grids and draws from distributions are its work."""
    selection = pytest.importorskip("sklearn.model_selection")
    grid = {"kernel__width": [0.3, 1.0, 3.0], "step": [0.1, 1.0, 100.0]}
    check_tuning(evaluate.tune(BASE, selection.ParameterGrid(grid), stream), stream)
    drawn = selection.ParameterSampler(grid, 4, random_state=0)
    assert [trial.params for trial in evaluate.tune(BASE, drawn, stream).trials if not trial.error] != []
    with pytest.raises(ValueError, match="params must be an iterable of settings .*ParameterGrid"):
        evaluate.tune(BASE, grid, stream)


def test_settings_may_replace_parts(stream):
    settings = [{"step": 1.0}, {"kernel": ok.Laplacian(2.0), "kernel__rate": 1.0}, {"no_such": 1}]
    tuning = evaluate.tune(BASE, settings, stream)
    assert settings[1]["kernel"].rate == 2.0
    assert "NORMA has no parameter 'no_such'" in tuning.trials[-1].error
    laplacian = next(trial for trial in tuning.trials if "kernel" in trial.params)
    model = ok.NORMA("hinge", ok.Laplacian(1.0), regularization=0.1, budget=50)
    assert laplacian.value == evaluate.progressive(model, stream).error
    assert "Laplacian" in str(tuning)


def test_metrics(stream):
    budgets = [{"budget": 5}, {"budget": 50}]
    assert evaluate.tune(BASE, budgets, stream, metric="terms").best_params == {"budget": 5}

    def largest(report):
        return -report.terms

    tuning = evaluate.tune(BASE, budgets, stream, metric=largest)
    assert tuning.best_params == {"budget": 50} and tuning.metric == "largest" and tuning.best_value == -50
    with pytest.raises(ValueError, match="'metric' parameter of tune must be a function of a report or one of error,"):
        evaluate.tune(BASE, budgets, stream, metric="accuracy")
    with pytest.raises(ValueError, match="'squared_error' is NaN for all settings"):
        evaluate.tune(BASE, budgets, stream, metric="squared_error")
    detector = ok.NORMA("nunovelty")
    with pytest.raises(ValueError, match="fewer are not better"):
        evaluate.tune(detector, budgets, stream[0])
    assert evaluate.tune(detector, budgets, stream[0], metric=lambda report: abs(report.error - 0.01)).best_value >= 0


@each("metric", ["auc", "f1", "macro_f1", "window_auc", "window_f1", "window_macro_f1"])
def test_the_most_of_a_rating_is_best(stream, metric):
    tuning = evaluate.tune(BASE, steps(0.001, 1.0, 100.0), stream, metric=metric)
    assert tuning.trials[0].value > tuning.trials[1].value > 0 and tuning.trials[2].error
    assert tuning.best_value == getattr(tuning.trials[0].report, metric)


def test_settings_that_make_no_sense(stream):
    for params, message in [
        ([], "params must hold at least one setting"),
        ([1.0], "params must be an iterable of settings {name: value}.* Got 1.0"),
        (1.0, "params must be an iterable of settings .* Got 1.0"),
        ("step", "params must be an iterable of settings .* Got 'step'"),
        (steps(-1.0, -2.0), "All 2 settings failed. The first, {'step': -1.0}: ValueError: The 'step' parameter"),
    ]:
        with pytest.raises(ValueError, match=message):
            evaluate.tune(BASE, params, stream)


def test_a_fresh_copy_shares_nothing():
    model = ok.NORMA(ok.Hinge(), ok.Gaussian(2.0) + ok.Linear(), step=0.5).partial_fit([[0.0], [1.0]], [-1, 1])
    copied = evaluate.fresh_copy(model)
    assert repr(copied) == repr(model) and not hasattr(copied, "t_")
    assert copied.kernel is not model.kernel and copied.loss is not model.loss


def test_many_classes_that_are_two_have_an_area():
    """Two outputs rank by their difference; with a third class there is no such order any more."""
    X, y = data("binary", 300)
    for make in (lambda: ok.KRLS("multiclass_squared", KERNEL, budget=30), lambda: ok.SILK("multiclass_hinge", KERNEL)):
        for delay in (0, 5):
            report = evaluate.progressive(make(), (X, np.where(y > 0, "yes", "no")), delay=delay, chunk=40, window=50)
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


def test_plots_of_reports_and_comparisons(comparison, figures):
    axes = figures(comparison["SVMD"].plot, 4)  # errors, terms, step, margin
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), comparison["SVMD"].history["error"])
    assert "step" not in [panel.get_ylabel() for panel in comparison["NORMA"].plot().axes]
    axes = figures(comparison.plot, 1)
    reports = list(comparison.reports.values())
    assert [round(line.get_ydata()[-1]) for line in axes.lines] == [report.mistakes for report in reversed(reports)]


@each("windowed", [False, True])
def test_the_legend_shows_what_is_drawn(figures, windowed):
    """Over the window the order of the models may be another one, and so are the figures."""
    X = np.random.default_rng(0).normal(size=(600, 1))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[300:] *= -1  # who learned well at first has to forget
    models = {"quick": ok.NORMA("hinge", "linear", step=0.5), "slow": ok.NORMA("hinge", "linear", step=0.002)}
    models["slow"].fit(X[300:], y[300:])
    comparison = evaluate.compare(models, (X, y), window=100)
    figure = comparison.plot(windowed=windowed)
    drawn = [line.get_ydata()[-1] / (1 if windowed else 600) for line in figure.axes[0].lines]
    assert drawn == sorted(drawn, reverse=True)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [label.split(": ")[1] for label in labels] == [f"{value:.2%}" for value in drawn]
    for label, value in zip(labels, drawn, strict=True):
        report = comparison[label.split(": ")[0]]
        assert value == pytest.approx(report.window_error if windowed else report.error)


def test_plots_into_given_axes(comparison, figures):
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    assert comparison["NORMA"].plot(axes=axes[0]) is axes[0].figure
    comparison.plot(axes=axes[1])
    assert [len(panel.lines) for panel in axes] == [2, 2]


def test_plots_of_tunings(stream, figures):
    tuning = evaluate.tune(BASE, PARAMS, stream)
    axes = figures(tuning.plot, 1, windowed=True)
    drawn = [line.get_ydata()[-1] for line in axes.lines]
    assert drawn == sorted((trial.report.window_error for trial in tuning.trials[:6]), reverse=True)
    best = "kernel__width={kernel__width:.4g}, step={step:.4g}: ".format(**tuning.best_params)
    assert axes.get_legend().get_texts()[-1].get_text().startswith(best)


def test_data_frames_of_results(comparison, stream):
    pytest.importorskip("pandas")
    report = comparison["SVMD"]
    frame = report.to_frame()
    assert frame.index.tolist() == [200, 400, 600] and frame.loc[600, "error"] == report.error
    assert frame["window_auc"].tolist() == report.history["window_auc"].tolist()
    frame = comparison.to_frame()
    assert frame.index.tolist() == list(comparison.reports) and frame.loc["NORMA", "terms"] == comparison["NORMA"].terms
    tuning = evaluate.tune(BASE, PARAMS, stream)
    frame = tuning.to_frame()
    assert frame["step"].tolist() == [trial.params["step"] for trial in tuning.trials]
    assert frame["error"].tolist()[:6] == [trial.value for trial in tuning.trials[:6]]
    assert frame["failure"].notna().sum() == frame["error"].isna().sum() == 3


def test_without_matplotlib(comparison, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    for plot in (comparison.plot, comparison["NORMA"].plot):
        with pytest.raises(ImportError, match="pip install matplotlib"):
            plot()


def test_bars(stream, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    evaluate.progressive(ok.NORMA(), stream)
    assert capsys.readouterr().err == ""
    for form in (stream, iter([stream])):  # of a length that is known, or not
        evaluate.progressive(ok.NORMA(), form, progress=True)
        assert "examples" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    evaluate.tune(BASE, PARAMS, stream)
    assert "0/9 [" in capsys.readouterr().err
    evaluate.compare({"a": ok.NORMA()}, stream, progress=False)
    assert capsys.readouterr().err == ""


def test_bars_without_tqdm(stream, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    evaluate.progressive(ok.NORMA(), stream)
    with pytest.raises(ImportError, match="pip install tqdm"):
        evaluate.progressive(ok.NORMA(), stream, progress=True)
