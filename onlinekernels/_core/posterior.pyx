"""Posteriors: what a second-order learner knows of f, and how well.

f is known through coordinates u ~ N(U, S), a Gaussian that was N(0, I) before the first example: f(x) = <a(x), u> and a
rest that nothing is known about.  On points D that is whitened, f_D = L u with K_DD = L L^T, so that a(x) = L^-1 k(D,
x); on features, a(x) are the features.  No inverse is kept, and nothing is added to a diagonal.

Examples are pending until there are `CHECKPOINT` of them, counted by t.  A pending row is one of the factor L_C of

    C_ts = lam^(|t-s|/2) [ k(x_t, x_s) + lam^min(t,s) a_t^T (S - I) a_s ] + noise [t = s]

so predictions, which are innovations of that factor, are those of one example at a time, whatever the chunks.  At a
checkpoint U and S take all of them in at once, and points come and go.

A checkpoint belongs to its last row, and is compiled code that cannot fail: memory for it is there before that row's
piece is learned.  So it may come in the middle of a piece, and those of the members of an ensemble at different rows.

A single row is not predicted by an expansion of the mean, which would have to be computed again after every row that is
learned, unless there are very many coordinates: it is evaluated from its own, and what it has to do with pending rows.
The scratch remembers these, with the kernel values that they follow from: as long as nothing has been learned, the same
kernel values, bit for bit, have the same answer, so that what predicting a row has computed serves learning it.
"""
import numpy as np
cimport cython
from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcmp, memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.dictionary cimport Dictionary, Observer, Table
from onlinekernels._core.formulas.moves cimport Standing, stand_still
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_least
from onlinekernels._core.functions cimport MOVE, N_SHARED, OWN, Example, Function, Outputs, Scratch
from onlinekernels._core.linalg cimport (ALL, OK_REFLECTED, Factor, ok_column_squares, ok_eliminate,
                                         ok_find_reflections, ok_invert_lower, ok_largest_above, ok_leave, ok_losses,
                                         ok_next_column, ok_oldest, ok_product, ok_reflect, ok_reflections,
                                         ok_reflections_size, ok_shrink_and_subtract, ok_times_rows, ok_transpose)
from onlinekernels._core.schema import Array, Count, Flag, Inlined, lower_triangular, not_negative, Number, positive
from onlinekernels._core.schema import state_of, within
from onlinekernels._core.maps cimport FeatureMap
from onlinekernels._core.rules cimport Form, Rule
from onlinekernels._core.terms import UNBOUNDED

cdef object DOUBLE = np.dtype(np.float64)

cdef enum:
    CHECKPOINT = 64     # examples from one checkpoint of the stream, where points come and go, to the next
    FEW = 256           # coordinates for which a single row is predicted without an expansion of the mean
    LEVELS = 11         # coverages whose intervals are tracked

# Of variances, relative to k(x, x): less may be rounding, never joins, and cannot be told from no noise
cdef double ROUNDING = 1e-12

cdef enum PosteriorBuffer:
    CROSS = N_SHARED, MEANS, SINGLE, COLUMNS, TRANSPOSED, FEATURES
    TAKEN, FUTURE, FUTURE_MEAN, PRODUCTS, INVERSE, LEAVING, CHOSEN, TOTALS


@cython.final
cdef class PosteriorScratch(Scratch):
    """What a posterior computes on the way."""

    cdef double* cross                  # (rows, CHECKPOINT): what the rows of a piece have to do with pending ones,
    cdef double* means                  # (rows, outputs): and what was known of them at the last checkpoint
    cdef bint learning                  # whether the piece is to be learned
    # Of the latest single row, as long as the posterior is that of `version`
    cdef long long version              # 0: of none
    # what the rest follows from: kernel values with points and pending rows, or features
    cdef double* key
    cdef double* new_key                # the same of the row that is open
    cdef double* point                  # (n): its coordinates
    cdef double* shared                 # (CHECKPOINT): kernel values with pending rows
    cdef double* relation               # (CHECKPOINT): products of its coordinates with the corrections of pending rows
    cdef double* column                 # (CHECKPOINT): its row of L_C, up to its diagonal
    cdef double* mean                   # (outputs): what was known of it at the last checkpoint
    # While several rows are learned; NULL for one
    # (CHECKPOINT, CHECKPOINT): columns of L_C up to the latest row, and behind these of C,
    cdef double* columns
    cdef double* explained              # (CHECKPOINT): what those of L_C explain of the variance of each row,
    cdef double* expected               # (outputs, CHECKPOINT): and of its mean
    cdef Py_ssize_t first               # row of the piece with which they begin: 0, or the one after a checkpoint
    cdef Py_ssize_t end                 # pending rows when all up to the end, or the next checkpoint, are
    cdef double* transposed                 # (coordinates, CHECKPOINT): coordinates of pending rows
    cdef double* features               # (rows, features)
    cdef Py_ssize_t row                 # that was evaluated last
    # Memory of a checkpoint, for as many coordinates as there may be then
    cdef double* taken                  # (CHECKPOINT, taken_stride): what is taken in, a column for each coordinate,
    cdef Py_ssize_t taken_stride
    cdef double* future                 # the covariance that it leads to,
    cdef double* future_mean            # and the mean,
    cdef double* products               # (CHECKPOINT, CHECKPOINT): what is not determined of pending rows,
    cdef double* joining                # (CHECKPOINT, CHECKPOINT): what those that join have in common with the others,
    cdef double* inverse                # what tells who leaves,
    cdef double* leaving                # what brings coordinates back to a triangle without them,
    cdef Py_ssize_t* chosen             # slots of the points, and who of them stays
    # While it predicts
    cdef const double* expansion        # coefficients of the mean; NULL while it learns, and for a single row
    cdef object expansion_array         # keeps them alive
    cdef double* totals                 # the mean at each row of the piece, (outputs, rows); or NULL

    cdef void let_go(self) noexcept:
        Scratch.let_go(self)
        self.expansion_array = None


CONSISTENT = 1e-6       # differences, relative to what is compared, between parts of a state
LOOSELY = 1e-2          # likewise of variances, where points may nearly span each other
EPSILON = np.finfo(np.float64).eps


def of_known(matrix, name):
    """The limit: can be the covariance of coordinates whose prior is N(0, I), up to rounding. O(n^3)."""
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-9):
        raise ValueError(f"the {name} is not symmetric")
    if len(matrix):
        values = np.linalg.eigvalsh(matrix)
        if values.min() < -1e-7 or values.max() > 1.0 + 1e-7:
            raise ValueError(f"the {name} is not one of known coordinates")


def lower_with_squares(matrix, name):
    """The limit: 0 above a diagonal that is not negative."""
    if (np.diag(matrix) < 0.0).any() or np.triu(matrix, 1).any():
        raise ValueError(f"{name} is not lower triangular, or has a negative square")


cdef class Posterior(Function):
    """What is known of f.

    A kind implements

    `open_rows(scratch, first, m, learning, by_slots)`
        get ready for some rows: k(x, x) into w.piece.own; O(m) kernel rows, or maps;
    `read(scratch, first, m, a, K)`
        coordinates of m rows of a piece, a row for each, and kernel values with pending rows, which they are about to
        be themselves if they are learned: O(m n^2);
    `read_key(scratch)`
        what all that is known of a single row follows from, into w.new_key; return how many numbers that are: O(n);
    `read_from_key(scratch)`
        its coordinates into w.point, and kernel values with pending rows into w.shared: O(n^2);
    `admit(scratch, i)`
        example i is pending from now on: O(1) and a copy of it;
    `prepare_checkpoint(scratch, n)`
        get ready for a checkpoint, after which there may be n coordinates: O(1), and the memory;
    `conclude(scratch)`
        take in the pending rows: O(n^3 + CHECKPOINT n^2);
    `evaluate_mean(scratch, i, out)`
        the mean at example i, from w.expansion: O(n) for each output;

    and for Python `expanded` and `coefficients`.
    """

    # n coordinates, p pending rows
    FIELDS = (*Function.FIELDS, Array("mean", np.float64, ("labels", "n_coordinates")),
              Array("covariance", np.float64, ("n_coordinates", "n_coordinates"), of_known),
              Array("pending_coordinates", np.float64, ("p", "n_coordinates")),
              Array("pending_corrections", np.float64, ("p", "n_coordinates")),
              Array("pending_gram", np.float64, ("p", "p"), lower_with_squares),
              Array("pending_root", np.float64, ("p", "p"), lower_triangular),
              Array("pending_errors", np.float64, ("labels", "p")))

    # f fades to sqrt(memory) f with every example, and the prior fills up what is lost
    cdef readonly double memory
    cdef readonly bint classes              # outputs are labels: y is +1 for one and -1 for all others
    cdef readonly Py_ssize_t n              # coordinates of u
    # whether the covariance of u goes back to the prior's at the next checkpoint
    cdef readonly bint is_inflated
    cdef Py_ssize_t capacity                # coordinates that there is room for
    cdef readonly object mean               # U, a row for each output (width, capacity)
    cdef readonly object covariance         # S (capacity, capacity)
    # Of the pending rows: those since the last checkpoint
    cdef readonly object coordinates        # a, rows of A^T (CHECKPOINT, capacity)
    cdef readonly object corrections        # (S - I) a: of the prior's covariance
    # k(x_s, x_r) for r <= s (CHECKPOINT, CHECKPOINT); 0 with those that are left out
    cdef readonly object gram
    cdef readonly Factor root               # L_C, which knows how many rows are pending
    cdef readonly object errors             # e, a row for each output (width, CHECKPOINT)
    cdef double* U                          # of `mean`
    cdef double* S                          # of `covariance`
    cdef double* a                          # of `coordinates`
    cdef double* b                          # of `corrections`
    cdef double* K                          # of `gram`
    cdef double* E                          # of `errors`
    cdef double fade[CHECKPOINT + 2]             # memory^(k / 2)
    cdef object expansion                   # coefficients of the mean as it is now; None when they are to be computed
    cdef long long version                  # counts changes of what is known
    cdef Py_ssize_t first                   # pending rows at the first checkpoint,
    cdef Py_ssize_t every                   # and at all others

    def __init__(self, Py_ssize_t n_features, dtype, Outputs outputs, double memory, bint classes):
        cdef Py_ssize_t k
        Function.__init__(self, n_features, dtype, 1, outputs)
        self.memory, self.classes, self.version = memory, classes, 1
        self.first = self.every = CHECKPOINT
        for k in range(CHECKPOINT + 2):
            self.fade[k] = memory ** (0.5 * k)
        self.gram, self.root = np.zeros((CHECKPOINT, CHECKPOINT)), Factor(CHECKPOINT)
        self.K = <double*> array_data(self.gram)
        self.set_capacity(0, self.width)

    cdef int set_capacity(self, Py_ssize_t capacity, Py_ssize_t width) except -1:
        """Room for so many coordinates and outputs; what there is stays: O(capacity^2)."""
        cdef Py_ssize_t n = self.n, p = self.root.n
        cdef Py_ssize_t stride = row_stride(capacity)
        kept = {"mean": (width, stride, (slice(None), slice(n))), "covariance": (stride, stride, (slice(n), slice(n))),
                "coordinates": (CHECKPOINT, stride, (slice(p), slice(n))),
                "corrections": (CHECKPOINT, stride, (slice(p), slice(n))),
                "errors": (width, CHECKPOINT, (slice(None), slice(p)))}
        cdef double* data[5]
        parts = []
        for name, (rows, columns, part) in kept.items():
            array, old = aligned_empty((rows, columns), DOUBLE), getattr(self, name)
            array[:] = 0.0
            if old is not None:
                array[:len(old)][part] = old[:rows][part]
            data[len(parts)] = <double*> array_data(array)
            parts.append(array)
        # nothing can fail any more
        self.mean, self.covariance, self.coordinates, self.corrections, self.errors = parts
        self.U, self.S, self.a, self.b, self.E = data[0], data[1], data[2], data[3], data[4]
        self.capacity = stride
        self.version += 1

    # ---- A piece ------------------------------------------------------------------------------

    cdef Py_ssize_t due(self) noexcept nogil:
        """Pending rows at the next checkpoint: O(1)."""
        return self.every if self.n else self.first

    cdef Py_ssize_t piece_rows(self):
        """Up to the next checkpoint: O(1)."""
        return self.due() - self.root.n

    cdef Py_ssize_t most_rows(self):
        return CHECKPOINT

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning,
                       bint by_slots) except -1:
        raise NotImplementedError

    cdef void read(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, double* a, double* K) noexcept nogil:
        pass

    cdef Py_ssize_t read_key(self, PosteriorScratch w) noexcept nogil:
        return 0

    cdef void read_from_key(self, PosteriorScratch w) noexcept nogil:
        pass

    cdef Scratch new_scratch(self):
        """O(1)."""
        return PosteriorScratch()

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        """O(m n^2) while it learns, or for a single row; otherwise O(m) kernel rows, or maps."""
        cdef PosteriorScratch scratch = w
        cdef bint single
        # whether or not there is an expansion, so that bits are the same
        single = m == 1 and (learning or self.n <= FEW)
        if learning:
            self.expansion = None               # of slots that may move now
        self.open_rows(scratch, first, m, learning, by_slots >= 0 and not single)
        scratch.expansion = scratch.totals = scratch.columns = NULL
        scratch.learning = learning
        if learning and self.root.n + m >= self.due():
            self.prepare_checkpoint(scratch, self.n)
        if single:
            return self.open_one(scratch)
        if learning:
            scratch.cross = <double*> w.buffer(CROSS, CHECKPOINT * CHECKPOINT * sizeof(double))
            scratch.means = <double*> w.buffer(MEANS, CHECKPOINT * self.width * sizeof(double))
            scratch.transposed = <double*> w.buffer(TRANSPOSED, max(1, self.capacity) * CHECKPOINT * sizeof(double))
            scratch.columns = <double*> w.buffer(COLUMNS, (CHECKPOINT + 1 + self.width) * CHECKPOINT * sizeof(double))
            with nogil:
                self.relate(scratch, 0)
            return 0
        with cython.critical_section(self):     # several threads may predict, and replace it by the same
            expansion = self.expansion
        if expansion is None:
            expansion = np.ascontiguousarray(self.expanded())
            with cython.critical_section(self):
                self.expansion = expansion
        scratch.expansion_array = expansion
        scratch.expansion = <const double*> array_data(expansion)

    # ---- A single row -------------------------------------------------------------------------

    cdef int open_one(self, PosteriorScratch w) except -1:
        """What is known of a single row, without numpy: O(n^2), O(n) if that is there already, and O(n^2) to learn
        it."""
        cdef Py_ssize_t stride = self.capacity
        w.key = <double*> w.buffer(SINGLE, (3 * stride + 5 * CHECKPOINT + self.width) * sizeof(double))
        w.new_key = w.key + stride + CHECKPOINT
        w.point = w.new_key + stride + CHECKPOINT
        w.shared = w.point + stride
        w.relation, w.column, w.mean = w.shared + CHECKPOINT, w.shared + 2 * CHECKPOINT, w.shared + 3 * CHECKPOINT
        self.know_one(w)

    cdef void know_one(self, PosteriorScratch w) noexcept nogil:
        cdef Py_ssize_t j, r, s = self.root.n, n = self.n, stride = self.capacity, size = self.read_key(w)
        cdef double* a = self.a + s * stride
        cdef double* b = self.b + s * stride
        if w.version != self.version or memcmp(w.new_key, w.key, size * sizeof(double)):
            memcpy(w.key, w.new_key, size * sizeof(double))
            self.read_from_key(w)
            ok_times_rows(self.b, stride, s, n, w.point, w.relation)
            ok_times_rows(self.U, stride, self.width, n, w.point, w.mean)
            for r in range(s):
                w.column[r] = 0.0
                if self.K[r * CHECKPOINT + r] != 0.0:       # otherwise it is left out
                    w.column[r] = self.fade[s - r] * (w.shared[r] + self.fade[r + 1] * self.fade[r + 1] * w.relation[r])
            self.root.solve(w.column, 0)
            w.version = self.version
        if w.learning:
            memcpy(a, w.point, n * sizeof(double))
            memcpy(self.K + s * CHECKPOINT, w.shared, s * sizeof(double))
            self.K[s * CHECKPOINT + s] = w.piece.own[0]
            ok_times_rows(self.S, stride, n, n, a, b)
            for j in range(n):
                b[j] -= a[j]
            w.relation[s] = ok_dot(b, a, n)

    cdef void evaluate_one(self, PosteriorScratch w, double* out) noexcept nogil:
        """The mean, and the variance of a row that is to be learned: O(pending rows) for each output."""
        cdef Py_ssize_t y, s = self.root.n
        ok_times_rows(self.E, CHECKPOINT, self.width, s, w.column, out)
        for y in range(self.width):
            out[y] += self.fade[s + 1] * w.mean[y]
        if w.learning:
            w.variance = fmax(0.0, self.K[s * CHECKPOINT + s] + self.fade[s + 1] * self.fade[s + 1] * w.relation[s]
                              - ok_dot(w.column, w.column, s))

    # ---- Several rows -------------------------------------------------------------------------

    cdef void relate(self, PosteriorScratch w, Py_ssize_t first) noexcept nogil:
        """(S - I) a of the rows of a piece from `first` to the next checkpoint, their products with all pending ones,
        and what U says of them: O(m n^2)."""
        cdef Py_ssize_t i, j, s = self.root.n, n = self.n, stride = self.capacity
        cdef Py_ssize_t m = min(w.piece.rows - first, self.due() - s)
        cdef double* a = self.a + s * stride
        cdef double* b = self.b + s * stride
        w.first = first
        self.read(w, first, m, a, self.K + s * CHECKPOINT)
        ok_product(b, stride, m, n, a, stride, 1, n, self.S, stride, ALL)
        for i in range(m):
            for j in range(n):
                b[i * stride + j] -= a[i * stride + j]
            ok_times_rows(self.U, stride, self.width, n, a + i * stride, w.means + i * self.width)
        ok_transpose(self.a, stride, s + m, n, w.transposed, CHECKPOINT)
        ok_product(w.cross, CHECKPOINT, m, s + m, b, stride, 1, n, w.transposed, CHECKPOINT, s)
        self.spread_out(w, m)

    cdef void spread_out(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil:
        """Columns of C, which become those of L_C one by one: so each explains all later rows at once. O(m
        CHECKPOINT^2)."""
        cdef Py_ssize_t r, t, y, s = self.root.n
        cdef double* T = w.columns
        cdef const double* K
        cdef const double* cross
        w.explained, w.expected, w.end = T + CHECKPOINT * CHECKPOINT, T + (CHECKPOINT + 1) * CHECKPOINT, s + m
        memset(w.explained, 0, (1 + self.width) * CHECKPOINT * sizeof(double))
        for t in range(s, s + m):
            K, cross = self.K + t * CHECKPOINT, w.cross + (t - s) * CHECKPOINT
            for r in range(t):
                T[r * CHECKPOINT + t] = self.fade[t - r] * (K[r] + self.fade[r + 1] * self.fade[r + 1] * cross[r])
        for r in range(s):
            if self.K[r * CHECKPOINT + r] == 0.0:           # left out
                memset(T + r * CHECKPOINT + s, 0, m * sizeof(double))
        self.root.solve_columns(T + s, CHECKPOINT, m)
        for r in range(s):
            for t in range(s, s + m):
                w.explained[t] += T[r * CHECKPOINT + t] * T[r * CHECKPOINT + t]
            for y in range(self.width):
                ok_axpy(self.E[y * CHECKPOINT + r], T + r * CHECKPOINT + s, w.expected + y * CHECKPOINT + s, m)

    # ---- Evaluate, absorb ---------------------------------------------------------------------

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        """The mean, and while learning the variance too. O(CHECKPOINT) for each output, as a rule."""
        if (<PosteriorScratch> w).expansion != NULL:
            self.evaluate_mean(<PosteriorScratch> w, i, out)
        elif (<PosteriorScratch> w).columns == NULL:
            self.evaluate_one(<PosteriorScratch> w, out)
        else:
            self.evaluate_several(<PosteriorScratch> w, i, out)
        (<PosteriorScratch> w).row = i

    cdef void evaluate_several(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        """The same of one of several rows that are learned. O(outputs)."""
        cdef Py_ssize_t y, s = self.root.n
        cdef double late = self.fade[s + 1]
        for y in range(self.width):
            out[y] = w.expected[y * CHECKPOINT + s] + late * w.means[(i - w.first) * self.width + y]
        w.variance = fmax(0.0, self.K[s * CHECKPOINT + s] + late * late * w.cross[(i - w.first) * CHECKPOINT + s]
                          - w.explained[s])

    cdef void absorb(self, PosteriorScratch w, const double* innovation, double deviation, bint counts) noexcept nogil:
        """The example that was evaluated is pending from now on; its innovations are in units of the deviation. O(n)
        for each output; after the last row before a checkpoint that is carried out, too."""
        cdef Py_ssize_t r, y, s = self.root.n
        cdef double* row = self.root.row(s)
        self.version += 1
        self.admit(w, w.row)
        for y in range(self.width):
            self.E[y * CHECKPOINT + s] = innovation[y] if counts else 0.0
        if not counts:                          # time passes, and that is all
            memset(self.a + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.b + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.K + s * CHECKPOINT, 0, CHECKPOINT * sizeof(double))
            memset(row, 0, s * sizeof(double))
        elif w.columns != NULL:
            for r in range(s):
                row[r] = w.columns[r * CHECKPOINT + s]
        else:
            memcpy(row, w.column, s * sizeof(double))
        self.root.append(row, deviation if counts else 1.0)
        if w.columns != NULL:
            self.next_column(w, s, deviation, counts)
        if self.root.n == self.due():
            self.conclude(w)
            if w.row + 1 < w.piece.rows:
                self.relate(w, w.row + 1)

    cdef void next_column(self, PosteriorScratch w, Py_ssize_t s, double deviation, bint counts) noexcept nogil:
        """Column s of L_C below its diagonal, and what it says of the later rows of a piece: O(s CHECKPOINT)."""
        cdef Py_ssize_t y, rest = w.end - s - 1
        cdef double* column = w.columns + s * CHECKPOINT + s + 1
        if not counts:
            memset(column, 0, rest * sizeof(double))
            return
        ok_next_column(w.columns, CHECKPOINT, s, w.end, deviation, w.explained)
        for y in range(self.width):
            ok_axpy(self.E[y * CHECKPOINT + s], column, w.expected + y * CHECKPOINT + s + 1, rest)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        pass

    # ---- Checkpoints --------------------------------------------------------------------------

    cdef int prepare_checkpoint(self, PosteriorScratch w, Py_ssize_t n) except -1:
        w.taken_stride = max(row_stride(n), 16)       # as tiles read it
        w.taken = <double*> w.buffer(TAKEN, CHECKPOINT * w.taken_stride * sizeof(double))
        w.future = <double*> w.buffer(FUTURE, max(1, n * n) * sizeof(double))
        w.future_mean = <double*> w.buffer(FUTURE_MEAN, max(1, self.width * n) * sizeof(double))

    cdef void conclude(self, PosteriorScratch w) noexcept nogil:
        pass

    cdef void begin_update(self, PosteriorScratch w) noexcept nogil:
        """Begin to take in p pending rows, and perhaps new coordinates: O(p^2 n).

            W = L_C^-1 lam^((p-t)/2) [ lam^t (S - I) a_t + a_t , V_t ]      over t = 1, ..., p
            U' = lam^(p/2) U + W^T e,      S' = lam^p S + (1 - lam^p) I - W^T W

        V is what the pending rows have in common with those that join, beside the others.
        """
        cdef Py_ssize_t j, t, n = self.n, p = self.root.n, stride = self.capacity
        cdef double late
        for t in range(p):
            late = self.fade[p - 1 - t]
            for j in range(n):
                w.taken[t * w.taken_stride + j] = late * (self.fade[t + 1] * self.fade[t + 1] * self.b[t * stride + j]
                                                          + self.a[t * stride + j])
        self.root.solve_columns(w.taken, w.taken_stride, n)

    cdef void find_mean(self, PosteriorScratch w, Py_ssize_t joining) noexcept nogil:
        """U as it will be with so many coordinates more, of which V has a row for each: O(p^2 joining + p n)."""
        cdef Py_ssize_t j, t, y, n = self.n, p = self.root.n, size = n + joining
        cdef double* W = w.taken + n
        for t in range(p):
            for j in range(joining):
                W[t * w.taken_stride + j] = self.fade[p - 1 - t] * w.joining[j * CHECKPOINT + t]
        self.root.solve_columns(W, w.taken_stride, joining)
        ok_product(w.future_mean, size, self.width, size, self.E, CHECKPOINT, 1, p, w.taken, w.taken_stride, ALL)
        for y in range(self.width):
            for j in range(n):
                w.future_mean[y * size + j] += self.fade[p] * self.U[y * self.capacity + j]

    cdef void find_covariance(self, PosteriorScratch w, Py_ssize_t joining) noexcept nogil:
        """S as it will be with so many coordinates more, those of the last `find_mean`: O(p n^2)."""
        cdef Py_ssize_t i, j, n = self.n, p = self.root.n, size = n + joining
        cdef double* S = w.future
        cdef double faded = self.fade[p] * self.fade[p]
        ok_product(S, size, size, size, w.taken, 1, w.taken_stride, p, w.taken, w.taken_stride, 0)
        ok_shrink_and_subtract(self.S, self.capacity, n, faded, 1.0 - faded, S, size)
        for i in range(n, size):
            for j in range(i):
                S[i * size + j] = S[j * size + i] = -S[i * size + j]
            S[i * size + i] = 1.0 - S[i * size + i]

    cdef void become(self, const double* mean, const double* covariance, Py_ssize_t stride,
                     Py_ssize_t n) noexcept nogil:
        """U and S are these now, of n coordinates, for which there is room, and no row is pending: O(n^2)."""
        cdef Py_ssize_t y, i
        for y in range(self.width):
            memcpy(self.U + y * self.capacity, mean + y * stride, n * sizeof(double))
        for i in range(n):
            memcpy(self.S + i * self.capacity, covariance + i * stride, n * sizeof(double))
        if self.is_inflated:                         # f may be anything again, and is about what it was
            for i in range(n):
                memset(self.S + i * self.capacity, 0, n * sizeof(double))
                self.S[i * self.capacity + i] = 1.0
        self.n, self.root.n, self.is_inflated = n, 0, False
        self.version += 1

    cdef void inflate(self) noexcept nogil:
        """Keep the mean, and know as little of f as before the first example, from the next checkpoint on. O(1)."""
        self.is_inflated = True

    # ---- Predicting ---------------------------------------------------------------------------

    def mean_now(self):
        """(coordinates, coefficients): the mean is <a(x), coordinates> + sum_s coefficients_s k(x_s, x) over pending
        rows.

        Columns are outputs. It is that of the next example, so faded by one more step. O(n CHECKPOINT outputs).
        """
        n, p = self.n, self.root.n
        errors = self.errors[:, :p].T.copy("C")         # which is solved in place
        self.root.solve_transposed_into(errors)
        s = np.arange(1, p + 1)
        coefficients = self.memory ** (0.5 * (p + 1 - s))[:, None] * errors
        coordinates = self.memory ** (0.5 * (p + 1)) * self.mean[:, :n].T
        coordinates += self.corrections[:p, :n].T @ (self.memory ** s[:, None] * coefficients)
        return coordinates, coefficients

    def coordinates_of(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m):
        """(k(x, x), a(x), kernel values with the pending rows) of m rows of the source of a call."""
        cdef Py_ssize_t i, step = 1 if self.takes_objects else m        # objects come one by one
        own, a, shared = np.empty(m), np.zeros((m, self.capacity)), np.zeros((m, CHECKPOINT))
        for i in range(0, m, step):
            self.open_rows(w, first + i, step, False, False)
            self.read(w, 0, step, <double*> array_data(a) + i * self.capacity,
                      <double*> array_data(shared) + i * CHECKPOINT)
            own[i:i + step] = w.array(<char*> w.piece.own, 1, step, DOUBLE)
        return own, a[:, :self.n], shared[:, :self.root.n]

    def uncertainty(self, examples, bint together=False):
        """Variance of f at some examples; with `together`, all that their covariance has beside k(x, z) as (left,
        right).

        The covariance is k(x, z) + left(x) . right(z). O(n^2) an example.
        """
        cdef PosteriorScratch w = self.new_scratch()
        cdef Py_ssize_t first, m, n = self.n, p = self.root.n, total = len(examples)
        s = np.arange(1, p + 1)
        late, faded = self.memory ** (p + 1), self.memory ** (0.5 * (p + 1 - s))
        variance, lefts, rights = np.empty(total), [], []
        self.make_ready(w)
        self.attach(w, examples)
        for first in range(0, total, CHECKPOINT):
            m = min(CHECKPOINT, total - first)
            own, a, shared = self.coordinates_of(w, first, m)
            b = a @ self.covariance[:n, :n] - a
            c = faded * (shared + self.memory ** s * (a @ self.corrections[:p, :n].T))
            c[:, np.diag(self.gram)[:p] == 0.0] = 0.0
            c = np.ascontiguousarray(c)
            self.root.solve_into(c)
            variance[first:first + m] = own + late * np.sum(a * b, axis=1) - np.sum(c * c, axis=1)
            if together:
                lefts.append(np.hstack([late * a, -c]))
                rights.append(np.hstack([b, c]))
        return (np.vstack(lefts), np.vstack(rights)) if together else np.maximum(variance, 0.0)

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        pass

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        """Make room for more outputs: O(capacity^2)."""
        self.expansion = None
        self.set_capacity(self.capacity, width)

    def copy_last(self, Py_ssize_t known):
        """Outputs behind those that are known are what the last of these is. O(outputs n)."""
        self.expansion = None
        self.version += 1
        for array in (self.mean, self.errors):
            array[known:] = array[known - 1]

    def begin_from(self, *function, t=0):
        """A posterior is more than a function."""
        raise ValueError("a posterior cannot start from a function")

    def stored(self):
        """Named numbers and arrays; no scratch. O(n^2)."""
        n, p, kept = self.n, self.root.n, self.outputs.kept()
        return {**Function.stored(self), "mean": self.mean[:kept, :n], "covariance": self.covariance[:n, :n],
                "pending_coordinates": self.coordinates[:p, :n], "pending_corrections": self.corrections[:p, :n],
                "pending_gram": np.tril(self.gram[:p, :p]), "pending_root": self.root.lower(),
                "pending_errors": self.errors[:kept, :p]}

    def fits(self, state):
        """ValueError for too many pending rows, or rows whose covariance is not what the root is of."""
        Function.fits(self, state)
        pending = len(state["pending_root"])
        if pending >= CHECKPOINT:
            raise ValueError(f"{pending} rows are pending, and at {CHECKPOINT} there is a checkpoint")
        a, b, gram, root = (state[f"pending_{name}"] for name in ("coordinates", "corrections", "gram", "root"))
        s, own = np.arange(1, pending + 1), np.diag(gram)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.sum(a * a, axis=1)
            size = np.sqrt(own) + np.sqrt(squares)
            if not (np.abs(b - (a @ state["covariance"] - a)) <= CONSISTENT * size[:, None] + 1e-150).all():
                raise ValueError("the corrections of pending rows are not those of the covariance")
            if not (squares <= own + LOOSELY * np.max(own, initial=0.0)).all():
                raise ValueError("the coordinates of pending rows are longer than they can be")
            expected = np.tril(self.memory ** (0.5 * np.abs(s[:, None] - s)) * (gram + self.memory ** s * (a @ b.T)))
            found = np.tril(root @ root.T)
            # What is left of a difference has the rounding of what was subtracted: of k(x, z) and of a^T S a
            scale, rounding = np.sqrt(np.diag(found)), 8.0 * EPSILON * (a.shape[1] + pending)
            limit = CONSISTENT * np.outer(scale, scale) + rounding * np.outer(size, size)
            apart = ((found - expected) / limit)[own > 0.0][:, own > 0.0]
            if not (apart >= -1.0).all() or np.tril(apart, -1).max(initial=0.0) > 1.0:
                raise ValueError("the root of pending rows is not that of their covariance")

    def resume(self, state):
        """Take over U, S and the pending rows. O(n^2)."""
        cdef Py_ssize_t n = len(state["covariance"]), p = len(state["pending_root"]), labels = state["labels"]
        Function.resume(self, state)
        self.expansion = None
        self.n = self.root.n = 0
        self.set_capacity(n, self.width)
        self.n = n
        self.root.load(state["pending_root"])
        self.mean[:labels, :n], self.errors[:labels, :p] = state["mean"], state["pending_errors"]
        self.covariance[:n, :n] = state["covariance"]
        self.coordinates[:p, :n], self.corrections[:p, :n] = state["pending_coordinates"], state["pending_corrections"]
        self.gram[:p, :p] = state["pending_gram"]

    def _check(self):
        Function._check(self)
        n, p = self.n, self.root.n
        assert 0 <= p < CHECKPOINT and n <= self.capacity
        of_known(self.covariance[:n, :n], "covariance")
        self.root._check()
        for array in (self.mean[:, :n], self.coordinates[:p, :n], self.corrections[:p, :n], self.gram[:p, :p],
                      self.errors[:, :p]):
            assert np.isfinite(array).all()


cdef Py_ssize_t row_stride(Py_ssize_t n) noexcept:
    """A row length for n numbers: an odd number of cache lines, so that columns spread over the whole cache.

    At least three, as tiles read them: so a product has the same bits whatever room there is.
    """
    return 8 * (max(3, (n + 7) // 8) | 1) if n else 0


# ---- Selection of points -----------------------------------------------------------------------
# At a checkpoint, who of the pending rows joins, and who leaves.  Those join that f at the points does not determine;
# if there are more points than a budget allows, those leave that the mean of f would miss least. With a small
# tolerance, points leave too that the others have come to determine: otherwise L is so near to singular that
# coordinates are nothing but rounding.

cdef double NEAR = 1e-6         # relative: what is closer than that is the same, and the earlier one goes first
cdef long long LATER = 0x7fffffffffffffff   # than any birthday

cdef Py_ssize_t find_candidates(Posterior f, PosteriorScratch w, double tolerance, Py_ssize_t* joining,
                               double* rounding) noexcept nogil:
    """Who joins: pivoted Cholesky of what f at the points does not determine of the p pending rows: O(p^3).

    The one that is determined least comes first, and among those that are nearly the same, the earliest. V has a row
    for each of them, joining their numbers. A variance below 0 shows how large rounding is, which grows to ten times
    that.
    """
    cdef Py_ssize_t i, r, best, count = 0, stride = f.capacity, p = f.root.n
    cdef double rest[CHECKPOINT]
    cdef double own[CHECKPOINT]
    cdef double* R = w.products
    for i in range(p):
        own[i] = f.K[i * (CHECKPOINT + 1)]
        rest[i] = own[i] - ok_dot(f.a + i * stride, f.a + i * stride, f.n)
    if ok_largest_above(rest, fmax(tolerance, rounding[0]), own, p) == 0.0:
        return 0
    ok_transpose(f.a, stride, p, f.n, w.transposed, CHECKPOINT)
    ok_product(R, CHECKPOINT, p, p, f.a, stride, 1, f.n, w.transposed, CHECKPOINT, 0)
    for i in range(p):
        for r in range(i):
            R[i * CHECKPOINT + r] = f.K[i * CHECKPOINT + r] - R[i * CHECKPOINT + r]
            if own[i] == 0.0 or own[r] == 0.0:              # left out
                R[i * CHECKPOINT + r] = 0.0
            R[r * CHECKPOINT + i] = R[i * CHECKPOINT + r]
        R[i * CHECKPOINT + i] = rest[i]
    while count < p:
        if ok_least(rest, p) < 0.0:
            for i in range(p):
                if rest[i] < 0.0 and own[i] > 0.0:
                    rounding[0] = fmax(rounding[0], -10.0 * rest[i] / own[i])
        best = least_determined(rest, own, p, fmax(tolerance, rounding[0]))
        if best < 0:
            break
        joining[count] = best
        join(w, joining, count, p, sqrt(rest[best]))
        for i in range(p):
            rest[i] -= w.joining[count * CHECKPOINT + i] * w.joining[count * CHECKPOINT + i]
        count += 1
        rest[best] = own[best] = 0.0            # it is determined, and no example any more
    return count


cdef Py_ssize_t forget_candidates(PosteriorScratch w, Py_ssize_t* joining, Py_ssize_t count, Py_ssize_t p,
                                 const unsigned char* gone) noexcept nogil:
    """Only those join that are not gone: V and joining become theirs; return how many. O(p stayers^2)."""
    cdef const double* V = w.joining
    cdef Py_ssize_t i, r, best, stayers = 0
    cdef double square, least
    for i in range(count):
        if gone[i]:
            continue
        best = joining[i]
        least = V[i * CHECKPOINT + best]    # its root, given all of those before it and not only those that stay
        square = w.products[best * CHECKPOINT + best]
        for r in range(stayers):
            square -= V[r * CHECKPOINT + best] * V[r * CHECKPOINT + best]
        if i > stayers:
            joining[stayers] = best
            join(w, joining, stayers, p, sqrt(fmax(square, least * least)))
        stayers += 1
    return stayers


cdef Py_ssize_t choose_leavers(Posterior f, Factor factor, PosteriorScratch w, long long budget, Py_ssize_t size,
                               long long* births, double rounding, unsigned char* gone) noexcept nogil:
    """Mark which of so many points go, one after another; return how many.

    First those that f at all others determines: its variance given these, 1 / Q_ii with Q = K^-1, is `rounding`. Then,
    as long as there are more than the budget allows, each time the one without which the mean changes least: without
    point i it loses sum_y alpha_yi^2 / Q_ii, where alpha = L^-T U. Both follow each removal. Among those that lose
    nearly the same the oldest goes. Of Q there are only the diagonal and the columns of those that go. Birthdays of
    those that go are lost. O(n^3) for the inverse of L, and O(n^2) for each that goes.
    """
    cdef Py_ssize_t i, k, evicted, n_seen = f.outputs.n_seen
    cdef Py_ssize_t over = max(0, size - budget), most = over
    if rounding > 0.0:
        most = min(size - 1, over + CHECKPOINT)
    if most == 0:
        return 0
    cdef double* Z = w.inverse
    cdef double* diagonal = Z + size * size
    cdef double* least = diagonal + size
    cdef double* loss = least + size
    cdef double* alpha = loss + size
    cdef double* V = alpha + n_seen * size
    ok_invert_lower(factor.L, f.capacity, size, Z, size)
    if over:
        ok_product(alpha, size, n_seen, size, w.future_mean, size, 1, size, Z, size, ALL)
    ok_column_squares(Z, size, diagonal)
    for i in range(size):
        least[i] = 1.0 / ok_dot(factor.row(i), factor.row(i), i + 1)
    for k in range(most):
        evicted = most_determined(diagonal, least, gone, size, rounding) if rounding > 0.0 else -1
        if evicted < 0:
            if k >= over:
                return k
            ok_losses(alpha, n_seen, size, diagonal, loss)
            for i in range(size):
                if gone[i]:
                    loss[i] = INFINITY
            evicted = ok_oldest(loss, (1.0 + NEAR) * ok_least(loss, size), births, size)
            if evicted < 0:                     # there are no numbers any more
                evicted = 0
                while gone[evicted]:
                    evicted += 1
        ok_leave(Z, size, evicted, V, k, diagonal, least, alpha, n_seen if over else 0)
        gone[evicted], births[evicted] = 1, LATER
    return most


cdef const double* bring_back(Posterior f, Factor factor, PosteriorScratch w, Py_ssize_t size, const Py_ssize_t* kept,
                              Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """n of `size` points stay, all before the first that goes: change U and S in place, return what L has from there
    on.

    With orthonormal columns of Q, L[kept] = L' Q^T, U' = Q^T U, S' = Q^T S Q. O(n^2) for each that goes.
    """
    cdef Py_ssize_t i, r, y, rest = size - first, stay = n - first, columns = stay + f.width
    cdef ok_reflections h
    cdef double* U = w.future_mean
    cdef double* S = w.future
    h.n, h.more, h.heads = stay, size - n, w.leaving
    h.tails = h.heads + stay
    h.meet = h.tails + stay * h.more
    h.work = h.meet + stay * OK_REFLECTED
    cdef double* X = h.work + OK_REFLECTED * max(size, columns)     # [L[kept]^T , U^T], a row for each coordinate
    cdef double* left = X + rest * columns                          # S
    cdef double* both = left + rest * size                          # (Q^T S)^T
    cdef double* corner = both + rest * stay
    cdef Py_ssize_t* order = <Py_ssize_t*> (corner + stay * stay)   # coordinates, first those that stay
    for i in range(stay):
        order[i] = kept[first + i]
    y = 0
    for i in range(first, size):
        if y < stay and order[y] == i:
            y += 1
        else:
            order[stay + i - first - y] = i
    for r in range(rest):
        for i in range(stay):
            X[r * columns + i] = factor.row(kept[first + i])[order[r]] if order[r] <= kept[first + i] else 0.0
        for y in range(f.width):
            X[r * columns + stay + y] = U[y * size + order[r]]
        memcpy(left + r * size, S + order[r] * size, size * sizeof(double))
    ok_find_reflections(&h, X, columns, columns)
    ok_reflect(&h, left, size, size)
    for r in range(rest):
        for i in range(stay):
            both[r * stay + i] = left[i * size + order[r]]
    ok_reflect(&h, both, stay, stay)
    for i in range(stay):
        for y in range(f.width):
            U[y * size + first + i] = X[i * columns + stay + y]
        for r in range(first):
            S[(first + i) * size + r] = S[r * size + first + i] = left[i * size + r]
        for r in range(i + 1):
            S[(first + i) * size + first + r] = 0.5 * (both[i * stay + r] + both[r * stay + i])
            S[(first + r) * size + first + i] = S[(first + i) * size + first + r]
        for r in range(stay):
            corner[i * stay + r] = X[r * columns + i] if r <= i else 0.0
    return corner


cdef void join(PosteriorScratch w, const Py_ssize_t* joining, Py_ssize_t count, Py_ssize_t p,
               double root) noexcept nogil:
    """The last of those that join, behind `count` others, makes the next row of V; root is what they do not
    determine. O(p count)."""
    cdef Py_ssize_t r, last = joining[count]
    cdef double* V = w.joining
    ok_eliminate(w.products + last * CHECKPOINT, last, root, V, CHECKPOINT, count, p)
    for r in range(count):
        V[count * CHECKPOINT + joining[r]] = 0.0
    V[count * CHECKPOINT + last] = root


cdef Py_ssize_t most_determined(const double* precision, const double* least, const unsigned char* gone, Py_ssize_t n,
                                double rounding) noexcept nogil:
    """The point whose precision given f at all others is most times its least, if more than 1 / rounding; -1 for none.
    O(n)."""
    cdef Py_ssize_t i, most = -1
    for i in range(n):
        if not gone[i] and rounding * precision[i] > least[i] and (
                most < 0 or precision[i] * least[most] > precision[most] * least[i]):
            most = i
    return most


cdef Py_ssize_t least_determined(const double* rest, const double* own, Py_ssize_t p, double share) noexcept nogil:
    """The example with the largest rest of those with more than this share of k(x, x), of equals the earliest; -1 for
    none. O(1)."""
    cdef Py_ssize_t i
    cdef double largest = ok_largest_above(rest, share, own, p)
    if largest > 0.0:
        for i in range(p):
            if rest[i] > share * own[i] and rest[i] >= (1.0 - NEAR) * largest:
                return i
    return -1


# ---- A posterior on inducing points ------------------------------------------------------------

# A variance given f at other points, relative to k(x, x), that may be rounding. If that of each point, given all
# others, is at least this, the coefficients of f(x) given f_D are at most 1 / sqrt(DETERMINED), and coordinates of any
# x are right up to the rounding of the kernel over DETERMINED.
cdef double DETERMINED = 1e-11
# What is new given those before it, by a tolerance, all others may determine so much better: points of a line that goes
# on do.
cdef double BETTER = 1e-5
cdef long long STAYS = 1 << 40  # marks a role while others are given up

cdef class InducingPoints(Observer):
    """Which slots of a dictionary the points of a posterior, and its pending rows, are in."""

    FIELDS = Array("roles", np.int64, ("n",)),

    cdef Dictionary dictionary              # whose slots they are
    cdef readonly Table roles               # int64: 1 + the coordinate of a point, -1 - s of pending row s, else 0
    cdef Table orders                       # intp: the memory of `order`
    cdef Py_ssize_t* order                  # slots of the coordinates,
    cdef Py_ssize_t pending[CHECKPOINT]     # and of the pending rows

    def __init__(self, Dictionary dictionary, long long most):
        self.dictionary, self.most = dictionary, most
        self.roles, self.orders = dictionary.new_table(1, np.int64), dictionary.new_table(1, np.intp)
        dictionary.observer = self
        self.moved()

    cdef void moved(self) noexcept:
        """Read where everybody is from the table that has moved with the slots."""
        cdef Py_ssize_t slot
        cdef const long long* roles = <const long long*> self.roles.data
        self.order = <Py_ssize_t*> self.orders.data
        for slot in range(self.dictionary.capacity):
            if roles[slot] > 0:
                self.order[roles[slot] - 1] = slot
            elif roles[slot] < 0:
                self.pending[-1 - roles[slot]] = slot

    def stored(self):
        return {"roles": self.roles.array[0, self.dictionary.saved_slots()]}

    def resume(self, state):
        """The points are there."""
        self.roles.array[0] = state["roles"]
        self.moved()

    cdef void become(self, const Py_ssize_t* slots, Py_ssize_t n) noexcept nogil:
        """These slots are the points now, in the order of their coordinates; all others go, and no row is pending."""
        cdef long long* roles = <long long*> self.roles.data
        cdef Py_ssize_t slot, i
        for i in range(n):
            roles[slots[i]] = STAYS + i + 1
            self.order[i] = slots[i]
        for slot in range(self.dictionary.stop - 1, self.dictionary.start - 1, -1):
            if roles[slot] >= STAYS:
                roles[slot] -= STAYS
            elif roles[slot] != 0:
                roles[slot] = 0
                self.dictionary.release(slot)


@cython.final
cdef class PointsPosterior(Posterior):
    """f known at points of a dictionary: f_D = L u."""

    FIELDS = (*Posterior.FIELDS, Array("factor", np.float64, ("n_coordinates", "n_coordinates"), lower_triangular),
              Inlined("dictionary"), Inlined("inducing"))

    cdef readonly Dictionary dictionary     # the kernel, over the points and the pending rows,
    cdef readonly InducingPoints inducing   # whose slots it knows
    cdef readonly long long most            # points that stay at a checkpoint
    # a point joins above this variance given f at all others, relative to k(x, x)
    cdef readonly double tolerance
    cdef readonly Factor factor             # L, with room for `capacity` points
    cdef long long born                     # birthday of the latest example

    def __init__(self, *, Dictionary dictionary, Outputs outputs, double memory, bint classes, budget,
                 double tolerance):
        Posterior.__init__(self, dictionary.n_features, dictionary.dtype, outputs, memory, classes)
        self.keeps = "terms"
        self.dictionary = dictionary
        self.takes_objects, self.notices_bad_points = dictionary.takes_objects, dictionary.notices_bad_points
        dictionary.evaluates_own = True
        self.most = UNBOUNDED if budget is None else budget
        self.inducing = InducingPoints(self.dictionary, UNBOUNDED if budget is None else budget + 2 * CHECKPOINT)
        self.tolerance = tolerance
        self.factor = Factor(0)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for so many points, in all arrays or in none: O(capacity^2) when it grows, which doubles."""
        cdef Py_ssize_t stride = self.capacity if n <= self.capacity else row_stride(max(n, 2 * self.n))
        if self.factor.capacity == stride:
            return 0
        factor = self.factor.with_capacity(stride)
        if stride != self.capacity:
            self.set_capacity(stride, self.width)
        self.factor = factor                    # nothing can fail any more

    cdef int attach(self, Scratch w, examples) except -1:
        return self.dictionary.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.takes_objects else Posterior.piece_rows(self)

    cdef Py_ssize_t most_rows(self):
        return 1 if self.takes_objects else CHECKPOINT

    cdef bint stagger(self, Py_ssize_t rows) noexcept:
        """Half as much at a checkpoint, too."""
        self.every = CHECKPOINT // 2
        self.first = self.every - rows % self.every
        return True

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.dictionary.rows_to_evaluate()

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning,
                       bint by_slots) except -1:
        return self.dictionary.open(w.piece, first, m, learning, by_slots)

    cdef Py_ssize_t read_key(self, PosteriorScratch w) noexcept nogil:
        """Kernel values: as long as nothing was learned, all follows from them."""
        cdef Py_ssize_t r, n = self.n, start = self.dictionary.start
        cdef const double* values
        if self.dictionary.size():
            values = self.dictionary.values(w.piece, 0)
            for r in range(n):
                w.new_key[r] = values[self.inducing.order[r] - start]
            for r in range(self.root.n):
                w.new_key[n + r] = values[self.inducing.pending[r] - start]
        return n + self.root.n

    cdef void read_from_key(self, PosteriorScratch w) noexcept nogil:
        memcpy(w.point, w.key, self.n * sizeof(double))
        memcpy(w.shared, w.key + self.n, self.root.n * sizeof(double))
        self.factor.solve_rows(w.point, self.capacity, 1)

    cdef void read(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, double* a, double* K) noexcept nogil:
        cdef Py_ssize_t i, r, n = self.n, p = self.root.n, start = self.dictionary.start, stride = self.capacity
        cdef Py_ssize_t* order = self.inducing.order
        cdef Py_ssize_t* pending = self.inducing.pending
        cdef const double* values
        for i in range(m):
            if self.dictionary.size():
                values = self.dictionary.values(w.piece, first + i)
                for r in range(n):
                    a[i * stride + r] = values[order[r] - start]
                for r in range(p):
                    K[i * CHECKPOINT + r] = values[pending[r] - start]
            if w.learning:
                values = self.dictionary.own_values(w.piece, first + i)
                for r in range(i):
                    K[i * CHECKPOINT + p + r] = values[first + r]
                K[i * CHECKPOINT + p + i] = w.piece.own[first + i]
        self.factor.solve_rows(a, stride, m)

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.dictionary.point_is_finite(w.piece, i)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t slot
        self.born += 1
        slot = self.dictionary.admit(w.piece, i, self.born)
        self.dictionary.keep_cached(w.piece, i, slot)
        self.dictionary.hold(slot)
        self.inducing.pending[self.root.n] = slot
        (<long long*> self.inducing.roles.data)[slot] = -1 - self.root.n

    cdef int close(self, Scratch w) except -1:
        return self.dictionary.close(w.piece)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()

    # ---- Checkpoints --------------------------------------------------------------------------

    cdef int prepare_checkpoint(self, PosteriorScratch w, Py_ssize_t n) except -1:
        """Room for all pending rows to join, and as many points to go."""
        cdef Py_ssize_t size = n + CHECKPOINT, most = 2 * CHECKPOINT, stay = size + self.width
        cdef Py_ssize_t square = CHECKPOINT * CHECKPOINT
        Posterior.prepare_checkpoint(self, w, size)
        self.reserve(size)
        w.transposed = <double*> w.buffer(TRANSPOSED, self.capacity * CHECKPOINT * sizeof(double))
        w.products = <double*> w.buffer(PRODUCTS, 2 * square * sizeof(double))
        w.joining = w.products + square
        w.inverse = <double*> w.buffer(INVERSE, (size + 3 + self.width + most) * size * sizeof(double))
        w.leaving = <double*> w.buffer(LEAVING, (ok_reflections_size(size, most) + OK_REFLECTED * stay
                                                 + (stay + 3 * size + 1) * size) * sizeof(double))
        w.chosen = <Py_ssize_t*> w.buffer(CHOSEN, size * (3 * sizeof(long long) + 1))

    cdef void conclude(self, PosteriorScratch w) noexcept nogil:
        """Take in the pending rows; let join who is new, and go who is least missed."""
        cdef Py_ssize_t i, first = 0, n = self.n, count, size, stayers
        cdef Py_ssize_t joining[CHECKPOINT]
        cdef double rounding = DETERMINED
        cdef const double* corner = NULL
        count = find_candidates(self, w, self.tolerance, joining, &rounding)
        self.begin_update(w)
        self.prepare_rows(w.joining, joining, count)
        self.find_mean(w, count)
        size = n + count
        cdef Py_ssize_t* slot = w.chosen
        cdef Py_ssize_t* stay = slot + size
        cdef long long* births = <long long*> (stay + size)
        cdef unsigned char* leaves = <unsigned char*> (births + size)
        self.list_slots(slot, joining, count)
        for i in range(size):
            births[i], leaves[i] = self.dictionary.born(slot[i]), 0
        if count == 0 or self.tolerance * BETTER >= rounding:
            rounding = 0.0                      # nobody is determined who was not before
        if choose_leavers(self, self.factor, w, self.most, size, births, rounding, leaves):
            stayers = forget_candidates(w, joining, count, self.root.n, leaves + n)
            if stayers < count:
                count = stayers
                self.prepare_rows(w.joining, joining, count)
                self.list_slots(slot, joining, count)
                self.find_mean(w, count)
        size, n = n + count, 0
        self.find_covariance(w, count)
        for i in range(size):
            if i >= self.n or not leaves[i]:
                stay[n] = i
                n += 1
        if n < size:
            while first < n and stay[first] == first:
                first += 1
            corner = bring_back(self, self.factor, w, size, stay, n, first)
            for i in range(n):
                slot[i] = slot[stay[i]]
            self.factor.keep(stay, first, n, corner)
        self.factor.n = n
        self.inducing.become(slot, n)
        self.become(w.future_mean, w.future, size, n)

    cdef void prepare_rows(self, const double* V, const Py_ssize_t* joining, Py_ssize_t count) noexcept nogil:
        """Rows of L of those that join, behind those in use: O(count n)."""
        cdef Py_ssize_t i, r, n = self.n
        cdef double* row
        for i in range(count):
            row = self.factor.row(n + i)
            memcpy(row, self.a + joining[i] * self.capacity, n * sizeof(double))
            for r in range(count):
                row[n + r] = V[r * CHECKPOINT + joining[i]] if r <= i else 0.0

    cdef void list_slots(self, Py_ssize_t* slots, const Py_ssize_t* joining, Py_ssize_t count) noexcept nogil:
        """Slots of all points, with those that join."""
        cdef Py_ssize_t i
        memcpy(slots, self.inducing.order, self.n * sizeof(Py_ssize_t))
        for i in range(count):
            slots[self.n + i] = self.inducing.pending[joining[i]]

    # ---- Predicting ---------------------------------------------------------------------------

    def expanded(self):
        """Coefficients of the mean over the slots in use, a row for each output."""
        cdef Py_ssize_t n = self.n, p = self.root.n, start = self.dictionary.start, r
        points, pending = self.mean_now()
        points = np.ascontiguousarray(points)
        self.factor.solve_transposed_into(points)
        rows = np.zeros((self.outputs.n, self.dictionary.stop - start))
        for r in range(n):
            rows[:, self.inducing.order[r] - start] = points[r, :self.outputs.n]
        for r in range(p):
            rows[:, self.inducing.pending[r] - start] = pending[r, :self.outputs.n]
        return rows

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t slot, l, size, start = self.dictionary.start
        cdef const double* values
        cdef PosteriorScratch scratch
        Posterior.open(self, w, first, m, learning, by_slots)
        if not w.piece.transposed:
            return 0
        scratch = w
        size = self.dictionary.size()
        scratch.totals = <double*> w.buffer(TOTALS, self.outputs.n * m * sizeof(double))
        with nogil:
            memset(scratch.totals, 0, self.outputs.n * m * sizeof(double))
            for slot in range(start, self.dictionary.stop):
                values = self.dictionary.slot_over_piece(w.piece, slot)
                for l in range(self.outputs.n):
                    ok_axpy(scratch.expansion[l * size + slot - start], values, scratch.totals + l * m, m)

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t l, size = self.dictionary.size()
        if w.totals != NULL:
            for l in range(self.outputs.n):
                out[l] = w.totals[l * w.piece.rows + i]
        elif size:
            ok_times_rows(w.expansion, size, self.outputs.n, size, self.dictionary.values(w.piece, i), out)
        else:
            for l in range(self.outputs.n):
                out[l] = 0.0

    # ---- For Python ---------------------------------------------------------------------------

    def slots(self):
        """Slots of points and of pending rows, oldest first."""
        slots = np.flatnonzero(self.inducing.roles.array[0] != 0)
        return slots[np.argsort(self.dictionary.birthdays.array[0, slots], kind="stable")]

    def points(self):
        """Points, and pending rows, oldest first."""
        return self.dictionary.points_at(self.slots())

    def pairs(self):
        """There are no pairs of labels."""

    def coefficients(self, int channel):
        """Coefficients of the mean, (outputs, terms), oldest first."""
        return self.expanded()[:, self.slots() - self.dictionary.start]

    def stored(self):
        return {**Posterior.stored(self), "factor": self.factor.lower()}

    def fits(self, state):
        Posterior.fits(self, state)
        n, p = len(state["factor"]), len(state["pending_root"])
        if n > self.most:
            raise ValueError(f"{n} points are more than the budget of {self.most}")
        if sorted(state["roles"].tolist()) != [*range(-p, 0), *range(1, n + 1)]:
            raise ValueError("the roles are not those of all coordinates and pending rows")

    def resume(self, state):
        cdef Py_ssize_t n = len(state["factor"])
        Posterior.resume(self, state)
        self.factor = Factor(0)
        self.reserve(n)
        self.factor.load(state["factor"])
        self.born = state["t"]

    def check_restored(self):
        """ValueError if the factor is not that of the points, which have no variance of their own. O(n^3)."""
        cdef PosteriorScratch w = self.new_scratch()
        if self.takes_objects:                  # their kernel is Python code
            return
        points = self.dictionary.points_at(self.slots())
        self.make_ready(w)
        self.attach(w, points)
        for first in range(0, len(points), CHECKPOINT):
            own, a, _ = self.coordinates_of(w, first, min(CHECKPOINT, len(points) - first))
            with np.errstate(over="ignore", invalid="ignore"):
                shares = np.sum(a * a, axis=1) / own
            roles = self.inducing.roles.array[0, self.slots()[first:first + CHECKPOINT]]
            if not ((np.abs(shares - 1.0) < LOOSELY) | (roles < 0) & ((shares < 1.0) | (own == 0.0))).all():
                raise ValueError("the factor is not that of the points")

    def _check(self):
        Posterior._check(self)
        self.dictionary._check()
        self.factor._check()
        assert self.factor.n == self.n and self.factor.capacity == self.capacity
        roles = self.inducing.roles.array[0]
        assert sorted(roles[roles != 0].tolist()) == [*range(-self.root.n, 0), *range(1, self.n + 1)]
        assert self.dictionary.taken.array[0, roles != 0].all() and self.n <= self.most
        for slot in np.flatnonzero(roles):
            role = roles[slot]
            assert slot == (self.inducing.order[role - 1] if role > 0 else self.inducing.pending[-1 - role])


# ---- A posterior on features -------------------------------------------------------------------

@cython.final
cdef class WeightsPosterior(Posterior):
    """f known through weights over features: a(x) = phi(x), the classical recursive least squares.

    A linear kernel is the map sqrt(scale) x.
    """

    FIELDS = *Posterior.FIELDS, Inlined("map")

    cdef readonly FeatureMap map            # phi
    cdef readonly double scale              # weights are shown as those of f = scale <w, x>

    def __init__(self, *, FeatureMap map, Outputs outputs, double memory, bint classes, double scale=1.0):
        Posterior.__init__(self, map.n_features, map.dtype, outputs, memory, classes)
        self.keeps = "weights"
        self.map, self.scale = map, scale
        self.set_capacity(map.size, self.width)
        self.n = map.size
        np.fill_diagonal(self.covariance[:self.n, :self.n], 1.0)

    cdef int attach(self, Scratch w, examples) except -1:
        return self.map.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.map.grows() else Posterior.piece_rows(self)

    cdef Py_ssize_t most_rows(self):
        return 1 if self.map.grows() else CHECKPOINT

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning,
                       bint by_slots) except -1:
        """Features into w.features."""
        cdef Py_ssize_t i, n = self.n
        if learning and self.map.grows():
            change = self.map.change(w.piece, first)
            if change is not None:
                self.change_coordinates(w, change)
            self.map.carry_out_change()
        w.features = <double*> w.buffer(FEATURES, (m + 1) * n * sizeof(double))
        self.map.map_rows(w.piece, first, m, learning, w.features, n)
        w.piece.begin(m)
        w.piece.own = <double*> w.piece.buffer(OWN, m * sizeof(double))
        for i in range(m):
            w.piece.own[i] = ok_dot(w.features + i * n, w.features + i * n, n)

    def change_coordinates(self, PosteriorScratch w, change):
        """Features become B phi, and so do weights; of those that are new nothing is known.

        No row stays pending: what the root is of, the new features no longer say.
        """
        cdef Py_ssize_t n = self.n
        self.prepare_checkpoint(w, n)
        self.find_update(w)
        mean = np.ascontiguousarray(w.array(<char*> w.future_mean, self.width, n, DOUBLE) @ change.T)
        covariance = change @ w.array(<char*> w.future, n, n, DOUBLE) @ change.T + np.eye(n) - change @ change.T
        self.become(<const double*> array_data(mean), <const double*> array_data(covariance), n, n)

    cdef Py_ssize_t read_key(self, PosteriorScratch w) noexcept nogil:
        """Features: as long as nothing was learned, all follows from them."""
        memcpy(w.new_key, w.features, self.n * sizeof(double))
        return self.n

    cdef void read_from_key(self, PosteriorScratch w) noexcept nogil:
        memcpy(w.point, w.key, self.n * sizeof(double))
        ok_times_rows(self.a, self.capacity, self.root.n, self.n, w.point, w.shared)

    cdef void read(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, double* a, double* K) noexcept nogil:
        cdef Py_ssize_t i, p = self.root.n
        cdef const double* features = w.features + first * self.n
        for i in range(m):
            memcpy(a + i * self.capacity, features + i * self.n, self.n * sizeof(double))
            ok_times_rows(self.a, self.capacity, p + i + 1 if w.learning else p, self.n, features + i * self.n,
                          K + i * CHECKPOINT)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        self.map.admit(w.piece)

    cdef void find_update(self, PosteriorScratch w) noexcept nogil:
        """U and S with the pending rows taken in."""
        self.begin_update(w)
        self.find_mean(w, 0)
        self.find_covariance(w, 0)

    cdef void conclude(self, PosteriorScratch w) noexcept nogil:
        self.find_update(w)
        self.become(w.future_mean, w.future, self.n, self.n)

    def expanded(self):
        """The mean of the weights over features, a row for each output; f = <features, weights>."""
        coordinates, pending = self.mean_now()
        return (coordinates + self.coordinates[:self.root.n, :self.n].T @ pending).T[:self.outputs.n]

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        ok_times_rows(w.expansion, self.n, self.outputs.n, self.n, w.features + i * self.n, out)

    def coefficients(self, int channel):
        """Weights, a row for each output."""
        return self.expanded() / sqrt(self.scale)

    def widened(self, Py_ssize_t extra, double fill):
        """The state for examples with so many more columns, which held the value `fill` in all of them so far."""
        columns, size, features = self.map.widened(extra, fill)
        state = {**state_of(self), **features}
        for name in ("mean", "pending_coordinates", "pending_corrections"):
            wider = np.zeros((len(state[name]), size))
            wider[:, columns] = state[name]
            state[name] = wider
        covariance = np.eye(size)
        covariance[np.ix_(columns, columns)] = state["covariance"]
        return {**state, "covariance": covariance}

    def fits(self, state):
        Posterior.fits(self, state)
        if len(state["covariance"]) != self.map.size:
            raise ValueError("there are not as many weights as features")

    def _check(self):
        Posterior._check(self)
        for leaf in self.map.leaves():
            leaf._check()


# ---- The rule ----------------------------------------------------------------------------------
# What a posterior knows of an example before it has seen its y is N(f, variance + noise).  Real data is not like that,
# so innovations are watched: how large they are, for the noise, and how often they are beyond each of several
# quantiles, for intervals that cover as often as they say.

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
cdef double[LEVELS] COVERAGE = COVERAGES
# How far from the mean so much of a Gaussian is, in deviations
cdef double[LEVELS] QUANTILE = (0.12566134685507413, 0.2533471031357998, 0.3853204664075676, 0.5244005127080407,
                                0.6744897501960817, 0.8416212335729144, 1.0364333894937894, 1.2815515655446008,
                                1.6448536269514715, 1.9599639845400536, 2.5758293035489)
cdef double GAIN = 0.1              # of the tracked ratios
cdef double LEAST_NOISE = 1e-10     # what an estimate does not fall below
cdef double OUTLIER = 4.0           # running errors beyond which one counts for no more than that
cdef double CHANGE = 3.0             # times the running square of innovations after which f is doubted

cdef inline double size_of(const double* innovations, Py_ssize_t n) noexcept nogil:
    """Root of the mean square."""
    cdef Py_ssize_t l
    cdef double square = 0.0
    for l in range(n):
        square += innovations[l] * innovations[l] / n
    return sqrt(square)


def level_of(double coverage):
    """(level, share of the next one, factor): the interval of a coverage among those that are tracked.

    In between its half-width goes with the quantiles of a Gaussian; beyond the first and the last it is a multiple of
    theirs.
    """
    from statistics import NormalDist           # takes milliseconds to import

    cdef int level = 0
    cdef double quantile = NormalDist().inv_cdf(0.5 + 0.5 * coverage)
    cdef double share
    while level < LEVELS - 2 and coverage > COVERAGE[level + 1]:
        level += 1
    share = (quantile - QUANTILE[level]) / (QUANTILE[level + 1] - QUANTILE[level])
    if share < 0.0:
        return level, 0.0, quantile / QUANTILE[level]
    return level, min(share, 1.0), max(1.0, quantile / QUANTILE[level + 1])


@cython.final
cdef class Recursive(Rule):
    """Condition on an example: kernel recursive least squares."""

    FIELDS = (Number("noise", positive), Array("ratios", np.float64, (LEVELS, "labels"), within(1e-7, 1e7)),
              Number("running_error", positive), Number("reference", positive), Number("surprise", not_negative),
              Count("since"), Count("surprised"), Count("changes"), Flag("is_inflated"))

    forms = ("Innovations",)

    cdef readonly Posterior posterior   # f, and how well it is known
    cdef readonly double noise          # variance of y about f
    cdef readonly bint estimates        # whether it is estimated while learning
    cdef readonly double running_error  # then: how large innovations are, in units of what it should be
    cdef readonly long long since       # then: examples since the first, or since the last doubt
    cdef readonly double reference      # then: variance of y about f as it was at the last checkpoint
    # then: sum of squares of innovations in units of that, since the last checkpoint
    cdef readonly double surprise
    cdef readonly long long surprised   # of so many examples
    cdef readonly long long changes     # then: how often f was doubted
    # (LEVELS, columns): what a Gaussian quantile must be multiplied by to cover as it says
    cdef readonly object ratios
    cdef double* ratio                  # of `ratios`
    cdef Py_ssize_t columns             # at least as many as outputs

    def __init__(self, step, Posterior posterior, double noise, bint estimates=False):
        self.posterior, self.noise, self.running_error, self.reference = posterior, noise, 1.0, noise
        self.set_ratios(np.ones((LEVELS, posterior.width)))
        self.configure(step, noise, estimates)

    def configure(self, step, double noise, bint estimates=False):
        Rule.configure(self, step)
        self.estimates = estimates
        if not estimates:
            self.noise = noise

    cdef int set_ratios(self, ratios) except -1:
        cdef double* ratio = <double*> array_data(ratios)
        cdef Py_ssize_t columns = ratios.shape[1]
        self.ratios, self.ratio, self.columns = ratios, ratio, columns

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint future):
        if width > self.columns:
            ratios = np.ones((LEVELS, width))
            ratios[:, :self.columns] = self.ratios
            self.set_ratios(ratios)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """Innovations in units of their deviation; a weight divides the noise."""
        cdef Py_ssize_t c
        cdef double weight = e.weight, noise = self.noise / weight if weight > 0.0 else 0.0
        stand_still(&e.move)
        if not isfinite(noise):                 # so small a weight says nothing
            weight = noise = 0.0
        e.view.weight = weight
        e.deviation = sqrt(e.variance + fmax(noise, fmax(ROUNDING * k, 1e-300)))
        if self.is_robust() and weight > 0.0:
            e.deviation *= fmax(1.0, size_of(e.innovation, self.posterior.width) / e.deviation
                                / (OUTLIER * fmax(self.running_error, 1.0)))
        for c in range(self.posterior.width):
            e.innovation[c] = e.innovation[c] / e.deviation if weight > 0.0 else 0.0

    cdef bint is_robust(self) noexcept nogil:
        """Whether outliers and changes are looked for: numbers, whose noise is not known. Classes cannot be far off."""
        return self.estimates and not self.posterior.classes

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        cdef double square, excess = 1.0        # by how much the deviation was raised, for an outlier or above rounding
        labels = self.posterior.outputs.n_seen
        if e.view.weight > 0.0 and labels > 0:
            if self.is_robust():
                excess = e.deviation / sqrt(e.variance + self.noise / e.view.weight)
            if not self.posterior.classes:
                self.follow_coverage(labels, excess, e)
            if self.estimates:
                square = (excess * size_of(e.innovation, labels)) ** 2
                if self.is_robust():
                    self.look_for_a_change(square, e)
                self.follow_noise(square, e)

    cdef void follow_coverage(self, Py_ssize_t labels, double excess, Example e) noexcept nogil:
        """Each ratio grows if the innovation was beyond its quantile and shrinks otherwise, so that it balances."""
        cdef Py_ssize_t l, level
        cdef double* ratio
        cdef bint beyond
        for level in range(LEVELS):
            for l in range(labels):
                ratio = self.ratio + level * self.columns + l
                beyond = excess * fabs(e.innovation[l]) > QUANTILE[level] * ratio[0]
                ratio[0] *= exp(GAIN * ((1.0 if beyond else 0.0) - (1.0 - COVERAGE[level])))
                ratio[0] = fmin(fmax(ratio[0], 1e-6), 1e6)

    cdef void follow_noise(self, double square, Example e) noexcept nogil:
        """A step up the likelihood of the innovation, in log noise; an outlier counts for little."""
        cdef double share = self.noise / (e.view.weight * e.variance + self.noise)
        self.noise *= exp(fmax(0.01, 0.5 / sqrt(<double> self.since + 1.0)) * share * fmin(square - 1.0, 5.0))
        self.noise = fmax(self.noise, LEAST_NOISE)
        self.since += 1

    cdef void look_for_a_change(self, double square, Example e) noexcept nogil:
        """Doubt all that is known of f if the innovations from one checkpoint to the next are much larger than they
        used to be.

        Some outliers are no change: none counts for more than 9.
        """
        cdef double raw = square * (e.variance + self.noise / e.view.weight)
        self.surprise += fmin(raw / (e.variance + self.reference / e.view.weight), 9.0)
        self.surprised += 1
        self.running_error *= exp(fmax(0.05, 2.0 / (self.since + 2.0))
                                  * (1.0 if square > (0.6745 * self.running_error) ** 2 else -1.0))
        if self.posterior.root.n == self.posterior.due() - 1:   # the last row before a checkpoint
            if self.surprised >= CHECKPOINT // 2 and self.surprise > CHANGE * self.surprised:
                self.posterior.inflate()
                self.changes += 1
                self.since = 0
                # perhaps it is y that is noisier; if not, the noise falls back soon
                self.noise = fmax(self.noise, self.surprise / self.surprised
                                  * (e.variance + self.reference / e.view.weight))
                self.running_error = 1.0
            self.surprise, self.surprised, self.reference = 0.0, 0, self.noise * fmax(self.running_error, 1.0) ** 2

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        self.posterior.absorb(<PosteriorScratch> w, e.innovation, e.deviation, e.view.weight > 0.0)

    cdef bint is_finite(self, Example e) noexcept nogil:
        return isfinite(self.noise + e.deviation)       # an outlier may be so far off that its square is not a number

    cdef double tracked(self, Py_ssize_t output, int level, double share) noexcept nogil:
        """How far y may be from f, in deviations, between a level and the next; never less than at a lower level."""
        cdef int l
        cdef double here = 0.0, there
        for l in range(level + 1):
            here = fmax(here, QUANTILE[l] * self.ratio[l * self.columns + output])
        there = fmax(here, QUANTILE[level + 1] * self.ratio[(level + 1) * self.columns + output])
        return (1.0 - share) * here + share * there

    cdef double noise_of_targets(self) noexcept nogil:
        return self.noise

    cdef double half_width(self, Example e, Py_ssize_t output, int level, double share, double factor) noexcept nogil:
        return sqrt(e.variance + self.noise) * factor * self.tracked(output, level, share)

    def half_widths(self, double coverage):
        """Half the width of the interval of this coverage for each output, in deviations of y."""
        level, share, factor = level_of(coverage)
        return np.array([factor * self.tracked(output, level, share) for output in range(self.posterior.width)])

    def stored(self):
        return {"ratios": self.ratios[:, :self.posterior.outputs.kept()], "is_inflated": self.posterior.is_inflated}

    def resume(self, state):
        self.noise, self.running_error = state["noise"], state["running_error"]
        self.reference, self.surprise = state["reference"], state["surprise"]
        self.since, self.surprised, self.changes = state["since"], state["surprised"], state["changes"]
        if state["is_inflated"]:
            self.posterior.inflate()
        self.ratios[:, :state["labels"]] = state["ratios"]


@cython.final
cdef class Innovations(Form):
    """Targets minus scores, of all outputs: numbers, or +1 for the label and -1 for all others."""

    cdef readonly Posterior posterior   # f, and how well it is known

    def __init__(self, Recursive rule, Outputs outputs, Py_ssize_t targets=1):
        Form.__init__(self, rule, outputs, None, targets)
        self.posterior = rule.posterior

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t c, width = self.posterior.width
        cdef Py_ssize_t label = <Py_ssize_t> e.targets[0] if self.posterior.classes else -1
        cdef bint finite = True
        e.all_labels, e.term.n, e.term.enters = True, 0, False
        for c in range(width):
            e.innovation[c] = ((1.0 if c == label else -1.0) if self.posterior.classes else e.targets[c]) - e.bare[c]
        self.rule.move_all(now, self.outputs, label, k, e)
        for c in range(width):
            finite &= isfinite(e.innovation[c])
        if not finite:
            e.failure = MOVE
        return finite
