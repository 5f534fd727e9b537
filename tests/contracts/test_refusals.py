"""What is refused, and what the message says: one table of (call, error, the argument, words that help)."""
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
GRAM = X @ X.T
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
KINDS = {
    "terms": lambda: (ok.NORMA("hinge", ok.Gaussian(0.8), budget=5, step=0.3), X, LABELS),
    "weights": lambda: (ok.NORMA("logistic", "linear", average=True), X, LABELS),
    "laplacian": lambda: (ok.NORMA("squared", "laplacian", offset=True), X, TARGETS),
    "novelty": lambda: (ok.NORMA("nunovelty", ok.Gaussian(2.0) + ok.Linear(), budget=ok.Smallest(4)), X, None),
    "float32": lambda: (ok.NORMA("huber", "gaussian", budget=ok.Window(6)), X.astype(np.float32), TARGETS),
    "perceptron": lambda: (ok.Perceptron("polynomial"), X, LABELS),
    "posterior": lambda: (ok.KRLS(kernel=ok.Gaussian(1.3)), X, TARGETS),
    "average": lambda: (ok.Smoother("squared"), X, TARGETS),
}


def fresh(kind, fitted):
    """A model of a kind, with good X and y for it."""
    model, points, y = KINDS[kind]()
    return (model.partial_fit(points, y) if fitted else model), points, y


def everywhere(kind, words, error, X=GOOD, y=GOOD, **keywords):
    """The rows, labels or weights are refused by whatever learns, before and after the first rows, and by what predicts."""
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


# ---- X, y and weights -------------------------------------------------------------------------------

BAD_X = [  # (two rows, error, words)
    (with_entry(NAN), ValueError, ["NaN", "finite"]),
    (with_entry(INF), ValueError, ["infinity", "finite"]),
    (with_entry(-INF), ValueError, ["infinity", "finite"]),
    (with_entry(NAN).astype(np.float32), ValueError, ["NaN"]),
    (np.asfortranarray(with_entry(NAN)), ValueError, ["NaN"]),
    (np.zeros((0, 2)), ValueError, ["0 sample", "minimum of 1"]),
    (np.zeros((2, 0)), ValueError, ["0 feature"]),
    ([], ValueError, []),
    (X[0], ValueError, ["2D", "1D", "reshape"]),
    (X[None], ValueError, ["2D", "3D"]),
    (5.0, ValueError, ["2D", "0D"]),
    (None, BOTH, []),
    ([["a", "b"], ["c", "d"]], TypeError, ["numbers", "kernel"]),
    ([["1", "2"], ["3", "4"]], TypeError, ["numbers"]),
    (np.array([["1", 2.0], [3.0, 4.0]], dtype=object), TypeError, ["numbers"]),
    (np.array([[b"a", b"b"]]), TypeError, ["numbers"]),
    (np.zeros((2, 2), dtype="M8[s]"), TypeError, ["numbers", "datetime64"]),
    (X[:2] + 1j, ValueError, ["real", "complex"]),
    ([[None, 1.0], [0.0, 1.0]], BOTH, []),
    ([[{}, 1.0], [0.0, 1.0]], TypeError, ["numbers", r"\{\}"]),
    ([[10**400, 0], [0, 0]], ValueError, ["large"]),
    ([[1.0, 2.0], [3.0]], ValueError, ["length"]),
    (Sparse(), TypeError, ["sparse", "toarray"]),
    (np.zeros(2, dtype="f8, f8"), BOTH, []),
    (["ab", "cd"], BOTH, ["kernel"]),
    ([{1}, {2}], BOTH, ["kernel"]),
    ([{"a": 1}, {"a": 2}], BOTH, ["kernel"]),
    ("abcd", BOTH, []),
    ({"a": [1.0, 2.0]}, BOTH, []),
    ({1.0, 2.0}, BOTH, []),
    (iter([[1.0, 2.0]]), BOTH, []),
]


@each("points, error, words", BAD_X, ids=lambda value: repr(value)[:60])
@each("kind", KINDS)
def test_points(kind, points, error, words):
    everywhere(kind, [r"\bX\b", *words], error, X=points)


@each("columns", [1, 3])
@each("kind", KINDS)
def test_another_number_of_features(kind, columns):
    model, _, y = fresh(kind, fitted=True)
    y = None if y is None else y[:2]
    for method in ("partial_fit", "progressive"):
        refused(ValueError, lambda: getattr(model, method)(np.zeros((2, columns)), y), model, r"\bX\b", rf"\b{columns}\b", r"\b2\b", "features")
    refused(ValueError, lambda: model.predict(np.zeros((2, columns))), model, r"\bX\b", rf"\b{columns}\b", r"\b2\b", "features")


BAD_ONE = [
    ([NAN, 0.0], ValueError, ["NaN", "finite"]),
    (np.array([0.0, -INF]), ValueError, ["infinity", "finite"]),
    (X[:1], ValueError, ["1-?[dD]|2D"]),
    (1.0, ValueError, ["1-?[dD]|2D"]),
    (None, BOTH, []),
    ([], ValueError, ["0"]),
    (["a", "b"], TypeError, ["numbers"]),
    ("ab", BOTH, []),
    ([1j, 0.0], ValueError, ["real", "complex"]),
    ([[1.0], 2.0], ValueError, []),
    ([10**400, 0], ValueError, ["large"]),
    (Sparse(), BOTH, []),
]


@each("x, error, words", BAD_ONE, ids=lambda value: repr(value)[:60])
@each("kind", KINDS)
def test_one_example(kind, x, error, words):
    for fitted in (False, True):
        model, _, y = fresh(kind, fitted)
        refused(error, lambda: model.learn_one(x, None if y is None else y[0]), model, r"\b[xX]\b", *words)
    refused(error, lambda: model.predict_one(x), model, r"\b[xX]\b", *words)
    for wide in ([1.0], np.zeros(3), np.zeros(3, dtype=np.float32)):
        words = [r"\b[xX]\b", rf"\b{len(wide)}\b", r"\b2\b"]
        refused(ValueError, lambda: model.learn_one(wide, None if y is None else y[0]), model, *words)
        refused(ValueError, lambda: model.predict_one(wide), model, *words)


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
    for kinds, error in ((("terms", "weights", "perceptron"), of_labels), (("laplacian", "float32", "posterior", "average"), of_targets)):
        for kind in kinds if error else ():
            everywhere(kind, [r"\by\b", *words], error, y=y)


@each("fitted", [False, True], ids=["unfitted", "fitted"])
@each("kind, bad", [
    *[("terms", bad) for bad in (None, NAN, [1], {}, "spam", 7)],
    *[("laplacian", bad) for bad in (None, NAN, INF, "a", [1.0], 1j)],
])
def test_y_of_one_example(kind, fitted, bad):
    model, points, _ = fresh(kind, fitted)
    refused(BOTH, lambda: model.learn_one(points[0], bad), model, r"\by\b")


BAD_WEIGHTS = [
    ([1.0, -0.5], ValueError, ["negative", "-0.5"]),
    (-1.0, ValueError, ["negative", "-1"]),
    ([1.0], ValueError, [r"\b2\b", r"\b1\b"]),
    ([1.0, 1.0, 1.0], ValueError, [r"\b2\b", r"\b3\b"]),
    ([1.0, NAN], ValueError, ["NaN", "finite"]),
    ([1.0, INF], ValueError, ["infinity", "finite"]),
    (NAN, ValueError, ["NaN"]),
    ([[1.0, 2.0], [1.0, 2.0]], ValueError, ["1d"]),
    (["a", "b"], TypeError, ["numbers"]),
    ("heavy", BOTH, []),
    ([1j, 1.0], TypeError, ["numbers"]),
    ([None, 1.0], TypeError, ["numbers"]),
    ([[1.0], [1.0, 2.0]], ValueError, []),
]


@each("weights, error, words", BAD_WEIGHTS, ids=lambda value: repr(value)[:60])
@each("kind", KINDS)
def test_sample_weights(kind, weights, error, words):
    everywhere(kind, ["sample_weight", *words], error, sample_weight=weights)


# ---- Labels that are known --------------------------------------------------------------------------


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
    *[(ok.NORMA(), y, None, [r"\by\b", "two", r"\b3\b", "multiclass_hinge", *map(repr, y)]) for y in ([0, 1, 2], ["a", "b", "c"])],
    (ok.NORMA(), [0.5, 1.5, 2.5], None, [r"\by\b", "continuous", "squared", "0.5", "1.5", "2.5"]),
    *[(ok.Perceptron(), y, None, [r"\by\b", "one class", "two", "classes", repr(y[0])]) for y in (["a", "a"], [3, 3], [0.5, 0.5], [2])],
    (ok.NORMA(), ["a", "z"], ["a", "b"], [r"\by\b", "'z'", "'a'", "'b'"]),
]
BAD_CLASSES = [
    (["a", "b", "c"], ["two", r"\b3\b", "'a'"]),
    (["a"], ["two", r"\b1\b", "'a'"]),
    (["a", "a"], ["two", "'a'"]),
    ([], ["two"]),
    ([["a", "b"]], ["1d"]),
    (5, []),
    ([NAN, 1.0], ["NaN"]),
    ([None, "a"], []),
]


@each("model, y, classes, words", [*CLASSES, *[(ok.NORMA(), ["a", "a"], classes, ["classes", *words]) for classes, words in BAD_CLASSES]])
@each("method", LEARNING)
def test_classes(method, model, y, classes, words):
    refused(BOTH, lambda: getattr(model, method)(X[: len(y)], y, classes=classes), model, *words)


@each("classes", [["a", "z"], *[classes for classes, _ in BAD_CLASSES]], ids=repr)
def test_classes_must_not_change(classes):
    model = ok.NORMA().partial_fit(X[:2], ["a", "b"])
    for method in ("partial_fit", "progressive"):
        refused(BOTH, lambda: getattr(model, method)(X[:2], ["a", "a"], classes=classes), model, r"\bclasses\b", "'a'.*'b'|two|1d")


# ---- Kernels on objects and in a matrix -------------------------------------------------------------


@each("points", ["abc", {"a": 1}, {"a"}, iter("abc"), 3, None, np.array("a")], ids=repr)
def test_what_is_no_list_of_examples(points):
    for model in (ok.NORMA("squared", overlap), ok.NORMA("squared", overlap).partial_fit(["ab", "bc"], [1.0, 2.0])):
        for method in LEARNING:
            refused(TypeError, lambda: getattr(model, method)(points, [1.0]), model, r"\bX\b", "list of examples")
    refused(TypeError, lambda: model.predict(points), model, r"\bX\b", "list of examples")
    refused(ValueError, lambda: model.partial_fit([], []), model, r"\bX\b", "0 sample")
    refused(ValueError, lambda: model.predict([]), model, r"\bX\b", "0 sample")
    refused(ValueError, lambda: ok.NORMA("squared", overlap).partial_fit(np.array([[NAN, 1.0]]), [1.0]), model, r"\bX\b.*NaN")


@each("values", [[1.0], "text", [NAN], [1.0, 2.0, 3.0, 4.0]])
def test_a_kernel_row_must_be_as_many_finite_numbers_as_there_are_terms(values):
    class Odd(ok.Kernel):
        def __init__(self):
            pass

        def pair(self, x, z):
            return 1.0

        def row(self, x, points):
            return np.ones(len(points)) if x != "odd" else values

    points = ["a"] if values == [NAN] else ["a", "b"]
    model = ok.NORMA("squared", Odd()).partial_fit(points, np.ones(len(points)))
    for call in (lambda: model.partial_fit(["odd"], [1.0]), lambda: model.predict(["odd"])):
        with pytest.raises((*BOTH, FloatingPointError)):
            call()
    assert (model.t_, model.n_terms_) == (len(points), len(points))
    assert np.isfinite(model.predict(["a"])).all()


@each("indices", [[[-1]], [[12]], [[0.5]], [[0, 1]], [[NAN]], [[1e300]], [[0], [1], [99]]], ids=repr)
@each("kernel", [ok.Precomputed(GRAM), ok.Normalized(ok.Precomputed(GRAM)) + ok.Linear()], ids=["alone", "in_a_sum"])
def test_indices_outside_the_gram_matrix(kernel, indices):
    for fitted in (False, True):
        model = ok.NORMA("squared", kernel)
        if fitted:
            model.partial_fit([[0], [3], [11]], [1.0, 2.0, 3.0])
        for method in LEARNING:
            refused(ValueError, lambda: getattr(model, method)(indices, [1.0] * len(indices)), model, r"\bX\b")
        refused(ValueError, lambda: model.learn_one(indices[-1], 1.0), model, r"\b[xX]\b")
    refused(ValueError, lambda: model.predict(indices), model, r"\bX\b")
    refused(ValueError, lambda: model.predict_one(indices[-1]), model, r"\b[xX]\b")


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


POSITIVE = ["positive", "Got"]
BAD_PARAMETERS = [  # (parameters of NORMA, words)
    *of("step", ["'step'", *POSITIVE], 0, -0.1, NAN, INF, "fast", None, True, [0.1], 1j),
    *of("step", ["'rate'", *POSITIVE], ok.Fixed(0), ok.Fixed("a"), ok.InverseSqrt(-1), ok.Decaying(NAN)),
    *of("step", ["'delay'", *POSITIVE], ok.Decaying(0.1, 0), ok.Decaying(0.1, INF), ok.Decaying(0.1, "a")),
    *of("regularization", ["'regularization'", "at least 0", "Got"], -1, NAN, INF, "a", None, True),
    *[({"step": step, "regularization": 1.0}, ["step", "regularization", "at most 1", "Got"])
      for step in (1.0001, 2, ok.InverseSqrt(1.5), ok.Decaying(2.0, 100))],
    *of("average", ["'average'", "True or False", "Got"], 1, "yes", None),
    *[({"average": True, "budget": budget}, ["average", "budget"])
      for budget in (5, ok.Recent(5), ok.Window(5), ok.Smallest(5), ok.Sublinear())],
    *of("budget", ["'budget'", "Got"], 0, -1, 2.5, "many", True, ok.Recent, [5]),
    *of("budget", ["'size'|'steps'|'start'", "integer of at least 1", "Got"], ok.Recent(0), ok.Recent(2.5), ok.Window(0),
        ok.Window(True), ok.Smallest(-3), ok.Smallest("a"), ok.Sublinear(0.5, 0)),
    *of("budget", ["'exponent'", r"\(0, 1\]", "Got"], *map(ok.Sublinear, (0, 1.5, NAN, "a"))),
    *of("offset", ["'offset'", "True, False or None", "Got"], 1, "yes"),
    *[({"loss": loss, "offset": True}, ["offset", "novelty"]) for loss in ("novelty", ok.NuNovelty())],
    *of("epochs", ["'epochs'", "integer of at least 1", "Got"], 0, -1, 1.5, True, "a", None),
    *of("loss", ["'loss'", "a loss", "Got"], "bogus", "", 5, ok.Hinge, []),
    *of("loss", ["'margin'", "Got"], ok.Hinge(-1), ok.Hinge(NAN), ok.Hinge("a"), ok.Novelty(-1), ok.NuHinge(0.5, INF)),
    *of("loss", ["'nu'", r"\(0, 1\)", "Got"], ok.NuHinge(0), ok.NuHinge(1), ok.NuNovelty(-0.1), ok.NuInsensitive("a"), ok.NuHuber(NAN)),
    *of("loss", ["'width'", "Got"], ok.Insensitive(-0.1), ok.SquaredInsensitive(INF), ok.Huber(0), ok.Huber(-1), ok.NuHuber(0.5, 0),
        ok.NuInsensitive(0.5, None)),
    *of("kernel", ["'kernel'", "a kernel", "Got"], "bogus", 5, ok.Gaussian, []),
    *of("kernel", ["'width'", *POSITIVE], *map(ok.Gaussian, (0, -1, NAN, "wide", None)), ok.Normalized(ok.Gaussian(-1)),
        ok.Linear() + ok.Gaussian(-1), 2.0 * ok.Gaussian(-1)),
    *of("kernel", ["'rate'", *POSITIVE], *map(ok.Laplacian, (0, -1, INF))),
    *of("kernel", ["'degree'", "integer", "Got"], *map(ok.Polynomial, (0, 1.5, 1001, "a"))),
    *of("kernel", ["'scale'", *POSITIVE], ok.Polynomial(2, scale=0)),
    *of("kernel", ["'bias'", "at least 0", "Got"], ok.Polynomial(2, bias=-1)),
    *of("kernel", ["'value'", "at least 0", "Got"], ok.Constant(-1), ok.Noise(NAN), -1 * ok.Gaussian(), ok.Gaussian() + -0.5),
    *of("kernel", ["'kernel'", "Got"], ok.Normalized("bogus")),
    *of("kernel", ["'gram'"], *map(ok.Precomputed, (None, np.zeros((2, 3)), np.zeros(3), np.zeros((0, 0)), np.array([[1.0, 2.0], [0.0, 1.0]]),
                                                   np.array([[NAN]]), np.array([["a"]]), np.array([[1j]])))),
    *of("kernel", ["'gram'|'kernel'", "Got"], "precomputed"),
    *of("kernel", ["64"], sum([ok.Gaussian(width) for width in range(1, 80)], ok.Gaussian())),
    *of("kernel", ["pair"], NoPair()),
    *of("loss", ["derivative"], NoDerivative()),
]


@each("params, words", BAD_PARAMETERS, ids=lambda value: repr(value)[:60])
def test_parameters_are_stored_without_a_word_and_refused_at_the_first_fit(params, words):
    model, fitted = ok.NORMA(**params), ok.NORMA(step=0.2).partial_fit(X, LABELS)
    assert all(model.get_params(deep=False)[name] is value for name, value in params.items()) and isinstance(repr(model), str)
    scores = fitted.decision_function(X)
    assert fitted.set_params(**params) is fitted
    for victim in (model, fitted):
        said = words if victim is model else []
        for method in LEARNING:
            refused(BOTH, lambda: getattr(victim, method)(X, LABELS), victim, *(words if method == "fit" else said))
        refused(BOTH, lambda: victim.learn_one(X[0], 1), victim, *said)
    assert (fitted.decision_function(X) == scores).all()
    assert (fitted.t_, fitted.n_terms_) == (12, 12)


@each("number", [10**400, True, 1j, "1", None], ids=str)
def test_numbers_that_are_none(number):
    for make in (ok.Gaussian, ok.Laplacian):
        with pytest.raises(ValueError, match="parameter of"):
            make(number)(X)


# ---- Other calls ------------------------------------------------------------------------------------

LEARNED = {
    "binary": ok.NORMA(kernel=ok.Gaussian()).partial_fit(X, LABELS),
    "logistic": ok.NORMA("logistic"),
    "float32": ok.NORMA("squared", "laplacian").partial_fit(X.astype(np.float32), TARGETS),
    "posterior": ok.KRLS("squared", ok.Gaussian(1.3), budget=9).partial_fit(X, TARGETS),
}
UNFITTED = ["NORMA", "not fitted", "fit"]
LARGE, TOO_LARGE = np.array([[1e300, 0.0]]), [r"\b[xX]\b", "large", "float32"]
CALLS = [  # (model, call, words)
    *[("logistic", call, UNFITTED) for call in (
        lambda m: m.predict(X), lambda m: m.predict_one(X[0]), lambda m: m.decision_function(X), lambda m: m.score(X, LABELS),
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
    *[("binary", lambda m, bad=bad: m.kernel(bad), [r"\bX\b"]) for bad in ([[NAN]], [["a"]], [1.0], [[1.0], [1.0, 2.0]])],
    *[("binary", lambda m, bad=bad: m.kernel.diagonal(bad), [r"\bX\b"]) for bad in ([[NAN]], [["a"]], [1.0])],
    *[("binary", lambda m, bad=bad: m.kernel([[1.0]], bad), [r"\bZ\b"]) for bad in ([[NAN]], [["a"]], [1.0])],
    ("binary", lambda m: m.kernel([[1.0]], [[1.0, 2.0]]), [r"\bZ\b", r"\b1\b", r"\b2\b"]),
    *[("binary", lambda m, kernel=kernel: kernel(X), ["parameter of"]) for kernel in (
        ok.Gaussian(-1.0), ok.Gaussian("wide"), ok.Polynomial(1.5), ok.Normalized(ok.Gaussian(0)), ok.Gaussian() + ok.Constant(-1))],
    *[("binary", lambda m, gram=gram: ok.Precomputed(gram)([[1]], [[0]]), ["'gram'", "square"]) for gram in (None, np.zeros((3, 2)), np.zeros(3))],
]


@each("name, call, words", CALLS, ids=lambda value: value if isinstance(value, str) else "")
def test_calls(name, call, words):
    refused(BOTH, lambda: call(LEARNED[name]), LEARNED[name], *words)


# ---- initial= ---------------------------------------------------------------------------------------


def start(kernel=None, loss="squared", X=X, y=TARGETS, **keywords):
    return ok.NORMA(loss, kernel or ok.Gaussian(2.0), **keywords).partial_fit(X, y)


@each("initial, words", [
    (5, ["fitted model", "5"]),
    ("norma", ["fitted model", "norma"]),
    (ok.NORMA("squared", ok.Gaussian(2.0)), ["fitted model"]),
    (start(ok.Gaussian(3.0)), ["kernel", "2.0", "3.0"]),
    (start("linear"), ["kernel", "Gaussian", "Linear"]),
    (start(overlap, X=["a", "b"], y=[1.0, 2.0]), ["kernel", "Gaussian"]),
    (start(X=X[:, :1]), ["features", r"\b2\b", r"\b1\b"]),
    (start(loss="hinge", y=LABELS), ["binary", "regression"]),
    (start(loss="novelty", y=None), ["novelty", "regression"]),
    (start(offset=True), ["offset"]),
])
@each("method", LEARNING)
def test_starts_that_do_not_fit(method, initial, words):
    model = ok.NORMA("squared", ok.Gaussian(2.0))
    refused(ValueError, lambda: getattr(model, method)(X, TARGETS, initial=initial), model, "initial", *words)


def test_other_starts():
    good, fitted, model = start(), start(), ok.NORMA("squared", ok.Gaussian(2.0))
    for method in ("partial_fit", "progressive"):
        refused(ValueError, lambda: getattr(fitted, method)(X, TARGETS, initial=good), fitted, "initial", "fit")
    refused(ValueError, lambda: model.partial_fit(X, [NAN] * 12, initial=good), good)
    letters, other = ok.NORMA().partial_fit(X[:2], ["a", "b"]), ok.NORMA()
    refused(ValueError, lambda: other.partial_fit(X[:2], ["a", "c"], classes=["a", "c"], initial=letters), other, "classes")
    refused(ValueError, lambda: other.partial_fit(X[:2], ["a", "c"], initial=letters), other, r"\by\b", "'c'")
