"""Filters and odometers from outside: what they take, what they refuse, and that no rounding helps."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from reticent.privacy import Cost, Filter, Odometer
from reticent.privacy._adaptive import _plus, pure_moment


def test_sums_are_never_rounded_down():
    draws = np.random.default_rng(0)
    total, exact = 0.0, Fraction(0)
    for size in 10 ** draws.uniform(-20, 0, 2000):
        total, exact = _plus(total, float(size)), exact + Fraction(float(size))
        assert Fraction(total) >= exact
    assert total <= float(exact) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("step", [0.01, 1.0, 30.0])
def test_moment_of_randomised_response(epsilon, step):
    from mpmath import cosh, log, mp, mpf

    with mp.workdps(60):
        exact = log(cosh((mpf(step) + mpf(1) / 2) * mpf(epsilon)) / cosh(mpf(epsilon) / 2))
        assert pure_moment(epsilon, step) == pytest.approx(float(exact), rel=1e-12)


def test_a_refusal_charges_nothing_and_leaves_room_for_less():
    budget = Filter(1.0, 1e-6, slack=5e-7)
    budget.charge(Cost(mu=0.1, epsilon=0.01, delta=1e-7))
    before = dict(budget.__dict__)
    with pytest.raises(ValueError, match=r"must not be made.*mu = 0\.\d+"):
        budget.charge(Cost(mu=0.5))
    with pytest.raises(ValueError, match="slack = 5e-07"):
        budget.charge(Cost(epsilon=0.01, delta=4.5e-7))
    assert budget.__dict__ == before
    budget.charge(Cost(mu=budget.left_mu))
    assert budget.left_mu < 1e-5
    assert budget.releases == 2


def test_equal_parts_of_the_whole_fit():
    budget = Filter(1.0, 1e-6, slack=1e-7)
    for _ in range(10):
        budget.charge(Cost(epsilon=0.1, delta=1e-8))
    assert not budget.allows(Cost(delta=1e-12))
    assert not budget.allows(Cost(epsilon=1e-3))
    assert budget.allows(Cost())


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
@pytest.mark.parametrize("cost", [Cost(mu=1e200), Cost(epsilon=1e200), Cost(mu=1e308, epsilon=1e308)])
def test_costs_beyond_all_bounds_are_refused(kind, cost):
    budget = Filter(1.0, 1e-6, kind=kind)
    assert not budget.allows(cost)
    with pytest.raises(ValueError, match="nothing was charged"):
        budget.charge(cost)
    meter = Odometer(1e-6)
    meter.charge(cost)
    assert meter.epsilon >= 1e200


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cost(mu=-1.0), "mu must be at least 0"),
        (lambda: Cost(delta=1.5), "delta of a cost must be at most 1"),
        (lambda: Cost(epsilon=math.nan), "epsilon must be finite"),
        (lambda: Filter(1.0, 0.0), "delta must be at least"),
        (lambda: Filter(1.0, 1e-6, slack=1e-6), "slack must be less than delta"),
        (lambda: Filter(1.0, 1e-6, kind="pld"), "kind must be one of 'renyi', 'gaussian'"),
        (lambda: Filter(1.0, 1e-6, order=1.0), "order must be greater than 1"),
        (lambda: Filter(1.0, 1e-6, order=1.1), "leaves nothing to spend"),
        (lambda: Filter(1.0, 1e-6, kind="gaussian", order=3.0), "order is for kind='renyi'"),
        (lambda: Filter(1.0, 1e-6, kind="gaussian").charge(Cost(rho=0.1)), "gives no GDP"),
        (lambda: Odometer(1e-6, around=0.0), "around must be greater than 0"),
        (lambda: Odometer(1e-6).charge(Cost(delta=1e-9)), "more than the slack = 0"),
    ],
)
def test_errors_say_what_to_do(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_zcdp_and_gdp_of_the_same_size_cost_the_same():
    one, two = Filter(1.0, 1e-6), Filter(1.0, 1e-6)
    one.charge(Cost(mu=0.2))
    two.charge(Cost(rho=0.02))
    assert one.spent == pytest.approx(two.spent, rel=1e-11)


def test_readings_grow_and_states_survive_pickling():
    meter, last = Odometer(1e-6, slack=1e-7), 0.0
    for cost in (Cost(epsilon=0.02, delta=1e-9), Cost(rho=1e-4), Cost(mu=0.1), Cost(epsilon=0.2)):
        meter.charge(cost)
        assert meter.epsilon > last
        last = meter.epsilon
    again = pickle.loads(pickle.dumps(meter))
    again.charge(Cost(mu=0.1))
    meter.charge(Cost(mu=0.1))
    assert again.epsilon == meter.epsilon > last
    budget = Filter(1.0, 1e-6)
    budget.charge(Cost(mu=0.1))
    assert pickle.loads(pickle.dumps(budget)).left_mu == budget.left_mu
