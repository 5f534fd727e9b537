"""A model that starts from the function of another one."""
import functools
import pickle

import numpy as np
import pytest
from cases import each
from small_models import LABELS, NEW, TARGETS, X, dot, overlap

import onlinekernels as ok

RNG = np.random.default_rng(5)
BUDGETS = [None, 100, 4, ok.Window(100), ok.Window(4), ok.Smallest(100), ok.Smallest(4), ok.Sublinear(1.0, 100)]


class TestInitial:
    """f_1 is the other model's function, cut to the budget; t starts at 0."""

    STARTS = {
        "terms": lambda kernel: ok.NORMA("squared", kernel, step=0.1),
        "recent": lambda kernel: ok.NORMA("absolute", kernel, step=0.1, budget=9),
        "window": lambda kernel: ok.NORMA("squared", kernel, step=0.1, budget=ok.Window(13)),
        "smallest": lambda kernel: ok.NORMA("huber", kernel, step=0.1, budget=ok.Smallest(8)),
        "offset": lambda kernel: ok.NORMA("squared", kernel, step=0.1, offset=True),
        "average": lambda kernel: ok.NORMA("squared", kernel, step=0.1, average=True),
    }

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

    def test_a_term_of_the_average_that_is_zero_takes_no_room(self):
        start = ok.NORMA("squared", average=True).partial_fit(X[:6], TARGETS[:6])
        size = np.count_nonzero(start.dual_coef_)
        model = ok.NORMA("squared", budget=size, regularization=0.0)
        model.partial_fit(X[:1], [1.0], sample_weight=[0.0], initial=start)
        assert np.allclose(model.predict(NEW), start.predict(NEW), rtol=1e-12)
        assert model.n_terms_ == size

    @each("kernel", [ok.Linear(), 0.25 * ok.Linear()], ids=repr)
    @each("average", [False, True])
    def test_weights_go_on(self, kernel, average):
        start = ok.NORMA("squared", kernel, average=average, offset=True).partial_fit(X, TARGETS)
        model = ok.NORMA("squared", kernel, offset=True, regularization=0.0)
        model.partial_fit(X[:1], [1.0], sample_weight=[0.0], initial=start)
        assert np.allclose(model.predict(NEW), start.predict(NEW), rtol=1e-12)
        assert np.allclose(model.coef_, start.coef_, rtol=1e-12)
        assert model.n_terms_ == 0

    @each("kernel, first, second, words", [
        ("linear", None, 5, "Terms. Got Weights"), ("linear", 5, None, "Weights. Got Terms"),
        (ok.AdditiveMatern(), None, 5, "BudgetedTrees. Got Trees"), (ok.AdditiveMatern(), 5, None, "Trees. Got BudgetedTrees"),
        (ok.AdditiveMatern(), 5, ok.Projecting(5), "Terms. Got BudgetedTrees"),
    ], ids=str)
    def test_another_representation_is_refused(self, kernel, first, second, words):
        start = ok.NORMA("squared", kernel, budget=first).partial_fit(X, TARGETS)
        model = ok.NORMA("squared", kernel, budget=second)
        with pytest.raises(ValueError, match=f"^initial must have the kernel and the representation of this model, {words} instead"):
            model.partial_fit(X, TARGETS, initial=start)
        assert not model.__sklearn_is_fitted__()

    def test_a_start_without_terms_is_zero(self):
        for kernel, points in (("gaussian", X), ("laplacian", X), (overlap, list("abcd"))):
            start = ok.NORMA("squared", kernel).partial_fit(points[:1], [1.0], sample_weight=[0.0])
            assert start.n_terms_ == 0
            model = ok.NORMA("squared", kernel).partial_fit(points[:3], [1.0, 2.0, 3.0], initial=start)
            plain = ok.NORMA("squared", kernel).partial_fit(points[:3], [1.0, 2.0, 3.0])
            assert (model.predict(points) == plain.predict(points)).all()

    @each("method", ["fit", "partial_fit", "progressive"])
    def test_it_continues_like_a_model_that_never_stopped(self, method):
        whole = ok.NORMA("squared", step=0.2).partial_fit(X, TARGETS)
        start = ok.NORMA("squared", step=0.2).partial_fit(X[:20], TARGETS[:20])
        model = ok.NORMA("squared", step=0.2)
        getattr(model, method)(X[20:], TARGETS[20:], initial=start)
        assert np.allclose(model.predict(NEW), whole.predict(NEW), rtol=1e-10)
        assert model.t_ == 20

    def test_a_model_may_start_from_itself(self):
        model = ok.NORMA("squared", step=0.2).partial_fit(X[:20], TARGETS[:20])
        whole = ok.NORMA("squared", step=0.2).partial_fit(X, TARGETS)
        model.fit(X[20:], TARGETS[20:], initial=model)
        assert np.allclose(model.predict(NEW), whole.predict(NEW), rtol=1e-10)

    def test_labels_come_along(self):
        start = ok.Perceptron().partial_fit(X, np.where(LABELS > 0, "yes", "no"))
        model = ok.NORMA("logistic").partial_fit(X[:2], ["yes", "yes"], initial=start)
        assert model.classes_.tolist() == ["no", "yes"]

    def test_precision_may_differ(self):
        for before, after in ((np.float32, np.float64), (np.float64, np.float32)):
            start = ok.NORMA("squared").partial_fit((50 + X).astype(before), TARGETS)
            model = ok.NORMA("squared", regularization=0.0)
            model.partial_fit((50 + X[:1]).astype(after), [1.0], sample_weight=[0.0], initial=start)
            assert np.allclose(model.predict(50 + NEW), start.predict(50 + NEW), rtol=1e-3, atol=1e-4)

    def test_callable_objects_are_the_same_kernel(self):
        kernel = functools.partial(lambda scale, a, b: scale * overlap(a, b), 2.0)
        start = ok.NORMA("squared", kernel, step=0.01).partial_fit(["ab", "bc"], [1.0, 2.0])
        model = ok.NORMA("squared", kernel, step=0.01).partial_fit(["abc"], [1.0], initial=start)
        assert model.n_terms_ == 3


# ---- initial= and label structures ------------------------------------------------------------------------------------


PARENTS = {"a": "left", "b": "left", "c": "right", "left": "top", "right": "top"}


class TestStartOfManyLabels:
    @each("kernel", ["gaussian", "linear", ok.AdditiveExponential()], ids=str)
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

    def test_a_taxonomy_goes_on_as_itself_and_no_other_label_kernel_does(self):
        X, y = np.eye(3), ["a", "b", "c"]
        tree = ok.Taxonomy(PARENTS)
        start = ok.NORMA("graph_hinge", labels=tree).partial_fit(X, y)
        model = ok.NORMA("graph_hinge", labels=ok.Taxonomy(dict(PARENTS)), regularization=0.0)
        model.partial_fit(X[:1], y[:1], sample_weight=[0.0], initial=start)
        np.testing.assert_allclose(model.decision_function(X), start.decision_function(X), rtol=1e-12)
        for other in (None, ok.Taxonomy({**PARENTS, "d": "right"}), ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])):
            with pytest.raises(ValueError, match="label kernel"):
                ok.NORMA("graph_hinge" if other else "multiclass_hinge", labels=other).fit(X, y, initial=start)

    def test_labels_that_a_structure_does_not_have_are_refused(self):
        start = ok.NORMA("multiclass_hinge").fit(np.eye(3), ["a", "b", "z"])
        graph = ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])
        with pytest.raises(ValueError, match="'z'"):
            ok.NORMA("multiclass_hinge", labels=graph).fit(np.eye(3), ["a", "b", "c"], initial=start)

    def test_a_two_class_model_cannot_start_one_of_many_classes(self):
        start = ok.NORMA("hinge").fit(np.eye(2), [0, 1])
        model = ok.NORMA("multiclass_hinge")
        with pytest.raises(ValueError, match="initial is for binary"):
            model.fit(np.eye(2), [0, 1], initial=start)
        assert not model.__sklearn_is_fitted__()

    def test_a_sparse_model_without_terms_starts_a_dense_one_and_the_other_way_round(self):
        sparse = pytest.importorskip("scipy.sparse")
        X, y = np.eye(3), [1.0, 2.0, 3.0]
        for kernel in ("gaussian", "linear"):
            for first, second in ((sparse.csr_matrix(X), X), (X, sparse.csr_matrix(X))):
                start = ok.NORMA("squared", kernel).partial_fit(first[:1], [0.0], sample_weight=[0.0])
                model = ok.NORMA("squared", kernel).partial_fit(second, y, initial=start)
                plain = ok.NORMA("squared", kernel).partial_fit(second, y)
                assert (model.predict(second) == plain.predict(second)).all()
        start = ok.NORMA("squared", "gaussian").partial_fit(X, y)
        with pytest.raises(ValueError, match="the kind of rows of this model, 'sparse'"):
            ok.NORMA("squared", "gaussian").partial_fit(sparse.csr_matrix(X), y, initial=start)

def test_a_start_is_that_of_the_call_whatever_it_learns_meanwhile():
    """Rows are looked at after the start is taken; what the other model learns in between is not part of it."""
    class Late:
        def __array__(self, dtype=None, copy=None):
            start.partial_fit(X[20:], TARGETS[20:])
            return NEW[:3].copy()

        def __len__(self):
            return 3

    start = ok.NORMA("squared", ok.Gaussian(1.2), step=0.3).partial_fit(X[:20], TARGETS[:20])
    expected = start.predict(NEW)
    model = ok.NORMA("squared", ok.Gaussian(1.2), regularization=0.0)
    model.partial_fit(Late(), [1.0, 2.0, 3.0], sample_weight=[0.0, 0.0, 0.0], initial=start)
    assert start.t_ == 40 and np.abs(start.predict(NEW) - expected).max() > 0.1
    assert np.allclose(model.predict(NEW), expected, rtol=1e-10, atol=1e-12)


# ---- Functions to start from -------------------------------------------------------------------------------------------


def test_a_start_is_checked_where_it_arrives():
    """Coefficients, pairs of labels and points of another shape were written past the end of arrays."""
    X = RNG.normal(size=(30, 2))
    signs, classes = np.where(X[:, 0] > 0, 1, -1), np.digitize(X[:, 0], [-0.5, 0.5])
    points, one, pairs = X[:4], np.ones((1, 4)), np.array([[0, 1, 2, 0], [1, 2, 0, 2]])
    two = [(points, one, pairs), (points, np.ones((3, 4)), None), (points, np.ones((1, 5)), None), (points[:, :1], one, None),
           (points, one[0], None), (points, one * np.nan, None), (np.zeros((4, 3)), one, None)]
    many = [(points, np.ones((4, 4)), None), (points, one, pairs + 1), (points, one, pairs - 1), (points, one, pairs[:, :3]),
            (points, one, pairs.astype(float)), (points, np.ones((3, 4)), pairs)]
    for model, y, starts in (
        (ok.NORMA("hinge", ok.Gaussian(1.0)), signs, two),
        (ok.NORMA("hinge", ok.Gaussian(1.0), budget=ok.Projecting(9)), signs, two),
        (ok.NORMA("hinge", ok.AdditiveMatern(1.0)), signs, two + [(None, []), (None, [([], [], np.ones((2, 0)), [])] * 2)]),
        (ok.NORMA("hinge", ok.AdditiveMatern(1.0), budget=5), signs, two),
        (ok.NORMA("hinge", "linear"), signs, [(None, weights) for weights in (np.ones((2, 2)), np.ones((1, 3)), [1, 1], [[np.inf, 0]])]),
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
