"""`progressive(..., return_labels=True)` against predict_one before each learn_one."""
import copy

import numpy as np
from cases import each

import onlinekernels as ok
from onlinekernels.losses import LOSSES

TREE = ok.Taxonomy({"a": "top", "b": "top", "c": "side", "d": "side", "top": "root", "side": "root"})


def data(task, n=120):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    if task == "binary":
        return X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    if task == "multiclass":  # "d" joins in the middle
        return X, np.array(["b", "a", "c", "d"])[(X[:, 0] > 0) + 2 * (X[:, 1] > 0) * (np.arange(n) > n // 2)]
    return X, X[:, 0] + np.sin(X[:, 1]) if task == "regression" else None


def by_a_loop(model, X, y):
    """What `predict_one` says before each example; None before the first, which it refuses."""
    said = []
    for i, x in enumerate(X):
        said.append(model.predict_one(x) if hasattr(model, "t_") else None)
        model.learn_one(x, None if y is None else y[i])
    return said


@each("algorithm", [ok.NORMA, ok.SILK], ids=lambda a: a.__name__)
@each("name", sorted(LOSSES))
def test_labels_are_what_predict_would_have_said(name, algorithm):
    loss = LOSSES[name]()
    model = algorithm(loss, ok.Gaussian(1.0), labels=TREE if loss.structured else None)
    X, y = data(loss.task)
    # Two classes need both labels, and all models a first example, before predict_one says anything.
    first = {} if loss.task != "binary" else {"classes": ["no", "yes"]}
    expected = copy.deepcopy(model).partial_fit(X[:1], None if y is None else y[:1], **first)
    said = by_a_loop(expected, X[1:], None if y is None else y[1:])
    whole = copy.deepcopy(model).progressive(X, y, **first, return_labels=True)[1]
    parts = [model.progressive(X[:1], None if y is None else y[:1], **first, return_labels=True)[1]]
    for begin in range(1, len(X), 23):
        rows = slice(begin, begin + 23)
        parts.append(model.progressive(X[rows], None if y is None else y[rows], return_labels=True)[1])
    for labels in (whole, np.concatenate(parts)):
        assert len(labels) == len(X)
        if loss.task == "regression":
            np.testing.assert_allclose(labels[1:], said, rtol=1e-9, atol=1e-12)
        else:
            assert labels[1:].tolist() == said
    if loss.task != "regression":
        assert len(set(said)) > 1  # or nothing is compared


def test_before_anything_is_known():
    X = np.zeros((2, 1))
    assert ok.NORMA().progressive(X, ["b", "a"], return_labels=True)[1].tolist() == ["a", "b"]  # a score of 0
    assert ok.NORMA("squared").progressive(X, [1.0, 2.0], return_labels=True)[1][0] == 0.0
    assert ok.NORMA(ok.Novelty(margin=0.5)).progressive(X, return_labels=True)[1].tolist() == [-1, -1]
    joining = ok.NORMA("multiclasshinge").progressive(X, ["b", "a"], return_labels=True)[1]
    assert joining.tolist() == [None, "b"]
    fixed = ok.NORMA("multiclasshinge").progressive(X, ["b", "a"], classes=["a", "b"], return_labels=True)[1]
    assert fixed.tolist() == ["a", "b"] and fixed.dtype.kind == "U"


def test_after_fit_labels_are_shown_in_sorted_order_and_new_ones_join():
    X, y = data("multiclass")
    model = ok.NORMA("multiclasshinge", ok.Gaussian(1.0)).fit(X[:60], y[:60])
    assert model.classes_.tolist() == ["a", "b"]
    said = by_a_loop(copy.deepcopy(model), X[60:], y[60:])
    assert model.progressive(X[60:], y[60:], return_labels=True)[1].tolist() == said
    assert set(said) == set("abcd")


def test_several_targets_are_their_own_answers():
    X, y = data("regression")
    scores, labels = ok.NORMA("squared").progressive(X, np.column_stack([y, -y]), return_labels=True)
    np.testing.assert_array_equal(labels, scores)
    assert labels.shape == (120, 2)


@each("names", [("steps",), ("margins",), ("labels",), ("steps", "margins"), ("steps", "labels"),
                ("margins", "labels"), ("steps", "margins", "labels")], ids=str)
@each("loss", ["nunovelty", "nuhinge"])
def test_all_that_can_be_returned_comes_in_one_order(names, loss):
    X, y = data("binary")
    alone = {name: ok.NORMA(loss).progressive(X, y, **{f"return_{name}": True})[1] for name in names}
    scores, *others = ok.NORMA(loss).progressive(X, y, **{f"return_{name}": True for name in names})
    np.testing.assert_array_equal(scores, ok.NORMA(loss).progressive(X, y))
    for name, values in zip(names, others, strict=True):
        np.testing.assert_array_equal(values, alone[name])
