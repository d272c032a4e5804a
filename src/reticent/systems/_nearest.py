"""The nearest point of a body, and of the grid that decisions are released on, for compiled steps."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._check import Array
from reticent._core._kernel import choice, kernel
from reticent.domains._base import BallBody, Body
from reticent.domains._linalg import put

_FLAT = 1e-24  # the squared sine of an angle below which a row counts as a combination of the active ones
_SWEEPS = 20_000  # of Hildreth's method, which only runs where rounding has led the active set astray


@kernel
def _excess(A, b, rows, x, skip, count):
    """The row that x breaks most, of those not active, and by how much."""
    worst, place = -np.inf, -1
    for i in range(rows):
        over = -b[i]
        for j in range(x.size):
            over += A[i, j] * x[j]
        if over > worst:
            active = False
            for k in range(count):
                active = active or skip[k] == i
            if not active:
                worst, place = over, i
    return worst, place


@kernel
def _orthogonal(row, Q, R, count, v):
    """Write the part of a row that is orthogonal to the first `count` rows of Q into v, its coordinates into R.

    Twice, because once leaves rounding of the order of what was taken away. Returns the squared length of v.
    """
    d = row.size
    for j in range(d):
        v[j] = row[j]
    for k in range(count):
        R[k, count] = 0.0
    for _ in range(2):
        for k in range(count):
            dot = 0.0
            for j in range(d):
                dot += Q[k, j] * v[j]
            R[k, count] += dot
            for j in range(d):
                v[j] -= dot * Q[k, j]
    square = 0.0
    for j in range(d):
        square += v[j] * v[j]
    return square


@kernel
def _append(Q, R, count, v, square):
    size = math.sqrt(square)
    R[count, count] = size
    for j in range(v.size):
        Q[count, j] = v[j] / size


@kernel
def _settle(A, b, Q, R, active, count, x, work):
    """Move x onto the active rows: what the step left of them is taken away again."""
    for k in range(count):
        i = active[k]
        gap = -b[i]
        for j in range(x.size):
            gap += A[i, j] * x[j]
        for l in range(k):  # forward substitution: work solves R' work = gaps
            gap -= R[l, k] * work[l]
        work[k] = gap / R[k, k]
    for k in range(count):
        for j in range(x.size):
            x[j] -= work[k] * Q[k, j]


@kernel
def _vertex(A, b, Q, R, active, x, v, work):
    """Make x the point that d active rows determine, from these alone: a vertex is the same to the last bit always."""
    for k in range(1, x.size):  # in the order of the rows
        i, l = active[k], k
        while l > 0 and active[l - 1] > i:
            active[l] = active[l - 1]
            l -= 1
        active[l] = i
    for k in range(x.size):
        _append(Q, R, k, v, _orthogonal(A[active[k]], Q, R, k, v))
        x[k] = 0.0
    for _ in range(2):
        _settle(A, b, Q, R, active, x.size, x, work)


@kernel
def _active_set(A, b, rows, radius, x):
    """Move x to the nearest point of A x <= b; say whether it was found before rounding made the search go on for ever.

    Outer steps add the row that is broken most; on the way to it, active rows are let go whose multiplier reaches 0.
    The distance from the start grows with every outer step, so no set of rows comes twice.
    """
    d = x.size
    Q, R = np.zeros((d + 1, d)), np.zeros((d + 1, d + 1))
    active, force = np.zeros(d + 1, dtype=np.int64), np.zeros(d + 1)
    v, r = np.zeros(d), np.zeros(d + 1)
    count, left = 0, 50 * (rows + d)
    while left > 0:
        size = 0.0
        for j in range(d):
            size = max(size, abs(x[j]))
        gap, new = _excess(A, b, rows, x, active, count)
        if not gap > 1e-14 * radius + 4e-16 * d * size:
            if count == d:
                _vertex(A, b, Q, R, active, x, v, r)
            return gap == gap
        pull = 0.0
        while left > 0:
            left -= 1
            square = _orthogonal(A[new], Q, R, count, v)
            for k in range(count - 1, -1, -1):
                r[k] = R[k, count]
                for l in range(k + 1, count):
                    r[k] -= R[k, l] * r[l]
                r[k] /= R[k, k]
            first, out = np.inf, -1
            for k in range(count):
                if r[k] > 0.0 and force[k] < first * r[k]:
                    first, out = force[k] / r[k], k
            full = gap / square if square > _FLAT and count < d else np.inf
            step = min(first, full)
            if step == np.inf:
                return False
            for k in range(count):
                force[k] = max(force[k] - step * r[k], 0.0)
            pull += step
            if full < np.inf:
                gap -= step * square
                for j in range(d):
                    x[j] -= step * v[j]
            if full <= first:
                _append(Q, R, count, v, square)
                active[count], force[count] = new, pull
                count += 1
                _settle(A, b, Q, R, active, count, x, r)
                break
            # The row `out` is let go: those after it are orthogonalised anew.
            for k in range(out, count - 1):
                active[k], force[k] = active[k + 1], force[k + 1]
            count -= 1
            for k in range(out, count):
                square = _orthogonal(A[active[k]], Q, R, k, v)
                _append(Q, R, k, v, square)
    return False


@kernel
def _hildreth(A, b, rows, radius, x):
    """Move x towards the nearest point of A x <= b row by row, each with its multiplier, until nothing moves."""
    force = np.zeros(rows)
    for _ in range(_SWEEPS):
        moved = 0.0
        for i in range(rows):
            gap = -b[i]
            for j in range(x.size):
                gap += A[i, j] * x[j]
            step = max(gap, -force[i])
            force[i] += step
            moved = max(moved, abs(step))
            for j in range(x.size):
                x[j] -= step * A[i, j]
        if moved <= 1e-14 * radius:
            return


@kernel
def nearest_of_polytope(body, y, out):
    """Write the point of A u <= b (unit rows, 0 strictly inside) nearest to y into out, which may be y itself."""
    d, rows = y.size, body.rows
    inside = True
    for i in range(rows):
        over = -body.b[i]
        for j in range(d):
            over += body.A[i, j] * y[j]
        inside = inside and over <= 0.0
    if inside:
        for j in range(d):
            out[j] = y[j]
        return
    x = y.copy()
    if not _active_set(body.A, body.b, rows, body.radius, x):
        put(y, x)
        _hildreth(body.A, body.b, rows, body.radius, x)
    # What rounding leaves outside, by more than a domain's own arithmetic would, is drawn back towards 0.
    scale = 1.0
    for i in range(rows):
        along = 0.0
        for j in range(d):
            along += body.A[i, j] * x[j]
        if along > body.b[i] + 1e-12 * body.radius:
            scale = max(scale, along / body.b[i])
    for j in range(d):
        out[j] = x[j] / scale


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


@choice(nearest)
def _nearest(body, y, out):
    chosen = _nearest_of_ball if issubclass(body.instance_class, BallBody) else _nearest_of_rows
    return lambda body, y, out: chosen(body, y, out)


# Decisions on a grid: each a function of its cell alone, whatever the last bits were (docs/theory, Q11).


@kernel
def to_multiples(body, u):
    """Move u to the nearest multiples of the steps of the grid, inside the body or not; nothing without a grid."""
    for j in range(body.grid.size):
        u[j] = body.grid[j] * np.rint(u[j] / body.grid[j]) + 0.0  # no -0.0


@kernel
def snap(body, u):
    """Move a point u of the body to its grid: to the nearest multiples of the steps or, if these lie outside, nearby.

    Cells that the boundary cuts thin would have chances that rounding changes much. In a box they are joined to those
    inside, and in a ball to one of a multiple that is nearer to the centre; elsewhere the point goes to the surface.
    """
    to_multiples(body, u)
    if body.box:
        for j in range(u.size):
            step = body.grid[j]
            u[j] = min(max(u[j], step * math.ceil(body.lo[j] / step)), step * math.floor(body.hi[j] / step)) + 0.0
    elif body.ball:
        square = 0.0
        for j in range(u.size):
            square += u[j] * u[j]
        if square > body.radius * body.radius:
            nearest(body, u, u)
            for j in range(u.size):
                u[j] = body.grid[j] * np.trunc(u[j] / body.grid[j]) + 0.0
    else:
        nearest(body, u, u)


@kernel
def snap_rows(body, points):
    """Move every row of `points`, in the body, to its grid."""
    for i in range(points.shape[0]):
        snap(body, points[i])


@kernel
def _whole(high, low, noise, unit):
    """The whole number nearest to (high + low + noise)/unit, right to some 2^-50 of 1 where it is below 2^52.

    Beyond 2^53 not every whole number is a floating-point one, and ties, rounded to even, show `low`: callers whose
    sums no small body bounds must take a unit that keeps numbers below (docs/theory, R4j).
    """
    total = high + noise
    part = total - high
    rest = (high - (total - part)) + (noise - part) + low
    number = np.rint(total / unit)
    # What is left, with the product number * unit to the last bit (Dekker).
    product = number * unit
    split = 134217729.0  # 2^27 + 1
    a = split * number
    a -= a - number
    b = split * unit
    b -= b - unit
    error = ((a * b - product) + a * (unit - b) + (number - a) * b) + (number - a) * (unit - b)
    rest += (total - product) - error
    if rest > 0.5 * unit:
        number += 1.0
    elif rest < -0.5 * unit:
        number -= 1.0
    return number


@kernel
def lead(body, high, low, noise, lam, u):
    """Make u the point of the body nearest to -(high + low + noise)/lam, or to the multiples of the grid next to that.

    Rounding comes first: so cells are cubes, of which the boundary of the body cuts none.
    """
    for j in range(u.size):
        if body.grid.size:
            u[j] = -body.grid[j] * _whole(high[j], low[j], noise[j], lam * body.grid[j]) + 0.0
        else:
            u[j] = -(high[j] + noise[j]) / lam
    nearest(body, u, u)
