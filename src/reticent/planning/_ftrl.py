"""Planners of private FTRL: the best regulariser and batches for a goal (docs/theory.md, R2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from reticent._check import integer
from reticent.domains import Domain
from reticent.losses import Linear
from reticent.planning._ftrl_plan import NOISES, FTRLPlan, TreeLeaderPlan
from reticent.planning._ftrl_regret import Regret
from reticent.planning._goal import Goal, NotApplicable, System
from reticent.planning._noise import Buffers, Noise, SquareRoot, Tree
from reticent.planning._noise_fit import fit_buffers
from reticent.planning._plan import check_body
from reticent.planning._target import check_target

__all__ = ["SYSTEMS", "FTRLPlan", "TreeLeaderPlan", "plan_agarwal_singh", "plan_ftrl"]

_COARSE, _FINE = 40, 24  # batches tried: over all lengths, and around the best of these


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
) -> FTRLPlan:
    """Return DP-FTRL with the best regulariser and, unless `batch` is given, the best batches.

    `noise` is "toeplitz" (streams, and is within 0.5% of the exact), "toeplitz-exact" (drawn in advance, for up to two
    million batches) or "tree" (as first published). `max_switches` is a hard cap. `linear` is for linear losses that do
    not react to decisions, whose bound is far lower.

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
    least = 1
    if max_switches is not None:
        # The fewest rounds per batch with so many full batches at most: a change after the last round counts as one.
        least = T // (integer("max_switches", max_switches, least=0) + 1) + 1
    unit = (2 * G if neighbors == "replace" else G) / most
    # Buffers are within 0.5% of the square root, which has no fit to wait for.
    law: Noise = Tree(True) if noise == "tree" else SquareRoot()
    topped = linear and noise == "tree"

    def size(b: int, law: Noise) -> tuple[float, Regret]:
        sigma = unit * law.sensitivity(max(T // b, 1))
        return sigma, Regret.of(domain, T, G, batch=b, noise=law, sigma=sigma, topped=topped)

    if batch is not None:
        b = integer("batch", batch, least=1)
        if b < least:
            raise ValueError(
                f"batch must be at least {least} for at most {max_switches} switches in {T} rounds, got {batch}"
            )
    else:
        # The sensitivity of a tree jumps where its levels do: there are better batches just before.
        levels = [T // 2**k + 1 for k in range(T.bit_length())] if noise == "tree" else []
        b = _best_batch(lambda b: size(b, law)[1].best(linear)[1], least, T, levels)
    fit = fit_buffers(T // b) if noise == "toeplitz" else ((), ())
    sigma, regret = size(b, Buffers(*fit) if noise == "toeplitz" else law)
    lam, _ = regret.best(linear)
    return FTRLPlan(
        domain,
        T,
        G,
        lam=lam,
        sigma=sigma,
        batch=b,
        noise=noise,
        linear=linear,
        weights=fit[0],
        decays=fit[1],
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )


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
    law = Tree(False)
    sigma = (2 * G if neighbors == "replace" else G) / most * law.sensitivity(T)
    regret = Regret.of(domain, T, G, batch=1, noise=law, sigma=sigma, topped=True)
    lam = regret.best_linear()
    return TreeLeaderPlan(domain, T, G, lam=lam, sigma=sigma, epsilon=epsilon, delta=delta, neighbors=neighbors)


def _best_batch(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> int:
    """Return the batch of the lowest price, by a coarse search and a fine one around the best, and among `others`."""
    tried = {b: price(b) for b in others if b >= least}

    def look(low: float, high: float, count: int) -> None:
        for b in {max(least, round(x)) for x in np.geomspace(low, high, count)}:
            if b not in tried:
                tried[b] = price(b)

    look(least, max(horizon, least), _COARSE)
    step = math.exp(math.log(max(horizon / least, 1.0)) / (_COARSE - 1))
    # Prices of trees have several valleys: a closer look around the best of both kinds.
    others = sorted((b for b in others if b in tried), key=lambda b: tried[b])[:2]
    for best in [min(tried, key=lambda b: (tried[b], b)), *others]:
        look(best / step, best * step, _FINE)
    return min(tried, key=lambda b: (tried[b], b))


def _ftrl(noise: str, linear: bool, goal: Goal) -> FTRLPlan:
    if linear and not isinstance(goal.loss, Linear):
        raise NotApplicable("its bound is for linear losses")
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, noise=noise, max_switches=cap, neighbors=near, linear=linear)


def _agarwal_singh(goal: Goal) -> TreeLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("takes linear losses only")
    return plan_agarwal_singh(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (
    System("DP-FTRL", partial(_ftrl, "toeplitz", False), private=True, lazy=True),
    System("DP-FTRL, linear losses", partial(_ftrl, "toeplitz", True), private=True, lazy=True),
    System("DP-FTRL, tree noise", partial(_ftrl, "tree", False), private=True, lazy=True),
    System(TreeLeaderPlan.system, _agarwal_singh, private=True),
)
