"""Rules for margins: passive-aggressive updates, ROMMA, Ballseptron, ALMA, Projectrons."""
cimport cython
from libc.math cimport fmin, sqrt
from onlinekernels._core.arrays import check_number
from onlinekernels._core.budgets.projecting cimport ProjectingBudget
from onlinekernels._core.formulas.moves cimport (Standing, aggressive_move, ball_move, moved_square, relaxed_move,
                                                 stand_still)
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.functions.function cimport Function
from onlinekernels._core.rules.convex cimport ConvexStep
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.rules.rule import DIRECTIONS
from onlinekernels._core.run.example cimport Example
from onlinekernels._core.run.watch cimport RESTARTED

cdef double NO_CAP = 1e308              # no coefficient is larger


@cython.final
cdef class Aggressive(Rule):
    """The shortest way to no loss, or to less: passive-aggressive, and the projections of H.

    Parameters
    ----------
    step : tuple
    penalty : float or None
        None is no cap: PA.
    squared : bool
        PA-II.
    """
    cdef readonly double penalty
    cdef readonly bint squared
    cdef ConvexStep own                 # of a Python loss, or None

    def __init__(self, step, bint squared=False, **settings):
        self.forms = DIRECTIONS
        self.squared = squared
        self.configure(step, **settings)

    def configure(self, step, penalty):
        Rule.configure(self, step)
        self.penalty = NO_CAP if penalty is None else penalty

    def take_loss(self, loss):
        self.own, self.asks_loss = ConvexStep(loss, self.squared), True

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double k = e.view.k + (e.view.offsets if now.has_offset else 0.0)
        if self.asks_loss:
            stand_still(&e.move)
            if k > 0.0:
                e.move.alpha[0] = e.move.offset = self.own.alpha(e.view.score, e.view.target, k, self.penalty * e.view.weight, e)
        else:
            aggressive_move(&now.loss, self.penalty, self.squared, now.has_offset, &e.view, &e.move)
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)


cdef struct Relaxation:
    bint starts_anew                    # the hypothesis is too long to go on with


@cython.final
cdef class Relaxed(Rule):
    """ROMMA.

    Parameters
    ----------
    step : tuple
    aggressive : bool
        Below margin 1, not after mistakes only.
    """
    cdef readonly bint aggressive

    def __init__(self, step, bint aggressive=False):
        self.forms = ("OneOutput",)
        self.aggressive = aggressive
        self.configure(step)

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        return sizeof(Relaxation)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        (<Relaxation*> e.decision).starts_anew = relaxed_move(self.aggressive, now.norms.square, &e.view, &e.move)
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        if (<Relaxation*> e.decision).starts_anew:
            self.trouble = RESTARTED


@cython.final
cdef class Ball(Rule):
    """Ballseptron.

    Parameters
    ----------
    step : tuple
    radius : float
        Of the ball.
    """
    cdef readonly double radius

    def __init__(self, step, **settings):
        self.forms = ("OneOutput",)
        self.configure(step, **settings)

    def configure(self, step, double radius):
        Rule.configure(self, step)
        self.radius = radius

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        ball_move(self.radius, now.norms.square, &e.view, &e.move)
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)


cdef struct Correction:
    double corrections                  # so far, this one included


@cython.final
cdef class Approximate(Rule):
    """ALMA_2 (Gentile): w + C / sqrt(k) y x if y w.x <= (1 - alpha) B / sqrt(k); the hypothesis keeps |w| <= 1.

    Parameters
    ----------
    step : tuple
    threshold : float
        (1 - alpha) B.
    penalty : float
        C.
    """
    cdef readonly double threshold
    cdef readonly double penalty
    cdef readonly double corrections            # updates so far

    def __init__(self, step, **settings):
        self.forms = ("OneOutput",)
        self.configure(step, **settings)

    def configure(self, step, double threshold, double penalty):
        Rule.configure(self, step)
        self.threshold, self.penalty = threshold, penalty

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        return sizeof(Correction)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef Correction* next = <Correction*> e.decision
        cdef double k = self.corrections + 1.0
        stand_still(&e.move)
        next.corrections = self.corrections
        if e.view.k > 0.0 and e.view.weight > 0.0 and e.view.target * e.view.bare <= self.threshold / sqrt(k):
            e.move.alpha[0] = e.view.target * self.penalty / sqrt(k)
            next.corrections = k
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        self.corrections = (<Correction*> e.decision).corrections

    def state(self, Py_ssize_t labels):
        return {"corrections": self.corrections}

    def check_state(self, state):
        check_number(state["corrections"], "corrections", 0.0)

    def restore(self, state):
        self.corrections = state["corrections"]


@cython.final
cdef class Projected(Rule):
    """Projectron and Projectron++ (Orabona, Keshet, Caputo): a Perceptron whose updates the terms that are there take over.

    The budget projects what does not enter. After a margin error, 0 < y f(x) < 1, the update is projected in any case,
    and as large as it safely may be: with loss l and p = |P k(x, .)|^2, where delta^2 = k(x, x) - p is out of reach,
    tau = min(l / p, 2 (l - delta^2 / eta) / p, 1), none if that is negative.

    Parameters
    ----------
    step : tuple
    tolerance : float
        eta of margin errors; 0 leaves them alone.
    """
    cdef readonly double tolerance
    cdef Coefficients terms
    cdef ProjectingBudget budget

    def __init__(self, step, **settings):
        self.forms = ("OneOutput", "LabelPair")
        self.configure(step, **settings)

    def configure(self, step, double tolerance):
        Rule.configure(self, step)
        self.tolerance = tolerance

    cdef int stand_on(self, Function function) except -1:
        self.terms, self.budget = function.terms, function.terms.budget
        self.budget.let_newcomers_yield()
        return 0

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double y = -1.0 if e.view.derivative > 0.0 else 1.0, loss = 1.0 - y * e.view.score, part, reached, tau
        stand_still(&e.move)
        if e.view.derivative == 0.0 or e.view.k <= 0.0:
            return
        if loss >= 1.0:
            e.move.alpha[0] = -e.view.derivative
            return
        # Of a pair of labels, view.k is that of both.
        part, e.term.looked_at = 1.0, self.tolerance > 0.0
        if e.term.looked_at:
            part = self.budget.look(self.terms, e.values, e.view.k / e.view.offsets, e.for_budget)
        reached = e.view.k * (1.0 - part)
        if reached > 0.0 and loss > e.view.k * part / self.tolerance:
            tau = fmin(1.0, fmin(loss, 2.0 * (loss - e.view.k * part / self.tolerance)) / reached)
            e.move.alpha[0] = -e.view.derivative * tau
            e.term.stays_out = True
