"""The least sum of kinked losses on a line: exact, from the sorted kinks near the change of sign of the slope."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.learners._comparator_record import Record
from reticent.learners._comparator_sum import RowSum

_SORTED = 1 << 20  # kinks sorted at once
_BINS = 1 << 12  # parts into which one pass divides the line
_NARROWINGS = 4  # passes that divide it further: more would be below the spacing of doubles


def line(total: RowSum, record: Record) -> None:
    """Find the minimiser in a few passes: narrow the place down by histograms of kinks, then sort those left."""
    low, high = float(record.domain.body.lo[0]), float(record.domain.body.hi[0])
    end = max(abs(low), abs(high))
    for _ in range(_NARROWINGS):
        if total.rounds <= _SORTED:
            break
        before, jumps, counts = _histogram(total, low, high)
        edges = np.linspace(low, high, _BINS + 1)
        slopes = before + np.cumsum(jumps)
        place = int(np.searchsorted(slopes, 0.0))
        if place >= _BINS:
            low = high
            break
        low, high = float(edges[place]), float(edges[place + 1])
        if counts[place] <= _SORTED or high - low <= 1e-15 * end:
            break
    best = low if low == high else _sorted(total, low, high)
    # Beside the minimiser on both sides, so that the two minorants meet at it.
    tiny = 4.0 * np.spacing(end)
    for at in (best, best - tiny, best + tiny):
        record.add(total.look(record.inside(np.array([at])), bend=False))
    record.combine()


def _kinks(total: RowSum, vectors: Array, offsets: Array, low: float) -> tuple[float, Array, Array]:
    """Return the slope at the left end, and place and jump of all kinks to the right of it."""
    a = vectors[:, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = (total.kink - offsets) / a
    # A row with a < 0 goes through its slopes from the right.
    first, then = np.where(a >= 0, total.low, total.high) * a, np.where(a >= 0, total.high, total.low) * a
    passed = places <= low
    ahead = (places > low) & (a != 0)
    return float(np.where(passed, then, first).sum()), places[ahead], (then - first)[ahead]


def _histogram(total: RowSum, low: float, high: float) -> tuple[float, Array, Array]:
    slope, jumps, counts = 0.0, np.zeros(_BINS), np.zeros(_BINS)
    for vectors, offsets in total.chunks():
        start, places, steps = _kinks(total, vectors, offsets, low)
        slope += start
        inside = places <= high
        bins = np.minimum(((places[inside] - low) * (_BINS / (high - low))).astype(np.int64), _BINS - 1)
        jumps += np.bincount(bins, steps[inside], _BINS)
        counts += np.bincount(bins, minlength=_BINS)
    return slope, jumps, counts


def _sorted(total: RowSum, low: float, high: float) -> float:
    slope, parts = 0.0, []
    room = _SORTED
    for vectors, offsets in total.chunks():
        start, places, steps = _kinks(total, vectors, offsets, low)
        slope += start
        inside = places <= high
        if room > 0 or total.rounds <= _SORTED:
            parts.append((places[inside], steps[inside]))
            room -= int(inside.sum())
    places, steps = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(places)
    slopes = slope + np.cumsum(steps[order])
    place = -1 if slope >= 0 else int(np.searchsorted(slopes, 0.0))
    if place < 0:
        return low
    return float(places[order[place]]) if place < len(order) else high
