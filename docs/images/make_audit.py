"""Draw docs/images/audit.png: what NORMA did on a stream beside what K's inequality (45) allows, as the stream goes on.

Run ``python docs/images/make_audit.py``; it needs matplotlib.
"""
from pathlib import Path

import numpy as np

from onlinekernels import NORMA, Gaussian, Hinge, bounds

LENGTHS = (25, 50, 100, 200, 300, 450, 600)
# Colours of Okabe and Ito, which differ for colour-blind readers.
COLOURS = {"mistakes": "#0072B2", "margin errors": "#D55E00", "cumulative loss": "#009E73"}


def main():
    """Audit the beginnings of one stream."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X = np.random.default_rng(0).uniform(-1, 1, size=(LENGTHS[-1], 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = NORMA(Hinge(0.5), Gaussian(0.5), step=0.5, regularization=0.001)
    found = [bounds.audit(model, X[:n], y[:n]).certificates for n in LENGTHS]
    figure, axes = plt.subplots(figsize=(7.5, 3.8), dpi=90, layout="constrained")
    for place, line in enumerate(found[0]):
        colour = COLOURS[line.what]
        axes.plot(LENGTHS, [lines[place].made for lines in found], "o-", color=colour, markersize=4, label=line.what)
        axes.plot(
            LENGTHS, [lines[place].allowed for lines in found], "o--", color=colour, markersize=4, label="  allowed"
        )
    axes.set(xlabel="examples", ylim=(0, None), xlim=(0, None))
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    figure.savefig(Path(__file__).with_name("audit.png"))


if __name__ == "__main__":
    main()
