"""The theorems as functions: every bound holds on every run that it applies to, and means what it says.

Three kinds of tests: *runs* of the library, random and adversarial, that a bound must survive; *tight* cases,
where a run meets the bound or the proof's own sum does, so that a bound that is too generous shows as well;
and *counterexamples* to forms that are printed but wrong.
"""
import inspect
import math

import numpy as np
import pytest
from cases import covering, each

import onlinekernels as ok
from onlinekernels import bounds
from onlinekernels.bounds import audits

KERNELS = [
    ok.Linear(), ok.Gaussian(0.7), ok.Polynomial(2, scale=0.5), ok.Laplacian(0.5), ok.Gaussian(1.0) + ok.Noise(0.3)
]
SEEDS = range(8)


# ---- Streams with a comparison that is known ----------------------------------------------------------------


def still(rng, n):
    """Coefficients of one function, on a few of n points."""
    coefficients = np.zeros(n)
    coefficients[rng.choice(n, 5, replace=False)] = rng.normal(size=5)
    return coefficients


def drifting(rng, n):
    """One function per example: a random walk from one function towards another."""
    return still(rng, n) + np.linspace(0, 1, n)[:, None] * still(rng, n) + 0.01 * rng.normal(size=(n, n)).cumsum(axis=0)


def switching(rng, n):
    """One function, then another one."""
    return np.where(np.arange(n)[:, None] < n // 2, still(rng, n), still(rng, n))


def labelled(rng, kernel, motion, flips, n=70):
    """A stream and a comparison for it; `flips` is the fraction of labels against the comparison."""
    X = rng.normal(size=(n, 2))
    coefficients = motion(rng, n)
    scores = (kernel(X) * np.broadcast_to(coefficients, (n, n))).sum(axis=1)
    y = np.where(scores >= 0, 1, -1) * np.where(rng.random(n) < flips, -1, 1)
    margin = np.quantile(np.abs(scores), rng.choice([0.02, 0.2, 0.5])) + 1e-3
    return X, y, bounds.comparison(kernel, X, y, coefficients, margin=margin)


def looser(rng, against):
    """The same comparison known less well: upper bounds are all that a theorem asks for."""
    inexact = ("radius", "loss", "norm", "path", "squared_path")
    return {name: value * rng.choice([1.0, 1.0, 1.5]) if name in inexact else value for name, value in against.items()}


ALL_STREAMS = [
    (kernel, motion, flips)
    for kernel in KERNELS for motion in (still, drifting, switching) for flips in (0.0, 0.15)
]


def mistakes(model, X, y):
    return int((model.progressive(X, y, classes=[-1, 1]) * y <= 0).sum())


def orthogonal(n):
    """n examples that have nothing to do with each other: (kernel, X, y)."""
    return ok.Precomputed(np.eye(n)), np.arange(n).reshape(-1, 1), np.where(np.arange(n) % 3, 1, -1)


# ---- The comparison and the tuning function -----------------------------------------------------------------


def test_comparison_adds_up():
    rng = np.random.default_rng(0)
    X, points, A = rng.normal(size=(6, 2)), rng.normal(size=(3, 2)), rng.normal(size=(6, 3))
    y = np.array([1, -1, 1, 1, -1, -1])

    def k(x, z):
        return (x @ z + 1) ** 2

    def inner(a, b):
        return sum(a[i] * b[j] * k(points[i], points[j]) for i in range(3) for j in range(3))

    about = bounds.comparison(ok.Polynomial(2), X, y, A, margin=2.0, points=points)
    lengths = [math.sqrt(inner(A[t + 1] - A[t], A[t + 1] - A[t])) for t in range(5)]
    losses = [max(0.0, 2.0 - y[t] * sum(A[t, j] * k(X[t], points[j]) for j in range(3))) for t in range(6)]
    expected = {
        "radius": max(math.sqrt(k(x, x)) for x in X), "margin": 2.0, "loss": sum(losses), "examples": 6,
        "norm": max(math.sqrt(inner(a, a)) for a in A), "path": sum(lengths),
        "squared_path": sum(length ** 2 for length in lengths),
    }
    assert about == pytest.approx(expected, rel=1e-12)
    constant = bounds.comparison(ok.Polynomial(2), X, y, A[0], margin=2.0, points=points)
    repeated = bounds.comparison(ok.Polynomial(2), X, y, np.tile(A[0], (6, 1)), margin=2.0, points=points)
    assert constant == pytest.approx(repeated)
    assert constant["path"] == 0


@each("gap, loss, complexity", [(1.0, 3.0, 2.0), (0.3, 50.0, 0.1), (2.0, 0.01, 5.0)])
def test_best_gap_is_the_minimum_of_lemma_7_and_the_printed_number(gap, loss, complexity):
    best = bounds.best_gap(gap, loss, complexity)
    z = np.linspace(0, gap, 200_001)[1:-1]
    values = loss / (gap - z) + complexity / (z * (gap - z))
    assert best == pytest.approx(z[values.argmin()], abs=2 * gap / 200_000)
    ratio = complexity / loss
    assert best == pytest.approx(math.sqrt(ratio * (gap + ratio)) - ratio)  # K (30)
    norm = 2 * math.sqrt(complexity)
    bound = bounds.norma_mistakes(radius=1.0, margin=gap, loss=loss, norm=norm, examples=9)
    assert bound == pytest.approx(values.min(), rel=1e-6)


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


def wedge(copies, width, turns=1):
    """Two kinds of examples that nearly contradict each other, each many times in a row; in y x: (1, w), (-1, w)."""
    one, other = np.tile([1.0, width], (copies, 1)), np.tile([1.0, -width], (copies, 1))
    X = np.tile(np.vstack([one, other]), (turns, 1))
    y = np.tile(np.repeat([1, -1], copies), turns)
    return X, y, bounds.comparison("linear", X, y, [0.0, 1 / width], margin=1.0, points=np.eye(2))


def test_mistake_bounds_withstand_a_wedge():
    """Here the runs come within a factor of five of the bound."""
    for width in (0.1, 0.2, 0.4):
        X, y, against = wedge(10, width, turns=40)
        for make, tune in ((ok.NORMA, bounds.tune_norma_mistakes), (ok.ILK, bounds.tune_ilk_mistakes)):
            count = mistakes(make(kernel="linear", **tune(**against)), X, y)
            assert 0.2 * bounds.norma_mistakes(**against) < count <= bounds.norma_mistakes(**against)


# ---- Any parameters -----------------------------------------------------------------------------------------


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


def test_without_regularization_nothing_follows_a_moving_comparison():
    stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=2.0, path=1.0, squared_path=0.1, examples=10)
    assert bounds.norma_mistakes_untuned(step=0.1, regularization=0.0, learner_margin=0.0, **stream) == math.inf
    assert bounds.ilk_mistakes_untuned(step=0.1, regularization=0.0, learner_margin=0.5, **stream) == math.inf


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
        X, y, names, about, (functions, gram, kappa, scores, margin) = of_labels(rng, ok.Gaussian(0.8), structure, moves, 0.2)
        n, L = scores.shape

        def inner(A, B):
            return sum(kappa[a, b] * (A[a] @ gram @ B[b]) for a in range(L) for b in range(L))

        losses = [max([0.0] + [margin * distance_of(structure, names[y[t]], names[l]) + scores[t, l] - scores[t, y[t]]
                               for l in range(L) if l != y[t]]) for t in range(n)]
        lengths = [math.sqrt(max(0.0, inner(functions[t + 1] - functions[t], functions[t + 1] - functions[t]))) for t in range(n - 1)]
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


def worst_of_labels(seeds):
    """The largest part of I Thm 2, of K Thm 3, and of the bound for any step, that runs on labels use up."""
    worst = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        structure, kernel = STRUCTURES[seed % 4], KERNELS[rng.integers(4)]
        X, y, names, about, _ = of_labels(rng, kernel, structure, bool(seed % 3), rng.choice([0.0, 0.15]))
        about = looser(rng, about)
        for make, tune in ((ok.ILK, bounds.tune_ilk_mistakes), (ok.NORMA, bounds.tune_norma_mistakes)):
            count = mistakes_among(make(kernel=kernel, **tune(**about, labels=structure)), X, y, names)
            worst[make.__name__] = max(worst.get(make.__name__, 0.0), count / bounds.ilk_mistakes(**about))
        free = dict(step=10 ** rng.uniform(-2, 1), regularization=rng.choice([0.0, 0.1]), penalty=10 ** rng.uniform(-1, 1))
        margin = smallest(structure, names)
        loss = ok.MulticlassHinge() if isinstance(structure, list) else ok.GraphHinge()
        more = {} if isinstance(structure, list) else {"labels": structure}
        count = mistakes_among(ok.ILK(loss, kernel, offset=False, **free, **more), X, y, names)
        limit = bounds.ilk_mistakes_untuned(**free, learner_margin=margin, **about)
        worst["any step"] = max(worst.get("any step", 0.0), count / limit)
    return worst


def smallest(structure, names):
    return min(distance_of(structure, a, b) for a in names for b in names if a != b)


def test_ilk_keeps_theorem_2_with_structured_labels():
    worst = worst_of_labels(range(40))
    assert 0.0 < min(worst.values()) and max(worst.values()) <= 1.0, worst


def test_structured_labels_meet_theorem_2_with_equality():
    """Orthogonal examples of two labels that are d apart, which separate with margin d: as many mistakes as examples."""
    kernel, X, _ = orthogonal(16)
    labels = ok.Labels(["a", "b"], distance=[[0, 3], [3, 0]])
    y = np.arange(16) % 2
    A = np.array([np.where(y == place, 1.5, -1.5) for place in (0, 1)])
    about = bounds.comparison(kernel, X, ["ab"[place] for place in y], A, margin=1.0, labels=labels)
    assert (about["loss"], about["margin"]) == (0.0, 3.0) and bounds.ilk_mistakes(**about) == pytest.approx(16)
    for make, tune in ((ok.ILK, bounds.tune_ilk_mistakes), (ok.NORMA, bounds.tune_norma_mistakes)):
        assert mistakes_among(make(kernel=kernel, **tune(**about, labels=labels)), X, y, ["a", "b"]) == 16


def test_comparisons_of_labels_refuse_what_makes_no_sense():
    X = [[0.0], [1.0]]
    with pytest.raises(ValueError, match="'y' parameter of comparison must be 2 labels, each one of"):
        bounds.comparison("linear", X, ["a", "q"], np.zeros((2, 2)), margin=1.0, labels=["a", "b"])
    with pytest.raises(ValueError, match=r"must have shape \(2, 2\) for one function or \(2, 2, 2\)"):
        bounds.comparison("linear", X, ["a", "b"], np.zeros(2), margin=1.0, labels=["a", "b"])
    with pytest.raises(ValueError, match="at distance 0"):
        bounds.comparison("linear", X, ["a", "b"], np.zeros((2, 2)), margin=1.0,
                          labels=ok.Labels(["a", "b"], distance=np.zeros((2, 2))))
    with pytest.raises(ValueError, match="zero_margin=True is for two classes"):
        bounds.tune_norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=1.0, examples=3, zero_margin=True, labels=["a", "b"])


# ---- Regret -------------------------------------------------------------------------------------------------


def minimum_risk(gram, y, loss, lam):
    """min over g of lambda/2 |g|^2 + mean loss, by dual coordinate ascent; for Hinge and Absolute."""
    n = len(y)
    dual, f = np.zeros(n), np.zeros(n)
    for i in np.tile(np.arange(n), 40):
        if isinstance(loss, ok.Hinge):
            low, high, target = min(0, y[i]), max(0, y[i]), y[i] * loss.margin
        else:
            low, high, target = -1, 1, y[i]
        new = min(max(dual[i] + (target - f[i]) * lam * n / gram[i, i], low), high)
        f += (new - dual[i]) / (lam * n) * gram[i]
        dual[i] = new
    return float(loss.value(f, y).mean() + lam / 2 * (dual @ gram @ dual) / (lam * n) ** 2)


def cumulative_risk(model, X, y, lam, penalty=1.0):
    """sum_t lambda/2 |f_t|^2 + C l(f_t(x_t), y_t)."""
    total, norm = 0.0, 0.0
    for x, target in zip(X, y):
        score = model.progressive(x[None], [target], **({"classes": [-1, 1]} if model.loss == ok.Hinge() else {}))
        total += lam / 2 * norm ** 2 + penalty * float(model.loss.value(score, target).sum())
        norm = model.norm_
    return total


def risky_streams(n):
    for seed, kernel in enumerate(KERNELS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        signs = np.where(X[:, 0] * X[:, 1] > 0, 1, -1) * np.where(rng.random(n) < 0.2, -1, 1)
        for order in (np.arange(n), np.argsort(signs, kind="stable")):  # at random; one class after the other
            yield kernel, X[order], signs[order], ok.Hinge()
        yield kernel, X, X[:, 0] + rng.normal(size=n), ok.Absolute()


def test_window_regret():
    n = 120
    for kernel, X, y, loss in risky_streams(n):
        tuned = bounds.tune_norma_window(regularization=0.5, growth=0.2, step=1.9)
        least = n * minimum_risk(kernel(X), y, loss, 0.5)
        model = ok.NORMA(loss, kernel, **tuned)
        risk = cumulative_risk(model, X, y, 0.5)
        assert model.n_terms_ <= tuned["budget"].length(n + 1) < 40
        radius = math.sqrt(kernel.diagonal(X).max())
        assert risk <= least + bounds.norma_window_regret(examples=n, step=1.9, regularization=0.5, radius=radius)


def test_an_adversary_causes_an_eighth_of_the_regret_that_is_allowed():
    """One point whose label is always the other one: the best function is 0, and f swings about it."""
    n, eta = 2000, math.sqrt(0.5)
    f = risk = 0.0
    for t in range(1, n + 1):
        y = -1 if f > 0 else 1
        risk += 1 - y * f + f ** 2 / 2
        f += eta / math.sqrt(t) * (y - f)
    bound = bounds.norma_regret(examples=n, step=eta, regularization=1.0, radius=1.0)
    assert bound / 8 < risk - n <= bound


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
    if regret is bounds.norma_regret:
        assert closed == pytest.approx(bounds.ilk_regret(examples=n, step=eta, regularization=lam, radius=X, penalty=c))


def test_tuned_steps_are_the_best_ones():
    fixed = dict(examples=10**12, regularization=0.4, radius=1.0)
    for tuned, regret in ((bounds.tune_norma_regret(regularization=0.4), bounds.norma_regret),
                          (bounds.tune_norma_window(regularization=0.4), bounds.norma_window_regret),
                          (bounds.tune_ilk_regret(regularization=0.4, penalty=3.0), bounds.ilk_regret)):
        rate = tuned["step"].rate
        best = regret(step=rate, **fixed)
        assert all(regret(step=factor * rate, **fixed) > best for factor in (0.9, 0.99, 1.01, 1.1))


# ---- Windows and truncation ---------------------------------------------------------------------------------


@each("growth", [0.15, 0.2, 0.25, 0.3, 0.4, 0.45])
@each("product", [0.3, 0.5, 0.8, 0.95, 1.0])
def test_window_start_is_the_first_t_of_the_three_conditions(product, growth):
    t = np.arange(1.0, 300_001.0)
    fails = (np.exp(-product * t ** growth) > product / np.sqrt(t)) | (np.ceil(t ** (0.5 + growth)) > 0.75 * t)
    found = bounds.window_start(step=2 * product, regularization=0.5, growth=growth)
    if fails[-1]:
        assert found > len(t)
    else:
        assert found == int(t[fails][-1]) + 1


def test_window_start_can_be_astronomical():
    assert 1e8 < bounds.window_start(step=0.1, regularization=1.0, growth=0.25) < 1e9
    far = bounds.window_start(step=0.01, regularization=1.0, growth=0.2)
    assert math.exp(-0.01 * far ** 0.2) <= 0.01 / math.sqrt(far)
    assert math.exp(-0.01 * (far / 1.01) ** 0.2) > 0.01 / math.sqrt(far / 1.01)
    assert bounds.window_start(step=1e-9, regularization=1.0, growth=0.01) == math.inf
    assert bounds.window_start(step=0.9, regularization=1.0, growth=0.4999) == math.inf
    with pytest.raises(ValueError, match="Take a larger one"):
        bounds.tune_norma_window(regularization=1.0, growth=0.05, step=0.01)


@each("product, growth", [(0.95, 0.2), (0.8, 0.3), (0.5, 0.4), (0.7, 0.35)])
def test_what_the_window_drops_is_as_small_as_theorem_6_needs(product, growth):
    """|Delta_t| <= 2 eta_t^2 lambda c X for the window that never shrinks; the proof has it for the printed one."""
    budget = bounds.tune_norma_window(regularization=1.0, growth=growth, step=product)["budget"]
    t = np.arange(1, 30_002)
    steps, lengths = product / np.sqrt(t), np.array([budget.length(i) for i in t.tolist()])
    assert set(np.diff(lengths)) <= {0, 1}  # the theorem's assumption, which the printed window breaks
    decay = np.concatenate([[0.0], np.log1p(-steps).cumsum()])
    oldest = t - lengths
    dropped = np.flatnonzero((oldest[:-1] >= 1) & (np.diff(lengths) == 0))
    assert len(dropped) > 1000
    coefficients = steps[oldest[dropped] - 1] * np.exp(decay[t[dropped]] - decay[oldest[dropped]])
    assert (coefficients <= 2 * steps[dropped] ** 2).all()


@pytest.mark.filterwarnings("ignore:The margin .* is out of reach:onlinekernels.LearningWarning")
@each("loss", [ok.Hinge(3.0), ok.Logistic(), ok.Absolute()], ids=repr)
def test_truncation_error(loss):
    for seed, kernel in enumerate(KERNELS[1:4]):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 2)), rng.choice([-1, 1], 100)
        radius = math.sqrt(kernel.diagonal(X).max())
        for step, lam in ((0.5, 0.2), (0.1, 1.0), (2.0, 0.5)):
            numbers = dict(step=step, regularization=lam, radius=radius)
            explicit = ok.NORMA(loss, kernel, step=step, regularization=lam).fit(X, y)
            implicit = ok.ILK(loss, kernel, step=step, regularization=lam, penalty=0.7).fit(X, y)
            for size in (1, 5, 20):
                window = np.isclose(explicit.support_vectors_[:, None], X[-size:]).all(axis=2).any(axis=1)
                assert norm_of(explicit, keep=window) <= bounds.truncation_error(window=size, **numbers)
                largest = norm_of(implicit, keep=np.argsort(np.abs(implicit.dual_coef_[0]))[-size:])
                assert largest <= bounds.implicit_truncation_error(terms=size, penalty=0.7, **numbers)


def norm_of(model, keep):
    """|f - f_trunc| for the terms to keep."""
    coefficients = model.dual_coef_[0].copy()
    coefficients[keep] = 0.0
    return math.sqrt(max(0.0, coefficients @ model.kernel(model.support_vectors_) @ coefficients))


def test_truncation_error_with_steps_that_change():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(120, 2)), rng.choice([-1, 1], 120)
    for step in (ok.InverseSqrt(1.0), ok.Decaying(0.8, delay=20)):
        model = ok.NORMA(ok.Hinge(1.0), ok.Gaussian(0.5), step=step, regularization=0.5)
        _, steps = model.progressive(X, y, return_steps=True)
        full = {tuple(x): a for x, a in zip(model.support_vectors_, model.dual_coef_[0], strict=True)}
        for window in (1, 10, 60):
            old = [(x, full[tuple(x)]) for x in X[:-window] if tuple(x) in full]
            points, coefficients = np.array([x for x, _ in old]), np.array([a for _, a in old])
            lost = math.sqrt(coefficients @ model.kernel(points) @ coefficients)
            allowed = bounds.truncation_error_of_steps(steps=steps[-window:], regularization=0.5, radius=1.0)
            assert 0.01 * allowed < lost <= allowed


def test_the_noisy_bound_of_alma_is_near_its_corrections():
    """Labels by chance beside a function: what used to be allowed was nearly forty times as much."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(1500, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = np.array([1.0, 0.0])
    y = np.where(X @ u > 0, 1, -1) * np.where(rng.random(1500) < 0.1, -1, 1)
    model = ok.ALMA(ok.Linear(), alpha=1.0)
    corrections = int((model.progressive(X, y) * y <= 0).sum())  # of alpha = 1: its mistakes
    allowed = min(
        bounds.alma_corrections(alpha=1.0, margin=margin, loss=float(np.maximum(0.0, margin - y * (X @ u)).sum()))
        for margin in (0.1, 0.2, 0.4, 0.8, 1.6)
    )
    assert corrections <= allowed <= 6 * corrections


@pytest.mark.filterwarnings("ignore:The margin .* is out of reach:onlinekernels.LearningWarning")
def test_truncation_error_is_met_by_one_point_that_never_reaches_its_margin():
    X, y = np.zeros((400, 1)), np.ones(400, dtype=int)
    numbers = dict(step=0.5, regularization=0.1, radius=1.0)
    for make, bound in ((ok.NORMA, bounds.truncation_error(window=20, **numbers)),
                        (ok.ILK, bounds.implicit_truncation_error(terms=20, **numbers))):
        model = make(ok.Hinge(11.0), ok.Gaussian(), step=0.5, regularization=0.1).fit(X, y)
        assert 0.999 * bound < norm_of(model, keep=np.arange(380, 400)) < bound
        assert 0.999 * bounds.norm_limit(regularization=0.1, radius=1.0) < model.norm_ < 10.0


def test_truncation_error_is_not_about_two_runs():
    X, y = np.zeros((400, 1)), np.ones(400, dtype=int)
    runs = [ok.NORMA(ok.Hinge(1.5), step=0.5, regularization=0.5, budget=budget).progressive(X, y)
            for budget in (None, ok.Window(10))]
    bound = bounds.truncation_error(window=10, step=0.5, regularization=0.5, radius=1.0)
    assert np.abs(runs[0] - runs[1]).max() > 4 * bound


# ---- K Cor. 5 -----------------------------------------------------------------------------------------------


@each("penalty", [1.0, 2.5])
def test_average_of_ilk(penalty):
    """I 3.2: the regret, and the tail of a martingale."""
    numbers, m = dict(regularization=0.5, penalty=penalty), 80
    step = bounds.tune_ilk_regret(**numbers)["step"]
    limit = bounds.hinge_risk_limit(learner_margin=1.0, radius=1.0, **numbers)
    excess = bounds.ilk_average_excess_risk(examples=m, step=step.rate, radius=1.0, largest_risk=limit, failure=0.1, **numbers)
    tail = excess - bounds.ilk_regret(examples=m, step=step.rate, radius=1.0, **numbers) / m
    assert math.exp(-m * tail ** 2 / (2 * limit ** 2)) == pytest.approx(0.1)  # Azuma


def test_theorem_6_in_probability():
    numbers = dict(examples=400, step=0.5, regularization=1.0, radius=1.0)
    tail = bounds.window_average_excess_risk(**numbers, largest_risk=2.5, failure=0.1) - bounds.norma_window_regret(**numbers) / 400
    assert math.exp(-400 * tail**2 / (2 * 2.5**2)) == pytest.approx(0.1)  # Azuma


def test_terms_that_cancel_may_go():
    """Without the terms that hold it down f is longer, and still within c X / lambda."""
    X, y = np.zeros((40, 1)), np.where(np.arange(40) < 30, -1, 1)
    full, cut = (ok.NORMA(ok.Hinge(5.0), step=0.4, regularization=0.5, budget=budget).fit(X, y) for budget in (None, ok.Window(10)))
    assert full.norm_ < cut.norm_ <= bounds.norm_limit(regularization=0.5, radius=1.0)


def test_excess_risk_is_regret_plus_the_tail_of_a_martingale():
    numbers = dict(examples=5000, step=0.7, regularization=0.8, radius=1.3)
    excess = bounds.average_excess_risk(**numbers, largest_risk=4.0, failure=0.02)
    tail = excess - bounds.norma_regret(**numbers) / 5000
    assert math.exp(-5000 * tail ** 2 / (2 * 4.0 ** 2)) == pytest.approx(0.02)  # Azuma, differences of at most L


# ---- The Perceptron -----------------------------------------------------------------------------------------


def deviation(y, scores, margin):
    return math.sqrt((np.maximum(0.0, margin - y * scores) ** 2).sum())


@each("flips", [0.0, 0.1, 0.4])
@each("kernel", KERNELS, ids=repr)
def test_perceptron(kernel, flips):
    """One run, many comparisons: Freund and Schapire's bound and K Thm 3 hold for all of them."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, y, _ = labelled(rng, kernel, still, flips)
        count = mistakes(ok.Perceptron(kernel), X, y)
        gram = kernel(X)
        fitted = [np.linalg.solve(gram + ridge * np.eye(len(y)), y) for ridge in (0.01, 1.0)]
        for theta in fitted + [still(rng, len(y)) for _ in range(3)]:
            scores = gram @ theta
            for margin in np.quantile(np.abs(scores), [0.1, 0.5, 0.9]) + 1e-6:
                against = bounds.comparison(kernel, X, y, theta, margin=margin)
                D = deviation(y, scores, margin)
                assert count <= bounds.norma_mistakes(**against)
                assert count <= bounds.perceptron_mistakes(
                    radius=against["radius"], margin=margin, norm=against["norm"], deviation=D)


def test_novikoff_is_met_by_orthogonal_examples():
    kernel, X, y = orthogonal(30)
    about = bounds.comparison(kernel, X, y, y, margin=1.0)
    bound = bounds.perceptron_mistakes(radius=about["radius"], margin=1.0, norm=about["norm"])
    assert mistakes(ok.Perceptron(kernel), X, y) == 30 == pytest.approx(bound)


def test_freund_and_schapire_is_met_up_to_a_constant():
    """One point whose label alternates: all are mistakes, and D grows like their root."""
    n = 200
    y = np.tile([1, -1], n // 2)
    count = mistakes(ok.Perceptron("linear", offset=False), np.ones((n, 1)), y)
    best = min(bounds.perceptron_mistakes(radius=1.0, margin=g, deviation=deviation(y, np.ones(n), g))
               for g in (0.5, 1.0, 10.0, 100.0))
    assert count == n
    assert n <= best < 1.2 * n


def test_voted_perceptron():
    """V Thm 2. Fifty orthogonal points, one drawn at a time: the vote errs on a point that it has not seen.

    The best theta is the sum of the n points seen, over sqrt(n); its margin is 1 / sqrt(n).
    """
    rng, m, draws = np.random.default_rng(0), 100, 400
    errors, limits = 0, []
    for _ in range(draws):
        points = rng.integers(0, 50, m + 1)
        y = np.where(points % 3, 1, -1)
        X = np.eye(50)[points]
        errors += vote(X[:m], y[:m], X[m]) != y[m]
        limits.append(bounds.perceptron_mistakes(radius=1.0, margin=len(set(points.tolist())) ** -0.5))
    bound = bounds.voted_perceptron_error(expected_mistakes=np.mean(limits), examples=m)
    assert bound / 10 < errors / draws <= bound < 1
    assert bounds.voted_perceptron_error(expected_mistakes=1000.0, examples=m) == 1.0


def vote(X, y, x):
    """Majority of all hypotheses of a pass, each with a vote for every example that it has met; 0 for a draw."""
    w, tally = np.zeros(X.shape[1]), 0.0
    for example, label in zip(X, y):
        if label * (w @ example) <= 0:
            w = w + label * example
        tally += np.sign(w @ x)
    return np.sign(tally)


# ---- Projection ---------------------------------------------------------------------------------------------


def projected_classes(kernel, X, y, ball):
    return ok.Projection(ok.Hinge(1.0), kernel, radius=ball).progressive(X, y, classes=[-1, 1])


def projected_targets(kernel, X, y, width, ball):
    return ok.Projection(ok.SquaredInsensitive(width), kernel, radius=ball).progressive(X, y)


def realizable(rng, kernel, n):
    """A function u, a stream that it separates with margin 1, and targets within 0.2 of it."""
    X, coefficients = rng.normal(size=(n, 2)), still(rng, n)
    gram = kernel(X)
    u = gram @ coefficients
    keep = np.abs(u) > np.quantile(np.abs(u), 0.2)
    scale = 1 / np.abs(u[keep]).min()
    norm = scale * math.sqrt(coefficients @ gram @ coefficients)
    u = scale * u[keep]
    return X[keep], np.sign(u).astype(int), u + rng.uniform(-0.2, 0.2, len(u)), norm


def test_projection():
    for seed in SEEDS:
        for kernel in KERNELS[:4]:
            X, y, noisy, norm = realizable(np.random.default_rng(seed), kernel, 60)
            about = dict(radius=math.sqrt(kernel.diagonal(X).max()), norm=norm)
            scores = projected_classes(kernel, X, y, None)
            assert 0 < (y * scores <= 0).sum() <= bounds.projection_mistakes(**about)
            losses = np.maximum(0, np.abs(noisy - projected_targets(kernel, X, noisy, 0.2, None)) - 0.2) ** 2
            assert 0 < losses.sum() <= bounds.projection_loss(**about)


def test_projection_in_a_ball_holds_for_every_stretch():
    for seed in range(6):
        for kernel in KERNELS[:4]:
            rng = np.random.default_rng(seed)
            parts = [realizable(rng, kernel, 40) for _ in range(3)]
            X, y, noisy = (np.concatenate([part[i] for part in parts]) for i in range(3))
            ball = max(part[3] for part in parts)
            wrong = y * projected_classes(kernel, X, y, ball) <= 0
            losses = np.maximum(0, np.abs(noisy - projected_targets(kernel, X, noisy, 0.2, ball)) - 0.2) ** 2
            start = 0
            for part, *_, norm in parts:
                stretch = slice(start, start + len(part))
                start = stretch.stop
                about = dict(radius=math.sqrt(kernel.diagonal(part).max()), norm=norm, ball=ball)
                assert wrong[stretch].sum() <= bounds.projection_mistakes(**about)
                assert losses[stretch].sum() <= bounds.projection_loss(**about)


def test_projection_bounds_are_met_by_orthogonal_examples():
    kernel, X, y = orthogonal(15)
    norm = math.sqrt(15.0)
    assert (y * projected_classes(kernel, X, y, None) <= 0).sum() == 15 == pytest.approx(
        bounds.projection_mistakes(radius=1.0, norm=norm))
    losses = np.maximum(0, np.abs(y - projected_targets(kernel, X, y.astype(float), 0.25, None)) - 0.25) ** 2
    assert losses.sum() == pytest.approx(bounds.projection_loss(radius=1.0, norm=0.75 * norm))


def test_a_turn_meets_the_local_bound():
    """From -u to u across the ball: H Thm 5 with equality. R^2 is K(x, x), not R as printed in H Thm 6."""
    kernel, X = ok.Linear(), np.full((2, 1), 2.0)
    y = np.array([-6.0, 6.0])  # u = 3 or -3, R = 2
    losses = (y - projected_targets(kernel, X, y, 0.0, 3.0)) ** 2
    assert losses[1] == pytest.approx(bounds.projection_loss(radius=2.0, norm=3.0, ball=3.0))
    printed = math.sqrt(2.0 ** 2) * (3.0 + 3.0) ** 2
    assert losses[1] > printed


# ---- The margin classics ------------------------------------------------------------------------------------


@each("flips", [0.0, 0.15])
@each("kernel", KERNELS, ids=repr)
@each("alpha", [0.3, 0.9, 1.0])
def test_alma_corrects_no_more_than_its_bound(kernel, flips, alpha):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, y, against = labelled(rng, ok.Normalized(kernel), still, flips)
        model = ok.ALMA(kernel, alpha=alpha)
        passes = 3
        for _ in range(passes):
            model.partial_fit(X, y, [-1, 1])
        corrections = model._state.hypothesis.rule.corrections
        against["loss"] *= passes
        about = {name: value for name, value in looser(rng, against).items() if name in ("margin", "norm", "loss")}
        assert corrections <= bounds.alma_corrections(alpha=alpha, **about)


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


@covering(1)
@each("kernel, motion, flips", [case for case in ALL_STREAMS if case[1] is still])
@each("share", [0.05, 0.5, 0.95])
def test_the_ballseptron_makes_no_more_mistakes_than_its_bound(kernel, motion, flips, share):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, y, against = labelled(rng, kernel, motion, flips)
        about = {name: value for name, value in looser(rng, against).items() if name in ("radius", "margin", "norm", "loss")}
        r = share * about["margin"] / about["norm"]
        model = ok.Ballseptron(kernel, radius=r)
        wrong = updates = 0
        for i in range(len(X)):
            norm = 0.0 if i == 0 else model.norm_
            score = model.progressive(X[i : i + 1], y[i : i + 1], [-1, 1])[0]
            wrong += y[i] * score <= 0
            updates += 0 < y[i] * score <= r * norm
        assert wrong <= bounds.ballseptron_mistakes(ball_radius=r, ball_updates=int(updates), **about)
        assert wrong <= bounds.ballseptron_mistakes(ball_radius=r, **about)


def test_the_ballseptrons_bound_is_the_largest_over_all_numbers_of_updates():
    rng = np.random.default_rng(0)
    for _ in range(60):
        about = dict(radius=rng.uniform(0.5, 2), margin=rng.uniform(0.3, 2), norm=rng.uniform(0.5, 4))
        about["loss"] = rng.choice([0.0, rng.uniform(0, 30)])
        r = rng.uniform(0.02, 0.98) * about["margin"] / about["norm"]
        unknown = bounds.ballseptron_mistakes(ball_radius=r, **about)
        known = []
        for n in [0, *np.unique(np.geomspace(1, 1e5, 4000).astype(int)).tolist()]:
            # Where even no mistake is too many, such a run does not exist.
            most = about["norm"] * math.sqrt(about["radius"] ** 2 * n + r**2)
            if (about["margin"] - r * about["norm"]) * n - about["loss"] <= most:
                known.append(bounds.ballseptron_mistakes(ball_radius=r, ball_updates=n, **about))
        assert max(known) <= unknown * (1 + 1e-9)
        assert unknown <= max(known) * 1.1 + 3          # N is a whole number, and r^2 is there without updates
    assert bounds.ballseptron_mistakes(ball_radius=0.5, radius=1.0, margin=1.0, norm=2.0) == math.inf
    kernel, X, y = orthogonal(15)
    assert mistakes(ok.Ballseptron(kernel, radius=0.1), X, y) == 15 == pytest.approx(
        bounds.ballseptron_mistakes(ball_radius=0.1, radius=1.0, margin=1.0, norm=math.sqrt(15.0), ball_updates=0))


def test_the_forgetron_has_no_bound_for_small_budgets_or_long_comparisons():
    with pytest.raises(ValueError, match="'terms' parameter of forgetron_mistakes must be at least 83"):
        bounds.forgetron_mistakes(terms=82, norm=0.1)
    limit = math.sqrt(1001 / math.log(1001)) / 4
    with pytest.raises(ValueError, match="'norm' parameter of forgetron_mistakes must be at most"):
        bounds.forgetron_mistakes(terms=1000, norm=limit * 1.01)
    halves = bounds.forgetron_mistakes(terms=1000, norm=limit / 2, margin=0.5, loss=1.0)
    assert halves == pytest.approx(bounds.forgetron_mistakes(terms=1000, norm=limit, loss=2.0))


# ---- Gradient descent for numbers ---------------------------------------------------------------------------


@each("kernel", KERNELS, ids=repr)
@each("noise", [0.0, 0.5])
def test_gradient_descent_has_no_more_squared_loss_than_its_bound(kernel, noise):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, coefficients = rng.normal(size=(80, 2)), still(rng, 80)
        values = kernel(X) @ coefficients
        y = values + noise * rng.normal(size=80)
        radius = math.sqrt(kernel.diagonal(X).max())
        about = dict(radius=radius, norm=math.sqrt(coefficients @ kernel(X) @ coefficients), squared_loss=((y - values) ** 2).sum())
        steps = rng.uniform(0.05, 1.9, 3) / radius**2
        for step in steps:
            loss = ((NORMA_squared(kernel, step).progressive(X, y) - y) ** 2).sum()
            assert loss <= bounds.norma_squared_loss(step=step, **about) * (1 + 1e-9)
        tuned = bounds.tune_norma_squared_loss(**about)
        best = bounds.norma_squared_loss(step=tuned["step"], **about)
        assert ((ok.NORMA(kernel=kernel, **tuned).progressive(X, y) - y) ** 2).sum() <= best * (1 + 1e-9)
        assert best == pytest.approx((math.sqrt(about["squared_loss"]) + radius * about["norm"]) ** 2)
        assert all(best <= bounds.norma_squared_loss(step=step, **about) * (1 + 1e-9) for step in steps)


def NORMA_squared(kernel, step):
    return ok.NORMA("squared", kernel, step=step, regularization=0.0)


def test_orthogonal_examples_meet_the_bound_of_gradient_descent():
    kernel, X, y = orthogonal(15)
    loss = ((NORMA_squared(kernel, 1.0).progressive(X, y.astype(float)) - y) ** 2).sum()
    assert loss == 15 == pytest.approx(bounds.norma_squared_loss(step=1.0, radius=1.0, norm=math.sqrt(15.0), squared_loss=0.0))
    with pytest.raises(ValueError, match="below 2 / radius\\^2 = 0.5. Got 0.5"):
        bounds.norma_squared_loss(step=0.5, radius=2.0, norm=1.0, squared_loss=0.0)


# ---- Arguments ----------------------------------------------------------------------------------------------

GOOD = dict(
    radius=1.0, margin=2.0, loss=1.0, norm=1.0, path=0.5, squared_path=0.1, examples=10, step=0.5, regularization=0.5,
    learner_margin=1.0, lipschitz=1.0, penalty=1.0, window=5, terms=100, growth=0.3, largest_risk=1.0, failure=0.1,
    gap=1.0, complexity=1.0, ball=2.0, deviation=0.5, expected_mistakes=3.0, zero_margin=True, alpha=0.5,
    ball_radius=0.5, ball_updates=3, squared_loss=1.0, members=3, rate=1.0, share=0.01, squared_ranges=2.0, steps=[0.5, 0.25],
    labels=None, longest=20, mistakes=3.0,
)
FUNCTIONS = [getattr(bounds, name) for name in bounds.__all__ if name not in ("comparison", "audit", "Audit", "Certificate")]
CASES = [(function, name) for function in FUNCTIONS for name in inspect.signature(function).parameters]


@each("function, name", CASES, ids=[f"{function.__name__}-{name}" for function, name in CASES])
def test_bad_arguments_are_named(function, name):
    good = {key: GOOD[key] for key in inspect.signature(function).parameters}
    function(**good)
    for value in (-1.0, math.nan, math.inf, "1", [[1.0]] if name == "steps" else [1.0]):
        with pytest.raises(ValueError) as error:
            function(**{**good, name: value})
        assert f"'{name}' parameter of {function.__name__} must be" in str(error.value)
        assert repr(value) in str(error.value)
    if name != "zero_margin":
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            function(**{**good, name: True})


@each("call", [
    lambda: bounds.norma_regret(examples=5, step=3.0, regularization=0.5, radius=1.0),
    lambda: bounds.truncation_error(window=5, step=3.0, regularization=0.5, radius=1.0),
    lambda: bounds.window_start(step=3.0, regularization=0.5, growth=0.2),
    lambda: bounds.norma_mistakes_untuned(step=2.0, regularization=0.5, learner_margin=0.0, radius=1.0, margin=1.0,
                       loss=0.0, norm=1.0, examples=5),
], ids=range(4))
def test_a_step_beyond_the_regularization_is_refused(call):
    with pytest.raises(ValueError, match="1 / regularization = 2"):
        call()


def test_other_refusals():
    stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=9)
    for function in (bounds.norma_margin_errors, bounds.tune_norma_margin_errors, bounds.norma_hinge_loss):
        with pytest.raises(ValueError, match="below the comparison's margin 1. Got 1.0"):
            function(learner_margin=1.0, **stream)
    with pytest.raises(ValueError, match="at most the radius 2 of the ball. Got 3.0"):
        bounds.projection_mistakes(radius=1.0, norm=3.0, ball=2.0)
    with pytest.raises(ValueError, match="integer of at least 1. Got 2.5"):
        bounds.norma_mistakes(**{**stream, "examples": 2.5})
    with pytest.raises(ValueError, match="each -1 or 1"):
        bounds.comparison("linear", [[1.0], [2.0]], [0, 1], [1.0, 0.0], margin=1.0)
    with pytest.raises(ValueError, match=r"shape \(2,\) for one function or \(2, 2\).* Got shape \(3,\)"):
        bounds.comparison("linear", [[1.0], [2.0]], [-1, 1], [1.0, 0.0, 0.0], margin=1.0)
    with pytest.raises(ValueError, match="finite"):
        bounds.comparison("linear", [[1.0], [2.0]], [-1, 1], [1.0, np.nan], margin=1.0)
    with pytest.raises(ValueError, match="'margin' parameter of comparison must be a positive number. Got 0"):
        bounds.comparison("linear", [[1.0], [2.0]], [-1, 1], [1.0, 0.0], margin=0)


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

    def test_only_rounding_is_made_up_for(self):
        assert bounds.projection_mistakes(radius=1.0, norm=(1 - 1e-9) ** 0.5) < 1
        assert bounds.projection_mistakes(radius=1.0, norm=2.5**0.5) == pytest.approx(2.5, rel=1e-15)
        assert bounds.norma_mistakes_untuned(
            step=0.1, regularization=0.0, learner_margin=0.0, radius=1.0, margin=1.0, loss=0.0, norm=1.0, path=1.0,
            squared_path=1.0, examples=3) == np.inf


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
    y = np.where(X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + rng.choice([0.0, 0.3]) * rng.normal(size=n) > 0, 1, -1)
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


def test_an_audit_takes_the_best_of_its_comparisons():
    rng = np.random.default_rng(6)
    X, y = stream_by_chance(rng)
    model = ok.NORMA(ok.Hinge(0.5), ok.Gaussian(0.7), step=0.3, regularization=0.01)
    gram, own = model.kernel(X), {"step": 0.3, "regularization": 0.01, "learner_margin": 0.5}
    machines = [audits.machine(gram, y.astype(float), penalty, 1.0) for penalty in audits.PENALTIES]
    about = [bounds.comparison(model.kernel, X, y, machine, margin=1.0) for machine in machines]
    expected = [
        min(bound(**own, **each) for each in about)
        for bound in (bounds.norma_mistakes_untuned, bounds.norma_margin_errors_untuned, bounds.norma_hinge_loss_untuned)
    ]
    allowed, longer = ([line.allowed for line in bounds.audit(model, X, y, segments=n).certificates] for n in (1, 3))
    assert allowed == pytest.approx(expected)
    assert all(more <= one for more, one in zip(longer, allowed, strict=True))


def test_the_machine_of_an_audit_minimises_its_risk():
    rng = np.random.default_rng(7)
    X, y = stream_by_chance(rng)
    gram = ok.Gaussian(0.7)(X) + 1e-9 * np.eye(len(X))
    g = audits.machine(gram, y.astype(float), 0.5, 1.0)
    primal = g @ gram @ g / 2 + 0.5 * np.maximum(0.0, 1.0 - y * (gram @ g)).sum()
    dual = np.abs(g).sum() - g @ gram @ g / 2
    assert (y * g >= 0).all() and np.abs(g).max() <= 0.5
    assert primal - dual <= 0.02 * primal


def test_an_audit_can_compare_with_the_function_0():
    """One example with both labels: nothing is better than 0."""
    X, y = np.ones((2, 1)), np.array([1, -1])
    for line in bounds.audit(ok.Perceptron(ok.Linear(), offset=False), X, y).certificates:
        assert line.made == 2 <= line.allowed


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


@pytest.mark.slow
def test_audits_never_find_a_bound_broken_on_a_thousand_streams():
    worst = worst_ratio(range(100, 1100))
    assert max(worst.values()) <= 1 + 1e-12, worst


def test_audits_refuse_what_no_theorem_knows():
    X, y = stream_by_chance(np.random.default_rng(8))
    for model, error, message in (
        (ok.SVMD("hinge"), TypeError, "audit knows NORMA, ILK and Perceptron. Got SVMD instead."),
        (ok.NORMA("hinge", budget=10), ValueError, "No theorem knows budget=10"),
        (ok.NORMA("hinge", offset=True), ValueError, "No theorem knows offset=True"),
        (ok.NORMA("squared"), ValueError, "for the hinge loss. Got 'squared' instead"),
    ):
        with pytest.raises(error, match=message):
            bounds.audit(model, X, y)
    with pytest.raises(ValueError, match="labels of two kinds. Got 1 of them"):
        bounds.audit(ok.NORMA("hinge"), X, np.ones(len(X), dtype=int))


def test_margin_errors_and_loss_for_any_parameters_agree_with_the_tuned_ones():
    """With the tuned step, lambda and margin the untuned bounds are no worse than K's theorems."""
    stream = dict(radius=1.3, margin=1.0, loss=7.0, norm=3.0, path=2.0, squared_path=0.3, examples=500)
    tuned = bounds.tune_norma_margin_errors(learner_margin=0.2, **stream)
    own = {name: tuned[name] for name in ("step", "regularization")}
    best = bounds.norma_margin_errors_untuned(**own, learner_margin=0.2, **stream)
    assert 0.8 < best / bounds.norma_margin_errors(learner_margin=0.2, **stream) <= 1 + 1e-12
    tuned = bounds.tune_norma_mistakes(**stream)
    own, rho = {name: tuned[name] for name in ("step", "regularization")}, tuned["loss"].margin
    best = bounds.norma_hinge_loss_untuned(**own, learner_margin=rho, **stream)
    assert 0.8 < best / bounds.norma_hinge_loss(learner_margin=rho, **stream) <= 1 + 1e-12
