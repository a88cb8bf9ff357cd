"""Where compiled code is kept, and that nothing fails where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wdrlr

TOY = """
from wdrlr.solvers.interior_point.compilation import helper, jit

@helper
def ratio(a, b):
    return a / b

@jit
def twice(a, b):
    return 2 * ratio(a, b)

@jit
def thrice(a, b):
    return 3 * ratio(a, b)
"""
# Two calls; how often the code was compiled and how often it came from a file.
USE = """
print(twice(1.0, 0.0), twice(3.0, 2.0), sum(twice.stats.cache_misses.values()), sum(twice.stats.cache_hits.values()))
"""


def run(folder, code="from toy import twice\n" + USE, **environment):
    """The output of a process in `folder` that has no place of its own for compiled code, and what it logs."""
    if not (folder / "toy.py").exists():  # a later time of writing outdates what older versions of numba keep
        (folder / "toy.py").write_text(TOY)
    nowhere = folder / "file"
    nowhere.touch()
    environment = {**os.environ, "HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), **environment}
    if not (folder / "__pycache__").exists():
        (folder / "__pycache__").touch()  # a file there stops root, too, from writing beside the source
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


def test_without_a_folder_it_is_compiled_once_a_process_and_said_once(tmp_path):
    for _ in range(2):
        printed, logged = run(tmp_path)
        assert printed == ["inf", "3.0", "1", "0"]
        (line,) = logged
        assert "cannot be kept beside its source" in line and "NUMBA_CACHE_DIR" in line


@pytest.mark.parametrize("place", ["NUMBA_CACHE_DIR", "beside the source"])
def test_with_a_folder_it_is_compiled_once_and_that_is_said_once(tmp_path, place):
    if place == "NUMBA_CACHE_DIR":
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "made" / "when needed")}
    else:
        environment = {}
        (tmp_path / "__pycache__").mkdir()
    both = "from toy import thrice, twice; thrice(1.0, 1.0)\n" + USE
    printed, (line,) = run(tmp_path, both, **environment)
    assert printed == ["inf", "3.0", "1", "0"]
    assert "is being compiled" in line and "happens once" in line
    assert line.endswith(str(next(tmp_path.rglob("toy.twice*.nbi")).parent))
    assert run(tmp_path, both, **environment) == (["inf", "3.0", "0", "1"], [])


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("rest", [0, -30])
def test_damaged_files_are_said_and_mended(tmp_path, suffix, rest):
    kept = tmp_path / "kept"
    run(tmp_path, NUMBA_CACHE_DIR=str(kept))
    (path,) = kept.rglob(f"toy.twice*.{suffix}")
    path.write_bytes(path.read_bytes()[:rest])
    printed, logged = run(tmp_path, NUMBA_CACHE_DIR=str(kept))
    assert printed == ["inf", "3.0", "1", "0"]
    (line,) = logged
    assert f"compiled code in {path.parent} cannot be read" in line
    assert run(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (["inf", "3.0", "0", "1"], [])


def test_a_folder_that_is_lost_before_the_first_call(tmp_path):
    kept = tmp_path / "kept"
    lose = f"import pathlib, shutil; shutil.rmtree({str(kept)!r}); pathlib.Path({str(kept)!r}).touch()\n"
    printed, logged = run(tmp_path, "from toy import twice\n" + lose + USE, NUMBA_CACHE_DIR=str(kept))
    assert printed == ["inf", "3.0", "1", "0"]
    assert logged and all(str(kept) in line for line in logged)
    assert "cannot be kept in" in logged[-1] and "NUMBA_CACHE_DIR" in logged[-1]


def test_plain_python_where_numba_is_told_so(tmp_path):
    use = "from toy import twice; print(twice(3.0, 2.0), hasattr(twice, 'stats'))"
    assert run(tmp_path, use, NUMBA_DISABLE_JIT="1") == (["3.0", "False"], [])


def test_no_other_module_compiles():
    sources = Path(wdrlr.__file__).parent.rglob("*.py")
    assert {path.stem for path in sources if "numba import" in path.read_text(encoding="utf-8")} == {"compilation"}
