"""What rows of an ensemble go through before some of its members see them; each row with what was known at its time.

A view that has seen more rows is another one: as long as nobody has learned them, the old one is still there.
"""
import copy
import math

import numpy as np

from onlinekernels._core.run.ranks import Ranks, normal_scores
from onlinekernels._core.run.scaling import Scaler
from onlinekernels.nouns.scaling import advanced

__all__ = ["NormalScores", "Relevance", "Scores"]

SAMPLE = 1000  # rows among which ranks are taken
LEAST = 0.05  # relevance, in units of the mean one: what does not matter today may matter tomorrow


class NormalScores:
    """Each feature by its rank in a sample of all rows so far, as a normal deviate: outliers and crowds do no harm."""

    def __init__(self, n_features):
        self.ranks = Ranks(n_features, SAMPLE)

    def advanced(self, X):
        """(the view that has seen these rows as well, the rows, each among those before it)."""
        after = copy.copy(self)
        after.ranks = self.ranks.copy()
        return after, normal_scores(after.ranks.advance(X))

    def transform(self, X):
        """Rows as of now."""
        return normal_scores(self.ranks.ranks(X))

    def state(self):
        """What is learned, by name."""
        return self.ranks.state()

    def restore(self, state):
        """Go on from what `state` gave."""
        self.ranks.restore(state)

    def has_seen(self, t):
        """Whether it has seen so many rows."""
        return self.ranks.t == t


class Scores:
    """Running z-scores; with `squashed` arcsinh of them, so that far is not farther than it need be."""

    def __init__(self, n_features, memory=1.0, squashed=False):
        self.squashed = squashed
        self.scaler = Scaler(n_features, memory)

    def advanced(self, X):
        """(the view that has seen these rows as well, the rows, each with what is known with it)."""
        after = copy.copy(self)
        after.scaler, rows = advanced(self.scaler, X)
        return after, np.arcsinh(rows) if self.squashed else rows

    def transform(self, X):
        """Rows as of now."""
        if not self.scaler.count:
            return np.zeros_like(X)
        rows = self.scaler.scaled(X)
        return np.arcsinh(rows) if self.squashed else rows

    def state(self):
        """What is learned, by name."""
        return self.scaler.state()

    def restore(self, state):
        """Go on from what `state` gave."""
        self.scaler.restore(state)

    def has_seen(self, t):
        """Whether it has seen so many rows, as far as it remembers."""
        count, memory = self.scaler.count, self.scaler.memory
        return count == t if memory == 1.0 else math.isclose(count, -math.expm1(t * math.log(memory)) / (1.0 - memory), rel_tol=1e-6)


class Relevance(Scores):
    """z-scores, each times how much its feature matters; who looks through this view has to follow when that changes."""

    def __init__(self, n_features):
        super().__init__(n_features)
        self.weights = np.ones(n_features)

    def advanced(self, X):
        after, rows = super().advanced(X)
        return after, rows * self.weights

    def transform(self, X):
        return super().transform(X) * self.weights

    def take(self, relevance):
        """Weights by the relevance of features, their mean square 1. Returns the ratio to the old ones, None for no change."""
        weights = np.sqrt(np.maximum(relevance / relevance.mean(), LEAST))
        weights = weights * np.sqrt(len(weights) / (weights**2).sum())
        if np.array_equal(weights, self.weights):
            return None
        ratio, self.weights = weights / self.weights, weights
        return ratio

    def state(self):
        return {"weights": self.weights, "scaler": super().state()}

    def restore(self, state):
        super().restore(state["scaler"])
        weights = np.array(state["weights"], dtype=float)
        if weights.shape != self.weights.shape or not np.isfinite(weights).all() or not (weights > 0.0).all():
            raise ValueError("the weights of the features make no sense")
        self.weights = weights
