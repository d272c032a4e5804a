"""Example files: people and waiting times that nobody had, the same on every machine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

_CITIES = ("Paris",) * 5 + ("Lyon",) * 3 + ("Nice",) * 2


def people(rows: int) -> Iterator[str]:
    """Yield the lines of a CSV file: who is how old, earns what, lives where, came when, and is sick.

    The odds of being sick double every eight years of age or so, and are lower for those with more income and in
    Lyon; one in thirty cities is empty.

    >>> list(people(2))
    ['age,income,city,since,sick', '50,37200,Nice,2022-12-26,no', '59,17100,Paris,2024-09-21,yes']
    """
    # Only this method of Python's generator is promised to stay as it is.
    chance = random.Random("reticent: people").random
    yield "age,income,city,since,sick"
    for _ in range(rows):
        age = 18 + int(73 * (chance() + chance()) / 2)
        income = 100 * int(150 + 800 * chance() * chance())
        city = _CITIES[int(len(_CITIES) * chance())]
        since = date(2020, 1, 1) + timedelta(days=int(2500 * chance()))
        odds = (age - 52) / 12 - (income - 31_000) / 40_000 - (1.0 if city == "Lyon" else 0.0)
        sick = "yes" if chance() < 1 / (1 + math.exp(-odds)) else "no"
        yield f"{age},{income},{'' if chance() < 1 / 30 else city},{since},{sick}"


def times(rows: int) -> Iterator[str]:
    """Yield the lines of a CSV file with one column: how many seconds each answer took.

    >>> list(times(2))
    ['seconds', '0.190', '0.089']
    """
    chance = random.Random("reticent: times").random
    yield "seconds"
    for _ in range(rows):
        waited = -0.12 * math.log(1 - chance())
        yield f"{0.08 + waited + (2.5 * chance() if chance() < 0.02 else 0.0):.3f}"


def visits(rows: int) -> Iterator[str]:
    """Yield the lines of a CSV file in the order of time: when somebody came, who, how old, and whether they came back.

    A fifth of the people come most of the time; one in fifty visits is nobody's.

    >>> list(visits(2))
    ['at,id,age,back', '2026-09-07T08:12,p0000,18,no', '2026-09-07T08:13,p0000,18,no']
    """
    chance = random.Random("reticent: visits").random
    crowd = max(1, rows // 5)
    yield "at,id,age,back"
    when = datetime(2026, 9, 7, 8)
    for _ in range(rows):
        when += timedelta(minutes=int(-10 * math.log(1 - chance())))
        who = int(crowd * chance() * chance())
        age = 18 + who * 37 % 70
        back = "yes" if chance() < 1 / (1 + math.exp((50 - age) / 12)) else "no"
        name = "" if chance() < 1 / 50 else f"p{who:04d}"
        yield f"{when.isoformat(timespec='minutes')},{name},{age},{back}"


KINDS: dict[str, tuple[Callable[[int], Iterator[str]], int, str]] = {
    "people": (people, 4000, "age, income, city, since, and who is sick: for a score"),
    "visits": (visits, 4000, "when who came, age, and whether they came back: persons with several rows"),
    "times": (times, 5000, "seconds: for a quantile"),
}
"""What there is: the lines, how many rows unless somebody says, and what for."""
