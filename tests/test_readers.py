"""Readers: every format gives back what was written, errors say where, and memory stays flat."""

import gzip
import io
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from cases import covering, each

from onlinekernels.streams import BadRow, read

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2500, 4))
NUMBERS = RNG.normal(size=2500)
INTEGERS = RNG.integers(-3, 4, size=2500)
WORDS = np.array(["up", "down", "left, or right", 'the "other" side'])[RNG.integers(4, size=2500)]
LABELS = {"numbers": NUMBERS, "integers": INTEGERS, "words": WORDS}


def quoted(label):
    text = str(label)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def delimited(points, labels=None, delimiter=",", names=None):
    lines = [] if names is None else [delimiter.join(names)]
    for i, row in enumerate(points.tolist()):
        label = [] if labels is None else [quoted(labels[i].item())]
        lines.append(delimiter.join([*map(repr, row), *label]))
    return "\n".join(lines) + "\n"


def svmlight(points, labels=None):
    lines = []
    for i, row in enumerate(points.tolist()):
        label = [] if labels is None else [str(labels[i].item())]
        lines.append(" ".join([*label, *(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)]))
    return "\n".join(lines) + "\n"


def write(path, text):
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def gather(reader):
    chunks = list(reader)
    labels = None if chunks[0][1] is None else np.concatenate([y for _, y in chunks])
    return np.concatenate([points for points, _ in chunks]), labels


# ---- Round trips ---------------------------------------------------------------------------------


@covering(2)
@each("kind", LABELS)
@each("header", [True, False])
@each("name", ["a.csv", "a.tsv", "a.csv.gz", "a.tab.gz", "A.CSV"])
def test_delimited_round_trip(tmp_path, name, header, kind):
    y, delimiter = LABELS[kind], "," if "csv" in name.lower() else "\t"
    names = ["a", "b", "c", "d", "label"] if header else None
    path = write(tmp_path / name, delimited(X, y, delimiter, names))
    reader = read(path, target="label" if header else -1)
    points, labels = gather(reader)
    assert (points == X).all() and (labels == y).all()
    assert labels.dtype.kind == {"numbers": "f", "integers": "i", "words": "U"}[kind]
    assert reader.n_rows == 2500 and reader.n_skipped == 0
    assert reader.feature_names == (names[:4] if header else None)
    assert [len(points) for points, _ in reader] == [1024, 1024, 452]  # and a second pass


@each("name", ["a.libsvm", "a.svmlight", "a.svm.gz"])
@each("labelled", [True, False])
def test_svmlight_round_trip(tmp_path, name, labelled):
    points = np.where(RNG.random(X.shape) < 0.5, 0.0, X)
    points[7] = 0
    path = write(tmp_path / name, svmlight(points, INTEGERS if labelled else None))
    if not labelled:  # an empty row would be a blank line
        points = points[points.any(axis=1)]
    got, labels = gather(read(path, n_features=4))
    assert (got == points).all()
    assert labels is None if not labelled else (labels == INTEGERS).all()


def test_svmlight_sparse(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    path = write(tmp_path / "a.libsvm", svmlight(X[:50], INTEGERS[:50]))
    chunks = [points for points, _ in read(path, n_features=9, sparse=True, chunk=20)]
    assert [sparse.issparse(points) and points.shape for points in chunks] == [(20, 9), (20, 9), (10, 9)]
    assert (sparse.vstack(chunks).toarray()[:, :4] == X[:50]).all()


def test_sparse_without_scipy_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="sparse=True needs scipy"):
        read("a.libsvm", n_features=3, sparse=True)


def test_svmlight_comments_and_queries(tmp_path):
    for header in ("", "# a file\n", "# made by: scikit-learn\n#\n # 1:2\n", "#3:4\n"):
        path = write(tmp_path / "a.svm", header + "+1 qid:3 1:2 3:4 # yes\n# no\n\n-1 2:1e2\n")
        reader = read(path, n_features=3)
        points, labels = gather(reader)
        assert points.tolist() == [[2, 0, 4], [0, 100, 0]] and labels.tolist() == [1, -1]
        assert (reader.n_rows, reader.n_skipped) == (2, 0)
    path = write(tmp_path / "a.svm", "# label: none\n1:2 3:4\n")
    points, labels = gather(read(path, n_features=3))
    assert points.tolist() == [[2, 0, 4]] and labels is None


def test_files_that_scikit_learn_writes(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    datasets.dump_svmlight_file(X[:20], INTEGERS[:20], str(tmp_path / "a.svm"), zero_based=False, comment="a: b\nc")
    points, labels = gather(read(tmp_path / "a.svm", n_features=4))
    np.testing.assert_allclose(points, X[:20])
    assert labels.tolist() == INTEGERS[:20].tolist()


def test_a_row_of_empty_fields_is_a_row(tmp_path):
    path = write(tmp_path / "a.tsv", "1\t2\tup\n\t\t\n\n3\t4\tdown\n")
    with pytest.raises(BadRow, match="line 2, column 0 .*Got an empty field"):
        list(read(path, target=2))
    reader = read(path, target=2, on_error="skip")
    assert len(gather(reader)[0]) == 2 and reader.n_skipped == 1
    spaces = read(["1 2", " ", "", "3 4"], format="csv", delimiter=" ", on_error="skip")
    assert len(gather(spaces)[0]) == 2 and spaces.n_skipped == 1


@each("save", [np.savez, np.savez_compressed])
@each("kind", LABELS)
def test_npz_round_trip(tmp_path, save, kind):
    save(tmp_path / "a.npz", X=X, y=LABELS[kind], other=X[:, 0])
    points, labels = gather(read(tmp_path / "a.npz"))
    assert (points == X).all() and (labels == LABELS[kind]).all()
    points, labels = gather(read(tmp_path / "a.npz", target="other", features=["X"], chunk=7, limit=50))
    assert (points == X[:50]).all() and (labels == X[:50, 0]).all()


def test_npy_round_trip(tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([X, INTEGERS]))
    points, labels = gather(read(tmp_path / "a.npy", target=-1))
    assert (points == X).all() and (labels == INTEGERS).all()
    np.save(tmp_path / "b.npy", X.astype(np.float32))
    points, labels = gather(read(tmp_path / "b.npy", features=[2, 0]))
    assert labels is None and points.dtype == np.float32 and (points == X[:, [2, 0]].astype(np.float32)).all()


def test_array_files_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "a.npz", Z=X)
    with pytest.raises(ValueError, match="'features' parameter .* one of 'Z'. Got 'X'"):
        list(read(tmp_path / "a.npz"))
    np.savez(tmp_path / "a.npz", X=X, y=NUMBERS[:5])
    with pytest.raises(ValueError, match="as many labels as rows, 2500. Got 5"):
        list(read(tmp_path / "a.npz"))
    np.savez(tmp_path / "a.npz", X=X, y=np.array([None] * 2500))
    with pytest.raises(ValueError, match="numbers or strings"):
        list(read(tmp_path / "a.npz"))
    np.save(tmp_path / "a.npy", X[0])
    with pytest.raises(ValueError, match="2-d array"):
        list(read(tmp_path / "a.npy"))
    for name in ("b.npy", "b.npz"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(ValueError, match=f"is not a .{name[-3:]} file"):
            list(read(tmp_path / name))


def test_arrays_that_are_not_numbers_or_not_whole(tmp_path):
    np.save(tmp_path / "a.npy", np.array([["x", "y"]]))
    with pytest.raises(ValueError, match="must hold numbers. Got dtype <U1"):
        list(read(tmp_path / "a.npy"))
    np.savez(tmp_path / "a.npz", X=X[:5], y=np.array(["x"] * 5))
    with pytest.raises(ValueError, match="must be numbers for label_type='number'"):
        list(read(tmp_path / "a.npz", label_type="number"))
    assert gather(read(tmp_path / "a.npz", label_type="string"))[1].tolist() == ["x"] * 5
    np.savez(tmp_path / "a.npz", X=X[:5], y=np.array([b"x"] * 5))
    assert gather(read(tmp_path / "a.npz"))[1].tolist() == ["x"] * 5
    np.savez(tmp_path / "a.npz", X=X[:5], y=np.ones(5, dtype=complex))
    with pytest.raises(ValueError, match="must be numbers or strings. Got dtype complex128"):
        list(read(tmp_path / "a.npz"))


def test_bad_rows_of_arrays(tmp_path):
    points, labels = X[:20].copy(), NUMBERS[:20].copy()
    points[11, 2], labels[13] = np.nan, np.inf
    np.savez(tmp_path / "a.npz", X=points, y=labels)
    with pytest.raises(BadRow, match=r"a.npz, row 11, column 2 \(counted from 0\): expected a finite number. Got nan"):
        list(read(tmp_path / "a.npz", chunk=8))
    reader = read(tmp_path / "a.npz", chunk=8, on_error="skip")
    got, _ = gather(reader)
    assert (got == np.delete(X[:20], [11, 13], axis=0)).all() and (reader.n_rows, reader.n_skipped) == (18, 2)


# ---- Columns -------------------------------------------------------------------------------------

TABLE = "id,width,kind,7,height\nx1,1.5,cat,0,2\nx2,2.5,dog,0,3\n"


@each(
    "target, features, points, labels",
    [
        ("kind", ["width", "height"], [[1.5, 2], [2.5, 3]], ["cat", "dog"]),
        (2, [-1, 1], [[2, 1.5], [3, 2.5]], ["cat", "dog"]),
        ("-3", ["4"], [[2], [3]], ["cat", "dog"]),
        ("7", ["height"], [[2], [3]], [0, 0]),
        (None, ["7", 1], [[0, 1.5], [0, 2.5]], None),
    ],
)
def test_columns_by_name_and_index(tmp_path, target, features, points, labels):
    path = write(tmp_path / "a.csv", TABLE)
    got, y = gather(read(path, target=target, features=features, header=True))
    assert got.tolist() == points and (None if y is None else y.tolist()) == labels


@each(
    "options, message",
    [
        ({"target": "Kind"}, "'target' parameter of read must be a column, one of 'id', 'width'.* Got 'Kind'"),
        ({"target": 5}, "index from -5 to 4.* Got 5"),
        ({"target": "kind", "features": ["width", "kind"]}, "'target' parameter of read must not be one of the columns of X, 'width', 'kind'"),
        ({"features": ["colour"]}, "'features' parameter.*Got 'colour'"),
        ({"header": False, "target": "kind"}, "as there is no header"),
    ],
)
def test_columns_that_do_not_exist(tmp_path, options, message):
    path = write(tmp_path / "a.csv", TABLE)
    with pytest.raises(ValueError, match=message):
        list(read(path, **{"header": True, **options}))


def test_a_target_alone_is_not_enough(tmp_path):
    with pytest.raises(ValueError, match="no column besides the target"):
        list(read(write(tmp_path / "a.csv", "a\n1\n"), target="a"))


def test_columns_by_their_names(tmp_path):
    path = write(tmp_path / "a.csv", TABLE)
    assert gather(read(path, names=["height", "width"], header=True))[0].tolist() == [[2, 1.5], [3, 2.5]]
    path = write(tmp_path / "b.csv", "a,b\n1,2\n")
    with pytest.raises(ValueError, match="b.csv has no column 'c'; expected columns 'b', 'c'. Got 'a', 'b' instead"):
        list(read(path, names=["b", "c"]))
    assert gather(read(path, names=["b", "c"], features=["a"]))[0].tolist() == [[1]]
    path = write(tmp_path / "c.csv", "1,2\n")
    assert gather(read(path, names=["b", "c"]))[0].tolist() == [[1, 2]]  # no header: as they come


def test_arrays_stored_column_by_column(tmp_path):
    table = np.asfortranarray(np.arange(30.0).reshape(10, 3))
    np.savez_compressed(tmp_path / "a.npz", X=table)
    np.save(tmp_path / "a.npy", table)
    for name in ("a.npz", "a.npy"):
        chunks = [X for X, _ in read(tmp_path / name, chunk=4)]
        assert [len(X) for X in chunks] == [4, 4, 2]
        np.testing.assert_array_equal(np.concatenate(chunks), table)


def test_other_delimiters(tmp_path):
    path = write(tmp_path / "a.csv", "a;b\n1;2\n3;'4'\n")
    with pytest.raises(ValueError, match="is delimiter=';' meant"):
        list(read(path, target="b", delimiter=","))
    for how in ({"delimiter": ";"}, {}):  # the first line has no comma
        X, y = gather(read(path, target="b", **how))
        assert X.tolist() == [[1], [3]] and y.tolist() == ["2", "'4'"]
    for bad in ("", ";;", "\n", 3):
        with pytest.raises(ValueError, match="'delimiter' parameter of read must be one character"):
            read(path, delimiter=bad)
    with pytest.raises(ValueError, match="left out for the format 'npz'"):
        read("a.npz", delimiter=";")


@each("name", ["a.csv", "a.npz", "a.npy"])
def test_a_place_beyond_the_end(tmp_path, name):
    path = tmp_path / name
    if name == "a.csv":
        write(path, "1,2\n3,4\n")
    elif name == "a.npz":
        np.savez(path, X=np.ones((2, 2)))
    else:
        np.save(path, np.ones((2, 2)))
    start = {"line": 2, "rows": 2, "skipped": 0, "labels": None}
    assert list(read(path, start=start)) == []
    with pytest.raises(ValueError, match="ends at (line|row) 2; expected to go on after (line|row) 3"):
        list(read(path, start={**start, "line": 3}))


def test_two_columns_of_one_name(tmp_path):
    path = write(tmp_path / "a.csv", "a,a,b\n1,2,3\n")
    with pytest.raises(ValueError, match="several columns have that name"):
        list(read(path, target="a"))
    assert gather(read(path, target=0))[1].tolist() == [1]


def test_the_header_is_recognized(tmp_path):
    assert read(write(tmp_path / "a.csv", "a,b\n1,2\n")).feature_names == ["a", "b"]
    assert read(write(tmp_path / "a.csv", "1,cat\n2,dog\n"), target=1).feature_names is None
    assert gather(read(write(tmp_path / "a.csv", "1,2\n3,4\n"), header=True))[0].tolist() == [[3, 4]]


def test_windows_lines_blank_lines_and_a_byte_order_mark(tmp_path):
    (tmp_path / "a.csv").write_bytes("\ufeffa,b,c\r\n\r\n1,2,x\r\n\r\n 3 , 4 , y".encode())
    reader = read(tmp_path / "a.csv", target="c")
    points, labels = gather(reader)
    assert points.tolist() == [[1, 2], [3, 4]] and labels.tolist() == ["x", "y"]
    assert reader.feature_names == ["a", "b"]


@each("text", ["", "\n\n", "a,b\n"])
def test_nothing_to_read(tmp_path, text):
    assert list(read(write(tmp_path / "a.csv", text))) == []


# ---- Labels --------------------------------------------------------------------------------------


def labels_of(text, **options):
    return np.concatenate([y for _, y in read(io.StringIO(text), target=0, format="csv", **options)])


def test_labels_are_numbers_or_strings():
    assert labels_of("1,0\n2.0,0\n").tolist() == [1, 2] and labels_of("1,0\n2,0\n").dtype == np.int64
    assert labels_of("1,0\n2.5,0\n").tolist() == [1.0, 2.5]
    assert labels_of("1,0\nb,0\n").tolist() == ["1", "b"]
    assert labels_of("01,0\n", label_type="string").tolist() == ["01"]
    assert labels_of("1,0\n", label_type="number").dtype == np.float64


def test_the_first_chunk_decides_what_labels_are():
    assert labels_of("b,0\n1,0\n", chunk=1).tolist() == ["b", "1"]
    with pytest.raises(BadRow, match="line 2, column 0.*like the labels before it; label_type='string'.*Got 'b'"):
        labels_of("1,0\nb,0\n", chunk=1)
    assert labels_of("1,0\n2.5,0\n", chunk=1).tolist() == [1.0, 2.5]


WHOLE = {
    "beyond doubles": ["9007199254740993", "9007199254740992", "-9007199254740993"],
    "beyond int64": ["9223372036854775808", "9223372036854775809", "-1"],
    "beyond uint64": ["18446744073709551616", "18446744073709551617"],
    "written otherwise": ["9007199254740993.0", "9007199254740992.000", "9.007199254740994e15", "+5", "-0", "1e3"],
}


@each("kind", WHOLE)
def test_whole_labels_are_exact(kind):
    from fractions import Fraction

    expected = [int(Fraction(text)) for text in WHOLE[kind]]
    labels = labels_of("".join(f"{text},0\n" for text in WHOLE[kind]))
    assert labels.tolist() == expected and len(set(labels.tolist())) == len(expected)
    assert all(type(label) is int for label in labels.tolist())
    assert labels.dtype == (np.int64 if max(map(abs, expected)) < 2**63 else object)


def test_labels_that_are_not_whole_or_very_small():
    assert labels_of("0.5,0\n3,0\n").dtype == float
    assert labels_of("1e-99999999,0\n1,0\n").tolist() == [0.0, 1.0]


@each("first", ["a;b;y\n", ""], ids=["header", "no header"])
@each("kinds", [None, "auto"])
def test_between_semicolons_numbers_may_have_decimal_commas(tmp_path, first, kinds):
    path = tmp_path / "table.csv"
    path.write_text(first + '-0,5;"1,25";2,5\n1;,5e-1;+3,0\n')
    points, labels = gather(read(path, target=2, kinds=kinds))
    assert points.tolist() == [[-0.5, 1.25], [1.0, 0.05]] and labels.tolist() == [2.5, 3.0]


@each("texts, expected", [(["1.5", "", "2"], "a number"), (["up", ""], "a label"), ([""], "a label")])
def test_an_empty_target_is_called_what_the_others_are(tmp_path, texts, expected):
    path = tmp_path / "table.csv"
    path.write_text("a,y,b\n" + "".join(f"1,{text},2\n" for text in texts))
    with pytest.raises(BadRow, match=f"column 'y': expected {expected}. Got an empty field instead.*skip"):
        list(read(path, target="y"))


def test_other_commas_stay_as_they_are(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b;y\n0,5;Rome, 3,5;no,1\n")
    points, labels = gather(read(path, target="y", kinds="auto"))
    assert points.tolist() == [["0.5", "Rome, 3,5"]] and labels.tolist() == ["no,1"]
    path.write_text("1,2\n3,5\n")
    assert gather(read(path, target=None))[0].tolist() == [[1, 2], [3, 5]]
    path.write_text("a;b,c;d\n1,2\n")
    assert gather(read(path, target=None))[0].tolist() == [[1, 2]]
    path.write_text("a;b\n1,234,567;2\n")
    with pytest.raises(BadRow, match="expected a number. Got '1,234,567'"):
        list(read(path, target=None))


# ---- Errors --------------------------------------------------------------------------------------

WAY_OUT = "(features= leaves columns out, on_error='skip' such rows.)"
BAD_LINES = {
    "1,2": (None, "expected 3 fields. Got 2 instead."),
    "1,2,x,4": (None, "expected 3 fields. Got 4 instead."),
    "one,2,x": ("a", f"expected a number. Got 'one' instead. {WAY_OUT}"),
    "1,nan,x": ("b", f"expected a finite number. Got 'nan' instead. {WAY_OUT}"),
    "1,-inf,x": ("b", f"expected a finite number. Got '-inf' instead. {WAY_OUT}"),
    "1,1e999,x": ("b", f"expected a finite number. Got '1e999' instead. {WAY_OUT}"),
    "1_0,1,x": ("a", f"expected a number. Got '1_0' instead. {WAY_OUT}"),
    ",1,x": ("a", f"expected a number. Got an empty field instead. {WAY_OUT}"),
    "1,1,": ("label", "expected a label. Got an empty field instead. (on_error='skip' leaves such rows out.)"),
    '1,1,"x': (None, "expected quotes that match. Got '1,1,\"x' instead."),
    "1,1,\udcff": ("label", "expected a label in UTF-8. Got '\\udcff' instead."),
}


@each("suffix", ["", ".gz"])
@each("line", BAD_LINES)
def test_bad_lines_are_located_or_skipped(tmp_path, line, suffix):
    column, problem = BAD_LINES[line]
    lines = ["a,b,label", *["0,1,x", "1,0,y"] * 10, "", line, "5,5,z"]
    path = tmp_path / f"bad.csv{suffix}"
    content = "\n".join(lines).encode(errors="surrogateescape")
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(BadRow) as caught:
        list(read(path, target="label"))
    where = f", column {column!r}" if column else ""
    assert str(caught.value) == f"{path}, line 23{where}: {problem}"
    assert (caught.value.source, caught.value.line, caught.value.column) == (str(path), 23, column)
    reader = read(path, target="label", on_error="skip", chunk=4)
    points, labels = gather(reader)
    assert len(points) == 21 and points[-1].tolist() == [5, 5] and labels[-1] == "z"
    assert (reader.n_rows, reader.n_skipped) == (21, 1)


@each(
    "token",
    ["1", "+1", "-.5", "5.", "1e5", "1E-5", "1d5", "0x10", "1_0", "nan", "-inf", "Infinity", "1e400", "1e-400"]
    + ["1e", "--1", "1 2", " 1 ", "1\xa0", "\u0661", "True", "1j", "1f", "", " ", "'1'", "1\x00", "0" * 400, "#1"],
)
def test_lines_mean_the_same_in_bulk_and_alone(token):
    """A bad line makes its chunk go through the slow way: that must not change what the others mean."""
    for fmt, line in (("csv", f"0,{token},3"), ("libsvm", f"1 1:{token} 2:3")):
        options = {"format": fmt, "header": False} if fmt == "csv" else {"format": fmt, "n_features": 2}
        bad = "0,bad,3" if fmt == "csv" else "1 1:bad"
        alone = [points.tolist() for points, _ in read([line], on_error="skip", **options)]
        among = [points.tolist() for points, _ in read([line, bad], on_error="skip", **options)]
        assert alone == among


@each(
    "line, problem",
    [
        ("x 1:2", "column 'label': expected a number"),
        ("1 1:2 1:3", "expected ascending indices from 1 to n_features=3. Got 1 after 1"),
        ("1 2:1 1:3", "Got 1 after 2"),
        ("1 4:1", "Got 4 after 0"),
        ("1 0:1", "Got 0 after 0"),
        ("1 1:x", "column '1': expected a number. Got 'x'"),
        ("1 1:nan", "column '1': expected a finite number"),
        ("1 1:2:3", "expected a number. Got '2:3'"),
        ("1 1: 2", "expected a number. Got an empty field"),
        ("1 2", "expected index:value. Got '2'"),
        ("1 1_0:2", "expected index:value"),
        ("1:2 2:3", "expected a label. Got '1:2'"),
    ],
)
def test_bad_svmlight_lines(tmp_path, line, problem):
    path = write(tmp_path / "a.libsvm", f"1 1:1 2:2\n-1 3:1\n{line}\n1 2:5\n")
    with pytest.raises(BadRow, match="a.libsvm, line 3") as caught:
        list(read(path, n_features=3, label_type="number"))
    assert problem in str(caught.value)
    reader = read(path, n_features=3, label_type="number", on_error="skip")
    assert gather(reader)[0].tolist() == [[1, 2, 0], [0, 0, 1], [0, 5, 0]] and reader.n_skipped == 1


@each(
    "source, options, message",
    [
        ("a.txt", {}, "'source' parameter of read must be a file that ends in"),
        ("a.csv", {"chunk": 0}, "'chunk' parameter of read must be an integer of at least 1. Got 0"),
        ("a.csv", {"chunk": None}, "'chunk'"),
        ("a.csv", {"limit": -1}, "'limit'"),
        ("a.csv", {"format": "xls"}, "'format'.*one of 'csv'.*Got 'xls'"),
        ("a.csv", {"on_error": "ignore"}, "'on_error'"),
        ("a.csv", {"label_type": "int"}, "'label_type'"),
        ("a.csv", {"header": "yes"}, "'header'"),
        ("a.csv", {"features": "abc"}, "'features'"),
        ("a.csv", {"n_features": 3}, "'n_features'"),
        ("a.libsvm", {}, "'n_features'"),
        ("a.libsvm", {"n_features": 3, "target": 0}, "'target'"),
        ("-", {"format": "npz"}, "'source'"),
        ("a.npy.gz", {}, "'source'"),
        (["1,2"], {}, "'format'"),
    ],
)
def test_bad_arguments(source, options, message):
    with pytest.raises(ValueError, match=message):
        read(source, **options)


def test_a_damaged_gzip_file(tmp_path):
    content = gzip.compress(delimited(X).encode())
    (tmp_path / "a.csv.gz").write_bytes(content[:-2000])
    with pytest.raises(ValueError, match="not a complete gzip file"):
        list(read(tmp_path / "a.csv.gz"))
    (tmp_path / "a.csv.gz").write_text("1,2\n")
    with pytest.raises(ValueError, match="not a complete gzip file"):
        list(read(tmp_path / "a.csv.gz"))


# ---- Limits and positions ------------------------------------------------------------------------


@each("limit", [0, 1, 7, 8, 100])
def test_limit(tmp_path, limit):
    path = write(tmp_path / "a.csv", delimited(X[:20]))
    reader = read(path, chunk=4, limit=limit)
    assert sum(len(points) for points, _ in reader) == reader.n_rows == min(limit, 20)


@each("name", ["a.csv", "a.tsv.gz", "a.libsvm", "a.npz", "a.npy"])
def test_reading_goes_on_from_a_position(tmp_path, name):
    path, options = tmp_path / name, {}
    if name == "a.npz":
        np.savez(path, X=X, y=INTEGERS)
    elif name == "a.npy":
        np.save(path, X)
    elif name == "a.libsvm":
        write(path, svmlight(X, INTEGERS))
        options = {"n_features": 4}
    else:
        delimiter = "," if "csv" in name else "\t"
        lines = delimited(X, WORDS, delimiter, ["a", "b", "c", "d", "e"]).splitlines()
        lines[100:100] = ["", delimiter.join("abcde")]
        write(path, "\n".join(lines))
        options = {"target": "e", "on_error": "skip"}
    whole = list(read(path, chunk=300, **options))
    reader = read(path, chunk=300, **options)
    chunks = iter(reader)
    parts = [next(chunks) for _ in range(3)]
    again = read(path, chunk=300, start=reader.position, **options)
    parts += list(again)
    assert len(parts) == len(whole) and again.n_rows == 2500 and again.n_skipped == (name[2] in "ct")
    for (points, labels), (expected, expected_labels) in zip(parts, whole, strict=True):
        assert (points == expected).all()
        assert np.array_equal(labels, expected_labels) if labels is not None else expected_labels is None


def test_a_position_knows_what_labels_are():
    lines = ["b,0", "1,0", "2,0"]
    reader = read(lines, format="csv", target=0, chunk=1)
    next(iter(reader))
    (_, y), *_ = read(lines, format="csv", target=0, start=reader.position)
    assert y.tolist() == ["1", "2"]


# ---- Live input ----------------------------------------------------------------------------------


def test_an_iterable_can_be_read_once():
    reader = read(iter(["1,2\n", "3,4\n"]), format="csv")
    assert gather(reader)[0].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="only once"):
        list(reader)


def test_standard_input_that_is_no_file(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a,b\n1,x\n2,y"))
    assert gather(read("-", target="b"))[1].tolist() == ["x", "y"]


needs_pipes = pytest.mark.skipif(os.name == "nt", reason="Windows cannot wait for a pipe")


@needs_pipes
def test_a_pause_ends_a_chunk(tmp_path):
    os.mkfifo(tmp_path / "live.csv")
    sizes = []
    got = threading.Semaphore(0)

    def learn():
        for points, _ in read(tmp_path / "live.csv", chunk=3, pause=0.02):
            sizes.append(len(points))
            got.release()

    thread = threading.Thread(target=learn)
    thread.start()
    with open(tmp_path / "live.csv", "w") as pipe:
        for lines in ("1,2\n", "1,2\n1,2\n1,2\n1,2\n", "1,", "2\n"):
            pipe.write(lines)
            pipe.flush()
            if lines.endswith("\n"):
                got.acquire(timeout=5)
            time.sleep(0.1)
    thread.join(5)
    assert sizes == [1, 3, 1, 1]


@needs_pipes
def test_chunks_of_one_come_at_once():
    code = "from onlinekernels.streams import read\nfor X, y in read('-', target=1, chunk=1): print(X, y, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        for i in range(3):
            it.stdin.write(f"{i},up\n")
            it.stdin.flush()
            assert it.stdout.readline() == f"[[{i}.]] ['up']\n"
        it.stdin.close()
        assert it.wait(5) == 0


@needs_pipes
def test_memory_stays_flat():
    """A long stream through a pipe: the peak at its end is the peak near its beginning."""
    code = textwrap.dedent("""
        import resource
        from onlinekernels.streams import read
        early, reader = None, read("-", target=-1)
        for X, y in reader:
            if early is None and reader.n_rows > 20000:
                early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(reader.n_rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early)
    """)
    block = delimited(X, WORDS).encode() * 4
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as it:
        for _ in range(15):
            it.stdin.write(block)
        it.stdin.close()
        rows, growth = map(int, it.stdout.read().split())
    assert rows == 150_000 and growth < 4000  # kilobytes; the stream has 13 megabytes, its numbers 5


def test_a_row_without_a_label_does_not_decide_what_labels_are():
    for chunk in (1, 1024):
        _, y = gather(read(["1,2", "3,", "5,6"], format="csv", target=1, on_error="skip", chunk=chunk))
        assert y.tolist() == [2, 6]


def test_libsvm_lines_without_a_label_and_odd_indices():
    lines = ["a 1:1", "1:5 2:3", "b 1_0:1", "c 3:1"]
    for chunk in (1, 1024):
        reader = read(lines, format="libsvm", n_features=20, on_error="skip", chunk=chunk)
        assert gather(reader)[1].tolist() == ["a", "c"] and reader.n_skipped == 2


def test_a_header_may_have_an_empty_name(tmp_path):
    path = write(tmp_path / "a.csv", ",a,label\n0,1.5,x\n1,2.5,y\n")
    X, y = gather(read(path, target="label"))
    assert X.tolist() == [[0, 1.5], [1, 2.5]] and y.tolist() == ["x", "y"]


def test_names_that_come_twice(tmp_path):
    path = write(tmp_path / "a.csv", "a,a,label\n0,1.5,x\n")
    reader = read(path, target="label")
    assert gather(reader)[0].tolist() == [[0, 1.5]]
    assert gather(read(path, target="label", names=reader.feature_names))[0].tolist() == [[0, 1.5]]
    with pytest.raises(ValueError, match="several columns have that name"):
        list(read(path, names=reader.feature_names))


@each("mark", ["utf-16", "utf-16-le", "utf-16-be"])
@each("suffix", ["", ".gz"])
def test_utf_16_is_said_so(tmp_path, mark, suffix):
    content = "a,b\n1,2\n".encode(mark)
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(ValueError, match=r"a\.csv.* is not UTF-8 text: it looks like UTF-16.*iconv"):
        list(read(path))


def test_compressed_data_without_the_ending_are_said_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(ValueError, match=r"a\.csv is compressed.*gzip -dc"):
        list(read(path))


def test_several_targets(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b,c\n1,2,3\n"4",5,6\n')
    points, y = gather(read(path, target=["c", "a"]))
    assert points.tolist() == [[2], [5]] and y.tolist() == [[3, 1], [6, 4]]
    np.save(tmp_path / "a.npy", X[:5])
    points, y = gather(read(tmp_path / "a.npy", target=[-1, 0], chunk=2))
    assert (points == X[:5, 1:3]).all() and (y == X[:5, [3, 0]]).all()
    np.savez(tmp_path / "a.npz", X=X[:5], y=X[:5, :2])
    assert (gather(read(tmp_path / "a.npz"))[1] == X[:5, :2]).all()
    path = write(tmp_path / "b.csv", "a,b,c\n1,2,3\n4,5,x\n7,8,9\n")
    with pytest.raises(BadRow, match="line 3, column 'c, a': expected a number. Got 'x'"):
        list(read(path, target=["c", "a"]))
    assert gather(read(path, target=["c", "a"], on_error="skip"))[1].tolist() == [[3, 1], [9, 7]]
    for target in ([], ["a", 0], ["a", "nothing"]):
        with pytest.raises(ValueError, match="'target' parameter of read must be"):
            list(read(path, target=target))


# ---- Lines of rows, places, early ends -----------------------------------------------------------


@each("name", ["a.csv", "a.npy"])
def test_rows_know_their_lines(tmp_path, name):
    if name == "a.csv":
        write(tmp_path / name, "a,b\n1,2\n\nx,2\n3,4\ny,0\nz,0\n")
        expected = [(1, [2], [4]), (1, [5], [6]), (0, [], [7])]
    else:
        np.save(tmp_path / name, [[1.0, 2], [np.nan, 2], [3, 4], [np.nan, 0], [np.inf, 0]])
        expected = [(1, [0], [1]), (1, [2], [3]), (0, [], [4])]
    chunks = read(tmp_path / name, chunk=2, on_error="skip").with_lines()
    assert [(len(points), lines, skipped) for points, _, lines, skipped in chunks] == expected


@each("name", ["a.csv", "a.csv.gz", "a.npy", "a.npz"])
def test_a_file_that_changed_before_the_place(tmp_path, name):
    def save(points):
        if "csv" in name:
            write(tmp_path / name, delimited(points, names="abcd"))
        else:
            (np.save if "npy" in name else np.savez)(tmp_path / name, **{"arr" if "npy" in name else "X": points})

    save(X[:50])
    reader = read(tmp_path / name, chunk=16)
    for _ in reader:
        place = reader.position
        if reader.n_rows == 32:
            break
    assert read(tmp_path / name, start=place).position == place  # also before it is read from
    over = read(tmp_path / name, start=place, limit=32)
    assert list(over) == [] and over.position == place
    other = X[:60].copy()
    other[40:] = 7.0  # after the place, and longer
    save(other)
    assert (gather(read(tmp_path / name, chunk=9, start=place))[0] == other[32:]).all()
    for row in (0, 31):
        changed = other.copy()
        changed[row, 2] += 1e-9
        save(changed)
        with pytest.raises(ValueError, match="has changed where it was already read, before (line 33|row 32)"):
            list(read(tmp_path / name, chunk=16, start=place))


def test_a_file_that_is_stopped_ends_with_a_chunk(tmp_path):
    path = write(tmp_path / "a.csv", delimited(X, NUMBERS))
    reader, sizes = read(path, chunk=100), []
    for points, _ in reader:
        sizes.append(len(points))
        if len(sizes) == 3:
            reader.stop()
    assert sizes == [100] * 3 and reader.position["rows"] == 300
    rest = read(path, chunk=100, start=reader.position)
    assert sum(len(points) for points, _ in rest) == 2200


@needs_pipes
def test_a_pipe_that_is_stopped_gives_what_was_read(tmp_path):
    os.mkfifo(tmp_path / "live.csv")
    reader = read(tmp_path / "live.csv", chunk=3, pause=60)
    sizes = []
    thread = threading.Thread(target=lambda: sizes.extend(len(points) for points, _ in reader))
    thread.start()
    with open(tmp_path / "live.csv", "w") as pipe:
        pipe.write("1,2\n" * 5 + "1,")
        pipe.flush()
        while reader.n_rows < 3:
            time.sleep(0.01)
        reader.stop()
        thread.join(20)
        assert sizes == [3, 2]


@needs_pipes
def test_the_oldest_line_decides_when_a_chunk_is_due(tmp_path):
    """Lines that come faster than the pause must not delay the first of them for ever."""
    os.mkfifo(tmp_path / "live.csv")
    sizes = []
    is_done = threading.Event()

    def learn():
        for points, _ in read(tmp_path / "live.csv", pause=0.1):
            sizes.append(len(points))
            is_done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    with open(tmp_path / "live.csv", "w") as pipe:
        for _ in range(1000):  # until the first chunk comes, 20 s at most
            pipe.write("1,2\n")
            pipe.flush()
            if is_done.wait(0.02):
                break
    thread.join(20)
    assert is_done.is_set() and sizes[0] < 500


# ---- Words, dates, holes -------------------------------------------------------------------------


def test_kinds_of_columns(tmp_path):
    path = write(tmp_path / "a.csv", 'n,w,d,y\n,red,2024-01-01,1\n2,"a, b",,0\nnan,3,2024-01-02T10:00,1\n')
    expected = [["", "red", "2024-01-01"], ["2", "a, b", ""], ["nan", "3", "2024-01-02T10:00"]]
    for how in ("auto", {"w": "word"}, {-3: "word"}, ["number", "word", "date"]):
        for chunk in (1, 2, 1024):
            chunks = list(read(path, target="y", kinds=how, chunk=chunk))
            assert sum((X.tolist() for X, _ in chunks), []) == expected
            assert sum((y.tolist() for _, y in chunks), []) == [1, 0, 1]
    numbers = write(tmp_path / "b.csv", "a,b\n1,2\n3,\n4,5\n")
    assert [X.dtype.kind for X, _ in read(numbers, kinds="auto", chunk=1)] == ["f", "O", "f"]
    bad = write(tmp_path / "c.csv", "a,b\n1,2\nx,3\n1e999,4\n5,6,7\n8,9\n")
    with pytest.raises(BadRow, match="line 3, column 'a': expected a number, as in rows before. Got 'x' instead. .features="):
        list(read(bad, kinds="auto"))
    reader = read(bad, kinds="auto", on_error="skip")
    assert [X.tolist() for X, _ in reader] == [[["1", "2"], ["8", "9"]]] and reader.n_skipped == 3
    for wrong in ("words", {"n": "text"}, 3):
        with pytest.raises(ValueError, match="'kinds' parameter of read"):
            read(path, kinds=wrong)
    with pytest.raises(ValueError, match="'kinds' parameter of read must be a column"):
        list(read(path, kinds={"z": "word"}))
    with pytest.raises(ValueError, match="'kinds' parameter of read"):
        read("a.npz", kinds="auto")
