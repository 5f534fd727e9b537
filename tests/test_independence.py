"""Models share nothing with each other, with their arguments, or between threads."""
import copy
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from small_models import LABELS, NEW, TARGETS, X, dot, part, same_state, scores, y_of

import onlinekernels as ok


# ---- Independence -----------------------------------------------------------------------------------


class TestIndependence:
    @pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))],
                             ids=["deepcopy", "copy", "pickle"])
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

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_every_pickle_protocol_works(self, fitted, protocol):
        twin = pickle.loads(pickle.dumps(fitted, protocol=protocol))
        assert (scores(twin, NEW) == scores(fitted, NEW)).all()

    @pytest.mark.parametrize("offset", [0.0, 100.0])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_pickle_of_a_pickle_has_the_same_bytes(self, dtype, offset):
        model = ok.NORMA("squared").partial_fit((offset + X).astype(dtype), TARGETS)
        first = pickle.dumps(model)
        assert pickle.dumps(pickle.loads(first)) == first

    @pytest.mark.parametrize("params", [{}, {"average": True}, {"budget": 5}, {"budget": ok.Smallest(5)}, {"kernel": dot}], ids=str)
    def test_a_model_without_terms_pickles_and_goes_on(self, params):

        model = ok.NORMA("squared", **params).partial_fit(X[:1], [1.0], sample_weight=[0.0])
        twin = pickle.loads(pickle.dumps(model))
        assert twin.predict(NEW).tolist() == [0.0] * 15 and twin.dual_coef_.shape == (1, 0) and twin.norm_ == 0.0
        assert (twin.progressive(X, TARGETS) == model.progressive(X, TARGETS)).all()

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

    def test_predicting_changes_nothing(self, fitted):
        before = pickle.dumps(fitted)
        for points in (NEW, X, NEW[:1], np.repeat(NEW, 40, axis=0)):
            fitted.predict(points), scores(fitted, points), fitted.predict_one(points[0])
        for name in ("dual_coef_", "support_vectors_", "coef_", "norm_", "n_terms_", "intercept_", "margin_", "width_"):
            getattr(fitted, name, None)
        repr(fitted), fitted.get_params()
        assert pickle.dumps(fitted) == before

    @pytest.mark.parametrize("params", [{}, {"regularization": 1.0, "step": 1.0}, {"regularization": 1.0, "step": 1.0, "budget": 5},
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

    def test_predictions_do_not_depend_on_the_company(self, fitted):
        together = scores(fitted, np.repeat(NEW, 20, axis=0))[::20]
        assert np.allclose(together, [scores(fitted, x[None])[0] for x in NEW], rtol=1e-10, atol=1e-13)


# ---- Threads ----------------------------------------------------------------------------------------


def run_apart(code):
    """Run code in an interpreter of its own, so that a crash there is only a failure here."""
    code = "import numpy as np, threading, pickle, sys\nimport onlinekernels as ok\nsys.setswitchinterval(1e-5)\n" + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr[-2000:]


class TestThreads:
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_threads_may_predict_with_one_model_at_once(self, kernel):
        run_apart(f"""
            rng = np.random.default_rng(0)
            model = ok.NORMA("squared", {kernel!r}).fit(rng.normal(size=(400, 5)), rng.normal(size=400))
            sets = [rng.normal(size=(n, 5)) for n in (2000, 1500, 3)]
            expected = [model.predict(points) for points in sets]
            wrong = []
            def work(i):
                for _ in range(40):
                    if not (model.predict(sets[i]) == expected[i]).all():
                        wrong.append(i)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert not wrong, f"{{len(wrong)}} of 120 predictions were wrong"
        """)

    def test_learning_in_two_threads_at_once_raises_or_is_safe(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(300, 8)), rng.normal(size=300)
            model = ok.NORMA("squared", budget=150, step=0.01).partial_fit(X[:1], y[:1])
            learned, errors = [1], []
            def work():
                for i in range(40):
                    try:
                        model.partial_fit(X, y)
                        learned.append(300)
                    except RuntimeError as error:
                        errors.append(str(error))
            threads = [threading.Thread(target=work) for _ in range(2)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert model.t_ == sum(learned), (model.t_, sum(learned))
            assert all("learning" in error and "thread" in error for error in errors)
            model._state.engine._check()
            assert np.isfinite(model.predict(X)).all()
        """)

    def test_predicting_while_another_thread_learns_raises_or_is_right(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(3000, 5)), rng.normal(size=3000)
            model = ok.NORMA("squared", "gaussian").partial_fit(X[:5], y[:5])
            done, odd = threading.Event(), []
            def work():
                while not done.is_set():
                    try:
                        if not np.isfinite(model.predict(X[:300])).all():
                            odd.append("not finite")
                    except RuntimeError:
                        pass
                    except Exception as error:
                        odd.append(repr(error))
            thread = threading.Thread(target=work)
            thread.start()
            learned = 5
            for i in range(5, 2500, 7):
                try:
                    model.partial_fit(X[i:i + 7], y[i:i + 7])
                    learned += 7
                except RuntimeError:
                    pass
            done.set(); thread.join()
            assert not odd, odd[:3]
            assert model.t_ == learned
            model._state.engine._check()
        """)

    def test_pickling_while_another_thread_learns_raises_or_gives_the_model_of_some_time(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(12000, 1)), rng.normal(size=12000)
            model = ok.NORMA("squared", budget=1000, regularization=0.1).partial_fit(X[:5], y[:5])
            done, pickles = threading.Event(), []
            def work():
                while not done.is_set():
                    try:
                        pickles.append(pickle.dumps(model))
                    except RuntimeError:
                        pass
            thread = threading.Thread(target=work)
            thread.start()
            model.partial_fit(X[5:], y[5:])
            done.set(); thread.join()
            follower, wrong = ok.NORMA("squared", budget=1000, regularization=0.1), []
            for twin in {copy.t_: copy for copy in map(pickle.loads, pickles)}.values():
                done = getattr(follower, "t_", 0)
                if twin.t_ > done:
                    follower.partial_fit(X[done:twin.t_], y[done:twin.t_])
                twin._state.engine._check()
                if not np.allclose(follower.predict(X[:20]), twin.predict(X[:20]), rtol=1e-9, atol=1e-9):
                    wrong.append(twin.t_)
            assert not wrong, f"the copies at t = {wrong[:5]} are not the models of their time"
        """)

    def test_copies_and_predictions_while_another_thread_learns_new_labels(self):
        run_apart("""
            sys.setswitchinterval(1e-6)
            rng = np.random.default_rng(0)
            X = rng.normal(size=(600, 2))
            model = ok.NORMA("multiclass_hinge", scale=True).partial_fit(X[:2], ["a", "b"])
            done, odd = threading.Event(), []
            def copy():
                while not done.is_set():
                    twin = pickle.loads(pickle.dumps(model))
                    if twin.t_ != twin._state.scaler.count_:
                        odd.append((twin.t_, twin._state.scaler.count_))
                    twin.predict(X[:5])
            def predict():
                while not done.is_set():
                    model.predict(X[:5]), model.decision_function(X[:5])
            threads = [threading.Thread(target=target) for target in (copy, predict)]
            failed = []
            threading.excepthook = lambda arguments: failed.append(repr(arguments.exc_value))
            [thread.start() for thread in threads]
            for i in range(2, 600):
                model.partial_fit(X[i:i + 1], [f"label {i}"])
            done.set(); [thread.join() for thread in threads]
            assert not odd and not failed, (odd[:3], failed[:3])
        """)

    def test_first_calls_at_once(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
            for _ in range(100):
                model = ok.NORMA("squared")
                threads = [threading.Thread(target=model.partial_fit, args=(X[i::4], y[i::4])) for i in range(4)]
                [thread.start() for thread in threads], [thread.join() for thread in threads]
                assert model.t_ == 40
        """)

    def test_scalers_and_labels_take_their_turns(self):
        run_apart("""
            sys.setswitchinterval(1e-6)
            rng = np.random.default_rng(0)
            X = rng.normal(size=(400, 2))
            model = ok.NORMA("multiclass_hinge", scale=True).partial_fit(X[:1], ["first"])
            def work(name):
                for i in range(100):
                    label = f"{name}{i}"
                    model.learn_one(X[i], label) if i % 2 else model.partial_fit(X[i:i + 2], [label, "first"])
            threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert model.t_ == model._state.scaler.count_ == 1 + 4 * 150
            assert len(model.classes_) == 1 + 4 * 100
            model.predict(X)
            model._state.engine._check()
        """)


def test_importing_the_library_does_not_import_scikit_learn():
    run_apart("assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules and 'scipy' not in sys.modules")
