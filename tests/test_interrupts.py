"""Ctrl-C, or a want of memory, at any place while a model learns: the model is whole, and goes on."""
import os
import signal

import pytest
from faults import FAULTS, KINDS, places, survives

THOROUGH = bool(os.environ.get("ONLINEKERNELS_THOROUGH"))  # every place, instead of some
SOME = {"interrupt": 5, "interrupt in core": 9, "memory in core": 3, "allocation": 13}
pytestmark = pytest.mark.filterwarnings(
    "ignore::onlinekernels.LearningWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # of a generator that was interrupted
)


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_at_any_place_leaves_a_model_that_goes_on(name):
    for fault, some in SOME.items():
        n = places(name, fault)
        stride = 1 if THOROUGH else max(1, n // some)
        for place in range(1 + n % stride, n + 1, stride):
            survives(name, fault, place)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("name", KINDS if THOROUGH else ["silk", "window", "lasvm", "nystroem labels", "words"])
def test_a_signal_at_any_time_leaves_a_model_that_goes_on(name):
    for microseconds in range(50, 12_000, 20 if THOROUGH else 1000):
        survives(name, "timer", microseconds)


def test_all_faults_are_tried():
    assert set(FAULTS) == {*SOME, "timer"}
