"""Draw docs/images/budgets.png: accuracy on a9a against the number of terms, for every budget.

Run ``python docs/images/make_budgets.py``; it needs matplotlib, and the data as docs/benchmarks/budgets.py does.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from budgets import KERNEL, load, norma, passive, run  # noqa: E402

import onlinekernels as ok  # noqa: E402

SIZES = [25, 50, 100, 200, 400, 800]
# Colours of Okabe and Ito, which differ for colour-blind readers; line styles and markers differ as well.
CURVES = [
    ("PA-I, Projecting", lambda n: passive(ok.Projecting(n)), "#0072B2", "-", "o"),
    ("NORMA, Merging", lambda n: norma(ok.Merging(n)), "#D55E00", "-", "s"),
    ("Projectron++", lambda n: ok.Projectron(KERNEL, aggressive=True, budget=n), "#009E73", "-", "^"),
    ("Projectron", lambda n: ok.Projectron(KERNEL, budget=n), "#009E73", "--", "v"),
    ("NORMA, Smallest", lambda n: norma(ok.Smallest(n)), "#CC79A7", "-", "x"),
    ("NORMA, Recent", lambda n: norma(ok.Recent(n)), "#000000", "--", "+"),
    ("Forgetron", lambda n: ok.Forgetron(KERNEL, budget=n), "#E69F00", "-.", "d"),
    ("Perceptron, RandomRemoval", lambda n: ok.Perceptron(KERNEL, budget=ok.RandomRemoval(n)), "#56B4E9", ":", "*"),
    ("NORMA, Redundant, tighter", lambda n: norma(ok.Redundant(n, tighter=True)), "#777777", ":", "p"),
]


def main():
    """Learn with every budget and size, and draw a curve for each budget."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X, y = load()
    figure, axes = plt.subplots(figsize=(9, 5), dpi=100, layout="constrained")
    for name, make, colour, style, marker in CURVES:
        accuracies = [100 * run(make(size), X, y)[0] for size in SIZES]
        print(name, [round(accuracy, 1) for accuracy in accuracies], flush=True)
        axes.plot(SIZES, accuracies, style, color=colour, marker=marker, linewidth=1.6, label=name)
    axes.axhline(100 * run(norma(None), X, y)[0], color="0.6", linewidth=1.0, zorder=0)
    axes.annotate(
        "NORMA, all terms",
        (SIZES[0], 100 * run(norma(None), X, y)[0]),
        xytext=(0, 4),
        textcoords="offset points",
        color="0.35",
    )
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.minorticks_off()
    axes.set_xlabel("terms")
    axes.set_ylabel("progressive accuracy on a9a, %")
    figure.legend(loc="outside right upper", fontsize=9)
    figure.savefig(Path(__file__).with_name("budgets.png"))


if __name__ == "__main__":
    main()
