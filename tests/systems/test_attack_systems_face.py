"""Attacks on DP-FTRL, implicit descent, the approximate leader and the common face."""

import copy
import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtr

import reticent as rt
from reticent.systems.approximate_leader._approximate_leader import ApproximateLeaderPlan, plan_approximate_leader
from reticent.systems.ftrl import FTRLPlan, TreeLeaderPlan, plan_agarwal_singh, plan_ftrl
from reticent.systems.ftrl._noise import Buffers, Tree
from reticent.systems.ftrl._regret import LeaderRegret
from reticent.systems.implicit._implicit import ImplicitPlan, plan_implicit

BALL = rt.Ball(2)
ROWS = np.tile([0.6, 0.8], (50, 1))
NO_CLAIM = [
    FTRLPlan(BALL, 40, 1.0, lam=20.0, sigma=3.0),
    TreeLeaderPlan(BALL, 40, 1.0, lam=20.0, sigma=10.0),
    ImplicitPlan(BALL, 40, 1.0, alpha=0.3, noise=3.0),
    ApproximateLeaderPlan(BALL, 40, 1.0, added=0.3, noise=10.0),
]


# Attacks that succeeded.


@pytest.mark.parametrize("plan", NO_CLAIM, ids=lambda plan: type(plan).__name__)
def test_spent_does_not_stand_still_beyond_the_horizon(plan):
    learner = rt.make(plan, rt.Linear(), seed=1)
    for _ in range(40):
        learner.observe_many(ROWS)
    true = dataclasses.replace(plan, horizon=2000).account().epsilon(1e-5)
    try:
        found = learner.spent(1e-5)
    except ValueError:
        return  # to refuse is honest
    assert found >= true * (1 - 1e-9)


def test_a_shallow_copy_does_not_let_rounds_in_beyond_the_horizon():
    learner = rt.make(plan_ftrl(BALL, 50, 1.0, 1.0, 1e-6, batch=1), rt.Linear(), seed=1)
    with pytest.raises(TypeError, match="pickle it"):
        copy.copy(learner)


@pytest.mark.parametrize("goal", [(1e-6, 0.499), (3.6986658790376212e-06, 1.3014332682543659e-30), (49.0, 1e-30)])
@pytest.mark.parametrize("planner", [plan_implicit, plan_approximate_leader])
def test_rounding_does_not_make_a_planner_refuse_its_own_goal(planner, goal):
    plan = planner(BALL, 10, 1.0, *goal)
    assert plan.account().epsilon(goal[1]) <= goal[0] * (1 + 1e-9)


@pytest.mark.parametrize("goal", [(1e-6, 0.999), (1.0, 1e-300), (1e4, 1e-6)])
def test_goals_without_a_meaning_are_answered_with_reasons(goal):
    found = rt.compare_plans(BALL, 100, 1.0, rt.Linear(), epsilon=goal[0], delta=goal[1])
    for offer in found.refusals:
        assert not any(word in offer.reason for word in ("signs", "domain error", "range error"))
    assert all(offer.plan.account().epsilon(goal[1]) <= goal[0] * (1 + 1e-9) for offer in found.offers)


def test_large_epsilons_are_refused_before_they_overflow():
    with pytest.raises(ValueError, match="epsilon must be at most 50, got 800"):
        FTRLPlan(BALL, 100, 1.0, lam=20.0, sigma=2.0, epsilon=800.0, delta=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e-320])
@pytest.mark.parametrize("kind", ["ftrl", "leader", "implicit"])
def test_a_tiny_regulariser_leads_to_the_boundary_not_to_the_centre_or_nowhere(kind, size):
    try:
        plan = {
            "ftrl": lambda: FTRLPlan(BALL, 10, 1.0, lam=size, sigma=1e-3),
            "leader": lambda: ApproximateLeaderPlan(BALL, 10, 1.0, added=size, noise=1e-3),
            "implicit": lambda: ImplicitPlan(BALL, 10, 1.0, alpha=size, noise=0.0),
        }[kind]()
    except ValueError:
        return  # to refuse is fine
    learner = rt.make(plan, rt.Linear(), seed=1)
    learner.observe(np.array([0.6, 0.8]))
    assert np.linalg.norm(learner.decision - [-0.6, -0.8]) < 0.01


def test_tree_batches_are_near_the_best_of_all():
    ball, T = rt.Ball(53), 613
    plan = plan_ftrl(ball, T, 1.0, 0.36342336684797355, 0.0007774799587014478, noise="tree", linear=True)
    law = Tree(True)
    unit = plan.sigma / law.sensitivity(T // plan.batch)
    best = min(
        LeaderRegret.of(
            ball, T, 1.0, batch=b, noise=law, sigma=unit * law.sensitivity(max(T // b, 1)), topped=True
        ).best(True)[1]
        for b in range(1, T + 2)
    )
    assert plan.regret_bound <= 1.01 * best


def test_the_noise_of_buffers_written_by_hand_is_not_understated():
    weights, decays = (3.5e-14, 2.6e-19, 0.8), (0.9999999999999989, 0.9999999999999997, 0.9473571715906887)
    try:
        FTRLPlan(BALL, 2000, 1.0, lam=1.0, sigma=1.0, weights=weights, decays=decays)
    except ValueError:
        return  # to refuse is fine
    w, theta, state, y_sum, variance = np.array(weights), np.array(decays), np.zeros(3), 0.0, 0.0
    for i in range(2000):
        y = float(i == 0) - float(w @ state)
        state = theta * state + y
        y_sum += y
        variance += y_sum**2
    assert Buffers(weights, decays).deviation(2000) >= math.sqrt(variance) * (1 - 1e-9)


@pytest.mark.parametrize("planner", [plan_ftrl, plan_implicit, plan_approximate_leader])
def test_absurd_horizons_are_planned_or_refused_in_words(planner):
    try:
        bound = planner(BALL, 10**25, 1.0, 1.0, 1e-6).regret_bound
    except ValueError as error:
        why = str(error)
    else:
        why = "horizon" if bound > 0 else ""
    assert "horizon" in why


@pytest.mark.parametrize("weights", [None, 0.5])
def test_wrong_buffers_are_refused_by_name(weights):
    with pytest.raises(ValueError, match="weights"):
        FTRLPlan(BALL, 10, 1.0, lam=1.0, sigma=1.0, weights=weights, decays=weights)


# Attacks that failed.


def _mean_of_clipped(m, s):
    if s == 0:
        return np.clip(m, -1, 1)
    a, b = (-1 - m) / s, (1 - m) / s
    density = (np.exp(-(a**2) / 2) - np.exp(-(b**2) / 2)) / math.sqrt(2 * math.pi)
    return ndtr(-b) - ndtr(a) + m * (ndtr(b) - ndtr(a)) + s * density


@pytest.mark.parametrize("options", [{}, {"noise": "tree"}, {"batch": 7}, None], ids=str)
@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_no_linear_stream_at_all_is_above_the_certificate_in_one_dimension(options, factor):
    """The worst of all streams of -1, 0, 1 by dynamic programming over the sum so far, expectations exact."""
    size = (rt.Interval(-1, 1), 100, 1.0, 2.0, 1e-5)
    plan = plan_agarwal_singh(*size) if options is None else plan_ftrl(*size, linear=True, **({"batch": 1} | options))
    plan = dataclasses.replace(plan, lam=factor * plan.lam)
    T, b, noise = plan.horizon, getattr(plan, "batch", 1), plan.mechanism
    lengths = [b] * (T // b) + ([T % b] if T % b else [])
    sums = np.arange(-T, T + 1, dtype=float)
    worst = np.abs(sums)
    for k in reversed(range(len(lengths))):
        level = 0.0 if k == 0 else noise.largest(T // b) if plan.topped else noise.deviation(k)
        x = _mean_of_clipped(-sums / plan.lam, level * plan.sigma / plan.lam)
        padded = np.pad(worst, lengths[k], constant_values=-np.inf)
        steps = range(-lengths[k], lengths[k] + 1)
        worst = np.max([g * x + padded[lengths[k] + g : lengths[k] + g + sums.size] for g in steps], axis=0)
    assert 0.3 * plan.regret_bound < worst[T] <= plan.regret_bound * (1 + 1e-12)


@pytest.mark.parametrize("noise", ["toeplitz", "toeplitz-exact"])
def test_decisions_are_those_of_dense_matrices_with_the_noise_of_the_seed(noise):
    d, n, b = 3, 33, 3
    rows = np.random.default_rng(0).normal(size=(100, d))
    rows /= 1.001 * np.linalg.norm(rows, axis=1)[:, None]
    plan = FTRLPlan(rt.Ball(d), 100, 1.0, lam=20.0, sigma=2.0, batch=b, noise=noise)
    trace = rt.make(plan, rt.Linear(), seed=9).observe_many(rows)
    rng = np.random.Generator(np.random.PCG64(9))
    if noise == "toeplitz":
        z = 2.0 * rng.standard_normal((n, d))
        w, theta = np.array(plan.weights), np.array(plan.decays)
        c = np.array([1.0, *((w * theta ** (k - 1)).sum() for k in range(1, n))])
    else:
        z = 2.0 * rng.standard_normal((d, n)).T
        c = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])
    C = sum(np.diag(np.full(n - k, c[k]), -k) for k in range(n))
    noisy = np.cumsum(np.linalg.solve(C, z) + rows[:99].reshape(n, b, d).sum(axis=1), axis=0)
    wanted = -noisy / 20.0
    wanted /= np.maximum(1.0, np.linalg.norm(wanted, axis=1))[:, None]
    found = np.vstack([trace.decisions(), trace.final])[3::3][:n]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)
    assert math.isclose(plan.mu(), 2 * np.linalg.norm(c) / 2.0, rel_tol=1e-12)
    assert math.isclose(plan.mu(50), 2 * np.linalg.norm(c[:16]) / 2.0, rel_tol=1e-12)


def test_topped_trees_are_those_of_the_seed():
    sigma, n, draws = 2.0, 50, np.random.Generator(np.random.PCG64(4))
    plan = FTRLPlan(rt.Interval(-1e3, 1e3), n, 1.0, lam=1.0, sigma=sigma, noise="tree", linear=True)
    trace = rt.make(plan, rt.Linear(), seed=4).observe_many(np.zeros((n, 1)))
    nodes, wanted = {}, []
    variance = [1 / (2 - 2.0**-h) for h in range(7)]
    ceiling = max(sum(v for h, v in enumerate(variance) if k >> h & 1) for k in range(n + 1))
    for k in range(1, n + 1):
        for h in range(7):
            if k % 2**h == 0:
                z, i = sigma * draws.standard_normal(), k >> h
                below = nodes[h - 1, 2 * i - 1] + nodes[h - 1, 2 * i] if h else 0.0
                nodes[h, i] = variance[h] * (z + (1 - 2.0**-h) * below)
        digits = [h for h in range(7) if k >> h & 1]
        have = sum(variance[h] for h in digits)
        total = sum(nodes[h, k >> h] for h in digits)
        if math.sqrt(ceiling) ** 2 > have:
            total += sigma * math.sqrt(max(math.sqrt(ceiling) ** 2 - have, 0)) * draws.standard_normal()
        wanted.append(-total)
    found = np.append(trace.decisions()[1:], trace.final)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_an_interrupt_in_a_custom_loss_leaves_a_learner_that_goes_on():
    calls = [0]

    def subgradient(x, c):
        calls[0] += 1
        if calls[0] == 90:
            raise KeyboardInterrupt
        return c

    plan = FTRLPlan(BALL, 50, 1.0, lam=20.0, sigma=1.0, batch=7)
    items = list(ROWS)
    whole = rt.make(plan, rt.Custom(lambda x, c: float(c @ x), lambda x, c: c, lipschitz=1.0), seed=3)
    wanted = whole.observe_many(items).decisions()
    learner = rt.make(plan, rt.Custom(lambda x, c: float(c @ x), subgradient, lipschitz=1.0), seed=3)
    with pytest.raises(KeyboardInterrupt):
        learner.observe_many(items)
    done = learner.rounds
    assert done == 39
    assert np.array_equal(learner.observe_many(items[done:]).decisions(), wanted[done:])
    assert learner.switches == whole.switches


@pytest.mark.parametrize("batch", [1, 1365, 4500])
def test_rows_and_blocks_agree_where_the_inbox_is_full_before_the_batch(batch):
    count = 9100 if batch > 1 else 300
    domain = rt.Simplex(17)
    rows = np.random.default_rng(1).normal(size=(count, 17)) / 10
    plan = FTRLPlan(domain, count, 1.0, lam=30.0, sigma=1.0, batch=batch)
    block, single = (rt.make(plan, rt.Linear(), seed=3, on_steep="clip") for _ in range(2))
    trace = block.observe_many(rows)
    decisions = []
    for row in rows:
        decisions.append(single.decision)
        single.observe(row)
    assert np.array_equal(trace.decisions(), decisions)
    assert single.switches == block.switches == trace.switches


@pytest.mark.parametrize("planner", [plan_ftrl, plan_agarwal_singh, plan_implicit, plan_approximate_leader])
def test_events_give_no_less_than_the_account(planner):
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    plan = planner(BALL, 100, 1.0, 1.0, 1e-6)
    for accountant in (PLDAccountant(), RdpAccountant()):
        found = accountant.compose(plan.dp_event()).get_epsilon(1e-6)
        assert found >= plan.account().epsilon(1e-6) * (1 - 1e-6)
