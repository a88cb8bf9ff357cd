import pickle

import numpy as np

from tests.instances import random_problem
from wdrlr.estimators.solving import Solving, at
from wdrlr.paper.residue import RESIDUE
from wdrlr.solvers.registry import SOLVERS


def test_residue_is_left_only_where_all_slopes_are_zero():
    unit = random_problem(0, N=60, n=0, n_levels=(3, 2), coding="pm1", coef_bound=100.0)
    for radius, constant in ((0.001, False), (1.0, True)):
        for residue in RESIDUE.values():
            exact, left = (Solving(solver).solve(at(unit, radius, 0.0)).b[1:] for solver in ("tailored", residue))
            assert (not exact.any()) == constant
            assert left.any()
            assert np.array_equal(exact, left) == (not constant)
            assert np.abs(left - exact).max() < 0.1


def test_no_user_of_the_classifier_meets_them():
    assert not {solver.name for solver in RESIDUE.values()} & set(SOLVERS)
    assert set(RESIDUE.values()) == {pickle.loads(pickle.dumps(solver)) for solver in RESIDUE.values()}
