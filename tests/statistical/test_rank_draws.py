"""Draws by ranks, coins and two-sided geometric noise have the laws that they claim (significance 1e-6 each)."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import reticent as rt
from reticent._core._bits import Bits
from reticent.trackers._exact import _SURE, bounds, coins, two_sided_geometric
from reticent.trackers._ranks import distances, drawn_cell

LEVEL = 1e-6
COUNTS = np.array([2, 0, 5, 1, 0, 4, 3, 0])


def law(rate):
    """Return the chance of each cell, by quadrature; see tests/theory/test_windows_privacy.py."""
    p = np.exp(-rate * distances(COUNTS, Fraction(3, 4)))
    x, w = np.polynomial.legendre.leggauss(p.size)
    others = [np.prod([1 - q + q * (x + 1) / 2 for j, q in enumerate(p) if j != i], axis=0) for i in range(p.size)]
    return np.array([p[i] * float(w / 2 @ others[i]) for i in range(p.size)])


def test_drawn_cells_have_their_law():
    rng, runs = np.random.default_rng(1), 40_000
    drawn = np.bincount([drawn_cell(COUNTS, Fraction(3, 4), Fraction(1), rng) for _ in range(runs)], minlength=8)
    assert chisquare(drawn, runs * law(1 / 8)).pvalue > LEVEL
    assert chisquare(drawn, runs * law(1.1 / 8)).pvalue < LEVEL, "a rate that is 10 percent off must be seen"


@pytest.mark.parametrize("sure", [_SURE, 2.0])
def test_coins_have_their_chances(sure):
    """With sure=2 every coin is decided in integers, further digits of the uniform variable included."""
    rng, runs = np.random.default_rng(2), 20_000 if sure < 1 else 2_000
    sizes = np.repeat([0, 1, 3, 40], runs)
    heads = coins(rng, sizes, Fraction(1, 3), sure=sure).reshape(4, runs).sum(axis=1)
    assert heads[0] == runs
    for size, found in zip((1, 3, 40), heads[1:], strict=True):
        p = math.exp(-size / 3)
        assert abs(found - runs * p) < 4.9 * math.sqrt(runs * p * (1 - p)) + 1
    wrong = math.exp(-1.5 / 3)
    assert abs(heads[1] - runs * wrong) > 4.9 * math.sqrt(runs * wrong * (1 - wrong))


def test_both_ways_decide_alike():
    sizes = np.arange(400)
    one, two = (coins(np.random.default_rng(3), sizes, Fraction(1, 60), sure=sure) for sure in (_SURE, 2.0**-20))
    assert np.array_equal(one, two)


def test_bounds_of_the_exponential():
    getcontext().prec = 80
    for x in (Fraction(1, 3), Fraction(7), Fraction(123456789, 1000), Fraction(1, 10**9), Fraction(0.1)):
        low, high = bounds(x, 120)
        true = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**120
        assert low <= true <= high <= low + 2


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(3, 2), Fraction(0.3)])
@pytest.mark.parametrize("word", [3, 62])
def test_noise_is_two_sided_geometric(rate, word):
    source, runs = Bits(np.random.default_rng(4), word=word), 12_000
    found = np.array([two_sided_geometric(source, rate) for _ in range(runs)])
    most = math.ceil(4 / float(rate))

    def expected(a):
        inner = np.exp(-a * np.abs(np.arange(-most, most + 1))) * math.tanh(a / 2)
        return runs * np.array([(1 - inner.sum()) / 2, *inner, (1 - inner.sum()) / 2])

    drawn = np.bincount(np.clip(found, -most - 1, most + 1) + most + 1, minlength=2 * most + 3)
    assert chisquare(drawn, expected(float(rate))).pvalue > LEVEL
    assert chisquare(drawn, expected(1.1 * float(rate))).pvalue < LEVEL


def naive(values, level, epsilon, low, high, rng):
    """Draw from between two neighbouring values, with a weight in proportion to their distance: blind to ties."""
    ends = np.array([low, *np.sort(values), high])
    logs = -epsilon / 2 * np.abs(np.arange(values.size + 1) - level * values.size)
    weights = np.exp(logs - logs.max()) * np.diff(ends)
    i = rng.choice(weights.size, p=weights / weights.sum())
    return ends[i] + rng.random() * (ends[i + 1] - ends[i])


def test_ties_break_the_naive_form_only():
    rng, values = np.random.default_rng(5), np.full(1_000, 260.0)
    assert np.mean([naive(values, 0.95, 1.0, 0.0, 1000.0, rng) for _ in range(200)]) > 500
    tracker = rt.PrivateQuantile(0.95, 0.0, 1000.0, epsilon=1.0, seed=1)
    tracker.update_many(np.full(20_000, 260.0))
    assert tracker.value == pytest.approx(260.0, abs=1.0)


def told(values, other, cell, monkeypatch, factor=1):
    """Attack a tracker of windows of two values: return a lower bound on epsilon, from the chance of one cell."""
    windows, found = 8_000, []
    for pair in (values, other):
        tracker = rt.PrivateQuantile(0.5, 0.0, 10.0, epsilon=1.0, window=2, cells=10, seed=7)
        tracker.learner.memory.take = (seen := []).append
        with monkeypatch.context() as patch:
            patch.setattr(type(tracker.learner), "budget", property(lambda _: Fraction(factor)))
            tracker.update_many(np.tile(pair, windows))
        found.append(sum(one == cell + 0.5 for one in seen))
    rare, often = sorted(found)
    # Bounds of 4.9 deviations on both counts.
    return math.log((often - 4.9 * math.sqrt(often)) / (rare + 4.9 * math.sqrt(rare) + 12))


def test_attack_on_a_tracker_finds_less_than_epsilon_and_a_broken_one_is_caught(monkeypatch):
    """The sharp pair of windows of docs/theory, R11: six cells between x and y, one to z."""
    pairs = [0.5, 7.5], [7.5, 9.5]
    assert 0.3 < told(*pairs, 8, monkeypatch) < 1.0
    assert told(*pairs, 8, monkeypatch, factor=3) > 1.0
