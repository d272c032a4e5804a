"""Public encodings: how a number, a category, a date or an empty place becomes numbers of length at most 1.

All of it is said before any data comes: bounds, the names of the categories, the ends of a calendar, what counts where
nothing is given. A value alone decides how it is encoded, never the values beside it, so that nothing of this has to
be paid for. `reticent run`, the models for river and those for scikit-learn encode alike.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from reticent._core._check import Array, real

# What `float` would take without a word: text, part of a complex number, a length of time in whatever unit it has.
_NO_NUMBERS = (str, bytes, bytearray, np.complexfloating, np.timedelta64, np.datetime64, date)
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?"})
"""Texts that mean that nothing is there, in small letters."""
OTHER = "other"
"""The category that takes every text that is not named."""
_SHOWN = 40  # characters of a value in a message
_DAY = 86400.0


def is_missing(text: str) -> bool:
    """Say whether a text means that nothing is there.

    >>> is_missing(" N/A "), is_missing("0")
    (True, False)
    """
    return text.strip().lower() in MISSING


def shown(text: str) -> str:
    """Return what was found for a message, shortened.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def plain_number(value: Any) -> float:
    """Return a value as a float, NaN if it is missing (None, NaN, `pandas.NA`).

    What is not a number raises TypeError, ValueError or OverflowError; the caller knows its name.

    >>> plain_number(3), plain_number(np.float32(0.5)), plain_number(None)
    (3.0, 0.5, nan)
    """
    if isinstance(value, float | int):
        return float(value)
    if nothing(value):
        return math.nan
    if isinstance(value, _NO_NUMBERS) or (isinstance(value, np.ndarray) and value.ndim):
        raise TypeError
    return float(value)


def nothing(value: Any) -> bool:
    """Say whether a value is None, NaN, or the NA or NaT of pandas."""
    # Nobody has the NA of pandas who has not imported pandas.
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    return isinstance(value, float | np.floating | date | np.datetime64) and bool(value != value)


# Public ranges: numbers brought to [-1, 1] by them, and back.

LARGEST = 1e100  # bounds whose sums and differences stay well within double precision


class Range:
    """A public range: what lies in it is moved to [-1, 1], what lies beyond is clipped.

    Unless it was given (`Range(None)`), values are expected in [-1, 1] and others are refused: a range that somebody
    forgot to give would clip all of them to the same number, and nothing would be learned.

    >>> Range((0.0, 10.0)).unit("age", 2.5), Range((0.0, 10.0)).unit("age", 99.0)
    (-0.5, 1.0)
    >>> Range((0.0, 10.0)).back(-0.5)
    2.5
    """

    def __init__(self, ends: Any, name: str = "bounds") -> None:
        """Take `(low, high)`, or None if nothing was given; `name` is the argument it came from."""
        self.given, self.name = ends is not None, name
        self.low, self.high = (-1.0, 1.0) if ends is None else _ends(name, ends)
        self.middle, self.width = self.low + self.high, self.high - self.low

    def unit(self, what: object, value: float) -> float:
        """Return a number moved to [-1, 1]; `what` names it in messages."""
        if not self.given and not -1.0 <= value <= 1.0:
            self._refuse(what, value)
        inside = min(max(value, self.low), self.high)
        return min(max((2.0 * inside - self.middle) / self.width, -1.0), 1.0)

    def units(self, what: object, values: Array) -> Array:
        """Return numbers moved to [-1, 1], each as `unit` does to the last bit; NaN stays."""
        if not self.given:
            beyond = np.abs(values) > 1.0
            if beyond.any():
                self._refuse(what, float(values[int(np.argmax(beyond))]))
        inside = np.clip(values, self.low, self.high)
        moved: Array = np.clip((2.0 * inside - self.middle) / self.width, -1.0, 1.0)
        return moved

    def back(self, unit: float) -> float:
        """Return the number of the range that a number of [-1, 1] stands for; others are clipped."""
        return min(max((unit * self.width + self.middle) / 2.0, self.low), self.high)

    def backs(self, units: Array) -> Array:
        """Return the numbers of the range, each as `back` does to the last bit."""
        moved: Array = np.clip((units * self.width + self.middle) / 2.0, self.low, self.high)
        return moved

    def _refuse(self, what: object, value: float) -> None:
        raise ValueError(
            f"{what} is {value!r}, outside of [-1, 1], and {self.name} was not given; give {self.name}=(low, high), a "
            "range that is public (not computed from the data): values are then scaled by it, and those beyond clipped"
        )


def _ends(name: str, ends: Any) -> tuple[float, float]:
    if isinstance(ends, str) or not isinstance(ends, Sequence | np.ndarray) or len(ends) != 2:
        raise ValueError(f"{name} must be (low, high), two numbers known in public, got {ends!r}")
    low, high = real(f"the low end of {name}", ends[0]), real(f"the high end of {name}", ends[1])
    if not low < high:
        raise ValueError(f"{name} must have its low end below its high end, got {ends!r}")
    if max(abs(low), abs(high)) > LARGEST or high - low < 1 / LARGEST:
        raise ValueError(f"{name} must be from -1e100 to 1e100 and wider than 1e-100, got {ends!r}; choose other units")
    return low, high


# One feature: a value becomes a code (one number, NaN for nothing), and a code one or more units, of length up to 1.


class Encoding(ABC):
    """What values of a feature may be, and the units that each of them becomes."""

    tails: tuple[str, ...] = ("",)
    """What is added to the name of the feature for each of its coordinates."""

    fill = math.nan
    """The code of a value that is missing; NaN makes all its units 0."""

    @abstractmethod
    def code(self, value: Any) -> float:
        """Return the number that a value stands for, NaN for nothing; raise ValueError with what is wrong with it."""

    @abstractmethod
    def units(self, what: object, codes: Array) -> Array:
        """Return the units of codes, a row of coordinates for each."""

    def codes(self, values: Iterable[Any]) -> Array:
        """Return the codes of a column."""
        return np.array([self.code(value) for value in values], dtype=np.float64)

    def filled(self, fill: Any) -> Encoding:
        """Take what counts where nothing is given, a public value; return this."""
        found = self.code(fill)
        if math.isnan(found):
            raise ValueError(f"fill must be a value, got {fill!r}, which means that nothing is there")
        self.fill = found
        return self

    def or_fill(self, codes: Array) -> Array:
        """Return codes with the fill where one is missing; without a fill they stay as they are."""
        return codes if math.isnan(self.fill) else np.where(np.isnan(codes), self.fill, codes)


class Number(Encoding):
    """A number in a public range.

    >>> Number(Range((0, 10))).filled(5).units("age", np.array([2.5, 99.0, np.nan])).ravel().tolist()
    [-0.5, 1.0, 0.0]
    """

    def __init__(self, ends: Range) -> None:
        """Take the range."""
        self.range = ends

    def shown_ends(self) -> tuple[str, str]:
        """Return both ends of the range for a reader."""
        return f"{self.range.low:g}", f"{self.range.high:g}"

    def code(self, value: Any) -> float:
        """Return the number itself."""
        try:
            return plain_number(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"must be a number, got {value!r}; declare it with the texts that it may be as its bounds, make "
                "numbers of it first, as a OneHotEncoder in a pipeline does, or leave it out"
            ) from None

    def units(self, what: object, codes: Array) -> Array:
        """Return each number moved to [-1, 1]."""
        return _or_zero(self.range.units(what, self.or_fill(codes)))[:, None]


class Calendar(Number):
    """A date, or a date with a time, between two public dates; its code is in days.

    >>> Calendar(date(2024, 1, 1), date(2024, 1, 11)).units("day", np.array([19723.0 + 2.5])).tolist()
    [[-0.5]]
    >>> Calendar(date(2024, 1, 1), date(2024, 1, 11)).code("2024-01-03 12:00") - 19723.0
    2.5
    """

    def __init__(self, low: Any, high: Any, name: str = "bounds") -> None:
        """Take the first and the last day."""
        super().__init__(Range((day_of(low), day_of(high)), name))

    def shown_ends(self) -> tuple[str, str]:
        """Return the first and the last day."""
        first = date(1970, 1, 1).toordinal()
        low, high = (date.fromordinal(first + math.floor(day)).isoformat() for day in (self.range.low, self.range.high))
        return low, high

    def code(self, value: Any) -> float:
        """Return the days since 1970."""
        if nothing(value) or (isinstance(value, str) and is_missing(value)):
            return math.nan
        try:
            return day_of(value)
        except (TypeError, ValueError, OverflowError):
            found = shown(value) if isinstance(value, str) else repr(value)
            raise ValueError(f"has {found} where a date such as 2024-12-31 is expected") from None


class Categories(Encoding):
    """One of a few public texts, each a coordinate of its own; `other`, if it is one, takes all that are not named.

    >>> city = Categories(("Paris", "Lyon", "other"))
    >>> city.tails, city.units("city", city.codes(["Lyon", "Rome", None])).tolist()
    (('=Paris', '=Lyon', '=other'), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    """

    def __init__(self, labels: Sequence[Any], name: str = "categories") -> None:
        """Take the texts; numbers stand for their texts."""
        self.labels = tuple(_word(label) for label in labels)
        if len(set(self.labels)) != len(self.labels) or len(self.labels) < 2:
            raise ValueError(f"{name} must be two or more different texts, got {tuple(labels)!r}")
        if any(is_missing(label) for label in self.labels):
            raise ValueError(f"{name} must be texts that mean something, got {tuple(labels)!r}")
        self.tails = tuple(f"={label}" for label in self.labels)
        self._codes = {label: float(place) for place, label in enumerate(self.labels)}

    def code(self, value: Any) -> float:
        """Return the place of a category."""
        if nothing(value):
            return math.nan
        word = _word(value)
        found = self._codes.get(word)
        if found is None and is_missing(word):
            return math.nan
        if found is None:
            found = self._codes.get(OTHER)
        if found is None:
            among = ", ".join(map(repr, self.labels))
            raise ValueError(f"has {shown(word)} where one of {among} is expected; name it too, or add {OTHER!r}")
        return found

    def units(self, what: object, codes: Array) -> Array:
        """Return 1 in the coordinate of each category, and 0 in the others."""
        return np.asarray(self.or_fill(codes)[:, None] == np.arange(len(self.labels)), dtype=np.float64)


def encoding_of(given: Any, name: str = "bounds") -> Encoding:
    """Return the encoding that public knowledge of one feature means: two numbers, two dates, or some texts.

    >>> [type(encoding_of(given)).__name__ for given in ((0, 1), (date(2024, 1, 1), date(2025, 1, 1)), ("a", "b"))]
    ['Number', 'Calendar', 'Categories']
    """
    if isinstance(given, list | tuple) and given:
        if all(isinstance(part, str) for part in given):
            return Categories(given, name)
        if len(given) == 2 and all(isinstance(part, date | np.datetime64) for part in given):
            return Calendar(given[0], given[1], name)
    return Number(Range(given, name))


def day_of(value: Any) -> float:
    """Return a date, with a time or without, in days since 1970; what has a time zone is counted in UTC.

    >>> day_of("1970-01-02"), day_of(datetime(1970, 1, 1, 12)), day_of(np.datetime64("1970-01-03"))
    (1.0, 0.5, 2.0)
    """
    if isinstance(value, np.datetime64):
        return float((value - np.datetime64("1970-01-01")) / np.timedelta64(1, "D"))
    found = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    if isinstance(found, datetime):
        known = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return float((known - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / _DAY)
    if isinstance(found, date):
        return float(found.toordinal() - date(1970, 1, 1).toordinal())
    raise TypeError(f"no date: {value!r}")


def _word(value: Any) -> str:
    """Return a category as text; whole numbers look the same whatever their type."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _or_zero(units: Array) -> Array:
    filled: Array = np.where(np.isnan(units), 0.0, units)
    return filled
