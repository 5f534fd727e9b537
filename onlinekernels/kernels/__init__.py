"""Kernels k(x, z): points, sums and products of them, and any callable on any objects.

Kernels add and multiply like numbers, and a number stands for a constant kernel:

>>> k = Gaussian(2.0) + 0.1 * Linear() + Constant()
>>> k
Gaussian(width=2.0) + 0.1*Linear() + Constant()
>>> k([[0.0], [1.0]]).round(4)
array([[2.    , 1.8825],
       [1.8825, 2.1   ]])
"""
from onlinekernels.kernels import elementary
from onlinekernels.kernels.base import Constant, Kernel
from onlinekernels.kernels.base import Custom as Custom, Product as Product, Sum as Sum
from onlinekernels.kernels.elementary import *  # noqa: F403
from onlinekernels.kernels.elementary import KERNELS as KERNELS, as_kernel as as_kernel
from onlinekernels.kernels import additive, maps  # which enter their names
from onlinekernels.kernels.additive import *  # noqa: F403
from onlinekernels.kernels.maps import *  # noqa: F403

__all__ = ["Kernel", "Constant"]
__all__ += elementary.__all__
__all__ += additive.__all__
__all__ += maps.__all__
