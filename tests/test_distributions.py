"""The source distribution and the wheel: what is in them, and that they work where there is no checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from build.util import project_wheel_metadata

ROOT = Path(__file__).parents[1]
MADE = (".git", ".venv", ".*cache", "__pycache__", "*.egg-info", "*.tmp", "build", "dist", "out")
"""What is not copied."""


def run(*command, cwd, fails=False, **variables):
    """What a command printed, on both streams."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert bool(done.returncode) == fails, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project: a build writes beside the sources, where other tests read."""

    def ignored(folder, names):
        made = {"_build", "notebooks"} if Path(folder) == ROOT / "docs" else set()
        return shutil.ignore_patterns(*MADE)(folder, names) | made.intersection(names)

    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("project") / "wdrlr", ignore=ignored))


@pytest.fixture(scope="module")
def dist(project):
    """The folder of the two distributions, the wheel built from the other."""
    run(sys.executable, "-m", "build", "--no-isolation", cwd=project)
    return project / "dist"


@pytest.fixture(scope="module")
def unpacked(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(dist, filter="data")
    return sdist.with_name(sdist.name.removesuffix(".tar.gz"))


def environment(folder, *requirement):
    """The Python of a new environment with this project and, from the running one, all else."""
    venv.create(folder, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    # The .pth files that lie there are not followed: one of them leads to this checkout.
    Path(own, "others.pth").write_text(sysconfig.get_path("purelib"))
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps")
    run(*pip, "--no-build-isolation", *requirement, cwd=folder)
    return python


def test_both_pass_the_checks_of_an_index(dist):
    assert run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist).count("PASSED") == 2
    (wheel,) = dist.glob("*.whl")
    assert run(sys.executable, "-m", "check_wheel_contents", wheel, cwd=dist).strip().endswith("OK")


def test_the_wheel_has_all_of_the_package_and_nothing_else(dist):
    (wheel,) = dist.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = [path for path in (ROOT / "wdrlr").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    kept += [path for path in (ROOT / "data_prep").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert names == {re.sub("^data_prep", "wdrlr/data_prep", path.relative_to(ROOT).as_posix()) for path in kept}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which files belong to the project")
def test_the_source_distribution_has_every_file_of_the_project(unpacked):
    tracked = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    assert [name for name in tracked if (ROOT / name).is_file() and not (unpacked / name).is_file()] == []


def test_tests_run_in_the_unpacked_source_distribution(unpacked, tmp_path):
    python = environment(tmp_path / "env", "--editable", unpacked)
    assert str(unpacked) in run(python, "-c", "import wdrlr.data_prep as d; print(d.__file__)", cwd=tmp_path)
    some = ("tests/notebooks/test_policy.py", "tests/paper/test_paths.py", "tests/test_project.py")
    chosen = ("-k", "not test_project or constraints or conda or readme and not quick_start")
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some, *chosen, cwd=unpacked)
    assert re.search(r"\n\d+ passed", done), done


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """The Python of an environment with the wheel."""
    (wheel,) = dist.glob("*.whl")
    return environment(tmp_path_factory.mktemp("installed") / "env", wheel)


def test_the_wheel_brings_its_data_sets_and_its_types(installed, tmp_path):
    code = (
        "import wdrlr; print(wdrlr.__file__); from importlib.resources import files\n"
        "assert files('wdrlr').joinpath('py.typed').is_file()\n"
        "data = wdrlr.load_dataset('hayes-roth')\n"
        "print(wdrlr.WassersteinLogisticRegression(0.1).fit(data.X, data.y).summary())"
    )
    printed = run(installed, "-c", code, cwd=tmp_path)
    assert str(installed.parents[1]) in printed and "certified to tol" in printed


@pytest.fixture
def newcomer(tmp_path):
    """The script docs/newcomer.py, where nothing else of the project is."""
    return shutil.copy(ROOT / "docs" / "newcomer.py", tmp_path)


OFFLINE = """
import runpy, sys

def refuse(event, arguments):
    assert not event.startswith("socket.") or event == "socket.__new__", f"{event}: a network is asked for"

sys.addaudithook(refuse)
sys.argv = sys.argv[1:]
"""


def test_the_tour_of_a_newcomer_runs_with_the_wheel_and_without_a_network(installed, newcomer, tmp_path):
    run_it = OFFLINE + "runpy.run_path(sys.argv[0], run_name='__main__')"
    said = run(installed, "-c", run_it, newcomer, tmp_path / "a" / "b", cwd=tmp_path, WDRLR_DATA="", MPLBACKEND="agg")
    assert f"in {installed.parents[1]}" in said and "certified to tol" in said
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {"path.png", "changes.png", "model.joblib"}
    noticed = int(re.search(r"All (\d+) mistakes were noticed\.$", said.strip())[1])
    lines = re.findall(r"^- [^:]+: (\w+(?:Error|Warning)): \S", said.partition("Go wrong")[2], re.MULTILINE)
    assert len(lines) == noticed > 30 and "- a LazyFrame: TypeError" in said
    assert "Error: a network is asked for" not in said


@pytest.mark.parametrize("mistake", ["None", "int('x')"])
def test_the_tour_of_a_newcomer_fails_where_a_mistake_is_not_noticed(installed, newcomer, tmp_path, mistake):
    code = f"import newcomer; newcomer.go_wrong({{'this': ('word', lambda: {mistake})}})"
    said = run(installed, "-c", code, cwd=tmp_path, fails=True)
    assert "1 of 1 mistakes passed in silence, or with another message: ['this']" in said


def test_the_guard_against_a_network_works(installed, tmp_path):
    code = OFFLINE + "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')"
    assert "a network is asked for" in run(installed, "-c", code, cwd=tmp_path, fails=True)


def papermill(python, notebook, cwd, **options):
    small = "{sizes: [20], runs: 2, worst_case_size: 20}"
    return run(python, "-m", "papermill", notebook, "-", "-y", small, "-k", "python3", cwd=cwd, **options)


def test_notebooks_beside_a_wheel_write_into_their_own_project_and_nowhere_else(installed, unpacked, tmp_path):
    notebook = unpacked / "notebooks" / "figure1.ipynb"
    before = {path: path.read_bytes() for path in (unpacked / "figures").glob("figure1*")}
    said = papermill(installed, notebook, tmp_path, fails=True)
    assert "parameter 'figures_dir' must be the path of a folder (wdrlr is not imported from a checkout" in said
    assert list(tmp_path.iterdir()) == []
    papermill(installed, notebook, notebook.parent)
    assert not (notebook.parent / "figures").exists()
    changed = [path.name for path, content in before.items() if path.read_bytes() != content]
    assert {"figure1.csv", "figure1.pdf", "figure1.png"} <= set(changed)


ADDRESS = "https://github.com/Some.One/robust"


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_all_addresses_follow_from_one(project, tmp_path, address):
    metadata = project_wheel_metadata(with_address(project, tmp_path, address), isolated=False)
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    picture = re.search(r"!\[[^]]*\]\((.*?)\)", metadata.get_payload())[1]
    links = re.findall(r"(?<!!)\[[^]]*\]\((.*?)\)", metadata.get_payload())
    settings = ("html_baseurl", "html_theme_options")
    code = f"import runpy; conf = runpy.run_path('docs/conf.py'); print(*map(conf.get, {settings}), sep='\\n')"
    pages, theme = run(sys.executable, "-c", code, cwd=tmp_path).splitlines()
    if not address:
        assert (pages, theme) == ("", "{'source_repository': ''}")
        assert urls == {} and picture == "figures/figure3_all_code.png"
        return
    assert (ROOT / picture.removeprefix(f"{ADDRESS}/raw/HEAD/")).is_file() and picture.startswith(ADDRESS)
    files = [link.removeprefix(f"{ADDRESS}/blob/HEAD/").partition("#")[0] for link in links]
    assert all(link.startswith("https://") for link in links)
    assert {"notebooks/claims.ipynb", "docs/newcomer.py"} <= {file for file in files if (ROOT / file).is_file()}
    assert (ROOT / urls["Changelog"].removeprefix(f"{ADDRESS}/blob/HEAD/")).is_file()
    assert urls["Repository"] == ADDRESS and urls["Documentation"] == "https://some.one.github.io/robust/"
    assert pages == urls["Documentation"] and f"'source_repository': '{ADDRESS}'" in theme and urls["Binder"] in theme
    where, notebook = urls["Binder"].split("?labpath=")
    assert where.endswith("/gh/Some.One/robust/HEAD") and (ROOT / notebook.replace("%2F", "/")).is_file()


def test_an_address_of_another_kind_is_refused(project, tmp_path):
    folder = with_address(project, tmp_path, "github.com/me")
    assert "must be https://github.com/OWNER/NAME or empty, not 'github.com/me'" in run(
        sys.executable, "setup.py", "--version", cwd=folder, fails=True
    )


def with_address(project, folder, address):
    """A copy of what the metadata are made of, under another address."""
    for name in ("wdrlr", "data_prep"):
        shutil.copytree(project / name, folder / name)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "setup.py", "docs/conf.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(project / name, folder / name)
    text = (project / "pyproject.toml").read_text()
    text, count = re.subn(r'(?m)^repository = ".*"$', f'repository = "{address}"', text)
    assert count == 1
    (folder / "pyproject.toml").write_text(text)
    return folder
