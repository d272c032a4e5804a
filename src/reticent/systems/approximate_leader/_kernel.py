"""The approximate leader with the noise of a binary tree, compiled."""

from __future__ import annotations

import numpy as np

from reticent._core._exact import add_exactly
from reticent._core._fine import standard_normal
from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import lead


@kernel
def follow(rng, body, code, parameter, vectors, offsets, strong, added, noise, done, total, visited, sums, u, after):
    """Take in rounds: sum gradients at u, and go to the least of the noisy lower bounds after each.

    `done` rounds are in already; `total` is the sum of gradients, `visited` that of decisions, both in twice
    the precision, and `sums[h]` the noise
    on the last prefix whose length has h zeros at its end in binary. All are changed in place.
    """
    n, d = vectors.shape
    shift = np.empty(d)
    for i in range(n):
        s = slope_of_row(code, parameter, vectors, offsets, i, u)
        t = done + i + 1
        # The rounds up to t are a node that ends here, of 2^h rounds, and a shorter prefix (or nothing).
        h = 0
        while t >> h & 1 == 0:
            h += 1
        rest = t >> (h + 1)
        above = h + 1
        while rest > 0 and rest & 1 == 0:
            rest >>= 1
            above += 1
        for j in range(d):
            add_exactly(total[0], total[1], j, s * vectors[i, j])
            add_exactly(visited[0], visited[1], j, u[j])
            fresh = noise * standard_normal(rng)
            sums[h, j] = fresh + (sums[above, j] if rest > 0 else 0.0)
            shift[j] = sums[h, j] - strong * visited[0, j]
        lead(body, total[0], total[1], shift, (strong + added) * t, u)
        put(u, after[i])
