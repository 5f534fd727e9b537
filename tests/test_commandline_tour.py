"""The command line: the tour runs, prints what it promises, and copes without matplotlib."""

import io
import re
import sys
from collections import Counter

import numpy as np
import pytest
from cases import each

from onlinekernels import streams
from onlinekernels.__main__ import main
from onlinekernels.cli import demo as tour

SHORT = ["demo"]


@pytest.fixture
def short(monkeypatch):
    """A tour through the beginnings of its streams."""
    X, y = streams.digits()
    monkeypatch.setattr(tour, "digits", lambda: (X[:120], y[:120]))


@pytest.fixture
def without_matplotlib(monkeypatch, short):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)


def figures(text):
    """{stream: {model: figure}} from the printed text."""
    found = {}
    for part in text.split("\n\n"):
        rows = re.findall(r"^  (OnlineKernel[A-Z][a-z]+|linear|distance from the mean|constant|by chance) +([\d.]+)", part, flags=re.MULTILINE)
        if rows:
            found[part.split()[0]] = [float(figure) for _, figure in rows]
    return found


@pytest.fixture(scope="module")
def text():
    import contextlib

    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*SHORT, "--no-plot"]) == 0
    return out.getvalue()


def test_the_ensemble_is_better_than_a_line_and_a_line_than_a_constant(text):
    """Of detectors, more is better: the ensemble finds as many as the distance from the mean, and four times what chance does."""
    found = figures(text)
    assert list(found) == ["Handwritten", "Sunspots", "Tumours,"]
    for name in ("Handwritten", "Sunspots"):
        door, line, constant = found[name]
        assert door < 0.85 * line < line < constant
    door, distance, chance = found["Tumours,"]
    assert door >= 0.9 * distance and door >= 4 * chance


def test_figures_are_those_of_plain_loops(text):
    """The constant is the most frequent class so far, by a loop that is written another way."""
    _, y = streams.digits()
    wrong = sum(t == 0 or Counter(y[:t].tolist()).most_common(1)[0][1] > 0 and min(
        (label for label, n in Counter(y[:t].tolist()).items() if n == max(Counter(y[:t].tolist()).values()))) != y[t]
        for t in range(200))
    assert wrong == np.sum(tour._most_frequent_before(y[:200]) != y[:200])
    assert 85 < float(re.search(r"covered (\d+)%", text)[1]) < 96


def test_no_argument_means_the_tour(short, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["onlinekernels"])
    monkeypatch.setattr(tour, "_picture", lambda panels, path: 0)
    assert main() == 0
    assert capsys.readouterr().out.startswith("Three real streams")


def test_options_without_a_subcommand_belong_to_the_tour(text, capsys):
    assert main(["--no-plot"]) == 0
    assert capsys.readouterr().out == text


@each("argv", [["--examples", "0"], ["--plot"], ["nonsense"]])
def test_bad_arguments_end_with_a_sentence(argv, capsys):
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_without_matplotlib_one_sentence_says_how_to_get_it(without_matplotlib, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(SHORT) == 0
    assert capsys.readouterr().out.count("pip install matplotlib") == 1
    assert list(tmp_path.iterdir()) == []
    main([*SHORT, "--no-plot"])
    assert "matplotlib" not in capsys.readouterr().out


def test_the_picture(short, tmp_path, monkeypatch, capsys):
    """A PNG that has a default name, and says what it shows."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    titles, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: titles.append(figure.axes[0].get_title()) or save(figure, path))
    monkeypatch.chdir(tmp_path)
    assert main(SHORT) == 0 and titles == ["digits: mistakes so far"]
    assert [path.name for path in tmp_path.iterdir()] == ["onlinekernels-tour.png"]
    assert (tmp_path / "onlinekernels-tour.png").read_bytes().startswith(b"\x89PNG")
    assert "onlinekernels-tour.png" in capsys.readouterr().out


@each("name", ["missing/tour.png", "tour.nonsense"])
def test_a_picture_that_cannot_be_written_is_said_so(short, name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main([*SHORT, "--plot", str(tmp_path / name)]) == 1
    captured = capsys.readouterr()
    assert "could not be written" in captured.err
    assert len(figures(captured.out)) == 3


class Terminal(io.StringIO):
    """A stderr that claims to be a terminal."""

    def isatty(self):
        return True


def test_a_bar_on_a_terminal_if_tqdm_is_there(short, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    main([*SHORT, "--no-plot"])
    assert capsys.readouterr().err == ""
    for is_there in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", Terminal())
            if not is_there:
                patch.setitem(sys.modules, "tqdm", None)
            main([*SHORT, "--no-plot"])
            assert ("streams" in sys.stderr.getvalue()) == is_there
