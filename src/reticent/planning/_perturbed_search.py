"""The search for the best private objective perturbation: a quick account for candidates, the real one at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from reticent._check import Array, integer
from reticent.domains import Domain
from reticent.planning._perturbed_law import bend_change, best_lam, drift
from reticent.planning._perturbed_objective import ObjectivePlan
from reticent.planning._private_account import adaptive, coins_variance
from reticent.planning._private_cost import largest_mu
from reticent.planning._switching import rate
from reticent.planning._target import check_target

# The least chance of a forced switch that is looked at, and how many values up to 1.
_LEAST_P, _VALUES = 1e-4, 9
# Candidates of log phi, in deviations of a coin's ratio, and of budgets, in deviations above the mean.
_WIDTHS, _MARGINS = (2.5, 3.5), (0.0, 1.5)
# Candidates of log lam over what would be best without curvature: the coins' determinants ask for more.
_FIRMER = (0.0, 1.5, 3.0, 4.5, 6.0)
# The noise grows by this much at most to make up for the quick account, in so many steps.
_GROWTH, _STEPS = 1.5, 24
_STEEP = 300.0  # log phi beyond which the coin is as good as none


@dataclass(frozen=True)
class _Goal:
    domain: Domain
    horizon: int
    lipschitz: float
    epsilon: float
    delta: float
    smoothness: float
    neighbors: str
    cap: int

    @property
    def change(self) -> float:
        return (2 if self.neighbors == "replace" else 1) * self.lipschitz


def search(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    smoothness: float,
    neighbors: str,
    max_switches: int | None,
) -> ObjectivePlan:
    """Return the plan; see `plan_objective`."""
    # A plan without a claim checks the arguments, with its messages.
    ObjectivePlan(
        domain, horizon, lipschitz, sigma=1.0, lam=1.0, p=1.0, phi=1.0, budget=0, smoothness=smoothness,
        neighbors=neighbors,
    )  # fmt: skip
    T, G, eps, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    cap = T if max_switches is None else integer("max_switches", max_switches, least=1)
    goal = _Goal(domain, T, G, eps, small, float(smoothness), neighbors, cap)
    start = [
        (math.log(p), width, margin, firmer)
        for p in np.geomspace(_LEAST_P, 1.0, _VALUES)
        for width in _WIDTHS
        for margin in _MARGINS
        for firmer in (_FIRMER if goal.smoothness else (0.0,))
    ]
    ranked = sorted(start, key=lambda point: _cost(goal, np.array(point)))
    options: Any = {"maxfev": 160, "xatol": 1e-2, "fatol": 1e-4, "initial_simplex": _around(ranked[0])}
    first: Array = np.array(ranked[0])
    minimize: Any = scipy.optimize.minimize
    found = minimize(lambda at: _cost(goal, at), first, method="Nelder-Mead", options=options)
    return _certified(goal, found.x)


def _around(point: tuple[float, ...]) -> Array:
    steps = (0.3, 0.4, 0.7, 0.2)
    corners = [np.array(point)]
    for i, step in enumerate(steps):
        moved = np.array(point)
        moved[i] += -step if i == 0 else step
        corners.append(moved)
    return np.array(corners)


def _candidate(goal: _Goal, point: Array, sigma: float) -> ObjectivePlan:
    """Return the plan of a point (log p, width, margin, log of lam over the best without curvature) at a noise."""
    p = math.exp(min(float(point[0]), 0.0))
    lam = best_lam(goal.domain, goal.horizon, goal.lipschitz, sigma) * math.exp(float(point[3]))
    noise, bend = goal.lipschitz / sigma, goal.smoothness / lam
    log_phi = min(max(float(point[1]), 0.1) * noise + noise**2 / 2 + math.log1p(bend), _STEEP)
    if p == 1:
        log_phi = 0.0
    T, q = goal.horizon, float(rate(p, log_phi))
    clip = (1 - p) * drift(log_phi, noise, bend)
    q = min(1.0, (q + clip) / (1 + clip))
    wanted = T * q + max(float(point[2]), -2.0) * math.sqrt(T * q * (1 - q)) + math.sqrt(2 * T * T * q * clip)
    budget = int(min(max(math.ceil(wanted), 1), T, goal.cap))
    return ObjectivePlan(
        goal.domain,
        T,
        goal.lipschitz,
        sigma=sigma,
        lam=lam,
        p=p,
        phi=math.exp(log_phi),
        budget=budget,
        smoothness=goal.smoothness,
        neighbors=goal.neighbors,
    )


def _quick(goal: _Goal, plan: ObjectivePlan) -> float:
    """Return about the delta of a plan at the epsilon of the goal."""
    mu2 = plan.draw**2 * min(plan.budget, plan.horizon)
    eta = min(goal.lipschitz * goal.change / plan.sigma**2 + bend_change(plan.bend), 2 * plan.log_phi)
    p = np.array(plan.p)
    variance = float(coins_variance(np.array(plan.horizon - 1.0), p, np.array(eta)))
    mu = np.array(math.sqrt(mu2 + variance))
    return float(adaptive(mu, p, np.array(2 * plan.log_phi), goal.epsilon))


def _noise(goal: _Goal, point: Array) -> float:
    """Return the least noise at which the quick account of a point is within the goal."""
    least = goal.change / largest_mu(goal.epsilon, goal.delta)
    low, high = math.log(least), math.log(least) + 0.5 * math.log(goal.horizon) + 4.0
    for _ in range(14):
        middle = (low + high) / 2
        within = _quick(goal, _candidate(goal, point, math.exp(middle))) <= goal.delta
        low, high = (low, middle) if within else (middle, high)
    return math.exp(high)


def _cost(goal: _Goal, point: Array) -> float:
    """Return the regret of a point, or more than any regret where no noise makes it private."""
    plan = _candidate(goal, point, _noise(goal, point))
    over = _quick(goal, plan) / goal.delta
    if over <= 1:
        return plan.regret_bound
    return 1e3 * goal.horizon * goal.lipschitz * goal.domain.diameter * (2 + math.log(over))


def _certified(goal: _Goal, point: Array) -> ObjectivePlan:
    """Return the plan of a point with the least noise at which the real account is within the goal."""

    def within(sigma: float) -> bool:
        return _candidate(goal, point, sigma).account().delta(goal.epsilon) <= goal.delta * (1 - 1e-9)

    high = _noise(goal, point)
    low = high / _GROWTH
    for _ in range(_STEPS):
        if within(high):
            break
        low, high = high, high * _GROWTH
    else:
        raise ValueError(
            f"no objective perturbation meets epsilon={goal.epsilon:g} at delta={goal.delta:g}; allow a larger epsilon"
        )
    for _ in range(10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    plan = _candidate(goal, point, high)
    return replace(plan, epsilon=goal.epsilon, delta=goal.delta)
