"""Lower bounds of a linear function over a body that hold whatever a solver says, and points drawn back inside."""

from __future__ import annotations

import numpy as np
import scipy

from reticent._check import Array
from reticent.domains import Domain, Simplex


def linear_floor(domain: Domain, slope: Array) -> float:
    """Return a lower bound of `slope @ u` over the chart points u of the domain; tight up to rounding.

    Balls, boxes and simplices have closed forms. For a polytope, the vertex that a solver finds only says which rows
    to weigh: for any `y >= 0`, `slope @ u >= -b @ y + (slope + A.T @ y) @ u`, and what is left over in the last
    term (nothing, up to rounding, for the right y) is bounded over the bounding box.

    >>> from reticent.domains import Ball, Interval
    >>> linear_floor(Ball(2, radius=2.0), np.array([3.0, 4.0])), linear_floor(Interval(0.0, 4.0), np.array([-1.0]))
    (-10.0, -2.0)
    """
    body = domain.body
    if body.ball:
        return -float(np.linalg.norm(slope)) * body.radius
    if body.box:
        return float(np.minimum(slope * body.lo, slope * body.hi).sum())
    if isinstance(domain, Simplex):
        return float((domain.to_chart(np.eye(domain.dim)) @ slope).min())
    size = float(np.abs(slope).max())
    if size == 0.0:
        return 0.0
    c = slope / size  # the chart of a polytope only moves the origin: a slope is the same in both
    A, b = body.A[: body.rows], body.b[: body.rows]
    vertex = domain.to_chart(domain.support(c))
    best = -np.inf
    for near in (1e-9, 1e-6, np.inf):
        rows = np.flatnonzero(b - A @ vertex <= near * body.radius)
        if not rows.size:
            continue
        y, left = scipy.optimize.nnls(A[rows].T, -c, maxiter=100 * (rows.size + c.size))
        rest = c + A[rows].T @ y
        best = max(best, float(-b[rows] @ y + np.minimum(rest * body.lo, rest * body.hi).sum()))
        if left <= 1e-9:
            break
    return best * size


def inward(domain: Domain, u: Array) -> Array:
    """Return u, or where it lies outside the body the point of it towards the centre.

    >>> from reticent.domains import Ball
    >>> inward(Ball(2), np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    body = domain.body
    if body.box:
        clipped: Array = np.clip(u, body.lo, body.hi)
        return clipped
    if body.ball:
        over = float(np.linalg.norm(u)) / body.radius
    else:
        # The centre is strictly inside, so all levels are positive.
        over = float((body.A[: body.rows] @ u / body.b[: body.rows]).max())
    drawn: Array = u / over if over > 1.0 else u
    return drawn
