"""What may be passed: arrays of all kinds, lists, objects."""
import copy
import pickle

import numpy as np
import pytest
from apart import run_apart
from cases import each
from contracts.test_contracts import FORMS
from small_models import GRAM, LABELS, NEW, RNG, TARGETS, X, each_model, overlap, part, scores, y_of

import onlinekernels as ok


class TestInputForms:

    @each("form", [form for form in FORMS if form not in ("rows", "tuple", "objects", "float16")])
    def test_so_for_targets_and_weights(self, form):
        column = lambda a: FORMS[form](a[:, None])[:, 0] if form not in ("list",) else a.tolist()
        plain = ok.NORMA("squared").partial_fit(X, TARGETS, sample_weight=np.abs(TARGETS))
        model = ok.NORMA("squared").partial_fit(X, column(TARGETS), sample_weight=column(np.abs(TARGETS)))
        assert pickle.dumps(model) == pickle.dumps(plain)

    @each("chunk", [1, 40])
    @each_model
    def test_float32_points_stay_float32_and_scores_are_double(self, model, chunk):
        if "dot" in repr(model):
            pytest.skip("a callable keeps what it is given")
        y = y_of(model)
        narrow, wide = X.astype(np.float32), X.astype(np.float32).astype(float)
        plain = copy.deepcopy(model)
        a = np.concatenate([model.progressive(narrow[i:i + chunk], part(y, slice(i, i + chunk)),
                                              classes=[-1, 1] if y is LABELS else None) for i in range(0, 40, chunk)])
        b = plain.progressive(wide, y)
        assert a.dtype == np.float64 and np.allclose(a, b, rtol=1e-4, atol=1e-5)
        assert scores(model, NEW).dtype == np.float64
        if model.n_terms_:
            assert model.support_vectors_.dtype == (np.float64 if isinstance(model, ok.KRLS) else np.float32)
            merges = isinstance(getattr(model, "budget", None), ok.Merging)  # into points that nobody has seen
            assert merges or np.isin(model.support_vectors_, narrow).all()

    def test_far_from_the_origin_support_vectors_are_the_points(self):
        for dtype in (np.float32, np.float64):
            points = (1000 + X).astype(dtype)
            model = ok.NORMA("squared").partial_fit(points, TARGETS)
            assert np.allclose(model.support_vectors_, points, rtol=4 * np.finfo(dtype).eps)

    @each("way", ["learn_one", "partial_fit"])
    def test_a_loss_may_write_into_the_row_that_it_is_called_for(self, way):
        """What Python runs in the middle of an example may change the caller's array: the row is what it was at the call."""
        row = np.array([1.0, 2.0, 3.0])

        class Writing(ok.Squared):
            def derivative(self, score, y):
                row[:] = 77.0
                return score - y

        model = ok.NORMA(Writing(), ok.Gaussian(1.2), step=0.3).partial_fit(X, TARGETS)
        row[:] = [1.0, 2.0, 3.0]
        model.learn_one(row, 1.0) if way == "learn_one" else model.partial_fit(row[None], [1.0])
        assert row[0] == 77.0 and model.support_vectors_[-1].tolist() == [1.0, 2.0, 3.0]

    def test_a_gram_matrix_is_not_aliased_once_learning_has_begun(self):
        gram = GRAM.copy()
        model = ok.NORMA("squared", ok.Precomputed(gram)).partial_fit(np.arange(40)[:, None], TARGETS)
        values = model.predict(np.arange(40)[:, None])
        gram[:] = np.eye(40)
        assert (model.predict(np.arange(40)[:, None]) == values).all()

    def test_parameters_are_not_aliased_once_learning_has_begun(self):
        kernel, loss, budget = ok.Gaussian(1.0), ok.Hinge(1.0), ok.Recent(10)
        model = ok.NORMA(loss, kernel, budget=budget).partial_fit(X, LABELS)
        twin = copy.deepcopy(model)
        values = model.decision_function(NEW)
        kernel.width, loss.margin, budget.size = 9.0, 5.0, 2
        assert (model.decision_function(NEW) == values).all()
        model.partial_fit(X, LABELS)
        assert (model.decision_function(NEW) == twin.partial_fit(X, LABELS).decision_function(NEW)).all()


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

    def test_numpy_strings_and_object_arrays_are_lists_of_examples(self):
        expected = ok.NORMA("squared", overlap).partial_fit(self.STRINGS, np.ones(7)).predict(self.STRINGS)
        for form in (np.array(self.STRINGS), np.array(self.STRINGS, dtype=object), tuple(self.STRINGS)):
            assert (ok.NORMA("squared", overlap).partial_fit(form, np.ones(7)).predict(form) == expected).all()


class TestRowsThatChange:
    """A loss of the user's changes X during the call: what is learned is what was checked."""

    @staticmethod
    def changing(change):
        class Changing(ok.Squared):
            def derivative(self, score, y):
                change()
                return score - y

        return Changing()

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
                model = ok.NORMA(changing(change), ok.Precomputed(gram)).partial_fit(np.arange(5.0)[:, None], np.ones(5))
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

    @each("kernel", [ok.Gaussian(), ok.Linear(), ok.AdditiveExponential(), ok.Precomputed(np.eye(60))], ids=str)
    @each("scale", [False, True])
    def test_the_rows_that_were_checked_are_learned(self, kernel, scale):
        if scale and isinstance(kernel, ok.Precomputed):
            pytest.skip("indices are not scaled")
        X = np.arange(60.0)[:, None] if isinstance(kernel, ok.Precomputed) else RNG.normal(size=(60, 3))
        y, original = RNG.normal(size=60), X.copy()
        expected = ok.NORMA(self.changing(lambda: None), kernel, scale=scale).partial_fit(X, y)

        def change():
            X[:] = 1e15

        model = ok.NORMA(self.changing(change), kernel, scale=scale).partial_fit(X, y)
        assert (model.predict(original) == expected.predict(original)).all()
        one = original[0].copy()

        def change_one():
            one[:] = 1e15

        a, b = (ok.NORMA(self.changing(how), kernel, scale=scale).partial_fit(original[1:], y[1:]) for how in (change_one, lambda: None))
        one[:] = original[0]
        a.learn_one(one, 1.0), b.learn_one(original[0], 1.0)
        assert (a.predict(original) == b.predict(original)).all()
