"""|f_t| on the way: `progressive(..., return_norms=True)` against plain sums, for every way to keep f."""
import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from contracts.registry import KINDS, Transformer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = {"binary": np.where(X[:, 0] * X[:, 1] > 0, 1, -1), "regression": X[:, 0] - X[:, 1] ** 2, "novelty": None,
     "multiclass": RNG.integers(4, size=90)}


# Whose norm is that of one function, and is kept
NAMES = [name for name, kind in KINDS.items() if kind.rows == "dense" and not kind.is_composite
         and not isinstance(kind, Transformer)
         and "krls" not in name and "smoother" not in name]


def squared_norm(model):
    """|f|^2 of the latest hypothesis, from what the model's own state holds."""
    state = model._state
    return state.latest_norm() ** 2


@each("name", NAMES)
@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_norms_are_those_of_one_row_at_a_time(name):
    kind = KINDS[name]
    whole, single, expected = kind.make(), kind.make(), np.zeros(90)
    for t in range(90):
        expected[t] = squared_norm(single) if t else 0.0
        kind.call(single, t, t + 1)()
    norms = np.concatenate([whole.progressive(kind.points(a, b), None if kind.y is None else kind.y[a:b],
                                              return_norms=True)[1] for a, b in ((0, 40), (40, 41), (41, 90))])
    assert norms[0] == 0 and (norms[1:] > 0).sum() > 60
    np.testing.assert_allclose(norms**2, expected, rtol=1e-9, atol=1e-9 * expected.max())
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
