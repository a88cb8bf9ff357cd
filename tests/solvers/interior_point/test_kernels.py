"""The compiled kernels against what they stand for, written out with dense matrices and by enumeration."""

from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import entr, expit

from tests.instances import cost_by_hand, enumerated_points, f_by_hand, random_problem
from wdrlr.model.problem import log_loss
from wdrlr.model.separation import most_violated
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.coordinates import Coordinates, LinearRows
from wdrlr.solvers.interior_point.instance import level_costs

SETTINGS = {
    "no tops": {"n": 1, "n_levels": (2, 3, 2), "label_cost": 0.8},
    "no numbers, fixed labels": {"n": 0, "n_levels": (4, 1, 3, 2, 6), "label_cost": np.inf},
    "no categories": {"n": 3, "n_levels": (), "label_cost": 0.5},
    "costs": {"n": 1, "n_levels": (3, 4, 2, 5), "label_cost": 0.6, "costs": "mixed"},
    "wide features": {"n": 2, "n_levels": (3, 8, 2, 9), "label_cost": 0.6},
    "wide features with costs": {"n": 2, "n_levels": (8, 3, 7), "label_cost": 0.6, "costs": "matrices"},
    "all": {"n": 2, "n_levels": (3, 4, 1, 2, 5), "label_cost": 0.6, "N": 20},
}


@pytest.fixture(params=[(name, seed) for name in SETTINGS for seed in range(4)], ids=str)
def case(request):
    """A problem in the kernels' coordinates, a point ``theta``, and a pool as some steps of the solver leave it."""
    name, seed = request.param
    return make_case(seed, **SETTINGS[name])


def make_case(seed, **setting):
    problem = random_problem(seed, weighted=True, **setting)
    problem = replace(problem, metric=replace(problem.metric, level_cost=0.3, scale=1.5))
    coordinates = Coordinates(problem)
    case = SimpleNamespace(
        problem=problem,
        coordinates=coordinates,
        data=coordinates.data,
        E=coordinates.E,
        N=problem.n_samples,
        costs=level_costs(problem),
        label_cost=setting["label_cost"] / 1.5,
        rng=np.random.default_rng(seed),
    )
    case.fold = kernels.fold(case.E, apart(case.data) if seed % 2 else np.zeros(0, int), case.data)
    case.nothing = kernels.empty_pool(case.N)
    case.pool = case.nothing
    for _ in range(4):
        case.pool = with_new_cuts(case, random_theta(case), case.pool)
    kept_share = case.rng.choice([0.0, 0.8], case.N)  # so that some samples are left with one cut
    counts = np.diff(case.pool.start)
    keep = case.rng.random(counts.sum()) < kept_share.repeat(counts)
    keep[case.pool.start[:-1] + case.rng.integers(counts)] = True
    case.pool, _ = kernels.merge(case.pool, keep, np.zeros(0, np.int32), case.nothing)
    case.theta = random_theta(case)
    return case


def apart(data):
    """The levels' coordinates of the last feature that has a top and is wide; none if there is no such feature."""
    for j in reversed(data.wide):
        if data.top[0, j] >= 0:
            columns = data.column[data.offsets[j] : data.offsets[j + 1]]
            return columns[columns >= 0]
    return np.zeros(0, int)


def unfolded(fold, M):
    """The whole matrix, in the order of the coordinates."""
    whole = np.block([[M.core, M.side.T], [M.side, np.diag(M.diagonal)]])
    return whole[np.ix_(fold.position, fold.position)]


def gram(case, t, p, f):
    return unfolded(case.fold, kernels.gram(case.fold, case.data, case.pool, t, p, f))


def random_theta(case, size=1.0, margin=1.0):
    """Tops lie up to ``margin`` above, and bottoms below, the scores of their levels."""
    theta = size * case.rng.normal(size=case.E)
    theta[-1] = size * case.rng.uniform(0.2, 2.0)
    for j, side in product(range(case.problem.n_categorical), range(2)):
        if case.data.top[side, j] >= 0:
            theta[case.data.top[side, j]] = extreme(case, theta, side, j) + (1, -1)[side] * margin * case.rng.random()
    return theta


def extreme(case, theta, side, j):
    """The highest (side 0) or lowest (side 1) score of feature j."""
    column = case.data.column[case.data.offsets[j] : case.data.offsets[j + 1]]
    return (max, min)[side](theta[e] if e >= 0 else 0.0 for e in column)


def separate(case, theta, level, pool):
    no_code = np.full((2, case.problem.n_categorical), np.nan)
    at = kernels.scores(theta, case.data)
    return kernels.separate(at, theta[-1], no_code, case.data, case.costs, case.label_cost, level, pool)


def with_new_cuts(case, theta, pool, level=-np.inf):
    """The pool with the worst cuts of all samples and labels at theta, or with those above a level."""
    _, owner, new = separate(case, theta, np.broadcast_to(level, case.N).copy(), pool)
    return kernels.merge(pool, np.ones(pool.sign.size, bool), owner, new)[0]


def dense(case, pool):
    """R (C, E) with a = R theta, the samples (C,), and the matrix (N, C) that sums over the cuts of each sample."""
    sample = np.arange(case.N).repeat(np.diff(pool.start))
    R = np.zeros((sample.size, case.E))
    R[:, 0] = 1.0
    R[:, 1 : 1 + case.problem.n_numeric] = case.data.x[sample]
    for c, i in enumerate(sample):
        levels = case.data.column[case.data.z[i]]
        levels[pool.feature[pool.ends[c] : pool.ends[c + 1]]] = pool.entry[pool.ends[c] : pool.ends[c + 1]]
        R[c, levels[levels >= 0]] += 1.0
    return pool.sign[:, None] * R, sample, (np.arange(case.N)[:, None] == sample).astype(float)


def described(pool, sample):
    """The cuts as tuples that can be compared."""
    parts = [np.split(part, pool.ends[1:-1]) if sample.size else [] for part in (pool.feature, pool.entry)]
    columns = zip(sample, pool.sign, pool.cost.round(12), *parts, strict=True)
    return [
        (int(i), float(sign), float(cost), tuple(zip(j.tolist(), e.tolist(), strict=True)))
        for i, sign, cost, j, e in columns
    ]


def entries_of(case, sign, changes):
    """Features and entries of a cut; ``changes`` maps features to new levels, codes within the feature."""
    data, side = case.data, 0 if sign > 0 else 1
    entries = []
    for j, new in changes.items():
        top = data.top[side, j]
        entries.append((int(j), int(top if top >= 0 else data.column[data.offsets[j] + new])))
    return tuple(entries)


def worst_by_problem(case, theta):
    """Algorithm 2 of ``separation`` at theta: for each label that can be given, the signs and the worst z."""
    b = case.coordinates.b_of_theta.times(theta)
    for flipped in case.problem.label_flips:
        yield (1.0 if flipped else -1.0) * case.problem.y, most_violated(case.problem, b, theta[-1], flipped)


def assert_close(actual, expected, tol=1e-12):
    """Equal up to rounding of the largest number."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * np.abs(expected).max(initial=1e-300))


def test_the_instances_have_all_kinds_of_samples():
    """By the number of cuts (2: or more), how many of them change nothing, and whether some use tops."""
    kinds = set()
    for name, seed in product(SETTINGS, range(4)):
        pool, tops = (case := make_case(seed, **SETTINGS[name])).pool, case.data.top[case.data.top >= 0]
        for begin, end in pairwise(pool.start):
            unchanged = int((np.diff(pool.ends)[begin:end] == 0).sum())
            uses_tops = bool(np.isin(pool.entry[pool.ends[begin] : pool.ends[end]], tops).any())
            kinds.add((min(int(end - begin), 2), unchanged, uses_tops))
    assert kinds == {
        *[(1, 1, False), (1, 0, False), (1, 0, True)],
        *[(2, 2, False), (2, 2, True), (2, 1, False), (2, 1, True), (2, 0, False), (2, 0, True)],
    }


def test_lone_cuts_change_wide_features_and_narrow_ones_to_levels():
    """Beside numbers: what BLAS multiplies and what is added level by level meet in these cuts."""
    kinds = set()
    for seed in range(4):
        pool, data = (case := make_case(seed, **SETTINGS["wide features with costs"])).pool, case.data
        assert data.wide.tolist() == [0, 2] and len(data.narrow) == 2
        lone = np.flatnonzero(pool.counts == 1)
        for c in pool.start[lone]:
            kinds |= set(np.isin(pool.feature[pool.ends[c] : pool.ends[c + 1]], data.wide).tolist())
    assert kinds == {True, False}


# ---------------------------------------------------------------- separation and the pool


@pytest.mark.parametrize(("size", "dear"), [(0.1, 1.0), (1.0, 1.0), (1e3, 1.0), (1e3, 5.0)])
def test_separate_finds_the_value_of_the_worst_cut(case, size, dear):
    """That over the levels, also where tops lie above them; at size 1e3 exponentials would overflow."""
    theta = random_theta(case, size)
    theta[-1] *= dear
    worst, _, _ = separate(case, theta, np.full(case.N, np.inf), case.pool)
    expected = np.max([found.value for _, found in worst_by_problem(case, theta)], axis=0)
    np.testing.assert_allclose(worst, expected, rtol=1e-12, atol=1e-12 * size)


def test_separate_finds_the_worst_of_all_points(case):
    problem, theta = case.problem, random_theta(case)
    worst, _, _ = separate(case, theta, np.full(case.N, np.inf), case.pool)
    b = case.coordinates.b_of_theta.times(theta)
    for i in range(case.N):
        values = [
            log_loss(-flip * problem.y[i] * f_by_hand(problem, b, i, z)) - theta[-1] * cost_by_hand(problem, i, z, flip)
            for z, flip in enumerated_points(problem)
        ]
        assert worst[i] == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("known", ["none", "some"])
def test_separate_yields_the_cuts_above_the_level_that_the_pool_lacks(case, known):
    theta = random_theta(case)
    pool = case.nothing
    if known == "some":  # those of about half of the samples at the same theta, and those of other theta
        pool = with_new_cuts(case, theta, case.pool, np.where(case.rng.random(case.N) < 0.5, -np.inf, np.inf))
    level = separate(case, theta, np.full(case.N, np.inf), pool)[0] - case.rng.uniform(-0.2, 1.0, case.N)
    _, owner, new = separate(case, theta, level, pool)

    expected = []
    for sign, found in worst_by_problem(case, theta):
        for i in np.flatnonzero(found.value > level):
            changes = {j: v for j, v in enumerate(found.z[i]) if v != case.problem.z[i, j]}
            cost = cost_by_hand(case.problem, i, found.z[i], -1.0 if sign[i] == case.problem.y[i] else 1.0)
            expected.append((int(i), float(sign[i]), round(cost, 12), entries_of(case, sign[i], changes)))
    has = set(described(pool, dense(case, pool)[1]))
    assert sorted(described(new, owner)) == sorted(set(expected) - has)
    assert (np.diff(owner) >= 0).all()
    assert new.ends[-1] == new.entry.size == new.feature.size


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_new_cuts_take_tops_in_place_of_levels(case, margin):
    """Their arguments are those of the worst z, and more by what tops lie above the levels that they stand for."""
    theta = random_theta(case, margin=margin)
    pool = with_new_cuts(case, theta, case.nothing)
    a = kernels.arguments(theta, kernels.scores(theta, case.data), case.data, pool)
    sample = dense(case, pool)[1]
    for sign, found in worst_by_problem(case, theta):
        for i in range(case.N):
            side = 0 if sign[i] > 0 else 1
            more = sum(
                abs(theta[case.data.top[side, j]] - extreme(case, theta, side, j))
                for j in np.flatnonzero(found.z[i] != case.problem.z[i])
                if case.data.top[side, j] >= 0
            )
            assert a[(sample == i) & (pool.sign == sign[i])] == pytest.approx([found.argument[i] + more], abs=1e-12)


def test_scores(case):
    at, own = kernels.scores(case.theta, case.data), case.data.column >= 0
    assert at.score[own].tolist() == case.theta[case.data.column[own]].tolist()
    assert not at.score[~own].any()
    b = case.coordinates.b_of_theta.times(case.theta)
    by_hand = [f_by_hand(case.problem, b, i, case.problem.z[i]) for i in range(case.N)]
    np.testing.assert_allclose(at.f, by_hand, rtol=0, atol=1e-12)


def test_arguments_are_rows_times_theta(case):
    a = kernels.arguments(case.theta, kernels.scores(case.theta, case.data), case.data, case.pool)
    np.testing.assert_allclose(a, dense(case, case.pool)[0] @ case.theta, rtol=0, atol=1e-13)


def test_sums_of_rows_are_rows_transposed_times_forces(case):
    force = case.rng.normal(size=case.pool.sign.size)
    unsigned = case.pool.sign[:, None] * dense(case, case.pool)[0]
    assert_close(kernels.sum_rows(force, case.E, case.data, case.pool), unsigned.T @ force)


def test_sums_of_rows_are_the_adjoint_of_arguments(case):
    force = case.rng.normal(size=case.pool.n_cuts)
    a = kernels.arguments(case.theta, kernels.scores(case.theta, case.data), case.data, case.pool)
    total = kernels.sum_rows(force * case.pool.sign, case.E, case.data, case.pool)
    assert total @ case.theta == pytest.approx(force @ a, abs=1e-13 * np.abs(force * a).sum())


def test_merge_keeps_and_adds_by_sample(case):
    sample = dense(case, case.pool)[1]
    _, owner, new = separate(case, case.theta, np.full(case.N, -np.inf), case.pool)
    keep = case.rng.random(sample.size) < 0.5
    merged, old = kernels.merge(case.pool, keep, owner, new)
    kept = [(cut, c) for c, cut in enumerate(described(case.pool, sample)) if keep[c]]
    cuts = sorted(kept + [(cut, -1) for cut in described(new, owner)], key=lambda cut: cut[0][0])  # stable: old first
    assert described(merged, dense(case, merged)[1]) == [cut for cut, _ in cuts]
    assert old.tolist() == [c for _, c in cuts]


def test_merging_nothing_changes_nothing(case):
    merged, old = kernels.merge(case.pool, np.ones(case.pool.sign.size, bool), np.zeros(0, np.int32), case.nothing)
    for before, after in zip(case.pool, merged, strict=True):
        np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(old, np.arange(case.pool.sign.size))


def test_raised(case):
    """The samples have only old cuts, or fresh ones beside an old one."""
    pool, rng, tau, C = case.pool, case.rng, 0.01, case.pool.sign.size
    value, p = rng.normal(size=C), rng.random(C)
    wanted = rng.random(C) * 10.0 ** rng.integers(-2, 2, C)
    fresh = rng.random(C) < rng.choice([0.0, 0.7], case.N).repeat(np.diff(pool.start))
    fresh[pool.start[:-1]] = False
    s = kernels.raised(value, wanted, p, fresh, case.data, pool, 0.5 * tau, 0.1)
    for i, w in enumerate(case.data.w):
        mine = dense(case, pool)[1] == i
        old, new = mine & ~fresh, mine & fresh
        mean = np.average(value[old] + wanted[old], weights=p[old])
        above = [*(value[old] + 0.1 * wanted[old]), *(value[new] + 0.5 * tau / w)]
        assert s[i] == pytest.approx(max(mean, *above), abs=1e-14)


# ---------------------------------------------------------------- the Newton system


@pytest.fixture
def newton(case):
    """Multipliers, slacks and slopes, with what the dense formulas need."""
    C, rng = case.pool.sign.size, case.rng
    R, sample, add = dense(case, case.pool)
    t = expit(R @ case.theta)
    p, f = 10.0 ** rng.uniform(-3, 0, C), 10.0 ** rng.uniform(-3, 0, C)
    A = t[:, None] * R
    A[:, -1] -= case.pool.cost
    return SimpleNamespace(R=R, A=A, sample=sample, add=add, t=t, p=p, f=f, D=p / f, e=rng.random(C), C=C)


def dense_gram(k, p, f):
    """The bracket written as the covariance of the A of each sample, which does not cancel."""
    D = p / f
    mean = k.add @ (D[:, None] * k.A) / (k.add @ D)[:, None]
    deviation = k.A - mean[k.sample]
    return k.R.T @ ((p * k.t * (1 - k.t))[:, None] * k.R) + deviation.T @ (D[:, None] * deviation)


@pytest.mark.parametrize("light", [1.0, 1e-8, 1e-25])
def test_gram(case, newton, light):
    """A third of the cuts may have small multipliers, and the slack of a sample's only cut is nothing."""
    p = newton.p * np.where(case.rng.random(newton.C) < 1 / 3, light, 1.0)
    f = np.where(newton.add.sum(axis=1)[newton.sample] == 1, 1e-12, newton.f)
    M = gram(case, newton.t, p, f)
    assert_close(M, dense_gram(newton, p, f), 1e-13)
    np.testing.assert_array_equal(M, M.T)
    assert_semidefinite(M)


@pytest.mark.parametrize("rows_at_once", [1, 5])
def test_gram_is_summed_block_by_block(monkeypatch, case, newton, rows_at_once):
    monkeypatch.setattr(kernels, "ROWS_AT_ONCE", rows_at_once)
    M = gram(case, newton.t, newton.p, newton.f)
    assert_close(M, dense_gram(newton, newton.p, newton.f), 1e-13)


def test_gram_below_the_threshold_takes_changed_cuts_for_flat(case, newton):
    """Semidefinite still, where the cuts below it are what the matrix is made of."""
    k, p = newton, newton.p * kernels.NO_CURVE
    several = k.add.sum(axis=1)[k.sample] > 1
    curve = p * k.t * (1 - k.t) + np.where(several, p / k.f, 0.0) * k.t**2
    flat = (np.diff(case.pool.ends) > 0) & (curve < kernels.NO_CURVE)
    k.t[flat] = 0.0
    k.A = k.t[:, None] * k.R
    k.A[:, -1] -= case.pool.cost
    M = gram(case, expit(k.R @ case.theta), p, k.f)
    assert_close(M, dense_gram(k, p, k.f), 1e-13)
    assert_semidefinite(M)
    # Some are below it, and they are no small part of the matrix.
    whole = gram(case, expit(k.R @ case.theta), p / kernels.NO_CURVE, k.f)
    assert np.abs(M / kernels.NO_CURVE - whole).max() > 1e-3 * np.abs(whole).max() or not case.problem.n_categorical


def assert_semidefinite(M):
    eigenvalues = np.linalg.eigvalsh(M)
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]


def test_gradient(case, newton):
    k = newton
    surplus = k.add @ k.e - case.data.w
    expected = k.A.T @ (k.e - k.D * (surplus / (k.add @ k.D))[k.sample])
    assert_close(kernels.gradient(case.E, case.data, case.pool, k.t, k.p, k.f, k.e), expected)


def eliminated(case, k, e, theta):
    """What the kernels differentiate: with v_c(theta) = L(a_c) - lam cost_c and v_c0 its value at ``case.theta``,

    sum_i min over s of w_i s + sum_c in i [ e_c (v_c(theta) - s) + D_c (v_c(theta) - v_c0 - s)^2 / 2 ].
    """

    def value(theta):
        return log_loss(k.R @ theta) - case.pool.cost * theta[-1]

    v = value(theta)
    change = v - value(case.theta)
    s = (k.add @ (e + k.D * change) - case.data.w) / (k.add @ k.D)
    return case.data.w @ s + e @ (v - s[k.sample]) + k.D @ (change - s[k.sample]) ** 2 / 2


def test_gradient_is_that_of_the_cuts_with_s_eliminated(case, newton):
    k, h = newton, 1e-5
    g = kernels.gradient(case.E, case.data, case.pool, k.t, k.p, k.f, k.e)
    steps = h * np.eye(case.E)
    there, back = ([eliminated(case, k, k.e, case.theta + sign * step) for step in steps] for sign in (1, -1))
    assert_close(g, (np.array(there) - back) / (2 * h), 1e-6)


def test_gram_is_the_second_derivative_of_the_cuts_with_s_eliminated(case, newton):
    """Where e is p, and p sums to w_i for each sample."""
    k, h = newton, 1e-4
    k.p *= (case.data.w / (k.add @ k.p))[k.sample]
    k.D = k.p / k.f
    M = gram(case, k.t, k.p, k.f)
    for _ in range(3):
        u = case.rng.normal(size=case.E)
        before, here, after = (eliminated(case, k, k.p, case.theta + step * u) for step in (-h, 0.0, h))
        assert u @ M @ u == pytest.approx((before - 2 * here + after) / h**2, rel=1e-4)


def test_directions_solve_the_eliminated_equations(case, newton):
    """p_full + D (ds - change) = e for each cut, and sum p_full = w_i for each sample: they determine both."""
    k, a, lam = newton, case.rng.normal(size=newton.C), case.rng.normal()
    change = k.t * a - lam * case.pool.cost
    d_slack, p_full = kernels.directions(a, lam, case.data, case.pool, k.t, k.p, k.f, k.e)
    several = (case.pool.counts > 1)[k.sample]
    assert several.any() and not d_slack[~several].any()
    assert_close((p_full + k.D * d_slack)[several], k.e[several])
    ds = d_slack + change
    first = case.pool.start[:-1][k.sample]
    assert_close(ds[several], ds[first][several])
    np.testing.assert_allclose(k.add @ p_full, case.data.w, rtol=0, atol=1e-13 * np.abs(k.D * change).max())


def made_up_pairs(seed, K=40):
    """Slacks, multipliers, changes of the former, and the latter after a step; some may not count."""
    rng = np.random.default_rng(seed)
    slack, mult = np.exp(rng.normal(size=(2, K)))
    return slack, mult, rng.normal(size=K), mult + rng.normal(size=K), rng.random(K) < 0.7


def test_the_longest_step():
    every = np.ones(2, bool)
    assert kernels.longest(np.array([1.0, 2.0]), np.array([-4.0, 1.0]), every) == 0.25
    assert kernels.longest(np.array([1.0, 2.0]), np.array([-4.0, -4.0]), np.array([False, True])) == 0.5
    assert kernels.longest(np.ones(2), np.full(2, -0.5), every) == 1.0


def test_products_and_the_steps_that_keep_pairs_positive():
    slack, mult, d_slack, full, some = pairs = made_up_pairs(0)
    products, primal, dual = kernels.reach(*pairs)
    assert products == pytest.approx((slack * mult)[some].sum())
    assert products == pytest.approx(kernels.products_after(*pairs, 0.0, 0.0))
    assert primal == kernels.longest(slack, d_slack, some) < 1
    assert dual == pytest.approx(kernels.longest(mult, full - mult, some)) and dual < 1
    after = (slack + primal * d_slack) * (mult + dual * (full - mult))
    assert kernels.products_after(*pairs, primal, dual) == pytest.approx(after[some].sum())


def test_second_order_terms_are_cut_off():
    slack, mult, d_slack, full, some = pairs = made_up_pairs(1)
    aim = np.full(len(slack), 7.0)
    kernels.correct(aim, *pairs, 0.1, 0.3)
    expected = (0.1 - np.clip((full - mult) * d_slack, -0.3, 0.3)) / slack
    np.testing.assert_allclose(aim, np.where(some, expected, 7.0), rtol=1e-14)


# ---------------------------------------------------------------- the dual point


def entropy_of(mass, v):
    """sum of mass H(v / mass)"""
    return np.sum(entr(v) + entr(mass - v) - entr(mass))


def test_dual_point(case):
    """From masses some of which are 0 or negative, and slopes some of which are outside of [0, 1]."""
    R, sample, add = dense(case, case.pool)
    mass = case.rng.normal(size=sample.size) * (case.rng.random(sample.size) < 0.8)
    mass[case.pool.start[:-1]] = 0.5 + case.rng.random(case.N)
    v = mass * case.rng.uniform(-0.3, 1.3, sample.size)
    mass_after, v_after, entropy, spent, balance = kernels.dual_point(case.E, case.data, case.pool, mass, v)
    positive = np.maximum(mass, 0.0)
    slope = np.clip(np.divide(v, mass, where=mass > 0, out=np.zeros_like(v)), 0.0, 1.0)
    expected = positive * (case.data.w / (add @ positive))[sample]
    np.testing.assert_allclose(mass_after, expected, rtol=1e-13)
    np.testing.assert_allclose(v_after, expected * slope, rtol=1e-13)
    assert (v_after <= mass_after).all()
    assert entropy == pytest.approx(expected @ (entr(slope) + entr(1 - slope)), rel=1e-12)
    assert spent == pytest.approx(expected @ case.pool.cost, rel=1e-12)
    assert_close(balance, R.T @ (expected * slope))


def test_dual_point_leaves_a_sample_without_positive_masses_out(case):
    """Masses may sum to less than w_i, at the cost of a lower bound."""
    R, sample, add = dense(case, case.pool)
    mass = np.where(sample == 0, -1.0, 1.0)
    v = 0.5 * np.abs(mass)
    mass, v, entropy, _, balance = kernels.dual_point(case.E, case.data, case.pool, mass, v)
    assert add @ mass == pytest.approx(np.where(np.arange(case.N) == 0, 0.0, case.data.w))
    assert not v[sample == 0].any()
    assert entropy == pytest.approx(np.log(2) * case.data.w[1:].sum())
    assert_close(balance, R.T @ v)


def absorb_case(case):
    """A dual point on a pool with all cuts of the data, and a random balance in the scores."""
    no_change_pays = np.append(np.zeros(case.E - 1), 1e6)
    pool = with_new_cuts(case, no_change_pays, case.pool)
    R, sample, add = dense(case, pool)
    mass = case.rng.random(sample.size) * 10.0 ** -case.rng.choice([0.0, 5.0], sample.size)
    mass *= (case.data.w / (add @ mass))[sample]
    balance = case.rng.normal(size=case.E)
    balance[case.coordinates.n_scores :] = 0.0
    return pool, R, sample, mass, mass * case.rng.uniform(0.1, 0.9, sample.size), balance


def test_absorb_needs_mass_to_move_for_each_level(case):
    pool, _, sample, mass, v, balance = absorb_case(case)
    spent = kernels.absorb(1e-7 * balance, case.data, case.costs, pool, mass, v)[1]
    assert np.isfinite(spent) == all(sources(case, pool, sample, mass, balance).values())
    assert kernels.absorb(1e3 * balance, case.data, case.costs, pool, mass, v)[1] == np.inf


@pytest.mark.parametrize("share", [1e-3, 0.1, 1.0])
def test_absorb_cancels_the_balance(case, share):
    """Carrying out by hand what it says, on explicit rows, for a share of the largest balance that it can cancel."""
    pool, R, sample, mass, v, balance = absorb_case(case)
    found = sources(case, pool, sample, mass, balance)
    balance[[e for e in case.data.column[case.data.column >= 0] if not found.get(e, False)]] = 0.0
    sizes = np.geomspace(1e-7, 1.0, 29)
    balance *= share * max(
        s for s in sizes if np.isfinite(kernels.absorb(s * balance, case.data, case.costs, pool, mass, v)[1])
    )
    entropy, spent, rest, bent, dv, cut, level, amount = kernels.absorb(balance, case.data, case.costs, pool, mass, v)
    assert bent == np.argmax(np.where(can_give(case, pool, sample, mass), v * (1 - v / mass), 0.0))
    after = v.copy()
    after[bent] += dv
    slope = after / mass
    left = mass - np.bincount(cut, amount, minlength=mass.size)
    new_rows = R[cut]
    for row, c, to in zip(new_rows, cut, level, strict=True):
        assert pool.ends[c] == pool.ends[c + 1]
        j = np.searchsorted(case.data.offsets, to, side="right") - 1
        own = case.data.z[sample[c], j]
        assert own != to
        for code, change in ((own, -1.0), (to, 1.0)):
            if case.data.column[code] >= 0:
                row[case.data.column[code]] += change * pool.sign[c]
    assert (left >= 0.5 * mass).all() and (amount > 0).all()
    masses, vs = np.append(left, amount), np.append(left * slope, amount * slope[cut])
    cancelled = vs @ np.vstack([R, new_rows]) - v @ R
    numbers = slice(1, 1 + case.problem.n_numeric)
    np.testing.assert_allclose(cancelled, rest - balance, rtol=0, atol=1e-15)
    assert not np.delete(rest, numbers).any()
    assert entropy_of(masses, vs) - entropy_of(mass, v) == pytest.approx(entropy, abs=1e-14)
    metric, m = case.problem.metric, case.problem.n_categorical
    old, new = case.data.z[sample[cut]] - case.data.offsets[:m], case.data.z[sample[cut]] - case.data.offsets[:m]
    j = np.searchsorted(case.data.offsets, level, side="right") - 1
    new[np.arange(len(cut)), j] = level - case.data.offsets[j]
    assert spent == pytest.approx(amount @ metric.level_distance(old, new))


def can_give(case, pool, sample, mass):
    """The cuts that ``absorb`` may change, but for how much of it; shape (C,)."""
    return (np.diff(pool.ends) == 0) & (mass > 1e-3 * case.data.w[sample])


def sources(case, pool, sample, mass, balance):
    """The entries of the levels' scores; for each, whether mass can be moved between it and the most common level.

    Without the levels that may not be changed into the most common one, nor that into them.
    """
    data, gives, found = case.data, can_give(case, pool, sample, mass), {}
    for j in range(case.problem.n_categorical):
        levels = np.arange(data.offsets[j], data.offsets[j + 1])
        (common,) = levels[data.column[levels] < 0]
        for level in levels[data.column[levels] >= 0]:
            leaves = pool.sign == np.sign(balance[data.column[level]])
            ways = [(leaves, level, common), (~leaves, common, level)]
            ways = [way for way in ways if np.isfinite(cost_of_change(case, j, *way[1:]))]
            if ways:
                found[data.column[level]] = any(
                    (gives & some & (data.z[sample, j] == old)).any() for some, old, _ in ways
                )
    return found


def cost_of_change(case, j, old, new):
    """Of feature j from one level to another, counted through."""
    z = case.problem.z[0].copy()
    z[j], to = old - case.data.offsets[j], z.copy()
    to[j] = new - case.data.offsets[j]
    return case.problem.metric.level_distance(z[None], to[None])[0]


def test_absorb_moves_mass_of_the_steepest_cut():
    case = make_case(0, n=1, n_levels=(2, 3), label_cost=1.0)
    pool, _, sample, mass, v, _ = absorb_case(case)
    wanted = np.zeros(case.E)
    level = 2  # intercept, number, then one score for the feature with two levels
    wanted[level] = 1e-6
    # Leaving the level takes from the balance where the sign is +; coming to it where the sign is -.
    fits = can_give(case, pool, sample, mass) & ((pool.sign > 0) == (case.data.column[case.data.z[sample, 0]] == level))
    entropy, spent, rest, *_ = kernels.absorb(wanted, case.data, case.costs, pool, mass, v)
    assert entropy == 0.0
    assert not rest.any()
    assert spent == pytest.approx(1e-6 / (v / mass)[fits].max() * case.costs.single[0])
    assert kernels.absorb(1e6 * wanted, case.data, case.costs, pool, mass, v)[1] == np.inf


def test_absorb_moves_mass_at_the_slope_that_the_intercept_leaves():
    """The only cut takes the intercept's share, then gives mass: entropy is kept at its new slope only."""
    problem = random_problem(3, N=2, n=0, n_levels=(2, 2), label_cost=np.inf)
    data = Coordinates(replace(problem, x=problem.x[:1], z=problem.z[:1], y=np.ones(1), w=np.ones(1))).data
    theta, empty, costs = np.array([0.0, 0.0, 0.0, 10.0]), kernels.empty_pool(1), level_costs(problem)
    at, no_code, any_value = kernels.scores(theta, data), np.full((2, 2), np.nan), np.array([-np.inf])
    _, owner, new = kernels.separate(at, theta[-1], no_code, data, costs, np.inf, any_value, empty)
    pool, _ = kernels.merge(empty, np.zeros(0, bool), owner, new)
    mass, v = np.ones(1), np.full(1, 0.5)

    def absorb(*balance):
        return kernels.absorb(np.array([*balance, 0.0]), data, costs, pool, mass, v)

    entropy, moved, rest, *_ = absorb(0.02, 0.01, 0.0)
    # v = 0.52 now fits the intercept; mass 0.01 / 0.52 at this slope fits the level and leaves 0.52 behind.
    assert moved == pytest.approx(0.01 / 0.52)
    assert entropy == pytest.approx(entr(0.52) + entr(0.48) - np.log(2))
    assert not rest.any()
    assert absorb(0.0, 0.15, 0.05)[1] == pytest.approx(0.4)
    # The intercept may take a tenth of v (1 - t), and all levels together half of the mass.
    assert [absorb(*balance)[1] for balance in [(0.03, 0.0, 0.0), (0.0, 0.26, 0.0), (0.0, 0.15, 0.15)]] == [np.inf] * 3


def test_changed_levels_have_the_entries_of_the_cuts(case):
    pool = case.pool
    sample, start, feature, level = kernels.changed_levels(pool, case.data)
    np.testing.assert_array_equal(sample, dense(case, pool)[1])
    np.testing.assert_array_equal(start, pool.ends)
    for c, i in enumerate(sample):
        mine = slice(start[c], start[c + 1])
        changes = dict(zip(feature[mine], level[mine], strict=True))
        assert list(changes) == sorted(changes)
        for j, new in changes.items():
            assert (new == -1) == (case.data.top[0, j] >= 0)
            assert new != case.problem.z[i, j]
        assert entries_of(case, pool.sign[c], changes) == described(pool, sample)[c][-1]


# ---------------------------------------------------------------- sparse linear rows


NO_DATA = kernels.Data(np.zeros((0, 0)), *[np.zeros(0, int)] * 9)


@pytest.mark.parametrize("seed", range(3))
def test_linear_rows(seed):
    """Among them one without entries, and one that names a coordinate twice."""
    rng, E = np.random.default_rng(seed), 6
    index = [rng.choice(E, size, replace=False) for size in (2, 0, 6, 1)] + [np.array([4, 1, 4])]
    rows = [(columns, rng.normal(size=columns.size), 0.0) for columns in index]
    matrix = np.zeros((len(rows), E))
    for r, (columns, values, _) in enumerate(rows):
        np.add.at(matrix[r], columns, values)
    sparse = LinearRows(rows)
    theta, y, D = rng.normal(size=E), rng.normal(size=len(rows)), rng.random(len(rows))
    np.testing.assert_allclose(sparse.times(theta), matrix @ theta, atol=1e-14)
    np.testing.assert_allclose(sparse.transposed_times(y, E), matrix.T @ y, atol=1e-14)
    for apart, some in (([], slice(None)), ([5, 0], slice(0, 0)), ([1], slice(None)), ([2, 5], [1, 3, 4])):
        fold, few = (
            kernels.fold(E, np.array(apart, int), NO_DATA),
            LinearRows([row for row in np.array(rows, object)[some]]),
        )
        core, side, diagonal = (rng.normal(size=(a, b)) for a, b in ((6, 6), (6, 6), (1, 6)))
        C = fold.n_core
        M = kernels.Folded(core[:C, :C] + core[:C, :C].T, side[C:, :C], diagonal[0, C:])
        before = unfolded(fold, M)
        few.add_gram(M, fold.position, D[some])
        expected = before + matrix[some].T @ (D[some, None] * matrix[some])
        np.testing.assert_allclose(unfolded(fold, M), expected, atol=1e-14)
