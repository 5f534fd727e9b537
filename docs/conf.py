"""The documentation as a website: `sphinx-build -W -b html docs docs/_build`.

The pages are plain Markdown that reads well on its own and runs as doctests. Nothing is added to them here but the
table of contents, which is put behind `index.md` when Sphinx reads it. So this file is the only place that knows
the order of the pages. A page that is not named in SECTIONS still gets in, under "More".
"""
import re
from pathlib import Path

import onlinekernels

HERE = Path(__file__).parent

# ---- What Sphinx asks -----------------------------------------------------------------------------

project = "onlinekernels"
author = "The onlinekernels developers"
copyright = author
version = release = onlinekernels.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "benchmarks", "images"]
html_theme = "furo"
html_title = f"onlinekernels {release}"
html_copy_source = False
html_theme_options = {"light_css_variables": {"code-font-size": "78%"}}
WIDE = "<style>@media (min-width: 97em) { .main .content { width: 53em } }</style>"  # code of 100 columns fits
smartquotes_action = "D"  # dashes only: quotes stay as they are typed
highlight_language = "none"  # formulas are no Python; examples say what they are
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 4  # links such as nouns.md#float32
myst_links_external_new_tab = False

default_role = "py:obj"  # `NORMA` in a docstring is a link where it can be one
add_module_names = False
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "returns_style")]  # a plain list, without links
napoleon_use_rtype = False

# ---- The table of contents ------------------------------------------------------------------------

SECTIONS = {
    "Start here": ["quickstart", "frontdoor", "choosing", "nouns", "budgets", "labels"],
    "In practice": [
        "evaluate", "contributions", "streams", "data", "sparse", "novelty", "bank", "parallel", "video", "commandline", "river",
    ],
    "Algorithms": ["norma", "implicit", "stepsize", "second_order", "selftuned", "additive", "maps", "projection", "bounds"],
    "The papers": [
        "experiments", "experiments-norma", "experiments-implicit", "experiments-stepsize", "experiments-additive",
        "errata", "errata-norma", "errata-implicit", "errata-stepsize", "errata-additive",
    ],
    "Below the surface": ["glossary", "internals", "tree", "benchmarks", "contributing"],
    "Reference": ["api/index"],
}


def contents():
    """The table as MyST directives: the pages that exist, each once."""
    pages = {page.stem for page in HERE.glob("*.md")} | {"api/index"}
    named = {page for section in SECTIONS.values() for page in section} | {"index"}
    sections = {caption: [page for page in names if page in pages] for caption, names in SECTIONS.items()}
    sections["More"] = sorted(pages - named)
    return "\n".join(
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])
        for caption, names in sections.items()
        if names
    )


def append_contents(app, name, source):
    if name == "index":
        source[0] += contents()


# ---- Looks ----------------------------------------------------------------------------------------


def widen(app, page, template, context, doctree):
    context["metatags"] = context.get("metatags", "") + WIDE


def drop_last_blank_lines(app, doctree):
    """Doctests in Markdown end with a blank line, which pytest needs and readers do not."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, []
        block += nodes.Text(text)


# ---- Docstrings -----------------------------------------------------------------------------------


def escape(app, what, name, obj, options, lines):
    """Let |f| be a norm and coef_ a name: to reStructuredText they would be references. Code stays as it is."""
    literal = None  # the indentation that a literal block must exceed
    example = False  # within a doctest, output included
    for i, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indentation <= literal:
            literal = None
        example = line.lstrip().startswith(">>>") or example and bool(line.strip())
        if literal is None and not example:
            pieces = re.split(r"(``?[^`]+``?)", line)
            pieces[::2] = [re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
            lines[i] = "".join(pieces)
        if line.rstrip().endswith("::") and literal is None:
            literal = indentation


def setup(app):
    app.connect("source-read", append_contents)
    app.connect("doctree-read", drop_last_blank_lines)
    app.connect("html-page-context", widen)
    app.connect("autodoc-process-docstring", escape, priority=600)  # after napoleon
    return {"parallel_read_safe": True}
