"""Many outputs, implicit steps and step-size adaptation against their oracle, every budget, any chunking."""
import itertools

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each
from reference_outputs import (
    LabelSet,
    ReferenceAdaptiveILK,
    ReferenceILK,
    ReferenceMulti,
    ReferenceSVMD,
    delta,
    label_graph,
    passive_aggressive,
    taxonomy,
)
from test_oracle import BUDGETS, LOSSES, describe, in_chunks, shared_sign

N, D = 40, 3
# Some settings diverge; the library and the oracle then do so together.
pytestmark = pytest.mark.filterwarnings("ignore:Learning (diverges|has stalled):onlinekernels.LearningWarning")
NAMES = ["a", "b", "c", "d", "e"]
PARENTS = {"a": "v", "b": "v", "c": "w", "d": "w", "v": "root", "w": "root", "e": "root"}
EDGES = [("a", "b", 0.5), ("b", "c", 1.0), ("c", "d", 0.25), ("d", "e", 2.0), ("e", "a", 1.5)]
FEATURES = np.random.default_rng(9).normal(size=(5, 3))
OWN = LabelSet(NAMES, FEATURES @ FEATURES.T, np.abs(np.subtract.outer([0.0, 0.3, 1.0, 1.2, 2.0], [0.0, 0.5, 1.0, 1.7, 2.0]) * (1 - np.eye(5))))
STRUCTURES = {
    "delta": (None, delta(NAMES)),
    "taxonomy": (ok.Taxonomy(PARENTS), taxonomy(PARENTS, ["a", "b", "c", "d", "e"])),
    "graph": (ok.LabelGraph(EDGES), label_graph(EDGES, NAMES)),
    "own": (ok.Labels(NAMES, OWN.Delta, OWN.kappa), OWN),
}
MULTI = [
    ok.MulticlassHinge(0.8),
    ok.NuMulticlassHinge(0.2, 0.6, None),
    ok.NuMulticlassHinge(0.2, 0.6, 0.2),
    ok.MulticlassLogistic(),
    ok.MulticlassSquared(),
    ok.GraphHinge(),
    ok.NuGraphHinge(0.3, 0.7, None),
    ok.NuGraphHinge(0.3, 0.7, 0.1),
]
STEPS = [ok.Fixed(0.2), ok.InverseSqrt(0.4), ok.Decaying(0.3, 5)]
META = [ok.MetaDescent(0.2, 0.3, 0.9), ok.MetaDescent(0.3, 0.1, 0.0), ok.MetaDescent(0.1, 0.5, 1.0)]
OWN_META = [ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.2, 0.05, 0.5), margin_step=ok.MetaDescent(1.0, 0.7, 0.2)),
            ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.2, 0.3, 0.0), margin_step=ok.MetaDescent(1.0, 0.0, 0.9)),
            ok.MetaDescent(0.2, 0.3, 0.9, offset_step=ok.MetaDescent(0.05), margin_step=ok.MetaDescent(0.4, 0.3, 0.9))]


def data(loss, seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[rng.random(n) < 0.1] = X[0]
    y = {
        "binary": rng.choice([-1, 1], n),
        "multiclass": rng.choice(NAMES, n),
        "regression": rng.normal(size=n),
        "novelty": None,
    }[loss.task]
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
    oracle = ReferenceMulti(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.05,
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
        oracle = ReferenceMulti(step=("Fixed", {"rate": 0.2}), regularization=0.05, **shared)
    elif algorithm == "ilk":
        model = ok.ILK(loss, kernel, step=0.5, regularization=0.05, offset=offset)
        oracle = ReferenceILK(step=("Fixed", {"rate": 0.5}), regularization=0.05, **shared)
    else:
        model = ok.NORMA(loss, kernel, step=META[0], regularization=0.05, offset=offset)
        oracle = ReferenceSVMD(step=describe(META[0]), regularization=0.05, **shared)
    scores, start = np.zeros((len(X), 5)), 0
    while start < len(X):
        stop = start + int(rng.choice([1, 3, 10]))
        part = model.progressive(X[start:stop], y[start:stop])
        scores[start:stop, : part.shape[1]] = part
        start = stop
    expected = oracle.run(X, y)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-10)
    assert model.classes_.tolist() == list(dict.fromkeys(y.tolist()))


def no_such_ilk(loss, structure, exact, offset, **_):
    """An exact step over all labels, and losses of all labels, need the delta kernel between them."""
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
@each("offset", [False, True])
def test_svmd(loss, structure, kernel, step, offset):
    labels, reference_labels = STRUCTURES[structure]
    seed = seed_of(([*META, *OWN_META], step), ([False, True], offset), ([*LOSSES, *MULTI], loss))
    step = suited(step, loss, offset)
    model = ok.NORMA(loss, kernel, step=step, regularization=0.2, offset=offset, labels=labels)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceSVMD(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.2,
                           offset=offset, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)
    engine = model._state.hypothesis
    np.testing.assert_allclose(model.step_, oracle.step_history[-1], rtol=1e-9)
    # <f, v> and |f|^2 by recurrence equal the naive double sums
    np.testing.assert_allclose(engine.norms(), (oracle.inner("alpha", "beta"), oracle.inner("alpha", "alpha")),
                               rtol=1e-9, atol=1e-9)


@each("loss", [ok.Hinge(), ok.Logistic(), ok.Squared(), ok.NuNovelty(0.3, 0.5), ok.MulticlassHinge(),
               ok.MulticlassLogistic(), ok.MulticlassSquared()], ids=repr)
@each("budget", BUDGETS[1:], ids=repr)
def test_svmd_with_budgets(loss, budget):
    for seed in range(2):
        model = ok.NORMA(loss, ok.Gaussian(1.2), step=META[0], regularization=0.2, budget=budget)
        extra = {"labels": STRUCTURES["delta"][1]} if loss.task == "multiclass" else {}
        oracle = ReferenceSVMD(loss=describe(loss), kernel=("Gaussian", {"width": 1.2}), step=describe(META[0]),
                               regularization=0.2, budget=describe(budget), **extra)
        compare(model, oracle, loss, seed)


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


ADAPTED = [*META, ok.MetaDescent(0.2, 0.3, 0.9, margin_step=ok.MetaDescent(0.4, 0.7, 0.2))]
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
    model = ok.ILK(loss, kernel, step=step, regularization=0.3, penalty=0.7, budget=budget, offset=offset, labels=labels)
    extra = {"labels": reference_labels} if loss.task == "multiclass" else {}
    oracle = ReferenceAdaptiveILK(loss=describe(loss), kernel=describe(kernel), step=describe(step), regularization=0.3,
                                  penalty=0.7, budget=describe(budget), offset=offset, **extra)
    compare(model, oracle, loss, seed, structure, weighted=seed % 3 == 0)
    np.testing.assert_allclose(model.step_, oracle.step_history[-1], rtol=1e-9)
    np.testing.assert_allclose(model._state.hypothesis.norms(), (oracle.fv, oracle.ff), rtol=1e-8, atol=1e-9)


def test_adapted_implicit_steps_that_do_not_adapt_are_those_of_ilk():
    for loss, offset in itertools.product([ok.Hinge(), ok.Logistic(), ok.NuInsensitive(0.3), ok.MulticlassHinge(),
                                           ok.MulticlassLogistic()], [False, True]):
        X, y, weights, _ = data(loss, 5)
        fixed = ok.ILK(loss, ok.Gaussian(1.2), step=0.7, regularization=0.1, offset=offset)
        meta = ok.ILK(loss, ok.Gaussian(1.2), step=ok.MetaDescent(0.7, 0.0), regularization=0.1, offset=offset)
        np.testing.assert_allclose(meta.progressive(X, y, sample_weight=weights),
                                   fixed.progressive(X, y, sample_weight=weights), rtol=1e-10, atol=1e-12)


def test_two_targets_adapt_one_implicit_step():
    for loss, offset in itertools.product([ok.Squared(), ok.Absolute(), ok.Insensitive(0.2), ok.Huber(0.5)], [False, True]):
        X, y, _, _ = data(loss, 6)
        one = ok.ILK(loss, step=ok.MetaDescent(0.3, 0.2, 0.9), regularization=0.1, offset=offset)
        two = ok.ILK(loss, step=ok.MetaDescent(0.3, 0.1, 0.9), regularization=0.1, offset=offset)
        expected, steps = one.progressive(X, y, return_steps=True)
        scores, same_steps = two.progressive(X, np.column_stack([y, y]), return_steps=True)     # twice the loss, half of mu
        np.testing.assert_allclose(same_steps, steps, rtol=1e-9)
        np.testing.assert_allclose(scores, np.column_stack([expected, expected]), rtol=1e-9, atol=1e-11)
        assert len(np.unique(steps)) > 5


@each("kernel", [ok.Gaussian(1.2), ok.Linear(), ok.AdditiveExponential(0.7)], ids=repr)
@each("step", [ok.Fixed(0.6), ok.InverseSqrt(2.0), META[0]], ids=repr)
@each("loss", [ok.Hinge(), ok.Squared(), ok.NuNovelty(0.3, 0.5), ok.MulticlassHinge(), ok.MulticlassLogistic()],
      ids=repr)
def test_the_average_of_ilk(loss, step, kernel, tmp_path):
    """By its definition: the mean of what f_1, ..., f_m say, offsets included."""
    for seed, regularization in enumerate([0.0, 0.2, 5.0]):
        X, y, _, rng = data(loss, seed, n=30)
        queries, params = rng.normal(size=(4, D)), dict(step=step, regularization=regularization, offset=loss.task != "novelty")
        first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}}.get(loss.task, {})
        one = ok.ILK(loss, kernel, **params)
        total = 0.0
        for i in range(len(X)):
            if i:
                total = total + (one.score_samples if loss.task == "novelty" else one.predict if loss.task == "regression"
                                 else one.decision_function)(queries)
            one.partial_fit(X[i:i + 1], None if y is None else y[i:i + 1], **({} if i else first))
        model = ok.ILK(loss, kernel, average=True, **params)
        in_chunks(model, X, y, None, rng, **first)
        answer = {"novelty": "score_samples", "regression": "predict"}.get(loss.task, "decision_function")
        np.testing.assert_allclose(getattr(model, answer)(queries), total / len(X), rtol=1e-9, atol=1e-10)
        model.save(tmp_path / "m.npz")
        np.testing.assert_array_equal(getattr(ok.load(tmp_path / "m.npz"), answer)(queries), getattr(model, answer)(queries))
    with pytest.raises(ValueError, match="average"):
        ok.ILK(loss, kernel, average=True, budget=10).fit(X, y)


def test_svmd_is_norma_with_meta_descent_and_its_step_history_is_readable():
    X, y, _, _ = data(ok.Hinge(), 0)
    svmd = ok.SVMD(ok.Hinge(), ok.Gaussian(), step=0.2, meta_step=0.3, memory=0.9, regularization=0.05, budget=None)
    norma = ok.NORMA(ok.Hinge(), ok.Gaussian(), step=ok.MetaDescent(0.2, 0.3, 0.9), regularization=0.05)
    scores, steps = svmd.progressive(X, y, return_steps=True)
    np.testing.assert_array_equal(scores, norma.progressive(X, y))
    assert steps.shape == (N,) and steps[-1] == svmd.step_
    assert len(np.unique(steps)) > 5


@each("variant", ["PA", "PA-I", "PA-II"])
@each("loss", [ok.Hinge(), ok.Insensitive(0.2), ok.MulticlassHinge()], ids=repr)
@each("offset", [False, True])
def test_passive_aggressive(variant, loss, offset):
    for seed in range(3):
        X, y, _, rng = data(loss, seed)
        first = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": NAMES}}.get(loss.task, {})
        extra = {"labels": NAMES} if loss.task == "multiclass" else {}
        for kernel in (ok.Gaussian(1.2), ok.Linear()):
            model = ok.PassiveAggressive(loss, kernel, penalty=0.3, variant=variant, offset=offset)
            scores = in_chunks(model, X, y, None, rng, **first)
            expected, terms, b = passive_aggressive(variant, loss=describe(loss), kernel=describe(kernel), X=X, y=y,
                                                    penalty=0.3, offset=offset, **extra)
            np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(model.intercept_, b, rtol=1e-9, atol=1e-9)


def test_ilk_without_regularization_is_pa_one():
    X, y, _, _ = data(ok.Hinge(), 3)
    for kernel in (ok.Gaussian(), ok.Linear()):
        ilk = ok.ILK(ok.Hinge(), kernel, step=1.0, regularization=0.0, penalty=0.4)
        pa = ok.PassiveAggressive(ok.Hinge(), kernel, penalty=0.4)
        np.testing.assert_array_equal(ilk.progressive(X, y), pa.progressive(X, y))


def test_ilk_with_a_linear_kernel_is_the_passive_aggressive_update_on_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.choice([-1, 1], 300)
    w, C = np.zeros(5), 0.3
    for x, label in zip(X, y):
        w = w + min(C, max(0.0, 1 - label * (w @ x)) / (x @ x)) * label * x
    model = ok.ILK(ok.Hinge(), ok.Linear(), step=1.0, regularization=0.0, penalty=C, offset=False).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")
def test_many_labels_are_comfortable():
    """4656 labels of a taxonomy and 1024 terms: pairs, not rows of 4656 numbers."""
    rng = np.random.default_rng(0)
    paths = [f"{a}/{b}/{c}" for a in range(8) for b in range(20) for c in range(30)][:4656]
    tree = ok.Taxonomy.from_paths(paths)
    X, y = rng.normal(size=(1300, 20)), rng.choice(paths, 1300)
    model = ok.SILK(ok.GraphHinge(), ok.Gaussian(3.0), budget=1024, labels=tree)
    model.partial_fit(X, y)
    assert model.n_terms_ == 1024
    assert sum(array.nbytes for array in model._state.hypothesis.state().values() if hasattr(array, "nbytes")) < 2e6
    scores = model.decision_function(X[:3])
    assert scores.shape == (3, 4656)
    kappa_rows = np.array([[tree.kernel(a, b) for b in paths[:40]] for a in paths[:5]])
    coefficients = model.dual_coef_
    K = ok.Gaussian(3.0)(X[:3], model.support_vectors_)
    outputs = tree.outputs()
    naive = np.array([outputs.kappa_times(coefficients @ k) for k in K])
    np.testing.assert_allclose(scores, naive, rtol=1e-9, atol=1e-9)
    assert kappa_rows[0, 0] == 4.0                      # root, two inner nodes, itself


def test_a_new_step_starts_the_adaptation_of_offsets_anew():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    model = ok.SVMD("hinge", offset=True, step=0.1).partial_fit(X, np.sign(X[:, 0]))
    model.set_params(step=0.5, meta_step=0.0).partial_fit(X[:1], [1.0])
    assert model.step_ == 0.5 and (model._state.hypothesis.rule.offset_steps["eta"] == 0.5).all()


def test_a_form_refuses_a_rule_that_does_not_serve_it():
    from onlinekernels._core.functions import Outputs
    from onlinekernels._core.rules import Aggressive, AllLabels, Ball, Gradient, LabelPair, OneOutput, Targets

    step, outputs = (0, 1.0, 0.0, 0.0, 0.0), Outputs(3)
    rules = (Gradient(step, regularization=0.0), Aggressive(step, penalty=1.0), Ball(step, radius=1.0))
    for rule in rules:
        for form in (OneOutput, Targets, LabelPair, AllLabels):
            if form.__name__ in rule.forms:
                assert form(rule, outputs).rule is rule
            else:
                with pytest.raises(ValueError, match=f"{type(rule).__name__} knows no moves of the kind {form.__name__}"):
                    form(rule, outputs)
    assert [len(rule.forms) for rule in rules] == [4, 3, 1]


# ---- The steps of SVMD --------------------------------------------------------------------------------------


def test_rates_of_offset_and_margin_start_anew_if_they_change(tmp_path):
    loss = ok.NuHinge(0.3, 0.5, None)
    X, y, *_ = data(loss, 5)
    model = ok.SVMD(loss, ok.Gaussian(1.2), offset=True, offset_step=ok.MetaDescent(0.05), margin_step=ok.MetaDescent(0.4))
    model.partial_fit(X[:30], y[:30])
    model.save(tmp_path / "model.ok")
    again = ok.load(tmp_path / "model.ok")
    for one in (model, again):
        one.partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)
    before = model._state.hypothesis.state()
    model.set_params(meta_step=0.0, offset_step=ok.MetaDescent(0.2, 0.0), margin_step=ok.MetaDescent(0.6, 0.0)).partial_fit(X[:1], y[:1])
    after = model._state.hypothesis.state()
    assert after["eta"] == before["eta"] and after["offset_eta"] == [0.2] and after["scalar_eta"] == 0.6


@each("name", ["offset_step", "margin_step"])
@each("step, words", [
    (0.1, r"MetaDescent\(rate, meta_rate, memory\) or None"), (ok.Fixed(0.1), r"MetaDescent\(rate, meta_rate, memory\) or None"),
    (ok.MetaDescent(per_feature=True), r"MetaDescent\(rate, meta_rate, memory\) or None"),
    (ok.MetaDescent(margin_step=ok.MetaDescent()), r"MetaDescent\(rate, meta_rate, memory\) or None"),
    (ok.MetaDescent(0.0), "'rate' parameter of MetaDescent"), (ok.MetaDescent(memory=2.0), "'memory' parameter of MetaDescent"),
], ids=repr)
def test_steps_of_offsets_and_margin_that_make_no_sense(name, step, words):
    loss = ok.NuHinge(0.3, 0.5, None)
    for model in (ok.SVMD(loss, offset=True, **{name: step}),
                  ok.NORMA(loss, step=ok.MetaDescent(**{name: step}), offset=True)):
        with pytest.raises(ValueError, match=words):
            model.fit([[0.0], [1.0]], [1, -1])


@each("loss, has", [(ok.NuHinge(), "margin_step=0.1 of its own"), (ok.NuHinge(margin_step="log"), "margin_step='log' of its own"),
                    (ok.Hinge(), "nothing that adapts")], ids=repr)
def test_a_margin_has_one_step(loss, has):
    step = ok.MetaDescent(0.1, 0.1, 0.9)
    for model in (ok.SVMD(loss, margin_step=step), ok.ILK(loss, step=ok.MetaDescent(margin_step=step))):
        with pytest.raises(ValueError, match=f"is for a nu-loss with margin_step=None. Got .*, which has {has}"):
            model.fit([[0.0], [1.0]], [1, -1])


def test_the_step_of_offsets_is_for_explicit_steps_with_an_offset():
    step = ok.MetaDescent(0.1, 0.1, 0.9)
    for offset in (False, None):  # for a Gaussian kernel, None is False
        with pytest.raises(ValueError, match="offset_step of MetaDescent is for a model with offset=True"):
            ok.SVMD("hinge", "gaussian", offset=offset, offset_step=step).fit([[0.0], [1.0]], [1, -1])
    with pytest.raises(ValueError, match="offset_step of MetaDescent is for explicit steps"):
        ok.ILK("hinge", step=ok.MetaDescent(offset_step=step), offset=True).fit([[0.0], [1.0]], [1, -1])
