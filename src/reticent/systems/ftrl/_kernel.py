"""FTRL on noisy prefix sums over a block of rounds, compiled for each kind of noise (docs/theory, R2)."""

from __future__ import annotations

import math

from reticent._core._exact import add_exactly
from reticent._core._fine import standard_normal
from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import lead
from reticent.systems.ftrl._learner import BUFFERS, TREE


@kernel
def next_from_buffers(rng, sigma, weights, decays, buffers, out):
    """Go on to the noise of the next prefix, from that of the last in `out`; `buffers` has a row for each weight."""
    for j in range(out.size):
        y = sigma * standard_normal(rng)
        for i in range(weights.size):
            y -= weights[i] * buffers[i, j]
        for i in range(weights.size):
            buffers[i, j] = decays[i] * buffers[i, j] + y
        out[j] += y


@kernel
def next_from_tree(rng, sigma, fresh, mix, variances, ceiling, number, nodes, out):
    """Write the noise of prefix `number` (from 1 on, in order) into out; `nodes` has a row for each height.

    A node is `fresh` times noise of its own plus `mix` times the noise of its two children, by its height. Where
    `ceiling` is above the variance of the prefix, independent noise tops it up to that.
    """
    d = out.size
    height = 0
    while (number >> (height + 1)) << (height + 1) == number:
        height += 1
    # The new leaf, and the nodes that it completes: their left child waits in the row below, the right one is in out.
    for j in range(d):
        out[j] = sigma * standard_normal(rng)
    for h in range(1, height + 1):
        for j in range(d):
            out[j] = fresh[h] * sigma * standard_normal(rng) + mix[h] * (nodes[h - 1, j] + out[j])
    for j in range(d):
        nodes[height, j] = out[j]
    variance = variances[height]
    for h in range(height + 1, nodes.shape[0]):
        if (number >> h) & 1:
            variance += variances[h]
            for j in range(d):
                out[j] += nodes[h, j]
    if ceiling > variance:
        extra = sigma * math.sqrt(ceiling - variance)
        for j in range(d):
            out[j] += extra * standard_normal(rng)


# FTRL on noisy prefix sums over a block of rounds, compiled for each kind of noise.


@kernel
def lead_privately(
    body, code, parameter, vectors, offsets, lam, batch, done, kind, rng, sigma, a, b, c, ceiling, state, noise, total,
    low, pull, radius, u, after
):  # fmt: skip
    """Take in rounds: sum gradients at u and, at the end of every batch, go to the leader of the sum plus noise.

    `done` rounds are in already. `state` is a table of the noise, the buffers or the nodes of the tree; a, b, c are the
    coefficients of the latter two. `noise` is that of the last prefix; `total` + `low` is the sum of gradients. All of
    these and `u` are changed. Every round also pulls back towards the ball of `radius`, by `pull` times the distance
    from it: that is public.
    """
    n, d = vectors.shape
    for i in range(n):
        s = slope_of_row(code, parameter, vectors, offsets, i, u)
        for j in range(d):
            add_exactly(total, low, j, s * vectors[i, j])
        if pull > 0:
            square = 0.0
            for j in range(d):
                square += u[j] * u[j]
            if square > radius * radius:
                share = pull * (1 - radius / math.sqrt(square))
                for j in range(d):
                    add_exactly(total, low, j, share * u[j])
        done += 1
        if done % batch == 0:
            number = done // batch
            if kind == BUFFERS:
                next_from_buffers(rng, sigma, a, b, state, noise)
            elif kind == TREE:
                next_from_tree(rng, sigma, a, b, c, ceiling, number, state, noise)
            else:
                put(state[number - 1], noise)
            lead(body, total, low, noise, lam, u)
        put(u, after[i])
