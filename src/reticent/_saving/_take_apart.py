"""From objects to a structure of plain JSON and a list of arrays, with shared references kept."""

from __future__ import annotations

import math
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from reticent.domains import Domain

from ._loss import described, is_callers
from ._names import name_of_bits, name_of_class, name_of_planner

ALIGNED = 16
"""Arrays begin at multiples of this many bytes."""
PLAIN = "biufcSUmM"
"""Kinds of numpy types whose bytes say everything: all but objects and records."""


class Parts:
    """Objects taken apart: `entries` describe those that are more than a number or a text, `sections` hold arrays.

    In the structure, `{"$": 3}` stands for the object that entry 3 describes. The state of an object of reticent is
    what pickle would take.

    >>> parts = Parts()
    >>> root = parts.value([1, 0.5, (True, None)])
    >>> root, parts.entries
    ({'$': 0}, [['list', [1, 0.5, {'$': 1}]], ['tuple', [True, None]]])
    """

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.sections: list[memoryview] = []
        self.size = 0
        self._known: dict[int, int] = {}
        self._alive: list[Any] = []  # what has gone could lend its identity to something new

    def value(self, thing: Any) -> Any:
        """Return what stands for a thing in the structure."""
        kind = type(thing)
        if thing is None or kind in (bool, int, str):
            return thing
        if kind is float:
            return thing if math.isfinite(thing) else {"float": repr(thing)}
        place = self._known.get(id(thing))
        if place is None:
            place = self._known[id(thing)] = len(self.entries)
            self._alive.append(thing)
            self.entries.append(None)
            self.entries[place] = self._entry(thing, kind)
        return {"$": place}

    def _entry(self, thing: Any, kind: type) -> list[Any]:
        if kind in (list, tuple):
            return [kind.__name__, [self.value(part) for part in thing]]
        if kind in (set, frozenset):
            # In a fixed order, so that a state has one form.
            return [kind.__name__, [self.value(plain_key(part)) for part in sorted(thing, key=repr)]]
        if kind is dict:
            return ["dict", [[self.value(plain_key(key)), self.value(part)] for key, part in thing.items()]]
        if kind in (bytes, bytearray):
            return [kind.__name__, thing.hex()]
        if kind in (np.ndarray, np.memmap):
            return self._array(np.asarray(thing))
        if isinstance(thing, np.generic):
            return ["scalar", _type(thing.dtype), _little(np.asarray(thing)).tobytes().hex()]
        if kind is np.random.Generator:
            bits = thing.bit_generator
            return ["generator", name_of_bits(bits), self.value(bits.state)]
        if kind is partial:
            return ["partial", name_of_planner(thing.func), self.value(thing.args), self.value(dict(thing.keywords))]
        if kind is FunctionType:
            return ["planner", name_of_planner(thing)]
        if is_callers(thing):
            return ["loss", described(thing)]
        if isinstance(thing, Domain):
            return ["domain", name_of_class(kind), self.value(thing._parameters())]
        if isinstance(thing, tuple):
            return ["named", name_of_class(kind), [self.value(part) for part in thing]]
        return ["object", name_of_class(kind), self.value(thing.__getstate__())]

    def _array(self, array: Any) -> list[Any]:
        text = _type(array.dtype)
        # The order of a matrix is part of it: sums over rows round differently.
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        plain = _little(array).reshape(-1, order=order)
        start = self.size
        section = np.ascontiguousarray(plain).view(np.uint8).data if plain.size else memoryview(b"")
        self.sections.append(section)
        self.size += -(-section.nbytes // ALIGNED) * ALIGNED
        return ["array", text, list(array.shape), order, bool(array.flags.writeable), start]


def plain_key(thing: Any) -> Any:
    """Return a key of a dictionary or member of a set; only numbers and texts are, because to hash others takes time.

    A tuple of two tuples of two tuples, and so on, is small in a file and takes for ever to hash.

    >>> plain_key((1, 2))
    Traceback (most recent call last):
    ValueError: a key of a dictionary or member of a set must be a number or a text to be saved, got a tuple
    """
    if thing is None or type(thing) in (bool, int, float, str, bytes) or isinstance(thing, np.generic):
        return thing
    raise ValueError(
        f"a key of a dictionary or member of a set must be a number or a text to be saved, got a {type(thing).__name__}"
    )


def _type(kind: np.dtype[Any]) -> str:
    if kind.kind not in PLAIN:
        raise ValueError(f"arrays must be of numbers, text or times to be saved, got one of {kind}; give lists instead")
    return str(kind.newbyteorder("<").str)


def _little(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
