from typing import Any

from numpy.typing import ArrayLike, NDArray

from onlinekernels._core.expansion import Expansion
from onlinekernels._core.kernels import Program
from onlinekernels._core.outputs import Outputs

def positions(places: NDArray) -> NDArray: ...
def gathered(places: NDArray, indices: NDArray, values: NDArray, n_features: int) -> Rows: ...

class Rows:
    indptr: NDArray
    indices: NDArray
    data: NDArray
    n_features: int
    shape: tuple[int, int]
    dtype: Any
    def __init__(self, indptr: ArrayLike, indices: ArrayLike, data: ArrayLike, n_features: int) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Rows: ...

class Sparse(Expansion):
    def __init__(
        self,
        *,
        program: Program | None,
        weight_scale: float,
        n_features: int,
        budget: tuple[int, int, float],
        channels: int,
        outputs: Outputs | None,
        form: int,
        evaluates_slots: bool = False,
    ) -> None: ...
    def set_arena(self, indices: NDArray, values: NDArray, used: int) -> None: ...
    def clear_scratch(self) -> None: ...
    def terms(self, slots: NDArray) -> Rows: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
