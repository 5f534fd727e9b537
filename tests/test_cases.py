"""The loops inside tests: every case runs, whatever fails is named, and a covering design covers."""
import itertools

import pytest
from cases import covering, covering_rows, each


@pytest.mark.parametrize("sizes, strength", [([3, 4, 2], 2), ([5, 5, 5, 5], 2), ([2] * 9, 2), ([4, 3, 3, 2], 3), ([7, 3], 1), ([6], 2)])
def test_any_choices_meet_in_few_rows(sizes, strength):
    rows = covering_rows(sizes, strength)
    strength = min(strength, len(sizes))
    assert all(0 <= choice < size for row in rows for choice, size in zip(row, sizes, strict=True))
    for axes in itertools.combinations(range(len(sizes)), strength):
        met = {tuple(row[i] for i in axes) for row in rows}
        assert met == set(itertools.product(*(range(sizes[i]) for i in axes)))
    fewest = max(1, *(len(list(itertools.product(*map(range, some)))) for some in itertools.combinations(sizes, strength)))
    assert len(rows) <= 2 * fewest and rows == covering_rows(sizes, strength)


def test_all_cases_run_and_those_that_fail_are_named():
    seen = []

    @each("a, b", [(1, 2), (3, 4)])
    @each("c", ["x", "y"], ids=str.upper)
    def looped(a, b, c):
        seen.append((a, b, c))
        assert (a, c) != (1, "y") and a != 3

    with pytest.raises(AssertionError) as error:
        looped()
    assert seen == [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")]
    assert error.value.__notes__ == ["in the case a,b=1,2 c=Y\n3 of 4 cases fail, also\n  a,b=3,4 c=X\n  a,b=3,4 c=Y"]


def test_a_case_that_is_skipped_stops_no_other_and_all_of_them_skip_the_test():
    seen = []

    @each("n", [1, 2, 3])
    def looped(n, most):
        if n < most:
            pytest.skip("small")
        seen.append(n)

    looped(most=2)
    assert seen == [2, 3]
    with pytest.raises(pytest.skip.Exception):
        looped(most=9)


def test_each_case_has_fixtures_to_itself(tmp_path, monkeypatch, capsys):
    @each("n", [1, 2])
    def looped(n, tmp_path, monkeypatch, capsys):
        assert not list(tmp_path.iterdir()) and not hasattr(pytest, "patched") and not capsys.readouterr().out
        (tmp_path / "file").write_text("")
        monkeypatch.setattr(pytest, "patched", True, raising=False)
        print("something")

    looped(tmp_path=tmp_path, monkeypatch=monkeypatch, capsys=capsys)


def test_a_covering_runs_some_tuples_and_the_grid_all():
    seen = []

    @covering(1)
    @each("a", range(4))
    @each("b", range(3), make=lambda b: [b])
    def looped(a, b):
        seen.append((a, *b))

    looped()
    assert {a for a, _ in seen} == set(range(4)) and {b for _, b in seen} == set(range(3)) and len(seen) <= 6
    seen.clear()
    looped(grid=True)
    assert seen == list(itertools.product(range(4), range(3)))


def test_what_makes_no_sense_is_left_out_of_a_covering_and_of_the_grid():
    seen = []

    @covering(2, unless=lambda a, c, **_: a == 0 and c == 1)
    @each("a", range(3))
    @each("b", range(3))
    @each("c", range(2))
    def looped(a, b, c):
        seen.append((a, b, c))

    looped()
    assert len(seen) < 15 and all(row[::2] != (0, 1) for row in seen)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        left_out = {(0, 1)} if (i, j) == (0, 2) else set()
        assert {(row[i], row[j]) for row in seen} == set(itertools.product(range(3), range(3 if j == 1 else 2))) - left_out
    seen.clear()
    looped(grid=True)
    assert len(seen) == 15
