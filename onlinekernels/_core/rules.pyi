from numpy.typing import ArrayLike, NDArray

STEP_CODES: dict[str, int]

def step_sizes(code: int, rate: float, delay: float, meta_rate: float, memory: float, t: ArrayLike) -> NDArray | float: ...
