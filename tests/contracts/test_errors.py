"""Errors in the middle of a call stop after the last complete row; overflow is an error that says where."""
import pickle

import numpy as np
import pytest
from cases import each
from small_models import overlap, shown

import onlinekernels as ok

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
    {"kernel": "gaussian"}, {"kernel": "linear", "average": True}, {"kernel": overlap},
    {"kernel": "gaussian", "scale": True},
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


# ---- Overflow ---------------------------------------------------------------------------------------


@each("chunk", [1, 500])
@each("params", [
    {"kernel": "gaussian"}, {"kernel": "laplacian", "budget": 20}, {"kernel": "gaussian", "budget": ok.Smallest(20)},
    {"kernel": "gaussian", "budget": ok.Window(30)}, {"kernel": "gaussian", "average": True}, {"kernel": "linear"},
], ids=shown)
@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
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


@pytest.mark.filterwarnings("error")
@each("row", [0, 1, 7, 19])
@each("kind", ["gaussian", "sum", "linear", "scaled", "sparse and scaled"])
def test_a_row_that_is_too_large_is_blamed_itself(kind, row):
    """Also the first one, which must not become the origin; and no warning leaks."""
    points = np.random.default_rng(3).normal(size=(20, 3))
    points[row, 1] = 1e200
    model = {"gaussian": ok.SILK(), "sum": ok.SILK(kernel=ok.Gaussian(2.0) + 0.1 * ok.Gaussian(9.0)),
             "linear": ok.SILK(kernel="linear"),}.get(kind, ok.SILK(kernel="linear", scale=True))
    if "sparse" in kind:
        points = pytest.importorskip("scipy.sparse").csr_matrix(points)
    with pytest.raises((FloatingPointError, ValueError), match=f"^Row {row} of X .*too large"):
        model.partial_fit(points, [1, -1] * 10)


@each("value, error", [("much", TypeError), (None, TypeError), ([1.0, 2.0], ValueError), (1j, TypeError),
                       (float("nan"), FloatingPointError), (float("inf"), FloatingPointError)])
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


def test_a_label_whose_first_row_is_refused_has_not_joined():
    """Norms that are kept exactly, in which labels to come have a share, are what they were."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(40, 2)), np.array(list("ab"))[rng.integers(0, 2, 40)]
    refused, other = (ok.SVMD("multiclass_squared", ok.Polynomial(2), step=0.05, exact_norms=True, budget=None)
                      for _ in range(2))
    for model in (refused, other):
        model.partial_fit(rows[:20], y[:20])
    with pytest.raises(FloatingPointError):
        refused.partial_fit([[1e200, 0.0]], ["c"])
    before, after = refused._state.hypothesis.state(), other._state.hypothesis.state()
    assert all(np.array_equal(before[name], after[name]) for name in before) and "square" in before
    np.testing.assert_array_equal(refused.progressive(rows[20:], y[20:]), other.progressive(rows[20:], y[20:]))
