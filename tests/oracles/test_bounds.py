"""The theorems as functions: every bound holds on every run that it applies to, and means what it says.

Three kinds of tests: *runs* of the library, random and adversarial, that a bound must survive; *tight* cases,
where a run meets the bound or the proof's own sum does, so that a bound that is too generous shows as well;
and *counterexamples* to forms that are printed but wrong.
"""
import inspect
import math

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import bounds

KERNELS = [ok.Linear(), ok.Gaussian(0.7), ok.Polynomial(2, scale=0.5), ok.Laplacian(0.5),
           ok.Gaussian(1.0) + ok.Noise(0.3)]


# ---- Streams with a comparison that is known ----------------------------------------------------------------


def still(rng, n):
    """Coefficients of one function, on a few of n points."""
    coefficients = np.zeros(n)
    coefficients[rng.choice(n, 5, replace=False)] = rng.normal(size=5)
    return coefficients


def mistakes(model, X, y):
    return int((model.progressive(X, y, classes=[-1, 1]) * y <= 0).sum())


def orthogonal(n):
    """n examples that have nothing to do with each other: (kernel, X, y)."""
    return ok.Precomputed(np.eye(n)), np.arange(n).reshape(-1, 1), np.where(np.arange(n) % 3, 1, -1)


# ---- K Thms 2 and 3 -----------------------------------------------------------------------------------------


def test_tuned_parameters_are_the_theorems():
    stream = dict(radius=2.0, margin=1.5, loss=3.0, norm=4.0, path=5.0, squared_path=0.6, examples=250)
    C = 2.0 ** 2 / 4 * (4.0 ** 2 + 4.0 * (math.sqrt(250 * 0.6) + 5.0))  # (31)
    assert bounds.complexity(**{k: v for k, v in stream.items() if k not in ("margin", "loss")}) == pytest.approx(C)

    def h(x):
        return math.sqrt(C / 3.0 * (x + C / 3.0)) - C / 3.0  # (30)

    def norma(rho, share):
        full = 2 * share / 2.0 ** 2
        lam = math.sqrt(0.6 / 250) / (4.0 * full)  # (32)
        return pytest.approx((rho, full / (1 + full * lam), lam))

    def numbers(tuned):
        return tuned["loss"].margin, tuned["step"], tuned["regularization"]

    assert numbers(bounds.tune_norma_margin_errors(learner_margin=0.4, **stream)) == norma(0.4, h(1.1))
    assert numbers(bounds.tune_norma_mistakes(**stream)) == norma(1.5 - h(1.5), h(1.5))
    assert numbers(bounds.tune_norma_mistakes(**stream, zero_margin=True)) == norma(0.0, h(1.5))
    implicit = bounds.tune_ilk_mistakes(**stream, penalty=7.0)
    eta = 2 * h(1.5) / (7.0 * 2.0 ** 2)
    lam = math.sqrt(0.6 / 250) / (4.0 * eta)
    assert numbers(implicit) == pytest.approx((eta * 7.0 * 2.0 ** 2 / (1 + eta * lam), eta, lam))
    assert implicit["penalty"] == 7.0


@each("zero_margin", [False, True])
def test_theorem_3_is_met_with_equality_by_orthogonal_examples(zero_margin):
    kernel, X, y = orthogonal(25)
    against = bounds.comparison(kernel, X, y, 0.3 * y, margin=0.3)
    assert bounds.norma_mistakes(**against) == pytest.approx(25)
    tuned = bounds.tune_norma_mistakes(**against, zero_margin=zero_margin)
    assert mistakes(ok.NORMA(kernel=kernel, **tuned), X, y) == 25
    assert mistakes(ok.ILK(kernel=kernel, **bounds.tune_ilk_mistakes(**against)), X, y) == 25


def test_orthogonal_examples_meet_all_other_bounds():
    """Each is a mistake, or loses all that there is to lose."""
    kernel, X, y = orthogonal(15)
    long, numbers = math.sqrt(15.0), y.astype(float)
    for count, bound in (
        (mistakes(ok.Perceptron(kernel), X, y), bounds.perceptron_mistakes(radius=1.0, margin=1.0, norm=long)),
        (mistakes(ok.Projection(ok.Hinge(1.0), kernel), X, y), bounds.projection_mistakes(radius=1.0, norm=long)),
        (((NORMA_squared(kernel, 1.0).progressive(X, numbers) - y) ** 2).sum(),
         bounds.norma_squared_loss(step=1.0, radius=1.0, norm=long, squared_loss=0.0)),
    ):
        assert count == 15 == pytest.approx(bound)
    losses = np.maximum(0, np.abs(y - projected_targets(kernel, X, numbers, 0.25, None)) - 0.25) ** 2
    assert losses.sum() == pytest.approx(bounds.projection_loss(radius=1.0, norm=0.75 * long))


def circling(turn, norm, n):
    """Functions of equal norm and speed, for which the proof's inequalities are equalities: (lengths, moves)."""
    angles = turn * np.arange(n)
    functions = norm * np.column_stack([np.cos(angles), np.sin(angles)])
    moves = np.linalg.norm(np.diff(functions, axis=0), axis=1)
    return np.linalg.norm(functions, axis=1), np.append(moves, 0.0)  # g_{m+1} = g_m


@each("step, lam, rho, penalty", [(0.2, 0.3, 0.1, 1.0), (0.2, 0.3, 2.5, 4.0), (0.05, 2.0, 0.6, 0.5)])
def test_bounds_for_any_parameters_are_the_best_that_the_proof_gives(step, lam, rho, penalty):
    """The inequality of the proof summed over t, for the comparison times c, and the smallest over many c."""
    radius, margin, loss = 1.5, 0.7, 3.0
    norms, moves = circling(0.02, 2.0, 50)
    scales = np.linspace(0.01, 60, 600_001)

    def smallest(z, largest, sure, least_margin):
        paid = norms[0] ** 2 + ((moves ** 2 / z + 2 * moves * norms + z * norms ** 2) / (2 + z)).sum()  # (43), (45)
        gained = sure * (2 * scales * margin - sure * radius ** 2)
        allowed = (scales * margin >= least_margin) & (gained > 0)
        return ((2 * largest * scales * loss + scales ** 2 * paid) / gained)[allowed].min()

    about = dict(step=step, regularization=lam, learner_margin=rho, radius=radius, margin=margin, loss=loss, norm=2.0,
                 path=moves.sum(), squared_path=(moves ** 2).sum(), examples=50)
    full = step / (1 - step * lam)
    expected = smallest(full * lam, full, full, rho + full * radius ** 2 / 2)
    assert bounds.norma_mistakes_untuned(**about) == pytest.approx(expected, rel=1e-3)
    reach = (1 + step * lam) * rho
    expected = smallest(step * lam, step * penalty, min(step * penalty, reach / radius ** 2), reach)
    assert bounds.ilk_mistakes_untuned(**about, penalty=penalty) == pytest.approx(expected, rel=1e-3)


# ---- ILK ----------------------------------------------------------------------------------------------------


STRUCTURES = [
    ok.Taxonomy.from_paths(["a/b/1", "a/b/2", "a/c", "d/1", "d/2"]),
    ok.LabelGraph([("S", "M", 1.0), ("M", "L", 0.5), ("L", "XL", 2.0)]),
    ok.Labels([0, 1, 2], distance=[[0, 2, 5], [1, 0, 3], [4, 1, 0]], kernel=[[2, 1, 0], [1, 2, 0], [0, 0, 1]]),
    ["x", "y", "z", "w"],
]


def of_labels(rng, kernel, structure, moves, flips, n=60):
    """A stream of labels, a comparison for it, and the same in plain loops."""
    is_list = isinstance(structure, list)
    names = structure if is_list else structure.names()
    L, X = len(names), rng.normal(size=(n, 2))
    A = np.array([still(rng, n) for _ in range(L)])
    if moves:
        A = A + np.linspace(0, 1, n)[:, None, None] * np.array([still(rng, n) for _ in range(L)])
    gram = kernel(X)
    kappa = np.eye(L) if is_list or isinstance(structure, ok.LabelGraph) else (
        structure.kernels() if isinstance(structure, ok.Labels) else
        np.array([[structure.kernel(a, b) for b in names] for a in names]))
    functions = np.broadcast_to(A, (n, L, n))
    scores = np.array([kappa @ (functions[t] @ gram[t]) for t in range(n)])
    y = np.where(rng.random(n) < flips, rng.integers(L, size=n), scores.argmax(axis=1))
    margin = float(rng.choice([0.02, 0.2, 0.7]))
    about = bounds.comparison(kernel, X, [names[place] for place in y], A, margin=margin, labels=structure)
    return X, y, names, about, (functions, gram, kappa, scores, margin)


def distance_of(structure, a, b):
    if isinstance(structure, list):
        return float(a != b)
    if isinstance(structure, ok.Labels):
        return structure.distances()[structure.labels.index(a), structure.labels.index(b)]
    return structure.distance(a, b)


@each("structure", STRUCTURES, ids=lambda structure: type(structure).__name__)
def test_comparison_of_labels_adds_up(structure):
    rng = np.random.default_rng(5)
    for moves in (False, True):
        X, y, names, about, (functions, gram, kappa, scores, margin) = of_labels(
            rng, ok.Gaussian(0.8), structure, moves, 0.2)
        n, L = scores.shape

        def inner(A, B):
            return sum(kappa[a, b] * (A[a] @ gram @ B[b]) for a in range(L) for b in range(L))

        losses = [max([0.0] + [margin * distance_of(structure, names[y[t]], names[l]) + scores[t, l] - scores[t, y[t]]
                               for l in range(L) if l != y[t]]) for t in range(n)]
        lengths = [math.sqrt(max(0.0, inner(functions[t + 1] - functions[t], functions[t + 1] - functions[t])))
                   for t in range(n - 1)]
        pairs = [(a, b) for a in range(L) for b in range(L) if a != b]
        assert about == pytest.approx({
            "radius": math.sqrt(max(kappa[a, a] + kappa[b, b] - 2 * kappa[a, b] for a, b in pairs)),
            "margin": margin * min(distance_of(structure, names[a], names[b]) for a, b in pairs),
            "loss": sum(losses), "examples": n, "norm": math.sqrt(max(inner(f, f) for f in functions)),
            "path": sum(lengths), "squared_path": sum(length**2 for length in lengths)}, rel=1e-9, abs=1e-9)


def mistakes_among(model, X, y, names):
    scores = model.progressive(X, [names[place] for place in y], classes=names)
    scores = scores[:, [list(model.classes_).index(name) for name in names]]
    own = scores[np.arange(len(y)), y].copy()
    scores[np.arange(len(y)), y] = -np.inf
    return int((own <= scores.max(axis=1)).sum())


def test_structured_labels_meet_theorem_2_with_equality():
    """Orthogonal examples of two labels that are d apart, which separate with margin d."""
    kernel, X, _ = orthogonal(16)
    labels = ok.Labels(["a", "b"], distance=[[0, 3], [3, 0]])
    y = np.arange(16) % 2
    A = np.array([np.where(y == place, 1.5, -1.5) for place in (0, 1)])
    about = bounds.comparison(kernel, X, ["ab"[place] for place in y], A, margin=1.0, labels=labels)
    assert (about["loss"], about["margin"]) == (0.0, 3.0) and bounds.ilk_mistakes(**about) == pytest.approx(16)
    for make, tune in ((ok.ILK, bounds.tune_ilk_mistakes), (ok.NORMA, bounds.tune_norma_mistakes)):
        assert mistakes_among(make(kernel=kernel, **tune(**about, labels=labels)), X, y, ["a", "b"]) == 16


@each("weight, regret", [(4, bounds.norma_regret), (20, bounds.norma_window_regret)])
def test_regret_is_the_sum_of_the_proof(weight, regret):
    """(49) divided by eta_t and summed, before sums become integrals; 20 is what Theorem 6 needs at most."""
    lam, c, X, eta, n = 0.3, 1.7, 2.0, 1.1, 40_000
    U, steps = c * X / lam, eta / np.sqrt(np.arange(1, n + 2))
    drift = np.diff(1 / steps) * (2 * U) ** 2
    proof = (weight * steps[:-1] * c ** 2 * X ** 2 + drift).sum() / 2 + U ** 2 / (2 * eta)
    closed = regret(examples=n, step=eta, regularization=lam, radius=X, lipschitz=c)
    assert proof <= closed <= 1.01 * proof
    constant = 2 * closed - regret(examples=4 * n, step=eta, regularization=lam, radius=X, lipschitz=c)
    assert constant == pytest.approx(U ** 2 / (2 * eta), rel=1e-6)  # b: what does not grow
    fixed = dict(examples=10**12, regularization=0.4, radius=1.0)
    for tuned, tunable in ((bounds.tune_norma_regret(regularization=0.4), bounds.norma_regret),
                           (bounds.tune_norma_window(regularization=0.4), bounds.norma_window_regret),
                           (bounds.tune_ilk_regret(regularization=0.4, penalty=3.0), bounds.ilk_regret)):
        best = tunable(step=tuned["step"].rate, **fixed)
        assert all(tunable(step=factor * tuned["step"].rate, **fixed) > best for factor in (0.9, 0.99, 1.01, 1.1))
    if regret is bounds.norma_regret:
        assert closed == pytest.approx(bounds.ilk_regret(examples=n, step=eta, regularization=lam, radius=X, penalty=c))


# ---- Windows and truncation ---------------------------------------------------------------------------------


@each("growth", [0.15, 0.2, 0.25, 0.3, 0.4, 0.45])
@each("product", [0.3, 0.5, 0.8, 0.95, 1.0])
def test_window_start_is_the_first_t_of_the_three_conditions(product, growth):
    t = np.arange(1.0, 300_001.0)
    fails = (np.exp(-product * t ** growth) > product / np.sqrt(t)) | (np.ceil(t ** (0.5 + growth)) > 0.75 * t)
    found = bounds.window_start(step=2 * product, regularization=0.5, growth=growth)
    assert found > len(t) if fails[-1] else found == int(t[fails][-1]) + 1
    if found < 2**40:  # what the window drops is then as small as the theorem needs
        budget = bounds.tune_norma_window(regularization=0.5, growth=growth, step=2 * product)["budget"]
        assert (budget.exponent, budget.start) == (0.5 + growth, found)


def norm_of(model, keep):
    """|f - f_trunc| for the terms to keep."""
    coefficients = model.dual_coef_[0].copy()
    coefficients[keep] = 0.0
    return math.sqrt(max(0.0, coefficients @ model.kernel(model.support_vectors_) @ coefficients))


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_truncation_error_is_met_by_one_point_that_never_reaches_its_margin():
    X, y = np.zeros((400, 1)), np.ones(400, dtype=int)
    numbers = dict(step=0.5, regularization=0.1, radius=1.0)
    for make, bound in ((ok.NORMA, bounds.truncation_error(window=20, **numbers)),
                        (ok.ILK, bounds.implicit_truncation_error(terms=20, **numbers))):
        model = make(ok.Hinge(11.0), ok.Gaussian(), step=0.5, regularization=0.1).fit(X, y)
        assert 0.999 * bound < norm_of(model, keep=np.arange(380, 400)) < bound
        assert 0.999 * bounds.norm_limit(regularization=0.1, radius=1.0) < model.norm_ < 10.0


def test_excess_risk_is_regret_plus_the_tail_of_a_martingale():
    tail = bounds.average_excess_risk(regret=35.0, examples=500, largest_risk=4.0, failure=0.02) - 35.0 / 500
    assert math.exp(-500 * tail ** 2 / (2 * 4.0 ** 2)) == pytest.approx(0.02)  # Azuma, differences of at most L


def projected_targets(kernel, X, y, width, ball):
    return ok.Projection(ok.SquaredInsensitive(width), kernel, radius=ball).progressive(X, y)


def test_a_turn_meets_the_local_bound():
    """From -u to u across the ball: H Thm 5 with equality. R^2 is K(x, x), not R as printed in H Thm 6."""
    kernel, X = ok.Linear(), np.full((2, 1), 2.0)
    y = np.array([-6.0, 6.0])  # u = 3 or -3, R = 2
    losses = (y - projected_targets(kernel, X, y, 0.0, 3.0)) ** 2
    assert losses[1] == pytest.approx(bounds.projection_loss(radius=2.0, norm=3.0, ball=3.0))
    printed = math.sqrt(2.0 ** 2) * (3.0 + 3.0) ** 2
    assert losses[1] > printed


@each("alpha", [0.2, 0.6, 1.0])
def test_almas_bound_is_what_the_proof_allows(alpha):
    """The product with a comparison of length 1 grows at least like this, and must not exceed 1: Gentile's proof."""
    B, C = math.sqrt(8) / alpha, math.sqrt(2)
    product = 0.0
    for k in range(1, 3000):
        longest = math.sqrt(1 + (2 * (1 - alpha) * B * C + C**2) / k)
        product = (product + C / math.sqrt(k)) / longest        # times the margin
        if product >= 1:
            assert k <= bounds.alma_corrections(alpha=alpha, margin=1 / product) <= 3 * k + 200 / alpha


def NORMA_squared(kernel, step):
    return ok.NORMA("squared", kernel, step=step, regularization=0.0)


def test_what_follows_from_other_bounds():
    """The tuned step of gradient descent is the best one; the vote errs as V Thm 2 has it."""
    about = dict(radius=1.3, norm=2.0, squared_loss=5.0)
    step = bounds.tune_norma_squared_loss(**about)["step"]
    best = bounds.norma_squared_loss(step=step, **about)
    assert best == pytest.approx((math.sqrt(5.0) + 1.3 * 2.0) ** 2)
    assert all(bounds.norma_squared_loss(step=factor * step, **about) > best for factor in (0.9, 0.99, 1.01, 1.1))
    assert bounds.voted_perceptron_error(expected_mistakes=3.0, examples=99) == pytest.approx(2 * 3.0 / 100)
    assert bounds.voted_perceptron_error(expected_mistakes=1000.0, examples=99) == 1.0


# ---- Arguments ----------------------------------------------------------------------------------------------

GOOD = dict(radius=1.0, margin=2.0, loss=1.0, norm=1.0, path=0.5, squared_path=0.1, examples=10, step=0.5,
            regularization=0.5, learner_margin=1.0, lipschitz=1.0, penalty=1.0, window=5, terms=100, growth=0.3,
            largest_risk=1.0, failure=0.1, gap=1.0, complexity=1.0, ball=2.0, deviation=0.5, expected_mistakes=3.0,
            zero_margin=True, alpha=0.5, squared_loss=1.0, members=3, rate=1.0, share=0.01, squared_ranges=2.0,
            regret=1.0, labels=None, longest=20, mistakes=3.0,)
FUNCTIONS = [getattr(bounds, name) for name in bounds.__all__
             if name not in ("comparison", "audit", "Audit", "Certificate")]
CASES = [(function, name) for function in FUNCTIONS for name in inspect.signature(function).parameters]


@each("function, name", CASES, ids=[f"{function.__name__}-{name}" for function, name in CASES])
def test_bad_arguments_are_named(function, name):
    good = {key: GOOD[key] for key in inspect.signature(function).parameters}
    function(**good)
    for value in (-1.0, math.nan, math.inf, "1", [1.0]):
        with pytest.raises(ValueError) as error:
            function(**{**good, name: value})
        assert f"'{name}' parameter of {function.__name__} must be" in str(error.value)
        assert repr(value) in str(error.value)
    if name != "zero_margin":
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            function(**{**good, name: True})


STREAM = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=9)
TWO = ([[1.0], [2.0]], [-1, 1])
NAMES = dict(margin=1.0, labels=["a", "b"])


@each("function, arguments, message", [
    (bounds.norma_regret, dict(examples=5, step=3.0, regularization=0.5, radius=1.0), "1 / regularization = 2"),
    (bounds.truncation_error, dict(window=5, step=3.0, regularization=0.5, radius=1.0), "1 / regularization = 2"),
    (bounds.window_start, dict(step=3.0, regularization=0.5, growth=0.2), "1 / regularization = 2"),
    (bounds.norma_mistakes_untuned, dict(step=2.0, regularization=0.5, learner_margin=0.0, **STREAM),
     "1 / regularization = 2"),
    (bounds.norma_squared_loss, dict(step=0.5, radius=2.0, norm=1.0, squared_loss=0.0),
     "below 2 / radius\\^2 = 0.5. Got 0.5"),
    *((function, dict(learner_margin=1.0, **STREAM), "below the comparison's margin 1. Got 1.0")
      for function in (bounds.norma_margin_errors, bounds.tune_norma_margin_errors, bounds.norma_hinge_loss)),
    (bounds.projection_mistakes, dict(radius=1.0, norm=3.0, ball=2.0), "at most the radius 2 of the ball. Got 3.0"),
    (bounds.norma_mistakes, {**STREAM, "examples": 2.5}, "integer of at least 1. Got 2.5"),
    (bounds.forgetron_mistakes, dict(terms=82, norm=0.1),
     "'terms' parameter of forgetron_mistakes must be at least 83"),
    (bounds.forgetron_mistakes, dict(terms=1000, norm=3.04), "'norm' parameter of forgetron_mistakes must be at most"),
    (bounds.tune_norma_mistakes, dict(zero_margin=True, labels=["a", "b"], **STREAM),
     "zero_margin=True is for two classes"),
])
def test_other_refusals(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


@each("X, y, coefficients, more, message", [
    (TWO[0], [0, 1], [1.0, 0.0], dict(margin=1.0), "each -1 or 1"),
    (*TWO, [1.0, 0.0, 0.0], dict(margin=1.0), r"shape \(2,\) for one function or \(2, 2\).* Got shape \(3,\)"),
    (*TWO, [1.0, np.nan], dict(margin=1.0), "finite"),
    (*TWO, [1.0, 0.0], dict(margin=0), "'margin' parameter of comparison must be a positive number. Got 0"),
    (TWO[0], ["a", "q"], np.zeros((2, 2)), NAMES, "'y' parameter of comparison must be 2 labels, each one of"),
    (TWO[0], ["a", "b"], np.zeros(2), NAMES, r"must have shape \(2, 2\) for one function or \(2, 2, 2\)"),
    (TWO[0], ["a", "b"], np.zeros((2, 2)), {**NAMES, "labels": ok.Labels(["a", "b"], distance=np.zeros((2, 2)))},
     "at distance 0"),
])
def test_comparisons_that_are_refused(X, y, coefficients, more, message):
    with pytest.raises(ValueError, match=message):
        bounds.comparison("linear", X, y, coefficients, **more)


class TestTightBounds:
    """One example, one mistake: no bound that is tight may round to less than 1."""

    def test_mistakes(self):
        rng = np.random.default_rng(0)
        for _ in range(2000):
            radius, scale = rng.uniform(0.01, 10, size=2)
            norm = scale / radius  # radius * norm = margin: one mistake
            stream = dict(radius=radius, margin=scale, loss=0.0, norm=norm, examples=1)
            assert bounds.norma_mistakes(**stream) >= 1
            assert bounds.ilk_mistakes(**stream) >= 1
            assert bounds.projection_mistakes(radius=radius, norm=norm, margin=scale) >= 1
            assert bounds.perceptron_mistakes(radius=radius, norm=norm, margin=scale) >= 1
            step = rng.uniform(0.01, 0.5) * scale / radius**2
            untuned = dict(step=step, regularization=0.0, **stream)
            assert bounds.norma_mistakes_untuned(learner_margin=0.0, **untuned) >= 1
            assert bounds.norma_margin_errors(learner_margin=scale / 2, **stream) >= 4

# ---- Audits -------------------------------------------------------------------------------------------------


def by_hand(model, X, y):
    """f_t(x_t) and |f_t| of NORMA, ILK and the Perceptron, from their definitions, by double sums."""
    gram, alpha, found = model.kernel(X), np.zeros(len(X)), []
    lam, C = getattr(model, "regularization", 0.0), getattr(model, "penalty", 1.0)
    rho = model.loss.margin if hasattr(model, "loss") else 0.0
    for t in range(len(X)):
        score, norm = gram[t] @ alpha, math.sqrt(max(0.0, alpha @ gram @ alpha))
        found.append((score, norm))
        eta = getattr(model, "step", 1.0)
        eta = eta if isinstance(eta, float) else eta.rate / math.sqrt(t + 1)
        if isinstance(model, ok.ILK):
            alpha /= 1 + eta * lam
            size = np.clip((rho - y[t] * score / (1 + eta * lam)) / gram[t, t], 0.0, eta * C / (1 + eta * lam))
        else:
            alpha *= 1 - eta * lam
            size = eta * (y[t] * score <= rho)
        alpha[t] = y[t] * size
    return np.array(found).T


def audited(rng):
    """A model that audits take, with parameters by chance."""
    kernel = KERNELS[rng.integers(4)]
    lam, rho = float(rng.choice([0.001, 0.03, 0.3])), float(rng.choice([0.0, 0.3, 1.0]))
    step = float(rng.choice([0.05, 0.3, 1.0]))
    if rng.random() < 0.4:
        step = ok.InverseSqrt(step)
    kind = rng.integers(3)
    if kind == 0:
        return ok.Perceptron(kernel, offset=False)
    shared = dict(kernel=kernel, step=step, regularization=lam, offset=False)
    if kind == 1:
        return ok.NORMA(ok.Hinge(rho), **shared)
    return ok.ILK(ok.Hinge(rho + 0.1), penalty=float(rng.choice([0.3, 1.0, 4.0])), **shared)


def stream_by_chance(rng, n=40):
    X = rng.uniform(-1, 1, size=(n, 2)) if rng.random() < 0.5 else rng.integers(-1, 2, size=(n, 2)).astype(float)
    angle = rng.choice([0.0, 1.0, 3.0]) * np.arange(n) / n
    noise = rng.choice([0.0, 0.3]) * rng.normal(size=n)
    y = np.where(X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + noise > 0, 1, -1)
    if rng.random() < 0.2:
        y = np.where(np.arange(n) % 2, 1, -1)
    y[0], y[1] = 1, -1  # both kinds
    X[np.abs(X).max(axis=1) == 0] = 0.5  # k(x, x) = 0 for the linear kernel
    return X, y


def test_an_audit_has_the_figures_of_a_plain_loop():
    rng = np.random.default_rng(5)
    for _ in range(25):
        model, (X, y) = audited(rng), stream_by_chance(rng)
        found = bounds.audit(model, X, y, segments=2)
        scores, norms = by_hand(model, X, y)
        rho = model.loss.margin if hasattr(model, "loss") else 0.0
        lam, C = getattr(model, "regularization", 0.0), getattr(model, "penalty", 1.0)
        loss = np.maximum(0.0, rho - y * scores).sum()
        assert found.norms == pytest.approx(norms, abs=1e-7)
        if np.abs(np.r_[y * scores, y * scores - rho]).min() > 1e-9 or isinstance(model, ok.Perceptron):
            assert (found.mistakes, found.margin_errors) == ((y * scores <= 0).sum(), (y * scores <= rho).sum())
        assert found.loss == pytest.approx(loss)
        assert found.risk == pytest.approx(C * loss + lam / 2 * (norms**2).sum(), abs=1e-7)
        assert not hasattr(model, "classes_"), "the model itself has not learned"


def worst_ratio(seeds):
    """The largest quotient of what was made and what is allowed, by what is bounded."""
    worst = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model, (X, y) = audited(rng), stream_by_chance(rng)
        for line in bounds.audit(model, X, y, segments=3).certificates:
            key = type(model).__name__, line.what, line.theorem
            worst[key] = max(worst.get(key, 0.0), line.made / line.allowed if line.allowed else float(line.made > 0))
    return worst


def test_audits_never_find_a_bound_broken():
    worst = worst_ratio(range(24))
    assert len(worst) == 8 and max(worst.values()) <= 1 + 1e-12, worst
