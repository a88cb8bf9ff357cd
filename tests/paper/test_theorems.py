import numpy as np
import pytest

from wdrlr.paper import theorems

SLOPES = [0.5, 1.0, 3.0]


def test_the_two_terms_are_equal_at_the_kink_and_it_is_one():
    b_0, b_N, b_C = SLOPES
    f = b_0 + b_N * theorems.kink(SLOPES)
    assert np.logaddexp(0, f + b_C) - np.logaddexp(0, f) == pytest.approx(b_N)
    losses = theorems.losses_by_x(SLOPES, radius=0.3)
    last = [*theorems.describe_losses(losses, SLOPES, 0.3)][-1]
    before, after = (float(last.split(word)[1].split()[0]) for word in ("worst_case_loss is", "and"))
    assert after > before + 0.1


@pytest.mark.parametrize("case", theorems.CASES)
def test_the_formula_is_what_the_separation_finds(case):
    losses = theorems.losses_by_x(SLOPES, radius=0.3)
    np.testing.assert_allclose(losses[f"worst_case_loss{case}"], losses[f"closed_form{case}"], rtol=0, atol=1e-12)


def test_a_guarantee_that_never_holds_is_reported():
    fits = theorems.guarantee_fits([20], n_features=2, n_runs=2, seed=0)
    assert fits["holds"].equals(fits["true"] <= fits["worst_case"] + 1e-9)
    shares = fits.assign(holds=0.0).groupby(["N", "radius"])[["holds", "constant", "true"]].mean().reset_index()
    (line,) = theorems.describe_guarantee(shares)
    assert line.startswith("N = 20: it holds in 95 % of the runs at none of the radii; ")
