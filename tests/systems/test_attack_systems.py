"""Attacks on lazy-to-private, flat weights, Newton steps and the systems for experts, kept as tests."""

import itertools
import math

import numpy as np
import pytest

import reticent as rt
from reticent.planning import plan_flat, plan_newton
from reticent.systems.experts._dartboard import PrivateDartboardPlan
from reticent.systems.l2p._flat import FlatPlan, flat_first
from reticent.systems.l2p._l2p import LazyToPrivatePlan
from reticent.systems.newton._newton import NewtonPlan

LINE = rt.Interval(-1.0, 1.0)
L2P = LazyToPrivatePlan(LINE, 400, 1.0, beta=0.3, lam=5.0, p=0.0, budget=400, batch=4, anchor="centre")
FLAT = FlatPlan(LINE, 400, 1.0, beta=0.3, p=0.0, budget=400, batch=4)
PCOMW = rt.Plan(LINE, 400, 1.0, beta=0.3, lam=5.0, p=0.0, phi=1.5, batch=4, distance=0.0)


@pytest.mark.parametrize("plan", [L2P, FLAT, PCOMW], ids=["l2p", "flat", "pcomw"])
def test_what_the_caller_does_to_a_block_later_does_not_matter(plan):
    """A block that ends one coin's batch and begins another's must leave copies, also if rounds were waiting before."""
    rng = np.random.default_rng(0)
    data, targets = rng.uniform(-1, 1, (60, 1)), rng.uniform(-1, 1, 60)
    for seed in range(12):
        one, two = (rt.make(plan, rt.Absolute(), seed=seed) for _ in range(2))
        for i in range(0, 60, 5):
            block, ends = data[i : i + 5].copy(), targets[i : i + 5].copy()
            one.observe_many(data[i : i + 5], targets[i : i + 5])
            two.observe_many(block, ends)
            block[:], ends[:] = 0.0, 0.0  # the caller reads the next block into the same memory
            assert np.array_equal(one.decision, two.decision)


@pytest.mark.parametrize(
    "plan",
    [
        LazyToPrivatePlan(LINE, 10, 1.0, beta=0.3, lam=5.0, p=1.0, budget=1000, anchor="centre"),
        FlatPlan(LINE, 10, 1.0, beta=0.3, p=1.0, budget=1000),
        PrivateDartboardPlan(rt.Experts(2), 10, 1.0, beta=0.3, p=1.0),
    ],
    ids=["l2p", "flat", "dartboard"],
)
def test_spent_is_not_that_of_the_horizon_beyond_it(plan):
    """Without a claim a learner goes on; then what it has spent is more than the account of the horizon, or refused."""
    learner = rt.make(plan, rt.Linear(), seed=1)
    learner.observe_many(np.tile([0.6] if plan.domain.dim == 1 else [0.6, 0.0], (10, 1)))
    at_horizon = learner.spent(1e-6)
    learner.observe_many(np.tile([0.6] if plan.domain.dim == 1 else [0.6, 0.0], (200, 1)))
    try:
        spent = learner.spent(1e-6)
    except ValueError:
        return
    assert spent > 2 * at_horizon  # 210 draws


@pytest.mark.parametrize("beta", [1e-12, 1e-17, 1e-20, 1e-30, 1e-200])
def test_flat_first_term_for_a_tiny_beta(beta):
    """It tends to G T R, what the uniform law loses to an end of the interval; it cannot be less than half of that."""
    exact = 1000.0 * (1 - 2 * beta * 1000.0 / 12)
    assert flat_first(LINE, beta, 1000.0) >= exact * (1 - 1e-9)
    assert FlatPlan(LINE, 1000, 1.0, beta=beta, p=0.0, budget=0).regret_bound >= exact * (1 - 1e-9)


@pytest.mark.parametrize("horizon", [10**5, 10**7])
def test_a_planned_flat_draw_that_is_kept_has_a_true_certificate(horizon):
    """Losses x in every round: one draw, uniform but for a share of 1e-13, loses G T R to the point -1."""
    plan = plan_flat(LINE, horizon, 1.0, 1e-3, 1e-9, max_switches=0)
    assert plan.budget == 0
    assert plan.regret_bound >= horizon * (1 - 1e-9)


@pytest.mark.parametrize("ridge", [1e-16, 1e-20, 1e-100])
@pytest.mark.parametrize("domain", [rt.Ball(3), rt.Box([-1.0] * 3, [1.0] * 3)], ids=["ball", "box"])
def test_newton_with_a_tiny_ridge_plays_points_of_the_domain(domain, ridge):
    try:
        plan = NewtonPlan(domain, 50, 1.0, exp_concavity=0.05, ridge=ridge)
    except ValueError:
        return  # refusing such a plan is as good
    learner = rt.make(plan, rt.Logistic())
    rng = np.random.default_rng(1)
    a = rng.normal(size=(50, 3))
    trace = learner.observe_many(0.9 * a / np.linalg.norm(a, axis=1)[:, None], np.where(rng.random(50) < 0.5, 1, -1))
    assert domain.contains(learner.decision)
    assert float(trace.regret()) <= plan.regret_bound


@pytest.mark.parametrize("alpha", [1e-160, 1e-300])
def test_newton_plans_of_hardly_any_curvature_are_descent(alpha):
    """As alpha tends to 0 the best bound tends to G R sqrt(T); OverflowError is no answer."""
    assert plan_newton(rt.Ball(3), 1000, 1.0, alpha).regret_bound == pytest.approx(math.sqrt(1000))
    assert rt.compare_plans(rt.Ball(3), 1000, 1.0, rt.Squared(), exp_concavity=alpha).offers


@pytest.mark.parametrize(
    ("domain", "horizon", "loss", "goal"),
    [
        (rt.Ball(2, radius=1e6), 1000, rt.Logistic(), {"epsilon": 1e-9, "delta": 1e-15, "adversary": "oblivious"}),
        (rt.Simplex(3), 10, rt.Hinge(), {"epsilon": 1e-9, "delta": 0.5}),
        (rt.Experts(3), 10, rt.Linear(), {"epsilon": 1e-9, "delta": 1e-12}),
        (rt.Experts(3), 10, rt.Logistic(), {"epsilon": 1.0, "delta": 1e-6}),
        (rt.Experts(2), 1, rt.Linear(), {"max_switches": 0}),
    ],
)
def test_one_system_that_cannot_does_not_end_the_comparison(domain, horizon, loss, goal):
    found = rt.compare_plans(domain, horizon, 1.0, loss, **goal)
    assert len(found.offers) + len(found.refusals) > 5
    assert all(math.isfinite(offer.regret_bound) for offer in found.offers)


class Game:
    """The adaptive game on a finite set, solved exactly: draws from weights, coins exp(-beta (L(x) - m)), batches."""

    def __init__(self, plan, losses, lows):
        self.plan, self.n = plan, len(losses[0])
        self.rounds = list(zip(losses, lows, strict=True))

    def law(self, total):
        w = np.exp(-self.plan.beta * (total - total.min()))
        return w / w.sum()

    def step(self, x, alpha, batches, totals, left, budget):
        p, beta = self.plan.p, self.plan.beta
        c, d = ((1 - p) * math.exp(-beta * (loss[x] - low)) for loss, low in batches)
        totals = [total + loss for total, (loss, _) in zip(totals, batches, strict=True)]
        value = c * self.play(x, alpha * d / c, totals, left - 1, budget) if c > 0 else 0.0
        P, Q = (1 - c) * self.law(totals[0]), (1 - d) * self.law(totals[1])
        for j in np.flatnonzero(P > 0):
            value += P[j] * self.play(j, alpha * Q[j] / P[j], totals, left - 1, budget - 1)
        return value

    def play(self, x, alpha, totals, left, budget):
        if left == 0 or budget == 0:
            return max(0.0, 1 - alpha)
        b = self.plan.batch
        same = [(b * loss, b * low) for loss, low in self.rounds]
        return max(self.step(x, alpha, (one, one), totals, left, budget) for one in same)

    def worst(self, alpha):
        plan, b, zero = self.plan, self.plan.batch, (np.zeros(self.n), 0.0)
        pairs = list(itertools.permutations(self.rounds, 2))
        if plan.neighbors == "zero-out":
            pairs = [way for one in self.rounds for way in ((one, zero), (zero, one))]
        others = self.rounds if b > 1 else [zero]
        best = 0.0
        for x, other, pair in itertools.product(range(self.n), others, pairs):
            batches = [((b - 1) * other[0] + one[0], (b - 1) * other[1] + one[1]) for one in pair]
            totals = [np.zeros(self.n)] * 2
            best = max(best, self.step(x, alpha, batches, totals, plan.coins, plan.budget))
        return best


@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
@pytest.mark.parametrize(("p", "beta"), [(0.0, 0.3), (0.05, 0.1), (0.3, 3.0), (1.0, 0.7)])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", ["experts", "flat"])
def test_extreme_plans_in_batches_stay_below_their_account(kind, batch, p, beta, neighbors):
    """Two coins and a short last batch; the changed round anywhere in its batch; bounds m that are not the minimum."""
    horizon = 2 * batch + batch - 1
    if kind == "experts":
        plan = PrivateDartboardPlan(
            rt.Experts(2), horizon, 1.0, beta=beta, p=p, batch=batch, budget=2, neighbors=neighbors
        )
        losses, lows = [np.array(v) for v in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.5), (0.0, 0.0))], [0.0] * 4
    else:
        plan = FlatPlan(LINE, horizon, 1.0, beta=beta, p=p, batch=batch, budget=2, neighbors=neighbors)
        x = np.array([-1.0, 1.0])
        losses, lows = [x, -x, np.ones(2), 0 * x], [-1.0, -1.0, 0.0, 0.0]
    game, account, closest = Game(plan, losses, lows), plan.account(), 0.0
    for alpha in (1.0, 1.5, 4.0):
        bound, truth = account.delta(math.log(alpha)), game.worst(alpha)
        assert truth <= bound + 1e-9
        closest = max(closest, truth / max(bound, 1e-9))
    assert closest > 0.2
    assert plan.account(0).delta(0.0) == plan.account(batch - 1).delta(0.0) == 0.0


@pytest.mark.parametrize("domain", [rt.Ball(2), rt.Box([-1.0, -0.2], [0.3, 1.0]), rt.Simplex(3)], ids=repr)
@pytest.mark.parametrize("mode", ["collinear", "zeros", "nearly"])
def test_newton_against_losses_that_react(domain, mode):
    """Each label is the one the decision gets wrong; one at a time and in a block the decisions are the same."""
    rng, dim = np.random.default_rng(5), domain.dim
    reach = domain.radius + float(np.linalg.norm(domain.center))
    plan = plan_newton(domain, 60, 1.0, math.exp(-reach))
    learner, rows, labels = rt.make(plan, rt.Logistic()), [], []
    base = rng.normal(size=dim)
    for t in range(60):
        v = base + (1e-7 * rng.normal(size=dim) if mode == "nearly" else 0.0)
        v = np.zeros(dim) if mode == "zeros" and t % 2 else v / np.linalg.norm(v)
        rows.append(v)
        labels.append(1.0 if v @ learner.decision < 0 else -1.0)
        learner.observe(v, labels[-1])
    other = rt.make(plan, rt.Logistic())
    trace = other.observe_many(np.array(rows), np.array(labels))
    assert np.array_equal(other.decision, learner.decision)
    assert float(trace.regret()) <= plan.regret_bound
