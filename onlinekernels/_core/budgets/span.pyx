"""What the points of terms span, which budgets that project need to know."""
import numpy as np
from libc.math cimport fmax, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.formulas.factor cimport Factor
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions.coefficients cimport NOBODY

cdef enum:
    VECTORS = 7         # of a span
    KEPT = 3            # of these, those that are not scratch

cdef double ROUNDING = 2.220446049250313e-16
cdef double WORN = 1e-4                 # the diagonal of an inverse is computed anew before it is further off than that


cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so newcomers come last.  A newcomer adds a row, and what leaves is rotated
    out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    def __init__(self):
        self.factor = Factor(0)
        self.make_room(0)

    cdef make_room(self, Py_ssize_t room):
        """Room for so many points; those that are there stay. O(room^2) when it grows."""
        cdef Py_ssize_t n = self.n
        cdef Py_ssize_t* slots
        cdef double* numbers
        factor = self.factor.with_room(room)
        array, order = aligned_empty((VECTORS, room), np.dtype(float)), np.zeros(room, dtype=np.intp)
        slots, numbers = <Py_ssize_t*> array_data(order), <double*> array_data(array)
        array[:] = 0.0
        if n:
            array[:KEPT, :n] = self.array[:KEPT, :n]
            order[:n] = self.order_array[:n]
        # Nothing below can fail.
        self.factor, self.room, self.array, self.order_array = factor, room, array, order
        self.order, self.own = slots, numbers
        self.spike = self.own + room
        self.wear = self.spike + room
        self.way = self.wear + room
        self.column = self.way + room
        self.scratch = self.column + room

    cdef void look(self, const double* values, Py_ssize_t start, double own, Look* look) noexcept nogil:
        """How a point that has these kernel values with the slots in use lies to the span, which does not change: O(n^2)."""
        cdef Py_ssize_t i, n = self.n
        for i in range(n):
            look.way[i] = values[self.order[i] - start]
        self.factor.solve(look.way, 0)
        memcpy(look.shares, look.way, n * sizeof(double))
        self.factor.solve_transposed(look.shares, 1, 1)
        look.own = own
        look.residual = fmax(0.0, own - ok_dot(look.way, look.way, n))

    cdef void append(self, const Look* look) noexcept nogil:
        """The point that was looked at is one of them, the last; its slot is not known yet: O(n)."""
        cdef Py_ssize_t i, n = self.n
        cdef double change, error = ROUNDING * look.own / look.residual
        for i in range(n):
            change = look.shares[i] * look.shares[i] / look.residual
            self.spike[i] += change
            self.wear[i] += error * change
        self.factor.append(look.way, sqrt(look.residual))
        self.own[n], self.spike[n], self.wear[n] = look.own, 1.0 / look.residual, 0.0
        self.order[n] = NOBODY
        self.n = n + 1

    cdef double leave(self, Py_ssize_t i) noexcept nogil:
        """Point i is not one of them any more: O(n^2), and O(n^2) for each entry of the diagonal that is worn.

        Return its residual; its projection onto the others has the coefficients -column / column[i], as they were numbered.
        """
        cdef Py_ssize_t j, n = self.n
        cdef double residual, change, error
        self.unit_solution(i)
        memcpy(self.column, self.way, n * sizeof(double))
        self.factor.solve_transposed(self.column, 1, 1)
        residual = 1.0 / self.column[i]
        error = ROUNDING * self.own[i] * self.column[i]
        for j in range(n):                      # an inverse's diagonal is at least one over the matrix's
            change = self.column[j] * self.column[j] * residual
            self.spike[j] = fmax(self.spike[j] - change, 1.0 / self.own[j])
            self.wear[j] += error * change
        self.factor.remove(i, self.scratch)
        for j in range(i, n - 1):
            self.own[j], self.spike[j], self.wear[j] = self.own[j + 1], self.spike[j + 1], self.wear[j + 1]
            self.order[j] = self.order[j + 1]
        self.n = n - 1
        for j in range(n - 1):                  # what sums and differences have left of it is rounding
            if self.wear[j] > WORN * self.spike[j]:
                self.spike[j], self.wear[j] = self.unit_solution(j), 0.0
        return residual

    cdef double unit_solution(self, Py_ssize_t i) noexcept nogil:
        """L^-1 e_i into `way`; return its square, (K^-1)_ii. O(n^2)."""
        memset(self.way, 0, self.n * sizeof(double))
        self.way[i] = 1.0
        self.factor.solve(self.way, i)
        return ok_dot(self.way + i, self.way + i, self.n - i)

    def state(self):
        """Named arrays. O(n^2)."""
        return {"factor": self.factor.lower().T[np.triu_indices(self.n)], "spikes": self.array[:2, :self.n].copy(),
                "wear": self.array[2, :self.n].copy()}

    def check_state(self, state, Py_ssize_t n, double floor):
        """ValueError unless a state is about n points that no others nearly span. O(n^3)."""
        factor = np.zeros((n, n))
        factor[np.triu_indices(n)] = check_array(state["factor"], "factor", np.float64, (n * (n + 1) // 2,))
        own, spike = check_array(state["spikes"], "spikes", np.float64, (2, n))
        if (check_array(state["wear"], "wear", np.float64, (n,)) < 0).any():
            raise ValueError("wear is negative")
        with np.errstate(over="ignore"):
            square = (factor**2).sum(axis=0)
        if not (np.isfinite(square).all() and (np.diag(factor) > 0).all() and (np.diag(factor)**2 > 0.5 * floor * square).all()):
            raise ValueError("factor is not that of terms that are independent")
        if not ((own > 0).all() and np.allclose(own, square, rtol=1e-3, atol=0) and (spike * own >= 1 - 1e-6).all()):
            raise ValueError("spikes do not fit the factor")
        if n and not np.allclose(spike, (np.linalg.inv(factor)**2).sum(axis=1), rtol=1e-3):
            raise ValueError("spikes are not the diagonal of the inverse")

    def restore(self, state, slots):
        """Continue from a state that has been checked. O(n^2)."""
        n = len(slots)
        self.factor, self.n = Factor(0), 0
        self.make_room(max(self.room, n))
        upper = np.zeros((n, n))
        upper[np.triu_indices(n)] = state["factor"]
        self.factor.load(upper.T)
        self.array[:2, :n] = state["spikes"]
        self.array[2, :n] = state["wear"]
        self.order_array[:n] = slots
        self.n = n
