"""Standard input, checkpoints, and runs that are killed."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cases import each
from command_line import SINGLE, X, Y, learn, needs_posix, reports, same_model, start, write_table

from onlinekernels import SILK, load
from onlinekernels.__main__ import main
from onlinekernels.commandline import checkpoints


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "data.csv")


# ---- Standard input ------------------------------------------------------------------------------


@needs_posix
def test_learning_from_a_pipe_line_by_line(tmp_path):
    model = tmp_path / "m.npz"
    options = ("--target", -1, *SINGLE, "--chunk", 1, "--report", 1, "--save", model, "--checkpoint", 1)
    with start("learn", "-", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for i in range(4):
            process.stdin.write(f"{i},{i},{i % 2}\n")
            process.stdin.flush()
            if i == 0:
                process.stdout.readline()
            assert process.stdout.readline().split()[0] == str(i + 1)
        process.stdin.close()
        assert process.wait(10) == 0
    assert load(model).t_ == 4
    feed = f"{data_lines(2)}"
    with start("predict", model, "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out, _ = process.communicate(feed)
    assert len(out.split()) == 2
    with start("learn", "-", *options, "--resume", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.communicate("1,2,0\n")
    assert load(model).t_ == 5


def data_lines(n):
    return "".join(f"{a!r},{b!r}\n" for a, b in X[:n].tolist())


@needs_posix
@each("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_control_c_saves(tmp_path, number, status):
    model = tmp_path / "m.npz"
    options = ("--target", -1, *SINGLE, "--report", 1, "--save", model)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start("learn", "-", *options, **pipes) as process:
        process.stdin.write("1,2,0\n2,1,1\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    assert process.returncode == status
    assert "Stopped after 2 examples." in err and "saved in" in err
    assert load(model).t_ == 2


@needs_posix
def test_control_c_in_the_middle_of_a_file_can_be_resumed(data, tmp_path):
    model = tmp_path / "m.npz"
    options = "--kernel gaussian:0.4 --budget none --chunk 50 --epochs 3 --report 500".split()
    arguments = ["learn", data, "--features", "x,y", "--target", "sign", *options, "--save"]
    with start(*arguments, model, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130 and 500 <= load(model).t_ < 9000
    assert main([*map(str, arguments), str(model), "--resume"]) == 0
    assert main([*map(str, arguments), str(tmp_path / "whole.npz")]) == 0
    assert model.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_second_signal_ends_at_once():
    from onlinekernels.commandline.interruptions import Interruption

    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)  # noted
        assert interruption.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert interruption.status == 143


@needs_posix
def test_a_reader_that_leaves_early_is_no_drama(data, tmp_path):
    learn(data, "sign", "--limit", 200, "--save", tmp_path / "m")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("predict", tmp_path / "m", data, "--chunk", 1, **pipes) as process:
        process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait(10) == 1


# ---- Checkpoints ---------------------------------------------------------------------------------

STEADY = "--kernel gaussian:0.4 --budget 100 --chunk 64".split()


def test_resuming_gives_the_same_bits(data, tmp_path, capsys):
    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    learn(data, "sign", *STEADY, "--save", whole, "--epochs", 2)
    expected = reports(capsys.readouterr().out)[-1]
    for limit in (100, 1000, 1001, 2500):
        learn(data, "sign", *STEADY, "--save", parts, "--limit", 64 * (limit // 64), "--resume")
    learn(data, "sign", *STEADY, "--save", parts, "--epochs", 2, "--resume")
    assert same_model(whole, parts)
    assert reports(capsys.readouterr().out)[-1][:2] == expected[:2]
    assert whole.read_bytes() == parts.read_bytes()


@each(
    "target, options",
    [
        ("corner", "--loss multiclasshinge --kernel gaussian:1"),
        ("corner", "--loss numulticlasshinge --algorithm norma --kernel polynomial:2 --budget window:300"),
        ("wave", "--loss nuinsensitive --algorithm norma --step decaying:0.3 --offset --budget sublinear"),
        ("wave", "--loss huber --algorithm svmd --kernel gaussian:1 --scale"),
        ("wave", "--loss squared --algorithm norma --kernel linear --average --offset"),
        ("wave", "--loss insensitive --algorithm projection --kernel additive-exponential --budget none"),
        ("word", "--algorithm votedperceptron --kernel gaussian:1"),
        ("word", "--algorithm passiveaggressive --kernel gaussian:1+0.5*laplacian:2 --scale"),
        ("sign", "--loss nunovelty:0.1 --algorithm norma --kernel gaussian:1 --budget 50"),
    ],
)
def test_resuming_every_kind_of_model(data, tmp_path, target, options):
    options = [*options.split(), "--chunk", 100]
    learn(data, target, *options, "--save", tmp_path / "whole")
    for limit in (300, 1100, 3000):
        learn(data, target, *options, "--save", tmp_path / "parts", "--limit", limit, "--resume")
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "parts.npz").read_bytes()


def test_checkpoints_do_not_change_the_model(data, tmp_path):
    learn(data, "sign", *STEADY, "--save", tmp_path / "a")
    learn(data, "sign", *STEADY, "--save", tmp_path / "b", "--checkpoint", 100)
    assert same_model(tmp_path / "a.npz", tmp_path / "b.npz")


def test_resuming_needs_the_same_options(data, tmp_path, capsys):
    model = tmp_path / "m.npz"
    learn(data, "sign", *STEADY, "--save", model)
    for options in (["--chunk", 128], ["--kernel", "gaussian:0.5"]):
        with pytest.raises(SystemExit) as end:
            learn(data, "sign", *STEADY, *options, "--save", model, "--resume")
        assert end.value.code == 2 and f"{options[0]} must be as it was" in capsys.readouterr().err
    SILK().fit(X[:10], Y[:10]).save(model)
    assert learn(data, "sign", *STEADY, "--save", model, "--resume") == 1
    assert "does not remember a stream" in capsys.readouterr().err


def test_a_finished_run_can_be_resumed(data, tmp_path):
    model = tmp_path / "m.npz"
    for _ in range(2):
        assert learn(data, "sign", *STEADY, "--save", model, "--resume") == 0
        assert load(model).t_ == 3000


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = str(tmp_path / "m.npz")
    stream = {"columns": ["f" * 70_000], "totals": {}, "options": {}, "counts": None, "files": []}
    checkpoints.save(SILK().fit(X[:10], Y[:10]), path, stream)
    assert checkpoints.stream_of(load(path)).items() >= stream.items()
    before = Path(path).read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        checkpoints.save(SILK().fit(X[:20], Y[:20]), path, stream)
    assert Path(path).read_bytes() == before and os.listdir(tmp_path) == ["m.npz"]


RANDOM = random.Random(7)


def kill_in_the_middle(arguments, model, patience):
    """Start, wait for a sign of life (mostly) and a random moment more, kill -9; how far the file has come."""
    before = model.stat().st_mtime_ns if model.exists() else None
    is_patient = RANDOM.random() < 0.8
    with start(*arguments, stdout=subprocess.DEVNULL) as process:
        while is_patient and before == (model.stat().st_mtime_ns if model.exists() else None):
            time.sleep(0.002)
            is_patient = process.poll() is None
        time.sleep(RANDOM.uniform(0, patience))
        process.kill()
    return load(model).t_ if model.exists() else 0


def survive(data, folder, kills, patience=0.15):
    """Kill a run again and again, then let it end: its model is that of a run that was left alone."""
    options = "--kernel gaussian:0.4 --budget 50 --chunk 8 --save".split()
    whole, model = folder / "whole.npz", folder / "m.npz"
    learn(data, "sign", *options, whole)
    data_options = ["learn", data, "--features", "x,y", "--target", "sign", *SINGLE]
    arguments = [*data_options, *options, model, "--checkpoint", 8, "--resume"]
    reached = [kill_in_the_middle(arguments, model, patience) for _ in range(kills)]
    assert main([*map(str, arguments)]) == 0
    assert same_model(whole, model) and whole.read_bytes() == model.read_bytes()
    assert [name for name in os.listdir(folder) if "checkpoint" in name] == []
    return reached


@needs_posix
def test_killed_at_any_moment(data, tmp_path):
    reached = survive(data, tmp_path, kills=5)
    assert any(0 < t < 3000 for t in reached), "no kill came in the middle"
