"""Functions: what a representation of f must be able to do, and what a call, a piece and an example bring to it.

f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y], and with it go other channels: the gradient trace v, the sum F of all
hypotheses.  All are kept in the coordinates of one frame, so a transform of all coefficients costs O(1).

From top to bottom: memory of a call, a piece of rows, one example, the labels, and the function.
"""
import numpy as np
from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport NAN, fabs, fmax
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.frame cimport (MAX_CHANNELS, frame_advance, frame_is_bad, frame_reset, frame_row,
                                                 frame_store)
from onlinekernels._core.formulas.vecmath cimport ok_all_finite, ok_all_finite_f
from onlinekernels._core.schema import Array, Size

# ---- Memory of one call: nothing that belongs to a call lives in the model -----------------------
# What a call needs is in three objects: the piece of rows that is open (`Piece`), what one kind of function computes on
# the way (a subclass of `Scratch` for each), and one example as form and rule see it (`Example`). The engine lends them
# and takes them back, so that a call with one example does not ask for memory; no two calls at the same time have the
# same ones.

cdef class Memory:
    """Buffers that grow as a call needs them; who has them numbers them, from 0 to MOST_BUFFERS - 1."""

    def __cinit__(self, *args, **kwargs):
        self.blocks = [None] * MOST_BUFFERS

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL:
        """At least so many bytes, which start at a cache line; 0 when they are new. O(1), O(size) when they are."""
        cdef char* data
        if not 0 <= which < MOST_BUFFERS:
            raise IndexError(f"there is no buffer {which}: MOST_BUFFERS is {MOST_BUFFERS}")
        if self.bytes[which] < size or self.data[which] == NULL:
            block = np.zeros(size + 64, dtype=np.uint8)
            data = array_data(block)
            self.blocks[which] = block
            self.data[which] = data + (-<Py_ssize_t> data & 63)
            self.bytes[which] = size
        return self.data[which]

    def reserve(self, int which, Py_ssize_t size):
        """See to it that a buffer has at least so many bytes; how many it has. As `buffer`."""
        self.buffer(which, size)
        return self.bytes[which]

    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns, dtype):
        """Numbers in memory as a matrix for numpy; it must not outlive the call. O(1)."""
        return np.frombuffer(PyMemoryView_FromMemory(data, rows * columns * dtype.itemsize, PyBUF_WRITE),
                             dtype=dtype).reshape(rows, columns)


# ---- A piece: consecutive rows in one loop without the interpreter -------------------------------

cdef class Piece(Memory):
    """Some rows of a call, and what they have to do with the points of a dictionary and with each other."""

    cdef void begin(self, Py_ssize_t rows) noexcept:
        """So many rows, about which nothing is known yet. O(1)."""
        self.rows, self.slot, self.joins = rows, -1, False
        self.x = NULL
        self.start, self.index, self.value = NULL, NULL, NULL
        self.square = self.origin_product = self.l1 = self.own_l1 = NULL
        self.inner = self.own_inner = NULL
        self.first = self.stride = 0
        self.transposed = self.narrow = False
        self.values = NULL

    cdef void let_go(self) noexcept:
        """The call is over: hold on to nothing that was its own. O(1)."""
        self.source = self.example = self.values_array = None
        if self.under is not None:
            self.under.let_go()


cdef Py_ssize_t apart(Py_ssize_t width) noexcept:
    """A row length of an odd number of cache lines, so that a column spreads over the whole cache."""
    return 16 * (((width + 15) // 16) | 1)


# ---- One example as form and rule see it ---------------------------------------------------------
# `evaluate` and `decide` write here and nowhere else; `carry_out` reads.

cdef enum:
    WORK_ROWS = 4       # of `Example.work`

cdef enum ExampleBuffer:
    EXAMPLE_NUMBERS, EXAMPLE_LABELS, EXAMPLE_NODES, EXAMPLE_DECISION


cdef class Example(Memory):
    """What is known of an example, and what has been decided about it."""

    def __cinit__(self):
        self.width = -1

    cdef int reserve(self, Py_ssize_t width, int channels, Py_ssize_t nodes, Py_ssize_t decision) except -1:
        """Room for outputs, nodes of their structure, and a decision of so many bytes. O(width) if it is new."""
        cdef Py_ssize_t n = max(width, 2)           # a pair of labels
        cdef double* row
        self.failure = NONE
        self.channels = channels
        self.decision = self.buffer(EXAMPLE_DECISION, decision)
        if width == self.width:
            return 0
        row = <double*> self.buffer(EXAMPLE_NUMBERS, (8 + 3 * MAX_CHANNELS + WORK_ROWS) * n * sizeof(double))
        self.bare = row
        self.term.alpha = self.bare + MAX_CHANNELS * n
        self.term.stored = self.term.alpha + MAX_CHANNELS * n
        self.term.offset = self.term.stored + MAX_CHANNELS * n
        self.scores = self.term.offset + n
        self.derivative = self.scores + n
        self.curvature = self.derivative + n
        self.probability = self.curvature + n
        self.distance = self.probability + n
        self.shrunk = self.distance + n
        self.innovation = self.shrunk + n
        self.work = self.innovation + n
        self.term.labels = <int*> self.buffer(EXAMPLE_LABELS, n * sizeof(int))
        self.nodes = <double*> self.buffer(EXAMPLE_NODES, nodes * sizeof(double))
        self.width = width


# ---- Label structures ----------------------------------------------------------------------------
# A taxonomy's kernel counts common ancestors, kappa = Phi Phi^T with one column of Phi per node.  It is
# never a matrix here: ``kappa @ scores`` is a sweep up the tree (what each subtree sums to) and a sweep
# down it (what the ancestors of each node sum to), O(nodes).

cdef class Outputs:
    """Labels 0, ..., n - 1, or targets: kappa is the identity, Delta is 1 between different ones.

    Where labels learn `future`, before they join, all do the same: each is wrong at every example so far. One output
    more than there are labels, the next one to join, knows what all of them know. There may be several, which are
    copies of it, so that labels can join without the interpreter.
    """

    def __init__(self, Py_ssize_t n, bint future=False):
        self.future = future
        self.set_kept(n + future)

    def can_grow(self):
        """Whether labels may join: those of a structure cannot. O(1)."""
        return True

    cdef Py_ssize_t kept(self) noexcept nogil:
        """Outputs that know something of their own: the labels, and the one that is ahead of them. O(1)."""
        return self.n_seen + self.future

    def set_kept(self, Py_ssize_t kept):
        """There are so many, and no copies. O(1)."""
        self.n, self.n_seen = kept, kept - self.future

    def set_n_seen(self, Py_ssize_t n_seen):
        """`set_seen`, for Python."""
        self.set_seen(n_seen)

    cdef void set_seen(self, Py_ssize_t n_seen) noexcept nogil:
        """So many labels there are now: O(1)."""
        self.n_seen = n_seen
        if not self.future:
            self.n = n_seen

    cdef void apply(self, double* scores, double* nodes) noexcept nogil:
        """scores <- kappa @ scores. O(n); O(nodes) for a taxonomy, O(n^2) for a matrix."""

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
    """Labels that are nodes of a tree: kappa (65) and Delta (62)."""

    cdef object parent_array, place_array   # int64; keep these alive
    cdef const long long* parent            # of each node; parents come before children, -1 is above roots
    cdef const long long* place             # node of each label

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

        Going down, a node off the path to y is one more, and leaving that path early is made good for by the depth of
        y: nodes become |ancestors| - 2 |common ancestors|.
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
    """Labels with distances of their own; kappa is the identity."""

    cdef object table_array                 # keeps the table alive
    cdef const double* table                # Delta, (n, n)

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
    """Labels with distances and a kernel of their own."""

    cdef object kernel_array                # keeps the kernel alive
    cdef const double* kernel               # kappa, (n, n)

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


# ---- Functions -----------------------------------------------------------------------------------

cdef object ndarray = np.ndarray

# Stored coordinates beyond this are folded, so that sums of them stay finite.
cdef double LARGE = 1e150


cdef class Scratch(Memory):
    """What a function computes on the way: of one call, and so not in the model. A kind of function adds its own."""

    def __cinit__(self):
        self.piece, self.width = Piece(), -1

    cdef int reserve(self, Py_ssize_t width, Py_ssize_t nodes) except -1:
        """Room for so many outputs, and nodes of their structure. O(width) if it is new."""
        cdef Py_ssize_t n = max(width, 2)           # a pair of labels
        if width == self.width:
            return 0
        self.sums = <double*> self.buffer(OUTPUTS, (3 + 3 * MAX_CHANNELS) * n * sizeof(double))
        self.old.stored = self.sums + MAX_CHANNELS * n
        self.slot_scores = self.old.stored + MAX_CHANNELS * n
        self.slot_coefficients = self.slot_scores + MAX_CHANNELS * n
        self.slot_products = self.slot_coefficients + 2 * n
        self.old.labels = <int*> self.buffer(LABELS, n * sizeof(int))
        self.nodes = <double*> self.buffer(NODES, nodes * sizeof(double))
        self.width = width

    cdef void let_go(self) noexcept:
        """The call is over: hold on to nothing that was its own. O(1)."""
        self.piece.let_go()


cdef class Function:
    """A function with several channels.

    Complexities are those of n terms of d features, for one output and channel; `O(f)` is what one evaluation of f
    costs: O(n d) for terms, O(d) for weights, O(d log n) for trees. A representation implements `open`, `evaluate`,
    `add` and `fold`; if a budget can take terms out again, `make_way`, `expiring` and `drop`, and what exact norms need
    of them. For Python it implements `widen` (more outputs, which are 0), `copy_last` (outputs from the n-th on become
    what the one before them is), `begin_from`, `stored`, `resume` and `_check`.
    """

    FIELDS = Array("frame", np.float64, ("channels", "channels")), Size("labels")

    def __init__(self, Py_ssize_t n_features, dtype, int channels, Outputs outputs):
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.outputs = outputs
        self.width = max(1, outputs.n)
        self.frame.channels = channels
        frame_reset(&self.frame)

    cdef Scratch new_scratch(self):
        """Scratch of this kind of function, for one call at a time. O(1)."""
        return Scratch()

    cdef int make_ready(self, Scratch w) except -1:
        """Room in the scratch for what this function needs of one row. O(1), unless outputs have come."""
        return w.reserve(self.width, self.outputs.n_nodes)

    cpdef bint is_row(self, x) except -1:
        """Whether x is a row as the loop reads it: finite numbers in the right precision. O(d)."""
        cdef Py_buffer view
        cdef bint fits
        if self.takes_objects or type(x) is not ndarray:
            return False
        dtype = x.dtype
        if dtype is not self.dtype and dtype != self.dtype:     # numpy shares those of its own byte order
            return False
        PyObject_GetBuffer(x, &view, PyBUF_STRIDES)
        fits = (view.ndim == 1 and view.shape[0] == self.n_features and view.strides[0] == view.itemsize
                and <size_t> view.buf % <size_t> view.itemsize == 0)
        if fits and view.itemsize == sizeof(float):
            fits = ok_all_finite_f(<const float*> view.buf, view.shape[0])
        elif fits:
            fits = ok_all_finite(<const double*> view.buf, view.shape[0])
        PyBuffer_Release(&view)
        return fits

    cdef int attach(self, Scratch w, examples) except -1:
        """What a call is about: an array whose rows the loop reads in place. O(1)."""
        w.piece.source = examples
        w.piece.source_data = array_data(examples)

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        """Get ready for rows first, ..., first + m - 1 of the call's source: k(x, x) into w.piece.own; room for m new
        terms if they are to be learned. Unless by_slots is -1, all of the channels up to it may be summed up at once.
        O(m f)."""
        raise NotImplementedError

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        """out[channel * width + y] = the channels up to `last` at (x_i, y). O(f), less what `open` has done."""

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        """Add the term, which `store` has made ready, at x_i. O(d), O(d log n) in trees."""

    cdef void fold(self, Scratch w) noexcept nogil:
        """Multiply the frame into what is stored and reset it. O(n), rarely."""

    cdef Py_ssize_t piece_rows(self):
        """Rows that are learned at a time. O(1)."""
        return 4096

    cdef Py_ssize_t most_rows(self):
        """How many may be, if others learn the same rows. O(1)."""
        return self.piece_rows()

    cdef Py_ssize_t rows_to_evaluate(self):
        """Rows that are evaluated at a time. O(1)."""
        return 256

    cdef bint consult(self, Scratch w, Example e, long long t) noexcept nogil:
        """Ask a budget in Python who will go for the term that has been decided about; as `Budget.consult`."""
        return True

    cdef void make_way(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """Ask the budget who goes for the term that is ready to enter with example i, and let those that stay take over
        what they can. Nobody has left or entered then. As the budget's `evict` and `redistribute`."""
        removal.slot = removal.partner = NOBODY
        removal.share = removal.loss = 0.0
        removal.shrink, removal.residual = 1.0, -1.0

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        """The slot of a term that f may not use after example t, or NOBODY. O(1)."""
        return NOBODY

    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        """Give up a slot, after the budget has handed over what others can take. O(1), O(d log n) in trees."""

    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        """`evaluate` at the point of a slot; own: k(x, x) there. O(f)."""

    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        """Kernel value of a slot's point with example i, which has just been evaluated. O(1), O(d) in trees."""
        return 0.0

    cdef void coefficients_of(self, Scratch w, Py_ssize_t slot, int channel, double* out) noexcept nogil:
        """True coefficients of a slot in a channel, over labels. O(1)."""

    cdef double square(self, Scratch w) noexcept nogil:
        """|f|^2 anew, from all terms; nan where that is not possible, or never needed. O(n f)."""
        return NAN

    cdef double square_over(self, Scratch w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """|f|^2 = sum_i a_i f(x_i), over slots. O(n f)."""
        cdef Py_ssize_t slot, l
        cdef double own, square = 0.0
        for slot in range(start, stop):
            self.evaluate_slot(w, slot, 0, w.slot_scores, &own)
            self.coefficients_of(w, slot, 0, w.slot_coefficients)
            for l in range(self.outputs.n):
                square += w.slot_coefficients[l] * w.slot_scores[l]
        return square

    def square_from_python(self):
        """The same for kernels in Python, asked between two examples; None where not possible. O(n f)."""

    cdef double vote(self, Scratch w, Py_ssize_t i, long long t, bint signs) noexcept nogil:
        """What all hypotheses since the first say together: of functions that keep every term. O(n)."""
        return NAN

    cdef bint stagger(self, Py_ssize_t rows) noexcept:
        """Let what happens at every so many rows happen so many earlier than usual; whether anything does. O(1)."""
        return False

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        """Whether an example is small enough for the kernel's arithmetic. O(1)."""
        return True

    cdef double feature_size(self, double own) noexcept nogil:
        """How large the features are that a coefficient is multiplied with when it is stored; own: k(x, x). O(1)."""
        return 1.0

    cdef int close(self, Scratch w) except -1:
        """The piece has been learned. O(1)."""

    cdef int tidy(self) except -1:
        """At the end of a call that has learned: leave nothing that the next one would have to clear away. O(n d)."""

    # ---- The frame ----------------------------------------------------------------------------

    cdef void transform(self, Scratch w, const double* move) noexcept nogil:
        """Transform all coefficients: P <- M P. O(1), or a fold."""
        frame_advance(&self.frame, move)
        if frame_is_bad(&self.frame):
            self.fold(w)

    cdef void multiply(self, Scratch w, double factor) noexcept nogil:
        """All channels become so much of what they are. O(1)."""
        cdef double scaling[MAX_CHANNELS][MAX_CHANNELS]
        cdef int i, j
        for i in range(MAX_CHANNELS):
            for j in range(MAX_CHANNELS):
                scaling[i][j] = factor if i == j else 0.0
        self.transform(w, &scaling[0][0])

    cdef void store(self, Scratch w, Term* term, double own) noexcept nogil:
        """Coordinates of the new term, folding first if they would be too large; own: k(x, x)."""
        cdef double size = self.feature_size(own)
        if not self.try_to_store(term, size):
            self.fold(w)
            self.try_to_store(term, size)

    cdef bint try_to_store(self, Term* term, double size) noexcept nogil:
        """True to stored coordinates; False if they are so large that the frame should be folded. O(outputs)."""
        cdef Py_ssize_t k, n = term.n
        cdef double true[MAX_CHANNELS]
        cdef double one[MAX_CHANNELS]
        cdef bint small = True
        cdef int channel
        if self.frame.channels == 1:            # the same, and many labels feel the difference
            for k in range(n):
                term.stored[k] = term.alpha[k] / self.frame.p[0][0]
                small &= size * fabs(term.stored[k]) < LARGE
            return small
        for k in range(n):
            for channel in range(self.frame.channels):
                true[channel] = term.alpha[channel * n + k]
            frame_store(&self.frame, true, one)
            for channel in range(self.frame.channels):
                term.stored[channel * n + k] = one[channel]
                small &= size * fabs(one[channel]) < LARGE
        return small

    cdef void make_true(self, Scratch w, int last, double* out) noexcept nogil:
        """Sums of stored coordinates (w.sums) to true values: frame and label kernel. O(outputs)."""
        cdef Py_ssize_t y
        cdef double stored[MAX_CHANNELS]
        cdef int channel
        for y in range(self.outputs.n if last == 0 else 0):     # the same, and many labels feel the difference
            out[y] = self.frame.p[0][0] * w.sums[y]
        for y in range(self.outputs.n if last else 0):
            for channel in range(last + 1):
                stored[channel] = w.sums[channel * self.width + y]
            for channel in range(last + 1):
                out[channel * self.width + y] = frame_row(&self.frame, channel, stored)
        if self.outputs.n_nodes:                # otherwise kappa is the identity
            for channel in range(last + 1):
                self.outputs.apply(out + channel * self.width, w.nodes)

    # ---- For Python ---------------------------------------------------------------------------

    def check_start(self, points, alpha, pairs):
        """ValueError unless there are as many coefficients as points, for outputs that this function has. O(size of
        the coefficients)."""
        n = len(points)
        if not self.takes_objects and points.shape != (n, self.n_features):
            raise ValueError(f"points has shape {points.shape}, not {(n, self.n_features)}")
        check_array(alpha, "alpha", np.float64, (-1 if pairs is None else 1, n))
        if not 1 <= len(alpha) <= self.width:
            raise ValueError(f"alpha has {len(alpha)} rows, and there are {self.width} outputs")
        if pairs is None:
            return
        if pairs.dtype.kind != "i" or pairs.shape != (2, n) or n and not 0 <= pairs.min() <= pairs.max() < self.width:
            raise ValueError("pairs does not hold two known labels for each point")

    def start_from(self, points, alpha, pairs, long long t):
        """Add a term alpha_i for each of some points, as the latest of t examples, under the budget; see
        `begin_from`. As `add` for each."""
        cdef Scratch w = self.new_scratch()
        cdef Example example = Example()
        cdef Term* term = &example.term
        cdef Removal removal
        cdef Py_ssize_t i, k, slot, n, row, rows
        alpha = np.asarray(alpha, dtype=float)
        self.check_start(points, alpha, pairs)
        total = alpha.shape[1]
        kept = np.arange(total) if self.keeps == "knots" else np.flatnonzero((alpha != 0).any(axis=0))
        n, rows = len(kept), len(alpha) if pairs is None else 2
        self.make_ready(w)
        example.reserve(self.width, self.frame.channels, self.outputs.n_nodes, 0)
        points = self.open_start(w, points, kept)
        for i in range(n):
            term.n = rows                       # a budget may have given the one before more
            for k in range(term.n):
                term.labels[k] = k if pairs is None else pairs[k, kept[i]]
                term.alpha[k] = alpha[k, kept[i]] if pairs is None else (-1) ** k * alpha[0, kept[i]]
            for k in range(term.n, self.frame.channels * term.n):
                term.alpha[k] = 0.0
            row = self.start_row(w, i)
            example.move.transform[0][0] = 1.0
            if not self.consult(w, example, t + kept[i] + 1 - total):
                raise example.error
            self.store(w, term, w.piece.own[row])
            self.make_way(w, term, row, &removal)
            if removal.slot == CANDIDATE:
                continue
            if removal.slot != NOBODY:
                self.drop(w, removal.slot)
            w.piece.slot = -1
            self.add(w, term, row, t + kept[i] + 1 - total)
            if removal.shrink != 1.0:
                self.multiply(w, removal.shrink)
            self.resolve_start(w, points, i)
        slot = self.expiring(t)
        while slot != NOBODY:
            self.drop(w, slot)
            slot = self.expiring(t)

    cdef open_start(self, Scratch w, points, kept):
        """Open those points that are kept, without inner products; return them. O(points d)."""
        raise NotImplementedError

    cdef Py_ssize_t start_row(self, Scratch w, Py_ssize_t i) except -1:
        """Where point i is in the piece that is open. O(1)."""
        return i

    cdef int resolve_start(self, Scratch w, points, Py_ssize_t i) except -1:
        """Point i has been added. O(1)."""

    def grow(self, Py_ssize_t width):
        """Make room for more outputs. O(size of the function)."""
        if width > self.width:
            if not self.outputs.can_grow():
                raise ValueError("the labels of a structure are fixed")
            self.widen(width)
            self.width = width
        if self.outputs.future and self.outputs.n < self.width:
            self.copy_last(self.outputs.n)
            self.outputs.n = self.width         # the last ones are copies of the one that is ahead

    def true_rows(self, stored, int channel):
        """Stored coordinates (channels, ...) to true ones of a channel. O(their size)."""
        cdef int j
        return sum(self.frame.p[channel][j] * stored[j] for j in range(channel + 1))

    @property
    def channels(self):
        """Functions that are kept: f, and what moves with it."""
        return self.frame.channels

    def stored(self):
        """The frame and the number of labels. O(1)."""
        cdef int i, j, c = self.frame.channels
        return {"frame": np.array([[self.frame.p[i][j] for j in range(c)] for i in range(c)]),
                "labels": self.outputs.kept()}

    def fits(self, state):
        """ValueError unless the frame and the number of labels of a state fit. O(1)."""
        cdef Frame found = self.frame
        frame = state["frame"]
        fill_frame(&found, frame)
        if not np.diag(frame).all() or np.triu(frame, 1).any() or frame_is_bad(&found):
            raise ValueError("the frame is not a regular triangular matrix that would not have been folded")
        if not self.outputs.future <= state["labels"] <= self.width:
            raise ValueError("the number of labels does not fit")
        if not self.outputs.can_grow() and state["labels"] != self.outputs.n:
            raise ValueError("the labels of a structure are fixed")

    def check_restored(self):
        """ValueError if what was taken over from a file, all of it, does not fit together."""

    def resume(self, state):
        """Take over the frame and the number of labels: O(1)."""
        self.outputs.set_kept(state["labels"])
        fill_frame(&self.frame, state["frame"])

    def _check(self):
        assert not frame_is_bad(&self.frame)
        assert self.outputs.kept() <= self.outputs.n <= self.width


def rows_of_channels(owner, sizes):
    """The size of rows (channel, label) in a state."""
    return owner.channels * sizes["labels"]


cdef fill_frame(Frame* frame, numbers):
    cdef int i, j
    for i in range(frame.channels):
        for j in range(frame.channels):
            frame.p[i][j] = numbers[i, j]
