from typing import Any

from numpy.typing import DTypeLike, NDArray

CODES: dict[str, int]

class Program:
    n_ops: int
    n_facts: int
    depth: int
    needs_inner: bool
    needs_l1: bool
    needs_double: bool
    needs_places: bool
    origin: NDArray | None
    def __init__(self, ops: list[dict[str, Any]]) -> None: ...
    def start(self, n_features: int, dtype: DTypeLike, origin: NDArray | None) -> None: ...
    def choose_origin(self, first_row: NDArray) -> NDArray | None: ...
    def gram(self, X: NDArray, Z: NDArray | None = None) -> NDArray: ...
    def gram_of_inner(
        self, inner: NDArray, left: NDArray, right: NDArray, same: bool
    ) -> tuple[NDArray, NDArray]: ...
    def facts_of(self, X: NDArray) -> tuple[NDArray, NDArray]: ...
    def diagonal(self, X: NDArray) -> NDArray: ...
