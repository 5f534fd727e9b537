"""Norms that stay exact when terms go."""
cimport cython
from onlinekernels._core.formulas.moves cimport Norms, Standing
from onlinekernels._core.functions cimport Example, Function, Scratch, Term


@cython.final
cdef class ExactNorms:
    cdef Function function              # whose norms they are
    cdef bint has_trace                 # whether <f, v> is kept, too

    cdef void decide(self, const Standing* now, Example e) noexcept nogil
    cdef void project(self, Standing* now, Scratch w, Py_ssize_t slot, const Term* newcomer, double residual) noexcept nogil
    cdef void forget(self, Standing* now, Scratch w, Py_ssize_t slot, const Term* newcomer, double k_new) noexcept nogil
    cdef bint are_worn(self, const Standing* now) noexcept nogil
    cdef void renew(self, Standing* now, Scratch w) noexcept nogil
    cdef int renew_from_python(self, Standing* now) except -1
    # Parts of them
    cdef void over_labels(self, const Term* term, int channel, double* out) noexcept nogil
    cdef void subtract_residual(self, Norms* norms, Scratch w, Py_ssize_t first, Py_ssize_t stop,
                                double residual) noexcept nogil
    cdef void subtract_term(self, Norms* norms, Scratch w, Py_ssize_t first, Py_ssize_t stop, double own) noexcept nogil
