"""What a bound compares with: functions that may know the whole stream."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.bounds.checks import POSITIVE, check, checked
from onlinekernels.kernels import as_kernel
from onlinekernels.base.labelvalues import plain, shown_list
from onlinekernels.labels import Labels, LabelStructure
from onlinekernels.base.validation import bad_parameter, refuse_masked

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


def comparison(kernel: Any, X: Any, y: Any, coefficients: Any, *, margin: Any, points: Any = None,
               labels: Any = None) -> Any:
    """Describe comparison functions g_t = sum_j coefficients[t, j] k(points[j], .) on a stream.

    With many labels, g_t(x, l) = sum_j k(points[j], x) (kappa coefficients[t])[l, j], and a right label should beat
    every other one by mu Delta. The answer has the margin mu d, where d is the smallest distance of two labels: it fits
    the bounds on mistakes of NORMA and ILK with `GraphHinge`, where `learner_margin` is d, and with `MulticlassHinge`,
    where it is that loss's own. A mistake is then f(x, y) <= f(x, l) for some l.

    Parameters
    ----------
    kernel : Kernel, str or callable
        That of the model.
    X, y : array of shape (n_examples, n_features), and n_examples signs or labels
        The stream; y holds -1 and +1, or the `labels`.
    coefficients : array of shape (n_points,) or (n_examples, n_points)
        Those of one function g, or of one function g_t per example; with labels of shape (n_labels, n_points), or
        (n_examples, n_labels, n_points), in the order of the structure's `names()`.
    margin : float
        mu. The bounds depend on g / mu only: 2 g at the margin 2 mu is the same comparison.
    points : array of shape (n_points, n_features) or None
        Where the functions have their terms; None means X itself.
    labels : Taxonomy, LabelGraph, Labels, list of labels or None
        The labels, with their distance Delta and kernel kappa; a list means distances of 1 and the delta kernel. None
        is two classes with one function.

    Returns
    -------
    dict
        radius, margin, loss, norm, path, squared_path and examples, as the bounds take them.

    Examples
    --------
    One function, in one dimension, with weight 2. The second example is within its margin:

    >>> about = comparison("linear", [[1.0], [-0.25]], [1, -1], [2.0], margin=1.0, points=[[1.0]])
    >>> about["loss"], about["norm"], about["path"], about["radius"]
    (0.5, 2.0, 0.0, 1.0)

    A weight that moves from 2 to 5:

    >>> about = comparison("linear", [[1.0], [-0.25]], [1, -1], [[2.0], [5.0]], margin=1.0, points=[[1.0]])
    >>> about["loss"], about["norm"], about["path"], about["squared_path"]
    (0.0, 5.0, 3.0, 9.0)

    Three labels, each with its weight. The last example is right, and 1 short of the margin over "b", which is 2 away:

    >>> from onlinekernels import Labels
    >>> sizes = Labels(["a", "b", "c"], distance=[[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    >>> about = comparison("linear", [[1.0], [1.0]], ["c", "c"], [[0.0], [2.0], [3.0]], margin=1.0, points=[[1.0]],
    ...                    labels=sizes)
    >>> about["loss"], about["margin"], round(about["radius"] ** 2, 9), round(about["norm"] ** 2, 9)
    (2.0, 1.0, 2.0, 13.0)
    """
    check("comparison", "margin", margin, POSITIVE)
    kernel = as_kernel(kernel, "comparison")
    rows = kernel(X) if points is None else kernel(X, points)
    gram = rows if points is None else kernel(points)
    radius = float(np.sqrt(np.max(kernel.diagonal(X))))
    if labels is None:
        refuse_masked(y, "y")
        y = np.asarray(y)
        if y.shape != (len(rows),) or not np.isin(y, (-1, 1)).all():
            raise bad_parameter("comparison", "y", f"{len(rows)} labels, each -1 or 1", y)
        functions = _functions(coefficients, rows.shape)
        missing = margin - y * (rows * functions).sum(axis=1)
    else:
        order, kappa, Delta = _labels(labels)
        codes = _codes(y, len(rows), order)
        functions = _functions(coefficients, (len(rows), len(order), rows.shape[1]))
        scores = np.einsum("tlj,tj->tl", functions, rows) @ kappa
        missing = margin * Delta[codes] + scores - scores[np.arange(len(rows)), codes][:, None]
        missing[np.arange(len(rows)), codes] = 0.0
        missing = missing.max(axis=1)
        own = np.diag(kappa)  # |Phi(a) - Phi(b)|^2 is the distance of two labels that radius is about
        radius *= float(np.sqrt((own[:, None] + own - 2.0 * kappa)[~np.eye(len(order), dtype=bool)].max()))
        margin *= smallest_distance(labels)
        gram = np.kron(kappa, gram)
        functions = functions.reshape(len(functions), -1)
    return description(functions, gram, missing, radius, margin)


def description(functions, gram, missing, radius, margin):
    """What bounds ask about functions, each a row of coefficients, that miss the margin by so much."""
    norms, lengths = (
        np.sqrt(np.maximum(0.0, ((some @ gram) * some).sum(axis=1))) for some in (functions, np.diff(functions, axis=0))
    )
    return {"radius": radius, "margin": float(margin), "loss": float(np.maximum(0.0, missing).sum()),
            "norm": float(norms.max()), "path": float(lengths.sum()), "squared_path": float((lengths ** 2).sum()),
            "examples": len(missing)}


def _labels(labels):
    """(labels in order, kappa, Delta)."""
    structure = labels if isinstance(labels, LabelStructure) else Labels(labels)
    structure.validate()
    order = structure.names()
    outputs = structure.outputs(order)
    kappa = np.array([outputs.kappa_times(one) for one in np.eye(len(order))])
    return order, kappa, np.array([outputs.distances_from(code) for code in range(len(order))])


def smallest_distance(labels):
    """The smallest distance Delta of two labels, which must be positive.

    >>> smallest_distance(["a", "b", "c"])
    1.0
    """
    Delta = _labels(labels)[2]
    smallest = float(Delta[~np.eye(len(Delta), dtype=bool)].min())
    if smallest <= 0:
        raise ValueError("Two of the labels are at distance 0: no margin tells them apart, and no theorem is about them.")
    return smallest


def _codes(y, n, order):
    refuse_masked(y, "y")
    codes = {label: code for code, label in enumerate(order)}
    y = [plain(label) for label in y]
    if len(y) != n or not all(label in codes for label in y):
        raise bad_parameter("comparison", "y", f"{n} labels, each one of {shown_list(order)}", y)
    return np.array([codes[label] for label in y])


def _functions(coefficients, shape):
    """One row per function; a single row for one that never moves."""
    refuse_masked(coefficients, "coefficients")
    functions = np.asarray(coefficients, dtype=float)
    if functions.shape == shape[1:]:
        functions = functions[None]
    elif functions.shape != shape:
        expected = f"have shape {shape[1:]} for one function or {shape} for one per example"
        raise ValueError(f"The 'coefficients' parameter of comparison must {expected}. Got shape {functions.shape}.")
    if not np.isfinite(functions).all():
        raise ValueError("The 'coefficients' parameter of comparison must hold finite numbers only.")
    return functions


@checked
def complexity(*, radius: Any, norm: Any, path: Any = 0.0, squared_path: Any = 0.0, examples: Any = 1) -> float:
    """C of K (31), S of I Thm 2: how hard the comparison functions are to follow.

    C = X^2/4 (B^2 + B (sqrt(m D2) + D1)); for one function that never moves X^2 B^2 / 4.

    >>> complexity(radius=1.0, norm=2.0)
    1.0
    >>> complexity(radius=1.0, norm=2.0, path=9.0, squared_path=1.0, examples=81)
    10.0
    """
    return complexity_of(radius, norm, path, squared_path, examples)


def complexity_of(radius, norm, path, squared_path, examples):
    return radius ** 2 / 4 * (norm ** 2 + norm * (math.sqrt(examples * squared_path) + path))


@checked
def best_gap(gap: Any, loss: Any, complexity: Any) -> float:
    """h(x, K, C) of K (30): which part of the gap between two margins the step should use.

    It minimises K/(x - z) + C/(z (x - z)) over 0 < z < x (K Lemma 7, where "maximised" is a misprint).
    K prints sqrt(C/K (x + C/K)) - C/K. This is the same number without cancellation, K = 0 included:
    x / (1 + sqrt(1 + x K / C)).

    >>> best_gap(1.0, loss=0.0, complexity=7.0)
    0.5
    >>> best_gap(1.0, loss=8.0, complexity=1.0)
    0.25
    """
    return gap / (1 + math.sqrt(1 + gap * loss / complexity))


def least_mistakes(gap, loss, complexity):
    """The minimum in K Lemma 7: K/x + 2 C/x^2 + 2 sqrt(C/x^2 (K/x + C/x^2))."""
    share = complexity / gap ** 2
    return loss / gap + 2 * share + 2 * math.sqrt(share * (loss / gap + share))
