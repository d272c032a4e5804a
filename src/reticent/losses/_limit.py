"""The Lipschitz limit on rows: steeper ones are refused, or scaled down one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from reticent._core._check import Array, norms, positive
from reticent.losses._base import Charted, Rows

_CHUNK = 1 << 19  # numbers looked at together, so that a long memory map needs little memory


def margin_range(domain: Charted, rows: Rows) -> tuple[Array, Array]:
    """Return bounds of the margin of each row over the domain: from its ball and from its box, the tighter.

    >>> from types import SimpleNamespace as Plain
    >>> square = Plain(radius=2**0.5, body=Plain(lo=np.array([-1.0, -1.0]), hi=np.array([1.0, 1.0])))
    >>> low, high = margin_range(square, Rows(np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([1.0, 0.0])))
    >>> low.round(12), high.round(12)
    (array([-2., -2.]), array([4., 2.]))
    """
    low, high = np.empty(len(rows)), np.empty(len(rows))
    lo, hi = domain.body.lo, domain.body.hi
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _parts(rows.vectors):
            vectors = rows.vectors[part]
            reach = norms(vectors) * domain.radius
            up, down = np.maximum(vectors, 0.0), np.minimum(vectors, 0.0)
            # fmax and fmin pass over a NaN that an overflow in the box bound may leave.
            # einsum, not @, whose sums depend on how many rows there are.
            low[part] = np.fmax(_dot(up, lo) + _dot(down, hi), -reach) + rows.offsets[part]
            high[part] = np.fmin(_dot(up, hi) + _dot(down, lo), reach) + rows.offsets[part]
    return low, high


def outer_range(domain: Charted, rows: Rows) -> tuple[Array, Array]:
    """Return what `margin_range` does, so much wider that no kernel finds a margin outside (docs/theory, Q12).

    Whatever the order of summation, and at points that are off by their rounding: a margin of rows of length 1e20 is
    off by thousands, and a range that ends next to a kink would hide the steep side of it.

    >>> from types import SimpleNamespace as Plain
    >>> body = Plain(lo=np.array([-1.0]), hi=np.array([1.0]))
    >>> interval = Plain(radius=1.0, body=body, center=np.array([1.0]))
    >>> outer_range(interval, Rows(np.array([[2.0**60]]), np.array([2.0**60])))[0] < -(2.0**13)
    array([ True])
    """
    low, high = margin_range(domain, rows)
    rounding = (4 * rows.vectors.shape[1] + 64) * 2.0**-53
    far = rounding * (domain.radius + float(norms(np.asarray(domain.center)[None])[0])) + getattr(domain, "spill", 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        room = rounding * np.abs(rows.offsets) + norms(rows.vectors) * far
        return low - room, high + room


def _dot(rows: Array, point: Array) -> Array:
    product: Array = np.einsum("ij,j->i", rows, point)
    return product


def _parts(vectors: Array) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, vectors.shape[1]))
    return (slice(start, start + step) for start in range(0, len(vectors), step))


# The Lipschitz limit on rows: steeper ones are refused, or scaled down one by one.

SLACK = 1e-12  # relative room for rounding before a row counts as steeper than the limit
# What the rounding of its margins may add to the slope of a row: that much is no kink that it hid (docs/theory, Q12).
_ROUNDED = 2.0**-26


def at_most(inner: Array, outer: Array) -> Array:
    """Return a bound over a range from that over the same range and over it and what rounding adds to it."""
    return np.maximum(inner, outer / (1.0 + _ROUNDED))


Slope = Callable[[Array, Array], Array]


def check_on_steep(on_steep: str) -> None:
    """Refuse anything but the two ways of dealing with rows above the limit."""
    if on_steep not in ("raise", "clip"):
        raise ValueError(f'on_steep must be "raise" or "clip", got {on_steep!r}')


def steepness(domain: Charted, rows: Rows, slope: Slope) -> Array:
    """Return the Lipschitz constant of each row: its norm times the steepest slope among its margins.

    Margins that only rounding leads to count as well, where slopes there are steeper by more than a rounding.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = domain.lengths(rows.vectors)
        steepest = at_most(slope(*margin_range(domain, rows)), slope(*outer_range(domain, rows)))
        return np.where((size == 0) | (steepest == 0), 0.0, size * steepest)


SCALE_DOWN = (
    'pass on_steep="clip" to scale such rows down, or divide the data by a bound on its size that is public (not '
    "computed from the data)"
)
"""What to do with rows that are too steep, where their curvature does not matter."""


def refuse_steep(constants: Array, limit: float) -> None:
    """Refuse the first row whose Lipschitz constant is above the limit."""
    steep = constants > limit * (1 + SLACK)
    if steep.any():
        row = int(np.argmax(steep))
        raise ValueError(
            f"row {row} has Lipschitz constant {constants[row]:.6g}, above the limit lipschitz={limit:.6g}; "
            f"{SCALE_DOWN}"
        )


def limited(domain: Charted, rows: Rows, slope: Slope, limit: float | None, on_steep: str) -> Rows:
    """Return `rows` with every Lipschitz constant within `limit`; untouched, without a copy, if all are.

    A row that is too steep is multiplied, with its offset, by the largest factor that brings it within the
    limit. The factor depends on that row alone, so a limit holds for neighbouring data as well.

    >>> from types import SimpleNamespace as Plain
    >>> body = Plain(lo=np.array([-1.0]), hi=np.array([1.0]))
    >>> interval = Plain(radius=1.0, body=body, lengths=lambda v: v[:, 0], center=np.zeros(1))
    >>> rows = Rows(np.array([[1.0], [4.0]]), np.array([0.0, 0.0]))
    >>> limited(interval, rows, lambda low, high: np.ones_like(low), 2.0, "clip").vectors.round(12)
    array([[1.],
           [2.]])
    """
    check_on_steep(on_steep)
    if limit is None:
        return rows
    limit = positive("lipschitz", limit)
    if _surely_within(domain, rows, slope, limit):
        return rows
    constants = steepness(domain, rows, slope)
    if on_steep == "raise":
        refuse_steep(constants, limit)
        return rows
    # Written so that a NaN, were there one, would count as steep.
    steep = np.flatnonzero(~(constants <= limit * (1 + SLACK)))
    if not steep.size:
        return rows
    short = _shrunk(domain, Rows(rows.vectors[steep], rows.offsets[steep]), slope, limit)
    vectors, offsets = np.array(rows.vectors), np.array(rows.offsets)
    vectors[steep], offsets[steep] = short.vectors, short.offsets
    return Rows(vectors, offsets)


def slope_cap(slope: Slope) -> float:
    """Return the steepest slope over all margins, perhaps infinite."""
    return float(slope(np.array([-np.inf]), np.array([np.inf]))[0])


def _surely_within(domain: Charted, rows: Rows, slope: Slope, limit: float) -> bool:
    """Say whether every row is within the limit even at the steepest slope that any can have: the common case, cheap.

    That slope is the one over all margins, or over those that the longest row and the largest offset can reach.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        longest, most = float(domain.lengths(rows.vectors).max()), limit * (1 + SLACK)
        if longest * slope_cap(slope) <= most:
            return True
        reach = float(norms(rows.vectors).max()) * domain.radius + float(np.abs(rows.offsets).max())
        return math.isfinite(reach) and bool(longest * slope(np.array([-reach]), np.array([reach]))[0] <= most)


def _shrunk(domain: Charted, rows: Rows, slope: Slope, limit: float) -> Rows:
    factors = _factors(domain, rows, slope, limit)
    nudge = 2.0**-52
    while True:
        # What counts is the bound of the row as it is stored, after rounding: nudge until it holds.
        shrunk = Rows(rows.vectors * factors[:, None], rows.offsets * factors)
        over = ~(steepness(domain, shrunk, slope) <= limit)
        if not over.any():
            return shrunk
        factors[over] *= max(0.0, 1.0 - nudge)
        nudge *= 2.0


def _factors(domain: Charted, rows: Rows, slope: Slope, limit: float) -> Array:
    """Bisect on the logarithm of the factor, between one that is surely small enough and 1."""
    low, high = outer_range(domain, rows)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        room = np.log(limit) - np.log(domain.lengths(rows.vectors))
        # For a factor in (0, 1] the margins stay in the hull of the range and 0, so this slope bounds all.
        inside = np.minimum(room - np.log(slope(np.minimum(low, 0.0), np.maximum(high, 0.0))), 0.0)
        outside = np.zeros_like(inside)
        for _ in range(64):
            middle = 0.5 * (inside + outside)
            scale = np.exp(middle)
            good = middle + np.log(slope(scale * low, scale * high)) <= room
            inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
        factors: Array = np.exp(inside)
    return factors
