"""Real streams, nothing tuned, test then train: error and processor time per example, beside other libraries.

    python docs/benchmarks/streams.py                     # all that is installed and not yet known; an hour or two
    python docs/benchmarks/streams.py --streams elec2 airfoil --libraries onlinekernels river
    python docs/benchmarks/streams.py --again onlinekernels    # measure ours anew
    python docs/benchmarks/streams.py --show --markdown docs/reference/real-streams.md --picture docs/images/streams.png

The streams are those of ``real_data.py``: the first 20,000 rows in order of streams of classes (5,000 of mnist), the
first 6,000 of numbers, all rows of detectors'. The learners are those of ``stream_learners.py``, with their libraries'
defaults but for the number of trees. Peers that depend on units (neighbours, AutoVW, AutoML) get rows scaled by the
rows so far, which is not timed, SAM-KNN and CapyMOA's half-space trees both ways; river's linear models and neighbours
stand behind river's scalers; trees and ours get the rows as they are. A forest's new tree says 0 before it has
learned, so forests of numbers get targets scaled, too. A library that is not installed is left out, with a note.
``--show`` runs nothing, and shows what is known.

Errors: mistakes in percent; squared error over the variance, from the second row on; one minus the area under the ROC
curve. Time is processor time of the whole process, so threads of the Java runtime count, its compiler and its
collector of garbage among them; its start, imports and data do not. CapyMOA runs row by row from Python, which is
about 17 microseconds of each of its rows; river row by row; ours in chunks of 500, which gives the errors of row by
row in less time: the default also runs row by row. Each pair of stream and learner has a process of its own, and stops
after --limit seconds: then its figures are of fewer rows, marked, and compared with ours of as many rows. Results,
times of each stream among them, are kept in a file outside of the checkout. Errors do not depend on what else the
machine does, microseconds do: on a quiet one, measure all of them anew before you compare microseconds.
"""

import argparse
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
import real_data  # noqa: E402
from stream_learners import LEARNERS, NotForThis, prepared  # noqa: E402

STREAMS = {"classes": real_data.CLASSES, "numbers": real_data.NUMBERS, "novelty": real_data.NOVELTY}
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "onlinekernels" / "streams.json"
CHUNK = 500
WORST = 10.0  # times the error of a constant: what diverges counts as no more
UNITS = {
    "classes": "Mistakes in %",
    "numbers": "Squared error over the variance",
    "novelty": "One minus the area under the ROC curve",
}
TITLES = {"classes": "Classes", "numbers": "Numbers", "novelty": "Novelty"}
COLOURS = {
    "onlinekernels": "#D55E00",
    "CapyMOA": "#0072B2",
    "river": "#009E73",
    "scikit-learn": "#CC79A7",
    "FLAML": "#777777",
}
MARKERS = {"onlinekernels": "o", "CapyMOA": "s", "river": "^", "scikit-learn": "D", "FLAML": "v"}


# ---- One stream, one learner ------------------------------------------------------------------


def measure(task, stream, learner, limit):
    """A dict of error, microseconds and rows."""
    X, y = real_data.load(task, stream)
    step = prepared(learner, X, y)
    said, done, start = [], 0, time.process_time()
    while done < len(y) and time.process_time() - start < limit:
        said.append(np.asarray(step(slice(done, done + CHUNK))))
        done = min(done + CHUNK, len(y))
    spent = time.process_time() - start
    said = np.concatenate(said)
    error, constant = errors(task, said, y[:done])
    result = {"error": error, "constant": constant, "us": 1e6 * spent / done, "rows": done, "of": len(y)}
    if task != "novelty":  # what is compared with a peer that is stopped there; areas would take long
        result["course"] = {end: errors(task, said[:end], y[:end])[0] for end in range(CHUNK, done, CHUNK)}
    return result


def errors(task, said, y):
    """What was said is wrong by this much, and what would be the best constant."""
    if task == "classes":
        return 100 * float(np.mean(said != y)), 100 * float(1 - np.unique(y, return_counts=True)[1].max() / len(y))
    if task == "numbers":
        said = np.where(np.isfinite(said.astype(float)), said.astype(float), 0.0)
        return float(np.mean((said - y)[1:] ** 2) / y.var()), 1.0
    if not 0 < y.sum() < len(y):
        raise NotForThis("no odd rows in the time there was")
    return float(1 - real_data.area(said.astype(float), y)), 0.5


def find(task, library, name):
    return next(learner for learner in LEARNERS[task] if (learner.library, learner.name) == (library, name))


def child(task, stream, library, name, limit):
    """What `main` reads: a line of JSON."""
    try:
        result = measure(task, stream, find(task, library, name), limit)
    except (ImportError, FileNotFoundError, NotForThis) as error:
        result = {"skipped": f"{type(error).__name__}: {error}"}
    except Exception as error:  # a peer that fails on a stream is a result
        result = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
    print("\n" + json.dumps(result))


# ---- All of them ------------------------------------------------------------------------------


def key(task, stream, learner):
    return f"{task}/{stream}/{learner.library}/{learner.name}"


def pairs(options):
    for task in options.tasks:
        for learner in LEARNERS[task]:
            if (options.libraries and learner.library not in options.libraries) or (
                options.learners and learner.name not in options.learners
            ):
                continue
            for stream in STREAMS[task]:
                if not options.streams or stream in options.streams:
                    yield task, stream, learner


def known(path):
    return json.loads(path.read_text()) if path.exists() else {}


def run(options):
    """Measure what is not known, each in a process, and keep it at once."""
    for task, stream, learner in pairs(options):
        results, name = known(options.cache), key(task, stream, learner)
        if name in results and learner.library not in options.again and "skipped" not in results[name]:
            continue
        pair = [task, stream, learner.library, learner.name]
        command = [sys.executable, __file__, "--limit", str(options.limit), "--child", *pair]
        process = subprocess.run(command, capture_output=True, text=True, errors="replace")
        lines = process.stdout.strip().splitlines()
        result = json.loads(lines[-1]) if lines else {"failed": process.stderr.strip()[-200:]}
        results = known(options.cache) | {name: result}
        options.cache.parent.mkdir(parents=True, exist_ok=True)
        options.cache.write_text(json.dumps(results, indent=1))
        print(name, result, flush=True)


# ---- Tables -----------------------------------------------------------------------------------


def found(results, task, learner):
    """{stream: result} where the learner has run."""
    every = {stream: results.get(key(task, stream, learner), {}) for stream in STREAMS[task]}
    return {stream: one for stream, one in every.items() if "error" in one}


def shown(results, task):
    """{learner: {stream: result}} of those that ran, and the streams that all have who ran on most of them."""
    ran = {learner: found(results, task, learner) for learner in LEARNERS[task]}
    ran = {learner: some for learner, some in ran.items() if some}
    most = max(map(len, ran.values()), default=0)
    counted = [some for some in ran.values() if 3 * len(some) >= 2 * most]
    return ran, [stream for stream in STREAMS[task] if counted and all(stream in some for some in counted)]


def means(some, streams):
    """Geometric means over streams of error over the best constant's, and of microseconds.

    None if a stream is missing, or more than a third were stopped early: first rows are harder, it would not be fair.
    """
    if not all(stream in some for stream in streams):
        return None
    if 3 * sum(some[stream]["rows"] < some[stream]["of"] for stream in streams) > len(streams):
        return None
    return tuple(
        float(np.exp(np.mean(np.log([of(some[stream]) for stream in streams]))))
        for of in (lambda one: min(max(one["error"], 1e-6) / one["constant"], WORST), lambda one: one["us"])
    )


def titled(learner):
    return f"`{learner.name}`" if learner.library == "onlinekernels" else f"{learner.library}: {learner.name}"


def figure(value, task):
    if task == "classes":
        return f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    if value > 1000:
        return "diverged"
    return f"{value:.2g}" if value >= 1 else f"{value:.3f}".lstrip("0") if value >= 0.01 else f"{value:.4f}".lstrip("0")


def cell(result, task):
    return "" if result is None else figure(result["error"], task) + ("†" if result["rows"] < result["of"] else "")


def tables(results, task):
    """Lines of Markdown: a row for each learner that has a mean, a column for each stream; who was ahead; who else
    ran."""
    ran, streams = shown(results, task)
    if not streams:
        return
    columns = [stream for stream in STREAMS[task] if sum(stream in some for some in ran.values()) > 1]
    names = [stream.replace("_", " ") + ("‡" if stream in real_data.HELD_OUT else "") for stream in columns]
    yield f"## {TITLES[task]}"
    yield ""
    yield f"{UNITS[task]}:"
    yield ""
    yield "| | mean | µs | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 3) + "|"
    for learner, (error, cost) in placed(results, task).items():
        cells = [titled(learner), f"{error:.3f}", f"{cost:.0f}"]
        yield f"| {' | '.join(cells + [cell(ran[learner].get(name), task) for name in columns])} |"
    yield ""
    better = list(ahead(results, task))
    rest = [learner for learner in ran if learner not in placed(results, task) and learner.library != "onlinekernels"]
    if better:
        yield from filled(f"Ahead of ours: {'; '.join(better)}.")
    if rest:
        parts = [(titled(learner), times_ours(results, task, learner)) for learner in rest]
        said = [f"{name} {times[0]:.2g} ({times[1]})" if times else name for name, times in parts]
        yield from filled(
            f"Without a mean, but errors over ours on the same rows (of so many streams): {'; '.join(said)}."
        )
    if len(streams) < len(columns):
        yield from filled(f"Means are over {', '.join(stream.replace('_', ' ') for stream in streams)}.")


def filled(text):
    """A paragraph."""
    yield from textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)
    yield ""


def default(results, task):
    """{stream: result} of our default."""
    own = (one for one in LEARNERS[task] if one.name.startswith("OnlineKernel") and "," not in one.name)
    return found(results, task, next(own))


def beside(ours, one):
    """The error of ours on as many rows as the other has had, or None if that is not known."""
    if one["rows"] == ours["rows"]:
        return ours["error"]
    return ours.get("course", {}).get(str(one["rows"]))


def ahead(results, task):
    """Who of the others made fewer errors than our default on the rows that both have had, and where."""
    ran, _ = shown(results, task)
    for stream, ours in default(results, task).items():
        for learner, some in ran.items():
            one = some.get(stream)
            same = None if one is None or learner.library == "onlinekernels" else beside(ours, one)
            if same is not None and one["error"] < same:
                place = stream.replace("_", " ") + ("" if one["rows"] == one["of"] else "†")
                yield f"{titled(learner)} on {place} ({figure(one['error'], task)} to {figure(same, task)})"


def times_ours(results, task, learner):
    """Errors of a peer over those of our default on the rows that both have had: geometric mean, and of how many
    streams."""
    ours, some = default(results, task), found(results, task, learner)
    both = [(one, beside(ours[stream], one)) for stream, one in some.items() if stream in ours]
    logs = [np.log(max(one["error"], 1e-6) / max(same, 1e-6)) for one, same in both if same is not None]
    return (float(np.exp(np.mean(logs))), len(logs)) if logs else None


def page(results, picture):
    yield "# Real streams, beside other libraries"
    yield ""
    yield from filled(
        "Here you can look up what to expect of a stream learner before you choose one: error and processor time per "
        "example, test then train, nothing tuned. Peers run row by row, but for scikit-learn's, which are fitted again "
        "every 1,000 rows to the last 5,000. Ours run in chunks of 500, which gives the same errors in less time; *row "
        "by row* says how much less. The script that writes this page also measures a single stream; its docstring "
        "says how."
    )
    yield "```console"
    yield "$ python docs/benchmarks/streams.py --streams elec2 --libraries onlinekernels river"
    yield "```"
    yield ""
    if picture:
        yield "![Error against cost, a panel for each task](../images/streams.png)"
        yield ""
    yield from filled(
        "*Mean* is the geometric mean over the streams of the error as a part of the best constant's (the most "
        "frequent class, the mean, chance), at most 10 each; *µs* that of microseconds per example. † Stopped after a "
        "minute: fewer rows, the first and harder ones. Who was stopped on more than a third of the streams, or "
        "ran on few, has no mean and no row. ‡ No member and no constant of ours was chosen on it; on most of the "
        "others they were, so expect a little less elsewhere."
    )
    for task in LEARNERS:
        yield from tables(results, task)
    for word in ("failed", "skipped"):
        those = {}
        for name, one in results.items():
            if word in one:
                _, stream, library, learner = name.split("/")
                those.setdefault(f"{library}: {learner} ({one[word].split(': ')[-1]})", []).append(
                    stream.replace("_", " ")
                )
        if those:
            yield from filled(
                f"{word.capitalize()}: "
                + "; ".join(f"{who} on {', '.join(where)}" for who, where in those.items())
                + "."
            )


def markdown(results, picture=None):
    return "\n".join(page(results, picture)).rstrip() + "\n"


# ---- Picture ----------------------------------------------------------------------------------


def draw(results, path):
    """Error against cost, a panel for each task."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    picture, panels = plt.subplots(1, 3, figsize=(14, 5.6), dpi=110, layout="constrained")
    for axes, task in zip(panels, LEARNERS):
        points, streams = placed(results, task), shown(results, task)[1]
        axes.set(xscale="log", yscale="log", xlabel="microseconds of processor time per example")
        for learner, (error, cost) in points.items():
            ours = learner.library == "onlinekernels"
            axes.plot(
                cost,
                error,
                MARKERS[learner.library],
                color=COLOURS[learner.library],
                markerfacecolor="white" if "row by row" in learner.name else None,
                markersize=9 if ours else 7,
                zorder=3 if ours else 2,
            )
        own = sorted(
            (cost, error)
            for learner, (error, cost) in points.items()
            if learner.name.startswith("OnlineKernel") and "row by row" not in learner.name
        )
        if own:
            axes.plot(*zip(*own), color=COLOURS["onlinekernels"], linewidth=1.5, alpha=0.4, zorder=1)
        axes.set_title(f"{TITLES[task]}, {len(streams)} streams", fontsize=11)
        axes.grid(color="0.93", which="major")
        axes.spines[["top", "right"]].set_visible(False)
        plain_ticks(axes)
    panels[0].set_ylabel("error, as a part of the best constant's (geometric mean)")
    present = {learner.library for task in LEARNERS for learner in placed(results, task)}
    handles = [
        plt.Line2D([], [], linestyle="", marker=MARKERS[name], color=COLOURS[name], label=name)
        for name in COLOURS
        if name in present
    ]
    picture.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)
    picture.draw_without_rendering()
    for axes, task in zip(panels, LEARNERS):
        name_points(axes, placed(results, task))
    picture.savefig(path)


def placed(results, task):
    """{learner: (error, cost)} of those that have a mean."""
    ran, streams = shown(results, task)
    points = {learner: means(some, streams) for learner, some in ran.items()} if streams else {}
    return {learner: point for learner, point in points.items() if point is not None}


def plain_ticks(axes):
    """Numbers as people write them, a handful."""
    from matplotlib import ticker

    axes.margins(x=0.22, y=0.1)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(ticker.NullLocator())


def name_points(axes, points):
    """A name beside each point, where it covers no other point and no other name, as far as that can be had."""
    here = {learner: axes.transData.transform((cost, error)) for learner, (error, cost) in points.items()}
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in here.values()]
    frame = axes.get_window_extent()
    for learner, (x, y) in sorted(here.items(), key=lambda item: item[0].library != "onlinekernels"):
        text = axes.text(0, 0, short(learner), fontsize=9, color=COLOURS[learner.library], transform=None)
        box = text.get_window_extent()
        width, height = box.width, box.height
        spots = [
            (x + 12, y - height / 2),
            (x - 12 - width, y - height / 2),
            (x - width / 2, y + 10),
            (x - width / 2, y - 10 - height),
            (x + 8, y + 6),
            (x + 8, y - 6 - height),
            (x - 8 - width, y + 6),
            (x - 8 - width, y - 6 - height),
        ]
        left, bottom = min(spots, key=lambda spot: covered((*spot, spot[0] + width, spot[1] + height), taken, frame))
        taken.append((left, bottom, left + width, bottom + height))
        text.set_position((left, bottom))
        text.set_transform(None)


def covered(box, taken, frame):
    """How much of other boxes, and of the outside, a box covers."""

    def overlap(other):
        return max(0.0, min(box[2], other[2]) - max(box[0], other[0])) * max(
            0.0, min(box[3], other[3]) - max(box[1], other[1])
        )

    outside = (
        max(0.0, frame.x0 - box[0])
        + max(0.0, box[2] - frame.x1)
        + max(0.0, frame.y0 - box[1])
        + max(0.0, box[3] - frame.y1)
    )
    return sum(map(overlap, taken)) + 100 * outside


def short(learner):
    if learner.name.startswith("OnlineKernel"):
        return learner.name.split(", ")[1] if ", " in learner.name else learner.name
    return learner.name


# ---- Command line -----------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--streams", nargs="+", default=[])
    parser.add_argument("--libraries", nargs="+", default=[], help=", ".join(COLOURS))
    parser.add_argument("--learners", nargs="+", default=[], help="their names in the tables")
    parser.add_argument(
        "--again", nargs="+", default=[], metavar="LIBRARY", help="measure what is known of these once more"
    )
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of processor time for a stream and a learner"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="where results are kept")
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--markdown", type=Path, help="write the tables there as well")
    parser.add_argument("--picture", type=Path, help="draw error against cost; needs matplotlib")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child, options.limit)
    if not options.show:
        run(options)
    text = markdown(known(options.cache), options.picture)
    print(text)
    if options.markdown:
        before = options.markdown.read_text() if options.markdown.exists() else ""
        begin = before.find("\n## Peers that are refitted")  # which refitted.py measures
        options.markdown.write_text(text + (before[begin:] if begin >= 0 else ""))
    if options.picture:
        draw(known(options.cache), options.picture)
    return None


if __name__ == "__main__":
    main()
