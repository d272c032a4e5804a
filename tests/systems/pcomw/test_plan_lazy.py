"""The tuned lazy plan keeps its promise, beats the theorem, and does not depend on units."""

import math
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.domains import Ball, Box, Interval, Polytope, Simplex
from reticent.planning import plan_lazy, theorem_lazy
from reticent.systems.pcomw._regret import regret_bound
from reticent.systems.pcomw._switching import Switching


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([Ball(1), Interval(0.0, 3.0), Simplex(4), Box([0, 0], [1, 2])]),
    st.integers(1, 10**6),
    st.floats(0, 1.2),
    st.booleans(),
    st.sampled_from([1, 4]),
)
def test_expected_switches_are_never_above_the_goal(domain, T, share, hard, draws):
    S = int(T**share)
    made = plan_lazy(domain, T, 1.0, S, hard=hard, draws=draws)
    assert made.expected_switches <= S
    assert Switching(made).expected <= S
    assert made.regret_bound == regret_bound(made).total
    assert made.regret_bound <= domain.diameter * T * (1 + 1e-6)
    # Blocks without coins, of single rounds too, have a budget in any case: the last needs no switch after it.
    fresh = made.p == 1 and made.budget == min(S, T - 1)
    assert fresh or made.budget == (S if hard else None)
    assert made.batch == 1 or (made.p == 1 and made.batch == math.ceil(T / (S + 1)))
    assert made.private is False


@pytest.mark.parametrize("d", [1, 10])
@pytest.mark.parametrize("S", [300, 1000, 3000])
def test_the_theorem_is_beaten_by_an_order_of_magnitude(d, S):
    start = time.perf_counter()
    made = plan_lazy(Ball(d), 100_000, 1.0, S)
    took = time.perf_counter() - start
    assert 10 * made.regret_bound < theorem_lazy(Ball(d), 100_000, 1.0, S).regret_bound
    assert 0.99 * S < made.expected_switches <= S
    assert took < 8  # about 0.7 s on an idle core


def test_figures_of_the_table():
    # Starting figures, to be improved upon: a larger number means that the search or a bound got worse.
    most = {(1, 300): 4260, (1, 1000): 1557, (1, 3000): 664}
    for (d, S), regret in most.items():
        assert plan_lazy(Ball(d), 100_000, 1.0, S).regret_bound < regret


def test_the_choice_is_a_minimum_of_the_certificate():
    made = plan_lazy(Interval(-1.0, 1.0), 20_000, 1.0, 400)
    for change in (
        {"lam": made.lam * 1.3},
        {"lam": made.lam / 1.3},
        {"beta": made.beta / 1.5},
        {"beta": made.beta * 1.5, "phi": made.phi ** math.sqrt(1.5)},
        {"p": 0.0},
        {"phi": 1 + (made.phi - 1) * 0.8},
    ):
        other = replace(made, **change)
        worse = regret_bound(other).total > 1.0001 * made.regret_bound
        assert worse or Switching(other).expected > 400


@pytest.mark.parametrize("hard", [False, True])
def test_more_switches_mean_less_regret(hard):
    bounds = [plan_lazy(Ball(1), 5000, 1.0, S, hard=hard).regret_bound for S in (0, 1, 5, 50, 500, 4000, 5000, 9000)]
    assert all(later <= first * (1 + 1e-6) for first, later in pairwise(bounds))


def test_a_hard_cap_costs_a_little():
    soft, hard = (plan_lazy(Ball(1), 100_000, 1.0, 1000, hard=hard) for hard in (False, True))
    assert soft.regret_bound < hard.regret_bound < 1.15 * soft.regret_bound
    crude = 100_000 * (1 - (1 - soft.p) * soft.phi**-2)  # whatever the losses are (docs/theory, P2d)
    assert f"at most {crude:,.6g} in expectation" in " ".join(soft.remarks)
    assert "in expectation" not in " ".join(hard.remarks)
    assert hard.expected_switches < 980
    assert hard.budget == 1000
    assert regret_bound(hard).budget > 0


@pytest.mark.parametrize("hard", [False, True])
def test_no_switches_at_all(hard):
    made = plan_lazy(Ball(3, 2.0), 10_000, 0.5, 0, hard=hard)
    assert (made.p, made.phi, made.expected_switches) == (0.0, 1.0, 0.0)
    assert made.regret_bound == pytest.approx(0.5 * 2.0 * 10_000, rel=1e-3)
    assert "never switches" in str(made)


def test_as_many_switches_as_rounds():
    made = plan_lazy(Ball(3), 10_000, 1.0, 20_000)
    # The price of follow the regularised leader, G R sqrt(T), within a few percent.
    assert 100.0 <= made.regret_bound <= 105.1
    short = plan_lazy(Ball(2, 2.0), 50, 5.0, 200)
    assert (short.p, short.phi, short.draws) == (1.0, 1.0, 1)
    # The last percents would take a measure so narrow that kinked losses can hardly be drawn from it.
    assert short.beta < 5.0
    assert short.regret_bound < 1.05 * 5.0 * 2.0 * 50**0.5


@pytest.mark.parametrize("T", [1, 2, 3, 10])
@pytest.mark.parametrize("hard", [False, True])
def test_short_runs(T, hard):
    for S in range(T + 2):
        made = plan_lazy(Ball(1), T, 1.0, S, hard=hard)
        assert made.expected_switches <= S
        assert made.regret_bound <= T * (1 + 1e-5)


@pytest.mark.parametrize(("T", "S"), [(10**9, 1), (10**9, 10**6), (10**9, 10**9 // 2), (2**53, 5)])
def test_huge_horizons(T, S):
    made = plan_lazy(Ball(1), T, 1.0, S)
    assert made.expected_switches <= S
    assert regret_bound(made).inexact < 0.01 * made.regret_bound


@pytest.mark.parametrize("make", [Ball, lambda d, r: Box([-r] * d, [r] * d)])
@pytest.mark.parametrize(("size", "G"), [(1e-6, 1e8), (1e9, 1e-8), (3.0, 7.0)])
def test_units_do_not_matter(make, size, G):
    one, other = plan_lazy(make(2, 1.0), 10_000, 1.0, 300), plan_lazy(make(2, size), 10_000, G, 300)
    assert other.regret_bound == pytest.approx(one.regret_bound * G * size, rel=1e-6)
    assert other.beta == pytest.approx(one.beta / (G * size), rel=1e-2)
    assert other.lam == pytest.approx(one.lam * G / size, rel=1e-2)
    assert (other.p, other.phi) == pytest.approx((one.p, one.phi), rel=1e-3)


def test_averaging_draws_pays():
    bounds = [plan_lazy(Ball(1), 10_000, 1.0, 300, draws=draws).regret_bound for draws in (1, 2, 4, 16)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] < 0.85 * bounds[0]


def test_every_kind_of_domain():
    square = Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 1, 1, 1])
    box = plan_lazy(Box([-1, -1], [1, 1]), 10_000, 1.0, 300)
    assert box.regret_bound <= plan_lazy(square, 10_000, 1.0, 300).regret_bound <= 1.3 * box.regret_bound
    assert plan_lazy(Ball(2), 10_000, 1.0, 300).regret_bound < box.regret_bound
    for domain in (Simplex(2), Simplex(30), Ball(1000)):
        assert plan_lazy(domain, 100_000, 1.0, 1000).regret_bound < domain.diameter * 100_000


def test_the_same_call_gives_the_same_plan():
    assert plan_lazy(Ball(2), 3000, 1.0, 100) == plan_lazy(Ball(2), 3000, 1.0, 100)


def test_epochs_have_the_bound_each():
    endless = plan_lazy(Interval(0.0, 1.0), None, 1.0, 600, hard=True, draws=2)
    later = endless.epoch(4)
    assert (later.horizon, later.budget, later.draws) == (16 * 1024, 600, 2)
    assert later.expected_switches <= 600
    assert "one per epoch" in " ".join(endless.remarks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": 3}, "domain must be a domain"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 2**53 + 1}, r"at most 9,007,199,254,740,992 rounds, got 9.00720e\+15; take horizon=None"),
        ({"horizon": 10**300}, r"horizon must be at most 9,007,199,254,740,992 rounds, got 1.00000e\+300"),
        ({"horizon": 10**400}, r"horizon must be at most 9,007,199,254,740,992 rounds, got 1.00000e\+400"),
        ({"lipschitz": -1.0}, "lipschitz must be greater than 0, got -1.0"),
        ({"max_switches": -1}, "max_switches must be a whole number of at least 0, got -1"),
        ({"max_switches": 1.5}, "max_switches must be a whole number of at least 0, got 1.5"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_goals_are_refused(changes, message):
    values = {"domain": Ball(2), "horizon": 100, "lipschitz": 1.0, "max_switches": 10, **changes}
    with pytest.raises(ValueError, match=message):
        plan_lazy(**values)


def test_a_looser_certificate_would_be_seen():
    # Negative control of the minimum: the plan of another goal is either infeasible here or worse.
    here, there = (plan_lazy(Interval(-1.0, 1.0), 20_000, 1.0, S) for S in (400, 200))
    assert Switching(here).expected > 200
    assert there.regret_bound > 1.5 * here.regret_bound
    assert np.isfinite(here.regret_bound)


@pytest.mark.parametrize("horizon", [2, 4, 9])
def test_one_more_switch_in_a_short_run_promises_no_less(horizon):
    # 2.91 for one switch in four rounds, and 3.79 for three: that goal had no plan of blocks.
    for domain in (Ball(2), Ball(54)):
        bounds = [plan_lazy(domain, horizon, 1.0, S).regret_bound for S in range(horizon + 1)]
        assert all(b <= a * (1 + 1e-9) for a, b in pairwise(bounds))
