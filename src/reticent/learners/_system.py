"""The learners of prior systems: the common face over a plan of their own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from reticent._random import Seed
from reticent.losses import Loss
from reticent.planning._system import SystemPlan

from ._learner import Learner


class SystemLearner(Learner):
    """A learner that follows a `SystemPlan`; each system says which kind, and how it walks.

    A private plan is honoured up to its horizon, and rounds beyond it are refused; other plans go on, without a
    certificate.
    """

    plan_type: ClassVar[type[SystemPlan]]

    def __init__(self, plan: SystemPlan, loss: Loss, seed: Seed = None, *, on_steep: str = "raise") -> None:
        """Put the first decision in play; see `Learner`."""
        if not isinstance(plan, self.plan_type):
            raise ValueError(
                f"plan must be a {self.plan_type.__name__} for {type(self).__name__}, got {type(plan).__name__}; "
                "rt.make(plan, loss) finds the learner of any plan"
            )
        plan.check_loss(loss)
        super().__init__(plan, loss, seed, on_steep=on_steep)

    def _begin(self) -> None:
        if self.plan.private:
            self._last = self.plan.horizon
        self._walk = self._new_walk()

    @abstractmethod
    def _new_walk(self) -> Any:
        """Return the walk, a `Decider`, at its first decision."""

    @property
    def frozen(self) -> bool:
        """Whether the budget of switches is spent, so that the decision stays for good."""
        return bool(getattr(self._walk, "frozen", False))

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It holds at a time that is fixed in advance (docs/theory.md, Q7).
        """
        level = self._level(delta)
        if self._rounds > self.plan.horizon:
            raise ValueError(
                f"a plan has an account up to its horizon of {self.plan.horizon}, got {self._rounds} rounds: this one "
                "claims no privacy, so it was not stopped there; plan a longer horizon to know what a run costs"
            )
        return float(self.plan.account(self._rounds).epsilon(level))

    def __repr__(self) -> str:
        """Say where the learner stands."""
        name, frozen = type(self).__name__, ", frozen: the decision stays" if self.frozen else ""
        at = f"{self._rounds} rounds of {self.plan.horizon}, {self._switches} switches"
        return f"<{name} {self.loss!r}: {at}{frozen}>"
