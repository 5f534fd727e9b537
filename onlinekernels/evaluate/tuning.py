"""Trying settings of parameters, here or on an executor."""
from __future__ import annotations

import copy
import math
import numbers
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING

from onlinekernels.evaluate.checks import check_model, checked_count
from onlinekernels.evaluate.chunks import kept
from onlinekernels.evaluate.measures import rank
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.evaluate.reports import Report, Trial, Tuning
from onlinekernels.evaluate.running import progressive
from onlinekernels.evaluate.settings import drawn_settings, settings_of
from onlinekernels.evaluate.subjects import is_fitted, is_pipeline, learns_in_parts, subject
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.nouns.docstrings import like
from onlinekernels.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Callable, Executor, Grid, Sequence


# Metrics of which the most is best.
_MOST = ("f1", "auc", "window_f1", "window_auc")


@like(progressive)
def tune(model: Any, grid: Grid, stream: Any, *, n_iter: int | None = None, seed: int = 0, n_jobs: int | None = None,
         executor: Executor | None = None, metric: str | Callable[..., float] = "error", window: int = 1000,
         chunk: int = 1000, classes: Sequence[Any] | None = None, delay: int = 0, novel: Any = None,
         progress: bool | None = None) -> Tuning:
    """Try settings of parameters on one stream and rank them.

    Every setting is set on a fresh copy of the model, which learns the whole stream as in `progressive`. The
    model itself is not touched. A setting that raises is recorded with its error.

    Parameters
    ----------
    {model}
        Its parameters hold where a setting says nothing.
    grid : dict or list of dict
        {name: list of values} means all combinations; a list holds the settings themselves. Names may be nested,
        as in "kernel__width". With `n_iter`, values may also be drawn: by ``scipy.stats.loguniform(0.1, 10)`` or
        anything that has `rvs`, or by a function of a NumPy random generator.
    {stream}
        Here, an iterable is read once and kept. Executors in other processes send the stream with every setting: for
        a large one, give a function that opens it there.
    n_iter : int or None, default=None
        Random search: try so many settings, drawn from the grid, none twice. Where values are drawn, each setting is
        drawn anew; otherwise all are tried if there are no more. None tries all.
    seed : int, default=0
        The same seed draws the same settings.
    n_jobs : int or None, default=None
        Number of threads; -1 means one for each processor. None runs one setting after the other.
    executor : concurrent.futures.Executor, default=None
        Where settings run, in place of `n_jobs`: threads, processes, or `Client.get_executor()` of Dask.
    metric : str or callable, default="error"
        A numeric attribute of `Report`, of which the least is best (the most of `auc`, `f1` and those over the window),
        or a function of a report that gives a number, the least of which is best.
    {window}
    chunk : int, default=1000
        Number of examples between two records of the history; more than in `progressive`, to leave more to the compiled
        core.
    {classes}
    {delay}
    {novel}
    {progress}
        The bar counts settings.

    Returns
    -------
    Tuning

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, evaluate
    >>> from onlinekernels.streams import drifting_gaussians
    >>> grid = {"kernel__width": [0.4, 4.0], "step": [0.1, 1.0]}
    >>> model = NORMA("hinge", Gaussian(), regularization=1/15, budget=100)
    >>> tuning = evaluate.tune(model, grid, drifting_gaussians(1000))
    >>> tuning.best_params
    {'kernel__width': 0.4, 'step': 1.0}
    >>> tuning.best
    NORMA(loss='hinge', kernel=Gaussian(width=0.4), step=1.0, regularization=0.06666666666666667, budget=100)

    Eight settings at random, on two threads:

    >>> grid = {"kernel__width": lambda rng: 10 ** rng.uniform(-1, 1), "step": [0.1, 1.0]}
    >>> drawn = evaluate.tune(model, grid, drifting_gaussians(1000), n_iter=8, n_jobs=2)
    >>> len(drawn.trials), bool(0.1 < drawn.best_params["kernel__width"] < 2)
    (8, True)
    """
    check_model("model", model)
    if n_iter is None:
        settings = settings_of(grid)
    else:
        settings = drawn_settings(grid, checked_count("tune", "n_iter", n_iter), seed)
    _check_reach(model, settings)
    measure = _metric(metric, model)
    options = {
        "window": checked_count("tune", "window", window),
        "chunk": checked_count("tune", "chunk", chunk),
        "classes": classes,
        "delay": checked_count("tune", "delay", delay, least=0),
        "novel": novel,
        "auc": callable(metric) or "auc" in metric,
    }
    model = fresh_copy(model)
    with _workers(n_jobs, executor) as executor:
        trials = _trials(model, settings, kept(stream), options, executor, progress)
    for trial in trials:
        if trial.report is not None:
            trial.value = float(measure(trial.report))
    _refuse_failure(trials, metric)
    sign = -1 if metric in _MOST else 1
    trials.sort(key=lambda trial: (trial.report is None, rank(sign * trial.value)))
    best = model.set_params(**copy.deepcopy(trials[0].params))
    return Tuning(best, trials, metric if isinstance(metric, str) else getattr(metric, "__name__", "metric"))


def fresh_copy(model: Any) -> Any:
    """A model with the same parameters that has learned nothing.

    Steps of a pipeline that cannot learn row by row are fitted before, and stay as they are.

    >>> from onlinekernels import NORMA, evaluate
    >>> model = NORMA(step=0.5).partial_fit([[0.0], [1.0]], [-1, 1])
    >>> copied = evaluate.fresh_copy(model)
    >>> copied, hasattr(copied, "t_")
    (NORMA(step=0.5), False)
    """
    if not isinstance(model, OnlineLearner):
        from sklearn.base import clone

        copied = clone(model)
        for place, (name, step) in enumerate(model.steps if is_pipeline(model) else ()):
            if _stays(step):
                copied.steps[place] = name, copy.deepcopy(step)
        return copied
    return type(model)(**copy.deepcopy(model.get_params(deep=False)))


def _stays(step):
    """Whether a step of a pipeline is used as it was fitted."""
    return step is not None and step != "passthrough" and not learns_in_parts(step)


def _check_reach(model, settings):
    """Settings must not be about what was fitted and stays as it is: it would not be fitted anew."""
    steps = model.steps if is_pipeline(model) else ()
    fixed = {name for name, step in steps if _stays(step) and not is_fitted(fresh_copy(step))}
    for name in dict.fromkeys(name for setting in settings for name in setting):
        step, dots, _ = name.partition("__")
        if dots and step in fixed:
            raise ValueError(
                f"grid must not name {name!r}: the step {step!r} cannot learn row by row, so it stays as it was fitted. "
                f"Steps that were fitted with different settings can be tried: {{{step!r}: [one, another]}}."
            )


def _workers(n_jobs, executor):
    """A context that gives an executor, or None to run here."""
    if n_jobs is None:
        return nullcontext(executor)
    if executor is not None:
        raise ValueError(f"n_jobs={n_jobs!r} makes threads and executor= has workers of its own: give one of them.")
    is_count = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool) and (n_jobs >= 1 or n_jobs == -1)
    if not is_count:
        raise bad_parameter("tune", "n_jobs", "an integer of at least 1, -1 for all processors, or None", n_jobs)
    return nullcontext() if n_jobs == 1 else ThreadPoolExecutor(os.cpu_count() if n_jobs == -1 else int(n_jobs))


def _metric(metric, model):
    """A function from a report to a number."""
    if callable(metric):
        return metric
    known = [f.name for f in fields(Report) if f.type in ("int", "float") and f.name not in ("examples", "window")]
    if metric not in known:
        raise bad_parameter("tune", "metric", f"a function of a report or one of {', '.join(known)}", metric)
    if metric in ("error", "window_error") and subject(model).task == "novelty":
        raise ValueError(
            f"metric={metric!r} is the rate of alerts for a novelty loss, and fewer are not better. Give a function, "
            "such as metric=lambda report: abs(report.error - 0.01)."
        )
    return lambda report: getattr(report, metric)


def _trials(model, settings, stream, options, executor, progress):
    """Trials of all settings, in their order."""
    with progress_bar(progress, len(settings), " settings") as advance:
        if executor is None:
            trials = []
            for params in settings:
                trials.append(_try(model, params, stream, options))
                advance(1)
            return trials
        futures = [executor.submit(_try, model, params, stream, options) for params in settings]
        try:
            for _ in as_completed(futures):
                advance(1)
        except BaseException:  # Ctrl-C: what has not begun need not begin
            for future in futures:
                future.cancel()
            raise
        return [_result(future, params) for future, params in zip(futures, settings, strict=True)]


def _try(model, params, stream, options):
    """One trial; it runs wherever the executor likes, so all it needs comes as arguments."""
    try:
        model = fresh_copy(model).set_params(**copy.deepcopy(params))
        report = progressive(model, stream, progress=False, **options)
    except Exception as error:
        return _failure(params, error)
    return Trial(dict(params), report=report)


def _result(future, params):
    try:
        return future.result()
    except Exception as error:  # it could not be sent, or its process died
        return _failure(params, error)


def _failure(params, error):
    return Trial(dict(params), error=f"{type(error).__name__}: {error}")


def _refuse_failure(trials, metric):
    if all(trial.report is None for trial in trials):
        raise ValueError(f"All {len(trials)} settings failed. The first, {trials[0].params}: {trials[0].error}")
    if all(trial.report is None or math.isnan(trial.value) for trial in trials):
        raise ValueError(f"The 'metric' parameter of tune must give a number. {metric!r} is NaN for all settings.")
