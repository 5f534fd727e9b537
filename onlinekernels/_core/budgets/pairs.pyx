"""Budgets that keep a number for each two of their terms."""
import numpy as np
from libc.string cimport memcpy
from onlinekernels._core.arrays import check_array
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.tables cimport SquareTable
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Outcome, Term


cdef class PairBudget(Budget):
    """A budget that keeps a number for each two of its terms, which newcomers bring with them: see `row`."""

    cdef void take_row(self, Coefficients terms, const double* row, double own) noexcept nogil:
        """A newcomer has these numbers with all slots in use, and with itself. O(n)."""
        if terms.dictionary.size():
            memcpy(self.row, row, terms.dictionary.size() * sizeof(double))
        self.own = own

    cdef void hand_over(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """The numbers are kernel values. O(n)."""
        self.take_row(terms, w.piece.values, w.piece.own[i])

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """O(n)."""
        cdef Py_ssize_t other, start = terms.dictionary.start, capacity = self.pairs.capacity
        cdef double* numbers = <double*> self.pairs.data
        cdef const char* mine = terms.mine.data
        for other in range(start, terms.dictionary.stop):
            if other != slot and mine[other]:
                numbers[slot * capacity + other] = numbers[other * capacity + slot] = self.row[other - start]
        numbers[slot * capacity + slot] = self.own

    cdef int begin(self, Coefficients terms) except -1:
        """O(n^2)."""
        self.pairs, self.rows_of_newcomers = terms.dictionary.add_table(SquareTable()), terms.dictionary.new_table(1)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        self.row = <double*> self.rows_of_newcomers.data

    def state(self, Coefficients terms, slots):
        """O(n^2)."""
        numbers = self.pairs.array[np.ix_(slots, slots)]
        mine = terms.mine.array[0, slots] != 0
        return {"between": np.where(mine[:, None] & mine, numbers, 0.0)[np.triu_indices(len(slots))]}

    def check_numbers(self, state, Py_ssize_t n):
        """O(n^2)."""
        check_array(state["between"], "between", np.float64, (n * (n + 1) // 2,))

    def restore(self, Coefficients terms, state):
        """O(n^2)."""
        upper, n = np.triu_indices(len(state["birthdays"])), len(state["birthdays"])
        self.pairs.array[:n, :n][upper] = state["between"]
        self.pairs.array[:n, :n].T[upper] = state["between"]

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        mine = np.flatnonzero(terms.mine.array[0])
        numbers = self.pairs.array[np.ix_(mine, mine)]
        assert np.array_equal(numbers, numbers.T)
