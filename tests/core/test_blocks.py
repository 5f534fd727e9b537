"""Blocks of an ensemble: all members are opened before the first of them learns, and learn the same rows, whatever
comes between."""
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest
from apart import run_apart
from faults import FAULTS, disturbed
from small_models import in_chunks, part

import onlinekernels as ok

RNG = np.random.default_rng(3)
N = 500
X = RNG.normal(size=(N, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
LATE = np.array(["one", "two", "three", "four"])[np.digitize(NUMBERS, [-0.5, 0.2, 0.9])]
LATE[:200][LATE[:200] == "three"] = "two"  # which joins in the middle of a block,
LATE[:333][LATE[:333] == "four"] = "one"  # as does this one
TWO = np.where(NUMBERS > 0, "yes", "no")
G = ok.Gaussian(0.7)


def near(x, z):
    """A kernel in Python."""
    return float(np.exp(-np.sum((x - z) ** 2)))


def picky(x, z):
    """One that refuses rows like the 250th."""
    if X[250, 0] in (x[0], z[0]):
        raise ValueError("not this row")
    return near(x, z)


class Own(ok.Loss):
    """A loss in Python, which calls a function for each row."""

    task = "regression"

    def __init__(self, look=None):
        self.look = look

    def derivative(self, score, y):
        if self.look is not None:
            self.look(y)
        return max(-1.0, min(1.0, score - y))


class OwnMany(ok.Loss):
    """One of many classes."""

    task = "multiclass"

    def __init__(self, look=None):
        self.look = look

    def derivative(self, scores, y):
        if self.look is not None:
            self.look(y)
        return np.clip(scores - np.where(np.arange(len(scores)) == y, 1.0, -1.0), -1.0, 1.0)


def refuse_the_250th(y):
    if y == NUMBERS[250]:
        raise ZeroDivisionError("no such target")


def numbers():
    return {"posterior": ok.KRLS("squared", G, budget=20, scale=True), "near": ok.Smoother("squared", scale=True),
            "line": ok.SILK("squared", "linear"), "width": ok.NORMA("squared", scale_target=True)}


def labels():
    return {"posterior": ok.KRLS("multiclass_squared", G, budget=20), "near": ok.Smoother("multiclass_squared", G),
            "line": ok.PassiveAggressive("multiclass_hinge", "linear"), "own": ok.NORMA(OwnMany(), G, budget=20),
            "softmax": ok.NORMA("multiclass_logistic", budget=20)}


def densities():
    return {"wide": ok.Smoother(ok.NuNovelty(0.05), ok.Gaussian(1.0)), "silk": ok.SILK(ok.NuNovelty(0.05), budget=50)}


#: name: (an ensemble, y, members that are disabled in the middle of a block)
KINDS = {
    "stacking": (lambda: ok.Stacking(numbers()), NUMBERS, []),
    "stacking several": (lambda: ok.Stacking(numbers(), n_jobs=2), np.column_stack([NUMBERS, 100 * X[:, 2]]), []),
    "stacking labels": (lambda: ok.Stacking(labels()), LATE, []),
    "stacking two": (lambda: ok.Stacking([ok.SILK("hinge"), ok.SILK("logistic"), ok.KRLS("multiclass_squared", G)]),
                     TWO, []),
    "stacking novelty": (lambda: ok.Stacking(densities()), None, []),
    "hedge": (lambda: ok.Hedge(numbers()), NUMBERS, []),
    "hedge labels": (lambda: ok.Hedge(labels()), LATE, []),
    "nested": (lambda: ok.Stacking({"all": ok.Hedge(numbers()), "front": ok.OnlineKernelRegressor("low"),
                                    "tuned": ok.SelfTuned(budget=20)}),
               NUMBERS, []),
    "nested labels": (lambda: ok.Hedge({"all": ok.Stacking(labels()), "front": ok.OnlineKernelClassifier("low")}), LATE,
                      []),
    "refused rows": (lambda: ok.Stacking({"picky": ok.NORMA("squared", picky, budget=20), **numbers()}, n_jobs=2),
                     NUMBERS, ["picky"]),
    "refused targets": (lambda: ok.Stacking({"own": ok.NORMA(Own(refuse_the_250th), G), **numbers()}, n_jobs=3),
                        NUMBERS, ["own"]),
    "refused labels": (lambda: ok.Hedge({"two": ok.SILK("hinge"), **labels()}), LATE, ["two"]),
    "refused inside": (lambda: ok.Stacking({"all": ok.Hedge({"picky": ok.NORMA("squared", picky, budget=20),
                                                             **numbers()}),
                                            "line": ok.SILK("squared", "linear")}), NUMBERS, []),
    "diverging": (lambda: ok.Stacking({"wild": ok.NORMA("squared", ok.Polynomial(3), step=0.2, regularization=0.0),
                                       **numbers()}),
                  NUMBERS, ["wild"]),
    "regressor": (lambda: ok.OnlineKernelRegressor("low"), NUMBERS, []),
    "classifier": (lambda: ok.OnlineKernelClassifier("low"), LATE, []),
    "detector": (lambda: ok.OnlineKernelDetector(0.1, "low"), None, []),
}


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
@pytest.mark.parametrize("name", KINDS)
def test_chunks_of_any_size_agree(name):
    make, y, disabled = KINDS[name]
    models = [make() for _ in range(3)]
    whole, *others = (in_chunks(X, model, y, size) for model, size in zip(models, (500, 37, 1), strict=True))
    for scores in others:
        assert np.allclose(scores, whole, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(whole[20:]).max()))
    for model in models:
        model._state.backend._check()
        assert model.t_ == N and list(model.disabled_) == disabled
        ages = [[member.t for member in one._state.backend.members] for one in (model, models[0])]
        assert ages[0] == ages[1]
        assert model.disabled_ == models[0].disabled_
    if disabled:
        assert 0 < models[0].named_members_[disabled[0]].t_ < N
    if name != "stacking novelty" and y is not None:
        assert models[2].errors_ == pytest.approx(models[0].errors_, rel=1e-4)


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
@pytest.mark.skipif("allocation" not in FAULTS, reason="needs NumPy 2")
@pytest.mark.parametrize("name", KINDS)
def test_a_block_that_is_refused_memory_changes_nothing(name):
    """At the k-th allocation: members, transforms and the combiner are as they were, or all one block further."""
    make, y, _ = KINDS[name]
    first, last = slice(0, 240), slice(240, 260)  # the 250th row disables some
    counted = FAULTS["allocation"](None)
    learned = make().partial_fit(X[first], part(y, first))
    kept = pickle.dumps(learned)
    after = pickle.loads(kept)
    disturbed(counted, lambda: after.partial_fit(X[last], part(y, last)))
    scores, struck = after._state.backend.scores(after._member_row(after._state, X[0]))[0], 0
    for place in range(1, counted.seen + 1, max(1, counted.seen // 25)):
        model = pickle.loads(kept)
        try:
            disturbed(FAULTS["allocation"](place), lambda: model.partial_fit(X[last], part(y, last)))
        except MemoryError:
            struck += 1
        model._state.backend._check()
        begin = model.t_
        assert model.disabled_ in (learned.disabled_, after.disabled_)
        if begin == 240:
            assert np.array_equal(model.predict(X[:200]), learned.predict(X[:200]))
            assert model.disabled_ == learned.disabled_
        if begin < 260:
            model.partial_fit(X[begin:260], part(y, slice(begin, 260)))
        found = model._state.backend.scores(model._member_row(model._state, X[0]))[0]
        assert np.allclose(found, scores, rtol=1e-9, atol=1e-9) and model.disabled_ == after.disabled_
    assert struck > 3


@pytest.mark.parametrize("classes", [None, ["one", "two", "three", "four"]], ids=["as they come", "named"])
def test_labels_of_a_block_that_was_taken_back_come_in_another_order(classes):
    """What was opened with "three" before "four" is refused memory; then "four" comes first."""
    rows, y = X[:40], np.array(["one", "two"] * 20)
    refuses = {"at": False}

    def kernel(x, z):
        if refuses["at"]:
            raise MemoryError
        return near(x, z)

    def make():
        return ok.Stacking({**labels(), "kernel": ok.NORMA("multiclass_hinge", kernel, budget=5)})

    model, other = (make().partial_fit(rows, y, classes=classes) for _ in range(2))
    refuses["at"] = True
    with pytest.raises(MemoryError):
        model.partial_fit(X[40:44], ["three", "four", "three", "four"])
    refuses["at"] = False
    for some in (model, other):
        some.partial_fit(X[40:48], ["four", "three", "one", "four"] * 2)
        some._state.backend._check()
    assert list(model.classes_) == list(other.classes_)
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X)) and model.disabled_ == {}
    codes = [0, 1, 2, 3] if classes is None else [1, 3, 0, 2]  # as they came
    assert [member.label_codes for member in model._state.backend.members] == [codes] * 6


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("nested", [False, True])
def test_a_loss_that_looks_at_its_ensemble_and_two_signals(nested):
    """It may look at all that there is, from the thread that learns, and Ctrl-C ends it at once: nobody waits for
    anybody."""
    run_apart(f"""
        class Own(ok.Loss):
            task = "regression"
            def __init__(self):
                pass
            def derivative(self, score, y):
                seen.append((model.t_, model.weights_, model.errors_, model.named_members_["line"].t_))
                if len(seen) in (60, 61):
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(0.01)
                return max(-1.0, min(1.0, score - y))
        rng, seen = np.random.default_rng(0), []
        X = rng.normal(size=(300, 2))
        y = np.sin(X[:, 0])
        own = ok.NORMA(Own(), "gaussian", budget=9)
        model = ok.Stacking({{"own": ok.Hedge([own, ok.KRLS()]) if {nested} else own, "line": ok.KRLS(kernel="linear"),
        "near": ok.Smoother()}})
        interrupted = 0
        signal.alarm(60)
        while getattr(model, "t_", 0) < 300:
            begin = getattr(model, "t_", 0)
            try:
                model.partial_fit(X[begin:], y[begin:])
            except KeyboardInterrupt as error:
                interrupted += 1
                assert error.rows_learned == model.t_ - begin
            model._state.backend._check()
        assert 1 <= interrupted <= 2 and len(seen) == 302 and not model.disabled_, (interrupted, len(seen),
        model.disabled_)
        assert model.named_members_["near"].t_ == 300
    """)


def peak(call):
    """Bytes that a call needs beside what there was."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_scores_that_nobody_wants_take_no_memory():
    rows, labels = np.random.default_rng(0).normal(size=(4000, 2)), np.arange(4000) % 400
    members = [ok.PassiveAggressive("multiclass_hinge", "linear"), ok.NORMA("multiclass_hinge", "linear")]
    for model in (ok.Hedge(members), ok.Smoother("multiclass_squared", budget=20)):
        model.partial_fit(rows[:800], labels[:800])
        assert peak(lambda: model.partial_fit(rows, labels)) < rows.size * 400 * 8 / 2, model


def test_long_rows_are_for_lines():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 20_000)), rng.normal(size=60)
    for model, targets in ((ok.OnlineKernelRegressor(), y), (ok.OnlineKernelClassifier(), y > 0)):
        assert peak(lambda: model.partial_fit(rows, targets)) < 60 * 20_000 * 8 * 8
        assert all(name.startswith(("line", "logistic", "last target")) for name in model.named_members_)
        assert peak(lambda: model.learn_one(rows[0], targets[0])) < 20_000 * 8 * 40
        begin = time.process_time()
        model.learn_one(rows[1], targets[1])
        assert time.process_time() - begin < 0.1
        restored = pickle.loads(pickle.dumps(model))
        for each in (model, restored):
            each.partial_fit(rows[:20], targets[:20])
        np.testing.assert_array_equal(restored.predict(rows[:5]), model.predict(rows[:5]))
