"""What the theorems promise about a stream, and the parameters that they prescribe.

A bound compares the learner with functions g that may know the whole stream. The arguments have the
same names and meanings in all functions; the docstring of each says what its arguments are. `radius`, `margin`, `loss`,
`norm`, `path`, `squared_path` and `examples` describe a comparison; `comparison` computes them, and its answer fits the
functions on mistakes and their tunings:

>>> from onlinekernels import NORMA
>>> X, y = [[0.0], [1.0], [0.2], [0.9]], [1, -1, 1, -1]
>>> against = comparison("gaussian", X, y, [2.0, -2.0, 0.0, 0.0], margin=1.0)
>>> model = NORMA(kernel="gaussian", **tune_norma_mistakes(**against))
>>> mistakes = int((model.progressive(X, y) * y <= 0).sum())
>>> mistakes <= norma_mistakes(**against)
True

**K** is Kivinen, Smola and Williamson, **I** Cheng et al., **H** Herbster, **V** Vishwanathan et al. Where a
printed theorem is wrong, its corrected form stands here; see the page on errata. All bounds are for an
algorithm that starts at f = 0, has no offset and sees no sample weights.
"""
from onlinekernels.bounds.audits import Audit, Certificate, audit
from onlinekernels.bounds.comparisons import best_gap, comparison, complexity
from onlinekernels.bounds.ensembles import hedge_regret, majority_mistakes, self_tuned_mistakes
from onlinekernels.bounds.implicit import ilk_average_excess_risk, ilk_mistakes, ilk_mistakes_untuned, ilk_regret
from onlinekernels.bounds.margins import (
    alma_corrections,
    ballseptron_mistakes,
    forgetron_mistakes,
    norma_squared_loss,
    tune_norma_squared_loss,
)
from onlinekernels.bounds.norma import (
    average_excess_risk,
    hinge_risk_limit,
    norma_hinge_loss,
    norma_hinge_loss_untuned,
    norma_margin_errors,
    norma_margin_errors_untuned,
    norma_mistakes,
    norma_mistakes_untuned,
    norma_regret,
    norma_window_regret,
    window_average_excess_risk,
    window_start,
)
from onlinekernels.bounds.projections import (
    perceptron_mistakes,
    projection_loss,
    projection_mistakes,
    voted_perceptron_error,
)
from onlinekernels.bounds.truncation import (
    implicit_truncation_error,
    norm_limit,
    truncation_error,
    truncation_error_of_steps,
)
from onlinekernels.bounds.tuning import (
    tune_ilk_mistakes,
    tune_ilk_regret,
    tune_norma_margin_errors,
    tune_norma_mistakes,
    tune_norma_regret,
    tune_norma_window,
)

__all__ = [
    "audit",
    "Audit",
    "Certificate",
    "comparison",
    "complexity",
    "best_gap",
    "norm_limit",
    "truncation_error",
    "truncation_error_of_steps",
    "implicit_truncation_error",
    "norma_margin_errors",
    "norma_hinge_loss",
    "norma_mistakes",
    "norma_mistakes_untuned",
    "norma_margin_errors_untuned",
    "norma_hinge_loss_untuned",
    "norma_regret",
    "norma_window_regret",
    "window_start",
    "average_excess_risk",
    "window_average_excess_risk",
    "hinge_risk_limit",
    "ilk_mistakes",
    "ilk_mistakes_untuned",
    "ilk_regret",
    "ilk_average_excess_risk",
    "projection_mistakes",
    "projection_loss",
    "perceptron_mistakes",
    "voted_perceptron_error",
    "alma_corrections",
    "ballseptron_mistakes",
    "forgetron_mistakes",
    "hedge_regret",
    "majority_mistakes",
    "self_tuned_mistakes",
    "norma_squared_loss",
    "tune_norma_squared_loss",
    "tune_norma_margin_errors",
    "tune_norma_mistakes",
    "tune_norma_regret",
    "tune_norma_window",
    "tune_ilk_mistakes",
    "tune_ilk_regret",
]
