"""MulticlassSquared with labels that join: as if they had been there from the first example; and its probabilities."""

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from small_models import dot

pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
N, LETTERS = 50, "abcdef"
KERNELS = {"terms": ok.Gaussian(1.2), "weights": ok.Linear(), "trees": ok.AdditiveExponential(0.7), "objects": dot}
# With classes= or without, steps of these do not differ: they follow no other label.
ALGORITHMS = {"norma": lambda kernel, **more: ok.NORMA("multiclass_squared", kernel, step=0.1, regularization=0.05,
                                                       **more), "ilk": lambda kernel,
              **more: ok.ILK("multiclass_squared", kernel, step=0.7, regularization=0.05, **more),
              "silk": lambda kernel, **more: ok.SILK("multiclass_squared", kernel, **{"budget": None, **more})}


def stream(seed, n=N, late=True):
    """Labels that come one after another."""
    rng = np.random.default_rng(seed)
    latest = np.arange(n) // 8 + 1 if late else np.full(n, 6)
    places = [int(rng.integers(min(6, limit))) for limit in latest]
    return rng.normal(size=(n, 3)), np.array([LETTERS[place] for place in places]), rng


def in_chunks(model, X, y, rng):
    """Progressive scores, a column for each label in the order of appearance, in chunks of random sizes."""
    order = list(dict.fromkeys(y.tolist()))
    scores, start = np.zeros((len(y), len(order))), 0
    while start < len(y):
        stop = start + int(rng.choice([1, 2, 7, 20]))
        part = model.progressive(X[start:stop], y[start:stop])
        scores[start:stop, [order.index(label) for label in model.classes_]] = part
        start = stop
    return scores


def columns(model, X, order):
    """Scores of some labels."""
    classes = model.classes_.tolist()
    return model.decision_function(X)[:, [classes.index(label) for label in order]]


@each("budget", [None, 9, ok.Window(15), ok.Smallest(8), ok.Sublinear(0.6, 4)], ids=repr)
@each("algorithm", ALGORITHMS)
@each("kernel", KERNELS)
def test_a_label_that_joins_has_been_there_from_the_first_example(kernel, algorithm, budget):
    """`Smallest` sees the output that is ahead, as one more label that never comes."""
    for seed in range(4):
        X, y, rng = stream(seed)
        make = lambda: ALGORITHMS[algorithm](KERNELS[kernel], budget=budget, offset=seed % 2 == 0)  # noqa: E731
        growing, known = make(), make()
        scores = in_chunks(growing, X, y, rng)
        everything = known.progressive(X, y, classes=[*LETTERS, "never"])
        order = list(dict.fromkeys(y.tolist()))
        assert growing.classes_.tolist() == sorted(order)
        everything = everything[:, [known.classes_.tolist().index(label) for label in order]]
        joined = np.arange(N)[:, None] >= [y.tolist().index(label) for label in order]
        np.testing.assert_allclose(scores, np.where(joined, everything, 0.0), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(columns(growing, X, order), columns(known, X, order), rtol=1e-9, atol=1e-11)
        growing._state.engine._check()


class Own(ok.Loss):
    """The same in Python: labels do not learn ahead, and one alone is an output that moves."""

    task = "multiclass"

    def value(self, scores, y):
        return 0.5 * np.square(self.derivative(scores, y)).sum()

    def derivative(self, scores, y):
        return scores - np.where(np.arange(len(scores)) == y, 1.0, -1.0)


@each("budget",
      [ok.Merging(4), ok.Projecting(4), ok.Projecting(4, 0.05), ok.Redundant(4), ok.Redundant(4, tighter=True)],
      ids=repr)
@each("algorithm", ["norma", "svmd", "own"])
def test_budgets_weigh_the_same_outputs_in_chunks(algorithm, budget):
    """A chunk knows how many labels will join: then there are as many outputs that are ahead, all the same, or are 0
    yet."""
    loss = Own() if algorithm == "own" else "multiclass_squared"
    more = {} if algorithm == "svmd" else {"step": 0.9, "regularization": 0.05}
    make = ok.SVMD if algorithm == "svmd" else ok.NORMA
    for seed in range(30):
        X, y, rng = stream(seed, 24)
        chunks, ones = (make(loss, 2.0 * ok.Gaussian(1.5) + ok.Constant(0.4), budget=budget, **more) for _ in range(2))
        in_chunks(chunks, X, y, rng)
        for i in range(len(y)):
            ones.partial_fit(X[i:i + 1], y[i:i + 1])
        np.testing.assert_allclose(chunks.decision_function(X), ones.decision_function(X), rtol=1e-7, atol=1e-8)
        chunks._state.engine._check()


@each("kernel", ["terms", "weights", "trees"])
@each("budget", [None, 7, ok.Smallest(7)], ids=repr)
def test_exact_norms_of_labels_that_join(kernel, budget):
    """<f, v> and |f|^2 that SVMD keeps are those of the labels that have joined."""
    for seed in range(4):
        X, y, rng = stream(seed)
        model = ok.SVMD("multiclass_squared", KERNELS[kernel], budget=budget, exact_norms=True, regularization=0.1)
        in_chunks(model, X, y, rng)
        if kernel != "weights" or budget is not None:
            np.testing.assert_allclose(model._state.hypothesis.norms()[1], model.norm_**2, rtol=1e-8)
        late = ok.SVMD("multiclass_squared", KERNELS[kernel], budget=budget, exact_norms=True, regularization=0.1)
        late.partial_fit(X[:3], y[:3], initial=model)
        late.partial_fit(X[3:5], ["new", "newer"])
        np.testing.assert_allclose(late._state.hypothesis.norms()[1], late.norm_**2, rtol=1e-8)
