"""Functions that are sums over terms: coefficients in the slots of a dictionary, a budget, the kernel over points."""
cimport cython
from onlinekernels._core.dictionary cimport Dictionary, Observer, Table
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.functions cimport Example, Function, Outputs, Removal, Scratch, Term

# Losses, or sizes, that differ by less than this are equal: then the oldest goes, whatever the rounding.
cdef double NEARLY


cdef class Coefficients(Observer)


cdef class Budget:
    cdef Coefficients terms                 # whose budget it is,
    cdef Dictionary dictionary              # and the points of these
    cdef readonly long long most            # terms at most
    cdef readonly bint looks_at_candidates   # whether `evict` wants the kernel values of a candidate

    cdef Py_ssize_t numbers(self) noexcept
    cdef bint consult(self, Function f, Scratch w, Example e, long long t) noexcept nogil
    cdef Py_ssize_t evicted(self, double size) noexcept nogil
    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil
    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil
    cdef Py_ssize_t expiring(self, long long t) noexcept nogil
    cdef void entered(self, Py_ssize_t slot) noexcept nogil
    cdef void left(self, Py_ssize_t slot) noexcept nogil
    cdef void changed(self) noexcept nogil
    cdef int begin(self) except -1
    cdef int prepare(self, Py_ssize_t capacity) except -1
    cdef void arrange(self) noexcept nogil

    # For budgets that weigh coefficients
    @cython.final
    cdef void spread(self, Py_ssize_t slot, const Term* term, double* out) noexcept nogil
    @cython.final
    cdef double product(self, Scratch w, const double* a, const double* b) noexcept nogil


cdef class Coefficients(Observer):
    cdef readonly Dictionary dictionary     # the points
    cdef readonly Budget budget             # which terms stay
    cdef readonly Outputs outputs           # those that there is a row for; None where terms have pairs of labels
    cdef readonly int channels              # of the frame
    cdef readonly Py_ssize_t rows           # numbers stored per channel
    cdef readonly Table table               # (channels * rows, capacity), in frame coordinates; 0 for no term
    cdef bint stale                         # a coefficient has faded to 0: settle soon
    cdef bint keeps_zeros                   # a term stays although its coefficient is 0: it may move yet

    # Depends on how coefficients spread over labels
    cdef Py_ssize_t kept(self) noexcept nogil
    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil
    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil
    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil
    cdef void add_slots(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil
    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil

    # The same for all
    @cython.final
    cdef double* column(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef double* row(self, Py_ssize_t row) noexcept nogil
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
    cdef double* totals                 # sums over terms for each row of the piece (channels * width, rows), or NULL


cdef class Terms(Function):
    cdef readonly Dictionary dictionary # the points
    cdef readonly Coefficients terms    # their coefficients

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef int reserve_for_budget(self, Scratch w) except -1


@cython.final
cdef class KernelTerms(Terms):
    cdef int add_up_by_slots(self, TermsScratch w, int last) except -1
