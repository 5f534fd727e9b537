"""Many outputs, implicit steps and step-size adaptation against their oracle, every budget, any chunking."""

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each
from reference_outputs import (LabelSet, ReferenceAdaptiveILK, ReferenceILK, ReferenceNORMA, ReferenceSVMD, delta,
                               label_graph, taxonomy,)
from test_oracle import BUDGETS, LOSSES, describe, in_chunks, shared_sign

N, D = 40, 3
# Some settings diverge; the library and the oracle then do so together.
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
NAMES = ["a", "b", "c", "d", "e"]
PARENTS = {"a": "v", "b": "v", "c": "w", "d": "w", "v": "root", "w": "root", "e": "root"}
EDGES = [("a", "b", 0.5), ("b", "c", 1.0), ("c", "d", 0.25), ("d", "e", 2.0), ("e", "a", 1.5)]
FEATURES = np.random.default_rng(9).normal(size=(5, 3))
OWN = LabelSet(NAMES, FEATURES @ FEATURES.T,
               np.abs(np.subtract.outer([0.0, 0.3, 1.0, 1.2, 2.0], [0.0, 0.5, 1.0, 1.7, 2.0]) * (1 - np.eye(5))))
STRUCTURES = {"delta": (None, delta(NAMES)), "taxonomy": (ok.Taxonomy(PARENTS), taxonomy(PARENTS, ["a", "b", "c", "d",
                                                                                                   "e"])),
              "graph": (ok.LabelGraph(EDGES), label_graph(EDGES, NAMES)), "own": (ok.Labels(NAMES, OWN.Delta,
                                                                                            OWN.kappa), OWN)}
MULTI = [ok.MulticlassHinge(0.8), ok.NuMulticlassHinge(0.2, 0.6, None), ok.NuMulticlassHinge(0.2, 0.6, 0.2),
         ok.MulticlassLogistic(), ok.MulticlassSquared(), ok.GraphHinge(), ok.NuGraphHinge(0.3, 0.7, None),
         ok.NuGraphHinge(0.3, 0.7, 0.1)]
STEPS = [ok.Fixed(0.2), ok.InverseSqrt(0.4), ok.Decaying(0.3, 5)]
META = [ok.MetaDescent(0.2, 0.3, 0.9), ok.MetaDescent(0.3, 0.1, 0.0), ok.MetaDescent(0.1, 0.5, 1.0)]
OWN_META = [ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.2, 0.05, 0.5),
                           margin_step=ok.MetaDescent(1.0, 0.7, 0.2)),
            ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.2, 0.3, 0.0),
                           margin_step=ok.MetaDescent(1.0, 0.0, 0.9)),
            ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.05), margin_step=ok.MetaDescent(0.4, 0.3, 0.9)),
            ok.MetaDescent(0.2, 2.0, 0.8, offset_step=ok.MetaDescent(0.2, 2.0, 0.5),
                           margin_step=ok.MetaDescent(1.0, 2.0, 0.2), quadratic=True)]


def data(loss, seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[rng.random(n) < 0.1] = X[0]
    y = {"binary": rng.choice([-1, 1], n), "multiclass": rng.choice(NAMES, n), "regression": rng.normal(size=n),
         "novelty": None,}[loss.task]
    return X, y, rng.uniform(0.2, 2.0, n), rng


def shares_step(loss):
    """Whether a nu-loss leaves the step of its margin to the step of f."""
    return loss.adapts and loss.margin_step is None


def suited(step, loss, offset):
    """A step without those of offsets and margin that a model has no use for, and refuses."""
    params = step.get_params(deep=False)
    return ok.MetaDescent(**{**params, "offset_step": params["offset_step"] if offset else None,
                             "margin_step": params["margin_step"] if shares_step(loss) else None})


def compare(model, oracle, loss, seed, structure="delta", weighted=False):
    """Scores, coefficients, offsets and scalar after a stream in random chunks."""
    X, y, weights, rng = data(loss, seed)
    weights = weights if weighted else None
    first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}}.get(loss.task, {})
    if structure != "delta":
        first = {}
    scores = in_chunks(model, X, y, weights, rng, **first)
    expected = oracle.run(X, y, weights)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-10)
    model._state.engine._check()
    engine = model._state.hypothesis
    np.testing.assert_allclose(model.intercept_, oracle.b, rtol=1e-9, atol=1e-10)
    if oracle.scalar is not None:
        np.testing.assert_allclose(engine.scalar(), oracle.scalar, rtol=1e-9, atol=1e-12)
    if hasattr(model, "dual_coef_"):
        expected = np.array([row.alpha for row in oracle.rows]).reshape(-1, model.dual_coef_.shape[0]).T
        kept = (model.dual_coef_ != 0).any(axis=0)
        kept_there = (np.abs(expected) > 1e-300).any(axis=0)
        np.testing.assert_allclose(model.dual_coef_[:, kept], expected[:, kept_there], rtol=1e-9, atol=1e-11)
    return X, y


def seed_of(*choices):
    """Another stream for other choices, each of them (list, member)."""
    return sum((3 * place + 1) * many.index(one) for place, (many, one) in enumerate(choices))


@covering(2)
@each("structure", STRUCTURES)
@each("kernel", [ok.Gaussian(1.2), ok.Linear(), shared_sign], ids=repr)
@each("loss", MULTI, ids=repr)
@each("step", STEPS, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_norma_with_many_outputs(loss, kernel, structure, step, budget, offset):
    labels, reference_labels = STRUCTURES[structure]
    seed = seed_of((STEPS, step), (BUDGETS, budget), (MULTI, loss))
    model = ok.NORMA(loss, kernel, step=step, regularization=0.05, budget=budget, offset=offset, labels=labels)
    oracle = ReferenceNORMA(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.05,
                            budget=describe(budget), offset=offset, labels=reference_labels)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)


@covering(2)
@each("loss", [loss for loss in MULTI if not loss.structured], ids=repr)
@each("kernel", [ok.Gaussian(1.2), ok.Linear()], ids=repr)
@each("algorithm", ["norma", "ilk", "svmd"])
@each("offset", [False, True])
@each("seed", range(6))
def test_labels_join_at_their_own_row(loss, kernel, algorithm, offset, seed):
    X, y, _, rng = data(loss, seed)
    shared = dict(loss=describe(loss), kernel=describe(kernel), growing=True, offset=offset)
    if isinstance(loss, ok.MulticlassSquared):      # a label that joins has been wrong at all examples before
        shared.update(growing=False, joins=True, labels=delta(list(dict.fromkeys(y.tolist()))))
    if algorithm == "norma":
        model = ok.NORMA(loss, kernel, step=0.2, regularization=0.05, offset=offset)
        oracle = ReferenceNORMA(step=("Fixed", {"rate": 0.2}), regularization=0.05, **shared)
    elif algorithm == "ilk":
        model = ok.ILK(loss, kernel, step=0.5, regularization=0.05, offset=offset)
        oracle = ReferenceILK(step=("Fixed", {"rate": 0.5}), regularization=0.05, **shared)
    else:
        model = ok.NORMA(loss, kernel, step=META[0], regularization=0.05, offset=offset)
        oracle = ReferenceSVMD(step=describe(META[0]), regularization=0.05, **shared)
    order = list(dict.fromkeys(y.tolist()))
    scores, start = np.zeros((len(X), 5)), 0
    while start < len(X):
        stop = start + int(rng.choice([1, 3, 10]))
        part = model.progressive(X[start:stop], y[start:stop])
        scores[start:stop, [order.index(label) for label in model.classes_]] = part
        start = stop
    expected = oracle.run(X, y)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-10)
    assert model.classes_.tolist() == sorted(order)


def no_such_ilk(loss, structure, exact, offset, **_):
    """The oracle knows exact steps over all labels with the delta kernel; for others see test_implicit."""
    if loss.task != "multiclass":
        return exact or structure != "delta" or offset and loss.task == "novelty"
    return structure in ("taxonomy", "own") and (exact or loss.over_all_labels)


@covering(2, unless=no_such_ilk)
@each("loss", [*LOSSES, *MULTI], ids=repr)
@each("structure", STRUCTURES)
@each("exact", [False, True])
@each("kernel", [ok.Gaussian(1.2), ok.Linear(), ok.Polynomial(2, 0.4)], ids=repr)
@each("step", STEPS, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_ilk(loss, structure, exact, kernel, step, budget, offset):
    labels, reference_labels = STRUCTURES[structure]
    seed = seed_of((STEPS, step), (BUDGETS, budget), ([*LOSSES, *MULTI], loss))
    model = ok.ILK(loss, kernel, step=step, regularization=0.3, penalty=0.7, exact=exact, budget=budget,
                   offset=offset, labels=labels)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceILK(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.3,
                          penalty=0.7, exact=exact, budget=describe(budget), offset=offset, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)


def no_structure(loss, structure, offset, **_):
    return loss.task != "multiclass" and structure != "delta" or loss.task == "novelty" and offset


@covering(2, unless=lambda step, loss, offset, **others: no_structure(loss, offset=offset, **others)
          or step in OWN_META and not (offset or shares_step(loss)))
@each("loss", [loss for loss in [*LOSSES, *MULTI] if not isinstance(loss, ok.NuHuber)], ids=repr)
@each("structure", STRUCTURES)
@each("kernel", [ok.Gaussian(1.2), ok.Linear()], ids=repr)
@each("step", [*META, *OWN_META], ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_svmd(loss, structure, kernel, step, budget, offset):
    labels, reference_labels = STRUCTURES[structure]
    seed = seed_of(([*META, *OWN_META], step), ([False, True], offset), ([*LOSSES, *MULTI], loss))
    step = suited(step, loss, offset)
    model = ok.NORMA(loss, kernel, step=step, regularization=0.2, budget=budget, offset=offset, labels=labels)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceSVMD(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.2,
                           budget=describe(budget), offset=offset, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)
    np.testing.assert_allclose(model.step_, oracle.step_history[-1], rtol=1e-9)
    if not oracle.dropped:  # <f, v> and |f|^2 by recurrence equal the naive double sums
        sums = oracle.inner("alpha", "beta"), oracle.inner("alpha", "alpha")
        np.testing.assert_allclose(model._state.hypothesis.norms(), sums, rtol=1e-9, atol=1e-9)


DROPPING = [ok.Hinge(), ok.Logistic(), ok.Squared(), ok.MulticlassHinge(), ok.GraphHinge(), ok.MulticlassLogistic(),
            ok.MulticlassSquared()]


@covering(2, unless=no_structure)
@each("loss", DROPPING, ids=repr)
@each("structure", STRUCTURES)
@each("kernel", [ok.Gaussian(1.2), ok.Gaussian(1.0) + ok.Noise(0.3),
                 0.5 * ok.Laplacian(0.7) + 0.2 * ok.Linear()], ids=repr)
@each("budget", BUDGETS[1:], ids=repr)
@each("offset", [False, True])
def test_exact_norms_stay_exact_when_terms_are_dropped(loss, structure, kernel, budget, offset):
    labels, reference_labels = STRUCTURES[structure]
    step, seed = META[0], seed_of((BUDGETS, budget), ([False, True], offset), (DROPPING, loss))
    model = ok.SVMD(loss, kernel, step=step.rate, meta_step=step.meta_rate, memory=step.memory, regularization=0.2,
                    budget=budget, labels=labels, offset=offset, exact_norms=True)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceSVMD(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.2,
                           budget=describe(budget), offset=offset, exact_norms=True, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 2 == 0)
    np.testing.assert_allclose(model._state.hypothesis.norms(),
                               (oracle.inner("alpha", "beta"), oracle.inner("alpha", "alpha")), rtol=1e-8, atol=1e-9)


ADAPTED = [*META, ok.MetaDescent(0.2, 0.3, 0.9, margin_step=ok.MetaDescent(0.4, 0.7, 0.2)),
           ok.MetaDescent(0.2, 2.0, 0.8, quadratic=True)]
ADAPTIVE = [loss for loss in [*LOSSES, *MULTI] if not isinstance(loss, (ok.NuHuber, ok.MulticlassSquared))]


@covering(2, unless=lambda **of: no_such_ilk(exact=False, **of))
@each("loss", ADAPTIVE, ids=repr)
@each("structure", STRUCTURES)
@each("kernel", [ok.Gaussian(1.2), ok.Linear()], ids=repr)
@each("step", ADAPTED, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_adapted_implicit_steps(loss, structure, kernel, step, budget, offset):
    labels, reference_labels = STRUCTURES[structure]
    seed = seed_of((ADAPTED, step), (BUDGETS, budget), (ADAPTIVE, loss))
    step = suited(step, loss, offset)
    model = ok.ILK(loss, kernel, step=step, regularization=0.3, penalty=0.7, budget=budget, offset=offset,
                   labels=labels)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceAdaptiveILK(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.3,
                                  penalty=0.7, budget=describe(budget), offset=offset, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)
    np.testing.assert_allclose(model.step_, oracle.step_history[-1], rtol=1e-9)
    np.testing.assert_allclose(model._state.hypothesis.norms(), (oracle.fv, oracle.ff), rtol=1e-8, atol=1e-9)


@each("kernel", [ok.Gaussian(1.2), ok.Linear(), ok.AdditiveExponential(0.7)], ids=repr)
@each("step", [ok.Fixed(0.6), ok.InverseSqrt(2.0), META[0]], ids=repr)
@each("loss", [ok.Hinge(), ok.Squared(), ok.NuNovelty(0.3, 0.5), ok.MulticlassHinge(), ok.MulticlassLogistic()],
      ids=repr)
def test_the_average_of_ilk(loss, step, kernel):
    """By its definition: the mean of what f_1, ..., f_m say, offsets included."""
    answer = {"novelty": "score_samples", "regression": "predict"}.get(loss.task, "decision_function")
    for seed, regularization in enumerate([0.0, 0.2, 5.0]):
        X, y, _, rng = data(loss, seed, n=30)
        queries, params = rng.normal(size=(4, D)), dict(step=step, regularization=regularization,
                                                        offset=loss.task != "novelty")
        first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}}.get(loss.task, {})
        one = ok.ILK(loss, kernel, **params)
        total = 0.0
        for i in range(len(X)):
            if i:
                total = total + getattr(one, answer)(queries)
            one.partial_fit(X[i:i + 1], None if y is None else y[i:i + 1], **({} if i else first))
        model = ok.ILK(loss, kernel, average=True, **params)
        in_chunks(model, X, y, None, rng, **first)
        np.testing.assert_allclose(getattr(model, answer)(queries), total / len(X), rtol=1e-9, atol=1e-10)
