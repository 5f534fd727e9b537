"""Features of a kernel from its values with some examples, the inducing points."""
import numpy as np
from libc.math cimport NAN, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.factor cimport Factor
from onlinekernels._core.formulas.factor import check_lower
from onlinekernels._core.formulas.vecmath cimport ok_dot, ok_scale_row
from onlinekernels._core.functions.maps cimport FeatureMap, multiply
from onlinekernels._core.functions.maps import DOUBLE, SINGLE
from onlinekernels._core.points.dictionary cimport Tenant
from onlinekernels._core.points.kernelrows cimport CompiledRows
from onlinekernels._core.points.kernels cimport Program
from onlinekernels._core.points.points cimport DensePoints
from onlinekernels._core.points.sparse cimport SparsePoints
from onlinekernels._core.run.piece cimport COORDINATES, Piece

# Residual variances, of k(x, x), up to which a row counts as a combination of inducing points: while they come, where rounding
# of the kernel is all that is left, and when they are fixed, so that features do not amplify that rounding. By precision.
DEPENDENT = {DOUBLE: (1e-13, 1e-10), SINGLE: (1e-7, 1e-6)}

cdef enum:
    BLOCK = 64          # features that are computed together


cdef class NystroemMap(FeatureMap):
    """sqrt(scale) L^-1 k(D, x), where K_DD = L L^T and D are inducing points: the first rows that are learned.

    While rows come, each that is no combination of these points becomes one, until there are `size`: f is exact. The new
    feature is what the point does not share with those before it, so it is 0 for all of them. When there are enough,
    and another row comes, points that others nearly span are given up, and those that stay are fixed.

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
        self.tells_examples_apart = any(op["op"] == "noise" for op in ops)
        self.begin(None)

    cdef int begin(self, origin) except -1:
        """No points, about an origin; to be called before the map is in use, see `successor`."""
        cdef Program program = Program(self.arguments[2])
        if self.sparse:
            self.inducing = SparsePoints(self.n_features)
        else:
            self.inducing = DensePoints(self.n_features, self.dtype, origin)
        program.start(self.n_features, self.inducing.dtype, origin)
        self.rows = CompiledRows(self.inducing, program)
        self.tenant = Tenant()
        self.tenant.most = self.size
        self.inducing.add_tenant(self.tenant)
        self.factor = Factor(0)
        self.inverse = None
        return 0

    cdef bint grows(self) noexcept nogil:
        return self.inverse is None

    # ---- Rows ---------------------------------------------------------------------------------

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Piece below = piece.under
        cdef Py_ssize_t i, n
        below.joins = False
        learning = learning and self.grows()
        if learning and self.inducing.stop == 0 and not self.sparse:
            row = piece.array(<char*> piece.source_data + first * self.row_bytes, 1, self.n_features, self.dtype)[0]
            origin = self.rows.program.choose_origin(row)
            if origin is not (<DensePoints> self.inducing).origin:
                self.successor = NystroemMap(*self.arguments)
                self.successor.begin(origin)
                self.carry_out_change()
        below.source, below.source_data = piece.source, piece.source_data
        self.rows.open(below, first, m, learning, False)
        if learning and self.inducing.capacity > self.factor.room:
            self.factor = self.factor.with_room(self.inducing.capacity)
        n = self.inducing.stop
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

    cdef double read(self, Piece below, Py_ssize_t i, double* out) noexcept nogil:
        """Coordinates L^-1 k(D, x) of example i, O(n^2); return what of k(x, x) the points do not determine."""
        cdef Py_ssize_t n = self.inducing.stop
        self.rows.values_into(below, i, out)
        self.factor.solve(out, 0)
        return below.own[i] - ok_dot(out, out, n)

    cdef int grow_rows(self, Piece below, Py_ssize_t m, bint learning, double* out, Py_ssize_t stride) except -1:
        """Features while points come; a row that is learned and is no combination of them has one more."""
        cdef Py_ssize_t i, n = self.inducing.stop, twin
        cdef double rest
        below.coordinates = <double*> below.buffer(COORDINATES, (self.rows.program.depth * n + 1) * sizeof(double))
        with nogil:
            for i in range(m):
                rest = self.read(below, i, below.coordinates)
                memcpy(out + i * stride, below.coordinates, n * sizeof(double))
                if not learning:
                    continue
                twin = self.twin(below)
                if twin >= 0:
                    memcpy(out + i * stride, self.factor.row(twin), n * sizeof(double))
                elif n < self.size and rest > self.dependent * below.own[i]:
                    below.joins = True
                    out[i * stride + n] = below.coordinates[n] = sqrt(rest)
        return 0

    cdef Py_ssize_t twin(self, Piece below) noexcept nogil:
        """The point that is equal to the only row of a piece, or -1."""
        cdef Py_ssize_t slot
        if not self.tells_examples_apart:
            for slot in range(self.inducing.stop):
                if self.inducing.is_at(below, 0, slot):
                    return slot
        return -1

    cdef int project_rows(self, Piece below, Py_ssize_t m, double* out, Py_ssize_t stride) except -1:
        """Features once the points are fixed: kernel rows times the inverse of L, O(m n^2)."""
        cdef Py_ssize_t i, j, n = self.inducing.stop
        below.coordinates = <double*> below.buffer(COORDINATES, (m + self.rows.program.depth) * n * sizeof(double))
        with nogil:
            for i in range(m):
                self.rows.values_into(below, i, below.coordinates + i * n)
            if m == 1:
                for j in range(n):
                    out[j] = ok_dot(self.inverse_data + j * n, below.coordinates, j + 1)
        if m > 1:
            values, features = below.array(<char*> below.coordinates, m, n, DOUBLE), below.array(<char*> out, m, stride, DOUBLE)
            with np.errstate(over="ignore", invalid="ignore"):
                if self.single:
                    values = values.astype(SINGLE)
                for j in range(0, n, BLOCK):            # the inverse is triangular: blocks above the diagonal are 0
                    last = min(j + BLOCK, n)
                    multiply(below, values[:, :last], self.of_rows[j:last, :last].T, features[:, j:last])
        return 0

    # ---- Points come, and are fixed -----------------------------------------------------------

    cdef void admit(self, Piece piece) noexcept nogil:
        cdef Py_ssize_t slot, n = self.inducing.stop
        if not piece.under.joins:
            return
        piece.under.joins = False
        slot = self.inducing.admit(piece.under, 0, n + 1)
        self.inducing.hold(slot)
        self.rows.keep_facts(piece.under, 0, slot)
        self.factor.append(piece.under.coordinates, piece.under.coordinates[n])

    cdef change(self, Piece piece, Py_ssize_t first):
        """When all points are there, and a row comes that is no combination of them: fix them."""
        cdef Piece below = piece.under
        cdef double rest
        self.successor = None
        if not self.grows() or self.inducing.stop < self.size:
            return None
        below.source, below.source_data = piece.source, piece.source_data
        self.rows.open(below, first, 1, False, False)
        below.coordinates = <double*> below.buffer(COORDINATES, self.rows.program.depth * self.size * sizeof(double))
        rest = self.read(below, 0, below.coordinates)
        if self.twin(below) >= 0 or not rest > self.dependent * below.own[0]:
            return None
        return self.fix()

    cdef fix(self):
        """Prepare to give up points that others nearly span; return what that does to features, None for nothing. O(n^3)."""
        cdef Py_ssize_t j, n = self.inducing.stop
        cdef Factor factor = Factor(n)
        cdef double* row
        gram, kept = self.factor.gram(), []
        for j in range(n):
            row = factor.row(factor.n)
            factor.array[factor.n, :factor.n] = gram[j, kept]
            factor.solve(row, 0)
            rest = gram[j, j] - ok_dot(row, row, factor.n)
            if rest > self.nearly_dependent * gram[j, j]:
                factor.append(row, sqrt(rest))
                kept.append(j)
        if len(kept) == n:
            factor = self.factor
        successor = NystroemMap(*self.arguments)
        successor.restore_own({**self.inducing.state(np.array(kept)), "factor": factor.lower(), "fixed": True})
        self.successor = successor
        if len(kept) == n:
            return None
        change = np.zeros((self.size, self.size))
        features = self.factor.lower()[kept]
        factor.solve_columns_into(features)
        change[:len(kept), :n] = features
        return change

    cdef void carry_out_change(self) noexcept:
        """Be what the successor is."""
        cdef NystroemMap next = self.successor
        if next is None:
            return
        self.successor = None
        self.inducing, self.rows, self.tenant, self.factor = next.inducing, next.rows, next.tenant, next.factor
        self.inverse, self.inverse_data, self.of_rows = next.inverse, next.inverse_data, next.of_rows

    def set_inverse(self):
        """The points are fixed, and L is."""
        inverse = self.factor.inverse()
        self.of_rows = inverse.astype(self.dtype, copy=False)
        self.inverse_data = <const double*> array_data(inverse)
        self.inverse = inverse

    # ---- For Python ---------------------------------------------------------------------------

    def points(self):
        """The inducing points, oldest first."""
        return self.inducing.points_at(self.inducing.slots())

    def dual(self, weights):
        """Coefficients of the points of functions with these weights, (functions, points)."""
        coefficients = weights[:, :self.factor.n].T.copy("C")
        self.factor.solve_transposed_into(coefficients)
        return coefficients.T / self.scale

    def own_state(self):
        return {**self.inducing.state(self.inducing.slots()), "factor": self.factor.lower(), "fixed": not self.grows()}

    def check_own(self, state):
        n = len(check_lower(state["factor"], "factor", -1))
        if n > self.size:
            raise ValueError(f"a factor of {n} points is more than the map's size of {self.size}")
        if type(state["fixed"]) is not bool or state["fixed"] and n == 0:
            raise ValueError("it is not said whether the points are fixed")
        if "origin" in state:
            check_array(state["origin"], "origin", self.dtype, (self.n_features,))
        self.inducing.check_state(state, n)

    def restore_own(self, state):
        cdef Py_ssize_t slot
        n = len(state["factor"])
        self.begin(state.get("origin"))
        self.inducing.restore({**state, "birthdays": np.arange(1, n + 1)})
        self.rows.restore()
        for slot in range(n):
            self.inducing.hold(slot)
        self.factor = Factor(n)
        self.factor.load(state["factor"])
        if state["fixed"]:
            self.set_inverse()

    def widen(self, state, Py_ssize_t extra, double fill):
        origin = state.get("origin", np.zeros(self.n_features, dtype=self.dtype))
        state["origin"] = np.append(origin, np.full(extra, fill, dtype=self.dtype))
        state["points"] = np.pad(state["points"], [(0, 0), (0, extra)])

    def _check(self):
        n = self.inducing.stop
        self.inducing._check()
        self.factor._check()
        assert self.inducing.start == 0 and self.inducing.held == n == self.factor.n <= self.size
        assert self.inverse is None or self.inverse.shape == (n, n)
