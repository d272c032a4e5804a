"""The parts of private planning: the quick account beside the real one, and the table of first terms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.domains import Ball
from reticent.planning import Plan, plan_lazy, plan_private, theorem_private
from reticent.privacy import account
from reticent.privacy._losses import gaussian_delta, largest_mu
from reticent.systems._words import explain
from reticent.systems.pcomw._private import build
from reticent.systems.pcomw._regret import first_term
from reticent.systems.pcomw._search import Candidates, Costs, FirstTerms, Found, PrivateGoal, coins_variance


@pytest.mark.parametrize("adversary", ["adaptive", "oblivious"])
@pytest.mark.parametrize(
    ("batch", "p", "c"), [(1, 0.002, 5.2), (4, 0.03, 3.0), (8, 0.01, 5.0), (30, 0.2, 3.2), (60, 0.6, 2.0)]
)
def test_the_quick_account_is_near_the_real_one(adversary: str, batch: int, p: float, c: float) -> None:
    """It solves for the step; there the real account must have nearly the epsilon of the goal."""
    goal = PrivateGoal(Ball(10), 10**6, 1.0, 1.0, 1e-6, "replace", adversary, None, 8)
    terms = FirstTerms(goal.domain, goal.horizon, (1e-4, 1e-2), (5.0, 50.0), (4, 4))
    found = Found(0.0, batch, p, c, 3.0, 15.0, 1.0)
    step = float(Costs(goal, terms).step(Candidates.of(found.point[None]))[0][0])
    plan = build(goal, found, step, found.budget(goal, step))
    assert plan is not None
    spent = account(plan).epsilon(1e-6)
    assert spent == pytest.approx(1.0, abs=0.03)


def test_a_normal_release_alone() -> None:
    mu = np.array([0.05, 0.3, 1.0, 4.0])
    for epsilon in (-0.5, 0.0, 0.2, 2.0):
        both = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in mu / 2 - epsilon / mu])
        other = np.array([0.5 * math.erfc(x / math.sqrt(2)) for x in mu / 2 + epsilon / mu])
        assert gaussian_delta(mu, epsilon) == pytest.approx(both - math.exp(epsilon) * other, abs=1e-13)
    assert float(gaussian_delta(np.array(largest_mu(0.7, 1e-5)), 0.7)) == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize(("p", "eta"), [(0.1, 0.01), (0.49, 0.1), (0.9, 0.05)])
def test_the_variance_of_a_later_coin(p: float, eta: float) -> None:
    high = 1 - (1 - p) * math.exp(-eta)
    q, r = (p, high) if p + high <= 1 else (1 - high, 1 - p)
    expected = 100 * (q + r) * math.log(r / q) ** 2
    assert float(coins_variance(np.array(100.0), np.array(p), np.array(eta))) == pytest.approx(expected)


def test_the_table_of_first_terms_is_a_smooth_copy() -> None:
    domain = Ball(6, 3.0)
    terms = FirstTerms(domain, 10**6, (2e-4, 5e-3), (2.0, 120.0), (6, 6))
    G = 0.7
    for step, precision in ((3e-4, 3.0), (1e-3, 20.0), (4.4e-3, 77.0)):
        lam = math.sqrt(precision * 6) / step * G / 3.0
        exact = first_term(domain, lam * (step / G) ** 2, lam, G * 10**6) / (G * 3.0)
        assert float(terms(np.array(step), np.array(precision))) == pytest.approx(exact, rel=3e-3)
    assert float(terms(np.array(1.0), np.array(20.0))) == math.inf


def test_plain_words_for_a_private_plan() -> None:
    plan = plan_private(Ball(2), 10**5, 2.0, 1.0, 1e-6)
    text = " ".join(explain(plan).split())
    for words in (
        "Epsilon = 1 and delta = 1e-06 (by the accountant)",
        "exp(1) = 2.72 times as likely",
        "chosen by somebody who watches the decisions",
        "right with a chance of at most 0.7311",
        "by the accountant's whole curve",
        f"never more than {plan.budget:,} times in all",
        "no steeper on the domain than 2",
        "nobody can time the learner",
        "released on a public grid",
        "assumed, not proved",
        "the seed is secret",
    ):
        assert words in text, words
    assert all(len(line) <= 100 for line in explain(plan).splitlines())


def test_plain_words_for_other_plans() -> None:
    assert "Nothing: this plan makes no privacy claim" in explain(plan_lazy(Ball(2), 1000, 1.0, max_switches=30))
    paper = " ".join(explain(theorem_private(Ball(2), 10_000, 1.0, 1.0, 1e-6)).split())
    assert "(by the paper's theorem, for real numbers)" in paper
    assert "must not depend on the published decisions" in paper
    hand = Plan(Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, epsilon=1.0, delta=1e-6)
    assert "claimed by hand, unchecked" in explain(hand)
    assert "No bound on regret is stated" in explain(hand)
    epochs = " ".join(explain(plan_private(Ball(2), None, 1.0, 1.0, 1e-6, neighbors="zero-out")).split())
    assert "The run is made of epochs" in epochs
    assert "as if nobody had come" in epochs
    assert "times per epoch" in epochs
