"""Scaling by public bounds: rows of length at most 1 whatever the data are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import Array


def unit(values: ArrayLike, low: float, high: float) -> Array:
    """Return values moved from the public range [low, high] to [-1, 1], clipped.

    >>> unit([0.0, 5.0, 99.0], 0.0, 10.0)
    array([-1.,  0.,  1.])
    """
    moved = (2.0 * np.asarray(values, dtype=np.float64) - (low + high)) / (high - low)
    clipped: Array = np.clip(moved, -1.0, 1.0)
    return clipped


def rows(*columns: Array) -> Array:
    """Return rows with an intercept before columns that lie in [-1, 1], divided by their largest length.

    >>> rows(np.array([1.0, 0.0]), np.array([-1.0, 0.5]), np.array([1.0, 0.0]))
    array([[ 0.5 ,  0.5 , -0.5 ,  0.5 ],
           [ 0.5 ,  0.  ,  0.25,  0.  ]])
    """
    found: Array = np.column_stack([np.ones_like(columns[0]), *columns]) / np.sqrt(1.0 + len(columns))
    return found


def labels(positive: ArrayLike) -> Array:
    """Return 1 where it is true, else -1."""
    return np.where(np.asarray(positive, dtype=bool), 1.0, -1.0)
