"""Experts drawn from DP-FTRL on the simplex: what it rests on, and that draws follow the points (docs/theory, R4i)."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

import reticent as rt
from reticent.planning import DrawnLeaderPlan, plan_drawn_leader, plan_private_dartboard
from reticent.systems.experts._drawn_leader import steepness
from reticent.systems.experts._kernel import draw_along

ALPHA = 1e-6


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_no_loss_of_range_one_is_steeper_on_the_simplex(n):
    simplex, rng = rt.Simplex(n), np.random.default_rng(0)
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    inside = rng.random((500, n))
    lengths = np.linalg.norm(simplex.pull(np.concatenate([corners, inside]))[0], axis=1)
    assert lengths.max() == pytest.approx(steepness(n), rel=1e-12)
    assert steepness(n) <= np.sqrt(n) / 2
    # Negative control: the length for one expert against all others is exceeded where there are four or more.
    assert n < 4 or lengths.max() > np.sqrt((n - 1) / n) * (1 + 1e-9)
    changes = corners[:, None] - corners
    found = np.linalg.norm(simplex.pull(changes.reshape(-1, n))[0], axis=1)
    assert found.max() == pytest.approx(2 * steepness(n), rel=1e-12)


def test_a_small_epsilon_is_cheaper_than_with_the_dartboard():
    goal = rt.Experts(3), 10**6, 1.0, 0.1, 1e-6
    drawn, dartboard = plan_drawn_leader(*goal), plan_private_dartboard(*goal)
    assert drawn.regret_bound == pytest.approx(765, rel=0.01)
    assert drawn.regret_bound < 0.3 * dartboard.regret_bound
    assert drawn.account().epsilon(1e-6) <= 0.1 * (1 + 1e-9)
    assert drawn.account().epsilon(1e-6) == pytest.approx(0.1, rel=1e-6)


def test_its_account_is_that_of_the_leader_and_half_the_noise_is_refused():
    plan = plan_drawn_leader(rt.Experts(4), 5000, 2.0, 1.0, 1e-6, neighbors="zero-out")
    assert plan.leader.lipschitz == pytest.approx(2.0)  # of four numbers of range 2
    assert plan.account().epsilon(1e-6) == plan.leader.account().epsilon(1e-6)
    values = {"lam": plan.lam, "batch": plan.batch, "weights": plan.weights, "decays": plan.decays}
    with pytest.raises(ValueError, match="epsilon must be at least"):
        type(plan)(
            plan.domain, 5000, 2.0, sigma=plan.sigma / 2, epsilon=1.0, delta=1e-6, neighbors="zero-out", **values
        )


def test_changes_have_a_hard_cap():
    plan = plan_drawn_leader(rt.Experts(5), 2000, 1.0, 5.0, 1e-4, max_switches=30)
    assert plan.max_switches <= 30
    rng = np.random.default_rng(1)
    for seed in range(3):
        trace = rt.make(plan, rt.Linear(), seed=seed).observe_many(rng.random((2000, 5)))
        assert trace.switches <= 30


def runs(count, points, broken=False):
    """Return the experts after each change of the points, one run per row, and how many changed."""
    rng, n = np.random.default_rng(7), points.shape[1]
    places, found = np.arange(len(points)), np.empty((count, len(points)), dtype=np.int64)
    first = np.full(n, 1 / n)
    changes = 0
    for run in found:
        start = int(rng.integers(n))
        draw_along(rng, places, points, np.full(n, 0.5) if broken else first.copy(), start, run)
        changes += int((np.diff(run, prepend=start) != 0).sum())
    return found, changes


def p_values(found, points):
    counts = [np.bincount(found[:, k], minlength=points.shape[1]) for k in range(points.shape[0])]
    values = []
    for seen, law in zip(counts, points, strict=True):
        some = law > 0
        assert not seen[~some].any()
        wanted = len(found) * law[some]
        values.append(float(chi2.sf(((seen[some] - wanted) ** 2 / wanted).sum(), some.sum() - 1)))
    return np.array(values)


POINTS = np.array([[0.5, 0.2, 0.3], [0.1, 0.2, 0.7], [0.0, 0.6, 0.4], [0.0, 0.6, 0.4], [0.45, 0.1, 0.45]])


def test_an_expert_has_the_law_of_the_point_and_changes_as_rarely_as_that_allows():
    found, changes = runs(40_000, POINTS)
    assert p_values(found, POINTS).min() > ALPHA / len(POINTS)
    path = np.concatenate([[[1 / 3] * 3], POINTS])
    expected = 40_000 * 0.5 * np.abs(np.diff(path, axis=0)).sum()
    assert abs(changes - expected) < 5 * np.sqrt(expected)


def test_a_draw_that_takes_another_point_for_the_last_is_caught():
    """Negative control: a coin that believes in chances of one half."""
    found, _ = runs(40_000, POINTS, broken=True)
    assert p_values(found, POINTS).min() < ALPHA / len(POINTS)


@pytest.mark.parametrize("seed", [1, 2])
def test_regret_stays_below_the_certificate(seed):
    plan = plan_drawn_leader(rt.Experts(3), 4000, 1.0, 2.0, 1e-5)
    assert not plan.vacuous
    rng = np.random.default_rng(seed)
    losses = np.clip(rng.normal([0.4, 0.5, 0.6], 0.2, (4000, 3)), 0.0, 1.0)
    found = [float(rt.make(plan, rt.Linear(), seed=s).observe_many(losses).regret()) for s in range(5)]
    assert np.mean(found) <= plan.regret_bound


def expected_regret(streams, plan):
    """Return the expected regret of two experts in streams of +1, 0, -1: what the first loses beyond the other.

    Its chance is (1 - y)/2, where y is a normal variable, cut off at -1 and 1: the mean is in closed form.
    """
    leader, T, b = plan.leader, plan.horizon, plan.batch
    paid, sums = np.zeros(len(streams)), np.concatenate([np.zeros((len(streams), 1)), streams.cumsum(axis=1)], axis=1)
    for first in range(0, T, b):
        block = sums[:, min(first + b, T)] - sums[:, first]
        # Sums less their mean are +-1/2 of the difference; noise has its deviation along (1, -1)/sqrt(2).
        mean = sums[:, first] / plan.lam
        spread = np.sqrt(2.0) * leader.sigma * leader.mechanism.deviation(first // b) / plan.lam if first else 1e-12
        low, high = (-1 - mean) / spread, (1 - mean) / spread
        below, above = ndtr(low), ndtr(-high)
        heights = [np.exp(-(np.minimum(np.abs(end), 1e100) ** 2) / 2) for end in (low, high)]
        cut = above - below + mean * (1 - above - below) + spread * (heights[0] - heights[1]) / np.sqrt(2 * np.pi)
        paid -= block * cut / 2
    return paid + np.abs(sums[:, -1]) / 2


def worst_share(plan, rng, tries=4):
    """Climb to streams of much regret, one round at a time; return the largest as a share of the bound."""
    T, worst = plan.horizon, 0.0
    for k in range(tries):
        stream = np.ones(T) if k == 0 else rng.choice([-1.0, 0.0, 1.0], T)
        value, better = expected_regret(stream[None], plan)[0], True
        while better:
            better = False
            for i in rng.permutation(T):
                others = np.tile(stream, (3, 1))
                others[:, i] = -1.0, 0.0, 1.0
                found = expected_regret(others, plan)
                if found.max() > value + 1e-12:
                    stream, value, better = others[int(found.argmax())], float(found.max()), True
        worst = max(worst, value)
    return worst / plan.regret_bound


def test_no_stream_of_two_experts_passes_the_bound_and_one_without_noise_is_passed():
    rng, shares, silent = np.random.default_rng(5), [], []
    for T, b, sigma, lam in itertools.product((6, 25), (1, 4), (0.1, 1.0, 5.0), (1.0, 4.0, 15.0)):
        plan = DrawnLeaderPlan(rt.Experts(2), T, 1.0, lam=lam, sigma=sigma, batch=b)
        shares.append(worst_share(plan, rng))
        quiet = DrawnLeaderPlan(rt.Experts(2), T, 1.0, lam=lam, sigma=sigma / 100, batch=b)
        silent.append(shares[-1] * plan.regret_bound / quiet.regret_bound)
    assert 0.98 < max(shares) <= 1.0
    assert max(silent) > 1.2


def test_blocks_of_rounds_do_not_matter():
    plan = plan_drawn_leader(rt.Experts(3), 300, 1.0, 2.0, 1e-5, batch=7)
    losses = np.random.default_rng(3).random((300, 3))
    whole = rt.make(plan, rt.Linear(), seed=5).observe_many(losses)
    parted = rt.make(plan, rt.Linear(), seed=5)
    shown = [parted.observe_many(part).losses for part in np.array_split(losses, 13)]
    np.testing.assert_array_equal(whole.losses, np.concatenate(shown))
