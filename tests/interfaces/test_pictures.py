"""What models draw: components of additive functions, reports of detectors, bars of progress."""
import numpy as np
import pytest

import onlinekernels as ok

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, size=(60, 5))


@pytest.fixture
def pyplot():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot
    yield pyplot
    pyplot.close("all")


def test_components_are_drawn_one_for_each_feature(pyplot):
    model = ok.NORMA("multiclass_logistic", ok.AdditiveExponential()).fit(X, np.digitize(X[:, 0], [0.3, 0.6]))
    figure = ok.plot_components(model, names=[*"abcde"], points=50)
    drawn = [axis for axis in figure.axes if axis.lines]
    assert [axis.get_xlabel() for axis in drawn] == [*"abcde"] and len(drawn[0].get_legend().get_texts()) == 3
    grid, values = drawn[1].lines[1].get_data()
    np.testing.assert_allclose(values, model.component(1, grid)[:, 1])
    figure, axes = pyplot.subplots(1, 5)
    assert ok.plot_components(model, X, axes=axes) is figure and axes[4].get_xlabel() == "x4"
    for wrong in ({"X": X[:, :2]}, {"names": ["a"]}, {"axes": axes[:2]}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must have an entry for each of the 5 features"):
            ok.plot_components(model, **wrong)


def test_the_report_of_a_detector_has_a_picture(pyplot, tmp_path):
    model = ok.OnlineKernelDetector(0.1, "low").partial_fit(X)
    text = model.report(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 1000
    assert text.count("rows kept") == len(model._state.backend.members) and "60 examples" in text


def test_progress_is_shown_if_it_is_asked_for(capsys):
    pytest.importorskip("tqdm")
    ok.evaluate.progressive(ok.NORMA("squared"), (X, X[:, 0]), progress=True)
    assert "60" in capsys.readouterr().err
