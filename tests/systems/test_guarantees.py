"""Certificates hold: regret below the bound and switches within the plan, on oblivious adversaries of four kinds."""

import math

import numpy as np
import pytest

import reticent as rt
from reticent.systems.pcomw._regret import regret_bound

T = 2400
SEEDS = (1, 2, 3)


def directions(kind: str, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Return a unit vector per round: what the losses push against."""
    first, second = rng.normal(size=(2, dim))
    if kind == "drift":
        angle = np.linspace(0.0, 1.0, T)[:, None]
        rows = (1.0 - angle) * first + angle * second + 1.5 * rng.normal(size=(T, dim))
    elif kind == "blocks":
        signs = np.where(np.arange(T) // 150 % 2 == 0, 1.0, -1.0)
        rows = signs[:, None] * first + 0.1 * rng.normal(size=(T, dim))
    elif kind == "constant":
        rows = np.tile(first, (T, 1))
    else:  # pieces of random length, each against a corner, the last one long enough to undo what came before
        cuts = np.sort(rng.integers(0, T, size=6))
        corners = np.sign(rng.normal(size=(7, dim))) + 1e-3
        corners[-1] = -corners[0]
        rows = corners[np.searchsorted(cuts, np.arange(T), side="right")]
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def rounds(loss: object, kind: str, dim: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng([dim, len(kind)])
    rows = directions(kind, dim, rng)
    if isinstance(loss, rt.Linear):
        return (rows,)
    if isinstance(loss, rt.Logistic):
        return rows, np.where(rng.random(T) < 0.9, -1.0, 1.0)
    return rows, np.where(rng.random(T) < 0.9, -2.0, 2.0) * rng.random(T)


def body(dim: int) -> rt.Interval | rt.Ball:
    return rt.Interval(-1.0, 1.0) if dim == 1 else rt.Ball(dim)


def runs(plan: rt.Plan, loss, data, seeds=SEEDS) -> tuple[np.ndarray, np.ndarray, list[rt.PCOMW]]:
    learners = [rt.PCOMW(plan, loss, seed=seed) for seed in seeds]
    traces = [learner.observe_many(*data) for learner in learners]
    regrets = np.array([float(trace.regret()) for trace in traces])
    return regrets, np.array([trace.switches for trace in traces]), learners


@pytest.mark.parametrize("kind", ["drift", "blocks", "constant", "pieces"])
@pytest.mark.parametrize("loss", [rt.Linear(), rt.Absolute(), rt.Logistic()], ids=repr)
@pytest.mark.parametrize("dim", [1, 3, pytest.param(10, marks=pytest.mark.slow)])
def test_lazy_plans_keep_their_word(kind, loss, dim):
    plan = rt.plan_lazy(body(dim), T, 1.0, max_switches=120, draws=1)
    regrets, switches, _ = runs(plan, loss, rounds(loss, kind, dim))
    assert regrets.mean() <= plan.regret_bound
    # Mean of three counts of mean at most 120 and, by P2 and P4, of about binomial spread.
    assert switches.mean() <= 120 + 5.0 * math.sqrt(120 / len(SEEDS))
    # Never switching would do badly on the constant adversary: the learner must have learnt something.
    if kind == "constant" and isinstance(loss, rt.Linear):
        assert regrets.max() < 0.75 * T


@pytest.mark.parametrize("kind", ["drift", "blocks", "constant", "pieces"])
@pytest.mark.parametrize("dim", [1, 3, 10])
def test_a_hard_cap_never_breaks(kind, dim):
    plan = rt.plan_lazy(body(dim), T, 1.0, max_switches=60, hard=True)
    regrets, switches, learners = runs(plan, rt.Linear(), rounds(rt.Linear(), kind, dim), seeds=range(40))
    assert switches.max() <= 60
    assert all(learner.budget_left >= 0 for learner in learners)
    assert regrets.mean() <= plan.regret_bound


def test_an_adaptive_adversary_cannot_break_a_hard_cap():
    plan = rt.plan_lazy(rt.Interval(-1.0, 1.0), 1000, 1.0, max_switches=20, hard=True)
    counts = []
    for seed in range(30):
        learner = rt.PCOMW(plan, rt.Linear(), seed=seed)
        for _ in range(1000):
            learner.observe(np.sign(learner.decision))
        counts.append(learner.switches)
    assert max(counts) == 20  # some runs would have gone on


@pytest.mark.parametrize("kind", ["drift", "blocks", "constant", "pieces"])
@pytest.mark.parametrize("dim", [1, 3, 10])
def test_batches_budgets_and_clipping_are_in_the_certificate(kind, dim):
    """Parameters of a private kind by hand: forced switches, batches that do not divide the horizon, a tight budget."""
    plan = rt.Plan(body(dim), T, 1.0, beta=0.15, lam=60.0, p=0.2, phi=1.9, budget=110, batch=7, draws=2)
    regrets, switches, _ = runs(plan, rt.Linear(), rounds(rt.Linear(), kind, dim), seeds=range(40))
    assert regrets.mean() <= regret_bound(plan).total
    assert switches.max() <= 110


@pytest.mark.parametrize("kind", ["drift", "blocks", "constant", "pieces"])
@pytest.mark.parametrize(("dim", "adversary"), [(1, "adaptive"), (3, "oblivious"), (10, "adaptive")])
def test_private_plans_keep_their_word(kind, dim, adversary):
    plan = rt.plan_private(body(dim), T, 1.0, epsilon=4.0, delta=1e-4, adversary=adversary)
    assert not plan.vacuous
    regrets, switches, learners = runs(plan, rt.Linear(), rounds(rt.Linear(), kind, dim), seeds=range(20))
    assert regrets.mean() <= plan.regret_bound
    assert switches.max() <= plan.budget
    assert learners[0].spent() <= plan.epsilon
    regrets, switches, _ = runs(plan, rt.Logistic(), rounds(rt.Logistic(), kind, dim))
    assert regrets.mean() <= plan.regret_bound
    assert switches.max() <= plan.budget


@pytest.mark.parametrize("dim", [1, 10])
def test_the_lazy_theorem_holds_and_the_tuned_plan_certifies_ten_times_less(dim):
    horizon, S = 100_000, 3000
    theorem = rt.theorem_lazy(body(dim), horizon, 1.0, S)
    tuned = rt.plan_lazy(body(dim), horizon, 1.0, S)
    assert tuned.regret_bound < theorem.regret_bound / 10
    assert tuned.expected_switches <= S
    rows = np.tile(np.eye(dim)[0], (horizon, 1))
    for plan in (theorem, tuned):
        regrets, switches, _ = runs(plan, rt.Linear(), (rows,), seeds=(5,))
        assert regrets.max() <= plan.regret_bound
        assert switches.max() <= S + 5 * math.sqrt(S)


def test_a_certificate_that_is_too_small_is_noticed():
    """The negative control: a fifth of the bound fails, so that the tests above could have failed."""
    plan = rt.plan_lazy(rt.Ball(3), T, 1.0, max_switches=120)
    regrets, _, _ = runs(plan, rt.Linear(), rounds(rt.Linear(), "constant", 3))
    assert regrets.mean() > 0.2 * plan.regret_bound
