"""Kernels k(x, z): points, sums and products of them, and any callable on any objects.

Kernels add and multiply like numbers, and a number stands for a constant kernel:

>>> k = Gaussian(2.0) + 0.1 * Linear() + Constant()
>>> k
Gaussian(width=2.0) + 0.1*Linear() + Constant()
>>> k([[0.0], [1.0]]).round(4)
array([[2.    , 1.8825],
       [1.8825, 2.1   ]])
"""
import numbers
import operator

import numpy as np

from onlinekernels._core.points.kernels import Program
from onlinekernels.nouns.params import Parameterized
from onlinekernels.validation import (
    as_csr,
    bad_parameter,
    check_integer,
    check_not_negative,
    check_objects,
    check_points,
    check_positive,
    check_sparse,
    is_sparse,
    refuse_masked,
)

__all__ = [
    "Kernel",
    "Linear",
    "Gaussian",
    "Polynomial",
    "Laplacian",
    "Constant",
    "Noise",
    "Normalized",
    "Precomputed",
    "rbf",
    "poly",
]


class Kernel(Parameterized):
    """Base of all kernels; subclass it, or pass a plain callable, for a kernel of your own.

    A subclass defines ``pair(x, z)`` for two examples, whatever they are; one that can do many pairs
    at once may define ``row(x, points)`` as well.
    """

    def __call__(self, X, Z=None):
        """Gram matrix of k(x, z) for all x in X and z in Z; Z = None means X itself."""
        self.validate()
        ops = self.ops()
        if ops is None:
            return self._gram_of_maps(X, Z) if self.has_map() else self._gram_of_objects(X, Z)
        if is_sparse(X) or is_sparse(Z):
            return self._gram_of_sparse(X, Z)
        X = self.check_input(X)
        Z = None if Z is None else self.check_input(Z, name="Z")
        if Z is not None and Z.shape[1] != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features and Z has {Z.shape[1]}; expected the same number.")
        return Program(ops).gram(X, Z)

    def diagonal(self, X):
        """k(x, x) for all x in X."""
        self.validate()
        ops = self.ops()
        if ops is None and self.has_map():
            return self._diagonal_of_maps(X)
        if ops is None:
            return np.array([self.self_value(x) for x in check_objects(X)], dtype=float)
        if is_sparse(X):
            return self._of_inner(np.zeros((X.shape[0], 0)), _squares(check_sparse(X)), np.zeros(0), X.shape[1])[1]
        return Program(ops).diagonal(self.check_input(X))

    def check_input(self, X, n_features=None, dtype=np.float64, name="X", finite=True, owner="model"):
        """X as an array that the compiled kernel may use without looking."""
        X = check_points(X, n_features=n_features, dtype=dtype, name=name, finite=finite, owner=owner)
        if self.takes_indices():
            X = X.copy()  # what is checked here must not change any more: loops go where indices say
        self.check_domain(X, name)
        return X

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        cls = type(self)
        if cls.ops is Kernel.ops and cls.pair is Kernel.pair and cls.row is Kernel.row:
            raise ValueError(f"{cls.__name__} is a kernel of your own and must define pair(x, z).")
        self._check_values()

    def ops(self):
        """Operations for the compiled core in postfix order; None if only Python can evaluate it."""
        return None

    def parts(self):
        """Kernels that this one is made of."""
        return ()

    def check_domain(self, X, name="X"):
        """Raise ValueError if the kernel is not defined for all rows of X."""
        for part in self.parts():
            part.check_domain(X, name)

    def restricts(self):
        """Whether `check_domain` looks at X at all."""
        return any(part.restricts() for part in self.parts())

    def takes_indices(self):
        """Whether X holds indices, which need double precision."""
        parts = self.parts()
        return bool(parts) and any(part.takes_indices() for part in parts)

    def additive(self):
        """What the trees need to know if this kernel can run on them; otherwise None."""
        return None

    def linear_scale(self):
        """c if this kernel is c <x, z>, so that weights can replace terms; otherwise None."""
        return None

    def coordinate(self, j):
        """The kernel of coordinate j alone if this one is a sum over coordinates; otherwise None."""
        return None

    def has_map(self):
        """Whether a feature map is among the parts: then f is weights over features."""
        return any(part.has_map() for part in self.parts())

    def features(self):
        """The feature map for the core: a list of parts, whose features stand one after the other; None without one."""
        return None

    def takes_objects(self):
        """Whether examples are Python objects."""
        return self.ops() is None and not self.has_map()

    # ---- In Python, for objects ----

    def pair(self, x, z):
        """k(x, z) for two examples."""
        return float(self.row(x, [z])[0])

    def row(self, x, points):
        """k(x, z) for all z in a list of examples other than x itself."""
        if self.ops() is None:
            return np.array([self.pair(x, z) for z in points], dtype=float)
        return self([x], points)[0] if len(points) else np.zeros(0)

    def self_value(self, x):
        """k(x, x) of one example with itself."""
        return self.pair(x, x) if self.ops() is None else float(self.diagonal([x])[0])

    def on_inner_products(self):
        """Whether inner products are all that this kernel needs of two examples."""
        if self.has_map():
            return all(part.on_inner_products() for part in self.parts())
        ops = self.ops()
        return ops is not None and {op["op"] for op in ops} <= ON_INNER_PRODUCTS

    def _gram_of_sparse(self, X, Z):
        """Gram matrix of sparse rows; scipy multiplies them."""
        if not self.on_inner_products():
            raise TypeError(f"{self!r} needs dense rows: it is not a function of inner products. Use X.toarray().")
        left, right = check_sparse(X), check_sparse(X if Z is None else Z, name="Z")
        if left.n_features != right.n_features:
            raise ValueError(f"X has {left.n_features} features and Z has {right.n_features}; expected the same number.")
        inner = np.ascontiguousarray((as_csr(left) @ as_csr(right).T).toarray(), dtype=float)
        return self._of_inner(inner, _squares(left), _squares(right), left.n_features, Z is None)[0]

    def _of_inner(self, inner, left, right, n_features, same=False):
        program = Program(self.ops())
        program.start(n_features, np.dtype(float), None)
        return program.gram_of_inner(inner, left, right, same)

    def _gram_of_objects(self, X, Z):
        X = check_objects(X)
        points = X if Z is None else check_objects(Z, name="Z")
        gram = np.array([self.row(x, points) for x in X], dtype=float)
        if Z is None:
            np.fill_diagonal(gram, [self.self_value(x) for x in X])
        return gram

    # ---- Arithmetic ----

    def __add__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Sum(self, other)

    def __radd__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Sum(other, self)

    def __mul__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Product(self, other)

    def __rmul__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Product(other, self)


def _as_operand(value):
    if isinstance(value, Kernel):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return Constant(float(value))
    return Custom(value) if callable(value) else None


def _scaled(part, factor):
    """A part of a feature map whose kernel is multiplied."""
    key = "value" if part["map"] == "constant" else "scale"
    return {**part, key: factor * part[key]}


ON_INNER_PRODUCTS = {"linear", "gaussian", "constant", "noise", "add", "multiply", "shift", "scale", "normalize"}


def _squares(rows):
    """|x|^2 of sparse rows."""
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return np.bincount(owner, rows.data**2, minlength=len(rows))


def check_indices(X, size, name):
    """X must be one column of whole numbers in range(size)."""
    if X.shape[1] != 1:
        raise ValueError(f"{name} must have one column, of indices into the Gram matrix. Got {X.shape[1]} columns.")
    bad = (X < 0) | (X >= size) | (X != np.floor(X))
    if bad.any():
        raise ValueError(
            f"{name} must hold whole numbers from 0 to {size - 1}, indices into the Gram matrix. Got {X[bad][0]} instead."
        )


class Linear(Kernel):
    """<x, z>.

    With an unlimited budget a model keeps its weight vector instead of terms: O(features) per step.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self):
        pass

    def ops(self):
        return [{"op": "linear"}]

    def linear_scale(self):
        return 1.0

    def features(self):
        return [{"map": "linear", "scale": 1.0}]


class Gaussian(Kernel):
    """exp(-|x - z|^2 / (2 width^2)), V (60).

    Distances come from inner products taken about an origin, so that a large offset in the data
    costs no digits; k(x, x) is exactly 1.

    Parameters
    ----------
    width : float
        The distance at which examples cease to resemble each other, sigma of V; positive.

    References
    ----------
    {V}

    Examples
    --------
    >>> Gaussian(width=1.0)([[0.0], [1e6]], [[0.0], [1e6 + 1]]).round(4)
    array([[1.    , 0.    ],
           [0.    , 0.6065]])
    """

    _values = {"width": check_positive}

    def __init__(self, width=1.0):
        self.width = width

    def ops(self):
        # Below a width of 1e-150 all examples but equal ones are far apart; the limit keeps 0 * a at 0.
        rate = 0.5 / float(self.width) / float(self.width)
        return [{"op": "gaussian", "a": min(rate, 1e300)}]


class Polynomial(Kernel):
    """(scale <x, z> + bias)^degree, V (61).

    Parameters
    ----------
    degree : int
        From 1 to 1000.
    scale : float
        Factor of the inner product; positive.
    bias : float
        What is added to it; at least 0.

    References
    ----------
    {V}

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    _values = {
        "degree": lambda kernel, name: check_integer(kernel, name, 1, 1000),
        "scale": check_positive,
        "bias": check_not_negative,
    }

    def __init__(self, degree=3, scale=1.0, bias=1.0):
        self.degree = degree
        self.scale = scale
        self.bias = bias

    def ops(self):
        return [{"op": "linear", "a": float(self.scale), "b": float(self.bias), "degree": int(self.degree)}]


class Laplacian(Kernel):
    """exp(-rate |x - z|_1), with the sum of the coordinates' distances.

    Parameters
    ----------
    rate : float
        How fast k(x, z) falls with the distance; positive.

    Examples
    --------
    >>> Laplacian(rate=2.0)([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]).round(4)
    array([[1.    , 0.0183]])
    """

    _values = {"rate": check_positive}

    def __init__(self, rate=1.0):
        self.rate = rate

    def ops(self):
        return [{"op": "laplacian", "a": float(self.rate)}]


class _Valued(Kernel):
    """A kernel of one value.

    Parameters
    ----------
    value : float
        At least 0.
    """

    _values = {"value": check_not_negative}

    def __init__(self, value=1.0):
        self.value = value

    def ops(self):
        return [{"op": self._op, "a": float(self.value)}]

    def self_value(self, x):
        return float(self.value)


class Constant(_Valued):
    """The same value for all pairs: an offset that is regularized like the rest of f.

    Parameters
    ----------
    {value}

    Examples
    --------
    >>> Constant(2.0)([[0.0]], [[1.0], [5.0]])
    array([[2., 2.]])
    """

    _op = "constant"

    def features(self):
        return [{"map": "constant", "value": float(self.value)}]

    def row(self, x, points):
        return np.full(len(points), float(self.value))


class Noise(_Valued):
    """`value` if x and z are the same example, else 0 (H cites it for noise tolerance).

    Identity, not equality, decides: a later example with the same features is another example. So
    ``kernel(X)`` is value times the identity matrix, and ``kernel(X, Z)`` is 0.

    Parameters
    ----------
    {value}

    References
    ----------
    {H}

    Examples
    --------
    >>> Noise(0.5)([[1.0], [1.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    _op = "noise"

    def row(self, x, points):
        return np.zeros(len(points))


class Normalized(Kernel):
    """k(x, z) / sqrt(k(x, x) k(z, z)), and 0 where k(x, x) or k(z, z) is 0.

    Parameters
    ----------
    kernel : Kernel, str or callable
        k: a kernel, its name, or any callable k(x, z).

    Examples
    --------
    >>> Normalized(Polynomial(2))([[1.0]], [[1.0], [-1.0], [3.0]]).round(3)
    array([[1. , 0. , 0.8]])
    """

    def __init__(self, kernel):
        self.kernel = kernel

    def validate(self):
        if self.kernel is None:
            raise bad_parameter(self, "kernel", "a kernel, its name or a callable", None)
        as_kernel(self.kernel, self)

    def _inner(self):
        return as_kernel(self.kernel, self)

    def ops(self):
        ops = self._inner().ops()
        return None if ops is None else [*ops, {"op": "normalize"}]

    def parts(self):
        return (self._inner(),)

    def features(self):
        parts = self._inner().features()
        return None if parts is None else [{"map": "normalized", "parts": parts, "scale": 1.0}]

    def _gram_of_maps(self, X, Z):
        inner = self._inner()
        sizes = np.sqrt(np.outer(inner.diagonal(X), inner.diagonal(X if Z is None else Z)))
        return np.divide(inner(X, Z), sizes, out=np.zeros_like(sizes), where=sizes > 0)

    def _diagonal_of_maps(self, X):
        return (self._inner().diagonal(X) > 0).astype(float)

    def row(self, x, points):
        inner = self._inner()
        sizes = inner.self_value(x) * np.array([inner.self_value(z) for z in points], dtype=float)
        values = np.asarray(inner.row(x, points), dtype=float)
        return np.where(sizes > 0, values / np.sqrt(np.where(sizes > 0, sizes, 1.0)), 0.0)

    def self_value(self, x):
        return 1.0 if self._inner().self_value(x) > 0 else 0.0


class Precomputed(Kernel):
    """Entries of a Gram matrix: X is a column of indices into it.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric, of finite numbers. It must be given: None is not a matrix.

    Examples
    --------
    >>> gram = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> Precomputed(gram)([[0]], [[1]])
    array([[0.5]])
    """

    def __init__(self, gram=None):
        self.gram = gram

    def validate(self):
        refuse_masked(self.gram, "gram")
        gram = np.asarray(self.gram) if self.gram is not None else np.empty(0)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.size == 0 or gram.dtype.kind not in "fiu":
            shape = None if self.gram is None else gram.shape
            raise ValueError(
                f"The 'gram' parameter of Precomputed must be a square matrix of numbers. Got shape {shape} instead."
            )
        if not np.isfinite(gram).all():
            raise ValueError("The 'gram' parameter of Precomputed must hold finite numbers only.")
        if not np.allclose(gram, gram.T, rtol=1e-8, atol=1e-12):
            raise ValueError("The 'gram' parameter of Precomputed must be symmetric.")

    def ops(self):
        return [{"op": "precomputed", "table": np.ascontiguousarray(self.gram, dtype=np.float64)}]

    def check_domain(self, X, name="X"):
        check_indices(X, len(self.gram), name)

    def restricts(self):
        return True

    takes_indices = restricts


class _Pair(Kernel):
    """Two kernels and an operation.

    Parameters
    ----------
    left, right : Kernel
    """

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def validate(self):
        for name in ("left", "right"):
            kernel = getattr(self, name)
            if not isinstance(kernel, Kernel):
                raise bad_parameter(self, name, "a kernel", kernel)
            kernel.validate()

    def parts(self):
        return self.left, self.right

    def ops(self):
        left, right = self.left.ops(), self.right.ops()
        if left is None or right is None:
            return None
        for constant, other in ((self.left, right), (self.right, left)):
            if type(constant) is Constant:  # one cheap operation instead of a row of constants
                return [*other, {"op": self._with_constant, "a": float(constant.value)}]
        return [*left, *right, {"op": self._with_row}]

    def _gram_of_maps(self, X, Z):
        return self._joined(self.left(X, Z), self.right(X, Z))

    def _diagonal_of_maps(self, X):
        return self._joined(self.left.diagonal(X), self.right.diagonal(X))

    def row(self, x, points):
        return self._joined(self.left.row(x, points), self.right.row(x, points))

    def self_value(self, x):
        return self._joined(self.left.self_value(x), self.right.self_value(x))


class Sum(_Pair):
    """left + right.

    Parameters
    ----------
    {left}
    """

    _with_constant, _with_row, _joined = "shift", "add", operator.add

    def coordinate(self, j):
        left, right = self.left.coordinate(j), self.right.coordinate(j)
        return None if left is None or right is None else left + right

    def features(self):
        left, right = self.left.features(), self.right.features()
        return None if left is None or right is None else [*left, *right]

    def __repr__(self):
        right = f"({self.right!r})" if isinstance(self.right, Sum) else repr(self.right)
        return f"{self.left!r} + {right}"


class Product(_Pair):
    """left * right.

    Parameters
    ----------
    {left}
    """

    _with_constant, _with_row, _joined = "scale", "multiply", operator.mul

    def _multiple(self):
        """(c, kernel) if this is a positive multiple c of a kernel; otherwise (None, None)."""
        for constant, other in ((self.left, self.right), (self.right, self.left)):
            if type(constant) is Constant and constant.value > 0:
                return float(constant.value), other
        return None, None

    def linear_scale(self):
        factor, kernel = self._multiple()
        scale = None if factor is None else kernel.linear_scale()
        return None if scale is None else factor * scale

    def features(self):
        factor, kernel = self._multiple()
        parts = None if factor is None else kernel.features()
        return None if parts is None else [_scaled(part, factor) for part in parts]

    def coordinate(self, j):
        factor, kernel = self._multiple()
        part = None if factor is None else kernel.coordinate(j)
        return None if part is None else factor * part

    def additive(self):
        factor, kernel = self._multiple()
        trees = None if factor is None else kernel.additive()
        return None if trees is None else {**trees, "scale": factor * trees["scale"]}

    def __repr__(self):
        def shown(k, other, brackets):
            if type(k) is Constant and type(other) is not Constant:
                return repr(k.value)
            return f"({k!r})" if isinstance(k, brackets) else repr(k)

        return f"{shown(self.left, self.right, Sum)}*{shown(self.right, self.left, (Sum, Product))}"


class Custom(Kernel):
    """Any callable k(x, z) on any objects: strings, sets, graphs.

    Parameters
    ----------
    function : callable
        Gives the number k(x, z) for two examples. It must be symmetric, and positive semidefinite.

    Examples
    --------
    >>> shared = lambda a, b: len(a & b)
    >>> Custom(shared)([{1, 2}, {2, 3}])
    array([[2., 1.],
           [1., 2.]])
    """

    def __init__(self, function):
        self.function = function

    def validate(self):
        if not callable(self.function):
            raise bad_parameter(self, "function", "a callable k(x, z)", self.function)

    def pair(self, x, z):
        return float(self.function(x, z))

    def __deepcopy__(self, memo):
        return Custom(self.function)  # the same function, so that models with it can be compared


# ---- By name -----------------------------------------------------------------------------------


def rbf(gamma=None):
    """The Gaussian by scikit-learn's name and parameter: exp(-gamma |x-z|^2); None is `Gaussian()`.

    >>> rbf(gamma=0.125)
    Gaussian(width=2.0)
    """
    if gamma is None:
        return Gaussian()
    if not isinstance(gamma, numbers.Real) or isinstance(gamma, bool) or not 0 < gamma < np.inf:
        raise bad_parameter("rbf", "gamma", "a positive number", gamma)
    return Gaussian(width=float(1.0 / np.sqrt(2.0 * gamma)))


def poly(degree=3, gamma=1.0, coef0=1.0):
    """The polynomial kernel by scikit-learn's name and parameters: (gamma <x,z> + coef0)^degree.

    >>> poly(2, gamma=0.5)
    Polynomial(degree=2, scale=0.5)
    """
    return Polynomial(degree, scale=gamma, bias=coef0)


# Those whose parameters all have defaults, and names by which others know them.
KERNELS = {name.lower(): globals()[name] for name in __all__ if name not in ("Kernel", "Normalized", "Precomputed")}


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
