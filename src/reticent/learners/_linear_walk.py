"""The walk over linear losses on balls and boxes, compiled as a whole: millions of rounds a second."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._kernel import kernel
from reticent.domains._gauss import draw_isotropic
from reticent.losses import Rows

from ._changes import Changes
from ._coin import AuxiliaryCoin, Toss
from ._learner import NEVER
from ._next_coin import next_coin
from ._walk import Walk

_CHANGES = 1024  # that one call of the kernel can report


@kernel
def _play(rng, body, beta, k, batch, length, cap, coin, vectors, totals, counts, level, u, places, points):
    """Take in rounds and toss the coins due among them; return the numbers of rounds taken and of changes.

    `totals` holds the sum of all gradients and of those in the batch of the next coin; `counts` the rounds taken in,
    the round at which that coin is due, the first round of its batch that it reads, and the switches. This is
    `Walk.take` for a measure drawn in closed form, step by step; tests hold the two together.
    """
    draws, phi, look, share, open_ = coin
    done, due, keep_from, spent = counts
    n, d = vectors.shape
    i = changes = 0
    y = np.empty(d)
    while i < n and changes < places.size:
        take = min(n - i, due - done)
        for r in range(i, i + take):
            for j in range(d):
                totals[0, j] += vectors[r, j]
        for r in range(i + max(0, min(take, keep_from - done)), i + take):
            for j in range(d):
                totals[1, j] += vectors[r, j]
        i += take
        done += take
        if done < due:
            break
        switches = True
        if level[0] > 0.0:
            ratio = 0.0
            for _ in range(int(draws)):
                draw_isotropic(rng, totals[0], -beta, k, body, y)
                h = 0.0
                for j in range(d):
                    h += totals[1, j] * (y[j] - u[j])
                ratio += math.exp(min(beta * h, 700.0))
            switches = level[0] > ratio / (draws * phi)
        if switches:
            draw_isotropic(rng, totals[0], -beta, k, body, u)
            spent += 1
            places[changes] = done
            points[changes] = u
            changes += 1
        totals[1] = 0.0
        due = keep_from = NEVER
        level[0] = 0.0
        if spent < cap:
            due, level[0] = next_coin(rng, look, share, open_, done, batch, length)
            if level[0] > 0.0 and due < NEVER:
                keep_from = due - batch
    counts[0], counts[1], counts[2], counts[3] = done, due, keep_from, spent
    return i, changes


class LinearWalk(Walk):
    """A `Walk` whose rounds are sums of gradients and whose coins are tossed inside one compiled loop."""

    def _schedule(self) -> None:
        super()._schedule()
        toss = self._toss or Toss(0, True, 0.0)
        self._totals = np.zeros((2, self.u.size))
        self._counts = np.array([self.done, self._coin_due, self._keep_from, self.spent])
        self._level = np.array([0.0 if toss.forced else toss.level])

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are appended."""
        start = 0
        self.u = self.u.copy()  # the present one may have been given away
        while start < len(rows):
            places, points = np.empty(_CHANGES, dtype=np.int64), np.empty((_CHANGES, self.u.size))
            self.torn = True
            taken, count = self._play(rows.vectors[start:], places, points)
            changes.add_many(places[:count], points[:count])
            start += taken
            self.done, self._coin_due, _, self.spent = (int(count) for count in self._counts)
            self.torn = False

    def _play(self, *block: Any) -> Any:
        vectors, places, points = block
        coin, measure = self.coin, self.measure
        assert isinstance(coin, AuxiliaryCoin)
        return _play(
            self.rng,
            measure.domain.body,
            measure.beta,
            measure.beta * measure.lam,
            self.batch,
            self.length,
            self.cap,
            (coin.draws, coin.phi, coin.look, coin.forced, coin.open),
            vectors,
            self._totals,
            self._counts,
            self._level,
            self.u,
            places,
            points,
        )
