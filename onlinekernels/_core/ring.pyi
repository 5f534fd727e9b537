from typing import Any

from numpy.typing import ArrayLike, DTypeLike, NDArray

BUDGET_CODES: dict[str, int]

def check_array(array: Any, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray: ...
def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray: ...
def window_lengths(code: int, size: int, exponent: float, t: ArrayLike) -> NDArray | int: ...

class Pool:
    capacity: int
    start: int
    stop: int
    count: int
    oldest: int
    rows: int
    outputs: int
    n_facts: int
    n_features: int
    points: NDArray | None
    objects: list[Any] | None
    coefficients: NDArray
    point_facts: NDArray
    birthdays: NDArray
    pairs: NDArray | None
    def __init__(
        self,
        budget: tuple[int, int, float],
        channels: int,
        outputs: int,
        n_features: int | None,
        dtype: DTypeLike,
        n_facts: int,
        paired: bool = False,
    ) -> None: ...
    def reserve(self, newcomers: int) -> None: ...
    def widen(self, outputs: int) -> None: ...
    def tidy(self) -> None: ...
    def live_slots(self) -> NDArray: ...
    def pack(self) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def check_state(self, state: dict[str, Any], t: int, labels: int = 1) -> None: ...
    def _check(self) -> None: ...
