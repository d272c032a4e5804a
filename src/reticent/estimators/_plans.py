"""The plans behind the estimators, made once for each goal: models are cloned freely."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from reticent._core import _names
from reticent._core._check import integer
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.planning import BasePlan, plan_budgeted, plan_descent, plan_filtered, plan_ftrl, plan_lazy, plan_private
from reticent.systems._checks import check_claim
from reticent.systems.filtered import clip_for

PRIVATE = (_names.FILTERED, _names.PCOMW, _names.DP_FTRL)
LAZY = (_names.BUDGETED, _names.PCOMW, "gradient descent")
_NEED_A_HORIZON = (_names.DP_FTRL, "gradient descent")
_KEPT = 64  # plans, of some kilobytes each


@lru_cache(maxsize=_KEPT)
def private_plan(
    domain: Domain, horizon: int | None, lipschitz: float, epsilon: float, delta: float, system: str, loss: Loss
) -> BasePlan:
    """Return the plan of a private model."""
    goal = domain, horizon, lipschitz, epsilon, delta
    if system == _names.FILTERED:
        return plan_filtered(*goal, clip=clip_for(loss, lipschitz))
    if system == _names.PCOMW:
        return plan_private(*goal)
    assert horizon is not None
    return plan_ftrl(domain, horizon, lipschitz, epsilon, delta)


@lru_cache(maxsize=_KEPT)
def lazy_plan(domain: Domain, horizon: int | None, lipschitz: float, max_switches: int, system: str) -> BasePlan:
    """Return the plan of a lazy model."""
    if system == _names.BUDGETED:
        return plan_budgeted(domain, horizon, lipschitz, max_switches)
    if system == _names.PCOMW:
        return plan_lazy(domain, horizon, lipschitz, max_switches, hard=True)
    assert horizon is not None
    return plan_descent(domain, horizon, lipschitz, max_switches=max_switches)


def check_privacy(epsilon: Any, delta: Any) -> None:
    """Refuse what is not a privacy goal, as early as a model is made."""
    if epsilon is None or (isinstance(epsilon, float) and math.isinf(epsilon)):
        raise ValueError(
            f"epsilon must be a number up to 50, got {epsilon!r}; models without privacy are those called Lazy"
        )
    if delta is None:
        raise ValueError(
            f"epsilon and delta go together, got epsilon={epsilon!r} and delta=None; give delta as well, far below one "
            "over the number of people (1e-6 is usual)"
        )
    check_claim(epsilon, delta)


def check_system(system: Any, horizon: Any, known: tuple[str, ...]) -> None:
    """Refuse an unknown system, a bad horizon, and a system that needs one without."""
    if system not in known:
        raise ValueError(f"system must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, got {system!r}")
    if horizon is not None:
        integer("horizon", horizon, least=1)
    elif system in _NEED_A_HORIZON:
        raise ValueError(
            f"horizon must be the number of rows to come for system={system!r}, got None; {known[0]!r} runs without one"
        )
