"""Plans of perturbed leaders over experts: fresh noise every round, or noise that is reused to switch rarely."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.planning._experts import ExpertsPlan, check_experts
from reticent.planning._goal import Goal, System

NOISES = ("laplace", "uniform")


@dataclass(frozen=True, kw_only=True)
class PerturbedPlan(ExpertsPlan):
    """Follow the perturbed leader: the least of sums plus noise that is drawn afresh every round.

    `noise` "laplace" has density (rate/2) exp(-rate |z|) for each expert, "uniform" is uniform on [0, 1/rate].
    Expected regret (docs/theory.md, R4) is at most c_n/rate + T G tanh(rate G/2), c_n the mean of the largest of n
    standard Laplace variables; or (1/2 - 1/(n+1))/rate + T G (1 - (1 - rate G)^(n-1)).

    >>> from reticent.domains import Experts
    >>> [round(plan_perturbed_leader(Experts(10), 10_000, 1.0, noise=noise).regret_bound) for noise in NOISES]
    [211, 382]
    """

    system: ClassVar[str] = "follow the perturbed leader (FPL)"
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
        """The bound of docs/theory.md, R4."""
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
        """The bound of docs/theory.md, R4."""
        return _regret(self.law, self.n, self.rate, self.lipschitz, self.horizon)


@dataclass(frozen=True, kw_only=True)
class LazyPerturbedPlan(_LazyPlan):
    """Follow the lazy leader, FLL*: Laplace noise of that `rate`, reused so that sums plus noise rarely change.

    Every round has the law of `PerturbedPlan` with "laplace", and so its regret bound. A round changes the leader with
    probability at most min(1 - exp(-a (n-1)), sqrt(1 - (1+a)^(2n-2) exp(-2a (n-1)))), a = rate G/2 (docs/theory.md,
    R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_lazy_leader_star(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 368)
    """

    system: ClassVar[str] = "follow the lazy leader (FLL*), experts"
    law: ClassVar[str] = "laplace"

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory.md, R4."""
        return self.horizon * float(reflections(self.n, self.rate * self.lipschitz))


@dataclass(frozen=True, kw_only=True)
class ExpertsLazyLeaderPlan(_LazyPlan):
    """Follow the lazy leader, FLL: the leader of a random grid point of side 1/rate just above the sums.

    Every round has the law of `PerturbedPlan` with "uniform", and so its regret bound. A round changes the leader with
    probability at most 1 - (1 - rate G)^(n-1) (docs/theory.md, R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_experts_lazy_leader(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 467)
    """

    system: ClassVar[str] = "follow the lazy leader (FLL), experts"
    law: ClassVar[str] = "uniform"

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory.md, R4."""
        return self.horizon * _moves(self.n, self.rate * self.lipschitz)


def largest_laplace(n: int) -> float:
    """Return the mean of the largest of n variables with density exp(-|z|)/2 (docs/theory.md, R4).

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


def largest(chance: Callable[[float], float], share: float) -> float:
    """Return the largest size, up to 700, at which a rising chance of a switch per round is at most `share`.

    >>> round(largest(lambda size: size / 2, 0.25), 9)
    0.5
    """
    if chance(700.0) <= share:
        return 700.0
    low, high = math.log(1e-18), math.log(700.0)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(math.exp(middle)) <= share else (low, middle)
    return math.exp(low)


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


SYSTEMS = (
    System(PerturbedPlan.system, _perturbed, experts=True),
    System(LazyPerturbedPlan.system, _lazy_star, lazy=True, experts=True),
    System(ExpertsLazyLeaderPlan.system, _lazy, lazy=True, experts=True),
)
