"""Choice by public data: all plans have the same privacy, and the one that does best there is taken."""

import numpy as np
import pytest

import reticent as rt
from reticent.lab import streams
from reticent.systems._likeness import resting, tried

GOAL = {"epsilon": 2.0, "delta": 1e-6, "max_operations": 1e6}
LINE = rt.Interval(0.0, 10.0)
RNG = np.random.default_rng(3)
VALUES = (np.ones((1500, 1)), np.clip(RNG.normal(7.0, 1.0, 1500), 0, 10))


@pytest.fixture(scope="module")
def found():
    return rt.compare_plans(LINE, 1500, 1.0, rt.Absolute(), **GOAL, aim="ordinary", like=VALUES)


def test_the_lowest_loss_on_public_data_comes_first(found):
    losses = [offer.tried.loss for offer in found if offer.tried is not None]
    assert len(losses) > 3
    assert losses == sorted(losses)
    assert found.best.system == found.offers[0].plan.system
    assert found.resting == pytest.approx(np.abs(VALUES[1] - 5.0).mean())
    assert losses[0] < 0.75 * found.resting
    for offer in found:
        assert offer.plan.epsilon == 2.0
    # What takes too much work is neither tried nor chosen.
    assert all((offer.tried is None) == (not found.affordable(offer)) for offer in found)
    assert "never moving costs" in str(found)
    assert "loss there" in str(found)


def test_certificates_can_be_asked_for_too(found):
    bounds = sorted(offer.regret_bound for offer in found)
    wanted = {**GOAL, "aim": "ordinary", "like": VALUES, "certificate_at_most": bounds[0]}
    best = rt.best_plan(LINE, 1500, 1.0, rt.Absolute(), **wanted)
    assert best.regret_bound == bounds[0]
    with pytest.raises(ValueError, match="certificate_at_most must be at least"):
        rt.best_plan(LINE, 1500, 1.0, rt.Absolute(), **{**wanted, "certificate_at_most": 1e-3})


def test_without_data_what_is_made_for_ordinary_data_comes_first():
    best = rt.best_plan(rt.Ball(2), 500, 1.0, rt.Hinge(), max_switches=20, aim="ordinary")
    assert best.system == "budgeted follower"


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="aim must be 'certificate' or 'ordinary', got 'luck'"):
        rt.compare_plans(LINE, 100, 1.0, rt.Absolute(), aim="luck")
    with pytest.raises(ValueError, match="like is for aim"):
        rt.compare_plans(LINE, 100, 1.0, rt.Absolute(), like=VALUES)
    with pytest.raises(ValueError, match="like must hold one round at least"):
        tried(rt.planning.plan_descent(LINE, 10, 1.0), rt.Absolute(), (np.ones((0, 1)), np.ones(0)))


def test_streams_and_arrays_are_the_same():
    stream = streams.get("iid:rounds=400,dim=2")
    plan = rt.planning.plan_descent(stream.domain, 300, stream.lipschitz)
    assert tried(plan, stream.loss, stream) == tried(plan, stream.loss, stream.block())
    assert tried(plan, stream.loss, stream).rounds == 300
    assert resting(stream.domain, stream.loss, stream.lipschitz, stream) == 0.0


def test_the_front_door_chooses_how_to_clip():
    gentle = (np.ones((4000, 1)), np.full(4000, 5.5))
    plain = rt.private_learner(rt.Huber(4.0), LINE, epsilon=1.0, delta=1e-6, seed=1)
    chosen = rt.private_learner(rt.Huber(4.0), LINE, epsilon=1.0, delta=1e-6, like=gentle, seed=1)
    assert plain.plan.clip == 2.0
    assert chosen.plan.clip < 2.0
    assert chosen.plan.mu() == plain.plan.mu()


def test_experts_behind_the_front_door_are_pure():
    learner = rt.private_learner(rt.Linear(), rt.Experts(4), epsilon=1.0, delta=0, seed=1)
    losses = np.tile([0.5, 0.0, 0.5, 0.5], (3000, 1))
    learner.observe_many(losses)
    assert learner.decision[1] == 1.0
    assert learner.spent() == 1.0
