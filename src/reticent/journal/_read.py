"""Reading a journal without changing it, also while it is written: what it holds, and whether all of it is right."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from reticent._core._check import Array
from reticent.hindsight._trace import Trace, prepared
from reticent.journal._replay import START, read_facts, replayed, rounds_of
from reticent.journal._store import Store
from reticent.losses import Loss
from reticent.saving._key import Key, key_bytes
from reticent.systems._persons import Owners
from reticent.systems._plan import SystemPlan


class Change(NamedTuple):
    """A decision: `point` is in play after `rounds` rounds, and was on disk when `written` rounds were."""

    rounds: int
    written: int
    point: Array


class Reader:
    """A journal as it was when it was opened for reading; a writer is not disturbed, nor waited for.

    >>> import os, tempfile
    >>> import reticent as rt
    >>> path = os.path.join(tempfile.mkdtemp(), "run.journal")
    >>> plan = rt.plan_lazy(rt.Ball(dim=2), horizon=100, lipschitz=1.0, max_switches=20)
    >>> with rt.Journal(path) as journal:
    ...     trace = journal.start(plan, rt.Linear(), seed=1).observe_many(np.tile([0.6, 0.8], (50, 1)))
    >>> with Reader(path) as reader:
    ...     reader.rounds, reader.verify().rounds, len(list(reader.changes())) == 1 + trace.switches
    (50, 50, True)
    """

    def __init__(self, path: str | os.PathLike[str], *, key: Key = None) -> None:
        """Open the file for reading; a journal with a key needs it."""
        self.path = os.fsdecode(path)
        self._store = Store(os.path.realpath(self.path), write=False, key=key_bytes(key))
        try:
            self._store.snapshot()
            if self._store.new or not self._store.head.records:
                raise ValueError(f"no learner was started in {self.path}; there is nothing to read")
            number, first = next(self._store.records())
            if number != 1 or first.kind != START:
                raise ValueError(f"{self.path} is damaged: it does not begin with a learner")
            self.facts: dict[str, Any] = read_facts(first.body)
        except BaseException:
            self._store.close()
            raise

    @property
    def rounds(self) -> int:
        """The number of rounds on disk."""
        return self._store.head.rounds

    @property
    def records(self) -> int:
        """The number of records."""
        return self._store.head.records

    @property
    def seal(self) -> str:
        """The last link of the chain: whoever knows it can tell whether the journal was changed since."""
        return self._store.head.digest.hex()

    def changes(self) -> Iterator[Change]:
        """Yield the decisions, the first included; every record is checked on the way."""
        begun = int(self.facts["rounds"])
        last = Change(begun, begun, self.facts["decision"])
        yield last
        for record, rounds in rounds_of(self._store):
            for place, point in zip(rounds.places.tolist(), rounds.points, strict=True):
                if not np.array_equal(point, last.point):
                    last = Change(place, record.rounds, point)
                    yield last

    def traces(self, loss: Loss, on_steep: str = "raise") -> Generator[Trace, None, None]:
        """Yield what the learner did, as `observe_many` returned it, record by record, with the rounds themselves.

        `loss` and `on_steep` must be those that it was started with; every record is checked on the way.
        """
        plan, point, first = self.facts["plan"], self.facts["decision"], int(self.facts["rounds"])
        for record, rounds in rounds_of(self._store):
            block = tuple(part[: rounds.taken] for part in rounds.block)
            points = np.concatenate([point[None], rounds.points])
            yield Trace.record(
                plan.domain,
                loss,
                lipschitz=plan.lipschitz,
                on_steep=on_steep,
                first=first,
                starts=np.concatenate([[0], rounds.places - first]),
                chart_points=plan.domain.to_chart(points),
                points=points,
                final=points[-1],
                parts=list(prepared(plan.domain, loss, plan.lipschitz, on_steep, (block,))),
                data=block,
                comparators=plan.comparators,
            )
            point, first = points[-1], record.rounds

    def owners(self) -> Generator[Owners, None, None]:
        """Yield whose the rounds were, as keyed hashes, record by record; nothing where the plan is not about persons.

        They are as secret as the data.
        """
        for _, rounds in rounds_of(self._store):
            if rounds.owners is not None:
                yield rounds.owners[: rounds.taken]

    def spent(self, delta: float | None = None) -> float | None:
        """Return the epsilon that the rounds on disk may have cost one of them; None if the plan claims none."""
        plan = self.facts["plan"]
        level = plan.delta if delta is None else delta
        if level is None or not plan.private:
            return None
        return spent_after(plan, self.rounds, level)

    def verify(self, loss: Loss | None = None) -> Any:
        """Take in all rounds again from the first on; return the learner, or raise at the first thing that is wrong."""
        self._store.check_pages()
        return replayed(self._store, loss)

    def refuse_own(self, path: str | os.PathLike[str]) -> None:
        """Refuse to have one of the journal's own files written over."""
        self._store.refuse_own(path)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Reader:
        """Return the reader, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()


def spent_after(plan: Any, rounds: int, delta: float) -> float:
    """Return the epsilon that so many rounds of a private plan may have cost one of them, as `learner.spent` does."""
    found, epoch = 0.0, 0
    while plan.horizon is None and not isinstance(plan, SystemPlan):  # these have one account for all rounds
        now = plan.epoch(epoch)
        assert now.horizon is not None
        if rounds < now.horizon:
            return max(found, float(now.account(rounds).epsilon(delta)))
        found = max(found, float(now.account().epsilon(delta)))
        rounds, epoch = rounds - now.horizon, epoch + 1
    return float(plan.account(rounds).epsilon(delta))
