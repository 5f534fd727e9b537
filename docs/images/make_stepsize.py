"""Draw docs/images/stepsize.png: the step size of SVMD over a stream that switches.

Run ``python docs/images/make_stepsize.py``; it needs matplotlib.
"""
from pathlib import Path

from onlinekernels import SVMD, Gaussian
from onlinekernels.streams import switching_gaussians

# Colours of Okabe and Ito, which differ for colour-blind readers; line styles differ as well.
RUNS = [(10.0, "#D55E00", "-"), (1.0, "#009E73", "--"), (0.1, "#0072B2", "-."), (0.01, "#000000", ":")]


def main():
    """Run SVMD from four first steps and draw the four histories."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X, y = switching_gaussians(4000, seed=1)
    figure, axes = plt.subplots(figsize=(9, 5), dpi=100, layout="constrained")
    for first, colour, style in RUNS:
        model = SVMD("hinge", Gaussian(0.5), step=first, budget=300)
        _, steps = model.progressive(X, y, return_steps=True)
        axes.plot(range(1, len(steps) + 1), steps, style, color=colour, linewidth=1.6, label=f"{first:g}")
    for switch in range(1000, 4000, 1000):
        axes.axvline(switch, color="0.6", linewidth=1.0, zorder=0)
        axes.annotate("switch", (switch, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -12),
                      textcoords="offset points", color="0.35", fontsize=10)
    axes.set_yscale("log")
    axes.set_xlim(0, len(X))
    axes.set_xlabel("example t", fontsize=12)
    axes.set_ylabel("step size", fontsize=12)
    axes.legend(title="first step", loc="lower right", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("stepsize.png"))


if __name__ == "__main__":
    main()
