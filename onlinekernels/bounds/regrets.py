"""How much more than the best function a learner may lose, on the stream and on new examples; what a budget costs."""
import math

import numpy as np

from onlinekernels.bounds.checks import LARGEST_LOG, bound, check_step, checked


@bound
def norma_regret(*, examples: int, step: float, regularization: float, radius: float, lipschitz: float = 1.0) -> float:
    """Bound on sum_t R_inst[f_t] - m R_reg[g] for every g, K Thm 4: a sqrt(m) + b.

    For NORMA with ``InverseSqrt(step)`` and a convex loss. R_inst[f, x, y] = l(f(x), y) + lambda/2 |f|^2, and
    R_reg[g] is its mean over the stream. a = 2 lambda U^2 (2 eta lambda + 1/(eta lambda)), b = U^2/(2 eta),
    U = c X / lambda. For the hinges of many classes c is sqrt(2).

    >>> norma_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    601.0
    """
    check_step("norma_regret", step, regularization)
    return regret_of(2.0, examples, step, regularization, lipschitz * radius / regularization)


@bound
def norma_window_regret(*, examples: int, step: float, regularization: float, radius: float,
                        lipschitz: float = 1.0) -> float:
    """`norma_regret` for NORMA with the window of K Thm 6: a = 2 lambda U^2 (10 eta lambda + 1/(eta lambda)).

    The budget is ``Sublinear(1/2 + growth, start)`` with `start` at least `window_start`. The window never
    shrinks; the printed one does, against the theorem's own assumption.

    >>> norma_window_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    1401.0
    """
    check_step("norma_window_regret", step, regularization)
    return regret_of(10.0, examples, step, regularization, lipschitz * radius / regularization)


@bound
def ilk_regret(*, examples: int, step: float, regularization: float, radius: float, penalty: float = 1.0,
               lipschitz: float = 1.0) -> float:
    """Bound on sum_t R_t(f_t) - sum_t R_t(g) for every g, I Thm 3: a sqrt(T) + b.

    For ILK with ``InverseSqrt(step)``, R_t(f) = lambda/2 |f|^2 + C L(f(x_t), y_t), and U = C X / lambda,
    a = 4 eta C^2 X^2 + 2 U^2/eta, b = U^2/(2 eta). Any positive step will do. For `MulticlassHinge` X^2 is
    2 max k(x, x): the right label against any other. (I prints a difference that is 0 for every kernel.)

    >>> ilk_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0, penalty=2.0)
    2404.0
    """
    return regret_of(2.0, examples, step, regularization, penalty * lipschitz * radius / regularization)


def regret_of(weight, examples, step, regularization, limit):
    """a sqrt(m) + b of K Thms 4 and 6; `weight` is what multiplies eta lambda in a."""
    product = step * regularization
    slope = 2 * regularization * limit ** 2 * (weight * product + 1 / product)
    return slope * math.sqrt(examples) + limit ** 2 / (2 * step)


@bound
def krls_regret(*, information: float, largest_target: float, shrunk: bool = False) -> float:
    """Bound on sum_t (y_t - f_t(x_t))^2 - min over g of (sum_t (y_t - g(x_t))^2 + s |g|^2) for KRLS, s its noise.

    4 Y^2 log det(I + K / s) for predictions cut to [-Y, Y], and Y^2 log det(I + K / s) for `shrunk` ones, f_t(x_t) s /
    (s + d_t), where d_t is the variance of f_t(x_t): they are those of the kernel aggregating algorithm (Gammerman,
    Kalnishkan and Vovk 2004, "On-line prediction with kernels and the complexity approximation principle"). H 2.5
    leaves such bounds open. For *any* stream, and `KRLS` with all points and memory 1. Both follow from an identity
    (Zhdanov and Kalnishkan 2013, "An identity for kernel ridge regression"): sum_t (y_t - f_t(x_t))^2 / (1 + d_t / s)
    is that minimum, and sum_t log(1 + d_t / s) is log det(I + K / s).

    >>> krls_regret(information=2.5, largest_target=1.0), krls_regret(information=2.5, largest_target=1.0, shrunk=True)
    (10.0, 2.5)
    """
    return (1.0 if shrunk else 4.0) * largest_target**2 * information


@checked
def hedge_regret(*, members: int, examples: int, rate: float, share: float, squared_ranges: float) -> float:
    """By how much the loss of `Hedge` may exceed that of any of its members.

    It is (log m + T log 1 / (1 - alpha)) / eta + eta / 8 sum_t s_t^2.
    The weights are a Bayesian mixture over all ways to switch between members; staying with one has the prior
    (1 - alpha)^T / m. What a mixture loses more than its mix loss is at most eta s_t^2 / 8 by Hoeffding's inequality.
    `Hedge` has `rate_`, `squared_ranges_`, `loss_` and `member_losses_`. For several targets, T is their number times
    that of the examples, and log m counts for each: the sum of their bounds.

    >>> round(hedge_regret(members=12, examples=1000, rate=2.0, share=0.001, squared_ranges=40.0), 2)
    11.74
    """
    return (math.log(members) - examples * math.log1p(-share)) / rate + 0.125 * rate * squared_ranges


# ---- New examples ----


@checked
def average_excess_risk(*, regret: float, examples: int, largest_risk: float, failure: float) -> float:
    """Bound on E R[f_average] - R[g] for every g, K Cor. 5 and I 3.2: regret/m + L sqrt(2 ln(1/delta)/m).

    For examples drawn independently from one distribution, a step ``InverseSqrt`` and ``average=True`` it holds with
    probability 1 - `failure` (delta): f_average is (f_1 + ... + f_m)/m. (K's sum stops at m - 1, which is no average.)
    R is what the `regret` is about: that of `norma_regret`, `ilk_regret` (I names the theorem of Cesa-Bianchi, Conconi
    and Gentile only), or `norma_window_regret`, where it holds for one of f_1, ..., f_m that is drawn at random as
    well. `largest_risk` (L) bounds R of all f_t on an example; see `hinge_risk_limit`. K fears that what a window drops
    may lead to larger norms, and omits the details. But the coefficients that any f_t could have add up to c/lambda in
    size, so |f_t| <= c X/lambda whichever of its terms are there.

    >>> regret = norma_regret(examples=10**6, step=0.7, regularization=1.0, radius=1.0)
    >>> round(average_excess_risk(regret=regret, examples=10**6, largest_risk=2.5, failure=0.05), 4)
    0.0118
    """
    return regret / examples + largest_risk * math.sqrt(2 * math.log(1 / failure) / examples)


@checked
def hinge_risk_limit(*, learner_margin: float, regularization: float, radius: float, penalty: float = 1.0) -> float:
    """L of K Cor. 5 and I 3.2 for the hinge: C (rho + C X^2/lambda) + C^2 X^2/(2 lambda), as |f| <= C X/lambda.

    K's 5 X^2/(2 lambda) is the same for the largest margin that can be reached, X^2/lambda, and C = 1.

    >>> hinge_risk_limit(learner_margin=1.0, regularization=1.0, radius=1.0)
    2.5
    """
    return penalty * learner_margin + 1.5 * (penalty * radius) ** 2 / regularization


# ---- Windows and truncation ----


@checked
def window_start(*, step: float, regularization: float, growth: float) -> float:
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
def norm_limit(*, regularization: float, radius: float, lipschitz: float = 1.0) -> float:
    """U = c X / lambda, K (34), and before (17) for the hinge.

    No hypothesis of NORMA, and no best function, has a larger norm. For ILK, c is the penalty C times the largest |l'|.

    >>> norm_limit(regularization=0.1, radius=1.0)
    10.0
    """
    return lipschitz * radius / regularization


@checked
def truncation_error(*, window: int, step: float, regularization: float, radius: float,
                     lipschitz: float = 1.0) -> float:
    """Bound on |f - f_trunc|, K Prop. 1, for NORMA with a fixed step: (1 - eta lambda)^tau c X / lambda.

    f_trunc is f without the terms older than the `window` (tau) latest examples, *with the same
    coefficients*. Two runs, one with `Window(tau)` and one without, may differ by more.

    >>> round(truncation_error(window=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.059
    """
    check_step("truncation_error", step, regularization)
    return (1 - step * regularization) ** window * lipschitz * radius / regularization


@checked
def implicit_truncation_error(*, terms: int, step: float, regularization: float, radius: float, penalty: float = 1.0,
                              lipschitz: float = 1.0) -> float:
    """Bound on |f - f_trunc| for ILK with a fixed step: (1 - tau)^omega C X / lambda.

    1 - tau = 1 / (1 + eta lambda), and f_trunc is f with its `terms` (omega) largest coefficients or its
    omega most recent ones, *the same coefficients* in both. A run of SILK may differ by more. There is no
    bound on the regret of SILK: the one that I prints after Thm 3 does not know omega, and a buffer of one
    term on orthogonal examples breaks it.

    >>> round(implicit_truncation_error(terms=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.076
    """
    return (1 + step * regularization) ** -float(terms) * penalty * lipschitz * radius / regularization
