"""The interface: what a user of scikit-learn or river expects to hold of every model."""
import pickle

import numpy as np
import pytest
from cases import each
from small_models import (BINARY, LABELS, NEW, NOVELTY, REGRESSION, RNG, TARGETS, X, dot, targets)

import onlinekernels as ok


# ---- What exists ------------------------------------------------------------------------------------


class TestWhatExists:
    ALWAYS = {"fit", "partial_fit", "progressive", "learn_one", "predict", "predict_one", "get_params", "set_params",
              "save"}
    SOMETIMES = {"decision_function", "predict_proba", "score", "score_samples"}
    EXPECTED = {**dict.fromkeys(["hinge", "nuhinge"], {"decision_function", "score"}), "logistic": {"decision_function",
                                                                                                    "score",
                                                                                                    "predict_proba"},
                **dict.fromkeys(REGRESSION, {"score"}), **dict.fromkeys(NOVELTY, {"decision_function",
                                                                                  "score_samples"})}

    @each("loss", EXPECTED)
    def test_methods_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss)
        for _ in range(2):
            assert {name for name in self.ALWAYS | self.SOMETIMES
                    if hasattr(model, name)} == self.ALWAYS | self.EXPECTED[loss]
            for name in self.SOMETIMES - self.EXPECTED[loss]:
                with pytest.raises(AttributeError, match=f"NORMA.*{name}"):
                    getattr(model, name)
            model.partial_fit(X, targets(loss))


    @each("loss", EXPECTED)
    def test_fitted_attributes_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss).partial_fit(X, targets(loss))
        existing = {name for name in ("classes_", "margin_", "width_", "offset_", "coef_") if hasattr(model, name)}
        expected = {"classes_"} if loss in BINARY else {"offset_"} if loss in NOVELTY else set()
        expected |= {"margin_"} if "hinge" in loss or loss in NOVELTY else set()
        expected |= {"width_"} if "insensitive" in loss or "huber" in loss else set()
        assert existing == expected


# ---- Labels -----------------------------------------------------------------------------------------


class TestLabels:
    @each("classes", [["spam", "ham"], ("ham", "spam"), np.array(["ham", "spam"])], ids=type)
    def test_classes_names_labels_that_the_first_call_does_not_show(self, classes):
        for method in ("fit", "partial_fit", "progressive"):
            model = ok.NORMA()
            getattr(model, method)(X[:2], ["spam", "spam"], classes=classes)
            assert model.classes_.tolist() == ["ham", "spam"]
            model.partial_fit(X[2:4], ["ham", "spam"])
            model.partial_fit(X[2:4], ["ham", "spam"], classes=classes)  # repeating it is fine
            assert model.t_ == 6


    @each("one", [1, 1.0], ids=repr)
    @each("other, foreign", [(-1, 0), (0, -1)])
    @each("how", ["chunk", "one_row", "learn_one", "progressive", "after_ones", "mixed"])
    def test_a_lone_one_waits_for_its_counterpart_and_then_it_is_fixed(self, how, other, foreign, one):
        model = ok.NORMA().partial_fit(X[:2], [one, one])
        assert model.classes_[1] == 1
        other, foreign = type(one)(other), type(one)(foreign)
        if how == "learn_one":
            model.learn_one(X[2], other)
        elif how == "progressive":
            model.progressive(X[2:4], [other, other])
        elif how == "after_ones":
            model.partial_fit(X[2:3], [one]).learn_one(X[3], one).partial_fit(X[4:6], [one, one])
            model.partial_fit(X[6:8], [other, one])
        elif how == "mixed":
            model.partial_fit(X[2:5], [one, other, one])
        else:
            model.partial_fit(X[2:3] if how == "one_row" else X[2:4], [other] if how == "one_row" else [other, other])
        assert model.classes_.tolist() == [other, 1]
        before = pickle.dumps(model)
        for call in (lambda: model.partial_fit(X[:1], [foreign]), lambda: model.partial_fit(X[:2], [foreign, foreign]),
                     lambda: model.learn_one(X[0], foreign)):
            with pytest.raises(ValueError, match="unknown label"):
                call()
        assert pickle.dumps(model) == before
        assert model.classes_.tolist() == [other, 1]


def test_novelty_detectors_ignore_y_and_predict_signs():
    plain, with_y = (ok.NORMA(ok.NuNovelty(0.5, 0.1)).partial_fit(X, y) for y in (None, LABELS))
    assert pickle.dumps(plain) == pickle.dumps(with_y)
    assert set(plain.predict(np.r_[X, 100 + X])) == {-1, 1}
    assert (plain.predict(NEW) == np.where(plain.decision_function(NEW) >= 0, 1, -1)).all()
    assert np.allclose(plain.decision_function(NEW), plain.score_samples(NEW) - plain.offset_, rtol=0, atol=0)
    assert plain.predict_one(X[0]) in (-1, 1) and type(plain.predict_one(X[0])) is int
    assert plain.learn_one(X[0]).t_ == 41 and plain.learn_one(X[0], "anything").t_ == 42


@each("nu", [0.1, 0.3])
@each("algorithm", [ok.NORMA, ok.SILK])
def test_a_fitted_detector_finds_a_share_nu_of_its_rows_novel(algorithm, nu):
    rows = np.random.default_rng(1).normal(size=(200, 3))
    model = algorithm(ok.NuNovelty(nu), ok.Gaussian(1.2)).fit(rows)
    assert abs(np.mean(model.predict(rows) == -1) - nu) <= 1 / 200
    scores = model.score_samples(rows)
    assert np.mean(scores < model.offset_) <= nu <= np.mean(scores <= model.offset_) + 1 / 200


def test_probabilities_are_of_the_two_classes_and_never_overflow():
    model = ok.NORMA("logistic", "linear", step=1.0).partial_fit(X, LABELS)
    points = np.r_[NEW, 1e6 * NEW]
    p = model.predict_proba(points)
    assert p.shape == (30, 2) and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, rtol=1e-15)
    assert np.allclose(p[:15, 1], 1 / (1 + np.exp(-model.decision_function(NEW))), rtol=1e-14)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(points)).all()


def test_score_is_accuracy_or_r_squared():
    classifier = ok.NORMA(step=0.5).partial_fit(X, LABELS)
    weights = RNG.uniform(size=40)
    hits = classifier.predict(X) == LABELS
    assert np.isclose(classifier.score(X, LABELS), hits.mean())
    assert np.isclose(classifier.score(X, LABELS, sample_weight=weights), (hits * weights).sum() / weights.sum())
    regressor = ok.NORMA("squared", step=0.5).partial_fit(X, TARGETS)
    residual = ((TARGETS - regressor.predict(X)) ** 2).sum()
    assert np.isclose(regressor.score(X, TARGETS), 1 - residual / ((TARGETS - TARGETS.mean()) ** 2).sum())
    assert type(classifier.score(X, LABELS)) is float and type(regressor.score(X, TARGETS)) is float
    # constant targets: all or nothing, as in scikit-learn
    nothing = ok.NORMA("squared", step=0.5).partial_fit(X, np.zeros(40))
    assert nothing.score(X, np.zeros(40)) == 1.0 and nothing.score(X, np.ones(40)) == 0.0


class TestAverage:
    @each("kernel", ["gaussian", "linear", "laplacian", dot], ids=str)
    @each("params", [{}, {"offset": True}, {"step": 0.5, "regularization": 1.0},
                     {"step": 1.0, "regularization": 1.0}, {"step": ok.InverseSqrt(2.0)}], ids=str)
    @pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
    def test_predictions_are_the_mean_of_the_hypotheses_that_predicted(self, kernel, params):
        plain = ok.NORMA("squared", kernel, **{"step": 0.05, **params})
        average = ok.NORMA("squared", kernel, average=True, **{"step": 0.05, **params})
        hypotheses, intercepts = [np.zeros(15)], [0.0]
        for i in range(40):
            plain.learn_one(X[i], TARGETS[i])
            hypotheses.append(plain.predict(NEW))
            intercepts.append(plain.intercept_[0])
        average.partial_fit(X[:13], TARGETS[:13]).partial_fit(X[13:], TARGETS[13:])
        assert np.allclose(average.predict(NEW), np.mean(hypotheses[:-1], axis=0), rtol=1e-9, atol=1e-12)
        assert np.isclose(average.intercept_[0], np.mean(intercepts[:-1]), rtol=1e-12)


# ---- Contributions, names that people know -----------------------------------------------------------


TWO, CLASSES = np.where(X[:, 0] > 0, "yes", "no"), np.array(["a", "b", "c"])[np.arange(len(X)) % 3]


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
            model = ok.SILK("graph_hinge" if labels else "multiclass_hinge", labels=labels).fit(X, CLASSES)
            scores = model.decision_function(X[:1])[0]
            for label, score in zip(model.classes_, scores):
                assert np.isclose(sum(part.value for part in model.contributions(X[0], None, label)), score)
            best = model.predict(X[:1])[0]
            values = [[p.value for p in model.contributions(X[0], label=label)] for label in (None, best)]
            assert values[0] == values[1]
        with pytest.raises(ValueError, match="'z' is not a label"):
            model.contributions(X[0], label="z")


@each("dtype", [np.float64, np.float32])
@each("algorithm", [ok.ILK, ok.SILK, ok.PassiveAggressive])
def test_an_example_on_the_threshold_is_ordinary_whatever_the_chunk(algorithm, dtype):
    """Implicit steps take f(x) to the margin itself; rounding must not decide."""
    points = np.random.default_rng(0).uniform(0, 3, size=(60, 3)).astype(dtype)
    for n in range(5, 60, 5):
        model = algorithm("novelty", ok.Gaussian(0.7)).fit(points[:n])
        one_by_one = [model.predict(points[i : i + 1])[0] for i in range(n)]
        assert model.predict(points[:n]).tolist() == one_by_one
        assert one_by_one[-1] == 1 or algorithm is ok.ILK  # its step may be too short for that
        assert ((model.decision_function(points[:n]) >= 0) == (model.predict(points[:n]) == 1)).all()


class TestLearning:
    def test_a_weight_of_zero_is_a_step_that_only_decays(self):
        for kernel, budget in (("gaussian", None), ("linear", None), ("gaussian", 50), (dot, ok.Smallest(50))):
            model = ok.NORMA("nuhuber", kernel, step=0.5, regularization=0.2, budget=budget, offset=True)
            model.partial_fit(X, TARGETS)
            values, b, width = model.predict(NEW) - model.intercept_, model.intercept_, model.width_
            model.partial_fit(X[:3], TARGETS[:3], sample_weight=[0, 0, 0])
            assert model.t_ == 43
            assert (model.intercept_, model.width_) == (b, width)
            assert np.allclose(model.predict(NEW) - b, 0.9**3 * values, rtol=1e-12)
