"""The loops inside tests: every case runs, whatever fails is named, and a covering design covers."""
import itertools

import pytest
from cases import covering_rows, each


@pytest.mark.parametrize("sizes, strength",
                         [([3, 4, 2], 2), ([5, 5, 5, 5], 2), ([2] * 9, 2), ([4, 3, 3, 2], 3), ([7, 3], 1), ([6], 2)])
def test_any_choices_meet_in_few_rows(sizes, strength):
    rows = covering_rows(sizes, strength)
    strength = min(strength, len(sizes))
    assert all(0 <= choice < size for row in rows for choice, size in zip(row, sizes, strict=True))
    for axes in itertools.combinations(range(len(sizes)), strength):
        met = {tuple(row[i] for i in axes) for row in rows}
        assert met == set(itertools.product(*(range(sizes[i]) for i in axes)))
    fewest = max(1,
                 *(len(list(itertools.product(*map(range, some)))) for some in itertools.combinations(sizes, strength)))
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
