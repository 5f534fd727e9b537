"""Label structures for the engine: the label kernel kappa and the distance Delta.

A taxonomy's kernel counts common ancestors, kappa = Phi Phi^T with one column of Phi per node.  It is
never a matrix here: ``kappa @ scores`` is a sweep up the tree (what each subtree sums to) and a sweep
down it (what the ancestors of each node sum to), O(nodes).
"""
import numpy as np
from onlinekernels._core.ring cimport array_data

LABEL_CODES = {"plain": PLAIN, "tree": TREE, "table": TABLE}


cdef class Outputs:
    """Labels 0, ..., n - 1.

    Parameters
    ----------
    n : int
        Number of labels.
    parent, place : arrays of int64, or None
        For a taxonomy: the parent of each node (-1 for a root; parents first) and each label's node.
    table : array of shape (n, n), or None
        For a graph: the distances.
    """

    def __init__(self, Py_ssize_t n, parent=None, place=None, table=None):
        self.code = TREE if parent is not None else TABLE if table is not None else PLAIN
        self.n = n
        if parent is not None:
            self.parent_array = np.ascontiguousarray(parent, dtype=np.int64)
            self.place_array = np.ascontiguousarray(place, dtype=np.int64)
            self.n_nodes = len(parent)
            if len(place) != n or n and not (0 <= np.min(place) and np.max(place) < self.n_nodes):
                raise ValueError("each label needs a node of the taxonomy")
            if not (self.parent_array < np.arange(self.n_nodes)).all() or (self.parent_array < -1).any():
                raise ValueError("parents must come before their children")
            self.parent = <const long long*> array_data(self.parent_array)
            self.place = <const long long*> array_data(self.place_array)
            self.node_array, self.path_array = np.zeros(self.n_nodes), np.zeros(self.n_nodes)
            self.nodes = <double*> array_data(self.node_array)
            self.path = <double*> array_data(self.path_array)
        elif table is not None:
            self.table_array = np.ascontiguousarray(table, dtype=np.float64)
            if self.table_array.shape != (n, n):
                raise ValueError("the distances need one row and one column per label")
            self.table = <const double*> array_data(self.table_array)

    def can_grow(self):
        """Whether labels may join: only plain ones can."""
        return self.code == PLAIN

    def clear_scratch(self):
        """Make `path` 0 again: a call may have been cut off by a fork."""
        if self.path_array is not None:
            self.path_array[:] = 0.0

    cdef void apply(self, double* scores) noexcept nogil:
        """scores <- kappa @ scores."""
        cdef Py_ssize_t i
        if self.code != TREE:
            return
        for i in range(self.n_nodes):
            self.nodes[i] = 0.0
        for i in range(self.n):
            self.nodes[self.place[i]] += scores[i]
        for i in range(self.n_nodes - 1, -1, -1):           # up: sums of subtrees
            if self.parent[i] >= 0:
                self.nodes[self.parent[i]] += self.nodes[i]
        for i in range(self.n_nodes):                       # down: sums over ancestors
            if self.parent[i] >= 0:
                self.nodes[i] += self.nodes[self.parent[i]]
        for i in range(self.n):
            scores[i] = self.nodes[self.place[i]]

    cdef void distances(self, Py_ssize_t y, double* out) noexcept nogil:
        """Delta(y, .)."""
        cdef Py_ssize_t i
        if self.code == PLAIN:
            for i in range(self.n):
                out[i] = 1.0
            out[y] = 0.0
        elif self.code == TABLE:
            for i in range(self.n):
                out[i] = self.table[y * self.n + i]
        else:
            # (62): half the number of nodes that are an ancestor of exactly one of the two.  `path`
            # marks the ancestors of y; going down, a node off that path is one more, and leaving
            # the path early is made good for by the depth of y.
            self.mark(y, 1.0)
            for i in range(self.n_nodes):                   # nodes: |ancestors of i| - 2 |common|
                self.nodes[i] = 1.0 - 2.0 * self.path[i]
                if self.parent[i] >= 0:
                    self.nodes[i] += self.nodes[self.parent[i]]
            for i in range(self.n):
                out[i] = 0.5 * (self.nodes[self.place[i]] - self.nodes[self.place[y]])
            self.mark(y, 0.0)

    cdef void mark(self, Py_ssize_t y, double value) noexcept nogil:
        """Set `path`, which is 0 between calls, on the ancestors of y."""
        cdef Py_ssize_t i = self.place[y]
        while i >= 0:
            self.path[i] = value
            i = self.parent[i]

    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """kappa(a, b): the number of common ancestors, every node being its own."""
        cdef Py_ssize_t i
        cdef double common = 0.0
        if self.code != TREE:
            return 1.0 if a == b else 0.0
        self.mark(a, 1.0)
        i = self.place[b]
        while i >= 0:
            common += self.path[i]
            i = self.parent[i]
        self.mark(a, 0.0)
        return common

    cdef double spread(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """|Phi(a) - Phi(b)|^2 = kappa(a, a) + kappa(b, b) - 2 kappa(a, b)."""
        if self.code != TREE:
            return 0.0 if a == b else 2.0
        return self.kappa(a, a) + self.kappa(b, b) - 2.0 * self.kappa(a, b)

    # ---- For Python: docs and tests ----

    def kappa_times(self, scores):
        """kappa @ scores."""
        cdef double[::1] out = np.array(scores, dtype=np.float64)
        if self.n:
            self.apply(&out[0])
        return np.asarray(out)

    def distances_from(self, Py_ssize_t y):
        """Delta(y, .) as an array."""
        cdef double[::1] out = np.empty(self.n)
        if not 0 <= y < self.n:
            raise IndexError(y)
        self.distances(y, &out[0])
        return np.asarray(out)
