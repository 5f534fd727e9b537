"""Past one process: a bank of a million keys on the workers of Dask, and models of partitions that become one.

    python docs/benchmarks/parallel.py             # a minute or two; needs dask and distributed
    python docs/benchmarks/parallel.py --quick     # fewer keys
    python docs/benchmarks/parallel.py --scheduler tcp://10.0.0.2:8786 --direct     # a cluster that is there

The bank: 4 features, a budget of 10, novelty; chunks of 200,000 rows whose keys are drawn from all. Microseconds of
processor time for each row: of the process that sends rows ("client"; without --scheduler, Dask's scheduler lives in
it), of the scheduler, and of all workers together. "Allowed" are the millions of rows per second that these times leave
room for if every process has a processor for itself. A call sends, waits and takes answers, one after the other: so it
is one over the sum of client, scheduler (unless --direct) and a worker's share; the wire comes on top. "Seen" are those
of the machine as it is. With --scheduler, "wire" are the bytes per row through the network interfaces of client and
scheduler, both ways (Linux).

Machines can be made of one: network namespaces, with the speed of the wire between them.

    ip link add br0 type bridge; ip link set br0 up
    i=1; for host in client scheduler one two three four; do
        ip netns add $host; ip link add v$i type veth peer name eth0 netns $host; ip link set v$i master br0 up
        ip -n $host addr add 10.0.0.$i/24 dev eth0; ip -n $host link set eth0 up; ip -n $host link set lo up
        tc qdisc add dev v$i root tbf rate 1gbit burst 128kb latency 20ms
        ip netns exec $host tc qdisc add dev eth0 root tbf rate 1gbit burst 128kb latency 20ms; i=$((i+1)); done
    ip netns exec scheduler dask scheduler --host 10.0.0.2 &
    for host in one two three four; do ip netns exec $host dask worker 10.0.0.2:8786 --nthreads 1 --no-dashboard & done
    ip netns exec client python docs/benchmarks/parallel.py --scheduler tcp://10.0.0.2:8786 --direct

Partitions: four of them with 10,000 rows each, a function of two of eight features. `combine` averages the four
functions, `Stacking.from_fitted` learns on 1,000 rows more how to weigh four models, which stay as they are or learn
these rows, too. One pass over all has as many terms or points as the four have together. Accuracy is that of 10,000
rows which nobody has seen, seconds are those of the longest chain: the slowest partition, then what comes after it.
"""

import argparse
import contextlib
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import KRLS, SILK, Bank, Gaussian, Stacking, combine  # noqa: E402
from onlinekernels.parallel import PartitionedBank  # noqa: E402

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


def on_one(keys):
    model = bank()
    for X, some in all_keys(keys):
        model.partial_fit(X, keys=some)
    chunks = [chunk(keys, seed) for seed in range(ROUNDS)]
    start, wall = time.process_time(), time.perf_counter()
    for X, some in chunks:
        model.progressive(X, keys=some)
    spent = time.process_time() - start
    line("one bank, no Dask", (spent, 0.0, 0.0), spent, time.perf_counter() - wall)


def on_workers(keys, count, client, options):
    """Rows from here, with so many parts."""
    many = PartitionedBank(bank(), client, parts=count)
    for X, some in all_keys(keys):
        many.partial_fit(X, keys=some)
    chunks = [chunk(keys, seed) for seed in range(ROUNDS)]

    def send():
        for X, some in chunks:
            many.progressive(X, keys=some)

    here, scheduler, there, wall, *wire = measured(client, options.scheduler, send)
    chain = here + there / count + (0.0 if options.direct else scheduler)
    line(f"{count} workers", (here, scheduler, there), chain, wall, wire)


def measured(client, scheduler, work):
    """What work takes: processor time here, of the scheduler and of all workers, time, bytes here and at the
    scheduler."""

    def spent():
        here, there = used(), client.run_on_scheduler(used) if scheduler else (0.0, 0)
        workers = sum(time for time, _ in client.run(used).values())
        return np.array([here[0], there[0], workers, time.perf_counter(), *([here[1], there[1]] if scheduler else [])])

    before = spent()
    work()
    return spent() - before


def used():
    """(processor time of this process, bytes that have gone through the network interfaces that it sees)."""
    total = 0
    if os.path.exists("/proc/net/dev"):
        with open("/proc/net/dev") as file:
            fields = [text.replace(":", " ").split() for text in file.readlines()[2:]]
        total = sum(int(field[1]) + int(field[9]) for field in fields if field[0] != "lo")
    return time.process_time(), total


def line(name, times, chain, wall, wire=()):
    """Microseconds and bytes for each row, and millions of rows per second."""
    rows = ROUNDS * ROWS
    columns = [
        *(f"{1e6 * seconds / rows:9.3f}" for seconds in times),
        f"{rows / chain / 1e6:9.2f}",
        f"{rows / wall / 1e6:9.2f}",
    ]
    print(f"{name:28}", *columns, *(f"{size / rows:9.1f}" for size in wire), flush=True)


# ---- Partitions -------------------------------------------------------------------------------


def problem(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "same", "other")


def silk(parts=1):
    return SILK("hinge", Gaussian(2.0), budget=500 * parts)


def krls(parts=1):
    return KRLS("multiclass_squared", Gaussian(2.0), budget=200 * parts)


def partitions(make, count=4, n=10_000):
    test, more = problem(10_000, 99), problem(1000, 50)
    every = [np.concatenate(columns) for columns in zip(*[problem(n, seed) for seed in range(count)])]

    def timed(work):
        start = time.process_time()
        return work(), time.process_time() - start

    def learned(model, X, y):
        return timed(lambda: model.partial_fit(X, y, classes=["other", "same"]))

    parts, times = zip(*[learned(make(), *problem(n, seed)) for seed in range(count)])
    ways = {
        "one pass over all": learned(make(count), *every),
        "stacked, frozen": timed(lambda: Stacking.from_fitted(parts, frozen=True).partial_fit(*more)),
        "stacked, and they learn on": timed(lambda: Stacking.from_fitted(parts).partial_fit(*more)),
    }
    if make is not krls:  # its posterior is more than a function
        ways["combined"] = timed(lambda: combine(parts))
    print(f"\n{make.__name__.upper()}, {count} partitions of {n} rows  seconds accuracy")
    print(f"{'each by itself':38} {max(times):6.2f} {np.mean([part.score(*test) for part in parts]):8.3f}")
    for name, (model, seconds) in ways.items():
        chain = seconds if name == "one pass over all" else max(times) + seconds
        print(f"{name:38} {chain:6.2f} {model.score(*test):8.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the keys, one and two workers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument(
        "--scheduler", help="the address of a cluster with so many workers; otherwise they are started here"
    )
    parser.add_argument(
        "--direct", action="store_true", help="rows go from the client to the workers, not by the scheduler"
    )
    options = parser.parse_args()
    keys, workers = (100_000, [1, 2]) if options.quick else (1_000_000, options.workers)
    head = ["client", "scheduler", "workers", "allowed", "seen", *(["wire", "scheduler"] if options.scheduler else [])]
    print(f"{keys:<10} keys{'':13}" + "".join(f"{name:>10}" for name in head), flush=True)
    on_one(keys)
    for count in workers:
        with connected(options, count) as client:
            on_workers(keys, count, client, options)
    for make in (silk, krls):
        partitions(make)


@contextlib.contextmanager
def connected(options, count):
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        place = options.scheduler
        if place is None:
            place = stack.enter_context(
                LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
            )
        client = stack.enter_context(Client(place, direct_to_workers=options.direct))
        client.wait_for_workers(count)
        yield client


if __name__ == "__main__":
    main()
