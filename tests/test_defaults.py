"""Defaults: chosen by the call, reached by nested names, and good enough for fixed data and for streams."""
import pickle
import warnings

import numpy as np
import pytest
from small_models import scores as scores_of

import onlinekernels as ok
from onlinekernels.evaluate import fresh_copy
from onlinekernels.base.defaults import width
from onlinekernels.base.plan import Plan
from cases import each
from test_real_data import load

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 9))
LABELS, NUMBERS = np.where(X[:, 0] > 0, "a", "b"), X[:, 0] + 0.1 * RNG.normal(size=300)


# ---- Nested names ----------------------------------------------------------------------------------------------


def test_nested_names_reach_defaults():
    assert repr(ok.SILK().set_params(kernel__width=2.0)) == "SILK(kernel=Gaussian(width=2.0))"
    assert repr(ok.SILK("nunovelty").set_params(loss__nu=0.2)) == "SILK(loss=NuNovelty(nu=0.2))"
    assert repr(ok.NORMA(kernel="polynomial").set_params(kernel__degree=2).kernel) == "Polynomial(degree=2)"
    assert repr(ok.NORMA().set_params(step__rate=0.5).step) == "Fixed(rate=0.5)"
    assert repr(ok.ILK().set_params(step__rate=0.5).step) == "Fixed(rate=0.5)"
    assert repr(ok.SILK(budget=9).set_params(budget__size=7).budget) == "Smallest(7)"
    assert repr(ok.Perceptron().set_params(kernel__width=3.0).kernel) == "Gaussian(width=3.0)"


def test_defaults_are_not_shared():
    one, other = ok.SILK(), ok.SILK()
    one.set_params(kernel__width=2.0)
    assert other.kernel is None and ok.SILK().set_params(kernel__width=3.0).kernel is not one.kernel


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Gaussian has no parameter 'degree'"):
        ok.SILK().set_params(kernel__degree=2)
    with pytest.raises(ValueError, match="'scale' parameter of SILK is False, which has no parameters of its own"):
        ok.SILK().set_params(scale__memory=0.5)
    with pytest.raises(ValueError, match="'loss' parameter of SILK must be a loss"):
        ok.SILK("nonsense").set_params(loss__nu=0.5)


def test_searches_reach_defaults():
    model_selection = pytest.importorskip("sklearn.model_selection")
    search = model_selection.GridSearchCV(ok.SILK(), {"kernel__width": [0.01, 2.0]}, cv=2).fit(X, LABELS)
    assert search.best_params_ == {"kernel__width": 2.0}
    tuning = ok.evaluate.tune(ok.SILK(), [{"kernel__width": 0.01}, {"kernel__width": 2.0}], (X, LABELS))
    assert tuning.best_params == {"kernel__width": 2.0}
    tuning = ok.evaluate.tune(ok.SILK("nunovelty"), [{"loss__nu": 0.1}, {"loss__nu": 0.5}], (X, None),
                              metric=lambda report: abs(report.error - 0.5))
    assert tuning.best_params == {"loss__nu": 0.5}


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


@each("model", [ok.Perceptron(), ok.ALMA(), ok.ROMMA(), ok.VotedPerceptron(), ok.LASVM(), ok.Ballseptron(), ok.Adatron()], ids=repr)
def test_the_classics_have_the_same_widths(model):
    assert model.fit(X, LABELS).kernel_.width == pytest.approx(0.9)


def test_fit_and_streams_have_defaults_of_their_own():
    stream, fixed = ok.SILK().partial_fit(X, LABELS), ok.SILK().fit(X, LABELS)
    assert (stream.regularization_, stream.step_, stream.budget_.size) == (3e-3, 1.0, 512)
    assert (fixed.regularization_, fixed.step_, fixed.budget_.size) == (1 / 300, 5 / 300**0.5, 4096)
    assert ok.SILK("squared").partial_fit(X, NUMBERS).regularization_ == 1e-3
    assert ok.SILK(ok.NuNovelty(0.1)).fit(X).regularization_ == 0.1 / 200
    assert ok.SVMD().partial_fit(X, LABELS).budget_.size == 512 and ok.SVMD().fit(X, LABELS).budget_.size == 4096


def test_what_is_given_is_used_as_it_is():
    given = dict(regularization=0.02, step=0.5, budget=77)
    for model in (ok.SILK(**given).partial_fit(X, LABELS), ok.SILK(**given).fit(X, LABELS)):
        assert (model.regularization_, model.step_, model.budget_.size) == (0.02, 0.5, 77)
    with pytest.raises(ValueError, match="'budget' parameter of SILK"):
        ok.SILK(budget="some").fit(X, LABELS)


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


def test_partial_fit_does_not_depend_on_the_size_of_the_first_chunk():
    whole, pieces = ok.SILK().partial_fit(X, LABELS), ok.SILK()
    for start in range(0, 300, 7):
        pieces.partial_fit(X[start : start + 7], LABELS[start : start + 7], classes=["a", "b"])
    np.testing.assert_allclose(pieces.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-12)


# ---- Widths that follow the data -------------------------------------------------------------------------------


def cut(n, seed):
    """Slices that cover n rows, of any sizes."""
    ends = np.unique(np.append(np.random.default_rng(seed).integers(0, n + 1, size=25), [0, n]))
    return [slice(first, last) for first, last in zip(ends[:-1], ends[1:])]


STREAMS = [
    ok.SILK(), ok.NORMA("squared", scale_target=True), ok.SVMD("multiclass_hinge", class_weight={"a": 2.0}),
    ok.SILK("multiclass_logistic", offset=True), ok.NORMA("multiclass_squared"), ok.ILK("nunovelty"), ok.PassiveAggressive("insensitive"),
    ok.Projection("hinge", radius=3.0), ok.Perceptron(), ok.ALMA(), ok.VotedPerceptron(), ok.LASVM(), ok.Forgetron(budget=60),
    ok.KRLS(noise="auto"), ok.KRLS("multiclass_squared", budget=20), ok.Projectron(),
]


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
            scores.append(np.pad(found, ((0, 0), (0, 5 - found.shape[1]))) if found.ndim == 2 else found)
            if part.stop in saving:
                model.save(tmp_path / "m.npz")
                model = pickle.loads(pickle.dumps(ok.load(tmp_path / "m.npz")))
        return np.concatenate(scores), model

    scores, whole = learned([slice(0, 300)], fresh_copy(model))
    assert width(whole.kernel_) == pytest.approx(16 * columns) and whole.kernel is None and whole._state.beginning is None
    for slices, saving in ((cut(300, 1), ()), (cut(300, 2), ()), ([slice(i, i + 1) for i in range(300)], (1, 10, 55, 100, 101))):
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


def test_rows_of_length_1_are_told_apart():
    """At chance, in silence, when the width followed the number of columns alone."""
    datasets = pytest.importorskip("sklearn.datasets")
    rows, y = datasets.load_digits(return_X_y=True)
    rows, y = (part[np.random.default_rng(0).permutation(len(y))] for part in (rows, y))
    for size in (rows.max(), np.linalg.norm(rows, axis=1, keepdims=True)):
        assert ok.evaluate.progressive(ok.SILK("multiclass_hinge"), (rows / size, y)).error < 0.06
        assert ok.SILK("multiclass_hinge").fit((rows / size)[:1200], y[:1200]).score((rows / size)[1200:], y[1200:]) > 0.95
    table, progress = datasets.load_diabetes(return_X_y=True)  # features of the size of 0.05
    assert ok.SILK("squared", scale_target=True).fit(table[:300], progress[:300]).score(table[300:], progress[300:]) > 0.3


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


def test_a_start_brings_its_width():
    first = ok.SILK().partial_fit(X * 64, LABELS)
    second = ok.SILK().partial_fit(X * 64, LABELS, initial=first)
    assert second.kernel_.width == first.kernel_.width
    both = ok.parallel.combine([first, second])
    assert both.kernel_.width == first.kernel_.width
    both.set_params(penalty=0.5).partial_fit(X * 64, LABELS)


# ---- Offsets ---------------------------------------------------------------------------------------------------


def test_a_linear_kernel_has_an_offset_unless_told():
    shifted = X[:, 0] > 1.5  # a rare class: a function through 0 errs on many
    for make in (ok.SILK, ok.NORMA, ok.ILK, ok.PassiveAggressive, ok.Projection, ok.SVMD):
        model = make("hinge", "linear")
        assert model.offset is None
        assert np.mean((model.progressive(X, shifted) > 0) != shifted) < 0.12 and model.has_offset_ and model.intercept_[0] < 0
        assert make("hinge", 2 * ok.Linear()).fit(X, shifted).has_offset_
        for other in (ok.Gaussian(), ok.Polynomial(2), ok.RandomFourier(ok.Gaussian(), 50), None):
            assert not make("hinge", other).fit(X, shifted).has_offset_
        assert not make("hinge", "linear", offset=False).fit(X, shifted).has_offset_
        assert make("hinge", ok.Gaussian(), offset=True).fit(X, shifted).has_offset_
    for model in (ok.Perceptron("linear"), ok.SILK("squared", "linear"), ok.NORMA("multiclass_hinge", "linear")):
        assert model.fit(X, shifted * 1.0 if model._current_loss().task == "regression" else shifted).has_offset_
    for model in (ok.SILK("nunovelty", "linear"), ok.KRLS("squared", "linear"), ok.ALMA("linear"), ok.Forgetron("linear"),
                  ok.Projectron("linear"), ok.ROMMA("linear"), ok.VotedPerceptron("linear"), ok.Adatron("linear", step=0.01)):
        assert not model.fit(X, shifted * 1.0 if model._current_loss().task == "regression" else shifted).has_offset_
    assert ok.LASVM("linear").fit(X, shifted).has_offset_
    bank = ok.Bank(9, "hinge", "linear").partial_fit(X, shifted, keys=np.arange(300) % 3)
    assert bank.intercept_.all() and bank.model(0).has_offset_
    with pytest.raises(ValueError, match="'offset' parameter of SILK must be True, False or None"):
        ok.SILK(offset="yes").fit(X, shifted)


def test_linear_models_of_a_default_budget_keep_weights():
    for model in (ok.SILK("hinge", "linear"), ok.SVMD("hinge", "linear")):
        assert type(fresh_copy(model).fit(X, LABELS).budget_) is ok.Unlimited
        assert type(fresh_copy(model).set_params(budget=20).fit(X, LABELS).budget_) is not ok.Unlimited


# ---- Fixed data: `fit` -----------------------------------------------------------------------------------------


def classes(name):
    """(X, y) of at most 6000 rows of a real set, shuffled where it is a stream."""
    if name == "a9a":
        data = load("a9a")
        ends = data["indptr_train"][:6001]
        rows = np.zeros((6000, int(data["n_features"])))
        rows[np.repeat(np.arange(6000), np.diff(ends)), data["indices_train"][: ends[-1]]] = 1.0
        return rows, data["y_train"][:6000].astype(int)
    if name == "usps":
        data = load("usps")
        return data["X_train"][:6000] / 1000.0, data["y_train"][:6000].astype(int)
    data = load(name)
    order = np.random.default_rng(0).permutation(len(data["X"]))[:6000]
    return data["X"][order].astype(float), data["y"][order].astype(int)


@pytest.mark.slow
@each("name", ["banana", "elec2", "sea", "outdoor", "phishing", "2cht", "a9a", "usps"])
def test_fit_on_fixed_classes(name):
    """Never worse than the majority, near SGD on Nystroem features."""
    pytest.importorskip("sklearn")
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X_train, X_test, y_train, y_test = train_test_split(*classes(name), test_size=1 / 3, random_state=0)
    loss = "multiclass_hinge" if len(np.unique(y_train)) > 2 else "hinge"
    majority = np.max(np.unique(y_test, return_counts=True)[1]) / len(y_test)
    features = Nystroem(n_components=512, random_state=0)
    peer = make_pipeline(StandardScaler(), features, SGDClassifier(random_state=0)).fit(X_train, y_train)
    for algorithm in (ok.SILK, ok.ILK, ok.NORMA, ok.SVMD):
        model = make_pipeline(StandardScaler(), algorithm(loss)).fit(X_train, y_train)
        assert model.score(X_test, y_test) > majority, algorithm
        assert 1 - model.score(X_test, y_test) < 1.3 * (1 - peer.score(X_test, y_test)), algorithm
        assert model.score(X_train, y_train) > np.max(np.unique(y_train, return_counts=True)[1]) / len(y_train)


@pytest.mark.slow
@each("name", ["airfoil", "bike_hour", "california", "concrete", "kin8nm", "power_plant", "wine_red"])
def test_fit_on_fixed_numbers(name):
    """Never worse than the mean, near SGD on Nystroem features."""
    pytest.importorskip("sklearn")
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDRegressor
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load("regression")
    X, y = data[f"{name}::X"].astype(float), data[f"{name}::y"].astype(float)
    whole = ~np.isnan(X).any(axis=1)
    order = np.random.default_rng(0).permutation(whole.sum())[:6000]
    X_train, X_test, y_train, y_test = train_test_split(X[whole][order], y[whole][order], test_size=1 / 3, random_state=0)
    features = Nystroem(n_components=512, random_state=0)
    peer = make_pipeline(StandardScaler(), features, SGDRegressor(random_state=0))
    peer.fit(X_train, (y_train - y_train.mean()) / y_train.std())
    reached = 1 - peer.score(X_test, (y_test - y_train.mean()) / y_train.std())
    for algorithm in (ok.SILK, ok.ILK, ok.NORMA, ok.SVMD):
        model = make_pipeline(StandardScaler(), algorithm("squared", scale_target=True)).fit(X_train, y_train)
        assert 1 - model.score(X_test, y_test) < min(1.0, 1.3 * reached), algorithm


# ---- Streams ---------------------------------------------------------------------------------------------------


@each("name, most", [("elec2", 0.095), ("sea", 0.158), ("outdoor", 0.09), ("banana", 0.14)])
def test_the_figures_of_streams_hold(name, most):
    """SILK() behind a running scaler, as in docs/howto/data.md."""
    data = load(name)
    X, y = data["X"][:20_000].astype(float), data["y"][:20_000].astype(int)
    model = ok.SILK("multiclass_hinge" if y.max() > 1 else "hinge", scale=True)
    assert ok.evaluate.progressive(model, (X, y)).error < most


def test_a_standing_problem_is_learned_by_fit():
    """The report that began it: below the majority class on its own training data."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 20))
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * rng.normal(size=4000) > 1.5, 1, 0)
    assert ok.SILK().fit(X, y).score(X, y) > max(np.mean(y), 1 - np.mean(y)) + 0.05


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (ok.SILK(), ok.NORMA(), ok.SVMD(), ok.ILK()):
            fresh_copy(model).fit(X, LABELS)


def test_a_plan_is_made_once(monkeypatch):
    """Parts that depend on the data are put into the plan that is there."""
    made, begin = [], Plan.__init__
    monkeypatch.setattr(Plan, "__init__", lambda plan, **parts: made.append(plan) or begin(plan, **parts))
    rng = np.random.default_rng(0)
    X = 50.0 * rng.normal(size=(300, 2))
    for model in (ok.NORMA(offset=None), ok.SILK("squared"), ok.KRLS(), ok.NORMA("hinge", ok.Gaussian(), step=0.1)):
        made.clear()
        model.fit(X, np.sign(X[:, 0]))
        assert len(made) == 1
        made.clear()
        type(model)(**model.get_params(deep=False)).partial_fit(X, np.sign(X[:, 0]))  # the width is chosen anew
        assert len(made) == 1
