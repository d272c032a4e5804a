"""How often the machine keeps: the chances of a coin counted over all uniform numbers (docs/theory, Q11)."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from reticent._core import _fine
from reticent.systems import _kernels
from reticent.systems._decider import NEVER
from reticent.systems._grid import COIN
from reticent.systems._walk import odds_of

ALL, RARE = 1 << 53, 1 << 41
CHANCES = [0.0, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 2.0**-30, 1 - 2.0**-45]
FLOORS = [1e-9, 0.02, 1.0, 8.0, 20.0, 30.0, 37.0, 100.0, 600.0]


class Script:
    """A generator whose uniform numbers are given, in 2^-53, and whose exponential ones are given as they are."""

    def __init__(self, *numbers, times=()):
        self.numbers, self.times = list(numbers), list(times)

    def random(self):
        return self.numbers.pop(0) * 2.0**-53

    def standard_exponential(self):
        return self.times.pop(0)


fine_rest, exponential_below, next_toss = (
    one.py_func for one in (_fine.fine_rest, _fine.exponential_below, _kernels.next_toss)
)
PARTS = {
    name: getattr(_fine, name).py_func for name in ("fine", "fine_rest", "standard_exponential", "exponential_below")
}


@pytest.fixture(autouse=True)
def as_written(monkeypatch):
    """Kernels that call others run as Python here, on scripts."""
    for name, part in PARTS.items():
        monkeypatch.setattr(_fine, name, part)
        monkeypatch.setattr(_kernels, name, part, raising=False)


def first(low, high, reached):
    """The first whole number from low to high for which `reached` holds, which goes on from there."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low


def free_chance(free):
    """The chance that a coin which has to be looked at is not forced, all uniform numbers counted."""
    chance, share = mpf(0), mpf(1)
    for level in range(9):
        script = [ALL - 1] * level
        free_from = first(0, ALL - RARE, lambda k, script=script: fine_rest(Script(*script, k)) < free)
        chance += share * (ALL - RARE - free_from) / ALL
        share *= mpf(RARE) / ALL
    return chance


def level_chance(floor, keeps):
    """The chance that a level is not above `keeps`."""

    def reached(*numbers):
        return math.exp(-exponential_below(Script(*numbers), floor)) <= keeps

    if floor < 1.0:
        return mpf(ALL - first(0, ALL, reached)) / ALL
    chance, share = mpf(ALL - RARE - first(0, ALL - RARE, reached)) / ALL, mpf(RARE) / ALL
    for level in range(90):
        script = [ALL - 1, *[0] * level]
        chance += share * (first(RARE, ALL, lambda k, script=script: not reached(*script, k)) - RARE) / ALL
        share *= mpf(RARE) / ALL
    return chance


def off(p, floor, keeps):
    """How far off the logarithm of the chance to keep is: never looked at, or looked at, not forced, and kept."""
    odds = odds_of(p, floor)
    passed = mp.exp(-mpf(odds.rate))
    kept = passed + (1 - passed) * free_chance(odds.free) * level_chance(floor, keeps)
    return abs(mp.log(kept / ((1 - mpf(p)) * mpf(keeps))))


@pytest.mark.parametrize("floor", FLOORS)
def test_coins_keep_as_often_as_they_should_however_rarely(floor):
    with mp.workdps(400):
        for p in CHANCES:
            for part in (1e-9, 0.01, 0.3, 0.7, 0.99, 1 - 1e-9):
                assert off(p, floor, math.exp(-floor * part)) < COIN, (p, part)


def test_switches_are_forced_no_more_rarely_than_planned():
    with mp.workdps(400):
        for p in CHANCES:
            for floor in FLOORS:
                odds = odds_of(p, floor)
                assert -mp.expm1(-mpf(odds.rate)) * (1 - free_chance(odds.free)) >= p, (p, floor)


def test_levels_in_steps_of_a_uniform_number_do_not():
    """The negative control: how levels were found before."""

    def plain(floor, keeps):
        opened = -math.expm1(-floor)
        above = first(0, ALL, lambda k: 1.0 - opened * (k * 2.0**-53) <= keeps)
        return (1 - mpf(opened)) + mpf(opened) * (ALL - above) / ALL

    with mp.workdps(400):
        keeps = math.exp(-29.9)
        assert abs(mp.log(plain(30.0, keeps) / keeps)) > 1e4 * COIN


def test_coins_are_passed_over_beyond_the_longest_time_of_the_generator():
    odds = tuple(odds_of(0.1, 8.0))
    after, _ = next_toss(Script(0, 0, times=[14.5, 14.5, 14.5, 14.5, 1.0]), odds)
    assert after == 1 + math.floor(57.0 / odds[0]) > 44.5 / odds[0]  # 44.4 is the longest there is


def test_odds_at_their_ends():
    assert odds_of(0.3, 0.0).free == 0.0  # who is looked at is forced
    assert odds_of(0.0, 2.0).free >= 1 - 2.0**-50  # no switch is forced
    level = next_toss(Script(1 << 52, 1 << 52, times=[1.0]), tuple(odds_of(0.0, 0.5)))[1]
    assert math.exp(-0.5) < level < 1.0
    assert next_toss(Script(0, times=[1.0]), tuple(odds_of(1.0, 0.5))) == (1, 0.0)
    assert next_toss(Script(0, times=[1.0]), tuple(odds_of(1e-300, 0.0)))[0] == NEVER


def test_a_coin_of_constant_work_is_as_fine():
    """Its chances to keep are (1-p) times its level's: both may be far below a step of 2^-53."""
    numbers = [fine_rest(Script(ALL - 1, ALL - 1, ALL - 1, k)) for k in (ALL - RARE - 1, 0)]
    assert 0.0 < numbers[0] < numbers[1] == 2.0**-36
    assert fine_rest(Script(0)) == 1.0
    assert np.isclose(fine_rest(Script(1 << 51)), 0.75)
