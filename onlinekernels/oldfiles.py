"""Model files of earlier versions: their headers, with what has come since."""
import copy

__all__ = ["upgraded"]

SCALES_TARGETS = {"ILK", "NORMA", "PassiveAggressive", "Projection", "SILK", "SVMD"}


def upgraded(header):
    """A header of version 1 as version 2 has it: what is new has the value that version 1 stood for."""
    header = copy.deepcopy(header)
    params, state = header["params"], header["state"]
    if header["algorithm"] in SCALES_TARGETS:
        params.setdefault("scale_target", False)
    if state is not None:
        plan = state["plan"]
        plan.setdefault("scale_target", 0.0)
        state.setdefault("rows", None)
        state.setdefault("target_scaler", None)
        for name in ("loss", "kernel"):  # a default, or a name, may stand for something else today
            if name in params and name not in header["without"] and not isinstance(params[name], dict):
                params[name] = copy.deepcopy(plan[name])
                if header["algorithm"] == "ALMA":  # it normalises what it is given
                    params[name] = params[name]["params"]["kernel"]
        _share_steps(plan)
    _share_steps(params)
    header["version"] = 2
    return header


def _share_steps(part):
    """Adapted margins and widths shared the step of f."""
    if not isinstance(part, dict):
        return
    if str(part.get("noun", "")).startswith("Nu"):
        part["params"].setdefault("margin_step", None)
    for value in part.values():
        _share_steps(value)
