"""The restarting leader: its algorithm line by line, its two certificates, and what goes wrong without restarts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import reticent as rt
from reticent.systems.experts._budget import (
    RestartingLeader,
    RestartingLeaderPlan,
    _overrun,
    _Restarting,
    maxima,
    plan_restarting_leader,
)
from reticent.systems.experts._dartboard import plan_dartboard
from reticent.systems.experts._kernel import restarting
from reticent.systems.experts._learner import ShrinkingDartboard

TWO, FOUR = rt.Experts(2), rt.Experts(4)


def by_hand(plan, vectors, rng):
    """Return the expert of every round, the largest noise of every epoch and the changes of every epoch, in Python."""
    n, played, noises, changes = plan.n, [], [], []
    switches = rounds = 0
    sums, noise = np.zeros(n), rng.standard_exponential(n) / plan.rate
    expert = int(np.argmin(-noise))
    noises.append(noise.max())
    changes.append(0)
    for losses in vectors:
        played.append(expert)
        if switches >= plan.max_switches:
            continue
        sums, rounds = sums + losses, rounds + 1
        leader = int(np.argmin(sums - noise))
        changes[-1] += leader != expert
        if rounds == plan.epoch or changes[-1] == plan.changes:
            sums, noise, rounds = np.zeros(n), rng.standard_exponential(n) / plan.rate, 0
            leader = int(np.argmin(-noise))
            noises.append(noise.max())
            changes.append(0)
        switches += leader != expert
        expert = leader
    return played, noises, changes, switches


@pytest.mark.parametrize("seed", range(20))
def test_the_walk_is_the_algorithm_and_regret_is_bounded_path_by_path(seed):
    data = np.random.default_rng(100 + seed)
    vectors = data.random((300, 4)) * (data.random((300, 1)) < 0.7)
    vectors[::3, seed % 4] = 1.0
    vectors -= vectors.min(axis=1, keepdims=True)
    rate, failure = 0.4, 0.9
    plan = RestartingLeaderPlan(FOUR, 300, 1.0, rate=rate, epoch=50, changes=30, restarts=40, failure=failure)
    walk = _Restarting(plan, np.random.default_rng(seed))
    after = np.empty(300, dtype=np.int64)
    first = walk.expert
    walk._play(vectors, after)
    played, noises, changes, switches = by_hand(plan, vectors, np.random.default_rng(seed))
    assert played == [first, *after[:-1]]
    assert walk.state[3] == switches <= plan.max_switches
    assert not walk.frozen
    regret = vectors[np.arange(300), played].sum() - vectors.sum(axis=0).min()
    assert regret <= sum(noises) + sum(changes) + 1e-9


def sweep(rounds: int, stay: int) -> np.ndarray:
    """A stream that changes the leader again and again wherever the difference of two noises may lie.

    It goes to and fro across a window of the difference of sums `stay` times, then moves on to the next.
    """
    step = [[1.0, 0.0], [0.0, 1.0]]
    pattern = (step * stay)[:stay] + ([] if stay % 2 else [[1.0, 0.0]])
    return np.array((pattern * (rounds // len(pattern) + 1))[:rounds])


def test_switches_keep_the_budget_where_one_noise_does_not():
    """1,500 runs, fixed seeds: overruns are as rare as certified; a leader without restarts has far too many."""
    plan = plan_restarting_leader(TWO, 3000, 1.0, max_switches=300, failure=0.02)
    vectors = sweep(3000, plan.max_switches + 11)
    runs, over, alone = 1500, 0, 0
    after = np.empty(3000, dtype=np.int64)
    for seed in range(runs):
        walk = _Restarting(plan, np.random.default_rng(seed))
        walk._play(vectors, after)
        over += walk.frozen
        rng = np.random.default_rng(seed)
        sums = -rng.standard_exponential(2) / plan.rate
        state = np.array([int(np.argmin(sums)), 0, 0, 0])
        restarting(rng, plan.rate, 1 << 40, 1 << 40, plan.max_switches, vectors, sums, state, after)
        alone += state[3] >= plan.max_switches
    limit = binom.ppf(1 - 1e-6, runs, plan.overrun)
    assert over <= limit
    assert alone > limit


def test_the_bound_on_changes_of_one_epoch():
    """Changes in an epoch, over its noise: the mean is at most m (1 - exp(-rate G)), and comes near on some streams."""
    rate, m, runs = 0.05, 40, 4000
    rng = np.random.default_rng(8)
    vectors = sweep(m, m)
    counts = []
    for _ in range(runs):
        noise = rng.standard_exponential(2) / rate
        leaders = np.argmin(np.vstack([np.zeros(2), np.cumsum(vectors, axis=0)]) - noise, axis=1)
        counts.append((np.diff(leaders) != 0).sum())
    most = m * -math.expm1(-rate)
    slack = 5 * np.std(counts) / math.sqrt(runs)
    assert 0.3 * most < np.mean(counts) <= most + slack
    assert np.mean(counts) > 0.3 * most + slack  # so a bound three times lower is caught


def test_sums_of_largest_noises():
    rng = np.random.default_rng(4)
    for n, epochs, failure in ((2, 3, 0.1), (10, 15, 0.01), (1000, 5, 0.05)):
        tops = -np.log1p(-(rng.random((200_000, epochs)) ** (1 / n)))  # the largest of n, by its distribution function
        bound = maxima(n, epochs, failure)
        over = int((tops.sum(axis=1) > bound).sum())
        assert over <= binom.ppf(1 - 1e-6, 200_000, failure)
        assert (tops.sum(axis=1) > 0.65 * bound).mean() > failure  # a bound a third lower is caught


def test_overruns_are_no_rarer_than_binomials():
    for full, restarts, share in ((7, 8, 0.16), (3, 5, 0.1), (1, 1, 0.05)):
        exact = binom.sf(restarts - 1, full + restarts, share)
        assert exact <= float(_overrun(full, restarts, share)) <= 30 * exact
    assert _overrun(5, 5, 0.6) == 1.0


def test_the_rate_with_many_switches_and_monotone_certificates():
    few = [plan_restarting_leader(FOUR, 10**9, 1.0, S).high_probability_bound for S in (10**4, 10**5)]
    assert few[1] < 0.11 * few[0]  # T log n/S: ten times the switches, a tenth of the regret
    for horizon in (1000, 10**6):
        bounds = [plan_restarting_leader(FOUR, horizon, 1.0, S).high_probability_bound for S in range(1, 900, 37)]
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(bounds))
    wide = rt.planning.plan_limited_switching(FOUR, 10**10, 1.0, 10**5)
    assert plan_restarting_leader(FOUR, 10**10, 1.0, 10**5).high_probability_bound < wide.high_probability_bound


@pytest.mark.parametrize("switches", [1, 2, 17, 400])
def test_planned_budgets_fit(switches):
    plan = plan_restarting_leader(FOUR, 1000, 2.0, switches)
    assert plan.max_switches <= switches
    assert plan.overrun <= plan.failure / 2 * (1 + 1e-9)
    assert plan.expected_switches <= plan.max_switches
    learner = RestartingLeader(plan, rt.Linear(), seed=3)
    trace = learner.observe_many(2 * np.random.default_rng(1).random((1000, 4)))
    assert trace.switches <= switches
    assert float(trace.regret()) <= plan.high_probability_bound


@pytest.mark.parametrize(("epoch", "changes"), [(10_000, 1), (5000, 1), (3333, 2)])
def test_a_change_after_the_last_round_counts(epoch, changes):
    """Zeros, 400 runs with fixed seeds: leaders change where epochs end, and the last epoch may end with the run."""
    n, runs, zeros = 100, 400, np.zeros((10_000, 100))
    plan = RestartingLeaderPlan(
        rt.Experts(n), 10_000, 1.0, rate=1e-9, epoch=epoch, changes=changes, restarts=1, failure=0.5
    )
    found = [RestartingLeader(plan, rt.Linear(), seed).observe_many(zeros).switches for seed in range(runs)]
    assert max(found) <= plan.max_switches
    assert np.mean(found) <= plan.expected_switches
    assert np.mean(found) > 10_000 // epoch * (1 - 1 / n) - 5 * math.sqrt(1 / n / runs)


@pytest.mark.parametrize("switches", [1, 2, 5, 40])
def test_planned_runs_of_zeros_keep_what_is_expected(switches):
    zeros = np.zeros((1000, 100))
    plan = plan_restarting_leader(rt.Experts(100), 1000, 1.0, switches)
    found = [RestartingLeader(plan, rt.Linear(), seed).observe_many(zeros).switches for seed in range(100)]
    assert max(found) <= plan.max_switches <= switches
    assert np.mean(found) <= plan.expected_switches


def test_refusals():
    with pytest.raises(ValueError, match="take a lower rate, more restarts"):
        RestartingLeaderPlan(TWO, 1000, 1.0, rate=1.0, epoch=100, changes=5, restarts=3)
    with pytest.raises(ValueError, match="failure must be greater than 0"):
        plan_restarting_leader(TWO, 1000, 1.0, 10, failure=0.0)
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 1"):
        plan_restarting_leader(TWO, 1000, 1.0, 0)


@pytest.mark.parametrize("switches", [9, 25, 100])
def test_regret_of_the_dartboard_does_not_concentrate(switches):
    """The counterexample of R4k: deviations of order T/sqrt(S), where its expected regret is of order T log(n)/S."""
    horizon = 20_000
    plan = plan_dartboard(TWO, horizon, 1.0, switches)
    block = horizon // switches
    turns = (np.arange(horizon) // block) % 2
    data = np.stack([turns == 0, turns == 1], axis=1).astype(float)
    found = [float(ShrinkingDartboard(plan, rt.Linear(), seed).observe_many(data).regret()) for seed in range(150)]
    assert np.std(found) > 0.15 * horizon / math.sqrt(switches)
