"""The vertices of a polytope, where they are few enough to list, and its volume by them."""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._check import Array

_MOST = 10_000
_MOST_FOR_VOLUME = 1_000


def vertices(A: Array, b: Array, inside: Array) -> Array | None:
    """Return the vertices of `A x <= b` (unit rows), or None where they are too many or not to be trusted.

    >>> np.sort(vertices(np.array([[1.0], [-1.0]]), np.array([4.0, -1.0]), np.array([2.0])), axis=0)
    array([[1.],
           [4.]])
    """
    m, dim = A.shape
    if dim == 1:
        ends = b / A[:, 0]
        return np.array([[ends[A[:, 0] < 0].max()], [ends[A[:, 0] > 0].min()]])
    if dim > 8 or _most_vertices(m, dim) > _MOST:
        return None
    slack = b - A @ inside
    scale = float(slack.min())
    try:
        found = scipy.spatial.HalfspaceIntersection(np.column_stack([A, -slack / scale]), np.zeros(dim)).intersections
    except scipy.spatial.QhullError:
        return None
    if not np.isfinite(found).all():
        return None
    size = float(np.abs(found).max())
    _, first = np.unique(np.round(found / size, 11), axis=0, return_index=True)
    distinct: Array = found[first]
    if float((A @ distinct.T - (slack / scale)[:, None]).max()) > 1e-9 * size:
        return None
    return distinct * scale + inside


def farthest(points: Array) -> float:
    """Return the largest distance of two of the points.

    >>> farthest(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))
    5.0
    """
    blocks = (points[i : i + 500] for i in range(0, len(points), 500))
    return max(float(scipy.spatial.distance.cdist(block, points).max()) for block in blocks)


def volume_and_spread(corners: Array) -> tuple[float, float] | None:
    """Return log volume of the hull of `corners` and the mean of |u|^2 over it, for a body with 0 inside.

    None where the triangulation would be large, or its parts do not add up to the whole.

    >>> volume_and_spread(np.array([[-1.0], [1.0]]))
    (0.6931471805599453, 0.3333333333333333)
    """
    count, dim = corners.shape
    if dim == 1:
        lo, hi = float(corners.min()), float(corners.max())
        return math.log(hi - lo), (hi * hi + hi * lo + lo * lo) / 3
    if dim > 6 or count > _MOST_FOR_VOLUME:
        return None
    size = float(np.abs(corners).max())
    try:
        hull = scipy.spatial.ConvexHull(corners / size)
    except scipy.spatial.QhullError:
        return None
    # A fan of simplices (0, v_1, ..., v_d); the mean of |u|^2 over one is known in closed form.
    fan = (corners / size)[hull.simplices]
    parts = np.abs(np.linalg.det(fan)) / math.factorial(dim)
    total = float(parts.sum())
    if not abs(total - hull.volume) <= 1e-9 * total:
        return None
    squares = (fan**2).sum(axis=(1, 2)) + (fan.sum(axis=1) ** 2).sum(axis=1)
    spread = float(parts @ squares) / total / ((dim + 1) * (dim + 2))
    return math.log(total) + dim * math.log(size), spread * size * size


def _most_vertices(m: int, dim: int) -> int:
    # The upper bound theorem.
    up, down = (dim + 1) // 2, dim // 2
    return math.comb(max(m - up, 0), down) + math.comb(max(m - down - 1, 0), up - 1)
