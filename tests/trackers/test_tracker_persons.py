"""Trackers of persons: the first values of each count, and no person moves a release by more than epsilon."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import reticent as rt

MAKERS = {
    "quantile": lambda **options: rt.PrivateQuantile(0.5, 0.0, 1.0, 1.0, seed=1, **options),
    "quantiles": lambda **options: rt.PrivateQuantiles((0.5, 0.9), 0.0, 1.0, 1.0, seed=1, **options),
    "mean": lambda **options: rt.PrivateMean(0.0, 1.0, 1.0, seed=1, **options),
}


@pytest.mark.parametrize("name", MAKERS)
def test_values_beyond_the_cap_are_rounds_without_a_value(name, tmp_path):
    rng = np.random.default_rng(0)
    values, keys = rng.random(700), rng.integers(0, 90, size=700)
    many, one = (MAKERS[name](max_rows=3, window=50) for _ in range(2))
    many.update_many(values, persons=keys)
    for i in range(700):
        one.update(values[i], person=keys[i])
        if i == 333:
            one.save(tmp_path / "state")
            one = rt.load(tmp_path / "state")
    assert one.value == many.value
    assert one.rounds == many.rounds == 700
    assert one.learner.roll.left_out == many.learner.roll.left_out > 0
    assert one.learner._waiting == pytest.approx(many.learner._waiting, nan_ok=True)
    assert many.learner.budget == Fraction(1, 3)
    assert many.spent() == 1.0
    assert "any one person" in many.plan.explain()
    assert "first 3 values" in str(many.plan)


def test_a_person_moves_sums_by_no_more_than_epsilon():
    """All streams of two persons in two windows of two values: sums of the program, and their exact noise."""
    epsilon, cap = 1.0, 2
    low, high = 0.0, 1.0
    for keys in itertools.product("ab", repeat=4):
        worst = 0.0
        for other in itertools.product((low, high), repeat=4):
            sums = []
            for mine in (low, high):
                tracker = rt.PrivateMean(low, high, epsilon, max_rows=cap, window=2, seed=1)
                totals = []
                windows = tracker.learner
                windows._release = lambda values, totals=totals: (
                    totals.append(np.nansum(2 * values - 1) * 2**20) or False
                )
                given = [mine if key == "a" else value for key, value in zip(keys, other, strict=True)]
                tracker.update_many(given, persons=list(keys))
                sums.append(totals)
            rate = float(tracker.learner.rate)
            worst = max(worst, sum(rate * abs(x - y) for x, y in zip(*sums, strict=True)))
        assert worst <= epsilon * (1 + 1e-12)
        assert worst == pytest.approx(epsilon * min(keys.count("a"), cap) / cap)


def test_without_the_cap_a_person_with_more_values_costs_more():
    tracker = rt.PrivateMean(0.0, 1.0, 1.0, window=2, seed=1)
    assert 4 * float(tracker.learner.rate) * 2 * 2**20 == pytest.approx(4.0)  # four values: four times epsilon


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_not_given_or_not_asked_for_is_refused(name):
    tracker, plain = MAKERS[name](max_rows=2), MAKERS[name]()
    for call, words in (
        (lambda: tracker.update(0.5), "must be given"),
        (lambda: tracker.update_many([0.5]), "must be given"),
        (lambda: tracker.update(0.5, person=None), "got none at index 0"),
        (lambda: tracker.update_many([0.5, 0.5], persons=["a"]), "one key for each of the 2 values, got 1"),
        (lambda: plain.update(0.5, person="a"), "max_rows="),
        (lambda: tracker.update(math.nan, person="a"), "must not be missing"),
        (lambda: MAKERS[name](max_rows=0), "max_rows must be"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert tracker.rounds == plain.rounds == 0
    assert not tracker.learner.roll.counts


def test_persons_are_not_for_trackers_with_a_horizon():
    with pytest.raises(ValueError, match="max_rows=2"):
        rt.PrivateMean(0.0, 1.0, 1.0, 1e-6, horizon=100, max_rows=2)
    with pytest.raises(ValueError, match="max_rows=2"):
        rt.PrivateQuantile(0.5, 0.0, 1.0, 1.0, 1e-6, horizon=100, max_rows=2)
