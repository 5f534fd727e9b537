"""|f_t| on the way: `progressive(..., return_norms=True)` against plain sums, for every way to keep f."""
import numpy as np

import onlinekernels as ok

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = {"binary": np.where(X[:, 0] * X[:, 1] > 0, 1, -1), "regression": X[:, 0] - X[:, 1] ** 2, "novelty": None,
     "multiclass": RNG.integers(4, size=90)}


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
