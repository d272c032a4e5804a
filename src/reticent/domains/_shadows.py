"""Implied rows that bound a polytope's shadows on its leading coordinates, for drawing coordinate after coordinate."""

from __future__ import annotations

import numpy as np
import scipy

from reticent._check import Array

_MOST_ROWS = 600  # more rows cost more per proposal than tighter slices save


def shadow_rows(vertices: Array, slack: float) -> tuple[Array, Array]:
    """Return rows and levels, implied by the hull of `vertices`, that describe its shadows on the first k coordinates.

    Each level is raised by `slack`, so that rounding never cuts the body. Shadows with very many facets are left out;
    the first coordinate's range is always there.

    >>> rows, levels = shadow_rows(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), 0.0)
    >>> rows[:, 0], levels
    (array([ 1., -1.]), array([2., 0.]))
    """
    dim = vertices.shape[1]
    rows: list[Array] = []
    levels: list[Array] = []
    for k in range(1, dim):
        shadow = vertices[:, :k]
        if k == 1:
            facets = np.array([[1.0, -shadow.max()], [-1.0, shadow.min()]])
        else:
            try:
                facets = scipy.spatial.ConvexHull(shadow).equations
            except scipy.spatial.QhullError:
                continue
            _, first = np.unique(np.round(facets / np.abs(facets).max(), 10), axis=0, return_index=True)
            facets = facets[first]
        if sum(map(len, rows)) + len(facets) > _MOST_ROWS:
            continue
        # The level is the largest value at a vertex, whatever rounding the hull went through.
        rows.append(np.pad(facets[:, :-1], ((0, 0), (0, dim - k))))
        levels.append((shadow @ facets[:, :-1].T).max(axis=0) + slack)
    if not rows:
        return np.zeros((0, dim)), np.zeros(0)
    return np.vstack(rows), np.concatenate(levels) + 0.0


def suffix_bounds(rows: Array, vertices: Array, slack: float) -> Array:
    """Return for every row c and coordinate k the least of rows[c, k+1:] @ u[k+1:] over the hull, less `slack`."""
    bounds = np.zeros_like(rows)
    for c, row in enumerate(rows):
        bounds[c] = after(vertices * row).min(axis=0)
    return np.minimum(np.where(bounds == 0.0, 0.0, bounds - slack), 0.0)


def after(terms: Array) -> Array:
    """Return for each column the sum of the columns after it, along the last axis.

    >>> after(np.array([1.0, 2.0, 3.0]))
    array([5., 3., 0.])
    """
    out = np.zeros_like(terms)
    out[..., :-1] = np.cumsum(terms[..., :0:-1], axis=-1)[..., ::-1]
    return out
