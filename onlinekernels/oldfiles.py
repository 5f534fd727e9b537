"""Model files of earlier versions: what they say, as the latest version says it."""
import copy

import numpy as np

__all__ = ["upgraded"]

SCALES_TARGETS = {"ILK", "NORMA", "PassiveAggressive", "Projection", "SILK", "SVMD"}
# Parameters that came later, and what stands for the time before
NEW = {"ROMMA": {"cap": None}, "SVMD": {"normalized": False}}
# Version 2 had these numbers in one array; the last two were missing at first.
NUMBERS = ("eta", "product", "square", "scalar_eta", "scalar_trace", "corrections", "peak", "gap", "gap_weight")


def upgraded(header, arrays):
    """(header, arrays) of any version as the latest one has them."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    for name, value in NEW.get(header["algorithm"], {}).items():
        header["params"].setdefault(name, value)
    if header["version"] == 1:
        _from_first(header)
    if header["version"] == 2:
        _from_second(header, arrays)
    if header["version"] == 3:
        _from_third(header)
    if header["state"] is not None and "unit" not in header["state"]:
        _keep_choices(header["params"], header["state"])
    return header, arrays


def _keep_choices(params, state):
    """Defaults that would be chosen otherwise today: the kernel of sparse rows, the budget of a linear kernel."""
    chosen = state["plan"]
    if state["sparse"] and "kernel" in params and params["kernel"] is None:
        params["kernel"] = copy.deepcopy(chosen["kernel"])
    if params.get("budget") == "auto" and chosen["kernel"] is not None and chosen["kernel"]["noun"] != "Gaussian":
        params["budget"] = copy.deepcopy(chosen["budget"])


def _from_first(header):
    """What is new in version 2 has the value that version 1 stood for."""
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


def _share_steps(part):
    """Adapted margins and widths shared the step of f."""
    if not isinstance(part, dict):
        return
    if str(part.get("noun", "")).startswith("Nu"):
        part["params"].setdefault("margin_step", None)
    for value in part.values():
        _share_steps(value)


def _from_second(header, arrays):
    """Version 2 mirrored memory: rows for labels that had not joined, numbers without names, what follows from points."""
    header["version"] = 3
    if header["algorithm"] == "SVMD":
        header["params"].setdefault("per_feature", False)
    if header["algorithm"] == "ILK":
        header["params"].setdefault("average", False)
    state = header["state"]
    if state is None:
        return
    old = state.pop("engine")

    def array(name):
        return arrays[old[name]["array"]]

    def put(name, value):
        key = f"of version 3: {name}"
        arrays[key] = np.ascontiguousarray(value)
        learned[name] = {"array": key}

    channels, width = len(array("frame")), int(array("offsets").shape[1])
    labels = old.get("labels", 1)
    learned = {name: value for name, value in old.items() if name not in ("meta", "offsets", "oldest", "point_facts", "width")}
    learned["labels"] = labels
    learned.update(zip(NUMBERS, map(float, [*array("meta"), 0.0, 0.0])))
    for name, row in zip(("offset", "offset_sum", "offset_eta", "offset_trace"), array("offsets")):
        put(name, row[:labels])
    for name in ("weights", "tree_values", *(() if "pairs" in old else ("coefficients",))):
        if name in old:
            rows = array(name).reshape(channels, width, -1)[:, :labels]
            put(name, rows.reshape(channels * labels, rows.shape[2]))
    if "sparse_indices" in old:
        sizes = array("points")[:, 1].astype(np.int64)
        del learned["points"]
        put("sparse_sizes", sizes)
    state["learned"] = learned


def _from_third(header):
    """Version 4 knows learners of second order; whoever was there before is of the first."""
    header["version"] = 4
    if header["algorithm"] == "ILK":
        header["params"].setdefault("average", False)
    if header["state"] is not None:
        header["state"]["plan"].setdefault("second_order", None)
