"""Plans of continuous multiplicative weights without a regulariser: the shrinking dartboard over a body."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array, integer
from reticent.domains import Ball, Box, Domain
from reticent.planning._coin_plan import CoinPlan
from reticent.planning._first_term import _mean_distance
from reticent.planning._goal import Goal, System
from reticent.planning._l2p_search import Costs, Found, Law, Trials, search
from reticent.planning._plan import check_body
from reticent.planning._target import check_target
from reticent.privacy._coin import Coin
from reticent.privacy._ledger import Statement, gaussian
from reticent.privacy._terms import Bound, Term

# What the search takes for the loss of Renyi composition against that of Gaussian releases; certificates decide.
_RENYI = 1.08
_HALVINGS = 40


@dataclass(frozen=True, kw_only=True)
class FlatPlan(CoinPlan):
    """Draws from exp(-beta * sum of losses) on the body, kept with probability exp(-beta (L(x) - m)) after a batch.

    L is the sum of the losses of the batch and m a lower bound of it that needs nothing but the batch. The measure has
    no strong convexity, so a draw is as private as the exponential mechanism with range rho = beta Delta D: nothing
    better is true, and the dimension enters regret by d log(T)/beta.

    >>> from reticent.domains import Ball
    >>> plan = FlatPlan(Ball(2), 1000, 1.0, beta=0.01, p=0.1, budget=150)
    >>> round(plan.most_switching, 4), round(plan.draw_range, 12)
    (0.1178, 0.04)
    """

    system: ClassVar[str] = "continuous weights, lambda = 0 (Asi et al.)"
    reference: ClassVar[str] = "Asi, Feldman, Koren and Talwar 2023"

    @property
    def floor(self) -> float:
        """The losses of a batch range over 2 b G R at most."""
        return 2 * self.beta * self.batch * self.lipschitz * self.domain.radius

    @property
    def special(self) -> float:
        """Both losses of the changed round lie between 0 and 2 G R above their lower bounds."""
        return 2 * self.beta * self.lipschitz * self.domain.radius

    @property
    def draw_range(self) -> float:
        """The range of the privacy loss of one draw."""
        return self.beta * self.change * self.domain.diameter

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R6: first term, stability by Hoeffding's inequality, and the budget."""
        G, D = self.lipschitz, self.domain.diameter
        stability = self.beta * G**2 * D**2 * self.squares / 8
        return flat_first(self.domain, self.beta, G * self.horizon) + stability + G * D * self.exhausted

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return the certificate of docs/theory.md, R6, by Renyi divergences and by Gaussian releases."""
        draws = self._changes(rounds)
        if not draws:
            return (gaussian(0.0),)
        from reticent.privacy._bounded_range import gdp_of_bounded_range

        root, ways = math.sqrt(draws), self._coin().directions()
        return tuple(
            Statement(method, Bound(tuple((Term(mu * root, Coin(1.0, 0.0), 0, way),) for way in ways)))
            for method, mu in (("rdp", self.draw_range / 2), ("pld", gdp_of_bounded_range(self.draw_range)))
        )

    def dp_event(self) -> Any:
        """Return Gaussian events of dp_accounting for the draws and for the coin of the changed batch.

        Both of its accountants take them. Against the certificate they lose up to a fifth of epsilon by privacy loss
        distributions, and a quarter by Renyi divergences.
        """
        from dp_accounting import dp_event as events

        from reticent.privacy._bounded_range import gdp_of_bounded_range
        from reticent.privacy._events import gdp

        draws = self._changes(self.horizon)
        if not draws:
            return events.NoOpDpEvent()
        special = gdp(self._coin())
        if math.isinf(special):
            return events.NonPrivateDpEvent()
        draw = events.GaussianDpEvent(1 / gdp_of_bounded_range(self.draw_range))
        parts: list[Any] = [events.SelfComposedDpEvent(draw, draws)]
        if special:
            parts.append(events.GaussianDpEvent(1 / special))
        return events.ComposedDpEvent(parts)


def flat_first(domain: Domain, beta: float, steep: float) -> float:
    """Return a bound on the first term of regret without a regulariser, `steep` being `lipschitz * horizon`.

    It is min over e in (0, 1] of d log(1/e)/beta + e steep m, m the mean distance of the uniform law from any point
    (docs/theory.md, P6d with lam = 0); on an interval the integral itself.

    >>> from reticent.domains import Interval
    >>> round(flat_first(Interval(-1.0, 1.0), 0.1, 1000.0), 3)
    52.983
    """
    pull = steep * _mean_distance(domain, 0.0)
    d = domain.chart_dim
    e = min(1.0, d / (beta * pull))
    bound = d * math.log(1 / e) / beta + e * pull
    if d == 1 and isinstance(domain, Ball | Box):
        # The mean of exp(-a (R - x)) over [-R, R] is (1 - exp(-2 a R)) / (2 a R).
        x = 2 * beta * steep * domain.radius
        # For small x the logarithm loses its digits, and the series cut here is larger.
        log = x / 2 - x**2 / 24 + x**4 / 2880 if x < 1e-2 else -math.log(-math.expm1(-x) / x)
        bound = min(bound, log / beta)
    return bound


def plan_flat(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "replace",
    max_switches: int | None = None,
) -> FlatPlan:
    """Return continuous multiplicative weights of least certified regret that are (epsilon, delta)-private.

    P-COMW with lam = 0, as it was before the regulariser came: its certificates have d where those of P-COMW have
    sqrt(d), and it is here to compare with. `max_switches` is a hard cap. The regret bound is for losses that do not
    depend on the decisions, privacy holds for all (docs/theory.md, R6).

    >>> from reticent.domains import Interval
    >>> plan = plan_flat(Interval(-1.0, 1.0), 100_000, 1.0, 1.0, 1e-6)
    >>> 0.999 < plan.account().epsilon(1e-6) <= 1.0, plan.regret_bound < 5_000
    (True, True)
    """
    check_body(domain)
    T, G, eps, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    S = None if max_switches is None else integer("max_switches", max_switches, least=0)
    claim: dict[str, Any] = {"epsilon": eps, "delta": small, "neighbors": neighbors}
    # One draw of the uniform law, kept for good: nothing is revealed, and nothing can be clipped.
    plans = [FlatPlan(domain, T, G, beta=1e-6 / (G * domain.radius * T**2), p=0.0, budget=0, **claim)]
    if T > 1 and S != 0:
        costs = _Costs(domain, T, eps, small, 2.0 if neighbors == "replace" else 1.0, S)
        made = [_plan(costs, found, G, claim) for found in search(costs)]
        plans += [plan for plan in made if plan is not None]
    return min(plans, key=lambda plan: plan.regret_bound)


class _Costs(Costs):
    """The strength of a measure is beta, in units of 1/(G R)."""

    @property
    def strengths(self) -> tuple[float, float]:
        most = 2 * self.most / (self.change * self.wide)
        return most / (40 * math.sqrt(self.T)), most

    def law(self, at: Trials, strength: Array) -> Law:
        return Law(2 * strength * at.batch, 2 * strength, _RENYI * strength * self.change * self.wide / 2)

    def measure(self, at: Trials, strength: Array) -> Array:
        steep = self.T / self.domain.radius
        first = np.array([flat_first(self.domain, float(beta), steep) for beta in strength])
        return first + strength * at.batch * self.wide**2 * self.T / 8


def _plan(costs: _Costs, found: Found, G: float, claim: dict[str, Any]) -> FlatPlan | None:
    """Return the plan of a candidate: its budget a whole number, and the largest beta that the account allows."""
    at = Trials.of(found.point[None])
    at = at._replace(batch=np.round(at.batch))  # a logarithm may have lost its last digit
    batch, p = int(at.batch[0]), float(at.p[0])
    n = math.ceil(costs.T / batch) - 1
    law = costs.law(at, np.array([found.strength]))
    budget = min(max(1, math.ceil(float(costs.budget(at, law)[0][0]) - 1e-6)), max(n, 1))
    unit = 1 / (G * costs.domain.radius)
    values: dict[str, Any] = {"p": p, "budget": budget, "batch": batch, "neighbors": claim["neighbors"]}
    low, high = math.log(found.strength * 0.7 * unit), math.log(found.strength * 1.4 * unit)
    best = None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        plan = FlatPlan(costs.domain, costs.T, G, beta=math.exp(middle), **values)
        if plan.account().delta(costs.epsilon) <= costs.delta * (1 - 1e-9):
            low, best = middle, plan
        else:
            high = middle
    return None if best is None else replace(best, **claim)


def _propose(goal: Goal) -> FlatPlan:
    return plan_flat(*goal.target, neighbors=goal.neighbors, max_switches=goal.max_switches)


SYSTEMS = (System(FlatPlan.system, _propose, private=True, lazy=True),)
