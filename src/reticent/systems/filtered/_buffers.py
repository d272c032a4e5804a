"""The shapes of correlated noise: for each length of an epoch, buffers that stand in for square-root Toeplitz noise.

Public constants, as `fit_buffers` of DP-FTRL finds them (docs/theory, R2), rounded: a test makes them again. Whatever
they are, privacy is computed from the numbers here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Buffers(NamedTuple):
    """A lower-triangular Toeplitz matrix with coefficients 1 and sum_j weights[j] decays[j]^(k-1)."""

    weights: tuple[float, ...]
    decays: tuple[float, ...]

    def sensitivity(self, blocks: int) -> float:
        """Return the length of the first `blocks` coefficients, rounded upwards.

        >>> round(Buffers((0.5,), (0.75,)).sensitivity(3) ** 2, 9)
        1.390625
        """
        pairs = [
            w * v * _geometric(r * s, blocks - 1)
            for w, r in zip(self.weights, self.decays, strict=True)
            for v, s in zip(self.weights, self.decays, strict=True)
        ]
        return math.sqrt(1 + math.fsum(pairs)) * (1 + 1e-12)

    def person_sensitivity(self, blocks: int, rows: int) -> float:
        """Return what `rows` rows of one person, each in another block, count for, as one row counts `sensitivity`.

        The first m columns together are the longest of any m, so m rows in one epoch move its sums by their length at
        most; here is the largest of it times sqrt(rows/m), so that m of `rows` rows pay a share of m/rows in squares
        wherever the others are (docs/theory, R14c). Rounded upwards.

        >>> shape = Buffers((0.5,), (0.75,))
        >>> round(shape.person_sensitivity(3, 2) ** 2, 6)  # (1, 1.5, 0.875)
        4.015625
        """
        return _of_rows(self, blocks, rows)

    def reach(self, blocks: int) -> tuple[float, ...]:
        """Return how many blocks each buffer adds up, at most: the sum of its first powers."""
        return tuple(_geometric(r, blocks) for r in self.decays)


@lru_cache(maxsize=256)
def _of_rows(shape: Buffers, blocks: int, rows: int) -> float:
    powers = np.arange(blocks - 1)
    column = np.append(1.0, sum(w * r**powers for w, r in zip(shape.weights, shape.decays, strict=True)))
    if (np.diff(column) > 0).any() or column.min() < 0:
        raise ValueError(f"coefficients must fall and be at least 0 for an account of persons, got {column[:3]} ...")
    together, found = np.zeros(blocks), 0.0
    for m in range(1, min(rows, blocks) + 1):
        together[m - 1 :] += column[: blocks - m + 1]
        found = max(found, float(together @ together) * rows / m)
    return math.sqrt(found) * (1 + 1e-11)


def _geometric(ratio: float, count: int) -> float:
    """Return 1 + r + ... + r^(count-1), for r below 1."""
    return float(count) if ratio >= 1 else -math.expm1(count * math.log(ratio)) / (1 - ratio)


TABLE: dict[int, Buffers] = {
    8: Buffers((0.119483, 0.378238), (0.3, 0.9)),
    16: Buffers((0.138747, 0.358499), (0.3, 0.925)),
    32: Buffers((0.265604, 0.267217), (0.3, 0.9625)),
    64: Buffers((0.260721, 0.131936, 0.141159), (0.3, 0.906459, 0.9875)),
    128: Buffers((0.289777, 0.150765, 0.101769), (0.3, 0.933856, 0.99375)),
    256: Buffers((0.174564, 0.214914, 0.050628, 0.069601), (0.3, 0.884739, 0.981021, 0.996875)),
    512: Buffers((0.206597, 0.207741, 0.053701, 0.049419), (0.3, 0.908517, 0.988044, 0.998437)),
    1024: Buffers((0.238588, 0.200039, 0.052088, 0.035424), (0.3, 0.92739, 0.992468, 0.999219)),
    2048: Buffers((0.248773, 0.200107, 0.047981, 0.032102), (0.3, 0.93403, 0.993783, 0.999414)),
    4096: Buffers((0.281904, 0.189334, 0.044752, 0.023), (0.3, 0.947639, 0.996083, 0.999707)),
}
"""By the number of blocks of an epoch."""
