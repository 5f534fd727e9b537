"""The engine: evaluate, let the rule decide, append, drop.

`Engine.learn` cuts a stream into pieces.  For each piece the inner products with all terms and of
the examples with each other come from one matrix product each; then one loop without the
interpreter takes the examples in order.  When an example enters the expansion, its column of inner
products is copied from the piece's own Gram matrix, so later examples of the piece see it, and the
result is what one example at a time would give.
"""
import numpy as np
from cpython.buffer cimport PyBUF_WRITE
from cpython.exc cimport PyErr_CheckSignals
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memcpy
from onlinekernels._core.frame cimport (MAX_CHANNELS, Frame, frame_advance, frame_is_bad, frame_reset,
                                        frame_row, frame_store)
from onlinekernels._core.kernels cimport SQUARE, Program
from onlinekernels._core.losses cimport CUSTOM, Loss, loss_derivative, loss_scalar_gradient
from onlinekernels._core.ring cimport Pool, array_data
from onlinekernels._core.rules cimport Move, Step, gradient_move, step_size
from onlinekernels._core.vecmath cimport *

cdef enum Failure:
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    DERIVATIVE = 4      # a user's loss gave no number

cdef enum Scratch:
    X = 0               # a piece about the origin
    FACTS = 1
    OWN = 2
    INNER = 3
    OWN_INNER = 4
    L1 = 5
    OWN_L1 = 6
    WORK = 7
    WIDENED = 8
    N_SCRATCH = 9

REASONS = {
    SCORE: "its score f(x) is not finite: the values of X are too large for the kernel, "
           "or the step is so large that learning diverges",
    MOVE: "its coefficient is not finite: the step, the sample weight or y is too large, "
          "so that learning diverges",
    DERIVATIVE: "the derivative that its loss gave is not finite",
}

# Stored coordinates beyond this are folded, so that sums of them stay finite.
cdef double LARGE = 1e150

cdef enum:
    PREDICT_ROWS = 256  # rows of a piece that is only evaluated


cdef struct Piece:
    # Consecutive examples that are learned in one loop without the interpreter.
    Py_ssize_t rows
    const char* x               # examples, about the origin, in the points' precision
    double* facts               # (n_facts, rows)
    double* own                 # k(x, x)
    char* inner                 # (rows, stride): inner products with slots from `first` on
    char* own_inner             # (rows, rows): of the examples with each other
    double* l1                  # the same for city-block distances
    double* own_l1
    Py_ssize_t first            # slot of column 0
    Py_ssize_t stride
    bint narrow                 # inner is float32 and must be widened
    const double* values        # or: kernel values with the slots from `first` on, from Python


cdef class Engine:
    """State of a learner and the loop that advances it.

    Parameters
    ----------
    program : Program or None
        The kernel, for points; with neither it nor `kernel`, the expansion is a weight vector.
    kernel : Kernel or None
        A kernel of Python objects.
    weight_scale : float
        For weights: k(x, z) = weight_scale <x, z>.
    loss : tuple
        (code, scalar, nu).
    custom_loss : Loss or None
        A Python loss; code is then 0.
    step : tuple
        (code, rate, delay).
    budget : tuple
        (code, size, exponent).
    origin : array or None
        The point about which distances are taken; see `Program.choose_origin`.
    """

    cdef readonly Program program       # None: kernel values come from Python, or weights
    cdef readonly object kernel         # Python kernel on objects, or None
    cdef readonly Pool pool             # None: weights
    cdef readonly object weights        # (channels, n_features) in frame coordinates, or None
    cdef double weight_scale            # k(x, z) = weight_scale <x, z>
    cdef double* weight_data
    cdef readonly Py_ssize_t n_features
    cdef readonly object dtype
    cdef Frame frame
    cdef Loss loss
    cdef object custom_loss             # a Python loss, or None
    cdef Step step
    cdef public double regularization
    cdef readonly bint has_offset
    cdef readonly bint averages
    cdef public double offset
    cdef double offset_sum
    cdef public long long t
    cdef int failure                    # why a piece stopped early
    cdef object error                   # the exception behind it
    cdef bint busy
    cdef Py_ssize_t entered             # slot of the last example, -1 if it made no term
    # Scratch, never part of the state
    cdef list scratch
    cdef char* scratch_data[N_SCRATCH]
    cdef Py_ssize_t scratch_bytes[N_SCRATCH]
    cdef double* work
    cdef double* widened

    def __init__(self, *, Program program, kernel, double weight_scale, n_features, dtype, loss,
                 custom_loss, step, double regularization, budget, bint offset, bint average, origin):
        self.program = program
        self.kernel = kernel
        self.weight_scale = weight_scale
        self.n_features = 0 if n_features is None else n_features
        self.dtype = np.dtype(dtype)
        self.custom_loss = custom_loss
        self.loss = Loss(loss[0], loss[1], loss[2])
        self.configure(step, regularization)
        self.has_offset = offset
        self.averages = average
        self.frame.channels = 2 if average else 1
        frame_reset(&self.frame)
        self.scratch = [None] * N_SCRATCH
        if program is None and kernel is None:
            self.weights = np.zeros((self.frame.channels, self.n_features))
            self.weight_data = <double*> array_data(self.weights)
        else:
            if program is not None:
                program.start(n_features, dtype, origin)
            self.pool = Pool(budget, self.frame.channels, 1, None if program is None else n_features,
                             dtype, 0 if program is None else program.n_facts)

    def configure(self, step, double regularization):
        """Set what may change between calls."""
        self.step = Step(step[0], step[1], step[2])
        self.regularization = regularization

    # ---- The loop -----------------------------------------------------------------------------

    cdef Py_ssize_t run(self, Piece* piece, const double* y, const double* weights,
                        double* scores) noexcept nogil:
        """Learn the examples of a piece in order; return how many were learned completely."""
        cdef Py_ssize_t i
        cdef double score
        cdef Move move
        for i in range(piece.rows):
            score = self.evaluate(piece, i)
            if not isfinite(score):
                self.failure = SCORE
                return i
            if not self.decide(score, y[i], 1.0 if weights == NULL else weights[i], &move):
                return i
            if scores != NULL:
                scores[i] = score
            self.carry_out(piece, i, &move)
        return piece.rows

    cdef const double* values(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with the slots in use."""
        cdef Py_ssize_t n = self.pool.stop - self.pool.start
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

    cdef double evaluate(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """f(x_i) + b."""
        cdef Py_ssize_t n, slot
        cdef const double* values
        cdef const double* coef
        cdef double total
        if self.pool is None:
            total = self.weight_scale * ok_dot(self.weight_data, <const double*> piece.x + i * self.n_features,
                                               self.n_features)
            return frame_row(&self.frame, 0, &total) + self.offset
        n = self.pool.stop - self.pool.start
        if n == 0:
            return self.offset
        values = self.values(piece, i)
        coef = self.pool.coef + self.pool.start
        total = ok_dot(coef, values, n)
        if not isfinite(total):
            # An infinite kernel value times the 0 of a slot without a term is no reason to stop.
            total = 0.0
            for slot in range(n):
                if coef[slot] != 0.0:
                    total += coef[slot] * values[slot]
        return frame_row(&self.frame, 0, &total) + self.offset

    cdef bint decide(self, double score, double y, double weight, Move* move) noexcept nogil:
        """Let the rule make its move; False if it cannot.  Changes nothing."""
        cdef double derivative = 0.0, scalar_gradient
        cdef double eta = step_size(&self.step, self.t + 1)
        if self.loss.code == CUSTOM:
            with gil:
                try:
                    derivative = self.custom_loss.derivative(score, y)
                except BaseException as error:
                    self.error = error
                    self.failure = PYTHON
                    return False
            if not isfinite(derivative):
                self.failure = DERIVATIVE
                return False
            scalar_gradient = 0.0
        else:
            derivative = loss_derivative(&self.loss, score, y)
            scalar_gradient = loss_scalar_gradient(&self.loss, score, y)
        gradient_move(&self.loss, eta, self.regularization, weight, derivative, scalar_gradient,
                      self.offset, move)
        if self.averages:                       # F <- F + f, with the f that made this prediction
            move.transform[1][0] = 1.0
            move.transform[1][1] = 1.0
            move.alpha[1] = 0.0
        if not (isfinite(move.alpha[0]) and isfinite(move.offset) and isfinite(move.scalar)):
            self.failure = MOVE
            return False
        return True

    cdef void carry_out(self, const Piece* piece, Py_ssize_t i, const Move* move) noexcept nogil:
        """Transform the old terms, append the new one, apply the budget."""
        cdef double stored[MAX_CHANNELS]
        cdef bint large = False
        cdef int channel
        self.t += 1
        self.offset_sum += self.offset
        frame_advance(&self.frame, &move.transform[0][0])
        if frame_is_bad(&self.frame):
            self.fold()
        self.entered = -1
        if move.alpha[0] != 0.0 and piece.own[i] != 0.0:
            frame_store(&self.frame, move.alpha, stored)
            for channel in range(self.frame.channels):
                large |= not fabs(stored[channel]) < LARGE
            if large:
                self.fold()
                frame_store(&self.frame, move.alpha, stored)
            self.enter(piece, i, stored)
        if self.has_offset:
            self.offset = move.offset
        self.loss.scalar = move.scalar
        if self.pool is not None:
            self.pool.expire(self.t)

    cdef void enter(self, const Piece* piece, Py_ssize_t i, const double* stored) noexcept nogil:
        """Append example i with these stored coordinates."""
        cdef Py_ssize_t slot, row, column
        cdef int channel
        if self.pool is None:
            for channel in range(self.frame.channels):
                if stored[channel] != 0.0:
                    ok_axpy(stored[channel], <const double*> piece.x + i * self.n_features,
                            self.weight_data + channel * self.n_features, self.n_features)
            return
        slot = self.pool.enter(self.t, stored)
        self.entered = slot
        if slot < 0 or piece.values != NULL:
            return
        self.place(piece, i, slot)
        column = slot - piece.first
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

    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy example i and its facts into a slot."""
        cdef Py_ssize_t fact, size = self.pool.point_bytes
        memcpy(self.pool.point_data + slot * size, piece.x + i * size, size)
        for fact in range(self.pool.n_facts):
            self.pool.facts[fact * self.pool.capacity + slot] = piece.facts[fact * piece.rows + i]

    cdef void fold(self) noexcept nogil:
        """Multiply the frame into what is stored and reset it."""
        cdef Py_ssize_t j
        cdef int channel
        cdef double stored[MAX_CHANNELS]
        if self.pool is None:
            for j in range(self.n_features):
                for channel in range(self.frame.channels):
                    stored[channel] = self.weight_data[channel * self.n_features + j]
                for channel in range(self.frame.channels):
                    self.weight_data[channel * self.n_features + j] = frame_row(&self.frame, channel, stored)
        elif self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.pool.clear()                   # eta * lambda = 1 wipes the past
        else:
            self.pool.fold(&self.frame)
        frame_reset(&self.frame)

    # ---- Learning from Python -----------------------------------------------------------------

    def learn(self, const double[::1] y, *, X=None, objects=None, const double[::1] weights=None,
              double[::1] scores=None):
        """Learn all rows of X (C-contiguous, the points' precision) or all objects.

        An error, or Ctrl-C, stops after the last complete row; the exception says how many rows
        that were.
        """
        cdef Py_ssize_t n = y.shape[0], done = 0, rows, learned
        cdef const double* weight_data = NULL
        cdef double* score_data = NULL
        cdef const char* x = NULL if X is None else array_data(X)
        cdef Py_ssize_t row_bytes = self.n_features * self.dtype.itemsize
        self.acquire()
        try:
            while done < n:
                if weights is not None:
                    weight_data = &weights[done]
                if scores is not None:
                    score_data = &scores[done]
                if objects is not None:
                    rows = 1
                    learned = self.learn_object(objects[done], &y[done], weight_data, score_data)
                else:
                    rows = min(n - done, self.piece_rows())
                    learned = self.learn_piece(x + done * row_bytes, rows, &y[done], weight_data, score_data)
                done += learned
                if learned < rows:
                    self.raise_failure(done)
                PyErr_CheckSignals()
        except BaseException as error:
            tell(error, done)
            raise
        finally:
            self.busy = False

    def learn_one(self, x, double y):
        """Learn one row (1-d, C-contiguous, the points' precision) or object; return its score."""
        cdef double score = 0.0
        cdef Py_ssize_t learned
        self.acquire()
        try:
            if self.kernel is not None:
                learned = self.learn_object(x, &y, NULL, &score)
            else:
                learned = self.learn_piece(array_data(x), 1, &y, NULL, &score)
            if not learned:
                self.raise_failure(0)
        except BaseException as error:
            tell(error, 0)
            raise
        finally:
            self.busy = False
        return score

    cdef acquire(self):
        if self.busy:
            raise RuntimeError("This model is learning already: in another thread, or in the call "
                               "that called this one. Give each thread a model of its own.")
        self.busy = True
        self.failure = NONE

    cdef raise_failure(self, Py_ssize_t row):
        if self.failure == PYTHON:
            error, self.error = self.error, None
            raise error
        raise FloatingPointError(f"Row {row} of X cannot be learned: {REASONS[self.failure]}.")

    cdef Py_ssize_t piece_rows(self):
        """Rows per piece.

        A matrix product costs about n d / rows per example for rearranging the n terms, and the
        piece's own Gram matrix rows d / 2; the sum is least at a multiple of sqrt(n).  With few
        features neither matters, and the inner products should stay in the cache.
        """
        cdef Py_ssize_t terms, rows
        if self.pool is None:
            return 4096
        terms = self.pool.stop - self.pool.start + 64
        rows = <Py_ssize_t> (4.25 * sqrt(<double> terms))
        if self.n_features < 64:
            rows = min(rows, (1 << 16) // terms)
        return max(8, min(rows, 256, (1 << 21) // terms))

    cdef Py_ssize_t learn_piece(self, const char* x, Py_ssize_t rows, const double* y,
                                const double* weights, double* scores) except -1:
        """Learn a few rows."""
        cdef Piece piece
        cdef Py_ssize_t learned
        self.prepare(&piece, x, rows, True)
        with nogil:
            learned = self.run(&piece, y, weights, scores)
        return learned

    cdef int prepare(self, Piece* piece, const char* x, Py_ssize_t m, bint learning) except -1:
        """Compute at once what the loop over a piece needs; a single row does without numpy."""
        cdef Py_ssize_t i, live, size, d = self.n_features
        cdef Pool pool = self.pool
        cdef Program program = self.program
        piece.rows = m
        piece.x = x
        piece.values = NULL
        piece.inner = piece.own_inner = NULL
        piece.l1 = piece.own_l1 = NULL
        piece.narrow = False
        piece.own = <double*> self.buffer(OWN, m * sizeof(double))
        if pool is None:
            with nogil:
                for i in range(m):
                    piece.own[i] = ok_dot(<const double*> x + i * d, <const double*> x + i * d, d)
            return 0
        if learning:
            pool.reserve(m)
        size = pool.point_bytes
        live = pool.stop - pool.start
        piece.first = pool.start
        piece.stride = apart(min(live + m, pool.capacity - pool.start) if learning else live)
        piece.facts = <double*> self.buffer(FACTS, program.n_facts * m * sizeof(double))
        self.work = <double*> self.buffer(WORK, program.depth * piece.stride * sizeof(double))
        if program.origin_data != NULL:
            piece.x = self.buffer(X, m * size)
        with nogil:
            for i in range(m):
                if program.origin_data != NULL:
                    program.center(x + i * size, <char*> piece.x + i * size)
                piece.own[i] = program.facts(piece.x + i * size, piece.facts + i, m)
        if program.needs_inner:
            if m == 1:
                self.inner_row(piece, live)
            else:
                self.inner_products(piece, live, learning)
        if program.needs_l1:
            self.l1_distances(piece, live, learning)
        return 0

    cdef int inner_row(self, Piece* piece, Py_ssize_t live) except -1:
        """Inner products of a single example with the terms."""
        cdef const char* points = self.pool.point_data + self.pool.start * self.pool.point_bytes
        piece.inner = self.buffer(INNER, piece.stride * sizeof(double))
        with nogil:
            if self.program.single:
                ok_inner_row_f(<const float*> points, live, self.n_features, <const float*> piece.x,
                               <double*> piece.inner)
            else:
                ok_inner_row(<const double*> points, live, self.n_features, <const double*> piece.x,
                             <double*> piece.inner)
        return 0

    cdef int inner_products(self, Piece* piece, Py_ssize_t live, bint learning) except -1:
        """Inner products of a piece with the terms and with itself: two matrix products."""
        cdef Py_ssize_t m = piece.rows, item = self.dtype.itemsize
        cdef Pool pool = self.pool
        X = self.array(<char*> piece.x, m, self.n_features)
        piece.inner = self.buffer(INNER, m * piece.stride * item)
        if live:
            np.matmul(X, pool.points[pool.start:pool.stop].T,
                      out=self.array(piece.inner, m, piece.stride)[:, :live])
        if learning:
            piece.own_inner = self.buffer(OWN_INNER, m * m * item)
            np.matmul(X, X.T, out=self.array(piece.own_inner, m, m))
        if self.program.single:
            piece.narrow = True
            self.widened = <double*> self.buffer(WIDENED, piece.stride * sizeof(double))
        return 0

    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns):
        """Memory of a piece as a matrix for numpy; it must not outlive the piece."""
        return np.frombuffer(PyMemoryView_FromMemory(data, rows * columns * self.dtype.itemsize, PyBUF_WRITE),
                             dtype=self.dtype).reshape(rows, columns)

    cdef int l1_distances(self, Piece* piece, Py_ssize_t live, bint learning) except -1:
        """City-block distances of a piece to the terms and within itself."""
        cdef Py_ssize_t m = piece.rows
        cdef const char* points = self.pool.point_data + self.pool.start * self.pool.point_bytes
        piece.l1 = <double*> self.buffer(L1, m * piece.stride * sizeof(double))
        piece.own_l1 = <double*> self.buffer(OWN_L1, m * m * sizeof(double))
        with nogil:
            self.l1_block(piece, points, live, piece.l1, piece.stride)
            if learning and m > 1:
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

    cdef Py_ssize_t learn_object(self, x, const double* y, const double* weights, double* scores) except -1:
        """Learn one object: its kernel row comes from Python."""
        cdef Piece piece
        cdef Pool pool = self.pool
        cdef Py_ssize_t learned, slot
        cdef double own
        pool.reserve(1)
        row = self.object_row(x)
        own = self.kernel.self_value(x)
        piece.rows = 1
        piece.first = pool.start
        piece.own = &own
        piece.values = <const double*> array_data(row)
        if piece.values == NULL:
            piece.values = &own                 # no terms yet: never read, but not NULL
        with nogil:
            learned = self.run(&piece, y, weights, scores)
        for slot in range(piece.first, pool.start):
            pool.objects[slot] = None
        if learned and self.entered >= 0:
            pool.objects[self.entered] = x
        return learned

    cdef object_row(self, x):
        """Kernel values of an object with the terms, checked to be as many numbers."""
        supports = self.pool.objects[self.pool.start:self.pool.stop]
        row = np.ascontiguousarray(self.kernel.row(x, supports), dtype=np.float64)
        if row.shape != (len(supports),):
            raise ValueError(f"The kernel gave an array of shape {row.shape} for one example and "
                             f"{len(supports)} terms; expected shape {(len(supports),)}.")
        return row

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL:
        """Scratch memory that grows and is kept while the engine lives."""
        if self.scratch_bytes[which] < size or self.scratch_data[which] == NULL:
            memory = np.empty(size + 64, dtype=np.uint8)
            self.scratch[which] = memory
            self.scratch_data[which] = array_data(memory)
            self.scratch_data[which] += -<Py_ssize_t> self.scratch_data[which] & 63
            self.scratch_bytes[which] = size
        return self.scratch_data[which]

    # ---- The function -------------------------------------------------------------------------

    def coefficients(self, bint average=False):
        """True coefficients of the slots in use, or true weights: one row per output."""
        cdef Pool pool = self.pool
        cdef Py_ssize_t n = self.n_features if pool is None else pool.stop - pool.start
        cdef Py_ssize_t i, stride = n if pool is None else pool.capacity
        cdef const double* stored = self.weight_data if pool is None else pool.coef + pool.start
        cdef double one[MAX_CHANNELS]
        cdef int channel, wanted = 1 if average else 0
        cdef double scale = 1.0 / self.t if average and self.t else 1.0
        cdef double[:, ::1] true = np.empty((1, n))
        for i in range(n):
            for channel in range(wanted + 1):
                one[channel] = stored[channel * stride + i]
            true[0, i] = scale * frame_row(&self.frame, wanted, one)
        return true.base

    def intercept(self, bint average=False):
        """b, or its average."""
        return self.offset_sum / self.t if average and self.t else self.offset

    @property
    def notices_bad_points(self):
        """Whether `decision` raises for points that are not finite: their squares tell."""
        return self.program is not None and self.program.needs_inner

    def decision(self, *, X=None, objects=None, bint average=False):
        """f(x) + b for all rows of X or all objects."""
        cdef Pool pool = self.pool
        cdef const double[:, ::1] coef
        cdef double[::1] scores
        cdef const char* x = NULL if X is None else array_data(X)
        cdef Py_ssize_t done = 0, rows, n = len(objects) if X is None else X.shape[0]
        if self.busy:
            self.acquire()                      # raises: the terms are moving
        scores = result = np.empty(n)
        scores[:] = self.intercept(average)
        coef = self.coefficients(average)
        if pool is None:
            result += self.weight_scale * (X @ coef.base[0])
        elif X is None:
            for done in range(n):
                result[done] += np.dot(self.object_row(objects[done]), coef.base[0])
        else:
            while done < n:
                rows = min(n - done, PREDICT_ROWS)
                self.decide_piece(x + done * pool.point_bytes, rows, &coef[0, 0], &scores[done])
                done += rows
                PyErr_CheckSignals()
        for done in range(n):
            if not isfinite(scores[done]):
                raise FloatingPointError(f"Row {done} of X has no finite score: its values are too "
                                         "large for the kernel.")
        return result

    cdef int decide_piece(self, const char* x, Py_ssize_t rows, const double* coef, double* scores) except -1:
        """Add the expansion's values at a few rows to `scores`."""
        cdef Piece piece
        cdef Py_ssize_t i, n = self.pool.stop - self.pool.start
        self.prepare(&piece, x, rows, False)
        with nogil:
            for i in range(rows):
                if n:
                    scores[i] += ok_dot(coef, self.values(&piece, i), n)
                if not isfinite(piece.facts[SQUARE * rows + i]):
                    scores[i] = piece.facts[SQUARE * rows + i]
        return 0

    # ---- State --------------------------------------------------------------------------------

    def scalar(self):
        """Current value of the loss's margin or width."""
        return self.loss.scalar

    def step_size(self):
        """eta of the latest example; of the first one before it has come."""
        return step_size(&self.step, max(self.t, 1))

    def begin_from(self, points, alpha, double offset):
        """Start from f_1 = sum_i alpha_i k(points_i, .) + offset, H's start vector w_1.

        The terms count as examples 1 - n, ..., 0 in their order, under the budget.
        """
        cdef Pool pool = self.pool
        cdef Py_ssize_t i, n = len(alpha), slot
        cdef double stored[MAX_CHANNELS]
        cdef Piece piece
        self.offset = offset
        if pool is None:
            self.weights[0] = alpha
            return
        pool.reserve(n)
        if self.kernel is None:
            points = np.ascontiguousarray(points, dtype=self.dtype)
            self.prepare(&piece, array_data(points), n, False)
        for i in range(MAX_CHANNELS):
            stored[i] = 0.0
        for i in range(n):
            stored[0] = alpha[i]
            slot = pool.enter(i + 1 - n, stored)
            if slot >= 0 and self.kernel is not None:
                pool.objects[slot] = points[i]
            elif slot >= 0:
                self.place(&piece, i, slot)
        pool.expire(0)

    def state(self):
        """Everything that learning has changed, as named numbers and arrays; no scratch."""
        cdef int i, j, c = self.frame.channels
        state = {
            "t": int(self.t),
            "offset": float(self.offset),
            "offset_sum": float(self.offset_sum),
            "scalar": float(self.loss.scalar),
            "frame": np.array([[self.frame.p[i][j] for j in range(c)] for i in range(c)]),
        }
        if self.pool is None:
            state["weights"] = self.weights.copy()
        else:
            state.update(self.pool.state())
            if self.program is not None and self.program.origin is not None:
                state["origin"] = self.program.origin.copy()
        return state

    def restore(self, state):
        """Continue from a state; ValueError, and nothing changed, if it does not fit."""
        cdef int i, j, c = self.frame.channels
        frame = np.asarray(state["frame"], dtype=np.float64)
        numbers = [state["offset"], state["offset_sum"], state["scalar"]]
        if frame.shape != (c, c) or not np.isfinite(frame).all() or not np.diag(frame).all():
            raise ValueError("the frame is not a regular matrix of the right size")
        if state["t"] < 0 or not np.isfinite(numbers).all():
            raise ValueError("t, offset or the loss's scalar is out of range")
        if self.pool is None:
            if np.shape(state["weights"]) != self.weights.shape or not np.isfinite(state["weights"]).all():
                raise ValueError("the weights are not finite numbers of the right shape")
            self.weights[:] = state["weights"]
        else:
            self.pool.check_state(state)
            self.pool.restore(state)
        self.t = state["t"]
        self.offset, self.offset_sum, self.loss.scalar = numbers
        for i in range(c):
            for j in range(c):
                self.frame.p[i][j] = frame[i, j]

    def _check(self):
        """Assert every invariant."""
        assert self.t >= 0 and np.isfinite(self.offset)
        assert not frame_is_bad(&self.frame)
        if self.pool is not None:
            self.pool._check()


cdef Py_ssize_t apart(Py_ssize_t width) noexcept:
    """A row length of an odd number of cache lines, so that a column spreads over the whole cache."""
    return 16 * (((width + 15) // 16) | 1)


def tell(error, Py_ssize_t rows):
    """Say on an exception how many rows of the call were learned before it."""
    error.rows_learned = rows
    note = f"{rows} rows of this call were learned before this error; the model is consistent."
    if hasattr(error, "add_note"):              # Python 3.11
        error.add_note(note)
    else:
        error.args = (f"{error} ({note})", *error.args[1:])
