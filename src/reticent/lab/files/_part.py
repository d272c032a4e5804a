"""What tables of every format give: parts of rows, with the place of each row in the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array
from reticent.lab.files._columns import BadRow, Column

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
