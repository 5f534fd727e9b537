"""Bad input is refused in a sentence, and a refused call has learned nothing.

Every refusal is a ValueError or a TypeError whose message names the argument, says what was expected
and what came; the model pickles to the same bytes before and after.
"""
import pickle
import re

import numpy as np
import pytest
from cases import each
from small_models import overlap, shown

import onlinekernels as ok

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 2))
LABELS = np.where(X[:, 0] > 0, 1, -1)
TARGETS = X @ [1.0, -2.0]
GRAM = X @ X.T
LEARNING = ["fit", "partial_fit", "progressive"]


def refused(error, call, model, *words):
    """The call raises such an error with all these words in it, and leaves the model's bytes alone."""
    before = pickle.dumps(model)
    with pytest.raises(error) as info:
        call()
    message = str(info.value)
    for word in words:
        assert re.search(word, message), f"{word!r} is not in the message {message!r}"
    assert pickle.dumps(model) == before, "a refused call changed the model"


def fresh(kind, fitted):
    """A model of a kind, with good X and y for it."""
    model, points, y = {
        "terms": (ok.NORMA("hinge", ok.Gaussian(0.8), budget=5, step=0.3), X, LABELS),
        "weights": (ok.NORMA("logistic", "linear", average=True), X, LABELS),
        "laplacian": (ok.NORMA("squared", "laplacian", offset=True), X, TARGETS),
        "novelty": (ok.NORMA("nunovelty", ok.Gaussian(2.0) + ok.Linear(), budget=ok.Smallest(4)), X, None),
        "float32": (ok.NORMA("huber", "gaussian", budget=ok.Window(6)), X.astype(np.float32), TARGETS),
        "perceptron": (ok.Perceptron("polynomial"), X, LABELS),
    }[kind]
    if fitted:
        model.partial_fit(points, y)
    return model, points, y


KINDS = ["terms", "weights", "laplacian", "novelty", "float32", "perceptron"]


# ---- X ----------------------------------------------------------------------------------------------


class Sparse:
    """What looks like a scipy.sparse matrix."""

    shape = (2, 2)

    def toarray(self):
        return np.zeros((2, 2))


def with_entry(value):
    points = X[:2].copy()
    points[1, 0] = value
    return points


BAD_X = {
    # name: (X, error, words)
    "nan": (with_entry(NAN), ValueError, [r"\bX\b", "NaN", "finite"]),

    "inf": (with_entry(INF), ValueError, [r"\bX\b", "infinity", "finite"]),
    "minus_inf": (with_entry(-INF), ValueError, [r"\bX\b", "infinity", "finite"]),
    "nan_float32": (with_entry(NAN).astype(np.float32), ValueError, [r"\bX\b", "NaN"]),
    "nan_fortran": (np.asfortranarray(with_entry(NAN)), ValueError, [r"\bX\b", "NaN"]),

    "no_rows": (np.zeros((0, 2)), ValueError, [r"\bX\b", "0 sample", "minimum of 1"]),
    "no_columns": (np.zeros((2, 0)), ValueError, [r"\bX\b", "0 feature"]),
    "empty_list": ([], ValueError, [r"\bX\b"]),
    "1d": (X[0], ValueError, [r"\bX\b", "2D", "1D", "reshape"]),
    "3d": (X[None], ValueError, [r"\bX\b", "2D", "3D"]),
    "number": (5.0, ValueError, [r"\bX\b", "2D", "0D"]),
    "none": (None, (ValueError, TypeError), [r"\bX\b"]),
    "strings": ([["a", "b"], ["c", "d"]], TypeError, [r"\bX\b", "numbers", "kernel"]),
    "digits": ([["1", "2"], ["3", "4"]], TypeError, [r"\bX\b", "numbers"]),

    "digits_in_objects": (np.array([["1", 2.0], [3.0, 4.0]], dtype=object), TypeError, [r"\bX\b", "numbers"]),
    "bytes": (np.array([[b"a", b"b"]]), TypeError, [r"\bX\b", "numbers"]),
    "dates": (np.zeros((2, 2), dtype="M8[s]"), TypeError, [r"\bX\b", "numbers", "datetime64"]),
    "complex": (X[:2] + 1j, ValueError, [r"\bX\b", "real", "complex"]),
    "none_inside": ([[None, 1.0], [0.0, 1.0]], (ValueError, TypeError), [r"\bX\b"]),
    "dict_inside": ([[{}, 1.0], [0.0, 1.0]], TypeError, [r"\bX\b", "numbers", r"\{\}"]),

    "huge_integer": ([[10**400, 0], [0, 0]], ValueError, [r"\bX\b", "large"]),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, [r"\bX\b", "length"]),
    "sparse": (Sparse(), TypeError, [r"\bX\b", "sparse", "toarray"]),
    "structured": (np.zeros(2, dtype="f8, f8"), (ValueError, TypeError), [r"\bX\b"]),
    "list_of_strings": (["ab", "cd"], (ValueError, TypeError), [r"\bX\b", "kernel"]),
    "list_of_sets": ([{1}, {2}], (ValueError, TypeError), [r"\bX\b", "kernel"]),
    "list_of_dicts": ([{"a": 1}, {"a": 2}], (ValueError, TypeError), [r"\bX\b", "kernel"]),
    "a_string": ("abcd", (ValueError, TypeError), [r"\bX\b"]),
    "a_dict": ({"a": [1.0, 2.0]}, (ValueError, TypeError), [r"\bX\b"]),
    "a_set": ({1.0, 2.0}, (ValueError, TypeError), [r"\bX\b"]),
    "an_iterator": (iter([[1.0, 2.0]]), (ValueError, TypeError), [r"\bX\b"]),
}


@each("bad", BAD_X)
@each("kind", KINDS)
def test_learning_refuses_bad_points(kind, bad):
    points, error, words = BAD_X[bad]
    for fitted in (False, True):
        model, _, y = fresh(kind, fitted)
        for method in LEARNING:
            refused(error, lambda: getattr(model, method)(points, None if y is None else y[:2]), model, *words)


@each("bad", BAD_X)
@each("kind", KINDS)
def test_predicting_refuses_bad_points(kind, bad):
    model, *_ = fresh(kind, fitted=True)
    points, error, words = BAD_X[bad]
    for method in ("predict", "decision_function", "score_samples", "predict_proba"):
        if hasattr(model, method):
            refused(error, lambda: getattr(model, method)(points), model, *words)


@each("columns", [1, 3])
@each("kind", KINDS)
def test_another_number_of_features_is_refused(kind, columns):
    model, _, y = fresh(kind, fitted=True)
    points = np.zeros((2, columns))
    y = None if y is None else y[:2]
    words = [r"\bX\b", rf"\b{columns}\b", r"\b2\b", "features"]
    for method in ("partial_fit", "progressive"):
        refused(ValueError, lambda: getattr(model, method)(points, y), model, *words)
    refused(ValueError, lambda: model.predict(points), model, *words)


BAD_ONE = {
    "nan": ([NAN, 0.0], ValueError, ["NaN", "finite"]),
    "inf": (np.array([0.0, -INF]), ValueError, ["infinity", "finite"]),
    "2d": (X[:1], ValueError, ["1D|2D"]),
    "number": (1.0, ValueError, ["1D|2D"]),
    "none": (None, (ValueError, TypeError), []),
    "empty": ([], ValueError, ["0"]),
    "strings": (["a", "b"], TypeError, ["numbers"]),
    "a_string": ("ab", (ValueError, TypeError), []),
    "complex": ([1j, 0.0], ValueError, ["real", "complex"]),
    "ragged": ([[1.0], 2.0], ValueError, []),
    "huge_integer": ([10**400, 0], ValueError, ["large"]),
    "sparse": (Sparse(), (ValueError, TypeError), []),
}


@each("bad", BAD_ONE)
@each("kind", KINDS)
def test_learn_one_and_predict_one_refuse_bad_examples(kind, bad):
    x, error, words = BAD_ONE[bad]
    words = [r"\b[xX]\b", *words]
    unfitted, _, y = fresh(kind, fitted=False)
    y = None if y is None else y[0]
    refused(error, lambda: unfitted.learn_one(x, y), unfitted, *words)
    model, *_ = fresh(kind, fitted=True)
    refused(error, lambda: model.learn_one(x, y), model, *words)
    refused(error, lambda: model.predict_one(x), model, *words)


@each("kind", KINDS)
def test_one_example_of_another_width_is_refused(kind):
    model, _, y = fresh(kind, fitted=True)
    for x in ([1.0], np.zeros(3), np.zeros(3, dtype=np.float32)):
        words = [r"\b[xX]\b", rf"\b{len(x)}\b", r"\b2\b"]
        refused(ValueError, lambda: model.learn_one(x, None if y is None else y[0]), model, *words)
        refused(ValueError, lambda: model.predict_one(x), model, *words)


@each("kernel", ["gaussian", "laplacian", "polynomial"])
def test_values_too_large_for_a_float32_model_are_refused(kernel):
    model = ok.NORMA("squared", kernel).partial_fit(X.astype(np.float32), TARGETS)
    large = np.array([[1e300, 0.0]])
    words = ["large", "float32"]
    refused(ValueError, lambda: model.partial_fit(large, [1.0]), model, r"\bX\b", *words)
    refused(ValueError, lambda: model.progressive(large, [1.0]), model, r"\bX\b", *words)
    refused(ValueError, lambda: model.predict(large), model, r"\bX\b", *words)
    refused(ValueError, lambda: model.learn_one(large[0], 1.0), model, r"\b[xX]\b", *words)
    refused(ValueError, lambda: model.predict_one(large[0]), model, r"\b[xX]\b", *words)


class TestObjects:
    """A kernel on objects takes a list of them, whatever they are."""

    NOT_LISTS = {"a_string": "abc", "a_dict": {"a": 1}, "a_set": {"a"}, "an_iterator": iter("abc"), "a_number": 3,
                 "none": None, "0d": np.array("a")}

    @each("bad", NOT_LISTS)
    def test_what_is_not_a_list_of_examples_is_refused(self, bad):
        points, unfitted = self.NOT_LISTS[bad], ok.NORMA("squared", overlap)
        model = ok.NORMA("squared", overlap).partial_fit(["ab", "bc"], [1.0, 2.0])
        words = [r"\bX\b", "list of examples"]
        for method in LEARNING:
            refused(TypeError, lambda: getattr(unfitted, method)(points, [1.0]), unfitted, *words)
            refused(TypeError, lambda: getattr(model, method)(points, [1.0]), model, *words)
        refused(TypeError, lambda: model.predict(points), model, *words)

    def test_no_examples_are_refused(self):
        model = ok.NORMA("squared", overlap).partial_fit(["ab"], [1.0])
        refused(ValueError, lambda: model.partial_fit([], []), model, r"\bX\b", "0 sample")
        refused(ValueError, lambda: model.predict([]), model, r"\bX\b", "0 sample")

    def test_rows_of_an_array_must_be_finite(self):
        model = ok.NORMA("squared", lambda x, z: float(x @ z))
        with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
            model.partial_fit(np.array([[NAN, 1.0]]), [1.0])

    @each("values", [[1.0], "text", [NAN], [1.0, 2.0, 3.0, 4.0]])
    def test_a_kernel_row_must_be_as_many_finite_numbers_as_there_are_terms(self, values):
        class Odd(ok.Kernel):
            def __init__(self):
                pass

            def pair(self, x, z):
                return 1.0

            def row(self, x, points):
                return np.ones(len(points)) if x != "odd" else values

        model = ok.NORMA("squared", Odd()).partial_fit(["a", "b"], [1.0, 2.0])
        if values == [NAN]:
            model = ok.NORMA("squared", Odd()).partial_fit(["a"], [1.0])
        n_terms = model.n_terms_
        for call in (lambda: model.partial_fit(["odd"], [1.0]), lambda: model.predict(["odd"])):
            with pytest.raises((ValueError, TypeError, FloatingPointError)):
                call()
        assert (model.t_, model.n_terms_) == (n_terms, n_terms)
        assert np.isfinite(model.predict(["a"])).all()


class TestPrecomputed:
    BAD = {
        "negative": [[-1]],
        "too_large": [[12]],
        "fraction": [[0.5]],
        "two_columns": [[0, 1]],
        "nan": [[NAN]],
        "huge": [[1e300]],
        "inside_a_chunk": [[0], [1], [99]],
    }

    def model(self, kernel, fitted):
        model = ok.NORMA("squared", kernel)
        return model.partial_fit([[0], [3], [11]], [1.0, 2.0, 3.0]) if fitted else model

    @each("bad", BAD)
    @each("fitted", [False, True], ids=["unfitted", "fitted"])
    @each("kernel", [ok.Precomputed(GRAM), ok.Normalized(ok.Precomputed(GRAM)) + ok.Linear()],
          ids=["alone", "in_a_sum"])
    def test_indices_outside_the_gram_matrix_are_refused(self, kernel, fitted, bad):
        model, indices = self.model(kernel, fitted), self.BAD[bad]
        for method in LEARNING:
            refused(ValueError, lambda: getattr(model, method)(indices, [1.0] * len(indices)), model, r"\bX\b")
        refused(ValueError, lambda: model.learn_one(indices[-1], 1.0), model, r"\b[xX]\b")
        if fitted:
            refused(ValueError, lambda: model.predict(indices), model, r"\bX\b")
            refused(ValueError, lambda: model.predict_one(indices[-1]), model, r"\b[xX]\b")

    def test_float32_indices_are_exact(self):
        model = self.model(ok.Precomputed(GRAM), fitted=False)
        model.partial_fit(np.array([[0], [3], [11]], dtype=np.float32), [1.0, 2.0, 3.0])
        assert (model.predict(np.arange(12)[:, None]) == self.model(ok.Precomputed(GRAM), True).predict(
            np.arange(12.0)[:, None])).all()


    # matrix is read out of its bounds (a large matrix crashes the interpreter).
    def test_a_product_with_a_gaussian_reads_the_right_entries(self):
        kernel = ok.Gaussian(0.1) * ok.Precomputed(np.full((12, 12), 3.0))
        assert (kernel([[11], [0], [5]]) == 3.0 * np.eye(3)).all()
        model = ok.NORMA("squared", kernel, step=1.0, regularization=0.0)
        assert model.progressive([[11], [0], [11]], [1.0, 1.0, 1.0]).tolist() == [0.0, 0.0, 3.0]

    @each("gram", [None, np.zeros((3, 2)), np.zeros((3, 1)), np.zeros(3)])
    def test_calling_it_needs_a_square_matrix(self, gram):
        with pytest.raises(ValueError, match="'gram'.*square"):
            ok.Precomputed(gram)([[1]], [[0]])
        with pytest.raises(ValueError, match="'gram'.*square"):
            ok.Precomputed(gram).diagonal([[1]])


@each("kernel", [ok.Gaussian(-1.0), ok.Gaussian("wide"), ok.Laplacian(0), ok.Polynomial(1.5),
                 ok.Normalized(ok.Gaussian(0)), ok.Gaussian() + ok.Constant(-1)], ids=repr)
def test_calling_a_kernel_with_bad_parameters_is_refused(kernel):
    with pytest.raises(ValueError, match="parameter of"):
        kernel(X)
    with pytest.raises(ValueError, match="parameter of"):
        kernel.diagonal(X)


def test_calling_a_kernel_with_bad_points_is_refused():
    for bad, error in (([[NAN]], ValueError), ([["a"]], TypeError), ([1.0], ValueError), ([[1.0], [1.0, 2.0]], ValueError)):
        with pytest.raises(error, match=r"\bX\b"):
            ok.Gaussian()(bad)
        with pytest.raises(error, match=r"\bX\b"):
            ok.Gaussian().diagonal(bad)
        with pytest.raises(error, match=r"\bZ\b"):
            ok.Gaussian()([[1.0]], bad)
    with pytest.raises(ValueError, match=r"(?=.*\bZ\b)(?=.*\b1\b)(?=.*\b2\b)"):
        ok.Gaussian()([[1.0]], [[1.0, 2.0]])


# ---- y ----------------------------------------------------------------------------------------------

BAD_LABELS = {
    # name: (y for two rows, error, words), refused by a classifier that knows -1 and 1 and by an unfitted one
    "none": (None, ValueError, [r"\by\b", "None"]),
    "short": ([1], ValueError, [r"\by\b", r"\b2\b", r"\b1\b"]),
    "long": ([1, -1, 1], ValueError, [r"\by\b", r"\b2\b", r"\b3\b"]),
    "empty": ([], ValueError, [r"\by\b"]),
    "2d": ([[1, 1], [-1, 1]], ValueError, [r"\by\b", "1d", r"\(2, 2\)"]),
    "number": (1, ValueError, [r"\by\b", "1d"]),
    "a_string": ("ab", ValueError, [r"\by\b"]),
    "ragged": ([[1], [1, 2]], ValueError, [r"\by\b"]),
    "nan": ([1.0, NAN], ValueError, [r"\by\b", "(?i)nan"]),
    "inf": ([1.0, INF], ValueError, [r"\by\b", "inf"]),
    "none_inside": ([1, None], ValueError, [r"\by\b"]),
    "a_set": ({1, -1}, (ValueError, TypeError), [r"\by\b"]),
}


@each("bad", BAD_LABELS)
@each("kind", ["terms", "weights", "perceptron"])
def test_classifiers_refuse_bad_labels(kind, bad):
    y, error, words = BAD_LABELS[bad]
    for fitted in (False, True):
        model, points, _ = fresh(kind, fitted)
        for method in LEARNING:
            refused(error, lambda: getattr(model, method)(points[:2], y), model, *words)


BAD_TARGETS = {
    **{name: BAD_LABELS[name] for name in ("none", "short", "long", "empty", "number", "ragged", "a_set")},
    "3d": (np.zeros((2, 2, 2)), ValueError, [r"\by\b", "1d", r"\(2, 2, 2\)"]),
    "nan": ([1.0, NAN], ValueError, [r"\by\b", "NaN", "finite"]),
    "inf": ([-INF, 1.0], ValueError, [r"\by\b", "infinity", "finite"]),
    "strings": (["a", "b"], TypeError, [r"\by\b", "numbers"]),
    "complex": ([1j, 0.0], TypeError, [r"\by\b", "numbers", "complex"]),
    "none_inside": ([None, 1.0], TypeError, [r"\by\b", "numbers"]),
    "dates": (np.zeros(2, dtype="M8[s]"), TypeError, [r"\by\b", "numbers"]),
    "huge_integer": ([10**400, 1], (ValueError, TypeError), [r"\by\b"]),
}


@each("bad", BAD_TARGETS)
@each("kind", ["laplacian", "float32"])
def test_regressors_refuse_bad_targets(kind, bad):
    y, error, words = BAD_TARGETS[bad]
    for fitted in (False, True):
        model, points, _ = fresh(kind, fitted)
        for method in LEARNING:
            refused(error, lambda: getattr(model, method)(points[:2], y), model, *words)


@each("fitted", [False, True], ids=["unfitted", "fitted"])
@each("kind, bad", [
    ("terms", None), ("terms", NAN), ("terms", [1]), ("terms", {}), ("terms", "spam"), ("terms", 7),
    ("laplacian", None), ("laplacian", NAN), ("laplacian", INF), ("laplacian", "a"), ("laplacian", [1.0]),
    ("laplacian", 1j),
])
def test_learn_one_refuses_a_bad_y(kind, fitted, bad):
    model, points, _ = fresh(kind, fitted)
    refused((ValueError, TypeError), lambda: model.learn_one(points[0], bad), model, r"\by\b")


@each("known", [[-1, 1], [0, 1], [3, 8], [False, True], ["ham", "spam"], [0.25, 0.5]], ids=str)
@each("unknown", [7, "other", 0.75, ""], ids=repr)
def test_a_label_that_is_not_known_is_refused_and_named(known, unknown):
    model = ok.NORMA().partial_fit(X[:2], known)
    words = [r"\by\b", "unknown label", re.escape(repr(unknown)), *(re.escape(repr(label)) for label in known)]
    for n in (1, 2):
        for method in ("partial_fit", "progressive"):
            call = lambda: getattr(model, method)(X[:n], np.array([unknown] * n))
            refused(ValueError, call, model, *words)
    refused(ValueError, lambda: model.partial_fit(X[:3], np.array([known[0], unknown, known[1]])
                                                  if type(unknown) is type(known[0]) else [unknown] * 3), model, *words[:2])
    refused(ValueError, lambda: model.learn_one(X[0], unknown), model, *words)


@each("y", [[0, 1, 2], ["a", "b", "c"], [0.5, 1.5, 2.5]], ids=str)
@each("method", LEARNING)
def test_three_classes_are_refused(method, y):
    model = ok.NORMA()
    kind = ["continuous", "squared"] if y[0] == 0.5 else ["two", r"\b3\b", "multiclass_hinge"]
    words = [r"\by\b", *kind, *(re.escape(repr(label)) for label in y)]
    refused(ValueError, lambda: getattr(model, method)(X[:3], y), model, *words)


@each("y", [["a", "a"], [3, 3], [0.5, 0.5], [2]], ids=str)
@each("method", LEARNING)
def test_one_class_where_two_are_needed_is_refused(method, y):
    model = ok.Perceptron()
    words = [r"\by\b", "one class", "two", "classes", re.escape(repr(y[0]))]
    refused(ValueError, lambda: getattr(model, method)(X[:len(y)], y), model, *words)


class TestClasses:
    BAD = {
        "three": (["a", "b", "c"], ["two", r"\b3\b", "'a'"]),
        "one": (["a"], ["two", r"\b1\b", "'a'"]),
        "equal": (["a", "a"], ["two", "'a'"]),
        "none": ([], ["two"]),
        "2d": ([["a", "b"]], ["1d"]),
        "number": (5, []),
        "nan": ([NAN, 1.0], ["NaN"]),
        "unsortable": ([None, "a"], []),
    }


    @each("bad", BAD)
    @each("method", LEARNING)
    def test_classes_must_be_two_labels(self, method, bad):
        model, (classes, words) = ok.NORMA(), self.BAD[bad]
        call = lambda: getattr(model, method)(X[:2], ["a", "a"], classes=classes)
        refused((ValueError, TypeError), call, model, r"\bclasses\b", *words)

    @each("bad", [*BAD, "another"])
    def test_classes_must_not_change(self, bad):
        model = ok.NORMA().partial_fit(X[:2], ["a", "b"])
        classes = ["a", "z"] if bad == "another" else self.BAD[bad][0]
        for method in ("partial_fit", "progressive"):
            call = lambda: getattr(model, method)(X[:2], ["a", "a"], classes=classes)
            refused((ValueError, TypeError), call, model, r"\bclasses\b", "'a'.*'b'|two|1d")

    def test_y_must_hold_the_classes(self):
        model = ok.NORMA()
        call = lambda: model.partial_fit(X[:2], ["a", "z"], classes=["a", "b"])
        refused(ValueError, call, model, r"\by\b", "'z'", "'a'", "'b'")


# ---- Weights ----------------------------------------------------------------------------------------

BAD_WEIGHTS = {
    "negative": ([1.0, -0.5], ValueError, ["negative", "-0.5"]),
    "negative_number": (-1.0, ValueError, ["negative", "-1"]),
    "short": ([1.0], ValueError, [r"\b2\b", r"\b1\b"]),
    "long": ([1.0, 1.0, 1.0], ValueError, [r"\b2\b", r"\b3\b"]),
    "nan": ([1.0, NAN], ValueError, ["NaN", "finite"]),
    "inf": ([1.0, INF], ValueError, ["infinity", "finite"]),
    "nan_number": (NAN, ValueError, ["NaN"]),
    "2d": ([[1.0, 2.0], [1.0, 2.0]], ValueError, ["1d"]),
    "strings": (["a", "b"], TypeError, ["numbers"]),
    "a_string": ("heavy", (ValueError, TypeError), []),
    "complex": ([1j, 1.0], TypeError, ["numbers"]),
    "none_inside": ([None, 1.0], TypeError, ["numbers"]),
    "ragged": ([[1.0], [1.0, 2.0]], ValueError, []),
}


@each("bad", BAD_WEIGHTS)
@each("kind", KINDS)
def test_bad_sample_weights_are_refused(kind, bad):
    weights, error, words = BAD_WEIGHTS[bad]
    for fitted in (False, True):
        model, points, y = fresh(kind, fitted)
        for method in ("partial_fit", "progressive"):
            call = lambda: getattr(model, method)(points[:2], None if y is None else y[:2], sample_weight=weights)
            refused(error, call, model, "sample_weight", *words)


# ---- Parameters -------------------------------------------------------------------------------------


class NoDerivative(ok.Loss):
    task = "binary"

    def __init__(self):
        pass


class NoPair(ok.Kernel):
    def __init__(self):
        pass


BAD_PARAMETERS = [
    # (parameters, words)
    *[({"step": value}, ["'step'", "positive", "Got"]) for value in (0, -0.1, NAN, INF, "fast", None, True, [0.1], 1j)],
    *[({"step": step}, [r"'rate'", "positive", "Got"]) for step in (ok.Fixed(0), ok.Fixed("a"), ok.InverseSqrt(-1),
                                                                   ok.Decaying(NAN))],
    *[({"step": step}, [r"'delay'", "positive", "Got"]) for step in (ok.Decaying(0.1, 0), ok.Decaying(0.1, INF),
                                                                    ok.Decaying(0.1, "a"))],
    *[({"regularization": value}, ["'regularization'", "at least 0", "Got"]) for value in (-1, NAN, INF, "a", None, True)],
    *[({"step": step, "regularization": 1.0}, ["step", "regularization", "at most 1", "Got"])
      for step in (1.0001, 2, ok.InverseSqrt(1.5), ok.Decaying(2.0, 100))],
    *[({"average": value}, ["'average'", "True or False", "Got"]) for value in (1, "yes", None)],
    *[({"average": True, "budget": budget}, ["average", "budget"])
      for budget in (5, ok.Recent(5), ok.Window(5), ok.Smallest(5), ok.Sublinear())],
    *[({"budget": value}, ["'budget'", "Got"]) for value in (0, -1, 2.5, "many", True, ok.Recent, [5])],
    *[({"budget": budget}, ["'size'|'steps'|'start'", "integer of at least 1", "Got"])
      for budget in (ok.Recent(0), ok.Recent(2.5), ok.Window(0), ok.Window(True), ok.Smallest(-3), ok.Smallest("a"),
                     ok.Sublinear(0.5, 0))],
    *[({"budget": ok.Sublinear(exponent)}, ["'exponent'", r"\(0, 1\]", "Got"]) for exponent in (0, 1.5, NAN, "a")],
    *[({"offset": value}, ["'offset'", "True, False or None", "Got"]) for value in (1, "yes")],
    *[({"loss": loss, "offset": True}, ["offset", "novelty"]) for loss in ("novelty", ok.NuNovelty())],
    *[({"epochs": value}, ["'epochs'", "integer of at least 1", "Got"]) for value in (0, -1, 1.5, True, "a", None)],
    *[({"loss": value}, ["'loss'", "a loss", "Got"]) for value in ("bogus", "", 5, ok.Hinge, [])],
    *[({"loss": loss}, ["'margin'", "Got"]) for loss in (ok.Hinge(-1), ok.Hinge(NAN), ok.Hinge("a"), ok.Novelty(-1),
                                                         ok.NuHinge(0.5, INF))],
    *[({"loss": loss}, ["'nu'", r"\(0, 1\)", "Got"]) for loss in (ok.NuHinge(0), ok.NuHinge(1), ok.NuNovelty(-0.1),
                                                                 ok.NuInsensitive("a"), ok.NuHuber(NAN))],
    *[({"loss": loss}, ["'width'", "Got"]) for loss in (ok.Insensitive(-0.1), ok.SquaredInsensitive(INF), ok.Huber(0),
                                                        ok.Huber(-1), ok.NuHuber(0.5, 0), ok.NuInsensitive(0.5, None))],
    *[({"kernel": value}, ["'kernel'", "a kernel", "Got"]) for value in ("bogus", 5, ok.Gaussian, [])],
    *[({"kernel": kernel}, ["'width'", "positive", "Got"])
      for kernel in (ok.Gaussian(0), ok.Gaussian(-1), ok.Gaussian(NAN), ok.Gaussian("wide"), ok.Gaussian(None),
                     ok.Normalized(ok.Gaussian(-1)), ok.Linear() + ok.Gaussian(-1), 2.0 * ok.Gaussian(-1))],
    *[({"kernel": ok.Laplacian(value)}, ["'rate'", "positive", "Got"]) for value in (0, -1, INF)],
    *[({"kernel": ok.Polynomial(value)}, ["'degree'", "integer", "Got"]) for value in (0, 1.5, 1001, "a")],
    ({"kernel": ok.Polynomial(2, scale=0)}, ["'scale'", "positive", "Got"]),
    ({"kernel": ok.Polynomial(2, bias=-1)}, ["'bias'", "at least 0", "Got"]),
    *[({"kernel": kernel}, ["'value'", "at least 0", "Got"])
      for kernel in (ok.Constant(-1), ok.Noise(NAN), -1 * ok.Gaussian(), ok.Gaussian() + -0.5)],
    ({"kernel": ok.Normalized("bogus")}, ["'kernel'", "Got"]),
    *[({"kernel": ok.Precomputed(gram)}, ["'gram'"])
      for gram in (None, np.zeros((2, 3)), np.zeros(3), np.zeros((0, 0)), np.array([[1.0, 2.0], [0.0, 1.0]]),
                   np.array([[NAN]]), np.array([["a"]]), np.array([[1j]]))],
    ({"kernel": "precomputed"}, ["'gram'|'kernel'", "Got"]),

    ({"kernel": NoPair()}, ["pair"]),
    ({"loss": NoDerivative()}, ["derivative"]),
]


@each("params, words", BAD_PARAMETERS, ids=[shown(params) for params, _ in BAD_PARAMETERS])
def test_bad_parameters_are_stored_without_a_word_and_refused_at_the_first_fit(params, words):
    model = ok.NORMA(**params)
    for name, value in params.items():
        assert getattr(model, name) is value
        assert model.get_params(deep=False)[name] is value
    assert isinstance(repr(model), str)
    for method in LEARNING:
        refused((ValueError, TypeError), lambda: getattr(model, method)(X, LABELS), model, *words)
    refused((ValueError, TypeError), lambda: model.learn_one(X[0], 1), model, *words)


@each("params, words", BAD_PARAMETERS, ids=[shown(params) for params, _ in BAD_PARAMETERS])
def test_bad_parameters_set_on_a_fitted_model_are_refused_and_it_goes_on_predicting(params, words):
    model = ok.NORMA(step=0.2).partial_fit(X, LABELS)
    scores = model.decision_function(X)
    assert model.set_params(**params) is model
    for method in LEARNING:
        refused((ValueError, TypeError), lambda: getattr(model, method)(X, LABELS), model)
    refused((ValueError, TypeError), lambda: model.learn_one(X[0], 1), model)
    refused((ValueError, TypeError), lambda: model.fit(X, LABELS), model, *words)
    assert (model.decision_function(X) == scores).all()
    assert (model.t_, model.n_terms_) == (12, 12)


class OwnStep(ok.Fixed):
    pass


class OwnBudget(ok.Recent):
    pass


class OwnConstant(ok.Constant):
    pass


@each("params", [{"step": OwnStep(0.1)}, {"budget": OwnBudget(3)}, {"kernel": OwnConstant(1.0)}],
      ids=shown)
def test_a_subclass_of_a_noun_works_or_is_refused_in_a_sentence(params):
    model = ok.NORMA(**params)
    try:
        model.partial_fit(X, LABELS)
    except (ValueError, TypeError) as error:
        assert re.search("Own(Step|Budget|Constant)", str(error))
    else:
        assert model.t_ == 12


def test_bad_parameters_of_the_perceptron_are_refused():
    for params, words in (({"kernel": ok.Gaussian(0)}, ["'width'"]), ({"budget": 0}, ["'budget'"]),
                          ({"average": 1}, ["'average'"]), ({"average": True, "budget": 3}, ["average", "budget"]),
                          ({"offset": "no"}, ["'offset'"]), ({"epochs": 0}, ["'epochs'"])):
        model = ok.Perceptron(**params)
        refused(ValueError, lambda: model.fit(X, LABELS), model, *words)


@each("step", [1.0, ok.Fixed(1.0), ok.InverseSqrt(1.0)], ids=repr)
@each("kernel", ["gaussian", "linear", overlap], ids=["terms", "weights", "objects"])
def test_step_times_regularization_may_be_exactly_one(kernel, step):
    points = ["ab", "bc", "ac"] if kernel is overlap else X[:3]
    model = ok.NORMA("squared", kernel, step=step, regularization=1.0, budget=None, offset=False)
    model.partial_fit(points[:2], [1.0, 2.0])
    scores = model.progressive([points[2]], [1.0])
    assert np.isfinite(scores).all() and np.isfinite(model.predict(points)).all()
    if not isinstance(step, ok.InverseSqrt):  # each step wipes the past
        alone = ok.NORMA("squared", kernel, step=step, regularization=1.0, offset=False).partial_fit([points[2]], [1.0 - scores[0]])
        assert np.allclose(model.predict(points), alone.predict(points), rtol=1e-12, atol=1e-15)


def test_unknown_parameter_names_are_refused_and_the_known_ones_listed():
    model = ok.NORMA(kernel=ok.Gaussian())
    refused(ValueError, lambda: model.set_params(steps=1), model, "'steps'", "regularization")
    refused(ValueError, lambda: model.set_params(kernel__rate=1), model, "Gaussian", "'rate'", "width")
    refused(ValueError, lambda: model.set_params(loss__nu=1), model, "Hinge", "'nu'", "margin")
    refused(ValueError, lambda: model.set_params(scale__memory=1), model, "'scale'", "False")
    with pytest.raises(TypeError, match="steps"):
        ok.NORMA(steps=1)


def test_more_kernel_parts_than_the_core_holds_are_refused():
    kernel = ok.Gaussian()
    for width in range(1, 80):
        kernel = kernel + ok.Gaussian(width)
    model = ok.NORMA(kernel=kernel)
    refused(ValueError, lambda: model.fit(X, LABELS), model, "kernel", "64")


# ---- Before the first fit ---------------------------------------------------------------------------


@each("method, args", [("predict", (X,)), ("predict_one", (X[0],)), ("decision_function", (X,)),
                       ("score", (X, LABELS)), ("predict_proba", (X,))])
def test_predicting_before_fitting_says_what_to_do(method, args):
    model = ok.NORMA("logistic")
    refused(ValueError, lambda: getattr(model, method)(*args), model, "NORMA", "not fitted", "fit")


def test_score_refuses_bad_input():
    model = ok.NORMA().partial_fit(X, LABELS)
    for y, weights, words in ((None, None, [r"\by\b"]), (LABELS[:3], None, [r"\by\b", "12", r"\b3\b"]),
                              (LABELS, [1.0], ["sample_weight"]), (LABELS, -1.0, ["sample_weight"])):
        refused(ValueError, lambda: model.score(X, y, sample_weight=weights), model, *words)


# ---- initial= ---------------------------------------------------------------------------------------


class TestInitial:
    START = ok.NORMA("squared", ok.Gaussian(2.0)).partial_fit(X, TARGETS)

    @each("params, initial, words", [
        ({}, 5, ["fitted model", "5"]),
        ({}, "norma", ["fitted model", "norma"]),
        ({}, ok.NORMA("squared", ok.Gaussian(2.0)), ["fitted model"]),
        ({}, ok.NORMA("squared", ok.Gaussian(3.0)).partial_fit(X, TARGETS), ["kernel", "2.0", "3.0"]),
        ({}, ok.NORMA("squared", "linear").partial_fit(X, TARGETS), ["kernel", "Gaussian", "Linear"]),
        ({}, ok.NORMA("squared", overlap).partial_fit(["a", "b"], [1.0, 2.0]), ["kernel", "Gaussian"]),
        ({}, ok.NORMA("squared", ok.Gaussian(2.0)).partial_fit(X[:, :1], TARGETS), ["features", r"\b2\b", r"\b1\b"]),
        ({}, ok.NORMA("hinge", ok.Gaussian(2.0)).partial_fit(X, LABELS), ["binary", "regression"]),
        ({}, ok.NORMA("novelty", ok.Gaussian(2.0)).partial_fit(X), ["novelty", "regression"]),
        ({}, ok.NORMA("squared", ok.Gaussian(2.0), offset=True).partial_fit(X, TARGETS), ["offset"]),
    ])
    @each("method", LEARNING)
    def test_a_start_that_does_not_fit_is_refused(self, method, params, initial, words):
        model = ok.NORMA("squared", ok.Gaussian(2.0), **params)
        refused(ValueError, lambda: getattr(model, method)(X, TARGETS, initial=initial), model, "initial", *words)

    @each("method", ["partial_fit", "progressive"])
    def test_a_model_that_has_learned_takes_no_start(self, method):
        model = ok.NORMA("squared", ok.Gaussian(2.0)).partial_fit(X, TARGETS)
        call = lambda: getattr(model, method)(X, TARGETS, initial=self.START)
        refused(ValueError, call, model, "initial", "fit")

    def test_classes_must_be_those_of_the_start(self):
        start = ok.NORMA().partial_fit(X[:2], ["a", "b"])
        model = ok.NORMA()
        refused(ValueError, lambda: model.partial_fit(X[:2], ["a", "c"], classes=["a", "c"], initial=start), model, "classes")
        refused(ValueError, lambda: model.partial_fit(X[:2], ["a", "c"], initial=start), model, r"\by\b", "'c'")

    def test_a_refused_call_leaves_the_start_alone(self):
        model, before = ok.NORMA("squared", ok.Gaussian(2.0)), pickle.dumps(self.START)
        with pytest.raises(ValueError):
            model.partial_fit(X, [NAN] * 12, initial=self.START)
        assert pickle.dumps(self.START) == before


    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_points_of_the_start_too_large_for_a_float32_model_are_refused(self):
        start = ok.NORMA("squared", "laplacian").partial_fit([[1e300, 0.0], [0.0, 1.0]], [1.0, 2.0])
        model = ok.NORMA("squared", "laplacian")
        call = lambda: model.partial_fit(X.astype(np.float32), TARGETS, initial=start)
        refused(ValueError, call, model, "initial", "float32")


@pytest.mark.filterwarnings("error")
@each("row", [0, 1, 7, 19])
@each("kind", ["gaussian", "sum", "linear", "scaled", "sparse and scaled"])
def test_a_row_that_is_too_large_is_blamed_itself(kind, row):
    """Also the first one, which must not become the origin; and no warning leaks."""
    points = np.random.default_rng(3).normal(size=(20, 3))
    points[row, 1] = 1e200
    model = {
        "gaussian": ok.SILK(),
        "sum": ok.SILK(kernel=ok.Gaussian(2.0) + 0.1 * ok.Gaussian(9.0)),
        "linear": ok.SILK(kernel="linear"),
    }.get(kind, ok.SILK(kernel="linear", scale=True))
    if "sparse" in kind:
        points = pytest.importorskip("scipy.sparse").csr_matrix(points)
    with pytest.raises((FloatingPointError, ValueError), match=f"^Row {row} of X .*too large"):
        model.partial_fit(points, [1, -1] * 10)
