"""A storm: threads look at a model in every way there is while another thread learns.

Run as a program, in a process of its own: python storm.py SECONDS [NAME ...].  The same stream is learned twice.  The
first time alone, noting what every attribute and method gives after each call; the second time in the storm, where each
thing that is read must be one of these, to the bit.
"""
import pickle
import sys
import threading
import time
import zlib

import numpy as np

import onlinekernels as ok

RNG = np.random.default_rng(7)
ROWS = 120
DENSE = RNG.uniform(0.05, 0.95, size=(ROWS, 3))
GRAM = DENSE @ DENSE.T
TWO = np.where(DENSE[:, 0] > DENSE[:, 1], "over", "under")
MANY = np.array(["a", "b", "c", "d"])[(4 * DENSE[:, 2]).astype(int)]
NUMBERS = np.sin(5 * DENSE[:, 0]) + DENSE[:, 1]
TREE = {"a": "left", "b": "left", "c": "right", "d": "right", "left": "top", "right": "top"}


def near(x, z):
    return float(np.exp(-np.sum((np.asarray(x) - np.asarray(z)) ** 2)))


def sparse_rows():
    from scipy.sparse import csr_matrix

    return csr_matrix(np.where(DENSE > 0.5, DENSE, 0.0))


KERNELS = {
    "gaussian": lambda: (ok.Gaussian(0.7), DENSE),
    "laplacian": lambda: (ok.Laplacian(), DENSE),
    "linear": lambda: (ok.Linear(), DENSE),
    "tree": lambda: (ok.AdditiveExponential(), DENSE),
    "precomputed": lambda: (ok.Precomputed(GRAM), np.arange(ROWS)[:, None]),
    "sparse": lambda: (ok.Gaussian(0.7), sparse_rows()),
    "callable": lambda: (near, DENSE),
}
def members(loss, kernel):
    return {"posterior": ok.KRLS(loss, kernel, budget=9), "near": ok.Smoother(loss, kernel), "line": ok.SILK(loss, "linear")}


ALGORITHMS = {
    "norma": (lambda kernel: ok.NORMA("squared", kernel, budget=30), NUMBERS),
    "average": (lambda kernel: ok.NORMA("logistic", kernel, average=True, offset=True), TWO),
    "silk many": (lambda kernel: ok.SILK("multiclass_hinge", kernel, budget=25, offset=True), MANY),
    "taxonomy": (lambda kernel: ok.NORMA("graph_hinge", kernel, labels=ok.Taxonomy(TREE), budget=ok.Window(20)), MANY),
    "svmd": (lambda kernel: ok.SVMD("nunovelty", kernel, budget=20), None),
    "multinomial": (lambda kernel: ok.NORMA("multiclass_logistic", kernel, budget=ok.Smallest(20)), MANY),
    "many squared": (lambda kernel: ok.SILK("multiclass_squared", kernel, budget=20, offset=True), MANY),
    "projection": (lambda kernel: ok.Projection("hinge", kernel, radius=3.0), TWO),
    "perceptron": (lambda kernel: ok.Perceptron(kernel), TWO),
    "alma": (lambda kernel: ok.ALMA(kernel), TWO),
    "voted": (lambda kernel: ok.VotedPerceptron(kernel), TWO),
    "lasvm": (lambda kernel: ok.LASVM(kernel), TWO),
    "passive": (lambda kernel: ok.PassiveAggressive("insensitive", kernel, budget=40), NUMBERS),
    "krls": (lambda kernel: ok.KRLS("squared", kernel, budget=20, memory=0.99, noise="auto"), NUMBERS),
    "krls many": (lambda kernel: ok.KRLS("multiclass_squared", kernel, budget=20), MANY),
    "scaled": (lambda kernel: ok.ILK("squared", kernel, scale=True, budget=30), NUMBERS),
    "smoother": (lambda kernel: ok.Smoother("squared", kernel, budget=30), NUMBERS),
    "self-tuned": (lambda kernel: ok.SelfTuned(budget=9, window=100), NUMBERS),
    "stacking": (lambda kernel: ok.Stacking(members("squared", kernel)), NUMBERS),
    "stacking many": (lambda kernel: ok.Stacking(members("multiclass_squared", kernel), n_jobs=2), MANY),
    "hedge": (lambda kernel: ok.Hedge(members("multiclass_squared", kernel)), MANY),
    "regressor": (lambda kernel: ok.OnlineKernelRegressor("low"), NUMBERS),
    "classifier": (lambda kernel: ok.OnlineKernelClassifier("low"), MANY),
    "detector": (lambda kernel: ok.OnlineKernelDetector(0.1, "low"), None),
}
OF_SEVERAL = list(ALGORITHMS)[list(ALGORITHMS).index("smoother") :]  # one kernel will do
ATTRIBUTES = ("support_vectors_", "dual_coef_", "n_terms_", "knots_", "intercept_", "coef_", "norm_", "t_", "step_",
              "n_features_in_", "classes_", "margin_", "width_", "offset_", "noise_", "weights_", "errors_", "relevance_")


def looks(X):
    """name: a function that looks at a model."""
    few = X[:7]

    def attribute(name):
        return lambda model: getattr(model, name, None)

    def method(name, *arguments):
        return lambda model: getattr(model, name)(*arguments) if hasattr(model, name) else None

    def component(model):
        try:
            return model.component(1, np.linspace(0.1, 0.9, 5))
        except AttributeError:
            return None

    ways = {name: attribute(name) for name in ATTRIBUTES}
    ways |= {name: method(name, few) for name in ("predict", "decision_function", "predict_proba", "score_samples", "predict_interval")}
    ways |= {"component": component, "pickle": pickle.dumps, "copy": lambda model: pickle.dumps(pickle.loads(pickle.dumps(model)))}
    if not isinstance(X, list):
        ways["predict_one"] = method("predict_one", X[0])
    return ways


def digest(value):
    """A number that tells values apart to the bit."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    return zlib.crc32(value if isinstance(value, bytes) else pickle.dumps(value))


def calls(X, y):
    """The stream, cut into calls of different sizes."""
    first, sizes = 0, (5, 1, 30, 2, 50, 1, 31)
    for size in sizes:
        rows = slice(first, first + size)
        yield X[rows], None if y is None else y[rows]
        first += size


def storm(algorithm, kernel, seconds):
    """Return what went wrong, a list of sentences."""
    make, y = ALGORITHMS[algorithm]
    noun, X = KERNELS[kernel]()
    ways, known = looks(X), {}
    classes = None if y is None or y.dtype.kind == "f" or algorithm == "taxonomy" else np.unique(y)

    def learn(model, call):
        model.partial_fit(*call) if classes is None else model.partial_fit(*call, classes=classes)

    model = make(noun)
    for call in calls(X, y):
        learn(model, call)
        for name, look in ways.items():
            known.setdefault(name, set()).add(digest(look(model)))
    wrong, current, done = [], [make(noun)], threading.Event()
    learn(current[0], next(calls(X, y)))

    def watch(names):
        while not done.is_set():
            for name in names:
                try:
                    if digest(ways[name](current[0])) not in known[name]:
                        wrong.append(f"{name} is of no state")
                except Exception as error:  # the storm goes on, and tells
                    wrong.append(f"{name}: {error!r}")

    names = list(ways)
    threads = [threading.Thread(target=watch, args=(names[i::3],)) for i in range(3)]
    [thread.start() for thread in threads]
    end = time.monotonic() + seconds
    while time.monotonic() < end and not wrong:
        model = make(noun)
        for i, call in enumerate(calls(X, y)):
            learn(model, call)
            if i == 0:
                current[0] = model
    done.set()
    [thread.join() for thread in threads]
    getattr(current[0]._state, "engine", current[0])._check()
    return [f"{algorithm} with {kernel}: {what}" for what in wrong[:3]]


def makes_sense(algorithm, kernel):
    if kernel == "callable" and algorithm == "scaled" or kernel == "precomputed" and algorithm == "scaled":
        return False
    return algorithm not in OF_SEVERAL or kernel == "gaussian"


PAIRS = [(a, k) for a in ALGORITHMS for k in KERNELS if makes_sense(a, k)]

if __name__ == "__main__":
    sys.setswitchinterval(1e-5)
    told = []
    for pair in [p for p in PAIRS if not sys.argv[2:] or p[0] in sys.argv[2:]]:
        told += storm(*pair, float(sys.argv[1]))
    sys.exit("\n".join(told) if told else 0)
