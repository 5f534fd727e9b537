"""Which points a posterior stands on: who joins, and who leaves."""
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.posterior cimport Posterior, PosteriorScratch


cdef Py_ssize_t find_newcomers(Posterior f, PosteriorScratch w, double tolerance, double* V, Py_ssize_t* joining,
                               double* rounding) except -1
cdef Py_ssize_t forget_newcomers(PosteriorScratch w, double* V, Py_ssize_t* joining, Py_ssize_t count,
                                 const unsigned char* gone) except -1
cdef int choose_leavers(Posterior f, Factor factor, PosteriorScratch w, long long budget, const double* mean, Py_ssize_t size,
                        long long* births, double rounding, unsigned char* gone) except -1
cdef const double* bring_back(Posterior f, Factor factor, PosteriorScratch w, double* U, double* S, Py_ssize_t size,
                              const Py_ssize_t* kept, Py_ssize_t n, Py_ssize_t first) except NULL
