"""Long streams: no overflow, no drift, flat memory; the promises of the nu-losses."""
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

# A margin out of reach makes a term of every example.
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")


@pytest.mark.parametrize("calls", [5, pytest.param(50, marks=pytest.mark.slow)], ids=["million", "ten million"])
def test_millions_of_steps_neither_drift_nor_grow(calls):
    """One example in a thousand enters; its coefficient then equals explicit decay to 1e-9."""
    rng = np.random.default_rng(0)
    rows, every, size = 200_000, 1000, 64
    eta, lam = 0.5, 0.2                                 # decay 0.9: without folds P underflows at once
    slow_eta, slow_lam = 0.01, 0.001                    # decay 1 - 1e-5: terms live long
    X = rng.normal(size=(rows, 4))
    weights = np.zeros(rows)
    weights[every - 1::every] = 1.0
    fast = ok.NORMA(ok.Novelty(1e6), ok.Gaussian(2.0), step=eta, regularization=lam, budget=size)
    slow = ok.NORMA(ok.Novelty(1e6), ok.Gaussian(2.0), step=slow_eta, regularization=slow_lam, budget=size)
    fast.partial_fit(X[:10_000], sample_weight=weights[:10_000])
    slow.partial_fit(X, sample_weight=weights)
    tracemalloc.start()
    for call in range(1, calls):
        slow.partial_fit(X, sample_weight=weights)
        if call == 2:
            early = tracemalloc.get_traced_memory()[0]
    growth = tracemalloc.get_traced_memory()[0] - early
    tracemalloc.stop()
    assert slow.t_ == rows * calls
    assert slow.n_terms_ == size
    ages = every * np.arange(size - 1, -1, -1)
    log_decay = math.log1p(-slow_eta * slow_lam)
    np.testing.assert_allclose(slow.dual_coef_[0], slow_eta * np.exp(ages * log_decay), rtol=1e-9)
    assert growth < 20_000
    # decay 0.9 per step: after 1000 steps a coefficient is 1e-46 of itself, and still exact
    expected = eta * (1 - eta * lam) ** (every * np.arange(fast.n_terms_ - 1, -1, -1.0))
    np.testing.assert_allclose(fast.dual_coef_[0], expected, rtol=1e-9)


def test_coefficients_fade_to_nothing_and_their_terms_with_them():
    model = ok.NORMA(ok.Novelty(1e6), ok.Gaussian(), step=1.0, regularization=0.9)
    X = np.random.default_rng(1).normal(size=(2000, 2))
    model.partial_fit(X)
    expected = 0.1 ** np.arange(model.n_terms_ - 1, -1, -1.0)
    np.testing.assert_allclose(model.dual_coef_[0], expected, rtol=1e-9)
    assert 300 < model.n_terms_ <= 500                  # 1e-308 and what waits for the next fold
    model._state.engine._check()


@each("budget", [ok.Recent(330), ok.Smallest(330), ok.Window(330)], ids=repr)
def test_a_term_that_has_faded_leaves_the_trees_and_the_budget_together(budget):
    """A budget that chose it later, in the same piece, would take somebody else's key out of the trees."""
    model = ok.NORMA(ok.Novelty(1e6), ok.AdditiveExponential(), step=1.0, regularization=0.9, budget=budget)
    X = np.random.default_rng(1).normal(size=(1500, 2))
    for part in np.array_split(X, 2):
        model.partial_fit(part)
        model._state.engine._check()
    assert type(model._state.function).__name__ == "BudgetedTrees" and model.n_terms_ <= 330
    alpha = 0.1 ** np.arange(model.n_terms_ - 1, -1, -1.0)
    np.testing.assert_allclose(model.dual_coef_[0], alpha, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X[:50]), model.kernel_(X[:50], X[-len(alpha):]) @ alpha, rtol=1e-9)


@each("kernel", [ok.Gaussian(), ok.AdditiveExponential()], ids=repr)
@each("budget", [ok.Window(2000), ok.Recent(330), ok.RandomRemoval(330), ok.Redundant(330)], ids=repr)
def test_budgets_meet_no_faded_terms_wherever_pieces_end(kernel, budget):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 2)), rng.choice([-1, 1], size=700)
    models = []
    for chunk in (1, 37, 700):
        model = ok.NORMA(ok.Hinge(1e6), kernel, step=1.0, regularization=0.9, budget=budget)
        for first in range(0, 700, chunk):
            model.partial_fit(X[first:first + chunk], y[first:first + chunk], classes=[-1, 1])
        models.append(pickle.loads(pickle.dumps(model)))        # slots are in an order that a file may have
    for model in models[1:]:
        assert np.array_equal(model.support_vectors_, models[0].support_vectors_)
        np.testing.assert_allclose(model.dual_coef_, models[0].dual_coef_, rtol=1e-9)


@each("average", [False, True])
def test_a_decay_of_zero_wipes_the_past(average):
    X = np.random.default_rng(2).normal(size=(300, 2))
    budgets = [None] if average else [None, ok.Recent(5), ok.Window(5), ok.Smallest(5)]
    for budget in budgets:
        model = ok.NORMA(ok.Novelty(1e6), ok.Gaussian(), step=0.5, regularization=2.0, budget=budget, average=average)
        scores = model.progressive(X)
        np.testing.assert_allclose(scores[1:], 0.5 * ok.Gaussian()(X[1:], X[:-1]).diagonal(), rtol=1e-12)
        model._state.engine._check()
        if not average:
            assert model.n_terms_ == 1
        else:
            np.testing.assert_allclose(model.dual_coef_[0], [0.5 / 300] * 299 + [0.0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")  # it has, with f's step
@each("nu", [0.01, 0.1, 0.5])
def test_the_alert_fraction_comes_to_nu_and_the_invariant_holds(nu):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100_000, 2))
    eta = 0.05
    loss = ok.NuNovelty(nu, margin=0.3, margin_step=None)
    model = ok.NORMA(loss, ok.Gaussian(1.0), step=eta, regularization=0.2, budget=200)
    alerts = 0
    for start in range(0, len(X), 1000):
        rho = model.margin_ if start else 0.3
        chunk = model.progressive(X[start:start + 1000])
        for score in chunk:                             # rho as it was before each example
            alert = score < rho
            alerts += alert
            rho += eta * (nu - alert)
        np.testing.assert_allclose(model.margin_, rho, rtol=1e-12, atol=1e-12)
    assert abs(alerts / len(X) - nu) < 0.1 * nu
    np.testing.assert_allclose(model.margin_ - 0.3, eta * (nu * len(X) - alerts), rtol=0, atol=1e-9)


def test_coefficients_below_the_smallest_normal_number_are_zero():
    """They have lost digits: a fold ends them, and the term goes, so that the next example makes another one."""
    model = ok.NORMA(ok.Hinge(margin=0.0), "gaussian", step=1e-10, regularization=0.5e10)  # each example halves f
    terms = []
    for _ in range(1040):
        model.learn_one([0.0], 1) if terms else model.partial_fit([[0.0]], [1], classes=[-1, 1])
        stored = np.abs(model._state.hypothesis.state()["coefficients"])
        assert ((stored == 0.0) | (stored >= np.finfo(float).tiny)).all()
        terms.append(model.dual_coef_.max(initial=0.0))
    assert np.count_nonzero(np.diff(terms) > 0) == 1  # f came back once
