"""Stacking and Hedge: combiners against their formulas, members that fail, guarantees; learners like all others."""
import copy
import pickle
import warnings

import numpy as np
import pytest
from small_models import in_chunks, part

import onlinekernels as ok
from onlinekernels import (KRLS, SILK, Gaussian, Hedge, Laplacian, LearningWarning, PassiveAggressive, Smoother,
                           Stacking, bounds, load)
from onlinekernels._core.combiners import ExponentialWeights, OnlineNewton, RecursiveLeastSquares
from onlinekernels._core.schema import restore, state_of
from onlinekernels.ensemble.stacking import class_settings, number_settings

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
SEVERAL = np.column_stack([NUMBERS, 1e3 * X[:, 2] ** 2])
LABELS = np.array(["one", "two", "three"])[np.digitize(NUMBERS, [-0.3, 0.6])]
LABELS[:90][LABELS[:90] == "three"] = "two"
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], size=N)


def class_members():
    return {"posterior": KRLS("multiclass_squared", Laplacian(0.5) + 1.0, budget=30, scale=True),
            "line": PassiveAggressive("multiclass_hinge", "linear", penalty=0.1),
            "softmax": SILK("multiclass_logistic", Gaussian(1.0), budget=40),
            "near": Smoother("multiclass_squared", Gaussian(0.2))}


def number_members():
    return {"posterior": KRLS(kernel=Laplacian(0.5) + 1.0, budget=30, scale=True, scale_target=True),
            "line": KRLS(kernel="linear", scale_target=True), "near": Smoother("squared")}


TASKS = {"numbers": (number_members, NUMBERS, None), "several": (number_members, SEVERAL, WEIGHTS),
         "classes": (class_members, LABELS, None), "weighted classes": (class_members, LABELS, WEIGHTS)}
KINDS = [(kind, *task) for kind in (Stacking, Hedge) for task in TASKS.values()]
each_kind = pytest.mark.parametrize("kind, members, y, weights", KINDS,
                                    ids=[f"{k.__name__}-{t}" for k in (Stacking, Hedge) for t in TASKS])


# ---- Combiners against their formulas --------------------------------------------------------------------------------


def newton_by_hand(F, y, joined, counts, settings, odds, share=1e-3, total=2.0):
    """p = softmax(w.F); leaky online Newton on the log loss, several settings mixed by Bayes' rule."""
    m, K = F.shape[1], len(settings)
    w = [np.full(m, total / m) for _ in settings]
    A = [kappa * np.eye(m) for _, kappa in settings]
    belief, found = np.full(K, 1.0 / K), np.zeros((len(F), F.shape[2]))
    for t in range(len(F)):
        plain, p = F[t][:, : joined[t]], []
        likely = 0.5 + 0.5 * plain  # with one in a hundred on both sides, odds are finite
        heard = [np.log((likely + 0.01) / (1.01 - likely)) / np.log(101.0) if odds[k] and joined[t] == 2 else plain
                 for k in range(K)]
        for k in range(K):
            logits = w[k] @ heard[k]
            p.append(np.exp(logits - logits.max(initial=-np.inf)) if joined[t] else np.zeros(0))
            p[k] = p[k] / p[k].sum() if joined[t] else p[k]
        found[t, : joined[t]] = sum(b * q for b, q in zip(belief, p, strict=True))
        for k, (lam, kappa) in enumerate(settings):
            if lam < 1:
                A[k] = lam * A[k]
                j, back = t % m, m * (1 - lam) * kappa
                S = np.linalg.inv(A[k])
                w[k] = w[k] + back * S[:, j] * (total / m - w[k][j]) / (1 + back * S[j, j])
                A[k][j, j] += back
        label = int(y[t])
        if joined[t] > 1 and label < joined[t] and counts[t] > 0:
            losses = np.array([min(8.0, -counts[t] * np.log(q[label])) for q in p])
            for k, f in enumerate(heard):
                rival = max((c for c in range(joined[t]) if c != label), key=lambda c: p[k][c])
                x = f[:, label] - f[:, rival]
                A[k] += counts[t] * p[k][label] * p[k][rival] * np.outer(x, x)
                w[k] = w[k] + counts[t] * np.linalg.solve(A[k], f[:, label] - f @ p[k])
            belief = belief * np.exp(-losses)
            belief = (1 - share) * belief / belief.sum() + share / K
    return found, belief @ w


def test_newton_stack_is_its_formula():
    rng = np.random.default_rng(1)
    for C, m, settings, odds in ((2, 3, class_settings(0.99), [True, False, False, True]),
                                 (4, 6, [(0.998, 0.3), (0.9995, 1.0), (1.0, 10.0)], [True, True, False]),
                                 (3, 4, [(0.998, 0.3), (0.9995, 1.0)], [False, False])):
        y = rng.integers(0, C, size=400).astype(float)
        y[:40] = 0.0
        F = np.where(np.arange(C) == y[:, None], 0.6, -0.4)[:, None]
        F = np.clip(F + rng.normal(size=(400, m, C)) * np.linspace(0.2, 2, m)[:, None], -1, 1)
        joined = np.concatenate([[0], np.maximum.accumulate(y.astype(int) + 1)[:-1]])
        counts = rng.choice([0.0, 0.5, 1.0, 3.0], size=400)
        expected, weights = newton_by_hand(F, y, joined, counts, settings, odds)
        for size in (400, 37, 1):
            stack = OnlineNewton(m, settings, odds=odds)
            found = np.concatenate([stack.advance(F[i : i + size], y[i : i + size], joined[i : i + size],
                                                  counts[i : i + size])[0]
                                    for i in range(0, 400, size)])
            assert np.allclose(0.5 * (1.0 + found), expected, atol=1e-8)
            assert np.allclose(stack.weights()[0], weights, atol=1e-7)
            stack._check()
        assert np.allclose(stack.advance(F[:5], None, C)[0].sum(axis=1), 2.0 - C)
        now = stack.advance(F[:1], None, C)[0]  # just before the next row
        assert np.allclose(now, stack.advance(F[:1], y[:1], np.array([C]), np.ones(1))[0], rtol=0, atol=1e-12)
        assert stack.weights()[0, 0] > 2 * stack.weights()[0, -1]


def squares_by_hand(F, y, counts, settings, share=1e-3):
    """Leaky least squares on differences from the mean, and exponential weights, mixed; in units of the usual error."""
    m, K = F.shape[1], len(settings)
    w, A = [np.zeros(m) for _ in settings], [kappa * np.eye(m) for _, kappa in settings]
    belief, trust = np.full(K + 1, 1 / (K + 1)), np.full(m, 1 / m)
    sums, weight, low, high, found = 0.0, 0.0, np.inf, -np.inf, []
    for t in range(len(F)):
        f = np.clip(F[t], 2 * low - high, 2 * high - low) if t >= 30 else F[t]
        d = f - f.mean()
        reach = high - low
        size = (sums + reach**2 / 16) / (weight + 1) if low < high else sums / weight if weight > 0 else 1.0
        size = max(size, 1e-12 * (reach if low < high else abs(low) if low == high else 0.0) ** 2)
        said = np.array([f.mean() + v @ d for v in [*w, trust]])
        found.append(belief @ said)
        for k, (lam, kappa) in enumerate(settings):
            A[k] = lam * A[k]
            j, back = t % m, m * (1 - lam) * kappa
            S = np.linalg.inv(A[k])
            w[k] = w[k] - back * S[:, j] * w[k][j] / (1 + back * S[j, j])
            A[k][j, j] += back
        if counts[t] == 0:
            continue
        x = d / np.sqrt(size)
        for k in range(K):
            error = (y[t] - said[k]) / np.sqrt(size)
            precision = counts[t] * min(1.0, 4.0 / max(abs(error), 1e-300))
            A[k] += precision * np.outer(x, x)
            w[k] = w[k] + precision * error * np.linalg.solve(A[k], x)
        belief = belief * np.exp(-np.minimum(8, 0.5 * counts[t] * (y[t] - said) ** 2 / size))
        belief = (1 - share) * belief / belief.sum() + share / (K + 1)
        trust = trust * np.exp(-np.minimum(8, 0.5 * counts[t] * (y[t] - f) ** 2 / size))
        trust = (1 - share) * trust / trust.sum() + share / m
        square = (y[t] - found[-1]) ** 2
        square, memory = min(square, 16 * size) if t >= 30 else square, min(0.995, 1 - 3 / (t + 6))
        sums, weight = memory * sums + counts[t] * square, memory * weight + counts[t]
        low, high = min(low, y[t]), max(high, y[t])
    return np.array(found)


def test_squares_stack_is_its_formula():
    rng = np.random.default_rng(2)
    settings = number_settings(0.99)
    Y = rng.normal(size=(400, 2)) * [1.0, 1e4]
    F = Y[:, None] * rng.uniform(0.5, 1.5, size=(1, 4, 1)) + [0.3, 3e3] * rng.normal(size=(400, 4, 2))
    F[200, 1] = 1e9  # a member gone mad for a row
    counts = rng.choice([0.0, 1.0, 2.0], size=400)
    expected = np.column_stack([squares_by_hand(F[:, :, j], Y[:, j], counts, settings) for j in range(2)])
    for size in (400, 37, 1):
        stack = RecursiveLeastSquares(4, 2, settings)
        found = np.concatenate([stack.advance(F[i : i + size], Y[i : i + size], None, counts[i : i + size],
                                              np.ones(4, bool))[0]
                                for i in range(0, 400, size)])
        assert np.allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(Y).max(axis=0))
        stack._check()
        assert np.allclose(stack.weights().sum(axis=1), 1.0)
    combined, _ = stack.advance(F[:9], None, 0, None, np.ones(4, bool))
    assert np.allclose(combined, np.einsum("gm,tmg->tg", stack.weights(), F[:9]))
    alone, _ = stack.advance(F[:9], None, 0, None, np.array([True, False, False, False]))
    assert np.allclose(alone, F[:9, 0])


def test_hedge_is_its_formula_and_keeps_its_promise():
    """Who is disabled says what the others say: their mean, with weights that sum to 1, and loses as much as that."""
    rng = np.random.default_rng(3)
    for trial in range(20):
        m, n, rate, share = rng.integers(2, 9), 300, float(rng.choice([0.1, 1.0, 4.0])), float(rng.choice([1e-4, 1e-2]))
        enabled = rng.random(m) < (1.0 if trial < 14 else 0.7)
        enabled[0] = True
        best = np.where(np.arange(n) < 150, 0, m - 1)  # another one is right from the middle on
        if trial % 2:
            y = rng.integers(0, 3, size=n).astype(float)
            F = np.clip(rng.normal(size=(n, m, 3)), -1, 1)
            F[np.arange(n), best] = np.where(np.arange(3) == y[:, None], 1.0, -1.0)
            weights = ExponentialWeights(m, 0, rate, share)
            found, _ = weights.advance(F, y[:, None], np.full(n, 3), np.ones(n), enabled)

            def lost(f, t):
                return ((1 - f[int(y[t])]) ** 2 + (1 + max(np.delete(f, int(y[t])))) ** 2) / 8
        else:
            y = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
            F = (y[:, None] + rng.standard_t(2, size=(n, m)) * np.abs(y).mean())[:, :, None]
            F[np.arange(n), best, 0] = y
            weights = ExponentialWeights(m, 1, rate, share)
            found, deviations = weights.advance(F, y[:, None], np.zeros(n), np.ones(n), enabled)

            def lost(f, t):
                return 0.5 * (y[t] - f[0]) ** 2 / deviations[t, 0] ** 2
        trust, total, expected = np.full(m, 1 / m), np.zeros(m), []
        for t in range(n):
            expected.append(trust[enabled] @ F[t][enabled] / trust[enabled].sum())
            losses = np.array([lost(F[t, i] if enabled[i] else expected[-1], t) for i in range(m)])
            total += losses
            trust = trust * np.exp(-rate * (losses - losses.min()))
            trust = (1 - share) * trust / trust.sum() + share / m
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(F).max())
        assert np.allclose(weights.losses[0], total) and np.allclose(weights.weights()[0], trust)
        weights._check()
        if not enabled.all():
            continue
        regret = bounds.hedge_regret(members=int(m), examples=n, rate=rate, share=share,
                                     squared_ranges=float(weights.ranges[0]))
        assert weights.own[0] <= weights.losses[0].min() + regret


def test_what_can_be_seen():
    long = np.concatenate([X, X, X, X])
    for kind in (Stacking, Hedge):
        model = kind(class_members())
        scores, proba, labels = model.progressive(long, np.tile(LABELS, 4), return_proba=True, return_labels=True)
        assert np.allclose(proba[1:].sum(axis=1), 1.0) and labels[0] is None
        assert model.error_ == np.mean(np.array(labels) != np.tile(LABELS, 4)) and model.error_ < 0.35
        alone = class_members()["posterior"].progressive(long, np.tile(LABELS, 4), return_labels=True)[1]
        assert model.errors_["posterior"] == np.mean(np.array(alone) != np.tile(LABELS, 4))
        assert list(model.named_members_) == list(class_members()) and model.named_members_["near"].t_ == 1200
        history = model.history_
        assert history["t"].tolist() == [512, 1024] and history["weights"].shape == history["errors"].shape == (2, 4)
        assert history["error"][0] == np.mean(np.array(labels)[:512] != np.tile(LABELS, 4)[:512])
        parts, score = model.contributions(X[0]), model.decision_function(X[:1]).max()
        assert set(parts) == set(model.weights_) and model.disabled_ == {}
        total = score if kind is Hedge else np.log((1.0 + score) / (1.0 - score))
        assert sum(parts.values()) == pytest.approx(total, abs=1e-6)
        assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
        pytest.importorskip("matplotlib").use("Agg")
        upper, lower = model.plot()
        assert len(upper.lines) == 4 and len(lower.lines) == 5
    model = Stacking(number_members())
    scores, std, interval = model.progressive(X, SEVERAL, return_std=True, return_interval=0.9)
    assert ((interval[0] <= SEVERAL) & (SEVERAL <= interval[1])).mean() > 0.85
    assert model.error_ < 1.1 * min(model.errors_.values())
    one = Stacking(number_members()).partial_fit(X, NUMBERS)
    assert sum(one.contributions(X[0]).values()) == pytest.approx(one.predict_one(X[0]))
    assert sum(one.weights_.values()) == pytest.approx(1.0)


def broken(x, z):
    """A kernel in Python whose values are enormous, or no numbers, near one row, and then numbers again."""
    return broken.value if X[100, 0] in (x[0], z[0]) else float(np.exp(-np.sum((x - z) ** 2)))


@pytest.mark.parametrize("value", [1e140, np.nan, np.inf])
def test_what_a_member_says_after_it_was_disabled_does_not_count(value):
    found, broken.value = [], value
    for size in (N, 37, 1):
        model = Stacking({"broken": ok.NORMA("multiclass_hinge", broken, budget=20), **class_members()})
        with pytest.warns(LearningWarning, match="'broken' is disabled"):
            found.append(in_chunks(X, model, LABELS, size))
        assert model.named_members_["broken"].t_ == 100 and model.t_ == N
        assert np.isfinite(found[-1]).all() and np.isfinite(model.predict_proba(X)).all()
        model._state.backend._check()
    assert np.allclose(found[0], found[1], atol=1e-7) and np.allclose(found[0], found[2], atol=1e-7)


# ---- Of models that have learned already -----------------------------------------------------------------------------


def fitted(members, y, weights=None, end=150):
    return {name: model.partial_fit(X[:end], y[:end], sample_weight=part(weights, slice(end)))
            for name, model in members.items()}


@each_kind
def test_fitted_members_are_members_that_have_learned_the_same_rows(kind, members, y, weights):
    """An ensemble that has learned 150 rows and gets a new combiner goes on as one of models that have learned them."""
    models = fitted(members(), y, weights)
    kept = pickle.dumps(models)
    ensemble = kind.from_fitted(models)
    other = kind(members()).partial_fit(X[:150], y[:150], sample_weight=part(weights, slice(150)))
    backend = other._state.backend
    restore(backend.combiner, state_of(other._combiner(other._state.plan, len(models), backend.targets)))
    columns = [list(other.classes_).index(label) for label in ensemble.classes_] if y is LABELS else slice(None)

    def same(a, b):
        return np.allclose(a, b if np.ndim(b) == 1 else b[:, columns], rtol=1e-9, atol=1e-9)

    assert ensemble.t_ == 0 and ensemble.n_terms_ == other.n_terms_ > 0
    assert np.array_equal(ensemble.predict(X), other.predict(X))
    rest = (X[150:], y[150:], None, part(weights, slice(150, None)))
    assert same(ensemble.progressive(*rest), other.progressive(*rest))
    assert ensemble.t_ == 150 and ensemble.named_members_["near"].t_ == N
    assert np.array_equal(ensemble.predict(X), other.predict(X)) if y is LABELS else same(ensemble.predict(X),
            other.predict(X))
    ensemble._state.backend._check()
    assert pickle.dumps(models) == kept
    twin = kind(members()).fit(X, y)  # which forgets
    assert np.array_equal(ensemble.fit(X, y).predict(X), twin.predict(X)) and ensemble.errors_ == twin.errors_


@pytest.mark.parametrize("frozen", [False, True])
@each_kind
def test_fitted_members_in_chunks_and_from_files(kind, members, y, weights, frozen, tmp_path):
    models = fitted(members(), y)
    rows, targets, counts = X[150:], y[150:], part(weights, slice(150, None))
    found = [in_chunks(rows, kind.from_fitted(models, frozen=frozen), targets, size, counts) for size in (N, 37, 1)]
    for scores in found[1:]:
        assert np.abs(scores - found[0]).max() < 1e-7 * max(1.0, np.abs(found[0]).max())
    for begin in (0, 40):
        model = kind.from_fitted(models, frozen=frozen)
        if begin:
            model.partial_fit(rows[:begin], targets[:begin])
        model.save(tmp_path / "model.npz")
        others = [load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        expected = model.progressive(rows[begin:], targets[begin:])
        for other in others:
            assert np.array_equal(other.progressive(rows[begin:], targets[begin:]), expected)
            assert np.array_equal(other.predict(X), model.predict(X)) and other.errors_ == model.errors_
            other._state.backend._check()
    if frozen:
        for name, member in model.named_members_.items():
            said = models[name].predict(rows)
            error = np.mean(said != targets if y is LABELS else (said - targets) ** 2)
            assert member.t_ == 150 and model.errors_[name] == pytest.approx(error)


def test_members_know_labels_in_any_order():
    """Each knows its labels in its own order, `fit` has sorted some, and one knows only two yet."""
    rows, truth = X[200:], LABELS[200:]
    few = np.flatnonzero(LABELS[:200] != "three")
    models = {"backwards": KRLS("multiclass_squared", budget=30).partial_fit(X[199::-1], LABELS[199::-1]),
              "sorted": KRLS("multiclass_squared", budget=30).fit(X[:200], LABELS[:200]),
              "few": SILK("multiclass_logistic", budget=40).partial_fit(X[few], LABELS[few]),
              "many": ok.Perceptron(Gaussian(1.0)).fit(X[:200], LABELS[:200]),
              "ensemble": ok.OnlineKernelClassifier(effort="low").partial_fit(X[:200], LABELS[:200])}
    said = {name: copy.deepcopy(model).progressive(rows, truth, return_labels=True)[1]
            for name, model in models.items()}
    still = {name: model.predict(rows) for name, model in models.items()}
    model = Stacking.from_fitted(models).partial_fit(rows, truth)
    frozen = Stacking.from_fitted(models, frozen=True).partial_fit(rows, truth)
    assert model.disabled_ == frozen.disabled_ == {} and list(model.classes_) == ["one", "three", "two"]
    for name in models:
        assert model.errors_[name] == np.mean(said[name] != truth)
        assert frozen.errors_[name] == np.mean(still[name] != truth)
    assert model.error_ < min(np.mean(labels != truth) for labels in said.values()) + 0.1
    model.partial_fit(X[:50], ["four"] * 50)  # who can learn it, does
    assert set(model.disabled_) == {"many"} or model.disabled_ == {}
    assert model.predict(X[:50]).tolist().count("four") > 25
    # Losses of two classes, with one of many among them whose labels came in another order.
    two = np.where(X[:, 0] > 0, "yes", "no")
    start = int(np.argmax(two == "yes"))
    models = {"hinge": SILK("hinge", budget=30).fit(X[:200], two[:200]),
              "logistic": SILK("logistic", budget=30).fit(X[:200], two[:200]),
              "many": KRLS("multiclass_squared", budget=30).partial_fit(X[start:200], two[start:200])}
    model = Stacking.from_fitted(models, frozen=True).partial_fit(rows, two[200:])
    for name in models:
        assert model.errors_[name] == np.mean(models[name].predict(rows) != two[200:]) < 0.3
    plus = {"plus": SILK("hinge").partial_fit(X[:9], np.ones(9)),
            "both": SILK("hinge").partial_fit(X[:50], np.arange(50) % 2)}
    assert Hedge.from_fitted(plus).classes_.tolist() == [0, 1]  # what plus is the opposite of, the other one knows


def test_fitted_members_that_do_not_agree():
    tree = ok.Taxonomy(dict.fromkeys(["one", "two", "three"], "all"))
    two, words = np.where(X[:, 0] > 0, "yes", "no"), [{"pet": "dog" if x > 0 else "cat", "x": x} for x in X[:, 0]]
    fine = KRLS().fit(X, NUMBERS)
    for members, message in (
        ({"a": fine, "b": KRLS()}, "learned already, and 'b' has not"),
        ({"a": fine, "b": KRLS().fit(X[:, :2], NUMBERS)}, "same number of features. 'a' has 3, 'b' has 2"),
        ({"a": fine, "b": KRLS().fit(X, SEVERAL)}, "same number of targets"),
        ({"a": fine, "b": SILK().fit(X, two)}, "must have one task"),
        ({"a": SILK().fit(X, two), "b": SILK().fit(X, X[:, 0] > 0)},
         "'b' has False, True and takes no others; others have 'no', 'yes'"),
        ({"a": SILK().fit(X, two), "b": KRLS("multiclass_squared").fit(X, LABELS)}, "same labels. 'a' has 'no', 'yes'"),
        ({"a": fine, "b": KRLS(encode=True).fit(words, NUMBERS)}, "'b' has categories of its own"),
        ({"a": SILK(class_weight={"yes": 2.0}).fit(X, two)}, "class_weight"),
        ({"a": SILK("multiclass_hinge", labels=tree).fit(X, LABELS)}, "labels=Taxonomy"),
        ({"a": SILK("squared", lambda x, z: float(len(x) == len(z))).fit(["a", "bb"], [1.0, 2.0])},
         "'a' has learned objects"),
        ({"a": fine, "b": KRLS(noise=0.1).fit(X, NUMBERS).set_params(kernel="linear")}, "'kernel' parameter changed"),
        ([], "'members'"),
    ):
        before = pickle.dumps(members) if "objects" not in message else None
        with pytest.raises(ValueError, match=message):
            Stacking.from_fitted(members)
        assert before is None or pickle.dumps(members) == before
    with pytest.raises(ValueError, match="encode= is for"):
        Stacking.from_fitted([fine], encode=True)
    with pytest.raises(ValueError, match="memory"):
        Stacking.from_fitted([fine], memory=2.0)
    with pytest.raises(ValueError, match="unknown label"):
        Stacking.from_fitted([SILK().fit(X, two)]).partial_fit(X[:2], ["yes", "perhaps"])
    model = Stacking.from_fitted({"a": fine, "b": fine})
    kept = pickle.dumps(model)
    for bad in ((X[:3], NUMBERS[:2]), (X[:3, :2], NUMBERS[:3]), (X[:2], [1.0, np.inf])):
        with pytest.raises(ValueError):
            model.partial_fit(*bad)
        assert pickle.dumps(model) == kept


class Refusing(ok.Loss):
    """A loss that refuses all rows."""

    def __init__(self, task):
        self.task = task

    def derivative(self, score, y):
        raise ValueError("never")


@pytest.mark.parametrize("kind", [Stacking, Hedge])
@pytest.mark.parametrize("split", [[0, 300], [0, 7, 8, 150, 300]], ids=["one call", "several calls"])
def test_where_all_members_are_disabled_the_running_mean_or_the_most_frequent_class_is_answered(kind, split):
    for task, y in (("regression", 50.0 + NUMBERS), ("binary", np.where(X[:, 0] > -0.5, "often", "seldom"))):
        model, said = kind([ok.NORMA(Refusing(task)), ok.NORMA(Refusing(task), "linear")]), []
        for begin, end in zip(split[:-1], split[1:], strict=True):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                said.append(model.progressive(X[begin:end], y[begin:end], return_labels=True)[1])
            assert any("All members are disabled, and the ensemble answers the " in str(one.message) for one in warned)
        said = np.concatenate(said)
        if task == "regression":
            np.testing.assert_allclose(said[1:], np.cumsum(y)[:-1] / np.arange(1, N), rtol=1e-12)
            np.testing.assert_allclose(model.predict(X), np.full(N, y.mean()), rtol=1e-12)
        else:
            so_far = np.cumsum(y == "often")
            ahead = 2 * so_far[:-1] - np.arange(1, N)
            assert (said[1:][ahead != 0] == np.where(ahead > 0, "often", "seldom")[ahead != 0]).all()
            np.testing.assert_allclose(model.predict_proba(X)[:, 0], (y == "often").mean(), atol=1e-9)
        copied = pickle.loads(pickle.dumps(ok.Stacking([ok.SILK("squared")]).partial_fit(X, NUMBERS)))
        assert copied._state.backend.baseline[0] == N


def test_a_disabled_member_begins_anew():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2200, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=2200)
    found = []
    for size in (2200, 100, 7):
        wild = ok.NORMA("squared", ok.Polynomial(3), step=0.2, regularization=0.0, budget=20)
        model, parts = Stacking({"wild": wild, "line": KRLS("squared", ok.Linear() + 1)}), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(0, 2200, size):
                parts.append(model.progressive(X[i : i + size], y[i : i + size]))
                if i == 700 and size == 100:
                    assert "wild" in model.disabled_
                    model = pickle.loads(pickle.dumps(model))
        found.append(np.concatenate(parts))
        wild = model._state.backend.members[0]
        assert wild.begun % 512 == 0 and wild.begun > 0 and wild.failures >= 1
        assert np.mean((found[-1] - y)[1000:] ** 2) < 0.05
    for others in found[1:]:
        np.testing.assert_allclose(others, found[0], rtol=1e-9, atol=1e-12)
