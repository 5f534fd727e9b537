"""Data sets for the experiments: files, OpenML, or stand-ins.

A data set is a file ``NAME.npz`` in the folder that ``--data`` names, which ``numpy.load`` reads without pickle. The
page "The papers' experiments" of the documentation lists the names and their arrays. Without such a file, ``usps`` and
``mnist`` come from OpenML by scikit-learn, if it is installed and there is a network. Nobody offers the others for
download by machine. A quick run uses small stand-ins instead, made by chance: the same arrays, so that every experiment
runs anywhere. What comes out of these says nothing about the papers.
"""
import os
from pathlib import Path

import numpy as np

ON_OPENML = {"usps": 41082, "mnist": 554}


class MissingData(Exception):
    """A data set is nowhere to be found; the message says what to do."""


class Data:
    """Where data sets come from: `folder`, or None; if `quick`, stand-ins for what is not there, else OpenML.

    `sources` says in words where each data set that was asked for came from; `made_up` has those that are stand-ins.

    Examples
    --------
    >>> from experiments.data import Data
    >>> data = Data(quick=True)
    >>> digits = data.load("usps")
    >>> sorted(digits), digits["X_train"].shape[1]
    (['X_test', 'X_train', 'y_test', 'y_train'], 256)
    >>> data.sources
    {'usps': 'a stand-in made by chance'}
    >>> Data().load("wipo_alpha_D_lsa100")
    Traceback (most recent call last):
    ...
    experiments.data.MissingData: The data set 'wipo_alpha_D_lsa100' is not there. Give --data ...
    """

    def __init__(self, folder=None, quick=False):
        self.folder = None if folder is None else Path(folder)
        self.quick = quick
        self.sources, self.made_up = {}, set()
        self._loaded = {}

    def load(self, name):
        """Return the arrays of a data set by their names; MissingData if there is no way to get them."""
        if name not in self._loaded:
            self._loaded[name], self.sources[name] = self._find(name)
        return self._loaded[name]

    def load_if_there(self, name):
        """Return the arrays of a data set, or None without its file."""
        return self.load(name) if self._is_there(name) else None

    def _is_there(self, name):
        return self.folder is not None and (self.folder / f"{name}.npz").exists()

    def _find(self, name):
        if self._is_there(name):
            path = self.folder / f"{name}.npz"
            with np.load(path, allow_pickle=False) as file:
                return dict(file), str(path)
        if self.quick:
            self.made_up.add(name)
            return stand_in(name), "a stand-in made by chance"
        if name not in ON_OPENML:
            raise MissingData(self._sentence(name, "OpenML does not have it"))
        return self._from_openml(name), f"OpenML, data set {ON_OPENML[name]}"

    def _sentence(self, name, reason):
        looked = "" if self.folder is None else f" in {self.folder}{os.sep}"
        return (f"The data set {name!r} is not there{looked}. Give --data DIR with a folder that holds {name}.npz "
                f"({reason}), or --quick for a small run on a stand-in.")

    def _from_openml(self, name):
        try:
            from sklearn.datasets import fetch_openml
        except ImportError as error:
            reason = "scikit-learn, which could fetch it, is not installed"
            raise MissingData(self._sentence(name, reason)) from error
        try:
            found = fetch_openml(data_id=ON_OPENML[name], as_frame=False, parser="liac-arff")
        except Exception as error:  # no network, no such set, a broken cache: whatever it is, there is no data
            reason = f"OpenML did not give it: {type(error).__name__}"
            raise MissingData(self._sentence(name, reason)) from error
        X, y = np.asarray(found.data, dtype=float), np.asarray(found.target).astype(float).astype(int)
        if name == "usps":  # its labels begin with 1
            return split(np.rint(1000 * X).astype(np.int16), y - y.min(), 7291)
        return split(X.reshape(-1, 28, 28).astype(np.uint8), y, 60_000)


def split(X, y, n_train):
    return {"X_train": X[:n_train], "y_train": y[:n_train], "X_test": X[n_train:], "y_test": y[n_train:]}


# ---- Stand-ins ------------------------------------------------------------------------------------


def stand_in(name, seed=0):
    """The arrays of a made-up data set that looks like the one of that name."""
    return STAND_INS[name](np.random.default_rng(seed))


def usps(rng):
    pictures, labels = digits(rng, side=16, count=2400)
    return split(np.rint(2000 * pictures.reshape(len(pictures), -1) - 1000).astype(np.int16), labels, 2000)


def mnist(rng):
    pictures, labels = digits(rng, side=28, count=2400)
    return split(np.rint(255 * pictures).astype(np.uint8), labels, 2000)


def digits(rng, side, count, styles=3, strokes=4):
    """Ten classes of images in [0, 1]: a few curves of ink per class, in styles, shifted and noisy."""
    ends = rng.uniform(0.2, 0.8, size=(10, 1, strokes, 2)) + rng.normal(0.0, 0.05, size=(10, styles, strokes, 2))
    labels = rng.integers(10, size=count)
    points = ends[labels, rng.integers(styles, size=count)] + rng.normal(0.0, 0.03, size=(count, strokes, 2))
    points += rng.normal(0.0, 0.03, size=(count, 1, 2))
    along = np.linspace(0.0, 1.0, 8)[:, None]
    lines = [points[:, i, None] * (1 - along) + points[:, i + 1, None] * along for i in range(strokes - 1)]
    ink = np.concatenate(lines, axis=1)  # (count, points of the line, 2)
    grid = (np.arange(side) + 0.5) / side
    down = np.exp(-((grid - ink[:, :, :1]) ** 2) / (2 * 0.05**2))
    across = np.exp(-((grid - ink[:, :, 1:]) ** 2) / (2 * 0.05**2))
    pictures = np.einsum("npi,npj->nij", down, across)
    noisy = np.minimum(pictures, 1.0) + rng.normal(0.0, 0.08, size=pictures.shape)
    return np.clip(noisy, 0.0, 1.0), labels


def patents(rng):
    """Documents whose labels are leaves of a tree of depth three; near leaves have near means."""
    leaves = [f"D{a:02d}{b}{c:02d}" for a in (1, 4, 21) for b in "BCH" for c in (0, 1, 5)]
    X, y = tree(rng, leaves, lambda leaf: (leaf[:3], leaf[:4], leaf), features=40, count=900)
    return split(X, y, 800)


def images(rng):
    """Features of images whose labels are paths with three levels."""
    leaves = [f"{a}@{a}/{b}@{a}/{b}/{c}" for a in (1, 2, 3) for b in (0, 1, 2) for c in (0, 5)]
    X, y = tree(rng, leaves, lambda leaf: tuple(leaf.split("@")), features=30, count=900)
    return split(X, y, 800)


def tree(rng, leaves, path, features, count):
    """Rows with the sum of a random vector for each node above their label."""
    nodes = {node: rng.normal(size=features) for leaf in leaves for node in path(leaf)}
    means = np.array([sum(nodes[node] for node in path(leaf)) for leaf in leaves])
    kinds = np.sort(rng.integers(len(leaves), size=count) % rng.integers(1, len(leaves) + 1, size=count))
    order = rng.permutation(count)
    X = means[kinds] + rng.normal(0.0, 2.0, size=(count, features))
    return X[order].astype(np.float32), np.array(leaves)[kinds[order]]


STAND_INS = {"usps": usps, "mnist": mnist, "wipo_alpha_D_lsa100": patents, "hmc_imclef07d": images}
