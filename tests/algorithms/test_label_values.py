"""Distinct labels stay distinct and come back as they went in, or are refused in a sentence."""
import datetime
import enum
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels.base.labelvalues import as_list

X = np.arange(8.0)[:, None]
DAY, NOON = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 12)


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


class Word(str):
    pass


def moments(unit, values=("2020-01-01T00:00:00.000000001", "2020-01-01T00:00:00.000000002", "2021-06-01")):
    return np.array(values, dtype="M8[ns]").astype(f"M8[{unit}]") if unit in ("ns", "us") else np.array(
        ["2020-03-01", "2021-03-01", "1969-07-20"]).astype("M8[D]").astype(f"M8[{unit}]")


# Labels that NumPy or a float would merge or change.
TRIPLES = {
    "mixed types": ["a", 1, ("t", 2)],
    "tuples": [("a", 1), ("a", 2), ("b", 1)],
    "sets": [frozenset("a"), frozenset("b"), frozenset("ab")],
    "beyond 2**53": [2**53, 2**53 + 1, 2**53 + 2],
    "beyond 2**53 with a float": [2**53 + 1, 2.0**53, -1.0],
    "beyond 2**63": [2**63, 2**63 + 1, -1],
    "beyond 2**64": [2**64, 2**64 + 1, 0],
    "beyond all floats": [10**400, 10**400 + 1, -(10**400)],
    "uint64": np.array([2**63, 2**63 + 1, 2**64 - 1], dtype=np.uint64),
    "uint64 with negatives": [np.uint64(2**63 + 1), np.uint64(2**63), np.int64(-1)],
    "zero characters": ["a", "a\0", "a\0\0"],
    "zero bytes": [b"a", b"a\0", b"\0"],
    "strings and bytes": ["a", b"a", "b"],
    "enumeration": [Colour.RED, Colour.BLUE, 7],
    "strings of one's own": [Word("a"), Word("b"), Word("c")],
    "dates": [DAY, DAY + datetime.timedelta(1), datetime.date(1, 1, 1)],
    "times": [NOON, NOON.replace(microsecond=1), NOON.replace(year=9999)],
    "time zones": [NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=h))) for h in (0, 1, 2)],
    "moments of several units": [np.datetime64("3000", "Y"), np.datetime64(1, "ns"), np.datetime64("2020-01-01", "D")],
    "lengths of time": np.array([1, 2, 10**12], dtype="m8[ns]"),
    "lengths of time of Python's": [datetime.timedelta(1), datetime.timedelta(2), datetime.timedelta(microseconds=1)],
    "complex": [1j, 2j, 1 + 0j],
    "fractions": [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7)],
    "structured": np.array([(1, "a"), (1, "b"), (2, "a")], dtype=[("n", int), ("w", "U1")]),
    **{f"moments in {unit}": moments(unit) for unit in ("Y", "M", "W", "D", "h", "s", "ms", "ns")},
}
SAVED = {"beyond 2**53", "beyond 2**53 with a float", "beyond 2**63", "beyond 2**64", "beyond all floats", "uint64",
         "uint64 with negatives", "zero characters"}


def rows(labels, count):
    """Labels again and again, in what they came in."""
    places = np.arange(count) % len(labels)
    return labels[places] if isinstance(labels, np.ndarray) else [labels[place] for place in places]


def plain(labels):
    return as_list(labels) if isinstance(labels, np.ndarray) and labels.dtype.kind != "V" else list(
        labels.tolist() if isinstance(labels, np.ndarray) else labels)


def same(a, b):
    """The same labels, of the same types but for numbers of NumPy's."""
    def kind(label):
        return type(label.item() if isinstance(label, np.number) and not isinstance(label, np.timedelta64) else label)
    return len(a) == len(b) and all(x == y and kind(x) is kind(y) for x, y in zip(a, b))


def models(name):
    labels = TRIPLES[name]
    yield labels, ok.NORMA("multiclass_logistic", ok.Gaussian(0.2), step=0.9, epochs=3)
    two = labels[:2]
    if name not in ("mixed types", "strings and bytes"):  # no order: refused below
        yield two, ok.NORMA("logistic", ok.Gaussian(0.2), step=0.9, epochs=3)


@each("name", TRIPLES)
def test_labels_come_back_as_they_went_in(name, tmp_path):
    for labels, model in models(name):
        y = rows(labels, 8)
        expected = plain(y)
        model.fit(X, y)
        assert len(model.classes_) == len(labels)
        assert same(sorted(as_list(model.classes_), key=plain(labels).index), plain(labels))
        assert same(as_list(model.predict(X)), expected)
        assert same([model.predict_one(x) for x in X], expected)
        assert model.score(X, y) == 1.0
        assert model.score(X, y[1:] + y[:1] if isinstance(y, list) else np.roll(y, -1)) == 0.0
        before = model.t_
        model.partial_fit(X[:3], y[:3]).learn_one(X[3], expected[3]).progressive(X[4:], y[4:])
        assert model.t_ == before + 8 and len(model.classes_) == len(labels)
        copy = pickle.loads(pickle.dumps(model))
        assert same(as_list(copy.classes_), as_list(model.classes_))
        assert same(as_list(copy.predict(X)), expected) and copy.partial_fit(X, y).score(X, y) == 1.0
        if name in SAVED:
            model.save(tmp_path / "m.npz")
            twin = ok.load(tmp_path / "m.npz")
            assert same(as_list(twin.classes_), as_list(model.classes_))
            assert twin.classes_.dtype == model.classes_.dtype
            assert same(as_list(twin.predict(X)), expected) and twin.partial_fit(X, y).score(X, y) == 1.0
        else:
            with pytest.raises(TypeError, match="Labels must be numbers or strings"):
                model.save(tmp_path / "m.npz")


@each("loss", ["hinge", "multiclass_hinge"])
@each("missing", [
    np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[ns]"),
    np.array([1, np.timedelta64("NaT", "s"), 2], dtype="m8[s]"),
    [np.datetime64("2020"), np.datetime64("NaT", "D"), DAY], [1, None, 2], [1.0, float("nan"), 2.0],
    [1, float("inf"), 2],
    np.array([1, complex("nan"), 2j]),
], ids=repr)
def test_what_is_missing_is_refused(loss, missing):
    good = ok.NORMA(loss, "linear").fit(X[:2], [1, 2])
    for call in (lambda: ok.NORMA(loss).fit(X[:3], missing), lambda: good.partial_fit(X[:3], missing),
                 lambda: good.score(X[:3], missing), lambda: ok.NORMA(loss).fit(X[:2], [1, 2], classes=missing),
                 lambda: good.learn_one(X[0], missing[1])):
        with pytest.raises(ValueError, match="NaN or|NaT|unknown label|is None"):
            call()
    assert good.t_ == 2 and good.classes_.tolist() == [1, 2]


class TestOrder:
    """`classes_` is sorted whatever was called, also with labels that join late, and columns follow."""

    def test_labels_that_cannot_be_compared_keep_their_order(self):
        model = ok.SILK("multiclass_hinge").partial_fit(np.eye(3), ["b", 1, "a"])
        assert model.classes_.tolist() == ["b", 1, "a"]


class TestTies:
    """Equal scores go to the first of classes_."""

    FAR = np.array([[1e3], [-1e3]])

    @each("loss", ["multiclass_hinge", "multiclass_logistic", "multiclass_squared", "hinge", "logistic"])
    def test_scores_probabilities_and_predictions_agree(self, loss):
        rng = np.random.default_rng(0)
        for seed in range(30):
            k = 2 if "multi" not in loss else int(rng.integers(2, 5))
            y = rng.permutation(np.arange(12) % k)
            points = rng.integers(0, 4, size=(12, 1)).astype(float)
            model = ok.NORMA(loss, ok.Gaussian(0.3), step=10.0 ** -rng.integers(0, 18)).fit(points, y)
            grid = np.concatenate([np.linspace(-3, 8, 200)[:, None], self.FAR])
            scores = model.decision_function(grid)
            best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
            assert (model.classes_[best] == model.predict(grid)).all()
            if model._current_loss().probabilistic:
                p = model.predict_proba(grid)
                assert (model.classes_[p.argmax(axis=1)] == model.predict(grid)).all()
                np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
