"""Implicit steps are arg-mins of I (8): against a numeric minimizer of the definition, one example at a time."""
import numpy as np

import onlinekernels as ok
from cases import covering, each
from test_outputs import MULTI


NAMES = list("abcd")
GRAPH = ok.LabelGraph([("a", "b", 0.5), ("b", "c", 1.0), ("c", "d", 0.7), ("d", "a", 1.3)])
FACTOR = np.random.default_rng(3).normal(size=(4, 2))
KAPPAS = {"delta": None, "regular": FACTOR @ FACTOR.T + np.diag([0.1, 0.5, 1.0, 2.0]), "singular": FACTOR @ FACTOR.T,
          "identity": np.eye(4)}


def related(kappa):
    return GRAPH if kappa is None else ok.Labels(NAMES, GRAPH.distances(NAMES), kappa)


@covering(3, unless=lambda loss, kappa, offset: kappa == "singular" and not (offset or loss.over_all_labels))
@each("loss", MULTI, ids=repr)
@each("kappa", KAPPAS)
@each("offset", [False, True])
def test_many_outputs(loss, kappa, offset):
    """Random directions and distances from the exact step never lower the objective.

    J is strongly convex, so a step that were off by d would leave d^2 / 2 to be gained towards the
    true minimum; the directions to all label pairs and their mixtures are among those tried.
    """
    rng = np.random.default_rng(1)
    labels, kappa = related(KAPPAS[kappa]), np.eye(4) if KAPPAS[kappa] is None else KAPPAS[kappa]
    for trial in range(6):
        eta, lam, C = rng.uniform(0.1, 2.0), rng.uniform(0, 1.5), rng.uniform(0.2, 4.0) * 10.0 ** (trial % 3)
        W, b, x, y = rng.normal(size=(4, 2)), offset * rng.normal(size=4), rng.normal(size=2) * 1.5, rng.integers(4)
        model = ok.ILK(loss, "linear", step=eta, regularization=lam, penalty=C, exact=True, labels=labels,
                       offset=offset)
        model.partial_fit(x[None], [NAMES[y]])
        engine = model._state.hypothesis
        state = engine.state()
        state.update(weights=W.copy(), offset=b.copy(), frame=np.eye(1), t=0, scalar=float(loss.core()[1]))
        engine.restore(state)
        model.partial_fit(x[None], [NAMES[y]])

        def objective(new, offsets):
            extra = {"labels": labels} if loss.structured else {}
            value = loss.value((kappa @ new @ x + offsets)[None], [y], **extra)[0]
            if loss.adapts:
                value += loss.nu * loss.core()[1]       # a constant while f moves
            moved = 0.5 * np.sum((new - W) * (kappa @ (new - W))) + 0.5 * np.sum((offsets - b) ** 2)
            return moved + eta * (0.5 * lam * np.sum(new * (kappa @ new)) + C * value)

        found, offsets = engine.coefficients(), engine.intercept()
        best = objective(found, offsets)
        steps = [*rng.normal(size=(24, 4)), *(np.eye(4)[i] - np.eye(4)[j] for i in range(4) for j in range(4))]
        for step in steps:
            for size in (1e-1, 1e-3, 1e-5):
                for apart in {0.0, offset * size}:
                    assert objective(found + size * np.outer(step, x),
                                     offsets + apart * step) >= best - 2e-14 * (1 + best)


@each("loss", MULTI, ids=repr)
def test_label_kernels_in_chunks(loss):
    """One row or many; and a kernel between labels that is the identity is none."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), rng.choice(NAMES, 60)
    found = {}
    for name, kappa in KAPPAS.items():
        for chunk in (1, 60):
            model = ok.SILK(loss, ok.Gaussian(1.0), exact=True, labels=related(kappa), budget=20, offset=True)
            found[name, chunk] = np.concatenate([model.progressive(X[i : i + chunk], y[i : i + chunk])
                                                 for i in range(0, 60, chunk)])
        np.testing.assert_allclose(found[name, 1], found[name, 60], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found["identity", 1], found["delta", 1], rtol=1e-9, atol=1e-9)


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
    # dust counts as 0
    np.testing.assert_allclose(after - before, -size * gradient, rtol=1e-9, atol=1e-12 * (max(1, abs(start)) + size))
