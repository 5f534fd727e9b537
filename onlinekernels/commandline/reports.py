"""What learn prints: tables for people, lines of JSON for programs."""

import json
import math
import sys

from onlinekernels.evaluate.display import headline, shown

__all__ = ["Reports", "key_of", "print_json"]


class Reports:
    """The reports of a run, as rows of a table or as lines of JSON."""

    def __init__(self, task, as_json):
        self.task = task
        self.as_json = as_json
        self.count = 0

    def file(self, name, unit, place):
        """Say where a file is taken up that was read before, or that it is new."""
        if self.as_json:
            print_json({"file": name, f"after_{unit}": place})
        elif place:
            print(f"{name}: read before, goes on after {unit} {place}.", flush=True)
        else:
            print(f"{name}: not read before, learned from its first row.", flush=True)

    def report(self, figures, terms, microseconds):
        """One report: the figures over all examples, and since the last report; and what a constant would have."""
        (self._line if self.as_json else self._row)(figures, terms, microseconds)
        self.count += 1

    def _line(self, figures, terms, microseconds):
        said = {"examples": figures.count}
        for name, word in headline(self.task):
            said[key_of(word)] = figures.totals.mean(name)
            said[key_of(word) + "_lately"] = figures.lately().mean(name)
            if self.task != "novelty":
                said["constant_" + key_of(word)] = figures.constant_totals.mean(name)
        print_json({**said, **figures.beside(), "terms": terms, "microseconds": microseconds})

    def _row(self, figures, terms, microseconds):
        headings, cells = ["examples"], [str(figures.count)]
        parts = {"lately": figures.lately()}
        if self.task != "novelty":
            parts["constant"] = figures.constant_totals
        for name, word in headline(self.task):
            headings += [word, *(_heading(word, part, self.task) for part in parts)]
            cells += [shown(self.task, name, part.mean(name)) or "-" for part in (figures.totals, *parts.values())]
        for name, value in figures.beside().items():
            headings.append(name.upper())
            cells.append("-" if math.isnan(value) else f"{value:.3f}")
        headings += ["terms", "microseconds"]
        cells += [str(terms), "-" if math.isnan(microseconds) else f"{microseconds:.2f}"]
        widths = [max(len(heading), 10) + 2 for heading in headings]
        for row in (cells,) if self.count else (headings, cells):
            print("".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)

    def end(self, saved, skipped):
        """The closing words: whether the model was kept, and what was left out."""
        if self.as_json:
            print_json({"saved": saved, "skipped": skipped})
        if saved is None:
            print("Nothing was kept: --save FILE keeps the model.", file=sys.stderr)
        if skipped:
            print(f"Skipped bad rows: {skipped}.", file=sys.stderr)


def _heading(word, part, task):
    """A heading for a measure since the last report, or of a constant."""
    return part if len(headline(task)) == 1 else f"{word.removeprefix('mean ').removesuffix(' error')} {part}"


def key_of(word):
    """A measure's key in JSON."""
    return word.replace(" ", "_")


def print_json(content, file=None):
    """One line of JSON, in which NaN and infinity, which it does not have, are null."""
    print(json.dumps(_without_nan(content), allow_nan=False), file=file, flush=True)


def _without_nan(content):
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
