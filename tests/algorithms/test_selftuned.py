"""SelfTuned: the evidence and its gradient, the descent, features, the combination; a learner like all others."""
import copy
import math
import pickle

import numpy as np
import pytest
from cases import covering, each

from onlinekernels import SelfTuned
from onlinekernels._core.combiners import LeastSquares
from onlinekernels.algorithms.evidence import Evidence, Features, descend

RNG = np.random.default_rng(0)
X = RNG.normal(size=(460, 4))
X[:, 3] = RNG.random(460) < 0.3
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 3] * X[:, 1] + 0.1 * RNG.normal(size=460)
SEVERAL = np.column_stack([NUMBERS, 1e3 * X[:, 1] ** 2])
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:150][LABELS[:150] == "three"] = "two"  # the third joins later, in the middle of a stage
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], size=460)
TASKS = {"numbers": (None, NUMBERS, None), "several": ("squared", SEVERAL, WEIGHTS),
         "classes": ("multiclass_squared", LABELS, None), "weighted classes": ("multiclass_squared", LABELS, WEIGHTS)}


def minimize(function, start, steps):
    """What `descend` returns when all of its steps are done."""
    work = descend(function, start, steps)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def by_differences(function, q, step=1e-5):
    return np.array([(function(q + step * e)[0] - function(q - step * e)[0]) / (2 * step) for e in np.eye(len(q))])


def test_gradient_of_the_evidence():
    for n, d, outputs, weighted in ((40, 3, 1, False), (60, 5, 3, True), (25, 1, 2, True)):
        rng = np.random.default_rng(n)
        rows, Y = rng.normal(size=(n, d)), rng.normal(size=(n, outputs))
        times = np.sort(rng.choice(4000, n)).astype(float)
        evidence = Evidence(rows, Y, times, rng.uniform(0.3, 3.0, n) if weighted else None)
        for q in (np.zeros(d + 4), rng.normal(size=d + 4), 2.0 * rng.normal(size=d + 4)):
            for function in (evidence, evidence.with_prior):
                value, gradient = function(q)
                expected = by_differences(function, q)
                assert np.abs(gradient - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())
                assert value == function(q)[0]


def test_descent():
    def valley(x):  # Rosenbrock's
        value = 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
        slope = -400.0 * x[0] * (x[1] - x[0] ** 2) - 2.0 * (1.0 - x[0])
        return value, np.array([slope, 200.0 * (x[1] - x[0] ** 2)])

    def wall(x):  # no value beyond 1
        if x[0] >= 1:
            return math.inf, np.array([np.nan])
        return -math.log(1.0 - x[0]) - x[0], np.array([1.0 / (1.0 - x[0]) - 1.0])

    scales = np.logspace(-2, 2, 12)
    assert np.allclose(minimize(valley, [-1.2, 1.0], 200)[0], 1.0, atol=1e-6)
    assert minimize(lambda x: (0.5 * np.sum(scales * x**2), scales * x), np.ones(12), 150)[1] < 1e-5
    assert abs(minimize(wall, [0.99], 100)[0][0]) < 1e-4
    values = [minimize(valley, [-1.2, 1.0], steps)[1] for steps in range(20)]
    assert (np.diff(values) <= 0).all()
    assert values[0] == valley(np.array([-1.2, 1.0]))[0]  # never up, and no step is none
    assert np.array_equal(minimize(lambda x: (0.0, 0.0 * x), np.ones(2), 5)[0], np.ones(2))


def test_features():
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.normal(size=500), np.exp(3 * rng.normal(size=500)), rng.random(500) < 0.01,
                            np.full(500, 1e8),
                            rng.integers(0, 3, size=500), np.where(np.arange(500) == 7, 1.0, 0.0),
                            1e-9 * rng.normal(size=500)])
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
        numbers = rng.normal(size=(600, outputs)) * [1.0, 1e6, 1.0][:outputs]
        y = rng.integers(0, outputs, size=600).astype(float) if shared else numbers
        Y = np.where(np.arange(3) == y[:, None], 1.0, -1.0) if shared else y
        scores = Y[:, None] * rng.uniform(0.5, 1.5, size=(1, 3, 1))
        scores += np.abs(Y).mean(axis=0) * 0.3 * rng.normal(size=(600, 3, outputs))
        counts = rng.uniform(0.0, 2.0, size=600)
        expected = one_by_one(scores, Y, counts, 0.99, 5.0, shared, origin)
        for size in (1, 37, 600):
            stack = LeastSquares(3, 0 if shared else outputs, 0.99, 5.0)
            parts = [stack.advance(scores[i : i + size], y[i : i + size], counts=counts[i : i + size])[0]
                     for i in range(0, 600, size)]
            assert np.allclose(np.concatenate(parts), expected, rtol=1e-9, atol=1e-9 * np.abs(Y).max())
            assert origin is not None or np.allclose(stack.weights().sum(axis=1), 1.0)
        if shared:
            expected = np.einsum("m,tmc->tc", stack.weights()[0],
                                 scores) + (0.0 if origin is None else stack.weights().sum() - 1.0)
            assert np.allclose(stack.advance(scores)[0], expected)
    agreeing = LeastSquares(3, 1, 0.99, 5.0)
    same = np.repeat(rng.normal(size=(300, 1, 1)), 3, axis=1)
    # members that agree for ever
    assert np.allclose(agreeing.advance(same, rng.normal(size=(300, 1)))[0][:, 0], same[:, 0, 0])
    assert np.allclose(agreeing.weights(), 1 / 3)


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
            pending = model._state.backend.pending
            if pending is not None:
                under_way.append(t + 1)
                steps.append(pending.done)
        assert model.history_["t"].tolist() == [100, 200, 400]
        for due in (100, 200, 400):
            before = [t for t in under_way if due - 60 < t < due]
            assert before == list(range(before[0], due))
        late = np.array(steps)[np.array(under_way) > 200]
        assert (np.diff(late) > 0).sum() >= 3
        assert np.diff(late).max() < 1.2e8  # some work with each row, until it is done
        again, found = SelfTuned(loss, **settings), []
        for begin in range(0, 600, 4):
            found.append(again.progressive(rows[begin : begin + 4], y[begin : begin + 4]))
            if again._state.backend.pending is not None:
                again = copy.deepcopy(pickle.loads(pickle.dumps(again)))
                again._state.backend._check()
        found = [np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) if loss else part for part in found]
        expected = [np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) if loss else part for part in expected]
        assert np.allclose(np.concatenate(found), np.concatenate(expected), rtol=0, atol=1e-10)
        before = SelfTuned(loss, **settings).partial_fit(rows[:398], y[:398])
        other = pickle.loads(pickle.dumps(before))
        assert before._state.backend.pending is not None
        for t in range(398, 410):
            assert np.array_equal(*(one.progressive(rows[t : t + 1], y[t : t + 1]) for one in (before, other)))


def test_what_an_alarm_is():
    """Lately much worse than usual, worse than the plain member by a quarter, and worse on two rows of three."""
    backend = SelfTuned(window=120, budget=20).partial_fit(X[:150], NUMBERS[:150])._state.backend
    usual = np.ones((300, 2))

    def alarms(learned, plain, better=64):
        lately = np.column_stack([np.full(64, learned), np.where(np.arange(64) < better, plain, learned + 1e-9)])
        backend.loss_array[:364], backend.t = np.concatenate([usual, lately]), 364
        return backend.has_changed()

    assert alarms(3.0, 2.0)
    assert not alarms(1.9, 0.5)  # not twice as bad as usual
    assert not alarms(3.0, 2.9)  # hard for the plain one, too
    assert alarms(3.0, 0.1, better=42) and not alarms(3.0, 0.1, better=41)  # not by a few rows
    assert alarms(3.0, 2.0)
    backend.t = 180  # few rows
    assert not backend.has_changed()


def test_an_alarm_begins_with_the_latest_rows_alone():
    """What was learned before does not matter for the kernel that the latest rows give, and neither do its losses."""
    first, second = (SelfTuned(axes="own", window=120, budget=20) for _ in range(2))
    first.partial_fit(X[:192], NUMBERS[:192])
    second.partial_fit(X[150:342], 3 * X[150:342, 2])
    for model in (first, second):
        model.partial_fit(X[380:443], NUMBERS[380:443])
        backend = model._state.backend
        backend.loss_array[:255] = 1.0
        backend.loss_array[191:255] = 9.0, 1.0  # an alarm at 256
        model.partial_fit(X[443:444], NUMBERS[443:444])
        assert backend.pending.alarm and backend.pending.first == 192
        model.partial_fit(X[444:454], NUMBERS[444:454])
        model._state.backend._check()
        assert backend.began == backend.oldest == 192 and 256 < backend.first_loss <= 266
        assert model.history_["alarm"][-1] and 256 < model.history_["t"][-1] <= 266
    assert np.allclose(first.metric_, second.metric_, rtol=1e-9)
    scores = [backend.members_scores(X)[:, 0] for backend in (first._state.backend, second._state.backend)]
    assert np.allclose(*scores, rtol=1e-9)


@covering(1)
@each("task", ["numbers", "classes"])
@each("place", [0, 1, 2])
def test_a_member_that_fails_is_disabled_until_a_refresh(task, place):
    """The others go on, and a refresh makes the member anew."""
    loss, y, _ = TASKS[task]
    model = SelfTuned(loss, window=150, budget=40).partial_fit(X[:150], y[:150])
    member = model._state.backend.members[place]
    member.disable(ValueError("of the test"))
    scores, std = model.progressive(X[150:190], y[150:190], return_std=True)
    assert np.isfinite(scores).all() and np.isfinite(std).all() and (std > 0.0).all()
    assert pickle.loads(pickle.dumps(model))._state.backend.members[place].status == "ValueError: of the test"
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()
    model.partial_fit(X[190:210], y[190:210])
    assert not model._state.backend.members[place].disabled
    assert model._state.backend.members[place] is not member
    model._state.backend._check()


def test_a_kernel_that_is_no_better_does_not_replace_what_remembers_more():
    model = SelfTuned(window=120, budget=30).partial_fit(X[:300], NUMBERS[:300]).refresh()
    members = model._state.backend.members
    model.refresh()  # by the same rows
    assert all(model._state.backend.members[k] is members[k] for k in (0, 1))
    assert model.history_["t"].tolist()[-2:] == [300, 300]
    # by rows of which another feature tells
    model.set_params(frozen=True).partial_fit(X[300:], np.sin(5 * X[300:, 2])).refresh()
    assert all(model._state.backend.members[k] is not members[k] for k in (0, 1))


def test_memory_follows_the_rows_that_came_not_the_window():
    """33 million rows of three features and a target would take more than a gigabyte."""
    model = SelfTuned(window=33_000_000, budget=20).partial_fit(X[:150], NUMBERS[:150])
    assert model._state.backend.kept_array.nbytes < 1e5
    small = SelfTuned(window=100, budget=20)
    for begin, end in zip([*range(140), 140], [*range(1, 141), 300], strict=True):  # the ring grows, and goes round
        small.partial_fit(X[begin:end], NUMBERS[begin:end])
        small = pickle.loads(pickle.dumps(small)) if end % 60 == 0 else small
    whole = SelfTuned(window=100, budget=20).partial_fit(X[:300], NUMBERS[:300])
    np.testing.assert_allclose(small.predict(X), whole.predict(X), rtol=1e-9)
