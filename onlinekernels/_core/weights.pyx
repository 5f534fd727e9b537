"""Functions that are weight vectors: of a linear kernel without a budget, and of feature maps."""
cimport cython
import numpy as np
from libc.math cimport sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, frame_reset, frame_row
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot
from onlinekernels._core.functions cimport N_SHARED, OWN, Function, Outputs, Scratch, Term
from onlinekernels._core.functions import rows_of_channels
from onlinekernels._core.maps cimport FeatureMap
from onlinekernels._core.points cimport attach_rows
from onlinekernels._core.schema import Array, Inlined, restore, state_of

cdef enum WeightsBuffer:
    FEATURES = N_SHARED


cdef class Weights(Function):
    """f(x, y) = scale <w_y, x>.

    Rows are float64.
    """

    FIELDS = *Function.FIELDS, Array("weights", np.float64, (rows_of_channels, "length"))

    cdef readonly Py_ssize_t length     # weights of one output
    cdef readonly object weights        # (channels * width, length) in frame coordinates
    cdef double* data                   # of `weights`
    cdef double scale                   # k(x, z) = scale <x, z>

    def __init__(self, *, double scale, n_features, int channels, Outputs outputs):
        Function.__init__(self, n_features, np.float64, channels, outputs)
        self.begin(scale, n_features)

    cdef begin(self, double scale, Py_ssize_t length):
        """Weights that are 0, so many for each output."""
        self.keeps = "weights"
        self.scale = scale
        self.length = length
        self.set_weights(np.zeros((self.frame.channels * self.width, length)))

    cdef int set_weights(self, weights) except -1:
        """Go on with other weights."""
        cdef double* data = <double*> array_data(weights)
        self.weights, self.data = weights, data

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t i
        self.open_rows(w, first, m, learning)
        w.piece.own = <double*> w.piece.buffer(OWN, m * sizeof(double))
        with nogil:
            for i in range(m):
                w.piece.own[i] = self.scale * self.own_square(w, i)

    cdef int open_rows(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning) except -1:
        """See to it that `dot`, `own_square` and `add_to` find these rows."""
        w.piece.begin(m)
        w.piece.x = w.piece.source_data + first * self.n_features * sizeof(double)

    cdef Py_ssize_t piece_rows(self):
        """Rows behind a scaler are a copy, which should stay in the cache. O(1)."""
        return max(64, min(4096, (1 << 18) // max(1, self.length)))

    cdef double dot(self, Scratch w, Py_ssize_t i, const double* weights) noexcept nogil:
        """<weights, x_i>."""
        return ok_dot(weights, <const double*> w.piece.x + i * self.length, self.length)

    cdef double own_square(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.dot(w, i, <const double*> w.piece.x + i * self.length)

    cdef void add_to(self, Scratch w, Py_ssize_t i, double c, double* weights) noexcept nogil:
        """weights += c x_i."""
        ok_axpy(c, <const double*> w.piece.x + i * self.length, weights, self.length)

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t y
        cdef int channel
        for channel in range(last + 1):
            for y in range(self.outputs.n):
                w.sums[channel * self.width + y] = self.scale * self.dot(
                    w, i, self.data + (channel * self.width + y) * self.length)
        self.make_true(w, last, out)

    cdef double feature_size(self, double own) noexcept nogil:
        return sqrt(own) if own > 1.0 else 1.0

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        cdef Py_ssize_t k
        cdef int channel
        cdef double c
        for channel in range(self.frame.channels):
            for k in range(term.n):
                c = term.stored[channel * term.n + k]
                if c != 0.0:
                    self.add_to(w, i, c, self.data + (channel * self.width + term.labels[k]) * self.length)

    cdef void fold(self, Scratch w) noexcept nogil:
        cdef Py_ssize_t j, size = self.width * self.length
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
        """Stored weights (channels, labels, length)."""
        return self.weights.reshape(self.frame.channels, self.width, self.length)[:, :self.outputs.n]

    def widen(self, Py_ssize_t width):
        cdef Py_ssize_t channels = self.frame.channels
        weights = np.zeros((channels, width, self.length))
        weights[:, :self.width] = self.weights.reshape(channels, self.width, self.length)
        self.set_weights(weights.reshape(channels * width, self.length))

    def copy_last(self, Py_ssize_t n):
        weights = self.weights.reshape(self.frame.channels, self.width, self.length)
        weights[:, n:] = weights[:, n - 1:n]

    def coefficients(self, int channel):
        """True weights of a channel, (labels, length)."""
        return self.true_rows(self.by_channel(), channel)

    def begin_from(self, points, weights, pairs=None, long long t=0):
        """Start from these weights, (outputs, length); ValueError if they do not fit."""
        weights = check_array(np.asarray(weights, dtype=float), "weights", np.float64, (-1, self.length))
        if not 1 <= len(weights) <= self.width:
            raise ValueError(f"weights has {len(weights)} rows, and there are {self.width} outputs")
        self.weights[:len(weights)] = weights

    def stored(self):
        """Weights of the outputs that know something of their own."""
        return {**Function.stored(self), "weights": self.by_channel()[:, :self.outputs.kept()].reshape(-1, self.length)}

    def resume(self, state):
        Function.resume(self, state)
        self.by_channel()[:] = state["weights"].reshape(self.frame.channels, state["labels"], self.length)


@cython.final
cdef class SparseWeights(Weights):
    """The same on sparse rows."""

    cdef int attach(self, Scratch w, examples) except -1:
        w.piece.source = examples

    cdef int open_rows(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning) except -1:
        w.piece.begin(m)
        return attach_rows(w.piece, w.piece.source, first)

    cdef Py_ssize_t piece_rows(self):
        return Function.piece_rows(self)

    cdef double dot(self, Scratch w, Py_ssize_t i, const double* weights) noexcept nogil:
        cdef const int* index = w.piece.index
        cdef const double* value = w.piece.value
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            total += value[k] * weights[index[k]]
        return total

    cdef double own_square(self, Scratch w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t k
        cdef double square = 0.0
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            square += w.piece.value[k] * w.piece.value[k]
        return square

    cdef void add_to(self, Scratch w, Py_ssize_t i, double c, double* weights) noexcept nogil:
        cdef const int* index = w.piece.index
        cdef const double* value = w.piece.value
        cdef Py_ssize_t k
        for k in range(w.piece.start[i], w.piece.start[i + 1]):
            weights[index[k]] += c * value[k]


@cython.final
cdef class MappedWeights(Weights):
    """f(x, y) = <w_y, phi(x)>."""

    FIELDS = *Weights.FIELDS, Inlined("map")

    cdef readonly FeatureMap map        # phi

    def __init__(self, *, FeatureMap map, int channels, Outputs outputs):
        Function.__init__(self, map.n_features, map.dtype, channels, outputs)
        self.map = map
        self.begin(1.0, map.size)

    cdef int attach(self, Scratch w, examples) except -1:
        return self.map.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        """Features of a piece should stay in the cache; a map that grows wants to see one row at a time."""
        return 1 if self.map.grows() else self.rows_to_evaluate()

    cdef Py_ssize_t rows_to_evaluate(self):
        return max(8, min(256, (1 << 16) // self.length))

    cdef int open_rows(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning) except -1:
        cdef double* features
        if learning and self.map.grows():
            change = self.map.change(w.piece, first)
            if change is not None:
                self.set_weights(np.ascontiguousarray(self.weights @ change.T))
            self.map.carry_out_change()
        features = <double*> w.buffer(FEATURES, (m + 1) * self.length * sizeof(double))
        self.map.map_rows(w.piece, first, m, learning, features, self.length)
        w.piece.begin(m)
        w.piece.x = <const char*> features

    cdef void transform(self, Scratch w, const double* move) noexcept nogil:
        self.map.admit(w.piece)                       # this example is learned
        Function.transform(self, w, move)

    def take_map(self, MappedWeights other):
        """Go on with the features that another function has at present; the parameters of the maps are the same."""
        state = state_of(other.map)
        for name in state:
            if name.endswith(("points", "origin")):     # which may be of another precision
                state[name] = state[name].astype(self.dtype)
        restore(self.map, state)

    def widened(self, Py_ssize_t extra, double fill):
        """The state for examples with so many more columns, which held the value `fill` in all of them so far."""
        places, size, features = self.map.widened(extra, fill)
        state = {**state_of(self), **features}
        wider = np.zeros((len(state["weights"]), size))
        wider[:, places] = state["weights"]
        return {**state, "weights": wider}

    def _check(self):
        Weights._check(self)
        for part in self.map.leaves():
            part._check()
