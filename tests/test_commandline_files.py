"""Several files, and what a model file remembers of them."""

import gzip
import json
import shutil

import numpy as np
import pytest
from cases import each
from command_line import CORNERS, SINGLE, WORDS, X, Y, learn, write_table

from onlinekernels import SILK, load
from onlinekernels.__main__ import main
from onlinekernels.streams import lines

STEADY = ["--features", "x,y", "--target", "sign", "--chunk", "100"]


@pytest.fixture
def parts(tmp_path):
    """Three files, one after the other."""
    return [write_table(tmp_path / f"part{i}.csv", slice(1000 * i, 1000 * (i + 1))) for i in range(3)]


def run(*arguments):
    return main(["learn", *map(str, arguments), *STEADY, *([] if "--model" in arguments else SINGLE)])


def model_of(rows):
    """What a run over these rows, in chunks of 100, gives."""
    model = SILK()
    for begin in range(rows.start, rows.stop, 100):
        model.partial_fit(X[begin : begin + 100], Y[begin : begin + 100])
    return model


def same(path, model):
    loaded = load(path)
    return loaded.t_ == model.t_ and (loaded.dual_coef_ == model.dual_coef_).all()


def test_several_files_in_a_row(parts, tmp_path, capsys):
    assert run(*parts, "--save", tmp_path / "m") == 0
    assert same(tmp_path / "m.npz", model_of(range(3000)))
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), *map(str, parts), "--target", "sign"]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == list(map(str, load(tmp_path / "m.npz").predict(X)))
    assert captured.err.startswith("3000 examples")
    assert run(*parts, "--epochs", 2, "--save", tmp_path / "n") == 0
    assert load(tmp_path / "n.npz").t_ == 6000
    with pytest.raises(SystemExit):
        run(parts[0], parts[0])
    assert "data must be different files; --epochs repeats them" in capsys.readouterr().err


def test_names_are_kept_beyond_a_file_without_any(parts, tmp_path, capsys):
    plain = tmp_path / "plain.csv"
    plain.write_text("".join(f"{a!r},{b!r},{t}\n" for (a, b), t in zip(X[:50].tolist(), Y[:50].tolist(), strict=True)))
    (tmp_path / "named.csv").write_text("x,y,sign\n" + plain.read_text())
    arguments = ["learn", str(tmp_path / "named.csv"), str(plain), "--target", "2", *SINGLE, "--save", str(tmp_path / "m")]
    assert main(arguments) == 0
    (tmp_path / "new.csv").write_text("y,x\n2.5,0.5\n")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--scores"]) == 0
    score = float(capsys.readouterr().out.split(",")[-1])
    assert score == load(tmp_path / "m.npz").decision_function([[0.5, 2.5]])[0]


def test_another_file_is_learned_from_its_first_row(parts, tmp_path, capsys):
    model = tmp_path / "m.npz"
    for part in parts:
        assert run(part, "--save", model, "--resume") == 0
    assert same(model, model_of(range(3000)))
    out = capsys.readouterr().out
    assert "part0.csv: " not in out
    assert out.count(": not read before, learned from its first row.") == 2
    assert run(*parts, "--save", model, "--resume") == 0  # all are known
    assert load(model).t_ == 3000
    assert capsys.readouterr().out.count(": read before, goes on after line 1001.") == 3


def test_the_same_file_goes_on_when_it_has_grown(parts, tmp_path, capsys):
    log, model = tmp_path / "log.csv", tmp_path / "m.npz"
    log.write_bytes(parts[0].read_bytes())
    assert run(log, "--save", model) == 0
    with open(log, "a", newline="") as file:
        file.write("".join(parts[1].read_text().splitlines(keepends=True)[1:]))
    assert run(log, "--save", model, "--resume") == 0
    assert same(model, model_of(range(2000)))
    assert "log.csv: read before, goes on after line 1001." in capsys.readouterr().out
    run(log, "--save", tmp_path / "whole")
    assert model.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_file_that_was_moved_is_known_again(parts, tmp_path, capsys):
    model = tmp_path / "m.npz"
    run(parts[0], "--save", model, "--limit", 500)
    shutil.move(parts[0], tmp_path / "moved.csv")
    assert run(tmp_path / "moved.csv", "--save", model, "--resume") == 0
    assert same(model, model_of(range(1000)))
    assert "moved.csv: read before, goes on after line 501." in capsys.readouterr().out
    write_table(parts[0], slice(1000, 2000))  # by now that name belongs to another file
    assert run(parts[0], "--save", model, "--resume") == 0
    assert same(model, model_of(range(2000)))


@pytest.mark.parametrize("place", ["first row", "last row read", "header", "shorter", "copy"])
def test_a_file_that_changed_where_it_was_read_is_an_error(parts, tmp_path, place, capsys):
    model, path = tmp_path / "m.npz", parts[0]
    run(path, "--save", model, "--limit", 500)
    before = model.read_bytes()
    lines = path.read_text().splitlines()
    if place == "copy":  # begins like the file that was read
        path = tmp_path / "copy.csv"
        place = "last row read"
    if place == "shorter":
        lines = lines[:100]
    else:
        line = {"first row": 1, "last row read": 500, "header": 0}[place]
        lines[line] = "0.5," + lines[line].partition(",")[2] if line else lines[line].replace("corner", "edge")
    path.write_text("\n".join(lines))
    assert run(path, "--save", model, "--resume") == 1
    err = capsys.readouterr().err
    expected = "ends at line 100; expected to go on" if place == "shorter" else "has changed where it was already read"
    assert expected in err
    assert f"--model {model} learns it from its first row" in err
    assert model.read_bytes() == before


def test_a_file_that_changed_after_the_place_goes_on(parts, tmp_path):
    model, path = tmp_path / "m.npz", parts[0]
    run(path, "--save", model, "--limit", 500)
    lines = path.read_text().splitlines()[:601]
    path.write_text("\n".join(lines))
    assert run(path, "--save", model, "--resume") == 0
    assert same(model, model_of(range(600)))


@each("suffix", ["csv.gz", "npz", "npy"])
def test_files_that_are_no_plain_text_are_known_again(tmp_path, suffix, capsys):
    def save(name, rows):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "npz":
            np.savez(path, X=X[rows], y=Y[rows])
        elif suffix == "npy":
            np.save(path, np.column_stack([X[rows], Y[rows]]))
        else:
            table = zip(X[rows].tolist(), Y[rows].tolist(), strict=True)
            with gzip.open(path, "wt") as file:
                file.writelines(f"{a!r},{b!r},{t}\n" for (a, b), t in table)
        return path

    options = SINGLE if suffix == "npz" else ["--target", "2", *SINGLE]
    save("first", slice(0, 1000))
    steps = [("first", slice(0, 1500), "goes on after"), ("second", slice(1500, 3000), "not read before")]
    arguments = ["--chunk", "100", "--save", str(tmp_path / "m"), "--resume", *options]
    assert main(["learn", str(tmp_path / f"first.{suffix}"), *arguments]) == 0
    for name, rows, words in steps:
        capsys.readouterr()
        assert main(["learn", str(save(name, rows)), *arguments]) == 0
        assert words in capsys.readouterr().out
    assert load(tmp_path / "m.npz").t_ == 3000
    main(["show", str(tmp_path / "m")])
    assert f"first.{suffix}, pass 1, {'row' if 'np' in suffix else 'line'} 1500" in capsys.readouterr().out
    save("first", slice(1, 1501))
    assert main(["learn", str(tmp_path / f"first.{suffix}"), *arguments]) == 1
    assert "has changed where it was already read" in capsys.readouterr().err


def test_an_interrupted_row_of_files_goes_on(parts, tmp_path):
    whole, model = tmp_path / "whole.npz", tmp_path / "m.npz"
    run(*parts, "--epochs", 2, "--save", whole)
    run(parts[0], "--save", model, "--resume")
    run(*parts[:2], "--save", model, "--limit", 500, "--resume")
    run(*parts, "--save", model, "--resume")
    for _ in range(2):  # the second time there is nothing to do
        run(*parts, "--save", model, "--epochs", 2, "--resume")
        assert model.read_bytes() == whole.read_bytes()


def test_going_on_with_a_model_learns_again_and_remembers_all(parts, tmp_path, capsys):
    run(*parts[:2], "--save", tmp_path / "a")
    assert run(parts[1], "--model", tmp_path / "a.npz", "--save", tmp_path / "b") == 0
    assert load(tmp_path / "b.npz").t_ == 3000
    assert main(["learn", *map(str, parts), *STEADY, "--save", str(tmp_path / "b"), "--resume"]) == 0
    assert load(tmp_path / "b.npz").t_ == 4000


def test_files_that_begin_alike(tmp_path, capsys):
    """Given together they are different files; one that comes alone later is taken for the one that was moved."""
    a = write_table(tmp_path / "a.csv", slice(0, 500))
    b = write_table(tmp_path / "b.csv", slice(0, 500))
    assert run(a, b, "--save", tmp_path / "m") == 0
    assert run(a, b, "--save", tmp_path / "m", "--resume") == 0
    assert load(tmp_path / "m.npz").t_ == 1000


def test_what_a_model_file_remembers(parts, tmp_path, capsys):
    model = tmp_path / "m.npz"
    run(*parts[:2], "--save", model)
    capsys.readouterr()
    assert main(["show", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["read"] == [
        {"name": path.name, "bytes": path.stat().st_size, "pass": 1, "line": 1001, "rows": 1000} for path in parts[:2]
    ]
    assert str(tmp_path).encode() not in model.read_bytes()  # folders are nobody's business
    loaded = load(model)
    loaded.partial_fit(X, Y).save(model)  # by now the places would be wrong
    assert run(parts[2], "--save", model, "--resume") == 1
    assert f"does not remember a stream. (--model {model} goes on with it.)" in capsys.readouterr().err


def test_the_notes_are_under_the_checksum(parts, tmp_path):
    run(parts[0], "--save", tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = {name: file[name] for name in file.files}
    header = arrays["header"].tobytes().replace(b'"line": 1001', b'"line": 1002')
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(ValueError, match="changed after it was written"):
        load(tmp_path / "m.npz")


# ---- Skipped rows --------------------------------------------------------------------------------


def test_predictions_line_up_with_rows_that_are_skipped(tmp_path, capsys):
    learn(write_table(tmp_path / "data.csv"), "word", "--loss", "logistic", "--save", tmp_path / "m")
    model = load(tmp_path / "m.npz")
    texts = [f"{a!r},{b!r}" for a, b in X[:10].tolist()]
    bad = [0, 1, 4, 9]
    for i in bad:
        texts[i] = "oops,1" if i % 2 else "1,oops"
    (tmp_path / "new.csv").write_text("x,y\n" + "\n".join(texts) + "\n")
    for chunk in (1, 2, 3, 100):
        capsys.readouterr()
        arguments = ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--on-error", "skip"]
        arguments += ["--chunk", str(chunk)]
        assert main(arguments) == 0
        captured = capsys.readouterr()
        expected = ["" if i in bad else label for i, label in enumerate(model.predict(X[:10]).tolist())]
        assert captured.out.split("\n") == [*expected, ""]
        assert "Skipped bad rows, which have an empty line: 4." in captured.err
        assert main([*arguments, "--probabilities"]) == 0
        heading, *rows = capsys.readouterr().out.split("\n")
        assert heading == "prediction,probability no,probability yes"
        assert [i for i, row in enumerate(rows[:10]) if row == ""] == bad


# ---- Labels --------------------------------------------------------------------------------------


def test_labels_beyond_doubles_stay_distinct(tmp_path, capsys):
    labels = np.where(Y > 0, 9007199254740993, 9007199254740992)
    with open(tmp_path / "a.csv", "w") as file:
        file.writelines(f"{a!r},{b!r},{t}\n" for (a, b), t in zip(X.tolist(), labels.tolist(), strict=True))
    for options in ([], ["--classes", "9007199254740993,9007199254740992"], ["--loss", "multiclasshinge"]):
        arguments = ["learn", str(tmp_path / "a.csv"), "--target", "2", *SINGLE, *options, "--save", str(tmp_path / "m")]
        assert main([*arguments, "--chunk", "1500"]) == 0
        model = load(tmp_path / "m.npz")
        assert sorted(model.classes_.tolist()) == [9007199254740992, 9007199254740993]
        capsys.readouterr()
        assert main(["predict", str(tmp_path / "m"), str(tmp_path / "a.csv"), "--target", "2"]) == 0
        captured = capsys.readouterr()
        expected = SILK("multiclasshinge" if "--loss" in options else "hinge")
        for begin in (0, 1500):
            expected.partial_fit(X[begin : begin + 1500], WORDS[begin : begin + 1500])
        answers = np.where(expected.predict(X) == "yes", 9007199254740993, 9007199254740992)
        assert captured.out.split() == list(map(str, answers))
        wrong = np.mean(answers != labels)
        assert captured.err == f"3000 examples, {wrong:.2%} mistakes\n"


# ---- Weights of classes --------------------------------------------------------------------------


def test_balanced_classes(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv")
    options = ["--loss", "multiclasshinge", "--class-weight", "balanced", "--chunk", 100]
    learn(data, "corner", *options, "--save", tmp_path / "m")
    model, seen = SILK("multiclasshinge"), []
    for begin in range(0, 3000, 100):
        weights = []
        for label in CORNERS[begin : begin + 100].tolist():
            seen.append(label)
            weights.append(len(seen) / (len(set(seen)) * seen.count(label)))
        model.partial_fit(X[begin : begin + 100], CORNERS[begin : begin + 100], sample_weight=weights)
    assert (load(tmp_path / "m.npz").dual_coef_ == model.dual_coef_).all()
    for limit in (700, 3000):  # the counts are remembered
        learn(data, "corner", *options, "--save", tmp_path / "n", "--limit", limit, "--resume")
    assert (tmp_path / "m.npz").read_bytes() == (tmp_path / "n.npz").read_bytes()


def test_weights_of_classes(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv")
    learn(data, "word", "--class-weight", "yes:3,no:0.5", "--chunk", 3000, "--save", tmp_path / "m")
    expected = SILK(class_weight={"yes": 3.0, "no": 0.5}).partial_fit(X, WORDS)
    model = load(tmp_path / "m.npz")
    assert (model.dual_coef_ == expected.dual_coef_).all() and model.class_weight == {"yes": 3.0, "no": 0.5}
    learn(data, "sign", "--class-weight", "1:3", "--chunk", 3000, "--save", tmp_path / "n")
    assert (load(tmp_path / "n.npz").dual_coef_ == SILK(class_weight={1: 3.0}).partial_fit(X, Y).dual_coef_).all()
    learn(data, "sign", "--label-type", "string", "--class-weight", "1:3", "--chunk", 3000, "--save", tmp_path / "n")
    assert load(tmp_path / "n.npz").class_weight == {"1": 3.0}
    capsys.readouterr()
    learn(data, "corner", "--loss", "multiclasshinge", "--class-weight", "NE:2,north:3", "--save", tmp_path / "n")
    assert capsys.readouterr().err == "--class-weight names 'north', which never came.\n"
    for weights, message in (("yes", "must be balanced, or LABEL:WEIGHT"), ("yes:-1", "weights of at least 0")):
        with pytest.raises(SystemExit):
            learn(data, "word", "--class-weight", weights)
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        learn(data, "wave", "--loss", "squared", "--class-weight", "balanced")
    assert "--class-weight needs a loss of classes. Got Squared()" in capsys.readouterr().err


def test_a_file_is_opened_once(tmp_path, monkeypatch):
    """For each pass, whatever was learned of it before; a file that was moved is looked into first."""
    opened, open_text = [], lines._open_text
    monkeypatch.setattr(lines, "_open_text", lambda path: opened.append(path) or open_text(path))
    data, model = write_table(tmp_path / "a.csv", slice(0, 300)), tmp_path / "m.npz"
    learn(data, "sign", "--algorithm", "silk", "--epochs", 2, "--save", model)
    assert len(opened) == 2
    assert main(["predict", str(model), str(data), "--target", "sign", "--features", "x,y"]) == 0
    assert len(opened) == 3
    shutil.copy(data, tmp_path / "b.csv")
    data.unlink()
    with open(tmp_path / "b.csv", "a") as file:
        file.write((tmp_path / "b.csv").read_text().splitlines()[-1] + "\n")
    learn(tmp_path / "b.csv", "sign", "--algorithm", "silk", "--epochs", 2, "--save", model, "--resume")
    assert load(model).t_ == 601 and len(opened) == 5
