"""The recipes of docs/reference/contributing.md, followed in a copy of the tree: so many files, and it works."""
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from cases import each

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="needs the sources")

# {file: {text that stands there once: what is inserted before it}}
LOSS = {
    "_core/formulas/losses.h": {
        '    LOSS(OK_HINGE, 1, "Hinge") ': '    LOSS(OK_LOG_COSH, 99, "LogCosh") \\\n',
        "    delta = fabs(y - z);\n": "    if (code == OK_LOG_COSH) return log(cosh(z - y));\n",
        "    delta = z - y;\n": "    if (code == OK_LOG_COSH) return tanh(z - y);\n",
        "    if (code == OK_LOGISTIC) return ok_expit(z) * ok_expit(-z);":
            "    if (code == OK_LOG_COSH) return 1.0 - tanh(z - y) * tanh(z - y);\n",
    },
    "losses/regression.py": {
        '"Squared", "Absolute"': '"LogCosh", ',
        "class Squared(Loss):\n": textwrap.dedent('''
            class LogCosh(Loss):
                """log cosh(f - y)."""

                def __init__(self):
                    pass

            ''').lstrip(),
    },
}
KERNEL = {
    "_core/kernels.pxd": {"    GAUSSIAN  ": "    RATIONAL            # 1 / (1 + a |x - z|_1)\n"},
    "_core/kernels.pyx": {
        '    "gaussian": GAUSSIAN,\n': '    "rational": RATIONAL,\n',
        "            self.needs_double |= code == PRECOMPUTED\n": "            self.needs_l1 |= code == RATIONAL\n",
        "            elif op.code == GAUSSIAN or op.code == LAPLACIAN:\n":
            "            elif op.code == RATIONAL:\n                stack[top] = 1.0\n",
        "            elif op.code == LAPLACIAN:\n":
            "            elif op.code == RATIONAL:\n                for j in range(n):\n"
            "                    out[j] = 1.0 / (1.0 + op.a * l1[j])\n",
    },
    "kernels/elementary.py": {
        '"Gaussian", "Polynomial"': '"Rational", ',
        "class Gaussian(Kernel):\n": textwrap.dedent('''
            class Rational(Kernel):
                """1 / (1 + rate |x - z|_1)."""

                _values = {"rate": check_positive}

                def __init__(self, rate=1.0):
                    self.rate = rate

                def ops(self):
                    return [{"op": "rational", "a": float(self.rate)}]

            ''').lstrip(),
    },
}


@each("recipe", [LOSS, KERNEL], ids=["loss", "kernel"])
def test_the_places_that_recipes_name_are_there(recipe):
    for name, insertions in recipe.items():
        source = (ROOT / "onlinekernels" / name).read_text()
        assert [text for text in insertions if source.count(text) != 1] == [], name


def follow(where, recipe, code):
    """Copy the tree and make the insertions; build, and run code there."""
    pytest.importorskip("Cython")
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(".git", "__pycache__", "docs", "tests", ".hypothesis"))
    (where / "build").mkdir(exist_ok=True)
    for name, insertions in recipe.items():
        path = where / "onlinekernels" / name
        source = path.read_text()
        for line, text in insertions.items():
            source = source.replace(line, text + line)
        path.write_text(source)
    environment = {**os.environ, "ONLINEKERNELS_CFLAGS": "-g0 -O0", "PYTHONPATH": str(where),
                   "OPENBLAS_NUM_THREADS": "1"}
    for command in (["setup.py", "-q", "build_ext", "--inplace"], ["-c", textwrap.dedent(code)]):
        done = subprocess.run([sys.executable, *command], cwd=where, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_a_loss_takes_two_files(tmp_path):
    follow(tmp_path / "tree", LOSS, """
        import numpy as np
        import onlinekernels as ok

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
        assert np.allclose(ok.LogCosh().value(y, 0.5), np.log(np.cosh(y - 0.5)))
        class Own(ok.Loss):
            task = "regression"
            def __init__(self):
                pass
            def derivative(self, score, y):
                return np.tanh(score - y)
            def curvature(self, score, y):
                return 1 - np.tanh(score - y) ** 2
        for algorithm in (ok.NORMA, ok.SVMD):
            assert np.allclose(algorithm("logcosh").progressive(X, y), algorithm(Own()).progressive(X, y), atol=1e-12)
        kernel = ok.Gaussian(1.0)
        try:
            ok.SILK("logcosh").fit(X, y)
        except FloatingPointError:  # its implicit step is not there
            pass
        else:
            raise AssertionError("a step that nobody wrote")
        bank = ok.Bank(2, "logcosh", kernel, n_models=1, rule="norma")
        alone = ok.NORMA(Own(), kernel, budget=20).progressive(X, y)
        assert np.allclose(bank.progressive(X, y, keys=np.zeros(50, dtype=int)), alone, atol=1e-12)
    """)


@pytest.mark.slow
def test_a_kernel_takes_three_files(tmp_path):
    follow(tmp_path / "tree", KERNEL, """
        import numpy as np
        import onlinekernels as ok

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
        gram = lambda X, Z: 1 / (1 + 2 * np.abs(X[:, None] - Z[None]).sum(axis=2))
        kernel = ok.Rational(2.0)
        assert np.allclose(kernel(X, X[:7]), gram(X, X[:7]), atol=1e-14)
        assert np.allclose((3 * kernel * ok.Linear() + 1)(X), 3 * gram(X, X) * (X @ X.T) + 1, atol=1e-12)
        own = lambda x, z: 1 / (1 + 2 * np.abs(x - z).sum())
        for budget in (None, ok.Smallest(10)):
            models = [ok.NORMA("squared", k, step=0.1, budget=budget) for k in (kernel, own)]
            assert np.allclose(*(model.progressive(X, y) for model in models), atol=1e-12)
        models[0].save("model.npz")
        assert np.array_equal(ok.load("model.npz").predict(X), models[0].predict(X))
        assert ok.NORMA(kernel="rational").fit(X, y > 0).kernel_.rate == 1.0
    """)
