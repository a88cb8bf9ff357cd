"""The constraints of Theorem 1's program: one for each sample i, each z and each of the two labels.

A cut demands s_i >= L(-y f(x_i, z)) - lam d((x_i, z, y), (x_i, z_i, y_i)). The cuts with the sample's own label are
the paper's set W^+, those with the other label its set W^-.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wdrlr.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Cuts:
    """C cuts (i, z, label).

    Parameters
    ----------
    sample : int ndarray of shape (C,)
    z : int ndarray of shape (C, m)
        Level codes.
    flipped : bool ndarray of shape (C,)
        False: the sample's own label (W^+). True: the other one (W^-).
    """

    sample: np.ndarray
    z: np.ndarray
    flipped: np.ndarray

    def __len__(self) -> int:
        return len(self.sample)

    def __getitem__(self, index: Any) -> Cuts:
        return Cuts(self.sample[index], self.z[index], self.flipped[index])

    def keys(self) -> list[tuple[int, bool, bytes]]:
        """One hashable key per cut."""
        return [
            (int(i), bool(flipped), z.tobytes())
            for i, flipped, z in zip(self.sample, self.flipped, self.z, strict=True)
        ]

    def rows(self, problem: Problem) -> np.ndarray:
        """The matrix A for which a = A b are the arguments of the log-losses; shape (C, 1 + n + k)."""
        label = np.where(self.flipped, -1.0, 1.0) * problem.y[self.sample]
        return -label[:, None] * problem.design(self.sample, self.z)

    def costs(self, problem: Problem) -> np.ndarray:
        """Transport cost d((x_i, z, y), (x_i, z_i, y_i)) of each cut; shape (C,)."""
        flip = np.where(self.flipped, problem.metric.label_change, 0.0)
        return problem.metric.level_distance(problem.z[self.sample], self.z) + flip


def join(*several: Cuts) -> Cuts:
    """The cuts of all arguments, in order."""
    return Cuts(
        np.concatenate([cuts.sample for cuts in several]),
        np.concatenate([cuts.z for cuts in several]),
        np.concatenate([cuts.flipped for cuts in several]),
    )


def data_cuts(problem: Problem, flipped: bool) -> Cuts:
    """The cuts (i, z_i) of the data for one of the two labels; N of them, in the order of the samples."""
    everyone = np.arange(problem.n_samples)
    return Cuts(everyone, problem.z, np.full(problem.n_samples, flipped))


def initial_cuts(problem: Problem) -> Cuts:
    """The cuts (i, z_i) of the data for every label that the adversary can choose; Algorithm 1 starts from these."""
    return join(*(data_cuts(problem, flipped) for flipped in problem.label_flips))


def count_all_cuts(problem: Problem) -> int:
    """How many cuts ``all_cuts`` has, those of an infinite cost included."""
    n_points = 1 if problem.radius == 0 else prod(len(values) for values in _values(problem))
    return problem.n_samples * n_points * len(problem.label_flips)


def _values(problem: Problem) -> list[range]:
    """What each feature can be: its levels, or all codes, among which the levels are."""
    values = [range(levels) for levels in problem.n_levels]
    for j in problem.coded:
        values[j] = range(problem.n_levels[j], problem.n_levels[j] + 2 ** (problem.n_levels[j] - 1))
    return values


def all_cuts(problem: Problem, at_most: int) -> Cuts:
    """Every cut of Theorem 1's program that has a finite cost, exponentially many in m.

    Raises
    ------
    ValueError
        If there are more than ``at_most``.
    """
    if problem.radius == 0:
        return initial_cuts(problem)
    n_cuts = count_all_cuts(problem)
    if n_cuts > at_most:
        raise ValueError(
            f"the monolithic program has {n_cuts:,} constraints, more than the {at_most:,} allowed; "
            'use solver="column-constraint", which adds only those that matter.'
        )
    points = np.array(list(product(*_values(problem))), dtype=problem.z.dtype)
    sample = np.repeat(np.arange(problem.n_samples), len(points))
    z = np.tile(points, (problem.n_samples, 1))
    for j in problem.coded:  # the code of a sample's own level is no change
        dummies = problem.level_matrix[problem.levels(j), problem.dummies(j)].toarray()
        number = problem.n_levels[j] + ((dummies > 0) << np.arange(dummies.shape[1])).sum(axis=1)
        own = problem.z[sample, j]
        z[:, j] = np.where(z[:, j] == number[own], own, z[:, j])
    every = join(*(Cuts(sample, z, np.full(len(sample), flipped)) for flipped in problem.label_flips))
    return every[np.isfinite(every.costs(problem))]
