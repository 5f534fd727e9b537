"""Which points a posterior stands on: at a checkpoint, who of the pending rows joins, and who leaves.

Those join that f at the points does not determine; if there are more points than a budget allows, those leave that the mean
of f would miss least. With a small tolerance, points leave too that the others have come to determine: otherwise L is so
near to singular that coordinates are nothing but rounding.
"""
from libc.math cimport INFINITY, fmax, sqrt
from libc.string cimport memcpy
from onlinekernels._core.linalg cimport (ALL, OK_REFLECTED, Factor, matrix, multiply, ok_column_squares, ok_eliminate,
                                         ok_find_reflections, ok_invert_lower, ok_largest_above, ok_leave, ok_losses,
                                         ok_oldest, ok_reflect, ok_reflections, ok_reflections_size, ok_turn)
from onlinekernels._core.formulas.vecmath cimport ok_dot, ok_least
from onlinekernels._core.posterior cimport CHECKPOINT, INVERSE, LEAVING, PRODUCTS, TURNED, Posterior, PosteriorScratch

cdef double NEAR = 1e-6         # relative: what is closer than that is the same, and the earlier one goes first
cdef long long LATER = 0x7fffffffffffffff   # than any birthday


cdef Py_ssize_t find_newcomers(Posterior f, PosteriorScratch w, double tolerance, double* V, Py_ssize_t* joining,
                               double* rounding) except -1:
    """Who joins: pivoted Cholesky of what f at the points does not determine of the pending rows: O(CHECKPOINT^3).

    The one that is determined least comes first, and among those that are nearly the same, the earliest. V has a row
    for each of them, joining their numbers. A variance below 0 shows how large rounding is, which grows to ten times that.
    """
    cdef Py_ssize_t i, r, best, count = 0, room = f.capacity
    cdef double rest[CHECKPOINT]
    cdef double own[CHECKPOINT]
    cdef double* R
    cdef double* A
    for i in range(CHECKPOINT):
        own[i] = f.K[i * (CHECKPOINT + 1)]
        rest[i] = own[i] - ok_dot(f.a + i * room, f.a + i * room, f.n)
    if ok_largest_above(rest, fmax(tolerance, rounding[0]), own, CHECKPOINT) == 0.0:
        return 0
    R = <double*> w.buffer(PRODUCTS, CHECKPOINT * CHECKPOINT * sizeof(double))
    A = <double*> w.buffer(TURNED, max(1, f.n) * CHECKPOINT * sizeof(double))
    ok_turn(f.a, room, CHECKPOINT, f.n, A, CHECKPOINT)
    multiply(R, CHECKPOINT, matrix(f.a, CHECKPOINT, f.n, room), matrix(A, f.n, CHECKPOINT, CHECKPOINT), 0)
    with nogil:
        for i in range(CHECKPOINT):
            for r in range(i):
                R[i * CHECKPOINT + r] = f.K[i * CHECKPOINT + r] - R[i * CHECKPOINT + r]
                if own[i] == 0.0 or own[r] == 0.0:          # left out
                    R[i * CHECKPOINT + r] = 0.0
                R[r * CHECKPOINT + i] = R[i * CHECKPOINT + r]
            R[i * CHECKPOINT + i] = rest[i]
        while count < CHECKPOINT:
            if ok_least(rest, CHECKPOINT) < 0.0:
                for i in range(CHECKPOINT):
                    if rest[i] < 0.0 and own[i] > 0.0:
                        rounding[0] = fmax(rounding[0], -10.0 * rest[i] / own[i])
            best = least_determined(rest, own, fmax(tolerance, rounding[0]))
            if best < 0:
                break
            joining[count] = best
            join(R, V, joining, count, sqrt(rest[best]))
            for i in range(CHECKPOINT):
                rest[i] -= V[count * CHECKPOINT + i] * V[count * CHECKPOINT + i]
            count += 1
            rest[best] = own[best] = 0.0        # it is determined, and no example any more
    return count


cdef Py_ssize_t forget_newcomers(PosteriorScratch w, double* V, Py_ssize_t* joining, Py_ssize_t count,
                                 const unsigned char* gone) except -1:
    """Only those join that are not gone: V and joining become theirs; return how many. O(CHECKPOINT stayers^2)."""
    cdef const double* R = <const double*> w.buffer(PRODUCTS, CHECKPOINT * CHECKPOINT * sizeof(double))
    cdef Py_ssize_t i, r, best, stayers = 0
    cdef double square, least
    for i in range(count):
        if gone[i]:
            continue
        best = joining[i]
        least = V[i * CHECKPOINT + best]    # its root, given all of those before it and not only those that stay
        square = R[best * CHECKPOINT + best]
        for r in range(stayers):
            square -= V[r * CHECKPOINT + best] * V[r * CHECKPOINT + best]
        if i > stayers:
            joining[stayers] = best
            join(R, V, joining, stayers, sqrt(fmax(square, least * least)))
        stayers += 1
    return stayers


cdef int choose_leavers(Posterior f, Factor factor, PosteriorScratch w, long long budget, const double* mean, Py_ssize_t size,
                        long long* births, double rounding, unsigned char* gone) except -1:
    """Mark which of so many points, of which this is the mean, go, one after another; return how many.

    First those that f at all others determines: its variance given these, 1 / Q_ii with Q = K^-1, is `rounding`. Then, as
    long as there are more than the budget allows, each time the one without which the mean changes least: without point i
    it loses sum_y alpha_yi^2 / Q_ii, where alpha = L^-T U. Both follow each removal. Among those that lose nearly the same
    the oldest goes. Of Q there are only the diagonal and the columns of those that go. Birthdays of those that go are lost.
    O(n^3) for the inverse of L, and O(n^2) for each that goes.
    """
    cdef Py_ssize_t i, k, victim, joined = f.outputs.joined
    cdef Py_ssize_t over = max(0, size - budget), most = over
    if rounding > 0.0:
        most = min(size - 1, over + CHECKPOINT)
    if most == 0:
        return 0
    cdef double* Z = <double*> w.buffer(INVERSE, (size * size + (3 + joined + most) * size) * sizeof(double))
    cdef double* diagonal = Z + size * size
    cdef double* least = diagonal + size
    cdef double* loss = least + size
    cdef double* alpha = loss + size
    cdef double* V = alpha + joined * size
    with nogil:
        ok_invert_lower(factor.L, f.capacity, size, Z, size)
    if over:
        multiply(alpha, size, matrix(mean, joined, size, size), matrix(Z, size, size, size), ALL)
    with nogil:
        ok_column_squares(Z, size, diagonal)
        for i in range(size):
            least[i] = 1.0 / ok_dot(factor.row(i), factor.row(i), i + 1)
        for k in range(most):
            victim = most_determined(diagonal, least, gone, size, rounding) if rounding > 0.0 else -1
            if victim < 0:
                if k >= over:
                    return k
                ok_losses(alpha, joined, size, diagonal, loss)
                for i in range(size):
                    if gone[i]:
                        loss[i] = INFINITY
                victim = ok_oldest(loss, (1.0 + NEAR) * ok_least(loss, size), births, size)
                if victim < 0:                  # there are no numbers any more
                    victim = first_left(gone)
            ok_leave(Z, size, victim, V, k, diagonal, least, alpha, joined if over else 0)
            gone[victim], births[victim] = 1, LATER
    return most


cdef const double* bring_back(Posterior f, Factor factor, PosteriorScratch w, double* U, double* S, Py_ssize_t size,
                              const Py_ssize_t* kept, Py_ssize_t n, Py_ssize_t first) except NULL:
    """n of `size` points stay, all before the first that goes: change U and S in place, return what L has from there on.

    With orthonormal columns of Q, L[kept] = L' Q^T, U' = Q^T U, S' = Q^T S Q. O(n^2) for each that goes.
    """
    cdef Py_ssize_t i, r, y, rest = size - first, stay = n - first, columns = stay + f.width
    cdef ok_reflections h
    h.n, h.more = stay, size - n
    h.heads = <double*> w.buffer(LEAVING, (ok_reflections_size(stay, h.more) + OK_REFLECTED * max(size, columns)
                                           + rest * (columns + size + stay + 1) + stay * stay) * sizeof(double))
    h.tails = h.heads + stay
    h.meet = h.tails + stay * h.more
    h.work = h.meet + stay * OK_REFLECTED
    cdef double* X = h.work + OK_REFLECTED * max(size, columns)     # [L[kept]^T , U^T], a row for each coordinate
    cdef double* left = X + rest * columns                          # S
    cdef double* both = left + rest * size                          # (Q^T S)^T
    cdef double* corner = both + rest * stay
    cdef Py_ssize_t* order = <Py_ssize_t*> (corner + stay * stay)   # coordinates, first those that stay
    with nogil:
        for i in range(stay):
            order[i] = kept[first + i]
        y = 0
        for i in range(first, size):
            if y < stay and order[y] == i:
                y += 1
            else:
                order[stay + i - first - y] = i
        for r in range(rest):
            for i in range(stay):
                X[r * columns + i] = factor.row(kept[first + i])[order[r]] if order[r] <= kept[first + i] else 0.0
            for y in range(f.width):
                X[r * columns + stay + y] = U[y * size + order[r]]
            memcpy(left + r * size, S + order[r] * size, size * sizeof(double))
        ok_find_reflections(&h, X, columns, columns)
        ok_reflect(&h, left, size, size)
        for r in range(rest):
            for i in range(stay):
                both[r * stay + i] = left[i * size + order[r]]
        ok_reflect(&h, both, stay, stay)
        for i in range(stay):
            for y in range(f.width):
                U[y * size + first + i] = X[i * columns + stay + y]
            for r in range(first):
                S[(first + i) * size + r] = S[r * size + first + i] = left[i * size + r]
            for r in range(i + 1):
                S[(first + i) * size + first + r] = S[(first + r) * size + first + i] = 0.5 * (both[i * stay + r] + both[r * stay + i])
            for r in range(stay):
                corner[i * stay + r] = X[r * columns + i] if r <= i else 0.0
    return corner


cdef void join(const double* R, double* V, const Py_ssize_t* joining, Py_ssize_t count, double root) noexcept nogil:
    """The last of those that join, behind `count` others, makes the next row of V; root is what they do not determine.

    O(CHECKPOINT count).
    """
    cdef Py_ssize_t r, last = joining[count]
    ok_eliminate(R + last * CHECKPOINT, last, root, V, CHECKPOINT, count, CHECKPOINT)
    for r in range(count):
        V[count * CHECKPOINT + joining[r]] = 0.0
    V[count * CHECKPOINT + last] = root


cdef Py_ssize_t most_determined(const double* precision, const double* least, const unsigned char* gone, Py_ssize_t n,
                                double rounding) noexcept nogil:
    """The point whose precision given f at all others is most times its least, if more than 1 / rounding; -1 for none. O(n)."""
    cdef Py_ssize_t i, most = -1
    for i in range(n):
        if not gone[i] and rounding * precision[i] > least[i] and (
                most < 0 or precision[i] * least[most] > precision[most] * least[i]):
            most = i
    return most


cdef Py_ssize_t first_left(const unsigned char* gone) noexcept nogil:
    """The first that is not gone: O(n)."""
    cdef Py_ssize_t i = 0
    while gone[i]:
        i += 1
    return i


cdef Py_ssize_t least_determined(const double* rest, const double* own, double share) noexcept nogil:
    """The example with the largest rest of those with more than this share of k(x, x), of equals the earliest; -1 for none. O(1)."""
    cdef Py_ssize_t i
    cdef double largest = ok_largest_above(rest, share, own, CHECKPOINT)
    if largest > 0.0:
        for i in range(CHECKPOINT):
            if rest[i] > share * own[i] and rest[i] >= (1.0 - NEAR) * largest:
                return i
    return -1
