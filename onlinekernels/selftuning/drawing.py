"""Pictures of what a kernel has learned, drawn by matplotlib if it is there."""
import numpy as np

__all__ = ["over_time"]


def over_time(names, history, t, axes, most):
    """Steps from one refresh to the next; dashed lines are alarms. Returns the figure."""
    axes, shares = _axes(axes), history["relevance"]
    for j in np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:most]) if len(shares) else []:
        axes.step(np.append(history["t"], t), np.append(shares[:, j], shares[-1:, j]), where="post", label=names[j])
    for alarm in history["t"][history["alarm"]]:
        axes.axvline(alarm, color="0.5", linewidth=1.0, linestyle="--")
    axes.set_xlabel("example")
    axes.set_ylabel("relevance")
    axes.set_ylim(bottom=0.0)
    if len(shares):
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return axes.figure


def _axes(axes):
    """Axes to draw in: those given, or of a figure that needs no screen."""
    if axes is not None:
        return axes
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "Plots need matplotlib, which is not installed: pip install matplotlib"
        raise ImportError(message) from error
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
