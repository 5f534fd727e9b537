"""Rules: what an example does to a function. Formulas of several rules are in ``moves`` and ``dense``."""
cimport cython
import numpy as np
from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.dictionary cimport Dictionary, SquareTable, Table
from onlinekernels._core.formulas.dense cimport (hinge_step, mistake_gradient, softmax, softmax_hessian_times,
                                                 softmax_step)
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS
from onlinekernels._core.formulas.losses cimport (INSENSITIVE, MULTICLASS_LOGISTIC, MULTICLASS_SQUARED,
                                                  SQUARED_INSENSITIVE, Loss, loss_compared, loss_curvature,
                                                  loss_derivative, loss_dust, loss_implicit, loss_scalar_gradient)
from onlinekernels._core.formulas.moves cimport (ADAPTED, DECAYING, FIXED, INVERSE_SQRT, TABLED, Shift, View,
                                                 coefficient_is_bounded, gradient_shift, gradient_shrink,
                                                 implicit_kernel, implicit_shift, implicit_shrink, move_scalar,
                                                 moved_square, shift_by, stand_still, step_size)
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions cimport LOSS, MOVE, NOBODY, NONE, PYTHON, Piece
from onlinekernels._core.schema import Array, not_negative, Number
from onlinekernels._core.terms cimport Coefficients, KernelTerms

# ---- The contract of rules -----------------------------------------------------------------------

STEP_CODES = {"Fixed": FIXED, "InverseSqrt": INVERSE_SQRT, "Decaying": DECAYING, "MetaDescent": ADAPTED}
DIRECTIONS = "OneOutput", "Targets", "LabelPair"        # forms that ask for moves in one direction


def step_sizes(int code, double rate, double delay, double meta_rate, double memory, t):
    """eta_t for one t or an array of them."""
    cdef Step step = Step(code, rate, delay, meta_rate, memory, NULL, 0)
    times = np.asarray(t, dtype=np.int64)
    sizes = np.array([step_size(&step, one) for one in times.ravel().tolist()])
    return sizes.reshape(times.shape) if times.ndim else float(sizes[0])


cdef class Rule:
    """Turns an example into a move, and has named state of its own.

    A rule says which `forms` it serves, by the names of their classes. Its parameters are public attributes. It decides
    first, which changes nothing: it writes to the example, e.move, and e.term where all labels move. What its own state
    will be goes to e.decision, where it has `decision_size` bytes; when the move is carried out, `accept` makes the
    state follow. With n outputs, it implements `move` or `move_all`, as its forms ask. Numbers per slot, or per pair of
    slots, are tables of the dictionary.

    `step` is (code or a function of t, rate, delay, meta_rate, memory), for `MetaDescent` also meta_rate and memory of
    offsets and of the margin, the first rates of both, and whether factors are quadratic.
    """

    FIELDS = ()

    def __init__(self, step, **parameters):
        self.configure(step, **parameters)

    def configure(self, step, **parameters):
        """Set the step, and other parameters, that may change between calls. O(1)."""
        self.own_size = step[0] if callable(step[0]) else None
        self.step = Step(step[0] if self.own_size is None else TABLED, step[1], step[2], step[3], step[4], NULL, 0)
        for name, value in parameters.items():
            setattr(self, name, value)

    cdef int open_steps(self, long long t, Py_ssize_t n) except -1:
        """There have been t examples, and up to n will come: ask a step in Python for theirs. O(1), O(n) if it is."""
        if self.own_size is None:
            return 0
        sizes, self.size_error = np.empty(n + 1), None
        for i in range(1, n + 1):
            try:
                sizes[i] = self.own_size(t + i)
            except Exception as error:          # it will be that row's: those before it are learned
                self.size_error, n = error, i - 1
                break
        self.step.sizes, self.step.first, self.sizes = <const double*> array_data(sizes), t, sizes
        self.last_size = t + n

    cdef bint has_step(self, long long t, Example e) noexcept nogil:
        """Whether the size of step t is known; otherwise e.failure says why not. O(1)."""
        if self.step.code == TABLED and t > self.last_size:
            self.miss_step(e)
            return False
        return True

    cdef void miss_step(self, Example e) noexcept with gil:
        e.error, e.failure = self.size_error, PYTHON

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        """The move in the direction of e.view: e.move.transform, alpha and offset. The scalar and its pace stay as they
        are unless it says otherwise, and so do norms of a rule with a trace. A rule that `asks_loss` asks a Python loss
        itself; e.failure says if that went wrong. O(1)."""

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """A move with a coefficient for every label: e.term.alpha, and e.term.offset. What it may find there is the
        derivative of the loss, e.derivative. O(n) and one product with the label kernel."""

    cdef void look_back(self, const Standing* now, Example e) noexcept nogil:
        """The example at f_t itself, before `shrink`: for rules with a trace that look ahead. O(1)."""

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        """The factor that it will apply to f at example t, if it `looks_at_shrunk`, at the scores after that. O(1)."""
        return 1.0

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Example e) noexcept nogil:
        """What `accept` will do to offsets that it adapts itself; False if not finite. O(n)."""
        return True

    cdef bint is_finite(self, Example e) noexcept nogil:
        """Whether its own state would be, after the move that has been decided. O(1)."""
        return True

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        """Bytes of e.decision with so many outputs."""
        return 0

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        """The move is carried out: let its own state follow, and offsets that it adapts itself. O(n)."""

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        """The move has been carried out: w.piece.slot is where the example is now, -1 if it is nowhere. O(1) for all
        but second-order rules and those that move coefficients of other terms."""

    cdef double step_at(self, long long t) noexcept nogil:
        """eta of example t, the latest one. O(1)."""
        return step_size(&self.step, t)

    cdef double noise_of_targets(self) noexcept nogil:
        """The variance of y about f, where the rule knows it. O(1)."""
        return 0.0

    cdef double longest(self) noexcept nogil:
        """What the sizes of all coefficients cannot exceed together, per weight of the examples and |l'|. O(1)."""
        return INFINITY

    cdef double half_width(self, Example e, Py_ssize_t output, int level, double share, double factor) noexcept nogil:
        """Half the width of an interval about the score that was just evaluated: see `level_of`. O(1)."""
        return NAN

    cdef int stand_on(self, Function function) except -1:
        """This is the function that it will move. O(1)."""

    def take_loss(self, loss):
        """This Python loss is learned. O(1)."""

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint future):
        """Make room for more labels than are known; those that learn ahead go on from the last one. O(width)."""

    def _check(self):
        """Assert every invariant."""


# ---- Forms ---------------------------------------------------------------------------------------
# Losses of one score, and of a score for each target, are moves in one dimension. So are the hinges of many labels,
# along the direction from the best wrong label to the right one. All labels move at once with the multiclass logistic
# loss, the multiclass squared loss, exact hinges, shared mistakes and Python losses of many labels.

cdef enum:
    BLOCK = 16                          # labels that are compared at a time


class BadLoss(Exception):
    """What is wrong with a loss in Python, and what kind of an error that is."""


cdef double asked(loss, str name, double score, double y) except? -1.0:
    """What a method of a Python loss gives for two numbers: one finite number."""
    answer = getattr(loss, name)(score, y)
    if type(answer) is float and isfinite(answer):
        return answer
    found = f"{name}({score:.6g}, {y:.6g}) of {type(loss).__name__}"
    if np.ndim(answer) != 0:
        raise ValueError(f"{found} must be one number. Got {answer!r} instead.")
    if not isfinite(<double> answer):
        raise BadLoss(FloatingPointError, f"{found} is {answer}")
    return answer


cdef bint blame(Example e, error) noexcept:
    """The example cannot be learned because its loss in Python has raised this: False."""
    e.error, e.failure = (error.args, LOSS) if isinstance(error, BadLoss) else (error, PYTHON)
    return False


cdef class Form:
    """Lets a rule decide about an example that has been evaluated.

    `decide(now, offset, k, e)` leaves the rule's move and the new term in the example and changes nothing else; it is
    False, with the reason in e.failure, if the example cannot be learned. O(n) with n outputs, and products with the
    label kernel. The rule must serve forms of this kind.
    """

    def __init__(self, Rule rule, Outputs outputs, custom_loss=None, Py_ssize_t targets=1):
        if type(self).__name__ not in rule.forms:
            raise ValueError(f"{type(rule).__name__} knows no moves of the kind {type(self).__name__}")
        self.rule, self.outputs, self.custom_loss, self.targets = rule, outputs, custom_loss, targets
        if custom_loss is not None:
            rule.take_loss(custom_loss)

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        return False

    cdef bint move(self, const Standing* now, Example e) noexcept nogil:
        """The rule's move along e.view, and |f|^2 after it; False if a Python loss fails. O(1)."""
        self.rule.move(now, e)
        if now.keeps_square and not self.rule.has_trace:
            moved_square(&now.norms, &e.view, &e.move)
        return e.failure == NONE

    cdef bint move_along(self, const Standing* now, Example e) noexcept nogil:
        """The same, into the term of one label, or of a pair, of which the second has the negative. O(1)."""
        cdef int channel
        if not self.move(now, e):
            return False
        for channel in range(MAX_CHANNELS):
            e.term.alpha[channel * e.term.n] = e.move.alpha[channel] if channel <= self.rule.has_trace else 0.0
            if e.term.n == 2:
                e.term.alpha[channel * e.term.n + 1] = -e.term.alpha[channel * e.term.n]
        e.term.offset[0], e.term.offset[1] = e.move.offset, -e.move.offset
        e.term.enters = e.move.alpha[0] != 0.0 or self.rule.has_trace and e.move.alpha[1] != 0.0
        return True

    cdef bint differentiate(self, const Standing* now, Example e) noexcept nogil:
        """Derivatives of the loss at the score of e.view; False if a Python loss fails. O(1)."""
        cdef View* view = &e.view
        view.scalar_gradient = view.curvature = view.compared = 0.0
        if self.custom_loss is not None:
            view.derivative = 0.0
            return self.rule.asks_loss or self.ask_custom_loss(e)
        view.derivative = view.weight * loss_derivative(&now.loss, view.score, view.target)
        view.scalar_gradient = loss_scalar_gradient(&now.loss, view.score, view.target)
        view.compared = loss_compared(&now.loss, view.score, view.target)
        if self.rule.has_trace:
            view.curvature = view.weight * loss_curvature(&now.loss, view.score, view.target)
        return True

    cdef bint ask_custom_loss(self, Example e) noexcept with gil:
        """The same for a Python loss, apart: where Python objects are, the interpreter's lock is taken in any case."""
        cdef View* view = &e.view
        try:
            view.derivative = view.weight * asked(self.custom_loss, "derivative", view.score, view.target)
            if self.rule.has_trace:
                view.curvature = view.weight * asked(self.custom_loss, "curvature", view.score, view.target)
        except BaseException as error:
            return blame(e, error)
        return True


cdef class OneOutput(Form):
    """The output itself."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef View* view = &e.view
        view.score, view.bare = e.scores[0], e.bare[0]
        view.trace = e.bare[e.width] if self.rule.has_trace else 0.0
        view.target, view.weight, view.k, view.offsets = e.targets[0], e.weight, k, 1.0
        e.term.n, e.term.labels[0] = 1, 0
        if not self.differentiate(now, e):
            return False
        if self.rule.looks_at_shrunk and self.rule.has_trace:
            self.rule.look_back(now, e)
        return self.move_along(now, e)


@cython.final
cdef class Targets(Form):
    """Several targets: losses and kernels do not mix them, so each output has a move of its own."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t l, n = self.targets
        cdef View* view = &e.view
        e.all_labels = e.diagonal = True
        memset(e.term.alpha, 0, e.channels * n * sizeof(double))
        view.weight, view.k, view.offsets, view.trace = e.weight, k, 1.0, 0.0
        for l in range(n):
            view.bare, view.score, view.target = e.bare[l], e.scores[l], e.targets[l]
            if not self.differentiate(now, e):
                return False
            e.derivative[l], e.curvature[l] = view.derivative, view.curvature
            if not self.rule.has_trace:
                if not self.move(now, e):
                    return False
                e.term.alpha[l] = e.move.alpha[0]
                e.term.offset[l] = e.move.offset
        if self.rule.has_trace:
            self.rule.move_all(now, self.outputs, 0, k, e)
        return all_finite(e, n, k)


cdef bint all_finite(Example e, Py_ssize_t n, double k) noexcept nogil:
    """The term is for labels 0, ..., n - 1: see whether it enters, and whether its coefficients are numbers."""
    cdef Py_ssize_t l, j
    cdef bint finite = True
    e.term.n, e.term.enters = n, False
    for l in range(n):
        e.term.labels[l] = <int> l
        e.term.enters |= e.term.alpha[l] != 0.0
    for j in range(e.channels * n):
        finite &= coefficient_is_bounded(e.term.alpha[j], k)
    if not finite:
        e.failure = MOVE
    return finite


cdef double block_maximum(const double* value) noexcept nogil:
    """The largest of BLOCK numbers: four maxima side by side, so that no comparison waits for the one before."""
    cdef Py_ssize_t i, j
    cdef double[4] top
    for j in range(4):
        top[j] = value[j]
    for i in range(1, BLOCK // 4):
        for j in range(4):
            top[j] = value[4 * i + j] if value[4 * i + j] > top[j] else top[j]
    for j in range(1, 4):
        top[0] = top[j] if top[j] > top[0] else top[0]
    return top[0]


cdef class LabelForm(Form):
    """What the losses of many labels share."""

    cdef readonly bint structured       # whether the loss uses the labels' distances; otherwise all are 1

    def __init__(self, Rule rule, Outputs outputs, custom_loss=None, bint structured=False):
        Form.__init__(self, rule, outputs, custom_loss)
        self.structured, rule.moves_all = structured, isinstance(self, AllLabels)

    cdef void find_distances(self, Py_ssize_t y, Example e) noexcept nogil:
        """Delta(y, .) as the loss sees it. O(n), of a taxonomy O(nodes)."""
        cdef Py_ssize_t l
        if self.structured:
            self.outputs.distances(y, e.distance, e.nodes)
            return
        for l in range(self.outputs.n):
            e.distance[l] = 0.0 if l == y else 1.0

    cdef Py_ssize_t runner_up(self, const Standing* now, const double* offset, Py_ssize_t y, double shrink,
                              Example e) noexcept nogil:
        """argmax over l != y of rho Delta(y, l) + shrink f(x, l) + b_l, the first among equals; -1 for none. O(n).

        Labels come in blocks; only those of a block that holds a new maximum are compared one by one.
        """
        cdef Py_ssize_t i, first, l, j, size, best = -1, n = self.outputs.n
        cdef double largest = -INFINITY, rho = now.loss.scalar
        cdef double[BLOCK] value
        cdef const double* f = e.bare
        cdef const double* distance = e.distance
        for i in range((n + BLOCK - 1) // BLOCK):
            first = BLOCK * i
            size = n - first if n - first < BLOCK else BLOCK
            for j in range(size):
                value[j] = rho * distance[first + j] + shrink * f[first + j] + offset[first + j]
            for j in range(size, BLOCK):
                value[j] = -INFINITY
            if first <= y < first + size:
                value[y - first] = -INFINITY
            if block_maximum(value) <= largest and best >= 0:
                continue
            for j in range(size):
                l = first + j
                if l != y and (best < 0 or value[j] > largest):
                    best, largest = l, value[j]
        return best

    cdef void look_at_prediction(self, const Standing* now, const double* offset, Py_ssize_t y,
                                 Example e) noexcept nogil:
        """dl/drho of a nu-hinge at f_t itself, whose runner-up may differ from the shrunk hypothesis's."""
        cdef Py_ssize_t best = self.runner_up(now, offset, y, 1.0, e)
        cdef double margin
        e.view.scalar_gradient, e.view.compared = -now.loss.nu, now.loss.scalar
        if best >= 0:
            margin = e.scores[y] - e.scores[best]
            e.view.scalar_gradient = loss_scalar_gradient(&now.loss, margin, e.distance[best])
            e.view.compared = loss_compared(&now.loss, margin, e.distance[best])


@cython.final
cdef class LabelPair(LabelForm):
    """The margin of a label over its runner-up: one of them gets a coefficient, the other its negative."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t label = <Py_ssize_t> e.targets[0], best
        self.find_distances(label, e)
        e.view.weight = e.weight
        if self.rule.looks_at_shrunk and self.rule.has_trace:
            if not self.look_at(now, label, self.runner_up(now, offset, label, 1.0, e), k, e):
                return False
            self.rule.look_back(now, e)
        best = self.runner_up(now, offset, label, self.rule.shrink(now.t + 1, e), e)
        if not self.look_at(now, label, best, k, e):
            return False
        if self.rule.looks_at_shrunk and best >= 0:
            self.look_at_prediction(now, offset, label, e)
        return self.move_along(now, e)

    cdef bint look_at(self, const Standing* now, Py_ssize_t label, Py_ssize_t best, double k, Example e) noexcept nogil:
        """The view along the direction from `best` to the label."""
        cdef View* view = &e.view
        e.term.n = 2 if best >= 0 else 1
        e.term.labels[0], e.term.labels[1] = <int> label, <int> best
        if best < 0:                                # a single label so far: nothing to tell apart
            view.target = label
            view.score = view.bare = view.trace = view.k = view.offsets = 0.0
            view.derivative = view.curvature = 0.0
            view.scalar_gradient, view.compared = -now.loss.nu, now.loss.scalar
            return True
        view.target = e.distance[best]
        view.score, view.bare = e.scores[label] - e.scores[best], e.bare[label] - e.bare[best]
        view.trace = e.bare[e.width + label] - e.bare[e.width + best] if self.rule.has_trace else 0.0
        view.k = k * self.outputs.square_between(label, best)
        view.offsets = 2.0
        return self.differentiate(now, e)


cdef void differentiate_labels(const Loss* loss, const double* z, Py_ssize_t y, Py_ssize_t n, double weight, Example e,
                               double* out) noexcept nogil:
    """out = weight l'(z) of the logistic or squared loss of all labels; what their Hessian needs into the example."""
    cdef Py_ssize_t l
    cdef double score
    if loss.code == MULTICLASS_LOGISTIC:
        softmax(z, n, e.probability)
        for l in range(n):
            out[l] = weight * (e.probability[l] - (1.0 if l == y else 0.0))                         # V (21)
        return
    for l in range(n):
        score = z[l]
        out[l] = weight * loss_derivative(loss, score, 1.0 if l == y else -1.0)
        e.curvature[l] = weight * loss_curvature(loss, score, 1.0 if l == y else -1.0)


@cython.final
cdef class AllLabels(LabelForm):
    """A coefficient for every label: multiclass logistic and squared, exact hinges, shared mistakes, Python losses."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t l, label = <Py_ssize_t> e.targets[0], n = self.outputs.n
        cdef double shrink
        e.all_labels, e.diagonal, e.view.weight, e.view.k = True, False, e.weight, k
        memset(e.term.alpha, 0, e.channels * n * sizeof(double))
        if self.rule.looks_at_shrunk:
            self.find_distances(label, e)
            self.look_at_prediction(now, offset, label, e)
        if self.rule.looks_at_shrunk and not self.rule.has_trace:
            shrink = self.rule.shrink(now.t + 1, e)
            for l in range(n):
                e.shrunk[l] = shrink * e.bare[l] + offset[l]
        elif not self.differentiate_all(now, label, e):
            return False
        self.rule.move_all(now, self.outputs, label, k, e)
        return all_finite(e, n, k)

    cdef bint differentiate_all(self, const Standing* now, Py_ssize_t y, Example e) noexcept nogil:
        """Derivatives of the loss; of the logistic one probabilities, of the squared one curvatures. O(n)."""
        cdef Py_ssize_t l, n = self.outputs.n
        if self.custom_loss is not None:
            return self.ask_for_all(y, e)
        e.diagonal = now.loss.code == MULTICLASS_SQUARED
        if e.diagonal or now.loss.code == MULTICLASS_LOGISTIC:
            differentiate_labels(&now.loss, e.scores, y, n, e.weight, e, e.derivative)
            return True
        mistake_gradient(e.scores, y, n, e.derivative)
        for l in range(n):
            e.derivative[l] *= e.weight
        return True

    cdef bint ask_for_all(self, Py_ssize_t y, Example e) noexcept with gil:
        """The same for a Python loss; False if it fails."""
        cdef Py_ssize_t l, n = self.outputs.n
        try:
            scores = np.array([e.scores[l] for l in range(n)])
            slopes = np.asarray(self.custom_loss.derivative(scores, y), dtype=float)
            if slopes.shape != (n,):
                raise ValueError(f"The loss gave a derivative of shape {slopes.shape} for {n} scores.")
            if not np.isfinite(slopes).all():
                raise BadLoss(FloatingPointError, f"derivative({scores.tolist()}, {y}) of "
                                                  f"{type(self.custom_loss).__name__} is not finite")
            for l in range(n):
                e.derivative[l] = e.weight * <double> slopes[l]
        except BaseException as error:
            return blame(e, error)
        return True


# ---- Gradient descent: NORMA ---------------------------------------------------------------------

@cython.final
cdef class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .): NORMA."""

    forms = (*DIRECTIONS, "AllLabels")

    cdef public double regularization   # lambda of K

    cdef double longest(self) noexcept nogil:
        return 1.0 / self.regularization if self.regularization > 0.0 else INFINITY

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1)
        cdef Shift shift = gradient_shift(gradient_shrink(eta, self.regularization), eta, e.view.derivative)
        shift_by(shift.shrink, shift.alpha, shift.offset, &e.move)
        move_scalar(now, eta, &e.view, &e.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1)
        cdef Py_ssize_t l
        e.move.transform[0][0] = gradient_shrink(eta, self.regularization)
        for l in range(outputs.n):
            e.term.alpha[l] = e.term.offset[l] = -eta * e.derivative[l]


# ---- The implicit step of a loss in Python: I's general recipe -----------------------------------

cdef double PRECISION = 1e-15       # of the coefficient
cdef double ROUNDING = 1e-7         # of slopes


@cython.final
cdef class ConvexStep:
    """alpha with alpha + size l'(z + alpha k, y) = 0, for any convex l, I (10).

    The left side rises with alpha, with slope 1 at least, and changes its sign between 0 and -size l'(z, y). Newton's
    steps, if the loss has a curvature, and otherwise those of false position shrink that bracket; where they do not
    halve it in three steps, bisection does. Where l' jumps across the root, the bracket closes at the jump.
    """

    cdef object loss                # a Python loss
    cdef bint squared               # whether its square counts, convex if l is and not negative: PA-II
    cdef bint has_curvature         # whether the loss tells its second derivative

    def __init__(self, loss, bint squared=False):
        self.loss = loss
        self.squared = squared
        self.has_curvature = loss.has_curvature and not squared

    cdef double alpha(self, double z, double y, double k, double size, Example e) noexcept with gil:
        """The coefficient; 0, with the reason in e.failure, if the loss fails. Some 50 calls at a kink. k > 0."""
        try:
            return self.root(z, y, k, size)
        except BaseException as error:
            blame(e, error)
        return 0.0

    cdef double root(self, double z, double y, double k, double size) except? -1.0:
        """u > 0 goes down the slope: h(u) = side l'(z + side u k) rises from h(0) < 0; the root of u + size h(u)."""
        cdef double first = self.slope(z, y), side = 1.0 if first < 0.0 else -1.0
        cdef double low = 0.0, low_h = -fabs(first), low_value = size * low_h, high = -low_value, high_h, high_value
        cdef double u, h, value, tolerance, wide = high, slope, low_weight = 1.0, high_weight = 1.0
        cdef double dust = loss_dust(fabs(y) + fabs(z), k, high)
        cdef int rounds, slow = 0, before = 0
        if first == 0.0 or size == 0.0:
            return 0.0
        if not isfinite(z + side * high * k):
            return side * high                      # too large to be learned, which the engine will say
        high_h = side * self.slope(z + side * high * k, y)
        self.check_order(first, z, side, k, low, low_h, high, high_h, y)
        high_value = high + size * high_h
        for rounds in range(400):  # no-cython-lint
            tolerance = PRECISION * high
            if high_value <= 0.0 or high - low <= tolerance or high <= dust:
                break
            if slow == 3:
                u, slow, wide = 0.5 * (low + high), 0, high - low
            else:
                u = (low * high_weight * high_value - high * low_weight * low_value) / (
                    high_weight * high_value - low_weight * low_value)
                if self.has_curvature:
                    u, value = (high, high_value) if high_value < -low_value else (low, low_value)
                    slope = 1.0 + size * k * asked(self.loss, "curvature", z + side * u * k, y)
                    u = u - value / slope if slope >= 1.0 else 0.5 * (low + high)
            u = min(max(u, low + 0.5 * tolerance), high - 0.5 * tolerance)      # so that the bracket closes
            h = side * self.slope(z + side * u * k, y)
            self.check_order(first, z, side, k, low, low_h, u, h, y)
            self.check_order(first, z, side, k, u, h, high, high_h, y)
            value = u + size * h
            if value >= 0.0:
                high, high_h, high_value, high_weight = u, h, value, 1.0
                low_weight = 0.5 * low_weight if before > 0 else 1.0    # Illinois: an end that stays counts less
            if value <= 0.0:
                low, low_h, low_value, low_weight = u, h, value, 1.0
                high_weight = 0.5 * high_weight if before < 0 else 1.0
            before = 1 if value >= 0.0 else -1
            slow += 1
            if high - low <= 0.5 * wide:
                slow, wide = 0, high - low
        return side * high if high > dust else 0.0

    cdef double slope(self, double z, double y) except? -1.0:
        """l'(z, y), or that of l^2."""
        cdef double slope = asked(self.loss, "derivative", z, y), value
        if self.squared:
            value = asked(self.loss, "value", z, y)
            if value < 0.0:
                found = f"value({z:.6g}, {y:.6g}) of {type(self.loss).__name__} is {value:.6g} < 0"
                raise BadLoss(ValueError, f"its loss is squared, and {found}")
            slope *= 2.0 * value
        return slope

    cdef int check_order(self, double first, double z, double side, double k, double u, double h, double w, double g,
                         double y) except -1:
        """h(u) <= g = h(w) for u < w, up to rounding: that of scores may be large beside a slope that is nearly 0."""
        if h - g > ROUNDING * fmax(fabs(first), fmax(fabs(h), fabs(g))):
            raise BadLoss(ValueError, f"{type(self.loss).__name__} is not convex, and has no implicit step; with NORMA "
                          f"it works. Its derivative should not fall, and is {side * h:.6g} at {z + side * u * k:.6g} "
                          f"and {side * g:.6g} at {z + side * w * k:.6g} for y = {y:.6g}")


cdef void eliminate(double* M, double* x, Py_ssize_t n) noexcept nogil:
    """x <- M^-1 x for a matrix by rows, by Gauss, with the largest pivots. O(n^3)."""
    cdef Py_ssize_t i, j, l, best
    cdef double factor
    for i in range(n):
        best = i
        for j in range(i + 1, n):
            if fabs(M[j * n + i]) > fabs(M[best * n + i]):
                best = j
        for l in range(i, n):
            M[i * n + l], M[best * n + l] = M[best * n + l], M[i * n + l]
        x[i], x[best] = x[best], x[i]
        for j in range(i + 1, n):
            factor = M[j * n + i] / M[i * n + i]
            for l in range(i + 1, n):
                M[j * n + l] -= factor * M[i * n + l]
            x[j] -= factor * x[i]
    for i in range(n - 1, -1, -1):
        for l in range(i + 1, n):
            x[i] -= M[i * n + l] * x[l]
        x[i] /= M[i * n + i]


# ---- Implicit updates: ILK and SILK --------------------------------------------------------------

@cython.final
cdef class Implicit(Rule):
    """f <- argmin 1/2 |f - f_t|^2 + eta (lambda/2 |f|^2 + C L(f)): ILK and SILK."""

    forms = (*DIRECTIONS, "AllLabels")

    cdef public double regularization   # lambda of I
    cdef public double penalty          # C of I
    cdef ConvexStep own                 # of a Python loss, or None
    cdef bint solves                    # whether labels that have a kernel all move
    cdef Outputs outputs                # the labels

    def __init__(self, step, **parameters):
        self.looks_at_shrunk = True
        Rule.__init__(self, step, **parameters)

    def take_loss(self, loss):
        self.own, self.asks_loss = ConvexStep(loss), True

    cdef int stand_on(self, Function function) except -1:
        self.outputs, self.solves = function.outputs, self.moves_all and function.outputs.n_nodes != 0

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        """Room for the systems of `smooth_step`."""
        return width * width * sizeof(double) if self.solves else 0

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        return implicit_shrink(step_size(&self.step, t), self.regularization)

    cdef double longest(self) noexcept nogil:
        return self.penalty / self.regularization if self.regularization > 0.0 else INFINITY

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        """e.view.score becomes that of the shrunk hypothesis. The scalar of a nu-loss moves explicitly, by its gradient
        at f_t."""
        cdef double shrink = self.shrink(now.t + 1, e), size = step_size(&self.step, now.t + 1) * self.penalty
        cdef double offsets = e.view.offsets if now.has_offset else 0.0, k = implicit_kernel(shrink, offsets, e.view.k)
        cdef double alpha = 0.0
        cdef Shift shift
        e.view.score += (shrink - 1.0) * e.view.bare
        if self.asks_loss:
            if k > 0.0:
                alpha = self.own.alpha(e.view.score, e.view.target, k, shrink * size * e.view.weight, e)
            shift_by(shrink, alpha, alpha / shrink, &e.move)
            return
        shift = implicit_shift(&now.loss, shrink, size * e.view.weight, offsets, e.view.score, e.view.target, e.view.k)
        shift_by(shift.shrink, shift.alpha, shift.offset, &e.move)
        move_scalar(now, size, &e.view, &e.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1), shrink = self.shrink(now.t + 1, e)
        cdef double size = shrink * eta * self.penalty * e.weight
        cdef double own = implicit_kernel(shrink, 1.0 if now.has_offset else 0.0, k)
        cdef Py_ssize_t l, n = outputs.n
        e.move.transform[0][0] = shrink
        move_scalar(now, eta * self.penalty, &e.view, &e.move)
        if own > 0.0 and size > 0.0 and outputs.n_nodes == 0:
            self.over_all_labels(now, n, y, own, size, e)
        elif own > 0.0 and size > 0.0:
            if now.loss.code == MULTICLASS_LOGISTIC or now.loss.code == MULTICLASS_SQUARED:
                self.smooth_step(&now.loss, y, k, own - k, size, e)
            else:
                self.related_hinge_step(now.loss.scalar, y, k, own - k, size, e)
        for l in range(n):
            e.term.offset[l] = 1.0 / shrink * e.term.alpha[l]

    cdef void over_all_labels(self, const Standing* now, Py_ssize_t n, Py_ssize_t y, double k, double size,
                              Example e) noexcept nogil:
        """The arg-min over all labels, for the delta kernel. O(n), for exact hinges O(n log n)."""
        cdef Py_ssize_t l
        cdef double level, largest = 0.0
        cdef double* violation = e.work
        if now.loss.code == MULTICLASS_SQUARED:
            for l in range(n):
                e.term.alpha[l] = loss_implicit(&now.loss, e.shrunk[l], 1.0 if l == y else -1.0, k, size)
            return
        if n < 2:                                   # a single label so far: nothing to tell apart
            return
        if now.loss.code == MULTICLASS_LOGISTIC:
            softmax_step(e.shrunk, y, n, k, size, e.work, e.term.alpha)
            return
        for l in range(n):
            level = now.loss.scalar * e.distance[l] + e.shrunk[l]
            violation[l], largest = level - e.shrunk[y], fmax(largest, fabs(level))
        hinge_step(violation, y, n, k, size, loss_dust(largest, k, size), e.work + e.width, e.term.alpha)

    # ---- Labels that have a kernel ------------------------------------------------------------
    # New coefficients a move the scores of all labels to z = s + K a, where K = k(x, x) kappa, and for offsets `alone`
    # times the identity. The arg-min of I (8) over a is a = -size l'(z).

    cdef void times(self, const double* a, double k, double alone, Example e, double* out) noexcept nogil:
        """out = K a."""
        cdef Py_ssize_t l, n = self.outputs.n
        memcpy(out, a, n * sizeof(double))
        self.outputs.apply(out, e.nodes)
        for l in range(n):
            out[l] = k * out[l] + alone * a[l]

    cdef void mismatch(self, const Loss* loss, Py_ssize_t y, double k, double alone, double size, Example e,
                       double* out) noexcept nogil:
        """out = a + size l'(z), which is to be 0; what the Hessian needs into the example."""
        cdef Py_ssize_t l, n = self.outputs.n
        cdef double* z = e.derivative
        self.times(e.term.alpha, k, alone, e, z)
        for l in range(n):
            z[l] += e.shrunk[l]
        differentiate_labels(loss, z, y, n, size, e, out)
        for l in range(n):
            out[l] += e.term.alpha[l]

    cdef void smooth_step(self, const Loss* loss, Py_ssize_t y, double k, double alone, double whole,
                          Example e) noexcept nogil:
        """Newton's method for a + size l'(s + K a) = 0: in the inner product of K the gradient of a convex function.

        A step is halved as long as it goes beyond the minimum of its line. O(n^3) for each. With a large size the
        logistic loss is nearly a polyhedron, so the size grows from one at which it is not.
        """
        cdef Py_ssize_t l, m, n = self.outputs.n
        cdef double* rest = e.work              # of the equation,
        cdef double* way = rest + e.width       # the direction,
        cdef double* image = way + e.width      # K times it,
        cdef double* start = image + e.width    # a before
        cdef double* jacobian = <double*> e.decision        # I + size K l'', transposed
        cdef bint curved = loss.code == MULTICLASS_LOGISTIC         # otherwise the second step makes good for rounding
        cdef double slope, share, largest, size = fmin(whole, 1.0 / (k + alone)) if curved else whole
        cdef int rounds, halvings
        self.mismatch(loss, y, k, alone, size, e, rest)
        for rounds in range(1000 if curved else 2):  # no-cython-lint
            for m in range(n):                  # column m is size l'' (K e_m)
                for l in range(n):
                    start[l] = k * self.outputs.kappa(l, m) + (alone if l == m else 0.0)
                if curved:
                    softmax_hessian_times(e.probability, start, n, size, image)
                for l in range(n):
                    jacobian[l * n + m] = image[l] if curved else e.curvature[l] * start[l]
                jacobian[m * n + m] += 1.0
            for l in range(n):
                way[l], start[l] = -rest[l], e.term.alpha[l]
            eliminate(jacobian, way, n)
            self.times(way, k, alone, e, image)
            slope, share, largest = -ok_dot(rest, image, n), 1.0, 0.0
            for halvings in range(60):  # no-cython-lint
                for l in range(n):
                    e.term.alpha[l] = start[l] + share * way[l]
                self.mismatch(loss, y, k, alone, size, e, rest)
                if not ok_dot(rest, image, n) > 0.9 * slope:
                    break
                share *= 0.5
            for l in range(n):
                largest = fmax(largest, fabs(share * way[l]))
            if largest <= 1e-15 * size and size == whole:
                break
            if largest <= 0.1 * size and size < whole:
                size = fmin(whole, 4.0 * size)
                self.mismatch(loss, y, k, alone, size, e, rest)
        if curved:                              # the sum over labels is 0
            e.term.alpha[y] = 0.0
            for l in range(n):
                if l != y:
                    e.term.alpha[y] -= e.term.alpha[l]

    cdef void related_hinge_step(self, double rho, Py_ssize_t y, double k, double alone, double size,
                                 Example e) noexcept nogil:
        """The arg-min for a hinge: labels share `size`, a = size e_y - share, where rho Delta + z is largest.

        All of it is at y first. It is moved from the label where that is least to the one where it is most, as far as
        they become equal, until all that have a share are.
        """
        cdef Py_ssize_t l, up, down, n = self.outputs.n
        cdef double* share = e.work
        cdef double* level = share + e.width
        cdef double* way = level + e.width
        cdef double* image = way + e.width
        cdef double step, length, dust, largest = 0.0
        for l in range(n):
            share[l], way[l], level[l] = 0.0, 0.0, rho * e.distance[l] + e.shrunk[l]
            largest = fmax(largest, fabs(level[l]))
        share[y], dust = size, loss_dust(largest, k + alone, size)
        for _ in range(20000 * n):
            up = down = y
            for l in range(n):
                if level[l] > level[up]:
                    up = l
                if share[l] > 0.0 and (share[down] == 0.0 or level[l] < level[down]):
                    down = l
            if level[up] - level[down] <= 1e-14 * largest:
                break
            length = k * self.outputs.square_between(up, down) + 2.0 * alone
            step = share[down]
            if length * step > level[up] - level[down]:
                step = (level[up] - level[down]) / length
            share[up] += step
            share[down] = share[down] - step if share[down] > step else 0.0
            way[up], way[down] = -step, step
            self.times(way, k, alone, e, image)
            way[up] = way[down] = 0.0
            for l in range(n):
                level[l] += image[l]
        e.term.alpha[y] = 0.0
        for l in range(n):
            if l != y:
                e.term.alpha[l] = -share[l] if share[l] > dust else 0.0
                e.term.alpha[y] -= e.term.alpha[l]


# ---- Margins: passive-aggressive updates, ROMMA, Ballseptron, ALMA -------------------------------

cdef double NO_CAP = 1e308              # no coefficient is larger


@cython.final
cdef class Aggressive(Rule):
    """The shortest way to no loss, or to less: passive-aggressive, and the projections of H.

    It is the implicit hinge step without regularization. PA has no cap, PA-I the cap C, PA-II (`squared`) none, but a
    kernel larger by 1 / (2 C).
    """

    forms = DIRECTIONS

    cdef public double penalty          # cap of PA-I; None is no cap: PA
    cdef public bint squared            # PA-II
    cdef ConvexStep own                 # of a Python loss, or None

    def configure(self, step, penalty, **parameters):
        Rule.configure(self, step, penalty=NO_CAP if penalty is None else penalty, **parameters)

    def take_loss(self, loss):
        self.own, self.asks_loss = ConvexStep(loss, self.squared), True

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef View* view = &e.view
        cdef double k = view.k + (view.offsets if now.has_offset else 0.0), size = self.penalty * view.weight
        cdef double alpha = 0.0
        cdef Loss loss = now.loss
        if self.asks_loss:
            if k > 0.0:
                alpha = self.own.alpha(view.score, view.target, k, size, e)
            shift_by(1.0, alpha, alpha, &e.move)
            return
        if loss.code == SQUARED_INSENSITIVE:
            loss.code = INSENSITIVE                 # the same tube to reach
        if self.squared:
            k += 0.5 / size if size > 0.0 else 1e300
            size = NO_CAP
        if k > 0.0 and view.weight > 0.0:
            alpha = loss_implicit(&loss, view.score, view.target, k, size)
        shift_by(1.0, alpha, alpha, &e.move)


@cython.final
cdef class Relaxed(Rule):
    """ROMMA (Li and Long): the shortest w with y w.x >= 1 and w.w_t >= |w_t|^2.

    Both constraints are met with equality, w = c w_t + d x, unless the first alone implies the other (or, for w
    parallel to x, there is nothing to solve): then w = y x / |x|^2.  So it is where nothing separates the examples, and
    |w| |x| would exceed 1e5: the error of |w|^2 is about 1e-16 |w|^2 |x|^2 of it. Then the hypothesis starts anew.
    """

    forms = ("OneOutput",)

    cdef public bint aggressive         # below margin 1, not after mistakes only

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        """Whether it starts anew."""
        return sizeof(bint)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef bint* starts_anew = <bint*> e.decision
        cdef double y = e.view.target, f = e.view.bare, k = e.view.k, square = now.norms.square, product = k * square
        cdef double rest = product - f * f, c, d
        stand_still(&e.move)
        starts_anew[0] = False
        # Within 1e-12 of the margin there is only rounding to make good for.
        if k <= 0.0 or e.view.weight <= 0.0 or (y * f >= 1.0 - 1e-12 if self.aggressive else y * f > 0.0):
            return
        if y * f < product and rest > 1e-12 * product:
            c, d = (product - y * f) / rest, square * (y - f) / rest
            starts_anew[0] = (c * c * square + 2.0 * c * d * f + d * d * k) * k > 1e10
            if not starts_anew[0]:
                e.move.transform[0][0], e.move.alpha[0] = c, d
                return
        e.move.transform[0][0], e.move.alpha[0] = 0.0, y / k

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        if (<bint*> e.decision)[0]:
            self.status = RESTARTED


@cython.final
cdef class Ball(Rule):
    """Ballseptron (Shalev-Shwartz and Singer): the Perceptron's update with a point of the ball around x.

    After a mistake that is x itself.  If x is on the right side but the hyperplane cuts its ball, it is the point that
    is farthest on the wrong side, x - y r w / |w|, and w + y x - r w / |w| = (1 - r / |w|) w + y x.
    """

    forms = ("OneOutput",)

    cdef public double radius           # of the ball

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double length = sqrt(now.norms.square), margin = e.view.target * e.view.bare
        stand_still(&e.move)
        if e.view.k <= 0.0 or e.view.weight <= 0.0 or margin > self.radius * length:
            return
        if margin > 0.0:
            e.move.transform[0][0] = 1.0 - self.radius / length
        e.move.alpha[0] = e.view.target


@cython.final
cdef class Approximate(Rule):
    """ALMA_2 (Gentile): w + C / sqrt(k) y x if y w.x <= (1 - alpha) B / sqrt(k); the hypothesis keeps |w| <= 1."""

    FIELDS = Number("corrections", not_negative),

    forms = ("OneOutput",)

    cdef public double threshold        # (1 - alpha) B
    cdef public double penalty          # C
    cdef public double corrections      # updates so far

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double k = self.corrections + 1.0
        stand_still(&e.move)
        if e.view.k > 0.0 and e.view.weight > 0.0 and e.view.target * e.view.bare <= self.threshold / sqrt(k):
            e.move.alpha[0] = e.view.target * self.penalty / sqrt(k)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        self.corrections += e.term.enters


# ---- Coefficients that move again: LASVM ----------------------------------------------------------

cdef enum:
    SEEDS = 5           # examples that enter while there are none of the other class


cdef inline double snapped(double alpha, double bound) noexcept nogil:
    """What is at 0 or at its bound, up to rounding, is there: it would be in pairs for steps of nothing."""
    cdef double share = alpha / bound
    return 0.0 if share < 1e-12 else bound if share > 1.0 - 1e-12 else alpha


cdef inline double rounding(double gradient) noexcept nogil:
    """How far gradients are apart that count as equal."""
    return 1e-10 * (1.0 + fabs(gradient))


cdef struct Pair:
    # Two terms for a step: each a slot, or NOBODY
    Py_ssize_t up                       # the coefficient that may grow with the largest gradient
    Py_ssize_t down                     # the one that may shrink with the smallest


cdef class SMO(Rule):
    """LASVM (Bordes, Ertekin, Weston and Bottou 2005): maximize over the coefficients a_s of the terms

        sum_s a_s y_s - 1/2 sum_rs a_r a_s k(x_r, x_s),     sum_s a_s = 0,     a_s between 0 and its bound, y_s C

    by steps in two coordinates, a_i up and a_j down by as much.  Its gradient is g_s = y_s - f(x_s).  A pair is worth a
    step if a_i may grow, a_j may shrink, and g_i - g_j exceeds the tolerance.

    `move` decides whether an example enters; once it is there, `follow` makes the step PROCESS with it and the step
    REPROCESS with the best pair. All kernel values between terms are kept, and those of a candidate are computed in one
    way only, so that steps depend neither on chunks nor on where slots are. The frame stays 1.
    """

    FIELDS = (Array("gradients", np.float64, ("n",)), Array("bounds", np.float64, ("n",)),
              Number("rows_gap", not_negative))

    forms = ("OneOutput",)

    cdef KernelTerms function
    cdef Dictionary dictionary
    cdef Coefficients terms
    cdef SquareTable kernel_values
    cdef Table numbers                  # of each term: its gradient, its bound
    cdef public double penalty          # C
    cdef public double tolerance        # tau
    cdef public bint admits             # whether all examples enter: `fit` knows a pair among them
    cdef public double rows_gap         # that of all rows of `fit`, terms or not; 0 once more is learned
    cdef double* offset                 # of the hypothesis

    cdef int stand_on(self, Function function) except -1:
        self.function = function
        self.dictionary, self.terms = self.function.dictionary, self.function.terms
        self.kernel_values, self.numbers = self.dictionary.new_square_table(), self.dictionary.new_table(2)
        self.terms.keeps_zeros = self.dictionary.keeps_order = True

    cdef double* alpha(self) noexcept nogil:
        return <double*> self.terms.table.data

    cdef double* gradient(self) noexcept nogil:
        return <double*> self.numbers.data

    cdef double* bounds(self) noexcept nogil:
        return <double*> self.numbers.data + self.numbers.capacity

    cdef double* row(self, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a term with all slots."""
        return <double*> self.kernel_values.data + slot * self.kernel_values.capacity

    cdef double bound(self, Example e) noexcept nogil:
        return e.view.target * self.penalty * e.view.weight

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double bound = self.bound(e)
        stand_still(&e.move)
        if e.view.k > 0.0 and bound != 0.0 and (self.admits or self.is_wanted(e.view.target - e.view.bare, bound)):
            e.move.alpha[0] = bound             # of its size; `follow` says what it is

    cdef bint is_wanted(self, double gradient, double bound) noexcept nogil:
        """Whether it makes a pair that is worth a step, or there is nobody to make one with, and few wait for that."""
        cdef Pair pair = self.best_pair()
        if (pair.down if bound > 0.0 else pair.up) == NOBODY:
            return self.dictionary.held < SEEDS
        if bound > 0.0:
            return gradient - self.gradient()[pair.down] > self.tolerance
        return self.gradient()[pair.up] - gradient > self.tolerance

    cdef bint is_finite(self, Example e) noexcept nogil:
        return fabs(self.bound(e)) * e.view.k < 1e150   # so that gradients stay finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        self.offset = offset
        self.rows_gap = 0.0

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        if w.piece.slot >= 0:
            self.process(w.piece, self.bound(e), e.view.k)
        self.reprocess()

    cdef void process(self, Piece piece, double bound, double own) noexcept nogil:
        """The example has entered a slot: a step with the best partner."""
        cdef Py_ssize_t other, slot = piece.slot, start = self.dictionary.start
        cdef double* row = self.row(slot)
        cdef double gradient = 1.0 if bound > 0.0 else -1.0
        cdef Pair pair
        self.alpha()[slot] = 0.0
        self.dictionary.candidates_values(piece, slot, own, row + start)
        for other in range(start, self.dictionary.stop):
            if not self.terms.holds(other):
                row[other] = 0.0
            self.row(other)[slot] = row[other]
            gradient -= self.alpha()[other] * row[other]
        self.gradient()[slot], self.bounds()[slot] = gradient, bound
        pair = self.best_pair()
        if bound > 0.0:
            pair.up = slot
        else:
            pair.down = slot
        self.exchange(pair)

    cdef bint reprocess(self) noexcept nogil:
        """A step with the best pair, after which terms go that cannot be in one soon; False if none is worth it."""
        cdef Pair pair = self.best_pair()
        cdef bint found = self.exchange(pair)
        if found:
            pair = self.best_pair()
        self.place_offset(pair)
        if found:
            self.remove_idle(pair)
        return found

    cdef void place_offset(self, Pair pair) noexcept nogil:
        """Halfway between the two gradients; as long as there is one class, at that one."""
        cdef Py_ssize_t up = pair.down if pair.up == NOBODY else pair.up
        cdef Py_ssize_t down = pair.up if pair.down == NOBODY else pair.down
        if up != NOBODY:
            self.offset[0] = 0.5 * (self.gradient()[up] + self.gradient()[down])

    cdef Pair best_pair(self) noexcept nogil:
        """The pair whose gradients are farthest apart. O(terms).

        A step leaves two gradients equal, so that ties are common: of those that are equal up to rounding, the older.
        """
        cdef Py_ssize_t slot, start = self.dictionary.start, stop = self.dictionary.stop
        cdef double* g = self.gradient()
        cdef double largest = -INFINITY, smallest = INFINITY
        cdef Pair pair
        for slot in range(start, stop):
            if g[slot] > largest and self.may_grow(slot):
                largest = g[slot]
            if g[slot] < smallest and self.may_shrink(slot):
                smallest = g[slot]
        pair.up = pair.down = NOBODY
        largest -= rounding(largest)
        smallest += rounding(smallest)
        for slot in range(start, stop):
            if pair.up == NOBODY and g[slot] >= largest and self.may_grow(slot):
                pair.up = slot
            if pair.down == NOBODY and g[slot] <= smallest and self.may_shrink(slot):
                pair.down = slot
        return pair

    cdef bint may_grow(self, Py_ssize_t slot) noexcept nogil:
        return self.terms.holds(slot) and self.alpha()[slot] < fmax(0.0, self.bounds()[slot])

    cdef bint may_shrink(self, Py_ssize_t slot) noexcept nogil:
        return self.terms.holds(slot) and self.alpha()[slot] > fmin(0.0, self.bounds()[slot])

    cdef bint exchange(self, Pair pair) noexcept nogil:
        """Go to the maximum along the direction (up, down), as far as the bounds let; False if it is not worth it."""
        cdef Py_ssize_t slot, i = pair.up, j = pair.down
        cdef double* a = self.alpha()
        cdef double* g = self.gradient()
        cdef double* k_i
        cdef double* k_j
        cdef double step, curvature, rise, fall
        if i == NOBODY or j == NOBODY or not g[i] - g[j] > self.tolerance:
            return False
        k_i, k_j = self.row(i), self.row(j)
        step = fmin(fmax(0.0, self.bounds()[i]) - a[i], a[j] - fmin(0.0, self.bounds()[j]))
        curvature = k_i[i] + k_j[j] - 2.0 * k_i[j]
        if curvature * step > g[i] - g[j]:
            step = (g[i] - g[j]) / curvature
        rise, fall = -a[i], a[j]
        a[i], a[j] = snapped(a[i] + step, self.bounds()[i]), snapped(a[j] - step, self.bounds()[j])
        rise, fall = rise + a[i], fall - a[j]
        for slot in range(self.dictionary.start, self.dictionary.stop):
            g[slot] -= rise * k_i[slot] - fall * k_j[slot]
        return True

    cdef void remove_idle(self, Pair pair) noexcept nogil:
        """Terms with coefficient 0 go that would make no pair with the best partner."""
        cdef Py_ssize_t slot
        cdef double largest, smallest, gradient
        if pair.up == NOBODY or pair.down == NOBODY:
            return
        largest, smallest = self.gradient()[pair.up], self.gradient()[pair.down]
        largest -= rounding(largest)
        smallest += rounding(smallest)
        for slot in range(self.dictionary.start, self.dictionary.stop):
            gradient = self.gradient()[slot]
            if self.terms.holds(slot) and self.alpha()[slot] == 0.0 and (
                    gradient <= smallest if self.bounds()[slot] > 0.0 else gradient >= largest):
                self.terms.drop(slot)

    def finish(self, offsets, Py_ssize_t steps):
        """Up to so many steps REPROCESS; False if there may be more to do. offsets: those of the hypothesis."""
        cdef bint found = True
        self.offset = <double*> array_data(offsets)
        with nogil:
            while found and steps > 0:
                found = self.reprocess()
                steps -= 1
        self.function.tidy()
        return not found

    def extremes(self):
        """(largest gradient of a coefficient that may grow, smallest of one that may shrink); no pair: -inf, inf."""
        cdef Pair pair = self.best_pair()
        return (-INFINITY if pair.up == NOBODY else self.gradient()[pair.up],
                INFINITY if pair.down == NOBODY else self.gradient()[pair.down])

    def gap(self):
        """By how much the terms, and all rows of `fit` as long as it is known, miss the conditions of the optimum."""
        largest, smallest = self.extremes()
        return max(self.rows_gap, largest - smallest)

    def stored(self):
        gradients, bounds = self.numbers.array[:, self.dictionary.saved_slots()]
        return {"gradients": gradients, "bounds": bounds}

    def fits(self, state):
        bounds = state["bounds"]
        share = state["coefficients"][0] * np.sign(bounds)
        if not (bounds != 0).all() or (share < 0).any() or (share > np.abs(bounds)).any():
            raise ValueError("a coefficient is not within its bounds")
        if not np.array_equal(state["frame"], [[1.0]]):
            raise ValueError("the frame is not 1")

    def resume(self, state):
        """The points and the coefficients are there."""
        self.numbers.array[0], self.numbers.array[1] = state["gradients"], state["bounds"]
        self.rows_gap = state["rows_gap"]
        lower = np.tril(self.dictionary.values_between())     # of two, the younger has looked at the older
        self.kernel_values.array[:] = lower + np.tril(lower, -1).T

    def _check(self):
        held = self.dictionary.taken.array[0] != 0
        bounds, share = self.numbers.array[1], self.terms.table.array[0] * np.sign(self.numbers.array[1])
        assert (bounds[held] != 0).all() and (share[held] >= 0).all() and (share <= np.abs(bounds))[held].all()
        assert np.isfinite(self.numbers.array[0, held]).all()
        values = self.kernel_values.array
        assert np.array_equal(values, values.T) and not values[~held].any()
