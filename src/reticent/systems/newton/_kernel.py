"""Online Newton steps over a block of rounds, and the nearest point of a body in the norm of a matrix, compiled."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.systems._kernels import slope_of_row
from reticent.systems._nearest import _active_set, _hildreth

_ITERATIONS = 100  # of Newton's method on the secular equation, which takes about five
_NEAR = 4e-15  # the relative error of the radius at which it stops


@kernel
def _cholesky(A, ridge, L):
    """Write the lower triangular L with L L' = A + ridge I."""
    d = A.shape[0]
    for i in range(d):
        for j in range(i + 1):
            s = A[i, j]
            if i == j:
                s += ridge
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(s) if i == j else s / L[j, j]


@kernel
def _forward(L, v):
    """Replace v by L^-1 v."""
    for i in range(v.size):
        s = v[i]
        for k in range(i):
            s -= L[i, k] * v[k]
        v[i] = s / L[i, i]


@kernel
def _backward(L, v):
    """Replace v by L'^-1 v."""
    for i in range(v.size - 1, -1, -1):
        s = v[i]
        for k in range(i + 1, v.size):
            s -= L[k, i] * v[k]
        v[i] = s / L[i, i]


@kernel
def _length(v):
    s = 0.0
    for j in range(v.size):
        s += v[j] * v[j]
    return math.sqrt(s)


@kernel
def nearest_in_ball(A, L, radius, x):
    """Move x to the point of the ball that is nearest in the norm of A; L is overwritten.

    It is p(nu) = (A + nu I)^-1 A x with |p(nu)| = radius. Newton's method on 1/radius - 1/|p(nu)|, which falls and is
    convex in nu, approaches the root from below (More and Sorensen 1983).
    """
    d = x.size
    if _length(x) <= radius:
        return
    right, p, q = np.empty(d), x.copy(), np.empty(d)
    for i in range(d):
        right[i] = 0.0
        for j in range(d):
            right[i] += A[i, j] * x[j]
    nu = 0.0
    for _ in range(_ITERATIONS):
        _cholesky(A, nu, L)
        put(right, p)
        _forward(L, p)
        _backward(L, p)
        size = _length(p)
        if size - radius <= _NEAR * radius:
            break
        put(p, q)
        _forward(L, q)
        ratio = size / _length(q)
        nu += ratio * ratio * (size - radius) / radius
    scale = radius / _length(p)
    for j in range(d):
        x[j] = p[j] * min(scale, 1.0)


@kernel
def nearest_in_rows(A, L, body, x):
    """Move x to the point of the body, a box or a polytope, that is nearest in the norm of A = L L'.

    With z = L'x that norm is Euclidean and the rows c become L^-1 c; the dual active set does the rest.
    """
    d, rows = x.size, body.rows
    outside = False
    for i in range(rows):
        along = 0.0
        for j in range(d):
            along += body.A[i, j] * x[j]
        outside = outside or along > body.b[i]
    if not outside:
        return
    N, b = np.empty((rows, d)), np.empty(rows)
    least = np.inf
    for i in range(rows):
        put(body.A[i], N[i])
        _forward(L, N[i])
        size = _length(N[i])
        N[i] /= size
        b[i] = body.b[i] / size
        least = min(least, b[i])
    start = np.empty(d)
    for j in range(d):
        start[j] = 0.0
        for i in range(j, d):
            start[j] += L[i, j] * x[i]
    z = start.copy()
    if not _active_set(N, b, rows, least, z):
        put(start, z)
        _hildreth(N, b, rows, least, z)
    _backward(L, z)
    # What rounding leaves outside is drawn back towards 0, which lies inside.
    scale = 1.0
    for i in range(rows):
        along = 0.0
        for j in range(d):
            along += body.A[i, j] * z[j]
        scale = max(scale, along / body.b[i])
    for j in range(d):
        x[j] = z[j] / scale


@kernel
def _step(code, parameter, vectors, offsets, i, gamma, A, L, u, move):
    """Add the squared gradient of row i at u to A, factor it, and take the step against the gradient from u."""
    d = u.size
    s = slope_of_row(code, parameter, vectors, offsets, i, u)
    for j in range(d):
        move[j] = s * vectors[i, j]
    for j in range(d):
        for k in range(d):
            A[j, k] += move[j] * move[k]
    _cholesky(A, 0.0, L)
    _forward(L, move)
    _backward(L, move)
    for j in range(d):
        u[j] -= move[j] / gamma


@kernel
def newton_ball(body, code, parameter, vectors, offsets, gamma, A, u, after):
    """Take in rounds, a step after each; `A` and `u` are changed in place."""
    n, d = vectors.shape
    L, move = np.zeros((d, d)), np.empty(d)
    for i in range(n):
        _step(code, parameter, vectors, offsets, i, gamma, A, L, u, move)
        nearest_in_ball(A, L, body.radius, u)
        put(u, after[i])


@kernel
def newton_rows(body, code, parameter, vectors, offsets, gamma, A, u, after):
    """The same on a box or a polytope."""
    n, d = vectors.shape
    L, move = np.zeros((d, d)), np.empty(d)
    for i in range(n):
        _step(code, parameter, vectors, offsets, i, gamma, A, L, u, move)
        nearest_in_rows(A, L, body, u)
        put(u, after[i])
