"""The front door: classifier, regressor and detector with nothing set; what they promise on made streams, and on real
ones."""
import pathlib
import pickle

import numpy as np
import pytest
from small_models import read_file, write_file

from onlinekernels import (
    KRLS,
    OnlineKernelClassifier,
    OnlineKernelDetector,
    OnlineKernelRegressor,
    SelfTuned,
    Smoother,
    load,
)
from onlinekernels._core.combiners import Calibration, IntervalTracker, interval_ends
from onlinekernels._core.schema import restore, state_of
from onlinekernels.base.files import decoded, encoded

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = DATA if DATA.is_dir() else pathlib.Path(__file__).resolve().parents[4] / "shared" / "data"
RNG = np.random.default_rng(0)
N = 280
X = RNG.normal(size=(N, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:90][LABELS[:90] == "three"] = "two"


def calibration_error(said, hit, bins=15):
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(hit[place == k].mean() - said[place == k].mean()) * np.mean(place == k) for k in set(place))


# ---- Learners like all others ----------------------------------------------------------------------------------------


def test_answers():
    model = OnlineKernelClassifier("low")
    scores, proba, labels = model.progressive(X, LABELS, return_proba=True, return_labels=True)
    assert np.mean(np.array(labels[150:]) == LABELS[150:]) > 0.7 and np.allclose(proba[1:].sum(axis=1), 1.0)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    text = model.report()
    assert "280 examples" in text and "near 500" in text and len(text.splitlines()) < 30
    model = OnlineKernelRegressor().partial_fit(X, NUMBERS)
    assert sum(model.relevance_.values()) == pytest.approx(1.0)
    assert min(model.relevance_, key=model.relevance_.get) == "x2"
    assert "features that matter" in model.report() and model.changes_ == []
    low, high = model.predict_interval(X, coverage=0.8)
    assert 0.7 < np.mean((low <= NUMBERS) & (NUMBERS <= high)) and not hasattr(model, "predict_proba")
    own = OnlineKernelRegressor(members=[KRLS("squared", scale=True), Smoother()]).partial_fit(X, NUMBERS)
    assert list(own.weights_) == ["krls", "smoother"]
    detector = OnlineKernelDetector(0.05).partial_fit(np.tile(X, (3, 1)))
    odd = np.array([0.0, 0.0, 9.0])
    assert detector.predict([odd, X[0]]).tolist()[0] == -1 and next(iter(detector.explain(odd))) == "x2"
    assert 0.01 <= detector.offset_ <= 0.2 and "840 examples" in detector.report()
    assert not hasattr(detector, "error_") and not hasattr(detector, "predict_proba")


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


# ---- Parts -----------------------------------------------------------------------------------------------------------


def test_calibration():
    """Probabilities that are too bold become true ones, and classes stay in order."""
    rng = np.random.default_rng(2)
    true = rng.uniform(0.5, 1.0, size=6000)
    y = (rng.random(6000) < true).astype(float)
    bold = true**2 / (true**2 + (1 - true) ** 2)
    likely, again = np.column_stack([1 - bold, bold]), Calibration()
    whole, _ = again.advance(likely, y, np.full(6000, 2), np.ones(6000))
    assert calibration_error(bold, y == 1) > 0.07 > 0.02 > calibration_error(whole[:, 1], y == 1)
    assert (whole.argmax(axis=1) == likely.argmax(axis=1)).all()
    with pytest.raises(ValueError):
        restore(again, {**state_of(again), "sums": -np.ones((3, 21))})
    with pytest.raises(ValueError, match="more hits than rows"):
        restore(again, {**state_of(again), "sums": np.repeat([[1.0], [2.0], [1.0]], 21, axis=1)})


@pytest.mark.parametrize("make, y, name", [
    (OnlineKernelClassifier, NUMBERS[:61] > 0, "relevance"),
    (lambda: OnlineKernelDetector(effort="low"), None, "quantiles"),
])
def test_a_transform_that_has_seen_other_rows_is_refused(make, y, name, tmp_path):
    model, path = make().partial_fit(X[:60], None if y is None else y[:60]), tmp_path / "model.npz"
    model._state.backend._check()
    model.save(path)
    assert load(path).t_ == 60
    header, arrays = read_file(path)
    learned = decoded(header["state"]["learned"], arrays)
    transform = learned["transforms"][name]
    if y is not None:
        transform["scaler"]["count"] += 1
        header["state"]["learned"] = encoded(learned, arrays)
        write_file(path, header, arrays)
        with pytest.raises(ValueError, match="count is not the sum of the weights"):
            load(path)
        after = make().partial_fit(X[:61], y)
        transform["scaler"]["count"] = after._state.backend.transforms[name].scaler.count
    transform["t"] = 61
    header["state"]["learned"] = encoded(learned, arrays)
    write_file(path, header, arrays)
    with pytest.raises(ValueError, match="the transforms have not seen the rows that the members have learned"):
        load(path)
    header["params"]["n_jobs"] = "many"
    write_file(path, header, arrays)
    with pytest.raises(ValueError, match="The 'n_jobs' parameter"):
        load(path)
    regressor = OnlineKernelRegressor("low").partial_fit(X[:60], NUMBERS[:60])
    state = state_of(regressor._state.backend)
    state["nearby"] = state_of(OnlineKernelRegressor("low").partial_fit(X[:61], NUMBERS[:61])._state.backend)["nearby"]
    with pytest.raises(ValueError, match="the errors nearby are not those of the rows"):
        restore(regressor._state.backend, state)


# ---- What is promised, on made streams -------------------------------------------------------------------------------


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
        return (found, 2 * (said & truth).sum() / (said.sum() + truth.sum()), 0.5 * (1 - found + wrong),
                model.predict_proba(rows),
                proba[10:])

    plain, balanced, best = rates(None), rates("balanced"), rates("f1")
    assert balanced[0] > plain[0] + 0.2 and balanced[2] < plain[2] - 0.05
    assert best[1] > plain[1] - 0.01 and best[0] > plain[0]
    for part in (3, 4):  # as of now, and at the time
        assert np.allclose(balanced[part], plain[part], atol=1e-8) and np.allclose(best[part], plain[part], atol=1e-8)


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
    state = state_of(several._state.backend)
    for least in (np.ones(1), np.array([1.0, np.inf])):
        with pytest.raises(ValueError, match="least"):
            restore(several._state.backend, {**state, "intervals": {**state["intervals"], "least": least}})


def test_an_interval_covers_what_errs_by_no_more_than_its_factor():
    rng = np.random.default_rng(4)
    f, deviations, y = rng.normal(1.0, 2.0, 4000), rng.exponential(2.0, 4000), rng.normal(1.0, 2.0, 4000)
    for least in (np.inf, -3.0, 0.0, 1e-9):
        targets = y if least in (np.inf, -3.0) else np.abs(y) if least else np.abs(y) + 1e-8
        errors = np.zeros(4000)
        for i in range(4000):
            tracker = IntervalTracker(1, of_positive=True)
            tracker.least[:] = least
            errors[i] = tracker.advance(*(part[i:i + 1, None] for part in (f, targets, deviations)))[0][0, 0]
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


def test_gross_errors_do_little_harm_and_what_is_far_but_plausible_is_learned():
    """1 % of gross errors of 50 deviations cost a third at most; a level beyond all others is no gross error."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(2000, 3))
    y = np.where(rows[:, 0] > 1.28, -6.0, np.sin(2.0 * rows[:, 1]) + rows[:, 2]) + 0.1 * rng.normal(size=2000)
    gross = np.flatnonzero(rng.random(2000) < 0.01)
    wrong = y.copy()
    wrong[gross] += 50.0 * y.std() * rng.choice([-1.0, 1.0], len(gross))
    fine = np.setdiff1d(np.arange(100, 2000), gross)
    scores = (OnlineKernelRegressor("low").progressive(rows, given) for given in (y, wrong))
    clean, hit = (np.mean((found - y)[fine] ** 2) for found in scores)
    assert clean <= 0.1 * y.var() and hit <= 1.33 * clean


def test_why_a_row_is_odd():
    """Columns by name, and categories as one: which of them is odd, not which of the numbers they became."""
    rng = np.random.default_rng(9)
    rows = [{"volts": v, "kind": k, "amps": a}
            for v, k, a in zip(rng.normal(230, 1, 900), rng.choice(["a", "b"], 900), rng.normal(10, 1, 900))]
    model = OnlineKernelDetector(0.05, "low").partial_fit(rows)
    for odd, name in (({"volts": 260.0, "kind": "a", "amps": 10.0}, "volts"),
                      ({"kind": "a", "amps": 30.0, "volts": 230.0}, "amps"),
                      ({"volts": 230.0, "kind": "never seen", "amps": 10.0}, "kind")):
        found = model.explain(odd)
        assert next(iter(found)) == name and set(found) == {"volts", "kind", "amps"}
        assert next(iter(load_again(model).explain(odd))) == name
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows)
    model = OnlineKernelDetector(0.05, "low").partial_fit(frame)
    assert next(iter(model.explain(pandas.Series({"volts": 230.0, "kind": "a", "amps": 40.0})))) == "amps"
    assert next(iter(OnlineKernelDetector(0.05, "low", encode=False).partial_fit(X).explain([0.0, 0.0, 9.0]))) == "x2"


def alerts(model, rows):
    return model.progressive(rows, return_labels=True)[1] == -1


@pytest.mark.parametrize("shift", [6.0, 12.0])
def test_a_burst_alerts_until_it_has_lasted(shift):
    """Rows that alert vouch for no others: bursts keep alerting, what lasts becomes ordinary, and both do not hide what
    comes after them."""
    rng = np.random.default_rng(2)
    for length, least in ((30, 27), (300, 150)):
        rows = rng.normal(size=(7000, 3))
        rows[3000:3000 + length] += shift
        model = OnlineKernelDetector()
        found = alerts(model, rows)
        assert found[3000:3000 + length].sum() >= least and 0.008 <= found[3500:].mean() <= 0.03
        assert length > 250 or (model.predict(rng.normal(size=(50, 3)) + shift) == -1).mean() >= 0.9
    rows = rng.normal(size=(7000, 3))
    rows[3000:] += shift
    found, impatient = alerts(OnlineKernelDetector(), rows), alerts(OnlineKernelDetector(patience=20), rows)
    assert found[3000:3200].mean() > 0.9 and found[4000:].mean() <= 0.03
    assert impatient[3000:3200].sum() < 60


@pytest.mark.parametrize("start", [505, 700, 1000, 2005])
def test_a_burst_alerts_while_a_detector_is_young(start):
    """When scores of the first rows are forgotten, a few alerts are not what the level is taken from."""
    found = []
    for seed in range(9 if start == 700 else 3):  # where seeds differ much: 6 to 60, and the median is 58
        rows = np.random.default_rng(seed).normal(size=(start + 60, 5))
        rows[start:] += 8.0
        found.append(alerts(OnlineKernelDetector(), rows)[start:].sum())
    assert np.median(found) >= 45
    lone = np.random.default_rng(1).normal(size=(start, 2))
    assert OnlineKernelDetector(nu=0.002).partial_fit(lone).predict([[1e6, 1e6]]) == -1


@pytest.mark.parametrize("glitch", [1e3, 1e5, 1e149])
def test_one_glitch_blinds_nobody(glitch):
    rng = np.random.default_rng(3)
    rows, odd = rng.normal(size=(3500, 4)), rng.normal(size=(100, 4))
    odd[:, 1] += 8.0
    model = OnlineKernelDetector().partial_fit(rows[:3000])
    assert (model.predict(odd) == -1).all()
    rows[3000, 1] = glitch
    assert (model.partial_fit(rows[3000:]).predict(odd) == -1).mean() >= 0.95


@pytest.mark.parametrize("change", [1 / 3, 1e-6])
def test_the_rate_is_held_where_noise_becomes_calmer(change):
    rows = np.random.default_rng(4).normal(size=(20000, 4))
    rows[6000:] *= change
    found = alerts(OnlineKernelDetector(), rows)
    assert 0.014 <= found[1000:6000].mean() <= 0.028 and 0.014 <= found[8000:].mean() <= 0.028


def test_memory_is_that_of_every_part():
    """What came five memories ago has left all samples, however small the memory is."""
    rng = np.random.default_rng(5)
    model = OnlineKernelDetector(memory=60).partial_fit(rng.normal(size=(400, 2)))
    model.partial_fit(rng.normal(size=(600, 2)) + 50.0)
    backend = model._state.backend
    sizes = [member.n_terms_ for member in model.named_members_.values()]
    sizes += [backend.combiner.each.n, backend.combiner.mean.n, backend.combiner.latest.n]
    assert sizes == [60] * 5 and backend.transforms["quantiles"].sample.n == 30
    assert min(backend.transforms["quantiles"].medians()) > 49.0
    assert (model.predict(rng.normal(size=(100, 2))) == -1).all()


def test_flags_weigh_no_more_than_numbers():
    """Among twenty rare flags, rows with one of them are not more odd than a number that is."""
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.lognormal(sigma=2.0, size=(4000, 3)), rng.random((4000, 20)) < 0.01])
    odd = rng.random(4000) < 0.02
    rows[odd, :3] = np.exp(-2.0 * np.abs(np.log(rows[odd, :3])) - 3.0)  # small ones, which no linear scale tells apart
    scores = OnlineKernelDetector().progressive(rows)[500:]
    ordinary, odd = scores[~odd[500:]], scores[odd[500:]]
    assert np.mean(ordinary[:, None] > odd) > 0.93


def load_again(model):
    return pickle.loads(pickle.dumps(model))


# ---- Changes ---------------------------------------------------------------------------------------------------------


def rotated(task, seed, change, n=4000):
    """f(x) of rows that are rotated, from row 2,000 on in another way."""
    rng = np.random.default_rng(seed)
    rows, turns = rng.normal(size=(n, 4)), [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2)]
    turned = np.where((np.arange(n) < 2000)[:, None] | (not change), rows @ turns[0], rows @ turns[1])
    values = np.sin(2.0 * turned[:, 0]) + turned[:, 1] + 0.1 * rng.normal(size=n)
    return rows, values if task == "numbers" else np.where(values > 0.0, "yes", "no")


@pytest.mark.parametrize("task", ["classes", "numbers"])
@pytest.mark.parametrize("kind", ["low", "tuned"])
def test_a_truth_that_turns_is_noticed(task, kind):
    """Within 500 rows and nearly at the right one; where nothing changes there is no alarm."""
    def changes(seed, change):
        if kind == "tuned":
            model = SelfTuned("multiclass_squared" if task == "classes" else "squared", axes="own", budget=60)
        else:
            model = (OnlineKernelClassifier if task == "classes" else OnlineKernelRegressor)(kind)
        rows, y = rotated(task, seed, change)
        watched, found = model.new_changes(), []
        for begin in range(0, len(y), 500):
            model.partial_fit(rows[begin:begin + 500], y[begin:begin + 500])
            found += watched
        assert model.changes_ == found
        return [row for row in found if change and 2000 - 100 <= row < 2500] if change else found

    assert sum(len(changes(seed, True)) == 1 for seed in range(4)) >= 3
    assert not any(changes(seed, False) for seed in range(2))


# ---- Time series -----------------------------------------------------------------------------------------------------

WAVE = np.column_stack([np.sin(0.3 * np.arange(260)) + 3.0, np.cos(0.21 * np.arange(260))])


def windows(series, lags):
    """The last values before each of a series, which was at its first value before; the oldest first."""
    series = np.reshape(series, (len(series), -1))
    return np.array([np.concatenate([series[max(0, t - lag)] for lag in range(lags, 0, -1)])
                     for t in range(len(series))])


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_series(several, beside, tmp_path):
    """Lags are rows made of the past, whatever the chunks; the next values follow from those predicted. (The default
    members see more than these rows.)"""
    series, rows = WAVE if several else WAVE[:, 0], X[:260]
    known = np.hstack([rows, windows(series, 5)]) if beside else windows(series, 5)
    members = {"line": KRLS("squared", "linear", scale=True, scale_target=True),
               "near": Smoother("squared", scale=True)}
    plain = OnlineKernelRegressor(members=members, encode=False)
    expected = plain.progressive(known, series)
    model, scores = OnlineKernelRegressor(members=members, lags=5), []
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
        assert np.allclose(answers, ahead[:1], atol=1e-7) and (interval[0] <= answers[0]).all()
        assert (answers[0] <= interval[1]).all()
        if beside and not several:
            other.learn_one(rows[0], 1.0)
        else:
            other.partial_fit(*([rows[:1]] if beside else []), series[:1])
        other._state.backend._check()
    assert np.array_equal(others[0].predict(rows[:2] if beside else None),
                          others[1].predict(rows[:2] if beside else None))
    assert others[1].t_ == 261


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_series_that_wander_are_predicted_by_differences(effort):
    """A wave on a level that moves far, a level alone, and a walk, where nothing is better than the last value."""
    t, walk = np.arange(1500), np.cumsum(np.random.default_rng(3).normal(size=1500))
    level = 0.02 * np.cumsum(walk)
    for series, most in ((level + 20.0 * np.sin(0.4 * t), 0.006), (level + 0.1 * t, 0.06), (walk, 1.02)):
        said = OnlineKernelRegressor(effort, lags=6).progressive(series)
        assert np.mean((said - series)[300:] ** 2) <= most * np.mean(np.diff(series)[299:] ** 2)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_holes_in_a_series_are_predicted_through(several, beside, tmp_path):
    """As if what was predicted had come, and was not learned; whatever the chunks."""
    series, rows = (WAVE if several else WAVE[:, 0]).copy(), X[:260]
    series[[0, 100, 101, 180]] = np.nan
    model, other = (OnlineKernelRegressor("low", lags=5) for _ in range(2))
    said, interval = model.progressive(*([rows] if beside else []), series, return_interval=0.9)
    parts = []
    for begin, end in ((0, 1), (1, 40), (40, 101), (101, 102), (102, 260)):
        if 100 < begin < 102:
            following = other.predict(rows[begin:begin + 1]) if beside else other.predict()
            assert np.allclose(following, said[begin:end], atol=1e-8)
        parts.append(other.progressive(*([rows[begin:end]] if beside else []), series[begin:end], return_interval=0.9))
    assert np.allclose(np.concatenate([part[0] for part in parts]), said, atol=1e-8)
    assert np.allclose(np.concatenate([part[1] for part in parts], axis=1), interval, atol=1e-7)
    assert model.t_ == other.t_ == 256 and np.isfinite(said).all() and np.isfinite(interval).all()
    truth = WAVE if several else WAVE[:, 0]
    assert np.abs(said - truth)[[100, 101, 180]].max() < 0.2
    again = load_again(model)
    assert np.array_equal(again.predict(rows[:2] if beside else None), model.predict(rows[:2] if beside else None))
    if not beside:
        model.partial_fit(np.full((1, *series.shape[1:]), np.nan))
        assert np.array_equal(again.learn_one(None).predict(), model.predict()) and again.t_ == 256


def test_intervals_of_a_forecast_cover_what_they_say():
    """Of a walk they grow like the root of the horizon."""
    walk = np.cumsum(np.random.default_rng(6).normal(size=900))
    model, inside = OnlineKernelRegressor("low", lags=4).partial_fit(walk[:300]), []
    for begin in range(300, 880, 10):
        said, (low, high) = model.forecast(9, return_interval=0.9)
        assert np.array_equal(said, model.forecast(9)) and (low <= said).all() and (said <= high).all()
        inside.append((low <= walk[begin:begin + 9]) & (walk[begin:begin + 9] <= high))
        model.partial_fit(walk[begin:begin + 10])
    assert 0.8 <= np.mean(inside) <= 0.97
    assert 2.0 <= (high - low)[8] / (high - low)[0] <= 4.5
    with pytest.raises(ValueError, match="coverage"):
        model.forecast(3, return_interval=2)


def test_the_last_target_is_an_answer():
    """Rows that say nothing of numbers or labels that persist."""
    rows, rng = np.random.default_rng(4).normal(size=(1500, 3)), np.random.default_rng(5)
    walk = np.cumsum(rng.normal(size=1500))
    said = OnlineKernelRegressor("low").progressive(rows, walk)
    assert np.mean((said - walk)[200:] ** 2) <= 1.05 ** 2 * np.mean(np.diff(walk)[199:] ** 2)
    labels = np.cumsum(rng.random(1500) < 0.1) % 3
    model = OnlineKernelClassifier("low")
    said = model.progressive(rows, labels, return_labels=True)[1]
    assert np.mean(said != labels) <= 1.05 * np.mean(labels[1:] != labels[:-1]) + 0.005
    again = load_again(model)
    for each in (model, again):
        each.partial_fit(rows[:50], labels[:50])
    assert np.array_equal(model.decision_function(rows), again.decision_function(rows))


def test_series_are_refused_as_a_whole():
    model = OnlineKernelRegressor("low", lags=3).partial_fit(WAVE[:50, 0])
    before = pickle.dumps(model)
    for bad in ([1.0, np.inf], WAVE[:5], 3.0, (X[:2], [1.0, 2.0]), []):
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
    named = OnlineKernelRegressor("low", lags=2).partial_fit([{"day": f"2024-01-{t:02}", "kind": "ab"[t % 2]}
                                                              for t in range(1, 29)], WAVE[:28, 0])
    with pytest.raises(ValueError, match="row for each"):
        named.predict()
    assert named.predict([{"day": "2024-01-29", "kind": None}, {"day": None, "kind": "new"}]).shape == (2,)


# ---- Real streams ----------------------------------------------------------------------------------------------------

BARS = {"elec2": 4.0, "sea": 11.0, "outdoor": 5.8, "banana": 10.7, "2cht": 10.1, "moving_squares": 0.25,
        "phishing": 9.5}


@pytest.mark.slow
@pytest.mark.parametrize("name", BARS)
def test_real_classes(name):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip("needs ../shared/data")
    data = np.load(DATA / f"{name}.npz")
    rows, y = data["X"][:20000].astype(float), data["y"][:20000]
    model = OnlineKernelClassifier()
    parts = [model.progressive(rows[i : i + 500], y[i : i + 500], return_proba=True, return_labels=True)
             for i in range(0, len(y), 500)]
    said, sure = np.concatenate([np.array(labels, dtype=object)
                                 for _, _, labels in parts]), np.concatenate([p.max(axis=1) for _, p, _ in parts])
    assert 100 * np.mean(said != y) <= BARS[name]
    best = min(model.errors_.values())
    assert model.error_ <= max(1.03 * best, best + 20 / len(y))
    if name in ("elec2", "sea", "banana"):
        assert calibration_error(sure, said == y) <= 0.02


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("row, size", [(1, 1e6), (5, 1e3), (5, 1e12), (700, 1e6)])
def test_one_outlier_among_the_targets_does_no_lasting_harm(row, size):
    X, y = stream(1500)
    clean = OnlineKernelRegressor("low").progressive(X, y)
    far = y.copy()
    far[row] = size
    scores = OnlineKernelRegressor("low").progressive(X, far)
    assert np.sum((scores - y)[1000:] ** 2) < 1.05 * np.sum((clean - y)[1000:] ** 2)
    near = slice(row + 2, row + 52)
    assert np.sum((scores - y)[near] ** 2) < 2.0 * np.sum((clean - y)[near] ** 2)


def test_gross_errors_among_the_targets_do_little_harm():
    X, y = stream(1500)
    bad = np.random.default_rng(1).random(1500) < 0.01
    clean, scores = (OnlineKernelRegressor("low").progressive(X, part) for part in (y, np.where(bad, 50.0 + y, y)))
    kept = ~bad & (np.arange(1500) >= 100)
    assert np.sum((scores - y)[kept] ** 2) < 4 / 3 * np.sum((clean - y)[kept] ** 2)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_level_of_a_tenth_of_the_rows_is_learned(noise):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 4))
    y = 100.0 * (X[:, 0] > 1.28) + noise * rng.normal(size=3000)
    scores = OnlineKernelRegressor().progressive(X, y)
    assert np.mean((scores - y)[1000:] ** 2) < 0.05 * y.var()


def test_numbers_that_were_never_negative_are_not_predicted_so():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = rng.poisson(np.exp(1.5 * X[:, 0])).astype(float)
    model = OnlineKernelRegressor("low")
    assert model.progressive(X, y).min() >= 0.0 and model.predict(3 * X).min() >= 0.0


def test_a_threshold_changes_predictions_and_no_alarms():
    """Mistakes are expected of what is most probable, whatever the threshold answers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = rng.random(1200) < 1 / (1 + np.exp(3.0 - X[:, 0]))
    models = [OnlineKernelClassifier("low", threshold=threshold).fit(X, y) for threshold in (None, "f1", "balanced")]
    plain, *others = [model._state.backend.changes for model in models]
    for changes in others:
        for name, value in state_of(plain).items():
            assert np.array_equal(value, state_of(changes)[name]), name
    assert np.mean(models[2].predict(X)) > np.mean(models[0].predict(X)) + 0.05


def test_a_detector_has_no_changes_to_tell():
    detector = OnlineKernelDetector().partial_fit(np.random.default_rng(0).normal(size=(20, 2)))
    assert not hasattr(detector, "new_changes") and not hasattr(detector, "changes_")
