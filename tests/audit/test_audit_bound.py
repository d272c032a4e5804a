"""The audit's statistics: limits against scipy's, and the promise that a lower bound is too high rarely."""

import numpy as np
import pytest
from scipy import stats

from reticent.audit._audit import Event, choose, examine, implied, lower_limit, train, upper_limit
from reticent.privacy._losses import hockey_stick

ALPHA = 1e-6  # significance of every single test
MISS = 0.05


@pytest.mark.parametrize(("count", "runs"), [(0, 7), (1, 10), (5, 10), (9, 10), (10, 10), (37, 5000)])
def test_limits_are_those_of_clopper_and_pearson(count, runs):
    for miss in (0.025, 0.001):
        interval = stats.binomtest(count, runs).proportion_ci(1 - 2 * miss, method="exact")
        assert lower_limit(count, runs, miss) == pytest.approx(interval.low, abs=1e-12)
        assert upper_limit(count, runs, miss) == pytest.approx(interval.high, abs=1e-12)


def test_the_epsilon_of_counts():
    low = stats.beta.ppf(0.025, 300, 701)
    high = stats.beta.ppf(0.975, 41, 960)
    assert implied(300, 40, 1000, 0.01, MISS) == pytest.approx(np.log((low - 0.01) / high))
    assert implied(40, 300, 1000, 0.01, MISS) == 0  # nothing is forced


def test_either_direction_is_found():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0, 1, (2, 4000))
    theirs[:400] = -5.0  # only the second world is ever far to the left
    event = choose(ours, theirs, 1e-3, MISS)
    assert event.sign == -1
    assert 4.0 < event.threshold <= 5.0
    assert examine(event, ours, theirs, 1e-3, MISS).epsilon > 3


def repeated(mu, delta, split, miss, times=400, runs=400):
    """How often, of so many audits of two normal laws, the lower bound is above the truth."""
    truth = 0.0
    if hockey_stick(mu, 0.0) > delta:
        grid = np.linspace(0, 6, 6001)
        truth = float(grid[np.argmax(hockey_stick(mu, grid) <= delta)])
    rng = np.random.default_rng([7, int(10 * mu)])
    wrong = 0
    for _ in range(times):
        ours, theirs = rng.normal(mu, 1, runs), rng.normal(0, 1, runs)
        half = runs // 2
        event = choose(ours[:half], theirs[:half], delta, miss)
        second = (ours[half:], theirs[half:]) if split else (ours[:half], theirs[:half])
        wrong += examine(event, *second, delta, miss).epsilon > truth
    return stats.binom.sf(wrong - 1, times, miss)


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0])
def test_the_bound_is_too_high_no_oftener_than_stated(mu):
    for miss in (MISS, 0.5):
        assert repeated(mu, 0.01, True, miss) > ALPHA


def test_choosing_and_counting_on_the_same_runs_would_be_wrong_too_often():
    # Two equal laws, where the best of many thresholds looks like something: with half of the runs it must not.
    assert repeated(0.0, 1e-9, False, 0.5) < ALPHA
    assert repeated(0.0, 1e-9, True, 0.5) > ALPHA


def test_ties_do_not_matter():
    rng = np.random.default_rng(3)
    ours, theirs = rng.binomial(1, 0.6, 4000).astype(float), rng.binomial(1, 0.2, 4000).astype(float)
    event = choose(ours, theirs, 0.01, MISS)
    found = examine(event, ours, theirs, 0.01, MISS)
    assert np.log(0.59 / 0.2) - 0.15 < found.epsilon < np.log(0.59 / 0.2) + 0.05
    assert examine(Event(1, 0.5), ours, theirs, 0.01, MISS) == found


def test_a_trained_score_finds_the_direction_and_ignores_constants():
    rng = np.random.default_rng(4)
    direction = np.array([1.0, -2.0, 0.0])
    ours = np.column_stack([rng.normal(0.3 * direction, 1, (4000, 3)), np.ones(4000)])
    theirs = np.column_stack([rng.normal(-0.3 * direction, 1, (4000, 3)), np.ones(4000)])
    score = train(ours, theirs)
    slopes = score.weights[:3] / score.scale[:3]
    assert slopes @ direction / np.linalg.norm(slopes) / np.linalg.norm(direction) > 0.99
    assert np.isfinite(score(ours)).all()
