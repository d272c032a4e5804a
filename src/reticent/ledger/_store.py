"""Where records are kept: a table that only grows, in SQLite or any other database that SQLAlchemy speaks to.

One transaction reads the head, decides and appends, and holds the row of the head (in SQLite, the file) all the while:
writers wait for one another, also between machines, and a crash leaves either the whole record or nothing. Whoever has
seen a record refuses to go on without it: a copy from yesterday that was put back under a running program is found.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reticent.ledger._chain import FIRST, Record, digest, next_record
from reticent.saving._database import Database

_MAKE = "make one with rt.Ledger(path), or reticent ledger init"


class Store:
    """The records of one database."""

    def __init__(self, where: str | os.PathLike[str], *, create: bool) -> None:
        """Open a database, by path or URL; make its tables if they are not there and `create` is true."""
        # A connection for each transaction: nothing to share between forks and threads.
        self._database = Database(where, noun="ledger", make=_MAKE, create=create, pooled=False)
        self._sql = sql = self._database.sql
        self._engine, self.where, self.shown = self._database.engine, self._database.where, self._database.shown
        self._seen, self._lock = (0, FIRST), threading.Lock()
        known = sql.MetaData()
        columns = sql.Column
        self._records = sql.Table(
            "reticent_ledger",
            known,
            columns("sequence", sql.Integer, primary_key=True, autoincrement=False),
            columns("population", sql.String(200), nullable=False, index=True),
            columns("kind", sql.String(20), nullable=False),
            columns("content", sql.Text, nullable=False),
            columns("digest", sql.String(64), nullable=False),
        )
        self._head = sql.Table(
            "reticent_ledger_head",
            known,
            columns("id", sql.Integer, primary_key=True, autoincrement=False),
            columns("sequence", sql.Integer, nullable=False),
            columns("digest", sql.String(64), nullable=False),
        )
        self._prepare(known, create)

    def _prepare(self, known: Any, create: bool) -> None:
        try:
            self._open(known, create)
        except self._sql.exc.IntegrityError:  # another process made it at the same time
            self._open(known, create)
        except self._sql.exc.DBAPIError as error:
            if create and isinstance(error, self._sql.exc.ProgrammingError):  # the same, while it made the tables
                self._open(known, create)
                return
            raise ValueError(f"{self.shown!r} cannot be used as a ledger: {error.orig}") from error

    def _open(self, known: Any, create: bool) -> None:
        with self._engine.begin() as connection:
            there = self._sql.inspect(connection).has_table(self._head.name)
            if not there and not create:
                raise ValueError(f"{self.shown!r} holds no ledger; {_MAKE}")
            if not there:
                known.create_all(connection)
                connection.execute(self._head.insert().values(id=1, sequence=0, digest=FIRST))

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the ledger for one decision; what is appended is on disk when the block is left without an error."""
        seen = self._seen
        with self._database.told("ledger", "no entry was made for certain, so release nothing"):
            with self._database.writing() as connection:
                writer = Writer(self, connection)
                writer.check(seen)
                yield writer
                head = writer.head()
            self._remember(head)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at the ledger as it is at one moment; writers need not wait."""
        seen = self._seen  # before the look begins, which does not show what others write from then on
        with self._database.told("ledger", "it could not be read"), self._database.reading() as connection:
            reader = Reader(self, connection)
            reader.check(seen)
            yield reader
            head = reader.head()
        self._remember(head)

    def _remember(self, head: tuple[int, str]) -> None:
        with self._lock:
            self._seen = max(self._seen, head)


class Reader:
    """One look at the records."""

    def __init__(self, store: Store, connection: Any) -> None:
        self._store, self._connection = store, connection

    def head(self) -> tuple[int, str]:
        """Return the number and the digest of the last record."""
        head = self._store._head
        found = self._connection.execute(self._store._sql.select(head.c.sequence, head.c.digest)).one_or_none()
        if found is None:
            raise ValueError(f"the head of {self._store.shown!r} is gone: the ledger was damaged")
        return int(found[0]), str(found[1])

    def check(self, seen: tuple[int, str]) -> None:
        """Refuse a ledger whose end was cut off, or that lacks a record that was seen here before."""
        head = self.head()
        last = self.record(head[0])
        if head[0] and (last is None or last.digest != head[1] or digest(last.content) != head[1]):
            raise ValueError(
                f"{self._store.shown!r} does not end with the record number {head[0]} that was written last: the end "
                "was cut off or changed. Release nothing until it is restored"
            )
        before = self.record(seen[0])
        if seen[0] and (before is None or before.digest != seen[1]):
            raise ValueError(
                f"{self._store.shown!r} no longer has the record number {seen[0]} that it had before: an older copy "
                "was put back, or all was written anew. Release nothing: what was entered since is spent all the same"
            )

    def record(self, number: int) -> Record | None:
        """Return one record by its number; None if there is none."""
        table = self._store._records
        asked = self._store._sql.select(table.c.sequence, table.c.content, table.c.digest)
        found = self._connection.execute(asked.where(table.c.sequence == number)).one_or_none()
        return None if found is None else Record(int(found[0]), str(found[1]), str(found[2]))

    def records(self, population: str | None = None, kind: str | None = None, *, last: bool = False) -> list[Record]:
        """Return records in their order: of a population, of a kind, or the last such one only."""
        table, sql = self._store._records, self._store._sql
        asked = sql.select(table.c.sequence, table.c.content, table.c.digest)
        if population is not None:
            asked = asked.where(table.c.population == population)
        if kind is not None:
            asked = asked.where(table.c.kind == kind)
        ordered = asked.order_by(table.c.sequence.desc()).limit(1) if last else asked.order_by(table.c.sequence)
        return [Record(int(n), str(content), str(seal)) for n, content, seal in self._connection.execute(ordered)]

    def labels(self) -> list[tuple[str, str]]:
        """Return by which population and kind each record is found, in their order."""
        table = self._store._records
        asked = self._store._sql.select(table.c.population, table.c.kind).order_by(table.c.sequence)
        return [(str(name), str(kind)) for name, kind in self._connection.execute(asked)]


class Writer(Reader):
    """One decision: whoever has a writer is alone."""

    def __init__(self, store: Store, connection: Any) -> None:
        super().__init__(store, connection)
        # SQLite has begun with the lock of the file; others lock the row of the head until the transaction ends.
        head = store._head
        locked = store._sql.select(head.c.sequence).with_for_update()
        connection.execute(locked).one_or_none()

    def append(self, facts: dict[str, Any]) -> Record:
        """Add a record to the chain."""
        head = self.head()
        record = next_record(head, facts)
        named = {"population": facts["population"], "kind": facts["kind"]}
        self._connection.execute(self._store._records.insert().values(**record._asdict(), **named))
        table = self._store._head
        moved = table.update().where(table.c.id == 1, table.c.digest == head[1])
        done = self._connection.execute(moved.values(sequence=record.sequence, digest=record.digest))
        if done.rowcount != 1:
            raise RuntimeError("another process has written at the same time; nothing was entered, so release nothing")
        return record
