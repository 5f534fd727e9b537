"""A posterior on features: f is known through its weights, the classical recursive least squares."""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.linalg cimport ok_times_rows
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions cimport OWN, Function, Outputs, Scratch
from onlinekernels._core.maps cimport FeatureMap
from onlinekernels._core.posterior cimport CHECKPOINT, FEATURES, Posterior, PosteriorScratch

cdef object DOUBLE = np.dtype(np.float64)


cdef class WeightsPosterior(Posterior):
    """f known through weights over features: a(x) = phi(x), the classical recursive least squares.

    Parameters
    ----------
    map : FeatureMap
        phi; a linear kernel is the map sqrt(scale) x.
    outputs, memory, classes
        As for `Posterior`.
    scale : float
        Weights are shown as those of f = scale <w, x>, for a linear kernel.
    """

    def __init__(self, *, FeatureMap map, Outputs outputs, double memory, bint classes, double scale=1.0):
        Posterior.__init__(self, map.n_features, map.dtype, outputs, memory, classes)
        self.keeps = "weights"
        self.map, self.scale = map, scale
        self.set_room(map.size, self.width)
        self.n = map.size
        np.fill_diagonal(self.covariance[:self.n, :self.n], 1.0)

    cdef int make_ready(self, Scratch w) except -1:
        Function.make_ready(self, w)
        return self.map.make_ready(w.piece)

    cdef int attach(self, Scratch w, examples) except -1:
        w.piece.source = examples
        w.piece.source_data = NULL if self.map.sparse else array_data(examples)
        return 0

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.map.grows() else CHECKPOINT - self.root.n % CHECKPOINT

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        """Features into w.features."""
        cdef Py_ssize_t i, n = self.n
        if learning and self.map.grows():
            change = self.map.change(w.piece, first)
            if change is not None:
                self.change_coordinates(change)
            self.map.carry_out_change()
        w.features = <double*> w.buffer(FEATURES, (m + 1) * n * sizeof(double))
        self.map.map_rows(w.piece, first, m, learning, w.features, n)
        w.piece.begin(m)
        w.piece.own = <double*> w.piece.buffer(OWN, m * sizeof(double))
        for i in range(m):
            w.piece.own[i] = ok_dot(w.features + i * n, w.features + i * n, n)
        return 0

    def change_coordinates(self, change):
        """Features become B phi, and so do weights; of those that are new nothing is known."""
        cdef Py_ssize_t i, n = self.n, p = self.root.n
        mean = self.mean[:, :n] @ change.T
        covariance = change @ self.covariance[:n, :n] @ change.T + np.eye(n) - change @ change.T
        coordinates = self.coordinates[:p, :n] @ change.T
        corrections = coordinates @ covariance - coordinates
        parts = [np.ascontiguousarray(part) for part in (mean, covariance, coordinates, corrections)]
        cdef const double* U = <const double*> array_data(parts[0])
        cdef const double* S = <const double*> array_data(parts[1])
        cdef const double* a = <const double*> array_data(parts[2])
        cdef const double* b = <const double*> array_data(parts[3])
        self.become(U, S, n, n)                 # nothing can fail any more
        self.root.n = p
        for i in range(p):
            memcpy(self.a + i * self.capacity, a + i * n, n * sizeof(double))
            memcpy(self.b + i * self.capacity, b + i * n, n * sizeof(double))

    cdef int read(self, PosteriorScratch w, Py_ssize_t m) except -1:
        cdef Py_ssize_t i, s, n = self.n
        with nogil:
            for i in range(m):
                s = self.root.n + i
                memcpy(self.a + s * self.capacity, w.features + i * n, n * sizeof(double))
                ok_times_rows(self.a, self.capacity, s + 1, n, w.features + i * n, self.K + s * CHECKPOINT)
        return 0

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        self.map.admit(w.piece)

    cdef int conclude(self, PosteriorScratch w) except -1:
        self.begin_to_take_in(w, 0)
        cdef const double* U = self.future_mean(w, NULL, 0)
        cdef const double* S = self.future_covariance(w, 0)
        self.become(U, S, self.n, self.n)
        return 0

    def expanded(self):
        """The mean of the weights over features, a row for each output; f = <features, weights>."""
        coordinates, pending = self.mean_now()
        return (coordinates + self.coordinates[:self.root.n, :self.n].T @ pending).T[:self.outputs.n]

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        ok_times_rows(w.expansion, self.n, self.outputs.n, self.n, w.features + i * self.n, out)

    def coordinates_of(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m):
        """(k(x, x), a(x), kernel values with the pending rows) of m rows of the source of a call."""
        self.open_rows(w, first, m, False, False)
        a = w.array(<char*> w.features, m, self.n, DOUBLE).copy()
        return np.einsum("ij,ij->i", a, a), a, a @ self.coordinates[:self.root.n, :self.n].T

    def coefficients(self, int channel):
        """Weights, a row for each output."""
        return self.expanded() / sqrt(self.scale)

    def widened(self, Py_ssize_t extra, double fill):
        """The state for examples with so many more columns, which held the value `fill` in all of them so far."""
        columns, size, features = self.map.widened(extra, fill)
        state = {**self.state(), **features}
        for name in ("mean", "pending_coordinates", "pending_corrections"):
            wider = np.zeros((len(state[name]), size))
            wider[:, columns] = state[name]
            state[name] = wider
        covariance = np.eye(size)
        covariance[np.ix_(columns, columns)] = state["covariance"]
        return {**state, "covariance": covariance}

    def state(self):
        return {**Posterior.state(self), **self.map.state()}

    def check_state(self, state):
        """ValueError unless a state fits."""
        n, _ = self.check_known(state)
        if n != self.map.size:
            raise ValueError("there are not as many weights as features")
        self.map.check_state(state)

    def restore(self, state):
        """Continue from a state that has been checked."""
        self.map.restore(state)
        self.restore_known(state)

    def _check(self):
        Posterior._check(self)
        for leaf in self.map.leaves():
            leaf._check()
