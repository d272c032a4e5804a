"""What noisy prefixes from a binary tree reveal of one leaf, exactly (docs/theory, R2e)."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from reticent._core._check import Array

LARGEST_MATRIX = 1024
"""Leaves up to which prefixes that are reduced and topped are looked at as a matrix; a factor of it takes 0.1 s."""

_ROUNDING = 1 + 1e-12  # a few hundred steps of arithmetic, all of positive terms

Line = tuple[float, float]
"""What a leaf's change costs, less a parabola that all leaves share: its values at offsets -1 and 0."""


@cache
def reduced(n: int) -> float:
    """Return the largest mu of a unit change of one leaf where the first n prefixes of a reduced tree are released.

    `heard` is the squared mu of all prefixes of a subtree but the last, `new` how far the last one moves beyond what
    those foretell, and `spread` the variance of that.

    >>> reduced(0), round(reduced(2) ** 2, 9)
    (0.0, 1.8)
    """
    if n == 0:
        return 0.0
    best, spread = 1.0, 1.0
    leaves = [(0.0, 1.0)]  # (heard, new), after a left turn the best only: `new` is then the same for all
    for h in range(1, n.bit_length()):
        a = 1 - 2.0**-h
        leaves = [(heard, (1 + a * new) / (1 + a)) for heard, new in leaves]
        leaves.append((best, 1 / (1 + a)))
        spread = (1 + a**2 * spread) / (1 + a) ** 2
        best = max(heard + new**2 / spread for heard, new in leaves)
    return math.sqrt(best) * _ROUNDING


@lru_cache(maxsize=256)
def topped(n: int, ceiling: int) -> float:
    """Return the largest mu of a unit change where the first n prefixes of a plain tree are released, all topped up.

    Independent noise has brought the variance of each to `ceiling`.

    >>> round(topped(3, 2) ** 2, 9), round(topped(2, 1) ** 2, 9)
    (1.166666667, 2.0)
    """
    if n == 0:
        return 0.0
    _, lines = _Topped(ceiling).part(n, 0)
    return math.sqrt(max(value for _, value in lines)) * _ROUNDING


class _Topped:
    """The least squares behind `topped`: prefixes as a tree graph, each also tied to the ground by its top-up.

    The offset of prefix k is tied to that of k without its lowest digit 1 by unit noise, and to 0, or to -1 from the
    changed leaf on, by the top-up. A part is the prefixes that share their leading digits; all it knows of the others
    is the offset p of the prefix that it begins from.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.known: dict[tuple[int, int], tuple[float, tuple[Line, ...]]] = {}

    def part(self, size: int, ones: int) -> tuple[float, tuple[Line, ...]]:
        """Return, of `size` prefixes after one with so many digits 1, the curvature in p, and the lines of the leaves.

        Unchanged leaves cost curvature * p^2; lines that another exceeds all the way from -1 to 0, where offsets are,
        are left out.
        """
        if size == 0:
            return 0.0, ()
        if (size, ones) not in self.known:
            self.known[size, ones] = self._part(size, ones)
        return self.known[size, ones]

    def _part(self, size: int, ones: int) -> tuple[float, tuple[Line, ...]]:
        half = 1 << (size.bit_length() - 1)
        left, lines = self.part(half - 1, ones)
        right, others = self.part(size - half, ones + 1)
        room = self.ceiling - ones - 1  # what tops up the prefix in the middle
        tied = math.inf if room == 0 else right + 1 / room
        passed = 1.0 if room == 0 else tied / (1 + tied)
        # A change on the left, or of the leaf that ends it, moves all that follows.
        found = [(low, high + passed) for low, high in (*lines, (left, 0.0))]
        for low, high in others:
            slope = right - low + high
            # The least over q of (q - p)^2 + tied q^2 + slope q + high, at p = -1 and 0.
            ends = [high + p**2 - (p - slope / 2) ** 2 / (1 + tied) for p in (-1.0, 0.0)]
            found.append((left + ends[0], ends[1]))
        kept: list[Line] = []
        for line in sorted(found, reverse=True):
            if not kept or line[1] > kept[-1][1]:
                kept.append(line)
        return left + passed, tuple(kept)


def reduced_and_topped(n: int, level: float, whole: int) -> float:
    """Return the same for a reduced tree whose `whole` prefixes are topped up to a variance of `level`.

    Beyond `LARGEST_MATRIX` leaves the bound is that without top-ups: they only hide more.

    >>> round(reduced_and_topped(8, 1 + 2 / 3 + 4 / 7, 8) ** 2, 6)
    1.685709
    """
    if whole > LARGEST_MATRIX or n == 0:
        return reduced(n)
    squares = np.cumsum(_whitened(whole, level)[:n] ** 2, axis=0)[-1]
    return math.sqrt(float(squares.max())) * _ROUNDING


@lru_cache(maxsize=8)
def _whitened(n: int, level: float) -> Array:
    """Return how n prefixes hear of each leaf, in units of independent noise: row k is what the k-th one adds."""
    import scipy.linalg

    rows, nodes = np.zeros((n, 2 * n)), np.zeros((n.bit_length(), 2 * n))
    for k in range(1, n + 1):
        # As the learner's kernel: the new leaf, and the nodes that it completes, whose left child waits below.
        node = np.zeros(2 * n)
        node[2 * k - 2] = 1.0
        height = (k & -k).bit_length() - 1
        for h in range(1, height + 1):
            weight = 1 / (2 - 2.0**-h)
            node = weight * (1 - 2.0**-h) * (nodes[h - 1] + node)
            # Of the 2n places the odd ones are those of inner nodes, the one of height h that ends with leaf k among
            # them: leaf k + 1 - 2^(h-1) ends no other.
            node[2 * (k + 1 - (1 << (h - 1))) - 1] += weight
        nodes[height] = node
        rows[k - 1] = node + (rows[k - (1 << height) - 1] if k >> height > 1 else 0.0)
    law = rows @ rows.T
    law[np.diag_indices(n)] = level
    found: Array = scipy.linalg.solve_triangular(np.linalg.cholesky(law), np.tril(np.ones((n, n))), lower=True)
    return found
