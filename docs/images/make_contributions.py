"""Draw docs/images/contributions.png: the stored digits that speak for and against a prediction."""
from pathlib import Path

import numpy as np

from onlinekernels import SILK, Gaussian

ASKED = (1503, 1511, 1525)


def main():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16.0, y[order]
    model = SILK("multiclass_hinge", Gaussian(1.5), budget=200).fit(X[:1500], y[:1500])
    stored = {x.tobytes(): label for x, label in zip(X[:1500], y[:1500])}

    figure, axes = plt.subplots(len(ASKED), 7, figsize=(8.4, 4.2))
    for row, i in zip(axes, ASKED):
        row[0].imshow(X[i].reshape(8, 8), cmap="gray_r")
        row[0].set_title(f"predicted {model.predict_one(X[i])}", fontsize=9)
        for axis, part in zip(row[1:], model.contributions(X[i], top=6)):
            axis.imshow(part.point.reshape(8, 8), cmap="Blues" if part.value > 0 else "Reds")
            axis.set_title(f"{part.value:+.2f}  (a {stored[part.point.tobytes()]})", fontsize=9)
    for axis in axes.ravel():
        axis.axis("off")
    figure.suptitle(
        "Left: a digit. Beside it the stored digits that speak for (blue) or against (red) the prediction", fontsize=10
    )
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("contributions.png"), dpi=80)


if __name__ == "__main__":
    main()
