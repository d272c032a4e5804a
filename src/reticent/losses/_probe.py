"""A look at a caller's function all over the domain: as steep as declared, bent upwards, and with its own derivative?

What is private rests on the values: draws read them. A derivative alone proves nothing, since automatic differentiation
can give that of another function (a part that is detached or rounded has derivative 0), so values are looked at too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from reticent._check import Array

if TYPE_CHECKING:
    from reticent.domains import Domain

_ROUNDING = 1e-9  # relative; sums of a few thousand doubles are exact to far less
_SHORT = 0.1  # length of short segments, in radii: bends that a long one passes over
_CLIMBS = 3  # steps towards the steepest place


class Look(Protocol):
    """Values and subgradients of one row at several points."""

    def __call__(self, points: Array, /) -> tuple[Array, Array]:
        """Return the values, shape `(m,)`, and subgradients, shape `(m, dim)`, at `(m, dim)` points."""


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Segments in a domain: their ends and their middles, each of shape `(n, dim)`."""

    one: Array
    other: Array
    middle: Array

    @property
    def points(self) -> Array:
        """All points, one after the other."""
        return np.concatenate([self.one, self.other, self.middle])


@lru_cache(maxsize=16)
def segments(domain: Domain, count: int) -> Segments:
    """Return segments across a domain, always the same ones, so that blocks and single rows are refused alike.

    The first leads from end to end through the centre; of the others half are long and half short.

    >>> from reticent.domains import Interval
    >>> segments(Interval(0.0, 2.0), 3).points[[0, 3, 6], 0]
    array([0., 2., 1.])
    """
    rng = np.random.default_rng(0)
    d, R = domain.chart_dim, domain.radius
    one, other = (_directions(rng, count, d) for _ in range(2))
    one *= rng.uniform(size=(count, 1)) ** (1.0 / d)
    # Beyond the domain, to be projected onto its boundary; a short way, for every second one.
    other *= np.where(np.arange(count)[:, None] % 2 == 0, 2.0, _SHORT)
    other[1::2] += one[1::2]
    axis = np.eye(1, d)[0]
    one[0], other[0] = -2.0 * axis, 2.0 * axis
    a, b = (np.array([domain.project(domain.from_chart(R * u)) for u in part]) for part in (one, other))
    return Segments(a, b, (a + b) / 2)


def _directions(rng: np.random.Generator, count: int, d: int) -> Array:
    found = rng.normal(size=(count, d))
    unit: Array = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def check(domain: Domain, row: int, look: Look, declared: float, count: int) -> None:
    """Refuse a row that is steeper than declared or not convex on one of `count` segments; say where.

    What is found is wrong for certain. What is not found may still be wrong, but in one dimension with the true
    derivative: the slope of a convex function is steepest at an end of the interval, and the ends are looked at.
    """
    places = segments(domain, count)
    seen = _seen(row, places.points, look)
    steepest = _check_slopes(domain, row, seen, declared)
    _check_bends(row, places, seen)
    # Uphill a convex function only grows steeper, so the steepest place is on the boundary: climb towards it.
    top = seen
    for _ in range(_CLIMBS):
        top = _seen(row, domain.support(-top.slopes[steepest])[None], look)
        steepest = _check_slopes(domain, row, top, declared)
        seen = seen.with_more(top)
    _check_rises(row, seen, declared)
    _check_tangents(row, seen)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Values and slopes at points."""

    points: Array
    values: Array
    slopes: Array

    def with_more(self, other: _Seen) -> _Seen:
        return _Seen(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.slopes, other.slopes]),
        )

    @property
    def moves(self) -> Array:
        """The way from each point to each other one, shape `(m, m, dim)`."""
        return self.points[None] - self.points[:, None]

    def room(self, slope: float) -> float:
        """Return how far off a difference of values may be by rounding, at this slope."""
        extent = float(np.linalg.norm(np.ptp(self.points, axis=0)))
        return _ROUNDING * (float(np.abs(self.values).max()) + slope * extent)


def _seen(row: int, points: Array, look: Look) -> _Seen:
    values, slopes = look(points)
    _check_numbers(row, points, values, slopes)
    return _Seen(points, values, slopes)


def _check_numbers(row: int, points: Array, values: Array, slopes: Array) -> None:
    good = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"the loss of row {row} must be finite and have a finite derivative everywhere on the domain, got "
            f"{values[k]} with derivative {slopes[k]} at {points[k]}; write it so that automatic differentiation "
            "has a value there too (a norm, say, as the square root of a sum that is never 0)"
        )


def _check_slopes(domain: Domain, row: int, seen: _Seen, declared: float) -> int:
    """Return which point is the steepest."""
    lengths = domain.lengths(domain.pull(seen.slopes)[0])
    k = int(np.argmax(lengths))
    if lengths[k] > declared * (1 + _ROUNDING):
        raise ValueError(
            f"the loss of row {row} has a subgradient of length {lengths[k]:.6g} at {seen.points[k]}, above its "
            f"declared Lipschitz constant {declared:.6g}; declare one that holds everywhere on the domain"
        )
    return k


def _check_bends(row: int, places: Segments, seen: _Seen) -> None:
    """Refuse a loss that is above a chord."""
    f, g, middle = np.split(seen.values, 3)
    steepest = float(np.linalg.norm(seen.slopes, axis=1).max())
    room = np.abs(np.array([f, g, middle])).max(axis=0)
    room += steepest * np.linalg.norm(places.one - places.other, axis=1)
    above = middle - (f + g) / 2 - _ROUNDING * room
    if (above > 0).any():
        k = int(np.argmax(above))
        raise ValueError(
            f"the loss of row {row} is not convex: in the middle of the segment from {places.one[k]} to "
            f"{places.other[k]} it is {middle[k]:.9g}, above the {(f[k] + g[k]) / 2:.9g} half-way between its ends "
            f"({f[k]:.9g} and {g[k]:.9g}); privacy and regret are certified for convex losses only"
        )


def _worst(found: Array) -> tuple[int, int] | None:
    """Return the pair of points with the largest number, if that is above 0."""
    a, b = divmod(int(np.argmax(found)), len(found))
    return (a, b) if found[a, b] > 0 else None


def _check_rises(row: int, seen: _Seen, declared: float) -> None:
    """Refuse a loss that differs by more than declared between two of the points, whatever its derivative says."""
    ways = np.linalg.norm(seen.moves, axis=2)  # those in the chart, which is an isometry
    rises = seen.values[None] - seen.values[:, None]
    above = rises - declared * ways * (1 + _ROUNDING) - seen.room(declared)
    if pair := _worst(above):
        a, b = pair
        raise ValueError(
            f"the loss of row {row} grows by {rises[a, b]:.6g} from {seen.points[a]} to {seen.points[b]}, at a "
            f"distance of {ways[a, b]:.6g}: more than its declared Lipschitz constant {declared:.6g} allows, and more "
            "than its derivative says. Automatic differentiation does not see all of it (a part that is detached, "
            "stopped, rounded or cast to integers); take that out, and declare a constant that holds everywhere on the "
            "domain"
        )


def _check_tangents(row: int, seen: _Seen) -> None:
    """Refuse a loss that is below a tangent: it bends down, or the derivative is that of another function."""
    steepest = float(np.linalg.norm(seen.slopes, axis=1).max())
    tangents = seen.values[:, None] + np.einsum("ijk,ik->ij", seen.moves, seen.slopes)
    below = tangents - seen.values[None] - seen.room(steepest)
    if pair := _worst(below):
        a, b = pair
        raise ValueError(
            f"the loss of row {row} is not convex, or its derivative is not its own: at {seen.points[b]} it is "
            f"{seen.values[b]:.9g}, below the {tangents[a, b]:.9g} of its tangent at {seen.points[a]}; privacy and "
            "regret are certified for convex losses only, and automatic differentiation must see all of one (no part "
            "that is detached, stopped, rounded or cast to integers)"
        )
