"""A slow, plain oracle: NORMA with one output and many, ILK and SVMD, for the tests only.

Written from the papers and not from the library, as `reference.py` is, whose plain data it takes over. **I** is
Cheng et al., "Implicit online learning with kernels"; **V** is Vishwanathan, Schraudolph and Smola, "Step size
adaptation in RKHS". Where the print is wrong, the corrected form stands here and the line says "erratum".

Everywhere f(x, y) = sum_i k(x_i, x) (A_i kappa)[y] + b[y]. A loss with one output is the case of one label with
kappa = 1, so the three learners take every loss of either kind:

==========  =======================================================================================
loss        as in `reference.py`, or ``("MulticlassHinge", {"margin": 1.0})``, ``("NuMulticlassHinge", {"nu": 0.1,
            "margin": 1.0})``, ``("MulticlassLogistic", {})``, ``("MulticlassSquared", {})``, ``("GraphHinge", {})``,
            ``("NuGraphHinge", {"nu": 0.1, "margin": 1.0})``
labels      `delta(...)`, `taxonomy(...)` or `label_graph(...)`; None for a loss with one output
growing     True: `labels` (perhaps None) is where the set starts, with the delta kernel. A label joins at its
            first row, last in the order and with score 0, before the prediction of that row counts
joins       True: `labels` learn from the start, and joins says when they are seen: each at its first row. So it is with
            MulticlassSquared, whose labels to join have the target -1 like all others. Scores of those are shown as 0,
            and they have no part in <f, v>, |f| and the step of SVMD
step        as in `reference.py`; for SVMD ``("MetaDescent", {"rate": 0.1, "meta_rate": 0.1, "memory": 0.99})``
==========  =======================================================================================

`scores(x)`, `b` and the rows are vectors over the labels, also for one label. `learn` and `run` return the scores
made before each update, offset included; `run` gives shape (n,) for a loss with one output and (n, |Y|) otherwise,
0 where a label had not joined yet. A weight multiplies the loss, and with it its derivatives in f, b and scalar.
"""

import math
from collections import namedtuple

import numpy as np
from reference import (ADAPTIVE, Row, ScalarStep, compared, kernel_value, loss_curvature, loss_derivative, lowest,
                       scalar_gradient, starting_scalar, step_size, surviving, tie)

#: Losses with one output per label; losses whose scalar is learned as well; losses whose slope has no bound.
MULTI = ("MulticlassHinge", "NuMulticlassHinge", "MulticlassLogistic", "MulticlassSquared", "GraphHinge",
         "NuGraphHinge")
NU = ADAPTIVE + ("NuMulticlassHinge", "NuGraphHinge")
UNCAPPED = ("Squared", "SquaredInsensitive", "MulticlassSquared")

#: A coefficient below this part of its natural size is zero.
DUST = 1e-12


# Labels -------------------------------------------------------------------------------------------------------

#: An ordered list of labels, their kernel kappa and their distance Delta, as matrices in that order.
LabelSet = namedtuple("LabelSet", "labels kappa Delta")


def delta(labels):
    """V (61): kappa = identity, and Delta = 1 between different labels."""
    n = len(labels)
    return LabelSet(list(labels), np.eye(n), 1.0 - np.eye(n))


def taxonomy(parents, labels):
    """V (62) and (65) for `labels`, any nodes of the tree {child: parent}; the root counts as an ancestor."""
    above = [_ancestors(parents, label) for label in labels]
    kappa = [[float(len(a & b)) for b in above] for a in above]  # (65): how many common ancestors
    Delta = [[0.5 * len(a - b) + 0.5 * len(b - a) for b in above] for a in above]  # (62)
    return LabelSet(list(labels), np.array(kappa), np.array(Delta))


def _ancestors(parents, node):
    """The nodes from `node`, its own ancestor, to the root."""
    path = [node]
    while parents.get(path[-1]) is not None:
        if parents[path[-1]] in path:
            raise ValueError("the taxonomy has a cycle")
        path.append(parents[path[-1]])
    return set(path)


def label_graph(edges, labels):
    """V 4.2.2: Delta by shortest paths in the undirected graph of edges (a, b, weight), and kappa = identity.

    `labels` are any of its nodes: paths may lead through nodes that are no labels.
    """
    nodes = list(dict.fromkeys(list(labels) + [end for a, b, _ in edges for end in (a, b)]))
    distance = {(a, b): 0.0 if a == b else math.inf for a in nodes for b in nodes}
    for a, b, weight in edges:
        distance[a, b] = distance[b, a] = min(distance[a, b], float(weight))
    for via in nodes:  # Floyd and Warshall
        for a in nodes:
            for b in nodes:
                distance[a, b] = min(distance[a, b], distance[a, via] + distance[via, b])
    Delta = np.array([[distance[a, b] for b in labels] for a in labels])
    if not np.all(np.isfinite(Delta)):
        raise ValueError("the labels are not connected")
    return LabelSet(list(labels), np.eye(len(labels)), Delta)


# Losses of a score vector -------------------------------------------------------------------------------------
#
# All take (loss, scalar, scores, y, Delta), y being a position in the label order for the losses of MULTI, and the
# value to predict (or None) for the losses with one output, whose `scores` have length 1 and whose Delta is not
# looked at. `scalar` is the rho of the hinges; GraphHinge has rho = 1 whatever it is.


def gradient_of(loss, scalar, scores, y, Delta):
    """xi, V (27) and Table 1: the derivative of l in each score."""
    name, params = loss
    if name not in MULTI:
        return np.array([loss_derivative(name, params, scalar, scores[0], y)])
    if name == "MulticlassLogistic":  # V (21)
        return _softmax(scores) - np.eye(len(scores))[y]
    if name == "MulticlassSquared":
        return np.array([score - (1.0 if l == y else -1.0) for l, score in enumerate(scores)])
    xi = np.zeros(len(scores))
    rival, excess = _excess(name, scalar, scores, y, Delta)
    if excess > 0.0:  # V (17), (26)
        xi[rival], xi[y] = 1.0, -1.0
    return xi


def hessian_of(loss, scalar, scores, y, Delta):
    """The matrix of second derivatives of l in the scores; V (36), (38)."""
    name, params = loss
    if name not in MULTI:
        return np.array([[loss_curvature(name, params, scalar, scores[0], y)]])
    if name == "MulticlassLogistic":
        p = _softmax(scores)
        return np.diag(p) - np.outer(p, p)
    if name == "MulticlassSquared":
        return np.eye(len(scores))
    return np.zeros((len(scores), len(scores)))


def scalar_gradient_of(loss, scalar, scores, y, Delta):
    """dl/drho = Delta(y, y*) - nu for a positive hinge and -nu otherwise; 0 for a loss without nu."""
    name, params = loss
    if name not in MULTI:
        return scalar_gradient(name, params, scalar, scores[0], y)
    if name not in NU:
        return 0.0
    rival, excess = _excess(name, scalar, scores, y, Delta)
    distance = 0.0 if rival is None else Delta[y, rival] if name == "NuGraphHinge" else 1.0
    if excess <= tie(params, scalar) * distance:
        return -params["nu"]
    return distance - params["nu"]


def distance_of(loss, scalar, scores, y, Delta):
    """How far what a nu-loss compares lies from its scalar: for the hinges over labels, the margin per Delta."""
    name, _ = loss
    if name not in NU:
        return 0.0
    if name not in MULTI:
        return abs(compared(name, scores[0], y) - scalar)
    rival, _ = _excess(name, scalar, scores, y, Delta)
    if rival is None:
        return 0.0
    return abs((scores[y] - scores[rival]) / (Delta[y, rival] if name == "NuGraphHinge" else 1.0) - scalar)


def _excess(name, scalar, scores, y, Delta):
    """(y*, rho Delta(y, y*) + f(y*) - f(y)): the first best runner-up, or (None, -inf) for a lone label."""
    others = [l for l in range(len(scores)) if l != y]
    if not others:
        return None, -math.inf
    wanted = [scores[l] + _margin(name, scalar, y, l, Delta) for l in others]
    best = wanted.index(max(wanted))  # index() finds the first
    return others[best], float(wanted[best] - scores[y])


def _margin(name, scalar, y, l, Delta):
    """rho Delta(y, l) for l != y; the multiclass hinges have Delta = 1 whatever the labels are."""
    if name in ("MulticlassHinge", "NuMulticlassHinge"):
        return scalar
    return Delta[y, l] if name == "GraphHinge" else scalar * Delta[y, l]


def _softmax(scores):
    """p(y | x), V (22), with no positive exponent."""
    e = np.exp(scores - np.max(scores))
    return e / np.sum(e)


class _Outputs:
    """A hypothesis f(x, .) + b over labels that may grow, with everything about it but how it learns."""

    def __init__(self, *, loss, kernel, step, regularization, labels=None, growing=False, joins=False,
                 budget=("Unlimited", {}), offset=False):
        self.loss, self.kernel, self.step, self.budget = loss, kernel, step, budget
        self.regularization, self.offset, self.growing = regularization, offset, growing
        self.many = loss[0] in MULTI
        self.labels, self.kappa, self.Delta = labels or delta([] if self.many else [None])
        self.here = np.full(len(self.labels), not joins)  # labels that have been seen
        self.joins = joins
        self.scalar = starting_scalar(loss[1])
        self.scalar_step = ScalarStep(loss[1])
        self.rows = []
        self.b = np.zeros(len(self.labels))
        self.t = 0
        self._grams = {}  # k of two terms, by when they were born

    def scores(self, x):
        """f(x, .) + b of the current hypothesis."""
        return self._evaluate("alpha", self._kernels(x)) + self.b

    def run(self, X, y=None, weights=None):
        """Learn from the rows of X in order; return the scores made before each update."""
        made = []
        for i in range(len(X)):
            weight = 1.0 if weights is None else weights[i]
            made.append(self.learn(X[i], None if y is None else y[i], weight))
            if self.joins:
                made[-1] = np.where(self.here, made[-1], 0.0)
        if not self.many:
            return np.array([scores[0] for scores in made], dtype=float)
        return np.array([np.append(s, np.zeros(len(self.labels) - len(s))) for s in made], dtype=float)

    def inner(self, one, other):
        """<f, f>, <f, v> or <v, v> by a double sum over terms; `one` and `other` are "alpha" or "beta"."""
        if not self.rows:
            return 0.0
        K = np.array([[self._gram(row, column) for column in self.rows] for row in self.rows])
        left, right = (np.array([getattr(row, name) for row in self.rows])[:, self.here] for name in (one, other))
        return float(np.sum(K * (left @ self.kappa[self.here][:, self.here] @ right.T)))

    def _position(self, y):
        """What the losses call y: where the label stands (it joins if it is new), or y itself for one output."""
        if not self.many:
            return y
        if y not in self.labels:
            if not self.growing:
                raise ValueError(f"unknown label {y!r}")
            self._join(y)
        self.here[self.labels.index(y)] = True
        return self.labels.index(y)

    def _join(self, label):
        """One more label, at the end, with zero coefficients everywhere."""
        self.labels, self.kappa, self.Delta = delta(self.labels + [label])
        self.here = np.append(self.here, True)
        for row in self.rows:
            row.alpha, row.beta = np.append(row.alpha, 0.0), np.append(row.beta, 0.0)
        self.b = np.append(self.b, 0.0)

    def _kernels(self, x):
        """k(x_i, x) for every term."""
        return [kernel_value(self.kernel, row.x, x) for row in self.rows]

    def _evaluate(self, which, kernels):
        """sum_i k_i (A_i kappa), label by label: f(x, .) for "alpha" and v(x, .) for "beta"."""
        mixed = [getattr(row, which) @ self.kappa for row in self.rows]
        return np.array([math.fsum(k * m[l] for k, m in zip(kernels, mixed)) for l in range(len(self.labels))])

    def _gram(self, row, column):
        """k of two terms, computed once."""
        key = (row.born, column.born)
        if key not in self._grams:
            self._grams[key] = kernel_value(self.kernel, row.x, column.x, same=row is column)
        return self._grams[key]

    def _scalar_change(self, shared, weight, at_prediction):
        """Down the gradient at the prediction, by the step that the scalar shares with f or by its own."""
        if self.loss[0] not in NU:
            return 0.0
        moved = self.scalar_step.moved(self.scalar, shared, scalar_gradient_of(*at_prediction),
                                       distance_of(*at_prediction), weight)
        return max(moved, lowest(*self.loss, shared)) - self.scalar

    def _move(self, x, decay, alpha, scalar_change, offset_factor=1.0):
        """Old coefficients times `decay`, a new row, b (never decayed) by a multiple of it, the scalar, the budget."""
        for row in self.rows:
            row.alpha = decay * row.alpha
        if kernel_value(self.kernel, x, x, same=True) != 0.0:
            self.rows.append(Row(x, self.t, alpha, np.zeros_like(alpha)))
        self.rows = [row for row in self.rows if np.any(row.alpha != 0.0)]
        if self.offset:
            self.b = self.b + offset_factor * alpha
        if self.loss[0] in NU:
            self.scalar += scalar_change
        self.rows = surviving(self.budget, self.rows, self.t + 1)


class ReferenceNORMA(_Outputs):
    """K (9)-(12), V (28)-(32): A_i <- (1 - eta_t lambda) A_i, new row -eta_t xi, b <- b - eta_t xi (K (16): never
    decayed).

    Erratum: K prints the factor as 1 - eta in (20), (24).
    """

    def learn(self, x, y=None, weight=1.0):
        """Learn from one example; return the scores made before the update."""
        self.t += 1
        y = self._position(y)
        scores = self.scores(x)
        at_prediction = (self.loss, self.scalar, scores, y, self.Delta)
        eta = step_size(self.step, self.t)
        self._move(x, 1.0 - eta * self.regularization, -eta * weight * gradient_of(*at_prediction),
                   self._scalar_change(eta, weight, at_prediction))
        return scores


# ILK ----------------------------------------------------------------------------------------------------------


class ReferenceILK(_Outputs):
    """I (8): f_{t+1} = argmin 1/2 |f - f_t|^2 + eta_t (lambda/2 |f|^2 + C weight l(f(x_t) + b, y_t)).

    With 1 - tau = 1 / (1 + eta_t lambda) and S = (1 - tau) eta_t C weight, that is (1 - tau) f_t + k(x_t, .) r for
    the row r that minimises k/2 |r|^2 + S l(m + k r), where m = (1 - tau) f_t(x_t) + b and k = k(x_t, x_t)
    (kappa = 1; `implicit_*` below). I (16), (18), erratum: the cap is S, not (1 - tau) C.

    Library conventions
    -------------------
    - An offset is one more coordinate of the same arg-min, with 1/2 |b - b_t|^2 and no regularization: k grows by
      1 / (1 - tau) (in the direction of two labels by twice that), and b <- b + r / (1 - tau).
    - A nu-loss holds its scalar while f moves; then the scalar moves by eta_t C weight times its gradient at the
      prediction f_t(x_t) + b. sigma of NuHuber is kept positive, rho and epsilon have no floor.
    - The multiclass and graph hinges take I (17)-(18), one runner-up y*, erratum: at the shrunk scores m, not at
      f_t. `exact=True` gives the arg-min itself. That, MulticlassLogistic and MulticlassSquared need kappa = identity.
    - k = 0 makes no term, but b moves.
    - A row with all entries below 1e-12 S is zero: no term, no move of b. The two squared losses have no cap and
      so no such threshold.
    """

    def __init__(self, *, penalty=1.0, exact=False, **shared):
        super().__init__(**shared)
        self.penalty, self.exact = penalty, exact
        alone = exact or self.loss[0] in ("MulticlassLogistic", "MulticlassSquared")
        if alone and not np.array_equal(self.kappa, np.eye(len(self.labels))):
            raise ValueError("this implicit step needs the delta kernel")

    def learn(self, x, y=None, weight=1.0):
        """Learn from one example; return the scores made before the update."""
        self.t += 1
        y = self._position(y)
        f = self._evaluate("alpha", self._kernels(x))
        scores = f + self.b
        eta = step_size(self.step, self.t)
        shrink = 1.0 / (1.0 + eta * self.regularization)
        k, S = kernel_value(self.kernel, x, x, same=True), shrink * eta * self.penalty * weight
        m = shrink * f + self.b
        grip = 1.0 / shrink if self.offset else 0.0
        row = implicit_row(self.loss, self.scalar, m, y, k, S, self.Delta, self.kappa, self.exact, grip)
        change = self._scalar_change(eta * self.penalty, weight, (self.loss, self.scalar, scores, y, self.Delta))
        self._move(x, shrink, row, change, 1.0 / shrink)  # I (11), (12)
        return scores


def implicit_row(loss, scalar, m, y, k, S, Delta, kappa, exact=False, grip=0.0):
    """The r of the class above for any loss; `exact` is for the hinges over labels, `grip` for offsets."""
    if k + grip == 0.0 or S == 0.0:
        return np.zeros(len(m))
    if loss[0] in MULTI and loss[0] not in ("MulticlassLogistic", "MulticlassSquared") and not exact:
        kappa = k * kappa + grip * np.eye(len(m))
        k = 1.0
    else:
        k = k + grip
    if loss[0] not in MULTI:
        row = np.array([implicit_coefficient(loss, scalar, m[0], y, k, S)])
    elif loss[0] == "MulticlassLogistic":
        row = implicit_logistic(loss, m, y, k, S)
    elif loss[0] == "MulticlassSquared":  # labels have nothing to do with each other
        row = np.array([implicit_coefficient(("Squared", {}), None, score, 1.0 if l == y else -1.0, k, S)
                        for l, score in enumerate(m)])
    else:
        row = (implicit_hinge if exact else implicit_runner_up)(loss, scalar, m, y, k, S, Delta, kappa)
    dust = loss[0] not in UNCAPPED and np.max(np.abs(row)) < DUST * S
    return np.zeros(len(m)) if dust else row


def implicit_coefficient(loss, scalar, m, y, k, S):
    """argmin over a of k/2 a^2 + S l(m + k a): where a + S l'(m + k a), which only grows, changes its sign.

    It has the sign of l' at 0 and (l' being monotone) the other one, or zero, at -S l'(m): bisection between.
    """
    far = -S * loss_derivative(*loss, scalar, m, y)
    sign = 1.0 if far > 0.0 else -1.0

    def slope(size):  # at a = sign * size, seen in the direction of far
        return size + sign * S * loss_derivative(*loss, scalar, m + k * sign * size, y)

    return far if slope(abs(far)) <= 0.0 else sign * _bisect(slope, 0.0, abs(far))


def _bisect(growing, low, high):
    """Where the growing function, not positive at `low` and not negative at `high`, changes its sign."""
    for _ in range(200):  # leaves 2^-200 of the bracket, or neighbouring numbers
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if growing(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def implicit_runner_up(loss, scalar, m, y, k, S, Delta, kappa):
    """I (17)-(18): +a for y and -a for y*, which closes the gap unless the cap S stops it."""
    row = np.zeros(len(m))
    rival, excess = _excess(loss[0], scalar, m, y, Delta)
    if excess > 0.0:
        a = min(S, excess / (k * (kappa[y, y] + kappa[rival, rival] - 2.0 * kappa[y, rival])))
        row[y], row[rival] = a, -a
    return row


def implicit_hinge(loss, scalar, m, y, k, S, Delta, kappa):
    """argmin of k/2 |r|^2 + S max(0, max_l (s_l + k r_l) - k r_y), s_l = rho Delta(y, l) + m_l - m_y, kappa = 1.

    Its conditions: r_l = -p_l with p_l >= 0, r_y = sum p = a <= S, and p_l > 0 only where s_l - k p_l is largest.
    So k p_l = max(0, s_l - theta), with theta = k a if the loss ends up 0, which needs a <= S, and else a = S.
    Seen from the largest s, theta = top - depth.
    """
    others = [l for l in range(len(m)) if l != y]
    s = {l: float(_margin(loss[0], scalar, y, l, Delta) + m[l] - m[y]) for l in others}
    row = np.zeros(len(m))
    top = max(s.values(), default=0.0)
    if top <= 0.0:
        return row

    def cut(depth):  # k a
        return math.fsum(max(0.0, depth - (top - s[l])) for l in others)

    depth = _bisect(lambda depth: depth + cut(depth) - top, 0.0, top)
    if cut(depth) > k * S:
        depth = _bisect(lambda depth: cut(depth) - k * S, 0.0, k * S)
    for l in others:
        row[l] = -max(0.0, depth - (top - s[l])) / k
    row[y] = -math.fsum(row)
    return row


def implicit_logistic(loss, m, y, k, S):
    """argmin of k/2 |r|^2 + S l(m + k r), kappa = 1: q(r) = r + S xi(m + k r) = 0, by damped Newton on |q|."""
    def residual(r):
        return r + S * gradient_of(loss, None, m + k * r, y, None)

    r = np.zeros(len(m))
    q = residual(r)
    for _ in range(1000):
        jacobian = np.eye(len(m)) + S * k * hessian_of(loss, None, m + k * r, y, None)
        direction = -np.linalg.solve(jacobian, q)  # I + S k H is positive definite: |q| falls along it
        length = 1.0
        while length > 1e-12 and not np.linalg.norm(residual(r + length * direction)) < np.linalg.norm(q):
            length *= 0.5
        if length <= 1e-12:  # nothing left but rounding
            break
        r = r + length * direction
        q = residual(r)
    if np.max(np.abs(q)) > 1e-13 * S * len(m):
        raise ArithmeticError("the Newton iteration has not converged")
    return r


class ReferenceSVMD(_Outputs):
    """V Algorithm 2 with rows alpha_i of f and beta_i of the gradient trace v; c is `regularization`.

    Per example: scores, xi, <g,v>; eta; eta_b; chi; eta_eps, v_eps, eps (erratum: V prints eps first); v_b, b; v;
    f; budget.

    Decisions
    ---------
    - eta is adapted by (33) with <g_t, v_t> before it is used, from the first example on (where v = 0), then
      capped at 1/(c + h) (erratum), also eta_0; h = l'' (k(x, x) + 1 with an offset) for squared losses, else 0. (Over
      labels, h is the curvature along the step: u'H u / (xi'u) with u = (k kappa + 1 with an offset) xi.) At
      the cap 1/c, 1 - eta c counts as exactly 0: f forgets all terms, while v keeps them with -alpha_i. eta_b is
      capped at 1/h, eta_eps is not. All three have the floor 1/2 per step, and the same mu (`meta_rate`) and lambda
      (`memory`) unless the offset or the margin has its own; eta_b starts at eta_0, for a label that joins later too.
    - xi, H and dl/deps carry the example's weight, and are taken at the scores f_t(x_t) + b_t and the old eps.
    - The Hessian is that of f + b, V (7): chi = H (v(x_t, .) + v_b) in (42) and in (52) (erratum: V has H v(x_t, .)
      and none). On kinks H and xi are those of `reference.py`.
    - rho, epsilon or sigma, V's eps, moves in log space along dl/deps (erratum: (54)-(58) print -(xi + nu)), for
      NuHuber along the quantile rule. Nothing but the logarithm keeps it positive.
    - A term lives while it is non-zero in f or in v; k(x, x) = 0 makes none. Smallest goes by alpha alone.
    - `ff` and `fv` are |f|^2 and <f, v> by the recurrences (46)-(49), without the offset and with the chi term
      that (47) lacks (erratum); |f|^2 is clamped at 0. <g, v> takes the double sums until a budget drops a term,
      and from then on the recurrences, as if nothing had been dropped (V's choice). With `exact_norms` it always
      takes the double sums, and a drop sets `ff` and `fv` to them.

    Attributes
    ----------
    step_history : eta_t as used at each example
    gv_history : pairs (by double sums, by recurrences) of <g_t, v_t>
    eta, eta_b, eta_eps, v_b, v_eps, ff, fv, dropped : the current state; `inner` gives the double sums
    """

    def __init__(self, *, exact_norms=False, **shared):
        super().__init__(**shared)
        params = self.step[1]
        self.mu, self.memory = params["meta_rate"], params["memory"]

        def own(name, **start):
            step = params.get(name)
            step = {**params, **start} if step is None else step[1]
            return step["rate"], step["meta_rate"], step["memory"]

        eta_b, self.mu_b, self.memory_b = own("offset_step")
        self.eta_eps, self.mu_eps, self.memory_eps = own("margin_step", rate=1.0)
        self.exact_norms = exact_norms
        self.eta, self.eta_b = params["rate"], np.full(len(self.labels), eta_b)
        self.gain = lambda u: max(0.5, 1.0 + u)  # V (4)
        if params.get("quadratic"):  # footnote 2
            self.gain = lambda u: 0.5 * u * u + u + 1.0 if u > -1.0 else 0.5
        self.v_b, self.v_eps = np.zeros(len(self.labels)), 0.0
        self.ff = self.fv = 0.0
        self.dropped = False
        self.step_history, self.gv_history = [], []

    def learn(self, x, y=None, weight=1.0):
        """Learn from one example; return the scores made before the update."""
        self.t += 1
        y = self._position(y)
        kernels = self._kernels(x)
        f, v = self._evaluate("alpha", kernels), self._evaluate("beta", kernels)
        scores = f + self.b
        at_prediction = (self.loss, self.scalar, scores, y, self.Delta)
        xi = weight * gradient_of(*at_prediction)
        H = weight * hessian_of(*at_prediction)

        k = kernel_value(self.kernel, x, x, same=True)
        stiffness = H[0, 0] * (k + self.offset) if self.loss[0].startswith("Squared") else 0.0
        if self.loss[0] == "MulticlassSquared":
            u = (k * self.kappa + self.offset * np.eye(len(xi))) @ xi
            stiffness = float(u @ H @ u) / float(xi @ u)
        decay = self._adapt_step(float(xi[self.here] @ v[self.here]), stiffness)
        self.eta_b = self.eta_b * [self.gain(u) for u in -self.mu_b * xi * self.v_b]  # (51)
        if stiffness > 0.0:
            self.eta_b = np.minimum(self.eta_b, 1.0 / stiffness)
        chi = H @ (v + self.v_b)  # (43), (44), erratum: f + b has the one Hessian of V (7)
        if self.loss[0] in NU:
            self._adapt_scalar(weight, at_prediction)
        if self.offset:
            self.v_b = self.memory_b * self.v_b - self.eta_b * (xi + self.memory_b * chi)  # (52), erratum
            self.b = self.b - self.eta_b * xi  # (50)
        self._move_functions(x, kernels, f, xi, chi, decay)
        self._apply_budget()
        return scores

    def _join(self, label):
        """One more label: its offset has a step size and a trace as well."""
        super()._join(label)
        self.eta_b, self.v_b = np.append(self.eta_b, self.step[1]["rate"]), np.append(self.v_b, 0.0)

    def _adapt_step(self, xi_v, stiffness):
        """(33) with <g, v> = c <f, v> + xi v(x), (45); return 1 - eta c."""
        c = self.regularization
        by_sums, by_recurrence = c * self.inner("alpha", "beta") + xi_v, c * self.fv + xi_v
        gv = by_recurrence if self.dropped and not self.exact_norms else by_sums
        self.eta = self.eta * self.gain(-self.mu * gv)
        if c + stiffness > 0.0:
            self.eta = min(self.eta, 1.0 / (c + stiffness))
        self.gv_history.append((by_sums, by_recurrence))
        self.step_history.append(self.eta)
        return 0.0 if c > 0.0 and self.eta == 1.0 / c else 1.0 - self.eta * c

    def _adapt_scalar(self, weight, at_prediction):
        """By a step of its own, if it has one; otherwise as the paper does."""
        if self.scalar_step.margin_step is None:
            self._move_scalar_in_log_space(weight * scalar_gradient_of(*at_prediction))
            return
        self.scalar += self._scalar_change(self.eta, weight, at_prediction)

    def _move_scalar_in_log_space(self, slope):
        """(54)-(58), d/dlog eps = eps dl/deps: its step size, its trace (with the old eps), itself."""
        slope = self.scalar * slope
        self.eta_eps *= self.gain(-self.mu_eps * self.v_eps * slope)  # (57), with the index t+1 on its right
        self.v_eps = self.memory_eps * self.v_eps - self.eta_eps * slope * (1.0 + self.memory_eps * self.v_eps)  # (58)
        self.scalar *= math.exp(-self.eta_eps * slope)  # (55)

    def _move_functions(self, x, kernels, f, xi, chi, decay):
        """v by (42), the incremental sums, f by (32)."""
        c, k = self.regularization, kernel_value(self.kernel, x, x, same=True)
        for row in self.rows:
            row.beta = decay * self.memory * row.beta - self.eta * c * row.alpha
        self.rows.append(Row(x, self.t, np.zeros(len(xi)), -self.eta * (xi + self.memory * chi)))
        self._update_sums(f, self._evaluate("beta", kernels + [k]), xi, chi, k, decay)
        for row in self.rows:
            row.alpha = decay * row.alpha
        self.rows[-1].alpha = -self.eta * xi
        if k == 0.0:
            self.rows.pop()

    def _update_sums(self, f, v_next, xi, chi, k, decay):
        """(46)-(49); f is f_t(x_t), v_next is v_{t+1}(x_t)."""
        eta, c = self.eta, self.regularization
        f_g = c * self.ff + float(xi @ f)  # (48)
        f_v = decay * self.memory * self.fv - eta * f_g - eta * self.memory * float(chi @ f)  # (47), erratum: chi
        self.fv = decay * f_v - eta * float(xi @ v_next)  # (46)
        squared = float(xi @ self.kappa @ xi) * k
        self.ff = max(0.0, decay**2 * self.ff - 2.0 * eta * decay * float(xi @ f) + eta**2 * squared)  # (49)

    def _apply_budget(self):
        """Terms that are zero in f and in v go, then those that the budget does not keep."""
        self.rows = [row for row in self.rows if np.any(row.alpha != 0.0) or np.any(row.beta != 0.0)]
        kept = surviving(self.budget, self.rows, self.t + 1)
        dropped, self.rows = len(kept) < len(self.rows), kept
        self.dropped = self.dropped or dropped
        if dropped and self.exact_norms:
            self.ff, self.fv = self.inner("alpha", "alpha"), self.inner("alpha", "beta")


class ReferenceAdaptiveILK(ReferenceSVMD):
    """ILK with an adapted step, which I section 2 calls straightforward.

    The step f_{t+1} = f_t - eta g(f_{t+1}), g = lambda f + C dl/df of example t, depends on eta by itself and through
    f_t. Differentiated with respect to log eta, with d f_t = v_t remembered by lambda of V (34):

        v_{t+1} + eta g'(f_{t+1}) v_{t+1} = memory v_t + f_{t+1} - f_t,    g' = lambda + C l'' k(x, .) k(x, .)'

    eta is adapted by <g(f_t), v_t> before it is used, as in V (33). An offset is a coordinate of f without lambda. At a
    kink that holds the score where it is, l'' is infinite: v_{t+1} is 0 there. The margin of a nu-loss adapts as in V.
    """

    def __init__(self, *, penalty=1.0, **shared):
        super().__init__(**shared)
        self.penalty = penalty

    def learn(self, x, y=None, weight=1.0):
        """Learn from one example; return the scores made before the update."""
        self.t += 1
        y = self._position(y)
        kernels, C = self._kernels(x), self.penalty
        f, v = self._evaluate("alpha", kernels), self._evaluate("beta", kernels)
        scores = f + self.b
        at_prediction = (self.loss, self.scalar, scores, y, self.Delta)
        slope = float(C * weight * gradient_of(*at_prediction) @ (v + self.v_b))
        by_sums, by_recurrence = (self.regularization * fv + slope for fv in (self.inner("alpha", "beta"), self.fv))
        self.eta *= self.gain(-self.mu * (by_recurrence if self.dropped else by_sums))
        self.step_history.append(self.eta)

        eta, shrink = self.eta, 1.0 / (1.0 + self.eta * self.regularization)
        k, S = kernel_value(self.kernel, x, x, same=True), shrink * eta * C * weight
        grip = 1.0 / shrink if self.offset else 0.0
        row = implicit_row(self.loss, self.scalar, shrink * f + self.b, y, k, S, self.Delta, self.kappa, False, grip)
        new_scores = shrink * f + self.b + k * row @ self.kappa + grip * row
        # What v would be without l'': at x, with offsets; then the row that l'' takes from it.
        reach = shrink * k * self.kappa + self.offset * np.eye(len(f))
        start = shrink * (self.memory * v + (shrink - 1.0) * f + k * row @ self.kappa)
        start = start + self.memory * self.v_b + self.offset * row / shrink
        taken = self._taken(row, S, eta * C * weight, new_scores, y, reach, start)

        ff, fv, b = self.ff, self.fv, shrink * (row - taken)
        self.ff = max(0.0, shrink**2 * ff + 2.0 * shrink * float(row @ f) + k * float(row @ self.kappa @ row))
        self.fv = (shrink**2 * (self.memory * fv + (shrink - 1.0) * ff) + shrink * float(b @ f)
                   + shrink * float(row @ (self.memory * v + (shrink - 1.0) * f)) + k * float(row @ self.kappa @ b))
        for old in self.rows:
            old.beta = shrink * (self.memory * old.beta + (shrink - 1.0) * old.alpha)
            old.alpha = shrink * old.alpha
        if k != 0.0:
            self.rows.append(Row(x, self.t, row, b))
        if self.offset:
            self.v_b = self.memory * self.v_b + row / shrink - taken
            self.b = self.b + row / shrink
        if self.loss[0] in NU:
            if self.scalar_step.margin_step is None:
                self._move_scalar_in_log_space(C * weight * scalar_gradient_of(*at_prediction))
            else:
                self.scalar += self._scalar_change(eta * C, weight, at_prediction)
        self._apply_budget()
        return scores

    def _taken(self, row, S, size, new_scores, y, reach, start):
        """g with g = size l'' (start - reach g); for a kink, along the row and such that nothing is left of `start`
        there."""
        if self.loss[0] in ("Logistic", "MulticlassLogistic", "Squared", "SquaredInsensitive", "Huber", "NuHuber"):
            H = size * hessian_of(self.loss, self.scalar, new_scores, y, self.Delta)
            return np.linalg.solve(np.eye(len(row)) + H @ reach, H @ start)
        largest = S
        if self.loss[0] == "Quantile":  # l' is between -level and 1 - level
            largest *= self.loss[1]["level"] if row[0] > 0 else 1.0 - self.loss[1]["level"]
        if not 0.0 < np.max(np.abs(row)) < largest * (1.0 - 1e-12):
            return np.zeros(len(row))
        d = np.sign(row)
        return d * float(d @ start) / float(d @ reach @ d)
