"""What is usual of targets and of errors: the unit in which errors are counted."""
import numpy as np
from libc.math cimport fabs, fmax, fmin
from onlinekernels._core.arrays import check_array

cdef double LONG = 0.995            # memory of the usual squared error
FEW = 30


cdef class Usual:
    """What is usual of targets: their range, and the fading mean of squared errors."""

    def __init__(self, Py_ssize_t targets):
        self.sums = np.zeros((2, targets))      # of squared errors, and of their weights
        self.low, self.high, self.t = np.full(targets, np.inf), np.full(targets, -np.inf), 0

    def state(self):
        """What is learned, by name."""
        seen = self.low <= self.high
        return {"sums": self.sums.copy(), "low": np.where(seen, self.low, 0.0), "high": np.where(seen, self.high, 0.0),
                "rows": int(self.t)}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        targets = self.sums.shape[1]
        sums = check_array(state["sums"], "sums", np.float64, (2, targets))
        low, high = (check_array(state[name], name, np.float64, (targets,)) for name in ("low", "high"))
        if (sums < 0.0).any() or (low > high).any():
            raise ValueError("the sums of squared errors make no sense")
        self.t = checked_count(state["rows"])
        self.sums[:] = sums
        seen = sums[1] > 0.0            # and not only rows that did not count, as the first
        self.low[:], self.high[:] = np.where(seen, low, np.inf), np.where(seen, high, -np.inf)


cdef double usual_square(const double* sums, Py_ssize_t targets, Py_ssize_t j, double low, double high) noexcept nogil:
    """The usual squared error of a target: beforehand 1/16 of its squared range, which counts as one row, or 1; never nothing."""
    cdef double reach = high - low if low < high else 0.0, most = fmax(fabs(low), fabs(high)) if low <= high else 1.0
    if reach == 0.0:
        return fmax(sums[j] / sums[targets + j] if sums[targets + j] > 0.0 else 1.0, fmax(1e-12 * most * most, 1e-300))
    return fmax((sums[j] + 0.0625 * reach * reach) / (sums[targets + j] + 1.0), 1e-12 * reach * reach)


cdef void learn_usual(double* sums, Py_ssize_t targets, Py_ssize_t j, double error, double count, double size,
                      long long t) noexcept nogil:
    """Take in an error; what is more than 4 times the usual counts as that, once 30 rows have been seen.

    While there are few rows, errors fall fast, and the last third of them is remembered.
    """
    cdef double square = error * error, memory = fmin(LONG, 1.0 - 3.0 / (t + 6.0))
    if t >= FEW and square > 16.0 * size:
        square = 16.0 * size
    sums[j] = memory * sums[j] + count * square
    sums[targets + j] = memory * sums[targets + j] + count


def checked_count(value):
    """A number of rows, or ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError("t is not a number of rows")
    return value
