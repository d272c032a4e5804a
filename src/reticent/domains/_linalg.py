"""Small dense linear algebra for compiled kernels."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._kernel import kernel


@kernel
def inverse_cholesky(P):
    """W lower triangular with W P W' = I, so that W'z has precision P for a standard normal z."""
    d = P.shape[0]
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(i + 1):
            s = P[i, j]
            for k in range(j):
                s -= C[i, k] * C[j, k]
            if i == j:
                if not s > 0.0:
                    raise ValueError("the precision matrix is not positive definite")
                C[i, i] = math.sqrt(s)
            else:
                C[i, j] = s / C[j, j]
    W = np.zeros((d, d))
    for j in range(d):
        W[j, j] = 1.0 / C[j, j]
        for i in range(j + 1, d):
            s = 0.0
            for k in range(j, i):
                s -= C[i, k] * W[k, j]
            W[i, j] = s / C[i, i]
    return W


@kernel
def lower_times(W, v):
    """W v for a lower triangular W."""
    d = v.size
    out = np.empty(d)
    for i in range(d):
        s = 0.0
        for j in range(i + 1):
            s += W[i, j] * v[j]
        out[i] = s
    return out


@kernel
def lower_transposed_times(W, v):
    """W' v for a lower triangular W."""
    d = v.size
    out = np.zeros(d)
    for i in range(d):
        for j in range(i + 1):
            out[j] += W[i, j] * v[i]
    return out


@kernel
def put(values, out):
    """Write `values` into `out`, of the same size.

    To assign a slice makes numba compile all it needs to say that shapes differ: two seconds.
    """
    for i in range(out.size):
        out[i] = values[i]


@kernel
def dot(u, v):
    """u . v, added up in order."""
    s = 0.0
    for i in range(u.size):
        s += u[i] * v[i]
    return s


@kernel
def quadratic(P, v):
    """v' P v."""
    s = 0.0
    for i in range(v.size):
        for j in range(v.size):
            s += v[i] * P[i, j] * v[j]
    return s


@kernel
def times(P, v):
    """P v."""
    out = np.empty(P.shape[0])
    for i in range(P.shape[0]):
        s = 0.0
        for j in range(v.size):
            s += P[i, j] * v[j]
        out[i] = s
    return out
