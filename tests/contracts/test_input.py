"""What may be passed: arrays of all kinds, lists, objects."""

import numpy as np
import pytest
from apart import run_apart
from cases import each
from small_models import TARGETS, X, overlap

import onlinekernels as ok


class TestInputForms:
    @each("way", ["learn_one", "partial_fit"])
    def test_a_loss_may_write_into_the_row_that_it_is_called_for(self, way):
        """What Python runs in the middle of an example may change the caller's array: the row is what it was at the
        call."""
        row = np.array([1.0, 2.0, 3.0])

        class Writing(ok.Squared):
            def derivative(self, score, y):
                row[:] = 77.0
                return score - y

        model = ok.NORMA(Writing(), ok.Gaussian(1.2), step=0.3).partial_fit(X, TARGETS)
        row[:] = [1.0, 2.0, 3.0]
        model.learn_one(row, 1.0) if way == "learn_one" else model.partial_fit(row[None], [1.0])
        assert row[0] == 77.0 and model.support_vectors_[-1].tolist() == [1.0, 2.0, 3.0]


class Thing:
    """An object of which the library knows nothing."""

    def __init__(self, text):
        self.text = text

    def __iter__(self):
        return iter(self.text)


class TestObjects:
    STRINGS = ["abc", "bcd", "cde", "xyz", "aaa", "", "abcdefg"]

    @each("kind", [str, set, tuple, dict.fromkeys, list, Thing])
    @each("budget", [None, 3, ok.Window(3), ok.Smallest(3)], ids=repr)
    @each("kernel", [overlap, ok.Normalized(overlap) + ok.Constant(0.5), 0.5 * ok.Noise() + overlap],
          ids=["plain", "normalized", "noise"])
    def test_a_callable_on_any_objects_learns_what_its_gram_matrix_learns(self, kind, budget, kernel):
        objects, y = [kind(text) for text in self.STRINGS], np.linspace(-1, 1, 7)
        gram = kernel(objects) if isinstance(kernel, ok.Kernel) else (ok.Constant(0.0) + overlap)(objects)
        model = ok.NORMA("squared", kernel, budget=budget, offset=True)
        plain = ok.NORMA("squared", ok.Precomputed(gram), budget=budget, offset=True)
        a, b = model.progressive(objects, y), plain.progressive(np.arange(7)[:, None], y)
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.allclose(model.dual_coef_, plain.dual_coef_, rtol=1e-10, atol=1e-12)
        kept = [objects[int(i)] for i in plain.support_vectors_[:, 0]]
        is_copied = kind in (set, dict.fromkeys, list)
        assert model.support_vectors_ == kept
        assert all((x is not thing) if is_copied else (x is thing) for x, thing in zip(model.support_vectors_, kept))
        assert model.learn_one(objects[3], 1.0).predict_one(objects[0]) == model.predict(objects[:1])[0]


class TestRowsThatChange:
    """A loss of the user's changes X during the call: what is learned is what was checked."""

    def test_what_read_anywhere(self):
        pytest.importorskip("scipy")
        run_apart("""
            from scipy.sparse import csr_matrix
            def changing(change):
                class Changing(ok.Squared):
                    def derivative(self, score, y):
                        change()
                        return score - y
                return Changing()
            gram = np.eye(50)
            for _ in range(20):
                X = np.arange(50.0)[:, None]
                def change(): X[:] = 1e15
                ok.NORMA(changing(change), ok.Precomputed(gram)).partial_fit(X, np.ones(50))
                x = np.array([3.0])
                def change(): x[:] = 1e15
                model = ok.NORMA(changing(change), ok.Precomputed(gram)).partial_fit(np.arange(5.0)[:, None],
                np.ones(5))
                x[:] = 7.0
                model.learn_one(x, 1.0)
                assert model.support_vectors_.max() < 50
                for kernel in ("gaussian", "linear"):
                    X = csr_matrix(np.random.default_rng(0).normal(size=(50, 8)))
                    def change(): X.indices[:] = 2000000000; X.data[:] = np.nan; X.indptr[:] = 10**9
                    model = ok.NORMA(changing(change), kernel).partial_fit(X, np.ones(50))
                    model._state.engine._check()
                X = np.random.default_rng(0).normal(size=(300, 4))
                def change(): X[:] = np.nan
                model = ok.NORMA(changing(change), ok.AdditiveMatern(), budget=40).partial_fit(X, np.ones(300))
                model._state.engine._check()
        """)
