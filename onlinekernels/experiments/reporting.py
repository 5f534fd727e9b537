"""From results to a terminal, a picture and files with numbers."""

import csv
from pathlib import Path

import numpy as np

from onlinekernels.experiments.panels import draw

__all__ = ["described", "report", "reproduce", "write"]


def reproduce(experiment, data, out):
    """Run an experiment, write its files to the folder `out`, and return its report as text.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    data : Data
        Where data sets come from; its `quick` says whether to run a small version.
    out : str or Path
        Folder for ``NAME.png``, ``NAME.csv`` and ``NAME-curves.csv``. It is made if it is not there.

    Raises
    ------
    MissingData
        If a data set is not there. Nothing is written then.
    """
    results = experiment.results(data)
    return report(experiment, results, data) + "\n" + write(experiment.name, results, Path(out))


def report(experiment, results, data):
    """The claim, our figures beside the paper's, and the verdict, as text."""
    claim = "claim, for a full run" if data.quick else "claim"
    lines = [described(experiment), f"{claim}: {experiment.claim}", ""]
    lines += table(results.table)
    lines += _judged("", [check for check in results.checks if not check.ours])
    lines += _judged("not in the paper:", [check for check in results.checks if check.ours])
    lines += [""] + [f"note: {note}" for note in results.notes]
    lines += [
        f"data: {name} from {data.sources[name]}"
        for name in (*experiment.needs, *experiment.likes)
        if name in data.sources
    ]
    quick = " (A quick run, which says little.)" if data.quick else ""
    return "\n".join([*lines, f"verdict: {results.verdict}{quick}"])


def _judged(title, checks):
    lines = [f"  {'yes' if check.holds else 'NO '}  {check.claim}: {check.found}" for check in checks]
    return [title, *lines] if lines else []


def described(experiment):
    """One line about an experiment."""
    return f"{experiment.name}: {experiment.title} ({experiment.paper})"


def table(rows):
    """Lines of a table, the columns aligned; the first to the left, others to the right.

    Examples
    --------
    >>> from onlinekernels.experiments.reporting import table
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
    """A cell as text: numbers with three or four digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return str(value)


def write(name, results, folder):
    """Write the picture and the numbers; return a line that says where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.csv", folder / f"{name}-curves.csv"]
    with open(written[0], "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(results.table[0]))
        writer.writeheader()
        writer.writerows(results.table)
    with open(written[1], "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "curve", "x", "y"])
        for panel in results.panels:
            writer.writerows((panel.title, *point) for point in panel.points())
    picture = folder / f"{name}.png"
    try:
        draw(results, picture)
    except ImportError:
        hint = ' No picture: that takes matplotlib, pip install matplotlib.'
    else:
        written.insert(0, picture)
        hint = ""
    return f"written: {', '.join(map(str, written))}.{hint}"
