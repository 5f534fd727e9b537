"""Kernels as small postfix programs over rows of inner products and distances.

A kernel such as ``Gaussian(2) + 0.1*Linear() + Constant()`` becomes the program ``gaussian, linear, scale, add,
shift``.  It is run on one row at a time: from the inner products of an example with all points (one matrix product for
a whole chunk, shared by all parts) to the kernel values.  Dispatch is per row and operation, never per pair.
"""
import numpy as np
from libc.math cimport INFINITY, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.additive cimport (OK_MATERN, OK_MAX_ORDER, OK_OWN, OK_SPLINE, ok_additive_row,
                                                    ok_additive_row_f, ok_additive_start)
from onlinekernels._core.formulas.vecmath cimport (ok_add_row, ok_affine_row, ok_gaussian_row, ok_l1_block,
                                                   ok_laplacian_row, ok_multiply_row, ok_power_row, ok_precise_dot,
                                                   ok_precise_dot_f, ok_scale_row, ok_shift_row)
from onlinekernels._core.linalg import numpy_matmul

# ---- Additive kernels ----------------------------------------------------------------------------

cdef ok_additive additive_kernel(description) except *:
    """("spline", order), ("exponential", rate), ("matern", rate, smoothness) or ("own", left, right) for the core."""
    cdef ok_additive kernel
    name = description[0]
    if name == "own":
        kernel.code, kernel.order, kernel.rate = OK_OWN, len(description[1]) - 1, 1.0
        if len(description[1]) != len(description[2]) or not 0 <= kernel.order <= OK_MAX_ORDER:
            raise ValueError(f"there is no additive kernel {description!r}")
        return kernel
    kernel.code = OK_SPLINE if name == "spline" else OK_MATERN
    kernel.order = description[1] if name == "spline" else 0
    kernel.rate = 1.0 if name == "spline" else description[1]
    if name == "matern":
        kernel.order = {1.5: 1, 2.5: 2}[description[2]]
    elif name not in ("spline", "exponential") or not 0 <= kernel.order <= OK_MAX_ORDER:
        raise ValueError(f"there is no additive kernel {description!r}")
    ok_additive_start(&kernel)
    return kernel


def mapping(bounds, n_features):
    """(low, stretch) such that (x - low) * stretch maps the bounds to 0 and 1, for each feature."""
    low, high = (np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features) for bound in bounds)
    return np.ascontiguousarray(low), np.ascontiguousarray(1.0 / (high - low))


# ---- Programs ------------------------------------------------------------------------------------

CODES = {
    "linear": LINEAR,
    "gaussian": GAUSSIAN,
    "laplacian": LAPLACIAN,
    "constant": CONSTANT,
    "noise": NOISE,
    "precomputed": PRECOMPUTED,
    "additive": ADDITIVE,
    "add": ADD,
    "multiply": MULTIPLY,
    "shift": SHIFT,
    "scale": SCALE,
    "normalize": NORMALIZE,
}

cdef double power(double base, int degree) noexcept nogil:
    cdef double result = base
    ok_power_row(&result, degree, 1)
    return result


cdef class Program:
    """A kernel, ready to run: operations in postfix order, each a dictionary of ``op`` (in `CODES`) and its numbers."""

    def __init__(self, ops):
        cdef int depth = 0
        if len(ops) > MAX_OPS:
            raise ValueError(f"A kernel may have at most {MAX_OPS} parts. Got {len(ops)} instead.")
        self.n_ops = len(ops)
        self.n_cached = FIRST_NORM
        self.tables, self.bounds, self.mappings = [], [], {}
        for i, op in enumerate(ops):
            self.ops[i] = self.compile(op)
            self.bounds.append(op.get("bounds"))
            code = self.ops[i].code
            self.needs_inner |= code in (LINEAR, GAUSSIAN)
            self.needs_l1 |= code == LAPLACIAN
            self.needs_double |= code == PRECOMPUTED
            self.needs_places |= code == ADDITIVE
            depth += -1 if code in (ADD, MULTIPLY) else 1 if code < ADD else 0
            self.depth = max(self.depth, depth)

    cdef Op compile(self, description) except *:
        cdef Op op
        cdef const double[:, ::1] table
        memset(&op, 0, sizeof(Op))
        op.code = CODES[description["op"]]
        op.a = description.get("a", 1.0)
        op.b = description.get("b", 0.0)
        op.degree = description.get("degree", 1)
        if op.code == NORMALIZE:
            op.cached_at = self.n_cached
            self.n_cached += 1
        if op.code == ADDITIVE:
            op.additive = additive_kernel(description["kernel"])
        if op.code == PRECOMPUTED:
            table = description["table"]
            self.tables.append(description["table"])
            op.size = table.shape[0]
            if op.size:
                op.table = &table[0, 0]
        return op

    def start(self, Py_ssize_t n_features, dtype, origin):
        """Fix the points' precision and the origin that they are kept about, or None for 0."""
        cdef int i
        for i in range(self.n_ops):
            if self.bounds[i] is not None:
                self.mappings[i] = mapping(self.bounds[i], n_features)
                self.ops[i].low = <const double*> array_data(self.mappings[i][0])
                self.ops[i].stretch = <const double*> array_data(self.mappings[i][1])
        self.n_features = n_features
        self.single = dtype == np.float32
        self.origin = origin
        self.origin_data = NULL
        self.origin_square = 0.0
        if origin is not None:
            self.origin = np.empty(n_features, dtype=dtype)
            self.origin[:] = origin
            self.origin_square = float(np.dot(self.origin.astype(float), self.origin.astype(float)))
            self.origin_data = array_data(self.origin)

    def choose_origin(self, first_row):
        """The first row, if distances from inner products about 0 would lose digits; else None.

        The rounding of |x|^2 + |z|^2 - 2 <x, z> is eps |x|^2, and the Gaussian divides it by 2 width^2: negligible
        while |x| is a few widths, fatal for data far from 0.
        """
        cdef double rate = max([0.0] + [self.ops[i].a for i in range(self.n_ops) if self.ops[i].code == GAUSSIAN])
        if self.needs_double or self.needs_places:      # an index, or a place that must stay where it is
            return None
        cdef double square = 0.0
        row = np.asarray(first_row, dtype=np.float64)
        square = numpy_matmul(row, row)
        far = rate * square > (8.0 if first_row.dtype == np.float32 else 450.0)
        return first_row if far and square < np.inf else None       # a row that is too large will be refused

    cdef double cached(self, const char* x, double* cached, Py_ssize_t stride) noexcept nogil:
        """Compute what is kept with a point; return k(x, x)."""
        cdef double square = 0.0, origin_product = 0.0
        if self.needs_inner:
            square = self.precise_dot(x, x)
        if self.origin_data != NULL:
            origin_product = self.precise_dot(x, self.origin_data)
        return self.cache_from(x, square, origin_product, cached, stride)

    cdef double precise_dot(self, const char* x, const char* z) noexcept nogil:
        if self.single:
            return ok_precise_dot_f(<const float*> x, <const float*> z, self.n_features)
        return ok_precise_dot(<const double*> x, <const double*> z, self.n_features)

    cdef double cache_from(self, const char* x, double square, double origin_product, double* cached,
                           Py_ssize_t stride) noexcept nogil:
        """The same, from |x|^2 and <origin, x>; kernels on inner products do not look at x."""
        cdef double stack[MAX_OPS]
        cdef double inner = square, value
        cdef int top = -1, i
        cdef Op* op
        cached[SQUARE * stride] = square
        cached[ORIGIN_PRODUCT * stride] = origin_product
        if self.origin_data != NULL:
            inner = square + 2.0 * origin_product + self.origin_square
        for i in range(self.n_ops):
            op = &self.ops[i]
            if op.code < ADD:
                top += 1
            if op.code == LINEAR:
                value = op.a * inner + op.b
                stack[top] = power(value, op.degree)
            elif op.code == GAUSSIAN or op.code == LAPLACIAN:
                stack[top] = 1.0
            elif op.code == CONSTANT or op.code == NOISE:
                stack[top] = op.a
            elif op.code == PRECOMPUTED:
                stack[top] = op.table[self.index(x) * (op.size + 1)]
            elif op.code == ADDITIVE:
                self.additive_row(op, x, x, 1, stack + top)
            elif op.code == ADD:
                top -= 1
                stack[top] += stack[top + 1]
            elif op.code == MULTIPLY:
                top -= 1
                stack[top] *= stack[top + 1]
            elif op.code == SHIFT:
                stack[top] += op.a
            elif op.code == SCALE:
                stack[top] *= op.a
            else:
                cached[op.cached_at * stride] = 1.0 / sqrt(stack[top]) if stack[top] > 0 else 0.0
                stack[top] = 1.0 if stack[top] > 0 else 0.0
        return stack[0]

    cdef Py_ssize_t index(self, const char* x) noexcept nogil:
        """A validated index into a Gram matrix, kept as the only feature of a point."""
        return <Py_ssize_t> (<const double*> x)[0]

    cdef void row(self, const double* inner, const double* l1, const char* x,
                  const double* own_cached, Py_ssize_t own_stride, const char* points,
                  const double* cached, Py_ssize_t stride, Py_ssize_t n, double* work) noexcept nogil:
        """Kernel values of x with n points, into work[:n]; work has room for depth * n numbers."""
        cdef const double* origin_product = NULL
        cdef double own = 0.0
        cdef double* out = work
        cdef int top = -1, i
        cdef Py_ssize_t j
        cdef Op* op
        if self.origin_data != NULL:
            origin_product = cached + ORIGIN_PRODUCT * stride
            own = own_cached[ORIGIN_PRODUCT * own_stride] + self.origin_square
        for i in range(self.n_ops):
            op = &self.ops[i]
            if op.code < ADD:
                top += 1
                out = work + top * n
            if op.code == LINEAR:
                ok_affine_row(inner, origin_product, own, op.a, op.b, out, n)
                if op.degree > 1:
                    ok_power_row(out, op.degree, n)
            elif op.code == GAUSSIAN and own_cached[SQUARE * own_stride] == INFINITY:
                for j in range(n):              # too far away for arithmetic, and so for the kernel
                    out[j] = 0.0
            elif op.code == GAUSSIAN:
                ok_gaussian_row(inner, cached + SQUARE * stride, own_cached[SQUARE * own_stride], op.a, out, n)
            elif op.code == LAPLACIAN:
                ok_laplacian_row(l1, op.a, out, n)
            elif op.code == CONSTANT:
                for j in range(n):
                    out[j] = op.a
            elif op.code == NOISE:
                for j in range(n):
                    out[j] = 0.0
            elif op.code == PRECOMPUTED:
                for j in range(n):
                    out[j] = op.table[self.index(x) * op.size + self.index(points + 8 * j * self.n_features)]
            elif op.code == ADDITIVE:
                self.additive_row(op, x, points, n, out)
            elif op.code == ADD or op.code == MULTIPLY:
                top -= 1
                out = work + top * n
                if op.code == ADD:
                    ok_add_row(out, out + n, n)
                else:
                    ok_multiply_row(out, out + n, n)
            elif op.code == SHIFT:
                ok_shift_row(out, op.a, n)
            elif op.code == SCALE:
                ok_scale_row(out, op.a, n)
            else:
                ok_multiply_row(out, cached + op.cached_at * stride, n)
                ok_scale_row(out, own_cached[op.cached_at * own_stride], n)

    cdef void additive_row(self, const Op* op, const char* x, const char* points, Py_ssize_t n,
                           double* out) noexcept nogil:
        """sum_j K(x_j, z_j) for n points."""
        if self.single:
            ok_additive_row_f(&op.additive, op.low, op.stretch, <const float*> x, <const float*> points, n,
                              self.n_features, out)
        else:
            ok_additive_row(&op.additive, op.low, op.stretch, <const double*> x, <const double*> points, n,
                            self.n_features, out)

    def gram(self, X, Z=None):
        """Matrix of k(x, z); X and Z are C-contiguous float64 arrays, None means X with itself."""
        cdef Py_ssize_t m = X.shape[0], n
        cdef bint same = Z is None
        near = None
        if m == 0 or (not same and Z.shape[0] == 0):
            return np.zeros((m, 0 if same else Z.shape[0]))
        self.start(X.shape[1], np.float64, self.choose_origin(X[0]))
        if self.origin is not None:
            X = X - self.origin
            Z = None if same else Z - self.origin
        cached, own = self.cached_of(X)
        others = cached if same else self.cached_of(Z)[0]
        Z = X if same else Z
        n = Z.shape[0]
        values = numpy_matmul(X, Z.T) if self.needs_inner else np.empty((m, n))
        if self.needs_l1:
            near = np.zeros((m, n))
            if X.shape[1]:
                ok_l1_block(<const double*> array_data(X), m, <const double*> array_data(Z), n, X.shape[1],
                            <double*> array_data(near), n)
        self.fill(values, near, X, Z, cached, others, own if same else None)
        return values

    def gram_of_inner(self, inner, left, right, bint same):
        """Matrix of kernel values, in place, from inner products and squared lengths; the kernel needs no more. With
        k(x, x) of its rows."""
        cached, own = self.cached_of(None, left)
        self.fill(inner, None, None, None, cached, self.cached_of(None, right)[0], own if same else None)
        return inner, own

    cdef int fill(self, double[:, ::1] values, near, X, Z, const double[:, ::1] cached, const double[:, ::1] others,
                  const double[::1] own) except -1:
        """Inner products, and city-block distances, become kernel values; own: of the examples with themselves."""
        cdef Py_ssize_t m = values.shape[0], n = values.shape[1], i
        cdef double[::1] work = np.empty(max(1, self.depth * n))
        cdef const double* l1 = <const double*> NULL if near is None else <const double*> array_data(near)
        cdef const char* x = <const char*> NULL if X is None else array_data(X)
        cdef const char* z = <const char*> NULL if Z is None else array_data(Z)
        with nogil:
            for i in range(m if n else 0):
                self.row(&values[i, 0], NULL if l1 == NULL else l1 + i * n,
                         NULL if x == NULL else x + 8 * i * self.n_features, &cached[0, i], m, z, &others[0, 0], n, n,
                         &work[0])
                memcpy(&values[i, 0], &work[0], n * sizeof(double))
                if own is not None:
                    values[i, i] = own[i]

    def cached_of(self, X, squares=None):
        """(what is cached, k(x, x)) of all rows of a float64 array that is about the origin, or of their squares."""
        cdef const char* points = <const char*> NULL if X is None else array_data(X)
        cdef Py_ssize_t m = len(squares if X is None else X), i
        cdef double[:, ::1] cached = np.empty((self.n_cached, m))
        cdef double[::1] own = np.empty(m)
        for i in range(m):
            if X is None:
                own[i] = self.cache_from(NULL, squares[i], 0.0, &cached[0, i], m)
            else:
                own[i] = self.cached(points + 8 * i * self.n_features, &cached[0, i], m)
        return np.asarray(cached), np.asarray(own)

    def diagonal(self, X):
        """k(x, x) for all rows of a C-contiguous float64 array."""
        if X.shape[0] == 0:
            return np.zeros(0)
        self.start(X.shape[1], np.float64, None)
        return self.cached_of(X)[1]
