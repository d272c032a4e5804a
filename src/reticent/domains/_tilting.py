"""Minimax tilting: a Gaussian on a polytope drawn coordinate after coordinate, with a certified bound on the weight.

This is Botev's method (2017) for general slices (docs/theory.md, S5). Coordinate k is a truncated normal on an interval
that contains the slice of the polytope above the coordinates drawn so far; the log weight of a whole path is
concave in the path, so its largest value has a certified bound, and rejection is exact for any tilt.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._linalg import dot
from ._normal import LOG_SQRT_2PI, draw_scaled, log_mass, log_tail

NEGLIGIBLE = 1e-13  # coefficients of unit rows below this are rounding; the final check of membership covers them


@kernel
def slice_of(A, b, suffix, used, k):
    """The interval that coordinate k is confined to, and which rows confine it; `used` are partial sums A x."""
    low, high = -np.inf, np.inf
    low_row, high_row = -1, -1
    for c in range(b.size):
        a = A[c, k]
        if a > NEGLIGIBLE:
            bound = (b[c] - used[c] - suffix[c, k]) / a
            if bound < high:
                high, high_row = bound, c
        elif a < -NEGLIGIBLE:
            bound = (b[c] - used[c] - suffix[c, k]) / a
            if bound > low:
                low, low_row = bound, c
    return low, high, low_row, high_row


@kernel
def truncated_step(low, high, scale, rho):
    """(a, log mass + a^2/2 with a the end anchored at, densities at the two ends over the mass) of one coordinate.

    The coordinate, in units of `scale`, is normal given that it lies between rho + low/scale and rho + high/scale.
    Keeping exp(-a^2/2) apart keeps the weights accurate when the mean is far outside the body.
    """
    width = (high - low) / scale
    left = rho + low / scale
    right = left + width
    if left >= 0.0:
        level = log_tail(left, width)
        at_low = math.exp(-LOG_SQRT_2PI - level)
        return left, level, at_low, at_low * math.exp(-width * (left + 0.5 * width))
    if right <= 0.0:
        level = log_tail(-right, width)
        at_high = math.exp(-LOG_SQRT_2PI - level)
        return right, level, at_high * math.exp(width * (right - 0.5 * width)), at_high
    level = log_mass(left, right)
    at_low = math.exp(-0.5 * left * left - LOG_SQRT_2PI - level)
    return 0.0, level, at_low, math.exp(-0.5 * right * right - LOG_SQRT_2PI - level)


@kernel
def step_weight(delta, z0, rho, anchor, level):
    """The log weight of one coordinate: -delta (z0 + delta/2) + (tau^2 - anchor^2)/2 + level, tau = rho + delta."""
    tau = rho + delta
    return -delta * (z0 + 0.5 * delta) + 0.5 * (tau - anchor) * (tau + anchor) + level


@kernel
def _path(A, b, suffix, L, z0, mu, fixed, x):
    """Follow the means of the tilted coordinates (or the given x): psi and its gradient in the normal coordinates."""
    d = mu.size
    delta = np.zeros(d)
    used = np.zeros(b.size)
    toward_low, toward_high = np.zeros(d), np.zeros(d)
    low_rows, high_rows = np.zeros(d, np.int64), np.zeros(d, np.int64)
    psi = 0.0
    gradient = -mu
    for k in range(d):
        shift = 0.0
        for j in range(k):
            shift += L[k, j] * delta[j]
        scale = L[k, k]
        low, high, low_rows[k], high_rows[k] = slice_of(A, b, suffix, used, k)
        if not low < high:
            return -np.inf, gradient
        rho = z0[k] - mu[k]
        anchor, level, toward_low[k], toward_high[k] = truncated_step(low - shift, high - shift, scale, rho)
        if not fixed:
            width = (high - low) / scale
            if abs(anchor) < 50.0:
                x[k] = low + scale * (toward_low[k] - toward_high[k] - rho - (low - shift) / scale)
            else:
                # Far out the coordinate is nearly exponential; its mean by the formula above would be all rounding.
                fall = abs(anchor) * width
                inward = scale * (1.0 / abs(anchor) - (width / math.expm1(fall) if fall < 700.0 else 0.0))
                x[k] = low + inward if anchor > 0.0 else high - inward
            x[k] = min(max(x[k], low), high)
        delta[k] = (x[k] - shift) / scale
        psi += step_weight(delta[k], z0[k], rho, anchor, level)
        for c in range(b.size):
            used[c] += A[c, k] * x[k]
    for k in range(1, d):
        for end in range(2):
            weight = -toward_low[k] if end == 0 else toward_high[k]
            c = low_rows[k] if end == 0 else high_rows[k]
            if weight == 0.0 or c < 0:
                continue
            for i in range(k):
                s = 0.0
                for j in range(i, k + 1):
                    s += A[c, j] * L[j, i]
                gradient[i] -= weight * s / (A[c, k] * L[k, k])
    return psi, gradient


@kernel
def _look(A, b, suffix, L, z0, mu, lo, hi):
    """(bound on psi over the body, its slack, the gradient in mu-space) for the tilt mu."""
    d = mu.size
    x = np.zeros(d)
    psi, gradient = _path(A, b, suffix, L, z0, mu, False, x)
    if psi == -np.inf:
        # The path of means ran out of the polytope: the centre is a feasible path.
        x[:] = 0.0
        psi, gradient = _path(A, b, suffix, L, z0, mu, True, x)
    # psi is concave: its tangent at this path bounds it on the whole body.
    y = gradient.copy()
    slack = 0.0
    for i in range(d - 1, -1, -1):
        for j in range(i + 1, d):
            y[i] -= L[j, i] * y[j]
        y[i] /= L[i, i]
        slack += max(y[i] * (lo[i] - x[i]), y[i] * (hi[i] - x[i]))
    return psi + slack, slack, gradient


@kernel
def minimax_tilt(A, b, suffix, L, z0, lo, hi):
    """A tilt near the minimax one, by fixed-point steps with Anderson's acceleration, and a certified bound on psi."""
    d = z0.size
    memory = 6
    mus, gradients = np.zeros((memory + 1, d)), np.zeros((memory + 1, d))
    kept = 0
    mu = np.zeros(d)
    bound, slack, gradient = _look(A, b, suffix, L, z0, mu, lo, hi)
    best, best_mu = bound, mu
    step = 1.0
    looks = 1
    # Acceptance falls by exp(slack): the longer the search, the more of it is worth keeping.
    while slack > (0.02 if looks < 60 else 0.3 if looks < 200 else 1.0) and looks < 1000:
        if kept == memory + 1:
            mus[:-1], gradients[:-1] = mus[1:].copy(), gradients[1:].copy()
            kept = memory
        mus[kept], gradients[kept] = mu, gradient
        kept += 1
        faster = False
        if kept > 3:
            # The combination of the last steps whose gradients nearly cancel.
            change = gradients[1:kept] - gradients[: kept - 1]
            gram = np.zeros((kept - 1, kept - 1))
            right = np.zeros(kept - 1)
            trace = 0.0
            for i in range(kept - 1):
                right[i] = dot(change[i], gradient)
                for j in range(kept - 1):
                    gram[i, j] = dot(change[i], change[j])
                trace += gram[i, i]
            for i in range(kept - 1):
                gram[i, i] += 1e-10 * trace + 1e-300
            theta = np.linalg.solve(gram, right)
            candidate = mu + step * gradient
            for i in range(kept - 1):
                candidate -= theta[i] * (mus[i + 1] - mus[i] + step * change[i])
            new_bound, new_slack, new_gradient = _look(A, b, suffix, L, z0, candidate, lo, hi)
            looks += 1
            faster = new_slack < slack
            if faster:
                mu, bound, slack, gradient = candidate, new_bound, new_slack, new_gradient
        if not faster:
            before = slack
            mu = mu + step * gradient
            bound, slack, gradient = _look(A, b, suffix, L, z0, mu, lo, hi)
            looks += 1
            if slack > before:
                step = max(0.1, 0.7 * step)
        if bound < best:
            best, best_mu = bound, mu
    return best_mu, best


@kernel
def walk(rng, vectors, matrix, bound, A, b, suffix, out):
    """Fill `out` coordinate after coordinate; return log(f / envelope) there, -inf where a slice is empty."""
    d = out.size
    z0, mu = vectors[0], vectors[1]
    delta = np.zeros(d)
    used = np.zeros(b.size)
    weight = -bound
    for k in range(d):
        shift = 0.0
        for j in range(k):
            shift += matrix[k, j] * delta[j]
        scale = matrix[k, k]
        low, high, _, _ = slice_of(A, b, suffix, used, k)
        if not low < high:
            return -np.inf
        rho = z0[k] - mu[k]
        anchor, level, _, _ = truncated_step(low - shift, high - shift, scale, rho)
        out[k] = draw_scaled(rng, rho + (low - shift) / scale, low, high, scale)
        delta[k] = (out[k] - shift) / scale
        weight += step_weight(delta[k], z0[k], rho, anchor, level)
        for c in range(b.size):
            used[c] += A[c, k] * out[k]
    return weight
