"""Reports as text, and as plots that matplotlib draws if it is there."""
import math
import numbers
import textwrap

import numpy as np

ERROR_WORDS = {
    "binary": "mistakes", "multiclass": "mistakes", "regression": "mean absolute error", "novelty": "alerts",
}

# ---- Text ----


def headline(task):
    """(name, words) of the measures that matter most for a task."""
    return [("error", ERROR_WORDS[task]), *([("squared_error", "squared error")] if task == "regression" else [])]


def margin_word(task):
    return "width" if task == "regression" else "margin"


def shown(task, name, value):
    """A measure as text; empty if there is none."""
    if math.isnan(value):
        return ""
    is_rate = name == "margin_errors" or name.endswith("error") and task != "regression"
    return f"{value:.2%}" if is_rate else f"{value:.4g}"


def aligned(rows):
    """Rows of text as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def shortened(text, width=110):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def cell(value):
    """The value of a parameter as text."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{value:.4g}"
    return shortened(value if isinstance(value, str) else repr(value), 40)


def rank(value):
    """A key for sorting numbers, NaN last."""
    return math.inf if math.isnan(value) else value


# ---- Plots ----

# Okabe and Ito's colours can be told apart with any kind of colour vision.
_COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_STYLES = ["-", "--", "-.", ":"]


def plot_report(report, path, axes):
    words = {"terms": "terms", "step": "step", "margin": margin_word(report.task)}
    changing = [name for name in words if axes is None and np.unique(report.history[name]).size > 1]
    figure, (top, *below) = _figure(axes, 1 + len(changing))
    seen = report.history["examples"]
    latest = f"latest {report.window}" if report.window < report.examples else "latest examples"
    top.plot(seen, report.history["window_error"], **_line(0, seen), linewidth=1.2, label=latest)
    top.plot(seen, report.history["error"], **_line(1, seen), linewidth=1.8, label="all so far")
    _finish(top, report.task, ylabel=ERROR_WORDS[report.task])
    _entitle(top, report.name, axes is not None)
    top.legend(frameon=False, loc="upper right", ncols=2)
    for panel, name in zip(below, changing, strict=True):
        panel.plot(seen, report.history[name], **_line(2, seen), linewidth=1.5)
        _finish(panel, None, ylabel=words[name], least=None if name == "margin" else 0)
    for panel in [top, *below]:
        panel.set_xlim(0, report.examples)
    [top, *below][-1].set_xlabel("examples seen")
    return _saved(figure, path)


def plot_reports(reports, path, axes, windowed):
    figure, (axes,) = _figure(axes, 1)
    task, window = reports[0].task, reports[0].window
    ends = "window_error" if windowed else "error"
    # From the most errors to the fewest, so that the legend has the order of the lines' ends.
    for line, report in sorted(enumerate(reports), key=lambda item: rank(getattr(item[1], ends)), reverse=True):
        history = report.history
        values = history["window_error"] if windowed else history["error"] * history["examples"]
        label = f"{shortened(report.name, 40)}: {shown(task, 'error', getattr(report, ends))}"
        axes.plot(history["examples"], values, label=label, linewidth=1.5, **_line(line, history))
    word = "sum of absolute errors" if task == "regression" else f"{ERROR_WORDS[task]} so far"
    word = f"{ERROR_WORDS[task]}, latest {window}" if windowed else word
    _finish(axes, task if windowed else None, ylabel=word)
    axes.set(xlabel="examples seen", xlim=(0, reports[0].examples))
    inside = {} if windowed else {"loc": "upper left"}
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    axes.legend(frameon=False, **(inside if len(reports) <= 6 else beside))
    return _saved(figure, path)


def _figure(axes, rows):
    """(figure, list of axes): the given ones, or a new figure with a tall panel above small ones."""
    if axes is not None:
        return axes.figure, [axes]
    try:
        # Figure and canvas as objects: pyplot would choose a backend and keep state for the process.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "Plots need matplotlib, which is not installed: pip install matplotlib"
        raise ImportError(message) from error
    figure = Figure(figsize=(8, 3.5 + 1.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[3] + [1] * (rows - 1))
    return figure, list(panels[:, 0])


def _entitle(axes, text, is_given):
    """A title over axes that are given, or over the whole figure, which has more room."""
    lines = "\n".join(textwrap.wrap(text, 60 if is_given else 95, max_lines=2, placeholder=" ..."))
    if is_given:
        axes.set_title(lines, loc="left", fontsize="medium")
    else:
        axes.figure.suptitle(lines, x=0.01, ha="left", fontsize="medium")


def _saved(figure, path):
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _finish(axes, task, ylabel, least=0):
    """What all panels share; rates are shown in percent."""
    axes.set_ylabel(ylabel)
    if least is not None:
        axes.set_ylim(bottom=least)
    if task is not None and task != "regression":
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    _lighten(axes)


def _lighten(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def _line(number, points):
    """Look of a line: other colours first, then other styles; a few points are marked, as one makes no line."""
    return {
        "color": _COLORS[number % len(_COLORS)],
        "linestyle": _STYLES[number // len(_COLORS) % len(_STYLES)],
        "marker": "o" if len(points) < 10 else None,
        "markersize": 4,
    }
