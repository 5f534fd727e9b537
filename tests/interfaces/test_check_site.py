"""The script that looks at the built documentation finds what is wrong with a page, and nothing else."""
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "check_site.py"
if not SCRIPT.exists():
    pytest.skip("needs the sources", allow_module_level=True)
spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
check_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_site)

HEAD = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><article>'
LONG = "x" * 3000


def site(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(HEAD + body, encoding="utf-8")
    return folder


def test_links_that_lead_nowhere(tmp_path):
    good = '<h1 id="top">a</h1><a href="b.html#end">b</a><a href="#top">up</a><a href="https://example.org/x">out</a>'
    folder = site(tmp_path, a=good, b='<p id="end">c</p><a href="a.html">a</a>')
    assert list(check_site.broken_links(folder)) == []
    site(folder, b='<a href="c.html">c</a><a href="a.html#middle">a</a><img src="d%20e.png"><a href="#end">end</a>')
    assert set(check_site.broken_links(folder)) == {
        ("a.html", "b.html#end"), ("b.html", "c.html"), ("b.html", "a.html#middle"), ("b.html", "d%20e.png"),
        ("b.html", "#end")}
    (folder / "d e.png").write_bytes(b"")
    assert ("b.html", "d%20e.png") not in set(check_site.broken_links(folder))


def test_what_sticks_out_in_a_browser(tmp_path):
    browser = check_site.find_browser()
    if browser is None:
        pytest.skip("needs Chromium")
    folder = site(
        tmp_path,
        good=f'<pre style="overflow-x: auto; max-width: 90vw">short</pre><p style="overflow-wrap: anywhere">{LONG}</p>',
        wide='<div style="width: 700px">for wide windows only</div>',
        code=f'<pre style="overflow-x: auto; max-width: 90vw">{LONG}</pre>',
        picture='<img src="missing.png" alt="">',
    )
    pages = [f"{name}.html" for name in ("good", "wide", "code", "picture")]
    found = {(fault["page"], fault["width"]) for fault in check_site.look(folder, browser, pages)}
    assert found == {("wide.html", 400), ("code.html", 1400), ("picture.html", 1400), ("picture.html", 400)}
