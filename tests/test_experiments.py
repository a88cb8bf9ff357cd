import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from wdrlr import experiments
from wdrlr.experiments import (
    Cell,
    choose_point,
    plan_cells,
    prepare_numbers,
    prepare_reference,
    run_cell,
    run_cells,
    split_rows,
)
from wdrlr.methods import METHODS, Method
from wdrlr.protocols import PROTOCOLS, RADII
from wdrlr.results import COLUMNS, save_rows

CODE = PROTOCOLS["code"]
TIMES = ["seconds", "cv_seconds"]


# A data set and a method that cost nothing: the model predicts +1 at radius 0 and -1 at radius 1, says what it was
# fitted on, and is exactly 0 at radius 2.

TOY = SimpleNamespace(
    X=pd.DataFrame({"row": np.arange(50.0), "z": pd.Categorical(["a", "b"] * 25)}),
    y=np.array([1] * 30 + [-1] * 20),
)


@dataclass
class ToyModel:
    radius: float
    log: list | None = None
    solver = "toy"
    conic_solver = "auto"
    objective_ = 0.5
    n_iter_ = 1
    n_cuts_ = 0

    def fit(self, X, y):
        if self.radius == 5:
            raise RuntimeError("the toy broke")
        if self.radius == 3:
            warnings.warn(f"fitted {len(y)} rows\nand more", ConvergenceWarning, stacklevel=1)
            time.sleep(0.01)
        self.coef_ = np.full((1, 2), 0.0 if self.radius == 2 else 1.0)
        self.intercept_ = np.zeros(1)
        self.gap_ = 1.0 if self.radius == 1 else 0.0
        if self.log is not None:
            self.log.append((self.radius, X, y))
        return self

    def predict(self, X):
        return np.full(len(X), -1 if self.radius == 1 else 1)


@dataclass(frozen=True)
class ToyMethod(Method):
    log: list | None = None

    def estimator(self, radius, gamma, protocol, tol, solver):
        return ToyModel(radius, self.log)

    __hash__ = object.__hash__


def toy(*radii, log=None, name="LR"):
    return ToyMethod(name, "toy", "unregularized", radii=tuple(map(float, radii)), log=log)


@pytest.fixture
def toy_data(monkeypatch):
    monkeypatch.setattr(experiments, "_load", lambda name: TOY)
    monkeypatch.setattr(experiments, "load_dataset", lambda name: TOY)


def toy_cells(n_splits, *radii):
    return [Cell("toy", CODE, toy(*radii), split, 0, 1e-6, "tailored") for split in range(n_splits)]


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
    grid = METHODS["DRO_kappa_1"].grid
    assert choose_point(grid, np.zeros(7), "largest") == (1.0, 0.0)
    assert choose_point(grid, np.zeros(7), "smallest") == (0.0, 0.0)


def test_folds_are_contiguous_parts_of_the_training_rows(toy_data):
    log = []
    method = toy(0, 1, log=log)
    row = run_cell("toy", CODE, method, 0, 0, 1e-6, "tailored")
    log = log[1:]  # the first fit is the warm-up
    train, test = split_rows(50, "toy", 0, 0)
    assert [radius for radius, _, _ in log] == [0, 1] * 5 + [0]
    for fold in range(5):
        _, X, y = log[2 * fold]
        held_out = train[8 * fold : 8 * fold + 8]
        rest = [i for i in train if i not in held_out]
        low, high = train.min(), train.max()
        np.testing.assert_allclose(X["row"], (np.array(rest) - low) / (high - low))
        assert y.tolist() == TOY.y[rest].tolist()
    share_negative = np.mean(TOY.y[train] == -1)
    assert row["cv_error"] == pytest.approx(share_negative)  # radius 0 predicts +1 everywhere
    assert row["radius"] == 0
    assert row["test_error"] == np.mean(TOY.y[test] == -1)


def test_ties_are_part_of_the_protocol(toy_data):
    smallest = replace(CODE, name="smallest", ties="smallest")
    assert run_cell("toy", CODE, toy(0, 4), 0, 0, 1e-6, "tailored")["radius"] == 4
    assert run_cell("toy", smallest, toy(0, 4), 0, 0, 1e-6, "tailored")["radius"] == 0


def test_the_zero_model_predicts_the_majority_of_what_it_was_fitted_on(toy_data, monkeypatch):
    row = run_cell("toy", CODE, toy(2), 0, 0, 1e-6, "tailored")
    _, test = split_rows(50, "toy", 0, 0)
    assert row["constant"] and row["test_error"] == np.mean(TOY.y[test] == -1)
    turned = SimpleNamespace(X=TOY.X, y=-TOY.y)
    monkeypatch.setattr(experiments, "_load", lambda name: turned)
    assert run_cell("toy", CODE, toy(2), 0, 0, 1e-6, "tailored")["test_error"] == row["test_error"]


def test_fits_warnings_and_missing_certificates_are_counted_not_shown(toy_data, recwarn):
    row = run_cell("toy", CODE, toy(1, 3, 3), 0, 0, 1e-6, "tailored")
    assert (row["n_fits"], row["n_uncertified"]) == (16, 5)
    assert row["n_warnings"] == 11  # the final fit is one of them
    assert row["warning"] == "ConvergenceWarning: fitted 32 rows"
    assert not len(recwarn)


def test_other_warnings_are_shown(toy_data, monkeypatch):
    real = ToyModel.fit

    def fit(self, X, y):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return real(self, X, y)

    monkeypatch.setattr(ToyModel, "fit", fit)
    with pytest.warns(DeprecationWarning, match="old"):
        assert run_cell("toy", CODE, toy(0), 0, 0, 1e-6, "tailored")["n_warnings"] == 0


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


def test_protocols_and_grids_are_those_of_the_paper_and_of_its_code():
    assert METHODS["LR"].grid == [(0.0, 0.0)]
    assert METHODS["DRO_kappa_1"].grid == [(radius, 0.0) for radius in RADII]
    assert len(RADII) == 7
    code = METHODS["DRO_kappa_m"].estimator(0.1, 0.0, CODE, 1e-6, "tailored").get_params()
    paper = METHODS["DRO_kappa_m"].estimator(0.1, 0.0, PROTOCOLS["paper"], 1e-6, "tailored").get_params()
    assert code["label_cost"] == paper["label_cost"] == "n_categorical"
    assert (code["metric_scale"], code["coding"], code["coef_bound"]) == ("unit", "pm1", 100)
    assert (paper["metric_scale"], paper["coding"], paper["coef_bound"]) == (None, "onehot", None)
    assert METHODS["LR"].estimator(0.0, 0.0, CODE, 1e-6, "tailored").coef_bound is None


# Runs


@pytest.mark.parametrize("backend", ["dask", "multiprocessing", ""])
def test_unknown_backends_are_refused_with_the_valid_ones(tmp_path, backend):
    with pytest.raises(ValueError, match=f"unknown backend '{backend}'; choose from loky, seq"):
        run_cells([], tmp_path, backend=backend)


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
    cells[1] = cells[1]._replace(method=toy(5))
    with pytest.warns(UserWarning, match=r"(?s)1 of 3 cells failed: toy, LR, split 1\..*the toy broke"):
        rows = run_cells(cells, tmp_path, backend="sequential")
    assert rows["split"].tolist() == [0, 2]


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


def test_a_real_cell_with_cross_validation(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "N_FOLDS", 2)
    method = replace(METHODS["DRO_kappa_1"], radii=(1e-3, 1.0))
    row = run_cell("balance-scale", CODE, method, 0, 0, 1e-4, "tailored")
    save_rows(tmp_path, [row])
    assert row["n_train"] + row["n_test"] == 625
    assert row["radius"] == 1e-3  # at radius 1 the model is 0
    assert 0 <= row["gap"] <= 1e-4 and 0 < row["objective"] < np.log(2)
    assert row["n_fits"] == 5


KILLED_RUN = """
import pathlib, sys, time
sys.path.insert(0, {tests!r})
import test_experiments as toys
from wdrlr import experiments
experiments._load = experiments.load_dataset = lambda name: toys.TOY
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
    command = [sys.executable, "-c", KILLED_RUN.format(tests=os.path.dirname(__file__)), str(tmp_path)]
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
