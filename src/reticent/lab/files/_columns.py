"""Columns of a table: how they are chosen, and how the text of a cell becomes a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array

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
