"""The function f as terms or weights: evaluate it, transform it, append a term.

For a piece of examples, the inner products with all terms and of the examples with each other come
from one matrix product each.  When an example enters the expansion, its column of inner products is
copied from the piece's own Gram matrix, so later examples of the piece see it, and the result is what
one example at a time would give.
"""
import numpy as np
from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.frame cimport (MAX_CHANNELS, frame_advance, frame_is_bad, frame_reset,
                                        frame_row, frame_store)
from onlinekernels._core.kernels cimport MAX_OPS
from onlinekernels._core.ring cimport array_data
from onlinekernels._core.ring import check_array
from onlinekernels._core.vecmath cimport *

FORMS = {"one": ONE, "pair": PAIR, "dense": DENSE}

cdef enum:
    PREDICT_ROWS = 256  # rows of a piece that is only evaluated

# Stored coordinates beyond this are folded, so that sums of them stay finite.
cdef double LARGE = 1e150


cdef class Expansion:
    """f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y], in one of three forms of A_i.

    Parameters
    ----------
    program : Program or None
        The kernel, for points; with neither it nor `kernel`, f is kept as weights.
    kernel : Kernel or None
        A kernel of Python objects.
    weight_scale : float
        For weights: k(x, z) = weight_scale <x, z>.
    n_features, dtype, origin
        The points' width (None for objects), precision, and the point they are kept about.
    budget : tuple
        (code, size, exponent).
    channels : int
        f, then what moves with it: the gradient trace v, the sum F of all hypotheses.
    outputs : Outputs or None
        The labels; None is one output.
    form : int
        ONE, PAIR or DENSE.
    evaluates_slots : bool
        Whether `evaluate_slot` will be needed: f and v at the points of terms.
    """

    def __init__(self, *, Program program, kernel, double weight_scale, n_features, dtype, origin, budget,
                 int channels, Outputs outputs, int form, bint evaluates_slots=False):
        self.evaluates_slots = evaluates_slots
        self.program = program
        self.kernel = kernel
        self.weight_scale = weight_scale
        self.begin(0 if n_features is None else n_features, dtype, channels, outputs, form)
        if program is None and kernel is None:
            self.weights = np.zeros((channels * self.width, self.n_features))
            self.weight_data = <double*> array_data(self.weights)
        else:
            if program is not None:
                program.start(n_features, dtype, origin)
            self.pool = Pool(budget, channels, self.width if form == DENSE else 1,
                             None if program is None else n_features, dtype,
                             0 if program is None else program.n_facts, form == PAIR)

    cdef begin(self, Py_ssize_t n_features, dtype, int channels, Outputs outputs, int form):
        """What every kind of expansion has."""
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.outputs = outputs
        self.form = form
        self.width = 1 if outputs is None else max(1, outputs.n)
        self.frame.channels = channels
        frame_reset(&self.frame)
        self.scratch = [None] * N_SCRATCH

    cdef int begin_piece(self, Piece* piece, Py_ssize_t m) except -1:
        """A piece of m rows about which nothing is known yet, with room for k(x, x)."""
        memset(piece, 0, sizeof(Piece))
        piece.rows = m
        piece.own = <double*> self.buffer(OWN, m * sizeof(double))
        self.allocate_sums()
        return 0

    def grow(self, Py_ssize_t width):
        """Make room for more outputs."""
        cdef Py_ssize_t channels = self.frame.channels
        if width <= self.width:
            return
        if not self.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        if self.pool is None:
            weights = np.zeros((channels, width, self.n_features))
            weights[:, :self.width] = self.weights.reshape(channels, self.width, self.n_features)
            self.weights = weights.reshape(channels * width, self.n_features)
            self.weight_data = <double*> array_data(self.weights)
        elif self.form == DENSE:
            self.pool.widen(width)
        self.width = width

    cdef Py_ssize_t live(self) noexcept nogil:
        return self.pool.stop - self.pool.start

    # ---- Evaluating ---------------------------------------------------------------------------

    cdef const double* values(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with the slots in use."""
        cdef Py_ssize_t n = self.live()
        cdef Py_ssize_t place = i * piece.stride + self.pool.start - piece.first
        cdef const double* inner = NULL
        if piece.values != NULL:
            return piece.values
        if piece.inner != NULL:
            if piece.narrow:
                ok_widen(<const float*> piece.inner + place, self.widened, n)
                inner = self.widened
            else:
                inner = <const double*> piece.inner + place
        self.program.row(inner, NULL if piece.l1 == NULL else piece.l1 + place,
                         piece.x + i * self.pool.point_bytes, piece.facts + i, piece.rows,
                         self.pool.point_data + self.pool.start * self.pool.point_bytes,
                         self.pool.facts + self.pool.start, self.pool.capacity, n, self.work)
        return self.work

    cdef void evaluate(self, const Piece* piece, Py_ssize_t i, int last, double* out) noexcept nogil:
        """out[channel * width + y] = true value of each channel up to `last` at (x_i, y)."""
        cdef Py_ssize_t y
        cdef const double* values
        cdef int channel
        if self.pool is not None and self.live() == 0:
            for y in range((last + 1) * self.width):
                out[y] = 0.0
            return
        if piece.totals != NULL:
            for y in range((last + 1) * self.width):
                self.sums[y] = piece.totals[y * piece.rows + i]
            self.make_true(last, out)
            return
        if self.pool is None:
            for channel in range(last + 1):
                self.add_up_weights(piece, i, channel, self.sums + channel * self.width)
        else:
            values = self.values(piece, i)
            for channel in range(last + 1):
                self.add_up(values, channel, self.sums + channel * self.width)
        self.make_true(last, out)

    cdef void evaluate_slot(self, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        """Channels up to `last` at the point of a term, as `evaluate` gives them; own: k(x, x)."""
        cdef Py_ssize_t n = self.live(), size = self.pool.point_bytes
        cdef const char* points = self.pool.point_data + self.pool.start * size
        cdef const char* x = self.pool.point_data + slot * size
        cdef double facts[2 * MAX_OPS]          # two, and one for each NORMALIZE
        cdef int channel
        if self.program.needs_inner and self.program.single:
            ok_inner_row_f(<const float*> points, n, self.n_features, <const float*> x, self.slot_inner)
        elif self.program.needs_inner:
            ok_inner_row(<const double*> points, n, self.n_features, <const double*> x, self.slot_inner)
        if self.program.needs_l1 and self.program.single:
            ok_l1_block_f(<const float*> x, 1, <const float*> points, n, self.n_features, self.slot_l1, n)
        elif self.program.needs_l1:
            ok_l1_block(<const double*> x, 1, <const double*> points, n, self.n_features, self.slot_l1, n)
        self.program.row(self.slot_inner, self.slot_l1, x, self.pool.facts + slot, self.pool.capacity, points,
                         self.pool.facts + self.pool.start, self.pool.capacity, n, self.slot_work)
        own[0] = self.program.facts(x, facts, 1)
        self.slot_work[slot - self.pool.start] = own[0]         # the same example: noise counts
        for channel in range(last + 1):
            self.add_up(self.slot_work, channel, self.sums + channel * self.width)
        self.make_true(last, out)

    cdef double value_with(self, Py_ssize_t slot, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """Kernel value of a term with example i, which has just been evaluated."""
        return self.work[slot - self.pool.start]

    cdef double vote(self, const Piece* piece, Py_ssize_t i, long long t, bint signs) noexcept nogil:
        """sum over all hypotheses of a Perceptron of sign(w . x), or of w . x, times what each survived.

        A term makes a new hypothesis: the prefix sum that ends with it.
        """
        cdef Py_ssize_t slot
        cdef double total = 0.0, votes = 0.0, survived
        cdef const double* values
        if self.live() == 0:
            return 0.0
        values = self.values(piece, i)
        for slot in range(self.pool.start, self.pool.stop):
            total += self.frame.p[0][0] * self.pool.coef[slot] * values[slot - self.pool.start]
            survived = <double> ((self.pool.born[slot + 1] if slot + 1 < self.pool.stop else t + 1)
                                 - self.pool.born[slot])
            votes += survived * (((total > 0) - (total < 0)) if signs else total)
        return votes

    cdef void make_true(self, int last, double* out) noexcept nogil:
        """Sums of stored coordinates to true values: frame and label kernel."""
        cdef Py_ssize_t y, labels = 1 if self.outputs is None else self.outputs.n
        cdef double stored[MAX_CHANNELS]
        cdef int channel
        for y in range(labels):
            for channel in range(last + 1):
                stored[channel] = self.sums[channel * self.width + y]
            for channel in range(last + 1):
                out[channel * self.width + y] = frame_row(&self.frame, channel, stored)
        if self.outputs is not None:
            for channel in range(last + 1):
                self.outputs.apply(out + channel * self.width)

    cdef void add_up_weights(self, const Piece* piece, Py_ssize_t i, int channel, double* sums) noexcept nogil:
        """<stored weights, x_i>, for each label."""
        cdef Py_ssize_t y, d = self.n_features
        cdef const double* x = <const double*> piece.x + i * d
        for y in range(1 if self.outputs is None else self.outputs.n):
            sums[y] = self.weight_scale * ok_dot(self.weight_data + (channel * self.width + y) * d, x, d)

    cdef void add_up(self, const double* values, int channel, double* sums) noexcept nogil:
        """sum_j stored coefficient of slot j * value j, for each label."""
        cdef Py_ssize_t y, n = self.live(), labels = 1 if self.outputs is None else self.outputs.n
        cdef const double* coef
        cdef bint finite = True
        if self.form == PAIR:
            for y in range(labels):
                sums[y] = 0.0
            coef = self.pool.coef + channel * self.pool.capacity + self.pool.start
            ok_scatter_pairs(values, coef, self.pool.first + self.pool.start,
                             self.pool.second + self.pool.start, n, sums, labels)
        else:
            for y in range(labels):
                coef = self.pool.coef + (channel * self.width + y) * self.pool.capacity + self.pool.start
                sums[y] = ok_dot(coef, values, n)
        for y in range(labels):
            finite &= isfinite(sums[y])
        if not finite:
            self.add_up_carefully(values, channel, sums)

    cdef void add_up_carefully(self, const double* values, int channel, double* sums) noexcept nogil:
        """The same without slots that hold no term: an infinite value times their 0 is no reason to stop."""
        cdef Py_ssize_t j, y, slot, row, labels = 1 if self.outputs is None else self.outputs.n
        cdef double c
        for y in range(labels):
            sums[y] = 0.0
        for row in range(self.pool.outputs):
            for j in range(self.live()):
                slot = self.pool.start + j
                c = self.pool.coef[(channel * self.pool.outputs + row) * self.pool.capacity + slot]
                if c == 0.0:
                    continue
                if self.form == PAIR:
                    sums[self.pool.first[slot]] += c * values[j]
                    sums[self.pool.second[slot]] -= c * values[j]
                else:
                    sums[row] += c * values[j]

    cdef void term(self, Py_ssize_t slot, int channel, double* out) noexcept nogil:
        """True coefficients of a term in a channel, over labels."""
        cdef Py_ssize_t y, stride = self.pool.outputs * self.pool.capacity
        cdef double stored[MAX_CHANNELS]
        cdef double true
        cdef int j
        for y in range(self.width):
            out[y] = 0.0
        for y in range(self.pool.outputs):
            for j in range(channel + 1):
                stored[j] = self.pool.coef[j * stride + y * self.pool.capacity + slot]
            true = frame_row(&self.frame, channel, stored)
            if self.form == PAIR:
                out[self.pool.first[slot]] += true
                out[self.pool.second[slot]] -= true
            else:
                out[y] = true

    # ---- Changing -----------------------------------------------------------------------------

    cdef void transform(self, const double* move) noexcept nogil:
        """Transform all coefficients: P <- M P."""
        frame_advance(&self.frame, move)
        if frame_is_bad(&self.frame):
            self.fold()

    cdef void enter(self, const Piece* piece, Py_ssize_t i, long long t, const double* alpha,
                    Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        """Append example i with true coefficients alpha[channel (* width + y)], under the budget."""
        cdef Py_ssize_t slot
        self.ready_to_store(piece.own[i], alpha)
        if self.pool is None:
            self.add_weights(piece, i, self.stored, first, second)
            return
        slot = self.pool.enter(t, self.stored)
        self.entered = slot
        if slot < 0:
            return
        if self.form == PAIR:
            self.pool.first[slot] = <int> first
            self.pool.second[slot] = <int> second
        if piece.values == NULL:
            self.place(piece, i, slot)
            self.patch(piece, i, slot)

    cdef void expire(self, long long t) noexcept nogil:
        """After example t: drop what f_{t+1} may not use."""
        while self.pool is not None and self.pool.first_expires(t):
            self.drop_first()

    cdef void drop_first(self) noexcept nogil:
        """Drop the oldest term of a window."""
        self.pool.drop_first()

    cdef void ready_to_store(self, double own, const double* alpha) noexcept nogil:
        """Coordinates of a new term into `stored`, folding first if they would be too large."""
        # Weights take in the coefficient times x.
        cdef double reach = sqrt(own) if self.pool is None and own > 1.0 else 1.0
        if not self.store(alpha, self.stored, reach):
            self.fold()
            self.store(alpha, self.stored, reach)

    cdef bint store(self, const double* alpha, double* stored, double reach) noexcept nogil:
        """True to stored coordinates; False if they are so large that the frame should be folded."""
        cdef Py_ssize_t y, rows = self.width if self.form == DENSE else 1
        cdef double true[MAX_CHANNELS]
        cdef double one[MAX_CHANNELS]
        cdef bint small = True
        cdef int channel
        for y in range(rows):
            for channel in range(self.frame.channels):
                true[channel] = alpha[channel * rows + y]
            frame_store(&self.frame, true, one)
            for channel in range(self.frame.channels):
                stored[channel * rows + y] = one[channel]
                small &= reach * fabs(one[channel]) < LARGE
        return small

    cdef void add_weights(self, const Piece* piece, Py_ssize_t i, const double* stored,
                          Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        """w += coefficient * x, for each channel and output."""
        cdef Py_ssize_t row, d = self.n_features
        cdef int channel
        if self.form == PAIR:
            for channel in range(self.frame.channels):
                self.add_to_weights(piece, i, stored[channel], self.weight_data + (channel * self.width + first) * d)
                self.add_to_weights(piece, i, -stored[channel], self.weight_data + (channel * self.width + second) * d)
        else:
            for row in range(self.frame.channels * self.width):
                if stored[row] != 0.0:
                    self.add_to_weights(piece, i, stored[row], self.weight_data + row * d)

    cdef void add_to_weights(self, const Piece* piece, Py_ssize_t i, double c, double* weights) noexcept nogil:
        """weights += c x_i."""
        ok_axpy(c, <const double*> piece.x + i * self.n_features, weights, self.n_features)

    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy example i and its facts into a slot."""
        cdef Py_ssize_t fact, size = self.pool.point_bytes
        memcpy(self.pool.point_data + slot * size, piece.x + i * size, size)
        for fact in range(self.pool.n_facts):
            self.pool.facts[fact * self.pool.capacity + slot] = piece.facts[fact * piece.rows + i]

    cdef void patch(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Show example i, now in a slot, to the later examples of its piece."""
        cdef Py_ssize_t row, column = slot - piece.first
        for row in range(i + 1, piece.rows):
            if piece.inner != NULL:
                if self.program.single:
                    (<float*> piece.inner)[row * piece.stride + column] = \
                        (<float*> piece.own_inner)[i * piece.rows + row]
                else:
                    (<double*> piece.inner)[row * piece.stride + column] = \
                        (<double*> piece.own_inner)[i * piece.rows + row]
            if piece.l1 != NULL:
                piece.l1[row * piece.stride + column] = piece.own_l1[i * piece.rows + row]

    cdef void fold(self) noexcept nogil:
        """Multiply the frame into what is stored and reset it."""
        cdef Py_ssize_t j, size = self.width * self.n_features
        cdef int channel
        cdef double stored[MAX_CHANNELS]
        if self.pool is None:
            for j in range(size):
                for channel in range(self.frame.channels):
                    stored[channel] = self.weight_data[channel * size + j]
                for channel in range(self.frame.channels):
                    self.weight_data[channel * size + j] = frame_row(&self.frame, channel, stored)
        elif self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.pool.clear()                   # eta * lambda = 1 wipes the past
        else:
            self.pool.fold(&self.frame)
        frame_reset(&self.frame)

    # ---- Pieces -------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Rows per piece.

        A matrix product costs about n d / rows per example for rearranging the n terms, and the
        piece's own Gram matrix rows d / 2; the sum is least at a multiple of sqrt(n).  With few
        features neither matters, and the inner products should stay in the cache.
        """
        cdef Py_ssize_t terms, rows
        if self.pool is None:
            return 4096
        self.pool.tidy()                        # sizes, and so bits, must not depend on dead slots
        terms = self.live() + 64
        rows = <Py_ssize_t> ((8.0 if self.dtype.itemsize == 4 else 6.0) * sqrt(<double> terms))
        if self.n_features < 64:
            rows = min(rows, (1 << 16) // terms)
        return max(8, min(rows, 512, (1 << 21) // terms))

    cdef Py_ssize_t most_rows(self):
        """Rows that are evaluated at a time; with few features the inner products should stay in the cache."""
        if self.pool is None:
            return PREDICT_ROWS
        self.pool.tidy()
        return max(8, min(PREDICT_ROWS, (1 << (21 if self.n_features >= 64 else 17)) // max(1, self.live())))

    cdef const char* attach(self, X) except? NULL:
        """Get ready for rows of X; what `prepare_rows` takes."""
        return array_data(X)

    cdef int prepare_rows(self, Piece* piece, const char* x, Py_ssize_t first, Py_ssize_t m, bint learning,
                          int by_terms=-1) except -1:
        """`prepare` for m rows from `first` on."""
        cdef Py_ssize_t row_bytes = self.n_features * self.dtype.itemsize
        return self.prepare(piece, x + first * row_bytes, m, learning, by_terms)

    cdef int prepare(self, Piece* piece, const char* x, Py_ssize_t m, bint learning, int by_terms=-1) except -1:
        """Compute at once what the loop over a piece needs; a single row does without numpy.

        A piece that is only evaluated, up to the channel `by_terms`, may be added up term after term.
        """
        cdef Py_ssize_t i, size, d = self.n_features
        cdef Pool pool = self.pool
        cdef Program program = self.program
        self.begin_piece(piece, m)
        piece.x = piece.raw = x
        if pool is None:
            with nogil:
                for i in range(m):
                    piece.own[i] = self.weight_scale * ok_dot(<const double*> x + i * d,
                                                              <const double*> x + i * d, d)
            return 0
        if learning:
            pool.reserve(m)
        size = pool.point_bytes
        piece.first = pool.start
        piece.stride = apart(min(self.live() + m, pool.capacity - pool.start) if learning else self.live())
        piece.facts = <double*> self.buffer(FACTS, program.n_facts * m * sizeof(double))
        self.work = <double*> self.buffer(WORK, program.depth * piece.stride * sizeof(double))
        if self.evaluates_slots:
            self.slot_inner = <double*> self.buffer(SLOT_INNER, piece.stride * sizeof(double))
            self.slot_l1 = <double*> self.buffer(SLOT_L1, piece.stride * sizeof(double))
            self.slot_work = <double*> self.buffer(SLOT_WORK, program.depth * piece.stride * sizeof(double))
        if program.origin_data != NULL:
            piece.x = self.buffer(X, m * size)
        with nogil:
            for i in range(m):
                if program.origin_data != NULL:
                    program.center(x + i * size, <char*> piece.x + i * size)
                piece.own[i] = program.facts(piece.x + i * size, piece.facts + i, m)
        if by_terms >= 0 and program.needs_inner and not program.needs_l1 and 0 < self.live() < m:
            return self.add_up_by_terms(piece, by_terms)
        if program.needs_inner:
            if m == 1:
                self.inner_row(piece)
            else:
                self.inner_products(piece, learning)
        if program.needs_l1:
            self.l1_distances(piece, learning)
        return 0

    cdef int allocate_sums(self) except -1:
        cdef Py_ssize_t size = self.frame.channels * self.width * sizeof(double)
        self.sums = <double*> self.buffer(SUMS, size)
        self.stored = <double*> self.buffer(STORED, size)
        return 0

    cdef int prepare_object(self, Piece* piece, double* own, row) except -1:
        """A piece of one object, whose kernel values are known."""
        self.begin_piece(piece, 1)
        self.work = <double*> self.buffer(WORK, sizeof(double))
        piece.first = self.pool.start
        piece.own = own
        piece.values = <const double*> array_data(row)
        if piece.values == NULL:
            piece.values = self.work            # no terms yet: never read, but not NULL
        return 0

    cdef int inner_row(self, Piece* piece) except -1:
        """Inner products of a single example with the terms."""
        cdef const char* points = self.pool.point_data + self.pool.start * self.pool.point_bytes
        piece.inner = self.buffer(INNER, piece.stride * sizeof(double))
        with nogil:
            if self.program.single:
                ok_inner_row_f(<const float*> points, self.live(), self.n_features, <const float*> piece.x,
                               <double*> piece.inner)
            else:
                ok_inner_row(<const double*> points, self.live(), self.n_features, <const double*> piece.x,
                             <double*> piece.inner)
        return 0

    cdef int inner_products(self, Piece* piece, bint learning) except -1:
        """Inner products of a piece with the terms and with itself: two matrix products."""
        cdef Py_ssize_t m = piece.rows, item = self.dtype.itemsize, n = self.live()
        cdef Pool pool = self.pool
        examples = self.array(<char*> piece.x, m, self.n_features)
        piece.inner = self.buffer(INNER, m * piece.stride * item)
        with np.errstate(over="ignore", invalid="ignore"):      # what overflows is reported, with its row
            if n:
                np.matmul(examples, pool.points[pool.start:pool.stop].T,
                          out=self.array(piece.inner, m, piece.stride)[:, :n])
            if learning:
                piece.own_inner = self.buffer(OWN_INNER, m * m * item)
                np.matmul(examples, examples.T, out=self.array(piece.own_inner, m, m))
        if self.program.single:
            piece.narrow = True
            self.widened = <double*> self.buffer(WIDENED, piece.stride * sizeof(double))
        return 0

    cdef int add_up_by_terms(self, Piece* piece, int last) except -1:
        """Sums of stored coefficients times kernel values, term after term, for all examples of a piece.

        With fewer terms than examples the matrix product is faster this way round.  A kernel is
        symmetric: a term's row over the examples takes the place of an example's row over the terms.
        """
        cdef Py_ssize_t m = piece.rows, n = self.live(), stride = apart(m), slot, y
        cdef Py_ssize_t item = self.dtype.itemsize
        cdef Pool pool = self.pool
        cdef char* inner = self.buffer(INNER, n * stride * item)
        cdef const double* row
        cdef double* work = <double*> self.buffer(WORK, self.program.depth * stride * sizeof(double))
        cdef double* widened = <double*> self.buffer(WIDENED, stride * sizeof(double))
        cdef int channel
        piece.totals = <double*> self.buffer(TOTALS, (last + 1) * self.width * m * sizeof(double))
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(pool.points[pool.start:pool.stop], self.array(<char*> piece.x, m, self.n_features).T,
                      out=self.array(inner, n, stride)[:, :m])
        with nogil:
            memset(piece.totals, 0, (last + 1) * self.width * m * sizeof(double))
            for slot in range(pool.start, pool.stop):
                row = <const double*> (inner + (slot - pool.start) * stride * item)
                if self.program.single:
                    ok_widen(<const float*> row, widened, m)
                    row = widened
                self.program.row(row, NULL, pool.point_data + slot * pool.point_bytes, pool.facts + slot,
                                 pool.capacity, piece.x, piece.facts, m, m, work)
                for channel in range(last + 1):
                    self.add_term(slot, channel, work, m, piece.totals + channel * self.width * m)
        return 0

    cdef void add_term(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil:
        """totals[y * m + i] += the term's stored coefficient at label y times value i."""
        cdef Py_ssize_t y
        cdef double c
        for y in range(self.pool.outputs):
            c = self.pool.coef[(channel * self.pool.outputs + y) * self.pool.capacity + slot]
            if c == 0.0:
                continue                        # no term lives here any more
            if self.form == PAIR:
                ok_axpy(c, values, totals + self.pool.first[slot] * m, m)
                ok_axpy(-c, values, totals + self.pool.second[slot] * m, m)
            else:
                ok_axpy(c, values, totals + y * m, m)

    cdef int l1_distances(self, Piece* piece, bint learning) except -1:
        """City-block distances of a piece to the terms and within itself."""
        cdef Py_ssize_t m = piece.rows
        cdef const char* points = self.pool.point_data + self.pool.start * self.pool.point_bytes
        piece.l1 = <double*> self.buffer(L1, m * piece.stride * sizeof(double))
        if learning:
            piece.own_l1 = <double*> self.buffer(OWN_L1, m * m * sizeof(double))
        with nogil:
            self.l1_block(piece, points, self.live(), piece.l1, piece.stride)
            if learning:
                self.l1_block(piece, piece.x, m, piece.own_l1, m)
        return 0

    cdef void l1_block(self, Piece* piece, const char* points, Py_ssize_t n, double* out,
                       Py_ssize_t stride) noexcept nogil:
        if self.program.single:
            ok_l1_block_f(<const float*> piece.x, piece.rows, <const float*> points, n,
                          self.n_features, out, stride)
        else:
            ok_l1_block(<const double*> piece.x, piece.rows, <const double*> points, n,
                        self.n_features, out, stride)

    cdef object_row(self, x):
        """Kernel values of an object with the terms, checked to be as many numbers."""
        supports = self.pool.objects[self.pool.start:self.pool.stop]
        row = np.ascontiguousarray(self.kernel.row(x, supports), dtype=np.float64)
        if row.shape != (len(supports),):
            raise ValueError(f"The kernel gave an array of shape {row.shape} for one example and "
                             f"{len(supports)} terms; expected shape {(len(supports),)}.")
        return row

    def square_of_objects(self):
        """|f|^2 of one output on objects, from kernel values anew."""
        slots = self.pool.live_slots()
        terms = [self.pool.objects[slot] for slot in slots]
        alpha = self.coefficients(0, slots)[0]
        square = 0.0
        for i, x in enumerate(terms):
            row = np.array(self.kernel.row(x, terms), dtype=np.float64)
            row[i] = self.kernel.self_value(x)
            square += alpha[i] * np.dot(alpha, row)
        return float(square)

    def clear_scratch(self):
        """Scratch that is 0 between calls, made so again: a call may have been cut off by a fork."""
        if self.outputs is not None:
            self.outputs.clear_scratch()

    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns):
        """Memory of a piece as a matrix for numpy; it must not outlive the piece."""
        return np.frombuffer(PyMemoryView_FromMemory(data, rows * columns * self.dtype.itemsize, PyBUF_WRITE),
                             dtype=self.dtype).reshape(rows, columns)

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL:
        """Scratch memory that grows and is kept while the expansion lives."""
        if self.scratch_bytes[which] < size or self.scratch_data[which] == NULL:
            memory = np.empty(size + 64, dtype=np.uint8)
            self.scratch[which] = memory
            self.scratch_data[which] = array_data(memory)
            self.scratch_data[which] += -<Py_ssize_t> self.scratch_data[which] & 63
            self.scratch_bytes[which] = size
        return self.scratch_data[which]

    # ---- From Python --------------------------------------------------------------------------

    def coefficients(self, int channel, slots=None):
        """True coefficients of a channel: (outputs, slots), or weights (outputs, n_features).

        They are the A_i themselves, before the label kernel.
        """
        cdef int j
        cdef Py_ssize_t labels = 1 if self.outputs is None else self.outputs.n
        if self.pool is None:
            stored = self.weights.reshape(self.frame.channels, self.width, self.n_features)[:, :labels]
        else:
            stored = self.pool.coefficients.reshape(self.frame.channels, self.pool.outputs,
                                                    self.pool.capacity)[:, :, slots]
        true = sum(self.frame.p[channel][j] * stored[j] for j in range(channel + 1))
        if self.pool is None or self.form == ONE:
            return true
        if self.form == DENSE:
            return true[:labels]
        rows = np.zeros((labels, len(slots)))
        terms = np.arange(len(slots))
        rows[self.pool.pairs[0, slots], terms] = true[0]
        rows[self.pool.pairs[1, slots], terms] = -true[0]
        return rows

    def begin_from(self, points, alpha, pairs=None):
        """Start from f_1 = sum_i alpha_i k(points_i, .), H's start vector w_1.

        The terms count as examples 1 - n, ..., 0 in their order, under the budget.

        Parameters
        ----------
        points : array or list of objects
        alpha : array of shape (1, n), or (outputs, n) for the dense form; for weights the weights
        pairs : array of shape (2, n), for the paired form
        """
        cdef Pool pool = self.pool
        cdef Py_ssize_t i, n, slot, rows = self.width if self.form == DENSE else 1
        cdef double[:, ::1] stored
        cdef Piece piece
        if pool is None:
            self.weights[:len(alpha)] = alpha
            return
        alpha = np.asarray(alpha, dtype=float)
        kept = np.flatnonzero((alpha != 0).any(axis=0))
        total = alpha.shape[1]
        alpha, n = alpha[:, kept], len(kept)
        stored = np.zeros((n, self.frame.channels * rows))
        stored.base[:, :len(alpha)] = alpha.T
        pool.reserve(n)
        if self.kernel is None:
            points = self.prepare_start(&piece, points, kept)
        else:
            points = [points[i] for i in kept]
        pairs = None if pairs is None else pairs[:, kept]
        for i in range(n):
            slot = pool.enter(kept[i] + 1 - total, &stored[i, 0])
            if slot < 0:
                continue
            if pairs is not None:
                pool.pairs[:, slot] = pairs[:, i]
            if self.kernel is not None:
                pool.objects[slot] = points[i]
            else:
                self.place(&piece, i, slot)
        while pool.first_expires(0):
            pool.drop_first()           # not the expansion's: a forest has planted nothing yet

    cdef prepare_start(self, Piece* piece, points, kept):
        """`prepare` for those of another model's points that are kept; return what the piece looks at."""
        points = np.ascontiguousarray(points[kept], dtype=self.dtype)
        self.prepare(piece, array_data(points), len(kept), False)
        return points

    def state(self):
        """Named numbers and arrays; no scratch."""
        cdef int i, j, c = self.frame.channels
        state = {"frame": np.array([[self.frame.p[i][j] for j in range(c)] for i in range(c)])}
        if self.outputs is not None:
            state["labels"], state["width"] = int(self.outputs.n), int(self.width)
        if self.weights is not None:
            state["weights"] = self.weights.copy()
        elif self.pool is not None:
            state.update(self.pool.state())
            if self.program is not None and self.program.origin is not None:
                state["origin"] = self.program.origin.copy()
        return state

    def restore(self, state):
        """Continue from a state; ValueError, and nothing changed, if it does not fit."""
        cdef int i, j, c = self.frame.channels
        frame = check_array(state["frame"], "frame", np.float64, (c, c))
        if not np.diag(frame).all() or np.triu(frame, 1).any():
            raise ValueError("the frame is not a regular triangular matrix")
        if self.outputs is not None:
            counts = state["labels"], state["width"]
            if {type(count) for count in counts} != {int} or not 0 <= counts[0] <= counts[1] == self.width:
                raise ValueError("the number of labels does not fit")
            if not self.outputs.can_grow() and counts[0] != self.outputs.n:
                raise ValueError("the labels of a structure are fixed")
        if self.weights is not None:
            self.weights[:] = check_array(state["weights"], "weights", np.float64, self.weights.shape)
        elif self.pool is not None:
            self.pool.check_state(state, state["t"], self.width)
            self.pool.restore(state)
        if self.outputs is not None:
            self.outputs.n = state["labels"]
        for i in range(c):
            for j in range(c):
                self.frame.p[i][j] = frame[i, j]

    def _check(self):
        """Assert every invariant."""
        assert not frame_is_bad(&self.frame)
        assert self.outputs is None or self.outputs.n <= self.width
        if self.pool is not None:
            self.pool._check()


cdef Py_ssize_t apart(Py_ssize_t width) noexcept:
    """A row length of an odd number of cache lines, so that a column spreads over the whole cache."""
    return 16 * (((width + 15) // 16) | 1)
