from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onlinekernels._core.kernels import Program
from onlinekernels._core.outputs import Outputs
from onlinekernels._core.ring import Pool

FORMS: dict[str, int]

class Expansion:
    program: Program | None
    kernel: Any
    pool: Pool | None
    weights: NDArray | None
    outputs: Outputs | None
    form: int
    width: int
    n_features: int
    dtype: np.dtype
    def __init__(
        self,
        *,
        program: Program | None,
        kernel: Any,
        weight_scale: float,
        n_features: int | None,
        dtype: DTypeLike,
        origin: NDArray | None,
        budget: tuple[int, int, float],
        channels: int,
        outputs: Outputs | None,
        form: int,
        evaluates_slots: bool = False,
    ) -> None: ...
    def grow(self, width: int) -> None: ...
    def square_of_objects(self) -> float: ...
    def clear_scratch(self) -> None: ...
    def coefficients(self, channel: int, slots: ArrayLike | None = None) -> NDArray: ...
    def begin_from(self, points: Any, alpha: NDArray, pairs: NDArray | None = None) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
