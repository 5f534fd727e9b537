from typing import Any

class Way:
    pass

class Turn:
    def __init__(self) -> None: ...
    alone: Any
    shared: Any

class TakesTurns:
    pass
