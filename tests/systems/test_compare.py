"""The choice among systems."""

import pytest

import reticent as rt
from reticent.planning import SystemPlan
from reticent.systems._choice import SYSTEMS

PRIVATE = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("domain", "loss", "goal"),
    [
        (rt.Ball(3), rt.Linear(), PRIVATE),
        (rt.Ball(3), rt.Hinge(), PRIVATE),
        (rt.Ball(3), rt.Logistic(), PRIVATE | {"max_switches": 200}),
        (rt.Interval(-1.0, 1.0), rt.Absolute(), {"max_switches": 50}),
        (rt.Box([-1, -1], [1, 1]), rt.Linear(), {"max_switches": 50}),
        (rt.Ball(2), rt.Squared(), {}),
        (rt.Experts(5), rt.Linear(), PRIVATE),
        (rt.Experts(5), rt.Linear(), {"max_switches": 50}),
        (rt.Experts(5), rt.Linear(), {}),
    ],
    ids=str,
)
def test_every_system_answers_and_the_best_is_the_lowest(domain, loss, goal):
    found = rt.compare_plans(domain, 2000, 1.0, loss, **goal)
    assert len(found.offers) + len(found.refusals) == len(SYSTEMS)
    assert {offer.system for offer in (*found.offers, *found.refusals)} == {system.name for system in SYSTEMS}
    bounds = [offer.regret_bound for offer in found]
    assert bounds == sorted(bounds)
    assert rt.best_plan(domain, 2000, 1.0, loss, **goal) == found.best == found.offers[0].plan
    for offer in found:
        plan = offer.plan
        assert plan.horizon == 2000
        assert plan.domain == domain
        assert plan.lipschitz == 1.0
        assert plan.private == ("epsilon" in goal)
        if plan.private:
            assert plan.epsilon <= goal["epsilon"]
            assert plan.delta <= goal["delta"]
            assert plan.neighbors == "replace"
            assert isinstance(plan, SystemPlan) or plan.adversary == "adaptive"
            assert rt.privacy.account(plan).epsilon(1e-6) <= 1.0 + 1e-9
        if "max_switches" in goal:
            assert plan.expected_switches <= goal["max_switches"] * (1 + 1e-9)
        learner = rt.make(plan, loss, seed=1)  # what applies can be run
        assert learner.plan is plan
    assert all(offer.reason for offer in found.refusals)
    text = " ".join(str(found).split())
    assert all(offer.system in text for offer in (*found.offers, *found.refusals))


def test_zeroed_rounds_are_never_harder_than_replaced_ones():
    replaced = rt.compare_plans(rt.Ball(2), 2000, 1.0, rt.Linear(), **PRIVATE)
    zeroed = rt.compare_plans(rt.Ball(2), 2000, 1.0, rt.Linear(), neighbors="zero-out", **PRIVATE)
    for offer in replaced:
        other = zeroed[offer.system]
        if other.plan is not None:
            assert other.plan.neighbors == "zero-out"
            # Searches of planners are good to about a percent.
            assert other.regret_bound <= offer.regret_bound * 1.02


def test_goals_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"epsilon and delta go together, got epsilon=1\.0 and delta=None"):
        rt.compare_plans(rt.Ball(2), 100, 1.0, rt.Linear(), epsilon=1.0)
    with pytest.raises(ValueError, match="loss must be one of the losses"):
        rt.best_plan(rt.Ball(2), 100, 1.0, "hinge")
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 0, got -3"):
        rt.best_plan(rt.Ball(2), 100, 1.0, rt.Linear(), max_switches=-3)
    with pytest.raises(ValueError, match="neighbors must be 'replace' or 'zero-out', got 'add'"):
        rt.best_plan(rt.Ball(2), 100, 1.0, rt.Linear(), neighbors="add", **PRIVATE)
    with pytest.raises(ValueError, match="horizon must be a whole number of at least 1, got 0"):
        rt.best_plan(rt.Ball(2), 0, 1.0, rt.Linear())
    with pytest.raises(KeyError, match="no system is called 'x'"):
        rt.compare_plans(rt.Ball(2), 100, 1.0, rt.Linear())["x"]
