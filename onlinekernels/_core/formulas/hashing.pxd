"""Random numbers that depend on nothing but a seed and a count, so that the same examples draw the same."""


cdef inline unsigned long long scrambled(unsigned long long x) noexcept nogil:
    """A number that has nothing to do with x, as in splitmix64."""
    x += <unsigned long long> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <unsigned long long> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <unsigned long long> 0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline Py_ssize_t reservoir_slot(long long t, Py_ssize_t size, long long memory,
                                      unsigned long long seed) noexcept nogil:
    """Where row t = 0, 1, ... goes in a reservoir of `size` slots, -1 for nowhere.

    Each row so far is there with the same probability; with a `memory` (0 for none) of so many rows, one that fades as
    exp(-age / memory).
    """
    cdef unsigned long long among = <unsigned long long> (t + 1), lot
    if t < size:
        return <Py_ssize_t> t
    if 0 < memory < t + 1:
        among = <unsigned long long> (memory if memory > size else size)
    lot = scrambled(scrambled(seed) + <unsigned long long> t) % among
    return <Py_ssize_t> lot if lot < <unsigned long long> size else -1
