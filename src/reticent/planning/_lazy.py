"""The tuned lazy plan: least certified regret for a given number of switches."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.planning._coin_choice import best_coin
from reticent.planning._epochs import doubling, per_epoch
from reticent.planning._measure_choice import MeasureCosts
from reticent.planning._plan import Plan, check_body, check_horizon, check_scale
from reticent.planning._regret import regret_bound
from reticent.planning._switching import Switching, looked_at, near_exact


def plan_lazy(
    domain: Domain, horizon: int | None, lipschitz: float, max_switches: int, *, hard: bool = False, draws: int = 4
) -> Plan:
    """Return the plan of least certified regret whose expected number of switches is at most `max_switches`.

    The number is an expectation over the run; `hard=True` makes it a cap that never breaks, at a small price in
    regret. `draws` auxiliary draws are averaged per coin that needs one: more of them cost time and save switches.
    With `horizon=None` the run has doubling epochs and `max_switches` is a bound for each of them, not for the run.
    The certificate is for losses that do not depend on the decisions (docs/theory.md, P4 and P6).

    >>> from reticent.domains import Ball
    >>> plan = plan_lazy(Ball(2), 10_000, 1.0, max_switches=500)
    >>> plan.expected_switches <= 500, plan.regret_bound < 3_000
    (True, True)
    """
    check_body(domain)
    G, S = positive("lipschitz", lipschitz), integer("max_switches", max_switches, least=0)
    M = integer("draws", draws, least=1)
    check_scale(domain, G)
    if horizon is None:
        recipe = partial(plan_lazy, domain, lipschitz=G, max_switches=S, hard=hard, draws=M)
        kind = "at most" if hard else "in expectation at most"
        return doubling(recipe, 1, per_epoch(kind, S))
    return _planned(domain, check_horizon(horizon), G, S, bool(hard), M)


@lru_cache(maxsize=128)  # a goal has one answer, and learners without a horizon ask for those of their epochs again
def _planned(domain: Domain, T: int, G: float, S: int, hard: bool, M: int) -> Plan:
    costs = MeasureCosts(domain, G, T)
    shell = Plan(
        domain,
        T,
        G,
        beta=1.0,
        lam=1.0,
        p=0.0,
        phi=1.0,
        budget=S if hard else None,
        draws=M,
        adversary="oblivious",
        distance=near_exact(T, S, M),
        source=f"plan_lazy, {'never more than' if hard else 'in expectation at most'} {S:,} switches",
    )
    candidates = [_never(shell, costs)]
    if S >= T:
        candidates.append(_always(shell, costs))
    if min(S, T - 1) > 0:
        candidates.append(_tuned(shell, costs, min(S, T - 1)))
    plan = min((_certified(plan) for plan in candidates), key=lambda plan: plan.regret_bound or 0.0)
    if plan.expected_switches is None or plan.expected_switches > S:
        raise AssertionError(f"a plan for {S} switches came out with {plan.expected_switches}; please report this")
    return plan.sealed()


def _certified(plan: Plan) -> Plan:
    """Return the plan with its certificate written into it."""
    law, remarks = Switching(plan), plan.remarks
    if plan.budget is None and plan.phi > 1:
        adaptive = plan.coins * (plan.p + float(looked_at(plan.p, law.log_phi)))
        remarks += (
            "The number of switches is for losses that do not depend on the decisions; for losses chosen after seeing "
            f"them it is at most {adaptive:,.6g} in expectation. hard=True makes it a cap for all losses.",
        )
    return replace(plan, expected_switches=law.expected, regret_bound=regret_bound(plan).total, remarks=remarks)


def _never(shell: Plan, costs: MeasureCosts) -> Plan:
    """Return the plan that draws one decision, almost at the centre, and keeps it."""
    lam, beta = costs.still()
    remark = (
        "This plan never switches: one decision near the centre is kept for the whole run, and the regret bound "
        "is what any such decision satisfies (lipschitz * radius * horizon)."
    )
    return replace(shell, beta=beta, lam=lam, phi=1.0, remarks=(remark,))


def _always(shell: Plan, costs: MeasureCosts) -> Plan:
    """Return the plan that draws a fresh decision every round: nothing to ration."""
    step = costs.enough()
    lam, beta = costs.measure(step)
    return replace(shell, beta=beta, lam=lam, p=1.0, draws=1)


def _tuned(shell: Plan, costs: MeasureCosts, S: int) -> Plan:
    """Return the plan of the best coin and measure, with a last look at the number of switches."""
    # A little below S, for rounding: of sums, and of phi, whose last digit moves the switches of every round.
    margin = 1e-9 * S + 1e-15 * shell.coins
    while True:
        coin = best_coin(shell, costs, S - margin)
        lam, beta = costs.measure(coin.step)
        plan = replace(shell, beta=beta, lam=lam, p=coin.p, phi=math.exp(coin.log_phi))
        if Switching(plan).expected <= S:
            return plan
        margin *= 4
