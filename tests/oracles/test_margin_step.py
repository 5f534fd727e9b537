"""The step of an adapted scalar: shared with f (the papers), or its own; and the warning when it has run away."""
import pickle
import warnings

import numpy as np
import pytest

import onlinekernels as ok

NU_LOSSES = [ok.NuHinge, ok.NuNovelty, ok.NuInsensitive, ok.NuHuber, ok.NuMulticlassHinge, ok.NuGraphHinge]


def rows(n=8000, seed=0):
    """Three clouds in five dimensions, and in every fiftieth row something else."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(3, 5))[rng.integers(0, 3, n)] + rng.normal(size=(n, 5))
    odd = rng.random(n) < 0.02
    X[odd] = rng.uniform(-8, 8, size=(odd.sum(), 5))
    return X, odd


def said(model, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(*data)
    assert all(issubclass(w.category, RuntimeWarning) for w in caught)
    return [str(w.message) for w in caught if w.category is ok.LearningWarning]


def test_a_margin_that_has_run_away_is_told_once():
    X, _ = rows(12_000)
    model = ok.SILK(ok.NuNovelty(0.05, margin_step=None), regularization=0.03, scale=True)
    (message,) = said(model, X)
    for part in ("has run away", "margin_step such as 0.1", "smaller regularization", "larger width"):
        assert part in message
    assert said(model, X) == []


REPRESENTATIONS = {"terms": ok.Gaussian(1.0), "weights": ok.Linear(), "trees": ok.AdditiveExponential(),
                   "maps": ok.RandomFourier(ok.Gaussian(1.0), 100), "landmarks": ok.Nystroem(ok.Gaussian(1.0), 20)}


@pytest.mark.parametrize("kernel", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def test_averaged_functions_have_averaged_scalars(kernel, tmp_path):
    """That of the average is the mean of those that stood beside the m predictions, and goes on so from a file."""
    X, _ = rows(300)
    X = X[:, :2] / 4
    y = {"binary": np.sign(X[:, 0]), "multiclass": np.argmax(X, axis=1), "regression": X[:, 0] ** 2, "novelty": None}
    for cls in NU_LOSSES:
        for margin_step, learner in ((0.1, ok.NORMA), (None, ok.NORMA), (0.1, ok.ILK)):
            loss = cls(margin_step=margin_step)
            model = learner(loss, kernel, average=True, regularization=1e-2)
            part = [None if y[loss.task] is None else y[loss.task][rows] for rows in (slice(200), slice(200, 300))]
            classes = np.unique(y[loss.task]) if loss.task in ("binary", "multiclass") else None
            _, first = model.progressive(X[:200], part[0], classes, return_margins=True)
            model.save(tmp_path / "m.npz")
            for each in (model, ok.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
                _, second = each.progressive(X[200:], part[1], return_margins=True)
                mean = np.concatenate([first, second]).mean()
                assert np.isclose(getattr(each, f"{loss.scalar_name}_"), mean, rtol=1e-10)
                if loss.task == "novelty":
                    alerts = each.score_samples(X) < each.offset_
                    np.testing.assert_array_equal(each.predict(X), np.where(alerts, -1, 1))


def test_the_logarithm_shares_the_step_of_f():
    """rho_T = rho_1 exp(-sum eta rho_t (1{error} - nu)), here with weights; an ordinary schedule, no meta-descent."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(200, 2)), rng.choice([-1, 1], size=200), rng.choice([0.0, 1.0, 2.0], size=200)
    for make, size in ((ok.NORMA, 1.0), (ok.ILK, 0.7)):
        more = {"penalty": 0.7} if make is ok.ILK else {}
        model = make(ok.NuHinge(0.3, 0.8, "log"), ok.Gaussian(1.0), step=ok.Decaying(0.9, 20), regularization=0.1,
                     **more)
        scores, steps, margins = model.progressive(X, y, sample_weight=weights, return_steps=True, return_margins=True)
        moves = -steps * size * weights * margins * ((y * scores <= margins) - 0.3)
        np.testing.assert_allclose(np.diff(np.log(np.append(margins, model.margin_))), moves, atol=1e-12)
