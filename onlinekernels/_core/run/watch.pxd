"""Signs that learning has gone wrong. Nothing here changes what is learned.

A *runaway* scalar lies below, or above, everything that it was held against for a long time: it tells nothing apart.
Learning *diverges* when scores of a regression are far beyond every target that was ever seen. It has *stalled* when
an adapted step has fallen to nothing. A margin is *out of reach* if regularization keeps f below it. A rule notices by itself
that it had to start anew. That f is *no better* than a constant is for a `Trial` to say.
"""
from libc.math cimport INFINITY, fabs, fmax, fmin

cdef enum Trouble:
    NO_TROUBLE = 0
    SCALAR_BELOW = 1    # below all scores (margins), or below all errors (widths)
    SCALAR_ABOVE = 2
    DIVERGED = 3
    STALLED = 4
    RESTARTED = 5       # f would have grown beyond what numbers can hold
    NO_BETTER = 6       # than a constant
    OUT_OF_REACH = 7    # a margin that no f can have

cdef enum:
    LONG = 5            # blocks after which a scalar has run away
    MANY = 10           # wild scores after which learning has diverged
    ENOUGH = 100        # examples after which it is known how large k(x, x) is
    STILL = 100         # examples without a step after which it has stalled

cdef struct Watch:
    long long block     # examples that are looked at together; 0 if there is no scalar to watch
    long long rows      # of them so far
    double low          # range of what the scalar was held against in this block
    double high         # its upper end
    double last_low     # and in the one before
    double last_high    # its upper end
    int side            # blocks in a row that ended with the scalar below (negative) or above (positive) that range
    double largest      # |y| of a regression so far
    int wild            # scores so far that were more than ten times that
    int still           # examples so far whose adapted step was less than a millionth of the first
    bint holds_margin   # whether a fixed margin is watched
    long long seen      # examples so far, if it is
    double largest_k    # k(x, x) of them
    double largest_weight # of them
    int trouble         # what has been seen first


cdef inline Watch new_watch(double nu, bint holds_margin) noexcept nogil:
    """Blocks are so long that about ten errors are due in each, but not in step with a scalar that swings by 1 / nu."""
    cdef Watch watch
    watch.block = 0 if nu <= 0.0 else <long long> fmax(200.0, 10.38 / nu)
    watch.rows = 0
    watch.low = watch.last_low = INFINITY
    watch.high = watch.last_high = -INFINITY
    watch.side = watch.wild = watch.still = 0
    watch.largest = watch.largest_k = watch.largest_weight = 0.0
    watch.holds_margin, watch.seen = holds_margin, 0
    watch.trouble = NO_TROUBLE
    return watch


cdef inline void watch_scalar(Watch* watch, double compared, double scalar) noexcept nogil:
    """Take in what a scalar was held against, and what it has become."""
    cdef int side = 0
    watch.low = fmin(watch.low, compared)
    watch.high = fmax(watch.high, compared)
    watch.rows += 1
    if watch.rows < watch.block:
        return
    if scalar < fmin(watch.low, watch.last_low):
        side = -1
    elif scalar > fmax(watch.high, watch.last_high):
        side = 1
    watch.side = watch.side + side if side * watch.side > 0 else side
    if watch.trouble == NO_TROUBLE and (watch.side <= -LONG or watch.side >= LONG):
        watch.trouble = SCALAR_BELOW if side < 0 else SCALAR_ABOVE
    watch.last_low, watch.last_high = watch.low, watch.high
    watch.low, watch.high = INFINITY, -INFINITY
    watch.rows = 0


cdef inline void watch_score(Watch* watch, double score, double y) noexcept nogil:
    """Take in a score of a regression and its target."""
    watch.largest = fmax(watch.largest, fabs(y))
    if watch.largest > 0.0 and fabs(score) > 10.0 * watch.largest:
        watch.wild += 1
        if watch.trouble == NO_TROUBLE and watch.wild >= MANY:
            watch.trouble = DIVERGED


cdef inline void watch_margin(Watch* watch, double k, double weight) noexcept nogil:
    """Take in an example whose score should exceed a fixed margin."""
    watch.seen += 1
    watch.largest_k, watch.largest_weight = fmax(watch.largest_k, k), fmax(watch.largest_weight, weight)


cdef inline void watch_step(Watch* watch, double eta, double first) noexcept nogil:
    """Take in an adapted step."""
    if eta < 1e-6 * first:
        watch.still += 1
        if watch.trouble == NO_TROUBLE and watch.still >= STILL:
            watch.trouble = STALLED
