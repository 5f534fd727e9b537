"""Draw docs/images/additive.png, the components of an additive model of bicycle hire, and print its errors.

Run ``python docs/images/make_additive.py``. It needs matplotlib and a file of data, ``data/regression.npz`` with the
set ``bike_hour``, in the folder that the environment variable ONLINEKERNELS_SHARED names, or in ``shared`` beside the
checkout.
"""
import os
import time
from pathlib import Path

import numpy as np

from onlinekernels import NORMA, AdditiveMatern, Gaussian

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("ONLINEKERNELS_SHARED", HERE.parents[2] / "shared"))
PATH = SHARED / "data" / "regression.npz"

NAMES = ["hour of the day", "temperature, scaled", "relative humidity", "wind speed, scaled", "weather"]
WEATHER = ["clear", "mist", "light rain", "heavy rain"]


def bicycles():
    """Bicycles hired in each hour of two years, in time order: five columns, and log(1 + count)."""
    with np.load(PATH, allow_pickle=False) as file:
        X, count = file["bike_hour::X"].astype(float), file["bike_hour::y"].astype(float)
        column = dict(zip(file["bike_hour::feature_names"].tolist(), X.T))
    hour = column["hr"] / 24 + column["workingday"]  # days off in [0, 1), working days in [1, 2)
    weather = (column["weathersit"] - 1) / 10
    return np.column_stack([hour, column["temp"], column["hum"], column["windspeed"], weather]), np.log1p(count)


def learner(kernel, step):
    return NORMA("squared", kernel, step=step, regularization=0.0, offset=True)


def contestants(X):
    """Names, models and columns; width, rate, step and the factor 10 are the best of a small search."""
    stretched = X * [10, 1, 1, 1, 1]
    return [
        ("linear", learner("linear", 0.3), X),
        ("Gaussian(0.15)", learner(Gaussian(0.15), 0.4), X),
        ("Gaussian(0.7), hour times 10", learner(Gaussian(0.7), 0.3), stretched),
        ("AdditiveMatern(20)", learner(AdditiveMatern(20.0), 0.08), X),
        ("the same, tree=False", learner(AdditiveMatern(20.0, tree=False), 0.08), X),
    ]


def rmse(errors):
    return float(np.sqrt(np.mean(errors**2)))


def report(X, y):
    """Print progressive errors: each hour is predicted, then learned."""
    half = len(y) // 2
    print(f"{'':30} {'all':>6} {'2nd half':>9} {'seconds':>8}")
    errors = np.r_[0.0, np.cumsum(y)[:-1] / np.arange(1, len(y))] - y
    print(f"{'the mean so far':30} {rmse(errors):6.3f} {rmse(errors[half:]):9.3f}")
    for name, model, columns in contestants(X):
        start = time.perf_counter()
        errors = model.progressive(columns, y) - y
        seconds = time.perf_counter() - start
        print(f"{name:30} {rmse(errors):6.3f} {rmse(errors[half:]):9.3f} {seconds:8.2f}")


def draw(X, y, path):
    """Learn the stream once more, with smoother functions and smaller steps, and draw the five components."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    model = learner(AdditiveMatern(10.0), 0.04).fit(X, y)
    figure = plt.figure(figsize=(10, 6), dpi=100, layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=[1.25, 1])
    top = figure.add_subplot(grid[0, :])
    first = figure.add_subplot(grid[1, 0])
    rest = [figure.add_subplot(grid[1, j], sharey=first) for j in (1, 2, 3)]
    for j, (axis, column, name) in enumerate(zip([top, first, *rest], X.T, NAMES, strict=True)):
        values = np.linspace(column.min(), column.max(), 600)
        axis.plot(values, model.component(j, values))
        axis.axhline(0.0, color="0.85", linewidth=0.8, zorder=0)
        rug = np.quantile(column, np.linspace(0, 1, 400), method="nearest")
        axis.plot(rug, np.zeros(400), "|", color="0.4", alpha=0.4, markersize=7, transform=axis.get_xaxis_transform(),
                  clip_on=False)
        axis.set_xlabel(name)
    top.axvline(0.98, color="0.6", linewidth=1.0)
    top.set_xticks(np.arange(0, 48, 3) / 24, [f"{hour % 24}" for hour in range(0, 48, 3)])
    top.set_xlim(-0.02, 1.98)
    for at, days in ((0.28, "days off"), (0.78, "working days")):
        top.annotate(days, (at, 0.2), xycoords="axes fraction", ha="center", fontsize=12, color="0.3")
    rest[-1].set_xticks(np.arange(4) / 10, WEATHER, rotation=30, ha="right", rotation_mode="anchor")
    for axis in (top, first):
        axis.set_ylabel("part of log(1 + count)")
    for axis in rest:
        axis.tick_params(labelleft=False)
    for axis in (top, first, *rest):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main():
    if not PATH.exists():
        raise SystemExit(f"There is no {PATH}. Set ONLINEKERNELS_SHARED to the folder that holds data/regression.npz.")
    X, y = bicycles()
    report(X, y)
    draw(X, y, HERE / "additive.png")


if __name__ == "__main__":
    main()
