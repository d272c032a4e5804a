"""Privacy of persons with several rows (docs/theory, R14) by brute force: laws of all releases, and all places of rows.

Curves of two worlds are sums over all releases of three blocks on a coarse lattice, made by the program's own roll of
persons, open block and gate; they are compared with the curve of the Gaussian pair, in closed form.
"""

import itertools
import math

import numpy as np
import pytest
from test_gate_privacy import EPSILONS, coarse, curve, gaussian_curve, pmf

from reticent.systems._persons import Roll
from reticent.systems.filtered import _release
from reticent.systems.filtered._buffers import TABLE, Buffers
from reticent.systems.filtered._release import EpochRelease
from reticent.systems.gate._people import OpenBlock

SHIFT, SPAN, CLIP = 2, 40, 3
SHAPE = Buffers((0.21, 0.2), (0.3, 0.9))
ANN, BOB = 11, 12  # hashes of two persons


def sums_of(release, cap, *, clipped=True):
    """Return the rule of a run: from the rows of the blocks so far, pairs (person, steps), to the sums of blocks."""

    def rule(blocks):
        roll, found = Roll(cap, b"s" * 32), []
        for rows in blocks:
            owners = np.array([owner for owner, _ in rows], dtype=np.int64)
            kept = roll.admit(owners)
            steps = np.array([[step] for _, step in rows], dtype=np.int64).reshape(-1, 1)
            block = OpenBlock(1)
            block.add(owners[kept], steps[kept])
            found.append(block.close(release)[0] if clipped else int(steps[kept].sum()))
        return found

    return rule


def world(rows, mean):
    """Return the law of three releases, `rows(k, past)` the rows of block k and `mean` the law's places from all."""
    noise, values = pmf(SHIFT, 4 * SPAN), np.arange(-SPAN, SPAN + 1)
    middle = len(noise) // 2

    known: dict = {}

    def law(*blocks):
        key = tuple(map(tuple, blocks))
        if key not in known:
            known[key] = noise[middle + values - int(mean(blocks))]
        return known[key]

    first = rows(0, ())
    whole, start = np.zeros((values.size,) * 3), law(first)
    for i, a in enumerate(values):
        second = rows(1, (a,))
        line = start[i] * law(first, second)
        whole[i] = line[:, None] * np.array([law(first, second, rows(2, (a, b))) for b in values])
    return whole


def plain(rule):
    return lambda blocks: rule(blocks)[-1]


def worst(P, Q, mu):
    return max(curve(a, b, e) / gaussian_curve(mu, e) for e in EPSILONS for a, b in ((P, Q), (Q, P)))


ROWS = ([], [CLIP], [-CLIP], [CLIP, CLIP], [-CLIP, -1], [1, 1, 1], [CLIP, -CLIP], [CLIP] * 3, [-CLIP] * 3)


def persons(rng):
    """Return a rule for Ann's rows in the two worlds, and Bob's, who is the same in both: functions of the past."""
    choice, level = rng.integers(0, len(ROWS), size=(2, 3, 2)), rng.integers(-5, 6)
    bob, inside = rng.integers(0, len(ROWS), size=(3, 2)), rng.permutation(3)

    def rows(side):
        def block(k, past):
            here = int(bool(past) and past[-1] > level)
            own = [(ANN, step) for step in ROWS[choice[side, k, here]]]
            other = [(BOB, step) for step in ROWS[bob[k, here]]]
            return own + other if inside[k] else other + own

        return block

    return rows(0), rows(1)


def always(steps, where):
    return lambda k, past: [(ANN, step) for step in steps] if k in where else []


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_noisy_descent_stays_within_the_curve_whatever_a_person_does(cap):
    release, mu = coarse(CLIP), 2 * CLIP * math.sqrt(cap) / 2**SHIFT
    mean, rng, shares = plain(sums_of(release, cap)), np.random.default_rng(cap), []
    pairs = [persons(rng) for _ in range(6)]
    # Rows in one block, in as many as count, in others in the other world, and more than count.
    pairs.append((always([CLIP], range(cap)), always([-CLIP], range(cap))))
    pairs.append((always([CLIP] * 5, range(3)), always([-CLIP] * 5, range(3))))
    pairs.append((always([CLIP], range(cap)), always([-CLIP], range(3 - cap, 3))))
    for one, two in pairs:
        P, Q = world(one, mean), world(two, mean)
        assert P.sum() > 1 - 1e-5
        shares.append(worst(P, Q, mu))
    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.98


def test_what_the_account_rests_on_is_caught_where_it_is_left_out():
    release, mu = coarse(CLIP), 2 * CLIP * math.sqrt(2) / 2**SHIFT
    # Rows of one block clipped singly only: two of them move its sum by 4 clips.
    loose = plain(sums_of(release, 2, clipped=False))
    P, Q = world(always([CLIP] * 2, [1]), loose), world(always([-CLIP] * 2, [1]), loose)
    assert worst(P, Q, mu) > 1.1
    # No cap: three blocks where two are paid for.
    free = plain(sums_of(release, 99))
    P, Q = world(always([CLIP], range(3)), free), world(always([-CLIP], range(3)), free)
    assert worst(P, Q, mu) > 1.1
    # A row given to another person changes two persons: Bob's clipped sum moves as well as Ann's.
    both = plain(sums_of(release, 2))
    P = world(lambda k, past: [(ANN, CLIP), (BOB, CLIP), (BOB, -CLIP)] if k == 0 else [], both)
    Q = world(lambda k, past: [(BOB, -CLIP), (BOB, -CLIP), (BOB, -CLIP)] if k == 0 else [], both)
    assert worst(P, Q, 2 * CLIP / 2**SHIFT) <= 1 + 1e-9  # here the cap and the clip help
    one = coarse(CLIP)
    P = world(lambda k, past: [(ANN, CLIP), (BOB, CLIP)] if k == 0 else [], plain(sums_of(one, 1)))
    Q = world(lambda k, past: [(BOB, -CLIP), (BOB, CLIP)] if k == 0 else [], plain(sums_of(one, 1)))
    assert worst(P, Q, 2 * CLIP / 2**SHIFT) > 1.1  # Bob's first row is another one now: 3 clips


@pytest.fixture
def epoch(monkeypatch):
    monkeypatch.setitem(_release.TABLE, 3, SHAPE)
    return EpochRelease(clip=1.0, noise=1.0, block=4, blocks=3, dim=1, change=2.0)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_an_epoch_of_the_filtered_gate_stays_within_the_curve(epoch, cap):
    rule, none = sums_of(coarse(CLIP), cap), np.zeros(1, dtype=np.int64)

    def mean(blocks):
        totals, buffers = rule(blocks), epoch.fresh()
        for total in totals[:-1]:
            buffers = epoch.filled(buffers, np.array([total]))
        return int(epoch.released(np.array([totals[-1]]), buffers, none)[0])

    linear = 2 * CLIP / 2**SHIFT * SHAPE.person_sensitivity(3, cap)
    mu = linear + 2 * 0.5 * math.sqrt(2) / 2**SHIFT
    rng, shares = np.random.default_rng(cap), []
    pairs = [persons(rng) for _ in range(4)]
    pairs += [(always([CLIP], where), always([-CLIP], where)) for where in itertools.combinations(range(3), cap)]
    for one, two in pairs:
        shares.append(worst(world(one, mean), world(two, mean), mu))
    assert 0.5 < max(shares) <= 1
    # As if rows of a person were independent: too little where noise is correlated.
    if cap > 1:
        few = 2 * CLIP / 2**SHIFT * SHAPE.sensitivity(3) * math.sqrt(cap)
        pair = (world(always([CLIP], range(cap)), mean), world(always([-CLIP], range(cap)), mean))
        assert worst(*pair, few) > 1.05


@pytest.mark.parametrize("blocks", [8, 16])
def test_the_first_columns_are_the_longest_together(blocks):
    shape = TABLE[blocks]
    column = [1.0, *(sum(w * r**k for w, r in zip(*shape, strict=True)) for k in range(blocks - 1))]
    matrix = np.array([[column[k - j] if k >= j else 0.0 for j in range(blocks)] for k in range(blocks)])
    for rows in (1, 2, 3, 5):
        lengths = [np.linalg.norm(matrix[:, list(J)].sum(axis=1)) for J in itertools.combinations(range(blocks), rows)]
        assert max(lengths) == pytest.approx(np.linalg.norm(matrix[:, :rows].sum(axis=1)))
        assert max(lengths) <= shape.person_sensitivity(blocks, rows)
        # Every share of the rows pays no more than its share.
        for m in range(1, rows + 1):
            part = np.linalg.norm(matrix[:, :m].sum(axis=1))
            assert part**2 * rows / m <= shape.person_sensitivity(blocks, rows) ** 2
    assert shape.person_sensitivity(blocks, 1) == pytest.approx(shape.sensitivity(blocks), rel=1e-9)


def test_every_table_has_coefficients_that_fall():
    for blocks, shape in TABLE.items():
        assert shape.person_sensitivity(blocks, 2) > shape.sensitivity(blocks)
    with pytest.raises(ValueError, match="must fall"):
        Buffers((1.5,), (0.5,)).person_sensitivity(4, 2)


def test_sums_of_a_person_are_clipped_in_integers():
    release, rng = coarse(4.3, 3), np.random.default_rng(0)
    sums = rng.integers(-40, 41, size=(4000, 3)) * rng.integers(0, 2**40, size=(4000, 1))
    sums = np.concatenate([sums, rng.integers(-4, 5, size=(4000, 3))])
    found = release.shortened(sums)
    assert (found**2).sum(axis=1).max() <= release.most
    small = (sums.astype(object) ** 2).sum(axis=1) <= release.most
    assert np.array_equal(found[small], sums[small])
    alone = np.array([release.shortened(row[None])[0] for row in sums[::97]])
    assert np.array_equal(alone, found[::97])  # whatever is beside it
