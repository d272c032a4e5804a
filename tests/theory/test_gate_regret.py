"""Regret of dual averaging on noisy releases (docs/theory, R8c, R8e, R8f) attacked in one dimension, with exact means.

Losses are linear and fixed, so the sum of the releases before a block is normal, and the mean of the decision, a normal
variable cut off at both ends, is in closed form: no sampling.
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
