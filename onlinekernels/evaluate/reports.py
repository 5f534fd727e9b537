"""What comes of an evaluation."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onlinekernels.evaluate.confusions import Confusion
from onlinekernels.evaluate.drawing import plot_comparison, plot_report, plot_tuning
from onlinekernels.evaluate.words import comparison_table, report_table, tuning_table

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Path


class _Printed:
    """Prints as its table."""

    def __str__(self):
        return self.table()


@dataclass(eq=False)
class Report(_Printed):
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
    f1 : float
        F1 of the positive one of two classes, the second of `classes_`; the mean over all of many classes.
    auc : float
        Area under the ROC curve of the scores of two classes: of a positive and a negative example, drawn at random,
        how often the positive one has the larger score. Exact; NaN for other tasks, and before both classes came.
    window_error, window_squared_error, window_loss, window_margin_errors, window_f1, window_auc : float
        The same over the latest `window` examples.
    confusion, window_confusion : Confusion or None
        Which label was predicted for which; None where there are no labels.
    window : int
    terms : int
        Terms in the model at the end; 0 for an estimator of another library.
    step : float
        The latest step size; NaN for an estimator of another library.
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
    f1: float
    auc: float
    window_error: float
    window_squared_error: float
    window_loss: float
    window_margin_errors: float
    window_f1: float
    window_auc: float
    window: int
    terms: int
    step: float
    margin: float
    seconds: float
    history: Array = field(repr=False)
    confusion: Confusion | None = field(repr=False, default=None)
    window_confusion: Confusion | None = field(repr=False, default=None)

    @property
    def throughput(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds if self.seconds > 0 else math.inf

    @property
    def mistakes(self) -> int | None:
        """Number of mistakes of a classifier; None for other tasks."""
        return self._errors("binary", "multiclass")

    @property
    def alerts(self) -> int | None:
        """Number of alerts of a detector; None for other tasks."""
        return self._errors("novelty")

    def _errors(self, *tasks):
        return round(self.error * self.examples) if self.task in tasks else None

    def table(self) -> str:
        """The figures as text."""
        return report_table(self)

    def plot(self, path: Path | None = None, axes: Any = None) -> Any:
        """Draw the error over time and, below it, what changed in the model; return the figure.

        Parameters
        ----------
        path : str or path, default=None
            Where to save the picture.
        axes : matplotlib axes, default=None
            Draw the errors there, and nothing else; None makes a figure.
        """
        return plot_report(self, path, axes)


@dataclass(eq=False)
class Comparison(_Printed):
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

    reports: dict[Any, Report]

    @property
    def best(self) -> Any:
        """Name of the model with the least error."""
        return next(iter(self.reports))

    def __getitem__(self, name: Any) -> Report:
        return self.reports[name]

    def table(self) -> str:
        """The figures as text, the least error first."""
        return comparison_table(self)

    def plot(self, path: Path | None = None, axes: Any = None, windowed: bool = False) -> Any:
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
        return plot_comparison(self, path, axes, windowed)


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

    params: dict[str, Any]
    value: float = math.nan
    report: Report | None = None
    error: str | None = None


@dataclass(eq=False)
class Tuning(_Printed):
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
        return tuning_table(self)

    def plot(self, path: Path | None = None, axes: Any = None) -> Any:
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
        return plot_tuning(self, path, axes)
