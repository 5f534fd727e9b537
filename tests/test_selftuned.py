"""SelfTuned: the evidence and its gradient, the descent, features, the combination; a learner like all others."""
import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from cases import covering, each

import onlinekernels as ok
from onlinekernels import KRLS, SelfTuned
from onlinekernels._core.combiners import IntervalTracker, LeastSquares, interval_factors
from onlinekernels._core.targets import TargetScaler
from onlinekernels.algorithms import evidence as metrics
from onlinekernels.algorithms import selftuned
from onlinekernels.algorithms.evidence import Evidence, Features, finished, gradient_axes, learned_metric, minimize
from onlinekernels.base.composite import flat, grown

RNG = np.random.default_rng(0)
X = RNG.normal(size=(460, 4))
X[:, 3] = RNG.random(460) < 0.3
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 3] * X[:, 1] + 0.1 * RNG.normal(size=460)
SEVERAL = np.column_stack([NUMBERS, 1e3 * X[:, 1] ** 2])
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:150][LABELS[:150] == "three"] = "two"  # the third joins later, in the middle of a stage
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], size=460)
TASKS = {
    "numbers": (None, NUMBERS, None),
    "several": ("squared", SEVERAL, WEIGHTS),
    "classes": ("multiclass_squared", LABELS, None),
    "weighted classes": ("multiclass_squared", LABELS, WEIGHTS),
}


def each_task():
    return pytest.mark.parametrize("loss, y, weights", TASKS.values(), ids=TASKS)


# ---- The evidence -----------------------------------------------------------------------------------------------------


def by_differences(function, q, step=1e-5):
    return np.array([(function(q + step * e)[0] - function(q - step * e)[0]) / (2 * step) for e in np.eye(len(q))])


def test_gradient_of_the_evidence():
    for n, d, outputs, weighted in ((40, 3, 1, False), (60, 5, 3, True), (25, 1, 2, True)):
        rng = np.random.default_rng(n)
        rows, Y, times = rng.normal(size=(n, d)), rng.normal(size=(n, outputs)), np.sort(rng.choice(4000, n)).astype(float)
        evidence = Evidence(rows, Y, times, rng.uniform(0.3, 3.0, n) if weighted else None)
        for q in (np.zeros(d + 4), rng.normal(size=d + 4), 2.0 * rng.normal(size=d + 4)):
            for function in (evidence, evidence.with_prior):
                value, gradient = function(q)
                expected = by_differences(function, q)
                assert np.abs(gradient - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())
                assert value == function(q)[0]


def test_evidence_of_a_fading_process_is_that_of_the_posterior():
    """Rows one after another: the evidence is what `KRLS` with this kernel, noise and memory predicts of each."""
    n, q = 50, np.array([0.3, -0.2, 0.1, 0.4, 0.2, 0.8])
    rows, y = X[:n, :2], NUMBERS[:n]
    evidence = Evidence(rows, y[:, None], np.arange(float(n)))
    scales, amplitude, noise, forgetting = evidence.settings.values(q)
    posterior = KRLS(kernel=amplitude * ok.Gaussian(1.0) + 1.0, noise=noise, memory=math.exp(-forgetting), budget=None,
                     tolerance=1e-12)
    mean, deviation = posterior.progressive(rows * scales, y, return_std=True)
    variance = deviation**2 + noise
    expected = -0.5 * np.sum((y - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    assert abs(-evidence(q)[0] - expected) < 1e-7


def test_gradient_axes_find_a_rotation():
    """f changes along one direction that is no feature's: it is the first axis, and takes nearly all of the metric."""
    rng = np.random.default_rng(1)
    rows, direction = rng.normal(size=(300, 3)), np.array([1.0, -2.0, 2.0]) / 3.0
    y = np.sin(2.0 * rows @ direction)[:, None] + 0.05 * rng.normal(size=(300, 1))
    axes, settings, _ = finished(learned_metric((rows, y, np.arange(300.0), np.ones(300)), True, None, None))
    assert abs(axes[:, 0] @ direction) > 0.99
    scales = Evidence(rows, y, np.arange(300.0)).settings.values(settings)[0]
    assert scales[0] > 4 * scales[1:].max()
    for matrix in (np.zeros((3, 3)), np.eye(3), np.outer(direction, direction)):  # nothing to choose by
        found = gradient_axes(matrix)
        assert np.allclose(found.T @ found, np.eye(3)) and np.array_equal(found, gradient_axes(matrix.copy()))


# ---- The descent ------------------------------------------------------------------------------------------------------


def test_descent():
    def valley(x):  # Rosenbrock's
        value = 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
        slope = -400.0 * x[0] * (x[1] - x[0] ** 2) - 2.0 * (1.0 - x[0])
        return value, np.array([slope, 200.0 * (x[1] - x[0] ** 2)])

    def wall(x):  # no value beyond 1
        return (-math.log(1.0 - x[0]) - x[0], np.array([1.0 / (1.0 - x[0]) - 1.0])) if x[0] < 1 else (math.inf, np.array([np.nan]))

    scales = np.logspace(-2, 2, 12)
    assert np.allclose(minimize(valley, [-1.2, 1.0], 200)[0], 1.0, atol=1e-6)
    assert minimize(lambda x: (0.5 * np.sum(scales * x**2), scales * x), np.ones(12), 150)[1] < 1e-5
    assert abs(minimize(wall, [0.99], 100)[0][0]) < 1e-4
    values = [minimize(valley, [-1.2, 1.0], steps)[1] for steps in range(20)]
    assert (np.diff(values) <= 0).all() and values[0] == valley(np.array([-1.2, 1.0]))[0]  # never up, and no step is none
    assert np.array_equal(minimize(lambda x: (0.0, 0.0 * x), np.ones(2), 5)[0], np.ones(2))


# ---- Features ---------------------------------------------------------------------------------------------------------


def test_features():
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.normal(size=500), np.exp(3 * rng.normal(size=500)), rng.random(500) < 0.01, np.full(500, 1e8),
                            rng.integers(0, 3, size=500), np.where(np.arange(500) == 7, 1.0, 0.0), 1e-9 * rng.normal(size=500)])
    features = Features(rows)
    found = features(rows)
    assert np.abs(found).max() < 8.0 and np.isfinite(found).all()
    assert set(found[:, 2]) == set(found[:, 5]) == {0.0, 1.0}  # however rare
    assert not found[:, 3].any()
    assert 0.7 < found[:, 0].std() < 1.3 and 0.4 < found[:, 1].std() < 1.3 and 0.7 < found[:, 6].std() < 1.3
    for j in range(rows.shape[1]):  # in order, and the same for one row as for many
        order = np.argsort(rows[:, j], kind="stable")
        assert (np.diff(found[order, j]) >= 0).all()
    assert np.array_equal(np.concatenate([features(row[None]) for row in rows[:40]]), found[:40])
    wild = np.array([[1e150, -1e150, 1e150, 1e8 + 1e4, 99.0, -3.0, 1e140], [-1e150, 1e150, 0.5, 0.0, -99.0, 0.0, 0.0]])
    assert np.abs(features(wild)).max() < 10.0  # nothing explodes later
    assert features(wild)[:, 3].tolist() == [1.0, -1.0]
    again = Features.restored({name: value.copy() for name, value in features.state().items()}, 7)
    assert np.array_equal(again(rows), found)
    for name, value in features.state().items():
        with pytest.raises(ValueError, match="features"):
            Features.restored({**features.state(), name: value[:3]}, 7)
    with pytest.raises(ValueError, match="order"):
        Features.restored({**features.state(), "knots": -features.knots}, 7)


def test_forgetting_is_looked_for_elsewhere():
    """What moves on has two explanations; the one that is better is found from the other's valley."""
    rng = np.random.default_rng(2)
    rows, t = rng.normal(size=(300, 3)), np.arange(300) * 6.0
    y = (np.sin(2 * rows[:, 0] + t / 200.0) + 0.05 * rng.normal(size=300))[:, None]
    evidence = Evidence(rows, y, t)
    slow, _ = minimize(evidence.with_prior, np.append(np.zeros(6), -4.0), 5)
    moved = finished(evidence.with_best_forgetting(slow))
    assert np.array_equal(moved[:-1], slow[:-1]) and moved[-1] > slow[-1] + 1.0
    assert evidence.with_prior(moved)[0] < evidence.with_prior(slow)[0] - 5.0
    still = Evidence(rows, np.sin(2 * rows[:, :1]) + 0.3 * rng.normal(size=(300, 1)), t)
    fitted, _ = minimize(still.with_prior, np.append(np.zeros(6), -3.0), 20)
    assert finished(still.with_best_forgetting(fitted))[-1] < 0.0


# ---- The combination --------------------------------------------------------------------------------------------------


def one_by_one(scores, Y, counts, memory, prior, shared, origin):
    """`LeastSquares` from its definition, a row at a time."""
    m, found = scores.shape[1], np.zeros(Y.shape)
    groups = [slice(None)] if shared else [slice(j, j + 1) for j in range(Y.shape[1])]
    for group in groups:
        A, b, squares, count = np.zeros((m, m)), np.zeros(m), 0.0, 0.0
        for t in range(len(Y)):
            middle = scores[t].mean(axis=0)[group]
            apart = scores[t][:, group] - (middle if origin is None else origin)
            usual = squares / count if squares > 0 else 1.0
            found[t, group] = middle + np.linalg.solve(A + prior * usual * np.eye(m), b) @ apart
            A = memory * A + counts[t] * apart @ apart.T
            b = memory * b + counts[t] * apart @ (Y[t, group] - middle)
            squares = memory * squares + counts[t] * np.sum((Y[t, group] - middle) ** 2)
            count = memory * count + counts[t]
    return found


def test_combination_is_least_squares():
    rng = np.random.default_rng(4)
    for shared, outputs, origin in ((True, 3, -1.0), (False, 2, None), (False, 1, None)):
        y = rng.integers(0, outputs, size=600).astype(float) if shared else rng.normal(size=(600, outputs)) * [1.0, 1e6][:outputs]
        Y = np.where(np.arange(3) == y[:, None], 1.0, -1.0) if shared else y
        scores = Y[:, None] * rng.uniform(0.5, 1.5, size=(1, 3, 1)) + np.abs(Y).mean(axis=0) * 0.3 * rng.normal(size=(600, 3, outputs))
        counts = rng.uniform(0.0, 2.0, size=600)
        expected = one_by_one(scores, Y, counts, 0.99, 5.0, shared, origin)
        for size in (1, 37, 600):
            stack = LeastSquares(3, 0 if shared else outputs, 0.99, 5.0)
            parts = [stack.advance(scores[i : i + size], y[i : i + size], counts=counts[i : i + size])[0] for i in range(0, 600, size)]
            assert np.allclose(np.concatenate(parts), expected, rtol=1e-9, atol=1e-9 * np.abs(Y).max())
            assert origin is not None or np.allclose(stack.weights().sum(axis=1), 1.0)
        if shared:
            expected = np.einsum("m,tmc->tc", stack.weights()[0], scores) + (0.0 if origin is None else stack.weights().sum() - 1.0)
            assert np.allclose(stack.combined(scores)[0], expected)
    agreeing = LeastSquares(3, 1, 0.99, 5.0)
    same = np.repeat(rng.normal(size=(300, 1, 1)), 3, axis=1)
    assert np.allclose(agreeing.advance(same, rng.normal(size=(300, 1)))[0][:, 0], same[:, 0, 0])  # members that agree for ever
    assert np.allclose(agreeing.weights(), 1 / 3)


def tracker_by_hand(innovations, coverage):
    """The smallest that covers the last 500 and one to come, led along the last 200."""
    half = np.sort(innovations)[int(np.ceil((len(innovations) + 1) * coverage)) - 1]
    for innovation in innovations[-200:]:
        half *= np.exp(0.1 * coverage) if innovation > half else np.exp(-0.1 * (1.0 - coverage))
    return pytest.approx(half, rel=1e-12)


def test_intervals_cover():
    innovations = np.abs(np.random.default_rng(5).standard_t(3, size=(4000, 1)))
    for coverage in (0.5, 0.9):
        factors = interval_factors(innovations, 500, coverage)
        assert abs(np.mean(innovations[500:] <= factors[:-1]) - coverage) < 0.01
        for t in (500, 777, 4000):
            tracker = IntervalTracker(1)
            tracker.advance(np.zeros((t, 1)), innovations[:t], np.ones((t, 1)))
            assert factors[t - 500] == tracker.half_widths(coverage) == tracker_by_hand(innovations[t - 500 : t, 0], coverage)
    assert IntervalTracker(2).half_widths(0.9).round(3).tolist() == [1.645, 1.645]
    few = IntervalTracker(1)
    few.advance(np.zeros((3, 1)), np.full((3, 1), 9.0), np.ones((3, 1)))
    assert few.half_widths(0.99).tolist() == [9.0]


def test_trees_of_names():
    tree = {"a": {"b": 1, "c": {"d": None}}, "e": {}, "f": [2]}
    assert grown(flat(tree)) == tree


# ---- A learner like all others ----------------------------------------------------------------------------------------


def test_damaged_states_are_refused():
    model = SelfTuned(window=120, budget=20).partial_fit(X[:198], SEVERAL[:198])  # while a refresh is under way
    state = model._state.to_dict()
    model._restored(state)
    damages = {"t": -1, "clock/due": 1.5, "clock/oldest": 199, "pending/t": 199, "pending/until": 99,
               "members/own/status": 3, "kept/X": np.zeros((3, 9)), "kept/y": np.full((120, 2), np.nan), "losses": -np.ones((4, 2)),
               "combiner/products": np.zeros((2, 9, 9)), "members/own/metric/unit": np.zeros(2),
               "members/own/metric/axes": np.eye(3), "innovations": np.zeros((999, 2)), "history/times": np.zeros(1, dtype=int),
               "history/seen": np.zeros((1, 2, 7))}
    for name, value in damages.items():
        assert name in state["learned"]
        with pytest.raises((ValueError, KeyError)):
            model._restored({**state, "learned": {**state["learned"], name: value}})
    for name, value in (("n_features", 3), ("targets", 1), ("labels", {"order": [], "fixed": False, "class_order": None})):
        with pytest.raises((ValueError, KeyError)):
            model._restored({**state, name: value})


@each_task()
def test_answers(loss, y, weights):
    model = SelfTuned(loss, window=200, budget=40)
    if loss == "multiclass_squared":
        scores, std, proba, labels = model.progressive(X, y, return_std=True, return_proba=True, return_labels=True)
        assert model.classes_.tolist() == list(dict.fromkeys(y)) and labels[0] is None
        joined = np.array([len(set(y[:t])) for t in range(len(y))])
        assert not scores[np.arange(3) >= joined[:, None]].any() and not proba[np.arange(3) >= joined[:, None]].any()
        assert np.allclose(proba[joined > 0].sum(axis=1), 1.0) and std.shape == (460,)
        assert np.mean(labels[200:] == y[200:]) > 0.7
        assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
        assert not hasattr(model, "predict_interval")
        return
    scores, std, interval = model.progressive(X, y, return_std=True, return_interval=0.8)
    assert scores.shape == std.shape == y.shape and interval.shape == (2, *y.shape)
    assert (((interval[0] <= y) & (y <= interval[1])).mean(axis=0) > 0.75).all()
    mean, deviation = model.predict(X[:5], return_std=True)
    lower, upper = model.predict_interval(X[:5], coverage=0.8)
    assert np.allclose(0.5 * (lower + upper), mean) and deviation.shape == mean.shape == y[:5].shape
    assert np.allclose(model.predict_one(X[0]), mean[0])
    assert model.score(X, y) > 0.9
    assert not hasattr(model, "predict_proba") and not hasattr(model, "decision_function")


def test_predictions_are_those_of_the_next_row():
    """`predict` and `progressive` agree on what is said of a row before it is learned, also just after a refresh; up to the
    plain member, whose scaler knows the row that it scales."""
    for loss, y, _ in TASKS.values():
        model = SelfTuned(loss, window=150, budget=30).partial_fit(X[:399], y[:399])
        for t in range(399, 402):
            (said,) = model.progressive(X[t : t + 1], y[t : t + 1], return_labels=True)[1] if loss == "multiclass_squared" else (
                copy.deepcopy(model).progressive(X[t : t + 1], y[t : t + 1]))
            if loss != "multiclass_squared":
                assert np.allclose(model.predict(X[t : t + 1])[0], said, atol=0.02 * y.std(axis=0))
                model.partial_fit(X[t : t + 1], y[t : t + 1])


def test_units_do_not_matter():
    """Features in other units, and targets too: the same answers in these units."""
    moved = X * [1e3, 1e-5, 1.0, 7.0] + [1e4, 0.0, -3.0, 2.0]
    expected = SelfTuned(budget=40).progressive(X, NUMBERS)
    scores = SelfTuned(budget=40).progressive(moved, 1e6 * NUMBERS - 5e6)
    assert np.abs((scores[3:] + 5e6) / 1e6 - expected[3:]).max() < 1e-6  # no unit is known before there are two targets


def test_relevance_and_what_it_can_show():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["wave", "slope", "nothing", "switch"])
    for axes in ("auto", "own", "gradient"):
        model = SelfTuned(axes=axes, window=300).partial_fit(frame, NUMBERS)
        relevance = model.relevance_
        assert min(relevance, key=relevance.get) == "nothing" and sum(relevance.values()) == pytest.approx(1.0)
        assert np.allclose(np.sqrt(np.diag(model.metric_)) / np.sqrt(np.diag(model.metric_)).sum(), list(relevance.values()))
        history = model.history_
        assert history["t"].tolist() == [100, 200, 400] and not history["alarm"].any()
        assert 0.0 < model.noise_ and 0.9 < model.memory_ <= 1.0
        if axes != "auto":  # where two count for other shares now than then
            assert np.allclose(history["relevance"][-1], list(relevance.values()))
            assert np.allclose([history["noise"][-1], history["memory"][-1]], [model.noise_, model.memory_])
        assert set(model.weights_) == {*selftuned.KINDS[axes], "plain"} and sum(model.weights_.values()) == pytest.approx(1.0)
        assert model.t_ == 460 and model.n_features_in_ == 4 and 0 < model.n_terms_ < 400
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["slope", "wave", "nothing", "switch"]])
        for name in ("support_vectors_", "kernel_", "coef_", "margin_"):
            assert not hasattr(model, name)


def test_what_is_shown_is_of_all_members():
    """Relevance along a diagonal, which only gradient axes see: the whole is between its members, nearer to the one that counts."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(400, 3))
    y = np.sin(2.0 * (rows[:, 0] + rows[:, 1])) + 0.1 * rng.normal(size=400)
    model = SelfTuned(budget=60).partial_fit(rows, y)
    composition, weights = model._state.composition, np.array(list(model.weights_.values()))[:2]
    parts = [member.model.map @ member.model.map.T for member in composition.members[:2]]
    shares = np.maximum(weights, 1e-9) / np.maximum(weights, 1e-9).sum()
    assert np.allclose(model.metric_, shares[0] * parts[0] + shares[1] * parts[1]) and shares[1] > 0.5
    assert model.metric_[0, 1] > 0.3 * model.metric_[0, 0]  # rotated
    noises = [member.model.values()[2] for member in composition.members[:2]]
    assert min(noises) <= model.noise_ <= max(noises)


def test_a_refresh_comes_in_steps():
    """Its work is spread over the rows before it is due, also those of copies; then new members take over."""
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(600, 3))
    numbers, labels = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=600), np.sign(rows[:, 0] + rows[:, 1])
    for loss, y in ((None, numbers), ("multiclass_squared", labels)):
        settings = {"budget": 20, "window": 500}
        model, expected, under_way, steps = SelfTuned(loss, **settings), [], [], []
        for t in range(600):
            expected.append(model.progressive(rows[t : t + 1], y[t : t + 1]))
            pending = model._state.composition.pending
            if pending is not None:
                under_way.append(t + 1)
                steps.append(pending.done)
        assert model.history_["t"].tolist() == [100, 200, 400]
        for due in (100, 200, 400):
            before = [t for t in under_way if due - 60 < t < due]
            assert before == list(range(before[0], due))
        late = np.array(steps)[np.array(under_way) > 200]
        assert (np.diff(late) > 0).sum() >= 3 and np.diff(late).max() < 1.2e8  # some work with each row, until it is done
        again, found = SelfTuned(loss, **settings), []
        for begin in range(0, 600, 4):
            found.append(again.progressive(rows[begin : begin + 4], y[begin : begin + 4]))
            if again._state.composition.pending is not None:
                again = copy.deepcopy(pickle.loads(pickle.dumps(again)))
                again._check()
        found = [np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) if loss else part for part in found]
        expected = [np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) if loss else part for part in expected]
        assert np.allclose(np.concatenate(found), np.concatenate(expected), rtol=0, atol=1e-10)
        before = SelfTuned(loss, **settings).partial_fit(rows[:398], y[:398])
        other = pickle.loads(pickle.dumps(before))
        assert before._state.composition.pending is not None
        for t in range(398, 410):
            assert np.array_equal(*(one.progressive(rows[t : t + 1], y[t : t + 1]) for one in (before, other)))


def test_steps_are_all_or_nothing(monkeypatch):
    """Interrupted in any step, the old members go on; the steps are done again."""
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(500, 3))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=500)
    expected = SelfTuned(budget=20).progressive(rows, y)
    before = SelfTuned(budget=20).partial_fit(rows[:350], y[:350])
    for owner, name, place in ((selftuned, "Features", 1), (metrics, "descend", 1), (metrics, "descend", 2),
                               (selftuned, "KRLS", 2), (Evidence, "__call__", 9), (selftuned.Tuned, "summary", 1),
                               (selftuned.Tuned, "summary", 2)):
        for size in (1, 150):
            model = copy.deepcopy(before)
            with monkeypatch.context() as patch:
                interrupted_at(patch, owner, name, place)
                with pytest.raises(Stop):
                    for t in range(350, 500, size):
                        model.partial_fit(rows[t : t + size], y[t : t + size])
            begin = model.t_
            assert model.history_["t"].tolist() == [100, 200] and 360 < begin <= 400
            model._check()
            assert np.isfinite(model.predict(rows)).all()
            assert np.allclose(model.progressive(rows[begin:], y[begin:]), expected[begin:], rtol=0, atol=1e-10)
            assert model.history_["t"].tolist() == [100, 200, 400]


def test_frozen_and_by_hand():
    model = SelfTuned(window=400, budget=30).partial_fit(X[:150], NUMBERS[:150]).set_params(frozen=True)
    learned = model._state.composition.members[0]
    model.partial_fit(X[150:300], NUMBERS[150:300])
    assert model._state.composition.members[0] is learned and model.history_["t"].tolist() == [100]
    model.refresh()
    assert model._state.composition.members[0] is not learned and model.history_["t"].tolist() == [100, 300]
    model.set_params(frozen=False).partial_fit(X[300:], NUMBERS[300:])
    assert model.t_ == 460
    model._check()
    with pytest.raises(ValueError, match="'window' parameter changed"):
        model.set_params(window=900).partial_fit(X, NUMBERS)
    assert model.t_ == 460
    with pytest.raises(ValueError, match="not fitted"):
        SelfTuned().refresh()


def test_alarm_when_relevance_changes():
    """Other features matter from one row to the next: the kernel is learned anew within some hundred rows; without a change
    there is no alarm, however large single errors are."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(2000, 6))
    y = np.where(np.arange(2000) < 1000, np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 / 2, np.sin(2 * rows[:, 3]) + rows[:, 4] ** 2 / 2)
    y = y + 0.1 * rng.normal(size=2000)
    model = SelfTuned(axes="own")
    errors = (model.progressive(rows, y) - y) ** 2 / y.var()
    history = model.history_
    alarms = history["t"][history["alarm"]]
    assert len(alarms) == 1 and 1032 <= alarms[0] <= 1160
    assert errors[1600:].mean() < 0.15 and errors[500:1000].mean() < 0.15
    assert list(model.relevance_.values())[3] > 3 * list(model.relevance_.values())[0]
    noisy = SelfTuned(axes="own", window=300, budget=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ok.LearningWarning)  # no better than the mean, maybe
        noisy.partial_fit(rows[:1000], y[:1000] + np.where(rng.random(1000) < 0.05, 20.0, 0.0))
    assert not noisy.history_["alarm"].any()


def test_what_an_alarm_is():
    """Lately much worse than usual, worse than the plain member by a quarter, and worse on two rows of three."""
    composition = SelfTuned(window=120, budget=20).partial_fit(X[:150], NUMBERS[:150])._state.composition
    usual = np.ones((300, 2))

    def alarms(learned, plain, better=64):
        lately = np.column_stack([np.full(64, learned), np.where(np.arange(64) < better, plain, learned + 1e-9)])
        composition.loss_array[:364], composition.t = np.concatenate([usual, lately]), 364
        return composition.has_changed()

    assert alarms(3.0, 2.0)
    assert not alarms(1.9, 0.5)  # not twice as bad as usual
    assert not alarms(3.0, 2.9)  # hard for the plain one, too
    assert alarms(3.0, 0.1, better=42) and not alarms(3.0, 0.1, better=41)  # not by a few rows
    assert alarms(3.0, 2.0)
    composition.t = 180  # few rows
    assert not composition.has_changed()


def test_an_alarm_begins_with_the_latest_rows_alone():
    """What was learned before does not matter for the kernel that the latest rows give, and neither do its losses."""
    first, second = (SelfTuned(axes="own", window=120, budget=20) for _ in range(2))
    first.partial_fit(X[:192], NUMBERS[:192])
    second.partial_fit(X[150:342], 3 * X[150:342, 2])
    for model in (first, second):
        model.partial_fit(X[380:443], NUMBERS[380:443])
        composition = model._state.composition
        composition.loss_array[:255] = 1.0
        composition.loss_array[191:255] = 9.0, 1.0  # an alarm at 256
        model.partial_fit(X[443:444], NUMBERS[443:444])
        assert composition.pending.alarm and composition.pending.first == 192
        model.partial_fit(X[444:454], NUMBERS[444:454])
        model._check()
        assert composition.began == composition.oldest == 192 and 256 < composition.first_loss <= 266
        assert model.history_["alarm"][-1] and 256 < model.history_["t"][-1] <= 266
    assert np.allclose(first.metric_, second.metric_, rtol=1e-9)
    scores = [composition.members_scores(X)[:, 0] for composition in (first._state.composition, second._state.composition)]
    assert np.allclose(*scores, rtol=1e-9)


def test_a_kernel_that_is_no_better_does_not_replace_what_remembers_more():
    model = SelfTuned(window=120, budget=30).partial_fit(X[:300], NUMBERS[:300]).refresh()
    members = model._state.composition.members
    model.refresh()  # by the same rows
    assert all(model._state.composition.members[k] is members[k] for k in (0, 1))
    assert model.history_["t"].tolist()[-2:] == [300, 300]
    model.set_params(frozen=True).partial_fit(X[300:], np.sin(5 * X[300:, 2])).refresh()  # by rows of which another feature tells
    assert all(model._state.composition.members[k] is not members[k] for k in (0, 1))


def test_a_target_beyond_all_others_is_survived():
    """Answers that are too large disable all members, as long as the target is among the rows that are kept."""
    y = NUMBERS.copy()
    y[110] = 1e130
    model = SelfTuned(axes="own", window=100, budget=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ok.LearningWarning)
        scores = model.progressive(np.tile(X, (2, 1)), np.append(y, NUMBERS))
    assert np.isfinite(scores).all() and not any(member.disabled for member in model._state.composition.members)
    assert np.mean((scores[700:] - np.append(y, NUMBERS)[700:]) ** 2) < 0.3 * NUMBERS.var()


def test_odd_streams():
    """Constant columns and targets, one feature, doubles, one class alone, weights of 0: nothing is ever not a number."""
    constant = np.column_stack([np.full(300, 5.0), X[:300, 0]])
    constant[250:, 0] = 1e7  # for the first time
    cases = [
        (None, constant, NUMBERS[:300]),
        (None, np.ones((300, 3)), NUMBERS[:300]),
        (None, X[:300, :1], np.full(300, 1e9)),
        (None, np.repeat(X[:10], 30, axis=0), np.repeat(NUMBERS[:10], 30)),
        ("multiclass_squared", X[:300], np.full(300, "only")),
        (None, X[:300], np.where(np.arange(300) < 150, 0.0, 1e12)),
        (None, 1e100 * X[:300], 1e-100 * NUMBERS[:300]),
        (None, np.column_stack([1e-310 * X[:300, 0], X[:300, 1:]]), NUMBERS[:300]),
        (None, 1e-170 * X[:300], 1e-200 * NUMBERS[:300]),
    ]
    for loss, rows, y in cases:
        model = SelfTuned(loss, window=150, budget=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ok.LearningWarning)
            scores = model.progressive(rows, y)
        assert np.isfinite(scores).all()
        model._check()
    silent = SelfTuned(window=150, budget=20).partial_fit(X, NUMBERS, sample_weight=np.zeros(460))
    assert np.isfinite(silent.predict(X)).all()


def test_targets_of_fixed_units():
    scaler = TargetScaler.fixed(np.array([2.0, -1e9]), np.array([0.5, 1e-3]))
    y = np.array([[3.0, -1e9], [2.0, 1e-3 - 1e9]])
    scaled, means, deviations, _ = scaler.advance(y)
    assert np.allclose(scaled.reshape(2, 2), [[2.0, 0.0], [0.0, 1.0]], atol=1e-3)
    assert means.tolist() == [[2.0, -1e9]] * 2 and deviations.tolist() == [[0.5, 1e-3]] * 2
    assert scaler.restored(np.array([[2.0, 1.0]])).tolist() == [[3.0, 1e-3 - 1e9]]
    assert scaler.copy().known()[1].tolist() == [0.5, 1e-3]


@covering(1)
@each("task", ["numbers", "classes"])
@each("place", [0, 1, 2])
def test_a_member_that_fails_is_disabled_until_a_refresh(task, place):
    """The others go on, and a refresh makes the member anew."""
    loss, y, _ = TASKS[task]
    model = SelfTuned(loss, window=150, budget=40).partial_fit(X[:150], y[:150])
    member = model._state.composition.members[place]
    member.disable(ValueError("of the test"))
    scores, std = model.progressive(X[150:190], y[150:190], return_std=True)
    assert np.isfinite(scores).all() and np.isfinite(std).all() and (std > 0.0).all()
    assert pickle.loads(pickle.dumps(model))._state.composition.members[place].status == "ValueError: of the test"
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()
    model.partial_fit(X[190:210], y[190:210])
    assert not model._state.composition.members[place].disabled and model._state.composition.members[place] is not member
    model._check()


# ---- Interrupted ------------------------------------------------------------------------------------------------------


class Stop(BaseException):
    """As Ctrl-C."""


def interrupted_at(monkeypatch, owner, name, place):
    """Let the place-th call of a function be interrupted, before or after what it does."""
    function, count = getattr(owner, name), [0]

    def wrapped(*arguments, **keywords):
        count[0] += 1
        if count[0] == place:
            raise Stop
        return function(*arguments, **keywords)

    monkeypatch.setattr(owner, name, wrapped)
    return count


@pytest.mark.parametrize("owner, name, places", [
    (metrics, "descend", (1, 2)), (selftuned, "Features", (1,)), (metrics, "gradient_axes", (1,)), (selftuned, "KRLS", (1, 2)),
    (selftuned.Tuned, "summary", (1, 2)),
])
def test_a_refresh_is_all_or_nothing(owner, name, places, monkeypatch):
    """Interrupted anywhere in a refresh by hand, the old model stays as it was."""
    model = SelfTuned(window=250, budget=20).partial_fit(X[:150], NUMBERS[:150])
    expected, twin = pickle.dumps(model), copy.deepcopy(model)
    old = model._state.composition.members
    for place in places:
        with monkeypatch.context() as patch:
            interrupted_at(patch, owner, name, place)
            with pytest.raises(Stop):
                model.refresh()
        assert model._state.composition.members is old and pickle.dumps(model) == expected
    assert np.array_equal(model.refresh().predict(X), twin.refresh().predict(X))
    assert model.history_["t"].tolist() == [100, 150] and model.t_ == 150


# ---- Among others -----------------------------------------------------------------------------------------------------
