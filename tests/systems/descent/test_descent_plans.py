"""Gradient descent and FTRL: certificates, block lengths, and a stream that comes close to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent as rt
from reticent.planning import plan_descent, plan_leader


@given(st.integers(1, 5000), st.integers(0, 6000))
def test_blocks_are_the_shortest_that_keep_the_number_of_switches(horizon, switches):
    plan = plan_descent(rt.Ball(2), horizon, 1.0, max_switches=switches)
    assert plan.max_switches <= switches
    assert plan.batch == 1 or horizon // (plan.batch - 1) > switches


@pytest.mark.parametrize("max_switches", [None, 50])
def test_the_best_step_is_the_best(max_switches):
    from dataclasses import replace

    plan = plan_descent(rt.Box([-1, -2], [1, 2]), 1000, 3.0, max_switches=max_switches)
    for factor in (0.9, 1.1):
        assert replace(plan, step=plan.step * factor).regret_bound > plan.regret_bound
    leader = plan_leader(rt.Box([-1, -2], [1, 2]), 1000, 3.0)
    for factor in (0.9, 1.1):
        assert replace(leader, lam=leader.lam * factor).regret_bound > leader.regret_bound


@pytest.mark.parametrize("max_switches", [None, 20])
def test_a_stream_that_turns_against_the_decision_comes_close(max_switches):
    # One dimension, every gradient points so that the decision in play loses: adaptive, which R1 allows.
    domain, T = rt.Interval(-1.0, 1.0), 900
    plan = plan_descent(domain, T, 1.0, max_switches=max_switches)
    learner = rt.make(plan, rt.Linear(), seed=1)
    total, gradients = 0.0, []
    for _ in range(T):
        g = 1.0 if learner.decision[0] >= 0 else -1.0
        total += g * learner.decision[0]
        gradients.append(g)
        learner.observe([g])
    regret = total + abs(sum(gradients))
    assert 0.2 * plan.regret_bound <= regret <= plan.regret_bound


def test_refusals_name_the_value():
    with pytest.raises(ValueError, match=r"convex body, got Experts\(3\)"):
        plan_descent(rt.Experts(3), 10, 1.0)
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 0, got -1"):
        plan_descent(rt.Ball(2), 10, 1.0, max_switches=-1)
    with pytest.raises(ValueError, match="not a private system"):
        plan_descent(rt.Ball(2), 10, 1.0).account()
    with pytest.raises(ValueError, match="not a private system"):
        rt.privacy.account(plan_leader(rt.Ball(2), 10, 1.0))
