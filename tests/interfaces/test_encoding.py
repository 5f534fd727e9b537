"""RunningEncoder: tables of every kind as numbers, against plain descriptions of what should come out."""
import json
import pickle
import re
import warnings
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock

import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels import RunningEncoder
from onlinekernels.preprocessing.values import read

pd = pytest.importorskip("pandas")


def table(n=60, seed=0):
    """A data frame of every kind of column with holes, also in the first row."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "amount": rng.normal(100.0, 20.0, n),
        "count": rng.integers(0, 9, n),
        "new": rng.random(n) < 0.2,
        "city": rng.choice(["Rome", "Oslo", "Bern", "Kyiv", "Baku"], n),
        "grade": pd.Categorical(rng.choice(["A", "B", "C"], n)),
        "at": pd.date_range("2023-12-30 05:00", periods=n, freq="7h"),
        "due": pd.date_range("2024-02-27", periods=n, freq="D").strftime("%Y-%m-%d").astype(object),
        "note": [f"n{i}" for i in rng.integers(0, 50, n)],
    })
    holes = rng.random(frame.shape) < 0.1
    holes[0] = [False, False, False, False, False, False, True, True]
    holes[:, [1, 2]] = False
    return frame.mask(holes)


def columns_of(encoder, out, name):
    """The columns that come of one."""
    names = encoder.feature_names_out
    return out[:, [i for i, other in enumerate(names) if other == name or other.startswith((f"{name}=", f"{name}#", f"{name} "))]]


def test_tables_of_all_kinds_are_the_same_table():
    frame = table()
    expected = RunningEncoder().progressive(frame)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in records]
    for row, before in zip(texts, records, strict=True):
        row["new"] = str(int(before["new"]))
    for rows in (records, texts, [pd.Series(row) for row in records], frame.convert_dtypes()):
        np.testing.assert_array_equal(RunningEncoder().progressive(rows), expected)
    for rows in ([list(row.values()) for row in records], frame.astype(object).to_numpy(), frame.set_axis(range(8), axis=1)):
        np.testing.assert_array_equal(RunningEncoder().progressive(rows), expected)


def test_rows_of_an_undecided_column_are_each_encoded_for_themselves():
    encoder = RunningEncoder(2).fit([[1, None]])
    values = [[1, None], [1, 3.5], [1, "red"], [1, "2024-01-01"], [1, "blue"]]
    together = encoder.transform(values)
    np.testing.assert_array_equal(together, np.concatenate([encoder.transform([row]) for row in values]))
    for row, expected in zip(values, together, strict=True):
        np.testing.assert_array_equal(RunningEncoder(2).fit([[1, None]]).progressive([row])[0], expected)
    assert encoder.kinds_ == {"x0": "number", "x1": None} and encoder.partial_fit(values[2:3]).kinds_["x1"] == "category"


def test_holes_have_the_mean_so_far_and_an_indicator():
    nan = np.nan
    values = [nan, 4.0, nan, 6.0, 8.0, nan, nan, 1.0, nan]
    encoder = RunningEncoder(indicators=True)
    out = encoder.progressive(np.array(values)[:, None])
    # of one or two values the nearer one; from the third on the mean
    np.testing.assert_allclose(out[:, 0], [0.0, 4.0, 4.0, 6.0, 8.0, 6.0, 6.0, 1.0, 19 / 4])
    np.testing.assert_array_equal(out[:, 1], np.isnan(values))
    assert encoder.feature_names_out == ["x0", "x0 is missing"] and encoder.means_ == {"x0": 19 / 4}
    large = RunningEncoder().progressive(np.array([[1.7e308], [-1.7e308], [1.6e308], [nan]]))
    assert np.isfinite(large).all()


def test_a_hole_among_two_values_has_the_nearer_one():
    for values, filled in (([1, 1, 0], 1.0), ([0, 1, 0], 0.0), ([5.0, 2.0, 2.0], 2.0), ([3.0], 3.0), ([1, 2, 4], 7 / 3), ([True, False, True], 1.0)):
        encoder = RunningEncoder().partial_fit([[value] for value in values])
        assert encoder.transform([[None]])[0, 0] == pytest.approx(filled, rel=1e-15)


def test_what_is_missing():
    for hole in (None, np.nan, float("nan"), pd.NaT, pd.NA, "", "  ", np.datetime64("NaT", "s"), "n/a", "?", "NaN"):
        rows = [[1.0, "2024-01-01"], [hole, hole], [2.0, "2024-01-03"]]
        out = RunningEncoder(cycles=None).progressive(rows)
        np.testing.assert_array_equal(out, [[1, 0, 0, 0], [1, 1, 0, 1], [2, 0, 2, 0]], err_msg=repr(hole))
        if not isinstance(hole, str) or not hole.strip():  # among words, "n/a" is one
            words = RunningEncoder(2).progressive([["a"], [hole], ["b"]])
            np.testing.assert_array_equal(words, [[1, 0, 0], [0, 0, 1], [0, 1, 0]], err_msg=repr(hole))
    with pytest.raises(ValueError, match="masked entries"):
        RunningEncoder().progressive(np.ma.array([[1.0, 5.0], [2.0, 6.0]], mask=[[0, 0], [0, 1]]))


def test_words_have_a_slot_each_and_then_share():
    encoder = RunningEncoder(slots=3)
    words = ["a", "b", "a", "c", "d", "e", "d", "a"]
    out = encoder.progressive([[word] for word in words])
    assert encoder.categories_ == {"x0": ["a", "b", "c"]} and encoder.feature_names_out == ["x0=a", "x0=b", "x0=c", "x0 is missing"]
    np.testing.assert_array_equal(out[[0, 2, 3, 7], :3], np.eye(3)[[0, 0, 2, 0]])
    assert (out[2:, :3].sum(axis=1) == 1).all() and (out[4] == out[6]).all()
    assert not out[1].any() and encoder.transform_one(["b"]).tolist() == [0, 1, 0, 0]  # "c" came between
    # whole numbers are one word, whatever they come as; what is not whole is another
    numbered = RunningEncoder(indicators=False).progressive([["a"], ["b"], [1], [1.0], ["1"], [True], [1.5], [np.int8(1)]])
    assert numbered.argmax(axis=1)[2:].tolist() == [2, 2, 2, 3, 4, 2]


def test_two_words_are_one_column():
    """The second has its own from the third on, whatever the chunks."""
    words = ["no", "yes", None, "no", "yes", "yes", "maybe", "yes", "no", "maybe"]
    rows = [[word] for word in words]
    whole, parts, single = (RunningEncoder(4, indicators=False) for _ in range(3))
    out = whole.progressive(rows)
    slots = [0, None, None, 0, None, None, 2, 1, 0, 2]
    np.testing.assert_array_equal(out, [np.eye(4)[slot] if slot is not None else np.zeros(4) for slot in slots])
    np.testing.assert_array_equal(np.concatenate([parts.progressive(rows[i : i + 3]) for i in range(0, 10, 3)]), out)
    for row, expected in zip(rows, out, strict=True):
        if single._state is not None:
            np.testing.assert_array_equal(single.transform([row, ["no"], row]), [expected, np.eye(4)[0], expected])
        np.testing.assert_array_equal(single.progressive([row])[0], expected)
    both = RunningEncoder(2, indicators=False).progressive(rows[:2])  # with two slots each has one
    np.testing.assert_array_equal(both, np.eye(2))


def test_categories_are_words_whatever_they_are_called():
    """Numbers, too; and of what is called so it is not said that it has many values."""
    codes = np.arange(200) % 100
    for column in (pd.Categorical(codes), pd.Categorical([f"c{code}" for code in codes])):
        encoder = RunningEncoder(slots=8, indicators=False).fit(pd.DataFrame({"zip": column}))
        assert encoder.kinds_ == {"zip": "category"} and len(encoder.categories_["zip"]) == 8
    as_numbers = RunningEncoder(slots=8, indicators=False).fit(pd.DataFrame({"zip": pd.Categorical(codes)}))
    np.testing.assert_array_equal(as_numbers.transform([{"zip": 3}, {"zip": "3"}, {"zip": 3.0}]), np.eye(8)[[3, 3, 3]])


def test_words_that_come_too_late_are_spread_over_the_slots():
    early = pd.DataFrame({"x": pd.Categorical([f"early {i}" for i in range(8)])})
    encoder = RunningEncoder(slots=8, indicators=False).partial_fit(early)
    late = [[f"late {i}"] for i in range(200)]
    rows = encoder.progressive(late)
    assert (rows.sum(axis=1) == 1.0).all() and (rows.sum(axis=0) > 8).all()  # 25 each, more or less
    assert np.array_equal(encoder.transform(late), rows)


def test_rare_words_and_holes_do_not_dominate_distances():
    rng = np.random.default_rng(0)
    n = 2000
    rows = [[x, "rare" if i % 500 == 499 else "usual", None if i % 700 == 699 else i % 2 == 0, ""[: i % 3] or ("a", "b")[i % 2]]
            for i, x in enumerate(rng.normal(50, 10, n))]
    scaled = ok.RunningScaler().fit_transform(RunningEncoder().fit_transform(rows))
    # a number differs by sqrt(2), in the root mean square, and so do the two words
    assert np.abs(scaled).max() < 5.0
    at = scaled[499] - scaled[498]
    assert np.linalg.norm(at[2:19]) == pytest.approx(np.sqrt(2.0))
    hole = scaled[699] - scaled[697]  # the truth value goes on to have two values
    assert np.linalg.norm(hole[19:21]) <= 2.0 + 1e-9


def test_dates_are_a_trend_and_points_on_circles():
    begin = datetime(2024, 1, 1, 6)  # a Monday
    times = [begin + timedelta(hours=7 * i) for i in range(200)]
    out = RunningEncoder().progressive([[time] for time in times])
    names = ["x0", *(f"x0 {cycle} {part}" for cycle in ("day", "week", "year") for part in ("sin", "cos")), "x0 is missing"]
    assert RunningEncoder().fit([[begin]]).feature_names_out == names
    days = np.arange(200) * 7 / 24
    np.testing.assert_allclose(out[:, 0], days, atol=1e-9)
    for k, (since, period) in enumerate([(0.25, 1.0), (0.25, 7.0), (0.25, 365.2425)]):
        angle = 2 * np.pi * (days + since) / period
        np.testing.assert_allclose(out[:, 1 + 2 * k : 3 + 2 * k], np.column_stack([np.sin(angle), np.cos(angle)]), atol=1e-9)
    same = [
        [[time.isoformat()] for time in times],
        [[time.isoformat(" ") + "Z"] for time in times],
        [[time.replace(tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=5)))] for time in times],
        np.array(times, dtype="M8[s]")[:, None],
        pd.DataFrame({"x0": times}),
        pd.DataFrame({"x0": pd.Series(times).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")}),
    ]
    for rows in same:
        np.testing.assert_array_equal(RunningEncoder().progressive(rows), out)
    gap = RunningEncoder(cycles=None).progressive([["2024-01-01"], ["2024-01-05"], ["2024-01-08"], [None], ["2024-01-09"]])
    np.testing.assert_array_equal(gap, [[0, 0], [4, 0], [7, 0], [7, 1], [8, 0]])  # time goes on from the latest
    np.testing.assert_array_equal(
        RunningEncoder().progressive([[date(1969, 12, 31)], ["1970-01-02"]])[:, 0], [0.0, 2.0]
    )
    assert RunningEncoder(cycles=["week"]).fit([[begin]]).n_features_out_ == 4


def test_columns_go_by_their_names():
    frame = table()
    encoder = RunningEncoder().fit(frame)
    shuffled = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(frame))
    np.testing.assert_array_equal(encoder.transform(shuffled.to_dict("records")), encoder.transform(frame))
    assert encoder.feature_names_in_.tolist() == list(frame) and encoder.n_features_in_ == 8
    fewer = encoder.transform_one({"city": "Oslo"})
    np.testing.assert_array_equal(fewer, encoder.transform([{**dict.fromkeys(frame), "city": "Oslo"}])[0])
    named = RunningEncoder(columns=["a", "b"]).progressive([{"b": 1}, {"a": "x", "b": 2}])
    np.testing.assert_array_equal(RunningEncoder(columns=["a", "b"]).progressive(pd.DataFrame({"b": [1, 2], "a": [None, "x"]})), named)
    shown = RunningEncoder().set_output(transform="pandas").fit(frame)
    assert list(shown.transform(shuffled)) == shown.feature_names_out
    np.testing.assert_array_equal(shown.transform(shuffled), encoder.transform(frame))


def test_refused_calls_change_nothing_and_say_where():
    frame = table()
    encoder = RunningEncoder().fit(frame)
    before = pickle.dumps(encoder)
    good = frame.to_dict("records")[1]
    bad = [
        ([good, {**good, "count": np.inf}], "Row 1 of X, column 'count': expected a finite number"),
        ([good, {**good, "count": 10**400}], "Row 1 of X, column 'count': expected a finite number"),
        ([good, {**good, "city": ["Rome"]}], r"Row 1 of X, column 'city': .* Got \['Rome'\]"),
        ([good, {**good, "count": 1j}], "Row 1 of X, column 'count': .* Got 1j"),
        (frame.assign(town="Rome"), "has the new column 'town'"),
        (frame.drop(columns="city"), "has no column 'city'"),
        ([good, [1, 2]], "Row 1 of X: expected a dictionary"),
        ([[1, 2], [1]], "Row 1 of X has 1 entries; expected 2"),
        ([[1, 2]], "X has 2 features, but RunningEncoder is expecting 8"),
        (np.zeros(8), "Expected 2D array"),
        (np.zeros((0, 8)), "0 sample"),
        (pytest.importorskip("scipy.sparse").csr_matrix((2, 8)), "sparse"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "different names"),
    ]
    for rows, message in bad:
        for method in (encoder.partial_fit, encoder.progressive, encoder.transform, encoder.fit):
            if method == encoder.fit and message.startswith(("X has", "has")):
                continue  # a fresh start takes them
            with pytest.raises((ValueError, TypeError), match=message):
                method(rows)
            assert pickle.dumps(encoder) == before, message
    for parameters in ({"slots": 0}, {"slots": 2.5}, {"cycles": ["month"]}, {"cycles": 3}, {"indicators": 1}, {"columns": []}):
        with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of RunningEncoder"):
            RunningEncoder(**parameters).fit(frame)
    for name in ("transform", "transform_one", "get_feature_names_out"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(RunningEncoder(), name)(*[frame][: name != "get_feature_names_out"])
    with pytest.raises(TypeError, match="columns had no names"):
        RunningEncoder().fit([[1, 2]]).transform([{"a": 1, "b": 2}])
    assert not hasattr(RunningEncoder(), "categories_") and not hasattr(RunningEncoder().fit([[1]]), "feature_names_in_")


@pytest.mark.parametrize("indicators", [True, False])
def test_a_block_changes_nothing_until_its_first_rows_are_committed(indicators):
    """Whatever they decide: kinds of columns, categories, first dates, means, invalid values."""
    frame = table(120).astype(object)
    frame.loc[frame.index[:20], ["due", "note"]] = None
    frame.loc[frame.index[40:50], "count"] = "many"
    make = lambda: RunningEncoder(4, indicators=indicators)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for begin, n in [(0, 1), (0, 20), (0, 21), (0, 45), (1, 19), (1, 20), (1, 60), (21, 1), (21, 99), (60, 60)]:
            encoder = make() if begin == 0 else make().fit(frame[:begin])
            before = encoder.to_dict()
            encoder.open(frame[begin : begin + 7])  # never committed
            block = encoder.open(frame[begin:])
            assert encoder.to_dict() == before
            block.commit(n)
            block.commit(n)  # what was interrupted is done again
            expected = make().fit(frame[: begin + n])
            assert encoder.to_dict() == expected.to_dict()
            np.testing.assert_array_equal(encoder.transform(frame), expected.transform(frame))
            if begin:
                np.testing.assert_array_equal(block.rows, make().fit(frame[:begin]).progressive(frame[begin:]))


def test_a_word_among_numbers_is_taken_for_missing_with_one_warning():
    rows = [{"zip": "12345", "day": "2024-01-01"}, {"zip": "B7", "day": "soon"}, {"zip": "C8", "day": 5}]
    encoder = RunningEncoder()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        out = encoder.progressive(rows)
    for warning, words in zip(said, ("Row 1 of X, column 'zip': expected a number.*Got 'B7'.*pandas.to_numeric.*categories",
                                     "Row 1 of X, column 'day': expected a date.*Got 'soon'.*pandas.to_datetime")):
        assert re.search(words, str(warning.message))
    assert len(said) == 2 and encoder.invalid_ == {"zip": 2, "day": 2}
    np.testing.assert_array_equal(columns_of(encoder, out, "zip"), [[12345, 0], [12345, 1], [12345, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.partial_fit(rows)  # it was said
        encoder.transform(rows)
        fresh = RunningEncoder().partial_fit(rows[:1])
        with pytest.raises(UserWarning):
            fresh.partial_fit(rows)
        assert fresh.count_ == 1
        assert RunningEncoder().fit(pd.DataFrame(rows).astype("category")).categories_["zip"] == ["12345", "B7", "C8"]


def test_copies_go_on_alike_and_nonsense_is_refused():
    frame = table(120)
    encoder = RunningEncoder(slots=4).fit(frame[:60])
    restored = RunningEncoder(slots=4)
    restored.restore(json.loads(json.dumps(encoder.to_dict())))
    expected = pickle.loads(pickle.dumps(encoder)).progressive(frame[60:])
    np.testing.assert_array_equal(restored.progressive(frame[60:]), expected)
    fresh = encoder.copy()
    np.testing.assert_array_equal(fresh.progressive(frame[60:]), expected)
    assert fresh.to_dict() == restored.to_dict() and encoder.count_ == 60
    learned = encoder.to_dict()
    layouts = [{"slots": 0}, {"slots": 2.0}, {"slots": 2**30}, {"kinds": ["category"] * 8}, {"cycles": ["month"]},
               {"indicators": None}, {"kinds": []}, {"means": 1}, {"means": 4}]
    mean, count, *shown = learned["statistics"]
    changed_statistics = [[[np.inf] * 8, count, *shown], [mean, [-1.0] * 8, *shown], [mean, [1e9] * 8, *shown], [mean, count, ["few"] * 8, shown[1]]]
    broken = {
        "layout": [{}, *({**learned["layout"], **changed} for changed in layouts)], "rows": [0, "many"],
        "kinds": [[], learned["kinds"][:-1], ["odd"] * 8], "codes": [[["a", "a"]] * 8, [[1]] * 8, [list(map(str, range(101)))] * 8],
        "names": [["a"] * 8, ["a"]], "statistics": [learned["statistics"][:3], [[0.0]] * 4, *changed_statistics],
        "invalid": [[-1] * 8, [0.5] * 8], "origins": [["2024"] * 8], "seen": [[0] * 7, [-1] * 8, [101] * 8, [1.0] * 8],
        "overall": [[[1.0], [0.0], [0.0]], 3], "means": [3],
    }
    assert set(broken) == set(learned)
    for name, values in broken.items():
        for value in values:
            with pytest.raises((ValueError, TypeError)):
                RunningEncoder().restore({**learned, name: value})
    with pytest.raises(ValueError):
        RunningEncoder().restore({"slots": 3})


# ---- Means of targets -----------------------------------------------------------------------------


def surprise_of(history, y, is_class):
    """By how much y is above the mean of the rows before it, and the history with what it counts as."""
    count, mean, variance = history
    unit = 1.0 if is_class else variance**0.5
    gap = y - mean
    found = 0.0
    if count and unit:
        gap = np.clip(gap, -4 * unit, 4 * unit)
        found = gap / unit
    count = min(count + 1, 30)
    return found, (count, mean + gap / count, (1 - 1 / count) * (variance + gap**2 / count))


def means_of(words, targets, slots, is_class=False):
    """The mean of the targets of each word in the rows before, one number a time, and a row more for what comes next."""
    history, known, errors, out = (0, 0.0, 0.0), {}, [0.0, 0.0], []
    for word, y in zip(words, [*targets, None], strict=True):
        count, total, late = known.get(word, (0, 0.0, 0.0))
        means = total / (count + 1), late * min(count, 5) / (min(count, 5) + 1)
        is_full = len({*known, word} - {None}) > slots
        out.append(means[int(errors[1] < errors[0])] if is_full and word is not None else 0.0)
        if y is not None:
            surprise, history = surprise_of(history, y, is_class)
            if word is not None:
                if count > 5:
                    errors = [error + 0.002 * ((surprise - mean)**2 - error) for error, mean in zip(errors, means)]
                known[word] = count + 1, total + surprise, late + (surprise - late) / min(count + 1, 5)
    return np.array(out)


def coded_rows(model):
    """The encoded rows that a model learns from now on, in a list."""
    rows, learn = [], model._learn
    model.__dict__["_learn"] = lambda before, state, X, *others, **keywords: (
        rows.append(X), learn(before, state, X, *others, **keywords))[1]
    return rows


@pytest.mark.parametrize("size", [1, 7, 200])
def test_columns_with_many_words_have_means_of_earlier_targets(size):
    rng = np.random.default_rng(1)
    words = [None if hole else f"w{code}" for code, hole in zip(rng.zipf(1.5, 200) % 30, rng.random(200) < 0.05)]
    y = rng.normal(size=200).cumsum() + rng.normal(size=200) * 10.0
    y[[40, 90]] = 1e6
    labels = (np.digitize(y, [-5.0, 5.0, 12.0, 20.0]) + 1) % 5
    order = list(dict.fromkeys(labels.tolist()))
    codes = np.array([order.index(label) for label in labels])
    encode = RunningEncoder(slots=4)
    for model, targets, columns, is_class in (
        (ok.KRLS("squared", encode=encode), y, [y], False),
        (ok.KRLS("squared", encode=encode), np.column_stack([y, -y, y * y, y]), [y, -y, y * y], False),
        (ok.NORMA("hinge", encode=encode), np.where(y > 0, 1, -1), [y > 0], True),
        (ok.NORMA("multiclass_hinge", encode=encode), labels, [codes == 1, codes == 2, codes == 3], True),
        (ok.NORMA("novelty", encode=encode), None, [], True),
    ):
        if is_class and len(columns) == 3:
            columns[0] = (codes == 1) | (codes == 4)
        rows = coded_rows(model)
        for first in range(0, 199, size):
            part = slice(first, min(first + size, 199))
            model.partial_fit([[word] for word in words[part]], None if targets is None else targets[part])
        expected = [means_of(words, column[:199].astype(float), 4, is_class) for column in columns]
        found = model.encoder_.transform([[words[199]]])
        assert found.shape == (1, 5 + len(columns))
        for k, column in enumerate(expected):
            np.testing.assert_allclose(np.concatenate(rows)[:, 4 + k], column[:199], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found[0, 4 + k], column[199], rtol=1e-9, atol=1e-12)
        restored = pickle.loads(pickle.dumps(model))
        assert restored._encoder.to_dict() == model._encoder.to_dict()
        again = targets[:30] if targets is not None else None
        for each in (model, restored):
            each.partial_fit([[word] for word in words[:30]], again)
        assert restored._encoder.to_dict() == model._encoder.to_dict()


def test_a_block_of_words_counts_as_far_as_it_is_committed():
    rng = np.random.default_rng(2)
    words, y = [[f"w{code}"] for code in rng.integers(0, 20, 90)], rng.normal(size=(90, 1))

    def learned(*parts):
        encoder = RunningEncoder(slots=3)
        encoder._means = 1
        for first, last, committed in parts:
            block = encoder.open(words[first:last])
            block.tell(block.rows, y[first:last], False)
            block.commit(last - first)
            block.commit(committed - first)
        return encoder.to_dict()

    assert learned((0, 30, 30), (30, 90, 50)) == learned((0, 50, 50)) == learned((0, 90, 50))
    broken = learned((0, 50, 50))
    for means in ([[]], [[[0.0, 0.0, 0.0]]], [[*broken["means"][0][:-1], [99.0, 0.0, 0.0]]], [broken["means"][0] * 2], []):
        with pytest.raises((ValueError, TypeError)):
            RunningEncoder().restore({**broken, "means": means})


def test_single_rows_of_words_are_encoded_without_a_table(monkeypatch):
    rng = np.random.default_rng(3)
    rows = [{"word": f"w{i % 25}" if rng.random() > 0.1 else None, "flag": ("a", "b")[i % 2],
             "x": [1, 2.5, None, np.nan][rng.integers(4)]} for i in range(150)]
    y = rng.normal(size=150)
    whole = ok.SILK("squared", encode=True, scale=True).partial_fit(rows, y)
    model = ok.SILK("squared", encode=True, scale=True).partial_fit(rows[:130], y[:130])
    monkeypatch.setattr("onlinekernels.preprocessing.encoding.Table.of", None)
    for row, target in zip(rows[130:], y[130:], strict=True):
        model.learn_one(row, target)
    assert model._encoder.to_dict() == whole._encoder.to_dict()
    found = [model.predict_one(row) for row in rows[:20]]
    monkeypatch.undo()
    np.testing.assert_allclose(found, whole.predict(rows[:20]), rtol=1e-12)
    for value in (10**400, np.inf, -np.inf):
        for call in (lambda row: model.learn_one(row, 1.0), model.predict_one):
            with pytest.raises(ValueError, match="Row 0 of X, column 'x': expected a finite number"):
                call({**rows[0], "x": value})


def test_relevance_is_that_of_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"word": rng.choice([*"abcd"], 400), "x": rng.normal(size=400), "same": 1.5, "empty": None,
                          "noise": rng.normal(size=400)})
    y = (frame["word"] == "a") * 2.0 + np.sin(2 * frame["x"])
    for model in (ok.OnlineKernelRegressor("low"), ok.OnlineKernelClassifier("low"), ok.SelfTuned("squared", encode=True)):
        for rows in (slice(0, 20), slice(20, 400)):
            model.partial_fit(frame[rows], y[rows] > 1 if "Classifier" in repr(model) else y[rows])
            relevance = model.relevance_
            assert list(relevance) == list(frame.columns) and sum(relevance.values()) == pytest.approx(1.0)
            assert relevance["same"] == relevance["empty"] == 0.0
        assert relevance["word"] == max(relevance.values()), relevance
        assert "word" in getattr(model, "report", lambda: "word")()


# ---- Texts ----------------------------------------------------------------------------------------

# Texts that are one thing by Python and another by NumPy, and what they shall be
TEXTS = {
    "number": ("3", " -3.5e2 ", "+7", ".5", "12.", "1e400", "Infinity", "000", "20240229"),
    "date": ("2024-02-29", "0001-01-01", "9999-12-31 23:59:59.999999", "2024-02-29T12:30", "2024-02-29 12:30:01,5Z", "2024-02-29t00:00z",
             "2024-02-29T12:30+01", "2024-02-29T12:30-0130", "2024-02-29 12:30 +01:30", "0001-01-01T00:00+05:00", "12:30", "23:59:59.25"),
    "category": ("1_000", "1,5", "1,234.5", "5%", "$12", "12 kg", "--5", "0x10", "0000-01-01", "2024-02-30", "2024-2-9", "2024-02", "02/29/2024",
             "29.02.2024", "29 Feb 2024", "2024-02-29T24:00", "2024-02-29 12:60", "2024-02-29T12:30+24", "2024-02-29T12:30:00+01:60",
             "2024-02-29+01:00", "24:00", "9:05", "9:05 pm", "2024-02-29\n2024-03-01", "today", "now", "May 5"),
    None: ("", "  ", "nan", "N/A", " - ", "NaT", "?"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_what_a_text_is(kind):
    for text in TEXTS[kind]:
        assert read(text)[0] == kind == read(f" {text} ")[0], text


def test_numbers_and_dates_in_texts_are_what_they_were_written_from():
    rng = np.random.default_rng(0)
    numbers = [repr(value) for value in rng.normal(size=100).tolist()] + [f"{value:.3e}" for value in rng.normal(size=100)]
    np.testing.assert_array_equal(RunningEncoder().progressive([[text] for text in numbers])[:, 0], [float(text) for text in numbers])
    dates = [datetime(2010, 1, 1) + timedelta(microseconds=int(s)) for s in rng.integers(0, 5 * 10**14, 200)]
    expected = RunningEncoder().progressive([[at] for at in dates])
    zone = timezone(timedelta(hours=-3, minutes=-30))
    forms = (datetime.isoformat, str, lambda at: at.isoformat() + "Z", lambda at: str(at).replace(".", ","),
             lambda at: at.replace(tzinfo=timezone.utc).astimezone(zone).isoformat())
    for form in forms:
        np.testing.assert_array_equal(RunningEncoder().progressive([[form(at)] for at in dates]), expected)
    out = RunningEncoder(cycles=["day"], indicators=False).progressive([["06:00"], ["18:00:00"], [clock(0, 0)], [None]])
    np.testing.assert_allclose(out[:, 1:], [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], atol=1e-12)


def test_a_text_is_the_same_in_any_company():
    """In a column that is converted at once, and alone; in columns of numbers, of dates and of words."""
    texts = [text for texts in TEXTS.values() for text in texts if text not in ("1e400", "Infinity")]
    others = [None, float("nan"), 5, True, 2.5, date(2024, 2, 29), datetime(2024, 2, 29, 12), pd.Timestamp("2024-02-29"), np.float32(1.5)]
    rng = np.random.default_rng(0)
    for begin in ("7", "2024-01-01", "red", None):
        for values in (texts, texts + others):
            for some in (2, 3, 8):
                rows = [[begin], *([values[i]] for i in rng.integers(0, len(values), 200))]
                whole, parts, single = RunningEncoder(), RunningEncoder(), RunningEncoder()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = whole.progressive(rows)
                    pieces = np.concatenate([parts.progressive(rows[i : i + some]) for i in range(0, len(rows), some)])
                    alone = np.concatenate([single.progressive([row]) for row in rows])
                np.testing.assert_array_equal(pieces, expected)
                np.testing.assert_array_equal(alone, expected)
                assert whole.to_dict() == parts.to_dict() == single.to_dict()
                ahead = whole.transform(rows)
                np.testing.assert_array_equal(ahead, np.concatenate([whole.transform([row]) for row in rows]))


def test_texts_that_would_become_hundreds_of_categories_are_said_once():
    def said_by(rows, encoder=None):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            (encoder or RunningEncoder()).partial_fit(rows)
        return [str(warning.message) for warning in said]

    def rows(different, n=300):
        return [{"id": f"C{i % different:05d}", "kind": "abc"[i % 3]} for i in range(n)]

    encoder = RunningEncoder()
    assert said_by(rows(300)[:99], encoder) == []
    said = said_by(rows(300)[99:], encoder)
    assert len(said) == 1 and "Column 'id': 100 of its first 100 texts are different, such as 'C00099'" in said[0]
    assert "share 16 columns, which says little" in said[0] and "pandas.to_numeric" in said[0]
    assert "pandas.to_datetime" in said[0] and said_by(rows(300), encoder) == []
    with pytest.warns(UserWarning, match="beside them is the mean of earlier targets of each"):
        ok.OnlineKernelRegressor("low").partial_fit(rows(300), np.arange(300.0))
    single = RunningEncoder()
    assert [i for i, row in enumerate(rows(300)) if said_by([row], single)] == [99]
    for different, count in ((81, 1), (80, 0)):
        assert len(said_by(rows(different))) == count
    assert said_by(rows(300), RunningEncoder(slots=100)) == []  # a column for each was asked for
    for form in ("${:,.2f}", "{:,.2f}%", "{:02.0f}/03/2024 {:02.0f}:15 pm"):
        texts = [{"paid": form.format(1000 + 3.7 * i, i % 60)} for i in range(150)]
        assert [f"such as {texts[99]['paid']!r}" in message for message in said_by(texts)] == [True], form
    holes = [{"id": None}, *({"id": ""} for _ in range(200)), *({"id": "a"} for _ in range(19)), *({"id": f"C{i}"} for i in range(80))]
    assert said_by(holes) == [] and len(said_by([*holes, {"id": "C95"}])) == 1


def test_frames_of_polars_are_those_of_pandas():
    pl = pytest.importorskip("polars")
    frame = table(120).drop(columns="grade")
    expected = RunningEncoder().progressive(frame)
    lists = frame.astype(object).where(frame.notna(), None).to_dict("list")
    same = pl.DataFrame({**lists, "at": [None if at is None else at.to_pydatetime() for at in lists["at"]]})
    np.testing.assert_array_equal(RunningEncoder().progressive(same), expected)
    tokyo = same.with_columns(pl.col("at").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"))
    np.testing.assert_array_equal(RunningEncoder().progressive(tokyo), expected)
    due = RunningEncoder().progressive(same.select("due"))  # has room for words as well, as its first value is missing
    np.testing.assert_array_equal(RunningEncoder().progressive(same.select(pl.col("due").str.to_date()))[:, :7], due[:, :7])
    words = pl.DataFrame({"a": ["x", "y", None, "x"], "b": [1.5, None, 2.5, 0.5], "c": [clock(6), None, clock(12), clock(6)]})
    out = RunningEncoder(2, cycles=["day"]).progressive(words.with_columns(pl.col("a").cast(pl.Categorical)))
    rows = [tuple(row) for row in words.rows()]
    np.testing.assert_array_equal(out, RunningEncoder(2, cycles=["day"]).progressive(rows))


# ---- encode= of the algorithms ------------------------------------------------------------------


def people(n=150, seed=0):
    """(dictionaries with holes, labels of two kinds, numbers)."""
    frame = table(n, seed)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    y = np.array([row["city"] in ("Rome", "Oslo") or bool(row["new"]) for row in rows])
    return rows, y, np.array([row["count"] + 0.0 for row in rows])


def keyed(n=60):
    """(dictionaries of which some have names that the first one lacks, targets)."""
    rng = np.random.default_rng(1)
    rows = [{"a": a, "b": b} for a, b in rng.normal(size=(n, 2)).tolist()]
    for i in range(9, n):
        rows[i].update({"c": float(i % 5)} if i % 3 else {"word": "xyz"[i % 3], "at": f"2024-01-{i % 28 + 1:02}"})
    return rows, np.array([row["a"] + row.get("c", 0.0) for row in rows])


@pytest.mark.parametrize("scale", [False, True])
def test_new_keys_join_where_columns_that_were_0_change_no_kernel_value(scale):
    rows, y = keyed()
    later = [{**row, "unknown": 3.0} for row in rows]
    for make in (lambda: ok.KRLS("squared", ok.Gaussian(3.0), encode=True, scale=scale), lambda: ok.NORMA("squared", "linear", step=1e-3, encode=True, scale=scale),
                 lambda: ok.SILK("squared", ok.Gaussian(3.0), encode=True, scale=scale, budget=20)):
        whole, parts, single = make(), make(), make()
        expected = whole.progressive(rows, y)
        pieces = np.concatenate([parts.progressive(rows[i : i + 7], y[i : i + 7]) for i in range(0, len(rows), 7)])
        alone = []
        for row, target in zip(rows, y.tolist(), strict=True):
            alone.append(single.predict_one(row) if hasattr(single, "t_") else 0.0)
            single.learn_one(row, target)
        np.testing.assert_allclose(pieces, expected, atol=1e-8)
        joining = [i for i in range(1, 60) if not rows[i].keys() <= set().union(*rows[:i])]  # new keys count when they are learned
        if not scale:  # a scaler has seen the row that is learned
            np.testing.assert_allclose(np.delete(alone, joining), np.delete(expected, joining), atol=1e-8)
        assert whole.encoder_.to_dict() == parts.encoder_.to_dict() == single.encoder_.to_dict()
        assert [*whole.encoder_.kinds_.items()] == [("a", "number"), ("b", "number"), ("word", "category"), ("at", "date"), ("c", "number")]
        np.testing.assert_allclose(single.predict(rows), whole.predict(rows), atol=1e-8)
        np.testing.assert_array_equal(whole.predict(later), whole.predict(rows))  # what is new is ignored in predictions
        assert whole.predict_one(later[0]) == whole.predict_one(rows[0])
        before = pickle.dumps(whole)
        with pytest.raises(ValueError):
            whole.partial_fit(later, np.append(y[1:], np.nan))
        assert pickle.dumps(whole) == before


def test_new_keys_are_ignored_with_one_warning_where_models_cannot_grow():
    rows, y = keyed()
    plain = [{"a": row["a"], "b": row["b"]} for row in rows]
    for make in (lambda: ok.OnlineKernelRegressor("low"), lambda: ok.NORMA("squared", encode=True), lambda: ok.Smoother("squared", encode=True)):
        model, single = make(), make()
        with pytest.warns(UserWarning, match="The columns 'word', 'at', 'c' are new after the first row and ignored"):
            model.partial_fit(rows, y)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            for row, target in zip(rows, y.tolist(), strict=True):
                single.learn_one(row, target)
            model.partial_fit(rows, y)
        assert len([warning for warning in said if "ignored" in str(warning.message)]) == 2  # each name once
        expected = make().partial_fit(plain, y)
        np.testing.assert_allclose(single.predict(rows), expected.predict(plain), atol=1e-9)
        np.testing.assert_allclose(model.predict(rows), expected.partial_fit(plain, y).predict(plain), atol=1e-9)


def test_encode_is_settled_by_the_first_fit():
    rows, y, _ = people()
    model = ok.SILK(encode=True, scale=True).fit(rows, y)
    for other in (False, RunningEncoder(3)):
        changed = pickle.loads(pickle.dumps(model)).set_params(encode=other)
        with pytest.raises(ValueError, match="'encode' parameter changed after fitting"):
            changed.partial_fit(rows, y)
        with pytest.raises(ValueError, match="'encode' parameter changed after fitting"):
            changed.learn_one(rows[0], True)
    assert model.set_params(encode=RunningEncoder(3)).fit(rows, y).encoder_.slots == 3
    X = np.random.default_rng(0).normal(size=(150, 3))
    model.set_params(encode=False).fit(X, y)
    assert not hasattr(model, "encoder_") and model.n_features_in_ == 3
    assert not hasattr(ok.SILK(encode=np.False_).fit(X, y), "encoder_")
    np.testing.assert_array_equal(ok.SILK(encode=True).fit(X, y).decision_function(X), ok.SILK().fit(X, y).decision_function(X))


def test_models_that_start_from_others_and_sparse_rows():
    rows, y, _ = people()
    first = ok.SILK("hinge", ok.Gaussian(3.0), encode=True).fit(rows[:80], y[:80])
    second = ok.SILK("hinge", ok.Gaussian(3.0), encode=True).partial_fit(rows[80:], y[80:], initial=first)
    assert second.encoder_.to_dict() == ok.SILK(encode=True).fit(rows, y).encoder_.to_dict() and first.encoder_.count_ == 80
    with pytest.raises(ValueError, match="encode=True is needed here"):
        ok.SILK("hinge", ok.Gaussian(3.0)).partial_fit(rows, y, initial=first)
    with pytest.raises(ValueError, match="words of their own"):
        ok.combine([first, second])
    sparse = pytest.importorskip("scipy.sparse").random_array((150, 20), density=0.2, format="csr", random_state=0)
    model = ok.SILK("hinge", "linear", encode=True).fit(sparse, y)
    np.testing.assert_array_equal(model.predict(sparse), ok.SILK("hinge", "linear").fit(sparse, y).predict(sparse))
    part = first.contributions(rows[0], top=1)
    assert part[0].point.shape == (first.encoder_.n_features_out_,)


def test_the_encoder_has_seen_a_row_that_is_learned_and_then_warned_of():
    """Warnings that are errors come after the row: the model has learned it, and so has its encoder."""
    rows = 3.0 * np.random.default_rng(0).normal(size=(300, 3))
    model = ok.NORMA("squared", "linear", step=3.0, regularization=0.0, encode=True).partial_fit(rows[:5], rows[:5, 0])
    with warnings.catch_warnings(), pytest.raises(ok.LearningWarning, match="diverges"):
        warnings.simplefilter("error")
        for row in rows[5:]:
            model.learn_one(row, row[0])
    assert 5 < model.t_ == model.encoder_._state.rows < len(rows)
