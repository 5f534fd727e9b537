"""What all algorithms are: parameters and their documentation, the scikit-learn protocol, pickles.

An algorithm stores its parameters.  How it learns is in `learning`, how it predicts in `predicting`, what it shows in `fitted`.
"""
from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING

from onlinekernels._core.lock import TakesTurns
from onlinekernels.base import defaults
from onlinekernels.base.encoding import Encodes
from onlinekernels.base.fitted import Fitted
from onlinekernels.base.learning import Learning
from onlinekernels.base.predicting import Predicting
from onlinekernels.base.state import State
from onlinekernels.budgets import Recent, as_budget
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss
from onlinekernels.base.params import Parameterized
from onlinekernels.steps import as_step

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Budget, ClassWeight, LabelStructure, Path, RunningScaler, Self

__all__ = ["OnlineLearner"]


class OnlineLearner(Learning, Encodes, Fitted, Predicting, Parameterized, TakesTurns):
    """Base of all algorithms: everything but the rule.

    A subclass has an ``__init__`` that stores its parameters and a ``_plan`` that validates them. `_turn.alone` is to learn,
    `_turn.shared` to predict, `_turn` to look. What several algorithms have in common is described here, and in the
    docstrings of those that have it; see `onlinekernels.base.docstrings`.

    Parameters
    ----------
    loss : Loss, str or None
        What to minimize, or its name; it decides the task. None is `Hinge()`.
    kernel : Kernel, str, callable or None
        How examples resemble each other: a kernel, its name, or any callable k(x, z). None is a `Gaussian` whose width
        follows the number of features d: 0.3 sqrt(d) for classes, 0.5 sqrt(d) for numbers, sqrt(d) for novelty, times the
        size of the features. That is 1 behind ``scale=True``; otherwise a power of two by which the median distance of
        rows is larger than that of normal deviates, sqrt(2 d) or a little less. `fit` looks at up to 100 of all rows. On a stream the first 10 rows decide, and again the
        first 100, which are learned anew if the width changes. For sparse rows None is `Linear`, but for novelty. `kernel_`
        is the kernel in force.
    average : bool
        Predict with the average of all hypotheses (K Cor. 5), offsets and adapted margins or widths included, at no cost
        per step. Needs an unlimited budget.
    budget : Budget, int or None
        Which terms stay; an integer means `Recent`, None all of them.
    offset : bool or None
        Learn an offset b beside f; it is not regularized. None decides by the kernel: True for a linear one on dense rows,
        which otherwise goes through 0. `has_offset_` is what was decided.
    labels : Taxonomy, LabelGraph, Labels or None
        Structure of the labels, for losses of many classes.
    class_weight : dict, "balanced" or None
        {label: weight}; multiplies the loss of its examples, 1 for labels that are not named. "balanced" gives
        every class the same total, and needs `fit`, which sees them all.
    scale : bool or RunningScaler
        Scale the features by running means and deviations first; they are learned and saved with the model.
        Points and weights of the model are then in scaled units.
    scale_target : bool, RunningScaler or "log"
        Numbers to predict: scale them by their running mean and deviation, learned and saved with the model. Predictions
        and progressive scores are in your units; coefficients, the intercept and the width of the loss in scaled ones. "log" is
        for skewed numbers: arcsinh(y) is scaled, which is the logarithm of 2 \\|y\\| with the sign of y, and y itself well below 1.
        Predictions are then medians.
    encode : bool or RunningEncoder
        Make numbers of rows first: of data frames, dictionaries or lists with words, dates and missing values. The encoder is
        learned and saved with the model; `encoder_` shows it. Numbers stay as they are, so ``scale=True`` is a good idea, too.
    epochs : int
        Passes that `fit` makes; at least 1.

    {Attributes}

    Notes
    -----
    Formulas have the letters of the papers. f_t is the function before example t = 1, 2, ... with its label or target
    y_t, and |f| its norm in the space of the kernel. eta_t is the step, lambda the regularization (c in V), C the
    penalty, b the offset, omega the size of the budget. rho is the margin of a loss, epsilon or sigma its width, nu the
    fraction of examples that a nu-loss leaves outside. kappa and Delta are the kernel and the distance of labels.
    Implicit steps have tau_t = eta_t lambda / (1 + eta_t lambda), adapted steps the meta step mu and the trace v, norm
    balls the radius gamma. K, I, V and H are papers, and a number in parentheses is an equation there.

    {References}
    """

    _budget_of_int: type[Budget] = Recent
    _default_kernel = staticmethod(defaults.kernel)
    _takes_many = False  # whether many classes are fine although the loss is of two
    _rule: Any = None  # the class of its rule
    average = False
    offset: bool | None = False
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | str | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    epochs = 1

    # ---- Parameters ---------------------------------------------------------------------------

    def __setattr__(self, name, value):
        """Remember that a parameter changed after fitting: the next call looks at it."""
        super().__setattr__(name, value)
        if self._state is not None and name != "_state":
            self._state.stale = True

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, nested ones as ``kernel__width``; return self.

        On a fitted model, `step`, `regularization`, `penalty` and the `noise` of `KRLS` take effect with the next call; other
        parameters need `fit` to start anew.
        """
        with self._turn:
            super().set_params(**params)
            if self._state is not None:
                self._state.stale = True
        return self

    def _noun(self, name, value):
        """The object that None, a name or a number stands for: `kernel__width` works on a default kernel too."""
        makers = {"kernel": as_kernel, "loss": as_loss, "step": as_step}
        if name == "budget" and not isinstance(value, str):
            return as_budget(value, self, self._budget_of_int)
        if name not in makers:
            return None
        return makers[name](1.0 if name == "step" and value is None else value, self)

    # ---- Protocols ----------------------------------------------------------------------------

    @property
    def _estimator_type(self):
        try:
            task = self._current_loss().task
        except ValueError as error:  # a loss that the first fit will refuse
            raise AttributeError(str(error)) from error
        return {"regression": "regressor", "novelty": "outlier_detector"}.get(task, "classifier")

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kind, loss = self._estimator_type, self._current_loss()
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(
                required=kind != "outlier_detector",
                multi_output=kind == "regressor" and not loss.adapts and not getattr(self, "radius", None),
            ),
            # Local kernels need features in their own units; one pass over few rows promises a regression little.
            classifier_tags=ClassifierTags(poor_score=not self.scale, multi_class=self._takes_many or loss.task == "multiclass")
            if kind == "classifier"
            else None,
            regressor_tags=RegressorTags(poor_score=True) if kind == "regressor" else None,
            input_tags=InputTags(
                sparse=as_kernel(self.kernel, self).on_inner_products(),
                **dict.fromkeys(("allow_nan", "string", "categorical", "dict"), bool(self.encode)),
            ),
        )

    def __sklearn_is_fitted__(self):
        return self._state is not None

    def save(self, path: Path) -> None:
        """Write the model to one .npz file that `load` continues from, bit for bit.

        A kernel or loss that is Python code is not in the file: give it to `load`, as ``load(path, kernel=...)``.

        Parameters
        ----------
        path : str or path
        """
        from onlinekernels.base.files.modelfile import save

        with self._turn:
            save(self, path)

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        with self._turn:
            state = self.get_params(deep=False)
            if self._state is not None:
                state["_state"] = self._state.to_dict()
                if self._encoder is not None:
                    state["_encoder"] = self._encoder
        return state

    def __setstate__(self, state):
        state = dict(state)
        learned = state.pop("_state", None)
        self.__dict__.update(state)
        if learned is not None:
            self.__dict__["_state"] = self._restored(learned)

    def _restored(self, learned):
        """The state that a dictionary describes; ValueError if its parts do not fit each other."""
        return State.from_dict(learned)
