"""Many small models of one kind, side by side: what `Bank` keeps.

Models live in blocks of OK_LANES.  Within a block, lane l of every row of numbers belongs to model l, so that one
vector instruction serves all of them: points are [block][slot][feature][lane], coefficients [block][slot][lane].  A
slot that holds no term has coefficient 0.  Each model has a frame of its own (the factor that its stored coefficients
have to be multiplied by), an offset, the scalar of its loss, and its number of examples.

All that can fail or be interrupted (memory, keys, Python) comes before the first write.  What then learns is compiled
code that cannot raise, in threads that know nothing of the interpreter; no Python runs here until all of them are done.
"""
import numpy as np
from cpython.pythread cimport (WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
                               PyThread_release_lock, PyThread_start_new_thread, PyThread_type_lock)
from libc.math cimport fabs, isfinite
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.lanes cimport (Lanes, LanesRule, ok_lanes_entering, ok_lanes_entering_f,
                                                 ok_lanes_gaussian, ok_lanes_gaussian_f, ok_lanes_least,
                                                 ok_lanes_least_f, ok_lanes_linear, ok_lanes_linear_f, ok_lanes_move,
                                                 ok_lanes_scores, ok_lanes_scores_f, ok_lanes_transpose,
                                                 ok_lanes_transpose_f, ok_lanes_evicted, ok_lanes_evicted_f)
from onlinekernels._core.formulas.losses cimport Loss
from onlinekernels._core.formulas.moves cimport FIXED, Step, gradient_shrink, implicit_shrink, step_size
from onlinekernels._core.formulas.vecmath cimport OK_LANES
from onlinekernels._core.functions cimport MOVE, NONE, POINT, SCORE
from onlinekernels._core.schema import Array, checked, not_negative, within

# ---- Blocks: what examples do to models side by side ---------------------------------------------
# The scores of a block come from one loop over slots. Then all of its models make their moves in one loop over lanes,
# by the same formulas as the engine's: losses.h and moves.h have them. With at most MAX_SLOTS terms the smallest is
# found by looking at all. One by one go only the terms that are stored, and what is rare.

cdef enum:
    MAX_SLOTS = 64
    LAST_TICK = 255     # of the clock that tells which of equal terms is older

cdef struct Store:
    LanesRule rule      # the scalar of its loss is the one to start with
    Step step           # of an example
    double regularization   # lambda
    bint linear         # the kernel: linear, or Gaussian exp(-gamma |x - z|^2)
    double gamma        # of the Gaussian
    bint recent         # the budget: the latest terms, or the largest
    Py_ssize_t slots    # terms of a model, at most
    Py_ssize_t d        # features
    # Of each model
    void* points        # float or double, as coefficients are: if `single`, float
    void* coef
    bint single
    int64_t* t          # examples learned
    double* frame       # true coefficient = frame * stored
    double* offset      # b
    double* scalar      # current margin or width of the loss
    double* gap         # of a scalar with a step of its own, otherwise NULL: see `ok_scalar_step`
    double* gap_weight  # and the weights in that mean
    unsigned char* count        # slots in use: the first ones
    unsigned char* clock        # Recent: the slot of the oldest term, once all are used; Smallest: the next birthday
    unsigned char* born         # [block][slot][lane]: order of entry, for Smallest

cdef struct Examples:
    # Rows of X, and which of them are for which model.
    const void* X               # float or double, (n, d)
    const double* y             # NULL: the loss needs none
    double* scores              # takes one number for each row
    const unsigned char* active # NULL, or whether row m, which is model m's, counts
    const int64_t* blocks       # NULL if row m is model m's; otherwise the blocks that have rows
    const int64_t* starts       # [place in blocks][lane]: the rows of a lane are order[start:next start]
    const int64_t* order        # numbers of rows, those of a lane together
    unsigned char* failed       # NULL, or whether a model has met a row of this call that it cannot learn
    Py_ssize_t n                # rows
    bint learning               # or scoring only

cdef struct Tally:
    int64_t learned     # rows
    int64_t row         # the first one that could not be learned, and why
    int reason          # why: see `example`

ctypedef fused real:
    float
    double


# ---- One model -----------------------------------------------------------------------------------

cdef void fold(Store* store, real* coef, Py_ssize_t m, Py_ssize_t lane) noexcept nogil:
    """Multiply a model's frame into its coefficients and reset it; what would lose digits becomes 0."""
    cdef Py_ssize_t slot
    cdef double value, least = 1.1754943508222875e-38 if real is float else 2.2250738585072014e-308
    for slot in range(store.count[m]):
        value = store.frame[m] * coef[slot * OK_LANES + lane]
        coef[slot * OK_LANES + lane] = <real> value if fabs(value) >= least else 0
    if store.frame[m] == 0.0:                   # eta * lambda = 1 wipes the past
        store.count[m] = store.clock[m] = 0
    store.frame[m] = 1.0


cdef void renumber(Store* store, unsigned char* born, Py_ssize_t m, Py_ssize_t lane) noexcept nogil:
    """The clock has run out: birthdays become ranks."""
    cdef unsigned char rank[MAX_SLOTS]
    cdef Py_ssize_t slot, other
    for slot in range(store.count[m]):
        rank[slot] = 0
        for other in range(store.count[m]):
            rank[slot] += born[other * OK_LANES + lane] < born[slot * OK_LANES + lane]
    for slot in range(store.count[m]):
        born[slot * OK_LANES + lane] = rank[slot]
    store.clock[m] = store.count[m]


cdef Py_ssize_t vacate(Store* store, unsigned char* born, Py_ssize_t m, Py_ssize_t lane, int smallest) noexcept nogil:
    """A slot for a new term, under the budget; `smallest` is the slot of a full model's smallest term."""
    cdef Py_ssize_t slot
    if store.recent:
        slot = (store.clock[m] + store.count[m]) % store.slots
        if store.count[m] == store.slots:
            store.clock[m] = <unsigned char> ((store.clock[m] + 1) % store.slots)
        else:
            store.count[m] += 1
        return slot
    slot = smallest
    if store.count[m] < store.slots:
        slot = store.count[m]
        store.count[m] += 1
    born[slot * OK_LANES + lane] = store.clock[m]
    store.clock[m] += 1
    if store.clock[m] == LAST_TICK:
        renumber(store, born, m, lane)
    return slot


cdef inline double inner_product(const real* x, const real* z, Py_ssize_t d, Py_ssize_t lane) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(d):
        total += <double> x[j * OK_LANES + lane] * z[j * OK_LANES + lane]
    return total


cdef double evaluate_carefully(const Store* store, const real* points, const real* coef, const real* x,
                               Py_ssize_t lane) noexcept nogil:
    """A linear score without slots that hold no term: an infinite value times their 0 is no reason to stop."""
    cdef Py_ssize_t slot
    cdef double total = 0.0
    for slot in range(store.slots):
        if coef[slot * OK_LANES + lane] != 0:
            total += coef[slot * OK_LANES + lane] * inner_product(
                x, points + slot * store.d * OK_LANES, store.d, lane)
    return total


# ---- A block -------------------------------------------------------------------------------------

cdef void evaluate(const Store* store, const real* points, const real* coef, const real* x, Py_ssize_t slots,
                   Py_ssize_t prefetch, real* sums) noexcept nogil:
    """Sums of stored coefficients times kernel values, for all models of a block."""
    if real is float:
        if store.linear:
            ok_lanes_linear_f(points, coef, x, slots, store.d, prefetch, sums)
        else:
            ok_lanes_gaussian_f(points, coef, x, slots, store.d, prefetch, <float> store.gamma, sums)
    else:
        if store.linear:
            ok_lanes_linear(points, coef, x, slots, store.d, prefetch, sums)
        else:
            ok_lanes_gaussian(points, coef, x, slots, store.d, prefetch, store.gamma, sums)


cdef Py_ssize_t receive(const Store* store, const int64_t* rows, bint whole, const Examples* examples, real* x,
                        Lanes* lanes) noexcept nogil:
    """Turn rows of X to the layout of a block; how many there are. `whole`: all, and they follow each other."""
    cdef Py_ssize_t lane, j, d = store.d, n = 0
    cdef const real* row
    for lane in range(OK_LANES):
        lanes.active[lane] = 1.0 if rows[lane] >= 0 else 0.0
        n += rows[lane] >= 0
        if examples.y != NULL and rows[lane] >= 0:
            lanes.target[lane] = examples.y[rows[lane]]
    if whole:
        if real is float:
            ok_lanes_transpose_f(<const float*> examples.X + rows[0] * d, d, x)
        else:
            ok_lanes_transpose(<const double*> examples.X + rows[0] * d, d, x)
        return n
    for lane in range(OK_LANES):
        if rows[lane] >= 0:                     # other lanes may hold what they held
            row = <const real*> examples.X + rows[lane] * d
            for j in range(d):
                x[j * OK_LANES + lane] = row[j]
    return n


cdef void score(const Store* store, const real* points, const real* coef, Py_ssize_t block, Py_ssize_t following,
                Py_ssize_t slots, const int64_t* rows, const real* x, Lanes* lanes) noexcept nogil:
    cdef real sums[OK_LANES]
    cdef const double* frame = store.frame + block * OK_LANES
    cdef const double* offset = store.offset + block * OK_LANES
    cdef Py_ssize_t lane
    evaluate(store, points, coef, x, slots, (following - block) * store.slots * OK_LANES, sums)
    if store.linear:
        for lane in range(OK_LANES):
            lanes.own[lane] = inner_product(x, x, store.d, lane)
            if rows[lane] >= 0 and not isfinite(sums[lane]):
                sums[lane] = evaluate_carefully(store, points, coef, x, lane)
    if real is float:
        ok_lanes_scores_f(sums, frame, offset, lanes)
    else:
        ok_lanes_scores(sums, frame, offset, lanes)


cdef void size_step(const Store* store, Py_ssize_t lane, int64_t t, Lanes* lanes) noexcept nogil:
    """Step of example t, and what it leaves of old coefficients."""
    cdef double eta = step_size(&store.step, t)
    lanes.eta[lane] = eta
    lanes.shrink[lane] = implicit_shrink(eta, store.regularization) if store.rule.implicit \
        else gradient_shrink(eta, store.regularization)


cdef void move(Store* store, real* coef, Py_ssize_t block, Lanes* lanes) noexcept nogil:
    """Shrink old terms, move offsets and scalars; decide about new terms."""
    cdef Py_ssize_t lane, first = block * OK_LANES
    cdef double* gap = lanes.no_gap
    cdef double* gap_weight = lanes.no_weight
    if store.gap != NULL:
        gap, gap_weight = store.gap + first, store.gap_weight + first
    if store.step.code != FIXED:
        for lane in range(OK_LANES):
            size_step(store, lane, store.t[first + lane] + 1, lanes)
    ok_lanes_move(&store.rule, lanes, store.t + first, store.frame + first, store.offset + first, store.scalar + first,
                  gap, gap_weight)
    if lanes.n_folds > 0:
        for lane in range(OK_LANES):
            if lanes.folds[lane] > 0.0:
                fold(store, coef, first + lane, lane)
                lanes.stored[lane] = lanes.alpha[lane]


cdef void append(Store* store, real* points, real* coef, Py_ssize_t block, Py_ssize_t slots, const real* x,
                 const Lanes* lanes) noexcept nogil:
    """Store the new terms, under the budget: a term smaller than all of a full model's does not enter."""
    cdef int entering[OK_LANES]
    cdef int evicted[OK_LANES]
    cdef real least[OK_LANES]
    cdef Py_ssize_t i, lane, slot, j, n, d = store.d
    cdef unsigned char* born = store.born + block * store.slots * OK_LANES
    cdef const unsigned char* count = store.count + block * OK_LANES
    cdef bint drops = not store.recent and slots == store.slots     # some models have no room
    for lane in range(OK_LANES):
        least[lane] = 0
        evicted[lane] = 0
    if real is float:
        if drops:
            ok_lanes_least_f(coef, slots, least)
        n = ok_lanes_entering_f(lanes, count, store.slots, least, entering)
        if drops and n > 0:
            ok_lanes_evicted_f(coef, born, slots, least, evicted)
    else:
        if drops:
            ok_lanes_least(coef, slots, least)
        n = ok_lanes_entering(lanes, count, store.slots, least, entering)
        if drops and n > 0:
            ok_lanes_evicted(coef, born, slots, least, evicted)
    for i in range(n):
        lane = entering[i]
        slot = vacate(store, born, block * OK_LANES + lane, lane, evicted[lane])
        coef[slot * OK_LANES + lane] = <real> lanes.stored[lane]
        for j in range(d):
            points[(slot * d + j) * OK_LANES + lane] = x[j * OK_LANES + lane]


cdef void report(const int64_t* rows, const Lanes* lanes, bint learning, unsigned char* failed,
                 Tally* tally) noexcept nogil:
    cdef Py_ssize_t lane
    for lane in range(OK_LANES):
        if rows[lane] < 0:
            continue
        if (lanes.moved[lane] if learning else lanes.active[lane]) > 0.0:
            tally.learned += 1
            continue
        failed[lane] = True
        if tally.row < 0 or rows[lane] < tally.row:
            tally.row = rows[lane]
            tally.reason = MOVE if isfinite(lanes.own[lane]) else POINT
            if not isfinite(lanes.score[lane]):
                tally.reason = SCORE


cdef void visit(Store* store, Py_ssize_t block, Py_ssize_t following, const int64_t* rows, bint whole, real* x,
                Lanes* lanes, const Examples* examples, unsigned char* failed, Tally* tally) noexcept nogil:
    """One example for each model of a block that has one (rows[lane] >= 0): its score and, if asked, its move.

    `following` is the block that will be visited next.  `whole`: all models have one, and the rows follow each other.
    """
    cdef Py_ssize_t lane, n, slots = 0, size = store.slots * OK_LANES
    cdef const unsigned char* count = store.count + block * OK_LANES
    cdef real* points = <real*> store.points + block * size * store.d
    cdef real* coef = <real*> store.coef + block * size
    for lane in range(OK_LANES):
        slots = max(slots, <Py_ssize_t> count[lane])
    n = receive(store, rows, whole, examples, x, lanes)
    score(store, points, coef, block, following, slots, rows, x, lanes)
    if whole:
        memcpy(examples.scores + rows[0], lanes.score, sizeof(lanes.score))
    else:
        for lane in range(OK_LANES):
            if rows[lane] >= 0:
                examples.scores[rows[lane]] = lanes.score[lane]
    if examples.learning:
        move(store, coef, block, lanes)
        if lanes.n_terms > 0:
            append(store, points, coef, block, slots, x, lanes)
        if lanes.n_moved == n:
            tally.learned += n
            return
    report(rows, lanes, examples.learning, failed, tally)


cdef void visit_blocks(Store* store, Py_ssize_t first, Py_ssize_t last, real* x, Lanes* lanes,
                       const Examples* examples, Tally* tally) noexcept nogil:
    """All examples of some blocks, those of each model in order; a model stops at one that it cannot learn."""
    cdef int64_t rows[OK_LANES]
    cdef int64_t next[OK_LANES]
    cdef unsigned char failed[OK_LANES]
    cdef Py_ssize_t place, lane, m
    cdef bint more, whole
    cdef const int64_t* starts
    for lane in range(OK_LANES):
        lanes.own[lane], lanes.target[lane] = 1.0, 0.0
        lanes.no_gap[lane] = lanes.no_weight[lane] = 0.0
        size_step(store, lane, 1, lanes)        # for good, if all steps are alike
    for place in range(first, last):
        for lane in range(OK_LANES):
            failed[lane] = False
        if examples.blocks == NULL:
            more, whole = False, examples.active == NULL and (place + 1) * OK_LANES <= examples.n
            for lane in range(OK_LANES):
                m = place * OK_LANES + lane
                rows[lane] = m if whole or (m < examples.n and (examples.active == NULL or examples.active[m])) else -1
                more |= rows[lane] >= 0
            if more:
                visit(store, place, min(place + 1, last - 1), rows, whole, x, lanes, examples, failed, tally)
            continue
        starts = examples.starts + place * (OK_LANES + 1)
        for lane in range(OK_LANES):
            next[lane] = starts[lane]
            if examples.failed != NULL:
                failed[lane] = examples.failed[examples.blocks[place] * OK_LANES + lane]
        while True:
            more = False
            for lane in range(OK_LANES):
                rows[lane] = -1
                if next[lane] < starts[lane + 1] and not failed[lane]:
                    rows[lane] = examples.order[next[lane]]
                    next[lane] += 1
                    more = True
            if not more:
                break
            visit(store, examples.blocks[place], examples.blocks[min(place + 1, last - 1)], rows, False, x, lanes,
                  examples, failed, tally)
        if examples.failed != NULL:
            memcpy(examples.failed + examples.blocks[place] * OK_LANES, failed, sizeof(failed))


# ---- Threads of a call to a bank -----------------------------------------------------------------

cdef struct Share:
    # What one thread does of a call: some blocks.
    Store* store                # the models
    const Examples* examples    # of the call
    void* x                     # a row for each model of a block
    Py_ssize_t first, last      # places of its blocks
    Tally tally                 # of its rows
    PyThread_type_lock done     # free when the thread is done; NULL: it is the calling thread


cdef void work(void* given) noexcept nogil:
    """Do one's share, and say so. O(slots d) for each example."""
    cdef Share* share = <Share*> given
    cdef Lanes lanes
    if share.store.single:
        visit_blocks[float](share.store, share.first, share.last, <float*> share.x, &lanes, share.examples,
                            &share.tally)
    else:
        visit_blocks[double](share.store, share.first, share.last, <double*> share.x, &lanes, share.examples,
                             &share.tally)
    if share.done != NULL:
        PyThread_release_lock(share.done)


cdef class Shares:
    """What each thread of a call does: places first, ..., last - 1, in n parts; scratch has a row for each thread."""

    cdef Share* of          # each thread
    cdef Py_ssize_t n       # threads
    cdef object scratch     # the memory of their `x`

    def __cinit__(self, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last, scratch):
        cdef Py_ssize_t i
        self.scratch = scratch
        self.of = <Share*> calloc(n, sizeof(Share))
        if self.of == NULL:
            raise MemoryError("There is no memory for threads.")
        self.n = n
        for i in range(n):
            self.of[i].first, self.of[i].last = first + (last - first) * i // n, first + (last - first) * (i + 1) // n
            self.of[i].tally.row = -1
            self.of[i].x = array_data(scratch[i])
            if i > 0:
                self.of[i].done = PyThread_allocate_lock()
                if self.of[i].done == NULL:
                    raise MemoryError("There is no memory for threads.")

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.of[i].done != NULL:
                PyThread_free_lock(self.of[i].done)
        free(self.of)

    cdef void run(self) noexcept:
        """Do all shares, each in a thread of its own, or in ours if there is none; signals wait."""
        cdef Py_ssize_t i
        for i in range(1, self.n):
            PyThread_acquire_lock(self.of[i].done, WAIT_LOCK)
            if PyThread_start_new_thread(work, &self.of[i]) == <unsigned long> -1:
                with nogil:
                    work(&self.of[i])
        with nogil:
            work(&self.of[0])
            for i in range(1, self.n):
                PyThread_acquire_lock(self.of[i].done, WAIT_LOCK)

    cdef Tally tally(self):
        cdef Tally total = Tally(0, -1, NONE)
        cdef Py_ssize_t i
        for i in range(self.n):
            total.learned += self.of[i].tally.learned
            if self.of[i].tally.row >= 0 and (total.row < 0 or self.of[i].tally.row < total.row):
                total.row, total.reason = self.of[i].tally.row, self.of[i].tally.reason
        return total


# ---- Models, for Python --------------------------------------------------------------------------

LANES_CODES = {"lanes": OK_LANES, "most slots": MAX_SLOTS}


def not_zero(value, name):
    """The limit: no number is 0."""
    if (value == 0).any():
        raise ValueError(f"{name} has a number that is 0")


cdef class Models:
    """Many small models of one kind; see `Store` for its parameters.

    `loss` and `step` are as the engine takes them, gamma is None for the linear kernel, and the dtype, float32 or
    float64, is that of points, coefficients and kernel values.
    """
    # Axes are those of `gather`; in `arrays` the first is over blocks, and there is a last one over lanes
    FIELDS = (Array("points", "dtype", ("models", "slots", "n_features")),
              Array("coefficients", "dtype", ("models", "slots")), Array("born", np.uint8, ("models", "slots")),
              Array("t", np.int64, ("models",), within(0, (1 << 62) - 1)),
              Array("frame", np.float64, ("models",), not_zero), Array("offset", np.float64, ("models",)),
              Array("scalar", np.float64, ("models",)), Array("count", np.uint8, ("models",)),
              Array("clock", np.uint8, ("models",)),
              Array("gap", np.float64, ("models",), not_negative, when=lambda models: models.has_own_step),
              Array("gap_weight", np.float64, ("models",), not_negative, when=lambda models: models.has_own_step))

    cdef Store store
    cdef readonly Py_ssize_t n          # models
    cdef readonly Py_ssize_t slots      # terms of a model, at most
    cdef readonly Py_ssize_t n_features     # of examples
    cdef readonly bint has_own_step     # whether the scalar of the loss has a step of its own
    cdef readonly object dtype
    cdef readonly dict arrays           # by name; what `store` points to
    cdef readonly dict index            # number of each key's model, if models have keys
    cdef public object labels           # of all models, or None: theirs who learns
    cdef readonly int64_t visited       # rows of all calls that learned, those that did not count included

    def __init__(self, *, loss, step, bint implicit, double regularization, double penalty, bint recent,
                 Py_ssize_t slots, bint offset, gamma, Py_ssize_t n_features, dtype):
        code, scalar, nu, own_step = loss
        self.slots, self.n_features, self.has_own_step = slots, n_features, own_step > 0.0
        self.store.rule.loss = Loss(code, scalar, nu, own_step)
        self.store.rule.implicit, self.store.rule.has_offset, self.store.recent = implicit, offset, recent
        self.store.linear, self.store.gamma = gamma is None, 0.0 if gamma is None else gamma
        self.store.slots, self.store.d = slots, n_features
        self.dtype = np.dtype(dtype)
        self.store.single = single = self.dtype == np.float32
        self.store.rule.range = np.finfo(self.dtype).max
        self.store.rule.dust = 1e-6 if single else 0.0
        self.store.rule.least_frame, self.store.rule.most = (1e-20, 1e30) if single else (1e-100, 1e150)
        self.configure(step, regularization, penalty)
        self.index = {}
        self.move_to(self.allocated(0))

    def configure(self, step, double regularization, double penalty):
        self.store.step = Step(step[0], step[1], step[2], step[3], step[4])
        self.store.regularization, self.store.rule.penalty = regularization, penalty

    cdef dict allocated(self, Py_ssize_t blocks):
        """Arrays of so many blocks, at least as many as are in use, with what is learned."""
        cdef Py_ssize_t used = (self.n + OK_LANES - 1) // OK_LANES
        starts = {"frame": 1.0, "scalar": self.store.rule.loss.scalar}
        arrays = {}
        for field in self.FIELDS:
            if field.is_kept(self):
                shape = [getattr(self, size) for size in field.shape[1:]]
                dtype = self.dtype if field.dtype == "dtype" else np.dtype(field.dtype)
                array = arrays[field.name] = zeros((blocks, *shape, OK_LANES), dtype)
                if field.name in starts:
                    array[...] = starts[field.name]
                if used:
                    array[:used] = self.arrays[field.name][:used]
        return arrays

    cdef move_to(self, dict arrays):
        cdef Store store = self.store
        store.points, store.coef = array_data(arrays["points"]), array_data(arrays["coefficients"])
        store.t = <int64_t*> array_data(arrays["t"])
        store.frame = <double*> array_data(arrays["frame"])
        store.offset = <double*> array_data(arrays["offset"])
        store.scalar = <double*> array_data(arrays["scalar"])
        store.gap = store.gap_weight = NULL
        if "gap" in arrays:
            store.gap = <double*> array_data(arrays["gap"])
            store.gap_weight = <double*> array_data(arrays["gap_weight"])
        store.count = <unsigned char*> array_data(arrays["count"])
        store.clock = <unsigned char*> array_data(arrays["clock"])
        store.born = <unsigned char*> array_data(arrays["born"])
        self.store, self.arrays = store, arrays

    def reserve(self, Py_ssize_t n):
        """Memory for n models, or MemoryError and all is as it was; it doubles, so that few move often."""
        cdef Py_ssize_t blocks = (n + OK_LANES - 1) // OK_LANES, capacity = len(self.arrays["t"])
        if blocks > capacity:
            self.move_to(self.allocated(max(blocks, 2 * capacity) if self.n else blocks))

    cdef int enter(self, dict keys) except -1:
        """Let keys have models, all of them or none; their numbers follow those that there are."""
        try:
            self.index.update(keys)
        except BaseException:
            while len(self.index) > self.n:
                self.index.popitem()            # asks no key whether it equals another
            raise

    def visit(self, X, const double[::1] y, double[::1] scores, *, groups=None, const unsigned char[::1] active=None,
              Py_ssize_t first, Py_ssize_t last, Py_ssize_t threads=1, bint learning=False, Py_ssize_t rows=0,
              Py_ssize_t n=0, dict keys=None, labels=None, unsigned char[::1] failed=None):
        """The examples of blocks first, ..., last - 1: scores, and moves if `learning`. Return how many rows went well,
        the first that did not (-1: none), and why.

        Row m of X is for model m, unless `groups` = (blocks, starts, order) says what belongs together; `first` and
        `last` are then places in `blocks`.

        Whoever learns is alone.  These are `rows` rows of a call (those that do not count included).  With them there
        are n models, for which there is memory; the new ones have `keys`, and all have these `labels`.  `failed` tells,
        and is told, which models have met a row that they cannot learn.  After an error or an interrupt, `visited` says
        whether all rows are learned or none.
        """
        cdef Examples examples
        cdef const int64_t[::1] blocks, order
        cdef const int64_t[:, ::1] starts
        cdef Tally tally = Tally(0, -1, NONE)
        cdef Shares shares = None
        cdef Py_ssize_t i
        examples.X = array_data(X)
        examples.n = X.shape[0]
        examples.y = <const double*> NULL if y is None or not len(y) else &y[0]
        examples.active = <const unsigned char*> NULL if active is None or not len(active) else &active[0]
        examples.failed = NULL if failed is None else &failed[0]
        examples.learning = learning
        examples.blocks = NULL
        if last > first:
            examples.scores = &scores[0]
            if groups is not None:
                blocks, starts, order = groups
                examples.blocks, examples.starts, examples.order = &blocks[0], &starts[0, 0], &order[0]
            threads = 1 if threads >= last - first else threads
            shares = Shares(threads, first, last, zeros((threads, self.store.d, OK_LANES), self.dtype))
            for i in range(threads):
                shares.of[i].store, shares.of[i].examples = &self.store, &examples
        if learning:
            if keys:
                self.enter(keys)
            self.n, self.labels = n, labels
        if last > first:
            shares.run()
            tally = shares.tally()
        if learning:
            self.visited += rows
        return tally.learned, tally.row, tally.reason

    def values(self, name):
        """One number of each model: an array over models."""
        return self.arrays[name].reshape(-1)[:self.n].copy()

    def gather(self, models):
        """State of some models, by name; the first axis of each array is over them, the second over slots."""
        block, lane = np.divmod(np.asarray(models, dtype=np.int64), OK_LANES)
        return {name: np.ascontiguousarray(array[block, ..., lane]) for name, array in self.arrays.items()}

    def admit(self, state, Py_ssize_t n, dict keys=None):
        """n more models, in a state that `gather` gave and `check_state` has seen."""
        self.reserve(self.n + n)
        block, lane = np.divmod(np.arange(self.n, self.n + n), OK_LANES)
        for name, array in self.arrays.items():
            array[block, ..., lane] = state[name]
        if keys:
            self.enter(keys)
        self.n += n

    def check_state(self, state, Py_ssize_t n):
        """Raise ValueError unless a state of n models fits: every index and shape that C relies on."""
        if len(checked(self, state)["t"]) != n:
            raise ValueError(f"there are not {n} models")

    def fits(self, state):
        """ValueError unless slots, ages and clocks fit each other."""
        count, clock = state["count"].astype(int), state["clock"].astype(int)
        born, slots = state["born"], np.arange(self.store.slots)
        recent = self.store.recent
        if (count > self.store.slots).any():
            raise ValueError(f"a model has more terms than the budget of {self.store.slots}")
        if recent and ((clock != 0) & ((count < self.store.slots) | (clock >= self.store.slots))).any():
            raise ValueError("the slot of the oldest term is none")
        if not recent and ((clock >= LAST_TICK) | (clock < count)).any():
            raise ValueError("a clock has run out")
        free = slots >= count[:, None]  # no-cython-lint
        if state["coefficients"][free].any():
            raise ValueError("a slot without a term has a coefficient")
        if not recent:
            if (born[~free] >= np.repeat(clock, count)).any():
                raise ValueError("a term is younger than its model")
            days = np.sort(np.where(free, 256 + slots, born.astype(int)), axis=1)
            if (np.diff(days, axis=1) == 0).any():
                raise ValueError("two terms have the same birthday")

    def terms(self, Py_ssize_t model):
        """(points, true coefficients) of a model, oldest first, terms that have decayed to 0 left out."""
        state = {name: array[0] for name, array in self.gather([model]).items()}
        slots = np.arange(state["count"])
        if self.store.recent:
            slots = (slots + state["clock"]) % self.store.slots
        else:
            slots = np.argsort(state["born"][:state["count"]])
        slots = slots[state["coefficients"][slots] != 0]
        return state["points"][slots], state["frame"] * state["coefficients"][slots].astype(float)

    def term_counts(self):
        return np.count_nonzero(self.arrays["coefficients"], axis=1).reshape(-1)[:self.n]

    def nbytes(self):
        return sum(array.nbytes for array in self.arrays.values())

    def _check(self):
        blocks = len(self.arrays["t"])
        assert blocks * OK_LANES >= self.n
        for name, array in self.arrays.items():
            assert len(array) == blocks and array.shape[array.ndim - 1] == OK_LANES and array.flags.c_contiguous, name
        try:
            self.check_state(self.gather(np.arange(self.n)), self.n)
        except ValueError as error:
            raise AssertionError(str(error)) from error
        spare = self.gather(np.arange(self.n, blocks * OK_LANES))
        assert not spare["t"].any() and not spare["count"].any(), "a model beyond the last has learned"
        assert list(self.index.values()) in ([], list(range(self.n))), "keys and models do not fit"


cdef zeros(shape, dtype):
    """np.zeros that starts at a cache line."""
    size = dtype.itemsize
    for n in shape:
        size *= n
    memory = np.zeros(size + 64, dtype=np.uint8)
    start = -<Py_ssize_t> array_data(memory) & 63
    return memory[start:start + size].view(dtype).reshape(shape)
