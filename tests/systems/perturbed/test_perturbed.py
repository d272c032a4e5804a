"""Perturbed leaders: minimisers against their conditions, determinants against differences, limits enforced."""

import math

import numpy as np
import pytest

import reticent as rt
from reticent.systems.lazy_leader._lazy_leader import LazyLeader, plan_lazy_leader
from reticent.systems.perturbed._kernel import minimise, swell
from reticent.systems.perturbed._lazy import plan_sherman_koren
from reticent.systems.perturbed._learner import ObjectivePerturbation, ShermanKoren
from reticent.systems.perturbed._objective import ObjectivePlan, plan_objective

HUBER, LOGISTIC, SQUARED = rt.Huber(0.4), rt.Logistic(), rt.Squared()
BODIES = [rt.Ball(3), rt.Box([-1, -0.5, -1], [1, 0.5, 1]), rt.Interval(-1.0, 1.0)]


def problem(domain, loss, rng, count=30):
    d = domain.chart_dim
    vectors, offsets = rng.normal(size=(count, d)), rng.normal(size=count)
    return vectors, offsets, 10 ** rng.uniform(-2, 1)


def solved(domain, loss, vectors, offsets, lam, Z):
    """The library's minimiser, with what it says of the face it lies on."""
    d = domain.chart_dim
    x, H, free = np.zeros(d), np.zeros((d, d)), np.ones(d, dtype=bool)
    b = np.zeros(d)
    if loss is SQUARED:
        H, b = vectors.T @ vectors, vectors.T @ offsets
    nu = minimise(domain.body, loss.code, loss.parameter, lam, vectors, offsets, len(offsets), b, Z, x, H, free)
    return x, H, free, nu


@pytest.mark.parametrize("domain", BODIES, ids=repr)
@pytest.mark.parametrize("loss", [HUBER, LOGISTIC, SQUARED], ids=repr)
def test_minimisers_are_nearest_to_their_own_gradient_step(domain, loss):
    rng = np.random.default_rng(4)
    for size in (0.1, 1.0, 10.0, 300.0):
        vectors, offsets, lam = problem(domain, loss, rng)
        Z = size * rng.normal(size=domain.chart_dim)
        x, H, _, _ = solved(domain, loss, vectors, offsets, lam, Z)
        m = vectors @ x + offsets
        gradient = loss.dphi(m) @ vectors + lam * x + Z
        step = domain.to_chart(domain.project(domain.from_chart(x - gradient)))
        assert np.allclose(step, x, atol=1e-8 * (1 + np.abs(gradient).max()))
        assert np.allclose(H, (vectors * loss.d2phi(m)[:, None]).T @ vectors)


@pytest.mark.parametrize("domain", BODIES, ids=repr)
@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=repr)
def test_determinants_agree_with_differences_inside_and_on_the_boundary(domain, loss):
    rng = np.random.default_rng(6)
    d, faces = domain.chart_dim, set()
    for size in (0.5, 3.0, 20.0, 60.0) * 3:
        vectors, offsets, lam = problem(domain, loss, rng)
        count = int(rng.integers(1, 4))  # one round, or a batch of several
        A, c = rng.normal(size=(count, d)), rng.normal(size=count)
        Z = size * rng.normal(size=d)

        def moved(Z, vectors=vectors, offsets=offsets, lam=lam, A=A, c=c):
            x = solved(domain, loss, vectors, offsets, lam, Z)[0]
            return Z - loss.dphi(A @ x + c) @ A

        x, H, free, nu = solved(domain, loss, vectors, offsets, lam, Z)
        faces.add((nu > 0, int(free.sum())))
        h = 1e-5 * (1 + size)
        jacobian = np.array([(moved(Z + h * e) - moved(Z - h * e)) / (2 * h) for e in np.eye(d)]).T
        bend = (A * loss.d2phi(A @ x + c)[:, None]).T @ A
        claimed = swell(domain.body, lam, nu, H, free, x, bend)
        assert math.exp(claimed) == pytest.approx(np.linalg.det(jacobian), rel=1e-5)
        directions = min(count, d)
        assert 0 <= claimed <= directions * math.log1p(np.trace(bend) / lam / directions) * (1 + 1e-9)
    assert len(faces) > 1


def small_plan(**options):
    values = {"sigma": 30.0, "lam": 20.0, "p": 0.2, "phi": 1.2, "budget": 5, "smoothness": 1.0} | options
    return ObjectivePlan(rt.Ball(2), 200, 1.0, **values)


def test_curved_rows_are_refused_before_anything_changes():
    # Within the Lipschitz limit, but too curved: far from the kink of Huber's loss nothing tells them apart but this.
    plan = small_plan(smoothness=0.2)
    for loss, row, target in ((rt.Logistic(), [0.95, 0.0], 1.0), (rt.Squared(), [0.5, 0.0], 0.0)):
        learner, clean = (ObjectivePerturbation(plan, loss, seed=3) for _ in range(2))
        for run in (learner, clean):
            run.observe([0.1, 0.1], target)
        with pytest.raises(ValueError, match=r"smoothness=0\.2"):
            learner.observe(row, target)
        with pytest.raises(ValueError, match="row 1 has second derivatives"):
            learner.observe_many([[0.1, 0.1], row], [target, target])
        assert learner.rounds == 1
        good = (np.full((50, 2), 0.3), np.full(50, target))
        assert np.array_equal(learner.observe_many(*good).decisions(), clean.observe_many(*good).decisions())


def test_the_budget_freezes_the_decision():
    learner = ObjectivePerturbation(small_plan(), rt.Logistic(), seed=1)
    trace = learner.observe_many(np.full((200, 2), 0.4), np.ones(200))
    assert trace.switches == 5
    assert learner.frozen
    assert learner.rounds == 200
    never = ObjectivePerturbation(small_plan(budget=0), rt.Logistic(), seed=1)
    assert never.observe_many(np.full((200, 2), 0.4), np.ones(200)).switches == 0


def test_measured_regret_comes_close_to_the_certificate_and_stays_below():
    plan = plan_objective(rt.Ball(5), 20_000, 1.0, 1.0, 1e-6, smoothness=0.0)
    rows = np.tile(np.eye(5)[0], (20_000, 1))
    regrets = [
        float(ObjectivePerturbation(plan, rt.Linear(), seed=seed).observe_many(rows).regret()) for seed in range(20)
    ]
    spread = np.std(regrets) / math.sqrt(20)
    assert 0.8 * plan.regret_bound < np.mean(regrets) < plan.regret_bound + 5 * spread


def test_switches_of_lazy_plans_are_as_certified():
    rows = np.tile([0.6, 0.8], (5_000, 1))
    for plan, kind in (
        (plan_sherman_koren(rt.Ball(2), 5_000, 1.0, 200), ShermanKoren),
        (plan_lazy_leader(rt.Ball(2), 5_000, 1.0, max_switches=200), LazyLeader),
    ):
        counts = [kind(plan, rt.Linear(), seed=seed).observe_many(rows).switches for seed in range(10)]
        # Rows of length 1 use the certificate up where it is sharp.
        assert np.mean(counts) <= plan.expected_switches + 5 * math.sqrt(plan.expected_switches / 10)
        assert np.mean(counts) >= 0.9 * plan.expected_switches


def test_without_noise_the_lazy_perturbed_leader_is_ftrl():
    plan = plan_sherman_koren(rt.Ball(2), 50, 1.0, 50)
    assert plan.sigma == 0.0
    rows = np.random.default_rng(0).normal(size=(50, 2))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    learner = ShermanKoren(plan, rt.Linear(), seed=0)
    for row in rows:
        learner.observe(row)
    point = -rows.sum(axis=0) / plan.lam
    assert np.allclose(learner.decision, point / max(1.0, float(np.linalg.norm(point))))
