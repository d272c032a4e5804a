"""Random numbers with fine tails: the machine's own chances, counted over all uniform numbers (docs/theory, Q11)."""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from reticent._core._fine import _FAR, _far_beyond, arrival_time, exponential_below, fine, pick, standard_exponential
from reticent._core._kernel import kernel

ALPHA = 1e-6
ALL, RARE = 1 << 53, 1 << 41


class Script:
    """A generator whose uniform numbers are given, in 2^-53."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0) * 2.0**-53


@pytest.fixture(autouse=True)
def as_written(monkeypatch):
    """Kernels that call others run as Python here, on scripts."""
    monkeypatch.setitem(exponential_below.py_func.__globals__, "fine", fine.py_func)


def first(low, high, reached):
    """The first whole number from low to high for which `reached` holds, which goes on from there."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low


def below(edge, width):
    """The chance that the machine's number is less than `edge`: all uniform numbers counted, level by level."""
    chance = mpf(first(0, ALL - RARE, lambda k: exponential_below.py_func(Script(k), width) >= edge)) / ALL
    share = mpf(RARE) / ALL
    for level in range(8):
        # Large numbers of `fine` are near to what came before, small ones deep in the tail.
        script = [0] * level

        def deep(k, script=script):
            return exponential_below.py_func(Script(ALL - 1, *script, k), width) < edge

        chance += share * (ALL - first(RARE, ALL, deep)) / ALL
        share *= mpf(RARE) / ALL
    return chance


def plain(edge, width):
    cut = np.expm1(-width)
    return mpf(first(0, ALL, lambda k: -np.log1p(k * 2.0**-53 * cut) >= edge)) / ALL


def worst(count, width):
    """How far, as a factor, the chance of a cell of 2^-19 of the width is from exact, over depths down to 2^-80."""
    cell, found = width * 2.0**-19, mpf(0)
    with mp.workdps(60):
        for depth in np.linspace(0.0, min(width, 56.0) - 2 * cell, 25):
            low = np.floor(depth / cell) * cell
            mass = count(low + cell, width) - count(low, width)
            exact = mp.exp(-mpf(low)) * -mp.expm1(-mpf(cell)) / -mp.expm1(-mpf(width))
            found = max(found, abs(mass / exact - 1))
    return found


@pytest.mark.parametrize("width", [1.5, 9.0, 64.0])
def test_cells_of_a_tail_have_the_right_chance_at_every_depth(width):
    assert worst(below, width) < 2.0**-24


def test_plain_inversion_does_not():
    assert worst(plain, 64.0) >= 1.0  # the negative control: deep cells have no number at all, or one too many


def test_a_piece_of_little_mass_is_picked_as_often_as_it_should(monkeypatch):
    masses = np.array([2.0**-60, 1.0, 2.0**-70])
    for seen, place, mass in ((0, 0, masses[0]), (ALL - 1, 2, masses[2])):
        # The chance is 2^-12 times that of a fine number below 2^12 times the mass.
        for share, wanted in ((0.999, place), (1.001, 1)):
            monkeypatch.setitem(
                pick.py_func.__globals__, "fine", lambda rng, share=share, mass=mass: 2**12 * mass * share
            )
            assert pick.py_func(Script(seen), masses, 3, 1.0) == wanted


def test_small_arrival_times_have_the_right_chance(monkeypatch):
    # Given that time is short it is uniform but for its own size: the smaller, the nearer to fine numbers.
    monkeypatch.setitem(arrival_time.py_func.__globals__, "standard_exponential", lambda rng: 2.0**-60)
    for level in range(8):
        number, most = 2.0 ** (-12 * level - 3), -mp.expm1(-(mpf(2) ** -12))
        monkeypatch.setitem(arrival_time.py_func.__globals__, "fine", lambda rng, number=number: number)
        exact = -mp.log1p(-mpf(number) * most)
        assert abs(arrival_time.py_func(None) / exact - 1) < 2.0**-50


def test_long_times_start_anew():
    class Times:
        def __init__(self, *times):
            self.times = list(times)

        def standard_exponential(self):
            return self.times.pop(0)

    assert standard_exponential.py_func(Times(3.0)) == 3.0
    assert standard_exponential.py_func(Times(14.5, 20.0, 1.0)) == 29.0


@kernel
def far_beyond(rng, count):
    out = np.empty(count)
    for i in range(count):
        out[i] = _far_beyond(rng)
    return out


def test_the_normal_tail_has_its_law():
    found = far_beyond(np.random.default_rng(5), 200_000)

    def cdf(x):
        return 1 - stats.norm.sf(_FAR + x) / stats.norm.sf(_FAR)

    assert stats.kstest(found, cdf).pvalue > ALPHA
    # The negative control: proposals that were all accepted.
    assert stats.kstest(np.random.default_rng(6).exponential(1 / _FAR, 200_000), cdf).pvalue < ALPHA
