"""The pool of terms under random operations, against naive structures."""
import numpy as np
import pytest
from sortedcontainers import SortedList
from cases import each

import onlinekernels as ok
from onlinekernels._core.functions import Memory

# A margin out of reach makes a term of every example.
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")


def entering(budget, weights, decay=0.0, chunk=None):
    """A model in which example t enters with coefficient weights[t] (0: not at all)."""
    model = ok.NORMA(ok.Novelty(1e100), ok.Linear() + ok.Constant(), step=1.0, regularization=decay, budget=budget)
    X = np.arange(1.0, len(weights) + 1)[:, None]
    for start in range(0, len(weights), chunk or len(weights)):
        part = slice(start, start + (chunk or len(weights)))
        model.partial_fit(X[part], sample_weight=weights[part])
        model._state.engine._check()
    return model.support_vectors_[:, 0].astype(int).tolist()


@each("chunk", [1, 7, None])
@each("seed", range(8))
class TestBudgets:
    def weights(self, seed, ties=False):
        rng = np.random.default_rng(seed)
        weights = rng.integers(1, 5, 300) * 0.25 if ties else rng.uniform(0.1, 1.0, 300)
        return np.where(rng.random(300) < rng.choice([0.2, 0.9]), weights, 0.0)

    def test_sublinear_is_a_growing_window(self, seed, chunk):
        weights, budget = self.weights(seed), ok.Sublinear(0.5 + seed / 20, 1 + seed)
        kept = [t for t in range(1, 301) if weights[t - 1] and t >= 301 - budget.length(301)]
        assert entering(budget, weights, chunk=chunk) == kept

    @each("ties", [False, True])
    def test_smallest_keeps_the_largest_and_among_equals_the_youngest(self, seed, chunk, ties):
        weights, size = self.weights(seed, ties), 1 + seed * 7
        naive = SortedList()                            # (coefficient, birthday): the first one goes
        for t, weight in enumerate(weights, 1):
            if weight:
                naive.add((weight, t))
                if len(naive) > size:
                    del naive[0]
        assert entering(ok.Smallest(size), weights, chunk=chunk) == sorted(t for _, t in naive)


def test_smallest_orders_decayed_coefficients_through_folds():
    """Decay 0.1 per step folds the frame again and again; what stays is what explicit decay keeps."""
    rng = np.random.default_rng(0)
    weights = 10.0 ** rng.uniform(-30, 30, 400)
    alive = []
    for t, weight in enumerate(weights, 1):
        alive = [(alpha * 0.1, born) for alpha, born in alive] + [(weight, t)]
        if len(alive) > 10:
            alive.remove(min(alive))
    assert entering(ok.Smallest(10), weights, decay=0.9) == sorted(t for _, t in alive)


def test_objects_that_are_dropped_are_released():
    import gc
    import weakref

    class Example:
        def __init__(self, value):
            self.value = value

    def kernel(a, b):
        return float(np.exp(-(a.value - b.value) ** 2))

    models = [ok.NORMA(ok.Novelty(1e9), kernel, step=0.1, budget=budget)
              for budget in (ok.Recent(3), ok.Window(3), ok.Smallest(3))]
    alive = [[] for _ in models]
    for model, refs in zip(models, alive):
        for value in range(20):
            example = Example(value)
            refs.append(weakref.ref(example))
            model.partial_fit([example])
            del example
    gc.collect()
    for refs in alive:
        assert sum(ref() is not None for ref in refs) == 3


def test_memory_has_no_more_buffers_than_it_has_room_for():
    memory = Memory()
    assert memory.reserve(0, 100) == 100 and memory.reserve(0, 10) == 100 and memory.reserve(23, 1) == 1
    for which in (-1, 24, 1000):
        with pytest.raises(IndexError, match="MOST_BUFFERS is 24"):
            memory.reserve(which, 1)
