"""The running figures of learn: the model's, those of a constant beside them, and how both are printed."""

import json
import math
import sys
from collections import Counter

import numpy as np

from onlinekernels.evaluate.measures import RunningAUC

__all__ = ["Figures", "Reports", "headline", "key_of", "print_json", "shown"]

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
        self.targets = kept.get("targets", 0.0)  # their sums
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
        y, predictions = y.reshape(len(y), -1), predictions.reshape(len(y), -1)
        sums = np.cumsum(np.vstack([np.broadcast_to(self.targets, y.shape[1]), y]), axis=0)
        means = sums[:-1] / np.maximum(self.rows + np.arange(len(y)), 1)[:, None]
        with np.errstate(over="ignore"):
            for i, errors in enumerate((predictions - y, means - y)):
                self.sums["error"][i] += float(np.abs(errors).mean(axis=1).sum())
                self.sums["squared_error"][i] += float((errors**2).mean(axis=1).sum())
        self.targets = sums[-1].tolist()

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


class Reports:
    """The reports of a run, as rows of a table or as lines of JSON."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.count = 0

    def file(self, name, rows):
        """Say where a file is taken up that was read before, or that it is new."""
        if self.as_json:
            print_json({"file": name, "after_row": rows})
        elif rows:
            print(f"{name}: read before, goes on after row {rows}.", flush=True)
        else:
            print(f"{name}: not read before, learned from its first row.", flush=True)

    def report(self, figures, terms, microseconds):
        """One report: the figures over all rows, and since the last report; and what a constant would have."""
        parts = {"": figures.mean, "lately": figures.lately}
        if figures.kind != "outlier_detector":
            parts["constant"] = lambda name: figures.mean(name, constant=True)
        if self.as_json:
            self._line(figures, parts, terms, microseconds)
        else:
            self._row(figures, parts, terms, microseconds)
        self.count += 1
        figures.report()

    def end(self, saved, skipped):
        """The closing words: whether the model was kept, and what was left out."""
        if self.as_json:
            print_json({"saved": saved, "skipped": skipped})
        if saved is None:
            print("Nothing was kept: --save FILE keeps the model.", file=sys.stderr)
        if skipped:
            print(f"Skipped bad rows: {skipped}.", file=sys.stderr)

    @staticmethod
    def _line(figures, parts, terms, microseconds):
        content = {"examples": figures.rows}
        for name, words in headline(figures.kind):
            key = key_of(words)
            keys = {"": key, "lately": f"{key}_lately", "constant": f"constant_{key}"}
            content.update({keys[part]: mean(name) for part, mean in parts.items()})
        print_json({**content, **figures.of_two_classes(), "terms": terms, "microseconds": microseconds})

    def _row(self, figures, parts, terms, microseconds):
        columns, measures = [("examples", str(figures.rows))], headline(figures.kind)
        for name, words in measures:
            short = "" if len(measures) == 1 else words.removeprefix("mean ").removesuffix(" error") + " "
            for part, mean in parts.items():
                columns.append((short + part if part else words, shown(figures.kind, name, mean(name)) or "-"))
        for name, mean in figures.of_two_classes().items():
            columns.append((name.upper(), "-" if math.isnan(mean) else f"{mean:.3f}"))
        columns += [("terms", str(terms)), ("microseconds", "-" if math.isnan(microseconds) else f"{microseconds:.2f}")]
        widths = [max(len(heading), 10) + 2 for heading, _ in columns]
        for row in list(zip(*columns, strict=True))[self.count > 0 :]:
            print("".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)


def shown(kind, name, mean):
    """A figure as text; empty if there is none."""
    if math.isnan(mean):
        return ""
    return f"{mean:.4g}" if kind == "regressor" else f"{mean:.2%}"


def key_of(words):
    """A figure's key in JSON."""
    return words.replace(" ", "_")


def print_json(content, file=None):
    """One line of JSON, in which NaN and infinity, which it does not have, are null."""
    print(json.dumps(_without_nan(content), allow_nan=False), file=file, flush=True)


def _without_nan(content):
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
