"""Label structures, and what is refused about labels."""
import copy
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.array(list("abcabcabcabc"))


def test_taxonomy_against_its_definition():
    tree = ok.Taxonomy.from_paths(["A/1/x", "A/1/y", "A/2/x", "B/1/x", "B"])
    names = tree.names()

    def ancestors(label):
        nodes, node = {label}, label
        while node in tree.parents:
            node = tree.parents[node]
            nodes.add(node)
        return nodes

    for a in names:
        for b in names:
            assert tree.kernel(a, b) == len(ancestors(a) & ancestors(b))
            assert tree.distance(a, b) == 0.5 * len(ancestors(a) ^ ancestors(b))
    assert tree.distance("B", "B/1/x") == 1.0           # a label that is a prefix is an ancestor
    outputs = tree.outputs()
    kappa = np.array([[tree.kernel(a, b) for b in names] for a in names])
    scores = np.random.default_rng(1).normal(size=len(names))
    np.testing.assert_allclose(outputs.kappa_times(scores), kappa @ scores, rtol=1e-13)


def test_labels_from_matrices_and_callables(tmp_path):
    names, rng = ["x", 3, "y", 2.5], np.random.default_rng(4)
    Delta, Phi = rng.uniform(size=(4, 4)) * (1 - np.eye(4)), rng.normal(size=(4, 2))
    kappa = Phi @ Phi.T                                 # of rank 2
    asked = []

    def distance(a, b):
        asked.append((a, b))
        return Delta[names.index(a), names.index(b)]

    for labels in (ok.Labels(names, Delta, kappa), ok.Labels(names, Delta.tolist(), kappa.tolist()),
                   ok.Labels(tuple(names), distance, lambda a, b: kappa[names.index(a), names.index(b)])):
        labels.validate()
        np.testing.assert_array_equal(labels.distances([2.5, "x"]), Delta[np.ix_([3, 0], [3, 0])])
        np.testing.assert_array_equal(labels.kernels(), kappa)
        outputs, scores = labels.outputs(), rng.normal(size=4) * [1, 0, 1, 1]
        np.testing.assert_allclose(outputs.kappa_times(scores), kappa @ scores, rtol=1e-13)
        np.testing.assert_array_equal([outputs.distances_from(i) for i in range(4)], Delta)
        with pytest.raises(ValueError, match="'z'"):
            labels.outputs(["x", "z"])
    np.testing.assert_array_equal(ok.Labels(names).distances(), 1 - np.eye(4))
    np.testing.assert_array_equal(ok.Labels(names).kernels(), np.eye(4))
    asked.clear()
    model = ok.NORMA("graph_hinge", labels=ok.Labels(names, distance))
    for _ in range(3):
        model.partial_fit(np.eye(3), ["x", "y", 3])
    assert sorted(asked, key=str) == sorted([(a, b) for a in names for b in names], key=str)    # once
    model.save(tmp_path / "m.npz")  # a callable as the matrix that it gave
    np.testing.assert_array_equal(ok.load(tmp_path / "m.npz").labels.distances(), Delta)


@each("labels, words", [
    (ok.Taxonomy({"a": "b", "b": "a"}), "cycle"),
    (ok.Taxonomy({"a": "r", "b": "c", "c": "b"}), "cycle"),
    (ok.Taxonomy({"a": "r", "b": "s"}), "one root"),
    (ok.Taxonomy({}), "dictionary"),
    (ok.Taxonomy(["a"]), "dictionary"),
    (ok.Taxonomy({"a": "r", "b": "r"}, labels=["a", "z"]), "'z'"),
    (ok.Taxonomy({"a": "r", "b": "r"}, labels=["a", "b", "a"]), "each label once. Got 'a' twice"),
    (ok.Taxonomy({1: 0, 2: 0}, labels=[1, 2, True]), "each label once"),
    (ok.Taxonomy({"a": "r", "b": "r"}, labels="ab"), "None or a list of nodes"),
    (ok.Taxonomy({"a": "r", "b": "r"}, labels=5), "None or a list of nodes"),
    (ok.Taxonomy({"a": "r", "b": "r"}, labels=[["a"], ["b"]]), "None or a list of nodes"),
    (ok.Taxonomy({"a": ["r"], "b": "r"}), "dictionary"),
    (ok.LabelGraph([("a", "b", -1.0)]), "at least 0"),
    (ok.LabelGraph([("a", "b", float("nan"))]), "at least 0"),
    (ok.LabelGraph([("a", "b", 1.0), ("c", "d", 1.0)]), "connected"),
    (ok.LabelGraph([]), "at least one edge"),
    (ok.LabelGraph([(["a"], "b", 1.0)]), "list of .a, b, weight."),
    (ok.LabelGraph([("a", "b")]), "weight"),
    ("tree", "Taxonomy, a LabelGraph or Labels"),
    (ok.Labels("abc"), "'labels' parameter of Labels must be a list"),
    (ok.Labels(["a"]), "at least two"),
    (ok.Labels(["a", "b", "a"]), "each label once"),
    (ok.Labels(["a", ["b"]]), "'labels' parameter of Labels must be a list"),
    (ok.Labels(list("abc"), distance=np.eye(3)), "0 from each label to itself"),
    (ok.Labels(list("abc"), distance=np.eye(3) - 1), "at least 0"),
    (ok.Labels(list("abc"), distance=np.zeros((3, 2))), "'distance' parameter of Labels must be a matrix of 3 x 3"),
    (ok.Labels(list("abc"), kernel=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "positive semidefinite"),
    (ok.Labels(list("abc"), kernel=[[2, 1, 0], [0, 2, 0], [0, 0, 1]]), "symmetric"),
], ids=str)
def test_structures_that_make_no_sense_are_refused_at_the_first_fit(labels, words):
    model = ok.NORMA(ok.GraphHinge(), labels=labels)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X, Y)
    assert pickle.dumps(model) == before


class Own(ok.Loss):
    """The squared distance to the indicator of the label, a loss of the tests' own for many classes."""

    task = "multiclass"

    def derivative(self, scores, y):
        return scores - np.eye(len(scores))[y]


def test_a_loss_of_many_classes_that_fails_stops_before_its_row():
    class Bad(Own):
        def derivative(self, scores, y):
            return np.zeros(7) if y == 2 else super().derivative(scores, y)

    model = ok.NORMA(Bad())
    with pytest.raises(ValueError, match="derivative of shape") as info:
        model.partial_fit(X, Y)                         # "c" is new in row 2
    assert info.value.rows_learned == model.t_ == 2
    assert model.classes_.tolist() == ["a", "b"]
    model._state.engine._check()
    model.partial_fit(X[:2], Y[:2])
    assert model.decision_function(X).shape == (12,)
    assert copy.deepcopy(model).predict(X).tolist() == model.predict(X).tolist()


def pieces(label):
    """How the paths of the next test come apart: the words between spaces; an underscore is a slash."""
    return [part.replace("_", "/") for part in label.split(" ")]


PATHS = {
    "absolute": (["/usr/bin", "/etc", "/usr/lib"], {}),
    "absolute and relative": (["/usr/bin", "usr/bin", "usr/", "/usr", "//usr", "/", "//", ""], {}),
    "parts with slashes": (["a_b x", "a b x", "a_b y", "a b y"], {"split": pieces}),
    "inner nodes like labels": (["a/", "a c", "b"], {"split": pieces}),
    "inner nodes like the root": (["_ x", " x", "y z"], {"split": pieces}),
    "inner nodes like each other made different": (["a_b x", "a b x", "a b  x", "a b/ x"], {"split": pieces}),
    "parts of several types": ([0, 1, 2], {"split": [(1, "x"), ("1", "x"), ("1", "y")].__getitem__}),
}


@each("labels, options", PATHS.values(), ids=PATHS)
def test_paths_give_the_tree_of_their_prefixes(labels, options, tmp_path):
    """Ancestors of a label are the prefixes of its path, whatever inner nodes are called."""
    tree = ok.Taxonomy.from_paths(labels, **options)
    split = options.get("split", lambda label: label.split("/"))

    def prefixes(label):
        path = tuple(split(label))
        return {path[:depth] for depth in range(len(path) + 1)}

    for a in labels:
        for b in labels:
            assert tree.kernel(a, b) == len(prefixes(a) & prefixes(b))
            assert tree.distance(a, b) == 0.5 * len(prefixes(a) ^ prefixes(b))
    assert len(tree.nodes()) == len(set().union(*map(prefixes, labels)))
    inner = set(tree.nodes()) - set(labels)
    assert all(isinstance(name, str) for name in inner)
    y = (labels * 12)[:12]
    model = ok.NORMA("graph_hinge", labels=tree).fit(X, y)
    model.save(tmp_path / "m.npz")
    twin = ok.load(tmp_path / "m.npz")
    assert twin.labels.parents == tree.parents and twin.labels.labels == labels
    assert twin.predict(X).tolist() == model.predict(X).tolist()


@each("labels, split, words", [
    (["a/b", "a-b"], lambda label: label.replace("-", "/").split("/"), "'a/b' and 'a-b' of from_paths have one path"),
    (["a/b", ""], lambda label: label.split("/") if label else [], "'' of from_paths has no path"),
])
def test_paths_that_are_no_paths_are_refused(labels, split, words):
    with pytest.raises(ValueError, match=words):
        ok.Taxonomy.from_paths(labels, split)


def test_balanced_weights_are_shared_by_the_classes_that_are_there():
    """n / (classes in y * count of each), as scikit-learn has it; a class that is only named has no share."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.array(list("aab"))[rng.integers(0, 3, 60)]
    weights = 60 / (2 * np.where(y == "a", np.sum(y == "a"), np.sum(y == "b")))
    settings = {"loss": "multiclass_hinge", "kernel": ok.Gaussian(1.0), "step": 0.1}
    balanced = ok.NORMA(**settings, class_weight="balanced").fit(X, y, classes=list("abc"))
    by_hand = ok.NORMA(**settings).partial_fit(X, y, classes=list("abc"), sample_weight=weights)
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-12)
