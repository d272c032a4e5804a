"""Compiled walks: the grid of cells that the sum of gradients walks through, and averages of hidden descent."""

from __future__ import annotations

import math
from typing import Any

from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import nearest


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


@kernel
def average(
    body: Any,
    code: Any,
    parameter: Any,
    vectors: Any,
    offsets: Any,
    lengths: Any,
    steps: Any,
    state: Any,
    hidden: Any,
    total: Any,
    u: Any,
    after: Any,
) -> None:
    """Take in rounds: descent in `hidden`, its points summed in `total`; at the end of an epoch play their mean.

    `state` holds the epoch and its rounds so far. The last epoch only plays.
    """
    n, d = vectors.shape
    for i in range(n):
        if state[0] < lengths.size - 1:
            epoch = state[0]
            s = slope_of_row(code, parameter, vectors, offsets, i, hidden)
            for j in range(d):
                total[j] += hidden[j]
                hidden[j] -= steps[epoch] * s * vectors[i, j]
            nearest(body, hidden, hidden)
            state[1] += 1
            if state[1] == lengths[epoch]:
                for j in range(d):
                    u[j] = total[j] / lengths[epoch]
                    hidden[j], total[j] = 0.0, 0.0
                nearest(body, u, u)
                state[0], state[1] = epoch + 1, 0
        put(u, after[i])
