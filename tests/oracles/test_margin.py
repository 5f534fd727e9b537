"""Projection, ALMA, the Ballseptron, ROMMA, the Voted Perceptron and the Adatron: against their oracles and their own
definitions."""
from fractions import Fraction

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each
from reference_margin import (ReferenceALMA, ReferenceBallseptron, ReferencePassiveAggressive, ReferenceProjection,
                              ReferenceROMMA, ReferenceVoted, adatron, adatron_score,)
from test_oracle import describe

N, D = 40, 3
NAMES = ["a", "b", "c", "d"]
KERNELS = [ok.Linear(), ok.Gaussian(1.3), ok.Polynomial(3, 0.3, 1.0), ok.Gaussian(2) + 0.1
           * ok.Linear() + ok.Constant()]
BUDGETS = [ok.Unlimited(), ok.Recent(7), ok.Window(9), ok.Smallest(6)]
LOSSES = [ok.Hinge(1.0), ok.Hinge(0.4), ok.Insensitive(0.2), ok.SquaredInsensitive(0.3), ok.MulticlassHinge(0.8)]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def stream(task, seed, n=N, d=D, duplicates=0.1):
    """Random points, some of them twice, and random targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(n) < duplicates] = X[0]
    y = {"binary": rng.choice([-1, 1], n), "multiclass": rng.choice(NAMES, n), "regression": rng.normal(size=n),}[task]
    return X, y, rng


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


@covering(2)
@each("variant", ["PA", "PA-I", "PA-II"])
@each("kernel", KERNELS, ids=repr)
@each("loss", [ok.Hinge(), ok.Insensitive(0.2), ok.MulticlassHinge()], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_passive_aggressive_equals_the_oracle(variant, loss, kernel, budget, offset):
    X, y, rng = stream(loss.task, BUDGETS.index(budget) + offset)
    model = ok.PassiveAggressive(loss, kernel, penalty=0.3, variant=variant, budget=budget, offset=offset)
    oracle = ReferencePassiveAggressive(variant, 0.3, loss=describe(loss), kernel=describe(kernel), offset=offset,
                                        budget=describe(budget), labels=NAMES if loss.task == "multiclass" else None)
    scores = in_chunks(model, X, y, rng, **first_call(loss.task))
    np.testing.assert_allclose(scores, oracle.run(X, y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, oracle.b, rtol=1e-9, atol=1e-9)


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


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")  # random labels
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


def test_the_adatron_only_fits():
    X, y, _ = stream("binary", 1)
    for model in (ok.Adatron(), ok.Adatron(ok.Gaussian(), epochs=2).fit(X, y)):
        for name in ("partial_fit", "learn_one", "progressive"):
            assert not hasattr(model, name)
    assert set(ok.Adatron().get_params(deep=False)) == {"kernel", "step", "encode", "epochs"}
    again = ok.Adatron(ok.Gaussian(), epochs=2).fit(-X, y).fit(X, y)    # forgets everything
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
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


class Distance(ok.Loss):
    """|f - y|, in Python."""

    def derivative(self, score, y):
        return float(np.sign(score - y))


@each("learner, loss, settings", [
    (ok.PassiveAggressive, ok.Insensitive(0.0), {}), (ok.PassiveAggressive, ok.Hinge(), {}),
    (ok.ILK, ok.Absolute(), {"regularization": 0.0}), (ok.PassiveAggressive, Distance(), {}),
    (ok.ILK, ok.MulticlassHinge(), {"regularization": 0.0, "exact": True})], ids=repr)
def test_a_cap_that_no_step_reaches_makes_no_coefficient_dust(learner, loss, settings):
    """Its natural size is what the score is away from the target then; a row that comes again still makes no term."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(60, 2)), 2, axis=0)
    y = np.sin(X[:, 0]) if loss.task == "regression" else np.sign(X[:, 0])
    models = [learner(loss, ok.Gaussian(0.5), penalty=penalty, **settings).partial_fit(X, y) for penalty in (1e4, 1e14)]
    assert models[0].n_terms_ == models[1].n_terms_ <= len(X) // 2
    np.testing.assert_allclose(models[1].dual_coef_, models[0].dual_coef_, rtol=1e-9)
