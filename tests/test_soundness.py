"""What must never happen again: crashes and wrong answers that an attack on the package found."""
import copy
import pickle

import numpy as np
import pytest
from apart import run_apart
from cases import each

import onlinekernels as ok

RNG = np.random.default_rng(5)


def same(a, b):
    return float(a == b)


# ---- Callable kernels where |f| is kept exactly -----------------------------------------------------------------------


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
        for seed in range(5):
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
            return same(a, b)

        model = ok.Projection("insensitive", kernel, radius=10.0).partial_fit(["s"] * 2, [5.0, 0.0])
        before = model.dual_coef_.tolist()
        fail[0] = True
        with pytest.raises(KeyError):
            model.partial_fit(["t"], [1.0])
        fail[0] = False
        assert model.t_ == 2 and model.dual_coef_.tolist() == before
        model.partial_fit(["t"], [1.0])
        model._state.engine._check()


# ---- initial= and label structures ------------------------------------------------------------------------------------


PARENTS = {"a": "left", "b": "left", "c": "right", "left": "top", "right": "top"}


class TestStartOfManyLabels:
    def test_what_crashed(self):
        run_apart("""
            for labels in (ok.Taxonomy({"a": "r", "b": "r", "c": "r"}), ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])):
                for _ in range(50):
                    start = ok.NORMA("multiclasshinge").fit(np.eye(3)[:2], ["a", "b"])
                    model = ok.NORMA("multiclasshinge", labels=labels)
                    try:
                        model.fit(np.eye(3), ["a", "b", "c"], initial=start)
                        model._state.engine._check()
                    except ValueError:
                        pass
                    model.fit(np.eye(3), ["a", "b", "c"]).predict(np.eye(3))
        """)

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

    @each("labels", [ok.Taxonomy(PARENTS), ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])],
          ids=["taxonomy", "graph"])
    def test_a_state_of_growing_labels_does_not_fit_a_structure(self, labels):
        model = ok.NORMA("graph_hinge", labels=labels).fit(np.eye(3), ["a", "b", "c"])
        state = model.__getstate__()
        for change in ({"fixed": False}, {"fixed": False, "order": ["a", "b", "c", "d"]}, {"order": ["a", "b"]}):
            broken = copy.deepcopy(state)
            broken["_state"]["labels"].update(change)
            with pytest.raises(ValueError):
                ok.NORMA("graph_hinge", labels=labels).__setstate__(broken)
        broken = copy.deepcopy(state)
        broken["_state"]["learned"]["labels"] = 2
        with pytest.raises(ValueError):
            ok.NORMA("graph_hinge", labels=labels).__setstate__(broken)


# ---- X is checked once, and then out of reach -------------------------------------------------------------------------


class TestRowsThatChange:
    """A loss of the user's changes X during the call: what is learned is what was checked."""

    @staticmethod
    def changing(change):
        class Changing(ok.Squared):
            def derivative(self, score, y):
                change()
                return score - y

        return Changing()

    def test_what_read_anywhere(self):
        pytest.importorskip("scipy")
        run_apart("""
            from scipy.sparse import csr_matrix
            def changing(change):
                class Changing(ok.Squared):
                    def derivative(self, score, y):
                        change()
                        return score - y
                return Changing()
            gram = np.eye(50)
            for _ in range(20):
                X = np.arange(50.0)[:, None]
                def change(): X[:] = 1e15
                ok.NORMA(changing(change), ok.Precomputed(gram)).partial_fit(X, np.ones(50))
                x = np.array([3.0])
                def change(): x[:] = 1e15
                model = ok.NORMA(changing(change), ok.Precomputed(gram)).partial_fit(np.arange(5.0)[:, None], np.ones(5))
                x[:] = 7.0
                model.learn_one(x, 1.0)
                assert model.support_vectors_.max() < 50
                for kernel in ("gaussian", "linear"):
                    X = csr_matrix(np.random.default_rng(0).normal(size=(50, 8)))
                    def change(): X.indices[:] = 2000000000; X.data[:] = np.nan; X.indptr[:] = 10**9
                    model = ok.NORMA(changing(change), kernel).partial_fit(X, np.ones(50))
                    model._state.engine._check()
                X = np.random.default_rng(0).normal(size=(300, 4))
                def change(): X[:] = np.nan
                model = ok.NORMA(changing(change), ok.AdditiveMatern(), budget=40).partial_fit(X, np.ones(300))
                model._state.engine._check()
        """)

    @each("kernel", [ok.Gaussian(), ok.Linear(), ok.AdditiveExponential(), ok.Precomputed(np.eye(60))], ids=str)
    @each("scale", [False, True])
    def test_the_rows_that_were_checked_are_learned(self, kernel, scale):
        if scale and isinstance(kernel, ok.Precomputed):
            pytest.skip("indices are not scaled")
        X = np.arange(60.0)[:, None] if isinstance(kernel, ok.Precomputed) else RNG.normal(size=(60, 3))
        y, original = RNG.normal(size=60), X.copy()
        expected = ok.NORMA(self.changing(lambda: None), kernel, scale=scale).partial_fit(X, y)

        def change():
            X[:] = 1e15

        model = ok.NORMA(self.changing(change), kernel, scale=scale).partial_fit(X, y)
        assert (model.predict(original) == expected.predict(original)).all()
        one = original[0].copy()

        def change_one():
            one[:] = 1e15

        a, b = (ok.NORMA(self.changing(how), kernel, scale=scale).partial_fit(original[1:], y[1:]) for how in (change_one, lambda: None))
        one[:] = original[0]
        a.learn_one(one, 1.0), b.learn_one(original[0], 1.0)
        assert (a.predict(original) == b.predict(original)).all()


# ---- Ties --------------------------------------------------------------------------------------------------------------


def test_runners_up_after_fit_go_by_the_order_of_classes():
    X = np.array([[0.0], [100.0], [200.0], [300.0]])
    model = ok.NORMA("multiclass_hinge", "gaussian").fit(X[:3], ["c", "a", "b"])
    for again in (model, pickle.loads(pickle.dumps(model))):
        again.learn_one(X[3], "b")               # all scores are 0: the runner-up is the first of the others
        assert again.classes_[np.flatnonzero(again.dual_coef_[:, -1] < 0)].tolist() == ["a"]
        again.learn_one([400.0], "new")
        again.learn_one([500.0], "a")
        assert again.classes_[np.flatnonzero(again.dual_coef_[:, -1] < 0)].tolist() == ["b"]
    stream = ok.NORMA("multiclass_hinge", "gaussian").partial_fit(X[:3], ["c", "a", "b"]).partial_fit(X[3:], ["b"])
    assert stream.classes_[np.flatnonzero(stream.dual_coef_[:, -1] < 0)].tolist() == ["c"]


# ---- ROMMA on data that nothing separates ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ROMMA has started anew:onlinekernels.LearningWarning")
@each("aggressive", [False, True])
def test_romma_is_right_up_to_its_cap_and_starts_anew_there(aggressive):
    """Against the definition in exact fractions."""
    from fractions import Fraction

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


# ---- Weights of 0 ------------------------------------------------------------------------------------------------------


@each("make", [ok.VotedPerceptron, lambda: ok.VotedPerceptron(vote=False), ok.ALMA, ok.ROMMA, ok.Ballseptron],
      ids=["votes", "averages", "alma", "romma", "ballseptron"])
def test_an_example_of_weight_zero_is_left_out(make):
    X = RNG.normal(size=(50, 2))
    y = np.where(X[:, 0] + 0.5 * RNG.normal(size=50) > 0, 1, -1)
    weights = RNG.integers(0, 2, 50).astype(float)
    model, without = make(), make()
    scores = model.progressive(X, y, [-1, 1], weights)
    kept = without.progressive(X[weights > 0], y[weights > 0], [-1, 1])
    np.testing.assert_allclose(scores[weights > 0], kept, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), rtol=1e-12, atol=1e-12)
    assert model.t_ == without.t_ == weights.sum()


@each("algorithm", [ok.VotedPerceptron, ok.ALMA, ok.ROMMA, ok.Ballseptron])
def test_an_object_of_weight_zero_is_left_out(algorithm):
    X = RNG.normal(size=(50, 2))
    y = np.where(X[:, 0] + 0.5 * RNG.normal(size=50) > 0, 1, -1)
    weights = RNG.integers(0, 3, 50).astype(float)
    objects = [tuple(x) for x in X.tolist()]
    model = algorithm(lambda a, b: float(np.exp(-np.sum(np.subtract(a, b) ** 2) / 2)))
    model.partial_fit(objects, y, sample_weight=weights)
    same = algorithm(ok.Gaussian(1.0)).partial_fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(objects), same.decision_function(X), rtol=1e-10, atol=1e-12)
    assert model.n_terms_ == same.n_terms_ and model.t_ == same.t_


# ---- One row -----------------------------------------------------------------------------------------------------------


def test_learn_one_and_predict_one_take_one_sparse_row():
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix(np.eye(7))
    fresh = ok.NORMA("squared", "linear")
    with pytest.raises(ValueError, match="one example. Got a sparse matrix of 7 rows"):
        fresh.learn_one(rows, 1.0)
    model = ok.NORMA("squared", "linear").partial_fit(rows, np.arange(7.0))
    before = pickle.dumps(model)
    for call in (lambda: model.learn_one(rows, 1.0), lambda: model.predict_one(rows[:3]), lambda: model.learn_one(rows[:0], 1.0)):
        with pytest.raises(ValueError, match="one example"):
            call()
    assert pickle.dumps(model) == before
    model.learn_one(rows[2], 1.0)
    assert model.t_ == 8 and model.predict_one(rows[2]) == model.predict(rows[2])[0]


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
