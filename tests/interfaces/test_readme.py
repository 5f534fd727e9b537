"""The README's pipelines, which its doctests leave out, since they need scikit-learn and river."""
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n((?!>>>).*?)```", README.read_text(encoding="utf-8"),
                    re.DOTALL) if README.exists() else []


def names_of(library, monkeypatch):
    """Run the one block that imports from a library, where its files are, and return its names."""
    pytest.importorskip(library)
    pytest.importorskip("pandas")
    (block,) = [block for block in BLOCKS if f"from {library}" in block]
    monkeypatch.chdir(README.parent)
    names = {}
    exec(block, names)
    return names


@pytest.mark.skipif(not BLOCKS, reason="needs the README")
def test_the_pipeline_of_scikit_learn(monkeypatch):
    names = names_of("sklearn", monkeypatch)
    assert "returned" not in names["orders"]
    assert set(names["shop"].predict(names["orders"])) <= {"no", "yes"}


@pytest.mark.skipif(not BLOCKS, reason="needs the README")
def test_the_pipeline_of_river(monkeypatch):
    assert names_of("river", monkeypatch)["auc"].get() > 0.9
