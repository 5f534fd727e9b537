"""Kernels k(x, z): points, sums and products of them, and any callable on any objects.

Kernels add and multiply like numbers, and a number stands for a constant kernel:

>>> k = Gaussian(2.0) + 0.1 * Linear() + Constant()
>>> k
Gaussian(width=2.0) + 0.1*Linear() + Constant()
>>> k([[0.0], [1.0]]).round(4)
array([[2.    , 1.8825],
       [1.8825, 2.1   ]])
"""
from onlinekernels.nouns.kernels import elementary
from onlinekernels.nouns.kernels.algebra import Constant, Kernel
from onlinekernels.nouns.kernels.algebra import Custom as Custom, Product as Product, Sum as Sum
from onlinekernels.nouns.kernels.elementary import *  # noqa: F403
from onlinekernels.nouns.kernels.names import KERNELS as KERNELS, as_kernel as as_kernel, poly, rbf
from onlinekernels.nouns.kernels.normalized import Normalized
from onlinekernels.nouns.kernels.precomputed import Precomputed

__all__ = ["Kernel", "Constant", "Normalized", "Precomputed", "rbf", "poly"]
__all__ += elementary.__all__
