"""Self-tuning by doubling: a learner for each power of two that the best parameter might be, and a vote among them."""
import math
import numbers

from onlinekernels.base.validation import bad_parameter, check_positive

__all__ = ["RATE", "drift_rates", "self_tuned"]

RATE = 0.5  # of the votes


def drift_rates(examples):
    """z = 0, and 2, 1, 1/2, 1/4, ... down to 1 / examples or less: sqrt(D2 / m) / B of K (32) is near one of them.

    A sequence of functions of norm B that moves by at most 2 B at a time has sqrt(D2 / m) / B <= 2; one below 1 / m has moved so
    little that it need not be followed.

    >>> drift_rates(8)
    [0.0, 2.0, 1.0, 0.5, 0.25, 0.125]
    """
    return [0.0, *(2.0**-power for power in range(-1, math.ceil(math.log2(examples)) + 1))]


def self_tuned(owner, make, radius, examples, rate):
    """Learners for all drift rates z that vote; ``make(z, radius^2)`` gives one."""
    from onlinekernels.ensemble.stacking import Hedge  # few programs need it

    if not check_positive.accepts(radius):
        raise bad_parameter(owner, "radius", check_positive.expected, radius)
    if not isinstance(examples, numbers.Integral) or isinstance(examples, bool) or examples < 2:
        raise bad_parameter(owner, "examples", "an integer of at least 2", examples)

    members = {f"z={z:g}": make(z, float(radius) ** 2) for z in drift_rates(int(examples))}
    return Hedge(members, rate=rate, share=1.0 / int(examples), votes=True)
