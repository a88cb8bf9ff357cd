import pytest

from wdrlr.paper import notebook, paths
from wdrlr.paper.paths import NoProjectError, figures_folder, project_root, results_folder


def test_folders_are_the_project_s_or_those_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert results_folder().relative_to(project_root()).as_posix() == "figures/results"
    assert figures_folder() == results_folder().parent
    assert figures_folder("a/b") == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_place_of_a_folder_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=f"results_dir: .*{name} is, or lies under, a file"):
        results_folder(str(tmp_path / name))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package lies in site-packages."""
    monkeypatch.setattr(paths, "_HERE", tmp_path / "site-packages" / "wdrlr")
    return tmp_path


def test_a_package_without_a_checkout_takes_that_of_the_notebook(installed, monkeypatch):
    (installed / "clone" / "notebooks").mkdir(parents=True)
    (installed / "clone" / "pyproject.toml").write_text('[project]\nname = "wdrlr"\n')
    for folder in ("clone/notebooks", "clone"):
        monkeypatch.chdir(installed / folder)
        assert project_root() == installed / "clone"
        assert figures_folder("") == installed / "clone" / "figures"


@pytest.mark.parametrize(
    "text", [None, "", "[project]\nname = 'theirs'\n", "[tool.x]\n", "project = 1", "not toml", "\xff"]
)
def test_nothing_is_written_where_there_is_no_project(installed, monkeypatch, text):
    (installed / "chance").mkdir()
    monkeypatch.chdir(installed / "chance")
    if text is not None:
        (installed / "chance" / "pyproject.toml").write_text(text, encoding="latin-1")
    for parameter, folder in (("figures_dir", figures_folder), ("results_dir", results_folder)):
        with pytest.raises(NoProjectError, match=f"{parameter}: wdrlr is not imported from .*: name the folder"):
            folder()
    for kind in (notebook.figures_folder, notebook.results_folder(True), notebook.results_folder(False)):
        assert kind("").startswith("the path of a folder (wdrlr is not imported from a checkout, and none is around")
        assert kind(str(installed)) == ""
    assert {path.name for path in (installed / "chance").iterdir()} <= {"pyproject.toml"}
