"""A storm: threads look at a model in every way there is while another thread learns.

Run as a program, in a process of its own: python storm.py SECONDS [NAME ...], with names of the registry.  The same
stream is learned twice.  The first time alone, noting what every attribute and method gives after each call; the second
time in the storm, where each thing that is read must be one of these, to the bit.
"""
import pickle
import sys
import threading
import time
import warnings
import zlib

import numpy as np

from contracts.registry import KINDS, WORDS, Transformer

NAMES = [name for name, kind in KINDS.items() if not isinstance(kind, Transformer)]

ATTRIBUTES = ("support_vectors_", "dual_coef_", "n_terms_", "knots_", "intercept_", "coef_", "norm_", "t_", "step_",
              "n_features_in_", "classes_", "margin_", "width_", "offset_", "noise_", "weights_", "errors_",
              "relevance_")


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
    ways |= {name: method(name, few)
             for name in ("predict", "decision_function", "predict_proba", "score_samples", "predict_interval")}
    ways |= {"component": component, "pickle": pickle.dumps,
             "copy": lambda model: pickle.dumps(pickle.loads(pickle.dumps(model)))}
    if not isinstance(X, list):
        ways["predict_one"] = method("predict_one", X[0])
    return ways


def digest(value):
    """A number that tells values apart to the bit."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    return zlib.crc32(value if isinstance(value, bytes) else pickle.dumps(value))


SIZES = (5, 1, 30, 2, 50, 1, 31)  # of the calls into which the stream is cut


def storm(name, seconds):
    """Return what went wrong, a list of sentences."""
    kind = KINDS[name]
    ways, known = looks(WORDS[:20] if kind.rows == "words" else kind.points(0, 20)), {}
    ends = np.cumsum(SIZES).tolist()
    calls = list(zip([0, *ends[:-1]], ends))

    def learn(model, call):
        kind.call(model, *call)()

    model = kind.make()
    for call in calls:
        learn(model, call)
        for way, look in ways.items():
            known.setdefault(way, set()).add(digest(look(model)))
    wrong, current, done = [], [kind.make()], threading.Event()
    learn(current[0], calls[0])

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
        model = kind.make()
        for i, call in enumerate(calls):
            learn(model, call)
            if i == 0:
                current[0] = model
    done.set()
    [thread.join() for thread in threads]
    return [f"{name}: {what}" for what in wrong[:3]]


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)
    warnings.simplefilter("ignore")
    told = []
    for name in sys.argv[2:] or NAMES:
        told += storm(name, float(sys.argv[1]))
    sys.exit("\n".join(told) if told else 0)
