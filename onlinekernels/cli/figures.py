"""The running figures of learn: the model's, those of a constant beside them, and how both are printed."""

import math
from collections import Counter

import numpy as np

from onlinekernels.evaluate.measures import RunningAUC

__all__ = ["Figures", "headline", "print_report", "shown"]

AUC_WINDOW = 5000  # rows whose scores are kept


def headline(kind):
    """(name, words) of the figures that matter most for a kind of model."""
    if kind == "regressor":
        return [("error", "mean absolute error"), ("squared_error", "squared error")]
    return [("error", "mistakes" if kind == "classifier" else "alerts")]


class Figures:
    """What has been measured so far, each row before it was learned.

    A constant is somebody who looks at no feature: he says the most frequent class of the rows before, or their mean.

    Parameters
    ----------
    kind : "classifier", "regressor" or "outlier_detector"
    kept : dict
        Where to go on, as `to_dict` gives it.
    """

    def __init__(self, kind, kept=None):
        kept = kept or {}
        self.kind = kind
        self.rows = kept.get("rows", 0)
        sums = kept.get("sums", {})
        self.sums = {name: [*sums.get(name, (0.0, 0.0))] for name, _ in headline(kind)}  # of the model, of the constant
        self.counts = Counter(dict(map(tuple, kept.get("counts", ()))))  # of each class
        self.predicted = Counter(dict(map(tuple, kept.get("predicted", ()))))
        self.hits = Counter(dict(map(tuple, kept.get("hits", ()))))
        self.leader = kept.get("leader")
        self.targets = kept.get("targets", 0.0)  # their sum
        self.auc = RunningAUC(AUC_WINDOW)
        for score, is_positive in kept.get("latest", ()):
            self.auc.add([score], [is_positive])
        self.report()

    def report(self):
        """Note that these figures are reported, so that what is `lately` begins now."""
        self.reported = self.rows, {name: sums[0] for name, sums in self.sums.items()}

    def add(self, y, scores, predictions, classes):
        """Add some rows: targets, and the scores and predictions that were made before the rows were learned."""
        if self.kind == "outlier_detector":
            self.sums["error"][0] += int(np.sum(predictions == -1))
        elif self.kind == "regressor":
            self._add_numbers(y, predictions)
        else:
            self._add_labels(y.tolist(), scores, predictions.tolist(), classes)
        self.rows += len(predictions)

    def _add_numbers(self, y, predictions):
        sums = np.cumsum(np.concatenate([[self.targets], y]))
        means = sums[:-1] / np.maximum(self.rows + np.arange(len(y)), 1)
        with np.errstate(over="ignore"):
            for i, errors in enumerate((predictions - y, means - y)):
                self.sums["error"][i] += float(np.abs(errors).sum())
                self.sums["squared_error"][i] += float((errors**2).sum())
        self.targets = float(sums[-1])

    def _add_labels(self, y, scores, predictions, classes):
        scores = scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else None
        for i, (label, prediction) in enumerate(zip(y, predictions, strict=True)):
            is_tie = scores is not None and scores[i] == 0
            is_hit = prediction == label and not is_tie
            self.sums["error"][0] += not is_hit
            self.sums["error"][1] += label != self.leader
            self.hits[label] += is_hit
            self.predicted[prediction] += not is_tie and prediction is not None
            if scores is not None and len(self.counts) == 2 and len(classes) == 2:
                self.auc.add([scores[i]], [label == classes[1]])
            self.counts[label] += 1
            if self.counts[label] > self.counts[self.leader]:
                self.leader = label

    def mean(self, name, constant=False):
        """Mean over all rows; NaN over none."""
        return self.sums[name][constant] / self.rows if self.rows else math.nan

    def lately(self, name):
        """Mean over the rows since the last report."""
        rows, sums = self.reported
        return (self.sums[name][0] - sums[name]) / (self.rows - rows) if self.rows > rows else math.nan

    def of_two_classes(self):
        """{name: value} of what tells most about two classes: F1 of the rarer one, and the AUC of the latest rows."""
        if self.kind != "classifier" or len(self.counts) != 2:
            return {}
        rarer = min(self.counts, key=self.counts.get)
        return {"f1": 2 * self.hits[rarer] / (self.counts[rarer] + self.predicted[rarer]), "auc": self.auc.value()}

    def to_dict(self):
        """Plain numbers and lists, from which a run goes on."""
        kept = {"rows": self.rows, "sums": self.sums, "leader": self.leader, "targets": self.targets}
        for name in ("counts", "predicted", "hits"):
            kept[name] = [[label, count] for label, count in getattr(self, name).items() if label is not None]
        return {**kept, "latest": [list(pair) for pair in self.auc.latest]}


def print_report(figures, terms, microseconds, has_headings):
    """Print a row: the figures over all rows, since the last report, and what a constant would have."""
    parts = {"": figures.mean, "lately": figures.lately}
    if figures.kind != "outlier_detector":
        parts["constant"] = lambda name: figures.mean(name, constant=True)
    columns, measures = [("examples", str(figures.rows))], headline(figures.kind)
    for name, words in measures:
        short = "" if len(measures) == 1 else words.removeprefix("mean ").removesuffix(" error") + " "
        for part, mean in parts.items():
            columns.append((short + part if part else words, shown(figures.kind, mean(name)) or "-"))
    for name, mean in figures.of_two_classes().items():
        columns.append((name.upper(), "-" if math.isnan(mean) else f"{mean:.3f}"))
    columns += [("terms", str(terms)), ("microseconds", "-" if math.isnan(microseconds) else f"{microseconds:.2f}")]
    widths = [max(len(heading), 10) + 2 for heading, _ in columns]
    for row in list(zip(*columns, strict=True))[not has_headings :]:
        print("".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
    figures.report()


def shown(kind, mean):
    """A figure as text; empty if there is none."""
    if math.isnan(mean):
        return ""
    return f"{mean:.4g}" if kind == "regressor" else f"{mean:.2%}"
