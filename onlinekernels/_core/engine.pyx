"""The engine: the loop over a stream, and the hypothesis that it advances.

`Engine.learn_all` cuts a stream into pieces; for each piece one loop without the interpreter takes the examples in
order. Each example makes three moves. `Hypothesis.evaluate` gives its scores, `decide` asks the rule and changes
nothing, `carry_out` does what was decided: old terms are transformed, a new one is appended, offsets and the loss's
scalar move, a budget and a ball are kept. Norms can be kept exact. `Watch` and `Trial` look for signs that learning
goes wrong, and change nothing that is learned.
"""
cimport cython
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.errors import row_error
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS
from onlinekernels._core.formulas.losses cimport Loss, loss_adapts, loss_value
from onlinekernels._core.formulas.moves cimport (Norms, Pace, Standing, coefficient_is_bounded, is_bounded, is_stale,
                                                 without_term)
from onlinekernels._core.functions cimport (LOSS, MOVE, CANDIDATE, NOBODY, NONE, POINT, PYTHON, SCALED, SCORE, Example,
                                            Function, Removal, Outputs, Scratch, Term)
from onlinekernels._core.rules cimport (DIVERGED, NO_BETTER, NO_STATUS, OUT_OF_REACH, SCALAR_ABOVE, SCALAR_BELOW,
                                        STALLED, Form, OneOutput, Rule)
from onlinekernels._core.schema import Array, Count, Inlined, not_negative, Number, Record, restore, state_of
from onlinekernels._core.targets cimport TargetScaler
from onlinekernels._core.transforms cimport Scaler

# ---- Signs that learning goes wrong ----------------------------------------------------------------------------------

# A *runaway* scalar lies below, or above, all that it was held against for a long time: it tells nothing apart.
# Learning *diverges* when many scores of a regression are of late far beyond all targets. It has *stalled* if an
# adapted step has fallen to nothing. A margin is *out of reach* if regularization keeps f below it. Rules notice
# by themselves that they had to start anew. That f is *no better* than a constant is for a `Trial` to say.

cdef enum:
    LONG = 5            # blocks after which a scalar has run away
    ENOUGH = 100        # examples after which it is known how large k(x, x) is
    STILL = 100         # examples without a step after which it has stalled

cdef double LATE = 0.99         # what a wild score counts for, one score later,
cdef double MANY = 8.0          # and how many of late mean that learning diverges


@cython.final
cdef class Watch:
    cdef long long block        # examples that are looked at together; 0 if there is no scalar to watch
    cdef long long rows         # of them so far
    cdef double low, high       # range of what the scalar was held against in this block,
    cdef double last_low, last_high     # and in the one before
    cdef int side               # blocks in a row that ended with the scalar below (negative) or above that range
    cdef double largest         # |y| of a regression so far
    cdef double wild            # scores of late that were more than ten times that
    cdef int still              # examples so far whose adapted step was less than a millionth of the first
    cdef bint holds_margin      # whether a fixed margin is watched,
    cdef long long seen         # and then examples so far,
    cdef double largest_k, largest_weight       # k(x, x) and weights of them
    cdef int status             # what has been seen first

    def __init__(self, double nu, bint holds_margin):
        # Blocks are so long that about ten errors are due in each, but not in step with a scalar that swings by 1 / nu.
        self.block = 0 if nu <= 0.0 else <long long> fmax(200.0, 10.38 / nu)
        self.low = self.last_low = INFINITY
        self.high = self.last_high = -INFINITY
        self.holds_margin = holds_margin

    cdef void notice(self, int status) noexcept nogil:
        if self.status == NO_STATUS:
            self.status = status

    cdef void scalar(self, double compared, double scalar) noexcept nogil:
        """See what a scalar was held against, and what it has become."""
        cdef int side = 0
        self.low = fmin(self.low, compared)
        self.high = fmax(self.high, compared)
        self.rows += 1
        if self.rows < self.block:
            return
        if scalar < fmin(self.low, self.last_low):
            side = -1
        elif scalar > fmax(self.high, self.last_high):
            side = 1
        self.side = self.side + side if side * self.side > 0 else side
        if self.side <= -LONG or self.side >= LONG:
            self.notice(SCALAR_BELOW if side < 0 else SCALAR_ABOVE)
        self.last_low, self.last_high = self.low, self.high
        self.low, self.high, self.rows = INFINITY, -INFINITY, 0

    cdef void score(self, double score, double y) noexcept nogil:
        self.largest = fmax(self.largest, fabs(y))
        self.wild *= LATE
        if self.largest > 0.0 and fabs(score) > 10.0 * self.largest:
            self.wild += 1.0
            if self.wild >= MANY:
                self.notice(DIVERGED)

    cdef void margin(self, double k, double weight) noexcept nogil:
        """See an example whose score should exceed a fixed margin."""
        self.seen += 1
        self.largest_k, self.largest_weight = fmax(self.largest_k, k), fmax(self.largest_weight, weight)

    cdef void step(self, double eta, double first) noexcept nogil:
        if eta < 1e-6 * first:
            self.still += 1
            if self.still >= STILL:
                self.notice(STALLED)


cdef enum:
    FIRST_BLOCK = 500   # examples of a trial before its first verdict,
    LAST_BLOCK = 16000  # and before its last one
    CHANCES = 20        # examples in which a constant must have been wrong, so that there was something to gain


@cython.final
cdef class Trial:
    """The model against the constant that is best so far: the most frequent class, or the mean of the targets.

    Each prediction, made before its example was learned, is compared with that of the constant. G is what the model has
    gained on it in a block of examples, in mistakes or in the loss, and G / sqrt(sum of squared gains), nearly normal
    if there is no difference, says whether that is more than chance. Who is clearly better has passed and is watched no
    more. Who is clearly worse has failed; so has, in all blocks but the first, which is for learning, who has gained
    less than a hundredth of the constant's loss, and no more than chance gives. Each block is twice as long as the one
    before and has a verdict of its own; after some ten thousand examples nobody is watched any more.
    """

    cdef bint regression            # y is a number, or several
    cdef bint two_classes           # with one score, -1 and +1
    cdef object constants           # what a constant would say: means of the targets, or how frequent each class is
    cdef double* answers_of_constant    # of `constants`
    cdef bint failed                # the latest verdict
    cdef long long block            # examples that are looked at together; 0 if the trial is over
    cdef long long rows             # of them so far
    cdef double loss, constant      # sums over the block: of the model's loss, of the constant's,
    cdef double constant_square     # of the squares of that,
    cdef double square              # and of the squared differences
    cdef double weight, total       # of the examples in the block, and of all
    cdef Py_ssize_t leader          # the most frequent class
    cdef long long lost             # the latest block that was lost: examples,
    cdef double lost_by, lost_to    # mean losses of the model and of the constant

    def __init__(self, Py_ssize_t width, bint regression, bint two_classes):
        self.regression, self.two_classes = regression, two_classes
        self.block, self.constants = FIRST_BLOCK, np.zeros(0)
        self.grow(width)

    cdef int grow(self, Py_ssize_t width) except -1:
        cdef double* data
        constants = np.zeros(max(2, width))                     # two classes may have one output
        constants[:len(self.constants)] = self.constants
        data = <double*> array_data(constants)
        self.constants, self.answers_of_constant = constants, data

    def verdict(self):
        """(examples, mean loss of the model, that of the constant, the most frequent class) where it lost last."""
        return self.lost, self.lost_by, self.lost_to, self.leader

    cdef void compare(self, const Loss* loss, Outputs outputs, Example e) noexcept nogil:
        """See whether the scores of an example were better than what a constant would have said. O(outputs)."""
        cdef Py_ssize_t l, y
        cdef double mine = 0.0, constant = 0.0, share
        cdef bint is_first = self.total == 0.0
        self.total += e.weight
        if self.regression:
            share = e.weight / self.total if self.total > 0.0 else 0.0
            for l in range(outputs.n):
                mine += loss_value(loss, e.scores[l], e.targets[l])
                constant += loss_value(loss, self.answers_of_constant[l], e.targets[l])
                self.answers_of_constant[l] += share * (e.targets[l] - self.answers_of_constant[l])
        else:
            y = e.targets[0] > 0.0 if self.two_classes else <Py_ssize_t> e.targets[0]
            mine, constant = self.is_wrong(outputs, e, y), y != self.leader
            self.answers_of_constant[y] += e.weight
            if self.answers_of_constant[y] > self.answers_of_constant[self.leader]:
                self.leader = y
        if is_first:                            # no constant was known
            return
        mine, constant = e.weight * mine, e.weight * constant
        self.loss += mine
        self.constant += constant
        self.constant_square += constant * constant
        self.square += (constant - mine) * (constant - mine)
        self.weight += e.weight
        self.rows += 1
        if self.rows >= self.block:
            self.judge()

    cdef bint is_wrong(self, Outputs outputs, Example e, Py_ssize_t y) noexcept nogil:
        """Whether the scores of an example say another class than y. O(outputs)."""
        cdef Py_ssize_t l
        if self.two_classes:
            return (e.scores[0] > 0.0) != y
        for l in range(outputs.n_seen):
            if e.scores[l] > e.scores[y] or (e.scores[l] == e.scores[y] and l < y):
                return True
        return False

    cdef void judge(self) noexcept nogil:
        cdef double gain = self.constant - self.loss, chance = sqrt(self.square)
        cdef bint had_chances = self.constant * self.constant >= CHANCES * self.constant_square > 0.0
        self.failed = had_chances and (gain < -4.0 * chance
                                       or self.block > FIRST_BLOCK and gain <= fmin(chance, 0.01 * self.constant))
        if self.failed:
            self.lost, self.lost_by, self.lost_to = self.rows, self.loss / self.weight, self.constant / self.weight
        self.rows, self.block = 0, 0 if gain > 3.0 * chance or self.block == LAST_BLOCK else 2 * self.block
        self.loss = self.constant = self.constant_square = self.square = self.weight = 0.0


# ---- The hypothesis --------------------------------------------------------------------------------------------------

NORMS = Number("square", not_negative), Number("product"), Number("peak", not_negative)


@cython.final
cdef class Hypothesis:
    """f(x, .) + b.

    `loss` is (code, scalar, nu, the scalar's own step or 0); `against_constant`: whether there is a `trial`.
    """

    FIELDS = (Count("t"), Array("offset", np.float64, ("labels",)), Array("offset_sum", np.float64, ("labels",)),
              Number("scalar"), Number("scalar_sum"), Number("gap", not_negative), Number("gap_weight", not_negative),
              *NORMS, Record("future", *NORMS, when=lambda hypothesis: hypothesis.function.outputs.future),
              Number("largest", not_negative, when=lambda hypothesis: hypothesis.regression),
              Number("wild", not_negative, when=lambda hypothesis: hypothesis.regression),
              Inlined("function"), Inlined("rule"))

    cdef readonly Function function     # f
    cdef readonly Rule rule             # what an example does to it
    cdef readonly Form form             # which scores the rule looks at
    cdef Standing now                   # t, the loss and the norms as they are now
    cdef readonly bint averages         # whether the average of all hypotheses predicts
    cdef readonly bint exact_norms      # |f|^2, and <f, v> if there is a trace, stay exact when terms go
    cdef readonly bint regression       # whether y is a number, or several
    cdef readonly double radius         # |f| stays within this; 0 for no bound
    cdef Watch watch                    # signs that learning goes wrong
    cdef readonly Trial trial           # whether it is better than a constant; None if nobody asks
    cdef bint follows_norm              # whether `followed` is |f|^2 after every move, for a call that asks for it
    cdef Norms followed                 # |f|^2 for that call, of a function that nothing drops
    cdef bint shows_latest              # whether Python sees the latest hypothesis, and not the average
    cdef Norms before_joining           # the norms before the latest label joined
    cdef readonly object offsets        # rows: b, its sum over time
    cdef double* offset                 # b, row 0 of `offsets`
    cdef double* offset_sum             # row 1 of it
    cdef double scalar_sum              # that of the loss's scalar

    def __init__(self, *, Function function, Form form, loss, bint offset, bint average, double radius=0.0,
                 bint exact_norms=False, bint regression=False, bint against_constant=False, bint holds_margin=False):
        code, scalar, nu, own_step = loss
        self.function, self.form, self.rule = function, form, form.rule
        self.now.loss = Loss(code, scalar, nu, own_step)
        self.now.has_offset, self.now.keeps_square = offset, exact_norms
        self.averages, self.exact_norms, self.regression, self.radius = average, exact_norms, regression, radius
        self.watch = Watch(nu, holds_margin and not offset)
        self.set_offsets(np.zeros((2, function.width)))
        if against_constant:
            self.trial = Trial(function.width, regression, isinstance(form, OneOutput) and not regression)
        self.rule.grow(function.width, 1, function.outputs.future)
        self.rule.stand_on(function)

    cdef int set_offsets(self, offsets) except -1:
        cdef double* data = <double*> array_data(offsets)
        cdef Py_ssize_t width = offsets.shape[1]
        self.offsets, self.offset, self.offset_sum = offsets, data, data + width

    def grow(self, Py_ssize_t width):
        """Make room for labels that will join; those that learn ahead go on from the last output. If the function, the
        last to grow, fails to, offsets and rule have more room than they need."""
        outputs = self.function.outputs
        known = outputs.n if outputs.future else self.function.width
        wider = np.zeros((2, max(width, self.function.width)))
        wider[:, :known] = self.offsets[:, :known]
        if outputs.future:
            wider[:, known:] = wider[:, known - 1:known]
        self.rule.grow(wider.shape[1], known, outputs.future)
        self.set_offsets(wider)
        if self.trial is not None:
            self.trial.grow(wider.shape[1])
        self.function.grow(width)

    cdef void set_seen(self, Py_ssize_t n_seen) noexcept nogil:
        """There are so many labels now; what new ones have learned ahead belongs to f from now on. O(1)."""
        cdef double new_labels = <double> (n_seen - self.function.outputs.n_seen)
        self.before_joining = self.now.norms
        self.now.norms.square += new_labels * self.now.future.square
        self.now.norms.product += new_labels * self.now.future.product
        self.function.outputs.set_seen(n_seen)

    cdef void undo_seen(self, Py_ssize_t n_seen) noexcept nogil:
        """The labels after these have not joined: their example cannot be learned. O(1)."""
        if self.function.outputs.n_seen != n_seen:
            self.now.norms = self.before_joining
            self.function.outputs.set_seen(n_seen)

    cdef int make_ready(self, Scratch w, Example e) except -1:
        """Room for what one example of this hypothesis needs. O(1), unless outputs have come."""
        self.function.make_ready(w)
        return e.reserve(self.function.width, self.function.frame.channels, self.function.outputs.n_nodes,
                           self.rule.decision_size(self.function.width))

    # ---- Evaluate -----------------------------------------------------------------------------

    cdef bint evaluate(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """f(x_i, .) into e.bare (and v behind it), with the offsets into e.scores; False if they are not finite."""
        cdef Py_ssize_t l
        if not (isfinite(w.piece.own[i]) and self.function.point_is_finite(w, i)):
            e.failure = POINT
            return False
        self.function.evaluate(w, i, self.rule.has_trace, e.bare)
        e.variance, e.values, e.for_budget = w.variance, w.piece.values, w.for_budget
        for l in range(self.function.outputs.n):
            e.scores[l] = e.bare[l] + self.offset[l]
            if not isfinite(e.scores[l]):
                e.failure = SCORE
                return False
        return True

    # ---- Decide -------------------------------------------------------------------------------

    cdef bint decide(self, Scratch w, Example e, Py_ssize_t i, const double* y, double weight) noexcept nogil:
        """The rule's move and the new term into the example; False if they are not finite. As `Form.decide`."""
        cdef int j, last = self.function.frame.channels - 1
        e.move.scalar = e.move.compared = self.now.loss.scalar
        e.move.pace, e.move.norms, e.move.future = self.now.pace, self.now.norms, self.now.future
        e.targets, e.weight = y, weight
        e.all_labels = e.term.looked_at = e.term.stays_out = False
        if not (self.rule.has_step(self.now.t + 1, e) and self.form.decide(&self.now, self.offset, w.piece.own[i], e)):
            return False
        if self.averages:                       # F <- F + f, with the f that made this prediction
            for j in range(last):
                e.move.transform[last][j] = 1.0 if j == 0 else 0.0
            e.move.transform[last][last] = 1.0
        if not (is_bounded(e.move.scalar) and isfinite(e.move.transform[0][0]) and isfinite(e.move.norms.square)
                and self.rule.is_finite(e) and (e.all_labels or coefficient_is_bounded(e.term.alpha[0], w.piece.own[i]))
                and self.all_is_finite(e, w.piece.own[i])):
            e.failure = MOVE
            return False
        if self.exact_norms:
            e.without_candidate = without_term(&self.now.norms, &e.move.norms, &e.move, self.rule.has_trace)
            e.future_without_candidate = without_term(&self.now.future, &e.move.future, &e.move, self.rule.has_trace)
        return not e.term.enters or self.function.consult(w, e, self.now.t + 1)

    cdef bint all_is_finite(self, Example e, double k) noexcept nogil:
        """Whether everything else is: what only some hypotheses have. O(outputs)."""
        cdef Py_ssize_t j
        if self.now.loss.step > 0.0 and not is_bounded(e.move.pace.gap + e.move.pace.weight):
            return False
        if self.rule.has_trace:
            if not (isfinite(e.move.norms.product) and isfinite(e.move.future.square)
                    and isfinite(e.move.future.product) and coefficient_is_bounded(e.term.alpha[e.term.n], k)):
                return False
        if not self.now.has_offset:
            return True
        for j in range(e.term.n):
            if not is_bounded(self.offset[e.term.labels[j]] + e.term.offset[j]):
                return False
        return self.rule.decide_offsets(self.function.outputs.n, self.offset, e)

    # ---- Carry out ----------------------------------------------------------------------------

    cdef void carry_out(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """Move the offsets, transform the old terms, append the new one, move the scalar, apply the budget. O(outputs),
        and what function and budget take: O(1), unless a budget looks at the kernel or norms are exact."""
        cdef Py_ssize_t l, k, labels = self.function.outputs.n
        self.now.t += 1
        if self.follows_norm:
            self.follow_norm(e, w.piece.own[i])
        if self.regression:
            for l in range(labels):
                self.watch.score(e.scores[l], e.targets[l])
        self.scalar_sum += self.now.loss.scalar
        if self.trial is not None and self.trial.block:
            self.trial.compare(&self.now.loss, self.function.outputs, e)
        if self.watch.holds_margin:
            self.watch.margin(w.piece.own[i], e.weight)
        for l in range(labels):
            self.offset_sum[l] += self.offset[l]
        if self.now.has_offset:
            for k in range(e.term.n):
                self.offset[e.term.labels[k]] += e.term.offset[k]
        self.rule.accept(&self.now, labels, self.offset, e)
        self.watch.notice(self.rule.status)
        self.now.norms, self.now.future = e.move.norms, e.move.future
        self.function.transform(w, &e.move.transform[0][0])
        if e.term.enters and w.piece.own[i] != 0.0:
            self.append(w, e, i)
        self.now.loss.scalar, self.now.pace = e.move.scalar, e.move.pace
        if self.watch.block:
            self.watch.scalar(e.move.compared, e.move.scalar)
        self.let_expire(w)
        if self.exact_norms:
            self.recompute(w)
        if self.radius > 0.0:
            self.stay_in_ball(w)
        self.rule.follow(w, e)
        if self.rule.has_trace:
            self.watch.step(self.rule.step_at(self.now.t), self.rule.step.rate)

    cdef void append(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        cdef Removal removal
        cdef Py_ssize_t evicted
        self.function.store(w, &e.term, w.piece.own[i])
        self.function.make_way(w, &e.term, i, &removal)
        evicted = removal.slot
        if self.exact_norms and evicted == CANDIDATE and removal.residual < 0.0:
            self.now.norms, self.now.future = e.without_candidate, e.future_without_candidate
        elif self.exact_norms and evicted != NOBODY:
            self.subtract(w, evicted, &e.term, i, removal.residual)
        if evicted == CANDIDATE:
            return
        if evicted != NOBODY:
            self.function.drop(w, evicted)
        self.function.add(w, &e.term, i, self.now.t)
        if removal.shrink != 1.0:
            self.function.multiply(w, removal.shrink)
            self.now.norms.square *= removal.shrink * removal.shrink
            self.now.norms.product *= removal.shrink * removal.shrink

    cdef void let_expire(self, Scratch w) noexcept nogil:
        cdef Py_ssize_t slot = self.function.expiring(self.now.t)
        while slot != NOBODY:
            if self.exact_norms:
                self.subtract(w, slot, NULL, 0, -1.0)
            self.function.drop(w, slot)
            slot = self.function.expiring(self.now.t)

    cdef void stay_in_ball(self, Scratch w) noexcept nogil:
        """Project f onto the ball of the radius: H (19), through the frame. O(1)."""
        cdef double scaling[MAX_CHANNELS][MAX_CHANNELS]
        cdef int i
        if self.now.norms.square <= self.radius * self.radius:
            return
        memset(scaling, 0, sizeof(scaling))
        for i in range(1, MAX_CHANNELS):
            scaling[i][i] = 1.0
        scaling[0][0] = self.radius / sqrt(self.now.norms.square)
        self.function.transform(w, &scaling[0][0])
        self.now.norms.square = self.radius * self.radius

    # ---- Norms that stay exact when terms go --------------------------------------------------

    cdef void subtract(self, Scratch w, Py_ssize_t slot, const Term* candidate, Py_ssize_t i,
                       double residual) noexcept nogil:
        """The term in a slot, or the candidate, goes (V's erratum: the paper ignores what is dropped), or is projected
        onto the others: that takes its coefficient times the residual of k(x, .). O(outputs); if it goes, as an
        evaluation of f.

        f and v at the point of what goes are those of the function and, if there is one, of the candidate, example i,
        that is not in it yet.
        """
        cdef Py_ssize_t l, labels = self.function.outputs.n, width = self.function.width
        cdef Py_ssize_t n_seen = self.function.outputs.n_seen
        cdef int channel, last = self.rule.has_trace
        cdef double own = -residual, k_new
        cdef double* f = w.slot_scores
        cdef double* a = w.slot_coefficients
        cdef double* K_a = w.slot_products
        if residual >= 0.0:
            memset(f, 0, (last + 1) * width * sizeof(double))
        else:
            self.function.evaluate_slot(w, slot, last, f, &own)
            k_new = self.function.value_with(w, slot, i) if candidate != NULL else 0.0
            for channel in range(last + 1 if candidate != NULL else 0):
                self.over_labels(candidate, channel, a)
                self.function.outputs.apply(a, w.nodes)
                for l in range(labels):
                    f[channel * width + l] += k_new * a[l]
        for channel in range(last + 1):
            if slot == CANDIDATE:
                self.over_labels(candidate, channel, a + channel * width)
            else:
                self.function.coefficients_of(w, slot, channel, a + channel * width)
        memcpy(K_a, a, labels * sizeof(double))
        self.function.outputs.apply(K_a, w.nodes)
        self.subtract_over(&self.now.norms, w, 0, n_seen, own)
        if self.function.outputs.future:
            self.subtract_over(&self.now.future, w, n_seen, n_seen + 1, own)

    cdef void over_labels(self, const Term* term, int channel, double* out) noexcept nogil:
        cdef Py_ssize_t k
        memset(out, 0, self.function.outputs.n * sizeof(double))
        for k in range(term.n):
            out[term.labels[k]] += term.alpha[channel * term.n + k]

    cdef void subtract_over(self, Norms* norms, Scratch w, Py_ssize_t first, Py_ssize_t stop,
                            double own) noexcept nogil:
        """Norms of some outputs without what `subtract` has looked at. O(outputs)."""
        cdef Py_ssize_t l, width = self.function.width
        cdef double* f = w.slot_scores
        cdef double* a = w.slot_coefficients
        cdef double* K_a = w.slot_products
        for l in range(first, stop):
            norms.peak = fmax(norms.peak, fmax(norms.square, fabs(own * a[l] * K_a[l])))
            norms.square += a[l] * (own * K_a[l] - 2.0 * f[l])
            if self.rule.has_trace:
                norms.product += a[width + l] * (own * K_a[l] - f[l]) - a[l] * f[width + l]
        if norms.square < 0.0:
            norms.square = 0.0

    cdef bint norms_are_stale(self) noexcept nogil:
        """Whether |f|^2 is; with a trace it is not computed anew. O(1)."""
        return self.exact_norms and not self.rule.has_trace and is_stale(&self.now.norms)

    cdef void recompute(self, Scratch w) noexcept nogil:
        """Compute |f|^2 anew if it is stale, O(terms^2); for kernels in Python that waits for the next example."""
        cdef double square
        self.now.norms.peak = fmax(self.now.norms.peak, self.now.norms.square)
        if self.norms_are_stale():
            square = self.function.square(w)
            if isfinite(square):
                self.now.norms.square = self.now.norms.peak = fmax(0.0, square)

    # ---- |f| on the way -----------------------------------------------------------------------

    def show_latest(self, bint latest):
        """Whether to show Python the latest hypothesis in place of the average."""
        self.shows_latest = latest

    cdef int follow(self, double square) except -1:
        """From now on follow |f|^2, which is so much. O(1)."""
        self.follows_norm = True
        self.followed.square = self.followed.peak = square

    cdef double square(self) noexcept nogil:
        return self.followed.square if self.follows_norm else self.now.norms.square

    cdef void follow_norm(self, Example e, double k) noexcept nogil:
        """|s f + k(x, .) a|^2 = s^2 |f|^2 + 2 s a'f(x) + k a'kappa a: H 2.5, for any term. O(outputs)."""
        cdef Py_ssize_t l, j, n = self.function.outputs.n
        cdef double shrink = e.move.transform[0][0], mixed = 0.0, new = 0.0
        cdef double old = shrink * shrink * self.followed.square
        cdef double* a = e.work
        cdef double* K_a = e.work + e.width
        memset(a, 0, n * sizeof(double))
        for j in range(e.term.n if e.term.enters else 0):
            a[e.term.labels[j]] += e.term.alpha[j]
        memcpy(K_a, a, n * sizeof(double))
        self.function.outputs.apply(K_a, e.nodes)
        for l in range(n):
            mixed += a[l] * e.bare[l]
            new += k * a[l] * K_a[l]
        self.followed.square = fmax(0.0, old + 2.0 * shrink * mixed + new)
        self.followed.peak = fmax(shrink * shrink * self.followed.peak, fmax(old, new))

    # ---- The function that predicts -----------------------------------------------------------

    cdef int channel(self) noexcept nogil:
        return self.function.frame.channels - 1 if self.averages and self.now.t and not self.shows_latest else 0

    cdef averaged(self, true):
        """The sum of all hypotheses to their average, if that is what `score` evaluates. O(its size)."""
        return true / self.now.t if self.channel() else true

    cdef void score(self, Scratch w, Example e, Py_ssize_t i, double* out) noexcept nogil:
        """Scores of one example, of the averaged hypothesis if this one averages. As `Function.evaluate`."""
        cdef Py_ssize_t l, width = self.function.width
        cdef int channel = self.channel()
        self.function.evaluate(w, i, channel, e.bare)
        for l in range(self.function.outputs.n_seen):
            out[l] = e.bare[l] + self.offset[l]
            if channel:
                out[l] = (e.bare[channel * width + l] + self.offset_sum[l]) / self.now.t

    def intercept(self, bint future=False):
        """b of the one that predicts, (labels,); with the output ahead of them, if asked, here and below."""
        rows = self.offsets[:, :self.function.outputs.n_seen + future]
        return rows[1] / self.now.t if self.averages and self.now.t else rows[0].copy()

    def coefficients(self, bint future=False):
        """True coefficients of the function that predicts: (labels, terms), or weights (labels, n_features)."""
        return self.averaged(self.function.coefficients(self.channel())[:self.function.outputs.n_seen + future])

    def knots(self, Py_ssize_t j, bint future=False):
        """(keys, counts, coefficients, sizes) of a coordinate of an additive function, of the one that predicts."""
        labels = self.function.outputs.n_seen + future
        keys, counts, coefficients, sizes = self.function.forest.knots(self.function, j, self.channel(), labels)
        return keys, counts, self.averaged(coefficients), sizes

    def component(self, Py_ssize_t j, points):
        """f_j at values of coordinate j, shape (len(points), labels)."""
        n_seen = self.function.outputs.n_seen
        return self.averaged(self.function.forest.component(self.function, j, points, self.channel(), n_seen))

    def additive_square(self, bint future=False):
        labels = self.function.outputs.n_seen + future
        return self.averaged(self.averaged(self.function.forest.square(self.function, self.channel(), labels)))

    # ---- For Python ---------------------------------------------------------------------------

    @property
    def t(self):
        return self.now.t

    @t.setter
    def t(self, long long t):
        self.now.t = t

    @property
    def status(self):
        """What went wrong first, as a number: see `Watch`. 0 for nothing."""
        return self.noticed()

    cdef int noticed(self) noexcept nogil:
        if self.watch.status != NO_STATUS:
            return self.watch.status
        if self.watch.seen >= ENOUGH and self.now.loss.scalar > self.largest_score():
            return OUT_OF_REACH
        return NO_BETTER if self.trial is not None and self.trial.failed else NO_STATUS

    cpdef double largest_score(self) noexcept nogil:
        """What |f| cannot exceed so far: the sum of all coefficients times the largest k(x, x). O(1)."""
        return self.rule.longest() * self.watch.largest_weight * self.watch.largest_k

    def averages_scalar(self):
        """Whether the margin or width that goes with the predictions is an average: a loss is convex in f and in it."""
        return self.averages and self.now.t > 0 and loss_adapts(&self.now.loss)

    def scalar(self, bint latest=False):
        """The loss's margin or width, of the hypothesis that predicts, or the latest one."""
        return self.scalar_sum / self.now.t if not latest and self.averages_scalar() else self.now.loss.scalar

    def set_scalar(self, double scalar):
        """Put the margin or width that `scalar` gives where it belongs, if that is known from all examples."""
        if self.averages_scalar():
            self.scalar_sum = scalar * self.now.t
        else:
            self.now.loss.scalar = scalar

    def step_size(self):
        """eta of the latest example; of the first one before it has come."""
        t = max(self.now.t, 1)
        return self.rule.step_at(t) if self.rule.own_size is None else self.rule.own_size(t)

    def norms(self):
        """(<f, v>, |f|^2) as they are kept for SVMD, norm balls, ROMMA and ALMA."""
        return self.now.norms.product, self.now.norms.square

    def begin_with_square(self, double square, double future=0.0):
        """Set |f|^2 of the function that this hypothesis starts from, and of the output ahead of the labels."""
        cdef Scratch w = self.function.new_scratch()
        self.function.make_ready(w)
        self.now.norms.square = self.now.norms.peak = square
        self.now.future.square = self.now.future.peak = future
        if self.radius > 0.0:
            self.stay_in_ball(w)

    def begin_from(self, offset, *function, long long t=0):
        """Start from another function, after t examples; ValueError if it does not fit. See `Function.begin_from`."""
        check_array(offset, "offset", np.float64, (-1,))
        if len(offset) > self.offsets.shape[1]:
            raise ValueError(f"offset has {len(offset)} numbers, and there are {self.function.width} outputs")
        self.function.begin_from(*function, t=t)
        self.offsets[0, :len(offset)] = offset
        self.now.t = t

    def stored(self):
        labels = self.function.outputs.kept()
        return {"offset": self.offsets[0, :labels], "offset_sum": self.offsets[1, :labels],
                "scalar": self.now.loss.scalar, "scalar_sum": self.scalar_sum, "gap": self.now.pace.gap,
                "gap_weight": self.now.pace.weight, **self.now.norms, "future": self.now.future,
                "largest": self.watch.largest, "wild": self.watch.wild}

    def resume(self, state):
        labels = len(state["offset"])
        self.now.t, self.now.loss.scalar, self.scalar_sum = state["t"], state["scalar"], state["scalar_sum"]
        self.now.pace = Pace(state["gap"], state["gap_weight"])
        self.now.norms = {name: state[name] for name in ("square", "product", "peak")}
        self.now.future = state.get("future", Norms(0.0, 0.0, 0.0))
        self.offsets[0, :labels], self.offsets[1, :labels] = state["offset"], state["offset_sum"]
        if self.regression:
            self.watch.largest, self.watch.wild = state["largest"], state["wild"]

    def state(self):
        """Everything that learning has changed, as named numbers and arrays."""
        return state_of(self)

    def restore(self, state):
        """Continue from a state; ValueError, and nothing changed, if it does not fit."""
        restore(self, state)
        self.function.check_restored()

    def _check(self):
        assert self.now.t >= 0 and np.isfinite(self.offsets).all()
        self.function._check()
        self.rule._check()
        if self.function.outputs.future:
            copies = self.offsets[:, self.function.outputs.n_seen:self.function.outputs.n]
            assert (copies == copies[:, :1]).all(), "outputs ahead of the labels differ"


# ---- The loop --------------------------------------------------------------------------------------------------------

REASONS = {
    SCORE: "its score f(x) is not finite: the values of X are too large for the kernel, "
           "or the step is so large that learning diverges",
    MOVE: "its coefficient would be too large: the step is, or the sample weight, or y, so that learning diverges",
    POINT: "its values are too large for the kernel, k(x, x) is not finite",
}

cdef enum:
    MOST_SPARE = 8      # pairs of scratch and example that wait for the next call

cdef struct Trace:
    # Where to write what was current at each example of a call, before it was learned; NULL for what nobody wants.
    Py_ssize_t first        # row of the call with which the block begins
    double* scores          # so many numbers for each example:
    Py_ssize_t stride
    double* steps
    double* norms           # |f|,
    bint measures           # unless it is measured ahead of a block, and not followed
    double* scalars         # the loss's margin or width
    double* deviations      # of f
    double* half_widths     # of intervals, of each target,
    int level               # of this coverage: see `level_of`
    double share, factor


@cython.final
cdef class Engine(Backend):
    """The loop that advances a hypothesis, and its door to Python.

    One thread at a time may learn, and nobody predicts meanwhile, which the model's `ReadWriteLock` sees to.
    """

    cdef readonly Hypothesis hypothesis
    cdef Function function              # of the hypothesis
    cdef Outputs outputs                # the labels
    cdef readonly bint growing          # whether labels join as they appear
    cdef readonly bint leaves_out       # whether an example of weight 0 is left out altogether, and not counted
    cdef readonly Scaler scaler         # rows are learned behind it; or None
    cdef public TargetScaler target_scaler      # targets are learned behind it; or None
    cdef list spare                     # (scratch, example) that no call has at present
    # The call
    cdef Py_ssize_t earlier             # rows of the user's call before it
    cdef tuple lent                     # the scratch and the example that it has:
    cdef Scratch scratch
    cdef Example example
    # Its block
    cdef bint is_open
    cdef bint is_scaled                 # whether its rows have been scaled
    cdef Py_ssize_t first               # row of the call with which it begins
    cdef Py_ssize_t rows                # how many
    cdef Py_ssize_t done_before         # `done` when it was opened
    cdef const double* y
    cdef const double* weights          # NULL: all 1
    cdef Py_ssize_t n_seen_before       # labels before the row that was evaluated

    def __init__(self, Hypothesis hypothesis, *, Py_ssize_t targets=1, bint growing=False, bint leaves_out=False,
                 Scaler scaler=None, TargetScaler target_scaler=None):
        self.hypothesis = hypothesis
        self.function, self.outputs = hypothesis.function, hypothesis.function.outputs
        if growing and not self.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        Backend.__init__(self, "numbers" if hypothesis.regression else "classes", targets)
        self.growing, self.leaves_out, self.spare = growing, leaves_out, []
        self.scaler, self.target_scaler = scaler, target_scaler

    # ---- The loop -----------------------------------------------------------------------------

    cdef Py_ssize_t loop(self, Trace* trace) noexcept nogil:
        """Test and train the rows of the open block in order; how many were learned completely."""
        cdef Py_ssize_t i
        cdef long long t
        for i in range(self.rows):
            t = self.hypothesis.now.t
            if not (self.evaluate_row(self.scratch, self.example, i, trace)
                    and self.learn_row(self.scratch, self.example, i)):
                return i
            if trace.steps != NULL and self.hypothesis.now.t > t:       # unless it was left out
                trace.steps[trace.first + i] = self.hypothesis.rule.step_at(self.hypothesis.now.t)
        return self.rows

    cdef bint evaluate_row(self, Scratch w, Example e, Py_ssize_t i, const Trace* trace) noexcept nogil:
        """Scores of row i, and what else is traced; its label joins before. False if they are not finite."""
        cdef Py_ssize_t l, row = trace.first + i
        w.piece.slot = -1
        self.n_seen_before = self.outputs.n_seen
        if self.growing and self.n_seen_before <= <Py_ssize_t> self.y[i]:
            self.hypothesis.set_seen(<Py_ssize_t> self.y[i] + 1)    # at its own row
        if self.target_scaler is not None:
            self.target_scaler.know(i)
        if not self.hypothesis.evaluate(w, e, i):
            return self.refuse_row()
        if trace.scores != NULL:
            for l in range(min(self.function.width, trace.stride)):
                trace.scores[row * trace.stride + l] = e.scores[l] if l < self.outputs.n_seen else 0.0
        if trace.norms != NULL and (self.hypothesis.follows_norm or not trace.measures):
            trace.norms[row] = sqrt(self.hypothesis.square())
        if trace.scalars != NULL:
            trace.scalars[row] = self.hypothesis.now.loss.scalar
        if trace.deviations != NULL:
            trace.deviations[row] = sqrt(e.variance)
        for l in range(self.targets if trace.half_widths != NULL else 0):
            trace.half_widths[row * self.targets + l] = self.hypothesis.rule.half_width(
                e, l, trace.level, trace.share, trace.factor)
        return True

    cdef bint learn_row(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """Learn row i, which was evaluated; False if that is not possible, and then nothing has changed."""
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i]
        cdef const double* y = self.y + i * self.targets
        if weight == 0.0 and self.leaves_out:
            self.done += 1
            return True
        if self.target_scaler is not None:
            if not self.target_scaler.take(i):
                e.failure = MOVE
                return self.refuse_row()
            y = self.target_scaler.scaled + i * self.targets
        if not self.hypothesis.decide(w, e, i, y, weight):
            if self.target_scaler is not None:
                self.target_scaler.commit(i)
            return self.refuse_row()
        self.hypothesis.carry_out(w, e, i)
        self.done += 1
        return True

    cdef bint refuse_row(self) noexcept nogil:
        """A row cannot be learned: its label has not joined either. O(1)."""
        if self.growing:
            self.hypothesis.undo_seen(self.n_seen_before)
        return False

    # ---- Scratch ------------------------------------------------------------------------------

    cdef tuple lend(self):
        """(scratch, example) that nobody else has. O(1)."""
        with cython.critical_section(self):     # several threads may predict
            if self.spare:
                return self.spare.pop()
        return self.function.new_scratch(), Example()

    cdef int take_back(self, tuple lent) except -1:
        (<Scratch> lent[0]).let_go()
        with cython.critical_section(self):
            if len(self.spare) < MOST_SPARE:
                self.spare.append(lent)

    # ---- A call, block by block ---------------------------------------------------------------

    cdef int attach(self, examples) except -1:
        """The call is about these examples. O(1), O(non-zeros) for sparse rows behind a scaler."""
        lent = self.lend()
        self.scratch, self.example = lent
        self.hypothesis.make_ready(self.scratch, self.example)
        self.function.attach(self.scratch, examples)
        if self.scaler is not None:
            self.scaler.attach(self.scratch.piece)
        self.lent = lent

    cdef int detach(self) except -1:
        """The call is over; whatever is open was not learned. As `Function.tidy`."""
        lent, self.lent = self.lent, None
        if self.is_open:
            self.commit(0)
        if self.scaler is not None:
            self.scaler.let_go()
        self.scratch, self.example = None, None
        if lent is not None:
            self.take_back(lent)
        return self.function.tidy()

    cdef Py_ssize_t rows_at_once(self) except -1:
        return self.function.most_rows()

    cpdef Py_ssize_t stagger(self, Py_ssize_t place) noexcept:
        return place + self.function.stagger(20 * place + 2 * (place // 8))     # up to 16 are 2 rows of 32 apart

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        """As `Function.open`, `Scaler.open` and `TargetScaler.open`."""
        if self.growing and labels > self.outputs.n_seen:
            self.grow_for(labels)
        if self.hypothesis.norms_are_stale():
            square = self.function.square_from_python()
            if square is not None:
                self.hypothesis.now.norms.square = self.hypothesis.now.norms.peak = max(0.0, square)
        self.hypothesis.rule.open_steps(self.hypothesis.now.t, n)
        try:
            if self.target_scaler is not None:
                self.target_scaler.open(y, n, weights)
            if self.scaler is not None:
                self.scaler.open(self.scratch.piece, first, n)
                self.is_scaled, self.done_before = True, self.done      # with no Python in between: a handler may look
            self.function.open(self.scratch, 0 if self.scaler is not None and not self.scaler.sparse else first, n,
                               True, -1)
        except BaseException:
            if self.is_scaled:
                self.is_scaled = False
                self.scaler.commit(0)
            raise
        self.y, self.weights, self.rows, self.first = y, weights, n, first
        self.done_before, self.is_open = self.done, True

    cdef int grow_for(self, Py_ssize_t labels) except -1:
        """Room for labels that will join. O(1), unless outputs have come."""
        cdef Py_ssize_t needed = labels + self.outputs.future
        if needed > (self.outputs.n if self.outputs.future else self.function.width):
            self.hypothesis.grow(needed)
            self.hypothesis.make_ready(self.scratch, self.example)

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        cdef Trace trace
        cdef Py_ssize_t j
        cdef double deviation
        memset(&trace, 0, sizeof(Trace))
        if not self.evaluate_row(self.scratch, self.example, i, &trace):
            return False
        memcpy(scores, self.example.scores, self.outputs.n_seen * sizeof(double))
        if deviations != NULL:
            deviation = sqrt(self.example.variance + self.hypothesis.rule.noise_of_targets())
            for j in range(self.targets):
                deviations[j] = deviation
        if self.target_scaler is not None:
            self.target_scaler.restore_row(i, scores, deviations)
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return self.learn_row(self.scratch, self.example, i)

    cdef void commit(self, Py_ssize_t n) noexcept:
        self.is_open = False
        self.function.close(self.scratch)
        if self.is_scaled:
            self.is_scaled = False
            self.scaler.commit(n)
        if n < self.rows and self.target_scaler is not None:
            self.target_scaler.commit(n)
        self.done = self.done_before + n

    cdef bint diverges(self) noexcept nogil:
        return self.hypothesis.watch.wild >= MANY

    cdef object signal(self):
        """A KeyboardInterrupt, say, or want of memory, that came in a loss of the user's."""
        cdef Example e = self.example
        if e.failure != PYTHON or isinstance(e.error, Exception) and not isinstance(e.error, MemoryError):
            return None
        error, e.error, e.failure = e.error, None, NONE
        return error

    cdef object failure(self):
        cdef Example e = self.example
        error, e.error = e.error, None
        if e.failure == PYTHON:
            return error
        kind, reason = error if e.failure == LOSS else (FloatingPointError, REASONS[e.failure])
        return row_error(kind, self.earlier + self.done, f"cannot be learned: {reason}.")

    # ---- Learning -----------------------------------------------------------------------------

    def learn_all(self, examples, const double[::1] y, *, const double[::1] weights=None, double[::1] scores=None,
                  double[::1] steps=None, double[::1] scalars=None, double[::1] deviations=None,
                  double[::1] half_widths=None, coverage=(0, 0.0, 0.0), double[::1] norms=None, norm=None,
                  bint follow=False, known=None, Py_ssize_t earlier=0):
        """Learn all rows of an array (C-contiguous, the points' precision), sparse rows, or all objects of a list.

        `scores` takes one row of `width` numbers per example, `steps`, `scalars` and `deviations` take one, and
        `half_widths`, for the `coverage` that `level_of` has found, one for each target. `norms` takes |f|: as the
        hypothesis knows it, or as `norm()` says, if that is given, before every row or, to `follow` |f| from there, at
        the beginning. `known`, three arrays, take what the scaler of targets knew before each row: means, deviations
        and the share of all weight that the row has. In words to the user the first row is number `earlier`. An error,
        or Ctrl-C, stops after the last complete row; `done` says how many rows that were.
        """
        cdef Py_ssize_t n = y.shape[0] // self.targets, first, rows, learned
        cdef Trace trace
        memset(&trace, 0, sizeof(Trace))
        trace.stride, trace.measures = self.function.width, norm is not None
        trace.level, trace.share, trace.factor = coverage
        trace.scores = NULL if scores is None else &scores[0]
        trace.steps = NULL if steps is None else &steps[0]
        trace.norms = NULL if norms is None else &norms[0]
        trace.scalars = NULL if scalars is None else &scalars[0]
        trace.deviations = NULL if deviations is None else &deviations[0]
        trace.half_widths = NULL if half_widths is None else &half_widths[0]
        self.done, self.earlier = 0, earlier
        try:
            self.attach(examples)
            if follow:
                self.hypothesis.follow(norm() ** 2)
            while self.done < n:
                trace.first = first = self.done
                rows = self.function.piece_rows()
                if norm is not None:
                    rows = self.measure(norm, &norms[first], rows)
                rows = min(n - first, rows)
                self.open(first, rows, &y[first * self.targets], NULL if weights is None else &weights[first], 0)
                with nogil:
                    learned = self.loop(&trace)
                self.commit(learned)
                for out, part in zip(known, self.target_scaler.known_before(rows)) if known is not None else ():
                    out[first:first + rows] = part
                if learned < rows:
                    raise self.failure()
                PyErr_CheckSignals()
        finally:
            self.hypothesis.follows_norm = False
            self.detach()

    cdef Py_ssize_t measure(self, norm, double* out, Py_ssize_t rows) except -1:
        """|f| before the next rows, where it must be computed anew; how many rows it is good for. As `norm()`."""
        if self.hypothesis.follows_norm:
            if is_stale(&self.hypothesis.followed):
                self.hypothesis.follow(norm() ** 2)
            return rows
        out[0] = norm()
        return 1

    def takes(self, x):
        """Whether `learn_one` can have x as it is: a row whose squares are finite. O(d)."""
        if not self.function.is_row(x):
            return False
        return self.scaler is None or self.scaler.are_bounded(array_data(x), self.function.n_features)

    def learn_one(self, x, double y):
        """Learn one row (1-d, C-contiguous, the points' precision) or object; return the hypothesis's `status`."""
        cdef Py_ssize_t learned
        cdef Trace trace
        memset(&trace, 0, sizeof(Trace))
        self.done = self.earlier = 0
        try:
            self.attach([x] if self.function.takes_objects else x)
            self.open(0, 1, &y, NULL, 0)
            learned = self.loop(&trace)
            self.commit(learned)
            if learned == 0:
                raise self.failure()
        finally:
            self.detach()
        return self.hypothesis.noticed()

    def current_scaler(self):
        """The scaler as it belongs to the hypothesis, between any two examples; not to be changed."""
        return self.scaler.after(self.done - self.done_before) if self.is_scaled else self.scaler

    def current_target_scaler(self):
        """The same of targets."""
        if self.target_scaler is None or not self.is_open:
            return self.target_scaler
        return self.target_scaler.after(self.done - self.done_before)

    # ---- Predicting ---------------------------------------------------------------------------

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        """Scores of the function that predicts; numbers are in the units of the targets. As `decision`."""
        cdef Py_ssize_t i
        if self.scaler is not None and self.scaler.sparse:
            examples = self.scaler.scaled(examples)
        self.score_rows(examples, n, scores, stride, self.scaler is not None and not self.scaler.sparse, False, 0)
        if deviations != NULL:
            self.evaluate_deviations(examples, n, deviations, spread)
        for i in range(n if self.target_scaler is not None else 0):
            self.target_scaler.restore_next(scores + i * stride,
                                            NULL if deviations == NULL else deviations + i * spread)

    cdef int score_rows(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, bint scales, bint checks,
                        int votes) except -1:
        """Scores of rows, which are scaled first if asked; FloatingPointError for one that is not finite."""
        cdef Py_ssize_t i, j, rows, done = 0, most = self.function.rows_to_evaluate()
        cdef int channel = -1 if votes else self.hypothesis.channel()
        cdef tuple lent = self.lend()
        cdef Scratch w = lent[0]
        cdef Example e = lent[1]
        cdef const char* data
        self.hypothesis.make_ready(w, e)
        self.function.attach(w, examples)
        data = w.piece.source_data
        scales = scales and self.scaler.count > 0.0
        while done < n:
            rows = min(n - done, most)
            if scales:
                self.scale_rows(w, data, done, rows)
            self.function.open(w, 0 if scales else done, rows, False, channel)
            with nogil:
                for i in range(rows):
                    if votes:
                        scores[done + i] = self.function.vote(w, i, self.hypothesis.now.t, votes == 1)
                    else:
                        self.hypothesis.score(w, e, i, scores + (done + i) * stride)
                    if checks and not self.function.point_is_finite(w, i):
                        scores[(done + i) * stride] = NAN
            done += rows
            PyErr_CheckSignals()
        self.take_back(lent)
        for i in range(n):
            for j in range(self.outputs.n_seen):
                if not isfinite(scores[i * stride + j]):
                    raise row_error(FloatingPointError, i,
                                    "has no finite score: its values are too large for the kernel.")

    cdef int scale_rows(self, Scratch w, const char* data, Py_ssize_t first, Py_ssize_t rows) except -1:
        """Let the piece read rows of a call scaled by what is known. O(rows d)."""
        cdef Py_ssize_t size = self.function.n_features * (sizeof(float) if self.scaler.single else sizeof(double))
        cdef char* out = w.piece.buffer(SCALED, (rows + 2) * self.function.n_features * sizeof(double))
        self.scaler.scale_dense(data + first * size, rows, <double*> (out + rows * size + (-rows * size & 7)), out)
        w.piece.source_data = out

    cdef int evaluate_deviations(self, examples, Py_ssize_t n, double* deviations, Py_ssize_t spread) except -1:
        """Deviations of y, noise included, in units of the scores; of posteriors."""
        cdef Py_ssize_t i, j
        cdef double noise = self.hypothesis.rule.noise_of_targets()
        if self.scaler is not None and self.scaler.count > 0.0 and not self.scaler.sparse:
            examples = self.scaler.scaled(examples)
        cdef const double[::1] variances = self.function.uncertainty(examples)
        for i in range(n):
            for j in range(self.targets):
                deviations[i * spread + j] = sqrt(variances[i] + noise)

    def decision(self, examples, *, bint trusted=False, int votes=0):
        """f(x, .) + b for all rows or objects, shape (n, labels); for votes = 1 or 2, the sum over all hypotheses since
        the first of their signs or scores. FloatingPointError for a score that is not finite and, unless examples are
        `trusted` to be finite, for a row whose square is not.
        """
        cdef Py_ssize_t n = len(examples), labels = self.outputs.n_seen
        result = np.empty((n, labels))
        self.score_rows(examples, n, <double*> array_data(result), labels, False,
                        self.function.notices_bad_points and not trusted, votes)
        return result

    def _check(self):
        self.hypothesis._check()
