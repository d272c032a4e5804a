"""The filter: it refuses rounds before they are taken if what they could reveal breaks a goal (docs/theory.md, Q7)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from reticent._check import integer
from reticent.privacy._account import spent
from reticent.privacy._solve import check_delta, check_epsilon

if TYPE_CHECKING:
    from reticent.planning import Plan

# Certificates are computed to ten digits: a plan that spends its goal exactly must not be refused for the eleventh.
_ROUNDING = 1e-9


def allowed(
    plan: Plan, rounds: int, more: int = 1, *, epsilon: float | None = None, delta: float | None = None
) -> bool:
    """Say whether `more` rounds after `rounds` keep a run within (epsilon, delta), those of the plan unless given."""
    if plan.horizon is not None and rounds + more > plan.horizon:
        return False
    return _beyond(plan, rounds, more, epsilon, delta) is None


def require(
    plan: Plan, rounds: int, more: int = 1, *, epsilon: float | None = None, delta: float | None = None
) -> None:
    """Refuse `more` rounds after `rounds` if they could break (epsilon, delta), those of the plan unless given.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    >>> require(plan, 0, 10, epsilon=1.0, delta=1e-6)
    >>> require(plan, 10, 990, epsilon=1.0, delta=1e-6)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: 990 more rounds were requested, which could take epsilon from ... (spent in 10 rounds) to ...
    """
    found = _beyond(plan, rounds, more, epsilon, delta)
    if found is None:
        return
    before, after, goal, level = found
    raise ValueError(
        f"{more} more rounds were requested, which could take epsilon from {before:.4g} (spent in {rounds} rounds) to "
        f"{after:.4g}, more than the {goal:.4g} that is allowed at delta = {level:g}; nothing was drawn. Ask for fewer "
        "rounds, plan a lower budget or a longer horizon, or raise epsilon"
    )


@lru_cache(maxsize=64)
def rounds_within(plan: Plan) -> int:
    """Return how many rounds of a private plan stay within the epsilon and delta that it claims, by the accountant.

    That is the horizon of every plan that a planner has made; one written by hand may claim too little.

    >>> import reticent as rt
    >>> modest = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, epsilon=0.5, delta=1e-6)
    >>> 0 < rounds_within(modest) < 1000
    True
    """
    assert plan.horizon is not None
    if allowed(plan, 0, plan.horizon):
        return plan.horizon
    # What is spent grows with the coins: the last number of them that fits, and all rounds before the next one.
    low, high = 0, plan.coins
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(plan, 0, middle * plan.batch) else (low, middle)
    return min(plan.horizon, (low + 1) * plan.batch - 1)


def _beyond(
    plan: Plan, rounds: int, more: int, epsilon: float | None, delta: float | None
) -> tuple[float, float, float, float] | None:
    goal, level = plan.epsilon if epsilon is None else epsilon, plan.delta if delta is None else delta
    if goal is None or level is None:
        raise ValueError(
            f"epsilon and delta must be given for a plan that makes no privacy claim, got epsilon={epsilon!r} and "
            f"delta={delta!r}"
        )
    goal, level = check_epsilon(goal), check_delta(level)
    total = integer("rounds", rounds, least=0) + integer("more", more, least=0)
    after = spent(plan, total).epsilon(level)
    return None if after <= goal * (1 + _ROUNDING) else (spent(plan, rounds).epsilon(level), after, goal, level)
