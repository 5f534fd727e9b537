"""Blocks of models side by side: what examples do to them.

The scores of a block come from one loop over slots.  Then all of its models make their moves in one loop over lanes, by
the same formulas as the engine's: losses.h and moves.h have them.  With at most MAX_SLOTS terms the smallest is found by
looking at all.  One by one go only the terms that are stored, and what is rare.
"""
from libc.math cimport fabs, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from onlinekernels._core.bank.lanes cimport (Lanes, ok_lanes_entering, ok_lanes_entering_f, ok_lanes_gaussian, ok_lanes_gaussian_f,
                                             ok_lanes_least, ok_lanes_least_f, ok_lanes_linear, ok_lanes_linear_f, ok_lanes_move,
                                             ok_lanes_scores, ok_lanes_scores_f, ok_lanes_turn, ok_lanes_turn_f, ok_lanes_victims,
                                             ok_lanes_victims_f)
from onlinekernels._core.formulas.moves cimport FIXED, gradient_shrink, implicit_shrink, step_size
from onlinekernels._core.formulas.vecmath cimport OK_LANES
from onlinekernels._core.run.example cimport MOVE, POINT, SCORE

ctypedef fused real:
    float
    double


# ---- One model ------------------------------------------------------------------------------------------

cdef inline double smallest(real sample) noexcept nogil:
    """Numbers below it lose digits: folded to 0."""
    return 1.1754943508222875e-38 if real is float else 2.2250738585072014e-308


cdef void fold(Store* store, real* coef, Py_ssize_t m, Py_ssize_t lane) noexcept nogil:
    """Multiply a model's frame into its coefficients and reset it."""
    cdef Py_ssize_t slot
    cdef double value
    for slot in range(store.count[m]):
        value = store.frame[m] * coef[slot * OK_LANES + lane]
        coef[slot * OK_LANES + lane] = <real> value if fabs(value) >= smallest(coef[0]) else 0
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


cdef double own_value(const Store* store, const real* x, Py_ssize_t lane) noexcept nogil:
    """k(x, x) of the linear kernel."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(store.d):
        total += <double> x[j * OK_LANES + lane] * x[j * OK_LANES + lane]
    return total


cdef double evaluate_carefully(const Store* store, const real* points, const real* coef, const real* x,
                               Py_ssize_t lane) noexcept nogil:
    """A linear score without slots that hold no term: an infinite value times their 0 is no reason to stop."""
    cdef Py_ssize_t slot, j
    cdef double total = 0.0, inner
    for slot in range(store.slots):
        if coef[slot * OK_LANES + lane] == 0:
            continue
        inner = 0.0
        for j in range(store.d):
            inner += <double> x[j * OK_LANES + lane] * points[(slot * store.d + j) * OK_LANES + lane]
        total += coef[slot * OK_LANES + lane] * inner
    return total


# ---- A block --------------------------------------------------------------------------------------------

cdef void evaluate(const Store* store, const real* points, const real* coef, const real* x, Py_ssize_t slots,
                   Py_ssize_t ahead, real* sums) noexcept nogil:
    """Sums of stored coefficients times kernel values, for all models of a block."""
    if real is float:
        if store.linear:
            ok_lanes_linear_f(points, coef, x, slots, store.d, ahead, sums)
        else:
            ok_lanes_gaussian_f(points, coef, x, slots, store.d, ahead, <float> store.gamma, sums)
    else:
        if store.linear:
            ok_lanes_linear(points, coef, x, slots, store.d, ahead, sums)
        else:
            ok_lanes_gaussian(points, coef, x, slots, store.d, ahead, store.gamma, sums)


cdef Py_ssize_t receive(const Store* store, const int64_t* rows, bint whole, const Examples* examples, real* x,
                        Lanes* lanes) noexcept nogil:
    """Turn rows of X to the layout of a block; how many there are.  `whole`: all, and they follow each other."""
    cdef Py_ssize_t lane, j, d = store.d, n = 0
    cdef const real* row
    for lane in range(OK_LANES):
        lanes.active[lane] = 1.0 if rows[lane] >= 0 else 0.0
        n += rows[lane] >= 0
        if examples.y != NULL and rows[lane] >= 0:
            lanes.target[lane] = examples.y[rows[lane]]
    if whole:
        if real is float:
            ok_lanes_turn_f(<const float*> examples.X + rows[0] * d, d, x)
        else:
            ok_lanes_turn(<const double*> examples.X + rows[0] * d, d, x)
        return n
    for lane in range(OK_LANES):
        if rows[lane] >= 0:                     # other lanes may hold what they held
            row = <const real*> examples.X + rows[lane] * d
            for j in range(d):
                x[j * OK_LANES + lane] = row[j]
    return n


cdef void score(const Store* store, const real* points, const real* coef, Py_ssize_t block, Py_ssize_t following,
                Py_ssize_t slots, const int64_t* rows, const real* x, Lanes* lanes) noexcept nogil:
    """f(x) and the score of each model that has an example."""
    cdef real sums[OK_LANES]
    cdef const double* frame = store.frame + block * OK_LANES
    cdef const double* offset = store.offset + block * OK_LANES
    cdef Py_ssize_t lane
    evaluate(store, points, coef, x, slots, (following - block) * store.slots * OK_LANES, sums)
    if store.linear:
        for lane in range(OK_LANES):
            lanes.own[lane] = own_value(store, x, lane)
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
    cdef int victims[OK_LANES]
    cdef real least[OK_LANES]
    cdef Py_ssize_t i, lane, slot, j, n, d = store.d
    cdef unsigned char* born = store.born + block * store.slots * OK_LANES
    cdef const unsigned char* count = store.count + block * OK_LANES
    cdef bint drops = not store.recent and slots == store.slots     # some models have no room
    for lane in range(OK_LANES):
        least[lane] = 0
        victims[lane] = 0
    if real is float:
        if drops:
            ok_lanes_least_f(coef, slots, least)
        n = ok_lanes_entering_f(lanes, count, store.slots, least, entering)
        if drops and n > 0:
            ok_lanes_victims_f(coef, born, slots, least, victims)
    else:
        if drops:
            ok_lanes_least(coef, slots, least)
        n = ok_lanes_entering(lanes, count, store.slots, least, entering)
        if drops and n > 0:
            ok_lanes_victims(coef, born, slots, least, victims)
    for i in range(n):
        lane = entering[i]
        slot = vacate(store, born, block * OK_LANES + lane, lane, victims[lane])
        coef[slot * OK_LANES + lane] = <real> lanes.stored[lane]
        for j in range(d):
            points[(slot * d + j) * OK_LANES + lane] = x[j * OK_LANES + lane]


cdef void report(const int64_t* rows, const Lanes* lanes, bint learning, unsigned char* failed,
                 Outcome* outcome) noexcept nogil:
    """Which examples could not be learned, and why."""
    cdef Py_ssize_t lane
    for lane in range(OK_LANES):
        if rows[lane] < 0:
            continue
        if (lanes.moved[lane] if learning else lanes.active[lane]) > 0.0:
            outcome.learned += 1
            continue
        failed[lane] = True
        if outcome.row < 0 or rows[lane] < outcome.row:
            outcome.row = rows[lane]
            outcome.reason = SCORE if not isfinite(lanes.score[lane]) else POINT if not isfinite(lanes.own[lane]) else MOVE


cdef void visit(Store* store, real* points, real* coef, Py_ssize_t block, Py_ssize_t following, const int64_t* rows,
                bint whole, real* x, Lanes* lanes, const Examples* examples, unsigned char* failed,
                Outcome* outcome) noexcept nogil:
    """One example for each model of a block that has one (rows[lane] >= 0): its score and, if asked, its move.

    `following` is the block that will be visited next.  `whole`: all models have one, and the rows follow each other.
    """
    cdef Py_ssize_t lane, n, slots = 0, size = store.slots * OK_LANES
    cdef const unsigned char* count = store.count + block * OK_LANES
    points += block * size * store.d
    coef += block * size
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
            outcome.learned += n
            return
    report(rows, lanes, examples.learning, failed, outcome)


cdef void visit_blocks(Store* store, real* points, real* coef, Py_ssize_t first, Py_ssize_t last, real* x,
                       Lanes* lanes, const Examples* examples, Outcome* outcome) noexcept nogil:
    """All examples of some blocks, those of each model in their order; a model stops at an example that it cannot learn."""
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
                visit(store, points, coef, place, min(place + 1, last - 1), rows, whole, x, lanes, examples, failed, outcome)
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
            visit(store, points, coef, examples.blocks[place], examples.blocks[min(place + 1, last - 1)], rows, False, x,
                  lanes, examples, failed, outcome)
        if examples.failed != NULL:
            memcpy(examples.failed + examples.blocks[place] * OK_LANES, failed, sizeof(failed))


cdef void visit_places(Store* store, bint single, void* points, void* coef, void* x, const Examples* examples, Py_ssize_t first,
                       Py_ssize_t last, Outcome* outcome) noexcept nogil:
    """All examples of the places first, ..., last - 1 of a call; x: room for a row of each model of a block.

    `single`: points, coefficients and x are float, not double. O(slots d) for each example.
    """
    cdef Lanes lanes
    if single:
        visit_blocks[float](store, <float*> points, <float*> coef, first, last, <float*> x, &lanes, examples, outcome)
    else:
        visit_blocks[double](store, <double*> points, <double*> coef, first, last, <double*> x, &lanes, examples, outcome)
