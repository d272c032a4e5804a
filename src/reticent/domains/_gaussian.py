"""A Gaussian restricted to a body, as an envelope and proposals with their log weights, for compiled kernels.

The target is f(x) = exp(h.x - x'Px/2) on |x| <= R. Each envelope lies above f on the whole ball; the one of least mass
is taken, so the choice affects speed only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent._core._check import Array
from reticent._core._fine import exponential_below, standard_exponential, standard_normal
from reticent._core._kernel import choice, kernel
from reticent._core._tags import saved
from reticent.domains._base import BallBody, Body
from reticent.domains._gaussian_polytope import polytope_envelope, polytope_propose
from reticent.domains._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, put, quadratic, times
from reticent.domains._line import line_sampler
from reticent.domains._normal import LOG_SQRT_2PI, SQRT2, draw_normal, draw_scaled, erfcx


@kernel
def log_kummer(a: float, x: float) -> float:
    """log of the integral over [0, 1] of w^(a-1) exp(-x w), for a > 0 and x >= 0."""
    if x <= a + 30.0 + 6.0 * math.sqrt(a):
        # exp(-x) sum_n x^n / (a (a+1) ... (a+n)): all terms positive.
        term = 1.0 / a
        total = term
        n = 1.0
        while True:
            term *= x / (a + n)
            total += term
            if term < 1e-17 * total:
                return math.log(total) - x
            n += 1.0
    # The upper incomplete gamma function by its continued fraction is a small correction here.
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    fraction = d
    for i in range(1, 500):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        delta = d * c
        fraction *= delta
        if abs(delta - 1.0) < 1e-15:
            break
    log_upper = a * math.log(x) - x + math.log(fraction)
    whole = math.lgamma(a)
    return whole + math.log1p(-math.exp(log_upper - whole)) - a * math.log(x)


@kernel
def _depth_density(args, depth):
    """Log density of the distance below the cap, and its slope.

    `depth` = R - (component along h); the other d - 1 = 2a coordinates are integrated out.
    """
    h, k, a, radius = args
    rho2 = max(depth * (2.0 * radius - depth), 1e-280)
    x = 0.5 * k * rho2
    log_b = log_kummer(a, x)
    f = (k * radius - h) * depth - 0.5 * k * depth * depth + a * math.log(rho2) + log_b
    g = k * radius - h - k * depth + 2.0 * (radius - depth) * math.exp(-x - log_b) / rho2
    return f, g


_draw_depth = line_sampler(_depth_density)


@kernel
def _draw_truncated_gamma(rng, a, x):
    """w in [0, x] with density proportional to w^(a-1) exp(-w)."""
    if x > a:
        while True:
            w = rng.standard_gamma(a)
            if w <= x:
                return w
    # Power-law proposals w^(alpha-1); the ratio w^(a-alpha) exp(-w) peaks at w = a - alpha <= x.
    alpha = min(a, max(a - x, math.sqrt(a)))
    peak = min(a - alpha, x)
    while True:
        w = x * rng.random() ** (1.0 / alpha)
        excess = w - peak
        if peak > 0.0:
            excess -= (a - alpha) * math.log(w / peak)
        if standard_exponential(rng) >= excess:
            return w


@kernel
def draw_ball(rng, h, k, radius, out):
    """Fill `out` with a draw from exp(h.x - k|x|^2/2) on |x| <= radius, for dimension >= 2."""
    d = out.size
    norm = 0.0
    for i in range(d):
        norm += h[i] * h[i]
    norm = math.sqrt(norm)
    if k > 0.0 and norm / k + (math.sqrt(d) + 3.0) / math.sqrt(k) <= radius:
        # Hardly ever outside: the Gaussian itself, which stays accurate however narrow it is.
        while True:
            square = 0.0
            for i in range(d):
                out[i] = h[i] / k + standard_normal(rng) / math.sqrt(k)
                square += out[i] * out[i]
            if square <= radius * radius:
                return
    a = 0.5 * (d - 1)
    pull = norm - k * radius
    guess = radius
    if pull > 0.0:
        guess = min(radius, a / pull)
    elif k > 0.0:
        guess = max(radius - norm / k, 1e-6 * radius)
    # The peak is about as wide as the Gaussian, the cap or the ball, whichever is narrowest.
    scale = min(radius / math.sqrt(d), 2.0 * guess / math.sqrt(a + 1.0))
    if k > 0.0:
        scale = min(scale, 1.0 / math.sqrt(k))
    depth, _ = _draw_depth((norm, k, a, radius), 0.0, 2.0 * radius, guess, scale, rng, np.empty(1))
    rho2 = depth * (2.0 * radius - depth)
    x = 0.5 * k * rho2
    if x > 1e-12:
        r = math.sqrt(rho2 * _draw_truncated_gamma(rng, a, x) / x)
    else:
        r = math.sqrt(rho2 * rng.random() ** (1.0 / a))
    along = 0.0
    for i in range(d):
        out[i] = standard_normal(rng)
        if norm > 0.0:
            along += out[i] * h[i] / norm
        elif i == 0:
            along = out[0]
    length = 0.0
    for i in range(d):
        axis = h[i] / norm if norm > 0.0 else (1.0 if i == 0 else 0.0)
        out[i] -= along * axis
        length += out[i] * out[i]
    length = math.sqrt(length)
    for i in range(d):
        axis = h[i] / norm if norm > 0.0 else (1.0 if i == 0 else 0.0)
        out[i] = (radius - depth) * axis + r * out[i] / length


# Envelopes of a Gaussian restricted to a ball, for any precision matrix and a mean anywhere (docs/theory, S4).

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
            put(mean, vectors[0])
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
        put(tilted, vectors[0])
        put(z, vectors[1])
        scalars[0] = k
        return ROUND, vectors, bend, scalars, level
    Q = P.copy()
    if kind == TILTED:
        for i in range(d):
            Q[i, i] += nu
        W = inverse_cholesky(Q)
        put(lower_transposed_times(W, lower_times(W, h)), vectors[0])
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
    put(radius * normal, vectors[0])
    put(normal, vectors[1])
    put(lower_transposed_times(W, Wn) / variance, vectors[2])
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
        z[i] = standard_normal(rng)
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


@saved("gaussian envelope")
class Envelope(NamedTuple):
    """A function above f(x) = exp(h.x - x'Px/2) on the body, with what it takes to draw from it."""

    kind: int
    vectors: Array
    matrix: Array
    frame: Array
    scalars: Array
    extra: float
    log_mass: float


@kernel
def _envelope_on_ball(h, P, floor, body, exact, wanted):
    kind, vectors, matrix, scalars, log_mass = ball_envelope(h, P, floor, body.radius, exact, wanted)
    return Envelope(kind, vectors, matrix, matrix, scalars, 0.0, log_mass)


@kernel
def _envelope_on_polytope(h, P, floor, body, exact, wanted):
    # A flat Gaussian is made definite by exp(extra (R^2 - |x|^2) / 2) >= 1, which costs 5 percent at most.
    extra = 0.0
    if floor * body.radius**2 < 0.1:
        extra = 0.1 / body.radius**2
    Q = P.copy()
    for i in range(h.size):
        Q[i, i] += extra
    kind, vectors, matrix, frame, bound, log_mass = polytope_envelope(
        h, Q, body.A, body.b, body.suffix, body.lo, body.hi, body.radius, body.rows
    )
    scalars = np.zeros(1)
    scalars[0] = bound
    log_mass += 0.5 * extra * body.radius**2
    return Envelope(kind, vectors, matrix, frame, scalars, extra, log_mass)


@kernel
def _propose_on_ball(rng, env, body, out):
    return ball_propose(rng, env.kind, env.vectors, env.matrix, env.scalars, body.radius, out)


@kernel
def _propose_on_polytope(rng, env, body, out):
    weight = polytope_propose(
        rng, env.kind, env.vectors, env.matrix, env.frame, env.scalars[0], body.A, body.b, body.suffix, out
    )
    if env.extra > 0.0 and weight > -np.inf:
        square = 0.0
        for i in range(out.size):
            square += out[i] * out[i]
        weight -= 0.5 * env.extra * (body.radius**2 - square)
    return weight


# Kernels are compiled for one kind of body at a time, by its type: code for both would take four times as long.


def envelope(h: Array, P: Array, floor: float, body: Body, exact: bool, wanted: int = ANY) -> Envelope:
    """Return an `Envelope` of exp(h.x - x'Px/2) on the body; every eigenvalue of P is at least `floor` >= 0.

    With `exact` its log mass is exact, else good enough for comparing. `wanted` is ANY, or the kind of an envelope for
    about the same Gaussian, which spares the choice (on a ball). For use inside and outside of kernels.
    """
    found = (_envelope_on_ball if body.ball else _envelope_on_polytope)(h, P, floor, body, exact, wanted)
    assert isinstance(found, Envelope)
    return found


@choice(envelope)
def _envelope(h, P, floor, body, exact, wanted=ANY):
    chosen = _envelope_on_ball if issubclass(body.instance_class, BallBody) else _envelope_on_polytope
    # As a number of one type: numba would compile all of it once more for the constant.
    return lambda h, P, floor, body, exact, wanted=ANY: chosen(h, P, floor, body, exact, np.int64(wanted))


def propose(rng: np.random.Generator, env: Envelope, body: Body, out: Array) -> float:
    """Fill `out` with a draw from the envelope; return log(f / envelope) <= 0 there, -inf outside the body."""
    return float((_propose_on_ball if body.ball else _propose_on_polytope)(rng, env, body, out))


@choice(propose)
def _propose(rng, env, body, out):
    chosen = _propose_on_ball if issubclass(body.instance_class, BallBody) else _propose_on_polytope
    return lambda rng, env, body, out: chosen(rng, env, body, out)


@kernel
def _draw_coordinates(rng, h, k, lo, hi, out):
    """Fill `out` with independent coordinates of density exp(h x - k x^2/2) on [lo, hi], k >= 0."""
    for j in range(out.size):
        reach = max(abs(lo[j]), abs(hi[j]))
        if k[j] * reach * reach >= 0.1:
            scale = 1.0 / np.sqrt(k[j])
            out[j] = draw_scaled(rng, (lo[j] - h[j] / k[j]) / scale, lo[j], hi[j], scale)
            continue
        # Nearly flat or exactly so: an exponential, kept with probability exp(-k x^2/2) >= 0.95.
        width = hi[j] - lo[j]
        rate = abs(h[j])
        while True:
            if rate * width < 1e-9:
                step = width * rng.random()
                excess = rate * step
            else:
                step = exponential_below(rng, rate * width) / rate
                excess = 0.0
            x = hi[j] - step if h[j] > 0.0 else lo[j] + step
            if standard_exponential(rng) >= excess + 0.5 * k[j] * x * x:
                out[j] = min(max(x, lo[j]), hi[j])
                break


@kernel
def draw_isotropic(rng, direction, factor, k, body, out):
    """Fill `out` with a draw from exp(factor direction.x - k|x|^2/2) on a box or a ball, k >= 0."""
    h = factor * direction
    if body.box:
        _draw_coordinates(rng, h, np.full(out.size, k), body.lo, body.hi, out)
    else:
        draw_ball(rng, h, k, body.radius, out)


@kernel
def _draw_general(rng, h, P, floor, body, limit, out):
    env = envelope(h, P, floor, body, False)
    for count in range(1, limit + 1):
        weight = propose(rng, env, body, out)
        if weight > -np.inf and standard_exponential(rng) >= -weight:
            return count
    return -1


def separable(P: Array, body: Body) -> bool:
    """Say whether a Gaussian of precision P is drawn in closed form: isotropic on a ball, diagonal on a box."""
    diagonal = np.diag(P)
    if not (body.ball or body.box) or np.any(P - np.diag(diagonal)):
        return False
    return body.box or bool(np.ptp(diagonal) == 0.0)


def draw_gaussian(
    rng: np.random.Generator, h: Array, P: Array, floor: float, body: Body, limit: int
) -> tuple[Array, int] | None:
    """Return an exact draw from exp(h.x - x'Px/2) on the body and the proposals it took, or None after `limit`.

    `floor` >= 0 is a lower bound of the eigenvalues of P.
    """
    out = np.empty(body.dim)
    if separable(P, body):
        if body.box:
            _draw_coordinates(rng, h, np.diag(P).copy(), body.lo, body.hi, out)
        else:
            draw_isotropic(rng, h, 1.0, float(P[0, 0]), body, out)
        return out, 1
    count = int(_draw_general(rng, h, P, floor, body, limit, out))
    return None if count < 0 else (out, count)
