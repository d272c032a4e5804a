"""Sums over a batch, for coins: one changed round moves them by no more than accounts charge (docs/theory, Q12)."""

from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent.systems._grid import stretch
from reticent.systems.experts._kernel import dartboard
from reticent.systems.perturbed._kernel import absorb

ROUNDS = 1 << 20


def excess(ours, theirs):
    """By how much a sum that should move by 1 moves more, or less."""
    return abs(float(Fraction(float(ours)) - Fraction(float(theirs)) - 1))


def own_loss(first):
    """What the expert in play has lost in a batch that is not over."""
    small = 2.0**-53 * (1 + 2.0**-20)  # lost beside 1, kept beside 0
    rows = np.full((ROUNDS, 2), small)
    rows[0] = first
    own, state, after = np.zeros(2), np.array([0, 0, 0]), np.empty(ROUNDS, dtype=np.int64)
    rng = np.random.default_rng(1)
    dartboard(rng, 1.0, 0.1, 2 * ROUNDS, 5, rows, np.zeros(2), np.zeros(2), state, own, after)
    return own[0], np.cumsum(rows[:, 0])[-1]


def linear_total(first):
    """The loss of a batch of gradients in the plane."""
    rows = np.zeros((ROUNDS, 2))
    rows[1 : ROUNDS // 2, 0], rows[ROUNDS // 2 :, 0] = 1.0, 2.0**-34 * (1 + 2.0**-15)
    rows[0, 0] = first
    domain, loss = rt.Ball(2), rt.Linear()
    total = loss.total(domain, loss.prepare(domain, rows, lipschitz=1.0), np.array([[1.0, 0.0]]))
    return total[0], np.cumsum(rows[:, 0])[-1]


def noise_left(first):
    """The random term of a perturbed leader after rounds that it has taken in."""
    small = -(2.0**-44) * (1 + 2.0**-6)
    Z, rest = np.array([1023.5]), np.zeros(1)
    sums, bends = (Z, np.zeros(1), rest, np.zeros(1)), tuple(np.zeros((1, 1)) for _ in range(4))
    state = (np.zeros(1), np.ones(1, dtype=np.bool_), sums, bends)
    counts, plain = np.array([0, 1 << 62, 0]), np.float64(1023.5)
    fixed = (rt.Interval(-1.0, 1.0).body, 1.0, 1000.0, (1.0, 0.5, 0.5, 0.5), 1 << 61)
    for gradient in (-first, *[small] * 20_000):
        absorb(*fixed, np.array([gradient]), False, np.zeros((1, 1)), state, np.zeros(1), counts, np.zeros(1))
        plain -= gradient
    return Z[0], plain


@pytest.mark.parametrize("attack", [own_loss, linear_total, noise_left])
def test_one_round_moves_sums_over_a_batch_by_itself(attack):
    (ours, plain), (theirs, other) = attack(1.0), attack(0.0)
    assert excess(ours, theirs) <= stretch(ROUNDS) - 1
    assert excess(plain, other) > 1e-10  # the negative control: added up one after the other
