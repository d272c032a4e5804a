"""Doubling experts: the law of a draw, its privacy by brute force, exact coins, and regret on independent losses."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

import reticent as rt
from reticent.planning import DoublingPlan, plan_doubling
from reticent.systems.experts._doubling import exponential_coin, on_grid, permute_and_flip


def enumerated(sums, eta):
    """The law of permute and flip, from all orders."""
    coins = np.exp(-eta * (np.array(sums) - min(sums)))
    law = np.zeros(len(sums))
    for order in itertools.permutations(range(len(sums))):
        left = 1.0
        for i in order:
            law[i] += left * coins[i]
            left *= 1 - coins[i]
    return law / math.factorial(len(sums))


def integral(sums, eta, i):
    """The formula of docs/theory, R12a, by the midpoint rule."""
    s = (np.arange(20_000) + 0.5) / 20_000
    q = [math.exp(-eta * (other - sums[i])) for j, other in enumerate(sums) if j != i]
    return float(np.prod([np.maximum(1 - s * one, 0.0) for one in q], axis=0).mean())


def test_the_formula_is_the_law():
    for sums in ([0, 3, 1], [5, 5, 0], [2, 2, 2], [0, 0, 9, 4]):
        law = enumerated(sums, 0.4)
        assert law.sum() == pytest.approx(1.0)
        assert [integral(sums, 0.4, i) for i in range(len(sums))] == pytest.approx(law.tolist(), abs=1e-6)


@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_no_pair_of_neighbours_is_told_apart_better_than_promised_and_some_as_well(neighbors):
    """All sums of the other rounds up to 4, all rows of three experts on a grid of three values: G = 2 steps."""
    eta, top = 0.35, 2
    rows = [row for row in itertools.product(range(top + 1), repeat=3) if min(row) == 0]
    pairs = itertools.product(rows, rows if neighbors == "replace" else [(0, 0, 0)])
    changes = {tuple(np.subtract(a, b).tolist()) for a, b in pairs}
    epsilon = eta * top * (2 if neighbors == "replace" else 1)
    worst, laws = 0.0, {}
    for base in itertools.product(range(5), repeat=3):
        for change in changes:
            other = tuple(np.add(base, change).tolist())
            for sums in (base, other):
                if sums not in laws:
                    laws[sums] = np.log(enumerated(sums, eta))
            worst = max(worst, float(np.abs(laws[base] - laws[other]).max()))
    assert worst <= epsilon * (1 + 1e-12)
    assert worst >= 0.9 * epsilon
    two = [np.log(enumerated(sums, eta)[1]) for sums in ((0, 9), (top, 9 - top))]  # behind in both worlds: tight
    assert abs(two[0] - two[1]) == pytest.approx(2 * eta * top)


def test_draws_and_coins_have_their_law_and_a_wrong_rate_is_seen():
    """Chi-square with 2 degrees of freedom at significance 1e-6, on 20,000 draws; the control has rates 1.3 times."""
    rng, draws, sums = np.random.default_rng(12), 20_000, [3 << 20, 0, 1 << 20]
    expected = draws * enumerated([3, 0, 1], 0.5)

    def statistic(rate):
        steps = round(rate * 2**32)
        found = np.bincount([permute_and_flip(rng, sums, steps, 52) for _ in range(draws)], minlength=3)
        return float(((found - expected) ** 2 / expected).sum())

    limit = chi2.isf(1e-6, 2)
    assert statistic(0.5) < limit < statistic(0.65)
    for exponent in (0.3, 1.0, 2.7):
        steps = round(exponent * 2**52)
        share = np.mean([exponential_coin(rng, steps, 52) for _ in range(draws)])
        chance = math.exp(-exponent)
        # Five deviations of a normal law: 6e-7.
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / draws)


def test_losses_on_the_grid_never_exceed_what_one_round_may_bring():
    rows = np.random.default_rng(0).random((1000, 3)) * 1.0000001
    found = on_grid(rows, 1.0)
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.max() <= 1 << 20


def test_the_account_is_pure_for_any_number_of_rounds():
    plan = plan_doubling(rt.Experts(4), None, 1.0, epsilon=0.7)
    learner = rt.make(plan, rt.Linear(), seed=1)
    assert learner.spent() == 0.0
    learner.observe_many(np.random.default_rng(0).random((5000, 4)))
    assert learner.spent() == pytest.approx(0.7, rel=1e-8)
    assert learner.spent() <= 0.7
    assert learner.spent(1e-3) < 0.7
    assert "delta = 0" in plan.explain()
    assert plan.account().delta(0.7) == 0.0
    half = plan_doubling(rt.Experts(4), None, 1.0, epsilon=0.7, neighbors="zero-out")
    assert half.rate == pytest.approx(2 * plan.rate)


def test_what_cannot_be_promised_is_refused():
    with pytest.raises(ValueError, match="epsilon must be at least 2"):
        DoublingPlan(rt.Experts(3), None, 1.0, rate=1.0, epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="whole number"):
        DoublingPlan(rt.Experts(3), None, 1.0, rate=0.1, epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="give a horizon"):
        plan_doubling(rt.Experts(3), None, 1.0, 1.0, max_switches=3)
    with pytest.raises(ValueError, match="Experts"):
        plan_doubling(rt.Ball(3), None, 1.0, 1.0)


@pytest.mark.parametrize("cap", [0, 1, 5])
def test_a_cap_is_kept(cap):
    plan = plan_doubling(rt.Experts(5), 1000, 1.0, 5.0, max_switches=cap)
    assert plan.max_switches <= cap
    learner = rt.make(plan, rt.Linear(), seed=3)
    learner.observe_many(np.random.default_rng(0).random((1000, 5)))
    assert learner.switches <= cap


def test_regret_on_independent_losses_is_below_its_bound_and_stops_growing():
    rng, gap = np.random.default_rng(5), 0.3
    plan = plan_doubling(rt.Experts(5), None, 1.0, epsilon=1.0)
    regrets = []
    for seed in range(20):
        losses = (rng.random((20_000, 5)) < 0.5 + gap * (np.arange(5) > 0)).astype(float)
        trace = rt.make(plan, rt.Linear(), seed=seed).observe_many(losses)
        assert trace.switches <= plan.switches_at(20_000) == 14
        regrets.append(float(trace.regret()))
    assert np.mean(regrets) < plan.regret_at(20_000, gap)
    assert plan.regret_at(10**9, gap) - plan.regret_at(10**6, gap) < 1100  # the grid's part: 2^-20 a round
    assert plan.regret_at(10**4) < 10**4
