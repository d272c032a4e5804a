"""Where fleets are kept: tables for states, batches and changes, and a lease that makes sure of one writer.

A batch is one transaction: the states of its keys with their generators, its id, and the changes it led to. In the same
transaction the row of the fleet is locked and its fencing number compared, which goes up whenever the fleet is opened
for writing: a writer that another has taken over from cannot commit anything more. Safety rests on that number; the
time at which a lease ends only says from when on another may take it without being told to.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reticent.fleet._keys import Places, in_pieces
from reticent.saving._database import Database

LEASE = 60.0
"""Seconds after the last commit from which on a fleet may be opened elsewhere, if nothing is known of its process."""
REMEMBERED = 10_000
"""Batches of which a fleet keeps id and receipt: the last so many. Offsets of a source are kept for good."""
_TAKEN = "this fleet was opened for writing elsewhere since, so nothing was recorded; close it here"
_IN = 500  # values that one question asks for


class Stale(RuntimeError):
    """This writer may not write any more: the fleet was opened elsewhere."""


class Lease(NamedTuple):
    """The right to write a fleet: its number, the fencing number, and whose it is."""

    fleet: int
    fence: int
    owner: str


class Kept(NamedTuple):
    """What is kept of a key: its number, how often its decision changed, rounds, the decision and the state."""

    number: int
    version: int
    rounds: int
    decision: bytes
    state: bytes


class Record(NamedTuple):
    """A fleet as it was begun, and how far it is."""

    fleet: int
    name: str
    spec: str
    root: str
    about: str
    size: int
    sequence: int


class Store:
    """Fleets in a database: a path is that of an SQLite file, made if it is not there; or a URL of SQLAlchemy.

    The tables are in `metadata`. States hold open sums, random generators and the root of all seeds: **the store is as
    sensitive as the data**. An old copy of it must never be gone on with, since its randomness was used already.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/fleets.db")
    >>> store.names(), sorted(store.metadata.tables)[:2]
    ([], ['reticent_fleet_batches', 'reticent_fleet_changes'])
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        """Open the database, and make the tables where they are not there."""
        how = "make one with rt.fleet.Store(path)"
        self._database = Database(where, noun="store of fleets", make=how, create=create, pooled=True)
        self._sql = sql = self._database.sql
        self.engine, self.where, self.shown = self._database.engine, self._database.where, self._database.shown
        self.metadata = sql.MetaData()
        self._define()
        if create:
            self._made()

    def _made(self) -> None:
        for last in (False, True):
            try:
                with self.engine.begin() as connection:
                    self.metadata.create_all(connection)
                return
            except self._sql.exc.DBAPIError as error:
                # Another process may have made them at the same time: then they are there the second time.
                if last:
                    raise ValueError(f"{self.shown!r} cannot be used as a store of fleets: {error.orig}") from error

    def _define(self) -> None:
        sql = self._sql
        column, big, text, blob = sql.Column, sql.BigInteger, sql.Text, sql.LargeBinary

        def part(name: str, kind: Any = big, **more: Any) -> Any:
            return column(name, kind, primary_key=True, autoincrement=False, **more)

        whole = big().with_variant(sql.Integer, "sqlite")
        self._fleets = sql.Table(
            "reticent_fleets",
            self.metadata,
            column("fleet", whole, primary_key=True, autoincrement=True),
            column("name", sql.String(200), nullable=False, unique=True),
            column("spec", text, nullable=False),
            column("root", text, nullable=False),
            column("about", text, nullable=False),
            column("size", big, nullable=False),
            column("sequence", big, nullable=False),
            column("fence", big, nullable=False),
            column("owner", text, nullable=False),
            column("until", sql.Double, nullable=False),
        )
        self._keys = sql.Table(
            "reticent_fleet_keys",
            self.metadata,
            part("fleet"),
            part("number"),
            column("word", text, nullable=False),
            column("version", big, nullable=False),
            column("rounds", big, nullable=False),
            column("decision", blob, nullable=False),
            column("state", blob, nullable=False),
            sql.UniqueConstraint("fleet", "word", name="reticent_fleet_word"),
        )
        self._changes = sql.Table(
            "reticent_fleet_changes",
            self.metadata,
            part("fleet"),
            part("number"),
            part("rounds"),
            column("point", blob, nullable=False),
        )
        self._batches = sql.Table(
            "reticent_fleet_batches",
            self.metadata,
            part("fleet"),
            part("name", text),
            part("place"),
            column("sequence", big, nullable=False),
            column("rounds", big, nullable=False),
            column("changed", blob, nullable=False),
        )
        sql.Index("reticent_fleet_batch_order", self._batches.c.fleet, self._batches.c.sequence)
        self._sources = sql.Table(
            "reticent_fleet_sources",
            self.metadata,
            part("fleet"),
            part("name", text),
            column("place", big, nullable=False),
        )
        self._persons = sql.Table(
            "reticent_fleet_persons",
            self.metadata,
            part("fleet"),
            part("person", sql.String(32)),
            part("number"),
        )

    # Fleets and who writes them.

    def names(self) -> list[str]:
        """Return the names of all fleets."""
        with self._reading() as connection:
            table = self._fleets
            return [str(name) for (name,) in connection.execute(self._sql.select(table.c.name).order_by(table.c.fleet))]

    def find(self, name: str) -> Record | None:
        """Return a fleet by name; None if there is none."""
        with self._reading() as connection:
            return self._find(connection, name)

    def _find(self, connection: Any, name: str) -> Record | None:
        table = self._fleets
        wanted = [table.c[one] for one in Record._fields]
        found = connection.execute(self._sql.select(*wanted).where(table.c.name == name)).one_or_none()
        return None if found is None else Record(*found)

    def begin(self, name: str, spec: str, root: str, about: str) -> Record:
        """Enter a new fleet."""
        with self._told("no fleet was made"), self._database.writing() as connection:
            if self._find(connection, name) is not None:
                raise ValueError(f"there is a fleet {name!r} in {self.shown!r} already; open it, or take another name")
            facts = {"size": 0, "sequence": 0, "fence": 0, "owner": "", "until": 0.0}
            connection.execute(self._fleets.insert().values(name=name, spec=spec, root=root, about=about, **facts))
            found = self._find(connection, name)
            assert found is not None
            return found

    def take(self, name: str, *, seconds: float = LEASE, force: bool = False) -> Lease:
        """Become the writer of a fleet; refused while another may be at work, unless `force` is true.

        Another may be if its lease runs, and it is not a process of this machine that has ended.
        """
        table, sql = self._fleets, self._sql
        with self._told("the fleet was not opened"), self._database.writing() as connection:
            asked = sql.select(table.c.fleet, table.c.fence, table.c.owner, table.c.until).where(table.c.name == name)
            found = connection.execute(asked.with_for_update()).one_or_none()
            if found is None:
                raise ValueError(f"there is no fleet {name!r} in {self.shown!r}; there are {self.names() or 'none'}")
            fleet, fence, owner, until = found
            left = until - time.time()
            if owner and left > 0 and not force and not _ended(owner):
                raise RuntimeError(
                    f"the fleet {name!r} is being written by {_in_words(owner)}, whose lease runs for {left:.0f} s "
                    "more; close it there, wait, or take it over with take_over=True, after which that one cannot write"
                )
            lease = Lease(int(fleet), int(fence) + 1, _me())
            values = {"fence": lease.fence, "owner": lease.owner, "until": time.time() + seconds}
            connection.execute(table.update().where(table.c.fleet == fleet).values(**values))
            return lease

    def renew(self, lease: Lease, seconds: float = LEASE) -> None:
        """Let a lease run from now on; raise `Stale` if it is another's by now."""
        table = self._fleets
        with self._told("the lease was not renewed"), self._database.writing() as connection:
            mine = (table.c.fleet == lease.fleet) & (table.c.fence == lease.fence)
            done = connection.execute(table.update().where(mine).values(until=time.time() + seconds))
            if done.rowcount != 1:
                raise Stale(_TAKEN)

    def give_back(self, lease: Lease) -> None:
        """Let others write; nothing happens if one does already."""
        table = self._fleets
        with self._told("the lease runs on"), self._database.writing() as connection:
            mine = (table.c.fleet == lease.fleet) & (table.c.fence == lease.fence)
            connection.execute(table.update().where(mine).values(owner="", until=0.0))

    @contextmanager
    def writing(self, lease: Lease, seconds: float = LEASE) -> Iterator[Writer]:
        """Hold the fleet for one transaction, which renews the lease; raise `Stale` if it is another's by now."""
        with self._told("nothing of it counts until it was read again"), self._database.writing() as connection:
            table, sql = self._fleets, self._sql
            asked = sql.select(table.c.fence, table.c.sequence, table.c.size).where(table.c.fleet == lease.fleet)
            found = connection.execute(asked.with_for_update()).one_or_none()
            if found is None or found[0] != lease.fence:
                raise Stale(_TAKEN)
            yield Writer(self, connection, lease, int(found[1]), int(found[2]), seconds)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at the store as it is at one moment."""
        with self._reading() as connection:
            yield Reader(self, connection)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._told("it could not be read"), self._database.reading() as connection:
            yield connection

    def _told(self, what: str) -> Any:
        return self._database.told("store", what)

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


class Reader:
    """One look at the tables."""

    def __init__(self, store: Store, connection: Any) -> None:
        self._store, self._connection, self._sql = store, connection, store._sql

    def kept(self, fleet: int, texts: Sequence[str]) -> dict[str, Kept]:
        """Return what is kept of keys, by their texts; those that are not there are left out."""
        table, found = self._store._keys, dict[str, Kept]()
        asked = self._sql.select(table.c.word, *(table.c[name] for name in Kept._fields)).where(table.c.fleet == fleet)
        for piece in in_pieces(texts, _IN):
            for key, *rest in self._connection.execute(asked.where(table.c.word.in_(piece))):
                found[str(key)] = Kept._make(rest)
        return found

    def shown(self, fleet: int, texts: Sequence[str]) -> dict[str, Kept]:
        """Return the same without the states."""
        table, found = self._store._keys, dict[str, Kept]()
        names = [table.c[name] for name in Kept._fields[:-1]]
        asked = self._sql.select(table.c.word, *names).where(table.c.fleet == fleet)
        for piece in in_pieces(texts, _IN):
            for key, *rest in self._connection.execute(asked.where(table.c.word.in_(piece))):
                found[str(key)] = Kept._make([*rest, b""])
        return found

    def texts(self, fleet: int, numbers: Places | None = None) -> Iterator[str]:
        """Yield the texts of all keys in the order in which they came, or of those with these numbers."""
        table = self._store._keys
        asked = self._sql.select(table.c.number, table.c.word).where(table.c.fleet == fleet)
        if numbers is None:
            for _, key in self._connection.execute(asked.order_by(table.c.number)):
                yield str(key)
            return
        found = dict[int, str]()
        for piece in in_pieces(numbers.tolist(), _IN):
            found |= {int(n): str(key) for n, key in self._connection.execute(asked.where(table.c.number.in_(piece)))}
        yield from (found[number] for number in numbers.tolist())

    def history(self, fleet: int, number: int) -> tuple[list[int], list[bytes]]:
        """Return after how many rounds the decision of a key changed, and to what."""
        table = self._store._changes
        mine = (table.c.fleet == fleet) & (table.c.number == number)
        asked = self._sql.select(table.c.rounds, table.c.point).where(mine).order_by(table.c.rounds)
        rows = self._connection.execute(asked).all()
        return [int(row[0]) for row in rows], [bytes(row[1]) for row in rows]

    def batch(self, fleet: int, name: str, place: int) -> tuple[int, Places] | None:
        """Return rounds and numbers of changed keys of a batch that was taken in; None if it is new.

        Of one that was forgotten, known by its offset only, both are 0 and empty.
        """
        table, sources, sql = self._store._batches, self._store._sources, self._sql
        mine = (table.c.fleet == fleet) & (table.c.name == name) & (table.c.place == place)
        found = self._connection.execute(sql.select(table.c.rounds, table.c.changed).where(mine)).one_or_none()
        if found is not None:
            return int(found[0]), np.frombuffer(zlib.decompress(found[1]), dtype=np.int64)
        if place < 0:
            return None
        asked = sql.select(sources.c.place).where((sources.c.fleet == fleet) & (sources.c.name == name))
        last = self._connection.execute(asked).scalar_one_or_none()
        return None if last is None or place > last else (0, np.zeros(0, dtype=np.int64))

    def offset(self, fleet: int, name: str) -> int | None:
        """Return the last offset of a source that was taken in."""
        table = self._store._sources
        mine = (table.c.fleet == fleet) & (table.c.name == name)
        found = self._connection.execute(self._sql.select(table.c.place).where(mine)).scalar_one_or_none()
        return None if found is None else int(found)

    def persons(self, fleet: int, marks: Sequence[str]) -> dict[str, set[int]]:
        """Return under which keys, by number, persons have appeared."""
        table, found = self._store._persons, dict[str, set[int]]()
        asked = self._sql.select(table.c.person, table.c.number).where(table.c.fleet == fleet)
        for piece in in_pieces(marks, _IN):
            for person, number in self._connection.execute(asked.where(table.c.person.in_(piece))):
                found.setdefault(str(person), set()).add(int(number))
        return found


class Writer(Reader):
    """One transaction of the one writer."""

    @property
    def connection(self) -> Any:
        """The connection of the transaction, for what others write in it."""
        return self._connection

    def __init__(self, store: Store, connection: Any, lease: Lease, sequence: int, keys: int, seconds: float) -> None:
        super().__init__(store, connection)
        self._lease, self.sequence, self.keys, self._seconds = lease, sequence, keys, seconds

    def add(self, words: Sequence[str], kept: Sequence[Kept]) -> None:
        """Add keys that are new."""
        names = ("fleet", "word", *Kept._fields)
        rows = [(self._lease.fleet, word, *one) for word, one in zip(words, kept, strict=True)]
        self._many(self._store._keys.insert(), names, rows)
        self.keys += len(rows)

    def update(self, kept: Sequence[Kept]) -> None:
        """Write the states of keys that are there."""
        table, bind = self._store._keys, self._sql.bindparam
        mine = (table.c.fleet == bind("of_fleet")) & (table.c.number == bind("of_number"))
        names = Kept._fields[1:]
        changed = table.update().where(mine).values({name: bind(f"new_{name}") for name in names})
        rows = [(self._lease.fleet, *one) for one in kept]
        self._many(changed, ("of_fleet", "of_number", *(f"new_{name}" for name in names)), rows)

    def change(self, numbers: Iterable[int], rounds: Iterable[int], points: Iterable[bytes]) -> None:
        """Write down changes of decisions."""
        fleet = self._lease.fleet
        rows = [(fleet, *change) for change in zip(numbers, rounds, points, strict=True)]
        self._many(self._store._changes.insert(), ("fleet", "number", "rounds", "point"), rows)

    def appeared(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Write down under which keys persons have appeared."""
        rows = [(self._lease.fleet, *pair) for pair in pairs]
        self._many(self._store._persons.insert(), ("fleet", "person", "number"), rows)

    def _many(self, statement: Any, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
        """Run a statement for every row of plain values, past what SQLAlchemy does to each: half of the time else."""
        if not rows:
            return
        compiled = statement.compile(dialect=self._connection.dialect, column_keys=list(names))
        if compiled.positional:
            order = [names.index(name) for name in compiled.positiontup]
            given: Any = rows if order == list(range(len(names))) else [tuple(row[i] for i in order) for row in rows]
        else:
            given = [dict(zip(names, row, strict=True)) for row in rows]
        self._connection.exec_driver_sql(str(compiled), given)

    def finish(self, name: str | None, place: int, rounds: int, changed: Places) -> None:
        """Write the id of the batch and its receipt, forget what is old, and count it; last in a transaction."""
        fleet, sequence = self._lease.fleet, self.sequence + 1
        table, sources, fleets = self._store._batches, self._store._sources, self._store._fleets
        if name is not None:
            facts = {"sequence": sequence, "rounds": rounds, "changed": zlib.compress(changed.tobytes(), 1)}
            self._connection.execute(table.insert().values(fleet=fleet, name=name, place=place, **facts))
            old = (table.c.fleet == fleet) & (table.c.sequence <= sequence - REMEMBERED)
            self._connection.execute(table.delete().where(old))
        if name is not None and place >= 0:
            mine = (sources.c.fleet == fleet) & (sources.c.name == name)
            moved = self._connection.execute(sources.update().where(mine).values(place=place))
            if not moved.rowcount:
                self._connection.execute(sources.insert().values(fleet=fleet, name=name, place=place))
        values = {"sequence": sequence, "size": self.keys, "until": time.time() + self._seconds}
        self._connection.execute(fleets.update().where(fleets.c.fleet == fleet).values(**values))
        self.sequence = sequence


# Whose a lease is: a process of a machine, which can be looked for there.


def _me() -> str:
    return f"{socket.gethostname()} {_boot()} {os.getpid()} {_started(os.getpid())} {secrets.token_hex(8)}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def _started(process: int) -> str:
    """Return when a process has started, in ticks since the machine has; "" if it is over, or nobody can tell."""
    try:
        facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if facts[0] in "ZX" else facts[19]  # one that was killed may stand there until its parent looks
    except (OSError, IndexError):
        return ""


def _ended(owner: str) -> bool:
    """Say whether the process of a lease is known to be over: it was one of this machine."""
    host, boot, process, started, _ = owner.split(" ")
    if (host, boot) != (socket.gethostname(), _boot()) or boot == "-":
        return False
    return _started(int(process)) != started


def _in_words(owner: str) -> str:
    host, _, process, *_ = owner.split(" ")
    return f"process {process} on {host}"
