"""What is refused, and what the message says: tables of (call, error, the argument, words that help).

Of each estimator `test_contracts.py` and `interfaces/test_docstrings.py` know that it refuses; here is what it says.
"""
import pickle
import re

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from contracts.registry import overlap

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 2))
LABELS = np.where(X[:, 0] > 0, 1, -1)
TARGETS = X @ [1.0, -2.0]
LEARNING = ["fit", "partial_fit", "progressive"]
BOTH = (ValueError, TypeError)
GOOD = object()  # the default of an argument that is in order


def refused(error, call, model, *words):
    """The call raises such an error with all these words in it, and leaves the model's bytes alone."""
    before = pickle.dumps(model)
    with pytest.raises(error) as info:
        call()
    message = str(info.value)
    for word in words:
        assert re.search(word, message), f"{word!r} is not in the message {message!r}"
    assert pickle.dumps(model) == before, "a refused call changed the model"


# A model of each representation: (model, good X, good y)
KINDS = {"terms": lambda: (ok.NORMA("hinge", ok.Gaussian(0.8), budget=5, step=0.3), X, LABELS),
         "novelty": lambda: (ok.NORMA("nunovelty", ok.Gaussian(2.0) + ok.Linear(), budget=ok.Smallest(4)), X, None),
         "float32": lambda: (ok.NORMA("huber", "gaussian", budget=ok.Window(6)), X.astype(np.float32), TARGETS),
         "posterior": lambda: (ok.KRLS(kernel=ok.Gaussian(1.3)), X, TARGETS)}


def fresh(kind, fitted):
    """A model of a kind, with good X and y for it."""
    model, points, y = KINDS[kind]()
    return (model.partial_fit(points, y) if fitted else model), points, y


def everywhere(kind, words, error, X=GOOD, y=GOOD, **keywords):
    """The rows, labels or weights are refused by whatever learns, before and after the first rows, and by what
    predicts."""
    for fitted in (False, True):
        model, points, good = fresh(kind, fitted)
        rows = points[:2] if X is GOOD else X
        labels = y if y is not GOOD else None if good is None else good[:2]
        for method in LEARNING[1:] if keywords else LEARNING:
            refused(error, lambda: getattr(model, method)(rows, labels, **keywords), model, *words)
    if X is not GOOD:
        for method in ("predict", "decision_function", "score_samples", "predict_proba"):
            if hasattr(model, method):
                refused(error, lambda: getattr(model, method)(X), model, *words)


def with_entry(value):
    points = X[:2].copy()
    points[1, 0] = value
    return points


class Sparse:
    """What looks like a scipy.sparse matrix."""

    shape = (2, 2)

    def toarray(self):
        return np.zeros((2, 2))


BAD_X = [  # (two rows, error, words)
    (with_entry(NAN), ValueError, ["NaN", "finite"]),
    (with_entry(INF), ValueError, ["infinity", "finite"]),
    (np.zeros((0, 2)), ValueError, ["0 sample", "minimum of 1"]),
    (np.zeros((2, 0)), ValueError, ["0 feature"]),
    (X[0], ValueError, ["2D", "1D", "reshape"]),
    (X[None], ValueError, ["2D", "3D"]),
    (5.0, ValueError, ["2D", "0D"]),
    ([["a", "b"], ["c", "d"]], TypeError, ["numbers", "kernel"]),
    (np.array([["1", 2.0], [3.0, 4.0]], dtype=object), TypeError, ["numbers"]),
    (np.array([[b"a", b"b"]]), TypeError, ["numbers"]),
    (np.zeros((2, 2), dtype="M8[s]"), TypeError, ["numbers", "datetime64"]),
    (X[:2] + 1j, ValueError, ["real", "complex"]),
    ([[None, 1.0], [0.0, 1.0]], BOTH, []),
    ([[{}, 1.0], [0.0, 1.0]], TypeError, ["numbers", r"\{\}"]),
    ([[10**400, 0], [0, 0]], ValueError, ["large"]),
    ([[1.0, 2.0], [3.0]], ValueError, ["length"]),
    (Sparse(), TypeError, ["sparse", "toarray"]),
    ([{"a": 1}, {"a": 2}], BOTH, ["kernel"]),
    ({"a": [1.0, 2.0]}, BOTH, []),
    (iter([[1.0, 2.0]]), BOTH, []),
]


@each("points, error, words", BAD_X, ids=lambda value: repr(value)[:60])
@each("kind", KINDS)
def test_points(kind, points, error, words):
    everywhere(kind, [r"\bX\b", *words], error, X=points)


BAD_Y = [  # (y of two rows, error of labels, error of targets, words); None: it is not refused, or elsewhere
    (None, ValueError, ValueError, ["None"]),
    ([1], ValueError, ValueError, [r"\b2\b", r"\b1\b"]),
    ([1, -1, 1], ValueError, ValueError, [r"\b2\b", r"\b3\b"]),
    ([], ValueError, ValueError, []),
    (1, ValueError, ValueError, ["1d"]),
    ([[1], [1, 2]], ValueError, ValueError, []),
    ({1, -1}, BOTH, BOTH, []),
    ([1.0, NAN], ValueError, ValueError, ["(?i)nan"]),
    ([1.0, INF], ValueError, ValueError, ["inf"]),
    ([1, None], ValueError, TypeError, []),
    ([[1, 1], [-1, 1]], ValueError, None, ["1d", r"\(2, 2\)"]),
    ("ab", ValueError, BOTH, []),
    (np.zeros((2, 2, 2)), None, ValueError, ["1d", r"\(2, 2, 2\)"]),
    (["a", "b"], None, TypeError, ["numbers"]),
    ([1j, 0.0], None, TypeError, ["numbers", "complex"]),
    (np.zeros(2, dtype="M8[s]"), None, TypeError, ["numbers"]),
    ([10**400, 1], None, BOTH, []),
]


@each("y, of_labels, of_targets, words", BAD_Y, ids=lambda value: repr(value)[:60])
def test_labels_and_targets(y, of_labels, of_targets, words):
    for kinds, error in ((("terms",), of_labels), (("float32", "posterior"), of_targets)):
        for kind in kinds if error else ():
            everywhere(kind, [r"\by\b", *words], error, y=y)


@each("known", [[-1, 1], [0, 1], [3, 8], [False, True], ["ham", "spam"], [0.25, 0.5]], ids=str)
@each("unknown", [7, "other", 0.75, ""], ids=repr)
def test_a_label_that_is_not_known_is_named(known, unknown):
    model = ok.NORMA().partial_fit(X[:2], known)
    words = [r"\by\b", "unknown label", re.escape(repr(unknown)), *(re.escape(repr(label)) for label in known)]
    for n in (1, 2):
        for method in ("partial_fit", "progressive"):
            refused(ValueError, lambda: getattr(model, method)(X[:n], np.array([unknown] * n)), model, *words)
    mixed = np.array([known[0], unknown, known[1]]) if type(unknown) is type(known[0]) else [unknown] * 3
    refused(ValueError, lambda: model.partial_fit(X[:3], mixed), model, *words[:2])
    refused(ValueError, lambda: model.learn_one(X[0], unknown), model, *words)


CLASSES = [  # (model, labels, classes, words)
    *[(ok.NORMA(), y, None, [r"\by\b", "two", r"\b3\b", "multiclass_hinge", *map(repr, y)])
      for y in ([0, 1, 2], ["a", "b", "c"])],
    (ok.NORMA(), [0.5, 1.5, 2.5], None, [r"\by\b", "continuous", "squared", "0.5", "1.5", "2.5"]),
    *[(ok.Perceptron(), y, None, [r"\by\b", "one class", "two", "classes", repr(y[0])])
      for y in (["a", "a"], [3, 3], [0.5, 0.5], [2])],
    (ok.NORMA(), ["a", "z"], ["a", "b"], [r"\by\b", "'z'", "'a'", "'b'"]),
]
BAD_CLASSES = [(["a", "b", "c"], ["two", r"\b3\b", "'a'"]), (["a"], ["two", r"\b1\b", "'a'"]), (["a", "a"], ["two",
                                                                                                             "'a'"]),
               ([], ["two"]), ([["a", "b"]], ["1d"]), (5, []), ([NAN, 1.0], ["NaN"]), ([None, "a"], [])]


@each("model, y, classes, words",
      [*CLASSES, *[(ok.NORMA(), ["a", "a"], classes, ["classes", *words]) for classes, words in BAD_CLASSES]])
@each("method", LEARNING)
def test_classes(method, model, y, classes, words):
    refused(BOTH, lambda: getattr(model, method)(X[: len(y)], y, classes=classes), model, *words)


# ---- Parameters -------------------------------------------------------------------------------------


class NoDerivative(ok.Loss):
    task = "binary"

    def __init__(self):
        pass


class NoPair(ok.Kernel):
    def __init__(self):
        pass


def of(name, words, *values):
    return [({name: value}, words) for value in values]


BAD_PARAMETERS = [  # (parameters of NORMA, words): what no docstring says of one parameter alone
    *[({"step": step, "regularization": 1.0}, ["step", "regularization", "at most 1", "Got"])
      for step in (1.0001, ok.InverseSqrt(1.5), ok.Decaying(2.0, 100))],
    *of("step", ["'rate'", "positive", "Got"], ok.Fixed(0), ok.InverseSqrt(-1), ok.Decaying(NAN)),
    *[({"average": True, "budget": budget}, ["average", "budget"]) for budget in (5, ok.Window(5), ok.Sublinear())],
    *[({"loss": loss, "offset": True}, ["offset", "novelty"]) for loss in ("novelty", ok.NuNovelty())],
    *of("loss", ["'loss'", "a loss", "Got"], "bogus", ok.Hinge),
    *of("loss", ["derivative"], NoDerivative()),
    *of("budget", ["'size'|'steps'", "integer of at least 1", "Got"], ok.Recent(0), ok.Window(True), ok.Smallest(-3)),
    *of("kernel", ["'width'", "positive", "Got"], ok.Normalized(ok.Gaussian(-1)), ok.Linear() + ok.Gaussian(-1)),
    *of("kernel", ["'value'", "at least 0", "Got"], -1 * ok.Gaussian(), ok.Gaussian() + -0.5),
    *of("kernel", ["'kernel'", "Got"], ok.Normalized("bogus"), ok.Gaussian),
    *of("kernel", ["'gram'"],
        *map(ok.Precomputed, (np.zeros((2, 3)), np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[NAN]])))),
    *of("kernel", ["'gram'|'kernel'", "Got"], "precomputed"),
    *of("kernel", ["64"], sum([ok.Gaussian(width) for width in range(1, 80)], ok.Gaussian())),
    *of("kernel", ["pair"], NoPair()),
]


@each("params, words", BAD_PARAMETERS, ids=lambda value: repr(value)[:60])
def test_parameters_are_stored_without_a_word_and_refused_at_the_first_fit(params, words):
    model, fitted = ok.NORMA(**params), ok.NORMA(step=0.2).partial_fit(X, LABELS)
    assert all(model.get_params(deep=False)[name] is value for name, value in params.items())
    assert isinstance(repr(model), str)
    scores = fitted.decision_function(X)
    assert fitted.set_params(**params) is fitted
    for victim in (model, fitted):
        said = words if victim is model else []
        for method in LEARNING:
            refused(BOTH, lambda: getattr(victim, method)(X, LABELS), victim, *(words if method == "fit" else said))
        refused(BOTH, lambda: victim.learn_one(X[0], 1), victim, *said)
    assert (fitted.decision_function(X) == scores).all()
    assert (fitted.t_, fitted.n_terms_) == (12, 12)


LEARNED = {"binary": ok.NORMA(kernel=ok.Gaussian()).partial_fit(X, LABELS), "logistic": ok.NORMA("logistic"),
           "float32": ok.NORMA("squared", "laplacian").partial_fit(X.astype(np.float32), TARGETS),
           "posterior": ok.KRLS("squared", ok.Gaussian(1.3), budget=9).partial_fit(X, TARGETS)}
UNFITTED = ["NORMA", "not fitted", "fit"]
LARGE, TOO_LARGE = np.array([[1e300, 0.0]]), [r"\b[xX]\b", "large", "float32"]
CALLS = [  # (model, call, words)
    *[("logistic", call, UNFITTED) for call in (
        lambda m: m.predict(X), lambda m: m.predict_one(X[0]), lambda m: m.decision_function(X),
        lambda m: m.score(X, LABELS),
        lambda m: m.predict_proba(X))],
    *[("float32", call, TOO_LARGE) for call in (
        lambda m: m.partial_fit(LARGE, [1.0]), lambda m: m.progressive(LARGE, [1.0]), lambda m: m.predict(LARGE),
        lambda m: m.learn_one(LARGE[0], 1.0), lambda m: m.predict_one(LARGE[0]))],
    ("binary", lambda m: m.score(X, None), [r"\by\b"]),
    ("binary", lambda m: m.score(X, LABELS[:3]), [r"\by\b", "12", r"\b3\b"]),
    ("binary", lambda m: m.score(X, LABELS, sample_weight=[1.0]), ["sample_weight"]),
    ("binary", lambda m: m.score(X, LABELS, sample_weight=-1.0), ["sample_weight"]),
    ("binary", lambda m: m.set_params(steps=1), ["'steps'", "regularization"]),
    ("binary", lambda m: m.set_params(kernel__rate=1), ["Gaussian", "'rate'", "width"]),
    ("binary", lambda m: m.set_params(loss__nu=1), ["Hinge", "'nu'", "margin"]),
    ("binary", lambda m: m.set_params(scale__memory=1), ["'scale'", "False"]),
    ("binary", lambda m: ok.NORMA(steps=1), ["steps"]),
    *[("posterior", lambda m, share=share: m.progressive(X, TARGETS, return_interval=share), ["coverage"])
      for share in (0, 1.0, "0.9", NAN, True)],
    *[("posterior", lambda m, share=share: m.predict_interval(X, share), ["coverage"]) for share in (1.5, None)],
    ("posterior", lambda m: m.progressive(X, TARGETS, return_proba=True), ["proba"]),
    ("posterior", lambda m: m.partial_fit(X, np.column_stack([TARGETS, TARGETS])), [r"\by\b"]),
    ("posterior", lambda m: m.log_density(X, TARGETS[:3]), [r"\by\b"]),
    ("posterior", lambda m: m.log_density(X, ["a"] * 12), [r"\by\b"]),
    ("posterior", lambda m: m.sample_y(X[:, :1]), [r"\bX\b"]),
    *[("binary", lambda m, bad=bad: m.kernel(bad), [r"\bX\b"])
      for bad in ([[NAN]], [["a"]], [1.0], [[1.0], [1.0, 2.0]])],
    *[("binary", lambda m, bad=bad: m.kernel.diagonal(bad), [r"\bX\b"]) for bad in ([[NAN]], [["a"]], [1.0])],
    *[("binary", lambda m, bad=bad: m.kernel([[1.0]], bad), [r"\bZ\b"]) for bad in ([[NAN]], [["a"]], [1.0])],
    ("binary", lambda m: m.kernel([[1.0]], [[1.0, 2.0]]), [r"\bZ\b", r"\b1\b", r"\b2\b"]),
    *[("binary", lambda m, kernel=kernel: kernel(X), ["parameter of"]) for kernel in (
        ok.Gaussian(-1.0), ok.Gaussian("wide"), ok.Polynomial(1.5), ok.Normalized(ok.Gaussian(0)),
        ok.Gaussian() + ok.Constant(-1))],
    *[("binary", lambda m, gram=gram: ok.Precomputed(gram)([[1]], [[0]]), ["'gram'", "square"])
      for gram in (None, np.zeros((3, 2)), np.zeros(3))],
]


@each("name, call, words", CALLS, ids=lambda value: value if isinstance(value, str) else "")
def test_calls(name, call, words):
    refused(BOTH, lambda: call(LEARNED[name]), LEARNED[name], *words)


def start(kernel=None, loss="squared", X=X, y=TARGETS, **keywords):
    return ok.NORMA(loss, kernel or ok.Gaussian(2.0), **keywords).partial_fit(X, y)


@each("initial, words", [(5, ["fitted model", "5"]), ("norma", ["fitted model", "norma"]), (ok.NORMA("squared",
                                                                                                     ok.Gaussian(2.0)),
                                                                                            ["fitted model"]),
                         (start(ok.Gaussian(3.0)), ["kernel", "2.0", "3.0"]), (start("linear"), ["kernel", "Gaussian",
                                                                                                 "Linear"]),
                         (start(overlap, X=["a", "b"], y=[1.0, 2.0]), ["kernel", "Gaussian"]), (start(X=X[:, :1]),
                                                                                                ["features", r"\b2\b",
                                                                                                 r"\b1\b"]),
                         (start(loss="hinge", y=LABELS), ["binary", "regression"]), (start(loss="novelty", y=None),
                                                                                     ["novelty", "regression"]),
                         (start(offset=True), ["offset"]),])
@each("method", LEARNING)
def test_starts_that_do_not_fit(method, initial, words):
    model = ok.NORMA("squared", ok.Gaussian(2.0))
    refused(ValueError, lambda: getattr(model, method)(X, TARGETS, initial=initial), model, "initial", *words)


MANY = np.array(list("abcabcabcabc"))
TREE = ok.Taxonomy({"a": "v", "b": "v", "c": "root", "v": "root"})
META, SHRINKING, MERGING = ok.MetaDescent(0.1, 0.1, 0.9), ok.Shrinking(5), ok.Merging(5)
MAP = ok.RandomFourier("gaussian")
SENSELESS = [  # (a model, y, words)
    # Maps of features
    (ok.NORMA(kernel=ok.RandomFourier("linear")), LABELS, "Gaussian or a Laplacian"),
    (ok.NORMA(kernel=ok.RandomFourier("gaussian", 7)), LABELS, "even number"),
    (ok.NORMA(kernel=ok.Nystroem(overlap)), LABELS, "built-in"),
    (ok.NORMA(kernel=ok.Nystroem(MAP)), LABELS, "no feature map"),
    (ok.NORMA(kernel=MAP + ok.Gaussian()), LABELS, "no feature map as a whole"),
    (ok.NORMA(kernel=0.0 * MAP), LABELS, "no feature map as a whole"),
    (ok.VotedPerceptron(MAP), LABELS, "feature map"),
    (ok.Adatron(ok.Nystroem("gaussian")), LABELS, "feature map"),
    (ok.KernelHebbian(step=ok.MetaDescent(quadratic=True)), LABELS, "MetaDescent.rate, meta_rate, memory. or None"),
    # Scalers
    (ok.NORMA(scale=1), LABELS, "'scale'.*RunningScaler"),
    (ok.NORMA("squared", scale_target=3), TARGETS, "'scale_target'.*True, False, a RunningScaler or .log."),
    (ok.NORMA("hinge", scale_target=True), LABELS, "needs a loss of numbers"),
    (ok.NORMA("squared", overlap, scale=True), TARGETS, "needs a kernel on rows of numbers"),
    # Budgets
    (ok.NORMA("hinge", "laplacian", budget=MERGING), LABELS, "needs a Gaussian kernel"),
    (ok.ROMMA(ok.Gaussian(), budget=MERGING), LABELS, "cannot be kept exact"),
    (ok.ALMA(ok.Gaussian(), budget=ok.Quantized()), LABELS, "cannot be kept exact"),
    (ok.NORMA(step=META, budget=ok.RandomRemoval(5, bound=1.0)), LABELS, "does not adapt itself"),
    (ok.NORMA(budget=ok.RandomRemoval(1, bound=1.0)), LABELS, "at least 2"),
    (ok.NORMA(budget=ok.RandomRemoval(5, importance=True), step=META), LABELS, "does not adapt itself"),
    (ok.ROMMA(ok.Gaussian(), budget=ok.Absorbing(5)), LABELS, "cannot be kept exact"),
    (ok.NORMA("squared", ok.Gaussian(), budget=ok.Redundant(5)), TARGETS, "classes"),
    (ok.NORMA("squared", ok.Gaussian(), budget=SHRINKING), TARGETS, "classes"),
    (ok.SILK("hinge", budget=SHRINKING), LABELS, "steps of two classes: Perceptron, Forgetron, NORMA or SVMD"),
    (ok.NORMA("multiclass_hinge", budget=SHRINKING), MANY, "gradient steps of two classes"),
    # Steps, and rules for some losses
    (ok.SVMD(ok.NuHinge(), margin_step=META), LABELS,
     "is for a nu-loss with margin_step=None.*margin_step=0.1 of its own"),
    (ok.SVMD("hinge", margin_step=META), LABELS, "nothing that adapts"),
    (ok.SVMD("hinge", offset_step=META, offset=False), LABELS, "is for a model with offset=True"),
    (ok.ILK("hinge", step=ok.MetaDescent(offset_step=META), offset=True), LABELS, "is for explicit steps"),
    (ok.SVMD(ok.NuHinge(0.3, 0.5, None), offset=True, offset_step=0.1), LABELS,
     r"MetaDescent\(rate, meta_rate, memory\) or None"),
    (ok.NORMA(ok.NuHinge(margin=0.0, margin_step="log")), LABELS, "must be a positive number"),
    (ok.SVMD(step=10.0, regularization=1.0), LABELS, "at most 1"),
    (ok.SVMD(ok.Hinge(), overlap, exact_norms=True), LABELS, "built-in kernel"),
    (ok.ILK("squared", average=True, budget=10), TARGETS, "average"),
    (ok.ILK("multiclass_logistic", labels=TREE, step=ok.MetaDescent()), MANY, "delta kernel"),
    (ok.ILK("graph_hinge", exact=True, labels=ok.Labels(list("abc"), kernel=np.ones((3, 3)))), MANY, "definite"),
    (ok.ILK("multiclass_hinge", exact=True, step=ok.MetaDescent()), MANY, "exact=False"),
    (ok.PassiveAggressive("logistic"), LABELS, "passive-aggressive"),
    (ok.PassiveAggressive("multiclass_squared"), MANY, "passive-aggressive"),
    (ok.Projection("logistic"), LABELS, "ogistic"),
    (ok.KRLS("hinge"), LABELS, "squared"),
    (ok.KRLS(budget=0), TARGETS, "The 'budget' parameter of KRLS must be an integer of at least 1"),
    (ok.KRLS("multiclass_squared", scale_target=True), MANY, "scale_target"),
    (ok.NORMA("hinge", labels=TREE), MANY, "many classes"),
    (ok.NORMA("squared", class_weight={1: 2.0}), TARGETS, "needs a loss of classes"),
    (ok.NORMA(class_weight={"typo": 2.0}), LABELS, "whose keys are among"),
    (ok.NORMA("hinge"), TARGETS, 'such as "squared"'),
    (ok.NORMA("multiclass_hinge"), TARGETS, 'such as "squared"'),
    (ok.NORMA(), ["a", 1] * 6, "labels of one kind that can be sorted"),
    (ok.Additive([], []), None, "'left' parameter of Additive must be a list of 1 to 32"),
    (ok.Additive([np.sin], [np.sin, np.cos]), None, "as many functions as left"),
    (ok.NORMA("graph_hinge", labels=ok.Labels(list("abc"), distance=np.eye(3) - 1)), MANY, "at least 0"),
    (ok.NORMA("graph_hinge", labels=ok.Labels(list("abc"), kernel=[["x"] * 3] * 3)), MANY,
     "'kernel' parameter of Labels"),
    # Models of several
    (ok.Hedge([ok.NORMA("squared")], votes=True), TARGETS,
     "votes=True is for members that predict a class|for members that say a class"),
    (ok.Stacking({"own": ok.SILK("multiclass_hinge", class_weight={"a": 2.0}),
                  "near": ok.Smoother("multiclass_squared")}), MANY,
     "must have no class_weight and no labels of its own"),
    (ok.OnlineKernelClassifier("most"), LABELS, "'effort'"),
    (ok.OnlineKernelClassifier("low", threshold="best"), LABELS, "'threshold'"),
    (ok.OnlineKernelClassifier(members=[ok.SILK("squared")]), LABELS, "'members'"),
    (ok.OnlineKernelClassifier("low"), TARGETS, "use OnlineKernelRegressor"),
    (ok.OnlineKernelRegressor("low"), [1.0, None] * 6, "must hold numbers .* Got None of dtype object"),
    (ok.OnlineKernelRegressor("low"), ["a", "b"] * 6, "Got 'a' of dtype <U1"),
    (ok.OnlineKernelClassifier("low"), np.array(["a", None, "b"] * 4, dtype=object),
     "NaN or None at index 1; expected labels"),
]


@each("model, y, words", SENSELESS, ids=lambda value: repr(value)[:60])
def test_what_does_not_go_together(model, y, words):
    model = ok.NORMA("hinge", model) if isinstance(model, ok.Kernel) else model
    refused(BOTH, lambda: model.fit(X, LABELS if y is None else y), model, words)
    assert not hasattr(model, "t_")


ABSENT = [  # (what is asked, words)
    (lambda: ok.SILK().fit(X, LABELS).predict_proba,
     '"logistic" for two classes, "multiclass_logistic" or "multiclass_squared"'),
    (lambda: ok.OnlineKernelRegressor("low").predict_proba, "OnlineKernelRegressor has no 'predict_proba'\\.$"),
    (lambda: ok.NORMA("squared", "linear").fit(X, TARGETS).dual_coef_, "coef_"),
    (lambda: ok.NORMA("squared", ok.AdditiveMatern()).fit(X, TARGETS).support_vectors_, "knots_"),
    (lambda: ok.NORMA("hinge", "linear").fit(X, LABELS).contributions(X[0]), "weights, not terms"),
    *[(lambda make=make: make().report(), "not fitted yet. Call 'fit' or 'partial_fit' first")
      for make in (ok.OnlineKernelClassifier, ok.OnlineKernelRegressor, ok.OnlineKernelDetector)],
]


@each("ask, words", ABSENT, ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_model_does_not_have(ask, words):
    with pytest.raises((AttributeError, ValueError), match=words):
        ask()


# ---- Rows that say what is wrong with them -----------------------------------------------------------


@each("value, words", [("cold", "encode words"), (None, "fill in what is missing"), ("NA", "fill in what is missing")])
def test_what_is_no_number_is_named_with_its_place_and_what_to_do(value, words):
    rows = X.astype(object)
    if value == "NA":
        value = pytest.importorskip("pandas").NA
    rows[7, 1] = value
    with pytest.raises(TypeError, match=f"in row 7, column 1, instead; .*{words}"):
        ok.NORMA().fit(rows, LABELS)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["wind", "weather"])
    with pytest.raises(TypeError, match=f"in row 7, column 'weather', instead; .*{words}"):
        ok.NORMA().fit(frame, LABELS)


def test_nan_is_named_with_its_place():
    rows = X.copy()
    rows[7, 1] = np.nan
    for model in (ok.NORMA(), ok.NORMA(scale=True), ok.NORMA(kernel="linear")):
        fitted = type(model)(**model.get_params(deep=False)).fit(X, LABELS)
        for call in (lambda x: model.fit(x, LABELS), lambda x: fitted.partial_fit(x, LABELS), fitted.predict):
            with pytest.raises(ValueError, match="Input X contains NaN in row 7, column 1; expected finite numbers"):
                call(rows)
        with pytest.raises(ValueError, match="Input x contains NaN at index 1; expected"):
            fitted.predict_one(rows[7])
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match="contains NaN or infinity in row 7, column 1; expected"):
        ok.NORMA().fit(sparse.csr_matrix(rows), LABELS)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["wind", "weather"])
    fitted = ok.NORMA().fit(frame.fillna(0.0), LABELS)
    for call in (lambda x: ok.NORMA().fit(x, LABELS), fitted.predict, ok.RunningScaler().fit):
        with pytest.raises(ValueError, match="Input X contains NaN in row 7, column 'weather'; expected"):
            call(frame)


class TestWhatStrangersMet:
    """Surprises of people who had never seen the library; each is one sentence now, or gone."""

    def test_a_kernel_of_the_users_is_never_called_without_points_and_its_nan_is_its_own(self):
        class Same(ok.Kernel):
            def pair(self, x, z):
                return 1.0

            def row(self, x, points):
                assert len(points) > 0
                return np.array([float(x == z) for z in points])

        assert ok.NORMA("hinge", Same()).fit(["a", "b", "a"], [1, -1, 1]).predict(["a"]).tolist() == [1]
        for kernel in (lambda x, z: np.nan if 3 in (x, z) else 1.0, lambda x, z: np.nan if x == z == 3 else 1.0):
            model = ok.NORMA("hinge", kernel)
            with pytest.raises(FloatingPointError, match="The kernel .* gave NaN") as info:
                model.partial_fit([1, 2, 3], [1, -1, 1])
            assert info.value.rows_learned == model.t_ == 2

    @each("algorithm", [ok.NORMA, ok.ILK])
    def test_a_derivative_is_one_number(self, algorithm):
        class Two(ok.Loss):
            task = "regression"

            def value(self, score, y):
                return (score - y) ** 2

            def derivative(self, score, y):
                return np.array([score - y, 0.0])

            def curvature(self, score, y):
                return 1.0

        with pytest.raises(ValueError, match=r"derivative\(0, 1\) of Two must be one number. Got array"):
            algorithm(Two()).partial_fit([[1.0]], [1.0])

    def test_without_a_budget_10000_terms_are_a_warning_once(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(10_400, 2))
        y = np.sign(rows[:, 0])
        model = ok.NORMA("logistic", "gaussian", step=0.01).partial_fit(rows[:9_990], y[:9_990])
        with pytest.warns(ok.LearningWarning, match="keeps all of its terms, 10000 by now: .* budget=1000"):
            for x, label in zip(rows[9_990:10_010], y[9_990:10_010], strict=True):
                model.learn_one(x, label)
        model.partial_fit(rows[10_010:], y[10_010:])

    @pytest.mark.filterwarnings("error")
    def test_a_warning_that_is_an_error_says_how_many_rows_were_learned(self):
        rows = np.random.default_rng(0).normal(size=(600, 2))
        model = ok.NORMA("squared", "linear", step=0.9)
        with pytest.raises(ok.LearningWarning) as info:
            for row in range(0, 600, 20):
                model.partial_fit(5 * rows[row:row + 20], rows[row:row + 20, 0])
        assert info.value.rows_learned == 20 and model.t_ == row + 20

    def test_learn_one_names_a_call_that_exists(self):
        with pytest.raises(ValueError, match=r"begin with partial_fit\(\[x\], \[y\], classes=") as info:
            ok.NORMA("hinge").learn_one([1.0], "yes")
        assert "learn_one has no classes=" in str(info.value)
        model = ok.NORMA("hinge").partial_fit([[1.0]], ["yes"], classes=["no", "yes"])
        assert model.learn_one([1.0], "yes").t_ == 2


    @pytest.mark.filterwarnings("ignore:the matrix subclass")
    def test_matrices_of_numpy_are_arrays_and_structs_of_polars_are_refused(self):
        rows = np.random.default_rng(0).normal(size=(9, 2))
        plain, matrix = (ok.NORMA("squared").fit(X, rows[:, 0]) for X in (rows, np.asmatrix(rows)))
        assert np.array_equal(plain.predict(rows), matrix.predict(np.asmatrix(rows)))
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"a": [{"x": 1}, {"x": 2}]})
        for encode, said in ((False, "must hold numbers for this kernel"), (True, "expected a number, a word or a date")):
            with pytest.raises(TypeError, match=f"{said}.*column 'a'|column 'a': {said}"):
                ok.NORMA("squared", encode=encode).fit(frame, [1.0, 2.0])
