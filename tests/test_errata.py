"""Every erratum of docs/reference/errata-*.md: what is printed fails, what the page calls right holds, and the library has it."""
import numpy as np
import pytest

from onlinekernels import (
    ILK,
    NORMA,
    SILK,
    SVMD,
    Adatron,
    AdditiveSpline,
    Gaussian,
    Hinge,
    Huber,
    Logistic,
    NuHinge,
    NuNovelty,
    Precomputed,
    Projection,
    SquaredInsensitive,
    Sublinear,
    bounds,
)

# ---- K: Kivinen, Smola and Williamson ---------------------------------------------------------


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


def test_k_text_under_22():
    """(22) leaves a fraction nu outside, the words under it 1 - nu."""
    nu, eta = 0.1, 0.01

    def outside(up, down):
        epsilon, out = 1.0, []
        for error in np.abs(np.random.default_rng(0).normal(size=20000)):
            out.append(error > epsilon)
            epsilon += up if out[-1] else -down
        return np.mean(out)

    assert outside(up=eta * nu, down=eta * (1 - nu)) == pytest.approx(1 - nu, abs=0.02)
    assert outside(up=eta * (1 - nu), down=eta * nu) == pytest.approx(nu, abs=0.02)


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


def test_k_adaptive_sigma_is_no_gradient():
    """Huber's loss falls as sigma grows, inside and outside."""
    values = [Huber(width).value([0.2, 2.0], 0.0) for width in (0.5, 1.0, 1.5)]
    assert (np.diff(values, axis=0) < 0).all()


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


def test_k_margin_errors_after_theorem_3():
    """Ten orthogonal examples, a function of margin mu with B^2 = 10 mu^2, and ten margin errors."""
    mu, B2 = 0.1, 10 * 0.1**2
    model = NORMA(Hinge(mu / 2), Precomputed(np.eye(10)), step=mu / 2)
    errors = model.fit(np.arange(10).reshape(-1, 1), [1, -1] * 5).n_terms_
    assert 4 * B2 / mu < errors <= 4 * B2 / mu**2


def test_k_30_and_lemma_7():
    """(30) cancels; the stable form is the same number, where Lemma 7's function has its minimum."""

    def printed(x, K, C):
        return np.sqrt(C / K * (x + C / K)) - C / K

    def stable(x, K, C):
        return x / (1 + np.sqrt(1 + x * K / C))

    assert printed(1.0, 3.0, 2.0) == pytest.approx(stable(1.0, 3.0, 2.0))
    assert abs(printed(1.0, 1e-18, 1.0) - 0.5) > 0.1
    assert stable(1.0, 0.0, 1.0) == 0.5
    z, h = np.linspace(0.01, 0.99, 99), stable(1.0, 3.0, 2.0)
    assert (3 / (1 - z) + 2 / (z * (1 - z)) >= 3 / (1 - h) + 2 / (h * (1 - h))).all()


# ---- I: Cheng, Vishwanathan, Schuurmans, Wang and Caelli --------------------------------------


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


def test_i_runner_up_of_17():
    """Three labels, the first is right, 1 - tau = 1/2: the rival by shrunk scores gives the smaller objective."""
    Delta, f = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5, 0.4])
    shrink = size = 0.5

    def objective(g):  # (8) with eta lambda = eta C = 1
        hinge = max(0.0, (Delta + g)[1:].max() - g[0])
        return ((g - f) ** 2).sum() / 2 + (g**2).sum() / 2 + hinge

    def step(rival):
        alpha = np.clip((Delta[rival] + shrink * (f[rival] - f[0])) / 2, 0.0, size)
        return shrink * f + alpha * (np.eye(3)[0] - np.eye(3)[rival])

    printed, right = 1 + (Delta + f)[1:].argmax(), 1 + (Delta + shrink * f)[1:].argmax()
    assert printed != right
    assert objective(step(right)) < objective(step(printed))


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


def test_i_theorem_3_cannot_hold_for_silk():
    """One term, orthogonal examples that come again: nothing is remembered, and the regret is linear."""
    examples = np.tile(np.arange(50), 20).reshape(-1, 1)
    model = SILK("hinge", Precomputed(np.eye(50)), budget=1)
    assert (Hinge().value(model.progressive(examples, [1] * 1000), 1) == 1.0).all()


# ---- V: Vishwanathan, Schraudolph and Smola ---------------------------------------------------


def slope(what, eta, h=1e-6):
    """Derivative of the first result in the logarithm of the step."""
    return (what(eta * np.exp(h))[0] - what(eta * np.exp(-h))[0]) / (2 * h)


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


def test_v_norms_behind_a_buffer():
    """The recurrences (46)-(49) do not know what was dropped, unless `exact_norms`."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)

    def ratio(**how):
        model = SVMD("hinge", Gaussian(1.0), budget=20, **how).fit(X, y)
        return model._state.hypothesis.norms()[1] / model.norm_**2

    assert ratio() > 3
    assert ratio(exact_norms=True) == pytest.approx(1.0)


def test_v_47_lacks_a_part():
    """The squared loss, against the double sum, with a constant step."""
    n, c, lam, eta = 40, 0.05, 0.9, 0.2
    X = np.random.default_rng(0).normal(size=(n, 2))
    K, targets = Gaussian(1.0)(X), X[:, 0]

    def worst(extra):
        alpha, beta, product, off = np.zeros(n), np.zeros(n), 0.0, 0.0
        for t in range(n):
            f, chi, square = alpha @ K[t], beta @ K[t], alpha @ K @ alpha
            xi, gamma = f - targets[t], c * alpha
            gamma[t] = xi
            product = (1 - eta * c) * lam * product - eta * (c * square + xi * f)
            product -= extra * eta * lam * chi * f  # (47)
            beta = (1 - eta * c) * lam * beta - eta * gamma
            beta[t] -= eta * lam * chi
            product = (1 - eta * c) * product - eta * xi * (beta @ K[t])  # (46)
            alpha = alpha - eta * gamma
            off = max(off, abs(product - alpha @ K @ beta))
        return off

    assert worst(extra=0) > 0.01
    assert worst(extra=1) < 1e-12


def test_v_trace_of_an_offset_52():
    """With a memory of 1 the trace is the derivative of b in log eta_b; the squared loss has H = 1."""
    noisy = np.random.default_rng(0).normal(size=20)

    def offset(eta, H=1.0):
        b = v = 0.0
        for target in noisy:
            xi = b - target
            v, b = v - eta * (xi + H * v), b - eta * xi
        return b, v

    assert offset(0.3, H=1.0)[1] == pytest.approx(slope(offset, 0.3), rel=1e-5)
    assert offset(0.3, H=0.0)[1] != pytest.approx(slope(offset, 0.3), rel=1e-2)


def test_v_nu_trick_in_log_space():
    """Two classes: as printed, margin errors of one class count with the wrong sign, and the margin runs away."""
    rng = np.random.default_rng(0)
    margins, signs = rng.normal(1.0, 1.0, size=3000), rng.choice([-1, -1, -1, 1], size=3000)

    def largest(derivative, epsilon=1.0):
        top = epsilon
        for margin, sign in zip(margins, signs):
            error = margin <= epsilon
            epsilon *= np.exp(min(50.0, -0.01 * epsilon * derivative(-sign * error, error)))
            top = max(top, epsilon)
        return top

    assert largest(lambda xi, error: -(xi + 0.1)) > 100
    assert largest(lambda xi, error: error - 0.1) < 1.5
    assert NuHinge(nu=0.1).scalar_gradient([0.0, 0.0, 2.0], [1, -1, 1]) == pytest.approx([0.9, 0.9, -0.1])


def test_v_order_in_algorithm_2():
    """v_eps is the derivative of log eps in that of the step only if it is updated first."""

    def scale(eta, trace_first=True):
        log_epsilon, v = 0.0, 0.0
        for _ in range(10):
            s = -0.1 * np.exp(log_epsilon)
            log_epsilon -= eta * s
            s = s if trace_first else -0.1 * np.exp(log_epsilon)
            v -= eta * s * (1 + v)  # (58)
        return log_epsilon, v

    assert scale(0.3)[1] == pytest.approx(slope(scale, 0.3), rel=1e-5)
    assert scale(0.3, trace_first=False)[1] != pytest.approx(slope(scale, 0.3), rel=1e-2)


def test_v_36_far_from_0():
    assert Logistic().curvature([0.0, 800.0], 1).tolist() == [0.25, 0.0]


def test_v_adatron_converges_geometrically():
    """Two points, whose coefficients tend to 1 / (1 + k)."""

    def missing(epochs):
        model = Adatron(Gaussian(1.0), epochs=epochs).fit([[0.0], [1.0]], [1, 1])
        return np.abs(model.dual_coef_[0] - 1 / (1 + np.exp(-0.5))).max()

    assert missing(6) / missing(5) == pytest.approx(np.exp(-1), abs=1e-3)
    assert missing(16) / missing(15) == pytest.approx(np.exp(-1), abs=1e-3)


# ---- H: Herbster ------------------------------------------------------------------------------


def test_h_fraction_in_4():
    """With 5/6 the matrix has a negative eigenvalue; with 1/6 it is (3)."""
    p, q = np.meshgrid(np.linspace(0.2, 3.0, 15), np.linspace(0.2, 3.0, 15))
    low, high = np.minimum(p, q), np.maximum(p, q)
    third = 1 + p * q + np.abs(q - p) * low**2 / 2 + low**3 / 3
    printed, right = (1 + p * q + low**2 * high / 2 - fraction * low**3 for fraction in (5 / 6, 1 / 6))
    assert np.linalg.eigvalsh(printed).min() < -1
    np.testing.assert_allclose(right, third)
    np.testing.assert_allclose(AdditiveSpline(order=1)(q[:, :1]), third)


def test_h_left_and_right_of_the_tree():
    """Left of its knot the exponential kernel is e^x e^-p, so the left sums are over knots right of x."""
    knots, alpha, x = np.arange(4.0), np.array([1.0, -2.0, 0.5, 1.5]), 1.4

    def f(left, right):
        return np.exp(x) * (alpha * np.exp(-knots))[left].sum() + np.exp(-x) * (alpha * np.exp(knots))[right].sum()

    truth = np.sum(alpha * np.exp(-np.abs(knots - x)))
    assert f(knots >= x, knots < x) == pytest.approx(truth)
    assert f(knots <= x, knots > x) != pytest.approx(truth)


def test_h_sign_in_the_caption_of_fig_1():
    distances = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    assert np.linalg.eigvalsh(np.exp(distances)).min() < 0 < np.linalg.eigvalsh(np.exp(-distances)).min()


def test_h_r_in_theorem_6():
    """One example with K = 1/4, target 1, epsilon 0: the loss is 1, and R^2 |u|^2 is so only if R^2 = K."""
    loss = SquaredInsensitive(0.0)
    model = Projection(loss, 0.25 * Gaussian(1.0))
    total = loss.value(model.progressive([[0.0]], [1.0]), [1.0]).sum()
    assert total == pytest.approx(0.25 * model.norm_**2)
    assert total > 0.25**2 * model.norm_**2


def test_h_projection_is_no_perceptron():
    """Normalised rows, updates below the margin 1: the two do not even make the same mistakes."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1.0, -2.0, 0.5] > 0, 1, -1)
    projection = Projection("hinge", "linear").progressive(X, y)
    perceptron = NORMA("hinge", "linear", step=1.0, regularization=0.0).progressive(X, y)
    assert (projection * perceptron < 0).any()
