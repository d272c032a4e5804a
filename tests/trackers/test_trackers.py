"""Trackers: close to the truth, private as planned, and clear about bad values."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import reticent as rt

DELTA = 1e-6


def quantile(horizon=2_000, seed=1, q=0.5, low=0.0, high=1.0, **options):
    return rt.PrivateQuantile(q, low, high, horizon, 3.0, DELTA, seed=seed, **options)


def mean(horizon=2_000, seed=1, low=0.0, high=1.0, **options):
    return rt.PrivateMean(low, high, horizon, 3.0, DELTA, seed=seed, **options)


MAKERS = pytest.mark.parametrize("make", [quantile, mean])


@pytest.mark.parametrize(("system", "off"), [("P-COMW", 0.06), ("DP-FTRL", 0.04)])
def test_quantile_finds_the_quantile(system, off):
    rng = np.random.default_rng(0)
    tracker = quantile(20_000, q=0.8, low=-10.0, high=10.0, system=system)
    tracker.update_many(rng.uniform(-5.0, 5.0, size=20_000))
    assert tracker.average == pytest.approx(3.0, abs=20 * off)
    assert tracker.low <= tracker.value <= tracker.high
    assert 0 < tracker.spent() <= 3.0


@pytest.mark.parametrize("system", ["P-COMW", "DP-FTRL"])
def test_average_is_the_mean_of_what_was_in_play(system):
    values = np.random.default_rng(0).uniform(size=500)
    tracker = quantile(500, system=system)
    shown = []
    for value in values:
        shown.append(tracker.value)
        tracker.update(value)
    assert len(set(shown)) > 5
    assert tracker.average == pytest.approx(np.mean(shown), rel=1e-12)


def test_best_system_has_a_certificate_no_worse():
    best, plain = quantile(1_000, system="best").plan, quantile(1_000, system="P-COMW").plan
    assert best.regret_bound <= plain.regret_bound


@pytest.mark.parametrize("horizon", [10, 1_000])
def test_mean_is_as_close_as_it_says(horizon):
    """Sixty runs: the error has the deviation that is claimed (the mean square within 5 of its own deviations)."""
    values = np.random.default_rng(0).uniform(0.2, 0.5, size=horizon)
    errors = []
    for seed in range(60):
        tracker = mean(horizon, seed=seed)
        tracker.update_many(values)
        # What the mean is drawn to the middle by is known, and no noise.
        drawn = tracker.deviation * tracker.rounds / tracker._noise
        errors.append((tracker.value - 0.5 - drawn * (values.mean() - 0.5)) / tracker.deviation)
    assert abs(np.mean(np.square(errors)) - 1) < 5 * math.sqrt(2 / 60)


def test_mean_improves_like_one_over_the_rounds():
    tracker = mean(10_000)
    deviations = []
    for _ in range(4):
        tracker.update_many(np.full(2_500, 0.3))
        deviations.append(tracker.deviation)
    assert deviations[3] < 0.3 * deviations[0]
    assert tracker.value == pytest.approx(0.3, abs=6 * tracker.deviation)


def test_first_means_are_drawn_to_the_middle():
    for seed in range(20):
        tracker = mean(10_000, seed=seed, low=-1.0, high=3.0)
        assert tracker.value == 1.0
        tracker.update(3.0)
        assert tracker.value == pytest.approx(1.0, abs=0.5)
        assert tracker.deviation < 0.2


def lazy(**options):
    return quantile(system="P-COMW", **options)


@pytest.mark.parametrize("make", [quantile, lazy, mean])
def test_one_at_a_time_is_the_same_to_the_last_bit(make):
    values = np.random.default_rng(2).normal(0.5, 1.0, size=300)
    one, many = make(), make()
    for value in values:
        one.update(value)
    many.update_many(values[:1])
    many.update_many(values[1:200].tolist())
    many.update_many([])
    many.update_many(values[200:])
    assert one.value == many.value
    assert one.rounds == many.rounds == 300
    assert one.spent() == many.spent() > 0
    if make is not mean:
        assert one.average == many.average


@MAKERS
def test_values_beyond_the_bounds_count_as_the_bounds(make):
    values = np.array([-5.0, 0.2, 7.0, math.inf, -math.inf])
    a, b = make(), make()
    a.update_many(values)
    b.update_many(np.clip(values, 0.0, 1.0))
    a.update(np.int64(9))
    b.update(1)
    assert a.value == b.value


@MAKERS
def test_what_is_not_a_number_is_refused_and_changes_nothing(make):
    tracker = make()
    tracker.update(0.4)
    for bad, words in [
        (math.nan, "must not be missing, got nan"),
        ("0.5", "must be real numbers that fit into double precision, got a str"),
        (None, "must not be missing, got nan"),
        (1j, "must be real numbers"),
        ([0.1, 0.2], "use update_many"),
    ]:
        with pytest.raises(ValueError, match=words):
            tracker.update(bad)
    with pytest.raises(ValueError, match="got nan at index 1; leave no round out"):
        tracker.update_many([0.1, math.nan])
    with pytest.raises(ValueError, match="one-dimensional"):
        tracker.update_many([[0.1]])
    assert tracker.rounds == 1


@MAKERS
def test_rounds_beyond_the_horizon_are_refused(make):
    tracker = make(3)
    tracker.update_many([0.1, 0.2])
    with pytest.raises(ValueError, match="2 more rounds were given"):
        tracker.update_many([0.1, 0.2])
    tracker.update(0.3)
    with pytest.raises(ValueError, match="nothing was recorded"):
        tracker.update(0.3)
    assert tracker.rounds == 3


@MAKERS
def test_tracker_says_where_it_stands_and_moves_by_pickle(make):
    tracker = make(50)
    tracker.update_many(np.linspace(0, 1, 20))
    assert "after 20 rounds of 50, epsilon 3, delta 1e-06" in repr(tracker)
    assert tracker.plan.epsilon == 3.0
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(tracker)
    other = pickle.loads(pickle.dumps(tracker))
    for t in (tracker, other):
        t.update_many(np.linspace(0, 1, 30))
    assert other.value == tracker.value


def test_system_by_default():
    assert isinstance(quantile(100).learner, rt.learners.DPFTRL)
    assert isinstance(quantile(100, system="P-COMW").learner, rt.PCOMW)


def test_quantile_without_a_horizon_runs_epochs():
    tracker = quantile(None, system="P-COMW")
    tracker.update_many(np.full(1_500, 0.3))
    assert tracker.learner.epoch == 1
    assert "1500 rounds, epsilon" in repr(tracker)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rt.PrivateQuantile(1.5, 0, 1, 100, 1.0, DELTA), "must lie strictly between 0 and 1, got 1.5"),
        (lambda: rt.PrivateQuantile(0.5, 1, 0, 100, 1.0, DELTA), "low must be less than high"),
        (lambda: rt.PrivateQuantile(0.5, 0, math.inf, 100, 1.0, DELTA), "high must be finite"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 100, 0.0, DELTA), "epsilon must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 100, 1.0, 0.0), "delta must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 0, 1.0, DELTA), "horizon must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 100, 1.0, DELTA, system="x"), "system must be one of 'DP-FTRL'"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, None, 1.0, DELTA, system="best"), "horizon must be a number of rounds"),
        (lambda: rt.PrivateMean(0, 1, 10.5, 1.0, DELTA), "horizon must be a whole number"),
        (lambda: rt.PrivateMean(0, 1, 100, -1.0, DELTA), "epsilon must be"),
    ],
)
def test_bad_goals_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_event_of_the_mean_is_the_gaussian_of_its_account():
    from dp_accounting.pld import PLDAccountant

    event = mean().plan.dp_event()
    assert PLDAccountant().compose(event).get_epsilon(DELTA) == pytest.approx(3.0, rel=1e-3)


def random_bounds(count):
    """Bounds of all sizes, some of them so far from zero that their middle is rounded."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        low = rng.normal() * 10.0 ** rng.integers(-6, 12)
        yield low, low + max(abs(low), 1e-6) * 10.0 ** rng.uniform(-12, 2)


@pytest.mark.parametrize("ends", [(1075003.2662960542, 1075082.011191996), (1000.0, 1000.001), *random_bounds(40)])
def test_no_value_is_refused_whatever_the_bounds(ends):
    """Rounding of the middle made a bound farther from it than half the width: who has that value would show."""
    low, high = ends
    values = np.array([low, high, -math.inf, math.inf, *np.random.default_rng(1).uniform(low, high, size=4)])
    one, many = (mean(20, low=low, high=high) for _ in range(2))
    for value in values:
        one.update(value)
    many.update_many(values)
    assert one.value == many.value
    assert low <= one.value <= high


@pytest.mark.parametrize("ends", [(1075003.2662960542, 1075082.011191996), (1000.0, 1000.001), *random_bounds(4)])
@pytest.mark.parametrize("system", ["DP-FTRL", "P-COMW"])
def test_no_value_is_refused_by_a_quantile(ends, system):
    tracker = quantile(20, q=0.9, low=ends[0], high=ends[1], system=system)
    tracker.update_many([*ends, -math.inf, math.inf])
    assert tracker.low <= tracker.value <= tracker.high


@pytest.mark.parametrize("system", ["DP-FTRL", "P-COMW"])
def test_average_does_not_guess_what_was_in_play_behind_its_back(system):
    tracker = quantile(500, system=system)
    tracker.update_many(np.full(100, 0.9))
    assert 0 <= tracker.average <= 1
    tracker.learner.observe_many(np.ones(50), np.full(50, 0.9))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"50 of \d+ rounds went to tracker.learner directly; give all of them to"):
            _ = tracker.average
        tracker.update(0.9)
    assert tracker.rounds == 152
    assert 0 <= tracker.value <= 1


def test_a_mean_with_much_noise_is_on_a_grid_that_hides_its_last_bits():
    """With lam = horizon noise would be too large beside the steps of the grid (docs/theory, Q11)."""
    tracker = rt.PrivateMean(0, 1, 10, 0.01, DELTA, seed=1)
    tracker.update_many(np.full(10, 0.7))
    plan = tracker.plan
    assert plan.lam == plan.least_lam > 10
    assert plan.account().epsilon(DELTA) <= 0.01 * (1 + 1e-9)
    assert tracker.value == pytest.approx(0.5, abs=10 * tracker.deviation)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        replace(plan, lam=10.0)
