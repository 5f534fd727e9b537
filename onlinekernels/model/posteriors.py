"""A few posteriors, which know how far off they may be, combined by least squares that forget."""
import numpy as np

from onlinekernels._core.combiners import LeastSquares
from onlinekernels.model.composition import Composition, coded
from onlinekernels.model.members import Member
from onlinekernels.model.trouble import shared_trouble, silence

__all__ = ["Posterior", "Posteriors"]


class Posterior(Member):
    """A `KRLS` as a member: it has deviations beside its scores."""

    def learn(self, X, y, weights, outputs):
        """(scores (n, outputs), deviations of y (n, targets)) just before each row, which is learned."""
        met = self._met()
        with silence:
            scores, deviations = self.model.progressive(self.mapped(X), self._targets(y), sample_weight=weights, return_std=True)
        return self._in_place(scores, outputs, met, y), self._with_noise(deviations, len(X))

    def scores(self, X, outputs):
        """(scores, deviations of y) as of now."""
        if self.model._state is None:
            return self._unmet(len(X), outputs), np.ones((len(X), 1 if self.many else outputs))
        state, _, scores, deviations = self.model._known(self.mapped(X))
        if self.many:
            return self._in_place(scores, outputs, self._met(), None), self._with_noise(deviations, len(X))
        scores = np.reshape(state.answers(scores), scores.shape)
        return self._in_place(scores, outputs, None, None), self._with_noise(deviations[:, None] * self._units(), len(X))

    def _units(self):
        """What deviations of f are multiplied by where targets are scaled, shape (targets,); 1 where they are not."""
        scaler = self.model._state.current_target_scaler()
        return 1.0 if scaler is None else scaler.known()[1]

    def _with_noise(self, deviations, n):
        """Deviations of y from those of f, shape (n, targets)."""
        return np.sqrt(np.reshape(deviations, (n, -1)) ** 2 + self.model.noise_ * self._units() ** 2)


class Posteriors(Composition):
    """Posteriors, combined.

    Parameters
    ----------
    members : dict of str to Posterior
    targets : int
        Numbers to predict; 0 for labels.
    """

    def __init__(self, members, targets):
        # Within a factor of 3, all is much the same on the streams that were tried.
        memory, prior = (0.9995, 6.0) if targets else (0.998, 100.0)
        stack = LeastSquares(len(members), targets, memory, prior)
        super().__init__(members, "numbers" if targets else "classes", targets, stack)
        self.noticed = None  # what all members have noticed at once when learning went wrong, the first time

    def _learned(self, rows, y, told, weights, outputs, after):
        X = rows[None]
        scores, deviations = self._heard([member.learn(X, told, weights, outputs) for member in self.members.values()])
        Y = y if self.targets else coded(y, outputs)
        combined, _ = self.stack.advance(scores, y, counts=self._counts(len(X), weights))
        errors = self._innovations(combined, Y, deviations)
        noticed = self.noticed
        if noticed is None:
            noticed = shared_trouble([member.model._state for member in self.members.values()])
        self.__dict__.update(after, noticed=noticed, **self.remembered(X, y, weights, Y, scores))
        return combined, deviations, errors

    def _heard(self, parts):
        """(scores (n, members, outputs), deviations of the combination (n, groups)) from those of each member.

        Members err alike, so their deviations add up.
        """
        scores, deviations = (np.stack(arrays, axis=1) for arrays in zip(*parts, strict=True))
        if self.task == "classes":
            scores = np.clip(scores, -1.0, 1.0)
        shares = np.maximum(self.stack.weights().T, 0.0) + 1e-9
        return scores, np.einsum("tmg,mg->tg", deviations, shares / shares.sum(axis=0))

    def remembered(self, X, y, weights, Y, scores):
        """Attributes that a piece changes which was combined, {name: value}; Y are the targets, scores those of the members."""
        return {}

    def scores(self, X):
        outputs = self.targets or self.joined
        scores, deviations = self._heard([member.scores(X, outputs) for member in self.members.values()])
        return self.stack.combined(scores)[0], deviations
