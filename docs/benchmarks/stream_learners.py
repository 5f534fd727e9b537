"""The learners of ``streams.py``: ours, river's, CapyMOA's, scikit-learn's and FLAML's.

A learner is prepared with a stream (X, y), which imports its library and builds a model, and gives a function
`step(rows)` of a slice of rows: it predicts each of them before it learns it, and returns what it said. A library
that is not installed raises ImportError; a learner that does not take such a stream raises `NotForThis`.
"""

import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onlinekernels import (
    KRLS,
    SILK,
    OnlineKernelClassifier,
    OnlineKernelDetector,
    OnlineKernelRegressor,
    RunningScaler,
)

REFIT, WINDOW = 1000, 5000  # rows between fits of a model for tables, and rows that it is fitted to
WARM = 500  # rows for Java's compiler, which are not timed
EARLY = (50, 100, 200, 500)  # its first fits


class NotForThis(Exception):
    """The learner does not take such a stream."""


@dataclass(frozen=True)
class Learner:
    name: str
    library: str
    prepare: Callable  # (X, y) -> step(rows)
    scaled: bool = False  # gets rows scaled by the mean and deviation of the rows so far, which is not timed


def prepared(learner, X, y):
    return learner.prepare(RunningScaler().progressive(X) if learner.scaled else X, y)


def so_far(y):
    """Mean and deviation of the numbers before each; for the first ten those of all ten, which is kind."""
    counts = np.arange(1, len(y) + 1)
    mean = np.cumsum(y) / counts
    deviation = np.sqrt(np.maximum(np.cumsum(y**2) / counts - mean**2, 0.0))
    mean[:10], deviation[:10] = y[:10].mean(), y[:10].std() or 1.0
    return np.r_[mean[0], mean[:-1]], np.r_[deviation[0], deviation[:-1]]


# ---- Ours -------------------------------------------------------------------------------------


def ours(make, *, labels=False, targets=True, alone=False):
    def prepare(X, y):
        warnings.simplefilter("ignore")
        model = make()

        def step(rows):
            if labels:
                return np.asarray(model.progressive(X[rows], y[rows], return_labels=True)[1])
            return model.progressive(X[rows], y[rows]) if targets else model.progressive(X[rows])

        def one_by_one(rows):
            return np.concatenate([step(slice(t, t + 1)) for t in range(rows.start, min(rows.stop, len(X)))])

        return one_by_one if alone else step

    return prepare


# ---- river ------------------------------------------------------------------------------------


def river(make, answer="predict_one", sign=1):
    def prepare(X, y):
        model = make(len(set(y.tolist())) > 2)
        dicts, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()
        say = getattr(model, answer)

        def step(rows):
            said = []
            for x, label in zip(dicts[rows], labels[rows]):
                said.append(say(x))
                if sign > 0:
                    model.learn_one(x, label)
                else:
                    model.learn_one(x)
            return [np.nan if one is None else sign * one for one in said]

        return step

    return prepare


def of_river(path, **parameters):
    """A model of river by its name: module.Class."""

    def make(_):
        import importlib

        module, name = path.split(".")
        return getattr(importlib.import_module(f"river.{module}"), name)(**parameters)

    return make


def behind_scaler(make, scaler="StandardScaler"):
    def make_both(many):
        from river import preprocessing

        return getattr(preprocessing, scaler)() | make(many)

    return make_both


def target_scaled(make):
    def make_both(many):
        from river import preprocessing

        return preprocessing.TargetStandardScaler(regressor=make(many))

    return make_both


def one_against_rest(make):
    def make_all(many):
        from river import multiclass

        return multiclass.OneVsRestClassifier(make(many)) if many else make(many)

    return make_all


# ---- CapyMOA ----------------------------------------------------------------------------------


def capymoa(path, task="classes", *, centred=False, **parameters):
    """A learner of CapyMOA by its name: module.Class; `centred` scales targets for those whose new trees say 0."""

    def prepare(X, y):
        import importlib

        from capymoa.stream import NumpyStream

        classes, places = np.unique(y, return_inverse=True)
        centre, size = so_far(y) if centred else (np.zeros(len(y)), np.ones(len(y)))
        kind, target = ("numeric", (y - centre) / size) if task == "numbers" else ("categorical", places)
        stream = NumpyStream(X, target, target_type=kind)
        module, name = path.split(".")
        settings = parameters | {key: value() for key, value in parameters.items() if callable(value)}

        def run():
            """A function that predicts and learns the next rows of the stream with a new model."""
            learner = getattr(importlib.import_module(f"capymoa.{module}"), name)(stream.get_schema(), **settings)
            say = learner.score_instance if task == "novelty" else learner.predict
            stream.restart()

            def some(count):
                said = []
                for _ in range(count):
                    instance = stream.next_instance()
                    said.append(say(instance))
                    learner.train(instance)
                return said

            return some

        run()(min(WARM, len(X)))
        some = run()

        def step(rows):
            said = some(min(rows.stop, len(X)) - rows.start)
            if task == "novelty":
                return [-one for one in said]
            if task == "numbers":
                return np.array([np.nan if one is None else one for one in said]) * size[rows] + centre[rows]
            return [np.nan if one is None else classes[one] for one in said]

        return step

    return prepare


def autoclass_settings():
    """The file of settings that AutoClass wants: MOA's own, out of its archive, with full names and no comments."""
    import capymoa as package

    with zipfile.ZipFile(Path(package.__file__).parent / "jar" / "moa.jar") as jar:
        lines = jar.read("moa/classifiers/meta/AutoML/settings.json").decode().splitlines()
    text = "\n".join(line for line in lines if not line.strip().startswith("//"))
    path = Path(tempfile.mkdtemp(prefix="autoclass-")) / "settings.json"
    path.write_text(text.replace('"algorithm": "', '"algorithm": "moa.classifiers.'))
    return str(path)


def autoclass_candidates():
    from capymoa.classifier import KNN, HoeffdingAdaptiveTree, HoeffdingTree

    return [KNN, HoeffdingAdaptiveTree, HoeffdingTree]


def halving_candidates():
    """What successive halving chooses from."""
    from capymoa import classifier

    names = (
        "HoeffdingAdaptiveTree",
        "KNN",
        "SAMkNN",
        "AdaptiveRandomForestClassifier",
        "StreamingRandomPatches",
        "LeveragingBagging",
    )

    def of(name):
        kind = getattr(classifier, name)
        return kind if "NN" in name or name.endswith("Tree") else lambda schema: kind(schema, ensemble_size=10)

    return [of(name) for name in names]


# ---- scikit-learn -----------------------------------------------------------------------------


def refitted(path, answer="predict", before=None, **parameters):
    """A model of scikit-learn that is fitted to the last 5000 rows, every 1000 rows and a few times before."""

    def prepare(X, y):
        import importlib

        module, name = path.split(".")
        kind = getattr(importlib.import_module(f"sklearn.{module}"), name)
        state = {"model": None}

        def fit(end):
            part = slice(max(0, end - WINDOW), end)
            state["model"] = (
                None if before and len(set(y[part].tolist())) < 2 else kind(**parameters).fit(X[part], y[part])
            )  # one class

        def say(begin, end):
            if state["model"] is not None:
                return getattr(state["model"], answer)(X[begin:end])
            if before is None:
                return np.zeros(end - begin)
            return np.array([before(y[:t]) if t else y[0] for t in range(begin, end)])  # the first row is a present

        def step(rows):
            said, begin, end = [], rows.start, min(rows.stop, len(X))
            while begin < end:
                if begin in EARLY or (begin and begin % REFIT == 0):
                    fit(begin)
                later = [t for t in EARLY if t > begin] + [begin - begin % REFIT + REFIT]
                until = min(end, *later)
                said.append(say(begin, until))
                begin = until
            return np.concatenate(said)

        return step

    return prepare


def commonest(known):
    return Counter(known.tolist()).most_common(1)[0][0]


# ---- FLAML ------------------------------------------------------------------------------------


def autovw(task):
    def prepare(X, y):
        import logging

        from flaml import AutoVW
        from flaml.tune import loguniform

        logging.disable(logging.WARNING)
        if task == "classes":
            classes = np.unique(y)
            if len(classes) > 2:
                raise NotForThis("AutoVW is for numbers, here also for two classes")
            target = np.where(y == classes[1], 1.0, -1.0)
            centre, size = np.zeros(len(y)), np.ones(len(y))
        else:
            centre, size = so_far(y)
            target = (y - centre) / size
        space = {"interactions": AutoVW.AUTOMATIC, "learning_rate": loguniform(lower=2e-10, upper=1.0)}
        initial = {"interactions": set(), "learning_rate": 0.5}
        model = AutoVW(
            max_live_model_num=5, search_space=space, init_config=initial, random_seed=1, min_resource_lease="auto"
        )
        spaces = (
            "abcdefghijklmnopqrstuvwxyz"  # a namespace for each column, as far as there are letters: what interacts
        )

        def line(x, label):
            parts = {}
            for j, value in enumerate(x):
                parts.setdefault(spaces[j % len(spaces)], []).append(f"x{j}:{value:.6g}")
            return f"{label:.8g} " + " ".join(f"|{letter} " + " ".join(part) for letter, part in parts.items())

        lines = [line(x, label) for x, label in zip(X.tolist(), target.tolist())]

        def step(rows):
            said = []
            for one in lines[rows]:
                said.append(model.predict(one))
                model.learn(one)
            said = np.array(said, dtype=float) * size[rows] + centre[rows]
            return np.where(said > 0, classes[1], classes[0]) if task == "classes" else said

        return step

    return prepare


# ---- All of them ------------------------------------------------------------------------------

FOREST, TREES = "forest.ARFClassifier", "regressor.AdaptiveRandomForestRegressor"
LEARNERS = {
    "classes": [
        Learner(
            "OnlineKernelClassifier, low", "onlinekernels", ours(lambda: OnlineKernelClassifier("low"), labels=True)
        ),
        Learner("OnlineKernelClassifier", "onlinekernels", ours(OnlineKernelClassifier, labels=True)),
        Learner(
            "OnlineKernelClassifier, high", "onlinekernels", ours(lambda: OnlineKernelClassifier("high"), labels=True)
        ),
        Learner(
            "OnlineKernelClassifier, row by row", "onlinekernels", ours(OnlineKernelClassifier, labels=True, alone=True)
        ),
        Learner("SILK", "onlinekernels", ours(lambda: SILK("multiclass_hinge", scale=True), labels=True)),
        Learner("KRLS", "onlinekernels", ours(lambda: KRLS("multiclass_squared", scale=True), labels=True)),
        Learner("forest of 10", "CapyMOA", capymoa("classifier.AdaptiveRandomForestClassifier", ensemble_size=10)),
        Learner("forest of 30", "CapyMOA", capymoa("classifier.AdaptiveRandomForestClassifier", ensemble_size=30)),
        Learner("random patches, 10", "CapyMOA", capymoa("classifier.StreamingRandomPatches", ensemble_size=10)),
        Learner("SAM-KNN", "CapyMOA", capymoa("classifier.SAMkNN")),
        Learner("SAM-KNN, scaled", "CapyMOA", capymoa("classifier.SAMkNN"), scaled=True),
        Learner("KNN", "CapyMOA", capymoa("classifier.KNN"), scaled=True),
        Learner("leveraging bagging", "CapyMOA", capymoa("classifier.LeveragingBagging", ensemble_size=10)),
        Learner(
            "AutoClass",
            "CapyMOA",
            capymoa("automl.AutoClass", configuration_json=autoclass_settings, base_classifiers=autoclass_candidates),
            scaled=True,
        ),
        Learner(
            "successive halving",
            "CapyMOA",
            capymoa("automl.SuccessiveHalvingClassifier", base_classifiers=halving_candidates),
            scaled=True,
        ),
        Learner(
            "logistic regression",
            "river",
            river(behind_scaler(one_against_rest(of_river("linear_model.LogisticRegression")))),
        ),
        Learner("linear PA", "river", river(behind_scaler(one_against_rest(of_river("linear_model.PAClassifier"))))),
        Learner("Hoeffding adaptive tree", "river", river(of_river("tree.HoeffdingAdaptiveTreeClassifier", seed=1))),
        Learner("KNN", "river", river(behind_scaler(of_river("neighbors.KNNClassifier")))),
        Learner("forest of 10", "river", river(of_river(FOREST, n_models=10, seed=1))),
        Learner(
            "boosting, refitted",
            "scikit-learn",
            refitted("ensemble.HistGradientBoostingClassifier", before=commonest, random_state=0),
        ),
        Learner("AutoVW", "FLAML", autovw("classes"), scaled=True),
    ],
    "numbers": [
        Learner("OnlineKernelRegressor, low", "onlinekernels", ours(lambda: OnlineKernelRegressor("low"))),
        Learner("OnlineKernelRegressor", "onlinekernels", ours(OnlineKernelRegressor)),
        Learner("OnlineKernelRegressor, high", "onlinekernels", ours(lambda: OnlineKernelRegressor("high"))),
        Learner("OnlineKernelRegressor, row by row", "onlinekernels", ours(OnlineKernelRegressor, alone=True)),
        Learner("SILK", "onlinekernels", ours(lambda: SILK("squared", scale=True, scale_target=True))),
        Learner("KRLS", "onlinekernels", ours(lambda: KRLS("squared", scale=True, scale_target=True))),
        Learner("forest of 10", "CapyMOA", capymoa(TREES, "numbers", centred=True, ensemble_size=10)),
        Learner("forest of 30", "CapyMOA", capymoa(TREES, "numbers", centred=True, ensemble_size=30)),
        Learner("SOKNL, 10", "CapyMOA", capymoa("regressor.SOKNL", "numbers", centred=True, ensemble_size=10)),
        Learner("KNN", "CapyMOA", capymoa("regressor.KNNRegressor", "numbers"), scaled=True),
        Learner(
            "linear regression", "river", river(behind_scaler(target_scaled(of_river("linear_model.LinearRegression"))))
        ),
        Learner("KNN", "river", river(behind_scaler(of_river("neighbors.KNNRegressor")))),
        Learner(
            "forest of 10",
            "river",
            river(behind_scaler(target_scaled(of_river("forest.ARFRegressor", n_models=10, seed=1)))),
        ),
        Learner(
            "boosting, refitted",
            "scikit-learn",
            refitted("ensemble.HistGradientBoostingRegressor", before=np.mean, random_state=0),
        ),
        Learner("AutoVW", "FLAML", autovw("numbers"), scaled=True),
    ],
    "novelty": [
        Learner(
            "OnlineKernelDetector, low",
            "onlinekernels",
            ours(lambda: OnlineKernelDetector(effort="low"), targets=False),
        ),
        Learner("OnlineKernelDetector", "onlinekernels", ours(OnlineKernelDetector, targets=False)),
        Learner(
            "OnlineKernelDetector, high",
            "onlinekernels",
            ours(lambda: OnlineKernelDetector(effort="high"), targets=False),
        ),
        Learner("SILK", "onlinekernels", ours(lambda: SILK("nunovelty", scale=True), targets=False)),
        Learner(
            "half-space trees",
            "river",
            river(behind_scaler(of_river("anomaly.HalfSpaceTrees", seed=1), "MinMaxScaler"), "score_one", sign=-1),
        ),
        Learner("half-space trees", "CapyMOA", capymoa("anomaly.HalfSpaceTrees", "novelty")),
        Learner("half-space trees, scaled", "CapyMOA", capymoa("anomaly.HalfSpaceTrees", "novelty"), scaled=True),
        Learner("LODA", "CapyMOA", capymoa("anomaly.Loda", "novelty")),
        Learner("online isolation forest", "CapyMOA", capymoa("anomaly.OnlineIsolationForest", "novelty")),
        Learner(
            "isolation forest, refitted",
            "scikit-learn",
            refitted("ensemble.IsolationForest", "score_samples", random_state=0),
        ),
    ],
}
