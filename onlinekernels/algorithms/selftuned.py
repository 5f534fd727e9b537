"""The kernel that learns itself."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import validation
from onlinekernels.algorithms.tuned import KINDS, SelfTuning, together
from onlinekernels.model.composite import OnlineComposite
from onlinekernels.model.compositestate import CompositePlan
from onlinekernels.model.fitted import learned
from onlinekernels.model.trouble import warn_of_members
from onlinekernels.nouns.losses import MulticlassSquared, Squared, as_loss
from onlinekernels.selftuning import drawing

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ClassWeight, RunningEncoder, Self

__all__ = ["SelfTuned"]


@dataclass(frozen=True, eq=False)
class SelfTunedPlan(CompositePlan):
    """Parameters of a `SelfTuned` that are in force."""

    axes: str
    budget: int
    window: int


class SelfTuned(OnlineComposite):
    """A posterior that learns its kernel on the stream: which features matter, how much noise there is, how fast to forget.

    Nothing has to be set. After 100, 200, 400, ... examples, at most 4000 apart, the latest are looked at as a whole: their
    evidence, the probability of all of them under a kernel, is followed uphill as a function of one scale for each axis, of the
    amplitude, the noise and the forgetting. Then a new posterior replays them in the new metric and goes on. In between it is
    an ordinary `KRLS`.

    Beside it is a plain posterior with a short memory, for what changes faster than a kernel can be learned; answers are a
    combination of all by least squares. After an abrupt change (the loss of the last 64 examples is twice the usual, and the
    plain posterior is better) only the latest examples are kept, and the kernel is learned anew.

    Results do not depend on how a stream is cut into calls.

    Parameters
    ----------
    loss : Squared, MulticlassSquared, "squared", "multiclass_squared" or None
        The first is for numbers, one or several, the second for two or many classes. None is for numbers.
    axes : "auto", "own" or "gradient"
        What has a scale each: the features themselves ("own"), or the directions in which f changes most and least
        ("gradient": eigenvectors of the average outer product of its gradient), for relevance that is not along features.
        "auto" learns both.
    budget : int
        How many points each learned posterior may have.
    window : int
        How many examples are kept to learn the kernel from; at least 100.
    frozen : bool
        Keep the kernel as it is: no examples are looked at again until this is False. It may be set at any time.
    background : bool
        Let a thread prepare a refreshed kernel while the old one answers and learns, so that no call waits for it but for the last
        part. It takes over at the same example as without a thread, so answers are the same. It may be set at any time.
    {class_weight}
    {encode}
    {epochs}

    {Attributes}

    See Also
    --------
    KRLS : the posterior with a kernel of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import SelfTuned
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 5))
    >>> y = np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=800)        # one feature of five
    >>> model = SelfTuned()
    >>> scores = model.progressive(X, y)
    >>> bool(np.mean((scores[400:] - y[400:]) ** 2) < 0.05)
    True
    >>> max(model.relevance_, key=model.relevance_.get)
    'x1'
    """

    _plan_class = SelfTunedPlan

    def __init__(self, loss: Any = None, *, axes: str = "auto", budget: int = 150, window: int = 2000,
                 frozen: bool = False, background: bool = False, class_weight: ClassWeight | None = None,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.loss = loss
        self.axes = axes
        self.budget = budget
        self.window = window
        self.frozen = frozen
        self.background = background
        self.class_weight = class_weight
        self.encode = encode
        self.epochs = epochs

    def _settings(self):
        loss = as_loss("squared" if self.loss is None else self.loss, self)
        if type(loss) not in (Squared, MulticlassSquared):
            raise ValueError(
                "The 'loss' parameter of SelfTuned must be one whose posterior is Gaussian: 'squared' for numbers, "
                f"'multiclass_squared' for classes. Got {loss!r} instead."
            )
        if not isinstance(self.axes, str) or self.axes not in KINDS:
            raise validation.bad_parameter(self, "axes", '"auto", "own" or "gradient"', self.axes)
        validation.check_flag(self, "frozen")
        validation.check_flag(self, "background")
        return {
            "axes": self.axes,
            "budget": validation.check_count(self, "budget"),
            "window": validation.check_integer(self, "window", 100),
        }

    def _begin(self, plan, n_features, targets):
        return SelfTuning(KINDS[plan.axes], plan.budget, plan.window, n_features, targets)

    def _learn(self, before, state, X, y, weights=None, **others):
        state.composition.frozen, state.composition.background = bool(self.frozen), bool(self.background)
        answers = super()._learn(before, state, X, y, weights, **others)
        warn_of_members(state, state.composition.noticed)
        return answers

    def refresh(self) -> Self:
        """Learn the kernel from the examples that are kept, now; return self.

        The next time is counted from here as if this had been one of the fixed times.
        """
        with self._turn.alone:
            self._fitted().composition.refresh()
        return self

    # ---- What was learned ---------------------------------------------------------------------

    @learned
    def relevance_(self, state: Any) -> Any:
        """How much each feature counts for distances, {name: share}: they sum to 1. With several learned members, these count as in `weights_`."""
        roots = np.sqrt(np.diag(state.composition.learned_now()[0]))
        return dict(zip(state.names(), (roots / roots.sum()).tolist(), strict=True))

    @learned
    def metric_(self, state: Any) -> Any:
        """M such that the squared distance of rows is (u - v)^T M (u - v), u and v their features on one footing."""
        return state.composition.learned_now()[0]

    @learned
    def noise_(self, state: Any) -> Any:
        """The variance of y about f that was learned, where the variance of y is 1."""
        return state.composition.learned_now()[1]

    @learned
    def memory_(self, state: Any) -> Any:
        """What is left of f's variance after one example, as it was learned."""
        return state.composition.learned_now()[2]

    @learned
    def history_(self, state: Any) -> Any:
        """What was learned when: {"t", "alarm", "relevance", "noise", "memory"}, arrays with an entry for each refresh."""
        history = state.composition.history
        found = [together(kinds) for _, _, kinds in history]
        roots = np.array([root for root, _, _ in found]).reshape(len(history), state.n_features)
        return {
            "t": np.array([t for t, _, _ in history], dtype=np.int64),
            "alarm": np.array([alarm for _, alarm, _ in history], dtype=bool),
            "relevance": roots / roots.sum(axis=1, keepdims=True),
            "noise": np.array([noise for _, noise, _ in found]),
            "memory": np.array([memory for _, _, memory in found]),
        }

    def plot_history(self, axes: Any = None, most: int = 8) -> Any:
        """The relevance of features over time, of those that ever counted most, and alarms; needs matplotlib. Returns the figure.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; a new figure without them.
        most : int
        """
        return drawing.over_time(list(self.relevance_), self.history_, self.t_, axes, most)
