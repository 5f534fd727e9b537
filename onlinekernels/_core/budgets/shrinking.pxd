"""A budget that scales f down before the oldest term goes: the Forgetron's."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget


@cython.final
cdef class ShrinkingBudget(PairBudget):
    cdef readonly long long mistakes    # M: terms that have entered
    cdef readonly double damage         # Q: what removals have cost so far, at most
