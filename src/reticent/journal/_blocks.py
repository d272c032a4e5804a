"""Rounds of a journal: as the caller gives them, as they wait, and as records on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from reticent._core._check import Array, numbers
from reticent.learners import Learner
from reticent.losses import Custom, Linear
from reticent.saving._format import body_of, thing_of
from reticent.systems._decider import Places
from reticent.systems._inbox import Inbox
from reticent.systems._persons import NOBODY, Owners

_KIND, _DATUM = "rounds", "datum"
_LONGEST = 1 << 16  # rounds in one record
_LARGEST = 1 << 26  # bytes in one, as far as it has several rounds: SQLite's rows end at a gigabyte

Block = tuple[Any, ...]


class Rounds(NamedTuple):
    """One record of rounds: the block that was given, and the changes of decision that came of it.

    `places[k]` is after how many rounds (from the learner's first) the decision became `points[k]`. A draw or a loss
    function that failed has left the block half taken in: `failed`, with `taken` of its rounds. `owners` are the hashes
    of the persons whose rounds they are, for plans about persons. A record that `closes` has no rounds: there the
    caller has ended a block of the gate.
    """

    block: Block
    taken: int
    failed: bool
    places: Places
    points: Array
    owners: Owners | None = None
    closes: bool = False

    def body(self) -> bytes:
        """Return the content of the record; as it always was, where there are no persons and nothing is closed."""
        ordinary = self.owners is None and not self.closes
        return b"".join(body_of(_KIND, tuple(self)[:5] if ordinary else tuple(self)))

    def bodies(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield the contents of as many records as it takes to keep each from being too large, with their rounds."""
        body, count = self.body(), max(len(part) if _has_rows(part) else 1 for part in self.block)
        pieces = [self]
        if len(body) > _LARGEST and count > 1:
            pieces = list(cut(*self[:3], first, *self[3:6], longest=-(-count // 2)))
        if len(pieces) == 1:
            yield self.taken, body
            return
        for piece in pieces:
            yield from piece.bodies(first)
            first += piece.taken

    @staticmethod
    def read(body: bytes) -> Rounds:
        """Return the rounds in a record."""
        return Rounds(*thing_of(_KIND, memoryview(body)))


def _has_rows(part: Any) -> bool:
    return not (isinstance(part, np.ndarray) and part.ndim == 0)


def cut(
    block: Block,
    taken: int,
    failed: bool,
    first: int,
    places: Places,
    points: Array,
    owners: Owners | None = None,
    longest: int | None = None,
) -> Iterator[Rounds]:
    """Cut a block into records; of one that failed, up to where it did."""
    given = {len(part) if _has_rows(part) else 1 for part in block}
    if longest is None:
        size = sum(part.nbytes for part in block if isinstance(part, np.ndarray)) // max(1, *given)
        longest = max(1, min(_LONGEST, _LARGEST // max(1, size)))
    if len(given) != 1 or max(given) <= longest or (not failed and taken != max(given)):
        yield Rounds(block, taken, failed, places, points, owners)
        return
    (count,) = given
    for start in range(0, count, longest):
        stop = min(start + longest, count)
        last = failed and taken <= stop
        here = slice(*np.searchsorted(places, [first + start, first + stop], side="right").tolist())
        part = tuple(rows[start:stop] for rows in block)
        whose = None if owners is None else owners[start:stop]
        yield Rounds(part, min(taken, stop) - start, last, places[here], points[here], whose)
        if last:
            return


def plain(learner: Learner, block: Block) -> Block:
    """Return a block in memory of its own or as arrays of doubles: what is written is what the learner reads."""
    if isinstance(learner.loss, Custom):
        return tuple(_copied(part, several=True) for part in block)
    return tuple(_doubles(part) for part in block)


def _copied(thing: Any, *, several: bool = False) -> Any:
    """Return a round, or several, in memory of their own; refuse one that is too large for a record."""
    body = b"".join(body_of(_DATUM, thing))
    if len(body) > _LARGEST:
        sizes = [sum(len(piece) for piece in body_of(_DATUM, one)) for one in (thing if several else [thing])]
        if max(sizes) > _LARGEST:
            raise ValueError(
                f"a round in a journal must have at most {_LARGEST} bytes, got one of {max(sizes)}; keep large things "
                "elsewhere, and give their names"
            )
    return thing_of(_DATUM, memoryview(body))


def _doubles(part: Any) -> Any:
    try:
        return numbers(part)
    except (TypeError, ValueError, OverflowError):
        return part  # for the full check, which knows what to say


class Room:
    """Rounds that wait, checked, until they are written together."""

    def __init__(self, learner: Learner, size: int) -> None:
        self._learner = learner
        self._custom = isinstance(learner.loss, Custom)
        self._objects: list[Any] = []
        self._owners: list[int] = []
        # An inbox like that of the learner, which knows what is plainly good there (nothing, if it has no room).
        self._trusting = learner._inbox.capacity > 0
        self._inbox = object.__new__(Inbox)
        self._inbox.__setstate__(learner._inbox.__getstate__() | {"count": 0, "capacity": 0 if self._custom else size})

    def __len__(self) -> int:
        """Return the number of rounds that wait."""
        return len(self._objects) if self._custom else self._inbox.count

    def push(self, row: Block, owner: int | None = None) -> bool:
        """Take one round, and whose it is; refuse a bad one, or say that it counts as an empty one."""
        bad = owner == NOBODY
        if not (self._trusting and self._inbox.push(row)):
            bad |= self._look(row)
        if owner is not None:
            self._owners.append(owner)
        return bad

    def _look(self, row: Block) -> bool:
        """Take one round that is not plainly good, or refuse it; say whether it is an empty one."""
        if self._custom:
            row = tuple(_copied(part) for part in row)
            self._learner._gate.prepare_one(*row)
            self._objects.append(row[0])
            return False
        row, _, bad = self._learner._admit(row, one=True)
        inbox = self._inbox
        inbox.features[inbox.count] = numbers(row[0]).reshape(inbox.shape)
        if not inbox.linear:
            inbox.targets[inbox.count] = numbers(row[1]).reshape(())
        inbox.count += 1
        return bool(bad)

    def block(self) -> Block:
        """Return the rounds that wait."""
        if self._custom:
            return (list(self._objects),)
        count = self._inbox.count
        if isinstance(self._learner.loss, Linear):
            return (self._inbox.features[:count].copy(),)
        return self._inbox.features[:count].copy(), self._inbox.targets[:count].copy()

    def owners(self) -> Owners | None:
        """Return whose the rounds are that wait, if the plan is about persons."""
        return None if self._learner._roll is None else np.array(self._owners, dtype=np.int64)

    def keep(self, count: int) -> None:
        """Have no more than the first rounds waiting."""
        del self._owners[count:]
        self._inbox.count = min(self._inbox.count, count)
        del self._objects[count:]

    def empty(self) -> None:
        """Have no more rounds waiting."""
        self._inbox.count = 0
        self._objects.clear()
        self._owners.clear()
