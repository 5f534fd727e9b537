"""Golden traces: numbers that the package computed once, so that a rewritten core can be held against them.

    PYTHONPATH=. python tests/golden.py --compare     # how near is the package to golden.npz, case by case?
    PYTHONPATH=. python tests/golden.py --write       # trace its cases anew: the package has changed on purpose

A trace is a handful of numbers that stand for everything a model shows: random projections of scores, steps,
margins, labels, predictions, coefficients and points, and scalars as they are.  Any change beyond rounding changes
some of them.  The sixty cases have every value of every dimension (rule, loss, kernel, budget, ...) and a large part of the
pairs that go together; rounding is not blown up in them.  Rules have oracles elsewhere: these are for other platforms.
"""
import argparse
import collections
import json
import pathlib
import pickle
import sys
import tempfile
import warnings

import numpy as np
from golden_cases import DIMENSIONS, FEATURES, LABELS, Stream, model_of

import onlinekernels as ok
from onlinekernels.nouns.losses import LOSSES

PATH = pathlib.Path(__file__).with_name("golden.npz")
BLOCKS = 4  # of the stream, so that a difference says where it begins
FIELDS = [*(f"scores {block}" for block in range(BLOCKS)), "steps", "margins", "labels", "decision", "answers",
          "probabilities", "coefficients", "points", "weights", "knots", "component", "intercept", "scalar", "norm",
          "step", "terms", "t"]
# (on the machine that wrote them, anywhere): relative to the size of what is projected.
TOLERANCES = {np.dtype(np.float64): (1e-13, 1e-9), np.dtype(np.float32): (1e-6, 1e-3)}
Number = collections.namedtuple("Number", "value size largest")
WEIGHTS = np.random.default_rng(7).normal(size=(4096, 64))


def digest(values, first=0):
    """A random projection of an array, the size that rounding is relative to, and its largest part."""
    values = np.asarray(values, dtype=float)
    if values.size == 0:
        return Number(0.0, 0.0, 0.0)
    if values.ndim == 0:
        return Number(float(values), abs(float(values)), abs(float(values)))
    values = values.reshape(len(values), -1)
    parts = WEIGHTS[(first + np.arange(len(values))) % len(WEIGHTS), : values.shape[1]] * values
    return Number(float(parts.sum()), float(np.abs(parts).sum()), float(np.abs(parts).max(initial=0.0)))


def together(one, two):
    """Two digests as one."""
    return two if one is None else Number(one.value + two.value, one.size + two.size, max(one.largest, two.largest))


class Trace:
    """What a model shows while it learns, as numbers by name."""

    def __init__(self, spec, stream):
        self.spec, self.stream = spec, stream
        self.numbers = {}

    def add(self, name, number):
        self.numbers[name] = together(self.numbers.get(name), number)

    def learned(self, rows, scores, steps, margins, labels):
        """One chunk."""
        blocks = np.arange(rows.start, rows.stop) * BLOCKS // self.stream.n
        for block in range(blocks[0], blocks[-1] + 1):
            inside = np.flatnonzero(blocks == block)
            self.add(f"scores {block}", digest(scores[inside], rows.start + inside[0]))
        self.add("steps", digest(steps, rows.start))
        self.add("margins", digest(margins, rows.start))
        self.add("labels", digest(self.coded(labels), rows.start))

    @staticmethod
    def coded(labels):
        """Labels as numbers; None, before any has joined, as -1."""
        if np.asarray(labels).dtype.kind in "if":
            return labels
        return [-1 if label is None else LABELS.index(label) if label in LABELS else int(label) for label in labels]

    def finish(self, model):
        """What there is to see at the end."""
        new = self.stream.new
        for name in ("score_samples", "decision_function"):
            if hasattr(model, name):
                self.add("decision", digest(getattr(model, name)(new)))
        self.add("answers", digest(self.coded(model.predict(new))))
        if hasattr(model, "predict_proba"):
            self.add("probabilities", digest(model.predict_proba(new)))
        if hasattr(model, "dual_coef_"):
            self.add("coefficients", digest(model.dual_coef_.T))
        for field, name in (("points", "support_vectors_"), ("weights", "coef_"),
                            ("intercept", "intercept_"), ("scalar", "margin_"), ("scalar", "width_"),
                            ("norm", "norm_"), ("step", "step_"), ("terms", "n_terms_"), ("t", "t_")):
            if hasattr(model, name):
                self.add(field, digest(self.as_numbers(getattr(model, name))))
        if hasattr(model, "knots_"):
            self.add("knots", digest(np.concatenate(model.knots_)))
        if hasattr(model, "component"):
            for j in range(FEATURES):
                self.add("component", digest(model.component(j, np.linspace(0.5, 1.5, 7)), j))
        return self.numbers

    @staticmethod
    def as_numbers(value):
        """Points may be sparse, or words."""
        if hasattr(value, "toarray"):
            return value.toarray()
        if isinstance(value, list) or np.asarray(value).dtype.kind in "OU":
            return [ord(word[0]) + len(word) if isinstance(word, str) else digest(word).value for word in value]
        return value


def learn(trace, model, begin, end):
    """Learn rows begin to end in chunks as the spec says."""
    spec, stream, chunk = trace.spec, trace.stream, trace.spec["chunk"]
    size = 1 if chunk == "one" else chunk
    for first in range(begin, end, size):
        rows = slice(first, min(first + size, end))
        y = None if stream.y is None else stream.y[rows]
        if chunk == "one" and first % 8:
            row = stream.X[first]
            model.learn_one(row, None if y is None else y[0] if spec["targets"] > 1 else y.tolist()[0])
            continue
        named = stream.classes(spec) if first == 0 else {}
        weights = None if stream.w is None else stream.w[rows]
        scores = model.progressive(stream.X[rows], y, sample_weight=weights, return_steps=True, return_margins=True,
                                   return_labels=True, **named)
        trace.learned(rows, *scores)


def half_of(spec, stream):
    """The end of a chunk near the middle of the stream."""
    size = 1 if isinstance(spec["chunk"], str) else spec["chunk"]
    return min(stream.n, max(1, stream.n // 2 // size) * size)


def saved(model):
    """A model file in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.npz"
        model.save(path)
        return path.read_bytes()


def loaded(content, spec, stream):
    """The model in a file, which may lack a kernel or loss in Python."""
    fresh = model_of(spec, stream).get_params(deep=False)
    code = {name: fresh[name] for name in ("kernel", "loss") if is_code(fresh.get(name))}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.npz"
        path.write_bytes(content)
        return ok.load(path, **code)


def is_code(noun):
    return noun is not None and not type(noun).__module__.startswith("onlinekernels")


def changed(model, spec, stream):
    """The model with which to go on after the middle."""
    if spec["midway"] == "save":
        return loaded(saved(model), spec, stream)
    if spec["midway"] == "pickle":
        return pickle.loads(pickle.dumps(model))
    if spec["midway"] == "parameters":
        name = "penalty" if "penalty" in model.get_params(deep=False) else "regularization"
        return model.set_params(**{name: getattr(model, name) * 0.5})
    return model


def traced(spec):
    """The numbers of a model by name."""
    spec = complete(spec)
    stream = Stream(spec)
    trace, model = Trace(spec, stream), model_of(spec, stream)
    if spec["chunk"] == "fit":
        if spec["weights"] or spec["midway"] in ("initial", "parameters"):
            raise ValueError("fit takes no weights, and has no middle")
        model.fit(stream.X, *([] if stream.y is None else [stream.y]), **stream.classes(spec))
        return trace.finish(changed(model, spec, stream))
    if spec["chunk"] == "one" and spec["weights"]:
        raise ValueError("learn_one takes no weights")
    half = half_of(spec, stream)
    learn(trace, model, 0, half)
    model = changed(model, spec, stream)
    if spec["midway"] == "initial":
        first = slice(half, half + 5)
        rest = [None if stream.y is None else stream.y[first]]
        model = model_of(spec, stream).partial_fit(stream.X[first], *rest, initial=model, **stream.classes(spec))
        half += 5
    learn(trace, model, half, stream.n)
    return trace.finish(model)


def traced_bank(spec):
    """Numbers of a bank of nine models in 60 frames."""
    rng = np.random.default_rng(5)
    frames = rng.uniform(0.1, 2.0, size=(60, 9, 3)).astype(spec["rows"])
    numbers = np.sin(3 * frames[..., 0]) + frames[..., 1]
    task = LOSSES[spec["loss"]]().task
    bank = ok.Bank(3, spec["loss"], spec["kernel"], n_models=9, rule=spec["bank"], budget=7, offset=spec["offset"])
    total = {}
    for t, (X, z) in enumerate(zip(frames[:-1], numbers)):
        y = {"binary": np.where(z > 1, 1, -1), "regression": z}.get(task)
        name = f"scores {t // 15}"
        total[name] = together(total.get(name), digest(bank.progressive(X, y), t))
    total["decision"] = digest(bank.scores(frames[-1]))
    total["answers"] = digest(bank.predict(frames[-1]))
    total["terms"] = digest(bank.n_terms_)
    total["t"] = digest(bank.t_)
    return total


def complete(spec):
    """A spec with all its dimensions."""
    return {**{name: values[0] for name, values in DIMENSIONS.items()}, **spec}


def numbers_of(spec):
    """All numbers of a case."""
    return traced_bank(spec) if "bank" in spec else traced(spec)


def precision(spec):
    return np.dtype(np.float32 if spec.get("rows") == "float32" else np.float64)


def difference(numbers, expected):
    """The largest difference to a stored row of values, relative to sizes, and where it is; counts must be equal."""
    worst, where = 0.0, ""
    shown = ("scores", "decision", "answers")
    general = max(number.largest for name, number in numbers.items() if name.startswith(shown))
    for name, value in zip(FIELDS, expected):
        if (name not in numbers) != np.isnan(value):
            return np.inf, name
        if name in numbers and numbers[name].value != value:
            gap, size = abs(numbers[name].value - value), max(numbers[name].size, general)
            fine = np.isfinite(gap) and size > 0 and name not in ("terms", "t")
            relative = gap / size if fine else np.inf
            if relative > worst:
                worst, where = relative, name
    return worst, where


def as_row(numbers):
    return np.array([numbers[name].value if name in numbers else np.nan for name in FIELDS])


# ---- The file ---------------------------------------------------------------------------------------------------


def write():
    cases = read()[0]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ROMMA has started anew|The margin . is out of reach")
        rows = [as_row(numbers_of(case)) for case in cases]
    np.savez_compressed(PATH, cases=np.frombuffer(json.dumps(cases).encode(), dtype=np.uint8), fields=FIELDS, numbers=np.array(rows))
    print(f"{len(cases)} cases, {PATH.stat().st_size} bytes")


def read():
    """(cases, their numbers)."""
    with np.load(PATH) as file:
        assert file["fields"].tolist() == FIELDS
        return json.loads(file["cases"].tobytes()), file["numbers"]


def title(case):
    """A case in a line."""
    return ", ".join(f"{name}={value}" for name, value in case.items())


def compare():
    cases, rows = read()
    equal, beyond = 0, collections.Counter()
    for case, row in zip(cases, rows):
        numbers = numbers_of(case)
        gap, where = difference(numbers, row)
        equal += bool(np.array_equal(as_row(numbers), row, equal_nan=True))
        for name, tolerance in zip(("strict", "anywhere"), TOLERANCES[precision(case)]):
            beyond[name] += not gap <= tolerance
        if not gap <= TOLERANCES[precision(case)][0]:
            print(f"{gap:8.1e} in {where:12}: {title(case)}")
    print(f"{equal} of {len(cases)} cases are equal to the bit; {beyond['strict']} are beyond the strict tolerance, "
          f"{beyond['anywhere']} beyond that for other machines")
    return 1 if beyond["anywhere"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--compare", action="store_true", help="compare the package with golden.npz")
    what.add_argument("--write", action="store_true", help="trace the same cases anew, and write golden.npz")
    arguments = parser.parse_args()
    return compare() if arguments.compare else write()


if __name__ == "__main__":
    sys.exit(main())
