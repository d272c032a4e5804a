"""Plans of the budgeted follower: a hard cap on changes, and what is certified of a run (docs/theory, R13)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from reticent._core import _names
from reticent._core._check import integer
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_body, check_horizon
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan, WithoutEnd

_LOOKS = 16  # how often a change is thought about between two changes, were they evenly spread
_FEWEST, _QUICK = 4, 4  # at least so often, and fewer than 16 times where blocks would have fewer than four rounds
_FIRST = 64  # rounds of the first stretch of a run without a horizon; each is as long as all before it
_SHARE = 8  # of the changes that are left, one in so many may be made in a stretch


@saved("plan of the budgeted follower")
@dataclass(frozen=True, kw_only=True)
class BudgetedPlan(SystemPlan):
    """Follows a learner in the background with at most `budget` changes, for the best regret on ordinary streams.

    A change is made where the loss that it would have saved exceeds a price, and the price is the lowest at which the
    changes last to the horizon, as followers in the background show that pay other prices. Nothing is certified of
    that (it is a heuristic); what is certified is a guard: once the run has lost more than half of the bound of blocked
    descent against blocked descent itself, with a quarter of the changes, it follows that (docs/theory, R13).

    Without a horizon the rounds from t to 2t may take an eighth of the changes that are left, and there is no guard.

    >>> from reticent.domains import Interval
    >>> plan = plan_budgeted(Interval(0.0, 1.0), 10_000, 1.0, max_switches=100)
    >>> plan.max_switches, plan.batch, round(plan.regret_bound / 10_000, 3)
    (100, 6, 0.148)
    """

    system: ClassVar[str] = _names.BUDGETED
    reference: ClassVar[str] = "our own; the guard: Zinkevich 2003, in blocks as in Merhav et al. 2002"

    horizon: int | None = field(kw_only=False)  # type: ignore[assignment]
    budget: int

    def _check(self) -> None:
        check_body(self.domain)
        self._set(budget=integer("budget", self.budget, least=0))

    def _check_horizon(self) -> int | None:
        return None if self.horizon is None else check_horizon(self.horizon)

    @cached_property
    def batch(self) -> int:
        """How many rounds pass between two looks at whether to change, at most; at first, without a horizon."""
        return self.stretch(0, 0)[1]

    def stretch(self, done: int, used: int) -> tuple[int, int, int]:
        """Return where the stretch after `done` rounds ends, the rounds between two looks, and the changes left in it.

        With a horizon there is one stretch; without one each is as long as everything before it.
        """
        left = self.budget - used
        if self.horizon is not None:
            end = self.horizon
            return end, _block(end, self.budget), left
        end = _FIRST
        while end <= done:
            end *= 2
        some = -(-left // _SHARE)
        return end, _block(end - done, some), some

    @property
    def guarded(self) -> bool:
        """Whether blocked descent stands guard: with a horizon, and changes enough for both."""
        return self.horizon is not None and self.budget >= 4

    @cached_property
    def guard_batch(self) -> int:
        """The length of the guard's blocks: the shortest with at most a quarter of the changes as its own."""
        assert self.horizon is not None
        return self.horizon // (self.budget // 4 + 1) + 1

    @cached_property
    def guard_bound(self) -> float:
        """What the regret of the guard does not exceed (docs/theory, R1)."""
        assert self.horizon is not None
        return self.lipschitz * self.domain.radius * math.sqrt(block_squares(self.horizon, self.guard_batch))

    @property
    def guard_step(self) -> float:
        """The step of the guard."""
        return self.domain.radius**2 / self.guard_bound

    @property
    def regret_bound(self) -> float | None:
        """The bound of docs/theory, R13; without a guard what any decisions satisfy, without a horizon none."""
        if self.horizon is None:
            return None
        if not self.guarded:
            return self.trivial_regret
        return 1.5 * self.guard_bound + self.lipschitz * self.domain.diameter * self.batch

    @property
    def max_switches(self) -> int:
        """The budget, which is never exceeded."""
        return self.budget

    @property
    def expected_switches(self) -> float:
        """The budget, or the rounds where they are fewer."""
        return float(self.budget if self.horizon is None else min(self.budget, self.horizon))

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return "none: any number of rounds" if self.horizon is None else super().horizon_in_words()

    def without_end(self) -> WithoutEnd:
        """Say what holds without a horizon."""
        return WithoutEnd(
            switches=f"never more than {self.budget:,} in all",
            regret="not stated",
            quality="Nothing is certified without a horizon, but that changes are never more than planned.",
        )

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        return f"Never more than {self.budget:,} times, however long the run is."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        return (
            "When to change is decided by a heuristic that is good on ordinary streams; the regret bound is that of "
            "the guard that stands behind it.",
        )


def _block(rounds: int, changes: int) -> int:
    """Return the rounds of a block where so many changes are to last for so many rounds."""
    gap = rounds // max(1, changes)
    return max(1, gap // _LOOKS, min(_QUICK, gap // _FEWEST))


def plan_budgeted(domain: Domain, horizon: int | None, lipschitz: float, max_switches: int) -> BudgetedPlan:
    """Return the budgeted follower: never more than `max_switches` changes, with or without a horizon.

    >>> from reticent.domains import Ball
    >>> plan_budgeted(Ball(3), None, 1.0, max_switches=50).regret_bound is None
    True
    """
    return BudgetedPlan(domain, horizon, lipschitz, budget=integer("max_switches", max_switches, least=0))


def _budgeted(goal: Goal) -> BudgetedPlan:
    if goal.max_switches is None:
        raise NotApplicable("needs a max_switches")
    return plan_budgeted(*goal.size, goal.max_switches)


SYSTEMS = (System(BudgetedPlan.system, _budgeted, lazy=True, ordinary=True),)
