from typing import Any

from numpy.typing import ArrayLike, NDArray

from onlinekernels._core.expansion import Expansion
from onlinekernels._core.outputs import Outputs
from onlinekernels._core.tree import Tree

class Forest(Expansion):
    tree: Tree
    scale: float
    low: NDArray | None
    stretch: NDArray | None
    def __init__(
        self,
        *,
        additive: tuple[Any, ...],
        scale: float,
        bounds: Any,
        n_features: int,
        budget: tuple[int, int, float],
        channels: int,
        outputs: Outputs | None,
        form: int,
    ) -> None: ...
    def grow(self, width: int) -> None: ...
    def begin_from(self, points: ArrayLike | None, alpha: Any, pairs: NDArray | None = None) -> None: ...
    def knots(self, j: int, channel: int = 0) -> NDArray: ...
    def component(self, j: int, points: ArrayLike, channel: int = 0) -> NDArray: ...
    def component_at_knots(self, j: int, channel: int = 0) -> NDArray: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
