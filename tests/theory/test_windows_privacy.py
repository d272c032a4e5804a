"""Windows by brute force (docs/theory, R11): exact chances on all small windows, never above the bound, and sharp."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.trackers._ranks import distances, sensitivity

CELLS, SIZE = 4, 3
NOBODY = CELLS


def chances(off, rate):
    """Return the chance of each cell: heads there, and one over the heads, by quadrature of a polynomial.

    The mean of 1/(1 + S), S a sum of coins, is the integral of the product of 1 - p + p x over x from 0 to 1.
    """
    p = np.exp(-rate * np.asarray(off, dtype=float))
    x, w = np.polynomial.legendre.leggauss(CELLS)
    return [
        p[i] * float(w / 2 @ np.prod([1 - q + q * (x + 1) / 2 for j, q in enumerate(p) if j != i], axis=0))
        for i in range(p.size)
    ]


def enumerated(off, rate):
    """Return the same by adding up all outcomes of the coins."""
    p = np.exp(-rate * np.asarray(off, dtype=float))
    found = np.zeros(p.size)
    for heads in itertools.product([0, 1], repeat=p.size):
        if any(heads):
            chance = math.prod(q if h else 1 - q for q, h in zip(p, heads, strict=True))
            found += chance * np.array(heads) / sum(heads)
    return found


def counts(window):
    return np.bincount([v for v in window if v != NOBODY], minlength=CELLS).astype(np.int64)


def largest_loss(level, epsilon, neighbors, factor=1.0):
    """Return the largest log ratio of chances over all pairs of neighbouring windows, and all cells."""
    rate = factor * epsilon / float(2 * sensitivity(level, neighbors) * level.denominator)
    worst = 0.0
    for window in itertools.product(range(CELLS), repeat=SIZE):
        here = np.log(chances(distances(counts(window), level), rate))
        for other in range(CELLS) if neighbors == "replace" else [NOBODY]:
            there = np.log(chances(distances(counts((other, *window[1:])), level), rate))
            worst = max(worst, np.abs(here - there).max())
    return worst


def test_closed_form_of_chances_is_the_enumeration():
    for off in itertools.product(range(3), repeat=CELLS):
        if 0 in off:
            assert chances(off, 0.7) == pytest.approx(enumerated(off, 0.7), abs=1e-12)
            assert sum(chances(off, 0.7)) == pytest.approx(1.0)


@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), Fraction(1, 3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_window_tells_more_than_epsilon(level, epsilon, neighbors):
    assert epsilon / 3 < largest_loss(level, epsilon, neighbors) <= epsilon * (1 + 1e-12)


def sharp(cells, epsilon, factor=1.0):
    """Return the log ratio of the example in the proof: x, many cells, y, the cell in question, z."""
    p = math.exp(-factor * epsilon / 2)
    before = p / (cells + 3)  # heads at x, at y and at all cells between them, for certain
    # Afterwards y, the cell and z show heads; the many cells with chance p each: the mean of 1/(3 + binomial).
    k = np.arange(cells + 1)
    logs = np.array([math.lgamma(cells + 1) - math.lgamma(i + 1) - math.lgamma(cells - i + 1) for i in k])
    law = np.exp(logs + k * math.log(p) + (cells - k) * math.log1p(-p))
    return math.log(float(law @ (1 / (3 + k))) / before)


def test_bound_is_sharp_and_twice_the_rate_breaks_it():
    off = {"before": distances(np.array([1, 0, 0, 1, 0, 0]), Fraction(1, 2))}
    off["after"] = distances(np.array([0, 0, 0, 1, 0, 1]), Fraction(1, 2))
    assert off["before"].tolist() == [0, 0, 0, 0, 2, 2]  # in halves of ranks
    assert off["after"].tolist() == [2, 2, 2, 0, 0, 0]
    assert 0.98 < sharp(2_000, 1.0) <= 1.0
    assert sharp(2_000, 1.0, factor=2.0) > 1.5


def test_sums_and_counts():
    """Sums of three whole numbers up to 2 in size, with two-sided geometric noise: at most epsilon, and sharp."""
    epsilon, most = 0.8, 2
    rate, outputs = epsilon / (2 * most), np.arange(-60, 61)
    worst = 0.0
    for window in itertools.product(range(-most, most + 1), repeat=3):
        for other in range(-most, most + 1):
            total, changed = sum(window), sum(window[1:]) + other
            worst = max(worst, float(np.abs(rate * (np.abs(outputs - total) - np.abs(outputs - changed))).max()))
    assert worst == pytest.approx(epsilon)


def test_several_levels_add_up():
    """Two levels with half of epsilon each: the pair of draws tells at most epsilon."""
    levels, epsilon, worst = (Fraction(1, 2), Fraction(3, 4)), 1.0, 0.0
    for window in itertools.product(range(CELLS), repeat=SIZE):
        for other in range(CELLS):
            losses = []
            for level in levels:
                rate = epsilon / 2 / (2 * level.denominator)
                here, there = (
                    np.log(chances(distances(counts(w), level), rate)) for w in (window, (other, *window[1:]))
                )
                losses.append(here - there)
            worst = max(worst, float(np.abs(np.add.outer(*losses)).max()))
    assert epsilon / 3 < worst <= epsilon
