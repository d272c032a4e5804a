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
from reticent.systems._nearest import _whole
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


ROUNDS = 12


def toeplitz(plan):
    """Return the exact covariance of the noise on sums, by inverting the matrix of its coefficients."""
    decays = np.array(plan.decays)
    c = np.array([1.0, *((np.array(plan.weights) * decays**k).sum() for k in range(ROUNDS - 1))])
    C = np.array([[c[i - j] if i >= j else 0.0 for j in range(ROUNDS)] for i in range(ROUNDS)])
    factor = np.tril(np.ones((ROUNDS, ROUNDS))) @ np.linalg.inv(C)
    return factor @ factor.T


def topped_tree():
    """Return the same for Honaker's tree, topped up to the largest: a node mixes its own noise with that below."""

    def node(start, height):
        own = {(start, height): 1.0}
        if height == 0:
            return own, 1.0
        parts = [node(start, height - 1), node(start + 2 ** (height - 1), height - 1)]
        below = sum(variance for _, variance in parts)  # independent estimates of one sum, weighed by their precision
        share = below / (1 + below)
        mixed = {place: share for place in own}
        for part, _ in parts:
            mixed |= {place: (1 - share) * weight for place, weight in part.items()}
        return mixed, below / (1 + below)

    rows = []
    for k in range(1, ROUNDS + 1):
        row, start = {}, 0
        for height in reversed(range(k.bit_length())):
            if k >> height & 1:
                row |= node(start, height)[0]
                start += 2**height
        rows.append(row)
    law = np.array([[sum(a[place] * b[place] for place in a.keys() & b.keys()) for b in rows] for a in rows])
    return law + np.diag(law.diagonal().max() - law.diagonal())


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("noise", ["toeplitz", "tree"])
def test_the_mu_of_the_sums_is_that_of_their_exact_law(n, noise):
    plan = plan_agarwal_singh_experts(rt.Experts(n), ROUNDS, 2.0, 1.0, 1e-5, noise=noise, batch=1)
    law, ones = toeplitz(plan) if noise == "toeplitz" else topped_tree(), np.tril(np.ones((ROUNDS, ROUNDS)))
    exact = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(law), ones), axis=0).max()
    change = 2 * 2.0 * math.sqrt((n // 2) * (n - n // 2) / n)
    assert plan.leader.mu() == pytest.approx(change * exact / plan.sigma, rel=1e-9)
    assert plan.level == pytest.approx(plan.sigma * math.sqrt(law.diagonal().max()), rel=1e-9)


def test_the_noise_of_a_run_has_that_covariance_and_not_the_one_without_top_ups():
    plan = plan_agarwal_singh_experts(rt.Experts(5), ROUNDS, 2.0, 1.0, 1e-5, noise="tree", batch=1)
    runs = []
    for seed in range(400):
        learner, path = rt.make(plan, rt.Linear(), seed=seed), []
        for _ in range(ROUNDS):
            learner.observe(np.zeros(5))
            path.append(learner._walk.leader.u / plan.sigma)
        runs.append(path)
    sums = np.array(runs)[:, 1]  # after two rounds: the root of two leaves, of variance 2/3, and a top-up
    count, right, bare = sums.size, topped_tree()[1, 1], 2 / 3
    assert abs(np.mean(sums**2) / right - 1) < DEVIATIONS * math.sqrt(2 / count)
    assert abs(np.mean(sums**2) / bare - 1) > DEVIATIONS * math.sqrt(2 / count)  # the control


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


def test_tiny_losses_are_treated_as_others():
    """Chances once came from points around the centre, whose 1/n swallowed sums below 1e-16: experts were uniform."""
    losses = np.tile([1.0, 0.0], (1000, 1))
    shown = []
    for unit in (1.0, 2.0**-200):
        plan = plan_agarwal_singh_experts(rt.Experts(2), 1000, unit, 20.0, 1e-3, neighbors="zero-out")
        runs = [rt.make(plan, rt.Linear(), seed=seed).observe_many(unit * losses) for seed in range(20)]
        assert np.mean([float(trace.regret()) for trace in runs]) < plan.regret_bound  # 27 times that in the mean
        shown.append(np.array([trace.losses for trace in runs]) / unit)
    np.testing.assert_array_equal(*shown)


def parity(high, unit):
    """Return how often a rounded noisy sum is odd, in its own steps, without and with a part below its last bit."""
    noise = np.random.default_rng(7).standard_normal(100_000) * 2.0**22
    return [np.mean([_whole(high, low, x, unit) / 2 % 2 == 1 for x in noise]) for low in (0.0, 0.98)]


def test_rounded_sums_tell_nothing_of_their_last_bits_while_they_have_few_steps():
    error = DEVIATIONS * math.sqrt(2 * 0.25 / 100_000)
    beyond = parity(2.0**53 + 2.0**30, 1.0)
    assert abs(beyond[0] - beyond[1]) > error  # the control: between 2^53 and 2^54 ties go to even
    within = parity(2.0**53 + 2.0**30, 4.0)
    assert abs(within[0] - within[1]) < error


@pytest.mark.parametrize("noise", ["toeplitz", "tree"])
@pytest.mark.parametrize(
    ("n", "T", "epsilon"), [(2, 2**53, 50.0), (1000, 2**50, 10.0), (3, 10**4, 50.0), (50, 64, 1e-3)]
)
def test_no_sum_within_the_horizon_has_too_many_steps(n, T, epsilon, noise):
    batch = max(1, T // 10**6)
    plan = plan_agarwal_singh_experts(rt.Experts(n), T, 1.0, epsilon, 0.5, noise=noise, batch=batch)
    step, slope = plan.steps[0], plan.leader.lipschitz
    assert (slope * T + 1000 * plan.level) / step < 2.0**52
    assert plan.level / step <= 2.0**22
    least = max(plan.level / 2.0**22, (slope * T + 1000 * plan.level) / 2.0**51)
    assert step / 2 < least <= step
    assert math.frexp(step)[0] == 0.5
    # What the ball holds: sums, and noise of 1000 deviations in every coordinate.
    assert plan.leader.domain.radius > slope * T + 1000 * plan.level * math.sqrt(n)


def test_the_grid_of_long_runs_is_paid_for():
    plan = plan_agarwal_singh_experts(rt.Experts(2), 2**53, 1.0, 50.0, 0.5, batch=2**24)
    assert plan.steps[0] > 2 * plan.level / 2.0**22
    free = NoisyWeightsPlan(
        plan.domain, 2**53, 1.0, beta=plan.beta, sigma=plan.sigma, batch=plan.batch, weights=plan.weights,
        decays=plan.decays,
    )  # fmt: skip
    paid = 2.0**53 * plan.beta * math.sqrt(2) * plan.steps[0] / 8
    assert plan.regret_bound - free.regret_bound == pytest.approx(paid, rel=1e-6)


def test_very_long_runs_have_as_few_batches_as_their_noise_and_the_machine_allow():
    long = plan_agarwal_singh_experts(rt.Experts(2), 2**44, 1.0, 50.0, 0.5)
    assert long.leader.batches <= 10**12
    rough = plan_agarwal_singh_experts(rt.Experts(1000), 2**47, 1.0, 1e-4, 1e-6)
    assert rough.account().epsilon(1e-6) <= 1e-4 * (1 + 1e-9)
    with pytest.raises(ValueError, match="what rounding may reveal"):
        plan_agarwal_singh_experts(rt.Experts(10**4), 2**30, 1.0, 1e-6, 1e-30)


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        ("a", "sigma must be a real number"),
        (None, "sigma must be a real number"),
        (-1.0, "sigma must be greater than 0"),
        (math.nan, "sigma must be finite"),
        (1e-317, "sigma must be at least"),
        (1e300, "sigma=1e[+]300; choose other units"),
    ],
)
def test_noise_that_is_none_is_refused_by_its_name(sigma, message):
    with pytest.raises(ValueError, match=message):
        NoisyWeightsPlan(rt.Experts(3), 100, 1.0, beta=0.1, sigma=sigma)


def test_losses_too_large_for_their_sums_are_refused_by_their_name():
    with pytest.raises(ValueError, match=r"lipschitz=1e[+]95 .*choose other units"):
        plan_agarwal_singh_experts(rt.Experts(3), 10**6, 1e95, 1.0, 1e-6)


def test_more_switches_promise_no_less_where_buffers_differ_by_batch():
    goal = rt.Experts(49), 137_494, 1.0, 0.003224755720861977, 7.458106098787036e-10
    bounds = [plan_agarwal_singh_experts(*goal, max_switches=S).regret_bound for S in (4084, 4493)]
    assert bounds[0] < 66_700  # 66,774 by the square root's best batch
    assert bounds[1] <= bounds[0]
    assert bounds[1] <= plan_agarwal_singh_experts(*goal, batch=3720).regret_bound * (1 + 5e-4)


@pytest.mark.parametrize("planner", [plan_agarwal_singh_experts, plan_drawn_leader])
@pytest.mark.parametrize("rounds", [3, 40])
def test_a_saved_state_has_the_chances_of_its_leader(planner, rounds, tmp_path):
    learner = rt.make(planner(rt.Experts(5), 100, 1.0, 2.0, 1e-4, batch=7), rt.Linear(), seed=1)
    learner.observe_many(np.random.default_rng(2).random((rounds, 5)))
    learner.save(tmp_path / "right")
    assert rt.load(tmp_path / "right").rounds == rounds
    learner._walk.chances = np.array([2.0, -1.0, 0.0, 0.0, 0.0])
    learner.save(tmp_path / "wrong")
    with pytest.raises(ValueError, match="chances"):
        rt.load(tmp_path / "wrong")


@pytest.mark.parametrize("noise", ["toeplitz", "tree"])
@pytest.mark.parametrize("epsilon", [1e-4, 2e-6])
def test_noise_that_no_played_expert_sees_costs_nothing(noise, epsilon):
    """Three rounds that nothing can be learned from: exponential weights that stay uniform lose half at most."""
    goal = (rt.Experts(2), 3, 1.0, epsilon, 1e-6)
    for batch in (None, 4):
        plan = plan_agarwal_singh_experts(*goal, noise=noise, batch=batch)
        assert plan.batch == 4
        assert plan.regret_bound == pytest.approx(3 * math.sqrt(math.log(2) / 2), rel=1e-6)
    # The noise on the sum of all rounds is drawn, and never played: one batch that is the whole run.
    whole = plan_agarwal_singh_experts(*goal, noise=noise, batch=3)
    assert whole.level > 1e3
    assert whole.leader.regret.level == 0.0
    # With a round to follow it is.
    assert plan_agarwal_singh_experts(*goal, noise=noise, batch=2).regret_bound > 1e3
