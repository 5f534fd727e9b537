"""Functions that are weight vectors: a linear kernel without a budget, O(n_features) or O(non-zeros) per example."""
import numpy as np
from libc.math cimport sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.frame cimport MAX_CHANNELS, frame_reset, frame_row
from onlinekernels._core.function cimport Function
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.sparse cimport attach_rows
from onlinekernels._core.vecmath cimport ok_axpy, ok_dot
from onlinekernels._core.workspace cimport OWN, Workspace


cdef class Weights(Function):
    """f(x, y) = scale <w_y, x>.

    Parameters
    ----------
    scale : float
        k(x, z) = scale <x, z>.
    n_features, channels, outputs
        As for `Function`; rows are float64.
    """

    def __init__(self, *, double scale, n_features, int channels, Outputs outputs):
        Function.__init__(self, n_features, np.float64, channels, outputs)
        self.keeps = "weights"
        self.scale = scale
        self.set_weights(np.zeros((channels * self.width, self.n_features)))

    cdef set_weights(self, weights):
        self.weights = weights
        self.data = <double*> array_data(weights)

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t i
        w.begin_piece(m)
        w.piece.x = w.source_data + first * self.n_features * sizeof(double)
        w.own = <double*> w.buffer(OWN, m * sizeof(double))
        with nogil:
            for i in range(m):
                w.own[i] = self.scale * self.own_square(w, i)
        return 0

    cdef double dot(self, Workspace w, Py_ssize_t i, const double* weights) noexcept nogil:
        """<weights, x_i>."""
        return ok_dot(weights, <const double*> w.piece.x + i * self.n_features, self.n_features)

    cdef double own_square(self, Workspace w, Py_ssize_t i) noexcept nogil:
        return self.dot(w, i, <const double*> w.piece.x + i * self.n_features)

    cdef void add_to(self, Workspace w, Py_ssize_t i, double c, double* weights) noexcept nogil:
        """weights += c x_i."""
        ok_axpy(c, <const double*> w.piece.x + i * self.n_features, weights, self.n_features)

    cdef void evaluate(self, Workspace w, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t y
        cdef int channel
        for channel in range(last + 1):
            for y in range(self.outputs.n):
                w.sums[channel * self.width + y] = self.scale * self.dot(
                    w, i, self.data + (channel * self.width + y) * self.n_features)
        self.make_true(w, last, out)

    cdef double reach(self, double own) noexcept nogil:
        return sqrt(own) if own > 1.0 else 1.0

    cdef void add(self, Workspace w, Py_ssize_t i, long long t) noexcept nogil:
        cdef Py_ssize_t k
        cdef int channel
        cdef double c
        for channel in range(self.frame.channels):
            for k in range(w.term.n):
                c = w.term.stored[channel * w.term.n + k]
                if c != 0.0:
                    self.add_to(w, i, c, self.data + (channel * self.width + w.term.labels[k]) * self.n_features)

    cdef void fold(self, Workspace w) noexcept nogil:
        cdef Py_ssize_t j, size = self.width * self.n_features
        cdef int channel
        cdef double stored[MAX_CHANNELS]
        for j in range(size):
            for channel in range(self.frame.channels):
                stored[channel] = self.data[channel * size + j]
            for channel in range(self.frame.channels):
                self.data[channel * size + j] = frame_row(&self.frame, channel, stored)
        frame_reset(&self.frame)

    # ---- For Python ---------------------------------------------------------------------------

    def by_channel(self):
        """Stored weights (channels, labels, n_features)."""
        return self.weights.reshape(self.frame.channels, self.width, self.n_features)[:, :self.outputs.n]

    def widen(self, Py_ssize_t width):
        cdef Py_ssize_t channels = self.frame.channels
        weights = np.zeros((channels, width, self.n_features))
        weights[:, :self.width] = self.weights.reshape(channels, self.width, self.n_features)
        self.set_weights(weights.reshape(channels * width, self.n_features))

    def copy_last(self, Py_ssize_t n):
        weights = self.weights.reshape(self.frame.channels, self.width, self.n_features)
        weights[:, n:] = weights[:, n - 1:n]

    def coefficients(self, int channel):
        """True weights of a channel, (labels, n_features)."""
        return self.true_rows(self.by_channel(), channel)

    def begin_from(self, points, weights, pairs=None):
        """Start from these weights."""
        self.weights[:len(weights)] = weights

    def state(self):
        """Named numbers and arrays; no scratch."""
        weights = self.by_channel()[:, :self.outputs.kept()]
        return {**self.frame_state(), "weights": weights.reshape(-1, self.n_features).copy()}

    def check_state(self, state):
        """ValueError unless a state fits."""
        self.check_frame(state)
        rows = self.frame.channels * state["labels"]
        check_array(state["weights"], "weights", np.float64, (rows, self.n_features))

    def restore(self, state):
        """Continue from a state that has been checked."""
        self.restore_frame(state)
        self.by_channel()[:] = state["weights"].reshape(self.frame.channels, state["labels"], self.n_features)


cdef class SparseWeights(Weights):
    """The same on sparse rows."""

    cdef int attach(self, Workspace w, examples) except -1:
        w.source = examples
        return 0

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t i
        w.begin_piece(m)
        attach_rows(w.piece, w.source, first)
        w.own = <double*> w.buffer(OWN, m * sizeof(double))
        for i in range(m):
            w.own[i] = self.scale * self.own_square(w, i)
        return 0

    cdef double dot(self, Workspace w, Py_ssize_t i, const double* weights) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            total += w.piece.value[k] * weights[w.piece.index[k]]
        return total

    cdef double own_square(self, Workspace w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t k
        cdef double square = 0.0
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            square += w.piece.value[k] * w.piece.value[k]
        return square

    cdef void add_to(self, Workspace w, Py_ssize_t i, double c, double* weights) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            weights[w.piece.index[k]] += c * w.piece.value[k]
