"""Planners of private FTRL: the best regulariser and batches for a goal (docs/theory, R2, R9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from reticent._core import _names
from reticent._core._check import integer, positive
from reticent.domains import Ball, Domain
from reticent.losses import Huber, Linear, Logistic
from reticent.systems._bounds import least_at
from reticent.systems._checks import LONGEST, check_body, check_target, least_batch, machine_mu
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._grid import Rounding, largest_step
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers
from reticent.systems.ftrl._plan import (
    NOISES,
    SMOOTH,
    FTRLPlan,
    SmoothFTRLPlan,
    TreeLeaderPlan,
    check_flat,
    firm_lam,
    longest_sum,
)
from reticent.systems.ftrl._regret import LeaderRegret

MOST_BATCHES = 10**12  # of a planned run
_FEW, _COARSE, _FINE = 20, 40, 8  # batches tried: for each small number of them, over all lengths, and in a valley
_VALLEYS = 6  # that are looked at more closely, twice
_SPARE = 0.05  # the share of mu that may be spent on the last bits of large noise
_ASTRAY = 1e-20  # the chance that a plan for smooth losses leaves for noise to take decisions to the surface: nothing


def plan_ftrl(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    noise: str = "toeplitz",
    batch: int | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
    linear: bool = False,
    smoothness: float | None = None,
    reach: float | None = None,
) -> FTRLPlan:
    """Return DP-FTRL with the best regulariser and, unless `batch` is given, the best batches.

    `noise` is "toeplitz" (streams, and is within 0.5% of the exact), "toeplitz-exact" (drawn in advance, for up to two
    million batches) or "tree" (as first published). `max_switches` is a hard cap. `linear` is for linear losses that do
    not react to decisions, whose bound is far lower.

    `smoothness` bounds the second derivatives of losses that do not react: the plan is a `SmoothFTRLPlan` then, with a
    far lower bound against `domain`, and decisions that may leave it (`plan.domain` is a larger ball). `reach` is how
    far from the centre they may go; the nearer that is to the radius of `domain`, the more it costs.

    >>> from reticent.domains import Ball
    >>> plan = plan_ftrl(Ball(10), 100_000, 1.0, 1.0, 1e-6)
    >>> plan.regret_bound / 1e5 < 0.0457, round(plan.account().epsilon(1e-6), 6)
    (True, 1.0)
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {noise!r}")
    least = least_batch(T, max_switches)
    if noise == "toeplitz" and batch is None:
        least = max(least, -(-T // MOST_BATCHES))
    change = 2 * G if neighbors == "replace" else G
    # Buffers are within 0.5% of the square root, which has no fit to wait for.
    law: Noise = Tree(True) if noise == "tree" else SquareRoot()
    topped = linear and noise == "tree"
    if reach is not None and smoothness is None:
        raise ValueError(f"reach is for plans with smoothness, got {reach!r} without; decisions stay in the domain")
    if smoothness is not None:
        smoothness = positive("smoothness", smoothness)
        check_flat(domain)
        if linear:
            raise ValueError(f"smoothness must be left out where linear=True, got {smoothness!r}")

    def size(b: int, law: Noise, rough: float = 1.0) -> tuple[float, LeaderRegret]:
        n = max(T // b, 1)
        machine = Rounding.of(domain, T, n)
        mu = machine.rougher(rough).narrowed(most)
        mu = max(mu, 1e-6 * most)  # what is too rough is very expensive
        sigma = change / mu * law.sensitivity(n, n if topped else 0)
        return sigma, LeaderRegret.of(domain, T, G, batch=b, noise=law, sigma=sigma, topped=topped)

    def free(regret: LeaderRegret) -> float:
        return regret.best(linear)[0] if smoothness is None else regret.best_smooth(smoothness)

    def settle(b: int, law: Noise) -> tuple[float, LeaderRegret, float, float]:
        spare = _SPARE * most / (2 * Rounding.of(domain, T, max(T // b, 1)).distance)
        deviation = law.largest(T // b)
        return _settled(partial(size, b, law), free, lambda sigma: firm_lam(domain, sigma * deviation), spare)

    def price(b: int) -> float:
        _, regret, _, lam = settle(b, law)
        return regret.bound(lam, linear) if smoothness is None else regret.smooth(lam, smoothness)

    if batch is not None:
        b = integer("batch", batch, least=1)
        if b < least:
            raise ValueError(
                f"batch must be at least {least} for at most {max_switches} switches in {T} rounds, got {batch}"
            )
    else:
        # The sensitivity of a tree jumps where its levels do: there are better batches just before.
        levels = [T // 2**k + 1 for k in range(T.bit_length())] if noise == "tree" else []
        b = best_batch(price, least, T, levels)
    machine_mu(target, domain, max(T // b, 1))  # refuses what rounding makes impossible
    fit = fit_buffers(T // b) if noise == "toeplitz" else ((), ())
    sigma, regret, firm, lam = settle(b, Buffers(*fit) if noise == "toeplitz" else law)
    parts: dict[str, Any] = {"lam": lam, "sigma": sigma, "batch": b, "noise": noise, "weights": fit[0]}
    parts |= {"decays": fit[1], "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    if smoothness is None:
        return FTRLPlan(domain, T, G, linear=linear, **parts)
    return _within_reach(domain, T, G, smoothness, reach, regret, firm, parts)


def _settled(
    size: Callable[[float], tuple[float, LeaderRegret]],
    free: Callable[[LeaderRegret], float],
    least: Callable[[float], float],
    spare: float,
) -> tuple[float, LeaderRegret, float, float]:
    """Return the noise, the regret, the least lam that rounding then allows, and the best one.

    Where the last bits of noise would show, some of mu is spent on them, `spare` times what rounding costs else at
    most, and lam is larger if that is not enough.
    """
    sigma, regret = size(1.0)
    lam, firm = free(regret), least(sigma)
    if firm > lam:
        rough = max(1.0, min(1.1 * firm / lam, spare))
        sigma, regret = size(rough)
        lam, firm = free(regret), least(sigma) / rough
    return sigma, regret, firm, max(lam, firm)


def _within_reach(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    smoothness: float,
    reach: float | None,
    regret: LeaderRegret,
    firm: float,
    parts: dict[str, Any],
) -> SmoothFTRLPlan:
    """Return the plan for smooth losses with a ball that decisions do not leave, of radius `reach` if that is given."""
    b, d = parts["batch"], domain.dim
    n = horizon // b
    # A standard normal vector is longer than sqrt(d) + t with a chance of exp(-t^2/2) at most.
    longest = regret.level * (math.sqrt(d) + math.sqrt(2 * math.log(max(n, 1) / _ASTRAY)))

    def plan(lam: float, radius: float, pull: float) -> SmoothFTRLPlan:
        ball, more = Ball(d, radius, domain.center), {**parts, "lam": lam}
        size = (ball, horizon, lipschitz)
        return SmoothFTRLPlan(*size, body=domain, smoothness=smoothness, pull=pull, **more)

    step = largest_step(domain, cut=False)
    free = max(domain.radius, (longest_sum(n * b, lipschitz) + longest) / parts["lam"] * (1 + 1e-12) + step)
    if reach is None or free <= positive("reach", reach):
        return plan(parts["lam"], free, 0.0)

    def pull(lam: float) -> float:
        """What keeps decisions within reach if noise is no longer than that."""
        left = reach - domain.radius - 2 * longest / lam * (1 + 1e-12) - 2 * step
        return longest_sum(1, lipschitz) / left * (1 + 1e-12) if left > 0 else math.inf

    worst = 1e6 * lipschitz * (domain.radius + reach) * horizon

    def price(lam: float) -> float:
        if pull(lam) >= lam / b:
            return worst
        return min(regret.smooth(lam, smoothness + pull(lam), b * pull(lam)), worst)

    lam = least_at(price, max(parts["lam"] / 10, firm), parts["lam"] * 1e4)
    if price(lam) == worst:
        raise ValueError(
            f"reach must be greater than the radius {domain.radius:g} of the domain, and by enough for noise, got "
            f"{reach!r}"
        )
    return plan(lam, reach, pull(lam))


def plan_agarwal_singh(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "replace",
) -> TreeLeaderPlan:
    """Return Agarwal and Singh's FTRL for linear losses, with the best regulariser.

    >>> from reticent.domains import Ball
    >>> plan = plan_agarwal_singh(Ball(10), 100_000, 1.0, 1.0, 1e-6)
    >>> plan.regret_bound < 2 * 100_000**0.5
    True
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    law, machine = Tree(False), Rounding.of(domain, T, T)
    machine_mu(target, domain, T)  # refuses what rounding makes impossible

    def size(rough: float) -> tuple[float, LeaderRegret]:
        mu = machine.rougher(rough).narrowed(most)
        sigma = (2 * G if neighbors == "replace" else G) / mu * law.sensitivity(T, T)
        return sigma, LeaderRegret.of(domain, T, G, batch=1, noise=law, sigma=sigma, topped=True)

    def least(sigma: float) -> float:
        return firm_lam(domain, sigma * law.largest(T))

    spare = _SPARE * most / (2 * machine.distance)
    sigma, _, _, lam = _settled(size, LeaderRegret.best_linear, least, spare)
    return TreeLeaderPlan(domain, T, G, lam=lam, sigma=sigma, epsilon=epsilon, delta=delta, neighbors=neighbors)


def best_batch(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> int:
    """Return the batch of the lowest price, by a coarse search and a fine one around the best, and among `others`."""
    return cheapest_batches(price, least, horizon, others)[0]


def cheapest_batches(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> list[int]:
    """Return the batches that this search looks at, the lowest price first.

    Prices jump where one full batch less fits into the horizon, and have a valley in between. Where it looks first does
    not hang on `least`, so that more switches hardly ever find less; with batches longer than the horizon nothing is
    released at all.
    """
    tried: dict[int, float] = {}

    def look(batches: Iterable[float]) -> None:
        for b in {round(x) for x in batches}:
            if b >= least and b not in tried:
                tried[b] = price(b)

    look([least, min(horizon + 1, LONGEST), *others])
    for few in range(1, _FEW + 1):
        look(np.linspace(horizon // (few + 1) + 1, horizon // few, 5).tolist())
    look(np.geomspace(1, horizon, _COARSE).tolist())
    for _ in range(2):
        known = sorted(tried)
        ends = [known[0], *known, known[-1]]
        around = zip(known, ends[:-2], ends[2:], strict=True)
        valleys = sorted((tried[b], low, high) for b, low, high in around if tried[b] <= min(tried[low], tried[high]))
        for _, low, high in valleys[:_VALLEYS]:
            look(np.geomspace(low, high, _FINE).tolist())
    return sorted(tried, key=lambda b: (tried[b], b))


def _ftrl(noise: str, linear: bool, goal: Goal) -> FTRLPlan:
    if linear and not isinstance(goal.loss, Linear):
        raise NotApplicable("its bound is for linear losses")
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, noise=noise, max_switches=cap, neighbors=near, linear=linear)


def _smooth(goal: Goal) -> FTRLPlan:
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, max_switches=cap, neighbors=near, smoothness=_bend(goal))


def _bend(goal: Goal) -> float:
    """Return a smoothness of every loss that is no steeper than the goal's Lipschitz constant everywhere.

    The learner's gate refuses rows that bend more, also those that are steeper beyond the domain only; a planner that
    is called by itself (`plan_ftrl`) takes any smoothness.
    """
    loss, G = goal.loss, goal.lipschitz
    if isinstance(loss, Linear):
        raise NotApplicable("linear losses have a plan of their own")
    if not isinstance(loss, SMOOTH):
        raise NotApplicable("needs smooth losses with slopes that are bounded everywhere")
    known = math.inf
    if isinstance(loss, Logistic):
        known = G**2 / 4  # rows no longer than G, and a profile of second derivative 1/4
    elif isinstance(loss, Huber):
        known = (G / loss.width) ** 2  # rows no longer than G/width, and a profile of second derivative 1
    found = min(goal.smoothness or math.inf, known)
    if math.isinf(found):
        raise NotApplicable("needs a smoothness bound")
    return found


def _agarwal_singh(goal: Goal) -> TreeLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("takes linear losses only")
    return plan_agarwal_singh(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (
    System(_names.DP_FTRL, partial(_ftrl, "toeplitz", False), private=True, lazy=True),
    System(_names.DP_FTRL_LINEAR, partial(_ftrl, "toeplitz", True), private=True, lazy=True),
    System(_names.DP_FTRL_TREE, partial(_ftrl, "tree", False), private=True, lazy=True),
    System(_names.DP_FTRL_SMOOTH, _smooth, private=True, lazy=True),
    System(TreeLeaderPlan.system, _agarwal_singh, private=True),
)
