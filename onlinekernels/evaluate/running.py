"""Progressive validation: `progressive` runs one model through a stream, `compare` several, `tune` one per setting."""
from __future__ import annotations

import copy
import math
import numbers
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base.estimator import Estimator
from onlinekernels.base.validation import bad_parameter
from onlinekernels.evaluate.learners import check_model, in_order, kept, learner_for, n_rows, opened, pieces
from onlinekernels.evaluate.measures import RunningAUC
from onlinekernels.evaluate.reports import HISTORY, MOST_IS_BEST, Comparison, Confusion, Report, Trial, Tuning, rank

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Callable, Executor, Sequence

# Long enough for the compiled code to do the work, short enough for a plot to have points.
_CHUNK = 200


def progressive(model: Any, stream: Any, *, window: int = 1000, chunk: int = _CHUNK,
                classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None, auc: bool = True) -> Report:
    """Test, then train: let a model predict and learn a stream, and report how it did.

    The model learns on from where it is. No example is scored by a model that has seen it, whatever the chunk.

    Parameters
    ----------
    model : NORMA, SILK, ... : any algorithm with the method `progressive`
        Or a classifier or regressor of scikit-learn that has `partial_fit`, which takes a call for each row.
    stream : (X, y), an array X for novelty losses, or an iterable of either; X may be sparse or a data frame
        An iterable gives chunks of any length and is used once. A function without arguments is called for its stream.
    window : int, default=1000
        Number of latest examples over which the sliding measures are taken.
    chunk : int, default=200
        Number of examples between two records of the history.
    classes : labels, default=None
        All labels, where the first chunk does not show them. Estimators of scikit-learn need all at the start.
    delay : int, default=0
        For labels that come late: an example is learned, and judged, when `delay` more have been predicted, or the
        stream has ended. Each prediction is a call.
    novel : label, default=None
        For a detector: which label in y means novel. Then `f1`, `auc` and `confusion` judge it; it never learns from y.
    auc : bool, default=True
        Whether to keep the area under the ROC curve: some microseconds for each example, and memory for all scores.

    Returns
    -------
    Report

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> model = NORMA("hinge", Gaussian(0.4), step=1.0, regularization=1/15, budget=100)
    >>> report = evaluate.progressive(model, drifting_gaussians(2000))
    >>> print(report)
    NORMA(loss='hinge', kernel=Gaussian(width=0.4), step=1.0, regularization=0.06666666666666667, budget=100)
                 all  last 1000
    ---------------------------
    mistakes   9...%      9...%
    F1        0.9...     0.9...
    macro F1  0.9...     0.9...
    AUC       0.9...     0.9...
    2000 examples in ... s; at the end 100 terms, step 1, margin 1
    >>> bool(report.error < 0.1)
    True
    """
    check_model("model", model)
    return _runs("progressive", {repr(model): model}, stream, window=window, chunk=chunk, classes=classes, delay=delay,
                 novel=novel, auc=auc)[0]


def compare(models: dict[Any, Any], stream: Any, *, window: int = 1000, chunk: int = _CHUNK,
            classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None,
            auc: bool = True) -> Comparison:
    """Let several models, {name: model} for the same task, predict and learn one stream, in one pass over it.

    Each learns on from where it is, and each chunk goes to all of them. Other parameters are those of `progressive`.

    Examples
    --------
    >>> from onlinekernels import NORMA, Perceptron, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> norma = NORMA("hinge", Gaussian(0.4), step=1.0, regularization=1/15)
    >>> models = {"remembers all": Perceptron(Gaussian(0.4)), "forgets": norma}
    >>> print(evaluate.compare(models, drifting_gaussians(2000)))
    model          mistakes  last 1000      F1  macro F1     AUC  terms  step  us/example
    -----...
    forgets           9...
    remembers all    18...
    """
    _check_models(models)
    reports = _runs("compare", models, stream, window=window, chunk=chunk, classes=classes, delay=delay, novel=novel,
                    auc=auc)
    named = sorted(zip(models, reports, strict=True), key=lambda item: rank(item[1].error))
    return Comparison(dict(named))


def tune(model: Any, params: Iterable[Mapping[str, Any]], stream: Any, *, executor: Executor | None = None,
         metric: str | Callable[..., float] = "error", window: int = 1000, chunk: int = 1000,
         classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None) -> Tuning:
    """Try settings of parameters on one stream and rank them.

    Every setting is set on a fresh copy of the model, which learns the whole stream as in `progressive`. The
    model itself is not touched. A setting that raises is recorded with its error.

    Parameters
    ----------
    model, stream, window, chunk, classes, delay, novel
        As in `progressive`; but an iterable is read once and kept. Executors in other processes send the stream with
        every setting: for a large one, give a function that opens it there.
    params : iterable of dict
        The settings, {name: value}: a list, or what `sklearn.model_selection` makes of a grid (`ParameterGrid`) or of
        distributions (`ParameterSampler`). Names may be nested, as in "kernel__width".
    executor : concurrent.futures.Executor, default=None
        Where settings run: threads, processes, or `Client.get_executor()` of Dask. None runs one after the other.
    metric : str or callable, default="error"
        A numeric attribute of `Report`, of which the least is best (the most of `auc`, `f1`, `macro_f1` and those over
        the window), or a function of a report that gives a number, the least of which is best.

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> params = [{"kernel__width": width, "step": step} for width in (0.4, 4.0) for step in (0.1, 1.0)]
    >>> model = NORMA("hinge", Gaussian(), regularization=1/15, budget=100)
    >>> evaluate.tune(model, params, drifting_gaussians(1000)).best_params
    {'kernel__width': 0.4, 'step': 1.0}
    """
    check_model("model", model)
    settings = _checked_settings(params)
    measure = _metric(metric, model)
    options = {"window": window, "chunk": chunk, "classes": classes, "delay": delay, "novel": novel,
               "auc": callable(metric) or "auc" in metric}
    model = fresh_copy(model)
    trials = _trials(model, settings, kept(stream), options, executor)
    for trial in trials:
        if trial.report is not None:
            trial.value = float(measure(trial.report))
    if all(trial.report is None for trial in trials):
        raise ValueError(f"All {len(trials)} settings failed. The first, {trials[0].params}: {trials[0].error}")
    if all(math.isnan(trial.value) for trial in trials):
        raise ValueError(f"The 'metric' parameter of tune must give a number. {metric!r} is NaN for all settings.")
    sign = -1 if metric in MOST_IS_BEST else 1
    trials.sort(key=lambda trial: (trial.report is None, rank(sign * trial.value)))
    best = model.set_params(**copy.deepcopy(trials[0].params))
    return Tuning(best, trials, metric if isinstance(metric, str) else getattr(metric, "__name__", "metric"))


def fresh_copy(model: Any) -> Any:
    """A model with the same parameters that has learned nothing.

    >>> from onlinekernels import NORMA, evaluate
    >>> model = NORMA(step=0.5).partial_fit([[0.0], [1.0]], [-1, 1])
    >>> copied = evaluate.fresh_copy(model)
    >>> copied, hasattr(copied, "t_")
    (NORMA(step=0.5), False)
    """
    if not isinstance(model, Estimator):
        from sklearn.base import clone

        copied = clone(model)
        check_model("a fresh copy of model", copied)
        return copied
    return type(model)(**copy.deepcopy(model.get_params(deep=False)))


# ---- Runs ----


def _check_models(models):
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {models!r} instead.")
    names = {}
    for name, model in models.items():
        check_model(f"models[{name!r}]", model)
        first = names.setdefault(id(model), name)
        if first != name:
            raise ValueError(f"models must be different objects, as each learns. {first!r} and {name!r} are one.")
    tasks = {name: learner_for(model).task for name, model in models.items()}
    # Mistakes are mistakes, whichever loss of a classifier counts them.
    if len({"classes" if task in ("binary", "multiclass") else task for task in tasks.values()}) > 1:
        raise ValueError(f"models must all be for the same task, so that errors compare. Got {tasks} instead.")


def _checked_count(owner, name, value, least=1):
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < least:
        raise bad_parameter(owner, name, f"an integer of at least {least}", value)
    return int(value)


def _runs(owner, models, stream, *, window, chunk, classes, delay, novel, auc):
    """Reports of models {name: model} that have learned the stream, with a record after every `chunk` examples."""
    tasks = [learner_for(model).task for model in models.values()]
    window, delay = _checked_count(owner, "window", window), _checked_count(owner, "delay", delay, least=0)
    if delay and "novelty" in tasks:
        raise ValueError(f"delay={delay} is for labels that come late, and a detector learns without labels.")
    if novel is not None and tasks != ["novelty"] * len(tasks):
        raise ValueError(f"novel={novel!r} says which label is novel to judge detectors by. Got models for {tasks[0]}.")
    chunk, stream = _checked_count(owner, "chunk", chunk), opened(stream)
    runs = [_Run(learner_for(model, delay, novel), str(name), window, auc) for name, model in models.items()]
    for run in runs:
        run.learner.begin(classes, stream[1] if isinstance(stream, tuple) else None)
    seen = 0
    for rows, labels in pieces(stream, chunk):
        seen += n_rows(rows)
        for run in runs:
            run.learn(rows, labels)
            if seen % chunk == 0:
                run.record()
    if seen == 0:
        raise ValueError("stream must hold at least one example. It holds none.")
    return [run.report() for run in runs]


class _Run:
    """A model on its way through a stream."""

    def __init__(self, learner, name, window, auc):
        self.learner, self.name, self.window = learner, name, window
        self.count, self.seconds, self.records = 0, 0.0, []
        self.sums, self.latest = np.zeros(2), np.zeros((0, 2))  # of the errors and their squares
        self.pairs, self.latest_pairs = Counter(), deque(maxlen=window)  # of (label, prediction)
        self.aucs = (RunningAUC(), RunningAUC(window)) if auc else ()

    def learn(self, X, y):
        """Predict and learn some examples, and measure."""
        if self.learner.task == "regression" and y is not None and y.dtype == object:  # several targets as tuples
            y = np.array(y.tolist(), dtype=float)
        try:
            self._measure(self.learner.judge, X, y)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"{self.name} had learned {self.count} examples of the stream before this chunk.")
            raise

    def _measure(self, judge, *examples):
        start = perf_counter()
        judged = judge(*examples)
        self.seconds += perf_counter() - start
        if judged is None:
            return
        errors = self._errors(judged)
        self.count += len(errors)
        with np.errstate(over="ignore"):  # a sum of squares may be infinite
            self.sums += errors.sum(axis=0)
        self.latest = np.concatenate([self.latest, errors])[-self.window :]
        if judged.truth is not None and self.learner.task != "regression" and len(self.learner.labels) > 2:
            self.aucs = ()  # two classes were not all
        for auc in self.aucs if judged.scores is not None else ():
            auc.add(judged.scores, judged.positive)

    def _errors(self, judged):
        """(error, squared error) of each example; labels are counted."""
        truth, predictions = judged.truth, judged.predictions
        if self.learner.task == "regression":  # errors of several targets are averaged
            truth, predictions = (np.array(part, dtype=float).reshape(len(truth), -1) for part in (truth, predictions))
            with np.errstate(over="ignore"):
                errors = np.abs(truth - predictions)
                return np.column_stack([errors.mean(axis=1), (errors**2).mean(axis=1)])
        if self.learner.task == "novelty":
            mistakes = predictions
            pairs = [] if truth is None else [(1 - 2 * a, 1 - 2 * b) for a, b in zip(truth, predictions.tolist())]
        else:
            pairs = list(zip(truth, predictions))
            mistakes = [a != b for a, b in pairs]
        self.pairs.update(pairs)
        self.latest_pairs.extend(pairs)
        return np.column_stack([mistakes, np.full(len(mistakes), np.nan)])

    def record(self):
        """Add a line to the history, if there is anything new."""
        if self.count == 0 or self.records and self.records[-1][0] == self.count:
            return
        rates = [(self.sums / self.count).tolist(), self.latest.mean(axis=0).tolist()]
        aucs = [auc.value() for auc in self.aucs] or [math.nan, math.nan]
        for part, confusion, auc in zip(rates, self.confusions(), aucs, strict=True):
            part += [math.nan, math.nan, auc] if confusion is None else [confusion.f1, confusion.macro_f1, auc]
        self.records.append((self.count, *rates[0], *rates[1], *self.learner.condition(), self.seconds))

    def confusions(self):
        """Over all examples, and over the latest ones; None without labels."""
        if not self.pairs:
            return None, None
        is_novelty, labels = self.learner.task == "novelty", self.learner.labels
        negative = None if is_novelty else labels[0]  # what was taken for -1 may have turned out to be 0
        labels = labels if is_novelty else in_order(labels)
        index = {label: i for i, label in enumerate([*labels, None])}
        found = []
        for pairs in (self.pairs, Counter(self.latest_pairs)):
            counts = np.zeros((len(labels), len(labels) + 1), dtype=np.int64)
            for (label, guess), n in pairs.items():
                counts[index[label], index.get(guess, index.get(negative))] += n
            found.append(Confusion(labels, counts[:, :-1], counts[:, -1]))
        return found

    def report(self):
        """The report, when the examples have been learned whose labels had not come yet."""
        self._measure(self.learner.finish)
        self.record()
        history = np.array(self.records, dtype=HISTORY)
        return Report(self.name, self.learner.task, self.window, history, *self.confusions())


# ---- Trials ----


def _checked_settings(params):
    settings = list(params) if isinstance(params, Iterable) and not isinstance(params, (str, Mapping)) else [params]
    if isinstance(params, Mapping) or not all(isinstance(setting, Mapping) for setting in settings):
        raise ValueError(
            "params must be an iterable of settings {name: value}, such as those that ParameterGrid of scikit-learn "
            f"makes of {{name: [values]}}. Got {params!r} instead."
        )
    if not settings:
        raise ValueError("params must hold at least one setting. It holds none.")
    return settings


def _metric(metric, model):
    """A function from a report to a number."""
    if callable(metric):
        return metric
    known = [name for name in HISTORY.names if name != "examples"]
    if metric not in known:
        raise bad_parameter("tune", "metric", f"a function of a report or one of {', '.join(known)}", metric)
    if metric in ("error", "window_error") and learner_for(model).task == "novelty":
        raise ValueError(
            f"metric={metric!r} is the rate of alerts for a novelty loss, and fewer are not better. Give a function, "
            "such as metric=lambda report: abs(report.error - 0.01)."
        )
    return lambda report: getattr(report, metric)


def _trials(model, settings, stream, options, executor):
    """Trials of all settings, in their order."""
    runs = [partial(_run_of, model, params, stream, options) for params in settings]
    futures = [] if executor is None else [executor.submit(run) for run in runs]
    try:
        wait(futures)
    except BaseException:  # Ctrl-C: what has not begun need not begin
        for future in futures:
            future.cancel()
        raise
    trials = []
    for params, run in zip(settings, [future.result for future in futures] or runs, strict=True):
        try:  # a run, or sending it to another process, where it may have died
            trials.append(Trial(dict(params), report=run()))
        except Exception as error:
            trials.append(Trial(dict(params), error=f"{type(error).__name__}: {error}"))
    return trials


def _run_of(model, params, stream, options):
    """The report of one setting; it runs wherever the executor likes, so all it needs comes as arguments."""
    return progressive(fresh_copy(model).set_params(**copy.deepcopy(params)), stream, **options)
