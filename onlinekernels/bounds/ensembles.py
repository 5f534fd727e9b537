"""What an ensemble may lose more than its best member."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlinekernels.algorithms.norma import RATE, drift_rates
from onlinekernels.bounds.checks import NOT_NEGATIVE, bound, checked
from onlinekernels.bounds.comparisons import least_mistakes
from onlinekernels.bounds.norma import energy_of
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


@checked
def hedge_regret(*, members: int, examples: int, rate: float, share: float, squared_ranges: float) -> Any:
    """By how much the loss of `Hedge` may exceed that of any of its members: (log m + T log 1 / (1 - alpha)) / eta + eta / 8 sum_t s_t^2.

    The weights are a Bayesian mixture over all ways to switch between members; staying with one has the prior
    (1 - alpha)^T / m. What a mixture loses more than its mix loss is at most eta s_t^2 / 8 by Hoeffding's inequality.
    `Hedge` has `rate_`, `squared_ranges_`, `loss_` and `member_losses_`. For several targets, T is their number times
    that of the examples, and log m counts for each: the sum of their bounds.

    >>> round(hedge_regret(members=12, examples=1000, rate=2.0, share=0.001, squared_ranges=40.0), 2)
    11.74
    """
    return (math.log(members) - examples * math.log1p(-share)) / rate + 0.125 * rate * squared_ranges


@bound(share=NOT_NEGATIVE)
def majority_mistakes(*, mistakes: float, members: int, examples: int, rate: float, share: float = 0.0) -> Any:
    """Bound on the mistakes of `Hedge` with votes, if a member makes so many: (eta M + log m + T log 1 / (1 - alpha)) / log(2 / (1 + exp(-eta))).

    When the vote is wrong, so is half of all weight, or more, of which exp(-eta) is left: all weight falls to (1 +
    exp(-eta)) / 2 or less. That of a member that makes M mistakes is (1 - alpha)^T exp(-eta M) / m or more (Littlestone
    and Warmuth 1994, Herbster and Warmuth 1998). Rows before both, or all, labels are known do not count.

    >>> round(majority_mistakes(mistakes=100, members=10, examples=1000, rate=0.5), 1)
    238.7
    """
    weights = rate * mistakes + math.log(members) - examples * math.log1p(-share)
    return weights / math.log(2.0 / (1.0 + math.exp(-rate)))


@bound
def self_tuned_mistakes(*, longest: int, rate: float = RATE, radius: float, margin: float, loss: float, norm: float,
                        path: float = 0.0, squared_path: float = 0.0, examples: int) -> Any:
    """Bound on the mistakes of `NORMA.self_tuning` and `ILK.self_tuning`, which know nothing of the comparison.

    The best of their drift rates z makes at most min over z of K/mu + 2 C(z)/mu^2 + 2 sqrt(C(z)/mu^2 (K/mu +
    C(z)/mu^2)) mistakes, where C(z) = X^2/4 (B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z)); the vote as many as
    `majority_mistakes` allows for that.

    >>> from onlinekernels.bounds import norma_mistakes
    >>> stream = dict(radius=1.0, margin=1.0, loss=10.0, norm=3.0, path=20.0, squared_path=0.5, examples=1000)
    >>> round(self_tuned_mistakes(longest=1000, **stream)), round(norma_mistakes(**stream))
    (370, 155)
    """
    if examples > longest:
        raise bad_parameter("self_tuned_mistakes", "longest", f"at least examples = {examples}", longest)
    rates = drift_rates(longest)
    best = min(least_mistakes(margin, loss, radius**2 / 4 * energy_of(z, norm, path, squared_path, examples)) for z in rates)
    return majority_mistakes(mistakes=best, members=len(rates), examples=examples, rate=rate, share=1.0 / longest)
