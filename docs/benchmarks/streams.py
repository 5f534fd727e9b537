"""Real streams, nothing tuned, test then train: error and processor time per example, beside other libraries.

    python docs/benchmarks/streams.py                          # everything that is installed and not yet known; an hour or two
    python docs/benchmarks/streams.py --streams elec2 airfoil --libraries onlinekernels river
    python docs/benchmarks/streams.py --again onlinekernels    # measure ours anew
    python docs/benchmarks/streams.py --show --markdown page.md --picture docs/images/streams.png    # what is known, no runs

The streams are those of ``real_data.py``: the first 20,000 rows in order of streams of classes (5,000 of mnist), the first 6,000 of
numbers, all rows of detectors'. The learners are those of ``stream_learners.py``, with their libraries' defaults but for
the number of trees. Peers that depend on units (neighbours, AutoVW, AutoML) get rows scaled by the rows so far, which is not timed; river's linear models
and neighbours stand behind river's scalers; trees and ours get the rows as they are. A library that is not installed is left out, with a note.

Errors: mistakes in percent; squared error over the variance, from the second row on; one minus the area under the ROC curve. Time is
processor time of the whole process, so threads of the Java runtime count, its compiler and its collector of garbage among them; its
start, imports and data do not. CapyMOA runs row by row from Python, which is about 17 microseconds of each of its rows; river row by row; ours
in chunks of 500, which is what row by row gives. Each pair of stream and learner has a process of its own, and stops after --limit
seconds: then its figures are of fewer rows, and marked. Results are kept in a file outside of the checkout.
"""
import argparse
import json
import os
import subprocess
import sys
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
UNITS = {"classes": "mistakes in %", "numbers": "squared error / variance", "novelty": "1 - area under the ROC curve"}
TITLES = {"classes": "Classes", "numbers": "Numbers", "novelty": "Novelty"}
COLOURS = {"onlinekernels": "#D55E00", "CapyMOA": "#0072B2", "river": "#009E73", "scikit-learn": "#CC79A7", "FLAML": "#777777"}
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
    error, constant = errors(task, np.concatenate(said), y[:done])
    return {"error": error, "constant": constant, "us": 1e6 * spent / done, "rows": done, "of": len(y)}


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
            if options.libraries and learner.library not in options.libraries or options.learners and learner.name not in options.learners:
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
        command = [sys.executable, __file__, "--limit", str(options.limit), "--child", task, stream, learner.library, learner.name]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        lines = process.stdout.strip().splitlines()
        result = json.loads(lines[-1]) if lines else {"failed": process.stderr.strip()[-200:]}
        results = known(options.cache) | {name: result}
        options.cache.parent.mkdir(parents=True, exist_ok=True)
        options.cache.write_text(json.dumps(results, indent=1))
        print(name, result, flush=True)


# ---- Table ------------------------------------------------------------------------------------


def relative(result):
    """Error as a part of the best constant's."""
    return max(result["error"], 1e-6) / result["constant"]


def summary(results, task, learner, streams):
    """(geometric means over streams of relative error and of microseconds), None unless all streams are there."""
    found = [results.get(key(task, stream, learner), {}) for stream in streams]
    if not found or not all("error" in one for one in found):
        return None
    return tuple(float(np.exp(np.mean(np.log([of(one) for one in found])))) for of in (relative, lambda one: one["us"]))


def common(results, task):
    """Streams that the first of ours has."""
    first = LEARNERS[task][0]
    return [stream for stream in STREAMS[task] if "error" in results.get(key(task, stream, first), {})]


def figure(value, task):
    return f"{value:.2f}" if task == "classes" and value < 1 else f"{value:.1f}" if task == "classes" else f"{value:.2g}".lstrip("0")


def cell(result, task):
    if result is None or "skipped" in result:
        return ""
    if "failed" in result:
        return "failed"
    mark = "†" if result["rows"] < result["of"] else ""
    return f"{figure(result['error'], task)}{mark} ({result['us']:.0f})"


def table(results, task):
    """Lines of Markdown: a row for each learner that has run, a column for each stream."""
    streams = common(results, task)
    yield f"### {TITLES[task]}: {UNITS[task]} (microseconds per example)"
    yield ""
    yield "| | mean* | µs* | " + " | ".join(stream.replace("_", " ") for stream in streams) + " |"
    yield "| --- " * (len(streams) + 3) + "|"
    for learner in LEARNERS[task]:
        found = {stream: results.get(key(task, stream, learner)) for stream in streams}
        if not any(one and "error" in one for one in found.values()):
            continue
        best = summary(results, task, learner, streams)
        mean, cost = ("", "") if best is None else (f"{best[0]:.3f}", f"{best[1]:.0f}")
        name = f"`{learner.name}`" if learner.library == "onlinekernels" else f"{learner.library}: {learner.name}"
        yield f"| {name} | {mean} | {cost} | " + " | ".join(cell(one, task) for one in found.values()) + " |"
    yield ""


def notes(results):
    yield "\\* Geometric means over the streams; errors relative to the best constant. † Fewer rows: it was stopped for its time."
    missing = sorted({learner.library for task in LEARNERS for learner in LEARNERS[task]
                      if all("error" not in results.get(key(task, stream, learner), {}) for stream in STREAMS[task])})
    for library in missing:
        yield f"Some of {library} did not run here."
    fewer = [f"{name.split('/', 1)[1]} {one['rows']} of {one['of']}" for name, one in results.items() if one.get("rows", 0) < one.get("of", 0)]
    if fewer:
        yield "Fewer rows: " + "; ".join(sorted(fewer)) + "."


def markdown(results):
    lines = [line for task in LEARNERS for line in table(results, task)]
    return "\n".join([*lines, *notes(results)]) + "\n"


# ---- Picture ----------------------------------------------------------------------------------


def draw(results, path):
    """Error against cost, a panel for each task."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(13, 4.8), dpi=110, layout="constrained")
    for axes, task in zip(panels, LEARNERS):
        streams = common(results, task)
        points = [(learner, summary(results, task, learner, streams)) for learner in LEARNERS[task]]
        points = [(learner, point) for learner, point in points if point is not None]
        for learner, (error, cost) in points:
            axes.plot(cost, error, MARKERS[learner.library], color=COLOURS[learner.library], markersize=8 if learner.library == "onlinekernels" else 6)
        own = sorted((point[1], point[0]) for learner, point in points if learner.name.startswith("OnlineKernel"))
        axes.plot(*zip(*own), color=COLOURS["onlinekernels"], linewidth=1.2, alpha=0.5, zorder=0)
        annotate(axes, points)
        axes.set(xscale="log", yscale="log", xlabel="microseconds of processor time per example")
        axes.set_title(f"{TITLES[task]}, {len(streams)} streams", fontsize=11)
        axes.grid(color="0.93", which="major")
        axes.spines[["top", "right"]].set_visible(False)
        plain_ticks(axes)
    panels[0].set_ylabel("error, as a part of the best constant's")
    handles = [plt.Line2D([], [], linestyle="", marker=MARKERS[name], color=COLOURS[name], label=name) for name in COLOURS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)
    figure.savefig(path)


def plain_ticks(axes):
    """Numbers as people write them, a handful."""
    from matplotlib import ticker

    axes.margins(x=0.18, y=0.12)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()


def annotate(axes, points):
    """A name beside each point, moved away from names that are already there."""
    for learner, (error, cost) in points:
        name = learner.name.replace("OnlineKernel", "OnlineKernel\u200b")
        axes.annotate(name, (cost, error), xytext=(5, 4), textcoords="offset points", fontsize=7.5, color=COLOURS[learner.library])


# ---- Command line -----------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--streams", nargs="+", default=[])
    parser.add_argument("--libraries", nargs="+", default=[], help=", ".join(COLOURS))
    parser.add_argument("--learners", nargs="+", default=[], help="their names in the tables")
    parser.add_argument("--again", nargs="+", default=[], metavar="LIBRARY", help="measure what is known of these once more")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor time for a stream and a learner")
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
    text = markdown(known(options.cache))
    print(text)
    if options.markdown:
        options.markdown.write_text(text)
    if options.picture:
        draw(known(options.cache), options.picture)
    return None


if __name__ == "__main__":
    main()
