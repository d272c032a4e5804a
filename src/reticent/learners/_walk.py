"""Decisions drawn from the measure of the past and kept by coins: one epoch of P-COMW, or of another system."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._check import Array
from reticent.gibbs import Gibbs
from reticent.losses import Linear, Loss
from reticent.planning import Plan
from reticent.planning._coin_plan import CoinPlan

from ._changes import Changes
from ._coin import AuxiliaryCoin, KeepingCoin, SteadyCoin, Toss
from ._learner import NEVER
from ._ratio import RatioCoin

COINS = ("auxiliary", "ratio")
Tossed = KeepingCoin | RatioCoin


class Walk:
    """The decisions of one epoch, in the chart of the domain; rounds are counted from its beginning.

    Randomness is used when a coin is looked at and then for finding the next one, never in between: so the decisions do
    not depend on how the rounds are cut into blocks. The epoch ends after `length` rounds, with no coin.
    """

    def __init__(
        self, plan: Plan | CoinPlan, measure: Gibbs, rng: np.random.Generator, coin: Tossed, length: int = NEVER
    ) -> None:
        self.rng, self.measure = rng, measure
        self.batch, self.length = plan.batch, length
        self.cap = NEVER if plan.budget is None else plan.budget
        self.coin = coin
        self.done = 0  # rounds taken in
        self.spent = 0  # switches
        self.torn = False  # whether an interrupt has left rounds half taken in, or a coin half tossed
        self._coin_due = NEVER  # when the next coin has to be looked at
        self._toss: Toss | None = None  # that coin
        self._keep_from = NEVER  # the first round that it reads
        self._kept: list[Any] = []  # the rounds that it reads, as far as they have come
        self._verdict: bool | None = None  # what it said, until the draw that follows has succeeded
        self.u: Array = measure.draw_in_chart(rng)[0]
        self._schedule()

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.cap

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the walk has to act next."""
        return self._coin_due

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are appended.

        If a draw fails, the rounds up to its coin have been taken in, and the next call goes on with that coin.
        """
        before, old = self._kept, len(self._kept)
        try:
            self._settle(changes)
            start = 0
            while start < len(rows):
                stop = min(len(rows), start + self.due - self.done)
                self._absorb(rows[start:stop])
                start = stop
                self._settle(changes)
        finally:
            # Rounds kept for a later coin may be views of the caller's memory; those of earlier calls are copies.
            if self._kept is not before:
                old = 0
            self._kept[old:] = [part.copy() for part in self._kept[old:]]

    def _schedule(self) -> None:
        """Find the next coin that has to be looked at."""
        self._kept, self._verdict = [], None
        self._toss = None if self.frozen else self.coin.next(self.rng)
        self._coin_due = self._keep_from = NEVER
        if self._toss is not None:
            due = (self.done // self.batch + self._toss.after) * self.batch
            if due >= self.length:
                return  # the next epoch draws its first decision in any case
            self._coin_due = due
            if self.coin.wants_rounds(self._toss):
                self._keep_from = due - self.batch

    def _absorb(self, rows: Any) -> None:
        """Take in rounds up to the next coin at most."""
        self.torn = True
        if not self.frozen:
            self.measure.add(rows)
        if self.done + len(rows) > self._keep_from:
            self._kept.append(rows[max(0, self._keep_from - self.done) :])
        self.done += len(rows)
        self.torn = False

    def _settle(self, changes: Changes) -> None:
        """Toss the coin if it is due."""
        if self.done != self._coin_due or self._toss is None:
            return
        if self._verdict is None:
            batch = type(self._kept[0]).join(self._kept) if len(self._kept) > 1 else next(iter(self._kept), None)
            self._verdict = self.coin.switches(self._toss, self.measure, batch, self.u, self.rng)
        # Afresh: the auxiliary draws of a coin must never become decisions (docs/theory.md, P2).
        fresh = self.measure.draw_in_chart(self.rng)[0] if self._verdict or self.coin.always_draws else self.u
        self.torn = True  # until the next coin is known: this one must be neither tossed nor drawn for again
        if self._verdict:
            self.u = fresh
            self.spent += 1
            changes.add(self.done, self.u)
            if self.frozen:
                self.measure = self.measure.emptied()  # nothing will ever be drawn from it again
        self._schedule()
        self.torn = False


def new_walk(plan: Plan, loss: Loss, rng: np.random.Generator, coin: str, on_steep: str, length: int) -> Walk:
    """Start an epoch of so many rounds; the walk is compiled where draws need nothing from Python."""
    measure = Gibbs(
        plan.domain, loss, plan.beta, plan.lam, lipschitz=plan.lipschitz, on_steep=on_steep, distance=plan.distance
    )
    body = plan.domain.body
    if coin == "ratio":
        return Walk(plan, measure, rng, RatioCoin(plan), length)
    if plan.constant_work:
        return Walk(plan, measure, rng, SteadyCoin(plan), length)
    if isinstance(loss, Linear) and (body.ball or body.box):
        from ._linear_walk import LinearWalk  # compiled: loads numba

        return LinearWalk(plan, measure, rng, AuxiliaryCoin(plan), length)
    if measure.compiled() is not None:
        from ._row_walk import RowWalk

        return RowWalk(plan, measure, rng, AuxiliaryCoin(plan), length)
    return Walk(plan, measure, rng, AuxiliaryCoin(plan), length)
