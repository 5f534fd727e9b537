"""Reports in words: tables and what stands in their cells."""
import math
import numbers

ERROR_WORDS = {
    "binary": "mistakes",
    "multiclass": "mistakes",
    "regression": "mean absolute error",
    "novelty": "alerts",
}


def report_table(report):
    span = f"last {min(report.window, report.examples)}"
    rows = [("", "all", span)]
    for name, word in _shown_measures(report):
        rows.append((word, *(shown(report.task, name, getattr(report, part + name)) for part in ("", "window_"))))
    lines = [shortened(report.name), aligned(rows)]
    lines.append(f"{report.examples} examples in {report.seconds:.3g} s{_model_words(report)}")
    return "\n".join(lines)


def _model_words(report):
    """What became of the model; nothing for one of another library."""
    if math.isnan(report.step):
        return ""
    margin = "" if math.isnan(report.margin) else f", {margin_word(report.task)} {report.margin:.4g}"
    return f"; at the end {report.terms} terms, step {report.step:.4g}{margin}"


def comparison_table(comparison):
    first = comparison.reports[comparison.best]
    measures = _shown_measures(*comparison.reports.values())
    (_, word), *others = measures
    heads = ["model", word, f"last {min(first.window, first.examples)}", *(word for _, word in others)]
    rows = [(*heads, "terms", "step", "us/example")]
    for report in comparison.reports.values():
        figures = [shown(report.task, key, getattr(report, key)) for key, _ in measures]
        figures.insert(1, shown(report.task, "error", report.window_error))
        microseconds = 1e6 * report.seconds / report.examples
        is_own = not math.isnan(report.step)
        figures += [str(report.terms), f"{report.step:.3g}"] if is_own else ["", ""]
        figures.append(f"{microseconds:.2f}")
        rows.append((shortened(report.name, 60), *figures))
    return aligned(rows)


def tuning_table(tuning):
    names = setting_names(tuning.trials)
    rows = [(*names, tuning.metric, "terms", "seconds")]
    for trial in tuning.trials:
        setting = [cell(trial.params[name]) if name in trial.params else "" for name in names]
        if trial.report is None:
            rows.append((*setting, "failed", "", ""))
        else:
            figures = f"{trial.value:.4g}", str(trial.report.terms), f"{trial.report.seconds:.3f}"
            rows.append((*setting, *figures))
    failed = [trial for trial in tuning.trials if trial.error is not None]
    notes = list(dict.fromkeys(shortened(trial.error, 200) for trial in failed))
    return "\n".join([aligned(rows), *notes])


def headline(task):
    """(name, words) of the measures that matter most for a task."""
    return [("error", ERROR_WORDS[task]), *([("squared_error", "squared error")] if task == "regression" else [])]


def _shown_measures(*reports):
    """(name, words) of the measures that at least one of the reports has."""
    task = reports[0].task
    outside = "outside the tube" if task == "regression" else "margin errors"
    words = [*headline(task), ("f1", "F1"), ("auc", "AUC"), ("loss", "loss"), ("margin_errors", outside)]
    return [(name, word) for name, word in words if not all(math.isnan(getattr(r, name)) for r in reports)]


def margin_word(task):
    return "width" if task == "regression" else "margin"


def shown(task, name, value):
    """A measure as text; empty if there is none."""
    if math.isnan(value):
        return ""
    is_rate = name == "margin_errors" or name == "error" and task != "regression"
    return f"{value:.2%}" if is_rate else f"{value:.4g}"


def aligned(rows):
    """Rows of text as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def shortened(text, width=110):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def cell(value):
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{value:.4g}"
    return shortened(value if isinstance(value, str) else repr(value), 40)


def setting_words(params, names):
    return ", ".join(f"{name}={cell(params.get(name))}" for name in names)


def setting_names(trials):
    return list(dict.fromkeys(name for trial in trials for name in trial.params))
