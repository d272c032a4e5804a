"""Coordinates in which a corner of a polytope is an orthant, for Gaussians pressed into it (docs/theory, S5).

This is Botev's method (2017) for general slices (docs/theory, S5). Coordinate k is a truncated normal on an interval
that contains the slice of the polytope above the coordinates drawn so far; the log weight of a whole path is
concave in the path, so its largest value has a certified bound, and rejection is exact for any tilt.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._fine import standard_normal
from reticent._core._kernel import kernel
from reticent.domains._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, put, quadratic, times
from reticent.domains._normal import LOG_SQRT_2PI, draw_scaled, log_mass, log_tail


@kernel
def pressing_rows(W, mean, A, b):
    """Multipliers of the rows at the mode of a Gaussian (covariance W'W) on the polytope, and the slacks there.

    The dual active-set method of Lawson and Hanson, cut off where rounding sets in: which rows are found affects
    speed only.
    """
    m, d = A.shape
    scaled = np.empty((m, d))
    room, sizes = np.empty(m), np.empty(m)
    for c in range(m):
        put(lower_times(W, A[c]), scaled[c])
        sizes[c] = np.sqrt(dot(scaled[c], scaled[c]))
        room[c] = b[c] - dot(A[c], mean)
    multipliers = np.zeros(m)
    active = np.zeros(m, np.bool_)
    slacks = room.copy()
    for _ in range(10 * d + 30):
        # The row that is broken most, as a distance in standard deviations.
        worst, worst_row = 1e-9, -1
        for c in range(m):
            if not active[c] and -slacks[c] / sizes[c] > worst:
                worst, worst_row = -slacks[c] / sizes[c], c
        if worst_row < 0:
            break
        active[worst_row] = True
        for _ in range(2 * d + 5):
            rows = np.flatnonzero(active)
            count = rows.size
            gram, right = np.zeros((count, count)), np.zeros(count)
            for i in range(count):
                right[i] = -room[rows[i]]
                for j in range(count):
                    gram[i, j] = dot(scaled[rows[i]], scaled[rows[j]])
                gram[i, i] *= 1.0 + 1e-12
            goal = np.linalg.solve(gram, right)
            # Go there, or as far as the first multiplier that falls to zero; that row is let go.
            fraction, leaving = 1.0, -1
            for i in range(count):
                now = multipliers[rows[i]]
                if goal[i] <= 0.0 and now - goal[i] > 0.0 and now / (now - goal[i]) < fraction:
                    fraction, leaving = now / (now - goal[i]), rows[i]
            for i in range(count):
                multipliers[rows[i]] += fraction * (goal[i] - multipliers[rows[i]])
            if leaving < 0:
                break
            multipliers[leaving] = 0.0
            active[leaving] = False
        y = np.zeros(d)
        for c in range(m):
            if multipliers[c] > 0.0:
                y += multipliers[c] * scaled[c]
        for c in range(m):
            slacks[c] = room[c] + dot(scaled[c], y)
    return multipliers, slacks


@kernel
def corner_rows(A, multipliers, slacks):
    """The numbers of d linearly independent rows: those that press first, then the nearest ones."""
    m, d = A.shape
    basis = np.zeros((d, d))
    chosen = np.zeros(d, np.int64)
    taken = np.zeros(m, np.bool_)
    largest = multipliers.max()
    for k in range(d):
        best, best_row = -np.inf, -1
        for c in range(m):
            if taken[c]:
                continue
            # How much of the row is new; nearly dependent rows make bad coordinates.
            left = A[c].copy()
            for i in range(k):
                left -= dot(left, basis[i]) * basis[i]
            fresh = np.sqrt(dot(left, left))
            if fresh < 0.05:
                continue
            press = multipliers[c] / largest if largest > 0.0 else 0.0
            score = 1.0 + press if press > 1e-6 else -slacks[c] / fresh
            if score > best:
                best, best_row = score, c
        if best_row < 0:
            return chosen, False
        taken[best_row] = True
        chosen[k] = best_row
        left = A[best_row].copy()
        for i in range(k):
            left -= dot(left, basis[i]) * basis[i]
        put(left / np.sqrt(dot(left, left)), basis[k])
    return chosen, True


# Minimax tilting: a Gaussian on a polytope drawn coordinate after coordinate, with a certified bound on the weight.

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
            for i in range(memory):
                put(mus[i + 1], mus[i])
                put(gradients[i + 1], gradients[i])
            kept = memory
        put(mu, mus[kept])
        put(gradient, gradients[kept])
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


# The envelope of a Gaussian on a polytope: plain, coordinate after coordinate, or in a corner (docs/theory, S5).

PLAIN, SEQUENTIAL, CORNER = range(3)


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
def _corner(h, P, W, mean, A, b, lo, hi, radius):
    """An envelope in the coordinates of a corner: (vectors, L, bound, frame, log mass), infinite mass if there is none.

    With d independent rows, y = b - A x - half (their slacks, centred) are coordinates: x = origin - frame y. In them
    the polytope lies in the box |y| <= half, whose slices are smooth; the other rows are left to rejection.
    """
    d = h.size
    vectors = np.zeros((4, d))
    multipliers, slacks = pressing_rows(W, mean, A, b)
    rows, found = corner_rows(A, multipliers, slacks)
    if not found:
        return vectors, W, 0.0, W, np.inf
    M, half = np.empty((d, d)), np.empty(d)
    shifted = np.empty(d)
    for k in range(d):
        put(A[rows[k]], M[k])
        # A slack is at most b + |x|, and on narrow sides less: a far larger box would swallow the digits of x there.
        reach = 0.0
        for j in range(d):
            reach += abs(M[k, j]) * max(-lo[j], hi[j])
        half[k] = 0.5 * (b[rows[k]] + min(reach, radius))
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
    mu, bound = minimax_tilt(box_A, box_b, box_suffix, L, z0, -half, half)
    put(z0, vectors[0])
    put(mu, vectors[1])
    put(origin, vectors[2])
    put(half, vectors[3])
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
    put(mean, vectors[0])
    level = d * LOG_SQRT_2PI
    for i in range(d):
        level += math.log(W[i, i])
    if _inside_chance(A, b, W, mean) > 0.5:
        return PLAIN, vectors, W, W, 0.0, level + 0.5 * dot(h, mean)
    L = _cholesky_of_inverse(W)
    # Normal coordinates of the centre: x = L (z - z0), so f(x) = exp(-sum delta (z0 + delta/2)), delta = z - z0.
    z0 = -lower_transposed_times(L, h)
    put(z0, vectors[0])
    # Copies, so that it is compiled once: to numba an array that must not be written to is another type.
    vectors[1], bound = minimax_tilt(A.copy(), b.copy(), suffix.copy(), L, z0, lo.copy(), hi.copy())
    corner_vectors, corner_L, corner_bound, frame, corner_mass = _corner(
        h, P, W, mean, A[:genuine], b[:genuine], lo, hi, radius
    )
    if corner_mass < level + bound:
        return CORNER, corner_vectors, corner_L, frame, corner_bound, corner_mass
    return SEQUENTIAL, vectors, L, W, bound, level + bound


@kernel
def polytope_propose(rng, kind, vectors, matrix, frame, bound, A, b, suffix, out):
    """Fill `out` with a point of the envelope; return log(f / envelope) there, -inf outside the polytope."""
    d = out.size
    weight = 0.0
    if kind == PLAIN:
        z = np.empty(d)
        for i in range(d):
            z[i] = standard_normal(rng)
        g = lower_transposed_times(matrix, z)
        for i in range(d):
            out[i] = vectors[0][i] + g[i]
    elif kind == SEQUENTIAL:
        weight = walk(rng, vectors, matrix, bound, A, b, suffix, out)
    else:
        y = np.empty(d)
        box_A, box_b, box_suffix = _box_rows(vectors[3])
        weight = walk(rng, vectors, matrix, bound, box_A, box_b, box_suffix, y)
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
