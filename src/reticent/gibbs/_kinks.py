"""One-dimensional sums of piecewise quadratic losses: O(log t) levels of sorted breaks, each with prefix sums."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from reticent._core._check import Array
from reticent._core._exact import add_exactly, plus_exactly, times_exactly
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains._linalg import put
from reticent.domains._line import line_sampler
from reticent.gibbs._history import DRAWN, GROWTH, Counts, Past, RowHistory, grown
from reticent.losses import Rows

_RATIO = 4  # a level is merged into the one before it unless that is this many times longer
_LEVELS = 64  # more than there can be: each is that many times shorter than the one before
# The two breaks of a row that are nearer than this, as a part of the interval, are one kink in their middle. Sums of
# curvatures, which grow with what it leaves, would lose digits below it, in twice the precision too (docs/theory, Q12).
_NARROW = 2.0**-26
_SLOPE, _VALUE, _BEND = range(3)  # of a quadratic: its slope at 0, its value there, its curvature


@kernel
def _sum_at(args, x):
    """The sum of the losses at x, up to a constant, and its slope on the left of x."""
    base, breaks, prefix, starts = args
    size = prefix.shape[1] // 2
    slope, slope_rest = base[_SLOPE], base[3 + _SLOPE]
    value, value_rest = base[_VALUE], base[3 + _VALUE]
    bend, bend_rest = base[_BEND], base[3 + _BEND]
    for level in range(starts.size - 1):
        first, low, high = starts[level], starts[level], starts[level + 1]
        while low < high:
            middle = (low + high) // 2
            if breaks[middle] < x:
                low = middle + 1
            else:
                high = middle
        if low > first:
            sums = prefix[low - 1]
            slope, slope_rest = plus_exactly(slope, slope_rest, sums[_SLOPE], sums[size + _SLOPE])
            value, value_rest = plus_exactly(value, value_rest, sums[_VALUE], sums[size + _VALUE])
            if size > 2:
                bend, bend_rest = plus_exactly(bend, bend_rest, sums[_BEND], sums[size + _BEND])
    # value + x (slope + x bend / 2), in twice the precision: narrow quadratic parts make coefficients that nearly
    # cancel, as large as the interval is long beside them.
    turned, rest = times_exactly(bend, x)
    rest += bend_rest * x
    half, half_rest = plus_exactly(slope, slope_rest, 0.5 * turned, 0.5 * rest)
    slope, _ = plus_exactly(slope, slope_rest, turned, rest)
    risen, rest = times_exactly(half, x)
    value, _ = plus_exactly(value, value_rest, risen, rest + half_rest * x)
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
    """Slope, value at 0 and curvature of the pieces that the rows have at lo, and what rounding has left of them."""
    breaks: Array
    jumps: Array
    prefix: Array
    starts: Counts
    counts: Counts
    """Levels, rounds taken in, density evaluations."""
    guess: Array


@kernel
def _add_turn(sums, low, jump, bend, k):
    """Add to a sum of quadratics one that is 0, but on the right of k, where it starts with slope and curvature."""
    add_exactly(sums, low, _SLOPE, jump)
    moved, rest = times_exactly(jump, k)
    add_exactly(sums, low, _VALUE, -moved)
    add_exactly(sums, low, _VALUE, -rest)
    if bend != 0.0:
        moved, rest = times_exactly(bend, k)
        add_exactly(sums, low, _SLOPE, -moved)
        add_exactly(sums, low, _SLOPE, -rest)
        square, last = times_exactly(moved, k)
        add_exactly(sums, low, _VALUE, 0.5 * square)
        add_exactly(sums, low, _VALUE, 0.5 * (last + rest * k))
        add_exactly(sums, low, _BEND, bend)


@kernel
def _kink(line, low, x, left, right, jump, count):
    """Take in a row with one kink: its slope at lo, and the break if it lies between lo and hi; count breaks."""
    add_exactly(line.base[:3], low, _SLOPE, right if x <= line.lo else left)
    if not line.lo < x < line.hi:
        return count
    line.breaks[count] = x
    line.jumps[count, 0], line.jumps[count, 1] = jump, 0.0
    return count + 1


@kernel
def _bend(line, low, i, left, right, jump, count):
    """Take in a row with a quadratic part: the piece that it has at lo, and its breaks between lo and hi; count."""
    a, offset = line.past.vectors[i, 0], line.past.offsets[i]
    one, other = (0, 1) if a > 0.0 else (1, 0)  # from left to right
    begin, end = (line.points[one] - offset) / a, (line.points[other] - offset) / a
    base = line.base[:3]
    if end <= line.lo or begin >= line.hi:
        add_exactly(base, low, _SLOPE, right if end <= line.lo else left)
        return count
    if begin <= line.lo and end >= line.hi:
        add_exactly(base, low, _SLOPE, a * (line.ends[1, 0] + line.ends[1, 1] * offset))
        add_exactly(base, low, _BEND, a * (a * line.ends[1, 1]))
        return count
    # Between its breaks the slope rises by what it should, wherever rounding has moved them.
    bend = jump / (end - begin)
    if begin <= line.lo:
        add_exactly(base, low, _SLOPE, right)
        _add_turn(base, low, 0.0, bend, end)  # that it goes on to the right of its end, the break there takes back
    else:
        add_exactly(base, low, _SLOPE, left)
        line.breaks[count] = begin
        line.jumps[count, 0], line.jumps[count, 1] = 0.0, bend
        count += 1
    if end < line.hi:
        line.breaks[count] = end
        line.jumps[count, 0], line.jumps[count, 1] = 0.0, -bend
        count += 1
    return count


@kernel
def _breaks(line, first, n, at):
    """Write the breaks of the rows from `first` to `n` that lie between lo and hi behind the `at` there are; count.

    The pieces that the rows have at lo are added to the base: as a sum over the breaks before it, the slope of a piece
    would be lost in how far out these may lie.
    """
    count = at
    low, last = line.base[3:], line.points.size - 1
    for i in range(first, n):
        a, offset = line.past.vectors[i, 0], line.past.offsets[i]
        if abs(a) < 1e-150:
            continue  # a constant, to far beyond double precision
        left, right = a * line.ends[0, 0], a * line.ends[last + 1, 0]
        if a < 0.0:
            left, right = right, left
        span = line.points[last] - line.points[0]
        if last > 0 and span >= _NARROW * (line.hi - line.lo) * abs(a):
            count = _bend(line, low, i, left, right, abs(a) * (line.bends[0] * span), count)
            continue
        # How far apart two breaks are is known from their margins, wherever they lie.
        jump = abs(a) * (line.slopes[0] if last == 0 else line.bends[0] * span)
        x = (line.points[0] + 0.5 * span - offset) / a
        count = _kink(line, low, x, left, right, jump, count)
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
def _fill(breaks, jumps, prefix, start, stop):
    """Prefix sums over one sorted level, and what rounding has left of them."""
    size = prefix.shape[1] // 2
    sums, low = np.zeros(size), np.zeros(size)
    for i in range(start, stop):
        _add_turn(sums, low, jumps[i, 0], jumps[i, 1], breaks[i])
        put(sums, prefix[i, :size])
        put(low, prefix[i, size:])


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
    _fill(breaks, jumps, line.prefix, start, stop)
    starts[level + 1] = stop
    counts[0] = level + 1


@kernel
def draw_line(rng, line, n, out):
    """Fill `out` with draws from the measure of the first `n` rounds; return DRAWN."""
    _index(line, n)
    level = line.counts[0]
    sums = line.base, line.breaks, line.prefix, line.starts[: level + 1]
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

    _moves: ClassVar[tuple[str, ...]] = ("breaks", "jumps", "prefix", "starts", "counts", "guess", "shape")
    _grows: ClassVar[tuple[str, ...]] = ("breaks", "jumps", "prefix")

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        pieces = history.loss.pieces()
        if pieces is None or history.domain.chart_dim != 1:
            raise ValueError("the line sampler takes piecewise quadratic losses in one dimension only")
        self.history, self.beta, self.lam = history, beta, lam
        points, slopes, bends, first = pieces
        if len(points) != 1 + bends.any() or (bends.any() and (slopes.any() or bends.sum() != 0.0)):
            raise ValueError(
                "the line sampler takes losses with one kink, or with one quadratic part between two lines"
            )
        points = points - history.shift
        body = history.domain.body
        ends = _ends(points, slopes, bends, first)
        self.shape = float(body.lo[0]), float(body.hi[0]), points, slopes, bends, ends, np.zeros(6)
        self.breaks = np.zeros(0)
        self.jumps = np.zeros((0, 2))
        self.prefix = np.zeros((0, 6 if bends.any() else 4))
        self.starts: Counts = np.zeros(_LEVELS + 1, dtype=np.int64)
        self.counts: Counts = np.zeros(3, dtype=np.int64)
        self.guess = np.zeros(1)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; of those of older versions, which added up less exactly, the rows are taken in again."""
        vars(self).update({name: value for name, value in state.items() if name != "origins"})
        if "origins" not in state:
            return
        lo, hi, points, slopes, bends, ends, _ = self.shape
        if ends.ndim == 1:
            ends = _ends(points, slopes, bends, float(ends[0]))
        self.shape = lo, hi, points, slopes, bends, ends, np.zeros(6)
        self.prefix = np.zeros((len(self.breaks), 6 if bends.any() else 4))
        self.starts, self.counts = np.zeros_like(self.starts), np.zeros_like(self.counts)

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
        self.counts[2] = 0
        draw_line(rng, self.parts(limit), len(self.history), out)
        return out, int(self.counts[2]), 0

    def parts(self, limit: int) -> LineParts:
        """Return the measure as a kernel takes it, until more rounds are stored."""
        self._make_room(len(self.history))  # a loaded one may have all of them before it
        return LineParts(
            self.history.past, self.beta, self.lam, *self.shape, self.breaks, self.jumps, self.prefix,
            self.starts, self.counts, self.guess,
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
