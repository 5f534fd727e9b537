"""Three small real streams that come with the library: for a first try, for examples, for the tour."""
from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["digits", "sunspots", "tumours"]


def digits() -> Any:
    """Handwritten digits, 1797 rows of 8 x 8 grey values from 0 to 16, in the order in which they were collected.

    By Alpaydin and Kaynak (UCI Machine Learning Repository, "Optical Recognition of Handwritten Digits", its test part;
    CC BY 4.0).

    Returns
    -------
    X : array of shape (1797, 64)
    y : array of shape (1797,), the digits

    >>> X, y = digits()
    >>> X.shape, y[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    data = _load("digits")
    return data["X"].astype(float), data["y"].astype(int)


def sunspots() -> Any:
    """The yearly number of sunspots, 1700 to 2008: a cycle of about eleven years whose height nobody foresees.

    Collected by the National Geophysical Data Center of the United States; in the public domain.

    Returns
    -------
    activity : array of shape (309,)

    >>> sunspots()[:4].tolist()
    [5.0, 11.0, 16.0, 23.0]
    """
    return _load("sunspots")["activity"].astype(float)


def tumours() -> Any:
    """Cell nuclei of 569 tumours, 30 numbers each, of which 212 are malignant.

    By Wolberg, Mangasarian and Street (UCI Machine Learning Repository, "Breast Cancer Wisconsin (Diagnostic)"; CC BY
    4.0).

    Returns
    -------
    X : array of shape (569, 30)
    malignant : array of booleans of shape (569,)
    names : list of str, the features

    >>> X, malignant, names = tumours()
    >>> X.shape, int(malignant.sum()), names[:2]
    ((569, 30), 212, ['mean radius', 'mean texture'])
    """
    data = _load("tumours")
    return data["X"].astype(float), data["malignant"].copy(), data["names"].tolist()


@functools.cache
def _load(name):
    path = resources.files(__name__).joinpath(f"{name}.npz")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
        return {key: data[key] for key in data.files}
