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
from onlinekernels.bounds import audits

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


# ---- The voted Perceptron -----------------------------------------------------------------------------------


@each("n, terms", [(8, 10), (9, 16), (15, 16), (12, 40), (16, 12)])
@each("flips", [0.0, 0.1, 0.4])
def test_random_removal_makes_no_more_mistakes_than_it_may_in_the_mean(n, terms, flips):
    """Orthogonal examples in turn, which only what is remembered of them can get right; g is c times their sum."""
    X, truth = np.tile(np.eye(n), (30, 1)), np.tile(np.where(np.arange(n) % 2, 1, -1), 30)
    y = truth * np.where(np.random.default_rng(1).random(len(truth)) < flips, -1, 1)
    scales = np.linspace(0.05, 3.0, 60)
    allowed = min(bounds.random_removal_mistakes(terms=terms, radius=1.0, margin=1.0, norm=scale * math.sqrt(n),
                                                 loss=np.maximum(0.0, 1 - scale * y * truth).sum()) for scale in scales)
    made = [mistakes(ok.Perceptron("linear", offset=False, budget=ok.RandomRemoval(terms, seed)), X, y)
            for seed in range(40)]
    assert np.mean(made) <= allowed + 4 * np.std(made) / math.sqrt(40)
    if n < terms and flips == 0.0:
        assert set(made) == {n} and allowed <= 1.1 * n      # the Perceptron's own bound, for the best of the scales
    one = dict(radius=1.0, margin=1.0, norm=math.sqrt(terms / 2))
    assert bounds.random_removal_mistakes(terms=terms, **one) == pytest.approx(terms / 2)
    m = bounds.random_removal_mistakes(terms=terms, loss=2.0 * terms, **one)   # the condition holds with equality there
    assert (m - 2 * terms)**2 == pytest.approx(terms / 2 * (m * m / terms + m / 2 - terms / 2))


def test_the_vote_errs_as_its_theorem_has_it():
    assert bounds.voted_perceptron_error(expected_mistakes=3.0, examples=99) == pytest.approx(2 * 3.0 / 100)
    assert bounds.voted_perceptron_error(expected_mistakes=1000.0, examples=99) == 1.0


# ---- Ensembles ----------------------------------------------------------------------------------------------


def test_a_vote_stays_below_its_bound():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1) * np.where(rng.random(150) < 0.1, -1, 1)
    y[:2] = -1, 1  # rows before both labels are known do not count
    members = [ok.NORMA("hinge", ok.Gaussian(0.7), step=1.0, regularization=z) for z in (0.0, 0.1, 0.4, 0.8)]
    least = min((member.progressive(X, y, classes=[-1, 1]) * y <= 0).sum() for member in members)
    vote = ok.Hedge([ok.evaluate.fresh_copy(member) for member in members], rate=0.5, share=0.01, votes=True)
    made = (vote.progressive(X, y, classes=[-1, 1], return_labels=True)[1] != y)[2:].sum()
    about = dict(members=4, examples=150, rate=0.5, share=0.01)
    assert least / 2 < made <= bounds.majority_mistakes(mistakes=least, **about)
    assert bounds.majority_mistakes(mistakes=0, **about) == pytest.approx(
        (math.log(4) - 150 * math.log(0.99)) / math.log(2 / (1 + math.exp(-0.5))))


# ---- Arguments ----------------------------------------------------------------------------------------------

GOOD = dict(radius=1.0, margin=2.0, loss=1.0, norm=1.0, path=0.5, squared_path=0.1, examples=10, step=0.5,
            regularization=0.5, learner_margin=1.0, lipschitz=1.0, penalty=1.0, window=5, terms=100, growth=0.3,
            largest_risk=1.0, failure=0.1, gap=1.0, complexity=1.0, ball=2.0, deviation=0.5, expected_mistakes=3.0,
            zero_margin=True, members=3, rate=1.0, share=0.01, squared_ranges=2.0,
            regret=1.0, labels=None, mistakes=3.0, information=2.0, largest_target=1.0, shrunk=True)
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
    if name not in ("zero_margin", "shrunk"):
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
    *((function, dict(learner_margin=1.0, **STREAM), "below the comparison's margin 1. Got 1.0")
      for function in (bounds.norma_margin_errors, bounds.tune_norma_margin_errors, bounds.norma_hinge_loss)),
    (bounds.projection_mistakes, dict(radius=1.0, norm=3.0, ball=2.0), "at most the radius 2 of the ball. Got 3.0"),
    (bounds.norma_mistakes, {**STREAM, "examples": 2.5}, "integer of at least 1. Got 2.5"),
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
    rho = getattr(model.loss, "margin", 1.0)
    for t in range(len(X)):
        if getattr(model, "budget", None) is not None:
            alpha[:max(0, t - model.budget.length(t + 1))] = 0.0
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


LIPSCHITZ = [ok.Hinge(0.5), ok.Logistic(), ok.Absolute(), ok.Insensitive(0.2), ok.Huber(0.5), ok.Quantile(0.8),
             ok.Novelty(0.7), ok.MulticlassHinge(0.5), ok.MulticlassLogistic()]
WINDOW = {"step": ok.InverseSqrt(0.9), "regularization": 1.0, "budget": ok.Sublinear(0.9, 26)}  # the least start


class LogCosh(ok.Loss):
    """A loss of one's own, which says how steep it is."""

    lipschitz = 1.0

    def value(self, score, y):
        return np.logaddexp(score - y, y - score) - np.log(2.0)

    def derivative(self, score, y):
        return np.tanh(score - y)


def audited(rng, kinds=3):
    """A model that audits take, with parameters by chance."""
    kernel = KERNELS[rng.integers(4)]
    lam, rho = float(rng.choice([0.001, 0.03, 0.3])), float(rng.choice([0.0, 0.3, 1.0]))
    step = float(rng.choice([0.05, 0.3, 1.0]))
    if rng.random() < 0.4:
        step = ok.InverseSqrt(step)
    kind = rng.integers(kinds)
    shared = dict(kernel=kernel, step=step, regularization=lam, offset=False)
    slow, loss = {**shared, "step": ok.InverseSqrt(1.0)}, [*LIPSCHITZ, LogCosh()][rng.integers(len(LIPSCHITZ) + 1)]
    ball, width = (None, 2.0, 20.0)[rng.integers(3)], float(rng.choice([0.0, 0.1, 0.5]))
    return [
        lambda: ok.Perceptron(kernel, offset=False),
        lambda: ok.NORMA(ok.Hinge(rho), **shared),
        lambda: ok.ILK(ok.Hinge(rho + 0.1), penalty=float(rng.choice([0.3, 1.0, 4.0])), **shared),
        lambda: ok.NORMA(loss, **slow),
        lambda: ok.ILK(loss, penalty=2.0, **slow),
        lambda: ok.NORMA(loss, kernel, offset=False, **WINDOW),
        lambda: ok.Projection(ok.Hinge(rho + 0.1), KERNELS[3], radius=ball, offset=False),
        lambda: ok.Projection(ok.SquaredInsensitive(width), KERNELS[3], radius=ball, offset=False),
        lambda: ok.KRLS("squared", kernel, noise=step if isinstance(step, float) else 2.0, budget=None, tolerance=0.0),
    ][kind]()


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


def targets_for(model, X, y):
    """What its loss learns: labels, numbers, nothing, or three classes."""
    task = {"squared": ok.Squared()}.get(model.loss, model.loss).task if hasattr(model, "loss") else "binary"
    numbers = y if isinstance(model, ok.KRLS) else np.sin(2.0 * X[:, 0]) - X[:, 1]
    classes = np.where(y > 0, "a", np.where(X[:, 0] > 0, "b", "c"))
    return {"binary": y, "regression": numbers, "novelty": None, "multiclass": classes}[task]


def test_an_audit_has_the_figures_of_a_plain_loop():
    rng = np.random.default_rng(5)
    for number in range(25):
        model, (X, y) = audited(rng), stream_by_chance(rng)
        if number % 5 == 0:
            (X, y), model = stream_by_chance(rng, 70), ok.NORMA("hinge", model.kernel, offset=False, **WINDOW)
        found = bounds.audit(model, X, y, segments=2)
        scores, norms = by_hand(model, X, y)
        rho = getattr(model.loss, "margin", 1.0)
        lam, C = getattr(model, "regularization", 0.0), getattr(model, "penalty", 1.0)
        loss = np.maximum(0.0, rho - y * scores).sum()
        assert found.norms == pytest.approx(norms, abs=1e-7)
        if np.abs(np.r_[y * scores, y * scores - rho]).min() > 1e-9 or isinstance(model, ok.Perceptron):
            assert (found.mistakes, found.margin_errors) == ((y * scores <= 0).sum(), (y * scores <= rho).sum())
        assert found.loss == pytest.approx(loss)
        assert found.risk == pytest.approx(C * loss + lam / 2 * (norms**2).sum(), abs=1e-7)
        assert not hasattr(model, "classes_"), "the model itself has not learned"


def test_an_audit_can_compare_with_the_function_0():
    """One example with both labels: nothing is better than 0."""
    X, y = np.ones((2, 1)), np.array([1, -1])
    for line in bounds.audit(ok.Perceptron(ok.Linear(), offset=False), X, y).certificates:
        assert line.made == 2 <= line.allowed


def worst_ratio(seeds, kinds=3):
    """The largest quotient of what was made and what is allowed, by what is bounded."""
    worst = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model, (X, y) = audited(rng, kinds), stream_by_chance(rng)
        for line in bounds.audit(model, X, targets_for(model, X, y), segments=3).certificates:
            key = type(model).__name__, line.what.split(",")[0], line.theorem
            worst[key] = max(worst.get(key, 0.0), line.made / line.allowed if line.allowed else float(line.made > 0))
    return worst


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_audits_never_find_a_bound_broken():
    worst = worst_ratio(range(24))
    assert len(worst) == 8 and max(worst.values()) <= 1 + 1e-12, worst
    worst = worst_ratio(range(220, 340), 9)
    assert len(worst) == 8 + 8 and max(worst.values()) <= 1 + 1e-9, worst


def alternating(n):
    """One example, whose label or number changes each time: the worst that an adversary can do to it."""
    return np.ones((n, 1)), np.where(np.arange(n) % 2, 1, -1)


@each("model, stream, nearly", [
    (ok.KRLS("squared", ok.Gaussian(), noise=0.1, budget=None, tolerance=0.0), alternating(300), 0.99),
    (ok.Projection(ok.Hinge(1.0), ok.Linear(), offset=False), (np.eye(15), np.where(np.arange(15) % 2, 1, -1)), 1.0),
    (ok.Projection(ok.SquaredInsensitive(0.5), ok.Linear(), offset=False), (np.eye(15), np.arange(15) + 1.0), 0.999),
    (ok.Perceptron(ok.Linear(), offset=False), (np.eye(15), np.where(np.arange(15) % 2, 1, -1)), 1.0),
])
def test_adversaries_reach_what_audits_allow(model, stream, nearly):
    ratios = [line.made / line.allowed for line in bounds.audit(model, *stream).certificates]
    assert nearly * (1 - 1e-9) <= max(ratios) <= 1 + 1e-9


@each("model, task", [
    *((ok.NORMA(loss, ok.Gaussian(), step=ok.InverseSqrt(1.0), regularization=1.0, offset=False), loss.task)
      for loss in [*LIPSCHITZ, LogCosh()]),
    (ok.ILK("logistic", ok.Gaussian(), step=ok.InverseSqrt(1.0), regularization=1.0, offset=False), "binary"),
    (ok.NORMA("hinge", ok.Gaussian(), offset=False, **WINDOW), "binary"),
    (ok.NORMA(ok.Hinge(0.5), ok.Gaussian(), step=0.1, regularization=0.0, offset=False), "binary"),
    (ok.ILK("hinge", ok.Gaussian(), step=0.5, regularization=0.0, offset=False), "binary"),
    (ok.Perceptron(ok.Gaussian(), offset=False), "binary"),
    (ok.Projection("hinge", ok.Gaussian(), offset=False), "binary"),
    (ok.Projection("hinge", ok.Gaussian(), radius=9.0, offset=False), "binary"),
    (ok.Projection(ok.Insensitive(0.3), ok.Gaussian(), offset=False), "regression"),
    (ok.Projection(ok.Insensitive(0.3), ok.Gaussian(), radius=9.0, offset=False), "regression"),
    (ok.KRLS("squared", ok.Gaussian(), noise=0.1, budget=None, tolerance=0.0), "regression"),
])
def test_an_audit_notices_a_learner_that_breaks_its_bound(model, task, monkeypatch):
    """The learner is made to be wrong on every example, and by much."""
    X = np.repeat([[-1.0, 0.0], [1.0, 0.0], [0.0, 9.0]], 100, axis=0)
    codes = np.repeat([0, 1, 1 if task == "binary" else 2], 100)
    y = {"binary": codes, "multiclass": codes, "regression": codes - 1.0, "novelty": None}[task]
    assert bounds.audit(model, X, y).certificates
    assert all(line.made <= line.allowed for line in bounds.audit(model, X, y).certificates)
    whole = type(model).progressive

    def wrong(self, *data, **options):
        scores, more = whole(self, *data, **options)
        if task == "multiclass":
            return 99.0 * (np.arange(3) != codes[:, None]), more
        return {"binary": 99.0 - 198.0 * codes, "novelty": -99.0 * np.ones(300)}.get(task, 99.0 - 0.0 * scores), more

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "progressive", wrong)
        found = bounds.audit(model, X, y).certificates
    assert found and all(line.made > line.allowed for line in found)


def test_krls_meets_the_identity_behind_its_bounds():
    """Zhdanov and Kalnishkan: sum (y - f)^2 / (1 + d / s) is the least sum (y - g)^2 + s |g|^2, on any stream."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, _ = stream_by_chance(rng)
        kernel, noise, y = KERNELS[seed % 4], float(rng.choice([0.05, 1.0, 9.0])), rng.normal(size=len(X))
        model = ok.KRLS("squared", kernel, noise=noise, budget=None, tolerance=0.0)
        scores, deviations = model.progressive(X, y, return_std=True)
        root = np.linalg.svd(kernel(X))
        features = root[0] * np.sqrt(root[1])  # kernel(X) = features features'
        system = np.vstack([features, math.sqrt(noise) * np.eye(len(X))])
        least = np.linalg.lstsq(system, np.append(y, 0.0 * y), rcond=None)[1].sum()
        assert ((y - scores)**2 / (1 + deviations**2 / noise)).sum() == pytest.approx(least, rel=1e-7)
        information = np.linalg.slogdet(np.eye(len(X)) + kernel(X) / noise)[1]
        assert np.log1p(deviations**2 / noise).sum() == pytest.approx(information, rel=1e-7)


def test_the_comparisons_are_nearly_the_best_functions():
    """Beside scipy's minimisers: the least regularised risk, and the shortest function that fits."""
    from scipy.optimize import minimize
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 2))
    gram, y = ok.Laplacian(1.0)(X), np.where(rng.random(20) < 0.5, -1.0, 1.0)
    for loss, targets in ((ok.Logistic(), y), (ok.Huber(0.3), X[:, 0])):
        best = minimize(lambda a: 2.0 * loss.value(gram @ a, targets).sum() + 20 * 0.05 / 2 * a @ gram @ a,
                        np.zeros(20), method="BFGS").fun
        assert best * (1 - 1e-6) <= audits.least_risk(gram, targets, loss, 2.0, 0.05) <= 1.02 * best
    for loss, targets in ((ok.Hinge(0.7), y), (ok.Insensitive(0.2), X[:, 0]), (ok.Absolute(), X[:, 0])):
        low, high = audits.interval(loss, targets)
        fits = [{"type": "ineq", "fun": lambda a, end=end, sign=sign: (sign * (gram @ a - end))[np.isfinite(end)]}
                for end, sign in ((low, 1.0), (high, -1.0))]
        best = minimize(lambda a: a @ gram @ a, np.linalg.solve(gram, targets), constraints=fits, method="SLSQP").fun
        assert math.sqrt(best) * (1 - 1e-4) <= audits.shortest(gram, low, high) <= 1.02 * math.sqrt(best)


@each("model, error, message", [
    (ok.SVMD(), TypeError, "audit knows NORMA, ILK, Perceptron, Projection and KRLS. Got SVMD"),
    (ok.NORMA("squared"), ValueError, "convex and whose slope is bounded. Got Squared"),
    (ok.NORMA("nuhinge"), ValueError, "convex and whose slope is bounded. Got NuHinge"),
    (ok.NORMA("hinge", budget=5), ValueError, "No theorem knows budget=5: audit needs budget=None"),
    (ok.NORMA("hinge", step=ok.InverseSqrt(0.9), regularization=1.0, budget=ok.Sublinear(0.9, 25)), ValueError,
     r"a start of at least bounds.window_start\(...\) = 26"),
    (ok.NORMA("hinge", step=0.9, regularization=1.0, budget=ok.Sublinear(0.9, 26)), ValueError, "asks for InverseSqrt"),
    (ok.ILK("hinge", budget=ok.Sublinear(0.9, 26)), ValueError, "No theorem knows budget"),
    (ok.Projection("multiclass_hinge"), ValueError, "projections for two classes or numbers. Got MulticlassHinge"),
    (ok.KRLS(), ValueError, "audit needs budget=None"),
    (ok.KRLS(budget=None), ValueError, "audit needs tolerance=0.0"),
    (ok.KRLS(budget=None, tolerance=0.0, memory=0.9), ValueError, "audit needs memory=1.0"),
    (ok.KRLS(budget=None, tolerance=0.0, noise="auto"), ValueError, "audit needs a number"),
])
def test_audits_that_are_refused(model, error, message):
    with pytest.raises(error, match=message):
        bounds.audit(model, [[0.0], [1.0]], [-1, 1])
