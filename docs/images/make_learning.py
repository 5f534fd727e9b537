"""Draw docs/images/learning.png: learning curves beside boosting that is fitted again, on all rows so far.

Run ``python docs/images/make_learning.py``; it needs matplotlib, scikit-learn, and the data as
docs/benchmarks/real_data.py does. Boosting is fitted whenever the rows have grown by a third.
"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import real_data  # noqa: E402

import onlinekernels as ok  # noqa: E402

FIRST, GROWTH, WINDOW = 50, 4 / 3, 1000  # rows of the first fit; rows when it is fitted again; rows that a point averages
PANELS = [("numbers", "kin8nm"), ("numbers", "california"), ("classes", "elec2")]
OURS, PEER = "#D55E00", "#0072B2"  # of Okabe and Ito


def refitted(task, X, y):
    """What boosting predicts for each row, fitted on all rows before the latest time that they had grown by a third."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingClassifier if task == "classes" else HistGradientBoostingRegressor
    answers = np.full(len(y), y[0] if task == "classes" else y[:FIRST].mean(), dtype=y.dtype)
    begin = FIRST
    while begin < len(y):
        end = min(len(y), int(np.ceil(GROWTH * begin)))
        answers[begin:end] = make(random_state=0).fit(X[:begin], y[:begin]).predict(X[begin:end])
        begin = end
    return answers


def learned(task, X, y):
    """What the default ensemble predicts for each row before it learns from it."""
    if task == "classes":
        return ok.OnlineKernelClassifier().progressive(X, y, return_labels=True)[1]
    return ok.OnlineKernelRegressor().progressive(X, y)


def curve(task, y, answers):
    """(rows, error of the window that ends there): mistakes in %, or squared error over the variance of all."""
    losses = 100.0 * (answers != y) if task == "classes" else (answers - y) ** 2 / np.var(y)
    ends = np.arange(FIRST, len(y) + 1, 10)
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    begins = np.maximum(FIRST // 2, ends - WINDOW)
    return ends, (sums[ends] - sums[begins]) / (ends - begins)


def main():
    """Learn, refit, and draw a panel for each stream."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(PANELS), figsize=(11, 3.4), dpi=100, layout="constrained")
    for panel, (task, name) in zip(axes, PANELS, strict=True):
        X, y = real_data.load(task, name)
        for run, colour, style, label in ((learned, OURS, "-", "ours, not tuned"), (refitted, PEER, "--", "boosting, refitted")):
            rows, errors = curve(task, y, run(task, X, y))
            print(name, label, *(f"{row}: {error:.3g}" for row, error in zip(rows[::60], errors[::60])), flush=True)
            panel.plot(rows, errors, style, color=colour, linewidth=1.6, label=label)
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("rows")
        panel.set_ylabel("mistakes, %" if task == "classes" else "squared error / variance")
    axes[0].legend(fontsize=9)
    figure.savefig(Path(__file__).with_name("learning.png"))


if __name__ == "__main__":
    main()
