"""Label structures, and what is refused about labels."""
import copy
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels.base.labelsets import ManyLabels

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.array(list("abcabcabcabc"))
TREE = ok.Taxonomy({"a": "v", "b": "v", "c": "root", "v": "root"})


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


def test_label_graph_against_floyd_and_warshall():
    rng = np.random.default_rng(2)
    edges = [(i, i + 1, 1.0) for i in range(9)] + [
        (int(a), int(b), float(w)) for a, b, w in zip(rng.integers(0, 10, 15), rng.integers(0, 10, 15), rng.uniform(0, 3, 15))]
    D = np.full((10, 10), np.inf)
    np.fill_diagonal(D, 0.0)
    for a, b, w in edges:
        D[a, b] = D[b, a] = min(D[a, b], w)
    for k in range(10):
        D = np.minimum(D, D[:, k:k + 1] + D[k:k + 1])
    np.testing.assert_allclose(ok.LabelGraph(edges).distances(list(range(10))), D, rtol=1e-13)


def test_labels_from_matrices_and_callables():
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


@each("kernel", ["gaussian", "linear", ok.AdditiveExponential()], ids=repr)
@each("loss", ["graph_hinge", "nu_graph_hinge", "multiclass_hinge", "multiclass_logistic"])
@each("given", ["matrices", "callables"])
def test_a_taxonomy_as_labels_of_ones_own(tmp_path, given, loss, kernel):
    names = TREE.names()
    distance, between = TREE.distance, TREE.kernel
    if given == "matrices":
        distance, between = ([[of(a, b) for b in names] for a in names] for of in (distance, between))
    own = ok.Labels(names, distance=distance, kernel=between)
    rng = np.random.default_rng(5)
    points, y = rng.normal(size=(60, 2)), rng.choice(names, 60)
    for make in (lambda labels: ok.NORMA(loss, kernel, step=0.3, labels=labels, offset=True, budget=30),
                 lambda labels: ok.SVMD(loss, kernel, labels=labels),
                 lambda labels: ok.SILK(loss, kernel, labels=labels, budget=20)):
        if loss == "multiclass_logistic" and isinstance(make(own), ok.SILK):
            continue
        mine, tree = make(own), make(TREE)
        np.testing.assert_allclose(mine.progressive(points, y), tree.progressive(points, y), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(mine.norm_, tree.norm_, rtol=1e-10)
        mine.save(tmp_path / "m.npz")                   # a callable as the matrix that it gave
        twin = ok.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(twin.labels.kernels(), own.kernels())
        np.testing.assert_array_equal(twin.progressive(points, y), mine.progressive(points, y))


def test_a_start_must_have_the_kernel_between_labels():
    matrix = np.eye(3) + 1
    start = ok.NORMA("graph_hinge", labels=ok.Labels(list("abc"), kernel=matrix)).fit(np.eye(3), list("abc"))
    other = ok.Labels(list("abc"), distance=[[0, 1, 2], [1, 0, 1], [2, 1, 0]], kernel=lambda a, b: 1 + (a == b))
    ok.NORMA("graph_hinge", labels=other).fit(np.eye(3), list("abc"), initial=start)
    for other in (ok.Labels(list("abc")), ok.Labels(list("abc"), kernel=2 * matrix), None):
        with pytest.raises(ValueError, match="label kernel"):
            ok.NORMA("multiclass_hinge", labels=other).fit(np.eye(3), list("abc"), initial=start)


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


@each("build, words", [
    (lambda: ok.NORMA(ok.Hinge(), labels=TREE).partial_fit(X, Y), "many classes"),
    (lambda: ok.ILK(ok.MulticlassLogistic(), labels=TREE).partial_fit(X, Y), "delta kernel"),
    (lambda: ok.SILK(ok.MulticlassSquared(), labels=TREE).partial_fit(X, Y), "delta kernel"),
    (lambda: ok.PassiveAggressive(ok.MulticlassSquared()).partial_fit(X, Y), "passive-aggressive"),
    (lambda: ok.PassiveAggressive(ok.Quantile()).partial_fit(X, X[:, 0]), "passive-aggressive"),
    (lambda: ok.ILK(ok.GraphHinge(), exact=True, labels=TREE).partial_fit(X, Y), "delta kernel"),
    (lambda: ok.NORMA(ok.GraphHinge(), labels=ok.Labels(list("abc"), distance=lambda a, b: np.nan)).partial_fit(X, Y),
     "'distance' parameter of Labels must be .*finite"),
    (lambda: ok.NORMA(ok.GraphHinge(), labels=ok.Labels(list("abc"), kernel=lambda a, b: "x")).partial_fit(X, Y),
     "'kernel' parameter of Labels must be"),
    (lambda: ok.ILK(ok.GraphHinge(), exact=True, labels=ok.Labels(list("abc"), kernel=np.ones((3, 3)))).partial_fit(X, Y),
     "delta kernel"),
    (lambda: ok.ILK("multiclass_hinge", exact=True, step=ok.MetaDescent()).partial_fit(X, Y), "exact=False"),
    (lambda: ok.PassiveAggressive(ok.Logistic()).partial_fit(X, Y == "a"), "passive-aggressive"),
    (lambda: ok.PassiveAggressive(variant="PA-III").partial_fit(X, Y == "a"), "variant"),
    (lambda: ok.SVMD(ok.NuNovelty(margin=-1.0)).partial_fit(X), "above 0"),
    (lambda: ok.SVMD(step=10.0, regularization=1.0).partial_fit(X, Y == "a"), "at most 1"),
    (lambda: ok.SVMD(memory=1.5).partial_fit(X, Y == "a"), "memory"),
    (lambda: ok.ILK(penalty=0.0).partial_fit(X, Y == "a"), "penalty"),
    (lambda: ok.SVMD(ok.Hinge(), lambda a, b: 1.0, exact_norms=True).partial_fit(X, Y == "a"), "built-in kernel"),
    (lambda: ok.NORMA(ok.GraphHinge(), labels=TREE).partial_fit(X, Y, classes=["a", "z"]), "'z'"),
    (lambda: ok.NORMA(ok.Hinge()).partial_fit(X, Y), "multiclass_hinge"),
    (lambda: TREE.distance("a", "zzz"), "'zzz'"),
    (lambda: ok.LabelGraph([("a", "b", 1.0)]).distance("a", "zzz"), "'zzz'"),
])
def test_combinations_that_make_no_sense_are_refused_in_a_sentence(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@each("order, y", [
    ([1, 0, 2], [0, 1, 2, 1]), ([1, 0, 2], [0.0, 2.0]), ([3, 1], [1, 3, 3]), ([3, 1], [1, 2]), ([1, 0], [1, -1]), ([1, 0], [5, 0]),
    ([0, 9], [9, 0, 9]), ([True, False], [1, 0]),
])
def test_small_numbers_are_looked_up_as_all_labels_are(order, y):
    """At once or one by one: the same targets, the same labels that join, and refusals."""
    labels, at_once = ManyLabels(order, False), []
    for column in (np.array(y), np.array(y, dtype=object)):  # objects are looked at one by one
        try:
            targets, after = labels.encode(column)
            at_once.append((targets.tolist(), list(after.order)))
        except ValueError as error:
            at_once.append(type(error))
    assert at_once[0] == at_once[1]


def test_probabilities_of_many_classes():
    model = ok.NORMA(ok.MulticlassLogistic(), ok.Gaussian(0.7), step=0.5, epochs=30).fit(X, Y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    assert not hasattr(ok.NORMA(ok.MulticlassHinge()), "predict_proba")


def test_multiclass_losses_against_finite_differences():
    rng = np.random.default_rng(3)
    scores, y, h = rng.normal(size=(20, 3)), rng.integers(0, 3, 20), 1e-6
    for loss in (ok.MulticlassHinge(), ok.MulticlassLogistic(), ok.MulticlassSquared(), ok.GraphHinge(),
                 ok.NuMulticlassHinge(0.2)):
        slopes = [(loss.value(scores + h * e, y) - loss.value(scores - h * e, y)) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(loss.derivative(scores, y), np.array(slopes).T, atol=1e-6)


class Own(ok.Loss):
    """The squared distance to the indicator of the label, a loss of the tests' own for many classes."""

    task = "multiclass"

    def derivative(self, scores, y):
        return scores - np.eye(len(scores))[y]


def test_own_losses_of_many_classes():
    model = ok.NORMA(Own(), "linear", step=0.1, regularization=0.0, offset=False)
    model.partial_fit(X, Y, classes=["a", "b", "c"])
    W = np.zeros((3, 2))
    for x, label in zip(X, Y):
        W -= 0.1 * np.outer(W @ x - np.eye(3)["abc".index(label)], x)
    np.testing.assert_allclose(model.coef_, W, rtol=1e-12)
    with pytest.raises(ValueError, match="MetaDescent"):
        ok.SVMD(Own()).partial_fit(X, Y)


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
    assert model.decision_function(X).shape == (12, 2)
    assert copy.deepcopy(model).predict(X).tolist() == model.predict(X).tolist()


@each("loss", ["multiclass_hinge", "multiclass_logistic", "multiclass_squared"])
@each("scale", [False, True])
def test_labels_of_rows_that_were_not_learned_do_not_stay(loss, scale, tmp_path):
    model = ok.NORMA(loss, "linear", scale=scale).partial_fit([[0.0], [1.0]], ["a", "b"])
    for learn in (lambda: model.partial_fit([[1e200]], ["typo"]), lambda: model.learn_one([1e200], "typo"),
                  lambda: model.partial_fit([[1.0], [2.0], [1e200], [3.0]], ["b", "c", "typo", "d"])):
        with pytest.raises((FloatingPointError, ValueError)):
            learn()
        model.save(tmp_path / "m.npz")
        same = ok.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(same.decision_function([[1.0]]), model.decision_function([[1.0]]))
    learned = ["a", "b"] if scale else ["a", "b", "c"]  # what a scaler refuses is refused before any row
    assert model.classes_.tolist() == learned
    model.partial_fit([[2.0]], ["e"])
    assert model.classes_.tolist() == [*learned, "e"] and "typo" not in model.predict([[-1.0], [5.0]])


def test_a_row_that_was_not_learned_does_not_settle_which_label_is_negative():
    model = ok.NORMA("hinge", "linear").partial_fit([[1.0]], [1])
    for learn in (lambda: model.partial_fit([[1e200]], [0]), lambda: model.learn_one([1e200], 0)):
        with pytest.raises(FloatingPointError):
            learn()
    assert model.partial_fit([[1.0]], [-1]).classes_.tolist() == [-1, 1]


@each("look", [lambda tree: tree.names(), lambda tree: tree.nodes(), lambda tree: tree.validate()])
def test_doubled_labels_are_refused_wherever_one_looks(look):
    tree = ok.Taxonomy({"a": "r", "b": "r"}, labels=["a", "b", "a"])    # the constructor never raises
    with pytest.raises(ValueError, match="each label once. Got 'a' twice"):
        look(tree)


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


def test_paths_of_an_array(tmp_path):
    """The labels of an array are strings of NumPy's, and they are labels like any others."""
    y = np.array(["a/b", "a/c", "d/e"] * 4)
    model = ok.NORMA("graph_hinge", labels=ok.Taxonomy.from_paths(y)).fit(X, y)
    model.save(tmp_path / "m.npz")
    assert ok.load(tmp_path / "m.npz").predict(X).tolist() == model.predict(X).tolist()
    assert model.classes_.dtype == "<U3"


def test_inner_nodes_keep_the_names_that_are_their_own():
    assert ok.Taxonomy.from_paths(["D05/C", "D05/B", "E/1/x"]).parents == {
        "D05/": "/", "D05/C": "D05/", "D05/B": "D05/", "E/": "/", "E/1/": "E/", "E/1/x": "E/1/"}
    assert ok.Taxonomy.from_paths(["a_b x", "a b x", "a b_ x"], pieces).nodes().count("a/b/") == 1


@each("labels, split, words", [
    (["a/b", "a-b"], lambda label: label.replace("-", "/").split("/"), "'a/b' and 'a-b' of from_paths have one path"),
    (["a/b", ""], lambda label: label.split("/") if label else [], "'' of from_paths has no path"),
])
def test_paths_that_are_no_paths_are_refused(labels, split, words):
    with pytest.raises(ValueError, match=words):
        ok.Taxonomy.from_paths(labels, split)


@each("labels", [
    ok.Taxonomy({1: 0, 2: 0, 3: 0}, labels=[1, 2, 3]),
    ok.Taxonomy({2**63: "r", -1: "r", 2**53 + 1: "r"}, labels=[2**63, -1, 2**53 + 1]),
    ok.LabelGraph([(2**53, 2**53 + 1, 1.0), (2**53 + 1, -1, 1.0)]),
    ok.LabelGraph([(1, "a", 1), ("a", 0.5, 2.5)]),
], ids=repr)
def test_structures_of_numbers_are_saved_as_they_are(labels, tmp_path):
    model = ok.NORMA("graph_hinge", labels=labels).fit(X[:3], labels.names())
    model.save(tmp_path / "m.npz")
    twin = ok.load(tmp_path / "m.npz")
    assert repr(twin) == repr(model) and twin.predict(X).tolist() == model.predict(X).tolist()
    assert twin.classes_.tolist() == model.classes_.tolist() == labels.names()


def test_paths_without_parts_are_refused():
    with pytest.raises(ValueError, match="expected paths.*split="):
        ok.Taxonomy.from_paths(["comp.graphics", "comp.windows"])


def test_a_fit_that_fails_keeps_its_own_labels():
    model = ok.NORMA("hinge", ok.Linear()).partial_fit([[1.0]], [1])
    with pytest.raises(FloatingPointError):
        model.fit([[1.0], [1.0], [1e200], [0.0]], ["b", "b", "b", "a"])
    assert model.t_ == 2 and model.classes_.tolist() == ["a", "b"] and model.predict([[1.0]]).tolist() == ["b"]


@each("loss", ["multiclass_hinge", "multiclass_logistic", "multiclass_squared"])
def test_scores_have_as_many_columns_as_there_are_classes_after_an_error(loss):
    model = ok.NORMA(loss).partial_fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(FloatingPointError):
        model.learn_one([1e200], "zz")
    for twin in (model, pickle.loads(pickle.dumps(model))):
        assert twin.progressive([[1.0]], ["a"]).shape == twin.decision_function([[1.0]]).shape == (1, 2)
        assert ok.evaluate.progressive(twin, ([[1.0]], ["a"])).examples == 1


def test_numbers_beyond_all_floats_are_refused():
    with pytest.raises(ValueError, match="'kernel' parameter of Labels must be a matrix of 2 x 2 numbers"):
        ok.NORMA("graph_hinge", labels=ok.Labels(["a", "b"], kernel=[[10**400, 0], [0, 1]])).fit([[0.0], [1.0]], ["a", "b"])


def test_runners_up_after_fit_go_by_the_order_of_classes():
    X = np.array([[0.0], [100.0], [200.0], [300.0]])
    model = ok.NORMA("multiclass_hinge", "gaussian").fit(X[:3], ["c", "a", "b"])
    for again in (model, pickle.loads(pickle.dumps(model))):
        again.learn_one(X[3], "b")               # all scores are 0: the runner-up is the first of the others
        assert again.classes_[np.flatnonzero(again.dual_coef_[:, -1] < 0)].tolist() == ["a"]
        again.learn_one([400.0], "new")
        again.learn_one([500.0], "a")
        assert again.classes_[np.flatnonzero(again.dual_coef_[:, -1] < 0)].tolist() == ["b"]
    stream = ok.NORMA("multiclass_hinge", "gaussian").partial_fit(X[:3], ["c", "a", "b"]).partial_fit(X[3:], ["b"])
    assert stream.classes_[np.flatnonzero(stream.dual_coef_[:, -1] < 0)].tolist() == ["c"]


def test_balanced_weights_are_shared_by_the_classes_that_are_there():
    """n / (classes in y * count of each), as scikit-learn has it; a class that is only named has no share."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.array(list("aab"))[rng.integers(0, 3, 60)]
    weights = 60 / (2 * np.where(y == "a", np.sum(y == "a"), np.sum(y == "b")))
    settings = {"loss": "multiclass_hinge", "kernel": ok.Gaussian(1.0), "step": 0.1}
    balanced = ok.NORMA(**settings, class_weight="balanced").fit(X, y, classes=list("abc"))
    by_hand = ok.NORMA(**settings).partial_fit(X, y, classes=list("abc"), sample_weight=weights)
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-12)


def test_weights_of_classes_and_of_examples_multiply():
    rng = np.random.default_rng(1)
    X, y, weights = rng.normal(size=(40, 2)), np.array(list("ab"))[rng.integers(0, 2, 40)], rng.uniform(0.5, 2.0, size=40)
    settings = {"kernel": ok.Gaussian(1.0), "step": 0.1}
    both = ok.NORMA(**settings, class_weight={"b": 3.0}).partial_fit(X, y, sample_weight=weights)
    by_hand = ok.NORMA(**settings).partial_fit(X, y, sample_weight=weights * np.where(y == "b", 3.0, 1.0))
    np.testing.assert_allclose(both.decision_function(X), by_hand.decision_function(X), atol=1e-12)
