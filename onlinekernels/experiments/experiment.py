"""What an experiment is, and what it finds."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

__all__ = ["Check", "Experiment", "Results"]

QUICK_SEEDS = 2
# What the library says when a learner goes wrong. Here that is a result: some settings of the papers do.
_GONE_WRONG = r"Learning (diverges|has stalled)|The \w+ of .* has run away|This model is no better than"


@dataclass(frozen=True)
class Check:
    """One claim of a paper beside what came out.

    Parameters
    ----------
    claim : str
        What should be so.
    found : str
        The figures that decide.
    holds : bool
        Whether it is so.
    ours : bool, default=False
        Whether the sentence is not the paper's but ours. It is reported apart, and is not part of the verdict.
    """

    claim: str
    found: str
    holds: bool
    ours: bool = False

    def __post_init__(self):
        object.__setattr__(self, "holds", bool(self.holds))  # NumPy's booleans print otherwise


@dataclass
class Results:
    """What a run found: a table, pictures, checks of the claims, and remarks.

    Parameters
    ----------
    table : list of dict
        Rows with the same keys. Figures of the paper stand in columns of their own, whose names begin with "paper".
    panels : list
        What is drawn, side by side; see `onlinekernels.experiments.panels`.
    checks : list of Check
        The claims.
    notes : list of str
        What a reader should know: settings that the paper does not give, and where they were chosen.

    Examples
    --------
    >>> from onlinekernels.experiments import Check, Results
    >>> results = Results(checks=[Check("A makes fewer mistakes than B", "3 against 5", True)])
    >>> results.verdict
    'The claim holds.'
    >>> results.checks.append(Check("B is faster", "2 s against 1 s", False))
    >>> results.verdict
    'The claim holds in part: 1 of 2. Not so: B is faster (2 s against 1 s).'

    What the paper does not say is no part of it:

    >>> results = Results(checks=[Check("A beats B", "3 to 5", True), Check("A beats C", "3 to 2", False, ours=True)])
    >>> results.verdict
    'The claim holds.'
    """

    table: list = field(default_factory=list)
    panels: list = field(default_factory=list)
    checks: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def verdict(self):
        """Whether the paper's claim holds, in one line."""
        claimed = [check for check in self.checks if not check.ours]
        failed = [check for check in claimed if not check.holds]
        if not failed:
            return "The claim holds."
        not_so = "; ".join(f"{check.claim} ({check.found})" for check in failed)
        if len(failed) == len(claimed):
            return f"The claim does not hold. Not so: {not_so}."
        return f"The claim holds in part: {len(claimed) - len(failed)} of {len(claimed)}. Not so: {not_so}."

    def without_the_papers_figures(self):
        """The same without the columns of the table that begin with "paper"."""
        table = [{name: cell for name, cell in row.items() if not name.startswith("paper")} for row in self.table]
        return replace(self, table=table)


@dataclass(frozen=True)
class Experiment:
    """A figure of a paper, or a claim without one, that can be run again.

    Parameters
    ----------
    name : str
        What the command line calls it, such as ``"norma-fig2"``.
    paper : str
        The paper's letter (K, I, V or H) and the place in it.
    title : str
        What it is about, in a few words.
    claim : str
        What the paper says, in a sentence.
    run : callable
        ``run(data, quick, seeds)`` returns `Results`. ``data`` is a `Data`.
    seeds : int, default=1
        How many seeds a full run takes. A quick run takes at most two.
    needs : tuple of str, default=()
        Data sets, by the names of their files.
    likes : tuple of str, default=()
        Data sets that make it more complete if their files are there.
    """

    name: str
    paper: str
    title: str
    claim: str
    run: Callable
    seeds: int = 1
    needs: tuple = ()
    likes: tuple = ()

    def results(self, data):
        """Run it on data, quickly if `data` says so; MissingData, before anything runs, if there is no data.

        A quick run has none of the paper's figures beside its own: they are those of long streams.
        """
        for name in self.needs:
            data.load(name)
        seeds = range(min(self.seeds, QUICK_SEEDS) if data.quick else self.seeds)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_GONE_WRONG)
            found = self.run(data, data.quick, seeds)
        return found.without_the_papers_figures() if data.quick else found
