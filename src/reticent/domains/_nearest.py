"""Projection onto a polytope: least distance programming by non-negative least squares, then checked."""

from __future__ import annotations

import numpy as np
import scipy

from reticent._check import Array


def nearest(y: Array, A: Array, b: Array, size: float) -> Array:
    """Return the point of `A u <= b` (unit rows, 0 inside) nearest to `y`; `size` is that of the body.

    Lawson and Hanson's reduction finds the active rows in finitely many steps. The point is then solved for
    from these rows, and the conditions of Karush, Kuhn and Tucker are verified.

    >>> nearest(np.array([3.0]), np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]), 2.0)
    array([1.])
    """
    gap = A @ y - b
    worst = float(gap.max())
    if worst <= 0:
        return y.copy()
    tol = 1e-9 * size + 1e-13 * float(np.abs(y).max())
    active = _active(A, gap / worst)
    for _ in range(4 * len(b)):
        point, force = _on_rows(y, A[active], b[active])
        if force.size and force.min() < -tol:
            active = np.delete(active, int(force.argmin()))
            continue
        over = A @ point - b
        over[active] = np.minimum(over[active], tol)
        if over.max() <= tol:
            if float((A @ point - b).max()) <= 1e-12 * size:
                return point
            # The coordinates of a far `y` are coarse: what they leave outside is drawn back towards 0.
            inside: Array = point / float((A @ point / b).max())
            return inside
        active = np.append(active, int(over.argmax()))
    raise ValueError(
        f"the projection of {y!r} (from the centre of the polytope) could not be verified; "
        "scale the rows of A and b so that the body has a size near 1, and leave redundant rows out"
    )


def _active(A: Array, gap: Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    stacked = np.vstack([-A.T, gap])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    weights, _ = scipy.optimize.nnls(stacked, target, maxiter=30 * len(stacked) + 30 * len(gap))
    return np.flatnonzero(weights > 0)


def _on_rows(y: Array, rows: Array, levels: Array) -> tuple[Array, Array]:
    """Return the projection of `y` onto `rows @ u == levels`, and the multipliers of the rows."""
    point = y
    for _ in range(2):  # the second time takes away what rounding left
        step: Array = np.linalg.lstsq(rows, rows @ point - levels)[0].astype(np.float64)
        point = point - step
    force: Array = np.linalg.lstsq(rows.T, y - point)[0].astype(np.float64)
    return point, force
