"""Implicit steps are arg-mins of I (8): against a numeric minimizer of the definition, one example at a time."""
import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from test_oracle import LOSSES
from test_outputs import MULTI


def minimizer(objective, low, high):
    """Golden-section search in extended precision: the minimum of a convex function of one number."""
    low, high = np.longdouble(low), np.longdouble(high)
    ratio = (np.sqrt(np.longdouble(5)) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = objective(a), objective(b)
    for _ in range(110):  # leaves 1e-21 of the interval
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = objective(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = objective(b)
    return float((low + high) / 2)


def precise_value(loss, z, y):
    """The loss in extended precision, written from its definition."""
    name, s = type(loss).__name__.removeprefix("Nu"), loss.core()[1]
    if name == "Hinge":
        return max(0, s - y * z)
    if name == "Novelty":
        return max(0, s - z)
    if name == "Logistic":
        return np.log1p(np.exp(-abs(y * z))) + max(0, -y * z)
    delta = abs(y - z)
    if name == "Squared":
        return delta**2 / 2
    if name == "Absolute":
        return delta
    if name == "Quantile":
        return max(s * (y - z), (s - 1) * (y - z))
    if name == "Insensitive":
        return max(0, delta - s)
    if name == "SquaredInsensitive":
        return max(0, delta - s) ** 2
    return delta - s / 2 if delta >= s else delta**2 / (2 * s)


@each("offset", [False, True])
@each("loss", LOSSES, ids=repr)
def test_one_output(loss, offset):
    """Weights w in the span of w_t and x, and b: all of f that can matter."""
    if offset and loss.task == "novelty":
        pytest.skip("an offset makes no sense there")
    rng = np.random.default_rng(0)
    for trial in range(14):
        eta, lam, C = rng.uniform(0.05, 3.0), rng.choice([0.0, rng.uniform(0, 2)]), rng.uniform(0.1, 5.0)
        w, b = rng.normal(size=3), rng.normal() if offset else 0.0
        x, y = rng.normal(size=3) * rng.uniform(0.2, 3), rng.choice([-1.0, 1.0])
        if loss.task == "regression":
            y = rng.normal() * 2
        model = ok.ILK(loss, "linear", step=eta, regularization=lam, penalty=C, offset=offset)
        label = int(y) if loss.task == "binary" else y
        model.partial_fit(x[None], [label], **({"classes": [-1, 1]} if loss.task == "binary" else {}))
        engine = model._state.hypothesis
        state = engine.state()
        state.update(weights=w[None].copy(), frame=np.eye(1), t=0, scalar=float(loss.core()[1]))
        state["offset"][0] = b
        engine.restore(state)
        model.partial_fit(x[None], [label])

        def objective(a):
            """J at w = w_t / (1 + eta lambda) + a x and the best b for it along the gradient's direction."""
            new = w / (1 + np.longdouble(eta) * lam) + a * x
            shift = a * (1 + np.longdouble(eta) * lam) if offset else 0
            score = new @ x + b + shift
            return (((new - w) @ (new - w) + shift**2) / 2
                    + eta * (lam * (new @ new) / 2 + C * precise_value(loss, score, np.longdouble(y))))

        a = minimizer(objective, -100, 100)
        np.testing.assert_allclose(model.coef_[0], w / (1 + eta * lam) + a * x, atol=2e-8)
        np.testing.assert_allclose(model.intercept_[0], b + (a * (1 + eta * lam) if offset else 0.0), atol=2e-8)


@each("loss", MULTI, ids=repr)
def test_many_outputs(loss):
    """Random directions and distances from the exact step never lower the objective.

    J is strongly convex, so a step that were off by d would leave d^2 / 2 to be gained towards the
    true minimum; the directions to all label pairs and their mixtures are among those tried.
    """
    rng = np.random.default_rng(1)
    labels = ok.LabelGraph([("a", "b", 0.5), ("b", "c", 1.0), ("c", "d", 0.7), ("d", "a", 1.3)])
    names = labels.names()
    for trial in range(12):
        eta, lam, C = rng.uniform(0.1, 2.0), rng.uniform(0, 1.5), rng.uniform(0.2, 4.0)
        W, x, y = rng.normal(size=(4, 2)), rng.normal(size=2) * 1.5, int(rng.integers(4))
        model = ok.ILK(loss, "linear", step=eta, regularization=lam, penalty=C, exact=True, labels=labels, offset=False)
        model.partial_fit(x[None], [names[y]])
        engine = model._state.hypothesis
        state = engine.state()
        state.update(weights=W.copy(), frame=np.eye(1), t=0, scalar=float(loss.core()[1]))
        engine.restore(state)
        model.partial_fit(x[None], [names[y]])

        def objective(new):
            extra = {"labels": labels} if loss.structured else {}
            value = loss.value((new @ x)[None], [y], **extra)[0]
            if loss.adapts:
                value += loss.nu * loss.core()[1]       # a constant while f moves
            return 0.5 * np.sum((new - W) ** 2) + eta * (0.5 * lam * np.sum(new**2) + C * value)

        best = objective(model.coef_)
        steps = [np.outer(d, x) for d in rng.normal(size=(24, 4))]
        steps += [np.outer(np.eye(4)[i] - np.eye(4)[j], x) for i in range(4) for j in range(4)]
        for step in steps:
            for size in (1e-1, 1e-3, 1e-5):
                assert objective(model.coef_ + size * step) >= best - 1e-14


def test_large_steps_cannot_overshoot():
    X, y = np.ones((50, 1)), np.full(50, 3.0)
    implicit = ok.ILK("squared", "linear", step=1e6, regularization=0.0).fit(X, y)
    np.testing.assert_allclose(implicit.predict([[1.0]]), [3.0], rtol=1e-5)
    with pytest.raises(FloatingPointError):
        ok.NORMA("squared", "linear", step=1e6, regularization=0.0).fit(np.ones((200, 1)), np.full(200, 3.0))


@each("size", [1e-6, 1.0, 1e3, 1e6])
@each("start", [-800.0, -30.0, 0.0, 30.0, 800.0])
@each("loss, y", [(ok.Logistic(), 1), (ok.MulticlassLogistic(), "b")], ids=repr)
def test_logistic_steps_cannot_fail(loss, y, start, size):
    """alpha = -S l'(new score), wherever the score starts and however large the step."""
    classes = [-1, 1] if y == 1 else ["a", "b", "c"]
    model = ok.ILK(loss, "linear", regularization=0.0, penalty=size, exact=False, offset=False)
    model.partial_fit([[1.0]], [y], classes=classes)
    state = model._state.hypothesis.state()
    outputs = len(state["weights"])
    state["weights"] = np.full((outputs, 1), start) * (np.arange(outputs)[:, None] == outputs - 1)
    model._state.hypothesis.restore({**state, "t": 0, "frame": np.eye(1)})
    before = model.coef_[:, 0].copy()
    model.partial_fit([[1.0]], [y])
    after = model.coef_[:, 0]
    if outputs == 1:
        gradient = np.array([loss.derivative(after[0], 1)])
    else:                                               # 1 - p without cancellation
        p = np.exp(after - after.max()) / np.exp(after - after.max()).sum()
        gradient = p.copy()
        gradient[1] = -p[[0, 2]].sum()
    assert np.isfinite(after).all()
    np.testing.assert_allclose(after - before, -size * gradient, rtol=1e-9, atol=1e-12 * (max(1, abs(start)) + size))  # dust counts as 0


HYPER = [ok.Hinge(), ok.Logistic(), ok.Squared(), ok.Huber(0.6), ok.Insensitive(0.2), ok.Novelty(0.5), ok.Absolute(),
         ok.Quantile(0.2), ok.Quantile(0.9), ok.SquaredInsensitive(0.2), ok.MulticlassHinge(), ok.GraphHinge(),
         ok.MulticlassLogistic()]


@each("offset", [False, True])
@each("loss", HYPER, ids=repr)
def test_the_hypergradient_by_differences(loss, offset):
    """With memory 1, v is how f depends on the logarithm of all steps, and so is the loss of the next example."""
    if offset and loss.task == "novelty":
        pytest.skip("an offset makes no sense there")
    rng, h, lam, C = np.random.default_rng(3), 1e-6, 0.2, 0.8
    seen = 0
    for trial in range(12):
        n = int(rng.integers(2, 6))
        X, eta = rng.normal(size=(n, 3)), rng.uniform(0.1, 1.5)
        y = {"binary": rng.choice([-1, 1], n), "multiclass": rng.choice(list("abc"), n), "regression": rng.normal(size=n),
             "novelty": None}[loss.task]
        first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": list("abc")}}.get(loss.task, {})

        def learned(step, rows):
            model = ok.ILK(loss, "linear", step=step, regularization=lam, penalty=C, offset=offset)
            return model.partial_fit(X[:rows], None if y is None else y[:rows], **first)

        def risk(step):
            """Of the last example, before it is learned."""
            model = learned(step, n - 1)
            W, scores = model.coef_, model.coef_ @ X[-1] + model.intercept_
            if loss.task == "multiclass":
                value = loss.value(scores[None], [list("abc").index(y[-1])])[0]
            else:
                value = loss.value(scores[0], 0.0 if y is None else y[-1])
            return C * float(value) + lam / 2 * np.sum(W**2)

        slope = (risk(eta * np.exp(h)) - risk(eta * np.exp(-h))) / (2 * h)
        mu = 0.01 / (1.0 + abs(slope))
        model = learned(ok.MetaDescent(eta, 0.0, memory=1.0), n - 1)        # all steps are eta
        model.set_params(step=ok.MetaDescent(eta, mu, memory=1.0)).partial_fit(X[-1:], None if y is None else y[-1:])
        np.testing.assert_allclose((1.0 - model.step_ / eta) / mu, slope, rtol=1e-4, atol=1e-6)
        seen += abs(slope) > 1e-3
        high, low = (learned(eta * np.exp(sign * h), n - 1).coef_ for sign in (1, -1))
        model = learned(ok.MetaDescent(eta, 0.0, memory=1.0), n - 1)
        v = model._state.hypothesis.function.true_rows(model._state.hypothesis.state()["weights"].reshape(2, -1, 3), 1)
        np.testing.assert_allclose(v, (high - low) / (2 * h), rtol=1e-4, atol=1e-6)
    assert seen > 5


@pytest.mark.parametrize("offset", [False, True])
def test_twice_the_quantile_in_the_middle_is_the_absolute_error(offset):
    """Quantile(0.5) is half of Absolute, kinks and caps included; rows that come again end up at a kink exactly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2))
    X[200:], y[200:] = np.repeat(X[:50], 2, axis=0), np.repeat(y[:50], 2, axis=0)
    X[::40] = 0.0                               # k(x, x) = 0: there is nothing to hold
    for targets in (y[:, 0], y):
        half, whole = (ok.ILK(loss, "linear", step=ok.MetaDescent(0.5, 0.2), regularization=0.05, penalty=penalty, offset=offset)
                       for loss, penalty in ((ok.Quantile(0.5), 2.0), (ok.Absolute(), 1.0)))
        scores, steps = half.progressive(X, targets, return_steps=True)
        expected, expected_steps = whole.progressive(X, targets, return_steps=True)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(steps, expected_steps, rtol=1e-10)


@each("loss", ["absolute", "insensitive"])
def test_an_example_that_is_met_up_to_rounding_makes_no_term(loss):
    """Its first step meets the target, so the same example again has nothing left to correct but rounding."""
    for y in np.random.default_rng(0).normal(size=40):
        model = ok.ILK(loss, 0.3 * ok.Gaussian(1.0), step=10.0, regularization=0.0).partial_fit([[0.5]] * 6, [y] * 6)
        assert model.n_terms_ == (abs(y) > model.width_ if loss == "insensitive" else 1)
