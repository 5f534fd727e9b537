"""Tallies of test-then-train: what the scores of each example, just before it was learned, were worth."""

import numpy as np

__all__ = ["tally_for"]


def tally_for(task):
    """An empty tally for a task of the losses."""
    return {"binary": Mistakes, "multiclass": ManyMistakes, "regression": Errors, "novelty": Alerts}[task]()


class Tally:
    """Sums over all examples, and over those since the last report."""

    headings = ()
    names = ()
    style = ".2%"

    def __init__(self):
        self.count = 0
        self.sums = dict.fromkeys(self.names, 0)
        self.begin_anew()

    def begin_anew(self):
        """Forget what was lately."""
        self.earlier = (self.count, dict(self.sums))

    def prepare(self, model, n_named):
        """Look at the model, None before the first chunk, and at how many classes were named in advance."""

    def add(self, model, y, scores):
        """Count a chunk that the model has learned, with the scores from before each update."""
        self.count += len(scores)
        for name, total in self.judge(model, y, scores).items():
            self.sums[name] += total

    def cells(self):
        """The means for a report, as text: of all examples, and of those since the last report."""
        count, sums = self.earlier
        texts = []
        for name, total in self.sums.items():
            texts.append(self.shown(total, self.count))
            texts.append(self.shown(total - sums[name], self.count - count))
        return texts

    def shown(self, total, count):
        return format(total / count, self.style) if count else "-"

    def state(self):
        """Plain values from which `restore` goes on."""
        return {"count": self.count, **self.sums}

    def restore(self, state):
        self.count = state["count"]
        self.sums = {name: state[name] for name in self.names}
        self.begin_anew()


class Mistakes(Tally):
    """Two classes."""

    headings = ("mistakes", "lately")
    names = ("mistakes",)

    def judge(self, model, y, scores):
        guesses = model.classes_[(scores > 0).astype(np.intp)]
        return {"mistakes": int(np.sum(guesses != y))}


class ManyMistakes(Mistakes):
    """Many classes, among which only those count as guesses that were known when the example came."""

    known = 0

    def prepare(self, model, n_named):
        self.known = n_named if model is None else len(model.classes_)

    def judge(self, model, y, scores):
        classes = model.classes_.tolist()
        places = {label: place for place, label in enumerate(classes)}
        targets = np.array([places[label] for label in y.tolist()])
        # Classes are in the order of their appearance, so those known are the first ones.
        known = np.maximum.accumulate(np.concatenate([[self.known], targets + 1]))[:-1]
        possible = np.where(np.arange(len(classes)) < known[:, None], scores, -np.inf)
        return {"mistakes": int(np.sum((possible.argmax(axis=1) != targets) | (known == 0)))}


class Errors(Tally):
    """Numbers."""

    headings = ("mean square", "lately", "mean absolute", "lately")
    names = ("squares", "absolutes")
    style = ".4g"

    def judge(self, model, y, scores):
        gaps = np.abs(scores - y)
        with np.errstate(over="ignore"):
            return {"squares": float(gaps @ gaps), "absolutes": float(gaps.sum())}


class Alerts(Tally):
    """Novelty: scores below the threshold that was in force when the chunk began."""

    headings = ("alerts", "lately")
    names = ("alerts",)
    threshold = None

    def prepare(self, model, n_named):
        self.threshold = None if model is None else model.offset_

    def judge(self, model, y, scores):
        threshold = model.loss.margin if self.threshold is None else self.threshold
        return {"alerts": int(np.sum(scores < threshold))}
