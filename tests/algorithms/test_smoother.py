"""Smoother: local votes, averages and densities against their formulas; running ranks; a learner like all others."""
import itertools
import math

import numpy as np
import pytest
from small_models import in_chunks

import onlinekernels as ok
from onlinekernels import Gaussian, Laplacian, Recent, Reservoir, RunningScaler, Smoother
from onlinekernels._core.schema import restore, state_of
from onlinekernels._core.smoother import Smoothing
from onlinekernels._core.transforms import Ranks
from onlinekernels.losses import as_loss

RNG = np.random.default_rng(0)
N = 330
X = RNG.normal(size=(N, 3)) + [0.0, 50.0, 0.0]
NUMBERS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=N)
SEVERAL = np.column_stack([NUMBERS, 1e3 * X[:, 2]])
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:100][LABELS[:100] == "three"] = "two"
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], size=N)
TASKS = {"numbers": ("squared", NUMBERS), "several": ("squared", SEVERAL), "classes": ("multiclass_squared", LABELS),
         "novelty": (ok.NuNovelty(0.05), None)}
KINDS = [
    {"kernel": Gaussian(0.3)},
    {"kernel": Laplacian(2.0), "budget": 50},
    # so narrow that no weight but in logarithms is a number
    {"kernel": Gaussian(0.01), "budget": Recent(40), "scale": True},
    {"budget": Reservoir(60)},
    {"kernel": Laplacian(1.0), "budget": Reservoir(30, memory=90, seed=3), "neighbours": 5,
     "scale": RunningScaler(0.99)},
]


def scrambled(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def kept_slots(n, budget):
    """The slot of each row, from the definition."""
    if isinstance(budget, Recent):
        return [t % budget.size for t in range(n)]
    found = list(range(min(n, budget.size)))
    for t in range(len(found), n):
        among = t + 1 if budget.memory is None or budget.memory >= t + 1 else max(budget.memory, budget.size)
        found.append(scrambled((scrambled(budget.seed) + t) % 2**64) % among)
    return [slot if slot < budget.size else None for slot in found]


def one_by_one(task, kind, rows, said, weights):
    """Scores from the formula, a row at a time; `said` are places of labels, or numbers."""
    budget = kind.get("budget", 1000)
    budget = Recent(budget) if isinstance(budget, int) else budget
    kernel, neighbours = kind.get("kernel", Gaussian(0.5)), kind.get("neighbours", 0 if "kernel" in kind else 3)
    scale = kind.get("scale", False)
    if scale:
        rows = (RunningScaler() if scale is True else RunningScaler(scale.memory)).progressive(rows)
    kept, found = {}, []
    for t, slot in enumerate(kept_slots(len(rows), budget)):
        others = [s for s in kept.values() if weights[s] > 0]
        if not others:
            found.append({"multiclass": np.full(3, -1.0), "regression": np.zeros(said.shape[1]),
                          "novelty": np.zeros(1)}[task])
        else:
            apart = rows[others] - rows[t]
            is_city = isinstance(kernel, Laplacian)
            distances = np.abs(apart).sum(axis=1) if is_city else np.sqrt((apart**2).sum(axis=1))
            unit = np.sort(distances)[:neighbours][-1] if neighbours else 1.0
            logs = -kernel.rate * distances / unit if is_city else -0.5 * (distances / unit / kernel.width) ** 2
            shares = weights[others] * np.exp(logs - logs.max())
            if task == "novelty":
                height = -0.5 * math.log(2 * math.pi * (kernel.width * unit) ** 2) if not is_city else (
                    math.log(kernel.rate / unit / 2))
                total = weights[[s for s in kept.values()]].sum()
                found.append([math.log(shares.sum() / total) + logs.max() + rows.shape[1] * height])
            elif task == "multiclass":
                found.append([2 * shares[said[others, 0] == c].sum() / shares.sum() - 1 for c in range(3)])
            else:
                found.append(shares @ said[others] / shares.sum())
        if slot is not None:
            kept[slot] = t
    return np.array(found)


@pytest.mark.parametrize("loss, y", TASKS.values(), ids=TASKS)
def test_formula_and_chunks(loss, y):
    order = list(dict.fromkeys(LABELS))
    for kind in KINDS:
        for weights in (None, WEIGHTS):
            task = as_loss(loss, "a test").task
            said = {"multiclass": np.array([[order.index(label)] for label in LABELS], dtype=float),
                    "regression": NUMBERS[:, None] if y is NUMBERS else SEVERAL, "novelty": np.zeros((N, 1))}[task]
            expected = one_by_one(task, kind, X, said, np.ones(N) if weights is None else weights)
            models = [Smoother(loss, **kind) for _ in range(3)]
            for model, size in zip(models, (N, 37, 1), strict=True):
                scores = in_chunks(X, model, y, size, weights)
                if task == "multiclass":  # a class that joins later has 0 before
                    scores = scores[:, [sorted(order).index(label) for label in order]]
                    joined = np.array([len(set(LABELS[:t])) for t in range(N)])
                    assert not scores[np.arange(3) >= joined[:, None]].any()
                    scores = np.where(np.arange(3) < joined[:, None], scores, -1.0)
                tolerance = 1e-6 if kind is KINDS[2] else 1e-7
                assert np.allclose(scores, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max(axis=0))
                model._state.backend._check()
            whole, single = models[0].predict(X[:9]), models[2].predict(X[:9])
            assert np.allclose(whole, single, rtol=1e-6,
                               atol=1e-6 * np.abs(y).max()) if task == "regression" else np.array_equal(whole, single)


def test_densities_are_densities():
    """They integrate to 1, for both kernels, in any units of neighbours; and rank a mixture as it is."""
    grid = np.linspace(-12, 12, 4001)
    rows = RNG.normal(size=(400, 1))
    for kernel in (Gaussian(0.3), Laplacian(2.0)):
        model = Smoother("nunovelty", kernel).partial_fit(rows)
        assert np.exp(model.score_samples(grid[:, None])).sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-3)
    assert model.offset_ == pytest.approx(np.quantile(Smoother("nunovelty", kernel).progressive(rows)[1:], 0.01),
                                          abs=0.5)
    assert np.array_equal(model.decision_function(rows), model.score_samples(rows) - model.offset_)
    assert np.array_equal(model.predict(rows), np.where(model.decision_function(rows) >= 0, 1, -1))


def test_running_ranks():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 12, size=(400, 2)).astype(float)
    for size, memory in ((500, 0), (50, 0), (30, 60)):
        ranks, kept = Ranks(2, size, memory, 7), {}
        found = np.concatenate([ranks.ranks(values[i : i + 23], learns=True) for i in range(0, 400, 23)])
        slots = kept_slots(400, Reservoir(size, memory or None, 7))
        for t, slot in enumerate(slots):
            there = values[list(kept.values())].reshape(-1, 2)
            expected = ((there < values[t]).sum(axis=0) + (there <= values[t]).sum(axis=0) + 1) / (2 * (len(there) + 1))
            assert np.allclose(found[t], expected)
            if slot is not None:
                kept[slot] = t
        ranks._check()
        again = Ranks(2, size, memory, 7)
        restore(again, state_of(ranks))
        assert np.array_equal(again.ranks(values, learns=True), ranks.ranks(values, learns=True))
    for damage in ({"t": -1}, {"t": 1.0}, {"rows": np.zeros((3, 2))}, {"rows": np.full((30, 2), np.nan)}):
        with pytest.raises(ValueError):
            restore(again, {**state_of(ranks), **damage})


def local_rows(task, n_features, **arguments):
    return Smoothing(task, {"n_features": n_features, "targets": 1, "city_block": False, **arguments}, 0.0)


@pytest.mark.parametrize("features", [1, 8, 32, 33])
def test_distances_and_neighbours(features):
    """Of few features and many; while slots are taken again, units change, and a state is restored."""
    rng = np.random.default_rng(features)
    rows, said = rng.normal(size=(300, features)), rng.normal(size=(300, 1))
    local = local_rows("numbers", features, rate=0.5, size=150, neighbour=5)
    for n, m in itertools.product((1, 15, 16, 17, 50), (1, 3, 4, 9)):
        some, few = rows[100 : 100 + m], local_rows("numbers", features, rate=0.5, size=150)
        few.learn(rows[:n], said[:n])
        assert np.allclose(few.rows.distances(some), ((some[:, None] - rows[:n]) ** 2).sum(axis=2), rtol=0, atol=1e-11)
    for begin, end in ((0, 1), (1, 90), (90, 230)):
        local.learn(rows[begin:end], said[begin:end])
        local._check()
    local.rows.take_rescaled(local.rows.rescaled(np.full(features, 2.0)))
    local.learn(2 * rows[230:250], said[230:250])
    local._check()
    other = local_rows("numbers", features, rate=0.5, size=150, neighbour=5)
    other.restore(local.state())
    found = local.scores(2 * rows[250:])[0]
    assert np.array_equal(found, other.scores(2 * rows[250:])[0])
    distances = 4 * ((rows[250:, None] - rows[100:250]) ** 2).sum(axis=2)
    shares = np.exp(-0.5 * (distances - distances.min(axis=1, keepdims=True)) / np.sort(distances, axis=1)[:, 4:5])
    assert np.allclose(found[:, 0], shares @ said[100:250, 0] / shares.sum(axis=1), rtol=0, atol=1e-8)


def test_answers():
    model = Smoother("multiclass_squared", scale=True)
    scores, proba, labels = model.progressive(X, LABELS, return_proba=True, return_labels=True)
    assert np.mean(labels[150:] == LABELS[150:]) > 0.75 and np.allclose(proba[1:].sum(axis=1), 1.0)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    model = Smoother("squared", scale=True)
    scores, std, interval = model.progressive(X, SEVERAL, return_std=True, return_interval=0.8)
    inside = ((interval[0] <= SEVERAL) & (SEVERAL <= interval[1]))[50:]
    assert (np.abs(inside.mean(axis=0) - 0.8) < 0.1).all() and (std > 0).all()
    assert np.mean((scores[100:, 0] - NUMBERS[100:]) ** 2) < 0.35 * NUMBERS.var()
    one = Smoother("squared").partial_fit(X, NUMBERS)
    parts = one.contributions(X[0] + 0.1, top=None)
    assert sum(share.value for share in parts) == pytest.approx(one.predict_one(X[0] + 0.1))
    votes = Smoother("multiclass_squared").partial_fit(X, LABELS)
    value = sum(share.value for share in votes.contributions(X[3], top=None, label="two"))
    assert value == pytest.approx(votes.decision_function(X[3:4])[0, votes.classes_.tolist().index("two")])
    assert len(votes.contributions(X[3], top=2)) == 2 and one.n_terms_ == N == len(one.support_vectors_)
    for name in ("weights_", "coef_", "kernel_", "margin_", "offset_"):
        assert not hasattr(one, name)
    assert not hasattr(one, "decision_function") and not hasattr(Smoother("nunovelty"), "predict_proba")
    weighted = Smoother("multiclass_squared", Gaussian(3.0), class_weight={"three": 50.0}).partial_fit(X, LABELS)
    assert np.mean(weighted.predict(X) == "three") > 2 * np.mean(Smoother("multiclass_squared",
                                                                          Gaussian(3.0)).partial_fit(
        X, LABELS).predict(X) == "three")
