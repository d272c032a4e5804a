"""What tables of every format give: columns, how the text of a cell becomes a number, and parts of rows."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent.estimators._encoding import Encoding, is_missing, shown

_LISTED = 30  # names of columns in a message
_GROUPED = re.compile(r"[+-]?\d{1,3}([,.' \u00a0]\d{3})*([.,]\d+)?|[+-]?\d+,\d+")
_DATED = re.compile(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{4}")
_TOLD = 3  # bad rows that are told one by one


class BadRow(ValueError):
    """A row that cannot be read; the message says where, what was found and what to do."""


class TooManyBad(ValueError):
    """So many bad rows that nobody wants to read on."""


class BadCell(ValueError):
    """What is wrong with one cell, in a few words; `empty` is its column where nothing is there."""

    def __init__(self, reason: str, empty: str = "") -> None:
        """Take the words."""
        super().__init__(reason)
        self.empty = empty


@dataclass(frozen=True)
class Column:
    """A column that is read: its name, its place from 0, and what its cells must be.

    A "number" is finite; a "label" is 1 and -1, or 1 and 0; a "class" is one of two `labels`, and becomes -1 for the
    first and 1 for the second; a "coded" cell is what its `encoding` reads. An empty cell is the number `fill`, if that
    is one.

    >>> Column("age", 0).read(" 41.5 "), Column("answer", 1, "class", ("no", "yes")).read("no")
    (41.5, -1.0)
    >>> Column("age", 0, fill=40.0).read("n/a")
    40.0
    """

    name: str
    place: int
    kind: str = "number"
    labels: tuple[str, ...] = ()
    encoding: Encoding | None = None
    fill: float = math.nan

    @property
    def text(self) -> bool:
        """Whether cells are read as texts."""
        return self.kind in ("class", "coded")

    @property
    def fills(self) -> bool:
        """Whether an empty cell counts as something."""
        return not math.isnan(self.fill)

    def read(self, text: str) -> float:
        """Return the number that a cell stands for, or raise `BadCell`."""
        inside = text.strip()
        if self.fills and is_missing(inside):
            return self.fill
        if not inside:
            raise BadCell(f"column {self.name!r} is empty", self.name)
        if self.kind == "class":
            return self._label(inside)
        if self.kind == "coded":
            return self._code(inside)
        try:
            value = float(inside)
        except ValueError:
            value = None
        if value is None or "_" in inside:
            raise self._bad(inside, "a number", _other_form(inside))
        if not math.isfinite(value):
            raise self._bad(inside, "a finite number")
        if self.kind == "label" and value not in (1.0, -1.0, 0.0):
            raise self._bad(inside, "a label", ", 1 and -1 or 1 and 0")
        return value

    def _label(self, inside: str) -> float:
        for label, value in zip(self.labels, (-1.0, 1.0), strict=True):
            if inside == label or _same_number(inside, label):
                return value
        raise self._bad(inside, "a label", f", {self.labels[0]!r} or {self.labels[1]!r}")

    def _code(self, inside: str) -> float:
        assert self.encoding is not None
        try:
            found = self.encoding.code(inside)
        except ValueError as why:
            raise BadCell(f"column {self.name!r} {why}") from None
        if math.isnan(found):
            raise self._bad(inside, "a value")
        return found

    def _bad(self, inside: str, expected: str, namely: str = "") -> BadCell:
        said = f"column {self.name!r} has {shown(inside)} where {expected} is expected{namely}"
        return BadCell(said, self.name if is_missing(inside) else "")

    def good(self, values: Array) -> NDArray[np.bool_]:
        """Say which numbers this column may have, as `read` does."""
        if self.kind == "number":
            finite: NDArray[np.bool_] = np.isfinite(values)
            return finite | np.isnan(values) if self.fills else finite
        label: NDArray[np.bool_] = (values == 1.0) | (values == -1.0) | (values == 0.0)
        return label

    def finish(self, values: Array) -> Array:
        """Return good numbers as `read` does: the fill where there was nothing."""
        return np.where(np.isnan(values), self.fill, values) if self.fills else values


@dataclass(frozen=True)
class Distinct(Column):
    """A column of which only is asked which texts it has; no more than `most` are kept."""

    kind: str = "coded"
    most: int = 4
    seen: dict[str, None] = field(default_factory=dict)

    def read(self, text: str) -> float:
        """Keep a text that is new and means something."""
        if len(self.seen) < self.most and not is_missing(text):
            self.seen[text.strip()] = None
        return 0.0


def _same_number(text: str, label: str) -> bool:
    """Say whether two texts are the same number, as 1 and 1.0 are."""
    try:
        return float(text) == float(label)
    except ValueError:
        return False


def _other_form(text: str) -> str:
    """Say how numbers are written where a text is one in another form, and what to do with a date."""
    if _GROUPED.fullmatch(text):
        return ", with a point for decimals and nothing between thousands"
    return " (for dates, give dates as bounds: 2020-01-01:2026-12-31)" if _DATED.match(text) else ""


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
    """One pass over a file: names of columns first, then rows in parts; `skipped` counts the bad rows left out.

    `told` has the first of them in words, `empty` how many had nothing in a column, by its name. More of them than
    `enough` raise `TooManyBad`.
    """

    place: str
    """What places of rows are called: "line" or "row"."""

    live = False
    """Whether rows flow in as somebody writes them, and can be read once."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        """Take the name of the file, for messages, and the names of its columns."""
        self.name, self.names = name, tuple(names)
        self.skipped = 0
        self.enough = math.inf
        self.told: list[str] = []
        self.empty: Counter[str] = Counter()

    def hint(self, wanted: str) -> str:
        """Ask somebody who looks for a column that is not there what may help; nothing where nothing would."""
        return ""

    def skip(self, line: int, bad: BadCell) -> None:
        """Leave a bad row out, and keep count."""
        self.skipped += 1
        if bad.empty:
            self.empty[bad.empty] += 1
        if len(self.told) < _TOLD:
            self.told.append(f"{self.name}, {self.place} {line}: {bad}")
        if self.skipped > self.enough:
            raise TooManyBad

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

    def bad(self, line: int, bad: BadCell) -> Iterator[Part]:
        """Leave a row out and count it, or give the rows before it and stop with `BadRow`."""
        if self.skip:
            self.table.skip(line, bad)
            return
        yield from self.rows()
        raise BadRow(f"{self.table.name}, {self.table.place} {line}: {bad}; {ADVICE}")

    def rows(self) -> Iterator[Part]:
        """Give what was kept, if anything."""
        if self._values:
            lines, self._lines = self._lines, []
            values, self._values = np.array(self._values), []
            bad, self._bad = np.array([*self._bad, self.table.skipped]), []
            yield Part(values.reshape(-1, len(self.columns)), lines.__getitem__, bad)
