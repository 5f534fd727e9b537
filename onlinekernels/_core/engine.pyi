from typing import Any

from numpy.typing import NDArray

from onlinekernels._core.decider import Decider

REASONS: dict[int, str]

class Engine(Decider):
    growing: bool
    leaves_out: bool
    done: int
    notices_bad_points: bool
    def __init__(self, *, growing: bool = False, leaves_out: bool = False, **others: Any) -> None: ...
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
    def mind_forks(self) -> None: ...
    def grow(self, width: int) -> None: ...
    def decision(
        self, *, X: NDArray | None = None, objects: list[Any] | None = None, trusted: bool = False, votes: int = 0
    ) -> NDArray: ...
    def begin_from(self, offset: NDArray, *arguments: Any) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def _check(self) -> None: ...
