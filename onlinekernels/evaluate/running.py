"""Progressive validation: models on their way through a stream."""
import math

import numpy as np

from onlinekernels.evaluate.checks import check_model, check_models, checked_count
from onlinekernels.evaluate.chunks import n_rows, opened, pieces, two_labels
from onlinekernels.evaluate.measures import MEASURES, Totals, rank, test_then_train
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
    stream : (X, y), an array X for novelty losses, or an iterable of either; X may be sparse or a data frame
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
    A loss that adapts its margin or width (NuHinge, NuNovelty, ...) judges each example by the margin of its time.

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
    with progress_bar(progress, n_rows(stream[0]) if isinstance(stream, tuple) else None, " examples") as advance:
        for X, y in pieces(stream, chunk):
            for run in runs:
                run.learn(X, y)
            since = (since + n_rows(X)) % chunk
            if since == 0:
                _record(runs)
            advance(n_rows(X))
    if since:
        _record(runs)
    if runs[0].totals.count == 0:
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
        self.seconds = 0.0
        self.totals = Totals()
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
        if self.task == "regression" and y is not None and y.dtype == object:  # several targets as tuples
            y = np.array(y.tolist(), dtype=float)
        try:
            measures, seconds = test_then_train(self.model, X, y, self.classes)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"{self.name} had learned {self.totals.count} examples of the stream before this chunk.")
            raise
        self.classes = None
        self.seconds += seconds
        self.totals.add(measures)
        self.latest = np.concatenate([self.latest, measures])[-self.window :]

    def record(self):
        """Add a line to the history."""
        model = self.model
        means, latest = map(self.totals.mean, MEASURES), self.latest.mean(axis=0)
        state = model.n_terms_, model.step_, _margin(model), self.seconds
        self.records.append((self.totals.count, *means, *latest, *state))

    def report(self):
        history = np.array(self.records, dtype=_HISTORY)
        totals = {name: history[name][-1].item() for name in _HISTORY.names}
        return Report(name=self.name, task=self.task, window=self.window, history=history, **totals)


def _margin(model):
    """The margin or width in force; NaN for a loss without one."""
    return math.nan if model._current_loss().scalar_name is None else model._state.engine.scalar()
