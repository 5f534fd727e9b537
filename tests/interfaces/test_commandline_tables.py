"""Tables as commands read them: columns, numbers, broken rows, quoted line breaks, formats; also through `learn`."""

import gzip

import numpy as np
import pytest
from cases import each
from command_line import SINGLE, WORDS, X, Y, failed, learn, learned_alike, main, refused, write_table

from onlinekernels import SILK, load
from onlinekernels.__main__ import _parser
from onlinekernels.cli import tables
from onlinekernels.cli.options import Interruption

ROWS = [f"{a!r},{b!r},{t}" for (a, b), t in zip(X.tolist(), Y.tolist(), strict=True)]


def chunks_of(path, *options, target="-1"):
    """What a table gives."""
    arguments = _parser().parse_args(["learn", str(path), *map(str, options)])
    return list(tables.Table(str(path), arguments, Interruption(), target=target).chunks())


def written(tmp_path, text, name="a.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode(**options))
    return path


def test_quoted_fields_go_over_lines(tmp_path, capsys):
    """Line breaks, delimiters and doubled quotes within quotes; a row has the line on which it begins."""
    text = 'note,size,label\r\n"two\r\nlines, one ""row""",1,a\r\nplain,2,b\r\n\r\n"""",3,a\r\n'
    (chunk,) = chunks_of(written(tmp_path, text))
    assert chunk.X.tolist() == [['two\nlines, one "row"', 1.0], ["plain", 2.0], ['"', 3.0]]
    assert chunk.y == ["a", "b", "a"] and chunk.lines == [2, 4, 6] and chunk.rows == 3
    table = "note,size,label\n" + "".join(f'"line {i % 7}\nof {i % 3}",{i % 5},{"ab"[i % 2]}\n' for i in range(200))
    path, model = written(tmp_path, table), tmp_path / "m.npz"
    arguments = ["learn", path, *SINGLE, "--chunk", "50", "--save"]
    assert main([*arguments, model, "--limit", "100"]) == main([*arguments, model, "--resume"]) == 0
    assert main([*arguments, tmp_path / "n.npz"]) == 0
    assert load(model).t_ == 200 and model.read_bytes() == (tmp_path / "n.npz").read_bytes()
    path.write_text(table.replace(",2,a", ",Z,a", 1))
    assert "line 6, column 'size': expected a number. Got 'Z'" in failed(["learn", path, *SINGLE], capsys)


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
        (["--header"], "b", "--target must be an index from -4 to 3 of .*, as several columns have that name"),
        (["--header"], "7", "--target must be one of 'a', 'b', '1', 'b', or an index from -4 to 3 of"),
        (["--header", "--features", "a"], "a", "--target must not be one of --features"),
        (["--no-header"], "a", "an index from -4 to 3 of .*, as there is no header"),
        (["--header", "--delimiter", ";"], "-1", "has no column besides the target; .* .Is --delimiter ',' meant?."),
    ):
        with pytest.raises(ValueError, match=message):
            chunks_of(path, *options, target=target)


def test_delimiters_and_decimals_are_options(tmp_path, capsys):
    """They are not guessed; an error says which is meant."""
    path = written(tmp_path, "preis;größe\n0,5;1\n1,25;2\n")
    (chunk,) = chunks_of(path, "--delimiter", ";", "--decimal", ",")
    assert chunk.X.tolist() == [[0.5], [1.25]] and chunk.y == ["1", "2"]
    assert "(Is --delimiter ';' meant?)" in failed(["learn", path, "--target", "größe"], capsys)
    (chunk,) = chunks_of(path, "--delimiter", ";")
    assert chunk.X.tolist() == [["0,5"], ["1,25"]]  # text
    for text, decimal, expected in (("1e3", ".", 1000.0), (" .5 ", ".", 0.5), ("-0,25", ",", -0.25),
                                    ("N/A", ".", None), ("", ",", None)):
        value = tables.as_number(text, decimal)
        assert value == expected if expected is not None else np.isnan(value)
    for text, decimal in (("1_000", "."), ("1.5", ","), ("0,5", "."), ("1.234,5", ","), ("inf", "."), ("1e999", "."),
                          ("x", ".")):
        with pytest.raises(ValueError, match=r"expected a (finite )?number"):
            tables.as_number(text, decimal)
    path = written(tmp_path, "a,b\n1,1\n\"0,5\",2\n")
    with pytest.raises(ValueError,
                       match="line 3, column 'a': expected a number. Got '0,5' instead. .Is --decimal , meant?."):
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


BAD = {"3,1": "expected 3 fields. Got 2 instead", "3,1,2,0": "expected 3 fields. Got 4 instead",
       "x,1,b": "column 'size': expected a number. Got 'x' instead",
       "1_0,1,b": "column 'size': expected a number. Got '1_0' instead",
       "inf,1,b": "column 'size': expected a finite number. Got 'inf' instead",
       '"3"4,1,b': "expected quotes that match", "3,\udce4,b": "expected text in UTF-8",
       "3,x,": "column 'label': expected a label. Got a missing value instead", "3,x,\udce4": "expected text in UTF-8",}


@each("bad", BAD)
def test_bad_rows_are_named_or_skipped(tmp_path, capsys, bad):
    path = written(tmp_path, f"size,name,label\n1,u,a\n2,v,b\n{bad}\n4,w,a\n", errors="surrogateescape")
    arguments = ["learn", path, *SINGLE, "--save", tmp_path / "m"]
    err = failed(arguments, capsys)
    assert "a.csv, line 4" in err and BAD[bad] in err
    assert main([*arguments, "--on-error", "skip"]) == 0 and load(tmp_path / "m.npz").t_ == 3
    assert "Skipped bad rows: 1." in capsys.readouterr().err


def test_labels(tmp_path, capsys):
    """Whole numbers stay numbers, however large, and all others are words."""
    big = np.where(Y > 0, 9007199254740993, 9007199254740992)
    path = written(tmp_path, "".join(f"{a!r},{b!r},{t}\n" for (a, b), t in zip(X[:500].tolist(), big.tolist())))
    for options in ([], ["--classes", "9007199254740993,9007199254740992"], ["--loss", "multiclasshinge"]):
        assert main(["learn", path, "--target", "2", *SINGLE, *options, "--save", tmp_path / "m"]) == 0
        assert sorted(load(tmp_path / "m.npz").classes_.tolist()) == [9007199254740992, 9007199254740993]
    for other in (0, -1):  # the label 1 alone leaves open what its counterpart is
        written(tmp_path, f"1,1\n2,1.0\n3,1\n4,{other}\n5,1\n")
        arguments = ["learn", path, "--target", "1", *SINGLE, "--chunk", "2", "--save", tmp_path / "m"]
        assert main(arguments) == 0 and load(tmp_path / "m.npz").classes_.tolist() == [other, 1]
    written(tmp_path, "1,1\n2,0\n3,up\n")
    capsys.readouterr()
    assert "unknown label, 'up'; expected one of 0, 1" in failed(arguments, capsys)
    assert main([*arguments, "--loss", "multiclasshinge", "--classes", "0,1,up"]) == 0
    assert load(tmp_path / "m.npz").classes_.tolist() == [0, 1, "up"]
    written(tmp_path, "1,1.5\n2,0\n")
    assert "the target's values are numbers, and SILK learns classes here" in failed(arguments, capsys)


def test_columns_go_by_their_names(tmp_path, capsys):
    """In another order, or among others; in data without names they come as they are."""
    data, other = write_table(tmp_path / "data.csv"), tmp_path / "o.csv"
    learn(data, "sign", "--limit", 1000, "--chunk", 500, "--save", tmp_path / "m")
    other.write_text("y,sign,other,x\n" + "".join(f"{b!r},{t},?,{a!r}\n" for (a, b), t in zip(X.tolist(), Y.tolist())))
    model = load(tmp_path / "m.npz")
    capsys.readouterr()
    assert main(["predict", tmp_path / "m", other, "--target", "sign"]) == 0
    assert capsys.readouterr().out.split() == list(map(str, model.predict(X)))
    model.save(tmp_path / "n.npz")
    arguments = ["learn", other, "--target", "sign", "--chunk", "500", "--save", tmp_path / "n", "--resume"]
    assert main([*arguments, "--limit", "500"]) == 0
    assert learned_alike(tmp_path / "n.npz", model.partial_fit(X[:500], Y[:500]))
    (tmp_path / "n.npz").unlink()
    model.save(tmp_path / "n.npz")
    other.write_text(other.read_text().replace("x\n", "X\n", 1))
    for command in (["predict", tmp_path / "m", other], arguments):
        capsys.readouterr()
        err = failed(command, capsys)
        assert "o.csv has no column 'x'; expected columns 'x', 'y'. Got 'y', 'sign', 'other', 'X'" in err
        assert "--features" in err
    other.write_text("2.5,0.5\n")
    assert main(["predict", tmp_path / "m", other]) == 0
    assert capsys.readouterr().out.split() == list(map(str, load(tmp_path / "m.npz").predict([[2.5, 0.5]])))


@each("suffix", ["csv", "csv.gz"])
def test_other_formats(tmp_path, suffix, capsys):
    """They are learned, known again when they have grown, and refused when they have changed."""
    path, model = tmp_path / f"a.{suffix}", tmp_path / "m.npz"

    def save(rows):
        with (gzip.open if suffix == "csv.gz" else open)(path, "wt") as file:
            file.write("\n".join(ROWS[rows]))

    arguments = ["learn", path, *SINGLE, "--chunk", "100", "--save", model, "--resume"]
    expected = SILK()
    for end in (1000, 3000):
        save(slice(0, end))
        assert main(arguments) == 0
    for i in range(0, 3000, 100):
        expected.partial_fit(X[i : i + 100], Y[i : i + 100])
    assert learned_alike(model, expected)
    capsys.readouterr()
    assert main(["predict", model, path, "--target", "2"]) == 0
    assert capsys.readouterr().out.split() == list(map(str, expected.predict(X)))
    save(slice(1, 3000))
    assert "ends after 2999 rows" in failed(arguments, capsys)


def test_broken_files_are_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "half.csv.gz").write_bytes(gzip.compress("\n".join(ROWS).encode())[:500])
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"1,2\n"))
    (tmp_path / "utf16.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    for name, message in (
        ("half.csv.gz", "is not a complete gzip file"),
        ("packed.csv", "is compressed, without a name that ends in .gz"),
        ("utf16.csv", "is not UTF-8 text: it looks like UTF-16"),
    ):
        assert main(["learn", str(tmp_path / name), *SINGLE]) == 1, name
        err = capsys.readouterr().err
        assert message in err and "Traceback" not in err, (name, err)


def test_arrays_are_learned_as_a_table_of_them_is(tmp_path, capsys):
    """Of an .npz file: with labels, with `--target none`, without labels, resumed; and what is no such file."""
    np.savez(tmp_path / "a.npz", X=X[:400], y=WORDS[:400])
    with open(tmp_path / "a.csv", "w") as file:
        file.writelines(f"{a!r},{b!r},{word}\n" for (a, b), word in zip(X[:400].tolist(), WORDS[:400], strict=True))
    for target in ([], ["--target", "none"]):
        for name in ("a.npz", "a.csv"):
            save = ["--effort", "low", "--save", tmp_path / f"m{name}.npz"]
            assert main(["learn", tmp_path / name, *target, *save]) == 0
        of_arrays, of_table = (load(tmp_path / f"m{name}.npz") for name in ("a.npz", "a.csv"))
        assert of_arrays.n_features_in_ == 2 and of_arrays.t_ == 400
        if not target:
            assert np.array_equal(of_arrays.decision_function(X[400:500]), of_table.decision_function(X[400:500]))
    np.savez(tmp_path / "b.npz", X=X[:200])
    assert main(["learn", tmp_path / "b.npz", "--effort", "low"]) == 0
    for arrays, words in (({"Z": X}, "array X"), ({"X": X[0]}, "2 dimensions"),
                          ({"X": X, "y": Y[:5]}, "as many labels")):
        np.savez(tmp_path / "bad.npz", **arrays)
        assert words in failed(["learn", tmp_path / "bad.npz"], capsys)
    (tmp_path / "bad.npz").write_bytes(b"PK\3\4 nothing")
    assert "is not an .npz file" in failed(["learn", tmp_path / "bad.npz"], capsys)
    data = (tmp_path / "b.npz").read_bytes()
    assert "--save" in refused(["learn", tmp_path / "b.npz", "--save", tmp_path / "b.npz"], capsys)
    assert (tmp_path / "b.npz").read_bytes() == data
