"""Progressive validation: models on their way through a stream."""
import math
from time import perf_counter

import numpy as np

from onlinekernels.evaluate.checks import check_model, check_models, checked_count
from onlinekernels.evaluate.chunks import opened, pieces, two_labels
from onlinekernels.evaluate.measures import MEASURES, measured, rank
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.evaluate.reports import Comparison, Report

# Long enough for the compiled code to do the work, short enough for a plot to have points.
_CHUNK = 200

_HISTORY = np.dtype(
    [("examples", np.int64)]
    + [(name, np.float64) for name in MEASURES]
    + [(f"window_{name}", np.float64) for name in MEASURES]
    + [("terms", np.int64), ("step", np.float64), ("margin", np.float64), ("seconds", np.float64)]
)


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
    check_model("model", model)
    run = _Run(model, repr(model), checked_count("progressive", "window", window))
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
    check_models(models)
    window = checked_count("compare", "window", window)
    runs = [_Run(model, str(name), window) for name, model in models.items()]
    _run_all("compare", runs, stream, chunk, classes, progress)
    reports = {name: run.report() for name, run in zip(models, runs, strict=True)}
    return Comparison(dict(sorted(reports.items(), key=lambda item: rank(item[1].error))))


def _run_all(owner, runs, stream, chunk, classes, progress):
    """Let each run learn the stream, piece by piece; a record after every `chunk` examples."""
    chunk = checked_count(owner, "chunk", chunk)
    stream = opened(stream)
    for run in runs:
        run.begin(classes, stream[1] if isinstance(stream, tuple) else None)
    since = 0
    with progress_bar(progress, len(stream[0]) if isinstance(stream, tuple) else None, " examples") as advance:
        for X, y in pieces(stream, chunk):
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
        self.sums = np.zeros(len(MEASURES))
        self.latest = np.zeros((0, len(MEASURES)))
        self.records = []
        self.classes = None  # for the first call

    @property
    def task(self):
        return self.model._current_loss().task

    def begin(self, classes, y):
        """Name the classes: those given, or the two in y, so that the first chunk need not show both."""
        if classes is None and self.task == "binary" and self.model._state is None:
            classes = two_labels(y)
        self.classes = classes

    def learn(self, X, y):
        """Predict and learn some examples, and measure."""
        try:
            scores, margins, known = self._scores(X, y)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"{self.name} had learned {self.examples} examples of the stream before this chunk.")
            raise
        measures = measured(self.model, scores, y, margins, known)
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
