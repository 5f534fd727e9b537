"""The running figures of a model: how well each row was predicted before it was learned, and how that is printed."""
import json
import math
from collections import Counter

import numpy as np

from onlinekernels.evaluate.measures import RunningAUC

AUC_WINDOW = 5000  # rows whose scores are kept
WORDS = {"classifier": "mistakes", "regressor": "mean absolute error", "outlier_detector": "alerts"}


class Figures:
    """What has been measured so far, each row before it was learned; beside it the errors of a constant.

    The constant is the most frequent class of the rows before, or their mean.

    Parameters
    ----------
    kind : "classifier", "regressor" or "outlier_detector"
    kept : dict
        Where to go on, as `to_dict` gives it.
    """

    SUMS = ("rows", "errors", "squared_errors", "constant_errors", "targets")

    def __init__(self, kind, kept=None):
        kept = {**dict.fromkeys(self.SUMS, 0), "leader": None, "pairs": [], "latest": [], **(kept or {})}
        vars(self).update({name: kept[name] for name in self.SUMS})
        self.kind, self.words, self.rate = kind, WORDS[kind], ".4g" if kind == "regressor" else ".2%"
        self.pairs, self.counts = Counter(), Counter()  # of (label, prediction), and of each label
        for label, guess, n in kept["pairs"]:
            self.pairs[label, guess] += n
            self.counts[label] += n
        self.leader, self.auc = kept["leader"], RunningAUC(AUC_WINDOW)  # the most frequent class
        for score, is_positive in kept["latest"]:
            self.auc.add([score], [is_positive])
        self.reported = self.rows, self.errors  # at the last report

    def to_dict(self):
        """Plain numbers and lists, from which a run goes on."""
        pairs = [[*pair, n] for pair, n in self.pairs.items()]
        return {**{name: getattr(self, name) for name in self.SUMS}, "leader": self.leader, "pairs": pairs,
                "latest": [list(pair) for pair in self.auc.latest]}

    def add(self, y, predictions, scores=None, classes=()):
        """Add some rows: targets, or None, and what was predicted before the rows were learned."""
        if self.kind == "regressor":
            self._add_numbers(y, predictions)
        elif y is None:
            self.errors += int(np.sum(predictions == -1))
        else:
            if scores is not None and scores.ndim > 1:
                scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else None
            self._add_labels(y.tolist(), predictions.tolist(), scores, classes)
        self.rows += len(predictions)

    def _add_numbers(self, y, predictions):
        sums = np.cumsum(np.concatenate([[self.targets], y]))
        means = sums[:-1] / np.maximum(self.rows + np.arange(len(y)), 1)
        with np.errstate(over="ignore"):
            self.errors += float(np.abs(predictions - y).sum())
            self.squared_errors += float(((predictions - y) ** 2).sum())
            self.constant_errors += float(np.abs(means - y).sum())
        self.targets = float(sums[-1])

    def _add_labels(self, y, predictions, scores, classes):
        for i, (label, guess) in enumerate(zip(y, predictions, strict=True)):
            if scores is not None and scores[i] == 0:
                guess = None  # a tie
            if scores is not None and len(self.counts) == 2 == len(classes):
                self.auc.add([scores[i]], [label == classes[1]])
            self.pairs[label, guess] += 1
            self.errors += guess == -1 if self.kind == "outlier_detector" else guess != label
            self.constant_errors += label != self.leader
            self.counts[label] += 1
            if self.counts[label] > self.counts[self.leader]:
                self.leader = label

    def f1(self):
        """F1 of the rarer of two classes; NaN of others."""
        if self.kind != "classifier" or len(self.counts) != 2:
            return math.nan
        rarer = min(self.counts, key=self.counts.get)
        predicted = sum(n for (_, guess), n in self.pairs.items() if guess == rarer)
        return 2 * self.pairs[rarer, rarer] / (self.counts[rarer] + predicted)

    def mean(self, total):
        """The mean over all rows; NaN over none."""
        return total / self.rows if self.rows else math.nan

    def row(self, terms, microseconds):
        """(heading, value, format) of each column of a report; what is "lately" begins now."""
        (rows, errors), self.reported = self.reported, (self.rows, self.errors)
        lately = (self.errors - errors) / (self.rows - rows) if self.rows > rows else math.nan
        columns = [("examples", self.rows, "d"), (self.words, self.mean(self.errors), self.rate),
                   ("lately", lately, self.rate)]
        if self.kind != "outlier_detector":
            columns.append(("constant", self.mean(self.constant_errors), self.rate))
        if self.kind == "regressor":
            columns.append(("squared error", self.mean(self.squared_errors), ".4g"))
        if not math.isnan(self.f1()):
            columns += [("F1", self.f1(), ".3f"), ("AUC", self.auc.value(), ".3f")]
        return [*columns, ("terms", terms, "d"), ("us/example", microseconds, ".2f")]

    def sentence(self):
        """The same in a sentence."""
        if self.kind == "regressor":
            return f"{self.words} {self.mean(self.errors):.4g}, squared error {self.mean(self.squared_errors):.4g}"
        alerts = [f"{n} of {label}" for (label, guess), n in sorted(self.pairs.items(), key=str) if guess == -1]
        of_labels = ": " + ", ".join(alerts) if alerts and self.kind == "outlier_detector" else ""
        return f"{self.mean(self.errors):.2%} {self.words}{of_labels}"


def print_row(columns, is_json, has_headings):
    """Print a row of a report as part of a table, or as an object of JSON."""
    if is_json:
        print(json.dumps({name: value if math.isfinite(value) else None for name, value, _ in columns}), flush=True)
        return
    widths = [max(len(name), 10) + 2 for name, _, _ in columns]
    cells = ["-" if math.isnan(value) else format(value, spec) for _, value, spec in columns]
    for row in ([name for name, _, _ in columns], cells)[not has_headings :]:
        print("".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
