"""Margins and slopes of rows, and the nearest point of a body, for compiled steps."""

from __future__ import annotations

import math

from reticent._kernel import kernel
from reticent.gibbs._phi import dphi, margin


@kernel
def slope(code, parameter, m):
    """The slope of the loss at margin m (reckoned from the kink); linear losses, code -1, have slope 1."""
    return 1.0 if code < 0 else dphi(code, parameter, m)


@kernel
def slope_of_row(code, parameter, vectors, offsets, i, u):
    """The slope of row i at the point u: its gradient there is this times vectors[i]."""
    if code < 0:
        return 1.0
    return dphi(code, parameter, margin(vectors, offsets, i, u))


@kernel
def nearest(body, y, out):
    """Write the point of the body nearest to y into out (which may be y itself)."""
    d = y.size
    if body.ball:
        square = 0.0
        for j in range(d):
            square += y[j] * y[j]
        scale = 1.0
        if square > body.radius * body.radius:
            scale = body.radius / math.sqrt(square)
        for j in range(d):
            out[j] = scale * y[j]
    else:
        for j in range(d):
            out[j] = min(max(y[j], body.lo[j]), body.hi[j])
