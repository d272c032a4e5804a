"""What arithmetic does to perturbed leaders, and that accounts charge for it (docs/theory, Q11 and Q12)."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats

import reticent as rt
from reticent.planning import ObjectivePlan, plan_objective
from reticent.systems._grid import SOLVED, on_grid
from reticent.systems._steps import CompiledLoss
from reticent.systems.perturbed._kernel import derivatives, minimise

LINE = rt.Interval(-1.0, 1.0)


def released(lam, total, noise):
    """Return the decision that is released for a sum of gradients and a noise, by the machine."""
    x, H, free = np.zeros(1), np.zeros((1, 1)), np.ones(1, dtype=np.bool_)
    minimise(
        LINE.body, -1, 0.0, lam, np.zeros((1, 1)), np.zeros(1), 0, np.array([total]), np.array([noise]), x, H, free
    )
    return on_grid(LINE, x[None], LINE.grid)[0, 0]


def test_decisions_that_only_one_world_can_release_are_charged_for():
    """Attack: a sum next to a power of two; noise that keeps decisions inside is twice as coarse beyond that."""
    lam, sigma, edge = 2.0**-28, 2000.0, 1024.0
    fine, coarse = math.ulp(edge / 2), math.ulp(edge)
    most = int(lam / fine)
    ours = [(k, released(lam, edge - 1, 1 - edge + k * fine)) for k in range(-most, most + 1)]
    theirs = {released(lam, edge + 1, -1 - edge + k * coarse) for k in range(-most // 2 - 1, most // 2 + 2)}
    alone = sum(x not in theirs and abs(x) < 1 for _, x in ours)
    chance = alone * fine * stats.norm.pdf((edge - 1) / sigma) / sigma
    assert chance > 5e-13  # in one draw, and the account said that delta(1) is 0
    plan = ObjectivePlan(LINE, 4000, 1.0, sigma=sigma, lam=lam, p=1.0, phi=1.0, budget=20, batch=200)
    assert plan.account().delta(1.0) > chance
    # Negative control: noise of the same size where lam is not tiny costs what it did.
    plain = ObjectivePlan(LINE, 4000, 1.0, sigma=sigma, lam=100.0, p=1.0, phi=1.0, budget=20, batch=200)
    assert plain.rounding(4000).distance == 2.0**-21 * math.sqrt(20)
    assert plain.account().delta(1.0) < 1e-12


@pytest.mark.parametrize("smoothness", [0.0, 0.25])
@pytest.mark.parametrize("side", [1.0, 1e-3, 1e-6, 1e-11])
def test_planners_keep_the_last_bits_of_noise_within_a_twentieth_of_mu(side, smoothness):
    plan = plan_objective(rt.Box([-1.0, -side], [1.0, side]), 10**4, 1.0, 1.0, 1e-6, smoothness=smoothness)
    assert plan.account().epsilon(1e-6) <= 1.0
    mu = plan.draw * math.sqrt(plan.max_switches)
    assert 2 * plan.rounding(10**4).distance <= 0.06 * mu
    # Without a larger lam the noise of narrow sides would have hardly a floating-point number in a cell.
    steps = plan.sigma / (plan.lam * float(plan.domain.grid.min()))
    assert steps < 2.0**40


def exact_minimiser(rows, Z, lam, start):
    """Return the minimiser of logistic losses of these rows, inside of the body, in 50 digits."""
    x = [mpmath.mpf(v) for v in start]
    for _ in range(6):
        g = [mpmath.mpf(z) + lam * v for z, v in zip(Z, x, strict=True)]
        H = mpmath.matrix([[lam, 0], [0, lam]])
        for a in rows:
            s = -1 / (1 + mpmath.exp(a[0] * x[0] + a[1] * x[1]))
            for j in range(2):
                g[j] += s * a[j]
                for k in range(2):
                    H[j, k] -= s * (1 + s) * a[j] * a[k]
        step = mpmath.lu_solve(H, mpmath.matrix(g))
        x = [v - s for v, s in zip(x, step, strict=True)]
    return x


@pytest.mark.parametrize("side", [1.0, 1e-2, 1e-4])
def test_minimisers_are_as_near_as_assumed_on_narrow_sides_too(side):
    # Newton's method stopped at 1e-12 of the radius, without its last step: up to 0.0002 steps of the grid of a side of
    # 1e-4, where a millionth is what is allowed for.
    rng, reader = np.random.default_rng(1), CompiledLoss(rt.Logistic())
    domain, lam, worst, seen = rt.Box([-1.0, -side], [1.0, side]), 3.0, 0.0, 0
    with mpmath.workdps(50):
        while seen < 25:
            rows = rng.standard_normal((50, 2))
            rows = np.ascontiguousarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None])
            g, H = np.zeros(2), np.zeros((2, 2))
            fixed = (reader.code, reader.parameter, lam, rows, np.zeros(50), 50, np.zeros(2))
            inside = rng.uniform(-0.9, 0.9, 2) * [1.0, side]
            derivatives(*fixed, np.zeros(2), inside, g, H, np.empty(2))
            Z = -g  # so that the minimiser is there
            x, free = rng.uniform(-0.9, 0.9, 2) * [1.0, side], np.ones(2, dtype=np.bool_)
            minimise(domain.body, *fixed, Z, x, H, free)
            off = [float(abs(a - b)) for a, b in zip(x, exact_minimiser(rows, Z, lam, x), strict=True)]
            worst = max(worst, float(np.max(off / domain.grid)))
            seen += 1
    steps = float(np.linalg.norm(Z)) / (lam * float(domain.grid.min()))
    rough = max(1.0, 2 * 2.0**-25 / SOLVED * steps / 2.0**22)
    assert 4 * 1.26 * worst <= SOLVED * rough


@pytest.mark.parametrize("side", [1e-5, 1e-7, 1e-9])
def test_good_minimisers_on_narrow_sides_are_no_errors(side):
    # With slopes of the point before the last step, and a bound below what rounding makes of them, 10 to 97 of 100
    # runs stopped, as the data and the path had it.
    rng, reader = np.random.default_rng(1), CompiledLoss(rt.Logistic())
    domain, lam = rt.Box([-1.0, -side], [1.0, side]), 0.01
    for _ in range(40):
        rows = rng.standard_normal((200, 2))
        rows = np.ascontiguousarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None])
        g, H = np.zeros(2), np.zeros((2, 2))
        fixed = (reader.code, reader.parameter, lam, rows, np.zeros(200), 200, np.zeros(2))
        derivatives(*fixed, np.zeros(2), rng.uniform(-0.9, 0.9, 2) * [1.0, side], g, H, np.empty(2))
        x, free = rng.uniform(-0.9, 0.9, 2) * [1.0, side], np.ones(2, dtype=np.bool_)
        minimise(domain.body, *fixed, -g, x, H, free)
        assert domain.contains(x)


def test_sums_that_cancel_are_charged_as_noise_of_their_size_is():
    plan = ObjectivePlan(
        rt.Box([-1.0, -1e-3], [1.0, 1e-3]), 10**9, 1.0, sigma=1e3, lam=1e5, p=1.0, phi=1.0, budget=100, batch=10**7,
        smoothness=1.0,
    )  # fmt: skip
    assert plan.rounding(plan.horizon).distance > 100 * SOLVED * math.sqrt(2 * 100)
    alike = replace(plan, horizon=10**5, batch=10**3)
    assert alike.rounding(alike.horizon).distance == SOLVED * math.sqrt(2 * 100)


def test_more_switches_promise_no_less_where_one_draw_is_best():
    goal = rt.Box([-1.0, -1e-9], [1.0, 1e-9]), 10**4, 1.0, 1.0, 1e-6
    for smoothness in (0.0, 0.25):
        found = [plan_objective(*goal, smoothness=smoothness, max_switches=S).regret_bound for S in (1, 2, 3, 10)]
        assert max(found) <= found[0] * (1 + 1e-3)


def test_sums_of_gradients_are_right_to_what_is_charged():
    # Slopes are 1 or -1: a plain sum that hovers about a power of two loses small rows on one side of it only.
    size, reader = 2.0**18, CompiledLoss(rt.Huber())
    least = math.ulp(size) / 16
    lead, around = np.ones(int(size)), np.empty(8 * int(size))
    around[0::2], around[1::2] = 0.5, -(0.5 + 7 * least)
    found, plain = [], []
    for first in (-1.0, 1.0):
        rows = np.concatenate([[first], lead, around])
        g = np.zeros(1)
        fixed = (np.zeros(1), np.zeros(1), np.zeros(1), g, np.zeros((1, 1)), np.empty(1))
        derivatives(reader.code, reader.parameter, 1.0, rows[:, None], np.full(rows.size, 10.0), rows.size, *fixed)
        found.append(g[0])
        plain.append(np.cumsum(rows)[-1])
    charged = 2.0**-43 * (9 * size + 1)
    assert abs((found[1] - found[0]) / 2 - 1) <= charged
    assert abs((plain[1] - plain[0]) / 2 - 1) > 10 * charged  # the control: what was done before
