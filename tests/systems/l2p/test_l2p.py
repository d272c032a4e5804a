"""Lazy-to-private and flat weights as learners: how many draws, budgets, failures, and lower bounds of losses."""

import dataclasses
import pickle

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs import Gibbs
from reticent.systems.l2p._flat import FlatPlan, FlatWeights, least_losses, plan_flat
from reticent.systems.l2p._l2p import LazyToPrivate, LazyToPrivatePlan, plan_l2p

DISC = rt.Ball(2)
HAND = LazyToPrivatePlan(DISC, 600, 1.0, beta=0.03, lam=80.0, p=0.03, budget=100, batch=3)
RENEWED = dataclasses.replace(HAND, refresh=0.1, refreshes=7)
CENTRE = dataclasses.replace(HAND, anchor="centre")
FLAT = FlatPlan(DISC, 600, 1.0, beta=0.03, p=0.03, budget=100, batch=3)
LEARNERS = {LazyToPrivatePlan: LazyToPrivate, FlatPlan: FlatWeights}


def gradients(rounds=600, dim=2, seed=0):
    rows = np.random.default_rng(seed).normal(size=(rounds, dim)) + np.array([1.0] + [0.0] * (dim - 1))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.fixture
def counted(monkeypatch):
    """Counts draws of every measure."""
    calls = []
    draw = Gibbs.draw_in_chart
    monkeypatch.setattr(Gibbs, "draw_in_chart", lambda *args: calls.append(1) or draw(*args))
    return calls


@pytest.mark.parametrize(
    ("plan", "first", "renewals"), [(HAND, 2, 0), (RENEWED, 2, 7), (CENTRE, 1, 0), (FLAT, 1, 0)], ids=str
)
def test_a_run_draws_once_for_each_switch_and_renewal(plan, first, renewals, counted):
    learner = LEARNERS[type(plan)](plan, rt.Linear(), seed=3)
    trace = learner.observe_many(gradients())
    assert trace.switches > 5
    assert len(counted) == first + trace.switches + renewals
    assert all(start % plan.batch == 0 for start in trace.starts)


@pytest.mark.parametrize("plan", [RENEWED, CENTRE, FLAT], ids=lambda plan: type(plan).__name__)
def test_the_budget_is_kept_and_nothing_is_drawn_after_it(plan, counted):
    plan = dataclasses.replace(plan, budget=4)
    learner = LEARNERS[type(plan)](plan, rt.Linear(), seed=1)
    data = gradients()
    learner.observe_many(data[:500])
    assert learner.switches == 4
    assert learner.frozen
    assert "frozen" in repr(learner)
    before, drawn = learner.decision, len(counted)
    learner.observe_many(data[500:])
    assert np.array_equal(before, learner.decision)
    assert len(counted) == drawn
    none = LEARNERS[type(plan)](dataclasses.replace(plan, budget=0), rt.Linear(), seed=1)
    assert none.observe_many(data).switches == 0


@pytest.mark.parametrize("plan", [RENEWED, FLAT], ids=lambda plan: type(plan).__name__)
def test_a_draw_that_fails_is_made_up_for_by_the_next_call(plan, monkeypatch):
    data = gradients()
    kind = LEARNERS[type(plan)]
    straight = kind(plan, rt.Linear(), seed=5).observe_many(data)
    learner = kind(plan, rt.Linear(), seed=5)
    draw, broken = Gibbs.draw_in_chart, [True]

    def failing(*args):
        if broken:
            broken.clear()
            raise rt.WorkLimitError("given up")
        return draw(*args)

    monkeypatch.setattr(Gibbs, "draw_in_chart", failing)
    with pytest.raises(rt.WorkLimitError):
        learner.observe_many(data)
    learner = pickle.loads(pickle.dumps(learner))
    learner.observe_many(data[learner.rounds :])
    assert learner.switches == straight.switches
    assert np.array_equal(learner.decision, straight.final)


def test_forced_switches_need_no_rounds_and_p_1_draws_after_every_batch():
    plan = dataclasses.replace(CENTRE, p=1.0, budget=1000)
    assert LazyToPrivate(plan, rt.Linear(), seed=0).observe_many(gradients()).switches == 200
    assert plan.expected_switches == plan.coins == 200


def test_plans_that_cannot_be_run_are_refused():
    with pytest.raises(ValueError, match="LazyToPrivatePlan"):
        LazyToPrivate(FLAT, rt.Linear())
    with pytest.raises(ValueError, match="FlatPlan"):
        FlatWeights(HAND, rt.Linear())
    private = plan_l2p(DISC, 50, 1.0, 3.0, 1e-5, refresh="never")
    learner = LazyToPrivate(private, rt.Linear(), seed=0)
    learner.observe_many(gradients(50))
    with pytest.raises(ValueError, match="horizon"):
        learner.observe([0.0, 1.0])


LOSSES = [rt.Linear(), rt.Absolute(), rt.Pinball(0.3), rt.Hinge(), rt.Huber(0.5), rt.Logistic(), rt.Squared()]


@pytest.mark.parametrize(
    "domain", [rt.Ball(3, center=[0.3, 0, 0]), rt.Box([-1, 0, 1], [1, 3, 2]), rt.Simplex(3)], ids=str
)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_lower_bounds_of_losses_are_bounds_and_not_too_low(domain, loss):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    targets = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    data = (rows,) if isinstance(loss, rt.Linear) else (rows, targets)
    prepared = loss.prepare(domain, *data)
    least = least_losses(domain, loss, prepared)
    points = np.array([domain.project(domain.center + domain.radius * rng.normal(size=3)) for _ in range(200)])
    values = np.array([loss.values(x, *data) for x in points]) - loss.values(domain.center, *data)
    assert (values >= least - 1e-9).all()
    assert (values <= least + 2 * domain.radius * loss.lipschitz(domain, *data) + 1e-9).all()


def test_lower_bounds_of_custom_losses():
    loss = rt.Custom(lambda x, c: float(np.linalg.norm(x - c)), lambda x, c: (x - c) / np.linalg.norm(x - c), 1.0)
    rows = loss.prepare(DISC, [np.array([2.0, 0.0]), np.array([0.5, 0.5])])
    assert least_losses(DISC, loss, rows).tolist() == [
        -1.0,
        -1.0,
    ]  # by the slope alone: less than the loss at the centre


@pytest.mark.parametrize("system", ["l2p", "flat"])
def test_mean_regret_stays_below_the_certificate_and_is_not_far_from_it(system):
    line, T = rt.Interval(-1.0, 1.0), 20_000
    plan = plan_l2p(line, T, 1.0, 2.0, 1e-5, refresh="never") if system == "l2p" else plan_flat(line, T, 1.0, 2.0, 1e-5)
    steady = np.ones((T, 1))
    found = [
        float(LEARNERS[type(plan)](plan, rt.Linear(), seed).observe_many(steady).losses.sum()) + T for seed in range(12)
    ]
    # One slope for the whole run is the hardest stream that is known; the mean of twelve runs has some noise.
    assert 0.6 * plan.regret_bound < np.mean(found) <= plan.regret_bound + 3 * np.std(found) / np.sqrt(12)
