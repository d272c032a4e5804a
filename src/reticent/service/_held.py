"""A learner or fleet that this server writes: requests wait in line, and all that wait are committed together.

One thread does the work of one fleet. While a commit is under way requests gather; the next commit takes all of them,
in the order in which they came, in one transaction with their receipts. Nothing of a request is shown before that:
neither its receipt nor a decision.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Connection, delete

from reticent._core._check import Array
from reticent.fleet import Fleet, Stale
from reticent.fleet._keys import Key
from reticent.service import _answers as answers
from reticent.service._feedback import Feedback
from reticent.service._guard import Guard
from reticent.service._problems import Problem
from reticent.service._shelf import ALONE, LEARNER, Resource, Shelf, Shown
from reticent.service._tables import REQUESTS

_TOGETHER = 1000  # requests in one commit at most
_ROWS = 200_000  # rounds in one commit, beyond which it takes no more requests
_IN = 500  # values that one question asks for
_SWEEP = 256  # commits from one look for old receipts to the next
_COLUMNS = ("resource", "name", "print", "receipt", "made")
AGAIN = {"Retry-After": "1"}


@dataclass(eq=False)
class Write:
    """A request to take in rounds: its name, a print of its body, and the rows; or a round to open or to close."""

    name: str
    print: bytes
    keys: list[str] | None = None
    columns: list[Array] = field(default_factory=list)
    opened: tuple[str, Array] | None = None
    closed: tuple[str, float] | None = None
    done: asyncio.Future[Outcome] | None = None

    @property
    def rounds(self) -> int:
        """How many rounds it has."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def feedback(self) -> bool:
        """Whether it is about a round that is opened first and closed later."""
        return self.opened is not None or self.closed is not None


class Outcome(NamedTuple):
    """A receipt as it is sent, and whether it is one of earlier."""

    body: bytes
    repeated: bool


class Taken(NamedTuple):
    """What commits have brought: rounds, changes of decisions, and the keys whose decision has changed."""

    rounds: int = 0
    changes: int = 0
    changed: tuple[str, ...] = ()

    def plus(self, other: Taken) -> Taken:
        """Return both together."""
        return Taken(self.rounds + other.rounds, self.changes + other.changes, self.changed + other.changed)


def print_of(*parts: bytes) -> bytes:
    """Return what tells two requests apart.

    >>> print_of(b"a", b"bc") == print_of(b"ab", b"c")
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


class Held:
    """One learner or fleet with its thread, its line of requests, and its decision in play."""

    def __init__(
        self,
        resource: Resource,
        fleet: Fleet,
        shelf: Shelf,
        guard: Guard,
        *,
        remember: float,
        waiting: int,
        told: Callable[[Held, Taken], None],
    ) -> None:
        """Take a fleet that was opened for writing; `told` hears what each commit brought."""
        self.resource, self.lost = resource, False
        self._fleet, self._shelf, self._guard, self._told = fleet, shelf, guard, told
        self._remember, self._waiting = remember, waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"held-{resource.id}")
        self._line: list[Write] = []
        self._work: asyncio.Task[None] | None = None
        self._commits, self._sequence = 0, 0
        self._feedback = Feedback(resource)
        self.shown: Shown | None = shelf.shown(resource, ALONE) if resource.kind == LEARNER else None

    # In the loop.

    async def submit(self, write: Write) -> Outcome:
        """Wait until a request is committed, and return its receipt."""
        if len(self._line) >= self._waiting:
            raise Problem("too-many", "too many requests wait for this one; ask again", headers=AGAIN)
        write.done = asyncio.get_running_loop().create_future()
        self._line.append(write)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._drain())
        return await write.done

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._line:
            group = self._next()
            try:
                outcomes, taken = await loop.run_in_executor(self._thread, self._commit, group)
            except Exception as error:  # a fault of ours: everybody who waits hears of it, and it is told on
                outcomes, taken = [error] * len(group), Taken()
                self.lost = True
            self._told(self, taken)
            for write, outcome in zip(group, outcomes, strict=True):
                assert write.done is not None
                if write.done.done():
                    continue  # whoever asked has gone; the receipt is in the store
                if isinstance(outcome, Exception):
                    write.done.set_exception(outcome)
                else:
                    write.done.set_result(outcome)

    def _next(self) -> list[Write]:
        """Take requests from the line: those that fit into one commit, no two of the same name."""
        names, rows, count = set[str](), 0, 0
        for write in self._line:
            alone = write.feedback or (count > 0 and self._line[0].feedback)
            if count and (alone or count >= _TOGETHER or rows >= _ROWS or write.name in names):
                break
            names.add(write.name)
            rows, count = rows + write.rounds, count + 1
        group, self._line = self._line[:count], self._line[count:]
        return group

    async def close(self) -> None:
        """Finish what waits, and let others write."""
        if self._work is not None:
            await asyncio.wait([self._work])
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    def _end(self) -> None:
        try:
            self._fleet.close()
        except OSError:
            self.lost = True  # the lease runs out by itself
        self._guard.forget(self.resource.tag)

    async def renew(self) -> None:
        """Keep the lease of a fleet that has little to do."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._renew)

    def _renew(self) -> None:
        try:
            self._fleet.renew()
        except Stale:
            self.lost = True
        except OSError:
            return  # the next one will do, or the lease runs out and the next commit tells

    async def spent(self, key: Key) -> answers.Spent:
        """Return what the rounds of a key may have cost."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._spent, key)

    def _spent(self, key: Key) -> answers.Spent:
        plan = self._fleet.plan
        if plan.epsilon is None:
            return answers.Spent(None, None)
        return answers.Spent(float(self._fleet.spent(key)), float(plan.delta))

    # In the thread.

    def _commit(self, group: list[Write]) -> tuple[list[Outcome | Exception], Taken]:
        try:
            before = self._before(group)
            fresh = [write for write in group if write.name not in before]
            found, taken = self._take(fresh) if fresh else ({}, Taken())
        except (OSError, RuntimeError) as error:
            return [self._trouble(error)] * len(group), Taken()
        outcomes: list[Outcome | Exception] = []
        for write in group:
            if write.name in before:
                known, receipt = before[write.name]
                reused = Problem("key-reused", "this Idempotency-Key was used for another request; take a new one")
                outcomes.append(Outcome(receipt, True) if known == write.print else reused)
            else:
                outcomes.append(found[write.name])
        return outcomes, taken

    def _trouble(self, error: Exception) -> Problem:
        if isinstance(error, OSError):
            return Problem(
                "store",
                "the store does not answer, and what is recorded is not known; ask again with the same Idempotency-Key",
                headers=AGAIN,
            )
        self.lost = True
        return Problem("held-elsewhere", "another server writes this by now; ask again", headers=AGAIN)

    def _before(self, group: list[Write]) -> dict[str, tuple[bytes, bytes]]:
        """Return print and receipt of the requests that were taken in before."""
        found = {}
        names = [write.name for write in group]
        with self._shelf.reading() as connection:
            for start in range(0, len(names), _IN):
                part = names[start : start + _IN]
                mark = _mark(connection)
                asked = f"SELECT name, print, receipt FROM {REQUESTS.name} WHERE resource = {mark} AND name IN "
                marks = ", ".join([mark] * len(part))
                given = (self.resource.id, *part)
                for name, printed, receipt in connection.exec_driver_sql(f"{asked}({marks})", given):
                    found[str(name)] = bytes(printed), str(receipt).encode()
        return found

    def _take(self, group: list[Write]) -> tuple[dict[str, Outcome | Exception], Taken]:
        """Commit requests together; where that is refused, one by one, so that each is refused by itself."""
        try:
            return self._together(group)
        except (ValueError, Problem) as error:
            if len(group) == 1:
                return {group[0].name: _refusal(error)}, Taken()
        every, taken = dict[str, Outcome | Exception](), Taken()
        for write in group:
            found, more = self._take([write])
            every |= found
            taken = taken.plus(more)
        return every, taken

    def _together(self, group: list[Write]) -> tuple[dict[str, Outcome | Exception], Taken]:
        receipts, changes = dict[str, bytes](), list[Any]()
        first = group[0]
        keys: Any
        if first.feedback:
            keys, columns = self._feedback.rows(self._shelf, first)
        else:
            alone = self.resource.kind == LEARNER
            count = sum(write.rounds for write in group)
            # Whole numbers in an array are grouped much faster than texts.
            keys = np.full(count, ALONE) if alone else [key for write in group for key in write.keys or ()]
            columns = [np.concatenate(parts) for parts in zip(*(write.columns for write in group), strict=True)]
        before = self._counts(keys) if len(group) > 1 else {}

        def also(connection: Connection, sequence: int, moves: list[tuple[Any, int]]) -> None:
            if first.feedback:
                self._feedback.write(connection, first)
                each = [list(dict.fromkeys(str(key) for key, _ in moves))]
            else:
                each = _shares(group, before, moves)
            now, rows = time.time(), []
            for write, changed in zip(group, each, strict=True):
                named = [self.resource.id] * bool(changed) if self.resource.kind == LEARNER else changed
                receipt = msgspec.json.encode(answers.Receipt(write.rounds, named))
                receipts[write.name] = receipt
                rows.append((self.resource.id, write.name, write.print, receipt.decode(), now))
            # Plain values, past what SQLAlchemy does to each of them.
            marks = ", ".join([_mark(connection)] * len(_COLUMNS))
            connection.exec_driver_sql(f"INSERT INTO {REQUESTS.name} ({', '.join(_COLUMNS)}) VALUES ({marks})", rows)
            if self._commits % _SWEEP == 0:
                connection.execute(
                    delete(REQUESTS).where(
                        REQUESTS.c.resource == self.resource.id, REQUESTS.c.made < now - self._remember
                    )
                )
            self._commits, self._sequence = self._commits + 1, sequence
            changes.extend(moves)

        receipt = self._fleet.observe(keys, *columns, also=also)
        self._guard.advance(self.resource.tag, self._sequence)
        changed = tuple(str(key) for key in receipt.changed)
        if self.resource.kind == LEARNER and changed:
            self.shown = self._shelf.shown(self.resource, ALONE)
        found: dict[str, Outcome | Exception] = {name: Outcome(body, False) for name, body in receipts.items()}
        return found, Taken(receipt.rounds, len(changes), changed)

    def _counts(self, keys: Any) -> dict[Key, int]:
        """Return how many rounds each key had before."""
        names = [ALONE] if self.resource.kind == LEARNER else list(dict.fromkeys(keys))
        return dict(zip(names, self._fleet.rounds(names).tolist(), strict=True))


def _mark(connection: Connection) -> str:
    """Return what stands for a value in a statement of the driver."""
    return "?" if connection.dialect.name == "sqlite" else "%s"


def _refusal(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    # What the learner says may hold a number of the row: it stays here.
    return Problem(
        "refused",
        "the learner refused the rounds, and nothing of the request was recorded: a target that its loss does not take "
        "(labels are -1 or 1), a round steeper than its plan allows, or more rounds than its horizon has left",
    )


def _shares(group: list[Write], before: dict[Key, int], moves: list[tuple[Key, int]]) -> list[list[str]]:
    """Return the keys that changed by each request: a change belongs to the request with the round it came after.

    `before` is how many rounds keys had before the first request, and a change is a key and how many it had then.

    >>> one, two = (Write(name, b"", columns=[np.zeros(2)]) for name in "ab")
    >>> _shares([one, two], {ALONE: 10}, [(ALONE, 13)])
    [[], ['0']]
    >>> one, two = (Write(name, b"", ["k", "l"], [np.zeros(2)]) for name in "ab")
    >>> _shares([one, two], {"k": 10, "l": 3}, [("k", 11), ("l", 5)])
    [['k'], ['l']]
    """
    if len(group) == 1:
        return [list(dict.fromkeys(str(key) for key, _ in moves))]
    wanted: dict[Key, set[int]] = {}
    for key, after in moves:
        wanted.setdefault(key, set()).add(after - before[key])
    found: list[list[str]] = []
    passed = dict.fromkeys(wanted, 0)
    for write in group:
        if write.keys is None:
            first = passed.get(ALONE, 0)
            passed[ALONE] = first + write.rounds
            changed = any(first < after <= first + write.rounds for after in wanted.get(ALONE, ()))
            found.append([str(ALONE)] * changed)
            continue
        names: dict[str, None] = {}
        for key in write.keys:
            if key in wanted:
                passed[key] += 1
                if passed[key] in wanted[key]:
                    names[key] = None
        found.append(list(names))
    return found
