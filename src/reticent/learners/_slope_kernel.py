"""Margins and slopes of rows, and the nearest point of a body, for compiled steps."""

from __future__ import annotations

import math

from numba.extending import overload

from reticent._check import Array
from reticent._kernel import kernel
from reticent.domains._body import BallBody, Body
from reticent.gibbs._phi import dphi, margin
from reticent.learners._nearest_kernel import nearest_of_polytope


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
def _nearest_of_ball(body, y, out):
    d = y.size
    square = 0.0
    for j in range(d):
        square += y[j] * y[j]
    scale = 1.0
    if square > 1e300:  # too large to square: the length in units of the largest coordinate
        top = 0.0
        for j in range(d):
            top = max(top, abs(y[j]))
        square = 0.0
        for j in range(d):
            square += (y[j] / top) ** 2
        scale = body.radius / top / math.sqrt(square)
    elif square > body.radius * body.radius:
        scale = body.radius / math.sqrt(square)
    for j in range(d):
        out[j] = scale * y[j]


@kernel
def _nearest_of_rows(body, y, out):
    if body.box:
        for j in range(y.size):
            out[j] = min(max(y[j], body.lo[j]), body.hi[j])
    else:
        nearest_of_polytope(body, y, out)


# Compiled for one kind of body at a time, by its type: those who play on a ball need not wait for the rest.


def nearest(body: Body, y: Array, out: Array) -> None:
    """Write the point of the body nearest to y into out (which may be y itself); for use in and outside of kernels."""
    (_nearest_of_ball if body.ball else _nearest_of_rows)(body, y, out)


@overload(nearest)
def _nearest(body, y, out):
    chosen = _nearest_of_ball if issubclass(body.instance_class, BallBody) else _nearest_of_rows
    return lambda body, y, out: chosen(body, y, out)
