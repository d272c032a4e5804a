"""What tables of every format give: columns, how the text of a cell becomes a number, and parts of rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array

KINDS = ("number", "label", "class")
_SHOWN = 40  # characters of a cell in a message
_LISTED = 30  # names of columns in a message


class BadRow(ValueError):
    """A row that cannot be read; the message says where, what was found and what to do."""


class BadCell(ValueError):
    """What is wrong with one cell, in a few words."""


@dataclass(frozen=True)
class Column:
    """A column that is read: its name, its place from 0, and what its cells must be.

    A "number" is finite; a "label" is 1, -1 or 0 (which means -1); a "class" is any text, and becomes 1 where it is
    `positive` and -1 elsewhere.

    >>> Column("age", 0).read(" 41.5 "), Column("answer", 1, "class", "yes").read("no")
    (41.5, -1.0)
    """

    name: str
    place: int
    kind: str = "number"
    positive: str = ""

    def read(self, text: str) -> float:
        """Return the number that a cell stands for, or raise `BadCell`."""
        inside = text.strip()
        if not inside:
            raise BadCell(f"column {self.name!r} is empty")
        if self.kind == "class":
            return 1.0 if inside == self.positive else -1.0
        try:
            value = float(inside)
        except ValueError:
            value = None
        if value is None or "_" in inside:
            raise BadCell(f"column {self.name!r} has {shown(inside)} where a number is expected")
        if not math.isfinite(value):
            raise BadCell(f"column {self.name!r} has {shown(inside)} where a finite number is expected")
        if self.kind == "label":
            if value not in (1.0, -1.0, 0.0):
                raise BadCell(
                    f"column {self.name!r} has {shown(inside)} where a label is expected, 1 and -1 or 1 and 0 "
                    "(--positive TEXT takes other labels)"
                )
            return 1.0 if value == 1.0 else -1.0
        return value

    def good(self, values: Array) -> NDArray[np.bool_]:
        """Say which numbers this column may have, as `read` does."""
        if self.kind == "number":
            finite: NDArray[np.bool_] = np.isfinite(values)
            return finite
        label: NDArray[np.bool_] = (values == 1.0) | (values == -1.0) | (values == 0.0)
        return label

    def finish(self, values: Array) -> Array:
        """Return good numbers as `read` does: labels 0 become -1."""
        return np.where(values == 1.0, 1.0, -1.0) if self.kind == "label" else values


def choose(names: Sequence[str], wanted: str, table: str, hint: str = "") -> int:
    """Return the place of the column with this name, or with this number counted from 1; a refusal ends with the hint.

    >>> choose(["age", "income"], "income", "people.csv"), choose(["age", "income"], "1", "people.csv")
    (1, 0)
    >>> choose(["age", "income"], "incom", "people.csv")
    Traceback (most recent call last):
    ValueError: people.csv has no column 'incom'; it has 'age', 'income'; did you mean 'income'?
    """
    places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        numbers = " and ".join(str(place + 1) for place in places)
        raise ValueError(f"{table} has {len(places)} columns called {wanted!r}; choose by number, {numbers}")
    if wanted.isascii() and wanted.isdigit():
        if 1 <= int(wanted) <= len(names):
            return int(wanted) - 1
        raise ValueError(f"{table} has no column {wanted}; it has {len(names)}: {listed(names)}{hint}")
    near = get_close_matches(wanted, names, n=1)
    hint = hint or (f"; did you mean {near[0]!r}?" if near else "")
    raise ValueError(f"{table} has no column {wanted!r}; it has {listed(names)}{hint}")


def listed(names: Sequence[str]) -> str:
    """Return names of columns for a message, the first ones if there are many."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(repr(name) for name in names[:_LISTED]) + more


def shown(text: str) -> str:
    """Return what was found in a cell for a message, shortened.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


# What tables of every format give: parts of rows, with the place of each row in the file.

ADVICE = "correct it, or leave such rows out with --bad-rows skip"


@dataclass(frozen=True)
class Part:
    """Consecutive good rows: `values` has a column for each one that was asked for, `line(i)` is the place of row i.

    `bad[i]` bad rows of the file were left out before row i; the last entry is for the row that comes next.

    >>> part = Part(np.ones((3, 1)), lambda i: i + 2, np.array([0, 0, 1, 1]))[1:]
    >>> part.line(0), part.bad.tolist()
    (3, [0, 1, 1])
    """

    values: Array
    line: Callable[[int], int]
    bad: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def __getitem__(self, rows: slice) -> Part:
        """Return some of the rows, from the first to the last of a range."""
        begin, stop, _ = rows.indices(len(self))
        return Part(self.values[begin:stop], lambda i: self.line(begin + i), self.bad[begin : stop + 1])


class Table(ABC):
    """One pass over a file: names of columns first, then rows in parts; `skipped` counts the bad rows left out."""

    place: str
    """What places of rows are called: "line" or "row"."""

    hint = ""
    """What to ask somebody who looks for a column that is not there."""

    live = False
    """Whether rows flow in as somebody writes them, and can be read once."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        """Take the name of the file, for messages, and the names of its columns."""
        self.name, self.names = name, tuple(names)
        self.skipped = 0

    def parts(self, columns: Sequence[Column], *, skip: bool = False, most: int = 65536) -> Iterator[Part]:
        """Go through the good rows in parts of at most `most`.

        A bad row ends this with `BadRow`, after the rows before it; with `skip` it is left out and counted. Where the
        file ends with bad rows, a last part without rows counts them.
        """
        told = 0
        for part in self._parts(columns, skip):
            for begin in range(0, len(part), most):
                yield part[begin : begin + most]
            told = int(part.bad[-1])
        if told < self.skipped:
            yield Part(np.empty((0, len(columns))), [].__getitem__, np.array([self.skipped]))

    def _even(self, values: Array, line: Callable[[int], int]) -> Part:
        """Return a part without bad rows between its rows."""
        return Part(values, line, np.full(len(values) + 1, self.skipped))

    @abstractmethod
    def _parts(self, columns: Sequence[Column], skip: bool) -> Iterator[Part]:
        """Go through the good rows in parts as they come."""

    @abstractmethod
    def done(self) -> float:
        """Return the share of the file that has been read, 0 where nobody knows."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        """Return the table; leaving closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


class Sieve:
    """Keeps good rows that come one by one, and deals with bad ones as the policy says."""

    def __init__(self, table: Table, columns: Sequence[Column], skip: bool) -> None:
        """Start with nothing."""
        self.table, self.columns, self.skip = table, columns, skip
        self._values: list[list[float]] = []
        self._lines: list[int] = []
        self._bad: list[int] = []

    def good(self, values: list[float], line: int) -> None:
        """Keep a row."""
        self._values.append(values)
        self._lines.append(line)
        self._bad.append(self.table.skipped)

    def bad(self, line: int, reason: str) -> Iterator[Part]:
        """Leave a row out and count it, or give the rows before it and stop with `BadRow`."""
        if self.skip:
            self.table.skipped += 1
            return
        yield from self.rows()
        raise BadRow(f"{self.table.name}, {self.table.place} {line}: {reason}; {ADVICE}")

    def rows(self) -> Iterator[Part]:
        """Give what was kept, if anything."""
        if self._values:
            lines, self._lines = self._lines, []
            values, self._values = np.array(self._values), []
            bad, self._bad = np.array([*self._bad, self.table.skipped]), []
            yield Part(values.reshape(-1, len(self.columns)), lines.__getitem__, bad)
