"""RunningScaler against sums over all rows so far, and `scale=` inside the algorithms."""
import pickle
import tracemalloc

import numpy as np
import pytest
from cases import each
from small_models import scores

import onlinekernels as ok


def oracle(X, memory):
    """Each row scaled by weighted mean and deviation of the rows up to it, in extended precision.

    Of a feature with two values, one of which came again, a change counts as sqrt(2).
    """
    X = X.astype(np.longdouble)
    out = np.zeros(X.shape)
    for t in range(len(X)):
        weights = np.longdouble(memory) ** np.arange(t, -1, -1)
        mean = weights @ X[: t + 1] / weights.sum()
        deviation = np.sqrt(weights @ (X[: t + 1] - mean) ** 2 / weights.sum())
        values = np.array([len(set(column)) for column in X[: t + 1].T])
        deviation[values == 1], two = 0, (values == 2) & (t >= 2)
        deviation[two] = np.ptp(X[: t + 1], axis=0)[two] / np.sqrt(np.longdouble(2))
        out[t] = np.where(deviation > 0, (X[t] - mean) / np.where(deviation > 0, deviation, 1), X[t] - mean)
    return out


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) * [1.0, 1e6, 1e-6, 3.0] + [0.0, 1e8, 5.0, -2.0]


@each("memory", [1.0, 0.999, 0.9, 0.3])
def test_rows_are_scaled_by_what_has_been_seen(memory):
    X = rows()
    np.testing.assert_allclose(ok.RunningScaler(memory).progressive(X), oracle(X, memory), rtol=1e-7, atol=1e-7)


def test_a_large_offset_costs_few_digits():
    X = rows() + 1e9
    scaled = ok.RunningScaler().progressive(X[:, :1])
    np.testing.assert_allclose(scaled, oracle(X[:, :1], 1.0), atol=1e-6)


def test_fit_forgets_and_transform_does_not_learn():
    X = rows()
    scaler = ok.RunningScaler().fit(X[:40]).partial_fit(X[40:])
    np.testing.assert_allclose(scaler.mean_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaler.var_, X.var(axis=0), rtol=1e-9)
    before = pickle.dumps(scaler)
    np.testing.assert_allclose(scaler.transform(X), (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-6, atol=1e-8)
    assert pickle.dumps(scaler) == before
    np.testing.assert_array_equal(scaler.fit(X[:9]).mean_, ok.RunningScaler().fit(X[:9]).mean_)


def test_constant_features_are_only_centred():
    X = np.column_stack([np.full(50, 0.1), np.full(50, 1e9 / 3), np.zeros(50), np.arange(50.0)])
    scaled = ok.RunningScaler().progressive(X)
    assert np.abs(scaled[:, :3]).max() <= 1e-6 and np.isfinite(scaled).all()
    late = np.array([[5.0]] * 30 + [[6.0]])         # constant, and then not
    assert np.isfinite(ok.RunningScaler().progressive(late)).all()


def few_values(n=120, seed=0):
    """Columns of few values: rare, constant for long, with a third value late, of another size, and a number."""
    rng = np.random.default_rng(seed)
    rare, late, third = np.zeros(n), np.full(n, 7.0), rng.integers(0, 2, n).astype(float)
    rare[[4, 50, 51]], late[70:], third[90] = 1.0, 5.0, 0.5
    return np.column_stack([rare, late, third, np.where(rng.random(n) < 0.3, 1e6, 1e6 + 3), np.zeros(n), rng.normal(size=n)])


@pytest.mark.parametrize("memory", [1.0, 0.99, 0.3])
def test_a_change_between_two_values_counts_the_same_however_rare_it_is(memory):
    X = few_values()
    whole = ok.RunningScaler(memory)
    scaled = whole.progressive(X)
    np.testing.assert_allclose(scaled, oracle(X, memory), rtol=1e-7, atol=1e-7)
    assert np.abs(scaled[:, :2]).max() <= 2**0.5
    step = whole.transform(X[[4]]) - whole.transform(X[[5]])
    assert step[0, 0] == pytest.approx(2**0.5) and whole.scale_[0] == pytest.approx(0.5**0.5)
    ordinary = [2, 5]  # with the statistics of all rows, also of those before a third value
    np.testing.assert_allclose(whole.scale_[ordinary], np.sqrt(whole.var_[ordinary]), rtol=1e-12)
    assert whole.scale_[4] == 1.0
    pieces = ok.RunningScaler(memory)
    parts = []
    for first, last in ((0, 1), (1, 3), (3, 72), (72, 91), (91, 120)):
        parts.append(pieces.progressive(X[first:last]))
        pieces = pickle.loads(pickle.dumps(pieces))
    np.testing.assert_array_equal(np.vstack(parts), scaled)
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix(X[:, [0, 2, 5]])
    whole = ok.RunningScaler(memory)
    found = whole.progressive(rows)
    np.testing.assert_allclose(found[3:, 0].toarray(), 2**0.5 * X[3:, [0]], rtol=1e-12)
    np.testing.assert_allclose(found[3:90, 1].toarray(), 2**0.5 * X[3:90, [2]], rtol=1e-12)
    weights = memory ** np.arange(119, -1, -1.0)
    deviations = np.sqrt(weights @ X[:, [2, 5]] ** 2 / weights.sum())
    np.testing.assert_allclose(found[119].toarray()[0, 1:], X[119, [2, 5]] / deviations, rtol=1e-9)
    np.testing.assert_allclose(whole.scale_[1:], deviations, rtol=1e-9)
    pieces = ok.RunningScaler(memory)
    parts = [pieces.progressive(rows[first:last]).toarray() for first, last in ((0, 1), (1, 3), (3, 72), (72, 91), (91, 120))]
    np.testing.assert_allclose(np.vstack(parts), found.toarray(), rtol=1e-12)
    np.testing.assert_allclose(pieces.transform(rows).toarray(), whole.transform(rows).toarray(), rtol=1e-12)


def test_values_too_close_to_tell_are_one():
    near = np.array([1e9, 1e9 + 1e-7, 1e9] * 5)[:, None]  # the same up to rounding
    tiny = np.array([0.0, 5e-324, 0.0, 5e-324])[:, None]
    for column in (near, tiny):
        scaler = ok.RunningScaler().fit(column)
        assert np.isfinite(scaler.transform([[1e100]])).all() and scaler.scale_[0] == 1.0


def test_rare_columns_of_a_one_hot_encoding_do_not_drown_numbers():
    rng = np.random.default_rng(0)
    Z, kinds = rng.normal(size=(2500, 4)), np.minimum(29, rng.zipf(1.5, size=(2500, 3)) - 1)
    y = Z[:, 0] + Z[:, 1] * Z[:, 2] + 0.5 * rng.normal(size=2500) > 0
    X = np.hstack([Z, (kinds[:, :, None] == np.arange(30)).reshape(2500, -1)])
    assert np.mean((ok.SILK(scale=True).progressive(X, y) > 0) != y) < 0.3  # it was 0.43


@each("memory", [0, 1.1, -0.5, np.nan, "1", True])
def test_a_bad_memory_is_refused(memory):
    with pytest.raises(ValueError, match="'memory'.*RunningScaler"):
        ok.RunningScaler(memory).fit(rows())


# ---- Inside the algorithms ------------------------------------------------------------------------

ALGORITHMS = [
    ok.NORMA("hinge", ok.Gaussian(), step=0.3),
    ok.Perceptron("linear"),
    ok.SILK("multiclass_hinge", ok.Gaussian(), budget=20, offset=True),
    ok.SVMD("logistic", ok.Polynomial(2), step=0.01),
    ok.PassiveAggressive("insensitive", ok.Gaussian()),
    ok.Projection("squared_insensitive", ok.AdditiveSpline(bounds=(-12, 12)), radius=2.0),
    ok.ALMA(),
    ok.ROMMA("linear", aggressive=True),
    ok.VotedPerceptron("linear"),
    ok.LASVM("linear"),
    ok.Ballseptron("linear"),
    ok.KRLS("squared", ok.Gaussian(), budget=20),
    ok.KRLS("multiclass_squared", ok.Linear()),
]


def targets(model, X):
    rng = np.random.default_rng(3)
    task = model._current_loss().task
    return rng.normal(size=len(X)) if task == "regression" else rng.integers(0, 2, len(X))


@pytest.mark.filterwarnings("ignore:ROMMA has started anew:onlinekernels.LearningWarning")  # random labels
@each("model", ALGORITHMS, ids=lambda model: type(model).__name__)
def test_scale_is_a_scaler_in_front(model):
    X = rows(150)
    y = targets(model, X)
    inside = type(model)(**{**model.get_params(deep=False), "scale": ok.RunningScaler(0.99)})
    scaler = ok.RunningScaler(0.99)
    expected = type(model)(**model.get_params(deep=False)).partial_fit(scaler.progressive(X), y)
    inside.partial_fit(X[:70], y[:70])
    for x, label in zip(X[70:100], y[70:100].tolist()):
        inside.learn_one(x, label)
    inside.partial_fit(X[100:], y[100:])
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(scores(inside, X), scores(expected, scaler.transform(X)), **close)
    assert inside.predict_one(X[3]) == inside.predict(X[3:4])[0]


def test_a_model_goes_on_from_another_with_its_scaler():
    X = rows(120)
    y = np.where(X[:, 0] > 0, 1, -1)
    first = ok.NORMA(scale=True).partial_fit(X[:60], y[:60])
    second = ok.NORMA(scale=True).partial_fit(X[60:], y[60:], initial=first)
    np.testing.assert_allclose(second.decision_function(X), first.partial_fit(X[60:], y[60:]).decision_function(X),
                               atol=1e-12)
    with pytest.raises(ValueError, match="both scale"):
        ok.NORMA().partial_fit(X, y, initial=first)


@each("value", [1, "yes", None, ok.Gaussian()])
def test_scale_must_be_a_flag_or_a_scaler(value):
    with pytest.raises(ValueError, match="'scale'.*RunningScaler"):
        ok.NORMA(scale=value).fit(rows(), np.arange(80) % 2)


def test_kernels_on_objects_cannot_be_scaled():
    with pytest.raises(ValueError, match="scale=True needs a kernel on rows of numbers"):
        ok.NORMA(kernel=lambda a, b: float(a == b), scale=True).fit(["a", "b"], [0, 1])


def test_the_memory_is_the_models_own_after_initial():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    start = ok.NORMA("squared", scale=True).partial_fit(X, y)
    model = ok.NORMA("squared", scale=ok.RunningScaler(0.5)).partial_fit(X, y, initial=start)
    assert model._state.scaler.memory == 0.5 and start._state.scaler.memory == 1.0
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))


def test_initial_must_have_the_same_kind_of_rows():
    sparse = pytest.importorskip("scipy.sparse")
    rows, y = sparse.csr_matrix(np.eye(3)), [1.0, 2.0, 3.0]
    dense = ok.NORMA("squared", "linear", offset=False, scale=True).partial_fit(np.eye(3), y)
    with pytest.raises(ValueError, match="another kind of rows, sparse or dense"):
        ok.NORMA("squared", "linear", scale=True).partial_fit(rows, y, initial=dense)


def test_scaled_sparse_rows_share_nothing_with_the_users():
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix((np.array([1.0, 0.0, 2.0]), [0, 1, 2], [0, 2, 3]), shape=(2, 3))
    before = rows.toarray()
    for scaled in (ok.RunningScaler().fit_transform(rows), ok.RunningScaler().progressive(rows)):
        scaled.eliminate_zeros()
        np.testing.assert_array_equal(rows.toarray(), before)


def test_large_sparse_values_with_a_short_memory():
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix(np.full((800, 1), 1e110))
    whole, parts = ok.RunningScaler(0.5).partial_fit(rows), ok.RunningScaler(0.5)
    for i in range(800):
        parts.partial_fit(rows[i])
    np.testing.assert_allclose(whole.var_, parts.var_, rtol=1e-12)


def test_set_output():
    pandas = pytest.importorskip("pandas")
    X = rows(20)
    frame = pandas.DataFrame(X, index=range(5, 25), columns=list("abcdef")[: X.shape[1]])
    scaler = ok.RunningScaler().set_output(transform="pandas")
    expected = ok.RunningScaler().fit_transform(X)
    for out in (scaler.fit_transform(frame), pickle.loads(pickle.dumps(scaler)).transform(frame)):
        np.testing.assert_array_equal(out, expected)
        assert list(out.columns) == list(frame.columns) and list(out.index) == list(frame.index)
    assert list(scaler.transform(X).columns) == list(frame.columns)
    np.testing.assert_array_equal(ok.RunningScaler().set_output(transform="pandas").progressive(frame),
                                  ok.RunningScaler().progressive(X))
    assert type(scaler.set_output(transform=None).transform(X)) is pandas.DataFrame
    assert type(scaler.set_output(transform="default").transform(frame)) is np.ndarray
    with pytest.raises(ValueError, match="'transform' parameter of RunningScaler must be 'default', 'pandas', 'polars' or None"):
        scaler.set_output(transform="frames")
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(X)
    with pytest.raises(ValueError, match="Sparse rows cannot become a data frame"):
        ok.RunningScaler().set_output(transform="pandas").fit_transform(sparse)
    sklearn = pytest.importorskip("sklearn")
    pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline(ok.RunningScaler(), ok.RunningScaler())
    assert type(sklearn.clone(pipeline.set_output(transform="pandas")).fit_transform(frame)) is pandas.DataFrame
    model = ok.SILK(scale=True).fit(frame, np.arange(20) % 2)
    with sklearn.config_context(transform_output="pandas"):
        assert type(ok.RunningScaler().fit_transform(frame)) is pandas.DataFrame
        model.predict(frame)


def test_what_differs_by_rounding_is_only_centred():
    X = np.where(np.arange(50) % 2, 0.3, 0.1 + 0.2)[:, None]
    assert np.ptp(X) > 0
    np.testing.assert_allclose(ok.RunningScaler().fit(X).transform([[1.3]]), [[1.0]], rtol=1e-12)


def test_a_sparse_feature_that_was_never_seen_stays_as_it_is():
    sparse = pytest.importorskip("scipy.sparse")
    scaler = ok.RunningScaler().fit(sparse.csr_matrix([[2.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_array_equal(scaler.transform(sparse.csr_matrix([[4.0, 5.0]])).toarray(), [[2.0, 5.0]])


def test_a_masked_row_is_refused():
    scaler = ok.RunningScaler().fit([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(ValueError, match="masked"):
        scaler.learn_one(np.ma.masked_array([1.0, 2.0], mask=[False, True]))
    assert scaler.count_ == 2


def test_a_row_too_large_is_named_wherever_it_is_and_changes_nothing():
    tame = np.random.default_rng(0).normal(size=(40, 3))
    scaler = ok.RunningScaler().partial_fit(tame)
    before = pickle.dumps(scaler)
    for place in (0, 1, 17, 38, 39):
        wild = tame.copy()
        wild[place, 1] = 1e200
        with pytest.raises(ValueError, match=f"Row {place} of X is too large to scale"):
            scaler.partial_fit(wild)
        assert pickle.dumps(scaler) == before


@each("kind", ["sparse", "dense"])
@each("kernel", ["linear", ok.Gaussian()], ids=str)
def test_a_model_keeps_none_of_the_rows_that_it_has_scaled(kind, kernel):
    X, y = np.random.default_rng(0).normal(size=(4000, 200)), np.zeros(4000)
    if kind == "sparse":
        X = pytest.importorskip("scipy.sparse").csr_matrix(X)
    model = ok.NORMA("squared", kernel, step=1e-4, scale=True, budget=None if kernel == "linear" else 5)
    model.partial_fit(X[:10], y[:10])
    tracemalloc.start()
    model.partial_fit(X, y)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 0.4 * y.size * 200 * 8, f"{kept / 1e6:.1f} MB"
