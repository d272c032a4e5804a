"""The walks of P-COMW, compiled: over linear losses, and over losses whose draws need nothing from Python."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._exact import add_exactly
from reticent._core._kernel import kernel
from reticent.domains._gaussian import draw_isotropic
from reticent.domains._linalg import put
from reticent.gibbs._curved import draw_alone
from reticent.gibbs._history import DRAWN, ingest
from reticent.gibbs._phi import rise
from reticent.systems._decider import NEVER
from reticent.systems._kernels import next_coin
from reticent.systems.pcomw._walk import (
    DONE,
    DRAWING,
    DUE,
    SPENT,
    STAGE,
    TAKING,
    TOSSING,
)

# The walk over linear losses on balls and boxes, compiled as a whole: millions of rounds a second.


@kernel
def play_linear(rng, body, beta, k, batch, length, cap, coin, vectors, totals, counts, level, u, places, points):
    """Take in rounds and toss the coins due among them; return the numbers of rounds taken and of changes.

    `totals` holds the sum of all gradients and of those in the batch of the next coin, and what rounding has left of
    both (docs/theory, Q12); `counts` the rounds taken in,
    the round at which that coin is due, the first round of its batch that it reads, and the switches. This is
    `Walk.take` for a measure drawn in closed form, step by step; tests hold the two together.
    """
    draws, phi, odds = coin[0], coin[1], coin[2:]
    done, due, keep_from, spent = counts
    n, d = vectors.shape
    i = changes = 0
    y = np.empty(d)
    while i < n and changes < places.size:
        take = min(n - i, due - done)
        for r in range(i, i + take):
            for j in range(d):
                add_exactly(totals[0], totals[2], j, vectors[r, j])
        for r in range(i + max(0, min(take, keep_from - done)), i + take):
            for j in range(d):
                add_exactly(totals[1], totals[3], j, vectors[r, j])
        i += take
        done += take
        if done < due:
            break
        switches = True
        if level[0] > 0.0:
            ratio = 0.0
            for _ in range(int(draws)):
                draw_isotropic(rng, totals[0], -beta, k, body, y)
                h = 0.0
                for j in range(d):
                    h += totals[1, j] * (y[j] - u[j])
                ratio += math.exp(min(beta * h, 700.0))
            switches = level[0] > ratio / (draws * phi)
        if switches:
            draw_isotropic(rng, totals[0], -beta, k, body, u)
            spent += 1
            places[changes] = done
            put(u, points[changes])
            changes += 1
        totals[1] = 0.0
        totals[3] = 0.0
        due = keep_from = NEVER
        level[0] = 0.0
        if spent < cap:
            due, level[0] = next_coin(rng, odds, done, batch, length)
            if level[0] > 0.0 and due < NEVER:
                keep_from = due - batch
    counts[0], counts[1], counts[2], counts[3] = done, due, keep_from, spent
    return i, changes


# The walk over losses whose draws need nothing from Python, compiled as a whole.


@kernel
def _loss(past, start, stop, x):
    """The loss of some rows at x, less that at the centre (docs/theory, Q12)."""
    total, low = np.zeros(1), np.zeros(1)
    for i in range(start, stop):
        v = 0.0
        for j in range(x.size):
            v += past.vectors[i, j] * x[j]
        add_exactly(total, low, 0, rise(past.code, past.parameter, past.offsets[i], v))
    return total[0]


@kernel
def _ratio(past, beta, batch, n, points, u):
    """The mean of exp(beta (L(y) - L(u))) over the points y, for the loss L of the last `batch` of `n` rows."""
    here = _loss(past, n - batch, n, u)
    total = 0.0
    for k in range(points.shape[0]):
        # Beyond exp(700) the coin keeps in any case.
        total += math.exp(min(beta * (_loss(past, n - batch, n, points[k]) - here), 700.0))
    return total / points.shape[0]


@kernel
def play_rows(rng, parts, batch, length, cap, coin, n, stop, counts, level, u, others, fresh, places, points):
    """Take in the stored rows from `n` to `stop` and toss the coins due among them; return (rows, changes, outcome).

    This is `Walk.take`, step by step; tests hold the two together. It ends early where the changes are as many as it
    can report, where the budget is spent, and where a draw is not DRAWN: then the same call goes on with that draw.
    """
    multiplier, odds = coin[0], coin[1:]
    past, beta = parts.past, parts.beta
    changes, outcome = 0, DRAWN
    while changes < places.size and counts[SPENT] < cap:
        if counts[STAGE] == TAKING:
            count = min(stop - n, counts[DUE] - counts[DONE])
            ingest(past, n, n + count)
            n += count
            counts[DONE] += count
            if counts[DONE] < counts[DUE]:
                break
            counts[STAGE] = TOSSING if level[0] > 0.0 else DRAWING
        switches = True
        if counts[STAGE] == TOSSING:
            outcome = draw_alone(rng, parts, n, others)
            if outcome != DRAWN:
                break
            switches = level[0] > _ratio(past, beta, batch, n, others, u) / multiplier
            counts[STAGE] = DRAWING
        if switches:
            # Afresh: the auxiliary draws of a coin must never become decisions (docs/theory, P2).
            outcome = draw_alone(rng, parts, n, fresh)
            if outcome != DRAWN:
                break
            put(fresh[0], u)
            places[changes] = counts[DONE]
            put(u, points[changes])
            changes += 1
            counts[SPENT] += 1
        counts[STAGE] = TAKING
        counts[DUE] = NEVER
        if counts[SPENT] < cap:
            counts[DUE], level[0] = next_coin(rng, odds, counts[DONE], batch, length)
    return n, changes, outcome
