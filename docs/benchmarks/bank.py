"""A bank of models: frames per second, rows per second, memory; beside one model per key in a dict.

    python docs/benchmarks/bank.py             # a minute or two
    python docs/benchmarks/bank.py --quick     # some seconds: the format and the rough size

Three questions, each with its bar; a ``*`` marks a figure that misses it.

* Frames: 320 x 240 pixels, three colours, a budget of 20, SILK with the novelty loss, float32, one thread.  "fps" is
  frames per second of processor time, the median over the frames once the models are full; bar: 330.  "best" is the
  fastest tenth, which a busy machine disturbs least.  NORMA, float64 and two threads (by the clock) for comparison.
* Separate models: as many `SILK` objects, each updated by `learn_one`.  Fewer of them are run (they are all alike), and
  the time for a frame is scaled up.  The bank runs in turn with them; bar: 100 times as fast.
* Keys: one model for each of a million keys (--quick: 50,000), budget 10, four features, three rows each.  Bytes are
  those of the bank's arrays, of its dictionary and its keys, and what the process has grown by; bar: 2048 per key.
  Rows per second are of a call with random keys.
"""
import argparse
import os
import resource
import sys
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import SILK, Bank, Gaussian, Novelty  # noqa: E402

HEIGHT, WIDTH, BUDGET = 240, 320, 20
PIXELS = HEIGHT * WIDTH


def pixels(rng, n, dtype=np.float32):
    """Colours of n pixels of a wall, with noise, in levels of 0 to 255."""
    wall = rng.uniform(60, 180, size=(n, 3))
    while True:
        yield np.clip(wall + 4.0 * rng.normal(size=(n, 3)), 0, 255).round().astype(dtype)


def bank_of(n, **params):
    settings = {"rule": "silk", "penalty": 0.1, "regularization": 0.003} | params
    return Bank(3, Novelty(), Gaussian(20.0), n_models=n, budget=BUDGET, **settings)


def times(step, frames, clock):
    """Seconds of each step."""
    taken = []
    for frame in frames:
        begin = clock()
        step(frame)
        taken.append(clock() - begin)
    return np.array(taken)


def starred(value, good, form):
    return f"{value:{form}}{' ' if good else '*'}"


def frames_per_second(count):
    print(f"frames of {WIDTH} x {HEIGHT}, budget {BUDGET}, three features; frames per second")
    print(f"{'':34} {'fps':>7} {'best':>7}")
    cases = [
        ("SILK, float32", np.float32, {}, time.process_time),
        ("SILK, float64", np.float64, {}, time.process_time),
        ("NORMA, float32", np.float32, {"rule": "norma", "penalty": None, "step": 0.1, "regularization": 0.03},
         time.process_time),
        ("SILK, float32, 2 threads, by the clock", np.float32, {"threads": 2}, time.perf_counter),
    ]
    for name, dtype, params, clock in cases:
        source = pixels(np.random.default_rng(0), PIXELS, dtype)
        bank, shown = bank_of(PIXELS, **params), [next(source) for _ in range(10)]
        for i in range(3 * BUDGET):
            bank.partial_fit(shown[i % 10])
        taken = times(bank.progressive, (shown[i % 10] for i in range(count)), clock)
        fps, best = 1 / np.median(taken), 1 / np.quantile(taken, 0.1)
        bar = name == "SILK, float32"
        print(f"{name:34} {starred(fps, not bar or fps >= 330, '6.0f')} {best:7.0f}", flush=True)


def against_separate_models(count, some=300):
    rng = np.random.default_rng(1)
    source = pixels(rng, PIXELS)
    shown = [next(source) for _ in range(10)]
    bank = bank_of(PIXELS)
    models = {pixel: bank._checked_plan().blank() for pixel in range(some)}
    assert isinstance(models[0], SILK)

    def separately(frame):
        for pixel, model in models.items():
            model.learn_one(frame[pixel])

    for i in range(3 * BUDGET):
        bank.partial_fit(shown[i % 10])
        separately(shown[i % 10])
    fast, slow = [], []
    for i in range(count):                          # in turn, so that both meet the same neighbours
        fast.extend(times(bank.partial_fit, [shown[i % 10]], time.process_time))
        slow.extend(times(separately, [shown[i % 10]], time.process_time))
    one, many = np.median(slow) / some, np.median(fast) / PIXELS
    print(f"\none model per key in a dict, {some} of them by learn_one, scaled to {PIXELS}; nanoseconds per example")
    print(
        f"learn_one {1e9 * one:8.0f}   bank {1e9 * many:6.1f}   "
        f"times as fast {starred(one / many, one / many >= 100, '6.0f')}"
    )


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def keys_and_bytes(n_keys):
    rng = np.random.default_rng(2)
    before = resident() if os.path.exists("/proc/self/statm") else 0
    bank = Bank(4, Novelty(), Gaussian(1.0), budget=10)
    piece = 50_000
    for _ in range(3):
        for begin in range(0, n_keys, piece):
            bank.partial_fit(rng.normal(size=(piece, 4)).astype(np.float32), keys=range(begin, begin + piece))
    arrays, names = bank._models.nbytes(), sys.getsizeof(bank._index) + sum(map(sys.getsizeof, bank._index))
    grown = resident() - before if before else 0
    X, keys = rng.normal(size=(200_000, 4)).astype(np.float32), rng.integers(0, n_keys, size=200_000)
    taken = times(lambda rows: bank.partial_fit(X, keys=rows), [keys] * 3, time.process_time)
    each = max(arrays + names, grown) / n_keys
    print(f"\n{n_keys} keys, budget 10, four features, float32; bytes per key")
    print(f"arrays {arrays / n_keys:6.0f}   keys {names / n_keys:5.0f}   process {grown / n_keys:6.0f}   "
          f"most {starred(each, each <= 2048, '6.0f')}")
    print(f"{len(X) / np.median(taken):.0f} rows per second, keys at random")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few frames, fewer keys")
    quick = parser.parse_args().quick
    frames_per_second(20 if quick else 200)
    against_separate_models(3 if quick else 20)
    keys_and_bytes(50_000 if quick else 1_000_000)


if __name__ == "__main__":
    main()
