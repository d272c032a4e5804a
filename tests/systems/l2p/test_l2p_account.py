"""R6: transcripts of lazy-to-private and of flat weights on a grid, every adaptive adversary, below their accounts."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from reticent.domains import Interval
from reticent.privacy import SystemAccount
from reticent.privacy._account import gaussian
from reticent.systems.l2p._flat import FlatPlan
from reticent.systems.l2p._l2p import LazyToPrivatePlan

ALPHAS = (1.0, 1.2, 1.7)


class Game:
    """Both worlds on a fine grid of an interval; decision, point y and alpha are arrays over the states reached."""

    def __init__(self, plan, points):
        self.plan, self.n = plan, points
        R = plan.domain.radius
        self.x = R * ((np.arange(points) + 0.5) / points * 2 - 1)
        self.lam = getattr(plan, "lam", 0.0)
        self.refresh = getattr(plan, "refresh", 0.0)
        self.losses = [self.x, -self.x, np.abs(self.x - R / 3)]

    def law(self, total):
        w = np.exp(-self.plan.beta * (total + self.lam * self.x**2 / 2))
        return w / w.sum()

    def keep(self, loss, x, y):
        plan = self.plan
        if isinstance(plan, FlatPlan):
            return (1 - plan.p) * np.exp(-plan.beta * (loss[x] - loss.min()))
        # The centre is no point of the grid; all losses but the last are 0 there.
        other = loss[y] if plan.anchor == "drawn" else np.interp(0.0, self.x, loss)
        return (1 - plan.p) * np.exp(plan.beta * (other - loss[x]) - plan.log_phi)

    def step(self, x, y, alpha, ones, worlds, left, budget, renewals):
        """A coin and perhaps a draw of x, then perhaps one of y: the hockey stick from each state."""
        mu, nu = (self.law(total) for total in worlds)
        c, d = (self.keep(loss, x, y) for loss in ones)
        r = self.refresh if renewals else 0.0
        value = np.zeros(len(x))
        for x_drawn, y_drawn in itertools.product((False, True), (False, True)):
            if y_drawn and r == 0.0:
                continue
            one, two = (1 - c, 1 - d) if x_drawn else (c, d)
            one, two = (one * (r if y_drawn else 1 - r), two * (r if y_drawn else 1 - r))
            shape = (len(x), self.n if x_drawn else 1, self.n if y_drawn else 1)
            P, Q = (np.broadcast_to(part[:, None, None], shape).copy() for part in (one, two))
            points = np.arange(self.n)
            X, Y = (np.broadcast_to(part[:, None, None], shape) for part in (x, y))
            if x_drawn:
                P, Q, X = P * mu[:, None], Q * nu[:, None], np.broadcast_to(points[:, None], shape)
            if y_drawn:
                P, Q, Y = P * mu, Q * nu, np.broadcast_to(points, shape)
            level = alpha[:, None, None] * Q / np.maximum(P, 1e-300)
            rest = self.play(
                X.ravel(), Y.ravel(), level.ravel(), worlds, left - 1, budget - x_drawn, renewals - y_drawn
            )
            value += (P * rest.reshape(shape)).sum(axis=(1, 2))
        return value

    def play(self, x, y, alpha, worlds, left, budget, renewals):
        if left == 0 or budget == 0:
            return np.maximum(1 - alpha, 0.0)
        best = np.zeros(len(x))
        for loss in self.losses:
            moved = [total + loss for total in worlds]
            best = np.maximum(best, self.step(x, y, alpha, (loss, loss), moved, left, budget, renewals))
        return best

    def worst(self, alpha, starts):
        """The largest hockey stick over prefixes (x, y), pairs of losses and what follows."""
        plan, best = self.plan, 0.0
        zero = 0 * self.x
        pairs = itertools.permutations(self.losses, 2)
        if plan.neighbors == "zero-out":
            pairs = (way for loss in self.losses for way in ((loss, zero), (zero, loss)))
        x, y = (np.array(part) for part in zip(*starts, strict=True))
        for one, two in pairs:
            levels = np.full(len(x), alpha)
            renewals = getattr(plan, "refreshes", 0)
            value = self.step(x, y, levels, (one, two), [one, two], plan.horizon, plan.budget, renewals)
            best = max(best, float(value.max()))
        return best


LINE = Interval(-1.0, 1.0)
CASES = {
    "centre": (LazyToPrivatePlan(LINE, 2, 1.0, beta=0.6, lam=12.0, p=0.1, budget=2, anchor="centre"), 60),
    "centre-three": (LazyToPrivatePlan(LINE, 3, 1.0, beta=0.6, lam=6.0, p=0.1, budget=2, anchor="centre"), 60),
    "drawn": (LazyToPrivatePlan(LINE, 2, 1.0, beta=0.3, lam=6.0, p=0.1, budget=2), 60),
    "renewed": (
        LazyToPrivatePlan(LINE, 2, 1.0, beta=0.4, lam=8.0, p=0.2, budget=2, refresh=0.3, refreshes=2),
        18,
    ),
    "flat": (FlatPlan(LINE, 2, 1.0, beta=0.3, p=0.1, budget=2), 60),
    "flat-three": (FlatPlan(LINE, 3, 1.0, beta=0.2, p=0.05, budget=2), 60),
}


def corners(points):
    return [(0, 0), (0, points - 1), (points - 1, 0), (points // 3, points // 2)]


@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
@pytest.mark.parametrize("name", CASES)
def test_transcripts_stay_below_the_account(name, neighbors):
    plan, points = CASES[name]
    plan = dataclasses.replace(plan, neighbors=neighbors)
    account, game, worst = plan.account(), Game(plan, points), 0.0
    for alpha in ALPHAS:
        bound = account.delta(math.log(alpha))
        truth = game.worst(alpha, corners(points))
        assert truth <= bound + 1e-9
        worst = max(worst, truth / max(bound, 1e-6))
    assert worst > 0.25  # the account is not empty


def test_a_special_coin_left_out_is_caught():
    plan = LazyToPrivatePlan(LINE, 2, 1.0, beta=1.0, lam=60.0, p=0.02, budget=2, anchor="centre")
    truth = Game(plan, 60).worst(2.0, corners(60))
    without = SystemAccount(2, "replace", (gaussian(plan.shift * math.sqrt(2)),))
    assert without.delta(math.log(2.0)) + 0.02 < truth <= plan.account().delta(math.log(2.0))


def test_a_draw_too_few_is_caught():
    plan = LazyToPrivatePlan(Interval(-9.0, 9.0), 2, 1.0, beta=0.5, lam=1.0, p=1.0, budget=2, anchor="centre")
    truth = Game(plan, 150).worst(1.5, [(0, 0)])
    one = dataclasses.replace(plan, budget=1).account().delta(math.log(1.5))
    assert one + 0.1 < truth <= plan.account().delta(math.log(1.5)) + 2e-3


def test_a_flat_draw_of_a_quarter_of_its_range_is_caught():
    plan = FlatPlan(LINE, 2, 1.0, beta=0.5, p=1.0, budget=2)
    truth = Game(plan, 150).worst(1.2, [(0, 0)])
    quarter = dataclasses.replace(plan, beta=0.125).account().delta(math.log(1.2))
    assert quarter + 0.1 < truth <= plan.account().delta(math.log(1.2))


def test_half_of_eta_is_caught():
    """The special coin reaches the whole of beta Delta R: x at one end, where the two losses are opposite."""
    plan = LazyToPrivatePlan(LINE, 1, 1.0, beta=1.0, lam=1e6, p=0.05, budget=1, anchor="centre")
    truth = Game(plan, 400).worst(1.0, [(0, 0), (399, 0)])
    half = SystemAccount(1, "replace", dataclasses.replace(plan, neighbors="zero-out", beta=1.0).statements(1))
    assert half.delta(0.0) + 0.05 < truth <= plan.account().delta(0.0)


def test_accounts_grow_with_rounds_and_vanish_without_a_switch():
    plan = LazyToPrivatePlan(LINE, 100, 1.0, beta=0.05, lam=50.0, p=0.2, budget=30, batch=4, refresh=0.2, refreshes=5)
    epsilons = [plan.account(rounds).epsilon(1e-5) for rounds in (0, 3, 4, 40, 100)]
    assert epsilons[0] == epsilons[1] == 0.0
    assert epsilons == sorted(epsilons)
    assert dataclasses.replace(plan, budget=0).account().epsilon(1e-9) == 0.0
    more = dataclasses.replace(plan, refreshes=20)
    assert more.account().epsilon(1e-5) > plan.account().epsilon(1e-5)
