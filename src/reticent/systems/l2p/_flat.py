"""Continuous multiplicative weights without a regulariser, kept as by the shrinking dartboard (Asi et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer
from reticent._core._tags import saved
from reticent.domains import Ball, Box, Domain
from reticent.gibbs import Gibbs
from reticent.losses import GeneralisedLinear, Linear, Loss, Objects, Rows
from reticent.losses._label import Label
from reticent.losses._limit import margin_range
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events, gdp
from reticent.privacy._losses import gdp_of_bounded_range
from reticent.systems._checks import check_body, check_target, within_failures
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import coin_error
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._walk import KeepingCoin, Walk
from reticent.systems.l2p._coin_plan import CoinPlan
from reticent.systems.l2p._l2p import exact_measure
from reticent.systems.l2p._search import Costs, Flags, Found, Law, Trials, one_draw, search
from reticent.systems.pcomw._regret import _mean_distance

# What the search takes for the loss of Renyi composition against that of Gaussian releases; certificates decide.
_RENYI = 1.08
_HALVINGS = 28  # of a range of a few powers of e: seven digits of beta, where certificates are flat


@saved("plan of flat weights")
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

    system: ClassVar[str] = _names.FLAT
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
        """The bound of docs/theory, R6: first term, stability by Hoeffding's inequality, and the budget."""
        G, D = self.lipschitz, self.domain.diameter
        stability = self.beta * G**2 * D**2 * self.squares / 8
        first = flat_first(self.domain, self.beta, G * self.horizon)
        return first + stability + G * D * self.exhausted + self.grid_regret

    @property
    def coin_error(self) -> float:
        """To what factor, as a logarithm, the machine's coins keep as often as they should (docs/theory, Q11)."""
        return coin_error(self.domain, self._pull, self._pull * self.domain.radius / 2)

    def revealed(self, rounds: int, slack: float) -> tuple[Statement, ...]:
        """Return the certificate of docs/theory, R6, by Renyi divergences and by Gaussian releases."""
        draws = self._changes(rounds)
        if not draws:
            return (gaussian(0.0),)
        return tuple(
            Statement(method, self._terms(rounds, mu * math.sqrt(draws), slack))
            for method, mu in (("rdp", self.draw_range / 2), ("pld", gdp_of_bounded_range(self.draw_range)))
        )

    def dp_event(self) -> Any:
        """Return Gaussian events of dp_accounting for the draws and for the coin of the changed batch.

        Both of its accountants take them. Against the certificate they lose up to a fifth of epsilon by privacy loss
        distributions, and a quarter by Renyi divergences.
        """
        draws = self._changes(self.horizon)
        if not draws:
            return gaussian_events([])
        mu = self.rounding(self.horizon).widened(gdp_of_bounded_range(self.draw_range) * math.sqrt(draws))
        return gaussian_events([(mu / math.sqrt(draws), draws), (gdp(self._coin(self._slack)), 1)])


def flat_first(domain: Domain, beta: float, steep: float) -> float:
    """Return a bound on the first term of regret without a regulariser, `steep` being `lipschitz * horizon`.

    It is min over e in (0, 1] of d log(1/e)/beta + e steep m, m the mean distance of the uniform law from any point
    (docs/theory, P6d with lam = 0); on an interval the integral itself.

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
    depend on the decisions, privacy holds for all (docs/theory, R6).

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
    most, S = within_failures(one_draw(domain, T), T, eps, small, S)
    if T > 1 and S != 0:
        costs = _Costs(domain, T, most, small, 2.0 if neighbors == "replace" else 1.0, S)
        made = [_plan(costs, found, G, claim) for found in search(costs)]
        plans += [plan for plan in made if plan is not None]
    return min(plans, key=lambda plan: plan.regret_bound)


class _Costs(Costs):
    """The strength of a measure is beta, in units of 1/(G R)."""

    @property
    def strengths(self) -> tuple[float, float]:
        most = 2 * self.most / (self.change * self.wide)
        return most / (40 * math.sqrt(self.T)) / self.weaker, most

    def law(self, at: Trials, strength: Array) -> Law:
        return Law(2 * strength * at.batch, 2 * strength, _RENYI * strength * self.change * self.wide / 2)

    def measure(self, at: Trials, strength: Array) -> Array:
        steep = self.T / self.domain.radius
        first = np.array([flat_first(self.domain, float(beta), steep) for beta in strength])
        return first + strength * at.batch * self.wide**2 * self.T / 8

    def useful(self, at: Trials, strength: Array) -> Flags:
        # Where the slope of d (log(beta pull/d) + 1)/beta, the first term, outweighs that of stability; it does so in
        # one stretch of beta, and what lies before that stretch is no reason to stop.
        d, steep = self.domain.chart_dim, self.T / self.domain.radius
        pull = steep * _mean_distance(self.domain, 0.0)
        if d == 1 and isinstance(self.domain, Ball | Box):
            pull = 2 * steep * self.domain.radius / math.e
        stability = at.batch * self.wide**2 * self.T / 8
        falls = np.log(strength * pull / d) > stability * strength**2 / d
        goes_on: Flags = falls | (strength <= np.sqrt(d / (2 * stability)))
        return goes_on


def _plan(costs: _Costs, found: Found, G: float, claim: dict[str, Any]) -> FlatPlan | None:
    """Return the plan of a candidate: its budget a whole number, and the largest beta that serves and is private."""
    at = Trials.of(found.point[None])
    at = at._replace(batch=np.round(at.batch))  # a logarithm may have lost its last digit
    batch, p = int(at.batch[0]), float(at.p[0])
    n = math.ceil(costs.T / batch) - 1
    law = costs.law(at, np.array([found.strength]))
    budget = min(max(1, math.ceil(float(costs.budget(at, law)[0][0]) - 1e-6)), max(n, 1))
    unit = 1 / (G * costs.domain.radius)
    values: dict[str, Any] = {"p": p, "budget": budget, "batch": batch, "neighbors": claim["neighbors"]}
    low, high = math.log(found.strength * 0.7 * unit), math.log(min(found.strength * 1.4, costs.limit(at)) * unit)
    best = None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        plan = FlatPlan(costs.domain, costs.T, G, beta=math.exp(middle), **values)
        if plan.account().delta(costs.epsilon) <= costs.delta * (1 - 1e-9):
            low, best = middle, plan
        else:
            high = middle
    if best is None:
        return None
    # Where draws may fail privacy may leave room for far more than the budget does (docs/theory, Q11).
    enough = costs.limit(at, budget) * unit
    if p < 1 and enough < best.beta:
        best = min(best, replace(best, beta=enough), key=lambda plan: plan.regret_bound)
    return replace(best, **claim)


def _propose(goal: Goal) -> FlatPlan:
    return plan_flat(*goal.target, neighbors=goal.neighbors, max_switches=goal.max_switches)


FLAT = System(FlatPlan.system, _propose, private=True, lazy=True)


# Continuous multiplicative weights over a body, kept as by the shrinking dartboard (Asi et al. 2023).


@saved("flat weights")
class FlatWeights(SystemLearner):
    """Plays draws of the weights exp(-beta * sum of past losses), each kept while its own weight hardly falls.

    Algorithm: x_1 is uniform on the body. After every batch the switch is forced with probability p; else x is kept
    with probability exp(-beta (L(x) - m)), L the sum of the batch's losses and m the sum of lower bounds of each over
    the body: the shrinking dartboard of Geulen, Voecking and Winkler, on a continuum. On a switch x is a fresh draw of
    the weights. After `plan.budget` switches it stays. It is P-COMW with lam = 0 and another coin, which needs no
    auxiliary draw at all; derived from the published idea.

    Theorem (docs/theory, R6): for losses that do not depend on the decisions these follow the weights exactly, and
    regret is at most (d/beta) log(1/e) + e G T m + beta G^2 D^2 (sum of squared batches)/8, any e in (0, 1] and m the
    mean distance of the uniform law, plus G D T times the chance that the budget runs out. Privacy holds for losses
    that react to decisions: a draw has a privacy loss of range beta Delta D, later coins cost nothing. Assumes convex
    Lipschitz losses. Draws are exact; without a regulariser some are too hard, and raise `WorkLimitError`. Reference:
    Asi, Feldman, Koren and Talwar 2023.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_flat(rt.Interval(-1.0, 1.0), 2000, 1.0, epsilon=3.0, delta=1e-5)
    >>> learner = rt.learners.FlatWeights(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((2000, 1)), np.full(2000, 0.5))
    >>> trace.switches <= plan.budget, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 3.0
    (True, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = FlatPlan

    def _new_walk(self) -> Decider:
        measure = exact_measure(self.plan, 0.0, self.loss, self._on_steep)
        return Walk(self.plan, measure, self._rng, DartboardCoin(self.plan))


@saved("dartboard coin")
class DartboardCoin(KeepingCoin):
    """Keeps x with probability exp(-beta (L(x) - m)), m a lower bound of L that is a function of the batch alone."""

    def __init__(self, plan: FlatPlan) -> None:
        super().__init__(plan.p, plan.floor)
        self.beta = plan.beta

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep; it reads nothing of the past but the decision."""
        least = float(least_losses(measure.domain, measure.loss, rows).sum())
        here = float(measure.loss.total(measure.domain, rows, u[None])[0])
        return math.exp(self.beta * min(0.0, least - here))


def least_losses(domain: Domain, loss: Loss, rows: Any) -> Array:
    """Return a lower bound of how each round's loss over the domain exceeds that at the centre.

    It is within 2 R times the round's Lipschitz constant of all values.

    >>> import reticent as rt
    >>> rows = rt.Absolute().prepare(rt.Interval(-1.0, 1.0), [[1.0], [1.0]], [0.5, 3.0])
    >>> least_losses(rt.Interval(-1.0, 1.0), rt.Absolute(), rows)
    array([-0.5, -1. ])
    """
    if isinstance(rows, Objects):
        return -domain.radius * rows.bounds
    low, high = margin_range(domain, Rows(rows.vectors, np.zeros(len(rows))))
    if isinstance(loss, Linear):
        return low
    assert isinstance(loss, GeneralisedLinear)
    # Losses of labels fall with the margin; the others are least where it is 0.
    return loss.rise(rows.offsets, high if isinstance(loss, Label) else np.clip(-rows.offsets, low, high))
