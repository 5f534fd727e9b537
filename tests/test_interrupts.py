"""Ctrl-C, or a want of memory, at any place while a model learns: the model is whole, and goes on."""
import os
import signal

import pytest
from faults import FAULTS, KINDS, places, set_nomemory, survives

THOROUGH = bool(os.environ.get("ONLINEKERNELS_THOROUGH"))  # every place, instead of some
SOME = {"interrupt": 7, "interrupt in core": 23, "memory in core": 11, "allocation": 23}
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_at_any_place_leaves_a_model_that_goes_on(name):
    for fault, some in SOME.items():
        n = places(name, fault)
        stride = 1 if THOROUGH else max(1, n // some)
        for place in range(1 + n % stride, n + 1, stride):
            survives(name, fault, place)


@pytest.mark.skipif(set_nomemory is None, reason="needs _testcapi")
@pytest.mark.parametrize("name", KINDS if THOROUGH else ["silk", "window", "lasvm", "nystroem labels", "budgeted trees", "scaled"])
def test_any_request_for_memory_may_be_refused(name):
    place, stride = 1, 1 if THOROUGH else 197
    while survives(name, "object", place):
        place += stride


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("name", KINDS if THOROUGH else ["silk", "window", "lasvm", "nystroem labels", "words"])
def test_a_signal_at_any_time_leaves_a_model_that_goes_on(name):
    for microseconds in range(50, 12_000, 20 if THOROUGH else 1000):
        survives(name, "timer", microseconds)


def test_all_faults_are_tried():
    assert set(FAULTS) == {*SOME, "object", "timer"}
