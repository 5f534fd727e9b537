"""Annotations: every public name has them, and a user's program, which `.ci/run` has checked strictly, runs."""
import inspect

import onlinekernels as ok
import typed_program
from cases import each

PUBLIC = [getattr(ok, name) for name in ok.__all__]


@each("thing", [thing for thing in PUBLIC if inspect.isclass(thing) and thing.__init__ is not object.__init__])
def test_parameters_have_types(thing):
    if thing.__init__.__qualname__.split(".")[0] not in ("Exception", "UserWarning", "Warning"):
        parameters = [*inspect.signature(thing.__init__).parameters.values()][1:]
        missing = [p.name for p in parameters if p.annotation is p.empty]
        assert not missing or not inspect.isfunction(thing.__init__), f"{thing.__name__}: {missing}"


def test_the_typed_program_runs(tmp_path):
    rows = [[0.0, 0.1], [1.0, 1.1], [0.1, 0.0], [1.1, 1.0]] * 10
    assert typed_program.main(rows, ["a", "b"] * 20, str(tmp_path / "model.npz")) > 3.0
