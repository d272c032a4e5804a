"""Streams for audits: the worst case that is known, and what is refused."""

import numpy as np
import pytest

import reticent as rt
from reticent.audit._faults import Faulty
from reticent.audit._runs import changed_round
from reticent.privacy import audit, worst_case


def plan_of(domain=None, horizon=6, **changes):
    given = {"beta": 0.5, "lam": 5.0, "p": 0.2, "phi": 1.5, "distance": 0.0}
    return rt.Plan(domain or rt.Interval(-3.0, 3.0), horizon, 1.0, **(given | changes))


@pytest.mark.parametrize("domain", [rt.Interval(0.0, 9.0), rt.Ball(3), rt.Simplex(4), rt.Box([0.0, 1.0], [1.0, 3.0])])
@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_the_worst_case_is_a_pair_of_neighbours_that_the_learner_takes(domain, neighbors):
    plan = plan_of(domain, batch=2, neighbors=neighbors)
    one, two = worst_case(plan)
    assert changed_round(plan, (one,), (two,)) == 0
    loss = rt.Linear()
    assert loss.lipschitz(domain, one)[0] == pytest.approx(1.0)
    assert loss.lipschitz(domain, one - two)[0] == pytest.approx(2.0 if neighbors == "replace" else 1.0)
    for stream in (one, two):
        rt.PCOMW(plan, loss, 1).observe_many(stream)


def test_the_measure_stays_away_from_the_walls():
    plan = plan_of(rt.Interval(-1.0, 1.0), 60, batch=10, lam=4.0)
    for stream in worst_case(plan):
        assert np.abs(np.cumsum(stream[10:, 0]) / plan.lam).max() <= 0.5 + 1e-9
    assert (worst_case(plan_of(p=1.0))[0][1:] == 0).all()


def gradients(*values):
    return np.array(values, float)[:, None]


@pytest.mark.parametrize(
    ("one", "two", "changes", "words"),
    [
        (gradients(1, 0), gradients(1, 0), {}, "differ in exactly one round, got 0"),
        (gradients(1, 0), gradients(0, 1), {}, "differ in exactly one round, got 2"),
        (gradients(1, 0), gradients(1), {}, "same number of rounds, got 2 and 1"),
        (gradients(*range(9)), gradients(*range(8), 0), {}, "horizon of 6, got 9"),
        (gradients(1), (gradients(1), [1.0]), {}, "same parts, got 1 and 2"),
        (7, gradients(1), {}, "stream must be an array"),
        (gradients(1), (gradients(1, 2), [1.0]), {}, "neighbour must have parts of one length"),
        (gradients(1), gradients(0), {"delta": None}, "delta must be given"),
        (gradients(1), gradients(0), {"delta": 0.0}, "delta must be at least"),
        (gradients(1), gradients(0), {"confidence": 1.0}, "confidence must be"),
        (gradients(1), gradients(0), {"runs": 10}, "runs must be a whole number of at least 100"),
        (gradients(1), gradients(0), {"jobs": 0}, "jobs must be"),
        (gradients(1), gradients(0), {"score": "best"}, "score must be None"),
        (gradients(1), gradients(0), {"seed": -1}, "seed must be"),
        (gradients(1), gradients(0), {"score": lambda decisions: [1.0]}, "one finite number for each of the 100 runs"),
        (gradients(3), gradients(0), {}, "lipschitz"),
    ],
)
def test_what_is_refused(one, two, changes, words):
    given = {"delta": 0.01, "runs": 100, "jobs": 1} | changes
    with pytest.raises(ValueError, match=words):
        audit(plan_of(), rt.Linear(), one, two, **given)


def test_the_likelihood_must_be_known():
    plan = plan_of(rt.Ball(2))
    with pytest.raises(ValueError, match="take 'trained'"):
        audit(plan, rt.Linear(), *worst_case(plan), runs=100, delta=0.01, score="likelihood", jobs=1)


def test_a_plan_without_a_horizon_is_audited_by_epochs():
    with pytest.raises(ValueError, match=r"audit plan\.epoch"):
        worst_case(plan_of(horizon=None))


def test_faults_are_named():
    with pytest.raises(ValueError, match="'budget ignored'"):
        Faulty(plan_of(), rt.Linear(), "budget")
