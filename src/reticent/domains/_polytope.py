"""Polytopes given by linear inequalities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import Array, matrix, vector
from reticent.domains._base import Domain
from reticent.domains._body import Body, read_only
from reticent.domains._halfspaces import deepest, least, merge, ray, unit_rows
from reticent.domains._log_integral import log_ball_integral, log_box_integral
from reticent.domains._nearest import nearest
from reticent.domains._shadows import after, shadow_rows, suffix_bounds
from reticent.domains._vertices import farthest, vertices, volume_and_spread

_FLAT = 1e-10
_SLACK = 1e-9
_MOST_PROGRAMS = 400


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
