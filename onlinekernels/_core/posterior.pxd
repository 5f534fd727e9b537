"""Posteriors: what a second-order learner knows of f, and how well."""
cimport cython
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.functions cimport N_SHARED, Function, Scratch

cdef enum:
    CHECKPOINT = 64     # examples from one checkpoint of the stream, where points come and go, to the next

cdef double ROUNDING

cdef Py_ssize_t room_for(Py_ssize_t n) noexcept

cdef enum PosteriorBuffer:
    CROSS = N_SHARED
    MEANS
    COLUMNS             # of the factor of pending rows,
    TURNED              # and their coordinates, a row for each
    FEATURES
    TAKEN               # what is taken in at a checkpoint,
    FUTURE              # the covariance that it leads to,
    FUTURE_MEAN         # and the mean,
    PRODUCTS            # what is not determined of pending rows,
    JOINING             # what those that join have in common with the others,
    INVERSE             # what tells who leaves,
    LEAVING             # and what brings coordinates back to a triangle without them
    CHOSEN              # slots of the points, and who of them stays
    TOTALS


@cython.final
cdef class PosteriorScratch(Scratch):
    cdef double* cross                  # (rows, CHECKPOINT): what the rows of a piece have to do with pending ones,
    cdef double* means                  # (rows, outputs): and what was known of them at the last checkpoint
    # While several rows are learned; NULL for one
    cdef double* columns                # (CHECKPOINT, CHECKPOINT): columns of L_C up to the latest row, and behind these of C,
    cdef double* explained              # (CHECKPOINT): what those of L_C explain of the variance of each row,
    cdef double* expected               # (outputs, CHECKPOINT): and of its mean
    cdef Py_ssize_t end                 # pending rows when all of the piece are
    cdef double* features               # (rows, features)
    cdef Py_ssize_t row                 # that was evaluated last
    cdef double* taken                  # (CHECKPOINT, taken_stride): what is taken in at a checkpoint, a column for each coordinate
    cdef Py_ssize_t taken_stride        # its row length
    # While it predicts
    cdef const double* expansion        # coefficients of the mean; NULL while it learns
    cdef object expansion_array         # keeps them alive
    cdef double* totals                 # the mean at each row of the piece, (outputs, rows); or NULL


cdef class Posterior(Function):
    cdef readonly double memory             # what is left of f after one example: sqrt(memory)
    cdef readonly bint classes              # outputs are labels: y is +1 for one and -1 for all others
    cdef readonly Py_ssize_t n              # coordinates of u
    cdef readonly bint doubts               # whether the covariance of u goes back to the prior's at the next checkpoint
    cdef Py_ssize_t capacity                # coordinates that there is room for
    cdef readonly object mean               # U, a row for each output (width, capacity)
    cdef readonly object covariance         # S (capacity, capacity)
    # Of the pending rows: those since the last checkpoint
    cdef readonly object coordinates        # a, rows of A^T (CHECKPOINT, capacity)
    cdef readonly object corrections        # (S - I) a: of the prior's covariance
    cdef readonly object gram               # k(x_s, x_r) for r <= s (CHECKPOINT, CHECKPOINT); 0 with those that are left out
    cdef readonly Factor root               # L_C, which knows how many rows are pending
    cdef readonly object errors             # e, a row for each output (width, CHECKPOINT)
    cdef double* U                          # of `mean`
    cdef double* S                          # of `covariance`
    cdef double* a                          # of `coordinates`
    cdef double* b                          # of `corrections`
    cdef double* K                          # of `gram`
    cdef double* E                          # of `errors`
    cdef double fade[CHECKPOINT + 2]             # memory^(k / 2)
    cdef object expansion                   # coefficients of the mean as it is now; None when they are to be computed

    # To be implemented
    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1
    cdef int read(self, PosteriorScratch w, Py_ssize_t m) except -1
    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil
    cdef int conclude(self, PosteriorScratch w) except -1
    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil
    # The same for all
    cdef int set_room(self, Py_ssize_t capacity, Py_ssize_t width) except -1
    cdef int relate(self, PosteriorScratch w, Py_ssize_t m) except -1
    cdef void relate_one(self, PosteriorScratch w) noexcept nogil
    cdef void spread_out(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil
    cdef void next_column(self, PosteriorScratch w, Py_ssize_t s, double deviation, bint counts) noexcept nogil
    cdef void absorb(self, PosteriorScratch w, const double* innovation, double deviation, bint counts) noexcept nogil
    cdef void doubt(self) noexcept nogil
    cdef int begin_to_take_in(self, PosteriorScratch w, Py_ssize_t joining) except -1
    cdef double* future_mean(self, PosteriorScratch w, const double* V, Py_ssize_t joining) except NULL
    cdef double* future_covariance(self, PosteriorScratch w, Py_ssize_t joining) except NULL
    cdef void become(self, const double* mean, const double* covariance, Py_ssize_t stride, Py_ssize_t n) noexcept nogil
