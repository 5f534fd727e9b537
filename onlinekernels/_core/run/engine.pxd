"""The engine: the loop over a stream."""
cimport cython
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.functions cimport Example, Function, Outputs, Scratch
from onlinekernels._core.run.hypothesis cimport Hypothesis
from onlinekernels._core.transforms cimport Scaler
from onlinekernels._core.targets cimport TargetScaler


cdef struct Trace:
    # Where to write what was current at each example, before it was learned; NULL for what nobody wants.
    double* scores          # so many numbers for each example:
    Py_ssize_t stride
    double* steps
    double* norms           # |f|
    double* scalars         # the loss's margin or width
    double* deviations      # of f
    double* half_widths     # of intervals, of each target,
    int level               # of this coverage: see `level_of`
    double share
    double factor


@cython.final
cdef class Engine(Backend):
    cdef readonly Hypothesis hypothesis
    cdef Function function              # of the hypothesis
    cdef Outputs outputs                # the labels
    cdef readonly bint growing
    cdef readonly bint leaves_out
    cdef readonly Scaler scaler
    cdef readonly TargetScaler target_scaler
    cdef list spare                     # (scratch, example) that no call has at present
    # The call
    cdef Py_ssize_t earlier             # rows of the user's call before it
    cdef tuple lent                     # the scratch and the example that it has:
    cdef Scratch scratch
    cdef Example example
    # Its block
    cdef bint is_open
    cdef bint is_scaled                 # whether its rows have been scaled
    cdef Py_ssize_t first               # row of the call with which it begins
    cdef Py_ssize_t rows                # how many
    cdef Py_ssize_t done_before         # `done` when it was opened
    cdef const double* y
    cdef const double* weights          # NULL: all 1
    cdef Py_ssize_t joined_before       # labels before the row that was evaluated

    cdef Py_ssize_t loop(self, Trace* trace) noexcept nogil
    cdef bint evaluate_row(self, Scratch w, Example e, Py_ssize_t i, const Trace* trace) noexcept nogil
    cdef bint learn_row(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil
    cdef bint refuse_row(self) noexcept nogil
    cdef tuple lend(self)
    cdef int take_back(self, tuple lent) except -1
    cdef int make_room_for(self, Py_ssize_t labels) except -1
    cdef int tell_what_was_known(self, known, Py_ssize_t first, Py_ssize_t rows) except -1
    cdef Py_ssize_t measure(self, norm, double* out, Py_ssize_t rows) except -1
    cdef int scale_rows(self, Scratch w, const char* data, Py_ssize_t first, Py_ssize_t rows) except -1
    cdef int evaluate_deviations(self, examples, Py_ssize_t n, double* deviations, Py_ssize_t spread) except -1
