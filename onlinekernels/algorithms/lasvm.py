"""LASVM: the support vector machine, learned online."""
import warnings

from onlinekernels.algorithms.margin import TwoClasses
from onlinekernels.losses import Hinge
from onlinekernels.plan import Plan
from onlinekernels.trouble import LearningWarning
from onlinekernels.validation import check_positive

__all__ = ["LASVM"]

STEPS = 256  # between two looks at the keyboard
MOST = 10_000  # times as many make `finish` give up


class LASVM(TwoClasses):
    """The support vector machine with an offset, online (Bordes, Ertekin, Weston and Bottou 2005).

    It works on the dual problem of the terms that it has::

        maximize  sum_i a_i y_i - 1/2 sum_ij a_i a_j k(x_i, x_j)    where  sum_i a_i = 0  and  0 <= y_i a_i <= C

    by steps in pairs of coefficients. An example enters if it makes a pair that is worth a step, and that step is made
    (PROCESS). Then the best pair of all makes another one, and terms with coefficient 0 go that are far from being in
    a pair (REPROCESS). After a pass `finish` makes steps of the second kind until none is worth it: on the terms, that
    is the solution. In practice one pass and `finish` are as good as a batch solver, with fewer terms than examples in
    memory at any time.

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
    {epochs}
        In later passes an example that still is a term is not learned again.

    {Attributes}

    Notes
    -----
    `fit` calls `finish` at its end; after `partial_fit`, `progressive` and `learn_one` call it when you want the
    solution. They go on from there. An example that makes no pair is not kept, not even with coefficient 0 as in the
    paper's PROCESS: the next REPROCESS would drop it. Of a stream that begins with one class only, the first five examples wait
    for the other one.

    References
    ----------
    Bordes, Ertekin, Weston and Bottou. Fast kernel classifiers with online and active learning. Journal of Machine
    Learning Research 6, 2005.

    Examples
    --------
    >>> from onlinekernels import LASVM
    >>> model = LASVM("linear", penalty=10.0).fit([[0.0], [1.0], [3.0], [9.0]], [-1, -1, 1, 1])
    >>> model.support_vectors_.tolist(), model.dual_coef_.round(3).tolist()     # the two that face each other
    ([[1.0], [3.0]], [[-0.5, 0.5]])
    >>> model.decision_function([[1.0], [2.0], [3.0]]).round(3).tolist()
    [-1.0, 0.0, 1.0]
    """

    _needs_rule = "pairwise"

    def __init__(self, kernel=None, *, penalty=1.0, tolerance=1e-3, class_weight=None, scale=False, epochs=1):
        self.kernel = kernel
        self.penalty = penalty
        self.tolerance = tolerance
        self.class_weight = class_weight
        self.scale = scale
        self.epochs = epochs

    @property
    def loss(self):
        """Hinge(): the loss whose sum, times C, the solution adds to 1/2 |f|^2 and minimizes."""
        return Hinge()

    def _plan(self):
        return Plan.of(
            self,
            loss=self.loss,
            kernel=self.kernel,
            step=1.0,
            rule="pairwise",
            penalty=check_positive(self, "penalty"),
            threshold=check_positive(self, "tolerance"),
            keeps_terms=True,
        )

    def finish(self):
        """Make steps in pairs of coefficients until none is worth it; return self.

        Of the examples that are terms now this is the support vector machine. Learning can go on afterwards.
        """
        with self._turn.alone:
            self._finish(self._fitted())
        return self

    def _finish(self, state):
        hypothesis = state.hypothesis
        for _ in range(MOST):
            if hypothesis.rule.finish(hypothesis.offsets, STEPS):
                return
        message = "LASVM gives up: its steps get nowhere. What may help: scale=True, a smaller penalty, a larger tolerance."
        warnings.warn(message, LearningWarning, stacklevel=3)

    def _checked(self, state, X, y, classes, sample_weight, start, balanced=False):
        if start is not None:
            raise ValueError("LASVM starts from 0: initial cannot say which labels its terms have.")
        return super()._checked(state, X, y, classes, sample_weight, start, balanced)

    def _learn(self, before, state, X, y, weights=None, *, earlier=0, **trace):
        rule = state.hypothesis.rule
        rule.cycle = len(X) if earlier else 0  # `fit` makes another pass
        try:
            return super()._learn(before, state, X, y, weights, earlier=earlier, **trace)
        finally:
            rule.cycle = 0
