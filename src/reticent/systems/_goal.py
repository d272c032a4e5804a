"""A goal to meet, and the systems that may meet it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reticent.domains import Domain
from reticent.losses import Linear, Loss
from reticent.systems._cost import MOST_OPERATIONS
from reticent.systems._plan import BasePlan


class NotApplicable(ValueError):
    """A system cannot meet a goal; the message says why, in a few words."""


@dataclass(frozen=True)
class Goal:
    """What is asked of a plan: rounds of one loss over a domain, and what may be revealed and changed.

    `smoothness` bounds the second derivatives of every round's loss (where the kind of loss and `lipschitz` tell a
    lower bound, systems take that, and their learners refuse rows that bend more), and `exp_concavity` is the largest
    alpha for which exp(-alpha loss) is concave, where the caller knows them; `strong_convexity` is what every round's
    loss has at least. `max_operations` is what `best` may cost to run (None: anything).
    """

    domain: Domain
    horizon: int
    lipschitz: float
    loss: Loss
    epsilon: float | None = None
    delta: float | None = None
    max_switches: int | None = None
    neighbors: str = "replace"
    adversary: str = "adaptive"
    smoothness: float | None = None
    exp_concavity: float | None = None
    strong_convexity: float | None = None
    max_operations: float | None = MOST_OPERATIONS

    @property
    def size(self) -> tuple[Domain, int, float]:
        """What every planner takes first: domain, horizon and Lipschitz constant."""
        return self.domain, self.horizon, self.lipschitz

    @property
    def target(self) -> tuple[Domain, int, float, float, float]:
        """What every private planner takes first: that, epsilon and delta."""
        assert self.epsilon is not None
        assert self.delta is not None
        return *self.size, self.epsilon, self.delta

    def need_a_switch(self) -> None:
        """Refuse a goal that allows no switch at all, which no bound in expectation meets."""
        if self.max_switches == 0:
            raise NotApplicable("needs one switch at least")


@dataclass(frozen=True)
class System:
    """A system among those to choose from: `answer` returns its best plan for a goal, or raises `NotApplicable`.

    `private` systems can meet an epsilon, `lazy` ones a `max_switches` (in expectation at least); `ordinary` ones are
    made for data as they usually are, not for the worst; `propose` is the planner behind it, for goals that fit.
    """

    name: str
    propose: Callable[[Goal], BasePlan]
    private: bool = False
    lazy: bool = False
    experts: bool = False
    ordinary: bool = False

    def answer(self, goal: Goal) -> BasePlan:
        """Return the system's plan, or raise `NotApplicable` with the reason in a few words."""
        reason = self._mismatch(goal)
        if reason:
            raise NotApplicable(reason)
        try:
            plan = self.propose(goal)
            plan.check_loss(goal.loss)
        except ValueError as why:  # a planner that refuses says why
            raise NotApplicable(str(why)) from None
        return plan

    def _mismatch(self, goal: Goal) -> str:
        """Return why this kind of system cannot meet the goal; empty if it may."""
        if goal.domain.finite != self.experts:
            return "is for experts, a finite set" if self.experts else "needs a convex body, not a finite set"
        if self.experts and not isinstance(goal.loss, Linear):
            return "takes linear losses only"
        if goal.epsilon is not None and not self.private:
            return "is not private"
        if goal.epsilon is None and self.private:
            return "adds noise for privacy, which is not asked for"
        if goal.max_switches is not None and not self.lazy:
            return "may change its decision every round"
        return ""
