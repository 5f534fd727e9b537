"""Small stand-ins for data sets that are not there: the same arrays, made by chance.

They let every experiment run anywhere. What comes out says nothing about the papers.
"""

import numpy as np

__all__ = ["make"]


def make(name, seed=0):
    """Return a stand-in for the data set of that name.

    Examples
    --------
    >>> from onlinekernels.experiments import standins
    >>> mnist = standins.make("mnist")
    >>> mnist["X_train"].shape[1:], mnist["X_train"].dtype
    ((28, 28), dtype('uint8'))
    """
    return _MAKERS[name](np.random.default_rng(seed))


def _usps(rng):
    images, labels = _digits(rng, side=16, count=2400)
    return _split(np.rint(2000 * images.reshape(len(images), -1) - 1000).astype(np.int16), labels, 2000)


def _mnist(rng):
    images, labels = _digits(rng, side=28, count=2400)
    return _split(np.rint(255 * images).astype(np.uint8), labels, 2000)


def _split(X, y, n_train):
    return {"X_train": X[:n_train], "y_train": y[:n_train], "X_test": X[n_train:], "y_test": y[n_train:]}


def _digits(rng, side, count, styles=3, strokes=4):
    """Ten classes of images in [0, 1]: a few curves of ink per class, in styles, shifted and noisy."""
    ends = rng.uniform(0.2, 0.8, size=(10, 1, strokes, 2)) + rng.normal(0.0, 0.05, size=(10, styles, strokes, 2))
    labels = rng.integers(10, size=count)
    points = ends[labels, rng.integers(styles, size=count)] + rng.normal(0.0, 0.03, size=(count, strokes, 2))
    points += rng.normal(0.0, 0.03, size=(count, 1, 2))
    along = np.linspace(0.0, 1.0, 8)[:, None]
    lines = [points[:, i, None] * (1 - along) + points[:, i + 1, None] * along for i in range(strokes - 1)]
    ink = np.concatenate(lines, axis=1)  # (count, places, 2)
    grid = (np.arange(side) + 0.5) / side
    down = np.exp(-((grid - ink[:, :, :1]) ** 2) / (2 * 0.05**2))
    across = np.exp(-((grid - ink[:, :, 1:]) ** 2) / (2 * 0.05**2))
    images = np.einsum("npi,npj->nij", down, across)
    noisy = np.minimum(images, 1.0) + rng.normal(0.0, 0.08, size=images.shape)
    return np.clip(noisy, 0.0, 1.0), labels


def _patents(rng):
    """Documents whose labels are leaves of a tree of depth three; near leaves have near means."""
    leaves = [f"D{a:02d}{b}{c:02d}" for a in (1, 4, 21) for b in "BCH" for c in (0, 1, 5)]
    X, y = _tree(rng, leaves, lambda leaf: (leaf[:3], leaf[:4], leaf), features=40, count=900)
    return _split(X, y, 800)


def _images(rng):
    """Features of images whose labels are paths with three levels."""
    leaves = [f"{a}@{a}/{b}@{a}/{b}/{c}" for a in (1, 2, 3) for b in (0, 1, 2) for c in (0, 5)]
    X, y = _tree(rng, leaves, lambda leaf: tuple(leaf.split("@")), features=30, count=900)
    return _split(X, y, 800)


def _tree(rng, leaves, path, features, count):
    """Rows with the sum of a random vector for each node above their label."""
    nodes = {node: rng.normal(size=features) for leaf in leaves for node in path(leaf)}
    means = np.array([sum(nodes[node] for node in path(leaf)) for leaf in leaves])
    kinds = np.sort(rng.integers(len(leaves), size=count) % rng.integers(1, len(leaves) + 1, size=count))
    order = rng.permutation(count)
    X = means[kinds] + rng.normal(0.0, 2.0, size=(count, features))
    return X[order].astype(np.float32), np.array(leaves)[kinds[order]]


_MAKERS = {"usps": _usps, "mnist": _mnist, "wipo_alpha_D_lsa100": _patents, "hmc_imclef07d": _images}
