"""I, Figures 2 and 3: foreground of videos by one detector per pixel, while light changes and while a camera shakes."""
import numpy as np

from experiments.experiment import Check, Results, experiment
from experiments.learners import watch
from experiments.panels import Images, Lines
from video import Background, Clip, synthetic_clip

SILK, NORMA, UNTUNED = "SILK", "truncated NORMA", "Background, untuned"
TERMS = 20  # I 4
# How much one frame may change a pixel's function: SILK's penalty, NORMA's step.
RATES = (0.05, 0.1, 0.25, 0.5)
REGULARIZATIONS = (0.0, 0.1, 2.0)
THRESHOLD = 0.5
AXES = ("false positives", "true positives")
START = 40  # the first frame that counts, and that has objects in clips of ours
SHOWN = 0.006  # where the axis of false positives of the paper's Fig. 2 ends
OUTDOOR, BADMINTON = "pets2001_light", "cdnet_badminton_jitter"


def settings(regularizations):
    """(detector, rate, regularization) of all detectors that are tried."""
    tried = [(name, rate, value) for rate in RATES for name in (SILK, NORMA) for value in regularizations]
    return [*tried, (UNTUNED, None, None)]


def scores_of(setting, clip, width):
    """f of each pixel before it learns its colour."""
    name, rate, regularization = setting
    size = clip.frames.shape[1:3]
    if name == UNTUNED:
        return Background(*size).progressive(clip.frames)
    rule = {"rule": "silk", "penalty": rate} if name == SILK else {"rule": "norma", "step": rate}
    made = Background(*size, kernel_width=width, budget=TERMS, regularization=regularization, **rule)
    return made.progressive(clip.frames)


def known_of(clip):
    """Which frames count."""
    return clip.labelled & (np.arange(len(clip.frames)) >= START)


def real_clip(data, name, quick, results):
    """The clip of a data set; None without its file, and a note."""
    arrays = data.load_if_there(name)
    if arrays is None:
        results.notes.append(f"The real clip was left out: there is no {name}.npz in --data.")
        return None
    every = 4 if quick else 1
    frames, mask = (arrays[key][:, ::every, ::every] for key in ("frames", "mask"))
    return Clip(frames, mask != 0, arrays["has_mask"].astype(bool))


def judge(tried, clips, width, figures):
    """Run all settings on all clips.

    Returns
    -------
    found : {setting: array of figures (clip, figure)}
    chosen : settings with the best regularization for each detector and rate, by the first figure
    best : {detector: the best of these} of both rules
    shown : {detector: scores of the first clip} of these and of the one without tuning
    """
    found = {}
    for setting in watch(tried):
        found[setting] = np.array([figures(scores_of(setting, clip, width), clip) for clip in clips])

    def first(setting):
        return found[setting][:, 0].mean()

    pairs = dict.fromkeys(setting[:2] for setting in tried)
    chosen = [max((setting for setting in tried if setting[:2] == pair), key=first) for pair in pairs]
    best = {name: max((setting for setting in chosen if setting[0] == name), key=first) for name in (SILK, NORMA)}
    shown = {name: scores_of(setting, clips[0], width) for name, setting in {**best, UNTUNED: tried[-1]}.items()}
    return found, chosen, best, shown


def curves(shown, clip):
    """The ROC curves of detectors on one clip."""
    known = known_of(clip)
    return {name: roc(scores[known], clip.masks[known]) for name, scores in shown.items()}


def roc(scores, masks, most=400):
    """False and true positive rates over all thresholds, thinned; low scores are foreground.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.ilk_video import roc
    >>> false, true = roc(np.array([0.1, 0.2, 0.9, 0.8]), np.array([True, False, False, True]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    order = np.argsort(scores, axis=None)
    ranked, truth = scores.ravel()[order], masks.ravel()[order]
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # equal scores have one threshold
    true = np.concatenate([[0], np.cumsum(truth)[ends]]) / truth.sum()
    false = np.concatenate([[0], np.cumsum(~truth)[ends]]) / (~truth).sum()
    return (false, true) if most is None or len(false) <= most else _thin(false, true, most)


def _thin(false, true, most):
    """A few of many points of a curve, denser where it is steep."""
    half = np.searchsorted(false, np.geomspace(1e-4, 1.0, most // 2))
    other = np.searchsorted(true, np.linspace(0.0, 1.0, most // 2))
    places = np.unique(np.clip(np.concatenate([[0], half, other, [len(false) - 1]]), 0, len(false) - 1))
    return false[places], true[places]


def area(scores, masks, most=1.0):
    """Area under the ROC curve up to a rate `most` of false positives, as a share of the whole strip.

    It is the mean of the true positive rate over that part of the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.ilk_video import area
    >>> scores, masks = np.array([0.1, 0.5, 0.5, 0.8]), np.array([True, True, False, False])
    >>> area(scores, masks)
    0.875
    >>> area(scores, masks, most=0.25)
    0.625
    """
    false, true = roc(scores, masks, most=None)
    within = false <= most
    false, true = np.append(false[within], most), np.append(true[within], np.interp(most, false, true))
    return float(np.sum(np.diff(false) * (true[1:] + true[:-1])) / 2 / most)


def recovery(scores, masks, change, level=0.05, most=60):
    """Frames after a change until less than a share `level` of the background looks like foreground."""
    for later in range(most):
        frame = change + later
        if frame >= len(scores) or np.mean(scores[frame][~masks[frame]] < THRESHOLD) < level:
            return later
    return most


def strip(title, clip, shown, moments, levels):
    """Frames, their truth, and what both rules take for foreground, a column for each moment; levels are thresholds."""
    rows = {"frame": clip.frames, "truth": clip.masks}
    rows |= {name: shown[name] < levels.get(name, THRESHOLD) for name in (SILK, NORMA)}
    images = [part[moment] for part in rows.values() for moment in moments]
    return Images(f"{title}: foreground", images, len(moments), [f"frame {moment}" for moment in moments], list(rows))


# ---- Figure 2 -------------------------------------------------------------------------------------


@experiment(name="ilk-fig2", paper="I 4, Fig. 2", title="foreground of a video while the light changes",
            claim="With a buffer of 20 per pixel SILK has the better ROC curve than truncated NORMA, and recovers "
            "better after the light was switched off and on.", seeds=5, likes=(OUTDOOR,))
def light(data, quick, seeds):
    size = (24, 32) if quick else (60, 80)
    off, on, end = (60, 110, 140) if quick else (100, 250, 320)
    clips = [synthetic_clip(end, *size, start=START, dark=(off, on), seed=seed) for seed in seeds]
    results = Results(
        notes=[
            f"Area is that under the ROC curve up to a false positive rate of {SHOWN:g}, where the paper's axis ends, "
            "divided by this width: the mean true positive rate there.",
            f"{len(seeds)} synthetic clips of {end} frames; the light is off from frame {off} to {on}. Buffer 20, as "
            "in the paper. Rate is how much one frame may change a pixel's function: SILK's penalty, NORMA's step.",
            f"Each rate has the best of the regularizations {', '.join(f'{value:g}' for value in REGULARIZATIONS)}, by "
            "the area on the same clips.",
            "Recovery is the number of frames until less than 5% of the background looks like foreground, below 0.5.",
        ]
    )
    add_light(results, "synthetic", clips, 20.0, (off, on), [on - 1, on, on + 2, on + 8])
    clip = real_clip(data, OUTDOOR, quick, results)
    if clip is not None:
        add_light(results, "outdoor", [clip], 10.0, (), [100, 180, 240, 290])
    return results


def add_light(results, title, clips, width, changes, moments):
    """Table, pictures and checks of some clips; the light changes at `changes`."""

    def figures(scores, clip):
        """Area up to SHOWN, true positives there, the whole area, and frames until recovered after each change."""
        known = known_of(clip)
        scored, masks = scores[known], clip.masks[known]
        hits = float(np.interp(SHOWN, *roc(scored, masks, most=None)))
        later = [recovery(scores, clip.masks, change) for change in changes]
        return [area(scored, masks, SHOWN), hits, area(scored, masks), *later]

    found, chosen, best, shown = judge(settings(REGULARIZATIONS), clips, width, figures)
    mean = {setting: values.mean(axis=0) for setting, values in found.items()}
    for setting in chosen:
        (name, rate, regularization), (strip_area, hits, whole, *later) = setting, mean[setting]
        off, on = later or (None, None)
        paper = {SILK: "higher", NORMA: "lower"}[name] if setting in best.values() else None
        results.table.append({"clip": title, "detector": name, "rate": rate, "regularization": regularization,
                              f"area to {SHOWN:g}": f"{strip_area:.3f}", "paper": paper,
                              "true positives there": f"{hits:.3f}", "whole area": f"{whole:.4f}", "recovery, off": off,
                              "recovery, on": on})
    clip, known = clips[0], known_of(clips[0])
    by_rate = {name: (RATES, [mean[setting][0] for setting in chosen if setting[0] == name]) for name in (SILK, NORMA)}
    # Where the light is switched, some frames are all wrong; elsewhere the frames show the right end of the curves.
    back = ~clip.masks[known]
    levels = {} if changes else {name: np.quantile(scores[known][back], SHOWN) for name, scores in shown.items()}
    results.panels += [
        Lines(f"{title}: ROC, each at its best", *AXES, curves(shown, clip), left=0.0, right=SHOWN),
        Lines(f"{title}: each rate at its best regularization", "rate", f"area up to {SHOWN:g}", by_rate, markers=True),
        strip(title, clip, shown, moments, levels),
    ]
    silk, norma = mean[best[SILK]], mean[best[NORMA]]
    ahead = found[best[SILK]][:, 0] > found[best[NORMA]][:, 0]
    whole = {name: max(figures[2] for setting, figures in mean.items() if setting[0] == name) for name in best}
    results.checks.append(Check(
        f"{title}: SILK's ROC curve is above NORMA's, each at its best rate and regularization",
        f"area {silk[0]:.3f} against {norma[0]:.3f}, on {ahead.sum()} of {len(ahead)} clips", silk[0] > norma[0]))
    if changes:
        results.checks.append(Check(
            f"{title}: with these SILK recovers better when the light comes on again",
            f"after {silk[4]:.1f} frames against {norma[4]:.1f}", silk[4] < norma[4]))
    results.checks.append(Check(
        f"{title}: so it is over all false positive rates, each at its best there",
        f"{whole[SILK]:.4f} against {whole[NORMA]:.4f}", whole[SILK] > whole[NORMA], ours=True))


# ---- Figure 3 -------------------------------------------------------------------------------------


@experiment(name="ilk-fig3", paper="I 4, Fig. 3", title="foreground of a video whose camera shakes",
            claim="SILK finds the moving objects of a shaking camera's video plausibly, with a buffer of 20 per "
            "pixel.",
            seeds=5, likes=(BADMINTON,))
def shaking(data, quick, seeds):
    results = Results(
        notes=[
            f"{len(seeds)} synthetic clips whose camera shakes by about a pixel. Buffer 20; rate is how much one frame "
            "may change a pixel's function. Each rule is judged at its best rate, on the same clips.",
            "The paper shows frames only, as it has no ground truth for its clip.",
        ]
    )
    size, length = ((24, 32), 90) if quick else ((60, 80), 200)
    clips = [synthetic_clip(length, *size, start=START, jitter=1.0, seed=seed) for seed in seeds]
    add_shaking(results, "synthetic", clips, 30.0, [START + 10, START + 25, START + 45])
    clip = real_clip(data, BADMINTON, quick, results)
    if clip is not None:
        add_shaking(results, "badminton", [clip], 10.0, [100, 220, 340])
        results.notes.append("Badminton: a court filmed by a shaking camera, from the change detection benchmark.")
    return results


def add_shaking(results, title, clips, width, moments):
    """Table, pictures and checks of some clips."""

    def figures(scores, clip):
        return [area(scores[known_of(clip)], clip.masks[known_of(clip)])]

    found, _, best, shown = judge(settings([0.0]), clips, width, figures)
    mean = {setting: float(values.mean()) for setting, values in found.items()}
    results.table += [
        {"clip": title, "detector": setting[0], "rate": setting[1], "area under ROC": round(value, 4),
         "paper": "plausible frames" if setting == best[SILK] else None}
        for setting, value in mean.items()
    ]
    results.panels += [
        Lines(f"{title}: ROC, each at its best rate", *AXES, curves(shown, clips[0]), ("x",), left=1e-4),
        strip(title, clips[0], shown, moments, {}),
    ]
    silk, norma = mean[best[SILK]], mean[best[NORMA]]
    results.checks += [
        Check(f"{title}: SILK finds the foreground", f"area under ROC {silk:.3f}", silk > 0.9),
        Check(f"{title}: SILK is above NORMA", f"{silk:.4f} against {norma:.4f}", silk > norma, ours=True),
    ]
