"""Features by public configuration: declared or hashed, clipped to public bounds, in rows of length at most 1.

What is written here is all that decides how a row looks, beside the row itself: a feature that was never seen before, a
value beyond its bounds or a missing one changes neither the length of rows nor what is promised about them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from reticent._core._check import Array, integer
from reticent.estimators._encoding import Encoding, Number, Range, encoding_of

Name = Hashable
_NUMBER = Number(Range(None))


class Features(ABC):
    """A map from features to rows of length at most 1 that begin with an intercept."""

    dim: int
    """The length of a row, the intercept included."""

    def reads(self, name: Any) -> bool:
        """Say whether a feature of this name is read at all."""
        return True

    def plain(self, name: Any) -> bool:
        """Say whether a feature that is read is a number."""
        return True

    def codes(self, name: Any, values: Iterable[Any]) -> Array:
        """Return a column as numbers, value by value as `row` would read it; NaN means missing."""
        return np.array([_code(_NUMBER, name, value) for value in values], dtype=np.float64)

    @abstractmethod
    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the row of one dictionary of features; features that are absent, None or NaN count as missing."""

    @abstractmethod
    def rows(self, names: Sequence[Any], values: Array) -> Array:
        """Return the rows of a block with named columns, each as `row` does to the last bit; NaN means missing."""


class Declared(Features):
    """Features by name: others are ignored, and a missing one counts as its fill, or as the middle of its bounds.

    A row is (1, units) divided by the root of one plus the number of features: linear in numbers and dates, with a
    weight of its own for each category (of a missing one without a fill, none).

    >>> Declared(("age", "visits", "new"), ((0, 100), (0, 10), (0, 1))).row({"visits": 10, "age": 75, "other": 3.0})
    array([0.5 , 0.25, 0.5 , 0.  ])
    >>> city = {"age": (0, 100), "size": (0, 1), "city": ("Paris", "Lyon", "other")}
    >>> Declared(tuple(city), city, fill={"city": "Lyon"}).row({"age": 100})
    array([0.5, 0.5, 0. , 0. , 0.5, 0. ])
    """

    def __init__(self, names: Sequence[Name], bounds: Any = None, fill: Any = None) -> None:
        """Take the names, and what is known of each: one range for all, one for each, or a dictionary by name.

        What is known of a feature is (low, high), of numbers or of dates, or a tuple of the texts that it may be;
        `fill` has the values of features that are missing, by name.
        """
        self.names = tuple(names)
        for name in self.names:
            if not _hashable(name):
                raise ValueError(f"features must be names, such as texts or numbers, got {name!r} among {self.names!r}")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"features must have different names, got {self.names!r}")
        self.encodings = self._encodings(bounds)
        set_fill(dict(zip(self.names, self.encodings, strict=True)), fill)
        widths = [len(encoding.tails) for encoding in self.encodings]
        self._starts = [1 + sum(widths[:i]) for i in range(len(widths))]
        self.dim = 1 + sum(widths)
        self._root = math.sqrt(1 + len(self.names))
        self._known = dict(zip(self.names, self.encodings, strict=True))

    def _encodings(self, bounds: Any) -> tuple[Encoding, ...]:
        if isinstance(bounds, Mapping):
            missing = [name for name in self.names if name not in bounds]
            if missing:
                raise ValueError(f"bounds must have a range for every feature, got none for {missing[0]!r}")
            return tuple(encoding_of(bounds[name], f"bounds[{name!r}]") for name in self.names)
        if not _nested(bounds):
            return tuple(encoding_of(bounds) for _ in self.names)
        if len(bounds) != len(self.names):
            raise ValueError(
                f"bounds must be (low, high), or one such pair for each of the {len(self.names)} features, "
                f"got {len(bounds)} of them"
            )
        return tuple(
            encoding_of(known, f"the bounds of {name!r}") for name, known in zip(self.names, bounds, strict=True)
        )

    def reads(self, name: Any) -> bool:
        """Say whether a feature of this name was declared."""
        return name in self._known

    def plain(self, name: Any) -> bool:
        """Say whether the codes of a feature are its numbers."""
        return type(self._known[name]) is Number

    def codes(self, name: Any, values: Iterable[Any]) -> Array:
        """Return a column as numbers, value by value as `row` would read it; NaN means missing."""
        return np.array([_code(self._known[name], name, value) for value in values], dtype=np.float64)

    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the row of one dictionary of features."""
        _check_mapping(x)
        row = np.zeros(self.dim)
        row[0] = 1.0
        for at, name, encoding in zip(self._starts, self.names, self.encodings, strict=True):
            code = _code(encoding, name, x.get(name))
            if type(encoding) is Number:  # the usual one, in a hurry
                value = encoding.fill if math.isnan(code) else code
                row[at] = 0.0 if math.isnan(value) else encoding.range.unit(_called(name), value)
            else:
                row[at : at + len(encoding.tails)] = encoding.units(_called(name), np.array([code]))[0]
        scaled: Array = row / self._root
        return scaled

    def rows(self, names: Sequence[Any], values: Array) -> Array:
        """Return the rows of a block with named columns."""
        place = _places(names)
        rows = np.zeros((len(values), self.dim))
        rows[:, 0] = 1.0
        for at, name, encoding in zip(self._starts, self.names, self.encodings, strict=True):
            codes = values[:, place[name]] if name in place else np.full(len(values), math.nan)
            rows[:, at : at + len(encoding.tails)] = encoding.units(_called(name), codes)
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
            value = _code(_NUMBER, name, given)
            if not math.isnan(value):
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


def feature_map(features: Any, bounds: Any = None, fill: Any = None) -> Features:
    """Return the map for `features`: names declared in a tuple, or the number of slots to hash them to (0: none).

    >>> feature_map(("a", "b"), bounds=(0.0, 1.0)).dim, feature_map(32).dim, feature_map(0).dim
    (3, 33, 1)
    """
    if isinstance(features, int | np.integer) and not isinstance(features, bool):
        if fill is not None:
            raise ValueError(f"fill must be None unless features are declared by name, got {fill!r}")
        return Declared((), bounds) if features == 0 else Hashed(int(features), bounds)
    if isinstance(features, list | tuple) and not features:
        raise ValueError(
            f"features must have a name at least, got {features!r}; write features=0 for an intercept only"
        )
    if isinstance(features, list | tuple):
        return Declared(features, bounds, fill)
    raise ValueError(
        "features must be the names of the features in a tuple, such as ('age', 'visits'), or the number of slots to "
        f"hash them to, such as 32, got {features!r}"
    )


@lru_cache(maxsize=1 << 16)
def _slot(name: str, slots: int) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return (digest >> 1) % slots, 1.0 if digest & 1 else -1.0


def set_fill(encodings: Mapping[Any, Encoding], fill: Any) -> None:
    """Give the encodings of features what counts where one is missing, by name."""
    if fill is None:
        return
    if not isinstance(fill, Mapping):
        raise ValueError(f"fill must be a dictionary of public values by the name of their feature, got {fill!r}")
    for name, value in fill.items():
        if name not in encodings:
            raise ValueError(f"fill must be for features, got {name!r}; there are {', '.join(map(repr, encodings))}")
        try:
            encodings[name].filled(value)
        except ValueError as why:
            raise ValueError(f"fill[{name!r}] {str(why).removeprefix('fill ')}") from None


def _code(encoding: Encoding, name: object, value: Any) -> float:
    try:
        return encoding.code(value)
    except ValueError as why:
        raise ValueError(f"{_called(name)} {why}") from None


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
