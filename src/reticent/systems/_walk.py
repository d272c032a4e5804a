"""Decisions drawn from the measure of the past and kept by coins: one epoch of P-COMW, or of another system.

The law by which coins are passed over until one has to be looked at (docs/theory, P5) stands once, compiled, in
`reticent.systems._kernels`; what it needs to know of coins is in `odds_of`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.gibbs import Gibbs
from reticent.saving import check_rows, refuse_unless
from reticent.systems._decider import NEVER, Changes


class Odds(NamedTuple):
    """What is known of a coin before it is tossed: it keeps with a chance of at least exp(-floor) unless forced."""

    rate: float
    """Minus the logarithm of the chance that a coin need not be looked at."""
    free: float
    """The chance that a coin which has to be looked at is not forced to switch."""
    floor: float
    """Minus the logarithm of the least chance to keep of a coin that is not forced."""


# What is computed of chances is rounded so that switches are forced no more rarely than planned (docs/theory, Q11).
DOWN = 1.0 - 2.0**-51


def odds_of(p: float, floor: float) -> Odds:
    """Return the odds of coins that are forced with chance `p` and else keep with a chance of at least exp(-floor).

    >>> odds_of(0.0, 0.0).rate, odds_of(1.0, 2.0)
    (0.0, Odds(rate=inf, free=0.0, floor=2.0))
    """
    if p == 1.0:
        return Odds(math.inf, 0.0, floor)
    rate = (floor - math.log1p(-p)) / DOWN
    return Odds(rate, (1.0 - p) * math.expm1(-floor) / math.expm1(-rate) * DOWN if rate > 0.0 else 0.0, floor)


@saved("toss")
class Toss(NamedTuple):
    """The next coin that has to be looked at: after how many batches, and what is known of it beforehand."""

    after: int
    forced: bool
    level: float
    """Keep the decision if the coin's probability of keeping is at least this; unused where forced."""


class KeepingCoin(ABC):
    """A coin that keeps the decision with a chance of at least exp(-floor) unless its switch is forced, with chance p.

    The uniform U of a coin is drawn before anything else: with U <= exp(-floor) the coin keeps, whatever else it would
    say. So the coins that need a look come at geometric distances, and the batches between cost nothing
    (docs/theory, P5).
    """

    always_draws = False

    def __init__(self, p: float, floor: float) -> None:
        self.p, self.odds = p, tuple(odds_of(p, floor))

    def _catch_up(self, found: KeepingCoin) -> None:
        """Let a coin from a file of an older version, which had them in another form, have the odds of its plan."""
        if "look" in vars(found):
            for name in ("look", "forced", "open"):
                vars(found).pop(name, None)
            found.odds = self.odds

    @abstractmethod
    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep the chart point `u` if the switch is not forced.

        `measure` is the next one, `rows` the batch.
        """

    def next(self, rng: np.random.Generator) -> Toss | None:
        """Return the next coin to look at; None if none ever needs it."""
        from reticent.systems._kernels import next_toss  # numba loads on first use

        if self.odds[0] == 0.0:
            return None
        after, level = next_toss(rng, self.odds)
        return Toss(int(after), level == 0.0, level)

    def wants_rounds(self, toss: Toss) -> bool:
        """Say whether `switches` will read the rounds of its batch."""
        return not toss.forced

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision at chart point `u` changes; `measure` is the next one, `rows` the batch."""
        return toss.forced or toss.level > self.keeps(measure, rows, u, rng)


# Decisions drawn from the measure of the past and kept by coins: one epoch of P-COMW, or of another system.
class Batches(Protocol):
    """What a walk needs to know of a plan: the rounds per coin, and the switches that it may make."""

    @property
    def batch(self) -> int:
        """The rounds per coin."""

    @property
    def budget(self) -> int | None:
        """The cap on switches; None without one."""


@saved("walk")
class Walk:
    """The decisions of one epoch, in the chart of the domain; rounds are counted from its beginning.

    Randomness is used when a coin is looked at and then for finding the next one, never in between: so the decisions do
    not depend on how the rounds are cut into blocks. The epoch ends after `length` rounds, with no coin.
    """

    _moves: ClassVar[tuple[str, ...]] = (
        "measure",
        "done",
        "spent",
        "torn",
        "_coin_due",
        "_toss",
        "_keep_from",
        "_kept",
        "_verdict",
        "u",
    )

    _may_lack: ClassVar[tuple[str, ...]] = ("_toss", "_verdict")

    def __init__(
        self, plan: Batches, measure: Gibbs, rng: np.random.Generator, coin: KeepingCoin, length: int = NEVER
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
        self.u: Array = self._first()
        self._schedule()

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.cap

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the walk has to act next."""
        return self._coin_due

    def _check_moved(self) -> None:
        due, spent = self._coin_due, self.spent
        refuse_unless(0 <= spent <= min(self.cap, self.done), f"it has made {spent} switches in {self.done} rounds")
        on = self.done <= due < self.length and due % self.batch == 0 and due > 0
        refuse_unless(due == NEVER or on, f"its next coin is due at round {due}, of {self.done}")
        self._check_coin()

    def _check_coin(self) -> None:
        """Refuse a coin, or rounds kept for it, from a file, that do not fit where the walk stands."""
        toss, due, begin = self._toss, self._coin_due, self._keep_from
        if toss is not None:
            kinds = type(toss) is Toss and [type(part) for part in toss] == [int, bool, float]
            refuse_unless(kinds and toss.after >= 1 and 0.0 <= toss.level <= 1.0, "its next coin is none")
        refuse_unless(self._verdict is None or type(self._verdict) is bool, "its next coin says neither yes nor no")
        refuse_unless((toss is None) <= (due == NEVER), f"no coin is there for round {due}")
        reads = toss is not None and due != NEVER and self.coin.wants_rounds(toss)
        refuse_unless(begin == (due - self.batch if reads else NEVER), f"its next coin would read from round {begin}")
        held, wanted = sum(check_rows(rows, self.measure.domain) for rows in self._kept), max(0, self.done - begin)
        refuse_unless(held == wanted, f"it has kept {held} rounds for its next coin, not {wanted}")
        self._check_past(0 if self.frozen else self.done)

    def _check_past(self, rounds: int) -> None:
        found = self.measure.rounds
        refuse_unless(found == rounds, f"its measure has seen {found} rounds, where it should be {rounds}")

    def _first(self) -> Array:
        """Draw the decision to start with."""
        return self.measure.draw_in_chart(self.rng)[0]

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
        # Afresh: the auxiliary draws of a coin must never become decisions (docs/theory, P2).
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
