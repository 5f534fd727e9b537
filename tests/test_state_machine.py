"""Models of random nouns, driven through every call there is, against a plain sum and a twin that learns row by row.

ONLINEKERNELS_MACHINES sets how many machines are run; the default is small enough for every day.
"""
import copy
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import onlinekernels as ok

RNG = np.random.default_rng(2)
POINTS = RNG.uniform(0.05, 0.95, size=(60, 2))
POINTS[5:10] = POINTS[0]                        # duplicates
POINTS[10, 0], POINTS[11] = 1e-310, 0.5         # denormals
GRAM = np.exp(-np.square(POINTS[:, None] - POINTS).sum(axis=2))
LABELS = np.array(["c", "a", "b", "d"])
TREE = {"a": "l", "b": "l", "c": "r", "d": "r", "l": "top", "r": "top"}


class Interrupted(Exception):
    pass


class Moody(ok.Squared):
    """A squared loss of one's own that fails when it is told to."""

    patience = None

    def derivative(self, score, y):
        if Moody.patience is not None:
            Moody.patience -= 1
            if Moody.patience < 0:
                raise Interrupted
        return score - y


def gaussian(x, z):
    return float(np.exp(-np.sum((x - z) ** 2)))


KERNELS = {
    "gaussian": lambda: ok.Gaussian(0.5),
    "sum": lambda: ok.Laplacian(2.0) + 0.5 * ok.Linear() + ok.Constant(0.3),
    "normalized": lambda: ok.Normalized(ok.Polynomial(2)) * ok.Gaussian(1.0),
    "linear": ok.Linear,
    "spline": lambda: ok.AdditiveSpline(1, bounds=(-1.0, 2.0)),
    "matern": lambda: ok.AdditiveMatern(2.0),
    "precomputed": lambda: ok.Precomputed(GRAM),
    "fourier": lambda: ok.RandomFourier(ok.Gaussian(0.5), 10),
    "nystroem": lambda: ok.Nystroem(ok.Gaussian(0.5), 7) + 0.5 * ok.Linear(),
    "callable": lambda: gaussian,
}
BUDGETS = {
    "none": lambda: None,
    "recent": lambda: 5,
    "window": lambda: ok.Window(6),
    "smallest": lambda: ok.Smallest(5),
    "sublinear": lambda: ok.Sublinear(0.6, 2),
    "random": lambda: ok.RandomRemoval(5),
    "redundant": lambda: ok.Redundant(5),
    "tighter": lambda: ok.Redundant(4, tighter=True),
    "merging": lambda: ok.Merging(5),
    "projecting": lambda: ok.Projecting(5, 0.01),
}
# (algorithm, keywords, task)
LEARNERS = {
    "norma hinge": (ok.NORMA, {"loss": "hinge", "step": 0.3, "offset": True}, "two"),
    "norma nu": (ok.NORMA, {"loss": "nuhinge", "step": ok.InverseSqrt(0.5), "regularization": 0.1}, "two"),
    "norma squared": (ok.NORMA, {"loss": "squared", "step": ok.Decaying(0.2, 7)}, "number"),
    "norma own": (ok.NORMA, {"loss": Moody, "step": 0.2, "offset": True}, "number"),
    "norma wipe": (ok.NORMA, {"loss": "absolute", "step": 0.5, "regularization": 2.0}, "number"),
    "norma novelty": (ok.NORMA, {"loss": "nunovelty", "step": 0.2}, "none"),
    "norma many": (ok.NORMA, {"loss": "multiclass_hinge", "step": 0.3, "offset": True}, "many"),
    "norma logistic": (ok.NORMA, {"loss": "multiclass_logistic", "step": 0.3}, "many"),
    "norma many squared": (ok.NORMA, {"loss": "multiclass_squared", "step": 0.2, "offset": True}, "many"),
    "silk many squared": (ok.SILK, {"loss": "multiclass_squared"}, "many"),
    "svmd many squared": (ok.SVMD, {"loss": "multiclass_squared", "offset": True}, "many"),
    "silk quantile": (ok.SILK, {"loss": "quantile", "offset": True}, "number"),
    "norma taxonomy": (ok.NORMA, {"loss": "graph_hinge", "step": 0.3, "labels": ok.Taxonomy(TREE)}, "many"),
    "ilk logistic": (ok.ILK, {"loss": "logistic", "offset": True}, "two"),
    "silk tube": (ok.SILK, {"loss": "insensitive"}, "number"),
    "ilk many": (ok.ILK, {"loss": "multiclass_hinge", "exact": True}, "many"),
    "svmd": (ok.SVMD, {"loss": "huber", "offset": True}, "number"),
    "svmd exact": (ok.SVMD, {"loss": "hinge", "exact_norms": True}, "two"),
    "passive": (ok.PassiveAggressive, {"loss": "multiclass_hinge", "penalty": 0.5}, "many"),
    "projection": (ok.Projection, {"loss": "insensitive", "radius": 2.0}, "number"),
    "perceptron": (ok.Perceptron, {}, "two"),
    "alma": (ok.ALMA, {}, "two"),
    "romma": (ok.ROMMA, {}, "two"),
    "ballseptron": (ok.Ballseptron, {}, "two"),
    "svmd normalized": (ok.SVMD, {"loss": "squared", "normalized": True, "offset": True}, "number"),
    "krls": (ok.KRLS, {"noise": 0.1}, "number"),
    "krls fading": (ok.KRLS, {"noise": "auto", "memory": 0.98}, "number"),
    "krls many": (ok.KRLS, {"loss": "multiclass_squared", "noise": 0.3}, "many"),
    "projectron": (ok.Projectron, {"aggressive": True}, "two"),
    "forgetron": (ok.Forgetron, {}, "two"),
}
ATTRIBUTES = ("support_vectors_", "dual_coef_", "n_terms_", "knots_", "intercept_", "coef_", "norm_", "t_", "step_",
              "n_features_in_", "classes_", "margin_", "width_", "offset_", "feature_names_in_")


def same_bits(a, b):
    """Two models have learned the same; objects that are equal need not be one, as in a pickle's bytes."""
    first, second = a._state.to_dict(), b._state.to_dict()
    assert first.pop("plan").keys() == second.pop("plan").keys()
    np.testing.assert_equal(first, second)


class Models(RuleBasedStateMachine):
    """A model, its twin that learns the same rows one by one, and what is known of them."""

    @initialize(learner=st.sampled_from(sorted(LEARNERS)), kernel=st.sampled_from(sorted(KERNELS)),
                budget=st.sampled_from(sorted(BUDGETS)), scale=st.booleans(), single=st.booleans())
    def begin(self, learner, kernel, budget, scale, single):
        self.make, self.keywords, self.task = LEARNERS[learner]
        if learner in ("projectron", "forgetron") and kernel in ("fourier", "nystroem"):
            kernel = "gaussian"     # they keep terms
        self.kernel = KERNELS[kernel]()
        needs_rows = self.kernel is gaussian or kernel == "precomputed"
        self.keywords = dict(self.keywords, kernel=self.kernel, scale=scale and not needs_rows and kernel != "spline")
        exact = learner in ("svmd exact", "projection", "alma", "romma", "ballseptron")
        senseless = (budget in ("redundant", "tighter") and self.task in ("number", "none")
                     or budget == "merging" and (kernel != "gaussian" or exact or learner == "norma taxonomy"))
        self.keywords["budget"] = None if exact and self.kernel is gaussian or senseless else BUDGETS[budget]()
        if learner in ("projectron", "forgetron"):
            self.keywords["budget"] = 4
        if self.make is ok.KRLS and not isinstance(self.keywords["budget"], int):
            self.keywords["budget"] = None
        self.dtype = np.float32 if single else np.float64
        self.tolerance = 3e-3 if single else 1e-6
        self.single = single
        self.start_anew()

    def start_anew(self):
        self.model, self.twin = self.fresh(), self.fresh()
        self.fitted = False

    def fresh(self):
        keywords = {name: value() if value is Moody else copy.deepcopy(value) for name, value in self.keywords.items()}
        return self.make(**keywords)

    def rows(self, places):
        if isinstance(self.kernel, ok.Precomputed):
            return np.array(places, dtype=float)[:, None]
        return POINTS[list(places)].astype(self.dtype)

    def targets(self, places):
        x = POINTS[list(places)]
        if self.task == "none":
            return None
        if self.task == "two":
            return np.where(x[:, 0] + np.array(places) % 3 / 3 > 0.8, 1, -1)
        if self.task == "number":
            return np.sin(5 * x[:, 0]) + np.array(places) % 4
        return LABELS[(4 * x[:, 1]).astype(int)]

    def first(self):
        return {"classes": [-1, 1]} if self.task == "two" and not self.fitted else {}

    def follow(self, places):
        """The twin learns the same, row by row."""
        X, y = self.rows(places), self.targets(places)
        for i in range(len(places)):
            self.twin.partial_fit(X[i:i + 1], None if y is None else y[i:i + 1], **self.first())
            self.fitted = True

    # ---- Calls ----

    @rule(places=st.lists(st.integers(0, 59), min_size=1, max_size=70), how=st.sampled_from(["partial_fit", "progressive", "chunks"]))
    def learn(self, places, how):
        X, y = self.rows(places), self.targets(places)
        if how == "chunks":
            for rows in (slice(0, 1), slice(1, 3), slice(3, None)):
                if len(X[rows]):
                    self.model.partial_fit(X[rows], None if y is None else y[rows], **(self.first() if rows.start == 0 else {}))
        else:
            getattr(self.model, how)(X, y, **self.first())
        self.follow(places)

    @precondition(lambda self: self.fitted)
    @rule(place=st.integers(0, 59))
    def learn_one(self, place):
        y = self.targets([place])
        self.model.learn_one(self.rows([place])[0], None if y is None else y[0])
        self.follow([place])

    @rule(places=st.lists(st.integers(0, 59), min_size=8, max_size=30))
    def fit(self, places):
        y = self.targets(places)
        if self.task == "two" and len(set(y.tolist())) < 2:
            return
        self.model.fit(self.rows(places), y)
        self.twin = copy.deepcopy(self.model)       # classes may be shown in another order from now on
        self.fitted = True

    @precondition(lambda self: self.fitted)
    @rule(how=st.sampled_from(["pickle", "deepcopy", "copy", "save"]))
    def come_back(self, how):
        if how == "save" and (self.kernel is gaussian or self.keywords.get("loss") is Moody):
            how = "pickle"
        if how == "save":
            with tempfile.TemporaryDirectory() as folder:
                self.model.save(Path(folder) / "model.npz")
                again = ok.load(Path(folder) / "model.npz")
        else:
            again = {"pickle": lambda: pickle.loads(pickle.dumps(self.model)), "deepcopy": lambda: copy.deepcopy(self.model),
                     "copy": lambda: copy.copy(self.model)}[how]()
        same_bits(again, self.model)
        self.model = again

    @precondition(lambda self: self.fitted)
    @rule(places=st.lists(st.integers(0, 59), min_size=1, max_size=4))
    def look(self, places):
        before = pickle.dumps(self.model)
        X = self.rows(places)
        for name in ATTRIBUTES:
            getattr(self.model, name, None)
        for name in ("predict", "decision_function", "predict_proba", "score_samples"):
            if hasattr(self.model, name):
                found = getattr(self.model, name)(X)
                assert found.dtype.kind != "f" or np.isfinite(found).all()
        one, row = self.model.predict_one(X[0]), self.model.predict(X[:1])[0]
        assert np.isclose(one, row, rtol=1e-6, atol=1e-9) if self.task == "number" else one == row
        repr(self.model), self.model.get_params()
        assert pickle.dumps(self.model) == before

    @precondition(lambda self: self.fitted and "step" in self.fresh().get_params())
    @rule(rate=st.sampled_from([0.05, 0.2, 0.4]))
    def change_step(self, rate):
        for model in (self.model, self.twin):
            if isinstance(model.step, ok.MetaDescent) or model.__class__ is ok.SVMD:
                model.set_params(step=rate)
            else:
                model.set_params(step=ok.Fixed(rate))

    @precondition(lambda self: self.fitted and self.task != "two")
    @rule(places=st.lists(st.integers(0, 59), min_size=1, max_size=9))
    def start_from(self, places):
        """A fresh model starts from this one's function; what one model can the twin can."""
        try:
            model = self.fresh().partial_fit(self.rows(places), self.targets(places), initial=self.model)
        except ValueError as error:
            assert "initial" in str(error)
            return
        self.model, self.twin = model, copy.deepcopy(model)

    @rule(kind=st.sampled_from(["nan", "wide", "empty", "labels", "length", "flat", "weights", "words"]),
          places=st.lists(st.integers(0, 59), min_size=2, max_size=5))
    def refuse(self, kind, places):
        X, y = self.rows(places).astype(float), self.targets(places)
        arguments = {}
        if kind == "nan":
            X[-1, 0] = np.nan
        elif kind == "wide":
            if self.kernel is gaussian:
                return
            X = np.column_stack([X, X, X])
            if not self.fitted and not isinstance(self.kernel, ok.Precomputed):
                return
        elif kind == "empty":
            X = X[:0]
        elif kind == "labels":
            y = [None] * len(X) if self.task != "none" else y
            if self.task == "none":
                return
        elif kind == "length":
            if y is None:
                return
            y = y[:-1]
        elif kind == "flat":
            if self.kernel is gaussian:
                return
            X = X[:, 0]
        elif kind == "weights":
            arguments["sample_weight"] = -np.ones(len(X))
        else:
            if self.kernel is gaussian:
                return
            X = X.astype(object)
            X[0, 0] = "word"
        before = pickle.dumps(self.model)
        with pytest.raises((ValueError, TypeError)):
            self.model.partial_fit(X, y, **self.first(), **arguments)
        assert pickle.dumps(self.model) == before

    @precondition(lambda self: self.keywords["loss"] is Moody if "loss" in self.keywords else False)
    @rule(places=st.lists(st.integers(0, 59), min_size=1, max_size=60), patience=st.integers(0, 60))
    def interrupt(self, places, patience):
        Moody.patience = patience
        try:
            self.model.partial_fit(self.rows(places), self.targets(places))
            learned = len(places)
        except Interrupted as error:
            learned = error.rows_learned
            assert learned == patience
        finally:
            Moody.patience = None
        self.follow(places[:learned])

    # ---- What must hold ----

    @invariant()
    def it_is_sound_and_the_plain_sum(self):
        if not getattr(self, "fitted", False):
            return
        model, engine = self.model, self.model._state.engine
        engine._check()
        assert model.t_ == self.twin.t_
        X = self.rows(range(0, 60, 7))
        scores = model._scores(model._state, X)
        twin = self.twin._scores(self.twin._state, X)
        scale = max(1.0, np.abs(twin).max(), float(self.twin.norm_))
        np.testing.assert_allclose(scores, twin, rtol=self.tolerance, atol=self.tolerance * scale)
        if hasattr(model, "dual_coef_") and not model.scale:
            state, terms = model._state, model.support_vectors_
            alpha = state.hypothesis.coefficients()
            gram = state.kernel(list(X) if self.kernel is gaussian else X.astype(float), terms) if len(terms) else np.zeros((len(X), 0))
            plain = gram @ state.with_label_kernel(alpha).T + state.hypothesis.intercept()
            np.testing.assert_allclose(scores, plain, rtol=self.tolerance, atol=self.tolerance * scale)

    def teardown(self):
        Moody.patience = None


Models.TestCase.settings = settings(
    max_examples=int(os.environ.get("ONLINEKERNELS_MACHINES", "40")), stateful_step_count=12, deadline=None,
    derandomize="ONLINEKERNELS_MACHINES" not in os.environ, database=None,
    suppress_health_check=list(HealthCheck), print_blob=True,
)
TestModels = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")(Models.TestCase)  # ROMMA starts anew
