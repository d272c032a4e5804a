"""The gate of an epoch: rounding in integers against fractions, its account, overflow, and the table of shapes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.systems.filtered._buffers import TABLE, Buffers
from reticent.systems.filtered._release import EpochRelease
from reticent.systems.ftrl._noise import Buffers as Certified
from reticent.systems.ftrl._noise import fit_buffers


def made(**given):
    return EpochRelease(**({"clip": 0.5, "noise": 4.0, "block": 80, "blocks": 8, "dim": 3, "change": 2.0} | given))


@pytest.mark.parametrize(("blocks", "block"), [(8, 5), (64, 80), (512, 10**6)])
@pytest.mark.parametrize("kind", ["largest", "random", "alternating"])
def test_mixed_sums_are_within_the_stated_error_of_the_real_ones(blocks, block, kind):
    release = made(blocks=blocks, block=block)
    largest, rng = block * release.grid.largest, np.random.default_rng(0)
    buffers, none = release.fresh(), np.zeros(3, dtype=np.int64)
    weights, decays = ([Fraction(x) for x in part.tolist()] for part in (release.weights, release.decays))
    exact = [Fraction(0)] * len(weights)
    for k in range(min(blocks, 64)):
        sums = {
            "largest": np.full(3, largest),
            "random": rng.integers(-largest, largest + 1, size=3),
            "alternating": np.full(3, largest * (-1) ** k),
        }[kind]
        found = release.released(none, buffers, none)
        real = sum((w * B for w, B in zip(weights, exact, strict=True)), Fraction(0))
        assert abs(int(found[0]) - real) <= release.error
        assert abs(int(found[0])) + largest < 2**62
        buffers = release.filled(buffers, sums)
        exact = [r * B + int(sums[0]) for r, B in zip(decays, exact, strict=True)]


@pytest.mark.parametrize("blocks", sorted(TABLE))
@pytest.mark.parametrize(("block", "dim"), [(1, 1), (80, 10), (4_000, 10), (40_000, 1_000)])
def test_noise_is_as_little_as_the_account_allows(blocks, block, dim):
    release = made(blocks=blocks, block=block, dim=dim)
    assert 0.25 * (1 - 1e-4) < release.mu <= 0.25
    column = math.sqrt(sum(c * c for c in coefficients(TABLE[blocks], blocks)))
    rows = 2 * release.grid.clip / release.grid.sigma * column
    apart = 2 * release.error * math.sqrt((blocks - 1) * dim) / 2**release.grid.shift
    assert rows + apart <= release.mu <= (rows + apart) * (1 + 1e-11)
    assert apart < (3e-5 if block * dim <= 40_000 else 0.02) * rows


def coefficients(shape, n):
    powers = [sum(w * r**k for w, r in zip(*shape, strict=True)) for k in range(n - 1)]
    return [1.0, *powers]


def test_zeroed_rounds_need_half_the_noise():
    assert made(change=1.0).grid.sigma == pytest.approx(made().grid.sigma / 2, rel=1e-6)


def test_what_leaves_no_room_is_refused():
    with pytest.raises(ValueError, match=r"no room for rounding|no grid"):
        made(blocks=4096, block=2**45, dim=1_000)


@pytest.mark.parametrize("blocks", sorted(TABLE))
def test_the_table_is_what_the_fit_finds(blocks):
    fit = fit_buffers(blocks)
    assert np.allclose(TABLE[blocks], fit, atol=6e-7)
    exact = Certified(*TABLE[blocks]).sensitivity(blocks)
    assert exact <= TABLE[blocks].sensitivity(blocks) <= exact * (1 + 1e-9)
    assert Buffers((), ()).sensitivity(blocks) == pytest.approx(1.0)
