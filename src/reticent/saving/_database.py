"""Databases by path or URL, as the ledger and fleets use them: SQLite in a file, or what SQLAlchemy speaks to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent._core._errors import need
from reticent.saving._write import OWNER_ONLY

WAIT = 60.0
"""Seconds that a writer waits for the others."""
# A writer that was stopped while it held a row would make all others wait without an end.
NOT_FOR_EVER = f"SET LOCAL lock_timeout = '{WAIT:.0f}s'"
# Where commits need not reach the disk a crash of the server would forget what was committed after it was shown.
_ON_DISK = "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"


class Database:
    """An engine of SQLAlchemy whose transactions are whole on the disk when they are over.

    SQLite is in write-ahead mode with full syncing, and a transaction that writes holds the file from its beginning;
    one with the execution option `reading` needs no writer to wait.
    """

    def __init__(self, where: str | os.PathLike[str], *, noun: str, make: str, create: bool, pooled: bool) -> None:
        """Take a path or URL; `noun` names what is kept there in messages, `make` says how a new one is made.

        Without `pooled` every transaction has a connection of its own: nothing is shared between forks and threads.
        A pooled SQLite file is for its owner only (mode 0600).
        """
        self.sql = sql = need("sqlalchemy", "ledger")
        self.where = os.fsdecode(where)
        if "://" in self.where:
            url = _url(sql, self.where, noun)
        else:
            place = Path(self.where)
            if not place.exists() and not create:
                raise ValueError(f"there is no {noun} at {self.where!r}; {make}")
            if not place.absolute().parent.is_dir() or place.is_dir():
                raise ValueError(f"path must be that of a file in a folder that is there, got {self.where!r}")
            # Not by a text: a name with a question mark in it would be cut there.
            url = sql.URL.create("sqlite", database=str(place.absolute()))
        self.shown = url.render_as_string(hide_password=True) if "://" in self.where else self.where
        self.sqlite = url.get_backend_name() == "sqlite"
        self.postgres = url.get_backend_name() == "postgresql"
        settings: dict[str, Any] = {"connect_args": {"timeout": WAIT}} if self.sqlite else {}
        if not pooled:
            settings["poolclass"] = need("sqlalchemy.pool", "ledger").NullPool
        elif self.sqlite:
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT, OWNER_ONLY))
        else:
            settings["pool_pre_ping"] = True  # a server that was restarted is no error of the next transaction
        try:
            self.engine = sql.create_engine(url, **settings)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{self.shown!r} needs a driver that is not installed ({error}); pip install it, or name another, such "
                "as postgresql+psycopg://..."
            ) from error
        if self.sqlite:
            sql.event.listen(self.engine, "connect", _connected)
            sql.event.listen(self.engine, "begin", _begun)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Yield a connection in a transaction that is on disk when the block is left without an error."""
        # Others than SQLite may begin with what was true before they waited for a lock, unless they are told.
        options = {} if self.sqlite else {"isolation_level": "READ COMMITTED"}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            if self.postgres:
                connection.exec_driver_sql(NOT_FOR_EVER)
                connection.exec_driver_sql(_ON_DISK)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a connection that looks at one moment; writers need not wait."""
        options = {"reading": True} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def told(self, noun: str, what: str) -> Iterator[None]:
        """Say of trouble with the database where it is, and `what` that means."""
        try:
            yield
        except self.sql.exc.SQLAlchemyError as error:
            why = getattr(error, "orig", error)
            raise OSError(f"the {noun} {self.shown!r} is in trouble ({why}); {what}") from error


def _url(sql: Any, where: str, noun: str) -> Any:
    """Return a URL of SQLAlchemy; refuse what nothing durable can rely on."""
    try:
        url = sql.make_url(where)
        dialect = url.get_dialect()
    except sql.exc.ArgumentError as error:
        raise ValueError(f"where must be the path of a file or a URL of SQLAlchemy, got {where!r}: {error}") from None
    shown = url.render_as_string(hide_password=True)
    if getattr(dialect, "is_async", False):
        raise ValueError(f"a {noun} waits for its database, got the asynchronous driver of {shown!r}; take another")
    if url.get_backend_name() != "sqlite":
        return url
    if url.database in (None, "", ":memory:"):
        raise ValueError(f"a {noun} must outlive the program, got {shown!r}; give the path of a file")
    # nolock, immutable, mode=memory, timeout: each takes away something that a ledger rests on.
    if url.query or url.database.startswith("file:"):
        raise ValueError(f"a {noun} in SQLite takes no options in its URL, got {shown!r}; give the path of the file")
    return url


def _connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where they say so below
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begun(connection: Any) -> None:
    reading = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
