"""The tuned private plan: least certified regret for a goal of privacy."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from reticent._core._check import integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.privacy import account
from reticent.systems._checks import (
    check_adversary,
    check_body,
    check_claim,
    check_horizon,
    check_neighbors,
    check_scale,
)
from reticent.systems.pcomw._lazy import MeasureCosts
from reticent.systems.pcomw._plan import Plan, doubling, per_epoch
from reticent.systems.pcomw._regret import regret_bound
from reticent.systems.pcomw._search import Found, PrivateGoal, search
from reticent.systems.pcomw._switching import Switching

# The part of epsilon that is aimed at, the least and the most that will do: the accountant solves to a part in 1e10.
# And of delta, which alone counts where draws may fail and accounts fall no more with epsilon (docs/theory, Q11).
_AIM, _LEAST, _MOST = 0.9998, 0.999, 1 - 1e-6
_TRIES = 30
# A budget that is off by more, as a part of the deviation of the number of switches, is chosen anew.
_OFF = 0.05
# How often: of hundreds of millions of switches the deviation is a part in 1e4, and each turn halves what it is off by.
_TURNS = 12
_STEEPEST = 10.0
# Where failures of draws take more of delta than this, budget and step are sought together, as near to a jump as this;
# delta hardly depends on the step there, and this is the least slope that is believed in.
_RISKY, _NEXT, _FLATTEST = 0.1, 1e-4, 1e-4


def certified(goal: PrivateGoal, found: Found) -> Plan | None:
    """Return the plan of a candidate, its step such that the accountant's epsilon is just below that of the goal.

    Or the largest that the cap on switches leaves room for, if that is less. None if there is no such step near: the
    search had a wrong idea of that candidate.
    """
    budget = found.budget(goal, found.step)
    if found.p < 1 and 2 * goal.machine.failure * budget > _RISKY * goal.delta:
        return _solved(goal, found, found.step, None)
    plan = _solved(goal, found, found.step, budget)
    for _ in range(_TURNS):
        if plan is None:
            return None
        step = plan.lipschitz * math.sqrt(plan.beta / plan.lam)
        # The budget is a whole number: it must not jump while the step is sought, and follows it afterwards.
        before, budget = budget, found.budget(goal, step)
        if abs(budget - before) <= _OFF * math.sqrt(before):
            break
        plan = _solved(goal, found, step, budget)
    return plan


def _solved(goal: PrivateGoal, found: Found, start: float, budget: int | None) -> Plan | None:
    """Solve for the step: the account grows with it. A secant rule between bounds that close in.

    Without a budget that of each step is taken, which grows with it too: where draws may fail, a fixed one leaves a
    step that asks for quite another budget. Its jumps may stand between the step and the goal: the last step before.
    """
    top = math.log(found.limit(goal))
    aim, x, slope = _level(_AIM * goal.delta), min(math.log(start), top), 1.0
    low, high, last, best = -math.inf, math.inf, (math.nan, math.nan), None
    for _ in range(_TRIES):
        plan = build(goal, found, math.exp(x), found.budget(goal, math.exp(x)) if budget is None else budget)
        if plan is None:
            return None
        ledger = account(plan)
        private = ledger.delta(_MOST * goal.epsilon) <= goal.delta
        if private and (x >= top or _LEAST * goal.delta <= ledger.delta(_LEAST * goal.epsilon)):
            return plan
        y = _level(ledger.delta(_AIM * goal.epsilon)) - aim
        low, high = (x, high) if y <= 0 else (low, x)
        best = plan if private and y <= 0 else best
        if budget is None and best is not None and high - low <= _NEXT:
            break
        if x != last[0] and y != last[1] and not math.isnan(last[0]):
            slope = min(max((y - last[1]) / (x - last[0]), _FLATTEST), 8.0)
        last = x, y
        x -= min(max(y / slope, -1.0), 1.0)
        if not low < x < high:
            x = (low + high) / 2
        x = min(x, top)
    return best


def build(goal: PrivateGoal, found: Found, step: float, budget: int) -> Plan | None:
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


# The tuned private plan: least certified regret for a goal of privacy.

_LONGEST = 10**12
_EPOCHS = {
    "adaptive": "A changed round lies in one epoch, so the epsilon and delta of an epoch hold for the run.",
    "oblivious": (
        "A changed round that is fixed in advance lies in one epoch, so the epsilon and delta of an epoch hold for the "
        "run."
    ),
}


@saved("plan_private")
@np.errstate(under="ignore")  # whatever the caller has numpy do about it
def plan_private(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "replace",
    adversary: str = "adaptive",
    max_switches: int | None = None,
    draws: int = 8,
    first_epoch: int = 1024,
) -> Plan:
    """Return the plan of least certified regret that is (epsilon, delta)-private by the accountant.

    `neighbors` says what may change in one round: "replace" (its loss becomes any other) or "zero-out" (it becomes a
    constant: less is promised, and regret is lower). `adversary="adaptive"` allows losses that react to released
    decisions; "oblivious" holds for losses fixed in advance only, with less regret (docs/theory, Q4 and Q6). With
    `max_switches` the decision also never changes more often than that. `draws` auxiliary draws are averaged per coin
    that needs one: more of them cost time and save switches. `horizon=None` means doubling epochs, the first of
    `first_epoch` rounds or the next power of two from 1024 on; epsilon and delta hold for the whole run, `max_switches`
    for each epoch. The regret bound is for losses that do not depend on the decisions.

    >>> from reticent.domains import Ball
    >>> from reticent.privacy import account
    >>> plan = plan_private(Ball(2), 100_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> 0.99 <= account(plan).epsilon(1e-6) <= 1.0, plan.regret_bound < 2_500
    (True, True)
    """
    check_body(domain)
    G, M = positive("lipschitz", lipschitz), integer("draws", draws, least=1)
    check_scale(domain, G)
    check_neighbors(neighbors)
    check_adversary(adversary)
    eps, small = check_claim(epsilon, delta)
    S = None if max_switches is None else integer("max_switches", max_switches, least=0)
    least = integer("first_epoch", first_epoch, least=1)
    if horizon is None:
        recipe = partial(
            plan_private,
            domain,
            lipschitz=G,
            epsilon=eps,
            delta=small,
            neighbors=neighbors,
            adversary=adversary,
            max_switches=S,
            draws=M,
        )
        switches = () if S is None else (per_epoch("at most", S),)
        return doubling(recipe, least, _EPOCHS[adversary], *switches)
    T = check_horizon(horizon, _LONGEST)
    return _planned(PrivateGoal(domain, T, G, eps, small, neighbors, adversary, S, M))


@lru_cache(maxsize=128)  # a goal has one answer, and learners without a horizon ask for those of their epochs again
def _planned(goal: PrivateGoal) -> Plan:
    if goal.max_switches == 0 or goal.horizon == 1:
        return _with_regret(_still(goal)).sealed()
    # To stay where one is can always be had: it is what any goal of privacy and any number of switches allow.
    made = [_with_regret(plan) for plan in (*_drawn(goal.within_failures), _still(goal))]
    best = min(made, key=lambda plan: plan.regret_bound or 0.0)
    return replace(best, epsilon=goal.epsilon, source=goal.source, remarks=_remarks(goal, best)).sealed()


def _drawn(goal: PrivateGoal) -> list[Plan]:
    """Return the plans that draw again; certificates decide, not the quick accounts of the search."""
    if goal.max_switches == 0:
        return []
    candidates = search(goal)
    if goal.oblivious:
        # What is good against an adaptive adversary may be better than what a search on rougher ground has found.
        candidates += [found for found in search(replace(goal, adversary="adaptive")) if found.p < 1]
    return [plan for found in candidates if (plan := certified(goal, found)) is not None]


def _with_regret(plan: Plan) -> Plan:
    return replace(plan, expected_switches=Switching(plan).expected, regret_bound=regret_bound(plan).total)


def _remarks(goal: PrivateGoal, plan: Plan) -> tuple[str, ...]:
    trivial = goal.lipschitz * goal.domain.radius * goal.horizon
    if plan.regret_bound is not None and plan.regret_bound < 0.8 * trivial:
        return ()
    return (
        "The horizon is short for this epsilon: one decision in the centre, kept for the whole run, has a regret bound "
        f"of lipschitz * radius * horizon = {trivial:.6g}, and what is learned at this epsilon is certified to be "
        "little better, or worse. More rounds, a larger epsilon or delta, or neighbors='zero-out' would help.",
    )


def _still(goal: PrivateGoal) -> Plan:
    """Return the plan that never switches: its only decision knows nothing of the losses."""
    lam, beta = MeasureCosts(goal.domain, goal.lipschitz, goal.horizon).still()
    return Plan(
        goal.domain,
        goal.horizon,
        goal.lipschitz,
        beta=beta,
        lam=lam,
        p=0.0,
        phi=1.0,
        budget=0,
        epsilon=goal.epsilon,
        delta=goal.delta,
        neighbors=goal.neighbors,
        adversary=goal.adversary,
        source=goal.source,
        remarks=(
            "This plan never switches: one decision near the centre is drawn before any loss and kept, so it reveals "
            "nothing (epsilon 0), and the regret bound is what any such decision satisfies.",
        ),
    )
