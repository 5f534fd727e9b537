from typing import Any

class Workspace:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    next: Any
    under: Any
