"""Label structures: how many labels there are, the label kernel kappa and the distance Delta.

A taxonomy's kernel counts common ancestors, kappa = Phi Phi^T with one column of Phi per node.  It is
never a matrix here: ``kappa @ scores`` is a sweep up the tree (what each subtree sums to) and a sweep
down it (what the ancestors of each node sum to), O(nodes).
"""
import numpy as np
from libc.math cimport fmax
from onlinekernels._core.arrays cimport array_data


cdef class Outputs:
    """Labels 0, ..., n - 1, or targets: kappa is the identity, Delta is 1 between different ones.

    Parameters
    ----------
    n : int
        Number of labels.
    ahead : bool
        Labels learn before they join, all the same: each is wrong at every example so far. One output more than there
        are labels, the next one to join, knows what all of them know. There may be several, which are copies of it, so
        that labels can join without the interpreter.
    """

    def __init__(self, Py_ssize_t n, bint ahead=False):
        self.ahead = ahead
        self.set_kept(n + ahead)

    def can_grow(self):
        """Whether labels may join: those of a structure cannot. O(1)."""
        return True

    cdef Py_ssize_t kept(self) noexcept nogil:
        """Outputs that know something of their own: the labels, and the one that is ahead of them. O(1)."""
        return self.joined + self.ahead

    def set_kept(self, Py_ssize_t kept):
        """There are so many, and no copies. O(1)."""
        self.n, self.joined = kept, kept - self.ahead

    def set_joined(self, Py_ssize_t joined):
        """So many labels have joined. O(1)."""
        self.let_join(joined)

    def set_copies(self, Py_ssize_t n):
        """There are n outputs now, the last ones copies of the one that is ahead. O(1)."""
        self.n = n

    cdef void let_join(self, Py_ssize_t joined) noexcept nogil:
        """So many labels there are now: O(1)."""
        self.joined = joined
        if not self.ahead:
            self.n = joined

    cdef void apply(self, double* scores, double* nodes) noexcept nogil:
        """scores <- kappa @ scores. O(n); O(nodes) for a taxonomy, O(n^2) for a matrix."""
        pass

    cdef void distances(self, Py_ssize_t y, double* out, double* nodes) noexcept nogil:
        """out = Delta(y, .). O(n); O(nodes) for a taxonomy."""
        cdef Py_ssize_t i
        for i in range(self.n):
            out[i] = 1.0
        out[y] = 0.0

    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """kappa(a, b): O(1), O(depth) in a taxonomy."""
        return 1.0 if a == b else 0.0

    cdef double square_between(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """|Phi(a) - Phi(b)|^2 = kappa(a, a) + kappa(b, b) - 2 kappa(a, b). As `kappa`."""
        return fmax(0.0, self.kappa(a, a) + self.kappa(b, b) - 2.0 * self.kappa(a, b))

    # ---- For Python ---------------------------------------------------------------------------

    def kappa_times(self, scores):
        """kappa @ scores. As `apply`."""
        cdef double[::1] out = np.array(scores, dtype=np.float64), nodes = np.empty(max(1, self.n_nodes))
        if self.n:
            self.apply(&out[0], &nodes[0])
        return np.asarray(out)

    def distances_from(self, Py_ssize_t y):
        """Delta(y, .) as an array. As `distances`."""
        cdef double[::1] out = np.empty(self.n), nodes = np.empty(max(1, self.n_nodes))
        if not 0 <= y < self.n:
            raise IndexError(y)
        self.distances(y, &out[0], &nodes[0])
        return np.asarray(out)


cdef class TaxonomyOutputs(Outputs):
    """Labels that are nodes of a tree: kappa (65) and Delta (62).

    Parameters
    ----------
    parent : array of int64
        The parent of each node; -1 for a root, and parents first.
    place : array of int64
        The node of each label.
    """

    def __init__(self, parent, place):
        Outputs.__init__(self, len(place))
        self.parent_array = np.ascontiguousarray(parent, dtype=np.int64)
        self.place_array = np.ascontiguousarray(place, dtype=np.int64)
        self.n_nodes = len(parent)
        if self.n and not (0 <= np.min(place) and np.max(place) < self.n_nodes):
            raise ValueError("each label needs a node of the taxonomy")
        if not (self.parent_array < np.arange(self.n_nodes)).all() or (self.parent_array < -1).any():
            raise ValueError("parents must come before their children")
        self.parent = <const long long*> array_data(self.parent_array)
        self.place = <const long long*> array_data(self.place_array)

    def can_grow(self):
        return False

    cdef void apply(self, double* scores, double* nodes) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_nodes):
            nodes[i] = 0.0
        for i in range(self.n):
            nodes[self.place[i]] += scores[i]
        for i in range(self.n_nodes - 1, -1, -1):           # up: sums of subtrees
            if self.parent[i] >= 0:
                nodes[self.parent[i]] += nodes[i]
        for i in range(self.n_nodes):                       # down: sums over ancestors
            if self.parent[i] >= 0:
                nodes[i] += nodes[self.parent[i]]
        for i in range(self.n):
            scores[i] = nodes[self.place[i]]

    cdef void distances(self, Py_ssize_t y, double* out, double* nodes) noexcept nogil:
        """(62): half the number of nodes that are an ancestor of exactly one of the two.

        Going down, a node off the path to y is one more, and leaving that path early is made good for by the depth of y:
        nodes become |ancestors| - 2 |common ancestors|.
        """
        cdef Py_ssize_t i
        for i in range(self.n_nodes):
            nodes[i] = 1.0
        i = self.place[y]
        while i >= 0:
            nodes[i] = -1.0
            i = self.parent[i]
        for i in range(self.n_nodes):
            if self.parent[i] >= 0:
                nodes[i] += nodes[self.parent[i]]
        for i in range(self.n):
            out[i] = 0.5 * (nodes[self.place[i]] - nodes[self.place[y]])

    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """The number of common ancestors, every node being its own."""
        cdef Py_ssize_t i = self.place[a], j = self.place[b]
        cdef double common = 0.0
        while i != j:                                       # parents come first: the later one goes up
            if i > j:
                i = self.parent[i]
            else:
                j = self.parent[j]
        while i >= 0:
            common += 1.0
            i = self.parent[i]
        return common


cdef class GraphOutputs(Outputs):
    """Labels with distances of their own; kappa is the identity.

    Parameters
    ----------
    table : array of shape (n, n)
        The distances.
    """

    def __init__(self, table):
        Outputs.__init__(self, len(table))
        self.table_array = np.ascontiguousarray(table, dtype=np.float64)
        if self.table_array.shape != (self.n, self.n):
            raise ValueError("the distances need one row and one column per label")
        self.table = <const double*> array_data(self.table_array)

    def can_grow(self):
        return False

    cdef void distances(self, Py_ssize_t y, double* out, double* nodes) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n):
            out[i] = self.table[y * self.n + i]


cdef class MatrixOutputs(GraphOutputs):
    """Labels with distances and a kernel of their own.

    Parameters
    ----------
    table : array of shape (n, n)
        The distances.
    kernel : array of shape (n, n)
        kappa, symmetric.
    """

    def __init__(self, table, kernel):
        GraphOutputs.__init__(self, table)
        self.kernel_array = np.ascontiguousarray(kernel, dtype=np.float64)
        if self.kernel_array.shape != (self.n, self.n):
            raise ValueError("the kernel needs one row and one column per label")
        self.kernel = <const double*> array_data(self.kernel_array)
        self.n_nodes = self.n

    cdef void apply(self, double* scores, double* nodes) noexcept nogil:
        cdef Py_ssize_t i, j
        for i in range(self.n):
            nodes[i] = 0.0
        for j in range(self.n):                             # many are 0: a pair of labels has two
            if scores[j] != 0.0:
                for i in range(self.n):
                    nodes[i] += scores[j] * self.kernel[j * self.n + i]
        for i in range(self.n):
            scores[i] = nodes[i]

    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        return self.kernel[a * self.n + b]
