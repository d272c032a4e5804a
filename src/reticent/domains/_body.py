"""A body as the samplers see it: full-dimensional, with the centre of the domain at 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent._check import Array


class Body(NamedTuple):
    """A ball of radius `radius` around 0, or else the points `u` with `A @ u <= b`; compiled kernels take it as it is.

    All arrays are C-contiguous and read-only; `A` has rows of length 1, in a `box` with one entry each; those after
    the first `rows` are implied by them. `lo` and `hi` bound the body coordinate by coordinate. `suffix[c, k]` is a
    lower bound of `A[c, k+1:] @ u[k+1:]` over it.

    >>> from reticent.domains import Interval
    >>> Interval(0.0, 4.0).body.b
    array([2., 2.])
    """

    ball: bool
    box: bool
    rows: int
    dim: int
    radius: float
    A: Array
    b: Array
    lo: Array
    hi: Array
    suffix: Array


class BallBody(Body):
    """A body with `ball` true, as a type of its own: kernels are compiled for it apart."""

    __slots__ = ()


def read_only(values: Array) -> Array:
    """Return a C-contiguous copy of `values` that refuses writing, with every -0.0 made 0.0.

    >>> read_only(np.array([-0.0])).flags.writeable
    False
    """
    copy = np.ascontiguousarray(np.array(values, dtype=np.float64) + 0.0)
    copy.setflags(write=False)
    return copy


def length(v: Array) -> float:
    """Return the Euclidean length of `v`, without overflow or underflow of the squares.

    >>> length(np.array([3.0, 4.0]))
    5.0
    """
    top = float(np.abs(v).max())
    if top == 0:
        return 0.0
    scale = math.ldexp(1.0, math.frexp(top)[1] - 1)  # a power of two: dividing by it rounds nothing
    return scale * float(np.linalg.norm(v / scale))


def box_body(half: Array, radius: float) -> Body:
    """Return the box of half-widths `half` around 0.

    >>> box_body(np.array([1.0, 2.0]), 5.0**0.5).suffix[:, 0]
    array([ 0., -2.,  0., -2.])
    """
    dim = half.size
    eye = np.eye(dim)
    # u_c is part of the tail after k exactly where c > k; the least of +u_c and of -u_c is -half_c.
    tail = -np.tril(np.ones((dim, dim)), -1) * half[:, None]
    return Body(
        ball=False,
        box=True,
        rows=2 * dim,
        dim=dim,
        radius=radius,
        A=read_only(np.vstack([eye, -eye])),
        b=read_only(np.concatenate([half, half])),
        lo=read_only(-half),
        hi=read_only(half),
        suffix=read_only(np.vstack([tail, tail])),
    )


def ball_body(dim: int, radius: float) -> Body:
    """Return the ball of dimension `dim` around 0; in one dimension that is a box.

    >>> ball_body(2, 1.0).ball, ball_body(1, 1.0).ball
    (True, False)
    """
    if dim == 1:
        return box_body(np.array([radius]), radius)
    return BallBody(
        ball=True,
        box=False,
        rows=0,
        dim=dim,
        radius=radius,
        A=read_only(np.zeros((0, dim))),
        b=read_only(np.zeros(0)),
        lo=read_only(np.full(dim, -radius)),
        hi=read_only(np.full(dim, radius)),
        suffix=read_only(np.zeros((0, dim))),
    )
