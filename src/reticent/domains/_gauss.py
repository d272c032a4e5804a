"""A Gaussian restricted to a body, as an envelope and proposals with their log weights, for compiled kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from reticent._check import Array
from reticent._kernel import kernel

from ._ball_gauss import draw_ball
from ._body import BallBody, Body
from ._gauss_ball import ANY, ball_envelope, ball_propose
from ._gauss_polytope import polytope_envelope, polytope_propose
from ._normal import draw_scaled


class Envelope(NamedTuple):
    """A function above f(x) = exp(h.x - x'Px/2) on the body, with what it takes to draw from it."""

    kind: int
    vectors: Array
    matrix: Array
    frame: Array
    scalars: Array
    extra: float
    log_mass: float


@kernel
def _envelope_on_ball(h, P, floor, body, exact, wanted):
    kind, vectors, matrix, scalars, log_mass = ball_envelope(h, P, floor, body.radius, exact, wanted)
    return Envelope(kind, vectors, matrix, matrix, scalars, 0.0, log_mass)


@kernel
def _envelope_on_polytope(h, P, floor, body, exact, wanted):
    # A flat Gaussian is made definite by exp(extra (R^2 - |x|^2) / 2) >= 1, which costs 5 percent at most.
    extra = 0.0
    if floor * body.radius**2 < 0.1:
        extra = 0.1 / body.radius**2
    Q = P.copy()
    for i in range(h.size):
        Q[i, i] += extra
    kind, vectors, matrix, frame, bound, log_mass = polytope_envelope(
        h, Q, body.A, body.b, body.suffix, body.lo, body.hi, body.radius, body.rows
    )
    scalars = np.zeros(1)
    scalars[0] = bound
    log_mass += 0.5 * extra * body.radius**2
    return Envelope(kind, vectors, matrix, frame, scalars, extra, log_mass)


@kernel
def _propose_on_ball(rng, env, body, out):
    return ball_propose(rng, env.kind, env.vectors, env.matrix, env.scalars, body.radius, out)


@kernel
def _propose_on_polytope(rng, env, body, out):
    weight = polytope_propose(
        rng, env.kind, env.vectors, env.matrix, env.frame, env.scalars[0], body.A, body.b, body.suffix, out
    )
    if env.extra > 0.0 and weight > -np.inf:
        square = 0.0
        for i in range(out.size):
            square += out[i] * out[i]
        weight -= 0.5 * env.extra * (body.radius**2 - square)
    return weight


# Kernels are compiled for one kind of body at a time, by its type: code for both would take four times as long.


def envelope(h: Array, P: Array, floor: float, body: Body, exact: bool, wanted: int = ANY) -> Envelope:
    """Return an `Envelope` of exp(h.x - x'Px/2) on the body; every eigenvalue of P is at least `floor` >= 0.

    With `exact` its log mass is exact, else good enough for comparing. `wanted` is ANY, or the kind of an envelope for
    about the same Gaussian, which spares the choice (on a ball). For use inside and outside of kernels.
    """
    found = (_envelope_on_ball if body.ball else _envelope_on_polytope)(h, P, floor, body, exact, wanted)
    assert isinstance(found, Envelope)
    return found


@overload(envelope)
def _envelope(h, P, floor, body, exact, wanted=ANY):
    chosen = _envelope_on_ball if issubclass(body.instance_class, BallBody) else _envelope_on_polytope
    # As a number of one type: numba would compile all of it once more for the constant.
    return lambda h, P, floor, body, exact, wanted=ANY: chosen(h, P, floor, body, exact, np.int64(wanted))


def propose(rng: np.random.Generator, env: Envelope, body: Body, out: Array) -> float:
    """Fill `out` with a draw from the envelope; return log(f / envelope) <= 0 there, -inf outside the body."""
    return float((_propose_on_ball if body.ball else _propose_on_polytope)(rng, env, body, out))


@overload(propose)
def _propose(rng, env, body, out):
    chosen = _propose_on_ball if issubclass(body.instance_class, BallBody) else _propose_on_polytope
    return lambda rng, env, body, out: chosen(rng, env, body, out)


@kernel
def _draw_coordinates(rng, h, k, lo, hi, out):
    """Fill `out` with independent coordinates of density exp(h x - k x^2/2) on [lo, hi], k >= 0."""
    for j in range(out.size):
        reach = max(abs(lo[j]), abs(hi[j]))
        if k[j] * reach * reach >= 0.1:
            scale = 1.0 / np.sqrt(k[j])
            out[j] = draw_scaled(rng, (lo[j] - h[j] / k[j]) / scale, lo[j], hi[j], scale)
            continue
        # Nearly flat or exactly so: an exponential, kept with probability exp(-k x^2/2) >= 0.95.
        width = hi[j] - lo[j]
        rate = abs(h[j])
        while True:
            if rate * width < 1e-9:
                step = width * rng.random()
                excess = rate * step
            else:
                step = -np.log1p(rng.random() * np.expm1(-rate * width)) / rate
                excess = 0.0
            x = hi[j] - step if h[j] > 0.0 else lo[j] + step
            if rng.standard_exponential() >= excess + 0.5 * k[j] * x * x:
                out[j] = min(max(x, lo[j]), hi[j])
                break


@kernel
def draw_isotropic(rng, direction, factor, k, body, out):
    """Fill `out` with a draw from exp(factor direction.x - k|x|^2/2) on a box or a ball, k >= 0."""
    h = factor * direction
    if body.box:
        _draw_coordinates(rng, h, np.full(out.size, k), body.lo, body.hi, out)
    else:
        draw_ball(rng, h, k, body.radius, out)


@kernel
def _draw_general(rng, h, P, floor, body, limit, out):
    env = envelope(h, P, floor, body, False)
    for count in range(1, limit + 1):
        weight = propose(rng, env, body, out)
        if weight > -np.inf and rng.standard_exponential() >= -weight:
            return count
    return -1


def separable(P: Array, body: Body) -> bool:
    """Say whether a Gaussian of precision P is drawn in closed form: isotropic on a ball, diagonal on a box."""
    diagonal = np.diag(P)
    if not (body.ball or body.box) or np.any(P - np.diag(diagonal)):
        return False
    return body.box or bool(np.ptp(diagonal) == 0.0)


def draw_gaussian(
    rng: np.random.Generator, h: Array, P: Array, floor: float, body: Body, limit: int
) -> tuple[Array, int] | None:
    """Return an exact draw from exp(h.x - x'Px/2) on the body and the proposals it took, or None after `limit`.

    `floor` >= 0 is a lower bound of the eigenvalues of P.
    """
    out = np.empty(body.dim)
    if separable(P, body):
        if body.box:
            _draw_coordinates(rng, h, np.diag(P).copy(), body.lo, body.hi, out)
        else:
            draw_isotropic(rng, h, 1.0, float(P[0, 0]), body, out)
        return out, 1
    count = int(_draw_general(rng, h, P, floor, body, limit, out))
    return None if count < 0 else (out, count)
