"""FTRL on noisy prefix sums over a block of rounds, compiled for each kind of noise."""

from __future__ import annotations

from reticent._kernel import kernel
from reticent.learners._ftrl import BUFFERS, TREE
from reticent.learners._noise_kernel import next_from_buffers, next_from_tree
from reticent.learners._slope_kernel import nearest, slope_of_row


@kernel
def lead_privately(
    body, code, parameter, vectors, offsets, lam, batch, done, kind, rng, sigma, a, b, c, ceiling, state, noise, total,
    u, after
):  # fmt: skip
    """Take in rounds: sum gradients at u and, at the end of every batch, go to the leader of the sum plus noise.

    `done` rounds are in already. `state` is a table of the noise, the buffers or the nodes of the tree; a, b, c are the
    coefficients of the latter two. `noise` is that of the last prefix; `state`, `noise`, `total` and `u` are changed.
    """
    n, d = vectors.shape
    for i in range(n):
        s = slope_of_row(code, parameter, vectors, offsets, i, u)
        for j in range(d):
            total[j] += s * vectors[i, j]
        done += 1
        if done % batch == 0:
            number = done // batch
            if kind == BUFFERS:
                next_from_buffers(rng, sigma, a, b, state, noise)
            elif kind == TREE:
                next_from_tree(rng, sigma, a, b, c, ceiling, number, state, noise)
            else:
                noise[:] = state[number - 1]
            for j in range(d):
                u[j] = -(total[j] + noise[j]) / lam
            nearest(body, u, u)
        after[i] = u
