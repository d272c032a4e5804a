"""From the words of a goal to a plan of one system, or of all."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from reticent._core._names import BUDGETED, DOUBLING, FILTERED, NOISY_DESCENT, PCOMW, PCOMW_LAZY
from reticent.cli._specs import system_of

if TYPE_CHECKING:
    from reticent.planning import BasePlan, Comparison, Goal

BEST = "best"
_HIDDEN = ("domain", "source", "remarks", "recipe", "seal")


def goal_of(domain: Any, horizon: int, lipschitz: float, loss: Any, **wanted: Any) -> Goal:
    """Return a goal, or refuse what cannot be one.

    >>> from reticent.domains import Ball
    >>> from reticent.losses import Hinge
    >>> goal_of(Ball(2), 100, 1.0, Hinge(), epsilon=0.0, delta=1e-6)
    Traceback (most recent call last):
    ValueError: epsilon must be greater than 0, got 0.0
    """
    from reticent.planning import Goal
    from reticent.systems._checks import check_claim
    from reticent.systems._choice import checked

    goal = checked(Goal(domain, horizon, lipschitz, loss, **wanted))
    if goal.epsilon is not None and goal.delta is not None:
        check_claim(goal.epsilon, goal.delta)
    return goal


def compared(goal: Goal, **aim: Any) -> Comparison:
    """Return the answers of all systems to a goal; `aim` as for `compare_plans`."""
    from reticent.planning import compare_plans

    wanted = {one.name: getattr(goal, one.name) for one in fields(goal)}
    return compare_plans(**wanted, **aim)


def answer(goal: Goal, system: str) -> BasePlan:
    """Return the plan of the system of this name ("best": the lowest certificate), or say why there is none.

    "P-COMW" is the private or the lazy planner, as the goal asks.

    >>> from reticent.domains import Ball
    >>> from reticent.losses import Hinge
    >>> answer(goal_of(Ball(2), 100, 1.0, Hinge(), max_switches=10), "ogd").max_switches
    10
    """
    from reticent.planning import NotApplicable
    from reticent.systems._choice import SYSTEMS

    if system == BEST:
        return compared(goal).best
    name = exact(goal, system)
    found = next(one for one in SYSTEMS if one.name == name)
    try:
        return found.answer(goal)
    except NotApplicable as why:
        raise ValueError(f"{name} does not apply: {why}; `reticent plan --all` shows which systems do") from None


def exact(goal: Goal, system: str) -> str:
    """Return the exact name of a system; P-COMW goes by another where privacy is not asked for."""
    name = system_of(system)
    return PCOMW_LAZY if name == PCOMW and goal.epsilon is None else name


def planned(wanted: dict[str, Any], system: str, hard: bool, units: dict[str, int | None] | None = None) -> BasePlan:
    """Return the plan of one system; P-COMW's planners do more than the goals that all systems share.

    `units` say who is protected, as `rt.private_learner` takes it: max_rows, window and clock.
    """
    from reticent.planning import plan_lazy, plan_private

    if units is not None and any(unit is not None for unit in units.values()):
        return _for_units(wanted, system, units)
    if system != BEST and system_of(system) in (PCOMW, PCOMW_LAZY):
        size = wanted["domain"], wanted["horizon"], wanted["lipschitz"]
        # With privacy the cap never breaks anyway.
        privacy = {name: wanted[name] for name in ("epsilon", "delta", "neighbors", "adversary", "max_switches")}
        try:
            if wanted["epsilon"] is None:
                return plan_lazy(*size, wanted["max_switches"], hard=hard)
            return plan_private(*size, **privacy)
        except ValueError as error:  # which may give advice to somebody who writes Python
            raise ValueError(str(error).replace("take horizon=None", "give --horizon unknown")) from error
    found = _without_end(wanted, system) if wanted["horizon"] is None else answer(goal_of(**wanted), system)
    if hard and getattr(found, "max_switches", getattr(found, "budget", None)) is None:
        raise ValueError(
            f"{system} keeps switches in expectation only, and --hard asks for more; leave --system out for P-COMW"
        )
    return found


def _for_units(wanted: dict[str, Any], system: str, units: dict[str, int | None]) -> BasePlan:
    """Return the plan of one system that protects persons, or has blocks on a clock; else say which do."""
    from reticent.planning import for_persons
    from reticent.systems.experts import plan_doubling

    cap = {name: units[name] for name in ("max_rows", "window")}
    if wanted["epsilon"] is None:
        raise ValueError("--max-rows says who is protected, and nothing is promised without --epsilon; give it")
    name = system if system == BEST else system_of(system)
    if name in (FILTERED, NOISY_DESCENT):
        return _gate(wanted, name, units)
    if units["clock"] is not None:
        what = "experts" if wanted["domain"].finite else f"--system {system}"
        raise ValueError(
            f"blocks on a clock are for the filtered gate and noisy descent, got {what}; leave --every out, or --system"
        )
    size = wanted["domain"], wanted["horizon"], wanted["lipschitz"], wanted["epsilon"], wanted["delta"]
    if name == DOUBLING or (name == BEST and wanted["domain"].finite):
        limits = {one: wanted[one] for one in ("max_switches", "neighbors")}
        return for_persons(plan_doubling, **cap)(*size, **limits)
    if name == BEST:
        raise ValueError(
            "--system best compares promises to one row, and --max-rows is about persons; name a system, such as "
            "filtered or dp-ftrl"
        )

    def of_rows(domain: Any, horizon: int | None, lipschitz: float, epsilon: float, delta: float) -> BasePlan:
        goal = wanted | {"domain": domain, "horizon": horizon, "lipschitz": lipschitz}
        return planned(goal | {"epsilon": epsilon, "delta": delta}, system, False)

    return for_persons(of_rows, **cap)(*size)


def _gate(wanted: dict[str, Any], name: str, units: dict[str, int | None]) -> BasePlan:
    """Return the plan of a learner behind the gate, with or without a horizon."""
    from reticent.systems.filtered import clip_for, plan_filtered
    from reticent.systems.gate import plan_noisy_descent

    size = wanted["domain"], wanted["horizon"], wanted["lipschitz"]
    options: dict[str, Any] = {one: wanted[one] for one in ("epsilon", "delta", "max_switches", "neighbors")} | units
    if name == NOISY_DESCENT:
        return plan_noisy_descent(*size, **options)
    return plan_filtered(*size, clip=clip_for(wanted["loss"], wanted["lipschitz"]), **options)


def _without_end(wanted: dict[str, Any], system: str) -> BasePlan:
    """Return the plan of a system that runs for any number of rounds, or say which do."""
    from reticent.systems.budgeted import plan_budgeted

    size, name = (wanted["domain"], None, wanted["lipschitz"]), system if system == BEST else system_of(system)
    if name in (FILTERED, NOISY_DESCENT) and wanted["epsilon"] is not None:
        return _gate(wanted, name, {})
    if name == BUDGETED and wanted["epsilon"] is None and wanted["max_switches"] is not None:
        return plan_budgeted(*size, wanted["max_switches"])
    raise ValueError(
        f"an unknown horizon is for P-COMW, the filtered gate and noisy descent (private) and the budgeted follower "
        f"(lazy), got --system {system}; give a number of rounds"
    )


def parameters(plan: BasePlan) -> dict[str, Any]:
    """Return the parameters of a plan by name.

    >>> from reticent.domains import Ball
    >>> from reticent.planning import plan_descent
    >>> sorted(parameters(plan_descent(Ball(2), 100, 1.0)))[:3]
    ['batch', 'delta', 'epsilon']
    """
    return {one.name: getattr(plan, one.name) for one in fields(cast(Any, plan)) if one.name not in _HIDDEN}
