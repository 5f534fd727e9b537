"""Additive kernels: their formulas, the compiled tree against a naive one, and models on trees against the engine."""
import itertools
import pickle

import numpy as np
import pytest
from sortedcontainers import SortedDict

import onlinekernels as ok
from onlinekernels._core.trees import Tree
from cases import covering, each
from reference import ReferenceNORMA
from reference_additive import BruteTree, additive_gram, additive_kernel, coordinate_kernel
from test_oracle import LOSSES, describe, in_chunks

SPECS = [("spline", 0), ("spline", 1), ("spline", 2), ("spline", 3), ("exponential", 1.3), ("matern", 0.9, 1.5),
         ("matern", 1.1, 2.5), ("spline", 4), ("spline", 9)]
SOME = [("spline", 1), ("spline", 3), ("exponential", 1.3), ("matern", 1.1, 2.5)]     # where all losses are tried
# Some settings diverge; the library and the oracle then do so together.
pytestmark = pytest.mark.filterwarnings("ignore:(Learning (diverges|has stalled)|ROMMA has started):onlinekernels.LearningWarning")
MULTI = [ok.MulticlassHinge(0.8), ok.NuMulticlassHinge(0.2, 0.6), ok.NuMulticlassHinge(0.2, 0.6, None), ok.MulticlassLogistic()]
NAMES = ["a", "b", "c", "d"]
N, D = 60, 2
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def library_kernel(spec, **more):
    """The public kernel of a one-dimensional one."""
    if spec[0] == "spline":
        return ok.AdditiveSpline(order=spec[1], **more)
    if spec[0] == "exponential":
        return ok.AdditiveExponential(rate=spec[1], **more)
    return ok.AdditiveMatern(rate=spec[1], smoothness=spec[2], **more)


def points(seed, n=N, d=D):
    """Points in (0, 1), with few distinct values in the last coordinate and some examples twice."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.02, 1.0, size=(n, d))
    X[:, -1] = np.round(X[:, -1], 1) + 0.05
    X[rng.random(n) < 0.1] = X[0]
    return X


# ---- The kernels --------------------------------------------------------------------------------------


@each("spec", SPECS, ids=str)
@each("scale", [1e-3, 1.0, 30.0])
def test_gram_and_diagonal_equal_the_formula_in_extended_precision(spec, scale):
    X, Z = scale * points(0, 30, 3), scale * points(1, 20, 3)
    Z[:5] = X[:5]
    for tree in (True, False):
        kernel = library_kernel(spec, tree=tree)
        np.testing.assert_allclose(kernel(X, Z), additive_gram(spec, X, Z).astype(float), rtol=1e-13)
        np.testing.assert_allclose(kernel(X), additive_gram(spec, X, X).astype(float), rtol=1e-13)
        np.testing.assert_allclose(kernel.diagonal(X), np.diag(additive_gram(spec, X, X)).astype(float), rtol=1e-13)
        np.testing.assert_allclose((0.5 * kernel)(X, Z), 0.5 * additive_gram(spec, X, Z).astype(float), rtol=1e-13)


def test_the_linear_spline_by_hand():
    """H (3), and (4) with 1/6; erratum: 5/6 is printed, whose matrix is not positive semidefinite."""
    p, q = 0.3, 1.7
    expected = 1 + p * q + (q - p) * p**2 / 2 + p**3 / 3
    np.testing.assert_allclose(ok.AdditiveSpline()([[p]], [[q]]), [[expected]], rtol=1e-15)
    np.testing.assert_allclose(ok.AdditiveSpline(1)([[q]], [[p]]), [[1 + p * q + p**2 * q / 2 - p**3 / 6]], rtol=1e-15)
    x = np.linspace(0.1, 3.0, 12)
    low, high = np.minimum.outer(x, x), np.maximum.outer(x, x)
    printed = 1 + low * high + low**2 * high / 2 - 5 * low**3 / 6
    assert np.linalg.eigvalsh(printed)[0] < -1e-3
    assert np.linalg.eigvalsh(ok.AdditiveSpline()(x[:, None]))[0] > 0


@each("order", [*range(8), 15, 31])
def test_splines_are_the_integral_that_they_stand_for(order):
    """The integral of (p - t)^z (q - t)^z from 0 to min(p, q), by a quadrature that is exact for it."""
    nodes, weights = np.polynomial.legendre.leggauss(order + 1)
    for p, q in np.random.default_rng(order).uniform(0.05, 2.0, size=(20, 2)):
        t = 0.5 * (nodes + 1) * min(p, q)
        integral = 0.5 * min(p, q) * weights @ ((p - t) ** order * (q - t) ** order)
        expected = integral + sum((p * q) ** r for r in range(order + 1))
        np.testing.assert_allclose(ok.AdditiveSpline(order)([[p]], [[q]])[0, 0], expected, rtol=1e-12)


@each("spec", SPECS, ids=str)
def test_gram_matrices_are_positive_semidefinite(spec):
    X = np.random.default_rng(3).uniform(0.01, 2.0, size=(40, 2))
    eigenvalues = np.linalg.eigvalsh(library_kernel(spec)(X))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


def test_bounds_map_the_data_into_the_domain():
    rng = np.random.default_rng(0)
    X = rng.uniform([-3.0, 10.0], [-1.0, 20.0], size=(30, 2))
    low, high = np.array([-3.5, 9.0]), np.array([0.0, 21.0])
    expected = additive_gram(("spline", 1), (X - low) / (high - low), (X - low) / (high - low)).astype(float)
    np.testing.assert_allclose(ok.AdditiveSpline(bounds=(low, high))(X), expected, rtol=1e-13)
    np.testing.assert_allclose(ok.AdditiveSpline(bounds=(low.tolist(), high.tolist()))(X), expected, rtol=1e-13)
    np.testing.assert_allclose(ok.AdditiveSpline(bounds=(low, high)).diagonal(X), np.diag(expected), rtol=1e-13)
    one = ok.AdditiveSpline(2, bounds=(-4, 25))(X)
    np.testing.assert_allclose(one, additive_gram(("spline", 2), (X + 4) / 29, (X + 4) / 29).astype(float), rtol=1e-13)
    beyond = ok.AdditiveSpline(bounds=(0, 1))([[2.5]])  # past `high` is past 1, still inside the domain
    np.testing.assert_allclose(beyond, [[additive_kernel(("spline", 1), [2.5], [2.5])]], rtol=1e-13)


@each("tree", [True, False])
def test_points_outside_the_domain_are_refused_with_a_hint_to_bounds(tree):
    kernel = ok.AdditiveSpline(tree=tree)
    for bad in (0.0, -0.5, -1e-300):
        for call in (lambda: kernel([[bad]]), lambda: kernel.diagonal([[bad]]), lambda: kernel([[1.0]], [[bad]])):
            with pytest.raises(ValueError, match="bounds"):
                call()
    with pytest.raises(ValueError, match="bounds"):
        ok.AdditiveSpline(bounds=([0.0, 5.0], [1.0, 6.0]), tree=tree)([[0.5, 4.9]])
    for fine in (library_kernel(SPECS[4], tree=tree), library_kernel(SPECS[5], tree=tree)):
        assert np.all(np.isfinite(fine([[-1e6], [0.0], [1e6]])))


BAD = [
    *[(ok.AdditiveSpline, {"order": value}, "order") for value in (-1, 32, 1.5, "x", None)],
    *[(ok.AdditiveSpline, {"bounds": value}, "bounds")
      for value in ((1.0, 1.0), (2.0, 1.0), (0.0, np.nan), (0.0, np.inf), 5, (1, 2, 3), ([0, 0], [1, 0]), "ab")],
    *[(ok.AdditiveExponential, {"rate": value}, "rate") for value in (0.0, -1.0, np.nan, np.inf, "x", None)],
    *[(ok.AdditiveMatern, {"rate": value}, "rate") for value in (0.0, -1.0, np.nan, "x")],
    *[(ok.AdditiveMatern, {"smoothness": value}, "smoothness") for value in (0.5, 2.0, 3.5, "x", None)],
    *[(kernel, {"tree": "yes"}, "tree") for kernel in (ok.AdditiveSpline, ok.AdditiveExponential, ok.AdditiveMatern)],
]


@each("kind, params, word", BAD, ids=str)
def test_bad_parameters_are_refused_when_used(kind, params, word):
    kernel = kind(**params)                             # stores and never raises
    with pytest.raises(ValueError, match=word):
        kernel([[0.5, 0.5]])
    model = ok.NORMA("hinge", kernel)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=word):
        model.fit([[0.5, 0.5], [0.6, 0.6]], [1, -1])
    assert pickle.dumps(model) == before


def test_bounds_for_another_number_of_features_are_refused():
    kernel = ok.AdditiveSpline(bounds=([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match="bounds"):
        kernel([[0.5, 0.5, 0.5]])
    with pytest.raises(ValueError, match="bounds"):
        ok.NORMA("squared", kernel).fit([[0.5, 0.5, 0.5]], [1.0])


# ---- The tree against the naive one --------------------------------------------------------------------


def assert_same_tree(tree, brute, probes):
    """Keys, counts and values, and the function to 1e-9 of the sum of |alpha_i| k(x_i, x)."""
    assert tree.size == brute.size
    for j in range(brute.n_coordinates):
        np.testing.assert_array_equal(tree.keys(j), brute.keys(j))
        np.testing.assert_array_equal(tree.counts(j), brute.counts(j))
        assert tree.values(j).shape == (brute.rows, len(brute.keys(j)))
        np.testing.assert_allclose(tree.values(j), brute.values(j), rtol=1e-12, atol=1e-12)
    assert_same_function(tree, brute, probes)


def assert_same_function(tree, brute, probes):
    """Components and their sums."""
    values, scales = [], []
    for j in range(brute.n_coordinates):
        values.append(brute.component(j, probes[:, j]))
        scales.append(brute.component_scale(j, probes[:, j]))
        found = tree.component(j, np.ascontiguousarray(probes[:, j]))
        assert found.shape == (len(probes), brute.rows)
        assert_close(found, values[j], scales[j])
    assert_close([tree.evaluate(x) for x in probes], sum(values), sum(scales))


def assert_close(found, expected, scale):
    """To 1e-9 of the scale; below 1e-300 an exponential may count as 0."""
    worst = np.max(np.abs(np.asarray(found) - expected) / (np.asarray(scale) + 1e-291), initial=0.0)
    assert worst <= 1e-9, f"off by {worst} of the scale"


def filled(spec, X, values):
    """Both trees after the same additions."""
    tree, brute = (kind(spec, X.shape[1], values.shape[1]) for kind in (Tree, BruteTree))
    for x, row in zip(X, values):
        tree.add(x, row)
        brute.add(x, row)
    tree._check()
    return tree, brute


def probes_for(X, rng, positive):
    """Keys, points between, beside and far outside them."""
    between = 0.5 * (X[rng.permutation(len(X))[:10]] + X[rng.permutation(len(X))[:10]])
    outside = np.concatenate([X.max(axis=0, keepdims=True) * 1.5 + 0.1, X.min(axis=0, keepdims=True) * 0.5])
    found = np.concatenate([X[:10], between, np.nextafter(X[:5], np.inf), np.nextafter(X[:5], -np.inf), outside])
    return np.maximum(found, 1e-9) if positive else np.concatenate([found, -1.0 - found])


@each("spec", SPECS, ids=str)
@each("order", ["random", "sorted", "reversed", "equal", "outside in"])
def test_any_order_of_insertion(spec, order):
    rng = np.random.default_rng(1)
    X = rng.uniform(0.01, 3.0, size=(150, 2))
    if order in ("sorted", "reversed"):
        X = np.sort(X, axis=0)[:: 1 if order == "sorted" else -1].copy()
    elif order == "equal":
        X = np.full((150, 2), 0.7)
        X[::50] = 1.1
    elif order == "outside in":
        X = np.sort(X, axis=0)
        X = X[np.argsort(np.minimum(np.arange(150), 149 - np.arange(150)), kind="stable")].copy()
    values = rng.normal(size=(150, 3))
    tree, brute = filled(spec, X, values)
    assert_same_tree(tree, brute, probes_for(X, rng, spec[0] == "spline"))
    for i in rng.permutation(150)[:140]:
        tree.remove(X[i], values[i])
        brute.remove(X[i], values[i])
    tree._check()
    assert_same_tree(tree, brute, probes_for(X, rng, spec[0] == "spline"))


@each("spec", SPECS, ids=str)
def test_thousands_of_random_operations(spec):
    """Invariants after each; keys and counts against sorted dicts; the function every now and then."""
    rng = np.random.default_rng(7)
    coordinates, rows = 2, 2
    tree, brute = Tree(spec, coordinates, rows), BruteTree(spec, coordinates, rows)
    kept, live = [SortedDict() for _ in range(coordinates)], []
    grid = np.round(rng.uniform(0.05, 2.0, size=60), 3)
    for operation in range(1200):
        growing = (operation // 400) % 2 == 0           # long phases of growth and of decline
        if live and rng.random() < (0.35 if growing else 0.75):
            x, values = live.pop(int(rng.integers(len(live))))
            tree.remove(x, values)
            brute.remove(x, values)
            for j in range(coordinates):
                kept[j][x[j]] -= 1
                if kept[j][x[j]] == 0:
                    del kept[j][x[j]]
        else:
            x = np.array([rng.choice(grid), rng.uniform(0.01, 2.5)])
            values = rng.choice([-1.0, 1.0], rows) * rng.uniform(0.1, 1.0, rows)
            tree.add(x, values)
            brute.add(x, values)
            live.append((x, values))
            for j in range(coordinates):
                kept[j][x[j]] = kept[j].get(x[j], 0) + 1
        tree._check()
        assert tree.size == sum(map(len, kept))
        if operation % 50 == 0:
            for j in range(coordinates):
                assert tree.keys(j).tolist() == list(kept[j].keys())
                assert tree.counts(j).tolist() == list(kept[j].values())
        if operation % 250 == 0:
            assert_same_tree(tree, brute, rng.uniform(0.01, 2.6, size=(8, 2)))
    for x, values in live:
        tree.remove(x, values)
    tree._check()
    assert tree.size == 0
    np.testing.assert_array_equal(tree.evaluate(np.array([0.5, 0.5])), np.zeros(rows))     # no dust at all


@each("spec", SPECS, ids=str)
def test_keys_over_twelve_orders_of_magnitude(spec):
    rng = np.random.default_rng(2)
    X = 10.0 ** rng.uniform(-6, 6, size=(200, 1))
    values = rng.choice([-1.0, 1.0], (200, 1)) * 10.0 ** rng.uniform(-3, 3, size=(200, 1))
    tree, brute = filled(spec, X, values)
    probes = np.concatenate([X[:40], 10.0 ** rng.uniform(-6, 6, size=(40, 1)), [[1e-7], [1e7]]])
    assert_same_tree(tree, brute, probes)
    for i in rng.permutation(200)[:150]:
        tree.remove(X[i], values[i])
        brute.remove(X[i], values[i])
    tree._check()
    assert_same_function(tree, brute, probes)


@each("kind", ["exponential", "matern 1.5", "matern 2.5"])
@each("rate, spread", [(1.0, 1e6), (1e6, 1.0), (1e3, 1e3), (700.0, 1.0), (1e-6, 1e-3)])
def test_exponents_far_out_of_range(kind, rate, spread):
    """rate * key up to 1e6: e^(rate key) overflows, and whatever is far away underflows to 0."""
    spec = ("exponential", rate) if kind == "exponential" else ("matern", rate, float(kind[-3:]))
    rng = np.random.default_rng(4)
    centres = spread * rng.uniform(-1.0, 1.0, size=(12, 1))
    X = np.repeat(centres, 12, axis=0) + rng.uniform(-3, 3, size=(144, 1)) / rate      # clusters that see themselves
    values = rng.normal(size=(144, 1))
    tree, brute = filled(spec, X[rng.permutation(144)], values)
    probes = np.concatenate([X[::7], centres, X[::9] + 0.3 / rate, [[-2 * spread], [0.0], [2 * spread]]])
    with np.errstate(all="raise", under="ignore"):
        assert_same_tree(tree, brute, probes)
    assert np.all(np.isfinite(tree.component(0, probes[:, 0].copy())))


@each("spec", SPECS, ids=str)
def test_what_was_added_and_removed_leaves_no_trace(spec):
    """1e18 among values of 1e-16: subtracting it from a sum would erase the neighbours."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.1, 2.0, size=(60, 1))
    values = 1e-16 * rng.normal(size=(60, 1))
    tree, brute = filled(spec, X, values)
    huge = rng.uniform(0.05, 2.1, size=(20, 1))
    for x in huge:
        tree.add(x, np.array([1e18]))
    tree._check()
    for x in huge[rng.permutation(20)]:
        tree.remove(x, np.array([1e18]))
        tree._check()
    np.testing.assert_array_equal(tree.values(0), brute.values(0))
    for x in np.concatenate([X, huge]):
        error = np.abs(tree.evaluate(x) - brute.evaluate(x))
        assert np.all(error <= 1e-12 * brute.scale(x))


def test_rows_are_independent():
    """A row's answers do not depend on its neighbours, however large those are."""
    rng = np.random.default_rng(5)
    X, values = rng.uniform(0.1, 1.0, size=(50, 2)), rng.normal(size=(50, 4))
    values[:, 1] *= 1e200
    values[:, 2] = 0.0
    wide, _ = filled(("spline", 1), X, values)
    for row in range(4):
        narrow, _ = filled(("spline", 1), X, values[:, row : row + 1])
        for x in X[:10]:
            np.testing.assert_array_equal(wide.evaluate(x)[row], narrow.evaluate(x)[0])


def test_a_key_that_is_not_there_cannot_be_removed():
    rng = np.random.default_rng(6)
    X, values = rng.uniform(0.1, 1.0, size=(20, 2)), rng.normal(size=(20, 1))
    tree, brute = filled(("exponential", 1.0), X, values)
    before = [(tree.keys(j), tree.counts(j), tree.values(j)) for j in range(2)], tree.evaluate(X[0])
    for absent in ([5.0, 5.0], [X[0, 0], 5.0], [5.0, X[0, 1]], [np.nextafter(X[0, 0], 1), X[0, 1]]):
        with pytest.raises(KeyError):
            tree.remove(np.array(absent), values[0])
    tree._check()
    for j in range(2):
        for mine, earlier in zip((tree.keys(j), tree.counts(j), tree.values(j)), before[0][j]):
            np.testing.assert_array_equal(mine, earlier)
    np.testing.assert_array_equal(tree.evaluate(X[0]), before[1])
    assert_same_tree(tree, brute, X)
    empty = Tree(("spline", 1), 2, 1)
    with pytest.raises(KeyError):
        empty.remove(X[0], values[0])
    assert empty.size == 0


def test_zeros_of_either_sign_are_one_key():
    tree = Tree(("exponential", 1.0))
    tree.add(np.array([0.0]), np.array([1.0]))
    tree.add(np.array([-0.0]), np.array([2.0]))
    assert tree.size == 1 and tree.counts(0).tolist() == [2]
    tree.remove(np.array([-0.0]), np.array([1.0]))
    tree._check()
    np.testing.assert_array_equal(tree.evaluate(np.array([0.0])), [2.0])


def test_an_empty_tree_is_zero():
    for spec in SPECS:
        tree = Tree(spec, 3, 2)
        tree._check()
        assert tree.size == 0
        np.testing.assert_array_equal(tree.evaluate(np.array([0.1, 0.2, 0.3])), [0.0, 0.0])
        np.testing.assert_array_equal(tree.component(1, np.array([0.5, 1.5])), np.zeros((2, 2)))
        assert len(tree.keys(0)) == len(tree.counts(0)) == 0 and tree.values(0).shape == (2, 0)


@each("spec", SPECS, ids=str)
def test_a_loaded_tree_is_the_tree(spec):
    rng = np.random.default_rng(8)
    for n in (0, 1, 2, 3, 7, 100):
        X, values = np.round(rng.uniform(0.05, 2.0, size=(n, 2)), 2), rng.normal(size=(n, 3))
        tree, brute = filled(spec, X, values)
        twin = Tree(spec, 2, 3)
        for j in range(2):
            twin.load(j, tree.keys(j), tree.counts(j), tree.values(j))
        twin._check()
        probes = rng.uniform(0.01, 2.5, size=(10, 2))
        assert_same_tree(twin, brute, probes)
        for x, row in zip(X[: n // 2], values[: n // 2]):       # goes on like any other tree
            twin.remove(x, row)
            brute.remove(x, row)
        twin.add(np.array([0.5, 0.25]), np.ones(3))
        brute.add(np.array([0.5, 0.25]), np.ones(3))
        twin._check()
        assert_same_tree(twin, brute, probes)


def test_only_what_a_tree_could_hold_is_loaded():
    keys, counts, values = np.array([0.5, 1.0, 2.0]), np.array([1, 2, 1]), np.ones((1, 3))
    bad = [
        (keys[::-1].copy(), counts, values),
        (np.array([0.5, 0.5, 2.0]), counts, values),
        (np.array([0.5, np.nan, 2.0]), counts, values),
        (keys, counts[:2], values),
        (keys, np.array([1, 0, 1]), values),
        (keys, counts, np.ones((1, 2))),
        (keys, counts, np.ones((2, 3))),
    ]
    tree = Tree(("spline", 1))
    for arguments in bad:
        with pytest.raises(ValueError):
            tree.load(0, *arguments)
        tree._check()
        assert tree.size == 0
    tree.load(0, keys, counts, values)
    with pytest.raises(ValueError):                     # no longer empty
        tree.load(0, keys, counts, values)
    assert tree.size == 3


def test_terms_with_one_key_are_counted_as_far_as_numbers_go():
    """A feature of two values meets the same key with every second row of an endless stream."""
    tree = Tree(("exponential", 1.0))
    tree.load(0, [0.5], [2**31 - 2], [[1.0]])
    for _ in range(3):
        tree.add(np.array([0.5]), np.array([1.0]))
    tree._check()
    assert tree.counts(0).tolist() == [2**31 - 1] and tree.values(0).tolist() == [[4.0]]


def test_wrong_shapes_are_refused():
    tree = Tree(("exponential", 1.0), 2, 3)
    tree.add(np.array([0.1, 0.2]), np.ones(3))
    for call in (tree.add, tree.remove):
        for x, values in ((np.ones(1), np.ones(3)), (np.ones(3), np.ones(3)), (np.ones(2), np.ones(2))):
            with pytest.raises(ValueError):
                call(x, values)
    with pytest.raises(ValueError):
        tree.evaluate(np.ones(3))
    for j in (2, -3):
        for call in (tree.keys, tree.counts, tree.values, lambda j: tree.component(j, np.ones(1))):
            with pytest.raises((IndexError, ValueError)):
                call(j)
    tree._check()
    assert tree.size == 2


@each("order", ["sorted", "reversed", "random"])
def test_many_keys_make_a_low_tree_of_few_bytes(order):
    keys = np.arange(1, 40_001) * 5e-5
    keys = {"sorted": keys, "reversed": keys[::-1], "random": np.random.default_rng(0).permutation(keys)}[order]
    tree, one = Tree(("spline", 1)), np.ones(1)
    for row in keys.reshape(-1, 1).copy():
        tree.add(row, one)
    assert len(tree.contents(0)[3]) <= 6                # levels: blocks are at least half full
    assert tree.size == 40_000
    assert tree.nbytes <= 150 * tree.size
    expected = np.sum(coordinate_kernel(("spline", 1), keys, 0.7777))
    np.testing.assert_allclose(tree.evaluate(np.array([0.7777]))[0], float(expected), rtol=1e-11)


@each("spec", [("spline", 1), ("exponential", 2.0), ("matern", 2.0, 1.5)], ids=str)
@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")
def test_memory_per_term_and_coordinate(spec):
    rng = np.random.default_rng(0)
    tree = Tree(spec, 3, 1)
    for x in rng.uniform(0.01, 1.0, size=(20_000, 3)):
        tree.add(x, np.ones(1))
    assert tree.size == 60_000
    assert tree.nbytes <= 150 * tree.size
    model = ok.NORMA("squared", library_kernel(spec), step=0.01).fit(np.round(rng.uniform(0.1, 1, size=(5000, 2)), 2),
                                                                    rng.normal(size=5000))
    assert len(pickle.dumps(model)) < 200_000           # 91 keys per coordinate, not 5000 terms


# ---- Models on trees against the ordinary engine -------------------------------------------------------


BUDGETS = [None, ok.Recent(13), ok.Window(17)]


def data(loss, seed, n=N):
    """(X, y, weights, what the first call needs)."""
    rng = np.random.default_rng(1000 + seed)
    X = points(seed, n)
    y = {
        "binary": np.where(np.sin(7 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n) > 0.8, 1, -1),
        "regression": np.sin(7 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n),
        "multiclass": np.array(NAMES)[(4 * X[:, 0] + rng.uniform(0, 0.5, n)).astype(int) % 4],
        "novelty": None,
    }[loss.task]
    first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}}.get(loss.task, {})
    return X, y, rng.uniform(0.3, 1.5, n), first


def score(model, X):
    """f + b whatever the task is."""
    for method in ("score_samples", "decision_function", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)


def on_tree(model):
    return "Trees" in type(model._state.representation).__name__


def assert_same_model(tree, plain, X, terms):
    """The same function, offset, scalar and norm; with a budget the same terms."""
    assert on_tree(tree) and hasattr(plain, "dual_coef_")
    np.testing.assert_allclose(score(tree, X), score(plain, X), **CLOSE)
    np.testing.assert_allclose(tree.intercept_, plain.intercept_, **CLOSE)
    np.testing.assert_allclose(tree.norm_, plain.norm_, rtol=1e-7, atol=1e-7)
    assert tree.t_ == plain.t_
    for name in ("margin_", "width_"):
        assert hasattr(tree, name) == hasattr(plain, name)
        if hasattr(plain, name):
            np.testing.assert_allclose(getattr(tree, name), getattr(plain, name), **CLOSE)
    assert hasattr(tree, "dual_coef_") == hasattr(tree, "support_vectors_") == terms
    if terms:
        assert tree.n_terms_ == plain.n_terms_
        np.testing.assert_allclose(tree.dual_coef_, plain.dual_coef_, **CLOSE)
        np.testing.assert_allclose(tree.support_vectors_, plain.support_vectors_, rtol=1e-12)
    tree._state.engine._check()


def compare(make, loss, seed, spec, budget, weighted=False, scale=None):
    """One algorithm on the tree and beside it, each with chunks of its own."""
    X, y, weights, first = data(loss, seed)
    models = []
    for tree in (True, False):
        kernel = library_kernel(spec, tree=tree)
        models.append(make(kernel if scale is None else scale * kernel, budget))
    rng = np.random.default_rng(seed)
    found, expected = (in_chunks(model, X, y, weights if weighted else None, rng, **first) for model in models)
    np.testing.assert_allclose(found, expected, **CLOSE)
    assert_same_model(*models, points(seed + 1, 20), terms=budget is not None)
    return models


@covering(2, unless=lambda loss, offset, **_: offset and loss.task == "novelty")
@each("spec", SOME, ids=str)
@each("loss", [*LOSSES, *MULTI], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_norma(loss, spec, budget, offset):
    seed = 2 * BUDGETS.index(budget) + offset
    compare(lambda kernel, budget: ok.NORMA(loss, kernel, step=ok.InverseSqrt(0.08), regularization=0.3,
                                            budget=budget, offset=offset),
            loss, seed, spec, budget, weighted=seed % 2 == 0, scale=0.7 if seed % 3 == 0 else None)


@each("spec", SOME, ids=str)
@each("loss", [*LOSSES, *MULTI], ids=repr)
def test_the_average_hypothesis(loss, spec):
    for seed, regularization in enumerate([0.0, 0.3, 8.0]):
        compare(lambda kernel, budget: ok.NORMA(loss, kernel, step=0.08, regularization=regularization, average=True,
                                                offset=loss.task != "novelty"), loss, seed, spec, None)


@each("spec", SOME, ids=str)
@each("loss", [*LOSSES, *MULTI], ids=repr)
def test_ilk(loss, spec):
    for seed, budget in enumerate(BUDGETS):
        offset = loss.task != "novelty" and seed != 1
        compare(lambda kernel, budget: ok.ILK(loss, kernel, step=0.5, regularization=0.1, budget=budget, offset=offset),
                loss, seed, spec, budget, weighted=seed == 1)
    if loss.task == "multiclass":
        compare(lambda kernel, budget: ok.ILK(loss, kernel, exact=True, budget=budget), loss, 5, spec, ok.Recent(9))


@covering(2)
@each("spec", SOME, ids=str)
@each("loss", [loss for loss in [*LOSSES, *MULTI] if not isinstance(loss, ok.NuHuber)], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("exact_norms", [False, True])
def test_svmd(loss, spec, budget, exact_norms):
    offset = loss.task != "novelty" and exact_norms
    tree, plain = compare(
        lambda kernel, budget: ok.SVMD(loss, kernel, step=0.02, meta_step=0.05, memory=0.9, regularization=0.2,
                                       budget=budget, offset=offset, exact_norms=exact_norms),
        loss, 2 * BUDGETS.index(budget) + exact_norms, spec, budget)
    np.testing.assert_allclose(tree.step_, plain.step_, rtol=1e-8)


AGGRESSIVE = [ok.Hinge(), ok.Insensitive(0.1), ok.MulticlassHinge()]


@covering(2)
@each("spec", SPECS, ids=str)
@each("loss", AGGRESSIVE, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_passive_aggressive_and_projection(loss, spec, budget, offset):
    seed = 2 * BUDGETS.index(budget) + offset
    for variant in ("PA-I", "PA-II"):
        compare(lambda kernel, budget: ok.PassiveAggressive(loss, kernel, variant=variant, penalty=0.2,
                                                            budget=budget, offset=offset),
                loss, seed, spec, budget)
    for radius in (None, 0.6, 4.0):
        tree, _ = compare(lambda kernel, budget: ok.Projection(loss, kernel, radius=radius, budget=budget,
                                                               offset=offset), loss, seed, spec, budget)
        assert radius is None or tree.norm_ <= radius * (1 + 1e-9)


@each("spec", SPECS, ids=str)
def test_perceptron_romma_and_adatron(spec):
    for seed, budget in enumerate(BUDGETS):
        for average in (False, True) if budget is None else (False,):
            compare(lambda kernel, budget: ok.Perceptron(kernel, average=average, budget=budget, offset=seed == 1),
                    ok.Hinge(), seed, spec, budget)
        for aggressive in (False, True):                # few examples: the geometry of more is ill-conditioned
            models = [ok.ROMMA(library_kernel(spec, tree=tree), aggressive=aggressive, budget=budget)
                      for tree in (True, False)]
            X = np.random.default_rng(seed).uniform(0.1, 1.0, size=(25, 2))
            y = np.where(X[:, 0] > X[:, 1], 1, -1)
            found, expected = (in_chunks(model, X, y, None, np.random.default_rng(3)) for model in models)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    X, y, _, _ = data(ok.Hinge(), 3)
    models = [ok.Adatron(library_kernel(spec, tree=tree), step=0.05, epochs=6).fit(X, y) for tree in (True, False)]
    np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(X), **CLOSE)
    np.testing.assert_allclose(models[0].norm_, models[1].norm_, rtol=1e-8)
    assert on_tree(models[0]) and not hasattr(models[0], "dual_coef_")


@covering(2)
@each("spec", SPECS, ids=str)
@each("loss", [ok.Hinge(), ok.Squared(), ok.NuNovelty(0.3, 0.5)], ids=repr)
@each("budget", BUDGETS, ids=repr)
def test_a_model_on_a_tree_equals_the_oracle(spec, loss, budget):
    """Not the ordinary engine but K's definition, with the kernel in extended precision."""
    seed = BUDGETS.index(budget)
    X, y, weights, first = data(loss, seed, n=40)
    model = ok.NORMA(loss, library_kernel(spec), step=0.05, regularization=0.4, budget=budget)
    oracle = ReferenceNORMA(loss=describe(loss), kernel=lambda x, z: additive_kernel(spec, x, z),
                            step=("Fixed", {"rate": 0.05}), regularization=0.4,
                            budget=describe(ok.Unlimited() if budget is None else budget))
    scores = in_chunks(model, X, y, weights, np.random.default_rng(seed), **first)
    np.testing.assert_allclose(scores, oracle.run(X, y, weights), **CLOSE)
    np.testing.assert_allclose(score(model, X[:8]), [oracle.predict_score(x) for x in X[:8]], **CLOSE)
    np.testing.assert_allclose(model.norm_, oracle.norm(), rtol=1e-7, atol=1e-8)
    assert on_tree(model)


@each("budget, average", [*[(budget, False) for budget in BUDGETS], (None, True)], ids=repr)
@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")
def test_folding_the_frame_reaches_the_tree(budget, average):
    """(1 - 0.5)^1200 underflows many times over; at step * regularization = 1 the past is wiped."""
    rng = np.random.default_rng(0)
    X, y = points(1, 1200), rng.normal(size=1200)
    for regularization in (1.25, 2.5):
        models = [ok.NORMA("squared", ok.AdditiveExponential(tree=tree), step=0.4, regularization=regularization,
                           budget=budget, average=average) for tree in (True, False)]
        found, expected = (in_chunks(model, X, y, None, rng) for model in models)
        np.testing.assert_allclose(found, expected, **CLOSE)
        np.testing.assert_allclose(models[0].predict(X[:50]), models[1].predict(X[:50]), **CLOSE)
        models[0]._state.engine._check()


def test_structured_labels_on_the_tree():
    taxonomy = ok.Taxonomy({"a": "v", "b": "v", "c": "w", "d": "w", "v": "root", "w": "root"})
    graph = ok.LabelGraph([("a", "b", 0.5), ("b", "c", 1.0), ("c", "d", 0.25), ("d", "a", 1.5)])
    X, y, _, _ = data(ok.MulticlassHinge(), 9)
    for labels, loss, budget in itertools.product([taxonomy, graph], [ok.GraphHinge(), ok.NuGraphHinge(0.2)], BUDGETS):
        models = [ok.NORMA(loss, ok.AdditiveSpline(tree=tree), step=0.05, labels=labels, budget=budget, offset=True)
                  for tree in (True, False)]
        found, expected = (in_chunks(model, X, y, None, np.random.default_rng(2)) for model in models)
        np.testing.assert_allclose(found, expected, **CLOSE)
        assert_same_model(*models, X, terms=budget is not None)


def test_bounds_per_feature(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform([-3.0, 100.0], [3.0, 900.0], size=(80, 2))
    y = np.sin(X[:, 0]) + X[:, 1] / 500
    bounds = np.array([-3.5, 50.0]), np.array([3.5, 1000.0])
    unit = (X - bounds[0]) / (bounds[1] - bounds[0])
    for budget in BUDGETS:
        plain = ok.NORMA("squared", ok.AdditiveSpline(2), step=0.05, budget=budget).fit(unit, y)
        for given in (bounds, tuple(bound.tolist() for bound in bounds)):
            model = ok.NORMA("squared", ok.AdditiveSpline(2, bounds=given), step=0.05, budget=budget).fit(X, y)
            np.testing.assert_allclose(model.predict(X), plain.predict(unit), **CLOSE)
            for j in range(2):                          # components and knots speak the data's language
                np.testing.assert_allclose(model.component(j, X[:, j]), plain.component(j, unit[:, j]), **CLOSE)
                expected = X[:, j] if budget is None else model.support_vectors_[:, j]
                np.testing.assert_allclose(model.knots_[j], np.unique(expected), rtol=1e-12)
            twin = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(twin.predict(X), model.predict(X))
            model.save(tmp_path / "m.npz")
            np.testing.assert_array_equal(ok.load(tmp_path / "m.npz").predict(X), model.predict(X))


def test_where_trees_do_not_reach_the_ordinary_engine_serves():
    X, y, _, _ = data(ok.Hinge(), 2)
    tree, plain = ok.AdditiveSpline(), ok.AdditiveSpline(tree=False)
    for kernel, twin, budget in [
        (tree + ok.Gaussian(), plain + ok.Gaussian(), None),
        (tree + ok.Constant(), plain + ok.Constant(), None),
        (tree + ok.AdditiveExponential(), plain + ok.AdditiveExponential(tree=False), None),
        (tree * ok.Gaussian(), plain * ok.Gaussian(), None),
        (ok.Normalized(tree), ok.Normalized(plain), None),
        (tree, plain, ok.Smallest(8)),
        (tree, plain, ok.Sublinear(0.6, 4)),
        (plain, plain, None),
    ]:
        models = [ok.NORMA("hinge", one, step=0.1, budget=budget) for one in (kernel, twin)]
        found, expected = (in_chunks(model, X, y, None, np.random.default_rng(1)) for model in models)
        np.testing.assert_allclose(found, expected, **CLOSE)
        assert budget is not None or not on_tree(models[0])
        assert models[0].support_vectors_.shape == (models[0].n_terms_, D) and models[0].dual_coef_.shape[1] > 0
    for algorithm in (ok.ALMA, ok.VotedPerceptron):
        models = [algorithm(one).fit(X, y) for one in (tree, plain)]
        np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(X), **CLOSE)


# ---- Components and knots ------------------------------------------------------------------------------


MODELS = {
    "norma": lambda kernel: ok.NORMA("hinge", kernel, step=0.1, offset=True),
    "regression": lambda kernel: ok.NORMA("squared", kernel, step=0.05, offset=True),
    "novelty": lambda kernel: ok.NORMA("nunovelty", kernel, step=0.1),
    "average": lambda kernel: ok.NORMA("logistic", kernel, step=0.1, regularization=0.2, average=True, offset=True),
    "recent": lambda kernel: ok.NORMA("hinge", kernel, step=0.1, budget=9),
    "window": lambda kernel: ok.NORMA("squared", kernel, step=0.05, budget=ok.Window(11)),
    "classes": lambda kernel: ok.NORMA("multiclasslogistic", kernel, step=0.1, offset=True),
    "pairs": lambda kernel: ok.NORMA("multiclasshinge", kernel, step=0.1, budget=20),
    "svmd": lambda kernel: ok.SVMD("logistic", kernel, step=0.02, offset=True),
    "svmd exact": lambda kernel: ok.SVMD("multiclasshinge", kernel, step=0.02, budget=15, exact_norms=True),
    "ilk": lambda kernel: ok.ILK("logistic", kernel),
    "silk": lambda kernel: ok.SILK("hinge", kernel, budget=ok.Recent(9)),
    "pa": lambda kernel: ok.PassiveAggressive(ok.Insensitive(0.1), kernel, offset=True),
    "perceptron": lambda kernel: ok.Perceptron(kernel, average=True),
    "projection": lambda kernel: ok.Projection("hinge", kernel, radius=0.7),
    "ball and window": lambda kernel: ok.Projection(ok.Insensitive(0.1), kernel, radius=0.7, budget=ok.Window(13)),
    "romma": lambda kernel: ok.ROMMA(kernel),
    "romma recent": lambda kernel: ok.ROMMA(kernel, aggressive=True, budget=5),
}
FORMS = [
    ok.AdditiveSpline(),
    ok.AdditiveSpline(3, bounds=(-1.0, 2.0)),
    0.5 * ok.AdditiveExponential(2.0),
    ok.AdditiveMatern(1.5) * 2.0,
    ok.AdditiveMatern(1.5, 2.5),
]


def taught(name, kernel, n=N):
    """(model, X, y): a model that has learned n examples."""
    model = MODELS[name](kernel)
    X, y, _, first = data(model._current_loss(), 5)
    return model.partial_fit(X[:n], None if y is None else y[:n], **first), X, y


@each("name", MODELS)
@each("kernel", FORMS, ids=repr)
def test_components_add_up_to_the_function(name, kernel):
    model, X, _ = taught(name, kernel)
    parts = [model.component(j, X[:, j]) for j in range(D)]
    expected = score(model, X)
    assert all(part.shape == expected.shape for part in parts)
    np.testing.assert_allclose(sum(parts) + (model.intercept_ if expected.ndim > 1 else model.intercept_[0]), expected,
                               rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.component(0, X[:, 0].tolist()), parts[0])
    varied = X.copy()
    varied[:, 1] = 0.4                                  # a component depends on its own coordinate alone
    change = score(model, varied) - expected
    np.testing.assert_allclose(change, model.component(1, varied[:, 1]) - parts[1], rtol=1e-8, atol=1e-9)
    if hasattr(model, "dual_coef_"):                    # and is the sum over the terms in that coordinate
        K = np.array([[kernel([[a]], [[b]])[0, 0] for b in model.support_vectors_[:, 0]] for a in X[:9, 0]])
        by_terms = K @ model.dual_coef_.T
        np.testing.assert_allclose(parts[0][:9], by_terms if expected.ndim > 1 else by_terms[:, 0], **CLOSE)


def test_knots_are_the_distinct_values():
    X = points(3, 200)
    y = np.random.default_rng(0).normal(size=200)
    model = ok.NORMA("squared", ok.AdditiveExponential(), step=0.1).fit(X, y)
    assert isinstance(model.knots_, list) and len(model.knots_) == D
    for j in range(D):
        np.testing.assert_array_equal(model.knots_[j], np.unique(X[:, j]))
    assert len(model.knots_[1]) <= 12
    for budget in (ok.Recent(15), ok.Window(15)):
        model = ok.NORMA("hinge", ok.AdditiveSpline(), step=0.1, budget=budget).fit(X, y > 0)
        for j in range(D):
            np.testing.assert_array_equal(model.knots_[j], np.unique(model.support_vectors_[:, j]))
    bounded = ok.NORMA("squared", ok.AdditiveSpline(bounds=(-1.0, 2.0)), step=0.1).fit(X, y)
    np.testing.assert_allclose(bounded.knots_[0], np.unique(X[:, 0]), rtol=1e-12)    # in the data's units


@each("spec", SPECS, ids=str)
def test_a_window_that_slides_past_every_term_leaves_an_empty_tree(spec):
    X, y, _, _ = data(ok.Squared(), 1)
    model = ok.NORMA("squared", library_kernel(spec), step=0.05, budget=ok.Window(7)).partial_fit(X, y)
    model.partial_fit(X[:7], y[:7], sample_weight=np.zeros(7))
    assert [len(knots) for knots in model.knots_] == [0, 0] and model.n_terms_ == 0
    np.testing.assert_array_equal(model.predict(X), np.zeros(N))        # not even dust
    assert model.norm_ == 0.0


def test_unlimited_trees_have_knots_instead_of_terms():
    model, _, _ = taught("norma", ok.AdditiveSpline())
    for name in ("support_vectors_", "dual_coef_"):
        with pytest.raises(AttributeError, match="knots_"):
            getattr(model, name)
    with pytest.raises(AttributeError):
        ok.NORMA("hinge", ok.AdditiveSpline()).knots_   # not fitted


def test_many_examples_keep_a_thousand_knots():
    rng = np.random.default_rng(0)
    values = np.sort(rng.uniform(-5.0, 5.0, size=(1000, 2)), axis=0)
    model = ok.NORMA("squared", ok.AdditiveExponential(), step=0.05, regularization=1e-4)
    for _ in range(3):
        X = np.column_stack([values[rng.integers(0, 1000, 100_000), j] for j in range(2)])
        model.partial_fit(X, np.sin(X[:, 0]) + 0.1 * X[:, 1] ** 2)
    assert model.t_ == 300_000
    for j in range(2):
        np.testing.assert_array_equal(model.knots_[j], values[:, j])
    assert len(pickle.dumps(model)) < 1_000_000
    grid = np.linspace(-4, 4, 30)
    shape = model.component(0, grid)
    assert np.max(np.abs((shape - shape.mean()) - (np.sin(grid) - np.sin(grid).mean()))) < 0.2


# ---- Saving, starting from another model ---------------------------------------------------------------


@each("loss", [ok.Hinge(), ok.Squared(), ok.MulticlassHinge(), ok.MulticlassLogistic()], ids=repr)
@each("spec", [SPECS[1], SPECS[4], SPECS[6]], ids=str)
def test_a_model_may_start_from_another_one_on_the_tree(loss, spec):
    X, y, _, first = data(loss, 8)
    recent, window = ok.Recent(11), ok.Window(12)
    for before, after in [(None, None), (recent, ok.Recent(6)), (window, ok.Window(5))]:
        pairs = []
        for tree in (True, False):
            kernel = library_kernel(spec, tree=tree)
            start = ok.NORMA(loss, kernel, step=0.1, budget=before, offset=True).partial_fit(X[:30], y[:30], **first)
            model = ok.NORMA(loss, kernel, step=0.05, regularization=0.2, budget=after, offset=True)
            scores = model.progressive(X[30:], y[30:], initial=start)
            pairs.append((scores, score(model, X), score(start, X)))
        for found, expected in zip(*pairs):
            np.testing.assert_allclose(found, expected, **CLOSE)


# ---- Refused calls -------------------------------------------------------------------------------------


def test_bad_components_are_refused():
    model, X, _ = taught("norma", ok.AdditiveSpline())
    before = pickle.dumps(model)
    for j in (D, -D - 1, 0.5, "x", None):
        with pytest.raises((IndexError, TypeError, ValueError)):
            model.component(j, [0.5])
    for grid, word in (([np.nan], "finite"), ([np.inf], "finite"), ([-1.0], "bounds"), ([[0.5]], "1"), (["x"], None)):
        with pytest.raises((TypeError, ValueError), match=word):
            model.component(0, grid)
    assert pickle.dumps(model) == before
    assert model.component(0, []).shape == (0,)
    with pytest.raises((AttributeError, ValueError)):
        ok.NORMA("hinge", ok.AdditiveSpline()).component(0, [0.5])
