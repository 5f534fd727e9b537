"""How good is a model on a stream? Progressive validation, comparison and tuning.

Every example is predicted before it is learned from, so that one pass over a stream gives an honest
error and no data has to be held back. `progressive` follows one model, `compare` several in one pass,
and `tune` tries settings of parameters, one after the other or on any executor.

matplotlib draws the plots and tqdm the progress bars; both are optional.
"""
import copy
import itertools
import math
import numbers
import sys
import textwrap
from collections.abc import Iterable, Mapping
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from onlinekernels.labels import label_column
from onlinekernels.learner import OnlineLearner
from onlinekernels.plan import targets
from onlinekernels.validation import bad_parameter, check_length

__all__ = ["progressive", "compare", "tune", "fresh_copy", "Report", "Comparison", "Trial", "Tuning"]

# Long enough for the compiled code to do the work, short enough for a plot to have points.
_CHUNK = 200

# What is measured at each example, in this order; a report has the mean of each over all examples and, with
# "window_" before its name, over the latest ones.
_MEASURES = ("error", "squared_error", "loss", "margin_errors")

_HISTORY = np.dtype(
    [("examples", np.int64)]
    + [(name, np.float64) for name in _MEASURES]
    + [(f"window_{name}", np.float64) for name in _MEASURES]
    + [("terms", np.int64), ("step", np.float64), ("margin", np.float64), ("seconds", np.float64)]
)

# Okabe and Ito's colours can be told apart with any kind of colour vision.
_COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_STYLES = ["-", "--", "-.", ":"]

_ERROR_WORDS = {
    "binary": "mistakes",
    "multiclass": "mistakes",
    "regression": "mean absolute error",
    "novelty": "alerts",
}


# ---- Reports -----------------------------------------------------------------------------------


@dataclass(eq=False)
class Report:
    """What a model made of a stream.

    Attributes
    ----------
    name : str
        What the model is called.
    task : str
        "binary", "multiclass", "regression" or "novelty".
    examples : int
        Examples seen.
    error : float
        Fraction of mistakes of a classifier (a score of 0 between two classes is one), mean absolute error of
        a regressor, fraction of alerts of a detector.
    squared_error : float
        Mean squared error of a regressor; otherwise NaN.
    loss : float
        Mean of the model's own loss at the scores; NaN for a loss of your own without `value`.
    margin_errors : float
        Fraction of examples within the margin, or outside the tube; NaN for a loss that has neither.
    window_error, window_squared_error, window_loss, window_margin_errors : float
        The same over the latest `window` examples.
    window : int
    terms : int
        Terms in the model at the end.
    step : float
        The latest step size.
    margin : float
        The margin or width of the loss at the end, which some losses adapt; NaN for a loss without one.
    seconds : float
        Time that the model took to predict and learn.
    history : structured array
        All of these, from `error` to `seconds`, after each chunk of examples; "examples" says how many were seen.

    Examples
    --------
    >>> from onlinekernels import NORMA, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> report = evaluate.progressive(NORMA(step=1.0, budget=100), drifting_gaussians(1000))
    >>> report.examples, report.terms, report.history["examples"].tolist()
    (1000, 100, [200, 400, 600, 800, 1000])
    """

    name: str
    task: str
    examples: int
    error: float
    squared_error: float
    loss: float
    margin_errors: float
    window_error: float
    window_squared_error: float
    window_loss: float
    window_margin_errors: float
    window: int
    terms: int
    step: float
    margin: float
    seconds: float
    history: np.ndarray = field(repr=False)

    @property
    def throughput(self):
        """Examples per second."""
        return self.examples / self.seconds if self.seconds > 0 else math.inf

    @property
    def mistakes(self):
        """Number of mistakes of a classifier; None for other tasks."""
        return round(self.error * self.examples) if self.task in ("binary", "multiclass") else None

    @property
    def alerts(self):
        """Number of alerts of a detector; None for other tasks."""
        return round(self.error * self.examples) if self.task == "novelty" else None

    def table(self):
        """The figures as text."""
        span = f"last {min(self.window, self.examples)}"
        rows = [("", "all", span)]
        for name, word in _shown_measures(self):
            rows.append((word, *(_shown(self, name, getattr(self, part + name)) for part in ("", "window_"))))
        lines = [_shortened(self.name), _aligned(rows)]
        model = f"{self.terms} terms, step {self.step:.4g}"
        if not math.isnan(self.margin):
            model += f", {_margin_word(self.task)} {self.margin:.4g}"
        lines.append(f"{self.examples} examples in {self.seconds:.3g} s; at the end {model}")
        return "\n".join(lines)

    def __str__(self):
        return self.table()

    def plot(self, path=None, axes=None):
        """Draw the error over time and, below it, what changed in the model; return the figure.

        Parameters
        ----------
        path : str or path, default=None
            Where to save the picture.
        axes : matplotlib axes, default=None
            Draw the errors there, and nothing else; None makes a figure.
        """
        panels = [] if axes is not None else _changing(self)
        figure, (top, *below) = _figure(axes, 1 + len(panels))
        seen = self.history["examples"]
        latest = f"latest {self.window}" if self.window < self.examples else "latest examples"
        top.plot(seen, self.history["window_error"], **_line(0, seen), linewidth=1.2, label=latest)
        top.plot(seen, self.history["error"], **_line(1, seen), linewidth=1.8, label="all so far")
        _finish(top, self.task, ylabel=_ERROR_WORDS[self.task])
        title = textwrap.wrap(self.name, 100, max_lines=2, placeholder=" ...")
        top.set_title("\n".join(title), loc="left", fontsize="medium")
        top.legend(frameon=False, loc="upper right", ncols=2)
        for panel, (name, word) in zip(below, panels, strict=True):
            panel.plot(seen, self.history[name], **_line(2, seen), linewidth=1.5)
            _finish(panel, None, ylabel=word, least=None if name == "margin" else 0)
        for panel in [top, *below]:
            panel.set_xlim(0, self.examples)
        [top, *below][-1].set_xlabel("examples seen")
        return _saved(figure, path)


@dataclass(eq=False)
class Comparison:
    """What several models made of one stream.

    Attributes
    ----------
    reports : dict
        {name: `Report`}, in order of their errors.

    Examples
    --------
    >>> from onlinekernels import NORMA, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> models = {"slow": NORMA(step=0.01), "fast": NORMA(step=1.0)}
    >>> evaluate.compare(models, drifting_gaussians(500)).best
    'fast'
    """

    reports: dict

    @property
    def best(self):
        """Name of the model with the least error."""
        return next(iter(self.reports))

    def __getitem__(self, name):
        return self.reports[name]

    def table(self):
        """The figures as text, the least error first."""
        first = self.reports[self.best]
        measures = _shown_measures(*self.reports.values())
        (_, word), *others = measures
        heads = ["model", word, f"last {min(first.window, first.examples)}", *(word for _, word in others)]
        rows = [(*heads, "terms", "step", "us/example")]
        for report in self.reports.values():
            figures = [_shown(report, key, getattr(report, key)) for key, _ in measures]
            figures.insert(1, _shown(report, "error", report.window_error))
            microseconds = 1e6 * report.seconds / report.examples
            figures += [str(report.terms), f"{report.step:.3g}", f"{microseconds:.2f}"]
            rows.append((_shortened(report.name, 60), *figures))
        return _aligned(rows)

    def __str__(self):
        return self.table()

    def plot(self, path=None, axes=None, windowed=False):
        """Draw the errors of all models over time; return the figure.

        Parameters
        ----------
        path : str or path, default=None
            Where to save the picture.
        axes : matplotlib axes, default=None
            Draw there; None makes a figure.
        windowed : bool, default=False
            The error over the latest examples, in place of the sum of all errors so far.
        """
        figure, (axes,) = _figure(axes, 1)
        reports = list(self.reports.values())
        task, window = reports[0].task, reports[0].window
        # From the most errors to the fewest, so that the legend has the order of the lines.
        for line, report in reversed(list(enumerate(reports))):
            history = report.history
            values = history["window_error"] if windowed else history["error"] * history["examples"]
            label = f"{_shortened(report.name, 40)}: {_shown(report, 'error', report.error)}"
            axes.plot(history["examples"], values, label=label, linewidth=1.5, **_line(line, history))
        word = "sum of absolute errors" if task == "regression" else f"{_ERROR_WORDS[task]} so far"
        word = f"{_ERROR_WORDS[task]}, latest {window}" if windowed else word
        _finish(axes, task if windowed else None, ylabel=word)
        axes.set(xlabel="examples seen", xlim=(0, reports[0].examples))
        inside = {} if windowed else {"loc": "upper left"}
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes.legend(frameon=False, **(inside if len(reports) <= 6 else beside))
        return _saved(figure, path)


@dataclass(eq=False)
class Trial:
    """One setting of parameters and what came of it.

    Attributes
    ----------
    params : dict
        The setting.
    value : float
        The metric; NaN if the setting failed.
    report : Report or None
    error : str or None
        Why the setting failed.
    """

    params: dict
    value: float = math.nan
    report: Report | None = None
    error: str | None = None


@dataclass(eq=False)
class Tuning:
    """Settings of parameters, the best one first.

    Attributes
    ----------
    best : model
        A model with the best setting that has learned nothing yet.
    best_params : dict
        The best setting.
    best_value : float
        Its metric.
    trials : list of `Trial`
        All settings; those that failed come last.
    metric : str

    Examples
    --------
    >>> from onlinekernels import NORMA, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> tuning = evaluate.tune(NORMA(), {"step": [0.01, 1.0, -1.0]}, drifting_gaussians(500))
    >>> tuning.best_params
    {'step': 1.0}
    >>> tuning.trials[-1].error
    "ValueError: The 'step' parameter of NORMA must be a positive number ... Got -1.0 instead."
    """

    best: OnlineLearner
    trials: list
    metric: str

    @property
    def best_params(self):
        return self.trials[0].params

    @property
    def best_value(self):
        return self.trials[0].value

    def table(self):
        """Settings and figures as text, the best one first."""
        names = _setting_names(self.trials)
        rows = [(*names, self.metric, "terms", "seconds")]
        for trial in self.trials:
            setting = [_cell(trial.params[name]) if name in trial.params else "" for name in names]
            if trial.report is None:
                rows.append((*setting, "failed", "", ""))
            else:
                figures = f"{trial.value:.4g}", str(trial.report.terms), f"{trial.report.seconds:.3f}"
                rows.append((*setting, *figures))
        failed = [trial for trial in self.trials if trial.error is not None]
        notes = list(dict.fromkeys(_shortened(trial.error, 200) for trial in failed))
        return "\n".join([_aligned(rows), *notes])

    def __str__(self):
        return self.table()

    def plot(self, path=None, axes=None):
        """Draw the metric: a line over one parameter, a map over two, a ranking of settings otherwise.

        Parameters
        ----------
        path : str or path, default=None
            Where to save the picture.
        axes : matplotlib axes, default=None
            Draw there; None makes a figure.

        Returns
        -------
        matplotlib figure
        """
        figure, (axes,) = _figure(axes, 1)
        done = [trial for trial in self.trials if math.isfinite(trial.value)]
        names = _setting_names(done)
        tried = [_distinct(trial.params.get(name) for trial in done) for name in names]
        varied = [(name, values) for name, values in zip(names, tried, strict=True) if len(values) > 1]
        if len(varied) == 1 and _are_numbers(varied[0][1]):
            _draw_line(axes, done, varied[0][0], self.metric)
        elif len(varied) == 2 and len(done) > len(varied[0][1]) * len(varied[1][1]) / 2:
            _draw_map(axes, done, varied, self.metric)
        else:
            _draw_ranking(axes, done, [name for name, _ in varied], self.metric)
        setting = ", ".join(f"{name}={_cell(self.best_params.get(name))}" for name, _ in varied)
        best = f"best: {setting or 'the only setting'}, {self.metric} {self.best_value:.4g}"
        axes.set_title(_shortened(best, 90), loc="left", fontsize="medium")
        return _saved(figure, path)


# ---- Progressive validation --------------------------------------------------------------------


def progressive(model, stream, *, window=1000, chunk=_CHUNK, classes=None, progress=None):
    """Test, then train: let a model predict and learn a stream, and report how it did.

    The model learns on from where it is. No example is scored by a model that has seen it, whatever the chunk.

    Parameters
    ----------
    model : NORMA, SILK, ... : any algorithm with the method `progressive`
    stream : (X, y), an array X for novelty losses, or an iterable of either
        An iterable, such as a generator or a reader, gives chunks of any length; it is used once and never
        held in memory. A function without arguments is called for its stream.
    window : int, default=1000
        Number of latest examples over which the sliding measures are taken.
    chunk : int, default=200
        Number of examples between two records of the history.
    classes : labels, default=None
        As for the method `progressive`.
    progress : bool or None, default=None
        Whether to show a bar, which needs tqdm; None shows one on a terminal if tqdm is there.

    Returns
    -------
    Report

    Notes
    -----
    A loss that adapts its margin or width (NuHinge, NuNovelty, ...) learns row by row here, so that each
    example is judged by the margin of its time; that is slower than the model is in chunks.

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> model = NORMA("hinge", Gaussian(0.4), step=1.0, regularization=1/15, budget=100)
    >>> report = evaluate.progressive(model, drifting_gaussians(2000))
    >>> print(report)
    NORMA(loss='hinge', kernel=Gaussian(width=0.4), step=1.0, regularization=0.06666666666666667, budget=100)
                      all  last 1000
    --------------------------------
    mistakes        9...%      9...%
    loss           0.5...     0.5...
    margin errors  8...%      8...%
    2000 examples in ... s; at the end 100 terms, step 1, margin 1
    >>> bool(report.error < 0.1)
    True
    """
    _check_model("model", model)
    run = _Run(model, repr(model), _checked_count("progressive", "window", window))
    _run_all("progressive", [run], stream, chunk, classes, progress)
    return run.report()


def compare(models, stream, *, window=1000, chunk=_CHUNK, classes=None, progress=None):
    """Let several models predict and learn one stream, in one pass over it.

    Parameters
    ----------
    models : dict
        {name: model}, all for the same task. Each learns on from where it is.
    stream, window, chunk, classes, progress
        As for `progressive`. A generator will do: each chunk goes to all models.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from onlinekernels import NORMA, Perceptron, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> models = {
    ...     "remembers all": Perceptron(Gaussian(0.4)),
    ...     "forgets": NORMA("hinge", Gaussian(0.4), step=1.0, regularization=1/15),
    ... }
    >>> comparison = evaluate.compare(models, drifting_gaussians(2000))
    >>> list(comparison.reports)
    ['forgets', 'remembers all']
    >>> print(comparison)
    model          mistakes  last 1000     loss  margin errors  terms  step  us/example
    -----...
    forgets           9...
    remembers all    18...
    """
    _check_models(models)
    window = _checked_count("compare", "window", window)
    runs = [_Run(model, str(name), window) for name, model in models.items()]
    _run_all("compare", runs, stream, chunk, classes, progress)
    reports = {name: run.report() for name, run in zip(models, runs, strict=True)}
    return Comparison(dict(sorted(reports.items(), key=lambda item: _rank(item[1].error))))


def _run_all(owner, runs, stream, chunk, classes, progress):
    """Let each run learn the stream, piece by piece; a record after every `chunk` examples."""
    chunk = _checked_count(owner, "chunk", chunk)
    stream = _opened(stream)
    for run in runs:
        run.begin(classes, stream[1] if isinstance(stream, tuple) else None)
    since = 0
    with _bar(progress, len(stream[0]) if isinstance(stream, tuple) else None, " examples") as advance:
        for X, y in _pieces(stream, chunk):
            for run in runs:
                run.learn(X, y)
            since = (since + len(X)) % chunk
            if since == 0:
                _record(runs)
            advance(len(X))
    if since:
        _record(runs)
    if runs[0].examples == 0:
        raise ValueError("stream must hold at least one example. It holds none.")


def _record(runs):
    for run in runs:
        run.record()


class _Run:
    """A model on its way through a stream."""

    def __init__(self, model, name, window):
        self.model = model
        self.name = name
        self.window = window
        self.examples = 0
        self.seconds = 0.0
        self.sums = np.zeros(len(_MEASURES))
        self.latest = np.zeros((0, len(_MEASURES)))
        self.records = []
        self.classes = None  # for the first call

    @property
    def task(self):
        return self.model._current_loss().task

    def begin(self, classes, y):
        """Name the classes: those given, or the two in y, so that the first chunk need not show both."""
        if classes is None and self.task == "binary" and self.model._state is None:
            classes = _two_labels(y)
        self.classes = classes

    def learn(self, X, y):
        """Predict and learn some examples, and measure."""
        try:
            scores, margins, known = self._scores(X, y)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"{self.name} had learned {self.examples} examples of the stream before this chunk.")
            raise
        measures = _measured(self.model, scores, y, margins, known)
        self.examples += len(measures)
        self.sums += measures.sum(axis=0)
        self.latest = np.concatenate([self.latest, measures])[-self.window :]

    def _scores(self, X, y):
        """(scores; margins in force, one for all or one for each; number of labels known before these examples)."""
        model = self.model
        known = 0 if model._state is None or self.task != "multiclass" else len(model.classes_)
        row_by_row = model._current_loss().adapts
        if row_by_row and self.classes is None:
            self.begin(None, y)
        start = perf_counter()
        if row_by_row:
            scores, margins = _row_by_row(model, X, y, self.classes)
        else:
            scores, margins = model.progressive(X, y, classes=self.classes), _margin(model)
        self.seconds += perf_counter() - start
        self.classes = None
        return scores, margins, known

    def record(self):
        """Add a line to the history."""
        model = self.model
        means, latest = self.sums / self.examples, self.latest.mean(axis=0)
        state = model.n_terms_, model.step_, _margin(model), self.seconds
        self.records.append((self.examples, *means, *latest, *state))

    def report(self):
        history = np.array(self.records, dtype=_HISTORY)
        totals = {name: history[name][-1].item() for name in _HISTORY.names}
        return Report(name=self.name, task=self.task, window=self.window, history=history, **totals)


def _row_by_row(model, X, y, classes):
    """(scores, margin in force at each row) of a model that adapts its margin."""
    rows, margins = [], np.empty(len(X))
    for i in range(len(X)):
        margins[i] = _margin(model)
        target = None if y is None else y[i : i + 1]
        rows.append(model.progressive(X[i : i + 1], target, classes=classes if i == 0 else None)[0])
    if np.ndim(rows[-1]) == 0:
        return np.array(rows), margins
    scores = np.zeros((len(rows), len(rows[-1])))
    for i, row in enumerate(rows):  # a label that joined later has the score 0
        scores[i, : len(row)] = row
    return scores, margins


def _margin(model):
    """The margin or width in force; NaN for a loss without one."""
    loss = model._current_loss()
    if loss.scalar_name is None:
        return math.nan
    return loss.core()[1] if model._state is None else model._state.engine.scalar()


# ---- Measures ----------------------------------------------------------------------------------


def _measured(model, scores, y, margins, known):
    """An array with a row for each example and a column for each of `_MEASURES`; NaN where there is none."""
    loss, state = model._current_loss(), model._state
    n = len(scores)
    y, _ = targets(loss, state.labels, n, y)
    out = np.full((n, len(_MEASURES)), np.nan)
    if loss.task == "multiclass":
        y = _columns_of(state.labels, y)
        fixed = state.labels.fixed
        out[:, 0] = _wrong_labels(scores, y, None if fixed else known)
        if not fixed:
            scores = _among_known(scores, _labels_before(y, known, including_own=True))
    elif loss.task == "binary":
        out[:, 0] = y * scores <= 0
    elif loss.task == "novelty":
        out[:, 0] = scores < (margins if loss.scalar_name else 0.0)
    else:
        out[:, 0] = np.abs(y - scores)
        out[:, 1] = (y - scores) ** 2
    structure = SimpleNamespace(outputs=lambda: state.engine.expansion.outputs)
    extra = {"labels": structure} if loss.structured else {}
    out[:, 2] = _loss_values(loss, scores, y, margins, extra)
    out[:, 3] = _margin_errors(loss, scores, y, margins, extra)
    return out


def _columns_of(labels, indices):
    """Columns of the scores that belong to encoded labels."""
    indices = indices.astype(np.intp)
    return indices if labels.display is None else np.argsort(labels.display)[indices]


def _wrong_labels(scores, y, known):
    """Whether each prediction is wrong; only labels that were known before an example can be predicted."""
    if known is None:
        return scores.argmax(axis=1) != y
    before = _labels_before(y, known)
    guesses = np.where(before > 0, _among_known(scores, before).argmax(axis=1), -1)
    return guesses != y


def _labels_before(y, known, including_own=False):
    """Number of labels that had joined before each example; columns are in the order of joining."""
    reached = np.maximum(np.maximum.accumulate(y + 1), known)
    return reached if including_own else np.concatenate([[known], reached[:-1]])


def _among_known(scores, counts):
    """Scores with minus infinity for the labels that have not joined yet."""
    return np.where(np.arange(scores.shape[1]) < counts[:, None], scores, -np.inf)


def _loss_values(loss, scores, y, margins, extra):
    """The loss of each example at the margin of its time."""
    try:
        if np.ndim(margins) == 0 and type(loss).value.__module__.startswith("onlinekernels."):
            return loss.value(scores, y, **extra)
        return np.array([float(one) for one in _values_one_by_one(loss, scores, y, margins, extra)])
    except NotImplementedError:  # a loss of one's own needs a derivative only
        return np.full(len(scores), np.nan)


def _values_one_by_one(loss, scores, y, margins, extra):
    loss = copy.copy(loss)
    for i, score in enumerate(scores):
        if np.ndim(margins):
            setattr(loss, loss.scalar_name, float(margins[i]))
        if np.ndim(score):
            score = score[np.isfinite(score)]
        yield loss.value(score, y[i], **extra)


def _margin_errors(loss, scores, y, margins, extra):
    """Whether each example lies within the margin or outside the tube, with the losses' conventions at ties."""
    if loss.task == "multiclass" and not (loss.is_compiled() and hasattr(loss, "_runner_up")):
        return np.nan
    if loss.task == "multiclass":
        return _runner_up_errors(loss, scores, y, margins, extra)
    if loss.scalar_name is None:
        return np.nan
    if loss.task == "binary":
        return y * scores <= margins
    return scores < margins if loss.task == "novelty" else np.abs(y - scores) > margins


def _runner_up_errors(loss, scores, y, margins, extra):
    """Whether the hinge over the runner-up is positive."""
    if np.ndim(margins) == 0:
        return (loss.derivative(scores, y, **extra) != 0).any(axis=1)
    loss, wrong = copy.copy(loss), np.empty(len(scores))
    for i, score in enumerate(scores):
        loss.margin = float(margins[i])
        wrong[i] = (loss.derivative(score[None], y[i : i + 1], **extra) != 0).any()
    return wrong


# ---- Streams -----------------------------------------------------------------------------------


def _opened(stream):
    """A stream as (X, y) or as an iterable of chunks."""
    if callable(stream):
        stream = stream()
    if isinstance(stream, np.ndarray):
        stream = stream, None
    if isinstance(stream, tuple):
        return _pair(stream)
    if isinstance(stream, (str, bytes, Mapping)) or not isinstance(stream, Iterable):
        raise TypeError(
            "stream must be (X, y), an array X, or an iterable of such chunks. Got "
            f"{type(stream).__name__} instead."
        )
    return stream


def _pair(chunk):
    """(X, y) of a chunk; y is None where there are no labels."""
    if isinstance(chunk, np.ndarray):
        return chunk, None
    if not isinstance(chunk, (tuple, list)) or len(chunk) != 2:
        length = f" of length {len(chunk)}" if hasattr(chunk, "__len__") else ""
        raise TypeError(f"stream must give pairs (X, y) or arrays X. Got a {type(chunk).__name__}{length} instead.")
    X, y = chunk
    X = X if hasattr(X, "__len__") else np.asarray(X)
    if y is not None:
        y = label_column(y, len(X))
        check_length(y, len(X), "y")
    return X, y


def _pieces(stream, chunk):
    """Pieces (X, y) that end wherever a record is due: after `chunk` examples, and again, and again."""
    due = chunk
    for X, y in [stream] if isinstance(stream, tuple) else map(_pair, stream):
        begin = 0
        while begin < len(X):
            end = min(begin + due, len(X))
            yield X[begin:end], None if y is None else y[begin:end]
            due = due - (end - begin) or chunk
            begin = end


def _two_labels(y):
    """The labels in y if there are two, so that a first chunk need not show both; otherwise None."""
    if y is None:
        return None
    try:
        seen = list(dict.fromkeys(np.asarray(y).tolist()))
    except TypeError:
        return None
    return seen if len(seen) == 2 else None


def _kept(stream):
    """A stream that can be used more than once, and sent to other processes if its chunks can."""
    if isinstance(stream, (tuple, np.ndarray)) or callable(stream) or not isinstance(stream, Iterable):
        return stream
    return [copy.deepcopy(chunk) for chunk in stream]  # a reader may use its arrays again


# ---- Tuning ------------------------------------------------------------------------------------


def tune(model, grid, stream, *, executor=None, metric="error", window=1000, chunk=1000, classes=None, progress=None):
    """Try settings of parameters on one stream and rank them.

    Every setting is set on a fresh copy of the model, which learns the whole stream as in `progressive`. The
    model itself is not touched. A setting that raises is recorded with its error.

    Parameters
    ----------
    model : model
        Its parameters hold where a setting says nothing.
    grid : dict or list of dict
        {name: list of values} means all combinations; a list holds the settings themselves. Names may be nested,
        as in "kernel__width".
    stream : as for `progressive`
        An iterable is read once and kept. Executors in other processes send the stream with every setting: for
        a large one, give a function that opens it there.
    executor : concurrent.futures.Executor, default=None
        Where settings run: threads, processes, or `Client.get_executor()` of Dask. None runs one after the other.
    metric : str or callable, default="error"
        A numeric attribute of `Report`, or a function of a report that gives a number; the least is best.
    window, chunk, classes, progress
        As for `progressive`; the bar counts settings. Chunks are longer here, to leave more to the compiled core.

    Returns
    -------
    Tuning

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> grid = {"kernel__width": [0.4, 4.0], "step": [0.1, 1.0]}
    >>> model = NORMA("hinge", Gaussian(), regularization=1/15, budget=100)
    >>> tuning = evaluate.tune(model, grid, drifting_gaussians(1000))
    >>> tuning.best_params
    {'kernel__width': 0.4, 'step': 1.0}
    >>> tuning.best
    NORMA(loss='hinge', kernel=Gaussian(width=0.4), step=1.0, regularization=0.06666666666666667, budget=100)

    On two threads:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     threaded = evaluate.tune(model, grid, drifting_gaussians(1000), executor=executor)
    >>> threaded.best_params == tuning.best_params
    True
    """
    _check_model("model", model)
    settings = _settings(grid)
    measure = _metric(metric, model)
    options = {
        "window": _checked_count("tune", "window", window),
        "chunk": _checked_count("tune", "chunk", chunk),
        "classes": classes,
    }
    model = fresh_copy(model)
    trials = _trials(model, settings, _kept(stream), options, executor, progress)
    for trial in trials:
        if trial.report is not None:
            trial.value = float(measure(trial.report))
    _refuse_failure(trials, metric)
    trials.sort(key=lambda trial: (trial.report is None, _rank(trial.value)))
    best = model.set_params(**copy.deepcopy(trials[0].params))
    return Tuning(best, trials, metric if isinstance(metric, str) else getattr(metric, "__name__", "metric"))


def fresh_copy(model):
    """A model with the same parameters that has learned nothing.

    >>> from onlinekernels import NORMA, evaluate
    >>> model = NORMA(step=0.5).partial_fit([[0.0], [1.0]], [-1, 1])
    >>> copied = evaluate.fresh_copy(model)
    >>> copied, hasattr(copied, "t_")
    (NORMA(step=0.5), False)
    """
    return type(model)(**copy.deepcopy(model.get_params(deep=False)))


def _settings(grid):
    """The settings that a grid means, a list of dicts."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
                raise ValueError(f"grid[{name!r}] must be a list of values. Got {values!r} instead.")
        settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    else:
        settings = list(grid) if isinstance(grid, Iterable) else [grid]
        for setting in settings:
            if not isinstance(setting, Mapping):
                raise ValueError(f"grid must be a dict of lists or a list of dicts. Got {setting!r} instead.")
    if not settings:
        raise ValueError(f"grid must hold at least one setting. Got {grid!r} instead.")
    return settings


def _metric(metric, model):
    """A function from a report to a number."""
    if callable(metric):
        return metric
    known = [f.name for f in fields(Report) if f.type in (int, float) and f.name not in ("examples", "window")]
    if metric not in known:
        raise bad_parameter("tune", "metric", f"a function of a report or one of {', '.join(known)}", metric)
    if metric in ("error", "window_error") and model._current_loss().task == "novelty":
        raise ValueError(
            f"metric={metric!r} is the rate of alerts for a novelty loss, and fewer are not better. Give a function, "
            "such as metric=lambda report: abs(report.error - 0.01)."
        )
    return lambda report: getattr(report, metric)


def _try(model, params, stream, options):
    """One trial; it runs wherever the executor likes, so all it needs comes as arguments."""
    try:
        model = fresh_copy(model).set_params(**copy.deepcopy(params))
        report = progressive(model, stream, progress=False, **options)
    except Exception as error:
        return Trial(dict(params), error=_told(error))
    return Trial(dict(params), report=report)


def _told(error):
    return f"{type(error).__name__}: {error}"


def _trials(model, settings, stream, options, executor, progress):
    """Trials of all settings, in their order."""
    with _bar(progress, len(settings), " settings") as advance:
        if executor is None:
            trials = []
            for params in settings:
                trials.append(_try(model, params, stream, options))
                advance(1)
            return trials
        futures = [executor.submit(_try, model, params, stream, options) for params in settings]
        try:
            for _ in as_completed(futures):
                advance(1)
        except BaseException:  # Ctrl-C: what has not begun need not begin
            for future in futures:
                future.cancel()
            raise
        return [_result(future, params) for future, params in zip(futures, settings, strict=True)]


def _result(future, params):
    try:
        return future.result()
    except Exception as error:  # it could not be sent, or its process died
        return Trial(dict(params), error=_told(error))


def _refuse_failure(trials, metric):
    if all(trial.report is None for trial in trials):
        raise ValueError(f"All {len(trials)} settings failed. The first, {trials[0].params}: {trials[0].error}")
    if all(trial.report is None or math.isnan(trial.value) for trial in trials):
        raise ValueError(f"The 'metric' parameter of tune must give a number. {metric!r} is NaN for all settings.")


def _rank(value):
    """A key for sorting numbers, NaN last."""
    return math.inf if math.isnan(value) else value


# ---- Checks ------------------------------------------------------------------------------------


def _check_model(name, model):
    if not isinstance(model, OnlineLearner):
        raise TypeError(f"{name} must be an online learner such as NORMA(). Got {model!r} instead.")
    if not hasattr(model, "progressive"):
        raise TypeError(f"{name} must learn one example after the other. {type(model).__name__} learns by fit only.")


def _check_models(models):
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {models!r} instead.")
    names = {}
    for name, model in models.items():
        _check_model(f"models[{name!r}]", model)
        if id(model) in names:
            raise ValueError(
                f"models must be different objects, as each learns. {names[id(model)]!r} and {name!r} are one."
            )
        names[id(model)] = name
    tasks = {name: model._current_loss().task for name, model in models.items()}
    # Mistakes are mistakes, whichever loss of a classifier counts them.
    if len({"classes" if task in ("binary", "multiclass") else task for task in tasks.values()}) > 1:
        raise ValueError(f"models must all be for the same task, so that errors compare. Got {tasks} instead.")


def _checked_count(owner, name, value):
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < 1:
        raise bad_parameter(owner, name, "an integer of at least 1", value)
    return int(value)


# ---- Text --------------------------------------------------------------------------------------


def _shown_measures(*reports):
    """(name, words) of the measures that at least one of the reports has."""
    words = [
        ("error", _ERROR_WORDS[reports[0].task]),
        ("squared_error", "squared error"),
        ("loss", "loss"),
        ("margin_errors", "outside the tube" if reports[0].task == "regression" else "margin errors"),
    ]
    return [(name, word) for name, word in words if not all(math.isnan(getattr(r, name)) for r in reports)]


def _margin_word(task):
    return "width" if task == "regression" else "margin"


def _shown(report, name, value):
    if math.isnan(value):
        return ""
    is_rate = name == "margin_errors" or name == "error" and report.task != "regression"
    return f"{value:.2%}" if is_rate else f"{value:.4g}"


def _aligned(rows):
    """Rows of text as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _shortened(text, width=110):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _cell(value):
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{value:.4g}"
    return _shortened(value if isinstance(value, str) else repr(value), 40)


def _setting_names(trials):
    return list(dict.fromkeys(name for trial in trials for name in trial.params))


# ---- Progress ----------------------------------------------------------------------------------


@contextmanager
def _bar(progress, total, unit):
    """Give a function that hears how much more is done: it moves a bar, or does nothing."""
    wanted = sys.stderr.isatty() if progress is None else progress
    bar = _tqdm(total, unit, required=progress) if wanted else None
    if bar is None:
        yield lambda done: None
        return
    with bar:
        yield bar.update


def _tqdm(total, unit, required):
    try:
        from tqdm import tqdm
    except ImportError as error:
        if not required:
            return None
        message = 'progress=True needs tqdm, which is not installed: pip install "onlinekernels[progress]"'
        raise ImportError(message) from error
    return tqdm(total=total, unit=unit, unit_scale="examples" in unit, leave=False)


# ---- Plots -------------------------------------------------------------------------------------


def _figure(axes, rows):
    """(figure, list of axes): the given ones, or a new figure with a tall panel above small ones."""
    if axes is not None:
        return axes.figure, [axes]
    try:
        # Figure and canvas as objects: pyplot would choose a backend and keep state for the process.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        message = 'Plots need matplotlib, which is not installed: pip install "onlinekernels[plot]"'
        raise ImportError(message) from error
    figure = Figure(figsize=(8, 3.5 + 1.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[3] + [1] * (rows - 1))
    return figure, list(panels[:, 0])


def _saved(figure, path):
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _finish(axes, task, ylabel, least=0):
    """What all panels share; rates are shown in percent."""
    axes.set_ylabel(ylabel)
    if least is not None:
        axes.set_ylim(bottom=least)
    if task is not None and task != "regression":
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def _changing(report):
    """(name, words) of what changed in the model while it learned."""
    candidates = [("terms", "terms"), ("step", "step"), ("margin", _margin_word(report.task))]
    return [(name, word) for name, word in candidates if np.unique(report.history[name]).size > 1]


def _line(number, points):
    """Look of a line: other colours first, then other styles; a few points are marked, as one makes no line."""
    return {
        "color": _COLORS[number % len(_COLORS)],
        "linestyle": _STYLES[number // len(_COLORS) % len(_STYLES)],
        "marker": "o" if len(points) < 10 else None,
        "markersize": 4,
    }


def _distinct(values):
    """Different values, sorted where they can be; settings may hold values that cannot be hashed."""
    found = []
    for value in values:
        if not any(_cell(value) == _cell(other) for other in found):
            found.append(value)
    return sorted(found) if _are_numbers(found) else found


def _are_numbers(values):
    return all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in values)


def _draw_line(axes, trials, name, metric):
    points = sorted((trial.params[name], trial.value) for trial in trials if name in trial.params)
    x, y = zip(*points, strict=True)
    axes.plot(x, y, "o-", color=_COLORS[0], linewidth=1.5)
    axes.plot(trials[0].params.get(name), trials[0].value, "o", color=_COLORS[1], markersize=10, zorder=3)
    if min(x) > 0 and max(x) > 20 * min(x):
        axes.set_xscale("log")
        if len(x) <= 12:
            axes.set_xticks(x, [_cell(value) for value in x])
            axes.minorticks_off()
    _finish(axes, None, ylabel=metric, least=0 if min(y) >= 0 else None)
    axes.set_xlabel(name)


def _draw_map(axes, trials, varied, metric):
    """A cell for each pair of values; the best is framed."""
    (row_name, row_values), (column_name, column_values) = varied
    row_cells, column_cells = [_cell(v) for v in row_values], [_cell(v) for v in column_values]
    values = np.full((len(row_cells), len(column_cells)), np.nan)
    row_places = [row_cells.index(_cell(trial.params.get(row_name))) for trial in trials]
    column_places = [column_cells.index(_cell(trial.params.get(column_name))) for trial in trials]
    places = list(zip(row_places, column_places, strict=True))
    for place, trial in zip(reversed(places), reversed(trials), strict=True):  # of twins the better one
        values[place] = trial.value
    image = axes.imshow(values, cmap="viridis_r", aspect="auto", origin="lower")
    axes.figure.colorbar(image, ax=axes, label=metric)
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if values.size <= 150:
        for (i, j), value in np.ndenumerate(values):
            text = "failed" if np.isnan(value) else f"{value:.3g}"
            axes.text(j, i, text, ha="center", va="center", color="white" if value > middle else "black")
    i, j = places[0]
    axes.add_patch(_frame(j - 0.5, i - 0.5))
    axes.set(xlabel=column_name, ylabel=row_name)
    axes.set_xticks(range(len(column_cells)), column_cells)
    axes.set_yticks(range(len(row_cells)), row_cells)


def _frame(x, y):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 1, 1, fill=False, edgecolor=_COLORS[1], linewidth=3, clip_on=False, zorder=3)


def _draw_ranking(axes, trials, names, metric, most=20):
    """The best settings from top to bottom."""
    best = trials[:most]
    labels = [", ".join(f"{name}={_cell(trial.params.get(name))}" for name in names) for trial in best]
    places = range(len(best))
    axes.plot([trial.value for trial in best], places, "o", color=_COLORS[0])
    axes.set_yticks(places, [_shortened(label, 70) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(metric)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
