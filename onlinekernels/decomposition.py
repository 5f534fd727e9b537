"""Components of a stream in feature space: kernel principal components, one row after another."""
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core import hebbian
from onlinekernels._core.errors import row_error
from onlinekernels._core.linalg import Factor
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels.kernels import Gaussian, as_kernel
from onlinekernels.steps import MetaDescent, as_step, check_one_step
from onlinekernels.preprocessing.transforming import RunningTransformer

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples, Kernel, Self, Sequence, Step

__all__ = ["KernelHebbian"]

BLOCK = 128  # rows whose kernel values among each other are looked at together


@dataclass(eq=False, repr=False)
class KernelHebbian(RunningTransformer):
    """Kernel principal components of a stream, by the kernel Hebbian algorithm with steps that adapt.

    Directions of feature space along which the rows vary most, learned one row after another, by Sanger's rule in the
    span of some rows, the inducing points: with y_c = <w_c, phi(x)>,

        w_c <- w_c + gain_c y_c (phi(x) - sum_{j <= c} y_j w_j),

    where phi is centred by the running mean. Gains are relative to the eigenvalue, as in KHA/et, and adapt for each
    component by stochastic meta-descent, which V names as its next work. `partial_fit` of n rows gives what n calls of
    one row give, up to rounding. An interrupted or refused call has learned nothing.

    Each row costs O(M n_features + M^2 + n_components M), M being the number of inducing points.

    Parameters
    ----------
    n_components : int
        Number of components, at least 1; the first have the largest eigenvalues.
    kernel : Kernel, str or None
        A kernel on rows of numbers. None is a Gaussian of width sqrt(n_features), for features that are scaled.
    step : float, step or None
        Step of a component relative to its eigenvalue: 1 would replace it by the row. None is
        MetaDescent(rate=0.2, meta_rate=0.01, memory=0.9), of which products are always relative to their usual size.
    delay : float or None
        Steps shrink like delay / (delay + t), which converges where the world stands still; positive. None lets them
        be, for a stream that changes.
    budget : int or None
        Number of inducing points, at least 1: the first rows that those before do not determine; None for no limit.
    tolerance : float
        A row becomes an inducing point if others leave more than this share of k(x, x) undetermined; in (0, 1).
    center : bool
        Whether the mean is subtracted in feature space.
    epochs : int
        Passes that `fit` makes, at least 1.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Variances along the components, of about the last hundred rows.
    support_vectors_ : array of shape (n_points, n_features)
        The inducing points.
    dual_coef_ : array of shape (n_components, n_points)
        Components as combinations of phi of these.
    step_ : array of shape (n_components,)
        Current steps, before they shrink by `delay`.
    t_ : int
        Rows learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    Nystroem : the same span as a feature map for learners.

    References
    ----------
    {V}

    Kim, Franz and Schoelkopf, Iterative kernel principal component analysis for image modeling, PAMI 2005.

    Guenter, Schraudolph and Vishwanathan, Fast iterative kernel principal component analysis, JMLR 2007.

    Examples
    --------
    Two rings, which no straight line tells apart, and the first component does:

    >>> rng = np.random.default_rng(0)
    >>> angle, radius = rng.uniform(0, 2 * np.pi, 1000), np.repeat([1.0, 3.0], 500)
    >>> X = np.c_[radius * np.cos(angle), radius * np.sin(angle)] + rng.normal(scale=0.1, size=(1000, 2))
    >>> rings = KernelHebbian(1, Gaussian(1.0)).fit(X[rng.permutation(1000)]).transform(X)
    >>> inner, outer = rings[:500, 0], rings[500:, 0]
    >>> bool(abs(inner.mean() - outer.mean()) > 2 * (inner.std() + outer.std()))
    True
    """

    n_components: int = 2
    kernel: Kernel | str | None = None
    _: KW_ONLY
    step: float | Step | None = None
    delay: float | None = 300.0
    budget: int | None = 256
    tolerance: float = 1e-3
    center: bool = True
    epochs: int = 1

    _values = {
        "n_components": validation.check_count, "delay": validation.check_positive.or_none,
        "tolerance": validation.check_fraction, "center": validation.check_flag, "epochs": validation.check_count,
    }

    # ---- Learning -----------------------------------------------------------------------------

    def fit(self, X: Examples, y: Any = None) -> Self:
        """Forget everything, then learn X, `epochs` times; return self."""
        with self._lock.alone:
            self._check_values()
            rows = self._checked(None, X)
            state = self._begun(X, rows)
            for _ in range(self.epochs):
                state = self._after(state, rows)[0]
            self._state = state
        return self

    def partial_fit(self, X: Examples, y: Any = None) -> Self:
        """Learn some more rows; return self."""
        self._advance(X)
        return self

    def learn_one(self, x: Any) -> Self:
        """Learn one row, 1-d; return self."""
        return self.partial_fit([x])

    def progressive(self, X: Examples) -> Any:
        """Learn the rows one after another, and return for each its projections just before its step."""
        return self._shown(X, self._advance(X))

    def _advance(self, X):
        with self._lock.alone:
            self._check_values()
            rows = self._checked(self._state, X)
            self._state, scores = self._after(self._begun(X, rows) if self._state is None else self._state, rows)
        return scores

    def _check_values(self):
        super()._check_values()
        if self.budget is not None:
            validation.check_count(self, "budget")
        if self._state is not None and self.n_components != len(self._state["steps"]):
            raise ValueError(f"The 'n_components' parameter changed after fitting, from {len(self._state['steps'])} to "
                             f"{self.n_components}; call fit to start anew.")

    def _begun(self, X, rows):
        """The state before the first row."""
        r, d = self.n_components, rows.shape[1]
        kernel = Gaussian(math.sqrt(d)) if self.kernel is None else as_kernel(self.kernel, self)
        kernel.validate()
        if kernel.ops() is None or kernel.has_map():
            expected = "a built-in kernel on rows of numbers, and no feature map"
            raise validation.bad_parameter(self, "kernel", expected, self.kernel)
        step = self._step()
        return {
            "kernel": kernel, "names": validation.feature_names(X), "t": 0, "points": np.zeros((0, d)),
            "factor": np.zeros((0, 0)), "components": np.zeros((r, 0)), "traces": np.zeros((r, 0)),
            "mean": np.zeros(0), "eigenvalues": np.zeros(r),
            "steps": np.full(r, float(step.rate) if isinstance(step, MetaDescent) else 1.0), "products": np.zeros(r),
        }

    def _step(self):
        if isinstance(self.step, MetaDescent):
            return check_one_step(self, "step")
        return MetaDescent(0.2, 0.01, 0.9) if self.step is None else as_step(self.step, self)

    def _after(self, state, rows):
        """(state after these rows, their projections)."""
        scores = []
        for start in range(0, len(rows), BLOCK):
            state, some = self._after_block(state, rows[start : start + BLOCK], start)
            scores.append(some)
        return state, np.concatenate(scores)

    def _after_block(self, state, rows, start):
        step, t = self._step(), state["t"]
        adapts = isinstance(step, MetaDescent)
        times = np.arange(t + 1, t + 1 + len(rows))
        sizes = np.array([1.0 if adapts else step.checked_size(np.inf, int(time)) for time in times])
        sizes = sizes if self.delay is None else sizes / (1.0 + times / float(self.delay))
        coordinates, known, points, factor = self._appended(state, rows, start)
        m, n_points = coordinates.shape[1], len(state["factor"])
        state = {**state, "t": t + len(rows), "points": points, "factor": factor}
        for name in ("components", "traces", "mean"):
            old = state[name]
            state[name] = np.zeros((*old.shape[:-1], m))
            state[name][..., :n_points] = old
        for name in ("steps", "products", "eigenvalues"):
            state[name] = state[name].copy()
        scores = np.empty((len(rows), len(state["steps"])))
        learned = (state[name] for name in ("components", "traces", "steps", "products", "eigenvalues", "mean"))
        hebbian.advance(coordinates, known, sizes, *learned, t, n_points, float(step.meta_rate), float(step.memory),
                        adapts, bool(self.center), scores, np.empty((4, m)))
        if not all(all_finite(state[name]) for name in ("components", "traces", "eigenvalues", "mean")):
            wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
            row = start + (wrong[0] if len(wrong) else 0)
            raise row_error(ValueError, row, "is too large for the kernel: components overflow.")
        return state, scores

    def _appended(self, state, rows, start):
        """(coordinates of rows (n, m), how many of them each row had in its time, points, their Cholesky factor)."""
        kernel, factor, points = state["kernel"], state["factor"], state["points"]
        capacity = math.inf if self.budget is None else self.budget
        with np.errstate(over="ignore", invalid="ignore"):
            own = kernel.diagonal(rows)
            coordinates = self._coordinates(state, rows)
            if not (all_finite(own) and all_finite(coordinates)):
                row = start + int(np.argmax(~np.isfinite(own) | ~np.isfinite(coordinates).all(axis=1)))
                raise row_error(ValueError, row, "is too large for the kernel: it is not a finite number.")
        known = np.full(len(rows), len(factor), dtype=np.int64)
        if len(factor) < capacity:
            rest = kernel(rows) - coordinates @ coordinates.T
            fresh, bases = [], []
            for i in range(len(rows)):
                if len(factor) + len(fresh) < capacity and rest[i, i] > self.tolerance * own[i]:
                    column = rest[:, i] / math.sqrt(rest[i, i])
                    column[:i] = 0.0  # rows before it did not have this coordinate
                    rest -= np.outer(column, column)
                    fresh.append(i)
                    bases.append(column)
                known[i] += len(fresh)
            if fresh:
                coordinates = np.column_stack([coordinates, *bases])
                grown = np.zeros((len(factor) + len(fresh),) * 2)
                grown[: len(factor), : len(factor)] = factor
                grown[len(factor) :] = np.tril(coordinates[fresh], len(factor))
                factor, points = grown, np.concatenate([points, rows[fresh]])
        return np.ascontiguousarray(coordinates), known, points, factor

    @staticmethod
    def _coordinates(state, rows):
        """L^-1 k(D, x) for each row, where K_DD = L L^T."""
        if not len(state["points"]):
            return np.zeros((len(rows), 0))
        values = state["kernel"](rows, state["points"])
        _solver(state).solve_into(values)
        return values

    # ---- Looking ------------------------------------------------------------------------------

    def transform(self, X: Examples) -> Any:
        """Projections of the rows of X on the components, shape (n, n_components)."""
        with self._lock.shared:
            state = self._fitted()
            rows = self._checked(state, X)
            with np.errstate(over="ignore", invalid="ignore"):
                out = (self._coordinates(state, rows) - state["mean"]) @ state["components"].T
        if not all_finite(out):
            raise row_error(ValueError, int(np.argmax(~np.isfinite(out).all(axis=1))), "is too large for the kernel.")
        return self._shown(X, out)

    def transform_one(self, x: Any) -> Array:
        """Projections of one row, 1-d."""
        return np.asarray(self.transform([x]))[0]

    def _checked(self, state, X):
        owner = type(self).__name__
        if state is not None:
            validation.check_feature_names(X, state["names"], owner)
        n_features = None if state is None else state["points"].shape[1]
        return validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=owner)

    @property
    def eigenvalues_(self) -> Any:
        """Variances along the components."""
        return self._attribute()["eigenvalues"].copy()

    @property
    def support_vectors_(self) -> Any:
        """The inducing points."""
        return self._attribute()["points"].copy()

    @property
    def dual_coef_(self) -> Any:
        """Components as combinations of phi of the inducing points."""
        state = self._attribute()
        columns = state["components"].T.copy()
        _solver(state).solve_transposed_into(columns)
        return columns.T

    @property
    def step_(self) -> Any:
        """Current steps."""
        return self._attribute()["steps"].copy()

    @property
    def t_(self) -> int:
        """Rows learned."""
        return self._attribute()["t"]

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._attribute()["points"].shape[1]

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, if a data frame came first."""
        if self._attribute()["names"] is None:
            raise AttributeError("feature_names_in_ exists only after a data frame.")
        return np.array(self._attribute()["names"], dtype=object)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """kernelhebbian0, kernelhebbian1, ..."""
        return np.array([f"kernelhebbian{c}" for c in range(len(self._fitted()["steps"]))], dtype=object)

    def _check(self):
        """Assert what must always hold."""
        state = self._state
        if state is not None:
            gram = state["kernel"](state["points"])
            assert np.allclose(state["factor"] @ state["factor"].T, gram, atol=1e-8 * gram.max())
            assert all(np.isfinite(state[name]).all() for name in ("components", "traces", "mean", "steps"))

    def __sklearn_tags__(self):
        return self._tags()


def _solver(state):
    """The triangular solves of the inducing points: O(n_points^2)."""
    factor = Factor(len(state["factor"]))
    factor.load(state["factor"])
    return factor
