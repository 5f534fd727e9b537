"""Run experiments and put what comes out into the pages: pictures and reports into images/experiments, claim and
verdict between marks.

    python docs/images/make_experiments.py --data DIR              # all of them; some minutes
    python docs/images/make_experiments.py --data DIR svmd-fig6

A page has lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what stands between them is replaced.
"""
import argparse
import re
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS))

from experiments import EXPERIMENTS
from experiments.data import Data

PICTURES = DOCS / "images" / "experiments"


def put(name, report):
    """Write the report beside the pictures; its claim and verdict into the page that has the marks of this
    experiment."""
    (PICTURES / f"{name}.txt").write_text(report + "\n", encoding="utf-8")
    said = dict(line.split(": ", 1) for line in report.splitlines() if line.startswith(("claim: ", "verdict: ")))
    paragraphs = (
        f"![{EXPERIMENTS[name].title}](../images/experiments/{name}.png)",
        f"**Claim.** {said['claim']}",
        f"**Verdict.** {said['verdict']} [All figures](../images/experiments/{name}.txt)",
    )
    filled = (textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) for text in paragraphs)
    block = "\n" + "\n\n".join(filled) + "\n\n"
    marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    for page in DOCS.glob("reference/experiments-*.md"):
        old = page.read_text(encoding="utf-8")
        new = marks.sub(lambda match: match[1] + block + match[2], old)
        if new != old:
            page.write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(EXPERIMENTS))
    parser.add_argument("--data", required=True)
    arguments = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as folder:
            text = EXPERIMENTS[name].reproduce(Data(arguments.data), Path(folder))
            shutil.copy(Path(folder) / f"{name}.png", PICTURES)
        report, _, _ = text.rpartition("\nwritten:")
        put(name, report)
        print(report, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
