"""Pipes that are never late, and signals that lose nothing."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
from cases import each
from command_line import SINGLE, X, Y, needs_posix, start, write_table

from onlinekernels import SILK, load
from onlinekernels.__main__ import main
from onlinekernels.streams import lines

pytestmark = needs_posix
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def rows_of(n):
    return "".join(f"{a!r},{b!r},{label}\n" for (a, b), label in zip(X[:n].tolist(), Y[:n].tolist(), strict=True))


def say(process, text):
    """Write to a process, and wait until it has taken the text out of the pipe."""
    import fcntl
    import termios

    process.stdin.write(text)
    process.stdin.flush()
    left, patience = bytes(4), 1000
    while patience and any(fcntl.ioctl(process.stdin, termios.FIONREAD, left)):
        time.sleep(0.01)
        patience -= 1


# ---- Pipes ---------------------------------------------------------------------------------------


def test_every_line_of_a_steady_pipe_is_answered_soon(tmp_path):
    """Twenty lines a second: no silence of 0.1 s ever comes, and still no line waits longer than 0.5 s."""
    SILK().fit(X, Y).save(tmp_path / "m.npz")
    answered = []
    with start("predict", tmp_path / "m.npz", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def listen():
            for _ in process.stdout:
                answered.append(time.monotonic())

        listener = threading.Thread(target=listen)
        listener.start()
        asked = []
        for a, b in X[:20].tolist():
            asked.append(time.monotonic())
            process.stdin.write(f"{a},{b}\n")
            process.stdin.flush()
            while len(asked) == 1 and not answered:  # it has to start first
                time.sleep(0.01)
            time.sleep(0.05)
        process.stdin.close()
        listener.join(20)
    assert len(answered) == 20
    assert (np.array(answered) - asked)[1:].max() < 0.5


@each("number", SIGNALS)
def test_control_c_on_a_steady_pipe_saves_what_was_read(tmp_path, number):
    """The last lines are younger than 0.1 s, so they wait for others; they are learned before the end."""
    model = tmp_path / "m.npz"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start("learn", "-", "--target", -1, *SINGLE, "--report", 1, "--save", model, **pipes) as process:
        say(process, rows_of(2))
        process.stdout.readline()
        process.stdout.readline()  # it has started
        for text in rows_of(5).splitlines(keepends=True)[2:]:
            say(process, text)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "Stopped after 5 examples. They are saved in" in err
    assert load(model).t_ == 5


def test_control_c_while_a_named_pipe_waits_for_its_writer(tmp_path):
    os.mkfifo(tmp_path / "live.csv")
    with start("learn", tmp_path / "live.csv", "--target", -1, stderr=subprocess.PIPE) as process:
        time.sleep(1.0)
        while process.poll() is None:  # it may not have started yet
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.returncode in (130, -signal.SIGINT)


# ---- Signals at any moment -----------------------------------------------------------------------


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


@each("number", SIGNALS)
def test_a_signal_at_any_moment_of_a_file(tmp_path, number, capsys):
    """Whenever it comes, the file loads if there is one, and resuming gives the uninterrupted model, bit for bit."""
    data = write_table(tmp_path / "data.csv", slice(0, 200))
    other = write_table(tmp_path / "other.csv", slice(200, 300))
    whole, model = tmp_path / "whole.npz", tmp_path / "m.npz"
    options = "--features x,y --target word --classes no,yes --class-weight balanced --epochs 2 --chunk 32 --algorithm silk".split()
    arguments = ["learn", data, other, *options, "--checkpoint", 150, "--report", 100, "--resume", "--save"]
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
    assert len({t for t in reached if 0 < t < 600}) > 5, "too few signals came in the middle"


@each("number", SIGNALS)
def test_a_signal_at_any_moment_of_a_pipe(tmp_path, monkeypatch, number, capsys):
    """All complete lines that were taken out of the pipe are learned, and no others."""
    monkeypatch.setattr(lines, "_BYTES_AT_A_TIME", 150)
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


def test_predictions_end_in_good_order(tmp_path):
    SILK().fit(X, Y).save(tmp_path / "m.npz")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start("predict", tmp_path / "m.npz", "-", **pipes) as process:
        say(process, "0,0\n")
        assert process.stdout.readline()
        say(process, "1,1\n2,2\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert len(out.split()) == 2 and err == "" and process.returncode == 130
