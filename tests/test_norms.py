"""|f_t| on the way: `progressive(..., return_norms=True)` against plain sums, for every way to keep f."""
import numpy as np
import pytest

import onlinekernels as ok
from cases import each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = {"binary": np.where(X[:, 0] * X[:, 1] > 0, 1, -1), "regression": X[:, 0] - X[:, 1] ** 2, "novelty": None,
     "multiclass": RNG.integers(4, size=90)}
TREE = ok.Taxonomy({0: "a", 1: "a", 2: "b", 3: "b", "a": "root", "b": "root"})


def gaussian(A, B):
    return np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / 2)


def test_norma_against_a_loop_in_numpy():
    """NORMA with the hinge, written out: all coefficients, and alpha' K alpha before each example."""
    eta, lam, K, y = 0.3, 0.05, gaussian(X, X), Y["binary"]
    alpha, norms = np.zeros(90), np.zeros(90)
    for t in range(90):
        norms[t] = np.sqrt(alpha @ K @ alpha)
        score = K[t] @ alpha
        alpha *= 1 - eta * lam
        alpha[t] = eta * y[t] * (y[t] * score <= 1.0)
    model = ok.NORMA("hinge", ok.Gaussian(1.0), step=eta, regularization=lam)
    scores, found = model.progressive(X, y, return_norms=True)
    np.testing.assert_allclose(found, norms, rtol=1e-12)
    assert model.norm_ == pytest.approx(np.sqrt(alpha @ K @ alpha))


MODELS = [
    lambda: ok.NORMA("hinge", ok.Gaussian(1.0)),
    lambda: ok.NORMA("hinge", ok.Gaussian(1.0), offset=True, average=True),
    lambda: ok.NORMA("hinge", "linear", average=True),
    lambda: ok.NORMA("squared", ok.AdditiveExponential(), step=0.2),
    lambda: ok.NORMA("hinge", ok.Gaussian(1.0), budget=7),
    lambda: ok.NORMA("hinge", ok.Gaussian(1.0), budget=ok.Window(9)),
    lambda: ok.NORMA("squared", ok.Gaussian(1.0), budget=ok.Merging(8)),
    lambda: ok.NORMA("squared", ok.Gaussian(1.0), budget=ok.Projecting(8)),
    lambda: ok.NORMA("squared", ok.AdditiveExponential(), budget=6),
    lambda: ok.NORMA("squared", ok.RandomFourier(ok.Gaussian(1.0), 16)),
    lambda: ok.NORMA("squared", ok.Nystroem(ok.Gaussian(1.0), 8)),
    lambda: ok.NORMA("squared", "linear", step=ok.MetaDescent(0.05, per_feature=True)),
    lambda: ok.SVMD("hinge", ok.Gaussian(1.0), budget=None),
    lambda: ok.SVMD("hinge", ok.Gaussian(1.0), budget=5),
    lambda: ok.SVMD("hinge", ok.Gaussian(1.0), budget=5, exact_norms=True),
    lambda: ok.ILK("logistic", ok.Gaussian(1.0)),
    lambda: ok.SILK("nunovelty", ok.Gaussian(1.0), budget=9),
    lambda: ok.ILK("multiclasshinge", ok.Gaussian(1.0)),
    lambda: ok.ILK("multiclasslogistic", ok.Gaussian(1.0)),
    lambda: ok.NORMA("multiclasssquared", ok.Gaussian(1.0)),
    lambda: ok.NORMA("graphhinge", ok.Gaussian(1.0), labels=TREE),
    lambda: ok.NORMA("multiclasslogistic", ok.Gaussian(1.0), labels=TREE),
    lambda: ok.Projection("insensitive", ok.Gaussian(1.0), radius=1.5, budget=12),
    lambda: ok.PassiveAggressive("insensitive", ok.Gaussian(1.0)),
    lambda: ok.Perceptron(ok.Gaussian(1.0)),
    lambda: ok.ALMA(ok.Gaussian(1.0)),
    lambda: ok.ROMMA(ok.Gaussian(1.0)),
    lambda: ok.Forgetron(ok.Gaussian(1.0), budget=10),
    lambda: ok.Projectron(ok.Gaussian(1.0), budget=10),
    lambda: ok.LASVM(ok.Gaussian(1.0)),
]


def squared_norm(model):
    """|f|^2 of the latest hypothesis, from what the model's own state holds."""
    state = model._state
    return state.latest_norm() ** 2


@each("make", MODELS, ids=lambda make: repr(make()))
def test_norms_are_those_of_one_row_at_a_time(make):
    whole, single = make(), make()
    y = Y[whole._current_loss().task]
    classes = {"classes": np.unique(y)} if whole._current_loss().task in ("binary", "multiclass") else {}
    expected = np.zeros(90)
    for t in range(90):
        expected[t] = squared_norm(single) if t else 0.0
        single.partial_fit(X[t : t + 1], None if y is None else y[t : t + 1], **(classes if t == 0 else {}))
    parts = [whole.progressive(X[a:b], None if y is None else y[a:b], return_norms=True, **(classes if a == 0 else {}))
             for a, b in ((0, 40), (40, 41), (41, 90))]
    norms = np.concatenate([norms for _, norms in parts])
    assert norms[0] == 0 and (norms[1:] > 0).sum() > 60
    np.testing.assert_allclose(norms**2, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole._state.latest_norm(), single._state.latest_norm(), rtol=1e-9)


def test_the_latest_hypothesis_and_not_the_average():
    model = ok.NORMA("hinge", ok.Gaussian(1.0), average=True)
    plain = ok.NORMA("hinge", ok.Gaussian(1.0))
    for part in (slice(0, 30), slice(30, 90)):
        norms = [one.progressive(X[part], Y["binary"][part], return_norms=True)[1] for one in (model, plain)]
        np.testing.assert_allclose(*norms, rtol=1e-12)
    assert model.norm_ < 0.9 * plain.norm_


def test_a_norm_that_falls_is_computed_anew():
    """|f|^2 falls by ten orders of magnitude: its rounding must not stay, though that of f itself does."""
    rows = np.ones((9000, 1))
    model = ok.NORMA("squared", "linear", step=0.9, regularization=0.0, offset=False)
    scores, norms = model.progressive(rows, np.where(np.arange(9000) < 3, 1e5, 0.7), return_norms=True)
    np.testing.assert_allclose(norms[5000:], np.abs(scores[5000:]), rtol=1e-13)
    assert np.abs(norms[20:4000] - np.abs(scores[20:4000])).max() > 1e-9  # until the next piece


def test_nothing_else_changes():
    plain, watched = (ok.NORMA("hinge", ok.Gaussian(1.0)) for _ in range(2))
    scores = plain.progressive(X, Y["binary"])
    again, steps, margins, norms, labels = watched.progressive(
        X, Y["binary"], return_steps=True, return_margins=True, return_norms=True, return_labels=True)
    np.testing.assert_array_equal(scores, again)
    a, b = plain._state.hypothesis.state(), watched._state.hypothesis.state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert not watched._state.hypothesis.is_worn()
    np.testing.assert_array_equal(plain.progressive(X, Y["binary"]), watched.progressive(X, Y["binary"]))
