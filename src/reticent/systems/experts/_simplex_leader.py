"""Experts drawn from the regularised leader on the simplex, without noise: the best certificates for two or three."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from reticent._core import _names
from reticent._core._check import integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain, Simplex
from reticent.losses import Linear
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._plan import SystemPlan
from reticent.systems.descent._descent import LeaderPlan, LeaderWalk
from reticent.systems.experts._drawn_leader import Drawn, steepness
from reticent.systems.experts._hedge import ExpertsPlan, check_experts
from reticent.systems.experts._learner import ExpertsLearner


@saved("plan of the leader of the simplex")
@dataclass(frozen=True, kw_only=True)
class SimplexLeaderPlan(ExpertsPlan):
    """FTRL with the square `lam`/2 |p - center|^2 on the simplex of probabilities, and an expert drawn from its point.

    Regret is at most lam (1 - 1/n)/2 + T (k G)^2/(2 lam) and expected switches T k^2 G/lam, k^2 = n/4 for even n and
    (n - 1/n)/4 for odd (docs/theory, R4i): both are less than Hedge's and the dartboard's for two or three experts.

    >>> from reticent.domains import Experts
    >>> plan = plan_simplex_leader(Experts(2), 1_000_000, 1.0)
    >>> round(plan.regret_bound), round(plan.expected_switches)
    (500, 500)
    """

    system: ClassVar[str] = _names.SIMPLEX_LEADER
    reference: ClassVar[str] = "Shalev-Shwartz and Singer 2007; Hazan 2016 (FTRL)"

    lam: float

    def _check(self) -> None:
        super()._check()
        self._set(lam=self.leader.lam)

    @cached_property
    def leader(self) -> LeaderPlan:
        """The plan of the leader on the simplex."""
        return LeaderPlan(Simplex(self.n), self.horizon, steepness(self.n) * self.lipschitz, lam=self.lam)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4i, without noise."""
        return self.leader.regret_bound

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R4i, for losses that do not react to decisions."""
        return self.horizon * min(1.0, steepness(self.n) ** 2 * self.lipschitz / self.lam)


def plan_simplex_leader(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None
) -> SimplexLeaderPlan:
    """Return the drawn leader with the best regulariser that keeps expected switches at `max_switches` or less.

    >>> from reticent.domains import Experts
    >>> plan = plan_simplex_leader(Experts(2), 1_000_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 1300)
    """
    check_experts(domain)
    n, T, G = domain.dim, integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    lam = steepness(n) * G * math.sqrt(T / (1 - 1 / n))
    if max_switches is not None:
        # A little more, so that rounding never shows more switches than that.
        lam = max(lam, (1 + 1e-12) * steepness(n) ** 2 * G * T / integer("max_switches", max_switches, least=1))
    return SimplexLeaderPlan(domain, T, G, lam=lam)


def _propose(goal: Goal) -> SimplexLeaderPlan:
    goal.need_a_switch()
    return plan_simplex_leader(*goal.size, goal.max_switches)


SIMPLEX_LEADER = System(SimplexLeaderPlan.system, _propose, lazy=True, experts=True)


@saved("leader of the simplex")
class SimplexLeader(ExpertsLearner):
    """Follows an expert drawn from the regularised leader on the simplex, and keeps it as long as its chances allow.

    Algorithm: p_1 is uniform, p_{t+1} the point of the simplex nearest to minus the sums of losses over lam around the
    centre. The expert in play stays with probability min(1, p_{t+1}/p_t) of its own; else one is drawn from the
    positive part of p_{t+1} - p_t.
    Theorem: expected regret <= lam (1 - 1/n)/2 + T (k G)^2/(2 lam), expected switches <= T k^2 G/lam, with
    k^2 = floor(n/2) ceil(n/2)/n (docs/theory, R4i), for losses that do not react to decisions. Linear losses over
    experts, of range G. Not private: `DrawnLeader` is the same with noise.
    References: Shalev-Shwartz and Singer 2007; Hazan 2016. Derived from these.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_simplex_leader(rt.Experts(3), 1000, 1.0)
    >>> learner = rt.learners.SimplexLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches <= 2
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = SimplexLeaderPlan

    def _new_walk(self) -> Decider:
        return Drawn(self.plan.n, self._rng, LeaderWalk(self.plan.leader, Linear()))
