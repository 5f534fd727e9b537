"""Every erratum of docs/reference/errata-*.md: what is printed fails, what the page calls right holds, and the library
has it."""
import numpy as np
import pytest

from onlinekernels import (ILK, NORMA, SVMD, AdditiveSpline, Gaussian, Hinge, Huber, NuNovelty, Projection,
                           SquaredInsensitive, Sublinear, bounds,)


def test_k_sign_of_the_nu_updates():
    """Descent balances at nu alerts and keeps an account of them; with the printed sign everything alerts."""
    X = np.random.default_rng(0).normal(size=(2000, 2))
    K, nu, eta, lam = Gaussian(1.0)(X), 0.1, 0.1, 0.05

    def alerts(sign):
        alpha, rho, count = np.zeros(len(X)), 1.0, 0
        for t in range(len(X)):
            alert = alpha @ K[:, t] < rho
            alpha *= 1 - eta * lam
            alpha[t] = eta * alert
            rho += sign * eta * (alert - nu)
            count += alert
        return count, rho

    count, rho = alerts(+1)
    assert count > 0.99 * len(X)
    assert rho > 100
    count, rho = alerts(-1)
    assert count == pytest.approx(nu * len(X), rel=0.2)
    assert rho - 1.0 == pytest.approx(eta * (nu * len(X) - count))
    model = NORMA(NuNovelty(nu, margin_step=None), Gaussian(1.0), step=eta, regularization=lam)
    assert model.fit(X).margin_ == pytest.approx(rho)


def test_k_huber_24():
    """One point with the target 0.1, over and over: as printed f jumps across it for ever."""

    def learn(inside, decay, target=0.1, sigma=0.25, eta=0.1):
        f, errors = 0.0, []
        for _ in range(100):
            delta = target - f
            far = abs(delta) > sigma
            f = decay * f + (eta * np.sign(delta) if far else inside * delta / sigma)
            errors.append(abs(delta))
        return f, max(errors[-20:])

    assert learn(inside=1.0, decay=0.9)[1] > 0.3
    f, error = learn(inside=0.1, decay=0.999)
    assert error < 0.001
    model = NORMA(Huber(width=0.25), step=0.1, regularization=0.01).fit(np.zeros((100, 1)), np.full(100, 0.1))
    assert model.predict([[0.0]])[0] == pytest.approx(f)


def test_k_scaled_coefficients():
    """The power of the common factor of f_t is t - 1, not t."""
    x, y, decay = np.array([[0.0], [0.5], [1.0]]), np.array([1, 1, -1]), 1 - 0.5 * 0.2
    k, alpha = Gaussian(1.0)(x), 0.5 * y  # all three are margin errors
    score = NORMA("hinge", Gaussian(1.0), step=0.5, regularization=0.2).progressive(x, y)[2]
    total = sum(decay**-i * alpha[i - 1] * k[i - 1, 2] for i in (1, 2))
    assert score == pytest.approx(decay**2 * total)
    assert score != pytest.approx(decay**3 * total)


def test_k_average_hypothesis():
    """One point, twice: Jensen's inequality holds for (f_1 + f_2) / 2, and not for f_1 / 2."""

    def risk(f, lam=0.1):
        return max(0.0, 1 - f) + lam / 2 * f**2

    first, second = 0.0, 0.5
    mean = (risk(first) + risk(second)) / 2
    assert risk(first / 2) > mean
    assert risk((first + second) / 2) <= mean
    model = NORMA("hinge", step=0.5, regularization=0.1, average=True).fit([[0.0], [0.0]], [1, 1])
    assert model.decision_function([[0.0]])[0] == pytest.approx((first + second) / 2)


def test_k_window_of_theorem_6():
    """The printed window shrinks behind t0; `Sublinear` does not."""
    start = 14457  # t0 for eta lambda = 0.5 and e = 0.25
    assert np.ceil((start + 1) ** 0.75) < start
    assert Sublinear(exponent=0.75, start=start).length(start + 1) == start
    assert Sublinear(exponent=0.8, start=1).length(32) == 16  # not one more, though 32**0.8 is 16.000000000000004


def test_k_square_in_49():
    """The first line of (49), an identity for f_{t+1} = f_t - eta d; with |d| for |d|^2 it is none."""
    rng = np.random.default_rng(0)
    f, g, d, eta = *rng.normal(size=(3, 5)), 0.3
    left = (f - g) @ (f - g) - (f - eta * d - g) @ (f - eta * d - g)
    assert np.isclose(left, -eta**2 * (d @ d) + 2 * eta * d @ (f - g))
    assert not np.isclose(left, -eta**2 * np.linalg.norm(d) + 2 * eta * d @ (f - g))


def test_i_cap_of_16():
    """One example, k(x, x) = 1, f_t = 0: the printed cap is not the minimum of (8)."""
    eta, lam, C = 0.5, 0.1, 0.8
    shrink = 1 / (1 + eta * lam)

    def objective(alpha):  # (8), with the hinge and y = 1
        return alpha**2 / 2 + eta * (lam / 2 * alpha**2 + C * max(0.0, 1 - alpha))

    printed, right = shrink * C, shrink * eta * C
    assert min(np.linspace(0, 1, 100001), key=objective) == pytest.approx(right, abs=1e-5)
    assert objective(right) < objective(printed)
    model = ILK("hinge", step=eta, regularization=lam, penalty=C).fit([[0.0]], [1])
    assert model.dual_coef_[0, 0] == pytest.approx(right)


def test_i_theorem_2_wants_its_step():
    """Two kinds of examples that nearly contradict each other, and a small step: far more mistakes than the bound."""
    X, y = np.repeat([[1.0, 0.3], [1.0, -0.3]], 90, axis=0), np.repeat([1, -1], 90)
    about = bounds.comparison("linear", X, y, [0.0, 1 / 0.3], points=np.eye(2), margin=1.0)

    def mistakes(model):
        return (model.progressive(X, y) * y <= 0).sum()

    slow = mistakes(ILK(Hinge(1.0), "linear", step=0.01, regularization=0.0, offset=False))
    assert slow > 5 * bounds.ilk_mistakes(**about)
    untuned = bounds.ilk_mistakes_untuned(step=0.01, regularization=0.0, learner_margin=1.0, **about)
    assert slow <= untuned
    assert mistakes(ILK(kernel="linear", **bounds.tune_ilk_mistakes(**about))) <= bounds.ilk_mistakes(**about)


def test_v_cap_of_33():
    """One point whose gradients all agree: without the cap eta c exceeds 1."""
    c, mu = 0.5, 5.0
    model = SVMD("absolute", step=0.2, meta_step=mu, regularization=c)
    _, steps = model.progressive(np.zeros((30, 1)), np.full(30, 9.0), return_steps=True)
    assert steps.max() == pytest.approx(1 / c)
    f, v, eta, free = 0.0, 0.0, 0.2, []
    for _ in range(10):
        g = -1.0 + c * f
        eta *= max(0.5, 1 - mu * g * v)
        v, f = 0.99 * v - eta * (g + 0.99 * c * v), f - eta * g
        free.append(eta)
    assert max(free) * c > 1


def test_v_traces_beside_an_offset_42_52():
    """With constant steps and a memory of 1, <f, v> and v_b are derivatives in the logarithm of eta, by differences."""
    rng = np.random.default_rng(0)
    X, numbers, labels = rng.normal(size=(40, 2)), rng.normal(1.0, 1.0, size=40), np.r_[:3, rng.integers(0, 3, 37)]

    def learned(loss, eta):
        y = labels if "multiclass" in loss else np.sign(numbers) if loss == "logistic" else numbers
        model = SVMD(loss, Gaussian(1.0), step=eta, meta_step=0.0, memory=1.0, regularization=0.05, offset=True,
                     budget=None).fit(X, y)
        state, offsets = model._state.hypothesis, np.ravel(model.intercept_)
        traces = state.rule.stored()["offset_trace"][:len(offsets)]     # without that of a label to come
        return np.r_[model.norm_**2 / 2, offsets], np.r_[state.norms()[0], traces]

    for loss in ("squared", "huber", "logistic", "multiclass_squared", "multiclass_logistic"):
        traces, eta, h = learned(loss, 0.1)[1], 0.1, 1e-5
        differences = (learned(loss, eta * np.exp(h))[0] - learned(loss, eta * np.exp(-h))[0]) / (2 * h)
        np.testing.assert_allclose(traces, differences, rtol=1e-6, atol=1e-8, err_msg=loss)


def test_h_fraction_in_4():
    """With 5/6 the matrix has a negative eigenvalue; with 1/6 it is (3)."""
    p, q = np.meshgrid(np.linspace(0.2, 3.0, 15), np.linspace(0.2, 3.0, 15))
    low, high = np.minimum(p, q), np.maximum(p, q)
    third = 1 + p * q + np.abs(q - p) * low**2 / 2 + low**3 / 3
    printed, right = (1 + p * q + low**2 * high / 2 - fraction * low**3 for fraction in (5 / 6, 1 / 6))
    assert np.linalg.eigvalsh(printed).min() < -1
    np.testing.assert_allclose(right, third)
    np.testing.assert_allclose(AdditiveSpline(order=1)(q[:, :1]), third)


def test_h_r_in_theorem_6():
    """One example with K = 1/4, target 1, epsilon 0: the loss is 1, and R^2 |u|^2 is so only if R^2 = K."""
    loss = SquaredInsensitive(0.0)
    model = Projection(loss, 0.25 * Gaussian(1.0))
    total = loss.value(model.progressive([[0.0]], [1.0]), [1.0]).sum()
    assert total == pytest.approx(0.25 * model.norm_**2)
    assert total > 0.25**2 * model.norm_**2
