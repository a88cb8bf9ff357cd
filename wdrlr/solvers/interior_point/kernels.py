"""Compiled loops of the tailored solver: separation, the pool of cuts, the Newton system, the dual point.

Coordinates. ``theta`` has the length E: theta[0] the intercept, theta[1 : 1 + n] the slopes of the numbers, then one
score for every level but the most common one of each feature (score 0), then tops, bottoms and sizes (see
``coordinates``), and last lam. The score of sample i is f_i = theta[0] + x_i . theta[1 : 1 + n] + sum of its levels'
scores. A cut changes some features of its sample; the argument of its log-loss is

    a = sign * (f_i + sum over its changes of theta[e] - score of the level that was there),

e the coordinate that a change leads to, -1 for a score of 0. A cut that changes a feature with a top uses the top (or
bottom) in place of the level moved to: the adversary moves there whichever level it is, so ties need no cuts.

Notation, with that of ``model.problem``: N samples, C cuts, E coordinates; of each cut ``mult`` is the multiplier and
``slack`` the slack, t the slope of its log-loss. R is the row of a cut, a = R theta, and R_i the row of f_i. What
numbers do in f and in sums over the samples is left to BLAS.

Sums over many samples are sums over blocks of samples, see ``model.threads``; so are all functions of the pool, which
know nothing of blocks but that ``ends`` need not begin at 0: a block's ``Part`` has its own data and its own pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import blas

from wdrlr.model.problem import log_loss
from wdrlr.model.threads import MOST_BLOCKS, blocks, in_blocks
from wdrlr.solvers.interior_point.compilation import helper, jit

T = TypeVar("T")

MOST_LEVELS_OF_NARROW = 6
"""A feature with more has its part of the Newton matrix summed level by level; with fewer, BLAS is faster."""
NO_CURVE = 1e-14
"""Weight of R R' below which ``gram`` takes the slope of a changed cut for 0."""
ROWS_AT_ONCE = 2048
"""That BLAS multiplies, in ``gram``."""
UNCHANGED = -2
"""In place of the coordinate that a change leads to."""
LIGHT = 1e-3
"""Times w_i: lighter cuts give no mass in ``absorb``."""
BENT = 0.1
"""Of mass t (1 - t): by how much v may change in ``absorb``."""
KEPT = 0.5
"""Of its mass, that a cut keeps in ``absorb``."""


class Pool(NamedTuple):
    """The cuts in hand, ordered by sample."""

    start: np.ndarray  # (N + 1,): the cuts of sample i are start[i] : start[i + 1]; it begins with 0
    sign: np.ndarray  # (C,): a = sign * f, that is -1 times the label of the cut
    cost: np.ndarray  # (C,): transport cost
    ends: np.ndarray  # (C + 1,): the changes of cut c are ends[c] : ends[c + 1]
    feature: np.ndarray  # (changes,): ascending within a cut
    entry: np.ndarray  # (changes,): the coordinate that a change leads to, -1 for the most common level

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
    narrow: np.ndarray  # the coordinates of the levels of features with few levels, ascending
    place: np.ndarray  # (levels,): 1 + n + the place of a level's coordinate among these, 0 for none
    wide: np.ndarray  # the other features

    @property
    def width(self) -> int:
        """n + m"""
        return self.x.shape[1] + self.z.shape[1]

    def of(self, rows: slice) -> Data:
        """Those of some samples."""
        return self._replace(x=self.x[rows], z=self.z[rows], y=self.y[rows], w=self.w[rows])


def make_data(
    x: np.ndarray,
    z: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    n_levels: Sequence[int],
    column: np.ndarray,
    top: np.ndarray,
) -> Data:
    """The data of samples whose levels z are counted through; ``column`` and ``top`` as in ``Data``."""
    levels = np.array(n_levels, dtype=np.int64)
    is_narrow = levels <= MOST_LEVELS_OF_NARROW
    narrow = column[np.repeat(is_narrow, levels)]
    narrow = np.sort(narrow[narrow >= 0])
    among = np.isin(column, narrow)
    place = np.zeros(len(column), dtype=np.int32)
    place[among] = 1 + x.shape[1] + np.searchsorted(narrow, column[among])
    offsets = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    return Data(x, z, y.astype(float), w.astype(float), offsets, column, top, narrow, place, np.flatnonzero(~is_narrow))


class Fold(NamedTuple):
    """The order of the coordinates in the Newton matrix: the core, then those apart, among which it is diagonal."""

    position: np.ndarray  # (E,): of each coordinate
    order: np.ndarray  # (E,): the coordinate at each position, ascending in the core and apart; lam is in the core
    n_core: int
    spot: np.ndarray  # (levels,): the position of a level's coordinate, -1 for the most common level
    dense: np.ndarray  # the positions of the intercept, the numbers and the levels of narrow features


class Folded(NamedTuple):
    """A symmetric matrix in the order of a fold."""

    core: np.ndarray  # (n_core, n_core)
    side: np.ndarray  # (E - n_core, n_core)
    diagonal: np.ndarray  # (E - n_core,)


def fold(E: int, apart: np.ndarray, data: Data) -> Fold:
    """That of E coordinates with these apart."""
    order = np.concatenate([np.delete(np.arange(E), apart), apart])
    position = np.argsort(order)
    spot = np.where(data.column >= 0, position[data.column], -1)
    dense = position[np.concatenate([np.arange(1 + data.x.shape[1]), data.narrow])]
    return Fold(position, order, E - len(apart), spot, dense)


class Pairs(NamedTuple):
    """Slacks and multipliers of some constraints, or their changes."""

    slack: np.ndarray
    multiplier: np.ndarray

    @property
    def weight(self) -> np.ndarray:
        """D, the multiplier over the slack."""
        return self.multiplier / self.slack


class LevelCosts(NamedTuple):
    """What changes of levels cost, in the method's unit."""

    single: np.ndarray  # (m,): each change of the feature, inf where none may happen
    start: np.ndarray  # (m + 1,): the costs of feature j are matrix[start[j] : start[j + 1]], if there are any
    matrix: np.ndarray  # row by row, from the row's level to the column's


class Steps(NamedTuple):
    """Changes of levels that pay, and the features in which there are any. V is the number of all levels."""

    start: np.ndarray  # (2 V + 1,): those of level v are start[v] : start[v + 1] for a = f, of V + v for a = -f
    numbers: np.ndarray  # (steps, 5): gain, cost, gain / cost, which falls from step to step, e^gain, e^(-lam cost)
    target: np.ndarray  # (steps,): the level that the step leads to, -1 for the best code
    paying: np.ndarray  # (2 m,): features; those of side s are paying[of_side[s] : of_side[s + 1]]
    of_side: np.ndarray  # (3,): it begins with 0


def empty_pool(n_samples: int) -> Pool:
    """A pool without cuts."""
    none = np.zeros(0, np.int32)
    return Pool(np.zeros(n_samples + 1, np.int64), np.zeros(0), np.zeros(0), np.zeros(1, np.int64), none, none)


class Part(NamedTuple):
    """A block of samples with their cuts, and where these are among all."""

    data: Data
    pool: Pool
    rows: slice
    cuts: slice


def _in_parts(work: Callable[[Part], T], data: Data, pool: Pool, most: int = MOST_BLOCKS) -> list[T]:
    """What ``work`` returns for each block of samples, of which there are at most so many."""

    def of(rows: slice) -> T:
        part, cuts = _cuts_of(pool, rows)
        return work(Part(data.of(rows), part, rows, cuts))

    rows = blocks(len(data.w), data.width, most)
    if len(rows) == 1:
        return [work(Part(data, pool, rows[0], slice(0, pool.n_cuts)))]
    return in_blocks(of, rows)


def _cuts_of(pool: Pool, rows: slice) -> tuple[Pool, slice]:
    """The cuts of some samples, and where they are among all."""
    start = pool.start[rows.start : rows.stop + 1]
    cuts = slice(int(start[0]), int(start[-1]))
    return _some_cuts(pool, cuts)._replace(start=start - cuts.start), cuts


def _some_cuts(pool: Pool, cuts: slice) -> Pool:
    """These cuts; ``start`` is the old pool's and means nothing."""
    return pool._replace(sign=pool.sign[cuts], cost=pool.cost[cuts], ends=pool.ends[cuts.start : cuts.stop + 1])


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _added(parts: Sequence[np.ndarray]) -> np.ndarray:
    return reduce(np.add, parts)


# ---------------------------------------------------------------- separation (Algorithm 2) and the pool


@helper
def _log_loss(a: float) -> float:
    return a + np.log1p(np.exp(-a)) if a > 0 else np.log1p(np.exp(a))


@jit
def _paying_steps(
    score: np.ndarray,
    best_code: np.ndarray,
    offsets: np.ndarray,
    costs: LevelCosts,
    lam: float,
    steps: Steps,
) -> None:
    """Fill in the steps along each feature's envelope from each level (see ``separation``) with gain > lam cost."""
    V, start, numbers, target = score.size, steps.start, steps.numbers, steps.target
    start[0] = 0
    q, n_paying = 0, 0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        for j in range(offsets.size - 1):
            begin, end = offsets[j], offsets[j + 1]
            given = costs.start[j] < costs.start[j + 1]
            coded = np.isfinite(best_code[side, j])
            first, second = -1, -1  # the best levels
            for v in range(begin, end):
                if first < 0 or sign * score[v] > sign * score[first]:
                    first, second = v, first
                elif second < 0 or sign * score[v] > sign * score[second]:
                    second = v
            for v in range(begin, end):
                here, paid, last = v, 0.0, np.inf
                while given:  # the next step is the steepest
                    to, steepest, highest, dearest = -1, lam, 0.0, 0.0
                    for u in range(begin, end):
                        price = costs.matrix[costs.start[j] + (v - begin) * (end - begin) + u - begin]
                        higher, dearer = sign * (score[u] - score[here]), max(price - paid, 0.0)
                        if higher <= 0 or not np.isfinite(dearer):
                            continue
                        chord = higher / dearer if dearer > 0 else np.inf
                        if chord > steepest or (chord == steepest and to >= 0 and higher > highest):
                            to, steepest, highest, dearest = u, chord, higher, dearer
                    if to < 0:
                        break
                    last = min(steepest, last)  # rounding could make it rise
                    numbers[q, 0] = highest
                    numbers[q, 1] = dearest
                    numbers[q, 2] = last
                    target[q] = to
                    here, paid = to, paid + dearest
                    q += 1
                best = second if v == first else first
                if not given and (coded or best >= 0):
                    gain = sign * ((best_code[side, j] if coded else score[best]) - score[v])
                    if gain > lam * costs.single[j]:
                        numbers[q, 0] = gain
                        numbers[q, 1] = costs.single[j]
                        numbers[q, 2] = gain / costs.single[j]
                        target[q] = -1 if coded else best
                        q += 1
                start[side * V + v + 1] = q
            if start[side * V + begin] < q:
                steps.paying[n_paying] = j
                n_paying += 1
        steps.of_side[side + 1] = n_paying
    for k in range(q):
        numbers[k, 3] = np.exp(min(numbers[k, 0], 700.0))
        numbers[k, 4] = np.exp(-lam * numbers[k, 1])


def separate(
    at: Scores,
    lam: float,
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
    at, lam >= 0 : where
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
    V = len(at.score)
    n_steps = 2 * (V + len(costs.matrix))  # at most, since each step from a level leads to a higher one
    steps = Steps(
        np.empty(2 * V + 1, np.int64),
        np.empty((n_steps, 5)),
        np.empty(n_steps, np.int32),
        np.empty(2 * data.z.shape[1], np.int64),
        np.zeros(3, np.int64),
    )
    _paying_steps(at.score, best_code, data.offsets, costs, lam, steps)

    def of(part: Part) -> tuple[np.ndarray, ...]:
        N, m = part.data.z.shape
        worst, owner = np.empty(N), np.empty(2 * N, np.int32)
        new = Pool(
            part.pool.start,
            np.empty(2 * N),
            np.empty(2 * N),
            np.zeros(2 * N + 1, np.int64),
            np.empty(2 * N * m, np.int32),
            np.empty(2 * N * m, np.int32),
        )
        step, feature, codes = np.empty(V, np.int64), np.empty(V, np.int64), np.empty(m, np.int64)
        rows, limits = at.f[part.rows], threshold[part.rows]
        Q = _worst_cuts(
            rows,
            at.score,
            lam,
            part.data,
            steps,
            label_cost,
            limits,
            part.pool,
            new,
            owner,
            worst,
            step,
            feature,
            codes,
        )
        changes, ends = new.ends[Q], new.ends[: Q + 1]
        found = owner[:Q] + np.int32(part.rows.start)
        return worst, found, new.sign[:Q], new.cost[:Q], ends, new.feature[:changes], new.entry[:changes]

    worst, owner, sign, cost, ends, feature, entry = zip(*_in_parts(of, data, pool), strict=True)
    found = Pool(
        *(pool.start, _joined(sign), _joined(cost)),
        *(_laid_end_to_end(ends), _joined(feature), _joined(entry)),
    )
    return _joined(worst), _joined(owner), found


@jit
def _worst_cuts(
    f: np.ndarray,
    score: np.ndarray,
    lam: float,
    data: Data,
    steps: Steps,
    label_cost: float,
    threshold: np.ndarray,
    pool: Pool,
    new: Pool,
    owner: np.ndarray,
    worst: np.ndarray,
    step: np.ndarray,
    feature: np.ndarray,
    codes: np.ndarray,
) -> int:
    """Fill in what ``separate`` returns; the number of new cuts. The last three are room to work in, V and m long."""
    N, m = data.z.shape
    q = 0
    for i in range(N):
        worst[i] = -np.inf
        for flip in range(2 if np.isfinite(label_cost) else 1):
            sgn = data.y[i] if flip else -data.y[i]
            side = 0 if sgn > 0 else 1
            first = side * score.size
            count = _sort_steps(data.z[i], side, first, steps, step, feature)
            d = _best_count(sgn * f[i], steps.numbers, lam, step, count)
            gained, spent = 0.0, 0.0
            for k in range(d):
                gained += steps.numbers[step[k], 0]
                spent += steps.numbers[step[k], 1]
            if flip:
                spent += label_cost
            value = _log_loss(sgn * f[i] + gained) - lam * spent
            worst[i] = max(worst[i], value)
            if value <= threshold[i]:
                continue

            for j in range(m):
                codes[j] = UNCHANGED
            for k in range(d):
                j = feature[k]
                codes[j] = data.top[side, j] if data.top[side, j] >= 0 else data.column[steps.target[step[k]]]
            begin, end = new.ends[q], new.ends[q]
            for j in range(m):
                if codes[j] != UNCHANGED:
                    new.feature[end] = j
                    new.entry[end] = codes[j]
                    end += 1
            known = False
            for c in range(pool.start[i], pool.start[i + 1]):
                old, length = pool.ends[c], pool.ends[c + 1] - pool.ends[c]
                if pool.sign[c] != sgn or length != end - begin:
                    continue
                k = 0
                while (
                    k < length
                    and pool.entry[old + k] == new.entry[begin + k]
                    and pool.feature[old + k] == new.feature[begin + k]
                ):
                    k += 1
                known |= k == length
            if known:
                continue
            owner[q] = i
            new.sign[q] = sgn
            new.cost[q] = spent
            q += 1
            new.ends[q] = end
    return q


@helper
def _sort_steps(z: np.ndarray, side: int, first: int, steps: Steps, step: np.ndarray, feature: np.ndarray) -> int:
    """Fill in the steps that pay of a sample with levels z, the steepest first, and their features; the count."""
    count = 0
    for k in range(steps.of_side[side], steps.of_side[side + 1]):
        j = steps.paying[k]
        for q in range(steps.start[first + z[j]], steps.start[first + z[j] + 1]):
            steepness = steps.numbers[q, 2]
            at = count
            while at > 0 and steps.numbers[step[at - 1], 2] < steepness:
                step[at] = step[at - 1]
                feature[at] = feature[at - 1]
                at -= 1
            step[at] = q
            feature[at] = j
            count += 1
    return count


@helper
def _best_count(a: float, numbers: np.ndarray, lam: float, step: np.ndarray, count: int) -> int:
    """The d that maximises L(a + the gains of the first d steps) - lam * their cost.

    Where nothing overflows, as the d that maximises (1 + e^a ...) e^(-lam cost), which takes no logarithms.
    """
    best, size = 0, abs(a)
    for k in range(count):
        size += numbers[step[k], 0] + lam * numbers[step[k], 1]
    if size < 600.0:
        odds, discount = np.exp(a), 1.0
        highest = 1.0 + odds
        for k in range(count):
            odds *= numbers[step[k], 3]
            discount *= numbers[step[k], 4]
            if (1.0 + odds) * discount > highest:
                highest = (1.0 + odds) * discount
                best = k + 1
        return best
    highest, price = _log_loss(a), 0.0
    for k in range(count):
        a += numbers[step[k], 0]
        price += lam * numbers[step[k], 1]
        value = _log_loss(a) - price
        if value > highest:
            highest = value
            best = k + 1
    return best


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
    if not len(owner) and keep.all():
        return pool, np.arange(pool.n_cuts)

    def of(rows: slice) -> tuple[np.ndarray, ...]:
        some, cuts = _cuts_of(pool, rows)
        added = slice(*np.searchsorted(owner, [rows.start, rows.stop]).tolist())
        kept, others, n_new = keep[cuts], _some_cuts(new, added), added.stop - added.start
        n_cuts, length = np.count_nonzero(kept) + n_new, np.diff(some.ends)[kept].sum() + np.ptp(others.ends)
        merged = Pool(
            np.zeros(rows.stop - rows.start + 1, np.int64),
            np.empty(n_cuts),
            np.empty(n_cuts),
            np.zeros(n_cuts + 1, np.int64),
            np.empty(length, np.int32),
            np.empty(length, np.int32),
        )
        old = np.empty(n_cuts, np.int64)
        _merge(some, kept, owner[added] - np.int32(rows.start), others, merged, old)
        if cuts.start:
            old[old >= 0] += cuts.start
        return *merged, old

    N = len(pool.start) - 1
    parts = in_blocks(of, blocks(N, (pool.n_cuts + len(pool.entry)) // max(N, 1)))
    start, sign, cost, ends, feature, entry, old = zip(*parts, strict=True)
    merged = Pool(
        *(_laid_end_to_end(start), _joined(sign), _joined(cost)),
        *(_laid_end_to_end(ends), _joined(feature), _joined(entry)),
    )
    return merged, _joined(old)


def _laid_end_to_end(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The ends of what blocks have, which begin at 0 in each of them, one block after the other."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(part[-1] for part in parts)])
    return np.concatenate([[0], *(part[1:] + already for part, already in zip(parts, before, strict=False))])


@jit
def _merge(pool: Pool, keep: np.ndarray, owner: np.ndarray, new: Pool, merged: Pool, old: np.ndarray) -> None:
    """Fill in what ``merge`` returns."""
    k, u = 0, 0
    for i in range(pool.start.size - 1):
        for c in range(pool.start[i], pool.start[i + 1]):
            if keep[c]:
                old[k] = c
                k += 1
        while u < owner.size and owner[u] == i:
            old[k] = -1
            k += 1
            u += 1
        merged.start[i + 1] = k
    at, u = 0, 0
    for k in range(old.size):
        if old[k] >= 0:
            source, c = pool, old[k]
        else:
            source, c = new, u
            u += 1
        merged.sign[k] = source.sign[c]
        merged.cost[k] = source.cost[c]
        for e in range(source.ends[c], source.ends[c + 1]):
            merged.feature[at] = source.feature[e]
            merged.entry[at] = source.entry[e]
            at += 1
        merged.ends[k + 1] = at


# ---------------------------------------------------------------- sums over the samples' levels and the cuts' changes


class Scores(NamedTuple):
    """What theta, or a direction, does to the samples and to the levels."""

    f: np.ndarray  # (N,)
    score: np.ndarray  # (levels,)


def scores(theta: np.ndarray, data: Data) -> Scores:
    """f of every sample, and the score of every level, or their changes if ``theta`` is a direction."""
    score = np.where(data.column >= 0, theta[data.column], 0.0)
    n = data.x.shape[1]

    def of(rows: slice) -> np.ndarray:
        f = np.full(rows.stop - rows.start, theta[0])
        if n:
            f += data.x[rows] @ theta[1 : 1 + n]
        _add_scores(f, score, data.z[rows])
        return f

    return Scores(_joined(in_blocks(of, blocks(len(data.w), data.width))), score)


@jit
def _add_scores(f: np.ndarray, score: np.ndarray, z: np.ndarray) -> None:
    for i in range(z.shape[0]):
        total = f[i]
        for j in range(z.shape[1]):
            total += score[z[i, j]]
        f[i] = total


def arguments(theta: np.ndarray, at: Scores, data: Data, pool: Pool) -> np.ndarray:
    """a of every cut, or its change if ``theta`` is a direction; ``at`` its scores; shape (C,)."""
    return _joined(_in_parts(lambda part: _arguments_of(theta, at, part), data, pool))


def values(theta: np.ndarray, at: Scores, data: Data, pool: Pool) -> np.ndarray:
    """L(a) - lam cost of every cut; shape (C,)."""

    def of(part: Part) -> np.ndarray:
        return log_loss(_arguments_of(theta, at, part)) - part.pool.cost * theta[-1]

    return _joined(_in_parts(of, data, pool))


def _arguments_of(theta: np.ndarray, at: Scores, part: Part) -> np.ndarray:
    a = np.empty(part.pool.n_cuts)
    _arguments(theta, at.f[part.rows], at.score, part.data.z, part.pool, a)
    return a


@jit
def _arguments(theta: np.ndarray, f: np.ndarray, score: np.ndarray, z: np.ndarray, pool: Pool, a: np.ndarray) -> None:
    for i in range(f.size):
        for c in range(pool.start[i], pool.start[i + 1]):
            total = f[i]
            for k in range(pool.ends[c], pool.ends[c + 1]):
                total -= score[z[i, pool.feature[k]]]
                if pool.entry[k] >= 0:
                    total += theta[pool.entry[k]]
            a[c] = pool.sign[c] * total


def sum_rows(force: np.ndarray, E: int, data: Data, pool: Pool) -> np.ndarray:
    """sum_c force_c R_c, R_c without its sign; shape (E,). Every sample has a cut."""
    return _added(_in_parts(lambda part: _sum_cuts(force[part.cuts], E, part), data, pool))


def _sum_cuts(force: np.ndarray, E: int, part: Part) -> np.ndarray:
    """sum_c force_c R_c over a part."""
    result, total, n = np.zeros(E), np.empty(len(part.data.w)), part.data.x.shape[1]
    _add_rows(result, total, force, part.data.column, part.data.z, part.pool)
    if n:
        result[1 : 1 + n] = total @ part.data.x
    return result


@jit
def _add_rows(
    result: np.ndarray, total: np.ndarray, force: np.ndarray, column: np.ndarray, z: np.ndarray, pool: Pool
) -> None:
    """Add sum_c force_c R_c but for the numbers, and fill in the sums of the forces of each sample."""
    for i in range(z.shape[0]):
        total[i] = 0.0
        for c in range(pool.start[i], pool.start[i + 1]):
            total[i] += force[c]
            for k in range(pool.ends[c], pool.ends[c + 1]):
                home = column[z[i, pool.feature[k]]]
                if home >= 0:
                    result[home] -= force[c]
                if pool.entry[k] >= 0:
                    result[pool.entry[k]] += force[c]
        result[0] += total[i]
        for j in range(z.shape[1]):
            e = column[z[i, j]]
            if e >= 0:
                result[e] += total[i]


def raised(
    value: np.ndarray,
    wanted: np.ndarray,
    mult: np.ndarray,
    fresh: np.ndarray,
    data: Data,
    pool: Pool,
    fresh_slack: float,
    kept: float,
) -> np.ndarray:
    """s (N,): old cuts get the slack ``wanted`` on average, ``kept`` of it at least, fresh ones fresh_slack / w_i.

    Every sample has an old cut with a multiplier > 0, or its s_i is nan.
    """

    def of(part: Part) -> np.ndarray:
        s, of_cuts = np.empty(len(part.data.w)), (each[part.cuts] for each in (value, wanted, mult, fresh))
        _raise(s, *of_cuts, part.data.w, part.pool.start, fresh_slack, kept)
        return s

    return _joined(_in_parts(of, data, pool))


@jit
def _raise(
    s: np.ndarray,
    value: np.ndarray,
    wanted: np.ndarray,
    mult: np.ndarray,
    fresh: np.ndarray,
    w: np.ndarray,
    start: np.ndarray,
    fresh_slack: float,
    kept: float,
) -> None:
    for i in range(w.size):
        mass, total, least = 0.0, 0.0, -np.inf
        for c in range(start[i], start[i + 1]):
            if fresh[c]:
                least = max(least, value[c] + fresh_slack / w[i])
            else:
                mass += mult[c]
                total += mult[c] * (value[c] + wanted[c])
                least = max(least, value[c] + kept * wanted[c])
        s[i] = max(total / mass, least)


# ---------------------------------------------------------------- the Newton system


def gram(fold: Fold, data: Data, pool: Pool, t: np.ndarray, mult: np.ndarray, slack: np.ndarray) -> Folded:
    """The Newton matrix of the cuts with s, slacks and multipliers eliminated, of order E.

        sum_c mult t (1 - t) R R'  +  sum_i [ sum_c D A A' - (sum_c D A)(sum_c D A)' / sum_c D ],   D = mult / slack

    with A = (t R, -cost) the gradient of a cut, and the sums over the cuts of sample i. A sample with one cut only has
    nothing in the bracket. R is R_i and the few entries of the changes: all R_i R_i' of a sample share one weight,
    and what changes add takes products with these entries only. A changed cut whose weight of R R',
    mult t (1 - t) + D t^2, is below NO_CURVE counts as if t = 0. Needs multipliers >= 0 and slacks > 0, and that no
    R has two entries apart.
    """
    C = fold.n_core

    def of(part: Part) -> np.ndarray:
        return _half_gram(fold, part.data, part.pool, t[part.cuts], mult[part.cuts], slack[part.cuts])

    # The blocks' matrices should take no more memory than the data.
    half = _added(_in_parts(of, data, pool, max(1, len(data.w) * data.width // (len(fold.order) * (C + 1)))))
    return Folded(half[:C, :C] + half[:C, :C].T, half[C:, :C], 2 * half[C:, C])


def _half_gram(fold: Fold, data: Data, pool: Pool, t: np.ndarray, mult: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """A matrix of which ``gram`` is the sum with its transpose: each product is added once.

    The diagonal of what is apart is in its last column.
    """
    (N, n), E, C = data.x.shape, len(fold.order), fold.n_core
    half, of_changes, spot = np.zeros((E, C + 1)), np.zeros((3, E)), fold.spot
    weight, of_lam = np.empty(N), np.empty(N)
    touched, seen = np.empty(E, np.int64), np.zeros(E, np.bool_)
    where, value = np.empty(2 * data.z.shape[1], np.int64), np.empty(2 * data.z.shape[1])
    _add_changed_cuts(
        *(half, weight, of_lam, of_changes, touched, seen, where, value),
        *(data.x, data.z, spot, fold.position, pool, t, mult, slack),
    )
    if n:
        half[C - 1, 1 : 1 + n] += of_lam @ data.x
    _add_of_lam(half, of_lam, data.z, spot)
    if len(data.wide):
        _add_wide(half, weight, data.x, data.z, spot, data.wide)
    own = fold.dense
    product = np.zeros((len(own), len(own)))  # its lower triangle
    for first in range(0, N, ROWS_AT_ONCE):
        rows = _weighted_rows(slice(first, first + ROWS_AT_ONCE), weight, data, len(own))
        product += blas.dsyrk(1.0, rows.T).T
    product.ravel()[:: len(own) + 1] *= 0.5
    if own[-1] + 1 == len(own) and own[0] == 0:  # all of them in order, as a rule
        half[: len(own), : len(own)] += product
    else:
        half[np.ix_(own, own)] += product
    return half


@jit
def _add_of_lam(half: np.ndarray, of_lam: np.ndarray, z: np.ndarray, spot: np.ndarray) -> None:
    """Add sum_i of_lam_i R_i, but for the numbers, in the row of lam."""
    last = half.shape[1] - 2
    for i in range(z.shape[0]):
        half[last, 0] += of_lam[i]
        for j in range(z.shape[1]):
            e = spot[z[i, j]]
            if e >= 0:
                _add(half, last, e, of_lam[i])


def _weighted_rows(some: slice, weight: np.ndarray, data: Data, width: int) -> np.ndarray:
    """sqrt(weight_i) R_i of some samples on the intercept, the numbers and the levels of narrow features."""
    root = np.sqrt(np.maximum(weight[some], 0.0))
    rows = np.zeros((len(root), width))
    rows[:, 0] = root
    np.multiply(root[:, None], data.x[some], out=rows[:, 1 : 1 + data.x.shape[1]])
    _fill_levels(rows, root, data.place, data.z[some])
    return rows


@jit
def _fill_levels(rows: np.ndarray, root: np.ndarray, place: np.ndarray, z: np.ndarray) -> None:
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            rows[i, place[z[i, j]]] = root[i]


@jit
def _add_wide(
    half: np.ndarray, weight: np.ndarray, x: np.ndarray, z: np.ndarray, spot: np.ndarray, wide: np.ndarray
) -> None:
    """Add sum_i weight_i R_i R_i' in the rows and columns of the levels of wide features."""
    for i in range(z.shape[0]):
        for k in range(wide.size):
            e = spot[z[i, wide[k]]]
            if e < 0 or weight[i] == 0.0:
                continue
            half[e, 0] += weight[i]
            for r in range(x.shape[1]):
                half[e, 1 + r] += weight[i] * x[i, r]
            at = 0  # among the wide features, whose pairs count once
            for j in range(z.shape[1]):
                if at < wide.size and wide[at] == j:
                    at += 1
                    if at - 1 > k:
                        continue
                other = spot[z[i, j]]
                if other >= 0:
                    _add(half, e, other, weight[i] if other != e else 0.5 * weight[i])


@helper
def _add(half: np.ndarray, e: int, other: int, amount: float) -> None:
    """Add to an entry of M or its mirror image, whichever ``half`` has; the diagonal only if both are apart."""
    core = half.shape[1] - 1
    if other < core:
        half[e, other] += amount
    elif e < core:
        half[other, e] += amount
    else:
        half[other, core] += amount


@jit
def _add_changed_cuts(
    half: np.ndarray,
    weight: np.ndarray,
    of_lam: np.ndarray,
    of_changes: np.ndarray,
    touched: np.ndarray,
    seen: np.ndarray,
    where: np.ndarray,
    value: np.ndarray,
    x: np.ndarray,
    z: np.ndarray,
    spot: np.ndarray,
    position: np.ndarray,
    pool: Pool,
    t: np.ndarray,
    mult: np.ndarray,
    slack: np.ndarray,
) -> None:
    """The parts of ``gram`` in which changes or lam appear, and the weights of the others.

    Parameters
    ----------
    half : (E, n_core + 1), to be added to
    weight, of_lam : (N,), to be filled: what has no changes is weight_i R_i R_i', and of_lam_i R_i in the last row
    of_changes, touched, seen, where, value : room for sums over the cuts of a sample; zeros in the first and the third
    """
    last = half.shape[1] - 2
    for i in range(pool.start.size - 1):
        begin, end = pool.start[i], pool.start[i + 1]
        n_touched = 0
        sum_D, sum_curve, sum_g, sum_lam, sum_g_lam = 0.0, 0.0, 0.0, 0.0, 0.0
        for c in range(begin, end):
            D = mult[c] / slack[c] if end > begin + 1 else 0.0
            curve = mult[c] * t[c] * (1 - t[c]) + D * t[c] * t[c]
            g = D * t[c] * pool.sign[c]
            if pool.ends[c] < pool.ends[c + 1] and curve < NO_CURVE:
                curve, g = 0.0, 0.0
            sum_D += D
            sum_curve += curve
            sum_g += g
            sum_lam += D * pool.cost[c]
            sum_g_lam += g * pool.cost[c]
            half[last, last] += 0.5 * D * pool.cost[c] * pool.cost[c]
            if curve == 0.0:
                continue
            size = 0
            for k in range(pool.ends[c], pool.ends[c + 1]):
                for side in range(2):
                    e = spot[z[i, pool.feature[k]]]
                    if side == 1:
                        e = position[pool.entry[k]] if pool.entry[k] >= 0 else -1
                    if e < 0:
                        continue
                    sign = -1.0 if side == 0 else 1.0
                    where[size], value[size] = e, sign
                    size += 1
                    if not seen[e]:
                        seen[e] = True
                        touched[n_touched] = e
                        n_touched += 1
                    of_changes[0, e] += sign * curve
                    of_changes[1, e] += sign * g
                    of_changes[2, e] += sign * g * pool.cost[c]
            for a in range(size):
                part = curve * value[a]
                for b in range(a):
                    _add(half, where[a], where[b], part * value[b])
                _add(half, where[a], where[a], 0.5 * curve)
        if sum_D == 0.0:
            sum_D = np.inf  # a lone cut: no bracket
        weight[i] = sum_curve - sum_g * sum_g / sum_D
        of_lam[i] = sum_g * sum_lam / sum_D - sum_g_lam
        half[last, last] -= 0.5 * sum_lam * sum_lam / sum_D
        for a in range(n_touched):
            e = touched[a]
            with_row = of_changes[0, e] - of_changes[1, e] * sum_g / sum_D
            _add(half, last, e, of_changes[1, e] * sum_lam / sum_D - of_changes[2, e])
            half[e, 0] += with_row
            for r in range(x.shape[1]):
                half[e, 1 + r] += with_row * x[i, r]
            for j in range(z.shape[1]):
                other = spot[z[i, j]]
                if other >= 0:
                    _add(half, e, other, with_row)
            part = of_changes[1, e] / sum_D
            for b in range(a):
                _add(half, e, touched[b], -part * of_changes[1, touched[b]])
            _add(half, e, e, -0.5 * part * of_changes[1, e])
        for a in range(n_touched):
            seen[touched[a]] = False
            of_changes[0, touched[a]] = of_changes[1, touched[a]] = of_changes[2, touched[a]] = 0.0


def gradient(
    E: int, data: Data, pool: Pool, t: np.ndarray, mult: np.ndarray, slack: np.ndarray, aim: np.ndarray
) -> np.ndarray:
    """What the cuts put on the right-hand side, sum_c A (aim_c - D_c (sum aim - w_i) / sum D); shape (E,).

    ``aim`` (C,): the multipliers that would reach the targets of the products at the present slacks. The sums are over
    the cuts of a sample; A = (t R, -cost), D = mult / slack. Every sample has a cut with a multiplier > 0.
    """

    def of(part: Part) -> np.ndarray:
        of_cuts = (each[part.cuts] for each in (t, mult, slack, aim))
        force = np.empty(part.pool.n_cuts)
        of_lam = _forces(force, *of_cuts, part.data.w, part.pool)
        g = _sum_cuts(force, E, part)
        g[-1] -= of_lam
        return g

    return _added(_in_parts(of, data, pool))


@jit
def _forces(
    force: np.ndarray, t: np.ndarray, mult: np.ndarray, slack: np.ndarray, aim: np.ndarray, w: np.ndarray, pool: Pool
) -> float:
    """Fill in what ``gradient`` multiplies R with; the sum of what it multiplies the costs with."""
    of_lam = 0.0
    for i in range(w.size):
        surplus, D = -w[i], 0.0
        for c in range(pool.start[i], pool.start[i + 1]):
            surplus += aim[c]
            D += mult[c] / slack[c]
        for c in range(pool.start[i], pool.start[i + 1]):
            amount = aim[c] - mult[c] / slack[c] * (surplus / D)
            force[c] = amount * t[c] * pool.sign[c]
            of_lam += amount * pool.cost[c]
    return of_lam


def directions(
    a: np.ndarray,
    lam: float,
    data: Data,
    pool: Pool,
    t: np.ndarray,
    mult: np.ndarray,
    slack: np.ndarray,
    aim: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The changes of the slacks (C,), and the multipliers after a full step (C,), from the changes of a (C,) and lam.

    With change = t a - lam cost that of a cut's value, they solve

        full + D (ds_i - change) = aim  for each cut,      sum full = w_i  for each sample,      D = mult / slack,

    ``aim`` as in ``gradient``; the slack of a cut changes by ds_i - change, that of a sample's only cut not at all.
    Every sample has a cut with a multiplier > 0.
    """

    def of(part: Part) -> tuple[np.ndarray, np.ndarray]:
        d_slack, full = np.empty(part.pool.n_cuts), np.empty(part.pool.n_cuts)
        _directions(d_slack, full, lam, *(each[part.cuts] for each in (a, t, mult, slack, aim)), part.data.w, part.pool)
        return d_slack, full

    d_slack, full = zip(*_in_parts(of, data, pool), strict=True)
    return _joined(d_slack), _joined(full)


@jit
def _directions(
    d_slack: np.ndarray,
    full: np.ndarray,
    lam: float,
    a: np.ndarray,
    t: np.ndarray,
    mult: np.ndarray,
    slack: np.ndarray,
    aim: np.ndarray,
    w: np.ndarray,
    pool: Pool,
) -> None:
    for i in range(w.size):
        begin, end = pool.start[i], pool.start[i + 1]
        total, D = -w[i], 0.0
        for c in range(begin, end):
            D += mult[c] / slack[c]
            total += aim[c] + mult[c] / slack[c] * (t[c] * a[c] - lam * pool.cost[c])
        for c in range(begin, end):
            d_slack[c] = total / D - (t[c] * a[c] - lam * pool.cost[c])
            full[c] = aim[c] - mult[c] / slack[c] * d_slack[c]
        if end == begin + 1:
            d_slack[begin] = 0.0


def dual_point(
    E: int, data: Data, pool: Pool, mass: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray]:
    """Make masses >= 0 that sum to w_i a sample, and v with slopes v / mass in [0, 1].

    Negative masses become 0, and the others are scaled. A sample without a positive mass is left with none, which the
    bound allows, since s_i >= 0.

    Returns
    -------
    mass, v : (C,)
    entropy : sum_c mass H(v / mass)
    spent : sum_c mass * cost
    balance : (E,) sum_c v R
    """

    def of(part: Part) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray]:
        masses, slopes = mass[part.cuts].copy(), v[part.cuts].copy()
        entropy, spent = _as_masses(masses, slopes, part.data.w, part.pool)
        return masses, slopes, entropy, spent, _sum_cuts(slopes * part.pool.sign, E, part)

    masses, slopes, entropy, spent, balance = zip(*_in_parts(of, data, pool), strict=True)
    return _joined(masses), _joined(slopes), sum(entropy), sum(spent), _added(balance)


@jit
def _as_masses(mass: np.ndarray, v: np.ndarray, w: np.ndarray, pool: Pool) -> tuple[float, float]:
    """Change masses and v as ``dual_point`` says; the entropy and what is spent."""
    entropy, spent = 0.0, 0.0
    for i in range(w.size):
        total = 0.0
        for c in range(pool.start[i], pool.start[i + 1]):
            if mass[c] > 0:
                total += mass[c]
        for c in range(pool.start[i], pool.start[i + 1]):
            if not mass[c] > 0:
                mass[c], v[c] = 0.0, 0.0
                continue
            t = min(max(v[c] / mass[c], 0.0), 1.0)
            mass[c] *= w[i] / total
            v[c] = mass[c] * t
            spent += mass[c] * pool.cost[c]
            if 0.0 < t < 1.0:
                entropy -= mass[c] * (t * np.log(t) + (1 - t) * np.log(1 - t))
    return entropy, spent


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
    V, balance, left = len(data.column), balance.copy(), KEPT * mass
    steepest, source = np.zeros((2, V)), np.full((2, V), -1, np.int64)
    bent, flexible = -1, 0.0

    def givers_of(part: Part) -> tuple[int, float, np.ndarray, np.ndarray]:
        steepest, source = np.zeros((2, V)), np.full((2, V), -1, np.int64)
        found = _givers(part.data.z, part.data.w, part.pool, mass[part.cuts], v[part.cuts], steepest, source)
        source[source >= 0] += part.cuts.start
        return found[0] + part.cuts.start, found[1], steepest, source

    for cut, curvature, slopes, cuts in _in_parts(givers_of, data, pool):
        if curvature > flexible:
            bent, flexible = cut, curvature
        better = slopes > steepest
        steepest[better], source[better] = slopes[better], cuts[better]
    entropy, dv = 0.0, 0.0
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    if balance[0] != 0.0:
        if bent < 0:
            return 0.0, np.inf, balance, bent, dv, *none
        dv = -balance[0] * pool.sign[bent]
        if not abs(dv) <= BENT * flexible:
            return 0.0, np.inf, balance, bent, dv, *none
        t = (v[bent] + dv) / mass[bent]
        entropy = mass[bent] * (_entropy(t) - _entropy(v[bent] / mass[bent]))
        i = np.searchsorted(pool.start, bent, side="right") - 1
        force = dv * pool.sign[bent]
        balance[0] += force
        balance[1 : 1 + data.x.shape[1]] += force * data.x[i]
        levels = data.column[data.z[i]]
        balance[levels[levels >= 0]] += force
        steepest[source == bent] = t  # mass that it gives is moved at its new slope

    level = np.flatnonzero((data.column >= 0) & (balance[data.column] != 0))
    feature = np.searchsorted(data.offsets, level, side="right") - 1
    common = np.flatnonzero(data.column < 0)[feature]
    cost, back = (
        _costs(costs, data.offsets, feature, level, common),
        _costs(costs, data.offsets, feature, common, level),
    )
    allowed = np.isfinite(cost) | np.isfinite(back)
    level, common, cost, back = level[allowed], common[allowed], cost[allowed], back[allowed]
    rest = balance[data.column[level]]
    side = np.where(rest > 0, 0, 1)
    t, other = steepest[side, level], steepest[1 - side, common]
    leave = np.isinf(cost) | (np.isfinite(back) & (other > t))  # the common level
    t, to = np.where(leave, other, t), np.where(leave, level, common)
    cut = np.where(leave, source[1 - side, common], source[side, level])
    if (t == 0.0).any():
        return entropy, np.inf, balance, bent, dv, *none
    moved = np.abs(rest) / t
    np.subtract.at(left, cut, moved)
    if not (left[cut] >= 0).all():
        return entropy, np.inf, balance, bent, dv, *none
    balance[data.column[level]] = 0.0
    spent = np.cumsum(moved * np.where(leave, back, cost))[-1:].sum()
    return entropy, spent, balance, bent, dv, cut, to, moved


@jit
def _givers(
    z: np.ndarray,
    w: np.ndarray,
    pool: Pool,
    mass: np.ndarray,
    v: np.ndarray,
    steepest: np.ndarray,
    source: np.ndarray,
) -> tuple[int, float]:
    """The most flexible cut that changes no feature, -1 if none is, and the curvature mass t (1 - t) of it.

    Fill in the largest slope of such a cut, and the cut, by the sign of a cut and the level it has; both (2, V).
    """
    best, flexible = -1, 0.0
    for i in range(w.size):
        for c in range(pool.start[i], pool.start[i + 1]):
            if pool.ends[c] < pool.ends[c + 1] or mass[c] <= LIGHT * w[i]:
                continue
            t = v[c] / mass[c]
            curvature = v[c] * (1 - t)
            if curvature > flexible:
                best, flexible = c, curvature
            side = 0 if pool.sign[c] > 0 else 1
            for j in range(z.shape[1]):
                level = z[i, j]
                if t > steepest[side, level]:
                    steepest[side, level] = t
                    source[side, level] = c
    return best, flexible


def _costs(costs: LevelCosts, offsets: np.ndarray, j: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """What it costs to change features j from one level to another; levels counted through."""
    cost, given = costs.single[j], costs.start[j] < costs.start[j + 1]
    begin, j = offsets[j[given]], j[given]
    cost[given] = costs.matrix[costs.start[j] + (old[given] - begin) * (offsets[j + 1] - begin) + new[given] - begin]
    return cost


def _entropy(t: float) -> float:
    return -t * math.log(t) - (1 - t) * math.log1p(-t) if 0 < t < 1 else 0.0


def changed_levels(pool: Pool, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The changes of every cut, as in ``certificate.DualPoint``.

    Returns
    -------
    sample : (C,)
    start : (C + 1,), feature, level : (changes,), level as a code within the feature, -1 for a top or bottom
    """
    level_of = np.full(max(data.column.max(initial=-1), pool.entry.max(initial=-1)) + 1, -1)  # of a coordinate
    own = data.column >= 0
    level_of[data.column[own]] = (np.arange(len(own)) - np.repeat(data.offsets[:-1], np.diff(data.offsets)))[own]
    common = np.flatnonzero(~own) - data.offsets[:-1]
    level = np.where(pool.entry >= 0, level_of[pool.entry], common[pool.feature])
    return np.arange(len(data.w)).repeat(pool.counts), pool.ends, pool.feature, level


# ---------------------------------------------------------------- pairs of slacks and multipliers, and linear rows


@jit
def longest(value: np.ndarray, change: np.ndarray, some: np.ndarray) -> float:
    """The largest step in [0, 1] that keeps value + step * change >= 0 where ``some`` is True."""
    step = 1.0
    for k in range(value.size):
        if some[k] and value[k] + step * change[k] < 0:
            step = value[k] / -change[k]
    return step


@jit
def reach(
    slack: np.ndarray, mult: np.ndarray, d_slack: np.ndarray, full: np.ndarray, some: np.ndarray
) -> tuple[float, float, float]:
    """The sum of the products where ``some`` is True, and the ``longest`` steps of slacks and of multipliers."""
    products, primal, dual = 0.0, 1.0, 1.0
    for k in range(slack.size):
        if some[k]:
            products += slack[k] * mult[k]
            if slack[k] + primal * d_slack[k] < 0:
                primal = slack[k] / -d_slack[k]
            if mult[k] + dual * (full[k] - mult[k]) < 0:
                dual = mult[k] / (mult[k] - full[k])
    return products, primal, dual


@jit
def products_after(
    slack: np.ndarray,
    mult: np.ndarray,
    d_slack: np.ndarray,
    full: np.ndarray,
    some: np.ndarray,
    primal: float,
    dual: float,
) -> float:
    """The sum of the products where ``some`` is True, after steps of these lengths."""
    products = 0.0
    for k in range(slack.size):
        if some[k]:
            products += (slack[k] + primal * d_slack[k]) * (mult[k] + dual * (full[k] - mult[k]))
    return products


@jit
def correct(
    aim: np.ndarray,
    slack: np.ndarray,
    mult: np.ndarray,
    d_slack: np.ndarray,
    full: np.ndarray,
    some: np.ndarray,
    target: float,
    most: float,
) -> None:
    """Where ``some`` is True, aim = (target - the product of both changes, cut off at -most and most) / slack."""
    for k in range(aim.size):
        if some[k]:
            aim[k] = (target - min(max((full[k] - mult[k]) * d_slack[k], -most), most)) / slack[k]


@jit
def penalty_forces(
    above: Pairs, below: Pairs, aim_above: np.ndarray, aim_below: np.ndarray, penalty: np.ndarray
) -> np.ndarray:
    """What penalties put on the right-hand side, a force for each b_j, with u_j eliminated; shape (J,)."""
    force = np.empty(penalty.size)
    for j in range(penalty.size):
        D_above, D_below = above.multiplier[j] / above.slack[j], below.multiplier[j] / below.slack[j]
        surplus = aim_above[j] + aim_below[j] - penalty[j]
        force[j] = aim_above[j] - aim_below[j] - (D_above - D_below) / (D_above + D_below) * surplus
    return force


@jit
def penalty_directions(
    of_b: np.ndarray, above: Pairs, below: Pairs, aim_above: np.ndarray, aim_below: np.ndarray, penalty: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The changes of u, and the multipliers of u - b and u + b after a full step, from the changes of b; each (J,)."""
    size, full_above, full_below = np.empty(penalty.size), np.empty(penalty.size), np.empty(penalty.size)
    for j in range(penalty.size):
        D_above, D_below = above.multiplier[j] / above.slack[j], below.multiplier[j] / below.slack[j]
        surplus = aim_above[j] + aim_below[j] - penalty[j]
        size[j] = (surplus + (D_above - D_below) * of_b[j]) / (D_above + D_below)
        full_above[j] = aim_above[j] - D_above * (size[j] - of_b[j])
        full_below[j] = aim_below[j] - D_below * (size[j] + of_b[j])
    return size, full_above, full_below


@jit
def add_rows_gram(
    M: Folded, position: np.ndarray, ends: np.ndarray, index: np.ndarray, value: np.ndarray, D: np.ndarray
) -> None:
    """M += Rows' diag(D) Rows. No row has two entries apart."""
    core = M.core.shape[0]
    for r in range(D.size):
        for k in range(ends[r], ends[r + 1]):
            for k2 in range(ends[r], ends[r + 1]):
                e, other = position[index[k]], position[index[k2]]
                amount = D[r] * value[k] * value[k2]
                if e < core and other < core:
                    M.core[e, other] += amount
                elif other < core:
                    M.side[e - core, other] += amount
                elif e >= core:
                    M.diagonal[e - core] += amount
