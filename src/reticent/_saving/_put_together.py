"""From a structure of plain JSON and the bytes of arrays back to the objects, with nothing run on the way."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np

from reticent.domains import Domain
from reticent.losses import Loss

from ._loss import matching
from ._names import bits_of_name, class_of_name, planner_of_name
from ._take_apart import PLAIN, plain_key

_TYPE = re.compile(rf"[<|][{PLAIN}]\d+(\[\d*\w+\])?", re.ASCII)
_LARGE = 1 << 20  # dimensions that any file may have


class Assembly:
    """Objects made again from what `Parts` wrote, each once.

    Objects of reticent are made empty and given their state; of functions there are only planners, by name, and the
    loss that the caller gives.
    """

    def __init__(self, entries: list[Any], data: memoryview, loss: Loss | None = None) -> None:
        self._entries, self._data, self._loss = entries, data, loss
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()
        self._room = data.nbytes  # what arrays may still take: each has bytes of its own
        self._largest = max(data.nbytes, _LARGE)

    def value(self, text: Any) -> Any:
        """Return the thing that a part of the structure stands for."""
        if not isinstance(text, dict):
            if isinstance(text, list):
                raise ValueError("a list stands where a value should")
            return text
        if "float" in text:
            return float(text["float"])
        place = text["$"]
        if type(place) is not int or not 0 <= place < len(self._entries):
            raise ValueError(f"there is no entry {place!r}")
        if place not in self._made:
            if place in self._open:
                raise ValueError(f"entry {place} is a part of itself")
            self._open.add(place)
            self._make(place, self._entries[place])
            self._open.remove(place)
        return self._made[place]

    def _make(self, place: int, entry: list[Any]) -> None:
        """Make what an entry describes; what can hold itself is known before it is filled."""
        made: Any
        match entry:
            case ["list", parts]:
                made = self._made[place] = []
                made.extend(map(self.value, parts))
            case ["dict", parts]:
                made = self._made[place] = {}
                made.update((plain_key(self.value(key)), self.value(part)) for key, part in parts)
            case ["set", parts]:
                made = self._made[place] = set()
                made.update(plain_key(self.value(part)) for part in parts)
            case ["object", name, state]:
                kind = class_of_name(name)
                made = self._made[place] = object.__new__(kind)
                _set_state(made, self.value(state))
            case ["tuple", parts]:
                self._made[place] = tuple(map(self.value, parts))
            case ["frozenset", parts]:
                self._made[place] = frozenset(plain_key(self.value(part)) for part in parts)
            case _:
                self._made[place] = self._leaf(entry)

    def _leaf(self, entry: list[Any]) -> Any:
        match entry:
            case ["bytes", text]:
                return bytes.fromhex(text)
            case ["bytearray", text]:
                return bytearray.fromhex(text)
            case ["array", kind, shape, order, writeable, start]:
                return self._array(_dtype(kind), tuple(shape), order, writeable, start)
            case ["scalar", kind, text]:
                return _native(np.frombuffer(bytes.fromhex(text), dtype=_dtype(kind)))[0]
            case ["generator", name, state]:
                bits = bits_of_name(name)
                bits.state = self.value(state)
                return np.random.Generator(bits)
            case ["planner", name]:
                return _planner(name)
            case ["partial", name, args, keywords]:
                return partial(_planner(name), *self.value(args), **self.value(keywords))
            case ["loss", description]:
                return matching(description, self._loss)
            case ["domain", name, args]:
                body: Any = class_of_name(name)
                if not issubclass(body, Domain):
                    raise ValueError(f"{name} is not a domain")
                given = self.value(args)
                for number in given:
                    if isinstance(number, int) and number > self._largest:
                        raise ValueError(f"{body.__name__} of {number} dimensions is too large for this file")
                return body(*given)
            case ["named", name, parts]:
                kind = class_of_name(name)
                if not issubclass(kind, tuple):
                    raise ValueError(f"{name} is not a tuple")
                return tuple.__new__(kind, map(self.value, parts))
        raise ValueError(f"an entry of a kind {entry[0]!r} is not known")

    def _array(self, kind: np.dtype[Any], shape: tuple[int, ...], order: Any, writeable: bool, start: int) -> Any:
        count = int(np.prod(shape, dtype=object))
        self._room -= count * kind.itemsize
        if start < 0 or min(shape, default=0) < 0 or start + count * kind.itemsize > self._data.nbytes:
            raise ValueError("an array lies beyond the end")
        if self._room < 0:
            raise ValueError("arrays lie on top of each other")
        flat = np.frombuffer(self._data, dtype=kind, count=count, offset=start) if count else np.empty(0, kind)
        # A copy in memory of its own: arrays of a state grow in place.
        made = np.empty(shape, dtype=kind.newbyteorder("="), order=order)
        made[...] = flat.reshape(shape, order=order)
        made.flags.writeable = writeable
        return made


def _dtype(text: str) -> np.dtype[Any]:
    if not _TYPE.fullmatch(text):
        raise ValueError(f"{text!r} is not a type of numbers")
    return np.dtype(text)


def _native(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _planner(name: str) -> Any:
    found = planner_of_name(name)
    if found is None:
        raise ValueError(f"{name!r} is not a planner of reticent.planning")
    return found


def _set_state(made: Any, state: Any) -> None:
    """Give an object its state, as pickle would; no number of a state is NaN, which would go unnoticed for long."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in part.items() if isinstance(part, dict) else ():
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"{name} of a {type(made).__name__} is not a number")
    if hasattr(type(made), "__setstate__"):
        made.__setstate__(state)
        return
    own, slots = state if isinstance(state, tuple) else (state, None)
    if own:
        vars(made).update(own)
    for name, value in (slots or {}).items():
        object.__setattr__(made, name, value)
