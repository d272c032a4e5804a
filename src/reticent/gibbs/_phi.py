"""The univariate losses of the generalised linear family, for compiled kernels; codes as in `reticent.losses`.

Margins are reckoned from the kink, which only matters for the hinge: its offsets are stored less its margin.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._kernel import kernel
from reticent.losses._glm import ABSOLUTE, HINGE, HUBER, LOGISTIC, PINBALL


@kernel
def _above(m, v):
    """How much of the step from margin m to m + v lies above 0, with the sign of v."""
    if m >= 0.0:
        return v if m + v >= 0.0 else -m
    return m + v if m + v >= 0.0 else 0.0


@kernel
def rise(code, parameter, m, v):
    """By how much the loss rises from margin m to m + v, right to a rounding of v, however far out m is.

    As the difference of two losses it would have the digits of the larger only, and a sum of such losses the digits of
    its largest: one round could swallow what all others say (docs/theory, Q12).
    """
    if code == ABSOLUTE:
        return 2.0 * _above(m, v) - v
    if code == PINBALL:
        up = _above(m, v)
        return (1.0 - parameter) * up - parameter * (v - up)
    if code == HINGE:
        return _above(m, v) - v
    if code == HUBER:
        low, high = _above(m + parameter, v), _above(m - parameter, v)
        inside = low - high
        return inside * (min(max(m, -parameter), parameter) + 0.5 * inside) + parameter * (high - (v - low))
    if code == LOGISTIC:
        if abs(v) <= 1.0:
            return math.log1p(math.expm1(-v) / (1.0 + math.exp(m))) if m < 700.0 else 0.0
        return _above(m, v) - v + math.log1p(math.exp(-abs(m + v))) - math.log1p(math.exp(-abs(m)))
    return v * (m + 0.5 * v)


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
def curvature_range(code, parameter, low, high, room):
    """The least and the largest second derivative over [low, high] (kinks give 0 and infinity).

    The largest also over what rounding may add to the range, the `room` on both sides. A Huber loss that leaves its
    quadratic part by a rounding falls below the square by the square of that: it counts as inside.
    """
    if code == LOGISTIC:
        far = max(abs(low), abs(high)) + room
        near = 0.0 if low - room <= 0.0 <= high + room else min(abs(low), abs(high)) - room
        return d2phi(code, parameter, far), d2phi(code, parameter, near)
    if code == HUBER:
        inside = 1.0 if -parameter <= low and high <= parameter else 0.0
        touches = 1.0 if low - room <= parameter and high + room >= -parameter else 0.0
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
    """Bounds of the margin over the body, from its ball and its box, what rounding may add, and the norm of the vector.

    Points of the body are right to a rounding of its radius here; see `outer_range` (docs/theory, Q12).
    """
    low, high, square = 0.0, 0.0, 0.0
    for j in range(vector.size):
        a = vector[j]
        square += a * a
        low += a * (body.lo[j] if a > 0.0 else body.hi[j])
        high += a * (body.hi[j] if a > 0.0 else body.lo[j])
    norm = math.sqrt(square)
    reach = norm * body.radius
    room = (4 * vector.size + 64) * 2.0**-53 * (abs(offset) + reach)
    return offset + max(low, -reach), offset + min(high, reach), room, norm
