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
from onlinekernels._core.rules.rules cimport Rule
from onlinekernels._core.run.workspace cimport DERIVATIVE, MOVE, PYTHON, Workspace

cdef enum:
    BLOCK = 16                          # labels that are compared at a time

cdef class Form:
    """Lets a rule decide about an example that has been evaluated.

    `decide` leaves the rule's move and the new term in the workspace and changes nothing else; it is False, with the
    reason in w.failure, if the example cannot be learned.

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
        self.rule = rule
        self.outputs = outputs
        self.custom_loss = custom_loss
        self.targets = targets

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil:
        return False

    cdef bint differentiate(self, const Standing* now, Workspace w) noexcept nogil:
        """Derivatives of the loss at the score of w.view; False if a Python loss fails."""
        cdef View* view = &w.view
        view.scalar_gradient = view.curvature = view.compared = 0.0
        if self.custom_loss is not None:
            return self.ask_custom_loss(w)
        view.derivative = view.weight * loss_derivative(&now.loss, view.score, view.target)
        view.scalar_gradient = loss_scalar_gradient(&now.loss, view.score, view.target)
        view.compared = loss_compared(&now.loss, view.score, view.target)
        if self.rule.has_trace:
            view.curvature = view.weight * loss_curvature(&now.loss, view.score, view.target)
        return True

    cdef bint ask_custom_loss(self, Workspace w) noexcept with gil:
        """The same for a Python loss, apart: where Python objects are, the interpreter's lock is taken whatever happens."""
        cdef View* view = &w.view
        try:
            view.derivative = view.weight * self.custom_loss.derivative(view.score, view.target)
            if self.rule.has_trace:
                view.curvature = view.weight * self.custom_loss.curvature(view.score, view.target)
        except BaseException as error:
            w.error, w.failure = error, PYTHON
            return False
        if not (isfinite(view.derivative) and isfinite(view.curvature)):
            w.failure = DERIVATIVE
            return False
        return True

    def set_order(self, display):
        """Say which of equal labels comes first: display lists them; None and those behind it go by their number."""


cdef class OneOutput(Form):
    """The output itself."""

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil:
        cdef View* view = &w.view
        view.score, view.bare = w.scores[0], w.bare[0]
        view.trace = w.bare[w.width] if self.rule.has_trace else 0.0
        view.target, view.weight, view.k, view.offsets = y[0], weight, k, 1.0
        w.term.n, w.term.labels[0] = 1, 0
        if not self.differentiate(now, w):
            return False
        if self.rule.looks_ahead and self.rule.has_trace:
            self.rule.look_back(now, view, w)
        self.rule.move(now, view, w)
        w.term.alpha[0], w.term.alpha[1], w.term.alpha[2] = w.move.alpha[0], w.move.alpha[1], 0.0
        w.term.offset[0] = w.move.offset
        w.term.enters = w.move.alpha[0] != 0.0 or self.rule.has_trace and w.move.alpha[1] != 0.0
        if not self.rule.has_trace:
            w.term.alpha[1] = 0.0
        return True


cdef class Targets(Form):
    """Several targets: losses and kernels do not mix them, so each output has a move of its own."""

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil:
        cdef Py_ssize_t l, n = self.targets
        cdef View* view = &w.view
        w.all_labels = w.diagonal = True
        memset(w.term.alpha, 0, w.channels * n * sizeof(double))
        view.weight, view.k, view.offsets, view.trace = weight, k, 1.0, 0.0
        for l in range(n):
            view.bare, view.score, view.target = w.bare[l], w.scores[l], y[l]
            if not self.differentiate(now, w):
                return False
            w.xi[l], w.probability[l] = view.derivative, view.curvature
            if not self.rule.has_trace:
                self.rule.move(now, view, w)
                w.term.alpha[l] = w.move.alpha[0]
                w.term.offset[l] = w.move.offset
        if self.rule.has_trace:
            self.rule.move_all(now, self.outputs, 0, k, weight, w)
        return all_finite(w, n, k)


cdef bint all_finite(Workspace w, Py_ssize_t n, double k) noexcept nogil:
    """The term is for labels 0, ..., n - 1: see whether it enters, and whether its coefficients are numbers."""
    cdef Py_ssize_t l, j
    cdef bint finite = True
    w.term.n, w.term.enters = n, False
    for l in range(n):
        w.term.labels[l] = <int> l
        w.term.enters |= w.term.alpha[l] != 0.0
    for j in range(w.channels * n):
        finite &= coefficient_is_tame(w.term.alpha[j], k)
    if not finite:
        w.failure = MOVE
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


cdef class ManyLabels(Form):
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

    cdef void distances(self, Py_ssize_t y, Workspace w, double* out) noexcept nogil:
        """Delta(y, .) as the loss sees it."""
        cdef Py_ssize_t l
        if self.structured:
            self.outputs.distances(y, out, w.nodes)
            return
        for l in range(self.outputs.n):
            out[l] = 0.0 if l == y else 1.0

    cdef Py_ssize_t runner_up(self, const Standing* now, const double* offset, Py_ssize_t y, const double* distance,
                              double shrink, Workspace w) noexcept nogil:
        """argmax over l != y of rho Delta(y, l) + shrink f(x, l) + b_l, the first among equals; -1 for none.

        Labels come in blocks; only those of a block that holds a new maximum are compared one by one.
        """
        cdef Py_ssize_t i, first, l, j, size, best = -1, n = self.outputs.n
        cdef double largest = -INFINITY, rho = now.loss.scalar
        cdef double[BLOCK] value
        cdef const double* f = w.bare
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

    cdef void look_at_prediction(self, const Standing* now, const double* offset, Py_ssize_t y, const double* distance,
                                 Workspace w) noexcept nogil:
        """dl/drho of a nu-hinge at f_t itself, whose runner-up may differ from the shrunk hypothesis's."""
        cdef Py_ssize_t best = self.runner_up(now, offset, y, distance, 1.0, w)
        cdef double margin
        w.view.scalar_gradient, w.view.compared = -now.loss.nu, now.loss.scalar
        if best >= 0:
            margin = w.scores[y] - w.scores[best]
            w.view.scalar_gradient = loss_scalar_gradient(&now.loss, margin, distance[best])
            w.view.compared = loss_compared(&now.loss, margin, distance[best])


cdef class LabelPair(ManyLabels):
    """The margin of a label over its runner-up: one of them gets a coefficient, the other its negative."""

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil:
        cdef Py_ssize_t label = <Py_ssize_t> y[0], best
        cdef int channel
        self.distances(label, w, w.spare)
        w.view.weight = weight
        if self.rule.looks_ahead and self.rule.has_trace:
            if not self.look_at(now, label, self.runner_up(now, offset, label, w.spare, 1.0, w), k, w):
                return False
            self.rule.look_back(now, &w.view, w)
        best = self.runner_up(now, offset, label, w.spare, self.rule.shrink(now.t + 1), w)
        if not self.look_at(now, label, best, k, w):
            return False
        if self.rule.looks_ahead and best >= 0:
            self.look_at_prediction(now, offset, label, w.spare, w)
        self.rule.move(now, &w.view, w)
        for channel in range(MAX_CHANNELS):
            w.term.alpha[channel * w.term.n] = w.move.alpha[channel] if channel <= self.rule.has_trace else 0.0
            if w.term.n == 2:
                w.term.alpha[channel * w.term.n + 1] = -w.term.alpha[channel * w.term.n]
        w.term.offset[0], w.term.offset[1] = w.move.offset, -w.move.offset
        w.term.enters = w.move.alpha[0] != 0.0 or self.rule.has_trace and w.move.alpha[1] != 0.0
        return True

    cdef bint look_at(self, const Standing* now, Py_ssize_t label, Py_ssize_t best, double k, Workspace w) noexcept nogil:
        """The view along the direction from `best` to the label; w.spare has the distances from it."""
        cdef View* view = &w.view
        w.term.n = 2 if best >= 0 else 1
        w.term.labels[0], w.term.labels[1] = <int> label, <int> best
        if best < 0:                                # a single label so far: nothing to tell apart
            view.target = label
            view.score = view.bare = view.trace = view.k = view.offsets = 0.0
            view.derivative = view.curvature = 0.0
            view.scalar_gradient, view.compared = -now.loss.nu, now.loss.scalar
            return True
        view.target = w.spare[best]
        view.score, view.bare = w.scores[label] - w.scores[best], w.bare[label] - w.bare[best]
        view.trace = w.bare[w.width + label] - w.bare[w.width + best] if self.rule.has_trace else 0.0
        view.k = k * self.outputs.spread(label, best)
        view.offsets = 2.0
        return self.differentiate(now, w)


cdef class AllLabels(ManyLabels):
    """A coefficient for every label: multiclass logistic and squared, exact hinges, shared mistakes, Python losses."""

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil:
        cdef Py_ssize_t l, label = <Py_ssize_t> y[0], n = self.outputs.n
        cdef double shrink = self.rule.shrink(now.t + 1)
        w.all_labels, w.diagonal = True, False
        memset(w.term.alpha, 0, w.channels * n * sizeof(double))
        if self.rule.looks_ahead:
            self.distances(label, w, w.xi)
            self.look_at_prediction(now, offset, label, w.xi, w)
            for l in range(n):
                w.spare[l] = shrink * w.bare[l] + offset[l]
        if (self.rule.has_trace or not self.rule.looks_ahead) and not self.differentiate_all(now, label, weight, w):
            return False
        self.rule.move_all(now, self.outputs, label, k, weight, w)
        return all_finite(w, n, k)

    cdef bint differentiate_all(self, const Standing* now, Py_ssize_t y, double weight, Workspace w) noexcept nogil:
        """w.xi = weight dl/dscores; for the logistic loss also the probabilities, for the squared one the curvatures."""
        cdef Py_ssize_t l, n = self.outputs.n
        cdef double target
        if self.custom_loss is not None:
            return self.ask_for_all(y, weight, w)
        if now.loss.code == MULTICLASS_LOGISTIC:
            softmax(w.scores, n, w.probability)
            for l in range(n):
                w.xi[l] = w.probability[l] - (1.0 if l == y else 0.0)                       # V (21)
        elif now.loss.code == MULTICLASS_SQUARED:
            w.diagonal = True
            for l in range(n):
                target = 1.0 if l == y else -1.0
                w.xi[l] = loss_derivative(&now.loss, w.scores[l], target)
                w.probability[l] = weight * loss_curvature(&now.loss, w.scores[l], target)
        else:
            mistake_gradient(w.scores, y, n, now.loss.code == PROPORTIONAL_MISTAKE, w.xi)
        for l in range(n):
            w.xi[l] *= weight
        return True

    cdef bint ask_for_all(self, Py_ssize_t y, double weight, Workspace w) noexcept with gil:
        """The same for a Python loss; False if it fails."""
        cdef Py_ssize_t l, n = self.outputs.n
        try:
            scores = np.array([w.scores[l] for l in range(n)])
            slopes = np.asarray(self.custom_loss.derivative(scores, y), dtype=float)
            if slopes.shape != (n,):
                raise ValueError(f"The loss gave a derivative of shape {slopes.shape} for {n} scores.")
            for l in range(n):
                w.xi[l] = weight * <double> slopes[l]
        except BaseException as error:
            w.error, w.failure = error, PYTHON
            return False
        for l in range(n):
            if not isfinite(w.xi[l]):
                w.failure = DERIVATIVE
                return False
        return True
