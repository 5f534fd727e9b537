"""Input that is more than an array: data frames of objects, masked arrays, lists and sets that change later."""
import pickle

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
