"""The file of a journal: an SQLite database of records, each chained to the one before by a hash."""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from reticent.journal._lock import Head, place_of
from reticent.saving._key import digester
from reticent.saving._write import ENDS, OWNER_ONLY, sync_folder

VERSION = 2
"""The version of the format: 1, or 2 for journals with a key, whose chain is made of authentication codes."""
_MARK = 0x52544A4C  # "RTJL", where SQLite keeps what kind of application a file belongs to
_PIECE = 1 << 26  # bytes of a state in one row: SQLite's rows end at a gigabyte
_PAGE = 1 << 14  # bytes: a commit of a thousand rounds writes few of them, one of a single round not much more
_LOG_PAGES = 1000  # of the write-ahead log before it is folded into the database: 16 megabytes
_SMALL = 1 << 20  # bytes of a state that is written whenever it is asked for
_HEADER = bytes([2, 2, 0, 64, 32, 32])  # from byte 18 on in every journal: WAL mode, and how pages are filled
_open: weakref.WeakSet[Store] = weakref.WeakSet()
_EMPTY = Head(0, 0, bytes(32))
_TABLES = (
    "CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, rounds INTEGER NOT NULL, "
    "body BLOB NOT NULL, digest BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), records INTEGER, rounds INTEGER, digest BLOB)",
    "CREATE TABLE states (number INTEGER, part INTEGER, body BLOB NOT NULL, PRIMARY KEY (number, part))",
    "INSERT INTO head VALUES (1, 0, 0, zeroblob(32))",
)


class Record(NamedTuple):
    """One entry: what kind, how many rounds there are with it, and its content."""

    kind: str
    rounds: int
    body: bytes


class Store:
    """The database of a journal, open for writing or for reading.

    What is written together is committed together, and is on the disk when `append` returns.
    """

    def __init__(self, path: str, *, write: bool, key: bytes | None = None) -> None:
        self.path, self._write, self.key, self._process = path, write, key, os.getpid()
        self._connection = _connect(path, write)
        _open.add(self)
        try:
            self._begin(write)
            self.head = _EMPTY if self.new else self._head()
            self._since, self._state_size = 0, 0 if self.new else self._size_of_state()
        except BaseException:
            self._connection.close()
            raise
        self._places = {end: place_of(f"{path}{end}") for end in ("", "-wal")}

    def _begin(self, write: bool) -> None:
        self._check_kind()
        self.new = not self._version
        if not write:
            return
        self.check_pages()
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.chmod(f"{self.path}{end}", OWNER_ONLY)
        self._run("PRAGMA synchronous = FULL")
        self._run("PRAGMA fullfsync = 1")  # where a plain sync may stop at the memory of the disk (macOS)
        if self.new:
            self._run(f"PRAGMA page_size = {_PAGE}")
            self._run(f"PRAGMA application_id = {_MARK}")
        # The write-ahead log gets the mode of the database: for its owner only.
        self._run("PRAGMA journal_mode = WAL")
        self._run(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")

    def _check_kind(self) -> None:
        mark = self._run("PRAGMA application_id")[0][0]
        version = self._version = self._run("PRAGMA user_version")[0][0]
        empty = not self._run("SELECT 1 FROM sqlite_master")
        if mark != _MARK and not (mark == 0 and empty):
            raise ValueError(f"{self.path} is a database, but not a journal of reticent; give another path")
        if version > VERSION:
            raise ValueError(
                f"{self.path} has version {version} of the format of journals, and this reticent reads up to {VERSION}"
                "; update reticent"
            )
        if version and (version == VERSION) != (self.key is not None):
            told = "with a key, and none was given; give it" if self.key is None else "without a key; open it without"
            raise ValueError(f"{self.path} was started {told}, as rt.Journal(path, key=...) has it")

    def check_pages(self) -> None:
        """Refuse a file whose pages are not as SQLite writes them: it might notice only when it writes there."""
        if self.new:
            return
        # To open and close a file takes the locks of this process on it away, those of a writer in it too.
        if not any(store._write and store.path == self.path for store in _open if store is not self):
            with open(self.path, "rb") as file:
                if file.read(24)[18:] != _HEADER:
                    raise ValueError(damaged(self.path, "its first bytes were changed"))
        found = str(self._run("PRAGMA integrity_check(1)")[0][0])
        if found != "ok":
            raise ValueError(damaged(self.path, f"SQLite finds {' '.join(found.split())}"))

    def _run(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise told(self.path, error) from error

    def _head(self) -> Head:
        rows = self._run("SELECT records, rounds, digest FROM head WHERE one = 1")
        if len(rows) != 1 or [type(part) for part in rows[0]] != [int, int, bytes]:
            raise ValueError(damaged(self.path, "it does not say how far it has come"))
        return Head(*rows[0])

    def append(self, records: Iterable[Record], state: bytes | None = None) -> None:
        """Write records in one transaction, with the state after the last of them in the place of others, if given."""
        head, since = self.head, self._since
        self._check_places()
        self._run("BEGIN IMMEDIATE")
        try:
            if self.new:
                for statement in _TABLES:
                    self._run(statement)
                self._run(f"PRAGMA user_version = {1 if self.key is None else VERSION}")
            for record in records:
                head = self._linked(head, record)
                since += len(record.body)
                row = (head.records, record.kind, record.rounds, record.body, head.digest)
                self._run("INSERT INTO records VALUES (?, ?, ?, ?, ?)", *row)
            if state is not None:
                self._keep(head.records, state)
            self._run("UPDATE head SET records = ?, rounds = ?, digest = ?", *head)
            self._run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise
        self.head, self.new, self._since = head, False, since
        if state is not None:
            self._since, self._state_size = 0, len(state)
        if self._places["-wal"] is None:
            self._places["-wal"] = place_of(f"{self.path}-wal")

    def refuse_own(self, path: str | os.PathLike[str]) -> None:
        """Refuse to have one of the journal's own files written over."""
        found = os.path.realpath(os.fsdecode(path))
        own = {f"{self.path}{end}" for end in ENDS}
        if found in own or place_of(found) in {place_of(name) for name in own} - {None}:
            raise ValueError(f"path must not be that of the journal itself, got {os.fsdecode(path)!r}; give another")

    def _check_places(self) -> None:
        """Refuse to write to files that nobody will find again."""
        for end, place in self._places.items():
            if place is not None and place_of(f"{self.path}{end}") != place:
                raise OSError(
                    errno.ESTALE,
                    "the journal could not be used: this file was removed or replaced while it was open; put it back "
                    "as it was",
                    f"{self.path}{end}",
                )

    def _keep(self, number: int, state: bytes) -> None:
        # The first state stays, for whoever wants to check the journal from its beginning.
        self._run("DELETE FROM states WHERE number > 1")
        for part, start in enumerate(range(0, len(state), _PIECE)):
            self._run("INSERT INTO states VALUES (?, ?, ?)", number, part, state[start : start + _PIECE])

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield the records with their numbers, each checked against the chain, and the last against the head."""
        head = _EMPTY
        with closing(self._connection.cursor()) as cursor:
            try:
                rows = cursor.execute("SELECT number, kind, rounds, body, digest FROM records ORDER BY number")
                for number, *parts, digest in rows:
                    if [type(part) for part in parts] != [str, int, bytes]:
                        raise ValueError(damaged(self.path, f"record {number} is not one"))
                    record = Record(*parts)
                    head = self._linked(head, record)
                    if number != head.records or digest != head.digest:
                        key = "" if self.key is None else ", or was written with another key"
                        raise ValueError(damaged(self.path, f"record {head.records} was changed, or is missing{key}"))
                    yield number, record
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise told(self.path, error) from error
        if head != self.head:
            raise ValueError(
                damaged(self.path, f"{self.head.records} records were written, and {head.records} are there")
            )

    def _linked(self, head: Head, record: Record) -> Head:
        digest = digester(self.key, head.digest)
        number = head.records + 1
        digest.update(f"{number} {record.kind} {record.rounds} {len(record.body)}\n".encode())
        digest.update(record.body)
        return Head(number, record.rounds, digest.digest())

    def record(self, number: int) -> Record:
        """Return one record, which nothing has been checked of."""
        rows = self._run("SELECT kind, rounds, body FROM records WHERE number = ?", number)
        if len(rows) != 1 or [type(part) for part in rows[0]] != [str, int, bytes]:
            raise ValueError(damaged(self.path, f"record {number} is missing, or is not one"))
        return Record(*rows[0])

    def link(self, number: int) -> bytes:
        """Return the link of the chain at a record."""
        rows = self._run("SELECT digest FROM records WHERE number = ?", number)
        return rows[0][0] if rows else b""

    def state(self, number: int) -> bytes:
        """Return the state kept with a record."""
        return b"".join(row[0] for row in self._run("SELECT body FROM states WHERE number = ? ORDER BY part", number))

    def latest_state(self) -> int:
        """Return the number of the last record that a state was kept with; 0 if there is none."""
        return int(self._run("SELECT max(number) FROM states")[0][0] or 0)

    def _size_of_state(self) -> int:
        return int(self._run("SELECT sum(length(body)) FROM states WHERE number > 1")[0][0] or 0)

    @property
    def has_room_for_state(self) -> bool:
        """Whether the records since the last state weigh as much as it: so states at most double what is written."""
        return self._since + _SMALL >= self._state_size

    def snapshot(self) -> None:
        """Read the journal as it is now from here on, whatever is written meanwhile."""
        self._run("BEGIN")
        if not self.new:
            self.head = self._head()

    def close(self) -> None:
        """Close the file; leave it as it is if it is not in its place any more, or in a fork of who opened it."""
        if self._process != os.getpid():
            return
        _open.discard(self)
        if self._write and place_of(self.path) != self._places[""]:
            self.abandon()  # closing would delete by name what may belong to another file
            return
        try:
            self._connection.close()
        except sqlite3.Error as error:
            raise told(self.path, error) from error

    def abandon(self) -> None:
        """Never close the connection, at the end of the process neither."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))


def _leave_to_parent() -> None:
    """A forked child must not close the files of its parent: SQLite would fold in and delete a log that is in use."""
    for store in _open:
        store.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _connect(path: str, write: bool) -> sqlite3.Connection:
    place = Path(path)
    if write and not place.exists():
        os.close(os.open(place, os.O_RDWR | os.O_CREAT, OWNER_ONLY))
        sync_folder(place.parent)
    elif not place.is_file():
        problem = errno.EISDIR if place.is_dir() else errno.ENOENT
        raise OSError(problem, f"there is no journal ({os.strerror(problem).lower()})", path)
    how = "rw" if write else "ro"
    if not write and not os.path.exists(f"{path}-wal") and not os.access(place.parent, os.W_OK):
        how = "ro&immutable=1"  # nobody writes, and a folder that cannot be written to has no room for shared memory
    address = f"{place.absolute().as_uri()}?mode={how}"
    try:
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0)
    except sqlite3.Error as error:
        raise told(path, error) from error


def damaged(path: str, what: str) -> str:
    """Say that a journal is damaged."""
    return f"{path} is damaged: {what}; nothing was recovered, take a copy that is whole"


def _most_bytes() -> int | None:
    """Return how large a file may be, by the limits of the process; None without a limit."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if most == resource.RLIM_INFINITY else most


_REASONS = {
    "SQLITE_FULL": (errno.ENOSPC, "the disk is full"),
    "SQLITE_READONLY": (errno.EROFS, "it cannot be written to"),
    "SQLITE_CANTOPEN": (errno.EACCES, "it, or a file beside it, cannot be opened"),
    "SQLITE_BUSY": (errno.EBUSY, "another program holds it"),
    "SQLITE_PERM": (errno.EACCES, "permission is denied"),
}


def told(path: str, error: sqlite3.Error | UnicodeDecodeError) -> Exception:
    """Return what to raise for an error of SQLite."""
    name = getattr(error, "sqlite_errorname", "") or ""
    unreadable = isinstance(error, (UnicodeDecodeError, sqlite3.InterfaceError))
    if not name and isinstance(error, sqlite3.OperationalError):
        unreadable = True  # Python could not make text of what is there
    if unreadable or name.startswith(("SQLITE_CORRUPT", "SQLITE_FORMAT")):
        return ValueError(damaged(path, f"SQLite says {error}"))
    if name.startswith("SQLITE_NOTADB"):
        return ValueError(
            f"{path} is not a journal of reticent, or its beginning is damaged; give another path, or a copy that is "
            "whole"
        )
    if name.startswith(("SQLITE_ERROR", "SQLITE_SCHEMA", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH")):
        return ValueError(damaged(path, f"its tables are not those of a journal ({error})"))
    for start, (number, words) in _REASONS.items():
        if name.startswith(start):
            return OSError(number, f"the journal could not be used: {words}", path)
    most = _most_bytes()
    if name.startswith("SQLITE_IOERR") and most is not None:
        words = (
            f"a file of this process may have {most} bytes at most (ulimit -f); raise that limit, or look at the disk"
        )
        return OSError(errno.EFBIG, f"the journal could not be used: {words}", path)
    return OSError(errno.EIO, f"the journal could not be used: {error}", path)
