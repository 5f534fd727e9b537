"""Kernels by name, ours and scikit-learn's."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlinekernels.kernels import elementary
from onlinekernels.kernels.algebra import Constant, Custom, Kernel
from onlinekernels.kernels.elementary import Gaussian, Polynomial
from onlinekernels.base.validation import as_number, bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["rbf", "poly", "KERNELS", "as_kernel"]


def rbf(gamma: Any = None) -> Any:
    """The Gaussian by scikit-learn's name and parameter: exp(-gamma |x-z|^2); None is `Gaussian()`.

    >>> rbf(gamma=0.125)
    Gaussian(width=2.0)
    """
    if gamma is None:
        return Gaussian()
    number = as_number(gamma)
    if number is None or number <= 0:
        raise bad_parameter("rbf", "gamma", "a positive number", gamma)
    return Gaussian(width=1.0 / math.sqrt(2.0 * number))


def poly(degree: Any = 3, gamma: Any = 1.0, coef0: Any = 1.0) -> Any:
    """The polynomial kernel by scikit-learn's name and parameters: (gamma <x,z> + coef0)^degree.

    >>> poly(2, gamma=0.5)
    Polynomial(degree=2, scale=0.5)
    """
    return Polynomial(degree, scale=gamma, bias=coef0)


# Those whose parameters all have defaults, and names by which others know them.
KERNELS = {
    **{name.lower(): getattr(elementary, name) for name in elementary.__all__},
    "constant": Constant,
    "rbf": rbf,
    "poly": poly,
}


def as_kernel(value, owner, default=Gaussian):
    """A kernel from what a user may give: a kernel, its name, a callable, or None for the default."""
    if value is None:
        return default()
    if isinstance(value, str):
        name = value.lower().replace("-", "").replace("_", "")
        if name not in KERNELS:
            raise bad_parameter(owner, "kernel", f"a kernel or one of {', '.join(sorted(KERNELS))}", value)
        value = KERNELS[name]()
    elif not isinstance(value, Kernel) and callable(value) and not isinstance(value, type):
        return Custom(value)
    if not isinstance(value, Kernel):
        raise bad_parameter(owner, "kernel", "a kernel such as Gaussian(2.0), its name, a callable, or None", value)
    value.validate()
    return value
