"""The options about the columns of a file: what they mean, and the layout that they make."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from reticent.lab.files import Layout

T = TypeVar("T")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BETWEEN = re.compile(r",(?=[^,=]+=)")  # a comma before the next COLUMN=


@dataclass(frozen=True)
class Columns:
    """The options about columns, as they were typed.

    >>> Columns("age,city", "sick", bounds="age=0:120", categories="city=Paris|Lyon|other", labels="no,yes").layout()
    ... # doctest: +NORMALIZE_WHITESPACE
    Layout(features=('age', 'city'), target='sick', intercept=False, bounds={'age': (0.0, 120.0)},
    labels=('no', 'yes'), categories={'city': ('Paris', 'Lyon', 'other')}, fill={}, unit_rows=False)
    """

    features: str = ""
    target: str | None = None
    intercept: bool = False
    bounds: str = ""
    labels: str | tuple[str, str] | None = None
    positive: str | None = None
    categories: str = ""
    fill: str = ""
    unit_rows: bool = False
    separator: str = ","
    no_header: bool = False

    @property
    def form(self) -> dict[str, Any]:
        """How a file is opened."""
        return {"separator": self.separator, "header": not self.no_header}

    def check_none(self, source: str) -> None:
        """Refuse columns for a named stream, which has its own."""
        if replace(self, separator=",", no_header=False) != Columns():
            raise ValueError(f"a named stream has its own columns; leave the options of columns out for {source!r}")

    def layout(self) -> Layout:
        """Return what makes a round; refuse texts that mean nothing."""
        from reticent.lab.files import Layout

        return Layout(
            columns_of(self.features),
            self.target,
            self.intercept,
            limits_of(self.bounds),
            labels_of(self.labels) if isinstance(self.labels, str) else self.labels,
            categories_of(self.categories),
            fill_of(self.fill),
            self.unit_rows,
        )

    def settled(self, path: str, once: bool) -> Columns:
        """Return these columns with both labels named: who names one of them means a column that has one other."""
        if self.positive is None:
            return self
        wanted = self.positive.strip()
        if self.labels is not None:
            raise ValueError(f"labels and positive say the same; leave --positive {wanted} out")
        if once:
            raise ValueError(
                f"--positive names one label, and what the other one is cannot be looked up in {path!r}, which is read "
                f"once; name both: --labels OTHER,{wanted}"
            )
        if self.target is None:
            raise ValueError(f"--positive {wanted} is for a target, got none; give --target COLUMN")
        found = texts_of(path, self.target, **self.form)
        if wanted not in found:
            raise ValueError(f"{path} has no label {wanted!r} in column {self.target!r}{_instead(found)}")
        others = [text for text in found if text != wanted]
        if len(others) != 1:
            have = f"it has {_shown(found)}" if others else f"every label is {wanted!r}"
            raise ValueError(
                f"{path} must have two labels in column {self.target!r}, and {have}; name the two that count: --labels "
                f"OTHER,{wanted} (rows with any other are bad ones)"
            )
        return replace(self, positive=None, labels=(others[0], wanted))


def texts_of(path: str, column: str, **form: Any) -> list[str]:
    """Return the first few different texts of a column of a file, in the order of the alphabet."""
    from reticent.lab.files import Distinct, choose, open_table

    with open_table(path, **form) as table:
        place = choose(table.names, column, table.name, table.hint(column))
        asked = Distinct(table.names[place], place)
        for _ in table.parts((asked,), skip=True):
            if len(asked.seen) >= asked.most:
                break
    return sorted(asked.seen)


def _instead(found: list[str]) -> str:
    if len(found) == 2:
        return f"; it has {_shown(found)}: name both, the one to predict last, such as --labels {','.join(found)}"
    return f"; it has {_shown(found)}"


def _shown(found: list[str]) -> str:
    if len(found) > 3:
        return "more than three different texts"
    return " and ".join(repr(text) for text in found) or "none at all"


# Texts such as "age,income", "age=0:120,since=2020-01-01:2026-12-31", "city=Paris|Lyon|other", "age=40" and "no,yes".


def columns_of(text: str) -> tuple[str, ...]:
    """Return the columns of a text such as "age,income"."""
    parts = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if not all(parts):
        raise ValueError(f"features must be columns with commas between them, such as age,income, got {text!r}")
    return parts


def labels_of(text: str) -> tuple[str, str]:
    """Return the two labels of a text such as "no,yes"."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
        raise ValueError(
            "labels must be two different texts with a comma between them, the one to predict last, such as no,yes, "
            f"got {text!r}"
        )
    return parts[0], parts[1]


def limits_of(text: str) -> dict[str, Any]:
    """Return the bounds of a text such as "age=0:120,since=2020-01-01:2026-12-31", of numbers or of dates."""

    def limit(given: str) -> tuple[Any, Any]:
        low, colon, high = given.partition(":")
        if not colon:
            raise ValueError
        if _DATE.fullmatch(low.strip()) and _DATE.fullmatch(high.strip()):
            return date.fromisoformat(low.strip()), date.fromisoformat(high.strip())
        return float(low), float(high)

    return _by_column("bounds", text, limit, "COLUMN=LOW:HIGH", "age=0:120 or since=2020-01-01:2026-12-31")


def categories_of(text: str) -> dict[str, tuple[str, ...]]:
    """Return the categories of a text such as "city=Paris|Lyon|other"."""

    def words(given: str) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in given.split("|"))
        if len(parts) < 2 or not all(parts):
            raise ValueError
        return parts

    return _by_column("categories", text, words, "COLUMN=TEXT|TEXT", "city=Paris|Lyon|other")


def fill_of(text: str) -> dict[str, str]:
    """Return what counts in empty cells, of a text such as "age=40,city=other"."""

    def value(given: str) -> str:
        if not given.strip():
            raise ValueError
        return given.strip()

    return _by_column("fill", text, value, "COLUMN=VALUE", "age=40,city=other")


def _by_column(what: str, text: str, read: Callable[[str], T], form: str, such: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for part in _BETWEEN.split(text) if text.strip() else ():
        name, equals, given = part.partition("=") if what != "bounds" else part.rpartition("=")
        column = name.strip()
        try:
            if not (equals and column):
                raise ValueError
            value = read(given)
        except ValueError:
            raise ValueError(f"{what} must be {form} with commas between them, such as {such}, got {part!r}") from None
        if column in found:
            raise ValueError(f"{what} must be given once for a column, got {column!r} twice in {text!r}; leave one out")
        found[column] = value
    return found
