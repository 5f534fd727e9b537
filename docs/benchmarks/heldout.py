"""SelfTuned on streams that nothing was chosen on, beside the best plain KRLS of six in hindsight.

    python docs/benchmarks/heldout.py           # a minute or two; needs scikit-learn and river

Generators of scikit-learn and river with their own settings and seed 0, run once, with the constants as they are; 3000 rows each, test
then train. Numbers: normalised squared errors from the second row on; classes: mistakes. The six are Gaussians of width .25, .5 and 1
times the root of the number of features, plus 1, with noise .03 and .3, behind scalers.
"""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools  # noqa: E402
import warnings  # noqa: E402

import numpy as np  # noqa: E402

from onlinekernels import KRLS, Gaussian, LearningWarning, SelfTuned  # noqa: E402

ROWS = 3000


def numbers():
    """(name, X, y) of regressions."""
    from sklearn import datasets

    rng = np.random.default_rng(0)
    yield "friedman 1, 5 of 10 features matter", *datasets.make_friedman1(ROWS, noise=1.0, random_state=0)
    yield "friedman 2", *datasets.make_friedman2(ROWS, noise=50.0, random_state=0)
    yield "friedman 3", *datasets.make_friedman3(ROWS, noise=0.1, random_state=0)
    yield "linear, 5 of 20 features matter", *datasets.make_regression(ROWS, 20, n_informative=5, noise=20.0, random_state=0)
    X = rng.normal(size=(ROWS, 8))
    u, v = np.linalg.qr(rng.normal(size=(8, 2)))[0].T
    yield "rotated: two directions of eight", X, np.sin(2 * X @ u) + 0.5 * (X @ v) ** 2 + 0.2 * rng.normal(size=ROWS)
    rolled, position = datasets.make_swiss_roll(ROWS, noise=0.3, random_state=0)
    yield "swiss roll and three columns of noise", np.hstack([rolled, rng.normal(size=(ROWS, 3))]), position


def classes():
    """(name, X, y) of streams that drift."""
    from river.datasets import synth

    for name, stream in (
        ("turning hyperplane", synth.Hyperplane(seed=0, n_features=10, n_drift_features=5, mag_change=0.01)),
        ("moving blobs", synth.RandomRBFDrift(seed_model=0, seed_sample=0, n_classes=4, n_features=6, n_centroids=20, change_speed=0.05)),
    ):
        rows = list(stream.take(ROWS))
        yield name, np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])


def error(model, X, y):
    if model.loss == "multiclass_squared":
        return np.mean(model.progressive(X, y, return_labels=True)[1] != y)
    return np.mean((model.progressive(X, y) - y)[1:] ** 2) / y.var()


def main():
    warnings.simplefilter("ignore", LearningWarning)
    print("| stream | plain, best of six | plain, median of six | SelfTuned |\n| --- | --- | --- | --- |")
    for task, streams in (("squared", numbers()), ("multiclass_squared", classes())):
        for name, X, y in streams:
            plain = [
                error(KRLS(task, Gaussian(width * X.shape[1] ** 0.5) + 1, noise=noise, scale=True, scale_target=task == "squared"), X, y)
                for width, noise in itertools.product((0.25, 0.5, 1.0), (0.03, 0.3))
            ]
            print(f"| {name} | {min(plain):.3f} | {np.median(plain):.3f} | {error(SelfTuned(task), X, y):.3f} |", flush=True)


if __name__ == "__main__":
    main()
