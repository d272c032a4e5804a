"""Coordinates in which a corner of a polytope is an orthant, for Gaussians pressed into it (docs/theory.md, S5)."""

from __future__ import annotations

import numpy as np

from reticent._kernel import kernel

from ._linalg import dot, lower_times


@kernel
def pressing_rows(h, W, mean, A, b):
    """Multipliers of the rows at the mode of exp(h.x - x'Px/2) on the polytope, P^-1 = W'W, and the slacks there.

    Hildreth's dual ascent, roughly: which rows are chosen affects speed only.
    """
    m, d = A.shape
    scaled = np.empty((m, d))
    sizes = np.empty(m)
    for c in range(m):
        scaled[c] = lower_times(W, A[c])
        sizes[c] = dot(scaled[c], scaled[c])
    multipliers = np.zeros(m)
    # W'^-1 (x - mean) = -sum of multipliers * scaled rows; kept as y.
    y = np.zeros(d)
    room = np.empty(m)
    for c in range(m):
        room[c] = b[c] - dot(A[c], mean)
    for _ in range(5000):
        change = 0.0
        largest = 0.0
        for c in range(m):
            over = -dot(scaled[c], y) - room[c]
            step = max(-multipliers[c], 1.5 * over / sizes[c])  # over-relaxed
            if step != 0.0:
                multipliers[c] += step
                for j in range(d):
                    y[j] += step * scaled[c, j]
                change = max(change, abs(step))
            largest = max(largest, multipliers[c])
        if change <= 1e-8 * largest:
            break
    for c in range(m):
        room[c] += dot(scaled[c], y)
    return multipliers, room


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
        basis[k] = left / np.sqrt(dot(left, left))
    return chosen, True
