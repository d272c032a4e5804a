"""Rounds whose targets come later: opened with their features, closed with their target, taken in after a fixed lag.

Round number i enters the learner in the commit that opens round i + lag: with its target if that has come, as a round
of zeros if not. So which round stands where, and when it is taken in, depends on the rounds that are opened, which are
public, and not on how long a target took, which may be a secret of the person (docs/guarantees/service.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select, update

from reticent._core._check import Array
from reticent.fleet._keys import Key
from reticent.service._problems import Problem
from reticent.service._shelf import ALONE, Resource, Shelf
from reticent.service._tables import OPEN_ROUNDS

if TYPE_CHECKING:
    from reticent.service._held import Write


_NOTHING: tuple[list[Key], list[Array]] = ([], [np.zeros(0), np.zeros(0)])  # no rounds


class Feedback:
    """The open rounds of one learner."""

    def __init__(self, resource: Resource) -> None:
        """Take the learner; `feedback_lag` is how it was made."""
        self._id = resource.id
        self._lag = resource.options.get("feedback_lag")
        self._next, self._due = 0, -1

    def rows(self, shelf: Shelf, write: Write) -> tuple[list[Key], list[Array]]:
        """Return what a request lets into the learner: nothing, or the round whose time has come."""
        table = OPEN_ROUNDS
        with shelf.reading() as connection:
            if write.closed is not None:
                self._check_open(connection, write.closed[0])
                return _NOTHING
            assert write.opened is not None
            name, features = write.opened
            taken = select(table.c.number).where(table.c.resource == self._id, table.c.round == name)
            if connection.execute(taken).first() is not None:
                raise Problem("exists", "a round of this name is open already; take another name")
            last = connection.execute(select(func.max(table.c.number)).where(table.c.resource == self._id)).scalar()
            self._next = 0 if last is None else int(last) + 1
            self._due = self._next - int(self._lag or 0)
            asked = select(table.c.features, table.c.target)
            found = connection.execute(
                asked.where(table.c.resource == self._id, table.c.number == self._due)
            ).one_or_none()
        if found is None:
            return _NOTHING
        old = np.frombuffer(found.features, dtype=np.float64).reshape(features.shape)
        # Features of zeros have no slope whatever the target is: a round that contributes nothing.
        target = 1.0 if found.target is None else float(found.target)
        return [ALONE], [np.zeros_like(old) if found.target is None else old, np.array([target])]

    def _check_open(self, connection: Connection, name: str) -> None:
        table = OPEN_ROUNDS
        asked = select(table.c.target).where(table.c.resource == self._id, table.c.round == name)
        found = connection.execute(asked).one_or_none()
        if found is None:
            raise Problem("round-closed", "no round of this name is open: it was never opened, or its time is over")
        if found.target is not None:
            raise Problem("round-closed", "this round has its target already")

    def write(self, connection: Connection, write: Write) -> None:
        """Write down what a request did, in the transaction of the round that it lets in."""
        table = OPEN_ROUNDS
        if write.closed is not None:
            name, target = write.closed
            mine = update(table).where(table.c.resource == self._id, table.c.round == name)
            connection.execute(mine.values(target=target))
            return
        assert write.opened is not None
        name, features = write.opened
        row = {"resource": self._id, "number": self._next, "round": name, "features": features.tobytes()}
        connection.execute(insert(table).values(**row, target=None))
        connection.execute(delete(table).where(table.c.resource == self._id, table.c.number <= self._due))
