"""The implicit step of a loss in Python: I's general recipe."""
cimport cython
from libc.math cimport fabs, fmax, isfinite
from onlinekernels._core.run.example cimport LOSS, PYTHON, Example

cdef double PRECISION = 1e-15       # of the coefficient
cdef double ROUNDING = 1e-7         # of slopes
cdef double DUST = 1e-12            # of the largest coefficient that there could be: a smaller one is none


class BadLoss(Exception):
    """What is wrong with a loss, and what kind of an error that is."""


@cython.final
cdef class ConvexStep:
    """alpha with alpha + size l'(z + alpha k, y) = 0, for any convex l, I (10).

    The left side rises with alpha, with slope 1 at least, and changes its sign between 0 and -size l'(z, y). Newton's steps,
    if the loss has a curvature, and otherwise those of false position shrink that bracket; where they do not halve it in
    three steps, bisection does. Where l' jumps across the root, the bracket closes at the jump.

    Parameters
    ----------
    loss : Loss
        A Python loss.
    squared : bool
        Take l^2 instead, which is convex if l is and not negative: PA-II.
    """

    def __init__(self, loss, bint squared=False):
        self.loss = loss
        self.squared = squared
        self.has_curvature = loss.has_curvature and not squared

    cdef double alpha(self, double z, double y, double k, double size, Example e) noexcept with gil:
        """The coefficient; 0, with the reason in e.failure, if the loss fails. Some 50 calls of it where it has a kink."""
        try:
            return self.root(z, y, k, size)
        except BadLoss as bad:
            e.error, e.failure = bad.args, LOSS
        except BaseException as error:
            e.error, e.failure = error, PYTHON
        return 0.0

    cdef double root(self, double z, double y, double k, double size) except? -1.0:
        """u > 0 goes down the slope: h(u) = side l'(z + side u k) rises from h(0) < 0, and the root is that of u + size h(u)."""
        cdef double first = self.slope(z, y), side = 1.0 if first < 0.0 else -1.0
        cdef double low = 0.0, low_h = -fabs(first), low_value = size * low_h
        cdef double high = -low_value, high_h, high_value, largest = high
        cdef double u, h, value, tolerance, wide = high, slope, low_weight = 1.0, high_weight = 1.0
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
            if high_value <= 0.0 or high - low <= tolerance or high <= DUST * largest:
                break
            if slow == 3:
                u, slow, wide = 0.5 * (low + high), 0, high - low
            else:
                u = (low * high_weight * high_value - high * low_weight * low_value) / (
                    high_weight * high_value - low_weight * low_value)
                if self.has_curvature:
                    u, value = (high, high_value) if high_value < -low_value else (low, low_value)
                    slope = 1.0 + size * k * self.asked("curvature", z + side * u * k, y)
                    u = u - value / slope if slope >= 1.0 else 0.5 * (low + high)
            u = min(max(u, low + 0.5 * tolerance), high - 0.5 * tolerance)      # never nothing, so that the bracket closes
            h = side * self.slope(z + side * u * k, y)
            self.check_order(first, z, side, k, low, low_h, u, h, y)
            self.check_order(first, z, side, k, u, h, high, high_h, y)
            value = u + size * h
            if value >= 0.0:
                high, high_h, high_value, high_weight = u, h, value, 1.0
                low_weight = 0.5 * low_weight if before > 0 else 1.0            # an end that stays counts less and less: Illinois
            if value <= 0.0:
                low, low_h, low_value, low_weight = u, h, value, 1.0
                high_weight = 0.5 * high_weight if before < 0 else 1.0
            before = 1 if value >= 0.0 else -1
            slow += 1
            if high - low <= 0.5 * wide:
                slow, wide = 0, high - low
        return side * high if high > DUST * largest else 0.0

    cdef double slope(self, double z, double y) except? -1.0:
        """l'(z, y), or that of l^2."""
        cdef double slope = self.asked("derivative", z, y), value
        if self.squared:
            value = self.asked("value", z, y)
            if value < 0.0:
                raise BadLoss(ValueError, f"its loss is squared, and value({z:.6g}, {y:.6g}) of {self.name()} is {value:.6g} < 0")
            slope *= 2.0 * value
        return slope

    cdef double asked(self, name, double z, double y) except? -1.0:
        cdef double answer = getattr(self.loss, name)(z, y)
        if not isfinite(answer):
            raise BadLoss(FloatingPointError, f"{name}({z:.6g}, {y:.6g}) of {self.name()} is {answer}")
        return answer

    def name(self):
        return type(self.loss).__name__

    cdef int check_order(self, double first, double z, double side, double k, double u, double h, double w, double g,
                         double y) except -1:
        """h(u) <= g = h(w) for u < w, up to rounding: that of scores may be large beside a slope that is nearly 0."""
        if h - g > ROUNDING * fmax(fabs(first), fmax(fabs(h), fabs(g))):
            raise BadLoss(
                ValueError,
                f"{self.name()} is not convex, and has no implicit step; with NORMA it works. Its derivative should not fall, and is "
                f"{side * h:.6g} at {z + side * u * k:.6g} and {side * g:.6g} at {z + side * w * k:.6g} for y = {y:.6g}",
            )
        return 0
