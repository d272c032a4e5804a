"""P-COMW: Private Continuous Online Multiplicative Weights (Agarwal, Kale, Singh and Thakurta 2024)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from reticent._core._random import Seed
from reticent._core._tags import saved
from reticent.losses import Loss
from reticent.privacy import account, require, rounds_within, spent
from reticent.systems._decider import NEVER
from reticent.systems._epochs import Epochs
from reticent.systems._learner import Learner
from reticent.systems._walk import Walk
from reticent.systems.pcomw._plan import Plan
from reticent.systems.pcomw._walk import new_walk


@saved("P-COMW")
class PCOMW(Learner):
    """A learner whose decisions are draws from the Gibbs measure of the past, kept as long as a coin allows.

    At the end of every full batch of `plan.batch` rounds a coin decides whether the decision stays: a forced switch
    with probability `plan.p`, else a rejection coin that makes the kept decision follow the measure as it moves
    (docs/theory, P0 to P5). A switch draws afresh. After `plan.budget` switches the decision stays for good
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

    plan_type = Plan
    _or_else = ", or horizon=None if its length is unknown"

    def __init__(self, plan: Plan, loss: Loss, seed: Seed = None, *, on_steep: str = "raise") -> None:
        """Draw the first decision.

        `seed` None is a cryptographic generator, as privacy needs; a number is for tests and experiments. Rounds
        steeper than `plan.lipschitz` are refused, or scaled down to it with `on_steep="clip"`.
        """
        if not isinstance(plan, Plan):
            raise ValueError(f"plan must be a Plan, from rt.Plan(...) or one of the planners, got {plan!r}")
        super().__init__(plan, loss, seed, on_steep=on_steep)

    def _promised(self) -> int:
        # The horizon, unless the plan claims less than it spends. Plans without a claim go on beyond theirs.
        return rounds_within(self.plan) if self.plan.private and self.plan.horizon is not None else NEVER

    def _new_walk(self) -> Walk | PlannedEpochs:
        if self.plan.horizon is None:
            return PlannedEpochs(self.plan, self.loss, self._rng, self._on_steep)
        return new_walk(self.plan, self.loss, self._rng, self._on_steep, NEVER)

    @property
    def _now(self) -> Plan:
        """The plan of the present epoch."""
        return self._walk.plan if isinstance(self._walk, PlannedEpochs) else self.plan

    @property
    def epoch(self) -> int:
        """Which epoch is running: always 0 for a plan with a horizon."""
        return self._walk.number if isinstance(self._walk, PlannedEpochs) else 0

    @property
    def budget_left(self) -> int | None:
        """How many switches the budget still allows (in this epoch); None without a budget."""
        walk: Any = self._walk.walk if isinstance(self._walk, PlannedEpochs) else self._walk
        return None if self._now.budget is None else self._now.budget - walk.spent

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It counts what could have happened by now, not what did, and never exceeds the certificate. It holds at a time
        that is fixed in advance; whoever stops at a time that depends on the decisions has the certificate of the whole
        plan (docs/theory, Q7). A changed round lies in one epoch, so epochs do not add up.
        """
        level, rounds = self._level(delta), self._rounds
        *past, now = self._plans()
        if isinstance(self._walk, PlannedEpochs):
            rounds -= self._walk.before
        if now.horizon is not None and rounds > now.horizon:
            now = replace(now, horizon=rounds)  # a plan without a claim may go on beyond its horizon
        now_spent: float = spent(now, rounds).epsilon(level)
        return max([*(_certificate(plan, level) for plan in past), now_spent])

    def __repr__(self) -> str:
        """Say where the learner stands."""
        budget = "no budget"
        if self._now.budget is not None:
            budget = f"{self.budget_left} of {self._now.budget} switches left"
        frozen = ", frozen: the decision stays" if self.frozen else ""
        epoch = f", epoch {self.epoch}" if self.plan.horizon is None else f" of {self.plan.horizon}"
        return f"<PCOMW {self.loss!r}: {self._rounds} rounds{epoch}, {self._switches} switches, {budget}{frozen}>"

    def _refuse(self, count: int) -> None:
        horizon = self.plan.horizon
        if not self._torn() and horizon is not None and self._last < horizon:
            # The claim of this plan, one written by hand, ends before its horizon: say how.
            require(self.plan, self._rounds, min(count, horizon - self._rounds))
        super()._refuse(count)

    def _plans(self) -> list[Plan]:
        """Return the plans of all epochs so far, the present one last."""
        return [*(self._walk.past if isinstance(self._walk, PlannedEpochs) else []), self._now]

    def _check_plans(self) -> None:
        super()._check_plans()
        if isinstance(self._walk, PlannedEpochs):
            self._walk.check_counts()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; in those of version 1 the learner itself kept count of its epochs."""
        if "_coin" in state:
            state = _of_version_1(state)
        super().__setstate__(state)


@saved("epochs of P-COMW")
class PlannedEpochs(Epochs):
    """Epochs of doubling length, each with the plan that `plan.epoch(k)` says (docs/theory, P8)."""

    plan: Plan
    past: list[Plan]  # type: ignore[assignment]  # plans of this kind only

    def __init__(self, whole: Plan, loss: Loss, rng: np.random.Generator, on_steep: str) -> None:
        self.whole, self.loss, self.rng, self.on_steep = whole, loss, rng, on_steep
        super().__init__()

    def _epoch(self, number: int) -> tuple[Plan, int, Walk]:
        plan = self.whole.epoch(number)
        length = plan.horizon or NEVER
        if plan.private:
            require(plan, 0, length)  # what is claimed must hold for the whole epoch
        return plan, length, new_walk(plan, self.loss, self.rng, self.on_steep, length)

    def check_counts(self) -> None:
        """Refuse epochs, from a file, whose counts do not fit their plans."""
        over = sum(plan.horizon or 0 for plan in self.past)
        if (self.number, self.before, self.length) != (len(self.past), over, self.plan.horizon):
            raise ValueError(
                f"it stands in epoch {self.number}, after {self.before} rounds, which its plans are not for"
            )

    def _catch_up(self, found: PlannedEpochs) -> None:
        """Stand in the epoch of a loaded walk, with its plan: how epochs are planned may differ between versions."""
        for plan in (*found.past, found.plan):
            for name in ("domain", "lipschitz", "epsilon", "delta", "neighbors", "distance"):
                if getattr(plan, name) != getattr(self.whole, name):
                    raise ValueError(f"the {name} of one of its epochs is not that of its plan")
        self.plan, self.length = found.plan, found.length
        self.walk = new_walk(self.plan, self.loss, self.rng, self.on_steep, self.length)


def _of_version_1(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a learner of version 1 as one of today."""
    if state["_coin"] != "auxiliary":
        raise ValueError(f"it tosses coins of a kind {state['_coin']!r}, which was for tests only")
    own = {name: state[name] for name in PCOMW._parts}
    if state["plan"].horizon is None:
        epochs = object.__new__(PlannedEpochs)
        epochs.whole, epochs.loss, epochs.rng = state["plan"], state["loss"], state["_rng"]
        epochs.on_steep = state["_on_steep"]
        epochs.number, epochs.before, epochs.past = state["_epoch"], state["_before"], state["_past"]
        epochs.plan, epochs.length, epochs.walk = state["_now"], state["_length"], state["_walk"]
        epochs._renewing = False
        own["_walk"] = epochs
    return own


@lru_cache(maxsize=256)
def _certificate(plan: Plan, delta: float) -> float:
    found: float = account(plan).epsilon(delta)
    return found
