"""What learning costs where the other scripts do not look, against NumPy that does the same sums for a whole chunk.

    python docs/benchmarks/forms.py
    python docs/benchmarks/forms.py --quick

One BLAS thread, chunks of 1024 rows, every example enters.  Times are microseconds per example; contestants take turns
and medians are compared.  The bare contestant only evaluates: what any learner must do, with no update between two
examples.  There are no bars here: `versions.py` compares with another version.

    linear dense, sparse    f(x) for all rows and the sum of all rows times a number each: X @ w, then c @ X
    many classes, targets   the matrix product with the points, exp, and a product with all coefficients (and a softmax)
    objects                 the kernel, in Python, on all points
    a window                the same with budget=512, by which each candidate takes the place of the oldest
    a taxonomy              as many labels without a structure
"""
import argparse

from rows import LABELS, ROWS, WORKLOADS, in_python, points, sparse_points  # noqa: I001  (sets the threads)

import numpy as np
from learning import medians


def linear(X):
    w, c = np.ones(X.shape[1]), np.ones(X.shape[0])

    def run():
        return X @ w, X.T @ c

    return run, X.shape[0]


def expansion(features, terms, outputs, softmax):
    X, S = points(features), points(features)[:terms].copy()
    A, K = np.ones((terms, outputs)), np.empty((len(X), terms))

    def run():
        np.matmul(X, S.T, out=K)
        np.exp(K, out=K)
        scores = K @ A
        if softmax:
            np.exp(scores - scores.max(axis=1, keepdims=True), out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
        return scores

    return run, len(X)


def calls(terms, rows):
    X = [tuple(x) for x in points(2, rows=rows).tolist()]
    S = X[:terms]

    def run():
        for x in X:
            [in_python(x, z) for z in S]

    return run, rows


# {workload: what it is compared with}
BARE = {
    "linear dense": lambda: linear(points(256)),
    "linear sparse": lambda: linear(sparse_points()),
    "hundred classes logistic": lambda: expansion(64, 512, 100, True),
    "ten targets": lambda: expansion(64, 512, 10, False),
    "objects": lambda: calls(64, 128),
    "a window": WORKLOADS["chunks"],
    "a taxonomy": WORKLOADS["as many labels"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a rough look in a few seconds")
    seconds = 0.5 if parser.parse_args().quick else 6.0
    print(f"numpy {np.__version__}, {ROWS} rows, {len(LABELS)} labels in the taxonomy; microseconds per example")
    print(f"{'':26} |   bare   ours  ratio")
    for name, bare in BARE.items():
        try:
            contestants = {"bare": bare(), "ours": WORKLOADS[name]()}
        except ImportError as error:
            print(f"{name:26} | left out: {error}")
            continue
        times = medians({who: run for who, (run, _) in contestants.items()}, seconds)
        bare_time, own_time = (times[who] / contestants[who][1] for who in ("bare", "ours"))
        print(f"{name:26} | {bare_time:6.2f} {own_time:6.2f} {own_time / bare_time:6.2f}", flush=True)


if __name__ == "__main__":
    main()
