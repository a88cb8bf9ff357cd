"""Settings of the documentation: `make docs` builds it into docs/_build.

Sphinx with MyST-NB rather than Jupyter Book 2: that one's tool (mystmd) fetches its templates from the network, and
this site is built offline, in the tests too. The pages need no network either: formulas become MathML, and the theme
brings its own scripts.
"""

import importlib.metadata
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))
from setup import urls  # noqa: E402, setup.py of the project

project = "wdrlr"
author = "The wdrlr developers"
release = importlib.metadata.version("wdrlr")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
default_role = "code"
highlight_language = "none"  # what is indented is a formula or a shell command

html_theme = "furo"
html_title = "wdrlr"
html_static_path = ["_static"]
html_css_files = ["wdrlr.css"]
html_show_copyright = False
html_show_sourcelink = False
html_baseurl = urls.get("Documentation", "")
html_theme_options = {"source_repository": urls.get("Repository", "")}
if urls:
    html_theme_options |= {"source_branch": "main", "source_directory": "docs/"}
    html_theme_options["announcement"] = f'<a href="{urls["Binder"]}">Run the notebooks on Binder</a>'

# The notebooks are shown as they were committed, with their outputs; the tests of notebooks/ run them.
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "Show the parameters"
nb_code_prompt_hide = "Hide the parameters"
copybutton_exclude = ".linenos, .gp, .go"  # of a session in Python, what was typed is copied
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request"}  # scikit-learn makes them
autodoc_typehints = "none"  # the docstrings say more
napoleon_google_docstring = False
napoleon_use_rtype = False


def copy_notebooks():
    """Copy ../notebooks to here: Sphinx takes pages from one folder only. The copies are not committed.

    The cell with the parameters and the one that checks them become one, which is folded. Links to other notebooks in
    what a notebook shows lead to their pages; in its text, Sphinx sees to that.
    """
    copies = DOCS / "notebooks"
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell, following in pairwise(list(notebook.cells)):
            if "parameters" in cell.metadata.get("tags", []):
                cell.metadata.tags.append("hide-input")
                cell.source += f"\n\n{following.source}"
                notebook.cells.remove(following)
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                shown = output.get("data", {})
                if "text/markdown" in shown:
                    shown["text/markdown"] = re.sub(r"\]\(\./(\w+)\.ipynb", r"](./\1.html", shown["text/markdown"])
        nbformat.write(notebook, copies / path.name)


def plain_docstring(app, what, name, obj, options, lines):
    """Docstrings are written for reading in the code: formulas are indented without a mark, |b| is an absolute value.

    So indented blocks in the text before the first section become literal, bars elsewhere are escaped, and numbered
    references become lines of their own.
    """
    text, sections, examples = DOCSTRING.fullmatch("\n".join(lines)).groups()
    text = re.sub(rf"^    .*|{BARS}", _escape_bar, text, flags=re.MULTILINE)
    text = re.sub(r"^(\S.*\n\n)(?=    )", r"\1::\n\n", text, flags=re.MULTILINE)
    sections = re.sub(BARS, _escape_bar, sections)
    # napoleon takes what is before a colon in a property's first line for its type: an empty comment goes first.
    written = "..\n\n" * (what == "property") + text + sections + examples
    lines[:] = re.sub(r"^\[\d+\] ", r"| \g<0>", written, flags=re.MULTILINE).split("\n")


# What is before the first section, the sections, and the examples.
DOCSTRING = re.compile(r"(.*?)((?:^[^\n]+\n-{3,}\n.*?)?)((?:^Examples\n-+\n.*)?)", re.DOTALL | re.MULTILINE)
BARS = r"`+[^`]*`+|\|"


def _escape_bar(found):
    return r"\|" if found[0] == "|" else found[0]


def visit_math(translator, node):
    tex = node.astext()
    block = isinstance(node, nodes.math_block)
    if block:
        translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(tex2mathml(tex, as_block=block))
    translator.body.append("</div>\n" if block else "")
    raise nodes.SkipNode


def source_of(app, module, attribute):
    """The module whose source a name links to, if it is not the one that defines it.

    The source of a module links back to one page for all of its names. That of changed_mass has a page in method.md.
    """
    return module if (module, attribute) == ("wdrlr", "changed_mass") else None


def setup(app):
    copy_notebooks()
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_math, None))
    app.connect("autodoc-process-docstring", plain_docstring, priority=100)  # before napoleon
    app.connect("viewcode-follow-imported", source_of)


html_math_renderer = "mathml"
