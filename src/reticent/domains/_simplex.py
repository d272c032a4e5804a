"""The probability simplex."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._tags import saved
from reticent.domains._base import Body, Domain, read_only, spilled, suffix_bounds
from reticent.domains._log_integral import log_ball_integral, log_box_integral


@saved("simplex")
class Simplex(Domain):
    """The probability vectors with `dim` entries; the centre is the uniform one.

    The chart has `dim - 1` coordinates, in an order such that the first alone determines the last
    probability, the first two determine the last two, and so on.

    >>> Simplex(3).project([1.0, 1.0, -5.0])
    array([0.5, 0.5, 0. ])
    """

    def __init__(self, dim: int) -> None:
        """Take the number of entries, at least 2."""
        n = integer("dim", dim, least=2)
        super().__init__(np.full(n, 1 / n), radius=math.sqrt(1 - 1 / n), diameter=math.sqrt(2), chart_dim=n - 1)
        # Column k of the (Helmert) basis is scale[k] * (1, ..., 1, -ones[k], 0, ..., 0), with ones[k] ones.
        self._ones = np.arange(n - 1, 0, -1).astype(np.float64)
        self._scale = 1 / np.sqrt(self._ones * (self._ones + 1))

    def _parameters(self) -> tuple[Any, ...]:
        return (self._dim,)

    @property
    def spill(self) -> float:
        """How far beyond the simplex points of its chart may lie by rounding."""
        return spilled(self._radius, self._diameter, 1 / math.sqrt(self._dim * (self._dim - 1)))

    def _excess(self, x: Array) -> float:
        below = -float(x.min()) / self._radius
        return max(below, abs(float(x.sum()) - 1) / math.sqrt(self._dim))

    def _project(self, x: Array) -> Array:
        # An entry that lies 1 or more below the largest gets probability 0: cutting at 2 changes nothing.
        with np.errstate(over="ignore"):
            entries = np.maximum(x - x.max(), -2.0)
        falling = np.sort(entries)[::-1]
        thresholds = (np.cumsum(falling) - 1) / np.arange(1, x.size + 1)
        last = np.flatnonzero(falling > thresholds)[-1]
        nearest: Array = np.maximum(entries - thresholds[last], 0.0)
        return nearest

    def _support(self, c: Array) -> Array:
        vertex = np.zeros(self._dim)
        vertex[np.argmin(c)] = 1.0
        return vertex

    def _to_chart(self, points: Array) -> Array:
        return self._pull(points - self._center)

    def _pull(self, rows: Array) -> Array:
        before = np.cumsum(rows, axis=-1)[..., -2::-1]
        pulled: Array = self._scale * (before - self._ones * rows[..., :0:-1])
        return pulled

    def _from_chart(self, points: Array) -> Array:
        p = self.push(points) + 1 / self._dim
        tiny = (p < 0) & (p > -1e-12)
        if tiny.any():
            p[tiny] = 0.0
            # The sums of other points keep their rounding; only points that were changed need a new sum.
            changed = tiny.any(axis=-1, keepdims=True) & ~(p < 0).any(axis=-1, keepdims=True)
            p /= np.where(changed, p.sum(axis=-1, keepdims=True), 1.0)
        return p

    def push(self, points: Array) -> Array:
        """Return chart vectors as vectors of sum 0: what `from_chart` adds to the centre, to full precision.

        >>> Simplex(2).push(np.array([1e-30])) * 1e30
        array([ 0.70710678, -0.70710678])
        """
        terms = self._scale * points
        sums = np.cumsum(terms, axis=-1)
        out = np.empty((*points.shape[:-1], self._dim))
        out[..., 0] = sums[..., -1]
        out[..., :0:-1] = sums - terms - self._ones * terms
        return out

    def _log_z(self, k: float, upper: bool) -> float:
        n = self._dim
        volume = math.log(n) / 2 - math.lgamma(n)
        if not upper:
            # The inscribed ball, and Jensen's inequality with the mean of |x - center|^2.
            inner = log_ball_integral(n - 1, 1 / math.sqrt(n * (n - 1)), k)
            return max(inner, volume - k / 2 * (n - 1) / (n * (n + 1)))
        around = log_box_integral(-self._ones * self._scale, self._scale, k)
        return min(volume, around, log_ball_integral(n - 1, self._radius, k))

    def _make_body(self) -> Body:
        n = self._dim
        basis = self.push(np.eye(n - 1)).T
        # Beside p_i >= 0: the first m entries of p have a sum of at least 0, which only involves the coordinates
        # drawn by then. These implied rows make every slice of a draw, coordinate by coordinate, exact.
        sums = np.cumsum(basis, axis=0)[1 : n - 1]
        sums[np.abs(sums) < 1e-14] = 0.0
        rows = -np.vstack([basis, sums])
        levels = np.concatenate([np.full(n, 1 / n), np.arange(2, n) / n])
        size = np.linalg.norm(rows, axis=1)
        rows /= size[:, None]
        return Body(
            ball=False,
            box=n == 2,
            rows=n,
            dim=n - 1,
            radius=self._radius,
            A=read_only(rows),
            b=read_only(levels / size),
            lo=read_only(-self._ones * self._scale),
            hi=read_only(self._scale),
            suffix=read_only(suffix_bounds(rows, self._to_chart(np.eye(n)), 1e-14)),
        )
