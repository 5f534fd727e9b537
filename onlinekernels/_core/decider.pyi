from typing import Any

from onlinekernels._core.hypothesis import Hypothesis

RULE_CODES: dict[str, int]

class Decider(Hypothesis):
    structured: bool
    def __init__(self, *, custom_loss: Any, structured: bool = False, **others: Any) -> None: ...
    def set_order(self, display: list[int] | None) -> None: ...
