"""Additive kernels from left and right functions of one's own: the same as the compiled kernels that they stand for."""
import itertools

import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels._core.trees import Tree
from cases import each
from reference_additive import additive_gram
from test_additive import points


def identity(p):
    return p


def one(p):
    return 1.0


def spline_bend(p):
    return p * p / 2 + p


def spline_rest(p):
    return 1 - p**3 / 6


def falling(p):
    return np.exp(-1.3 * p)


def rising(p):
    return np.exp(1.3 * p)


PAIRS = {  # (left, right), the compiled kernel, and how the oracle knows it
    "spline": (([spline_bend, spline_rest], [identity, one]), ok.AdditiveSpline(1), ("spline", 1)),
    "exponential": (([rising], [falling]), ok.AdditiveExponential(1.3), ("exponential", 1.3)),
}
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@each("pair", PAIRS)
def test_gram_by_the_definition(pair):
    (left, right), compiled, spec = PAIRS[pair]
    kernel, X, Z = ok.Additive(left, right), points(0, 20, 3), points(1, 15, 3)
    expected = additive_gram(spec, X, Z).astype(float)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(additive_gram(spec, X, X)).astype(float), rtol=1e-12)
    np.testing.assert_allclose((2.0 * kernel + ok.Gaussian())(X), (2.0 * compiled + ok.Gaussian())(X), rtol=1e-12)


@each("pair", PAIRS)
def test_trees_with_terms_that_come_and_go(pair):
    (left, right), _, spec = PAIRS[pair]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        own, compiled = Tree(("own", left, right), 2, 3), Tree(spec, 2, 3)
        terms = []
        for _ in range(400):
            if terms and rng.random() < (0.2 if len(terms) < 150 else 0.8):
                x, values = terms.pop(int(rng.integers(len(terms))))
                own.remove(x, values)
                compiled.remove(x, values)
            else:
                x, values = np.round(rng.uniform(0.01, 1.0, 2), 2 if rng.random() < 0.5 else 9), rng.normal(size=3)
                terms.append((x, values))
                own.add(x, values)
                compiled.add(x, values)
        own._check()
        for x in rng.uniform(0.0, 1.2, size=(30, 2)):
            np.testing.assert_allclose(own.evaluate(x), compiled.evaluate(x), **CLOSE)
        np.testing.assert_allclose(own.component(1, [0.3, 0.9]), compiled.component(1, [0.3, 0.9]), **CLOSE)
        twin = Tree(("own", left, right), 2, 3)
        for j in range(2):
            twin.load(j, *own.contents(j))
        twin._check()
        for x in rng.uniform(0.0, 1.2, size=(30, 2)):
            np.testing.assert_array_equal(twin.evaluate(x), own.evaluate(x))


def stream(seed, n=150):
    X = points(seed, n)
    return X, np.where(X[:, 0] + 0.2 * np.random.default_rng(seed).normal(size=n) > 0.5, 1, -1)


@each("pair", PAIRS)
def test_budgets_and_terms_in_python(pair):
    (left, right), compiled, _ = PAIRS[pair]
    X, y = stream(3)
    for budget, tree in itertools.product([20, ok.Window(30), ok.Smallest(15), None], [True, False]):
        own = ok.NORMA("hinge", ok.Additive(left, right, tree), step=0.1, regularization=0.1, budget=budget)
        same = ok.NORMA("hinge", compiled, step=0.1, regularization=0.1, budget=budget)
        np.testing.assert_allclose(own.progressive(X, y), same.progressive(X, y), **CLOSE)
    (own := ok.VotedPerceptron(ok.Additive(left, right))).fit(X, y)
    np.testing.assert_allclose(own.decision_function(X[:5]), ok.VotedPerceptron(compiled).fit(X, y).decision_function(X[:5]), **CLOSE)


def test_scaled_features_and_a_start_from_another_model():
    (left, right), compiled, _ = PAIRS["exponential"]
    X, y = stream(4)
    own, same = (ok.NORMA("hinge", kernel, step=0.1, scale=True) for kernel in (ok.Additive(left, right), compiled))
    np.testing.assert_allclose(own.progressive(5 * X, y), same.progressive(5 * X, y), **CLOSE)
    np.testing.assert_allclose(own.predict(X), same.predict(X))
    kernel = ok.Additive(left, right)
    start = ok.NORMA("hinge", kernel, step=0.1).fit(X, y)
    again = ok.NORMA("hinge", kernel, step=0.1, regularization=0.0).partial_fit(X[:1], y[:1], sample_weight=[0.0], initial=start)
    np.testing.assert_allclose(again.decision_function(X), start.decision_function(X), **CLOSE)


@each("left, right, words", [
    ([], [], "'left' parameter of Additive must be a list of 1 to 32"),
    (identity, [one], "'left' parameter of Additive"),
    ([identity], [3.0], "'right' parameter of Additive"),
    ([identity], [one, one], "as many functions as left"),
    ([identity] * 33, [one] * 33, "1 to 32"),
    ([identity], [lambda p: p[:2]], "one number for each"),
])
def test_functions_that_make_no_sense_are_refused(left, right, words):
    X, y = stream(5)
    model = ok.NORMA("hinge", ok.Additive(left, right))
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X, y)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")
def test_what_goes_wrong_in_a_function_stops_after_the_last_piece():
    X, y = np.linspace(0.0, 1.0, 600)[:, None], np.tile([1, -1], 300)

    def picky(p):
        if (p > 0.9).any():
            raise KeyError("no such number")
        return p

    model = ok.NORMA("hinge", ok.Additive([picky], [one]), step=0.1)
    with pytest.raises(KeyError) as caught:
        model.partial_fit(X, y)
    assert 0 < model.t_ < 541 and caught.value.args
    model._state.engine._check()
    twin = ok.NORMA("hinge", ok.Additive([identity], [one]), step=0.1).partial_fit(X[: model.t_], y[: model.t_])
    np.testing.assert_array_equal(twin.decision_function(X[:9]), model.decision_function(X[:9]))
    with np.errstate(all="ignore"):
        model = ok.NORMA("hinge", ok.Additive([np.log], [one]), step=0.1).partial_fit(X[1:100], y[1:100])
        with pytest.raises(FloatingPointError, match="Row 0"):
            model.partial_fit(X[:1], y[:1])
        with pytest.raises(FloatingPointError, match="Row 1"):
            model.decision_function([[0.5], [0.0]])
    assert model.t_ == 99


def test_a_model_file_does_not_hold_functions(tmp_path):
    X, y = stream(6)
    model = ok.NORMA("hinge", ok.Additive([identity], [one])).fit(X, y)
    model.save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="its kernel is Python code"):
        ok.load(tmp_path / "m.npz")
