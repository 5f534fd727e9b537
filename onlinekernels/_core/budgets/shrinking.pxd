"""A budget that scales f down before the oldest term goes: the Forgetron's."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget


@cython.final
cdef class ShrinkingBudget(PairBudget):
    cdef readonly double won            # by the updates so far: M, their number, for a Perceptron
    cdef readonly double damage         # Q: what removals have cost so far, at most
