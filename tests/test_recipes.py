"""The recipes of docs/reference/contributing.md, followed in a copy of the tree: so many files, and it works."""
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
    """Copy the tree, insert each text of {file: {the line behind it: text}}, or write {file: text}; build, and run code there."""
    pytest.importorskip("Cython")
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(".git", "__pycache__", "docs", "tests", ".hypothesis"))
    (where / "build").mkdir(exist_ok=True)
    for name, insertions in recipe.items():
        path = where / "onlinekernels" / name
        if isinstance(insertions, str):
            assert not path.exists()
            path.write_text(textwrap.dedent(insertions).lstrip())
            continue
        source = path.read_text()
        for line, text in insertions.items():
            assert source.count(line) == 1, (name, line)
            source = source.replace(line, text + line)
        path.write_text(source)
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
        "losses/regression.py": {
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
        kernel = ok.Gaussian(1.0)
        bank = ok.Bank(2, "logcosh", kernel, n_models=1, rule="norma")
        alone = ok.NORMA(Own(), kernel, budget=20).progressive(X, y)
        assert np.allclose(bank.progressive(X, y, keys=np.zeros(50, dtype=int)), alone, atol=1e-12)
    """)


def test_a_kernel_takes_three_files(tmp_path):
    follow(tmp_path / "tree", {
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
            '    "Gaussian",\n': '    "Rational",\n',
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
    }, """
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


def test_a_budget_takes_two_files(tmp_path):
    follow(tmp_path / "tree", {
        "_core/largest.pyx": '''
            """A budget that keeps the terms with the smallest coefficients."""
            from onlinekernels._core.functions cimport NOBODY
            from onlinekernels._core.terms cimport Budget, Coefficients


            cdef class LargestBudget(Budget):
                """The largest of `size` terms goes, the oldest among equals."""

                def __init__(self, long long size):
                    self.most = size

                cdef Py_ssize_t evicted(self, Coefficients terms, double size) noexcept nogil:
                    """O(terms)."""
                    cdef Py_ssize_t slot, largest = NOBODY
                    if terms.dictionary.held < self.most:
                        return NOBODY
                    for slot in range(terms.dictionary.start, terms.dictionary.stop):
                        if terms.holds(slot) and (largest == NOBODY or self.goes_before(terms, slot, largest)):
                            largest = slot
                    return largest

                cdef bint goes_before(self, Coefficients terms, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
                    cdef double size = terms.size_of(a), other = terms.size_of(b)
                    return size > other or size == other and terms.dictionary.born(a) < terms.dictionary.born(b)
            ''',
        "budgets.py": {
            "from onlinekernels._core.budgets import": "from onlinekernels._core.largest import LargestBudget\n",
            ' "Unlimited", "Recent",': ' "Largest",',
            "class Recent(Budget):\n": textwrap.dedent('''
                class Largest(Budget):
                    """The largest of `size` terms goes for a candidate.

                    Parameters
                    ----------
                    {size}
                    """

                    _size = "size"
                    _values = {"size": check_count}

                    def __init__(self, size):
                        self.size = size

                    def core(self):
                        return LargestBudget(int(self.size))


                ''').lstrip(),
        },
    }, """
        import numpy as np
        import onlinekernels as ok

        rng = np.random.default_rng(0)
        X, y, size = rng.normal(size=(200, 2)), rng.normal(size=200), 10
        make = lambda: ok.NORMA("squared", ok.Gaussian(1.0), step=0.5, regularization=0.1, budget=ok.Largest(size))
        points, alpha, scores = np.zeros((0, 2)), np.zeros(0), []
        for x, target in zip(X, y):
            scores.append(alpha @ np.exp(-((points - x) ** 2).sum(axis=1) / 2))
            alpha = alpha * 0.95
            if len(alpha) == size:
                gone = np.abs(alpha).argmax()
                points, alpha = np.delete(points, gone, axis=0), np.delete(alpha, gone)
            points, alpha = np.vstack([points, x]), np.append(alpha, 0.5 * (target - scores[-1]))
        model = make()
        assert np.allclose(model.progressive(X, y), scores, atol=1e-12)
        assert np.allclose(model.support_vectors_, points) and np.allclose(model.dual_coef_, alpha, atol=1e-12)
        one_by_one = make()
        for x, target in zip(X, y):
            one_by_one.learn_one(x, target)
        assert np.allclose(one_by_one.dual_coef_, alpha, atol=1e-12)
        model.save("model.npz")
        assert repr(ok.load("model.npz").budget_) == "Largest(10)" and "How many terms" in ok.Largest.__doc__
        model._state.engine._check()
        try:
            ok.NORMA(budget=ok.Largest(0)).fit(X, y > 0)
        except ValueError as error:
            assert "size" in str(error)
        else:
            raise AssertionError("a budget of no terms was taken")
    """)


def test_a_rule_takes_two_files_and_a_line(tmp_path):
    follow(tmp_path / "tree", {
        "_core/signs.pyx": '''
            """Steps of one size, whatever the loss."""
            cimport cython
            from libc.math cimport copysign
            from onlinekernels._core.formulas.moves cimport Standing, stand_still, step_size
            from onlinekernels._core.rules cimport Rule
            from onlinekernels._core.rules import DIRECTIONS
            from onlinekernels._core.functions cimport Example


            @cython.final
            cdef class Signs(Rule):
                """f <- f - eta sign(l\'(f(x), y)) k(x, .)."""

                def __init__(self, step):
                    self.forms = DIRECTIONS
                    self.configure(step)

                cdef void move(self, const Standing* now, Example e) noexcept nogil:
                    stand_still(&e.move)
                    if e.view.derivative != 0.0:
                        e.move.alpha[0] = e.move.offset = copysign(step_size(&self.step, now.t + 1), -e.view.derivative)
            ''',
        "algorithms/signs.py": '''
            """Steps of one size, whatever the loss."""
            from onlinekernels._core import signs as core
            from onlinekernels.base.estimator import OnlineLearner
            from onlinekernels.base.plan import Plan
            from onlinekernels.base.plan import Rule, check_step
            from onlinekernels.steps import as_step

            __all__ = ["SignDescent", "Signs"]


            class Signs(Rule):
                """f <- f - eta sign(l\'(f(x), y)) k(x, .).

                Parameters
                ----------
                step : Step
                """

                _values = {"step": check_step}
                forms = frozenset({"one", "pair", "targets"})
                may_change = frozenset({"step"})
                core_class = core.Signs

                def __init__(self, step):
                    self.step = step


            class SignDescent(OnlineLearner):
                """Steps of one size, whatever the loss.

                Parameters
                ----------
                {loss}
                {kernel}
                step : Step or float
                {budget}
                {offset}
                """

                _rule = Signs

                def __init__(self, loss=None, kernel=None, *, step=0.1, budget=None, offset=None):
                    self.loss = loss
                    self.kernel = kernel
                    self.step = step
                    self.budget = budget
                    self.offset = offset

                def _plan(self):
                    return Plan.of(self, Signs(as_step(self.step, self)))
            ''',
        "algorithms/__init__.py": {
            "    from onlinekernels.algorithms.smoother import": "    from onlinekernels.algorithms.signs import SignDescent\n",
            '    "Smoother",\n': '    "SignDescent",\n',
            '    "algorithms.smoother": ("Smoother",),\n': '    "algorithms.signs": ("SignDescent",),\n',
        },
    }, """
        import numpy as np
        import onlinekernels as ok

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
        make = lambda: ok.SignDescent("squared", ok.Gaussian(1.0), step=0.25, budget=20, offset=True)
        alpha, scores = np.zeros(0), []
        for t, x in enumerate(X):
            first = max(0, t - 20)
            scores.append(alpha[first:] @ np.exp(-((X[first:t] - x) ** 2).sum(axis=1) / 2) + alpha.sum())
            alpha = np.append(alpha, 0.25 * np.sign(y[t] - scores[-1]))
        model = make()
        assert np.allclose(model.progressive(X, y), scores, atol=1e-12)
        assert np.allclose(model.dual_coef_[0], alpha[-20:]) and np.isclose(model.intercept_[0], alpha.sum())
        # The loss of this one has sizes, and signs do not see them: NORMA with the absolute loss does the same.
        absolute = ok.NORMA("absolute", ok.Gaussian(1.0), step=0.25, regularization=0.0, budget=20, offset=True)
        assert np.allclose(absolute.progressive(X, y), scores, atol=1e-12)
        model.save("model.npz")
        again = ok.load("model.npz")
        for one in (model, again):
            one.set_params(step=0.5).partial_fit(X[:10], y[:10])
            one._state.engine._check()
        assert np.array_equal(model.dual_coef_, again.dual_coef_) and np.abs(model.dual_coef_).max() == 0.5
        many = ok.SignDescent("multiclass_hinge").fit(X, np.digitize(y, [-0.5, 0.5]))
        assert many.predict(X).shape == (100,)
        targets = make().fit(X, np.column_stack([y, -y]))
        assert np.allclose(targets.dual_coef_[0], -targets.dual_coef_[1])
        try:
            ok.SignDescent("multiclass_logistic").fit(X, np.digitize(y, [-0.5, 0.5]))
        except ValueError as error:
            assert "Signs steps do not" in str(error)
        else:
            raise AssertionError("a rule was asked for a form that it does not serve")
    """)
