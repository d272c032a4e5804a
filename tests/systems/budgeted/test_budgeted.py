"""The budgeted follower: the cap, the guard, what it is good for, and its front door."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import reticent as rt
from reticent.planning import plan_budgeted, plan_descent
from reticent.systems.budgeted._memories import Memories, Windows
from reticent.systems.budgeted._price import Prices


@pytest.mark.parametrize("horizon", [1000, None])
@pytest.mark.parametrize("cap", [0, 1, 3, 4, 17, 999])
def test_the_cap_never_breaks_beyond_the_horizon_either(cap, horizon):
    learner = rt.lazy_learner(rt.Absolute(), rt.Interval(-1.0, 1.0), max_switches=cap, horizon=horizon)
    swings = np.where(np.arange(3000) // 7 % 2, 1.0, -1.0)
    trace = learner.observe_many(np.ones(3000), swings)
    assert trace.switches == learner.switches <= cap
    assert learner.frozen == (learner.switches == cap)


def test_a_run_that_is_led_astray_is_caught_by_the_guard(monkeypatch):
    """The background points away from where losses are low, at no price: the certificate must hold all the same."""

    class Astray(Memories):
        def learn(self, *block):
            super().learn(*block)
            self.point = -np.sign(self.point) * self.domain.radius

    monkeypatch.setattr("reticent.systems.budgeted._learner.Memories", Astray)
    monkeypatch.setattr(Prices, "price", lambda *_: -1.0)
    plan = plan_budgeted(rt.Interval(-1.0, 1.0), 20_000, 1.0, max_switches=60)
    learner = rt.make(plan, rt.Absolute())
    trace = learner.observe_many(np.ones(20_000), np.full(20_000, 0.7))
    assert learner._walk.following
    assert learner.switches <= 60
    bound = plan.regret_bound
    assert float(trace.regret()) <= bound < 0.5 * plan.idle_regret
    monkeypatch.setattr("reticent.systems.budgeted._plan.BudgetedPlan.guarded", False)  # the control
    free = rt.make(plan_budgeted(rt.Interval(-1.0, 1.0), 20_000, 1.0, max_switches=60), rt.Absolute())
    assert float(free.observe_many(np.ones(20_000), np.full(20_000, 0.7)).regret()) > bound


def test_more_changes_certify_no_less():
    for horizon in (400, 9973, 100_000):
        bounds = [plan_budgeted(rt.Ball(3), horizon, 1.0, S).regret_bound for S in range(300)]
        assert all(b <= a * (1 + 1e-12) for a, b in pairwise(bounds))


def test_it_follows_jumps_at_a_price_better_than_blocks_do():
    rng, rounds = np.random.default_rng(3), 8000
    level = np.repeat(rng.uniform(1.0, 9.0, 8), 1000)
    values = level + rng.normal(size=rounds)
    goal = rt.Interval(0.0, 10.0), rounds, 0.9
    for cap in (10, 30):
        ours = rt.lazy_learner(rt.Pinball(0.9), goal[0], max_switches=cap, horizon=rounds)
        lost = ours.observe_many(np.ones(rounds), values).total
        blocked = rt.make(plan_descent(*goal, max_switches=cap), rt.Pinball(0.9))
        assert lost < 0.6 * blocked.observe_many(np.ones(rounds), values).total
        free = rt.make(plan_descent(*goal), rt.Pinball(0.9)).observe_many(np.ones(rounds), values).total
        assert lost < 1.35 * free


def test_windows_have_the_best_point_of_their_rounds():
    loss, rng = rt.Pinball(0.8), np.random.default_rng(1)
    windows = Windows(loss, 1000, 1)
    domain = rt.Interval(-50.0, 50.0)
    slopes, targets = rng.choice([-1.0, 0.5, 1.0], 64), rng.normal(size=64)
    rows = loss.prepare(domain, slopes[:, None], targets)
    found = windows.learn(rows, np.zeros(len(windows.lengths)))
    grid = np.linspace(-5, 5, 2001)[:, None]
    for length, point in zip(windows.lengths[:4], found, strict=False):
        last = rows[-length:]
        assert loss.total(domain, last, np.array([[point]]))[0] <= loss.total(domain, last, grid).min() + 1e-9


def test_a_price_makes_changes_last():
    prices = Prices(1.0, 100.0, 1)
    prices.changes = np.arange(prices.prices.size, dtype=float)
    assert prices.price(left=5, done=500, ahead=500) == pytest.approx(prices.prices[5])
    assert prices.price(left=0, done=500, ahead=500) == prices.prices[0]
    assert prices.price(left=10**6, done=500, ahead=500) == prices.prices[-1]


def test_the_front_door_clips_names_what_is_missing_and_needs_no_compiled_code():
    learner = rt.lazy_learner(rt.Logistic(), rt.Ball(2), max_switches=5, horizon=100)
    learner.observe([30.0, 40.0], 1)
    assert learner.plan.lipschitz == 1.0
    with pytest.raises(ValueError, match="lipschitz must be given for Squared"):
        rt.lazy_learner(rt.Squared(), rt.Ball(2), max_switches=5)
    with pytest.raises(ValueError, match="convex body"):
        rt.lazy_learner(rt.Linear(), rt.Experts(3), max_switches=5)
    with pytest.raises(ValueError, match="max_switches"):
        rt.lazy_learner(rt.Logistic(), rt.Ball(2), max_switches=-1)
    code = (
        "import sys, reticent as rt\n"
        "learner = rt.lazy_learner(rt.Pinball(0.9), rt.Interval(0, 10), max_switches=9, horizon=2000)\n"
        "for i in range(2000): learner.observe(1.0, i % 10)\n"
        "assert learner.switches and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_an_open_run_is_saved_and_goes_on_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=3000)) / 10
    first, second = (rt.lazy_learner(rt.Absolute(), rt.Interval(-9, 9), max_switches=40) for _ in range(2))
    whole = first.observe_many(np.ones(3000), values)
    second.observe_many(np.ones(1234), values[:1234])
    second.save(tmp_path / "state")
    resumed = rt.load(tmp_path / "state")
    tail = resumed.observe_many(np.ones(3000 - 1234), values[1234:])
    assert np.array_equal(whole.decisions()[1234:], tail.decisions())
    assert "any number of rounds" in str(first.plan)
    assert "Never more than 40" in first.plan.explain()


def test_no_more_changes_are_expected_than_there_are_rounds():
    assert rt.planning.plan_budgeted(rt.Ball(2), 10, 1.0, 50).expected_switches == 10
    assert rt.planning.plan_budgeted(rt.Ball(2), None, 1.0, 50).expected_switches == 50
