"""Estimators of every kind, with small data for them; the contracts of this folder, and `faults.py`, hold for each.

A new estimator is one line of `KINDS`: how it is made, what y it learns ("signs", "letters", "numbers", "several",
"none"), and what its rows are ("dense", "single", "sparse", "words", "places", "objects", "mixed").
"""
import functools

import numpy as np

import onlinekernels as ok

try:
    from scipy.sparse import csr_matrix
except ImportError:
    csr_matrix = None

CHUNKS = [1, 30, 1, 60, 1, 1, 40, 20]
ROWS = sum(CHUNKS)
# What models show
METHODS = ("predict", "decision_function", "score_samples", "predict_proba", "predict_interval", "transform")
ATTRIBUTES = ("t_", "count_", "classes_", "support_vectors_", "dual_coef_", "coef_", "intercept_", "n_terms_", "knots_",
              "norm_", "step_", "margin_", "width_", "offset_", "noise_", "weights_", "errors_", "relevance_", "mean_",
              "scale_", "n_features_in_", "feature_names_in_", "components_", "columns_")


# Multiples of 1/8: inner products are exact, and results do not depend on where a stream is cut.
RNG = np.random.default_rng(5)
POINTS = RNG.integers(-12, 13, size=(ROWS, 3)) / 8
POINTS[RNG.random(POINTS.shape) < 0.2] = 0.0
NEW = RNG.integers(-12, 13, size=(20, 3)) / 8
WORDS = ["".join(RNG.choice(list("abcdefgh"), size=5)) for _ in range(ROWS)]
SIGNS = np.where(POINTS[:, 0] * POINTS[:, 1] + 0.2 * RNG.normal(size=ROWS) > 0, 1, -1)
NUMBERS = np.round(8 * (np.sin(2 * POINTS[:, 0]) + POINTS[:, 1])) / 8
# Labels join as the stream goes on.
LETTERS = np.array([list("abcdefg")[int(RNG.integers(0, 2 + 5 * i // ROWS))] for i in range(ROWS)])
Y = {"signs": SIGNS, "numbers": NUMBERS, "letters": LETTERS, "several": np.column_stack([NUMBERS, POINTS[:, 2]]),
     "none": None}


class Own(ok.Loss):
    """A loss in Python."""

    task = "regression"

    def __init__(self):
        pass

    def derivative(self, score, y):
        return max(-1.0, min(1.0, score - y))


class OwnMany(ok.Loss):
    """A loss of many classes in Python."""

    task = "multiclass"

    def __init__(self):
        pass

    def derivative(self, scores, y):
        return np.clip(scores - np.where(np.arange(len(scores)) == y, 1.0, -1.0), -1.0, 1.0)


def overlap(a, b):
    """A kernel in Python, on words."""
    return float(len(set(str(a)) & set(str(b))))


def near(x, z):
    """A kernel in Python, on rows."""
    return float(np.exp(-np.sum((x - z) ** 2)))


class Kind:
    """How to make a model, what kind of rows it learns and what y they have."""

    is_composite = False

    def __init__(self, make, y="signs", rows="dense"):
        self.make, self.y, self.rows = make, Y[y], rows

    def points(self, first, last, points=POINTS):
        if self.rows == "words":
            return WORDS[first:last]
        if self.rows == "sparse":
            return csr_matrix(points[first:last])
        if self.rows == "mixed":
            return [{"word": WORDS[i % 60] if i % 7 else None, "number": float(points[i, 0]) if i % 5 else None,
                     "day": f"2024-{1 + i % 12:02}-11"} for i in range(first, last)]
        if self.rows == "places":  # in a Gram matrix
            return np.arange(first, last)[:, None]
        return points[first:last].astype(np.float32 if self.rows == "single" else np.float64)

    def call(self, model, first, last):
        """To be called to learn some rows."""
        X, y = self.points(first, last), None if self.y is None else self.y[first:last]
        if last == first + 1 and self.rows != "sparse" and first > 0:
            return functools.partial(model.learn_one, X[0], None if y is None else y[0].tolist())
        return functools.partial(model.partial_fit, X, y)

    def scores(self, model):
        points = WORDS[:20] if self.rows == "words" else self.points(0, len(NEW), NEW)
        for method in ("decision_function", "predict"):
            if hasattr(model, method):
                return np.asarray(getattr(model, method)(points), dtype=float)

    def learned_by(self, model):
        """How many rows."""
        return getattr(model, "t_", 0)


class Composite(Kind):
    """A model of several members."""

    is_composite = True


class Transformer(Kind):
    """What learns from rows alone, and transforms them."""

    def __init__(self, make, rows="dense"):
        super().__init__(make, "none", rows)

    def call(self, model, first, last):
        X = self.points(first, last)
        if last == first + 1:
            return functools.partial(model.learn_one, X[0])
        return functools.partial(model.partial_fit, X)

    def scores(self, model):
        return model.transform(self.points(0, len(NEW), NEW))

    def learned_by(self, model):
        return int(getattr(model, "count_", getattr(model, "t_", 0)))


def members():
    return {"posterior": ok.KRLS("squared", G, budget=9), "near": ok.Smoother("squared", G),
            "line": ok.SILK("squared", "linear")}


def label_members():
    return {"posterior": ok.KRLS("multiclass_squared", G, budget=9), "near": ok.Smoother("multiclass_squared", G),
            "line": ok.PassiveAggressive("multiclass_hinge", "linear")}


TREE = {**dict.fromkeys("abc", "low"), **dict.fromkeys("defg", "high"), "low": "all", "high": "all"}
G, SPLINE = ok.Gaussian(0.7), 0.15 * ok.AdditiveSpline(1, bounds=(-2.0, 2.0))
KINDS = {
    # Terms under every budget
    "norma": Kind(lambda: ok.NORMA("hinge", G, step=0.3, offset=True)),
    "norma average": Kind(lambda: ok.NORMA("squared", G, average=True, regularization=0.3, step=0.5), "numbers"),
    "recent": Kind(lambda: ok.NORMA("squared", G, budget=30, step=0.2), "numbers"),
    "recent single": Kind(lambda: ok.NORMA("squared", G, budget=30, step=0.2), "numbers", "single"),
    "window": Kind(lambda: ok.NORMA("squared", ok.Laplacian(0.5), budget=ok.Window(31), step=0.2), "numbers"),
    "sublinear": Kind(lambda: ok.NORMA("nuinsensitive", ok.Gaussian(2) + ok.Linear(), budget=ok.Sublinear()),
                      "numbers"),
    "smallest": Kind(lambda: ok.NORMA("huber", G, step=0.1, budget=ok.Smallest(30), regularization=0.2), "numbers"),
    "random removal": Kind(lambda: ok.Perceptron(G, budget=ok.RandomRemoval(30))),
    "random removal, made up for": Kind(
        lambda: ok.NORMA("hinge", G, budget=ok.RandomRemoval(30, bound=0.3), step=0.3)),
    "redundant": Kind(lambda: ok.Perceptron(G, budget=ok.Redundant(24, tighter=True))),
    "redundant labels": Kind(lambda: ok.Perceptron(G, update="uniform", budget=ok.Redundant(24)), "letters"),
    "merging": Kind(lambda: ok.NORMA("hinge", G, budget=ok.Merging(24), step=0.3)),
    "merging labels": Kind(lambda: ok.Perceptron(G, update="uniform", budget=ok.Merging(24)), "letters"),
    "projecting": Kind(lambda: ok.NORMA("squared", G, budget=ok.Projecting(24), step=0.2), "numbers"),
    "projecting labels": Kind(lambda: ok.NORMA("multiclass_logistic", G, budget=ok.Projecting(9), step=0.3), "letters"),
    "quantized": Kind(lambda: ok.NORMA("squared", G, budget=ok.Quantized(0.9, 24), step=0.2), "numbers"),
    "absorbing": Kind(lambda: ok.PassiveAggressive("hinge", G, budget=ok.Absorbing(24))),
    "random removal by importance": Kind(
        lambda: ok.NORMA("hinge", G, budget=ok.RandomRemoval(30, bound=0.3, importance=True), step=0.3)),
    "forgetron": Kind(lambda: ok.Forgetron(G, budget=24)),
    "projectron": Kind(lambda: ok.Projectron(G, aggressive=True, budget=24)),
    "fading": Kind(lambda: ok.NORMA("squared", G, step=0.5, regularization=1.99), "numbers"),
    "wiped": Kind(lambda: ok.NORMA("squared", G, step=0.5, regularization=2.0), "numbers"),
    # Rules
    "silk": Kind(lambda: ok.SILK("hinge", G)),
    "silk own width": Kind(lambda: ok.SILK("nunovelty"), "none"),
    "ilk": Kind(lambda: ok.ILK("squared", G, exact=True, budget=9), "numbers"),
    "svmd": Kind(lambda: ok.SVMD("squared", G, exact_norms=True, budget=9, offset=True), "numbers"),
    "svmd labels": Kind(lambda: ok.SVMD("multiclass_logistic", G, offset=True), "letters"),
    "pa": Kind(lambda: ok.PassiveAggressive("insensitive", G, budget=ok.Recent(9)), "numbers"),
    "projection": Kind(lambda: ok.Projection("absolute", G, radius=1.5, budget=9), "numbers"),
    "alma": Kind(lambda: ok.ALMA(G)),
    "romma": Kind(lambda: ok.ROMMA(G + ok.Noise(0.5))),  # which separates any labels
    "ballseptron": Kind(lambda: ok.Ballseptron(G, radius=0.2, budget=9)),
    "voted": Kind(lambda: ok.VotedPerceptron(G)),
    "lasvm": Kind(lambda: ok.LASVM(G)),
    # Labels
    "pairs": Kind(lambda: ok.Perceptron(G, update="runner-up", budget=24), "letters"),
    "all labels": Kind(lambda: ok.SILK("multiclass_squared", G), "letters"),
    "taxonomy": Kind(lambda: ok.NORMA("graph_hinge", G, labels=ok.Taxonomy(TREE), budget=9), "letters"),
    "label graph": Kind(lambda: ok.ILK("graph_hinge", "linear",
                                       labels=ok.LabelGraph([*zip("abcdef", "bcdefg", [1.0] * 6)])), "letters"),
    "several targets": Kind(lambda: ok.NORMA("squared", G, budget=9), "several"),
    # Other rows, other functions
    "sparse": Kind(lambda: ok.NORMA("hinge", G, step=0.3, budget=24), rows="sparse"),
    "sparse unlimited": Kind(lambda: ok.NORMA("squared", G, step=0.3), "numbers", "sparse"),
    "sparse weights": Kind(lambda: ok.NORMA("multiclass_hinge", "linear"), "letters", "sparse"),
    "words": Kind(lambda: ok.NORMA("hinge", overlap, step=0.05, budget=ok.Smallest(9)), rows="words"),
    "words projection": Kind(lambda: ok.Projection("absolute", overlap, radius=0.5), "numbers", "words"),
    "gram": Kind(lambda: ok.NORMA("hinge", ok.Precomputed(POINTS @ POINTS.T), budget=9), rows="places"),
    "callable": Kind(lambda: ok.NORMA("squared", near, budget=ok.Window(9)), "numbers", "objects"),
    "own loss": Kind(lambda: ok.NORMA(Own(), G, budget=9), "numbers"),
    "logistic": Kind(lambda: ok.NORMA("logistic", "linear", average=True, step=ok.InverseSqrt(0.5))),
    "weights": Kind(lambda: ok.NORMA("multiclass_hinge", "linear", average=True, offset=True), "letters"),
    "trees": Kind(lambda: ok.NORMA("multiclass_logistic", SPLINE), "letters"),
    "budgeted trees": Kind(lambda: ok.NORMA("multiclass_logistic", SPLINE, budget=24, regularization=0.5), "letters"),
    "fourier": Kind(lambda: ok.NORMA("hinge", ok.RandomFourier(G, 20) + ok.Linear(), step=0.3)),
    "nystroem": Kind(lambda: ok.NORMA("squared", ok.Nystroem(G, 20), step=0.2), "numbers"),
    "nystroem labels": Kind(lambda: ok.NORMA("multiclass_hinge", ok.Nystroem(G, 9) + ok.Nystroem(ok.Gaussian(2.0), 12)),
                            "letters"),
    "nystroem sparse": Kind(lambda: ok.NORMA("squared", ok.Nystroem(ok.Polynomial(2), 12), step=ok.MetaDescent()),
                            "numbers", "sparse"),
    # Scaled
    "scaled": Kind(lambda: ok.NORMA("squared", G, scale=True, scale_target=True, budget=9), "numbers"),
    "scaled sparse": Kind(lambda: ok.NORMA("hinge", G, scale=True), rows="sparse"),
    "scaled own loss": Kind(lambda: ok.NORMA(Own(), G, scale=True), "numbers"),
    "encoded": Kind(lambda: ok.NORMA("squared", G, encode=True, budget=9), "numbers", "mixed"),
    # Posteriors
    "krls": Kind(lambda: ok.KRLS("squared", G, budget=9, memory=0.98), "numbers"),
    "krls unlimited": Kind(lambda: ok.KRLS("squared", G, noise="auto"), "numbers"),
    "krls weights": Kind(lambda: ok.KRLS("squared", ok.Linear(), noise="auto"), "numbers"),
    "krls nystroem": Kind(lambda: ok.KRLS("squared", ok.Nystroem(G, 20), noise=0.1), "numbers"),
    "krls labels": Kind(lambda: ok.KRLS("multiclass_squared", G, budget=9), "letters"),
    "krls sparse": Kind(lambda: ok.KRLS("squared", G, budget=9), "numbers", "sparse"),
    "krls words": Kind(lambda: ok.KRLS("squared", overlap, budget=9), "numbers", "words"),
    "krls scaled": Kind(lambda: ok.KRLS("squared", G, scale=True, scale_target=True, budget=9), "numbers"),
    # Local averages
    "smoother": Kind(lambda: ok.Smoother("squared", G, budget=30), "numbers"),
    "smoother labels": Kind(lambda: ok.Smoother("multiclass_squared", G, scale=True), "letters"),
    "smoother density": Kind(lambda: ok.Smoother("nunovelty", G, budget=ok.Reservoir(40)), "none"),
    # Models of several
    "selftuned": Composite(lambda: ok.SelfTuned(window=100, budget=9), "numbers"),
    "selftuned labels": Composite(lambda: ok.SelfTuned("multiclass_squared", axes="own", window=100, budget=9),
                                  "letters"),
    "stacking": Composite(lambda: ok.Stacking(members()), "numbers"),
    "stacking several": Composite(lambda: ok.Stacking(members(), n_jobs=2), "several"),
    "stacking labels": Composite(lambda: ok.Stacking(label_members()), "letters"),
    "hedge": Composite(lambda: ok.Hedge(members()), "numbers"),
    "hedge labels": Composite(lambda: ok.Hedge(label_members()), "letters"),
    "stacking own code": Composite(lambda: ok.Stacking({"loss": ok.NORMA(Own(), G, budget=9),
                                                        "near": ok.Smoother("squared", G),
                                                       "kernel": ok.NORMA("squared", near, budget=9)}), "numbers"),
    "stacking own loss labels": Composite(lambda: ok.Stacking({"loss": ok.NORMA(OwnMany(), G, budget=9),
                                                               **label_members()}), "letters"),
    "stacking nested": Composite(lambda: ok.Stacking({"all": ok.Hedge({"loss": ok.NORMA(Own(), G, budget=9),
                                                                       **members()}),
                                                     "tuned": ok.SelfTuned(window=100, budget=9)}), "numbers"),
    "front door numbers": Composite(lambda: ok.OnlineKernelRegressor("low"), "numbers"),
    "front door labels": Composite(lambda: ok.OnlineKernelClassifier("low"), "letters"),
    "front door novelty": Composite(lambda: ok.OnlineKernelDetector(0.1, "low"), "none"),
    "front door sparse": Composite(lambda: ok.OnlineKernelRegressor("low"), "numbers", "sparse"),
    # What comes before models, or stands alone
    "scaler": Transformer(lambda: ok.RunningScaler()),
    "encoder": Transformer(lambda: ok.RunningEncoder(slots=4), "mixed"),
    "hebbian": Transformer(lambda: ok.KernelHebbian(2, G, budget=20)),
}
KINDS = {name: kind for name, kind in KINDS.items() if csr_matrix or kind.rows != "sparse"}
