"""The hypothesis: a function with offsets, a loss and a rule.

Each example makes three moves.  `evaluate` gives its scores, `decide` asks the rule and changes nothing, `carry_out` does
what was decided: old terms are transformed, a new one is appended, offsets and the loss's scalar move, a budget and a
ball are kept.
"""
import numpy as np
from libc.math cimport fmax, isfinite, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.functions cimport MOVE, NEWCOMER, NOBODY, POINT, SCORE, Example, Outcome
from onlinekernels._core.rules cimport OneOutput
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS
from onlinekernels._core.formulas.losses cimport Loss, loss_adapts
from onlinekernels._core.formulas.moves cimport Norms, Pace, coefficient_is_tame, is_tame, is_worn
from onlinekernels._core.run.norms cimport ExactNorms
from onlinekernels._core.run.trial cimport Trial
from onlinekernels._core.run.watch cimport (ENOUGH, NO_BETTER, NO_TROUBLE, OUT_OF_REACH, new_watch, watch_margin,
                                             watch_scalar, watch_score, watch_step)


cdef class Hypothesis:
    """f(x, .) + b.

    Parameters
    ----------
    function : Function
    form : Form
        What the rule looks at; it knows the rule.
    loss : tuple
        (code, scalar, nu, the scalar's own step or 0).
    offset, average : bool
    radius : float
        |f| stays within this; 0 for no bound.
    exact_norms : bool
        Keep |f|^2 (and <f, v> of SVMD) exact when a term is dropped.
    regression : bool
        Whether y are numbers to predict.
    against_constant : bool
        Whether to watch that predictions are better than a constant; see `trial`.
    holds_margin : bool
        Whether y f should exceed a fixed margin.
    """

    def __init__(self, *, Function function, Form form, loss, bint offset, bint average, double radius=0.0,
                 bint exact_norms=False, bint regression=False, bint against_constant=False,
                 bint holds_margin=False):
        code, scalar, nu, own_step = loss
        self.function, self.form, self.rule = function, form, form.rule
        self.now.loss = Loss(code, scalar, nu, own_step)
        self.now.has_offset = offset
        self.now.keeps_square = exact_norms
        self.averages = average
        self.exact_norms = exact_norms
        if exact_norms:
            self.norms_of_terms = ExactNorms(function, form.rule.has_trace)
        self.regression = regression
        self.radius = radius
        self.watch = new_watch(self.now.loss.nu, holds_margin and not offset)
        self.set_offsets(np.zeros((2, function.width)))
        if against_constant:
            self.trial = Trial(function.width, regression, isinstance(form, OneOutput) and not regression)
        self.rule.grow(function.width, 1, function.outputs.ahead)
        self.rule.stand_on(function)

    cdef int set_offsets(self, offsets) except -1:
        """Go on with these offsets: O(1)."""
        cdef double* data = <double*> array_data(offsets)
        cdef Py_ssize_t width = offsets.shape[1]
        self.offsets, self.offset, self.offset_sum = offsets, data, data + width
        return 0

    def grow(self, Py_ssize_t width):
        """Make room for labels that will join; those that learn ahead go on from the last output.

        The function is the last to grow: if that fails, offsets and rule have more room than they need, and no harm is done.
        """
        outputs = self.function.outputs
        known = outputs.n if outputs.ahead else self.function.width
        wider = np.zeros((2, max(width, self.function.width)))
        wider[:, :known] = self.offsets[:, :known]
        if outputs.ahead:
            wider[:, known:] = wider[:, known - 1:known]
        self.rule.grow(wider.shape[1], known, outputs.ahead)
        self.set_offsets(wider)
        if self.trial is not None:
            self.trial.grow(wider.shape[1])
        self.function.grow(width)

    cdef void let_join(self, Py_ssize_t joined) noexcept nogil:
        """There are so many labels now; what new ones have learned ahead belongs to f from now on. O(1)."""
        cdef double newcomers = <double> (joined - self.function.outputs.joined)
        self.before_joining = self.now.norms
        self.now.norms.square += newcomers * self.now.ahead.square
        self.now.norms.product += newcomers * self.now.ahead.product
        self.function.outputs.let_join(joined)

    cdef void undo_joining(self, Py_ssize_t joined) noexcept nogil:
        """The labels after these have not joined: their example cannot be learned. O(1)."""
        if self.function.outputs.joined != joined:
            self.now.norms = self.before_joining
            self.function.outputs.let_join(joined)

    cdef int make_ready(self, Scratch w, Example e) except -1:
        """Room for what one example of this hypothesis needs. O(1), unless outputs have come."""
        self.function.make_ready(w)
        return e.make_room(self.function.width, self.function.frame.channels, self.function.outputs.n_nodes,
                           self.rule.decision_size(self.function.width))

    # ---- Evaluate -----------------------------------------------------------------------------

    cdef bint evaluate(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """f(x_i, .) into e.bare (and v behind it), with the offsets into e.scores; False if they are not finite.

        As `Function.evaluate`, for most functions O(terms).
        """
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
        """The rule's move and the new term into the example; False if there is none that is finite. As `Form.decide`."""
        e.move.scalar = e.move.compared = self.now.loss.scalar
        e.move.pace, e.move.norms, e.move.ahead = self.now.pace, self.now.norms, self.now.ahead
        e.targets, e.weight = y, weight
        e.all_labels = e.term.looked_at = e.term.stays_out = False
        if not self.form.decide(&self.now, self.offset, w.piece.own[i], e):
            return False
        if self.averages:
            self.add_average(e)
        if not (is_tame(e.move.scalar) and isfinite(e.move.transform[0][0]) and isfinite(e.move.norms.square)
                and self.rule.is_finite(e) and (e.all_labels or coefficient_is_tame(e.term.alpha[0], w.piece.own[i]))
                and self.all_is_finite(e, w.piece.own[i])):
            e.failure = MOVE
            return False
        if self.exact_norms:
            self.norms_of_terms.decide(&self.now, e)
        return True

    cdef bint all_is_finite(self, Example e, double k) noexcept nogil:
        """Whether everything else is: what only some hypotheses have. O(outputs)."""
        cdef Py_ssize_t j
        if self.now.loss.step > 0.0 and not is_tame(e.move.pace.gap + e.move.pace.weight):
            return False
        if self.rule.has_trace:
            if not (isfinite(e.move.norms.product) and isfinite(e.move.ahead.square) and isfinite(e.move.ahead.product)
                    and coefficient_is_tame(e.term.alpha[e.term.n], k)):
                return False
        if not self.now.has_offset:
            return True
        for j in range(e.term.n):
            if not is_tame(self.offset[e.term.labels[j]] + e.term.offset[j]):
                return False
        return self.rule.decide_offsets(self.function.outputs.n, self.offset, e)

    cdef void add_average(self, Example e) noexcept nogil:
        """F <- F + f, with the f that made this prediction. O(1)."""
        cdef int last = self.function.frame.channels - 1, j
        for j in range(last):
            e.move.transform[last][j] = 1.0 if j == 0 else 0.0
        e.move.transform[last][last] = 1.0

    # ---- Carry out ----------------------------------------------------------------------------

    cdef void carry_out(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """Move the offsets, transform the old terms, append the new one, move the scalar, apply the budget.

        O(outputs), and what the function and its budget take: O(1), unless a budget looks at the kernel or norms are exact.
        """
        cdef Py_ssize_t l, k, labels = self.function.outputs.n
        self.now.t += 1
        if self.follows_norm:
            self.follow_norm(e, w.piece.own[i])
        if self.regression:
            for l in range(labels):
                watch_score(&self.watch, e.scores[l], e.targets[l])
        self.scalar_sum += self.now.loss.scalar
        if self.trial is not None and self.trial.block:
            self.trial.hold(&self.now.loss, self.function.outputs, e)
        if self.watch.holds_margin:
            watch_margin(&self.watch, w.piece.own[i], e.weight)
        for l in range(labels):
            self.offset_sum[l] += self.offset[l]
        if self.now.has_offset:
            for k in range(e.term.n):
                self.offset[e.term.labels[k]] += e.term.offset[k]
        self.rule.accept(&self.now, labels, self.offset, e)
        if self.watch.trouble == NO_TROUBLE:
            self.watch.trouble = self.rule.trouble
        self.now.norms, self.now.ahead = e.move.norms, e.move.ahead
        self.function.transform(w, &e.move.transform[0][0])
        if self.rule.per_feature:
            w.mean_step = self.function.descend(w, &e.term, i, &e.descent)
        elif e.term.enters and w.piece.own[i] != 0.0:
            self.append(w, e, i)
        self.now.loss.scalar, self.now.pace = e.move.scalar, e.move.pace
        if self.watch.block:
            watch_scalar(&self.watch, e.move.compared, e.move.scalar)
        self.let_expire(w)
        if self.exact_norms:
            self.norms_of_terms.renew(&self.now, w)
        if self.radius > 0.0:
            self.stay_in_ball(w)
        self.rule.follow(w, e)
        if self.rule.has_trace:
            watch_step(&self.watch, self.rule.step_at(self.now.t), self.rule.step.rate)

    cdef void append(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """Let the example enter; first see who has to go for it. As the budget's answer."""
        cdef Outcome outcome
        cdef Py_ssize_t victim
        self.function.store(w, &e.term, w.piece.own[i])
        self.function.make_way(w, &e.term, i, &outcome)
        victim = outcome.slot
        if self.exact_norms and victim != NOBODY:
            if outcome.residual >= 0.0:
                self.norms_of_terms.project(&self.now, w, victim, &e.term, outcome.residual)
            elif victim == NEWCOMER:
                self.now.norms, self.now.ahead = e.without_newcomer, e.ahead_without_newcomer
            else:
                self.norms_of_terms.forget(&self.now, w, victim, &e.term, self.function.value_with(w, victim, i))
        if victim == NEWCOMER:
            return
        if victim != NOBODY:
            self.function.drop(w, victim)
        self.function.add(w, &e.term, i, self.now.t)
        if outcome.shrink != 1.0:
            self.function.multiply(w, outcome.shrink)
            self.now.norms.square *= outcome.shrink * outcome.shrink
            self.now.norms.product *= outcome.shrink * outcome.shrink

    cdef void let_expire(self, Scratch w) noexcept nogil:
        """Drop the terms that a window has left behind. O(1) for each."""
        cdef Py_ssize_t slot = self.function.expiring(self.now.t)
        while slot != NOBODY:
            if self.exact_norms:
                self.norms_of_terms.forget(&self.now, w, slot, NULL, 0.0)
            self.function.drop(w, slot)
            slot = self.function.expiring(self.now.t)

    cdef void stay_in_ball(self, Scratch w) noexcept nogil:
        """Project f onto the ball of the radius: H (19), through the frame. O(1)."""
        cdef double scaling[MAX_CHANNELS][MAX_CHANNELS]
        cdef int i, j
        if self.now.norms.square <= self.radius * self.radius:
            return
        for i in range(MAX_CHANNELS):
            for j in range(MAX_CHANNELS):
                scaling[i][j] = 1.0 if i == j else 0.0
        scaling[0][0] = self.radius / sqrt(self.now.norms.square)
        self.function.transform(w, &scaling[0][0])
        self.now.norms.square = self.radius * self.radius

    # ---- |f| on the way -----------------------------------------------------------------------

    def begin_to_follow(self, double square):
        """From now on follow |f|^2, which is so much, for a function that nothing drops."""
        self.follows_norm = True
        self.followed.square = self.followed.peak = square

    def end_following(self):
        self.follows_norm = False

    def is_worn(self):
        """Whether |f|^2 that is followed has shrunk so much that rounding would show."""
        return self.follows_norm and is_worn(&self.followed)

    def show_latest(self, bint latest):
        """Whether to show Python the latest hypothesis in place of the average."""
        self.shows_latest = latest

    cdef double square(self) noexcept nogil:
        """|f|^2 where it is known. O(1)."""
        return self.followed.square if self.follows_norm else self.now.norms.square

    cdef void follow_norm(self, Example e, double k) noexcept nogil:
        """|s f + k(x, .) a|^2 = s^2 |f|^2 + 2 s a'f(x) + k a'kappa a: H 2.5, for any term. O(outputs)."""
        cdef Py_ssize_t l, j, n = self.function.outputs.n
        cdef double shrink = e.move.transform[0][0], old = shrink * shrink * self.followed.square, mixed = 0.0, new = 0.0
        cdef double* a = e.work
        cdef double* K_a = e.work + e.width
        for l in range(n):
            a[l] = 0.0
        for j in range(e.term.n if e.term.enters else 0):
            a[e.term.labels[j]] += e.term.alpha[j]
        for l in range(n):
            K_a[l] = a[l]
        self.function.outputs.apply(K_a, e.nodes)
        for l in range(n):
            mixed += a[l] * e.bare[l]
            new += k * a[l] * K_a[l]
        self.followed.square = fmax(0.0, old + 2.0 * shrink * mixed + new)
        self.followed.peak = fmax(shrink * shrink * self.followed.peak, fmax(old, new))

    # ---- The function that predicts -----------------------------------------------------------

    cdef int channel(self) noexcept nogil:
        """The channel that `score` evaluates. O(1)."""
        return self.function.frame.channels - 1 if self.averages and self.now.t and not self.shows_latest else 0

    cdef averaged(self, true):
        """The sum of all hypotheses to their average, if that is what `score` evaluates. O(its size)."""
        return true / self.now.t if self.channel() else true

    cdef void score(self, Scratch w, Example e, Py_ssize_t i, double* out) noexcept nogil:
        """Scores of one example, of the averaged hypothesis if this one averages. As `Function.evaluate`."""
        cdef Py_ssize_t l, width = self.function.width
        cdef int channel = self.channel()
        self.function.evaluate(w, i, channel, e.bare)
        for l in range(self.function.outputs.joined):
            out[l] = e.bare[l] + self.offset[l]
            if channel:
                out[l] = (e.bare[channel * width + l] + self.offset_sum[l]) / self.now.t

    def intercept(self, bint ahead=False):
        """b, shape (labels,); of the averaged hypothesis if this one averages. With the output ahead of them, if asked."""
        rows = self.offsets[:, :self.function.outputs.joined + ahead]
        return rows[1] / self.now.t if self.averages and self.now.t else rows[0].copy()

    def coefficients(self, bint ahead=False):
        """True coefficients of the function that predicts: (labels, terms), or weights (labels, n_features)."""
        return self.averaged(self.function.coefficients(self.channel())[:self.function.outputs.joined + ahead])

    def knots(self, Py_ssize_t j, bint ahead=False):
        """(keys, counts, coefficients, sizes) of a coordinate of an additive function, of the one that predicts."""
        keys, counts, coefficients, sizes = self.function.knots(j, self.channel(), self.function.outputs.joined + ahead)
        return keys, counts, self.averaged(coefficients), sizes

    def component(self, Py_ssize_t j, points):
        """f_j at values of coordinate j, shape (len(points), labels)."""
        return self.averaged(self.function.component(j, points, self.channel(), self.function.outputs.joined))

    def additive_square(self, bint ahead=False):
        """|f|^2 of an additive function."""
        square = self.function.additive_square(self.channel(), self.function.outputs.joined + ahead)
        return self.averaged(self.averaged(square))

    # ---- For Python ---------------------------------------------------------------------------

    @property
    def t(self):
        """Number of examples learned."""
        return self.now.t

    @t.setter
    def t(self, long long t):
        self.now.t = t

    @property
    def trouble(self):
        """What went wrong first, as a number: see `watch`. 0 for nothing."""
        return self.noticed()

    cdef int noticed(self) noexcept nogil:
        """The same without Python. O(1)."""
        if self.watch.trouble != NO_TROUBLE:
            return self.watch.trouble
        if self.watch.seen >= ENOUGH and self.now.loss.scalar > self.largest_score():
            return OUT_OF_REACH
        return NO_BETTER if self.trial is not None and self.trial.failed else NO_TROUBLE

    cpdef double largest_score(self) noexcept nogil:
        """What |f| cannot exceed, for the examples so far: the sum of all coefficients times the largest k(x, x). O(1)."""
        return self.rule.longest() * self.watch.largest_weight * self.watch.largest_k

    def averages_scalar(self):
        """Whether the margin or width that goes with the predictions is an average: a loss is convex in f and in it."""
        return self.averages and self.now.t > 0 and loss_adapts(&self.now.loss)

    def scalar(self, bint latest=False):
        """The loss's margin or width; of the averaged hypothesis if this one averages, unless it is to be the latest."""
        return self.scalar_sum / self.now.t if not latest and self.averages_scalar() else self.now.loss.scalar

    def set_scalar(self, double scalar):
        """Put the margin or width that `scalar` gives where it belongs, if that is known from all examples."""
        if self.averages_scalar():
            self.scalar_sum = scalar * self.now.t
        else:
            self.now.loss.scalar = scalar

    def step_size(self):
        """eta of the latest example; of the first one before it has come."""
        return self.rule.current_step(max(self.now.t, 1))

    def norms(self):
        """(<f, v>, |f|^2) as they are kept for SVMD, norm balls, ROMMA and ALMA."""
        return self.now.norms.product, self.now.norms.square

    def begin_with_square(self, double square, double ahead=0.0):
        """Say what |f|^2 of the function is that this hypothesis starts from, and that of the output ahead of the labels."""
        cdef Scratch w = self.function.new_scratch()
        self.function.make_ready(w)
        self.now.norms.square = self.now.norms.peak = square
        self.now.ahead.square = self.now.ahead.peak = ahead
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

    def state(self):
        """Everything that learning has changed, as named numbers and arrays; no scratch."""
        labels = self.function.outputs.kept()
        ahead = self.now.ahead
        return {
            "t": int(self.now.t),
            "offset": self.offsets[0, :labels].copy(),
            "offset_sum": self.offsets[1, :labels].copy(),
            "scalar": self.now.loss.scalar,
            "scalar_sum": self.scalar_sum,
            "gap": self.now.pace.gap,
            "gap_weight": self.now.pace.weight,
            "square": self.now.norms.square,
            "product": self.now.norms.product,
            "peak": self.now.norms.peak,
            **({"ahead": np.array([ahead.square, ahead.product, ahead.peak])} if self.function.outputs.ahead else {}),
            **self.rule.state(labels),
            **self.function.state(),
        }

    def check_state(self, state):
        """ValueError unless a state fits."""
        if type(state["t"]) is not int or not 0 <= state["t"] < 1 << 62:
            raise ValueError("t is not a number of examples")
        for name, least in (("scalar", None), ("scalar_sum", None), ("gap", 0.0), ("gap_weight", 0.0), ("square", 0.0), ("product", None),
                            ("peak", 0.0)):
            check_number(state[name], name, least)
        self.function.check_state(state)
        for name in ("offset", "offset_sum"):
            check_array(state[name], name, np.float64, (state["labels"],))
        if self.function.outputs.ahead:
            square, _, peak = check_array(state["ahead"], "ahead", np.float64, (3,)).tolist()
            check_number(min(square, peak), "ahead", 0.0)
        self.rule.check_state(state)

    def restore(self, state):
        """Continue from a state; ValueError, and nothing changed, if it does not fit."""
        self.check_state(state)
        labels = state["labels"]
        square, product, peak = state["ahead"].tolist() if self.function.outputs.ahead else (0.0, 0.0, 0.0)
        self.function.restore(state)
        self.rule.restore(state)
        self.now.t = state["t"]
        self.now.loss.scalar, self.scalar_sum = state["scalar"], state["scalar_sum"]
        self.now.pace = Pace(state["gap"], state["gap_weight"])
        self.now.norms = Norms(state["square"], state["product"], state["peak"])
        self.now.ahead = Norms(square, product, peak)
        self.offsets[0, :labels], self.offsets[1, :labels] = state["offset"], state["offset_sum"]

    def _check(self):
        """Assert every invariant."""
        assert self.now.t >= 0 and np.isfinite(self.offsets).all()
        self.function._check()
        self.rule._check()
        if self.function.outputs.ahead:
            copies = self.offsets[:, self.function.outputs.joined:self.function.outputs.n]
            assert (copies == copies[:, :1]).all(), "outputs ahead of the labels differ"
