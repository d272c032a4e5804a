"""What must hold for every plan: monotone, invertible, convex, Renyi above, composition adds up."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.privacy import account, allowed, require, spent
from reticent.privacy._account import Statement, SystemAccount, gaussian, lowest
from reticent.privacy._coins import Coin, many_coins
from reticent.privacy._compose import Bound
from reticent.privacy._losses import hockey_stick, largest_mu_with_failure

PLANS = {
    "horizon": st.integers(1, 3000),
    "beta": st.floats(1e-4, 0.3),
    "lam": st.floats(5.0, 1000.0),
    "p": st.floats(0.003, 1.0),
    "phi": st.floats(1.0, 3.0),
    "batch": st.integers(1, 8),
    "budget": st.none() | st.integers(0, 500),
    "adversary": st.sampled_from(["adaptive", "oblivious"]),
    "neighbors": st.sampled_from(["replace", "zero-out"]),
}


@st.composite
def plans(draw, **fixed):
    values = {name: draw(strategy) for name, strategy in PLANS.items() if name not in fixed} | fixed
    horizon = values.pop("horizon")
    return rt.Plan(rt.Interval(-1.0, 1.0), horizon, 1.0, distance=0.0, **values)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(plans())
def test_renyi_is_above(plan):
    exact, renyi = account(plan), account(plan, method="rdp")
    for delta in (1e-3, 1e-8):
        assert exact.epsilon(delta) <= renyi.epsilon(delta) * (1 + 1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(plans(), st.sampled_from([1e-2, 1e-5, 1e-9]))
def test_epsilon_inverts_delta(plan, delta):
    found = account(plan)
    epsilon = found.epsilon(delta)
    if 0 < epsilon < math.inf:
        assert found.delta(epsilon) <= delta
        assert found.delta(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-6)
    elif epsilon == 0:
        assert found.delta(0.0) <= delta


@settings(max_examples=30, deadline=None, derandomize=True)
@given(plans(adversary="adaptive"))
def test_monotone_in_every_parameter(plan):
    def epsilon(**changes):
        return account(replace(plan, **changes)).epsilon(1e-5)

    here = epsilon() * (1 + 1e-4) + 1e-9  # merging points moves epsilon by parts in 1e5
    assert epsilon(lam=plan.lam * 1.3) <= here
    assert epsilon(p=min(1.0, plan.p * 1.3)) <= here
    assert epsilon(neighbors="zero-out") <= here
    assert epsilon(horizon=max(1, plan.horizon // 2)) <= here
    assert epsilon(beta=plan.beta / 1.3) <= here
    assert epsilon(phi=1 + (plan.phi - 1) / 2) <= here
    assert epsilon(budget=(plan.coins if plan.budget is None else plan.budget) // 2) <= here
    assert epsilon(draws=7) == epsilon()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(plans())
def test_oblivious_is_never_above_adaptive(plan):
    both = [account(replace(plan, adversary=who)).epsilon(1e-6) for who in ("oblivious", "adaptive")]
    assert both[0] <= both[1]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(plans(horizon=400, batch=1, budget=None, adversary="adaptive"))
def test_curve_falls_and_is_convex_in_the_exponential(plan):
    curve = account(plan).curve(points=30)
    assert (np.diff(curve.delta) <= 1e-15).all()
    slopes = np.diff(curve.delta) / np.diff(np.exp(curve.epsilon))
    assert (np.diff(slopes) >= -1e-9).all()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(0.01, 0.99), st.floats(1e-3, 1.0), st.integers(1, 300), st.integers(1, 300))
def test_coins_compose_additively(p, eta, first, second):
    coin = Coin(p, eta)
    apart, together = many_coins(coin, first).times(many_coins(coin, second)), many_coins(coin, first + second)
    for epsilon in (0.1, 1.0, 5.0):
        one, two = float(apart.delta(0.2, epsilon)), float(together.delta(0.2, epsilon))
        assert one == pytest.approx(two, rel=1e-7, abs=1e-30)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(plans(adversary="adaptive"), st.floats(0, 1), st.floats(0, 1))
def test_odometer_grows_to_the_certificate(plan, a, b):
    fewer, more = sorted((int(a * plan.horizon), int(b * plan.horizon)))
    values = [spent(plan, rounds).epsilon(1e-6) for rounds in (0, fewer, more, plan.horizon)]
    assert values[0] == 0.0
    assert all(x <= y * (1 + 1e-4) for x, y in pairwise(values))
    assert values[-1] == account(plan).epsilon(1e-6)


def test_shares_are_parts_of_the_whole():
    plan = rt.Plan(rt.Ball(2), 5000, 1.0, beta=0.02, lam=200.0, p=0.02, phi=1.2, budget=300, distance=0.0)
    for who in ("adaptive", "oblivious"):
        shares = account(replace(plan, adversary=who)).shares(1e-6)
        assert max(shares[:3]) <= shares.whole <= sum(shares[:3]) * 2


def test_inexact_draws_are_paid_for():
    plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    exact = account(plan)
    values = [account(replace(plan, distance=w)).epsilon(1e-6) for w in (0.0, 1e-9, 1e-4, 1e-2)]
    assert all(a < b for a, b in pairwise(values))
    assert values[1] == pytest.approx(exact.epsilon(1e-6), rel=1e-6)
    # A draw within w moves from s to s + 2w (docs/theory, Q5).
    forced = account(replace(plan, p=1.0, distance=0.003))
    assert forced.delta(1.0) == pytest.approx(account(replace(plan, p=1.0, lam=400 / 1.6**2)).delta(1.0), rel=1e-9)
    # The oblivious certificate pays in delta (P7).
    rough = account(replace(plan, distance=1e-12, adversary="oblivious"))
    clean = account(replace(plan, adversary="oblivious"))
    assert rough.delta(1.0) == pytest.approx(clean.delta(1.0) + (1 + math.e) * rough.exposure.slip, rel=1e-6)


def test_filter_refuses_before_the_goal_is_broken():
    plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    goal = spent(plan, 500).epsilon(1e-6)
    assert allowed(plan, 499, 1, epsilon=goal, delta=1e-6)
    assert not allowed(plan, 500, 1, epsilon=goal, delta=1e-6)
    with pytest.raises(ValueError, match=r"1 more rounds .* from .* \(spent in 500 rounds\) to .*; nothing was drawn"):
        require(plan, 500, epsilon=goal, delta=1e-6)
    with pytest.raises(ValueError, match="must be given for a plan that makes no privacy claim"):
        require(plan, 500)


def test_theorem_is_far_above_what_its_plans_reveal():
    plan = rt.theorem_private(rt.Ball(10), 10**6, 1.0, epsilon=1.0, delta=1e-6)
    stated = account(plan, method="theorem")
    assert account(plan).epsilon(1e-6) < stated.epsilon(1e-6) / 100 < 0.01
    assert stated.delta(stated.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert stated.delta(1e-9) == 1.0
    with pytest.raises(ValueError, match=r"delta must be from 1e-06 to 0\.5"):
        stated.epsilon(1e-7)
    with pytest.raises(ValueError, match=r"needs p = 0\.01 and a budget"):
        account(replace(plan, p=0.02), method="theorem")
    with pytest.raises(ValueError, match="has no shares"):
        stated.shares(1e-6)


@pytest.mark.parametrize("method", ["pld", "rdp"])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.5, 6.0])
@pytest.mark.parametrize("failure", [1e-13, 1e-9, 1e-5])
def test_a_failure_never_makes_an_account_rise(mu, failure, method):
    alone = Statement(method, Bound(gaussian(mu).bound.alternatives, failure))
    found = SystemAccount(1, "replace", (alone,))
    place = lowest(lambda e: float(hockey_stick(mu, e)), failure)
    epsilons = np.unique(np.concatenate([np.linspace(0.0, 50.0, 40), place + np.linspace(-0.02, 0.02, 41)]))
    deltas = [found.delta(float(e)) for e in epsilons if e >= 0]
    assert all(later <= before * (1 + 1e-12) for before, later in pairwise(deltas))
    # What holds at one epsilon is found again from its delta, however little is left of the fall.
    for e, delta in zip(epsilons[epsilons >= 0], deltas, strict=True):
        assert delta > 0.99 or found.epsilon(delta * (1 + 1e-9)) <= e * (1 + 1e-9)


def test_releases_that_may_fail_have_about_the_largest_mu_that_the_account_allows():
    failure = np.array([0.0, 1e-12, 1e-9, 1e-7, 4e-7])
    for mu, chance in zip(largest_mu_with_failure(9.0, 1e-6, failure), failure, strict=True):

        def delta(times, mu=mu, chance=chance):
            once = Statement("pld", Bound(gaussian(times * mu).bound.alternatives, chance))
            return SystemAccount(1, "replace", (once,)).delta(9.0)

        assert delta(1.0) <= 1e-6 * (1 + 1e-6)
        assert delta(1.05) > 1e-6
    assert largest_mu_with_failure(9.0, 1e-6, np.array([6e-7]))[0] == 0.0
