"""Additive kernels: their formulas, the compiled tree against a naive one, and models on trees against the engine."""

import numpy as np
import pytest
from sortedcontainers import SortedDict

import onlinekernels as ok
from onlinekernels._core.trees import Tree
from cases import covering, each
from reference_additive import BruteTree, additive_gram, additive_kernel, coordinate_kernel
from test_oracle import LOSSES, in_chunks

SPECS = [("spline", 0), ("spline", 1), ("spline", 2), ("spline", 3), ("exponential", 1.3), ("matern", 0.9, 1.5),
         ("matern", 1.1, 2.5), ("spline", 4), ("spline", 9)]
SUMS = {
    "two": lambda **more: ok.AdditiveSpline(bounds=(-0.5, 1.5), **more) + 0.3 * ok.AdditiveExponential(2.0, **more),
    "constant": lambda **more: 0.5 * (ok.AdditiveMatern(2.0, 2.5, **more) + 0.6) + ok.AdditiveSpline(0, **more) + 0.1,
    "noise": lambda **more: ok.AdditiveSpline(**more) + ok.Noise(0.1),
    "all": lambda **more: 2 * (ok.Noise(0.2) + (0.4 + ok.AdditiveExponential(**more))) + ok.AdditiveSpline(3, **more),
}
# where all losses are tried
SOME = [("spline", 1), ("spline", 3), ("exponential", 1.3), ("matern", 1.1, 2.5), *((name,) for name in SUMS)]
# Some settings diverge; the library and the oracle then do so together.
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
MULTI = [ok.MulticlassHinge(0.8), ok.NuMulticlassHinge(0.2, 0.6), ok.NuMulticlassHinge(0.2, 0.6, None),
         ok.MulticlassLogistic()]
NAMES = ["a", "b", "c", "d"]
N, D = 60, 2
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def library_kernel(spec, **more):
    """The public kernel of a one-dimensional one, or one of the sums."""
    if spec[0] in SUMS:
        return SUMS[spec[0]](**more)
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


# ---- The tree against the naive one --------------------------------------------------------------------


def keys_of(tree, j):
    """Distinct values of a coordinate, ascending."""
    return tree.contents(j)[0]


def counts_of(tree, j):
    """How many terms have each of these."""
    return tree.contents(j)[1]


def values_of(tree, j):
    """Sums of the coefficients at each, (rows, keys)."""
    return tree.contents(j)[2]


def size_of(tree):
    """Number of keys in all coordinates."""
    return sum(len(keys_of(tree, j)) for j in range(tree.n_coordinates))


def assert_same_tree(tree, brute, probes):
    """Keys, counts and values, and the function to 1e-9 of the sum of |alpha_i| k(x_i, x)."""
    assert size_of(tree) == brute.size
    for j in range(brute.n_coordinates):
        np.testing.assert_array_equal(keys_of(tree, j), brute.keys(j))
        np.testing.assert_array_equal(counts_of(tree, j), brute.counts(j))
        assert values_of(tree, j).shape == (brute.rows, len(brute.keys(j)))
        np.testing.assert_allclose(values_of(tree, j), brute.values(j), rtol=1e-12, atol=1e-12)
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
        assert size_of(tree) == sum(map(len, kept))
        if operation % 50 == 0:
            for j in range(coordinates):
                assert keys_of(tree, j).tolist() == list(kept[j].keys())
                assert counts_of(tree, j).tolist() == list(kept[j].values())
        if operation % 250 == 0:
            assert_same_tree(tree, brute, rng.uniform(0.01, 2.6, size=(8, 2)))
    for x, values in live:
        tree.remove(x, values)
    tree._check()
    assert size_of(tree) == 0
    np.testing.assert_array_equal(tree.evaluate(np.array([0.5, 0.5])), np.zeros(rows))     # no dust at all


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
    np.testing.assert_array_equal(values_of(tree, 0), brute.values(0))
    for x in np.concatenate([X, huge]):
        error = np.abs(tree.evaluate(x) - brute.evaluate(x))
        assert np.all(error <= 1e-12 * brute.scale(x))


def test_terms_with_one_key_are_counted_as_far_as_numbers_go():
    """A feature of two values meets the same key with every second row of an endless stream."""
    tree = Tree(("exponential", 1.0))
    tree.load(0, np.array([0.5]), np.array([2**31 - 2], np.int32), [[1.0]], [[1]])
    for _ in range(3):
        tree.add(np.array([0.5]), np.array([1.0]))
    tree._check()
    assert counts_of(tree, 0).tolist() == [2**31 - 1] and values_of(tree, 0).tolist() == [[4.0]]


@each("order", ["sorted", "reversed", "random"])
def test_many_keys_make_a_low_tree_of_few_blocks(order):
    keys = np.arange(1, 40_001) * 5e-5
    keys = {"sorted": keys, "reversed": keys[::-1], "random": np.random.default_rng(0).permutation(keys)}[order]
    tree, one = Tree(("spline", 1)), np.ones(1)
    for row in keys.reshape(-1, 1).copy():
        tree.add(row, one)
    sizes = tree.contents(0)[3]
    assert len(sizes) <= 6 and sum(map(len, sizes)) <= 40_000 // 16 * 1.2       # blocks are at least half full
    assert size_of(tree) == 40_000
    expected = np.sum(coordinate_kernel(("spline", 1), keys, 0.7777))
    np.testing.assert_allclose(tree.evaluate(np.array([0.7777]))[0], float(expected), rtol=1e-11)


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
    assert_same_model(*models, points(seed + 1, 20), terms=budget is not None or spec[0] in ("noise", "all"))
    return models


ALGORITHMS = {"norma": lambda loss, kernel, **more: ok.NORMA(loss, kernel, step=ok.InverseSqrt(0.08),
                                                             regularization=0.3, **more), "average": lambda loss,
              kernel, budget, **more: ok.NORMA(loss, kernel, step=0.08, regularization=0.3, average=True, **more),
              "ilk": lambda loss, kernel, **more: ok.ILK(loss, kernel, step=0.5, regularization=0.1, **more),
              "svmd": lambda loss, kernel, **more: ok.SVMD(loss, kernel, step=0.02, meta_step=0.05, memory=0.9,
                                                           regularization=0.2, **more), "svmd exact": lambda loss,
              kernel, **more: ok.SVMD(loss, kernel, step=0.02, regularization=0.2, exact_norms=True, **more),
              "pa": lambda loss, kernel, **more: ok.PassiveAggressive(loss, kernel, penalty=0.2, **more),
              "projection": lambda loss, kernel, **more: ok.Projection(loss, kernel, radius=0.6, **more),
              "perceptron": lambda loss, kernel, **more: ok.Perceptron(kernel, **more)}


def makes_no_sense(algorithm, loss, budget, offset=False, **_):
    return (offset and loss.task == "novelty" or algorithm == "average" and budget is not None
            or algorithm in ("pa", "projection")
            and not isinstance(loss, (ok.Hinge, ok.Insensitive, ok.MulticlassHinge))
            or algorithm == "perceptron" and not isinstance(loss, ok.Hinge)
            or algorithm.startswith("svmd") and isinstance(loss, ok.NuHuber))


@covering(2, unless=makes_no_sense)
@each("algorithm", ALGORITHMS)
@each("spec", SOME, ids=str)
@each("loss", [*LOSSES, *MULTI, ok.Insensitive(0.1), ok.MulticlassHinge()], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_on_a_tree_they_learn_what_they_learn_beside_it(algorithm, loss, spec, budget, offset):
    seed = 2 * BUDGETS.index(budget) + offset
    compare(lambda kernel, budget: ALGORITHMS[algorithm](loss, kernel, budget=budget, offset=offset),
            loss, seed, spec, budget, weighted=seed % 2 == 0, scale=0.7 if seed % 3 == 0 else None)


@each("budget, average", [*[(budget, False) for budget in BUDGETS], (None, True)], ids=repr)
@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
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


def test_where_trees_do_not_reach_the_ordinary_engine_serves():
    X, y, _, _ = data(ok.Hinge(), 2)
    tree, plain = ok.AdditiveSpline(), ok.AdditiveSpline(tree=False)
    for kernel, twin, budget in [
        (tree + ok.Gaussian(), plain + ok.Gaussian(), None),
        (tree + ok.Linear(), plain + ok.Linear(), None),
        (tree + ok.AdditiveExponential(tree=False), plain + ok.AdditiveExponential(tree=False), None),
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
    for algorithm, pair in [(ok.ALMA, (tree, plain)), (ok.VotedPerceptron, (tree, plain)),
                            *((ok.Adatron, (make(), make(tree=False))) for make in SUMS.values())]:
        models = [algorithm(one).fit(X, y) if algorithm is not ok.Adatron else algorithm(one, step=0.1).fit(X, y)
                  for one in pair]
        np.testing.assert_allclose(models[0].norm_, models[1].norm_, **CLOSE)
        np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(X), **CLOSE)


def test_the_cost_of_sums_does_not_grow_with_the_examples():
    """What is visited is a path in each tree, and there are as many trees whatever t is."""
    X = np.random.default_rng(0).integers(1, 60, (4000, D)) / 30
    for name, make in SUMS.items():
        model, levels = ok.NORMA("hinge", make(), step=0.01), []
        for part in (slice(0, 1000), slice(1000, 4000)):
            model.partial_fit(X[part], X[part, 0] > 1)
            forest = model._state.function.forest
            levels.append([len(forest.tree.contents(j)[3]) for j in range(forest.n_trees)])
        assert len(levels[0]) == len(levels[1]) and max(levels[1]) <= 2
        assert on_tree(model) and hasattr(model, "dual_coef_") == (name in ("noise", "all"))


FORMS = [
    ok.AdditiveSpline(),
    ok.AdditiveSpline(3, bounds=(-1.0, 2.0)),
    0.5 * ok.AdditiveExponential(2.0),
    ok.AdditiveMatern(1.5) * 2.0,
    ok.AdditiveMatern(1.5, 2.5),
    *(make(tree=tree) for make in SUMS.values() for tree in (True, False)),
]


@covering(2, unless=makes_no_sense)
@each("algorithm", ALGORITHMS)
@each("loss", [ok.Hinge(), ok.Squared(), ok.NuNovelty(), ok.Insensitive(0.1), ok.MulticlassHinge(),
               ok.MulticlassLogistic()], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("kernel", FORMS, ids=repr)
def test_components_add_up_to_the_function(algorithm, loss, budget, kernel):
    X, y, _, first = data(loss, 5)
    model = ALGORITHMS[algorithm](loss, kernel, budget=budget, offset=loss.task != "novelty").partial_fit(X, y, **first)
    parts = [model.component(j, X[:, j]) for j in range(D)]
    expected = score(model, X)
    assert all(part.shape == expected.shape for part in parts)
    offset = model.intercept_ if expected.ndim > 1 else model.intercept_[0]
    np.testing.assert_allclose(sum(parts) + offset, expected, rtol=1e-9, atol=1e-9)
    varied = X.copy()
    varied[:, 1] = 0.4                                  # a component depends on its own coordinate alone
    change = score(model, varied) - expected
    np.testing.assert_allclose(change, model.component(1, varied[:, 1]) - parts[1], rtol=1e-8, atol=1e-9)
    if hasattr(model, "dual_coef_"):                    # and is the sum over the terms in that coordinate
        K = kernel.coordinate(0, D)(X[:9, :1], model.support_vectors_[:, :1])
        by_terms = K @ model.dual_coef_.T
        np.testing.assert_allclose(parts[0][:9], by_terms if expected.ndim > 1 else by_terms[:, 0], **CLOSE)
