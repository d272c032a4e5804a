"""The walk over losses whose draws need nothing from Python, compiled as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._errors import WorkLimitError
from reticent._kernel import kernel
from reticent.gibbs._alone import draw_alone
from reticent.gibbs._history import ingest
from reticent.gibbs._outcome import DRAWN, FAR, GIVEN_UP
from reticent.gibbs._phi import margin, phi
from reticent.losses import Rows

from ._changes import Changes
from ._coin import AuxiliaryCoin, Toss
from ._learner import NEVER
from ._next_coin import next_coin
from ._walk import Walk

_CHANGES = 1024  # that one call of the kernel can report
DONE, DUE, SPENT, STAGE = range(4)  # places in the counts of a walk
TAKING, TOSSING, DRAWING = range(3)  # stages: rounds come in, a coin is tossed, a decision is drawn


@kernel
def _loss(past, start, stop, x):
    """The loss of some rows at x."""
    total = 0.0
    for i in range(start, stop):
        total += phi(past.code, past.parameter, margin(past.vectors, past.offsets, i, x))
    return total


@kernel
def _ratio(past, beta, batch, n, points, u):
    """The mean of exp(beta (L(y) - L(u))) over the points y, for the loss L of the last `batch` of `n` rows."""
    here = _loss(past, n - batch, n, u)
    total = 0.0
    for k in range(points.shape[0]):
        # Beyond exp(700) the coin keeps in any case.
        total += math.exp(min(beta * (_loss(past, n - batch, n, points[k]) - here), 700.0))
    return total / points.shape[0]


@kernel
def _play(rng, parts, batch, length, cap, coin, n, stop, counts, level, u, others, fresh, places, points):
    """Take in the stored rows from `n` to `stop` and toss the coins due among them; return (rows, changes, outcome).

    This is `Walk.take`, step by step; tests hold the two together. It ends early where the changes are as many as it
    can report, where the budget is spent, and where a draw is not DRAWN: then the same call goes on with that draw.
    """
    multiplier, look, share, open_ = coin
    past, beta = parts.past, parts.beta
    changes, outcome = 0, DRAWN
    while changes < places.size and counts[SPENT] < cap:
        if counts[STAGE] == TAKING:
            count = min(stop - n, counts[DUE] - counts[DONE])
            ingest(past, n, n + count)
            n += count
            counts[DONE] += count
            if counts[DONE] < counts[DUE]:
                break
            counts[STAGE] = TOSSING if level[0] > 0.0 else DRAWING
        switches = True
        if counts[STAGE] == TOSSING:
            outcome = draw_alone(rng, parts, n, others)
            if outcome != DRAWN:
                break
            switches = level[0] > _ratio(past, beta, batch, n, others, u) / multiplier
            counts[STAGE] = DRAWING
        if switches:
            # Afresh: the auxiliary draws of a coin must never become decisions (docs/theory.md, P2).
            outcome = draw_alone(rng, parts, n, fresh)
            if outcome != DRAWN:
                break
            u[:] = fresh[0]
            places[changes] = counts[DONE]
            points[changes] = u
            changes += 1
            counts[SPENT] += 1
        counts[STAGE] = TAKING
        counts[DUE] = NEVER
        if counts[SPENT] < cap:
            counts[DUE], level[0] = next_coin(rng, look, share, open_, counts[DONE], batch, length)
    return n, changes, outcome


class RowWalk(Walk):
    """A `Walk` whose rounds are taken in, coins tossed and decisions drawn inside one compiled loop."""

    def _schedule(self) -> None:
        super()._schedule()
        assert isinstance(self.coin, AuxiliaryCoin)
        toss = self._toss or Toss(0, True, 0.0)
        self._counts = np.array([self.done, self._coin_due, self.spent, TAKING])
        self._level = np.array([0.0 if toss.forced else toss.level])
        # Kept between calls: a draw that was interrupted goes on.
        self._others, self._fresh = np.zeros((self.coin.draws, self.u.size)), np.zeros((1, self.u.size))

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are appended.

        If a draw fails, the rounds up to its coin have been taken in, and the next call goes on with that coin.
        """
        last = self.done + len(rows)
        if not self.frozen:
            self._take(rows, last, changes)
        if self.frozen:
            self.done = last

    def _take(self, rows: Rows, last: int, changes: Changes) -> None:
        sampler = self.measure.compiled()
        columns = sampler.history.columns
        self.u = self.u.copy()  # the present one may have been given away
        stop = len(columns) + len(rows)
        self.torn = True
        sampler.store(rows)
        self.torn = False
        while not self.frozen and (self.done < last or self._counts[STAGE] != TAKING):
            places, points = np.empty(_CHANGES, dtype=np.int64), np.empty((_CHANGES, self.u.size))
            self.torn = True
            count, found, outcome = self._play(sampler, len(columns), stop, places, points)
            columns.set_count(count)
            changes.add_many(places[:found], points[:found])
            self.done, self._coin_due, self.spent, _ = self._counts.tolist()
            self.torn = False
            if outcome == FAR:
                sampler.tend()
            elif outcome == GIVEN_UP:
                raise WorkLimitError(self.measure.why_given_up())
        if self.frozen:
            self.measure = self.measure.emptied()  # nothing will ever be drawn from it again

    def _play(self, sampler: Any, *block: Any) -> Any:
        coin = self.coin
        assert isinstance(coin, AuxiliaryCoin)
        count, stop, places, points = block
        return _play(
            self.rng,
            sampler.parts(self.measure.limit),
            self.batch,
            self.length,
            self.cap,
            (coin.phi, coin.look, coin.forced, coin.open),
            count,
            stop,
            self._counts,
            self._level,
            self.u,
            self._others,
            self._fresh,
            places,
            points,
        )
