"""Members that learn side by side: the same bits as one after another, whatever happens meanwhile."""
import _thread
import gc
import time

import numpy as np
import pytest
from apart import run_apart

import onlinekernels as ok

RNG = np.random.default_rng(0)
N = 420
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
LABELS = np.array(["one", "two", "three"])[np.digitize(Y, [-0.3, 0.6])]
LABELS[:150][LABELS[:150] == "three"] = "two"
SIZES = (1, 15, 16, 40, 128, 220)  # of chunks: some too small for threads, one of several blocks


def numbers(n_jobs=1):
    return ok.Stacking([ok.KRLS(kernel=ok.Gaussian(1.0), budget=30), ok.Smoother("squared"),
                        ok.SelfTuned(window=100, budget=9),
                        ok.Hedge([ok.SILK("squared", budget=20), ok.NORMA("squared", budget=20)], n_jobs=2),
                        ok.SILK("absolute", "laplacian", budget=30)], n_jobs=n_jobs)


MAKERS = {"numbers": (numbers, Y), "regressor": (lambda n: ok.OnlineKernelRegressor("low", n_jobs=n), Y),
          "classifier": (lambda n: ok.OnlineKernelClassifier("low", n_jobs=n), LABELS),
          "detector": (lambda n: ok.OnlineKernelDetector(0.1, "low", n_jobs=n), None)}


def learned(model, y, sizes=SIZES):
    """Scores before each row, as bytes."""
    found, begin = [], 0
    for size in sizes:
        rows = slice(begin, begin + size)
        found.append(model.progressive(X[rows], None if y is None else y[rows]).tobytes())
        begin += size
    return found


def threads_now():
    """How many threads there are when those of models that are gone have ended."""
    gc.collect()
    time.sleep(0.2)
    return _thread._count()


def extra_threads(before, expected, seconds=30):
    """Threads beyond those before, as soon as they are as many as expected, or in vain."""
    end = time.monotonic() + seconds
    while _thread._count() - before != expected and time.monotonic() < end:
        time.sleep(0.01)
    return _thread._count() - before


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_bits_with_one_two_and_three(name):
    make, y = MAKERS[name]
    models, before = [make(n) for n in (1, 2, 3)], threads_now()
    one, two, three = (learned(model, y) for model in models)
    assert one == two == three
    assert extra_threads(before, 2 + 3) == 5
    assert len({model.predict(X).tobytes() for model in models}) == 1


def test_threads_come_when_needed_and_go_with_the_model():
    before = threads_now()
    model = numbers(2)
    learned(model, Y, (15, 1))
    assert _thread._count() == before, "blocks that are too small"
    learned(model, Y, (16, 128))
    learned(model, Y, (40,))
    assert extra_threads(before, 2) == 2, "one pool for all calls, and none for members"
    model.n_jobs = 3
    learned(model, Y, (40,))
    assert extra_threads(before, 3) == 3
    model.n_jobs = 1
    learned(model, Y, (40,))
    assert extra_threads(before, 0) == 0, "nobody needs them"
    model.n_jobs = 2
    learned(model, Y, (40,))
    assert extra_threads(before, 2) == 2
    del model
    gc.collect()
    assert extra_threads(before, 0) == 0


HELPERS = """
rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 3)); Y = np.sin(2 * X[:, 0])
def make(n_jobs, **others):
    return ok.Stacking([ok.KRLS(kernel=ok.Gaussian(1.0), budget=30), ok.Smoother("squared"), ok.SelfTuned(window=200,
    budget=9),
                        ok.SILK("absolute", "laplacian", budget=30)], n_jobs=n_jobs)
def in_child(work, seconds=60):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL), os.waitpid(child, 0)
    raise AssertionError("the child hangs")
"""


def apart(code, **others):
    run_apart(HELPERS + code, **others)


needs_fork = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no forks here")


@needs_fork
def test_a_fork_goes_on_with_threads_of_its_own():
    apart("""
import _thread, gc
model, one = make(2).partial_fit(X[:300], Y[:300]), make(1).partial_fit(X[:300], Y[:300])
def work():
    before = _thread._count()                   # of which some are not there any more
    assert (model.progressive(X[300:700], Y[300:700]) == one.progressive(X[300:700], Y[300:700])).all()
    while _thread._count() < before + 2:
        time.sleep(0.01)
    in_child(lambda: model.partial_fit(X[700:900], Y[700:900]))
def forget():
    globals().pop("model"), gc.collect()
    make(2).partial_fit(X[:100], Y[:100])
in_child(work)
in_child(forget)
assert (model.progressive(X[300:700], Y[300:700]) == one.progressive(X[300:700], Y[300:700])).all()
""")


@pytest.mark.parametrize("end", ["", "threading.Thread(target=lambda: [model.partial_fit(X, Y) for _ in range(10**6)], "
                                     "daemon=True).start()\n"
                                     "time.sleep(0.05)", "import weakref; model.me = model; model = None"],
                         ids=["idle", "at work", "in a cycle"])
def test_the_interpreter_ends(end):
    apart(f"model = make(2).partial_fit(X[:300], Y[:300])\n{end}\n", timeout=60)
