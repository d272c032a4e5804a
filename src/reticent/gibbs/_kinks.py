"""One-dimensional sums of piecewise quadratic losses: O(log t) levels of sorted breaks, each with prefix sums."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent._kernel import kernel
from reticent.domains._line import line_sampler

from ._columns import grown
from ._history import RowHistory

_RATIO = 4  # a level is merged into the one before it unless that is this many times longer


@kernel
def _sum_at(args, x):
    """The sum of the losses at x, up to a constant, and its slope on the left of x."""
    slope, bend, breaks, prefix, starts, origins = args
    value = x * (slope + 0.5 * x * bend)
    slope += x * bend
    for level in range(starts.size - 1):
        first, low, high = starts[level], starts[level], starts[level + 1]
        while low < high:
            middle = (low + high) // 2
            if breaks[middle] < x:
                low = middle + 1
            else:
                high = middle
        if low > first:
            # sum of j (x-k) + q (x-k)^2/2 over the breaks k below x, all reckoned from the middle of the level:
            # from a far end of the interval the squares would lose the peak to rounding.
            w = x - origins[level]
            sums = prefix[low - 1]
            value += sums[0] * w - sums[1]
            slope += sums[0]
            if sums.size > 2:
                value += 0.5 * (sums[2] * w * w - 2.0 * sums[3] * w + sums[4])
                slope += sums[2] * w - sums[3]
    return value, slope


@kernel
def _log_density(args, x):
    beta, lam, parts = args
    value, slope = _sum_at(parts, x)
    return -beta * (value + 0.5 * lam * x * x), -beta * (slope + lam * x)


_draw_line = line_sampler(_log_density)


@kernel
def _breaks(vectors, offsets, lo, hi, points, slopes, bends, ends, base, out, jumps):
    """Write the breaks of each row between lo and hi; add what the others make of slope and curvature at 0; count."""
    count = 0
    for i in range(offsets.size):
        a = vectors[i, 0]
        if abs(a) < 1e-150:
            continue  # a constant, to far beyond double precision
        # As a function of x the row starts, at minus infinity, with one of its two end slopes and no curvature.
        base[0] += a * (ends[0] if a > 0.0 else ends[1])
        for k in range(points.size):
            x = (points[k] - offsets[i]) / a
            jump, bend = abs(a) * slopes[k], a * abs(a) * bends[k]
            if x <= lo:
                base[0] += jump - bend * x
                base[1] += bend
            elif x < hi:
                out[count] = x
                jumps[count, 0] = jump
                jumps[count, 1] = bend
                count += 1
    return count


@kernel
def _fill(breaks, jumps, prefix, start, origin):
    """Prefix sums over one sorted level, with breaks reckoned from `origin`."""
    j = jk = q = qk = qkk = 0.0
    for i in range(start, breaks.size):
        k = breaks[i] - origin
        j += jumps[i, 0]
        jk += jumps[i, 0] * k
        prefix[i, 0] = j
        prefix[i, 1] = jk
        if prefix.shape[1] > 2:
            q += jumps[i, 1]
            qk += jumps[i, 1] * k
            qkk += jumps[i, 1] * k * k
            prefix[i, 2] = q
            prefix[i, 3] = qk
            prefix[i, 4] = qkk


class LineSampler:
    """Draws for piecewise quadratic losses on an interval, with O(log t) levels of O(log t) search per evaluation."""

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        pieces = history.loss.pieces()
        if pieces is None or history.domain.chart_dim != 1:
            raise ValueError("the line sampler takes piecewise quadratic losses in one dimension only")
        self.history, self.beta, self.lam = history, beta, lam
        self.points, self.slopes, self.bends, first = pieces
        self.points = self.points - history.shift
        self.ends = np.array(
            [first, first + self.slopes.sum() + self.bends @ (self.points[-1] - self.points)]
        )  # slopes at minus and plus infinity
        self.lo, self.hi = float(history.domain.body.lo[0]), float(history.domain.body.hi[0])
        self.base = np.zeros(2)
        self.breaks = np.zeros(0)
        self.jumps = np.zeros((0, 2))
        self.prefix = np.zeros((0, 5 if self.bends.any() else 2))
        self.starts = [0]
        self.origins: list[float] = []
        self.indexed = 0
        self.guess = 0.0

    def _index(self) -> None:
        """Take in the rows that came since the last draw."""
        columns = self.history.columns
        vectors, offsets = columns.vectors[self.indexed :], columns.offsets[self.indexed :]
        if not len(offsets):
            return
        out = np.empty(len(offsets) * self.points.size)
        jumps = np.empty((out.size, 2))
        found = _breaks(
            vectors, offsets, self.lo, self.hi,
            self.points, self.slopes, self.bends, self.ends, self.base, out, jumps,
        )  # fmt: skip
        self.indexed = len(columns)
        if not found:
            return
        start, count = self.starts[-1], self.starts[-1] + found
        if count > len(self.breaks):
            capacity = max(count, int(1.25 * len(self.breaks)), 64)
            self.breaks, self.jumps = grown(self.breaks, capacity), grown(self.jumps, capacity)
            self.prefix = grown(self.prefix, capacity)
        self.breaks[start:count], self.jumps[start:count] = out[:found], jumps[:found]
        self.starts.append(count)
        self.origins.append(0.0)
        # Levels lie one behind the other: merging is sorting their common stretch.
        while len(self.starts) > 2 and (
            self.starts[-2] - self.starts[-3] < _RATIO * (self.starts[-1] - self.starts[-2])
        ):
            del self.starts[-2], self.origins[-2]
        start = self.starts[-2]
        order = start + np.argsort(self.breaks[start:count], kind="stable")
        self.breaks[start:count] = self.breaks[order]
        self.jumps[start:count] = self.jumps[order]
        self.origins[-1] = float(self.breaks[(start + count) // 2])
        _fill(self.breaks[:count], self.jumps[:count], self.prefix[:count], start, self.origins[-1])

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int]:
        """Return (chart point, density evaluations, rows read, which is none: the sums are exact)."""
        points, evaluations, reads = self.draw_many(rng, 1, limit)
        return points[0], evaluations, reads

    def draw_many(self, rng: np.random.Generator, count: int, limit: int) -> tuple[Array, int, int]:
        """Return (chart points, evaluations, 0): `count` independent draws from one envelope."""
        self._index()
        stop = self.starts[-1]
        parts = (
            float(self.base[0]),
            float(self.base[1]),
            self.breaks[:stop],
            self.prefix[:stop],
            np.array(self.starts),
            np.array(self.origins),
        )
        scale = min(self.hi - self.lo, 1.0 / np.sqrt(self.beta * self.lam) if self.lam > 0.0 else np.inf)
        out = np.empty(count)
        args = self.beta, self.lam, parts
        self.guess, evaluations = _draw_line(args, self.lo, self.hi, self.guess, scale, rng, out)
        return out[:, None], evaluations, 0
