"""How fast NORMA learns and predicts, against the bare matrix product that it cannot do without.

    python docs/benchmarks/learning.py                # one thread, then two
    python docs/benchmarks/learning.py --threads 1 --quick

Times are microseconds per example; each ratio is taken in one run, with the contestants interleaved
and medians compared, because machines are noisy.  A * marks a ratio that misses its bar.

    matmul        np.matmul of a chunk of 256 examples with the supports
    +exp+dot      matmul, then np.exp in place, then K @ a: what any predictor must do
    chunked       partial_fit, every example entering / few examples entering
    predict       decision_function on the same 256 examples
    S @ x, exp    one example at a time, bare
    learn_one     ours, validation included
"""
import argparse
import os
import random
import subprocess
import sys
import time

SIZES = [(512, 256), (1024, 16), (4096, 784), (128, 784)]
CHUNK = 256
# What the chunked ratio is taken against, and the bar: one thread, float64, every example entering
BARS = {
    (512, 256): ("matmul", 1.25),
    (4096, 784): ("matmul", 1.15),
    (1024, 16): ("bare", 1.4),
    (128, 784): ("matmul", 1.3),
}
PREDICT_BAR, ONE_BAR, SINGLE_BAR = 1.1, 4.0, 1.7
THREAD_VARIABLES = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                    "VECLIB_MAXIMUM_THREADS"]


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(contestants, seconds):
    """Median over turns of each function's best time in a turn, in microseconds."""
    import numpy as np

    for run in contestants.values():
        run()
    times = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    shuffled = list(contestants.items())
    while time.perf_counter() < end or len(times[shuffled[0][0]]) < 5:
        random.shuffle(shuffled)                        # nobody always follows the one who warms its cache
        for name, run in shuffled:
            run()                                       # not timed: brings its data into the cache
            times[name].append(min(timed(run) for _ in range(4)))
    return {name: 1e6 * float(np.median(taken)) for name, taken in times.items()}


def contestants(supports, features, dtype):
    """The functions to time, and how many examples each handles."""
    import numpy as np

    from onlinekernels import NORMA, Gaussian, Hinge

    rng = np.random.default_rng(0)
    rows = 4 * CHUNK
    X = rng.normal(size=(max(rows, supports), features)).astype(dtype)
    X /= np.sqrt(features)
    y = rng.choice([-1, 1], len(X))

    def filled(margin):
        model = NORMA(Hinge(margin), Gaussian(1.0), step=0.1, regularization=1e-3, budget=supports)
        for _ in range(-(-supports // len(X))):
            model.partial_fit(X, y, classes=[-1, 1], sample_weight=np.ones(len(X)))
        return model

    entering, predicting = filled(1e6), filled(1e6)
    resting = filled(1e6)
    S, a = predicting.support_vectors_.copy(), predicting.dual_coef_[0].copy()
    chunk, K = X[:CHUNK].copy(), np.empty((CHUNK, supports), dtype)
    few = np.zeros(rows)
    few[::100] = 1.0                                    # one example in a hundred makes a term
    one, one_of = X[:64].copy(), list(X[:64])

    def bare():
        np.matmul(chunk, S.T, out=K)
        np.exp(K, out=K)
        return K @ a

    def bare_one():
        for x in one:
            np.exp(S @ x)

    def learn_one():
        for x in one_of:
            entering.learn_one(x, 1)

    return {
        "matmul": (lambda: np.matmul(chunk, S.T, out=K), CHUNK),
        "bare": (bare, CHUNK),
        "chunked": (lambda: entering.partial_fit(X[:rows], y[:rows]), rows),
        "few": (lambda: resting.partial_fit(X[:rows], y[:rows], sample_weight=few), rows),
        "predict": (lambda: predicting.decision_function(chunk), CHUNK),
        "bare one": (bare_one, len(one)),
        "learn_one": (learn_one, len(one)),
    }


def measure(supports, features, seconds):
    """Microseconds per example by precision and contestant, all of them interleaved."""
    import numpy as np

    runs = {dtype: contestants(supports, features, dtype) for dtype in (np.float64, np.float32)}
    times = medians({(dtype, name): run for dtype in runs for name, (run, _) in runs[dtype].items()}, seconds)
    return {dtype: {name: times[dtype, name] / runs[dtype][name][1] for name in runs[dtype]} for dtype in runs}


def marked(value, bar, digits=2):
    """A ratio with a star if it misses its bar."""
    return f"{value:.{digits}f}{'*' if bar is not None and value > bar else ' '}"


def report(threads, seconds):
    import numpy as np

    print(f"\n{threads} thread{'s' if threads > 1 else ''}, numpy {np.__version__}; microseconds per example")
    header = ("supports features dtype  | matmul +exp+dot | chunked  few | /matmul /+exp+dot | predict /+exp+dot"
              " | S@x,exp learn_one  more")
    print(header)
    print("-" * len(header))
    chunked = {}
    for supports, features in SIZES:
        for dtype, t in measure(supports, features, seconds).items():
            judged = threads == 1 and dtype is np.float64
            against, bar = BARS.get((supports, features), (None, None)) if judged else (None, None)
            chunked[supports, features, dtype] = t["chunked"]
            print(
                f"{supports:8d} {features:8d} {np.dtype(dtype).name} | {t['matmul']:6.2f} {t['bare']:8.2f} |"
                f" {t['chunked']:7.2f} {t['few']:6.2f} |"
                f" {marked(t['chunked'] / t['matmul'], bar if against == 'matmul' else None):>7}"
                f" {marked(t['chunked'] / t['bare'], bar if against == 'bare' else None):>9} |"
                f" {t['predict']:7.2f} {marked(t['predict'] / t['bare'], PREDICT_BAR if judged else None):>9} |"
                f" {t['bare one']:7.1f} {t['learn_one']:9.1f}"
                f" {marked(t['learn_one'] - t['bare one'], ONE_BAR if judged and supports == 512 else None, 1):>6}",
                flush=True,
            )
    gain = chunked[4096, 784, np.float64] / chunked[4096, 784, np.float32]
    star = "*" if threads == 1 and gain < SINGLE_BAR else ""
    print(f"float32 is {gain:.2f}{star} times as fast as float64 at 4096 supports, 784 features")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of BLAS threads")
    parser.add_argument("--quick", action="store_true", help="a rough look in a few seconds")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        report(arguments.worker, 1.0 if arguments.quick else 8.0)
        return
    for threads in arguments.threads:                   # BLAS reads its variables when numpy is imported
        environment = {**os.environ, **{name: str(threads) for name in THREAD_VARIABLES}}
        command = [sys.executable, __file__, "--worker", str(threads)] + ["--quick"] * arguments.quick
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
