"""A bank is as many separate models, to rounding: learned one by one, they are the oracle."""
import copy
import functools
import os
import pickle
import sys

import numpy as np
import pytest
from cases import each
from faults import FAULTS, Call

import onlinekernels as ok
from onlinekernels import Bank
from onlinekernels._core.formulas import vectorized
import onlinekernels.bank as module_of_bank

BINARY = ["hinge", "nuhinge", "logistic"]
REGRESSION = ["squared", "absolute", "quantile", "insensitive", "nuinsensitive", "squaredinsensitive", "huber",
              "nuhuber"]
NOVELTY = ["novelty", "nunovelty"]
ALGORITHMS = {"silk": ok.SILK, "norma": ok.NORMA}


def targets(loss, X, rng):
    if loss in NOVELTY:
        return None
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=len(X))
    return np.where(y > 0, 1, -1) if loss in BINARY else y


def some(array, rows):
    return None if array is None else array[rows]


def alone(rule, loss, kernel, **params):
    """The ordinary model that a bank's models must equal."""
    params = {name: value for name, value in params.items() if value is not None}
    return ALGORITHMS[rule](loss, kernel, **params)


class Separately:
    """One ordinary model for each key, in a dict: the slow bank."""

    def __init__(self, make):
        self.make, self.models = make, {}

    def progressive(self, X, y, keys):
        scores = np.empty(len(X))
        for i, key in enumerate(keys):
            model = self.models.setdefault(key, self.make())
            scores[i] = model.progressive(X[i:i + 1], some(y, slice(i, i + 1)))[0]
        return scores


def random_case(seed):
    """Everything that matters about a bank, at random."""
    rng = np.random.default_rng(seed)
    rule = rng.choice(["silk", "norma"])
    loss = rng.choice(BINARY + REGRESSION + NOVELTY)
    budget = int(rng.choice([1, 2, 5, 17, 64]))
    params = {
        "budget": rng.choice([budget, ok.Recent(budget), ok.Smallest(budget)]),
        "step": rng.choice([None, 0.3, ok.InverseSqrt(0.5), ok.Decaying(0.4, 5.0)]),
        "regularization": rng.choice([None, 0.0, 0.05, 1.0]),
        "offset": bool(loss not in NOVELTY and rng.random() < 0.4),
    }
    if rule == "silk":
        params["penalty"] = rng.choice([None, 0.2, 3.0])
    kernel = ok.Gaussian(rng.choice([0.3, 1.0])) if rng.random() < 0.6 else ok.Linear()
    if loss in ("squared", "squaredinsensitive") and rule == "norma":
        params["step"] = 0.05  # larger ones diverge with the linear kernel
    return rng, rule, str(loss), kernel, params


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")  # random steps may be too large; a bank does not tell
class TestEqualToSeparateModels:
    @each("seed", range(60))
    def test_by_key(self, seed):
        rng, rule, loss, kernel, params = random_case(seed)
        d, n_keys, n = int(rng.integers(1, 6)), int(rng.integers(1, 40)), 400
        X = rng.normal(size=(n, d)) + rng.choice([0.0, 3.0])
        y = targets(loss, X, rng)
        keys = rng.integers(0, n_keys, size=n) * 7 - 3
        bank = Bank(d, loss, kernel, rule=rule, threads=int(rng.integers(1, 4)), **params)
        slow = Separately(lambda: alone(rule, loss, kernel, **params))
        begin = 0
        while begin < n:
            rows = slice(begin, begin + int(rng.integers(1, 150)))
            classes = [-1, 1] if loss in BINARY else None
            fast = bank.progressive(X[rows], some(y, rows), keys=keys[rows], classes=classes)
            np.testing.assert_allclose(fast, slow.progressive(X[rows], some(y, rows), keys[rows]), rtol=1e-8, atol=1e-9)
            begin = rows.stop
        bank._check()
        assert bank.keys_ == list(dict.fromkeys(keys.tolist()))
        assert bank.t_.tolist() == [slow.models[key].t_ for key in bank.keys_]
        assert bank.n_terms_.tolist() == [slow.models[key].n_terms_ for key in bank.keys_]
        np.testing.assert_allclose(bank.intercept_, [slow.models[key].intercept_[0] for key in bank.keys_], atol=1e-9)

    @each("seed", range(40))
    def test_by_number_with_a_mask(self, seed):
        rng, rule, loss, kernel, params = random_case(1000 + seed)
        d, n_models = int(rng.integers(1, 5)), int(rng.integers(1, 50))
        bank = Bank(d, loss, kernel, n_models=n_models, rule=rule, **params)
        slow = Separately(lambda: alone(rule, loss, kernel, **params))
        for _ in range(25):
            X, active = rng.normal(size=(n_models, d)), rng.random(n_models) < 0.7
            y, rows, expected = targets(loss, X, rng), np.flatnonzero(active), np.full(n_models, np.nan)
            expected[rows] = slow.progressive(X[rows], some(y, rows), rows.tolist())
            X[~active] = np.nan
            if loss in REGRESSION:
                y[~active] = np.inf
            scores = bank.progressive(X, y, active=active, classes=[-1, 1] if loss in BINARY else None)
            np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-9)
        bank._check()
        assert bank.t_.tolist() == [getattr(slow.models.get(m), "t_", 0) for m in range(n_models)]

    @each("seed", range(40))
    def test_a_model_taken_out_continues_identically(self, seed):
        rng, rule, loss, kernel, params = random_case(2000 + seed)
        X = rng.normal(size=(300, 3)) + rng.choice([0.0, 40.0])
        y = targets(loss, X - X.mean(axis=0), rng)
        keys = rng.choice(["a", "b", "c"], size=300)
        bank = Bank(3, loss, kernel, rule=rule, **params).partial_fit(X[:200], some(y, slice(200)), keys=keys[:200])
        for key in "abc":
            model = bank.model(key)
            model._state.engine._check()
            rows = 200 + np.flatnonzero(keys[200:] == key)
            expected = copy.deepcopy(bank).progressive(X[rows], some(y, rows), keys=[key] * len(rows))
            size = np.abs(expected).max() + 1
            np.testing.assert_allclose(model.progressive(X[rows], some(y, rows)), expected, rtol=1e-7, atol=1e-8 * size)
            assert type(model) is ALGORITHMS[rule] and model.t_ == (keys == key).sum()

    def test_ties_go_by_age_however_long_the_stream(self):
        """Equal coefficients: the oldest goes. The clock of a model has 255 ticks and is set back in time."""
        X = np.random.default_rng(1).normal(size=(3000, 1))
        params = {"step": 0.01, "regularization": 0.0, "budget": ok.Smallest(7)}
        bank = Bank(1, ok.Novelty(50.0), ok.Gaussian(0.01), n_models=1, rule="norma", **params)
        model = ok.NORMA(ok.Novelty(50.0), ok.Gaussian(0.01), **params).fit(X)
        bank.partial_fit(X, keys=np.zeros(3000, dtype=int))
        np.testing.assert_allclose(bank.model(0).support_vectors_, X[-7:], rtol=1e-14)
        np.testing.assert_allclose(model.support_vectors_, X[-7:], rtol=1e-14)

    @each("dtype", [np.float32, np.float64])
    @pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
    def test_frames_fold_and_old_terms_fade(self, dtype):
        """0.1^t leaves the range of numbers within 38 or 308 steps."""
        X = np.random.default_rng(1).normal(size=(700, 1)).astype(dtype)
        params = {"step": 0.9, "regularization": 1.0, "budget": 5}
        bank = Bank(1, "squared", ok.Gaussian(1.0), n_models=1, rule="norma", **params)
        model = ok.NORMA("squared", ok.Gaussian(1.0), **params)
        y = np.cos(X[:, 0])
        zeros = np.zeros(700, dtype=int)
        np.testing.assert_allclose(bank.progressive(X, y, keys=zeros), model.progressive(X, y), rtol=1e-5)
        bank._check()
        # Then nothing but decay, while the margin is met; where f has faded to 0 it is not, and a term comes.
        still = Bank(1, ok.Hinge(0.0), ok.Gaussian(1.0), n_models=1, rule="norma", **params)
        scores = still.progressive(np.ones((900, 1), dtype=dtype), np.ones(900), keys=np.zeros(900, dtype=int))
        still._check()
        new = np.flatnonzero(scores == 0)
        least = np.finfo(dtype).tiny
        assert 1 < len(new) and (scores[new[1:] - 1] < 10 * least).all() and (scores >= 0).all()

    def test_threads_change_no_bit(self):
        rng = np.random.default_rng(5)
        banks = [Bank(3, "novelty", n_models=1000, threads=threads) for threads in (1, 3)]
        for _ in range(30):
            X = rng.normal(size=(1000, 3)).astype(np.float32)
            one, three = (bank.progressive(X) for bank in banks)
            assert (one == three).all()

    def test_what_was_learned_last_is_ordinary(self):
        """An implicit step ends at the margin, up to rounding."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 3))
        X *= (rng.uniform(1, 3, 400) / np.linalg.norm(X, axis=1))[:, None]
        bank = Bank(3, "novelty", ok.Linear(), rule="silk", regularization=0.0, step=1.0, penalty=100.0)
        bank.partial_fit(X, keys=np.arange(400))
        assert (bank.predict(X, keys=np.arange(400)) == 1).all()

    def test_predictions_are_those_of_the_models(self):
        rng = np.random.default_rng(5)
        X, keys = rng.normal(size=(300, 2)), rng.integers(0, 9, size=300)
        for loss in ("hinge", "squared", "novelty"):
            y = targets(loss, X, rng)
            if loss == "hinge":
                y = np.where(y > 0, "up", "down")
            bank = Bank(2, loss, budget=8).partial_fit(X, y, keys=keys)
            before = pickle.dumps(bank)
            answers = bank.predict(X, keys=keys)
            assert pickle.dumps(bank) == before
            expected = np.array([bank.model(key).predict(x[None])[0] for x, key in zip(X, keys)])
            assert np.allclose(answers, expected) if loss == "squared" else (answers == expected).all()


class TestKeys:
    def test_memory_doubles(self):
        rng = np.random.default_rng(0)
        bank = Bank(2, "squared", budget=3)
        sizes = []
        for i in range(0, 2000, 10):
            bank.partial_fit(rng.normal(size=(10, 2)), np.ones(10), keys=[("user", key) for key in range(i, i + 10)])
            sizes.append(bank._models.nbytes())
        bank._check()
        assert len(bank) == 2000 and len(set(sizes)) <= 9
        keys = sys.getsizeof(bank._index) + 2000 * 32
        assert (bank._models.nbytes() + keys) / 2000 < 2048  # what a key takes, the dictionary included
        assert ("user", 7) in bank and ("user", 2000) not in bank and bank.t_.tolist() == [1] * 2000

    def test_a_key_without_a_model_scores_like_a_new_one(self):
        bank = Bank(1, "novelty", penalty=2.0, regularization=0.0).partial_fit([[1.0]], keys=["a"])
        assert bank.scores([[1.0], [1.0]], keys=["a", "b"]).round(2).tolist() == [1.0, 0.0]
        assert bank.predict([[1.0], [1.0]], keys=["a", "b"]).tolist() == [1, -1]
        assert bank.keys_ == ["a"]

    def test_taking_and_joining(self):
        rng = np.random.default_rng(0)
        X, y, keys = rng.normal(size=(200, 2)), rng.normal(size=200), rng.integers(0, 20, size=200)
        whole = Bank(2, "squared", budget=4).partial_fit(X, y, keys=keys)
        left, right = whole.take(whole.keys_[:13]), whole.take(whole.keys_[13:])
        again = Bank.joined([left, right, Bank(2, "squared", budget=4)])
        for bank in (left, right, again):
            bank._check()
        assert again.keys_ == whole.keys_
        assert (again.progressive(X, y, keys=keys) == copy.deepcopy(whole).progressive(X, y, keys=keys)).all()
        left.partial_fit(X, y, keys=[whole.keys_[0]] * 200)
        assert whole.t_[0] + 200 == left.t_[0]
        with pytest.raises(ValueError, match="must not share keys"):
            Bank.joined([left, whole])
        with pytest.raises(ValueError, match="same parameters"):
            Bank.joined([left, Bank(2, "squared", budget=5).partial_fit(X[:1], y[:1], keys=["new"])])
        with pytest.raises(ValueError, match="at least one bank"):
            Bank.joined([])
        with pytest.raises(KeyError, match="no model for 'nobody'"):
            whole.take(["nobody"])
        with pytest.raises(ValueError, match="keys must differ"):
            whole.take([whole.keys_[0]] * 2)
        assert whole.take(key for key in whole.keys_[:2]).keys_ == whole.keys_[:2]


class TestFilesAndPickles:
    @each("params", [
        {"loss": "nunovelty"},
        {"loss": "hinge", "rule": "norma", "budget": 3, "offset": True, "step": ok.InverseSqrt(0.3)},
        {"loss": ok.Huber(0.3), "kernel": "linear", "budget": ok.Recent(5), "regularization": 0.1},
    ], ids=["novelty", "hinge", "huber"])
    @each("dtype", [np.float32, np.float64])
    @each("again", ["file", "pickle", "deepcopy", "copy"])
    def test_it_continues_bit_for_bit(self, params, dtype, again, tmp_path):
        rng = np.random.default_rng(4)
        X, keys = rng.normal(size=(600, 3)).astype(dtype), rng.choice(["x", "y", "z", 7], size=600).tolist()
        y = np.where(X[:, 0] > 0, "p", "n") if params["loss"] == "hinge" else X[:, 0].astype(float)
        bank = Bank(3, **params).partial_fit(X[:400], y[:400], keys=keys[:400])
        if again == "file":
            bank.save(tmp_path / "bank")
            twin = (Bank.load if dtype is np.float32 else ok.load)(tmp_path / "bank.npz")
        else:
            twin = pickle.loads(pickle.dumps(bank)) if again == "pickle" else getattr(copy, again)(bank)
        twin._check()
        before = pickle.dumps(bank)
        values = twin.progressive(X[400:], y[400:], keys=keys[400:])
        assert pickle.dumps(bank) == before
        assert (values == bank.progressive(X[400:], y[400:], keys=keys[400:])).all()
        mine, others = bank.__getstate__()["learned"], twin.__getstate__()["learned"]
        assert repr(twin) == repr(bank) and repr(mine["params"]) == repr(others["params"])
        assert all(mine[name] == others[name] for name in ("dtype", "keys", "labels"))
        for name, array in mine["models"].items():
            assert array.dtype == others["models"][name].dtype and (array == others["models"][name]).all(), name

    @each("kind, name, change, message", [
        ("small", "count", lambda a: a + 30, "more terms than the budget"),
        ("small", "clock", lambda a: a * 0 + 255, "clock"),
        ("small", "frame", lambda a: a * 0, "frame"),
        ("small", "t", lambda a: -a, "t is not"),
        ("small", "born", lambda a: a * 0, "birthday"),
        ("small", "points", lambda a: a[:, :, :1], "shape"),
        ("small", "coefficients", lambda a: a + 1, "slot without a term"),
        ("small", "offset", lambda a: a + np.nan, "finite"),
        ("small", "scalar", lambda a: a.astype(np.float32), "array of"),
        ("ring", "clock", lambda a: a * 0 + 3, "oldest"),
        ("ring", "clock", lambda a: a * 0 + 40, "oldest"),
        ("small", "keys", lambda a: [0, 0], "two models have the same key"),
    ])
    def test_an_invalid_state_is_refused(self, kind, name, change, message):
        X = np.random.default_rng(0).normal(size=(40, 2)) if kind == "small" else np.eye(2)
        bank = Bank(2, "novelty", budget=30 if kind == "small" else ok.Recent(30))
        bank.partial_fit(X, keys=[0, 1] * (len(X) // 2))
        state = bank.__getstate__()
        part = state["learned"] if name == "keys" else state["learned"]["models"]
        part[name] = change(part[name])
        with pytest.raises(ValueError, match=message):
            Bank(2).__setstate__(state)


class TestRefusals:
    """A refused call has changed nothing."""

    X = np.random.default_rng(0).normal(size=(4, 2))

    @each("params, message", [
        ({"n_features": 0}, "'n_features' parameter of Bank must be an integer of at least 1"),
        ({"n_models": 0}, "'n_models' parameter of Bank"),
        ({"threads": 0}, "'threads' parameter of Bank"),
        ({"threads": 2**31 - 1}, "'threads' parameter of Bank must be an integer of at least 1 and at most 1024"),
        ({"rule": "svmd"}, "'rule' parameter of Bank must be 'silk' or 'norma'. Got 'svmd'"),
        ({"loss": "multiclass_hinge"}, "built-in loss of two classes"),
        ({"kernel": "laplacian"}, "Gaussian or a Linear kernel"),
        ({"kernel": ok.Gaussian() + 1}, "Gaussian or a Linear kernel"),
        ({"budget": 65}, "at most 64 terms"),
        ({"budget": None}, "at most 64 terms"),
        ({"budget": ok.Window(5)}, "at most 64 terms"),
        ({"step": ok.MetaDescent(), "rule": "norma"}, "no step=MetaDescent"),
        ({"rule": "norma", "penalty": 1.0}, "penalty is for rule='silk'"),
        ({"rule": "norma", "step": 3.0, "regularization": 1.0}, "step . regularization must be at most 1"),
        ({"loss": "novelty", "offset": True}, "offset=True cannot be used"),
        ({"kernel": ok.Gaussian(-1.0)}, "'width' parameter"),
    ])
    def test_parameters(self, params, message):
        bank = Bank(**{"n_features": 2, "loss": "squared", **params})
        with pytest.raises(ValueError, match=message):
            bank.partial_fit(self.X, np.ones(4), keys=list("abcd"))
        assert len(bank) == 0

    @each("bank, arguments, error, message", [
        *(("numbers", {"X": [[1.0, 2.0]], "y": [1.0], "keys": ["new"], **wrong}, error, message)
          for wrong, error, message in [
            (dict(X=[[1.0, np.nan]]), ValueError, "contains NaN"),
            (dict(X=[[1.0]]), ValueError, "X has 1 features"),
            (dict(y=[np.inf]), ValueError, "Input y contains"),
            (dict(y=None), ValueError, "requires y"),
            (dict(y=[1.0, 2.0]), ValueError, "inconsistent"),
            (dict(keys=["new", "b"]), ValueError, "inconsistent"),
            (dict(keys=None), ValueError, "pass keys="),
            (dict(keys="n"), TypeError, "keys must be a list or array"),
            (dict(keys=[["new"]]), TypeError, "keys must be hashable"),
            (dict(keys=[np.nan]), ValueError, "keys contains NaN"),
            (dict(active=[1]), ValueError, "active must hold a boolean"),
            (dict(active=[True, True]), ValueError, "active must hold a boolean"),
            (dict(X=[[1.0, np.inf]], active=[True]), ValueError, "contains infinity"),
        ]),
        *(("numbered", dict(X=np.eye(4, 2), y=np.ones(4), keys=keys), error, message) for keys, error, message in [
            (None, ValueError, "a row for each of the 7 models. Got 4"),
            ([0, 1, 2, 7], ValueError, "between 0 and 6. Got 0 to 7"),
            ([0, 1, 2, -1], ValueError, "between 0 and 6"),
            ([0.0, 1.0, 2.0, 3.0], TypeError, "whole numbers"),
            ([0, 1], ValueError, "inconsistent"),
        ]),
        ("sides", dict(X=X[:1], y=["c"], keys=["e"]), ValueError, "unknown label, 'c'"),
        ("sides", dict(X=X[:1], y=["a"], keys=["e"], classes=["a", "c"]), ValueError,
         "not the same as on the first call"),
    ])
    def test_arguments(self, bank, arguments, error, message):
        bank = self.made(bank)
        before = pickle.dumps(bank)
        for method in (bank.partial_fit, bank.progressive):
            with pytest.raises(error, match=message):
                method(**arguments)
        assert pickle.dumps(bank) == before

    def made(self, what):
        if what == "numbered":
            return Bank(2, "squared", n_models=7)
        loss, y = ("squared", np.ones(4)) if what == "numbers" else ("hinge", list("abab"))
        return Bank(2, loss).partial_fit(self.X, y, keys=list("abcd"))

    @each("threads", [1, 2])
    def test_a_model_that_diverges_stops_alone(self, threads):
        """Each row of the others is learned; the one model stays as it was before the row that it cannot learn."""
        bank = Bank(1, "squared", "linear", rule="norma", step=1.0, regularization=0.0, budget=3, threads=threads)
        keys = ["good", "bad"] * 40 + [f"other{i}" for i in range(100)]
        X, y = np.ones((180, 1)), np.ones(180)
        X[1:80:2] = 1e100
        with pytest.raises(FloatingPointError,
                           match="Row 3 of X cannot be learned.*141 in all, were learned") as caught:
            bank.partial_fit(X, y, keys=keys)
        assert caught.value.rows_learned == 141
        bank._check()
        assert bank.t_[0] == 40 and bank.t_[1] == 1 and (bank.t_[2:] == 1).all()
        assert np.isfinite(bank.scores([[1.0]], keys=["good"])).all()
        bank = Bank(1, "squared", "linear", rule="norma", step=1.0, regularization=0.0, budget=3)
        X = np.array([1e100, 1e100, 1.0, 1e100, 1.0, 1.0, 1e100])[:, None]
        with pytest.raises(FloatingPointError, match="Row 3 of X cannot be learned"):  # of several the first
            bank.partial_fit(X, np.ones(7), keys=list("abcbcca"))
        assert bank.t_.tolist() == [1, 1, 3]
        bank = Bank(1, "squared", n_models=2, rule="norma", step=1.0, regularization=0.0)
        with pytest.raises(FloatingPointError, match="Row 1 of X"):  # what float32 cannot hold
            bank.partial_fit(np.ones((2, 1), dtype=np.float32), [1.0, 1e60])
        assert bank.t_.tolist() == [1, 0]


ROWS = np.random.default_rng(7).normal(size=(240, 3))
SIDES = np.where(ROWS[:, 0] > 0, 1, 0)
SIDES[:10] = 1                                      # what the other label is, -1 or 0, a later call shows
NAMES = [f"key {i}" for i in np.random.default_rng(8).integers(0, 20 + np.arange(240))]
BANKS = {
    # What to make, and where the calls end that learn 240 rows
    "keys": (lambda: Bank(3, "hinge", budget=3, offset=True), [9, 10, 100, 240]),
    "keys in threads": (lambda: Bank(3, "nuhinge", budget=3, threads=2), [9, 150, 240]),
    "numbers": (lambda: Bank(3, "novelty", n_models=80, rule="norma", budget=3), [80, 160, 240]),
    "numbers in threads": (lambda: Bank(3, "novelty", n_models=80, budget=3, threads=2), [80, 160, 240]),
}


def learn_some(name, bank, first, last):
    if "keys" in name:
        bank.partial_fit(ROWS[first:last], SIDES[first:last], keys=NAMES[first:last])
    elif last == first + 80:
        bank.progressive(ROWS[first:last])
    else:
        bank.progressive(ROWS[first:last], keys=np.arange(first, last) % 80)


def contents(bank):
    """All that is learned, to be compared."""
    learned = bank.__getstate__()["learned"]
    if learned is None:
        return None
    arrays = {name: array.tobytes() for name, array in learned["models"].items()}
    return learned["keys"], str(learned["labels"]), learned["dtype"], arrays


@functools.cache
def undisturbed(name):
    """What is in a bank that was never interrupted, after 0, 1, ... rows."""
    bank, after = BANKS[name][0](), [None]
    for i in range(240):
        learn_some(name, bank, i, i + 1)
        after.append(contents(bank))
    return after


class BankCall(Call):
    """Not before a turn ends: the interpreter looks at signals after such a call, and not before it."""

    def look(self, frame, event, called):
        if event != "c_call" or called.__name__ != "__exit__":
            super().look(frame, event, called)


def strikes(name, fault):
    """Let a fault strike while a bank learns: all rows of a call are learned, or none, and it goes on.

    Return whether the fault has struck.
    """
    make, ends = BANKS[name]
    bank, after, done, struck = make(), undisturbed(name), 0, False
    for end in ends:
        try:
            if not struck:
                fault.start()
            try:
                learn_some(name, bank, done, end)
            finally:
                fault.stop()
        except (KeyboardInterrupt, MemoryError) as error:
            struck = True
            bank._check()
            learned = 0 if bank._models is None else int(bank.t_.sum()) - done
            assert learned in (0, end - done) and getattr(error, "rows_learned", learned) == learned
            assert contents(bank) == after[done + learned]
            bank = pickle.loads(pickle.dumps(bank))
            if not learned:
                learn_some(name, bank, done, end)
        done = end
    bank._check()
    assert contents(bank) == after[240]
    return struck


class TestFaults:
    THOROUGH = bool(os.environ.get("ONLINEKERNELS_THOROUGH"))  # every place, instead of some

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in generators that are let go of
    @pytest.mark.parametrize("name", BANKS)
    def test_a_fault_at_any_place_leaves_a_bank_that_goes_on(self, name):
        faults = [(functools.partial(BankCall, KeyboardInterrupt, False), 41),
                  (functools.partial(BankCall, MemoryError, False), 97)]
        if "allocation" in FAULTS:
            faults.append((FAULTS["allocation"], 7))
        for make, stride in faults:
            place = 1
            while strikes(name, make(place)):
                place += 1 if self.THOROUGH else stride
            assert place > 10


    def test_pieces_of_a_call(self, monkeypatch):
        """Cut into pieces, a call learns the same; a model that has failed stays where it is."""
        rng = np.random.default_rng(0)
        X, y, keys = rng.normal(size=(5000, 2)), rng.normal(size=5000), rng.integers(0, 900, size=5000)
        X[[1500, 2700]] = 1e200
        banks = {}
        for piece in (2**28, 1):
            monkeypatch.setattr(module_of_bank, "PIECE", piece)
            for threads in (1, 3):
                bank = banks[piece, threads] = Bank(2, "squared", "linear", rule="norma", step=0.01, budget=3,
                                                    threads=threads)
                with pytest.raises(FloatingPointError, match="Row 1500 of X cannot be learned") as caught:
                    bank.partial_fit(X, y, keys=keys)
                assert caught.value.rows_learned == bank.t_.sum() < 4998
                scores = bank.scores(X[:1500], keys=keys[:1500])
                assert contents(bank) == contents(banks[2**28, 1])
                assert (scores == banks[2**28, 1].scores(X[:1500], keys=keys[:1500])).all()
        assert banks[1, 1]._plan.rows_at_a_time == 1024 and banks[2**28, 1]._plan.rows_at_a_time > 10**6

    def test_an_interrupt_between_two_pieces_says_how_many_rows_were_learned(self, monkeypatch):
        monkeypatch.setattr(module_of_bank, "PIECE", 1)
        rng, cut = np.random.default_rng(0), module_of_bank.pieces
        X, keys = rng.normal(size=(5000, 2)), rng.integers(0, 900, size=5000).tolist()

        def stopping(*arguments):
            for i, piece in enumerate(cut(*arguments)):
                if i == 3:
                    raise KeyboardInterrupt
                yield piece

        bank, other = Bank(2, "novelty"), Bank(2, "novelty").partial_fit(X[:3072], keys=keys[:3072])
        monkeypatch.setattr(module_of_bank, "pieces", stopping)
        with pytest.raises(KeyboardInterrupt) as caught:
            bank.partial_fit(X, keys=keys)
        assert caught.value.rows_learned == 3072 and contents(bank) == contents(other)
        bank._check()


def test_exp_in_single_precision_is_within_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-87.3, 88.7, 200_001), np.linspace(-1, 1, 20_001),
                        [0.0, -1e-30]]).astype(np.float32)
    expected = np.exp(x.astype(float))
    assert (np.abs(vectorized.exp(x) - expected) <= 2 * np.spacing(expected.astype(np.float32))).all()
    x = np.array([-88, -1e30, -np.inf, 89, np.inf, np.nan, 0], dtype=np.float32)
    np.testing.assert_array_equal(vectorized.exp(x), np.array([0, 0, 0, np.inf, np.inf, np.nan, 1], dtype=np.float32))
