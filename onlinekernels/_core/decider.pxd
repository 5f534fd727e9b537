"""Deciding: an example and a rule make a move."""
from onlinekernels._core.expansion cimport Piece
from onlinekernels._core.hypothesis cimport Hypothesis
from onlinekernels._core.rules cimport Move, View


cdef class Decider(Hypothesis):
    cdef object custom_loss
    cdef readonly bint structured
    cdef const double* row              # y of the example, if it has several numbers
    cdef object error                   # the exception behind a failure
    cdef object rank_array
    cdef const long long* ranks         # place of each of the first labels among equals, or NULL
    cdef Py_ssize_t n_ranked

    cdef bint decide(self, const Piece* piece, Py_ssize_t i, double y, double weight,
                     Move* move) noexcept nogil
    cdef double shrink(self) noexcept nogil
    cdef void look(self, View* view) noexcept nogil
    cdef Py_ssize_t look_at_pair(self, Py_ssize_t y, View* view) noexcept nogil
    cdef bint goes_first(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef Py_ssize_t runner_up(self, Py_ssize_t y, const double* distance, double shrink) noexcept nogil
    cdef void look_at_prediction(self, Py_ssize_t y, const double* distance, View* view) noexcept nogil
    cdef void distances(self, Py_ssize_t y, double* out) noexcept nogil
    cdef bint differentiate(self, View* view, double weight) noexcept nogil
    cdef void move(self, View* view, double weight, Move* move) noexcept nogil
    cdef void add_average(self, Move* move) noexcept nogil
    cdef bint decide_dense(self, double k, Py_ssize_t y, double weight, Move* move) noexcept nogil
    cdef bint decide_targets(self, double k, double weight, Move* move) noexcept nogil
    cdef bint differentiate_dense(self, Py_ssize_t y, double weight) noexcept nogil
    cdef void meta_dense(self, double k, double weight, Move* move) noexcept nogil
    cdef void implicit_dense(self, double k, Py_ssize_t y, double weight, double eta,
                             Move* move) noexcept nogil
