"""Plans over experts: certificates against exact expectations, brute force and closed forms."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import integrate, stats

import reticent as rt
from reticent.domains import Experts
from reticent.privacy._account import SystemAccount
from reticent.systems import experts
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.experts._dartboard import (
    DartboardPlan,
    PrivateDartboardPlan,
    overrun,
    plan_dartboard,
    plan_private_dartboard,
    switch_chance,
)
from reticent.systems.experts._hedge import LimitedSwitchingPlan, plan_hedge, plan_limited_switching
from reticent.systems.experts._leaders import (
    largest_laplace,
    plan_experts_lazy_leader,
    plan_lazy_leader_star,
    plan_perturbed_leader,
    reflections,
)

TEN = Experts(10)


def streams(n, rounds, seed=0):
    """Streams that are hard in different ways: random, alternating, one that takes turns, one good expert, blocks."""
    rng = np.random.default_rng(seed)
    turns = np.ones((rounds, n))
    turns[np.arange(rounds), np.arange(rounds) % n] = 0
    alternating = np.zeros((rounds, n))
    alternating[::2, 0], alternating[1::2, 1:] = 1, 1
    good = np.ones((rounds, n))
    good[:, 0] = 0
    blocks = np.repeat((rng.random((-(-rounds // 20), n)) < 0.5).astype(float), 20, axis=0)[:rounds]
    return [rng.random((rounds, n)), (rng.random((rounds, n)) < 0.5).astype(float), turns, alternating, good, blocks]


def shifted(losses):
    return losses - losses.min(axis=1, keepdims=True)


def laws(losses, beta, batch=1):
    sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)[:-1]])
    sums = sums[np.arange(len(losses)) // batch * batch]
    w = np.exp(-beta * (sums - sums.min(axis=1, keepdims=True)))
    return w / w.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_exact_regret_of_weights_stays_below_and_comes_close(n):
    hedge, blocks = plan_hedge(Experts(n), 400, 1.0), plan_limited_switching(Experts(n), 400, 1.0, 20)
    for plan, batch in ((hedge, 1), (blocks, blocks.batch)):
        found = [(laws(l, plan.beta, batch) * l).sum() - l.sum(axis=0).min() for l in map(shifted, streams(n, 400))]
        assert max(found) <= plan.regret_bound
    assert plan_hedge(Experts(n), 400, 2.0).regret_bound == pytest.approx(2 * hedge.regret_bound)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_exact_switches_of_the_dartboard_stay_below(n):
    plan = plan_dartboard(Experts(n), 400, 1.0)
    most = 0.0
    for l in map(shifted, streams(n, 400)):
        law = laws(np.vstack([l, np.zeros(n)]), plan.beta)
        most = max(most, float((law[:-1] * -np.expm1(-plan.beta * l) * (1 - law[1:])).sum()))
    assert 0.5 * plan.expected_switches < most <= plan.expected_switches


def test_switch_chance_is_the_maximum_over_laws_and_losses():
    rng = np.random.default_rng(0)
    for n, size in ((2, 0.1), (2, 0.5), (2, 1.5), (3, 0.3), (5, 0.2)):
        best = 0.0
        for _ in range(4000):
            p = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])))
            l = (rng.random(n) < 0.8) * size
            l[rng.integers(n)] = 0
            after = p * np.exp(-l)
            best = max(best, float((p * -np.expm1(-l) * (1 - after / after.sum())).sum()))
        assert (0.8 if n > 2 else 0.99) * switch_chance(n, size) < best <= switch_chance(n, size) + 1e-15


def test_overrun_is_the_sum_of_tails():
    for coins, q, budget in ((3, 0.5, 0), (50, 0.1, 4), (1000, 0.05, 60), (1000, 0.05, 20), (20, 1.0, 7), (9, 0.3, 9)):
        exact = stats.binom.sf(budget, np.arange(coins + 1), q).sum()
        assert exact * (1 - 1e-9) <= overrun(coins, q, budget) <= exact * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_largest_of_laplace_variables(n):
    mean = integrate.quad(lambda z: 1 - stats.laplace.cdf(z) ** n, 0, 60)[0]
    mean -= integrate.quad(lambda z: stats.laplace.cdf(z) ** n, -60, 0)[0]
    assert largest_laplace(n) == pytest.approx(mean, rel=1e-7)


def test_reflections_bound_the_distance_of_laplace_noise_moved():
    rng = np.random.default_rng(0)
    for n, size in ((2, 0.3), (5, 0.3), (30, 0.3), (30, 0.02)):
        z = rng.laplace(size=(40_000, n - 1))
        refused = 1 - np.exp(-np.maximum((abs(z - size) - abs(z)).sum(axis=1), 0.0))
        # The mean chance of a reflection, from 40,000 draws, to six standard errors.
        assert refused.mean() <= reflections(n, size) + 6 * refused.std() / 200
        assert refused.mean() >= 0.5 * reflections(n, size)
    assert reflections(2, 0.3) == pytest.approx(1 - math.exp(-0.15))  # exact in one dimension


def leader_regret(noise, rate, losses, seed=0, runs=2000):
    """The regret of FPL with one noise vector for all rounds (its mean is that of fresh noise), and its error."""
    rng = np.random.default_rng(seed)
    n = losses.shape[1]
    sums = np.vstack([np.zeros(n), np.cumsum(losses, axis=0)])
    z = rng.laplace(size=(runs, n)) / rate if noise == "laplace" else rng.random((runs, n)) / rate
    total = np.zeros(runs)
    for t, l in enumerate(losses):
        total += l[np.argmin(sums[t] + z, axis=1)]
    regret = total - sums[-1].min()
    return regret.mean(), regret.std() / math.sqrt(runs)


@pytest.mark.parametrize("noise", ["laplace", "uniform"])
@pytest.mark.parametrize("n", [2, 6])
def test_regret_of_perturbed_leaders_stays_below(noise, n):
    plan = plan_perturbed_leader(Experts(n), 200, 1.0, noise=noise)
    for l in map(shifted, streams(n, 200)):
        mean, error = leader_regret(noise, plan.rate, l)
        assert mean <= plan.regret_bound + 6 * error


def test_stability_of_laplace_noise_is_the_hyperbolic_tangent():
    """Exact: two experts, the worst difference of sums; the bound T G tanh(rate G/2) is met for large noise."""
    for rate in (0.1, 0.7, 2.0):
        cdf = lambda d, r=rate: integrate.quad(  # noqa: E731
            lambda z: r / 2 * math.exp(-r * abs(z)) * stats.laplace.cdf(r * (z - d)), -40 / r, 40 / r, points=[0, d]
        )[0]
        moves = [cdf(d) - cdf(d + 1) for d in np.linspace(-2, 1, 7)]
        assert max(moves) <= math.tanh(rate / 2)


@pytest.mark.parametrize("make", [plan_dartboard, plan_lazy_leader_star, plan_experts_lazy_leader])
def test_caps_on_switches_are_met_and_cost_regret(make):
    free = make(TEN, 10_000, 3.0)
    bound = free.regret_bound
    for cap in (300, 100, 10, 1):
        plan = make(TEN, 10_000, 3.0, max_switches=cap)
        assert plan.expected_switches <= cap * (1 + 1e-9)
        assert plan.regret_bound >= bound * (1 - 1e-9)
        bound = plan.regret_bound
    assert make(TEN, 10_000, 3.0, max_switches=10_000).regret_bound == pytest.approx(free.regret_bound)


def test_a_hard_cap_costs_a_little_more_than_one_in_expectation():
    soft, hard = (plan_dartboard(TEN, 10_000, 1.0, 100, hard=hard) for hard in (False, True))
    assert hard.max_switches == hard.budget == 100
    assert soft.regret_bound < hard.regret_bound < 1.6 * soft.regret_bound
    assert hard.regret_bound < plan_limited_switching(TEN, 10_000, 1.0, 100).regret_bound
    with pytest.raises(ValueError, match="max_switches must be given"):
        plan_dartboard(TEN, 10_000, 1.0, hard=True)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_one_expert_that_is_kept_costs_no_more_than_all_of_them_in_the_mean(n):
    for T in (1, 100):
        plan = plan_limited_switching(Experts(n), T, 1.0, 0)
        assert plan.regret_bound == pytest.approx((1 - 1 / n) * T)
        worst = np.ones((T, n)) - np.eye(n)[0]  # reaches the bound
        assert (laws(worst, plan.beta, plan.batch) * worst).sum() == pytest.approx(plan.regret_bound)
        assert plan.vacuous
        assert "an expert drawn uniformly and kept" in plan.vacuous_in_words()
        assert plan_limited_switching(Experts(n), T, 1.0, 0).high_probability_bound > plan.regret_bound


def test_without_privacy_an_expert_that_is_kept_promises_no_less():
    size = Experts(2), 100, 1.0, rt.Linear()
    free = rt.best_plan(*size, max_switches=0)
    private = rt.best_plan(*size, max_switches=0, epsilon=1.0, delta=1e-6)
    assert free.certified_regret <= private.certified_regret


def test_limited_switching_never_passes_its_cap():
    for T in (1, 2, 7, 100, 1000):
        for S in (0, 1, 3, 99, 2000):
            plan = plan_limited_switching(TEN, T, 1.0, S)
            assert plan.max_switches <= S
            assert plan.high_probability_bound > plan.regret_bound


def test_private_plans_meet_their_goals_and_grow_with_freedom():
    plan = plan_private_dartboard(TEN, 20_000, 2.0, 1.0, 1e-6)
    assert plan.account().epsilon(1e-6) <= 1
    easier = plan_private_dartboard(TEN, 20_000, 2.0, 1.0, 1e-6, neighbors="zero-out")
    assert easier.regret_bound < plan.regret_bound
    capped = plan_private_dartboard(TEN, 20_000, 2.0, 1.0, 1e-6, max_switches=50)
    assert capped.max_switches <= 50
    assert plan.regret_bound < capped.regret_bound < 2.0 * 20_000
    assert plan_private_dartboard(TEN, 20_000, 2.0, 1.0, 1e-6, batch=7).batch == 7
    # Units do not matter.
    other = plan_private_dartboard(TEN, 20_000, 1.0, 1.0, 1e-6)
    assert 2 * other.regret_bound == pytest.approx(plan.regret_bound)
    # Without a claim the parameters are free.
    free = dataclasses.replace(plan, epsilon=None, delta=None, beta=1.0)
    assert not free.private


@pytest.mark.parametrize("changes", [{"beta": 0.0}, {"p": 1.5}, {"p": -0.1}, {"batch": 0}, {"budget": -1}])
def test_bad_parameters_are_refused(changes):
    good = {"beta": 0.1, "p": 0.5, "batch": 1, "budget": 5}
    with pytest.raises(ValueError, match=next(iter(changes))):
        PrivateDartboardPlan(TEN, 100, 1.0, **{**good, **changes})


def test_bodies_and_other_losses_are_refused():
    for make in (plan_hedge, plan_dartboard, plan_perturbed_leader, plan_experts_lazy_leader, plan_lazy_leader_star):
        with pytest.raises(ValueError, match="finite set such as Experts"):
            make(rt.Simplex(3), 100, 1.0)
    with pytest.raises(ValueError, match="finite set"):
        DartboardPlan(rt.Ball(2), 100, 1.0, beta=0.1)
    with pytest.raises(ValueError, match="must be Linear"):
        plan_hedge(TEN, 100, 1.0).check_loss(rt.Hinge())
    with pytest.raises(ValueError, match="failure"):
        LimitedSwitchingPlan(TEN, 100, 1.0, beta=0.1, batch=3, failure=1.5)
    with pytest.raises(ValueError, match="noise must be"):
        plan_perturbed_leader(TEN, 100, 1.0, noise="normal")
    with pytest.raises(ValueError, match="not a private system"):
        plan_hedge(TEN, 100, 1.0).account()


def test_systems_answer_goals():
    systems = experts.SYSTEMS
    assert len({system.name for system in systems}) == len(systems)
    free = Goal(TEN, 5000, 1.0, rt.Linear())
    for system in systems:
        goal = dataclasses.replace(free, max_switches=200 if system.lazy else None)
        if system.private:
            goal = dataclasses.replace(goal, epsilon=1.0, delta=1e-6)
        plan = system.answer(goal)
        assert system.experts
        assert plan.system == system.name
        assert "Experts(10)" in str(plan)
        if system.lazy:
            assert plan.expected_switches <= 200 * (1 + 1e-9)
        for bad in (dataclasses.replace(goal, domain=rt.Ball(2)), dataclasses.replace(goal, loss=rt.Hinge())):
            with pytest.raises(NotApplicable):
                system.answer(bad)


def test_chances_that_are_off_count_for_the_events_themselves_too():
    # P(O) - exp(epsilon) P'(O) <= exp(n xi) (Q(O) - exp(epsilon - 2 n xi) Q'(O)) for chances right to exp(xi) (Q11c).
    plan = rt.planning.plan_private_dartboard(rt.Experts(4), 10**12, 1.0, 10.0, 1e-6)
    machine = plan.rounding(plan.horizon)
    grown = machine.epsilon / 2
    assert grown > 0.1
    sums = machine._replace(epsilon=0.0).applied(plan.statements(plan.horizon))
    exact = SystemAccount(plan.horizon, "replace", sums)
    for epsilon in (8.0, 9.0, 10.0):
        true = math.exp(grown) * exact.delta(epsilon - 2 * grown)
        assert plan.account().delta(epsilon) == pytest.approx(true, rel=1e-6)
        assert plan.account().delta(epsilon) > 1.1 * exact.delta(epsilon - 2 * grown)  # what was charged before


def test_very_long_runs_have_plans():
    # There was none where later coins were charged for too, which say the same in both worlds.
    plan = plan_private_dartboard(Experts(4), 10**12, 1.0, 1.0, 1e-6)
    assert plan.account().epsilon(1e-6) <= 1.0
    assert plan.regret_bound < 2e-6 * 10**12
