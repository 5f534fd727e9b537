"""Draw docs/images/second_order.png: what KRLS knows of a curve that drifts, with and without forgetting.

Run ``python docs/images/make_second_order.py``; it needs matplotlib.
"""
from pathlib import Path

import numpy as np

from onlinekernels import KRLS, Gaussian

# Colours of Okabe and Ito, which differ for colour-blind readers.
BAND, MEAN, INTERVAL, TRUTH = "#56B4E9", "#0072B2", "#D55E00", "#000000"
N, NOISE = 1000, 0.2
MEMORIES = [1.0, 0.998]
GAP = (1.0, 2.2)  # where no example lies after the first half


def curve(x, t):
    """What is to be learned, at example t: a wave that moves."""
    return np.sin(2.0 * x - 2.5 * t / N)


def stream(seed=0):
    """(X, y), in order; half way the examples stay away from the gap."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(-3.0, 3.0, N), np.arange(N)
    late = (t > N // 2) & (x > GAP[0]) & (x < GAP[1])
    x[late] = rng.uniform(-3.0, GAP[0], late.sum())
    return x[:, None], curve(x, t) + NOISE * rng.normal(size=N)


def main():
    """Two panels: memory 1 and memory below 1, after the same stream."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X, y = stream()
    grid = np.linspace(-4.5, 4.5, 400)[:, None]
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.8), dpi=100, sharey=True, layout="constrained")
    for axes, memory in zip(panels, MEMORIES, strict=True):
        model = KRLS(kernel=Gaussian(0.7), noise=NOISE**2, memory=memory)
        scores, (lower, upper) = model.progressive(X, y, return_interval=0.9)
        mean, std = model.predict(grid, return_std=True)
        ends = model.predict_interval(grid, 0.9)
        axes.axvspan(*GAP, color="0.93", zorder=0)
        axes.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color=BAND, alpha=0.55, linewidth=0,
                          label="f, ± 2 standard deviations")
        for end in ends:
            line, = axes.plot(grid[:, 0], end, "--", color=INTERVAL, linewidth=1.3)
        line.set_label("90 % interval for y")
        axes.plot(grid[:, 0], mean, color=MEAN, linewidth=2.0, label="f")
        axes.plot(grid[:, 0], curve(grid[:, 0], N), ":", color=TRUTH, linewidth=1.8, label="the curve now")
        axes.plot(X[-150:, 0], y[-150:], ".", color="0.35", markersize=4, label="the last 150 examples")
        error = np.sqrt(np.mean((scores - y)[N // 2:] ** 2))
        inside = np.mean((lower <= y) & (y <= upper), where=np.arange(N) >= N // 2)
        axes.set_title(f"memory {memory:g}:  rms error {error:.2f} after t = 500,  {inside:.0%} inside", fontsize=12)
        axes.set_xlabel("x", fontsize=12)
        axes.set_xlim(-4.5, 4.5)
        axes.set_ylim(-2.6, 2.6)
        axes.annotate(
            "no examples\nsince t = 500", (np.mean(GAP), -2.45), ha="center", va="bottom", fontsize=9, color="0.3"
        )
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("y", fontsize=12)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=10, frameon=False
    )
    figure.savefig(Path(__file__).with_name("second_order.png"))


if __name__ == "__main__":
    main()
