"""Tables as commands read them: columns, numbers, broken rows, quoted line breaks, formats; and all of it through `learn`."""

import gzip

import numpy as np
import pytest
from cases import each
from command_line import SINGLE, WORDS, X, Y, learn, learned_alike, write_table

from onlinekernels import SILK, load
from onlinekernels.__main__ import _parser, main
from onlinekernels.cli import tables
from onlinekernels.cli.options import Interruption

ROWS = [f"{a!r},{b!r},{t}" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True)]


def chunks_of(path, *options, target="-1"):
    """What a table gives."""
    arguments = _parser().parse_args(["learn", str(path), *map(str, options)])
    return list(tables.open_table(str(path), arguments, Interruption(), target=target).chunks())


def written(tmp_path, text, name="a.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode(**options))
    return path


def test_quoted_fields_go_over_lines(tmp_path, capsys):
    """Line breaks, delimiters and doubled quotes within quotes; a row has the line on which it begins."""
    text = 'note,size,label\r\n"two\r\nlines, one ""row""",1,a\r\nplain,2,b\r\n\r\n"""",3,a\r\n'
    (chunk,) = chunks_of(written(tmp_path, text))
    assert chunk.X.tolist() == [['two\r\nlines, one "row"', 1.0], ["plain", 2.0], ['"', 3.0]]
    assert chunk.y == ["a", "b", "a"] and chunk.lines == [2, 4, 6] and chunk.rows == 3
    table = "note,size,label\n" + "".join(f'"line {i % 7}\nof {i % 3}",{i % 5},{"ab"[i % 2]}\n' for i in range(200))
    path, model = written(tmp_path, table), tmp_path / "m.npz"
    arguments = ["learn", str(path), *SINGLE, "--chunk", "50", "--save"]
    assert main([*arguments, str(model), "--limit", "100"]) == main([*arguments, str(model), "--resume"]) == 0
    assert main([*arguments, str(tmp_path / "n.npz")]) == 0
    assert load(model).t_ == 200 and model.read_bytes() == (tmp_path / "n.npz").read_bytes()
    path.write_text(table.replace(",2,a", ",Z,a", 1))
    assert main(["learn", str(path), *SINGLE]) == 1
    assert "line 6, column 'size': expected a number. Got 'Z'" in capsys.readouterr().err


@each("end", ["\n", "\r\n", "\r"])
def test_ends_of_lines(tmp_path, end):
    (chunk,) = chunks_of(written(tmp_path, end.join(["a,b,c", "1,2,x", "3,4,y"])))
    assert chunk.X.tolist() == [[1, 2], [3, 4]] and chunk.y == ["x", "y"] and chunk.lines == [2, 3]


def test_a_quote_that_does_not_end_and_a_line_that_does_not(tmp_path, monkeypatch, capsys):
    path = written(tmp_path, '1,2\n"3,4\n5,6\n')
    assert main(["learn", str(path), *SINGLE]) == 1
    assert "a.csv, line 2: expected quotes that match" in capsys.readouterr().err
    path = written(tmp_path, "1,2\n3," + "4" * 200_000 + "\n5,6\n")
    assert main(["learn", str(path), *SINGLE]) == 1
    assert "a.csv, line 2: expected a shorter field" in capsys.readouterr().err
    monkeypatch.setattr(tables, "LONGEST", 1000)
    assert main(["learn", str(path), *SINGLE]) == 1
    assert "a.csv, line 2: expected a line of less than 1000 characters. It does not end." in capsys.readouterr().err


def test_columns_by_name_and_index(tmp_path):
    path = written(tmp_path, "a,b,1,b\n1,2,3,4\n")
    for options, target, X_, y in (
        ([], "1", [[1, 2, 4]], ["3"]),  # a name comes before an index
        ([], "0", [[2, 3, 4]], ["1"]),
        (["--features", "a,-1"], "1", [[1, 4]], ["3"]),
        ([], None, [[1, 2, 3, 4]], None),
    ):
        (chunk,) = chunks_of(path, "--header", *options, target=target)
        assert chunk.X.tolist() == X_ and chunk.y == y
    for options, target, message in (
        (["--header"], "b", "--target must be an index from -4 to 3, as several columns have that name"),
        (["--header"], "7", "--target must be a column, one of 'a', 'b', '1', 'b', or an index from -4 to 3"),
        (["--header", "--features", "a"], "a", "--target must not be one of --features"),
        (["--no-header"], "a", "an index from -4 to 3 of a column, as there is no header"),
        (["--header", "--delimiter", ";"], "-1", "has no column besides the target; .* .Is --delimiter ',' meant?."),
    ):
        with pytest.raises(ValueError, match=message):
            chunks_of(path, *options, target=target)


def test_headers(tmp_path):
    names, numbers = written(tmp_path, "a,b\n1,2\n", "names.csv"), written(tmp_path, "1,b\n1,2\n", "numbers.csv")
    assert [chunk.lines for chunk in chunks_of(names)] == [[2]] and chunks_of(numbers)[0].lines == [1, 2]
    assert chunks_of(names, "--no-header")[0].lines == [1, 2] and chunks_of(numbers, "--header")[0].lines == [2]
    assert chunks_of(written(tmp_path, "")) == [] and chunks_of(written(tmp_path, "a,b\n\n \n")) == []


def test_delimiters_and_decimals_are_options(tmp_path, capsys):
    """They are not guessed; an error says which is meant."""
    path = written(tmp_path, "preis;größe\n0,5;1\n1,25;2\n")
    (chunk,) = chunks_of(path, "--delimiter", ";", "--decimal", ",")
    assert chunk.X.tolist() == [[0.5], [1.25]] and chunk.y == ["1", "2"]
    assert main(["learn", str(path), "--target", "größe"]) == 1
    assert "(Is --delimiter ';' meant?)" in capsys.readouterr().err
    (chunk,) = chunks_of(path, "--delimiter", ";")
    assert chunk.X.tolist() == [["0,5"], ["1,25"]]  # text
    for text, decimal, expected in (("1e3", ".", 1000.0), (" .5 ", ".", 0.5), ("-0,25", ",", -0.25), ("N/A", ".", None), ("", ",", None)):
        value = tables.as_number(text, decimal)
        assert value == expected if expected is not None else np.isnan(value)
    for text, decimal in (("1_000", "."), ("1.5", ","), ("0,5", "."), ("1.234,5", ","), ("inf", "."), ("1e999", "."), ("x", ".")):
        with pytest.raises(ValueError, match=r"expected a (finite )?number"):
            tables.as_number(text, decimal)
    path = written(tmp_path, "a,b\n1,1\n\"0,5\",2\n")
    with pytest.raises(ValueError, match="line 3, column 'a': expected a number. Got '0,5' instead. .Is --decimal , meant?."):
        chunks_of(path)
    path = written(tmp_path, "a|b\n1|x\n2|y\n", "data.txt")
    assert chunks_of(path, "--delimiter", "|")[0].y == ["x", "y"]
    assert chunks_of(written(tmp_path, "1\tx y\n", "a.TSV"))[0].y == ["x y"]


def test_holes_words_and_the_first_value(tmp_path):
    """A column is numbers if its first value is; holes are NaN among numbers and None among text."""
    path = written(tmp_path, "when,size,empty,code\n,NA,,12\n2024-01-02,3,,n/a\n2024-02-03,,7, 5 \n")
    first, second = chunks_of(path, "--chunk", 2, target=None)
    shown = [[None if value != value else value for value in row] for row in [*first.X.tolist(), *second.X.tolist()]]
    assert shown == [[None, None, None, 12.0], ["2024-01-02", 3.0, None, None], ["2024-02-03", None, 7.0, 5.0]]
    path.write_text(path.read_text() + "2024-02-04,3,7,B3\n")
    with pytest.raises(ValueError, match="line 5, column 'code': expected a number. Got 'B3' instead"):
        chunks_of(path, "--chunk", 2, target=None)
    path = written(tmp_path, "a,b\n,1\n2,\n3,4\n")
    (chunk,) = chunks_of(path, target=None)
    np.testing.assert_array_equal(chunk.X, [[np.nan, 1], [2, np.nan], [3, 4]])


BAD = {
    "3,1": "expected 3 fields. Got 2 instead",
    "3,1,2,0": "expected 3 fields. Got 4 instead",
    "x,1,b": "column 'size': expected a number. Got 'x' instead",
    "1_0,1,b": "column 'size': expected a number. Got '1_0' instead",
    "inf,1,b": "column 'size': expected a finite number. Got 'inf' instead",
    '"3"4,1,b': "expected quotes that match",
    "3,\udce4,b": "column 'name': expected text in UTF-8",
    "3,x,": "column 'label': expected a label. Got an empty field instead",
    "3,x,\udce4": "column 'label': expected a label in UTF-8",
}


@each("bad", BAD)
def test_bad_rows_are_named_or_skipped(tmp_path, capsys, bad):
    path = written(tmp_path, f"size,name,label\n1,u,a\n2,v,b\n{bad}\n4,w,a\n", errors="surrogateescape")
    arguments = ["learn", str(path), *SINGLE, "--save", str(tmp_path / "m")]
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert "a.csv, line 4" in err and BAD[bad] in err
    assert main([*arguments, "--on-error", "skip"]) == 0 and load(tmp_path / "m.npz").t_ == 3
    assert "Skipped bad rows: 1." in capsys.readouterr().err


def test_a_bad_row_leaves_the_rest_saved(tmp_path, capsys):
    rows = [*ROWS]
    rows[1500] = "oops"
    path, model = tmp_path / "a.csv", str(tmp_path / "m.npz")
    path.write_text("\n".join(rows))
    arguments = ["learn", str(path), "--target", "2", *SINGLE, "--chunk", "100", "--save", model]
    assert main(arguments) == 1
    assert "a.csv, line 1501: expected 3 fields. Got 1 instead. The 1500 examples before it are saved" in capsys.readouterr().err
    assert load(model).t_ == 1500
    rows[1500] = "0,0,1"  # mended
    path.write_text("\n".join(rows))
    assert main([*arguments, "--resume"]) == 0 and load(model).t_ == 3000


def test_labels(tmp_path, capsys):
    """Whole numbers stay numbers, however large, and all others are words; the first chunk decides."""
    big = np.where(Y > 0, 9007199254740993, 9007199254740992)
    path = written(tmp_path, "".join(f"{a!r},{b!r},{t}\n" for (a, b), t in zip(X[:500].tolist(), big.tolist())))
    for options in ([], ["--classes", "9007199254740993,9007199254740992"], ["--loss", "multiclasshinge"]):
        assert main(["learn", str(path), "--target", "2", *SINGLE, *options, "--save", str(tmp_path / "m")]) == 0
        assert sorted(load(tmp_path / "m.npz").classes_.tolist()) == [9007199254740992, 9007199254740993]
    for other in (0, -1):  # the label 1 alone leaves open what its counterpart is
        written(tmp_path, f"1,1\n2,1.0\n3,1\n4,{other}\n5,1\n")
        arguments = ["learn", str(path), "--target", "1", *SINGLE, "--chunk", "2", "--save", str(tmp_path / "m")]
        assert main(arguments) == 0 and load(tmp_path / "m.npz").classes_.tolist() == [other, 1]
    written(tmp_path, "1,1\n2,0\n3,up\n")
    capsys.readouterr()
    assert main(arguments) == 1
    assert "line 3, column 1 (counted from 0): expected a whole number, like other labels (--classes A,B,..." in capsys.readouterr().err
    assert main([*arguments, "--loss", "multiclasshinge", "--classes", "0,1,up"]) == 0
    assert load(tmp_path / "m.npz").classes_.tolist() == ["0", "1", "up"]
    written(tmp_path, "1,1.5\n2,0\n")
    assert main(arguments) == 1 and "line 1: the target 1.5 is a number, and SILK learns classes here" in capsys.readouterr().err


def test_columns_go_by_their_names(tmp_path, capsys):
    """In another order, or among others; in data without names they come as they are."""
    data, other = write_table(tmp_path / "data.csv"), tmp_path / "o.csv"
    learn(data, "sign", "--limit", 1000, "--chunk", 500, "--save", tmp_path / "m")
    other.write_text("y,sign,other,x\n" + "".join(f"{b!r},{t},?,{a!r}\n" for (a, b), t in zip(X.tolist(), Y.tolist())))
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(other), "--target", "sign"]) == 0
    assert capsys.readouterr().out.split() == list(map(str, model.predict(X)))
    arguments = ["learn", str(other), "--target", "sign", "--model", str(tmp_path / "m.npz"), "--chunk", "500", "--save", str(tmp_path / "n")]
    assert main([*arguments, "--limit", "500"]) == 0
    assert learned_alike(tmp_path / "n.npz", model.partial_fit(X[:500], Y[:500]))
    other.write_text(other.read_text().replace("x\n", "X\n", 1))
    for command in (["predict", str(tmp_path / "m"), str(other)], arguments):
        capsys.readouterr()
        assert main(command) == 1
        err = capsys.readouterr().err
        assert "o.csv has no column 'x'; expected columns 'x', 'y'. Got 'y', 'sign', 'other', 'X'" in err and "--features" in err
    other.write_text("2.5,0.5\n")
    assert main(["predict", str(tmp_path / "m"), str(other)]) == 0
    assert capsys.readouterr().out.split() == list(map(str, load(tmp_path / "m.npz").predict([[2.5, 0.5]])))


def test_models_of_arrays_predict_tables_of_numbers(tmp_path, capsys):
    SILK().fit(X, Y).save(tmp_path / "m.npz")
    assert main(["predict", str(tmp_path / "m"), str(written(tmp_path, "0.5,1\n0.25,up\n"))]) == 1
    assert "line 2, column 1 (counted from 0): expected a number. Got 'up'" in capsys.readouterr().err


@each("suffix", ["csv.gz", "npz"])
def test_other_formats(tmp_path, suffix, capsys):
    """They are learned, known again when they have grown, and refused when they have changed."""
    path, model = tmp_path / f"a.{suffix}", tmp_path / "m.npz"

    def save(rows):
        if suffix == "npz":
            np.savez(path, X=X[rows], y=Y[rows])
        else:
            with gzip.open(path, "wt") as file:
                file.write("\n".join(ROWS[rows]))

    arguments = ["learn", str(path), *SINGLE, "--chunk", "100", "--save", str(model), "--resume"]
    expected = SILK()
    for end in (1000, 3000):
        save(slice(0, end))
        assert main(arguments) == 0
    for i in range(0, 3000, 100):
        expected.partial_fit(X[i : i + 100], Y[i : i + 100])
    assert learned_alike(model, expected)
    options = [] if suffix == "npz" else ["--target", "2"]
    capsys.readouterr()
    assert main(["predict", str(model), str(path), *options]) == 0
    assert capsys.readouterr().out.split() == list(map(str, expected.predict(X)))
    save(slice(1, 3000))
    assert main(arguments) == 1 and "ends after 2999 rows" in capsys.readouterr().err


def test_broken_files_are_refused_in_one_line(tmp_path, capsys):
    np.savez(tmp_path / "words.npz", X=np.array([["a"]]))
    np.savez(tmp_path / "uneven.npz", X=X[:5], y=Y[:4])
    np.savez(tmp_path / "holes.npz", X=np.where(X[:5] == X[3, 1], np.nan, X[:5]), y=Y[:5])
    np.savez(tmp_path / "named.npz", points=X[:5], y=Y[:5])
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.npy").rename(tmp_path / "array.npz")
    (tmp_path / "half.csv.gz").write_bytes(gzip.compress("\n".join(ROWS).encode())[:500])
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"1,2\n"))
    (tmp_path / "utf16.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    for name, message in (
        ("words.npz", "'X' in .* must hold numbers and have 2 dimensions"),
        ("uneven.npz", "must have as many labels as rows, 5"),
        ("holes.npz", "row 3, column 1 (counted from 0): expected a finite number. Got nan"),
        ("named.npz", "--features must be an array in"),
        ("array.npz", "is not an .npz file"),
        ("half.csv.gz", "is not a complete gzip file"),
        ("packed.csv", "is compressed, without a name that ends in .gz"),
        ("utf16.csv", "is not UTF-8 text: it looks like UTF-16"),
    ):
        assert main(["learn", str(tmp_path / name), *SINGLE]) == 1, name
        err = capsys.readouterr().err
        assert all(part in err for part in message.split(" .* ")) and "Traceback" not in err, (name, err)
    assert main(["learn", str(tmp_path / "holes.npz"), *SINGLE, "--on-error", "skip"]) == 0
    assert main(["learn", str(tmp_path / "named.npz"), *SINGLE, "--features", "points"]) == 0


@each("options", [SINGLE, ["--scale"], [*SINGLE, "--chunk", "2"], ["--effort", "low"]])
def test_a_value_that_is_too_large_is_blamed_on_its_line(tmp_path, options, capsys):
    for row in (0, 3, 5):
        rows = [f"{i},{i},{i % 2}" for i in range(8)]
        rows[row] = f"1e200,1,{row % 2}"
        (tmp_path / "a.csv").write_text("a,b,c\n\n" + "\n".join(rows) + "\n")
        assert main(["learn", str(tmp_path / "a.csv"), "--target", "c", *options]) == 1
        err = capsys.readouterr().err
        assert f"a.csv, line {row + 3}, " in err and "too large" in err and err.count("\n") == 1 + ("--effort" in options)


def test_a_part_of_a_chunk_is_not_saved(tmp_path, capsys):
    """It has no place in the stream."""
    path = written(tmp_path, "1,2\n0.5,1\n2,1\n1e300,1e-3\n")
    arguments = ["learn", str(path), "--target", "1", "--chunk", "2", "--loss", "squared", "--algorithm", "norma", "--kernel", "polynomial:3"]
    assert main([*arguments, "--save", str(tmp_path / "m")]) == 1
    err = capsys.readouterr().err
    assert "too large for the kernel" in err and err.count("\n") == 1
    assert not (tmp_path / "m.npz").exists()


def test_words_become_categories_and_dates_numbers(tmp_path):
    """A table through the command line is the same table through rows."""
    path = written(tmp_path, "day,pet,age,label\n" + "".join(f"2024-01-{1 + i % 28:02},{['cat', 'dog', ''][i % 3]},{i % 7},{WORDS[i]}\n" for i in range(90)))
    assert main(["learn", str(path), *SINGLE, "--save", str(tmp_path / "m")]) == 0
    encoder = load(tmp_path / "m.npz").encoder_
    assert list(encoder.kinds_) == ["day", "pet", "age"] and encoder.kinds_["age"] == "number" and encoder.kinds_["day"] == "date"
