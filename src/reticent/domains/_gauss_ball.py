"""Envelopes of a Gaussian restricted to a ball, for any precision matrix and a mean anywhere (docs/theory.md, S4).

The target is f(x) = exp(h.x - x'Px/2) on |x| <= R. Each envelope lies above f on the whole ball; the one of least mass
is taken, so the choice affects speed only.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._ball_gauss import _depth_density, draw_ball
from ._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, quadratic, times
from ._normal import LOG_SQRT_2PI, SQRT2, draw_normal, erfcx

PLAIN, TILTED, CAP, ROUND = range(4)
ANY = PLAIN
"""In place of a kind that is wanted: whichever is best. The plain one is taken wherever it does, unasked."""
_FIRM = 1e-13  # the least eigenvalue beside the trace at which a Cholesky factor is sure to exist in doubles


@kernel
def _multiplier(p, h2, radius2, extra):
    """The nu >= 0 with sum h2/(p+nu)^2 + extra * sum 1/(p+nu) = radius2, or 0 if the sum is smaller at 0."""
    low, high = 0.0, 0.0
    for i in range(p.size):
        high = max(high, math.sqrt(h2[i] * p.size / radius2) * 2.0 + 2.0 * extra * p.size / radius2)
    for step in range(200):
        nu = 0.0 if step == 0 else (0.5 * (low + high) if low == 0.0 or high < 4.0 * low else math.sqrt(low * high))
        s = -radius2
        for i in range(p.size):
            q = p[i] + nu
            if q <= 0.0:
                s = np.inf
                break
            s += h2[i] / (q * q) + extra / q
        if s > 0.0:
            low = nu
        else:
            high = nu
        if step == 0 and s <= 0.0:
            return 0.0
        if high - low <= 1e-14 * high:
            break
    return high


@kernel
def _cap_log_mass(p, n2, nu, flat, radius):
    """Log mass of the cap envelope, relative to f at the constrained mode; n2 are squared coordinates of the normal."""
    alpha = 0.0
    log_det = 0.0
    for i in range(p.size):
        alpha += n2[i] / (p[i] + flat)
        log_det += math.log(p[i] + flat)
    rest = 1.0 - flat * alpha
    if rest <= 0.0:
        return np.inf
    sigma = math.sqrt(alpha / rest)
    t = (nu - flat) * radius * sigma
    return p.size * LOG_SQRT_2PI - 0.5 * (log_det + math.log(rest)) + math.log(0.5 * erfcx(t / SQRT2))


@kernel
def _round_log_mass(h, k, radius):
    """Log of the integral of exp(h.x - k|x|^2/2) over the ball, by the trapezoid rule: to compare envelopes only."""
    d = h.size
    a = 0.5 * (d - 1)
    args = (math.sqrt(dot(h, h)), k, a, radius)
    low, high = 0.0, 2.0 * radius
    for _ in range(100):
        middle = 0.5 * (low + high) if low == 0.0 or high < 4.0 * low else math.sqrt(low * high)
        if low == 0.0:
            middle = 0.25 * high
        if _depth_density(args, middle)[1] > 0.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-3 * high:
            break
    mode = high
    top = _depth_density(args, mode)[0]
    width = 2.0 * radius
    while width > 1e-12 * mode and _depth_density(args, min(2.0 * radius, mode + width))[0] < top - 20.0:
        width *= 0.5
    left, right = max(0.0, mode - 2.0 * width), min(2.0 * radius, mode + 2.0 * width)
    total = 0.0
    for i in range(65):
        total += math.exp(_depth_density(args, left + (right - left) * i / 64.0)[0] - top)
    # Volume of the (d-2)-sphere times the integral over its radius, which is half of what the density leaves out.
    sphere = math.log(2.0) + a * math.log(math.pi) - math.lgamma(a)
    value = top + math.log(total * (right - left) / 64.0) + sphere - math.log(2.0)
    return value + args[0] * radius - 0.5 * k * radius * radius


@kernel
def ball_envelope(h, P, floor, radius, exact, wanted):
    """Choose an envelope: (kind, vectors (4, d), matrix (d, d), scalars (4,), log mass).

    `floor` is a known lower bound of the eigenvalues of P (0 if none is known). With `exact` the log mass is exact,
    for callers that mix the envelope with another; else it may be a number good enough for comparing. Comparing is most
    of the work: a kind that is `wanted` is taken without, if it applies, and its log mass may be missing.
    """
    d = h.size
    vectors = np.zeros((4, d))
    scalars = np.zeros(4)
    if floor > _FIRM * np.trace(P):
        W = inverse_cholesky(P)
        mean = lower_transposed_times(W, lower_times(W, h))
        trace = 0.0
        log_det = 0.0
        for i in range(d):
            log_det += 2.0 * math.log(W[i, i])
            for j in range(i + 1):
                trace += W[i, j] * W[i, j]
        Wm = lower_times(W, mean)
        spread = math.sqrt(2.0 * trace * min(trace, 1.0 / floor) + 4.0 * dot(Wm, Wm))
        if dot(mean, mean) + trace + spread <= radius * radius:
            vectors[0] = mean
            return PLAIN, vectors, W, scalars, d * LOG_SQRT_2PI + 0.5 * log_det + 0.5 * dot(h, mean)
    p, V = np.linalg.eigh(P)
    for i in range(d):
        p[i] = max(p[i], 0.0)
    ht = np.zeros(d)
    for i in range(d):
        for j in range(d):
            ht[i] += V[j, i] * h[j]
    h2 = ht * ht
    # A Gaussian made narrower by exp(nu (R^2 - |x|^2) / 2) >= 1.
    nu = _multiplier(p, h2, radius * radius, 1.0)
    mass = 0.5 * nu * radius * radius + d * LOG_SQRT_2PI
    for i in range(d):
        mass += 0.5 * h2[i] / (p[i] + nu) - 0.5 * math.log(p[i] + nu)
    kind = TILTED
    # The mode z of f on the ball; on the sphere it has a multiplier nu_star > 0.
    nu_star = _multiplier(p, h2, radius * radius, 0.0)
    zt = np.zeros(d)
    for i in range(d):
        if p[i] + nu_star > 0.0:
            zt[i] = ht[i] / (p[i] + nu_star)
    at_mode = 0.0
    for i in range(d):
        at_mode += ht[i] * zt[i] - 0.5 * p[i] * zt[i] * zt[i]
    z = times(V, zt)
    flat = 0.0
    if wanted in (ANY, CAP) and nu_star > 0.0 and dot(zt, zt) > (1.0 - 1e-9) * radius * radius:
        n2 = zt * zt / dot(zt, zt)
        low, high = 0.0, nu_star
        for _ in range(40):
            one, two = high - 0.618 * (high - low), low + 0.618 * (high - low)
            if _cap_log_mass(p, n2, nu_star, one, radius) < _cap_log_mass(p, n2, nu_star, two, radius):
                high = two
            else:
                low = one
        flat = 0.5 * (low + high)
        cap = at_mode + _cap_log_mass(p, n2, nu_star, flat, radius)
        if cap < mass or wanted == CAP:
            kind, mass = CAP, cap
    # The isotropic Gaussian of the smallest eigenvalue, touching at z: drawn exactly in O(d).
    k = p[0]
    bend = P.copy()
    for i in range(d):
        bend[i, i] -= k
    tilted = h - times(bend, z)
    level = np.inf
    if wanted == ANY and not exact:
        level = _round_log_mass(tilted, k, radius) + 0.5 * quadratic(bend, z)
    if level < mass or wanted == ROUND:
        vectors[0] = tilted
        vectors[1] = z
        scalars[0] = k
        return ROUND, vectors, bend, scalars, level
    Q = P.copy()
    if kind == TILTED:
        for i in range(d):
            Q[i, i] += nu
        W = inverse_cholesky(Q)
        vectors[0] = lower_transposed_times(W, lower_times(W, h))
        scalars[0] = nu
        return TILTED, vectors, W, scalars, mass
    normal = z / math.sqrt(dot(z, z))
    for i in range(d):
        Q[i, i] += flat
        for j in range(d):
            Q[i, j] -= flat * normal[i] * normal[j]
    W = inverse_cholesky(Q)
    Wn = lower_times(W, normal)
    variance = dot(Wn, Wn)
    vectors[0] = radius * normal
    vectors[1] = normal
    vectors[2] = lower_transposed_times(W, Wn) / variance
    scalars[0] = flat
    scalars[1] = math.sqrt(variance)
    scalars[2] = (nu_star - flat) * radius * variance
    return CAP, vectors, W, scalars, mass


@kernel
def ball_propose(rng, kind, vectors, W, scalars, radius, out):
    """Fill `out` with a point of the envelope; return log(f / envelope) there, -inf outside the ball."""
    d = out.size
    if kind == ROUND:
        draw_ball(rng, vectors[0], scalars[0], radius, out)
        return -0.5 * quadratic(W, out - vectors[1])
    z = np.empty(d)
    for i in range(d):
        z[i] = rng.standard_normal()
    g = lower_transposed_times(W, z)
    if kind == CAP:
        normal = vectors[1]
        sigma, mean = scalars[1], scalars[2]
        # Not cut off at -2R: the mass of the envelope counts the whole half-line, and the test below refuses the rest.
        w = mean + sigma * draw_normal(rng, -np.inf, -mean / sigma)
        shift = w - dot(normal, g)
        square = 0.0
        for i in range(d):
            g[i] += shift * vectors[2][i]
            square += g[i] * g[i]
            out[i] = vectors[0][i] + g[i]
        across = square - w * w
        room = -2.0 * radius * w - across  # R^2 - |x|^2 + w^2, without cancellation near the cap
        if room < w * w:
            return -np.inf
        return -0.5 * scalars[0] * room
    square = 0.0
    for i in range(d):
        out[i] = vectors[0][i] + g[i]
        square += out[i] * out[i]
    if square > radius * radius:
        return -np.inf
    return -0.5 * scalars[0] * (radius * radius - square)
