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
SEVERAL = np.column_stack([NUMBERS, X[:, 2], -NUMBERS])
TREE = ok.Taxonomy({"a": "l", "b": "l", "c": "r", "d": "r", "e": "r", "l": "top", "r": "top"})
GRAPH = ok.LabelGraph([("a", "b", 1.0), ("b", "c", 0.5), ("c", "d", 2.0), ("d", "e", 1.0)])

KERNELS = {
    "gaussian": (ok.Gaussian(0.4), X),
    "single": (ok.Gaussian(0.4), X.astype(np.float32)),
    "far": (ok.Gaussian(0.4) + 1e-8 * ok.Linear(), X + 1000.0),
    "laplacian": (ok.Laplacian(2.0), X),
    "polynomial": (ok.Normalized(ok.Polynomial(2)), X),
    "linear": (ok.Linear(), X),
    "tree": (ok.AdditiveMatern(3.0), X),
    "spline": (ok.AdditiveSpline(1, bounds=(0, 1)), X),
    "sparse": (ok.Gaussian(0.6), None),
    "sparse linear": (ok.Linear(), None),
    "callable": (lambda x, z: math.exp(-3.0 * (x - z).dot(x - z)), X),
}
# Every model meets every kind, and every kernel every way to cut.
KINDS = {"terms": ["gaussian", "laplacian", "polynomial"], "rounding": ["single", "far", "single"],
         "weights and trees": ["linear", "tree", "spline"], "no dense rows": ["sparse", "sparse linear", "callable"]}
MODELS = {
    "norma": (lambda k: ok.NORMA("hinge", k, step=0.3, regularization=0.02, offset=True), TWO),
    "norma average": (lambda k: ok.NORMA("squared", k, step=0.1, regularization=0.1, average=True), NUMBERS),
    "norma window": (lambda k: ok.NORMA("nuhuber", k, step=0.2, budget=ok.Window(70)), NUMBERS),
    "norma targets": (lambda k: ok.NORMA("squared", k, step=0.2, budget=60), SEVERAL),
    "norma logistic": (lambda k: ok.NORMA("multiclass_logistic", k, step=0.3, budget=ok.Smallest(60), offset=True),
                       MANY),
    "norma many squared": (lambda k: ok.NORMA("multiclass_squared", k, step=0.1, budget=ok.Smallest(60), offset=True),
                           MANY),
    "svmd many squared": (lambda k: ok.SVMD("multiclass_squared", k, budget=60, offset=True), MANY),
    "norma graph": (lambda k: ok.NORMA("graph_hinge", k, step=0.3, labels=GRAPH, budget=ok.Sublinear(0.7)), MANY),
    "silk": (lambda k: ok.SILK("insensitive", k, budget=50), NUMBERS),
    "silk many": (lambda k: ok.SILK("multiclass_hinge", k, budget=55, regularization=1e-3), MANY),
    "ilk exact": (lambda k: ok.ILK("numulticlass_hinge", k, exact=True, offset=True), MANY),
    "ilk taxonomy": (lambda k: ok.ILK("graph_hinge", k, labels=TREE, regularization=0.1), MANY),
    "svmd": (lambda k: ok.SVMD("nunovelty", k, budget=60), None),
    "svmd exact": (lambda k: ok.SVMD("logistic", k, budget=60, exact_norms=True, offset=True), TWO),
    "passive": (lambda k: ok.PassiveAggressive("hinge", k, penalty=0.1, offset=True), TWO),
    "projection": (lambda k: ok.Projection("insensitive", k, radius=2.0), NUMBERS),
    "perceptron": (lambda k: ok.Perceptron(k), TWO),
    "alma": (lambda k: ok.ALMA(k), TWO),
    "voted": (lambda k: ok.VotedPerceptron(k), TWO),
    "lasvm": (lambda k: ok.LASVM(k), TWO),
    "ballseptron": (lambda k: ok.Ballseptron(k, radius=0.2), TWO),
    "svmd offset": (lambda k: ok.SVMD("squared", k, offset=True), NUMBERS),
    "krls": (lambda k: ok.KRLS("squared", k, budget=50, memory=0.99), NUMBERS),
    "krls targets": (lambda k: ok.KRLS("squared", k, budget=None, tolerance=1e-4, noise="auto"), SEVERAL),
    "krls many": (lambda k: ok.KRLS("multiclass_squared", k, budget=40, noise=0.3), MANY),
    "scaled": (lambda k: ok.SILK("squared", k, scale=True, budget=70), NUMBERS),
}
CUTS = {"at once": [N], "by ones": [1] * N, "by sevens": [7] * (N // 7 + 1), "by pieces": [48] * 5, "by any": [1, 130,
                                                                                                               2, 60, 5,
                                                                                                               22]}


def learned(make, kernel, points, y, sizes):
    model, scores, first = make(kernel), [], 0
    names_labels = y is not None and y.ndim == 1 and y.dtype.kind in "iU" and make(kernel).labels is None
    classes = np.unique(y) if names_labels else None
    for size in sizes:
        rows = slice(first, min(N, first + size))
        if rows.start < rows.stop:
            scores.append(model.progressive(points[rows], None if y is None else y[rows], classes))
        first += size
    model._state.engine._check()
    return np.concatenate(scores), model


def has_no_sense(name, kind, member, **_):
    """Python kernels have no exact norms and are not scaled; scaled values leave the bounds of a spline."""
    kernel = KINDS[kind][member]
    return kernel == "callable" and name in ("scaled", "svmd exact") or kernel == "spline" and name == "scaled"


@covering(2, unless=has_no_sense)
@each("kind", KINDS)
@each("member", range(3))
@each("name", MODELS)
@each("cuts", [("at once", "by sevens"), ("by pieces", "by any")], ids=" and ".join)
def test_a_chunk_is_a_loop(name, kind, member, cuts):
    kernel = KINDS[kind][member]
    make, y = MODELS[name]
    noun, points = KERNELS[kernel]
    if points is None:
        points = pytest.importorskip("scipy.sparse").csr_matrix(np.where(X > 0.4, X, 0.0))
    expected, one = learned(make, noun, points, y, CUTS["by ones"])
    scale = max(1.0, np.abs(expected).max())
    tolerance = 2e-3 if kernel == "single" else 1e-8
    for cut in cuts:
        scores, model = learned(make, noun, points, y, CUTS[cut])
        np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance * scale, err_msg=cut)
        assert model.t_ == one.t_ == N
        if kernel != "single":
            assert model.n_terms_ == one.n_terms_
            np.testing.assert_allclose(model.norm_, one.norm_, rtol=1e-7, atol=1e-9, err_msg=cut)


@pytest.mark.parametrize("features", [63, 64, 67, 120, 1100])
def test_a_chunk_of_wide_rows_is_a_loop(features):
    """From some features on the examples of a piece meet each other in tiles, the last of which are not whole."""
    rng = np.random.default_rng(features)
    wide = rng.normal(size=(131, features)) + 3.0
    targets = np.sin(wide[:, 0]) + wide[:, 1]
    kernel, budget = ok.Gaussian(math.sqrt(features)) + 0.1 * ok.Linear(), 90
    whole, single = (ok.ILK("squared", kernel, budget=budget) for _ in range(2))
    scores = np.concatenate([whole.progressive(wide[a:b], targets[a:b]) for a, b in [(0, 5), (5, 78), (78, 131)]])
    one_by_one = np.concatenate([single.progressive(wide[i:i + 1], targets[i:i + 1]) for i in range(len(wide))])
    np.testing.assert_allclose(scores, one_by_one, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(whole.dual_coef_, single.dual_coef_, rtol=1e-10, atol=1e-11)
