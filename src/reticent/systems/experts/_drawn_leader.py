"""Experts drawn from private leaders on the simplex: noisy sums of losses, and a draw that costs nothing more."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent._core import _names
from reticent._core._check import Array
from reticent._core._random import apart
from reticent._core._tags import saved
from reticent.domains import Domain, Simplex
from reticent.losses import Linear, Rows
from reticent.privacy._account import Statement
from reticent.saving import refuse_unless
from reticent.systems._decider import Changes, Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import largest_step
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk
from reticent.systems.experts._hedge import ExpertsPlan, check_experts
from reticent.systems.experts._learner import ExpertsLearner, ExpertsWalk
from reticent.systems.ftrl._learner import NoisyLeader
from reticent.systems.ftrl._plan import FTRLPlan
from reticent.systems.ftrl._search import plan_ftrl


def steepness(n: int) -> float:
    """Return how long a vector of `n` numbers of range 1 can be once its mean is taken off (docs/theory, R4i).

    >>> round(steepness(2), 6), steepness(4)
    (0.707107, 1.0)
    """
    return math.sqrt((n // 2) * (n - n // 2) / n)


@dataclass(frozen=True, kw_only=True)
class DrawnPlan(ExpertsPlan):
    """What plans share whose experts are drawn from noisy sums of losses: the sums are released, draws reveal no more.

    `leader` is the plan of the sums, whose claim of privacy is made here, not there.
    """

    leader: ClassVar[Any]

    @property
    @abstractmethod
    def steps(self) -> Array:
        """The steps of the public grid of what is released, in the chart of the simplex."""

    @property
    def max_switches(self) -> int:
        """One change after each full batch."""
        return int(self.leader.max_switches)

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return what is proved of the leader: what is drawn from it is post-processing."""
        found: tuple[Statement, ...] = self.leader.statements(rounds)
        return found

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements with what rounding may add to what experts are drawn from."""
        found: tuple[Statement, ...] = self.leader.in_floating_point(rounds)
        return found

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is."""
        return self.leader.dp_event()


@saved("plan of the drawn leader")
@dataclass(frozen=True, kw_only=True)
class DrawnLeaderPlan(DrawnPlan):
    """DP-FTRL on the simplex of probabilities, whose point after every `batch` rounds says how an expert is drawn.

    `lam` is the regulariser and `sigma` the noise at its source, `weights` and `decays` are those of Toeplitz noise as
    in `FTRLPlan`. The point is released as in DP-FTRL, and an expert drawn from it reveals no more; in the mean it
    loses what the point does (docs/theory, R4i).

    >>> from reticent.domains import Experts
    >>> plan = plan_drawn_leader(Experts(3), 1_000_000, 1.0, epsilon=0.1, delta=1e-6)
    >>> plan.regret_bound < 800, round(plan.account().epsilon(1e-6), 6)
    (True, 0.1)
    """

    system: ClassVar[str] = _names.DRAWN_LEADER
    reference: ClassVar[str] = "Agarwal and Singh 2017 (FTRL on the simplex); Kairouz et al. 2021 (the noise)"

    lam: float
    sigma: float
    batch: int = 1
    weights: tuple[float, ...] = ()
    decays: tuple[float, ...] = ()

    def _check(self) -> None:
        super()._check()
        checked = self.leader
        self._set(lam=checked.lam, sigma=checked.sigma, batch=checked.batch)
        self._set(weights=checked.weights, decays=checked.decays)

    @cached_property
    def leader(self) -> FTRLPlan:
        """The plan of the leader on the simplex; its own claim of privacy is made here, not there."""
        return FTRLPlan(
            Simplex(self.n),
            self.horizon,
            steepness(self.n) * self.lipschitz,
            lam=self.lam,
            sigma=self.sigma,
            batch=self.batch,
            linear=True,
            weights=self.weights,
            decays=self.decays,
            neighbors=self.neighbors,
        )

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4i."""
        return self.leader.regret_bound + self.leader.lipschitz * self.horizon * self._step

    @property
    def _step(self) -> float:
        """How far rounding may move the point that experts are drawn from."""
        return largest_step(self.leader.domain, cut=False) if self.private else 0.0

    @property
    def steps(self) -> Array:
        """The grid of the simplex."""
        return self.leader.grid


def plan_drawn_leader(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    batch: int | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
) -> DrawnLeaderPlan:
    """Return the private leader on the simplex, from which experts are drawn, of least certified regret.

    It is best for two or three experts; for more see `plan_agarwal_singh_experts`, and for few changes
    `plan_private_dartboard`.
    `max_switches` is a hard cap, through batches.

    >>> from reticent.domains import Experts
    >>> plan_drawn_leader(Experts(5), 10_000, 1.0, 1.0, 1e-6, max_switches=100).max_switches
    100
    """
    check_experts(domain)
    n = domain.dim
    found = plan_ftrl(
        Simplex(n),
        horizon,
        steepness(n) * lipschitz,
        epsilon,
        delta,
        batch=batch,
        max_switches=max_switches,
        neighbors=neighbors,
        linear=True,
    )
    return DrawnLeaderPlan(
        domain,
        found.horizon,
        lipschitz,
        lam=found.lam,
        sigma=found.sigma,
        batch=found.batch,
        weights=found.weights,
        decays=found.decays,
        epsilon=found.epsilon,
        delta=found.delta,
        neighbors=neighbors,
    )


def _propose(goal: Goal) -> DrawnLeaderPlan:
    return plan_drawn_leader(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


DRAWN = System(DrawnLeaderPlan.system, _propose, private=True, lazy=True, experts=True)


@saved("drawn leader")
class DrawnLeader(ExpertsLearner):
    """Follows an expert drawn from the probabilities that DP-FTRL releases, and keeps it as long as these allow.

    Algorithm: p_1 is uniform; after batch k, p_{k+1} is the point of the simplex nearest to -(S_k + N_k)/lam around
    the centre, S_k the sums of the experts' losses and N_k correlated Gaussian noise. The expert in play stays with
    probability min(1, p_{k+1}/p_k) of its own; else one is drawn from the positive part of p_{k+1} - p_k. So its law
    given the points is p_{k+1}, with as few changes as two such laws allow.
    Theorem: private as DP-FTRL is, also for losses that react to decisions; expected regret is that of DP-FTRL for
    linear losses on the simplex, for losses that do not (docs/theory, R4i). Linear losses over experts, of range G.
    References: Agarwal and Singh 2017; Kairouz et al. 2021. Derived from these.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_drawn_leader(rt.Experts(3), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.DrawnLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (10_000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 1
    (1, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = DrawnLeaderPlan

    def _new_walk(self) -> Decider:
        return Drawn(self.plan.n, self._rng, noisy_leader(self.plan, self._rng))


def noisy_leader(plan: DrawnPlan, rng: np.random.Generator) -> NoisyLeader:
    """Return the walk of noisy sums, on the grid of the plan if that is private."""
    leader = NoisyLeader(plan.leader, Linear(), rng)
    if plan.private:
        leader.steps = plan.steps
    return leader


@saved("walk of the drawn leader")
class Drawn(ExpertsWalk):
    """The walk of a leader on the simplex, with noise or without, and an expert drawn from where it stands."""

    _moves = ("leader", "own", "chances")

    def __init__(self, n: int, rng: np.random.Generator, leader: StepWalk) -> None:
        """Start with an expert of the uniform law."""
        super().__init__(n, rng, leader.batch)
        self.leader = leader
        # The leader draws the noise of a whole block of rounds before the first expert of it is drawn.
        self.own = apart(rng)
        self.chances = np.full(n, 1 / n)
        self._start(int(self.own.integers(n)))

    def _catch_up(self, found: Drawn) -> None:
        refuse_unless(found.leader.done == found.done, "its leader has not taken in the rounds that it has")

    def _check_moved(self) -> None:
        super()._check_moved()
        told = self._law(self.leader.u[None])[0]
        same = np.allclose(self.chances, told, rtol=1e-9, atol=1e-12)
        refuse_unless(same, f"its chances {self.chances!r} are not those at the point of its leader")

    def _law(self, points: Array) -> Array:
        """Return the chances of experts at points that the leader has released: on the simplex, the points."""
        found: Array = np.maximum(self.leader.domain.from_chart(points), 0.0)
        return found

    def _play(self, vectors: Array, after: NDArray[np.int64]) -> None:
        from reticent.systems.experts._kernel import draw_along  # numba loads on first use

        simplex, before, found = Simplex(self.n), self.leader.done, Changes()
        self.leader.take(Rows(*simplex.pull(vectors)), found)
        points = self._law(found.points(simplex.chart_dim))
        draw_along(self.own, found.places() - before - 1, points, self.chances, self.expert, after)
