"""What is drawn: lines, points, dots and pictures, as plain numbers until matplotlib is asked for."""
from dataclasses import dataclass, field

import numpy as np

# Okabe and Ito's colours can be told apart with any kind of colour vision.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLES = ["-", "--", ":", "-."]
_MOST_POINTS = 400  # of a curve, in the picture and in the file


def _thinned(x, y, logarithmic):
    """At most so many points of a curve, the last one included."""
    if len(x) <= _MOST_POINTS:
        return x, y
    if logarithmic:
        places = np.unique(np.geomspace(1, len(x), _MOST_POINTS).astype(int)) - 1
    else:
        places = np.linspace(0, len(x) - 1, _MOST_POINTS).astype(int)
    return x[places], y[places]


@dataclass
class Lines:
    """Curves by name: an array of heights, at 1, 2, ..., or a pair (places, heights)."""

    title: str
    x: str
    y: str
    curves: dict
    logarithmic: tuple = ()  # "x", "y" or both
    percent: bool = False
    marks: tuple = ()  # where vertical lines stand
    shaded: tuple = ()  # stretches (from, to, what it is)
    bottom: float | None = None  # the lowest value that is shown; None is 0, or what there is on a logarithmic axis
    top: float | None = None  # the highest
    left: float | None = None  # where the horizontal axis begins
    right: float | None = None  # where it ends
    markers: bool = False

    def points(self):
        """(curve, x, y) of all that is drawn."""
        for name, curve in self.curves.items():
            x, y = curve if isinstance(curve, tuple) else (np.arange(1, len(curve) + 1), curve)
            for place in zip(*_thinned(np.asarray(x), np.asarray(y), "x" in self.logarithmic), strict=True):
                yield name, *place

    def draw(self, axes):
        for line, (name, curve) in enumerate(self.curves.items()):
            x, y = curve if isinstance(curve, tuple) else (np.arange(1, len(curve) + 1), curve)
            x, y = _thinned(np.asarray(x), np.asarray(y), "x" in self.logarithmic)
            look = {"color": COLORS[line % len(COLORS)], "linestyle": STYLES[line // len(COLORS) % len(STYLES)]}
            axes.plot(x, y, label=name, linewidth=1.4, marker="o" if self.markers else None, markersize=4, **look)
        for start, end, what in self.shaded:
            axes.axvspan(start, end, color="#000000", alpha=0.08, linewidth=0, label=what)
        for place in self.marks:
            axes.axvline(place, color="#888888", linewidth=0.8, linestyle=":")
        if "x" in self.logarithmic:
            axes.set_xscale("log")
        if "y" in self.logarithmic:
            axes.set_yscale("log")
        axes.set_ylim(bottom=0 if self.bottom is None and "y" not in self.logarithmic else self.bottom, top=self.top)
        axes.set_xlim(left=self.left, right=self.right)
        if self.percent:
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        axes.set(xlabel=self.x, ylabel=self.y)
        axes.legend(frameon=False, fontsize=8)
        _lighten(axes)


@dataclass
class Points:
    """Places in the plane by group, with the diagonal if both coordinates count the same."""

    title: str
    x: str
    y: str
    groups: dict  # name: (n, 2) array
    diagonal: bool = False

    def points(self):
        for name, places in self.groups.items():
            for x, y in places:
                yield name, x, y

    def draw(self, axes):
        for number, (name, places) in enumerate(self.groups.items()):
            style = {"marker": "+x"[number % 2], "s": 14, "linewidths": 0.8}
            axes.scatter(*np.asarray(places).T, label=name, color=COLORS[number % len(COLORS)], **style)
        if self.diagonal:
            every = np.concatenate([np.asarray(places).ravel() for places in self.groups.values()])
            ends = [every.min(), every.max()]
            axes.plot(ends, ends, color="#888888", linewidth=1)
        if len(self.groups) > 1:
            axes.legend(frameon=False, fontsize=8)
        axes.set(xlabel=self.x, ylabel=self.y)
        _lighten(axes)


@dataclass
class Dots:
    """Means by name, with a bar of one standard error of the mean on each side; the axis need not begin at 0."""

    title: str
    y: str
    values: dict  # name: list of numbers

    def points(self):
        for name, values in self.values.items():
            for number, value in enumerate(values):
                yield name, number, value

    def draw(self, axes):
        for place, values in enumerate(self.values.values()):
            mean, error = np.mean(values), np.std(values, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
            look = {"color": COLORS[place % len(COLORS)], "marker": "o", "markersize": 5, "capsize": 4}
            axes.errorbar(place, mean, yerr=error, **look)
            text = f"{mean:.0f}" if mean >= 10 else f"{mean:.3g}"
            axes.annotate(text, (place, mean), (7, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_xticks(range(len(self.values)), list(self.values), rotation=30, ha="right", fontsize=8)
        axes.set_xlim(-0.5, len(self.values) - 0.2)
        axes.set_ylabel(self.y)
        _lighten(axes)


@dataclass
class Images:
    """Small pictures in rows and columns; greater is darker, unless they have colours."""

    title: str
    images: list
    columns: int = 10
    captions: list = field(default_factory=list)  # below the columns
    rows: list = field(default_factory=list)  # beside the rows

    def points(self):
        return iter(())

    def draw(self, axes):
        images = [np.asarray(image, dtype=float) for image in self.images]
        height, width = images[0].shape[:2]
        gap = max(1, width // 16)
        n_rows = -(-len(images) // self.columns)
        grey = [image for image in images if image.ndim == 2] or [np.zeros(1)]
        low, high = min(image.min() for image in grey), max(image.max() for image in grey)
        sheet = np.ones((n_rows * (height + gap) - gap, self.columns * (width + gap) - gap, 3))
        for place, image in enumerate(images):
            top, left = (place // self.columns) * (height + gap), (place % self.columns) * (width + gap)
            shown = image / 255.0 if image.ndim == 3 else 1.0 - (image[..., None] - low) / max(high - low, 1e-12)
            sheet[top : top + height, left : left + width] = shown
        axes.imshow(np.clip(sheet, 0, 1), interpolation="nearest", aspect="equal")
        axes.set_xticks([c * (width + gap) + width / 2 for c in range(len(self.captions))], self.captions, fontsize=8)
        axes.set_yticks([r * (height + gap) + height / 2 for r in range(len(self.rows))], self.rows, fontsize=8)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)


def draw(panels, path):
    """Write a picture with the panels side by side; ImportError without matplotlib."""
    # Figure and canvas as objects: pyplot would choose a backend and keep state for the process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(panels)
    columns = count if count <= 3 else 2
    rows = -(-count // columns)
    figure = Figure(figsize=(4.8 * columns, 3.9 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    every = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(every, panels, strict=False):
        panel.draw(axes)
        axes.set_title(panel.title, loc="left", fontsize="medium")
    for axes in every[count:]:
        axes.set_visible(False)
    figure.savefig(path, dpi=80)


def _lighten(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
