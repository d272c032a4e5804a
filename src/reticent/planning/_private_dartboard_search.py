"""The search for the best private dartboard: beta by bisection on the account, the rest on a grid and downhill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from reticent._check import Array, integer
from reticent.domains import Domain
from reticent.planning._descent import block_squares
from reticent.planning._experts import best_beta, check_experts
from reticent.planning._goal import Goal, System
from reticent.planning._private_dartboard import PrivateDartboardPlan, certificates, regret
from reticent.planning._target import check_target

_COARSE, _FINE = 12, 40  # halvings of the range of log beta in the search, and for the plan
_STEPS = 110  # evaluations of the search downhill
_MARGIN = (0.0, 6.0)  # standard deviations that a budget lies above the mean number of draws


@dataclass(frozen=True)
class _Choice:
    beta: float
    p: float
    batch: int
    budget: int
    regret: float


class _Search:
    """Choices for one goal, in units of the Lipschitz constant; a point is log batch, log p and the margin."""

    def __init__(self, n: int, horizon: int, epsilon: float, delta: float, change: float, cap: int | None) -> None:
        self.n, self.horizon, self.epsilon, self.delta, self.change = n, horizon, epsilon, delta, change
        self.cap = horizon if cap is None else cap
        self.batch: int | None = None

    def at(self, point: Array, halvings: int = _COARSE) -> _Choice:
        batch = self.batch or int(np.clip(round(math.exp(min(point[0], 40.0))), 1, self.horizon))
        p, margin = math.exp(min(point[1], 0.0)), float(np.clip(point[2], *_MARGIN))
        high = math.log(best_beta(self.n, 1.0, block_squares(self.horizon, batch)))
        low = high - 30.0
        if self._private(high, p, batch, margin):
            low = high
        else:
            for _ in range(halvings):
                middle = (low + high) / 2
                low, high = (middle, high) if self._private(middle, p, batch, margin) else (low, middle)
        choice = self._choice(low, p, batch, margin)
        if choice.budget < self.cap:
            return choice
        # Where draws are capped, a smaller beta may be better, for it asks for fewer of them.
        found = scipy.optimize.minimize_scalar(
            lambda x: math.log(self._choice(x, p, batch, margin).regret),
            bounds=(low - 8.0, low),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return min(choice, self._choice(float(found.x), p, batch, margin), key=lambda one: one.regret)

    def _choice(self, log_beta: float, p: float, batch: int, margin: float) -> _Choice:
        beta = math.exp(log_beta)
        q, budget = self._budget(beta, p, batch, margin)
        return _Choice(beta, p, batch, budget, regret(self.n, 1.0, self.horizon, beta, batch, q, budget))

    def _budget(self, beta: float, p: float, batch: int, margin: float) -> tuple[float, int]:
        coins, q = self.horizon // batch, 1 - (1 - p) * math.exp(-beta * batch)
        wanted = math.ceil(coins * q + margin * math.sqrt(coins * q * (1 - q)))
        return q, max(1, min(wanted, coins, self.cap))

    def _private(self, log_beta: float, p: float, batch: int, margin: float) -> bool:
        from reticent.privacy import SystemAccount
        from reticent.privacy._coin import Coin

        beta = math.exp(log_beta)
        _, budget = self._budget(beta, p, batch, margin)
        proved = certificates(Coin(p, beta), beta * self.change, budget)
        return SystemAccount(0, "", proved).delta(self.epsilon) <= self.delta * (1 - 1e-9)

    def _log_regret(self, point: Array) -> float:
        return math.log(self.at(point).regret)

    def best(self, batch: int | None) -> _Choice:
        self.batch = batch
        batches = [0.0] if batch else np.unique(np.linspace(0.0, 0.8 * math.log(self.horizon), 7)).tolist()
        grid = [np.array([b, x, 2.0]) for b in batches for x in (0.0, -1.5, -3.0, -4.5, -6.0, -8.0, -10.0)]
        start = min(grid, key=self._log_regret)
        corners = start + np.vstack([np.zeros(3), np.diag([1.0, -0.7, 1.0])])
        options: Any = {"maxfev": _STEPS, "initial_simplex": corners}
        found = scipy.optimize.minimize(self._log_regret, start, method="Nelder-Mead", options=options)
        choices = [self.at(point, _FINE) for point in (start, np.asarray(found.x))]
        return min(choices, key=lambda choice: choice.regret)


def plan_private_dartboard(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    max_switches: int | None = None,
    neighbors: str = "replace",
    batch: int | None = None,
) -> PrivateDartboardPlan:
    """Return the private dartboard with the least regret bound that a search finds for (epsilon, delta).

    Privacy holds for losses that react to decisions, the regret bound for those that do not. `max_switches` is a hard
    cap; `batch` fixes the rounds per coin.

    >>> from reticent.domains import Experts
    >>> plan = plan_private_dartboard(Experts(10), 100_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> plan.account().epsilon(1e-6) <= 1, plan.regret_bound < 2300
    (True, True)
    """
    check_experts(domain)
    T, G, goal, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    cap = None if max_switches is None else integer("max_switches", max_switches, least=1)
    fixed = None if batch is None else integer("batch", batch, least=1)
    if fixed is not None and fixed > T:
        raise ValueError(f"batch must be at most the horizon of {T}, got {batch}")
    found = _Search(domain.dim, T, goal, small, 2.0 if neighbors == "replace" else 1.0, cap).best(fixed)
    return PrivateDartboardPlan(
        domain,
        T,
        G,
        beta=found.beta / G,
        p=found.p,
        batch=found.batch,
        budget=found.budget,
        epsilon=goal,
        delta=small,
        neighbors=neighbors,
    )


def _propose(goal: Goal) -> PrivateDartboardPlan:
    goal.need_a_switch()
    return plan_private_dartboard(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


SYSTEMS = (System(PrivateDartboardPlan.system, _propose, private=True, lazy=True, experts=True),)
