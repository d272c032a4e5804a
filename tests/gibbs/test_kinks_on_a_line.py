"""Sums of piecewise quadratic losses on an interval, against exact fractions (docs/theory, Q12).

Found in review: the breaks of a narrow Huber loss on the two sides of an end of the interval were no pair, and its
slope was what rounding left of their distance; and sums over breaks were reckoned from one of them, in plain products,
so that one changed round moved what all others say.
"""

from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._kinks import _NARROW, _index, _sum_at

LINE = rt.Interval(-1.0, 1.0)
POINTS = [-0.95, -0.7193, -0.3, 0.1, 0.8371, 0.95]


def sums(loss, features, targets, points=POINTS):
    """What the sampler takes for value and slope of the sum of the losses, at points of the interval [-1, 1]."""
    measure = rt.Gibbs(LINE, loss, beta=1.0, lam=0.0)
    measure.observe_many(np.asarray(features)[:, None], np.asarray(targets))
    sampler = measure._sampler("line")
    parts = sampler.parts(1000)
    _index(parts, len(features))
    args = parts.base, parts.breaks, parts.prefix, parts.starts[: parts.counts[0] + 1]
    return np.array([_sum_at(args, x) for x in points])


def exact(loss, features, targets, points=POINTS):
    """The same for a Huber loss, in fractions; equal rows are looked at once."""
    width = Fraction(loss.width)
    rows, counts = np.unique(np.stack([features, targets], axis=1), axis=0, return_counts=True)
    found = []
    for x in map(Fraction, points):
        value = slope = Fraction(0)
        for (a, y), count in zip(rows.tolist(), counts.tolist(), strict=True):
            m = Fraction(a) * x - Fraction(y)
            inner = min(abs(m), width)
            value += count * inner * (abs(m) - inner / 2)
            slope += count * Fraction(a) * min(max(m, -width), width)
        found.append((value, slope))
    return found


def errors(loss, features, targets, points=POINTS):
    """How far differences of values and slopes are off, for each round, in units of its steepest slope."""
    steepest = loss.width * np.abs(features).max() * len(features)
    made, true = sums(loss, features, targets, points), exact(loss, features, targets, points)
    values = [
        float(Fraction(v) - Fraction(made[0, 0]) - (w - true[0][0]))
        for v, (w, _) in zip(made[:, 0], true, strict=False)
    ]
    slopes = [float(Fraction(v) - w) for v, (_, w) in zip(made[:, 1], true, strict=False)]
    return np.abs(values).max() / steepest, np.abs(slopes).max() / steepest


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-15, 3e-16, 1.5e-16])
@pytest.mark.parametrize("feature", [1.0, -1.0])
@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_a_quadratic_part_across_an_end_of_the_interval(end, feature, width):
    features = np.full(3000, feature)
    targets = np.append(np.full(2999, feature * end), 0.9)
    value, slope = errors(rt.Huber(width), features, targets, [-0.85, -0.3, 0.3, 0.85])
    assert max(value, slope) < 2.0**-44


def test_one_changed_round_moves_an_interval_by_what_it_says():
    """Rows across the end are the mass, one more row is near either end: draws of the two worlds must be alike."""
    width, n = 1e-14, 5000
    base = np.concatenate([np.full(n, -1.0), np.full(n, 0.837)])
    shares = []
    for changed in (0.9, -0.999):
        measure = rt.Gibbs(LINE, rt.Huber(width), beta=0.01 / width, lam=0.0, lipschitz=width)
        measure.observe_many(np.ones((2 * n + 1, 1)), np.append(base, changed))
        shares.append((measure.draws_in_chart(np.random.default_rng(1), 4000) > 0).mean())
    # The sum of the others is flat between its two targets; a round tilts by exp(0.02) at most.
    assert shares == pytest.approx([0.459] * 2, abs=0.05)


@pytest.mark.parametrize("n", [20_000, 200_000])
@pytest.mark.parametrize("wider", [1.01, 3.0, 1e3, 1e6])
def test_narrow_quadratic_parts_that_stay_are_added_up_to_the_last_digits(wider, n):
    width = wider * _NARROW
    targets = np.concatenate([np.full(n // 2, 0.8371), np.full(n // 2, -0.7193), [0.9]])
    value, slope = errors(rt.Huber(width), np.ones(n + 1), targets, [-0.95, -0.3, 0.1, 0.6, 0.95])
    assert max(value, slope) < 2.0**-44


def test_sums_in_plain_products_are_off_by_more():
    """The negative control: what the sums were."""
    k, origin, bend = 0.8371, -0.7193, 2.0 / (1.01 * _NARROW)
    begin, end = (k - _NARROW) - origin, (k + 0.01 * _NARROW) - origin
    jumps = np.array([bend, -bend] * 1000)
    places = np.array([begin, end] * 1000)
    w = 0.95 - origin
    slope = jumps.sum() * w - (jumps * places).sum()
    right = 1000 * bend * float(Fraction(end) - Fraction(begin))
    assert abs(slope - right) / 2000 > 2.0**-40


def test_rows_near_or_across_ends_in_any_number():
    rng = np.random.default_rng(3)
    for width in 2.0 ** -rng.integers(2, 60, 40):
        features = rng.choice([-1.0, 1.0], 60)
        near = rng.choice([-1.0, 1.0, 0.3], 60) + rng.choice([0.0, 0.5, 0.999, -1.0, 1.0, 2.0], 60) * width
        value, slope = errors(rt.Huber(width), features, features * near, [-0.9, -0.4, 0.1, 0.25, 0.9])
        assert max(value, slope) < 2.0**-44, width


def test_a_merged_row_is_another_loss_by_little():
    """Below the limit a row is one kink: less than a quarter of the distance of its breaks times its slope off."""
    width = 0.4 * _NARROW
    value, _ = errors(rt.Huber(width), np.ones(1), np.array([0.1]), [-0.5, 0.1, 0.4])
    assert value <= 2 * width / 4 * 1.001
