"""Draw docs/images/flow.png: how rows become learning, part by part.

Run ``python docs/images/make_flow.py``; it needs matplotlib.
"""
from pathlib import Path

# Colours of Okabe and Ito, light, which differ for colour-blind readers.
PYTHON, CORE, LOOP = "#DCEBF5", "#FBE5D3", "#D8EFE6"
BOXES = {  # name: (left, bottom, width, height, colour, title, text)
    "rows": (0.2, 6.15, 2.2, 0.95, "white", "rows and targets", "arrays, sparse rows,\nobjects, frames"),
    "learner": (3.0, 6.15, 2.6, 0.95, PYTHON, "base/estimator", "checks everything\nbefore the first write"),
    "plan": (6.2, 6.15, 2.6, 0.95, PYTHON, "base/plan", "components and a rule,\nvalidated, once per fit"),
    "state": (9.4, 6.15, 2.6, 0.95, PYTHON, "base/state", "what is learned;\nsaved and loaded by name"),
    "engine": (0.2, 4.35, 2.2, 0.95, CORE, "_core/engine", "cuts rows into pieces;\nsignals between pieces"),
    "source": (3.0, 4.35, 2.6, 0.95, CORE, "_core/transforms", "a piece of rows,\nscaled as of each row"),
    "dictionary": (6.2, 4.35, 2.6, 0.95, CORE, "_core/dictionary", "all inner products of a piece:\ntwo matrix products"),
    "kernel": (9.4, 4.35, 2.6, 0.95, CORE, "kernel rows", "one row of kernel values,\nin the cache"),
    "evaluate": (0.75, 1.95, 2.5, 1.05, LOOP, "evaluate", "functions: terms, weights,\nmaps, trees, posterior"),
    "decide": (4.85, 1.95, 2.5, 1.05, LOOP, "decide", "rules and forms; formulas of\nlosses. Changes nothing"),
    "carry": (8.95, 1.95, 2.5, 1.05, LOOP, "carry out", "frame, budget, new term.\nCannot fail"),
}
ARROWS = [("rows", "learner"), ("learner", "plan"), ("plan", "state"), ("engine", "source"), ("source", "dictionary"),
          ("dictionary", "kernel"), ("evaluate", "decide"), ("decide", "carry")]


def main():
    """Draw boxes, arrows, and the loop over examples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    figure, axes = plt.subplots(figsize=(11, 6.6))
    axes.set(xlim=(0, 12.2), ylim=(0.35, 7.75))
    axes.axis("off")

    def arrow(start, end, **style):
        axes.add_patch(
            FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=13, color="#444444", lw=1.2, **style)
        )

    frame = FancyBboxPatch(
        (0.35, 1.0), 11.5, 2.5, boxstyle="round,pad=0.1", facecolor="#F4FAF7", edgecolor="#7BBFA5", ls="--"
    )
    axes.add_patch(frame)
    for left, bottom, width, height, colour, title, text in BOXES.values():
        box = FancyBboxPatch(
            (left, bottom), width, height, boxstyle="round,pad=0.06", facecolor=colour, edgecolor="#666666"
        )
        axes.add_patch(box)
        axes.text(left + width / 2, bottom + height - 0.08, title, ha="center", va="top", weight="bold", size=10)
        axes.text(left + width / 2, bottom + height - 0.36, text, ha="center", va="top", size=8.5)
    for a, b in ARROWS:
        (left, bottom, width, height), (left_b, bottom_b, _, height_b) = BOXES[a][:4], BOXES[b][:4]
        arrow((left + width + 0.06, bottom + height / 2), (left_b - 0.06, bottom_b + height_b / 2))
    for start, turn, end in [((10.7, 6.09), 5.92, (1.3, 5.36)), ((10.7, 4.29), 3.85, (2.0, 3.06))]:
        axes.plot([start[0], start[0], end[0], end[0]], [start[1], turn, turn, end[1] + 0.2], color="#444444", lw=1.2)
        arrow((end[0], end[1] + 0.25), end)
    arrow((10.2, 1.89), (2.0, 1.89), connectionstyle="arc3,rad=-0.13")
    axes.text(
        6.1, 1.13, "the next example; a new term patches the rows behind it", ha="center", size=8.5, color="#333333"
    )
    axes.text(0.2, 7.4, "Python: names, checks, sentences", size=11, weight="bold", color="#0072B2")
    axes.text(1.6, 5.55, "_core: compiled, per piece", size=11, weight="bold", color="#D55E00")
    axes.text(2.3, 3.25, "_core: per example, without the interpreter", size=11, weight="bold", color="#009E73")
    figure.savefig(Path(__file__).with_name("flow.png"), dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
