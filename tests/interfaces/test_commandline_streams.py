"""Pipes that are never late, signals that lose nothing, checkpoints, and runs that are killed."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from cases import each
from command_line import SINGLE, X, Y, learn, learned_alike, main, needs_posix, refused, reports, start, write_table

from onlinekernels import SILK, load
from onlinekernels.cli import tables
from onlinekernels.cli.options import Interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM]
STEADY = "--kernel gaussian:0.4 --budget 100 --chunk 64".split()


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "data.csv")


def rows_of(n):
    return "".join(f"{a!r},{b!r},{label}\n" for (a, b), label in zip(X[:n].tolist(), Y[:n].tolist(), strict=True))


# ---- Pipes ---------------------------------------------------------------------------------------


@needs_posix
def test_a_live_pipe_is_learned_line_by_line_and_goes_on(tmp_path):
    model = tmp_path / "m.npz"
    options = ("--target", -1, *SINGLE, "--chunk", 1, "--report", 1, "--save", model, "--checkpoint", 1)
    with start("learn", "-", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for i in range(4):
            process.stdin.write(f"{i},{i},{i % 2}\n")
            process.stdin.flush()
            if i < 2:  # F1 comes with the second label
                assert process.stdout.readline().split()[0] == "examples"
            assert process.stdout.readline().split()[0] == str(i + 1)
        process.stdin.close()
        assert process.wait(10) == 0
    assert load(model).t_ == 4
    with start("learn", "-", *options, "--resume", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.communicate("1,2,0\n")
    assert load(model).t_ == 5


def from_pipe(monkeypatch, content, *arguments):
    """The status of a command that reads this on standard input."""
    out, into = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(into, content), os.close(into)))
    writer.start()
    with os.fdopen(out) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        status = main([str(argument) for argument in arguments])
    writer.join()
    return status


@needs_posix
def test_what_a_pipe_may_hold(tmp_path, monkeypatch, capsys):
    """A mark of UTF-8, line breaks in quotes, all ends of lines, characters cut in two; no line without an end."""
    monkeypatch.setattr(tables, "AT_A_TIME", 5)
    content = '\ufeffname,size,label\r\n"Zoë\r\nAda",1,a\rJörg,2,b\n"x",3,a'.encode()
    assert from_pipe(monkeypatch, content, "learn", "-", *SINGLE, "--save", tmp_path / "m") == 0
    model = load(tmp_path / "m.npz")
    assert model.t_ == 3 and list(model.feature_names_in_) == ["name", "size"]
    assert model.decision_function([["Zoë\nAda", 1]]) != model.decision_function([["Zoë", 1]])
    capsys.readouterr()
    monkeypatch.setattr(tables, "AT_A_TIME", 1 << 12)
    monkeypatch.setattr(tables, "LONGEST", 10_000)
    assert from_pipe(monkeypatch, b"1,2\n" + b"3" * 60_000, "learn", "-", *SINGLE) == 1
    expected = "standard input, line 2: expected a line of less than 10000 characters. It does not end."
    assert expected in capsys.readouterr().err


# ---- Signals -------------------------------------------------------------------------------------


def test_a_second_signal_ends_at_once():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)  # noted
        assert interruption.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert interruption.status == 143
    assert signal.getsignal(signal.SIGINT) is before and signal.set_wakeup_fd(-1) == -1


class Killed(BaseException):
    """What stands for the end of the process where the command does not listen for signals."""


def run_with_signal(arguments, moment, number):
    """(exit status or None if killed, number of moments): a signal at some call or return within Python."""
    count = 0

    def profile(*_):
        nonlocal count
        count += 1
        if count == moment:
            signal.raise_signal(number)

    def die(*_):
        raise Killed

    before = {other: signal.signal(other, die) for other in SIGNALS}
    sys.setprofile(profile)
    try:
        status = main([str(argument) for argument in arguments])
    except Killed:
        status = None
    finally:
        sys.setprofile(None)
        for other, handler in before.items():
            signal.signal(other, handler)
    return status, count


@needs_posix
@each("number", SIGNALS)
def test_a_signal_at_any_moment_of_a_file(tmp_path, number, capsys):
    """Whenever it comes, the file loads if there is one, and resuming gives the uninterrupted model, bit for bit."""
    data = write_table(tmp_path / "data.csv", slice(0, 200))
    other = write_table(tmp_path / "other.csv", slice(200, 300))
    whole, model = tmp_path / "whole.npz", tmp_path / "m.npz"
    options = "--features x,y --target word --classes no,yes --chunk 16 --algorithm silk".split()
    arguments = ["learn", data, other, *options, "--checkpoint", 50, "--report", 100, "--resume", "--save"]
    _, total = run_with_signal([*arguments, whole], 0, number)
    choose = random.Random(int(number))
    reached, statuses = [], set()
    for moment in sorted(choose.randrange(1, total) for _ in range(16)):
        model.unlink(missing_ok=True)
        status, _ = run_with_signal([*arguments, model], moment, number)
        statuses.add(status)
        reached.append(load(model).t_ if model.exists() else 0)
        assert main([str(argument) for argument in [*arguments, model]]) == 0
        assert model.read_bytes() == whole.read_bytes(), f"moment {moment}"
    assert statuses <= {0, None, 128 + number} and 128 + number in statuses
    assert len({t for t in reached if 0 < t < 300}) > 3, "too few signals came in the middle"


@needs_posix
@each("number", SIGNALS)
def test_a_signal_at_any_moment_of_a_pipe(tmp_path, monkeypatch, number, capsys):
    """All complete lines that were taken out of the pipe are learned, and no others."""
    monkeypatch.setattr(tables, "AT_A_TIME", 150)
    content = rows_of(150).encode()
    model = tmp_path / "m.npz"
    arguments = ["learn", "-", "--target", "-1", *SINGLE, "--chunk", "4", "--save", model]
    choose = random.Random(int(number))
    total, learned = 0, []
    while len(learned) < 26:
        model.unlink(missing_ok=True)
        out, into = os.pipe()
        os.write(into, content)
        os.close(into)
        with os.fdopen(out) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            moment = choose.randrange(1, total) if total else 0
            status, count = run_with_signal(arguments, moment, number)
            total = total or count
            left = b""
            while received := os.read(out, 1 << 16):
                left += received
        if status is not None:  # it was listening
            taken = content[: len(content) - len(left)]
            learned.append(load(model).t_ if model.exists() else 0)
            assert learned[-1] == taken.count(b"\n"), f"moment {moment}"
    assert len(set(learned)) > 8


# ---- Checkpoints ---------------------------------------------------------------------------------


def test_resuming_gives_the_same_bits(data, tmp_path, capsys):
    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    learn(data, "sign", *STEADY, "--save", whole)
    expected = reports(capsys.readouterr().out)[-1]
    for limit in (64, 960, 960, 2496):
        learn(data, "sign", *STEADY, "--save", parts, "--limit", limit, "--resume", "--checkpoint", 100)
    for _ in range(2):  # the second time there is nothing to do
        learn(data, "sign", *STEADY, "--save", parts, "--resume")
        assert whole.read_bytes() == parts.read_bytes()
    assert reports(capsys.readouterr().out)[-1][:2] == expected[:2]


def test_resuming_needs_the_same_options(data, tmp_path, capsys):
    model = tmp_path / "m.npz"
    learn(data, "sign", *STEADY, "--save", model)
    for option in (["--chunk", 128], ["--kernel", "gaussian:0.5"], ["--set", "step=0.5"]):
        arguments = ["learn", data, "--features", "x,y", "--target", "sign", *SINGLE, *STEADY, *option, "--save",
                     model, "--resume"]
        said = refused(arguments, capsys)
        assert f"{option[0]} must be as it was" in said and re.search(rf"Got \W*{option[1]}\W* instead", said)
    load(model).partial_fit(X, Y).save(model)  # a model that no command has saved begins with the first rows
    plain = ["learn", data, "--features", "x,y", "--target", "sign", "--save", model, "--resume"]
    said = refused([*plain, "--kernel", "gaussian:0.4"], capsys)
    assert "--kernel must be as it was" in said and "None. Got 'gaussian:0.4' instead." in said
    assert main(plain) == 0 and load(model).t_ == 9000
    assert "not read before, learned from its first row" in capsys.readouterr().out


@pytest.fixture
def parts(tmp_path):
    """Three files, one after the other."""
    return [write_table(tmp_path / f"part{i}.csv", slice(1000 * i, 1000 * (i + 1))) for i in range(3)]


def run(*arguments):
    options = ["--features", "x,y", "--target", "sign", "--chunk", "100"]
    return main(["learn", *map(str, arguments), *options, *SINGLE])


def model_of(n):
    """What a run over the first rows, in chunks of 100, gives."""
    model = SILK()
    for begin in range(0, n, 100):
        model.partial_fit(X[begin : begin + 100], Y[begin : begin + 100])
    return model


def test_several_files_in_a_row(parts, tmp_path, capsys):
    model = tmp_path / "m.npz"
    assert run(*parts, "--save", tmp_path / "whole") == 0 and learned_alike(tmp_path / "whole.npz", model_of(3000))
    for part in parts:
        assert run(part, "--save", model, "--resume") == 0
    assert model.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    out = capsys.readouterr().out
    assert "part0.csv: " not in out and out.count(": not read before, learned from its first row.") == 2
    assert run(*parts, "--save", model, "--resume") == 0 and load(model).t_ == 3000  # all are known
    assert capsys.readouterr().out.count(": read before, goes on after row 1000.") == 3
    assert main(["predict", model, *map(str, parts), "--target", "sign"]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == list(map(str, load(model).predict(X))) and "\n3000 examples" in captured.err


@pytest.mark.parametrize("place", ["last row learned", "header", "shorter", "later"])
def test_a_file_that_changed_where_it_was_read_is_an_error(parts, tmp_path, place, capsys):
    model, path = tmp_path / "m.npz", parts[0]
    run(path, "--save", model, "--limit", 500)
    before = model.read_bytes()
    lines = path.read_text().splitlines()
    if place == "shorter":
        lines = lines[:100]
    else:
        line = {"last row learned": 500, "header": 0, "later": 501}[place]
        lines[line] = "0.5," + lines[line].partition(",")[2] if line else lines[line].replace("corner", "edge")
    path.write_text("\n".join(lines))
    assert run(path, "--save", model, "--resume") == (0 if place == "later" else 1)
    if place != "later":
        err = capsys.readouterr().err
        shorter, changed = "ends after 99 rows; expected to go on after 500", "has changed where it was already read"
        assert (shorter if place == "shorter" else changed) in err
        assert "--save another file learns it from its first row" in err and model.read_bytes() == before


# ---- Killed --------------------------------------------------------------------------------------

RANDOM = random.Random(7)


@needs_posix
def test_killed_at_any_moment(data, tmp_path):
    """kill -9 again and again, then let it end: the model is that of a run that was left alone."""
    options = "--kernel gaussian:0.4 --budget 50 --chunk 8 --limit 1600 --save".split()
    whole, model = tmp_path / "whole.npz", tmp_path / "m.npz"
    learn(data, "sign", *options, whole)
    arguments = ["learn", data, "--features", "x,y", "--target", "sign", *SINGLE, *options, model, "--checkpoint", 8,
                 "--resume"]
    reached = []
    for _ in range(4):
        before = model.stat().st_mtime_ns if model.exists() else None
        with start(*arguments, stdout=subprocess.DEVNULL) as process:
            while before == (model.stat().st_mtime_ns if model.exists() else None) and process.poll() is None:
                time.sleep(0.002)
            time.sleep(RANDOM.uniform(0, 0.15))
            process.kill()
        reached.append(load(model).t_)
    assert main([*map(str, arguments)]) == 0
    assert whole.read_bytes() == model.read_bytes()
    assert any(0 < t < 1600 for t in reached), "no kill came in the middle"


@needs_posix
def test_live_input_says_who_learns(tmp_path, monkeypatch, capsys):
    """Words and fractions say it at once; whole numbers are waited for."""
    def learned(labels):
        text = "".join(f"{a!r},{b!r},{label}\n" for (a, b), label in zip(X.tolist(), labels))
        options = ("--effort", "low", "--chunk", 10, "--report", 1, "--save", tmp_path / "m")
        assert from_pipe(monkeypatch, text.encode(), "learn", "-", *options) == 0
        said = capsys.readouterr()
        assert [int(row[0]) for row in reports(said.out)][:2] == [10, 20] and said.err.count("\n") == 1
        return type(load(tmp_path / "m.npz")).__name__

    assert learned(["a", "b"] * 60) == learned([1, 2, 3] * 50) == learned([1, 0] * 15) == "OnlineKernelClassifier"
    assert learned([1.5, 2, 3] * 20) == learned(range(130)) == "OnlineKernelRegressor"
