"""From a candidate of the search to a plan that the accountant certifies."""

from __future__ import annotations

import math

from reticent.planning._plan import Plan
from reticent.planning._private_goal import Goal
from reticent.planning._private_search import Found

# The part of epsilon that is aimed at, the least and the most that will do: the accountant solves to a part in 1e10.
_AIM, _LEAST, _MOST = 0.9998, 0.999, 1 - 1e-6
_TRIES = 30
# A budget that is off by more, as a part of the deviation of the number of switches, is chosen anew.
_OFF = 0.05
_STEEPEST = 10.0


def certified(goal: Goal, found: Found) -> Plan | None:
    """Return the plan of a candidate, its step such that the accountant's epsilon is just below that of the goal.

    None if there is no such step near: the search had a wrong idea of that candidate.
    """
    budget = found.budget(goal, found.step)
    plan = _solved(goal, found, found.step, budget)
    for _ in range(3):
        if plan is None:
            return None
        step = plan.lipschitz * math.sqrt(plan.beta / plan.lam)
        # The budget is a whole number: it must not jump while the step is sought, and follows it afterwards.
        before, budget = budget, found.budget(goal, step)
        if abs(budget - before) <= _OFF * math.sqrt(before):
            break
        plan = _solved(goal, found, step, budget)
    return plan


def _solved(goal: Goal, found: Found, start: float, budget: int) -> Plan | None:
    """Solve for the step: the account grows with it. A secant rule between bounds that close in."""
    from reticent.privacy import account  # privacy knows planning's plans

    aim, x, slope = _level(goal.delta), math.log(start), 1.0
    low, high, last = -math.inf, math.inf, (math.nan, math.nan)
    for _ in range(_TRIES):
        plan = build(goal, found, math.exp(x), budget)
        if plan is None:
            return None
        ledger = account(plan)
        if ledger.delta(_MOST * goal.epsilon) <= goal.delta <= ledger.delta(_LEAST * goal.epsilon):
            return plan
        y = _level(ledger.delta(_AIM * goal.epsilon)) - aim
        low, high = (x, high) if y <= 0 else (low, x)
        if x != last[0] and y != last[1] and not math.isnan(last[0]):
            slope = min(max((y - last[1]) / (x - last[0]), 0.3), 8.0)
        last = x, y
        x -= min(max(y / slope, -1.0), 1.0)
        if not low < x < high:
            x = (low + high) / 2
    return None


def build(goal: Goal, found: Found, step: float, budget: int) -> Plan | None:
    """Return the plan with a given step and budget, without its certificates; None if its coin would never keep."""
    domain, G = goal.domain, goal.lipschitz
    unit = G / domain.radius
    lam = math.sqrt(found.precision * domain.chart_dim) / step * unit
    forced = found.p >= 1
    draws = 1 if forced else goal.draws
    log_phi = 0.0 if forced else found.c * math.sqrt(1 + 1 / draws) * found.batch * step
    if log_phi > _STEEPEST:
        return None
    return Plan(
        domain,
        goal.horizon,
        G,
        beta=lam * (step / G) ** 2,
        lam=lam,
        p=min(found.p, 1.0),
        phi=math.exp(log_phi),
        budget=budget,
        batch=found.batch,
        draws=draws,
        epsilon=goal.epsilon,
        delta=goal.delta,
        neighbors=goal.neighbors,
        adversary=goal.adversary,
        source=goal.source,
    )


def _level(delta: float) -> float:
    return -0.5 * math.log(-math.log(min(max(delta, 1e-300), 1 - 1e-9)))
