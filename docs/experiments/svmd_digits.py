"""V, Figures 3 to 6: error and step size on one pass through USPS: two classes, ten, and in the order of a counter."""
import numpy as np

from experiments.experiment import Check, Results, experiment
from experiments.learners import UNTUNED, averages, digits_of, mistaken, rate, untuned, watch
from experiments.panels import Lines
from onlinekernels import NORMA, SILK, SVMD, Decaying, Gaussian, MulticlassHinge, NuHinge, NuMulticlassHinge
from onlinekernels.streams import counting_sequence

ADAPTED, SINGLE, SCHEDULED = "SVMD", "SVMD, memory 0", "scheduled step"
KERNEL_WIDTH = 8.0  # V 6.1
TERMS = 512


def scheduled(loss, delay):
    """V's control for the nu-trick: the online SVM whose steps follow the schedule (59), with a first step of 1.

    The margin moves as V (55)-(56) say, with dl/deps = 1{margin error} - nu for the printed sign. By K's rule it may
    become negative.
    """
    return NORMA(loss.set_params(margin_step="log"), Gaussian(KERNEL_WIDTH), step=Decaying(1.0, delay),
                 regularization=1.0, budget=TERMS)


def compared(models, streams, task, classes, paper):
    """Run fresh learners on each stream: their errors, and results with a table, panels, and the check of their order.

    ``models(n)`` has learners by name for n examples; `task` is for the one without tuning; `paper` is what the paper
    says about each. Curves are those of the first stream, figures are means over all.
    """
    wrong, steps = {}, {}
    for X, y in watch(streams):
        for name, model in {**models(len(y)), UNTUNED: untuned(task)}.items():
            scores, history = model.progressive(X, y, classes=classes, return_steps=True)
            wrong.setdefault(name, []).append(mistaken(model.classes_, scores, y))
            steps.setdefault(name, history)
    error = {name: float(np.mean(runs)) for name, runs in wrong.items()}
    average = {name: averages(runs[0]) for name, runs in wrong.items()}
    table = [
        {"learner": name, "error": rate(error[name]), "paper": paper.get(name), "last step": steps[name][-1]}
        for name in error
    ]
    panels = [
        Lines("average error so far", "examples", "error", average, logarithmic=("x",), percent=True),
        Lines(
            "step size", "examples", "step", {name: steps[name] for name in (ADAPTED, SINGLE, SCHEDULED)}, ("x", "y")
        ),
    ]
    found = f"{rate(error[ADAPTED])}, {rate(error[SINGLE])}, {rate(error[SCHEDULED])}"
    order = error[ADAPTED] < error[SINGLE] < error[SCHEDULED]
    check = Check("SVMD errs less than with memory 0, and that less than the schedule", found, order)
    return error, Results(table=table, panels=panels, checks=[check])


# ---- Figure 3 -------------------------------------------------------------------------------------

EARLY, START = 400, 20  # how many examples are the beginning, and where it is judged


def two_class_models():
    """V 6.1.1; with the nu-trick the regularization is 1. The first margin is not in the paper."""
    loss = NuHinge(nu=0.05, margin=1.0, margin_step=None)
    shared = dict(loss=loss, kernel=Gaussian(KERNEL_WIDTH), regularization=1.0, budget=TERMS)
    return {ADAPTED: SVMD(step=1.0, meta_step=1.0, memory=0.95, **shared),
            SINGLE: SVMD(step=1.0, meta_step=1.0, memory=0.0, **shared),
            SCHEDULED: scheduled(NuHinge(nu=0.05, margin=1.0), delay=10)}


@experiment(name="svmd-fig3", paper="V 6.1.1, Fig. 3", title="two classes of USPS digits with an adapted step",
            claim="SVMD makes about half as many errors as with a scheduled step, which it overtakes after about 20 "
            "examples. Adapting with memory 0 is the fastest at first and in between at the end.", needs=("usps",))
def two_classes(data, quick, seeds):
    X, digits = digits_of(data)
    y = np.where(digits < 5, -1, 1)
    paper = {SCHEDULED: "about twice SVMD", SINGLE: "in between"}
    error, results = compared(lambda n: two_class_models(), [(X, y)], "binary", [-1, 1], paper)
    ratio = error[ADAPTED] / error[SCHEDULED]
    orders = 10 if quick else 100
    early = beginnings(X, y, orders)
    title = f"the beginning, mean of {orders} orders"
    results.panels.insert(1, Lines(title, "examples", "average error", early, ("x",), percent=True))
    behind = np.flatnonzero(early[ADAPTED] >= early[SCHEDULED])
    overtakes = int(behind[-1]) + 2 if len(behind) else 1
    at_start = {name: curve[START - 1] for name, curve in early.items()}
    results.checks += [
        Check("SVMD makes about half the errors of the schedule", f"{ratio:.2f} times as many", 0.4 <= ratio <= 0.6),
        Check("SVMD is slower at first, and overtakes the schedule after about 20 examples",
              f"{at_start[ADAPTED]:.1%} against {at_start[SCHEDULED]:.1%} after {START}, ahead from {overtakes} on",
              at_start[ADAPTED] > at_start[SCHEDULED] and overtakes <= 3 * START),
        Check("memory 0 is the fastest at first", f"{at_start[SINGLE]:.1%} after {START}",
              at_start[SINGLE] < min(at_start[ADAPTED], at_start[SCHEDULED])),
    ]
    results.notes += [
        "The paper does not give the first margin; it is 1 here. Regularization is 1, as for K's nu-trick.",
        "All margins move in logarithms: the schedule's by V (55)-(56) with the schedule (59), SVMD's by V (54)-(58).",
        f"The beginning is the mean of {orders} orders of the digits, as single ones differ by chance.",
    ]
    return results


def beginnings(X, y, orders):
    """Average error after each of the first examples, in the mean over some orders."""
    found = {}
    for seed in range(orders):
        places = np.random.default_rng(seed).permutation(len(y))[:EARLY]
        for name, model in two_class_models().items():
            scores = model.progressive(X[places], y[places], classes=[-1, 1], return_steps=True)[0]
            found.setdefault(name, []).append(averages(mistaken([-1, 1], scores, y[places])))
    return {name: np.mean(curves, axis=0) for name, curves in found.items()}


# ---- Figure 4 -------------------------------------------------------------------------------------


def ten_class_models(n):
    """V 6.1.2, for a stream of n examples."""
    shared = dict(loss=MulticlassHinge(), kernel=Gaussian(KERNEL_WIDTH), regularization=1 / (500 * n), budget=TERMS)
    return {ADAPTED: SVMD(step=0.1, meta_step=0.1, memory=0.99, **shared),
            SINGLE: SVMD(step=0.1, meta_step=0.1, memory=0.0, **shared),
            SCHEDULED: NORMA(step=Decaying(0.1, delay=100), **shared)}


@experiment(name="svmd-fig4", paper="V 6.1.2, Fig. 4", title="ten classes of USPS digits with an adapted step",
            claim="SVMD makes about half as many errors as NORMA with a scheduled step; adapting with memory 0 is in "
            "between.",
            needs=("usps",))
def ten_classes(data, quick, seeds):
    X, y = digits_of(data)
    paper = {SCHEDULED: "about twice SVMD", SINGLE: "in between"}
    error, results = compared(ten_class_models, [(X, y)], "multiclass", range(10), paper)
    ratio = error[ADAPTED] / error[SCHEDULED]
    highest = results.panels[1].curves[ADAPTED].max()
    results.checks += [
        Check("SVMD makes about half the errors of the schedule", f"{ratio:.2f} times as many", ratio <= 0.5),
        Check("SVMD raises its step far above the first one, 0.1", f"up to {highest:.2g}", highest > 0.2),
    ]
    return results


# ---- Figures 5 and 6 ------------------------------------------------------------------------------


COUNTER_MARGIN = 0.1  # the first one; the paper does not say. Chosen on the seeds 100 to 102
HINGE = "SILK, hinge"


def counter_models(n):
    loss = NuMulticlassHinge(nu=0.05, margin=COUNTER_MARGIN, margin_step=None)
    shared = dict(loss=loss, kernel=Gaussian(KERNEL_WIDTH), regularization=1.0, budget=TERMS)
    return {
        ADAPTED: SVMD(step=1.0, meta_step=1.0, memory=0.95, **shared),
        SINGLE: SVMD(step=1.0, meta_step=1.0, memory=0.0, **shared),
        SCHEDULED: scheduled(NuMulticlassHinge(nu=0.05, margin=COUNTER_MARGIN), delay=100),
        # Not in the paper: a plain hinge that forgets nothing by itself. Width chosen on the seeds 100 to 102.
        HINGE: SILK(MulticlassHinge(), Gaussian(5.0), regularization=0.0, budget=TERMS),
    }


def counted(data, quick, seed):
    """Digits in the order 000, 001, ..., 999, twice."""
    return counting_sequence(*digits_of(data), 1500 if quick else 6000, seed=seed)


@experiment(name="svmd-fig6", paper="V 6.2.1, Fig. 6", title="ten classes of USPS digits in the order of a counter",
            claim="On a sequence that never stands still nu-SVMD errs in less than 19%; a scheduled step fails, "
            "memory 0 is in between.", seeds=5, needs=("usps",))
def counter(data, quick, seeds):
    streams = [counted(data, quick, seed) for seed in seeds]
    paper = {ADAPTED: "< 19%", SCHEDULED: "almost 90%", SINGLE: "in between"}
    error, results = compared(counter_models, streams, "multiclass", range(10), paper)
    least = min(error.values())
    if not quick:  # the paper's figure is for the whole counter
        results.checks.append(Check("SVMD errs in less than 19%", rate(error[ADAPTED]), error[ADAPTED] < 0.19))
    results.checks += [
        Check("the schedule hardly learns", rate(error[SCHEDULED]), error[SCHEDULED] > 0.6),
        Check("our best learner errs in at most 9%", rate(least), least <= 0.09, ours=True),
    ]
    results.notes += [
        f"Means over {len(seeds)} orders of the digits within each class. The first margin, {COUNTER_MARGIN:g}, is not "
        "in the paper; with 1 SVMD errs in about 20.4%.",
        "All margins move in logarithms: the schedule's by V (55)-(56) with the schedule (59), SVMD's by V (54)-(58).",
        f"{HINGE} has width 5 and no regularization, chosen on other orders of the same digits.",
    ]
    return results
