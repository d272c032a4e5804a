"""Continuous multiplicative weights for laziness alone: draws that the dartboard's coin keeps, without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.systems._bounds import least_at
from reticent.systems._checks import check_body
from reticent.systems._goal import Goal, System
from reticent.systems._plan import SystemPlan
from reticent.systems.l2p._flat import FlatPlan, FlatWeights, flat_first


@saved("plan of lazy flat weights")
@dataclass(frozen=True, kw_only=True)
class FlatLazyPlan(FlatPlan):
    """`FlatPlan` with a coin after every round that forces nothing: changes are few because the weights move slowly.

    Decisions follow the weights exp(-beta * sum of losses) exactly, and a round changes them with a chance of at most
    1 - exp(-2 beta G R) (docs/theory, R6).

    >>> from reticent.domains import Interval
    >>> plan = plan_flat_lazy(Interval(-1.0, 1.0), 100_000, 1.0, 1000)
    >>> round(plan.expected_switches), plan.regret_bound < 2_500
    (1000, True)
    """

    system: ClassVar[str] = _names.FLAT_LAZY
    reference: ClassVar[str] = "Anava, Hazan and Mannor 2015 (the second method); Geulen, Voecking and Winkler 2010"


def plan_flat_lazy(domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None) -> FlatLazyPlan:
    """Return continuous multiplicative weights of least regret that change `max_switches` times at most in expectation.

    Without `max_switches` beta is the best for regret. Both bounds are for losses that do not depend on the decisions.
    """
    check_body(domain)
    T, G, R = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz), domain.radius
    free = most = math.sqrt(8 * domain.chart_dim * math.log(T + 2) / T) * 10 / (G * domain.diameter)
    if max_switches is not None:
        share = integer("max_switches", max_switches, least=1) / T
        most = most if share >= 1 else min(most, -math.log1p(-share) / (2 * G * R) * (1 - 1e-12))

    def regret(beta: float) -> float:
        return flat_first(domain, beta, G * T) + beta * (G * domain.diameter) ** 2 * T / 8

    # The best is at the cap, or in a valley below it, perhaps at about 0, where nothing is learned. Valleys are looked
    # for without regard to the cap, so that more switches never find less.
    grid = np.geomspace(free * 1e-6, free, 120)
    prices = np.array([regret(beta) for beta in grid.tolist()])
    lowest = np.flatnonzero((prices[1:-1] <= prices[:-2]) & (prices[1:-1] <= prices[2:])) + 1
    valleys = [least_at(regret, float(grid[i - 1]), float(grid[i + 1])) for i in lowest]
    beta = min([most, *(beta for beta in (float(grid[0]), *valleys) if beta <= most)], key=regret)
    return FlatLazyPlan(domain, T, G, beta=beta, p=0.0, budget=T)


def _propose(goal: Goal) -> FlatLazyPlan:
    goal.need_a_switch()
    return plan_flat_lazy(*goal.size, goal.max_switches)


FLAT_LAZY = System(FlatLazyPlan.system, _propose, lazy=True)


@saved("lazy flat weights")
class LazyFlatWeights(FlatWeights):
    """Plays a draw of the weights exp(-beta * sum of past losses), kept while its own weight hardly falls; no privacy.

    Algorithm: x_1 is uniform on the body; after every round x is kept with probability exp(-beta (l(x) - m)), m a lower
    bound of the round's loss l over the body, else drawn afresh. Theorem (docs/theory, R6): for losses that do not
    depend on the decisions these follow the weights exactly; regret is at most (d/beta) log(1/e) + e G T m' + beta G^2
    D^2 T/8, any e in (0, 1] and m' the mean distance of the uniform law; expected switches are at most
    T (1 - exp(-2 beta G R)). Assumes convex Lipschitz losses; draws are exact.
    Reference: Anava, Hazan and Mannor 2015, the second of their methods; Geulen, Voecking and Winkler 2010.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_flat_lazy(rt.Interval(-1.0, 1.0), 2000, 1.0, max_switches=100)
    >>> learner = rt.learners.LazyFlatWeights(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((2000, 1)), np.full(2000, 0.5))
    >>> trace.switches < 150, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = FlatLazyPlan
