from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LANES_CODES: dict[str, int]

class Models:
    n: int
    dtype: np.dtype
    arrays: dict[str, NDArray]
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
    def grow(self, n: int) -> None: ...
    def visit(
        self,
        X: NDArray,
        y: NDArray | None,
        scores: NDArray,
        *,
        groups: tuple[NDArray, NDArray, NDArray] | None = None,
        active: NDArray | None = None,
        learning: bool,
        first: int,
        last: int,
    ) -> tuple[int, int, int]: ...
    def values(self, name: str) -> NDArray: ...
    def gather(self, models: ArrayLike) -> dict[str, NDArray]: ...
    def scatter(self, models: ArrayLike, state: dict[str, NDArray]) -> None: ...
    def check_state(self, state: dict[str, NDArray], n: int) -> None: ...
    def terms(self, model: int) -> tuple[NDArray, NDArray]: ...
    def term_counts(self) -> NDArray: ...
    def nbytes(self) -> int: ...
    def _check(self) -> None: ...
