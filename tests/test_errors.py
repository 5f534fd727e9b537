"""Errors in the middle of a call stop after the last complete row; overflow is an error that says where."""
import pickle

import numpy as np
import pytest
from cases import each
from small_models import overlap, shown

import onlinekernels as ok
from onlinekernels.losses import as_loss

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 2))
TARGETS = X @ [1.0, -2.0]
LEARNING = ["fit", "partial_fit", "progressive"]


# ---- Errors in the middle ---------------------------------------------------------------------------


class Own(ok.Loss):
    """Squared loss in Python that raises at its call number `at`."""

    calls, at, error = 0, None, RuntimeError("out of order")

    def __init__(self):
        pass

    @classmethod
    def arm(cls, at, error):
        cls.calls, cls.at, cls.error = 0, at, error

    def derivative(self, score, y):
        Own.calls += 1
        if Own.calls == Own.at:
            raise Own.error
        return score - y


def notes(error):
    """What an exception says, notes included."""
    return " ".join([str(error), *getattr(error, "__notes__", [])])


def same_function(a, b, points):
    assert (a.t_, a.n_terms_) == (b.t_, b.n_terms_)
    assert np.allclose(a.predict(points), b.predict(points), rtol=1e-12, atol=1e-13)
    assert np.allclose(a.intercept_, b.intercept_, rtol=1e-12)
    a._state.engine._check()


MANY = RNG.normal(size=(70, 2))
MANY_TARGETS = MANY[:, 0] + 0.1
WORDS = ["".join(RNG.choice(list("abcdefgh"), size=5)) for _ in range(70)]


def shown_error(value):
    return str(value) if isinstance(value, int) else type(value).__name__


ERRORS = [RuntimeError("out of order"), ValueError("bad"), KeyboardInterrupt(), SystemExit(3), ZeroDivisionError()]


@each("row, error", list(zip([0, 1, 33, 48, 69], ERRORS)), ids=shown_error)
@each("params", [
    {"kernel": "gaussian"}, {"kernel": "linear", "average": True}, {"kernel": overlap}, {"kernel": "gaussian", "scale": True},
    {"kernel": "laplacian", "budget": 9}, {"kernel": "gaussian", "budget": ok.Window(20), "offset": True},
    {"kernel": overlap, "budget": ok.Smallest(5)}, {"kernel": "gaussian", "step": 1.0, "regularization": 1.0},
], ids=shown)
def test_an_error_in_a_users_loss_stops_after_the_last_complete_row(params, row, error):
    points = WORDS if params["kernel"] is overlap else MANY
    for method in LEARNING:
        model = ok.NORMA(Own(), **params)
        Own.arm(row + 1, type(error)(*error.args))
        with pytest.raises(type(error)) as info:
            getattr(model, method)(points, MANY_TARGETS)
        assert info.value.rows_learned == row
        assert f"{row} rows" in notes(info.value)
        assert getattr(model, "t_", 0) == row
        Own.arm(None, None)
        if row:
            same_function(model, ok.NORMA(Own(), **params).partial_fit(points[:row], MANY_TARGETS[:row]), points)
        model.partial_fit(points[row:], MANY_TARGETS[row:])  # and it goes on
        same_function(model, ok.NORMA(Own(), **params).partial_fit(points, MANY_TARGETS), points)


def test_the_rows_of_earlier_calls_do_not_count_as_rows_of_this_call():
    model = ok.NORMA(Own()).partial_fit(X, TARGETS)
    Own.arm(4, RuntimeError("out of order"))
    with pytest.raises(RuntimeError) as info:
        model.partial_fit(X, TARGETS)
    assert (info.value.rows_learned, model.t_) == (3, 15)


def test_an_error_in_a_later_epoch_counts_the_rows_of_all_epochs():
    Own.arm(12 + 4, RuntimeError("out of order"))
    model = ok.NORMA(Own(), epochs=2)
    with pytest.raises(RuntimeError) as info:
        model.fit(X, TARGETS)
    assert model.t_ == 15
    assert info.value.rows_learned == 15


@each("method", LEARNING)
@each("start", [None, ok.NORMA("squared").partial_fit(X, TARGETS)], ids=["anew", "initial"])
def test_a_first_call_that_learns_nothing_leaves_nothing(method, start):
    model = ok.NORMA(Own(), average=True, scale=start is None)
    Own.arm(1, RuntimeError("out of order"))
    with pytest.raises(RuntimeError):
        getattr(model, method)(X, TARGETS, initial=start)
    Own.arm(None, None)
    assert not hasattr(model, "t_") and not hasattr(model, "n_features_in_")
    getattr(model, method)(X[:, :1], TARGETS)  # another number of features
    assert model.n_features_in_ == 1


def test_a_call_that_learns_nothing_changes_nothing():
    model = ok.NORMA("multiclass_hinge", "polynomial").fit(X, TARGETS > 0)
    before = pickle.loads(pickle.dumps(model))
    for learn in (lambda: model.partial_fit([[1e300, 0.0]], ["new"]), lambda: model.learn_one([1e300, 0.0], "new"),
                  lambda: model.fit([[1e300, 0.0, 0.0]], ["new"])):
        with pytest.raises(FloatingPointError):
            learn()
        for left in (model, pickle.loads(pickle.dumps(model))):
            assert left.classes_.tolist() == [False, True] and left.t_ == before.t_
            np.testing.assert_array_equal(left.decision_function(X), before.decision_function(X))
            np.testing.assert_array_equal(left.dual_coef_, before.dual_coef_)


@each("value, error", [("much", TypeError), (None, TypeError), ([1.0, 2.0], TypeError), (1j, TypeError),
                       (NAN, FloatingPointError), (INF, FloatingPointError)])
def test_a_users_loss_must_give_a_finite_number(value, error):
    class Wrong(ok.Loss):
        def __init__(self):
            pass

        def derivative(self, score, y):
            return value if y == 99 else score - y

    model = ok.NORMA(Wrong()).partial_fit(X, TARGETS)
    with pytest.raises(error) as info:
        model.partial_fit(X[:3], [1.0, 99, 1.0])
    assert (info.value.rows_learned, model.t_) == (1, 13)


@each("params", [
    {"step": 0.999, "regularization": 1.0, "budget": ok.Window(150)},
    {"step": 1.0, "regularization": 1.0, "budget": 7},
    {"step": 0.5, "regularization": 0.5},
], ids=shown)
def test_looking_at_a_model_from_inside_a_users_loss_does_not_change_what_it_learns(params):
    class Curious(ok.Loss):
        look = False

        def __init__(self):
            pass

        def derivative(self, score, y):
            if self.look:
                try:
                    pickle.dumps(model._state.hypothesis.state())
                    model.dual_coef_, model.support_vectors_, model.norm_
                except RuntimeError:  # refusing to look is fine
                    pass
            return score - y

    points, targets = np.repeat(MANY, 3, axis=0), np.repeat(MANY_TARGETS, 3)
    results = []
    for Curious.look in (False, True):
        model = ok.NORMA(Curious(), **params)
        results.append(model.progressive(points, targets))
    assert np.allclose(*results, rtol=1e-12, atol=1e-14)


# ---- Overflow ---------------------------------------------------------------------------------------


@each("chunk", [1, 500])
@each("params", [
    {"kernel": "gaussian"}, {"kernel": "laplacian", "budget": 20}, {"kernel": "gaussian", "budget": ok.Smallest(20)},
    {"kernel": "gaussian", "budget": ok.Window(30)}, {"kernel": "gaussian", "average": True}, {"kernel": "linear"},
], ids=shown)
@pytest.mark.filterwarnings("ignore:Learning diverges:onlinekernels.LearningWarning")
def test_a_diverging_learner_says_at_which_row_and_still_predicts(params, chunk):
    points = np.random.default_rng(0).normal(size=(2000, 2))
    model = ok.NORMA("squared", step=50.0, regularization=1e-3, **params)
    with pytest.raises(FloatingPointError) as info:
        for start in range(0, len(points), chunk):
            model.partial_fit(points[start:start + chunk], np.ones(chunk))
    row = info.value.rows_learned
    assert f"Row {row} of X" in str(info.value) and "step" in str(info.value)
    assert model.t_ % chunk == row
    near = points[:50] if params["kernel"] != "linear" else 1e-3 * points[:50]
    assert np.isfinite(model.predict(near)).all()
    assert np.isfinite(model.dual_coef_ if model.n_terms_ else model.coef_).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(near) == model.predict(near)).all()
    before = pickle.dumps(model)
    with pytest.raises(FloatingPointError):
        model.partial_fit(points[row:row + 1] if chunk == 500 else points[model.t_:model.t_ + 1], [1.0])
    assert pickle.dumps(model) == before


# the model cannot be unpickled, or predicts nothing.
@each("chunk", [1, 3])
@each("params, value", [
    ({"kernel": "linear", "budget": 5}, 1e200),
    ({"kernel": "gaussian"}, 1e200),
    ({"kernel": "polynomial"}, 1e120),
    ({"kernel": ok.Normalized(ok.Polynomial(2))}, 1e120),
    ({"kernel": ok.Gaussian() + ok.Linear(), "budget": ok.Smallest(3)}, -1e250),
    ({"kernel": "linear", "step": 10.0, "regularization": 0.0}, 1.7e308),
    ({"kernel": "linear", "average": True}, 1.7e308),
], ids=shown)
def test_an_enormous_point_does_not_spoil_the_model(params, value, chunk):
    points = np.array([[0.5, 0.0], [value, 0.0], [0.0, 1.0]])
    model = ok.NORMA("hinge", **params)
    for start in range(0, 3, chunk):
        try:  # the first example counts nothing, so that the second meets an empty model
            model.partial_fit(points[start:start + chunk], [1, -1, 1][start:start + chunk],
                              sample_weight=[0.0, 1.0, 1.0][start:start + chunk])
        except FloatingPointError as error:
            assert "X" in str(error)
    assert np.isfinite(model.decision_function([[0.5, 0.5]])).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function([[0.5, 0.5]]) == model.decision_function([[0.5, 0.5]])).all()


@each("kernel", [ok.Gaussian(), ok.Gaussian(0.01), ok.Laplacian()], ids=repr)
def test_a_point_far_from_all_terms_is_predicted_as_zero(kernel):
    model = ok.NORMA("squared", kernel).partial_fit(X, TARGETS)
    assert model.predict([[1e200, 0.0], [-1e300, 1e300]]).tolist() == [0.0, 0.0]
    assert model.predict_one([1e200, 0.0]) == 0.0


@each("width", [1e-160, 1e-300, 5e-324])
def test_a_tiny_width_still_has_k_of_x_and_x_equal_one(width):
    model = ok.NORMA("squared", ok.Gaussian(width), step=1.0, regularization=0.0)
    assert model.progressive([[1.0], [2.0], [1.0]], [1.0, 1.0, 1.0]).tolist() == [0.0, 0.0, 1.0]


@each("value", [5e-324, 1e-310, -2e-308])
@each("kernel", ["gaussian", "linear", "polynomial", "laplacian", ok.Normalized("linear")], ids=repr)
def test_denormal_points_are_learned(kernel, value):
    model = ok.NORMA("squared", kernel, budget=3)
    model.partial_fit(np.full((5, 2), value), np.ones(5))
    assert np.isfinite(model.predict([[value, 0.0], [1.0, 1.0]])).all()
    assert model.t_ == 5


def test_enormous_targets_and_weights_say_the_row():
    model = ok.NORMA("squared", step=10.0)
    with pytest.raises(FloatingPointError, match="Row 1 of X") as info:
        model.partial_fit(X[:3], [1.0, 1e308, 1.0])
    assert info.value.rows_learned == 1
    with pytest.raises(FloatingPointError, match="Row 0 of X"):
        model.partial_fit(X[:3], [1.0, 1.0, 1.0], sample_weight=[1.7e308, 1.0, 1.0])
    assert model.t_ == 1
    assert np.isfinite(model.predict(X)).all()


ADAPTS = ok.MetaDescent(0.1, 0.1)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", ["squared", "nuinsensitive", "hinge", "nuhinge", "logistic", "multiclass_hinge",
                                  "multiclass_logistic", "nu_multiclass_hinge", "two targets"])
@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_whatever_weights_and_targets_the_model_stays_finite(loss, offset):
    """A row is learned, and all that is learned is finite, or it is refused and nothing has changed."""
    rng, sizes = np.random.default_rng(0), [1e50, 1e150, 1e200, 1e300, 1e308]
    several, loss = loss == "two targets", "squared" if loss == "two targets" else loss
    task = as_loss(loss, "test").task
    labels = {"binary": [-1, 1], "multiclass": [0, 1, 2]}.get(task)
    learners = [ok.NORMA(loss, "linear", step=ADAPTS, offset=offset)]
    learners += [ok.ILK(loss, "gaussian", step=step, offset=offset) for step in (ADAPTS, 1.0)]
    learners += [ok.NORMA(loss, "linear", step=ok.MetaDescent(0.1, 0.1, per_feature=True), offset=offset),
                 ok.NORMA(loss, "gaussian", offset=offset, average=True)]
    refused = 0
    for model in learners:
        for i in range(60):
            x, weight = rng.normal(size=(1, 2)), [rng.choice(sizes)] if rng.random() < 0.3 else [1.0]
            y = rng.normal(size=(1, 2) if several else 1) if labels is None else [rng.choice(labels)]
            if labels is None and rng.random() < 0.2:
                y = y * (rng.choice(sizes) / 10)
            before = pickle.dumps(model)
            try:
                model.partial_fit(x, y, sample_weight=weight, **({"classes": labels} if labels and model._state is None else {}))
            except FloatingPointError:
                assert pickle.dumps(model) == before
                refused += 1
        for name, value in model._state.hypothesis.state().items():
            assert not isinstance(value, (float, np.ndarray)) or np.isfinite(value).all(), (model, name)
        pickle.loads(pickle.dumps(model))._state.engine._check()
    assert refused


def test_a_label_whose_first_row_is_refused_has_not_joined():
    """Norms that are kept exactly, in which labels to come have a share, are what they were."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(40, 2)), np.array(list("ab"))[rng.integers(0, 2, 40)]
    refused, other = (ok.SVMD("multiclass_squared", ok.Polynomial(2), step=0.05, exact_norms=True, budget=None) for _ in range(2))
    for model in (refused, other):
        model.partial_fit(rows[:20], y[:20])
    with pytest.raises(FloatingPointError):
        refused.partial_fit([[1e200, 0.0]], ["c"])
    before, after = refused._state.hypothesis.state(), other._state.hypothesis.state()
    assert all(np.array_equal(before[name], after[name]) for name in before) and "square" in before
    np.testing.assert_array_equal(refused.progressive(rows[20:], y[20:]), other.progressive(rows[20:], y[20:]))


@each("kernel", [ok.Linear(), ok.Polynomial(2) * ok.Linear()], ids=repr)
def test_a_point_of_length_zero_makes_no_term(kernel):
    model = ok.NORMA("squared", kernel, step=0.1, budget=5).partial_fit([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [1.0, 1.0, 2.0])
    assert model.t_ == 3 and model.n_terms_ == model._state.function.dictionary.held == 1


def test_float32_indices_are_exact():
    single, double = (ok.NORMA("squared", ok.Precomputed(X @ X.T)).partial_fit(np.array([[0], [3], [11]], dtype=dtype), [1.0, 2.0, 3.0])
                      for dtype in (np.float32, np.float64))
    assert (single.predict(np.arange(12)[:, None]) == double.predict(np.arange(12.0)[:, None])).all()


def test_a_product_with_a_gaussian_reads_the_right_entries():
    kernel = ok.Gaussian(0.1) * ok.Precomputed(np.full((12, 12), 3.0))
    assert (kernel([[11], [0], [5]]) == 3.0 * np.eye(3)).all()
    model = ok.NORMA("squared", kernel, step=1.0, regularization=0.0)
    assert model.progressive([[11], [0], [11]], [1.0, 1.0, 1.0]).tolist() == [0.0, 0.0, 3.0]


@each("step", [1.0, ok.Fixed(1.0), ok.InverseSqrt(1.0)], ids=repr)
@each("kernel", ["gaussian", "linear", overlap], ids=["terms", "weights", "objects"])
def test_step_times_regularization_may_be_exactly_one(kernel, step):
    points = ["ab", "bc", "ac"] if kernel is overlap else X[:3]
    model = ok.NORMA("squared", kernel, step=step, regularization=1.0, budget=None, offset=False)
    model.partial_fit(points[:2], [1.0, 2.0])
    scores = model.progressive([points[2]], [1.0])
    assert np.isfinite(scores).all() and np.isfinite(model.predict(points)).all()
    if not isinstance(step, ok.InverseSqrt):  # each step wipes the past
        alone = ok.NORMA("squared", kernel, step=step, regularization=1.0, offset=False).partial_fit([points[2]], [1.0 - scores[0]])
        assert np.allclose(model.predict(points), alone.predict(points), rtol=1e-12, atol=1e-15)


@pytest.mark.filterwarnings("error")
@each("row", [0, 1, 7, 19])
@each("kind", ["gaussian", "sum", "linear", "scaled", "sparse and scaled"])
def test_a_row_that_is_too_large_is_blamed_itself(kind, row):
    """Also the first one, which must not become the origin; and no warning leaks."""
    points = np.random.default_rng(3).normal(size=(20, 3))
    points[row, 1] = 1e200
    model = {
        "gaussian": ok.SILK(),
        "sum": ok.SILK(kernel=ok.Gaussian(2.0) + 0.1 * ok.Gaussian(9.0)),
        "linear": ok.SILK(kernel="linear"),
    }.get(kind, ok.SILK(kernel="linear", scale=True))
    if "sparse" in kind:
        points = pytest.importorskip("scipy.sparse").csr_matrix(points)
    with pytest.raises((FloatingPointError, ValueError), match=f"^Row {row} of X .*too large"):
        model.partial_fit(points, [1, -1] * 10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_points_of_the_start_too_large_for_a_float32_model_are_refused():
    start = ok.NORMA("squared", "laplacian").partial_fit([[1e300, 0.0], [0.0, 1.0]], [1.0, 2.0])
    model = ok.NORMA("squared", "laplacian")
    with pytest.raises(ValueError, match="initial.*float32"):
        model.partial_fit(X.astype(np.float32), TARGETS, initial=start)
