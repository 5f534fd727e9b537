"""Projection, ALMA, the Ballseptron, ROMMA, the Voted Perceptron and the Adatron: against their oracles and their own definitions."""
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import onlinekernels as ok
from apart import run_apart
from cases import covering, each
from reference_margin import (
    ReferenceALMA,
    ReferenceBallseptron,
    ReferenceProjection,
    ReferenceROMMA,
    ReferenceVoted,
    adatron,
    adatron_score,
)
from test_oracle import describe

N, D = 40, 3
NAMES = ["a", "b", "c", "d"]
KERNELS = [
    ok.Linear(),
    ok.Gaussian(1.3),
    ok.Polynomial(3, 0.3, 1.0),
    ok.Gaussian(2) + 0.1 * ok.Linear() + ok.Constant(),
]
CURVED = KERNELS[1:]                                    # whose Gram matrices are regular on random points
BUDGETS = [ok.Unlimited(), ok.Recent(7), ok.Window(9), ok.Smallest(6)]
LOSSES = [ok.Hinge(1.0), ok.Hinge(0.4), ok.Insensitive(0.2), ok.SquaredInsensitive(0.3), ok.MulticlassHinge(0.8)]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def stream(task, seed, n=N, d=D, duplicates=0.1):
    """Random points, some of them twice, and random targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(n) < duplicates] = X[0]
    y = {
        "binary": rng.choice([-1, 1], n),
        "multiclass": rng.choice(NAMES, n),
        "regression": rng.normal(size=n),
    }[task]
    return X, y, rng


def separable(seed, n=80, d=4, gap=0.3):
    """(X, y, u) with y u.x >= 1 everywhere."""
    rng = np.random.default_rng(seed)
    u, X = rng.normal(size=d), rng.normal(size=(4 * n, d))
    X = X[np.abs(X @ u) > gap][:n]
    return X, np.where(X @ u > 0, 1, -1), u / np.min(np.abs(X @ u))


def first_call(task):
    return {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}, "regression": {}}[task]


def in_chunks(model, X, y, rng, **first):
    """Progressive scores of a stream cut at random places."""
    scores, start = [], 0
    while start < len(X):
        stop = min(len(X), start + int(rng.choice([1, 2, 5, 11, 40])))
        scores.append(model.progressive(X[start:stop], y[start:stop], **first))
        start, first = stop, {}
    return np.concatenate(scores)


def answers(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def same_terms(model, oracle, **close):
    """The same terms in the same order with the same coefficients."""
    np.testing.assert_allclose(model.dual_coef_, oracle.coefficients(), **close)
    points = np.array([row.x for row in oracle.rows]).reshape(-1, D)
    np.testing.assert_allclose(model.support_vectors_, points, atol=1e-12)


# ---- Projection: the oracle ---------------------------------------------------------------------------


@covering(3)
@each("kernel", KERNELS, ids=repr)
@each("loss", LOSSES, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("radius", [None, 0.7, 3.0])
@each("offset", [False, True])
def test_projection_equals_the_oracle(loss, kernel, budget, radius, offset):
    X, y, rng = stream(loss.task, 7 * BUDGETS.index(budget) + 2 * KERNELS.index(kernel) + offset)
    model = ok.Projection(loss, kernel, radius=radius, budget=budget, offset=offset)
    oracle = ReferenceProjection(loss=describe(loss), kernel=describe(kernel), radius=radius, offset=offset,
                                 budget=describe(budget), labels=NAMES if loss.task == "multiclass" else None)
    scores = in_chunks(model, X, y, rng, **first_call(loss.task))
    np.testing.assert_allclose(scores, oracle.run(X, y), **CLOSE)
    expected = np.array([oracle.scores(x) for x in X[:5]])
    expected = expected if loss.task == "multiclass" else expected[:, 0]
    np.testing.assert_allclose(answers(model, X[:5]), expected, **CLOSE)
    np.testing.assert_allclose(model.intercept_, oracle.b, **CLOSE)
    np.testing.assert_allclose(model.norm_, oracle.norm(), rtol=1e-9, atol=1e-9)
    assert model.t_ == N
    if hasattr(model, "dual_coef_"):
        same_terms(model, oracle, **CLOSE)
    model._state.engine._check()


# ---- Projection: nearest points, the ball, the theorems ------------------------------------------------


def feasible(loss, scores, y):
    """Which score (or pair of scores label, runner-up) the constraint of an example allows."""
    if isinstance(loss, ok.Hinge):
        return y * scores >= loss.margin - 1e-10
    return np.abs(scores - y) <= loss.width + 1e-10


@each("loss", [ok.Hinge(), ok.Hinge(0.3), ok.Insensitive(0.2), ok.SquaredInsensitive(0.1)], ids=repr)
def test_the_new_weights_are_the_nearest_feasible_point(loss):
    X, y, rng = stream(loss.task, 8, n=60, duplicates=0.0)
    model = ok.Projection(loss, ok.Linear(), offset=False)
    moved = 0
    for i, (x, target) in enumerate(zip(X, y)):
        w = np.zeros(D) if i == 0 else model.coef_[0]
        model.partial_fit(x[None], [target], **(first_call(loss.task) if i == 0 else {}))
        new = model.coef_[0]
        assert feasible(loss, new @ x, target)
        if feasible(loss, w @ x, target):
            np.testing.assert_array_equal(new, w)
            continue
        moved += 1
        step = (new - w) @ x / (x @ x)
        np.testing.assert_allclose(new - w, step * x, atol=1e-10)      # along K(x, .)
        assert step * (target if loss.task == "binary" else target - w @ x) > 0
        edge = loss.margin if loss.task == "binary" else loss.width     # and no further than to the boundary
        reached = target * (new @ x) if loss.task == "binary" else abs(target - new @ x)
        np.testing.assert_allclose(reached, edge, rtol=1e-10)
        others = new + rng.normal(size=(500, D)) * 10.0 ** rng.uniform(-6, 1, size=(500, 1))
        others = others[feasible(loss, others @ x, target)]
        assert len(others) > 50
        assert np.all(np.linalg.norm(others - w, axis=1) >= np.linalg.norm(new - w) - 1e-9)
    assert moved > 10


def test_many_classes_move_onto_the_half_space_of_the_runner_up():
    loss = ok.MulticlassHinge(0.8)
    X, y, rng = stream("multiclass", 2, n=60, duplicates=0.0)
    model = ok.Projection(loss, ok.Linear(), offset=False).partial_fit(X[:1], y[:1], classes=NAMES)
    for x, label in zip(X[1:], y[1:]):
        W, right = model.coef_, NAMES.index(label)
        scores = W @ x
        rival = max((l for l in range(4) if l != right), key=lambda l: scores[l])
        model.partial_fit(x[None], [label])
        new = model.coef_
        if scores[right] - scores[rival] >= loss.margin:
            np.testing.assert_array_equal(new, W)
            continue
        gap = (new[right] - new[rival]) @ x
        np.testing.assert_allclose(gap, loss.margin, rtol=1e-10)
        others = new + rng.normal(size=(300, 4, D)) * 10.0 ** rng.uniform(-6, 1, size=(300, 1, 1))
        others = others[(others[:, right] - others[:, rival]) @ x >= loss.margin]
        distances = np.sqrt(np.sum((others - W) ** 2, axis=(1, 2)))
        assert len(others) > 30 and np.all(distances >= np.linalg.norm(new - W) - 1e-9)


def test_a_dropped_term_can_raise_the_norm_and_the_ball_holds_all_the_same():
    """w = x1 (1, 1), then x2 turns it: without x1 the other term alone is longer than the ball."""
    X, y = np.array([[1.0, 1.0], [1.0, 0.75], [0.0, 1.0]]), np.array([1, -1, 1])
    free = ok.Projection("hinge", "linear", budget=ok.Recent(10)).partial_fit(X[:2], y[:2])
    alone = abs(free.dual_coef_[0, 1]) * np.linalg.norm(X[1])
    radius = 1.01 * free.norm_
    assert alone > 1.2 * radius                         # the two terms cancel
    model = ok.Projection("hinge", "linear", radius=radius, budget=ok.Window(1))
    for x, label in zip(X, y):
        model.partial_fit(x[None], [label], classes=[-1, 1])
        assert model.norm_ <= radius * (1 + 1e-12)
    model = ok.Projection("hinge", "linear", radius=radius, budget=ok.Window(1)).partial_fit(X[:2], y[:2])
    np.testing.assert_allclose(model.norm_, radius, rtol=1e-12)
    np.testing.assert_allclose(model.coef_[0], -radius * X[1] / np.linalg.norm(X[1]), rtol=1e-12)


def test_a_window_that_slides_past_every_term_leaves_nothing():
    X = np.eye(6)[:, :3] + np.eye(6)[:, 3:]             # the last three examples repeat the first three
    for radius in (None, 0.5):
        model = ok.Projection("hinge", ok.Gaussian(), radius=radius, budget=ok.Window(2))
        model.partial_fit(X[:3], [1, -1, 1])
        model.partial_fit(X[:4], [1, 1, 1, 1], sample_weight=np.zeros(4))
        assert model.n_terms_ == 0 and model.norm_ == 0.0
        np.testing.assert_array_equal(model.decision_function(X), np.zeros(6))


@each("kernel", CURVED, ids=repr)
def test_a_start_outside_the_ball_is_refused_or_projected(kernel):
    X, y, _ = stream("binary", 6)
    start = ok.Projection("hinge", kernel).fit(X, y)
    assert start.norm_ > 1.0
    model = ok.Projection("hinge", kernel, radius=1.0)
    try:
        model.partial_fit(X[:1], y[:1], initial=start)
    except ValueError as error:
        assert "radius" in str(error)
    else:
        assert model.norm_ <= 1.0 + 1e-12


@each("loss", [ok.Hinge(), ok.Insensitive(), ok.MulticlassHinge()], ids=repr)
@each("kernel", [ok.Linear(), ok.Gaussian()], ids=repr)
@each("budget", [None, ok.Recent(3)], ids=repr)
def test_a_function_without_terms_has_norm_zero(loss, kernel, budget):
    y = {"binary": [1], "regression": [0.0], "multiclass": ["a"]}[loss.task]
    model = ok.Projection(loss, kernel, radius=1.0, budget=budget)
    model.partial_fit([[0.5, 1.0]], y, sample_weight=[0.0], **first_call(loss.task))
    assert model.norm_ == 0.0 and not np.any(answers(model, [[0.5, 1.0]]))


# ---- ALMA ---------------------------------------------------------------------------------------------


ALMAS = [{}, {"alpha": 0.5}, {"alpha": 1.0}, {"alpha": 0.7, "B": 1.2, "C": 0.4}]


@covering(2)
@each("kernel", KERNELS, ids=repr)
@each("params", ALMAS, ids=str)
@each("seed, budget", list(enumerate([*BUDGETS, ok.Recent(1), ok.Window(1)])))
def test_alma_equals_the_oracle(kernel, params, seed, budget):
    X, y, rng = stream("binary", seed, duplicates=0.05)
    model = ok.ALMA(kernel, budget=budget, **params)
    oracle = ReferenceALMA(kernel=describe(kernel), budget=describe(budget), **params)
    np.testing.assert_allclose(in_chunks(model, X, y, rng, classes=[-1, 1]), oracle.run(X, y), **CLOSE)
    np.testing.assert_allclose(model.decision_function(X[:6]), [oracle.f(x)[0] for x in X[:6]], **CLOSE)
    np.testing.assert_allclose(model.norm_, oracle.norm(), rtol=1e-9, atol=1e-9)
    if not isinstance(kernel, ok.Linear):
        assert model.n_terms_ == len(oracle.rows)


@each("alpha", [0.6, 0.9, 1.0])
def test_alma_reaches_its_margin_with_no_more_corrections_than_its_theorem_allows(alpha):
    for seed in range(3):
        X, y, u = separable(seed, n=40, gap=0.5)
        gamma = np.min(y * (X @ u) / np.linalg.norm(X, axis=1)) / np.linalg.norm(u)
        model = ok.ALMA(ok.Polynomial(1, 1.0, 0.0), alpha=alpha)        # the linear kernel, kept as terms
        bound = 2 / gamma**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4
        corrections = 0
        model.partial_fit(X, y)
        while model.n_terms_ > corrections:             # until a pass corrects nothing
            corrections = model.n_terms_
            model.partial_fit(X, y)
            assert model.n_terms_ <= bound
        assert np.min(y * model.decision_function(X)) > (1 - alpha) * gamma     # of a margin that is at least gamma


# ---- The Ballseptron ----------------------------------------------------------------------------------


@covering(2)
@each("kernel", KERNELS, ids=repr)
@each("radius", [0.05, 0.4, 0.8])        # longer than w, it would be chaos
@each("seed", range(3))
@each("budget", [*BUDGETS, ok.Recent(1), ok.Window(3)], ids=repr)
def test_ballseptron_equals_the_oracle(kernel, radius, seed, budget):
    X, y, rng = stream("binary", 20 + seed)
    model = ok.Ballseptron(kernel, radius=radius, budget=budget)
    oracle = ReferenceBallseptron(kernel=describe(kernel), radius=radius, budget=describe(budget))
    expected = oracle.run(X, y)
    close = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, np.max(np.abs(expected)))}
    np.testing.assert_allclose(in_chunks(model, X, y, rng, classes=[-1, 1]), expected, **close)
    np.testing.assert_allclose(model.norm_, oracle.norm(), rtol=1e-8, atol=10 * close["atol"])
    if hasattr(model, "dual_coef_"):
        same_terms(model, oracle, **close)
    model._state.engine._check()


def test_a_ball_as_long_as_w_leaves_nothing_of_it():
    model = ok.Ballseptron("linear", radius=1.0).partial_fit([[1.0, 0.0]], [1], [-1, 1])
    model.learn_one([0.5, 2.0], 1)                      # |w| = r: the factor is 0
    np.testing.assert_array_equal(model.coef_, [[0.5, 2.0]])
    terms = ok.Ballseptron("linear", radius=1.0, budget=10).partial_fit([[1.0, 0.0], [0.5, 2.0]], [1, 1], [-1, 1])
    np.testing.assert_array_equal(terms.coef_, [[0.5, 2.0]])
    assert terms.n_terms_ == 1


# ---- ROMMA --------------------------------------------------------------------------------------------


def test_romma_warns_once_when_it_has_to_start_anew():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), rng.choice([-1, 1], 3000)
    model = ok.ROMMA("linear", aggressive=True)
    with pytest.warns(ok.LearningWarning, match="started anew.*a narrower kernel") as seen:
        model.partial_fit(X[:1500], y[:1500])
        for x, label in zip(X[1500:], y[1500:].tolist()):
            model.learn_one(x, label)
    assert len(seen) == 1
    X, y, _ = separable(0)
    ok.ROMMA("linear", aggressive=True, epochs=20).fit(X, y)


@pytest.mark.filterwarnings("ignore:ROMMA has started anew:onlinekernels.LearningWarning")  # random labels
@covering(2)
@each("kernel", KERNELS, ids=repr)
@each("aggressive", [False, True])
@each("seed", range(3))
@each("budget", [*BUDGETS, ok.Recent(1), ok.Recent(2), ok.Window(3)], ids=repr)
def test_romma_equals_the_oracle(kernel, aggressive, seed, budget):
    X, y, rng = stream("binary", 10 + seed, duplicates=0.0)
    model = ok.ROMMA(kernel, aggressive=aggressive, budget=budget)
    make = lambda: ReferenceROMMA(kernel=describe(kernel), aggressive=aggressive, budget=describe(budget))
    # Where w gets very long, the step divides by what is left of |x|^2 |w|^2 - (w.x)^2: from there on both are rounding
    rows = int(np.argmax(np.append(np.abs(make().run(X, y)) > 1e2, True)))
    assert rows >= 5
    X, y, oracle = X[:rows], y[:rows], make()
    expected = oracle.run(X, y)
    close = {"rtol": 1e-10, "atol": 1e-10 * max(1.0, np.max(np.abs(expected)))}    # w can grow long and turn back
    np.testing.assert_allclose(in_chunks(model, X, y, rng, classes=[-1, 1]), expected, **close)
    np.testing.assert_allclose(model.decision_function(X[:6]), [oracle.f(x)[0] for x in X[:6]], **close)
    np.testing.assert_allclose(model.norm_, oracle.norm(), rtol=1e-9, atol=10 * close["atol"])
    if hasattr(model, "dual_coef_"):
        same_terms(model, oracle, **close)
    model._state.engine._check()


def test_parallel_points():
    """One dimension: everything is parallel, and every number here is exact."""
    model = ok.ROMMA("linear", aggressive=True).partial_fit([[1.0]], [1], classes=[-1, 1])
    np.testing.assert_array_equal(model.coef_, [[1.0]])
    model.learn_one([2.0], 1)                           # beyond the margin: passive
    np.testing.assert_array_equal(model.coef_, [[1.0]])
    model.learn_one([0.5], 1)                           # w.x = 0.5 >= |x|^2 |w|^2 = 0.25: x / |x|^2
    np.testing.assert_array_equal(model.coef_, [[2.0]])
    model.learn_one([0.5], -1)                          # the constraints contradict each other
    np.testing.assert_array_equal(model.coef_, [[-2.0]])
    plain = ok.ROMMA("linear").partial_fit([[1.0], [1.0]], [1, -1])
    np.testing.assert_array_equal(plain.coef_, [[-1.0]])
    for kernel in (ok.Gaussian(), ok.Polynomial(2)):    # the same example with both labels
        for aggressive in (False, True):
            model = ok.ROMMA(kernel, aggressive=aggressive).partial_fit([[1.0, 2.0], [1.0, 2.0]], [1, -1])
            np.testing.assert_allclose(model.decision_function([[1.0, 2.0]]), [-1.0], rtol=1e-12)


@each("kernel", CURVED, ids=repr)
def test_aggressive_romma_does_not_move_for_what_is_right_already(kernel):
    X, y, _ = stream("binary", 5, n=15, duplicates=0.0)
    model = ok.ROMMA(kernel, aggressive=True).fit(X, y)
    for _ in range(3):                                  # y w.x is 1 up to rounding
        before = model.dual_coef_
        model.learn_one(X[-1], y[-1])
        np.testing.assert_array_equal(model.dual_coef_, before)


# ---- The Voted Perceptron -----------------------------------------------------------------------------


@each("kernel", KERNELS, ids=repr)
@each("vote", [True, False])
def test_votes_are_those_of_all_hypotheses(kernel, vote):
    for seed in range(3):
        X, y, rng = stream("binary", seed, n=50, duplicates=0.0)
        points = rng.normal(size=(7, D))
        model, oracle, start = ok.VotedPerceptron(kernel, vote=vote), ReferenceVoted(kernel=describe(kernel)), 0
        while start < len(X):                           # right after each piece, not at the end alone
            stop = start + int(rng.integers(1, 20))
            model.partial_fit(X[start:stop], y[start:stop], classes=[-1, 1])
            oracle.run(X[start:stop], y[start:stop])
            start = stop
            expected = [oracle.decision(x, vote) for x in points]
            np.testing.assert_allclose(model.decision_function(points), expected, rtol=1e-10, atol=1e-9)
        assert sum(oracle.counts) == len(X)
        np.testing.assert_array_equal(model.predict(points), np.where(np.array(expected) > 0, 1, -1))


def test_voting_and_averaging_differ_and_the_perceptron_underneath_is_the_same():
    X, y, _ = stream("binary", 4, n=120, duplicates=0.0)
    voted, averaged = (ok.VotedPerceptron(ok.Gaussian(), vote=vote) for vote in (True, False))
    scores = ok.Perceptron(ok.Gaussian()).progressive(X, y)
    np.testing.assert_allclose(voted.progressive(X, y), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(averaged.progressive(X, y), scores, rtol=1e-12, atol=1e-12)
    votes = voted.decision_function(X)
    np.testing.assert_array_equal(votes, np.round(votes))
    assert np.any(np.sign(votes) != np.sign(averaged.decision_function(X)))
    assert np.max(np.abs(votes)) <= 120


def test_counts_of_a_stream_by_hand():
    """x = 1 is learned at t = 1 and right until t = 3; its negative comes at t = 4 and lives for 2 examples."""
    X, y = np.array([[1.0], [1.0], [1.0], [-0.5], [-0.5]]), [1, 1, 1, 1, 1]
    model = ok.VotedPerceptron("linear", vote=False).partial_fit(X, y, classes=[-1, 1])
    np.testing.assert_array_equal(model.decision_function([[1.0], [2.0]]), (3 * 1.0 + 0.5 + 0.0) * np.array([1, 2]))
    model = ok.VotedPerceptron("linear").partial_fit(X, y, classes=[-1, 1])
    np.testing.assert_array_equal(model.decision_function([[1.0], [-3.0]]), [4.0, -4.0])    # sign(0) is 0


# ---- The Adatron --------------------------------------------------------------------------------------


@each("kernel", KERNELS, ids=repr)
def test_the_adatron_equals_the_oracle(kernel):
    clipped = 0
    for seed, (step, epochs) in enumerate([(0.3, 1), (0.1, 4), (0.1, 30)]):
        X, y, rng = stream("binary", seed)
        alpha = adatron(describe(kernel), X, y, step, epochs)
        clipped += np.sum(alpha == 0)
        model = ok.Adatron(kernel, step=step, epochs=epochs).fit(X, y)
        points = np.concatenate([X[:5], rng.normal(size=(5, D))])
        expected = [adatron_score(describe(kernel), X, y, alpha, x) for x in points]
        np.testing.assert_allclose(model.decision_function(points), expected, **CLOSE)
        signed = alpha * y
        np.testing.assert_allclose(model.norm_**2, signed @ kernel(X) @ signed, rtol=1e-9)
    assert clipped > 0


def maximum_margin(X, y):
    """The shortest w with y w.x >= 1: the best of the w that some set of at most d examples determines."""
    best = None
    for size in range(1, X.shape[1] + 1):
        for subset in map(list, itertools.combinations(range(len(X)), size)):
            w = np.linalg.pinv(X[subset] * y[subset, None]) @ np.ones(size)
            if np.all(y * (X @ w) >= 1 - 1e-9) and (best is None or w @ w < best @ best):
                best = w
    return best


def test_the_adatron_converges_to_the_maximum_margin():
    for seed in range(4):
        X, y, _ = separable(seed, n=14, d=3, gap=0.4)
        best = maximum_margin(X, y)
        model = ok.Adatron("linear", step=0.9 / np.max(np.sum(X**2, axis=1)), epochs=5000).fit(X, y)
        margins = y * model.decision_function(X)
        np.testing.assert_allclose(margins, y * (X @ best), atol=1e-6)
        np.testing.assert_allclose(model.norm_, np.linalg.norm(best), rtol=1e-6)
        np.testing.assert_allclose(np.min(margins), 1.0, atol=1e-6)
    X, y, _ = stream("binary", 0, n=20, duplicates=0.0)     # a Gaussian kernel separates anything: all of KKT
    model = ok.Adatron(ok.Gaussian(), step=1.0, epochs=5000).fit(X, y)
    scores = model.decision_function(X)
    alpha = y * np.linalg.solve(ok.Gaussian()(X), scores)
    assert np.min(y * scores) > 1 - 1e-8 and np.min(alpha) > -1e-8
    np.testing.assert_allclose(alpha * (y * scores - 1), 0.0, atol=1e-7)
    assert np.sum(alpha < 1e-8) > 0


def test_the_adatron_only_fits():
    X, y, _ = stream("binary", 1)
    for model in (ok.Adatron(), ok.Adatron(ok.Gaussian(), epochs=2).fit(X, y)):
        for name in ("partial_fit", "learn_one", "progressive"):
            assert not hasattr(model, name)
    assert set(ok.Adatron().get_params(deep=False)) == {"kernel", "step", "encode", "epochs"}
    again = ok.Adatron(ok.Gaussian(), epochs=2).fit(-X, y).fit(X, y)    # forgets everything
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


# ---- Degenerate input, bad parameters ------------------------------------------------------------------


ALGORITHMS = {
    "projection": ok.Projection,
    "ball": lambda kernel=None, **more: ok.Projection("hinge", kernel, radius=0.8, **more),
    "alma": ok.ALMA,
    "ballseptron": ok.Ballseptron,
    "romma": ok.ROMMA,
    "aggressive": lambda kernel=None, **more: ok.ROMMA(kernel, aggressive=True, **more),
    "voted": ok.VotedPerceptron,
    "averaged": lambda kernel=None, **more: ok.VotedPerceptron(kernel, vote=False, **more),
    "adatron": lambda kernel=None, **more: ok.Adatron(kernel, step=0.1, **more),
}


def make(name, kernel, **more):
    """An algorithm of two classes with a kernel."""
    return ok.Projection("hinge", kernel, **more) if name == "projection" else ALGORITHMS[name](kernel, **more)


@each("name", ALGORITHMS)
def test_an_example_without_length_changes_nothing(name):
    X, y, _ = separable(3, n=30)
    zeros = np.insert(X, [0, 7, 7, 20], 0.0, axis=0)
    labels = np.insert(y, [0, 7, 7, 20], [1, 1, -1, -1])
    alone = {"offset": False} if name in ("projection", "ball") else {}
    model, twin = make(name, "linear", **alone).fit(zeros, labels), make(name, "linear", **alone).fit(X, y)
    if name in ("voted", "averaged"):                   # its examples count, though they make no hypothesis
        oracle = ReferenceVoted(kernel=("Linear", {}))
        oracle.run(zeros, labels)
        expected = [oracle.decision(x, name == "voted") for x in X]
    else:
        expected = twin.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, **CLOSE)
    np.testing.assert_array_equal(model.decision_function(np.zeros((1, 4))), [0.0])


@each("name", ALGORITHMS)
def test_one_class_or_three_are_refused(name):
    X = np.eye(3)
    model = make(name, ok.Gaussian())
    for y, word in ((["a", "a", "a"], "one class"), (["a", "b", "c"], "two labels")):
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=word):
            model.fit(X, y)
        assert pickle.dumps(model) == before
    model.fit(X, ["a", "b", "a"])
    assert model.predict(X).tolist() == ["a", "b", "a"] and model.classes_.tolist() == ["a", "b"]


NAN = float("nan")
BAD = [
    *[(ok.Projection, {"radius": value}, "radius") for value in (0.0, -1.0, NAN, float("inf"), "big", True)],
    *[(ok.Projection, {"loss": loss}, "ogistic") for loss in ("logistic", ok.MulticlassLogistic())],
    *[(ok.Projection, {"loss": loss}, "quared") for loss in ("squared", ok.Squared(), "multiclass_squared")],
    (ok.Projection, {"loss": ok.NuHinge()}, "NuHinge"),
    (ok.Projection, {"offset": "yes"}, "offset"),
    *[(ok.ALMA, {"alpha": value}, "alpha") for value in (0.0, -0.5, 1.5, NAN, None, "x")],
    *[(ok.ALMA, {letter: value}, letter) for letter in "BC" for value in (0.0, -1.0, NAN, "x")],
    *[(ok.ROMMA, {"aggressive": value}, "aggressive") for value in ("yes", 2, None)],
    *[(ok.Ballseptron, {"radius": value}, "radius") for value in (0.0, -1.0, NAN, "x", None)],
    *[(ok.VotedPerceptron, {"vote": value}, "vote") for value in ("yes", 2, None)],
    *[(ok.Adatron, {"step": value}, "step") for value in (0.0, -1.0, NAN, "x", None)],
    *[(algorithm, {"epochs": value}, "epochs") for value in (0, 1.5)
      for algorithm in (ok.Projection, ok.ALMA, ok.Ballseptron, ok.ROMMA, ok.VotedPerceptron, ok.Adatron)],
    *[(algorithm, {"budget": value}, "budget") for value in (0, "x")
      for algorithm in (ok.Projection, ok.ALMA, ok.Ballseptron, ok.ROMMA)],
    *[(algorithm, {"kernel": 5}, "kernel")
      for algorithm in (ok.Projection, ok.ALMA, ok.Ballseptron, ok.ROMMA, ok.VotedPerceptron, ok.Adatron)],
]


@each("algorithm, params, word", BAD, ids=lambda part: str(part))
def test_bad_parameters_are_refused_at_the_first_fit(algorithm, params, word):
    model = algorithm(**params)                         # constructors store and never raise
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=word):
        model.fit(np.eye(2), [1, -1])
    assert pickle.dumps(model) == before
    assert not hasattr(model, "norm_")


# ---- Saving -------------------------------------------------------------------------------------------


def test_a_saved_adatron_answers_as_before(tmp_path):
    X, y, _ = stream("binary", 3)
    for kernel in (ok.Linear(), ok.Gaussian()):
        model = ok.Adatron(kernel, step=0.1).fit(X, np.where(y > 0, "yes", "no"))
        model.save(tmp_path / "m.npz")
        for twin in (ok.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
            np.testing.assert_array_equal(twin.predict(X), model.predict(X))


@each("algorithm", [ok.ROMMA, ok.ALMA, ok.Ballseptron, ok.VotedPerceptron], ids=lambda cls: cls.__name__)
def test_an_object_of_weight_zero_takes_nobodys_place(algorithm):
    """It is left out, and the example that entered before it stays what it is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y, weights = np.where(X[:, 0] * X[:, 1] > 0, 1, -1), rng.integers(0, 3, 60).astype(float)
    gaussian = ok.Gaussian(np.sqrt(0.5))
    model = algorithm(lambda x, z: float(np.exp(-np.sum((np.asarray(x) - np.asarray(z)) ** 2))))
    compiled = algorithm(gaussian)
    for i in range(60):
        for one in (model, compiled):
            one.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1], sample_weight=weights[i : i + 1])
    np.testing.assert_array_equal(np.array(model.support_vectors_), compiled.support_vectors_)
    np.testing.assert_allclose(model.dual_coef_, compiled.dual_coef_, rtol=1e-9)


class TestNormsOfObjects:
    def test_what_crashed(self):
        run_apart("""
            same = lambda a, b: float(a == b)
            ok.ALMA(same, alpha=1.0).fit(["s", "s"], [1, -1])
            ok.Projection("insensitive", same, radius=10.0).fit(["s", "s"], [5.0, 0.0])
            ok.ROMMA(lambda a, b: float(a * b)).fit([1.0, 1.0, -1.0, 1.0, 2.0], [1, -1, -1, 1, -1])
        """)

    @each("model", [
        lambda kernel: ok.ALMA(kernel, alpha=1.0), lambda kernel: ok.ALMA(kernel, alpha=0.5),
        lambda kernel: ok.ROMMA(kernel), lambda kernel: ok.ROMMA(kernel, aggressive=True),
        lambda kernel: ok.Projection("insensitive", kernel, radius=1.5), lambda kernel: ok.Projection("hinge", kernel, radius=0.7),
    ], ids=["alma0", "alma", "romma", "aggressive", "projection", "projection hinge"])
    def test_a_callable_gives_what_the_built_in_kernel_gives(self, model):
        """Repeated and nearly opposite points, so that |f| shrinks to where it must be computed anew."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(60, 2))[rng.integers(0, 25, 60)]
            y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1)
            objects = model(lambda a, b: float(np.exp(-np.sum((a - b) ** 2) / 2)))
            points = model(ok.Gaussian(1.0))
            given = {"classes": [-1, 1]} if hasattr(points, "decision_function") else {}
            expected, got = (m.progressive(X, y.astype(float), **given) for m in (points, objects))
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * scale)
            assert np.isclose(objects.norm_, points.norm_, rtol=1e-7)
            assert np.isclose(objects._state.hypothesis.norms()[1], objects.norm_**2, rtol=1e-6, atol=1e-9)

    def test_a_kernel_that_fails_while_the_norm_is_computed_leaves_a_whole_model(self):
        fail = [False]

        def kernel(a, b):
            if fail[0]:
                raise KeyError("no kernel today")
            return float(a == b)

        model = ok.Projection("insensitive", kernel, radius=10.0).partial_fit(["s"] * 2, [5.0, 0.0])
        before = model.dual_coef_.tolist()
        fail[0] = True
        with pytest.raises(KeyError):
            model.partial_fit(["t"], [1.0])
        fail[0] = False
        assert model.t_ == 2 and model.dual_coef_.tolist() == before
        model.partial_fit(["t"], [1.0])
        model._state.engine._check()


@pytest.mark.filterwarnings("ignore:ROMMA has started anew:onlinekernels.LearningWarning")
@each("aggressive", [False, True])
def test_romma_is_right_up_to_its_cap_and_starts_anew_there(aggressive):
    """Against the definition in exact fractions."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(-9, 10, size=(120, 2)) / 4 + 0.125
        y = np.where(X[:, 0] + rng.normal(size=120) > 0, 1, -1)
        model = ok.ROMMA("linear", aggressive=aggressive)
        w, restarts = [Fraction(0)] * 2, 0
        for x, label in zip(X, y):
            exact, label = [Fraction(value) for value in x], int(label)
            k, f, ww = sum(v * v for v in exact), sum(a * b for a, b in zip(w, exact)), sum(a * a for a in w)
            if label * f < 1 if aggressive else label * f <= 0:
                rest, start = k * ww - f * f, [label * v / k for v in exact]
                if label * f >= k * ww or rest == 0:
                    new = start
                else:
                    c, d = (k * ww - label * f) / rest, ww * (label - f) / rest
                    new = [c * a + d * b for a, b in zip(w, exact)]
                    if sum(a * a for a in new) * k > 10**10:
                        new, restarts = start, restarts + 1
                w = new
            model.partial_fit(x[None], [label], classes=[-1, 1])
            exact_w = np.array([float(v) for v in w])
            np.testing.assert_allclose(model.coef_[0], exact_w, rtol=1e-4, atol=1e-4 * np.linalg.norm(exact_w))
            assert model.norm_ * np.sqrt(float(k)) < 1e6
            w = [Fraction(float(v)) for v in model.coef_[0]]    # compare step by step
        assert restarts > 0


@each("make", [ok.VotedPerceptron, lambda: ok.VotedPerceptron(vote=False), ok.ALMA, ok.ROMMA, ok.Ballseptron],
      ids=["votes", "averages", "alma", "romma", "ballseptron"])
def test_an_example_of_weight_zero_is_left_out(make):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=50) > 0, 1, -1)
    weights = rng.integers(0, 2, 50).astype(float)
    model, without = make(), make()
    scores = model.progressive(X, y, [-1, 1], weights)
    kept = without.progressive(X[weights > 0], y[weights > 0], [-1, 1])
    np.testing.assert_allclose(scores[weights > 0], kept, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), rtol=1e-12, atol=1e-12)
    assert model.t_ == without.t_ == weights.sum()


def test_passive_aggressive_steps_by_their_definition():
    """With the loss l, k = k(x, x) and the penalty C: l / k, min(C, l / k) and l / (k + 1 / (2 C)); Crammer et al. (2006)."""
    for C, weight in itertools.product((0.1, 0.4, 3.0), (1.0, 0.5)):
        for variant, step in (("PA", 0.5), ("PA-I", min(C * weight, 0.5)), ("PA-II", 1.0 / (2.0 + 0.5 / (C * weight)))):
            model = ok.PassiveAggressive("hinge", 2.0 * ok.Gaussian(), penalty=C, variant=variant)
            model.partial_fit([[0.0]], [1], classes=[-1, 1], sample_weight=[weight])
            np.testing.assert_allclose(model.dual_coef_, [[step]], rtol=1e-14)


@each("variant", ["PA", "PA-I", "PA-II"])
def test_rounding_makes_no_terms(variant):
    """A row that comes again is met already, up to rounding, and that is no reason for a term."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    model = ok.PassiveAggressive(ok.Insensitive(0.0), ok.Gaussian(1.0), variant=variant, penalty=1e3)
    if variant == "PA-II":  # its steps end short of the target
        model.set_params(loss=ok.Hinge(0.0)).partial_fit(X, np.sign(y))
        assert model.n_terms_ < 200
        return
    model.partial_fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert model.n_terms_ == 200
