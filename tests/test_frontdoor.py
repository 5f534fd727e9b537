"""The front door: classifier, regressor and detector with nothing set; what they promise on made streams, and on real ones."""
import pathlib
import pickle
import threading

import mutations
import numpy as np
import pytest

from onlinekernels import (
    KRLS,
    SILK,
    OnlineKernelClassifier,
    OnlineKernelDetector,
    OnlineKernelRegressor,
    Smoother,
    load,
)
from onlinekernels._core.combiners import Calibration, IntervalTracker, interval_ends
from onlinekernels._core.transforms import NormalScores, Relevance, normal_scores
from onlinekernels.ensemble.members import class_members, number_members

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "data"
DATA = DATA if DATA.is_dir() else pathlib.Path(__file__).resolve().parent.parent.parent.parent / "shared" / "data"
RNG = np.random.default_rng(0)
N = 280
X = RNG.normal(size=(N, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:90][LABELS[:90] == "three"] = "two"


def calibration_error(said, hit, bins=15):
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(hit[place == k].mean() - said[place == k].mean()) * np.mean(place == k) for k in set(place))


# ---- Learners like all others -----------------------------------------------------------------------------------------


def test_answers():
    model = OnlineKernelClassifier("low")
    scores, proba, labels = model.progressive(X, LABELS, return_proba=True, return_labels=True)
    assert np.mean(np.array(labels[150:]) == LABELS[150:]) > 0.7 and np.allclose(proba[1:].sum(axis=1), 1.0)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    text = model.report()
    assert "280 examples" in text and "near 500" in text and len(text.splitlines()) < 30
    model = OnlineKernelRegressor().partial_fit(X, NUMBERS)
    assert sum(model.relevance_.values()) == pytest.approx(1.0) and min(model.relevance_, key=model.relevance_.get) == "x2"
    assert "features that matter" in model.report() and model.changes_ == []
    low, high = model.predict_interval(X, coverage=0.8)
    assert 0.7 < np.mean((low <= NUMBERS) & (NUMBERS <= high)) and not hasattr(model, "predict_proba")
    own = OnlineKernelRegressor(members=[KRLS("squared", scale=True), Smoother()]).partial_fit(X, NUMBERS)
    assert list(own.weights_) == ["krls", "smoother"]
    detector = OnlineKernelDetector(0.05).partial_fit(np.tile(X, (3, 1)))
    odd = np.array([0.0, 0.0, 9.0])
    assert detector.predict([odd, X[0]]).tolist()[0] == -1 and next(iter(detector.explain(odd))) == "x2"
    assert 0.05 <= detector.offset_ <= 0.2 and "840 examples" in detector.report()
    assert not hasattr(detector, "error_") and not hasattr(detector, "predict_proba")


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    rows = np.tile(X, (4, 1))
    OnlineKernelClassifier("low").partial_fit(rows, np.tile(LABELS, 4)).report(tmp_path / "classes.png")
    OnlineKernelDetector("low" and 0.1, "low").partial_fit(rows).report(tmp_path / "novelty.png")
    assert (tmp_path / "classes.png").stat().st_size > 5000 and (tmp_path / "novelty.png").stat().st_size > 5000


def test_bad_parameters_are_named():
    for model, name in ((OnlineKernelClassifier("most"), "effort"), (OnlineKernelClassifier(threshold="best"), "threshold"),
                        (OnlineKernelClassifier(members=[SILK("squared")]), "members"), (OnlineKernelClassifier(n_jobs=0), "n_jobs"),
                        (OnlineKernelDetector(nu=0.0), "nu"), (OnlineKernelDetector(memory=0.5), "memory"),
                        (OnlineKernelRegressor(effort=None), "effort")):
        with pytest.raises(ValueError, match=f"'{name}'"):
            model.fit(X, LABELS)


def test_sparse_rows_have_lines_alone():
    sparse = pytest.importorskip("scipy.sparse")
    words = (np.random.default_rng(1).random(size=(600, 300)) < 0.03).astype(float)
    y = np.where(words[:, :40].sum(axis=1) > words[:, 40:80].sum(axis=1), "a", "b")
    model = OnlineKernelClassifier()
    labels = model.progressive(sparse.csr_matrix(words), y, return_labels=True)[1]
    assert np.mean(np.array(labels[300:]) == y[300:]) > 0.75 and "lines alone" in model.report()
    assert np.array_equal(model.predict(words[:9]), model.predict(sparse.csr_matrix(words[:9])))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(words), model.predict_proba(words))
    numbers = OnlineKernelRegressor().partial_fit(sparse.csr_matrix(words), words @ np.arange(300.0))
    assert np.isfinite(numbers.predict(sparse.csr_matrix(words))).all()


# ---- Parts ------------------------------------------------------------------------------------------------------------


def test_calibration():
    """Probabilities that are too bold become true ones, and classes stay in order."""
    rng = np.random.default_rng(2)
    true = rng.uniform(0.5, 1.0, size=6000)
    y = (rng.random(6000) < true).astype(float)
    bold = true**2 / (true**2 + (1 - true) ** 2)
    likely, again = np.column_stack([1 - bold, bold]), Calibration()
    whole = again.advance(likely, y, np.full(6000, 2), np.ones(6000))
    assert calibration_error(bold, y == 1) > 0.07 > 0.02 > calibration_error(whole[:, 1], y == 1)
    assert (whole.argmax(axis=1) == likely.argmax(axis=1)).all()
    with pytest.raises(ValueError):
        again.restore({**again.state(), "sums": -np.ones((3, 21))})
    with pytest.raises(ValueError, match="more hits than rows"):
        again.restore({**again.state(), "sums": np.repeat([[1.0], [2.0], [1.0]], 21, axis=1)})


def test_normal_scores_and_relevance():
    transform, rows = NormalScores(2), np.column_stack([np.exp(3 * RNG.normal(size=900)), RNG.normal(size=900)])
    found = np.zeros(rows.shape)
    for i in range(0, 900, 50):
        state = transform.state()
        transform.opened(rows[i : i + 50])
        transform.committed(0)
        np.testing.assert_equal(transform.state(), state)
        found[i : i + 50] = transform.advance(rows[i : i + 50])
    assert np.abs(found).max() < 4 and abs(found[200:].std() - 1) < 0.15
    assert np.all(np.diff(transform.transform(rows[np.argsort(rows[:, 0])])[:, 0]) >= 0)
    special = pytest.importorskip("scipy.special")
    levels = np.linspace(1e-6, 1 - 1e-6, 5001)
    assert np.abs(normal_scores(levels) - special.ndtri(levels)).max() < 1e-7
    relevance = Relevance(2)
    relevance.advance(rows)
    before = relevance.transform(rows)
    relevance.weights[:] = relevance.weights_for(np.array([0.9, 0.1]))
    assert np.allclose(relevance.transform(rows), before * relevance.weights)
    assert np.mean(relevance.weights**2) == pytest.approx(1.0)


@pytest.mark.parametrize("make, y, name", [
    (lambda: OnlineKernelRegressor("low"), NUMBERS[:60], "near"),
    (lambda: OnlineKernelDetector(effort="low", memory=40), None, "z"),
    (lambda: OnlineKernelDetector(effort="low", memory=10**13), None, "squashed"),
])
def test_a_transform_that_has_seen_other_rows_is_refused(make, y, name, tmp_path):
    model, path = make().partial_fit(X[:60], y), tmp_path / "model.npz"
    model._check()
    model.save(path)
    assert load(path).t_ == 60
    header, arrays = mutations.read(path)
    learned = header["state"]["learned"]
    learned[f"transforms/{name}/count"] += 1
    mutations.write(path, header, arrays)
    with pytest.raises(ValueError, match="the sum of the weights is not that of the rows"):
        load(path)
    after = make().partial_fit(X[:61], y if y is None else NUMBERS[:61])
    learned[f"transforms/{name}/t"], learned[f"transforms/{name}/count"] = 61, after._state.composition.transforms[name].scaler.count
    mutations.write(path, header, arrays)
    with pytest.raises(ValueError, match="the transforms have not seen the rows that the members have learned"):
        load(path)


def test_members_are_fresh_each_time():
    for members in (class_members, number_members):
        sizes = [len(members(effort, 4)) for effort in ("low", "medium", "high")]
        assert sizes == sorted(sizes) and len(set(sizes)) == 3
        assert members("low", 4)[next(iter(members("low", 4)))][0] is not members("low", 4)[next(iter(members("low", 4)))][0]
    assert "self-tuned" not in class_members("medium", 400)


# ---- What is promised, on made streams --------------------------------------------------------------------------------


def drifting(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    turn = np.arange(n) / n * 3.0
    return rows, (rows[:, 0] * np.cos(turn) + rows[:, 1] * np.sin(turn) + rows[:, 2] * rows[:, 3] > 0).astype(int)


def test_no_worse_than_its_best_member():
    rows, y = drifting(2000, 3)
    model = OnlineKernelClassifier("low").partial_fit(rows, y)
    assert model.error_ <= max(1.03 * min(model.errors_.values()), min(model.errors_.values()) + 20 / 2000)


def test_probabilities_hold():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < 1 / (1 + np.exp(-2 * rows[:, 0] * rows[:, 1]))).astype(int)
    _, proba, labels = OnlineKernelClassifier("low").progressive(rows, y, return_proba=True, return_labels=True)
    assert calibration_error(proba[1:].max(axis=1), labels[1:] == y[1:]) < 0.03


def test_rare_classes():
    """4 % positives: thresholds find more of them, and F1 and balanced error are better for it."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(4000, 3))
    y = (rng.random(4000) < 1 / (1 + np.exp(4.5 - 2.5 * rows[:, 0] * rows[:, 1]))).astype(int)

    def rates(threshold):
        model = OnlineKernelClassifier("low", threshold=threshold)
        _, proba, said = model.progressive(rows, y, return_proba=True, return_labels=True)
        said, truth = np.array(said)[500:] == 1, y[500:] == 1
        found, wrong = np.mean(said[truth]), np.mean(said[~truth])
        return (found, 2 * (said & truth).sum() / (said.sum() + truth.sum()), 0.5 * (1 - found + wrong), model.predict_proba(rows),
                proba[10:])

    plain, balanced, best = rates(None), rates("balanced"), rates("f1")
    assert balanced[0] > plain[0] + 0.2 and balanced[2] < plain[2] - 0.05
    assert best[1] > plain[1] - 0.01 and best[0] > plain[0]
    for part in (3, 4):  # as of now, and at the time
        assert np.allclose(balanced[part], plain[part], atol=1e-8) and np.allclose(best[part], plain[part], atol=1e-8)


def test_probabilities_behind_a_threshold_while_others_learn():
    """What a call gives out belongs to its own rows, whoever learns next."""
    rng = np.random.default_rng(11)
    rows, wrong = rng.normal(size=(400, 2)), []
    y = (rows[:, 0] + rows[:, 1] > 1.8).astype(int)
    model = OnlineKernelClassifier("low", threshold="balanced").partial_fit(rows[:100], y[:100])

    def learn(size):
        for i in range(100, 400, size):
            part = slice(i, min(400, i + size))
            proba = model.progressive(rows[part], y[part], return_proba=True)[1]
            if proba.shape != (part.stop - part.start, 2) or not np.allclose(proba.sum(axis=1), 1.0):
                wrong.append(proba)

    threads = [threading.Thread(target=learn, args=(size,)) for size in (3, 5, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and model.t_ == 100 + 3 * 300


def test_heavy_tails():
    """Errors with the tails of Cauchy's distribution: better than the median, and intervals cover."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(1500, 3))
    smooth = 2 * np.sin(2 * rows[:, 0]) + rows[:, 1]
    y = smooth + 0.1 * rng.standard_cauchy(1500)
    scores, interval = OnlineKernelRegressor("low").progressive(rows, y, return_interval=0.9)
    assert np.mean(np.abs(scores - smooth)[500:]) < 0.45 * np.mean(np.abs(smooth - np.median(smooth)))
    assert 0.86 < np.mean((interval[0] <= y) & (y <= interval[1])) < 0.94


def test_intervals_of_positive_targets_do_not_begin_below_zero():
    """Claims: intervals cover, miss to both sides, and begin above 0; until a target comes that is not positive."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1600, 3))
    y = np.exp(5.0 + 0.5 * np.sin(rows[:, 0]) + 0.3 * rows[:, 1] + 0.8 * rng.normal(size=1600))
    model = OnlineKernelRegressor("low")
    scores, (low, high) = model.progressive(rows, y, return_interval=0.9)
    late = np.arange(1600) >= 100
    assert (low[1:] >= 0.0).all() and (low <= np.maximum(scores, 0.0))[late].all() and np.mean(low[late] > 0.0) > 0.8
    assert 0.88 < np.mean(((low <= y) & (y <= high))[late]) < 0.92
    assert min(np.mean((y < low)[late]), np.mean((y > high)[late])) > 0.025
    ahead = model.predict_interval(rows[:300])
    assert (ahead[0] >= 0.0).all()
    again = load_again(model)
    assert np.array_equal(again.predict_interval(rows[:300]), ahead)
    chunked = OnlineKernelRegressor("low")
    parts = [chunked.progressive(rows[i : i + 97], y[i : i + 97], return_interval=0.9)[1] for i in range(0, 1600, 97)]
    assert np.allclose(np.hstack(parts), [low, high], rtol=1e-4)
    # Nothing more than 0 is said of targets among which there is a 0, and nothing where one is negative
    again.partial_fit(rows[:1], [0.0])
    assert (again.predict_interval(rows[:300])[0] == 0.0).mean() > 0.3
    again.partial_fit(rows[:1], [-1.0])
    assert (again.predict_interval(rows[:300])[0] < 0.0).mean() > 0.3
    several = OnlineKernelRegressor("low")
    _, ends = several.progressive(rows[:400], np.column_stack([y, y - y.mean()])[:400], return_interval=0.9)
    assert ends[0, 1:, 0].min() >= 0.0 > ends[0, 1:, 1].min()
    state = several._state.composition.state()
    for least in ([1.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="least"):
            several._state.composition.restore({**state, "intervals": {**state["intervals"], "least": least}})


def test_an_interval_covers_what_errs_by_no_more_than_its_factor():
    rng = np.random.default_rng(4)
    f, deviations, y = rng.normal(1.0, 2.0, 4000), rng.exponential(2.0, 4000), rng.normal(1.0, 2.0, 4000)
    for least in (np.inf, -3.0, 0.0, 1e-9):
        targets = y if least in (np.inf, -3.0) else np.abs(y) if least else np.abs(y) + 1e-8
        errors = np.zeros(4000)
        for i in range(4000):
            tracker = IntervalTracker(1, positive=True)
            tracker.restore({"innovations": np.zeros((0, 1)), "least": [least]})
            errors[i] = tracker.advance([[f[i]]], [[targets[i]]], [[deviations[i]]])[0][0, 0]
        for factor in (0.3, 1.0, 3.0, 10.0):
            low, high = interval_ends(f, factor * deviations, np.full(4000, least))
            assert np.array_equal((low <= targets) & (targets <= high), errors <= factor)


def test_a_level_that_lasts_is_no_outlier():
    """Outages of a sensor: the first rows of each come as a surprise, the others are followed; in chunks as at once."""
    rng = np.random.default_rng(8)
    series = 100.0 + rng.normal(size=900)
    outage = np.isin(np.arange(900) // 20, (10, 20, 30, 40))
    series[outage] = 20.0 + rng.normal(size=outage.sum())
    whole = OnlineKernelRegressor("low", lags=4)
    scores = whole.progressive(series)
    late = outage & (np.arange(900) % 20 >= 10) & (np.arange(900) > 300)
    assert np.abs(scores - series)[late].mean() < 15.0  # of 80
    chunked = OnlineKernelRegressor("low", lags=4)
    parts = [chunked.progressive(part) for part in np.array_split(series, [7, 203, 204, 209, 500])]
    assert np.allclose(np.concatenate(parts), scores, rtol=1e-9)
    again = pickle.loads(pickle.dumps(chunked.partial_fit(np.full(2, 20.0))))
    assert np.array_equal(again.progressive(np.full(5, 20.0)), chunked.progressive(np.full(5, 20.0)))


def test_detectors_alert_as_often_as_asked():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(6000, 4)) * [1.0, 1e3, 1e-3, 1.0]
    odd = rng.random(6000) < 0.01
    rows[odd, 0] += 6.0
    model = OnlineKernelDetector(0.02)
    scores, labels = model.progressive(rows, return_labels=True)
    alerts = np.flatnonzero(labels[500:] == -1)
    assert 0.02 / 1.5 < len(alerts) / 5500 < 0.02 * 1.5
    gaps = np.diff(alerts)
    assert gaps.std() / gaps.mean() > 0.8
    assert area(scores[500:], odd[500:]) > 0.95
    # What is ordinary drifts: with a memory it stays ordinary.
    drift = rng.normal(size=(5000, 2)) + 8.0 * np.sin(np.arange(5000) / 800.0)[:, None]
    odd = rng.random(5000) < 0.02
    drift[odd, 0] += rng.choice([-5.0, 5.0], size=odd.sum())
    long, short = (area(OnlineKernelDetector(0.02, "low", memory=memory).progressive(drift)[1000:], odd[1000:]) for memory in (None, 300))
    assert short > long + 0.03 and short > 0.85


def test_columns_that_only_grow_do_no_harm():
    """Each row is kept in units of its time: a counter and a trend are ordinary late as early, and hide nothing."""
    rng = np.random.default_rng(9)
    odd = rng.random(4000) < 0.02
    rows = rng.normal(size=(4000, 3))
    rows[odd, 1] += rng.choice([-4.0, 4.0], size=odd.sum())
    rows[odd, 2] += 2.0
    plain = area(OnlineKernelDetector(0.02, "low").progressive(rows), odd)
    for growing in (np.arange(4000.0), 0.01 * np.arange(4000) + rng.normal(size=4000)):
        scores, labels = OnlineKernelDetector(0.02, "low").progressive(np.column_stack([growing, rows]), return_labels=True)
        assert area(scores, odd) > plain - 0.01
        assert 0.02 / 1.5 < np.mean(labels[2000:] == -1) < 0.02 * 1.5


def test_alerts_go_on_where_rows_become_ordinary():
    """Rows that come ever nearer to the middle alert nearly as often as asked for; a burst of odd ones silences no others."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(8000, 3)) * np.exp(-np.arange(8000) / 8000.0)[:, None]
    model = OnlineKernelDetector(0.05, "low")
    labels = model.progressive(rows, return_labels=True)[1]
    assert np.mean(labels[-2000:] == -1) > 0.05 / 1.5 and 0.05 < model.offset_ <= 0.2
    model = OnlineKernelDetector(0.05, "low").partial_fit(rng.normal(size=(2500, 3)))
    burst = model.progressive(rng.normal(size=(100, 3)) + 9.0, return_labels=True)[1]
    assert (burst[:10] == -1).all() and model.offset_ < 0.06


def test_why_a_row_is_odd():
    """Columns by name, and categories as one: which of them is odd, not which of the numbers they became."""
    rng = np.random.default_rng(9)
    rows = [{"volts": v, "kind": k, "amps": a} for v, k, a in zip(rng.normal(230, 1, 900), rng.choice(["a", "b"], 900), rng.normal(10, 1, 900))]
    model = OnlineKernelDetector(0.05, "low").partial_fit(rows)
    for odd, name in (({"volts": 260.0, "kind": "a", "amps": 10.0}, "volts"), ({"kind": "a", "amps": 30.0, "volts": 230.0}, "amps"),
                      ({"volts": 230.0, "kind": "never seen", "amps": 10.0}, "kind")):
        found = model.explain(odd)
        assert next(iter(found)) == name and set(found) == {"volts", "kind", "amps"}
        assert next(iter(load_again(model).explain(odd))) == name
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows)
    model = OnlineKernelDetector(0.05, "low").partial_fit(frame)
    assert next(iter(model.explain(pandas.Series({"volts": 230.0, "kind": "a", "amps": 40.0})))) == "amps"
    assert next(iter(OnlineKernelDetector(0.05, "low", encode=False).partial_fit(X).explain([0.0, 0.0, 9.0]))) == "x2"


def test_what_was_ordinary_yesterday_is_ordinary_today():
    """A log with times: the rows that were learned are as ordinary as they were, though their day is over."""
    rng, start = np.random.default_rng(10), np.datetime64("2024-03-01T00:00")
    rows = [{"time": start + np.timedelta64(10 * t, "m"), "flow": flow} for t, flow in enumerate(rng.normal(size=1000))]
    model = OnlineKernelDetector(0.05, "low").partial_fit(rows)
    assert np.mean(model.predict(rows[:500]) == -1) < 0.1
    assert model.predict([{"time": start, "flow": 9.0}])[0] == -1


def load_again(model):
    return pickle.loads(pickle.dumps(model))


def area(scores, odd):
    """Area under the ROC curve of scores that are low for odd rows."""
    ranks = scores.argsort().argsort()
    return 1 - (ranks[odd].mean() - (odd.sum() - 1) / 2) / (~odd).sum()


# ---- Time series ------------------------------------------------------------------------------------------------------

WAVE = np.column_stack([np.sin(0.3 * np.arange(260)) + 3.0, np.cos(0.21 * np.arange(260))])


def windows(series, lags):
    """The last values before each of a series, which was at its first value before; the oldest first."""
    series = np.reshape(series, (len(series), -1))
    return np.array([np.concatenate([series[max(0, t - lag)] for lag in range(lags, 0, -1)]) for t in range(len(series))])


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_series(several, beside, tmp_path):
    """Lags are rows made of the past, whatever the chunks; the next values follow from those predicted."""
    series, rows = WAVE if several else WAVE[:, 0], X[:260]
    known = np.hstack([rows, windows(series, 5)]) if beside else windows(series, 5)
    plain = OnlineKernelRegressor("low", encode=False)
    expected = plain.progressive(known, series)
    model, scores = OnlineKernelRegressor("low", lags=5), []
    for begin, end in ((0, 1), (1, 3), (3, 150), (150, 260)):
        part = series[begin:end]
        scores.append(model.progressive(*((rows[begin:end], part) if beside else (part,) if end % 2 else (None, part))))
    assert np.allclose(np.concatenate(scores), expected, atol=1e-8)
    model.save(tmp_path / "m.npz")
    others = [model, load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))]
    past, ahead = list(series), []
    for t in range(3):
        row = np.concatenate([rows[t] if beside else [], np.ravel(past[-5:])])
        ahead.append(plain.predict([row])[0])
        past.append(ahead[-1])
    for other in others:
        assert np.allclose(other.predict(rows[:3]) if beside else other.forecast(3), ahead, atol=1e-7)
        answers = [other.predict_one(rows[0]) if beside else other.predict_one()]
        interval = other.predict_interval(rows[:1] if beside else None)
        assert np.allclose(answers, ahead[:1], atol=1e-7) and (interval[0] <= answers[0]).all() and (answers[0] <= interval[1]).all()
        other.learn_one(rows[0], 1.0) if beside and not several else other.partial_fit(*([rows[:1]] if beside else []), series[:1])
        other._check()
    assert np.array_equal(others[0].predict(rows[:2] if beside else None), others[1].predict(rows[:2] if beside else None))
    assert others[1].t_ == 261


def test_series_are_refused_as_a_whole():
    model = OnlineKernelRegressor("low", lags=3).partial_fit(WAVE[:50, 0])
    before = pickle.dumps(model)
    for bad in ([1.0, np.nan], WAVE[:5], 3.0, (X[:2], [1.0, 2.0]), []):
        with pytest.raises(ValueError):
            model.partial_fit(*bad) if isinstance(bad, tuple) else model.partial_fit(bad)
    with pytest.raises(ValueError, match="next value"):
        model.predict_interval(np.zeros((2, 0)))
    with pytest.raises(ValueError, match="steps"):
        model.forecast(0)
    assert pickle.dumps(model) == before and not hasattr(OnlineKernelRegressor(), "forecast")
    assert list(OnlineKernelRegressor(lags=2).partial_fit(WAVE[:150, 0]).relevance_) == ["y-2", "y-1"]
    for wrong in ({"lags": 0}, {"lags": 2, "epochs": 3}):
        with pytest.raises(ValueError, match="lags"):
            OnlineKernelRegressor(**wrong).fit(WAVE[:50, 0])
    named = OnlineKernelRegressor("low", lags=2).partial_fit([{"day": f"2024-01-{t:02}", "kind": "ab"[t % 2]} for t in range(1, 29)], WAVE[:28, 0])
    with pytest.raises(ValueError, match="row for each"):
        named.predict()
    assert named.predict([{"day": "2024-01-29", "kind": None}, {"day": None, "kind": "new"}]).shape == (2,)


# ---- Real streams -----------------------------------------------------------------------------------------------------

BARS = {"elec2": 4.0, "sea": 11.0, "outdoor": 5.8, "banana": 10.7, "2cht": 10.1, "moving_squares": 0.25, "phishing": 9.5}


@pytest.mark.slow
@pytest.mark.parametrize("name", BARS)
def test_real_classes(name):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip("needs ../shared/data")
    data = np.load(DATA / f"{name}.npz")
    rows, y = data["X"][:20000].astype(float), data["y"][:20000]
    model = OnlineKernelClassifier()
    parts = [model.progressive(rows[i : i + 500], y[i : i + 500], return_proba=True, return_labels=True) for i in range(0, len(y), 500)]
    said, sure = np.concatenate([np.array(labels, dtype=object) for _, _, labels in parts]), np.concatenate([p.max(axis=1) for _, p, _ in parts])
    assert 100 * np.mean(said != y) <= BARS[name]
    best = min(model.errors_.values())
    assert model.error_ <= max(1.03 * best, best + 20 / len(y))
    if name in ("elec2", "sea", "banana"):
        assert calibration_error(sure, said == y) <= 0.02


def test_slots_that_stay_empty_do_no_harm():
    """A rare class, numbers and ones: as good behind 110 columns of zeros, as words have them that never come."""
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = np.hstack([rng.normal(size=(5000, 6)), rng.random((5000, 40)) < rng.uniform(0.02, 0.5, 40)])
        scores = rows @ np.r_[rng.normal(0.0, 0.4, 6), rng.normal(0.0, 0.5, 40)]
        y = rng.random(5000) < 1.0 / (1.0 + np.exp(3.6 - scores + scores.mean()))
        areas = []
        for empty in (0, 110):
            model = OnlineKernelClassifier("low")
            proba = model.progressive(np.hstack([rows, np.zeros((5000, empty))]), y, return_proba=True)[1]
            areas.append(area(-proba[:, model.classes_.tolist().index(True)], y))
        losses.append(areas[0] - areas[1])
    assert np.mean(losses) < 0.005


def test_whoever_is_disabled_in_a_detector_is_so_in_a_copy():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, 2))
    model = OnlineKernelDetector(effort="low").partial_fit(rows)
    model._state.composition.named()["narrow"].disable(ValueError("no rows"))
    model.partial_fit(rows)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.disabled_ == {"narrow": "ValueError: no rows"}
    assert np.array_equal(copy.predict(rows), model.predict(rows)) and np.array_equal(copy.score_samples(rows), model.score_samples(rows))
