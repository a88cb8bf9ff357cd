"""Section 2.2's example: fits against the closed form, and Appendix B's numbers."""

from math import comb

import numpy as np
import pandas as pd
import pytest

from wdrlr import WassersteinLogisticRegression
from wdrlr.model.metric import GroundMetric
from wdrlr.model.objective import worst_case_loss
from wdrlr.paper.one_feature import (
    MODELS,
    POINTS,
    bands,
    closed_form,
    continuous_worst_case,
    distributions,
    draw_counts,
    estimates,
    exact_band,
    far_point,
    pose,
    radius_at,
)


def classifier_s_estimate(counts, model, radius):
    """By the classifier on four weighted rows, the feature in its own way for each model."""
    z, y = POINTS.T
    if model == "continuous":
        X, factor = pd.DataFrame({"z": z / 2}), 0.5  # so that |x - x'| is |z - z'| / 2
    else:
        X, factor = pd.DataFrame({"z": pd.Categorical(z, categories=[1, -1])}), 1.0
    robust = WassersteinLogisticRegression(
        radius=0.0 if model == "LR" else radius, coding="pm1", fit_intercept=False, tol=1e-9
    )
    return factor * robust.fit(X, y, sample_weight=counts).coef_[0, 0]


@pytest.mark.parametrize("model", MODELS)
def test_one_fit_for_all_runs_that_share_the_number_of_agreeing_rows(model):
    """Estimates, the classifier on all four counts, and the closed form are the same."""
    counts = np.vstack([draw_counts(60, 12, seed=1), [[10, 20, 25, 5], [15, 15, 15, 15], [29, 10, 12, 9]]])
    q = counts[:, [0, 3]].sum(axis=1) / 60
    assert q.min() < 0.5
    b, gap = estimates(counts, model, 0.04)
    assert gap <= 1e-9
    assert b == pytest.approx(closed_form(q, model, 0.04), abs=1e-5)
    assert b == pytest.approx([classifier_s_estimate(own, model, 0.04) for own in counts], abs=1e-5)


def test_closed_form_by_hand():
    assert closed_form(0.8, "LR", 0.1) == pytest.approx(np.log(4))
    assert closed_form(0.8, "mixed", 0.1) == pytest.approx(np.log(0.7 / 0.3))
    assert closed_form(0.8, "continuous", 0.1) == pytest.approx(np.log(0.6 / 0.4))
    assert closed_form(np.array([0.2, 0.45, 0.55]), "continuous", 0.1) == pytest.approx([-np.log(0.6 / 0.4), 0, 0])


@pytest.mark.parametrize("model", MODELS)
def test_the_objective_behind_the_closed_form(model):
    z, y = POINTS.T
    w = np.array([0.3, 0.1, 0.2, 0.4])
    for b in (0.2, 1.0, 3.0):
        share = 0.7 - MODELS[model] * 0.05
        expected = share * np.logaddexp(0, -b) + (1 - share) * np.logaddexp(0, b)
        found = worst_case_loss(pose(model, z, y, w, 0.05), np.array([0.0, b]))[0]
        assert found == pytest.approx(expected, abs=1e-12)


def test_draws_follow_the_logistic_model_and_the_seed():
    counts = draw_counts(1000, 400, seed=3)
    assert (counts.sum(axis=1) == 1000).all()
    agree = 1 / (1 + np.exp(-1))
    assert counts.mean(axis=0) / 1000 == pytest.approx(np.array([agree, 1 - agree, 1 - agree, agree]) / 2, abs=0.003)
    assert (counts == draw_counts(1000, 400, seed=3)).all()
    assert (counts != draw_counts(1000, 400, seed=4)).any()
    assert (counts[:1] == draw_counts(1000, 1, seed=3)).all()


def test_bands():
    table = bands([80, 250], runs=300, seed=0)
    assert table["N"].tolist() == [80] * 3 + [250] * 3
    assert table["model"].tolist() == [*MODELS] * 2
    assert table["off_closed_form"].max() < 1e-5 and table["gap"].max() <= 1e-9
    assert (table["lower"] < table["mean"]).all() and (table["mean"] < table["upper"]).all()
    # A quantile of 300 runs is within a few counts of the exact one.
    assert table["upper"].to_numpy() == pytest.approx(table["exact_upper"].to_numpy(), abs=0.12)
    assert table["lower"].to_numpy() == pytest.approx(table["exact_lower"].to_numpy(), abs=0.12)
    for row in table.itertuples():
        assert (row.exact_lower, row.exact_upper) == tuple(exact_band(row.N, row.model))
    at_250 = table[table["N"] == 250].set_index("model")["exact_upper"]
    assert at_250["mixed"] == pytest.approx(0.986, abs=5e-4)
    assert at_250["continuous"] < 0.85


def test_the_exact_band_by_counting():
    """N = 5: the quantiles of N q by adding up its probabilities."""
    N, p = 5, 1 / (1 + np.exp(-1))
    probabilities = [comb(N, k) * p**k * (1 - p) ** (N - k) for k in range(N + 1)]
    lower, upper = (int(np.searchsorted(np.cumsum(probabilities), level)) for level in (0.15, 0.85))
    assert (lower, upper) == (3, 5)
    expected = closed_form(np.array([3 / 5, 1.0]), "continuous", radius_at(5))
    assert exact_band(5, "continuous") == pytest.approx(expected)


def test_separable_runs_and_empty_settings_are_named():
    with pytest.raises(ValueError, match=r"N = 3 .* separable"):
        bands([3], runs=50, seed=0)
    for sizes, runs in (([], 5), ([0], 5), ([50], 0)):
        with pytest.raises(ValueError, match="sizes and runs"):
            bands(sizes, runs, seed=0)
    for gamma in (0.0, 0.5):
        with pytest.raises(ValueError, match="gamma"):
            distributions(draw_counts(250, 1, 0)[0], gamma)
    with pytest.raises(ValueError, match="at least one sample"):
        distributions(np.zeros(4, int), 1e-3)


# Appendix B


def test_the_paper_s_number():
    """1 + (radius - gamma) N / (gamma / 2) is 15,312 with radius 1 / (2 sqrt N), not with the printed 1 / sqrt N."""
    assert f"{far_point(250, 1e-3, radius_at(250)):,.0f}" == "15,312"
    assert f"{far_point(250, 1e-3, radius_at(250), 0.5):,.0f}" == "30,624"
    assert f"{far_point(250, 1e-3, 1 / np.sqrt(250)):,.0f}" == "31,124"


@pytest.mark.parametrize("gamma", [1e-3, 1e-4])
@pytest.mark.parametrize("metric, distance", [(GroundMetric(2.0, scale=2.0), 0.5), (GroundMetric(np.inf), 1.0)])
def test_our_worst_case_is_the_sequence_of_appendix_b(gamma, metric, distance):
    counts = np.array([90, 30, 35, 95])
    worst = continuous_worst_case(counts, gamma, metric)
    assert not worst.attained
    assert len(worst.mass) == 251
    (far,) = np.flatnonzero(np.abs(worst.x[:, 0]) > 1)
    assert worst.x[far, 0] == pytest.approx(far_point(250, gamma, radius_at(250), distance), rel=1e-12)
    assert worst.y[far] == -1  # a row with z = 1 and y = 1 would have to go the other way
    assert worst.mass[far] == pytest.approx(gamma / 500)
    # The value of Appendix B's program with all alpha = 0: the empirical loss plus theta, per unit of cost.
    empirical = worst_case_loss(pose("LR", *POINTS.T, counts / 250, 0.0), np.array([0.0, 1.0]))[0]
    assert worst.worst_case_loss == pytest.approx(empirical + (radius_at(250) - gamma) / distance, abs=1e-12)
    assert 0 < worst.gap < gamma / 500


def test_with_the_plain_distance_label_changes_attain_the_same_value():
    """beta = 1: a label costs 1 and gains 1, moving z gains 1 a unit. So no mass need escape there."""
    counts = np.array([90, 30, 35, 95])
    changed = continuous_worst_case(counts, 1e-3, GroundMetric(1.0))
    escaped = continuous_worst_case(counts, 1e-3, GroundMetric(np.inf))
    assert changed.attained and np.abs(changed.x).max() == 1
    assert changed.worst_case_loss == pytest.approx(escaped.worst_case_loss, abs=1e-12)


def test_distributions_of_the_right_panel():
    probabilities, facts = distributions(np.array([90, 30, 35, 95]), 1e-3)
    names = ["empirical", "mixed", "continuous, |z - z'| / 2", "continuous, |z - z'|"]
    assert facts["distribution"].tolist() == names
    assert probabilities.groupby("distribution")["probability"].sum().to_numpy() == pytest.approx(np.ones(4))
    empirical = probabilities[probabilities["distribution"] == "empirical"]
    expected = pd.DataFrame({"z": POINTS[:, 0], "y": POINTS[:, 1], "p": np.array([90, 30, 35, 95]) / 250})
    merged = empirical.merge(expected, on=["z", "y"])
    assert len(merged) == 4 and merged["probability"].to_numpy() == pytest.approx(merged["p"].to_numpy())
    mixed = probabilities[probabilities["distribution"] == "mixed"]
    assert set(mixed["z"]) == {-1, 1}
    disagreeing = mixed.loc[mixed["z"] != mixed["y"], "probability"].sum()
    assert disagreeing == pytest.approx(65 / 250 + radius_at(250))
    assert facts["attained"].tolist() == [True, True, False, False]
    assert facts["transport_cost"].tolist() == pytest.approx([0, radius_at(250)] + [radius_at(250) - 1e-3] * 2)
    assert (facts["worst_case_loss"] - facts["expected_loss"]).max() < 1e-6
