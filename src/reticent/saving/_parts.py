"""Objects as a structure of plain JSON and a list of arrays, and back again with nothing run on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from reticent._core._tags import tag_of, tagged
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.losses._differentiated import Differentiated
from reticent.saving._old import OLD_NAMES


def is_callers(loss: object) -> bool:
    """Say whether a loss has to be given again when a learner is loaded: it holds functions."""
    return isinstance(loss, Custom)


def described(loss: Loss) -> dict[str, Any]:
    """Return what is known of such a loss: its kind, its functions by name, and the slope that it declares.

    >>> described(Custom(abs, max, lipschitz=2.0))
    {'kind': 'Custom', 'value': 'abs', 'subgradient': 'max', 'lipschitz': 2.0}
    """
    assert isinstance(loss, Custom)
    bound = loss.bound
    found = {
        "kind": type(loss).__name__,
        "value": _name(loss.value),
        "subgradient": _name(loss.subgradient),
        "lipschitz": _name(bound) if callable(bound) else bound,
    }
    if isinstance(loss, Differentiated):
        found |= {"maker": loss.engine.maker, "probe": loss.probe}
    elif loss.hessian is not None:
        found["hessian"] = _name(loss.hessian)
    return found


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).rpartition(".")[2]


def matching(description: dict[str, Any], given: Loss | None) -> Loss:
    """Return the loss that was given, if it is what a file describes; refuse it otherwise."""
    wanted = ", ".join(f"{name}={value!r}" for name, value in description.items() if name != "kind")
    wanted = f"{description.get('kind')}({wanted})"
    if given is None:
        raise ValueError(
            f"loss must be given to load this learner, got None: its loss {wanted} holds functions, which are not in "
            "the file; write rt.load(path, loss=...) with the loss that it was made with"
        )
    if not is_callers(given) or described(given) != description:
        raise ValueError(
            f"loss must be the one that the learner was made with, {wanted}, got {given!r}; functions are told apart "
            "by their names"
        )
    return given


# What may stand in a saved file by name: classes of reticent, its planners, and known random generators.

_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def name_of_class(kind: type) -> str:
    """Return the tag of a class of reticent in saved files.

    >>> from reticent.losses import Linear
    >>> name_of_class(Linear)
    'linear'
    """
    tag = tag_of(kind)
    if tag is None:
        raise ValueError(
            f"only reticent's own classes and plain values (numbers, text, arrays, lists, tuples, sets, dictionaries) "
            f"can be saved, got an object of type {kind.__module__}.{kind.__qualname__}; give such values, or pickle"
        )
    return tag


def class_of_name(name: str) -> type:
    """Return the class of reticent that has this tag in saved files, or had this name in those of version 1."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not the name of a class of reticent")
    found = tagged(OLD_NAMES.get(name, name))
    if not isinstance(found, type):
        raise ValueError(f"there is no class {name!r} here")
    return found


def name_of_planner(function: Callable[..., Any]) -> str:
    """Return the tag of a planner that makes the plans of epochs; other functions cannot be saved."""
    tag = tag_of(function) if isinstance(function, FunctionType) else None
    if tag is None:
        raise ValueError(
            f"functions cannot be saved, only the planners of reticent.planning by name, got {function!r}; write the "
            "plan with one of them as its recipe"
        )
    return tag


def planner_of_name(name: str) -> Callable[..., Any] | None:
    """Return the planner of this tag; None if there is none."""
    found = tagged(name)
    return found if isinstance(found, FunctionType) else None


def name_of_bits(bits: Any) -> str:
    """Return the name of the source of random bits inside a generator."""
    kind = type(bits)
    name = kind.__name__
    if name in _BITS and kind is getattr(np.random, name):
        return name
    if name == "ChaCha" and kind.__module__.startswith("randomgen."):
        return name
    raise ValueError(
        f"the state of a {name} generator cannot be saved; take one of {', '.join(_BITS)}, or seed=None for ChaCha20"
    )


def bits_of_name(name: str) -> Any:
    """Return a new source of random bits of this kind, in any state."""
    if name == "ChaCha":
        from randomgen import ChaCha

        return ChaCha(key=0)
    if name not in _BITS:
        raise ValueError(f"{name!r} is not a random generator that can be loaded")
    return getattr(np.random, name)(0)


# From objects to a structure of plain JSON and a list of arrays, with shared references kept.

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


# From a structure of plain JSON and the bytes of arrays back to the objects, with nothing run on the way.

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
