"""What the core is cut into fits together in other ways, too: a rule of second order, a budget that merges, functions that share points."""
import importlib.util
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels._core.budgets import Recent, Smallest, Unlimited, Window
from onlinekernels._core.coefficients import Full
from onlinekernels._core.engine import Engine
from onlinekernels._core.forms import OneOutput, Targets
from onlinekernels._core.hypothesis import Hypothesis
from onlinekernels._core.kernelrows import CompiledRows
from onlinekernels._core.kernels import Program
from onlinekernels._core.outputs import Outputs
from onlinekernels._core.points import DensePoints
from onlinekernels._core.rules import Gradient
from onlinekernels._core.terms import KernelTerms

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
PACKAGE = pathlib.Path(ok.__file__).parent


def hypothesis(points, width, budget, rule, next=None, loss="squared"):
    """f with one output and a Gaussian kernel, on a dictionary."""
    outputs, program = Outputs(1), Program(ok.Gaussian(width).ops())
    program.start(points.n_features, points.dtype, None)
    function = KernelTerms(rows=CompiledRows(points, program), terms=Full(points, budget, 1, 1), outputs=outputs)
    loss = ok.losses.as_loss(loss, "test").core()
    return Hypothesis(function=function, form=OneOutput(rule, outputs), loss=loss, offset=False, average=False, next=next)


def gradient(rate, regularization):
    return Gradient(ok.Fixed(rate).core(), regularization=regularization)


def learned(engine, chunk, n=len(X)):
    """Scores of the first hypothesis, before each example."""
    scores = np.zeros(n)
    for start in range(0, n, chunk):
        part = slice(start, min(start + chunk, n))
        engine.learn(X[part].copy(), Y[part].copy(), scores=scores[part])
        engine._check()
    return scores


BUDGETS = {
    "recent and smallest": (lambda: Recent(20), lambda: Smallest(35), ok.Recent(20), ok.Smallest(35)),
    "window and recent": (lambda: Window(30), lambda: Recent(20), ok.Window(30), ok.Recent(20)),
    "smallest and window": (lambda: Smallest(12), lambda: Window(40), ok.Smallest(12), ok.Window(40)),
    "unlimited and recent": (lambda: Unlimited(), lambda: Recent(9), None, ok.Recent(9)),
}


@pytest.mark.parametrize("chunk", [1, 7, 48, 150])
@pytest.mark.parametrize("budgets", BUDGETS)
def test_two_functions_on_one_dictionary_are_two_models(budgets, chunk):
    first, second, *nouns = BUDGETS[budgets]
    points = DensePoints(3, np.float64)
    follower = hypothesis(points, 0.7, second(), gradient(0.1, 0.2), loss=ok.Insensitive(0.8))
    leader = hypothesis(points, 2.0, first(), gradient(0.3, 0.05), follower)
    scores = learned(Engine(leader), chunk)
    models = [ok.NORMA("squared", ok.Gaussian(2.0), step=0.3, regularization=0.05, budget=nouns[0]),
              ok.NORMA(ok.Insensitive(0.8), ok.Gaussian(0.7), step=0.1, regularization=0.2, budget=nouns[1])]
    np.testing.assert_allclose(scores, models[0].progressive(X, Y), rtol=1e-10, atol=1e-10)
    models[1].partial_fit(X, Y)
    for one, model in zip((leader, follower), models):
        np.testing.assert_allclose(one.coefficients(), model.dual_coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(one.function.points(), model.support_vectors_)
    # A point is kept once, as long as somebody holds it.
    kept = {tuple(x) for model in models for x in model.support_vectors_}
    assert points.held == len(kept)


# ---- Toys that have to be compiled ------------------------------------------------------------------------------------

SETUP = """
    from setuptools import Extension, setup
    from Cython.Build import cythonize
    setup(name="toys", script_args=["-q", "build_ext", "--inplace"], ext_modules=cythonize(
        [Extension("toys", ["toys.pyx"], include_dirs=[{core!r}], extra_compile_args=["-O1"])], include_path=[{root!r}], quiet=True))
"""


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """The module of toys.pyx, built here."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    if not (PACKAGE / "_core" / "rules.pxd").exists():
        pytest.skip("the package is installed without its .pxd files")
    folder = tmp_path_factory.mktemp("toys")
    (folder / "toys.pyx").write_text(pathlib.Path(__file__).with_name("toys.pyx").read_text())
    (folder / "setup.py").write_text(textwrap.dedent(SETUP.format(core=str(PACKAGE / "_core"), root=str(PACKAGE.parent))))
    result = subprocess.run([sys.executable, "setup.py"], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    spec = importlib.util.spec_from_file_location("toys", next(folder.glob("toys.*[od]")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gram(A, B, width):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * width**2))


@pytest.mark.parametrize("chunk", [1, 7, 90])
def test_a_rule_of_second_order(toys, chunk):
    """Each prediction is that of kernel ridge regression on all rows before."""
    points = DensePoints(3, np.float64)
    rule = toys.LeastSquares(ok.Fixed(1.0).core(), points, 0.3)
    model = hypothesis(points, 1.2, Unlimited(), rule)
    scores = learned(Engine(model), chunk, 90)
    for t in range(90):
        alpha = np.linalg.solve(gram(X[:t], X[:t], 1.2) + 0.3 * np.eye(t), Y[:t])
        np.testing.assert_allclose(scores[t], gram(X[t : t + 1], X[:t], 1.2)[0] @ alpha, rtol=1e-9, atol=1e-9)
    alpha = np.linalg.solve(gram(X[:90], X[:90], 1.2) + 0.3 * np.eye(90), Y[:90])
    np.testing.assert_allclose(model.coefficients()[0], alpha, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_rule_whose_offset_is_its_own(toys, n_targets):
    points, outputs, program = DensePoints(3, np.float64), Outputs(n_targets), Program(ok.Gaussian(1.2).ops())
    program.start(3, points.dtype, None)
    function = KernelTerms(rows=CompiledRows(points, program), terms=Full(points, Unlimited(), 1, n_targets), outputs=outputs)
    rule, loss = toys.Halfway(ok.Fixed(1.0).core()), ok.Squared().core()
    form = OneOutput(rule, outputs) if n_targets == 1 else Targets(rule, outputs, None, n_targets)
    model = Hypothesis(function=function, form=form, loss=loss, offset=True, average=False)
    targets = np.column_stack([Y, Y**2])[:, :n_targets].copy()
    scores = np.zeros((150, n_targets))
    Engine(model, targets=n_targets).learn(X, targets.reshape(-1), scores=scores.reshape(-1))
    alpha, offset = np.zeros((0, n_targets)), np.zeros(n_targets)
    for t in range(150):
        expected = gram(X[t : t + 1], X[:t], 1.2)[0] @ alpha + offset
        np.testing.assert_allclose(scores[t], expected, rtol=1e-9, atol=1e-10)
        alpha = np.vstack([alpha, 0.1 * (targets[t] - expected)])
        offset = offset + 0.5 * (targets[t] - expected)
    np.testing.assert_allclose(model.intercept(), offset, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("chunk", [1, 7, 48, 150])
def test_a_budget_that_merges(toys, chunk):
    """Terms merge in the middle of a piece, and later examples of the piece see it."""
    model = hypothesis(DensePoints(3, np.float64), 1.5, toys.Merging(12), gradient(0.2, 0.1))
    scores = learned(Engine(model), chunk)
    kept, alpha = [], np.zeros(0)
    for t in range(len(X)):
        score = gram(X[t : t + 1], X[kept], 1.5)[0] @ alpha if kept else 0.0
        np.testing.assert_allclose(scores[t], score, rtol=1e-9, atol=1e-10)
        alpha = alpha * (1 - 0.2 * 0.1)
        if len(kept) == 12:
            near = gram(X[kept[:1]], X[kept[1:]], 1.5)[0]
            alpha[1 + near.argmax()] += alpha[0] * near.max()
            kept, alpha = kept[1:], alpha[1:]
        kept.append(t)
        alpha = np.append(alpha, -0.2 * (score - Y[t]))
    np.testing.assert_allclose(model.coefficients()[0], alpha, rtol=1e-9, atol=1e-10)
