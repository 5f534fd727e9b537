"""SelfTuned and the default ensembles on streams that nothing was chosen on.

    python docs/benchmarks/heldout.py               # SelfTuned beside the best plain KRLS of six; a minute or two
    python docs/benchmarks/heldout.py --ensembles   # default ensembles beside river's models; ten minutes
    python docs/benchmarks/heldout.py --ensembles --effort low

It needs scikit-learn and river.

The default ensembles get rows as they are, words and dates among them; river's models are behind a scaler and one-hot
encoding, but for the forest of classes, which takes words; those of numbers also have their targets scaled. Sets of
scikit-learn are shuffled with seed 0, those of river and its generators (seed 1, 4000 rows) in order; the two series
are predicted one step ahead from their last 8 values. All streams are listed, also those that are lost.

SelfTuned:

Generators of scikit-learn and river with their own settings and seed 0, run once, with the constants as they are; 3000
rows each, test then train. Numbers: normalised squared errors from the second row on; classes: mistakes. The six are
Gaussians of width .25, .5 and 1 times the root of the number of features, plus 1, with noise .03 and .3, behind
scalers.
"""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse  # noqa: E402
import itertools  # noqa: E402
import warnings  # noqa: E402

import numpy as np  # noqa: E402

from onlinekernels import KRLS, Gaussian, LearningWarning, SelfTuned  # noqa: E402
from onlinekernels import OnlineKernelClassifier, OnlineKernelRegressor  # noqa: E402
from onlinekernels.streams import lagged  # noqa: E402

ROWS = 3000


def numbers():
    """(name, X, y) of regressions."""
    from sklearn import datasets

    rng = np.random.default_rng(0)
    yield "friedman 1, 5 of 10 features matter", *datasets.make_friedman1(ROWS, noise=1.0, random_state=0)
    yield "friedman 2", *datasets.make_friedman2(ROWS, noise=50.0, random_state=0)
    yield "friedman 3", *datasets.make_friedman3(ROWS, noise=0.1, random_state=0)
    yield (
        "linear, 5 of 20 features matter",
        *datasets.make_regression(ROWS, 20, n_informative=5, noise=20.0, random_state=0),
    )
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
        (
            "moving blobs",
            synth.RandomRBFDrift(
                seed_model=0, seed_sample=0, n_classes=4, n_features=6, n_centroids=20, change_speed=0.05
            ),
        ),
    ):
        rows = list(stream.take(ROWS))
        yield name, np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])


def error(model, X, y):
    if model.loss == "multiclass_squared":
        return np.mean(model.progressive(X, y, return_labels=True)[1] != y)
    return np.mean((model.progressive(X, y) - y)[1:] ** 2) / y.var()


# ---- The default ensembles ---------------------------------------------------------------------------


def shuffled(data):
    """(rows, targets) of a set of scikit-learn."""
    order = np.random.default_rng(0).permutation(len(data.target))
    names = [f"x{j}" for j in range(data.data.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in data.data[order].tolist()], data.target[order].tolist()


def taken(stream, n=4000):
    """(rows, targets) of a stream of river."""
    rows, y = zip(*itertools.islice(stream, n), strict=True)
    return [{str(name): value for name, value in row.items()} for row in rows], list(y)


def ensemble_classes():
    """(name, rows, labels)."""
    from river import datasets
    from river.datasets import synth
    from sklearn import datasets as sets

    for name in ("breast_cancer", "wine", "digits", "iris"):
        yield name, *shuffled(getattr(sets, f"load_{name}")())
    yield "image segments", *taken(datasets.ImageSegments())
    yield "agrawal, noise", *taken(synth.Agrawal(classification_function=5, perturbation=0.1, seed=1))
    yield (
        "LED, drift",
        *taken(synth.LEDDrift(seed=1, noise_percentage=0.1, irrelevant_features=True, n_drift_features=4)),
    )
    yield "random tree, words", *taken(synth.RandomTree(seed_tree=1, seed_sample=1))
    yield (
        "blobs that move",
        *taken(
            synth.RandomRBFDrift(
                seed_model=1, seed_sample=1, n_classes=3, n_features=8, n_centroids=30, change_speed=0.01
            )
        ),
    )
    yield (
        "hyperplane that turns",
        *taken(synth.Hyperplane(seed=1, n_features=8, n_drift_features=3, mag_change=0.005, noise_percentage=0.1)),
    )
    yield "waveform, noise", *taken(synth.Waveform(seed=1, has_noise=True))
    yield (
        "sine, then its opposite",
        *taken(
            synth.ConceptDriftStream(synth.Sine(1, seed=1), synth.Sine(3, seed=2), seed=1, position=2000, width=100)
        ),
    )
    yield "mixed", *taken(synth.Mixed(seed=1, classification_function=1, balance_classes=False))


def ensemble_numbers():
    """(name, rows or None for a series, targets)."""
    from river import datasets
    from river.datasets import synth
    from sklearn import datasets as sets

    yield "diabetes", *shuffled(sets.load_diabetes())
    yield "chick weights", *taken(datasets.ChickWeights())
    yield "trump approval", *taken(datasets.TrumpApproval())
    yield "friedman, drift", *taken(synth.FriedmanDrift(drift_type="lea", position=(1000, 2000, 3000), seed=1))
    yield "mv, words", *taken(synth.Mv(seed=1))
    yield "planes", *taken(synth.Planes2D(seed=1))
    yield "airline passengers, series", None, taken(datasets.AirlinePassengers())[1]
    yield "water flow, series", None, taken(datasets.WaterFlow())[1]


def of_river(classes):
    """{name: model} of river."""
    from river import compose, forest, linear_model, multiclass, neighbors, preprocessing

    def plain(model):
        words = compose.SelectType(str) | preprocessing.OneHotEncoder()
        return (words + (compose.SelectType((float, int, bool)) | preprocessing.StandardScaler())) | model

    if classes:
        return {"ARF 10": forest.ARFClassifier(n_models=10, seed=1), "KNN": plain(neighbors.KNNClassifier()),
                "logistic": plain(multiclass.OneVsRestClassifier(linear_model.LogisticRegression()))}
    models = {
        "ARF 10": forest.ARFRegressor(n_models=10, seed=1),
        "KNN": neighbors.KNNRegressor(),
        "linear": linear_model.LinearRegression(),
    }
    return {name: plain(preprocessing.TargetStandardScaler(regressor=model)) for name, model in models.items()}


def said_by(model, rows, y):
    """Predictions of a model of river, test then train."""
    said = []
    for x, target in zip(rows, y, strict=True):
        said.append(model.predict_one(x))
        model.learn_one(x, target)
    return said


def ensembles(effort):
    """A line for each stream: the default ensemble, and river's models."""
    print("| stream | rows | default ensemble | ARF 10 | KNN | linear |\n| --- | --- | --- | --- | --- | --- |")
    for name, rows, y in ensemble_classes():
        model, truth = OnlineKernelClassifier(effort), np.array(y, dtype=object)
        said = [label for i in range(0, len(y), 500)
                for label in model.progressive(rows[i : i + 500], y[i : i + 500], return_labels=True)[1]]
        found = [said, *(said_by(peer, rows, y) for peer in of_river(True).values())]
        print_line(name, y, [100 * np.mean(np.array(part, dtype=object) != truth) for part in found], "{:.2f} %")
    for name, rows, y in ensemble_numbers():
        y = np.array(y, dtype=float)
        if rows is None:
            scores = OnlineKernelRegressor(effort, lags=8).progressive(y)[8:]
            X, y = lagged(y, 8)
            rows = [dict(enumerate(row)) for row in X.tolist()]
        else:
            model = OnlineKernelRegressor(effort)
            scores = np.concatenate(
                [model.progressive(rows[i : i + 500], y[i : i + 500]) for i in range(0, len(y), 500)]
            )
        found = [scores, *(said_by(peer, rows, y.tolist()) for peer in of_river(False).values())]
        print_line(name, y, [np.mean((np.array(part, dtype=float) - y)[1:] ** 2) / y.var() for part in found], "{:.4f}")


def print_line(name, y, errors, pattern):
    print(f"| {name} | {len(y)} | " + " | ".join(pattern.format(error) for error in errors) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ensembles", action="store_true", help="the default ensembles beside river's models")
    parser.add_argument("--effort", default="medium", choices=["low", "medium", "high"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", LearningWarning)
    if options.ensembles:
        return ensembles(options.effort)
    print("| stream | plain, best of six | plain, median of six | SelfTuned |\n| --- | --- | --- | --- |")
    for task, streams in (("squared", numbers()), ("multiclass_squared", classes())):
        for name, X, y in streams:
            plain = [
                error(
                    KRLS(
                        task,
                        Gaussian(width * X.shape[1] ** 0.5) + 1,
                        noise=noise,
                        scale=True,
                        scale_target=task == "squared",
                    ),
                    X,
                    y,
                )
                for width, noise in itertools.product((0.25, 0.5, 1.0), (0.03, 0.3))
            ]
            print(
                f"| {name} | {min(plain):.3f} | {np.median(plain):.3f} | {error(SelfTuned(task), X, y):.3f} |",
                flush=True,
            )
    return None


if __name__ == "__main__":
    main()
