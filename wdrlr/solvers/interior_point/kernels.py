"""Compiled loops of the tailored solver: separation, the pool of cuts, the Newton system, the dual point.

Coordinates. ``theta`` has the length E: theta[0] the intercept, theta[1 : 1 + n] the slopes of the numbers, then one
score for every level but the most common one of each feature (score 0), then for a feature with four or more levels
its top and its bottom (see ``coordinates``), and last lam. The argument of a cut's log-loss is

    a = sign * (theta[0] + x_i . theta[1 : 1 + n] + sum of theta[e] over the entries e of the cut),

so a cut is a sign, a cost and a short list of entries. A cut that changes a feature with a top uses the top (or
bottom) in place of the level moved to: the adversary moves there whichever level it is, so ties need no cuts.

Notation, with that of ``model.problem``: N samples, C cuts, E coordinates; of each cut ``mult`` is the multiplier and
``slack`` the slack, t the slope of its log-loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wdrlr.solvers.interior_point.compilation import jit

NO_CURVE = 1e-14
"""Weight of R R' below which a cut is left out of ``gram``."""
LIGHT = 1e-3
"""Times w_i: lighter cuts give no mass in ``absorb``."""
BENT = 0.1
"""Of mass t (1 - t): by how much v may change in ``absorb``."""
KEPT = 0.5
"""Of its mass, that a cut keeps in ``absorb``."""


class Pool(NamedTuple):
    """The cuts in hand, ordered by sample."""

    start: np.ndarray  # (N + 1,): the cuts of sample i are start[i] : start[i + 1]
    sign: np.ndarray  # (C,): a = sign * f, that is -1 times the label of the cut
    cost: np.ndarray  # (C,): transport cost
    ends: np.ndarray  # (C + 1,): the entries of cut c are entry[ends[c] : ends[c + 1]]
    entry: np.ndarray  # coordinates beyond intercept and numbers that f sums up
    n_changes: np.ndarray  # (C,): changed categorical features

    @property
    def n_cuts(self) -> int:
        """C"""
        return len(self.sign)

    @property
    def counts(self) -> np.ndarray:
        """The number of cuts of each sample; shape (N,)."""
        return self.start[1:] - self.start[:-1]


class Data(NamedTuple):
    """The samples, as the kernels read them."""

    x: np.ndarray  # (N, n)
    z: np.ndarray  # (N, m): levels, counted through over all features
    y: np.ndarray  # (N,)
    w: np.ndarray  # (N,)
    offsets: np.ndarray  # (m + 1,): the levels of feature j are offsets[j] : offsets[j + 1]
    column: np.ndarray  # (levels,): the coordinate of a level's score, -1 for the most common level
    top: np.ndarray  # (2, m): the coordinates of a feature's top and bottom, -1 for none


class LevelCosts(NamedTuple):
    """What changes of levels cost, in the method's unit."""

    single: np.ndarray  # (m,): each change of the feature, inf where none may happen
    start: np.ndarray  # (m + 1,): the costs of feature j are matrix[start[j] : start[j + 1]], if there are any
    matrix: np.ndarray  # row by row, from the row's level to the column's


def empty_pool(n_samples: int, E: int) -> Pool:
    """A pool without cuts for E coordinates."""
    return Pool(
        np.zeros(n_samples + 1, np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros(1, np.int64),
        np.zeros(0, np.int16 if E < 2**15 else np.int32),
        np.zeros(0, np.int32),
    )


# ---------------------------------------------------------------- separation (Algorithm 2) and the pool


@jit
def _log_loss(a: float) -> float:
    return a + np.log1p(np.exp(-a)) if a > 0 else np.log1p(np.exp(a))


@jit
def _best_moves(score: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every level the gain and the code of the best other level that raises (row 0) or lowers (row 1) f."""
    gain = np.full((2, score.size), -1.0)
    best = np.full((2, score.size), -1, np.int32)
    for j in range(offsets.size - 1):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            first, second = -1, -1
            for v in range(offsets[j], offsets[j + 1]):
                if first < 0 or sign * score[v] > sign * score[first]:
                    first, second = v, first
                elif second < 0 or sign * score[v] > sign * score[second]:
                    second = v
            for v in range(offsets[j], offsets[j + 1]):
                u = second if v == first else first
                if u >= 0:
                    best[side, v] = u
                    gain[side, v] = sign * (score[u] - score[v])
    return gain, best


@jit
def _cost(costs: LevelCosts, offsets: np.ndarray, j: int, old: int, new: int) -> float:
    """What it costs to change feature j from one level to another; levels counted through."""
    if costs.start[j] == costs.start[j + 1]:
        return costs.single[j] if old != new else 0.0
    return costs.matrix[costs.start[j] + (old - offsets[j]) * (offsets[j + 1] - offsets[j]) + new - offsets[j]]


@jit
def _with_room(numbers: np.ndarray, target: np.ndarray, more: int) -> tuple[np.ndarray, np.ndarray]:
    """The arrays, if need be with room for twice as many steps and more."""
    if len(target) >= more:
        return numbers, target
    longer, targets = np.empty((2 * more, 3)), np.empty(2 * more, np.int32)
    longer[: len(target)], targets[: len(target)] = numbers, target
    return longer, targets


@jit
def _paying_steps(
    score: np.ndarray, best_code: np.ndarray, data: Data, costs: LevelCosts, lam: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps along the envelope of each feature from each level (see ``separation``) that pay: gain > lam cost.

    Returns
    -------
    start : (2 V + 1,), the steps of level v are start[v] : start[v + 1] for cuts with a = f, and those of V + v with
        a = -f, V the number of all levels
    numbers : (number of steps, 3), gain, cost, and gain / cost, which falls from step to step
    target : (number of steps,), the level that the step leads to, -1 for the best code
    """
    V = score.size
    gain, best = _best_moves(score, data.offsets)
    start = np.zeros(2 * V + 1, np.int64)
    numbers, target = np.empty((2 * V, 3)), np.empty(2 * V, np.int32)
    q = 0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        for j in range(data.offsets.size - 1):
            coded = np.isfinite(best_code[side, j])
            for v in range(data.offsets[j], data.offsets[j + 1]):
                numbers, target = _with_room(numbers, target, q + 1)
                if costs.start[j] < costs.start[j + 1]:
                    numbers, target, q = _envelope(score, sign, data.offsets, costs, j, v, lam, numbers, target, q)
                else:
                    g = sign * (best_code[side, j] - score[v]) if coded else gain[side, v]
                    if g > lam * costs.single[j]:
                        numbers[q] = g, costs.single[j], g / costs.single[j]
                        target[q] = -1 if coded else best[side, v]
                        q += 1
                start[side * V + v + 1] = q
    return start, numbers[:q], target[:q]


@jit
def _envelope(
    score: np.ndarray,
    sign: float,
    offsets: np.ndarray,
    costs: LevelCosts,
    j: int,
    v: int,
    lam: float,
    numbers: np.ndarray,
    target: np.ndarray,
    q: int,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Add the steps that pay from level v of feature j to those in hand; the next one is the steepest."""
    here, paid, last = v, 0.0, np.inf
    while True:
        to, steepest, highest = -1, lam, 0.0
        for u in range(offsets[j], offsets[j + 1]):
            higher, dearer = sign * (score[u] - score[here]), max(_cost(costs, offsets, j, v, u) - paid, 0.0)
            if higher <= 0 or not np.isfinite(dearer):
                continue
            chord = higher / dearer if dearer > 0 else np.inf
            if chord > steepest or (chord == steepest and to >= 0 and higher > highest):
                to, steepest, highest = u, chord, higher
        if to < 0:
            return numbers, target, q
        numbers, target = _with_room(numbers, target, q + 1)
        dearer = max(_cost(costs, offsets, j, v, to) - paid, 0.0)
        last = min(steepest, last)  # rounding could make it rise
        numbers[q] = highest, dearer, last
        target[q] = to
        here, paid = to, paid + dearer
        q += 1


@jit
def separate(
    theta: np.ndarray,
    best_code: np.ndarray,
    data: Data,
    costs: LevelCosts,
    label_cost: float,
    threshold: np.ndarray,
    pool: Pool,
) -> tuple[np.ndarray, np.ndarray, Pool]:
    """Algorithm 2 for every sample, p = 1: the value of its worst cut, and the cuts above the threshold.

    Values are those of the levels' scores, and decide what is worst and what is new. The new cuts name tops and
    bottoms: where these lie beyond their levels' scores, L(a) - lam cost of a new cut is above ``worst``. Only steps
    that gain more than lam times their cost are sorted, since no others can pay.

    Parameters
    ----------
    theta : (E,), lam >= 0, tops at or above and bottoms at or below the scores of their levels
    best_code : (2, m), the highest and the lowest score of any code of a feature, nan where it has levels only
    costs, label_cost : of changing a level and the label; inf: labels are never changed
    threshold : (N,), a label whose worst value is above it yields its worst cut, unless the pool has that cut
    pool : the cuts known

    Returns
    -------
    worst : (N,), max over z and label of L(a) - lam cost
    owner : (Q,), samples of the new cuts, ascending; a sample has at most two, its own label's first
    new : Pool of the new cuts in this order; its ``start`` is the old pool's and means nothing
    """
    N, m = data.z.shape
    n = data.x.shape[1]
    lam = theta[theta.size - 1]
    score = np.zeros(data.column.size)
    for v in range(score.size):
        if data.column[v] >= 0:
            score[v] = theta[data.column[v]]
    start, numbers, target = _paying_steps(score, best_code, data, costs, lam)
    growth, decay = np.exp(np.minimum(numbers[:, 0], 700.0)), np.exp(-lam * numbers[:, 1])
    paying, n_paying = _paying_features(start, data.offsets)

    worst = np.empty(N)
    q, size = 0, max(64, 4 * N)
    owner = np.empty(2 * N, np.int32)
    sign = np.empty(2 * N)
    cost = np.empty(2 * N)
    n_changes = np.empty(2 * N, np.int32)
    ends = np.zeros(2 * N + 1, np.int64)
    entry = np.empty(size, pool.entry.dtype)
    most = 0  # steps of one sample
    for j in range(m):
        widest = 0
        for v in range(data.offsets[j], data.offsets[j + 1]):
            for row in (v, score.size + v):
                widest = max(widest, start[row + 1] - start[row])
        most += widest
    step = np.empty(most, np.int64)
    feature = np.empty(most, np.int32)
    codes = np.empty(m, np.int32)
    for i in range(N):
        f = theta[0]
        for r in range(n):
            f += data.x[i, r] * theta[1 + r]
        for j in range(m):
            f += score[data.z[i, j]]
        worst[i] = -np.inf
        for flip in range(2 if np.isfinite(label_cost) else 1):
            sgn = data.y[i] if flip else -data.y[i]
            side = 0 if sgn > 0 else 1
            first = side * score.size
            count = _sort_steps(data.z[i], first, start, numbers, paying[side, : n_paying[side]], step, feature)
            d = _best_count(sgn * f, numbers, growth, decay, lam, step[:count])
            gained, spent = 0.0, 0.0
            for k in range(d):
                gained += numbers[step[k], 0]
                spent += numbers[step[k], 1]
            if flip:
                spent += label_cost
            value = _log_loss(sgn * f + gained) - lam * spent
            worst[i] = max(worst[i], value)
            if value <= threshold[i]:
                continue

            for j in range(m):
                codes[j] = data.column[data.z[i, j]]
            changes = 0
            for k in range(d):
                j = feature[k]
                changes += step[k] == start[first + data.z[i, j]]  # the first step of its feature
                codes[j] = data.top[side, j] if data.top[side, j] >= 0 else data.column[target[step[k]]]
            end = ends[q]
            if end + m > entry.size:
                longer = np.empty(2 * entry.size + m, entry.dtype)
                longer[:end] = entry[:end]
                entry = longer
            for j in range(m):
                if codes[j] >= 0:
                    entry[end] = codes[j]
                    end += 1
            if _is_known(pool, i, sgn, changes, entry, ends[q], end):
                continue
            owner[q] = i
            sign[q] = sgn
            n_changes[q] = changes
            cost[q] = spent
            q += 1
            ends[q] = end
    return worst, owner[:q], Pool(pool.start, sign[:q], cost[:q], ends[: q + 1], entry[: ends[q]], n_changes[:q])


@jit
def _paying_features(start: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features in which a change of some level pays, (2, m) by side, and how many there are (2,)."""
    m, V = offsets.size - 1, offsets[-1]
    paying = np.zeros((2, m), np.int32)
    n_paying = np.zeros(2, np.int32)
    for side in range(2):
        for j in range(m):
            if start[side * V + offsets[j + 1]] > start[side * V + offsets[j]]:
                paying[side, n_paying[side]] = j
                n_paying[side] += 1
    return paying, n_paying


@jit
def _sort_steps(
    z: np.ndarray,
    first: int,
    start: np.ndarray,
    numbers: np.ndarray,
    paying: np.ndarray,
    step: np.ndarray,
    feature: np.ndarray,
) -> int:
    """Fill in the steps that pay of a sample with levels z, the steepest first, and their features; the count."""
    count = 0
    for k in range(paying.size):
        j = paying[k]
        for q in range(start[first + z[j]], start[first + z[j] + 1]):
            steepness = numbers[q, 2]
            at = count
            while at > 0 and numbers[step[at - 1], 2] < steepness:
                step[at] = step[at - 1]
                feature[at] = feature[at - 1]
                at -= 1
            step[at] = q
            feature[at] = j
            count += 1
    return count


@jit
def _best_count(
    a: float, numbers: np.ndarray, growth: np.ndarray, decay: np.ndarray, lam: float, step: np.ndarray
) -> int:
    """The d that maximises L(a + the gains of the first d steps) - lam * their cost.

    Where nothing overflows, as the d that maximises (1 + e^a ...) e^(-lam cost), which takes no logarithms.
    """
    best, size = 0, abs(a)
    for q in step:
        size += numbers[q, 0] + lam * numbers[q, 1]
    if size < 600.0:
        odds, discount = np.exp(a), 1.0
        highest = 1.0 + odds
        for k in range(step.size):
            odds *= growth[step[k]]
            discount *= decay[step[k]]
            if (1.0 + odds) * discount > highest:
                highest = (1.0 + odds) * discount
                best = k + 1
        return best
    highest, price = _log_loss(a), 0.0
    for k in range(step.size):
        a += numbers[step[k], 0]
        price += lam * numbers[step[k], 1]
        value = _log_loss(a) - price
        if value > highest:
            highest = value
            best = k + 1
    return best


@jit
def _is_known(pool: Pool, i: int, sign: float, n_changes: int, entry: np.ndarray, begin: int, end: int) -> bool:
    for c in range(pool.start[i], pool.start[i + 1]):
        if pool.sign[c] != sign or pool.n_changes[c] != n_changes or pool.ends[c + 1] - pool.ends[c] != end - begin:
            continue
        same = True
        for k in range(end - begin):
            if pool.entry[pool.ends[c] + k] != entry[begin + k]:
                same = False
                break
        if same:
            return True
    return False


@jit
def merge(pool: Pool, keep: np.ndarray, owner: np.ndarray, new: Pool) -> tuple[Pool, np.ndarray]:
    """The pool without the cuts that are not kept, and with the new ones behind the old ones of each sample.

    Parameters
    ----------
    keep : (C,) bool
    owner : (Q,), samples of the new cuts, ascending: others would be lost
    new : Pool of Q cuts in the order of ``owner``, none of them among those kept; its ``start`` is not read

    Returns
    -------
    merged : Pool
    old : where each of its cuts was in ``pool``, -1 for a new one
    """
    N = pool.start.size - 1
    C = owner.size + keep.sum()
    length = new.ends[owner.size]
    for c in range(pool.sign.size):
        if keep[c]:
            length += pool.ends[c + 1] - pool.ends[c]
    start = np.zeros(N + 1, np.int64)
    sign = np.empty(C)
    cost = np.empty(C)
    ends = np.zeros(C + 1, np.int64)
    entry = np.empty(length, pool.entry.dtype)
    n_changes = np.empty(C, np.int32)
    old = np.full(C, -1, np.int64)
    k, u = 0, 0
    for i in range(N):
        for c in range(pool.start[i], pool.start[i + 1]):
            if keep[c]:
                old[k] = c
                k = _copy(pool, c, sign, cost, ends, entry, n_changes, k)
        while u < owner.size and owner[u] == i:
            k = _copy(new, u, sign, cost, ends, entry, n_changes, k)
            u += 1
        start[i + 1] = k
    return Pool(start, sign, cost, ends, entry, n_changes), old


@jit
def _copy(
    pool: Pool,
    c: int,
    sign: np.ndarray,
    cost: np.ndarray,
    ends: np.ndarray,
    entry: np.ndarray,
    n_changes: np.ndarray,
    k: int,
) -> int:
    sign[k], cost[k], n_changes[k] = pool.sign[c], pool.cost[c], pool.n_changes[c]
    at = ends[k]
    for e in range(pool.ends[c], pool.ends[c + 1]):
        entry[at] = pool.entry[e]
        at += 1
    ends[k + 1] = at
    return k + 1


@jit
def arguments(theta: np.ndarray, x: np.ndarray, pool: Pool) -> np.ndarray:
    """a of every cut, or its change if ``theta`` is a direction; shape (C,)."""
    a = np.empty(pool.sign.size)
    for i in range(pool.start.size - 1):
        base = theta[0]
        for r in range(x.shape[1]):
            base += x[i, r] * theta[1 + r]
        for c in range(pool.start[i], pool.start[i + 1]):
            total = base
            for e in range(pool.ends[c], pool.ends[c + 1]):
                total += theta[pool.entry[e]]
            a[c] = pool.sign[c] * total
    return a


@jit
def raise_s(
    s: np.ndarray,
    value: np.ndarray,
    wanted: np.ndarray,
    mult: np.ndarray,
    fresh: np.ndarray,
    w: np.ndarray,
    pool: Pool,
    fresh_slack: float,
    kept: float,
) -> None:
    """Set s_i: old cuts get the slack ``wanted`` on average, ``kept`` of it at least, fresh ones fresh_slack / w_i.

    Every sample has an old cut with a multiplier > 0, or its s_i is nan.
    """
    for i in range(pool.start.size - 1):
        total, mass, least = 0.0, 0.0, -np.inf
        for c in range(pool.start[i], pool.start[i + 1]):
            if fresh[c]:
                least = max(least, value[c] + fresh_slack / w[i])
            else:
                total += mult[c] * (value[c] + wanted[c])
                mass += mult[c]
                least = max(least, value[c] + kept * wanted[c])
        s[i] = max(total / mass, least)


# ---------------------------------------------------------------- the Newton system


@jit
def gram(E: int, x: np.ndarray, pool: Pool, t: np.ndarray, mult: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The Newton matrix of the cuts with s, slacks and multipliers eliminated; shape (E, E).

        sum_c mult t (1 - t) R R'  +  sum_i [ sum_c D A A' - (sum_c D A)(sum_c D A)' / sum_c D ],   D = mult / slack

    with R the row of a cut (a = R theta), A = (t R, -cost) its gradient, and the sums over the cuts of sample i. A
    sample with one cut only has nothing in the bracket. Cuts without changed features have the same entries and
    share one outer product, and the last term needs one a sample. A changed cut whose weight of R R',
    mult t (1 - t) + D t^2, is below NO_CURVE is left out of the parts with R, and so are the unchanged ones of a
    sample together. Needs multipliers >= 0 and slacks > 0.
    """
    n, last = x.shape[1], E - 1
    M = np.zeros((E, E))
    mean = np.zeros(E)  # sum_c D A of one sample, on its entries
    curve_on = np.zeros(E)  # sum_c of the weights of R R', on its entries
    touched = np.empty(E, np.int32)
    seen = np.zeros(E, np.bool_)
    for i in range(pool.start.size - 1):
        begin, end = pool.start[i], pool.start[i + 1]
        single = end - begin == 1
        changes = False
        home, n_touched = -1, 0
        sum_D, sum_curve, mean_0, mean_lam = 0.0, 0.0, 0.0, 0.0
        home_curve, home_g, home_lam = 0.0, 0.0, 0.0
        for c in range(begin, end):
            D = 0.0 if single else mult[c] / slack[c]
            curve = mult[c] * t[c] * (1 - t[c]) + D * t[c] * t[c]
            g = D * t[c] * pool.sign[c]
            sum_D += D
            sum_curve += curve
            mean_0 += g
            mean_lam += D * pool.cost[c]
            M[last, last] += D * pool.cost[c] * pool.cost[c]
            if pool.n_changes[c] == 0:
                home = c
                home_curve += curve
                home_g += g
                home_lam += g * pool.cost[c]
                continue
            if curve < NO_CURVE:
                continue
            changes = True
            M[0, last] -= g * pool.cost[c]
            for r in range(n):
                M[1 + r, last] -= g * pool.cost[c] * x[i, r]
            n_touched = _add_outer(M, pool, c, curve, g, g * pool.cost[c], mean, curve_on, seen, touched, n_touched)
        if home >= 0:
            if not changes and sum_D > 0:  # the bracket is a multiple of the one outer product: add it in one go
                home_curve -= home_g * home_g / sum_D
                sum_curve -= mean_0 * mean_0 / sum_D
                home_lam -= home_g * mean_lam / sum_D
                M[last, last] -= mean_lam * mean_lam / sum_D
                sum_D = 0.0
            M[0, last] -= home_lam
            for r in range(n):
                M[1 + r, last] -= home_lam * x[i, r]
            if home_curve > NO_CURVE:
                n_touched = _add_outer(
                    M, pool, home, home_curve, home_g, home_lam, mean, curve_on, seen, touched, n_touched
                )
        _add_numbers(M, x[i], sum_curve, curve_on, touched, n_touched)
        if sum_D > 0:
            _subtract_mean(M, x[i], sum_D, mean_0, mean_lam, mean, touched, n_touched)
        for k in range(n_touched):
            mean[touched[k]] = 0.0
            curve_on[touched[k]] = 0.0
            seen[touched[k]] = False
    # Each pair of coordinates was added on one side of the diagonal or the other.
    for r in range(E):
        for q in range(r):
            M[r, q] += M[q, r]
            M[q, r] = M[r, q]
    return M


@jit
def _add_numbers(
    M: np.ndarray, x: np.ndarray, sum_curve: float, curve_on: np.ndarray, touched: np.ndarray, n_touched: int
) -> None:
    """The parts of sum curve R R' with the intercept or numbers, for the cuts of one sample, whose numbers are x."""
    M[0, 0] += sum_curve
    for r in range(x.size):
        M[0, 1 + r] += sum_curve * x[r]
        for q in range(r, x.size):
            M[1 + r, 1 + q] += sum_curve * x[r] * x[q]
        for k in range(n_touched):
            M[1 + r, touched[k]] += x[r] * curve_on[touched[k]]


@jit
def _subtract_mean(
    M: np.ndarray,
    x: np.ndarray,
    sum_D: float,
    mean_0: float,
    mean_lam: float,
    mean: np.ndarray,
    touched: np.ndarray,
    n_touched: int,
) -> None:
    """M -= (sum D A)(sum D A)' / sum D for the cuts of one sample, whose numbers are x."""
    last = M.shape[0] - 1
    share = mean_0 / sum_D
    M[0, 0] -= share * mean_0
    M[0, last] += share * mean_lam
    M[last, last] -= mean_lam * mean_lam / sum_D
    for r in range(x.size):
        part = share * x[r]
        M[0, 1 + r] -= part * mean_0
        M[1 + r, last] += part * mean_lam
        for q in range(r, x.size):
            M[1 + r, 1 + q] -= part * mean_0 * x[q]
        for k in range(n_touched):
            M[1 + r, touched[k]] -= part * mean[touched[k]]
    for k in range(n_touched):
        j = touched[k]
        part = mean[j] / sum_D
        M[0, j] -= part * mean_0
        M[j, last] += part * mean_lam
        if part != 0.0:
            for k2 in range(k, n_touched):
                M[j, touched[k2]] -= part * mean[touched[k2]]


@jit
def _add_outer(
    M: np.ndarray,
    pool: Pool,
    c: int,
    curve: float,
    g: float,
    g_lam: float,
    mean: np.ndarray,
    curve_on: np.ndarray,
    seen: np.ndarray,
    touched: np.ndarray,
    n_touched: int,
) -> int:
    """Add curve R R' and the lam column of one cut, on its entries; note which coordinates its sample touches."""
    last = M.shape[0] - 1
    for k in range(pool.ends[c], pool.ends[c + 1]):
        j = pool.entry[k]
        row = M[j]
        for k2 in range(k, pool.ends[c + 1]):
            row[pool.entry[k2]] += curve
        M[0, j] += curve
        row[last] -= g_lam
        curve_on[j] += curve
        mean[j] += g
        if not seen[j]:
            seen[j] = True
            touched[n_touched] = j
            n_touched += 1
    return n_touched


@jit
def _add_row(gradient: np.ndarray, amount: float, i: int, x: np.ndarray, pool: Pool, c: int) -> None:
    """gradient += amount * R (without the sign), R the row of cut c of sample i."""
    gradient[0] += amount
    for r in range(x.shape[1]):
        gradient[1 + r] += amount * x[i, r]
    for k in range(pool.ends[c], pool.ends[c + 1]):
        gradient[pool.entry[k]] += amount


@jit
def gradient(
    E: int,
    x: np.ndarray,
    w: np.ndarray,
    pool: Pool,
    t: np.ndarray,
    mult: np.ndarray,
    slack: np.ndarray,
    aim: np.ndarray,
) -> np.ndarray:
    """What the cuts put on the right-hand side, sum_c A (aim_c - D_c (sum aim - w_i) / sum D); shape (E,).

    ``aim`` (C,): the multipliers that would reach the targets of the products at the present slacks. The sums are over
    the cuts of a sample; A = (t R, -cost), D = mult / slack. Every sample has a cut with a multiplier > 0.
    """
    g = np.zeros(E)
    for i in range(pool.start.size - 1):
        sum_D, surplus = 0.0, -w[i]
        for c in range(pool.start[i], pool.start[i + 1]):
            sum_D += mult[c] / slack[c]
            surplus += aim[c]
        for c in range(pool.start[i], pool.start[i + 1]):
            amount = aim[c] - mult[c] / slack[c] / sum_D * surplus
            g[E - 1] -= amount * pool.cost[c]
            _add_row(g, amount * t[c] * pool.sign[c], i, x, pool, c)
    return g


@jit
def directions(
    change: np.ndarray, w: np.ndarray, pool: Pool, mult: np.ndarray, slack: np.ndarray, aim: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The changes of s (N,), and the multipliers after a full step (C,), from those of the cuts' values (C,).

    They solve full + D (ds_i - change) = aim for each cut and sum full = w_i for each sample, D = mult / slack and
    ``aim`` as in ``gradient``. Every sample has a cut with a multiplier > 0.
    """
    ds = np.empty(w.size)
    full = np.empty(change.size)
    for i in range(w.size):
        sum_D, total = 0.0, -w[i]
        for c in range(pool.start[i], pool.start[i + 1]):
            sum_D += mult[c] / slack[c]
            total += aim[c] + mult[c] / slack[c] * change[c]
        ds[i] = total / sum_D
        for c in range(pool.start[i], pool.start[i + 1]):
            full[c] = aim[c] - mult[c] / slack[c] * (ds[i] - change[c])
    return ds, full


@jit
def dual_point(
    E: int, x: np.ndarray, w: np.ndarray, pool: Pool, mass: np.ndarray, v: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Make masses >= 0 that sum to w_i a sample, and v with slopes v / mass in [0, 1], in place.

    Negative masses become 0, and the others are scaled. A sample without a positive mass is left with none, which the
    bound allows, since s_i >= 0.

    Returns
    -------
    entropy : sum_c mass H(v / mass)
    spent : sum_c mass * cost
    balance : (E,) sum_c v R
    """
    balance = np.zeros(E)
    entropy, spent = 0.0, 0.0
    for i in range(pool.start.size - 1):
        total = 0.0
        for c in range(pool.start[i], pool.start[i + 1]):
            total += max(mass[c], 0.0)
        for c in range(pool.start[i], pool.start[i + 1]):
            if mass[c] <= 0:
                mass[c], v[c] = 0.0, 0.0
                continue
            t = min(max(v[c] / mass[c], 0.0), 1.0)
            mass[c] *= w[i] / total
            v[c] = mass[c] * t
            spent += mass[c] * pool.cost[c]
            if 0 < t < 1:
                entropy -= mass[c] * (t * np.log(t) + (1 - t) * np.log1p(-t))
            _add_row(balance, v[c] * pool.sign[c], i, x, pool, c)
    return entropy, spent, balance


@jit
def absorb(
    balance: np.ndarray, data: Data, costs: LevelCosts, pool: Pool, mass: np.ndarray, v: np.ndarray
) -> tuple[float, float, np.ndarray, int, float, np.ndarray, np.ndarray, np.ndarray]:
    """Cancel a small ``balance`` (E,), but for the numbers' part, by small changes of a dual point (not carried out).

    The intercept's share goes into v of the most flexible cut. Then each level's share is cancelled against the most
    common level of its feature: an amount eps of a cut with slope t that changes no feature yet is moved to that level,
    or from that level to the common one, which moves eps t of the balance, leaves the entropy as it is, and costs the
    change of a level. Only cuts that keep half of their mass are used. Where neither change may happen, the balance
    stays. It is 0 at tops, bottoms and lam.

    Returns
    -------
    entropy : the change of sum_c mass H(v / mass)
    spent : sum of all eps times their cost; inf if for some level there is no such cut, or the intercept's share is too
        large
    balance : (E,), what is left where ``spent`` is finite: the parts of numbers, and of features that may not change
    bent, dv : the cut whose v changes, and by how much
    cut, level, amount : (Q,) what mass moves: from which cut, to which level (counted through), how much
    """
    x, balance = data.x, balance.copy()
    cut = np.empty(data.column.size, np.int64)
    target = np.empty(data.column.size, np.int64)
    amount = np.empty(data.column.size)
    q, dv = 0, 0.0
    left = KEPT * mass
    steepest = np.zeros((2, data.column.size))  # by the sign of a cut and the level it has
    source = np.full((2, data.column.size), -1, np.int64)
    best, flexible, best_i = -1, 0.0, 0
    for i in range(pool.start.size - 1):
        for c in range(pool.start[i], pool.start[i + 1]):
            if pool.n_changes[c] > 0 or mass[c] <= LIGHT * data.w[i]:
                continue
            t = v[c] / mass[c]
            if v[c] * (1 - t) > flexible:
                best, flexible, best_i = c, v[c] * (1 - t), i
            side = 0 if pool.sign[c] > 0 else 1
            for j in range(data.z.shape[1]):
                level = data.z[i, j]
                if t > steepest[side, level]:
                    steepest[side, level] = t
                    source[side, level] = c
    entropy, spent = 0.0, 0.0
    if balance[0] != 0.0:
        if best < 0:
            return 0.0, np.inf, balance, best, dv, cut[:0], target[:0], amount[:0]
        dv = -balance[0] * pool.sign[best]
        if not abs(dv) <= BENT * flexible:
            return 0.0, np.inf, balance, best, dv, cut[:0], target[:0], amount[:0]
        t = (v[best] + dv) / mass[best]
        entropy = mass[best] * (_entropy(t) - _entropy(v[best] / mass[best]))
        _add_row(balance, dv * pool.sign[best], best_i, x, pool, best)
        side = 0 if pool.sign[best] > 0 else 1
        for j in range(data.z.shape[1]):  # mass that it gives is moved at its new slope
            if source[side, data.z[best_i, j]] == best:
                steepest[side, data.z[best_i, j]] = t
    for j in range(data.offsets.size - 1):
        common = data.offsets[j]
        while data.column[common] >= 0:
            common += 1
        for level in range(data.offsets[j], data.offsets[j + 1]):
            e = data.column[level]
            if e < 0 or balance[e] == 0.0:
                continue
            side = 0 if balance[e] > 0 else 1
            cost, back = _cost(costs, data.offsets, j, level, common), _cost(costs, data.offsets, j, common, level)
            if np.isinf(cost) and np.isinf(back):
                continue
            t, c, to = steepest[side, level], source[side, level], common
            if np.isinf(cost) or (np.isfinite(back) and steepest[1 - side, common] > t):
                t, c, to, cost = steepest[1 - side, common], source[1 - side, common], level, back
            if t == 0.0 or not abs(balance[e]) / t <= left[c]:
                return entropy, np.inf, balance, best, dv, cut[:0], target[:0], amount[:0]
            cut[q], target[q], amount[q] = c, to, abs(balance[e]) / t
            left[c] -= amount[q]
            spent += amount[q] * cost
            balance[e] = 0.0
            q += 1
    return entropy, spent, balance, best, dv, cut[:q], target[:q], amount[:q]


@jit
def changed_levels(pool: Pool, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The changes of every cut, as in ``certificate.DualPoint``.

    Returns
    -------
    sample : (C,)
    start : (C + 1,), feature, level : (changes,), level as a code within the feature, -1 for a top or bottom
    """
    N, m = data.z.shape
    C = pool.sign.size
    level_of = np.full(pool.entry.max() + 1 if pool.entry.size else 1, -1, np.int64)  # of a coordinate; -1: a top
    owner = np.full(level_of.size, -1, np.int64)
    common = np.empty(m, np.int64)
    for j in range(m):
        for v in range(data.offsets[j], data.offsets[j + 1]):
            e = data.column[v]
            if e < 0:
                common[j] = v - data.offsets[j]
            elif e < level_of.size:
                level_of[e], owner[e] = v - data.offsets[j], j
        for side in range(2):
            if 0 <= data.top[side, j] < level_of.size:
                owner[data.top[side, j]] = j
    sample = np.empty(C, np.int64)
    start = np.zeros(C + 1, np.int64)
    feature = np.empty(pool.n_changes.sum(), np.int64)
    level = np.empty(feature.size, np.int64)
    q = 0
    for i in range(N):
        for c in range(pool.start[i], pool.start[i + 1]):
            sample[c] = i
            if pool.n_changes[c] > 0:
                k = pool.ends[c]
                for j in range(m):
                    to = common[j]
                    if k < pool.ends[c + 1] and owner[pool.entry[k]] == j:
                        to = level_of[pool.entry[k]]
                        k += 1
                    if to != data.z[i, j] - data.offsets[j]:
                        feature[q], level[q] = j, to
                        q += 1
            start[c + 1] = q
    return sample, start, feature[:q], level[:q]


@jit
def _entropy(t: float) -> float:
    return -t * np.log(t) - (1 - t) * np.log1p(-t) if 0 < t < 1 else 0.0


# ---------------------------------------------------------------- sparse linear rows


@jit
def rows_times(ends: np.ndarray, index: np.ndarray, value: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Rows . theta; shape (number of rows,)."""
    result = np.zeros(ends.size - 1)
    for r in range(result.size):
        for k in range(ends[r], ends[r + 1]):
            result[r] += value[k] * theta[index[k]]
    return result


@jit
def rows_transposed_times(ends: np.ndarray, index: np.ndarray, value: np.ndarray, y: np.ndarray, E: int) -> np.ndarray:
    """Rows' . y; shape (E,)."""
    result = np.zeros(E)
    for r in range(y.size):
        for k in range(ends[r], ends[r + 1]):
            result[index[k]] += value[k] * y[r]
    return result


@jit
def add_rows_gram(M: np.ndarray, ends: np.ndarray, index: np.ndarray, value: np.ndarray, D: np.ndarray) -> None:
    """M += Rows' diag(D) Rows."""
    for r in range(D.size):
        for k in range(ends[r], ends[r + 1]):
            for k2 in range(ends[r], ends[r + 1]):
                M[index[k], index[k2]] += D[r] * value[k] * value[k2]
