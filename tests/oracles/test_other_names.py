"""Methods that are here under other names, docs/reference/other-names.md: each beside a loop from its paper."""
import copy

import numpy as np

import onlinekernels as ok
from onlinekernels import KRLS, NORMA, Gaussian, Nystroem, PassiveAggressive, RandomFourier
from cases import each

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=len(X))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=len(X)) > 0, 1, -1)
G, ROUGH, CUBIC, FOURIER = Gaussian(1.0), ok.Laplacian(1.0), ok.Polynomial(3), RandomFourier(Gaussian(1.0), 64)
PLAIN = {"regularization": 0.0, "offset": False}
EXACT = {"noise": 0.1, "budget": None, "tolerance": 0.0}


def descent(gram, y, step, shrink=lambda t: 1.0, error=lambda s, y: y - s, home=lambda past, t: t):
    """f shrinks, and step(t) error k(x_t, .) comes: at x_t, or at the example that a codebook has for it."""
    a, scores, past = np.zeros(len(y)), [], []
    for t in range(len(y)):
        scores.append(gram[t] @ a)
        a *= shrink(t + 1)
        place = home(past, t)
        a[place] += step(t + 1) * error(scores[-1], y[t])
        past += [t] if place == t else []
    return scores


def mistake_margin(score, y):
    return y * (y * score < 1)


def nearest_within(distance):
    def home(past, t):
        far = np.linalg.norm(X[past] - X[t], axis=1)
        return past[int(far.argmin())] if past and far.min() <= distance else t

    return home


def nystroem(landmarks):
    cross = G(X[:landmarks], X)
    return cross.T @ np.linalg.solve(cross[:, :landmarks], cross)


def ridge(t, gram=ROUGH(X), y=Y):
    """Mean and variance at x_t of the Gaussian process that knows those before."""
    weights = np.linalg.solve(gram[:t, :t] + 0.1 * np.eye(t), gram[:t, t])
    return weights @ y[:t], gram[t, t] - weights @ gram[:t, t]


def delta_delta(gram, y, step, meta_rate):
    """V (2), multiplicative: the step grows with the product of two gradients in a row."""
    a, scores = np.zeros(len(y)), []
    for t in range(len(y)):
        scores.append(gram[t] @ a)
        error = y[t] - scores[-1]
        step *= max(0.5, 1 + meta_rate * a[t - 1] * gram[t, t - 1] * error) if t else 1.0
        a[t] = step * error
    return scores


# name: (model, targets, the scores of the paper's loop)
SAME = {
    "KLMS": (NORMA("squared", G, step=0.3, **PLAIN), Y, lambda: descent(G(X), Y, lambda t: 0.3)),
    "KAPA of one row, normalized": (PassiveAggressive(ok.Insensitive(0.0), CUBIC, variant="PA"), Y, lambda: descent(
        CUBIC(X) / np.sqrt(np.outer(*2 * [CUBIC(X).diagonal()])), Y / np.sqrt(CUBIC(X).diagonal()), lambda t: 1.0)
        * np.sqrt(CUBIC(X).diagonal())),
    "QKLMS": (NORMA("squared", G, step=0.3, budget=ok.Quantized(np.exp(-0.5 * 0.4**2)), **PLAIN), Y,
              lambda: descent(G(X), Y, lambda t: 0.3, home=nearest_within(0.4))),
    "Pegasos": (NORMA("hinge", G, step=lambda t: 1 / (0.1 * t), regularization=0.1, offset=False), SIGNS,
                lambda: descent(G(X), SIGNS, lambda t: 1 / (0.1 * t), lambda t: 1 - 1 / t, mistake_margin)),
    "FOGD": (NORMA("squared", FOURIER, step=0.3, **PLAIN), Y, lambda: descent(FOURIER(X), Y, lambda t: 0.3)),
    "NOGD": (NORMA("squared", Nystroem(G, 12), step=0.3, **PLAIN), Y, lambda: descent(nystroem(12), Y, lambda t: 0.3)),
    "logistic novelty": (NORMA("logistic", G, step=0.3, regularization=0.1, offset=False), np.ones(len(X), dtype=int),
                         lambda: descent(G(X), np.ones(len(X)), lambda t: 0.3, lambda t: 0.97,
                                         lambda s, y: 1 / (1 + np.exp(s)))),
    "delta-delta": (NORMA("squared", G, step=ok.MetaDescent(0.3, 0.4, memory=0.0), **PLAIN), Y,
                    lambda: delta_delta(G(X), Y, 0.3, 0.4)),
    "KRLS": (KRLS("squared", ROUGH, **EXACT), Y, lambda: [ridge(t)[0] for t in range(len(X))]),
}


@each("name", SAME)
def test_it_is_the_same(name):
    model, y, loop = SAME[name]
    options = {"classes": [-1, 1]} if name == "logistic novelty" else {}
    np.testing.assert_allclose(model.progressive(X, y, **options), loop(), rtol=1e-12, atol=1e-12)


def test_krls_knows_what_a_sparse_gaussian_process_knows_and_a_window_is_a_fit_of_it():
    """Csato and Opper, before their budget is full; Van Vaerenbergh, Via, Santamaria (2006)."""
    mean, deviation = KRLS("squared", ROUGH, **EXACT).fit(X[:-1], Y[:-1]).predict(X[-1:], return_std=True)
    np.testing.assert_allclose((mean[0], deviation[0]**2), ridge(len(X) - 1), rtol=1e-12, atol=1e-12)
    window = slice(40, 70)
    expected = ROUGH(X[70:], X[window]) @ np.linalg.solve(ROUGH(X[window]) + 0.1 * np.eye(30), Y[window])
    np.testing.assert_allclose(KRLS("squared", ROUGH, **EXACT).fit(X[window], Y[window]).predict(X[70:]), expected,
                               rtol=1e-12, atol=1e-12)


def test_the_second_order_perceptron_is_krls_that_learns_from_mistakes():
    """Cesa-Bianchi, Conconi, Gentile (2005), who count the example itself: a positive factor less."""
    model, mistakes = KRLS("squared", ROUGH, **EXACT).fit(X[:1], SIGNS[:1]), [0]
    for t in range(1, len(X)):
        both = [*mistakes, t]
        gram = ROUGH(X[both])
        score = np.append(SIGNS[mistakes], 0) @ np.linalg.solve(gram + 0.1 * np.eye(len(both)), gram[-1])
        mean, deviation = model.predict(X[t:t + 1], return_std=True)
        np.testing.assert_allclose(mean * 0.1 / (0.1 + deviation**2), score, rtol=1e-12, atol=1e-12)
        if SIGNS[t] * score <= 0:
            model.partial_fit(X[t:t + 1], SIGNS[t:t + 1])
            mistakes.append(t)
    assert len(mistakes) > 9


@each("model, step, shrink, loses, bound", [
    (ok.Perceptron(G, budget=ok.RandomRemoval(8)), 1.0, 1.0, lambda margin: margin <= 0, None),
    (NORMA("hinge", G, step=0.3, regularization=0.1, offset=False, budget=ok.RandomRemoval(8, bound=0.4)), 0.3, 0.97,
     lambda margin: margin <= 1, 0.4),
    (NORMA("hinge", G, step=0.3, regularization=0.1, offset=False, budget=ok.RandomRemoval(8, bound=0.2)), 0.3, 0.97,
     lambda margin: margin <= 1, 0.2)])
@each("ahead", [1, 9])
def test_the_random_budget_perceptron_and_bogd(model, step, shrink, loses, bound, ahead):
    """Who goes is drawn by the model; all else is as Cavallanti et al., and Zhao et al., have it."""
    model, whole, terms, drawn = copy.copy(model), copy.copy(model), {}, 0
    scores = [whole.progressive(X[t:t + ahead], SIGNS[t:t + ahead], classes=[-1, 1]) for t in range(0, len(X), ahead)]
    for t, score in enumerate(np.concatenate(scores)):
        model.partial_fit(X[t:t + 1], SIGNS[t:t + 1], classes=[-1, 1])
        expected = sum((a * G(X[i:i + 1], X[t:t + 1])[0, 0] for i, a in terms.items()), 0.0)
        np.testing.assert_allclose(score, expected, rtol=1e-12, atol=1e-12)
        terms = {i: shrink * a for i, a in terms.items()}
        if loses(SIGNS[t] * score):
            left = [i for i in terms if (model.support_vectors_ == X[i]).all(axis=1).any()]
            full = len(terms) == 8
            assert len(terms) - len(left) == full
            terms = {i: terms[i] * (8 / 7 if bound and full else 1.0) for i in left} | {t: step * SIGNS[t]}
            most = max(map(abs, terms.values()))
            if bound and full and most > bound:
                terms = {i: a * bound / most for i, a in terms.items()}
            drawn += full
    assert drawn > 9
