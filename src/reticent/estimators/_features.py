"""Features by public configuration: declared or hashed, clipped to public bounds, in rows of length at most 1.

What is written here is all that decides how a row looks, beside the row itself: a feature that was never seen before, a
value beyond its bounds or a missing one changes neither the length of rows nor what is promised about them.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from reticent._core._check import Array, integer, real

# What `float` would take without a word: text, part of a complex number, a length of time in whatever unit it has.
_NO_NUMBERS = (str, bytes, bytearray, np.complexfloating, np.timedelta64, np.datetime64)


def plain_number(value: Any) -> float:
    """Return a value as a float, NaN if it is missing (None, NaN, `pandas.NA`).

    What is not a number raises TypeError, ValueError or OverflowError; the caller knows its name.

    >>> plain_number(3), plain_number(np.float32(0.5)), plain_number(None)
    (3.0, 0.5, nan)
    """
    if isinstance(value, float | int):
        return float(value)
    # Nobody has the NA of pandas who has not imported pandas.
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return math.nan
    if isinstance(value, _NO_NUMBERS) or (isinstance(value, np.ndarray) and value.ndim):
        raise TypeError
    return float(value)


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


# Features by public configuration: declared or hashed, clipped to public bounds, in rows of length at most 1.

Name = Hashable


class Features(ABC):
    """A map from features to rows of length at most 1 that begin with an intercept."""

    dim: int
    """The length of a row, the intercept included."""

    def reads(self, name: Any) -> bool:
        """Say whether a feature of this name is read at all."""
        return True

    @abstractmethod
    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the row of one dictionary of features; features that are absent, None or NaN count as missing."""

    @abstractmethod
    def rows(self, names: Sequence[Any], values: Array) -> Array:
        """Return the rows of a block with named columns, each as `row` does to the last bit; NaN means missing."""


class Declared(Features):
    """Features by name: others are ignored, and a missing one counts as the middle of its bounds.

    A row is (1, units) divided by the root of its length: linear in the features.

    >>> Declared(("age", "visits", "new"), ((0, 100), (0, 10), (0, 1))).row({"visits": 10, "age": 75, "other": 3.0})
    array([0.5 , 0.25, 0.5 , 0.  ])
    """

    def __init__(self, names: Sequence[Name], bounds: Any = None) -> None:
        """Take the names and one range for all, one for each, or a dictionary of ranges by name."""
        self.names = tuple(names)
        for name in self.names:
            if not _hashable(name):
                raise ValueError(f"features must be names, such as texts or numbers, got {name!r} among {self.names!r}")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"features must have different names, got {self.names!r}")
        self.ranges = self._ranges(bounds)
        self.dim = 1 + len(self.names)
        self._root = math.sqrt(self.dim)

    def _ranges(self, bounds: Any) -> tuple[Range, ...]:
        if isinstance(bounds, Mapping):
            missing = [name for name in self.names if name not in bounds]
            if missing:
                raise ValueError(f"bounds must have a range for every feature, got none for {missing[0]!r}")
            return tuple(Range(bounds[name], f"bounds[{name!r}]") for name in self.names)
        if not _nested(bounds):
            return (Range(bounds),) * len(self.names)
        if len(bounds) != len(self.names):
            raise ValueError(
                f"bounds must be (low, high), or one such pair for each of the {len(self.names)} features, "
                f"got {len(bounds)} of them"
            )
        return tuple(Range(pair, f"the bounds of {name!r}") for name, pair in zip(self.names, bounds, strict=True))

    def reads(self, name: Any) -> bool:
        """Say whether a feature of this name was declared."""
        return name in self.names

    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the row of one dictionary of features."""
        _check_mapping(x)
        row = np.zeros(self.dim)
        row[0] = 1.0
        for i, (name, ends) in enumerate(zip(self.names, self.ranges, strict=True), 1):
            value = _number(name, x.get(name))
            if value is not None:
                row[i] = ends.unit(_called(name), value)
        scaled: Array = row / self._root
        return scaled

    def rows(self, names: Sequence[Any], values: Array) -> Array:
        """Return the rows of a block with named columns."""
        place = _places(names)
        rows = np.zeros((len(values), self.dim))
        rows[:, 0] = 1.0
        for i, (name, ends) in enumerate(zip(self.names, self.ranges, strict=True), 1):
            if name in place:
                rows[:, i] = _filled(ends.units(_called(name), values[:, place[name]]))
        scaled: Array = rows / self._root
        return scaled


class Hashed(Features):
    """Features by a hash of their names: any name goes to one of so many slots, with a sign.

    The hash is fixed and has no key, so that it is the same everywhere; what falls into one slot is added and clipped
    to [-1, 1]. How many features a row has is not known in advance, so each row is brought to length 1 by itself: the
    sign of a prediction is linear in the features, its size is relative to the row.

    >>> row = Hashed(8).row({"a": 1.0, "b": -0.5, 3: 0.25})
    >>> row.size, float(row @ row), bool((row == Hashed(8).row({3: 0.25, "b": -0.5, "a": 1.0})).all())
    (9, 1.0, True)
    """

    def __init__(self, slots: int, bounds: Any = None) -> None:
        """Take the number of slots and one range for all features."""
        self.slots = integer("features", slots, least=1)
        if isinstance(bounds, Mapping) or _nested(bounds):
            raise ValueError(
                f"bounds must be one (low, high) for all features where these are hashed, got {bounds!r}; declare the "
                "features by name to give each bounds of its own"
            )
        self.range = Range(bounds)
        self.dim = 1 + self.slots

    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the row of one dictionary of features."""
        _check_mapping(x)
        found: dict[int, list[float]] = {}
        for name, given in x.items():
            value = _number(name, given)
            if value is not None:
                slot, sign = _slot(str(name), self.slots)
                found.setdefault(slot, []).append(sign * self.range.unit(_called(name), value))
        row = np.zeros(self.dim)
        row[0] = 1.0
        for slot, values in found.items():
            row[1 + slot] = math.fsum(values)  # rounded once: the same in every order
        shortened: Array = self._shortened(row[None])[0]
        return shortened

    def rows(self, names: Sequence[Any], values: Array) -> Array:
        """Return the rows of a block with named columns."""
        _places(names)
        found: dict[int, list[Array]] = {}
        for column, name in enumerate(names):
            slot, sign = _slot(str(name), self.slots)
            found.setdefault(slot, []).append(sign * _filled(self.range.units(_called(name), values[:, column])))
        rows = np.zeros((len(values), self.dim))
        rows[:, 0] = 1.0
        for slot, parts in found.items():
            # One or two numbers have one sum; three need the care that `row` takes.
            rows[:, 1 + slot] = sum(parts) if len(parts) < 3 else [math.fsum(part) for part in zip(*parts, strict=True)]
        return self._shortened(rows)

    def _shortened(self, rows: Array) -> Array:
        np.clip(rows, -1.0, 1.0, out=rows)
        # Accumulated, since a plain sum may be taken in another order for one row than for many.
        lengths = np.sqrt(np.add.accumulate(rows * rows, axis=1)[:, -1:])
        short: Array = rows / lengths + 0.0  # no negative zeros, which would tell absent from zero
        return short


def feature_map(features: Any, bounds: Any = None) -> Features:
    """Return the map for `features`: names declared in a tuple, or the number of slots to hash them to (0: none).

    >>> feature_map(("a", "b"), bounds=(0.0, 1.0)).dim, feature_map(32).dim, feature_map(0).dim
    (3, 33, 1)
    """
    if isinstance(features, int | np.integer) and not isinstance(features, bool):
        return Declared((), bounds) if features == 0 else Hashed(int(features), bounds)
    if isinstance(features, list | tuple) and not features:
        raise ValueError(
            f"features must have a name at least, got {features!r}; write features=0 for an intercept only"
        )
    if isinstance(features, list | tuple):
        return Declared(features, bounds)
    raise ValueError(
        "features must be the names of the features in a tuple, such as ('age', 'visits'), or the number of slots to "
        f"hash them to, such as 32, got {features!r}"
    )


@lru_cache(maxsize=1 << 16)
def _slot(name: str, slots: int) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return (digest >> 1) % slots, 1.0 if digest & 1 else -1.0


def column_of(name: object, values: Iterable[Any]) -> Array:
    """Return a column, value by value, as `row` would read it; NaN means missing.

    >>> column_of("age", [3, None, True])
    array([ 3., nan,  1.])
    """
    read = (_number(name, value) for value in values)
    return np.array([math.nan if number is None else number for number in read], dtype=np.float64)


def _number(name: object, value: Any) -> float | None:
    """Return a value as a number, or None if it is missing."""
    try:
        number = plain_number(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{_called(name)} must be a number, got {value!r}; make numbers of it first, as a OneHotEncoder in a "
            "pipeline does, or leave it out"
        ) from None
    return None if math.isnan(number) else number


def _hashable(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _nested(bounds: Any) -> bool:
    """Say whether bounds are a sequence of ranges, rather than one range."""
    return _listed(bounds) and any(_listed(item) for item in bounds)


def _listed(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str)


def _called(name: object) -> str:
    return f"feature {name!r}"


def _check_mapping(x: object) -> None:
    if not isinstance(x, Mapping):
        raise ValueError(f"x must be a dictionary of features, got {type(x).__name__}")


def _places(names: Sequence[Any]) -> dict[Any, int]:
    place = {name: i for i, name in enumerate(names)}
    if len(place) != len(names):
        raise ValueError(f"columns must have different names, got {list(names)!r}")
    return place


def _filled(units: Array) -> Array:
    filled: Array = np.where(np.isnan(units), 0.0, units)
    return filled
