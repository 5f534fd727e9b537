"""The documentation as a whole: short enough to be read, and code that fits its box."""
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts) + [ROOT / "README.md"]
MOST_WORDS, MOST_COLUMNS = 40_000, 88

pytestmark = pytest.mark.skipif(len(PAGES) < 40, reason="the pages are not here")


def test_all_pages_together_can_be_read_in_an_afternoon():
    words = {page.name: len(page.read_text().split()) for page in PAGES}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda entry: -entry[1])[:5]


def test_code_fits_its_box():
    wide = []
    for page in PAGES:
        fence = None
        for line in page.read_text().splitlines():
            if line.startswith("```"):
                fence = line if fence is None else None
            elif fence is not None and not fence.startswith("```{") and len(line) > MOST_COLUMNS:   # {toctree} and the like are prose
                wide.append(f"{page.name}: {line}")
    assert not wide, "\n".join(wide)
