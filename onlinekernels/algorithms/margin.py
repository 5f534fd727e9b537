"""The margin classics: ALMA, ROMMA, the voted Perceptron and the Adatron."""
import numpy as np

from onlinekernels.kernels import Normalized, as_kernel
from onlinekernels.learner import OnlineLearner
from onlinekernels.losses import Hinge
from onlinekernels.plan import Plan
from onlinekernels.validation import check_flag, check_real

__all__ = ["ALMA", "ROMMA", "VotedPerceptron"]


class TwoClasses(OnlineLearner):
    """A learner of two classes without a choice of loss or an offset."""

    offset = False
    budget = None

    @property
    def loss(self):
        """Hinge(margin=0.0): two classes; the rule is the algorithm's own."""
        return Hinge(margin=0.0)


class ALMA(TwoClasses):
    """Approximate large margin algorithm ALMA_2(alpha) (Gentile 2001).

    Examples are normalised to length 1. If y w.x <= (1 - alpha) B / sqrt(k), then w <- w + (C / sqrt(k)) y x,
    and w is projected onto the unit ball; k counts these corrections from 1. On separable data the margin
    of w comes within a factor 1 - alpha of the largest there is.

    Parameters
    ----------
    kernel : Kernel, str, callable or None
        Default as in `NORMA`. f lives in the space of `Normalized(kernel)`.
    alpha : float
        In (0, 1]; 1 asks for no margin at all.
    B, C : float or None
        Default sqrt(8) / alpha and sqrt(2), as in the original.
    budget, scale, epochs
        As in `NORMA`. A sample weight of 0 leaves an example out, other weights make no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import ALMA, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = ALMA(Gaussian(1.0), epochs=5).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.norm_ < 1 + 1e-12)
    (True, True)
    """

    def __init__(self, kernel=None, *, alpha=0.9, B=None, C=None, budget=None, scale=False, epochs=1):
        self.kernel = kernel
        self.alpha = alpha
        self.B = B
        self.C = C
        self.budget = budget
        self.scale = scale
        self.epochs = epochs

    def _plan(self):
        alpha = check_real(self, "alpha", "a number in (0, 1]", lambda value: 0 < value <= 1)
        positive = "a positive number or None"
        B = np.sqrt(8.0) / alpha if self.B is None else check_real(self, "B", positive, lambda value: value > 0)
        C = np.sqrt(2.0) if self.C is None else check_real(self, "C", positive, lambda value: value > 0)
        return Plan.of(
            self,
            loss=self.loss,
            kernel=None if self.kernel is None else Normalized(as_kernel(self.kernel, self)),
            step=1.0,
            rule="approximate",
            penalty=float(C),
            threshold=float((1.0 - alpha) * B),
            radius=1.0,
            exact_norms=True,
        )


class ROMMA(TwoClasses):
    """Relaxed online maximum margin algorithm (Li and Long 2002).

    After a mistake w becomes the shortest vector with y w.x >= 1 and w.w_t >= |w_t|^2: all earlier
    constraints are relaxed to one half space. The aggressive variant moves whenever y w.x < 1.

    |w| grows by every update, and 1 / |w| bounds the margin of the examples. On data that no w separates it would
    grow without end, so there is a cap: an example that contradicts w, up to rounding, or would take |w| |x| beyond
    1e5 starts anew with w = y x / |x|^2.

    Parameters
    ----------
    kernel : Kernel, str, callable or None
        Default as in `NORMA`.
    aggressive : bool
    budget, scale, epochs
        As in `NORMA`. |w| is kept exact when a budget drops terms. A sample weight of 0 leaves an example out, other
        weights make no difference.

    Examples
    --------
    >>> from onlinekernels import ROMMA
    >>> ROMMA("linear").fit([[2.0, 0.0], [0.0, 1.0]], [1, -1]).coef_
    array([[ 0.5, -1. ]])
    """

    def __init__(self, kernel=None, *, aggressive=False, budget=None, scale=False, epochs=1):
        self.kernel = kernel
        self.aggressive = aggressive
        self.budget = budget
        self.scale = scale
        self.epochs = epochs

    def _plan(self):
        return Plan.of(
            self,
            loss=self.loss,
            kernel=self.kernel,
            step=1.0,
            rule="relaxed aggressive" if check_flag(self, "aggressive") else "relaxed",
            exact_norms=True,
        )


class VotedPerceptron(TwoClasses):
    """The Perceptron, predicting with all the hypotheses it ever had (Freund and Schapire 1999).

    Each hypothesis w_i votes with the number c_i of examples that it survived: sum_i c_i sign(w_i.x), or for
    ``vote=False`` the averaged form sum_i c_i w_i.x. The hypotheses are prefix sums of the terms, so one
    pass over the terms evaluates them all. `progressive` gives the scores of the Perceptron itself.

    Parameters
    ----------
    kernel : Kernel, str, callable or None
        Default as in `NORMA`.
    vote : bool
    scale, epochs
        As in `NORMA`.

    Examples
    --------
    >>> from onlinekernels import VotedPerceptron
    >>> model = VotedPerceptron("linear").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]], [1, -1, 1])
    >>> model.decision_function([[1.0, 0.0]])       # w_1 survived one example, w_2 two
    array([3.])
    """

    def __init__(self, kernel=None, *, vote=True, scale=False, epochs=1):
        self.kernel = kernel
        self.vote = vote
        self.scale = scale
        self.epochs = epochs

    def _plan(self):
        check_flag(self, "vote")
        return Plan.of(self, loss=self.loss, kernel=self.kernel, step=1.0, keeps_terms=True)

    def _checked(self, state, X, y, classes, sample_weight, start, balanced=False):
        if start is not None:
            raise ValueError("A voted Perceptron starts from 0: initial cannot say which hypotheses there were.")
        return super()._checked(state, X, y, classes, sample_weight, start, balanced)

    def _decide(self, state, examples, **how):
        return super()._decide(state, examples, votes=1 if check_flag(self, "vote") else 2, **how)
