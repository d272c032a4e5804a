"""Plans of private implicit descent and the approximate leader: sums, allocation, claims, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.privacy._losses import largest_mu
from reticent.systems._bounds import least_at, mean_length
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.approximate_leader._approximate_leader import SYSTEMS as LEADERS
from reticent.systems.approximate_leader._approximate_leader import (
    ApproximateLeaderPlan,
    past_rounds,
    plan_approximate_leader,
)
from reticent.systems.implicit._implicit import SYSTEMS as IMPLICIT
from reticent.systems.implicit._implicit import ImplicitPlan, harmonic, plan_implicit, power_sum

PLANNERS = [plan_implicit, plan_approximate_leader]
planner = pytest.mark.parametrize("make", PLANNERS, ids=lambda make: make.__name__)


def lengths(plan):
    """Deviations of rounds 2..T+1, and how far apart neighbouring iterates can be there."""
    t = np.arange(2, plan.horizon + 2)
    deviations = np.array([plan.deviation(int(k)) for k in t])
    return deviations, np.minimum(plan.change / (plan.alpha * t), plan.domain.diameter)


# With 0.01 the diameter caps the distance for 100 rounds; with noise 30 the diameter caps the cost of the first rounds.
@pytest.mark.parametrize("alpha", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("noise", [0.02, 1.0, 30.0])
def test_implicit_sums_are_those_of_the_proof(alpha, noise):
    plan = ImplicitPlan(rt.Ball(4), 3000, 1.0, alpha=alpha, noise=noise)
    deviations, distances = lengths(plan)
    assert plan.mu(3000) == pytest.approx(math.sqrt(((distances / deviations) ** 2).sum()), rel=1e-9)
    assert plan.mu(10) == pytest.approx(math.sqrt(((distances / deviations)[:10] ** 2).sum()), rel=1e-9)
    paid = np.minimum(plan.domain.diameter, mean_length(4) * deviations[:-1]).sum()
    hidden = alpha * 3001 / 2 + (1 / np.arange(1, 3001)).sum() / (2 * alpha)
    assert plan.regret_bound == pytest.approx(hidden + paid, rel=1e-9)
    assert plan.deviation(1) == 0.0
    assert plan.expected_switches == 3000


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_no_other_allocation_of_noise_costs_less(alpha):
    plan = ImplicitPlan(rt.Ball(2), 500, 1.0, alpha=alpha, noise=1.0)
    deviations, distances = lengths(plan)

    def cost(sigma):
        """The sum of deviations, scaled so that privacy is that of the plan."""
        return sigma.sum() * math.sqrt(((distances / sigma) ** 2).sum()) / plan.mu(500)

    best, rng = cost(deviations), np.random.default_rng(0)
    assert best == pytest.approx(deviations.sum())
    for size in (0.01, 0.1, 1.0):
        for _ in range(20):
            assert cost(deviations * np.exp(size * rng.normal(size=deviations.size))) > best
    for power in (0.5, 0.6, 0.7, 1.0):  # 2/3 is the best power
        assert cost(distances**power) > best


@planner
@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_the_privacy_asked_for_is_used_up_exactly(make, neighbors):
    plan = make(rt.Ball(3), 5000, 2.0, 1.5, 1e-6, neighbors=neighbors)
    assert plan.rounding(5000).widened(plan.mu(5000)) == pytest.approx(largest_mu(1.5, 1e-6), rel=1e-8)
    assert plan.account().epsilon(1e-6) == pytest.approx(1.5, rel=1e-6)
    assert plan.account(0).epsilon(1e-6) == 0.0
    assert plan.account(100).epsilon(1e-6) < 1.5
    with pytest.raises(ValueError, match="epsilon must be at least"):
        replace(plan, noise=0.99 * plan.noise)
    free = replace(plan, noise=0.0, epsilon=None, delta=None)
    assert free.regret_bound < plan.regret_bound
    with pytest.raises(ValueError, match="noise"):
        free.account()
    replaced = make(rt.Ball(3), 5000, 2.0, 1.5, 1e-6)
    assert plan.regret_bound <= replaced.regret_bound


@planner
def test_the_planner_finds_the_best_curvature(make):
    plan = make(rt.Ball(3), 20_000, 1.0, 2.0, 1e-6)
    most = largest_mu(2.0, 1e-6)
    for factor in (0.2, 0.8, 0.98, 1.02, 1.25, 5.0):
        if isinstance(plan, ImplicitPlan):
            other = replace(plan, alpha=factor * plan.alpha, epsilon=None, delta=None)
            other = replace(other, noise=other.mu(20_000) / most * other.noise)
        else:
            other = replace(plan, added=factor * plan.added, epsilon=None, delta=None)
        # Without a claim of privacy nothing is on a grid.
        assert other.regret_bound > plan.regret_bound - plan.grid_regret


@planner
def test_certificates_scale_with_units(make):
    small = make(rt.Ball(3), 1000, 1.0, 5.0, 1e-6)
    large = make(rt.Ball(3, radius=20.0), 1000, 3.0, 5.0, 1e-6)
    ours, theirs = (plan.regret_bound - plan.grid_regret for plan in (large, small))
    assert ours == pytest.approx(60 * theirs, rel=1e-6)


@planner
def test_events_agree_with_the_account(make):
    from dp_accounting.pld import PLDAccountant

    plan = make(rt.Ball(3), 1000, 1.0, 1.0, 1e-5)
    accountant = PLDAccountant()
    accountant.compose(plan.dp_event())
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("horizon", [1, 2, 3, 1000, 70_000])
@pytest.mark.parametrize(("strong", "added"), [(0.0, 0.2), (0.5, 0.0), (0.1, 0.3)])
def test_leader_sums_are_those_of_the_proof(horizon, strong, added):
    plan = ApproximateLeaderPlan(
        rt.Ball(3), horizon, 1.5, added=added, noise=2.0, strong_convexity=strong, neighbors="zero-out"
    )
    t = np.arange(1, horizon)
    ones = np.array([int(k).bit_count() for k in t])
    curved = strong + (strong + added) * t
    noise = np.minimum(mean_length(3) * 2.0 * np.sqrt(ones) / curved, 2.0)
    total = added * horizon / 2 + 1.5**2 / (2 * (strong + added)) + (1.5**2 / (2 * curved) + 1.5 * noise).sum()
    assert total * (1 - 1e-12) <= plan.regret_bound <= total * (1 + 3e-4)
    assert plan.mu(horizon) == pytest.approx(1.5 / 2.0 * math.sqrt(math.floor(math.log2(horizon)) + 1))


def test_groups_of_rounds_cover_all_and_bound_their_digits_from_above():
    for n in (1, 16_383, 16_384, 100_001):
        start, size, digits = past_rounds(n)
        assert size.sum() == n
        ones = np.array([k.bit_count() for k in range(n + 1)], dtype=float)
        sums = np.concatenate([[0.0], np.cumsum(np.sqrt(ones))])
        first, last = start.astype(int), (start + size).astype(int)
        assert (sums[last] - sums[first] <= size * np.sqrt(digits) * (1 + 1e-9)).all()


def test_strong_convexity_pays_and_more_curvature_helps_where_it_is_small():
    plain = plan_approximate_leader(rt.Ball(3), 10_000, 1.0, 1.0, 1e-6)
    strong = plan_approximate_leader(rt.Ball(3), 10_000, 1.0, 1.0, 1e-6, strong_convexity=0.5)
    weak = plan_approximate_leader(rt.Ball(3), 10_000, 1.0, 1.0, 1e-6, strong_convexity=1e-3)
    assert strong.regret_bound < 0.5 * plain.regret_bound
    assert strong.added == 0.0
    assert 0 < weak.added < plain.added
    assert weak.regret_bound < plain.regret_bound
    assert "on trust" in str(strong)
    assert "on trust" not in str(plain)


@planner
def test_bad_goals_are_refused(make):
    domain = rt.Ball(2)
    for bad in ({"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"horizon": 0}, {"lipschitz": -1.0}):
        values = {"horizon": 100, "lipschitz": 1.0, "epsilon": 1.0, "delta": 1e-6} | bad
        with pytest.raises(ValueError, match=next(iter(bad))):
            make(domain, **values)
    with pytest.raises(ValueError, match="neighbors"):
        make(domain, 100, 1.0, 1.0, 1e-6, neighbors="add")


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="alpha"):
        ImplicitPlan(rt.Ball(2), 100, 1.0, alpha=0.0, noise=1.0)
    with pytest.raises(ValueError, match="added must be greater than 0"):
        ApproximateLeaderPlan(rt.Ball(2), 100, 1.0, added=0.0, noise=1.0)
    with pytest.raises(ValueError, match="strong_convexity"):
        ApproximateLeaderPlan(rt.Ball(2), 100, 1.0, added=1.0, noise=1.0, strong_convexity=-1.0)


custom = rt.Custom(lambda x, c: float(c @ x), lambda x, c: c, lipschitz=1.0)


def test_systems_answer_goals():
    goal = Goal(rt.Ball(2), 1000, 1.0, rt.Hinge(), 1.0, 1e-6)
    for (system,) in (IMPLICIT, LEADERS):
        plan = system.answer(goal)
        assert plan.system == system.name
        assert system.private
        assert not system.lazy
        assert plan.epsilon == 1.0
        with pytest.raises(NotApplicable):
            system.answer(replace(goal, epsilon=None, delta=None))
    with pytest.raises(NotApplicable, match="custom"):
        IMPLICIT[0].answer(replace(goal, loss=custom))
    assert LEADERS[0].answer(replace(goal, loss=custom)).epsilon == 1.0


def test_sums_of_powers():
    t = np.arange(1, 300_001)
    for first, last in ((1, 5), (2, 1024), (5, 1025), (1, 300_000), (5000, 300_000), (7, 6)):
        assert power_sum(first, last) == pytest.approx((t[first - 1 : last] ** (-2 / 3)).sum(), rel=1e-12)
    assert harmonic(300_000) == pytest.approx((1 / t).sum(), rel=1e-12)
    assert mean_length(10) == pytest.approx(3.084, abs=1e-3)
    assert least_at(lambda x: abs(math.log(x)), 0.1, 7.0) == pytest.approx(1.0, abs=1e-4)
