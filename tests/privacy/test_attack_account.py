"""Attacks on the accountant, the filter and the planner: what could make an epsilon too small."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import reticent as rt
from reticent.privacy import account, dp_event, rounds_within
from reticent.privacy._coins import Coin, many_coins
from reticent.privacy._events import gdp
from reticent.privacy._exposure import Exposure, switched
from reticent.privacy._losses import hockey_stick


def _convolved(low: float, high: float, count: int) -> np.ndarray:
    """The law of the walk by direct convolution of positive numbers: accurate relative to each probability."""
    step, law = np.array([low, max(1 - low - high, 0.0), high]), np.array([1.0])
    while count:
        if count & 1:
            law = np.convolve(law, step)
        count >>= 1
        if count:
            step = np.convolve(step, step)
    return law


@pytest.mark.parametrize("count", [1, 2, 3, 17, 300, 4000])
@pytest.mark.parametrize("p", [1e-12, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.9999])
def test_no_walk_is_below_direct_convolution(count: int, p: float) -> None:
    for eta in (1e-6, 1e-3, 0.05, 0.8, 6.0):
        high = 1 - (1 - p) * math.exp(-eta)
        folded = p + high > 1
        low = (1 - p) * math.exp(-eta) if folded else p
        r = eta if folded else math.log1p(-(1 - p) * math.expm1(-eta) / p)
        law, place = _convolved(low, low * math.exp(r), count), np.arange(-count, count + 1) * r
        for mu in (0.0, 0.01, 1.0):
            for epsilon in (0.0, 0.1, 1.0, 10.0, 50.0):
                exact = float(law @ hockey_stick(mu, epsilon - place))
                if exact > 1e-36:
                    assert many_coins(Coin(p, eta), count).delta(mu, epsilon) >= exact * (1 - 1e-9)


def test_the_switch_of_the_changed_batch_is_bounded_for_normal_laws() -> None:
    """T of Q6 against the exact hockey stick where the measures are normal laws (linear losses, a wide body)."""
    rng = np.random.default_rng(0)
    z = np.linspace(-12, 12, 100_001)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    for _ in range(60):
        length = 10 ** rng.uniform(-3, -0.3)
        shift, p, log_phi = 2 * length * rng.uniform(0.05, 1), 10 ** rng.uniform(-4, -0.05), rng.uniform(3, 8) * length
        u = rng.uniform(-length, length)
        other = np.clip(u + rng.choice([-1, 1]) * shift, -length, length)
        keep = (1 - p) * math.exp(-log_phi)
        m, m_other = (np.minimum(keep * np.exp(x * z - x * x / 2), 1 - p) for x in (u, other))
        omega = float(weight @ np.maximum(keep * np.exp(u * z - u * u / 2) - (1 - p), 0))
        bound = switched(Exposure(shift, 0.01, 1.0, p, log_phi, length, draws=1, later=0, special=True))
        for alpha in np.exp(rng.uniform(-3, min(6, -math.log(p)), 8)):
            true = float(weight @ np.maximum((1 - m) - alpha * (1 - m_other), 0))
            assert true <= bound.delta(0.0, math.log(alpha)) * (1 + 1e-7) + omega + 1e-12


# --- defects -------------------------------------------------------------------------------------------------------


def _stopped(learner: rt.PCOMW, rounds: int) -> bool:
    try:
        learner.observe_many(np.tile([0.6, 0.8], (rounds, 1)))
    except ValueError:
        return True
    return False


def test_an_epoch_plan_that_claims_less_than_its_recipe_spends_is_stopped() -> None:
    plan = replace(rt.plan_private(rt.Ball(2), None, 1.0, 1.0, 1e-6), epsilon=0.01)
    try:
        learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    except ValueError:
        return
    assert _stopped(learner, 5000) or learner.spent() <= 0.01 * (1 + 1e-6)


def test_an_epoch_plan_relabelled_for_stronger_neighbours_is_accounted_for_them() -> None:
    weak = rt.plan_private(rt.Ball(2), None, 1.0, 1.0, 1e-6, adversary="oblivious", neighbors="zero-out")
    plan = replace(weak, adversary="adaptive", neighbors="replace")
    try:
        learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    except ValueError:
        return
    if _stopped(learner, 1024):
        return
    true = account(replace(weak.epoch(0), adversary="adaptive", neighbors="replace")).epsilon(1e-6)
    assert learner.spent() >= true * (1 - 1e-6)


def test_another_recipe_breaks_the_seal() -> None:
    plan = rt.plan_private(rt.Ball(2), None, 1.0, 1.0, 1e-6)
    other = rt.plan_private(rt.Ball(2), None, 1.0, 20.0, 1e-2)
    assert replace(plan, recipe=other.recipe).seal is None


def _modest(horizon: int) -> rt.Plan:
    return rt.Plan(rt.Ball(2), horizon, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, epsilon=2.0, delta=1e-6)


def test_one_block_across_epochs_is_stopped_where_single_rounds_are() -> None:
    first = _modest(64)
    claim = 1.05 * account(first).epsilon(1e-6)
    plan = replace(first, horizon=None, first_epoch=64, recipe=_modest, epsilon=claim)
    assert rounds_within(replace(_modest(128), epsilon=claim)) < 128
    learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    assert _stopped(learner, 64 + 128 + 256)
    assert learner.rounds == 64
    assert learner.spent() <= claim
    with pytest.raises(ValueError, match="128 more rounds were requested"):
        learner.observe([0.6, 0.8])


@pytest.mark.parametrize(("p", "eta"), [(0.01, 1e-8), (0.01, 1e-11), (0.01, 1e-13), (0.3, 1e-15), (1 - 1e-9, 1e-3)])
def test_the_normal_stand_in_of_a_coin_is_not_too_small(p: float, eta: float) -> None:
    with mpmath.workdps(40):
        low = mpmath.mpf(p)
        high = 1 - (1 - low) * mpmath.exp(-mpmath.mpf(eta))
        exact = mpmath.sqrt(2) * (mpmath.erfinv(2 * high - 1) - mpmath.erfinv(2 * low - 1))
    assert gdp(Coin(p, eta)) >= float(exact) * (1 - 1e-9)


def test_an_event_of_coins_that_hardly_tell_anything_exists() -> None:
    dp_event(rt.Plan(rt.Ball(2), 1000, 1.0, beta=1e-9, lam=1e9, p=0.3, phi=1.1, distance=0.0))


def test_few_switches_over_a_very_long_horizon_can_be_planned() -> None:
    plan = rt.plan_private(rt.Ball(2), 382_811_816_061, 1.0, 0.0625, 1e-12, neighbors="zero-out", max_switches=4)
    assert plan.budget is not None
    assert plan.budget <= 4


def test_zero_out_plans_do_not_promise_that_two_people_cannot_be_told_apart() -> None:
    text = " ".join(rt.plan_private(rt.Ball(2), 1000, 1.0, 1.0, 1e-6, neighbors="zero-out").explain().split())
    assert "both things that this round can have been" not in text
