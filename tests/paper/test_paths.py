import pytest

from wdrlr.paper import paths
from wdrlr.paper.paths import figures_folder, project_root, results_folder


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


def test_without_a_checkout_the_current_directory_is_the_project(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "_HERE", tmp_path / "site-packages" / "wdrlr")
    monkeypatch.chdir(tmp_path)
    assert project_root() == tmp_path
    assert figures_folder("") == tmp_path / "figures"
