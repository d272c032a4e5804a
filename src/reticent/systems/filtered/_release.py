"""The gate of an epoch: block sums mixed with those before them, in integers, each released once with rounded noise.

What comes in is sums of clipped rows, what goes out one vector of integers per block (docs/theory, R10). All that is
computed from these vectors is post-processing: the module knows no learner.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.systems.filtered._buffers import TABLE
from reticent.systems.gate import BlockRelease
from reticent.systems.gate._release import Integers

_ROUNDING = math.ldexp(1.0, -53)  # of one operation in double precision, relative
_TOO_MUCH = 0.5  # part of the noise that may be there for rounding alone; far more than any plan needs


@saved("release of an epoch")
class EpochRelease:
    """Releases a_k = (C g)_k + noise for the sums g_1, ..., g_n of the blocks of an epoch, in integers.

    C is the triangular matrix of `TABLE[n]`: a_k = g_k + sum_j w_j B_j + noise with B_j <- r_j B_j + g. One changed row
    moves all sums together by at most `change` * clip * (length of a column of C), and rounding of the mixed sums, in
    both worlds, by little more: `mu` has both. `noise` is 1/mu at most, of all releases of the epoch.

    >>> release = EpochRelease(clip=1.0, noise=4.0, block=50, blocks=8, dim=10, change=2.0)
    >>> 0.2499999 < release.mu <= 0.25
    True
    """

    def __init__(
        self, clip: float, noise: float, block: int, blocks: int, dim: int, change: float, rows: int | None = None
    ) -> None:
        """Take the length that rows are clipped to, 1/mu, rounds of a block, blocks, dimensions, and 2 or 1.

        `change` is how many clipped rows apart two neighbouring rounds may be: 2 if replaced, 1 if zeroed. `rows` is
        how many rows of one person count, in this epoch and others, clipped together where they share a block; `mu` is
        then that of all epochs together (docs/theory, R14c).
        """
        shape = TABLE[blocks]
        self.weights, self.decays = np.array(shape.weights), np.array(shape.decays)
        self.blocks, self.change = blocks, change
        column, reach = shape.sensitivity(blocks), shape.reach(blocks)
        times = 1.0  # how often rounding may count
        if rows is not None:
            column, times = shape.person_sensitivity(blocks, rows), 2 * math.sqrt(rows)
        mixed = 1 + math.ceil(sum(w * m for w, m in zip(shape.weights, reach, strict=True)))
        self.mu, slack = math.inf, 0.0
        while self.mu * noise > 1:
            sigma = change * clip * column * noise / (1 - slack) * (1 + 1e-9)
            self.grid = BlockRelease(clip, sigma, block * mixed, dim)  # a mixed sum is that many blocks at most
            largest = block * self.grid.largest
            # In steps, from docs/theory, R10b: half for rounding to a whole number, the rest for floating point.
            terms = len(reach) + 2
            parts = [w * m * (4 * m + 2 * terms) for w, m in zip(shape.weights, reach, strict=True)]
            self.error = 0.5 + 1.01 * _ROUNDING * largest * math.fsum(parts)
            apart = times * math.ldexp(2 * self.error * math.sqrt((blocks - 1) * dim), -self.grid.shift)
            self.mu = (change * clip / sigma * column + apart) * (1 + 1e-12)
            slack = 1.01 * apart * noise + 1e-11
            if slack > _TOO_MUCH:
                raise ValueError(
                    f"blocks of {block:,} rounds in {dim} dimensions leave no room for rounding at noise={noise:.6g}; "
                    "take shorter blocks, or a larger epsilon"
                )

    def fresh(self) -> Array:
        """Return the buffers at the beginning of the epoch; afterwards they are as secret as the data."""
        return np.zeros((self.weights.size, self.grid.dim))

    def released(self, total: Integers, buffers: Array, noise: Integers) -> Integers:
        """Return the sum of a block, mixed with those before it, with fresh noise; of each block once.

        Further axes before the usual ones are those of learners that are released together.

        Commit it (to a walk, a disk) before it is used: a second one for the same block is a second release.
        """
        before: Integers = np.rint(mixed(self.weights, buffers)).astype(np.int64)
        return total + before + noise

    def filled(self, buffers: Array, total: Integers) -> Array:
        """Return the buffers with the sum of a block in them."""
        found: Array = self.decays[:, None] * buffers + total[..., None, :]
        return found


def mixed(weights: Array, parts: Array) -> Array:
    """Return the weighted sum over the last axis but one, in the order of the weights: other axes do not matter to it.

    A product of matrices would add up in an order that depends on their shapes.

    >>> mixed(np.array([2.0, 3.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([2., 3.])
    """
    total: Array = weights[0] * parts[..., 0, :]
    for j in range(1, weights.size):
        total += weights[j] * parts[..., j, :]
    return total
