"""Functions that are sums over terms: coefficients in the slots of a dictionary, a budget, and the kernel over its points."""
cimport cython
from onlinekernels._core.dictionary cimport Dictionary, Observer, Table
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.functions cimport Function, Outcome, Scratch, Term

# Losses, or sizes, that differ by less than this are equal: then the oldest goes, whatever the rounding.
cdef double NEARLY


cdef class Coefficients(Observer)


cdef class Budget:
    cdef readonly long long most            # terms at most
    cdef readonly bint looks_at_candidates   # whether `make_room` wants the kernel values of a candidate

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept
    cdef Py_ssize_t evicted(self, Coefficients terms, double size) noexcept nogil
    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil
    cdef void redistribute(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil
    cdef Py_ssize_t expiring(self, Coefficients terms, long long t) noexcept nogil
    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil
    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil
    cdef void changed(self, Coefficients terms) noexcept nogil
    cdef int begin(self, Coefficients terms) except -1
    cdef int prepare(self, Coefficients terms, Py_ssize_t capacity) except -1
    cdef void arrange(self, Coefficients terms) noexcept nogil
    cdef int widen(self, Coefficients terms, Py_ssize_t rows) except -1


cdef class Coefficients(Observer):
    cdef readonly Dictionary dictionary     # the points
    cdef readonly Budget budget             # which terms stay
    cdef readonly int channels              # of the frame
    cdef readonly Py_ssize_t rows           # numbers stored per channel
    cdef readonly Table stored              # (channels * rows, capacity), in frame coordinates; 0 where there is no term
    cdef bint stale                         # a coefficient has faded to 0: settle soon
    cdef bint keeps_zeros                   # a term stays although its coefficient is 0: it may move yet

    # Depends on how coefficients spread over labels
    cdef Py_ssize_t kept(self) noexcept nogil
    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil
    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil
    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil
    cdef void add_up_carefully(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil
    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m, double* totals) noexcept nogil

    # The same for all
    @cython.final
    cdef double* column(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef bint holds(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef double size_of(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef bint is_zero(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef void put(self, Py_ssize_t slot, const Term* term) noexcept nogil
    @cython.final
    cdef void drop(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef Py_ssize_t list_slots(self, Py_ssize_t* out) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void fold(self, const Frame* frame) noexcept nogil


@cython.final
cdef class TermsScratch(Scratch):
    cdef double* totals                 # sums over all terms for each row of the piece, (channels * width, rows); or NULL


cdef class Terms(Function):
    cdef readonly Dictionary dictionary # the points
    cdef readonly Coefficients terms    # their coefficients

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil


@cython.final
cdef class KernelTerms(Terms):
    cdef int add_up_by_slots(self, TermsScratch w, int last) except -1
    cdef int make_budget_room(self, Scratch w) except -1
