"""The gate's grid: lengths in integers, no overflow, rows of any size, each by itself; and attacks on all of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.systems.gate import BlockRelease
from reticent.systems.gate._release import digits

GATES = [
    BlockRelease(1.0, 8.5, 27, 10),
    BlockRelease(1.0, 8.5, 8, 1),
    BlockRelease(3e-90, 1e-89, 5, 3),
    BlockRelease(7e99, 1e100, 5, 1000),
    BlockRelease(0.1, 0.03, 1, 2),
    BlockRelease(1.0, 2.0**40, 100, 4),
    BlockRelease(1.0, 2.0, 2**49, 4),
]


def rows_of(release, count=500, seed=0):
    """Rows of all sizes: on the sphere, a little beyond and within, tiny, huge, and along the diagonal."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, release.dim))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    sizes = release.clip * rng.choice([1.0, 1 + 1e-12, 1 - 1e-12, 0.5, 1e-6, 1e3, 0.0], size=count)
    rows *= sizes[:, None]
    return np.concatenate([rows, np.full((1, release.dim), release.clip / math.sqrt(release.dim))])


@pytest.mark.parametrize("release", GATES, ids=lambda gate: f"{gate.clip:g}, {gate.sigma:g}, {gate.block}, {gate.dim}")
class TestGrid:
    def test_rows_are_no_longer_than_the_clip_in_exact_arithmetic(self, release):
        step = Fraction(release.sigma) / 2**release.shift
        assert Fraction(release.step) == step
        for row in release.rounded(rows_of(release)).tolist():
            assert sum(r * r for r in row) * step**2 <= Fraction(release.clip) ** 2

    def test_rows_within_the_clip_move_by_no_more_than_stated(self, release):
        rows = rows_of(release)
        rows = rows[np.linalg.norm(rows, axis=1) <= release.clip * (1 + 2e-12)]
        moved = np.linalg.norm(release.real(release.rounded(rows)) - rows, axis=1)
        assert moved.max() <= release.error
        assert release.error <= 4.1 * math.sqrt(release.dim) * max(release.step, release.clip * 2.0**-30)

    def test_nothing_overflows(self, release):
        assert release.largest * release.block < 2**62
        assert release.dim * release.largest**2 < 2**63
        assert 64 * 2**release.shift < 2**62
        assert release.largest <= 2 ** digits(release.block, release.dim)

    def test_a_row_does_not_depend_on_those_beside_it(self, release):
        rows = rows_of(release)
        whole = release.rounded(rows)
        assert np.array_equal(whole, np.concatenate([release.rounded(row[None]) for row in rows]))
        assert np.array_equal(whole[::-1], release.rounded(np.ascontiguousarray(rows[::-1])))


def test_without_the_check_rows_are_longer():
    release = BlockRelease(1.0, 8.5, 27, 10)
    rows = rows_of(release, 5000)
    nearest = np.rint(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None] / release.step).astype(np.int64)
    assert ((nearest**2).sum(axis=1) > release.most).any()
    assert not ((release.rounded(rows) ** 2).sum(axis=1) > release.most).any()


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-160, 1e160, 1e300, 1.7e308])
def test_rows_of_any_size_have_a_place(size):
    release = BlockRelease(1.0, 8.5, 27, 3)
    found = release.rounded(np.array([[size, -size, 0.0], [0.0, 0.0, size]]))
    assert ((found**2).sum(axis=1) <= release.most).all()
    assert np.array_equal(found.any(axis=1), [size > 1] * 2) or size == 1.7e308  # too long to measure: nothing


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="rows must be finite"):
        BlockRelease(1.0, 8.5, 27, 2).rounded(np.array([[0.0, 0.0], [bad, 0.0]]))


@pytest.mark.parametrize("wrong", [{"sigma": 1e-12}, {"sigma": 1e20}, {"block": 2**55}, {"sigma": 0.0}, {"dim": 0}])
def test_numbers_without_a_grid_are_refused(wrong):
    with pytest.raises(ValueError, match=r"grid|must be"):
        BlockRelease(**({"clip": 1.0, "sigma": 8.0, "block": 10, "dim": 2} | wrong))


def test_a_release_is_the_sum_plus_noise_of_the_stated_size():
    release, rng = BlockRelease(1.0, 8.0, 10, 20_000), np.random.default_rng(0)
    total = np.arange(20_000)
    noise = release.released(total, rng) - total
    assert np.std(release.real(noise)) == pytest.approx(8.0, rel=0.05)
    again = release.released(total, rng) - total
    assert abs(np.corrcoef(noise.astype(float), again.astype(float))[0, 1]) < 0.05
    assert release.sigma < release.deviation < release.sigma * (1 + 1e-6)
