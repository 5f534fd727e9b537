"""Forms: what of an example's scores a rule looks at, and on which labels its move falls.

Losses of one score, and of a score for each target, are moves in one dimension.  So are the hinges of many labels, along
the direction from the best wrong label to the right one.  All labels move at once with the multiclass logistic loss,
the multiclass squared loss, exact hinges, shared mistakes and Python losses of many labels.
"""
import numpy as np
from libc.math cimport INFINITY, isfinite
from libc.string cimport memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.dense cimport mistake_gradient, softmax
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS
from onlinekernels._core.formulas.losses cimport (MULTICLASS_LOGISTIC, MULTICLASS_SQUARED, PROPORTIONAL_MISTAKE, loss_compared,
                                         loss_curvature, loss_derivative, loss_scalar_gradient)
from onlinekernels._core.formulas.moves cimport Standing, View, coefficient_is_tame
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.run.example cimport LOSS, MOVE, PYTHON, Example

cdef enum:
    BLOCK = 16                          # labels that are compared at a time

cdef class Form:
    """Lets a rule decide about an example that has been evaluated.

    `decide(now, offset, k, e)` leaves the rule's move and the new term in the example and changes nothing else; it is False,
    with the reason in e.failure, if the example cannot be learned. O(n) with n outputs, and products with the label kernel.
    The rule must serve forms of this kind.

    Parameters
    ----------
    rule : Rule
    outputs : Outputs
    custom_loss : Loss or None
        A Python loss.
    targets : int
        Numbers that y has for each example.
    """

    def __init__(self, Rule rule, Outputs outputs, custom_loss=None, Py_ssize_t targets=1):
        if type(self).__name__ not in rule.forms:
            raise ValueError(f"{type(rule).__name__} knows no moves of the kind {type(self).__name__}")
        self.rule = rule
        self.outputs = outputs
        self.custom_loss = custom_loss
        self.targets = targets
        if custom_loss is not None:
            rule.take_loss(custom_loss)

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        return False

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
        """The same for a Python loss, apart: where Python objects are, the interpreter's lock is taken whatever happens.

        As the loss.
        """
        cdef View* view = &e.view
        try:
            view.derivative = view.weight * self.custom_loss.derivative(view.score, view.target)
            if self.rule.has_trace:
                view.curvature = view.weight * self.custom_loss.curvature(view.score, view.target)
        except BaseException as error:
            e.error, e.failure = error, PYTHON
            return False
        if not (isfinite(view.derivative) and isfinite(view.curvature)):
            name = "derivative" if isfinite(view.curvature) else "curvature"
            self.refuse_loss(f"{name}({view.score:.6g}, {view.target:.6g})", e)
            return False
        return True

    cdef int refuse_loss(self, what, Example e) except -1:
        """What a Python loss gave cannot be learned from: O(1)."""
        e.error, e.failure = (FloatingPointError, f"{what} of {type(self.custom_loss).__name__} is not finite"), LOSS
        return 0

    def set_order(self, display):
        """Say which of equal labels comes first: display lists them; None and those behind it go by their number. O(labels)."""


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
        if self.rule.looks_ahead and self.rule.has_trace:
            self.rule.look_back(now, e)
        self.rule.move(now, e)
        if e.failure:
            return False
        e.term.alpha[0], e.term.alpha[1], e.term.alpha[2] = e.move.alpha[0], e.move.alpha[1], 0.0
        e.term.offset[0] = e.move.offset
        e.term.enters = e.move.alpha[0] != 0.0 or self.rule.has_trace and e.move.alpha[1] != 0.0
        if not self.rule.has_trace:
            e.term.alpha[1] = 0.0
        return True


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
                self.rule.move(now, e)
                if e.failure:
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
        finite &= coefficient_is_tame(e.term.alpha[j], k)
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
    """What the losses of many labels share.

    Parameters
    ----------
    rule, outputs, custom_loss
        As for `Form`.
    structured : bool
        Whether the loss uses the labels' distances; otherwise all are 1.
    """

    def __init__(self, Rule rule, Outputs outputs, custom_loss=None, bint structured=False):
        Form.__init__(self, rule, outputs, custom_loss)
        self.structured = structured

    def set_order(self, display):
        if display is None:
            self.ranks, self.n_ranked, self.rank_array = NULL, 0, None
            return
        ranks = np.ascontiguousarray(np.argsort(display), dtype=np.int64)
        self.ranks, self.n_ranked, self.rank_array = <const long long*> array_data(ranks), len(display), ranks

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
            if block_maximum(value) < largest:
                continue
            for j in range(size):
                l = first + j
                if l != y and (best < 0 or value[j] > largest or (value[j] == largest and self.goes_first(l, best))):
                    best, largest = l, value[j]
        return best

    cdef bint goes_first(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Whether label a > b comes before b all the same."""
        return a < self.n_ranked and self.ranks[a] < self.ranks[b]

    cdef void look_at_prediction(self, const Standing* now, const double* offset, Py_ssize_t y, Example e) noexcept nogil:
        """dl/drho of a nu-hinge at f_t itself, whose runner-up may differ from the shrunk hypothesis's."""
        cdef Py_ssize_t best = self.runner_up(now, offset, y, 1.0, e)
        cdef double margin
        e.view.scalar_gradient, e.view.compared = -now.loss.nu, now.loss.scalar
        if best >= 0:
            margin = e.scores[y] - e.scores[best]
            e.view.scalar_gradient = loss_scalar_gradient(&now.loss, margin, e.distance[best])
            e.view.compared = loss_compared(&now.loss, margin, e.distance[best])


cdef class LabelPair(LabelForm):
    """The margin of a label over its runner-up: one of them gets a coefficient, the other its negative."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t label = <Py_ssize_t> e.targets[0], best
        cdef int channel
        self.find_distances(label, e)
        e.view.weight = e.weight
        if self.rule.looks_ahead and self.rule.has_trace:
            if not self.look_at(now, label, self.runner_up(now, offset, label, 1.0, e), k, e):
                return False
            self.rule.look_back(now, e)
        best = self.runner_up(now, offset, label, self.rule.shrink(now.t + 1, e), e)
        if not self.look_at(now, label, best, k, e):
            return False
        if self.rule.looks_ahead and best >= 0:
            self.look_at_prediction(now, offset, label, e)
        self.rule.move(now, e)
        for channel in range(MAX_CHANNELS):
            e.term.alpha[channel * e.term.n] = e.move.alpha[channel] if channel <= self.rule.has_trace else 0.0
            if e.term.n == 2:
                e.term.alpha[channel * e.term.n + 1] = -e.term.alpha[channel * e.term.n]
        e.term.offset[0], e.term.offset[1] = e.move.offset, -e.move.offset
        e.term.enters = e.move.alpha[0] != 0.0 or self.rule.has_trace and e.move.alpha[1] != 0.0
        return True

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


cdef class AllLabels(LabelForm):
    """A coefficient for every label: multiclass logistic and squared, exact hinges, shared mistakes, Python losses."""

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t l, label = <Py_ssize_t> e.targets[0], n = self.outputs.n
        cdef double shrink
        e.all_labels, e.diagonal = True, False
        memset(e.term.alpha, 0, e.channels * n * sizeof(double))
        if self.rule.looks_ahead:
            self.find_distances(label, e)
            self.look_at_prediction(now, offset, label, e)
        if self.rule.looks_ahead and not self.rule.has_trace:
            shrink = self.rule.shrink(now.t + 1, e)
            for l in range(n):
                e.shrunk[l] = shrink * e.bare[l] + offset[l]
        elif not self.differentiate_all(now, label, e):
            return False
        self.rule.move_all(now, self.outputs, label, k, e)
        return all_finite(e, n, k)

    cdef bint differentiate_all(self, const Standing* now, Py_ssize_t y, Example e) noexcept nogil:
        """Derivatives of the loss; for the logistic one also the probabilities, for the squared one the curvatures. O(n)."""
        cdef Py_ssize_t l, n = self.outputs.n
        cdef double target
        if self.custom_loss is not None:
            return self.ask_for_all(y, e)
        if now.loss.code == MULTICLASS_LOGISTIC:
            softmax(e.scores, n, e.probability)
            for l in range(n):
                e.derivative[l] = e.probability[l] - (1.0 if l == y else 0.0)                       # V (21)
        elif now.loss.code == MULTICLASS_SQUARED:
            e.diagonal = True
            for l in range(n):
                target = 1.0 if l == y else -1.0
                e.derivative[l] = loss_derivative(&now.loss, e.scores[l], target)
                e.curvature[l] = e.weight * loss_curvature(&now.loss, e.scores[l], target)
        else:
            mistake_gradient(e.scores, y, n, now.loss.code == PROPORTIONAL_MISTAKE, e.derivative)
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
            for l in range(n):
                e.derivative[l] = e.weight * <double> slopes[l]
        except BaseException as error:
            e.error, e.failure = error, PYTHON
            return False
        for l in range(n):
            if not isfinite(e.derivative[l]):
                self.refuse_loss(f"derivative({scores.tolist()}, {y})", e)
                return False
        return True
