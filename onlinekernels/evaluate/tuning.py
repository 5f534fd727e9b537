"""Trying settings of parameters, here or on an executor."""
import copy
import itertools
import math
from collections.abc import Iterable, Mapping
from concurrent.futures import as_completed
from dataclasses import fields

from onlinekernels.evaluate.checks import check_model, checked_count
from onlinekernels.evaluate.chunks import is_series, kept
from onlinekernels.evaluate.measures import rank
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.evaluate.reports import Report, Trial, Tuning
from onlinekernels.evaluate.running import progressive
from onlinekernels.validation import bad_parameter


def tune(model, grid, stream, *, executor=None, metric="error", window=1000, chunk=1000, classes=None, progress=None):
    """Try settings of parameters on one stream and rank them.

    Every setting is set on a fresh copy of the model, which learns the whole stream as in `progressive`. The
    model itself is not touched. A setting that raises is recorded with its error.

    Parameters
    ----------
    model : model
        Its parameters hold where a setting says nothing.
    grid : dict or list of dict
        {name: list of values} means all combinations; a list holds the settings themselves. Names may be nested,
        as in "kernel__width".
    stream : as for `progressive`
        An iterable is read once and kept. Executors in other processes send the stream with every setting: for
        a large one, give a function that opens it there.
    executor : concurrent.futures.Executor, default=None
        Where settings run: threads, processes, or `Client.get_executor()` of Dask. None runs one after the other.
    metric : str or callable, default="error"
        A numeric attribute of `Report`, or a function of a report that gives a number; the least is best.
    window, chunk, classes, progress
        As for `progressive`; the bar counts settings. Chunks are longer here, to leave more to the compiled core.

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

    On two threads:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     threaded = evaluate.tune(model, grid, drifting_gaussians(1000), executor=executor)
    >>> threaded.best_params == tuning.best_params
    True
    """
    check_model("model", model)
    settings = _settings(grid)
    measure = _metric(metric, model)
    options = {
        "window": checked_count("tune", "window", window),
        "chunk": checked_count("tune", "chunk", chunk),
        "classes": classes,
    }
    model = fresh_copy(model)
    trials = _trials(model, settings, kept(stream), options, executor, progress)
    for trial in trials:
        if trial.report is not None:
            trial.value = float(measure(trial.report))
    _refuse_failure(trials, metric)
    trials.sort(key=lambda trial: (trial.report is None, rank(trial.value)))
    best = model.set_params(**copy.deepcopy(trials[0].params))
    return Tuning(best, trials, metric if isinstance(metric, str) else getattr(metric, "__name__", "metric"))


def fresh_copy(model):
    """A model with the same parameters that has learned nothing.

    >>> from onlinekernels import NORMA, evaluate
    >>> model = NORMA(step=0.5).partial_fit([[0.0], [1.0]], [-1, 1])
    >>> copied = evaluate.fresh_copy(model)
    >>> copied, hasattr(copied, "t_")
    (NORMA(step=0.5), False)
    """
    return type(model)(**copy.deepcopy(model.get_params(deep=False)))


def _settings(grid):
    """The settings that a grid means, a list of dicts."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if not is_series(values):
                raise ValueError(f"grid[{name!r}] must be a list of values. Got {values!r} instead.")
        settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    else:
        settings = list(grid) if isinstance(grid, Iterable) else [grid]
        for setting in settings:
            if not isinstance(setting, Mapping):
                raise ValueError(f"grid must be a dict of lists or a list of dicts. Got {setting!r} instead.")
    if not settings:
        raise ValueError(f"grid must hold at least one setting. Got {grid!r} instead.")
    return settings


def _metric(metric, model):
    """A function from a report to a number."""
    if callable(metric):
        return metric
    known = [f.name for f in fields(Report) if f.type in (int, float) and f.name not in ("examples", "window")]
    if metric not in known:
        raise bad_parameter("tune", "metric", f"a function of a report or one of {', '.join(known)}", metric)
    if metric in ("error", "window_error") and model._current_loss().task == "novelty":
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
