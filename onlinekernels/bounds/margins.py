"""The margin classics and gradient descent for numbers: mistakes, corrections, and squared loss."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlinekernels.bounds.checks import bound, checked
from onlinekernels.losses import Squared
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

LEAST_TERMS = 83  # from which the Forgetron's theorem holds


@bound
def alma_corrections(*, alpha: float, margin: float, norm: float = 1.0, loss: float = 0.0) -> Any:
    """Bound on the corrections of ALMA, and so on its mistakes, for separated streams and others (Gentile 2001).

    g is margin / norm, in the space of `Normalized(kernel)`, where all examples have length 1, and D = loss / norm over
    all passes. For any comparison

        D/g + r^2/2 + sqrt(r^4/4 + r^2 D/g + r^2),    r = (8/alpha - 6) / (sqrt(2) g)

    as sqrt(k) times the product of w and the comparison gains C (g - d_k) with correction k, and the norm that is
    divided by is at most sqrt(1 + (8/alpha - 6)/k). If the examples are separated, D = 0, there is 2/g^2 (2/alpha -
    1)^2 + 8/alpha - 4 as well, whatever the number of passes, and the smaller one is taken; the margin of w comes to (1
    - alpha) g. For the B and C of the original.

    >>> alma_corrections(alpha=0.5, margin=0.25)
    300.0
    >>> round(alma_corrections(alpha=1.0, margin=0.25, loss=20.0), 1)
    149.4
    """
    share = margin / norm
    lost, rate = loss / margin, (8 / alpha - 6) / (math.sqrt(2) * share)
    noisy = lost + rate**2 / 2 + math.sqrt(rate**4 / 4 + rate**2 * (lost + 1))
    return noisy if loss else min(noisy, 2 * ((2 / alpha - 1) / share) ** 2 + 8 / alpha - 4)


@bound
def ballseptron_mistakes(*, ball_radius: float, radius: float, margin: float, norm: float, loss: float = 0.0,
                         ball_updates: int | None = None) -> Any:
    """Bound on the mistakes M of the Ballseptron, which also makes N updates for balls that are cut.

    A mistake adds at least mu - d_t to u.w for the comparison u, an update with a ball mu - r |u| - d_t, where the d_t
    add up to K. A mistake adds at most R^2 to |w|^2, and a ball R^2 - r^2 if |w| >= r; otherwise |w|^2 <= R^2 + r^2
    afterwards. As the first update is a mistake,

        mu M + (mu - r |u|) N - K <= |u| sqrt(R^2 M + (R^2 - r^2) N + c),    c = max(0, 2 r^2 - R^2)

    for r < R, and without c if N = 0, where it is the Perceptron's. If N is not given, this is the largest M for any N;
    it is infinite if r |u| >= mu. Shalev-Shwartz and Singer (2005) have the idea.

    >>> ballseptron_mistakes(ball_radius=0.1, radius=1.0, margin=1.0, norm=4.0, ball_updates=0)
    16.0
    >>> round(ballseptron_mistakes(ball_radius=0.1, radius=1.0, margin=1.0, norm=4.0, ball_updates=10), 3)
    13.243
    >>> round(ballseptron_mistakes(ball_radius=0.1, radius=1.0, margin=1.0, norm=4.0), 3)
    16.0
    """
    gain = margin - ball_radius * norm
    reach = (radius * norm) ** 2
    growth = radius**2 - ball_radius**2  # of |w|^2 by a ball
    start = max(0.0, 2 * ball_radius**2 - radius**2)
    if growth <= 0:  # balls larger than the data: their updates do not add to R^2 M, but for the first
        growth, start = 0.0, ball_radius**2

    def most(updates):
        """The larger solution M of the inequality as an equation."""
        given = updates * gain - loss
        square = growth * updates + (start if updates or ball_updates is None else 0.0)
        inside = reach**2 - 4 * margin * given * reach + (2 * margin * norm) ** 2 * square
        return max(0.0, reach - 2 * margin * given + math.sqrt(max(0.0, inside))) / (2 * margin**2)

    if ball_updates is not None:
        return most(ball_updates)
    if gain <= 0:
        return math.inf
    # The best N for an adversary makes the square root this long; once it is longer without any, N = 0.
    length = norm * growth / (2 * gain)
    turn = (length**2 - start) / radius**2
    if most(0) >= turn:
        return most(0)
    slope = margin - gain * radius**2 / growth
    if slope <= 0:
        return turn
    return min(turn, (loss + norm**2 * growth / (4 * gain) + gain * start / growth) / slope)


@bound
def forgetron_mistakes(*, terms: int, norm: float, margin: float = 1.0, loss: float = 0.0) -> Any:
    """Bound on the mistakes of the self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008): 2 |g|^2 + 4 K.

    For k(x, x) <= 1 and all comparisons with |g| <= 1/4 sqrt((B + 1) / ln(B + 1)), where B is the number of `terms`, at
    least 83.
    |g| and K are divided by the margin first. No budget can do better than of the order of sqrt(B): B + 1 examples that
    have nothing to do with each other are right with |g| = sqrt(B + 1), and B terms know nothing of one of them.

    >>> forgetron_mistakes(terms=1000, norm=3.0, loss=2.0)
    26.0
    """
    if terms < LEAST_TERMS:
        raise bad_parameter("forgetron_mistakes", "terms", f"at least {LEAST_TERMS}", terms)
    most = math.sqrt((terms + 1) / math.log(terms + 1)) / 4
    if norm / margin > most:
        raise bad_parameter("forgetron_mistakes", "norm", f"at most {most * margin:g} for this budget and margin", norm)
    return 2 * (norm / margin) ** 2 + 4 * loss / margin


@bound
def norma_squared_loss(*, step: float, radius: float, norm: float, squared_loss: float) -> Any:
    """Bound on sum_t (y_t - f_t(x_t))^2 of gradient descent, the GD algorithm of H 2.3 (Cesa-Bianchi, Long and Warmuth).

    For `NORMA` with the squared loss, no regularization and a fixed step with eta X^2 < 2, and for *any* function u and
    stream. With b = 2 - eta X^2 and the comparison's L = sum_t (y_t - u(x_t))^2 it is

        ((sqrt(L) + sqrt(L + b |u|^2 / eta)) / b)^2

    >>> norma_squared_loss(step=1.0, radius=1.0, norm=3.0, squared_loss=0.0)
    9.0
    >>> norma_squared_loss(step=0.75, radius=1.0, norm=3.0, squared_loss=1.0)
    16.0
    """
    rest = 2 - step * radius**2
    if rest <= 0:
        raise bad_parameter("norma_squared_loss", "step", f"below 2 / radius^2 = {2 / radius**2:g}", step)
    return ((math.sqrt(squared_loss) + math.sqrt(squared_loss + rest * norm**2 / step)) / rest) ** 2


@checked
def tune_norma_squared_loss(*, radius: float, norm: float, squared_loss: float) -> Any:
    """The parameters of `NORMA` for which `norma_squared_loss` is least: it becomes (sqrt(L) + X |u|)^2.

    eta X^2 = X |u| / (X |u| + sqrt(L)).

    >>> tune_norma_squared_loss(radius=1.0, norm=3.0, squared_loss=1.0)
    {'loss': Squared(), 'step': 0.75, 'regularization': 0.0, 'offset': False}
    """
    length = radius * norm
    step = length / (length + math.sqrt(squared_loss)) / radius**2
    return {"loss": Squared(), "step": step, "regularization": 0.0, "offset": False}
