"""A chunk is a loop over its rows, also where it is cut into several pieces: the first have 48 rows and more."""
import math

import numpy as np
import pytest
from cases import covering, each

import onlinekernels as ok

N = 220
RNG = np.random.default_rng(11)
X = RNG.uniform(0.05, 0.95, size=(N, 3))
TWO = np.where(np.sin(6 * X[:, 0]) + 0.3 * RNG.normal(size=N) > X[:, 1], 1, -1)
MANY = np.array(list("cabed"))[np.minimum(4, (5 * X[:, 2] + 0.3 * RNG.normal(size=N)).clip(0).astype(int))]
NUMBERS = np.sin(6 * X[:, 0]) + X[:, 1]
GRAPH = ok.LabelGraph([("a", "b", 1.0), ("b", "c", 0.5), ("c", "d", 2.0), ("d", "e", 1.0)])
KERNELS = {
    "gaussian": ok.Gaussian(0.4), "single": ok.Gaussian(0.4), "far": ok.Gaussian(0.4) + 1e-8 * ok.Linear(),
    "polynomial": ok.Normalized(ok.Polynomial(2)), "tree": ok.AdditiveMatern(3.0), "sparse": ok.Gaussian(0.6),
    "sparse linear": ok.Linear(), "callable": lambda x, z: math.exp(-3.0 * (x - z).dot(x - z)),
}
MODELS = {
    "norma": (lambda k: ok.NORMA("hinge", k, step=0.3, regularization=0.02, offset=True), TWO),
    "norma window": (lambda k: ok.NORMA("nuhuber", k, step=0.2, budget=ok.Window(70)), NUMBERS),
    "norma targets": (lambda k: ok.NORMA("squared", k, step=0.2, budget=60), np.column_stack([NUMBERS, X[:, 2]])),
    "norma logistic": (lambda k: ok.NORMA("multiclass_logistic", k, step=0.3, budget=ok.Smallest(60), offset=True),
                       MANY),
    "norma graph": (lambda k: ok.NORMA("graph_hinge", k, step=0.3, labels=GRAPH, budget=ok.Sublinear(0.7)), MANY),
    "silk": (lambda k: ok.SILK("insensitive", k, budget=50), NUMBERS),
    "ilk exact": (lambda k: ok.ILK("numulticlass_hinge", k, exact=True, offset=True), MANY),
    "svmd": (lambda k: ok.SVMD("logistic", k, budget=60, offset=True), TWO),
    "svmd many squared": (lambda k: ok.SVMD("multiclass_squared", k, budget=60, offset=True), MANY),
    "projection": (lambda k: ok.Projection("insensitive", k, radius=2.0), NUMBERS),
    "lasvm": (lambda k: ok.LASVM(k), TWO),
    "krls": (lambda k: ok.KRLS("squared", k, budget=50, memory=0.99), NUMBERS),
}


def learned(model, points, y, sizes):
    scores, first = [], 0
    names_labels = y.ndim == 1 and y.dtype.kind in "iU" and model.labels is None
    for size in sizes:
        rows = slice(first, min(N, first + size))
        if rows.start < rows.stop:
            scores.append(model.progressive(points[rows], y[rows], np.unique(y) if names_labels else None))
        first += size
    model._state.engine._check()
    return np.concatenate(scores), model


@covering(2)
@each("kernel", KERNELS)
@each("name", MODELS)
@each("sizes", [[N], [48] * 5, [1, 130, 2, 60, 5, 22]], ids=str)
def test_a_chunk_is_a_loop(name, kernel, sizes):
    (make, y), points = MODELS[name], {"single": X.astype(np.float32), "far": X + 1000.0}.get(kernel, X)
    if "sparse" in kernel:
        points = pytest.importorskip("scipy.sparse").csr_matrix(np.where(X > 0.4, X, 0.0))
    expected, one = learned(make(KERNELS[kernel]), points, y, [1] * N)
    scores, model = learned(make(KERNELS[kernel]), points, y, sizes)
    tolerance = 2e-3 if kernel == "single" else 1e-8
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))
    assert model.t_ == one.t_ == N
    if kernel != "single":
        assert model.n_terms_ == one.n_terms_
        np.testing.assert_allclose(model.norm_, one.norm_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("features", [63, 64, 67, 120, 1100])
def test_a_chunk_of_wide_rows_is_a_loop(features):
    """From some features on the examples of a piece meet each other in tiles, the last of which are not whole."""
    rng = np.random.default_rng(features)
    wide = rng.normal(size=(131, features)) + 3.0
    targets = np.sin(wide[:, 0]) + wide[:, 1]
    whole, single = (ok.ILK("squared", ok.Gaussian(math.sqrt(features)) + 0.1 * ok.Linear(), budget=90)
                     for _ in range(2))
    scores = np.concatenate([whole.progressive(wide[a:b], targets[a:b]) for a, b in [(0, 5), (5, 78), (78, 131)]])
    one_by_one = np.concatenate([single.progressive(wide[i:i + 1], targets[i:i + 1]) for i in range(len(wide))])
    np.testing.assert_allclose(scores, one_by_one, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(whole.dual_coef_, single.dual_coef_, rtol=1e-10, atol=1e-11)
