"""From a plan to its learner."""

from __future__ import annotations

from typing import Any

from reticent._random import Seed
from reticent.losses import Loss
from reticent.planning import Plan, SystemPlan

from ._learner import Learner
from ._pcomw import PCOMW
from ._system import SystemLearner


def make(plan: Plan | SystemPlan, loss: Loss, seed: Seed = None, **options: Any) -> Learner:
    """Return the learner that a plan is for, at its first decision.

    `seed` and `options` (`on_steep`, say) are those of the learner.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Ball(2), 100, 1.0)
    >>> make(plan, rt.Linear())
    <OnlineGradientDescent Linear(): 0 rounds of 100, 0 switches>
    """
    if isinstance(plan, Plan):
        return PCOMW(plan, loss, seed, **options)
    for kind in _kinds(SystemLearner):  # type: ignore[type-abstract]
        if getattr(kind, "plan_type", None) is type(plan):
            return kind(plan, loss, seed, **options)
    raise ValueError(f"plan must be a plan of one of the systems (rt.compare_plans lists them), got {plan!r}")


def _kinds(base: type[SystemLearner]) -> list[type[SystemLearner]]:
    """Return all learners of prior systems; every one is imported with this package."""
    found = []
    for kind in base.__subclasses__():
        found += [kind, *_kinds(kind)]
    return found
