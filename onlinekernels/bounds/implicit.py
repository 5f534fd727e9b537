"""ILK: mistakes and regret."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.bounds.checks import NOT_NEGATIVE, POSITIVE, bound, checked
from onlinekernels.bounds.norma import energy_of, excess_of, mistakes_at_best_scale, norma_mistakes, regret_of

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


@bound
def ilk_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                 squared_path: float = 0.0, examples: int) -> Any:
    """Bound on the mistakes of ILK tuned by `tune_ilk_mistakes`, I Thm 2: the number of `norma_mistakes`.

    I states it for every eta, which is false. With eta C X^2 = 2 h(mu, K, S) and the margin
    rho = eta C X^2/(1 + eta lambda) every mistake makes a full step and K's proof goes through. The loss of the
    comparison is the hinge loss at the margin mu, without C. (I's own mu is 0 whenever Delta is constant.)

    For many labels, radius^2 bounds k((x,y),(x,y)) - 2 k((x,y),(x,l)) + k((x,l),(x,l)) for all labels l; with the delta
    kernel that is 2 k(x, x). A mistake is then f(x, y) <= f(x, l) for some l. With a graph hinge, whose margin over l
    is rho Delta(y, l) (`GraphHinge` has rho = 1), let d be the smallest distance of two labels, K the comparison's
    graph hinge loss at mu, and put mu d and rho d in the place of both margins: `comparison` and `tune_ilk_mistakes` do
    so if they are told the `labels`. (The proof goes on as for two classes, since whichever label r the step is taken
    against, a step that is not after a mistake ends at rho Delta(y, r) <= mu Delta(y, r) at most, and after a mistake
    against l it has (1 + eta lambda) rho Delta(y, l), or more, to make good for. I's step against a single runner-up is
    meant, exact=False.)

    >>> ilk_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    """
    return norma_mistakes(radius=radius, margin=margin, loss=loss, norm=norm, path=path,
                          squared_path=squared_path, examples=examples)


@bound(regularization=NOT_NEGATIVE, learner_margin=POSITIVE)
def ilk_mistakes_untuned(*, step: float, regularization: float, learner_margin: float, penalty: float = 1.0,
                         radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                         squared_path: float = 0.0, examples: int) -> Any:
    """Bound on the mistakes of ILK with the hinge loss and *any* fixed step, lambda, margin and penalty.

    Let R = (1 + eta lambda) rho. A mistake gets a coefficient of at least b = min(eta C, R/X^2) before it
    shrinks. If R <= mu, other updates cannot lead away from the comparison, and

        M <= (2 eta C K + E) / (b (2 mu - b X^2)),    E as in `norma_mistakes_untuned` with z = eta lambda

    The comparison is scaled as there, so that any margin will do. For small steps the bound grows like
    1/eta, and so can the mistakes.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=1000)
    >>> ilk_mistakes_untuned(step=1.0, regularization=0.0, learner_margin=1.0, **stream)
    9.0
    >>> round(ilk_mistakes_untuned(step=0.01, regularization=0.0, learner_margin=1.0, **stream))
    452
    """
    reach = (1 + step * regularization) * learner_margin
    sure = min(step * penalty, reach / radius ** 2)
    energy = energy_of(step * regularization, norm, path, squared_path, examples)
    return mistakes_at_best_scale(step * penalty, sure, reach, energy, radius, margin, loss)


@bound
def ilk_regret(*, examples: int, step: float, regularization: float, radius: float, penalty: float = 1.0,
               lipschitz: float = 1.0) -> Any:
    """Bound on sum_t R_t(f_t) - sum_t R_t(g) for every g, I Thm 3: a sqrt(T) + b.

    For ILK with ``InverseSqrt(step)``, R_t(f) = lambda/2 |f|^2 + C L(f(x_t), y_t), and U = C X / lambda,
    a = 4 eta C^2 X^2 + 2 U^2/eta, b = U^2/(2 eta). Any positive step will do. For `MulticlassHinge` X^2 is
    2 max k(x, x): the right label against any other. (I prints a difference that is 0 for every kernel.)

    >>> ilk_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0, penalty=2.0)
    2404.0
    """
    return regret_of(2.0, examples, step, regularization, penalty * lipschitz * radius / regularization)


@checked
def ilk_average_excess_risk(*, examples: int, step: float, regularization: float, radius: float, largest_risk: float,
                            failure: float, penalty: float = 1.0, lipschitz: float = 1.0) -> Any:
    """Bound on E R(f_average) - 1/T sum_t R_t(g) for every g, I 3.2: `ilk_regret`/T + L sqrt(2 ln(1/delta)/T).

    For examples drawn independently from one distribution it holds with probability 1 - `failure` (delta), for ILK with
    ``InverseSqrt(step)`` and ``average=True``. R is that of `ilk_regret`, and `largest_risk` (L) bounds R of all f_t;
    see `hinge_risk_limit`. I names it only: its Theorem 3 in Corollary 2 of Cesa-Bianchi, Conconi and Gentile.

    >>> excess = ilk_average_excess_risk(examples=10**6, step=0.7, regularization=1.0, radius=1.0,
    ...                                  largest_risk=2.5, failure=0.05)
    >>> round(excess, 4)
    0.0118
    """
    regret = ilk_regret(
        examples=examples, step=step, regularization=regularization, radius=radius, penalty=penalty, lipschitz=lipschitz)
    return excess_of(regret, examples, largest_risk, failure)
