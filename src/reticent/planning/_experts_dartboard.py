"""The shrinking dartboard: the law of Hedge in every round, with few switches, and a hard cap on them if wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import scipy

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.planning._experts import (
    ExpertsPlan,
    best_beta,
    check_experts,
    weights_regret,
)
from reticent.planning._experts_leaders import largest
from reticent.planning._goal import Goal, System


@dataclass(frozen=True, kw_only=True)
class DartboardPlan(ExpertsPlan):
    """The expert is kept with probability exp(-beta * its loss), else drawn from the weights exp(-beta * sums).

    Every round has the law of Hedge, and so its regret bound. With a `budget` the expert stays for good after so many
    draws, which costs G times the expected number of rounds after one draw too many is wanted (docs/theory.md, R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_dartboard(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 218)
    >>> capped = plan_dartboard(Experts(10), 10_000, 1.0, max_switches=100, hard=True)
    >>> capped.max_switches, round(capped.regret_bound)
    (100, 298)
    """

    system: ClassVar[str] = "shrinking dartboard"
    reference: ClassVar[str] = "Geulen, Voecking and Winkler 2010"

    beta: float
    budget: int | None = None

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta))
        if self.budget is not None:
            self._set(budget=integer("budget", self.budget, least=0))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R4."""
        regret = weights_regret(self.n, self.beta, self.lipschitz, self.horizon)
        if self.budget is None:
            return regret
        q = -math.expm1(-self.beta * self.lipschitz)
        return regret + self.lipschitz * overrun(self.horizon - 1, q, self.budget)

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory.md, R4, for losses that do not react to decisions."""
        most = self.horizon * switch_chance(self.n, self.beta * self.lipschitz)
        return most if self.budget is None else min(most, self.budget)

    @property
    def max_switches(self) -> int | None:
        """The budget."""
        return self.budget


def switch_chance(n: int, size: float) -> float:
    """Return a bound on the chance that one round changes the expert, `size` = beta G (docs/theory.md, R4).

    >>> round(switch_chance(2, 0.1), 6), round(switch_chance(10, 0.1), 6)
    (0.024995, 0.085595)
    """
    if n == 2:
        return math.tanh(size / 4)
    return -math.expm1(-size) * (1 - math.exp(-size) / (n - 1))


def overrun(coins: int, q: float, budget: int) -> float:
    """Return the sum over k = 0, ..., `coins` of P(Binomial(k, q) > budget).

    Binomials count the successes by time k. If the success one beyond the budget comes at time t, coins + 1 - t of the
    sums are above it, and E t 1(t <= coins) = ((budget + 1)/q) P(Binomial(coins + 1, q) >= budget + 2).

    >>> round(overrun(3, 0.5, 0), 9)
    2.125
    """
    if budget >= coins or q <= 0:
        return 0.0
    late = float(scipy.special.betainc(budget + 1, coins - budget, q))
    weighted = (budget + 1) / q * float(scipy.special.betainc(budget + 2, coins - budget, q))
    # The difference loses digits: an allowance upwards.
    return min((coins + 1) * late, max((coins + 1) * late - weighted, 0.0) + 1e-11 * (coins + 1) * late)


def plan_dartboard(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None, *, hard: bool = False
) -> DartboardPlan:
    """Return the shrinking dartboard with the best beta that keeps expected switches at `max_switches` or less.

    With `hard` they are never more than that, by a budget.
    """
    check_experts(domain)
    n, T, G = domain.dim, integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    beta = best_beta(n, G, T)
    if max_switches is None:
        if hard:
            raise ValueError("max_switches must be given with hard=True, got None; it is the cap that is never broken")
        return DartboardPlan(domain, T, G, beta=beta)
    S = integer("max_switches", max_switches, least=1)
    if not hard:
        beta = min(beta, largest(lambda size: switch_chance(n, size), S / T) / G)
        return DartboardPlan(domain, T, G, beta=beta)

    def cost(x: float) -> float:
        size = math.exp(x)
        return weights_regret(n, size, 1.0, T) + overrun(T - 1, -math.expm1(-size), S)

    high = math.log(beta * G)
    low = min(high, math.log(S / T)) - 5  # with far fewer draws than allowed nothing is gained
    found = scipy.optimize.minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    return DartboardPlan(domain, T, G, beta=math.exp(float(found.x)) / G, budget=S)


def _dartboard(goal: Goal) -> DartboardPlan:
    goal.need_a_switch()
    return plan_dartboard(*goal.size, goal.max_switches)


SYSTEMS = (System(DartboardPlan.system, _dartboard, lazy=True, experts=True),)
