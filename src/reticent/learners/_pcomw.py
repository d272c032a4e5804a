"""P-COMW: Private Continuous Online Multiplicative Weights (Agarwal, Kale, Singh and Thakurta 2024)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from reticent._check import Array
from reticent._random import Seed, generator
from reticent.domains._body import read_only
from reticent.gibbs import Gibbs
from reticent.losses import Loss
from reticent.planning import Plan

from ._coin import NEVER
from ._inbox import Inbox
from ._trace import Trace
from ._walk import COINS, Changes, new_walk


class PCOMW:
    """A learner whose decisions are draws from the Gibbs measure of the past, kept as long as a coin allows.

    At the end of every full batch of `plan.batch` rounds a coin decides whether the decision stays: a forced switch
    with probability `plan.p`, else a rejection coin that makes the kept decision follow the measure as it moves
    (docs/theory.md, P0 to P5). A switch draws afresh. After `plan.budget` switches the decision stays for good
    (`frozen`). With `plan.horizon` None the learner runs epochs of doubling length, each starting from nothing with a
    plan of its own (P8).

    What a private plan protects is the sequence of decisions. Everything else in here is as secret as the data: the
    pickled state, the losses in a trace, and the time that calls take. A pickled learner may be resumed once: two
    copies would go on with the same randomness (docs/pitfalls.md).

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(dim=2), 1000, 1.0, beta=0.5, lam=40.0, p=0.01, phi=1.2)
    >>> learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    >>> for _ in range(500):
    ...     learner.observe([0.6, 0.8])
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (500, 1)))
    >>> learner.rounds, learner.switches < 200, rt.Ball(dim=2).contains(learner.decision)
    (1000, True, True)
    """

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
        self.plan, self.loss = plan, loss
        self._options = coin, on_steep
        self._rng = generator(seed)
        self._switches = 0
        self._rounds = 0  # taken from the caller: those in the inbox included
        self._before = 0  # rounds before the present epoch
        # Only checks rounds; each epoch has a measure of its own.
        self._gate = Gibbs(plan.domain, loss, plan.beta, plan.lam, lipschitz=plan.lipschitz, on_steep=on_steep)
        self._inbox = Inbox(plan.domain, loss, plan.lipschitz)
        self._past: list[Plan] = []  # plans of the epochs that are over
        self._start_epoch(0)
        self._stand()

    @property
    def decision(self) -> Array:
        """The decision in play: a point of the domain (read-only)."""
        return self._x

    @property
    def rounds(self) -> int:
        """The number of rounds observed."""
        return self._rounds

    @property
    def switches(self) -> int:
        """How often the decision has changed, the fresh starts of epochs included."""
        return self._switches

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent, so that the decision stays: for good, or until the next epoch."""
        return self._walk.frozen

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

        level = self.plan.delta if delta is None else delta
        if level is None:
            raise ValueError("delta must be given for a plan that makes no privacy claim, got None")
        rounds, now = self._rounds - self._before, self._now
        if now.horizon is not None and rounds > now.horizon:
            now = replace(now, horizon=rounds)  # a plan without a claim may go on beyond its horizon
        return max([*(_certificate(plan, level) for plan in self._past), spent(now, rounds).epsilon(level)])

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

    def observe(self, *row: Any) -> None:
        """Take one round: a gradient for `Linear`, (features, target) or one object for the others.

        A round that is refused leaves the learner as it was.
        """
        if self._rounds >= self._last or self._walk.torn:
            self._refuse(1)
        if self._inbox.push(row):
            self._rounds += 1
            if self._rounds >= self._wake:
                self._flush()
            return
        # Not plainly good: the full check, before anything changes.
        parts = self._gate.prepare_one(*row)
        self._flush()
        self._take(parts)

    def observe_many(self, *block: Any) -> Trace:
        """Take a block of rounds, with the same result to the last bit as one at a time, and return its trace.

        If any round is refused, none is taken. Arrays may be mapped from disk; the trace refers to them.
        """
        self._flush()
        parts = self._gate.prepare(*block)
        count = sum(len(part) for part in parts)
        first = self._rounds
        if count > self._last - first or self._walk.torn:
            self._refuse(count)
        begin = first, self._walk.u
        try:
            return self._record(block, parts, first, [begin, *self._take(parts)])
        except BaseException as error:
            error.add_note(f"{self._rounds - first} of the {count} rounds of this block had been taken in.")
            raise

    def _record(self, block: tuple[Any, ...], parts: list[Any], first: int, changes: Changes) -> Trace:
        u = np.array([change[1] for change in changes])
        return Trace.record(
            self.plan.domain,
            self.loss,
            lipschitz=self.plan.lipschitz,
            on_steep=self._options[1],
            first=first,
            starts=np.array([change[0] for change in changes]) - first,
            chart_points=u,
            points=self.plan.domain.from_chart(u),
            final=self._x,
            parts=parts,
            data=block,
        )

    def _refuse(self, count: int) -> None:
        if self._walk.torn:
            raise RuntimeError(
                "this learner was interrupted while it took in rounds, and nobody knows how many are in: resume a "
                "saved one, or make a new one"
            )
        horizon = self.plan.horizon
        if horizon is not None and self._last < horizon:
            from reticent.privacy import require

            # The claim of this plan, one written by hand, ends before its horizon: say how.
            require(self.plan, self._rounds, min(count, horizon - self._rounds))
        raise ValueError(
            f"{count} more rounds were given, but this private plan has {self._last - self._rounds} of its "
            f"horizon={self.plan.horizon} left; nothing was recorded. What it certifies ends there: plan a longer "
            "horizon before a run starts, or horizon=None if its length is unknown; a new learner on new data has a "
            "privacy budget of its own"
        )

    def _flush(self) -> None:
        """Take in the rounds of the inbox."""
        self._take(self._inbox.take())

    def _take(self, parts: list[Any]) -> Changes:
        """Take in prepared rounds, epoch by epoch; return the changes of decision, counted from the first round."""
        found: Changes = []
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
        changes: Changes = []
        try:
            self._walk.take(rows, changes)
        finally:
            self._switches += len(changes)
            found += [(self._before + place, u) for place, u in changes]

    def _renew(self, found: Changes) -> None:
        """Start the next epoch if the present one is over."""
        if self._walk.done < self._length:
            return
        past, over = self._before + self._walk.done, self._now
        self._start_epoch(self._epoch + 1, past)
        self._past.append(over)
        self._switches += 1
        found.append((past, self._walk.u))

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
        walk = new_walk(now, self.loss, self._rng, *self._options, length)
        self._now, self._walk, self._epoch, self._length = now, walk, number, length
        self._before, self._last = before, last

    def _stand(self) -> None:
        """Bring what the caller sees up to date with the walk."""
        self._rounds = self._before + self._walk.done
        self._x = read_only(self.plan.domain._from_chart(self._walk.u))
        # Rounds can wait in the inbox until a coin or the end of the epoch is due, or it is full.
        due = min(self._walk.due, self._length)
        self._wake = min(self._before + due, self._rounds + self._inbox.capacity)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with nothing in the inbox; the state is as secret as the data."""
        self._flush()
        return dict(vars(self))


@lru_cache(maxsize=256)
def _certificate(plan: Plan, delta: float) -> float:
    from reticent.privacy import account

    return account(plan).epsilon(delta)
