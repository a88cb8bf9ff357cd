"""Each setting is used and explained, and solutions depend on none of them beyond their tolerance."""

import ast
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.instances import random_problem
from wdrlr.solvers.interior_point import settings
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise
from wdrlr.solvers.interior_point.settings import SETTINGS, Settings

NAMES = [field.name for field in fields(Settings)]
PROBLEMS = [random_problem(1), random_problem(2, N=30, n=2, n_levels=(3, 4, 2), label_cost=3.0, radius=0.02)]


def solved(problem, values):
    return minimise(problem, Coordinates(problem), 1e-7, 500, settings=values)[0]


@pytest.fixture(scope="module")
def usual():
    return [solved(problem, SETTINGS) for problem in PROBLEMS]


def test_each_is_read_somewhere():
    modules = Path(settings.__file__).parent.glob("*.py")
    read = {name for module in modules for name in re.findall(r"\bsettings\.(\w+)", module.read_text())}
    assert read == set(NAMES)


def test_each_is_explained():
    (body,) = [node.body for node in ast.parse(Path(settings.__file__).read_text()).body if hasattr(node, "bases")]
    fields_and_texts = body[1:]  # after the docstring of the class
    assert [node.target.id for node in fields_and_texts[::2]] == NAMES
    assert all(ast.literal_eval(node.value).strip().endswith((".", "...")) for node in fields_and_texts[1::2])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_solution_depends_on_it_within_its_tolerance_only(usual, name, factor):
    value = getattr(SETTINGS, name)
    other = replace(SETTINGS, **{name: type(value)(min(factor * value, 0.999) if value < 1 else factor * value)})
    for problem, as_usual in zip(PROBLEMS, usual, strict=True):
        solution = solved(problem, other)
        assert 0 <= solution.gap <= 1e-7
        assert solution.upper == pytest.approx(as_usual.upper, abs=1e-7)


def test_the_method_uses_those_that_it_is_given(usual):
    other = replace(SETTINGS, before_wall=0.5)
    for problem, as_usual in zip(PROBLEMS, usual, strict=True):
        assert (solved(problem, other).b != as_usual.b).any()
