"""Data sets for the experiments: files, OpenML, or stand-ins.

A data set is a file ``NAME.npz`` in the folder that ``--data`` names, which ``numpy.load`` reads without pickle. The
page "The papers' experiments" of the documentation lists the names and their arrays. Without such a file, ``usps`` and
``mnist`` come from OpenML by scikit-learn, if it is installed and there is a network. Nobody offers the others for
download by machine. A quick run uses small stand-ins instead, made by chance.
"""

import os
from pathlib import Path

import numpy as np

from onlinekernels.experiments import standins

__all__ = ["Data", "MissingData"]

_ON_OPENML = {"usps": 41082, "mnist": 554}


class MissingData(Exception):
    """A data set is nowhere to be found; the message says what to do."""


class Data:
    """Where data sets come from.

    Parameters
    ----------
    folder : str or Path, default=None
        Folder with ``.npz`` files.
    quick : bool, default=False
        Take stand-ins for what is not in the folder, and do not ask OpenML.

    Attributes
    ----------
    sources : dict
        Where each data set that was asked for came from, in words.

    Examples
    --------
    >>> from onlinekernels.experiments import Data
    >>> data = Data(quick=True)
    >>> digits = data.load("usps")
    >>> sorted(digits), digits["X_train"].shape[1]
    (['X_test', 'X_train', 'y_test', 'y_train'], 256)
    >>> data.sources
    {'usps': 'a stand-in made by chance'}
    >>> Data().load("wipo_alpha_D_lsa100")
    Traceback (most recent call last):
    ...
    onlinekernels.experiments.data.MissingData: The data set 'wipo_alpha_D_lsa100' is not there. Give --data ...
    """

    def __init__(self, folder=None, quick=False):
        self.folder = None if folder is None else Path(folder)
        self.quick = quick
        self.sources = {}
        self._loaded = {}

    def load(self, name):
        """Return the arrays of a data set by their names; MissingData if there is no way to get them."""
        if name not in self._loaded:
            self._loaded[name], self.sources[name] = self._find(name)
        return self._loaded[name]

    def load_if_there(self, name):
        """Return the arrays of a data set, or None without its file."""
        there = self.folder is not None and (self.folder / f"{name}.npz").exists()
        return self.load(name) if there else None

    def _find(self, name):
        if self.folder is not None:
            path = self.folder / f"{name}.npz"
            if path.exists():
                with np.load(path, allow_pickle=False) as file:
                    return {key: file[key] for key in file.files}, str(path)
        if self.quick:
            return standins.make(name), _STAND_IN
        if name not in _ON_OPENML:
            raise MissingData(self._sentence(name, "OpenML does not have it"))
        return _from_openml(name, self._sentence), f"OpenML, data set {_ON_OPENML[name]}"

    def _sentence(self, name, reason):
        looked = "" if self.folder is None else f" in {self.folder}{os.sep}"
        return (
            f"The data set {name!r} is not there{looked}. Give --data DIR with a folder that holds {name}.npz "
            f"({reason}), or --quick for a small run on a stand-in."
        )


_STAND_IN = "a stand-in made by chance"


def _from_openml(name, sentence):
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise MissingData(sentence(name, "scikit-learn, which could fetch it, is not installed")) from error
    try:
        found = fetch_openml(data_id=_ON_OPENML[name], as_frame=False, parser="liac-arff")
    except Exception as error:  # no network, no such set, a broken cache: whatever it is, there is no data
        reason = f"OpenML did not give it: {type(error).__name__}"
        raise MissingData(sentence(name, reason)) from error
    X, y = np.asarray(found.data, dtype=float), np.asarray(found.target).astype(float).astype(int)
    if name == "usps":  # its labels begin with 1
        X, y, n_train = np.rint(1000 * X).astype(np.int16), y - y.min(), 7291
    else:
        X, n_train = X.reshape(-1, 28, 28).astype(np.uint8), 60_000
    return {"X_train": X[:n_train], "y_train": y[:n_train], "X_test": X[n_train:], "y_test": y[n_train:]}
