"""A certificate for a finished run: what a learner did on a stream beside what the theorems allow."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.algorithms import ILK, NORMA, Perceptron
from onlinekernels.bounds.checks import COUNT, check
from onlinekernels.bounds.comparisons import description
from onlinekernels.bounds.mistakes import (
    ilk_mistakes_untuned, norma_hinge_loss_untuned, norma_margin_errors_untuned, norma_mistakes, norma_mistakes_untuned,
    perceptron_mistakes,
)
from onlinekernels.bounds.regrets import ilk_regret, norma_regret
from onlinekernels.base import docstrings
from onlinekernels.losses import Hinge, as_loss
from onlinekernels.base.params import Parameterized
from onlinekernels.steps import Fixed, InverseSqrt

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike

PENALTIES = np.geomspace(0.01, 1000.0, 11)  # of the functions to compare with: from short ones to those that fit
PASSES = 40
LEAST_NORM = 1e-9  # for the function 0: bounds ask for a norm that is positive, and any larger one will do


@dataclass(frozen=True)
class Certificate:
    """What is bounded, in words; what it was in a run; the smallest bound; and the theorem that it comes from."""

    what: str
    made: float
    allowed: float
    theorem: str


@dataclass(frozen=True)
class Audit:
    """What `audit` found.

    `mistakes` and `margin_errors` are M and M_rho, how often y f <= 0 and y f <= rho; `loss` is the learner's cumulative
    hinge loss at its own margin rho, `risk` the sum of its regularised risks C l(f_t(x_t), y_t) + lambda/2 |f_t|^2, and
    `norms` are |f_t| before each update. `certificates` are the bounds that apply, a list of `Certificate`.
    """

    mistakes: int
    margin_errors: int
    loss: float
    risk: float
    norms: np.ndarray = field(repr=False)
    certificates: list

    def __str__(self):
        first = (f"M {self.mistakes}, M_rho {self.margin_errors}, cumulative loss {self.loss:.4g}, "
                 f"sum of regularised risks {self.risk:.4g}")
        return "\n".join([first, *(f"{line.what:34} {line.made:>9.4g} of {line.allowed:>9.4g}  {line.theorem}"
                                   for line in self.certificates)])


@docstrings.like(Parameterized)
def audit(model: Any, X: ArrayLike, y: ArrayLike, *, segments: int = 1) -> Audit:
    """Run a learner on a stream, and put every bound that applies beside what it did.

    The run is that of a fresh copy: `model` itself stays as it is. Any function serves as a comparison, and the best
    ones are known in hindsight: they are computed here as support vector machines, for several penalties, and for each
    bound the one is taken that makes it smallest. This takes O(n^2) time and memory.

    Parameters
    ----------
    model : NORMA or ILK with the hinge loss, or Perceptron
        Without a budget, offset, class weights or scaling: the theorems are about the plain algorithms.
    X, y : array of shape (n, n_features), and n labels of two kinds
        The stream.
    segments : int, default=1
        The comparison may change at the ends of this many stretches of equal length. More of them fit better, and have
        a longer way. The best of 1 to `segments` is taken.

    Returns
    -------
    Audit
        Its text is a table.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import NORMA, Gaussian, Hinge, bounds
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> print(bounds.audit(NORMA(Hinge(0.5), Gaussian(0.5), step=0.5, regularization=0.001), X, y))
    M 30, M_rho 86, cumulative loss 33.97, sum of regularised risks 36.3
    mistakes                                  30 of     107.9  K (45)
    margin errors                             86 of     157.4  K (45)
    cumulative loss                        33.97 of     55.56  K (45)

    References
    ----------
    {K}
    """
    check("audit", "segments", segments, COUNT)
    model = type(model)(**model.get_params(deep=False))
    run = _Run(model, X, y)
    certificates = [line for line in _certificates(run, segments) if math.isfinite(line.allowed)]
    return Audit(run.mistakes, run.margin_errors, run.loss, run.risk, run.norms, certificates)


class _Run:
    """A run from the start, with all that the bounds ask for."""

    def __init__(self, model, X, y):
        _check_kind(model)
        X, classes = np.asarray(X, dtype=float), np.unique(y)
        if len(classes) != 2:
            raise ValueError(f"audit needs labels of two kinds. Got {len(classes)} of them instead.")
        self.signs = np.where(np.asarray(y) == classes[1], 1.0, -1.0)
        self.scores, self.norms = model.progressive(X, y, classes=classes, return_norms=True)
        state = model._state
        plan = state.plan
        if plan.offset:
            raise ValueError("No theorem knows the offset that a linear kernel has by default: give offset=False.")
        self.model, self.gram = model, state.kernel(X)
        self.step, self.regularization = plan.rule.step, float(plan.rule.regularization)
        self.penalty = float(model.penalty) if isinstance(model, ILK) else 1.0
        self.margin = float(state.loss.margin)
        margins = self.signs * self.scores
        self.mistakes, self.margin_errors = int((margins <= 0).sum()), int((margins <= self.margin).sum())
        self.loss = float(np.maximum(0.0, self.margin - margins).sum())
        self.risk = float(self.penalty * self.loss + self.regularization / 2 * (self.norms**2).sum())
        self.radius = math.sqrt(np.max(state.kernel.diagonal(X)))


def _check_kind(model):
    """The theorems are about plain algorithms."""
    if type(model) not in (NORMA, ILK, Perceptron):
        raise TypeError(f"audit knows NORMA, ILK and Perceptron. Got {type(model).__name__} instead.")
    plain = {"budget": (None,), "offset": (None, False), "class_weight": (None,), "scale": (False,), "update": (None,)}
    for name, values in plain.items():
        if getattr(model, name, values[0]) not in values:
            raise ValueError(f"No theorem knows {name}={getattr(model, name)!r}: audit needs {name}={values[0]!r}.")
    loss = getattr(model, "loss", None)
    if loss is not None and as_loss(loss, "audit").__class__ is not Hinge:
        raise ValueError(f"The bounds of audit are for the hinge loss. Got {loss!r} instead.")


def _certificates(run, segments):
    """The bounds that apply, each for the comparison that makes it smallest."""
    described = [_description(run, parts, penalty) for parts in range(1, segments + 1) for penalty in PENALTIES]
    moving, still = [about for about, _ in described], [pair for pair in described if pair[0]["path"] == 0]
    own = {"step": getattr(run.step, "rate", None), "regularization": run.regularization}
    if isinstance(run.model, Perceptron):
        yield Certificate("mistakes", run.mistakes, min(norma_mistakes(**about) for about, _ in still), "K Thm 3")
        freund = (perceptron_mistakes(radius=run.radius, margin=1.0, norm=about["norm"], deviation=deviation)
                  for about, deviation in still)
        yield Certificate("mistakes", run.mistakes, min(freund), "V Thm 1")
    elif isinstance(run.step, InverseSqrt):
        if run.regularization > 0 and (isinstance(run.model, ILK) or own["step"] * run.regularization <= 1):
            yield _of_risk(run, own)
    elif isinstance(run.step, Fixed):
        own["learner_margin"] = run.margin
        if isinstance(run.model, ILK):
            if run.margin > 0:
                bounds = [ilk_mistakes_untuned(**own, penalty=run.penalty, **about) for about in moving]
                yield Certificate("mistakes", run.mistakes, min(bounds), "I Thm 2, any step")
        elif own["step"] * run.regularization < 1:
            for what, made, limit in (
                ("mistakes", run.mistakes, norma_mistakes_untuned),
                ("margin errors", run.margin_errors, norma_margin_errors_untuned),
                ("cumulative loss", run.loss, norma_hinge_loss_untuned),
            ):
                yield Certificate(what, made, min(limit(**own, **about) for about in moving), "K (45)")


def _of_risk(run, own):
    """The sum of regularised risks against that of the best function, K Thm 4 and I Thm 3."""
    n, scale = len(run.signs), run.regularization
    best = machine(run.gram, run.signs, run.penalty / (n * scale), run.margin)
    missing = np.maximum(0.0, run.margin - run.signs * (run.gram @ best)).sum()
    least = run.penalty * missing + n * scale / 2 * (best @ run.gram @ best)
    if isinstance(run.model, ILK):
        excess, theorem = ilk_regret(examples=n, radius=run.radius, penalty=run.penalty, **own), "I Thm 3"
    else:
        excess, theorem = norma_regret(examples=n, radius=run.radius, **own), "K Thm 4"
    return Certificate("sum of regularised risks", run.risk, float(least + excess), theorem)


def _description(run, parts, penalty):
    """What the bounds ask about one machine per stretch, at margin 1; and the root of its squared losses."""
    functions, missing = [], np.zeros(len(run.signs))
    for stretch in np.array_split(np.arange(len(run.signs)), parts):
        function = np.zeros(len(run.signs))
        function[stretch] = machine(run.gram[np.ix_(stretch, stretch)], run.signs[stretch], penalty, 1.0)
        functions.append(function)
        missing[stretch] = np.maximum(0.0, 1.0 - run.signs[stretch] * (run.gram[stretch] @ function))
    about = description(np.array(functions), run.gram, missing, run.radius, 1.0)
    return {**about, "norm": max(about["norm"], LEAST_NORM)}, float(np.sqrt((missing**2).sum()))


def machine(gram, signs, penalty, margin):
    """Coefficients of the g that minimises |g|^2/2 + penalty * sum of hinge losses at the margin, nearly.

    By ascent along the coordinates of the dual. How near does not matter: every function is a comparison.

    >>> machine(np.eye(2), np.array([1.0, -1.0]), 0.25, 1.0).tolist()
    [0.25, -0.25]
    """
    coefficients, values = np.zeros(len(signs)), np.zeros(len(signs))
    sizes = np.maximum(np.diag(gram), np.finfo(float).tiny)
    for _ in range(PASSES if margin > 0 else 0):
        moved = 0.0
        for i, sign in enumerate(signs):
            old = sign * coefficients[i]
            new = min(penalty, max(0.0, old + (margin - sign * values[i]) / sizes[i]))
            if new != old:
                coefficients[i] = sign * new
                values += sign * (new - old) * gram[i]
                moved = max(moved, abs(new - old))
        if moved <= 1e-3 * penalty:
            break
    return coefficients
