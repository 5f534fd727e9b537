"""The status of an engine whose learning goes wrong, and the warning that says what to do."""
import sys
import warnings

from onlinekernels.base import defaults
from onlinekernels.losses.base import LOG

# As in _core/rules.pxd
SCALAR_BELOW, SCALAR_ABOVE, DIVERGED, STALLED, RESTARTED, NO_BETTER, OUT_OF_REACH = 1, 2, 3, 4, 5, 6, 7

DIVERGES = "Learning diverges: many predictions of late were more than ten times as large as any target."


class LearningWarning(RuntimeWarning):
    """Learning goes on, but has gone wrong: a margin that tells nothing apart any more, a loss that explodes, a step
    that has fallen to nothing, a length that has no end, predictions that are no better than a constant, a margin that
    no f can have, 10,000 terms without a budget.

    Each model warns once. The message says what to change. To have an error instead::

        warnings.simplefilter("error", onlinekernels.LearningWarning)
    """


MANY_TERMS = 10_000  # of a model without a budget
MOST_NAMED = 80  # characters of a model in a warning


def warn_once(state, model):
    """Warn of what the engine of a model's state has noticed, unless the user was warned before."""
    status = state.status
    if state.warned or status == RESTARTED and state.plan.rule.norm_bound:  # who has a ball knows
        return
    state.warned = True
    if status == RESTARTED:
        message = ("ROMMA has started anew: nothing separates the examples, and |w| |x| would have exceeded 1e5. What "
                   "may help: a cap; a narrower kernel, or kernel + Noise(0.1); PassiveAggressive, which tolerates "
                   "errors.")
    elif status == NO_BETTER:
        message = _no_better(state, model.get_params(deep=False))
    elif status == OUT_OF_REACH:
        reached, regularization = state.hypothesis.largest_score(), state.plan.rule.regularization
        message = (f"The margin {state.loss.margin:g} is out of reach: with regularization={regularization:g} no f(x) "
                   f"exceeds {reached:.3g}, so that every example is a margin error, and is kept. What may help: a "
                   f"margin below {reached:.3g}, or a regularization below "
                   f"{regularization * reached / state.loss.margin:.3g}.")
    elif status in (DIVERGED, STALLED):
        message = _exploded(state, status)
    else:
        message = _ran_away(state.loss, state.hypothesis.scalar(latest=True), status)
    _warn(model, message)


def warn_of_size(state, model):
    """Warn once that a model without a budget keeps a great many terms."""
    if not state.is_unlimited or state.t < MANY_TERMS or state.n_terms() < MANY_TERMS:
        return
    state.is_unlimited = False  # the user knows by now
    _warn(model, f"This model keeps all of its terms, {state.n_terms()} by now: memory grows with them, and so does "
          "the time that a row takes. What may help: budget=1000, the latest terms, or budget=Smallest(1000), the "
          "largest ones; a kernel such as RandomFourier(Gaussian()), which keeps weights.")


def _warn(model, message):
    """Warn of a model, which the message names at its end: filters look at the beginning."""
    name = repr(model)
    name = name if len(name) <= MOST_NAMED else name[: MOST_NAMED - 3] + "..."
    warnings.warn(f"{message} ({name})", LearningWarning, stacklevel=level_outside())


def shared_status(states):
    """(status, verdict about the best) of all members of a composite; None if one has noticed nothing."""
    found = {state.status for state in states}
    if 0 in found:
        return None
    if found != {NO_BETTER}:
        return DIVERGED, None
    verdicts = [state.hypothesis.trial.verdict() for state in states]
    return NO_BETTER, min(verdicts, key=lambda verdict: verdict[1] / max(verdict[2], 1e-300))


def warn_of_members(state, noticed, model):
    """Warn of what `shared_status` has found in a composite, if that is anything, unless the user was warned before.

    What would help a member is of no use: its parameters are not the user's.
    """
    if noticed is None or state.warned:
        return
    state.warned = True
    status, verdict = noticed
    message = DIVERGES
    if status == NO_BETTER:
        examples, loss, constant, leader = verdict
        answer = None if state.labels is None else state.labels.order[leader]
        compared = _than_a_constant(answer, examples, loss, constant)
        message = f"{compared} Maybe these features say nothing about what is to be learned."
    _warn(model, message)


def level_outside():
    """The stack level, for our caller, of the line that called the library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "onlinekernels":
        frame, level = frame.f_back, level + 1
    return level


def _ran_away(loss, scalar, status):
    where, whats = "below" if status == SCALAR_BELOW else "above", "errors |y - f|"
    advice = [f"give {type(loss).__name__} a margin_step such as 0.1"] if loss.margin_step in (None, LOG) else []
    if loss.scalar_name == "margin":
        whats = "scores"
        advice += ["choose a smaller regularization (f has to remember many times 1 / nu examples)",
                   "a larger width of the kernel"]
    else:
        advice.append(f"start from a {loss.scalar_name} of the size of the errors, or use scale_target=True")
    return (f"The {loss.scalar_name} of {loss!r} has run away: it is {scalar:.3g}, and has been {where} all {whats} "
            f"for a long time, so it tells no examples apart. What may help: {'; '.join(advice)}.")


def _unscaled(state, parameters):
    """What is not scaled, and might be."""
    advice = []
    if "scale" in parameters and not state.plan.scale and state.n_features is not None:
        advice.append("scale=True, if the features are not of the size of 1")
    if state.loss.task == "regression" and "scale_target" in parameters and not state.plan.scale_target:
        advice.append("scale_target=True, if the targets are not")
    return advice


def _exploded(state, status):
    advice, what = _unscaled(state, ("scale", "scale_target")), DIVERGES
    if status == STALLED:
        what = "Learning has stalled: the step has adapted itself to less than a millionth of the first."
        advice.append("a smaller meta_step, or a memory below 1")
    elif state.plan.rule.advice is not None:
        advice.append(state.plan.rule.advice)
    return f"{what} What may help: {'; '.join(advice) or 'a larger regularization'}."


def _no_better(state, parameters):
    """Which constant does as well, and what may help, as far as the model has it."""
    examples, loss, constant, leader = state.hypothesis.trial.verdict()
    compared = _than_a_constant(None if state.labels is None else state.labels.order[leader], examples, loss, constant)
    advice = _unscaled(state, parameters)
    width = getattr(state.kernel, "width", defaults.width(state.kernel))
    if width is not None:
        advice.append(f"another width of the kernel than {width:.3g} (evaluate.tune tries several), or a linear kernel")
    elif state.representation.advice is not None:
        advice.append(state.representation.advice)
    if not state.plan.offset and "offset" in parameters:
        advice.append("offset=True")
    if state.labels is not None and constant < 0.2 and "class_weight" in parameters and not parameters["class_weight"]:
        advice.append("a class_weight for the rare classes, if they matter more")
    return (f"{compared} What may help: {'; '.join(advice) or 'another kernel'}. "
            "Or these features say nothing about what is to be learned.")


def _than_a_constant(leader, examples, loss, constant):
    """That a model is no better than always answering with the most frequent label, or the mean of numbers (None)."""
    if leader is None:
        than, figures = "the mean of the targets so far", f"its loss is {loss / constant:.3g} times that of the mean"
    else:
        than = f"always answering {leader!r}, the most frequent class so far"
        figures = f"{loss:.1%} mistakes, and {constant:.1%} of that answer"
    return f"This model is no better than {than}: {figures}, in the latest {examples} examples that were compared."
