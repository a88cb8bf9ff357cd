import gc
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pytest

from wdrlr.paper import results
from wdrlr.paper.results import COLUMNS, RESULTS, other_versions, save_rows, to_frame, versions


def make_row(**changes):
    row = {name: {str: "text", int: 1, float: 0.1 + 0.2, bool: False}[kind] for name, kind in COLUMNS.items()}
    row |= {"dataset": "toy", "protocol": "code", "method": "LR", "seed": 0, "tol": 1e-6, "split": 0}
    return row | {"versions": versions()} | changes


version = f"{metadata.version('wdrlr')}+{results.source_stamp()}"


def test_rows_of_other_versions_are_reported_in_one_sentence():
    old, older = (versions().replace(f"wdrlr={version}", f"wdrlr={v}") for v in ("0.0.2", "0.0.1+ab"))
    older = older.replace(" numba=" + metadata.version("numba"), "")
    rows = [make_row(versions=old), make_row(versions=old, split=2), make_row(versions=older), make_row(split=1)]
    assert other_versions(to_frame(rows)) == (
        f"3 of these 4 rows were computed by other versions (numba not recorded, now {metadata.version('numba')}; "
        f"wdrlr 0.0.1+ab, 0.0.2, now {version}); an empty results_dir computes them anew."
    )
    assert other_versions(to_frame([make_row()])) == ""
    assert other_versions(to_frame([])) == ""


def test_the_stamp_tells_sources_apart_but_not_comments(tmp_path, monkeypatch):
    module, text = tmp_path / "solver.py", '"""Doc."""\nx = 1\n"""Of x."""\n\n\ndef f():\n    """Doc."""\n'
    (tmp_path / "tables.py").write_text("a = 1\n")
    monkeypatch.setattr(results, "files", lambda package: tmp_path)

    def stamp(text):
        module.write_text(text)
        return results.source_stamp(("package.solver",))

    first = stamp(text)
    assert len(first) == 8
    assert stamp(text.replace("x = 1", "x=1  # one").replace("Doc.", "Other.")) == first
    (tmp_path / "tables.py").write_text("a = 2\n")  # presents rows only
    assert stamp(text) == first
    assert stamp(text.replace("1", "2")) != first
    assert stamp(text + "    return 1\n") != first


def test_the_stamp_covers_solvers_and_recipes():
    named = set(results.STAMPED)
    code = "import sys, wdrlr.paper.variants, wdrlr.paper.synthetic; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    covered = tuple(f"{name}." for name in named)
    without = {name for name in loaded if name.startswith("wdrlr") and not f"{name}.".startswith(covered)}
    stored = {f"wdrlr.paper.{name}" for name in ("results", "store", "printed", "paths", "dask_workers")}
    assert without <= {"wdrlr", "wdrlr.extras", "wdrlr.files", "wdrlr.paper"} | stored
    assert {"wdrlr.model", "wdrlr.solvers", "wdrlr.solvers.interior_point", "wdrlr.paper.cells"} <= named
    for package, module in (("wdrlr.solvers.interior_point", "kernels"), ("wdrlr.data_prep.recipes", "car")):
        assert package in named and (results.files(package) / f"{module}.py").is_file()


def test_threads_can_stamp_at_the_same_time():
    def pause(*_):  # dask looks at the garbage collector in this way, too
        time.sleep(1e-4)

    thresholds = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(200)
    try:
        with ThreadPoolExecutor(4) as threads:
            stamps = [threads.submit(results.source_stamp) for _ in range(4)]
    finally:
        gc.callbacks.remove(pause)
        gc.set_threshold(*thresholds)
    assert {stamp.result() for stamp in stamps} == {results.source_stamp()}


@pytest.mark.parametrize("cut", [1, 2, 3, 8, 15, 60])
def test_a_row_that_ends_within_its_versions_is_not_taken_for_whole(tmp_path, cut):
    whole = "python=3.11.7 wdrlr=0.1.0+4dc7decd numpy=2.4.6 scipy=1.17.1 scikit-learn=1.9.1 cvxpy=1.9.3 clarabel=0.11.1"
    save_rows(tmp_path, [make_row(versions=whole)])
    (path,) = tmp_path.glob("*.csv")
    assert RESULTS.read(path)
    path.write_text(path.read_text()[: -cut - 1] + "\n")
    with pytest.warns(UserWarning, match="versions are cut off"):
        assert not RESULTS.read(path)
