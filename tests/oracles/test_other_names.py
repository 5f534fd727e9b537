"""Methods that are here under other names, docs/reference/other-names.md: each beside a loop from its paper."""
import copy

import numpy as np

import onlinekernels as ok
from onlinekernels import bounds, KRLS, NORMA, Gaussian, Nystroem, PassiveAggressive, RandomFourier
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


def quadratic(u):
    """V, footnote 2."""
    return u * u / 2 + u + 1 if u > -1 else 0.5


def delta_delta(gram, y, step, meta_rate, factor=lambda u: max(0.5, 1 + u)):
    """V (2), multiplicative: the step grows with the product of two gradients in a row."""
    a, scores = np.zeros(len(y)), []
    for t in range(len(y)):
        scores.append(gram[t] @ a)
        error = y[t] - scores[-1]
        step *= factor(meta_rate * a[t - 1] * gram[t, t - 1] * error) if t else 1.0
        a[t] = step * error
    return scores


def coherent(gram, coherence):
    """Richard, Bermudez, Honeine (2009): examples that no element of the dictionary is nearly the same as."""
    dictionary = []
    for t in range(len(gram)):
        if all(abs(gram[t, j]) < coherence for j in dictionary):
            dictionary.append(t)
    return dictionary


def knlms(gram, y, coherence, step, offset):
    """Normalized descent on the coefficients of a coherent dictionary, `offset` added to the squared length."""
    a, scores, dictionary = np.zeros(len(y)), [], coherent(gram, coherence)
    for t in range(len(y)):
        h = np.where(np.isin(np.arange(len(y)), dictionary) & (np.arange(len(y)) <= t), gram[t], 0.0)
        scores.append(h @ a)
        a += step * h * (y[t] - h @ a) / (offset + h @ h)
    return scores


def budgeted_passive_aggressive(gram, y, size, penalty):
    """BPA-S (Wang and Vucetic 2010): (8), over each term that may go and the coefficient of the example.

    The objective is convex in the coefficient b, and quadratic on both sides of the hinge's kink: one of three is best.
    """
    a, scores = {}, []
    for t in range(len(y)):
        score = sum(w * gram[t, i] for i, w in a.items())
        scores.append(score)
        if y[t] * score >= 1:
            continue
        best = np.inf
        for r in a if len(a) == size else [None]:
            w, kr, krr = (0.0, 0.0, 0.0) if r is None else (a[r], gram[r, t], gram[r, r])
            rest = score - w * kr
            for b in (w * kr / gram[t, t], w * kr / gram[t, t] + penalty * y[t], (y[t] - rest) / gram[t, t]):
                cost = (w * w * krr - 2 * w * b * kr + b * b * gram[t, t]) / 2
                cost += penalty * max(0.0, 1 - y[t] * (rest + b * gram[t, t]))
                if cost < best - 1e-12:
                    best, goes, coefficient = cost, r, b
        a.pop(goes, None)
        a[t] = coefficient
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
    "quadratic": (NORMA("squared", G, step=ok.MetaDescent(0.3, 4.0, memory=0.0, quadratic=True), **PLAIN), Y,
                  lambda: delta_delta(G(X), Y, 0.3, 4.0, quadratic)),
    "BPA-S": (PassiveAggressive("hinge", CUBIC, penalty=0.05, budget=ok.Absorbing(9)), SIGNS,
              lambda: budgeted_passive_aggressive(CUBIC(X), SIGNS, 9, 0.05)),
    "KRLS": (KRLS("squared", ROUGH, **EXACT), Y, lambda: [ridge(t)[0] for t in range(len(X))]),
}


@each("name", SAME)
def test_it_is_the_same(name):
    model, y, loop = SAME[name]
    options = {"classes": [-1, 1]} if name == "logistic novelty" else {}
    np.testing.assert_allclose(model.progressive(X, y, **options), loop(), rtol=1e-12, atol=1e-12)


def test_knlms_is_descent_on_a_dictionary_that_quantization_chooses():
    """Elements that have not come yet are 0. With the whole dictionary from the start it is a pass on k(X, D)."""
    every = NORMA(ok.Novelty(1e9), G, budget=ok.Quantized(0.8), step=1.0, **PLAIN).fit(X)
    rows = coherent(G(X), 0.8)
    np.testing.assert_array_equal(every.support_vectors_, X[rows])
    features = np.where(np.array(rows) <= np.arange(len(X))[:, None], G(X, X[rows]), 0.0)
    lengths = np.sqrt(0.03 + (features**2).sum(axis=1))
    model = NORMA("squared", "linear", step=0.4, **PLAIN)
    scores = model.progressive(features / lengths[:, None], Y / lengths) * lengths
    np.testing.assert_allclose(scores, knlms(G(X), Y, 0.8, 0.4, 0.03), rtol=1e-12, atol=1e-12)


def test_the_average_of_pegasos_last_half_is_of_two_averages_and_its_risk_falls_like_1_over_t():
    """Rakhlin, Shamir, Sridharan (2012), Thm 5: the mean excess is at most 2 (1 + ln 2 * 5/4) 2 G^2 / (lambda T)."""
    lam, gram = 0.1, G(X)

    def risk(scores, square):
        return np.maximum(0.0, 1 - SIGNS * scores).mean() + lam / 2 * square

    best = bounds.audits.least_risk(gram, SIGNS, ok.Hinge(1.0), 1.0, lam) / len(X)
    found = {}
    for T in (200, 800, 3200):
        excess = []
        for seed in range(6):
            drawn = np.random.default_rng(seed).integers(len(X), size=T)
            model = NORMA("hinge", G, step=lambda t: 1 / (lam * t), regularization=lam, offset=False, average=True)
            half = copy.deepcopy(model.partial_fit(X[drawn[:T // 2]], SIGNS[drawn[:T // 2]], classes=[-1, 1]))
            whole = model.partial_fit(X[drawn[T // 2:]], SIGNS[drawn[T // 2:]])
            scores = 2 * whole.decision_function(X) - half.decision_function(X)
            a, mean = np.zeros(len(X)), np.zeros(len(X))
            for t, i in enumerate(drawn):
                mean += a * 2 / T if t >= T // 2 else 0.0
                wrong = SIGNS[i] * (gram[i] @ a) <= 1
                a *= 1 - 1 / (t + 1)
                a[i] += SIGNS[i] * wrong / (lam * (t + 1))
            np.testing.assert_allclose(scores, gram @ mean, rtol=1e-9, atol=1e-9)
            excess.append(risk(scores, mean @ gram @ mean) - best)
        found[T] = np.mean(excess)
        assert 0 <= found[T] <= 4 * (1 + 1.25 * np.log(2)) * 4 / (lam * T)
    assert found[3200] < found[200] / 8


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


def test_bogd_by_importance():
    """BOGD++: who goes is drawn by the model, with the paper's probabilities, and f is what it was in the mean."""
    def made(seed):
        return NORMA("hinge", CUBIC, step=0.3, regularization=0.1, offset=False,
                     budget=ok.RandomRemoval(8, seed, importance=True))

    def stays(terms):
        """s |a| sqrt k(x, x), with sum 7; those above 1 stay surely."""
        size, sure = np.array([abs(a) * np.sqrt(CUBIC(X[i:i + 1])[0, 0]) for i, a in terms.items()]), np.zeros(8, bool)
        while True:
            q = np.where(sure, 1.0, (7 - sure.sum()) * size / size[~sure].sum())
            if (q <= 1 + 1e-12).all():
                return q
            sure |= q > 1

    model, terms, drawn, capped, first = made(0), {}, 0, 0, None
    for t in range(len(X)):
        score = sum((a * CUBIC(X[i:i + 1], X[t:t + 1])[0, 0] for i, a in terms.items()), 0.0)
        np.testing.assert_allclose(model.progressive(X[t:t + 1], SIGNS[t:t + 1], classes=[-1, 1])[0], score, rtol=1e-9)
        terms = {i: 0.97 * a for i, a in terms.items()}
        if SIGNS[t] * score <= 1:
            if len(terms) == 8:
                q, before = dict(zip(terms, stays(terms))), terms
                first = first or (t, before, q)
                terms = {i: a / q[i] for i, a in terms.items() if (model.support_vectors_ == X[i]).all(axis=1).any()}
                assert len(terms) == 7
                drawn, capped = drawn + 1, capped + (max(q.values()) == 1)
            terms[t] = 0.3 * SIGNS[t]
    assert drawn > 9 and capped
    t, before, q = first
    rest = np.zeros((400, 8))
    for seed in range(400):
        other = made(seed).fit(X[:t + 1], SIGNS[:t + 1])
        assert other.n_terms_ == 8
        for place, i in enumerate(before):
            here = (other.support_vectors_ == X[i]).all(axis=1)
            rest[seed, place] = other.dual_coef_[0, here].sum()
    chances = np.array(list(q.values()))
    np.testing.assert_allclose((rest != 0).mean(axis=0), chances, atol=4 * 0.5 / 20)
    error = 4 * rest.std(axis=0) / 20 + 1e-12
    assert (abs(rest.mean(axis=0) - list(before.values())) <= error).all()


def test_a_bound_shrinks_bogd_by_importance():
    model = NORMA("hinge", G, step=0.3, regularization=0.1, offset=False,
                  budget=ok.RandomRemoval(8, bound=0.35, importance=True))
    for t in range(len(X)):
        model.partial_fit(X[t:t + 1], SIGNS[t:t + 1], classes=[-1, 1])
        assert model.n_terms_ <= 8 and abs(model.dual_coef_).max() <= 0.35 * (1 + 1e-12)
