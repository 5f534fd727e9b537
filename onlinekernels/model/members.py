"""Models as members of a composite, on encoded rows.

Labels are places 0, 1, 2, ..., and a class that a model has not met has the score -1.
"""
import numpy as np

from onlinekernels import validation
from onlinekernels._core.points import Rows
from onlinekernels.model.trouble import silence

__all__ = ["Member", "Voice", "checked_sleep", "in_words", "task_of"]


def task_of(model):
    """"classes", "numbers" or "novelty"."""
    return {"binary": "classes", "multiclass": "classes", "regression": "numbers"}.get(model._current_loss().task, "novelty")


class Member:
    """A model that learns for itself, and does not warn.

    A subclass has `learn`, which also says what it would have answered, and `scores`.

    Parameters
    ----------
    model : OnlineLearner
    many : bool
        Whether y are places of labels, and not numbers.
    view : str or None
        The name of what its rows go through first.
    """

    asleep = None  # why it does not take part any more

    def __init__(self, model, many, view=None):
        self.model, self.many, self.view = model, many, view

    @property
    def rows(self):
        """How many rows it has learned."""
        return 0 if self.model._state is None else self.model.t_

    def take(self, X, y, weights):
        """Learn rows and say nothing."""
        with silence:
            self.model.partial_fit(self.mapped(X), self._targets(y), sample_weight=weights)

    def give_up(self, error):
        """After it could not take rows that others have learned: nothing, what kept the others is what is told."""

    def mapped(self, X):
        """Rows as the model takes them."""
        return X

    def _targets(self, y):
        """Targets as the model takes them."""
        return y.astype(np.int64) if self.many else y if y.shape[1] > 1 else y[:, 0]

    def _met(self):
        """Places of the labels that the model has met, in the order of its columns; None where there are none."""
        if not self.many:
            return None
        return np.zeros(0, dtype=np.intp) if self.model._state is None else self.model.classes_.astype(np.intp)

    def _unmet(self, n, outputs):
        """Scores of n rows before anything is learned."""
        return np.full((n, outputs), -1.0 if self.many else 0.0)

    def _in_place(self, scores, outputs, met, y):
        """Scores with a column for each of so many outputs; labels that were not `met` before begin with their first row."""
        scores = scores.reshape(len(scores), -1)
        if not self.many:
            return scores
        whole = self._unmet(len(scores), outputs)
        columns = self._met()
        whole[:, columns] = scores
        for place in columns[len(met) :]:
            whole[: np.argmax(y == place) + 1, place] = -1.0
        return whole

    def check_labels(self, joined):
        """ValueError unless the labels that it has met are places of those that have joined."""
        state = self.model._state if self.many else None
        if state is not None and not all(type(place) is int and 0 <= place < joined for place in state.labels.order):
            raise ValueError("the labels of a member are none")

    def state(self):
        """What is learned, by name."""
        return {"model": None if self.model._state is None else self.model._state.to_dict()}

    def restore(self, state):
        """Go on from what `state` gave."""
        if state["model"] is not None:
            self.model.__dict__["_state"] = self.model._restored(state["model"])


class Voice(Member):
    """Any model as a member of an ensemble. If it fails it is put to sleep, and the others go on.

    Parameters
    ----------
    model : OnlineLearner
    view : str or None
        The name of what its rows go through first.
    """

    before = 0  # rows that the model had learned when it became a member
    heard = None  # of a model that learns no more, how many rows it has heard since

    def __init__(self, model, view=None):
        self.task = task_of(model)
        super().__init__(model, self.task == "classes", view)

    def become(self, model, frozen):
        """Go on with a model that has learned already, and knows labels by their places."""
        self.model, self.before, self.heard = model, model.t_, 0 if frozen else None

    @property
    def two(self):
        """Whether there cannot be more than two labels."""
        return self.model._current_loss().task == "binary"

    @property
    def rows(self):
        """How many rows it has heard as a member."""
        return super().rows - self.before if self.heard is None else self.heard

    def learn(self, X, y, weights, outputs):
        """Scores just before each row, shape (n, outputs), which is learned."""
        if self.heard is not None:
            scores = self.scores(X, outputs)
            self.heard += len(y)
            return scores
        met = self._met()
        with silence:
            scores = self.model.progressive(self.mapped(X), self._targets(y), sample_weight=weights, **self._classes())
        return self._in_place(np.reshape(scores, (len(y), -1)), outputs, met, y)

    def take(self, X, y, weights):
        if self.heard is not None:
            self.heard += len(y)
        else:
            with silence:
                self.model.partial_fit(self.mapped(X), self._targets(y), sample_weight=weights, **self._classes())

    def give_up(self, error):
        """Fall asleep because of an error."""
        self.asleep = in_words(error)

    def scores(self, X, outputs):
        """Scores as of now."""
        model, n, X = self.model, len(X), self.mapped(X)
        if model._state is None:
            return self._unmet(n, outputs)
        if not self.many:
            scores = model.score_samples(X) if self.task == "novelty" else model.predict(X)
            return np.reshape(scores, (n, -1))
        with model._turn.shared:
            scores = model._state.shown(model._scores(model._state, X).T).T
        return self._in_place(scores, outputs, self._met(), None)

    def mapped(self, X):
        return validation.as_csr(X) if isinstance(X, Rows) else X

    def _classes(self):
        """A loss of two classes must know both; a third one it will refuse."""
        return {"classes": [0, 1]} if self.two and self.model._state is None else {}

    def _targets(self, y):
        return None if self.task == "novelty" else super()._targets(y)

    def _in_place(self, scores, outputs, met, y):
        """Scores in [-1, 1] with a column for each of so many labels, as estimates of 2 p - 1."""
        if not self.many:
            return scores
        loss = self.model._current_loss()
        if self.two:
            likely = 2.0 * loss.probabilities(scores[:, 0]) - 1.0 if loss.probabilistic else np.hstack([-scores, scores])
            whole = np.full((len(scores), max(2, outputs)), -1.0)
            whole[:, :2] = likely
            return np.clip(whole, -1.0, 1.0)[:, :outputs]
        if loss.probabilistic and not loss.over_all_labels:
            scores = 2.0 * loss.probabilities(scores) - 1.0
        return np.clip(super()._in_place(scores, outputs, met, y), -1.0, 1.0)

    def check_labels(self, joined):
        super().check_labels(2 if self.many and self.two else joined)

    def state(self):
        return {**super().state(), "asleep": self.asleep, "before": self.before, "heard": self.heard}

    def restore(self, state):
        super().restore(state)
        before, heard = state["before"], state["heard"]
        if type(before) is not int or not 0 <= before <= super().rows or not (heard is None or type(heard) is int and heard >= 0):
            raise ValueError("it does not say how many rows a member has learned")
        self.before, self.heard = before, heard
        self.asleep = checked_sleep(state["asleep"])


def in_words(error):
    """Why a member sleeps that has raised an error."""
    return f"{type(error).__name__}: {error}"


def checked_sleep(reason):
    """Why a member is asleep, or None; ValueError for something else."""
    if not (reason is None or isinstance(reason, str)):
        raise ValueError("it does not say why a member is asleep")
    return reason
