"""Noise far larger than a step of the grid shows its last bits: accounts of both systems charge for that (Q11)."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent.planning import ApproximateLeaderPlan, ImplicitPlan, plan_approximate_leader, plan_implicit
from reticent.systems._grid import NOISE, Rounding

LINE = rt.Interval(-1.0, 1.0)


def test_large_noise_tells_the_parity_of_a_gradient_and_is_charged():
    """Attack: noise that is a multiple of many steps leaves the gradient in the low digits of a decision."""
    noise, unit = 2.0**40, 2.0**-18  # of the leader with curvature 1, after one round
    fresh = [Fraction(x) for x in noise * np.random.default_rng(1).standard_normal(1000)]
    # From 2^35 on the machine's noise is an even number of steps: an exact sum is odd if the gradient is one step.
    odd = [np.mean([round((Fraction(gradient) + x) / Fraction(unit)) % 2 for x in fresh]) for gradient in (0.0, unit)]
    assert odd[0] < 0.03
    assert odd[1] > 0.97
    # Both accounts were that of real numbers alone, with the distance of the last line; now they say what is true.
    leader = ApproximateLeaderPlan(LINE, 4, 1.0, added=1.0, noise=noise, neighbors="replace")
    hidden = ImplicitPlan(LINE, 4, 1.0, alpha=1.0, noise=noise)
    for plan in (leader, hidden):
        plain = Rounding.of(LINE, 4, 4).distance
        assert plan.mu(4) < 1e-10
        assert plan.rounding(4).distance > 2.0**15 * plain
        with pytest.raises(ValueError, match="epsilon must be at least"):
            replace(plan, epsilon=1e-6, delta=1e-6)


def exact_distance(plan, ratios):
    """Return the distance from the definition: one release for each ratio of noise and what is allowed for."""
    return NOISE * math.sqrt(plan.domain.chart_dim * sum(max(1.0, r) ** 2 for r in ratios))


@pytest.mark.parametrize("noise", [1e-3, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("curvature", [1e-2, 1.0])
def test_distances_are_sums_over_decisions(noise, curvature):
    T, domain = 300, rt.Box([-1, -0.1], [1, 0.1])
    step = 2.0**22 * domain.grid.min()
    leader = ApproximateLeaderPlan(domain, T, 1.0, added=curvature, noise=noise)
    exact = exact_distance(leader, [noise * math.sqrt(t.bit_count()) / (curvature * t * step) for t in range(1, T + 1)])
    most = exact_distance(leader, [noise * math.sqrt(T.bit_length()) / (curvature * t * step) for t in range(1, T + 1)])
    assert exact * (1 - 1e-12) <= leader.rounding(T).distance <= most * (1 + 1e-12)
    hidden = ImplicitPlan(domain, T, 1.0, alpha=curvature, noise=noise)
    exact = exact_distance(hidden, [hidden.deviation(t) / step for t in range(2, T + 2)])
    assert exact * (1 - 1e-12) <= hidden.rounding(T).distance <= 1.5 * exact
    # Negative control: what was charged before is less where noise is large.
    plain = Rounding.of(domain, T, T).distance
    assert (plain < 0.9 * exact) == (hidden.deviation(2) > 2 * step)


@pytest.mark.parametrize("planner", [plan_approximate_leader, plan_implicit])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 1.0, 20.0])
def test_planners_leave_room_for_last_bits(planner, epsilon):
    for domain in (LINE, rt.Ball(3), rt.Box([-1, -0.01], [1, 0.01])):
        plan = planner(domain, 1000, 1.0, epsilon, 1e-6)
        assert epsilon * (1 - 1e-3) <= plan.account().epsilon(1e-6) <= epsilon * (1 + 1e-9)
        more = planner(domain, 1000, 1.0, 2 * epsilon, 1e-6)
        assert more.certified_regret <= plan.certified_regret * (1 + 1e-9)


def test_hidden_iterates_that_rounding_sets_apart_are_in_the_account():
    """Iterates of neighbouring streams against exact fractions would be no farther apart than bound and stretch say."""
    plan = ImplicitPlan(LINE, 2000, 1.0, alpha=0.05, noise=1.0)
    rng = np.random.default_rng(2)
    losses = rng.uniform(-1, 1, (2000, 1))
    other = losses.copy()
    losses[700], other[700] = 1.0, -1.0
    ends = []
    for stream in (losses, other):
        learner = rt.make(plan, rt.Linear(), seed=3)
        learner.observe_many(stream)
        ends.append(learner._walk.w[0])
    bound = 2.0 / (0.05 * 2001)
    assert abs(ends[0] - ends[1]) <= bound + 2.0**-49 * 2002
    # The stretch is that of the whole sum of squares, of which rounding has most at the end.
    t = np.arange(2, 2002)
    deviations, reach = np.array([plan.deviation(s) for s in t.tolist()]), np.minimum(2.0 / (0.05 * t), 2.0)
    exact, wider = (np.linalg.norm(parts / deviations) for parts in (reach, reach + 2.0**-49 * (t + 1)))
    assert plan.mu(2000) == pytest.approx(exact, rel=1e-12)
    share = plan.rounding(2000).stretch - 1 - 2.0**-26 - 2.0**-43 * 2000
    assert wider / exact - 1 <= share < 2.0**-49 * 2002 / bound


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise", [1e100, 1e200, 1e300])
def test_noise_beyond_all_squares_has_no_epsilon_and_no_warning(noise):
    leader = ApproximateLeaderPlan(LINE, 10, 1.0, added=1.0, noise=noise)
    hidden = [ImplicitPlan(LINE, 10, 1.0, alpha=alpha, noise=noise) for alpha in (1.0, 1e-99)]
    for plan in (leader, *hidden):
        assert plan.rounding(10).distance > 1e80
        assert plan.account().epsilon(1e-6) == math.inf
