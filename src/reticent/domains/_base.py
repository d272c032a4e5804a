"""The interface that every convex body offers, and the body as samplers see it: full-dimensional, its centre at 0."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from reticent._core._check import Array, integer, matrix, norms, positive, vector
from reticent._core._errors import WorkLimitError
from reticent._core._random import Seed, generator

_NO_GRID = np.zeros(0)
_NO_GRID.setflags(write=False)


class Body(NamedTuple):
    """A ball of radius `radius` around 0, or else the points `u` with `A @ u <= b`; compiled kernels take it as it is.

    All arrays are C-contiguous and read-only; `A` has rows of length 1, in a `box` with one entry each; those after
    the first `rows` are implied by them. `lo` and `hi` bound the body coordinate by coordinate. `suffix[c, k]` is a
    lower bound of `A[c, k+1:] @ u[k+1:]` over it. `grid` has the steps of a grid that decisions are released on
    (`Domain.grid`), or nothing where they are released as they are.

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
    grid: Array = _NO_GRID


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


def unchangeable(values: Array) -> Array:
    """Return a copy of a vector that nobody can make writeable: it lies on bytes, not on memory of its own.

    >>> unchangeable(np.array([0.5])).setflags(write=True)
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    return np.frombuffer((values + 0.0).tobytes())


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


# Implied rows that bound a polytope's shadows on its leading coordinates, for drawing coordinate after coordinate.

_MOST_ROWS = 600  # more rows cost more per proposal than tighter slices save


def shadow_rows(vertices: Array, slack: float) -> tuple[Array, Array]:
    """Return rows and levels, implied by the hull of `vertices`, that describe its shadows on the first k coordinates.

    Each level is raised by `slack`, so that rounding never cuts the body. Shadows with very many facets are left out;
    the first coordinate's range is always there.

    >>> rows, levels = shadow_rows(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), 0.0)
    >>> rows[:, 0], levels
    (array([ 1., -1.]), array([2., 0.]))
    """
    dim = vertices.shape[1]
    rows: list[Array] = []
    levels: list[Array] = []
    for k in range(1, dim):
        shadow = vertices[:, :k]
        if k == 1:
            facets = np.array([[1.0, -shadow.max()], [-1.0, shadow.min()]])
        else:
            try:
                facets = scipy.spatial.ConvexHull(shadow).equations
            except scipy.spatial.QhullError:
                continue
            _, first = np.unique(np.round(facets / np.abs(facets).max(), 10), axis=0, return_index=True)
            facets = facets[first]
        if sum(map(len, rows)) + len(facets) > _MOST_ROWS:
            continue
        # The level is the largest value at a vertex, whatever rounding the hull went through.
        rows.append(np.pad(facets[:, :-1], ((0, 0), (0, dim - k))))
        levels.append((shadow @ facets[:, :-1].T).max(axis=0) + slack)
    if not rows:
        return np.zeros((0, dim)), np.zeros(0)
    return np.vstack(rows), np.concatenate(levels) + 0.0


def spilled(radius: float, diameter: float, depth: float) -> float:
    """Return how far beyond a body points may lie that are up to 2e-12 of its radius beyond each of its faces.

    `depth` is the radius of the largest ball inside: moving every face out by e makes the body larger by a factor of
    1 + e/depth at most, around the middle of that ball. At sharp corners that is far more than e.

    >>> round(spilled(1.0, 2.0, 0.01) * 1e10, 6)
    4.0
    """
    return max(diameter * 2e-12 * radius / depth, 2.0**-36 * radius)


def suffix_bounds(rows: Array, vertices: Array, slack: float) -> Array:
    """Return for every row c and coordinate k the least of rows[c, k+1:] @ u[k+1:] over the hull, less `slack`."""
    bounds = np.zeros_like(rows)
    for c, row in enumerate(rows):
        bounds[c] = after(vertices * row).min(axis=0)
    return np.minimum(np.where(bounds == 0.0, 0.0, bounds - slack), 0.0)


def after(terms: Array) -> Array:
    """Return for each column the sum of the columns after it, along the last axis.

    >>> after(np.array([1.0, 2.0, 3.0]))
    array([5., 3., 0.])
    """
    out = np.zeros_like(terms)
    out[..., :-1] = np.cumsum(terms[..., :0:-1], axis=-1)[..., ::-1]
    return out


_GRID_BITS = 18  # coarse beside the rounding of a draw, fine beside what a decision costs (docs/theory, Q11)


# The interface that every convex body offers.
class Domain(ABC):
    """A convex body K: compact, with points of `dim` coordinates.

    Samplers work in a *chart*: an isometry from K onto a full-dimensional body in `chart_dim` coordinates
    that takes `center` to 0.

    >>> from reticent.domains import Simplex
    >>> Simplex(3).dim, Simplex(3).chart_dim
    (3, 2)
    """

    finite: ClassVar[bool] = False
    """Whether decisions are single points, with nothing between them."""

    def __init__(self, center: Array, *, radius: float, diameter: float, chart_dim: int | None = None) -> None:
        """Record the facts that every body has; `chart_dim` is that of `center` unless given."""
        self._center = read_only(center)
        self._dim = integer("dim", center.size, least=1)
        self._chart_dim = self._dim if chart_dim is None else chart_dim
        self._radius = positive("the radius of the domain", radius)
        self._diameter = positive("the diameter of the domain", diameter)
        self._body: Body | None = None
        self._grid: Array | None = None

    @property
    def dim(self) -> int:
        """The number of coordinates of a decision."""
        return self._dim

    @property
    def center(self) -> Array:
        """The point that the chart takes to 0 (read-only)."""
        return self._center

    @property
    def spill(self) -> float:
        """How far beyond the domain points of its chart may lie by rounding; balls and boxes keep them."""
        return 0.0

    @property
    def diameter(self) -> float:
        """The largest distance of two points; an upper bound for a `Polytope` of unknown vertices."""
        return self._diameter

    @property
    def radius(self) -> float:
        """The largest distance from `center`; an upper bound for a `Polytope` of unknown vertices."""
        return self._radius

    @property
    def chart_dim(self) -> int:
        """The number of coordinates in the chart."""
        return self._chart_dim

    @property
    def body(self) -> Body:
        """K in the chart, as samplers see it; made on first use."""
        if self._body is None:
            self._body = self._make_body()
        return self._body

    @property
    def grid(self) -> Array:
        """The steps, coordinate by coordinate of the chart, of the grid that private decisions are released on.

        They depend on the domain alone: the largest power of two up to 2^-18 of half the width of K (docs/theory, Q11).

        >>> from reticent.domains import Interval
        >>> Interval(-1.0, 1.0).grid == 2.0**-18
        array([ True])
        """
        if self._grid is None:
            exponents = np.frexp(self.body.hi / 2 - self.body.lo / 2)[1]
            self._grid = read_only(np.ldexp(1.0, exponents - 1 - _GRID_BITS))
        return self._grid

    def contains(self, x: ArrayLike, tol: float = 1e-9) -> bool:
        """Say whether the point `x` breaks no constraint by more than `tol` times the size of K.

        The size is the diameter, or a millionth of the largest coordinate of `center` where that is more
        (the rounding of such coordinates needs it).

        >>> from reticent.domains import Ball
        >>> Ball(2).contains([0.6, 0.8]), Ball(2).contains([0.7, 0.8])
        (True, False)
        """
        point = vector("x", x, self._dim)
        size = max(self._diameter, 1e-6 * float(np.abs(self._center).max()))
        return self._excess(point) <= positive("tol", tol, zero=True) * size

    def project(self, x: ArrayLike) -> Array:
        """Return the point of K nearest to `x`.

        >>> from reticent.domains import Box
        >>> Box([0, 0], [1, 1]).project([2.0, 0.5])
        array([1. , 0.5])
        """
        return self._project(vector("x", x, self._dim))

    def support(self, c: ArrayLike) -> Array:
        """Return a point of K at which `c @ x` is least.

        >>> from reticent.domains import Simplex
        >>> Simplex(3).support([1.0, -1.0, 0.0])
        array([0., 1., 0.])
        """
        return self._support(vector("c", c, self._dim))

    def log_z(self, k: float, side: Literal["upper", "lower"] = "upper") -> float:
        """Return the logarithm of the integral of `exp(-k |x - center|^2 / 2)` over K.

        The integral is by the volume of the chart. It is exact for `Interval`, `Box` and `Ball`; for the
        others it is a bound from above, or with `side="lower"` from below.

        >>> from reticent.domains import Interval
        >>> round(Interval(0.0, 4.0).log_z(0.0), 6)
        1.386294
        """
        if side not in ("upper", "lower"):
            raise ValueError(f"side must be 'upper' or 'lower', got {side!r}")
        return self._log_z(positive("k", k, zero=True), side == "upper")

    def draw_gaussian(
        self, mean: ArrayLike, precision: ArrayLike, rng: Seed = None, *, limit: int = 1_000_000
    ) -> Array:
        """Return an exact draw from a Gaussian restricted to K, for a mean anywhere, also far outside.

        `precision` is a number, or a symmetric matrix without negative eigenvalues; 0 is the uniform law. Balls take an
        isotropic precision in O(dim), boxes a diagonal one as truncated normals; anything else is rejection
        from an envelope, and more than `limit` proposals raise `WorkLimitError`. On a `Simplex` expect
        up to some 35 dimensions; on a `Polytope` up to 8 if the law is flat, 15 and more if it is concentrated.

        >>> from reticent.domains import Ball
        >>> bool(Ball(2).draw_gaussian([100.0, 0.0], 5.0, rng=0)[0] > 0.9)
        True
        """
        from reticent.domains._gaussian import draw_gaussian  # numba loads on first use

        moved = vector("mean", mean, self._dim) - self._center
        if np.ndim(precision) == 0:
            level = floor = positive("precision", float(np.asarray(precision)), zero=True)
            h, P = self._pull((level * moved)[None])[0], level * np.eye(self._chart_dim)
        else:
            given = matrix("precision", precision, self._dim)
            if given.shape != (self._dim, self._dim) or not np.allclose(given, given.T, rtol=1e-9, atol=0.0):
                raise ValueError(f"precision must be a symmetric {self._dim} by {self._dim} matrix, got {given}")
            h = self._pull((given @ moved)[None])[0]
            P = np.ascontiguousarray(self._pull(np.ascontiguousarray(self._pull(given).T)))
            values = np.linalg.eigvalsh(P)
            if values[0] < -1e-9 * max(abs(values[0]), values[-1]):
                raise ValueError(f"precision must have no negative eigenvalue, got {values[0]:.6g}")
            floor = max(0.0, float(values[0]) * (1 - 1e-9))
        found = draw_gaussian(generator(rng), np.ascontiguousarray(h), P, floor, self.body, limit)
        if found is None:
            raise WorkLimitError(
                f"a draw from a Gaussian on {self!r} was given up after limit={limit} proposals; give a larger limit, "
                f"or fewer than the present {self._chart_dim} dimensions"
            )
        return self._from_chart(found[0])

    def to_chart(self, points: ArrayLike) -> Array:
        """Return the chart coordinates of `points`, an array with `dim` as its last axis.

        >>> from reticent.domains import Interval
        >>> Interval(0.0, 1.0).to_chart([0.75])
        array([0.25])
        """
        return self._to_chart(_points(points, self._dim))

    def from_chart(self, points: ArrayLike) -> Array:
        """Return the points whose chart coordinates are `points`, with `chart_dim` as the last axis.

        >>> from reticent.domains import Interval
        >>> Interval(0.0, 1.0).from_chart([0.25])
        array([0.75])
        """
        return self._from_chart(_points(points, self._chart_dim))

    def pull(self, rows: ArrayLike) -> tuple[Array, Array]:
        """Return linear functions in the chart: `rows @ x == chart_rows @ to_chart(x) + offsets` on K.

        Where the chart only shifts the origin, the rows come back as they are, without a copy.

        >>> from reticent.domains import Interval
        >>> Interval(0.0, 1.0).pull([[2.0]])
        (array([[2.]]), array([1.]))
        """
        checked = matrix("rows", rows, self._dim)
        # Row by row, so that a row's offset does not depend on the rows beside it, to the last bit.
        offsets: Array = (checked * self._center).sum(axis=1) if self._center.any() else np.zeros(len(checked))
        return self._pull(checked), offsets

    def lengths(self, vectors: Array) -> Array:
        """Return the Lipschitz constant of each linear function `vectors[i] @ u` in the chart: its length.

        >>> from reticent.domains import Ball
        >>> Ball(2).lengths(np.array([[3.0, 4.0]]))
        array([5.])
        """
        return norms(vectors)

    def __eq__(self, other: object) -> bool:
        """Say whether `other` is a body of the same type with the same parameters."""
        if not isinstance(other, Domain) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = self._parameters(), other._parameters()
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((type(self), *((np.asarray(p) + 0.0).tobytes() for p in self._parameters())))

    def __reduce__(self) -> tuple[type[Domain], tuple[Any, ...]]:
        """Pickle as the call that made this body."""
        return type(self), self._parameters()

    def __repr__(self) -> str:
        """Read like the call that made this body."""
        return f"{type(self).__name__}({', '.join(_text(p) for p in self._parameters())})"

    @abstractmethod
    def _parameters(self) -> tuple[Any, ...]:
        """Return the arguments of the call that makes this body."""

    @abstractmethod
    def _excess(self, x: Array) -> float:
        """Return the largest violation of a constraint at `x`, as a distance (at most 0 inside)."""

    @abstractmethod
    def _project(self, x: Array) -> Array: ...

    @abstractmethod
    def _support(self, c: Array) -> Array: ...

    @abstractmethod
    def _log_z(self, k: float, upper: bool) -> float: ...

    @abstractmethod
    def _make_body(self) -> Body: ...

    # The chart of a full-dimensional body only moves the centre to 0; others override these three.

    def _to_chart(self, points: Array) -> Array:
        moved: Array = points - self._center
        return moved

    def _from_chart(self, points: Array) -> Array:
        moved: Array = points + self._center
        return moved

    def _pull(self, rows: Array) -> Array:
        return rows


def _points(value: ArrayLike, size: int) -> Array:
    """Check an array of points: finite numbers, with `size` of them along the last axis."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"points must hold real numbers only, got {value!r}") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(f"points must have {size} coordinates along the last axis, got shape {array.shape}")
    matrix("points", array.reshape(-1, size))
    return array


def _text(parameter: object) -> str:
    if isinstance(parameter, np.ndarray):
        if parameter.size <= 24:
            return repr(parameter.tolist())
        return np.array2string(parameter, separator=", ", threshold=24, edgeitems=2).replace("\n", "")
    return repr(parameter)
