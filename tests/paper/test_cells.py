import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from wdrlr import WassersteinLogisticRegression, load_dataset
from wdrlr.estimators.cross_validation import choose_point
from wdrlr.estimators.solving import Solving
from wdrlr.paper import cells as experiments
from wdrlr.paper.cells import (
    Cell,
    FoldFit,
    Rows,
    describe_missing,
    fit_fold,
    fit_method,
    plan_cells,
    prepare_numbers,
    prepare_reference,
    run_cell,
    run_cells,
    split_rows,
    wanted_rows,
)
from wdrlr.paper.methods import METHODS, Method
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.results import COLUMNS, save_rows
from wdrlr.paper.tables import summarise_errors, to_html
from wdrlr.solvers.registry import SOLVERS, Solver
from wdrlr.solvers.solution import Solution

CODE = PROTOCOLS["code"]
TIMES = ["seconds", "solver_seconds", "identification_seconds", "cv_seconds"]


# A data set and a solver that cost nothing: its model predicts +1 at radius 0 and -1 at radius 1, and is exactly 0 at
# radius 2.

TOY = SimpleNamespace(
    X=pd.DataFrame({"row": np.arange(50.0), "z": pd.Categorical(["a", "b"] * 25)}),
    y=np.array([1] * 30 + [-1] * 20),
)


def solve_toy(problem, **_):
    if problem.radius == 5:
        raise RuntimeError("the toy broke")
    if problem.radius == 6:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory runs out
    if problem.radius == 7:
        time.sleep(0.5)
    if problem.radius == 3:
        warnings.warn(f"fitted {problem.n_samples} rows\nand more", ConvergenceWarning, stacklevel=1)
        time.sleep(0.01)
    b = np.full(problem.n_coefficients, 1e-3)
    b[0] = {1: -10.0, 2: 0.0}.get(problem.radius, 10.0)
    if problem.radius == 2:
        b[:] = 0.0
    lower = -np.inf if problem.radius == 1 else 0.5
    return Solution(b, 0.0, 0.5, lower, n_rounds=1, separation_seconds=0.25, solver_seconds=0.5)


TOY_SOLVER = Solver("toy", solve_toy)


def as_it_is(problem):
    """No change; but a worker process, which has this function by import, gets to know the solver."""
    SOLVERS.setdefault("toy", TOY_SOLVER)
    return problem, 1.0


def toy(*radii, name="LR", ties="largest", **fields):
    """Protocol and method of a toy."""
    method = Method(name, "toy", "unregularized", chooses="radius", solver="toy", **{"change": as_it_is, **fields})
    return replace(CODE, radii=tuple(map(float, radii)), ties=ties), method


def fit_one_by_one(kept, held_out, grid, method, protocol, solving):
    """What `fit_fold` does, from cold at each point and by what the final fit is judged with."""
    fits = []
    for point in grid:
        fit = fit_method(kept, point, method, protocol, solving, 0)
        error = experiments._error(fit, kept, held_out)
        fits.append(FoldFit(error, fit.solution.gap, not np.any(fit.solution.b[1:])))
    return fits


def use_toys(set_attribute, data=TOY):
    set_attribute(experiments, "_load", lambda name: data)
    set_attribute(experiments, "load_dataset", lambda name: data)


@pytest.fixture
def toy_data(monkeypatch):
    use_toys(monkeypatch.setattr)
    monkeypatch.setitem(SOLVERS, "toy", TOY_SOLVER)


def toy_cells(n_splits, *radii):
    return [Cell("toy", *toy(*radii), split, 0, 1e-6, "tailored") for split in range(n_splits)]


# Splits


@pytest.mark.parametrize("n_rows, n_test", [(50, 10), (277, 55), (160, 32), (9, 1)])
def test_a_split_is_a_partition_with_a_fifth_of_the_rows_rounded_down(n_rows, n_test):
    train, test = split_rows(n_rows, "spect", 0, 3)
    assert len(test) == n_test
    assert sorted([*train, *test]) == list(range(n_rows))


def test_splits_follow_from_data_set_seed_and_number_alone():
    tests = {
        arguments: tuple(split_rows(100, *arguments)[1])
        for arguments in [("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 0, 0), ("a", 2**40, 0)]
    }
    assert len(set(tests.values())) == len(tests)
    # Pinned: stored rows of other versions are comparable only if this never changes.
    assert split_rows(12, "spect", 0, 1)[1].tolist() == [1, 3]


# Preparation


def test_numbers_are_filled_and_scaled_by_the_training_part():
    X = pd.DataFrame(
        {
            "age": [10.0, np.nan, 30.0, 20.0, 50.0, np.nan],
            "same": [4.0, 4.0, 4.0, 4.0, 9.0, np.nan],
            "z": pd.Categorical(list("abcabc"), categories=list("abcd")),
        }
    )
    before = X.copy()
    prepared = prepare_numbers(X, np.array([3, 0, 2, 1]))
    assert prepared["age"].tolist() == [0.0, 0.5, 1.0, 0.5, 2.0, 0.5]
    assert prepared["same"].tolist() == [0.0] * 6
    assert list(prepared["z"].cat.categories) == list("abcd")
    pd.testing.assert_frame_equal(X, before)


def test_the_reference_level_is_one_that_occurs():
    X = pd.DataFrame({"z": pd.Categorical(list("bcb"), categories=list("abcd")), "v": pd.Categorical(list("xyx"))})
    for coding, expected in (("onehot", list("bcad")), ("pm1", list("adbc"))):
        prepared = prepare_reference(X, coding)
        assert list(prepared["z"].cat.categories) == expected
        assert prepared["z"].tolist() == X["z"].tolist()
        assert list(prepared["v"].cat.categories) == list("xy")


# Choice


@pytest.mark.parametrize("ties, expected", [("largest", (0.0, 0.5)), ("smallest", (1.0, 0.0))])
def test_ties_go_by_penalty_and_then_radius(ties, expected):
    grid = [(0.0, 0.0), (1.0, 0.0), (0.0, 0.5), (1.0, 0.5)]
    errors = np.array([0.2, 0.1 + 1e-17, 0.1, 0.3])
    assert choose_point(grid, errors, ties) == expected


def test_of_equal_penalties_the_largest_radius_is_chosen():
    grid = METHODS["DRO_kappa_1"].grid(CODE)
    assert choose_point(grid, np.zeros(7), "largest") == (1.0, 0.0)
    assert choose_point(grid, np.zeros(7), "smallest") == (0.0, 0.0)


def test_folds_are_contiguous_parts_of_the_training_rows(toy_data, monkeypatch):
    fitted = []

    def logged(problem, **options):
        fitted.append(problem)
        return solve_toy(problem, **options)

    monkeypatch.setitem(SOLVERS, "toy", Solver("toy", logged))
    row = run_cell("toy", *toy(0, 1, name="logged"), 0, 0, 1e-6, "tailored")
    fitted = fitted[1:]  # the first fit is the warm-up
    train, test = split_rows(50, "toy", 0, 0)
    assert [problem.radius for problem in fitted] == [0, 1] * 5 + [0]
    low, high = train.min(), train.max()
    for fold in range(5):
        problem = fitted[2 * fold]
        held_out = train[8 * fold : 8 * fold + 8]
        rest = np.sort([i for i in train if i not in held_out])
        order = np.argsort(problem.x[:, 0])
        np.testing.assert_allclose(problem.x[order, 0], (rest - low) / (high - low))
        assert problem.y[order].tolist() == TOY.y[rest].tolist()
    share_negative = np.mean(TOY.y[train] == -1)
    assert row["cv_error"] == pytest.approx(share_negative)  # radius 0 predicts +1 everywhere
    assert row["radius"] == 0
    assert row["test_error"] == np.mean(TOY.y[test] == -1)


def test_ties_are_part_of_the_protocol(toy_data):
    for ties, radius in (("largest", 4), ("smallest", 0)):
        assert run_cell("toy", *toy(0, 4, ties=ties), 0, 0, 1e-6, "tailored")["radius"] == radius


def test_the_zero_model_predicts_the_majority_of_what_it_was_fitted_on(toy_data, monkeypatch):
    row = run_cell("toy", *toy(2), 0, 0, 1e-6, "tailored")
    _, test = split_rows(50, "toy", 0, 0)
    assert row["constant"] and row["n_constant"] == row["n_fits"] == 1
    assert row["test_error"] == np.mean(TOY.y[test] == -1)
    turned = SimpleNamespace(X=TOY.X, y=-TOY.y)
    use_toys(monkeypatch.setattr, turned)
    assert run_cell("toy", *toy(2), 0, 0, 1e-6, "tailored")["test_error"] == row["test_error"]


def test_fits_warnings_and_missing_certificates_are_counted_not_shown(toy_data, recwarn):
    row = run_cell("toy", *toy(1, 3, 3), 0, 0, 1e-6, "tailored")
    assert (row["n_fits"], row["n_uncertified"]) == (16, 5)
    assert row["n_warnings"] == 11  # the final fit is one of them
    assert row["warning"] == "ConvergenceWarning: fitted 32 rows"
    assert not len(recwarn)


def test_other_warnings_are_shown(toy_data, monkeypatch):
    def solve(problem, **options):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return solve_toy(problem, **options)

    monkeypatch.setitem(SOLVERS, "toy", Solver("toy", solve))
    with pytest.warns(DeprecationWarning, match="old"):
        assert run_cell("toy", *toy(4), 0, 0, 1e-6, "tailored")["n_warnings"] == 0


# Plans


def test_a_plan_goes_split_by_split():
    cells = plan_cells(["spect", "car"], ["LR", "DRO_kappa_m"], n_splits=2, first_split=5, seed=3, tol=1)
    assert [(c.dataset, c.split, c.method.name) for c in cells][:5] == [
        ("spect", 5, "LR"),
        ("spect", 5, "DRO_kappa_m"),
        ("spect", 6, "LR"),
        ("spect", 6, "DRO_kappa_m"),
        ("car", 5, "LR"),
    ]
    assert cells[0].key == ("spect", "code", "LR", 3, 1.0, "tailored", 5)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"methods": ["LR", "LRR"]}, "unknown method 'LRR'; choose from LR, DRO_kappa_1"),
        ({"methods": ["LR", "LR"]}, "'LR' is named twice"),
        ({"methods": []}, "methods is empty"),
        ({"protocol": "julia"}, "unknown protocol 'julia'; choose from code, paper"),
        ({"n_splits": 0}, "n_splits must be at least 1, got 0"),
        ({"first_split": -1}, "first_split must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"solver": "ipopt"}, "unknown solver 'ipopt'; choose from tailored, column-constraint"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"tol": float("nan")}, "tol must be a positive number"),
    ],
)
def test_a_wrong_plan_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        plan_cells(**{"datasets": ["spect"], "methods": ["LR"], "n_splits": 1} | changes)


# A cell's path


def path_rows(n_numbers):
    rng = np.random.default_rng(0)
    z = {name: pd.Categorical(rng.choice(list("abc"), 90), categories=list("abcd")) for name in ("u", "v")}
    X = prepare_reference(pd.DataFrame({**{f"x{j}": rng.random(90) for j in range(n_numbers)}, **z}), "pm1")
    signal = (X["u"] == "a").to_numpy(float) + (X["v"] == "b").to_numpy(float)
    rows = Rows(X, np.where(signal + rng.normal(0, 0.7, 90) > 0.7, 1.0, -1.0))
    return rows.part(np.arange(60)), rows.part(np.arange(60, 90))


@pytest.mark.parametrize("protocol", ["code", "paper"])
@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].chooses != "nothing"])
def test_a_shared_path_gives_what_cold_fits_give(name, protocol):
    grid = METHODS[name].grid(PROTOCOLS[protocol])[::3]
    rows, how = (*path_rows(1), grid), Solving("tailored")
    shared = fit_fold(*rows, METHODS[name], PROTOCOLS[protocol], how)
    cold = fit_one_by_one(*rows, METHODS[name], PROTOCOLS[protocol], how)
    assert [fit.error for fit in shared] == pytest.approx([fit.error for fit in cold], abs=1e-12)
    assert [fit.gap for fit in shared] == pytest.approx([fit.gap for fit in cold], abs=1e-12)
    assert [fit.constant for fit in shared] == [fit.constant for fit in cold]
    assert max(fit.gap for fit in shared) <= 1e-6
    assert any(fit.constant for fit in shared) and not all(fit.constant for fit in shared)


def test_a_shared_path_with_the_paper_s_scheme():
    arguments = (*path_rows(0), [(0.01, 0.0), (0.1, 0.0)], METHODS["DRO_kappa_1"], CODE)
    scheme, tailored = (fit_fold(*arguments, Solving(name, tol=1e-5)) for name in ("column-constraint", "tailored"))
    assert [fit.error for fit in scheme] == pytest.approx([fit.error for fit in tailored])


# What is there


def test_all_stands_for_all_methods():
    cells = plan_cells(["spect"], ["all"], n_splits=1)
    assert [cell.method.name for cell in cells] == list(METHODS)


def test_wanted_rows_are_computed_only_if_asked_for(toy_data, tmp_path, capsys):
    cells = toy_cells(3, 0)
    with pytest.raises(RuntimeError, match=r"none of the 3 cells .* set compute_missing to True"):
        wanted_rows(cells, tmp_path, compute_missing=False)
    wanted_rows(cells[:2], tmp_path, compute_missing=True, backend="sequential")
    assert wanted_rows(cells, tmp_path, compute_missing=False)["split"].tolist() == [0, 1]
    assert capsys.readouterr().out == ""
    (path,) = tmp_path.glob("*.csv")
    path.write_text(path.read_text().replace("wdrlr=", "wdrlr=0+", 1))
    wanted_rows(cells, tmp_path, compute_missing=False)
    assert capsys.readouterr().out.startswith("1 of these 2 rows were computed by other versions (wdrlr 0+")


def test_what_is_missing_is_reported_by_data_set_and_method():
    cells = plan_cells(["spect", "car", "hiv"], ["LR", "PI"], n_splits=2)
    done = [(cell.dataset, cell.method.name) for cell in cells if cell.dataset == "spect"] + [("hiv", "PI")] * 2
    rows = pd.DataFrame(done, columns=["dataset", "method"])
    assert describe_missing(cells, rows) == [
        "6 of 12 cells done.",
        "car: splits of each method 0 of 2",
        "hiv: splits of LR 0 of 2",
    ]
    assert describe_missing(cells[:4], rows[:4]) == ["4 of 4 cells done."]


# Runs


@pytest.mark.parametrize("backend", ["threading", "multiprocessing", ""])
def test_unknown_backends_are_refused_with_the_valid_ones(tmp_path, backend):
    with pytest.raises(ValueError, match=f"unknown backend '{backend}'; choose from loky, seq"):
        run_cells([], tmp_path, backend=backend)


def test_a_scheduler_is_for_dask(tmp_path):
    with pytest.raises(ValueError, match="scheduler 'tcp://a:1' is for backend 'dask', not 'loky'"):
        run_cells([], tmp_path, scheduler="tcp://a:1")


def test_no_workers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        run_cells([], tmp_path, n_jobs=0)


def test_an_unknown_data_set_is_refused_before_any_work(tmp_path):
    cells = plan_cells(["tic-tac-toe", "spekt"], ["LR"], n_splits=1)
    with pytest.raises(ValueError, match="spekt"):
        run_cells(cells, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_data_file_that_is_not_uci_s_is_refused_before_any_work(tmp_path, monkeypatch):
    raw = tmp_path / "raw" / "tic-tac-toe" / "tic-tac-toe.data"
    raw.parent.mkdir(parents=True)
    raw.write_text("x,x,x,x,o,o,x,o,o,positive\n")
    monkeypatch.setenv("WDRLR_DATA", str(tmp_path / "raw"))
    (tmp_path / "rows").mkdir()
    with pytest.raises(ValueError, match=r"tic-tac-toe\.data"):
        run_cells(plan_cells(["tic-tac-toe"], ["LR"], n_splits=1), tmp_path / "rows")
    assert not list((tmp_path / "rows").iterdir())


@pytest.mark.parametrize("backend", ["loky", "sequential"])
def test_a_folder_that_takes_no_rows_is_named_before_any_work(toy_data, tmp_path, monkeypatch, backend):
    monkeypatch.setattr(experiments, "_outcomes", None)
    (tmp_path / ".lock.tmp").mkdir()
    with pytest.raises(OSError, match=rf"name another results_dir.*{tmp_path}"):
        run_cells(toy_cells(2, 0), tmp_path, n_jobs=2, backend=backend)


def test_a_folder_that_takes_no_rows_can_be_read(toy_data, tmp_path):
    cells = toy_cells(2, 0)
    rows = run_cells(cells, tmp_path, backend="sequential")
    (tmp_path / ".lock.tmp").unlink()
    (tmp_path / ".lock.tmp").mkdir()
    pd.testing.assert_frame_equal(run_cells(cells, tmp_path), rows)


def test_only_missing_cells_are_computed(toy_data, tmp_path, monkeypatch):
    computed = []
    real = experiments.run_cell
    monkeypatch.setattr(experiments, "run_cell", lambda *cell: computed.append(cell[3]) or real(*cell))
    cells = toy_cells(4, 0)
    run_cells(cells[1:3], tmp_path, backend="sequential")
    rows = run_cells(cells, tmp_path, backend="sequential")
    assert computed == [1, 2, 0, 3]
    assert rows["split"].tolist() == [0, 1, 2, 3]
    assert list(rows.columns) == list(COLUMNS)
    pd.testing.assert_frame_equal(rows, run_cells(cells, tmp_path, backend="sequential"))
    assert computed == [1, 2, 0, 3]


def test_a_cell_that_fails_is_named_and_does_not_stop_the_others(toy_data, tmp_path):
    cells = toy_cells(3, 0)
    cells[1] = cells[1]._replace(protocol=toy(5)[0])
    with pytest.warns(UserWarning, match=r"(?s)1 of 3 cells failed: toy, LR, split 1\..*the toy broke"):
        rows = run_cells(cells, tmp_path, backend="sequential")
    assert rows["split"].tolist() == [0, 2]


def kill_once(problem):
    """Takes the worker down unless the file is there that it makes."""
    try:
        open(os.environ["KILLED_ONCE"], "x").close()
    except FileExistsError:
        return as_it_is(problem)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_cell_that_kills_its_worker_is_named_and_the_others_are_computed(tmp_path, monkeypatch):
    monkeypatch.setenv("KILLED_ONCE", str(tmp_path / "killed"))
    toys = [toy(7), toy(6), toy(0, change=kill_once), toy(0)]  # the first is running beside the second
    cells = [Cell("balance-scale", *of, split, 0, 1e-6, "tailored") for split, of in enumerate(toys)]
    with pytest.warns(UserWarning, match=r"(?s)1 of 4 cells failed: balance-scale, LR, split 1\..*SIGKILL"):
        rows = run_cells(cells, tmp_path, n_jobs=2)
    assert rows["split"].tolist() == [0, 2, 3]
    assert len(pd.read_csv(tmp_path / "balance-scale_code_LR_seed0.csv")) == 3


def test_a_damaged_result_file_is_redone(toy_data, tmp_path):
    cells = toy_cells(2, 0)
    before = run_cells(cells, tmp_path, backend="sequential")
    (path,) = tmp_path.glob("*.csv")
    path.write_text(path.read_text()[:-5])
    with pytest.warns(UserWarning, match=path.name):
        after = run_cells(cells, tmp_path, backend="sequential")
    pd.testing.assert_frame_equal(before.drop(columns=TIMES), after.drop(columns=TIMES))


def test_numbers_do_not_depend_on_workers_or_order(tmp_path):
    cells = plan_cells(["balance-scale"], ["LR"], n_splits=3)
    frames = []
    for name, n_jobs, backend, order in [
        ("a", 1, "sequential", cells),
        ("b", 2, "loky", cells[::-1]),
    ]:
        (tmp_path / name).mkdir()
        frame = run_cells(order, tmp_path / name, n_jobs=n_jobs, backend=backend)
        frames.append(frame.sort_values("split", ignore_index=True).drop(columns=TIMES))
    alone = pd.DataFrame([run_cell(*cells[2])]).drop(columns=TIMES)
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0].tail(1).reset_index(drop=True), alone)


@pytest.mark.parametrize("name", METHODS)
def test_a_real_cell_of_each_method(monkeypatch, tmp_path, name):
    monkeypatch.setattr(experiments, "N_FOLDS", 2)
    protocol = replace(CODE, radii=(1e-3, 1.0), gammas=(0.5e-3, 0.5), joint_radii=(1e-3, 1.0), joint_gammas=(0.5e-3,))
    method = METHODS[name]
    row = run_cell("balance-scale", protocol, method, 0, 0, 1e-4, "tailored")
    save_rows(tmp_path, [row])
    assert row["n_train"] + row["n_test"] == 625
    assert (row["radius"], row["gamma"]) == method.grid(protocol)[0]  # at the other point all slopes are 0
    assert 0 <= row["gap"] <= 1e-4 and 0 < row["objective"] < np.log(2)
    assert (row["n_fits"], row["n_constant"]) == ((1, 0) if method.chooses == "nothing" else (5, 2))
    assert row["seconds"] > row["solver_seconds"] > 0
    assert (row["identification_seconds"] > 0) == (name == "PI")
    again = run_cell("balance-scale", protocol, method, 0, 0, 1e-4, "tailored")
    assert all(again[column] == row[column] for column in ("objective", "test_error", "n_iter"))


def labels_are_sure(problem):
    """A change as a method from outside may have it."""
    return replace(problem, metric=replace(problem.metric, label_cost=np.inf)), 1.0


def test_a_method_from_outside_is_one_entry(monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "NEW", Method("NEW", "NEW", "numerical", chooses="radius", change=labels_are_sure))
    monkeypatch.setitem(PROTOCOLS, "code", replace(CODE, radii=(0.01, 0.02)))
    cells = plan_cells(["balance-scale"], ["LR", "NEW"], n_splits=2)
    rows = wanted_rows(cells, tmp_path, compute_missing=True, n_jobs=2)
    pd.testing.assert_frame_equal(rows, wanted_rows(cells, tmp_path, compute_missing=False))
    new = rows[rows["method"] == "NEW"]
    assert (new["n_fits"] == 11).all() and (new["n_uncertified"] == 0).all()
    data = load_dataset("balance-scale")
    for row in new.itertuples():
        train, test = split_rows(len(data.y), "balance-scale", 0, row.split)
        scale = 4 + 1.0  # of the protocol's metric: features and label cost
        plain = WassersteinLogisticRegression(scale * row.radius, np.inf, coding="pm1", coef_bound=100.0)
        plain.fit(data.X.iloc[train], data.y[train])
        assert row.objective == pytest.approx(plain.objective_, abs=2e-6)
        assert row.test_error == pytest.approx(1 - plain.score(data.X.iloc[test], data.y[test]), abs=1e-3)
    summary = summarise_errors(rows, "table1").set_index("method")
    assert summary.loc["NEW", "ours"] == pytest.approx(100 * new["test_error"].mean())
    assert summary.loc["NEW", "best_in_group"]  # it is alone there
    assert "NEW" in to_html(summary.reset_index(), "table1")


KILLED_RUN = """
import pathlib, sys, time
sys.path.insert(0, {root!r})
from tests.paper import test_cells as toys
from wdrlr.paper import cells as experiments
toys.use_toys(setattr)
real = experiments.run_cell
def slow(*cell):
    with open(pathlib.Path(sys.argv[1]) / "computed", "a") as log:
        log.write(f"{{cell[3]}}\\n")
    time.sleep(0.1)
    return real(*cell)
experiments.run_cell = slow
experiments.run_cells(toys.toy_cells(10, 0), pathlib.Path(sys.argv[1]), n_jobs=1, backend="sequential")
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_run_goes_on_and_redoes_nothing(tmp_path):
    command = [sys.executable, "-c", KILLED_RUN.format(root=ROOT), str(tmp_path)]
    stored = tmp_path / "toy_code_LR_seed0.csv"
    done = []
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
        while len(done) < 4:
            assert run.poll() is None
            done = stored.read_text().splitlines()[1:] if stored.exists() else []
        run.send_signal(signal.SIGKILL)
    in_store = {int(line.split(",")[3]) for line in stored.read_text().splitlines()[1:]}
    earlier = (tmp_path / "computed").read_text().split()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    later = (tmp_path / "computed").read_text().split()[len(earlier) :]
    assert sorted(map(int, later)) == sorted(set(range(10)) - in_store)
    lines = stored.read_text().splitlines()[1:]
    assert [int(line.split(",")[3]) for line in lines] == list(range(10))
    assert set(done) <= set(lines)  # what was there was kept, seconds included


KILLED_OFTEN = """
import os, pathlib, random, signal, sys, threading, time, warnings
sys.path.insert(0, {root!r})
from tests.paper import test_cells as toys
from tqdm import tqdm
from wdrlr.paper.cells import run_cells
toys.use_toys(setattr)
tqdm.monitor_interval = 0  # a thread, and forks are safe only without
tqdm.set_lock(threading.RLock())  # its own is shared by forks, and stays locked when one is killed while it holds it
warnings.simplefilter("error")  # a damaged file would be said by one
folder, cells, kills = pathlib.Path(sys.argv[1]), toys.toy_cells(80, 0), 0
stored = folder / "toy_code_LR_seed0.csv"
run_cells(cells[:1], folder, backend="sequential")  # what a process does once is done before the forks
moments = random.Random(0)
before = ""
while before.count("\\n") < 80:  # without the header, the last cell is left
    child = os.fork()
    if child == 0:
        run_cells(cells, folder, backend="sequential")
        os._exit(0)
    enough = min(before.count("\\n") + moments.randint(0, 8), 80)  # the header counts
    while stored.read_text().count("\\n") < enough:
        time.sleep(0.0005)
    time.sleep(moments.uniform(0.0, 0.01))
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0
    kills += os.WIFSIGNALED(status)
    now = stored.read_text() if stored.exists() else ""
    assert now.startswith(before), "a row was lost"
    before = now
run_cells(cells, folder, backend="sequential")
print(kills)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_run_killed_at_many_moments_loses_nothing(tmp_path, toy_data):
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-c", KILLED_OFTEN.format(root=ROOT), str(tmp_path / "killed")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 5, run.stdout
    whole = run_cells(toy_cells(80, 0), tmp_path / "whole", backend="sequential").drop(columns=TIMES)
    (file,) = (tmp_path / "killed").glob("*.csv*")
    assert file.read_text().count("\n") == 81
    pd.testing.assert_frame_equal(
        pd.read_csv(file, keep_default_na=False, na_values="nan").drop(columns=TIMES), whole, check_dtype=False
    )


IDLE_WORKERS = """
import os, pathlib, sys, time
sys.path.insert(0, {root!r})
from tests.paper import test_cells as toys
from wdrlr.paper.cells import run_cells
cells = [toys.Cell("balance-scale", *toys.toy(0), split, 0, 1e-6, "tailored") for split in range(3)]
run_cells(cells, pathlib.Path(sys.argv[1]), n_jobs=2)
children = open(f"/proc/self/task/{{os.getpid()}}/children").read()
print(children, flush=True)
time.sleep(60)
"""

ROOT = str(Path(__file__).parents[2])


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # what nobody has waited for is over, too
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_idle_workers_end_with_their_parent(tmp_path, end):
    command = [sys.executable, "-c", IDLE_WORKERS.format(root=ROOT), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        children = run.stdout.readline().split()
        assert len(children) >= 2  # and a tracker of resources, which ends by itself
        run.send_signal(end)
    last = time.monotonic() + 5
    while alive := [pid for pid in children if is_running(pid)]:
        assert time.monotonic() < last, f"{len(alive)} of {len(children)} are still there"
        time.sleep(0.1)


def test_a_fit_that_strayed_from_its_best_point_is_taken_up_again_from_there():
    """One of this cell's, at radius 1e-5, ended with a gap of 2.3e-6: its multiplier had gone to 1e7."""
    (cell,) = plan_cells(["breast-cancer"], ["DRO_kappa_1"], n_splits=1, first_split=63)
    assert run_cell(*cell)["n_uncertified"] == 0
