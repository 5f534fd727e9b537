"""Random Fourier features: cosines and sines whose inner products approximate a kernel of x - z."""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.vecmath cimport ok_add_row, ok_axpy, ok_fourier_row
from onlinekernels._core.functions.maps cimport FeatureMap, multiply
from onlinekernels._core.functions.maps import DOUBLE
from onlinekernels._core.points.sparse cimport Rows
from onlinekernels._core.run.piece cimport Piece


cdef class FourierMap(FeatureMap):
    """sqrt(scale / n) (cos <w_1, x>, ..., cos <w_n, x>, sin <w_1, x>, ..., sin <w_n, x>), Rahimi and Recht.

    Parameters
    ----------
    examples
        As for `FeatureMap`.
    scale : float
    size : int
        2 n.
    draw : callable
        Frequencies (columns, n) of examples with so many columns; those of the first do not depend on how many there are.
    name : str
        What names in the state begin with.
    """

    def __init__(self, examples, double scale, Py_ssize_t size, draw, str name):
        FeatureMap.__init__(self, examples, size)
        self.draw = draw
        self.frequencies = self.draw(self.n_features)
        self.of_rows = self.frequencies.astype(self.dtype, copy=False)
        self.frequency = <const double*> array_data(self.frequencies)
        self.factor = sqrt(2.0 * scale / size)
        self.name = name
        self.set_phases(np.zeros(size // 2))

    def set_phases(self, phases):
        """Phases that all examples have beside their own: those of features that came late and were the same before."""
        self.phases = phases
        self.phase = <const double*> array_data(phases)
        self.shifted = bool(phases.any())

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i, n = self.size // 2
        cdef bint by_row = self.sparse or m == 1
        if not by_row:
            examples = piece.array(<char*> piece.source_data + first * self.row_bytes, m, self.n_features, self.dtype)
            with np.errstate(over="ignore", invalid="ignore"):          # what overflows is reported, with its row
                multiply(piece, examples, self.of_rows, piece.array(<char*> out, m, stride, DOUBLE)[:, :n])
        with nogil:
            for i in range(m):
                if by_row:
                    self.row_phases(piece, first + i, out + i * stride)
                if self.shifted:
                    ok_add_row(out + i * stride, self.phase, n)
                ok_fourier_row(out + i * stride, out + i * stride + n, self.factor, n)
        return 0

    cdef void row_phases(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil:
        """<w_j, x_i> for all j, feature by feature."""
        cdef Py_ssize_t j, k, n = self.size // 2
        cdef const char* x = piece.source_data + i * self.row_bytes
        cdef double value
        memset(out, 0, n * sizeof(double))
        if self.sparse:
            for k in range((<Rows> piece.source).start[i], (<Rows> piece.source).start[i + 1]):
                ok_axpy((<Rows> piece.source).value[k], self.frequency + (<Rows> piece.source).index[k] * n, out, n)
            return
        for j in range(self.n_features):
            value = (<const float*> x)[j] if self.single else (<const double*> x)[j]
            if value != 0.0:
                ok_axpy(value, self.frequency + j * n, out, n)

    def own_state(self):
        """The phases; of the frequencies, which follow from the seed, one to see whether they still do."""
        return {"phases": self.phases, "frequency": self.frequencies[:, 0].copy()}

    def check_own(self, state):
        check_array(state["phases"], "phases", np.float64, (self.size // 2,))
        if not np.array_equal(state["frequency"], self.frequencies[:, 0]):
            raise ValueError("the random frequencies are not those that the seed gives here")

    def restore_own(self, state):
        self.set_phases(state["phases"].copy())

    def widen(self, state, Py_ssize_t extra, double fill):
        frequencies = self.draw(self.n_features + extra)
        state["frequency"] = frequencies[:, 0].copy()
        state["phases"] = self.phases - fill * frequencies[self.n_features:].sum(axis=0)
