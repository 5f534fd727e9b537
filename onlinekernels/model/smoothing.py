"""Local averages behind a running scaler, with a threshold where they are densities: what a `Smoother` has learned."""
import numpy as np

from onlinekernels._core.smoother import LocalRows
from onlinekernels._core.run.ranks import Ranks
from onlinekernels._core.run.scaling import Scaler
from onlinekernels.model.intervals import checked_innovations, in_deviations, recalled
from onlinekernels.nouns.scaling import advanced

__all__ = ["Smoothing"]

SCORES = 2000  # that a threshold is the quantile of
LATEST = 100  # scores of these that the sample begins with
YOUNG = 500  # rows at most before scores are worth remembering: those of few rows are too low, and would stay


class Smoothing:
    """Rows that are kept, scaled as they came, and what they say of others. It learns as a `Composition` does.

    Parameters
    ----------
    task : "regression", "multiclass" or "novelty"
    rows : dict
        Arguments of `LocalRows`.
    memory : float
        Of the scaler; 0 for none.
    nu : float
        The share of scores below the threshold; for novelty.
    """

    members: dict[str, object] = {}

    def __init__(self, task, rows, memory, nu=0.0):
        if not 0.0 <= nu < 1.0:
            raise ValueError("nu is not a share")
        self.task, self.nu, self.memory = task, nu, memory
        self.targets = 0 if task == "multiclass" else rows["targets"]
        self.joined = 0  # labels
        kinds = {"regression": "numbers", "multiclass": "labels", "novelty": "density"}
        self.rows = LocalRows(kinds[task], **rows)
        self.scaler = Scaler(rows["n_features"], memory) if memory else None
        self.innovations = np.zeros((0, self.targets if task == "regression" else 0))
        self.past = Ranks(1, SCORES) if task == "novelty" else None
        self.young = min(YOUNG, rows["size"])

    @property
    def t(self):
        """Number of rows learned."""
        return int(self.rows.t)

    def learn(self, X, y, weights, outputs):
        """(scores (n, outputs), deviations or thresholds (n, groups), innovations before the first row and of each)."""
        n, groups = len(X), max(1, self.targets)
        scores, deviations, fresh, done = np.zeros((n, outputs)), np.zeros((n, groups)), [self.innovations], 0
        Y, weights = y.reshape(n, -1), np.ones(n) if weights is None else weights
        while done < n:
            rows = self.rows.rows_at_once()
            if self.t < self.young:  # where the sample of scores begins anew
                rows = min(rows, self.young - self.t)
            part = slice(done, min(n, done + rows))
            fresh.append(self._piece(X[part], Y[part], weights[part], scores[part], deviations[part]))
            done = part.stop
        return scores, deviations, np.concatenate(fresh)

    def _piece(self, X, Y, weights, scores, deviations):
        """Learn a few rows, all or none; return their innovations."""
        scaler, past, innovations, found = self.scaler, self.past, self.innovations, self.innovations[:0]
        if scaler is not None:
            scaler, X = advanced(scaler, X)
        self.rows.test(X, Y, weights, scores, deviations)
        if self.task == "regression":
            found = in_deviations(Y, scores, deviations)
            innovations = recalled(innovations, found)
        if past is not None:
            begin = 1 if self.t == 0 else 0  # nothing is known at the first row, and nothing is novel
            past, limits = past.copy(), np.zeros(len(X) - begin)
            past.advance(scores[begin:], limits, self.nu)
            if self.t + len(X) == self.young:
                past.keep_latest(LATEST)
            deviations[:begin], deviations[begin:, 0] = -np.inf, limits
        joined = 0 if self.targets else max(self.joined, int(Y.max()) + 1)
        after = {"scaler": scaler, "past": past, "innovations": innovations, "joined": joined}
        self.rows.train(len(X), self.__dict__, after)
        return found

    def threshold(self):
        """The score below which a share nu of all has been."""
        return self.past.quantile(self.nu)

    def scores(self, X):
        """(scores (n, outputs), deviations (n, groups)) as of now."""
        return self.rows.scores(self.scaled(X), self.targets or self.joined)

    def scaled(self, X):
        """Rows as they are compared with those that are kept."""
        return X if self.scaler is None or not self.scaler.count else self.scaler.scaled(X)

    def shares(self, row):
        """How much each row that is kept counts for what is said of one row, shape (1, features); they sum to 1."""
        rows, n = self.rows, self.rows.n
        distances = rows.distances(np.ascontiguousarray(self.scaled(row)))[0]
        counted = rows.weights[:n] > 0.0
        unit = np.sort(distances[counted])[: rows.neighbour][-1] if rows.neighbour else 1.0
        found = rows.weights[:n] * np.exp(-rows.rate / max(unit, 1e-100) * (distances - distances[counted].min()))
        return found / found.sum()

    def kept(self):
        """(rows, what they say) that are kept, in the units of the features where they are not scaled."""
        n = self.rows.n
        return (self.rows.points[:n] + self.rows.origin, self.rows.values[:n]) if n else (np.zeros((0, 1)), np.zeros((0, 1)))

    def state(self):
        """What is learned, by name."""
        found = {"joined": self.joined, "innovations": self.innovations, "rows": self.rows.state()}
        if self.scaler is not None:
            found["scaler"] = self.scaler.state()
        if self.past is not None:
            found["past"] = self.past.state()
        return found

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        if type(state["joined"]) is not int or state["joined"] < 0:
            raise ValueError("joined is not a number of labels")
        innovations = checked_innovations(state["innovations"], self.innovations.shape[1])
        self.rows.restore(state["rows"])
        if not self.targets and self.rows.n and self.rows.values[: self.rows.n].max() >= state["joined"]:
            raise ValueError("the rows that are kept have labels that are none")
        self.joined, self.innovations = state["joined"], innovations
        if self.scaler is not None:
            self.scaler.restore(state["scaler"])
        if self.past is not None:
            self.past.restore(state["past"])

    def check_learned(self):
        """Nothing: there are no members."""

    def _check(self):
        """Assert what must always hold."""
        self.rows._check()
        assert self.past is None or self.past._check() is None
