"""The documentation as a whole: short enough to be read, and code that fits its box."""
import ast
import functools
import inspect
import pathlib
import re

import pytest

import onlinekernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
            # {toctree} and the like are prose
            elif fence is not None and not fence.startswith("```{") and len(line) > MOST_COLUMNS:
                wide.append(f"{page.name}: {line}")
    assert not wide, "\n".join(wide)


def parameters_of(name):
    """Names of the parameters of something public; None if it is not, or takes any."""
    found = functools.reduce(lambda thing, part: getattr(thing, part, None), name.split("."), onlinekernels)
    try:
        parameters = inspect.signature(found).parameters if callable(found) else None
    except ValueError:
        return None
    is_open = parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return None if is_open else {*parameters, *dir(found)}


def test_pages_and_docstrings_name_only_parameters_that_exist():
    """In calls such as `NORMA(step=0.1)`, and in "the `step` of `NORMA`"."""
    sources = sorted((ROOT / "onlinekernels").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in [*PAGES, *sources]}
    wrong, seen = [], 0
    for path, text in texts.items():
        text = "\n".join(re.findall(r'"""(?:.|\n)*?"""', text)) if path.suffix == ".py" else text
        named = [(cls, name) for name, cls in re.findall(r"`(\w+)=?` of `(\w+)`", text)]
        for code in re.findall(r"`([^`\n]*\w\([^`\n]*\))`", text):
            try:
                calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
            except SyntaxError:
                continue
            named += [(ast.unparse(call.func), keyword.arg) for call in calls for keyword in call.keywords]
        for cls, name in named:
            parameters = parameters_of(cls) if re.fullmatch(r"[\w.]+", cls) else None
            seen += parameters is not None
            if parameters is not None and name not in parameters:
                wrong.append((path.name, cls, name))
    assert not wrong and seen > 50
