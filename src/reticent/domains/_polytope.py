"""Polytopes given by linear inequalities: what they look like, their vertices, and their nearest points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from reticent._core._check import Array, matrix, vector
from reticent._core._tags import saved
from reticent.domains._base import Body, Domain, after, read_only, shadow_rows, spilled, suffix_bounds
from reticent.domains._log_integral import log_ball_integral, log_box_integral


def unit_rows(A: Array, b: Array) -> tuple[Array, Array]:
    """Return the same half-spaces with rows of length 1; a row with no direction is refused.

    >>> unit_rows(np.array([[2.0]]), np.array([6.0]))
    (array([[1.]]), array([3.]))
    """
    top = np.abs(A).max(axis=1, initial=0.0)
    for i in np.flatnonzero(top == 0):
        raise ValueError(f"each row of A must have an entry other than 0, got only zeros in row {i}; leave it out")
    norms = top * np.linalg.norm(A / top[:, None], axis=1)
    return A / norms[:, None], b / norms


def merge(A: Array, b: Array) -> tuple[Array, Array]:
    """Return the half-spaces with one row for each direction: the one that cuts deepest.

    >>> merge(np.array([[1.0], [1.0], [-1.0]]), np.array([3.0, 2.0, 0.0]))
    (array([[ 1.],
           [-1.]]), array([2., 0.]))
    """
    by_depth = np.argsort(b, kind="stable")
    _, first = np.unique(np.round(A[by_depth], 13) + 0.0, axis=0, return_index=True)
    kept = np.sort(by_depth[first])
    return A[kept], b[kept]


def deepest(A: Array, b: Array) -> tuple[Array, float]:
    """Return the centre and the radius of a largest inscribed ball of a body with unit rows.

    The radius is negative where no point satisfies all rows; it is never reported above `max |b|`, which
    it cannot reach in a bounded body.

    >>> deepest(np.array([[1.0], [-1.0]]), np.array([4.0, 0.0]))
    (array([2.]), 2.0)
    """
    m, dim = A.shape
    scale = float(np.abs(b).max()) or 1.0
    cost = np.zeros(dim + 1)
    cost[-1] = -1.0
    solution = _solve(cost, np.column_stack([A, np.ones(m)]), b / scale, [(None, None)] * dim + [(None, 1.0)])
    return solution[:-1] * scale, float(solution[-1]) * scale


def ray(A: Array) -> Array | None:
    """Return a direction in which every body `A x <= b` with a point goes on forever, or None.

    >>> ray(np.array([[1.0], [-1.0]])) is None
    True
    """
    dim = A.shape[1]
    _, sizes, directions = np.linalg.svd(A)
    if sizes.size < dim or sizes[-1] <= 1e-12 * sizes[0]:
        last: Array = directions[-1]
        return last
    found = _solve(A.sum(axis=0), A, np.zeros(len(A)), [(-1.0, 1.0)] * dim)
    return found if float((A @ found).min()) < -1e-8 else None


def least(c: Array, A: Array, b: Array) -> Array:
    """Return a minimiser of `c @ u` over a bounded body with 0 inside.

    It is as exact as the solver's tolerance (1e-10 of the smallest `b`).

    >>> least(np.array([1.0]), np.array([[1.0], [-1.0]]), np.array([1.0, 2.0]))
    array([-2.])
    """
    scale = float(b.min())
    size = float(np.abs(c).max())
    if size == 0:
        return np.zeros(c.size)
    return _solve(c / size, A, b / scale, [(None, None)] * c.size) * scale


def _solve(c: Array, A: Array, b: Array, bounds: list[tuple[float | None, float | None]]) -> Array:
    answer = scipy.optimize.linprog(
        c,
        A_ub=A,
        b_ub=b,
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise ValueError(
            f"the linear program of the polytope could not be solved ({answer.message}); "
            "scale the rows of A and b so that the body has a size near 1"
        )
    return np.asarray(answer.x, dtype=np.float64)


# Projection onto a polytope: least distance programming by non-negative least squares, then checked.


def nearest(y: Array, A: Array, b: Array, size: float) -> Array:
    """Return the point of `A u <= b` (unit rows, 0 inside) nearest to `y`; `size` is that of the body.

    Lawson and Hanson's reduction finds the active rows in finitely many steps. The point is then solved for
    from these rows, and the conditions of Karush, Kuhn and Tucker are verified.

    >>> nearest(np.array([3.0]), np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]), 2.0)
    array([1.])
    """
    gap = A @ y - b
    worst = float(gap.max())
    if worst <= 0:
        return y.copy()
    tol = 1e-9 * size + 1e-13 * float(np.abs(y).max())
    active = _active(A, gap / worst)
    for _ in range(4 * len(b)):
        point, force = _on_rows(y, A[active], b[active])
        if force.size and force.min() < -tol:
            active = np.delete(active, int(force.argmin()))
            continue
        over = A @ point - b
        over[active] = np.minimum(over[active], tol)
        if over.max() <= tol:
            if float((A @ point - b).max()) <= 1e-12 * size:
                return point
            # The coordinates of a far `y` are coarse: what they leave outside is drawn back towards 0.
            inside: Array = point / float((A @ point / b).max())
            return inside
        active = np.append(active, int(over.argmax()))
    raise ValueError(
        f"the projection of {y!r} (from the centre of the polytope) could not be verified; "
        "scale the rows of A and b so that the body has a size near 1, and leave redundant rows out"
    )


def _active(A: Array, gap: Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    stacked = np.vstack([-A.T, gap])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    weights, _ = scipy.optimize.nnls(stacked, target, maxiter=30 * len(stacked) + 30 * len(gap))
    return np.flatnonzero(weights > 0)


def _on_rows(y: Array, rows: Array, levels: Array) -> tuple[Array, Array]:
    """Return the projection of `y` onto `rows @ u == levels`, and the multipliers of the rows."""
    point = y
    for _ in range(2):  # the second time takes away what rounding left
        step: Array = np.linalg.lstsq(rows, rows @ point - levels)[0].astype(np.float64)
        point = point - step
    force: Array = np.linalg.lstsq(rows.T, y - point)[0].astype(np.float64)
    return point, force


# The vertices of a polytope, where they are few enough to list, and its volume by them.

_MOST = 10_000
_MOST_FOR_VOLUME = 1_000


def vertices(A: Array, b: Array, inside: Array) -> Array | None:
    """Return the vertices of `A x <= b` (unit rows), or None where they are too many or not to be trusted.

    >>> np.sort(vertices(np.array([[1.0], [-1.0]]), np.array([4.0, -1.0]), np.array([2.0])), axis=0)
    array([[1.],
           [4.]])
    """
    m, dim = A.shape
    if dim == 1:
        ends = b / A[:, 0]
        return np.array([[ends[A[:, 0] < 0].max()], [ends[A[:, 0] > 0].min()]])
    if dim > 8 or _most_vertices(m, dim) > _MOST:
        return None
    slack = b - A @ inside
    scale = float(slack.min())
    try:
        found = scipy.spatial.HalfspaceIntersection(np.column_stack([A, -slack / scale]), np.zeros(dim)).intersections
    except scipy.spatial.QhullError:
        return None
    if not np.isfinite(found).all():
        return None
    size = float(np.abs(found).max())
    _, first = np.unique(np.round(found / size, 11), axis=0, return_index=True)
    distinct: Array = found[first]
    if float((A @ distinct.T - (slack / scale)[:, None]).max()) > 1e-9 * size:
        return None
    return distinct * scale + inside


def farthest(points: Array) -> float:
    """Return the largest distance of two of the points.

    >>> farthest(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))
    5.0
    """
    blocks = (points[i : i + 500] for i in range(0, len(points), 500))
    return max(float(scipy.spatial.distance.cdist(block, points).max()) for block in blocks)


def volume_and_spread(corners: Array) -> tuple[float, float] | None:
    """Return log volume of the hull of `corners` and the mean of |u|^2 over it, for a body with 0 inside.

    None where the triangulation would be large, or its parts do not add up to the whole.

    >>> volume_and_spread(np.array([[-1.0], [1.0]]))
    (0.6931471805599453, 0.3333333333333333)
    """
    count, dim = corners.shape
    if dim == 1:
        lo, hi = float(corners.min()), float(corners.max())
        return math.log(hi - lo), (hi * hi + hi * lo + lo * lo) / 3
    if dim > 6 or count > _MOST_FOR_VOLUME:
        return None
    size = float(np.abs(corners).max())
    try:
        hull = scipy.spatial.ConvexHull(corners / size)
    except scipy.spatial.QhullError:
        return None
    # A fan of simplices (0, v_1, ..., v_d); the mean of |u|^2 over one is known in closed form.
    fan = (corners / size)[hull.simplices]
    parts = np.abs(np.linalg.det(fan)) / math.factorial(dim)
    total = float(parts.sum())
    if not abs(total - hull.volume) <= 1e-9 * total:
        return None
    squares = (fan**2).sum(axis=(1, 2)) + (fan.sum(axis=1) ** 2).sum(axis=1)
    spread = float(parts @ squares) / total / ((dim + 1) * (dim + 2))
    return math.log(total) + dim * math.log(size), spread * size * size


def _most_vertices(m: int, dim: int) -> int:
    # The upper bound theorem.
    up, down = (dim + 1) // 2, dim // 2
    return math.comb(max(m - up, 0), down) + math.comb(max(m - down - 1, 0), up - 1)


# Polytopes given by linear inequalities.

_FLAT = 1e-10
_SLACK = 1e-9
_MOST_PROGRAMS = 400


@saved("polytope")
class Polytope(Domain):
    """The points `x` with `A x <= b`: bounded, and with an interior.

    The centre, unless given, is that of a largest inscribed ball (give one where there are several such
    balls and the choice matters). `radius` and `diameter` are exact in up to 8 dimensions with few enough
    vertices to list, and otherwise upper bounds by the bounding box.

    >>> triangle = Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1])
    >>> triangle.project([1.0, 1.0])
    array([0.5, 0.5])
    """

    def __init__(self, A: ArrayLike, b: ArrayLike, center: ArrayLike | None = None) -> None:
        """Take one row of `A` and one entry of `b` for each inequality, and a point strictly inside."""
        self._given_A = read_only(matrix("A", A))
        m, dim = self._given_A.shape
        if m == 0 or dim == 0:
            raise ValueError(f"A must have at least one row and one column, got shape {(m, dim)}")
        self._given_b = read_only(vector("b", b, m))
        all_rows, all_levels = unit_rows(self._given_A, self._given_b)
        rows, levels = merge(all_rows, all_levels)
        inside = _interior(rows, levels)

        middle = inside if center is None else vector("center", center, dim)
        depth = all_levels - all_rows @ middle
        if depth.min() <= 1e-12 * float(np.abs(levels - rows @ inside).max()):
            row = int(depth.argmin())
            raise ValueError(
                f"center must be strictly inside, got {middle.tolist()}, which is {-depth[row]:.3g} beyond "
                f"row {row} of A x <= b; leave center out to have one chosen"
            )
        self._rows, self._levels = rows, levels - rows @ middle
        # Programs and projections are solved around the deepest point: there no level is near 0.
        self._deep = inside - middle
        self._slack = self._levels - rows @ self._deep
        self._lo, self._hi = self._bounds()
        corners = vertices(rows, self._levels, self._deep)
        if corners is not None and not self._agree(corners):
            corners = None
        self._vertices = corners
        if corners is None:
            radius = float(np.linalg.norm(np.maximum(-self._lo, self._hi)))
            diameter = min(2 * radius, float(np.linalg.norm(self._hi - self._lo)))
        else:
            radius = float(np.linalg.norm(corners, axis=1).max())
            diameter = farthest(corners)
        self._volume = None if corners is None else volume_and_spread(corners)
        super().__init__(middle, radius=radius, diameter=diameter)

    @property
    def A(self) -> Array:
        """The rows of the inequalities, as given (read-only)."""
        return self._given_A

    @property
    def b(self) -> Array:
        """The right-hand sides of the inequalities, as given (read-only)."""
        return self._given_b

    def _bounds(self) -> tuple[Array, Array]:
        """Return a bounding box in the chart, a little larger than what the solver says."""
        eye = np.eye(self._deep.size)
        lo = np.array([e @ self._least(e) for e in eye])
        hi = np.array([e @ self._least(-e) for e in eye])
        safety = _SLACK * float((hi - lo).max())
        return lo - safety, hi + safety

    def _least(self, c: Array) -> Array:
        """Return a minimiser of `c @ u` over the chart, as exact as the solver's tolerance."""
        return self._deep + least(c, self._rows, self._slack)

    def _agree(self, corners: Array) -> bool:
        """Say whether the vertices span the bounding box that the programs found."""
        off = max(np.abs(corners.min(axis=0) - self._lo).max(), np.abs(corners.max(axis=0) - self._hi).max())
        return bool(off <= 1e-7 * (self._hi - self._lo).max())

    def _parameters(self) -> tuple[Any, ...]:
        return self._given_A, self._given_b, self._center

    @property
    def spill(self) -> float:
        """How far beyond the polytope points of its chart may lie by rounding."""
        return spilled(self._radius, self._diameter, float(self._slack.min()))

    def _excess(self, x: Array) -> float:
        return float((self._rows @ (x - self._center) - self._levels).max())

    def _project(self, x: Array) -> Array:
        moved = x - self._center
        if (self._rows @ moved <= self._levels).all():
            return x.copy()
        if self._dim == 1:
            ends = self._corner_ends()
            return self._center + np.clip(moved, *ends)
        found = nearest(moved - self._deep, self._rows, self._slack, self._radius)
        return self._center + (self._deep + found)

    def _corner_ends(self) -> tuple[Array, Array]:
        corners = np.stack([self._lo, self._hi]) if self._vertices is None else self._vertices
        return corners.min(axis=0), corners.max(axis=0)

    def _support(self, c: Array) -> Array:
        top = float(np.abs(c).max())
        if self._vertices is not None:
            best = self._vertices[np.argmin(self._vertices @ (c / top if top > 0 else c))]
        else:
            best = self._least(c)
            # The solver may be outside by its tolerance: draw the point back towards the deepest one.
            over = float((self._rows @ (best - self._deep) / self._slack).max())
            best = self._deep + (best - self._deep) / max(1.0, over)
        found: Array = self._center + best
        return found

    def _log_z(self, k: float, upper: bool) -> float:
        if self._dim == 1:
            return log_box_integral(*self._corner_ends(), k)
        if upper:
            bounds = [log_box_integral(self._lo, self._hi, k), log_ball_integral(self._dim, self._radius, k)]
            if self._volume is not None:
                bounds.append(self._volume[0] + _SLACK)
            return min(bounds)
        inner = log_ball_integral(self._dim, float(self._levels.min()), k)
        if self._volume is None:
            return inner
        # Jensen's inequality, with the mean of |u|^2.
        return max(inner, self._volume[0] - _SLACK - k / 2 * self._volume[1] * (1 + _SLACK))

    def _make_body(self) -> Body:
        lo, hi = self._corner_ends() if self._dim == 1 else (self._lo, self._hi)
        slack = _SLACK * self._radius
        if self._vertices is not None:
            implied, levels = shadow_rows(self._vertices, slack)
        else:
            eye = np.eye(self._dim)[:-1]  # without the last coordinate, which no later one follows
            implied, levels = np.vstack([eye, -eye]), np.concatenate([hi[:-1], -lo[:-1]])
        rows = np.vstack([self._rows, implied])
        box = bool(((self._rows != 0.0).sum(axis=1) == 1).all())
        if box:
            # The rows are the bounds themselves, without the slack of a linear programme.
            along = self._rows.sum(axis=1)
            ends = (self._levels / along)[:, None]
            hi = np.where(self._rows > 0.0, ends, np.inf).min(axis=0)
            lo = np.where(self._rows < 0.0, ends, -np.inf).max(axis=0)
            rows, levels = self._rows, np.zeros(0)
        return Body(
            ball=False,
            box=box,
            rows=len(self._rows),
            dim=self._dim,
            radius=self._radius,
            A=read_only(rows),
            b=read_only(np.concatenate([self._levels, levels])),
            lo=read_only(lo),
            hi=read_only(hi),
            suffix=read_only(self._suffix(rows, slack)),
        )

    def _suffix(self, rows: Array, slack: float) -> Array:
        # Interval arithmetic on the bounding box holds always; the vertices or programs may say more.
        bound = after(np.minimum(rows * self._lo, rows * self._hi))
        if self._vertices is not None:
            return np.maximum(bound, suffix_bounds(rows, self._vertices, slack))
        if self._rows.size <= _MOST_PROGRAMS:
            for c, row in enumerate(self._rows):
                for k in range(self._dim - 1):
                    tail = np.where(np.arange(self._dim) > k, row, 0.0)
                    bound[c, k] = max(bound[c, k], float(tail @ self._least(tail)) - slack)
        return np.minimum(bound, 0.0)


def _interior(rows: Array, levels: Array) -> Array:
    """Return the centre of a largest inscribed ball; refuse a body that is empty, unbounded or flat."""
    inside, depth = deepest(rows, levels)
    flat = _FLAT * (float(np.abs(levels).max()) or 1.0)
    if depth < -flat:
        raise ValueError(
            f"A x <= b must have a solution, got an empty polytope: every point breaks a row by "
            f"{-depth:.3g} or more; check the signs of A and b"
        )
    direction = ray(rows)
    if direction is not None:
        raise ValueError(
            f"the polytope must be bounded, got one unbounded along {np.round(direction, 6).tolist()}; "
            "add rows that bound it there"
        )
    if depth <= flat or not math.isfinite(depth):
        raise ValueError(
            f"the polytope must have an interior, got a flat one (inscribed radius {max(0.0, depth):.3g} "
            f"beside a largest right-hand side of {flat / _FLAT:.3g}, for rows of length 1); "
            "drop a coordinate that the others determine"
        )
    return inside
