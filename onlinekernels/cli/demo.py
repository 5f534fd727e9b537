"""The tour: what ``python -m onlinekernels`` does without a command.

Three small real streams, each learned by the model that needs no tuning, beside a linear model and a constant.
Everything is predicted before it is learned.
"""
import sys
import warnings
from pathlib import Path

import numpy as np

from onlinekernels import (
    KRLS,
    SILK,
    Linear,
    OnlineKernelClassifier,
    OnlineKernelDetector,
    OnlineKernelRegressor,
    RunningScaler,
)
from onlinekernels.evaluate.running import progress_bar
from onlinekernels.streams import digits, lagged, sunspots, tumours

__all__ = ["add_demo"]

_LAGS = 9  # years that a prediction is made from
_ODD = 30  # malignant tumours among the others
_NU = 0.08  # of all rows shall alert: as many as are malignant
_MODELS = ("ensemble", "linear", "constant")
_COLOURS = {"ensemble": "#0072B2", "linear": "#D55E00", "constant": "#777777"}


def add_demo(subcommands):
    """Add the command to the parser's subcommands."""
    summary = "a tour of a few seconds; also what runs without a subcommand"
    demo = subcommands.add_parser("demo", help=summary, description=summary.capitalize() + ".")
    picture = demo.add_mutually_exclusive_group()
    picture.add_argument("--plot", type=Path, default=Path("onlinekernels-tour.png"), metavar="PATH",
                         help="where to write the picture (default: %(default)s)")
    picture.add_argument("--no-plot", action="store_true", help="write no picture")
    demo.set_defaults(run=_demo, parser=demo)


def _demo(arguments):
    print("Three real streams. Every row is predicted before it is learned; nothing is tuned.\n")
    panels = []
    with progress_bar(None, 3, " streams") as done, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a linear model is no better than a constant is what we are about to see
        for stop in (_classify, _predict, _alert):
            text, panel = stop()
            print(text + "\n")
            panels.append(panel)
            done(1)
    print("Yours: onlinekernels learn data.csv, or docs/tutorials/quickstart.md.")
    return 0 if arguments.no_plot else _picture(panels, arguments.plot)


def _classify():
    X, y = digits()
    wrong = {
        "ensemble": _labels(OnlineKernelClassifier(), X, y) != y,
        "linear": _labels(SILK("multiclass_hinge", "linear", scale=True), X, y) != y,
        "constant": _most_frequent_before(y) != y,
    }
    text = f"Handwritten digits, {len(y)} rows of {X.shape[1]} pixels: mistakes\n" + _rows(
        {name: f"{mistakes.mean():.1%}" for name, mistakes in wrong.items()}, {"ensemble": "OnlineKernelClassifier"}
    )
    return text, ("digits: mistakes so far", "digits", {name: np.cumsum(mistakes) for name, mistakes in wrong.items()})


def _labels(model, X, y):
    return np.asarray(model.progressive(X, y, return_labels=True)[1])


def _most_frequent_before(y):
    """The most frequent class before each row; at the first, one that it is not."""
    counts, answers = np.zeros(y.max() + 1), np.full(len(y), -1)
    for i in range(1, len(y)):
        counts[y[i - 1]] += 1
        answers[i] = counts.argmax()
    return answers


def _predict():
    X, y = lagged(sunspots(), lags=_LAGS)
    predictions, (low, high) = OnlineKernelRegressor().progressive(X, y, return_interval=0.9)
    linear = KRLS("squared", Linear() + 1, noise="auto", scale=True, scale_target=True).progressive(X, y)
    means = np.concatenate([[0.0], np.cumsum(y[:-1]) / np.arange(1, len(y))])
    errors = {"ensemble": predictions - y, "linear": linear - y, "constant": means - y}
    covered = np.mean((low <= y) & (y <= high))
    title = f"Sunspots of {len(y)} years, each from the {_LAGS} before it: mean squared error, of their variance\n"
    text = title + _rows(
        {name: f"{np.mean(error[1:] ** 2) / y.var():.3f}" for name, error in errors.items()},
        {"ensemble": "OnlineKernelRegressor"},
    ) + f"\n  intervals for 90 % covered {covered:.0%}"
    sums = {name: np.cumsum(np.concatenate([[0.0], error[1:] ** 2])) / y.var() for name, error in errors.items()}
    return text, ("sunspots: squared errors so far", "years", sums)


def _alert():
    X, malignant, names = tumours()
    rng = np.random.default_rng(0)
    some = rng.choice(np.flatnonzero(malignant), _ODD, replace=False)
    rows = rng.permutation(np.concatenate([np.flatnonzero(~malignant), some]))
    X, malignant = X[rows], malignant[rows]
    detector = OnlineKernelDetector(nu=_NU)
    alerts = {
        "ensemble": np.asarray(detector.progressive(X, return_labels=True)[1]) < 0,
        "linear": _largest_so_far(np.abs(RunningScaler().progressive(X)).mean(axis=1)),
        "constant": rng.random(len(X)) < _NU,
    }
    found = {name: np.cumsum(raised & malignant) for name, raised in alerts.items()}
    shown = {name: f"{found[name][-1]} in {raised.sum()} alerts" for name, raised in alerts.items()}
    last = np.flatnonzero(alerts["ensemble"])[-1]
    reasons = [names[int(name[1:])] for name in list(detector.explain(X[last]))[:2]]
    text = f"Tumours, {_ODD} of {len(X)} malignant, none of them named: malignant ones found\n" + _rows(
        shown, {"ensemble": "OnlineKernelDetector", "linear": "distance from the mean", "constant": "by chance"}
    ) + f"\n  the last alert: {' and '.join(reasons)}"
    return text, ("tumours: malignant ones found so far", "tumours", found)


def _largest_so_far(distances):
    """Whether each is among the largest `_NU` of those before it."""
    return np.array([i > 0 and d > np.quantile(distances[:i], 1 - _NU) for i, d in enumerate(distances)])


def _rows(figures, names):
    """A line for each model, with its figure."""
    return "\n".join(f"  {names.get(name, name):<24}{figures[name]:>16}" for name in figures)


def _picture(panels, path):
    """Write the picture and say where it is; return the exit status."""
    try:
        _drawn(panels).savefig(path)
    except ImportError:
        print("For a picture, install matplotlib: pip install matplotlib")
    except (OSError, ValueError) as error:  # a folder that does not exist, an unknown suffix
        print(f"The picture could not be written to {path}: {error}", file=sys.stderr)
        return 1
    else:
        print(f"What happened over time is drawn in {path}.")
    return 0


def _drawn(panels):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, unit, curves) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for name in _MODELS:
            style = {"color": _COLOURS[name], "ls": "--" if name == "constant" else "-"}
            axes.plot(curves[name], label=name.replace("ensemble", "OnlineKernel..."), **style)
        axes.set(title=title, xlabel=unit, ylim=(0, 1.3 * max(curves["ensemble"][-1], curves["linear"][-1])))
    figure.axes[0].legend(frameon=False)
    return figure
