"""The figures of a run: the model's own, those of a constant beside them, F1 and AUC of two classes."""

import numpy as np

from onlinekernels.evaluate.measures import Constant, RunningAUC, Totals, f1_scores

__all__ = ["Figures"]

_AUC_WINDOW = 10_000  # latest examples: memory and checkpoints stay small, however long the stream


class Figures:
    """What has been measured so far.

    Parameters
    ----------
    task : str
    kept : dict or None
        Where to go on, as `to_dict` gives it. Files of earlier versions have the totals alone.
    """

    def __init__(self, task, kept=None):
        kept = kept or {}
        self.task = task
        self.totals = Totals(**kept.get("totals", {}))
        self.constant = Constant(**kept.get("constant", {}))
        self.constant_totals = Totals(**kept.get("constant_totals", {}))
        # Examples by their class (two of them) and what was predicted: nothing, the first, the second
        self.confusion = np.array(kept.get("confusion", [[0] * 3] * 2), dtype=np.int64)
        # Of many classes as long as there are two
        self.ranks = RunningAUC(_AUC_WINDOW) if task in ("binary", "multiclass") and kept.get("two", True) else None
        if self.ranks is not None:
            self.ranks.add(*np.reshape(kept.get("ranks", ()), (-1, 2)).T)
        self.report()

    @property
    def count(self):
        """Number of examples."""
        return self.totals.count

    def add(self, judged, y):
        """Take in what was found out about some examples with labels or targets y."""
        self.totals.add(judged.measures)
        if self.task == "regression":
            self.constant_totals.add(self.constant.judge_numbers(y))
        elif judged.truth is not None:
            self.constant_totals.add(self.constant.judge_classes(judged.truth))
        if judged.scores is None:
            self.ranks = None
        if self.ranks is not None:
            np.add.at(self.confusion, (judged.truth.astype(np.intp), judged.guesses.astype(np.intp) + 1), 1)
            self.ranks.add(judged.scores, judged.truth)

    def report(self):
        """Say that these figures are reported, so that what is `lately` begins now."""
        self.reported = Totals(**self.totals.to_dict())

    def lately(self):
        """Totals since the last report."""
        return self.totals.since(self.reported)

    def beside(self):
        """{name: value} of what tells most about two classes: F1 of the positive one, or else of the rarer; and the AUC."""
        if self.ranks is None:
            return {}
        table = self.confusion
        if self.task == "multiclass" and table[0].sum() < table[1].sum():  # none of them is the positive one: take the rarer
            table = table[::-1, [0, 2, 1]]
        return {"f1": float(f1_scores(table[:, 1:], table[:, 0])[1]), "auc": self.ranks.value()}

    def to_dict(self):
        """Plain numbers and lists, from which a run goes on."""
        kept = {"totals": self.totals.to_dict(), "constant": self.constant.to_dict()}
        kept["constant_totals"] = self.constant_totals.to_dict()
        kept["two"] = self.ranks is not None
        if self.ranks is not None:
            kept |= {"confusion": self.confusion.tolist(), "ranks": list(map(list, self.ranks.latest))}
        return kept
