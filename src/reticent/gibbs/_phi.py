"""The univariate losses of the generalised linear family, for compiled kernels; codes as in `reticent.losses`.

Margins are reckoned from the kink, which only matters for the hinge: its offsets are stored less its margin.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._kernel import kernel
from reticent.losses._glm import ABSOLUTE, HINGE, HUBER, LOGISTIC, PINBALL


@kernel
def phi(code, parameter, m):
    """The loss at margin m."""
    if code == ABSOLUTE:
        return abs(m)
    if code == PINBALL:
        return max(-parameter * m, (1.0 - parameter) * m)
    if code == HINGE:
        return max(0.0, -m)
    if code == HUBER:
        size = abs(m)
        return 0.5 * m * m if size <= parameter else parameter * (size - 0.5 * parameter)
    if code == LOGISTIC:
        return math.log1p(math.exp(-m)) if m > 0.0 else math.log1p(math.exp(m)) - m
    return 0.5 * m * m


@kernel
def dphi(code, parameter, m):
    """The slope at margin m; at a kink the slope on its right."""
    if code == ABSOLUTE:
        return 1.0 if m >= 0.0 else -1.0
    if code == PINBALL:
        return 1.0 - parameter if m >= 0.0 else -parameter
    if code == HINGE:
        return 0.0 if m >= 0.0 else -1.0
    if code == HUBER:
        return min(max(m, -parameter), parameter)
    if code == LOGISTIC:
        if m > 0.0:
            small = math.exp(-m)
            return -small / (1.0 + small)
        return -1.0 / (1.0 + math.exp(m))
    return m


@kernel
def d2phi(code, parameter, m):
    """The second derivative at margin m, 0 at a kink."""
    if code == LOGISTIC:
        small = math.exp(-abs(m))
        return small / (1.0 + small) ** 2
    if code == HUBER:
        return 1.0 if abs(m) <= parameter else 0.0
    if code < HUBER:
        return 0.0
    return 1.0


@kernel
def curvature_range(code, parameter, low, high):
    """The least and the largest second derivative over [low, high] (kinks give 0 and infinity)."""
    if code == LOGISTIC:
        far = max(abs(low), abs(high))
        near = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        return d2phi(code, parameter, far), d2phi(code, parameter, near)
    if code == HUBER:
        inside = 1.0 if -parameter <= low and high <= parameter else 0.0
        touches = 1.0 if low <= parameter and high >= -parameter else 0.0
        return inside, touches
    if code < HUBER:
        return 0.0, np.inf
    return 1.0, 1.0


@kernel
def concordance(code, reach):
    """The M with |third derivative| <= M times the second where |m| <= reach; -1 where there is none."""
    return math.tanh(0.5 * reach) if code == LOGISTIC else -1.0


@kernel
def margin(vectors, offsets, i, z):
    """The margin of row i at z. Whoever needs to know on which side of its kink a row is must ask here.

    Another order of summation may round a tie to the other side, and slope and side must never disagree.
    """
    m = offsets[i]
    for j in range(z.size):
        m += vectors[i, j] * z[j]
    return m


@kernel
def margin_bounds(vector, offset, body):
    """Bounds of the margin over the body, from its ball and its box, and the norm of the vector."""
    low, high, square = 0.0, 0.0, 0.0
    for j in range(vector.size):
        a = vector[j]
        square += a * a
        low += a * (body.lo[j] if a > 0.0 else body.hi[j])
        high += a * (body.hi[j] if a > 0.0 else body.lo[j])
    norm = math.sqrt(square)
    reach = norm * body.radius
    return offset + max(low, -reach), offset + min(high, reach), norm
