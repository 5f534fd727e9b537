"""Messages that say what to do next, and answers that say why."""
import numpy as np
import pytest
from cases import each

import onlinekernels as ok

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TWO = np.where(X[:, 0] > 0, "yes", "no")
MANY = np.array(["a", "b", "c"])[RNG.integers(0, 3, 40)]


def test_probabilities_name_the_losses_that_have_them():
    with pytest.raises(AttributeError, match='"logistic" for two classes, "multiclass_logistic" or "multiclass_squared" for many'):
        ok.SILK().fit(X, TWO).predict_proba


@each("loss", ["hinge", "multiclass_hinge"])
def test_numbers_as_labels_name_a_regression_loss(loss):
    with pytest.raises(ValueError, match='such as "squared"'):
        ok.NORMA(loss).fit(X, X[:, 0])


@each("value, words", [("cold", "encode words"), (None, "fill in what is missing"), ("NA", "fill in what is missing")])
def test_what_is_no_number_is_named_with_its_place_and_what_to_do(value, words):
    rows = X.astype(object)
    if value == "NA":
        value = pytest.importorskip("pandas").NA
    rows[7, 1] = value
    with pytest.raises(TypeError, match=f"in row 7, column 1, instead; .*{words}"):
        ok.NORMA().fit(rows, TWO)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["wind", "weather", "height"])
    with pytest.raises(TypeError, match=f"in row 7, column 'weather', instead; .*{words}"):
        ok.NORMA().fit(frame, TWO)


def test_nan_is_named_with_its_place():
    rows = X.copy()
    rows[7, 1] = np.nan
    for model in (ok.NORMA(), ok.NORMA(scale=True), ok.NORMA(kernel="linear")):
        fitted = type(model)(**model.get_params(deep=False)).fit(X, TWO)
        for call in (lambda x: model.fit(x, TWO), lambda x: fitted.partial_fit(x, TWO), fitted.predict):
            with pytest.raises(ValueError, match="Input X contains NaN in row 7, column 1; expected finite numbers"):
                call(rows)
        with pytest.raises(ValueError, match="Input x contains NaN at index 1; expected"):
            fitted.predict_one(rows[7])
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match="contains NaN or infinity in row 7, column 1; expected"):
        ok.NORMA().fit(sparse.csr_matrix(rows), TWO)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["wind", "weather", "height"])
    fitted = ok.NORMA().fit(frame.fillna(0.0), TWO)
    for call in (lambda x: ok.NORMA().fit(x, TWO), fitted.predict, ok.RunningScaler().fit):
        with pytest.raises(ValueError, match="Input X contains NaN in row 7, column 'weather'; expected"):
            call(frame)


@each("before, after, words", [
    (True, False, "from True to False"), (False, ok.RunningScaler(0.9), r"from False to RunningScaler\(memory=0.9\)")])
def test_scale_is_told_as_it_was_given(before, after, words):
    model = ok.NORMA(scale=before).fit(X, TWO)
    with pytest.raises(ValueError, match=words):
        model.set_params(scale=after).partial_fit(X, TWO)


def test_kernels_by_the_names_that_people_know():
    for known, ours in ((ok.rbf(gamma=0.5), ok.Gaussian(1.0)), (ok.poly(2, gamma=0.5, coef0=0.3), ok.Polynomial(2, 0.5, 0.3))):
        assert repr(known) == repr(ours)
        np.testing.assert_allclose(known(X), ours(X))
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    np.testing.assert_allclose(ok.rbf(gamma=0.7)(X), pairwise.rbf_kernel(X, gamma=0.7))
    np.testing.assert_allclose(ok.poly(3, gamma=0.7, coef0=2.0)(X), pairwise.polynomial_kernel(X, gamma=0.7, coef0=2.0))
    assert (ok.SILK(kernel="rbf").fit(X, TWO).decision_function(X) == ok.SILK(kernel="gaussian").fit(X, TWO).decision_function(X)).all()
    ok.SILK(kernel="poly").fit(X, TWO)
    with pytest.raises(ValueError, match="gamma"):
        ok.rbf(gamma=-1)


class TestContributions:
    @each("kernel", ["gaussian", ok.Laplacian(), lambda a, b: float(np.exp(-np.sum((a - b) ** 2)))], ids=str)
    @each("scale", [False, True])
    def test_they_add_up_to_the_score(self, kernel, scale):
        scale = scale and not (callable(kernel) and not isinstance(kernel, ok.Kernel))
        model = ok.SILK(kernel=kernel, budget=20, offset=True, scale=scale).fit(X, TWO)
        parts = model.contributions(X[3], top=None)
        assert len(parts) == model.n_terms_
        total = sum(part.value for part in parts) + model.intercept_[0]
        assert np.isclose(total, model.decision_function(X[3:4])[0])
        assert all(abs(a.value) >= abs(b.value) for a, b in zip(parts, parts[1:]))
        assert all(np.isclose(part.value, part.coefficient * part.kernel) for part in parts)
        np.testing.assert_array_equal(parts[0].point, model.support_vectors_[parts[0].place])
        assert [part.place for part in model.contributions(X[3], top=2)] == [part.place for part in parts[:2]]

    def test_of_many_classes_they_are_those_of_a_label(self):
        tree = ok.Taxonomy({"a": "l", "b": "l", "c": "top", "l": "top"})
        for labels in (None, tree):
            model = ok.SILK("graph_hinge" if labels else "multiclass_hinge", labels=labels).fit(X, MANY)
            scores = model.decision_function(X[:1])[0]
            for label, score in zip(model.classes_, scores):
                assert np.isclose(sum(part.value for part in model.contributions(X[0], None, label)), score)
            best = model.predict(X[:1])[0]
            assert [p.value for p in model.contributions(X[0])] == [p.value for p in model.contributions(X[0], label=best)]
        with pytest.raises(ValueError, match="'z' is not a label"):
            model.contributions(X[0], label="z")

    def test_sparse_rows_and_models_without_terms(self):
        sparse = pytest.importorskip("scipy.sparse")
        rows = sparse.csr_matrix(X)
        model = ok.SILK(budget=20).fit(rows, TWO)
        total = sum(part.value for part in model.contributions(rows[3], top=None))
        assert np.isclose(total, model.decision_function(rows[3])[0])
        with pytest.raises(AttributeError, match="weights, not terms"):
            ok.NORMA("hinge", "linear").fit(X, TWO).contributions(X[0])
        with pytest.raises(ValueError, match="top must be"):
            model.contributions(rows[3], top=-1)


def test_the_front_door_names_no_loss_that_nobody_chose():
    with pytest.raises(AttributeError, match="OnlineKernelRegressor has no 'predict_proba'\\.$"):
        ok.OnlineKernelRegressor("low").predict_proba
    with pytest.raises(ValueError, match="use OnlineKernelRegressor"):
        ok.OnlineKernelClassifier("low").fit(X, X[:, 0])


def test_targets_and_labels_that_are_none_are_named():
    with pytest.raises(TypeError, match="must hold numbers .* Got None of dtype object"):
        ok.OnlineKernelRegressor("low").fit(X[:3], [1.0, None, 2.0])
    with pytest.raises(TypeError, match="Got 'a' of dtype <U1"):
        ok.OnlineKernelRegressor("low").fit(X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="NaN or None at index 1; expected labels"):
        ok.OnlineKernelClassifier("low").partial_fit(X[:3], np.array(["a", None, "b"], dtype=object))


@each("door", [ok.OnlineKernelClassifier, ok.OnlineKernelRegressor, ok.OnlineKernelDetector])
def test_a_report_before_learning_says_what_to_do(door):
    with pytest.raises((ValueError, AttributeError), match="not fitted yet. Call 'fit' or 'partial_fit' first"):
        door().report()
    assert not hasattr(door(), "history_")


def test_a_frame_is_no_row_and_a_plan_no_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    model = ok.OnlineKernelRegressor("low").partial_fit(frame, [1.0, 2.0, 3.0])
    before = model.predict(frame)
    for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(TypeError, match="Row 0 of X is a data frame; expected one row, such as frame.iloc"):
            call(frame[:1])
    with pytest.raises(TypeError, match="X is a LazyFrame"):
        model.predict(type("LazyFrame", (), {})())  # polars has it
    assert (model.predict(frame) == before).all()
