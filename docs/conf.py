"""The documentation as a website: `sphinx-build -W -b html docs docs/_build`.

The pages are plain Markdown that reads well on its own and runs as doctests. Three things are added when Sphinx
reads them: behind `index.md` the table of contents, which is the order of the links there, by its headings; cards in
the place of list items there that begin with a picture, with thumbnails; and behind `gallery.md` all pictures with
their code.
"""
import ast
import os
import re
import sys
from pathlib import Path

import onlinekernels

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # experiments

# ---- What Sphinx asks -----------------------------------------------------------------------------

project = "onlinekernels"
author = "The onlinekernels developers"
copyright = author
version = release = onlinekernels.__version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "benchmarks", "experiments", "images"]
html_theme = "furo"
html_title = f"onlinekernels {release}"
html_copy_source = False
html_theme_options = {"light_css_variables": {"code-font-size": "78%"}}
html_static_path = ["static"]
html_css_files = ["site.css"]
smartquotes_action = "D"  # dashes only: quotes stay as they are typed
highlight_language = "none"  # formulas are no Python; examples say what they are
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied has no prompts, and no output
copybutton_prompt_is_regexp = True

myst_heading_anchors = 4  # links such as components.md#float32
myst_links_external_new_tab = False

default_role = "py:obj"  # `NORMA` in a docstring is a link where it can be one
add_module_names = False
autodoc_typehints = "none"  # docstrings say it
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "returns_style")]  # a plain list, without links
napoleon_use_rtype = False

# ---- The table of contents ------------------------------------------------------------------------

LINK = re.compile(r"\[[^]]*\]\(([\w/-]+)\.md\)")
CARD_WIDTH = 400  # pixels
CARD = re.compile(r"- !\[([^]]*)\]\(([^)]+)\)\s+\[([^]]*)\]\(([^)]+)\.md\):\s+((?:.|\n  )*)\n")


def contents(index):
    """The table as MyST directives: the pages that `index` links to, by its headings, each once; then the others."""
    found = [page.relative_to(HERE).with_suffix("").as_posix() for page in HERE.glob("**/*.md")]
    pages = [page for page in sorted(found) if not page.startswith(("_build/", "api/"))] + ["api/index"]
    sections, named = {}, {"index"}
    for part in index.split("\n## ")[1:]:
        caption, _, text = part.partition("\n")
        sections[caption] = [page for page in dict.fromkeys(LINK.findall(text)) if page in pages and page not in named]
        named.update(sections[caption])
    sections["More"] = [page for page in pages if page not in named]
    return "\n".join(
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])
        for caption, names in sections.items()
        if names
    )


def thumbnail(picture):
    """The address of a picture of the size that a card has, with twice the pixels."""
    from PIL import Image

    made = HERE / "_build" / "thumbnails" / Path(picture).name
    made.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(HERE / picture) as image:
        image.thumbnail((2 * CARD_WIDTH, 2 * CARD_WIDTH), Image.Resampling.LANCZOS)
        image.convert("P", palette=Image.Palette.ADAPTIVE).save(made, optimize=True)
    return f"/{made.relative_to(HERE).as_posix()}"


def cards(text):
    """List items that begin with a picture become cards, those that follow each other one grid."""
    def card(match):
        alt, picture, title, page, words = match.groups()
        options = [f":img-top: {thumbnail(picture)}", f":img-alt: {alt}", f":link: {page}", ":link-type: doc"]
        return "\n".join([f":::{{grid-item-card}} {title}", *options, "", words, ":::", ""])

    def grid(run):
        columns = 2 if len(CARD.findall(run[0])) in (2, 4) else 3
        return f"::::{{grid}} 1 2 2 {columns}\n:gutter: 2\n\n{CARD.sub(card, run[0])}::::\n"

    return re.sub(rf"(?:{CARD.pattern})+", grid, text)


def gallery():
    """Every picture, with what it shows and, below it, the code that draws it."""
    from experiments import EXPERIMENTS

    figures = []
    for script in sorted(HERE.glob("images/make_*.py")):
        words = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).partition("\n\n")[0].replace("\n", " ")
        words = re.sub(r"^Draw \S+(?: and \S+)?[:,] (.)", lambda match: match[1].upper(), words)
        pictures = sorted(HERE.glob(f"images/{script.stem.removeprefix('make_')}.*"))
        if pictures:
            figures.append(
                (script.stem.removeprefix("make_"), [words], [(words, picture) for picture in pictures], script)
            )
    of_script = {}
    for experiment in EXPERIMENTS.values():
        of_script.setdefault(experiment.run.__module__.replace(".", "/") + ".py", []).append(experiment)
    for script, found in of_script.items():
        pictures = [
            (experiment.title, HERE / "images" / "experiments" / f"{experiment.name}.png") for experiment in found
        ]
        figures.append(
            (
                ", ".join(experiment.name for experiment in found),
                [title for title, _ in pictures],
                pictures,
                HERE / script,
            )
        )
    lines = []
    for name, words, pictures, script in figures:
        shown = (f"![{alt}]({picture.relative_to(HERE).as_posix()})\n" for alt, picture in pictures)
        code = [f"```{{literalinclude}} {os.path.relpath(script, HERE)}", ":language: python", "```"]
        lines += [
            "",
            f"## {name.replace('_', ' ')}",
            "",
            "; ".join(words),
            "",
            *shown,
            "````{dropdown} The code",
            *code,
            "````",
        ]
    return "\n".join(lines) + "\n"


def complete(app, name, source):
    if name == "index":
        source[0] = cards(source[0]) + contents(source[0])
    elif name == "gallery":
        source[0] += gallery()


# ---- Looks ----------------------------------------------------------------------------------------


def mathml(node, as_block):
    """A formula, with thin spaces about the names of functions: d log m, not dlogm."""
    from docutils.utils.math.latex2mathml import tex2mathml

    markup = tex2mathml(node.astext(), as_block=as_block)
    markup = re.sub(r"<mo>&ApplyFunction;</mo>(?=\s*<m[in]>)", '<mspace width="0.17em"/>', markup)
    return re.sub(r"(?<=</m[in]>)(?=\s*<mi>[a-z]{2,}</mi>)", '<mspace width="0.17em"/>', markup)


def inline_formula(writer, node):
    from docutils import nodes

    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def displayed_formula(writer, node):
    from docutils import nodes

    writer.body.append(f'<div class="formula">{mathml(node, as_block=True)}</div>')
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
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if literal is None and not example:
            pieces = re.split(r"(``?[^`]+``?)", line)
            pieces[::2] = [re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
            lines[i] = "".join(pieces)
        if line.rstrip().endswith("::") and literal is None:
            literal = indentation


def setup(app):
    app.connect("source-read", complete)
    app.connect("doctree-read", drop_last_blank_lines)
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))  # no script, no network
    app.connect("autodoc-process-docstring", escape, priority=600)  # after napoleon
    return {"parallel_read_safe": True}
