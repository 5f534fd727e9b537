"""Projections and Perceptrons: mistakes and loss."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.bounds.checks import bound, checked
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


@bound
def projection_mistakes(*, radius: float, norm: float, ball: float | None = None, margin: float = 1.0) -> Any:
    """Bound on the mistakes of Herbster's projection algorithm for two classes, H Thms 2 and 4.

    R^2 |u|^2 / margin^2, for every u with y u(x) >= margin on all examples; `norm` is |u| (or |u - w_1|, for
    another start than 0). H has margin 1.

    With hypotheses kept in the ball |w| <= gamma it is R^2 (gamma + |u|)^2 / margin^2 for *any* stretch of
    the stream, if |u| <= gamma; u need fit this stretch only, and R is the radius of the stretch.

    >>> projection_mistakes(radius=1.0, norm=3.0)
    9.0
    >>> projection_mistakes(radius=1.0, norm=3.0, ball=4.0)
    49.0
    """
    return _projection("projection_mistakes", radius, norm, ball) / margin ** 2


@bound
def projection_loss(*, radius: float, norm: float, ball: float | None = None) -> Any:
    """Bound on sum_t max(0, |y_t - w_t(x_t)| - width)^2 of the projection algorithm, H Thms 3, 5 and 6.

    R^2 |u|^2 for every u with |y - u(x)| <= width on all examples, and R^2 (gamma + |u|)^2 for any
    stretch if hypotheses are kept in a ball; see `projection_mistakes`. R^2 = max K(x, x); H Thm 6 prints R.

    >>> projection_loss(radius=2.0, norm=3.0)
    36.0
    """
    return _projection("projection_loss", radius, norm, ball)


def _projection(owner, radius, norm, ball):
    if ball is not None and norm > ball:
        raise bad_parameter(owner, "norm", f"at most the radius {ball:g} of the ball", norm)
    distance = norm if ball is None else norm + ball
    return radius ** 2 * distance ** 2


@bound
def perceptron_mistakes(*, radius: float, margin: float, norm: float = 1.0, deviation: float = 0.0) -> Any:
    """Bound on the mistakes of the Perceptron, V Thm 1: ((R |theta| + D) / gamma)^2.

    D is the `deviation` sqrt(sum_t max(0, gamma - y_t theta(x_t))^2) of a function theta with norm |theta|.
    D = 0 is Novikoff's theorem; otherwise it is Freund and Schapire's, for streams that cannot be
    separated. `norma_mistakes` with the sum of the deviations as `loss` holds too: take the smaller.

    >>> perceptron_mistakes(radius=1.0, margin=0.25)
    16.0
    >>> perceptron_mistakes(radius=1.0, margin=0.25, deviation=0.5)
    36.0
    """
    return ((radius * norm + deviation) / margin) ** 2


@checked
def voted_perceptron_error(*, expected_mistakes: float, examples: int) -> Any:
    """Bound on the probability that the voted Perceptron errs on a new example, V Thm 2: 2 E[bound]/(m + 1).

    After one pass over m independent examples. `expected_mistakes` is the expectation of
    `perceptron_mistakes` over draws of m + 1 examples, for the best theta and gamma of each draw. At most 1.

    >>> voted_perceptron_error(expected_mistakes=16.0, examples=999)
    0.032
    """
    return min(1.0, 2 * expected_mistakes / (examples + 1))
