"""Perturbed regularised leaders, compiled: their minimisers, and the coins that keep them (docs/theory, R5)."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._exact import add_exactly
from reticent._core._fine import standard_exponential, standard_normal
from reticent._core._kernel import kernel
from reticent.domains._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, put
from reticent.gibbs._phi import d2phi, dphi, margin
from reticent.losses._glm import SQUARED
from reticent.systems._decider import NEVER
from reticent.systems._kernels import next_coin
from reticent.systems._nearest import nearest

NEAR = 1e-12
"""Of half the width of the body: a Newton step that short in every coordinate is the last."""
ROUNDED, SURELY = 2.0**-52, 2.0**-46
"""Of the size of what is added up to a slope: differences that small may be, and surely no more is, rounding alone."""
GOOD = 1e-6
"""Of half the width: what a minimiser may be off by, were the curvature least where it is not, before a run stops."""
TURNS, LATE = 300, 100
"""Newton steps at most, and after how many a step of 1e-9 of half the width will do."""
_TOGETHER = 512  # rows whose gradients are added up plainly (docs/theory, Q12)


@kernel
def derivatives(code, parameter, lam, vectors, offsets, count, b, Z, x, g, H, size):
    """Write gradient and Hessian, at x, of the first `count` rows plus Z.x into g and H, then add lam/2 |x|^2 to g.

    Squared losses are known by their sums: b, and H, which is left as it is. Gradients of others are added up in
    groups, and groups in twice the precision. How large the terms of each slope are in all is left in `size`.
    """
    d = x.size
    for j in range(d):
        size[j] = abs(Z[j]) + lam * abs(x[j])
    if code == SQUARED:
        for j in range(d):
            g[j] = lam * x[j] + Z[j] + b[j] + dot(H[j], x)
            size[j] += abs(b[j])
            for k in range(d):
                size[j] += abs(H[j, k] * x[k])
        return
    g[:] = 0.0
    H[:] = 0.0
    rest, group, bends = np.zeros(d), np.empty(d), np.empty((d, d))
    for first in range(0, count, _TOGETHER):
        group[:] = 0.0
        bends[:] = 0.0
        for i in range(first, min(first + _TOGETHER, count)):
            m = margin(vectors, offsets, i, x)
            slope, bend = dphi(code, parameter, m), d2phi(code, parameter, m)
            for j in range(d):
                group[j] += slope * vectors[i, j]
                size[j] += abs(slope * vectors[i, j])
                for k in range(j + 1):
                    bends[j, k] += bend * vectors[i, j] * vectors[i, k]
        for j in range(d):
            add_exactly(g, rest, j, group[j])
            for k in range(j + 1):
                H[j, k] += bends[j, k]
    for j in range(d):
        g[j] = (g[j] + Z[j]) + rest[j] + lam * x[j]
        for k in range(j):
            H[k, j] = H[j, k]


@kernel
def raised(H, amount):
    """H plus a multiple of the identity."""
    P = H.copy()
    for j in range(P.shape[0]):
        P[j, j] += amount
    return P


@kernel
def _ball_step(radius, lam, x, g, H, y):
    """Write the minimiser of the quadratic model at x over the ball into y; return its multiplier (0: inside)."""
    d = x.size
    right = np.empty(d)
    for j in range(d):
        right[j] = dot(H[j], x) + lam * x[j] - g[j]
    nu = 0.0
    for _ in range(200):
        W = inverse_cholesky(raised(H, lam + nu))
        put(lower_transposed_times(W, lower_times(W, right)), y)
        size = math.sqrt(dot(y, y))
        if nu == 0.0 and size <= radius:
            return 0.0
        if size <= radius * (1.0 + 1e-15):
            break
        half = lower_times(W, y)
        more = size * size / dot(half, half) * (size - radius) / radius
        if more <= 1e-16 * (lam + nu):
            break
        nu += more
    for j in range(d):
        y[j] *= radius / size
    return nu


@kernel
def _box_step(lo, hi, lam, x, g, H, y):
    """Write the minimiser of the quadratic model at x over the box into y, by projected Newton steps."""
    d = x.size
    put(x, y)
    q, right, moved = np.empty(d), np.empty(d), np.empty(d)
    for _ in range(200):
        P = raised(H, lam)
        for j in range(d):
            q[j] = g[j] + lam * (y[j] - x[j])
            for k in range(d):
                q[j] += H[j, k] * (y[k] - x[k])
        wide = 0.0
        for j in range(d):
            wide = max(wide, abs(y[j] - min(max(y[j] - q[j] / P[j, j], lo[j]), hi[j])))
        for j in range(d):
            right[j] = -q[j]
            # Coordinates that the slope pushes into a bound nearby go there by themselves (Bertsekas 1982).
            near = min(wide, 1e-3 * (hi[j] - lo[j]))
            if (y[j] <= lo[j] + near and q[j] > 0.0) or (y[j] >= hi[j] - near and q[j] < 0.0):
                own = P[j, j]
                P[j] = 0.0
                P[:, j] = 0.0
                P[j, j] = own
        W = inverse_cholesky(P)
        step = lower_transposed_times(W, lower_times(W, right))
        part, inside = 1.0, False
        for _ in range(60):
            inside = True
            for j in range(d):
                moved[j] = y[j] + part * step[j]
                if not lo[j] <= moved[j] <= hi[j]:
                    inside = False
                    moved[j] = min(max(moved[j], lo[j]), hi[j])
            # The change of the model from y to the point moved to, and what a fair share of the slope would give.
            change = fair = 0.0
            for j in range(d):
                here = moved[j] - y[j]
                fair += q[j] * here
                bent = lam * here
                for k in range(d):
                    bent += H[j, k] * (moved[k] - y[k])
                change += here * (q[j] + 0.5 * bent)
            if (inside and part == 1.0) or change <= 1e-4 * fair:
                break
            part *= 0.5
        far = 0.0
        for j in range(d):
            far = max(far, abs(moved[j] - y[j]) / (hi[j] - lo[j]))
        put(moved, y)
        if far <= 1e-15 and part == 1.0:
            break


@kernel
def newton_point(body, lam, x, g, H, y):
    """Write the minimiser of the quadratic model at x over a ball or a box into y; return the multiplier of a ball."""
    if body.ball:
        return _ball_step(body.radius, lam, x, g, H, y)
    _box_step(body.lo, body.hi, lam, x, g, H, y)
    return 0.0


@kernel
def half_widths(body, d):
    """Half the width of a ball or a box in every coordinate: what accuracy is relative to, as steps of its grid are."""
    half = np.full(d, body.radius)
    if not body.ball:
        for j in range(d):
            half[j] = 0.5 * (body.hi[j] - body.lo[j])
    return half


@kernel
def distance(lam, size, half, x, y):
    """How long a step from x to y is, in its longest coordinate and as a part of half the width there.

    A coordinate in which rounding of slopes alone, of terms of that size, makes a step that long has arrived.
    """
    far = 0.0
    for j in range(x.size):
        step = abs(y[j] - x[j])
        if step * lam > ROUNDED * size[j]:
            far = max(far, step / half[j])
    return far


@kernel
def settle(body, lam, x, g, H, size, free):
    """Say which coordinates are free at a minimiser; a minimum that was not found is an error, never a decision."""
    d = x.size
    y, half = np.empty(d), half_widths(body, d)
    trace = lam
    for j in range(d):
        trace += H[j, j]
    for j in range(d):
        y[j] = x[j] - g[j] / trace
    nearest(body, y, y)
    for j in range(d):
        free[j] = body.ball or body.lo[j] < x[j] < body.hi[j]
        if not abs(y[j] - x[j]) * trace <= max(GOOD * lam * half[j], SURELY * size[j]):
            raise RuntimeError(
                "the minimiser of the perturbed losses was not found to the accuracy of the arithmetic; are all "
                "gradients continuous?"
            )


@kernel
def minimise(body, code, parameter, lam, vectors, offsets, count, b, Z, x, H, free):
    """Bring x to the minimiser over the body, leave the Hessian there in H, say which coordinates are free.

    For linear losses that is a nearest point, on any body; curvature needs a ball or a box. There Newton steps on the
    exact quadratic model over the body are cut back until the slope along the step is not much positive; the multiplier
    of a ball is returned. `CustomWalk` does the same with the caller's functions.
    """
    d = x.size
    if code < 0:
        for j in range(d):
            x[j] = -(b[j] + Z[j]) / lam
        nearest(body, x, x)
        return 0.0
    g, next_g, y, candidate, half = np.empty(d), np.empty(d), np.empty(d), np.empty(d), half_widths(body, d)
    next_H, size = H.copy(), np.empty(d)
    derivatives(code, parameter, lam, vectors, offsets, count, b, Z, x, g, H, size)
    nu = 0.0
    for turn in range(TURNS):
        nu = newton_point(body, lam, x, g, H, y)
        far = distance(lam, size, half, x, y)
        if far <= NEAR or (turn >= LATE and far <= 1e-9):
            put(y, x)  # the last step: what is left then is rounding
            derivatives(code, parameter, lam, vectors, offsets, count, b, Z, x, g, H, size)
            break
        gain = 0.0
        steep = math.sqrt(dot(g, g))
        for j in range(d):
            gain -= g[j] * (y[j] - x[j])
        part = 1.0
        while True:
            along = 0.0
            for j in range(d):
                candidate[j] = y[j] if part == 1.0 else x[j] + part * (y[j] - x[j])
            derivatives(code, parameter, lam, vectors, offsets, count, b, Z, candidate, next_g, next_H, size)
            for j in range(d):
                along += next_g[j] * (y[j] - x[j])
            # The last term is what rounding alone can make of the two slopes.
            if along <= 0.25 * gain + 1e-14 * steep * body.radius or part < 1e-4:
                break
            part *= 0.4
        put(candidate, x)
        put(next_g, g)
        for j in range(d):
            put(next_H[j], H[j])
    settle(body, lam, x, g, H, size, free)
    return nu


@kernel
def swell(body, lam, nu, H, free, x, more):
    """The logarithm of det(1 + more Xi): how much `more` curvature at x makes of the determinant there (R5b).

    Xi says how fast x falls as Z moves, x kept on the face of the body where it is: the inverse of H + lam + nu, on
    coordinates that are free, and on the sphere's tangent space.
    """
    d = x.size
    P, M = raised(H, lam + nu), more.copy()
    for j in range(d):
        if not free[j]:
            P[j] = 0.0
            P[:, j] = 0.0
            P[j, j] = 1.0
            M[j] = 0.0
            M[:, j] = 0.0
    W = inverse_cholesky(P)
    for _ in range(2):  # W M W', from both sides
        turned = np.empty((d, d))
        for j in range(d):
            put(lower_times(W, M[j]), turned[j])
        for j in range(d):
            for k in range(d):
                M[j, k] = turned[k, j]
    if body.ball and nu > 0.0:
        along = lower_times(W, x)
        length = math.sqrt(dot(along, along))
        for j in range(d):
            along[j] /= length
        across = np.empty(d)
        for j in range(d):
            across[j] = dot(M[j], along)
        twice = dot(across, along)
        for j in range(d):
            for k in range(d):
                M[j, k] += along[j] * twice * along[k] - along[j] * across[k] - across[j] * along[k]
    V = inverse_cholesky(raised(M, 1.0))
    value = 0.0
    for j in range(d):
        value -= 2.0 * math.log(V[j, j])
    return max(value, 0.0)


@kernel
def log_ratio(body, lam, sigma, nu, H, free, x, Z, g, curved, more):
    """The logarithm of next over present density of the state, for rounds whose gradient at x is g in all.

    `more` is their Hessian there, if they are `curved`; H and Z are as before these rounds.
    """
    value = (dot(g, Z) - 0.5 * dot(g, g)) / (sigma * sigma)
    if curved:
        value += swell(body, lam, nu, H, free, x, more)
    return value


@kernel
def fresh(rng, sigma, Z):
    """Draw Z afresh."""
    for j in range(Z.size):
        Z[j] = sigma * standard_normal(rng)


@kernel
def renew(rng, body, code, parameter, lam, sigma, vectors, offsets, count, b, Z, x, H, free):
    """Draw Z afresh and go to its minimiser; return the multiplier."""
    fresh(rng, sigma, Z)
    return minimise(body, code, parameter, lam, vectors, offsets, count, b, Z, x, H, free)


@kernel
def absorb(body, lam, sigma, odds, batch, g, curved, bend, state, nu, counts, level):
    """Take in the gradient of one round at the decision, and its Hessian there; say whether the decision is to change.

    `counts` holds the rounds taken in, the round at which the next coin is due, and the draws made after the first.
    A coin is about the rounds since the last end of a batch, whose sums are in `block` and `block_H`: Z and H hold
    them already. All are kept in twice the precision (docs/theory, Q12).
    """
    x, free, (Z, block, rest_Z, rest_block), (H, block_H, rest_H, rest_block_H) = state
    d = x.size
    for j in range(d):
        add_exactly(Z, rest_Z, j, -g[j])
        add_exactly(block, rest_block, j, g[j])
        if curved:
            for k in range(d):
                add_exactly(H[j], rest_H[j], k, bend[j, k])
                add_exactly(block_H[j], rest_block_H[j], k, bend[j, k])
    counts[0] += 1
    if counts[0] % batch != 0:
        return False
    switches = counts[0] == counts[1]
    if switches and level[0] > 0.0:
        before = np.empty(d)
        for j in range(d):
            before[j] = Z[j] + block[j]
        bent = False
        for j in range(d):
            bent = bent or block_H[j, j] != 0.0
        H_before = H - block_H if bent else H
        ratio = log_ratio(body, lam, sigma, nu[0], H_before, free, x, before, block, bent, block_H)
        switches = math.log(level[0]) > ratio - odds[0]
    for part in (block, rest_block):
        part[:] = 0.0
    for part in (block_H, rest_block_H):
        part[:] = 0.0
    return switches


@kernel
def play(
    rng, body, code, parameter, lam, sigma, odds, batch, cap, vectors, offsets, start, sums, state, nu, counts, level,
    out,
):  # fmt: skip
    """Take in rows from `start` on; return the number of the next one and of changes, which are written to `out`.

    Sums that decisions are drawn from are kept in twice the precision (docs/theory, Q12).
    """
    b, rest = sums
    x, free, (Z, _, rest_Z, _), (H, _, rest_H, _) = state
    places, points = out
    n, d = vectors.shape
    changes, i = 0, start
    before, g, bend = np.empty(d), np.empty(d), np.zeros((d, d))
    known = code < 0 or code == SQUARED
    while i < n and changes < places.size:
        if counts[2] >= cap:
            counts[0] += n - i
            return n, changes
        a = vectors[i]
        slope, curve = 1.0, 0.0
        if code >= 0:
            m = margin(vectors, offsets, i, x)
            slope, curve = dphi(code, parameter, m), d2phi(code, parameter, m)
        for j in range(d):
            g[j] = slope * a[j]
            if known:
                add_exactly(b, rest, j, offsets[i] * a[j] if code >= 0 else a[j])
            if curve > 0.0:
                for k in range(d):
                    bend[j, k] = curve * a[j] * a[k]
        switches = absorb(body, lam, sigma, odds, batch, g, curve > 0.0, bend, state, nu, counts, level)
        i += 1
        if switches:
            put(x, before)
            nu[0] = renew(rng, body, code, parameter, lam, sigma, vectors, offsets, i, b, Z, x, H, free)
            counts[2] += 1
            rest_Z[:] = 0.0
            if not known:
                rest_H[:] = 0.0  # H has been found anew
            if (before != x).any():
                places[changes] = counts[0]
                put(x, points[changes])
                changes += 1
        if counts[0] == counts[1]:
            counts[1], level[0] = next_coin(rng, odds[1:], counts[0], batch, NEVER)
    return i, changes


@kernel
def reflect(rng, body, lam, sigma, vectors, S, Z, u, after):
    """Take in linear losses: keep S + Z if the next law allows it, else reflect it into that law (R5h)."""
    n, d = vectors.shape
    for i in range(n):
        g = vectors[i]
        toss = standard_exponential(rng)
        square, along = dot(g, g), dot(g, Z)
        switches = square > 0.0 and toss * sigma * sigma < 0.5 * square - along
        for j in range(d):
            S[j] += g[j]
            Z[j] -= 2.0 * along / square * g[j] if switches else g[j]
        if sigma == 0.0:
            Z[:] = 0.0
        if switches:
            for j in range(d):
                u[j] = -(S[j] + Z[j]) / lam
            nearest(body, u, u)
        put(u, after[i])
