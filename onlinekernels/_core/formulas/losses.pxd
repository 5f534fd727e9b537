"""Declarations of losses.h, the formulas of the losses of one output."""

cdef extern from "losses.h" nogil:
    enum:
        INSENSITIVE "OK_INSENSITIVE"
        SQUARED_INSENSITIVE "OK_SQUARED_INSENSITIVE"
        MULTICLASS_LOGISTIC "OK_MULTICLASS_LOGISTIC"
        MULTICLASS_SQUARED "OK_MULTICLASS_SQUARED"
        QUANTILE "OK_QUANTILE"

    ctypedef struct LossName "ok_loss_name":
        const char* name
        int code

    const LossName loss_names "ok_loss_names"[]

    ctypedef struct Loss "ok_loss":
        int code
        double scalar
        double nu
        double step

    double loss_value "ok_loss_value"(const Loss* loss, double z, double y)
    double loss_derivative "ok_loss_derivative"(const Loss* loss, double z, double y)
    bint loss_grows_like_square "ok_loss_grows_like_square"(const Loss* loss)
    bint loss_is_smooth "ok_loss_is_smooth"(const Loss* loss)
    double loss_cap "ok_loss_cap"(const Loss* loss, double side)
    bint loss_adapts "ok_loss_adapts"(const Loss* loss)
    double loss_curvature "ok_loss_curvature"(const Loss* loss, double z, double y)
    double loss_scalar_gradient "ok_loss_scalar_gradient"(const Loss* loss, double z, double y)
    bint loss_has_width "ok_loss_has_width"(const Loss* loss)
    double loss_compared "ok_loss_compared"(const Loss* loss, double z, double y)
    double loss_moved_scalar "ok_loss_moved_scalar"(const Loss* loss, double scalar)
    double loss_dust "ok_loss_dust"(double scale, double k, double cap)
    double loss_implicit "ok_loss_implicit"(const Loss* loss, double z, double y, double k, double size)

    ctypedef struct Bracket "ok_bracket":
        bint done

    void bracket_start "ok_bracket_start"(Bracket* bracket, double low, double high)
    double bracket_next "ok_bracket_next"(Bracket* bracket, double x, double value, double slope)
