"""A storm: threads look at a model in every way there is while another thread learns.

Run as a program, in a process of its own: python storm.py SECONDS [NAME ...], with names of the registry.  The same
stream is learned twice.  The first time alone, noting what every attribute and method gives after each call; the second
time in the storm, where each thing that is read must be one of these, to the bit.
"""
import itertools
import pickle
import sys
import threading
import time
import warnings
import zlib

import numpy as np

from contracts.registry import ATTRIBUTES, KINDS, METHODS, WORDS, Transformer

NAMES = [name for name, kind in KINDS.items() if not isinstance(kind, Transformer)]
CALLS = list(itertools.pairwise([0, *itertools.accumulate([5, 1, 30, 2, 50, 1, 31])]))  # first and last rows


def looks(X):
    """name: a function that looks at a model."""
    ways = {name: lambda model, name=name: getattr(model, name, None) for name in ATTRIBUTES}
    ways |= {name: lambda model, name=name: getattr(model, name)(X[:7]) if hasattr(model, name) else None
             for name in METHODS}
    if not isinstance(X, list):
        ways["predict_one"] = lambda model: model.predict_one(X[0])
    return {**ways, "pickle": pickle.dumps, "copy": lambda model: pickle.dumps(pickle.loads(pickle.dumps(model))),
            "component": lambda model: model.component(1, np.linspace(0.1, 0.9, 5)) if hasattr(model, "knots_")
            else None}


def digest(value):
    """A number that tells values apart to the bit."""
    value = value.toarray() if hasattr(value, "toarray") else value
    return zlib.crc32(value if isinstance(value, bytes) else pickle.dumps(value))


def storm(name, seconds):
    """Return what went wrong, a list of sentences."""
    kind = KINDS[name]
    ways, known = looks(WORDS[:20] if kind.rows == "words" else kind.points(0, 20)), {}
    model = kind.make()
    for call in CALLS:
        kind.call(model, *call)()
        for way, look in ways.items():
            known.setdefault(way, set()).add(digest(look(model)))
    wrong, current, done = [], [kind.make()], threading.Event()
    kind.call(current[0], *CALLS[0])()

    def watch(names):
        while not done.is_set():
            for name in names:
                try:
                    if digest(ways[name](current[0])) not in known[name]:
                        wrong.append(f"{name} is of no state")
                except Exception as error:  # the storm goes on, and tells
                    wrong.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=watch, args=(list(ways)[i::3],)) for i in range(3)]
    [thread.start() for thread in threads]
    end = time.monotonic() + seconds
    while time.monotonic() < end and not wrong:
        model = kind.make()
        for i, call in enumerate(CALLS):
            kind.call(model, *call)()
            if i == 0:
                current[0] = model
    done.set()
    [thread.join() for thread in threads]
    return [f"{name}: {what}" for what in wrong[:3]]


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)
    warnings.simplefilter("ignore")
    sys.exit("\n".join(sum((storm(name, float(sys.argv[1])) for name in sys.argv[2:] or NAMES), [])) or 0)
