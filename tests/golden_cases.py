"""Cases of the golden traces: a spec, which is a small dictionary, makes a model and a stream; see golden.py.

Whatever a spec leaves out has the first value of its dimension.
"""
import math

import numpy as np

import onlinekernels as ok

ROWS, FEATURES, NEW, TARGETS = 264, 4, 15, 3
LABELS = ["c", "a", "e", "b", "d"]
TREE = {"a": "l", "b": "l", "c": "r", "d": "r", "e": "r", "l": "top", "r": "top"}
EDGES = [("a", "b", 1.0), ("b", "c", 0.7), ("c", "d", 1.3), ("d", "e", 0.5), ("e", "a", 2.1)]
LETTERS = "abcdefgh"
WEIGHTS = {}  # of the letters; see `Stream`


class Own(ok.Loss):
    """A loss of one's own, which the engine calls back."""

    task = "regression"

    def __init__(self):
        pass

    def derivative(self, score, y):
        return np.tanh(score - y)

    def curvature(self, score, y):
        return 1.0 - np.tanh(score - y) ** 2


class OwnOfMany(ok.Loss):
    """The same for many classes."""

    task = "multiclass"

    def __init__(self):
        pass

    def derivative(self, scores, y):
        return np.tanh(scores - (np.arange(len(scores)) == y))


def near(x, z):
    """A kernel in Python on rows."""
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x.tolist(), z.tolist())))


def shared(a, b):
    """A kernel in Python on words, without ties."""
    return math.fsum(WEIGHTS[letter] for letter in LETTERS if letter in a and letter in b)


# Rules: an algorithm and its parameters
RULES = {
    "norma": (ok.NORMA, {"step": 0.2, "regularization": 0.02}),
    "norma strong": (ok.NORMA, {"step": 0.4, "regularization": 1.6}),
    "norma wipe": (ok.NORMA, {"step": 0.5, "regularization": 2.0}),
    "norma inverse": (ok.NORMA, {"step": ok.InverseSqrt(0.5), "regularization": 0.1}),
    "norma decaying": (ok.NORMA, {"step": ok.Decaying(0.3, 20), "regularization": 0.0}),
    "norma average": (ok.NORMA, {"step": 0.2, "regularization": 0.3, "average": True}),
    "ilk": (ok.ILK, {"step": 1.0, "regularization": 0.02, "penalty": 0.7}),
    "ilk strong": (ok.ILK, {"step": ok.InverseSqrt(3.0), "regularization": 1.5, "penalty": 2.0}),
    "ilk exact": (ok.ILK, {"step": 1.0, "regularization": 0.05, "exact": True}),
    "silk": (ok.SILK, {"step": 0.8, "regularization": 0.01}),
    "svmd": (ok.SVMD, {"step": 0.05, "regularization": 0.01}),
    "svmd norms": (ok.SVMD, {"step": 0.05, "regularization": 0.02, "exact_norms": True}),
    "pa": (ok.PassiveAggressive, {"variant": "PA"}),
    "pa-i": (ok.PassiveAggressive, {"penalty": 0.3}),
    "pa-ii": (ok.PassiveAggressive, {"penalty": 0.5, "variant": "PA-II"}),
    "projection": (ok.Projection, {}),
    "projection ball": (ok.Projection, {"radius": 1.7}),
    "perceptron": (ok.Perceptron, {}),
    "perceptron many": (ok.Perceptron, {"update": "runner-up"}),
    "perceptron uniform": (ok.Perceptron, {"update": "uniform"}),
    "alma": (ok.ALMA, {"alpha": 0.8}),
    "romma": (ok.ROMMA, {}),
    "romma aggressive": (ok.ROMMA, {"aggressive": True}),
    "voted": (ok.VotedPerceptron, {}),
    "voted average": (ok.VotedPerceptron, {"vote": False}),
    "adatron": (ok.Adatron, {"step": 0.2, "epochs": 4}),
}
LOSSES = {
    "given": None,  # by the algorithm
    "hinge": ok.Hinge,
    "nu hinge": ok.NuHinge,
    "nu hinge shared": lambda: ok.NuHinge(nu=0.2, margin_step=None),
    "logistic": ok.Logistic,
    "novelty": ok.Novelty,
    "nu novelty": lambda: ok.NuNovelty(nu=0.1),
    "squared": ok.Squared,
    "absolute": ok.Absolute,
    "insensitive": lambda: ok.Insensitive(0.2),
    "nu insensitive": ok.NuInsensitive,
    "squared insensitive": lambda: ok.SquaredInsensitive(0.2),
    "huber": lambda: ok.Huber(0.5),
    "nu huber": lambda: ok.NuHuber(nu=0.2, margin_step=None),
    "own": Own,
    "many hinge": ok.MulticlassHinge,
    "nu many hinge": ok.NuMulticlassHinge,
    "many logistic": ok.MulticlassLogistic,
    "graph hinge": ok.GraphHinge,
    "nu graph hinge": ok.NuGraphHinge,
    "own many": OwnOfMany,
}
KERNELS = {
    "gaussian": lambda: ok.Gaussian(1.2),
    "default": lambda: None,
    "polynomial": lambda: ok.Polynomial(2, scale=0.2, bias=0.5),
    "linear": ok.Linear,
    "half linear": lambda: 0.5 * ok.Linear(),
    "laplacian": lambda: ok.Laplacian(0.7),
    "sum": lambda: ok.Gaussian(0.8) + 0.2 * ok.Linear() + 0.5,
    "product": lambda: ok.Gaussian(2.0) * ok.Polynomial(2, scale=0.2) + ok.Noise(0.1),
    "normalized": lambda: ok.Normalized(ok.Polynomial(3)),
    "spline": lambda: 0.15 * ok.AdditiveSpline(1, bounds=(-5.0, 5.0)),
    "spline terms": lambda: 0.15 * ok.AdditiveSpline(2, bounds=(-5.0, 5.0), tree=False),
    "exponential": lambda: 0.3 * ok.AdditiveExponential(1.5),
    "matern": lambda: 0.3 * ok.AdditiveMatern(1.0, smoothness=2.5),
    "precomputed": None,  # of the points; see `Stream`
    "callable": lambda: near,
    "words": lambda: shared,
}
BUDGETS = {
    "none": lambda: None,
    "recent": lambda: ok.Recent(23),
    "window": lambda: ok.Window(31),
    "smallest": lambda: ok.Smallest(23),
    "sublinear": lambda: ok.Sublinear(0.6, 3),
}
STRUCTURES = {"none": lambda: None, "taxonomy": lambda: ok.Taxonomy(TREE), "graph": lambda: ok.LabelGraph(EDGES)}
DIMENSIONS = {
    "rule": list(RULES),
    "loss": list(LOSSES),
    "kernel": list(KERNELS),
    "budget": list(BUDGETS),
    "labels": list(STRUCTURES),
    "rows": ["float64", "float32", "csr", "far", "few"],
    "chunk": [7, 1, 48, 200, "one", "fit"],
    "offset": [False, True],
    "scale": [False, True, "memory"],
    "scale_target": [False, True],
    "targets": [1, TARGETS],
    "weights": [False, True],
    "classes": ["shown", "named"],
    "midway": ["nothing", "save", "pickle", "initial", "parameters"],
}


def task_of(spec):
    """What is learned: binary, multiclass, regression or novelty."""
    if spec["loss"] == "given":
        return "multiclass" if spec["rule"].startswith("perceptron ") else "binary"
    return LOSSES[spec["loss"]]().task


def has_loss(rule):
    """Whether an algorithm leaves the loss to the user."""
    return RULES[rule][0] in (ok.NORMA, ok.ILK, ok.SILK, ok.SVMD, ok.PassiveAggressive, ok.Projection)


def model_of(spec, stream):
    """The model of a spec; TypeError or ValueError, now or at the first fit, if there is no such thing."""
    cls, keywords = RULES[spec["rule"]]
    keywords = dict(keywords)
    if has_loss(spec["rule"]) != (spec["loss"] != "given"):
        raise ValueError("a loss is given by the algorithm, or is not")
    if spec["loss"] != "given":
        keywords["loss"] = LOSSES[spec["loss"]]()
    keywords["kernel"] = ok.Precomputed(stream.gram) if spec["kernel"] == "precomputed" else KERNELS[spec["kernel"]]()
    if spec["budget"] != "none" or cls in (ok.SILK, ok.SVMD):
        keywords["budget"] = BUDGETS[spec["budget"]]()
    if spec["labels"] != "none":
        keywords["labels"] = STRUCTURES[spec["labels"]]()
    if spec["kernel"] == "default" and not spec["scale"]:  # the width by columns, whatever the rows are
        task, features = task_of(spec), spec.get("d", FEATURES)
        keywords["kernel"] = ok.Gaussian({"regression": 0.5, "novelty": 1.0}.get(task, 0.3) * np.sqrt(features))
    if any(parameter.name == "offset" for parameter in cls._signature()):
        keywords["offset"] = False  # what a linear kernel would choose is another trace
    for name in ("offset", "scale", "scale_target"):
        if spec[name]:
            keywords[name] = ok.RunningScaler(0.99) if spec[name] == "memory" else spec[name]
    return cls(**keywords)


class Stream:
    """Rows X, targets y, weights w and new rows of a spec."""

    def __init__(self, spec):
        slow = spec["kernel"] in ("callable", "words")
        self.n, features = spec.get("n", ROWS // 2 if slow else ROWS), spec.get("d", FEATURES)
        rng = np.random.default_rng(self.n + features)
        points = rng.uniform(0.1, 2.0, size=(self.n + NEW, features))
        u, v = points[:, 0], points[:, 1]
        noise = rng.normal(size=(len(points), TARGETS))
        self.w = rng.uniform(0.0, 2.0, size=self.n) * (np.arange(self.n) % 9 > 0) if spec["weights"] else None
        if spec["rows"] == "few":
            points = 0.1 * np.round(points * 10) + rng.uniform(0, 1e-3, size=features)
            points[50:60] = points[40:50]
        points = points + 100.0 if spec["rows"] == "far" else points
        if spec["rows"] == "csr":
            points = points * (rng.uniform(size=points.shape) < 0.5)
        dtype = np.float32 if spec["rows"] == "float32" else np.float64
        points = points.astype(dtype)
        self.X, self.new = self._rows(spec, points)
        self.y = self._targets(spec, u, v, noise)

    def _rows(self, spec, points):
        n = self.n
        if spec["kernel"] in ("precomputed", "words", "callable") and spec["rows"] != "float64":
            raise ValueError("indices and objects are neither sparse nor single")
        if spec["kernel"] == "precomputed":
            self.gram = np.exp(-np.square(points[:, None] - points).sum(axis=2))
            places = np.arange(len(points), dtype=float)[:, None]
            return places[:n], places[n:]
        if spec["kernel"] == "words":
            letters = np.array(list(LETTERS))
            sizes = np.sqrt([2, 3, 5, 7, 11, 13, 17, 19]) / 4
            WEIGHTS.update(zip(LETTERS, sizes))
            words = ["".join(letters[(row * 4).astype(int) % 8]) + letters[int(row[0] * 40) % 8] for row in points]
            return words[:n], words[n:]
        if spec["rows"] == "csr":
            from scipy.sparse import csr_matrix

            return csr_matrix(points[:n]), csr_matrix(points[n:])
        return points[:n], points[n:]

    def _targets(self, spec, u, v, noise):
        u, v, noise = u[: self.n], v[: self.n], noise[: self.n]
        task = task_of(spec)
        has_classes = task in ("binary", "multiclass")
        if spec["targets"] > 1 and task != "regression" or spec["classes"] == "named" and not has_classes:
            raise ValueError("targets are numbers, and classes have names")
        if task == "novelty":
            return None
        clean = np.sin(3 * u) + v
        if task == "regression":
            y = np.outer(clean, [1.0, -0.5, 2.0]) + 0.3 * noise
            return y if spec["targets"] > 1 else y[:, 0]
        score = clean - 1 + 0.3 * noise[:, 0]
        if task == "binary":
            return np.where(score > 0, 1, -1)
        places = np.clip((score + 2) * 1.4, 0, 4).astype(int)
        places[: self.n // 3] = np.minimum(places[: self.n // 3], 3)  # one joins late
        return np.array(LABELS)[places]

    def classes(self, spec):
        """Labels to be named at the first call."""
        if spec["classes"] == "shown":
            return {}
        return {"classes": [-1, 1] if task_of(spec) == "binary" else LABELS}
