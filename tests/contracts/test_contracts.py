"""What holds of every estimator, whoever it is and whatever it learns: one contract, one test."""
import copy
import inspect
import pickle
import re

import numpy as np
import pytest

import onlinekernels as ok
from contracts.registry import (ATTRIBUTES, CHUNKS, KINDS, LETTERS, METHODS, NEW, POINTS, ROWS, SIGNS, WORDS, Own,
                                Transformer, near, overlap)

pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
ENDS = np.cumsum(CHUNKS).tolist()
HALF = ENDS[3]
LEARNERS = [name for name, kind in KINDS.items() if not isinstance(kind, Transformer)]
every_kind = pytest.mark.parametrize("name", KINDS)
every_learner = pytest.mark.parametrize("name", LEARNERS)


# ---- How to make, teach and look -------------------------------------------------------------------------------


def learned(name, first=0, last=ROWS, model=None, cuts=ENDS):
    """A model that has learned rows first to last, in chunks that end at these cuts."""
    kind = KINDS[name]
    model = kind.make() if model is None else model
    for end in sorted({end for end in [*cuts, last] if first < end <= last}):
        kind.call(model, first, end)()
        first = end
    return model


def y_of(kind, first, last):
    return None if kind.y is None else kind.y[first:last]


def new_rows(kind):
    return WORDS[:20] if kind.rows == "words" else kind.points(0, len(NEW), NEW)


def shown(name, model):
    """All that is to be seen of a model, by name."""
    kind, rows = KINDS[name], new_rows(KINDS[name])
    seen = {attribute: getattr(model, attribute) for attribute in ATTRIBUTES if hasattr(model, attribute)}
    seen |= {method: getattr(model, method)(rows) for method in METHODS if hasattr(model, method)}
    if hasattr(model, "predict_one") and kind.rows != "sparse":
        seen["predict_one"] = model.predict_one(rows[0])
    assert len(seen) > 1
    return seen


def plain(value):
    """Nested lists of numbers, words and None; sparse rows as dense ones."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return [value.shape, str(value.dtype), *map(plain, value.ravel().tolist())]
    if isinstance(value, (list, tuple)):
        return [*map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return "nan" if isinstance(value, float) and value != value else value


def finite(value):
    """Whether there is no NaN and no infinity in what a model shows."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(finite, value))
    array = np.asarray(value) if isinstance(value, (float, np.ndarray)) else np.zeros(1)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def assert_same(name, one, other):
    """Two models, or what was seen of them, agree to the bit."""
    first, second = (part if isinstance(part, dict) else shown(name, part) for part in (one, other))
    assert first.keys() == second.keys()
    for key in first:
        assert plain(first[key]) == plain(second[key]), key


def assert_near(name, one, other, tolerance=1e-9):
    """The same up to rounding."""
    first, second = (KINDS[name].scores(model) for model in (one, other))
    np.testing.assert_allclose(first, second, rtol=0, atol=tolerance * max(1.0, np.nanmax(np.abs(second))))
    assert KINDS[name].learned_by(one) == KINDS[name].learned_by(other)
    assert getattr(one, "n_terms_", 0) == getattr(other, "n_terms_", 0)


# ---- Chunks ----------------------------------------------------------------------------------------------------


@every_kind
def test_chunks_are_rows_however_they_are_cut(name):
    """One row by learn_one, as a chunk, and all rows at once: the same function, the same answers before each row."""
    kind = KINDS[name]
    one_by_one = learned(name, cuts=range(1, ROWS + 1))
    assert kind.learned_by(one_by_one) == ROWS
    for cuts in ([ROWS], ENDS):
        assert_near(name, learned(name, cuts=cuts), one_by_one)
    if not hasattr(one_by_one, "progressive") or isinstance(kind, Transformer):
        return
    models = kind.make(), kind.make(), kind.make()
    found = [progressive(kind, model, cuts) for model, cuts in zip(models, ([ROWS], ENDS, range(1, ROWS + 1)))]
    for model, answers in zip(models, found):
        assert_near(name, model, one_by_one)
        for output, values in answers.items():
            expected = found[0][output]
            if np.asarray(expected).dtype.kind == "f":
                np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-9, err_msg=output)
            else:
                assert np.asarray(values, dtype=object).tolist() == np.asarray(expected, dtype=object).tolist()


def told(kind, model, first, last):
    """All that a model gives just before each of these rows, by name; it learns them."""
    task = model._current_loss().task
    wanted = [name for name in inspect.signature(model.progressive).parameters if name.startswith("return_")
              and {"return_interval": task == "regression", "return_proba": task == "multiclass",
                   "return_std": task != "novelty"}.get(name, True)]
    found = model.progressive(kind.points(first, last), y_of(kind, first, last),
                              **{name: 0.9 if name == "return_interval" else True for name in wanted})
    return dict(zip(["scores", *wanted], found, strict=True))


def progressive(kind, model, cuts):
    """The same of a whole stream, {name: array}, when it is cut at these rows."""
    parts = [told(kind, model, first, end) for first, end in zip([0, *cuts], cuts)]
    task, answers = model._current_loss().task, {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        width = max(np.shape(value)[-1] for value in values)
        if name in ("scores", "return_proba") and task == "multiclass":  # labels that join later have 0
            values = [np.pad(value, ((0, 0), (0, width - value.shape[1]))) for value in values]
        answers[name] = np.concatenate([np.asarray(value) for value in values],
                                       axis=1 if name == "return_interval" else 0)
    return answers


# Of these the scores are those of what learns, not of the average or the vote that predicts;
AVERAGED = {"norma average", "voted", "logistic", "weights"}
# and in these a scaler has seen the row that it scales.
SCALED = {name for name, kind in KINDS.items() if "scaled" in name or "selftuned" in name or "front" in name
          or name in ("smoother labels", "stacking nested")}


@every_learner
def test_one_row_is_answered_and_learned_as_a_chunk_of_one(name):
    """What `predict` and its like say of the next row is what `progressive` says of it: scores, labels,
    probabilities, deviations and intervals. What it has computed for a row serves to learn that one, and no other."""
    kind = KINDS[name]
    model, looked = learned(name, 0, HALF), learned(name, 0, HALF)
    scores = next(method for method in ("score_samples", "decision_function", "predict") if hasattr(model, method))
    for place in range(HALF, HALF + 10):
        row, y = kind.points(place, place + 1), y_of(kind, place, place + 1)
        twin = copy.deepcopy(model)
        ahead = {"scores": getattr(model, scores)(row), "return_labels": model.predict(row)}
        ahead |= {what: getattr(model, method)(row) for what, method in
                  (("return_proba", "predict_proba"), ("return_interval", "predict_interval")) if hasattr(model, method)}
        if "return_std" in inspect.signature(model.predict).parameters and scores != "score_samples":
            ahead["return_std"] = model.predict(row, return_std=True)[1]
        before = told(kind, twin, place, place + 1)
        for what in () if name in AVERAGED | SCALED else before.keys() & ahead.keys():
            expected = np.asarray(ahead[what])
            if expected.dtype.kind == "f":  # a label that joins with this row has a column of its own
                found = before[what][..., : expected.shape[-1]] if expected.ndim == 2 else before[what]
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=what)
            else:
                assert np.asarray(before[what]).tolist() == expected.tolist(), what
        if kind.rows != "sparse":  # whose rows are matrices
            assert plain(model.predict_one(row[0])) == plain(model.predict(row)[0]) or np.allclose(
                model.predict_one(row[0]), model.predict(row)[0], rtol=1e-12)
            looked.predict_one(kind.points(place + place % 2, place + 1 + place % 2)[0])
            assert looked.learn_one(row[0], None if y is None else y[0].tolist()) is looked
            assert_near(name, looked, twin, 1e-9)
        model = twin


# ---- Files, pickles, copies ------------------------------------------------------------------------------------


LISTS = str.maketrans("[]", "()")  # of parameters that are tuples a file makes lists


def through_file(model, folder):
    """A model that was saved and loaded, and given the Python code that files do not hold."""
    path = folder / f"model{len(list(folder.iterdir()))}.npz"
    try:
        model.save(path)
    except TypeError as error:  # of members there is no way to give it back
        assert "Pickle the model instead" in str(error)
        return pickle.loads(pickle.dumps(model))
    params = model.get_params(deep=False)
    return ok.load(path, **{name: params[name] for name in ("kernel", "loss")
                            if params.get(name) in (overlap, near) or isinstance(params.get(name), Own)})


@every_kind
def test_what_comes_back_is_the_model_and_goes_on_as_it_does(name, tmp_path):
    """From files, pickles of any protocol and copies; to the bit, each on its own, before and after the first rows."""
    ways = [copy.copy, copy.deepcopy, lambda model: through_file(model, tmp_path)]
    ways += [lambda model, protocol=protocol: pickle.loads(pickle.dumps(model, protocol)) for protocol in (2, 5)]
    if not hasattr(KINDS[name].make(), "save"):
        del ways[2]
    undisturbed = learned(name)
    for begin in (0, 1, HALF):
        model = learned(name, 0, begin) if begin else KINDS[name].make()
        twins = [again(model) for again in ways]
        before = shown(name, model) if begin else None
        for twin in twins:
            assert type(twin) is type(model)
            assert repr(twin).translate(LISTS) == repr(model).translate(LISTS)
            if begin:
                assert_same(name, twin, before)
            assert_same(name, learned(name, begin, model=twin), undisturbed)
        if begin:
            assert_same(name, model, before)  # others have learned, and this one has not
        assert_same(name, learned(name, begin, model=model), undisturbed)


@every_kind
def test_looking_changes_nothing_and_the_same_stream_gives_the_same_bits(name):
    quiet, watched = learned(name), KINDS[name].make()
    first = 0
    for end in ENDS:
        learned(name, first, end, watched)
        seen = shown(name, watched)
        repr(watched), watched.get_params(), pickle.dumps(watched)
        assert_same(name, watched, seen)
        first = end
    assert_same(name, quiet, watched)


@every_kind
def test_what_is_shown_is_a_copy(name):
    """Whoever writes into an attribute or a prediction does not reach the model."""
    model = learned(name, 0, HALF)
    before = shown(name, model)
    for value in shown(name, model).values():
        for array in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(array, np.ndarray) and array.size and array.dtype.kind in "fiU" and array.flags.writeable:
                array[...] = array.ravel()[-1:] if array.dtype.kind == "U" else 7
    assert_same(name, model, before)


@every_kind
def test_a_clone_has_the_parameters_and_nothing_else(name):
    model = learned(name, 0, HALF)
    params = model.get_params(deep=False)
    fresh = KINDS[name].make()
    assert repr(fresh) == repr(model), "learning touches no parameter"
    twin = type(model)(**params)
    assert all(getattr(twin, key) is value for key, value in params.items())
    assert KINDS[name].learned_by(twin) == 0
    assert_same(name, learned(name, 0, HALF, twin), model)
    assert repr(model.set_params(**model.get_params())) == repr(twin)
    with pytest.raises(ValueError, match="nobody"):
        model.set_params(**{next(iter(params), "nobody"): next(iter(params.values()), None), "nobody": 1})
    assert_same(name, learned(name, HALF, model=model), learned(name))


@every_learner
def test_fit_forgets(name):
    kind = KINDS[name]
    y = y_of(kind, 0, HALF)
    once, again = kind.make().fit(kind.points(0, HALF), y), learned(name).fit(kind.points(0, HALF), y)
    assert_same(name, once, again)


def bad_calls(kind):
    """(what is wrong, method, arguments) of calls that must be refused."""
    X, y = kind.points(HALF, HALF + 6), y_of(kind, HALF, HALF + 6)
    one = X[0] if kind.rows != "sparse" else None
    if y is None:
        y = np.zeros(6)
    yield "no rows", "partial_fit", (X[:0], y[:0])
    if kind.y is not None:
        yield "y is shorter", "partial_fit", (X, y[:5])
        missing = np.array(y.tolist(), dtype=object)
        missing[2] = None
        yield "y has a hole", "partial_fit", (X, missing)
        yield "y has a hole", "progressive", (X, missing)
        yield "no y", "partial_fit", (X,)
        if one is not None:
            yield "y has a hole", "learn_one", (one, None)
    if y.dtype.kind == "f" and kind.y is not None:
        for value in (np.nan, np.inf):
            wrong = y.copy()
            wrong[-1] = value
            yield "y is no number", "partial_fit", (X, wrong)
    for weights in (np.full(6, -1.0), np.full(6, np.nan), np.ones(5), np.full(6, np.inf), ["a"] * 6):
        yield "bad weights", "partial_fit", (X, y, weights)
    if kind.rows in ("dense", "single"):
        encodes = getattr(kind.make(), "encode", False)  # words, and what is missing
        for value in (np.inf, -np.inf) if encodes else (np.nan, np.inf, -np.inf):
            wrong = X.copy()
            wrong[4, 1] = value
            for method in ("partial_fit", "progressive", "predict", "decision_function", "transform"):
                yield "X is not finite", method, (wrong, y)[: 2 if method in ("partial_fit", "progressive") else 1]
            yield "X is not finite", "learn_one", (wrong[4], y[4].tolist())
            yield "X is not finite", "predict_one", (wrong[4],)
        for wrong in (X[:, :2], np.hstack([X, X]), X[0], X[None], X + 1j,
                      *([] if encodes else [X.astype(str), np.ma.masked_array(X, X == X[0, 0])])):
            yield "X has another form", "partial_fit", (wrong, y)
            yield "X has another form", "predict", (wrong,)
        yield "x has another form", "learn_one", (one[:2], y[0].tolist())
        yield "x has another form", "predict_one", (X,)


@every_learner
def test_a_refused_call_says_why_and_changes_nothing(name):
    """TypeError or ValueError, in a sentence; and the model goes on as if it had not been called."""
    kind = KINDS[name]
    fresh, model = kind.make(), learned(name, 0, HALF)
    before, refused = shown(name, model), 0
    for what, method, arguments in bad_calls(kind):
        if not hasattr(model, method):
            continue
        keywords = {}
        if what == "bad weights":
            *arguments, keywords["sample_weight"] = arguments
        for victim in (model, fresh) if method in ("partial_fit", "progressive",
                                                   "learn_one") and "form" not in what else (model,):
            with pytest.raises((TypeError, ValueError)) as error:
                getattr(victim, method)(*arguments, **keywords)
            assert len(str(error.value).split()) > 3, (what, method, error.value)
            refused += 1
    assert refused > 10
    assert_same(name, model, before)
    assert_same(name, learned(name, HALF, model=model), learned(name))
    assert_same(name, learned(name, model=fresh), model)


@every_learner
def test_weights_of_one_are_none_and_weights_belong_to_their_rows(name):
    kind = KINDS[name]
    X, y = kind.points(0, ROWS), y_of(kind, 0, ROWS)
    assert_same(name, kind.make().partial_fit(X, y), kind.make().partial_fit(X, y, sample_weight=np.ones(ROWS)))
    weights = np.random.default_rng(0).integers(0, 3, ROWS) * 1.0
    weights[0] = 1.0
    whole, parts = kind.make().partial_fit(X, y, sample_weight=weights), kind.make()
    for first, last in zip([0, *ENDS[:-1]], ENDS):
        parts.partial_fit(kind.points(first, last), y_of(kind, first, last), sample_weight=weights[first:last])
    assert_near(name, parts, whole)
    assert not np.allclose(kind.scores(whole), kind.scores(kind.make().partial_fit(X, y)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name",
                         [name for name in LEARNERS if KINDS[name].is_composite and "mixed" != KINDS[name].rows])
def test_ensembles_are_measured_as_all_learners_are(name):
    kind = KINDS[name]
    X, y = kind.points(0, HALF), y_of(kind, 0, HALF)
    report = ok.evaluate.progressive(kind.make(), X if y is None else (X, y), chunk=30)
    scores, labels = kind.make().progressive(X, y, return_labels=True)
    if y is not None and y.dtype.kind == "f":
        assert report.squared_error == pytest.approx(np.mean((scores - y) ** 2), rel=1e-6)
    else:
        assert report.error == pytest.approx(np.mean(labels == -1 if y is None else np.asarray(labels) != y), abs=1e-12)
    if y is not None:
        assert ok.evaluate.progressive(kind.make(), (X, y), delay=5).examples == HALF


@pytest.mark.parametrize("name", [name for name in LEARNERS if KINDS[name].rows == "dense"
                                  and KINDS[name].y is not None and KINDS[name].y.ndim == 1])
def test_wrapped_for_river_it_is_the_same_model(name):
    """Rows by name, in any order, with weights; and copied on the way."""
    pytest.importorskip("river")
    from onlinekernels.river import as_river

    kind = KINDS[name]
    X, y = kind.points(0, 50), y_of(kind, 0, 50)
    streaming, twin = as_river(kind.make(), features=["a", "b", "c"]), kind.make()
    for i, (row, target) in enumerate(zip(X.tolist(), y.tolist())):
        streaming = pickle.loads(pickle.dumps(streaming)) if i == 30 else streaming
        streaming.learn_one(dict(sorted(zip("abc", row), reverse=i % 2 == 0)), target, w=1.0 + i % 3)
        twin.partial_fit([row], [target], sample_weight=[1.0 + i % 3])
        if i > 10:
            assert streaming.predict_one(dict(zip("abc", X[i - 9].tolist()))) == pytest.approx(
                twin.predict(X[i - 9 : i - 8])[0], rel=1e-9, abs=1e-12)


PAIRS = {"booleans": (False, True), "words": ("ham", "spam"), "floats": (0.25, 0.5), "large": (-(2**40), 2**40),
         "minus zero": (-1, 0), "zero one": (0, 1), "one two": (1, 2), "unsigned": (np.uint8(0), np.uint8(1)),
         "empty": ("", "a"), "bytes": (b"a", b"b"), "dates": (np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
         }
MANY = {"numbers": np.arange(7) * 3 - 4, "floats": np.arange(7) * 2.0, "long words": np.array([f"the letter {letter}"
                                                                                               for letter
                                                                                               in "abcdefg"]),
        "dates": np.datetime64("2020-01-01") + 40 * np.arange(7), "objects": np.array([*"abcdefg"], dtype=object)}


@pytest.mark.parametrize("name", [name for name in LEARNERS if KINDS[name].y is SIGNS or KINDS[name].y is LETTERS])
def test_labels_may_be_of_any_type_and_join_late(name):
    """Called something else, they are learned and answered as before."""
    kind = KINDS[name]
    if name in ("taxonomy", "label graph"):
        pytest.skip("the structure names them")
    expected = learned(name)
    names = np.unique(kind.y)
    for labels in (PAIRS if len(names) == 2 else MANY).values():
        labels = np.array(labels)[: len(names)]
        y = labels[np.searchsorted(names, kind.y)]
        model, first = kind.make(), 0
        for end in ENDS:
            named = {"classes": labels} if first == 0 and len(names) == 2 else {}
            if end == first + 1 and first and kind.rows != "sparse":
                model.learn_one(kind.points(first, end)[0], y[first])
            else:
                model.partial_fit(kind.points(first, end), y[first:end], **named)
            first = end
        rows = new_rows(kind)
        assert model.classes_.tolist() == sorted(labels.tolist()) and kind.scores(model).ndim == 1 + (len(names) > 2)
        if kind.is_composite or len(names) > 2:
            np.testing.assert_allclose(kind.scores(model), kind.scores(expected), rtol=1e-12, atol=1e-14)
        else:
            assert (kind.scores(model) == kind.scores(expected)).all()
        predictions = model.predict(rows)
        assert predictions.dtype == model.classes_.dtype == (y.dtype if y.dtype.kind != "O" else np.dtype("<U1"))
        assert predictions.tolist() == labels[np.searchsorted(names, expected.predict(rows))].tolist()
        if kind.rows != "sparse":
            assert model.predict_one(rows[0]) == predictions[0]


# ---- Rows in any container -------------------------------------------------------------------------------------


def every_second(a):
    wide = np.empty((2 * len(a), 2 * a.shape[1]))
    wide[::2, ::2] = a
    return wide[::2, ::2]


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(a.shape)
    view[...] = a
    view.flags.writeable = False
    return view


FORMS = {"list": lambda a: a.tolist(), "tuple": lambda a: tuple(map(tuple, a)), "rows": list,
         "fortran": np.asfortranarray, "every second": every_second,
         "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1], "big endian": lambda a: a.astype(">f8"),
         "unaligned, read-only": unaligned, "objects": lambda a: a.astype(object),
         "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})), "longdouble": lambda a: a.astype(np.longdouble),
         "float16": lambda a: a.astype(np.float16)}


DENSE = [name for name, kind in KINDS.items() if kind.rows == "dense"]


def taught(kind, model, X, y):
    return model.partial_fit(X) if isinstance(kind, Transformer) else model.partial_fit(X, y)


@pytest.mark.parametrize("name", DENSE)
def test_the_same_numbers_in_any_array_give_the_same_bits(name):
    kind, expected = KINDS[name], learned(name, 0, HALF)
    for form in FORMS.values():
        model, first = kind.make(), 0
        for end in ENDS[:4]:
            taught(kind, model, form(POINTS[first:end]), y_of(kind, first, end))
            first = end
        np.testing.assert_allclose(kind.scores(model), kind.scores(expected), 1e-12, 1e-13)
        answer = model.transform if isinstance(kind, Transformer) else model.predict
        assert plain(answer(form(NEW))) == plain(answer(NEW))


@pytest.mark.parametrize("name", DENSE)
def test_single_precision_data_frames_and_integers(name):
    kind = KINDS[name]
    expected, y = learned(name, 0, HALF, cuts=[HALF]), y_of(kind, 0, HALF)
    single, scores = taught(kind, kind.make(), POINTS[:HALF].astype(np.float32), y), kind.scores(expected)
    np.testing.assert_allclose(kind.scores(single), scores, rtol=0, atol=2e-3 * max(1.0, np.abs(scores).max()))
    whole = 8 * POINTS[:HALF]
    if "trees" not in name:
        assert_same(name, taught(kind, kind.make(), whole.astype(int), y), taught(kind, kind.make(), whole, y))
    pandas = pytest.importorskip("pandas")
    framed = taught(kind, kind.make(), pandas.DataFrame(POINTS[:HALF], columns=["a", "b", "c"]), y)
    np.testing.assert_array_equal(kind.scores(framed), scores)
    assert framed.feature_names_in_.tolist() == ["a", "b", "c"]


def with_params(model, **params):
    return type(model)(**{**model.get_params(deep=False), **params})


def those_with(parameter, value):
    """Kinds of dense rows whose models have this parameter, with this value."""
    return [name for name in DENSE if getattr(KINDS[name].make(), parameter, None) is value]


# What looks at more than inner products
DENSE_ALONE = re.compile("trees|smoother|merging|window|hebbian")


@pytest.mark.parametrize("name", [name for name in DENSE if "scaled" not in name and isinstance(
    getattr(KINDS[name].make(), "kernel", None), (str, ok.Kernel))])
def test_sparse_rows_give_the_model_of_dense_ones_or_are_refused(name):
    sparse, kind = pytest.importorskip("scipy.sparse"), KINDS[name]
    dense, rows = kind.make(), sparse.csr_matrix(POINTS[:HALF])
    if getattr(dense, "offset", True) is None:  # whose default is another one
        dense = with_params(dense, offset=False)
    model, first = with_params(dense), 0
    if DENSE_ALONE.search(name):
        with pytest.raises(TypeError, match="sparse.*dense|sparse.*inner products"):
            taught(kind, model, rows, y_of(kind, 0, HALF))
        return
    for end in ENDS[:4]:
        taught(kind, model, rows[first:end], y_of(kind, first, end))
        first = end
    assert_same_scores(model, sparse.csr_matrix(NEW), learned(name, 0, HALF, dense), NEW)


@pytest.mark.parametrize("name", [name for name in those_with("scale", False)
                                  if not KINDS[name].is_composite and "trees" not in name])
def test_scale_is_a_scaler_in_front(name):
    kind, y = KINDS[name], y_of(KINDS[name], 0, HALF)
    scaler = ok.RunningScaler(0.99)
    inside, rows = with_params(kind.make(), scale=ok.RunningScaler(0.99)), scaler.progressive(POINTS[:HALF])
    plain_model = kind.make().partial_fit(rows, y)
    assert_same_scores(learned(name, 0, HALF, inside), NEW, plain_model, scaler.transform(NEW))


@pytest.mark.parametrize("name", those_with("encode", False))
def test_dictionaries_are_the_rows_that_an_encoder_makes_of_them(name):
    kind, y, encoder = KINDS[name], y_of(KINDS[name], 0, HALF), ok.RunningEncoder(100)  # where no column overflows
    rows = [{"word": WORDS[i % 7], "number": x, "flag": i % 3 == 0} for i, x in enumerate(POINTS[: HALF + 20, 0])]
    model = with_params(kind.make(), encode=ok.RunningEncoder(100))
    encoder._means = model._target_means(y, None)
    encoded = kind.make().partial_fit(encoder.progressive(rows[:HALF]), y)
    for first, end in zip([0, *ENDS], ENDS[:4]):
        model.partial_fit(rows[first:end], y_of(kind, first, end))
    assert_same_scores(model, rows[HALF:], encoded, encoder.transform(rows[HALF:]))
    assert model.n_features_in_ == 3 and list(model.feature_names_in_) == list(rows[0])
    assert model.encoder_.feature_names_out == encoder.feature_names_out and not hasattr(encoded, "encoder_")
    assert plain(model.predict_one(rows[3])) == plain(model.predict(rows[3:4])[0])


@pytest.mark.parametrize("name", [name for name in DENSE if hasattr(KINDS[name].make(), "kernel")
                                  and not re.search("scaled|smoother|voted|selftuned|taxonomy|hebbian", name)])
def test_attributes_are_the_function(name):
    """The sum over terms, or features times weights, and the offset."""
    model = learned(name, 0, HALF)
    if hasattr(model, "coef_"):
        values = (model._state.function.map(NEW) if model._state.kernel.has_map() else NEW) @ model.coef_.T
    elif hasattr(model, "dual_coef_"):
        values = model._state.kernel(NEW, model.support_vectors_) @ model.dual_coef_.T
    else:
        values = sum(model.component(j, NEW[:, j]) for j in range(3))
    way = next(way for way in ("score_samples", "decision_function", "predict") if hasattr(model, way))
    found = getattr(model, way)(NEW)
    np.testing.assert_allclose(values.reshape(found.shape) + model.intercept_, found, rtol=1e-9, atol=1e-10)


def assert_same_scores(model, X, other, Z):
    answer = next(way for way in ("score_samples", "decision_function", "predict") if hasattr(model, way))
    expected = getattr(other, answer)(Z)
    np.testing.assert_allclose(getattr(model, answer)(X), expected, rtol=0,
                               atol=1e-8 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", KINDS)
def test_input_is_neither_changed_nor_kept(name):
    """Whoever writes into his arrays afterwards does not reach the model."""
    kind = KINDS[name]
    if kind.rows in ("words", "mixed"):
        pytest.skip("words do not change")
    model, expected = kind.make(), learned(name, 0, HALF, cuts=[HALF])
    X, y, weights = kind.points(0, HALF), y_of(kind, 0, HALF), np.ones(HALF)
    X, y = X.copy(), None if y is None else y.copy()
    parts = [part for part in (X.data if kind.rows == "sparse" else X, y, weights) if part is not None]
    before = [part.copy() for part in parts]
    model.partial_fit(X) if isinstance(kind, Transformer) else model.partial_fit(X, y, sample_weight=weights)
    for part, kept in zip(parts, before):
        assert (part == kept).all()
        part[...] = part.ravel()[-1]
    assert_same(name, model, expected)


# What keeps all rows, or all that are worth it, because nobody gave it a budget
# (or a history, up to 256 entries)
GROWING = {"silk own width", "smoother density", "front door numbers", "front door labels", "front door novelty",
           "front door sparse", "norma", "norma average", "sublinear", "fading", "alma", "romma", "voted", "lasvm",
           "projection", "words projection", "sparse unlimited", "trees", "scaled sparse", "scaled own loss",
           "krls unlimited", "selftuned", "selftuned labels"}


@pytest.mark.parametrize("name", [name for name in KINDS if name not in GROWING])
def test_memory_is_bounded(name):
    """A model with a budget is no larger after six times the rows (a multiple of 64, where checkpoints are)."""
    kind, sizes = KINDS[name], []
    model = learned(name)
    for n in (6, 32):
        for _ in range(n):
            kind.call(model, 0, ROWS)()
        sizes.append(len(pickle.dumps(model)))
    assert sizes[1] <= 1.02 * sizes[0] + 200, sizes
