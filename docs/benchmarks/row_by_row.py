"""What a row costs that comes alone, against one in a chunk of 500: means, tails, and rows that are dictionaries.

    python docs/benchmarks/row_by_row.py                          # some minutes
    python docs/benchmarks/row_by_row.py classifier krls          # some of the models
    python docs/benchmarks/row_by_row.py --rows 2000              # a look

One thread; ten features; 3,000 rows are learned first. Then three copies of a model learn the same rows, 500 at a time,
in turns: one in a chunk with `progressive`, one row by row with `predict_one` and `learn_one`, one likewise from
dictionaries. Times are those of the processor. All of it is done three times, and each row, or chunk, has the least of
its three: the work is the same, and what others on the machine add is not.

    chunk     microseconds per row in chunks
    row       the mean of `predict_one` and `learn_one` together
    ratio     row / chunk
    dict      microseconds more for a dictionary of ten numbers
    p99       99th percentile / median of the rows
    longest   milliseconds of the longest row

Bars stand beside the figures, and a * marks one that is missed.
"""
import argparse
import gc
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

import onlinekernels as ok  # noqa: E402

FEATURES, FIRST, CHUNK, ROWS, RUNS = 10, 3000, 500, 10_000, 3
NAMES = [f"x{j}" for j in range(FEATURES)]
DICTIONARY, TAIL, LONGEST = 15.0, 4.0, 10.0  # microseconds, times the median, milliseconds
MODELS = {  # name: (maker, task, bar of the ratio, whether tails have bars)
    "classifier": (ok.OnlineKernelClassifier, "classes", 5, True),
    "classifier low": (lambda: ok.OnlineKernelClassifier("low"), "classes", 6, True),
    "regressor": (ok.OnlineKernelRegressor, "numbers", 5, True),
    "regressor low": (lambda: ok.OnlineKernelRegressor("low"), "numbers", 6, True),
    "detector": (ok.OnlineKernelDetector, "novelty", 8, True),
    "detector low": (lambda: ok.OnlineKernelDetector(effort="low"), "novelty", 8, True),
    "selftuned": (lambda: ok.SelfTuned(encode=True), "numbers", 5, False),
    "krls": (lambda: ok.KRLS(kernel=ok.Gaussian(3.0), budget=100, encode=True), "numbers", 6, False),
    "silk": (lambda: ok.SILK("squared", ok.Gaussian(3.0), budget=512, encode=True), "numbers", 12, False),
}


def stream(n):
    """Rows and targets of each task."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    product = X[:, 0] * X[:, 1]
    return X, {"classes": (product > 0).astype(int), "numbers": product + 0.1 * rng.normal(size=n), "novelty": None}


class Timer:
    """Nanoseconds of the processor that calls take."""

    def __init__(self):
        self.spent = []

    def __call__(self, function, *arguments):
        start = time.thread_time_ns()
        function(*arguments)
        self.spent.append(time.thread_time_ns() - start)


def one_by_one(model, rows, targets, timer):
    """Test, then train, with each row alone."""
    def both(x, y):
        model.predict_one(x)
        model.learn_one(x, y)

    for x, y in zip(rows, targets):
        timer(both, x, y)


def run(make, task, n):
    """Microseconds of each chunk, of each row alone, of each dictionary."""
    X, answers = stream(FIRST + n)
    y = answers[task]
    plain = [None] * len(X) if y is None else y.tolist()
    dictionaries = [dict(zip(NAMES, row)) for row in X.tolist()]
    models, timers = [make() for _ in range(3)], [Timer() for _ in range(3)]
    for model, rows in zip(models, (X, X, dictionaries)):
        model.partial_fit(rows[:FIRST], None if y is None else y[:FIRST])
    gc.collect()
    gc.freeze()  # what the benchmark itself holds is not the models' to look through
    for begin in range(FIRST, FIRST + n, CHUNK):
        part = slice(begin, begin + CHUNK)
        timers[0](models[0].progressive, X[part], None if y is None else y[part])
        one_by_one(models[1], X[part], plain[part], timers[1])
        one_by_one(models[2], dictionaries[part], plain[part], timers[2])
    gc.unfreeze()
    return [1e-3 * np.array(timer.spent) for timer in timers]


def measured(make, task, n):
    """(microseconds per row in chunks, those of each row alone, of each dictionary): the least of several runs."""
    chunks, alone, named = (np.min(times, axis=0) for times in zip(*(run(make, task, n) for _ in range(RUNS))))
    return chunks.sum() / n, alone, named


def against(figure, bar, digits=1):
    """A figure, its bar, and a * if it is missed."""
    return f"{figure:8.{digits}f}" + (f" ({bar:g})" + ("*" if figure > bar else " ") if bar else " " * 5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="rows after the first ones; a multiple of 500")
    parser.add_argument("models", nargs="*", help="of " + ", ".join(MODELS))
    options = parser.parse_args()
    print(f"{'':15}{'chunk':>8}{'row':>9}{'ratio':>9}     {'dict':>8}      {'median':>8}{'p99':>9}     {'longest':>8}")
    for name, (make, task, bar, has_tails) in MODELS.items():
        if options.models and name not in options.models:
            continue
        chunk, alone, named = measured(make, task, options.rows)
        median = np.median(alone)
        print(f"{name:15}{chunk:8.1f} {alone.mean():8.1f} {against(alone.mean() / chunk, bar)} "
              f"{against(named.mean() - alone.mean(), DICTIONARY)} {median:8.1f} "
              f"{against(np.percentile(alone, 99) / median, TAIL if has_tails else None)} "
              f"{against(1e-3 * alone.max(), LONGEST if has_tails else None)}", flush=True)


if __name__ == "__main__":
    main()
