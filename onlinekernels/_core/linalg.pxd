"""Linear algebra of some hundred rows: products, a Cholesky factor that grows and shrinks, the evidence of a kernel."""
cimport cython

cdef extern from "tiles.h" nogil:
    void ok_product(double* C, Py_ssize_t c_stride, Py_ssize_t rows, Py_ssize_t columns, const double* A,
                    Py_ssize_t a_row, Py_ssize_t a_column, Py_ssize_t inner, const double* B, Py_ssize_t b_stride,
                    Py_ssize_t upto)
    void ok_transpose(const double* X, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t columns, double* T,
                 Py_ssize_t t_stride)
    void ok_inner_block(const double* X, Py_ssize_t m, const double* S, Py_ssize_t n, Py_ssize_t d, double* out,
                        Py_ssize_t stride)
    void ok_distance_block(const double* X, const double* own, Py_ssize_t m, const double* T, Py_ssize_t t_stride,
                           const double* squares, Py_ssize_t n, Py_ssize_t d, double* out, Py_ssize_t stride)
    void ok_gram(const double* X, Py_ssize_t m, Py_ssize_t d, double* G)
    bint ok_gram_pays(Py_ssize_t d)


cdef extern from "triangles.h" nogil:
    void ok_times_rows(const double* S, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t d, const double* x, double* out)
    void ok_solve_rows(const double* L, Py_ssize_t stride, Py_ssize_t n, double* X, Py_ssize_t x_stride, Py_ssize_t m)
    void ok_solve_block(const double* L, Py_ssize_t stride, Py_ssize_t n, double* B, Py_ssize_t b_stride, Py_ssize_t m)
    void ok_solve_transposed(const double* L, Py_ssize_t stride, Py_ssize_t n, double* B, Py_ssize_t b_stride,
                             Py_ssize_t m)
    void ok_remove_row(double* L, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t p, double* c, double* s)
    void ok_invert_lower(const double* L, Py_ssize_t stride, Py_ssize_t n, double* Z, Py_ssize_t z_stride)
    void ok_shrink_and_subtract(const double* S, Py_ssize_t stride, Py_ssize_t n, double c, double d, double* W,
                                Py_ssize_t w_stride)
    void ok_column_squares(const double* Z, Py_ssize_t n, double* out)
    void ok_eliminate(const double* R, Py_ssize_t b, double root, double* V, Py_ssize_t stride, Py_ssize_t k,
                      Py_ssize_t n)
    void ok_leave(const double* Z, Py_ssize_t n, Py_ssize_t b, double* V, Py_ssize_t k, double* diagonal,
                  const double* least, double* alpha, Py_ssize_t labels)
    void ok_losses(const double* alpha, Py_ssize_t labels, Py_ssize_t n, const double* diagonal, double* loss)
    void ok_next_column(double* T, Py_ssize_t stride, Py_ssize_t r, Py_ssize_t n, double root, double* squares)
    Py_ssize_t ok_oldest(const double* loss, double limit, const long long* birthday, Py_ssize_t n)
    double ok_largest_above(const double* x, double share, const double* other, Py_ssize_t n)
    int ok_decompose(double* A, Py_ssize_t stride, Py_ssize_t n)


cdef extern from "reflections.h" nogil:
    enum:
        OK_REFLECTED

    ctypedef struct ok_reflections:
        Py_ssize_t n
        Py_ssize_t more
        double* heads
        double* tails
        double* meet
        double* work

    Py_ssize_t ok_reflections_size(Py_ssize_t n, Py_ssize_t more)
    void ok_find_reflections(const ok_reflections* h, double* X, Py_ssize_t stride, Py_ssize_t columns)
    void ok_reflect(const ok_reflections* h, double* X, Py_ssize_t stride, Py_ssize_t columns)


cdef extern from "evidence.h" nogil:
    void ok_covariance_row(const double* Z, Py_ssize_t n, Py_ssize_t d, const double* times, Py_ssize_t i,
                           double amplitude, double forgetting, double* kernel, double* both)
    void ok_half_square(const double* Z, Py_ssize_t n, double c, const double* alpha, Py_ssize_t outputs, double* W)
    void ok_add_slopes(const double* Z, Py_ssize_t n, Py_ssize_t d, const double* times, Py_ssize_t i,
                       double forgetting, const double* kernel, const double* both, double* W, double* slopes)


cdef enum:
    ALL = 1 << 30       # columns of each row


@cython.final
cdef class Factor:
    cdef readonly Py_ssize_t n          # points
    cdef readonly Py_ssize_t capacity       # points that there is room for: numbers from one row to the next
    cdef readonly object array          # (room, room)
    cdef double* L                      # the same: lower triangular, K = L L^T

    cdef Factor with_capacity(self, Py_ssize_t capacity)
    cdef double* row(self, Py_ssize_t i) noexcept nogil
    cdef void solve(self, double* x, Py_ssize_t first) noexcept nogil
    cdef void solve_rows(self, double* X, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void solve_columns(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void solve_transposed(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void append(self, const double* row, double diagonal) noexcept nogil
    cdef void remove(self, Py_ssize_t i, double* scratch) noexcept nogil
    cdef void keep(self, const Py_ssize_t* kept, Py_ssize_t first, Py_ssize_t n, const double* corner) noexcept nogil
