from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LANES_CODES: dict[str, int]

class Shares:
    def __init__(self, n: int, first: int, last: int, scratch: NDArray) -> None: ...

class Models:
    n: int
    dtype: np.dtype
    arrays: dict[str, NDArray]
    index: dict
    labels: Any
    visited: int
    def __init__(
        self,
        *,
        loss: tuple,
        step: tuple,
        implicit: bool,
        regularization: float,
        penalty: float,
        recent: bool,
        slots: int,
        offset: bool,
        gamma: float | None,
        n_features: int,
        dtype: Any,
    ) -> None: ...
    def configure(self, step: tuple, regularization: float, penalty: float) -> None: ...
    def reserve(self, n: int) -> None: ...
    def visit(
        self,
        X: NDArray,
        y: NDArray | None,
        scores: NDArray,
        *,
        groups: tuple[NDArray, NDArray, NDArray] | None = None,
        active: NDArray | None = None,
        first: int,
        last: int,
        threads: int = 1,
        learning: bool = False,
        rows: int = 0,
        n: int = 0,
        keys: dict | None = None,
        labels: Any = None,
        failed: NDArray | None = None,
    ) -> tuple[int, int, int]: ...
    def values(self, name: str) -> NDArray: ...
    def gather(self, models: ArrayLike) -> dict[str, NDArray]: ...
    def admit(self, state: dict[str, NDArray], n: int, keys: dict | None = None) -> None: ...
    def check_state(self, state: dict[str, NDArray], n: int) -> None: ...
    def terms(self, model: int) -> tuple[NDArray, NDArray]: ...
    def term_counts(self) -> NDArray: ...
    def nbytes(self) -> int: ...
    def _check(self) -> None: ...
