"""Draw docs/images/novelty.png, a novelty detector on a pump and its valves, and print the rates of
docs/howto/novelty.md.

Run ``python docs/images/make_novelty.py``. It needs matplotlib and a file of data, ``data/skab.npz``, in the folder
that the environment variable ONLINEKERNELS_SHARED names, or in ``shared`` beside the checkout.
"""
import os
from pathlib import Path

import numpy as np

from onlinekernels import NORMA, Gaussian, NuNovelty

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("ONLINEKERNELS_SHARED", HERE.parents[2] / "shared"))
PATH = SHARED / "data" / "skab.npz"

NU, WIDTH, STEP, REGULARIZATION = 0.05, 3.0, 0.02, 0.01
HEALTHY = 400  # seconds at the start of each run that are learned
RUNS = [f"valve1__{i}" for i in range(16)] + [f"valve2__{i}" for i in range(4)]
SHOWN = slice(8, 12)  # runs in the picture


def rig():
    """Runs of the rig with faults, [(sensors, labelled anomaly?)], in time order; and a long run without any."""
    with np.load(PATH, allow_pickle=False) as file:
        runs = [(file[f"{run}::X"].astype(float), file[f"{run}::anomaly"] > 0) for run in RUNS]
        return runs, file["anomaly-free__anomaly-free::X"].astype(float)


def detector(nu=NU, width=WIDTH):
    return NORMA(NuNovelty(nu, margin_step=None), Gaussian(width), step=STEP, regularization=REGULARIZATION, scale=True)


def learn(model, X):
    """Test, then train: scores f(x), the threshold rho that each was compared with, and alerts.

    `progressive` gives the scores. With a constant step rho follows from the alerts: it falls by step * (1 - nu)
    with each, and rises by step * nu otherwise.
    """
    rho = getattr(model, "offset_", model.loss.margin)
    scores = model.progressive(X)
    thresholds = np.empty(len(X))
    for t, score in enumerate(scores):
        thresholds[t] = rho
        rho -= model.step * ((score < rho) - model.loss.nu)
    assert np.isclose(rho, model.offset_)
    return scores, thresholds, scores < thresholds


def watch(model, X):
    """Scores, threshold and alerts of a detector that does not learn."""
    scores = model.score_samples(X)
    return scores, np.full(len(X), model.offset_), scores < model.offset_


def joined(*parts):
    return [np.concatenate(part) for part in zip(*parts)]


# ---- Four ways to use it: for each run (scores, thresholds, alerts) ---------------------------


def learns_all(runs, free, **parameters):
    """One detector that learns every second, faults included."""
    model = detector(**parameters)
    return [learn(model, X) for X, _ in runs]


def learns_healthy(runs, free, **parameters):
    """One detector that learns the first seconds of each run, then watches."""
    model = detector(**parameters)
    return [joined(learn(model, X[:HEALTHY]), watch(model, X[HEALTHY:])) for X, _ in runs]


def starts_anew(runs, free):
    """A new detector for each run."""
    return [learns_healthy([run], free)[0] for run in runs]


def learned_before(runs, free):
    """A detector that learned the long run, and watches ever after."""
    model = detector().fit(free)
    return [watch(model, X) for X, _ in runs]


WAYS = {
    "learns everything": learns_all,
    "learned a month before, then watches": learned_before,
    "new for each run: learns 400 s, watches": starts_anew,
    "learns 400 s of each run, watches": learns_healthy,
}


def rates(runs, results):
    """Alert rates in the learned seconds, and after them inside and outside of faults; precision."""
    early = np.concatenate([alerts[:HEALTHY] for _, _, alerts in results])
    later = np.concatenate([alerts[HEALTHY:] for _, _, alerts in results])
    fault = np.concatenate([fault[HEALTHY:] for _, fault in runs])
    precision = fault[later].mean() if later.any() else np.nan
    return early.mean(), later[fault].mean(), later[~fault].mean(), precision


def report(runs, free):
    seconds, later = sum(len(X) for X, _ in runs), np.concatenate([fault[HEALTHY:] for _, fault in runs])
    print(f"{seconds} seconds; after the first {HEALTHY} of each run, {later.mean():.0%} are labelled")
    head = f"{'first 400 s':>12} {'in faults':>10} {'outside':>8} {'precision':>10}"
    line = "{:12.1%} {:10.1%} {:8.1%} {:10.0%}".format
    print(f"\n{f'nu {NU}, width {WIDTH}':40} {head}")
    for name, way in WAYS.items():
        print(f"{name:40} {line(*rates(runs, way(runs, free)))}")
    print(f"{'the last way without its first 5 runs':40} {line(*rates(runs[5:], learns_healthy(runs, free)[5:]))}")
    everything = joined(*learns_all(runs, free))[2]
    print(f"alert rate of the detector that learns everything: {everything.mean():.2%}")
    blocks = [block.mean() for block in np.array_split(everything, 22)]
    print(f"  in blocks of about 1000 seconds: {min(blocks):.1%} to {max(blocks):.1%}")
    print(f"\n{'learns 400 s of each run, watches':40} {head} {'rho / step':>11}")
    for nu, width in [(NU, width) for width in (0.5, 1.0, 2.0, 3.0, 4.0, 8.0)] + [(0.02, WIDTH), (0.1, WIDTH)]:
        results = learns_healthy(runs, free, nu=nu, width=width)
        print(f"{f'nu {nu}, width {width}':40} {line(*rates(runs, results))} {results[-1][1][-1] / STEP:11.1f}")


def draw(runs, free, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(3, 1, figsize=(10, 8.4), dpi=100, layout="constrained", height_ratios=[1, 1, 0.9])
    ways = [("It learns all the time: the fault becomes ordinary", learns_all),
            (f"It learns the first {HEALTHY} seconds of each run (grey bar), then it watches", learns_healthy)]
    for axis, (title, way) in zip(axes, ways):
        scores, thresholds, alerts = joined(*way(runs, free)[SHOWN])
        time = np.arange(len(scores)) / 60
        axis.plot(time, scores, color="tab:blue", linewidth=0.5, label="score f(x)")
        axis.plot(time, thresholds, color="black", linewidth=1.4, label=r"threshold $\rho$")
        top = np.quantile(scores, 0.999) * 1.12
        axis.set_ylim(-0.13 * top, top)
        axis.plot(time[alerts], np.full(alerts.sum(), -0.065 * top), "|", color="tab:red", markersize=9,
                  markeredgewidth=0.5, label="alert")
        axis.set_title(title, loc="left", fontsize=11)
        axis.set_ylabel("score")
        begin = 0
        for number, (X, fault) in enumerate(runs[SHOWN]):
            inside = begin + np.flatnonzero(fault)
            axis.axvspan(inside[0] / 60, inside[-1] / 60, color="tab:orange", alpha=0.22, linewidth=0,
                         label=None if number else "labelled fault")
            if begin:
                axis.axvline(begin / 60, color="0.6", linewidth=1.0)
            if way is learns_healthy:
                axis.plot([begin / 60, (begin + HEALTHY) / 60], [top * 0.985] * 2, color="0.55", linewidth=5,
                          solid_capstyle="butt")
            begin += len(X)
        axis.set_xlim(0, begin / 60)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=4, fontsize=9, frameon=False)
    axes[1].set_xlabel(f"minutes of the runs {SHOWN.start + 1} to {SHOWN.stop}, end to end")

    at, last = np.arange(1, len(runs) + 1), axes[2]
    results = learns_healthy(runs, free)
    each = np.array([rates([run], [result]) for run, result in zip(runs, results)])
    last.bar(at - 0.2, each[:, 1], 0.4, color="tab:orange", label="in the fault")
    last.bar(at + 0.2, each[:, 2], 0.4, color="tab:blue", label="outside")
    last.axhline(NU, color="black", linewidth=1.0, linestyle="--", label=r"$\nu$")
    last.set_title("Alert rate of the second detector while it watches, run by run", loc="left", fontsize=11)
    last.set_xticks(at)
    last.set_xlim(0.4, len(runs) + 0.6)
    last.set_ylim(0, 1)
    last.set_xlabel("run")
    last.set_ylabel("alert rate")
    last.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, fontsize=9, frameon=False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main():
    if not PATH.exists():
        raise SystemExit(f"There is no {PATH}. Set ONLINEKERNELS_SHARED to the folder that holds data/skab.npz.")
    runs, free = rig()
    report(runs, free)
    draw(runs, free, HERE / "novelty.png")


if __name__ == "__main__":
    main()
