"""Feature maps as kernels: f is weights over finitely many features, so memory and cost do not grow with the examples.

>>> from onlinekernels import NORMA, Gaussian, RandomFourier
>>> model = NORMA("squared", RandomFourier(Gaussian(1.0), size=64)).fit([[0.0], [1.0]], [0.0, 1.0])
>>> model.coef_.shape
(1, 64)
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.arrays import check_array
from onlinekernels._core.maps import ConstantMap, FourierMap, SumMap, LinearMap, NormalizedMap, NystroemMap
from onlinekernels.kernels.base import Kernel
from onlinekernels.kernels.elementary import as_kernel, Gaussian, Laplacian
from onlinekernels.base.validation import bad_parameter, check_count, check_integer, check_sparse, is_sparse

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["RandomFourier", "Nystroem"]


def check_even(kernel, name):
    """A parameter that must be an even number of at least 2."""
    size = check_integer(kernel, name, 2)
    if size % 2:
        raise bad_parameter(kernel, name, "an even number: a cosine and a sine for each frequency", size)


class _Map(Kernel):
    """A kernel that stands for features.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel that is approximated, or its name.
    size : int
        Number of features; at least 1.
    """

    kernel: Any

    def validate(self) -> None:
        if self.kernel is None:
            raise bad_parameter(self, "kernel", "a kernel or its name", None)
        self._inner()
        self._check_values()

    def _inner(self):
        return as_kernel(self.kernel, self)

    def has_map(self) -> Any:
        return True


@dataclass(eq=False, repr=False)
class RandomFourier(_Map):
    """Random Fourier features of a Gaussian or Laplacian kernel (Rahimi and Recht, 2007).

    k(x, z) is the mean of cos <w, x - z> over frequencies w, whose law is the kernel's Fourier transform. It is
    replaced by the mean over size / 2 frequencies that are drawn once: an inner product of `size` cosines and sines.
    The error of a kernel value falls like 1 / sqrt(size).

    A model with it keeps weights over the features, whatever the budget. A sum with `Linear`, `Constant` or another
    map, and a positive multiple, is a map again. Called with X and Z it gives the approximate Gram matrix.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or str
        The kernel that is approximated, or its name.
    size : int
        Number of features, cosines and sines; even, and at least 2.
    seed : int
        What the frequencies are drawn with, by `numpy.random.default_rng`; at least 0.

    Examples
    --------
    >>> exact, close = Gaussian(2.0), RandomFourier(Gaussian(2.0), size=4096)
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> bool(abs(exact(X) - close(X)).max() < 0.1)
    True
    """

    kernel: Kernel | str
    size: int = 512
    seed: int = 0

    _values = {"size": check_even, "seed": lambda kernel, name: check_integer(kernel, name, 0)}

    def validate(self) -> None:
        super().validate()
        if not isinstance(self._inner(), (Gaussian, Laplacian)):
            raise bad_parameter(self, "kernel", "a Gaussian or a Laplacian", self.kernel)

    def features(self) -> Any:
        inner = self._inner()
        law, rate = ("gaussian", 1.0 / inner.width) if isinstance(inner, Gaussian) else ("laplacian", inner.rate)
        return [{"map": "fourier", "law": law, "rate": float(rate), "size": int(self.size), "seed": int(self.seed),
                 "scale": 1.0}]

    def on_inner_products(self) -> Any:
        return True  # of examples with the frequencies

    def row(self, x: Any, points: Any) -> Any:
        return self([x], points)[0] if len(points) else np.zeros(0)

    def self_value(self, x: Any) -> Any:
        return 1.0

    def _gram_of_maps(self, X, Z):
        left = self._features_of(X, "X")
        right = left if Z is None else self._features_of(Z, "Z", n_features=left[0])
        return left[1] @ right[1].T

    def _diagonal_of_maps(self, X):
        return np.ones(self._features_of(X, "X")[1].shape[0])

    def _features_of(self, X, name, n_features=None):
        """(number of columns, features) of X."""
        sparse = is_sparse(X)
        X = check_sparse(X, n_features=n_features, name=name) if sparse else self.check_input(X, n_features, name=name)
        return X.shape[1], feature_map(self.features(), X.shape[1], sparse)(X)


@dataclass(eq=False, repr=False)
class Nystroem(_Map):
    """The span of `size` landmarks, the first distinct rows of the stream (Williams and Seeger, 2001).

    k(x, z) becomes k(x, D) K_DD^-1 k(D, z), which is exact if x or z is one of the landmarks D. Until `size` distinct
    rows have come nothing is approximated: the model is that of the kernel itself, and has `support_vectors_` and
    `dual_coef_`. From then on f is weights over the features L^-1 k(D, x), where K_DD = L L^T. A row that the
    landmarks span already does not become one.

    A model with it keeps weights, whatever the budget. A sum with `Linear`, `Constant` or another map, and a positive
    multiple, is a map again. Called with X and Z it is the kernel itself: it has seen no stream.

    Parameters
    ----------
    kernel : Kernel or str
        The kernel that is approximated, or its name: any built-in kernel on rows of numbers.
    {size}

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> model = NORMA("squared", Nystroem(Gaussian(1.0), size=50)).fit(X, np.sin(X[:, 0]))
    >>> model.coef_.shape
    (1, 50)
    """

    kernel: Kernel | str
    size: int = 256

    _values = {"size": check_count}

    def validate(self) -> None:
        super().validate()
        if self._inner().ops() is None or self._inner().has_map():
            raise bad_parameter(self, "kernel", "a built-in kernel on rows of numbers, and no feature map", self.kernel)

    def ops(self) -> Any:
        return self._inner().ops()

    def parts(self) -> Any:
        return (self._inner(),)

    def features(self) -> Any:
        return [{"map": "nystroem", "ops": self.ops(), "size": int(self.size), "scale": 1.0}]

    def on_inner_products(self) -> Any:
        return self._inner().on_inner_products()


# ---- For the core ------------------------------------------------------------------------------


def draw_frequencies(law, rate, columns, n, seed):
    """Frequencies (columns, n) of a kernel of distances: its Fourier transform is the law of each.

    Those of the first columns do not depend on how many there are.
    """
    rng = np.random.default_rng(seed)
    return (rng.standard_normal if law == "gaussian" else rng.standard_cauchy)((columns, n)) * rate


def feature_map(parts, n_features, sparse, dtype=np.float64):
    """The map of a kernel in the core, from what its `features` gives, for examples of this kind."""
    return _sum_of_maps(parts, (n_features, sparse, dtype == np.float32), (f"map{i}" for i in itertools.count()))


def _sum_of_maps(parts, examples, names):
    *others, whole = [_made(part, examples, names) for part in parts]
    for other in reversed(others):
        whole = SumMap(other, whole)
    return whole


def _made(part, examples, names):
    if part["map"] == "normalized":
        return NormalizedMap(_sum_of_maps(part["parts"], examples, names), part["scale"])
    if part["map"] == "linear":
        return LinearMap(examples, part["scale"])
    if part["map"] == "constant":
        return ConstantMap(examples, part["value"])
    if part["map"] == "nystroem":
        return NystroemMap(examples, part["scale"], part["ops"], part["size"], next(names))

    def draw(columns):
        return draw_frequencies(part["law"], part["rate"], columns, part["size"] // 2, part["seed"])

    return FourierMap(examples, part["scale"], part["size"], draw, next(names))


def _leaves(parts):
    """Parts that are not made of others, in order."""
    for part in parts:
        yield from _leaves(part["parts"]) if part["map"] == "normalized" else [part]


def check_sizes(parts, n_features, state, weights="weights"):
    """ValueError unless arrays of a state have the sizes of the map to be made; `weights` names those over features."""
    size, named = 0, 0
    for part in _leaves(parts):
        if part["map"] == "fourier":
            check_array(state[f"map{named}.frequency"], "frequency", np.float64, (n_features,))
        named += "size" in part
        size += part.get("size", n_features if part["map"] == "linear" else 1)
    check_array(state[weights], weights, np.float64, (-1, size))
