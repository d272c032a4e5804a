"""Where records are kept: a table that only grows, in SQLite or any other database that SQLAlchemy speaks to.

One transaction reads the head, decides and appends, and holds the row of the head (in SQLite, the file) all the while:
writers wait for one another, also between machines, and a crash leaves either the whole record or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent._core._errors import need
from reticent.ledger._chain import FIRST, Record, next_record

_WAIT = 60.0  # seconds that a writer waits for the others


class Store:
    """The records of one database."""

    def __init__(self, where: str | os.PathLike[str], *, create: bool) -> None:
        """Open a database, by path or URL; make its tables if they are not there and `create` is true."""
        self._sql = sql = need("sqlalchemy", "ledger")
        text = os.fspath(where)
        self.where = str(text)
        if "://" not in self.where:
            place = Path(self.where)
            if not place.exists() and not create:
                raise ValueError(f"there is no ledger at {self.where!r}; make one with rt.Ledger(path)")
            if not place.absolute().parent.is_dir() or place.is_dir():
                raise ValueError(f"path must be that of a file in a folder that is there, got {self.where!r}")
        url = sql.make_url(self.where if "://" in self.where else f"sqlite:///{Path(self.where).absolute()}")
        self.shown = url.render_as_string(hide_password=True) if "://" in self.where else self.where
        self._sqlite = url.get_backend_name() == "sqlite"
        if self._sqlite and url.database in (None, "", ":memory:"):
            raise ValueError(f"a ledger must outlive the program, got {self.where!r}; give the path of a file")
        # A connection for each transaction: nothing to share between forks and threads.
        settings = {"connect_args": {"timeout": _WAIT}} if self._sqlite else {}
        self._engine = sql.create_engine(url, poolclass=need("sqlalchemy.pool", "ledger").NullPool, **settings)
        if self._sqlite:
            sql.event.listen(self._engine, "connect", _connected)
            sql.event.listen(self._engine, "begin", _begun)
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
                raise ValueError(f"{self.shown!r} holds no ledger; make one with rt.Ledger(path)")
            if not there:
                known.create_all(connection)
                connection.execute(self._head.insert().values(id=1, sequence=0, digest=FIRST))

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the ledger for one decision; what is appended is on disk when the block is left without an error."""
        with self._told("no entry was made for certain, so release nothing"), self._engine.begin() as connection:
            yield Writer(self, connection)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at the ledger as it is at one moment; writers need not wait."""
        options = {"reading": True} if self._sqlite else {"isolation_level": "REPEATABLE READ"}
        with (
            self._told("it could not be read"),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield Reader(self, connection)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._sql.exc.SQLAlchemyError as error:
            raise OSError(
                f"the ledger {self.shown!r} is in trouble ({getattr(error, 'orig', error)}); {what}"
            ) from error


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

    def records(
        self, population: str | None = None, kind: str | None = None, *, after: int = 0, last: bool = False
    ) -> list[Record]:
        """Return records in their order: of a population, of a kind, after a number, or the last such one only."""
        table, sql = self._store._records, self._store._sql
        asked = sql.select(table.c.sequence, table.c.content, table.c.digest).where(table.c.sequence > after)
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


def _connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where they say so below
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begun(connection: Any) -> None:
    reading = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
