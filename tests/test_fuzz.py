"""The fuzz: its judge against other computations, lies that it must catch, the command, and a fixed run of it."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from benchmarks import fuzz
from benchmarks.fuzz_instances import Instance, make_instance
from benchmarks.fuzz_judge import Judge, Real, _least
from tests.instances import worst_case_by_hand
from wdrlr import SeparableDataWarning, WassersteinLogisticRegression
from wdrlr.estimators.formulation import Formulation

PROBLEM = {
    "label_cost": 1.0,
    "p": 1.0,
    "norm": "l1",
    "metric_scale": None,
    "feature_costs": None,
    "l1_penalty": 0.0,
    "penalize_intercept": False,
    "coding": "onehot",
    "coef_bound": None,
    "fit_intercept": True,
}
FIT = {"tol": 1e-6, "max_iter": 1000, "solver": "tailored", "solver_options": None}
X = np.array([[0.0], [1.0], [1.0], [2.0], [3.0], [2.0]])
Z = np.array([[0, 1], [1, 1], [0, 0], [1, 2], [1, 0], [0, 2]])
Y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0, -1.0])


def instance(
    x=X, z=Z, radius=0.05, route="fit", start_unit=1.0, w=None, fit=FIT, n_levels=(2, 3), any_code=False, **problem
):
    """The table above as an instance; ``feature_costs`` must be numbers by name, or matrices over all levels."""
    given = problem.get("feature_costs") or {}
    columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
    columns |= {f"z{j}": pd.Categorical(z[:, j], categories=range(n_levels[j])) for j in range(z.shape[1])}
    return Instance(
        seed=-1,
        x=x,
        z=z,
        y=Y,
        w=w,
        n_levels=n_levels,
        number_costs=np.array([given.get(f"x{j}", 1.0) for j in range(x.shape[1])]),
        level_costs=tuple(_matrix(given.get(f"z{j}", 1.0), K) for j, K in enumerate(n_levels)),
        any_code=any_code,
        table=pd.DataFrame(columns),
        target=Y,
        size=1.0,
        size_class="",
        problem=PROBLEM | problem,
        fit=fit,
        radius=radius,
        other_radius=0.2,
        route=route,
        start_unit=start_unit,
        check_with=None,
    )


def _matrix(cost, K):
    return cost.to_numpy() if isinstance(cost, pd.DataFrame) else np.where(np.eye(K) > 0, 0.0, cost)


# The judge


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(4))
def test_the_judge_agrees_with_nature_s_linear_program(seed, norm):
    rng = np.random.default_rng(seed)
    one = instance(
        x=rng.normal(size=(6, 2)),
        w=rng.random(6) + 0.1,
        norm=norm,
        label_cost=[0.3, np.inf, "n_categorical", 2.0][seed],
        metric_scale="unit" if seed in (0, 2) else None,
        p=[1.0, 1.0, 2.0, 0.5][seed],
        coding=["onehot", "pm1"][seed % 2],
    )
    assert_judged_right(one, rng)


MATRIX = pd.DataFrame([[0.0, 0.2, np.inf, 3.0], [2.0, 0.0, 0.0, 1e-3], [0.5, 1.0, 0.0, 7.0], [0.1, 0.1, 0.1, 0.0]])
COSTS = [
    {},
    {"x0": 0.2, "x1": 3.0, "z0": 2.0, "z1": 0.25},
    {"x0": np.inf, "z1": np.inf},
    {"x0": np.inf, "x1": np.inf, "z0": np.inf, "z1": np.inf},
]


@pytest.mark.parametrize(("label_cost", "metric_scale"), [(0.3, None), (0.3, "unit"), (np.inf, None)])
@pytest.mark.parametrize(
    ("costs", "any_code"),
    [*product(COSTS, [False, True]), ({"x1": np.inf, "z0": 100.0, "z1": MATRIX}, False)],
)
def test_the_judge_knows_costs_and_codes(costs, any_code, label_cost, metric_scale):
    rng = np.random.default_rng(len(costs))
    about = {"coding": "pm1", "feature_costs": costs, "metric_scale": metric_scale, "label_cost": label_cost}
    x, w = rng.normal(size=(6, 2)), rng.random(6) + 0.1
    assert_judged_right(instance(x=x, w=w, n_levels=(2, 4), any_code=any_code, **about), rng)


def assert_judged_right(one, rng):
    posed = Formulation(one.radius, any_code=one.any_code, **one.problem)
    _, problem, _ = posed.fit(one.table, one.target.astype(float), one.w)
    b = rng.normal(size=problem.n_coefficients)
    value = Judge(one).worst_case_loss(b, one.radius, one.w)
    assert value.F == pytest.approx(worst_case_by_hand(problem, b), abs=1e-7)
    assert value.allowance < 1e-13
    at_0 = Judge(one).worst_case_loss(b, 0.0, one.w)
    losses = np.logaddexp(0.0, -problem.y * problem.decision(b))
    assert at_0.F == pytest.approx(problem.w @ losses, abs=1e-12)


@pytest.mark.parametrize(("norm", "dual"), [("l1", 2.0), ("l2", 5**0.5), ("linf", 3.0)])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_judge_knows_the_closed_form_without_categories(norm, dual, size):
    """F is the mean log-loss plus radius times the dual norm, in numbers of any size; here in 50 digits."""
    x = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, -1.0], [2.0, 2.0], [4.0, 0.0], [-1.0, 3.0]]) * size
    one = instance(x=x, z=np.zeros((6, 0), int), n_levels=(), norm=norm, label_cost=np.inf, l1_penalty=0.25)
    b = np.array([0.5, 1.0, -2.0]) / np.array([1.0, size, size])
    value = Judge(one).objective(b, 0.01 * size)
    with localcontext() as context:
        context.prec = 50
        exact = [Decimal(v) for v in b.tolist()]
        scores = [exact[0] + sum(Decimal(v) * c for v, c in zip(row, exact[1:], strict=True)) for row in x.tolist()]
        losses = [(1 + (-Decimal(label) * f).exp()).ln() for label, f in zip(Y.tolist(), scores, strict=True)]
        expected = float(sum(losses) / 6 + Decimal("0.25") * (abs(exact[1]) + abs(exact[2]))) + 0.01 * dual
    assert value.F == pytest.approx(expected, rel=1e-15, abs=value.allowance / 10)
    assert value.allowance < 1e-13 * max(1.0, expected)


def test_the_judge_shares_no_code_with_what_it_judges():
    code = "import sys, benchmarks.fuzz_judge; print([name for name in sys.modules if name.startswith('wdrlr')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_judge_finds_the_least_value_of_many_lines():
    """Against every meeting point of two lines of a row."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        losses, costs = rng.random((5, 9)).astype(Real), (10 ** rng.uniform(-4, 4, (5, 9))).astype(Real)
        costs[:, :2], least, radius, w = 0, rng.choice([0.0, 0.1]), 10 ** rng.uniform(-4, 4), rng.random(5).astype(Real)
        gain, dearer = (part[:, None, :] - part[:, :, None] for part in (losses, costs))
        lams = [least, *(gain[dearer > 0] / dearer[dearer > 0])]
        values = [lam * radius + w @ (losses - lam * costs).max(axis=1) for lam in lams if lam >= least]
        assert float(_least(losses, costs, w, radius, least)) == pytest.approx(float(min(values)), rel=1e-15)


def test_rounding_is_allowed_for_where_columns_are_far_from_0():
    far = instance(x=X + 1e9)
    b = np.array([-1e9, 1.0, 0.0, 0.0, 0.0])
    near = Judge(instance()).objective(np.array([0.0, *b[1:]]), 0.05)
    value = Judge(far).objective(b, 0.05)
    assert value.F == pytest.approx(near.F, abs=value.allowance)
    assert 1e-8 < value.allowance < 1e-5 and near.allowance < 1e-13


def test_an_outlier_s_rounding_is_no_wrong_objective():
    """The other rows' f is summed as its difference from the outlier's, whose weight is 4e-11."""
    assert {one.kind for one in fuzz.examine(make_instance(991000000028741))} == {"certified"}


def test_instances_depend_on_their_seed_only_and_cover_the_interface():
    some = [make_instance(seed) for seed in range(400)]
    for one, again in zip(some[:20], map(make_instance, range(20)), strict=True):
        assert repr(one.problem) == repr(again.problem) and one.fit == again.fit and one.radius == again.radius
        pd.testing.assert_frame_equal(pd.DataFrame(one.table), pd.DataFrame(again.table))
    for name, values in {
        "norm": {"l1", "l2", "linf"},
        "coding": {"onehot", "pm1"},
        "p": {0.5, 1.0, 2.0, 3.0},
        "metric_scale": {None, "unit"},
        "fit_intercept": {True, False},
        "penalize_intercept": {True, False},
    }.items():
        assert {one.problem[name] for one in some} == values
    assert {"n_categorical", np.inf} <= {one.problem["label_cost"] for one in some}
    assert {one.fit["solver"] for one in some} == {"tailored", "auto", "column-constraint", "monolithic"}
    assert {one.x.shape[1] for one in some} == {0, 1, 2, 3} and {one.z.shape[1] for one in some} == {0, 1, 2, 3, 4}
    assert {one.route for one in some} == {"fit", "warm", "path"}
    assert {one.adversary for one in some} == {
        f"{costs} costs, {support}" for costs in ("the paper's", "own") for support in ("levels", "any code")
    }
    costs = [costs for one in some for costs in one.level_costs if len(costs) > 1]
    assert any(np.isinf(one.number_costs).any() for one in some)
    assert any((given != given.T).any() for given in costs) and any(np.isinf(given).any() for given in costs)
    assert any((given[~np.eye(len(given), dtype=bool)] == 0).any() for given in costs)
    said = [value for one in some for value in (one.problem["feature_costs"] or {}).values()]
    assert {type(value) for value in said} == {float, np.float64, tuple, pd.DataFrame}
    assert 0.0 in {one.radius for one in some} and any(isinstance(one.radius, tuple) for one in some)
    assert min(one.size for one in some) < 1e-8 and max(one.size for one in some) > 1e8
    words = {one.size_class.partition(", ")[2] for one in some}
    assert words == {f"{word} numbers" for word in ("no", "tiny", "plain", "huge")} | {"mixed sizes", "far from 0"}


# Lies


class Honest(WassersteinLogisticRegression):
    """The estimator, until a lie is told over it."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.lie(X, y, sample_weight)
        return self

    def lie(self, X, y, sample_weight):
        pass

    def certify(self, X, y, sample_weight, slack=1e-9):
        """Claim that the present coefficients are optimal within the slack, their objective being right."""
        self.objective_ = self.worst_case_loss(X, y, sample_weight)
        self.lower_bound_ = self.objective_ - slack
        self.gap_ = self.objective_ - self.lower_bound_


class LowObjective(Honest):
    def lie(self, *data):
        self.objective_ -= 1e-12
        self.gap_ = self.objective_ - self.lower_bound_


class OfThePaper(Honest):
    """Its adversary pays 1 for every change."""

    def _formulation(self):
        return replace(super()._formulation(), feature_costs=None)


class OfLevels(Honest):
    """Its adversary keeps to the levels."""

    def _formulation(self):
        return replace(super()._formulation(), any_code=False)


class HighLowerBound(Honest):
    def lie(self, *data):
        self.coef_ = 0.8 * self.coef_
        self.certify(*data)


class AboveItsObjective(Honest):
    def lie(self, *data):
        self.lower_bound_ = self.objective_ + 1e-9
        self.gap_ = self.objective_ - self.lower_bound_


class AboveLog2(Honest):
    def lie(self, *data):
        self.coef_, self.intercept_ = 0.0 * self.coef_, np.array([self.tol])
        self.certify(*data, slack=0.9 * self.tol)


class NotANumber(Honest):
    def lie(self, *data):
        self.coef_ = np.full_like(self.coef_, np.nan)


class NoLowerBound(Honest):
    def lie(self, *data):
        self.lower_bound_ = self.gap_ = np.nan


class EndlessObjective(Honest):
    def lie(self, *data):
        self.objective_ = self.gap_ = np.inf


class ClippedGap(Honest):
    def lie(self, *data):
        self.lower_bound_ -= 1e-3
        self.gap_ = min(self.objective_ - self.lower_bound_, self.tol)


class Silent(Honest):
    def lie(self, *data):
        self.lower_bound_ = 0.0
        self.gap_ = self.objective_


class OfAnotherWarning(Silent):
    def fit(self, *data, **more):
        warnings.warn("separable", SeparableDataWarning, stacklevel=2)
        return super().fit(*data, **more)


class Warned(Silent):
    def fit(self, *data, **more):
        warnings.warn("gap", ConvergenceWarning, stacklevel=2)
        return super().fit(*data, **more)


class Contradiction(Warned):
    def lie(self, *data):
        self.lower_bound_, self.gap_ = -np.inf, np.inf


class Outside(Honest):
    def lie(self, *data):
        self.coef_ = np.sign(self.coef_) * np.nextafter(self.coef_bound or np.inf, np.inf)
        self.certify(*data, slack=1.0)


class Broken(Honest):
    def lie(self, *data):
        raise ZeroDivisionError("division by zero")


class Refusing(Honest):
    def lie(self, *data):
        raise ValueError("no")


class Overflowing(Honest):
    def fit(self, *data, **more):
        warnings.warn("overflow", RuntimeWarning, stacklevel=2)
        return super().fit(*data, **more)


@pytest.mark.parametrize(
    ("estimator", "kind", "words", "problem"),
    [
        (Honest, "certified", "", {}),
        (Honest, "certified", "", {"feature_costs": {"x0": 0.5, "z0": np.inf, "z1": 2.0}, "coding": "pm1"}),
        (Honest, "certified", "", {"any_code": True, "coding": "pm1"}),
        (LowObjective, "wrong", "the objective is off by -1.0e-12", {}),
        (LowObjective, "wrong", "the objective is off by -1.0e-12", {"any_code": True, "coding": "pm1"}),
        (OfThePaper, "wrong", "the objective is off by", {"feature_costs": {"z1": 0.1}}),
        (OfLevels, "wrong", "the objective is off by", {"any_code": True, "coding": "pm1", "n_levels": (2, 4)}),
        (HighLowerBound, "wrong", "the lower bound is .* above an attained value", {}),
        (AboveItsObjective, "wrong", "the lower bound is above the objective by 1.0e-09", {}),
        (AboveLog2, "wrong", "certified, but above log 2", {"radius": 10.0}),
        (NotANumber, "nan", "not finite", {}),
        (NoLowerBound, "nan", "not finite", {}),
        (EndlessObjective, "nan", "not finite", {}),
        (ClippedGap, "wrong", "the gap is 1.000e-0[69], objective less lower bound 1.00[01]e-03", {}),
        (Silent, "silent", "no warning", {}),
        (OfAnotherWarning, "silent", "no warning", {}),
        (Warned, "uncertified", "gap", {}),
        (Contradiction, "contradiction", "above the objective", {}),
        (Outside, "wrong", "outside their bounds", {"coef_bound": 0.1}),
        (Broken, "exception", "ZeroDivisionError: division by zero", {}),
        (Refusing, "refused", "ValueError: no", {}),
        (Overflowing, "exception", "RuntimeWarning: overflow", {}),
    ],
)
def test_a_lie_is_caught(estimator, kind, words, problem):
    made = fuzz.examine(instance(**problem), estimator)
    fits = [one for one in made if one.call in ("fit", "refit")]
    assert {one.kind for one in fits} == {kind}
    assert all(re.search(words, one.detail) for one in fits), [one.detail for one in fits]


def test_a_warm_start_is_judged_for_itself():
    class Stale(Honest):
        """Keeps the coefficients of the last fit, and what was said about them."""

        def fit(self, *data, **more):
            return self if self.warm_start and hasattr(self, "solution_") else super().fit(*data, **more)

    kinds = {one.call: one.kind for one in fuzz.examine(instance(route="warm"), Stale)}
    assert kinds.pop("warm") == "wrong" and set(kinds.values()) == {"certified"}
    assert {one.kind for one in fuzz.examine(instance(route="warm"))} == {"certified"}


def test_a_warm_start_can_come_from_numbers_in_another_unit():
    made = fuzz.examine(instance(route="warm", start_unit=1e3))
    assert [(one.call, one.kind) for one in made if one.call in ("start", "warm")] == [("warm", "certified")]


@pytest.mark.parametrize(
    ("about", "posed_anew"),
    [
        ({"x": X + 1e5}, True),
        ({"x": X + 1e5, "l1_penalty": 0.01}, True),
        ({"x": X + 1e5, "l1_penalty": 0.01, "penalize_intercept": True}, False),
        ({"x": X + 1e5, "coef_bound": 1.0}, False),
        ({"x": X + 1e5, "fit_intercept": False}, False),
        ({"x": X * 1e5, "radius": 5e3}, False),
        ({"x": X * 1e5, "radius": 5e3, "z": np.zeros((6, 0), int), "n_levels": ()}, True),
        ({"x": X * 1e5, "radius": 5e3, "z": np.zeros((6, 0), int), "n_levels": (), "l1_penalty": 0.01}, False),
    ],
)
def test_a_problem_posed_in_other_units_is_the_same(about, posed_anew):
    made = fuzz.examine(instance(**about))
    assert {one.kind for one in made} <= {"certified", "uncertified"}
    values = [one.F for one in made if one.call in ("refit", "other units")]
    assert len(values) == 1 + posed_anew
    assert max(values) - min(values) < 1e-6


def test_paths_worst_case_losses_and_largest_radii_are_judged(monkeypatch):
    one = instance(route="path", radius=(1.01,))
    assert {(made.call, made.kind) for made in fuzz.examine(one)} == {
        (call, "certified") for call in ("radius_max", "fit", "worst_case_loss", "refit", "path")
    }
    fit_path, radius_max = fuzz.fit_path, fuzz.radius_max
    monkeypatch.setattr(fuzz, "fit_path", lambda *a, **b: fit_path(*a, **b).assign(objective=0.1))
    monkeypatch.setattr(fuzz, "radius_max", lambda *a, **b: 0.5 * radius_max(*a, **b))
    monkeypatch.setattr(Honest, "worst_case_loss", lambda *a: 0.5)
    kinds = {(made.call, made.kind) for made in fuzz.examine(one, Honest)}
    assert kinds == {("fit", "certified"), ("refit", "certified")} | {
        (call, "wrong") for call in ("path", "worst_case_loss", "radius_max")
    }


def test_a_call_without_end_is_given_up(monkeypatch):
    def without_end(*data, **more):
        while True:
            pass

    monkeypatch.setattr(fuzz, "SECONDS", 0.05)
    outcome = fuzz.Outcome("fit", "tailored")
    assert fuzz._called(outcome, without_end) is None
    assert (outcome.kind, outcome.detail) == ("exception", "_TooLong: not finished in 0.05 s")


# The command


def test_the_command_reports_and_its_exit_code_tells(tmp_path, monkeypatch, capsys):
    file = tmp_path / "fuzz.csv"
    rows = fuzz.rows_of(replace(instance(), seed=77), fuzz.examine(instance()))
    monkeypatch.setattr(fuzz, "_rows", lambda seed: rows)
    command = ["--count", "3", "--seed", "5", "--output", str(file)]
    assert fuzz.main(command) == 0
    assert re.search(r"seed 5\n(.*\n)*.*6 fits\.", capsys.readouterr().out)
    rows[0]["kind"] = "wrong"
    assert fuzz.main(command) == 1
    said = capsys.readouterr().out
    assert said.count("wrong: fit, tailored, p 1, tol 1e-06") == said.count("benchmarks.fuzz --instance 77\n") == 3
    assert pd.read_csv(file)["kind"].value_counts().to_dict() == {"certified": 3 * (2 * len(rows) - 1), "wrong": 3}


def test_processes_share_the_work():
    command = [sys.executable, "-m", "benchmarks.fuzz", "--count", "6", "--seed", "0", "--jobs", "2"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ fits\.\n$", done.stdout)


def test_an_instance_is_shown_in_full(capsys):
    assert fuzz.main(["--instance", "22"]) in (0, 1)
    said = capsys.readouterr().out
    assert f"label_cost = {make_instance(22).problem['label_cost']!r}" in said and "adversary: " in said
    assert re.search(r"fit, tailored, radius .*\n    b .*\n    objective .*", said)


def test_what_takes_far_longer_than_its_like_is_slow():
    rows = pd.DataFrame(
        {"call": "fit", "solver": "tailored", "N": 5, "kind": "certified", "seconds": [1.0] * 9 + [200.0]}
    )
    assert fuzz.with_slow(rows)["kind"].tolist() == ["certified"] * 9 + ["slow"]
    assert "slow" not in fuzz.with_slow(rows.assign(N=[5] * 9 + [50]))["kind"].tolist()


def test_seeds_of_a_run():
    assert list(fuzz.instance_seeds(3, count=2)) == [3_000_000, 3_000_001]
    assert list(fuzz.instance_seeds(3, minutes=0.0)) == []


# The fuzz itself


@pytest.mark.parametrize("seed", range(4))
def test_no_instance_fails(seed):
    rows = fuzz.run(fuzz.instance_seeds(seed, count=40))
    failed = rows[rows["kind"].isin(fuzz.FAILURES)]
    assert failed.empty, "\n".join(map(fuzz._line, failed.to_dict("records")))
    assert (rows["kind"] == "certified").mean() > 0.8
