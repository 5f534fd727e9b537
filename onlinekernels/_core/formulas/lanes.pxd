"""Declarations of lanes.h: loops over the models of a block."""
from libc.stdint cimport int64_t
from onlinekernels._core.formulas.losses cimport Loss
from onlinekernels._core.formulas.vecmath cimport OK_LANES

cdef extern from "lanes.h" nogil:
    ctypedef struct LanesRule "ok_lanes_rule":
        Loss loss
        bint implicit
        bint has_offset
        double penalty
        double range
        double dust
        double least_frame
        double most

    ctypedef struct Lanes "ok_lanes":
        double active[OK_LANES]
        double bare[OK_LANES]
        double score[OK_LANES]
        double own[OK_LANES]
        double target[OK_LANES]
        double eta[OK_LANES]
        double shrink[OK_LANES]
        double moved[OK_LANES]
        double alpha[OK_LANES]
        double stored[OK_LANES]
        double folds[OK_LANES]
        double no_gap[OK_LANES]
        double no_weight[OK_LANES]
        int64_t n_moved
        int64_t n_terms
        int64_t n_folds

    void ok_lanes_gaussian(const double* points, const double* coef, const double* x, Py_ssize_t slots, Py_ssize_t d,
                           Py_ssize_t prefetch, double gamma, double* sums)
    void ok_lanes_gaussian_f(const float* points, const float* coef, const float* x, Py_ssize_t slots, Py_ssize_t d,
                             Py_ssize_t prefetch, float gamma, float* sums)
    void ok_lanes_linear(const double* points, const double* coef, const double* x, Py_ssize_t slots, Py_ssize_t d,
                         Py_ssize_t prefetch, double* sums)
    void ok_lanes_linear_f(const float* points, const float* coef, const float* x, Py_ssize_t slots, Py_ssize_t d,
                           Py_ssize_t prefetch, float* sums)
    void ok_lanes_transpose(const double* X, Py_ssize_t d, double* x)
    void ok_lanes_transpose_f(const float* X, Py_ssize_t d, float* x)
    void ok_lanes_least(const double* coef, Py_ssize_t slots, double* least)
    void ok_lanes_least_f(const float* coef, Py_ssize_t slots, float* least)
    void ok_lanes_evicted(const double* coef, const unsigned char* born, Py_ssize_t slots, const double* least,
                          int* evicted)
    void ok_lanes_evicted_f(const float* coef, const unsigned char* born, Py_ssize_t slots, const float* least,
                            int* evicted)
    void ok_lanes_scores(const double* sums, const double* frame, const double* offset, Lanes* lanes)
    void ok_lanes_scores_f(const float* sums, const double* frame, const double* offset, Lanes* lanes)
    Py_ssize_t ok_lanes_entering(const Lanes* lanes, const unsigned char* count, Py_ssize_t slots, const double* least,
                                 int* entering)
    Py_ssize_t ok_lanes_entering_f(const Lanes* lanes, const unsigned char* count, Py_ssize_t slots, const float* least,
                                   int* entering)
    void ok_lanes_move(const LanesRule* rule, Lanes* lanes, int64_t* t, double* frame, double* offset, double* scalar,
                       double* gap, double* gap_weight)
