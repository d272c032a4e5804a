"""Continuous weights for laziness alone: certificates, and runs below them."""

import itertools

import numpy as np
import pytest

import reticent as rt
from reticent.planning import plan_flat_lazy


@pytest.mark.parametrize("domain", [rt.Interval(-1.0, 1.0), rt.Ball(3), rt.Box([-1, 0], [1, 2])], ids=str)
def test_more_switches_never_promise_less(domain):
    bounds = []
    for switches in (1, 10, 100, 1000, 10_000, 100_000):
        plan = plan_flat_lazy(domain, 100_000, 1.0, switches)
        assert plan.expected_switches <= switches * (1 + 1e-9)
        assert not plan.private
        bounds.append(plan.regret_bound)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(bounds))
    assert plan_flat_lazy(domain, 100_000, 1.0).regret_bound <= bounds[-1] * (1 + 1e-6)


@pytest.mark.parametrize("domain", [rt.Interval(-1.0, 1.0), rt.Ball(2), rt.Ball(25)], ids=str)
def test_short_runs_with_more_switches_never_promise_less(domain):
    """Where the best beta was looked for once hung on the switches allowed: up to 0.2 % more."""
    for rounds in (2, 3, 7, 15, 40):
        bounds = [plan_flat_lazy(domain, rounds, 1.0, switches).regret_bound for switches in range(1, rounds + 1)]
        assert all(later <= earlier for earlier, later in itertools.pairwise(bounds))


def test_the_best_beta_is_found():
    plan = plan_flat_lazy(rt.Ball(2), 50_000, 1.0)
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = rt.planning.FlatLazyPlan(rt.Ball(2), 50_000, 1.0, beta=plan.beta * factor, p=0.0, budget=50_000)
        assert plan.regret_bound <= other.regret_bound


def test_runs_keep_what_is_promised():
    plan = plan_flat_lazy(rt.Interval(-1.0, 1.0), 3000, 1.0, 200)
    targets = np.random.default_rng(0).uniform(-0.2, 0.8, 3000)
    switches, regrets = [], []
    for seed in range(4):
        trace = rt.make(plan, rt.Absolute(), seed=seed).observe_many(np.ones((3000, 1)), targets)
        switches.append(trace.switches)
        regrets.append(float(trace.regret()))
    assert isinstance(rt.make(plan, rt.Absolute(), seed=1), rt.learners.LazyFlatWeights)
    assert np.mean(switches) <= plan.expected_switches
    assert np.mean(regrets) <= plan.regret_bound


def test_it_is_offered_for_few_changes_and_not_for_privacy():
    found = rt.compare_plans(rt.Interval(-1.0, 1.0), 2000, 1.0, rt.Absolute(), max_switches=100)
    assert found["continuous weights, lazy (Anava et al.)"].plan.expected_switches <= 100
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 1"):
        plan_flat_lazy(rt.Ball(2), 100, 1.0, 0)
