"""Whatever a learner has gone through, the state that it saves is one that loads, and goes on to the last bit."""

from itertools import product

import numpy as np
import pytest
from contract_rows import first_rows, stream
from test_saving import away, from_there

import reticent as rt
from reticent.systems._saved import pack_learner, unpack_learner

TRIANGLE = rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])
BODIES = {
    "ball": rt.Ball(2),
    "interval": rt.Interval(-1.0, 1.0),
    "box": rt.Box([-1, 0], [1, 2]),
    "simplex": rt.Simplex(3),
    "polytope": TRIANGLE,
}
LOSSES = {
    "linear": rt.Linear(),
    "hinge": rt.Hinge(),
    "absolute": rt.Absolute(),
    "squared": rt.Squared(),
    "custom": rt.Custom(away, from_there, lipschitz=1.0),
    "pinball": rt.Pinball(0.3),
    "huber": rt.Huber(),
    "logistic": rt.Logistic(),
}
COIN = {"lipschitz": 1.0, "beta": 0.3, "lam": 40.0, "p": 0.05, "phi": 1.3}
PLANS = {
    "coins": lambda body: rt.Plan(body, 600, budget=8, **COIN),  # frozen before the end
    "epochs": lambda body: rt.Plan(body, None, first_epoch=16, **COIN),
    "batches": lambda body: rt.Plan(body, 600, batch=7, **COIN),
    "sharp": lambda body: rt.Plan(body, 600, distance=1e-3, **COIN | {"beta": 2.0, "lam": 10.0}),
    "steady": lambda body: rt.Plan(body, 600, constant_work=True, **COIN),
    "lazy": lambda body: rt.plan_lazy(body, 600, 1.0, 30),
}


def trips(plan, body, loss, stops=(0, 3, 40, 41, 150, 300)):
    body, loss = BODIES[body], LOSSES[loss]
    data = stream("drifting", body, loss, 1.0, 300, 0)
    learner, at = rt.make(PLANS[plan](body), loss, seed=1), 0
    for stop in stops:
        if stop > at:
            learner.observe_many(*first_rows(data, at, stop))
            at = stop
        state = pack_learner(learner)
        again = unpack_learner(state, "it", loss if isinstance(loss, rt.Custom) else None)
        assert again.rounds == stop
        assert np.array_equal(again.decision, learner.decision)
        assert pack_learner(again) == state
        learner = again


@pytest.mark.parametrize(("plan", "body", "loss"), [
    ("coins", "ball", "linear"),
    ("coins", "ball", "hinge"),
    ("epochs", "interval", "absolute"),
    ("batches", "ball", "squared"),
    ("lazy", "ball", "logistic"),
])  # fmt: skip
def test_some_round_trips(plan, body, loss):
    trips(plan, body, loss)


def test_objects_of_the_callers_make_the_trip_too():
    trips("coins", "interval", "custom", (0, 3, 40))


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "body", "loss"), [*product(PLANS, BODIES, LOSSES)])
def test_all_round_trips(plan, body, loss):
    trips(plan, body, loss, (0, 3, 40, 41) if loss == "custom" else (0, 3, 40, 41, 150, 300))
