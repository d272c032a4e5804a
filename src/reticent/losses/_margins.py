"""Norms of chart rows and the margins they can reach over a domain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reticent._check import Array
from reticent._norms import norms
from reticent.losses._rows import Charted, Rows

_CHUNK = 1 << 19  # numbers looked at together, so that a long memory map needs little memory


def margin_range(domain: Charted, rows: Rows) -> tuple[Array, Array]:
    """Return bounds of the margin of each row over the domain: from its ball and from its box, the tighter.

    >>> from types import SimpleNamespace as Plain
    >>> square = Plain(radius=2**0.5, body=Plain(lo=np.array([-1.0, -1.0]), hi=np.array([1.0, 1.0])))
    >>> low, high = margin_range(square, Rows(np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([1.0, 0.0])))
    >>> low.round(12), high.round(12)
    (array([-2., -2.]), array([4., 2.]))
    """
    low, high = np.empty(len(rows)), np.empty(len(rows))
    lo, hi = domain.body.lo, domain.body.hi
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _parts(rows.vectors):
            vectors = rows.vectors[part]
            reach = norms(vectors) * domain.radius
            up, down = np.maximum(vectors, 0.0), np.minimum(vectors, 0.0)
            # fmax and fmin pass over a NaN that an overflow in the box bound may leave.
            # einsum, not @, whose sums depend on how many rows there are.
            low[part] = np.fmax(_dot(up, lo) + _dot(down, hi), -reach) + rows.offsets[part]
            high[part] = np.fmin(_dot(up, hi) + _dot(down, lo), reach) + rows.offsets[part]
    return low, high


def _dot(rows: Array, point: Array) -> Array:
    product: Array = np.einsum("ij,j->i", rows, point)
    return product


def _parts(vectors: Array) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, vectors.shape[1]))
    return (slice(start, start + step) for start in range(0, len(vectors), step))
