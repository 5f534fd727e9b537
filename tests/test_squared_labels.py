"""MulticlassSquared with labels that join: as if they had been there from the first example; and its probabilities."""
import pickle

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from small_models import dot, same_state

pytestmark = pytest.mark.filterwarnings("ignore:Learning (diverges|has stalled):onlinekernels.LearningWarning")
N, LETTERS = 50, "abcdef"
KERNELS = {
    "terms": ok.Gaussian(1.2),
    "weights": ok.Linear(),
    "trees": ok.AdditiveExponential(0.7),
    "objects": dot,
}
# With classes= or without, steps of these do not differ: they follow no other label.
ALGORITHMS = {
    "norma": lambda kernel, **more: ok.NORMA("multiclass_squared", kernel, step=0.1, regularization=0.05, **more),
    "ilk": lambda kernel, **more: ok.ILK("multiclass_squared", kernel, step=0.7, regularization=0.05, **more),
    "silk": lambda kernel, **more: ok.SILK("multiclass_squared", kernel, **{"budget": None, **more}),
}
SVMD = {"svmd": lambda kernel, **more: ok.SVMD("multiclass_squared", kernel, **{"budget": None, **more})}


def stream(seed, n=N, late=True):
    """Labels that come one after another."""
    rng = np.random.default_rng(seed)
    latest = np.arange(n) // 8 + 1 if late else np.full(n, 6)
    places = [int(rng.integers(min(6, limit))) for limit in latest]
    return rng.normal(size=(n, 3)), np.array([LETTERS[place] for place in places]), rng


def in_chunks(model, X, y, rng):
    """Progressive scores, a column for each label in the order of appearance, in chunks of random sizes."""
    order = list(dict.fromkeys(y.tolist()))
    scores, start = np.zeros((len(y), len(order))), 0
    while start < len(y):
        stop = start + int(rng.choice([1, 2, 7, 20]))
        part = model.progressive(X[start:stop], y[start:stop])
        scores[start:stop, : part.shape[1]] = part
        start = stop
    return scores


def columns(model, X, order):
    """Scores of some labels."""
    classes = model.classes_.tolist()
    return model.decision_function(X)[:, [classes.index(label) for label in order]]


@each("budget", [None, 9, ok.Window(15), ok.Smallest(8), ok.Sublinear(0.6, 4)], ids=repr)
@each("algorithm", ALGORITHMS)
@each("kernel", KERNELS)
def test_a_label_that_joins_has_been_there_from_the_first_example(kernel, algorithm, budget):
    """`Smallest` sees the output that is ahead, as one more label that never comes."""
    for seed in range(4):
        X, y, rng = stream(seed)
        make = lambda: ALGORITHMS[algorithm](KERNELS[kernel], budget=budget, offset=seed % 2 == 0)  # noqa: E731
        growing, known = make(), make()
        scores = in_chunks(growing, X, y, rng)
        everything = known.progressive(X, y, classes=[*LETTERS, "never"])
        order = growing.classes_.tolist()
        assert order == list(dict.fromkeys(y.tolist()))
        everything = everything[:, [known.classes_.tolist().index(label) for label in order]]
        joined = np.arange(N)[:, None] >= [y.tolist().index(label) for label in order]
        np.testing.assert_allclose(scores, np.where(joined, everything, 0.0), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(columns(growing, X, order), columns(known, X, order), rtol=1e-9, atol=1e-11)
        growing._state.engine._check()


class Own(ok.Loss):
    """The same in Python: labels do not learn ahead, and one alone is an output that moves."""

    task = "multiclass"

    def value(self, scores, y):
        return 0.5 * np.square(self.derivative(scores, y)).sum()

    def derivative(self, scores, y):
        return scores - np.where(np.arange(len(scores)) == y, 1.0, -1.0)


@each("budget", [ok.Merging(4), ok.Projecting(4), ok.Projecting(4, 0.05), ok.Redundant(4), ok.Redundant(4, tighter=True)], ids=repr)
@each("algorithm", ["norma", "svmd", "own"])
def test_budgets_weigh_the_same_outputs_in_chunks(algorithm, budget):
    """A chunk knows how many labels will join: then there are as many outputs that are ahead, all the same, or are 0 yet."""
    loss = Own() if algorithm == "own" else "multiclass_squared"
    more = {} if algorithm == "svmd" else {"step": 0.9, "regularization": 0.05}
    make = ok.SVMD if algorithm == "svmd" else ok.NORMA
    for seed in range(30):
        X, y, rng = stream(seed, 24)
        chunks, ones = (make(loss, 2.0 * ok.Gaussian(1.5) + ok.Constant(0.4), budget=budget, **more) for _ in range(2))
        in_chunks(chunks, X, y, rng)
        for i in range(len(y)):
            ones.partial_fit(X[i:i + 1], y[i:i + 1])
        np.testing.assert_allclose(chunks.decision_function(X), ones.decision_function(X), rtol=1e-7, atol=1e-8)
        chunks._state.engine._check()


@each("kernel", ["terms", "weights", "trees"])
def test_averages_of_labels_that_join(kernel):
    X, y, rng = stream(1)
    growing, known = (ALGORITHMS["norma"](KERNELS[kernel], average=True, offset=True) for _ in range(2))
    in_chunks(growing, X, y, rng)
    known.partial_fit(X, y, classes=list(LETTERS))
    order = growing.classes_.tolist()
    np.testing.assert_allclose(columns(growing, X, order), columns(known, X, order), rtol=1e-9, atol=1e-11)


class Moody:
    """A kernel that refuses some points."""

    def __call__(self, x, z):
        if x[0] > 90:
            raise RuntimeError("not this one")
        return dot(x, z)


@each("algorithm", [*ALGORITHMS, *SVMD])
def test_a_label_whose_example_fails_has_not_joined(algorithm):
    X, y, _ = stream(3)
    broken, whole = ({**ALGORITHMS, **SVMD}[algorithm](Moody(), offset=True) for _ in range(2))
    bad = X[20:24].copy()
    bad[2, 0] = 99.0
    for model in (broken, whole):
        model.partial_fit(X[:20], y[:20])
    with pytest.raises(RuntimeError, match="not this one"):
        broken.partial_fit(bad, ["g", "g", "h", "i"])
    assert broken.classes_.tolist() == [*dict.fromkeys(y[:20].tolist()), "g"]
    whole.partial_fit(bad[:2], ["g", "g"])
    same_state(broken, whole)
    copied = pickle.loads(pickle.dumps(broken))
    for model in (broken, whole, copied):
        model.partial_fit(X[24:], y[24:])
    for model in (whole, copied):
        np.testing.assert_array_equal(broken.decision_function(X), model.decision_function(X))


@each("kernel", ["terms", "weights", "trees", "objects"])
@each("offset", [False, True])
def test_initial_hands_on_what_is_ahead(kernel, offset):
    """Start from a model and go on with its step: the same as to go on with the model."""
    X, y, _ = stream(4)
    start = ALGORITHMS["ilk"](KERNELS[kernel], offset=offset).partial_fit(X[:20], y[:20])
    model = ALGORITHMS["ilk"](KERNELS[kernel], offset=offset)
    model.partial_fit(X[20:], y[20:], initial=start)
    start.partial_fit(X[20:], y[20:])
    assert model.classes_.tolist() == start.classes_.tolist()
    np.testing.assert_allclose(model.decision_function(X), start.decision_function(X), rtol=1e-9, atol=1e-11)
    fixed = ALGORITHMS["ilk"](KERNELS[kernel], offset=offset)
    fixed.partial_fit(X[:1], y[:1], classes=[*LETTERS, "z"], initial=start)
    assert fixed.decision_function(X).shape == (N, 7)


def test_initial_of_another_loss_knows_nothing_of_labels_to_join():
    X, y, _ = stream(5)
    start = ok.NORMA("multiclass_logistic", step=0.1, regularization=0.0).partial_fit(X[:20], y[:20])
    model = ok.NORMA("multiclass_squared", step=1e-12, regularization=0.0).partial_fit(X[20:], y[20:], initial=start)
    fresh = [model.classes_.tolist().index(label) for label in model.classes_ if label not in start.classes_]
    assert fresh and np.abs(model.decision_function(X)[:, fresh]).max() < 1e-9
    back = ok.NORMA("multiclass_logistic").partial_fit(X[:1], ["new"], initial=model)
    assert back.decision_function(X).shape == (N, len(model.classes_) + 1)


@each("kernel", ["terms", "weights", "objects"])
def test_combine_hands_on_what_is_ahead(kernel):
    """Every label to come starts from the mean of what the parts know of it."""
    X, y, _ = stream(6)
    y = np.array(list("abc"))[np.arange(N) % 3]
    parts = [ALGORITHMS["norma"](KERNELS[kernel], offset=True).partial_fit(X[i::2], np.sort(y)[i::2]) for i in range(2)]
    assert parts[0].classes_.tolist() == parts[1].classes_.tolist()
    whole = ok.combine(parts, weights=[1.0, 3.0])
    whole._state.engine._check()
    for model in (*parts, whole):
        model.progressive([[9.0, 9.0, 9.0]], ["new"], sample_weight=[0.0])
    mean = 0.25 * parts[0].decision_function(X) + 0.75 * parts[1].decision_function(X)
    np.testing.assert_allclose(whole.decision_function(X), mean, rtol=1e-9, atol=1e-11)
    assert np.abs(whole.decision_function(X)[:, 3]).max() > 0.01


@each("kernel", ["terms", "weights", "trees"])
@each("budget", [None, 7, ok.Smallest(7)], ids=repr)
def test_exact_norms_of_labels_that_join(kernel, budget):
    """<f, v> and |f|^2 that SVMD keeps are those of the labels that have joined."""
    for seed in range(4):
        X, y, rng = stream(seed)
        model = ok.SVMD("multiclass_squared", KERNELS[kernel], budget=budget, exact_norms=True, regularization=0.1)
        in_chunks(model, X, y, rng)
        if kernel != "weights" or budget is not None:
            np.testing.assert_allclose(model._state.hypothesis.norms()[1], model.norm_**2, rtol=1e-8)
        late = ok.SVMD("multiclass_squared", KERNELS[kernel], budget=budget, exact_norms=True, regularization=0.1)
        late.partial_fit(X[:3], y[:3], initial=model)
        late.partial_fit(X[3:5], ["new", "newer"])
        np.testing.assert_allclose(late._state.hypothesis.norms()[1], late.norm_**2, rtol=1e-8)


def test_what_is_ahead_shows_nowhere():
    X, y, _ = stream(7)
    model = ALGORITHMS["silk"](KERNELS["terms"], budget=20, offset=True).partial_fit(X, y)
    k = len(set(y.tolist()))
    assert model.decision_function(X).shape == (N, k) and model.dual_coef_.shape[0] == k
    assert model.intercept_.shape == model.classes_.shape == (k,) and model.predict_proba(X).shape == (N, k)
    f = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, rtol=1e-9, atol=1e-11)
    gram = model.kernel_(model.support_vectors_)
    np.testing.assert_allclose(model.norm_**2, np.sum((model.dual_coef_ @ gram) * model.dual_coef_), rtol=1e-9)
    tree = ALGORITHMS["norma"](KERNELS["trees"]).partial_fit(X, y)
    assert tree.component(0, [0.0, 1.0]).shape == (2, k)
    linear = ALGORITHMS["norma"](KERNELS["weights"]).partial_fit(X, y)
    assert linear.coef_.shape == (k, 3)


def test_probabilities():
    loss = ok.MulticlassSquared()
    np.testing.assert_allclose(loss.probabilities([[0.0, -0.5, -2.0], [1.5, 3.0, -1.0]]),
                               [[0.5 / 0.750001, 0.25 / 0.750001, 1e-6 / 0.750001], [1 / 2.000001, 1 / 2.000001, 1e-6 / 2.000001]])
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 1))
    y = np.where(rng.random(4000) < 0.5 * (1 + X[:, 0]), "up", "down")
    model = ok.ILK(loss, ok.Gaussian(0.7), step=ok.InverseSqrt(0.5), regularization=0.0, budget=None).fit(X, y)
    grid = np.linspace(-0.9, 0.9, 19)[:, None]
    p = model.predict_proba(grid)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(grid)).all()
    assert np.abs(p[:, 1] - 0.5 * (1 + grid[:, 0])).mean() < 0.08
    for made in (ok.Logistic(), ok.MulticlassLogistic()):
        scores = rng.normal(size=(7, 3)) if made.task == "multiclass" else rng.normal(size=7)
        assert made.probabilities(scores).shape == ((7, 3) if made.task == "multiclass" else (7, 2))
        np.testing.assert_allclose(made.probabilities(scores).sum(axis=1), 1.0)


def test_two_classes_have_two_columns_as_long_as_others_may_join():
    model = ok.NORMA("multiclass_squared").partial_fit([[0.0], [1.0]], [0, 1])
    assert model.decision_function([[0.0]]).shape == (1, 2) and model.progressive([[0.0]], [0]).shape == (1, 2)
    assert ok.NORMA("multiclass_squared").progressive([[0.0], [1.0]], [0, 1], classes=[0, 1]).shape == (2, 2)


def test_a_taxonomy_shares_what_is_learned():
    tree = ok.Taxonomy({"a": "v", "b": "v", "c": "root", "v": "root"})
    model = ok.NORMA("multiclass_squared", "linear", step=0.1, regularization=0.0, labels=tree, offset=False)
    model.partial_fit([[1.0]], ["a"])
    targets = np.where(model.classes_ == "a", 1.0, -1.0)
    kappa = np.array([[len(tree_path(a) & tree_path(b)) for b in model.classes_] for a in model.classes_])
    np.testing.assert_allclose(model.decision_function([[1.0]])[0], 0.1 * kappa @ targets, atol=1e-12)


def tree_path(label):
    return {"a": {"a", "v", "root"}, "b": {"b", "v", "root"}, "c": {"c", "root"}, "v": {"v", "root"}, "root": {"root"}}[label]


class TestQuantile:
    @each("kernel", ["terms", "weights", "trees"])
    def test_the_median_is_half_of_the_absolute_loss(self, kernel):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
        for half, whole in (
            (ok.NORMA("quantile", KERNELS[kernel], step=0.4, regularization=0.05, offset=True),
             ok.NORMA("absolute", KERNELS[kernel], step=0.2, regularization=0.1, offset=True)),
            (ok.ILK("quantile", KERNELS[kernel], step=0.5, regularization=0.1, penalty=2.0, offset=True),
             ok.ILK("absolute", KERNELS[kernel], step=0.5, regularization=0.1, penalty=1.0, offset=True)),
        ):
            np.testing.assert_allclose(half.progressive(X, y), whole.progressive(X, y), rtol=1e-9, atol=1e-12)
        z = rng.normal(size=50)
        np.testing.assert_allclose(2 * ok.Quantile().value(z, 0.3), ok.Absolute().value(z, 0.3))

    @each("level", [0.1, 0.5, 0.9])
    @each("algorithm", [ok.NORMA, ok.ILK, ok.SVMD])
    def test_that_fraction_lies_below(self, level, algorithm):
        rng = np.random.default_rng(1)
        X = rng.uniform(-1, 1, size=(8000, 1))
        y = np.sin(3 * X[:, 0]) + rng.normal(size=8000) * (0.2 + 0.3 * (X[:, 0] > 0))
        model = algorithm(ok.Quantile(level), ok.Gaussian(0.3), step=0.05, regularization=1e-4, budget=None)
        scores = model.progressive(X, y)
        for side in (X[4000:, 0] > 0, X[4000:, 0] <= 0):
            assert abs(np.mean(y[4000:][side] < scores[4000:][side]) - level) < 0.05

    def test_several_targets_and_scaled_ones(self):
        rng = np.random.default_rng(2)
        X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
        both = ok.SILK(ok.Quantile(0.8), ok.Gaussian(1.0), budget=None).progressive(X, np.column_stack([y, -y]))
        one = ok.SILK(ok.Quantile(0.8), ok.Gaussian(1.0), budget=None).progressive(X, y)
        np.testing.assert_allclose(both[:, 0], one, rtol=1e-9, atol=1e-12)
        small, large = (ok.SILK(ok.Quantile(0.8), scale_target=True).progressive(X, c * y + d) for c, d in ((1, 0), (100, 7)))
        np.testing.assert_allclose(large[1:], (100 * small + 7)[1:], rtol=1e-7, atol=1e-7)  # the first knows no mean

    @each("level", [0.0, 1.0, -0.1, float("nan"), "x", None])
    def test_a_level_outside_is_refused(self, level):
        with pytest.raises((ValueError, TypeError), match="level"):
            ok.NORMA(ok.Quantile(level)).fit([[0.0]], [1.0])
