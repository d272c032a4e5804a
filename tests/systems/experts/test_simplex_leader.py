"""Experts drawn from the leader on the simplex without noise: regret and changes, exactly (docs/theory, R4i)."""

import itertools
import math

import numpy as np
import pytest

import reticent as rt
from reticent.planning import plan_dartboard, plan_hedge, plan_simplex_leader

DEVIATIONS = 5.0  # two-sided, 6e-7: below a significance of 1e-6


def path(plan, stream):
    """Return the chances before every round, and after the last, by the projection of the domain."""
    simplex, sums = rt.Simplex(plan.n), np.cumsum(stream, axis=0)
    found = [simplex.center, *(simplex.project(simplex.center - row / plan.lam) for row in sums)]
    return np.array(found)


def shares(plan, stream):
    """Return expected regret and switches as shares of their bounds."""
    points = path(plan, stream)
    regret = (points[:-1] * stream).sum() - stream.sum(axis=0).min()
    return regret / plan.regret_bound, 0.5 * np.abs(np.diff(points, axis=0)).sum() / plan.expected_switches


@pytest.mark.parametrize(("n", "rounds"), [(2, 8), (3, 4), (4, 3)])
def test_no_short_game_exceeds_the_bounds_and_little_less_is_exceeded(n, rounds):
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=n)))[1:-1]
    worst = np.zeros(2)
    for switches in (None, 1):
        plan = plan_simplex_leader(rt.Experts(n), rounds, 1.0, switches)
        for game in itertools.product(corners, repeat=rounds):
            worst = np.maximum(worst, shares(plan, np.array(game)))
    assert worst.max() <= 1 + 1e-9
    assert worst[1] > 1 - 1e-9  # a stream that changes as often as that
    assert worst[0] > (0.9 if n < 4 else 0.8)


def test_a_run_changes_as_often_as_its_chances_say():
    plan = plan_simplex_leader(rt.Experts(3), 200, 1.0)
    stream = np.random.default_rng(0).random((200, 3)).round()
    wanted = 0.5 * np.abs(np.diff(path(plan, stream), axis=0)).sum()
    runs = [rt.make(plan, rt.Linear(), seed=seed).observe_many(stream) for seed in range(200)]
    switches, losses = np.array([[trace.switches, trace.losses.sum()] for trace in runs]).T
    error = DEVIATIONS / math.sqrt(len(runs))
    assert abs(switches.mean() - wanted) < error * switches.std()
    fresh = (1 - (path(plan, stream) ** 2).sum(axis=1)).sum()  # drawn anew every round
    assert abs(switches.mean() - fresh) > error * switches.std()
    assert abs(losses.mean() - (path(plan, stream)[:-1] * stream).sum()) < error * losses.std()


def test_it_promises_less_regret_than_hedge_for_two_and_three_experts_only():
    for n, wins in ((2, True), (3, True), (4, False), (10, False)):
        plan, hedge = plan_simplex_leader(rt.Experts(n), 10**6, 1.0), plan_hedge(rt.Experts(n), 10**6, 1.0)
        assert (plan.regret_bound < hedge.regret_bound) == wins
    assert plan_simplex_leader(rt.Experts(2), 10**6, 1.0).regret_bound == pytest.approx(500.0)
    few = [plan(rt.Experts(2), 10**6, 1.0, 50) for plan in (plan_simplex_leader, plan_dartboard)]
    assert few[0].regret_bound < 0.75 * few[1].regret_bound


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("switches", [None, 50, 10**5])
def test_dropping_privacy_promises_no_less(n, switches):
    goal = rt.Experts(n), 10**5, 1.0, rt.Linear()
    free = rt.best_plan(*goal, max_switches=switches).regret_bound
    for epsilon in (1.0, 40.0):
        assert free <= rt.best_plan(*goal, epsilon=epsilon, delta=1e-3, max_switches=switches).regret_bound


def test_who_asks_for_no_switch_is_refused():
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 1"):
        plan_simplex_leader(rt.Experts(2), 100, 1.0, 0)
    found = rt.compare_plans(rt.Experts(2), 100, 1.0, rt.Linear(), max_switches=0)
    assert found["experts drawn from FTRL"].reason == "needs one switch at least"
