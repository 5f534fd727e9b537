"""Plots of reports, drawn by matplotlib if it is there."""
import math
import numbers
import textwrap

import numpy as np

from onlinekernels.evaluate.measures import rank
from onlinekernels.evaluate.words import (
    ERROR_WORDS,
    cell,
    margin_word,
    setting_names,
    setting_words,
    shortened,
    shown,
)

# Okabe and Ito's colours can be told apart with any kind of colour vision.
_COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_STYLES = ["-", "--", "-.", ":"]


def plot_report(report, path, axes):
    is_given = axes is not None
    panels = [] if is_given else _changing(report)
    figure, (top, *below) = _figure(axes, 1 + len(panels))
    seen = report.history["examples"]
    latest = f"latest {report.window}" if report.window < report.examples else "latest examples"
    top.plot(seen, report.history["window_error"], **_line(0, seen), linewidth=1.2, label=latest)
    top.plot(seen, report.history["error"], **_line(1, seen), linewidth=1.8, label="all so far")
    _finish(top, report.task, ylabel=ERROR_WORDS[report.task])
    _entitle(top, report.name, is_given)
    top.legend(frameon=False, loc="upper right", ncols=2)
    for panel, (name, word) in zip(below, panels, strict=True):
        panel.plot(seen, report.history[name], **_line(2, seen), linewidth=1.5)
        _finish(panel, None, ylabel=word, least=None if name == "margin" else 0)
    for panel in [top, *below]:
        panel.set_xlim(0, report.examples)
    [top, *below][-1].set_xlabel("examples seen")
    return _saved(figure, path)


def plot_comparison(comparison, path, axes, windowed):
    figure, (axes,) = _figure(axes, 1)
    reports = list(comparison.reports.values())
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


def plot_tuning(tuning, path, axes):
    is_given = axes is not None
    figure, (axes,) = _figure(axes, 1)
    done = [trial for trial in tuning.trials if math.isfinite(trial.value)]
    names = setting_names(done)
    tried = [_distinct(trial.params.get(name) for trial in done) for name in names]
    varied = [(name, values) for name, values in zip(names, tried, strict=True) if len(values) > 1]
    if len(varied) == 1 and _are_numbers(varied[0][1]):
        _draw_line(axes, done, varied[0][0], tuning.metric)
    elif len(varied) == 2 and len(done) > len(varied[0][1]) * len(varied[1][1]) / 2:
        _draw_map(axes, done, varied, tuning.metric)
    else:
        _draw_ranking(axes, done, [name for name, _ in varied], tuning.metric)
    setting = setting_words(tuning.best_params, [name for name, _ in varied])
    best = f"best: {setting or 'the only setting'}, {tuning.metric} {tuning.best_value:.4g}"
    _entitle(axes, best, is_given)
    return _saved(figure, path)


def _draw_line(axes, trials, name, metric):
    points = sorted((trial.params[name], trial.value) for trial in trials if name in trial.params)
    x, y = zip(*points, strict=True)
    axes.plot(x, y, "o-", color=_COLORS[0], linewidth=1.5)
    axes.plot(trials[0].params.get(name), trials[0].value, "o", color=_COLORS[1], markersize=10, zorder=3)
    if min(x) > 0 and max(x) > 20 * min(x):
        axes.set_xscale("log")
        if len(x) <= 12:
            axes.set_xticks(x, [cell(value) for value in x])
            axes.minorticks_off()
    _finish(axes, None, ylabel=metric, least=0 if min(y) >= 0 else None)
    axes.set_xlabel(name)


def _draw_map(axes, trials, varied, metric):
    """A cell for each pair of values; the best is framed."""
    (row_name, row_values), (column_name, column_values) = varied
    row_cells, column_cells = [cell(v) for v in row_values], [cell(v) for v in column_values]
    values = np.full((len(row_cells), len(column_cells)), np.nan)
    row_places = [row_cells.index(cell(trial.params.get(row_name))) for trial in trials]
    column_places = [column_cells.index(cell(trial.params.get(column_name))) for trial in trials]
    places = list(zip(row_places, column_places, strict=True))
    for place, trial in zip(reversed(places), reversed(trials), strict=True):  # of twins the better one
        values[place] = trial.value
    image = axes.imshow(values, cmap="viridis_r", aspect="auto", origin="lower")
    axes.figure.colorbar(image, ax=axes, label=metric)
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if values.size <= 150:
        for (i, j), value in np.ndenumerate(values):
            text = "failed" if np.isnan(value) else f"{value:.3g}"
            axes.text(j, i, text, ha="center", va="center", color="white" if value > middle else "black")
    i, j = places[0]
    axes.add_patch(_frame(j - 0.5, i - 0.5))
    axes.set(xlabel=column_name, ylabel=row_name)
    axes.set_xticks(range(len(column_cells)), column_cells)
    axes.set_yticks(range(len(row_cells)), row_cells)


def _frame(x, y):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 1, 1, fill=False, edgecolor=_COLORS[1], linewidth=3, clip_on=False, zorder=3)


def _draw_ranking(axes, trials, names, metric, most=20):
    """The best settings from top to bottom."""
    best = trials[:most]
    labels = [setting_words(trial.params, names) for trial in best]
    places = range(len(best))
    axes.plot([trial.value for trial in best], places, "o", color=_COLORS[0])
    axes.set_yticks(places, [shortened(label, 70) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(metric)
    _lighten(axes)


def _distinct(values):
    """Different values, sorted where they can be; settings may hold values that cannot be hashed."""
    found = []
    for value in values:
        if not any(cell(value) == cell(other) for other in found):
            found.append(value)
    return sorted(found) if _are_numbers(found) else found


def _are_numbers(values):
    return all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in values)


def _changing(report):
    """(name, words) of what changed in the model while it learned."""
    candidates = [("terms", "terms"), ("step", "step"), ("margin", margin_word(report.task))]
    return [(name, word) for name, word in candidates if np.unique(report.history[name]).size > 1]


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
