"""Losses against their definitions: the oracle, finite differences, and the conventions at kinks."""
import numpy as np

import onlinekernels as ok
from cases import each
import reference
from test_oracle import LOSSES, describe

ADAPTIVE = [loss for loss in LOSSES if loss.adapts]
SCORES = np.concatenate([np.random.default_rng(0).normal(size=40) * 3, [-1e3, 1e3, 0.123, -40.0, 40.0]])


def targets(loss):
    return [-1.0, 1.0] if loss.task == "binary" else [0.0] if loss.task == "novelty" else [-1.3, 0.0, 2.7]


def scalar_of(loss):
    return getattr(loss, loss.scalar_name) if loss.scalar_name else None


@each("loss", LOSSES, ids=repr)
def test_value_derivative_curvature_equal_the_oracle(loss):
    name, params = describe(loss)
    for method, oracle in [("value", reference.loss_value), ("derivative", reference.loss_derivative),
                           ("curvature", reference.loss_curvature), ("scalar_gradient", reference.scalar_gradient)]:
        for y in targets(loss):
            expected = [oracle(name, params, scalar_of(loss), z, y) for z in SCORES]
            np.testing.assert_allclose(getattr(loss, method)(SCORES, y), expected, rtol=1e-13, atol=1e-300)


@each("loss", LOSSES, ids=repr)
def test_the_derivative_is_the_slope_of_the_value_and_the_curvature_of_the_derivative(loss):
    h = 1e-6
    scores = SCORES[np.abs(SCORES) < 100]
    for y in targets(loss):
        s = scalar_of(loss) or 0.0
        kinks = np.array([y * s, y + s, y - s, s, y]) if loss.task != "novelty" else np.array([s])
        smooth = scores[np.abs(scores[:, None] - kinks).min(axis=1) > 1e-3]
        slope = (loss.value(smooth + h, y) - loss.value(smooth - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.derivative(smooth, y), slope, rtol=1e-5, atol=1e-7)
        bend = (loss.derivative(smooth + h, y) - loss.derivative(smooth - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(smooth, y), bend, rtol=1e-5, atol=1e-7)


@each("loss", [loss for loss in ADAPTIVE if not isinstance(loss, ok.NuHuber)], ids=repr)
def test_the_scalar_gradient_is_the_slope_in_the_scalar(loss):
    """Would fail for the sign that K prints."""
    h = 1e-7
    for y in targets(loss):
        for z in (-2.03, -0.61, 0.17, 0.93, 4.4):
            up, down = (type(loss)(loss.nu, scalar_of(loss) + step).value(z, y) for step in (h, -h))
            assert abs((up - down) / (2 * h) - loss.scalar_gradient(z, y)) < 1e-5


def test_kinks_are_where_the_conventions_put_them():
    assert ok.Hinge(0.5).derivative([0.5, np.nextafter(0.5, 1)], 1).tolist() == [-1.0, 0.0]
    assert ok.NuHinge(0.1, 0.5).derivative(0.5, 1) == -1.0
    assert ok.NuHinge(0.1, 0.5).scalar_gradient(0.5, 1) == 0.9
    assert ok.Novelty(0.5).derivative([0.5, np.nextafter(0.5, 0)]).tolist() == [0.0, -1.0]
    assert ok.NuNovelty(0.1, 0.5).scalar_gradient(0.5) == -0.1
    assert ok.Absolute().derivative(1.0, 1.0) == 0.0
    assert ok.Quantile(0.3).derivative(1.0, 1.0) == 0.0
    assert ok.Insensitive(0.5).derivative([0.5, 0.75], 0.0).tolist() == [0.0, 1.0]
    assert ok.SquaredInsensitive(0.5).derivative([0.5, 1.0], 0.0).tolist() == [0.0, 1.0]
    assert ok.Huber(0.5).derivative([0.5, 1.0, 0.25], 0.0).tolist() == [1.0, 1.0, 0.5]
    assert ok.Huber(0.5).curvature([0.5, 1.0], 0.0).tolist() == [2.0, 0.0]


class SquaredAgain(ok.Loss):
    def derivative(self, score, y):
        return score - y


@each("chunk", [1, 50])
def test_a_loss_in_python_equals_the_compiled_one(chunk):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    mine = ok.NORMA(SquaredAgain(), step=0.2, budget=30, offset=True)
    built_in = ok.NORMA(ok.Squared(), step=0.2, budget=30, offset=True)
    for start in range(0, 200, chunk):
        part = slice(start, start + chunk)
        np.testing.assert_array_equal(mine.progressive(X[part], y[part]), built_in.progressive(X[part], y[part]))


def test_what_the_engine_reads_of_a_loss_is_there():
    """The engine takes four numbers and does not look how many there are."""
    from onlinekernels.losses import LOSSES as NAMED
    from onlinekernels.losses import Mistake

    for loss in (*(make() for make in NAMED.values()), Mistake()):
        assert len(loss.core()) == 4, loss
