"""The benchmarks run, count what they say they count, and go on where they stopped. No test looks at a time."""

import ast
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from sklearn.preprocessing import OneHotEncoder

from benchmarks import choosing, compilation, encoding, fingerprint, report
from benchmarks.datasets import (
    as_numbers,
    logistic_problem,
    logistic_rows,
    logistic_table,
    some_rows,
    synthetic,
    uci,
)
from benchmarks.objective import objective, race, timed, unmeasured
from benchmarks.run import PARTS
from benchmarks.solvers import OURS, SOLVERS, Logistic, expected_rounds
from benchmarks.store import TABLES, Store, read
from wdrlr import WassersteinLogisticRegression
from wdrlr.datasets import load_dataset
from wdrlr.estimators.formulation import Formulation
from wdrlr.estimators.solving import Solving, at_point
from wdrlr.model.problem import Problem, log_loss, merge_duplicates
from wdrlr.paper.cells import prepare_numbers, prepare_reference, split_rows
from wdrlr.paper.methods import METHODS
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.solvers.solution import Solution

ROOT = Path(__file__).parents[1]


def quick(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--results-dir", str(folder), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_parts_in_the_quick_setting(tmp_path):
    quick(tmp_path)
    text = (tmp_path / "README.md").read_text()
    for part in PARTS:
        assert report.SECTIONS[part][0] in text
        if part == "dro" and find_spec("dro") is None:
            assert not (tmp_path / "dro.csv").exists()
            continue
        machine, rows = read(tmp_path / f"{part}.csv")
        assert "cores" in machine and "numpy=" in machine and machine in text
        assert rows["seconds"].notna().all() and (rows["seconds"] > 0).all()
    races = ("lr", "window", "numbers", "levels", "algorithm1", "all-violated", "growth", "threads")
    rows_of = {part: read(tmp_path / f"{part}.csv")[1] for part in (*races, "radius-max", "path")}
    for part in races:
        rows = report.with_gap(
            rows_of[part], [column for column in TABLES[part].key if column not in ("solver", "stop")]
        )
        tight = rows[(rows["solver"] == OURS) & (rows["stop"] == 1e-6)]
        assert len(tight) and (tight["gap"] <= report.CERTIFIED).all()
    for part in ("radius-max", "path"):
        assert (rows_of[part]["gap"] <= report.CERTIFIED).all()
    # Cross-validation ends with a fit on all rows.
    assert rows_of["path"].groupby("task")["fits"].unique().to_dict() == {"cross-validation": [51], "path": [20]}
    assert (rows_of["path"]["difference"] <= 1e-6).all()
    raw = rows_of["window"].query("metric == 'raw'").merge(rows_of["radius-max"], on=["data", "kappa"])
    np.testing.assert_allclose(raw["radius"], raw["share"] * raw["largest"], rtol=1e-9)
    assert set(raw["kappa"]) == {"1", "m"} and set(raw["share"]) == {0.01, 0.5}
    assert (tmp_path / "gap.pdf").read_bytes().endswith(b"%%EOF\n")
    image = plt.imread(tmp_path / "gap.png")[:, :, :3]
    panels = image[len(image) // 4 :]  # without the legend
    colours = dict(zip(report.LABELS, sns.color_palette("colorblind"), strict=False))
    for solver in set(read(tmp_path / "algorithm1.csv")[1]["solver"]):
        assert (np.abs(panels - colours[solver]) < 0.01).all(axis=-1).sum() > 100, f"no curve of {solver}"
    # A second run has nothing left to do, and says the same.
    assert not [line for line in quick(tmp_path).splitlines() if line.startswith("  ")]
    assert (tmp_path / "README.md").read_text() == text


def test_a_store_goes_on_only_on_the_same_machine(tmp_path):
    store = Store(tmp_path, "all-violated")
    setting = {"data": "a", "kappa": "1", "radius": 0.1}
    assert not store.has(setting)
    first = unmeasured("tailored", 1e-6, "") | {"seconds": np.float64(1.0)}
    store.add(setting, [first, unmeasured("all-violated", 1e-6, "error") | {"seconds": 0.1 + 0.2}])
    store = Store(tmp_path, "all-violated")
    assert store.has(setting) and not store.has(setting | {"kappa": "m"})
    machine, rows = read(tmp_path / "all-violated.csv")
    assert rows["seconds"].tolist() == [1.0, 0.1 + 0.2] and rows["note"].tolist() == ["", "error"]
    assert rows["upper"].isna().all() and "cores" in machine
    path = tmp_path / "all-violated.csv"
    path.write_text(path.read_text().replace("cores", "other cores", 1))
    with pytest.raises(SystemExit, match="move the file away"):
        Store(tmp_path, "all-violated")


def test_the_report_is_that_of_the_results(tmp_path):
    results = ROOT / "benchmarks" / "results"
    for path in results.glob("*.csv"):
        shutil.copy(path, tmp_path)
    written = report.write(tmp_path).read_text().replace("](gap.png)", "](results/gap.png)")
    assert written == (ROOT / "benchmarks" / "README.md").read_text()


@pytest.mark.parametrize("kappa", ["1", "m"])
@pytest.mark.parametrize("name", ["hayes-roth", "contraceptive"])
def test_the_problem_is_the_one_that_the_experiments_solve(name, kappa):
    data, protocol = load_dataset(name), PROTOCOLS["code"]
    train, _ = split_rows(len(data.y), name, 0, 0)
    X = prepare_reference(prepare_numbers(data.X, train), protocol.coding)
    rows = train[:200]
    model = replace(METHODS[f"DRO_kappa_{kappa}"].formulation(protocol), any_code=False)  # benchmarks are on levels
    y = np.asarray(data.y, dtype=float)
    encoding, few, _ = model.fit(X.iloc[rows], y[rows], np.ones(len(rows)))
    b = Solving(tol=1e-3).solve(at_point(few, 0.01, 0.0)).b
    problem = uci(name, kappa, 0.01)
    whole = at_point(model.pose(encoding, X.iloc[train], y[train], np.ones(len(train))).problem, 0.01, 0.0)
    assert problem.n_samples == len(train)
    assert objective(problem, b) == pytest.approx(objective(whole, b), abs=1e-12)
    assert objective(problem, b + 1000.0) == math.inf


def test_the_synthetic_data_are_binary_with_noisy_labels():
    problem = synthetic(4000, 6, "m", 0.1)
    assert problem.z.shape == (4000, 6) and set(np.unique(problem.z)) == {0, 1}
    assert set(problem.y) == {-1.0, 1.0}
    assert abs(problem.z.mean() - 0.5) < 0.02
    assert problem.metric.label_cost == 6 and problem.metric.scale == 1.0 and problem.radius == 0.1
    again = synthetic(4000, 6, "m", 0.1)
    assert (again.z == problem.z).all() and (again.y == problem.y).all()
    few = some_rows(problem, 5)
    assert few.n_samples == 10 and few.y.sum() == 0 and few.w.sum() == pytest.approx(1.0)


def test_solvers_agree_and_the_numbers_are_the_more_pessimistic_model():
    problem = synthetic(80, 4, "1", 0.02)
    rows = race(problem, [("all-violated", 1e-6), ("algorithm1", 1000), (OURS, 1e-6)], repeats=2)
    values = [row["upper"] for row in rows]
    assert max(values) - min(values) <= 1e-6
    assert max(row["lower"] for row in rows) >= min(values) - 1e-6
    (numbers,) = race(as_numbers(problem), [("all-violated", 1e-6)])
    assert numbers["upper"] >= max(values) - 1e-6


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "problem",
    [
        uci("hayes-roth", "1", 0.0),
        uci("contraceptive", "1", 0.0),
        logistic_problem(80, 2, (4, 3), kappa="1", radius=0.0),
        logistic_problem(80, 3, kappa="1", radius=0.0),
    ],
    ids=["hayes-roth", "contraceptive", "0/1 dummies", "numbers"],
)
def test_plain_logistic_regression_is_translated_into_the_problem_s_coding(problem, sparse):
    solver = Logistic(problem, sparse)
    solver.run(1e-4)
    f = solver.model.decision_function(solver.X)
    b = solver.result().b
    np.testing.assert_allclose(problem.decision(b), f, atol=1e-9)
    # scikit-learn has the smallest log-loss of all: its matrix is that of the problem.
    assert log_loss(-problem.y * f).mean() <= best_loss(problem) + 1e-4


def best_loss(problem: Problem) -> float:
    return Solving().solve(replace(problem, radius=0.0, coef_bound=np.inf)).upper


def test_logistic_rows_are_the_same_as_a_table():
    N, n, n_levels = 500, 2, (3, 40)
    problem = logistic_problem(N, n, n_levels, kappa="m", radius=0.1, norm="l2")
    assert problem.metric.label_cost == 2 and problem.metric.norm == "l2" and problem.radius == 0.1
    table, y = logistic_table(N, n, n_levels)
    formulation = Formulation()
    posed = formulation.pose(formulation.encode(table), table, y, np.ones(N), merge=False).problem
    scores = {f"v{v}": v for v in range(40)}
    codes = np.array([[scores[level] for level in table[name]] for name in ("z0", "z1")]).T
    assert (codes == problem.z).all() and (posed.x == problem.x).all() and (posed.y == problem.y).all()
    assert posed.n_levels == problem.n_levels == n_levels


def test_labels_of_logistic_rows_follow_the_features():
    x, z, y = logistic_rows(20_000, 2, (3, 2))
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    for codes, K in zip(z.T, (3, 2), strict=True):
        np.testing.assert_allclose(np.bincount(codes) / len(y), np.full(K, 1 / K), atol=0.02)
    # The best log-loss of a logistic model is the entropy of its labels, far below that of a coin.
    assert 0.3 < best_loss(logistic_problem(20_000, 2, (3, 2), kappa="1", radius=0.0)) < 0.66
    assert abs(y.mean()) < 0.9


@pytest.mark.parametrize(("long", "calls"), [(10.0, 3), (-1.0, 1)])
def test_what_takes_long_is_not_repeated(monkeypatch, long, calls):
    monkeypatch.setattr("benchmarks.objective.LONG", long)
    made = []
    (run,) = timed([lambda: made.append(1) or len(made)], repeats=3)
    assert run.seconds > 0 and run.note == "" and run.result == len(made) == calls


def test_ratios_are_to_scikit_learn_on_the_same_problem():
    ball = {"data": "a", "kappa": "m", "metric": "raw"}
    ours, plain = unmeasured(OURS, 1e-6, "") | {"rounds": 7.0, "lower": 0.5}, unmeasured("logistic", 1e-4, "")
    rows = pd.DataFrame(
        ball | {"share": share} | row | {"seconds": seconds, "upper": upper}
        for share, mine, its, upper in ((0.1, 1.0, 0.5, 0.5), (0.9, 4.0, 0.5, 0.6))
        for row, seconds in ((ours, mine), (plain, its))
    )
    text, table = report.window_section(rows)
    assert "Median ratio 5 over 2 settings; worst: 8 (a, kappa m, metric raw, share 0.9)" in text
    assert "Certified to 1e-6: 1 of 2; failed: 0" in text
    assert "| a | 0.5 | 2.5 | 5 | 8 (kappa m, metric raw, share 0.9) | 7 | 1/2 |" in table


def test_ratios_have_no_exponent():
    assert [report._ratio(value) for value in (0.123, 99.4, 99.6, 1234.5)] == ["0.12", "99", "100", "1,234"]
    assert [report._seconds(value) for value in (0.1234, 999.4, 999.6)] == ["0.123", "999", "1,000"]


def test_a_solver_that_fails_leaves_a_note(monkeypatch):
    class Broken(Logistic):
        def run(self, stop):
            if self.problem.n_samples > 60:  # not in the warm-up
                raise ValueError("no idea\nat all")

    monkeypatch.setitem(SOLVERS, "broken", Broken)
    broken, fine = race(synthetic(100, 3, "1", 0.01), [("broken", 1.0), ("logistic", 1e-4)], repeats=2)
    assert math.isnan(broken["seconds"]) and broken["note"] == "ValueError: no idea"
    assert fine["seconds"] > 0 and fine["note"] == ""


def test_rounds_are_extrapolated_on_a_geometric_sequence():
    bounds = tuple((0.5, 0.5 + 0.8**t) for t in range(1, 21))
    assert expected_rounds(bounds) == pytest.approx(math.log(1e-3) / math.log(0.8))
    assert math.isnan(expected_rounds(bounds[:9]))
    assert math.isnan(expected_rounds(((0.0, 0.5),) * 20))
    runs = pd.DataFrame({"rounds": [8, 16], "seconds": [1.0, 2.0], "expected_rounds": [20.0, 24.0]})
    assert report.extrapolated_seconds(runs) == pytest.approx(3.0)
    assert math.isnan(report.extrapolated_seconds(runs[:1]))


def test_the_fingerprint_sees_a_digit_that_moves(tmp_path, monkeypatch, capsys):
    before = tmp_path / "before.csv"
    monkeypatch.setattr("sys.argv", ["fingerprint", "--datasets", "monks-3", "--output", str(before)])
    fingerprint.main()
    monkeypatch.setattr("sys.argv", ["fingerprint", "--datasets", "monks-3", "--against", str(before)])
    fingerprint.main()
    assert "no digit has moved" in capsys.readouterr().out
    shifted = Solution.__init__

    def shift(self, b, *args, **kwargs):
        shifted(self, np.nextafter(b, np.inf), *args, **kwargs)

    monkeypatch.setattr(Solution, "__init__", shift)
    with pytest.raises(SystemExit):
        fingerprint.main()
    assert "16 of 16 differ" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", encoding.DTYPES)
def test_the_encoding_that_is_timed_is_that_of_a_fit(dtype):
    text, y = encoding.text_table("eight features", 300)
    X, categories = encoding.with_dtype(text, dtype)
    model = WassersteinLogisticRegression()
    problem = encoding.encode(model, X, y).problem
    merged = merge_duplicates(problem.x, problem.z, problem.y, problem.w)
    fitted = model._posed(model._formulation(), X, y, None).problem
    for ours, of_fit in zip(merged, (fitted.x, fitted.z, fitted.y, fitted.w), strict=True):
        np.testing.assert_allclose(ours, of_fit, rtol=1e-12)
    rows = pd.DataFrame(encoding.rows_of("eight features", dtype, 300))
    assert rows["step"].tolist() == ["fit", "merge", "decision_function", "predict", "predict_proba"]
    assert (rows["seconds"] > 0).all() and (rows["numbers"] == 8).all()
    assert (rows["levels"] == OneHotEncoder().fit_transform(categories).shape[1]).all()


def test_no_kernel_is_compiled_for_numbers_and_for_categories(tmp_path):
    calls = "[[fit(**options) for options in KINDS.values()], compiled_again()][1:]"
    (again,) = compilation.in_process(calls, str(tmp_path))
    assert not ast.literal_eval(again)


def test_seconds_of_compiling_are_measured():
    row = compilation.row_of("numbers")
    assert row["first"] > 10 * row["next process"] > 0


def test_ways_to_choose_are_measured_resumed_and_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(choosing, "SHARES", np.array([1e-2, 1.0]))
    monkeypatch.setattr(choosing, "GRIDS", {choosing.GRID: slice(0, None)})
    path = tmp_path / "choosing.csv"
    choosing.main(["--datasets", "iris", "--folds", "1", "--output", str(path)])
    first, out = path.read_text(), capsys.readouterr().out
    assert out.startswith("iris: ") and "| iris | 150 | 4 | 0 |" in out
    choosing.main(["--datasets", "iris", "--folds", "1", "--output", str(path)])
    assert path.read_text() == first and not capsys.readouterr().out.startswith("iris: ")
    rows = pd.read_csv(path, dtype={"grid": str, "label_cost": str})
    part = next(choosing.parts(*choosing.table("iris"), standardise=True))
    model = WassersteinLogisticRegression(0.01, np.inf).fit(part.X, part.y)
    of_positive = model.predict_proba(part.X_test)[:, 1]
    loss = -np.log(np.where(part.y_test == 1, of_positive, 1 - of_positive)).mean()
    found = choosing.means(rows, choosing.one_radius(np.inf, "0.01"))
    assert found.loc["iris", "log_loss"] == pytest.approx(loss, rel=1e-5)


def test_the_tables_of_the_documentation_are_those_of_the_results():
    rows = pd.read_csv(choosing.RESULTS, dtype={"grid": str, "label_cost": str})
    assert choosing.PAGE.read_text(encoding="utf-8").endswith(f"{choosing.MARK}\n\n{choosing.report(rows)}\n")
    assert len(set(rows["data"])) >= 10
