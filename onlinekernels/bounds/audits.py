"""A certificate for a finished run: what a learner did on a stream beside what the theorems allow."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import losses
from onlinekernels.algorithms import ILK, KRLS, NORMA, Perceptron, Projection
from onlinekernels.bounds.checks import COUNT, check
from onlinekernels.bounds.comparisons import description
from onlinekernels.bounds.mistakes import (
    ilk_mistakes_untuned, norma_hinge_loss_untuned, norma_margin_errors_untuned, norma_mistakes, norma_mistakes_untuned,
    perceptron_mistakes, projection_loss, projection_mistakes,
)
from onlinekernels.bounds.regrets import ilk_regret, krls_regret, norma_regret, norma_window_regret, window_start
from onlinekernels.base import docstrings
from onlinekernels.base.params import Parameterized
from onlinekernels.budgets import Sublinear
from onlinekernels.losses import Hinge, Novelty, as_loss
from onlinekernels.steps import Fixed, InverseSqrt

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike

PENALTIES = np.geomspace(0.01, 1000.0, 11)  # of the functions to compare with: from short ones to those that fit
PASSES = 40
LEAST_NORM = 1e-9  # for the function 0: bounds ask for a norm that is positive, and any larger one will do
TUBES = (losses.Absolute, losses.Insensitive, losses.SquaredInsensitive)
LIPSCHITZ = {  # the largest |l'|, in all labels
    Hinge: 1.0, losses.Logistic: 1.0, Novelty: 1.0, losses.Absolute: 1.0, losses.Insensitive: 1.0, losses.Huber: 1.0,
    losses.Quantile: 1.0, losses.MulticlassHinge: math.sqrt(2.0), losses.MulticlassLogistic: math.sqrt(2.0),
}


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

    `mistakes` and `margin_errors` are M and M_rho, how often y f <= 0 and y f <= rho, None for losses without labels or
    without a margin. `loss` is the learner's cumulative loss, of the hinge at its own margin rho; `risk` the sum of its
    regularised risks C l(f_t(x_t), y_t) + lambda/2 |f_t|^2; `norms` are |f_t| before each update, None for `KRLS`.
    `certificates` are the bounds that apply, a list of `Certificate`.
    """

    mistakes: int | None
    margin_errors: int | None
    loss: float
    risk: float
    norms: np.ndarray | None = field(repr=False)
    certificates: list

    def __str__(self):
        counts = {"M": self.mistakes, "M_rho": self.margin_errors}
        first = [f"{name} {count}" for name, count in counts.items() if count is not None]
        first += [f"cumulative loss {self.loss:.4g}", f"sum of regularised risks {self.risk:.4g}"]
        lines = (f"{one.what:34} {one.made:>9.4g} of {one.allowed:>9.4g}  {one.theorem}" for one in self.certificates)
        return "\n".join([", ".join(first), *lines])


@docstrings.like(Parameterized)
def audit(model: Any, X: ArrayLike, y: ArrayLike | None = None, *, segments: int = 1) -> Audit:
    """Run a learner on a stream, and put every bound that applies beside what it did.

    The run is that of a fresh copy: `model` itself stays as it is. Any function serves as a comparison, and the best
    ones are known in hindsight: they are computed here, nearly, and for each bound the one is taken that makes it
    smallest. This takes O(n^2) time and memory, for `Projection` and `KRLS` O(n^3) time.

    ==============================  ======================================  ==================================
    learner                         what it asks for                        theorem
    ==============================  ======================================  ==================================
    `Perceptron`                                                            K Thm 3, V Thm 1
    `NORMA`, `ILK`                  `Hinge`, a fixed step                   K (45), I Thm 2
    `NORMA`, `ILK`                  a convex loss with a bounded slope,     K Thm 4, I Thm 3
                                    `InverseSqrt`
    `NORMA`                         that, and `Sublinear` with a start of   K Thm 6
                                    `window_start` or more
    `Projection`                    a function that fits all examples; in   H Thms 2 to 5
                                    a ball, all of a stretch
    `KRLS`                          every point: ``budget=None,             `krls_regret`
                                    tolerance=0.0``
    ==============================  ======================================  ==================================

    Parameters
    ----------
    model : NORMA, ILK, Perceptron, Projection or KRLS
        Without offset, class weights, scaling or another budget: the theorems are about the plain algorithms. A loss of
        one's own says by an attribute `lipschitz` how steep it is, and takes arrays.
    X, y : array of shape (n, n_features), and n labels or numbers; y is None for novelty detection
        The stream.
    segments : int, default=1
        The comparison may change at the ends of this many stretches of equal length. More of them fit better, and have
        a longer way. The best of 1 to `segments` is taken. Of a `Projection` in a ball, each of `segments` stretches
        is looked at.

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
    {K} {I} {V} {H}
    """
    check("audit", "segments", segments, COUNT)
    run = _Run(type(model)(**model.get_params(deep=False)), X, y)
    certificates = [line for line in THEOREMS[type(model)](run, segments) if math.isfinite(line.allowed)]
    return Audit(run.mistakes, run.margin_errors, run.total, run.risk, run.norms, certificates)


class _Run:
    """A run from the start, with all that the bounds ask for."""

    def __init__(self, model, X, y):
        _check_kind(model)
        X, loss = np.asarray(X, dtype=float), as_loss(model.loss, "audit")
        y = np.ones(len(X)) if loss.task == "novelty" else np.asarray(y)
        options, self.y = {}, y
        if loss.task in ("binary", "multiclass"):
            options["classes"], self.y = np.unique(y, return_inverse=True)
        if loss.task == "binary":
            if len(options["classes"]) != 2:
                raise ValueError(f"audit needs labels of two kinds. Got {len(options['classes'])} of them instead.")
            self.y = 2.0 * self.y - 1.0
        extra = "std" if isinstance(model, KRLS) else "norms"
        self.scores, found = model.progressive(X, y, **options, **{f"return_{extra}": True})
        state = model._state
        plan = state.plan
        if plan.offset:
            raise ValueError("No theorem knows the offset that a linear kernel has by default: audit needs "
                             "offset=False.")
        self.model, self.loss, self.gram = model, state.loss, state.kernel(X)
        self.norms, self.deviations = (None, found) if extra == "std" else (found, None)
        self.step, self.regularization = plan.rule.step, float(plan.rule.regularization)
        self.penalty = float(model.penalty) if isinstance(model, ILK) else 1.0
        self.radius = math.sqrt(np.max(state.kernel.diagonal(X)))
        self.mistakes = self.margin_errors = None
        if loss.task in ("binary", "novelty"):
            margins = self.y * self.scores
            self.mistakes = int((margins <= 0).sum())
            if loss.scalar_name == "margin":
                self.margin = float(loss.margin)
                self.margin_errors = int((margins <= self.margin).sum())
        elif loss.task == "multiclass":
            others = np.where(np.eye(self.scores.shape[1], dtype=bool)[self.y], -np.inf, self.scores).max(axis=1)
            self.mistakes = int((self.scores[np.arange(len(X)), self.y] <= others).sum())
        self.total = float(np.sum(self.loss.value(self.scores, self.y)))
        decayed = 0.0 if self.norms is None else self.regularization / 2 * (self.norms**2).sum()
        self.risk = float(self.penalty * self.total + decayed)


def _check_kind(model):
    """The theorems are about plain algorithms."""
    if type(model) not in THEOREMS:
        *names, last = (kind.__name__ for kind in THEOREMS)
        raise TypeError(f"audit knows {', '.join(names)} and {last}. Got {type(model).__name__} instead.")
    plain = {"budget": None, "offset": False, "class_weight": None, "scale": False, "scale_target": False,
             "encode": False, "labels": None, "update": None, "memory": 1.0}
    if isinstance(model, KRLS):
        plain["tolerance"] = 0.0
    for name, value in plain.items():
        given = getattr(model, name, value)
        allowed = given == value or given is None or name == "budget" and _is_window(model)
        if not allowed:
            raise ValueError(f"No theorem knows {name}={given!r}: audit needs {name}={value!r}.")
    if isinstance(model, KRLS) and model.noise == "auto":
        raise ValueError("No theorem knows noise='auto': audit needs a number.")
    loss = as_loss(model.loss, "audit")
    if isinstance(model, (NORMA, ILK)) and _lipschitz(loss) is None:
        raise ValueError(f"The theorems of audit need a loss that is convex and whose slope is bounded. Got {loss!r}.")
    if isinstance(model, Projection) and type(loss) not in (Hinge, Novelty, *TUBES):
        raise ValueError(f"The theorems of audit are about projections for two classes or numbers. Got {loss!r}.")


def _lipschitz(loss):
    """The largest |l'|; None if there is none, or nobody says so."""
    return LIPSCHITZ.get(type(loss), getattr(loss, "lipschitz", None))


def _is_window(model):
    """Whether it is NORMA with the window of K Thm 6."""
    if not isinstance(model, NORMA) or not isinstance(model.budget, Sublinear):
        return False
    growth, step = model.budget.exponent - 0.5, model.step
    needed = math.inf
    if 0 < growth < 0.5 and isinstance(step, InverseSqrt) and 0 < step.rate * model.regularization <= 1:
        needed = window_start(step=step.rate, regularization=model.regularization, growth=growth)
    if model.budget.start < needed:
        raise ValueError(f"K's theorem 6 asks for InverseSqrt, an exponent between 1/2 and 1, and a start of at least "
                         f"bounds.window_start(...) = {needed}. Got {model.budget!r}.")
    return True


# ---- The theorems, each for the comparison that makes it smallest ----


def _of_perceptron(run, segments):
    still = [_description(run, 1, penalty) for penalty in PENALTIES]
    yield Certificate("mistakes", run.mistakes, min(norma_mistakes(**about) for about, _ in still), "K Thm 3")
    freund = [
        perceptron_mistakes(radius=run.radius, margin=1.0, norm=about["norm"], deviation=deviation)
        for about, deviation in still
    ]
    yield Certificate("mistakes", run.mistakes, min(freund), "V Thm 1")


def _of_gradient(run, segments):
    """`NORMA` or `ILK`: risks against those of the best function, or mistakes and losses at a fixed step."""
    is_implicit, rate = isinstance(run.model, ILK), getattr(run.step, "rate", math.inf)
    own = {"step": rate, "regularization": run.regularization, **({"penalty": run.penalty} if is_implicit else {})}
    if isinstance(run.step, InverseSqrt) and run.regularization > 0 and (is_implicit or rate * run.regularization <= 1):
        explicit = (norma_regret, "K Thm 4") if run.model.budget is None else (norma_window_regret, "K Thm 6")
        regret, theorem = (ilk_regret, "I Thm 3") if is_implicit else explicit
        least = least_risk(run.gram, run.y, run.loss, run.penalty, run.regularization)
        excess = regret(examples=len(run.y), radius=run.radius, lipschitz=_lipschitz(run.loss), **own)
        yield Certificate("sum of regularised risks", run.risk, least + excess, theorem)
    elif isinstance(run.step, Fixed) and isinstance(run.loss, Hinge) and (
            run.margin > 0 if is_implicit else rate * run.regularization < 1):
        moving = [_description(run, parts, penalty)[0] for parts in range(1, segments + 1) for penalty in PENALTIES]
        for what, made, limit, theorem in ([
            ("mistakes", run.mistakes, ilk_mistakes_untuned, "I Thm 2, any step"),
        ] if is_implicit else [
            ("mistakes", run.mistakes, norma_mistakes_untuned, "K (45)"),
            ("margin errors", run.margin_errors, norma_margin_errors_untuned, "K (45)"),
            ("cumulative loss", run.total, norma_hinge_loss_untuned, "K (45)"),
        ]):
            least = min(limit(**own, learner_margin=run.margin, **about) for about in moving)
            yield Certificate(what, made, least, theorem)


def _of_projection(run, segments):
    """H Thms 2 and 3 for the whole stream, Thms 4 and 5 for each stretch that a function in the ball fits."""
    ball, is_tube = run.model.radius, isinstance(run.loss, TUBES)
    if not is_tube and run.margin == 0:
        return  # nothing is asked of a comparison
    for rows in np.array_split(np.arange(len(run.y)), 1 if ball is None else segments):
        gram, y, scores = run.gram[np.ix_(rows, rows)], run.y[rows], run.scores[rows]
        norm = max(shortest(gram, *interval(run.loss, y)), LEAST_NORM)
        if norm == math.inf or ball is not None and norm > ball:
            continue
        about = {"radius": math.sqrt(gram.diagonal().max()), "norm": norm, "ball": ball}
        where = "" if ball is None else f", rows {rows[0]} to {rows[-1]}"
        if is_tube:
            excess = np.maximum(0.0, np.abs(y - scores) - getattr(run.loss, "width", 0.0))
            theorem = "H Thm 3" if ball is None else "H Thm 5"
            yield Certificate(f"squared excess{where}", float(excess @ excess), projection_loss(**about), theorem)
        else:
            mistakes, allowed = int((y * scores <= 0).sum()), projection_mistakes(margin=run.margin, **about)
            yield Certificate(f"mistakes{where}", mistakes, allowed, "H Thm 2" if ball is None else "H Thm 4")


def _of_krls(run, segments):
    """Three forms of one identity; the best comparison has the risk noise y' (K + noise I)^-1 y."""
    noise, largest = float(run.model.noise), float(np.abs(run.y).max())
    regularised = run.gram + noise * np.eye(len(run.y))
    least = noise * float(run.y @ np.linalg.solve(regularised, run.y))
    information = float(np.linalg.slogdet(regularised / noise)[1])
    about = {"information": information, "largest_target": max(largest, LEAST_NORM)}
    for what, scores, allowed in (
        ("squared errors", run.scores, least * (1.0 + run.radius**2 / noise)),
        ("cut to the targets' range", np.clip(run.scores, -largest, largest), least + krls_regret(**about)),
        ("scores noise / (noise + variance)", run.scores * noise / (noise + run.deviations**2),
         least + krls_regret(**about, shrunk=True)),
    ):
        yield Certificate(what, float(((run.y - scores) ** 2).sum()), allowed, "krls_regret")


THEOREMS = {NORMA: _of_gradient, ILK: _of_gradient, Perceptron: _of_perceptron, Projection: _of_projection,
            KRLS: _of_krls}


# ---- The comparisons ----


def _description(run, parts, penalty):
    """What the bounds ask about one machine per stretch, at margin 1; and the root of its squared losses."""
    functions, missing = [], np.zeros(len(run.y))
    for stretch in np.array_split(np.arange(len(run.y)), parts):
        function, gram, signs = np.zeros(len(run.y)), run.gram[stretch], run.y[stretch]
        function[stretch] = machine(gram[:, stretch], *interval(Hinge(1.0), signs), penalty)
        functions.append(function)
        missing[stretch] = np.maximum(0.0, 1.0 - signs * (gram @ function))
    about = description(np.array(functions), run.gram, missing, run.radius, 1.0)
    return {**about, "norm": max(about["norm"], LEAST_NORM)}, float(np.sqrt((missing**2).sum()))


def interval(loss, y):
    """(lower, upper) ends of the scores that lose nothing.

    >>> interval(Hinge(0.5), np.array([1.0, -1.0]))
    (array([ 0.5, -inf]), array([ inf, -0.5]))
    """
    if isinstance(loss, TUBES):
        width = getattr(loss, "width", 0.0)
        return y - width, y + width
    return np.where(y > 0, loss.margin, -np.inf), np.where(y > 0, np.inf, -loss.margin)


def machine(gram, lower, upper, penalty, passes=PASSES):
    """Coefficients of the g that minimises |g|^2/2 + penalty * sum of distances to the intervals, nearly.

    By ascent along the coordinates of the dual. How near does not matter: every function is a comparison.

    >>> machine(np.eye(2), *interval(Hinge(1.0), np.array([1.0, -1.0])), 0.25).tolist()
    [0.25, -0.25]
    """
    coefficients, values = np.zeros(len(gram)), np.zeros(len(gram))
    sizes = np.maximum(np.diag(gram), np.finfo(float).tiny)
    for _ in range(passes):
        moved = 0.0
        for i, size in enumerate(sizes):
            old = coefficients[i]
            rest = values[i] - old * size
            new = (min(max(rest, lower[i]), upper[i]) - rest) / size
            new = min(penalty, max(-penalty, new))
            if new != old:
                coefficients[i] = new
                values += (new - old) * gram[i]
                moved = max(moved, abs(new - old))
        if moved <= 1e-3 * min(penalty, np.abs(coefficients).max()):
            break
    return coefficients


def least_risk(gram, y, loss, penalty, regularization):
    """The sum of regularised risks of a nearly best function, by conditional gradients on the dual.

    Here g = 1 is best, twice:

    >>> round(least_risk(np.ones((2, 2)), np.ones(2), Hinge(1.0), 1.0, 0.5), 1)
    0.5
    """
    outputs = (int(y.max()) + 1,) if loss.task == "multiclass" else ()
    coefficients, least = np.zeros((len(y), *outputs)), math.inf
    for t in range(PASSES * 5):
        scores = gram @ coefficients
        decayed = len(y) * regularization / 2 * (coefficients * scores).sum()
        least = min(least, float(penalty * np.sum(loss.value(scores, y)) + decayed))
        corner = -penalty / (len(y) * regularization) * loss.derivative(scores, y)
        coefficients += 2.0 / (t + 2.0) * (corner - coefficients)
    return least


def shortest(gram, lower, upper):
    """|g| of nearly the shortest g with values between; infinite if none is found.

    Machines that pay any price are tried, and ridge regressions, which get there where examples are nearly alike.

    >>> round(shortest(np.eye(2), *interval(Hinge(1.0), np.array([1.0, -1.0]))), 6)
    1.414214
    """
    width = upper - lower
    cones = np.isinf(width).all()  # then g may be scaled
    aims = np.where(np.isinf(upper), lower, upper) if cones else (lower + upper) / 2
    inside = 0.0 if cones else 5e-4 * width
    spectrum, vectors = np.linalg.eigh(gram)
    candidates = [machine(gram, lower + inside, upper - inside, math.inf, passes=3 * PASSES)]
    for ridge in np.geomspace(1e-10, 1.0, 11) * spectrum[-1]:
        candidates.append(vectors @ (vectors.T @ aims / (np.maximum(spectrum, 0.0) + ridge)))
    best = math.inf
    for coefficients in candidates:
        scale = float((gram @ coefficients / aims).min()) if cones else 1.0
        if scale > 0:
            values = gram @ coefficients / scale
            if np.abs(np.clip(values, lower, upper) - values).max() <= 1e-9 * np.abs(aims).max():
                best = min(best, math.sqrt(max(0.0, coefficients @ values / scale)))
    return best
