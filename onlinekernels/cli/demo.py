"""``demo``, and what runs without a command: three small streams, each learned by the model that needs no tuning.

Two are real, and one is made, of faults that no sensor shows by itself. Beside the model are a linear model and a
constant. Everything is predicted before it is learned.
"""
import sys
import warnings

import numpy as np

from onlinekernels import (
    KRLS, SILK, Linear, OnlineKernelClassifier, OnlineKernelDetector, OnlineKernelRegressor, RunningScaler,
)
from onlinekernels.streams import digits, lagged, sunspots

LAGS = 9  # years that a prediction is made from
FAULTS = 30  # readings of a motor whose current does not fit its warmth
NU = 0.04  # of all rows shall alert: twice as many as are faults


def add_demo(subcommands):
    """Add the command to the parser's subcommands."""
    summary = "a tour of a few seconds; also what runs without a subcommand"
    demo = subcommands.add_parser("demo", help=summary, description=summary.capitalize() + ".")
    picture = demo.add_mutually_exclusive_group()
    picture.add_argument("--plot", default="onlinekernels-tour.png", metavar="FILE",
                         help="where to draw the picture (default: %(default)s)")
    picture.add_argument("--no-plot", action="store_true", help="draw no picture")
    demo.set_defaults(run=_demo)


def _demo(arguments):
    print("Three streams, two of them real. Every row is predicted before it is learned; nothing is tuned.\n")
    panels = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a linear model is no better than a constant is what we are about to see
        for stop in (_classify, _predict, _alert):
            title, unit, text, curves, figures = stop()
            rows = (f"  {name:<24}{figure:>16}" for name, figure in zip(curves, figures, strict=True))
            print(text, *rows, "", sep="\n", flush=True)
            panels.append((title, unit, list(curves.values())))
    print("Yours: onlinekernels learn data.csv, or docs/tutorials/quickstart.md.")
    return 0 if arguments.no_plot else _picture(panels, arguments.plot)


def _classify():
    X, y = digits()
    counts = np.cumsum(np.eye(y.max() + 1)[y], axis=0)
    predicted = {
        "OnlineKernelClassifier": OnlineKernelClassifier().progressive(X, y, return_labels=True)[1],
        "linear": SILK("multiclass_hinge", "linear", scale=True).progressive(X, y, return_labels=True)[1],
        "constant": np.concatenate([[-1], counts[:-1].argmax(axis=1)]),  # the most frequent class before each row
    }
    curves = {name: np.cumsum(np.asarray(labels) != y) for name, labels in predicted.items()}
    text = f"Handwritten digits, {len(y)} rows of {X.shape[1]} pixels: mistakes"
    return "digits: mistakes so far", "digits", text, curves, [f"{c[-1] / len(y):.1%}" for c in curves.values()]


def _predict():
    X, y = lagged(sunspots(), lags=LAGS)
    guesses, (low, high) = OnlineKernelRegressor().progressive(X, y, return_interval=0.9)
    predicted = {
        "OnlineKernelRegressor": guesses,
        "linear": KRLS("squared", Linear() + 1, noise="auto", scale=True, scale_target=True).progressive(X, y),
        "constant": np.concatenate([[0.0], np.cumsum(y[:-1]) / np.arange(1, len(y))]),
    }
    curves = {name: np.cumsum((guess - y)[1:] ** 2 / y.var()) for name, guess in predicted.items()}
    text = (f"Sunspots of {len(y)} years, each from the {LAGS} before it (intervals for 90 % covered "
            f"{np.mean((low <= y) & (y <= high)):.0%}): mean squared error, of their variance")
    figures = [f"{curve[-1] / len(curve):.3f}" for curve in curves.values()]
    return "sunspots: squared errors so far", "years", text, curves, figures


def _alert():
    rng = np.random.default_rng(0)
    warm = rng.normal(60.0, 5.0, size=1500)
    X = np.column_stack([warm, 0.02 * warm + rng.normal(scale=0.02, size=1500)])  # the warmer, the larger the current
    faulty = np.isin(np.arange(1500), rng.choice(np.arange(300, 1500), FAULTS, replace=False))
    X[faulty, 1] += 0.3 * np.sign(60.0 - warm[faulty])
    far = np.abs(RunningScaler().progressive(X)).mean(axis=1)
    alerts = {
        "OnlineKernelDetector": np.asarray(OnlineKernelDetector(nu=NU).progressive(X, return_labels=True)[1]) < 0,
        "distance from the mean": [i > 0 and d > np.quantile(far[:i], 1 - NU) for i, d in enumerate(far)],
        "by chance": rng.random(len(X)) < NU,
    }
    curves = {name: np.cumsum(raised & faulty) for name, raised in alerts.items()}
    text = f"Motor, {len(X)} made readings of warmth and current, {FAULTS} where these do not fit: faults found"
    figures = [f"{curves[name][-1]} in {np.sum(raised)} alerts" for name, raised in alerts.items()]
    return "motor: faults found so far", "readings", text, curves, figures


def _picture(panels, path):
    """Draw the picture and say where it is; return the exit status."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("For a picture, install matplotlib: pip install matplotlib")
        return 0
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    styles = zip(("OnlineKernel...", "linear", "constant"), ("#0072B2", "#D55E00", "#777777"), strict=True)
    styles = [{"label": label, "color": color} for label, color in styles]
    for axes, (title, unit, curves) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for curve, style in zip(curves, styles, strict=True):
            axes.plot(curve, **style)
        axes.set(title=title, xlabel=unit, ylim=(0, 1.3 * max(curves[0][-1], curves[1][-1])))
    figure.axes[0].legend(frameon=False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # a folder that does not exist, an unknown suffix
        print(f"The picture could not be written to {path}: {error}", file=sys.stderr)
        return 1
    print(f"What happened over time is drawn in {path}.")
    return 0
