"""A third slow, plain oracle: Projection, PassiveAggressive, ALMA, the Ballseptron, ROMMA, the Voted Perceptron and the Adatron, for the
tests only.

Written from the papers and not from the library, as `reference.py` is, whose plain data (kernel, loss, budget) it
takes over. **H** is Herbster, "Learning additive models online with fast evaluating kernels"; **V** is
Vishwanathan, Schraudolph and Smola, "Step size adaptation in RKHS"; **G** is Gentile, "A new approximate maximal
margin classification algorithm" (2001); **L** is Li and Long, "The relaxed online maximum margin algorithm" (2002);
**S** is Shalev-Shwartz and Singer, "A new perspective on an old Perceptron algorithm" (2005);
**C** is Crammer et al., "Online passive-aggressive algorithms" (2006);
**F** is Freund and Schapire, "Large margin classification using the Perceptron algorithm" (1999).

Every learner keeps its terms in a list and the whole Gram matrix between them, so that |f|^2 = alpha' K alpha is a
double sum and never a recurrence. After each example the same three things happen in this order: the rule (a factor
for all old coefficients and a new term), the budget, and where a ball is promised the scaling onto it.

The functions called `explicit_...` do the same once more on weight vectors, for the linear kernel and without a
budget; they share no line with the classes.
"""

import math

import numpy as np
from reference import Row, kernel_value, surviving

#: A violation below this part of its natural size is rounding, and makes no update.
DUST = 1e-12

#: |w| |x| of ROMMA beyond this starts anew.
CAP = 1e5


class Expansion:
    """f(x, .) = sum_i alpha_i k(x_i, x), its Gram matrix, and a budget.

    `learn` of the learners returns the score made before the update, `run` those of a whole stream.
    """

    def __init__(self, kernel, budget=("Unlimited", {}), outputs=1):
        self.kernel, self.budget, self.outputs = kernel, budget, outputs
        self.rows = []
        self.K = np.zeros((0, 0))  # k(x_i, x_j) of the terms
        self.t = 0

    def f(self, x):
        """The value of f at a point that is none of the terms' own examples."""
        kernels = [kernel_value(self.kernel, row.x, x) for row in self.rows]
        terms = list(zip(kernels, self.rows))
        return np.array([math.fsum(k * row.alpha[o] for k, row in terms) for o in range(self.outputs)])

    def self_value(self, x):
        """k(x, x)."""
        return kernel_value(self.kernel, x, x, same=True)

    def squared_norm(self):
        """|f|^2 by the double sum, H (23)."""
        A = np.array([row.alpha for row in self.rows]).reshape(-1, self.outputs)
        return max(0.0, float(np.sum(A * (self.K @ A))))

    def norm(self):
        """|f|."""
        return math.sqrt(self.squared_norm())

    def scale(self, factor):
        """f <- factor f; terms that become zero are no terms."""
        for row in self.rows:
            row.alpha = factor * row.alpha
        self._keep([i for i, row in enumerate(self.rows) if np.any(row.alpha != 0.0)])

    def append(self, x, alpha):
        """f <- f + alpha k(x, .), unless that changes nothing."""
        alpha = np.atleast_1d(np.asarray(alpha, dtype=float))
        k = self.self_value(x)
        if k == 0.0 or not np.any(alpha != 0.0):
            return
        column = np.array([kernel_value(self.kernel, row.x, x) for row in self.rows])
        n = len(self.rows)
        K = np.empty((n + 1, n + 1))
        K[:n, :n], K[:n, n], K[n, :n], K[n, n] = self.K, column, column, k
        self.K = K
        self.rows.append(Row(x, self.t, alpha))

    def apply_budget(self):
        """Keep what f_{t+1} may use."""
        kept = [id(row) for row in surviving(self.budget, self.rows, self.t + 1)]
        self._keep([i for i, row in enumerate(self.rows) if id(row) in kept])

    def onto_ball(self, radius):
        """H (19): radius f / |f| if f lies outside the ball."""
        norm = self.norm()
        if norm > radius:
            self.scale(radius / norm)

    def coefficients(self):
        """alpha, shape (outputs, terms)."""
        return np.array([row.alpha for row in self.rows]).reshape(-1, self.outputs).T

    def run(self, X, y):
        """Learn from the rows of X in order; return the scores made before each update."""
        return np.array([self.learn(X[i], y[i]) for i in range(len(X))], dtype=float)

    def _keep(self, places):
        self.rows = [self.rows[i] for i in places]
        self.K = self.K[np.ix_(places, places)]


class ReferenceProjection(Expansion):
    """H Fig. 2, and with a radius Fig. 4: the nearest f that is right about the last example.

    Feasible sets: y f(x) >= margin for Hinge, |y - f(x)| <= width for Insensitive and SquaredInsensitive (equal
    sets, so equal learners), f(x, y) - f(x, r) >= margin for MulticlassHinge, r being the best of the other labels
    at the prediction, the first among equals. `labels` is the list of labels of the latter.

    An offset is one more coordinate of the same projection: k(x, x) + 1 in place of k(x, x). The ball holds f alone.
    A violation below 1e-12 of the margin, or of |y|, makes no term.
    """

    def __init__(self, *, loss, kernel, radius=None, budget=("Unlimited", {}), offset=False, labels=None):
        super().__init__(kernel, budget, 1 if labels is None else len(labels))
        self.loss, self.radius, self.offset, self.labels = loss, radius, offset, labels
        self.b = np.zeros(self.outputs)
        self.step = lambda missing, square: missing / square  # H (11), (12)

    def scores(self, x):
        """f(x, .) + b."""
        return self.f(x) + self.b

    def learn(self, x, y):
        """Learn from one example; return the score or scores made before the update."""
        self.t += 1
        scores = self.scores(x)
        direction, missing, natural = violated(self.loss, scores, y, self.labels)
        k = self.self_value(x) + (1.0 if self.offset else 0.0)
        if k > 0.0 and missing > DUST * natural:
            alpha = self.step(missing, k * float(direction @ direction)) * direction
            self.append(x, alpha)
            if self.offset:
                self.b = self.b + alpha
        self.apply_budget()
        if self.radius is not None:
            self.onto_ball(self.radius)
        return scores if self.labels is not None else scores[0]


def violated(loss, scores, y, labels=None):
    """(direction, how far the score must move along it, the size that this is measured by).

    H (12) prints s = sign(ybar - (y - eps)), which outside the tube is the sign of ybar - y.
    """
    name, params = loss
    if name == "Hinge":
        return np.array([float(y)]), max(0.0, params["margin"] - y * scores[0]), params["margin"]
    if name in ("Insensitive", "SquaredInsensitive"):
        s = 1.0 if scores[0] > y else -1.0
        return np.array([-s]), max(0.0, s * (scores[0] - (y + s * params["width"]))), abs(y)
    if name == "MulticlassHinge":
        right = labels.index(y)
        others = [l for l in range(len(labels)) if l != right]
        direction = np.zeros(len(labels))
        direction[right] = 1.0
        if not others:
            return direction, 0.0, params["margin"]
        rival = max(others, key=lambda l: scores[l])  # max() finds the first
        direction[rival] = -1.0
        return direction, max(0.0, params["margin"] + scores[rival] - scores[right]), params["margin"]
    raise ValueError(f"no feasible set for {name!r}")


class ReferencePassiveAggressive(ReferenceProjection):
    """C, Fig. 1 and sections 5 and 7: the same with tau = l/q, min(C, l/q) or l/(q + 1/(2C)); no ball.

    q = |x|^2, or 2 |x|^2 for two prototypes; C is the penalty.
    """

    def __init__(self, variant, penalty, **shared):
        super().__init__(**shared)
        self.step = {"PA": lambda missing, q: missing / q, "PA-I": lambda missing, q: min(penalty, missing / q),
                     "PA-II": lambda missing, q: missing / (q + 1 / (2 * penalty))}[variant]


class ReferenceALMA(Expansion):
    """G, ALMA_2(alpha; B, C) on xhat = x / |x|, so in the space of the normalized kernel; k counts corrections.

    If y w.xhat <= (1 - alpha) B / sqrt(k), then w <- w + y C / sqrt(k) xhat and w <- w / max(1, |w|), the ball with
    radius 1. B = sqrt(8) / alpha and C = sqrt(2) if not given. x with k(x, x) = 0 cannot correct anything: it makes
    no term and does not count.
    """

    def __init__(self, *, kernel, alpha=0.9, B=None, C=None, budget=("Unlimited", {})):
        super().__init__(("Normalized", {"kernel": kernel}), budget)
        self.alpha = alpha
        self.B = math.sqrt(8.0) / alpha if B is None else B
        self.C = math.sqrt(2.0) if C is None else C
        self.corrections = 0

    def learn(self, x, y):
        """Learn from one example; return the score made before the update."""
        self.t += 1
        score = float(self.f(x)[0])
        k = self.corrections + 1
        if y * score <= (1.0 - self.alpha) * self.B / math.sqrt(k) and self.self_value(x) > 0.0:
            self.append(x, y * self.C / math.sqrt(k))
            self.corrections = k
        self.apply_budget()
        self.onto_ball(1.0)
        return score


class ReferenceBallseptron(Expansion):
    """S: the Perceptron's update for a mistake, and for y w.x / |w| <= r with x' = x - y r w / |w| in place of x.

    In terms, w + y x' is every old coefficient a_i less r a_i / |w|, and y for x. |w| is the double sum.
    """

    def __init__(self, *, kernel, radius=0.1, budget=("Unlimited", {})):
        super().__init__(kernel, budget)
        self.radius = radius

    def learn(self, x, y):
        """Learn from one example; return the score made before the update."""
        self.t += 1
        score = float(self.f(x)[0])
        if self.self_value(x) > 0.0:
            if y * score <= 0.0:
                self.append(x, y)
            elif y * score / self.norm() <= self.radius:
                self.scale(1.0 - self.radius / self.norm())
                self.append(x, y)
        self.apply_budget()
        return score


class ReferenceROMMA(Expansion):
    """L: the shortest w' with y w'.x >= 1 and w'.w >= |w|^2, on a mistake (y w.x <= 0), or if `aggressive`
    whenever y w.x < 1.

    Both constraints are tight for w' = c w + d x with c, d as in `combination`; where the first alone gives a w'
    that meets the second, and for w = 0, w' = y x / |x|^2. |w|^2 is the double sum, so it is exact under budgets.
    y w.x within 1e-12 of 1 counts as 1. If w and x are parallel the two constraints are one or contradict each
    other; then w' = y x / |x|^2 too, and so it is where |w'| |x| would exceed `CAP`.
    """

    def __init__(self, *, kernel, aggressive=False, budget=("Unlimited", {})):
        super().__init__(kernel, budget)
        self.aggressive = aggressive

    def learn(self, x, y):
        """Learn from one example; return the score made before the update."""
        self.t += 1
        score = float(self.f(x)[0])
        k = self.self_value(x)
        wrong = 1.0 - y * score > DUST if self.aggressive else y * score <= 0.0
        if wrong and k > 0.0:
            c, d = self.combination(k, self.squared_norm(), score, y)
            self.scale(c)
            self.append(x, d)
        self.apply_budget()
        return score

    @staticmethod
    def combination(k, ww, score, y):
        """c and d, with k = |x|^2, ww = |w|^2 and score = w.x."""
        determinant = k * ww - score**2
        if ww == 0.0 or y * score >= k * ww or determinant <= DUST * k * ww:
            return 0.0, y / k
        c, d = (k * ww - y * score) / determinant, ww * (y - score) / determinant
        longer = c * c * ww + 2 * c * d * score + d * d * k
        return (c, d) if longer * k <= CAP**2 else (0.0, y / k)


class ReferenceVoted(Expansion):
    """F Fig. 1: every hypothesis w_i of the kernel Perceptron, with the number c_i of examples that it lived for.

    The hypothesis made at example t_i counts 1 for its birth and 1 for each example it was right about, which is
    t_{i+1} - t_i, and T + 1 - t_k for the last one. The zero start votes for nothing.
    """

    def __init__(self, *, kernel):
        super().__init__(kernel)
        self.counts = []

    def learn(self, x, y):
        """Learn from one example; return w.x before the update."""
        self.t += 1
        score = float(self.f(x)[0])
        before = len(self.rows)
        if y * score <= 0.0:
            self.append(x, float(y))
        if len(self.rows) > before:
            self.counts.append(1)
        elif self.counts:  # right, or x = 0: the hypothesis lives on
            self.counts[-1] += 1
        return score

    def hypotheses(self, x):
        """[(c_i, w_i.x)]: each w_i from its own terms, from scratch."""
        made = []
        for i in range(len(self.rows)):
            terms = self.rows[: i + 1]
            made.append((self.counts[i], math.fsum(r.alpha[0] * kernel_value(self.kernel, r.x, x) for r in terms)))
        return made

    def decision(self, x, vote=True):
        """sum_i c_i sign(w_i.x), or without the sign."""
        return math.fsum(c * (float(np.sign(value)) if vote else value) for c, value in self.hypotheses(x))


def adatron(kernel, X, y, step=1.0, epochs=10):
    """V 3: alpha_i = 1, then passes in order of alpha_i <- max(0, alpha_i + step (1 - y_i f(x_i))); returns alpha.

    f = sum_i alpha_i y_i k(x_i, .).
    """
    n = len(X)
    K = np.array([[kernel_value(kernel, X[i], X[j], same=i == j) for j in range(n)] for i in range(n)])
    alpha = [1.0] * n
    for _ in range(epochs):
        for i in range(n):
            score = math.fsum(alpha[j] * y[j] * K[j, i] for j in range(n))
            alpha[i] = max(0.0, alpha[i] + step * (1.0 - y[i] * score))
    return np.array(alpha)


def adatron_score(kernel, X, y, alpha, x):
    """f(x) of the above."""
    return math.fsum(a * label * kernel_value(kernel, z, x) for a, label, z in zip(alpha, y, X))
