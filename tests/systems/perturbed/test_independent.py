"""Averaged descent: its algorithm line by line, its certificate for independent losses, and that others break it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import reticent as rt
from reticent.systems.lazy_leader._independent import AveragedDescent, IndependentPlan, plan_independent


def signs(seed: int, rounds: int, mean: float) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random((rounds, 1)) < (1 + mean) / 2, 1.0, -1.0)


def test_the_walk_is_the_algorithm():
    plan = IndependentPlan(rt.Interval(-1.0, 1.0), 60, 1.0, lengths=(6, 15, 39))
    rows, offsets = signs(1, 60, 0.3), np.random.default_rng(2).uniform(0.2, 0.9, 60)
    learner = AveragedDescent(plan, rt.Absolute())
    played, expected, at, u = [], [], 0, 0.0
    for length in plan.lengths:
        w, points, step = 0.0, [], 1 / math.sqrt(length)
        for t in range(at, at + length):
            played.append(float(learner.decision[0]))
            expected.append(u)
            learner.observe(rows[t], float(offsets[t]))
            points.append(w)
            # The loss is |row * x - offset|.
            w = min(1.0, max(-1.0, w - step * float(rows[t, 0]) * math.copysign(1.0, rows[t, 0] * w - offsets[t])))
        at, u = at + length, float(np.mean(points))
    assert played == pytest.approx(expected, abs=1e-12)
    assert learner.switches == 2


@pytest.mark.parametrize("mean", [0.0, 0.03, 0.3])
def test_expected_regret_of_independent_losses_and_a_stream_that_breaks_it(mean):
    plan = plan_independent(rt.Interval(-1.0, 1.0), 4000, 1.0)
    found = [float(AveragedDescent(plan, rt.Linear()).observe_many(signs(s, 4000, mean)).regret()) for s in range(60)]
    assert np.mean(found) + 5 * np.std(found) / math.sqrt(60) <= plan.regret_bound
    # A law that changes between epochs: what was learnt is wrong in every epoch, and regret is of the order of T.
    turns = np.concatenate([np.full(length, (-1.0) ** k) for k, length in enumerate(plan.lengths)])[:, None]
    wrong = AveragedDescent(plan, rt.Linear()).observe_many(turns).regret()
    assert float(wrong) > 2 * plan.regret_bound


def exact_regret(losses, chances, lengths, R=1.0):
    """Return the expected regret for linear losses with these chances on a ball, by listing all sequences; G = 1."""
    all_of_them = np.array(list(itertools.product(range(len(losses)), repeat=sum(lengths))))
    rows, weights = losses[all_of_them], chances[all_of_them].prod(axis=1)
    u = np.zeros_like(rows[:, 0])
    paid, at = np.zeros(len(rows)), 0
    for length in lengths:
        w, points = np.zeros_like(u), np.zeros_like(u)
        for t in range(at, at + length):
            paid += (rows[:, t] * u).sum(axis=1)
            points += w
            w = w - R / math.sqrt(length) * rows[:, t]
            w *= np.minimum(1.0, R / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), 1e-300))
        at, u = at + length, points / length
    return float(weights @ (paid + R * np.linalg.norm(rows.sum(axis=1), axis=1)))


def test_no_law_of_few_losses_breaks_the_bound_and_half_of_it_would_not_do():
    """Two losses on a line, three in the plane, all sequences of up to ten and seven rounds in any epochs."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(300):
        d = int(rng.integers(1, 3))
        T = int(rng.integers(1, 11 if d == 1 else 8))
        cuts = np.unique(rng.integers(1, T + 1, size=rng.integers(0, 4)))
        lengths = tuple(int(n) for n in np.diff([0, *cuts[cuts < T], T]))
        losses = rng.normal(size=(d + 1, d))
        losses /= np.linalg.norm(losses, axis=1, keepdims=True)
        losses *= rng.choice([1.0, 1.0, 0.3], size=(d + 1, 1))
        plan = IndependentPlan(rt.Ball(d), T, 1.0, lengths=lengths)
        found = exact_regret(losses, rng.dirichlet(np.full(d + 1, rng.choice([0.3, 1.0, 5.0]))), lengths)
        assert found <= plan.regret_bound
        worst = max(worst, found / plan.regret_bound)
    assert worst > 0.7


def test_certificates_do_not_rise_with_switches_and_few_are_enough():
    bounds = [plan_independent(rt.Ball(2), 10**6, 1.0, max_switches=S).regret_bound for S in range(14)]
    assert all(b <= a for a, b in itertools.pairwise(bounds))
    free = plan_independent(rt.Ball(2), 10**6, 1.0)
    assert free.max_switches <= math.log2(10**6)
    assert free.regret_bound < 4.4 * 1000
    assert bounds[0] == 10**6 + 10**3


def test_refusals():
    with pytest.raises(ValueError, match="lengths must add up to the horizon of 10"):
        IndependentPlan(rt.Ball(2), 10, 1.0, lengths=(3, 3))
    plan = plan_independent(rt.Ball(2), 10, 1.0)
    custom = rt.Custom(lambda x, item: 0.0, lambda x, item: np.zeros(2))
    with pytest.raises(ValueError, match="hidden points"):
        AveragedDescent(plan, custom)
