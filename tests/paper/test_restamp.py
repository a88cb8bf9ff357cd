import random

import pytest

from wdrlr.paper import quiet_runtimes, runtimes, scheme_runtimes
from wdrlr.paper.cells import plan_cells, run_cells
from wdrlr.paper.quiet_runtimes import QUIET_RUNTIMES, timed_alone
from wdrlr.paper.restamp import cell_of, differing, draw_sample, main, restamp
from wdrlr.paper.results import RESULTS, versions
from wdrlr.paper.runtimes import RUNTIMES, Panel, Setting, rows_for
from wdrlr.paper.scheme_runtimes import SCHEME_RUNTIMES, scheme_rows
from wdrlr.paper.variants import VARIANTS

OLD = versions().replace("wdrlr=", "wdrlr=0+")


@pytest.fixture
def stored(tmp_path):
    """Three cells of hayes-roth, one of them a variant, with other versions."""
    cells = plan_cells(["hayes-roth"], ["LR", "PI"], n_splits=1)
    cells.append(VARIANTS["stop-0.01"].of(cells[0]))
    run_cells(cells, tmp_path, backend="sequential")
    rows = [row for path in tmp_path.glob("*.csv") for row in RESULTS.read(path)]
    RESULTS.save(tmp_path, [row | {"versions": OLD} for row in rows])
    return tmp_path, cells


def rows_in(folder):
    return [row for path in sorted(folder.glob("*.csv")) for row in RESULTS.read(path)]


def test_rows_that_come_out_the_same_get_the_new_versions(stored):
    folder, cells = stored
    before = rows_in(folder)
    assert {cell_of(row).key for row in before} == {cell.key for cell in cells}
    assert restamp(folder, 1) == 3
    after = rows_in(folder)
    assert {row["versions"] for row in after} == {versions()}
    assert not any(differing(*pair) for pair in zip(before, after, strict=True))
    assert restamp(folder, 1) == 0


def test_one_that_differs_keeps_all_as_they_are(stored):
    folder, _ = stored
    before = rows_in(folder)
    row = next(row for row in before if row["protocol"] == "code")
    RESULTS.save(folder, [row | {"objective": row["objective"] + 1e-4}])
    files = {path: path.read_text() for path in folder.glob("*.csv")}
    with pytest.raises(RuntimeError, match=r"1 of 3 rows computed anew differ.*\['objective'\]"):
        main(["--results-dir", str(folder), "--rows", "3"])
    assert {path: path.read_text() for path in folder.glob("*.csv")} == files


def test_a_variant_that_is_gone_is_named(stored):
    folder, _ = stored
    with pytest.raises(ValueError, match="no variant 'gone', of which hayes-roth has rows"):
        cell_of(rows_in(folder)[0] | {"protocol": "code-gone"})


def test_objectives_may_differ_within_the_gaps_and_errors_and_choices_not_at_all(stored):
    row = next(row for row in rows_in(stored[0]) if row["protocol"] == "code")
    assert differing(row, row | {"objective": row["objective"] + 1.9e-6, "seconds": 9.0, "gap": 1e-7}) == []
    assert differing(row, row | {"objective": row["objective"] + 2.1e-6}) == ["objective"]
    for name in ("test_error", "radius"):
        assert differing(row, row | {name: row[name] + 1e-12}) == [name]


def test_the_sample_has_each_method_on_each_data_set_and_each_change():
    rows = [
        {"dataset": dataset, "method": method, "protocol": protocol, "split": split}
        for dataset in ("spect", "car")
        for method in ("LR", "PI")
        for protocol in ("code", "paper", "code-folds")
        for split in range(5)
    ]
    sample = draw_sample(rows, 0, random.Random(0))
    assert {(row["dataset"], row["method"]) for row in sample} == {
        (d, m) for d in ("spect", "car") for m in ("LR", "PI")
    }
    assert {row["protocol"] for row in sample} == {"code", "paper", "code-folds"} and len(sample) <= 7
    more = draw_sample(rows, 20, random.Random(0))
    assert len(more) == 20 and len({id(row) for row in more}) == 20


def test_rows_of_algorithm_1_are_restamped_too(tmp_path):
    cells = plan_cells(["hayes-roth"], ["DRO_kappa_1"], n_splits=1)
    rows = run_cells(cells, tmp_path, backend="sequential")
    scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True)
    (path,) = tmp_path.glob("algorithm1_*.csv")
    (row,) = SCHEME_RUNTIMES.read(path)
    now = versions(scheme_runtimes.STAMPED_HERE)
    SCHEME_RUNTIMES.save(tmp_path, [row | {"versions": now.replace("wdrlr=", "wdrlr=0+")}])
    assert restamp(tmp_path, 0) == 1
    assert SCHEME_RUNTIMES.read(path) == [row]
    SCHEME_RUNTIMES.save(tmp_path, [row | {"objective": row["objective"] + 1e-4, "versions": OLD}])
    with pytest.raises(RuntimeError, match=r"1 of 1 rows computed anew differ.*\['objective'\]"):
        restamp(tmp_path, 0)


def test_rows_of_fits_timed_alone_are_restamped_too(tmp_path):
    cells = plan_cells(["hayes-roth"], ["DRO_kappa_1", "PI"], n_splits=1)
    timed_alone(run_cells(cells, tmp_path, backend="sequential"), tmp_path, compute_missing=True)
    (path,) = tmp_path.glob("quiet_*.csv")
    rows = QUIET_RUNTIMES.read(path)
    now = versions(quiet_runtimes.STAMPED_HERE)
    QUIET_RUNTIMES.save(tmp_path, [row | {"versions": now.replace("wdrlr=", "wdrlr=0+")} for row in rows])
    before = path.read_text()
    assert restamp(tmp_path, 0) == 2
    assert path.read_text() == before.replace("wdrlr=0+", "wdrlr=")
    QUIET_RUNTIMES.save(tmp_path, [row | {"test_error": row["test_error"] / 2, "versions": OLD} for row in rows])
    with pytest.raises(RuntimeError, match=r"2 of 2 rows computed anew differ.*\['test_error'\]"):
        restamp(tmp_path, 0)


def test_rows_of_figure_2_are_restamped_too(tmp_path):
    panels = {"m": Panel("small", "m", (("2", 10, 2), ("3 and 5", 10, 2)), ("algorithm1", "tailored"))}
    rows_for(panels, ["1"], 2, Setting(), tmp_path, compute_missing=True)
    (path,) = tmp_path.glob("figure2_*.csv")
    rows = RUNTIMES.read(path)
    now = versions(runtimes.STAMPED_HERE)
    assert len(rows) == 8 and {row["versions"] for row in rows} == {now}
    RUNTIMES.save(tmp_path, [row | {"versions": now.replace("wdrlr=", "wdrlr=0+")} for row in rows])
    assert restamp(tmp_path, 0) == 8
    assert RUNTIMES.read(path) == rows
    RUNTIMES.save(tmp_path, [row | {"constant": not row["constant"], "versions": OLD} for row in rows])
    with pytest.raises(RuntimeError, match=r"4 of 4 rows computed anew differ.*solver algorithm1.*\['constant'\]"):
        restamp(tmp_path, 0)
