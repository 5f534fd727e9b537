"""Run experiments and put what comes out into the pages: pictures into images/reproduce, reports between marks.

    python docs/images/make_reproduce.py --data DIR              # all of them; some minutes
    python docs/images/make_reproduce.py --data DIR svmd-fig6

A page has lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what stands between them is replaced.
"""
import argparse
import re
import shutil
import tempfile
from pathlib import Path

from onlinekernels.experiments import NAMES, Data, find, reproduce

DOCS = Path(__file__).resolve().parents[1]
PICTURES = DOCS / "images" / "reproduce"


def put(name, text):
    """Replace the report in the page that has the marks of this experiment."""
    marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    picture = f"![{find(name).title}](../images/reproduce/{name}.png)"
    block = f"\n{picture}\n\n```text\n{text}\n```\n\n"
    for page in DOCS.glob("reference/experiments-*.md"):
        old = page.read_text(encoding="utf-8")
        new = marks.sub(lambda match: match[1] + block + match[2], old)
        if new != old:
            page.write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--data", required=True)
    arguments = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as folder:
            text = reproduce(find(name), Data(arguments.data), folder)
            shutil.copy(Path(folder) / f"{name}.png", PICTURES)
        report, _, _ = text.rpartition("\nwritten:")
        put(name, report)
        print(report, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
