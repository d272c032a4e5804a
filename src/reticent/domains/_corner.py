"""Coordinates in which a corner of a polytope is an orthant, for Gaussians pressed into it (docs/theory.md, S5)."""

from __future__ import annotations

import numpy as np

from reticent._kernel import kernel

from ._linalg import dot, lower_times


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
        scaled[c] = lower_times(W, A[c])
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
        basis[k] = left / np.sqrt(dot(left, left))
    return chosen, True
