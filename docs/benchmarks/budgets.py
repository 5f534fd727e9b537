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
    ("PA-I, Recent", lambda n: passive(ok.Recent(n)), None),
    ("PA-I, Merging", lambda n: passive(ok.Merging(n)), 3.0),
    ("PA-I, Projecting", lambda n: passive(ok.Projecting(n)), 12.0),
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
