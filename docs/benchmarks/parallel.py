"""Past one process: a bank of a million keys on the workers of Dask, and functions of partitions that become one.

    python docs/benchmarks/parallel.py             # a minute or two; needs dask and distributed
    python docs/benchmarks/parallel.py --quick     # fewer keys

The bank: 4 features, a budget of 10, novelty; chunks of 200,000 rows whose keys are drawn from all. Microseconds of
processor time for each row: of the process that sends rows ("client"), and of all workers together. "Rows per second"
is what these allow if every process has a processor for itself: one over the larger of the client's time and a
worker's share. Wall time is that of the machine as it is. "Here" sends rows from the client; "there" lets each worker
make its own (`learn_from`), so that nothing travels.

Partitions: four of them with 10,000 rows each, a function of two of eight features. `combine` averages the four
functions; "stacked" learns a linear model of their four scores on 1,000 rows more. (`Stacking` itself begins with
members that have learned nothing.) Accuracy is that of 10,000 rows which nobody has seen, seconds are those of the
longest chain: the slowest partition, then what comes after it.
"""

import argparse
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import KRLS, SILK, Bank, Gaussian, Linear, combine  # noqa: E402
from onlinekernels.parallel import PartitionedBank, part_of  # noqa: E402

FEATURES, BUDGET, ROWS, ROUNDS = 4, 10, 200_000, 5


def bank():
    return Bank(FEATURES, "novelty", Gaussian(1.0), budget=BUDGET)


def chunk(keys, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, FEATURES)), rng.integers(0, keys, size=ROWS)


def all_keys(keys):
    """Rows in which every key appears once, in chunks."""
    rng = np.random.default_rng(0)
    for begin in range(0, keys, ROWS):
        some = np.arange(begin, min(begin + ROWS, keys))
        yield rng.normal(size=(len(some), FEATURES)), some


def rows_of(keys, part, parts):
    """What a worker reads by itself: chunks of keys that are its own."""
    mine = np.arange(keys)
    mine = mine[part_of(mine, parts) == part]
    rng = np.random.default_rng(part)
    for _ in range(ROUNDS):
        count = ROWS // parts
        yield rng.normal(size=(count, FEATURES)), None, mine[rng.integers(0, len(mine), size=count)]


def on_one(keys):
    model = bank()
    for X, some in all_keys(keys):
        model.partial_fit(X, keys=some)
    chunks = [chunk(keys, seed) for seed in range(ROUNDS)]
    start, wall = time.process_time(), time.perf_counter()
    for X, some in chunks:
        model.progressive(X, keys=some)
    spent, took = time.process_time() - start, time.perf_counter() - wall
    line("one bank, no Dask", 1e6 * spent / (ROUNDS * ROWS), 0.0, 1e6 * took / (ROUNDS * ROWS), 1)


def on_workers(keys, workers):
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:

            def worker_times():
                return np.array(list(client.run(time.process_time).values()))

            many = PartitionedBank(bank(), client)
            for X, some in all_keys(keys):
                many.partial_fit(X, keys=some)
            chunks = [chunk(keys, seed) for seed in range(ROUNDS)]
            before, start, wall = worker_times(), time.process_time(), time.perf_counter()
            for X, some in chunks:
                many.progressive(X, keys=some)
            spent, took = time.process_time() - start, time.perf_counter() - wall
            there = (worker_times() - before).sum()
            total = ROUNDS * ROWS
            line(
                f"{workers} workers, rows from here",
                1e6 * spent / total,
                1e6 * there / total,
                1e6 * took / total,
                workers,
            )

            reading = sum(
                client.gather([client.submit(time_to_make, keys, part, workers, pure=False) for part in range(workers)])
            )
            before, start, wall = worker_times(), time.process_time(), time.perf_counter()
            learned = many.learn_from(lambda part, parts: rows_of(keys, part, parts))
            spent, took = time.process_time() - start, time.perf_counter() - wall
            there = (worker_times() - before).sum() - reading
            line(
                f"{workers} workers, rows from there",
                1e6 * spent / learned,
                1e6 * there / learned,
                1e6 * took / learned,
                workers,
            )
            return many


def time_to_make(keys, part, parts):
    """Seconds that a worker takes to make its rows, which is not learning."""
    start = time.process_time()
    for _ in rows_of(keys, part, parts):
        pass
    return time.process_time() - start


def line(name, client, workers, wall, count):
    allowed = 1.0 / max(client, workers / count)
    print(f"{name:28} {client:8.3f} {workers:8.3f} {wall:8.3f} {allowed:8.1f}", flush=True)


# ---- Partitions -------------------------------------------------------------------------------


def problem(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "same", "other")


def partitions(count=4, n=10_000):
    test, truth = problem(10_000, 99)
    small = {"loss": "hinge", "kernel": Gaussian(2.0), "budget": 500}

    def learned(model, rows, labels):
        start = time.process_time()
        model.partial_fit(rows, labels, classes=["other", "same"])
        return model, time.process_time() - start

    parts, times = zip(*[learned(SILK(**small), *problem(n, seed)) for seed in range(count)])
    every = [np.concatenate(columns) for columns in zip(*[problem(n, seed) for seed in range(count)])]
    single, alone = learned(SILK(**{**small, "budget": count * 500}), *every)
    start = time.process_time()
    whole = combine(parts)
    combining = time.process_time() - start
    fresh, labels = problem(1000, 50)
    start = time.process_time()
    second = KRLS("squared", Linear() + 1).fit(said(parts, fresh), np.where(labels == "same", 1.0, -1.0))
    stacking = time.process_time() - start
    print(f"\n{count} partitions of {n} rows{'':8} seconds accuracy")
    for name, seconds, answers in (
        ("each by itself", max(times), [part.predict(test) for part in parts]),
        ("one pass over all", alone, [single.predict(test)]),
        ("combine", max(times) + combining, [whole.predict(test)]),
        ("stacked", max(times) + stacking, [np.where(second.predict(said(parts, test)) > 0, "same", "other")]),
    ):
        print(f"{name:32} {seconds:8.2f} {np.mean([np.mean(one == truth) for one in answers]):8.3f}", flush=True)


def said(models, X):
    """What each model says of each row, a column for each model."""
    return np.column_stack([model.decision_function(X) for model in models])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the keys, one and two workers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    keys, workers = (100_000, [1, 2]) if options.quick else (1_000_000, options.workers)
    print(f"{keys} keys{'':18} {'client':>8} {'workers':>8} {'wall':>8}   10^6 rows/s   (microseconds per row)")
    on_one(keys)
    for count in workers:
        on_workers(keys, count)
    partitions()


if __name__ == "__main__":
    main()
