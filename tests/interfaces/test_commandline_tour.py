"""The command line: the tour runs, prints what it promises, and copes without matplotlib."""

import io
import re

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


def figures(text):
    """{stream: {model: figure}} from the printed text."""
    found = {}
    for part in text.split("\n\n"):
        rows = re.findall(r"^  (OnlineKernel[A-Z][a-z]+|linear|distance from the mean|constant|by chance) +([\d.]+)",
                          part, flags=re.MULTILINE)
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
    """Of detectors, more is better: three times as many as the distance from the mean or chance finds."""
    found = figures(text)
    assert list(found) == ["Handwritten", "Sunspots", "Motor,"]
    for name in ("Handwritten", "Sunspots"):
        door, line, constant = found[name]
        assert door < 0.85 * line < line < constant
    door, distance, chance = found["Motor,"]
    assert door >= 3 * max(distance, chance) and door >= 10


def test_the_picture(short, tmp_path, monkeypatch, capsys):
    """A PNG that has a default name, and says what it shows."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    titles, save = [], Figure.savefig

    def savefig(figure, path):
        titles.append(figure.axes[0].get_title())
        save(figure, path)

    monkeypatch.setattr(Figure, "savefig", savefig)
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
