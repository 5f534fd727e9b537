from typing import Any

class Way:
    pass

class Turn:
    def __init__(self, forks_wait: bool = True) -> None: ...
    alone: Any
    shared: Any

class TakesTurns:
    pass
