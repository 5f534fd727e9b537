"""What an ensemble may lose more than its best member."""
import math

from onlinekernels.bounds.checks import checked


@checked
def hedge_regret(*, members, examples, rate, share, squared_ranges):
    """By how much the loss of `Hedge` may exceed that of any of its members: (log m + T log 1 / (1 - alpha)) / eta + eta / 8 sum_t s_t^2.

    The weights are a Bayesian mixture over all ways to switch between members; staying with one has the prior
    (1 - alpha)^T / m. What a mixture loses more than its mix loss is at most eta s_t^2 / 8 by Hoeffding's inequality. `Hedge` has `rate_`,
    `squared_ranges_`, `loss_` and `member_losses_`. For several targets, T is their number times that of the examples, and log m
    counts for each: the sum of their bounds.

    >>> round(hedge_regret(members=12, examples=1000, rate=2.0, share=0.001, squared_ranges=40.0), 2)
    11.74
    """
    return (math.log(members) - examples * math.log1p(-share)) / rate + 0.125 * rate * squared_ranges
