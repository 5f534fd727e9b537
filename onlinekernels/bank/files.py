"""Banks in files: model files whose algorithm is "Bank"."""
import json
import os

import numpy as np

from onlinekernels.base import files

__all__ = ["save", "read"]


def save(bank, path):
    """Write a bank; see `Bank.save`."""
    learned, arrays = bank._to_dict(), {}
    if learned is not None:
        if any(type(key) not in (bool, int, float, str) for key in learned["keys"] or ()):
            raise TypeError("Keys must be numbers or strings to be saved. Pickle the bank instead.")
        learned = {**learned, "params": encoded(learned["params"], arrays), "models": encoded(learned["models"], arrays)}
    header = {
        "format": files.FORMAT,
        "version": files.VERSION,
        "algorithm": "Bank",
        "params": encoded(bank.get_params(deep=False), arrays),
        "state": learned,
    }
    header["digest"] = files._digest(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    files._write(os.fspath(path), arrays)


def read(path):
    """(parameters, what is learned or None) from a file that `save` wrote."""
    path = os.fspath(path)
    path = path if os.path.exists(path) or path.endswith(".npz") else path + ".npz"
    header, arrays = files._read(path)
    if header.get("algorithm") != "Bank":
        raise ValueError(f"{path} holds a {header.get('algorithm')}, not a bank; use onlinekernels.load.")
    try:
        params, learned = decoded(header["params"], arrays), header["state"]
        if learned is not None:
            learned = {**learned, "params": decoded(learned["params"], arrays), "models": decoded(learned["models"], arrays)}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}.") from error
    return params, learned


def encoded(values, arrays):
    return {name: files._encoded(value, name, arrays) for name, value in values.items()}


def decoded(values, arrays):
    return {name: files._decoded(value, arrays) for name, value in values.items()}
