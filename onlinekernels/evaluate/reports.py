"""What comes of an evaluation: it prints as a table, plots, and becomes a data frame of pandas."""
from __future__ import annotations

import math
import numbers
import textwrap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Path

_MOST_LINES = 10  # in a plot of settings
RATES = ("error", "squared_error", "f1", "macro_f1", "auc")
MOST_IS_BEST = ("f1", "macro_f1", "auc", "window_f1", "window_macro_f1", "window_auc")
HISTORY = np.dtype(
    [("examples", np.int64)]
    + [(window + name, np.float64) for window in ("", "window_") for name in RATES]
    + [("terms", np.int64), ("step", np.float64), ("margin", np.float64), ("seconds", np.float64)]
)


class _Result:
    """Prints as its table."""

    def __str__(self):
        return self.table()


@dataclass(eq=False)
class Confusion(_Result):
    """Which label was predicted for which.

    ``counts[i, j]`` examples of ``labels[i]`` were taken for ``labels[j]``, and ``undecided[i]`` of them for none, by a
    score of 0 between two classes or before a class was known. Labels are sorted, of a detector +1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = Confusion(["ham", "spam"], np.array([[5, 1], [2, 3]]), np.array([1, 0]))
    >>> print(confusion)
    is    taken for ham  spam  nothing
    ----------------------------------
    ham               5     1        1
    spam              2     3        0
    >>> confusion.mistakes, round(confusion.f1, 3), round(confusion.macro_f1, 3)
    (4, 0.667, 0.69)
    """

    labels: list
    counts: np.ndarray
    undecided: np.ndarray

    @property
    def mistakes(self) -> int:
        """Examples that were not given their own label."""
        return int(self.counts.sum() + self.undecided.sum() - np.trace(self.counts))

    @property
    def f1(self) -> float:
        """F1 of the second of two labels; NaN where there are not two."""
        return float(self._f1_by_label()[1]) if len(self.labels) == 2 else math.nan

    @property
    def macro_f1(self) -> float:
        """Mean of F1 over the labels that came or were predicted."""
        scores = self._f1_by_label()
        return float(np.nanmean(scores)) if np.isfinite(scores).any() else math.nan

    def _f1_by_label(self):
        """2 hits / (2 hits + false alarms + misses) of each label; NaN if it neither came nor was predicted."""
        hits = np.diagonal(self.counts)
        involved = self.counts.sum(axis=0) + self.counts.sum(axis=1) + self.undecided  # hits twice
        return np.divide(2.0 * hits, involved, out=np.full(len(hits), np.nan), where=involved > 0)

    def table(self) -> str:
        """The counts as text."""
        names = [_shortened(str(label), 20) for label in self.labels]
        heads = [f"taken for {names[0]}", *names[1:]] if names else []
        columns = self.counts
        if self.undecided.any():
            heads, columns = [*heads, "nothing"], np.column_stack([columns, self.undecided])
        return _aligned([("is", *heads), *((name, *map(str, row)) for name, row in zip(names, columns, strict=True))])


@dataclass(eq=False)
class Report(_Result):
    """Measures of one model on a stream.

    Each of them, from `error` to `seconds`, is one at the end; `history` is a structured array with a record after each
    chunk of examples, and "examples" says how many were seen by then. Those that begin with ``window_`` are taken over
    the latest `window` examples.

    Attributes
    ----------
    name, task : str
        What the model is called; "binary", "multiclass", "regression" or "novelty".
    examples, window : int
    error, window_error : float
        Fraction of mistakes of a classifier (a score of 0 between two classes is one), mean absolute error of
        a regressor, fraction of alerts of a detector.
    squared_error, window_squared_error : float
        Mean squared error of a regressor; otherwise NaN.
    f1, macro_f1, window_f1, window_macro_f1 : float
        F1 of the second of two classes in sorted order, NaN unless there are two; the mean of F1 over all classes.
    auc, window_auc : float
        Area under the ROC curve of the scores of two classes, exact; NaN for other tasks, and before both classes came.
    confusion, window_confusion : Confusion or None
        Which label was predicted for which; None where there are no labels.
    terms, step, margin : int, float, float
        Terms in the model, its latest step size, and the margin or width of its loss; 0 and NaN where there is none.
    seconds : float
        Time that the model took to predict and learn.

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
    window: int
    history: Array = field(repr=False)
    confusion: Confusion | None = field(repr=False, default=None)
    window_confusion: Confusion | None = field(repr=False, default=None)

    def __getattr__(self, name: str) -> Any:
        if name in (HISTORY.names or ()):
            return self.history[name][-1].item()
        raise AttributeError(f"'Report' object has no attribute {name!r}")

    @property
    def mistakes(self) -> int | None:
        """Number of mistakes of a classifier; None for other tasks."""
        return round(self.error * self.examples) if self.task in ("binary", "multiclass") else None

    @property
    def alerts(self) -> int | None:
        """Number of alerts of a detector; None for other tasks."""
        return round(self.error * self.examples) if self.task == "novelty" else None

    def table(self) -> str:
        """The figures as text."""
        rows = [("", "all", f"last {min(self.window, self.examples)}")]
        for name, word in _ratings([self]).items():
            rows.append((word, *(_shown(self.task, name, getattr(self, window + name)) for window in ("", "window_"))))
        end = f"{self.examples} examples in {self.seconds:.3g} s"
        if not math.isnan(self.step):
            end += f"; at the end {self.terms} terms, step {self.step:.4g}"
        if not math.isnan(self.margin):
            end += f", {_margin_word(self.task)} {self.margin:.4g}"
        return "\n".join([_shortened(self.name), _aligned(rows), end])

    def to_frame(self) -> Any:
        """The history as a data frame of pandas, indexed by the number of examples."""
        from pandas import DataFrame

        return DataFrame(self.history).set_index("examples")

    def plot(self, path: Path | None = None, axes: Any = None) -> Any:
        """Draw the error over time and, below it, what changed in the model; return the figure.

        It is saved at `path`; into given `axes` of matplotlib the error is drawn alone.
        """
        words = {"terms": "terms", "step": "step", "margin": _margin_word(self.task)}
        changing = [name for name in words if axes is None and np.unique(self.history[name]).size > 1]
        figure, panels = _figure(axes, 1 + len(changing))
        seen, top = self.history["examples"], panels[0]
        top.plot(seen, self.history["window_error"], **_line(0, seen), linewidth=1.2, label=f"latest {self.window}")
        top.plot(seen, self.history["error"], **_line(1, seen), linewidth=1.8, label="all so far")
        _finish(top, self.task, _ERROR_WORDS[self.task])
        top.set_title("\n".join(textwrap.wrap(self.name, 60, max_lines=2, placeholder=" ...")), loc="left",
                      fontsize="medium")
        top.legend(frameon=False, loc="upper right", ncols=2)
        for panel, name in zip(panels[1:], changing, strict=True):
            panel.plot(seen, self.history[name], **_line(2, seen), linewidth=1.5)
            _finish(panel, None, words[name], least=None if name == "margin" else 0)
        panels[-1].set(xlabel="examples seen", xlim=(0, self.examples))
        return _saved(figure, path)


@dataclass(eq=False)
class Comparison(_Result):
    """Reports of several models on one stream, {name: `Report`} in order of their errors.

    Examples
    --------
    >>> from onlinekernels import NORMA, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> models = {"slow": NORMA(step=0.01), "fast": NORMA(step=1.0)}
    >>> evaluate.compare(models, drifting_gaussians(500)).best
    'fast'
    """

    reports: dict[Any, Report]

    @property
    def best(self) -> Any:
        """Name of the model with the least error."""
        return next(iter(self.reports))

    def __getitem__(self, name: Any) -> Report:
        return self.reports[name]

    def table(self) -> str:
        """The figures that mean the same for all models as text, the least error first."""
        first = self.reports[self.best]
        error, *others = _ratings(list(self.reports.values())).items()
        columns = [error, ("window_error", f"last {min(first.window, first.examples)}"), *others]
        rows = [("model", *(word for _, word in columns), "terms", "step", "us/example")]
        for report in self.reports.values():
            figures = [_shown(first.task, name, getattr(report, name)) for name, _ in columns]
            own = ["", ""] if math.isnan(report.step) else [str(report.terms), f"{report.step:.3g}"]
            rows.append((_shortened(report.name, 60), *figures, *own, f"{1e6 * report.seconds / report.examples:.2f}"))
        return _aligned(rows)

    def to_frame(self) -> Any:
        """All figures as a data frame of pandas, with a row for each model."""
        from pandas import DataFrame

        rows = [report.history[-1].tolist() for report in self.reports.values()]
        return DataFrame(rows, index=list(self.reports), columns=HISTORY.names)

    def plot(self, path: Path | None = None, axes: Any = None, windowed: bool = False) -> Any:
        """Draw the sums of errors of all models over time, or with `windowed` the error over the latest examples."""
        return _plot_errors(list(self.reports.values()), path, axes, windowed)


@dataclass(eq=False)
class Trial:
    """One setting of parameters, its metric and its report, or NaN and the error with which it failed."""

    params: dict[str, Any]
    value: float = math.nan
    report: Report | None = None
    error: str | None = None


@dataclass(eq=False)
class Tuning(_Result):
    """Settings of parameters, the best one first, as a list of `Trial`; those that failed come last.

    `best` is a model with the best setting that has learned nothing yet, `best_params` that setting, and `best_value`
    its `metric`.

    Examples
    --------
    >>> from onlinekernels import NORMA, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> tuning = evaluate.tune(NORMA(), [{"step": step} for step in (0.01, 1.0, -1.0)], drifting_gaussians(500))
    >>> tuning.best_params
    {'step': 1.0}
    >>> tuning.trials[-1].error
    "ValueError: The 'step' parameter of NORMA must be a positive number, ... Got -1.0 instead."
    """

    best: Any
    trials: list[Trial]
    metric: str

    @property
    def best_params(self) -> dict[str, Any]:
        return self.trials[0].params

    @property
    def best_value(self) -> float:
        return self.trials[0].value

    def table(self) -> str:
        """Settings and figures as text, the best one first."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.params))
        rows = [(*names, self.metric, "terms", "seconds")]
        for trial in self.trials:
            figures = ["failed", "", ""]
            if trial.report is not None:
                figures = [f"{trial.value:.4g}", str(trial.report.terms), f"{trial.report.seconds:.3f}"]
            rows.append((*(_cell(trial.params[name]) if name in trial.params else "" for name in names), *figures))
        errors = dict.fromkeys(_shortened(trial.error, 200) for trial in self.trials if trial.error is not None)
        return "\n".join([_aligned(rows), *errors])

    def to_frame(self) -> Any:
        """Settings, metric and error as a data frame of pandas, with a row for each trial."""
        from pandas import DataFrame

        return DataFrame([{**trial.params, self.metric: trial.value, "failure": trial.error} for trial in self.trials])

    def plot(self, path: Path | None = None, axes: Any = None, windowed: bool = False) -> Any:
        """Draw the errors of the best settings over time, as `Comparison` draws those of models."""
        reports = [
            replace(trial.report, name=", ".join(f"{name}={_cell(value)}" for name, value in trial.params.items()))
            for trial in self.trials[:_MOST_LINES] if trial.report is not None
        ]
        return _plot_errors(reports, path, axes, windowed)


# ---- Text ----

_ERROR_WORDS = {
    "binary": "mistakes", "multiclass": "mistakes", "regression": "mean absolute error", "novelty": "alerts",
}
_WORDS = {"squared_error": "squared error", "f1": "F1", "macro_f1": "macro F1", "auc": "AUC"}


def _ratings(reports):
    """{name: words} of the measures that mean the same for all models of a task, as far as there are any."""
    words = {"error": _ERROR_WORDS[reports[0].task], **_WORDS}
    return {name: words[name] for name in words if not all(math.isnan(getattr(report, name)) for report in reports)}


def _margin_word(task):
    return "width" if task == "regression" else "margin"


def _shown(task, name, value):
    """A measure as text; empty if there is none."""
    if math.isnan(value):
        return ""
    return f"{value:.2%}" if name.endswith("error") and task != "regression" else f"{value:.4g}"


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
    """The value of a parameter as text."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{value:.4g}"
    return _shortened(value if isinstance(value, str) else repr(value), 40)


def rank(value):
    """A key for sorting numbers, NaN last."""
    return math.inf if math.isnan(value) else value


# ---- Plots ----

# Okabe and Ito's colours can be told apart with any kind of colour vision.
_COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_STYLES = ["-", "--", "-.", ":"]


def _plot_errors(reports, path, axes, windowed):
    """A line for each of some reports; one figure of `Comparison` and `Tuning`."""
    figure, (axes,) = _figure(axes, 1)
    task, window, word = reports[0].task, reports[0].window, _ERROR_WORDS[reports[0].task]
    ends = "window_error" if windowed else "error"
    # From the most errors to the fewest, so that the legend has the order of the lines' ends.
    for line, report in sorted(enumerate(reports), key=lambda item: rank(getattr(item[1], ends)), reverse=True):
        history = report.history
        values = history["window_error"] if windowed else history["error"] * history["examples"]
        label = f"{_shortened(report.name, 40)}: {_shown(task, 'error', getattr(report, ends))}"
        axes.plot(history["examples"], values, label=label, linewidth=1.5, **_line(line, history))
    so_far = "sum of absolute errors" if task == "regression" else f"{word} so far"
    _finish(axes, task if windowed else None, f"{word}, latest {window}" if windowed else so_far)
    axes.set(xlabel="examples seen", xlim=(0, reports[0].examples))
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    axes.legend(frameon=False, **({} if len(reports) <= 6 else beside))
    return _saved(figure, path)


def _figure(axes, rows):
    """(figure, list of axes): the given ones, or a new figure with a tall panel above small ones."""
    if axes is not None:
        return axes.figure, [axes]
    try:
        from matplotlib.figure import Figure  # pyplot would choose a backend and keep state for the process
    except ImportError as error:
        raise ImportError("Plots need matplotlib, which is not installed: pip install matplotlib") from error
    figure = Figure(figsize=(8, 3.5 + 1.4 * rows), layout="constrained")
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[3] + [1] * (rows - 1))
    return figure, list(panels[:, 0])


def _saved(figure, path):
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _finish(axes, task, ylabel, least=0):
    """What all panels share; rates are shown in percent."""
    axes.set(ylabel=ylabel, ylim=(least, None))
    if task is not None and task != "regression":
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def _line(number, points):
    """Look of a line: other colours first, then other styles; a few points are marked, as one makes no line."""
    return {
        "color": _COLORS[number % len(_COLORS)], "linestyle": _STYLES[number // len(_COLORS) % len(_STYLES)],
        "marker": "o" if len(points) < 10 else None, "markersize": 4,
    }
