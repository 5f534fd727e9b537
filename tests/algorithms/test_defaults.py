"""Defaults: chosen by the call, reached by nested names, and good enough for fixed data and for streams."""
import pickle

import numpy as np
import pytest
from small_models import scores as scores_of

import onlinekernels as ok
from onlinekernels.evaluate import fresh_copy
from onlinekernels.base.defaults import width
from cases import each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 9))
LABELS, NUMBERS = np.where(X[:, 0] > 0, "a", "b"), X[:, 0] + 0.1 * RNG.normal(size=300)


# ---- What is chosen --------------------------------------------------------------------------------------------


@each("algorithm", [ok.NORMA, ok.ILK, ok.SILK, ok.SVMD])
def test_default_widths_follow_the_number_of_features(algorithm):
    """For features of the size of 1."""
    for d in (1, 4, 9):
        assert algorithm().partial_fit(X[:, :d], LABELS).kernel_.width == pytest.approx(0.3 * d**0.5)
        assert algorithm("squared").fit(X[:, :d], NUMBERS).kernel_.width == 0.5 * d**0.5
        assert algorithm("nunovelty").fit(X[:, :d]).kernel_.width == d**0.5
    for given in (ok.Gaussian(), "gaussian"):
        assert algorithm("hinge", given).fit(X, LABELS).kernel_.width == 1.0


def test_fit_and_streams_have_defaults_of_their_own():
    stream, fixed = ok.SILK().partial_fit(X, LABELS), ok.SILK().fit(X, LABELS)
    assert (stream.regularization_, stream.step_, stream.budget_.size) == (3e-3, 1.0, 512)
    assert (fixed.regularization_, fixed.step_, fixed.budget_.size) == (1 / 300, 5 / 300**0.5, 4096)
    assert ok.SILK("squared").partial_fit(X, NUMBERS).regularization_ == 1e-3
    assert ok.SILK(ok.NuNovelty(0.1)).fit(X).regularization_ == 0.1 / 200
    assert ok.SVMD().partial_fit(X, LABELS).budget_.size == 512 and ok.SVMD().fit(X, LABELS).budget_.size == 4096


def test_a_model_keeps_its_defaults(tmp_path):
    """Through files, more rows, and other parameters that change."""
    model = ok.SILK().fit(X, LABELS)
    model.save(tmp_path / "m.npz")
    for again in (model, ok.load(tmp_path / "m.npz")):
        again.partial_fit(X[:100], LABELS[:100])
        again.set_params(penalty=0.5).partial_fit(X[:100], LABELS[:100])
        assert (again.regularization_, again.kernel_.width, again.budget_.size) == (1 / 300, pytest.approx(0.9), 4096)
    assert model.partial_fit(X, LABELS).regularization_ == 1 / 300
    assert model.fit(X[:50], LABELS[:50]).regularization_ == 1 / 50


# ---- Widths that follow the data -------------------------------------------------------------------------------


def cut(n, seed):
    """Slices that cover n rows, of any sizes."""
    ends = np.unique(np.append(np.random.default_rng(seed).integers(0, n + 1, size=25), [0, n]))
    return [slice(first, last) for first, last in zip(ends[:-1], ends[1:])]


STREAMS = [ok.SILK(), ok.NORMA("squared", scale_target=True), ok.SVMD("multiclass_hinge", class_weight={"a": 2.0}),
           ok.SILK("multiclass_logistic", offset=True), ok.NORMA("multiclass_squared"), ok.ILK("nunovelty"),
           ok.PassiveAggressive("insensitive"), ok.Projection("hinge", radius=3.0), ok.Perceptron(), ok.ALMA(),
           ok.VotedPerceptron(), ok.LASVM(), ok.Forgetron(budget=60), ok.KRLS(noise="auto"),
           ok.KRLS("multiclass_squared", budget=20), ok.Projectron()]


def targets_of(model):
    task = model._current_loss().task
    many = np.array(list("abcd"))[np.abs(X[:, 0] * 2).astype(int).clip(0, 3)]
    many[150] = "e"  # joins late
    return {"novelty": None, "regression": NUMBERS * 50, "multiclass": many}.get(task, LABELS)


@pytest.mark.parametrize("model", STREAMS, ids=repr)
def test_widths_of_a_stream_follow_its_first_rows_however_it_is_cut(model, tmp_path):
    """Rows of another size than 1: at 10 and at 100 rows the model is one that had the width from the first row on."""
    y, rows = targets_of(model), X * 20 + 1000
    rows[:10] = 1000 + (rows[:10] - 1000) / 8  # so that both looks change something
    columns = {"regression": 0.5, "novelty": 1.0}.get(model._current_loss().task, 0.3) * 3
    names = {"classes": ["a", "b"]} if y is LABELS else {}  # many may join

    def learned(slices, model, saving=()):
        scores = []
        for part in slices:
            found = model.progressive(rows[part], None if y is None else y[part], **names)
            if found.ndim == 2:  # labels join, and columns are sorted
                some, found = found, np.zeros((len(found), 5))
                found[:, np.searchsorted(np.unique(y), model.classes_)] = some
            scores.append(found)
            if part.stop in saving:
                model.save(tmp_path / "m.npz")
                model = pickle.loads(pickle.dumps(ok.load(tmp_path / "m.npz")))
        return np.concatenate(scores), model

    scores, whole = learned([slice(0, 300)], fresh_copy(model))
    assert width(whole.kernel_) == pytest.approx(16 * columns) and whole.kernel is None
    assert whole._state.warm_up is None
    for slices, saving in ((cut(300, 1), ()), (cut(300, 2), ()),
                           ([slice(i, i + 1) for i in range(300)], (1, 10, 55, 100, 101))):
        again, other = learned(slices, fresh_copy(model), saving)
        np.testing.assert_allclose(again, scores, rtol=1e-7, atol=1e-7 * np.abs(scores).max())
        assert repr(other.kernel_) == repr(whole.kernel_) and other.t_ == whole.t_
    for end, unit in ((9, 1.0), (10, 2.0), (99, 2.0), (100, 16.0)):
        stream = learned([slice(0, end)], fresh_copy(model))[1]
        assert width(stream.kernel_) == pytest.approx(unit * columns)
        given = learned([slice(0, end)], fresh_copy(model).set_params(kernel=stream.kernel_))[1]
        stream, given = (scores_of(model, rows) for model in (stream, given))
        np.testing.assert_allclose(stream, given, rtol=1e-9, atol=1e-9 * np.abs(given).max())


def test_widths_of_fit_follow_all_rows():
    rows = X * np.where(np.arange(300) < 100, 1.0, 1000.0)[:, None]  # the first say little
    for model in (ok.SILK(), ok.LASVM(), ok.Adatron(), ok.KRLS("multiclass_squared")):
        assert fresh_copy(model).fit(rows, LABELS).kernel_.width == pytest.approx(0.9 * 1024, rel=0.6)
        assert fresh_copy(model).fit(X * 1e-3, LABELS).kernel_.width == pytest.approx(0.9 / 1024)
    assert ok.SILK(scale=True).fit(X * 1e-3, LABELS).kernel_.width == pytest.approx(0.9)
    for odd in (np.zeros((50, 9)), np.full((50, 9), 1e100), X[:50] * 1e-305, X[:50] * 1e-20, X[:50] * 1e100):
        model = ok.SILK().fit(odd, LABELS[:50])
        assert np.isfinite(model.kernel_.width) and model.kernel_.width > 0


def test_defaults_of_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.random(300, 2000, density=0.02, random_state=0, format="csr")
    y = np.where(rows @ np.random.default_rng(0).normal(size=2000) > 0, "a", "b")
    for model in (ok.SILK(), ok.NORMA(), ok.Perceptron(), ok.PassiveAggressive(), ok.ILK("multiclass_hinge")):
        model = fresh_copy(model).partial_fit(rows, y, classes=["a", "b"])
        assert isinstance(model.kernel_, ok.Linear) and model.coef_.shape[1] == 2000 and not model.has_offset_
        model.set_params(kernel=None).partial_fit(rows, y)  # which is what it was
    assert repr(ok.ALMA().fit(rows, y).kernel_) == "Normalized(Linear())"
    assert isinstance(ok.SILK("squared").fit(rows, rows[:, 0].toarray().ravel()).kernel_, ok.Linear)
    for model in (ok.SILK("nunovelty"), ok.KRLS("multiclass_squared")):  # a linear function, or 2000 x 2000 covariances
        whole, parts = fresh_copy(model).partial_fit(rows, y), fresh_copy(model)
        for part in cut(300, 3):
            parts.partial_fit(rows[part], y[part])
        assert isinstance(whole.kernel_, ok.Gaussian) and whole.kernel_.width == parts.kernel_.width < 5.0
        np.testing.assert_allclose(parts.decision_function(rows), whole.decision_function(rows), atol=1e-9)


def test_a_linear_kernel_has_an_offset_unless_told():
    shifted = X[:, 0] > 1.5  # a rare class: a function through 0 errs on many
    for make in (ok.SILK, ok.NORMA, ok.ILK, ok.PassiveAggressive, ok.Projection, ok.SVMD):
        model = make("hinge", "linear")
        assert model.offset is None
        assert np.mean((model.progressive(X, shifted) > 0) != shifted) < 0.12 and model.has_offset_
        assert model.intercept_[0] < 0
        assert make("hinge", 2 * ok.Linear()).fit(X, shifted).has_offset_
        for other in (ok.Gaussian(), ok.Polynomial(2), ok.RandomFourier(ok.Gaussian(), 50), None):
            assert not make("hinge", other).fit(X, shifted).has_offset_
        assert not make("hinge", "linear", offset=False).fit(X, shifted).has_offset_
        assert make("hinge", ok.Gaussian(), offset=True).fit(X, shifted).has_offset_
    for model in (ok.Perceptron("linear"), ok.SILK("squared", "linear"), ok.NORMA("multiclass_hinge", "linear")):
        assert model.fit(X, shifted * 1.0 if model._current_loss().task == "regression" else shifted).has_offset_
    for model in (ok.SILK("nunovelty", "linear"), ok.KRLS("squared", "linear"), ok.ALMA("linear"),
                  ok.Forgetron("linear"), ok.Projectron("linear"), ok.ROMMA("linear"), ok.VotedPerceptron("linear"),
                  ok.Adatron("linear", step=0.01)):
        assert not model.fit(X, shifted * 1.0 if model._current_loss().task == "regression" else shifted).has_offset_
    assert ok.LASVM("linear").fit(X, shifted).has_offset_
    bank = ok.Bank(9, "hinge", "linear").partial_fit(X, shifted, keys=np.arange(300) % 3)
    assert bank.intercept_.all() and bank.model(0).has_offset_
    with pytest.raises(ValueError, match="'offset' parameter of SILK must be True, False or None"):
        ok.SILK(offset="yes").fit(X, shifted)
