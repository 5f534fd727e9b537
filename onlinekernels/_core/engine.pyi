from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onlinekernels._core.kernels import Program
from onlinekernels._core.ring import Pool

REASONS: dict[int, str]

def tell(error: BaseException, rows: int) -> None: ...

class Engine:
    program: Program | None
    kernel: Any
    pool: Pool | None
    weights: NDArray | None
    n_features: int
    dtype: np.dtype
    regularization: float
    has_offset: bool
    averages: bool
    offset: float
    t: int
    notices_bad_points: bool
    def __init__(
        self,
        *,
        program: Program | None,
        kernel: Any,
        weight_scale: float,
        n_features: int | None,
        dtype: DTypeLike,
        loss: tuple[int, float, float],
        custom_loss: Any,
        step: tuple[int, float, float],
        regularization: float,
        budget: tuple[int, int, float],
        offset: bool,
        average: bool,
        origin: NDArray | None,
    ) -> None: ...
    def configure(self, step: tuple[int, float, float], regularization: float) -> None: ...
    def learn(
        self,
        y: NDArray,
        *,
        X: NDArray | None = None,
        objects: list[Any] | None = None,
        weights: NDArray | None = None,
        scores: NDArray | None = None,
    ) -> None: ...
    def learn_one(self, x: Any, y: float) -> float: ...
    def coefficients(self, average: bool = False) -> NDArray: ...
    def intercept(self, average: bool = False) -> float: ...
    def decision(
        self, *, X: NDArray | None = None, objects: list[Any] | None = None, average: bool = False
    ) -> NDArray: ...
    def scalar(self) -> float: ...
    def step_size(self) -> float: ...
    def begin_from(self, points: Any, alpha: NDArray, offset: float) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
