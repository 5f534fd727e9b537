"""V, Figures 5 and 6: ten classes in the order of a counter."""

from onlinekernels.algorithms import SILK, SVMD
from onlinekernels.experiments.experiment import Check, Experiment
from onlinekernels.experiments.learners import digits_of
from onlinekernels.experiments.stepsizes import (
    ADAPTED,
    KERNEL_WIDTH,
    SCHEDULED,
    SINGLE,
    TERMS,
    compared,
    rate,
    scheduled,
)
from onlinekernels.nouns.kernels import Gaussian
from onlinekernels.nouns.losses import MulticlassHinge, NuMulticlassHinge
from onlinekernels.streams import counting_sequence

MARGIN = 0.1  # the first one; the paper does not say. Chosen on the seeds 100 to 102
BEST = "SILK, hinge"


def models(n):
    loss = NuMulticlassHinge(nu=0.05, margin=MARGIN, margin_step=None)
    shared = dict(loss=loss, kernel=Gaussian(KERNEL_WIDTH), regularization=1.0, budget=TERMS)
    return {
        ADAPTED: SVMD(step=1.0, meta_step=1.0, memory=0.95, **shared),
        SINGLE: SVMD(step=1.0, meta_step=1.0, memory=0.0, **shared),
        SCHEDULED: scheduled(NuMulticlassHinge(nu=0.05, margin=MARGIN), delay=100),
        # Not in the paper: a plain hinge that forgets nothing by itself. Width chosen on the seeds 100 to 102.
        BEST: SILK(MulticlassHinge(), Gaussian(5.0), regularization=0.0, budget=TERMS),
    }


def sequence(data, quick, seed):
    """Digits in the order 000, 001, ..., 999, twice."""
    return counting_sequence(*digits_of(data), 1500 if quick else 6000, seed=seed)


def run(data, quick, seeds):
    streams = [sequence(data, quick, seed) for seed in seeds]
    paper = {ADAPTED: "< 19%", SCHEDULED: "almost 90%", SINGLE: "in between"}
    error, results = compared(models, streams, "multiclass", range(10), paper)
    least = min(error.values())
    if not quick:  # the paper's figure is for the whole counter
        results.checks.append(Check("SVMD errs in less than 19%", rate(error[ADAPTED]), error[ADAPTED] < 0.19))
    results.checks += [
        Check("the schedule hardly learns", rate(error[SCHEDULED]), error[SCHEDULED] > 0.6),
        Check("our best learner errs in at most 9%", rate(least), least <= 0.09, ours=True),
    ]
    results.notes += [
        f"Means over {len(seeds)} orders of the digits within each class. The first margin, {MARGIN:g}, is not in the "
        "paper; with 1 SVMD errs in about 20.4%.",
        "All margins move in logarithms: the schedule's by V (55)-(56) with the schedule (59), SVMD's by V (54)-(58).",
        f"{BEST} has width 5 and no regularization, chosen on other orders of the same digits.",
    ]
    return results


EXPERIMENT = Experiment(
    name="svmd-fig6",
    paper="V 6.2.1, Fig. 6",
    title="ten classes of USPS digits in the order of a counter",
    claim="On a sequence that never stands still nu-SVMD errs in less than 19%; a scheduled step fails, memory 0 is "
    "in between.",
    run=run,
    seeds=5,
    needs=("usps",),
)
