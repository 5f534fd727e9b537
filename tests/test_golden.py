"""The package against its golden traces; golden.py says what they are.

On the machine that wrote them ONLINEKERNELS_GOLDEN=strict asks for 1e-13; elsewhere processors and matrix products
round in other places, and the tolerance is 1e-9 (for rows in single precision 1e-6 and 1e-3).
"""
import os

import pytest
from cases import each
from golden import TOLERANCES, difference, numbers_of, precision, read, title

pytestmark = pytest.mark.filterwarnings("ignore:(ROMMA has started anew|This model is no better|The margin . is out of reach):onlinekernels.LearningWarning")
CASES, ROWS = read()
STRICT = os.environ.get("ONLINEKERNELS_GOLDEN") == "strict"


def assert_near(case, numbers, expected):
    gap, where = difference(numbers, expected)
    tolerance = TOLERANCES[precision(case)][0 if STRICT else 1]
    assert gap <= tolerance, f"{where} differs by {gap:.1e}, and {tolerance:.0e} is allowed"


def need(case):
    if case.get("rows") == "csr":
        pytest.importorskip("scipy")


@each("place", range(len(CASES)), ids=lambda place: title(CASES[place]))
def test_trace(place):
    need(CASES[place])
    assert_near(CASES[place], numbers_of(CASES[place]), ROWS[place])
