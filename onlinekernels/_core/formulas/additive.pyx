"""Additive kernels: declarations of additive.h, and how a kernel is described to it."""
import numpy as np


cdef ok_additive additive_kernel(description) except *:
    """("spline", order), ("exponential", rate), ("matern", rate, smoothness) or ("own", left, right) for the core."""
    cdef ok_additive kernel
    name = description[0]
    if name == "own":
        kernel.code, kernel.order, kernel.rate = OK_OWN, len(description[1]) - 1, 1.0
        if len(description[1]) != len(description[2]) or not 0 <= kernel.order <= OK_MAX_ORDER:
            raise ValueError(f"there is no additive kernel {description!r}")
        return kernel
    kernel.code = OK_SPLINE if name == "spline" else OK_MATERN
    kernel.order = description[1] if name == "spline" else 0
    kernel.rate = 1.0 if name == "spline" else description[1]
    if name == "matern":
        kernel.order = {1.5: 1, 2.5: 2}[description[2]]
    elif name not in ("spline", "exponential") or not 0 <= kernel.order <= OK_MAX_ORDER:
        raise ValueError(f"there is no additive kernel {description!r}")
    ok_additive_start(&kernel)
    return kernel


def mapping(bounds, n_features):
    """(low, stretch) such that (x - low) * stretch maps the bounds to 0 and 1, for each feature."""
    low, high = (np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features) for bound in bounds)
    return np.ascontiguousarray(low), np.ascontiguousarray(1.0 / (high - low))
