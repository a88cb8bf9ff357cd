"""Random problems through the public interface, each fit checked: `python -m benchmarks.fuzz --minutes 60`.

Only public names of the package are used, but for ``any_code``, which has none. What a fit reports is compared with the
objective as ``fuzz_judge`` enumerates it.

Each instance is made from one integer; `python -m benchmarks.fuzz --instance 123` shows it in full. Kinds of outcome:

    wrong          the objective is not F at the coefficients; or a certified lower bound is above F at other feasible
                   coefficients; or gap, objective and lower bound are inconsistent; or certified and above log 2;
                   or infeasible coefficients; or a worst-case loss or largest radius that F contradicts
    exception      any error other than a refusal, a RuntimeWarning, or a call that does not end within a minute
    nan            coefficients or bounds that are not numbers
    silent         a gap above the tolerance without a ConvergenceWarning
    contradiction  a lower bound above the objective, which the library reports by an infinite gap and a warning
    uncertified    a gap above the tolerance, with the warning
    stopped        the same, but with a small max_iter
    unsolved       a conic solver returned no point (ConicSolverError, documented)
    refused        a ValueError
    slow           certified, but in more than 100 times the median seconds of its solver and number of rows
    certified      a gap within the tolerance, and no other fault

The command fails (exit code 1) if any of the first five occurs.
"""

import argparse
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.fuzz_instances import Instance, make_instance
from benchmarks.fuzz_judge import Judge, Real, Value
from wdrlr import WassersteinLogisticRegression, fit_path, radius_max

FAILURES = ("wrong", "exception", "nan", "silent", "contradiction")
SECONDS = 60.0
"""Calls that take longer are abandoned."""
SLOW = 100.0
"""A call is slow at this many times the median seconds of the same solver and number of rows."""
FINE = 1e-9
"""The tolerance of the fit whose coefficients test the lower bounds of the others."""
LARGEST_SCORE = 1e3
"""At radius 0 without a bound, a lower bound holds for coefficients of limited size; larger ones prove nothing."""


# The fits


@dataclass(eq=False)
class Outcome:
    """The result of one call, or its failure, and the verdict on it.

    Attributes
    ----------
    call : str
        "fit", "refit", "other units", "other solver", "start" and "warm" (of a warm start), "path", "radius_max",
        "worst_case_loss".
    b : ndarray of shape (1 + n + k,), or None
        The coefficients; None if the call returned none.
    value : float
        What ``radius_max`` or ``worst_case_loss`` returned.
    warned : bool
        Whether there was a ConvergenceWarning (other than one for separable data).
    kind, detail : str
        See the module's docstring.
    """

    call: str
    solver: str
    tol: float = np.nan
    radius: float = np.nan
    b: np.ndarray | None = None
    objective: float = np.nan
    lower: float = np.nan
    gap: float = np.nan
    value: float = np.nan
    warned: bool = False
    seconds: float = np.nan
    F: float = np.nan
    allowance: float = np.nan
    kind: str = ""
    detail: str = ""


class _TooLong(Exception):
    """A call was abandoned."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: Any) -> None:
        raise _TooLong(f"not finished in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _called(outcome: Outcome, work: Callable[[], Any]) -> Any:
    """What the work returns, None if it fails; warnings, seconds and errors are noted in the outcome (in place)."""
    result = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        try:
            with _time_limit(SECONDS):
                result = work()
        except ValueError as error:
            outcome.kind, outcome.detail = "refused", _in_short(error)
        except Exception as error:  # any error is a finding
            unsolved = type(error).__name__ in ("ConicSolverError", "OutOfTime")
            outcome.kind, outcome.detail = "unsolved" if unsolved else "exception", _in_short(error)
        outcome.seconds = perf_counter() - start
    outcome.warned = any(warning.category is ConvergenceWarning for warning in caught)
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning) and not outcome.kind:
            outcome.kind, outcome.detail = "exception", f"RuntimeWarning: {warning.message}"
    return result


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:300]


def _fitted(outcome: Outcome, model: Any, instance: Instance) -> bool:
    """Fit a model, note the result in the outcome (in place), and return whether there are coefficients."""
    if _called(outcome, lambda: model.fit(instance.table, instance.target, sample_weight=instance.w)) is None:
        return False
    outcome.b = np.concatenate([model.intercept_, model.coef_[0]])
    outcome.objective, outcome.lower, outcome.gap = model.objective_, model.lower_bound_, model.gap_
    return True


def with_numbers(instance: Instance, x: np.ndarray) -> Instance:
    """The instance with other numbers, of shape (N, n)."""
    if not isinstance(instance.table, pd.DataFrame):
        return replace(instance, x=x, table=x)
    return replace(instance, x=x, table=instance.table.assign(**{f"x{j}": x[:, j] for j in range(x.shape[1])}))


def _in_other_units(instance: Instance, radius: float, estimator: type) -> list[Outcome]:
    """The fit of the same problem with its numbers near 0 and of size 1, if they can be brought there.

    Columns can be centred if the intercept is neither penalised nor bounded, and the unit of length can be changed if
    there are no categories, penalties or bounds. The coefficients are converted to the instance's units.
    """
    x, problem = instance.x, instance.problem
    if problem["coef_bound"] is not None or not x.size:
        return []
    center, unit = np.zeros(x.shape[1]), 1.0
    if problem["fit_intercept"] and not (problem["penalize_intercept"] and problem["l1_penalty"]):
        center = x[0]
    spread = np.abs(x - center).max()
    if spread > 0 and not (instance.z.shape[1] or problem["l1_penalty"] or problem["metric_scale"]):
        unit = spread
        problem = problem | {"label_cost": problem["label_cost"] / unit}
    if 0.01 < unit < 100 and np.abs(center).max() < 100 * spread:
        return []
    posed = with_numbers(instance, (x - center) / unit)
    outcome = Outcome("other units", instance.fit["solver"], tol=FINE, radius=radius)
    model = estimator(radius=radius / unit, **problem, **instance.fit | {"tol": FINE, "max_iter": 1000})
    if _fitted(outcome, model, posed):
        assert outcome.b is not None
        slopes = slice(1, 1 + x.shape[1])
        outcome.b[slopes] /= unit
        outcome.b[0] -= center @ outcome.b[slopes]
    return [outcome]


@cache
def _compile(solver: str) -> None:
    """Trigger imports and compilation, so that they do not count in the seconds of a fit."""
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "z": pd.Categorical(list("abcde"))})
    for about in ({"l1_penalty": 0.01, "norm": "l2"}, {"coef_bound": 1.0, "label_cost": np.inf}, {"norm": "linf"}):
        WassersteinLogisticRegression(solver=solver, **{"radius": 0.03, "tol": 1e-4, "coding": "pm1"} | about).fit(
            table, [0, 1, 0, 1, 1]
        )


def outcomes(instance: Instance, estimator: type = WassersteinLogisticRegression) -> list[Outcome]:
    """Make the calls of an instance; only those that fail have a verdict yet."""
    made: list[Outcome] = []
    solver = instance.fit["solver"]
    tol, problem = instance.fit["tol"], instance.problem

    def new(call: str, **about: Any) -> Outcome:
        made.append(Outcome(call, **({"solver": solver, "tol": tol} | about)))
        return made[-1]

    radii = []
    for radius in (instance.radius, instance.other_radius):
        if isinstance(radius, tuple):
            outcome = new("radius_max")
            found = _called(
                outcome, lambda: radius_max(instance.table, instance.target, sample_weight=instance.w, **problem)
            )
            outcome.value = np.nan if found is None else found
            # If it fails, the fits use a radius in the unit of the table.
            radius = radius[0] * found if found is not None and np.isfinite(found) else 0.1 * instance.size
        radii.append(float(radius))
    radius, other = radii
    model = estimator(radius=radius, **problem, **instance.fit)
    _compile(solver if instance.tailored or problem["p"] == 1 else "column-constraint")
    if not _fitted(new("fit", radius=radius), model, instance) and made[-1].kind == "refused":
        return made
    if made[-1].b is not None:
        unweighted = new("worst_case_loss", radius=radius, b=made[-1].b)
        found = _called(unweighted, lambda: model.worst_case_loss(instance.table, instance.target))
        unweighted.value = np.nan if found is None else found
    if instance.tailored:
        fine = estimator(radius=radius, **problem, **{**instance.fit, "tol": FINE, "max_iter": 1000})
        _fitted(new("refit", radius=radius, tol=FINE), fine, instance)
        made.extend(_in_other_units(instance, radius, estimator))
    if instance.check_with:
        _compile(instance.check_with)
        options = {"solver": instance.check_with, "solver_options": {"time_limit": 10.0}, "tol": 1e-7}
        another = estimator(radius=radius, **problem, **options)
        _fitted(new("other solver", radius=radius, solver=instance.check_with, tol=1e-7), another, instance)
    if instance.route == "warm" and instance.tailored:
        model = estimator(radius=other, **problem, **instance.fit, warm_start=True)
        if instance.start_unit == 1:
            _fitted(new("start", radius=other), model, instance)
        else:
            _fitted(Outcome("start", solver), model, with_numbers(instance, instance.x * instance.start_unit))
        _fitted(new("warm", radius=radius), model.set_params(radius=radius), instance)
    if instance.route == "path":
        about = {name: value for name, value in problem.items() if name not in ("label_cost", "l1_penalty")}
        grid = ([radius, other], [problem["l1_penalty"]], [problem["label_cost"]])
        outcome = new("path", radius=radius)
        path = _called(
            outcome,
            lambda: fit_path(instance.table, instance.target, *grid, sample_weight=instance.w, **about, **instance.fit),
        )
        if path is not None:
            # One warning stands for the whole path.
            made.pop()
            numbers = path[["radius", "objective", "lower_bound", "gap"]].to_numpy(dtype=float).tolist()
            slopes = path.iloc[:, path.columns.get_loc("intercept") :].to_numpy(dtype=float)
            for (row_radius, objective, lower, gap), b in zip(numbers, slopes, strict=True):
                about_row = {"radius": row_radius, "objective": objective, "lower": lower, "gap": gap}
                made.append(replace(outcome, b=b, seconds=outcome.seconds / len(path), **about_row))
    return made


# The verdict


def examine(instance: Instance, estimator: type = WassersteinLogisticRegression) -> list[Outcome]:
    """Make the calls of an instance, and judge them."""
    try:
        with threadpool_limits(1), _support(instance.any_code):
            made = outcomes(instance, estimator)
            give_verdicts(instance, made)
    except Exception as error:
        error.add_note(f"The fuzz itself failed at --instance {instance.seed}.")
        raise
    return made


@contextmanager
def _support(any_code: bool) -> Iterator[None]:
    """Fits against the adversary of the paper's public code, if any code is allowed."""
    of_levels = WassersteinLogisticRegression._formulation

    def formulation(model: Any, **others: Any) -> Any:
        return of_levels(model, any_code=any_code, **others)

    with patch.object(WassersteinLogisticRegression, "_formulation", formulation):
        yield


def give_verdicts(instance: Instance, made: Sequence[Outcome]) -> None:
    """Set kind and detail of the outcomes that do not have them yet (in place)."""
    judge = Judge(instance)
    fits = [one for one in made if one.call not in ("radius_max", "worst_case_loss") and one.b is not None]
    known = [outcome.b for outcome in fits if np.isfinite(outcome.b).all() and judge.feasible(outcome.b)]
    rivals = {}
    for radius in dict.fromkeys(outcome.radius for outcome in fits):
        pool = [np.zeros(judge.n_coefficients), judge.best_constant(radius), *known]
        if radius == fits[0].radius:
            pool.append(_improved(judge, min(pool, key=lambda b: judge.objective(b, radius).F), radius))
        if (radius == 0 or judge.fixed) and instance.problem["coef_bound"] is None:
            pool = [b for b in pool if (np.abs(b) * judge.sizes).max() <= LARGEST_SCORE]
        rivals[radius] = [judge.objective(b, radius) for b in pool]
    for outcome in made:
        if outcome.kind:
            continue
        if outcome.call == "radius_max":
            outcome.kind, outcome.detail = _verdict_on_radius_max(judge, outcome.value, rivals)
        elif outcome.call == "worst_case_loss":
            outcome.kind, outcome.detail = _verdict_on_loss(judge, outcome)
        else:
            of_radius, max_iter = rivals[outcome.radius], instance.fit["max_iter"]
            outcome.kind, outcome.detail = _verdict_on_fit(judge, outcome, of_radius, max_iter)


def _verdict_on_fit(judge: Judge, outcome: Outcome, rivals: list[Value], max_iter: int) -> tuple[str, str]:
    """Kind and detail of a fit; F is noted in the outcome."""
    assert outcome.b is not None
    if not np.isfinite([*outcome.b, outcome.objective]).all() or np.isnan([outcome.lower, outcome.gap]).any():
        return "nan", "coefficients, objective or bounds are not finite"
    outcome.F, outcome.allowance = judge.objective(outcome.b, outcome.radius)
    certified = outcome.gap <= outcome.tol
    if not judge.feasible(outcome.b):
        return "wrong", "the coefficients are outside their bounds"
    off, apart = outcome.objective - outcome.F, outcome.objective - outcome.lower
    if not abs(off) <= outcome.allowance:
        return "wrong", f"the objective is off by {off:.1e}, rounding explains {outcome.allowance:.1e}"
    if not outcome.gap == apart:
        return "wrong", f"the gap is {outcome.gap:.3e}, objective less lower bound {apart:.3e}"
    if outcome.gap < 0:
        return "wrong", f"the lower bound is above the objective by {-outcome.gap:.1e}"
    excess, allowed = max((outcome.lower - rival.F - rival.allowance, rival.allowance) for rival in rivals)
    if excess > 0:
        return "wrong", f"the lower bound is {excess + allowed:.1e} above an attained value, rounding: {allowed:.1e}"
    if certified and outcome.objective > np.log(2) + outcome.allowance:
        return "wrong", f"certified, but above log 2 by {outcome.objective - np.log(2):.1e}"
    if certified:
        return "certified", ""
    if not outcome.warned:
        return "silent", f"gap {outcome.gap:.1e} and no warning"
    if np.isinf(outcome.gap):
        return "contradiction", "the lower bound was above the objective"
    with_default_max_iter = outcome.call in ("refit", "other units", "other solver")
    return "stopped" if max_iter < 1000 and not with_default_max_iter else "uncertified", f"gap {outcome.gap:.1e}"


def _verdict_on_loss(judge: Judge, outcome: Outcome) -> tuple[str, str]:
    """Kind and detail of a worst-case loss of unweighted rows."""
    assert outcome.b is not None
    if not np.isfinite(outcome.value):
        return "nan", f"the worst-case loss is {outcome.value}"
    outcome.F, outcome.allowance = judge.worst_case_loss(outcome.b, outcome.radius, np.ones(len(judge.y), Real))
    off = outcome.value - outcome.F
    if not abs(off) <= outcome.allowance:
        return "wrong", f"the worst-case loss is off by {off:.1e}, rounding explains {outcome.allowance:.1e}"
    return "certified", ""


def _verdict_on_radius_max(judge: Judge, value: float, rivals: dict[float, list[Value]]) -> tuple[str, str]:
    """Kind and detail of a largest useful radius: above it nothing is better than the best constant model.

    The first two rivals are constant models. Only clear cases count: radii a thousandth larger, and values that are
    better by more than the accuracy of the best constant.
    """
    if np.isnan(value) or (np.isinf(value) and np.isfinite(judge.kappa)):
        return "nan", f"radius_max is {value}"
    if value < 0:
        return "wrong", f"radius_max is {value}"
    for radius, (zero, constant, *others) in rivals.items():
        if radius > 1.001 * value:
            best = min((other.F + other.allowance for other in others), default=np.inf)
            better = min(zero.F - zero.allowance, constant.F - constant.allowance) - best
            if better > 1e-8:
                return "wrong", f"it is {value:.6g}, but at {radius:.6g} the slopes are worth {better:.1e}"
    return "certified", ""


def _improved(judge: Judge, b: np.ndarray, radius: float) -> np.ndarray:
    """Better coefficients, if a few steps along the axes or along b lead to any."""
    best, b = judge.objective(b, radius).F, b.copy()
    if not np.isfinite(best):
        return b
    for share in (0.1, 0.01, 0.001):
        along_axes = np.diag(share * np.maximum(np.abs(b), 0.1 / np.maximum(judge.sizes, 1e-300)))
        for step in (share * np.r_[0.0, b[1:]], *along_axes):
            for trial in (b + step, b - step):
                if judge.feasible(trial) and (value := judge.objective(trial, radius).F) < best:
                    best, b = value, trial
                    break
    return b


# The command


def rows_of(instance: Instance, made: Sequence[Outcome]) -> list[dict]:
    """One row per outcome, for the table and the file."""
    about = {
        "seed": instance.seed,
        "size_class": instance.size_class,
        "N": len(instance.y),
        "n": instance.x.shape[1],
        "m": instance.z.shape[1],
        "size": instance.size,
        "p": instance.problem["p"],
        "adversary": instance.adversary,
        "label_cost": instance.problem["label_cost"],
        "max_iter": instance.fit["max_iter"],
    }
    names = ("call", "solver", "tol", "radius", "kind", "detail", "objective", "F", "lower", "gap", "value", "seconds")
    return [about | {name: getattr(outcome, name) for name in names} for outcome in made]


def _rows(seed: int) -> list[dict]:
    instance = make_instance(seed)
    return rows_of(instance, examine(instance))


def run(seeds: Iterable[int], jobs: int = 1, output: Path | None = None) -> pd.DataFrame:
    """Examine the instances of these seeds; print the failures as they come, and append all rows to a csv file."""
    tables = []
    for rows in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_rows)(seed) for seed in seeds):
        tables.append(pd.DataFrame(rows))
        if output is not None:
            tables[-1].to_csv(output, mode="a", header=not output.exists(), index=False, lineterminator="\n")
        for row in rows:
            if row["kind"] in FAILURES:
                print(_line(row), flush=True)
    if not tables:
        raise SystemExit("no instance was examined; set more --minutes or a --count of at least 1.")
    return with_slow(pd.concat(tables, ignore_index=True))


def _line(row: Any) -> str:
    what = f"{row['call']}, {row['solver']}, p {row['p']:g}, tol {row['tol']:.0e}, kappa {row['label_cost']}"
    table = f"N {row['N']}, n {row['n']}, m {row['m']}, {row['size_class']} of {row['size']:.0e}"
    return f"{row['kind']}: {what}, {table}: {row['detail']}\n    python -m benchmarks.fuzz --instance {row['seed']}"


def with_slow(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with kind "slow" where a certified call took far longer than others of its solver and number of rows."""
    alike = [rows["call"], rows["solver"], rows["N"] > 40]
    slow = (rows["kind"] == "certified") & (rows["seconds"] > SLOW * rows.groupby(alike)["seconds"].transform("median"))
    return rows.assign(kind=rows["kind"].mask(slow, "slow"))


def summary(rows: pd.DataFrame) -> str:
    """The number of fits of each kind, by solver, tolerance, size and p."""
    fits = rows[~rows["call"].isin(["radius_max", "worst_case_loss"])]
    tables = [
        _counts(fits.assign(tol=fits["tol"].map("{:.0e}".format)), ["solver", "p", "tol"]),
        _counts(fits, ["solver", "p", "size_class"]),
        _counts(fits, ["solver", "p", "adversary"]),
        _counts(rows, ["call"]),
    ]
    refused = rows[rows["kind"].isin(["refused", "unsolved"])]
    reasons = refused["detail"].str.replace(r"[-+]?\d[\d.e+-]*|'[^']*'", "#", regex=True).value_counts()
    tables += [f"{times:6d}  {reason}" for reason, times in reasons.items()]
    return "\n\n".join(map(str, tables[:4])) + "\n" + "\n".join(["", *tables[4:], ""]) + f"{len(fits)} fits."


def _counts(rows: pd.DataFrame, by: list[str]) -> str:
    counts = pd.crosstab([rows[name] for name in by], rows["kind"])
    order = [*FAILURES, *sorted(set(counts) - set(FAILURES))]
    return counts.reindex(columns=[kind for kind in order if kind in counts]).to_string()


def show(seed: int) -> list[Outcome]:
    """Print an instance in full; return its outcomes."""
    instance = make_instance(seed)
    made = examine(instance)
    with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", 200):
        about = pd.DataFrame(instance.table).assign(
            target=instance.target, weight=1.0 if instance.w is None else instance.w
        )
        print(about.to_string(float_format="{:.17g}".format))
    print(f"\nlevels {instance.n_levels}, {instance.size_class} of {instance.size:g}, route {instance.route}")
    print(f"adversary: {instance.adversary}")
    for name, value in {**instance.problem, **instance.fit}.items():
        print(f"    {name} = {value!r}")
    for outcome in made:
        verdict = f"{outcome.kind}  {outcome.detail}"
        print(f"\n{outcome.call}, {outcome.solver}, radius {outcome.radius!r}, tol {outcome.tol:g}: {verdict}")
        if outcome.b is not None:
            print(f"    b          {outcome.b.tolist()}")
        if outcome.call in ("radius_max", "worst_case_loss"):
            print(f"    value      {outcome.value!r}")
        else:
            print(f"    objective  {outcome.objective!r}")
            warned = ", with a warning" if outcome.warned else ""
            print(f"    lower      {outcome.lower!r}, gap {outcome.gap!r}{warned}")
        print(f"    F          {outcome.F!r}, allowance {outcome.allowance:.1e}; {outcome.seconds:.3f} s")
    return made


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.partition("\n")[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, help="how long to run; default: 1 minute")
    length.add_argument("--count", type=int, help="how many instances to examine")
    length.add_argument("--instance", type=int, metavar="SEED", help="examine only this instance, in full detail")
    parser.add_argument("--seed", type=int, help="seed of the run, which determines the instances; default: random")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, with one thread each; default: 1")
    parser.add_argument("--output", type=Path, help="a csv file to append a row to for every call")
    chosen = parser.parse_args(arguments)
    if chosen.instance is not None:
        return int(any(outcome.kind in FAILURES for outcome in show(chosen.instance)))
    seed = int(np.random.default_rng().integers(10**6)) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    rows = run(instance_seeds(seed, chosen.count, chosen.minutes), chosen.jobs, chosen.output)
    print(f"\n{summary(rows)}")
    for row in rows[rows["kind"] == "slow"].to_dict("records"):
        print(_line(row | {"detail": f"{row['seconds']:.1f} s"}))
    return int(rows["kind"].isin(FAILURES).any())


def instance_seeds(seed: int, count: int | None = None, minutes: float | None = None) -> Iterator[int]:
    """The seeds of a run's instances: ``count`` of them, or as many as are requested within the minutes."""
    until = np.inf if count is not None else monotonic() + 60 * (1.0 if minutes is None else minutes)
    done = 0
    while (count is None or done < count) and monotonic() < until:
        yield seed * 10**6 + done
        done += 1


if __name__ == "__main__":
    # Import the module under its real name, so that joblib's processes can import it, too.
    from benchmarks import fuzz

    sys.exit(fuzz.main())
