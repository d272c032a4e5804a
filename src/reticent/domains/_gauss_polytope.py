"""The envelope of a Gaussian on a polytope: plain, coordinate after coordinate, or in a corner (docs/theory.md, S5)."""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._corner import corner_rows, pressing_rows
from ._linalg import dot, inverse_cholesky, lower_times, lower_transposed_times, quadratic, times
from ._normal import LOG_SQRT_2PI
from ._tilting import minimax_tilt, walk

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
def _corner(h, P, W, mean, A, b, radius):
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
    mu, bound = minimax_tilt(box_A, box_b, box_suffix, L, z0, -half, half)
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
    # Copies, so that it is compiled once: to numba an array that must not be written to is another type.
    vectors[1], bound = minimax_tilt(A.copy(), b.copy(), suffix.copy(), L, z0, lo.copy(), hi.copy())
    corner_vectors, corner_L, corner_bound, frame, corner_mass = _corner(
        h, P, W, mean, A[:genuine], b[:genuine], radius
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
            z[i] = rng.standard_normal()
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
