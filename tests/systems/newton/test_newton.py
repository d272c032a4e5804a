"""The online Newton step: its projection, its gate, and regret far below that of gradient descent."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import reticent as rt
from reticent.systems.newton._kernel import _cholesky, nearest_in_ball, nearest_in_rows
from reticent.systems.newton._newton import NewtonPlan, OnlineNewtonStep, curvature, logistic_exp_concavity, plan_newton

BODIES = [rt.Ball(4, radius=1.5), rt.Box([-1, 0, -0.2, 1], [1, 3, 0.1, 2]), rt.Simplex(5), rt.Interval(-2.0, 1.0)]


def stretched(d, rng, spread=5.0):
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (basis * np.exp(rng.uniform(0, spread, size=d))) @ basis.T


def nearest(A, body, y):
    L, x = np.zeros_like(A), y.copy()
    _cholesky(A, 0.0, L)
    if body.ball:
        nearest_in_ball(A, L, body.radius, x)
    else:
        nearest_in_rows(A, L, body, x)
    return x


@pytest.mark.parametrize("domain", BODIES, ids=str)
def test_the_projection_in_the_norm_of_a_matrix_agrees_with_scipy(domain):
    rng = np.random.default_rng(1)
    body, d = domain.body, domain.chart_dim
    for _ in range(15):
        A, y = stretched(d, rng, 3.0), rng.normal(size=d) * 3 * domain.radius
        x = nearest(A, body, y)
        assert domain.contains(domain.from_chart(x), tol=1e-12)
        if body.ball:
            limits = [{"type": "ineq", "fun": lambda u: body.radius**2 - u @ u, "jac": lambda u: -2 * u}]
        else:
            limits = [{"type": "ineq", "fun": lambda u: body.b - body.A @ u, "jac": lambda u: -body.A}]
        found = minimize(
            lambda u, A=A, y=y: (u - y) @ A @ (u - y),
            np.zeros(d),
            jac=lambda u, A=A, y=y: 2 * A @ (u - y),
            constraints=limits,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert (x - y) @ A @ (x - y) <= found.fun * (1 + 1e-9)
        assert np.abs(x - found.x).max() < 1e-4 * domain.radius


@pytest.mark.parametrize("domain", BODIES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 14.0])
def test_the_projection_satisfies_its_variational_inequality(domain, spread):
    """(u - x)'A(x - y) >= 0 for all u in the body; the least over u is at a point that `support` knows."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        A = stretched(domain.chart_dim, rng, spread)
        y = rng.normal(size=domain.chart_dim) * domain.radius * rng.choice([0.5, 2.0, 100.0])
        x = nearest(A, domain.body, y)
        if np.array_equal(x, y):
            continue
        slope = A @ (x - y)
        if domain.body.ball:
            least = -np.linalg.norm(slope) * domain.radius
        else:
            corners = domain.to_chart(np.array([domain.support(c) for c in _directions(domain, slope)]))
            least = (corners @ slope).min()
        scale = np.abs(A).max() * np.linalg.norm(x - y) * domain.radius
        assert slope @ x <= least + 1e-10 * scale


def _directions(domain, slope):
    """The direction in the user's coordinates that pulls back to `slope`."""
    d = domain.chart_dim
    step = domain.from_chart(np.eye(d)) - domain.from_chart(np.zeros((1, d)))
    return (slope @ step)[None]


def test_points_inside_stay_where_they_are():
    A = stretched(4, np.random.default_rng(0))
    y = np.array([0.1, -0.1, 0.05, 0.2])
    for domain in BODIES[:2]:
        assert np.array_equal(nearest(A, domain.body, y[: domain.chart_dim] * 0.1), y * 0.1)


def logistic_stream(rounds, dim, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, dim))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.where(rng.random(rounds) < 1 / (1 + np.exp(-5 * X[:, 0])), 1.0, -1.0)


def test_regret_is_far_below_that_of_gradient_descent_on_logistic_losses():
    T, ball = 50_000, rt.Ball(3)
    data = logistic_stream(T, 3)
    plan = plan_newton(ball, T, 1.0, math.exp(-1.0))
    mine = float(OnlineNewtonStep(plan, rt.Logistic()).observe_many(*data).regret())
    other = rt.planning.plan_descent(ball, T, 1.0)
    theirs = float(rt.learners.OnlineGradientDescent(other, rt.Logistic()).observe_many(*data).regret())
    assert mine <= plan.regret_bound < 0.3 * other.regret_bound
    assert mine < 0.3 * theirs


def test_regret_is_far_below_that_of_gradient_descent_on_squared_losses():
    T, box = 50_000, rt.Box([-1.0, -1.0], [1.0, 1.0])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(T, 2))
    X *= 0.5 / np.linalg.norm(X, axis=1)[:, None]
    y = X @ [0.5, -0.9] + rng.uniform(-0.2, 0.2, size=T)
    plan = plan_newton(box, T, 1.0, 0.4)
    mine = float(OnlineNewtonStep(plan, rt.Squared()).observe_many(X, y).regret())
    other = rt.planning.plan_descent(box, T, 1.0)
    theirs = float(rt.learners.OnlineGradientDescent(other, rt.Squared()).observe_many(X, y).regret())
    assert mine <= plan.regret_bound < 0.3 * other.regret_bound
    assert mine < 0.5 * theirs


@pytest.mark.parametrize("loss", [rt.Logistic(), rt.Squared()], ids=str)
def test_the_curvature_that_a_plan_counts_on_is_there(loss):
    """l(x) >= l(y) + g.(x-y) + gamma/2 (g.(x-y))^2 on random rows and points, nearly reached by some."""
    rng = np.random.default_rng(0)
    ball, ratios = rt.Ball(2), []
    for _ in range(60):
        a = rng.normal(size=2) * rng.uniform(0.1, 3)
        target = 1.0 if isinstance(loss, rt.Logistic) else rng.normal()
        G = float(loss.lipschitz(ball, a, target)[0])
        size = np.linalg.norm(a)
        alpha = math.exp(-size) if isinstance(loss, rt.Logistic) else (size + abs(target)) ** -2
        gamma = curvature(alpha, G * 2)
        points = rng.normal(size=(30, 2))
        points /= np.linalg.norm(points, axis=1)[:, None]
        points[0], points[1] = a / size, -a / size
        for y in points:
            value, g = loss.values(y, a, target)[0], loss.subgradients(y, a, target)[0]
            for x in points:
                along = g @ (x - y)
                gap = loss.values(x, a, target)[0] - value - along
                assert gap >= gamma / 2 * along**2 - 1e-9
                if abs(along) > 1e-3:
                    ratios.append(gap / (gamma / 2 * along**2))
    assert min(ratios) < 1.6


def test_rows_with_too_little_curvature_are_refused_before_anything_changes():
    plan = plan_newton(rt.Ball(2), 100, 2.0, 0.3)
    learner, clean = OnlineNewtonStep(plan, rt.Logistic()), OnlineNewtonStep(plan, rt.Logistic())
    good = np.array([0.6, 0.8])
    for each in (learner, clean):
        each.observe(good, 1)
    for bad in (
        lambda: learner.observe(1.5 * good, 1),
        lambda: learner.observe_many(np.outer([1, 1.5], good), [1, -1]),
    ):
        with pytest.raises(ValueError, match="exp-concavity"):
            bad()
        assert learner.rounds == 1
        assert np.array_equal(learner.decision, clean.decision)
    with pytest.raises(ValueError, match="row 1 "):
        learner.observe_many(np.outer([1, 1.5], good), [1, -1])
    learner.observe([0.0, 0.0], -1)  # a constant loss is as concave as any
    squared = OnlineNewtonStep(plan_newton(rt.Ball(2), 100, 9.0, 0.25), rt.Squared())
    squared.observe([0.6, 0.8], 0.9)
    with pytest.raises(ValueError, match="exp-concavity"):
        squared.observe([0.6, 0.8], 1.1)


def test_a_plan_that_the_lipschitz_limit_covers_takes_rows_without_the_gate():
    wide = OnlineNewtonStep(plan_newton(rt.Ball(2), 100, 1.0, math.exp(-1.1)), rt.Logistic())
    narrow = OnlineNewtonStep(plan_newton(rt.Ball(2), 100, 1.0, math.exp(-0.9)), rt.Logistic())
    assert wide._inbox.capacity > 0
    assert narrow._inbox.capacity == 0


@pytest.mark.parametrize("loss", [rt.Linear(), rt.Hinge(), rt.Absolute(), rt.Huber(1.0)], ids=str)
def test_losses_without_curvature_are_refused_with_a_hint(loss):
    with pytest.raises(ValueError, match="plan_descent"):
        OnlineNewtonStep(plan_newton(rt.Ball(2), 100, 1.0, 0.3), loss)


def test_the_ridge_of_the_planner_is_the_best_one():
    for T, G, alpha in ((1, 1.0, 0.1), (1000, 0.5, 2.0), (10**6, 3.0, 1e-4)):
        plan = plan_newton(rt.Ball(3, radius=2.0), T, G, alpha)
        for factor in (0.5, 0.9, 1.1, 2.0):
            other = NewtonPlan(plan.domain, T, G, exp_concavity=alpha, ridge=plan.ridge * factor)
            assert other.regret_bound >= plan.regret_bound


def test_the_exp_concavity_of_logistic_rows_follows_from_their_slope():
    for G, body in ((0.3, rt.Ball(2)), (2.0, rt.Box([-1, -2], [1, 2]))):
        alpha = logistic_exp_concavity(body, G)
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(2000, 2)) * rng.uniform(0, 6, size=(2000, 1))
        allowed = rows[rt.Logistic().lipschitz(body, rows, np.ones(2000)) <= G]
        gate = OnlineNewtonStep(plan_newton(body, 5000, G, alpha), rt.Logistic())
        gate.observe_many(allowed, np.ones(len(allowed)))
        assert gate.rounds == len(allowed) > 100
