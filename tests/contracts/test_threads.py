"""Threads, forks and signals: every model takes turns, and what is seen of it is one state."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from apart import run_apart
from cases import covering, each
from storm import NAMES


@pytest.mark.parametrize("names, seconds", [
    pytest.param(NAMES[::5], 0.06, id="some"),
    *[pytest.param([name], 0.5, id=name, marks=pytest.mark.slow) for name in NAMES]])
def test_what_is_seen_in_a_storm_is_one_state(names, seconds):
    """Seconds that each estimator is in the storm; more of them finds what is rare."""
    seconds = float(os.environ.get("ONLINEKERNELS_STORM", seconds))
    command = [sys.executable, str(Path(__file__).parents[1] / "storm.py"), str(seconds), *names]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120 + 60 * seconds * len(names))
    assert result.returncode == 0, result.stderr[-3000:]


class TestTurns:
    def test_predictions_run_side_by_side(self):
        """Each of two predictions waits, in the middle of it, for the other one."""
        run_apart("""
            barrier, meeting = threading.Barrier(2, timeout=60), [False]
            def kernel(a, b):
                if meeting[0]:
                    barrier.wait()
                return float(np.exp(-abs(a - b)))
            model = ok.NORMA("squared", kernel).partial_fit([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
            expected = model.predict([0.5, 1.5])
            meeting[0], seen = True, []
            threads = [threading.Thread(target=lambda: seen.append(model.predict([0.5, 1.5]))) for _ in range(2)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert len(seen) == 2 and all((scores == expected).all() for scores in seen)
        """)

    def test_readers_and_learners_all_have_their_turn(self):
        """Threads that never pause: nobody waits for ever."""
        run_apart("""
            sys.setswitchinterval(1e-5)
            X = np.random.default_rng(0).normal(size=(60, 3))
            model, done = ok.NORMA("squared", budget=20).partial_fit(X, X[:, 0]), threading.Event()
            turns = {name: 0 for name in ("look", "predict", "learn", "learn too")}
            work = {"look": lambda: model.norm_, "predict": lambda: model.predict(X), "learn": lambda:
            model.partial_fit(X, X[:, 0]),
                    "learn too": lambda: model.learn_one(X[0], 0.0)}
            def run(name):
                while not done.is_set():
                    work[name]()
                    turns[name] += 1
            threads = [threading.Thread(target=run, args=(name,)) for name in [*turns, "predict", "look"]]
            [thread.start() for thread in threads]
            end = time.monotonic() + 60
            while min(turns.values()) < 5 and time.monotonic() < end:
                time.sleep(0.01)
            done.set(); [thread.join(60) for thread in threads]
            assert not any(thread.is_alive() for thread in threads) and min(turns.values()) >= 5, turns
        """)


class TestUserCode:
    """A loss, a kernel or a signal handler may look at the model that it interrupts, but not use it."""

    def test_it_must_not_learn_or_predict(self):
        run_apart("""
            y, active = [1, -1], [None]
            uses = {"fit": lambda: model.fit(X, y), "partial_fit": lambda: model.partial_fit(X, y),
                    "progressive": lambda: model.progressive(X, y), "predict": lambda: model.predict(X),
                    "learn_one": lambda: model.learn_one([0.5], 1), "decision_function": lambda:
                    model.decision_function(X)}
            X = [[0.5], [1.5]]
            def kernel(a, b):
                if active[0]:
                    active[0]()
                return float(np.exp(-abs(a[0] - b[0])))
            class Slope(ok.Loss):
                task = "binary"
                def value(self, score, y):
                    return -y * score
                def derivative(self, score, y):
                    if active[0]:
                        active[0]()
                    return -y
            for method, use in uses.items():
                for where in ("kernel", "loss", "predicting"):
                    model = ok.NORMA(Slope(), "gaussian") if where == "loss" else ok.NORMA("hinge", kernel)
                    model.partial_fit(np.array([[0.0], [1.0]]), y)
                    before = pickle.dumps(model.dual_coef_)
                    active[0] = use
                    try:
                        if where == "predicting":
                            model.predict(np.array([[2.0]]))
                        else:
                            model.partial_fit(np.array([[2.0]]), [1])
                    except RuntimeError as error:
                        assert "at work already" in str(error)
                    else:
                        raise AssertionError(f"{method} was not refused ({where})")
                    active[0] = None
                    assert pickle.dumps(model.dual_coef_) == before
                    model.partial_fit(np.array([[2.0]]), [1])
                    assert model.t_ == 3
        """)

    def test_a_loss_may_look_and_sees_one_state_with_its_scaler(self):
        run_apart("""
            X = np.random.default_rng(0).normal(3.0, 2.0, size=(60, 2))
            seen = []
            class Watching(ok.Squared):
                def derivative(self, score, y):
                    if len(seen) < 60 and watching:
                        seen.append((model.t_, model.n_terms_, model.norm_, pickle.dumps(model)))
                    return score - y
            for learn in ("chunk", "rows"):
                watching, model = True, ok.NORMA(Watching(), scale=True, step=0.1)
                seen.clear()
                watching = False
                model.partial_fit(X[:3], X[:3, 0])
                watching = True
                model.partial_fit(X[3:], X[3:, 0])
                watching = False
                for t, terms, norm, copy in seen:
                    twin = pickle.loads(copy)
                    assert twin.t_ == t == twin._state.scaler.count and twin.n_terms_ == terms
                    twin.partial_fit(X[t:], X[t:, 0])
                    assert np.allclose(twin.predict(X), model.predict(X), rtol=1e-9)
        """)

    @pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="needs interval timers")
    def test_a_signal_handler_may_look_and_pickle_but_not_learn(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(20000, 4)), rng.normal(size=20000)
            refused, copies = [], []
            def handler(*_):
                copies.append(pickle.dumps(model)), model.norm_
                try:
                    model.learn_one(X[0], 0.0)
                except RuntimeError as error:
                    refused.append(str(error))
            model = ok.SILK("squared", "gaussian", budget=100, scale=True).partial_fit(X[:5], y[:5])
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
            model.partial_fit(X[5:], y[5:])
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert refused and all("at work already" in error for error in refused)
            for copy in copies[:: max(1, len(copies) // 10)]:
                twin = pickle.loads(copy)
                twin._state.engine._check()
                assert twin.t_ == twin._state.scaler.count
                if twin.t_ < 20000:
                    twin.partial_fit(X[twin.t_:], y[twin.t_:])
                if model.t_ == 20000:
                    assert np.allclose(twin.predict(X[:20]), model.predict(X[:20]), rtol=1e-6, atol=1e-8)
        """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestForks:
    """A child finds every model free; one that another thread was in the middle of changing says so, and all others are
    whole."""

    FORK = """
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X, y = rng.uniform(0.1, 0.9, size=(1500, 5)), rng.normal(size=1500)
        if sparse:
            from scipy.sparse import csr_matrix
            X = csr_matrix(np.where(X > 0.5, X, 0.0))
        model = make("squared", kernel, budget=200).partial_fit(X[:500], y[:500])
        done = threading.Event()
        def work():
            while not done.is_set():
                model.partial_fit(X[:400], y[:400]) if learns else model.predict(X)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        for i in range(6):
            time.sleep(rng.uniform(0, 0.01))
            child = os.fork()
            if not child:
                signal.alarm(60)
                try:
                    twin = pickle.loads(pickle.dumps(model))
                    assert (twin.predict(X[:50]) == model.predict(X[:50])).all()
                    model.partial_fit(X[:50], y[:50]), model.norm_
                    model._state.engine._check()
                    os._exit(0)
                except BaseException as error:
                    if learns and isinstance(error, RuntimeError) and "forked" in str(error):
                        os._exit(0)             # and nothing more: a matrix product of that thread's may hold a lock
                        here
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        done.set(); thread.join()
        model._state.engine._check()
    """

    @covering(2)
    @each("learns", [True, False])
    @each("kernel", ["ok.Gaussian()", "ok.AdditiveMatern()", "dot", "sparse"])
    @each("algorithm", ["SILK", "KRLS"])
    def test_a_fork_while_another_thread_is_at_work(self, algorithm, kernel, learns, monkeypatch):
        head = f"""
        def dot(a, b):
            return float(a @ b)
        learns, sparse, kernel = {learns}, {kernel == "sparse"}, {"ok.Gaussian()" if kernel == "sparse" else kernel}
        make = ok.{algorithm}
        """
        if kernel == "sparse":
            pytest.importorskip("scipy")
        code = head + self.FORK
        # A fork in the middle of a matrix product on several threads can hang NumPy's own BLAS.
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
        if kernel == "dot":
            code = code.replace("size=(1500, 5)", "size=(60, 5)").replace("size=1500", "size=60")
        run_apart(code)

    def test_a_copy_that_was_cut_off_says_so(self):
        """The child must not take a half learned model for a whole one."""
        run_apart("""
            warnings.simplefilter("ignore")
            release = threading.Event()
            class Slow(ok.Squared):
                def derivative(self, score, y):
                    if y == 3.0:
                        release.wait(60)
                    return score - y
            model = ok.NORMA(Slow()).partial_fit([[0.0]], [0.0])
            thread = threading.Thread(target=model.partial_fit, args=(np.arange(9.0)[:, None], np.arange(9.0)),
            daemon=True)
            thread.start()
            time.sleep(0.3)
            child = os.fork()
            if not child:
                signal.alarm(60)
                try:
                    model.predict([[0.0]])
                except RuntimeError as error:
                    os._exit(0 if "forked" in str(error) else 1)
                os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
            release.set(); thread.join()
            assert model.t_ == 10
        """)
