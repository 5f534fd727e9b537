"""Kernels, losses, steps and budgets of slow, plain oracles, for the tests only.

Written from the paper and not from the library, one example, one term and one pair of points at a time:
nothing here is fast, folded, chunked or shared with the code that it judges.

**K** is Kivinen, Smola and Williamson, "Online learning with kernels". Where K's print is wrong, the corrected
form stands here and the line says "erratum".

Everything is described by plain data, so that the oracle needs none of the library's classes:

==========  =======================================================================================
kernel      ``("Gaussian", {"width": 2.0})``, nested for sums and products, or a callable ``k(x, z)``
loss        ``("NuHinge", {"nu": 0.1, "margin": 1.0})``; every parameter must be given
step        ``("Decaying", {"rate": 0.1, "delay": 100})``
budget      ``("Window", {"steps": 50})``
==========  =======================================================================================

Decisions at a kink (a tie y f = margin, say) hang on the last bit of a score. Tests that mean to sit exactly on
one should use numbers that binary arithmetic holds exactly (0.5, 0.25, ...), with a linear or callable kernel.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

#: NuHuber divides by sigma, so sigma never falls below this. rho and epsilon have no floor.
SIGMA_FLOOR = 1e-12

#: The losses whose scalar (rho, epsilon or sigma) is learned as well.
ADAPTIVE = ("NuHinge", "NuNovelty", "NuInsensitive", "NuHuber")


# Kernels ------------------------------------------------------------------------------------------------------


def kernel_value(spec, x, z, same=False):
    """k(x, z); `same` says that x and z are one and the same example, which only Noise cares about."""
    if callable(spec):
        return float(spec(x, z))
    name, params = spec
    if name == "Linear":
        return _inner(x, z)
    if name == "Gaussian":
        return math.exp(-_squared_distance(x, z) / (2.0 * params["width"] ** 2))
    if name == "Polynomial":
        return (params["scale"] * _inner(x, z) + params["bias"]) ** params["degree"]
    if name == "Laplacian":
        return math.exp(-params["rate"] * _absolute_distance(x, z))
    if name == "Constant":
        return float(params["value"])
    if name == "Noise":
        return float(params["value"]) if same else 0.0
    if name == "Normalized":
        return _normalized(params["kernel"], x, z, same)
    if name == "Precomputed":
        return float(params["gram"][int(x[0])][int(z[0])])
    if name == "Sum":
        return kernel_value(params["left"], x, z, same) + kernel_value(params["right"], x, z, same)
    if name == "Product":
        return kernel_value(params["left"], x, z, same) * kernel_value(params["right"], x, z, same)
    raise ValueError(f"unknown kernel {name!r}")


def gram(spec, X, Z, same=False):
    """The matrix of k(X[i], Z[j]); `same` says that X and Z are the same list of examples."""
    K = np.zeros((len(X), len(Z)))
    for i in range(len(X)):
        for j in range(len(Z)):
            K[i, j] = kernel_value(spec, X[i], Z[j], same=same and i == j)
    return K


def diagonal(spec, X):
    """The vector of k(X[i], X[i]), each example with itself."""
    return np.array([kernel_value(spec, x, x, same=True) for x in X], dtype=float)


def _inner(x, z):
    """<x, z>."""
    return float(np.dot(np.asarray(x, dtype=float), np.asarray(z, dtype=float)))


def _squared_distance(x, z):
    """|x - z|^2, from the differences themselves."""
    return float(np.sum((np.asarray(x, dtype=float) - np.asarray(z, dtype=float)) ** 2))


def _absolute_distance(x, z):
    """|x - z|_1, from the differences themselves."""
    return float(np.sum(np.abs(np.asarray(x, dtype=float) - np.asarray(z, dtype=float))))


def _normalized(spec, x, z, same):
    """k(x, z) / sqrt(k(x, x) k(z, z)), and 0 where k(x, x) or k(z, z) is 0."""
    kxx = kernel_value(spec, x, x, same=True)
    kzz = kernel_value(spec, z, z, same=True)
    if kxx == 0.0 or kzz == 0.0:
        return 0.0
    return kernel_value(spec, x, z, same) / (math.sqrt(kxx) * math.sqrt(kzz))


# Losses -------------------------------------------------------------------------------------------------------
#
# All take (name, params, scalar, score, y). `scalar` is the margin rho, the width epsilon or the width sigma: the
# current value in a nu-loss, the fixed value otherwise, and not looked at by Logistic, Squared and Absolute.
# `score` is f(x) + b and delta = y - score. A nu-loss has the derivative and the curvature of its plain form.


def starting_scalar(params):
    """The margin or width that a loss starts from, None for a loss that has neither."""
    return params.get("margin", params.get("width"))


def loss_value(name, params, scalar, score, y):
    """l(score, y); nu-losses include their -nu rho (K (19)) or +nu epsilon, NuHuber has no such term."""
    if name == "Quantile":  # the pinball loss: level above f, 1 - level below it
        return max(params["level"] * (y - score), (params["level"] - 1.0) * (y - score))
    value = _plain_value(_plain_name(name), scalar, score, y)
    if name in ("NuHinge", "NuNovelty"):
        return value - params["nu"] * scalar
    if name == "NuInsensitive":
        return value + params["nu"] * scalar
    return value


def _plain_name(name):
    """The loss without its nu: NuHinge -> Hinge."""
    return name.removeprefix("Nu")


def _plain_value(name, scalar, score, y):
    """l(score, y) of a loss without nu."""
    if name == "Hinge":  # K (13)
        return max(0.0, scalar - y * score)
    if name == "Logistic":  # log(1 + exp(-z)), with the exponent never positive
        z = y * score
        return max(0.0, -z) + math.log1p(math.exp(-abs(z)))
    if name == "Novelty":  # K III-B; there is no y
        return max(0.0, scalar - score)
    delta = y - score
    if name == "Squared":  # K III-C1
        return 0.5 * delta**2
    if name == "Absolute":
        return abs(delta)
    if name == "Insensitive":  # K III-C2
        return max(0.0, abs(delta) - scalar)
    if name == "SquaredInsensitive":  # without 1/2
        return max(0.0, abs(delta) - scalar) ** 2
    if name == "Huber":  # K (23)
        return delta**2 / (2.0 * scalar) if abs(delta) <= scalar else abs(delta) - 0.5 * scalar
    raise ValueError(f"unknown loss {name!r}")


def loss_derivative(name, params, scalar, score, y):
    """dl/dscore: K's l'(f(x), y), one element of the subgradient at a kink."""
    name = _plain_name(name)
    if name == "Hinge":  # K (14): a tie is a margin error
        return -float(y) if y * score <= scalar else 0.0
    if name == "Logistic":
        return -y * _expit(-y * score)
    if name == "Novelty":  # K (20): a tie is no alert
        return -1.0 if score < scalar else 0.0
    delta = y - score
    if name == "Squared":  # K (21)
        return -delta
    if name == "Absolute":
        return -_sign(delta)
    if name == "Quantile":  # 0 at the kink
        return 0.0 if delta == 0 else -params["level"] if delta > 0 else 1.0 - params["level"]
    if name == "Insensitive":  # K (22)
        return -_sign(delta) if abs(delta) > scalar else 0.0
    if name == "SquaredInsensitive":
        return -2.0 * _sign(delta) * (abs(delta) - scalar) if abs(delta) > scalar else 0.0
    if name == "Huber":  # K (24)
        return -_sign(delta) if abs(delta) > scalar else -delta / scalar
    raise ValueError(f"unknown loss {name!r}")


def loss_curvature(name, params, scalar, score, y):
    """The second derivative of l in score; on a kink, that of the side which gives the derivative."""
    name = _plain_name(name)
    if name in ("Hinge", "Novelty", "Absolute", "Quantile", "Insensitive"):
        return 0.0
    if name == "Logistic":
        return _expit(y * score) * _expit(-y * score)
    if name == "Squared":
        return 1.0
    if name == "SquaredInsensitive":
        return 2.0 if abs(y - score) > scalar else 0.0
    if name == "Huber":
        return 0.0 if abs(y - score) > scalar else 1.0 / scalar
    raise ValueError(f"unknown loss {name!r}")


def scalar_gradient(name, params, scalar, score, y):
    """What the scalar of a nu-loss descends along, 0 for other losses.

    For rho it is dl/drho = 1{error} - nu: an error lowers the margin. Erratum: K after (19) and in (20) prints
    the opposite sign. For epsilon it is dl/depsilon = nu - 1{outside}, as K (22) has it. Erratum: the text under
    (22) exchanges nu and 1 - nu. For sigma K takes the same quantile rule as for epsilon, which holds the
    fraction outside at nu but is not the derivative of the Huber loss. That of sigma phi(delta / sigma) + nu sigma is
    phi(r) - r phi'(r) + nu, with r = delta / sigma.
    """
    if name not in ADAPTIVE:
        return 0.0
    nu, rounding = params["nu"], tie(params, scalar)
    if name == "NuHinge":
        return 1.0 - nu if y * score <= scalar + rounding else -nu
    if name == "NuNovelty":
        return 1.0 - nu if score < scalar - rounding else -nu
    return nu - 1.0 if abs(y - score) > scalar else nu  # NuInsensitive and NuHuber


def tie(params, scalar):
    """How far from a margin a score still counts as equal: a margin with a step of its own may stand still."""
    return 1e-12 * abs(scalar) if params.get("margin_step") not in (None, "log") else 0.0


def compared(name, score, y):
    """What a nu-loss of one output holds its scalar against: y f, f, or |y - f|."""
    if name == "NuHinge":
        return y * score
    return score if name == "NuNovelty" else abs(y - score)


def lowest(name, params, shared):
    """What the scalar of a nu-loss does not fall below."""
    if name == "NuHuber":
        return SIGMA_FLOOR
    return 0.1 * shared if name.endswith("Hinge") and params.get("margin_step") not in (None, "log") else -math.inf


class ScalarStep:
    """The step of a nu-loss's scalar: the one that it shares with f, or with `margin_step` one of its own.

    Its own is margin_step times the mean distance between the scalar and what it was held against, over all
    examples so far, the present one included; an example counts for its weight times 0.999^age. For a margin
    that mean is taken to be at least 0.3 times the step of f; and a margin of classes does not fall below 0.1 times it.
    With "log" it is the logarithm that takes the step of f, V (55)-(56), where d/dlog eps = eps dl/deps.
    """

    def __init__(self, params):
        self.margin_step = params.get("margin_step")
        self.is_margin = "margin" in params
        self.distances, self.weights = [], []

    def moved(self, scalar, shared, gradient, distance, weight):
        """The scalar after a step down its gradient."""
        if self.margin_step == "log":
            return scalar * math.exp(-shared * weight * scalar * gradient)
        return scalar - self.size(shared, distance, weight) * weight * gradient

    def size(self, shared, distance, weight):
        if self.margin_step is None:
            return shared
        self.distances.append(distance)
        self.weights.append(weight)
        ages = np.arange(len(self.weights))[::-1]
        mean = float(np.average(self.distances, weights=np.array(self.weights) * 0.999**ages))
        return self.margin_step * (max(mean, 0.3 * shared) if self.is_margin else mean)


def _sign(z):
    """-1, 0 or 1."""
    return float(z > 0) - float(z < 0)


def _expit(z):
    """1 / (1 + exp(-z)), with the exponent never positive."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    return math.exp(z) / (1.0 + math.exp(z))


def step_size(spec, t):
    """eta_t, where t = 1 is the first example."""
    name, params = spec
    if name == "Fixed":
        return params["rate"]
    if name == "InverseSqrt":
        return params["rate"] / math.sqrt(t)
    if name == "Decaying":
        return params["rate"] * math.sqrt(params["delay"] / (params["delay"] + t))
    raise ValueError(f"unknown step {name!r}")


# Budgets ------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """The term of one example: its coefficients in f, one for each output, and for SVMD those in v."""

    x: Any
    born: int
    alpha: np.ndarray
    beta: Any = None


def surviving(spec, terms, t):
    """Those of `terms` (oldest first) that f_t, the hypothesis that predicts example t, may use."""
    name, params = spec
    if name == "Smallest":  # by max_y |alpha_y|, the oldest among equals leaves first
        kept = list(terms)
        while len(kept) > params["size"]:
            magnitudes = [np.max(np.abs(term.alpha)) for term in kept]
            del kept[magnitudes.index(min(magnitudes))]
        return kept
    if name == "Unlimited":
        return list(terms)
    if name == "Recent":
        return list(terms[max(0, len(terms) - params["size"]):])
    if name == "Window":  # K Fig. 1
        return [term for term in terms if term.born >= t - params["steps"]]
    if name == "Sublinear":
        return [term for term in terms if term.born >= t - sublinear_window(params, t)]
    raise ValueError(f"unknown budget {name!r}")


def sublinear_window(params, t):
    """How many of the examples before t f_t uses, K Thm 6. Erratum: the printed window shrinks at t0 + 1.

    The 1e-9 keeps a power that should be whole (32**0.8 is 16.000000000000004) from counting as one more.
    """
    return max(params["start"], math.ceil(t ** params["exponent"] - 1e-9))
