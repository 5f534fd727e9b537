"""Numbers and dates in the forms in which people write them, against what they were written from."""
import json
import re
import subprocess
import sys
import warnings
from datetime import datetime, time, timedelta

import numpy as np
import pytest

from onlinekernels import RunningEncoder
from onlinekernels.__main__ import main
from onlinekernels.nouns.formats import MANY, date_readings, number_readings
from onlinekernels.nouns.values import kind_of
from onlinekernels.streams import read


def swapped(text):
    """Points as commas, and commas as points."""
    return text.translate(str.maketrans(",.", ".,"))


NUMBERS = {
    "thousands": lambda v: f"{v:,.2f}",
    "comma": lambda v: swapped(f"{v:,.2f}"),
    "percent": lambda v: f"{v:.2f}%",
    "dollars": lambda v: f"-${-v:,.2f}" if v < 0 else f"${v:,.2f}",
    "euros": lambda v: swapped(f"{v:,.2f}") + " €",
    "code": lambda v: f"CHF {v:.2f}",
    "spaces": lambda v: f"{v:,.2f}".replace(",", "\u202f").replace(".", ","),
    "swiss": lambda v: f"{v:,.2f}".replace(",", "'"),
    "exponent": lambda v: f"{v:.8e}",
}
DATES = {
    "american": "%m/%d/%Y %H:%M:%S", "short": "%m/%d/%y %H:%M:%S", "german": "%d.%m.%Y %H:%M:%S", "dashed": "%d-%m-%Y %H:%M:%S",
    "slashed": "%Y/%m/%d %H:%M:%S", "named": "%d %b %Y %H:%M:%S", "long": "%B %d, %Y %I:%M:%S %p", "mail": "%a, %d %b %Y %H:%M:%S +0000",
    "log": "%d/%b/%Y:%H:%M:%S +0000", "iso": "%Y-%m-%dT%H:%M:%SZ", "fine": "%d-%b-%Y %H:%M:%S.%f",
}


def drawn(n=200, seed=0):
    rng = np.random.default_rng(seed)
    numbers = [0.25, *np.round(rng.normal(0.0, 10.0, n) ** 3, 2).tolist()]
    dates = [datetime(2023, 12, 30, 5, 7), *(datetime(2010, 1, 1) + timedelta(seconds=int(s)) for s in rng.integers(0, 5 * 10**8, n))]
    return numbers, dates


def said_by(call):
    """(what a call returns, what it warns of)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = call()
    return found, [str(warning.message) for warning in said]


@pytest.mark.parametrize("form", NUMBERS)
def test_numbers_are_what_they_were_written_from(form):
    numbers, _ = drawn()
    encoder = RunningEncoder()
    out = encoder.progressive([[NUMBERS[form](value)] for value in numbers])
    assert encoder.kinds_ == {"x0": "number"} and encoder.odd_ == {}
    np.testing.assert_allclose(out[:, 0], numbers, rtol=1e-12)


@pytest.mark.parametrize("form", DATES)
def test_dates_are_what_they_were_written_from(form):
    _, dates = drawn()
    encoder = RunningEncoder(indicators=True)
    out = encoder.progressive([[date.strftime(DATES[form])] for date in dates])
    assert encoder.kinds_ == {"x0": "date"} and encoder.odd_ == {}
    np.testing.assert_array_equal(out, RunningEncoder(indicators=True).progressive([[date] for date in dates]))


def test_a_time_of_day_is_a_place_on_the_circle_of_the_day():
    encoder = RunningEncoder(cycles=["day"], indicators=False)
    out = encoder.progressive([["06:00"], ["6:00 PM"], [time(0, 0)], [None]])
    np.testing.assert_allclose(out[:, 1:], [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], atol=1e-12)


def test_what_is_no_number_and_no_date_is_a_word():
    for text in ("1,2,3", "192.168.1.1", "12 kg", "--5", "1_000", "EURO 5", "1.2.3", "30.02.2024", "13/13/2024", "24-03-15", "25:00", "13:00 pm",
                 "Marina 5 2024", "May 5", "C0012", "$", "%", ",", "0,123,456", "12.5.", "2024-13-01", "15 Mar", "3:5"):
        assert kind_of(text) == "word", text
    for text in ("nan", "n/a", " - ", ""):
        assert kind_of(text) is None


def test_readings_by_both_conventions():
    assert number_readings("1,234").values == (1234.0, 1.234) and number_readings("1.234").values == (1.234, 1234.0)
    for text, values in (("12.5", (12.5, None)), ("0.846", (0.846, None)), ("12,5", (None, 12.5)), ("1,234.5", (1234.5, None)), ("-7", (-7.0,) * 2),
                         ("1.234.567", (None, 1234567.0)), ("- 5,5 %", (None, -5.5)), ("−3", (-3.0,) * 2)):
        assert number_readings(text).values == values, text
    first, second = date_readings("03/04/2024").values
    assert (second - first) // 86_400_000_000 == 30 and date_readings("03/03/2024").decides is None
    assert [date_readings(text).decides for text in ("03/14/2024", "14/03/2024", "14.03.2024", "2024-03-14")] == [0, 1, 1, None]
    # as POSIX has it, years of two digits are those from 1969 to 2068
    assert date_readings("01/01/68").values[0] > 0 > date_readings("01/01/69").values[0]


def test_the_first_text_that_can_mean_one_thing_decides():
    day = 86_400_000_000
    for texts, expected in (
        (["03/14/2024", "03/04/2024"], [0, -10]), (["14/03/2024", "03/04/2024"], [0, 20]), (["03/04/2024", "03/05/2024"], [0, 1]),
        (["03-04-2024", "04-04-2024"], [0, 1]), (["03.04.2024", "04.04.2024"], [0, 1]),
    ):
        out = RunningEncoder(cycles=None, indicators=False).progressive([[text] for text in texts])
        assert out[:, 0].tolist() == expected, texts
    for texts, expected in ((["0,5", "1.234"], [0.5, 1234.0]), (["0.5", "1,234"], [0.5, 1234.0]), (["1,234", "1.5"], [1234.0, 1.5]),
                            (["7", "1.234"], [7.0, 1.234]), (["7", "1,5", "2.345"], [7.0, 1.5, 2345.0])):
        assert RunningEncoder().progressive([[text] for text in texts])[:, 0].tolist() == expected, texts
    assert date_readings("02.01.1970").values[1] == day


def test_a_guess_that_was_wrong_is_said_and_so_is_one_that_stays():
    texts = [["03/04/2024"], ["04/04/2024"], ["14/04/2024"], ["05/04/2024"]]
    out, said = said_by(lambda: RunningEncoder(cycles=None, indicators=False).progressive(texts))
    assert out[:, 0].tolist() == [0.0, 31.0, 41.0, 32.0]
    assert len(said) == 1 and "Row 2 of X, column 'x0': '14/04/2024' tells" in said[0] and "kinds={0: 'day first'}" in said[0]
    given = RunningEncoder(cycles=None, indicators=False, kinds={0: "day first"}).progressive(texts)
    assert given[:, 0].tolist() == [0.0, 1.0, 11.0, 2.0]
    for text, way, count in (("1,234", "decimal comma", 1), ("03/04/2024", "day first", 1), ("03-04-2024", "month first", 1),
                             ("1.234", "", 0), ("$1,234", "", 0), ("03.04.2024", "", 0), ("03/03/2024", "", 0), ("12", "", 0)):
        encoder = RunningEncoder()
        assert said_by(lambda: encoder.partial_fit([[text]] * (MANY - 1)))[1] == []
        said = said_by(lambda: encoder.partial_fit([[text]] * 100))[1]
        assert len(said) == count and all(f"Row 0 of X, column 'x0': texts such as {text!r}" in it and way in it for it in said)


def test_a_text_against_the_convention_is_taken_for_missing():
    encoder = RunningEncoder(indicators=False)
    out, said = said_by(lambda: encoder.progressive([["12.5", "03/14/2024"], ["12,5", "14/03/2024"], ["12,50", "15/03/2024"]]))
    assert out[:, 0].tolist() == [12.5] * 3 and encoder.odd_ == {"x0": 2, "x1": 2}
    assert [re.search(r"expected a .*, as in", it)[0] for it in said] == [
        "expected a number, decimal point, as in", "expected a date, month first, as in"]


def test_any_chunking_gives_the_same_bits_and_the_same_words():
    rng = np.random.default_rng(1)
    numbers = ["12", "1.234", "1,234", "0.5", "0,5", "5%", "", "n/a", "$1,000.5", 3, 2.5, "x"]
    dates = ["03/04/2024", "05.06.2024", "14/03/2024", "03/14/2024", "2024-03-14", "", None, "soon", "10:30", "03-04-2024"]
    for seed in range(40):
        rows = [[numbers[i], dates[j]] for i, j in zip(rng.integers(0, 12, 60), rng.integers(0, 10, 60))]
        rows[0] = [["1,234", "03/04/2024"], ["1.234", "03-04-2024"], ["12", "05.06.2024"]][seed % 3]
        whole, single, apart = RunningEncoder(), RunningEncoder(), RunningEncoder()
        expected, said = said_by(lambda: whole.progressive(rows))
        parts = [said_by(lambda: single.progressive(rows[i : i + 1])) for i in range(60)]
        np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), expected)
        told = [re.sub(r"Row \d+", "Row", it) for _, its in parts for it in its]
        assert sorted(told) == sorted(re.sub(r"Row \d+", "Row", it) for it in said)
        apart.restore(json.loads(json.dumps(said_by(lambda: RunningEncoder().fit(rows[:20]))[0].to_dict())))
        ahead = said_by(lambda: apart.transform(rows[20:]))[0]
        np.testing.assert_array_equal(ahead, np.concatenate([apart.transform([row]) for row in rows[20:]]))
        np.testing.assert_array_equal(said_by(lambda: apart.progressive(rows[20:]))[0], expected[20:])
        assert whole.to_dict() == single.to_dict() == apart.to_dict()


def test_words_that_are_nearly_all_different_are_said_once():
    def rows(different, n=300):
        return [{"id": f"C{i % different:05d}", "kind": "abc"[i % 3]} for i in range(n)]

    encoder = RunningEncoder()
    assert said_by(lambda: encoder.partial_fit(rows(300)[:99]))[1] == []
    said = said_by(lambda: encoder.partial_fit(rows(300)[99:]))[1]
    assert len(said) == 1 and "Column 'id': 100 of its first 100 values are different words, such as 'C00099'" in said[0]
    assert said_by(lambda: encoder.partial_fit(rows(300)))[1] == []
    for different, count in ((95, 1), (94, 0)):
        assert len(said_by(lambda: RunningEncoder().partial_fit(rows(different)))[1]) == count
    assert said_by(lambda: RunningEncoder(kinds={"id": "word"}).partial_fit(rows(300)))[1] == []
    holes = [{"id": None}, *({"id": ""} for _ in range(200)), *({"id": "a"} for _ in range(5)), *({"id": f"C{i}"} for i in range(94))]
    assert said_by(lambda: RunningEncoder().partial_fit(holes))[1] == []
    assert len(said_by(lambda: RunningEncoder().partial_fit([*holes, {"id": "C95"}]))[1]) == 1


# ---- Targets, and files with semicolons ---------------------------------------------------------


def test_targets_are_numbers_in_the_same_forms(tmp_path):
    numbers, _ = drawn()
    numbers[1:] = [abs(value) + 1.0 for value in numbers[1:]]
    for form in ("thousands", "comma", "percent", "dollars", "euros", "swiss"):
        path = tmp_path / "a.tsv"
        path.write_text("x\ty\n" + "".join(f"{i}\t{NUMBERS[form](value)}\n" for i, value in enumerate(numbers)), encoding="utf-8")
        for options in ({}, {"label_type": "number"}):
            reader = read(path, target="y", chunk=64, **options)
            chunks = [y for _, y in reader]
            np.testing.assert_allclose(np.concatenate(chunks), numbers, rtol=1e-12)
        assert reader.position["labels"] == ("comma" if form in ("comma", "euros") else "float")
    path.write_text("x\ty\n1\t0,5\n2\t1.234\n3\t1.5\n")
    reader = read(path, target="y", chunk=1)
    chunks = iter(reader)
    assert next(chunks)[1].tolist() == [0.5]
    position = reader.position
    assert next(chunks)[1].tolist() == [1234.0]
    assert next(iter(read(path, target="y", chunk=1, start=position)))[1].tolist() == [1234.0]
    with pytest.raises(ValueError, match="line 4, column 'y': expected a number, decimal comma, as in rows before. Got '1.5'"):
        next(chunks)
    path.write_text("x\ty\n1\tred\n2\t5%\n")
    assert next(iter(read(path, target="y")))[1].tolist() == ["red", "5%"]
    path.write_text("x\ty\n" + "1\t1,234\n" * 40 + "1\t1,5\n")
    with pytest.warns(UserWarning) as said:
        assert [y for _, y in read(path, target="y", chunk=40)][1].tolist() == [1.5]
    assert "targets such as '1,234' may" in str(said[0].message) and "the target '1,5' tells" in str(said[1].message) and len(said) == 2


def test_thousands_between_semicolons(tmp_path):
    numbers, _ = drawn()
    path = tmp_path / "a.csv"
    path.write_text("x;y;word\n" + "".join(f'{NUMBERS["comma"](value)};"{NUMBERS["comma"](value)}";up\n' for value in numbers))
    for X, _ in read(path, target="word", chunk=1000):
        np.testing.assert_allclose(X, np.column_stack([numbers, numbers]))
    X, _ = next(iter(read(path, target="x", kinds="auto", chunk=1000)))
    np.testing.assert_allclose(RunningEncoder().progressive(X)[:, 0], numbers)


# ---- The command line ---------------------------------------------------------------------------


def test_a_table_of_such_texts_by_shell(tmp_path, capsys):
    numbers, dates = drawn(150)
    path = tmp_path / "a.csv"
    lines = [f'C{i:05d},{date:%d/%m/%Y},"{number:,.2f}",{i % 7}%,{"yes" if i % 2 else "no"}'
             for i, (number, date) in enumerate(zip(numbers, sorted(dates)))]
    path.write_text("\n".join(["id,when,amount,rate,late", *lines]) + "\n")
    options = ["--algorithm", "silk", "--loss", "hinge", "--chunk", "20"]
    with pytest.warns(UserWarning) as said:
        assert main(["learn", str(path), *options, "--save", str(tmp_path / "m.npz")]) == 0
    assert any("Column 'id'" in str(warning.message) for warning in said)
    from onlinekernels import load

    assert load(tmp_path / "m.npz").encoder_.kinds_ == {"id": "word", "when": "date", "amount": "number", "rate": "number"}
    assert main(["learn", str(path), *options, "--kinds", "id=word,when=day-first", "--save", str(tmp_path / "m.npz")]) == 0
    assert main(["predict", str(tmp_path / "m.npz"), str(path)]) == 0
    for bad in ("when", "when=soon", "=word", "when=day first,"):
        with pytest.raises(SystemExit):
            main(["learn", str(path), *options, "--kinds", bad])
        assert "must be COLUMN=KIND" in capsys.readouterr().err
    assert main(["learn", str(path), *options, "--kinds", "nowhen=date"]) in (1, 2)


def test_warnings_by_shell_are_one_line_that_names_options(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,late\n" + "".join(f"C{i:05d},{i % 2}\n" for i in range(120)))
    command = [sys.executable, "-m", "onlinekernels", "learn", str(path), "--algorithm", "silk", "--loss", "hinge"]
    lines = [line for line in subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines() if "'id'" in line]
    assert len(lines) == 1 and lines[0].startswith("python -m onlinekernels learn: Column 'id': 100 of its first 100")
    assert lines[0].endswith("(--kinds id=word takes them as they are, and says nothing.)")
