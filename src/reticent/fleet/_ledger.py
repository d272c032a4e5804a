"""What a fleet costs one person: the learners of as many keys as the person may appear under, composed."""

from __future__ import annotations

from typing import Any

from reticent.privacy._pure import PureAccount


class FleetPlan:
    """The plan of one key, as often as one person may have rows under different keys; for the ledger.

    Learners of different keys have noise of their own. A row stands under one key, and the others do not see it: where
    one row is changed, and keys stay, a fleet costs what one learner does. A person with a row under each of k keys is
    in k runs, which compose: sqrt(k) mu for Gaussian noise, k epsilon for pure privacy.

    >>> import reticent as rt
    >>> plan = rt.PrivateMean(0.0, 1.0, epsilon=0.5).plan
    >>> FleetPlan(plan, 3).account().pure, FleetPlan(plan, 3).system
    (1.5, 'mean, a fleet with one person under up to 3 keys')
    """

    def __init__(self, plan: Any, keys: int) -> None:
        """Take the plan of one key, and under how many one person may appear."""
        self._plan, self._keys = plan, keys
        self.neighbors, self.epsilon, self.delta = plan.neighbors, plan.epsilon, plan.delta
        name = getattr(plan, "system", None) or getattr(plan, "what", type(plan).__name__)
        self.system = f"{name}, a fleet" + (f" with one person under up to {keys} keys" if keys > 1 else "")

    def account(self, rounds: int | None = None, method: str = "pld") -> Any:
        """Return a pure account where that of a key is one; others are composed as events."""
        of_one = self._plan.account()
        if isinstance(of_one, PureAccount):
            return PureAccount.of(None, self.neighbors, self._keys * of_one.pure)
        return of_one

    def dp_event(self) -> Any:
        """Return the event of all runs that one person may be in."""
        from dp_accounting import SelfComposedDpEvent

        event = self._plan.dp_event()
        return event if self._keys == 1 else SelfComposedDpEvent(event, self._keys)
