"""One epoch of P-COMW: the coin with auxiliary draws, and walks that are compiled where draws need no Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent._core._errors import WorkLimitError
from reticent._core._tags import saved
from reticent.gibbs import Gibbs
from reticent.losses import Linear, Loss, Rows
from reticent.saving import refuse_unless
from reticent.systems._decider import NEVER, Changes
from reticent.systems._walk import DOWN, KeepingCoin, Toss, Walk
from reticent.systems.pcomw._plan import Plan


@saved("auxiliary coin")
class AuxiliaryCoin(KeepingCoin):
    """Keeps x with probability clip(mean of exp(beta (L(y) - L(x))) / phi, phi^-2, 1) over draws y of the next measure.

    The lower clip is the floor (docs/theory, P1 to P5).
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.p, 2.0 * math.log(plan.phi))
        self.draws, self.beta, self.phi = plan.draws, plan.beta, plan.phi

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep, the upper clip left to the comparison with a uniform number."""
        return self._ratio(measure, rows, u, rng) / self.phi

    def _ratio(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return an unbiased estimate of the ratio of the next density to the present one at u (docs/theory, P1)."""
        points = np.empty((self.draws + 1, u.size))
        points[:-1] = measure.draws_in_chart(rng, self.draws)
        points[-1] = u
        losses = measure.loss.total(measure.domain, rows, points)
        # Beyond exp(700) the coin keeps in any case: phi is at most 1e300.
        return float(np.exp(np.minimum(self.beta * (losses[:-1] - losses[-1]), 700.0)).mean())


@saved("steady coin")
class SteadyCoin(AuxiliaryCoin):
    """The same coin, doing the same work for every batch: what it was about to say does not show in the time it takes.

    Auxiliary draws are made for every coin, and a fresh decision is drawn for every coin too, kept or not
    (docs/theory, Q8). How long one draw takes still depends on the data.
    """

    always_draws = True

    def next(self, rng: np.random.Generator) -> Toss:
        """Return the next coin: every batch has one."""
        from reticent._core._fine import fine_rest  # numba loads on first use

        return Toss(1, bool(fine_rest(rng) >= (1.0 - self.p) * DOWN), fine_rest(rng))

    def wants_rounds(self, toss: Toss) -> bool:
        """Say that every batch is read."""
        return True

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision changes."""
        keep = max(self.phi**-2, self._ratio(measure, rows, u, rng) / self.phi)
        return toss.forced or toss.level > keep


@saved("linear walk")
class LinearWalk(Walk):
    """A `Walk` whose rounds are sums of gradients and whose coins are tossed inside one compiled loop."""

    _moves = ("_totals", "_counts", "_level")

    def _schedule(self) -> None:
        super()._schedule()
        toss = self._toss or Toss(0, True, 0.0)
        self._totals = np.zeros((4, self.u.size))
        self._counts = np.array([self.done, self._coin_due, self._keep_from, self.spent])
        self._level = np.array([0.0 if toss.forced else toss.level])

    def _check_coin(self) -> None:
        done, due, begin, spent = self._counts.tolist()
        same = (done, due, spent) == (self.done, self._coin_due, self.spent)
        refuse_unless(same and begin in (NEVER, due - self.batch), "it counts otherwise than its loop")
        refuse_unless(0.0 <= self._level[0] <= 1.0, "its next coin has no chance")
        self._check_past(0)  # the sums are in the loop

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if len(self._totals) == 2:
            self._totals = np.concatenate([self._totals, np.zeros_like(self._totals)])

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are appended."""
        start = 0
        self.u = self.u.copy()  # the present one may have been given away
        while start < len(rows):
            places, points = changes.buffer(self.u.size)
            self.torn = True
            taken, count = self._play(rows.vectors[start:], places, points)
            changes.add_many(places[:count], points[:count])
            start += taken
            self.done, self._coin_due, _, self.spent = (int(count) for count in self._counts)
            self.torn = False

    def _play(self, *block: Any) -> Any:
        from reticent.systems.pcomw._kernels import play_linear  # numba loads on first use

        vectors, places, points = block
        coin, measure = self.coin, self.measure
        assert isinstance(coin, AuxiliaryCoin)
        return play_linear(
            self.rng,
            measure.domain.body,
            measure.beta,
            measure.beta * measure.lam,
            self.batch,
            self.length,
            self.cap,
            (coin.draws, coin.phi, *coin.odds),
            vectors,
            self._totals,
            self._counts,
            self._level,
            self.u,
            places,
            points,
        )


DONE, DUE, SPENT, STAGE = range(4)  # places in the counts of a walk
TAKING, TOSSING, DRAWING = range(3)  # stages: rounds come in, a coin is tossed, a decision is drawn


@saved("row walk")
class RowWalk(Walk):
    """A `Walk` whose rounds are taken in, coins tossed and decisions drawn inside one compiled loop."""

    _moves = ("_counts", "_level", "_others", "_fresh")

    def _first(self) -> Array:
        """Draw as the loop draws at a change: so there is one kernel to compile where a draw by itself makes two."""
        from reticent.gibbs._history import FAR, GIVEN_UP  # numba loads on first use

        assert isinstance(self.coin, AuxiliaryCoin)
        sampler, dim = self.measure.compiled(), self.measure.domain.chart_dim
        self.u = np.zeros(dim)
        self._counts, self._level = np.array([0, NEVER, 0, DRAWING]), np.zeros(1)
        self._others, self._fresh = np.zeros((self.coin.draws, dim)), np.zeros((1, dim))
        room = Changes.buffer(dim)
        while (outcome := self._play(sampler, 1, 0, 0, *room)[2]) == FAR:
            sampler.tend()
        if outcome == GIVEN_UP:
            raise WorkLimitError(self.measure.why_given_up())
        return self.u

    def _schedule(self) -> None:
        super()._schedule()
        assert isinstance(self.coin, AuxiliaryCoin)
        toss = self._toss or Toss(0, True, 0.0)
        self._counts = np.array([self.done, self._coin_due, self.spent, TAKING])
        self._level = np.array([0.0 if toss.forced else toss.level])
        # Kept between calls: a draw that was interrupted goes on.
        self._others, self._fresh = np.zeros((self.coin.draws, self.u.size)), np.zeros((1, self.u.size))

    def _check_coin(self) -> None:
        *counts, stage = self._counts.tolist()
        frozen = self.frozen  # whose loop has stopped counting
        same = counts[1:] == [self._coin_due, self.spent] and (frozen or counts[0] == self.done)
        refuse_unless(same and stage in (TAKING, TOSSING, DRAWING), "it counts otherwise than its loop")
        refuse_unless(0.0 <= self._level[0] <= 1.0, "its next coin has no chance")
        self._check_past(0 if frozen else self.done)

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
        from reticent.gibbs._history import FAR, GIVEN_UP  # numba loads on first use

        sampler = self.measure.compiled()
        columns = sampler.history.columns
        self.u = self.u.copy()  # the present one may have been given away
        stop = len(columns) + len(rows)
        self.torn = True
        sampler.store(rows)
        self.torn = False
        while not self.frozen and (self.done < last or self._counts[STAGE] != TAKING):
            places, points = changes.buffer(self.u.size)
            self.torn = True
            count, found, outcome = self._play(sampler, self.cap, len(columns), stop, places, points)
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

    def _play(self, sampler: Any, cap: int, *block: Any) -> Any:
        from reticent.systems.pcomw._kernels import play_rows

        coin = self.coin
        assert isinstance(coin, AuxiliaryCoin)
        count, stop, places, points = block
        return play_rows(
            self.rng,
            sampler.parts(self.measure.limit),
            self.batch,
            self.length,
            cap,
            (coin.phi, *coin.odds),
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


def new_walk(plan: Plan, loss: Loss, rng: np.random.Generator, on_steep: str, length: int) -> Walk:
    """Start an epoch of so many rounds; the walk is compiled where draws need nothing from Python."""
    measure = Gibbs(
        plan.domain, loss, plan.beta, plan.lam, lipschitz=plan.lipschitz, on_steep=on_steep, distance=plan.distance
    )
    body = plan.domain.body
    if plan.constant_work:
        return Walk(plan, measure, rng, SteadyCoin(plan), length)
    if isinstance(loss, Linear) and (body.ball or body.box):
        return LinearWalk(plan, measure, rng, AuxiliaryCoin(plan), length)
    if measure.compiled() is not None:
        return RowWalk(plan, measure, rng, AuxiliaryCoin(plan), length)
    return Walk(plan, measure, rng, AuxiliaryCoin(plan), length)
