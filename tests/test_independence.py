"""Models share nothing with each other or with their arguments."""
import copy
import pickle

import numpy as np
from apart import run_apart
from cases import each
from small_models import LABELS, NEW, TARGETS, X, dot, each_fitted, each_model, part, same_state, scores, y_of

import onlinekernels as ok


# ---- Independence -----------------------------------------------------------------------------------


class TestIndependence:
    @each("again", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))],
          ids=["deepcopy", "copy", "pickle"])
    @each_fitted
    def test_a_copy_continues_identically_and_on_its_own(self, fitted, again):
        y = y_of(fitted)
        twin = again(fitted)
        same_state(twin, fitted)
        before = pickle.dumps(fitted)
        new = part(y, slice(0, 15))
        values = twin.progressive(NEW, new)
        assert pickle.dumps(fitted) == before, "learning in the copy changed the original"
        assert (fitted.progressive(NEW, new) == values).all()
        same_state(twin, fitted)

    @each("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    @each_fitted
    def test_every_pickle_protocol_works(self, fitted, protocol):
        twin = pickle.loads(pickle.dumps(fitted, protocol=protocol))
        assert (scores(twin, NEW) == scores(fitted, NEW)).all()

    @each("offset", [0.0, 100.0])
    @each("dtype", [np.float32, np.float64])
    def test_a_pickle_of_a_pickle_has_the_same_bytes(self, dtype, offset):
        model = ok.NORMA("squared").partial_fit((offset + X).astype(dtype), TARGETS)
        first = pickle.dumps(model)
        assert pickle.dumps(pickle.loads(first)) == first

    @each("params", [{}, {"average": True}, {"budget": 5}, {"budget": ok.Smallest(5)}, {"kernel": dot}], ids=str)
    def test_a_model_without_terms_pickles_and_goes_on(self, params):

        model = ok.NORMA("squared", **params).partial_fit(X[:1], [1.0], sample_weight=[0.0])
        twin = pickle.loads(pickle.dumps(model))
        assert twin.predict(NEW).tolist() == [0.0] * 15 and twin.dual_coef_.shape == (1, 0) and twin.norm_ == 0.0
        assert (twin.progressive(X, TARGETS) == model.progressive(X, TARGETS)).all()

    @each_model
    def test_unfitted_models_pickle_and_copy(self, model):
        for again in (copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))):
            twin = again(model)
            assert repr(twin) == repr(model) and not twin.__sklearn_is_fitted__()

    def test_two_models_with_the_same_nouns_do_not_share_what_they_learn(self):
        kernel, loss, step, budget = ok.Gaussian(), ok.NuHinge(), ok.InverseSqrt(), ok.Recent(9)
        a, b, alone = (ok.NORMA(loss, kernel, step=step, budget=budget) for _ in range(3))
        alone.partial_fit(X, LABELS)
        for i in range(0, 40, 5):
            a.partial_fit(X[i:i + 5], LABELS[i:i + 5], classes=[-1, 1])
            b.partial_fit(-X[i:i + 5], -LABELS[i:i + 5], classes=[-1, 1])
        assert np.allclose(a.decision_function(NEW), alone.decision_function(NEW), rtol=1e-12, atol=1e-14)
        assert a.margin_ == alone.margin_ and loss.margin == 1.0

    def test_models_with_defaults_share_nothing(self):
        a, b = ok.NORMA(), ok.NORMA()
        a.partial_fit(X, LABELS)
        assert not b.__sklearn_is_fitted__()
        a, b = ok.Perceptron().partial_fit(X, LABELS), ok.Perceptron().partial_fit(X, LABELS)
        a._state.loss.margin = 7.0
        assert b._state.loss.margin == 0.0

    @each_fitted
    def test_predicting_changes_nothing(self, fitted):
        before = pickle.dumps(fitted)
        for points in (NEW, X, NEW[:1], np.repeat(NEW, 40, axis=0)):
            fitted.predict(points), scores(fitted, points), fitted.predict_one(points[0])
        for name in ("dual_coef_", "support_vectors_", "coef_", "norm_", "n_terms_", "intercept_", "margin_", "width_"):
            getattr(fitted, name, None)
        repr(fitted), fitted.get_params()
        assert pickle.dumps(fitted) == before

    @each("params", [{}, {"regularization": 1.0, "step": 1.0}, {"regularization": 1.0, "step": 1.0, "budget": 5},
                     {"step": 0.9, "regularization": 1.0, "budget": ok.Smallest(7)},
                     {"budget": ok.Window(9)}], ids=str)
    def test_looking_and_pickling_between_examples_does_not_change_what_is_learned(self, params):

        quiet, watched = (ok.NORMA("squared", **params) for _ in range(2))
        points, y = np.tile(X, (20, 1)), np.tile(TARGETS, 20)
        for i in range(0, 800, 20):
            quiet.partial_fit(points[i:i + 20], y[i:i + 20])
            watched.partial_fit(points[i:i + 20], y[i:i + 20])
            a = watched.predict(NEW)
            pickle.dumps(watched), watched.norm_, watched.predict_one(NEW[0]), copy.copy(watched)
            assert (watched.predict(NEW) == a).all(), "pickling changed a prediction"
        assert pickle.dumps(quiet) == pickle.dumps(watched)

    @each_model
    def test_the_same_stream_gives_the_same_bits(self, model):

        y = y_of(model)
        twin = copy.deepcopy(model)
        for chunk in (1, 3, 36):
            rows = slice(chunk, 2 * chunk) if chunk < 20 else slice(4, 40)
            if not model.__sklearn_is_fitted__():
                rows = slice(0, 12)
            a, b = model.progressive(X[rows], part(y, rows)), twin.progressive(X[rows], part(y, rows))
            assert (a == b).all()
        assert (scores(model, NEW) == scores(twin, NEW)).all()
        assert pickle.dumps(model) == pickle.dumps(twin)

    @each_fitted
    def test_predictions_do_not_depend_on_the_company(self, fitted):
        together = scores(fitted, np.repeat(NEW, 20, axis=0))[::20]
        assert np.allclose(together, [scores(fitted, x[None])[0] for x in NEW], rtol=1e-10, atol=1e-13)


def test_importing_the_library_does_not_import_scikit_learn():
    run_apart("assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules and 'scipy' not in sys.modules")
