"""Columns that say whose a row is and when it came: read beside those that make a round, and never part of one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from reticent.estimators._encoding import is_missing, shown
from reticent.lab.files._table import BadCell, Column

SECOND = 1_000_000
"""Times are whole microseconds since 1970, in UTC."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")
_LAST = 1 << 53  # microseconds: beyond, not every one of them is a double, nor a date


@dataclass(frozen=True)
class Keys(Column):
    """A column of keys of persons, as texts: a cell becomes the number of its key, 0 where nobody is named.

    Every key is kept once: some 150 bytes for each person.

    >>> keys = Keys("id", 0)
    >>> [keys.read(text) for text in ("ann", " bob", "", "ann", "n/a")], keys.named([2.0, 0.0, 1.0])
    ([1.0, 2.0, 0.0, 1.0, 0.0], ['bob', None, 'ann'])
    """

    kind: str = "coded"
    known: dict[str, int] = field(default_factory=dict)
    texts: list[str | None] = field(default_factory=lambda: [None])

    def read(self, text: str) -> float:
        """Return the number of a key."""
        key = text.strip()
        if is_missing(key):
            return 0.0
        if key not in self.known:
            self.known[key] = len(self.texts)
            self.texts.append(key)
        return float(self.known[key])

    def named(self, codes: Any) -> list[str | None]:
        """Return the keys that numbers stand for."""
        return [self.texts[int(code)] for code in codes]


@dataclass(frozen=True)
class Moments(Column):
    """A column of times: dates such as 2026-11-17T08:30 (in UTC unless they say otherwise), or seconds since 1970.

    >>> Moments("at", 0).read("1970-01-01T00:00:01+00:00"), Moments("at", 0).read("2.5")
    (1000000.0, 2500000.0)
    """

    kind: str = "coded"

    def read(self, text: str) -> float:
        """Return the microseconds of a time."""
        inside = text.strip()
        if is_missing(inside):
            raise BadCell(f"column {self.name!r} is empty, where a time is expected", self.name)
        try:
            return float(moment_of(inside))
        except ValueError:
            raise BadCell(
                f"column {self.name!r} has {shown(inside)} where a time is expected, such as 2026-11-17T08:30 or "
                "seconds since 1970"
            ) from None


def moment_of(text: str) -> int:
    """Return the microseconds since 1970 of a time; raise ValueError for what is none.

    >>> moment_of("1970-01-02"), moment_of("1970-01-01T01:00+01:00")
    (86400000000, 0)
    """
    if not _DATED.match(text):
        if "_" in text or not abs(float(text)) * SECOND < _LAST:
            raise ValueError(f"no time: {text!r}")
        return round(float(text) * SECOND)
    found = datetime.fromisoformat(text)
    known = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    moment = (known - _START) // timedelta(microseconds=1)
    if abs(moment) >= _LAST:
        raise ValueError(f"no time of our days: {text!r}")
    return moment


def time_text(moment: int) -> str:
    """Return a moment as a text, in UTC.

    >>> time_text(86_400_000_000), time_text(1_500_000)
    ('1970-01-02T00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    when = (_START + timedelta(microseconds=moment)).replace(tzinfo=None)
    exact = "minutes" if not when.second and not when.microsecond else "auto"
    return when.isoformat(timespec=exact) + "Z"
