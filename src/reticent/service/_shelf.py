"""What can be read from a store by anybody who serves it: resources, decisions, changes; only what was committed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from reticent._core._check import Array
from reticent.fleet import Spec, Store
from reticent.fleet._keys import Key, text_of
from reticent.service import _answers as answers
from reticent.service._bodies import Shape
from reticent.service._tables import RESOURCES

ALONE = 0
"""The key of a learner that stands alone: a fleet of one. Keys of fleets are texts here, and never this."""
LEARNER, FLEET = "learner", "fleet"
NEW, LIVE, RETIRED = "new", "live", "retired"


class Shown(NamedTuple):
    """A decision as it is answered: how often it has changed, its ETag, and the body."""

    version: int
    etag: str
    body: bytes


def shown(point: Array, version: int, since: int) -> Shown:
    """Return a decision as it is answered.

    >>> shown(np.array([0.5]), 2, 40).body
    b'{"decision":[0.5],"version":2,"since":40}'
    """
    body = msgspec.json.encode(answers.Shown(point.tolist(), version, since))
    return Shown(version, f'"{version}-{zlib.crc32(point.tobytes()):08x}"', body)


@dataclass(frozen=True)
class Resource:
    """A learner or fleet as it was made."""

    id: str
    kind: str
    name: str
    state: str
    created: str
    written: str
    options: dict[str, Any]

    @cached_property
    def spec(self) -> Spec:
        """The specification."""
        return Spec.from_json(json.loads(self.written))

    @cached_property
    def shape(self) -> Shape:
        """What its columns are like."""
        return Shape.of(self.spec)

    @cached_property
    def beginning(self) -> Array:
        """The decision before the first round."""
        return np.asarray(self.spec.new(0).decision, dtype=np.float64)

    @property
    def tag(self) -> str:
        """What the guard knows it by: another one of the same id, in another store, is another."""
        return f"{self.id}.{self.options['nonce']}"


class Shelf:
    """The tables of a store, for looking at."""

    def __init__(self, store: Store) -> None:
        """Take the store of fleets, which has the tables of the service too."""
        self.store, self._database = store, store._database
        tables = store.metadata.tables
        self._fleets, self._keys = tables["reticent_fleets"], tables["reticent_fleet_keys"]
        self._changes = tables["reticent_fleet_changes"]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at the store as it is; raise OSError where it does not answer."""
        with self._told(), self._database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write to the tables of the service; raise OSError where the store does not answer."""
        with self._told(), self._database.writing() as connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # What a driver says may hold values; its kind is enough.
            raise OSError(f"the store {self.store.shown!r} is in trouble ({type(error).__name__})") from error

    # Resources.

    def find(self, name: str) -> Resource | None:
        """Return a learner or fleet; None if there is none."""
        with self.reading() as connection:
            row = connection.execute(select(RESOURCES).where(RESOURCES.c.id == name)).mappings().one_or_none()
        return None if row is None else _resource(row)

    def listed(self, kind: str) -> list[Resource]:
        """Return all learners, or all fleets, that are ready, in the order in which they were made."""
        asked = select(RESOURCES).where(RESOURCES.c.kind == kind, RESOURCES.c.state != NEW)
        with self.reading() as connection:
            rows = connection.execute(asked.order_by(RESOURCES.c.created, RESOURCES.c.id)).mappings().all()
        return [_resource(row) for row in rows]

    def enter(self, resource: Resource) -> None:
        """Write down a new one."""
        row = {name: getattr(resource, name) for name in ("id", "kind", "name", "state", "created")}
        with self.writing() as connection:
            connection.execute(
                insert(RESOURCES).values(**row, spec=resource.written, options=json.dumps(resource.options))
            )

    def move(self, name: str, state: str) -> None:
        """Change the state of one."""
        with self.writing() as connection:
            connection.execute(update(RESOURCES).where(RESOURCES.c.id == name).values(state=state))

    # Decisions.

    def sequence(self, name: str) -> int:
        """Return the number of the last commit of a fleet."""
        with self.reading() as connection:
            asked = select(self._fleets.c.sequence).where(self._fleets.c.name == name)
            return int(connection.execute(asked).scalar_one())

    def shown(self, resource: Resource, key: Key) -> Shown:
        """Return the decision of a key as it was last committed."""
        with self.reading() as connection:
            point, version, since, _ = self._last(connection, resource, key)
        return shown(point, version, since)

    def rounds(self, resource: Resource, key: Key) -> int:
        """Return how many rounds of a key were committed."""
        with self.reading() as connection:
            return self._last(connection, resource, key)[3]

    def _last(self, connection: Connection, resource: Resource, key: Key) -> tuple[Array, int, int, int]:
        row = self._row(connection, resource, key)
        if row is None:
            return resource.beginning, 0, 0, 0
        changes = self._changes
        mine = (changes.c.fleet == row.fleet) & (changes.c.number == row.number)
        asked = select(changes.c.rounds).where(mine).order_by(changes.c.rounds.desc()).limit(1)
        since = connection.execute(asked).scalar_one_or_none() or 0
        return self._point(resource, row.decision), int(row.version), int(since), int(row.rounds)

    def _row(self, connection: Connection, resource: Resource, key: Key) -> Any:
        keys, fleets = self._keys, self._fleets
        asked = select(keys.c.fleet, keys.c.number, keys.c.version, keys.c.rounds, keys.c.decision)
        joined = asked.join_from(keys, fleets, keys.c.fleet == fleets.c.fleet)
        return connection.execute(joined.where(fleets.c.name == resource.id, keys.c.word == text_of(key))).one_or_none()

    def _point(self, resource: Resource, stored: bytes) -> Array:
        return np.frombuffer(stored, dtype=np.float64).reshape(resource.beginning.shape)

    def known(self, resource: Resource, key: Key) -> bool:
        """Say whether a key has had a round."""
        with self.reading() as connection:
            return self._row(connection, resource, key) is not None

    def history(self, resource: Resource, key: Key, limit: int, counted: bool) -> answers.History:
        """Return the last changes of a key, after the first decision if there are not too many of them."""
        changes = self._changes
        with self.reading() as connection:
            row = self._row(connection, resource, key)
            if row is None:
                return answers.History([0], [resource.beginning.tolist()], False, 0 if counted else None)
            mine = (changes.c.fleet == row.fleet) & (changes.c.number == row.number)
            asked = select(changes.c.rounds, changes.c.point).where(mine).order_by(changes.c.rounds.desc())
            found = connection.execute(asked.limit(limit + 1)).all()
        rounds = [int(one.rounds) for one in reversed(found)]
        points = [self._point(resource, one.point).tolist() for one in reversed(found)]
        more = len(found) > limit
        if more:
            rounds, points = rounds[1:], points[1:]
        else:
            rounds, points = [0, *rounds], [resource.beginning.tolist(), *points]
        return answers.History(rounds, points, more, int(row.rounds) if counted else None)

    def keys(self, resource: Resource, prefix: str, after: str | None, limit: int) -> answers.KeyPage:
        """Return some keys in alphabetical order, with their decisions."""
        keys, fleets = self._keys, self._fleets
        asked = select(keys.c.word, keys.c.version, keys.c.decision).join_from(
            keys, fleets, keys.c.fleet == fleets.c.fleet
        )
        asked = asked.where(fleets.c.name == resource.id)
        if prefix:
            # Keys are written as JSON: all but the last quotation mark of the prefix is how its keys begin.
            asked = asked.where(keys.c.word.startswith(json.dumps(prefix)[:-1], autoescape=True))
        if after is not None:
            asked = asked.where(keys.c.word > json.dumps(after))
        with self.reading() as connection:
            rows = connection.execute(asked.order_by(keys.c.word).limit(limit + 1)).all()
        lines = [
            answers.KeyLine(str(json.loads(row.word)), self._point(resource, row.decision).tolist(), int(row.version))
            for row in rows[:limit]
        ]
        return answers.KeyPage(lines, len(rows) > limit)


def _resource(row: Any) -> Resource:
    fields = {name: row[name] for name in ("id", "kind", "name", "state", "created")}
    return Resource(**fields, written=row["spec"], options=json.loads(row["options"]))
