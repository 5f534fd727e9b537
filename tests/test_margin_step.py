"""The step of an adapted scalar: shared with f (the papers), or its own; and the warning when it has run away."""
import pickle
import warnings

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from test_real_data import load

NU_LOSSES = [ok.NuHinge, ok.NuNovelty, ok.NuInsensitive, ok.NuHuber, ok.NuMulticlassHinge, ok.NuGraphHinge]


def rows(n=8000, seed=0):
    """Three clouds in five dimensions, and in every fiftieth row something else."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(3, 5))[rng.integers(0, 3, n)] + rng.normal(size=(n, 5))
    odd = rng.random(n) < 0.02
    X[odd] = rng.uniform(-8, 8, size=(odd.sum(), 5))
    return X, odd


def area(scores, odd):
    """Probability that an ordinary row scores higher than an odd one."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return (ranks[~odd].mean() - (np.sum(~odd) - 1) / 2) / np.sum(odd)


def gaps(alerts):
    """Coefficient of variation of the distances between alerts: 0 for a clock, about 1 for chance."""
    between = np.diff(np.flatnonzero(alerts))
    return between.std() / between.mean()


@each("cls", NU_LOSSES)
@each("bad", [0.0, -0.1, np.nan, "fast", True])
def test_a_step_that_is_no_positive_number_is_refused(cls, bad):
    with pytest.raises(ValueError, match="'margin_step'.*positive number, 'log' or None"):
        cls(margin_step=bad).validate()


@each("make", [ok.SILK, ok.NORMA, ok.SVMD])
def test_detectors_are_no_clocks(make):
    X, odd = rows(12_000)
    detector = make("nunovelty", scale=True)
    scores, margins = detector.progressive(X, return_margins=True)
    scores, margins, odd = scores[5000:], margins[5000:], odd[5000:]
    assert 0.8 < np.mean(scores < margins) / 0.01 < 1.2
    assert area(scores - margins, odd) > area(scores, odd) - 0.05 > 0.9
    assert gaps(scores < margins) > 0.6
    assert (detector.predict(X[-2000:]) == -1).any()


def test_the_papers_step_is_a_clock_where_it_is_as_large_as_f():
    """What the others are for: with the step of f the alerts come every 1 / nu rows, whatever comes."""
    X, _ = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ok.LearningWarning)
        scores, margins = ok.SILK(ok.NuNovelty(margin_step=None), regularization=3e-3, scale=True).progressive(
            X, return_margins=True
        )
    assert gaps((scores < margins)[3000:]) < 0.1


def test_a_weight_of_zero_moves_nothing():
    X, _ = rows(50)
    model = ok.NORMA("nunovelty").partial_fit(X[:40])
    before = model._state.hypothesis.state(), model.margin_
    model.partial_fit(X[40:], sample_weight=np.zeros(10))
    after = model._state.hypothesis.state()
    assert all(after[name] == before[0][name] for name in ("gap", "gap_weight", "scalar"))
    assert model.margin_ == before[1]


@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")  # than the mean of noise
def test_the_step_is_relative():
    """Targets in other units: the width follows, from the same start."""
    rng = np.random.default_rng(2)
    X, noise = rng.normal(size=(4000, 1)), rng.normal(size=4000)
    for size in (1e-3, 1e3):
        loss = ok.NuInsensitive(0.2, width=1.0)
        model = ok.ILK(loss, "linear", step=0.01, penalty=size)
        widths = model.progressive(X, size * noise, return_margins=True)[1]
        assert 0.9 < widths[2000:].mean() / (1.28 * size) < 1.1


# ---- The warning -----------------------------------------------------------------------------------------------


def said(model, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(*data)
    assert all(issubclass(w.category, RuntimeWarning) for w in caught)
    return [str(w.message) for w in caught if w.category is ok.LearningWarning]


def test_a_margin_that_has_run_away_is_told_once():
    X, _ = rows(12_000)
    model = ok.SILK(ok.NuNovelty(0.05, margin_step=None), regularization=0.03, scale=True)
    (message,) = said(model, X)
    for part in ("has run away", "margin_step such as 0.1", "smaller regularization", "larger width"):
        assert part in message
    assert said(model, X) == []


def test_it_is_told_row_by_row_as_well():
    X, _ = rows(6000)
    model = ok.NORMA(ok.NuNovelty(0.2, margin_step=None), ok.Gaussian(0.01), step=1.0, budget=10).partial_fit(X[:1])
    with pytest.warns(ok.LearningWarning, match="below all scores"):
        for x in X:
            model.learn_one(x)


@each("nu", [0.01, 0.1])
@each("make", [ok.SILK, ok.NORMA, ok.SVMD])
def test_detectors_that_work_are_not_warned_of(make, nu):
    for seed in range(2):
        assert said(make(ok.NuNovelty(nu), scale=True), rows(12_000, seed)[0]) == []


# ---- Real data -------------------------------------------------------------------------------------------------


def shuttle():
    data = load("ad_shuttle")
    return data["X"].astype(float), data["y"] > 0


def skab():
    data = load("skab")
    runs = sorted(key.removesuffix("::anomaly") for key in data if key.endswith("::anomaly"))
    return (np.concatenate([data[f"{run}::{name}"] for run in runs]) for name in ("X", "anomaly"))


@each("shuffled", [False, True])
@each("source", [shuttle, skab])
@each("make", [ok.SILK, ok.NORMA, ok.SVMD])
def test_detectors_on_real_data(make, source, shuffled):
    X, odd = source()
    X, odd = np.asarray(X, dtype=float), np.asarray(odd) > 0
    order = np.random.default_rng(0).permutation(len(X)) if shuffled else np.arange(len(X))
    scores, margins = make("nunovelty", scale=True).progressive(X[order], return_margins=True)
    scores, margins, odd = scores[5000:], margins[5000:], odd[order][5000:]
    assert area(scores - margins, odd) > area(scores, odd) - 0.1
    assert 0.8 < np.mean(scores < margins) / 0.01 < 1.2
    if shuffled:
        assert gaps(scores < margins) > 0.6


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_weights_whose_sum_overflows_are_refused():
    """A row that the running mean of gaps cannot take in is not learned, and the model can still be written."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    for algorithm in (ok.NORMA, ok.SILK, ok.ILK):
        for loss, y in (("nuhinge", np.sign(X[:, 0])), ("nuhuber", X[:, 0]), ("nunovelty", None)):
            model = algorithm(loss).partial_fit(X, y)
            for i in range(10):
                try:
                    model.partial_fit(X[i:i + 1], None if y is None else y[i:i + 1], sample_weight=[1e308])
                except FloatingPointError as error:
                    assert "cannot be learned" in str(error)
            model._state.engine._check()
            twin = pickle.loads(pickle.dumps(model))
            assert (twin.progressive(X, y) == model.progressive(X, y)).all()


REPRESENTATIONS = {"terms": ok.Gaussian(1.0), "weights": ok.Linear(), "trees": ok.AdditiveExponential(),
                   "maps": ok.RandomFourier(ok.Gaussian(1.0), 100), "landmarks": ok.Nystroem(ok.Gaussian(1.0), 20)}


@pytest.mark.parametrize("kernel", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def test_averaged_functions_have_averaged_scalars(kernel, tmp_path):
    """That of the average is the mean of those that stood beside the m predictions, and goes on so from a file."""
    X, _ = rows(300)
    X = X[:, :2] / 4
    y = {"binary": np.sign(X[:, 0]), "multiclass": np.argmax(X, axis=1), "regression": X[:, 0] ** 2, "novelty": None}
    for cls in NU_LOSSES:
        for margin_step, learner in ((0.1, ok.NORMA), (None, ok.NORMA), (0.1, ok.ILK)):
            loss = cls(margin_step=margin_step)
            model = learner(loss, kernel, average=True, regularization=1e-2)
            part = [None if y[loss.task] is None else y[loss.task][rows] for rows in (slice(200), slice(200, 300))]
            classes = np.unique(y[loss.task]) if loss.task in ("binary", "multiclass") else None
            _, first = model.progressive(X[:200], part[0], classes, return_margins=True)
            model.save(tmp_path / "m.npz")
            for each in (model, ok.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
                _, second = each.progressive(X[200:], part[1], return_margins=True)
                mean = np.concatenate([first, second]).mean()
                assert np.isclose(getattr(each, f"{loss.scalar_name}_"), mean, rtol=1e-10)
                if loss.task == "novelty":
                    alerts = each.score_samples(X) < each.offset_
                    np.testing.assert_array_equal(each.predict(X), np.where(alerts, -1, 1))


@pytest.mark.parametrize("margin_step", [None, 0.1])
@pytest.mark.parametrize("kernel", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def test_an_averaged_detector_alerts_for_about_nu(kernel, margin_step):
    """Held against the latest margin it alerted for a third of all rows."""
    X, _ = rows(3000)
    X = X[:, :2] / 4
    loss = ok.NuNovelty(0.05, margin_step=margin_step)
    streamed, fitted = ok.NORMA(loss, kernel, average=True), ok.NORMA(loss, kernel, average=True)
    assert np.mean(streamed.partial_fit(X).predict(X) < 0) < 0.1
    alerts = np.mean(fitted.fit(X).predict(X) < 0)
    assert alerts < 0.1 if margin_step is None else abs(alerts - 0.05) < 0.01
    latest = fitted._state.hypothesis.scalar(latest=True)
    assert latest == streamed._state.hypothesis.scalar(latest=True) and latest != fitted.offset_


@each("nu", [0.1, 0.3, 0.8])
def test_fit_leaves_a_fraction_nu_below_the_margin(nu):
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = ok.NORMA(ok.NuNovelty(nu), ok.Gaussian(1.0)).fit(X)
    assert abs(np.mean(model.score_samples(X) < model.margin_) - nu) < 0.01


# ---- The logarithm, V (55)-(56) -----------------------------------------------------------------------------


def test_the_logarithm_shares_the_step_of_f():
    """rho_T = rho_1 exp(-sum eta rho_t (1{error} - nu)), here with weights; an ordinary schedule, no meta-descent."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(200, 2)), rng.choice([-1, 1], size=200), rng.choice([0.0, 1.0, 2.0], size=200)
    for make, size in ((ok.NORMA, 1.0), (ok.ILK, 0.7)):
        more = {"penalty": 0.7} if make is ok.ILK else {}
        model = make(ok.NuHinge(0.3, 0.8, "log"), ok.Gaussian(1.0), step=ok.Decaying(0.9, 20), regularization=0.1, **more)
        scores, steps, margins = model.progressive(X, y, sample_weight=weights, return_steps=True, return_margins=True)
        moves = -steps * size * weights * margins * ((y * scores <= margins) - 0.3)
        np.testing.assert_allclose(np.diff(np.log(np.append(margins, model.margin_))), moves, atol=1e-12)


def test_the_logarithm_stays_positive_where_the_scalar_does_not():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 2)), rng.choice([-1, 1], size=400)
    lowest = [ok.NORMA(ok.NuHinge(0.05, 1.0, step), ok.Gaussian(1.0), step=0.5, regularization=1.0).progressive(
        X, y, return_margins=True)[1].min() for step in (None, "log")]
    assert lowest[0] < -0.1 and lowest[1] > 0.0


@each("cls", NU_LOSSES)
def test_the_logarithm_must_start_above_0(cls):
    name = "margin" if "margin" in cls().get_params() else "width"
    with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__} must be a positive number"):
        cls(margin_step="log", **{name: 0.0}).validate()
    cls(margin_step="log", **{name: 0.5}).validate()


def test_the_logarithm_is_saved_and_a_bank_refuses_it(tmp_path):
    X, _ = rows(300)
    model = ok.SILK(ok.NuNovelty(0.1, 0.5, "log"), ok.Gaussian(2.0), budget=20).partial_fit(X[:200])
    model.save(tmp_path / "model.ok")
    again = ok.load(tmp_path / "model.ok")
    for one in (model, again):
        one.partial_fit(X[200:])
    assert again.loss.margin_step == "log" and again.margin_ == model.margin_ > 0
    assert model.fit(X).margin_ > 0
    with pytest.raises(ValueError, match="A Bank has no margin_step='log'"):
        ok.Bank(5, ok.NuNovelty(0.1, 0.5, "log"), n_models=2).progressive(X[:2], keys=[0, 1])
