"""A model that starts from the function of another one."""
import pickle

import numpy as np
import pytest
from cases import each
from small_models import NEW, TARGETS, X, dot

import onlinekernels as ok

RNG = np.random.default_rng(5)
BUDGETS = [None, 100, 4, ok.Window(100), ok.Window(4), ok.Smallest(100), ok.Smallest(4), ok.Sublinear(1.0, 100)]


class TestInitial:
    """f_1 is the other model's function, cut to the budget; t starts at 0."""

    STARTS = {"terms": lambda kernel: ok.NORMA("squared", kernel, step=0.1),
              "recent": lambda kernel: ok.NORMA("absolute", kernel, step=0.1, budget=9),
              "window": lambda kernel: ok.NORMA("squared", kernel, step=0.1, budget=ok.Window(13)),
              "smallest": lambda kernel: ok.NORMA("huber", kernel, step=0.1, budget=ok.Smallest(8)),
              "offset": lambda kernel: ok.NORMA("squared", kernel, step=0.1, offset=True),
              "average": lambda kernel: ok.NORMA("squared", kernel, step=0.1, average=True)}

    def kept(self, start, budget):
        """f of `start` at X and NEW when only the terms that the budget keeps are counted."""
        points, alpha = start.support_vectors_, start.dual_coef_[0]
        live = np.flatnonzero(alpha)
        if isinstance(budget, ok.Smallest):
            live = live[np.sort(np.argsort(np.abs(alpha[live]), kind="stable")[-budget.size:])]
        elif isinstance(budget, ok.Window):
            live = live[live >= len(alpha) - budget.steps]
        elif isinstance(budget, int):
            live = live[-budget:]
        points = [points[i] for i in live]
        return (start._state.kernel(np.r_[X, NEW], points) @ alpha[live] if len(live) else 0.0) + start.intercept_

    @each("budget", BUDGETS, ids=repr)
    @each("kernel", [ok.Gaussian(1.5), ok.Laplacian(), ok.Polynomial(2, 0.1), dot], ids=str)
    @each("start", STARTS)
    def test_terms_go_on(self, start, kernel, budget):
        start = self.STARTS[start](kernel).partial_fit(X, TARGETS)
        before = pickle.dumps(start)
        model = ok.NORMA("squared", kernel, budget=budget, offset=True, regularization=0.0)
        first = model.progressive(NEW[:1], [1.0], sample_weight=[0.0], initial=start)  # learns nothing
        expected = self.kept(start, budget)
        assert np.isclose(first[0], expected[40], rtol=1e-10, atol=1e-12)
        if not isinstance(budget, ok.Window) or budget.steps >= 100:
            assert np.allclose(model.predict(np.r_[X, NEW]), expected, rtol=1e-10, atol=1e-12)
        assert model.t_ == 1
        model._state.engine._check()
        model.partial_fit(X, TARGETS)
        assert pickle.dumps(start) == before

    @each("kernel, first, second, words", [
        ("linear", None, 5, "Terms. Got Weights"), ("linear", 5, None, "Weights. Got Terms"),
        (ok.AdditiveMatern(), None, 5, "BudgetedTrees. Got Trees"),
        (ok.AdditiveMatern(), 5, None, "Trees. Got BudgetedTrees"),
        (ok.AdditiveMatern(), 5, ok.Projecting(5), "Terms. Got BudgetedTrees"),
    ], ids=str)
    def test_another_representation_is_refused(self, kernel, first, second, words):
        start = ok.NORMA("squared", kernel, budget=first).partial_fit(X, TARGETS)
        model = ok.NORMA("squared", kernel, budget=second)
        with pytest.raises(ValueError, match=f"^initial must .* the representation of this model, {words} instead"):
            model.partial_fit(X, TARGETS, initial=start)
        assert not model.__sklearn_is_fitted__()


@each("algorithm", [ok.SVMD, ok.ILK])
@each("offset", [False, True])
def test_an_adapted_step_knows_the_norm_of_its_start(algorithm, offset):
    """eta_2 = eta_1 max(1/2, 1 - mu <g, v>) with g = lambda f + l' k(x, .), in plain sums: |f_1| is not 0."""
    start = ok.NORMA("squared", ok.Gaussian(1.2), step=0.3).partial_fit(X, TARGETS)
    eta, mu, lam, K = 0.1, 0.5, 0.9, ok.Gaussian(1.2)
    step = {"step": ok.MetaDescent(eta, mu)} if algorithm is ok.ILK else {"step": eta, "meta_step": mu}
    model = algorithm("absolute", K, **step, regularization=lam, offset=offset, budget=None)
    _, steps = model.progressive(NEW[:2], [9.0, 9.0], initial=start, return_steps=True)
    alpha, points = start.dual_coef_[0], np.r_[start.support_vectors_, NEW[:1]]
    shrink = 1 / (1 + eta * lam) if algorithm is ok.ILK else 1 - eta * lam
    first = np.r_[alpha, 0.0]
    f = np.r_[shrink * alpha, eta * shrink if algorithm is ok.ILK else eta]
    v = (shrink if algorithm is ok.ILK else 1) * (f - first)        # of (42); implicit: (1 + eta lambda)^-1 of it
    product = lam * f @ K(points) @ v - v @ K(points, NEW[1:2])[:, 0] - (eta if offset else 0.0) * (algorithm is ok.ILK)
    np.testing.assert_allclose(steps[1] / steps[0], max(0.5, 1 - mu * product), rtol=1e-9)


class TestStartOfManyLabels:
    @each("kernel", ["gaussian", "linear", ok.AdditiveExponential(), ok.AdditiveSpline() + ok.AdditiveMatern() + 0.5 + ok.Noise(0.1)], ids=str)
    @each("loss", ["multiclass_hinge", "multiclass_logistic", "multiclass_squared"])
    @each("budget", [None, 30])
    @each("labels", [None, ok.LabelGraph([("c", "a", 1.0), ("a", "d", 2.0), ("d", "b", 1.0)])],
          ids=["classes", "graph"])
    def test_labels_find_their_places(self, kernel, loss, budget, labels):
        X = RNG.uniform(0.1, 0.9, size=(30, 2))
        y = np.array(["b", "a", "d"])[RNG.integers(0, 3, 30)]
        start = ok.NORMA(loss, kernel, offset=True, budget=budget).partial_fit(X, y)
        model = ok.NORMA(loss, kernel, offset=True, budget=budget, labels=labels, regularization=0.0)
        classes = ["a", "b", "c", "d"] if labels is None else None
        model.partial_fit(X[:1], y[:1], classes, [0.0], initial=start)
        places = [model.classes_.tolist().index(label) for label in start.classes_]
        assert sorted(model.classes_) == ["a", "b", "c", "d"]
        scores = model.decision_function(X)
        np.testing.assert_allclose(scores[:, places], start.decision_function(X), rtol=1e-10, atol=1e-12)
        assert not scores[:, model.classes_.tolist().index("c")].any()
        model.partial_fit(X, np.where(y == "a", "c", y))
        model._state.engine._check()
        again = pickle.loads(pickle.dumps(model))
        assert (again.decision_function(X) == model.decision_function(X)).all()


def test_a_start_is_checked_where_it_arrives():
    """Coefficients, pairs of labels and points of another shape were written past the end of arrays."""
    X = RNG.normal(size=(30, 2))
    signs, classes = np.where(X[:, 0] > 0, 1, -1), np.digitize(X[:, 0], [-0.5, 0.5])
    points, one, pairs = X[:4], np.ones((1, 4)), np.array([[0, 1, 2, 0], [1, 2, 0, 2]])
    two = [(points, one, pairs), (points, np.ones((3, 4)), None), (points, np.ones((1, 5)), None),
           (points[:, :1], one, None),
           (points, one[0], None), (points, one * np.nan, None), (np.zeros((4, 3)), one, None)]
    many = [(points, np.ones((4, 4)), None), (points, one, pairs + 1), (points, one, pairs - 1),
            (points, one, pairs[:, :3]),
            (points, one, pairs.astype(float)), (points, np.ones((3, 4)), pairs)]
    for model, y, starts in (
        (ok.NORMA("hinge", ok.Gaussian(1.0)), signs, two),
        (ok.NORMA("hinge", ok.Gaussian(1.0), budget=ok.Projecting(9)), signs, two),
        (ok.NORMA("hinge", ok.AdditiveMatern(1.0)), signs,
         two + [(None, []), (None, [([], [], np.ones((2, 0)), [])] * 2)]),
        (ok.NORMA("hinge", ok.AdditiveMatern(1.0), budget=5), signs, two),
        (ok.NORMA("hinge", "linear"), signs,
         [(None, weights) for weights in (np.ones((2, 2)), np.ones((1, 3)), [1, 1], [[np.inf, 0]])]),
        (ok.NORMA("multiclass_hinge", ok.Gaussian(1.0), budget=5), classes, many + [(points, np.ones((3, 4)), None)]),
        (ok.NORMA("multiclass_hinge", ok.Gaussian(1.0), budget=ok.Merging(5)), classes, many),
    ):
        hypothesis = model.fit(X, y)._state.hypothesis
        before = hypothesis.state()
        for start in starts:
            with pytest.raises(ValueError):
                hypothesis.begin_from(np.zeros(1), *start)
        for offset in (np.zeros(9), np.zeros((1, 1)), np.array([np.nan])):
            with pytest.raises(ValueError, match="offset"):
                hypothesis.begin_from(offset, *starts[0])
        np.testing.assert_equal(hypothesis.state(), before)
