"""The command line: the tour runs, prints what it promises, and copes without matplotlib."""

import re
import sys

import pytest
from cases import each

from onlinekernels.__main__ import main
from onlinekernels.commandline import tour

NAMES = list(tour.learners())
SHORT = ["demo", "--examples", "400"]


@pytest.fixture
def without_matplotlib(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)


def table_of(text):
    """{algorithm: (mistakes, terms, microseconds)} from the printed text."""
    examples = int(text.split()[0])
    rows = re.findall(r"^(\w.*?)  +(\d.*%) .* (\d+) +1 +(\d+\.\d+)$", text, flags=re.MULTILINE)
    return {name: (_count(rate, examples), int(t), float(us)) for name, rate, t, us in rows}


def _count(rates, examples):
    return round(float(rates.split("%")[0]) / 100 * examples)


def test_the_table_has_a_row_for_every_learner(capsys):
    assert main([*SHORT, "--no-plot"]) == 0
    table = table_of(capsys.readouterr().out)
    assert sorted(table) == sorted(NAMES)
    for mistakes, terms, microseconds in table.values():
        assert 0 < mistakes < 400
        assert 0 < terms <= 400
        assert microseconds > 0


def test_the_table_is_aligned(capsys):
    main([*SHORT, "--no-plot"])
    lines = capsys.readouterr().out.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("model"))
    table = lines[header : header + 2 + len(NAMES)]
    assert {len(line) for line in table} == {len(table[0])}


def test_budgets_hold(capsys):
    main([*SHORT, "--no-plot"])
    table = table_of(capsys.readouterr().out)
    assert table["NORMA, Recent(50)"][1] <= 50
    assert table["NORMA, Window(200)"][1] <= 200
    assert table["NORMA, Smallest(100)"][1] <= 100
    # A Perceptron keeps one term for each mistake.
    assert table["Perceptron"][0] == table["Perceptron"][1]


def test_the_papers_order_on_the_whole_stream(capsys):
    """K VI-A: a margin beats none, and forgetting without a margin beats the Perceptron."""
    main(["demo", "--no-plot"])
    mistakes = {name: row[0] for name, row in table_of(capsys.readouterr().out).items()}
    assert mistakes["NORMA, margin 1"] < mistakes["NORMA, margin 0"] < mistakes["Perceptron"]
    assert mistakes["NORMA, margin 1"] < 1100
    for name in NAMES[3:]:
        assert abs(mistakes[name] - mistakes["NORMA, margin 1"]) < 60


def test_the_closing_words_repeat_the_table(capsys):
    main([*SHORT, "--no-plot"])
    text = capsys.readouterr().out
    table = table_of(text)
    closing = " ".join(text[text.index("The Perceptron forgets") :].split())
    assert f"made {table['Perceptron'][0]} mistakes" in closing
    assert f"and made {table['NORMA, margin 1'][0]}." in closing
    assert "docs/quickstart" in closing


def counts(text):
    return {name: row[:2] for name, row in table_of(text).items()}


def test_no_argument_means_the_tour(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["onlinekernels"])
    monkeypatch.setattr(tour, "_picture", lambda comparison, path: 0)
    assert main() == 0
    assert capsys.readouterr().out.startswith("10000 examples")


def test_options_without_a_subcommand_belong_to_the_tour(capsys):
    main([*SHORT, "--no-plot"])
    expected = counts(capsys.readouterr().out)
    assert main(["--examples", "400", "--no-plot"]) == 0
    assert counts(capsys.readouterr().out) == expected


def test_the_seed_decides(capsys):
    tables = []
    for seed in ("0", "1", "0"):
        main([*SHORT, "--no-plot", "--seed", seed])
        tables.append(counts(capsys.readouterr().out))
    assert tables[0] == tables[2] != tables[1]


def test_one_example_is_enough(capsys):
    assert main(["demo", "--examples", "1", "--no-plot"]) == 0
    assert len(table_of(capsys.readouterr().out)) == len(NAMES)


@each(
    "argv", [["--examples", "0"], ["--examples", "many"], ["--seed", "-1"], ["nonsense"]]
)
def test_bad_arguments_end_with_a_sentence(argv, capsys):
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_help(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_without_matplotlib_one_sentence_says_how_to_get_it(
    without_matplotlib, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(SHORT) == 0
    text = capsys.readouterr().out
    assert text.count("pip install matplotlib") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_plot_says_nothing_of_matplotlib(without_matplotlib, capsys):
    main([*SHORT, "--no-plot"])
    assert "matplotlib" not in capsys.readouterr().out


def test_the_picture_is_a_png(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "tour.png"
    assert main([*SHORT, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in capsys.readouterr().out


def test_the_picture_says_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    titles = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: titles.append(figure.axes[0].get_title()))
    assert main([*SHORT, "--plot", str(tmp_path / "tour.png")]) == 0
    assert titles == ["Two classes that drift: mistakes before learning each example"]


def test_every_learner_is_warm_before_it_is_timed(monkeypatch):
    """What all models need once is not charged to the first one: each has learned before the comparison begins."""
    from onlinekernels.model.learner import OnlineLearner

    events = []
    partial_fit, compare = OnlineLearner.partial_fit, tour.compare

    def noted(model, *examples, **options):
        events.append(repr(model))
        return partial_fit(model, *examples, **options)

    monkeypatch.setattr(OnlineLearner, "partial_fit", noted)
    monkeypatch.setattr(tour, "compare", lambda *arguments: events.append("compare") or compare(*arguments))
    assert main([*SHORT, "--no-plot"]) == 0
    assert events[: events.index("compare")] == [repr(learner) for learner in tour.learners().values()]


def test_the_picture_has_a_default_name(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main(SHORT) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["onlinekernels-tour.png"]
    assert "onlinekernels-tour.png" in capsys.readouterr().out


@each("name", ["missing/tour.png", "tour.nonsense"])
def test_a_picture_that_cannot_be_written_is_said_so(name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main([*SHORT, "--plot", str(tmp_path / name)]) == 1
    captured = capsys.readouterr()
    assert "could not be written" in captured.err
    assert len(table_of(captured.out)) == len(NAMES)


class Terminal:
    """A stderr that claims to be a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_a_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    main([*SHORT, "--no-plot"])
    assert "examples" in terminal.text


def test_no_bar_without_a_terminal_or_without_tqdm(monkeypatch, capsys):
    main([*SHORT, "--no-plot"])
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    main([*SHORT, "--no-plot"])
    assert terminal.text == ""
