"""Plans of private implicit gradient descent: the iterate is hidden, and each decision is that iterate plus noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy

from reticent._check import Array, positive
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.planning._goal import Goal, NotApplicable, System
from reticent.planning._noise_cost import mean_length
from reticent.planning._plan import check_body, check_firm
from reticent.planning._system import SystemPlan
from reticent.planning._target import check_target

if TYPE_CHECKING:
    from reticent.privacy._ledger import Statement

_TABLE = 1024  # terms added one by one; beyond, four terms of Euler and Maclaurin leave less than 1e-13


@dataclass(frozen=True, kw_only=True)
class ImplicitPlan(SystemPlan):
    """Implicit gradient descent on losses with `alpha`/2 |x - center|^2 added, noise on what is released only.

    The hidden iterates of neighbouring streams are no more than Delta/(alpha t) apart before round t. Decision t has
    noise of deviation `deviation(t)`, which falls as t^(-2/3): of all with the same privacy the least in sum
    (docs/theory.md, R3). `noise` is that of t = 1.

    >>> from reticent.domains import Ball
    >>> plan = plan_implicit(Ball(3), 10_000, 1.0, 3.0, 1e-6)
    >>> round(plan.account().epsilon(1e-6), 6), plan.vacuous
    (3.0, False)
    """

    system: ClassVar[str] = "implicit descent (Jain et al.)"
    reference: ClassVar[str] = "Jain, Kothari and Thakurta 2012"

    alpha: float
    noise: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(
            alpha=check_firm("alpha", self.alpha, self.domain, self.lipschitz),
            noise=positive("noise", self.noise, zero=True),
        )

    @property
    def first_change(self) -> float:
        """The largest distance of neighbouring iterates that the bound Delta/(alpha t) leaves at t = 1."""
        return min(self.change / self.alpha, self.domain.diameter)

    @property
    def knee(self) -> float:
        """The round up to which neighbouring iterates may be as far apart as the domain is wide; 1 if none."""
        return max(1.0, self.change / (self.alpha * self.domain.diameter))

    def deviation(self, t: int) -> float:
        """Return the standard deviation of the noise, in each coordinate of the chart, on the decision of round t.

        The first decision is the centre, without noise.
        """
        return 0.0 if t <= 1 else self.noise * math.pow(min(1.0, self.knee / t), 2 / 3)

    def mu(self, rounds: int) -> float:
        """Return the mu of the decisions that `rounds` rounds lead to: those of rounds 2 to `rounds` + 1."""
        if rounds == 0:
            return 0.0
        total = math.sqrt(self._shares(rounds + 1))
        return math.inf if self.noise == 0 else self.first_change / self.noise * total

    def _shares(self, last: int) -> float:
        """Return the sum over t = 2..last of min(1, knee/t)^(2/3)."""
        flat = min(int(self.knee), last)
        return flat - 1 + math.pow(self.knee, 2 / 3) * power_sum(flat + 1, last)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R3."""
        T, G, R = self.horizon, self.lipschitz, self.domain.radius
        hidden = self.alpha * (T + 1) * R**2 / 2 + G**2 * harmonic(T) / (2 * self.alpha)
        return hidden + G * self._distances()

    def _distances(self) -> float:
        """Return a bound on the sum over rounds of the expected distance of decision and iterate."""
        T, D, first = self.horizon, self.domain.diameter, mean_length(self.domain.chart_dim) * self.noise
        # Up to round `wide` the noise may be larger than the domain, and the distance is at most the diameter.
        wide = min(T, int(min(float(T), self.knee * math.pow(first / D, 1.5)))) if first > D else 1
        flat = min(max(int(self.knee), wide), T)
        rest = (flat - wide) * first + first * math.pow(self.knee, 2 / 3) * power_sum(flat + 1, T)
        return (wide - 1) * D + rest

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses whose proximal step is not known."""
        if isinstance(loss, Custom):
            raise ValueError(
                f"loss must be Linear or one of the generalised linear losses for {self.system}, whose implicit steps "
                f"minimise each loss, got {loss!r}; PCOMW and DPFTRL take any convex loss"
            )

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the decisions are `mu(rounds)`-GDP (docs/theory.md, R3)."""
        from reticent.privacy._ledger import gaussian

        return (gaussian(finite(self, self.mu(rounds))),)

    def dp_event(self) -> Any:
        """Return the Gaussian event of the whole run."""
        return gaussian_event(finite(self, self.mu(self.horizon)))


def plan_implicit(
    domain: Domain, horizon: int, lipschitz: float, epsilon: float, delta: float, *, neighbors: str = "replace"
) -> ImplicitPlan:
    """Return private implicit descent with the regulariser and the noise of least certified regret.

    >>> from reticent.domains import Interval
    >>> plan = plan_implicit(Interval(-1.0, 1.0), 100_000, 1.0, 1.0, 1e-6, neighbors="zero-out")
    >>> plan.regret_bound < 0.4 * plan.horizon
    True
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()

    def at(alpha: float) -> ImplicitPlan:
        shell = ImplicitPlan(domain, T, G, alpha=alpha, noise=1.0, neighbors=neighbors)
        return ImplicitPlan(domain, T, G, alpha=alpha, noise=shell.mu(T) / most, neighbors=neighbors)

    # Below the first the hidden iterate alone is far from the best, above the second the regulariser is.
    R = domain.radius
    found = at(least_at(lambda a: at(a).regret_bound, 1e-3 * G / (R * math.sqrt(T)), 10 * G / R))
    return ImplicitPlan(
        domain, T, G, alpha=found.alpha, noise=found.noise, epsilon=epsilon, delta=delta, neighbors=neighbors
    )


def least_at(cost: Callable[[float], float], low: float, high: float) -> float:
    """Return about where a function of a positive number is least: on a grid, then between the neighbours of its best.

    >>> round(least_at(lambda x: x + 4 / x, 0.01, 100.0), 4)
    2.0
    """
    grid = np.linspace(math.log(low), math.log(high), 120)
    values = [cost(math.exp(x)) for x in grid]
    best = int(np.argmin(values))
    between = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)]))
    found = scipy.optimize.minimize_scalar(
        lambda x: cost(math.exp(x)), bounds=between, method="bounded", options={"xatol": 1e-6}
    )
    return math.exp(float(found.x) if found.fun < values[best] else float(grid[best]))


def power_sum(first: int, last: int) -> float:
    """Return the sum of t^(-2/3) over t = first..last.

    >>> power_sum(8, 8), power_sum(3, 2)
    (0.25, 0.0)
    """
    few: Array = np.arange(first, min(last, _TABLE) + 1, dtype=np.float64)
    total = float((few ** (-2 / 3)).sum())
    a, b = float(max(first, _TABLE + 1)), float(last)
    if b >= a:
        total += 3 * (b ** (1 / 3) - a ** (1 / 3)) + (a ** (-2 / 3) + b ** (-2 / 3)) / 2
        total += (a ** (-5 / 3) - b ** (-5 / 3)) / 18
    return total


def harmonic(n: int) -> float:
    """Return 1 + 1/2 + ... + 1/n.

    >>> round(harmonic(4), 9)
    2.083333333
    """
    return float(scipy.special.digamma(n + 1.0)) + float(np.euler_gamma)


def gaussian_event(mu: float) -> Any:
    """Return the event of dp_accounting of a release that is `mu`-GDP."""
    from dp_accounting import GaussianDpEvent, NoOpDpEvent

    return GaussianDpEvent(1 / mu) if mu > 0 else NoOpDpEvent()


def finite(plan: SystemPlan, mu: float) -> float:
    """Return `mu`, or say that there is no account without noise."""
    if not math.isfinite(mu):
        raise ValueError(f"noise must be greater than 0 for a privacy account of {plan.system}, got 0.0")
    return mu


def _implicit(goal: Goal) -> ImplicitPlan:
    if isinstance(goal.loss, Custom):
        raise NotApplicable("needs the proximal step of the loss, which a custom loss does not tell")
    return plan_implicit(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (System(ImplicitPlan.system, _implicit, private=True),)
