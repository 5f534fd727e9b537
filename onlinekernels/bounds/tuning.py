"""Parameters that the theorems prescribe, ready for a constructor."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlinekernels.bounds.checks import checked
from onlinekernels.bounds.comparisons import best_gap, complexity_of, smallest_distance
from onlinekernels.bounds.mistakes import gap_of
from onlinekernels.bounds.regrets import window_start
from onlinekernels.budgets import Sublinear
from onlinekernels.losses import GraphHinge, Hinge, MulticlassHinge
from onlinekernels.steps import InverseSqrt
from onlinekernels.labels import LabelStructure

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

NO_OFFSET = {"offset": False}  # which a linear kernel would choose, and no theorem knows


@checked
def tune_norma_margin_errors(*, learner_margin: float, radius: float, margin: float, loss: float, norm: float,
                             path: float = 0.0, squared_path: float = 0.0, examples: int) -> dict[str, Any]:
    """Parameters of NORMA for `norma_margin_errors`, K Thm 2.

    eta' = 2 h(mu - rho, K, C)/X^2, lambda = sqrt(D2/m)/(B eta') (K (32)), eta = eta'/(1 + eta' lambda).

    >>> tune_norma_margin_errors(learner_margin=0.5, radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    {'loss': Hinge(margin=0.5), 'step': 0.5, 'regularization': 0.0, 'offset': False}
    """
    gap = gap_of("tune_norma_margin_errors", margin, learner_margin)
    share = best_gap(gap, loss, complexity_of(radius, norm, path, squared_path, examples))
    return _explicit(learner_margin, 2 * share / radius ** 2, norm, squared_path, examples)


def _explicit(learner_margin, full, norm, squared_path, examples):
    """NORMA's parameters for eta' = `full`."""
    regularization = _best_regularization(full, norm, squared_path, examples)
    step = full / (1 + full * regularization)
    return {"loss": Hinge(float(learner_margin)), "step": step, "regularization": regularization, **NO_OFFSET}


def _best_regularization(step, norm, squared_path, examples):
    return math.sqrt(squared_path / examples) / (norm * step)  # K (32)


@checked
def tune_norma_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                        squared_path: float = 0.0, examples: int, zero_margin: bool = False,
                        labels: Any = None) -> dict[str, Any]:
    """Parameters of NORMA for `norma_mistakes`, K Thm 3.

    eta' = 2 r/X^2 with r = h(mu, K, C), lambda and eta as in `tune_norma_margin_errors`, and the margin
    rho = mu - r, or 0 with `zero_margin`. The bound is the same. With rho = mu - r there is a bound on
    mistakes and on the hinge loss (`norma_hinge_loss`) but none on margin errors.

    >>> tune_norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    {'loss': Hinge(margin=0.5), 'step': 1.0, 'regularization': 0.0, 'offset': False}
    """
    share = best_gap(margin, loss, complexity_of(radius, norm, path, squared_path, examples))
    if zero_margin and labels is not None:
        raise ValueError("zero_margin=True is for two classes: hinges of many labels do not move at a tie.")
    learner_margin = 0.0 if zero_margin else margin - share
    return _among(labels, _explicit(learner_margin, 2 * share / radius ** 2, norm, squared_path, examples))


def _among(labels, tuned):
    """The same for many labels: their hinge asks for its margin rho times the distance of labels.

    `GraphHinge` has rho = 1. f / rho learns there as f does with rho: its steps are smaller by rho, and nothing decays
    faster.
    """
    if labels is None:
        return tuned
    rho = tuned["loss"].margin / smallest_distance(labels)
    if not isinstance(labels, LabelStructure):
        return {**tuned, "loss": MulticlassHinge(rho)}
    smaller = {"step": tuned["step"] / rho, "regularization": tuned["regularization"] * rho}
    if "penalty" in tuned:
        smaller = {"penalty": tuned["penalty"] / rho}
    return {**tuned, "loss": GraphHinge(), "labels": labels, **smaller}


@checked
def tune_norma_regret(*, regularization: float) -> dict[str, Any]:
    """Parameters of NORMA for `norma_regret`, K Thm 4: the step that makes a smallest, eta = 1/(sqrt(2) lambda).

    >>> tune_norma_regret(regularization=0.5)
    {'step': InverseSqrt(rate=1.41...), 'regularization': 0.5, 'offset': False}
    """
    return {"step": InverseSqrt(math.sqrt(0.5) / regularization), "regularization": float(regularization), **NO_OFFSET}


@checked
def tune_norma_window(*, regularization: float, growth: float = 0.4, step: float | None = None) -> dict[str, Any]:
    """Parameters of NORMA for `norma_window_regret`, K Thm 6: step and window.

    Without `step`, the one that makes a smallest, eta = 1/(sqrt(10) lambda). A larger step, up to 1/lambda, costs
    little and starts with a smaller window; see `window_start`.

    >>> tune_norma_window(regularization=0.5)
    {'step': InverseSqrt(rate=0.63...), 'regularization': 0.5, 'offset': False, 'budget': Sublinear(exponent=0.9,
    start=747)}
    >>> tune_norma_window(regularization=0.5, growth=0.25, step=1.8)["budget"]
    Sublinear(exponent=0.75, start=6)
    """
    step = math.sqrt(0.1) / regularization if step is None else float(step)
    start = window_start(step=step, regularization=regularization, growth=growth)
    if start > 2 ** 62:
        given = f"step * regularization = {step * regularization:g} and growth = {growth:g}"
        raise ValueError(f"The theorem wants all of the first {start:.3g} examples for {given}; expected at most 2**62. "
                         "Take a larger one of them.")
    budget = Sublinear(exponent=0.5 + growth, start=start)
    return {"step": InverseSqrt(step), "regularization": float(regularization), **NO_OFFSET, "budget": budget}


@checked
def tune_ilk_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                      squared_path: float = 0.0, examples: int, penalty: float = 1.0,
                      labels: Any = None) -> dict[str, Any]:
    """Parameters of ILK for `ilk_mistakes`, I Thm 2 as corrected.

    eta = 2 h(mu, K, S)/(C X^2), lambda = sqrt(D2/T)/(B eta), rho = eta C X^2/(1 + eta lambda). With K = 0 and a
    comparison that does not move this is rho = mu.

    >>> tune_ilk_mistakes(radius=1.0, margin=2.0, loss=0.0, norm=6.0, examples=100, penalty=4.0)
    {'loss': Hinge(margin=2.0), 'step': 0.5, 'regularization': 0.0, 'offset': False, 'penalty': 4.0}
    >>> tuned = tune_ilk_mistakes(radius=1.0, margin=2.0, loss=0.0, norm=6.0, examples=100, labels=["a", "b", "c"])
    >>> tuned["loss"]
    MulticlassHinge(margin=2.0)
    """
    share = best_gap(margin, loss, complexity_of(radius, norm, path, squared_path, examples))
    step = 2 * share / (penalty * radius ** 2)
    regularization = _best_regularization(step, norm, squared_path, examples)
    tuned = {"loss": Hinge(2 * share / (1 + step * regularization)), "step": step, "regularization": regularization,
             **NO_OFFSET, "penalty": float(penalty)}
    return _among(labels, tuned)


@checked
def tune_ilk_regret(*, regularization: float, penalty: float = 1.0) -> dict[str, Any]:
    """Parameters of ILK for `ilk_regret`, I Thm 3: the step that makes a smallest, eta = 1/(sqrt(2) lambda).

    >>> tune_ilk_regret(regularization=0.5, penalty=2.0)
    {'step': InverseSqrt(rate=1.41...), 'regularization': 0.5, 'offset': False, 'penalty': 2.0}
    """
    return {**tune_norma_regret(regularization=regularization), "penalty": float(penalty)}
