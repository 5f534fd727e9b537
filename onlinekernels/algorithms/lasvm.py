"""LASVM: the support vector machine, learned online."""
from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core import rules as core
from onlinekernels._core.errors import row_error
from onlinekernels.algorithms.classics import TwoClasses
from onlinekernels.base.estimator import learned
from onlinekernels.base.plan import Rule
from onlinekernels.base.status import LearningWarning, level_outside
from onlinekernels.losses import Hinge
from onlinekernels.base.validation import check_integer, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ClassWeight, KernelLike, RunningEncoder, RunningScaler

STEPS = 256  # between two looks at the keyboard
MOST = 10_000  # times as many make `finish` give up


@dataclass(eq=False, repr=False)
class SMO(Rule):
    """Steps in pairs of coefficients on the dual problem of the terms."""

    _values = {"penalty": check_positive, "tolerance": check_positive}
    losses = (Hinge,)
    step_name = "LASVM"
    may_change = frozenset({"penalty"})
    keeps_examples = True
    has_own_offset = True
    evaluates_slots = True
    moves_terms = True
    refuses_start = "LASVM starts from 0: initial cannot say which labels its terms have."
    core_class = core.SMO

    penalty: float  # C, the largest coefficient
    tolerance: float  # tau, by how much gradients of a pair must differ

    def settings(self):
        return {**super().settings(), "penalty": self.penalty, "tolerance": self.tolerance}


@dataclass(eq=False, repr=False)
class LASVM(TwoClasses):
    """The support vector machine with an offset, online (Bordes, Ertekin, Weston and Bottou 2005).

    It works on the dual problem of the terms that it has::

        maximize  sum_i a_i y_i - 1/2 sum_ij a_i a_j k(x_i, x_j)    where  sum_i a_i = 0  and  0 <= y_i a_i <= C

    by steps in pairs of coefficients. An example enters if it makes a pair that is worth a step, and that step is made
    (PROCESS). Then the best pair of all makes another one, and terms with coefficient 0 go that are far from being in
    a pair (REPROCESS). `finish` makes steps of the second kind until none is worth it: on the terms, that is the
    solution.

    `fit` takes the rows in random order, calls `finish`, and comes back to rows that still make a pair, until there are
    none: that is the solution over all rows, with fewer terms than rows in memory at any time. On a stream, one pass in
    random order and `finish` are about as good as a batch solver where the penalty is small, about 1; a large one wants
    more passes, and rows sorted by class or drifting want `fit`. `gap_` says how far the solution is.

    All kernel values between terms are kept: memory grows with the square of their number.

    Parameters
    ----------
    {kernel}
    penalty : float
        C, the largest coefficient: how much an example counts that the others contradict; positive. It can be changed
        between calls, for the examples that come then.
    tolerance : float
        tau: a pair is worth a step if its gradients differ by more than this; positive.
    {class_weight}
        Multiplies C, as a sample weight does.
    {scale}
        `fit` scales by the means and deviations of all its rows.
    {encode}
    epochs : int
        Passes that `fit` makes at most; at least 1. It stops when `gap_` is at most the tolerance, and warns if it is
        not. The first pass is over all rows, others are over those that make a pair.
    random_state : int or None
        Seed of the order in which `fit` takes the rows; None is another order each time.

    {Attributes}

    Notes
    -----
    After `partial_fit`, `progressive` and `learn_one`, which take rows in the given order, call `finish` when you want
    the solution. They go on from there. An example that makes no pair is not kept, not even with coefficient 0 as in
    the paper's PROCESS: the next REPROCESS would drop it. Of a stream that begins with one class only, the first five
    examples wait for the other one.

    References
    ----------
    Bordes, Ertekin, Weston and Bottou. Fast kernel classifiers with online and active learning. Journal of Machine
    Learning Research 6, 2005.

    Examples
    --------
    >>> from onlinekernels import LASVM
    >>> model = LASVM("linear", penalty=10.0).fit([[0.0], [1.0], [3.0], [9.0]], [-1, -1, 1, 1])
    >>> sorted(zip(model.support_vectors_[:, 0].tolist(), model.dual_coef_[0].round(3).tolist()))
    [(1.0, -0.5), (3.0, 0.5)]
    >>> model.decision_function([[1.0], [2.0], [3.0]]).round(3).tolist()
    [-1.0, 0.0, 1.0]
    >>> bool(model.gap_ <= model.tolerance)
    True
    """

    _rule = SMO

    kernel: KernelLike | None = None
    _: KW_ONLY
    penalty: float = 1.0
    tolerance: float = 1e-3
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1000
    random_state: int | None = 0

    @property
    def loss(self) -> Any:
        """Hinge(): the loss whose sum, times C, the solution adds to 1/2 |f|^2 and minimizes."""
        return Hinge()

    def _plan(self):
        if self.random_state is not None:
            check_integer(self, "random_state", 0)
        return super()._plan()

    @learned
    def gap_(self, state: Any) -> Any:
        """By how much the solution misses the conditions of the optimum: the largest difference of gradients of a pair.

        After `fit`, over all its rows; when more has been learned, over the terms.
        """
        return state.hypothesis.rule.gap()

    def finish(self) -> Any:
        """Make steps in pairs of coefficients until none is worth it; return self.

        Of the examples that are terms now this is the support vector machine. Learning can go on afterwards.
        """
        with self._lock.alone:
            self._finish(self._fitted())
        return self

    def _finish(self, state):
        hypothesis = state.hypothesis
        for _ in range(MOST):
            if hypothesis.rule.finish(hypothesis.offsets, STEPS):
                return
        give_up("LASVM gives up: its steps get nowhere.", "scale=True")

    # ---- The passes of `fit` ------------------------------------------------------------------

    def _make_passes(self, before, state, X, y, weights):
        """Learn all rows in random order, then those that are in pairs worth a step, until there are none."""
        rule, order = state.hypothesis.rule, np.random.default_rng(self.random_state)
        scaler = state.engine.scaler
        if scaler is not None:  # all rows are there: no row is scaled by the first few
            scaler.load(scaler.advanced(X, wanted=False)[0])
            scaler.frozen = True
        try:
            candidates = WorkingSet(state, X, y, weights)
            chosen = order.permutation(len(X))
            for epoch in range(self.epochs):
                self._learn_rows(before, state, X, y, weights, chosen, len(candidates.sequence))
                candidates.sequence = np.concatenate([candidates.sequence, chosen])
                self._finish(state)
                rule.rows_gap, chosen = candidates.look(self._decision)
                if rule.rows_gap <= self.tolerance:
                    return
                if not len(chosen):  # all that is left is rounding
                    break
                chosen, rule.admits = order.permutation(chosen), True
            give_up(f"LASVM stops after {epoch + 1} passes with gap_ = {rule.rows_gap:.2g}.", "more epochs")
        finally:
            rule.admits = False
            if scaler is not None:
                scaler.frozen = False

    def _learn_rows(self, before, state, X, y, weights, chosen, earlier):
        """Learn chosen rows; an error names a row as X has it."""
        rows = [X[i] for i in chosen] if isinstance(X, list) else X.take(chosen) if state.sparse else X[chosen]
        weights = None if weights is None else weights[chosen]
        try:
            self._learn(before, state, rows, y[chosen], weights, earlier=earlier)
        except FloatingPointError as error:
            if not hasattr(error, "row"):
                raise
            named = row_error(FloatingPointError, chosen[error.row], error.what)
            validation.add_rows_learned(named, error.rows_learned)
            raise named from None


def give_up(what, advice):
    """Warn that this is not the solution."""
    message = f"{what} What may help: {advice}, a smaller penalty, a larger tolerance."
    warnings.warn(message, LearningWarning, stacklevel=level_outside())


class WorkingSet:
    """Rows of `fit`, as the engine takes them, that may still enter."""

    def __init__(self, state, X, y, weights):
        self.state, self.y = state, y
        self.X = state.scaled(X)
        self.may_enter = state.kernel.diagonal(validation.as_csr(self.X) if state.sparse else self.X) > 0
        if weights is not None:
            self.may_enter &= weights > 0
        self.sequence = np.zeros(0, dtype=np.intp)  # the row that was learned at each t

    def look(self, decide):
        """(gap over all rows, those that make a pair worth a step, be it with each other)."""
        rule, dictionary = self.state.hypothesis.rule, self.state.function.dictionary
        gradients = self.y - (decide(self.state, self.X, trusted=True)[:, 0] - self.state.hypothesis.intercept()[0])
        free = self.may_enter.copy()
        free[self.sequence[dictionary.birthdays.array[0, dictionary.slots()] - 1]] = False  # terms
        ups, downs = np.flatnonzero(free & (self.y > 0)), np.flatnonzero(free & (self.y < 0))
        largest, smallest = rule.extremes()
        largest = gradients[ups].max(initial=largest)
        smallest = gradients[downs].min(initial=smallest)
        wanted = ups[gradients[ups] - smallest > rule.tolerance], downs[largest - gradients[downs] > rule.tolerance]
        return max(0.0, largest - smallest), np.concatenate(wanted)
