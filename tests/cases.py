"""Many cases in one test: each of a list, every tuple of several lists, or enough tuples that all pairs of choices
meet.

`each` is written as `pytest.mark.parametrize` is, and makes one test where that makes hundreds.  All cases run,
whatever becomes of the others; the first that fails is shown, with a note that names it and the others.  Stacked,
`each` runs every tuple; below `covering`, as few as will do, and every tuple in a second test, which is marked slow.
"""
import functools
import inspect
import itertools

import pytest

SHOWN = 8  # cases that a note names


def each(names, cases, ids=None, make=None):
    """Call the test with each of the cases.

    Parameters
    ----------
    names : str
        What a case gives values to, between commas.
    cases : iterable
        With several names, a case is a tuple.
    ids : callable or list of str, optional
        What a note calls a case instead of its repr.
    make : callable, optional
        Makes the value from the case, anew for each tuple: for models that a test will change.
    """
    names, cases = [name.strip() for name in names.split(",")], list(cases)
    if ids is None or callable(ids):
        label = ids or (lambda value: getattr(value, "__name__", None) or repr(value))
        ids = [",".join(str(label(value)) for value in (case if len(names) > 1 else [case])) for case in cases]

    def values_of(case):
        case = case if make is None else make(case)
        return dict(zip(names, case, strict=True)) if len(names) > 1 else {names[0]: case}

    axis = [(",".join(names), label, functools.partial(values_of, case))
            for case, label in zip(cases, ids, strict=True)]

    def decorated(test):
        if inspect.isclass(test):
            for name, method in list(vars(test).items()):
                if name.startswith("test_"):
                    setattr(test, name, decorated(method))
            return test
        inner, axes, _ = getattr(test, "cases", (test, [], None))
        return looping(test, inner, [axis, *axes], {*names})

    return decorated


def covering(strength, unless=None):
    """Of the grid of the `each` below, run tuples such that any `strength` choices meet; with the mark slow, all.

    `unless` is asked with the values of a tuple, by name, whether that makes no sense.
    """
    def decorated(test):
        inner, axes, _ = test.cases
        chosen = looping(test, inner, axes, set(), lambda grid: chosen_rows(axes, strength, unless, grid))
        return pytest.mark.parametrize("grid", [False, pytest.param(True, marks=pytest.mark.slow)],
                                       ids=["cover", "grid"])(chosen)

    return decorated


def chosen_rows(axes, strength, unless, grid):
    """Tuples of cases: of the whole grid, or of a covering design."""
    def is_fine(row):
        return unless is None or not unless(**values_of([axes[axis][choice] for axis, choice in row.items()]))

    sizes = [len(axis) for axis in axes]
    if grid:
        rows = [row for row in itertools.product(*map(range, sizes)) if is_fine(dict(enumerate(row)))]
    else:
        rows = covering_rows(sizes, strength, is_fine)
    return [[axis[choice] for axis, choice in zip(axes, row)] for row in rows]


def values_of(row):
    return {name: value for _, _, make in row for name, value in make().items()}


def looping(test, inner, axes, hidden, choose=None):
    """A test that calls `inner` with the cases of a grid, without the arguments `hidden` that these fill in."""
    @functools.wraps(test)
    def loop(*args, grid=False, **given):
        rows = list(itertools.product(*axes)) if choose is None else choose(grid)
        failed, skipped = [], []
        for number, row in enumerate(rows):
            try:
                inner(*args, **alone(given, number), **values_of(row))
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except (Exception, pytest.fail.Exception) as error:
                failed.append((" ".join(f"{names}={label}" for names, label, _ in row), error))
        if failed:
            where, error = failed[0]
            others = "".join(f"\n  {name}" for name, _ in failed[1:SHOWN])
            others += "\n  ..." if len(failed) > SHOWN else ""
            note = f"in the case {where}" + (f"\n{len(failed)} of {len(rows)} cases fail, also{others}" if others
                                             else "")
            error.__notes__ = [*getattr(error, "__notes__", []), note]  # `add_note` of Python 3.11
            raise error
        if rows and len(skipped) == len(rows):
            raise skipped[0]

    signature = inspect.signature(test)
    left = [p for name, p in signature.parameters.items() if name not in hidden]
    if choose is not None:
        left.append(inspect.Parameter("grid", inspect.Parameter.KEYWORD_ONLY))
    loop.__signature__ = signature.replace(parameters=left)
    loop.cases = inner, axes, choose
    return loop


def alone(given, number):
    """The fixtures, as if this case were the only one: a directory of its own, no output, nothing patched."""
    fixtures = dict(given)
    if "tmp_path" in fixtures:
        fixtures["tmp_path"] = fixtures["tmp_path"] / str(number)
        fixtures["tmp_path"].mkdir()
    if "monkeypatch" in fixtures and number:
        fixtures["monkeypatch"].undo()
    for capture in {"capsys", "capfd"} & set(fixtures):
        fixtures[capture].readouterr()
    return fixtures


def covering_rows(sizes, strength, is_fine=lambda row: True):
    """Rows of choices 0 <= row[i] < sizes[i] such that each combination of `strength` choices is in one, greedily.

    Each row starts with a combination that no row had, and takes on each further axis the choice with which it meets
    the most others for the first time, or the next best if the row would not be fine.
    """
    strength = min(strength, len(sizes))
    wanted = dict.fromkeys(
        tuple(zip(axes, choices)) for axes in itertools.combinations(range(len(sizes)), strength)
        for choices in itertools.product(*(range(sizes[i]) for i in axes)))
    turn = itertools.count()  # equal choices take turns

    def news(row, item):
        return sum(tuple(sorted([*rest, item])) in wanted for rest in itertools.combinations(row.items(), strength - 1))

    def completed(row):
        axis = next((axis for axis in range(len(sizes)) if axis not in row), None)
        if axis is None:
            return row if is_fine(row) else None
        start = next(turn)
        choices = [(start + i) % sizes[axis] for i in range(sizes[axis])]
        for choice in sorted(choices, key=lambda choice: -news(row, (axis, choice))):
            found = completed({**row, axis: choice})
            if found is not None:
                return found
        return None

    rows = []
    while wanted:
        combination = next(iter(wanted))
        row = completed(dict(combination))
        if row is None:  # these never go together
            del wanted[combination]
            continue
        row = dict(sorted(row.items()))
        for combination in itertools.combinations(row.items(), strength):
            wanted.pop(combination, None)
        rows.append(tuple(row.values()))
    return rows
