"""Rows of a differentiated loss in stacks of equal shape, which an engine evaluates at one point in one call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from reticent._check import Array, real
from reticent.losses._engine import Engine
from reticent.losses._reader import check_all
from reticent.losses._rows import Charted

_LEAST = 64  # rows that a stack has room for at first


class Stack:
    """Data of one structure, in arrays with room for more: twice as much whenever they are full.

    A compiled function serves one size, so sizes are few. They depend on the number of rows only, and so do all
    numbers that come out, to the last bit. Behind the rows there are copies of the first.
    """

    def __init__(self, datum: Any) -> None:
        self.rows: list[int] = []
        self.together = True
        self._like = datum
        self._leaves = [np.repeat(leaf[None], _LEAST, axis=0) for leaf in leaves(datum)]
        self._room = _LEAST

    def add(self, row: int, datum: Any) -> None:
        """Add a datum, which is that row of all."""
        count = len(self.rows)
        if count == self._room:
            self._leaves = [np.concatenate([leaf, np.repeat(leaf[:1], count, axis=0)]) for leaf in self._leaves]
            self._room *= 2
        for leaf, part in zip(self._leaves, leaves(datum), strict=True):
            leaf[count] = part
        self.rows.append(row)

    @property
    def data(self) -> Any:
        """The data as one datum, each of whose arrays has the rows as its first axis."""
        return rebuilt(self._like, iter(self._leaves))


class StackedReader:
    """Rows of a differentiated loss, one stack for each shape of datum; see `Reader`."""

    def __init__(self, domain: Charted, engine: Engine) -> None:
        self.domain, self.engine = domain, engine
        self._items: list[Any] = []
        self._stacks: dict[Hashable, Stack] = {}
        self._single: list[int] = []  # rows that have no shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._items)

    def add(self, items: Sequence[Any]) -> None:
        """Add rows."""
        for row, datum in enumerate(items, start=len(self._items)):
            shape = shape_of(datum)
            if shape is None:
                self._single.append(row)
                continue
            if shape not in self._stacks:
                self._stacks[shape] = new = Stack(datum)
                # Once for all: the same rows must always be read in the same way.
                new.together = self.engine.takes(self.domain.center, datum, new.data)
            self._stacks[shape].add(row, datum)
        self._items += items

    def values(self, x: Array) -> Array:
        """Return the loss of each row at `x`, all finite."""
        found = np.empty(len(self))
        for rows, part in self._read(x, self.engine.heights, self.engine.value):
            found[rows] = part
        good = np.isfinite(found)
        if not good.all():
            real("the value of a custom loss", float(found[np.argmin(good)]))
        return found

    def both(self, x: Array, bounds: Array) -> tuple[Array, Array]:
        """Return values and gradients, all checked."""
        values, slopes = np.empty(len(self)), np.empty((len(self), x.size))
        for rows, (part, sloping) in self._read(x, self.engine.across, self.engine.both):
            values[rows], slopes[rows] = part, sloping
        check_all(self.domain, x, values, slopes, bounds)
        return values, slopes

    def _read(
        self, x: Array, together: Callable[[Array, Any], Any], alone: Callable[[Array, Any], Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield rows and what was found for them, by stacks, and one by one where that cannot be."""
        single = list(self._single)
        for stack in self._stacks.values():
            found = together(x, stack.data) if stack.together else None
            count = len(stack.rows)
            if found is None:
                single += stack.rows
            else:
                yield stack.rows, tuple(part[:count] for part in found) if isinstance(found, tuple) else found[:count]
        for row in single:
            yield row, alone(x, self._items[row])


def shape_of(datum: Any) -> Hashable | None:
    """Return what two data must share to lie in one stack; None for data that cannot lie in any.

    >>> shape_of((np.zeros(3), 1)) == shape_of((np.ones(3), 2)), shape_of("text") is None
    (True, True)
    """
    if isinstance(datum, dict | list | tuple):
        parts = tuple(map(shape_of, datum.values() if isinstance(datum, dict) else datum))
        if None in parts:
            return None
        return type(datum), tuple(datum) if isinstance(datum, dict) else (), parts
    if datum is None:
        return "nothing"
    if not isinstance(datum, bool | int | float | np.ndarray):
        return None
    array = np.asarray(datum)
    return (array.shape, array.dtype.str) if array.dtype.kind in "biufc" else None


def leaves(datum: Any) -> Iterator[Array]:
    """Yield the arrays and numbers of a datum as arrays."""
    if isinstance(datum, dict | list | tuple):
        for part in datum.values() if isinstance(datum, dict) else datum:
            yield from leaves(part)
    elif datum is not None:
        yield np.asarray(datum)


def rebuilt(like: Any, parts: Iterator[Any]) -> Any:
    """Return a datum of the structure of another, with other leaves.

    >>> rebuilt({"a": (1, None), "b": [2]}, iter("xy"))
    {'a': ('x', None), 'b': ['y']}
    """
    if isinstance(like, dict):
        return {key: rebuilt(part, parts) for key, part in like.items()}
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(rebuilt(part, parts) for part in like))
    if isinstance(like, list | tuple):
        return type(like)(rebuilt(part, parts) for part in like)
    return like if like is None else next(parts)
