"""Functions learned on partitions become one; a bank over workers is one bank."""
import os
import pickle
import signal
import time

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import Bank, combine
from onlinekernels.parallel import PartitionedBank
from onlinekernels.parallel.partitioned import part_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
TARGETS = np.sin(X[:, 0]) + X[:, 1]
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
NEW = RNG.normal(size=(20, 3))


def scores(model, points):
    return model.predict(points) if not hasattr(model, "decision_function") else model.decision_function(points)


def dot(x, z):
    return float(np.dot(x, z)) + 1.0


class TestCombine:
    @each("make, y, classes", [
        (lambda: ok.NORMA("squared", ok.Gaussian(1.5), step=0.3, offset=True), TARGETS, None),
        (lambda: ok.NORMA("squared", "linear"), TARGETS, None),
        (lambda: ok.NORMA("huber", "linear", average=True, offset=True), TARGETS, None),
        (lambda: ok.SILK("insensitive", ok.Polynomial(2), budget=None), TARGETS, None),
        (lambda: ok.ILK("hinge", ok.Laplacian(0.4)), LABELS, None),
        (lambda: ok.SVMD("logistic", budget=None), LABELS, None),
        (lambda: ok.NORMA("multiclass_hinge", step=0.3), CLASSES, [0, 1, 2]),
        (lambda: ok.NORMA("multiclass_logistic", "linear", offset=True), CLASSES, [0, 1, 2]),
        (lambda: ok.ILK("multiclass_hinge", exact=True), CLASSES, [0, 1, 2]),
        (lambda: ok.ILK("multiclass_squared", offset=True), CLASSES, [0, 1, 2]),
        (lambda: ok.NORMA("squared"), np.column_stack([TARGETS, -TARGETS]), None),
        (lambda: ok.Projection("insensitive", radius=2.0), TARGETS, None),
        (lambda: ok.NORMA("squared", dot, step=0.01), TARGETS, None),
    ])
    def test_it_is_the_weighted_mean_of_the_functions(self, make, y, classes):
        """No budget: nothing is dropped, so the mean is exact."""
        parts = [make().fit(X[i::3], y[i::3], classes=classes) for i in range(3)]
        before = pickle.dumps(parts) if make().kernel is not dot else None
        whole = combine(parts, weights=[1.0, 2.0, 5.0])
        expected = sum(w * scores(part, NEW) for w, part in zip([0.125, 0.25, 0.625], parts))
        np.testing.assert_allclose(scores(whole, NEW), expected, rtol=1e-9, atol=1e-11)
        assert before is None or pickle.dumps(parts) == before
        assert whole.t_ == sum(part.t_ for part in parts)
        whole.partial_fit(X, y)
        assert whole.t_ == 600

    def test_twice_a_model_is_that_model(self):
        """Room for the terms of all, whatever the budget; and the next example does not drop them as too old."""
        for budget in (None, 20, ok.Window(60), ok.Smallest(20), ok.Sublinear(0.6), ok.RandomRemoval(20),
                       ok.Redundant(20),
                       ok.Redundant(20, tighter=True), ok.Merging(20), ok.Projecting(20), ok.Shrinking(20)):
            makers = [(lambda: ok.Perceptron(ok.Gaussian(0.7), budget=budget), LABELS)]
            if type(budget) is not ok.Shrinking:
                many = {"loss": "multiclass_hinge", "kernel": ok.Gaussian(0.7), "step": 0.3, "offset": True,
                        "budget": budget}
                makers.append((lambda: ok.NORMA(**many), CLASSES))
            for make, y in makers:
                one = make().fit(X, y)
                both = combine([one, one])
                both._state.engine._check()
                np.testing.assert_allclose(both.decision_function(X), one.decision_function(X), rtol=1e-9, atol=1e-10)
                assert both.t_ == 600 and both.n_terms_ >= one.n_terms_
                before = both.n_terms_
                both.partial_fit(X[:1], y[:1])
                both._state.engine._check()
                assert both.n_terms_ >= before - 1
                assert type(pickle.loads(pickle.dumps(both)).budget) is type(one.budget) or budget in (None, 20)

    def test_the_result_has_a_budget_of_its_own(self):
        """A window is as long as after all examples; weights do not become terms."""
        linear = [ok.NORMA("squared", "linear").fit(X[i::2], TARGETS[i::2]) for i in range(2)]
        many = [ok.NORMA("multiclass_hinge", budget=ok.Projecting(9)).fit(X[i::2], CLASSES[i::2], classes=range(3))
                for i in range(2)]
        for parts, words in ((linear, "Terms. Got Weights"), (many, "Terms for pairs of labels. Got Terms")):
            with pytest.raises(ValueError, match=f"models must have .* representation of the result, {words} instead"):
                combine(parts, budget=99)
        parts = [ok.NORMA("squared").fit(X[i::2], TARGETS[i::2]) for i in range(2)]
        assert combine(parts, budget=ok.Sublinear(0.5)).n_terms_ == 18

    def test_smallest_keeps_the_largest_of_all(self):
        parts = [ok.SILK("squared", ok.Gaussian(), budget=30, step=0.4).fit(X[i::2], TARGETS[i::2]) for i in range(2)]
        whole = combine(parts, budget=30)
        every = np.abs(np.hstack([part.dual_coef_[0] / 2 for part in parts]))
        np.testing.assert_allclose(np.sort(np.abs(whole.dual_coef_[0])), np.sort(every)[-30:])
        assert combine(parts, budget=ok.Smallest(7)).n_terms_ == 7
        assert combine(parts).n_terms_ == 60 and combine(parts).budget.size == 60

    @each("models, message", [
        ([], "at least one"),
        ([ok.NORMA()], "must be fitted models"),
        ([ok.NORMA("squared").fit(X, TARGETS), ok.NORMA("squared", "laplacian").fit(X, TARGETS)], "same kernel"),
        ([ok.NORMA("squared").fit(X, TARGETS), ok.NORMA("huber").fit(X, TARGETS)], "same loss"),
        ([ok.NORMA("squared").fit(X, TARGETS), ok.NORMA("squared").fit(X[:, :2], TARGETS)], "same number of features"),
        ([ok.NORMA("squared").fit(X, TARGETS), ok.NORMA("squared", offset=True).fit(X, TARGETS)], "same offset"),
        ([ok.NORMA().fit(X, LABELS), ok.NORMA().fit(X, LABELS == "same")], "same classes"),
        ([ok.NORMA("squared", scale=True).fit(X, TARGETS)] * 2, "units of their own"),
        ([ok.NORMA("squared", scale_target=True).fit(X, TARGETS)] * 2, "units of their own"),
        ([ok.VotedPerceptron().fit(X, LABELS)] * 2, "VotedPerceptron cannot be combined"),
        ([ok.Adatron().fit(X, LABELS)] * 2, "Adatron cannot be combined"),
        ([ok.KRLS().fit(X, TARGETS)] * 2, "KRLS cannot be combined: its posterior"),
        ([ok.Forgetron().fit(X, LABELS)] * 2, "Forgetron cannot be combined.*Perceptron.budget=Shrinking"),
        ([ok.Projectron().fit(X, CLASSES)] * 2, "Projectron cannot be combined.*Perceptron.budget=Projecting"),
        ([ok.NORMA("squared", ok.AdditiveExponential()).fit(X, TARGETS)] * 2, "keep knots"),
    ])
    def test_what_cannot_be_combined(self, models, message):
        with pytest.raises(ValueError, match=message):
            combine(models)

    @each("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]])
    def test_weights_that_make_no_sense(self, weights):
        model = ok.NORMA("squared").fit(X, TARGETS)
        with pytest.raises(ValueError, match="weights must hold"):
            combine([model, model], weights=weights)

    def test_recent_keeps_the_latest_of_each(self):
        parts = [ok.NORMA("squared", budget=10).fit(X[i::2], TARGETS[i::2]) for i in range(2)]
        whole = combine(parts, budget=10)
        expected = np.concatenate([part.support_vectors_[-5:] for part in parts])
        assert {tuple(x) for x in whole.support_vectors_} == {tuple(x) for x in expected}


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.mark.filterwarnings("ignore")  # Dask's own
class TestPartitionedBank:
    KEYS = [f"sensor {i}" for i in RNG.integers(0, 23, size=300)]

    @each("loss, y", [("novelty", None), ("squared", TARGETS), ("hinge", LABELS)])
    @each("parts", [None, 3])
    def test_it_equals_one_bank(self, client, loss, y, parts):
        one = Bank(3, loss, budget=6)
        many = PartitionedBank(Bank(3, loss, budget=6), client, parts=parts)
        for rows in (slice(0, 5), slice(5, 100), slice(100, 300)):
            some, keys = None if y is None else y[rows], self.KEYS[rows]
            classes = ["other", "same"] if loss == "hinge" and rows.start == 0 else None
            assert (many.progressive(X[rows], some, keys=keys, classes=classes)
                    == one.progressive(X[rows], some, keys=keys, classes=classes)).all()
        assert (many.predict(X, keys=self.KEYS) == one.predict(X, keys=self.KEYS)).all()
        assert (many.scores(NEW, keys=["new"] * 20) == 0).all()
        whole = many.collect()
        whole._check()
        assert sorted(whole.keys_) == sorted(one.keys_)
        assert (whole.scores(X, keys=self.KEYS) == one.scores(X, keys=self.KEYS)).all()
        assert (whole.predict(X, keys=self.KEYS) == one.predict(X, keys=self.KEYS)).all()

    def test_a_refused_call_changes_nothing(self, client):
        many = PartitionedBank(Bank(3, "squared"), client).partial_fit(X, TARGETS, keys=self.KEYS)
        bad = TARGETS.copy()
        bad[7] = np.nan
        for arguments in ((X, bad, self.KEYS), (X, TARGETS[:9], self.KEYS), (X * np.inf, TARGETS, self.KEYS),
                          (X, TARGETS, None), (X, TARGETS, [[]] * 300), (X[:, :2], TARGETS, self.KEYS)):
            with pytest.raises((ValueError, TypeError)):
                many.partial_fit(*arguments)
        assert many.collect().t_.sum() == 300

    @each("loss, y", [("novelty", None), ("hinge", LABELS)])
    def test_a_checkpoint_goes_on_with_any_number_of_parts(self, client, tmp_path, loss, y):
        one, many = Bank(3, loss, budget=6), PartitionedBank(Bank(3, loss, budget=6), client)
        many.save(tmp_path / loss)  # of nothing
        assert PartitionedBank.load(tmp_path / loss, client).n_rows_ == 0
        for end in (100, 200):
            rows = slice(end - 100, end)
            for bank in (one, many):
                bank.partial_fit(X[rows], None if y is None else y[rows], keys=self.KEYS[rows])
            many.save(tmp_path / loss)
        assert len(list((tmp_path / loss).iterdir())) == 2  # the last one, and its name
        many.partial_fit(X[:9], None if y is None else y[:9], keys=self.KEYS[:9])
        rows = slice(200, 300)
        expected = one.progressive(X[rows], None if y is None else y[rows], keys=self.KEYS[rows])
        for parts in (None, 3):
            again = PartitionedBank.load(tmp_path / loss, client, parts)
            assert (again.n_rows_, again.parts) == (200, parts or 2)
            assert (again.progressive(X[rows], None if y is None else y[rows], keys=self.KEYS[rows]) == expected).all()
            assert (again.predict(X, keys=self.KEYS) == one.predict(X, keys=self.KEYS)).all()

    def test_an_error_says_whose_it_is(self, client, tmp_path, monkeypatch):
        """The folder of a part that is full, say; that is not a worker which was lost."""
        def full(bank, path):
            raise OSError(28, "No space left on device")

        many = PartitionedBank(Bank(3, "novelty", budget=6), client, parts=3).partial_fit(X, keys=self.KEYS)
        monkeypatch.setattr(Bank, "save", lambda bank, path: full(bank, path) if "part00001" in path else None)
        with pytest.raises(OSError, match="No space left on device") as caught:
            many.save(tmp_path)
        notes = getattr(caught.value, "__notes__", map(str, caught.value.args))
        assert caught.value.errno == 28 and "part 1 of 3" in "".join(notes)
        monkeypatch.undo()
        many.save(tmp_path)
        assert PartitionedBank.load(tmp_path, client).n_rows_ == many.n_rows_ == 300


def die_half_way(bank, rows, *arguments, keys, **keywords):
    """In place of `Bank.partial_fit`: half of the rows are learned when the process is gone."""
    half = len(rows) // 2
    bank.progressive(rows[:half], keys=keys[:half])
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_loses_nothing_that_was_saved(tmp_path):
    """A process is killed in the middle of a call; the bank goes on from the checkpoint, to the bit."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    keys = np.arange(300) % 23
    one = Bank(3, "novelty", budget=6).partial_fit(X, keys=keys)

    def same(bank, other, folder=tmp_path):
        """Whether two banks have the same bits."""
        for name, which in (("a", bank), ("b", other)):
            which.save(folder / f"{name}.npz")
        with np.load(folder / "a.npz") as a, np.load(folder / "b.npz") as b:
            return all((a[name] == b[name]).all() for name in {*a.files, *b.files})

    local = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # Dask tries for 30 s to reach a worker that has died before it was missed.
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}), distributed.LocalCluster(**local) as cluster:
        with distributed.Client(cluster, direct_to_workers=True) as client:
            many = PartitionedBank(Bank(3, "novelty", budget=6), client)
            many.partial_fit(X[:100], keys=keys[:100])
            many.save(tmp_path / "bank")
            kept = many.collect()
            victim = many._actors[1]._address
            client.run(setattr, Bank, "partial_fit", die_half_way, workers=[victim])
            with pytest.raises(OSError, match="A worker was lost.*part 1 of 2"):
                many.partial_fit(X[100:], keys=keys[100:])
            while victim in client.scheduler_info(n_workers=-1)["workers"]:
                time.sleep(0.05)
            for call in (lambda: many.save(tmp_path / "bank"), lambda: many.scores(X, keys=keys)):
                with pytest.raises(OSError, match="A worker was lost"):
                    call()
            again = PartitionedBank.load(tmp_path / "bank", client)
            assert again.n_rows_ == 100 and same(again.collect(), kept)
            again.partial_fit(X[100:], keys=keys[100:])
            assert (again.scores(X, keys=keys) == one.scores(X, keys=keys)).all()
        with pytest.raises(OSError, match="or the client was closed"):
            again.scores(X, keys=keys)


class TestPartOf:
    def test_equal_keys_have_one_part_in_every_form(self):
        for parts in (1, 2, 3, 7, 70_000):
            numbers = np.array([0, 1, -1, -2, 5, 2**40, -(2**40), 2**62, -(2**62)])
            expected = part_of(numbers.tolist(), parts)
            assert (part_of(numbers, parts) == expected).all()
            assert (part_of(numbers[:-2].astype(float).tolist(), parts) == expected[:-2]).all()
            assert (part_of([True, 1, 1.0], parts) == part_of(np.array([1, 1, 1], dtype=np.uint8), parts)).all()

    def test_it_is_the_same_in_another_process(self):
        import subprocess
        import sys

        keys = ["hall", b"hall", ("a", 1, ("b", None)), None, 2.5, -1, 10**30, "\ud800"]
        code = f"from onlinekernels.parallel.partitioned import part_of; print(part_of({keys!r}, 1000).tolist())"
        for seed in ("1", "2"):
            said = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PATH": ""},
                                  capture_output=True, text=True)
            assert said.stdout.strip() == str(part_of(keys, 1000).tolist())
