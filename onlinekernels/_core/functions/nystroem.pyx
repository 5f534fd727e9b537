"""Features of a kernel from its values with some examples, the inducing points."""
import numpy as np
from libc.math cimport NAN, isfinite, sqrt
from libc.string cimport memcmp, memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_scale_row, ok_widen
from onlinekernels._core.functions.maps cimport FeatureMap, multiply
from onlinekernels._core.functions.maps import DOUBLE, SINGLE
from onlinekernels._core.points.dictionary cimport Tenant
from onlinekernels._core.points.kernels cimport Program
from onlinekernels._core.points.points cimport DensePoints
from onlinekernels._core.points.sparse cimport SparsePoints
from onlinekernels._core.run.piece cimport FACTS, OWN, SLOT_WORK, WORK, Piece

# Residual variances, of k(x, x), up to which a row counts as a combination of landmarks: while they come, where rounding
# of the kernel is all that is left, and when they are fixed, so that features do not amplify that rounding. By precision.
DEPENDENT = {DOUBLE: (1e-13, 1e-10), SINGLE: (1e-7, 1e-6)}

cdef enum:
    BLOCK = 64          # features that are computed together


cdef double solve_row(const double* lower, Py_ssize_t stride, double* row, Py_ssize_t n) noexcept nogil:
    """row <- L^-1 row; return its square."""
    cdef Py_ssize_t j
    for j in range(n):
        row[j] = (row[j] - ok_dot(lower + j * stride, row, j)) / lower[j * stride + j]
    return ok_dot(row, row, n)


cdef void subtract_rows(const double* lower, Py_ssize_t stride, Py_ssize_t n, double* right,
                        Py_ssize_t columns) noexcept nogil:
    """right <- L^-1 right, row after row."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(i):
            if lower[i * stride + j] != 0.0:
                ok_axpy(-lower[i * stride + j], right + j * columns, right + i * columns, columns)
        ok_scale_row(right + i * columns, 1.0 / lower[i * stride + i], columns)


def solve_lower(factor, right):
    """L^-1 right for a lower triangular matrix L."""
    lower = np.ascontiguousarray(factor, dtype=np.float64)
    solution = np.array(right, dtype=np.float64, order="C")
    subtract_rows(<const double*> array_data(lower), lower.shape[1], lower.shape[0], <double*> array_data(solution),
                  solution.shape[1])
    return solution


cdef class NystroemMap(FeatureMap):
    """sqrt(scale) L^-1 k(D, x), where K_DD = L L^T and D are the landmarks: the first rows that are learned.

    While rows come, each that is no combination of landmarks becomes one, until there are `size`: f is exact. The new
    feature is what the landmark does not share with those before it, so it is 0 for all of them. When there are enough,
    and another row comes, landmarks that others nearly span are given up, and those that stay are fixed.

    Parameters
    ----------
    examples, size
        As for `FeatureMap`.
    scale : float
    ops : list of dict
        The kernel as `Program` takes it.
    name : str
        What names in the state begin with.
    """

    def __init__(self, examples, double scale, ops, Py_ssize_t size, str name):
        FeatureMap.__init__(self, examples, size)
        self.arguments = examples, scale, ops, size, name
        self.dependent, self.nearly_dependent = DEPENDENT[self.dtype]
        self.depth = 1
        self.scale = sqrt(scale)
        self.name = name
        self.program = Program(ops)
        self.tells_examples_apart = any(op["op"] == "noise" for op in ops)
        self.begin(None)

    cdef int begin(self, origin) except -1:
        """No landmarks, about an origin; to be called before the map is in use, see `successor`."""
        self.dense = self.spread = None
        if self.sparse:
            self.landmarks = self.spread = SparsePoints(self.n_features)
        else:
            self.landmarks = self.dense = DensePoints(self.n_features, self.dtype, origin)
        self.program.start(self.n_features, self.landmarks.dtype, origin)
        self.tenant = Tenant()
        self.tenant.most = self.size
        self.landmarks.add_tenant(self.tenant)
        self.landmarks.ask_for(self.program.needs_inner, self.program.needs_l1)
        self.facts = self.landmarks.new_table(self.program.n_facts)
        self.set_factor(np.zeros((0, 0)))
        self.inverse = None
        return 0

    cdef int set_factor(self, factor) except -1:
        cdef double* lower = <double*> array_data(factor)
        self.factor, self.lower, self.capacity = factor, lower, len(factor)
        return 0

    cdef bint grows(self) noexcept nogil:
        return self.inverse is None

    # ---- Rows ---------------------------------------------------------------------------------

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Piece below = piece.under
        cdef Py_ssize_t i, n
        below.source, below.source_data = piece.source, piece.source_data
        below.joins = False
        learning = learning and self.grows()
        if learning and self.landmarks.stop == 0 and not self.sparse:
            row = piece.array(<char*> piece.source_data + first * self.row_bytes, 1, self.n_features, self.dtype)[0]
            origin = self.program.choose_origin(row)
            if origin is not self.dense.origin:
                self.successor = NystroemMap(*self.arguments)
                self.successor.begin(origin)
                self.carry_out_change()
        self.landmarks.open(below, first, m, learning, False)
        if learning and self.landmarks.capacity > self.capacity:
            wider = np.zeros((self.landmarks.capacity, self.landmarks.capacity))
            wider[:self.capacity, :self.capacity] = self.factor
            self.set_factor(wider)
        n = self.landmarks.stop
        self.make_work(below, m)
        if self.grows():
            self.grow_rows(below, m, learning, out, stride)
        else:
            self.project_rows(below, m, out, stride)
        with nogil:
            for i in range(m):
                memset(out + i * stride + n + below.joins, 0, (self.size - n - below.joins) * sizeof(double))
                if self.scale != 1.0:
                    ok_scale_row(out + i * stride, self.scale, n + below.joins)
                if not isfinite(below.own[i] + below.square[i]):          # too large for the kernel
                    out[i * stride] = NAN
        return 0

    cdef int make_work(self, Piece below, Py_ssize_t m) except -1:
        """Room for kernel rows of m examples that are open."""
        cdef Py_ssize_t n = self.landmarks.stop
        below.facts = <double*> below.buffer(FACTS, self.program.n_facts * sizeof(double))
        below.own = <double*> below.buffer(OWN, m * sizeof(double))
        below.work = <double*> below.buffer(WORK, ((m + self.program.depth - 1) * n + 1) * sizeof(double))
        below.widened = <double*> below.buffer(SLOT_WORK, n * sizeof(double))
        return 0

    cdef void kernel_row(self, Piece below, Py_ssize_t i, double* out) noexcept nogil:
        """Kernel values of example i with the landmarks; out has room for depth * n numbers. k(x, x) into below.own."""
        cdef Py_ssize_t n = self.landmarks.stop
        cdef const double* inner = NULL
        cdef const double* l1 = NULL if below.l1 == NULL else below.l1 + i * below.stride
        cdef const char* x = NULL if below.x == NULL else below.x + i * self.row_bytes
        if below.narrow:
            ok_widen(<const float*> below.inner + i * below.stride, below.widened, n)
            inner = below.widened
        elif below.inner != NULL:
            inner = <const double*> below.inner + i * below.stride
        below.own[i] = self.program.facts_from(x, below.square[i], below.tilt[i], below.facts, 1)
        self.program.row(inner, l1, x, below.facts, 1, self.landmarks.point(0), <const double*> self.facts.data,
                         self.facts.capacity, n, out)

    cdef int grow_rows(self, Piece below, Py_ssize_t m, bint learning, double* out, Py_ssize_t stride) except -1:
        """Features while landmarks come; a row that is learned and is no combination of them has one more."""
        cdef Py_ssize_t i, n = self.landmarks.stop, twin
        cdef double rest
        with nogil:
            for i in range(m):
                self.kernel_row(below, i, below.work)
                rest = below.own[i] - solve_row(self.lower, self.capacity, below.work, n)
                memcpy(out + i * stride, below.work, n * sizeof(double))
                if not learning:
                    continue
                twin = self.twin(below)
                if twin >= 0:
                    memcpy(out + i * stride, self.lower + twin * self.capacity, n * sizeof(double))
                elif n < self.size and rest > self.dependent * below.own[i]:
                    below.joins = True
                    out[i * stride + n] = below.work[n] = sqrt(rest)
        return 0

    cdef Py_ssize_t twin(self, Piece below) noexcept nogil:
        """The landmark that is equal to the only row of a piece, or -1."""
        cdef Py_ssize_t slot
        cdef long long size
        if self.tells_examples_apart:
            return -1
        for slot in range(self.landmarks.stop):
            if self.sparse:
                size = self.spread.end(slot) - self.spread.begin(slot)
                if (size == below.start[1] - below.start[0]
                        and memcmp(self.spread.index + self.spread.begin(slot), below.index + below.start[0],
                                   size * sizeof(int)) == 0
                        and memcmp(self.spread.value + self.spread.begin(slot), below.value + below.start[0],
                                   size * sizeof(double)) == 0):
                    return slot
            elif memcmp(self.landmarks.point(slot), below.x, self.row_bytes) == 0:
                return slot
        return -1

    cdef int project_rows(self, Piece below, Py_ssize_t m, double* out, Py_ssize_t stride) except -1:
        """Features once the landmarks are fixed: kernel rows times the inverse of L."""
        cdef Py_ssize_t i, j, n = self.landmarks.stop
        with nogil:
            for i in range(m):
                self.kernel_row(below, i, below.work + i * n)
            if m == 1:
                for j in range(n):
                    out[j] = ok_dot(self.inverse_data + j * n, below.work, j + 1)
        if m > 1:
            values, features = below.array(<char*> below.work, m, n, DOUBLE), below.array(<char*> out, m, stride, DOUBLE)
            with np.errstate(over="ignore", invalid="ignore"):
                if self.single:
                    values = values.astype(SINGLE)
                for j in range(0, n, BLOCK):            # the inverse is triangular: blocks above the diagonal are 0
                    last = min(j + BLOCK, n)
                    multiply(below, values[:, :last], self.of_rows[j:last, :last].T, features[:, j:last])
        return 0

    # ---- Landmarks ----------------------------------------------------------------------------

    cdef void admit(self, Piece piece) noexcept nogil:
        cdef Py_ssize_t slot, fact
        if not piece.under.joins:
            return
        piece.under.joins = False
        slot = self.landmarks.admit(piece.under, 0, self.landmarks.stop + 1)
        self.landmarks.hold(slot)
        for fact in range(self.program.n_facts):
            (<double*> self.facts.data)[fact * self.facts.capacity + slot] = piece.under.facts[fact]
        memcpy(self.lower + slot * self.capacity, piece.under.work, (slot + 1) * sizeof(double))

    cdef change(self, Piece piece, Py_ssize_t first):
        """When all landmarks are there, and a row comes that is no combination of them: fix them."""
        cdef Piece below = piece.under
        cdef double rest
        self.successor = None
        if not self.grows() or self.landmarks.stop < self.size:
            return None
        below.source, below.source_data = piece.source, piece.source_data
        self.landmarks.open(below, first, 1, False, False)
        self.make_work(below, 1)
        self.kernel_row(below, 0, below.work)
        rest = below.own[0] - solve_row(self.lower, self.capacity, below.work, self.size)
        if self.twin(below) >= 0 or not rest > self.dependent * below.own[0]:
            return None
        return self.fix()

    cdef fix(self):
        """Prepare to give up landmarks that others nearly span; return what that does to features, None for nothing."""
        cdef Py_ssize_t j, n = self.landmarks.stop
        old = self.factor[:n, :n].copy()
        gram = old @ old.T
        kept, factor = [], np.zeros((n, n))
        for j in range(n):
            row = np.ascontiguousarray(gram[j, kept])
            rest = gram[j, j] - solve_row(<const double*> array_data(factor), n, <double*> array_data(row), len(kept))
            if rest > self.nearly_dependent * gram[j, j]:
                factor[len(kept), :len(kept)] = row
                factor[len(kept), len(kept)] = sqrt(rest)
                kept.append(j)
        factor = np.ascontiguousarray(factor[:len(kept), :len(kept)]) if len(kept) < n else old
        successor = NystroemMap(*self.arguments)
        successor.restore_own({**self.landmarks.state(np.array(kept)), "factor": factor, "fixed": True})
        self.successor = successor
        if len(kept) == n:
            return None
        change = np.zeros((self.size, self.size))
        change[:len(kept), :n] = solve_lower(factor, old[kept])
        return change

    cdef void carry_out_change(self) noexcept:
        """Be what the successor is."""
        cdef NystroemMap next = self.successor
        if next is None:
            return
        self.successor = None
        self.program, self.landmarks, self.dense, self.spread = next.program, next.landmarks, next.dense, next.spread
        self.tenant, self.facts = next.tenant, next.facts
        self.factor, self.lower, self.capacity = next.factor, next.lower, next.capacity
        self.inverse, self.inverse_data, self.of_rows = next.inverse, next.inverse_data, next.of_rows

    def set_inverse(self):
        """The landmarks are fixed, and L is."""
        inverse = solve_lower(self.factor, np.eye(len(self.factor)))
        self.of_rows = inverse.astype(self.dtype, copy=False)
        self.inverse_data = <const double*> array_data(inverse)
        self.inverse = inverse

    # ---- For Python ---------------------------------------------------------------------------

    def points(self):
        """The landmarks, oldest first."""
        return self.landmarks.points_at(self.landmarks.slots())

    def dual(self, weights):
        """Coefficients of the landmarks of functions with these weights, (functions, landmarks)."""
        n = self.landmarks.stop
        return np.linalg.solve(self.factor[:n, :n].T, weights[:, :n].T).T / self.scale

    def own_state(self):
        n = self.landmarks.stop
        return {**self.landmarks.state(self.landmarks.slots()), "factor": self.factor[:n, :n].copy(),
                "fixed": not self.grows()}

    def check_own(self, state):
        factor = check_array(state["factor"], "factor", np.float64, (-1, -1))
        n = len(factor)
        if factor.shape != (n, n) or n > self.size or np.triu(factor, 1).any() or not (np.diag(factor) > 0).all():
            raise ValueError("the factor is not a regular triangular matrix of the map's size")
        if type(state["fixed"]) is not bool or state["fixed"] and n == 0:
            raise ValueError("it is not said whether the landmarks are fixed")
        if "origin" in state:
            check_array(state["origin"], "origin", self.dtype, (self.n_features,))
        self.landmarks.check_state(state, n)

    def restore_own(self, state):
        cdef Py_ssize_t slot
        n = len(state["factor"])
        self.begin(state.get("origin"))
        self.landmarks.restore({**state, "birthdays": np.arange(1, n + 1)})
        for slot in range(n):
            self.landmarks.hold(slot)
            self.program.facts_from(self.landmarks.point(slot), self.landmarks.square_of(slot),
                                    self.landmarks.tilt_of(slot), <double*> self.facts.data + slot, self.facts.capacity)
        self.set_factor(state["factor"].copy())
        if state["fixed"]:
            self.set_inverse()

    def widen(self, state, Py_ssize_t extra, double fill):
        origin = state.get("origin", np.zeros(self.n_features, dtype=self.dtype))
        state["origin"] = np.append(origin, np.full(extra, fill, dtype=self.dtype))
        state["points"] = np.pad(state["points"], [(0, 0), (0, extra)])

    def _check(self):
        n = self.landmarks.stop
        self.landmarks._check()
        assert self.landmarks.start == 0 and self.landmarks.held == n <= min(self.size, self.capacity)
        assert (np.diag(self.factor)[:n] > 0).all() and not np.triu(self.factor, 1).any()
        assert self.inverse is None or self.inverse.shape == (n, n)
