from numpy.typing import ArrayLike, NDArray

LABEL_CODES: dict[str, int]

class Outputs:
    code: int
    n: int
    def __init__(
        self,
        n: int,
        parent: ArrayLike | None = None,
        place: ArrayLike | None = None,
        table: ArrayLike | None = None,
    ) -> None: ...
    def can_grow(self) -> bool: ...
    def clear_scratch(self) -> None: ...
    def kappa_times(self, scores: ArrayLike) -> NDArray: ...
    def distances_from(self, y: int) -> NDArray: ...
