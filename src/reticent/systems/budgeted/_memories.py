"""The learner in the background: descent at many step sizes, best points of many windows, and a mean of them all.

Everything is NumPy on whole blocks; nothing is compiled.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.domains import Ball, Box, Domain
from reticent.losses import GeneralisedLinear, Loss, Rows
from reticent.saving import check_array, refuse_unless

STEPS = 4.0 * 0.5 ** np.arange(10)
"""Steps of descent, in radii for a block whose mean gradient is as steep as can be."""
AGES = (1, 3, 5, 7)  # blocks: a point is judged by what it costs later, as a decision that is kept does
_KEEP = 0.5 ** (1 / 128)  # a half-life of 128 blocks, eight mean times between changes: how long they are judged by
_SHORTEST, _POINTS = 8, 512  # rounds of the shortest window; rounds that are kept of a longer one, evenly spaced
_LONGEST = 12  # doublings of 512 rounds: windows of two million
_OFTEN = 8  # a window is solved again once an eighth of it is new


def nearest(domain: Domain, points: Array) -> Array:
    """Return the points of the body nearest to some, all in the chart."""
    if isinstance(domain, Box):
        clipped: Array = np.minimum(np.maximum(points, domain.body.lo), domain.body.hi)
        return clipped
    if isinstance(domain, Ball):
        lengths = np.sqrt((points * points).sum(axis=1))
        inside: Array = points * np.minimum(1.0, domain.radius / np.maximum(lengths, 1e-300))[:, None]
        return inside
    return np.array([domain._to_chart(domain._project(domain._from_chart(point))) for point in points])


@saved("memories of the budgeted follower")
class Memories:
    """Points in the chart, one of each memory, and their weights: Hedge on what the points of some blocks ago cost now.

    Weights fall with the mean loss of a memory's points that are `AGES` blocks old, as a decision is kept for some
    time: memories that are best for the next round are not best where changes are few.
    """

    _moves: ClassVar[tuple[str, ...]] = ("windows", "points", "past", "regrets", "spread", "weights", "point")

    def __init__(self, domain: Domain, loss: Loss, horizon: int | None, batch: int) -> None:
        """Start at the centre, all memories alike; `batch` is the length of the first block."""
        self.domain = domain
        self.windows = Windows(loss, horizon, batch) if domain.chart_dim == 1 and _kinked(loss) else None
        count = STEPS.size + (0 if self.windows is None else len(self.windows.lengths))
        self.points: Array = np.zeros((count, domain.chart_dim))
        self.past: Array = np.zeros((AGES[-1], *self.points.shape))  # those of the last blocks, the oldest first
        self.regrets: Array = np.zeros(count)
        self.spread = 0.0
        self.weights: Array = np.full(count, 1 / count)
        self.point: Array = np.zeros(domain.chart_dim)  # the mean by the weights: where a change would lead

    @property
    def held(self) -> Array:
        """The points of `AGES` blocks ago, one memory after the other, for each age."""
        some: Array = self.past[[-age for age in AGES]]
        return some.reshape(-1, some.shape[-1])

    def learn(self, rows: Rows | None, late: Array, gradients: Array, unit: float) -> None:
        """Take in a block: what the points of `held` lost in it, and the gradients of the points of descent.

        `unit` is the radius over the steepest sum of gradients that a block can have; `rows` are for windows.
        """
        late = late.reshape(len(AGES), -1).mean(axis=0)
        above = late - late.min()
        self.regrets = _KEEP * self.regrets + above
        # Hedge for losses of an unknown scale: the rate falls with the squares of what the weights see.
        self.spread = _KEEP * self.spread + 4 * float(self.weights @ (above - self.weights @ above) ** 2)
        if self.spread > 0.0:
            rate = math.sqrt(8 * math.log(len(above)) / self.spread)
            weights = np.exp(-rate * (self.regrets - self.regrets.min()))
            self.weights = weights / weights.sum()
        self.past = np.concatenate([self.past[1:], self.points[None]])
        moved = nearest(self.domain, self.points[: STEPS.size] - unit * STEPS[:, None] * gradients)
        if self.windows is not None:
            assert rows is not None
            ends = self.windows.learn(rows, self.points[STEPS.size :, 0])
            moved = np.concatenate([moved, nearest(self.domain, ends[:, None])])
        self.points = moved
        self.point = self.weights @ moved


def _kinked(loss: Loss) -> bool:
    """Say whether the loss is two straight lines in its margin."""
    pieces = loss.pieces() if isinstance(loss, GeneralisedLinear) else None
    return pieces is not None and pieces[0].size == 1 and not pieces[2].any()


@saved("windows of the budgeted follower")
class Windows:
    """The best points of the last 8, 16, 32, ... rounds, on a line, for losses of two straight lines.

    Of windows longer than 512 rounds 512 are kept, evenly spaced: memory and work do not grow with the run.
    """

    _moves: ClassVar[tuple[str, ...]] = ("fresh", "rings", "done")

    def __init__(self, loss: Loss, horizon: int | None, batch: int) -> None:
        """Start with nothing seen; no window is shorter than a block."""
        assert isinstance(loss, GeneralisedLinear)
        pieces = loss.pieces()
        assert pieces is not None
        self.kink, self.jump, self.slope = float(pieces[0][0]), float(pieces[1][0]), float(pieces[3])
        most = _POINTS << _LONGEST if horizon is None else horizon
        self.lengths = [1 << (max(_SHORTEST, min(batch, _POINTS)) - 1).bit_length()]
        while 2 * self.lengths[-1] < min(2 * most, _POINTS << _LONGEST):
            self.lengths.append(2 * self.lengths[-1])
        self.fresh = [0] * len(self.lengths)  # rounds since each was solved
        # Of each round where its kink lies, how the slope jumps there, and what the slope lacks on the far left.
        rings = 1 + sum(length > _POINTS for length in self.lengths)
        self.rings: list[Array] = [np.zeros((0, 3)) for _ in range(rings)]
        self.done = 0

    def _check_moved(self) -> None:
        counts = len(self.fresh) == len(self.lengths) and all(type(n) is int and n >= 0 for n in self.fresh)
        rings = 1 + sum(length > _POINTS for length in self.lengths)
        refuse_unless(counts and len(self.rings) == rings, "its windows are not those of its plan")
        for ring in self.rings:
            check_array(ring, np.zeros((0, 3)), "a window", longer=True)
            refuse_unless(len(ring) <= _POINTS, f"a window has {len(ring)} rounds")

    def learn(self, rows: Rows, before: Array) -> Array:
        """Take in rounds; return the best point of each window, where it was if too little is new."""
        slopes, offsets = rows.vectors[:, 0], rows.offsets
        news = np.empty((len(rows), 3))
        with np.errstate(all="ignore"):
            news[:, 0] = (self.kink - offsets) / slopes
        news[:, 1] = self.jump * np.abs(slopes)
        news[:, 2] = np.where(slopes > 0, -self.slope, -(self.slope + self.jump)) * slopes
        news = news[np.isfinite(news[:, 0])]
        for i, ring in enumerate(self.rings):
            first = -self.done % (1 << i)
            if first < len(news):
                self.rings[i] = np.concatenate([ring, news[first :: 1 << i]])[-_POINTS:]
        self.done += len(news)
        found = before.copy()
        for j, length in enumerate(self.lengths):
            self.fresh[j] += len(news)
            if self.fresh[j] * _OFTEN >= min(length, self.done):
                self.fresh[j] = 0
                thinned = max(0, length // _POINTS).bit_length() - 1
                ring = self.rings[thinned] if length > _POINTS else self.rings[0][-length:]
                if len(ring):
                    found[j] = _best(ring)
        return found


def _best(ring: Array) -> float:
    """Return the first point at which the slopes of some rounds add up to 0 or more."""
    order = np.argsort(ring[:, 0])
    slopes = np.cumsum(ring[order, 1])
    # A little less than what is lacking: a sum that meets it but for rounding is there.
    place = int(np.searchsorted(slopes, ring[:, 2].sum() * (1 - 1e-12)))
    return float(ring[order[min(place, len(order) - 1)], 0])
