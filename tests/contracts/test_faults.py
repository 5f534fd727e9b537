"""Ctrl-C, or a want of memory, at any place while a model learns: the model is whole, and goes on."""
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from contracts.registry import KINDS, LETTERS, NEW, POINTS, SIGNS, G
from faults import FAULTS, disturbed, places, survives

import onlinekernels as ok
from onlinekernels._core.lock import ReadWriteLock

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:  # not every Python comes with it
    set_nomemory = None

THOROUGH = bool(os.environ.get("ONLINEKERNELS_THOROUGH"))  # every place, instead of some
SOME = {"interrupt": 5, "interrupt in core": 9, "memory": 2, "memory in core": 3, "allocation": 13}
FEW = {"interrupt": 3, "memory": 2, "allocation": 2}  # of models that are made of several, and take longer
pytestmark = pytest.mark.filterwarnings(
    "ignore::onlinekernels.LearningWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # of a generator that was interrupted
)


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_at_any_place_leaves_a_model_that_goes_on(name):
    some = FEW if KINDS[name].is_composite and not THOROUGH else SOME
    if "own" in name:  # what users wrote is called while blocks are opened
        some = {**FEW, "interrupt in core": 9, "memory in core": 5}
    for fault in [fault for fault in some if fault in FAULTS]:
        n = places(name, fault)
        stride = 1 if THOROUGH else max(1, n // some[fault])
        for place in range(1 + n % stride, n + 1, stride):
            survives(name, fault, place)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("name",
                         KINDS if THOROUGH else ["silk", "window", "lasvm", "nystroem labels", "words", "selftuned",
                                                 "stacking several"])
def test_a_signal_at_any_time_leaves_a_model_that_goes_on(name):
    for microseconds in range(50, 12_000, 20 if THOROUGH else 1000):
        survives(name, "timer", microseconds)


@pytest.mark.parametrize("model", [
    ok.Adatron(G), ok.LASVM(G, epochs=2), ok.NORMA("multiclass_hinge", G, epochs=2, budget=9, scale=True)
], ids=lambda model: type(model).__name__)
def test_a_fault_in_fit_leaves_a_model_and_fit_starts_anew(model):
    y = SIGNS if model._current_loss().task == "binary" else LETTERS
    expected = copy.copy(model).fit(POINTS, y).decision_function(NEW)
    for fault in [fault for fault in ("interrupt", "allocation") if fault in FAULTS]:
        counted = FAULTS[fault](None)
        attempt(copy.copy(model), counted, y)
        for place in range(1, counted.seen + 1, max(1, counted.seen // (10_000 if THOROUGH else 9))):
            survivor = copy.copy(model)
            attempt(survivor, FAULTS[fault](place), y)
            survivor = pickle.loads(pickle.dumps(survivor))
            if survivor._state is not None:
                survivor._state.engine._check()
            assert np.array_equal(survivor.fit(POINTS, y).decision_function(NEW), expected)


def attempt(model, fault, y):
    """Fit a model, in spite of a fault."""
    fault.start()
    try:
        model.fit(POINTS, y)
    except (KeyboardInterrupt, MemoryError):
        pass
    finally:
        fault.stop()


@pytest.mark.parametrize("name", ["front door numbers", "front door labels", "front door novelty"])
def test_no_row_counts_twice_in_a_transform_for_want_of_memory(name):
    """Where one transform has opened a block and the next one cannot, or a member cannot, the rows will come again."""
    kind = KINDS[name]
    learned, struck = kind.make(), 0
    kind.call(learned, 0, 30)()
    # the first of these are before members begin
    for fault, last, stride in (("allocation", 40, 1), ("memory", 700, 23)):
        for place in range(1, 10 * last) if THOROUGH else range(1, last, stride):
            model = copy.deepcopy(learned)
            try:
                disturbed(FAULTS[fault](place), kind.call(model, 30, 40))
            except MemoryError:
                struck += model.t_ == 30
            model._state.backend._check()
    assert struck > 20


def test_all_faults_are_tried():
    assert {*FAULTS, "allocation"} == {*SOME, "timer"}


REFUSED = """
import types

import numpy as np
from _testcapi import remove_mem_hooks, set_nomemory

import onlinekernels as ok
from onlinekernels._core import errors

# NumPy's own crashes where it is refused memory
errors.np = types.SimpleNamespace(errstate=lambda **_: lambda function: function)
rng = np.random.default_rng(0)
X, y, failed = rng.normal(size=(300, 40)), rng.normal(size=300), 0
for kernel, budget in (("gaussian", 150), (ok.RandomFourier(ok.Gaussian(2.0), 64), None)):
    for place in range(1, 160):
        model = ok.NORMA("squared", kernel, budget=budget, step=0.01).partial_fit(X[:150], y[:150])
        set_nomemory(place, place + 3)
        try:
            model.partial_fit(X[150:], y[150:])
        except (MemoryError, SystemError, RuntimeError, ValueError):
            failed += 1
        finally:
            remove_mem_hooks()
        model.partial_fit(X[150:], y[150:])  # it is not locked, and goes on
print(failed)
"""


@pytest.mark.skipif(set_nomemory is None, reason="needs _testcapi")
def test_three_requests_for_memory_in_a_row_may_be_refused():
    """Such as those of a context manager when it is entered and left: nothing crashes, and no model stays locked."""
    result = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert result.returncode == 0 and int(result.stdout) > 50, (result.returncode, result.stderr[-2000:])


@pytest.mark.skipif(set_nomemory is None, reason="needs _testcapi")
def test_a_turn_is_left_without_memory():
    turn, entered = ReadWriteLock(), []

    def enter():
        with turn.shared:
            entered.append(True)

    turn.alone.__enter__()
    thread = threading.Thread(target=enter)
    thread.start()
    while not turn.n_waiting:
        pass
    set_nomemory(0)
    try:
        turn.alone.__exit__(None, None, None)
    finally:
        remove_mem_hooks()
    thread.join()
    with turn.alone:
        assert entered
