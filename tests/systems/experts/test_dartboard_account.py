"""The private dartboard against its account: all adaptive adversaries over small grids of losses, by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import reticent as rt
from reticent.domains import Experts
from reticent.privacy._losses import gdp_of_bounded_range, hockey_stick
from reticent.systems.experts._dartboard import PrivateDartboardPlan, plan_private_dartboard
from reticent.systems.experts._learner import PrivateDartboard

LEVELS = (0.0, 0.05, 0.2, 0.5, 1.0, 1.5, 2.5)


class Game:
    """The adaptive game of docs/theory, Q0, for one coin per batch; nothing of the library is used.

    Two worlds share all losses but one; the adversary sees coins and draws, and picks each batch's losses.
    """

    def __init__(self, beta, p, budget, batches, losses, fixed=None):
        self.beta, self.p, self.budget, self.batches = beta, p, budget, batches
        self.losses = [np.array(loss, float) for loss in losses]
        self.fixed = np.zeros(len(losses[0])) if fixed is None else np.array(fixed, float)

    def weights(self, sums):
        w = np.exp(-self.beta * (sums - sums.min()))
        return w / w.sum()

    def worst(self, a, b, x, left, ours, theirs, draws, alpha, first=None):
        """The largest integral of (dP - alpha dQ)+ from here on, a and b the masses of the two worlds."""
        if left == 0 or draws == self.budget or a == 0:
            return max(a - alpha * b, 0.0)
        options = [first] if first is not None else [(loss, loss) for loss in self.losses]
        best = 0.0
        for loss, other in options:
            s, t = ours + loss, theirs + other
            kept = (1 - self.p) * math.exp(-self.beta * loss[x]), (1 - self.p) * math.exp(-self.beta * other[x])
            total = self.worst(a * kept[0], b * kept[1], x, left - 1, s, t, draws, alpha)
            P, Q = (1 - kept[0]) * self.weights(s), (1 - kept[1]) * self.weights(t)
            for y in range(len(loss)):
                total += self.worst(a * P[y], b * Q[y], y, left - 1, s, t, draws + 1, alpha)
            best = max(best, total)
        return best

    def delta(self, epsilon, pairs):
        """The worst over challenges in the first batch, which has `fixed` losses besides."""
        zero = np.zeros_like(self.fixed)
        return max(
            self.worst(1.0, 1.0, x, self.batches, zero, zero, 0, math.exp(epsilon), (self.fixed + l, self.fixed + m))
            for l, m in pairs
            for x in range(zero.size)
        )


TWO = [(0, 0), (1, 0), (0, 1), (0, 0.5)]
THREE = [(0, 0, 0), (1, 0, 0), (0, 1, 1), (0, 1, 0), (1, 0.5, 0)]


def pairs(losses, neighbors):
    arrays = [np.array(loss, float) for loss in losses]
    if neighbors == "zero-out":
        zero = np.zeros(len(losses[0]))
        return [(l, zero) for l in arrays] + [(zero, l) for l in arrays]
    return list(itertools.permutations(arrays, 2))


CASES = {
    "coin": (TWO, 3, 0.6, 0.1, 1, 3, "replace", None),
    "draws": (TWO, 3, 0.5, 1.0, 1, 3, "replace", None),
    "budget": (TWO, 3, 0.5, 0.3, 1, 1, "replace", None),
    "both": (TWO, 4, 0.4, 0.25, 1, 2, "replace", None),
    "zero-out": (TWO, 3, 0.8, 0.3, 1, 3, "zero-out", None),
    "three": (THREE, 2, 0.7, 0.2, 1, 2, "replace", None),
    "batch": (TWO, 2, 0.4, 0.2, 2, 2, "replace", (1.0, 0.0)),
}


def setting(name):
    losses, batches, beta, p, batch, budget, neighbors, fixed = CASES[name]
    plan = PrivateDartboardPlan(
        Experts(len(losses[0])), batches * batch, 1.0, beta=beta, p=p, batch=batch, budget=budget, neighbors=neighbors
    )
    return plan, Game(beta, p, budget, batches, losses, fixed), pairs(losses, neighbors)


@pytest.mark.parametrize("name", CASES)
def test_no_adaptive_adversary_passes_the_account(name):
    plan, game, challenges = setting(name)
    account = plan.account()
    for epsilon in LEVELS:
        assert game.delta(epsilon, challenges) <= account.delta(epsilon) + 1e-12


@pytest.mark.parametrize("name", ["coin", "draws", "both", "zero-out", "three", "batch"])
def test_an_account_of_half_of_beta_is_caught(name):
    plan, game, challenges = setting(name)
    wrong = PrivateDartboardPlan(
        plan.domain, plan.horizon, 1.0, beta=plan.beta / 2, p=plan.p, batch=plan.batch, budget=plan.budget,
        neighbors=plan.neighbors,
    ).account()  # fmt: skip
    assert any(game.delta(epsilon, challenges) > wrong.delta(epsilon) * 1.01 for epsilon in LEVELS)


def test_zero_out_is_no_account_for_replacing():
    plan, game, _ = setting("zero-out")
    challenges = pairs(TWO, "replace")
    assert any(game.delta(epsilon, challenges) > plan.account().delta(epsilon) * 1.01 for epsilon in LEVELS)


@pytest.mark.parametrize("rho", [1e-5, 0.01, 0.3, 1.0, 3.0, 10.0, 40.0])
def test_releases_of_bounded_range_lie_below_the_normal_curve_and_touch_it(rho):
    mu = gdp_of_bounded_range(rho)
    epsilon = np.linspace(-rho, rho, 2001)
    # The supremum over randomised responses of Dong, Durfee and Rogers 2020.
    curve = np.expm1((epsilon - rho) / 2) ** 2 / -np.expm1(-rho)
    room = 1e-15 + 1e-13 * curve
    assert (curve <= hockey_stick(mu, epsilon) + room).all()
    smaller = hockey_stick(0.999 * mu, epsilon)
    assert (curve > smaller + room).any()


def test_range_is_that_of_a_logistic_variable_moved():
    rho, alpha = 0.8, 1.3
    two = integrate.quad(
        lambda z: max(stats.logistic.pdf(z - rho) - alpha * stats.logistic.pdf(z), 0.0), -60, 60, limit=500
    )[0]
    one = (1 - math.sqrt(alpha) * math.exp(-rho / 2)) ** 2 / (1 - math.exp(-rho))
    assert two == pytest.approx(one, rel=1e-6)


def test_random_draws_of_the_exponential_mechanism_respect_the_curve():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, beta = int(rng.integers(2, 6)), rng.exponential()
        s, change = rng.random(n) * 5, rng.random(n)
        P, Q = np.exp(-beta * s), np.exp(-beta * (s + change))
        P, Q = P / P.sum(), Q / Q.sum()
        mu = gdp_of_bounded_range(beta * float(np.ptp(change)))
        for epsilon in (0.0, 0.1, 0.5, 1.0, -0.3):
            found = max(float(np.maximum(A - math.exp(epsilon) * B, 0).sum()) for A, B in ((P, Q), (Q, P)))
            assert found <= float(hockey_stick(mu, epsilon)) + 1e-14


def test_account_counts_what_could_have_happened():
    plan = PrivateDartboardPlan(Experts(4), 1000, 1.0, beta=0.05, p=0.1, batch=10, budget=20)
    spent = [plan.account(rounds).epsilon(1e-6) for rounds in (0, 9, 10, 100, 200, 1000)]
    assert spent[0] == spent[1] == 0
    assert 0 < spent[2] < spent[3] < spent[4] < spent[5] < spent[4] * (1 + 1e-8)  # but for the rounding of coins
    silent = PrivateDartboardPlan(Experts(4), 1000, 1.0, beta=0.05, p=0.1, budget=0)
    assert silent.account().epsilon(1e-6) == 0


def test_event_is_above_the_account():
    from dp_accounting.pld import PLDAccountant

    plan = PrivateDartboardPlan(Experts(4), 1000, 1.0, beta=0.01, p=0.1, budget=200)
    found = PLDAccountant().compose(plan.dp_event()).get_epsilon(1e-6)
    assert plan.account().epsilon(1e-6) <= found < 2 * plan.account().epsilon(1e-6)


def test_claims_that_do_not_hold_are_refused():
    good = plan_private_dartboard(Experts(3), 1000, 1.0, 1.0, 1e-6)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        PrivateDartboardPlan(
            good.domain, 1000, 1.0, beta=good.beta, p=good.p, batch=good.batch, budget=good.budget + 100, epsilon=1.0,
            delta=1e-6,
        )  # fmt: skip


class Factory:
    """A learner for the audit; `off` multiplies beta behind the plan's back."""

    def __init__(self, plan, off=1.0):
        self.plan, self.off = plan, off

    def __call__(self, rng):
        learner = PrivateDartboard(self.plan, rt.Linear(), rng)
        learner._walk.beta *= self.off
        return learner


def left_the_first(decisions):
    """2 for who leaves the first expert after round 1, down to -2 for who goes to it."""
    return 2 * (decisions[:, 0, 0] - decisions[:, 1, 0])


def test_audit_stays_below_the_account_and_catches_a_broken_learner():
    plan = PrivateDartboardPlan(Experts(2), 2, 1.0, beta=0.7, p=0.2, budget=2)
    stream, neighbour = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])
    options = {"runs": 3000, "delta": 0.01, "score": left_the_first, "jobs": 1, "progress": False}
    found = rt.privacy.audit(plan, rt.Linear(), stream, neighbour, learner=Factory(plan), **options)
    assert 0.3 < found.ratio < 1
    broken = rt.privacy.audit(plan, rt.Linear(), stream, neighbour, learner=Factory(plan, 6.0), **options)
    assert broken.violated
