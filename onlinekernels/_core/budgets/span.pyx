"""What the points of terms span, which budgets that project need to know."""
import numpy as np
from libc.math cimport fmax, sqrt
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_rotate
from onlinekernels._core.functions.coefficients cimport NOBODY

cdef enum:
    VECTORS = 8         # of a span, beside its factor
    KEPT = 3            # of these, those that are not scratch

cdef double ROUNDING = 2.220446049250313e-16
cdef double WORN = 1e-4                 # the diagonal of an inverse is computed anew before it is further off than that


cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so newcomers come last.  A newcomer adds a column, and what leaves is rotated
    out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    def __init__(self):
        self.make_room(0)

    cdef make_room(self, Py_ssize_t room):
        """Room for so many points; those that are there stay."""
        cdef Py_ssize_t n = self.n
        cdef Py_ssize_t* slots
        cdef double* numbers
        array, order = aligned_empty((room + VECTORS, room), np.dtype(float)), np.zeros(room, dtype=np.intp)
        slots, numbers = <Py_ssize_t*> array_data(order), <double*> array_data(array)
        array[:] = 0.0
        if n:
            array[:n, :n] = self.array[:n, :n]
            array[room:room + KEPT, :n] = self.array[self.room:self.room + KEPT, :n]
            order[:n] = self.order_array[:n]
        # Nothing below can fail.
        self.room, self.array, self.order_array = room, array, order
        self.order, self.factor = slots, numbers
        self.own = self.factor + room * room
        self.spike = self.own + room
        self.wear = self.spike + room
        self.row = self.wear + room
        self.way = self.row + room
        self.shares = self.way + room
        self.column = self.shares + room

    cdef void solve(self, Py_ssize_t first, double* way, double* out) noexcept nogil:
        """K out = way, which is 0 before `first`; way becomes R'^-1 way."""
        cdef Py_ssize_t i, n = self.n, room = self.room
        cdef double* row
        for i in range(first, n):
            row = self.factor + i * room
            way[i] /= row[i]
            ok_axpy(-way[i], row + i + 1, way + i + 1, n - i - 1)
        for i in range(n - 1, -1, -1):
            row = self.factor + i * room
            out[i] = (way[i] - ok_dot(row + i + 1, out + i + 1, n - i - 1)) / row[i]

    cdef void look(self, const double* values, Py_ssize_t start, double own) noexcept nogil:
        """How a point that has these kernel values with the slots in use lies to the span."""
        cdef Py_ssize_t i
        for i in range(self.n):
            self.way[i] = self.row[i] = values[self.order[i] - start]
        self.solve(0, self.way, self.shares)
        self.own_value = own
        self.residual = fmax(0.0, own - ok_dot(self.way, self.way, self.n))

    cdef void append(self) noexcept nogil:
        """The point that was looked at is one of them, the last; its slot is not known yet."""
        cdef Py_ssize_t i, n = self.n
        cdef double change, error = ROUNDING * self.own_value / self.residual
        for i in range(n):
            self.factor[i * self.room + n] = self.way[i]
            change = self.shares[i] * self.shares[i] / self.residual
            self.spike[i] += change
            self.wear[i] += error * change
        self.factor[n * self.room + n] = sqrt(self.residual)
        self.own[n], self.spike[n], self.wear[n] = self.own_value, 1.0 / self.residual, 0.0
        self.order[n] = NOBODY
        self.n = n + 1

    cdef double leave(self, Py_ssize_t place) noexcept nogil:
        """A point is not one of them any more. Return its residual; its projection onto the others has the coefficients
        -column / column[place], with places as they were."""
        cdef Py_ssize_t i, k, n = self.n, room = self.room
        cdef double* row
        cdef double* carry = self.way
        cdef double c, s, length, residual, change, error
        memset(self.way, 0, n * sizeof(double))
        self.way[place] = 1.0
        self.solve(place, self.way, self.column)
        residual = 1.0 / self.column[place]
        error = ROUNDING * self.own[place] * self.column[place]
        for i in range(n):                      # an inverse's diagonal is at least one over the matrix's
            change = self.column[i] * self.column[i] * residual
            self.spike[i] = fmax(self.spike[i] - change, 1.0 / self.own[i])
            self.wear[i] += error * change
        for i in range(place):
            row = self.factor + i * room
            memmove(row + place, row + place + 1, (n - 1 - place) * sizeof(double))
        # Without its column the rows below have one entry too many: rotate pairs of rows, the upper one in `carry`.
        memcpy(carry, self.factor + place * room + place + 1, (n - 1 - place) * sizeof(double))
        for k in range(place, n - 1):
            row = self.factor + (k + 1) * room + k + 1
            length = sqrt(carry[k - place] * carry[k - place] + row[0] * row[0])
            c, s = carry[k - place] / length, row[0] / length
            ok_rotate(c, s, carry + k - place, row, self.factor + k * room + k, n - 1 - k)
        for i in range(place, n - 1):
            self.own[i], self.spike[i], self.wear[i] = self.own[i + 1], self.spike[i + 1], self.wear[i + 1]
            self.order[i] = self.order[i + 1]
        self.n = n - 1
        for i in range(n - 1):
            if self.wear[i] > WORN * self.spike[i]:
                self.renew_spike(i)
        return residual

    cdef void renew_spike(self, Py_ssize_t place) noexcept nogil:
        """What sums and differences have left of it is rounding: |R'^-1 e|^2, from the factor."""
        cdef Py_ssize_t i, n = self.n
        cdef double* way = self.way
        cdef double* row
        memset(way, 0, n * sizeof(double))
        way[place] = 1.0
        for i in range(place, n):
            row = self.factor + i * self.room
            way[i] /= row[i]
            ok_axpy(-way[i], row + i + 1, way + i + 1, n - i - 1)
        self.spike[place], self.wear[place] = ok_dot(way + place, way + place, n - place), 0.0

    def state(self):
        """Named arrays."""
        return {"factor": self.array[:self.n, :self.n][np.triu_indices(self.n)],
                "spikes": self.array[self.room:self.room + 2, :self.n].copy(),
                "wear": self.array[self.room + 2, :self.n].copy()}

    def check_state(self, state, Py_ssize_t n, double floor):
        """ValueError unless a state is about n points that no others nearly span."""
        factor = np.zeros((n, n))
        factor[np.triu_indices(n)] = check_array(state["factor"], "factor", np.float64, (n * (n + 1) // 2,))
        own, spike = check_array(state["spikes"], "spikes", np.float64, (2, n))
        if "wear" in state and (check_array(state["wear"], "wear", np.float64, (n,)) < 0).any():
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
        """Continue from a state that has been checked."""
        n = len(slots)
        self.n = 0
        self.make_room(max(self.room, n))
        self.array[:n, :n][np.triu_indices(n)] = state["factor"]
        self.array[self.room:self.room + 2, :n] = state["spikes"]
        self.array[self.room + 2, :n] = state.get("wear", state["spikes"][1])       # earlier files do not know: renew all
        self.order_array[:n] = slots
        self.n = n

    def gram(self):
        """K, from its factor."""
        upper = np.triu(self.array[:self.n, :self.n])
        return upper.T @ upper
