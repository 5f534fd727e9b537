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
from onlinekernels.bounds.mistakes import (
    ilk_mistakes, ilk_mistakes_untuned, majority_mistakes, norma_hinge_loss, norma_hinge_loss_untuned, norma_margin_errors,
    norma_margin_errors_untuned, norma_mistakes, norma_mistakes_untuned, perceptron_mistakes, projection_loss,
    projection_mistakes, random_removal_mistakes, voted_perceptron_error,
)
from onlinekernels.bounds.regrets import (
    average_excess_risk, hedge_regret, hinge_risk_limit, ilk_regret, implicit_truncation_error, krls_regret,
    norm_limit, norma_regret, norma_window_regret, truncation_error, window_start,
)
from onlinekernels.bounds.tuning import (
    tune_ilk_mistakes, tune_ilk_regret, tune_norma_margin_errors, tune_norma_mistakes, tune_norma_regret, tune_norma_window,
)

__all__ = [
    "Audit", "Certificate", "audit",
    "best_gap", "comparison", "complexity",
    "ilk_mistakes", "ilk_mistakes_untuned", "majority_mistakes",
    "norma_hinge_loss", "norma_hinge_loss_untuned", "norma_margin_errors", "norma_margin_errors_untuned",
    "norma_mistakes", "norma_mistakes_untuned", "perceptron_mistakes", "projection_loss", "projection_mistakes",
    "random_removal_mistakes", "voted_perceptron_error",
    "average_excess_risk", "hedge_regret", "hinge_risk_limit", "ilk_regret", "implicit_truncation_error", "krls_regret",
    "norm_limit", "norma_regret", "norma_window_regret", "truncation_error", "window_start",
    "tune_ilk_mistakes", "tune_ilk_regret", "tune_norma_margin_errors", "tune_norma_mistakes", "tune_norma_regret",
    "tune_norma_window",
]
