"""The recipes of docs/contributing.md, followed in a copy of the tree: so many files, and it works."""
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="needs the sources")]


def follow(where, recipe, code):
    """Copy the tree, insert each text of {file: {the line behind it: text}}, build, and run code there."""
    pytest.importorskip("Cython")
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(".git", "__pycache__", "docs", "tests", ".hypothesis"))
    (where / "build").mkdir(exist_ok=True)
    for name, insertions in recipe.items():
        source = (where / "onlinekernels" / name).read_text()
        for line, text in insertions.items():
            assert source.count(line) == 1, (name, line)
            source = source.replace(line, text + line)
        (where / "onlinekernels" / name).write_text(source)
    environment = {**os.environ, "ONLINEKERNELS_CFLAGS": "-g0 -O0", "PYTHONPATH": str(where), "OPENBLAS_NUM_THREADS": "1"}
    for command in (["setup.py", "-q", "build_ext", "--inplace"], ["-c", textwrap.dedent(code)]):
        done = subprocess.run([sys.executable, *command], cwd=where, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]


def test_a_loss_takes_two_files(tmp_path):
    follow(tmp_path / "tree", {
        "_core/formulas/losses.h": {
            "    OK_HINGE = 1,\n": "    OK_LOG_COSH = 99,\n",
            '    {"Hinge", OK_HINGE},\n': '    {"LogCosh", OK_LOG_COSH},\n',
            "    delta = fabs(y - z);\n": "    if (code == OK_LOG_COSH) return log(cosh(z - y));\n",
            "    delta = z - y;\n": "    if (code == OK_LOG_COSH) return tanh(z - y);\n",
            "    if (code == OK_LOGISTIC) return ok_expit(z) * ok_expit(-z);":
                "    if (code == OK_LOG_COSH) return 1.0 - tanh(z - y) * tanh(z - y);\n",
        },
        "nouns/losses/regression.py": {
            '    "Squared",\n': '    "LogCosh",\n',
            "class Squared(Loss):\n": textwrap.dedent('''
                class LogCosh(Loss):
                    """log cosh(f - y)."""

                    def __init__(self):
                        pass


                ''').lstrip(),
        },
    }, """
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
    """)
