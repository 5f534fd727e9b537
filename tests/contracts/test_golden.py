"""Golden traces: numbers that the package computed once, for wheels on other platforms and for a core that is
rewritten.

    PYTHONPATH=.:tests python tests/contracts/test_golden.py --write [names]

traces all estimators anew, or those: the package has changed on purpose.

A trace is a handful of numbers that stand for what an estimator of the registry has answered and learned: random
projections of its scores, its coefficients and its points, and scalars as they are.  On the machine that wrote them
ONLINEKERNELS_GOLDEN=strict asks for 1e-13; elsewhere processors and matrix products round in other places, and the
tolerance is 1e-9.  Rows in single precision, where rounding decides, and what is made of several are left out.
"""
import os
import pathlib
import sys
import warnings

import numpy as np
import pytest

from contracts.registry import CHUNKS, KINDS, Transformer

PATH = pathlib.Path(__file__).with_name("golden.npz")
UNSTABLE = {"nystroem sparse", "merging labels"}  # rounding decides which rows are kept
NAMES = [name for name, kind in KINDS.items()
         if name not in UNSTABLE and kind.rows in ("dense", "sparse", "places") and not kind.is_composite
         and not isinstance(kind, Transformer)]
FIELDS = ["progressive", "scores", "dual_coef_", "coef_", "support_vectors_", "intercept_", "norm_", "step_", "margin_",
          "width_", "n_terms_", "t_"]
WEIGHTS = np.random.default_rng(7).normal(size=4096)
TOLERANCE = 1e-13 if os.environ.get("ONLINEKERNELS_GOLDEN") == "strict" else 1e-9


def digest(values):
    """(a random projection of an array, the size that rounding is relative to)."""
    values = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float).ravel()
    parts = np.resize(WEIGHTS, values.size) * values
    return parts.sum(), np.abs(parts).sum()


def traced(name):
    """Numbers and sizes of an estimator, by field; NaN for those that it does not have."""
    kind = KINDS[name]
    model, said, first = kind.make(), [], 0
    for size in CHUNKS:
        X, y = kind.points(first, first + size), None if kind.y is None else kind.y[first : first + size]
        said.append(np.ravel(model.progressive(X, y)))
        first += size
    found = {"progressive": np.concatenate(said), "scores": kind.scores(model)}
    found |= {field: getattr(model, field) for field in FIELDS[2:] if hasattr(model, field)}
    return np.array([digest(found[field]) if field in found else (np.nan, np.nan) for field in FIELDS]).T


def read():
    if not PATH.exists():
        return {}
    with np.load(PATH) as file:
        return dict(zip(file["names"].tolist(), file["traces"]))


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
@pytest.mark.parametrize("name", [name for name in read() if name in KINDS])
def test_traces_are_those_that_were_written(name):
    (numbers, sizes), (expected, _) = traced(name), read()[name]
    for field, number, size, value in zip(FIELDS, numbers, np.fmax(sizes, np.nanmax(sizes[:2])), expected, strict=True):
        assert np.isnan(number) == np.isnan(value), field
        assert np.isnan(value) or abs(number - value) <= (0 if field in ("n_terms_", "t_") else TOLERANCE * size), field


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"] or not set(sys.argv[2:]) <= set(NAMES):
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    kept = read()
    traces = {name: traced(name) if name in (sys.argv[2:] or NAMES) else kept[name] for name in NAMES}
    np.savez_compressed(PATH, names=NAMES, traces=np.array(list(traces.values())))
    print(f"{len(sys.argv[2:] or NAMES)} of {len(NAMES)} traces, {PATH.stat().st_size} bytes")
