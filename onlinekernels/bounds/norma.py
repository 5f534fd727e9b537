"""NORMA: mistakes (K section IV) and risk (K section V)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.bounds.checks import LARGEST_LOG, NOT_NEGATIVE, bound, check_step, checked
from onlinekernels.bounds.comparisons import complexity_of, least_mistakes
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


# ---- NORMA: mistakes --------------------------------------------------------------------------


@bound
def norma_margin_errors(*, learner_margin: float, radius: float, margin: float, loss: float, norm: float,
                        path: float = 0.0, squared_path: float = 0.0, examples: int) -> Any:
    """Bound on the margin errors y f(x) <= rho of NORMA tuned by `tune_norma_margin_errors`, K Thm 2.

    With x = mu - rho > 0 it is K/x + 2 C/x^2 + 2 sqrt(C/x^2) sqrt(K/x + C/x^2), where C is `complexity`.

    >>> norma_margin_errors(learner_margin=0.5, radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    36.0
    """
    gap = gap_of("norma_margin_errors", margin, learner_margin)
    return least_mistakes(gap, loss, complexity_of(radius, norm, path, squared_path, examples))


def gap_of(owner, margin, learner_margin):
    if learner_margin >= margin:
        raise bad_parameter(owner, "learner_margin", f"below the comparison's margin {margin:g}", learner_margin)
    return margin - learner_margin


@bound
def norma_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                   squared_path: float = 0.0, examples: int) -> Any:
    """Bound on the mistakes y f(x) <= 0 of NORMA tuned by `tune_norma_mistakes`, K Thm 3.

    K/mu + 2 C/mu^2 + 2 sqrt(C/mu^2) sqrt(K/mu + C/mu^2), where C is `complexity`. For a function that
    separates the stream, K = 0, it is X^2 B^2 / mu^2. If the comparison does not move it holds for the
    `Perceptron` as well, and for all comparisons at once: with lambda = rho = 0 the step does not matter.

    >>> norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    >>> norma_mistakes(radius=1.0, margin=1.0, loss=40.0, norm=3.0, examples=1000)
    64.0
    """
    return least_mistakes(margin, loss, complexity_of(radius, norm, path, squared_path, examples))


@bound
def norma_hinge_loss(*, learner_margin: float, radius: float, margin: float, loss: float, norm: float,
                     path: float = 0.0, squared_path: float = 0.0, examples: int) -> Any:
    """Bound on NORMA's own cumulative hinge loss sum_t max(0, rho - y_t f_t(x_t)), K (47): K + C/(mu - rho).

    It is for the step eta' = 2 (mu - rho) / X^2, that is eta = eta'/(1 + eta' lambda), with lambda of K (32).
    `tune_norma_mistakes` has that step for its own margin rho = mu - h(mu, K, C).

    >>> norma_hinge_loss(learner_margin=0.5, radius=1.0, margin=1.0, loss=2.0, norm=1.0, examples=100)
    2.5
    """
    gap = gap_of("norma_hinge_loss", margin, learner_margin)
    return loss + complexity_of(radius, norm, path, squared_path, examples) / gap


@bound(regularization=NOT_NEGATIVE)
def norma_mistakes_untuned(*, step: float, regularization: float, learner_margin: float, radius: float, margin: float,
                           loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                           examples: int) -> Any:
    """Bound on the mistakes of NORMA with the hinge loss and *any* fixed step, lambda and margin.

    It follows from K (45) before any tuning. With eta' = eta/(1 - eta lambda) and z = eta' lambda,

        M <= (2 eta' K + E) / (eta' (2 mu - eta' X^2)),    E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z)

    whenever rho + eta' X^2/2 <= mu. As c g at the margin c mu is as good a comparison as g at mu, the
    best c that meets the condition is taken. Infinite for a moving comparison without regularization.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    >>> norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=0.0, **stream)
    9.0
    >>> round(norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=1.0, **stream), 1)
    19.8
    """
    full, energy = _full_step("norma_mistakes_untuned", step, regularization, norm, path, squared_path, examples)
    return mistakes_at_best_scale(full, full, learner_margin + full * radius ** 2 / 2, energy, radius, margin, loss)


@bound(regularization=NOT_NEGATIVE)
def norma_margin_errors_untuned(*, step: float, regularization: float, learner_margin: float, radius: float,
                                margin: float, loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                                examples: int) -> Any:
    """Bound on the margin errors y f(x) <= rho of NORMA with the hinge loss and *any* fixed step, lambda and margin.

    As `norma_mistakes_untuned`, from K (45): M_rho <= (2 eta' K + E) / (eta' (2 mu - 2 rho - eta' X^2)), for the best
    scale of the comparison.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    >>> norma_margin_errors_untuned(step=0.5, regularization=0.0, learner_margin=0.0, **stream)
    9.0
    >>> round(norma_margin_errors_untuned(step=0.5, regularization=0.0, learner_margin=0.25, **stream), 6)
    18.0
    """
    full, energy = _full_step("norma_margin_errors_untuned", step, regularization, norm, path, squared_path, examples)
    # K (45) is that of the mistakes with X^2 + 2 rho / eta' for X^2.
    wider = math.sqrt(radius ** 2 + 2 * learner_margin / full)
    return mistakes_at_best_scale(full, full, 0.0, energy, wider, margin, loss)


@bound(regularization=NOT_NEGATIVE)
def norma_hinge_loss_untuned(*, step: float, regularization: float, learner_margin: float, radius: float, margin: float,
                             loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                             examples: int) -> Any:
    """Bound on NORMA's cumulative hinge loss at its own margin, with *any* fixed step, lambda and margin.

    From K (45), c K + c^2 E / (2 eta') for the scale c mu = rho + eta' X^2/2, where no margin error counts.

    >>> norma_hinge_loss_untuned(step=1.0, regularization=0.0, learner_margin=0.5, radius=1.0, margin=1.0, loss=2.0,
    ...                          norm=1.0, examples=100)
    2.5
    """
    full, energy = _full_step("norma_hinge_loss_untuned", step, regularization, norm, path, squared_path, examples)
    scale = (learner_margin + full * radius ** 2 / 2) / margin
    return scale * loss + scale ** 2 * energy / (2 * full)


def _full_step(owner, step, regularization, norm, path, squared_path, examples):
    """eta' = eta/(1 - eta lambda), and E for it."""
    if step * regularization >= 1:
        raise bad_parameter(owner, "step", f"below 1 / regularization = {1 / regularization:g}", step)
    full = step / (1 - step * regularization)
    return full, energy_of(full * regularization, norm, path, squared_path, examples)


def energy_of(decay, norm, path, squared_path, examples):
    """E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z), K (43)-(45), for z = eta' lambda."""
    if squared_path == 0:
        moving = 0.0  # nothing moves, whatever bound on the path was given
    elif decay == 0:
        return math.inf
    else:
        moving = squared_path / decay + 2 * norm * path
    return norm ** 2 + (moving + examples * decay * norm ** 2) / (2 + decay)


def mistakes_at_best_scale(largest, sure, least_margin, energy, radius, margin, loss):
    """min over c of (2 largest c K + c^2 E) / (sure (2 c mu - sure X^2)), subject to c mu >= least_margin.

    `largest` bounds every coefficient of an update, `sure` is what a mistake gets at least.
    """
    if energy == math.inf:
        return math.inf
    charge, cost = 2 * largest * loss, sure * radius ** 2
    scale = (cost + math.sqrt(cost ** 2 + 2 * margin * charge * cost / energy)) / (2 * margin)
    scale = max(scale, least_margin / margin)
    return (charge * scale + energy * scale ** 2) / (sure * (2 * scale * margin - cost))


# ---- NORMA: risk ------------------------------------------------------------------------------


@bound
def norma_regret(*, examples: int, step: float, regularization: float, radius: float, lipschitz: float = 1.0) -> Any:
    """Bound on sum_t R_inst[f_t] - m R_reg[g] for every g, K Thm 4: a sqrt(m) + b.

    For NORMA with ``InverseSqrt(step)`` and a convex loss. R_inst[f, x, y] = l(f(x), y) + lambda/2 |f|^2, and
    R_reg[g] is its mean over the stream. a = 2 lambda U^2 (2 eta lambda + 1/(eta lambda)), b = U^2/(2 eta),
    U = c X / lambda. For the hinges of many classes c is sqrt(2).

    >>> norma_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    601.0
    """
    check_step("norma_regret", step, regularization)
    return regret_of(2.0, examples, step, regularization, lipschitz * radius / regularization)


def regret_of(weight, examples, step, regularization, limit):
    """a sqrt(m) + b of K Thms 4 and 6; `weight` is what multiplies eta lambda in a."""
    product = step * regularization
    slope = 2 * regularization * limit ** 2 * (weight * product + 1 / product)
    return slope * math.sqrt(examples) + limit ** 2 / (2 * step)


@bound
def norma_window_regret(*, examples: int, step: float, regularization: float, radius: float,
                        lipschitz: float = 1.0) -> Any:
    """`norma_regret` for NORMA with the window of K Thm 6: a = 2 lambda U^2 (10 eta lambda + 1/(eta lambda)).

    The budget is ``Sublinear(1/2 + growth, start)`` with `start` at least `window_start`. The window never
    shrinks; the printed one does, against the theorem's own assumption.

    >>> norma_window_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    1401.0
    """
    check_step("norma_window_regret", step, regularization)
    return regret_of(10.0, examples, step, regularization, lipschitz * radius / regularization)


@checked
def window_start(*, step: float, regularization: float, growth: float) -> Any:
    """t0(lambda, eta, epsilon) of K Thm 6: up to here the window must hold every example.

    The smallest t0 such that for all t >= t0: exp(-eta lambda t^e) <= eta lambda / sqrt(t), and
    ceil(t^(1/2 + e)) <= 3t/4; `growth` is e. An integer, or infinity if it is beyond all floats.

    It is huge for a small eta lambda and a small e. An e of about 0.4 is kinder:

    >>> [window_start(step=step, regularization=1.0, growth=0.25) for step in (0.9, 0.5, 0.1)]
    [6, 14457, 197377914]
    >>> [window_start(step=step, regularization=1.0, growth=0.4) for step in (0.9, 0.5, 0.1)]
    [26, 80, 52682]
    """
    check_step("window_start", step, regularization)
    return max(_first_decayed(step * regularization, growth), _first_short(growth))


def _first_decayed(product, growth):
    """First t from which exp(-x t^e) <= x / sqrt(t) for good; x is `product`."""
    def excess(u):  # convex in u = log t; what is needed is excess >= 0
        return product * math.exp(growth * u) - u / 2 + math.log(product)

    low = math.log(1 / (2 * product * growth)) / growth  # where excess is smallest
    if excess(low) >= 0:
        return 1
    high = max(low, 0.0) + 1
    while excess(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return _integer_above(high, lambda t: np.exp(-product * t ** growth) <= product / np.sqrt(t))


def _first_short(growth):
    """First t from which ceil(t^(1/2 + e)) <= 3t/4 for good."""
    power = 0.5 + growth
    crossing = math.log(4 / 3) / (1 - power)  # log t for t^power = 3t/4
    if crossing > LARGEST_LOG:
        return math.inf
    enough = math.exp(crossing) + 4 / (3 * (1 - power))  # t^power + 1 <= 3t/4, as t^power is concave
    return _integer_above(math.log(enough), lambda t: np.ceil(t ** power) <= 0.75 * t)


def _integer_above(log_t, holds):
    """First integer from which `holds` holds, given the logarithm of a number just above it."""
    if log_t > LARGEST_LOG:
        return math.inf
    top = math.ceil(math.exp(log_t)) + 1
    if top > 2 ** 52:
        return top  # floats are too coarse to tell integers apart
    t = np.arange(max(1, top - 4096), top + 1, dtype=float)
    fails = t[~holds(t)]
    return int(fails[-1]) + 1 if len(fails) else int(t[0])


@checked
def average_excess_risk(*, examples: int, step: float, regularization: float, radius: float, largest_risk: float,
                        failure: float, lipschitz: float = 1.0) -> Any:
    """Bound on E R_inst[f_average] - R_reg[g], K Cor. 5: (a + L sqrt(2 ln(1/delta)))/sqrt(m) + b/m.

    For examples drawn independently from one distribution it holds with probability 1 - `failure` (delta),
    for NORMA with ``InverseSqrt(step)`` and ``average=True``: f_average is (f_1 + ... + f_m)/m. (K's sum stops
    at m - 1, which is no average.) R_reg[g] is the regularised risk on the stream of any g. `largest_risk` (L)
    bounds R_inst of all f_t; see `hinge_risk_limit`. a and b are those of `norma_regret`.

    >>> excess = average_excess_risk(examples=10**6, step=0.7, regularization=1.0, radius=1.0,
    ...                              largest_risk=2.5, failure=0.05)
    >>> round(excess, 4)
    0.0118
    """
    regret = norma_regret(
        examples=examples, step=step, regularization=regularization, radius=radius, lipschitz=lipschitz)
    return excess_of(regret, examples, largest_risk, failure)


def excess_of(regret, examples, largest_risk, failure):
    """What the average hypothesis may lose in expectation, with probability 1 - failure, if all lose `regret`."""
    return regret / examples + largest_risk * math.sqrt(2 * math.log(1 / failure) / examples)


@checked
def window_average_excess_risk(*, examples: int, step: float, regularization: float, radius: float, largest_risk: float,
                               failure: float, lipschitz: float = 1.0) -> Any:
    """Bound on the mean of E R_inst[f_t] - R_reg[g] with the window of K Thm 6: `norma_window_regret`/m + L sqrt(2 ln(1/delta)/m).

    For examples drawn independently from one distribution it holds with probability 1 - `failure` (delta), for NORMA
    with ``InverseSqrt(step)`` and the window of `norma_window_regret`; for one of f_1, ..., f_m that is drawn at
    random, and for their average. `largest_risk` (L) is that of all terms, `hinge_risk_limit`: K fears that what is
    dropped may lead to larger norms, and omits the details. But the coefficients that any f_t could have add up to
    c/lambda in size, so |f_t| <= c X/lambda whichever of its terms are there.

    >>> excess = window_average_excess_risk(examples=10**6, step=0.5, regularization=1.0, radius=1.0,
    ...                                     largest_risk=2.5, failure=0.05)
    >>> round(excess, 4)
    0.0201
    """
    regret = norma_window_regret(
        examples=examples, step=step, regularization=regularization, radius=radius, lipschitz=lipschitz)
    return excess_of(regret, examples, largest_risk, failure)


@checked
def hinge_risk_limit(*, learner_margin: float, regularization: float, radius: float, penalty: float = 1.0) -> Any:
    """L of K Cor. 5 and I 3.2 for the hinge: C (rho + C X^2/lambda) + C^2 X^2/(2 lambda), as |f| <= C X/lambda.

    K's 5 X^2/(2 lambda) is the same for the largest margin that can be reached, X^2/lambda, and C = 1.

    >>> hinge_risk_limit(learner_margin=1.0, regularization=1.0, radius=1.0)
    2.5
    """
    return penalty * learner_margin + 1.5 * (penalty * radius) ** 2 / regularization
