"""One changed round moves what a learner has summed up by what it should, however much there is (docs/theory, Q12)."""

import numpy as np
import pytest

import reticent as rt
from reticent.losses import Rows
from reticent.systems._decider import Changes
from reticent.systems.experts._learner import Dartboard

# After 4e8 rounds a sum of 2^28 has a unit of 2^-24 above, and of 2^-25 below: rounds of -2^-25 are ties above, which
# all go to the even neighbour, and are counted below. One round of 1 or -1 decides; 2^27 such rounds made 6 out of 2.
# Here the same in numbers 2^25 times as large, and with fewer rounds.
START, LEFT = 2.0**53, 1000
PLAN = rt.Plan(rt.Interval(-1.0, 1.0), 10_000, 1.0, beta=1e-6, lam=30.0, p=0.0, phi=1.0001)


def rounds(first):
    """The changed round, then many of half a unit."""
    return np.concatenate([[first], np.full(LEFT, -1.0)])[:, None]


def plain(first):
    total = START
    for x in rounds(first).ravel():
        total += x
    return total


def linear(first):
    walk = rt.make(PLAN, rt.Linear(), seed=1)._walk
    walk._totals[0] = START
    walk.take(Rows(rounds(first), np.zeros(1 + LEFT)), Changes())
    return walk._totals[0, 0]


def measured(first):
    measure = rt.Gibbs(PLAN.domain, rt.Linear(), beta=1.0, lam=1.0)
    measure._history.total[:] = START
    measure.add(Rows(rounds(first), np.zeros(1 + LEFT)))
    return measure._history.total[0]


def kept(first):
    measure = rt.Gibbs(PLAN.domain, rt.Absolute(), beta=1.0, lam=1.0)
    measure._history.summary.gradient[:] = START
    measure.add(Rows(rounds(first), np.full(1 + LEFT, 2.0)))
    return measure._history.summary.gradient[0]


def leading(first):
    plan = rt.planning.plan_ftrl(PLAN.domain, 10_000, 4.0, 1.0, 1e-6, batch=10_000)
    walk = rt.make(plan, rt.Linear(), seed=1)._walk
    walk.total[0] = START
    walk.take(Rows(rounds(first), np.zeros(1 + LEFT)), Changes())
    return walk.total[0, 0]


def approximate(first):
    plan = rt.planning.plan_approximate_leader(PLAN.domain, 10_000, 4.0, 1.0, 1e-6)
    walk = rt.make(plan, rt.Linear(), seed=1)._walk
    walk.total[0] = START
    walk.take(Rows(rounds(first), np.zeros(1 + LEFT)), Changes())
    return walk.total[0, 0]


def drawn(first):
    walk = Dartboard(2, np.random.default_rng(1), beta=1e-20, p=0.0)
    walk.sums[:] = START
    walk.take(Rows(np.repeat(rounds(first), 2, axis=1), np.zeros(1 + LEFT)), Changes())
    return walk.sums[0]


@pytest.mark.parametrize("total", [linear, measured, kept, leading, approximate, drawn])
def test_one_round_moves_a_large_sum_by_its_own_size(total):
    # 4 and -4 differ by 8; a unit more or less is the rounding of the end result.
    assert abs(total(4.0) - total(-4.0) - 8.0) <= 2.0
    assert abs(total(4.0) - START - 4.0 + LEFT) <= 2.0


def test_a_plain_sum_does_not():
    assert plain(4.0) - plain(-4.0) == 8.0 + LEFT  # the negative control
