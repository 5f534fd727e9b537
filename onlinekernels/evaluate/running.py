"""Progressive validation: models on their way through a stream."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.evaluate.checks import check_model, check_models, checked_count
from onlinekernels.evaluate.chunks import n_rows, opened, pieces
from onlinekernels.evaluate.confusions import Tally
from onlinekernels.evaluate.measures import MEASURES, Totals, rank
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.evaluate.ranks import RunningAUC
from onlinekernels.evaluate.reports import Comparison, Report
from onlinekernels.evaluate.subjects import subject
from onlinekernels.nouns.docstrings import like

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Sequence

# Long enough for the compiled code to do the work, short enough for a plot to have points.
_CHUNK = 200

_RATES = (*MEASURES, "f1", "auc")
_HISTORY = np.dtype(
    [("examples", np.int64)]
    + [(name, np.float64) for name in _RATES]
    + [(f"window_{name}", np.float64) for name in _RATES]
    + [("terms", np.int64), ("step", np.float64), ("margin", np.float64), ("seconds", np.float64)]
)


def progressive(model: Any, stream: Any, *, window: int = 1000, chunk: int = _CHUNK,
                classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None, auc: bool = True,
                progress: bool | None = None) -> Report:
    """Test, then train: let a model predict and learn a stream, and report how it did.

    The model learns on from where it is. No example is scored by a model that has seen it, whatever the chunk.

    Parameters
    ----------
    model : NORMA, SILK, ... : any algorithm with the method `progressive`
        Or a classifier or regressor of scikit-learn that has `partial_fit`, or a pipeline of scikit-learn that ends in
        either. Its other steps have `partial_fit` as well, or are fitted already and stay as they are. A step learns
        each row, without its label, and transforms it; then the last step predicts and learns it.
    stream : (X, y), an array X for novelty losses, or an iterable of either; X may be sparse or a data frame
        An iterable, such as a generator or a reader, gives chunks of any length; it is used once and never
        held in memory. A function without arguments is called for its stream.
    window : int, default=1000
        Number of latest examples over which the sliding measures are taken.
    chunk : int, default=200
        Number of examples between two records of the history.
    classes : labels, default=None
        All labels, where the first chunk does not show them. Estimators of scikit-learn need all at the start; they are
        taken from y if it is given as a whole.
    delay : int, default=0
        For labels that come late: an example is learned when `delay` more have been predicted. It is judged then, too,
        and the last ones when the stream has ended. Each prediction is one call, which takes its time.
    novel : label, default=None
        For a detector: which label in y means novel. Then `f1`, `auc` and `confusion` judge it; it never learns from y.
    auc : bool, default=True
        Whether to keep the area under the ROC curve up to date. That takes some microseconds for each example, and the
        memory of all scores.
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
    F1             0.9...     0.9...
    AUC            0.9...     0.9...
    loss           0.5...     0.5...
    margin errors  8...%      8...%
    2000 examples in ... s; at the end 100 terms, step 1, margin 1
    >>> bool(report.error < 0.1)
    True
    """
    check_model("model", model)
    options = _checked_options("progressive", [model], window, delay, novel, auc)
    run = _Run(model, repr(model), **options)
    _run_all("progressive", [run], stream, chunk, classes, progress)
    return run.report()


@like(progressive)
def compare(models: dict[Any, Any], stream: Any, *, window: int = 1000, chunk: int = _CHUNK,
            classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None, auc: bool = True,
            progress: bool | None = None) -> Comparison:
    """Let several models predict and learn one stream, in one pass over it.

    Parameters
    ----------
    models : dict
        {name: model}, all for the same task. Each learns on from where it is.
    {stream}
        A generator will do: each chunk goes to all models.
    {window}
    {chunk}
    {classes}
    {delay}
    {novel}
    {auc}
    {progress}

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
    model          mistakes  last 1000      F1     AUC     loss  margin errors  terms  step  us/example
    -----...
    forgets           9...
    remembers all    18...
    """
    check_models(models)
    options = _checked_options("compare", models.values(), window, delay, novel, auc)
    runs = [_Run(model, str(name), **options) for name, model in models.items()]
    _run_all("compare", runs, stream, chunk, classes, progress)
    reports = {name: run.report() for name, run in zip(models, runs, strict=True)}
    return Comparison(dict(sorted(reports.items(), key=lambda item: rank(item[1].error))))


def _checked_options(owner, models, window, delay, novel, auc):
    """What all runs are made with."""
    tasks = [subject(model).task for model in models]
    window, delay = checked_count(owner, "window", window), checked_count(owner, "delay", delay, least=0)
    if delay and "novelty" in tasks:
        raise ValueError(f"delay={delay} is for labels that come late, and a detector learns without labels.")
    if novel is not None and tasks != ["novelty"] * len(tasks):
        raise ValueError(f"novel={novel!r} says which label is novel to judge detectors by. Got models for {tasks[0]}.")
    return {"window": window, "delay": delay, "novel": novel, "auc": bool(auc)}


def _run_all(owner, runs, stream, chunk, classes, progress):
    """Let each run learn the stream, piece by piece; a record after every `chunk` examples."""
    chunk = checked_count(owner, "chunk", chunk)
    stream = opened(stream)
    for run in runs:
        run.subject.begin(classes, stream[1] if isinstance(stream, tuple) else None)
    seen = 0
    with progress_bar(progress, n_rows(stream[0]) if isinstance(stream, tuple) else None, " examples") as advance:
        for X, y in pieces(stream, chunk):
            seen += n_rows(X)
            for run in runs:
                run.learn(X, y)
                if seen % chunk == 0:
                    run.record()
            advance(n_rows(X))
    if seen == 0:
        raise ValueError("stream must hold at least one example. It holds none.")
    for run in runs:
        run.finish()
        run.record()


class _Run:
    """A model on its way through a stream."""

    def __init__(self, model, name, *, window, delay, novel, auc):
        self.subject = subject(model, delay, novel)
        self.name = name
        self.window = window
        self.seconds = 0.0
        self.totals = Totals()
        self.latest = np.zeros((0, len(MEASURES)))
        self.tally = Tally(window)
        self.ranks = (RunningAUC(), RunningAUC(window)) if auc else ()
        self.records = []

    def learn(self, X, y):
        """Predict and learn some examples, and measure."""
        if self.subject.task == "regression" and y is not None and y.dtype == object:  # several targets as tuples
            y = np.array(y.tolist(), dtype=float)
        try:
            self._take(*self.subject.judge(X, y))
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"{self.name} had learned {self.totals.count} examples of the stream before this chunk.")
            raise

    def finish(self):
        """Learn the examples whose labels are still under way."""
        rest = self.subject.finish()
        if rest is not None:
            self._take(*rest)

    def _take(self, judged, seconds):
        self.seconds += seconds
        self.totals.add(judged.measures)
        self.latest = np.concatenate([self.latest, judged.measures])[-self.window :]
        if judged.truth is not None:
            self.tally.add(judged.truth, judged.guesses)
            if len(self.tally.counts) > 2:  # two classes were not all
                self.ranks = ()
        if judged.scores is not None:
            for ranks in self.ranks:
                ranks.add(judged.scores, judged.truth)

    def record(self):
        """Add a line to the history, if there is anything new."""
        count = self.totals.count
        if count == 0 or self.records and self.records[-1][0] == count:
            return
        means, latest = map(self.totals.mean, MEASURES), self.latest.mean(axis=0)
        f1 = [math.nan if confusion is None else confusion.f1 for confusion in self.confusions()]
        auc = [ranks.value() for ranks in self.ranks] or [math.nan, math.nan]
        condition = self.subject.condition()
        self.records.append((count, *means, f1[0], auc[0], *latest, f1[1], auc[1], *condition, self.seconds))

    def confusions(self):
        """Over all examples, and over the latest ones."""
        if not len(self.tally.counts):
            return None, None
        labels = self.subject.labels()
        return self.tally.confusion(*labels), self.tally.confusion(*labels, latest=True)

    def report(self):
        history = np.array(self.records, dtype=_HISTORY)
        totals = {name: history[name][-1].item() for name in _HISTORY.names}
        totals["confusion"], totals["window_confusion"] = self.confusions()
        return Report(name=self.name, task=self.subject.task, window=self.window, history=history, **totals)
