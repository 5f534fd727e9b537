"""What budgets keep and what they cost: accuracy and time on a9a, with the same number of terms.

    python docs/benchmarks/budgets.py                 # 300 terms
    python docs/benchmarks/budgets.py --terms 100

One pass in the given order, Gaussian of width sqrt(50), float32, one BLAS thread. The accuracy is progressive: each
example is predicted before it is learned. Times are of the same run, relative to `NORMA` with `Recent`; contestants
take turns, and medians are compared. A * marks a ratio that misses its bar.

The data is read from a9a.npz in the folder ``data`` of ONLINEKERNELS_SHARED, or of ``shared`` beside the checkout.
"""
import argparse
import os
import pathlib
import statistics
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

import onlinekernels as ok  # noqa: E402

SHARED = pathlib.Path(os.environ.get("ONLINEKERNELS_SHARED", pathlib.Path(__file__).parents[3] / "shared"))
KERNEL = ok.Gaussian(np.sqrt(50))

# (what, a model with so many terms, the ratio that its time may have)
CONTESTANTS = [
    ("NORMA, Recent", lambda n: norma(ok.Recent(n)), None),
    ("NORMA, Smallest", lambda n: norma(ok.Smallest(n)), None),
    ("NORMA, RandomRemoval", lambda n: norma(ok.RandomRemoval(n)), None),
    ("NORMA, Redundant", lambda n: norma(ok.Redundant(n)), None),
    ("NORMA, Redundant, tighter", lambda n: norma(ok.Redundant(n, tighter=True)), None),
    ("NORMA, Merging", lambda n: norma(ok.Merging(n)), 3.0),
    ("NORMA, Projecting", lambda n: norma(ok.Projecting(n)), 12.0),
    ("NORMA, Quantized", lambda n: norma(ok.Quantized(0.9, n)), None),
    ("BOGD", lambda n: norma(ok.RandomRemoval(n, bound=0.2)), None),
    ("BOGD++", lambda n: norma(ok.RandomRemoval(n, bound=1.0, importance=True)), None),
    ("Pegasos, Merging", lambda n: pegasos(ok.Merging(n)), None),
    ("KNLMS", lambda n: NormalizedDescent(n), None),
    ("KRLS, sliding window", lambda n: SlidingWindow(n), None),
    ("PA-I, Recent", lambda n: passive(ok.Recent(n)), None),
    ("PA-I, Merging", lambda n: passive(ok.Merging(n)), 3.0),
    ("PA-I, Projecting", lambda n: passive(ok.Projecting(n)), 12.0),
    ("PA-I, Absorbing: BPA-S", lambda n: passive(ok.Absorbing(n)), None),
    ("PA-I, Quantized", lambda n: passive(ok.Quantized(0.9, n)), None),
    ("Perceptron, Recent", lambda n: ok.Perceptron(KERNEL, budget=n), None),
    ("Perceptron, RandomRemoval", lambda n: ok.Perceptron(KERNEL, budget=ok.RandomRemoval(n)), None),
    ("Forgetron", lambda n: ok.Forgetron(KERNEL, budget=n), None),
    ("Projectron", lambda n: ok.Projectron(KERNEL, budget=n), 12.0),
    ("Projectron++", lambda n: ok.Projectron(KERNEL, aggressive=True, budget=n), 12.0),
]


def norma(budget):
    return ok.NORMA("hinge", KERNEL, step=0.1, regularization=1e-4, budget=budget)


def passive(budget):
    return ok.PassiveAggressive("hinge", KERNEL, penalty=0.1, budget=budget)


def pegasos(budget):
    """With merging, the BSGD of Wang, Crammer and Vucetic."""
    return ok.NORMA("hinge", KERNEL, step=lambda t: 1e3 / t, regularization=1e-3, offset=False, budget=budget)


class NormalizedDescent:
    """KNLMS: steps of 0.1 on k(x, D), for a dictionary D with a coherence of less than 0.9."""

    def __init__(self, size):
        self.size = size

    def progressive(self, X, y):
        every = ok.NORMA(ok.Novelty(1e9), KERNEL, step=1.0, regularization=0.0, budget=ok.Quantized(0.9), offset=False)
        D = every.fit(X).support_vectors_[: self.size]
        known = np.arange(len(X))[:, None] >= [np.flatnonzero((X == row).all(axis=1))[0] for row in D]
        rows = np.where(known, KERNEL(X, D), 0.0)
        lengths = np.sqrt(0.01 + (rows**2).sum(axis=1))
        model = ok.NORMA("squared", "linear", step=0.1, regularization=0.0, offset=False)
        return model.progressive(rows / lengths[:, None], y / lengths) * lengths


class SlidingWindow:
    """KRLS on the latest rows (Van Vaerenbergh, Via, Santamaria 2006): the inverse is bordered, and cut."""

    def __init__(self, size):
        self.size = size

    def progressive(self, X, y):
        inverse, scores = np.zeros((0, 0)), np.zeros(len(y))
        for t in range(len(y)):
            first = max(0, t - self.size)
            row = KERNEL(X[t : t + 1], X[first:t])[0].astype(float) if t else np.zeros(0)
            column = inverse @ row
            scores[t] = column @ y[first:t]
            rest = 1.0 + 1.0 - row @ column     # k(x, x) and the noise
            inverse = np.block([[inverse + np.outer(column, column) / rest, -column[:, None] / rest],
                                [-column[None] / rest, np.array([[1.0 / rest]])]])
            if t >= self.size:
                inverse = inverse[1:, 1:] - np.outer(inverse[1:, 0], inverse[0, 1:]) / inverse[0, 0]
        return scores


def load():
    """(X, y) of a9a, dense."""
    with np.load(SHARED / "data" / "a9a.npz") as data:
        y = data["y_train"].astype(int)
        X = np.zeros((len(y), int(data["n_features"])), dtype=np.float32)
        X[np.repeat(np.arange(len(y)), np.diff(data["indptr_train"])), data["indices_train"]] = 1.0
    return X, y


def run(model, X, y):
    """(accuracy, seconds) of one pass."""
    start = time.perf_counter()
    scores = model.progressive(X, y)
    return float(np.mean(scores * y > 0)), time.perf_counter() - start


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terms", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    X, y = load()
    runs = {name: [] for name, *_ in CONTESTANTS}
    for _ in range(arguments.repeats):
        for name, make, _ in CONTESTANTS:
            runs[name].append(run(make(arguments.terms), X, y))
    usual = statistics.median(seconds for _, seconds in runs["NORMA, Recent"])
    print(f"a9a, {arguments.terms} terms        accuracy    time")
    for name, _, bar in CONTESTANTS:
        ratio = statistics.median(seconds for _, seconds in runs[name]) / usual
        print(f"{name:26} {100 * runs[name][0][0]:7.2f} % {ratio:6.1f}{'*' if bar and ratio > bar else ''}")


if __name__ == "__main__":
    main()
