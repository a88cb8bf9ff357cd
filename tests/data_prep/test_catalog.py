"""Data sets of a folder that the user names, in processes of their own: the variable is read when they start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.weather import RECIPE, make_weather
from wdrlr.data_prep import catalog

LOAD = "from wdrlr import load_dataset; print(load_dataset('weather'))"


@pytest.fixture
def mine(tmp_path):
    return make_weather(tmp_path / "mine")


def run(folder, *arguments, **environment):
    environment = {**os.environ, "WDRLR_RECIPES": str(folder), "XDG_CACHE_HOME": str(folder / "cache")} | environment
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_a_data_set_of_the_users_is_loaded_and_comes_after_the_papers(mine):
    code = (
        "from wdrlr import DATASETS, load_dataset; from wdrlr.paper.printed import published_counts\n"
        "data = load_dataset('weather'); print(data.N, data.n, data.k, data.m, data.positive_class)\n"
        "print(*data.record, sep='\\n'); paper = tuple(published_counts().index)\n"
        "assert DATASETS[: len(paper)] == paper and 'weather' in DATASETS[len(paper) :]"
    )
    done = run(mine, "-c", code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "60 1 3 2 no",
        "Read weather.csv, 60 rows, from the folder that WDRLR_RECIPES sets.",
    ]


def test_its_sizes_stand_in_the_table_without_the_papers(mine):
    done = run(mine, "-m", "wdrlr.data_prep")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "weather" in line]
    assert line.replace(" ", "") == "|weather|60|1|3|2|"


def test_a_folder_of_data_wins_over_the_files_beside_the_recipe(mine, tmp_path):
    (tmp_path / "data").mkdir()
    (mine / "raw" / "weather").rename(tmp_path / "data" / "weather")
    done = run(mine, "-c", LOAD.replace("))", ").record[0])"), WDRLR_DATA=str(tmp_path / "data"))
    assert "from the folder that WDRLR_DATA sets" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "raw/weather/weather.csv").write_text("1,sun,calm,yes\n"), ["weather.csv", "sha256"]),
        (lambda folder: (folder / "raw/SHA256SUMS").unlink(), ["`sha256sum weather/", "mine/raw/SHA256SUMS"]),
        (
            lambda folder: (folder / "raw/weather/weather.csv").unlink(),
            ["names no place to download them", "weather.csv", "unchanged, into one of"],
        ),
        (lambda folder: (folder / "recipes/weather.py").write_text("X = 1"), ["recipes/weather.py has no RECIPE"]),
        (
            lambda folder: (folder / "recipes/other.py").write_text(RECIPE.replace("weather", "car")),
            ["other.py: there is already a data set 'car'; rename"],
        ),
        (
            lambda folder: (folder / "recipes/car.py").write_text(RECIPE.replace("weather", "cart")),
            ["car.py: there is already a data set 'car'; rename"],
        ),
        (
            lambda folder: (folder / "recipes").rename(folder / "recipe"),
            ["WDRLR_RECIPES", "no readable folder `recipes`"],
        ),
    ],
    ids=["changed", "no checksum", "no file", "no recipe", "taken name", "taken file", "no folder"],
)
def test_what_is_wrong_is_reported_with_the_file_and_the_remedy(mine, spoil, says):
    spoil(mine)
    done = run(mine, "-c", LOAD)
    last = done.stderr[done.stderr.rindex("Error: ") :]
    assert done.returncode != 0
    for words in says:
        assert words in last


def test_a_line_of_the_users_does_not_change_a_checksum_of_this_package(mine):
    (mine / "raw" / "SHA256SUMS").write_text(f"{'0' * 64}  car/car.data\n")
    own = catalog.recorded("SHA256SUMS")["car/car.data"]
    done = run(mine, "-c", "from wdrlr.data_prep.sources import checksums; print(checksums()['car/car.data'])")
    assert done.stdout.strip() == own != "0" * 64
