"""One-dimensional sums of piecewise quadratic losses: O(log t) levels of sorted breaks, each with prefix sums."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from reticent._core._check import Array
from reticent._core._exact import add_exactly
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains._linalg import put
from reticent.domains._line import line_sampler
from reticent.gibbs._history import DRAWN, GROWTH, Counts, Past, RowHistory, grown
from reticent.losses import Rows

_RATIO = 4  # a level is merged into the one before it unless that is this many times longer
_LEVELS = 64  # more than there can be: each is that many times shorter than the one before
# Two breaks that are nearer than this, as a part of the interval, are one kink: sums of curvatures of the rest of it
# would have fewer digits than that leaves.
_NARROW = 2.0**-26


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


class LineParts(NamedTuple):
    """A measure of piecewise quadratic losses on an interval as its kernel takes it."""

    past: Past
    beta: float
    lam: float
    lo: float
    hi: float
    points: Array
    """Where a loss has its breaks, by its margin, and the jumps of slope and curvature there."""
    slopes: Array
    bends: Array
    ends: Array
    """Of each of its pieces, continued to the margin 0, the slope there; and its curvature."""
    base: Array
    """Slope and curvature at 0 of what no break between lo and hi is part of, and what rounding has left of them."""
    breaks: Array
    jumps: Array
    prefix: Array
    starts: Counts
    origins: Array
    counts: Counts
    """Levels, rounds taken in, density evaluations."""
    guess: Array


@kernel
def _breaks(line, first, n, at):
    """Write the breaks of the rows from `first` to `n` that lie between lo and hi behind the `at` there are; count.

    What the others make of slope and curvature at 0 is added to the base.
    """
    count = at
    vectors, offsets = line.past.vectors, line.past.offsets
    base, low = line.base[:2], line.base[2:]
    for i in range(first, n):
        a = vectors[i, 0]
        if abs(a) < 1e-150:
            continue  # a constant, to far beyond double precision
        passed, before, last = 0, -np.inf, 0
        for order in range(line.points.size):
            k = order if a > 0.0 else line.points.size - 1 - order  # from left to right
            x = (line.points[k] - offsets[i]) / a
            if x <= line.lo:
                passed += 1
            elif x < line.hi:
                jump, bend = abs(a) * line.slopes[k], a * (abs(a) * line.bends[k])
                if before > line.lo and bend < 0.0 and bend == -line.jumps[count - 1, 1]:
                    # Between two breaks the slope rises by what it should, wherever rounding has moved them.
                    rise = abs(a * line.bends[k]) * abs(line.points[k] - line.points[last])
                    if x - before < _NARROW * (line.hi - line.lo):
                        line.breaks[count - 1] = 0.5 * (before + x)
                        line.jumps[count - 1, 0] += jump + rise
                        line.jumps[count - 1, 1] = 0.0
                        continue
                    line.jumps[count - 1, 1] = rise / (x - before)
                    bend = -line.jumps[count - 1, 1]
                line.breaks[count] = x
                line.jumps[count, 0] = jump
                line.jumps[count, 1] = bend
                before, last = x, k
                count += 1
        # The piece that the row has at lo. As a sum over the breaks before it, its slope would be lost in how far out
        # these may lie.
        piece = passed if a > 0.0 else line.points.size - passed
        add_exactly(base, low, 0, a * line.ends[piece, 0])
        add_exactly(base, low, 0, a * (line.ends[piece, 1] * offsets[i]))
        add_exactly(base, low, 1, a * (a * line.ends[piece, 1]))
    return count


@kernel
def _merge(breaks, jumps, start, middle, stop):
    """Merge two sorted stretches that lie one behind the other, from their far end."""
    late, late_jumps = breaks[middle:stop].copy(), jumps[middle:stop].copy()
    i, j = middle - 1, late.size - 1
    for k in range(stop - 1, start - 1, -1):
        if j < 0:
            break  # the rest is where it belongs
        if i >= start and breaks[i] > late[j]:
            breaks[k] = breaks[i]
            jumps[k, 0], jumps[k, 1] = jumps[i, 0], jumps[i, 1]
            i -= 1
        else:
            breaks[k] = late[j]
            jumps[k, 0], jumps[k, 1] = late_jumps[j, 0], late_jumps[j, 1]
            j -= 1


@kernel
def _fill(breaks, jumps, prefix, start, stop, origin):
    """Prefix sums over one sorted level, with breaks reckoned from `origin`."""
    size = prefix.shape[1]
    sums, low = np.zeros(size), np.zeros(size)
    for i in range(start, stop):
        k = breaks[i] - origin
        add_exactly(sums, low, 0, jumps[i, 0])
        add_exactly(sums, low, 1, jumps[i, 0] * k)
        if size > 2:
            add_exactly(sums, low, 2, jumps[i, 1])
            add_exactly(sums, low, 3, jumps[i, 1] * k)
            add_exactly(sums, low, 4, jumps[i, 1] * k * k)
        put(sums, prefix[i])


@kernel
def _index(line, n):
    """Take in the rows up to `n` that came since the last draw."""
    breaks, jumps, starts, counts = line.breaks, line.jumps, line.starts, line.counts
    level, first = counts[0], counts[1]
    if first == n:
        return
    start = starts[level]
    stop = _breaks(line, first, n, start)
    counts[1] = n
    if stop == start:
        return
    late, leaps = breaks[start:stop].copy(), jumps[start:stop].copy()
    order = np.argsort(late, kind="mergesort")
    for k in range(stop - start):
        breaks[start + k] = late[order[k]]
        put(leaps[order[k]], jumps[start + k])
    while level > 0 and start - starts[level - 1] < _RATIO * (stop - start):
        level -= 1
        _merge(breaks, jumps, starts[level], start, stop)
        start = starts[level]
    origin = breaks[(start + stop) // 2]
    _fill(breaks, jumps, line.prefix, start, stop, origin)
    line.origins[level] = origin
    starts[level + 1] = stop
    counts[0] = level + 1


@kernel
def draw_line(rng, line, n, out):
    """Fill `out` with draws from the measure of the first `n` rounds; return DRAWN."""
    _index(line, n)
    level = line.counts[0]
    sums = line.base[0], line.base[1], line.breaks, line.prefix, line.starts[: level + 1], line.origins
    scale = line.hi - line.lo
    if line.lam > 0.0:
        scale = min(scale, 1.0 / math.sqrt(line.beta * line.lam))
    args = line.beta, line.lam, sums
    line.guess[0], count = _draw_line(args, line.lo, line.hi, line.guess[0], scale, rng, out.reshape(out.size))
    line.counts[2] += count
    return DRAWN


def _ends(points: Array, slopes: Array, bends: Array, first: float) -> Array:
    """Return the pieces of a loss from left to right, each as its slope at the margin 0, continued, and its curvature.

    >>> _ends(np.array([-2.0, 2.0]), np.zeros(2), np.array([1.0, -1.0]), -2.0)
    array([[-2.,  0.],
           [ 0.,  1.],
           [ 2.,  0.]])
    """
    jumps = np.stack([slopes - bends * points, bends], axis=1)
    return np.cumsum(np.vstack([[[first, 0.0]], jumps]), axis=0)


@saved("sampler of kinks on a line")
class KinkSampler:
    """Draws for piecewise quadratic losses on an interval, with O(log t) levels of O(log t) search per evaluation."""

    _moves: ClassVar[tuple[str, ...]] = ("breaks", "jumps", "prefix", "starts", "origins", "counts", "guess", "shape")
    _grows: ClassVar[tuple[str, ...]] = ("breaks", "jumps", "prefix")

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        pieces = history.loss.pieces()
        if pieces is None or history.domain.chart_dim != 1:
            raise ValueError("the line sampler takes piecewise quadratic losses in one dimension only")
        self.history, self.beta, self.lam = history, beta, lam
        points, slopes, bends, first = pieces
        points = points - history.shift
        body = history.domain.body
        ends = _ends(points, slopes, bends, first)
        self.shape = float(body.lo[0]), float(body.hi[0]), points, slopes, bends, ends, np.zeros(4)
        self.breaks = np.zeros(0)
        self.jumps = np.zeros((0, 2))
        self.prefix = np.zeros((0, 5 if bends.any() else 2))
        self.starts: Counts = np.zeros(_LEVELS + 1, dtype=np.int64)
        self.origins = np.zeros(_LEVELS)
        self.counts: Counts = np.zeros(3, dtype=np.int64)
        self.guess = np.zeros(1)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only, and two slopes for pieces."""
        vars(self).update(state)
        lo, hi, points, slopes, bends, ends, base = self.shape
        if ends.ndim == 1:
            ends = _ends(points, slopes, bends, float(ends[0]))
        if base.size == 2:
            base = np.append(base, [0.0, 0.0])
        self.shape = lo, hi, points, slopes, bends, ends, base

    def _catch_up(self, found: KinkSampler) -> None:
        pairs: Any = zip(found.shape[:-1], self.shape[:-1], strict=True)
        if not all(np.array_equal(one, other) for one, other in pairs):
            raise ValueError("its kinks are not those of its loss")

    def _check_moved(self) -> None:
        """Refuse levels, from a file, that a kernel would not find in the arrays."""
        level, indexed, _ = self.counts.tolist()
        starts, room = self.starts, len(self.breaks)
        inside = 0 <= level <= _LEVELS and 0 <= indexed <= len(self.history) and starts[0] == 0
        if not inside or not room == len(self.jumps) == len(self.prefix):
            raise ValueError(f"it has {level} levels of kinks, of {indexed} rounds")
        if (np.diff(starts[: level + 1]) <= 0).any() or starts[level] > min(room, indexed * self.shape[2].size):
            raise ValueError(f"its {level} levels of kinks do not fit into {room} places")

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int]:
        """Return (chart point, density evaluations, rows read, which is none: the sums are exact)."""
        points, evaluations, reads = self.draw_many(rng, 1, limit)
        return points[0], evaluations, reads

    def draw_many(self, rng: np.random.Generator, count: int, limit: int) -> tuple[Array, int, int]:
        """Return (chart points, evaluations, 0): `count` independent draws from one envelope."""
        out = np.empty((count, 1))
        self._make_room(len(self.history))
        self.counts[2] = 0
        draw_line(rng, self.parts(limit), len(self.history), out)
        return out, int(self.counts[2]), 0

    def parts(self, limit: int) -> LineParts:
        """Return the measure as a kernel takes it, until more rounds are stored."""
        return LineParts(
            self.history.past, self.beta, self.lam, *self.shape, self.breaks, self.jumps, self.prefix,
            self.starts, self.origins, self.counts, self.guess,
        )  # fmt: skip

    def store(self, rows: Rows) -> None:
        """Store rounds that a kernel is going to take in."""
        self.history.store(rows)
        self._make_room(len(self.history) + len(rows))

    def _make_room(self, rounds: int) -> None:
        """Make room for the breaks of so many rounds in all."""
        level, indexed, _ = self.counts.tolist()
        most = int(self.starts[level]) + (rounds - indexed) * self.shape[2].size
        if most > len(self.breaks):
            capacity = max(most, int(GROWTH * len(self.breaks)), 64)
            # The breaks last, by which the room is known: an interrupt must not leave the others short of it.
            self.jumps, self.prefix = grown(self.jumps, capacity), grown(self.prefix, capacity)
            self.breaks = grown(self.breaks, capacity)
