"""The documentation is built without a network or a warning, and what it says of the code is true."""

import doctest
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

import wdrlr
from wdrlr.estimators import report

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in a folder of its own. A proxy that nobody serves would make every download fail."""
    out = tmp_path_factory.mktemp("docs") / "html"
    dead = "http://127.0.0.1:9"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", DOCS, out],
        env={**os.environ, "http_proxy": dead, "https_proxy": dead, "no_proxy": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


class Page(HTMLParser):
    """What a page loads by itself, what it links to, the ids in it, its text outside of code, and what is folded."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.ids, self.text, self.folded = [], [], set(), "", ""
        self.inside = dict.fromkeys(("pre", "details"), 0)
        self.feed(path.read_text(encoding="utf-8"))

    def handle_data(self, data):
        if self.inside["details"]:
            self.folded += data
        if not self.inside["pre"]:
            self.text += data

    def handle_endtag(self, tag):
        if tag in self.inside:
            self.inside[tag] -= 1

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag in self.inside:
            self.inside[tag] += 1
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag in ("script", "img", "iframe", "source", "object"):
            self.loads.append(found.get("src") or found.get("data") or "")
        elif tag == "link" and "stylesheet" in (found.get("rel") or ""):
            self.loads.append(found["href"])


def test_all_pages_are_there_and_every_notebook_has_its_outputs(site):
    for name in PAGES:
        text = re.sub("<[^>]*>", "", (site / f"{name}.html").read_text(encoding="utf-8").partition("<article")[2])
        assert len(text.split()) > 100, name
    for name in NOTEBOOKS:
        page = (site / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        source = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        assert ("cell_output" in page) == ('"output_type"' in source), name
        assert page.count("<img") >= source.count('"image/png"'), name


def test_every_page_can_be_reached(site):
    linked = {link.partition("#")[0] for path in site.glob("*.html") for link in Page(path).links}
    assert {f"notebooks/{name}.html" for name in NOTEBOOKS} <= linked


def test_public_names_have_a_place_with_their_formulas(site):
    page = Page(site / "api.html")
    assert {f"wdrlr.{name}" for name in wdrlr.__all__} <= page.ids
    text = (site / "api.html").read_text(encoding="utf-8")
    formula = re.search(r"<pre>(<span></span>)?minimise over b:.*?</pre>", text, re.DOTALL)
    assert formula and "|b|_1" in formula[0]


def test_examples_are_shown_as_code(site):
    """Outside of a fence, lines that begin with >>> would become quotes in quotes."""
    for path in site.rglob("*.html"):
        assert "<blockquote" not in path.read_text(encoding="utf-8"), path.name
        assert ">>>" not in Page(path).text, path.name


def test_code_can_be_copied(site):
    assert any("copybutton.js" in target for target in Page(site / "index.html").loads)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_parameters_are_folded_on_the_site_only(site, name):
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells
    (parameters,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert parameters.metadata.tags == ["parameters"]
    folded = Page(site / "notebooks" / f"{name}.html").folded
    check = cells[cells.index(parameters) + 1].source
    assert f"{parameters.source}\n\n{check}" in folded and "check_parameters(globals())" in check


def test_what_a_report_links_to_is_there(site):
    for target in {page for rows in report.EXPLAINED.values() for page in rows.values()}:
        file, _, anchor = target.partition("#")
        assert not anchor or anchor in Page(site / file).ids, target
        assert (site / file).is_file(), target


def test_formulas_of_the_notebooks_need_no_script(site):
    assert "<math" in (site / "notebooks" / "figure1.html").read_text(encoding="utf-8")


def test_pages_load_nothing_from_elsewhere_and_what_they_load_is_there(site):
    for path, page in pages_of(site).items():
        for target in filter(None, page.loads):
            assert not re.match(r"(https?:)?//", target), (path.name, target)
            if not target.startswith("data:"):
                assert (path.parent / target.partition("?")[0]).is_file(), (path.name, target)


def test_no_link_inside_the_site_is_dead(site):
    pages = pages_of(site)
    for path, page in pages.items():
        for target in page.links:
            file, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", file):
                continue
            linked = (path.parent / file).resolve() if file else path
            assert linked.is_file(), (path.name, target)
            if anchor and linked in pages:
                assert unquote(anchor) in pages[linked].ids, (path.name, target)


def pages_of(site):
    """The pages by their paths, without the one that no page links to."""
    return {
        path: Page(path) for path in site.resolve().rglob("*.html") if path.parent.name + path.stem != "_modulesindex"
    }


def test_links_of_the_readme_to_files_are_not_dead():
    links = re.findall(r"\]\((?!https:)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "notebooks/tutorial.ipynb" in links
    assert not [link for link in links if not (ROOT / link).is_file()]


def test_nothing_in_it_is_of_one_machine(site):
    places = ("/home/", "/root/", "/Users/", "/tmp/", "C:\\", str(ROOT), str(site), str(Path.home()))
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".txt", ".md", ".ipynb"):
            text = path.read_text(encoding="utf-8")
            assert not [place for place in places if place in text], path.name


MARKDOWN = [*DOCS.glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
FENCE = re.compile(r"^```(\S*).*?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.stem)
def test_the_examples_of_a_page_run(path):
    text = path.read_text(encoding="utf-8")
    code = "\n".join(block for language, block in FENCE.findall(text) if language == "pycon")
    parsed = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    result = doctest.DocTestRunner().run(parsed, clear_globs=True)
    assert result.failed == 0
    assert result.attempted == text.count(">>> "), "examples outside of ```pycon"
    shown = {language for language, _ in FENCE.findall(text) if not language.startswith("{")} - {"pycon", "text"}
    assert shown <= ({"python"} if path.name == "README.md" else set()), "code that no test runs"
    assert not [line for line in code.splitlines() if len(line) > 120], "longer than a page of the site is wide"


def test_the_index_shows_eight_lines_of_code():
    assert (DOCS / "index.md").read_text(encoding="utf-8").count(">>> ") == 8


def test_the_page_on_installing_has_all_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_users = set(project["optional-dependencies"]) - {"docs", "test"}
    assert for_users <= set(re.findall(r"'\.\[(\w+)\]'", (DOCS / "install.md").read_text(encoding="utf-8")))


def test_accents_hold_what_they_stand_on():
    r"""The renderer puts the accent of \hat x_c below the x."""
    bare = {path.name: re.findall(r"\\hat\\?\w+_.*", path.read_text(encoding="utf-8")) for path in DOCS.glob("*.md")}
    assert not {name: found for name, found in bare.items() if found}


def test_fractions_have_braces():
    r"""The renderer takes \frac12 x for 12 over x."""
    bare = {path.name: re.findall(r"\\frac *\d.*", path.read_text(encoding="utf-8")) for path in DOCS.glob("*.md")}
    assert not {name: found for name, found in bare.items() if found}
