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

extensions = ["myst_parser", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_math_renderer = "mathml"
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

KINDS = ("tutorials", "howto", "explanation", "reference")  # the folders
SECTIONS = {
    "Tutorials": "tutorials/quickstart tutorials/frontdoor",
    "How to": """howto/choosing howto/data howto/sparse howto/labels howto/novelty howto/evaluate howto/contributions
        howto/streams howto/commandline howto/bank howto/parallel howto/video howto/river""",
    "Explanation": """explanation/norma explanation/implicit explanation/stepsize explanation/second_order
        explanation/selftuned explanation/additive explanation/maps explanation/budgets explanation/projection
        explanation/bounds explanation/internals explanation/tree""",
    "Reference": """api/index reference/nouns reference/glossary reference/benchmarks
        reference/experiments reference/experiments-norma reference/experiments-implicit reference/experiments-stepsize
        reference/experiments-additive reference/errata reference/errata-norma reference/errata-implicit
        reference/errata-stepsize reference/errata-additive reference/contributing""",
}


def contents():
    """The table as MyST directives: the pages that exist, each once."""
    found = [*HERE.glob("*.md"), *(page for kind in KINDS for page in HERE.glob(f"{kind}/*.md"))]
    pages = {page.relative_to(HERE).with_suffix("").as_posix() for page in found} | {"api/index"}
    sections = {caption: [page for page in names.split() if page in pages] for caption, names in SECTIONS.items()}
    named = {page for section in sections.values() for page in section} | {"index"}
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


def inline_formula(writer, node):
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def displayed_formula(writer, node):
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


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
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))  # no script, no network
    app.connect("autodoc-process-docstring", escape, priority=600)  # after napoleon
    return {"parallel_read_safe": True}
