"""V, Figure 3: two classes of USPS digits, one pass, the nu-trick."""

import numpy as np

from onlinekernels.algorithms import NORMA, SVMD
from onlinekernels.experiments.experiment import Check, Experiment
from onlinekernels.experiments.learners import digits_of
from onlinekernels.experiments.stepsizes import ADAPTED, KERNEL_WIDTH, SCHEDULED, SINGLE, TERMS, compared
from onlinekernels.nouns.kernels import Gaussian
from onlinekernels.nouns.losses import NuHinge
from onlinekernels.nouns.steps import Decaying

# V 6.1.1; with the nu-trick the regularization is 1. The first margin is not in the paper.
MARGIN = 1.0


def models(n):
    shared = dict(kernel=Gaussian(KERNEL_WIDTH), regularization=1.0, budget=TERMS)
    loss = NuHinge(nu=0.05, margin=MARGIN, margin_step=None)
    return {
        ADAPTED: SVMD(loss, step=1.0, meta_step=1.0, memory=0.95, **shared),
        SINGLE: SVMD(loss, step=1.0, meta_step=1.0, memory=0.0, **shared),
        SCHEDULED: NORMA(loss, step=Decaying(1.0, delay=10), **shared),
    }


def run(data, quick, seeds):
    X, digits = digits_of(data)
    y = np.where(digits < 5, -1, 1)
    paper = {SCHEDULED: "about twice SVMD", SINGLE: "in between"}
    error, results = compared(models, [(X, y)], "binary", [-1, 1], paper)
    ratio = error[ADAPTED] / error[SCHEDULED]
    results.checks.append(
        Check("SVMD makes about half the errors of the schedule", f"{ratio:.2f} times as many", ratio <= 0.55)
    )
    results.notes += [
        f"The paper does not give the first margin; it is {MARGIN:g} here. Regularization is 1, as for K's nu-trick.",
        "The schedule's margin moves by K's rule with the sign put right, SVMD's by V (54)-(58), in logarithms.",
    ]
    return results


EXPERIMENT = Experiment(
    name="svmd-fig3",
    paper="V 6.1.1, Fig. 3",
    title="two classes of USPS digits with an adapted step",
    claim="SVMD makes about half as many errors as NORMA with a scheduled step; adapting with memory 0 is in between.",
    run=run,
    needs=("usps",),
)
