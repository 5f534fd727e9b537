"""The default ensemble for novelty detection."""
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.combiners import AveragedRanks
from onlinekernels._core.ensemble import Centre, Ensemble, Member
from onlinekernels._core.transforms import QuantileScores
from onlinekernels.ensemble.stacking import EnsembleEstimator
from onlinekernels.ensemble.members import check_effort
from onlinekernels.algorithms.smoother import Smoother
from onlinekernels.base.members import built
from onlinekernels.budgets import Reservoir
from onlinekernels.kernels import Gaussian, Laplacian
from onlinekernels.losses import NuNovelty
from onlinekernels.base.validation import check_fraction

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Path, RunningEncoder

ROWS = {"low": (200, 300), "medium": (500, 1000), "high": (1000, 3000)}  # that Laplacian and Gaussian densities keep
WIDTHS = 0.3, 0.6  # of these, in units of d and sqrt(d),
FEW_FEATURES = 4  # and narrower below so many, which finer structure can be seen in
WEIGHTS = 1.0, 1.0, 0.5  # of these, and of the distance from the middle


@dataclass(eq=False, repr=False)
class OnlineKernelDetector(EnsembleEstimator):
    """A detector of novelty for streams that needs no tuning: densities at several widths, combined by ranks.

    Two log densities over uniform samples of all rows so far (`Smoother`), with a Laplacian and a Gaussian kernel, and
    the distance from the middle. Features are seen by their quantiles among the latest 1500 rows, as normal deviates
    that go on as logarithms beyond all of them: skewed ones are as good as any, and no glitch changes the units. Each
    member has its rank among its own past, and the mean log of these has a rank, the score. An alert is one below the
    quantile nu of the latest 1000, `offset_`. So about a share nu of all rows alerts, whatever the units.

    A burst of odd rows does not become ordinary by coming often: rows that alert are kept by nobody, until there have
    been `patience` alerts more than nu allows. Then what has lasted is taken for ordinary. Such alerts are made up for
    by fewer later on, 0.7 nu of the rows, and in between bursts have so much less time. In the first 4000 rows a burst
    may end sooner, above all where nu is below 0.02; one in a single one of many features may, too.

    Rows are kept as they looked when they came, in units of what was known then: so a column that only grows, such as a
    counter, looks the same at any time. Of dates only the time of the day counts.

    Parameters
    ----------
    nu : float
        The share of rows to alert about; in (0, 1).
    effort : "low", "medium" or "high"
        How many rows are kept, and so how long an example takes.
    memory : int or None
        After how many rows the past fades, in all parts, so that what drifts becomes ordinary; at least 1. None
        remembers for ever, but for units and the level of alerts.
    patience : int
        For how many alerts beyond nu rows that alert are held back from the samples; at least 1.
    {encode} {n_jobs} {epochs}

    {Attributes}

    See Also
    --------
    Smoother : one density.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import OnlineKernelDetector
    >>> X = np.random.default_rng(0).normal(size=(1500, 3))
    >>> model = OnlineKernelDetector(nu=0.02).partial_fit(X)
    >>> model.predict([[0.1, 0.0, -0.2], [0.0, 7.0, 0.0]])
    array([ 1, -1])
    >>> next(iter(model.explain([0.0, 7.0, 0.0])))
    'x1'
    """

    nu: float = 0.02
    effort: str = "medium"
    _: KW_ONLY
    memory: int | None = None
    patience: int = 250
    encode: bool | RunningEncoder = True
    n_jobs: int = 1
    epochs: int = 1

    def _settings(self):
        check_effort(self)
        memory = None if self.memory is None else validation.check_count(self, "memory")
        return {"nu": check_fraction(self, "nu"), "effort": self.effort, "memory": memory,
                "patience": validation.check_count(self, "patience")}

    def _own_loss(self):
        return NuNovelty(self.nu)

    def _to_learn(self, state, X, *others, **keywords):
        return self._timeless(super()._to_learn(state, X, *others, **keywords), self._uncommitted[1])

    def _to_predict(self, X):
        return self._timeless(super()._to_predict(X), self._encoder)

    @staticmethod
    def _timeless(rows, encoder):
        """Rows whose dates have a place in the day alone: in all else every row is the latest, and those of yesterday
        are far from it. `encoder` is what encoded them, if anything did: an encoder, or its block of rows."""
        slow = [] if encoder is None or not isinstance(rows, np.ndarray) else encoder.slow_columns()
        if slow:
            rows = rows.copy()
            rows[:, slow] = 0.0
        return rows

    def _begin(self, plan, X, targets, learned=None):
        d, memory, (few, many) = X.shape[1], plan.memory, ROWS[plan.effort]
        finer = min(1.0, d / FEW_FEATURES)

        def density(kernel, size, seed):
            return Smoother(NuNovelty(plan.nu), kernel, budget=Reservoir(min(size, memory or size), memory, seed))

        models = {
            "city-block": (density(Laplacian(1.0 / (WIDTHS[0] * finer * d)), few, 2), "quantiles"),
            "smooth": (density(Gaussian(WIDTHS[1] * finer * math.sqrt(d)), many, 3), "quantiles"),
        }
        transforms = {"quantiles": QuantileScores(d, memory or 0)}
        members = built(models, transforms, X, 1, learned)
        centre = Member("centre", Centre(d), "density", transforms["quantiles"])
        if learned is not None:
            centre.go_on_from(learned["t"], ())
        members.append(centre)
        combiner = AveragedRanks(len(members), memory or 0, plan.nu, plan.patience, WEIGHTS)
        return Ensemble(members, combiner, "novelty", 1, d, transforms=transforms)

    def explain(self, x: Any) -> Any:
        """Which features make one example odd, {name: by how much}, the oddest first.

        The example is put to the middle in one column after another, of words to the most frequent, and it is how much
        more ordinary that makes it: the gain in the mean log density of the members, in nats.

        Parameters
        ----------
        x : 1-d array, dictionary, list or pandas series
            One example, as it would be learned.
        """
        with self._lock.shared:
            state = self._fitted()
            backend, means = state.backend, state.backend.transforms["quantiles"].medians()
            if self._encoder is not None:
                columns = self._encoder.columns_of(means)
            else:
                columns = {name: ([j], means[[j]]) for j, name in enumerate(state.names())}
            rows = np.repeat(self._member_row(state, x), len(columns) + 1, axis=0)
            for row, (places, middle) in zip(rows[1:], columns.values(), strict=True):
                row[places] = middle
            scores = backend.members_scores(rows)[:, :-1, 0].mean(axis=1)
        gains = dict(zip(columns, (scores[1:] - scores[0]).tolist(), strict=True))
        return dict(sorted(gains.items(), key=lambda gain: -gain[1]))

    def report(self, path: Path | None = None) -> Any:
        """One screen about what happened: how many alerts, and how each member would have ranked the latest rows.

        Parameters
        ----------
        path : str, path or None
            Where to write a picture of it; needs matplotlib.
        """
        with self._lock:
            backend = self._fitted().backend
            lines = [f"{type(self).__name__}: {backend.t} examples, alerts below rank {backend.threshold():.3g}"]
            for member in backend.members:
                kept = 0 if member.model is None else member.model.n_terms_
                status = f"  disabled: {member.status}" if member.disabled else ""
                lines.append(f"{member.name:<12}{kept:>8} rows kept{status}")
        if path is not None:
            self._picture().savefig(path)
        return "\n".join(lines)

    def _picture(self):
        """Samples of the members' past scores, and of the mean of their ranks."""
        from matplotlib import pyplot

        backend = self._fitted().backend
        figure, axes = pyplot.subplots(1, len(backend.members) + 1, figsize=(12, 3), layout="constrained")
        ranks = backend.combiner
        columns = [*ranks.each.ordered[:, : ranks.each.n], ranks.mean.ordered[0, : ranks.mean.n]]
        names = [*(member.name for member in backend.members), "mean rank"]
        for axis, name, values in zip(axes, names, columns, strict=True):
            axis.hist(values, bins=40)
            axis.set_title(name)
        return figure
