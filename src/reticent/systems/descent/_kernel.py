"""Gradient steps over a block of rounds, compiled."""

from __future__ import annotations

from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import nearest


@kernel
def descend(body, code, parameter, vectors, offsets, step, batch, count, total, u, after):
    """Take in rounds: sum gradients at u, step at the end of every batch; `count` rounds of it are in already.

    Returns the number of rounds in the batch that is left open. `total` and `u` are changed in place.
    """
    n, d = vectors.shape
    for i in range(n):
        s = slope_of_row(code, parameter, vectors, offsets, i, u)
        for j in range(d):
            total[j] += s * vectors[i, j]
        count += 1
        if count == batch:
            for j in range(d):
                u[j] -= step * total[j]
                total[j] = 0.0
            nearest(body, u, u)
            count = 0
        put(u, after[i])
    return count


@kernel
def lead(body, code, parameter, vectors, offsets, lam, total, u, after):
    """Take in rounds: sum gradients at u, and go to the regularised leader of the sum after each."""
    n, d = vectors.shape
    for i in range(n):
        s = slope_of_row(code, parameter, vectors, offsets, i, u)
        for j in range(d):
            total[j] += s * vectors[i, j]
            u[j] = -total[j] / lam
        nearest(body, u, u)
        put(u, after[i])
