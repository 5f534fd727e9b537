"""The interface: what a user of scikit-learn or river expects to hold of every model."""
import copy
import pickle

import numpy as np
import pytest
from cases import each
from small_models import (BINARY, LABELS, NEW, NOVELTY, REGRESSION, RNG, TARGETS, X, dot, each_fitted, each_model, overlap, part,
                          scores, targets, y_of)

import onlinekernels as ok


# ---- What exists ------------------------------------------------------------------------------------


class TestWhatExists:
    ALWAYS = {"fit", "partial_fit", "progressive", "learn_one", "predict", "predict_one", "get_params", "set_params", "save"}
    SOMETIMES = {"decision_function", "predict_proba", "score", "score_samples"}
    EXPECTED = {
        **dict.fromkeys(["hinge", "nuhinge"], {"decision_function", "score"}),
        "logistic": {"decision_function", "score", "predict_proba"},
        **dict.fromkeys(REGRESSION, {"score"}),
        **dict.fromkeys(NOVELTY, {"decision_function", "score_samples"}),
    }

    @each("loss", EXPECTED)
    def test_methods_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss)
        for _ in range(2):
            assert {name for name in self.ALWAYS | self.SOMETIMES if hasattr(model, name)} == self.ALWAYS | self.EXPECTED[loss]
            for name in self.SOMETIMES - self.EXPECTED[loss]:
                with pytest.raises(AttributeError, match=f"NORMA.*{name}"):
                    getattr(model, name)
            model.partial_fit(X, targets(loss))

    def test_they_follow_the_loss_until_the_first_fit_and_the_fitted_loss_after(self):
        model = ok.NORMA("hinge")
        assert hasattr(model, "decision_function")
        assert not hasattr(model.set_params(loss="squared"), "decision_function")
        model.partial_fit(X, TARGETS).set_params(loss="hinge")
        assert not hasattr(model, "decision_function")

    @each("loss", ["bogus", 5, ok.Hinge(-1)], ids=repr)
    def test_asking_never_raises(self, loss):
        model = ok.NORMA(loss)
        for name in self.SOMETIMES | {"_estimator_type", "classes_"}:
            assert not hasattr(model, name)

    @each("loss, kind", [("hinge", "classifier"), ("huber", "regressor"), ("novelty", "outlier_detector")])
    def test_the_task_follows_from_the_loss(self, loss, kind):
        assert ok.NORMA(loss)._estimator_type == kind
        assert ok.NORMA(loss).partial_fit(X, targets(loss))._estimator_type == kind

    def test_scikit_learn_can_ask_for_tags(self):
        assert callable(ok.NORMA().__sklearn_tags__)

    @each("name", ["support_vectors_", "dual_coef_", "intercept_", "n_terms_", "t_", "norm_", "step_",
                   "classes_", "n_features_in_", "coef_", "margin_", "width_", "offset_"])
    @each_model
    def test_fitted_attributes_do_not_exist_before_fitting(self, model, name):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="not fitted"):
            getattr(model, name)

    @each("loss", EXPECTED)
    def test_fitted_attributes_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss).partial_fit(X, targets(loss))
        existing = {name for name in ("classes_", "margin_", "width_", "offset_", "coef_") if hasattr(model, name)}
        expected = {"classes_"} if loss in BINARY else {"offset_"} if loss in NOVELTY else set()
        expected |= {"margin_"} if "hinge" in loss or loss in NOVELTY else set()
        expected |= {"width_"} if "insensitive" in loss or "huber" in loss else set()
        assert existing == expected

    def test_weights_have_no_terms_and_objects_no_features(self):
        weights = ok.NORMA("squared", "linear").partial_fit(X, TARGETS)
        for name in ("support_vectors_", "dual_coef_"):
            with pytest.raises(AttributeError, match="coef_"):
                getattr(weights, name)
        assert weights.n_terms_ == 0
        objects = ok.NORMA("squared", overlap).partial_fit(["ab", "b"], [1.0, 2.0])
        assert not hasattr(objects, "n_features_in_") and not hasattr(objects, "coef_")


def features(model, X):
    """What weights are about."""
    return model._state.function.map(X) if model._state.kernel.has_map() else X


class TestFittedAttributes:
    @each_fitted
    def test_shapes_and_types(self, fitted):
        n = fitted.n_terms_
        assert type(n) is int and type(fitted.t_) is int and fitted.t_ == 40
        assert fitted.intercept_.shape == (1,) and fitted.intercept_.dtype == np.float64
        assert type(fitted.step_) is float and fitted.step_ > 0
        assert type(fitted.norm_) is float and fitted.norm_ > 0
        if not hasattr(fitted, "dual_coef_"):
            assert fitted.coef_.shape == (1, features(fitted, NEW).shape[1]) and fitted.coef_.dtype == np.float64
            return
        assert fitted.dual_coef_.shape == (1, n) and fitted.dual_coef_.dtype == np.float64
        assert len(fitted.support_vectors_) == n
        if isinstance(fitted.support_vectors_, np.ndarray):
            assert fitted.support_vectors_.shape == (n, 3) and fitted.support_vectors_.dtype == np.float64
            assert type(fitted.n_features_in_) is int and fitted.n_features_in_ == 3

    @each_fitted
    def test_they_are_the_function(self, fitted):
        if hasattr(fitted, "coef_"):
            values = features(fitted, NEW) @ fitted.coef_[0]
        else:
            values = fitted._state.kernel(NEW, fitted.support_vectors_) @ fitted.dual_coef_[0]
        assert np.allclose(values + fitted.intercept_, scores(fitted, NEW), rtol=1e-10, atol=1e-12)

    def test_terms_are_oldest_first(self):
        for budget in (None, 7, ok.Window(9), ok.Smallest(5)):
            model = ok.NORMA("squared", ok.Linear() + ok.Constant(), budget=budget, step=1e-3)
            points = np.arange(30.0)[:, None]
            model.partial_fit(points, np.ones(30))
            assert (np.diff(model.support_vectors_[:, 0]) > 0).all()

    def test_norm_is_that_of_the_hilbert_space(self):
        model = ok.NORMA("squared", ok.Gaussian(), budget=9).partial_fit(X, TARGETS)
        alpha = model.dual_coef_[0]
        assert np.isclose(model.norm_ ** 2, alpha @ ok.Gaussian()(model.support_vectors_) @ alpha, rtol=1e-10)
        weights = ok.NORMA("squared", 4.0 * ok.Linear()).partial_fit(X, TARGETS)
        terms = ok.NORMA("squared", 4.0 * ok.Linear(), budget=1000).partial_fit(X, TARGETS)
        assert np.isclose(weights.norm_, terms.norm_, rtol=1e-10)
        assert np.allclose(weights.coef_, terms.coef_, rtol=1e-10)

    def test_step_is_that_of_the_latest_example(self):
        model = ok.NORMA(step=ok.InverseSqrt(0.5)).partial_fit(X[:4], LABELS[:4])
        assert model.step_ == 0.25
        assert ok.Perceptron().partial_fit(X, LABELS).step_ == 1.0

    def test_the_adapted_scalar_moves_and_the_others_stay(self):
        assert ok.NORMA(ok.Hinge(0.7)).partial_fit(X, LABELS).margin_ == 0.7
        assert ok.NORMA(ok.NuHinge(0.3, 0.7)).partial_fit(X, LABELS).margin_ != 0.7
        assert ok.NORMA(ok.Huber(0.7)).partial_fit(X, TARGETS).width_ == 0.7
        assert ok.NORMA(ok.NuHuber(0.3, 0.7)).partial_fit(X, TARGETS).width_ != 0.7
        novelty = ok.NORMA(ok.NuNovelty(0.3, 0.7)).partial_fit(X)
        assert novelty.margin_ == novelty.offset_ != 0.7


# ---- Labels -----------------------------------------------------------------------------------------


class TestLabels:

    def test_a_score_of_zero_is_the_first_class(self):
        model = ok.NORMA().partial_fit(X[:2], ["b", "a"], sample_weight=[0, 0])
        assert model.decision_function(NEW).tolist() == [0.0] * 15
        assert set(model.predict(NEW)) == {"a"}

    @each("classes", [["spam", "ham"], ("ham", "spam"), np.array(["ham", "spam"])], ids=type)
    def test_classes_names_labels_that_the_first_call_does_not_show(self, classes):
        for method in ("fit", "partial_fit", "progressive"):
            model = ok.NORMA()
            getattr(model, method)(X[:2], ["spam", "spam"], classes=classes)
            assert model.classes_.tolist() == ["ham", "spam"]
            model.partial_fit(X[2:4], ["ham", "spam"])
            model.partial_fit(X[2:4], ["ham", "spam"], classes=classes)  # repeating it is fine
            assert model.t_ == 6

    def test_classes_hold_even_for_familiar_labels(self):
        model = ok.NORMA().partial_fit(X[:2], [1, 1], classes=[1, 2])
        assert model.classes_.tolist() == [1, 2]
        with pytest.raises(ValueError, match="unknown label"):
            model.partial_fit(X[:2], [-1, -1])

    FIRST = {"minus": ([-1, -1], [-1, 1]), "zero": ([0, 0], [0, 1]), "true": ([True], [False, True]),
             "false": ([False], [False, True]), "minus_float": ([-1.0], [-1.0, 1.0]), "zero_float": ([0.0], [0.0, 1.0]),
             "one_unsigned": (np.array([1], dtype=np.uint8), [0, 1])}

    @each("first, classes", [*FIRST.values()], ids=FIRST)
    def test_familiar_labels_need_no_classes(self, first, classes):
        model = ok.NORMA().partial_fit(X[:len(first)], first)
        assert model.classes_.tolist() == classes
        model.partial_fit(X[:2], np.array(classes, dtype=np.asarray(first).dtype))
        assert model.t_ == len(first) + 2

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

    def test_a_lone_one_does_not_take_both_counterparts_at_once(self):
        model = ok.NORMA().partial_fit(X[:1], [1])
        with pytest.raises(ValueError, match="unknown label"):
            model.partial_fit(X[:2], [0, -1])
        assert model.partial_fit(X[:1], [0]).classes_.tolist() == [0, 1]

    def test_a_lone_one_is_settled_by_classes_on_a_later_call(self):
        model = ok.NORMA().partial_fit(X[:1], [1])
        assert model.partial_fit(X[:1], [1], classes=[0, 1]).classes_.tolist() == [0, 1]

    def test_the_targets_of_ones_do_not_depend_on_the_counterpart(self):
        a = ok.NORMA().partial_fit(X[:3], [1, 1, 1]).partial_fit(X[3:5], [0, 1])
        b = ok.NORMA().partial_fit(X[:3], [1, 1, 1]).partial_fit(X[3:5], [-1, 1])
        assert (a.decision_function(NEW) == b.decision_function(NEW)).all()


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
    assert np.mean(model.score_samples(rows) < model.offset_) <= nu <= np.mean(model.score_samples(rows) <= model.offset_) + 1 / 200


def test_a_users_novelty_loss_without_a_margin_has_a_decision_function():
    class Count(ok.Loss):
        task = "novelty"

        def __init__(self):
            pass

        def derivative(self, score, y):
            return -1.0

    model = ok.NORMA(Count()).partial_fit(X)
    assert (model.decision_function(X) == model.score_samples(X)).all()
    assert (model.predict(X) == 1).all()


def test_a_users_novelty_loss_never_sees_y():
    seen = []

    class Spy(ok.Loss):
        task = "novelty"

        def __init__(self):
            pass

        def derivative(self, score, y):
            seen.append(y)
            return -1.0

    ok.NORMA(Spy(), ok.Gaussian(1.0)).partial_fit(X[:2], [7.0, 7.0]).learn_one(X[2], 7.0).partial_fit(X[3:4], [7.0])
    assert seen == [0.0] * 4


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
    nothing = ok.NORMA("squared", step=0.5).partial_fit(X, np.zeros(40))  # constant targets: all or nothing, as in scikit-learn
    assert nothing.score(X, np.zeros(40)) == 1.0 and nothing.score(X, np.ones(40)) == 0.0


# ---- Learning ---------------------------------------------------------------------------------------


class TestLearning:
    @each_model
    def test_progressive_gives_the_scores_before_each_update(self, model):
        y = y_of(model)
        twin = copy.deepcopy(model)
        expected = [0.0]
        twin.partial_fit(X[:1], part(y, slice(0, 1)), classes=None if y is not LABELS else [-1, 1])
        averages = getattr(model, "average", False)
        for i in range(1, 40):
            if averages:  # what learns is the current hypothesis, what predicts is the average
                break
            expected.append(scores(twin, X[i:i + 1])[0])
            twin.partial_fit(X[i:i + 1], part(y, slice(i, i + 1)))
        got = model.progressive(X, y)
        assert got.shape == (40,) and got.dtype == np.float64
        assert np.allclose(got[:len(expected)], expected, rtol=1e-10, atol=1e-12)
        if not averages:
            assert np.allclose(scores(model, NEW), scores(twin, NEW), rtol=1e-10, atol=1e-12)

    def test_fit_may_change_features_labels_and_precision(self):
        model = ok.NORMA().fit(X, LABELS)
        model.fit(X[:, :2].astype(np.float32), np.where(LABELS > 0, "a", "b"))
        assert model.n_features_in_ == 2 and model.classes_.tolist() == ["a", "b"]
        assert model.support_vectors_.dtype == np.float32

    @each_model
    def test_fit_makes_as_many_passes_as_epochs_says(self, model):
        y = y_of(model)
        twin = copy.deepcopy(model)
        model.set_params(epochs=3).fit(X, y)
        for _ in range(3):
            twin.partial_fit(X, y)
        assert model.t_ == 120
        assert (scores(model, NEW) == scores(twin, NEW)).all()

    @each_model
    def test_epochs_concern_fit_only(self, model):
        y = y_of(model)
        assert model.set_params(epochs=3).partial_fit(X, y).t_ == 40
        assert len(model.progressive(X, y)) == 40 and model.t_ == 80

    def test_a_weight_of_zero_is_a_step_that_only_decays(self):
        for kernel, budget in (("gaussian", None), ("linear", None), ("gaussian", 50), (dot, ok.Smallest(50))):
            model = ok.NORMA("nuhuber", kernel, step=0.5, regularization=0.2, budget=budget, offset=True).partial_fit(X, TARGETS)
            values, b, width = model.predict(NEW) - model.intercept_, model.intercept_, model.width_
            model.partial_fit(X[:3], TARGETS[:3], sample_weight=[0, 0, 0])
            assert model.t_ == 43
            assert (model.intercept_, model.width_) == (b, width)
            assert np.allclose(model.predict(NEW) - b, 0.9**3 * values, rtol=1e-12)

    def test_a_weight_multiplies_the_coefficient(self):
        for weight in (0.25, 1.0, 2.0, 1e6):
            model = ok.NORMA("hinge", step=0.5, regularization=0.0, offset=True)
            model.partial_fit(X[:1], [1], sample_weight=[weight])
            assert model.dual_coef_.tolist() == [[0.5 * weight]]
            assert model.intercept_.tolist() == [0.5 * weight]

    def test_a_weight_multiplies_the_move_of_the_adapted_scalar(self):
        moves = [ok.NORMA(ok.NuNovelty(0.25, 1.0, None), step=0.5).partial_fit(X[:1], sample_weight=[w]).margin_ - 1.0
                 for w in (1.0, 2.0)]
        assert moves == [-0.375, -0.75]

    @each_model
    def test_fit_takes_no_weights(self, model):
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y_of(model), sample_weight=np.ones(40))


class TestAverage:
    @each("kernel", ["gaussian", "linear", "laplacian", dot], ids=str)
    @each("params", [{}, {"offset": True}, {"step": 0.5, "regularization": 1.0},
                     {"step": 1.0, "regularization": 1.0}, {"step": ok.InverseSqrt(2.0)}], ids=str)
    @pytest.mark.filterwarnings("ignore:Learning diverges:onlinekernels.LearningWarning")
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

    def test_learning_itself_is_that_of_the_current_hypothesis(self):
        a, b = (ok.NORMA("squared", average=average).progressive(X, TARGETS) for average in (False, True))
        assert np.allclose(a, b, rtol=1e-12, atol=1e-14)

    def test_an_explicit_unlimited_budget_is_no_budget(self):
        model = ok.NORMA("squared", average=True, budget=ok.Unlimited()).partial_fit(X, TARGETS)
        assert np.allclose(model.predict(NEW), ok.NORMA("squared", average=True).partial_fit(X, TARGETS).predict(NEW))


# ---- initial= ---------------------------------------------------------------------------------------


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
