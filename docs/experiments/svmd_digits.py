"""V, Figures 3 to 6: error and step size on one pass through USPS: two classes, ten, and in the order of a counter.

V's constants come first. V says that its control was hand-tuned, so each figure also has the control, and SVMD, with
the settings that err least on other orders of the same digits, out of as many for either.
"""
from itertools import product

import numpy as np

from experiments.experiment import Check, Results, experiment
from experiments.learners import UNTUNED, averages, digits_of, mistaken, mistakes, rate, untuned, watch
from experiments.panels import Lines
from onlinekernels import NORMA, SILK, SVMD, Decaying, Gaussian, MulticlassHinge, NuHinge, NuMulticlassHinge
from onlinekernels.streams import counting_sequence

ADAPTED, SINGLE, SCHEDULED = "SVMD", "SVMD, memory 0", "scheduled step"
TUNED_ADAPTED, TUNED_SCHEDULED = "SVMD, tuned", "scheduled step, tuned"
KERNEL_WIDTH = 8.0  # V 6.1
TERMS = 512
# With a nu-loss and its regularization 1 no step may be above 1.
FIRST_STEPS, FIRST_STEPS_WITH_NU = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
OTHER_ORDERS = (100, 101)  # seeds of the orders that settings are chosen on


def makers(step, delay, meta_step, memory, adapted, control):
    """Functions that make SVMD, and NORMA with the schedule (59); what is not given is V's constant."""

    def svmd(step=step, meta_step=meta_step, memory=memory):
        return SVMD(step=step, meta_step=meta_step, memory=memory, budget=TERMS, **adapted)

    def norma(step=step, delay=delay):
        return NORMA(step=Decaying(step, delay), budget=TERMS, **control)

    return svmd, norma


def with_nu(kind, margin, delay):
    """The makers for a nu-loss with nu = 0.05. Its regularization is 1, and margins move in logarithms.

    The schedule's margin moves as V (55)-(56) say, with dl/deps = 1{margin error} - nu for the printed sign. By K's
    rule it may become negative.
    """
    adapted, control = (dict(loss=kind(0.05, margin, margin_step=how), kernel=Gaussian(KERNEL_WIDTH),
                             regularization=1.0) for how in (None, "log"))
    return makers(1.0, delay, 1.0, 0.95, adapted, control)


def grids(first_steps):
    """36 settings for SVMD, and as many for the control."""
    return {TUNED_ADAPTED: {"step": first_steps[3:], "meta_step": (0.01, 0.1, 1.0), "memory": (0.9, 0.95, 0.99, 1.0)},
            TUNED_SCHEDULED: {"step": first_steps, "delay": (1, 10, 100, 1000, 10_000, 100_000)}}


def errors_of(make, grid, streams, classes):
    """The mean error over some streams of each of the settings in a grid: {values: error}."""
    errors = {}
    for values in watch(product(*grid.values())):
        settings = dict(zip(grid, values, strict=True))
        errors[values] = float(np.mean([mistakes(make(**settings), X, y, classes).mean() for X, y in streams]))
    return errors


def best_of(make, grid, streams, classes):
    """The settings in a grid that err least."""
    errors = errors_of(make, grid, streams, classes)
    return dict(zip(grid, min(errors, key=errors.get), strict=True))


def compared(models, first_steps, streams, others, classes, paper, quick, besides=None):
    """Run fresh learners on each stream: their errors, and results with a table, panels, and the check of their order.

    `models` are the makers of SVMD and of its control, whose settings are also chosen on `others` of the streams, the
    first step of the control among `first_steps`; `besides` is another maker by its name; `paper` is what the paper
    says about each. Curves are those of the first stream, figures are means over all.
    """
    svmd, norma = models
    if quick:
        others = [(X[:200], y[:200]) for X, y in others[:1]]
    best = {name: best_of(make, grid, others, classes)
            for (name, grid), make in zip(grids(first_steps).items(), models, strict=True)}
    learners = {ADAPTED: svmd, SINGLE: lambda: svmd(memory=0.0), SCHEDULED: norma,
                TUNED_ADAPTED: lambda: svmd(**best[TUNED_ADAPTED]),
                TUNED_SCHEDULED: lambda: norma(**best[TUNED_SCHEDULED]), **(besides or {}),
                UNTUNED: lambda: untuned("binary" if len(classes) == 2 else "multiclass")}
    wrong, steps = {}, {}
    for X, y in watch(streams):
        for name, make in learners.items():
            model = make()
            scores, history = model.progressive(X, y, classes=classes, return_steps=True)
            wrong.setdefault(name, []).append(mistaken(model.classes_, scores, y))
            steps.setdefault(name, history)
    error = {name: float(np.mean(runs)) for name, runs in wrong.items()}
    average = {name: averages(runs[0]) for name, runs in wrong.items()}
    table = [{"learner": name, "error": rate(error[name]), "paper": paper.get(name), "last step": steps[name][-1]}
             for name in error]
    shown = {name: steps[name] for name in (ADAPTED, SINGLE, SCHEDULED, TUNED_ADAPTED, TUNED_SCHEDULED)}
    panels = [Lines("average error so far", "examples", "error", average, logarithmic=("x",), percent=True),
              Lines("step size", "examples", "step", shown, ("x", "y"))]
    order = error[ADAPTED] < error[SINGLE] < error[SCHEDULED]
    check = Check("SVMD errs less than with memory 0, and that less than the schedule",
                  f"{rate(error[ADAPTED])}, {rate(error[SINGLE])}, {rate(error[SCHEDULED])}", order)
    notes = [f"{name}: {', '.join(f'{key} {value:g}' for key, value in settings.items())}, the best of 36 settings "
             "on two other orders of the digits." for name, settings in best.items()]
    return error, Results(table, panels, [check], notes)


def half_the_errors(error, least=0.0):
    """V 6.1: about half as many errors as with the schedule, which was tuned by hand."""
    for adapted, control, what in ((ADAPTED, SCHEDULED, "V's constants"), (TUNED_ADAPTED, TUNED_SCHEDULED, "both tuned")):
        ratio = error[adapted] / error[control]
        yield Check(f"{what}: SVMD makes about half the errors of the schedule", f"{ratio:.2f} times as many",
                    least <= ratio <= 0.6)


def in_other_orders(X, y):
    """The stream in orders that it is not judged on."""
    for seed in OTHER_ORDERS:
        order = np.random.default_rng(seed).permutation(len(y))
        yield X[order], y[order]


# ---- Figure 3 -------------------------------------------------------------------------------------

EARLY, START = 400, 20  # how many examples are the beginning, and where it is judged


def two_class_models():
    """V 6.1.1. The first margin is not in the paper."""
    return with_nu(NuHinge, margin=1.0, delay=10)


@experiment(name="svmd-fig3", paper="V 6.1.1, Fig. 3", title="two classes of USPS digits with an adapted step",
            claim="SVMD makes about half as many errors as with a scheduled step, which it overtakes after about 20 "
            "examples. Adapting with memory 0 is the fastest at first and in between at the end.", needs=("usps",))
def two_classes(data, quick, seeds):
    X, digits = digits_of(data)
    y = np.where(digits < 5, -1, 1)
    paper = {SCHEDULED: "about twice SVMD", SINGLE: "in between"}
    error, results = compared(two_class_models(), FIRST_STEPS_WITH_NU, [(X, y)], list(in_other_orders(X, y)), [-1, 1],
                              paper, quick)
    orders = 10 if quick else 100
    early = beginnings(X, y, orders)
    title = f"the beginning, mean of {orders} orders"
    results.panels.insert(1, Lines(title, "examples", "average error", early, ("x",), percent=True))
    behind = np.flatnonzero(early[ADAPTED] >= early[SCHEDULED])
    overtakes = int(behind[-1]) + 2 if len(behind) else 1
    at_start = {name: curve[START - 1] for name, curve in early.items()}
    results.checks += [
        *half_the_errors(error, least=0.4),
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
    svmd, norma = two_class_models()
    found = {ADAPTED: [], SINGLE: [], SCHEDULED: []}
    for seed in range(orders):
        first = np.random.default_rng(seed).permutation(len(y))[:EARLY]
        for curves, model in zip(found.values(), (svmd(), svmd(memory=0.0), norma()), strict=True):
            curves.append(averages(mistakes(model, X[first], y[first], [-1, 1])))
    return {name: np.mean(curves, axis=0) for name, curves in found.items()}


# ---- Figure 4 -------------------------------------------------------------------------------------


def ten_class_models(n):
    """V 6.1.2, for a stream of n examples."""
    shared = dict(loss=MulticlassHinge(), kernel=Gaussian(KERNEL_WIDTH), regularization=1 / (500 * n))
    return makers(0.1, 100, 0.1, 0.99, shared, shared)


@experiment(name="svmd-fig4", paper="V 6.1.2, Fig. 4", title="ten classes of USPS digits with an adapted step",
            claim="SVMD makes about half as many errors as NORMA with a scheduled step, which is best with a first "
            "step of 0.1; adapting with memory 0 is in between.", needs=("usps",))
def ten_classes(data, quick, seeds):
    X, y = digits_of(data)
    models, classes, others = ten_class_models(len(y)), range(10), list(in_other_orders(X, y))[: 1 if quick else None]
    paper = {SCHEDULED: "about twice SVMD", SINGLE: "in between"}
    error, results = compared(models, FIRST_STEPS, [(X, y)], others, classes, paper, quick)
    highest = results.panels[1].curves[ADAPTED].max()
    first = {name: errors_of(make, {"step": FIRST_STEPS}, others, classes)
             for name, make in zip((ADAPTED, SCHEDULED), models, strict=True)}
    (best,) = min(first[SCHEDULED], key=first[SCHEDULED].get)
    least, most = min(first[ADAPTED].values()), max(first[ADAPTED].values())
    results.checks += [
        *half_the_errors(error),
        Check("SVMD raises its step far above the first one, 0.1", f"up to {highest:.2g}", highest > 0.2),
        Check("the schedule is best with a first step of 0.1",
              f"best with {best:g}: {rate(first[SCHEDULED][best,])}, with 0.1 {rate(first[SCHEDULED][0.1,])}",
              best == 0.1),
        Check("SVMD depends less on its first step",
              f"{rate(least)} to {rate(most)} for {FIRST_STEPS[0]:g} to {FIRST_STEPS[-1]:g}, the schedule "
              f"{rate(min(first[SCHEDULED].values()))} to {rate(max(first[SCHEDULED].values()))}",
              most / least < max(first[SCHEDULED].values()) / min(first[SCHEDULED].values())),
    ]
    return results


# ---- Figures 5 and 6 ------------------------------------------------------------------------------


COUNTER_MARGIN = 0.1  # the first one; the paper does not say. Chosen on the seeds 100 to 102


def plain_hinge():
    """Not in the paper: it forgets nothing by itself. The width was chosen on the seeds 100 to 102."""
    return SILK(MulticlassHinge(), Gaussian(5.0), regularization=0.0, budget=TERMS)


def counted(data, quick, seed):
    """Digits in the order 000, 001, ..., 999, twice."""
    return counting_sequence(*digits_of(data), 1500 if quick else 6000, seed=seed)


@experiment(name="svmd-fig6", paper="V 6.2.1, Fig. 6", title="ten classes of USPS digits in the order of a counter",
            claim="On a sequence that never stands still nu-SVMD errs in less than 19%; a scheduled step fails, "
            "memory 0 is in between.", seeds=5, needs=("usps",))
def counter(data, quick, seeds):
    streams, others = ([counted(data, quick, seed) for seed in those] for those in (seeds, OTHER_ORDERS))
    models = with_nu(NuMulticlassHinge, COUNTER_MARGIN, delay=100)
    paper = {ADAPTED: "< 19%", SCHEDULED: "almost 90%", SINGLE: "in between"}
    error, results = compared(models, FIRST_STEPS_WITH_NU, streams, others, range(10), paper, quick,
                              {"SILK, hinge": plain_hinge})
    least = min(error.values())
    if not quick:  # the paper's figure is for the whole counter
        results.checks.append(Check("SVMD errs in less than 19%", rate(error[ADAPTED]), error[ADAPTED] < 0.19))
    results.checks += [
        Check("the schedule errs in almost 90%", rate(error[SCHEDULED]), error[SCHEDULED] > 0.8),
        Check("so does a schedule that is tuned", rate(error[TUNED_SCHEDULED]), error[TUNED_SCHEDULED] > 0.8),
        Check("our best learner errs in at most 9%", rate(least), least <= 0.09, ours=True),
    ]
    results.notes += [
        f"Means over {len(seeds)} orders of the digits within each class. The first margin, {COUNTER_MARGIN:g}, is not "
        "in the paper; with 1 SVMD errs in about 20.4%.",
        "All margins move in logarithms: the schedule's by V (55)-(56) with the schedule (59), SVMD's by V (54)-(58).",
        "SILK, hinge has width 5 and no regularization, chosen on other orders of the same digits.",
    ]
    return results
