"""Learners that move coefficients of examples they have: the inner loops of the Kernel-Adatron, and the rule of LASVM."""
import numpy as np
from libc.math cimport INFINITY, fabs, fmax, fmin
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.functions.coefficients cimport NOBODY, Coefficients
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.points.tables cimport SquareTable, Table
from onlinekernels._core.functions.function cimport Function, Scratch
from onlinekernels._core.formulas.moves cimport Standing, stand_still
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.functions.terms cimport KernelTerms
from onlinekernels._core.functions.tree cimport Tree
from onlinekernels._core.run.example cimport Example
from onlinekernels._core.run.piece cimport Piece

cdef enum:
    SEEDS = 5           # examples that enter while there are none of the other class


cdef inline double step_of(double alpha, double score, double y, double step) noexcept nogil:
    """What alpha becomes: V 3."""
    return fmax(0.0, alpha + step * (1.0 - y * score))


def pass_over_block(double[:, ::1] gram, Py_ssize_t first, const double[::1] y, double[::1] alpha,
                    double[::1] scores, double step):
    """Examples first, first + 1, ... in turn.

    gram has their kernel values with all examples, scores their f(x), which earlier ones of the block
    change.
    """
    cdef Py_ssize_t i, j, m = gram.shape[0]
    cdef double new, change
    with nogil:
        for i in range(m):
            new = step_of(alpha[first + i], scores[i], y[first + i], step)
            change = (new - alpha[first + i]) * y[first + i]
            alpha[first + i] = new
            if change != 0.0:
                for j in range(i + 1, m):
                    scores[j] += change * gram[j, first + i]


def pass_over_tree(Tree tree, const double[:, ::1] points, double scale, const double[::1] y, double[::1] alpha,
                   double step):
    """All examples in turn; the tree holds sum_i alpha_i y_i K(x_i, .)."""
    cdef Py_ssize_t i
    cdef double new, change, score
    cdef int[::1] at = np.zeros(points.shape[1], dtype=np.int32)
    tree.reserve(points.shape[0])
    with nogil:
        for i in range(points.shape[0]):
            tree.evaluate_into(&points[i, 0], 1, &score, &at[0])
            new = step_of(alpha[i], scale * score, y[i], step)
            change = (new - alpha[i]) * y[i]
            alpha[i] = new
            if change != 0.0:
                tree.put(&points[i, 0], &change, tree.all_rows, 1)


cdef inline double settled(double alpha, double bound) noexcept nogil:
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


cdef struct Admission:
    # What is decided about an example
    double bound                        # of its coefficient
    double own                          # its k(x, x)


cdef class Pairwise(Rule):
    """LASVM (Bordes, Ertekin, Weston and Bottou 2005): maximize over the coefficients a_s of the terms

        sum_s a_s y_s - 1/2 sum_rs a_r a_s k(x_r, x_s),     sum_s a_s = 0,     a_s between 0 and its bound, y_s C

    by steps in two coordinates, a_i up and a_j down by as much.  Its gradient is g_s = y_s - f(x_s).  A pair is worth a
    step if a_i may grow, a_j may shrink, and g_i - g_j exceeds the tolerance.

    `move` decides whether an example enters; once it is there, `follow` makes the step PROCESS with it and the step
    REPROCESS with the best pair.  All kernel values between terms are kept, and those of a newcomer are computed in one
    way only, so that steps depend neither on chunks nor on where slots are.  The frame stays 1.

    Parameters
    ----------
    step : tuple
    penalty : float
        C.
    tolerance : float
        tau.
    """
    cdef KernelTerms function
    cdef Dictionary dictionary
    cdef Coefficients terms
    cdef SquareTable kernel_values
    cdef Table numbers                  # of each term: its gradient, its bound
    cdef readonly double penalty
    cdef readonly double tolerance
    cdef public bint admits             # whether all examples enter: `fit` knows a pair among them
    cdef public double rows_gap         # that of all rows of `fit`, terms or not; 0 once more is learned
    cdef double* offset                 # of the hypothesis

    def __init__(self, step, **settings):
        self.forms = ("OneOutput",)
        self.configure(step, **settings)

    def configure(self, step, double penalty, double tolerance):
        Rule.configure(self, step)
        self.penalty, self.tolerance = penalty, tolerance

    cdef int stand_on(self, Function function) except -1:
        self.function = function
        self.dictionary, self.terms = self.function.dictionary, self.function.terms
        self.kernel_values, self.numbers = self.dictionary.new_square_table(), self.dictionary.new_table(2)
        self.terms.keeps_zeros = self.dictionary.keeps_order = True
        return 0

    # ---- Numbers of the terms -----------------------------------------------------------------

    cdef double* alpha(self) noexcept nogil:
        return <double*> self.terms.stored.data

    cdef double* gradient(self) noexcept nogil:
        return <double*> self.numbers.data

    cdef double* bounds(self) noexcept nogil:
        return <double*> self.numbers.data + self.numbers.capacity

    cdef double* row(self, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a term with all slots."""
        return <double*> self.kernel_values.data + slot * self.kernel_values.capacity

    # ---- Whether an example enters ------------------------------------------------------------

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        return sizeof(Admission)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        """O(terms)."""
        cdef Admission* next = <Admission*> e.decision
        stand_still(&e.move)
        next.bound, next.own = e.view.target * self.penalty * e.view.weight, e.view.k
        if next.own > 0.0 and next.bound != 0.0 and (self.admits or self.is_wanted(e.view.target - e.view.bare, next.bound)):
            e.move.alpha[0] = next.bound        # of its size; `follow` says what it is

    cdef bint is_wanted(self, double gradient, double bound) noexcept nogil:
        """Whether it makes a pair that is worth a step, or there is nobody to make one with, and few wait for that."""
        cdef Pair pair = self.best_pair()
        if (pair.down if bound > 0.0 else pair.up) == NOBODY:
            return self.terms.count < SEEDS
        if bound > 0.0:
            return gradient - self.gradient()[pair.down] > self.tolerance
        return self.gradient()[pair.up] - gradient > self.tolerance

    cdef bint is_finite(self, Example e) noexcept nogil:
        cdef Admission* next = <Admission*> e.decision
        return fabs(next.bound) * next.own < 1e150      # so that gradients stay finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        self.offset = offset
        self.rows_gap = 0.0

    # ---- Steps --------------------------------------------------------------------------------

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        """O(terms)."""
        if w.piece.slot >= 0:
            self.process(w.piece, <Admission*> e.decision)
        self.reprocess()

    cdef void process(self, Piece piece, const Admission* admitted) noexcept nogil:
        """The example has entered a slot: a step with the best partner."""
        cdef Py_ssize_t other, slot = piece.slot, start = self.dictionary.start
        cdef double* row = self.row(slot)
        cdef double gradient = 1.0 if admitted.bound > 0.0 else -1.0
        cdef Pair pair
        self.alpha()[slot] = 0.0
        self.function.rows.newcomers_values(piece, slot, admitted.own, row + start)
        for other in range(start, self.dictionary.stop):
            if not self.terms.holds(other):
                row[other] = 0.0
            self.row(other)[slot] = row[other]
            gradient -= self.alpha()[other] * row[other]
        self.gradient()[slot], self.bounds()[slot] = gradient, admitted.bound
        pair = self.best_pair()
        if admitted.bound > 0.0:
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
        cdef double* g = self.gradient()
        if pair.up != NOBODY and pair.down != NOBODY:
            self.offset[0] = 0.5 * (g[pair.up] + g[pair.down])
        elif pair.up != NOBODY:
            self.offset[0] = g[pair.up]
        elif pair.down != NOBODY:
            self.offset[0] = g[pair.down]

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
        """Go to the maximum along the direction (up, down), as far as the bounds let; False if it is not worth it. O(terms)."""
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
        a[i], a[j] = settled(a[i] + step, self.bounds()[i]), settled(a[j] - step, self.bounds()[j])
        rise, fall = rise + a[i], fall - a[j]
        for slot in range(self.dictionary.start, self.dictionary.stop):
            g[slot] -= rise * k_i[slot] - fall * k_j[slot]
        return True

    cdef void remove_idle(self, Pair pair) noexcept nogil:
        """Terms with coefficient 0 go that would make no pair with the best partner."""
        cdef Py_ssize_t slot
        cdef double largest, smallest
        if pair.up == NOBODY or pair.down == NOBODY:
            return
        largest, smallest = self.gradient()[pair.up], self.gradient()[pair.down]
        largest -= rounding(largest)
        smallest += rounding(smallest)
        for slot in range(self.dictionary.start, self.dictionary.stop):
            if self.terms.holds(slot) and self.alpha()[slot] == 0.0:
                if (self.gradient()[slot] <= smallest if self.bounds()[slot] > 0.0 else self.gradient()[slot] >= largest):
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

    # ---- State --------------------------------------------------------------------------------

    def state(self, Py_ssize_t labels):
        gradients, bounds = self.numbers.array[:, self.dictionary.saved_slots()]
        return {"gradients": gradients, "bounds": bounds, "rows_gap": self.rows_gap}

    def check_state(self, state):
        check_number(state["rows_gap"], "rows_gap", 0.0)
        n = (len(state["birthdays"]),)
        check_array(state["gradients"], "gradients", np.float64, n)
        bounds = check_array(state["bounds"], "bounds", np.float64, n)
        share = state["coefficients"][0] * np.sign(bounds)
        if not (bounds != 0).all() or (share < 0).any() or (share > np.abs(bounds)).any():
            raise ValueError("a coefficient is not within its bounds")
        if not np.array_equal(state["frame"], [[1.0]]):
            raise ValueError("the frame is not 1")

    def restore(self, state):
        self.numbers.array[0], self.numbers.array[1] = state["gradients"], state["bounds"]
        self.rows_gap = state["rows_gap"]
        lower = np.tril(self.function.rows.values_between())     # of two, the younger has looked at the older
        self.kernel_values.array[:] = lower + np.tril(lower, -1).T

    def _check(self):
        held = self.terms.mine.array[0] != 0
        bounds, share = self.numbers.array[1], self.terms.stored.array[0] * np.sign(self.numbers.array[1])
        assert (bounds[held] != 0).all() and (share[held] >= 0).all() and (share <= np.abs(bounds))[held].all()
        assert np.isfinite(self.numbers.array[0, held]).all()
        values = self.kernel_values.array
        assert np.array_equal(values, values.T) and not values[~held].any()
