"""Calls in any order: estimators of every kind, against a twin that learns the same rows one by one.

ONLINEKERNELS_MACHINES sets how many machines are run; the default is small enough for every day.
"""
import copy
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contracts.registry import KINDS, ROWS, SIGNS, Transformer
from contracts.test_contracts import assert_near, assert_same, bad_calls, shown, through_file, y_of

CUTS = {"partial_fit": [], "progressive": [], "chunks": [1, 3]}


class Calls(RuleBasedStateMachine):
    """A model, and its twin that learns the same rows one by one."""

    @initialize(name=st.sampled_from(sorted(KINDS)))
    def begin(self, name):
        self.name, self.kind, self.fitted = name, KINDS[name], False
        self.model, self.twin = self.kind.make(), self.kind.make()
        self.is_transformer = isinstance(self.kind, Transformer)

    @rule(first=st.integers(0, ROWS - 1), size=st.integers(1, 70), how=st.sampled_from(sorted(CUTS)))
    def learn(self, first, size, how):
        last, row = min(first + size, ROWS), first
        for end in [*(first + cut for cut in CUTS[how] if first + cut < last), last]:
            if how == "progressive" and not self.is_transformer:
                self.model.progressive(self.kind.points(row, end), y_of(self.kind, row, end))
            else:
                self.kind.call(self.model, row, end)()
            row = end
        for row in range(first, last):
            X, y = self.kind.points(row, row + 1), y_of(self.kind, row, row + 1)
            self.twin.partial_fit(X) if self.is_transformer else self.twin.partial_fit(X, y)
        self.fitted = True

    @rule(first=st.integers(0, ROWS - 30), size=st.integers(8, 30))
    def fit(self, first, size):
        y = y_of(self.kind, first, first + size)
        if self.is_transformer or y is not None and self.kind.y is SIGNS and len(set(y)) < 2:
            return
        self.model.fit(self.kind.points(first, first + size), y)
        self.twin, self.fitted = copy.deepcopy(self.model), True  # classes may be shown in another order from now on

    @precondition(lambda self: self.fitted)
    @rule(how=st.sampled_from(["pickle", "deepcopy", "copy", "save"]))
    def come_back(self, how):
        if how == "save" and hasattr(self.model, "save"):
            with tempfile.TemporaryDirectory() as folder:
                again = through_file(self.model, Path(folder))
        else:
            is_pickled = how in ("pickle", "save")
            again = pickle.loads(pickle.dumps(self.model)) if is_pickled else getattr(copy, how)(self.model)
        assert_same(self.name, again, self.model)
        self.model = again

    @precondition(lambda self: self.fitted)
    @rule()
    def look(self):
        before = pickle.dumps(self.model)
        for value in shown(self.name, self.model).values():
            array = np.asarray(value, dtype=object)
            assert all(number == number for number in array.ravel() if isinstance(number, float))
        repr(self.model), self.model.get_params()
        assert len(pickle.dumps(self.model)) == len(before)

    @precondition(lambda self: self.fitted and not self.is_transformer)
    @rule(place=st.integers(0, 40))
    def refuse(self, place):
        bad = [call for call in bad_calls(self.kind) if hasattr(self.model, call[1])]
        what, method, arguments = bad[place % len(bad)]
        keywords = {}
        if what == "bad weights":
            *arguments, keywords["sample_weight"] = arguments
        before = shown(self.name, self.model)
        with pytest.raises((ValueError, TypeError)):
            getattr(self.model, method)(*arguments, **keywords)
        assert_same(self.name, self.model, before)

    @invariant()
    def it_is_its_twin(self):
        if getattr(self, "fitted", False):
            if hasattr(self.model._state, "backend"):
                self.model._state.backend._check()
            assert_near(self.name, self.model, self.twin, 1e-6)


Calls.TestCase.settings = settings(max_examples=int(os.environ.get("ONLINEKERNELS_MACHINES", "60")),
                                   stateful_step_count=12, deadline=None, derandomize="ONLINEKERNELS_MACHINES" not
                                   in os.environ, database=None, suppress_health_check=list(HealthCheck),
                                   print_blob=True,)
TestCalls = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")(Calls.TestCase)
