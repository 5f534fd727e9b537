"""Anomaly detectors of river."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from river import base

from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.compat.river.unitscores import Usual
from onlinekernels.compat.river.wrapper import Wrapper, alone
from onlinekernels.nouns.losses import NuNovelty

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples

try:
    AnomalyDetector = base.AnomalyDetector
except AttributeError:  # in older versions of river
    from river.anomaly.base import AnomalyDetector  # type: ignore[no-redef]


class RiverDetector(Wrapper, AnomalyDetector):
    """A model with a novelty loss, as an anomaly detector of river.

    The score is 0.0 before the first example. Then it is the higher, the more novel.

    Parameters
    ----------
    {model}
    {features}
    {fill}
    relative
        Whether scores are ``offset_ - f(x)``, relative to the threshold, which may move, in place of ``-f(x)``: above 0
        where `predict` of the model says -1, novel.
    scores
        "raw" scores are these numbers. "unit" puts them on [0, 1] in the same order, where river's metrics expect
        them: 1/2 is a usual score, or the threshold of relative ones, and 3/4 lies one deviation of the scores so far above
        it. For that, every example is scored as it is learned, which takes some time. None is "raw" for relative
        scores and "unit" for others.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.compat.river import RiverDetector
    >>> model = RiverDetector(NORMA("nunovelty", "gaussian"))
    >>> for i in range(1000):
    ...     model.learn_one({"heat": 0.01 * (i % 10)})
    >>> model.score_one({"heat": 0.0}) < model.score_one({"heat": 5.0})
    True
    """

    _tasks = ("novelty",)

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0, relative: bool = False,
                 scores: Any = None) -> None:
        self.relative = relative
        self.scores = scores
        super().__init__(model, features, fill)
        if scores == "unit" or scores is None and not relative:
            self._usual = Usual()

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(NuNovelty(), budget=100)}
        yield {"model": SILK("novelty", budget=100)}

    def learn_one(self, x: Any) -> None:
        """Learn one example."""
        self._learn_one(x)

    def learn_many(self, X: Examples) -> None:
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        self._learn_many(X)

    def score_one(self, x: Any) -> float:
        """How novel x is; 0.0 before the first example."""
        return float(self._scores(alone(self._example(x)[0]))[0]) if self._learned else 0.0

    def score_many(self, X: Examples) -> Any:
        """How novel the rows of a data frame are."""
        import pandas

        ready = self._learned and len(X)
        return pandas.Series(self._scores(self._examples(X)[0]) if ready else np.zeros(len(X)), index=X.index)

    def _scores(self, examples):
        novelty = -self.learner.score_samples(examples)
        if self.relative:
            novelty += self.learner.offset_
        if self._usual is None:
            return novelty
        return self._usual.unit(novelty, 0.0 if self.relative else -self._usual.mean)
