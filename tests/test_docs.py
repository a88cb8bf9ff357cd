"""The documentation is built without a network or a warning, and what it says of the code is true."""

import doctest
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import wdrlr

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


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
    """What a page loads by itself, what it links to, and the ids in it."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag in ("script", "img", "iframe", "source", "object"):
            self.loads.append(found.get("src") or found.get("data") or "")
        elif tag == "link" and "stylesheet" in (found.get("rel") or ""):
            self.loads.append(found["href"])


def test_all_pages_are_there_and_every_notebook_has_its_outputs(site):
    for name in ("index", "paper", "costs", "related", "api", "method", "benchmarks", "contributing", "changelog"):
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
    for path in site.glob("*.html"):
        assert "<blockquote" not in path.read_text(encoding="utf-8"), path.name


def test_formulas_of_the_notebooks_need_no_script(site):
    assert "<math" in (site / "notebooks" / "figure1.html").read_text(encoding="utf-8")


def test_pages_load_nothing_from_elsewhere_and_what_they_load_is_there(site):
    for path in site.rglob("*.html"):
        if path == site / "_modules" / "index.html":  # no page links to it
            continue
        page = Page(path)
        for target in filter(None, page.loads):
            assert not re.match(r"(https?:)?//", target), (path.name, target)
            if not target.startswith("data:"):
                assert (path.parent / target.partition("?")[0]).is_file(), (path.name, target)
        for target in page.links:
            file, _, anchor = target.partition("#")
            if file and not re.match(r"[a-z]+:", file):
                assert (path.parent / file).is_file(), (path.name, target)
            elif not file and anchor:
                assert anchor in page.ids, (path.name, target)


def test_nothing_in_it_is_of_one_machine(site):
    places = ("/home/", "/root/", "/Users/", "/tmp/", "C:\\", str(ROOT), str(site), str(Path.home()))
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".txt", ".md", ".ipynb"):
            text = path.read_text(encoding="utf-8")
            assert not [place for place in places if place in text], path.name


@pytest.mark.parametrize(("page", "examples"), [("related", 20), ("costs", 15)])
def test_the_examples_of_a_page_run(page, examples):
    result = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > examples and result.failed == 0


def test_fractions_have_braces():
    r"""The renderer takes \frac12 x for 12 over x."""
    bare = {path.name: re.findall(r"\\frac *\d.*", path.read_text(encoding="utf-8")) for path in DOCS.glob("*.md")}
    assert not {name: found for name, found in bare.items() if found}
