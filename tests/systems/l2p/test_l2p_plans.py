"""Plans of lazy-to-private, continuous multiplicative weights and the online Newton step."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import quad

from reticent.domains import Ball, Box, Interval, Polytope, Simplex
from reticent.losses import Hinge, Linear, Logistic, Squared
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.l2p import _flat, _l2p
from reticent.systems.l2p._flat import FlatPlan, flat_first, plan_flat
from reticent.systems.l2p._l2p import LazyToPrivatePlan, plan_l2p
from reticent.systems.newton import _newton
from reticent.systems.pcomw._regret import first_term

PLANNERS = {
    "published": plan_l2p,
    "never": lambda *goal, **options: plan_l2p(*goal, refresh="never", **options),
    "flat": plan_flat,
}


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(
    ("domain", "T", "epsilon", "neighbors"),
    [(Ball(5, radius=3.0), 20_000, 1.0, "replace"), (Interval(0.0, 1.0), 5_000, 0.3, "zero-out")],
    ids=str,
)
def test_plans_use_their_privacy_budget_and_no_more(name, domain, T, epsilon, neighbors):
    plan = PLANNERS[name](domain, T, 2.0, epsilon, 1e-6, neighbors=neighbors)
    found = plan.account().epsilon(1e-6)
    assert 0.999 * epsilon <= found <= epsilon
    assert not plan.vacuous
    assert plan.expected_switches <= plan.max_switches == plan.budget
    assert str(plan).count("\n") > 8
    with pytest.raises(ValueError, match="epsilon must be at least"):
        dataclasses.replace(plan, beta=1.5 * plan.beta)


def test_the_centre_has_the_lower_certificate_and_zero_out_costs_less_than_replace():
    goal = Interval(-1.0, 1.0), 50_000, 1.0, 1.0, 1e-6
    drawn, centre = plan_l2p(*goal), plan_l2p(*goal, refresh="never")
    assert centre.regret_bound < drawn.regret_bound
    assert centre.anchor == "centre"
    assert centre.refreshes == 0
    assert drawn.refresh == drawn.p < 1
    less = plan_l2p(*goal, refresh="never", neighbors="zero-out")
    assert less.regret_bound < 0.8 * centre.regret_bound
    with pytest.raises(ValueError, match="epsilon must be at least"):
        dataclasses.replace(centre, budget=2 * centre.budget)
    # The price of d log(T) / beta, and of no strong convexity.
    ball = Ball(5), *goal[1:]
    assert plan_flat(*ball).regret_bound > 2 * plan_l2p(*ball, refresh="never").regret_bound


def test_units_do_not_matter():
    small = plan_l2p(Ball(3), 5_000, 1.0, 1.0, 1e-6, refresh="never")
    large = plan_l2p(Ball(3, radius=50.0), 5_000, 7.0, 1.0, 1e-6, refresh="never")
    assert large.regret_bound == pytest.approx(350 * small.regret_bound, rel=1e-3)
    flat, wide = (plan_flat(Interval(-r, r), 5_000, g, 1.0, 1e-6) for r, g in ((1.0, 1.0), (50.0, 7.0)))
    assert wide.regret_bound == pytest.approx(350 * flat.regret_bound, rel=1e-3)


@pytest.mark.parametrize("name", PLANNERS)
def test_few_switches_are_a_hard_cap(name):
    free = PLANNERS[name](Ball(2), 20_000, 1.0, 3.0, 1e-6)
    tight = PLANNERS[name](Ball(2), 20_000, 1.0, 3.0, 1e-6, max_switches=60)
    assert tight.max_switches <= 60 < free.max_switches
    assert free.regret_bound < tight.regret_bound < 20_000
    none = PLANNERS[name](Ball(2), 20_000, 1.0, 3.0, 1e-6, max_switches=0)
    assert none.max_switches == 0
    assert none.account().epsilon(1e-9) == 0.0
    assert none.vacuous  # no better than staying at the centre
    assert none.regret_bound < none.trivial_regret


def test_short_horizons_and_other_bodies_have_plans():
    triangle = Polytope([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 1.0])
    for domain in (triangle, Simplex(3), Box([-1, -1], [1, 3])):
        for T in (1, 2, 50):
            for plan in (plan_l2p(domain, T, 1.0, 1.0, 1e-6, refresh="never"), plan_flat(domain, T, 1.0, 1.0, 1e-6)):
                assert plan.regret_bound <= 1.01 * domain.diameter * T


def test_regret_is_the_sum_of_its_parts():
    plan = LazyToPrivatePlan(Ball(3), 1003, 2.0, beta=0.01, lam=90.0, p=0.1, budget=40, batch=10, anchor="centre")
    rate = 1 - 0.9 * math.exp(-2 * 0.01 * 10 * 2.0)
    assert plan.most_switching == pytest.approx(rate)
    assert plan.special == pytest.approx(0.01 * 4.0)
    from scipy.stats import binom

    spent = sum(10 * binom.sf(40, k, rate) for k in range(100)) + 3 * binom.sf(40, 100, rate)
    parts = first_term(Ball(3), 0.01, 90.0, 2006.0) + (100 * 100 + 9) * 4.0 / 180.0 + 2.0 * 2.0 * spent
    assert parts * (1 - 1e-9) <= plan.regret_bound <= parts * 1.01  # the sum over batches is a step function from above
    drawn = dataclasses.replace(plan, anchor="drawn")
    assert drawn.log_phi == pytest.approx(2 * plan.log_phi)


@pytest.mark.parametrize(("beta", "steep"), [(0.1, 1000.0), (1e-5, 10.0), (3.0, 1e6)])
def test_the_first_term_without_a_regulariser_is_a_bound(beta, steep):
    line = Interval(-2.0, 2.0)
    a = beta * steep
    mass = quad(lambda t: math.exp(-a * t), 0.0, min(4.0, 50 / a))[0] / 4
    assert flat_first(line, beta, steep) == pytest.approx(-math.log(mass) / beta, rel=1e-6)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200_000, 2))
    points *= (np.sqrt(rng.random(200_000)) / np.linalg.norm(points, axis=1))[:, None]
    moderate = min(a, 20.0)
    disc = -math.log(np.exp(-moderate * np.linalg.norm(points - [1.0, 0.0], axis=1)).mean()) / beta
    assert disc <= flat_first(Ball(2), beta, moderate / beta) * 1.01


def test_events_of_dp_accounting_are_bounds():
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = [1 + 0.1 * i for i in range(1, 100)] + list(range(11, 300))
    for name in PLANNERS:
        plan = PLANNERS[name](Ball(2), 5_000, 1.0, 1.0, 1e-6)
        accountant = rdp.RdpAccountant(orders=orders)
        accountant.compose(plan.dp_event())
        assert 1.0 <= accountant.get_epsilon(1e-6) < 1.8
    still = LazyToPrivatePlan(Ball(2), 10, 1.0, beta=1.0, lam=1.0, p=0.0, budget=0)
    assert type(still.dp_event()).__name__ == "NoOpDpEvent"
    never = LazyToPrivatePlan(Ball(2), 10, 1.0, beta=1.0, lam=1.0, p=0.0, budget=3)
    assert type(never.dp_event()).__name__ == "NonPrivateDpEvent"
    assert never.account().delta(5.0) > 0.5  # without forced switches one that a world rules out may come


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"p": 1.5}, "p must be a probability"),
        ({"anchor": "edge"}, "anchor must be"),
        ({"anchor": "centre", "refresh": 0.1}, "refresh and refreshes must be 0"),
        ({"beta": 0.0}, "beta must be"),
        ({"budget": -1}, "budget must be"),
        ({"neighbors": "none"}, "neighbors must be"),
    ],
)
def test_bad_parameters_are_refused(change, match):
    plan = LazyToPrivatePlan(Ball(2), 100, 1.0, beta=0.1, lam=10.0, p=0.1, budget=10)
    with pytest.raises(ValueError, match=match):
        dataclasses.replace(plan, **change)


def test_bad_goals_are_refused():
    with pytest.raises(ValueError, match="refresh must be"):
        plan_l2p(Ball(2), 100, 1.0, 1.0, 1e-6, refresh="often")
    for planner in (plan_l2p, plan_flat):
        with pytest.raises(ValueError, match="delta must be"):
            planner(Ball(2), 100, 1.0, 1.0, 0.0)
        with pytest.raises(ValueError, match="neighbors"):
            planner(Ball(2), 100, 1.0, 1.0, 1e-6, neighbors="any")
    with pytest.raises(ValueError, match="exp_concavity"):
        _newton.plan_newton(Ball(2), 100, 1.0, 0.0)


def test_systems_answer_goals():
    goal = Goal(Ball(2), 2000, 1.0, Logistic(), 1.0, 1e-6)
    best = _l2p.LAZY_TO_PRIVATE.answer(goal)
    assert isinstance(best, LazyToPrivatePlan)
    # The centre promises no less than a drawn point, but for the digits in which two searches end.
    assert best.regret_bound <= plan_l2p(Ball(2), 2000, 1.0, 1.0, 1e-6).regret_bound * (1 + 1e-3)
    assert best.anchor == "centre"
    assert isinstance(_flat.FLAT.answer(goal), FlatPlan)
    newton = _newton.SYSTEMS[0]
    open_goal = dataclasses.replace(goal, epsilon=None, delta=None)
    assert newton.answer(open_goal).exp_concavity < math.exp(-1.0)
    assert newton.answer(dataclasses.replace(open_goal, exp_concavity=0.2, loss=Squared())).exp_concavity == 0.2
    moved = Ball(2, center=[1.0, 0.0])
    for change in ({"loss": Linear()}, {"loss": Hinge()}, {"loss": Squared()}, {"domain": moved}, {"lipschitz": 1e4}):
        with pytest.raises(NotApplicable):
            newton.answer(dataclasses.replace(open_goal, **change))
    for system in (_l2p.LAZY_TO_PRIVATE, _flat.FLAT):
        with pytest.raises(NotApplicable):
            system.answer(open_goal)
        with pytest.raises(NotApplicable):
            system.answer(dataclasses.replace(goal, epsilon=1e-9))


@pytest.mark.parametrize(
    ("domain", "T", "epsilon", "neighbors"),
    [(Ball(2), 2_000, 1.0, "replace"), (Interval(0.0, 1.0), 5_000, 0.3, "zero-out")],
    ids=str,
)
def test_event_of_a_flat_plan_composes_in_both_accountants_and_covers_the_certificate(domain, T, epsilon, neighbors):
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    plan = plan_flat(domain, T, 1.0, epsilon, 1e-6, neighbors=neighbors)
    certified = plan.account().epsilon(1e-6)
    for accountant in (PLDAccountant, RdpAccountant):
        found = accountant().compose(plan.dp_event()).get_epsilon(1e-6)
        assert certified <= found <= 1.3 * certified
        # With something before it, as in a composition of releases.
        assert accountant().compose(GaussianDpEvent(10.0)).compose(plan.dp_event()).get_epsilon(1e-6) > found
