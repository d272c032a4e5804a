"""Perturbed leaders over experts: with fresh noise every round, or noise that is reused to switch rarely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._plan import SystemPlan
from reticent.systems.experts._hedge import ExpertsPlan, check_experts, largest
from reticent.systems.experts._learner import Experts, ExpertsLearner, ExpertsWalk

NOISES = ("laplace", "uniform")


@saved("plan of the perturbed leader")
@dataclass(frozen=True, kw_only=True)
class PerturbedPlan(ExpertsPlan):
    """Follow the perturbed leader: the least of sums plus noise that is drawn afresh every round.

    `noise` "laplace" has density (rate/2) exp(-rate |z|) for each expert, "uniform" is uniform on [0, 1/rate].
    Expected regret (docs/theory, R4) is at most c_n/rate + T G tanh(rate G/2), c_n the mean of the largest of n
    standard Laplace variables; or (1/2 - 1/(n+1))/rate + T G (1 - (1 - rate G)^(n-1)).

    >>> from reticent.domains import Experts
    >>> [round(plan_perturbed_leader(Experts(10), 10_000, 1.0, noise=noise).regret_bound) for noise in NOISES]
    [211, 382]
    """

    system: ClassVar[str] = _names.FPL
    reference: ClassVar[str] = "Kalai and Vempala 2005"

    rate: float
    noise: str = "laplace"

    def _check(self) -> None:
        super()._check()
        self._set(rate=positive("rate", self.rate))
        if self.noise not in NOISES:
            raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {self.noise!r}")

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4."""
        return _regret(self.noise, self.n, self.rate, self.lipschitz, self.horizon)


@dataclass(frozen=True, kw_only=True)
class _LazyPlan(ExpertsPlan):
    """Noise of some `rate` that is reused: every round has the law of `PerturbedPlan`, and so its regret bound."""

    reference: ClassVar[str] = "Kalai and Vempala 2005"
    law: ClassVar[str]

    rate: float

    def _check(self) -> None:
        super()._check()
        self._set(rate=positive("rate", self.rate))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4."""
        return _regret(self.law, self.n, self.rate, self.lipschitz, self.horizon)


@saved("plan of FLL*")
@dataclass(frozen=True, kw_only=True)
class LazyPerturbedPlan(_LazyPlan):
    """Follow the lazy leader, FLL*: Laplace noise of that `rate`, reused so that sums plus noise rarely change.

    Every round has the law of `PerturbedPlan` with "laplace", and so its regret bound. A round changes the leader with
    probability at most min(1 - exp(-a (n-1)), sqrt(1 - (1+a)^(2n-2) exp(-2a (n-1)))), a = rate G/2 (docs/theory,
    R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_lazy_leader_star(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 368)
    """

    system: ClassVar[str] = _names.FLL_STAR
    law: ClassVar[str] = "laplace"

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R4."""
        return self.horizon * float(reflections(self.n, self.rate * self.lipschitz))


@saved("plan of FLL over experts")
@dataclass(frozen=True, kw_only=True)
class ExpertsLazyLeaderPlan(_LazyPlan):
    """Follow the lazy leader, FLL: the leader of a random grid point of side 1/rate just above the sums.

    Every round has the law of `PerturbedPlan` with "uniform", and so its regret bound. A round changes the leader with
    probability at most 1 - (1 - rate G)^(n-1) (docs/theory, R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_experts_lazy_leader(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 467)
    """

    system: ClassVar[str] = _names.FLL_EXPERTS
    law: ClassVar[str] = "uniform"

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R4."""
        return self.horizon * _moves(self.n, self.rate * self.lipschitz)


def largest_laplace(n: int) -> float:
    """Return the mean of the largest of n variables with density exp(-|z|)/2 (docs/theory, R4).

    >>> largest_laplace(2)
    0.75
    """
    k = np.arange(1, n + 1)
    with np.errstate(under="ignore"):
        return float((-np.expm1(-k * math.log(2.0)) / k).sum()) - math.exp(-n * math.log(2.0)) / n


def reflections(n: int, size: float) -> float:
    """Return a bound on the distance in variation of Laplace noise from itself moved by 0 and n-1 times `size` or less.

    By a coupling of each coordinate, or by Hellinger's affinity of all of them, whichever is less.

    >>> round(reflections(2, 0.1), 6), round(reflections(101, 0.1), 6)
    (0.048771, 0.463593)
    """
    half = size / 2
    apart = -math.expm1(-(n - 1) * half)
    affinity = (n - 1) * (math.log1p(half) - half)
    return min(apart, math.sqrt(-math.expm1(2 * affinity)))


def _moves(n: int, size: float) -> float:
    """Return the chance that a grid point of side 1 moves with n-1 coordinates of length `size` at most."""
    return 1.0 if size >= 1 else -math.expm1((n - 1) * math.log1p(-size))


def _regret(noise: str, n: int, rate: float, lipschitz: float, horizon: int) -> float:
    size = rate * lipschitz
    if noise == "laplace":
        return largest_laplace(n) / rate + horizon * lipschitz * math.tanh(size / 2)
    return (0.5 - 1 / (n + 1)) / rate + horizon * lipschitz * _moves(n, size)


def plan_perturbed_leader(domain: Domain, horizon: int, lipschitz: float, *, noise: str = "laplace") -> PerturbedPlan:
    """Return FPL with the best rate for noise of this kind."""
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {noise!r}")
    return PerturbedPlan(domain, T, G, rate=_best(noise, domain.dim, G, T), noise=noise)


def plan_lazy_leader_star(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None
) -> LazyPerturbedPlan:
    """Return FLL* with the best rate that keeps expected switches at `max_switches` or less."""
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    rate = _best("laplace", domain.dim, G, T)
    if max_switches is not None:
        share = integer("max_switches", max_switches, least=1) / T
        rate = min(rate, largest(lambda size: reflections(domain.dim, size), share) / G)
    return LazyPerturbedPlan(domain, T, G, rate=rate)


def plan_experts_lazy_leader(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None
) -> ExpertsLazyLeaderPlan:
    """Return FLL with the best rate that keeps expected switches at `max_switches` or less."""
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    rate = _best("uniform", domain.dim, G, T)
    if max_switches is not None:
        share = integer("max_switches", max_switches, least=1) / T
        rate = min(rate, largest(lambda size: _moves(domain.dim, size), share) / G)
    return ExpertsLazyLeaderPlan(domain, T, G, rate=rate)


def _best(noise: str, n: int, lipschitz: float, horizon: int) -> float:
    """Return the rate with the least regret bound."""
    found = scipy.optimize.minimize_scalar(
        lambda x: _regret(noise, n, math.exp(x), 1.0, horizon),
        bounds=(math.log(1e-12), math.log(1e3)),
        method="bounded",
    )
    return math.exp(float(found.x)) / lipschitz


def _perturbed(goal: Goal) -> PerturbedPlan:
    plans = [plan_perturbed_leader(*goal.size, noise=noise) for noise in NOISES]
    return min(plans, key=lambda plan: plan.regret_bound)


def _lazy_star(goal: Goal) -> LazyPerturbedPlan:
    goal.need_a_switch()
    return plan_lazy_leader_star(*goal.size, goal.max_switches)


def _lazy(goal: Goal) -> ExpertsLazyLeaderPlan:
    goal.need_a_switch()
    return plan_experts_lazy_leader(*goal.size, goal.max_switches)


LEADERS = (
    System(PerturbedPlan.system, _perturbed, experts=True),
    System(LazyPerturbedPlan.system, _lazy_star, lazy=True, experts=True),
    System(ExpertsLazyLeaderPlan.system, _lazy, lazy=True, experts=True),
)


# Perturbed leaders over experts: with fresh noise every round, or noise that is reused to switch rarely.


@saved("perturbed leader")
class PerturbedLeader(ExpertsLearner):
    """Follows the expert with the least sum of losses plus noise, drawn afresh in every round (FPL, FPL*).

    Theorem: expected regret <= c_n/rate + T G tanh(rate G/2) for two-sided exponential noise, c_n the mean of the
    largest of n such variables of rate 1; (1/2 - 1/(n+1))/rate + T G (1 - (1 - rate G)^(n-1)) for noise uniform on [0,
    1/rate] (docs/theory, R4: a sharper constant than that of the paper). For losses that do not react to decisions;
    linear, over experts. Not private, not lazy. Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_perturbed_leader(rt.Experts(3), 1000, 1.0)
    >>> learner = rt.learners.PerturbedLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = PerturbedPlan

    def _new_walk(self) -> Decider:
        return _Perturbed(self.plan, self._rng)


@saved("walk of the perturbed leader")
class _Perturbed(ExpertsWalk):
    def __init__(self, plan: PerturbedPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.rate, self.flat = plan.rate, plan.noise == "uniform"
        self._start(int(rng.integers(plan.n)))  # sums of 0: all experts are alike

    def _play(self, vectors: Array, after: Experts) -> None:
        from reticent.systems.experts._kernel import perturbed  # numba loads on first use

        perturbed(self.rng, self.rate, self.flat, vectors, self.sums, after)


@saved("FLL*")
class LazyLeaderStar(ExpertsLearner):
    """FLL*: noise makes up for each round, so that sums plus noise stay, unless a coin says no; then it is reflected.

    Algorithm: noise p with density proportional to exp(-rate |p|_1); after a round with losses s, p becomes p - s with
    probability min(1, density(p - s)/density(p)), else -p.
    Theorem: every round has the law of FPL with this noise, so its regret bound; expected switches <=
    T min(1 - exp(-a (n-1)), sqrt(1 - (1+a)^(2n-2) exp(-2a (n-1)))), a = rate G/2 (docs/theory, R4). For
    losses that do not react to decisions; linear, over experts. Not private.
    Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_lazy_leader_star(rt.Experts(3), 1000, 1.0, max_switches=20)
    >>> learner = rt.learners.LazyLeaderStar(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches < 20
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyPerturbedPlan

    def _new_walk(self) -> Decider:
        return _Reflecting(self.plan, self._rng)


@saved("walk of FLL*")
class _Reflecting(ExpertsWalk):
    _moves = ("noise",)

    def __init__(self, plan: LazyPerturbedPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.rate = plan.rate
        self.noise = (rng.standard_exponential(plan.n) - rng.standard_exponential(plan.n)) / plan.rate
        self._start(int(np.argmin(self.noise)))

    def _play(self, vectors: Array, after: Experts) -> None:
        from reticent.systems.experts._kernel import reflecting

        reflecting(self.rng, self.rate, vectors, self.sums, self.noise, self.expert, after)


@saved("FLL over experts")
class ExpertsLazyLeader(ExpertsLearner):
    """FLL: follows the leader of the point just above the sums on a grid of side 1/rate, placed at random once.

    Algorithm: p uniform on [0, 1/rate)^n, once; the expert i with the least p_i + ceil(rate (S_i - p_i))/rate, S the
    sums of losses.
    Theorem: every round has the law of FPL with uniform noise, so its regret bound; expected switches <=
    T (1 - (1 - rate G)^(n-1)) (docs/theory, R4). For losses that do not react to decisions; linear, over experts.
    Not private. Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_experts_lazy_leader(rt.Experts(3), 1000, 1.0, max_switches=20)
    >>> learner = rt.learners.ExpertsLazyLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches < 20
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ExpertsLazyLeaderPlan

    def _new_walk(self) -> Decider:
        return _Gridded(self.plan, self._rng)


@saved("walk of FLL over experts")
class _Gridded(ExpertsWalk):
    _moves = ("grid", "noise")

    def __init__(self, plan: ExpertsLazyLeaderPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.side = 1 / plan.rate
        self.grid = rng.random(plan.n) * self.side
        self.noise = self.grid.copy()
        self._start(int(np.argmin(self.grid)))

    def _play(self, vectors: Array, after: Experts) -> None:
        from reticent.systems.experts._kernel import gridded

        gridded(self.side, vectors, self.grid, self.noise, self.expert, after)
