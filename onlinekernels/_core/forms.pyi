from typing import Any

class Form:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def set_order(self, display: Any) -> Any: ...
    rule: Any
    outputs: Any
    custom_loss: Any
    targets: Any

class OneOutput(Form):
    pass

class Targets(Form):
    pass

class ManyLabels(Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def set_order(self, display: Any) -> Any: ...
    structured: Any

class LabelPair(ManyLabels):
    pass

class AllLabels(ManyLabels):
    pass
