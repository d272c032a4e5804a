"""Hidden descent with steps 1/(h (t + offset)), and the corner of its cell that the thresholds choose, compiled."""

from __future__ import annotations

import math
from typing import Any

from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import nearest


@kernel
def place(body: Any, parts: Any, shift: Any, hidden: Any, u: Any) -> None:
    """Write the decision for a hidden point: in each coordinate the end of its part that the threshold chooses.

    The i-th side is cut into parts[i] equal parts; the upper end is chosen with the share of the part that lies below
    the hidden point, so that the mean is that point (docs/theory, R5k). Without parts it is the centre.
    """
    for j in range(u.size):
        low, high, count = body.lo[j], body.hi[j], parts[j]
        if count == 0:
            u[j] = 0.5 * (low + high)
            continue
        cell = math.ceil((hidden[j] - low) / (high - low) * count - shift[j])
        # The ends of the side are met exactly, whatever rounding does in between.
        if cell <= 0:
            u[j] = low
        elif cell >= count:
            u[j] = high
        else:
            u[j] = low + (high - low) * (cell / count)


@kernel
def walk_grid(
    body: Any,
    code: Any,
    parameter: Any,
    vectors: Any,
    offsets: Any,
    convexity: Any,
    offset: Any,
    ends: Any,
    parts: Any,
    shifts: Any,
    state: Any,
    hidden: Any,
    u: Any,
    after: Any,
) -> None:
    """Take in rounds: a step of `hidden` each, and the decision that its epoch's grid has for it.

    `state` holds the rounds that counted, and the epoch. A row of zeros is a constant loss, which is not strongly
    convex: it does not count, so that the steps of the others stay as in the proof. For linear losses (code -1, the
    gradients of custom ones) zeros are the gradient at the least point of a round that counts.
    """
    n, d = vectors.shape
    for i in range(n):
        counts = code < 0
        for j in range(d):
            counts = counts or vectors[i, j] != 0.0
        if counts:
            s = slope_of_row(code, parameter, vectors, offsets, i, hidden)
            step = 1.0 / (convexity * (state[0] + 1 + offset))
            for j in range(d):
                hidden[j] -= step * s * vectors[i, j]
            nearest(body, hidden, hidden)
            state[0] += 1
            if state[1] < ends.size - 1 and state[0] == ends[state[1]]:
                state[1] += 1
            place(body, parts[state[1]], shifts[state[1]], hidden, u)
        put(u, after[i])
