"""A Gaussian restricted to a body, as an envelope and proposals with their log weights, for compiled kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from reticent._check import Array

from ._body import Body
from ._gauss_ball import ball_envelope, ball_propose
from ._gauss_polytope import polytope_envelope, polytope_propose


class Shape(NamedTuple):
    """A body as a tuple that compiled kernels take; the fields are those of `Body`."""

    ball: bool
    radius: float
    A: Array
    b: Array
    suffix: Array
    lo: Array
    hi: Array


class Envelope(NamedTuple):
    """A function above f(x) = exp(h.x - x'Px/2) on the body, with what it takes to draw from it."""

    kind: int
    vectors: Array
    matrix: Array
    scalars: Array
    extra: float
    log_mass: float


def shape(body: Body) -> Shape:
    """Return `body` in the form that compiled kernels take."""
    return Shape(body.ball, body.radius, body.A, body.b, body.suffix, body.lo, body.hi)


@njit(cache=True, error_model="numpy")
def envelope(h, P, floor, body):  # type: ignore[no-untyped-def]
    """An `Envelope` of exp(h.x - x'Px/2) on the body; every eigenvalue of P is at least `floor` >= 0."""
    if body.ball:
        kind, vectors, matrix, scalars, log_mass = ball_envelope(h, P, floor, body.radius)
        return Envelope(kind, vectors, matrix, scalars, 0.0, log_mass)
    # A flat Gaussian is made definite by exp(extra (R^2 - |x|^2) / 2) >= 1, which costs 5 percent at most.
    extra = 0.0
    if floor * body.radius**2 < 0.1:
        extra = 0.1 / body.radius**2
    Q = P.copy()
    for i in range(h.size):
        Q[i, i] += extra
    sequential, vectors, matrix, bound, log_mass = polytope_envelope(
        h, Q, body.A, body.b, body.suffix, body.lo, body.hi
    )
    scalars = np.zeros(1)
    scalars[0] = bound
    return Envelope(
        1 if sequential else 0, vectors, matrix, scalars, extra, log_mass + 0.5 * extra * body.radius**2
    )


@njit(cache=True, error_model="numpy")
def propose(rng, env, body, out):  # type: ignore[no-untyped-def]
    """Fill `out` with a draw from the envelope; return log(f / envelope) <= 0 there, -inf outside the body."""
    if body.ball:
        return ball_propose(rng, env.kind, env.vectors, env.matrix, env.scalars, body.radius, out)
    weight = polytope_propose(
        rng, env.kind == 1, env.vectors, env.matrix, env.scalars[0], body.A, body.b, body.suffix, out
    )
    if env.extra > 0.0 and weight > -np.inf:
        square = 0.0
        for i in range(out.size):
            square += out[i] * out[i]
        weight -= 0.5 * env.extra * (body.radius**2 - square)
    return weight


@njit(cache=True, error_model="numpy")
def draw_gaussian(rng, h, P, floor, body, limit, out):  # type: ignore[no-untyped-def]
    """Fill `out` with an exact draw; return the number of proposals, or -1 if `limit` of them were rejected."""
    env = envelope(h, P, floor, body)
    for count in range(1, limit + 1):
        weight = propose(rng, env, body, out)
        if weight > -np.inf and rng.standard_exponential() >= -weight:
            return count
    return -1


Kernel = Any
