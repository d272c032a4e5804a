"""Decisions on a grid (docs/theory, Q11) and sums in twice the precision (Q12), attacked where they were not."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent._core._exact import add_exactly
from reticent.privacy._account import SystemAccount
from reticent.privacy._coins import Coin
from reticent.privacy._compose import Composed
from reticent.privacy._exposure import oblivious
from reticent.systems._grid import CELL, COIN, DRAW, NOISE, STEEP, coin_error, largest_step, on_grid, stretch
from reticent.systems._nearest import _whole
from reticent.systems.experts._dartboard import tossed
from reticent.systems.l2p._l2p import LazyToPrivatePlan
from reticent.systems.pcomw._account import exposure

BODIES = {
    "interval": rt.Interval(-1.0, 1.0),
    "odd interval": rt.Interval(0.1, 0.83),
    "box": rt.Box([-3.0, 1e-7], [0.1, 2e-7]),
    "ball": rt.Ball(3, 0.7, [5.0, 0.0, -1.0]),
    "simplex": rt.Simplex(5),
    "triangle": rt.domains.Polytope([[-1.0, 0.3], [0.2, -1.0], [1.0, 1.0]], [0.1, 0.0, 1.0]),
}


# The attacks: the last bits of a decision tell how it was reckoned, which the data decide.


def unclaimed(plan):
    """The learner as it was: the same parameters without a claim, whose decisions are not rounded."""
    return replace(plan, epsilon=None, delta=None, distance=0.0)


def attacked(plan, share, last, seed):
    """Decisions after the sum was driven to -share * lam along the first coordinate and one round was `last`."""
    learner = rt.make(plan, rt.Linear(), seed=seed)
    rounds, first = math.ceil(share * plan.lam), np.zeros(plan.domain.dim)
    first[0] = 1.0
    learner.observe_many(np.tile(-share * plan.lam / rounds * first, (rounds, 1)))
    learner.observe_many(last * first[None])
    return learner.observe_many(np.zeros((3000, first.size))).points[1:]


def bits_beyond(points, place):
    """Whether bits of 2^-place or finer are set in the first coordinates."""
    return np.mod(points[:, 0] * 2.0 ** (place - 1), 1.0) != 0.0


def hits(plan, share, last, told, runs):
    return sum(told(attacked(plan, share, last, seed)) for seed in range(runs))


def test_the_parity_of_a_bit_tells_one_round_unless_decisions_are_on_a_grid():
    # Reckoned from the low end of the interval, or from the high one.
    plan = rt.plan_private(rt.Interval(-1.0, 1.0), 20_000, 1.0, 1.0, 1e-6)

    def told(points):
        return bool(bits_beyond(points[points[:, 0] > 0], 53).any())

    assert [hits(unclaimed(plan), 1.0, last, told, 40) for last in (1.0, -1.0)] == [0, 40]  # the negative control
    assert [hits(plan, 1.0, last, told, 40) for last in (1.0, -1.0)] == [0, 0]


def test_the_last_bit_tells_one_round_on_a_ball_unless_decisions_are_on_a_grid():
    # Drawn from the whole Gaussian, if that is hardly ever outside the ball, or by depth and direction.
    plan = rt.plan_private(rt.Ball(2), 20_000, 1.0, 1.0, 1e-6)
    share = 1 - (math.sqrt(2) + 3) / math.sqrt(plan.beta * plan.lam)

    def told(points):
        return bool(bits_beyond(points, 54).mean() > 0.25)

    assert [hits(unclaimed(plan), share, last, told, 20) for last in (1.0, -1.0)] == [20, 0]  # the negative control
    assert [hits(plan, share, last, told, 20) for last in (1.0, -1.0)] == [0, 0]


# What is released: on the grid, inside, a function of the cell alone, and one thing in chart and domain.


@pytest.mark.parametrize("name", BODIES)
def test_released_points_are_functions_of_the_cell(name):
    domain = BODIES[name]
    rng = np.random.default_rng(7)
    draws = np.array([domain.draw_gaussian(domain.center, 0.0, rng) for _ in range(300)])
    ends = np.array([domain.support(c) for c in rng.normal(size=(100, domain.dim))])
    u = domain.to_chart(np.concatenate([draws, ends]))
    found = on_grid(domain, u, domain.grid)
    assert all(domain.contains(x, 1e-12) for x in domain.from_chart(found))
    assert np.linalg.norm(found - u, axis=1).max() <= largest_step(domain) * (1 + 1e-9)
    # Whatever else is in the cell leads to the same point, to the last bit.
    cell = domain.grid * np.rint(u / domain.grid)
    for share in (-0.499, -0.1, 0.3, 0.499):
        assert np.array_equal(on_grid(domain, cell + share * domain.grid, domain.grid), found)
    # The chart and the domain show one thing, row by row or all at once.
    rows = domain.from_chart(found)
    assert all(np.array_equal(domain._from_chart(point), row) for point, row in zip(found, rows, strict=True))
    multiples = found / domain.grid
    inner = np.abs(multiples - np.rint(multiples)).max(axis=1) == 0
    assert inner[:300].mean() > 0.9
    if domain.body.box or domain.body.ball:
        assert inner.all()


@pytest.mark.parametrize("name", ["interval", "box", "ball", "simplex", "triangle"])
@pytest.mark.parametrize("system", ["pcomw", "ftrl", "implicit", "approximate"])
def test_learners_release_what_the_grid_has(name, system):
    domain = BODIES[name]
    planner = {
        "pcomw": rt.plan_private,
        "ftrl": rt.planning.plan_ftrl,
        "implicit": rt.planning.plan_implicit,
        "approximate": rt.planning.plan_approximate_leader,
    }[system]
    plan = planner(domain, 600, 1.0, 8.0, 1e-5)
    rows = np.random.default_rng(3).normal(size=(600, domain.dim))
    rows /= 1.01 * np.linalg.norm(rows, axis=1)[:, None]
    learner = rt.make(plan, rt.Linear(), seed=2)
    trace = learner.observe_many(rows)
    again = rt.make(plan, rt.Linear(), seed=2)
    u = np.concatenate([again._u[None], again._take(again._admit((rows,)).parts).points(domain.chart_dim)])
    assert np.array_equal(trace.points, domain.from_chart(u)[: len(trace.points)])
    assert np.array_equal(again.decision, learner.decision)
    on = u == domain.grid * np.rint(u / domain.grid)
    # Draws lie on the grid; noise is rounded before it is projected, and may end on the boundary.
    if domain.body.box:
        assert (on | (system != "pcomw") & ((u == domain.body.lo) | (u == domain.body.hi))).all()
    else:
        assert on.all() if domain.body.ball and system == "pcomw" else on.all(axis=1).mean() > 0.2
    assert np.abs(u - on_grid(domain, u, domain.grid)).max() <= largest_step(domain)
    # One at a time, the same.
    single = rt.make(plan, rt.Linear(), seed=2)
    for row in rows:
        single.observe(row)
    assert np.array_equal(single.decision, learner.decision)
    assert single.switches == learner.switches == trace.switches


def test_plans_without_a_claim_are_left_as_they_are():
    plan = rt.plan_lazy(rt.Interval(-1.0, 1.0), 1000, 1.0, 50)
    learner = rt.make(plan, rt.Linear(), seed=1)
    assert not np.array_equal(learner.decision, on_grid(plan.domain, learner.decision[None], plan.grid)[0])


# The premiss of Q11b, and what the account makes of it.


def test_chances_of_cells_are_right_where_points_are():
    # The worst that errors of 2^-50 can do to a cell, for the steepest density allowed: exact integrals.
    cell = 2.0**-29
    step, error = Fraction(1, 2**19) * Fraction(1001, 1000), Fraction(1, 2**50)
    slope = math.log(2.0) / float(step)

    def mass(width):
        return math.expm1(slope * float(width)) / slope

    inner = mass(step)
    outside = (math.exp(slope * float(step)) * mass(error) + float(error)) / inner
    end = math.exp(slope * float(step / 2)) * mass(error) / mass(step / 2)
    assert outside <= cell
    assert end <= cell
    assert 2 * outside > cell / 2  # the bound is not far off


def test_the_account_has_what_rounding_adds():
    plan = rt.planning.plan_ftrl(rt.Ball(10), 10_000, 1.0, 1.0, 1e-6, batch=10)
    rounding = plan.rounding(10_000)
    assert rounding.distance == pytest.approx(NOISE * math.sqrt(10 * 1000))
    bound = plan.account().statements[0].bound
    mu = bound.alternatives[0][0].mu
    assert bound.failure == 0.0
    assert mu == pytest.approx(plan.mu() * (stretch(10_000) + STEEP) + 2 * rounding.distance, rel=1e-12)
    assert plan.mu() < mu < plan.mu() * 1.002
    assert plan.account().epsilon(1e-6) <= 1.0
    assert 1 / plan.dp_event().noise_multiplier == pytest.approx(mu, rel=1e-12)
    private = rt.plan_private(rt.Interval(-1.0, 1.0), 20_000, 1.0, 1.0, 1e-6)
    claimed, bare = private.account().exposure, unclaimed(private).account().exposure
    assert bare.shift < claimed.shift < bare.shift * 1.002
    assert bare.eta < claimed.eta
    assert bare.miss == claimed.miss == 0.0
    # Cells that are cut thin: a hundredth of delta.
    cut = rt.plan_private(rt.Simplex(5), 20_000, 1.0, 1.0, 1e-6)
    assert 0 < (1 + math.e) * cut.account().exposure.miss < 1e-2 * cut.delta


def test_coins_and_experts_move_epsilon():
    plan = rt.planning.plan_private_dartboard(rt.Experts(5), 100_000, 1.0, 1.0, 1e-6)
    exact = SystemAccount(plan.horizon, plan.neighbors, plan.statements(plan.horizon))
    rounding = plan.rounding(plan.horizon)
    assert rounding.epsilon == 2 * COIN * plan.max_switches
    assert plan.account().epsilon(1e-6) <= plan.epsilon
    drawn = rounding._replace(stretch=1.0).applied(plan.statements(plan.horizon))
    more = SystemAccount(plan.horizon, plan.neighbors, drawn).epsilon(1e-6) - exact.epsilon(1e-6)
    assert more == pytest.approx(rounding.epsilon, rel=0.2)
    # The coin of the changed batch; later ones have the same numbers.
    assert tossed(plan.coin).eta == plan.beta + 2 * COIN


@pytest.mark.parametrize(
    "make",
    [
        lambda: rt.planning.plan_flat(rt.Interval(-1.0, 1.0), 10**6, 1.0, 8.0, 1e-6, max_switches=300),
        lambda: rt.planning.plan_l2p(rt.Ball(2), 10**6, 1.0, 1.0, 1e-6, refresh="never"),
        lambda: rt.planning.plan_objective(rt.Ball(2), 10**6, 1.0, 1.0, 1e-6, smoothness=0.0),
    ],
)
def test_rarely_forced_coins_are_off_by_more_when_they_switch(make):
    """A chance to keep that is right to a factor leaves one to switch that is right to that over p."""
    plan = make()
    assert 0 < plan.p < 0.1
    for way in range(2):
        ours, real = (
            found[-1].bound.alternatives[way][0]
            for found in (plan.in_floating_point(plan.horizon), plan.statements(plan.horizon))
        )
        assert ours.count == plan.coins - 1
        more = plan.rounding(plan.horizon).stretch ** 2
        assert ours.coin == Coin(plan.p, (real.coin.eta * more if real.count else 0.0) + 2 * COIN)
        assert np.abs(ours.other.value).max() > np.abs(real.other.value).max()
    assert 0.99 * plan.epsilon < plan.account().epsilon(1e-6) <= plan.epsilon


def test_coins_at_points_that_are_far_apart_for_them_are_charged_more():
    assert coin_error(rt.Ball(4), 1.0) == COIN
    assert coin_error(rt.Ball(4), 2.0**12) == 8 * COIN
    assert coin_error(rt.Interval(-3.0, 3.0), 1.0, length=10.0) == 5 * COIN
    steep = LazyToPrivatePlan(rt.Ball(4), 10**6, 1.0, beta=1.0, lam=1e9, p=0.1, budget=5, anchor="centre", batch=2**12)
    assert steep.in_floating_point(10**6)[0].bound.alternatives[0][0].coin.eta == 2 * 8 * COIN


def test_points_that_only_coins_read_count_as_draws():
    plan = rt.planning.plan_l2p(rt.Simplex(5), 10**6, 1.0, 1.0, 1e-6)
    assert plan.refreshes > 0
    draws = plan.max_switches + plan.refreshes
    assert plan.rounding(10**6).distance == pytest.approx(DRAW * math.sqrt(4 * draws), rel=1e-12)
    assert plan.rounding(10**6).failure == pytest.approx(2.0**-44 * 4 * draws, rel=1e-12)
    assert 0.999 < plan.account().epsilon(1e-6) <= 1.0


def test_what_the_machine_adds_is_beyond_the_clip_and_in_the_decision_of_the_changed_batch():
    made = rt.Plan(rt.Ball(2), 1000, 1.0, beta=1.0, lam=100.0, p=0.1, phi=1.001, budget=5, epsilon=50.0, delta=1e-3)
    assert exposure(made).eta == 2 * math.log(1.001) + 2 * COIN  # off by no less where chances are clipped
    assert exposure(unclaimed(made)).eta == 2 * math.log(1.001)
    plan = rt.plan_private(rt.Simplex(5), 10**5, 1.0, 1.0, 1e-6, adversary="oblivious")
    found = exposure(plan)
    sums = plan.beta * plan.domain.diameter * (stretch(10**5) + STEEP - 1)
    blur = 2 * (4 * CELL + sums) + 2 * COIN * (10**5 // plan.batch)
    assert found.off == 2 * COIN / plan.p
    assert found.blur == pytest.approx(blur, rel=1e-12)
    bare = oblivious(replace(found, off=0.0, blur=0.0))
    ours = oblivious(found)
    ratio = Composed(ours).delta(1.0) / Composed(bare).delta(1.0)
    assert 1 + found.blur < ratio < 1 + found.blur + 100 * found.off
    # The decision in play at the changed batch is one more draw whose cells may be cut thin.
    assert found.slip == 2.0**-44 * 4
    assert ours.failure == pytest.approx(bare.failure)
    assert found.miss == pytest.approx(2.0**-44 * 4 * found.draws)
    assert plan.account().epsilon(1e-6) <= 1.0


def test_regret_bounds_have_what_the_grid_costs():
    plan = rt.planning.plan_ftrl(rt.Ball(10), 10_000, 1.0, 1.0, 1e-6)
    cost = 10_000 * largest_step(plan.domain, cut=False)
    assert plan.regret_bound - replace(plan, epsilon=None, delta=None).regret_bound == pytest.approx(cost)
    drawn = rt.planning.plan_drawn_leader(rt.Experts(5), 10_000, 1.0, 1.0, 1e-6)
    assert drawn.leader.regret_bound < drawn.regret_bound < 1.001 * drawn.leader.regret_bound


def test_decisions_that_may_leave_the_body_have_the_grid_of_the_body():
    plan = rt.planning.plan_ftrl(rt.Ball(2), 100_000, 1.0, 1.0, 1e-6, smoothness=0.25)
    assert plan.domain.radius > 10 * plan.body.radius
    learner = rt.make(plan, rt.Logistic(), seed=1)
    points = learner.observe_many(np.tile([0.6, 0.8], (3000, 1)), np.ones(3000)).points / plan.body.grid
    assert np.array_equal(points, np.rint(points))
    assert plan.grid_regret < 1e-2 * plan.regret_bound


def test_experts_are_drawn_from_a_point_on_the_grid():
    plan = rt.planning.plan_drawn_leader(rt.Experts(3), 1000, 1.0, 8.0, 1e-5)
    learner = rt.make(plan, rt.Linear(), seed=1)
    learner.observe_many(np.random.default_rng(2).random((100, 3)))
    leader = learner._walk.leader
    found = on_grid(leader.domain, leader.u[None], leader.domain.grid)[0]
    assert np.abs(found - leader.u).max() <= largest_step(leader.domain)
    assert np.array_equal(leader.steps, leader.domain.grid)


def test_noisy_descent_needs_no_grid():
    plan = rt.planning.plan_descent(rt.Ball(2), 1000, 1.0, epsilon=8.0, delta=1e-5)
    assert (plan.on_grid, plan.grid_regret) == (False, 0.0)
    assert plan.account().statements == plan.statements(1000)


# Whole numbers of steps in a sum, and sums in twice the precision.


def test_sums_are_rounded_to_the_right_multiple_however_large():
    rng = np.random.default_rng(9)
    off = 0
    for size in (1.0, 2.0**20, 2.0**49):
        for _ in range(300):
            high, noise, unit = size * rng.normal(), size * rng.normal(), 0.37 + rng.random()
            low = np.spacing(high) * (rng.random() - 0.5)
            exact = (Fraction(high) + Fraction(low) + Fraction(noise)) / Fraction(unit)
            found = Fraction(float(_whole(high, low, noise, unit)))
            assert abs(found - exact) <= Fraction(1, 2) + Fraction(1, 2**48)
            off += abs(Fraction(float(np.rint((high + noise) / unit))) - exact) > Fraction(5, 8)
    assert off >= 5  # the negative control: plain arithmetic goes to the wrong one, where sums are large


def added(numbers, start=0.0):
    high, low = np.array([start]), np.zeros(1)
    for x in numbers:
        add_exactly(high, low, 0, x)
    return high[0], low[0]


def test_sums_are_what_fractions_say():
    rng = np.random.default_rng(5)
    for start in (0.0, 2.0**28, -(2.0**52)):
        numbers = rng.uniform(-1.0, 1.0, 3000) * 2.0 ** rng.integers(-40, 1, 3000)
        numbers[::7] = -numbers[::7][::-1]
        high, low = added(numbers, start)
        exact = Fraction(start) + sum(map(Fraction, numbers))
        off = abs(Fraction(float(high)) + Fraction(float(low)) - exact)
        assert off <= Fraction(3000**2, 2**104) + Fraction(3000 * abs(int(start)), 2**104)
        assert abs(low) <= np.spacing(abs(high)) / 2


def test_a_plain_sum_is_not_what_fractions_say():
    numbers = np.full(1000, np.spacing(2.0**53) / 2)
    plain = 2.0**53
    for x in numbers:
        plain += x
    assert plain == 2.0**53  # the negative control: all of it is absorbed
    assert added(numbers, 2.0**53)[0] == 2.0**53 + 1000
    assert stretch(4 * 10**8) < 1 + 5e-5
