"""What can be seen of a fitted model: terms, weights, knots, offsets, labels."""
import copy

import numpy as np

__all__ = ["Fitted", "only_if"]


class only_if:
    """A method or property that exists only where `check(model)` holds, for hasattr as well."""

    def __init__(self, check):
        self.check = check

    def __call__(self, function):
        self.function = function
        self.__doc__ = function.__doc__
        return self

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self.function
        try:
            exists = self.check(model)
        except ValueError as error:  # parameters that the first fit will refuse
            raise AttributeError(str(error)) from error
        if not exists:
            raise AttributeError(f"{type(model).__name__} with the loss {model.loss!r} has no {self.name!r}")
        return self.function.__get__(model, owner)


class Fitted:
    """The attributes of a fitted model, which end in an underscore; before the first fit they do not exist."""

    _state = None  # what is learned: None until the first fit

    def _attribute(self):
        if self._state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return self._state

    def _terms(self):
        state = self._attribute()
        if state.engine.expansion.pool is None:
            instead = "knots, not terms: see knots_" if state.plan.trees else "weights, not terms: see coef_"
            raise AttributeError(f"This kernel with an unlimited budget keeps {instead}.")
        return state.terms()

    @property
    def support_vectors_(self):
        """Points of the terms, oldest first: an array, or a list of objects."""
        return self._terms()[0]

    @property
    def dual_coef_(self):
        """Coefficients of the terms, oldest first, shape (n_outputs, n_terms_); before the label kernel."""
        alpha = self._terms()[1]
        return self._state.shown(alpha)

    @property
    def n_terms_(self):
        """Number of terms in the expansion; 0 where weights replace them."""
        expansion = self._attribute().engine.expansion
        if expansion.pool is not None:
            return len(expansion.pool.live_slots())
        return int(expansion.tree.counts(0).sum()) if self._state.plan.trees else 0

    @property
    def knots_(self):
        """Distinct values of each coordinate among the terms of an additive model, ascending."""
        return self._additive().knots()

    @only_if(lambda model: model._additive() is not None)
    def component(self, j, grid):
        """f_j of an additive model: its part that depends on coordinate j, at the values in grid.

        The components and the intercept add up to f.

        Returns
        -------
        array of shape (len(grid),), or (len(grid), n_classes) for many classes
        """
        grid = np.asarray(grid, dtype=float)
        if grid.ndim != 1 or not np.isfinite(grid).all():
            raise ValueError(f"grid must be a 1-d array of finite numbers. Got {grid!r} instead.")
        values = self._additive().component(j, grid)
        return values[:, 0] if self._state.form == "one" else self._state.shown(values.T).T

    def _additive(self):
        state = self._attribute()
        if state.kernel.coordinate(0) is None:
            raise AttributeError(f"Only a model with an additive kernel has components. This one has {state.kernel!r}.")
        return state

    @property
    def intercept_(self):
        """Offsets b, shape (n_outputs,); of the averaged hypothesis with average=True."""
        state = self._attribute()
        return state.shown(state.engine.intercept())

    @property
    def coef_(self):
        """Weights of a linear kernel, shape (n_outputs, n_features)."""
        state = self._attribute()
        scale = state.kernel.linear_scale()
        if scale is None:
            raise AttributeError("coef_ exists for the linear kernel only.")
        if state.engine.expansion.pool is None:
            weights = state.engine.coefficients()
        else:
            points, alpha = state.terms()
            weights = alpha @ points.astype(float)
        return state.shown(scale * state.with_label_kernel(weights))

    @property
    def norm_(self):
        """|f| in the kernel's Hilbert space; O(n_terms^2) kernel values unless there are weights or trees."""
        return self._attribute().norm()

    @property
    def t_(self):
        """Number of examples learned."""
        return self._attribute().engine.t

    @property
    def step_(self):
        """Step size of the latest example."""
        return self._attribute().engine.step_size()

    @property
    def kernel_(self):
        """The kernel in force; a default one has a width that follows the number of features."""
        return copy.deepcopy(self._attribute().kernel)

    @property
    def regularization_(self):
        """The regularization in force."""
        return self._attribute().plan.regularization

    @property
    def budget_(self):
        """The budget in force."""
        return copy.deepcopy(self._attribute().plan.budget)

    @property
    def n_features_in_(self):
        """Number of features; does not exist for a kernel on objects."""
        n_features = self._attribute().n_features
        if n_features is None:
            raise AttributeError("A kernel on objects has no number of features.")
        return n_features

    @property
    def feature_names_in_(self):
        """Names of the columns, if the model saw a data frame first."""
        names = self._attribute().feature_names
        if names is None:
            raise AttributeError("feature_names_in_ exists only for models that have seen a data frame first.")
        return np.array(names, dtype=object)

    @property
    def classes_(self):
        """The labels; of two, the second is the positive one."""
        state = self._attribute()
        if state.labels is None:
            raise AttributeError("classes_ exists for classifiers only.")
        outputs = state.engine.expansion.outputs
        return (state.labels.classes if outputs is None else state.labels.classes[: outputs.n]).copy()

    @property
    def margin_(self):
        """Current margin rho of the loss."""
        return self._scalar("margin")

    @property
    def width_(self):
        """Current width (epsilon, sigma) of the loss."""
        return self._scalar("width")

    @property
    def offset_(self):
        """rho of a novelty loss: decision_function = score_samples - offset_."""
        if self._attribute().loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only; see intercept_.")
        return self._state.engine.scalar()

    def _scalar(self, name):
        state = self._attribute()
        if state.loss.scalar_name != name:
            raise AttributeError(f"The loss {state.loss!r} has no {name}.")
        return state.engine.scalar()
