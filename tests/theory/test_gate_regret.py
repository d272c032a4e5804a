"""Regret of dual averaging on noisy releases (docs/theory, R8c, R8e, R8f) attacked in one dimension, with exact means.

Losses are linear. Where they are fixed the sum of the releases before a block is normal, and the mean of the decision,
a normal variable cut off at both ends, is in closed form; the best of those that react is found by dynamic programming.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import reticent as rt
from reticent.planning import NoisyDescentPlan


def mean_decision(mean, deviation):
    """Return the means of normal variables cut off at -1 and 1."""
    low, high = (-1 - mean) / deviation, (1 - mean) / deviation
    below, above = ndtr(low), ndtr(-high)
    heights = np.exp(-(np.minimum(np.abs(low), 1e100) ** 2) / 2) - np.exp(-(np.minimum(np.abs(high), 1e100) ** 2) / 2)
    return above - below + mean * (1 - above - below) + deviation * heights / np.sqrt(2 * np.pi)


def regret(gradients, sigma, lams):
    """Return the expected regret of blocks of one round on [-1, 1]."""
    before = np.concatenate([[0.0], np.cumsum(gradients)[:-1]])
    noise = sigma * np.sqrt(np.maximum(np.arange(len(gradients)), 1e-12))  # none before the first: the centre
    return float(gradients @ mean_decision(-before / lams, noise / lams) + abs(gradients.sum()))


def attack(K, sigma, lams, seed, starts=4):
    """Climb to a bad sequence from a few starts, one gradient at a time."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for start in range(starts):
        g = np.ones(K) if start == 0 else rng.choice([-1.0, 1.0], K)
        value, better = regret(g, sigma, lams), True
        while better:
            better = False
            for i in rng.permutation(K):
                for v in (-1.0, 0.0, 1.0):
                    other = g.copy()
                    other[i] = v
                    found = regret(other, sigma, lams)
                    if found > value + 1e-12:
                        g, value, better = other, found, True
        best = max(best, value)
    return best


def plan_of(K, sigma, horizon=True, batch=1):
    V = 1 + sigma**2
    return NoisyDescentPlan(
        rt.Interval(-1.0, 1.0), K if horizon else None, 1.0, sigma=sigma, batch=batch,
        lam=(K + (K - 1) * sigma**2) ** 0.5 if horizon else None,
    ), V  # fmt: skip


@pytest.mark.parametrize(("K", "sigma", "least"), [(2, 1.0, 0.8), (10, 0.3, 0.95), (30, 0.1, 0.98), (25, 2.0, 0.7)])
def test_with_a_horizon_the_bound_is_nearly_reached_and_never_passed(K, sigma, least):
    plan, _ = plan_of(K, sigma)
    found = attack(K, sigma, np.full(K, plan.lam), seed=K)
    assert least * plan.regret_bound < found <= plan.regret_bound


def test_a_bound_without_the_noise_is_passed():
    plan, _ = plan_of(25, 2.0)
    found = attack(25, 2.0, np.full(25, plan.lam), seed=25)
    assert found > plan.lam / 2 + 25 / (2 * plan.lam)


@pytest.mark.parametrize("horizon", [True, False])
def test_blocks_of_several_rounds_and_a_short_last_one_stay_below(horizon):
    """Sums of blocks in place of gradients, the last from fewer rounds; a bound that leaves that one out is passed."""
    rng, shares, silent = np.random.default_rng(1), [], []
    for _ in range(80):
        W, K, sigma = int(rng.integers(2, 9)), int(rng.integers(2, 12)), 10 ** rng.uniform(-1, 1)
        T = W * (K - 1) + int(rng.integers(1, W + 1))
        lam = np.sqrt(T * W + K * sigma**2) * 10 ** rng.uniform(-0.5, 0.5) if horizon else None
        plan = NoisyDescentPlan(rt.Interval(-1.0, 1.0), T if horizon else None, 1.0, sigma=sigma, batch=W, lam=lam)
        lams = np.array([plan.lam_of(k) for k in range(1, K + 1)])
        ends = np.append(np.full(K - 1, W), T - W * (K - 1)).astype(float)
        for signs in (np.ones(K), np.where(np.arange(K) % 2, 1.0, -1.0), rng.choice([-1.0, 1.0], K)):
            g, better = ends * signs, True
            value = regret(g, sigma, lams)
            while better:
                better = False
                for i in rng.permutation(K):
                    other = np.where(np.arange(K) == i, -g, g)
                    found = regret(other, sigma, lams)
                    if found > value + 1e-12:
                        g, value, better = other, found, True
            shares.append(value / plan.regret_at(T))
            silent.append(value / max(plan.regret_at(T - int(ends[-1])), 1e-9) if horizon else 0.0)
    assert 0.9 < max(shares) <= 1.0
    assert not horizon or max(silent) > 1.0


@pytest.mark.parametrize(("K", "sigma"), [(2, 0.5), (8, 1.0), (25, 0.3), (25, 2.0)])
def test_without_a_horizon_the_bound_holds_at_every_time(K, sigma):
    plan, V = plan_of(K, sigma, horizon=False)
    lams = np.sqrt(2 * np.arange(1, K + 1) * V)
    assert np.allclose(lams, [plan.lam_of(k) for k in range(1, K + 1)])
    assert plan.regret_at(K) <= 2**0.5 * (K * V) ** 0.5 + 1e-5
    found = attack(K, sigma, lams, seed=K)
    assert 0.3 * plan.regret_at(K) < found <= plan.regret_at(K)


def lazy_and_greedy(gradients, radius=1.0):
    """Return the regrets, without noise, of dual averaging and of projected descent with the same falling steps."""
    out = []
    for lazy in (True, False):
        x = total = cost = 0.0
        for k, g in enumerate(gradients, start=1):
            cost += g * x
            total += g
            x = -total / np.sqrt(2 * (k + 1)) if lazy else x - g / np.sqrt(2 * (k + 1))
            x = min(max(x, -radius), radius)
        out.append(cost + radius * abs(sum(gradients)))
    return out


def test_descent_that_projects_what_it_stores_has_no_such_bound():
    K = 300
    worst = [0.0, 0.0]
    # Long stays at one end, then a drift that the falling steps follow too slowly.
    for first in range(0, K, 5):
        for period in (1, 2, 3, 5, 8):
            g = np.ones(K)
            g[:first] = np.where(np.arange(first) // period % 2, 1.0, -1.0)
            for sequence in (g, g[::-1], np.where(np.arange(K) < first, -1.0, 1.0)):
                worst = [max(a, b) for a, b in zip(worst, lazy_and_greedy(sequence), strict=True)]
    bound = 2**0.5 * K**0.5
    assert worst[0] <= bound
    assert worst[1] > bound


def test_losses_that_react_can_pass_the_bound_for_fixed_ones_but_not_their_own():
    """An adversary that makes the best decision in hindsight go with the noise, which the releases have shown."""
    rng = np.random.default_rng(0)
    K, sigma, runs = 30, 2.0, 4000
    plan, _ = plan_of(K, sigma)
    x, total, noise = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    cost, losses = np.zeros(runs), np.zeros(runs)
    for _ in range(K):
        g = np.where(noise > 0, -1.0, 1.0)
        cost += g * x
        losses += g
        fresh = sigma * rng.standard_normal(runs)
        noise, total = noise + fresh, total + g + fresh
        x = np.clip(-total / plan.lam, -1, 1)
    found = (cost + np.abs(losses)).mean()
    assert found <= plan.reacting_regret_bound
    assert found > 1.2 * plan.regret_bound


def best_reacting(K, sigma, lams):
    """Return the largest mean regret of all adversaries that see every release, by going back from the last block.

    What they need to know is the sum of the releases (on a grid, values in between by the line through its neighbours)
    and that of the gradients, which are -1, 0 or 1; at the end the best decision costs minus the size of the latter.
    """
    step, reach = min(sigma / 8, 0.05), K + 6 * sigma * np.sqrt(K)
    dual = np.arange(-reach, reach, step)
    dual -= dual[np.abs(dual).argmin()]  # 0 is on the grid
    nodes, masses = np.polynomial.hermite_e.hermegauss(24)
    masses /= masses.sum()
    value = np.tile(np.abs(np.arange(-K, K + 1.0)), (dual.size, 1))
    for k in range(K, 0, -1):
        x = np.clip(-dual / lams[k - 1], -1.0, 1.0)[:, None]
        found = []
        for g in (-1, 0, 1):
            later = value
            if k < K:  # nobody sees the last release
                later = np.zeros_like(value)
                for node, mass in zip(nodes, masses, strict=True):
                    place = np.clip((dual + g + sigma * node - dual[0]) / step, 0, dual.size - 1.0001)
                    low = place.astype(int)
                    part = (place - low)[:, None]
                    later += mass * ((1 - part) * value[low] + part * value[low + 1])
            moved = np.roll(later, -g, axis=1)  # what comes around is further than any sum of gradients so far
            found.append(g * x + moved)
        value = np.max(found, axis=0)
    return float(value[np.abs(dual).argmin(), K])


@pytest.mark.parametrize(
    ("K", "sigma", "horizon", "least"), [(2, 1.0, True, 0.5), (25, 0.3, True, 0.93), (10, 0.5, False, 0.8)]
)
def test_no_adversary_that_reacts_passes_the_bound_and_half_of_what_is_added_would_not_do(K, sigma, horizon, least):
    plan, _ = plan_of(K, sigma, horizon)
    found = best_reacting(K, sigma, [plan.lam_of(k) for k in range(1, K + 1)])
    fixed, reacting = plan.regret_at(K), plan.reacting_regret_at(K)
    assert least * reacting < found <= reacting
    assert K < 25 or found > (fixed + reacting) / 2
