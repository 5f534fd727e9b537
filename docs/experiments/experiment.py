"""What an experiment is, what it finds, and how that is printed and written."""
import csv
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from experiments.panels import draw

EXPERIMENTS = {}  # by name, in the order in which their files are imported
QUICK_SEEDS = 2
# What the library says when a learner goes wrong. Here that is a result: some settings of the papers do.
GONE_WRONG = r"Learning (diverges|has stalled)|The \w+ of .* has run away|This model is no better than"


@dataclass(frozen=True)
class Check:
    """One claim of a paper beside the figures that decide whether it holds.

    If the sentence is not the paper's but `ours` it is reported apart, and is not part of the verdict.
    """

    claim: str
    found: str
    holds: bool
    ours: bool = False


@dataclass
class Results:
    """What a run found.

    Rows of the table have the same keys. Figures of the paper stand in columns of their own, whose names begin with
    "paper". Notes say which settings the paper does not give, and where they were chosen.

    Examples
    --------
    >>> from experiments.experiment import Check, Results
    >>> results = Results(checks=[Check("A makes fewer mistakes than B", "3 against 5", True)])
    >>> results.verdict
    'The claim holds.'
    >>> results.checks.append(Check("B is faster", "2 s against 1 s", False))
    >>> results.verdict
    'The claim holds in part: 1 of 2. Not so: B is faster.'

    What the paper does not say is no part of it:

    >>> Results(checks=[Check("A beats B", "3 to 5", True), Check("A beats C", "3 to 2", False, ours=True)]).verdict
    'The claim holds.'
    """

    table: list = field(default_factory=list)
    panels: list = field(default_factory=list)  # what is drawn, side by side; see `experiments.panels`
    checks: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def verdict(self):
        """Whether the paper's claim holds, in one line."""
        claimed = [check for check in self.checks if not check.ours]
        failed = [check for check in claimed if not check.holds]
        if not failed:
            return "The claim holds."
        not_so = "; ".join(check.claim for check in failed)
        if len(failed) == len(claimed):
            return f"The claim does not hold. Not so: {not_so}."
        return f"The claim holds in part: {len(claimed) - len(failed)} of {len(claimed)}. Not so: {not_so}."

    def without_the_papers_figures(self):
        """The same without the columns of the table that begin with "paper"."""
        table = [{name: cell for name, cell in row.items() if not name.startswith("paper")} for row in self.table]
        return replace(self, table=table)


@dataclass(frozen=True)
class Experiment:
    """A figure of a paper, or a claim without one, that can be run again."""

    name: str
    paper: str  # the paper's letter (K, I, V or H) and the place in it
    title: str
    claim: str  # what the paper says
    run: Callable  # run(data, quick, seeds) returns `Results`; data is a `Data`
    seeds: int = 1  # of a full run
    needs: tuple = ()  # data sets, by the names of their files
    likes: tuple = ()  # data sets that make it more complete if their files are there

    def described(self):
        """One line about it."""
        return f"{self.name}: {self.title} ({self.paper})"

    def results(self, data):
        """Run it on data, quickly if `data` says so; MissingData, before anything runs, if there is no data.

        A quick run has none of the paper's figures beside its own: they are those of long streams.
        """
        for name in self.needs:
            data.load(name)
        seeds = range(min(self.seeds, QUICK_SEEDS) if data.quick else self.seeds)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=GONE_WRONG)
            found = self.run(data, data.quick, seeds)
        return found.without_the_papers_figures() if data.quick else found

    def reproduce(self, data, folder):
        """Run it, write ``NAME.png``, ``NAME.csv`` and ``NAME-curves.csv``, and return the report; MissingData."""
        results = self.results(data)
        return self.report(results, data) + "\n" + write(self.name, results, folder)

    def report(self, results, data):
        """The claim, our figures beside the paper's, and the verdict, as text.

        Made-up data shows that everything runs. Whether a claim holds on it says nothing, and is not said.
        """
        used = {name: data.sources[name] for name in (*self.needs, *self.likes) if name in data.sources}
        made_up = bool(data.made_up.intersection(used))
        lines = [self.described(), f"{'claim, for a full run' if data.quick else 'claim'}: {self.claim}", ""]
        lines += table(results.table)
        lines += judged("", [check for check in results.checks if not check.ours], made_up)
        lines += judged("not in the paper:", [check for check in results.checks if check.ours], made_up)
        lines += ["", *(f"note: {note}" for note in results.notes)]
        lines += [f"data: {name} from {source}" for name, source in used.items()]
        verdict = results.verdict + " (A quick run, which says little.)" * data.quick
        return "\n".join([*lines, f"verdict: {'made-up data: no verdict' if made_up else verdict}"])


def experiment(name, **about):
    """A decorator that makes ``run(data, quick, seeds)`` the experiment of that name."""

    def enter(run):
        EXPERIMENTS[name] = Experiment(name, run=run, **about)
        return run

    return enter


def judged(title, checks, made_up):
    """Lines with the checks, each marked by whether it holds."""
    mark = {check: " -  " if made_up else "yes " if check.holds else "NO  " for check in checks}
    return [title, *(f"  {mark[check]} {check.claim}: {check.found}" for check in checks)] if checks else []


def table(rows):
    """Lines of a table, the columns aligned; the first to the left, others to the right.

    Examples
    --------
    >>> from experiments.experiment import table
    >>> print("\\n".join(table([{"learner": "NORMA", "error": 0.25}, {"learner": "SILK", "error": None}])))
    learner  error
    NORMA     0.25
    SILK
    """
    if not rows:
        return []
    cells = [list(rows[0])] + [[shown(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    return lines


def shown(value):
    """A cell as text: numbers with four digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def write(name, results, folder):
    """Write the picture and the numbers; return a line that says where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    picture, rows, curves = (folder / f"{name}{ending}" for ending in (".png", ".csv", "-curves.csv"))
    with open(rows, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(results.table[0]))
        writer.writeheader()
        writer.writerows(results.table)
    with open(curves, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "curve", "x", "y"])
        for panel in results.panels:
            writer.writerows((panel.title, *point) for point in panel.points())
    try:
        draw(results.panels, picture)
    except ImportError:
        return f"written: {rows}, {curves}. No picture: that takes matplotlib, pip install matplotlib."
    return f"written: {picture}, {rows}, {curves}."
