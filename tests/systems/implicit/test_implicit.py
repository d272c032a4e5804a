"""Private implicit descent and the approximate leader: sensitivity, proximal steps, noise, regret, refusals."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import reticent as rt
from reticent.systems._nearest import nearest
from reticent.systems._steps import LINEAR, CompiledLoss
from reticent.systems.approximate_leader._approximate_leader import (
    ApproximateLeader,
    ApproximateLeaderPlan,
    plan_approximate_leader,
)
from reticent.systems.approximate_leader._kernel import follow
from reticent.systems.implicit._implicit import ImplicitPlan, PrivateImplicitDescent, plan_implicit
from reticent.systems.implicit._kernel import prox

LOSSES = [rt.Linear(), rt.Absolute(), rt.Pinball(0.3), rt.Hinge(0.5), rt.Huber(0.4), rt.Logistic(), rt.Squared()]
BODIES = [
    rt.Ball(3),
    rt.Box([-1, -2], [1, 2]),
    rt.Interval(-1.0, 1.0),
    rt.Simplex(4),
    rt.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]),
]


def rounds(loss, domain, count, rng, scale=1.0):
    """Random rows, no steeper than 1."""
    rows = rng.normal(size=(count, domain.dim))
    rows *= (scale * rng.random(count) ** 0.2 / np.linalg.norm(rows, axis=1))[:, None]
    if isinstance(loss, rt.Linear):
        return (rows,)
    if isinstance(loss, rt.Squared):  # slope |a| (|a| |x| + |y|), for points no further than 3
        return rows / 2.5, rng.uniform(-1, 1, size=count)
    return rows, rng.choice([-1.0, 1.0], size=count) if "margin" in str(loss) or "Log" in str(loss) else rng.uniform(
        -0.5, 0.5, size=count
    )


def decisions(learner_type, plan, loss, data, seed=0):
    """The decisions of all rounds and the one after them, in the chart."""
    trace = learner_type(plan, loss, seed=seed).observe_many(*data)
    return plan.domain.to_chart(np.vstack([trace.decisions(), trace.final]))


def test_proximal_points_are_least():
    """A strongly convex function exceeds its least value by half the squared distance at least."""
    rng = np.random.default_rng(0)
    for domain in BODIES:
        d = domain.chart_dim
        others, z, out = np.empty((50, d)), np.empty(d), np.empty(d)
        for loss in LOSSES:
            reader = CompiledLoss(loss)
            for k in range(16):
                a, c, kappa = rng.normal(size=(1, d)), rng.normal(size=1) / 2, float(np.exp(2 * rng.normal()))
                nearest(domain.body, rng.normal(size=d) * (0.3 if k % 2 else 2), z)
                prox(domain.body, reader.code, reader.parameter, a, c - reader.kink, 0, kappa, z, np.empty(d), out)

                def cost(x, z=z, a=a, c=c, kappa=kappa, loss=loss):
                    m = x @ a[0] + c
                    return 0.5 * ((x - z) ** 2).sum(axis=-1) + kappa * (m if loss == rt.Linear() else loss.phi(m))

                for y in others:
                    far = 2 if rng.random() < 0.5 else 10.0 ** rng.uniform(-6, 0)
                    nearest(domain.body, out + far * rng.normal(size=d), y)
                excess = cost(others) - cost(out) - 0.5 * ((others - out) ** 2).sum(axis=1)
                assert excess.min() >= -1e-12 * (1 + kappa)


@pytest.mark.parametrize("loss", [rt.Squared(), rt.Logistic(), rt.Huber(0.4)], ids=repr)
def test_proximal_points_are_those_of_a_general_solver(loss):
    rng, out, reader = np.random.default_rng(1), np.empty(2), CompiledLoss(loss)
    ball = rt.Ball(2)
    for _ in range(10):
        a, c, kappa = rng.normal(size=(1, 2)), rng.normal(size=1), float(np.exp(rng.normal()))
        z = ball.project(rng.normal(size=2))
        prox(ball.body, reader.code, reader.parameter, a, c, 0, kappa, z, np.empty(2), out)
        found = minimize(
            lambda x, z=z, a=a, c=c, kappa=kappa: 0.5 * ((x - z) ** 2).sum() + kappa * float(loss.phi(x @ a[0] + c)[0]),
            0.5 * z,
            constraints={"type": "ineq", "fun": lambda x: 1 - x @ x},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert np.abs(found.x - out).max() <= 2e-6


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_hidden_iterates_of_neighbours_are_as_close_as_proved(loss, neighbors):
    rng, T = np.random.default_rng(2), 60
    for domain in BODIES:
        for alpha in (0.05, 0.5, 3.0):
            # Without noise the decisions are the hidden iterates.
            plan = ImplicitPlan(domain, T, 1.0, alpha=alpha, noise=0.0, neighbors=neighbors)
            for s in rng.integers(0, T, size=3):
                data = rounds(loss, domain, T, rng)
                other = tuple(part.copy() for part in data)
                for part, fresh in zip(other, rounds(loss, domain, 1, rng), strict=True):
                    part[s] = fresh[0]
                if neighbors == "zero-out":
                    other[0][s] = 0.0
                w, v = (decisions(PrivateImplicitDescent, plan, loss, rows) for rows in (data, other))
                apart = np.linalg.norm(w - v, axis=1)
                assert (apart[: s + 1] == 0).all()
                assert (apart <= plan.change / (alpha * np.arange(1, T + 2)) * (1 + 1e-9) + 1e-12).all()


def test_the_bound_on_neighbours_is_attained_by_linear_losses():
    T, alpha = 60, 2.0
    plan = ImplicitPlan(rt.Ball(2), T, 1.0, alpha=alpha, noise=0.0)
    for s in (0, 7, 40):
        data = np.zeros((T, 2))
        data[s] = [0.6, 0.8]
        w, v = (decisions(PrivateImplicitDescent, plan, rt.Linear(), (rows,)) for rows in (data, -data))
        apart = np.linalg.norm(w - v, axis=1)[s + 1 :]
        assert np.allclose(apart, 2 / (alpha * np.arange(s + 2, T + 2)), rtol=1e-12)


def test_released_decisions_are_iterates_with_the_noise_of_the_plan():
    """A chi-square test of each third of the run, at 1e-6; noise that is wrong by 5 percent fails it."""
    T, loss, domain = 6000, rt.Absolute(), rt.Ball(10, radius=100.0)  # so wide that nothing is projected
    rng = np.random.default_rng(3)
    plan = ImplicitPlan(domain, T, 1.0, alpha=1.0, noise=2.0)
    data = rounds(loss, domain, T, rng)
    hidden = ImplicitPlan(domain, T, 1.0, alpha=1.0, noise=0.0)
    noisy = decisions(PrivateImplicitDescent, plan, loss, data, seed=5)
    assert (noisy[0] == 0).all()
    noise = (noisy - decisions(PrivateImplicitDescent, hidden, loss, data))[1:]  # the hidden iterate never sees it
    scaled = noise / np.array([plan.deviation(t) for t in range(2, T + 2)])[:, None]
    low, high = stats.chi2.ppf([1e-6 / 2, 1 - 1e-6 / 2], scaled.size // 3)
    for third in np.array_split(scaled, 3):
        square = (third**2).sum()
        assert low < square < high
        assert not low < square * 1.05**2 < high
        assert not low < square * 0.95**2 < high
    # Fresh in every round: products of neighbours have mean 0.
    assert abs((scaled[1:] * scaled[:-1]).sum()) < 5 * math.sqrt(scaled.size)


def nodes(T):
    """Row t - 1 has ones for the nodes that rounds 1..t consist of; the node that ends at t is column t - 1."""
    B = np.zeros((T, T))
    for t in range(1, T + 1):
        rest = t
        while rest:
            B[t - 1, rest - 1] = 1.0
            rest &= rest - 1
    return B


@pytest.mark.parametrize("T", [1, 2, 3, 7, 8, 13, 16])
def test_the_noise_of_the_tree_and_what_its_exact_covariance_reveals(T):
    d, sigma, H = 3, 2.0, 4.0
    body = rt.Ball(d, radius=1e9).body
    after, rng = np.empty((T, d)), np.random.default_rng(9)
    rows, state = np.zeros((T, d)), (np.zeros((2, d)), np.zeros((2, d)), np.zeros((64, d)), np.zeros(d))
    follow(rng, body, LINEAR, 0.0, rows, np.zeros(T), 0.0, H, sigma, 0, *state, after)
    noise = -after * H * np.arange(1, T + 1)[:, None]
    B = nodes(T)
    fresh = sigma * np.random.default_rng(9).standard_normal((T, d))
    assert np.allclose(noise, B @ fresh)
    # A change of round s shifts the sums from s on; the exact mu is its length in the metric of the covariance.
    inverse = np.linalg.inv(sigma**2 * B @ B.T)
    plan = ApproximateLeaderPlan(rt.Ball(d), T, 1.0, added=H, noise=sigma)
    shifts = [2.0 * (np.arange(1, T + 1) >= s) for s in range(1, T + 1)]
    exact = max(math.sqrt(shift @ inverse @ shift) for shift in shifts)
    assert exact == pytest.approx(plan.mu(T), rel=1e-9)


def test_gradients_and_decisions_enter_as_written():
    """Against a plain loop: the least of the lower bounds, strongly convex part and added part apart."""
    T, h, a = 50, 0.3, 0.2
    domain = rt.Ball(2)
    rng = np.random.default_rng(4)
    points = [domain.project(rng.normal(size=2)) for _ in range(T)]
    plan = ApproximateLeaderPlan(domain, T, 1.0, added=a, noise=0.0, strong_convexity=h)
    near = rt.Custom(lambda x, c: 0.15 * float(((x - c) ** 2).sum()), lambda x, c: 0.3 * (x - c), lipschitz=0.6)
    found = decisions(ApproximateLeader, plan, near, (points,))
    x, gradients, past = np.zeros(2), np.zeros(2), np.zeros(2)
    for t, c in enumerate(points, 1):
        assert np.allclose(found[t - 1], x, atol=1e-12)
        gradients, past = gradients + 0.3 * (x - c), past + x
        x = domain.project((h * past - gradients) / ((h + a) * t))


def hard_streams(T, dim, size):
    """Linear losses: steady, alternating, in two phases, at random; and gentle ones.

    A steady slope of size/2 holds a regulariser of this size at half the radius of the unit ball, for good: regret is
    size T/4, where the bound has size T/2 for the regulariser.
    """
    rng = np.random.default_rng(6)
    e = np.zeros(dim)
    e[0] = 1.0
    t = np.arange(T)
    yield np.tile(e, (T, 1))
    yield np.tile(min(size / 2, 1.0) * e, (T, 1))
    yield np.where(t % 2, 1.0, -1.0)[:, None] * e
    yield np.where(t < T / 3, 1.0, -1.0)[:, None] * e
    rows = rng.normal(size=(T, dim))
    yield rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize("size", [0.02, 0.1, 0.5, 2.0])
def test_regret_without_noise_is_below_the_bound_on_every_path(size):
    T, domain = 400, rt.Ball(2)
    implicit = ImplicitPlan(domain, T, 1.0, alpha=size, noise=0.0)
    leader = ApproximateLeaderPlan(domain, T, 1.0, added=size, noise=0.0)
    for learner, plan in ((PrivateImplicitDescent, implicit), (ApproximateLeader, leader)):
        ratios = [
            float(learner(plan, rt.Linear()).observe_many(rows).regret()) / plan.regret_bound
            for rows in hard_streams(T, 2, size)
        ]
        assert max(ratios) <= 1 + 1e-9
        assert size < 0.5 or max(ratios) > 0.4  # where the regulariser is most of the bound


@pytest.mark.parametrize("strong", [0.25, 1.0])
def test_strongly_convex_losses(strong):
    T, domain, rng = 300, rt.Ball(2), np.random.default_rng(7)
    near = rt.Custom(
        lambda x, c: strong / 2 * float(((x - c) ** 2).sum()), lambda x, c: strong * (x - c), lipschitz=2 * strong
    )
    private = plan_approximate_leader(domain, T, 2 * strong, 5.0, 1e-6, strong_convexity=strong)
    bare = ApproximateLeaderPlan(domain, T, 2 * strong, added=0.0, noise=0.0, strong_convexity=strong)
    turning = [domain.project(2 * np.array([math.cos(k), math.sin(k)])) for k in np.linspace(0, 3, T)]
    for points in (turning, [domain.project(rng.normal(size=2)) for _ in range(T)]):
        best = np.mean(points, axis=0)  # of the ball too
        for plan, seeds in ((private, 5), (bare, 1)):
            regrets = []
            for seed in range(seeds):
                trace = ApproximateLeader(plan, near, seed=seed).observe_many(points)
                regrets.append(trace.losses.sum() - near.values(best, points).sum())
            assert np.mean(regrets) <= plan.regret_bound


@pytest.mark.parametrize("make", [plan_implicit, plan_approximate_leader], ids=lambda make: make.__name__)
def test_regret_against_losses_that_react_to_decisions(make):
    """Each loss pushes away from the decision in play, or along it."""
    plan = make(rt.Ball(3), 300, 1.0, 20.0, 1e-6)
    for sign in (-1.0, 1.0):
        regrets = []
        for seed in range(4):
            learner, rows, paid = rt.make(plan, rt.Linear(), seed=seed), [], 0.0
            for t in range(300):
                x = learner.decision
                size = np.linalg.norm(x)
                rows.append(sign * x / size if size > 0 else np.array([1.0, 0.0, 0.0]))
                paid += float(rows[t] @ x)
                learner.observe(rows[t])
            regrets.append(paid + np.linalg.norm(np.sum(rows, axis=0)))
        assert np.mean(regrets) <= plan.regret_bound


def test_losses_that_do_not_fit_are_refused():
    custom = rt.Custom(lambda x, c: float(c @ x), lambda x, c: c, lipschitz=1.0)
    plan = plan_implicit(rt.Ball(2), 100, 1.0, 1.0, 1e-6)
    with pytest.raises(ValueError, match="PCOMW and DPFTRL take any convex loss"):
        PrivateImplicitDescent(plan, custom)
    strong = plan_approximate_leader(rt.Ball(2), 100, 1.0, 1.0, 1e-6, strong_convexity=0.1)
    for loss in LOSSES:
        with pytest.raises(ValueError, match="strongly convex"):
            ApproximateLeader(strong, loss)
    ApproximateLeader(strong, custom)
    line = plan_approximate_leader(rt.Interval(-1.0, 1.0), 100, 1.0, 1.0, 1e-6, strong_convexity=0.1)
    ApproximateLeader(line, rt.Squared())  # on trust: on a line it may have it
    with pytest.raises(ValueError, match="strongly convex"):
        ApproximateLeader(line, rt.Absolute())


def test_beyond_the_horizon():
    plan = plan_implicit(rt.Ball(2), 10, 1.0, 1.0, 1e-6)
    learner = PrivateImplicitDescent(plan, rt.Linear(), seed=0)
    learner.observe_many(np.zeros((10, 2)))
    with pytest.raises(ValueError, match="horizon"):
        learner.observe(np.zeros(2))
    free = ApproximateLeaderPlan(rt.Ball(2), 10, 1.0, added=0.1, noise=1.0)
    assert ApproximateLeader(free, rt.Linear(), seed=0).observe_many(np.zeros((50, 2))).rounds == 50
