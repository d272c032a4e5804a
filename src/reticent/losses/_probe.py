"""A look at a caller's function all over the domain: is it as steep as declared, and does it bend upwards?"""

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

    What is found is wrong for certain. What is not found may still be wrong, but in one dimension: the slope of a
    convex function is steepest at an end of the interval, and the ends are looked at.
    """
    places = segments(domain, count)
    points = places.points
    values, slopes = look(points)
    _check_numbers(row, points, values, slopes)
    steepest = _check_slopes(domain, row, points, slopes, declared)
    largest = float(np.linalg.norm(slopes, axis=1).max())
    # Uphill a convex function only grows steeper, so the steepest place is on the boundary: climb towards it.
    for _ in range(_CLIMBS):
        top = domain.support(-slopes[steepest])[None]
        values_there, slopes = look(top)
        _check_numbers(row, top, values_there, slopes)
        steepest = _check_slopes(domain, row, top, slopes, declared)
    _check_bends(row, places, values, largest)


def _check_numbers(row: int, points: Array, values: Array, slopes: Array) -> None:
    good = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"the loss of row {row} must be finite and have a finite derivative everywhere on the domain, got "
            f"{values[k]} with derivative {slopes[k]} at {points[k]}; write it so that automatic differentiation "
            "has a value there too (a norm, say, as the square root of a sum that is never 0)"
        )


def _check_slopes(domain: Domain, row: int, points: Array, slopes: Array, declared: float) -> int:
    """Return which point is the steepest."""
    lengths = domain.lengths(domain.pull(slopes)[0])
    k = int(np.argmax(lengths))
    if lengths[k] > declared * (1 + _ROUNDING):
        raise ValueError(
            f"the loss of row {row} has a subgradient of length {lengths[k]:.6g} at {points[k]}, above its declared "
            f"Lipschitz constant {declared:.6g}; declare one that holds everywhere on the domain"
        )
    return k


def _check_bends(row: int, places: Segments, values: Array, steepest: float) -> None:
    f, g, middle = np.split(values, 3)
    room = np.abs(values).reshape(3, -1).max(axis=0) + steepest * np.linalg.norm(places.one - places.other, axis=1)
    above = middle - (f + g) / 2 - _ROUNDING * room
    if (above > 0).any():
        k = int(np.argmax(above))
        raise ValueError(
            f"the loss of row {row} is not convex: in the middle of the segment from {places.one[k]} to "
            f"{places.other[k]} it is {middle[k]:.9g}, above the {(f[k] + g[k]) / 2:.9g} half-way between its ends "
            f"({f[k]:.9g} and {g[k]:.9g}); privacy and regret are certified for convex losses only"
        )
