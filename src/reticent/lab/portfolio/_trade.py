"""What is left of a portfolio's worth after a trade whose costs are paid out of the portfolio itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import Array, matrix, positive

_MOST = 10_000.0  # basis points in 1: from there on a trade would cost all that it moves


def rate(basis_points: float) -> float:
    """Return costs in basis points of the traded volume as a fraction; refuse what would eat whole trades.

    >>> rate(50)
    0.005
    """
    found = positive("basis_points", basis_points, zero=True)
    if found >= _MOST:
        raise ValueError(
            f"basis_points must be less than {_MOST:,.0f}, which is all of the traded volume, got {basis_points!r}; "
            "10 basis points are 0.1 percent"
        )
    return found / _MOST


def kept(before: ArrayLike, target: ArrayLike, basis_points: float) -> Array:
    """Return the part of the worth that is left after trading shares `before` into shares `target`, row by row.

    It is the one solution k of `k + c * sum(abs(k * target - before)) = 1`: with c the costs per unit bought or sold,
    the trade pays for itself and ends exactly at the target. `before` may sum to less than 1: the rest is cash.

    >>> kept([[0.6, 0.4]], [[0.5, 0.5]], basis_points=100.0).round(6)  # sells about 0.1, buys less
    array([0.998])
    >>> kept([[0.0, 0.0]], [[0.5, 0.5]], basis_points=100.0) * 1.01    # from cash
    array([1.])
    """
    old, new = matrix("before", before), matrix("target", target)
    if old.shape != new.shape:
        raise ValueError(f"before and target must have one shape, got {old.shape} and {new.shape}")
    cost = rate(basis_points)
    k = np.ones(len(new))
    # The left side is convex, rises with slope at least 1 - c and is piecewise linear: Newton's method from the right
    # falls onto the solution after at most one step for each asset, usually two or three.
    for _ in range(new.shape[1] + 1):
        moved = k[:, None] * new - old
        off = k + cost * np.abs(moved).sum(axis=1) - 1
        # At a kink any slope between those of its sides will do: none leads beyond the solution.
        slope = 1 + cost * (np.sign(moved) * new).sum(axis=1)
        following = k - off / slope
        if (following >= k).all():
            break
        k = np.minimum(k, following)
    return k
