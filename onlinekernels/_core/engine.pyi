from typing import Any

from numpy.typing import ArrayLike, NDArray

from onlinekernels._core.expansion import Expansion

RULE_CODES: dict[str, int]
REASONS: dict[int, str]

class Engine:
    expansion: Expansion
    has_offset: bool
    averages: bool
    structured: bool
    growing: bool
    exact_norms: bool
    targets: int
    offsets: NDArray
    t: int
    notices_bad_points: bool
    def __init__(
        self,
        *,
        expansion: Expansion,
        loss: tuple[int, float, float],
        custom_loss: Any,
        step: tuple[int, float, float, float, float],
        rule: tuple[int, float, float, bool, float, float],
        offset: bool,
        average: bool,
        structured: bool = False,
        growing: bool = False,
        exact_norms: bool = False,
        targets: int = 1,
    ) -> None: ...
    def configure(
        self, step: tuple[int, float, float, float, float], rule: tuple[int, float, float, bool, float, float]
    ) -> None: ...
    def learn(
        self,
        y: NDArray,
        *,
        X: NDArray | None = None,
        objects: list[Any] | None = None,
        weights: NDArray | None = None,
        scores: NDArray | None = None,
        steps: NDArray | None = None,
        scalars: NDArray | None = None,
    ) -> None: ...
    def learn_one(self, x: Any, y: float) -> None: ...
    def grow(self, width: int) -> None: ...
    def coefficients(self, slots: ArrayLike | None = None) -> NDArray: ...
    def intercept(self) -> NDArray: ...
    def decision(
        self, *, X: NDArray | None = None, objects: list[Any] | None = None, trusted: bool = False, votes: int = 0
    ) -> NDArray: ...
    def knots(self, j: int) -> tuple[NDArray, NDArray, NDArray, list[NDArray]]: ...
    def component(self, j: int, points: NDArray) -> NDArray: ...
    def square_on_trees(self) -> float: ...
    def scalar(self) -> float: ...
    def step_size(self) -> float: ...
    def norms(self) -> tuple[float, float]: ...
    def begin_from(self, offset: NDArray, *arguments: Any) -> None: ...
    def begin_with_square(self, square: float) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
