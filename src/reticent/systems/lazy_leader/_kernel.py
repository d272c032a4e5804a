"""Follow the lazy leader, compiled: the grid of cells that the sum of gradients walks through."""

from __future__ import annotations

import math
from typing import Any

from reticent._core._kernel import kernel


@kernel
def follow(body: Any, scale: Any, shift: Any, vectors: Any, total: Any, cells: Any, places: Any, points: Any) -> Any:
    """Take in linear losses; return the number of rounds after which the cell is another, with the points there.

    A point is the decision on a ball or a box, and the direction to minimise on any other body.
    """
    n, d = vectors.shape
    count = 0
    for i in range(n):
        changed = False
        for j in range(d):
            total[j] += vectors[i, j]
            cell = math.ceil(scale * (total[j] - shift[j]))
            if cell != cells[j]:
                cells[j] = cell
                changed = True
        if not changed:
            continue
        places[count] = i
        lead(body, scale, shift, cells, points[count])
        count += 1
    return count


@kernel
def lead(body: Any, scale: Any, shift: Any, cells: Any, point: Any) -> None:
    """Write the least point of the perturbed sum into `point`, or that sum itself where the body has another shape."""
    d = shift.size
    square = 0.0
    for j in range(d):
        # The middle of the noise is taken off: what is left is uniform on [-1/2, 1/2]/scale around the sum.
        point[j] = shift[j] + (cells[j] - 0.5) / scale
        square += point[j] * point[j]
    if body.ball:
        for j in range(d):
            point[j] = -body.radius * point[j] / math.sqrt(square) if square > 0.0 else 0.0
    elif body.box:
        for j in range(d):
            point[j] = body.hi[j] if point[j] < 0.0 else body.lo[j]
