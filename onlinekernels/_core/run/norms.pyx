"""Norms that stay exact when terms go.

Moves say how |f|^2, and <f, v> of SVMD, change with them.  What a budget takes from f is subtracted here, at the price of an
evaluation of f.  What learns ahead of the labels has norms of its own.
"""
from libc.math cimport fabs, fmax, isfinite
from onlinekernels._core.formulas.moves cimport Norms, Standing, is_worn, without_term
from onlinekernels._core.functions cimport NEWCOMER, Example, Function, Scratch, Term


cdef class ExactNorms:
    """|f|^2, and <f, v> if there is a trace, of a function whose terms may go.

    Parameters
    ----------
    function : Function
    has_trace : bool
        Whether its second channel is the gradient trace v.
    """

    def __init__(self, Function function, bint has_trace):
        self.function, self.has_trace = function, has_trace

    cdef void decide(self, const Standing* now, Example e) noexcept nogil:
        """What the norms become if the hypothesis is transformed, and the newcomer does not come. O(1)."""
        e.without_newcomer = without_term(&now.norms, &e.move.norms, &e.move, self.has_trace)
        e.ahead_without_newcomer = without_term(&now.ahead, &e.move.ahead, &e.move, self.has_trace)

    cdef void project(self, Standing* now, Scratch w, Py_ssize_t slot, const Term* newcomer, double residual) noexcept nogil:
        """A term, or the newcomer, is projected onto the others. O(outputs).

        That takes from each function what is orthogonal to the others: its coefficient times the residual of k(x, .).
        """
        cdef Py_ssize_t l, labels = self.function.outputs.n, width = self.function.width
        cdef Py_ssize_t joined = self.function.outputs.joined
        cdef int channel
        for channel in range(self.has_trace + 1):
            if slot != NEWCOMER:
                self.function.coefficients_of(w, slot, channel, w.slot_coefficients + channel * width)
            else:
                self.over_labels(newcomer, channel, w.slot_coefficients + channel * width)
        for l in range(labels):
            w.slot_products[l] = w.slot_coefficients[l]
        self.function.outputs.apply(w.slot_products, w.nodes)
        self.subtract_residual(&now.norms, w, 0, joined, residual)
        if self.function.outputs.ahead:
            self.subtract_residual(&now.ahead, w, joined, joined + 1, residual)

    cdef void over_labels(self, const Term* term, int channel, double* out) noexcept nogil:
        """True coefficients of a term in a channel, over labels. O(outputs)."""
        cdef Py_ssize_t l, k
        for l in range(self.function.outputs.n):
            out[l] = 0.0
        for k in range(term.n):
            out[term.labels[k]] += term.alpha[channel * term.n + k]

    cdef void subtract_residual(self, Norms* norms, Scratch w, Py_ssize_t first, Py_ssize_t stop,
                                double residual) noexcept nogil:
        """Norms of some outputs without what `project` has found to be out of reach. O(outputs)."""
        cdef Py_ssize_t l, width = self.function.width
        cdef double* a = w.slot_coefficients
        cdef double* K_a = w.slot_products
        norms.peak = fmax(norms.peak, norms.square)
        for l in range(first, stop):
            norms.square -= residual * a[l] * K_a[l]
            if self.has_trace:
                norms.product -= residual * a[width + l] * K_a[l]
        norms.square = fmax(0.0, norms.square)

    cdef void forget(self, Standing* now, Scratch w, Py_ssize_t slot, const Term* newcomer, double k_new) noexcept nogil:
        """The term in a slot goes (V's erratum: the paper ignores what is dropped). O(terms), as an evaluation of f.

        f and v at its point are those of the function and, if there is one, of the newcomer that is not in it yet:
        its coefficients times k_new, its kernel value with the term.
        """
        cdef Py_ssize_t l, labels = self.function.outputs.n, width = self.function.width
        cdef Py_ssize_t joined = self.function.outputs.joined
        cdef int channel, last = self.has_trace
        cdef double own = 0.0
        cdef double* f = w.slot_scores
        cdef double* a = w.slot_coefficients
        cdef double* K_a = w.slot_products
        self.function.evaluate_slot(w, slot, last, f, &own)
        if newcomer != NULL:
            for channel in range(last + 1):
                self.over_labels(newcomer, channel, a)
                self.function.outputs.apply(a, w.nodes)
                for l in range(labels):
                    f[channel * width + l] += k_new * a[l]
        for channel in range(last + 1):
            self.function.coefficients_of(w, slot, channel, a + channel * width)
        for l in range(labels):
            K_a[l] = a[l]
        self.function.outputs.apply(K_a, w.nodes)
        self.subtract_term(&now.norms, w, 0, joined, own)
        if self.function.outputs.ahead:
            self.subtract_term(&now.ahead, w, joined, joined + 1, own)

    cdef void subtract_term(self, Norms* norms, Scratch w, Py_ssize_t first, Py_ssize_t stop, double own) noexcept nogil:
        """Norms of some outputs without the term that `forget` has looked at. O(outputs)."""
        cdef Py_ssize_t l, width = self.function.width
        cdef double* f = w.slot_scores
        cdef double* a = w.slot_coefficients
        cdef double* K_a = w.slot_products
        for l in range(first, stop):
            norms.peak = fmax(norms.peak, fmax(norms.square, fabs(own * a[l] * K_a[l])))
            norms.square += a[l] * (own * K_a[l] - 2.0 * f[l])
        if norms.square < 0.0:
            norms.square = 0.0
        if self.has_trace:
            for l in range(first, stop):
                norms.product += a[width + l] * (own * K_a[l] - f[l]) - a[l] * f[width + l]

    # ---- Rounding -----------------------------------------------------------------------------

    cdef bint are_worn(self, const Standing* now) noexcept nogil:
        """Whether |f|^2 is; with a trace it is not computed anew. O(1)."""
        return not self.has_trace and is_worn(&now.norms)

    cdef void renew(self, Standing* now, Scratch w) noexcept nogil:
        """Compute |f|^2 anew if it is worn, O(terms^2); for kernels in Python that waits for the next example."""
        cdef double square
        now.norms.peak = fmax(now.norms.peak, now.norms.square)
        if self.are_worn(now):
            square = self.function.square(w)
            if isfinite(square):
                now.norms.square = now.norms.peak = fmax(0.0, square)

    cdef int renew_from_python(self, Standing* now) except -1:
        """The same between two examples. As `renew`."""
        if self.are_worn(now):
            square = self.function.square_from_python()
            if square is not None:
                now.norms.square = now.norms.peak = max(0.0, square)
        return 0
