"""Plans for persons with several rows, of any system: by the bound for groups of rounds (docs/theory, R14e)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from reticent.privacy._account import SystemAccount, gaussian
from reticent.privacy._group import group_factor
from reticent.systems._checks import check_target
from reticent.systems._persons import check_cap
from reticent.systems._plan import BasePlan

_Plan = TypeVar("_Plan", bound=BasePlan)


def for_persons(
    planner: Callable[..., _Plan], *, max_rows: int | None, window: int | None = None
) -> Callable[..., _Plan]:
    """Return a planner whose goal is about persons, of whom the first `max_rows` rows count, in all or in each window.

    Its plans promise `epsilon` and `delta` for streams in which all rows of one person have other losses, at the same
    rounds; with `window`, those within any `window` rounds in a row. The plan of one row has so much less epsilon that
    the bound for groups of rounds gives what is asked for. The learners of the gate have a sharper account, and take
    `max_rows` themselves.

    >>> import reticent as rt
    >>> plan = for_persons(rt.planning.plan_ftrl, max_rows=3)(rt.Ball(2), 1000, 1.0, epsilon=1.0, delta=1e-6)
    >>> plan.max_rows, 0.9 < plan.account().epsilon(1e-6) <= 1.0
    (3, True)
    """
    cap = check_cap(max_rows, window)
    if cap is None:
        return planner

    def plan(domain: Any, horizon: int | None, lipschitz: float, epsilon: float, delta: float, **options: Any) -> _Plan:
        def grouped(row_epsilon: float, row_delta: float) -> Any:
            found: Any = planner(domain, horizon, lipschitz, epsilon=row_epsilon, delta=row_delta, **options)
            return found.for_group(epsilon, delta, cap)

        k = cap.at_stake
        if delta > 0 and k > 1 and horizon is not None:
            # If all is Gaussian, k rounds have k times the mu, which asks for less noise; else it may not fit.
            target = check_target(domain, horizon, lipschitz, epsilon, delta, options.get("neighbors", "replace"))
            row = SystemAccount(horizon, "replace", (gaussian(target.largest_mu() / k * (1 - 1e-9)),)).epsilon(delta)
            found = grouped(row, delta)
            if found is not None:
                return cast(_Plan, found)
        found = grouped(epsilon / k * (1 - 1e-9), delta / group_factor(epsilon / k, k))
        if found is None:
            raise ValueError(
                f"no plan was found whose account shows epsilon={epsilon!r} and delta={delta!r} for {k} rows of one "
                "person; take fewer rows, or a larger epsilon or delta"
            )
        return cast(_Plan, found)

    return plan
