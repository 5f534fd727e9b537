"""Draw docs/images/selftuned.png: what SelfTuned learns under a change, and its error beside plain posteriors.

Run ``python docs/images/make_selftuned.py``; it needs matplotlib.
"""
from pathlib import Path

import numpy as np

from onlinekernels import KRLS, Gaussian, SelfTuned

# Colours of Okabe and Ito, which differ for colour-blind readers.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
N, CHANGE, NOISE = 4000, 2000, 0.1
WIDTHS = [0.5, 1.0, 2.0, 4.0]


def stream(seed=0):
    """(X, y): two of six features matter, and from CHANGE on two others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(N, 6))
    before, after = (np.sin(2.0 * X[:, i]) + 0.5 * X[:, i + 1] ** 2 for i in (0, 3))
    return X, np.where(np.arange(N) < CHANGE, before, after) + NOISE * rng.normal(size=N)


def smooth(errors, over=150):
    """Means of the latest so many."""
    sums = np.cumsum(np.insert(errors, 0, 0.0))
    return (sums[over:] - sums[:-over]) / over


def main():
    """Two panels: relevance over time, and errors."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X, y = stream()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), dpi=100, layout="constrained")
    left.set_prop_cycle(color=COLOURS)
    model = SelfTuned()
    learned = (model.progressive(X, y) - y) ** 2 / y.var()
    history = model.history_
    for name, shares in zip(model.relevance_, history["relevance"].T, strict=True):
        left.step(np.append(history["t"], N), np.append(shares, shares[-1]), where="post", label=name)
    for alarm in history["t"][history["alarm"]]:
        left.axvline(alarm, color="0.5", linewidth=1.0, linestyle="--")
    left.set_xlabel("example")
    left.set_ylabel("relevance")
    left.set_ylim(bottom=0.0)
    left.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    left.axvline(CHANGE, color="0.75", linewidth=6, zorder=0)
    left.set_title("grey: the change, dashed: the alarm", fontsize=12)
    times = np.arange(N)[149:]
    for width, shade in zip(WIDTHS, np.linspace(0.75, 0.35, len(WIDTHS)), strict=True):
        plain = KRLS(kernel=Gaussian(width) + 1, noise=0.1, memory=0.999, scale=True, scale_target=True)
        right.plot(times, smooth((plain.progressive(X, y) - y) ** 2 / y.var()), color=str(shade), linewidth=1.4,
                   label=f"KRLS, width {width:g}")
    right.plot(times, smooth(learned), color=COLOURS[0], linewidth=2.2, label="SelfTuned")
    right.axhline(NOISE**2 / y.var(), color="0.5", linestyle=":", label="noise")
    right.set_yscale("log")
    right.set_xlabel("example")
    right.set_title("squared error over variance, mean of 150", fontsize=12)
    right.legend(frameon=False, ncols=3, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    figure.savefig(Path(__file__).with_name("selftuned.png"))


if __name__ == "__main__":
    main()
