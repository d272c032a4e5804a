"""P-COMW: Private Continuous Online Multiplicative Weights (Agarwal, Kale, Singh and Thakurta 2024)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from reticent._random import Seed
from reticent.losses import Loss
from reticent.planning import Plan

from ._changes import Changes
from ._learner import NEVER, Learner
from ._walk import COINS, new_walk


class PCOMW(Learner):
    """A learner whose decisions are draws from the Gibbs measure of the past, kept as long as a coin allows.

    At the end of every full batch of `plan.batch` rounds a coin decides whether the decision stays: a forced switch
    with probability `plan.p`, else a rejection coin that makes the kept decision follow the measure as it moves
    (docs/theory.md, P0 to P5). A switch draws afresh. After `plan.budget` switches the decision stays for good
    (`frozen`). With `plan.horizon` None the learner runs epochs of doubling length, each starting from nothing with a
    plan of its own (P8).

    What a private plan protects is the sequence of decisions. Everything else in here is as secret as the data: the
    pickled state, the losses in a trace, and the time that calls take. A pickled learner may be resumed once: two
    copies would go on with the same randomness (docs/pitfalls.md).

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(dim=2), 1000, 1.0, beta=0.5, lam=40.0, p=0.01, phi=1.2)
    >>> learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    >>> for _ in range(500):
    ...     learner.observe([0.6, 0.8])
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (500, 1)))
    >>> learner.rounds, learner.switches < 200, rt.Ball(dim=2).contains(learner.decision)
    (1000, True, True)
    """

    _or_else = ", or horizon=None if its length is unknown"

    def __init__(
        self, plan: Plan, loss: Loss, seed: Seed = None, *, coin: str = "auxiliary", on_steep: str = "raise"
    ) -> None:
        """Draw the first decision.

        `seed` None is a cryptographic generator, as privacy needs; a number is for tests and experiments. Rounds
        steeper than `plan.lipschitz` are refused, or scaled down to it with `on_steep="clip"`. `coin="ratio"` is the
        coin as the paper writes it, by quadrature in one and two dimensions: slow, and only there to test against.
        """
        if not isinstance(plan, Plan):
            raise ValueError(f"plan must be a Plan, from rt.Plan(...) or one of the planners, got {plan!r}")
        if coin not in COINS:
            raise ValueError(f"coin must be one of {', '.join(COINS)}, got {coin!r}")
        if coin == "ratio" and plan.private:
            raise ValueError('coin must be "auxiliary" for a private plan, got "ratio", which is not certified')
        self._coin = coin
        self._before = 0  # rounds before the present epoch
        self._past: list[Plan] = []  # plans of the epochs that are over
        super().__init__(plan, loss, seed, on_steep=on_steep)

    def _begin(self) -> None:
        self._start_epoch(0)

    @property
    def switches(self) -> int:
        """How often the decision has changed, the fresh starts of epochs included."""
        return self._switches

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent, so that the decision stays: for good, or until the next epoch."""
        return bool(self._walk.frozen)

    @property
    def budget_left(self) -> int | None:
        """How many switches the budget still allows (in this epoch); None without a budget."""
        return None if self._now.budget is None else self._now.budget - self._walk.spent

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It counts what could have happened by now, not what did, and never exceeds the certificate. It holds at a time
        that is fixed in advance; whoever stops at a time that depends on the decisions has the certificate of the whole
        plan (docs/theory.md, Q7). A changed round lies in one epoch, so epochs do not add up.
        """
        from reticent.privacy import spent

        level = self._level(delta)
        rounds, now = self._rounds - self._before, self._now
        if now.horizon is not None and rounds > now.horizon:
            now = replace(now, horizon=rounds)  # a plan without a claim may go on beyond its horizon
        now_spent: float = spent(now, rounds).epsilon(level)
        return max([*(_certificate(plan, level) for plan in self._past), now_spent])

    @property
    def epoch(self) -> int:
        """Which epoch is running: always 0 for a plan with a horizon."""
        return self._epoch

    def __repr__(self) -> str:
        """Say where the learner stands."""
        budget = "no budget"
        if self._now.budget is not None:
            budget = f"{self.budget_left} of {self._now.budget} switches left"
        frozen = ", frozen: the decision stays" if self.frozen else ""
        epoch = f", epoch {self._epoch}" if self.plan.horizon is None else f" of {self.plan.horizon}"
        return f"<PCOMW {self.loss!r}: {self._rounds} rounds{epoch}, {self._switches} switches, {budget}{frozen}>"

    def _refuse(self, count: int) -> None:
        horizon = self.plan.horizon
        if not self._torn() and horizon is not None and self._last < horizon:
            from reticent.privacy import require

            # The claim of this plan, one written by hand, ends before its horizon: say how.
            require(self.plan, self._rounds, min(count, horizon - self._rounds))
        super()._refuse(count)

    def _take(self, parts: list[Any]) -> Changes:
        """Take in prepared rounds, epoch by epoch; return the changes of decision, counted from the first round."""
        found = Changes()
        try:
            for rows in parts:
                start = 0
                while start < len(rows):
                    self._renew(found)  # only where a draw failed the last time
                    stop = min(len(rows), start + self._length - self._walk.done)
                    self._walk_on(rows[start:stop], found)
                    start = stop
                    self._renew(found)
        finally:
            self._stand()
        return found

    def _walk_on(self, rows: Any, found: Changes) -> None:
        """Take in rounds up to the end of the epoch at most."""
        changes = Changes()
        try:
            self._walk.take(rows, changes)
        finally:
            self._switches += len(changes)
            found.join(changes, self._before)

    def _renew(self, found: Changes) -> None:
        """Start the next epoch if the present one is over."""
        if self._walk.done < self._length:
            return
        past, over = self._before + self._walk.done, self._now
        self._start_epoch(self._epoch + 1, past)
        self._past.append(over)
        self._switches += 1
        found.add(past, self._walk.u.copy())

    def _start_epoch(self, number: int, before: int = 0) -> None:
        """Start from nothing with the plan of this epoch (docs/theory.md, P8)."""
        from reticent.privacy import require, rounds_within

        now, length, last = self.plan, NEVER, NEVER
        if now.horizon is None:
            now = now.epoch(number)
            length = now.horizon or NEVER
            if now.private:
                require(now, 0, length)  # what is claimed must hold for the whole epoch
        elif now.private:
            # The horizon, unless the plan claims less than it spends. Plans without a claim go on beyond theirs.
            last = rounds_within(now)
        walk = new_walk(now, self.loss, self._rng, self._coin, self._on_steep, length)
        self._now, self._walk, self._epoch, self._length = now, walk, number, length
        self._before, self._last = before, last

    def _done(self) -> int:
        return self._before + int(self._walk.done)

    def _due(self) -> int:
        return self._before + min(int(self._walk.due), self._length)


@lru_cache(maxsize=256)
def _certificate(plan: Plan, delta: float) -> float:
    from reticent.privacy import account

    return account(plan).epsilon(delta)
