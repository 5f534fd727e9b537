"""Numbers of any size: what is learned of them is finite and goes on; what is refused changes nothing."""
import os
import pickle
import re

import numpy as np
import pytest

from onlinekernels import KernelHebbian, RunningScaler
from contracts.registry import KINDS, POINTS, Transformer, csr_matrix
from contracts.test_contracts import assert_same, finite, shown, through_file

pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning", "ignore::RuntimeWarning")
NAMES = [name for name, kind in KINDS.items() if kind.rows in ("dense", "single", "sparse")]
THOROUGH = bool(os.environ.get("ONLINEKERNELS_THOROUGH"))
N, MORE = 48, 20
AT, LATE = np.arange(N), np.arange(N) >= N // 2
SIZES = {  # what rows, targets or weights are multiplied by: powers of 2, so that inner products stay exact
    "tiny": 2.0**-996, "denormal": 2.0**-1074, "large": 2.0**332, "huge": 2.0**996, "constant": 0.0,
    "another unit": np.where(LATE, 2.0**30, 1.0), "another scale": np.where(LATE, 2.0**40, 1.0),
    "shrinking": np.where(AT < N - 1, 1024.0, 1.0), "late and tiny": np.where(LATE, 2.0**-996, 1.0),
    "gross early": np.where(AT == 5, 2.0**498, 1.0), "gross late": np.where(AT == 40, 2.0**498, 1.0),
}
STREAMS = {f"{what}: {size}": (what, SIZES[size]) for what, sizes in {
    "X": ("tiny", "denormal", "large", "huge", "constant", "another unit", "gross early", "gross late"),
    "y": ("tiny", "denormal", "large", "huge", "constant", "another scale", "shrinking", "gross early", "gross late"),
    "sample_weight": ("denormal", "huge", "late and tiny", "gross early", "gross late"),
}.items() for size in sizes}


# What is not so yet, and why: (kinds, streams)
KNOWN = {("projectron", "sample_weight: denormal"),  # a copy drops others: squares of the coefficients are 0
         ("smoother density", "X: huge"),            # the first row has the log density -inf
         *((name, "y: huge") for name in KINDS if name.startswith("krls"))}  # |f| is no number


def stream(kind, name):
    """{argument: its values}; the last rows and weights are ordinary."""
    what, size = STREAMS[name]
    X, y, weights = POINTS[:N + MORE], None if kind.y is None else kind.y[:N + MORE], np.ones(N + MORE)
    sizes = np.broadcast_to(size, N)
    if what == "X":
        X = np.vstack([sizes[:, None] * X[:N], X[N:]])
    elif what == "y":
        sizes = np.append(sizes, np.full(MORE, sizes[-1]))
        y = y * (sizes if y.ndim == 1 else sizes[:, None])
    else:
        weights = np.append(sizes, np.ones(MORE))
    with np.errstate(over="ignore"):
        X = csr_matrix(X) if kind.rows == "sparse" else X.astype(np.float32 if kind.rows == "single" else float)
    return X, y, weights


def learn(name, model, X, y, weights, rows):
    """Learn some rows; an error of theirs names an argument or a row, and changes nothing."""
    is_classifier = y is not None and y.dtype.kind in "iU"
    given = {"classes": np.unique(y)} if is_classifier and getattr(model, "_state", None) is None else {}
    before = pickle.dumps(model)
    try:
        if isinstance(model, (RunningScaler, KernelHebbian)):
            model.partial_fit(X[rows])
        else:
            model.partial_fit(X[rows], None if y is None else y[rows], sample_weight=weights[rows], **given)
    except (FloatingPointError, ValueError) as error:
        assert re.search(r"\b(X|y|sample_weight)\b", str(error)), error
        if not getattr(error, "rows_learned", 0) and pickle.dumps(model) != before:
            assert_same(name, model, pickle.loads(before))  # sparse rows may lie elsewhere
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_learned_is_finite_and_goes_on(name, tmp_path):
    """Of all streams, or of a quarter of them."""
    kind = KINDS[name]
    for extreme, (what, _) in list(STREAMS.items())[0 if THOROUGH else NAMES.index(name) % 4 :: 1 if THOROUGH else 4]:
        if (what == "y" and (kind.y is None or kind.y.dtype.kind != "f") or (name, extreme) in KNOWN
                or what != "X" and isinstance(kind, Transformer)):
            continue
        model, (X, y, weights) = kind.make(), stream(kind, extreme)
        taken = [i for i in range(N) if learn(name, model, X, y, weights, [i])]
        if not taken:  # all was refused
            continue
        assert finite(shown(name, model)), extreme
        whole = kind.make()
        assert learn(name, whole, X, y, weights, taken), extreme
        scores = kind.scores(model)
        near = 2e-3 if what == "sample_weight" or name == "krls weights" else 1e-6  # digits that are lost either way
        np.testing.assert_allclose(kind.scores(whole), scores, rtol=0, err_msg=extreme,
                                   atol=near * max(1e-300, np.abs(scores).max()))
        twins = [pickle.loads(pickle.dumps(model)), *([through_file(model, tmp_path)] if hasattr(model, "save")
                                                      else [])]
        for one in (model, *twins):
            learn(name, one, X, y, weights, np.arange(N, N + MORE))
        for twin in twins:
            assert_same(name, twin, model)
