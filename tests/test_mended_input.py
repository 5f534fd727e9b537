"""Input that used to be taken for something else: data frames of objects, masks, lists that change, large numbers."""
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import bounds

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.where(X[:, 0] > 0, 1, -1)


def dot(x, z):
    return float(np.dot(x, z)) + 1.0


class TestDataFramesOfObjects:
    """A data frame is its rows, for a kernel of one's own as well."""

    def frame(self, **options):
        return pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"], **options)

    def test_models(self):
        model, twin = (ok.NORMA("squared", dot, step=0.1) for _ in range(2))
        model.fit(self.frame(), Y), twin.fit(X, Y)
        np.testing.assert_array_equal(model.predict(self.frame()[:2]), twin.predict(X[:2]))
        np.testing.assert_array_equal(model.progressive(self.frame(), Y), twin.progressive(X, Y))
        np.testing.assert_array_equal(np.array(model.support_vectors_), np.array(twin.support_vectors_))

    def test_kernels_called_directly(self):
        kernel = ok.Normalized(dot)
        np.testing.assert_array_equal(kernel(self.frame(), self.frame()[:3]), kernel(X, X[:3]))
        np.testing.assert_array_equal(kernel.diagonal(self.frame()), kernel.diagonal(X))

    @each("kernel", [dot, "gaussian"], ids=["own", "compiled"])
    @each("index", [None, np.arange(12.0) - 3, list("lkjihgfedcba")], ids=["plain", "floats", "words"])
    def test_streams(self, kernel, index):
        model, twin = (ok.NORMA("squared", kernel, step=0.1) for _ in range(2))
        report = ok.evaluate.progressive(model, (self.frame(index=index), Y), chunk=5)
        assert report.examples == 12 and report.error == ok.evaluate.progressive(twin, (X, Y), chunk=5).error

    def test_a_frame_of_words(self):
        words = pytest.importorskip("pandas").DataFrame({"a": ["x", "y"], "b": ["x", "z"]})
        kernel = ok.NORMA("squared", lambda x, z: float((x == z).sum()), step=1.0, regularization=0.0)
        assert kernel.fit(words, [1.0, 2.0]).predict(words).shape == (2,)

    def test_sparse_rows_are_refused(self):
        sparse = pytest.importorskip("scipy.sparse")
        with pytest.raises(TypeError, match="X is sparse.*toarray"):
            ok.NORMA("hinge", dot).fit(sparse.csr_matrix(X), Y)


class TestMasks:
    """What a mask hides is missing."""

    HIDDEN = np.ma.masked_array(X, mask=np.arange(24).reshape(12, 2) == 5)
    OPEN = np.ma.masked_array(X, mask=False)
    ROW = np.ma.masked_array(X[0], mask=[False, True])
    COLUMN = np.ma.masked_array(Y, mask=np.arange(12) == 3)

    @each("call", [
        lambda m: m.partial_fit(TestMasks.HIDDEN, Y),
        lambda m: m.partial_fit(list(TestMasks.HIDDEN), Y),
        lambda m: m.fit(TestMasks.HIDDEN, Y),
        lambda m: m.fit(X, TestMasks.COLUMN),
        lambda m: m.fit(X, list(TestMasks.COLUMN)),
        lambda m: m.fit(X, Y, classes=np.ma.masked_array([-1, 1], mask=[True, False])),
        lambda m: m.partial_fit(X, Y, sample_weight=np.ma.masked_array(np.ones(12), mask=np.arange(12) == 3)),
        lambda m: m.learn_one(TestMasks.ROW, 1),
        lambda m: m.learn_one(X[0], np.ma.masked),
        lambda m: m.predict(TestMasks.HIDDEN),
        lambda m: m.predict_one(TestMasks.ROW),
        lambda m: m.score(X, TestMasks.COLUMN),
        lambda m: m.score(X, Y, sample_weight=TestMasks.COLUMN),
        lambda m: m.decision_function(TestMasks.HIDDEN),
        lambda m: m.progressive(TestMasks.HIDDEN, Y),
        lambda m: type(m)("hinge", m.kernel).learn_one(TestMasks.ROW, 1),
        lambda m: type(m)("squared", m.kernel).fit(X, TestMasks.COLUMN),
        lambda m: type(m)("squared", m.kernel).fit(X, np.ma.stack([TestMasks.COLUMN] * 2, axis=1)),
        lambda m: ok.evaluate.progressive(m, (TestMasks.HIDDEN, Y)),
        lambda m: ok.evaluate.progressive(m, (X, TestMasks.COLUMN)),
        lambda m: ok.evaluate.progressive(type(m)("squared"), (X, np.ma.stack([TestMasks.COLUMN] * 2, axis=1))),
        lambda m: ok.RunningScaler().fit(TestMasks.HIDDEN),
        lambda m: ok.RunningScaler().fit(X).transform(TestMasks.HIDDEN),
        lambda m: ok.RunningScaler().learn_one(TestMasks.ROW),
        lambda m: ok.Gaussian()(TestMasks.HIDDEN),
        lambda m: ok.Gaussian()(X, TestMasks.HIDDEN),
        lambda m: ok.Gaussian().diagonal(TestMasks.HIDDEN),
        lambda m: ok.Normalized(dot)(TestMasks.HIDDEN),
        lambda m: ok.Precomputed(np.ma.masked_array(np.eye(2), mask=np.eye(2)))([[0], [1]]),
        lambda m: bounds.comparison("linear", X, TestMasks.COLUMN, X[:, 0], margin=1.0),
    ])
    @each("kernel", ["gaussian", "linear", dot], ids=["gaussian", "linear", "own"])
    def test_they_are_refused(self, call, kernel):
        model = ok.NORMA("hinge", kernel).partial_fit(X, Y)
        before = pickle.dumps(model._state.to_dict()["learned"])
        with pytest.raises(ValueError, match="masked entries"):
            call(model)
        assert pickle.dumps(model._state.to_dict()["learned"]) == before

    def test_masks_that_hide_nothing_do_not_matter(self):
        a, b = ok.NORMA("hinge").partial_fit(self.OPEN, np.ma.masked_array(Y)), ok.NORMA("hinge").partial_fit(X, Y)
        a.learn_one(self.OPEN[0], 1), b.learn_one(X[0], 1)
        np.testing.assert_array_equal(a.decision_function(self.OPEN), b.decision_function(X))


def overlap(a, b):
    return float(len(set(a) & set(b)))


@each("make", [lambda: ["a", "b"], lambda: {"a": ["b"]}, lambda: {"a", "b"}, lambda: bytearray(b"ab"),
               lambda: np.array(["a", "b"])], ids=["list", "dict", "set", "bytearray", "array"])
def test_what_becomes_of_an_example_does_not_matter(make):
    seen = []

    def spy(a, b):
        seen.append(a), seen.append(b)
        return overlap(a, b)

    model, x = ok.NORMA("squared", spy, step=0.5, regularization=0.0).partial_fit([make()], [1.0]), make()
    model.learn_one(x, 2.0)
    expected = model.predict_one(make())
    x.clear() if hasattr(x, "clear") else x.fill("z")
    assert model.predict_one(make()) == expected
    nested = [["a"], ["b"]]
    deep = ok.NORMA("squared", lambda a, b: overlap(map(str, a), map(str, b)), step=0.5).partial_fit([nested], [1.0])
    before = deep.predict([[["a"], ["b"]]])[0]
    nested[0].append("c")
    assert deep.predict([[["a"], ["b"]]])[0] == before != 0
    support = deep.support_vectors_[0]
    support[0].append("c")
    assert deep.predict([[["a"], ["b"]]])[0] == before


class TestNumbers:
    @each("value, same", [(10**20, 1e20), (Fraction(1, 4), 0.25), (np.float32(0.25), 0.25), (3, 3.0)],
          ids=repr)
    def test_parameters_may_be_any_real_numbers(self, value, same):
        for make in (lambda v: ok.NORMA("hinge", ok.Gaussian(v)), lambda v: ok.NORMA(ok.Hinge(v)),
                     lambda v: ok.NORMA("hinge", ok.Laplacian(v)), lambda v: ok.ILK(step=v, penalty=v),
                     lambda v: ok.NORMA(ok.Huber(v)), lambda v: ok.PassiveAggressive(penalty=v),
                     lambda v: ok.NORMA(step=v, regularization=0), lambda v: ok.Projection(radius=v),
                     lambda v: ok.NORMA("squared", ok.Gaussian() + v * ok.Linear(), step=1e-30),
                     lambda v: ok.NORMA(class_weight={1: v})):
            a, b = make(value).fit(X, Y), make(same).fit(X, Y)
            scores = [m.decision_function(X) if hasattr(m, "decision_function") else m.predict(X) for m in (a, b)]
            np.testing.assert_array_equal(*scores)
        assert ok.Gaussian(value)(X).tolist() == ok.Gaussian(same)(X).tolist()

    @each("value", [10**400, Fraction(10**400), Fraction(1, 10**400), True, 1j, "1", None], ids=str)
    def test_what_is_no_positive_float_is_refused(self, value):
        with pytest.raises(ValueError, match="'width' parameter of Gaussian must be a positive number"):
            ok.NORMA("hinge", ok.Gaussian(value)).fit(X, Y)
        with pytest.raises(ValueError, match="'margin'"):
            bounds.comparison("linear", X, Y, X[:, 0], margin=value)

    @each("weight", [-1, float("nan"), float("inf"), 10**400, "1", None], ids=str)
    def test_weights_of_classes(self, weight):
        with pytest.raises(ValueError, match="class_weight"):
            ok.NORMA(class_weight={1: weight}).fit(X, Y)


class TestSetParamsIsAtomic:
    @each("params", [
        {"step": 0.7, "foo": 3}, {"kernel__width": 3.0, "foo": 3}, {"step": 0.7, "kernel__foo": 3},
        {"kernel__width": 3.0, "loss__foo": 3}, {"kernel__width": 3.0, "kernel__foo": 1}, {"step": 0.7, "budget__size": 3},
        {"kernel": ok.Linear(), "kernel__width": 3.0}, {"kernel__width": 3.0, "kernel__width__deep": 1},
    ], ids=str)
    @each("fitted", [False, True])
    def test_a_name_that_does_not_exist_changes_nothing(self, params, fitted):
        model = ok.NORMA(ok.Hinge(), ok.Gaussian(1.0), budget=None)
        if fitted:
            model.partial_fit(X, Y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="no parameter"):
            model.set_params(**params)
        assert pickle.dumps(model) == before

    def test_names_inside_a_new_object(self):
        model = ok.NORMA(kernel="linear").set_params(kernel__width=3.0, kernel=ok.Gaussian())
        assert model.kernel.width == 3.0


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

    @each("n", [1, 2, 3, 7, 25, 49, 1000])
    def test_orthogonal_examples_that_are_all_mistaken(self, n):
        rng = np.random.default_rng(n)
        for kernel_value, scale in rng.uniform(0.1, 3, size=(50, 2)):
            kernel, y = ok.Precomputed(kernel_value * np.eye(n)), np.where(np.arange(n) % 3, 1, -1)
            against = bounds.comparison(kernel, np.arange(n)[:, None], y, scale * y, margin=scale * kernel_value)
            assert bounds.norma_mistakes(**{**against, "loss": 0.0}) >= n
            if n == 1000:
                break

    def test_only_rounding_is_made_up_for(self):
        assert bounds.projection_mistakes(radius=1.0, norm=(1 - 1e-9) ** 0.5) < 1
        assert bounds.projection_mistakes(radius=1.0, norm=2.5**0.5) == pytest.approx(2.5, rel=1e-15)
        assert bounds.norma_mistakes_untuned(
            step=0.1, regularization=0.0, learner_margin=0.0, radius=1.0, margin=1.0, loss=0.0, norm=1.0, path=1.0,
            squared_path=1.0, examples=3) == np.inf
