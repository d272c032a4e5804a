"""Who is protected by a run, in words of the command line: a person by a column of keys, rows on a public clock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reticent.lab.files import Column, Rounds, Table

USUAL = 100
"""Rows that are taken to come between two strokes, where nobody says."""
_MOST = 10_000_000  # strokes of one run: more are a mistake in a time, or in the length of a period
_SPANS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(\d+)\s*([a-z]+)")


def span_of(text: str, what: str) -> int:
    """Return the microseconds of a length of time such as 30d.

    >>> span_of("90m", "every") // 10**6
    5400
    """
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None or found[2] not in _SPANS or not int(found[1]):
        raise ValueError(
            f"{what} must be a length of time such as 30s, 15m, 1h, 30d or 2w, got {text!r}; write a whole number and "
            "a unit"
        )
    return int(found[1]) * _SPANS[found[2]] * 10**6


class Clock:
    """A public clock that strikes every so many microseconds, counted from 1970 in UTC; a block lies between two.

    >>> clock = Clock(3600 * 10**6, None, None)
    >>> clock.blocks(np.array([0.0, 3599.9e6, 3600e6])).tolist(), clock.text(1)
    ([0, 0, 1], '1970-01-01T01:00Z')
    """

    def __init__(self, every: int, start: int | None, until: int | None) -> None:
        """Take the length of a period, and the first block and the first that is none any more, where they are said."""
        self.every, self.start, self.until = every, start, until

    def blocks(self, moments: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return in which block each moment lies."""
        found: NDArray[np.int64] = moments.astype(np.int64) // self.every
        return found

    def text(self, block: int) -> str:
        """Return when a block begins."""
        from reticent.lab.files import time_text

        return time_text(block * self.every)


class Watch:
    """Sees to it that rows come in the order of the clock, within its beginning and end."""

    def __init__(self, clock: Clock) -> None:
        """Begin before the first row."""
        self._clock = clock
        self.first: int | None = clock.start
        self.last: int | None = None

    def see(self, blocks: NDArray[np.int64], where: Callable[[int], str]) -> None:
        """Take the blocks of rows; refuse one that comes too early or too late.

        That is an error always: if a row were left out because of another that came before it, one person would
        decide what counts of others.
        """
        if not blocks.size:
            return
        clock = self._clock
        first = int(blocks[0]) if self.first is None else self.first
        before = np.concatenate([[first if self.last is None else self.last], blocks[:-1]])
        early = blocks < before
        late = blocks - first >= _MOST
        if clock.until is not None:
            late |= blocks >= clock.until
        if (early | late).any():
            at = int(np.argmax(early | late))
            raise ValueError(f"{where(at)}: {self._wrong(int(blocks[at]), first, int(before[at]), bool(early[at]))}")
        self.first, self.last = first, int(blocks[-1])

    def _wrong(self, block: int, first: int, before: int, early: bool) -> str:
        clock, when = self._clock, self._clock.text(block)
        if early and block < first and clock.start is not None:
            return f"its time is in the block of {when}, before the clock starts at {clock.text(first)} (--from)"
        if early:
            return (
                f"its time is in the block of {when}, and a row before it in that of {clock.text(before)}; rows must "
                "come in the order of time: sort the file"
            )
        if clock.until is not None and block >= clock.until:
            return f"its time is in the block of {when}, and the clock ends at {clock.text(clock.until)} (--until)"
        return (
            f"its time is in the block of {when}, more than {_MOST:,} blocks after {clock.text(first)}; correct the "
            "time, or give a longer --every"
        )


@dataclass(frozen=True)
class Units:
    """The options about who is protected, as they were typed; `refuse` says what does not go together."""

    person: str | None = None
    max_rows: str | None = None
    window: str | None = None
    time: str | None = None
    every: str | None = None
    start: str | None = None
    until: str | None = None
    usual: str | None = None

    @property
    def named(self) -> bool:
        """Whether anything was said."""
        return self != Units()

    @property
    def on_clock(self) -> bool:
        """Whether blocks end when a clock strikes."""
        return self.every is not None

    def check(self, epsilon: float | None) -> None:
        """Refuse options that do not go together, before anything is opened."""
        for one, other, what in (
            ("person", "max_rows", "K, how many rows of one person may count"),
            ("max_rows", "person", "COLUMN, whose each row is"),
            ("window", "max_rows", "K and --person COLUMN, what is counted in each window"),
            ("time", "every", "LENGTH such as 1h, after which a public clock strikes"),
            ("every", "time", "COLUMN, when each row came"),
            *((name, "every", "LENGTH such as 1h, and --time COLUMN") for name in ("start", "until", "usual")),
        ):
            given = getattr(self, one)
            if given is not None and getattr(self, other) is None:
                raise ValueError(f"{_flag(one)} {given} is not enough; give {_flag(other)} {what}")
        if self.named and epsilon is None:
            given = next(name for name in ("person", "every") if getattr(self, name) is not None)
            raise ValueError(
                f"{_flag(given)} says who is protected, and nothing is promised without --epsilon; give it"
            )
        self.plan()
        self.clock()

    def plan(self) -> dict[str, int | None]:
        """Return what a planner takes."""
        from reticent.systems._texts import count_of

        rows = None if self.max_rows is None else count_of(self.max_rows, "max-rows")
        clock = None
        if self.every is not None:
            clock = USUAL if self.usual is None else count_of(self.usual, "usual-rows")
        return {"max_rows": rows, "window": self._window(), "clock": clock}

    def _window(self) -> int | None:
        """Return how long a window is, in rounds or in blocks of the clock."""
        from reticent.systems._texts import count_of

        if self.window is None:
            return None
        if self.every is None:
            if _SPAN.fullmatch(self.window.strip().lower()) and not re.fullmatch(r"\d+e\d+", self.window):
                raise ValueError(
                    f"window must be a number of rows without a clock, got {self.window!r}; give one, or --every "
                    "LENGTH and --time COLUMN"
                )
            return count_of(self.window, "window")
        blocks, rest = divmod(span_of(self.window, "window"), span_of(self.every, "every"))
        if rest or not blocks:
            raise ValueError(
                f"window must be a multiple of the {self.every} between two strokes, got {self.window}; change "
                "--window or --every"
            )
        return blocks

    def clock(self) -> Clock | None:
        """Return the clock; None where blocks are counted in rows."""
        if self.every is None:
            return None
        every = span_of(self.every, "every")
        start, until = (_block(getattr(self, name), name, every) for name in ("start", "until"))
        if start is not None and until is not None and start >= until:
            raise ValueError(f"--from must come before --until, got {self.start} and {self.until}")
        return Clock(every, start, until)

    def in_words(self) -> str:
        """Say who would be protected.

        >>> Units(person="id", max_rows="3", time="at", every="1h", window="7d").in_words()
        'a person, for what they do in any 7d; at most 3 rows of each count in a window'
        """
        rows = self.plan()["max_rows"]
        if rows is None:
            return "whoever is behind one row" + (", also if it is there or not" if self.on_clock else "")
        counted = f"at most {rows:,} {'row' if rows == 1 else 'rows'} of each count"
        if self.window is None:
            return f"a person, with all that they ever do; {counted}"
        length = self.window if self.on_clock else f"{self.plan()['window']:,} rounds in a row"
        return f"a person, for what they do in any {length}; {counted} in a window"

    def columns(self, table: Table, rounds: Rounds) -> tuple[Column, ...]:
        """Return the columns that are read beside those of the rounds; refuse one that is part of a round."""
        from reticent.lab.files import Keys, Moments, choose

        used = {column.place: "a feature" for column in rounds.features}
        if not rounds.linear:
            used[rounds.columns[-1].place] = "the target"
        found: list[Column] = []
        for what, wanted, kind in (("person", self.person, Keys), ("time", self.time, Moments)):
            if wanted is None:
                continue
            place = choose(table.names, wanted, table.name, table.hint(wanted))
            name = table.names[place]
            if place in used:
                why = ": decisions must not tell who somebody is" if what == "person" else "; copy the column"
                raise ValueError(f"--{what} must be a column of its own, got {name!r}, which is {used[place]}{why}")
            used[place] = f"the column of --{what}"
            found.append(kind(name, place))
        return tuple(found)


@dataclass(frozen=True)
class Marks:
    """Whose rows are, and in which blocks of the clock, as far as somebody asked.

    >>> marks = Marks(np.array(["ann", None], dtype=object), None)
    >>> marks[1:].nobody, marks[:1].nobody
    (1, 0)
    """

    persons: NDArray[np.object_] | None = None
    blocks: NDArray[np.int64] | None = None

    def __getitem__(self, rows: Any) -> Marks:
        """Return those of some rows."""
        return Marks(
            None if self.persons is None else self.persons[rows], None if self.blocks is None else self.blocks[rows]
        )

    @property
    def nobody(self) -> int:
        """How many rows are nobody's."""
        return 0 if self.persons is None else sum(person is None for person in self.persons.tolist())


def marks_of(columns: Sequence[Column], values: NDArray[np.float64], clock: Clock | None) -> Marks:
    """Return the marks of rows, of the columns that were read for them."""
    from reticent.lab.files import Keys

    persons = blocks = None
    for i, column in enumerate(columns):
        if isinstance(column, Keys):
            persons = np.array(column.named(values[:, i].tolist()), dtype=object)
        elif clock is not None:
            blocks = clock.blocks(values[:, i])
    return Marks(persons, blocks)


def _flag(name: str) -> str:
    return "--" + {"start": "from", "usual": "usual-rows"}.get(name, name.replace("_", "-"))


def _block(text: str | None, name: str, every: int) -> int | None:
    """Return the block that begins at a moment; refuse one at which the clock does not strike."""
    from reticent.lab.files import moment_of, time_text

    if text is None:
        return None
    try:
        moment = moment_of(text.strip())
    except ValueError:
        raise ValueError(f"{_flag(name)} must be a time such as 2026-11-17T08:00, got {text!r}") from None
    block, rest = divmod(moment, every)
    if rest:
        raise ValueError(
            f"{_flag(name)} must be a time at which the clock strikes, got {text!r}; the one before is "
            f"{time_text(block * every)} (periods are counted from 1970 in UTC)"
        )
    return block
