"""Linear programs over `A x <= b`: whether it is empty or unbounded, its middle and its extent."""

from __future__ import annotations

import numpy as np
import scipy

from reticent._check import Array


def unit_rows(A: Array, b: Array) -> tuple[Array, Array]:
    """Return the same half-spaces with rows of length 1; a row with no direction is refused.

    >>> unit_rows(np.array([[2.0]]), np.array([6.0]))
    (array([[1.]]), array([3.]))
    """
    top = np.abs(A).max(axis=1, initial=0.0)
    for i in np.flatnonzero(top == 0):
        raise ValueError(f"each row of A must have an entry other than 0, got only zeros in row {i}; leave it out")
    norms = top * np.linalg.norm(A / top[:, None], axis=1)
    return A / norms[:, None], b / norms


def merge(A: Array, b: Array) -> tuple[Array, Array]:
    """Return the half-spaces with one row for each direction: the one that cuts deepest.

    >>> merge(np.array([[1.0], [1.0], [-1.0]]), np.array([3.0, 2.0, 0.0]))
    (array([[ 1.],
           [-1.]]), array([2., 0.]))
    """
    by_depth = np.argsort(b, kind="stable")
    _, first = np.unique(np.round(A[by_depth], 13) + 0.0, axis=0, return_index=True)
    kept = np.sort(by_depth[first])
    return A[kept], b[kept]


def deepest(A: Array, b: Array) -> tuple[Array, float]:
    """Return the centre and the radius of a largest inscribed ball of a body with unit rows.

    The radius is negative where no point satisfies all rows; it is never reported above `max |b|`, which
    it cannot reach in a bounded body.

    >>> deepest(np.array([[1.0], [-1.0]]), np.array([4.0, 0.0]))
    (array([2.]), 2.0)
    """
    m, dim = A.shape
    scale = float(np.abs(b).max()) or 1.0
    cost = np.zeros(dim + 1)
    cost[-1] = -1.0
    solution = _solve(cost, np.column_stack([A, np.ones(m)]), b / scale, [(None, None)] * dim + [(None, 1.0)])
    return solution[:-1] * scale, float(solution[-1]) * scale


def ray(A: Array) -> Array | None:
    """Return a direction in which every body `A x <= b` with a point goes on forever, or None.

    >>> ray(np.array([[1.0], [-1.0]])) is None
    True
    """
    dim = A.shape[1]
    _, sizes, directions = np.linalg.svd(A)
    if sizes.size < dim or sizes[-1] <= 1e-12 * sizes[0]:
        last: Array = directions[-1]
        return last
    found = _solve(A.sum(axis=0), A, np.zeros(len(A)), [(-1.0, 1.0)] * dim)
    return found if float((A @ found).min()) < -1e-8 else None


def least(c: Array, A: Array, b: Array) -> Array:
    """Return a minimiser of `c @ u` over a bounded body with 0 inside.

    It is as exact as the solver's tolerance (1e-10 of the smallest `b`).

    >>> least(np.array([1.0]), np.array([[1.0], [-1.0]]), np.array([1.0, 2.0]))
    array([-2.])
    """
    scale = float(b.min())
    size = float(np.abs(c).max())
    if size == 0:
        return np.zeros(c.size)
    return _solve(c / size, A, b / scale, [(None, None)] * c.size) * scale


def _solve(c: Array, A: Array, b: Array, bounds: list[tuple[float | None, float | None]]) -> Array:
    answer = scipy.optimize.linprog(
        c,
        A_ub=A,
        b_ub=b,
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise ValueError(
            f"the linear program of the polytope could not be solved ({answer.message}); "
            "scale the rows of A and b so that the body has a size near 1"
        )
    return np.asarray(answer.x, dtype=np.float64)
