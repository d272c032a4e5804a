"""Exponential weights on noisy sums: account and bound attacked on small cases, and what is released (R4j)."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import reticent as rt
from reticent.planning import (
    NoisyWeightsPlan,
    plan_agarwal_singh_experts,
    plan_drawn_leader,
    plan_private_dartboard,
)
from reticent.systems.experts._kernel import proportions

DEVIATIONS = 5.0  # two-sided, 6e-7: below a significance of 1e-6
NODES, MASSES = np.polynomial.hermite_e.hermegauss(40)
MASSES = MASSES / MASSES.sum()


def law(beta, sums, level, n):
    """Return the expected weights by quadrature: noise of deviation `level` orthogonal to (1, ..., 1)."""
    frame = np.linalg.svd(np.ones((1, n)))[2][1:]  # n - 1 directions of sum 0
    grids = np.array(list(itertools.product(range(NODES.size), repeat=n - 1)))
    noise, masses = NODES[grids] @ frame, MASSES[grids].prod(axis=1)
    heights = -beta * (sums + level * noise)
    weights = np.exp(heights - heights.max(axis=1, keepdims=True))
    return masses @ (weights / weights.sum(axis=1, keepdims=True))


def shares(stream, beta, levels):
    """Return expected regret as a share of the bound, and of the bound without its term of the noise."""
    T, n = stream.shape
    sums, suffered = np.zeros(n), 0.0
    for loss, level in zip(stream, levels, strict=True):
        suffered += loss @ law(beta, sums, level, n)
        sums += loss
    silent = math.log(n) / beta + beta * T / 8
    return (suffered - sums.min()) / np.array([silent + beta * (1 - 1 / n) * levels[-1] ** 2 / 2, silent])


@pytest.mark.parametrize("n", [2, 3])
def test_no_game_of_three_rounds_exceeds_the_bound(n):
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=n)))[:-1]
    worst = 0.0
    for beta, level in itertools.product((0.3, 1.5, 6.0), (0.2, 1.0, 5.0)):
        levels = level * np.array([0.0, 0.6, 1.0])  # noise that rises, from none; a topped tree has two alike
        for k in itertools.product(range(len(corners)), repeat=3):
            if k[0] <= k[-1]:
                worst = max(worst, shares(corners[list(k)], beta, levels)[0])
    assert 0.3 < worst <= 1.0


def test_a_long_stream_stays_below_and_not_without_the_term_of_the_noise():
    stream = np.tile([1.0, 0.0], (200, 1))
    levels = np.append(0.0, np.full(199, 40.0))
    whole, silent = shares(stream, 0.5, levels)
    assert whole <= 1.0
    assert silent > 1.3  # the control


def test_the_mu_of_the_sums_is_that_of_their_exact_law():
    for n, noise in itertools.product((2, 5), ("toeplitz", "tree")):
        plan = plan_agarwal_singh_experts(rt.Experts(n), 12, 2.0, 1.0, 1e-5, noise=noise, batch=1)
        runs = 4000 if noise == "tree" else 1
        T, ones = 12, np.tril(np.ones((12, 12)))
        if noise == "toeplitz":
            c = np.array([1.0, *((np.array(plan.weights) * np.array(plan.decays) ** k).sum() for k in range(T - 1))])
            C = np.array([[c[i - j] if i >= j else 0.0 for j in range(T)] for i in range(T)])
            factor = ones @ np.linalg.inv(C)
            law = factor @ factor.T
            exact = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(law), ones), axis=0).max()
            change = 2 * 2.0 * math.sqrt((n // 2) * (n - n // 2) / n)
            assert plan.leader.mu() == pytest.approx(change * exact / plan.sigma, rel=1e-9)
            assert plan.leader.mu() < 1.01 * change * exact / plan.sigma  # a claim of one percent less would be caught
        else:
            # All sums have one law: the deviation that the bound has, in each coordinate.
            found = []
            for seed in range(runs // 40):
                learner = rt.make(plan, rt.Linear(), seed=seed)
                for _ in range(T):
                    learner.observe(np.zeros(n))
                    found.append(learner._walk.leader.u.copy())
            square = np.mean(np.array(found) ** 2) / plan.level**2
            assert abs(square - 1) < 0.25


def test_a_changed_round_moves_what_is_released_by_its_change_and_nothing_else():
    plan = plan_agarwal_singh_experts(rt.Experts(4), 50, 1.0, 1.0, 1e-5, batch=3)
    losses = np.random.default_rng(0).random((50, 4))
    other = losses.copy()
    losses[20], other[20] = [1, 1, 0, 0], [0, 0, 1, 1]
    moved = []
    runs = [rt.make(plan, rt.Linear(), seed=1) for _ in range(2)]
    for a, b in zip(losses, other, strict=True):
        runs[0].observe(a)
        runs[1].observe(b)
        moved.append(np.linalg.norm(runs[0]._walk.leader.u - runs[1]._walk.leader.u))
    step = float(np.linalg.norm(plan.steps))
    assert max(moved[:20]) == 0.0
    assert plan.leader.change == 2.0
    assert np.abs(np.array(moved[20:]) - 2.0).max() <= step
    u = runs[0]._walk.leader.u / plan.steps
    assert np.array_equal(u, np.rint(u))
    assert plan.level / plan.steps[0] <= 2.0**22


def changed_experts(plan, sigma, runs=1500):
    """Return how much more often expert 0 follows a round that is good for it, than one that is bad."""
    made = NoisyWeightsPlan(plan.domain, 2, 1.0, beta=1e4, sigma=sigma, weights=plan.weights, decays=plan.decays)
    counts = []
    for world, loss in enumerate(([0.0, 1.0], [1.0, 0.0])):
        seen = 0
        for seed in range(runs):
            learner = rt.make(made, rt.Linear(), seed=2 * seed + world)
            learner.observe(np.array(loss))
            seen += learner.expert == 0
        counts.append(seen / runs)
    return counts[0] - counts[1]


def test_experts_tell_as_much_as_the_account_says_and_half_the_noise_is_caught():
    """With weights that are as good as the leader, the best test of one sum is the expert itself."""
    plan = plan_agarwal_singh_experts(rt.Experts(2), 2, 1.0, 4.0, 1e-3, batch=1)
    mu, error = plan.leader.mu(1), DEVIATIONS * math.sqrt(2 * 0.25 / 1500)
    claimed = 2 * norm.cdf(mu / 2) - 1  # the distance in variation of mu-GDP
    assert abs(changed_experts(plan, plan.sigma) - claimed) < error
    assert changed_experts(plan, plan.sigma / 2) > claimed + error
    with pytest.raises(ValueError, match="epsilon must be at least"):
        NoisyWeightsPlan(plan.domain, 2, 1.0, beta=1.0, sigma=plan.sigma / 2, epsilon=4.0, delta=1e-3)


@pytest.mark.parametrize("noise", ["toeplitz", "tree"])
def test_accounts_meet_the_goal_and_the_bound_is_best_at_the_planned_beta(noise):
    plan = plan_agarwal_singh_experts(rt.Experts(7), 20_000, 3.0, 0.5, 1e-6, noise=noise, neighbors="zero-out")
    assert plan.account().epsilon(1e-6) == pytest.approx(0.5, rel=1e-6)
    parts = {"sigma": plan.sigma, "batch": plan.batch, "noise": noise, "weights": plan.weights, "decays": plan.decays}
    for factor in (0.9, 1.1):
        other = NoisyWeightsPlan(plan.domain, 20_000, 3.0, beta=factor * plan.beta, **parts)
        assert other.regret_bound > plan.regret_bound * 1.001


def test_who_certifies_least():
    """Entropy costs a root of log n in the leading term, the square one of n; the dartboard pays more for epsilon."""

    def bounds(n, T, epsilon):
        goal = rt.Experts(n), T, 1.0, epsilon, 1e-6
        planners = (plan_agarwal_singh_experts, plan_drawn_leader, plan_private_dartboard)
        return [plan(*goal).regret_bound for plan in planners]

    few, some = bounds(3, 100_000, 0.1), bounds(10, 100_000, 0.1)
    assert few[1] < few[0] < few[2]
    assert some[0] < min(some[1:])


def test_caps_and_blocks():
    plan = plan_agarwal_singh_experts(rt.Experts(5), 2000, 1.0, 5.0, 1e-4, max_switches=30)
    assert plan.max_switches <= 30
    losses = np.random.default_rng(1).random((2000, 5))
    whole = rt.make(plan, rt.Linear(), seed=3).observe_many(losses)
    assert whole.switches <= 30
    parted = rt.make(plan, rt.Linear(), seed=3)
    shown = [parted.observe_many(part).losses for part in np.array_split(losses, 13)]
    np.testing.assert_array_equal(whole.losses, np.concatenate(shown))
    with pytest.raises(ValueError, match="batch must be at least"):
        plan_agarwal_singh_experts(rt.Experts(5), 2000, 1.0, 5.0, 1e-4, max_switches=30, batch=2)
    with pytest.raises(ValueError, match="noise must be"):
        plan_agarwal_singh_experts(rt.Experts(5), 2000, 1.0, 5.0, 1e-4, noise="laplace")


def test_weights_neither_overflow_nor_vanish():
    found = proportions(2.0, np.array([[0.0, math.log(2) / 2], [1e300, 0.0], [-1e9, -1e9]]))
    np.testing.assert_allclose(found, [[1 / 3, 2 / 3], [1.0, 0.0], [0.5, 0.5]], rtol=1e-12)


def test_regret_stays_below_the_certificate():
    plan = plan_agarwal_singh_experts(rt.Experts(3), 4000, 1.0, 2.0, 1e-5)
    assert not plan.vacuous
    losses = np.clip(np.random.default_rng(1).normal([0.4, 0.5, 0.6], 0.2, (4000, 3)), 0.0, 1.0)
    found = [float(rt.make(plan, rt.Linear(), seed=s).observe_many(losses).regret()) for s in range(5)]
    assert np.mean(found) <= plan.regret_bound
