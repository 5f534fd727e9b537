from typing import Any

from numpy.typing import ArrayLike, NDArray

from onlinekernels._core.expansion import Expansion

class Hypothesis:
    expansion: Expansion
    has_offset: bool
    averages: bool
    exact_norms: bool
    targets: int
    regression: bool
    trouble: int
    offsets: NDArray
    t: int
    def __init__(
        self,
        *,
        expansion: Expansion,
        loss: tuple[int, float, float, float],
        step: tuple[int, float, float, float, float],
        rule: tuple[int, float, float, bool, float, float],
        offset: bool,
        average: bool,
        exact_norms: bool,
        targets: int,
    ) -> None: ...
    def configure(
        self, step: tuple[int, float, float, float, float], rule: tuple[int, float, float, bool, float, float]
    ) -> None: ...
    def coefficients(self, slots: ArrayLike | None = None) -> NDArray: ...
    def intercept(self) -> NDArray: ...
    def knots(self, j: int) -> tuple[NDArray, NDArray, NDArray, list[NDArray]]: ...
    def component(self, j: int, points: NDArray) -> NDArray: ...
    def square_on_trees(self) -> float: ...
    def scalar(self) -> float: ...
    def set_scalar(self, scalar: float) -> None: ...
    def step_size(self) -> float: ...
    def norms(self) -> tuple[float, float]: ...
    def begin_with_square(self, square: float) -> None: ...
