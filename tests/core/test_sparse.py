"""Sparse rows give the model that dense rows give, in memory for the non-zeros alone."""
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cases import each

sparse = pytest.importorskip("scipy.sparse")

import onlinekernels as ok  # noqa: E402


def random_rows(n=120, d=30, density=0.15, seed=0):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, d)) < density, rng.normal(size=(n, d)), 0.0)
    dense[5] = 0.0                                      # an empty row
    return sparse.csr_matrix(dense), dense, rng


def test_what_cannot_be_sparse_is_refused():
    rows, dense, _ = random_rows()
    y = np.arange(120) % 2
    for kernel in (ok.Laplacian(), ok.AdditiveMatern(), ok.Gaussian() + ok.Laplacian()):
        with pytest.raises(TypeError, match="sparse.*inner products"):
            ok.NORMA("hinge", kernel).fit(rows, y)
        with pytest.raises(TypeError, match="inner products"):
            kernel(rows)
    with pytest.raises(TypeError, match="sparse.*dense"):
        ok.NORMA().fit(dense, y).predict(rows)
    model = ok.NORMA().fit(rows, y)
    before = pickle.dumps(model)
    bad = rows.copy()
    bad.data[17] = np.nan
    for X, words in ((rows[:, :3], "3 features"), (bad, "NaN.*row"), (rows[:0], "0 sample"),
                     (rows.astype(complex), "numbers")):
        with pytest.raises((ValueError, TypeError), match=words):
            model.partial_fit(X, y[: X.shape[0]])
        assert pickle.dumps(model) == before


def test_matrices_that_point_outside_of_themselves_are_refused():
    """Before scipy looks at them, whose compiled code believes them."""
    rows, _, _ = random_rows()
    y = np.arange(120) % 2
    model = ok.NORMA().fit(rows, y)
    before = pickle.dumps(model)
    calls = [lambda X: model.partial_fit(X, y), model.predict, ok.Gaussian(), ok.RunningScaler().fit,
             lambda X: ok.evaluate.progressive(ok.NORMA(), [(X, y)])]
    for form in ("csr", "csc", "bsr", "coo"):
        for name, place, value in (("indices", 7, 10**6), ("indices", 7, -(10**6)), ("indptr", 3, 10**6), ("indptr", 3,
                                                                                                           -5),
                                   ("indptr", 0, 2), ("indptr", -1, 10**6), ("row", 7, 10**6), ("col", 7, -3),):
            bad = rows.asformat(form).copy()
            if not hasattr(bad, name):
                continue
            getattr(bad, name)[place] = value
            for call in calls:
                with pytest.raises(ValueError, match="not a sound sparse matrix"):
                    call(bad)
        shorter = rows.asformat(form).copy()
        shorter.data = shorter.data[:-1]
        with pytest.raises(ValueError, match="not a sound sparse matrix|must have the same length"):
            model.partial_fit(shorter, y)
    assert pickle.dumps(model) == before


WIDE = """
import numpy as np
import scipy.sparse as sparse
import onlinekernels as ok
rng = np.random.default_rng(0)
n, d, size = 2000, 130107, 100
def chunk():
    columns = np.sort(rng.integers(0, d, (n, size)), axis=1)
    return sparse.csr_matrix((rng.normal(size=n * size), columns.ravel(), np.arange(0, n * size + 1, size)), shape=(n,
    d))
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
model = ok.NORMA("hinge", KERNEL, budget=BUDGET)
y = rng.choice([-1, 1], n)
model.partial_fit(chunk(), y)
before = most()
for _ in range(3):
    model.partial_fit(chunk(), y)
print(before, most())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the resident size in kilobytes")
@each("kernel, budget", [("'linear'", None), ("ok.Gaussian(5.0)", 128)])
def test_wide_streams_need_memory_for_their_non_zeros_only(kernel, budget):
    code = WIDE.replace("KERNEL", kernel).replace("BUDGET", repr(budget))
    # it would keep what is freed
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    before, after = map(int, ran.stdout.split())
    assert after < 400_000                              # a dense chunk alone would be 2,000,000
    assert after - before < 60_000


@each("form", ["csr_matrix", "csr_array", "csc_matrix", "coo_matrix", "lil_matrix"])
def test_any_sparse_format_will_do(form):
    rows, dense, _ = random_rows()
    y = np.arange(120) % 2
    model = ok.NORMA("hinge", ok.Gaussian(2.0)).fit(getattr(sparse, form)(dense), y)
    np.testing.assert_array_equal(model.decision_function(rows), ok.NORMA("hinge", ok.Gaussian(2.0)).fit(rows, y)
                                  .decision_function(rows))
    twice = sparse.coo_matrix((np.ones(4), ([0, 0, 1, 1], [3, 3, 1, 0])), shape=(2, 30))    # 3 appears twice
    np.testing.assert_allclose(model.decision_function(twice), model.decision_function(twice.toarray()), atol=1e-14)
