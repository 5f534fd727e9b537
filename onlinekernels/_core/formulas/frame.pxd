"""The frame: decay, gradient trace and average in O(1) per step, whatever the number of terms.

Each term stores coordinates, one per channel (f; later the gradient trace v; the running sum F of all hypotheses).  The
true coefficients are P @ stored for one small lower-triangular matrix P that all terms share.  A step transforms all
old coefficients by M, and so touches only P: P <- M P. A new term with true coefficients alpha stores P^-1 alpha.  When
P gets bad it is *folded*: multiplied into what is stored, and reset to the identity.  (K II-D, V (32), H 2.5; K's
printed alpha~ = (1-eta)^-t alpha lacks lambda and is off by one power.)
"""
from libc.math cimport fabs

cdef enum:
    MAX_CHANNELS = 3

cdef struct Frame:
    int channels                            # rows and columns of P
    double p[MAX_CHANNELS][MAX_CHANNELS]    # lower triangular


cdef inline void frame_reset(Frame* frame) noexcept nogil:
    cdef int i, j
    for i in range(MAX_CHANNELS):
        for j in range(MAX_CHANNELS):
            frame.p[i][j] = 1.0 if i == j else 0.0


cdef inline double frame_row(const Frame* frame, int channel, const double* stored) noexcept nogil:
    """One true coordinate: row `channel` of P @ stored."""
    cdef int j
    cdef double total = 0.0
    for j in range(channel + 1):
        total += frame.p[channel][j] * stored[j]
    return total


cdef inline void frame_advance(Frame* frame, const double* move) noexcept nogil:
    """P <- M P, M lower triangular with rows of MAX_CHANNELS numbers."""
    cdef int i, j, k
    cdef double total
    # From the last row up, and M P is lower triangular too: each row needs only rows above it.
    for i in range(frame.channels - 1, -1, -1):
        for j in range(i + 1):
            total = 0.0
            for k in range(j, i + 1):
                total += move[i * MAX_CHANNELS + k] * frame.p[k][j]
            frame.p[i][j] = total


cdef inline void frame_store(const Frame* frame, const double* alpha, double* stored) noexcept nogil:
    """P^-1 alpha by forward substitution."""
    cdef int i, j
    cdef double rest
    for i in range(frame.channels):
        rest = alpha[i]
        for j in range(i):
            rest -= frame.p[i][j] * stored[j]
        stored[i] = rest / frame.p[i][i]


cdef inline bint frame_is_bad(const Frame* frame) noexcept nogil:
    """Whether P must be folded: out of range, singular, or (several channels) ill-conditioned.

    With several channels a coordinate is a difference of large products once the entries of P differ much: the average
    loses log10(max / min) digits, so that ratio stays below 1e4.
    """
    cdef int i, j
    cdef double smallest = fabs(frame.p[0][0]), largest = smallest, entry
    if frame.channels == 1:
        return smallest < 1e-100
    for i in range(frame.channels):
        for j in range(i + 1):
            entry = fabs(frame.p[i][j])
            if entry > largest:
                largest = entry
            if i == j and entry < smallest:
                smallest = entry
    return smallest < 1e-100 or largest > 1e4 * smallest
