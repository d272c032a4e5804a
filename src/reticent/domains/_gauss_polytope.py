"""The envelope of a Gaussian on a polytope: coordinate after coordinate, with tilted means (docs/theory.md, S5).

This is minimax tilting (Botev 2017) for general slices. Coordinate k is a truncated normal on an interval that
contains the slice of the polytope above the coordinates drawn so far; the log weight of a whole path is concave
in the path, so its largest value has a certified bound, and rejection is exact for any tilt.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._corner import corner_rows, pressing_rows
from ._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, quadratic, times
from ._normal import LOG_SQRT_2PI, draw_scaled, log_mass, log_tail

PLAIN, SEQUENTIAL, CORNER = range(3)
NEGLIGIBLE = 1e-13  # coefficients of unit rows below this are rounding; the final check of membership covers them


@kernel
def _slice(A, b, suffix, used, k):
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
def _step(low, high, scale, rho):
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
def _weight(delta, z0, rho, anchor, level):
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
        low, high, low_rows[k], high_rows[k] = _slice(A, b, suffix, used, k)
        if not low < high:
            return -np.inf, gradient
        rho = z0[k] - mu[k]
        anchor, level, toward_low[k], toward_high[k] = _step(low - shift, high - shift, scale, rho)
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
        psi += _weight(delta[k], z0[k], rho, anchor, level)
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
def _inside_chance(A, b, W, mean):
    """A lower bound of the chance that the unrestricted Gaussian falls into the polytope."""
    outside = 0.0
    for c in range(b.size):
        row = lower_times(W, A[c])
        spread = 0.0
        room = b[c]
        for j in range(mean.size):
            spread += row[j] * row[j]
            room -= A[c, j] * mean[j]
        outside += 0.5 * math.erfc(room / math.sqrt(2.0 * spread))
    return 1.0 - outside


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
def _tilt(A, b, suffix, L, z0, lo, hi):
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
def _cholesky_of_inverse(W):
    """L lower triangular with L L' = W'W."""
    d = W.shape[0]
    L = np.zeros((d, d))
    for i in range(d):
        for j in range(i + 1):
            s = 0.0
            for k in range(i, d):
                s += W[k, i] * W[k, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(s, 1e-300)) if i == j else s / L[j, j]
    return L


@kernel
def _box_rows(half):
    """The rows of the box of half-widths `half`: A, b, suffix."""
    d = half.size
    A, b = np.zeros((2 * d, d)), np.empty(2 * d)
    suffix = np.zeros((2 * d, d))
    for j in range(d):
        A[j, j], A[d + j, j] = 1.0, -1.0
        b[j] = b[d + j] = half[j]
        for k in range(j):
            suffix[j, k] = suffix[d + j, k] = -half[j]
    return A, b, suffix


@kernel
def _corner(h, P, W, mean, A, b, radius):
    """An envelope in the coordinates of a corner: (vectors, L, bound, frame, log mass), infinite mass if there is none.

    With d independent rows, y = b - A x - half (their slacks, centred) are coordinates: x = origin - frame y. In them
    the polytope lies in the box |y| <= half, whose slices are smooth; the other rows are left to rejection.
    """
    d = h.size
    vectors = np.zeros((4, d))
    multipliers, slacks = pressing_rows(h, W, mean, A, b)
    rows, found = corner_rows(A, multipliers, slacks)
    if not found:
        return vectors, W, 0.0, W, np.inf
    M, half = np.empty((d, d)), np.empty(d)
    shifted = np.empty(d)
    for k in range(d):
        M[k] = A[rows[k]]
        half[k] = 0.5 * (b[rows[k]] + radius)  # a slack is at most b + |x|
        shifted[k] = b[rows[k]] - half[k]
    frame = np.ascontiguousarray(np.linalg.inv(M))
    origin = times(frame, shifted)
    push = h - times(P, origin)
    h_y, P_y = np.zeros(d), np.zeros((d, d))
    bent = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            h_y[i] -= frame[j, i] * push[j]
            for k in range(d):
                bent[i, j] += P[i, k] * frame[k, j]
    for i in range(d):
        for j in range(d):
            for k in range(d):
                P_y[i, j] += frame[k, i] * bent[k, j]
    W_y = inverse_cholesky(P_y)
    L = _cholesky_of_inverse(W_y)
    z0 = -lower_transposed_times(L, h_y)
    box_A, box_b, box_suffix = _box_rows(half)
    mu, bound = _tilt(box_A, box_b, box_suffix, L, z0, -half, half)
    vectors[0], vectors[1], vectors[2], vectors[3] = z0, mu, origin, half
    level = dot(h, origin) - 0.5 * quadratic(P, origin) + math.log(abs(np.linalg.det(frame))) + d * LOG_SQRT_2PI
    for i in range(d):
        level += math.log(L[i, i])
    return vectors, L, bound, frame, level + bound


@kernel
def polytope_envelope(h, P, A, b, suffix, lo, hi, radius, genuine):
    """(kind, vectors (4, d), matrix, frame, bound on psi, log mass) of f(x) = exp(h.x - x'Px/2), P definite."""
    d = h.size
    W = inverse_cholesky(P)
    vectors = np.zeros((4, d))
    mean = lower_transposed_times(W, lower_times(W, h))
    vectors[0] = mean
    level = d * LOG_SQRT_2PI
    for i in range(d):
        level += math.log(W[i, i])
    if _inside_chance(A, b, W, mean) > 0.5:
        return PLAIN, vectors, W, W, 0.0, level + 0.5 * dot(h, mean)
    L = _cholesky_of_inverse(W)
    # Normal coordinates of the centre: x = L (z - z0), so f(x) = exp(-sum delta (z0 + delta/2)), delta = z - z0.
    z0 = -lower_transposed_times(L, h)
    vectors[0] = z0
    vectors[1], bound = _tilt(A, b, suffix, L, z0, lo, hi)
    corner_vectors, corner_L, corner_bound, frame, corner_mass = _corner(
        h, P, W, mean, A[:genuine], b[:genuine], radius
    )
    if corner_mass < level + bound:
        return CORNER, corner_vectors, corner_L, frame, corner_bound, corner_mass
    return SEQUENTIAL, vectors, L, W, bound, level + bound


@kernel
def _walk(rng, vectors, matrix, bound, A, b, suffix, out):
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
        low, high, _, _ = _slice(A, b, suffix, used, k)
        if not low < high:
            return -np.inf
        rho = z0[k] - mu[k]
        anchor, level, _, _ = _step(low - shift, high - shift, scale, rho)
        out[k] = draw_scaled(rng, rho + (low - shift) / scale, low, high, scale)
        delta[k] = (out[k] - shift) / scale
        weight += _weight(delta[k], z0[k], rho, anchor, level)
        for c in range(b.size):
            used[c] += A[c, k] * out[k]
    return weight


@kernel
def polytope_propose(rng, kind, vectors, matrix, frame, bound, A, b, suffix, out):
    """Fill `out` with a point of the envelope; return log(f / envelope) there, -inf outside the polytope."""
    d = out.size
    weight = 0.0
    if kind == PLAIN:
        z = np.empty(d)
        for i in range(d):
            z[i] = rng.standard_normal()
        g = lower_transposed_times(matrix, z)
        for i in range(d):
            out[i] = vectors[0][i] + g[i]
    elif kind == SEQUENTIAL:
        weight = _walk(rng, vectors, matrix, bound, A, b, suffix, out)
    else:
        y = np.empty(d)
        box_A, box_b, box_suffix = _box_rows(vectors[3])
        weight = _walk(rng, vectors, matrix, bound, box_A, box_b, box_suffix, y)
        moved = times(frame, y)
        for i in range(d):
            out[i] = vectors[2][i] - moved[i]
    if weight == -np.inf:
        return weight
    for c in range(b.size):
        reach, size = -b[c], abs(b[c])
        for j in range(d):
            reach += A[c, j] * out[j]
            size += abs(A[c, j] * out[j])
        if reach > 1e-13 * size:  # more than rounding
            return -np.inf
    return weight
