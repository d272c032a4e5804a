"""A learner on disk: rounds are written before anything that follows from them is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from threading import RLock
from typing import Any, NoReturn

from reticent._core._check import Array
from reticent._core._html import card, numbers
from reticent.journal._blocks import Block, Room, Rounds, cut, plain
from reticent.journal._lock import Lock
from reticent.journal._replay import ROUNDS, STATE, Closed, Taken, with_seal
from reticent.journal._store import Record, Store
from reticent.learners import Learner, Trace
from reticent.losses import Loss
from reticent.saving import Key
from reticent.systems._empty import tell
from reticent.systems._learner import NOT_GIVEN
from reticent.systems._persons import Owners
from reticent.systems._saved import pack_learner
from reticent.systems._words import claim_rows

_MOST = 1 << 16  # rounds that wait at most


class JournaledLearner:
    """A learner in a journal, with the face of a learner; `Journal.start` and `Journal.resume` return it.

    When `observe_many`, `flush`, or an `observe` with `waiting` 0 after it, returns, the rounds are on disk; and
    `decision` rests on rounds on disk only. `rounds` counts those: after a crash, go on with round number `rounds`.
    Threads take turns; a call from inside another one, such as that of a signal handler, is refused. A round that is
    refused leaves no mark, also in the file. If the disk fails, nothing more can be done with this object, `decision`
    included: what the file holds is then the truth, and resuming it finds out.
    """

    def __init__(self, learner: Learner, store: Store, lock: Lock, batch: int, every: int, prompt: bool) -> None:
        self._inner, self._store, self._lock = learner, store, lock
        self._batch, self._every, self._prompt = min(batch, _MOST), every, prompt
        self._room = Room(learner, self._batch)
        self._turn = RLock()
        self._process = os.getpid()
        self._kept = store.head.rounds if store.latest_state() == store.head.records else -1
        self._why = ""  # it cannot be used any more
        self._inside = False  # a call is at work
        self._show()

    def _show(self) -> None:
        """Let be seen what is on disk now."""
        learner = self._inner
        self._x, self._rounds, self._switches = learner.decision, learner.rounds, learner.switches
        self._frozen = bool(getattr(learner, "frozen", False))

    @property
    def plan(self) -> Any:
        """The plan, which says what is promised."""
        return self._inner.plan

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self._inner.loss

    @property
    def decision(self) -> Array:
        """The decision in play: a point of the domain (read-only)."""
        self._here()
        with self._turn:  # while a call of another thread is at work, nobody knows yet which one is
            self._usable()
            return self._x

    @property
    def rounds(self) -> int:
        """The number of rounds on disk: those that are acknowledged."""
        return self._rounds

    @property
    def waiting(self) -> int:
        """The number of rounds that wait in memory, and would be lost in a crash."""
        return len(self._room)

    @property
    def switches(self) -> int:
        """How often the decision has changed."""
        return self._switches

    @property
    def frozen(self) -> bool:
        """Whether the budget of switches is spent, so that the decision stays."""
        return self._frozen

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the rounds on disk may have cost one."""
        self._here()
        with self._turn:
            self._usable()
            return self._inner.spent(delta)

    @property
    def left_out(self) -> int:
        """How many rounds on disk did not count, as their persons had given enough. **Not private.**"""
        return self._inner.left_out

    def hashes(self, persons: Any) -> Owners:
        """Return the hashes that the learner keeps in the place of keys, as `Reader.owners` has them; secret."""
        found = self._inner._owners(persons)
        assert found is not None  # the learner refuses keys where its plan is not about persons
        return found

    def observe(self, *row: Any, person: Any = NOT_GIVEN) -> None:
        """Take one round, as a learner does, and whose it is if the plan is about persons.

        With a batch of 1 it is on disk when this returns. Otherwise it waits with others until the batch is full, and
        the decision stays until then; in a prompt journal, until the decision may change, if that is earlier.
        """
        self._alone(self._observe, row, person)

    def _observe(self, row: Block, person: Any) -> None:
        learner, room = self._inner, self._room
        if self._rounds + len(room) >= learner._last:
            self._flush()
            learner._refuse(1)
        learner._check_room(len(room) + 1)
        before = len(room)
        try:
            bad = room.push(row, learner._owner(person))
            waiting = len(room)
            if waiting >= self._batch or (self._prompt and self._rounds + waiting >= learner._walk.due):
                self._flush()
        except BaseException:
            room.keep(before)  # whoever was told that a round failed may give it again
            raise
        tell(bad, 1)

    def observe_many(self, *block: Any, persons: Any = NOT_GIVEN) -> Trace:
        """Take a block of rounds, in one transaction, and return its trace; all of it is on disk, or nothing.

        If a draw fails in the middle, the rounds up to there are on disk, and `rounds` counts them.
        """
        trace: Trace = self._alone(self._observe_many, block, persons)
        return trace

    def _observe_many(self, block: Block, persons: Any) -> Any:
        self._flush()
        return self._enter(plain(self._inner, block), self._inner._owners(persons), trace=True)

    def close_block(self) -> bool:
        """End the block of a plan with a clock, as a learner does; what follows is on disk before it is shown."""
        changed: bool = self._alone(self._close_block)
        return changed

    def _close_block(self) -> bool:
        self._flush()
        self._inner._check_clock()
        return bool(self._guarded(self._commit_close))

    def _commit_close(self) -> bool:
        closed = Closed(self._inner)
        due = self._inner.rounds - max(self._kept, 0) >= self._every and self._store.has_room_for_state
        self._write([Record(ROUNDS, self._inner.rounds, closed.rounds().body())], state=due)
        return bool(closed.places.size)

    def flush(self) -> None:
        """Bring the rounds that wait to the disk; they are acknowledged when this returns."""
        self._alone(self._flush)

    def _flush(self) -> None:
        if len(self._room):
            self._enter(self._room.block(), self._room.owners())

    def save(self, path: str | os.PathLike[str], *, key: Key = None) -> None:
        """Write the state after all rounds to a file of its own, as `Learner.save` does.

        Resume either that file or the journal, never both.
        """
        self._alone(self._save, path, key)

    def _save(self, path: str | os.PathLike[str], key: Key) -> None:
        self._store.refuse_own(path)
        self._flush()
        self._inner.save(path, key=key)

    def checkpoint(self) -> None:
        """Write the state to the journal, so that resuming takes in no round before this one again."""
        self._alone(self._checkpoint)

    def _checkpoint(self) -> None:
        self._flush()
        if self._kept != self._rounds:
            self._guarded(lambda: self._write([], state=True))

    def _alone(self, work: Callable[..., Any], *given: Any) -> Any:
        """Do the work of a call while no other one is at work."""
        self._here()
        with self._turn:
            self._refuse_inside()
            try:
                self._inside = True
                self._usable()
                return work(*given)
            finally:
                self._inside = False

    def _refuse_inside(self) -> None:
        if self._inside:
            raise RuntimeError(
                "a call of this journal was interrupted by this one, of a signal handler or a loss function, which was "
                "refused; nothing of it was recorded: let a handler set a flag, and act on it between two calls"
            )

    def _enter(self, given: Block, owners: Owners | None, *, trace: bool = False) -> Any:
        """Take in a block, write it with what came of it, and only then let that be seen."""
        block, parts, bad = self._inner._admit(given, owners)
        taken = self._guarded(lambda: self._commit(block, parts, owners, trace))
        if taken.error is not None:
            taken.error.add_note(f"{taken.count} rounds of this block had been taken in, and are in the journal.")
            raise taken.error
        if trace:
            tell(bad, taken.count)
        return taken.trace

    def _commit(self, block: Block, parts: list[Any], owners: Owners | None, trace: bool) -> Taken:
        first = self._rounds
        taken = Taken(self._inner, block, parts, owners, trace=trace)
        failed = taken.error is not None
        pieces = cut(block, taken.count, failed, first, taken.places, taken.points, owners)
        due = self._inner.rounds - max(self._kept, 0) >= self._every and self._store.has_room_for_state
        # What failed might not fail again: the state after it is written, so that resuming need not repeat it.
        self._write(_records(first, pieces), state=failed or due)
        return taken

    def _write(self, records: Iterable[Record], *, state: bool) -> None:
        """Commit records, with the state of the learner after them if that is asked for, and show what is there now."""
        kept = pack_learner(self._inner, self._store.key) if state else None
        if kept is not None:
            records = chain(records, [Record(STATE, self._inner.rounds, with_seal(b"", kept))])
        self._lock.check_place()
        self._store.append(records, kept)
        self._lock.write(self._store.head)
        if state:
            self._kept = self._inner.rounds
        self._room.empty()
        self._show()

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Do something after which, if it fails, nobody knows what is on disk: then nothing more can be done here."""
        self._why = "a call is at work, or was interrupted"
        try:
            done = work()
        except BaseException as error:
            self._why = f"{type(error).__name__}: {error}"
            raise
        self._why = ""
        return done

    def _here(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                f"this journal was opened in process {self._process}, and a fork of it cannot use it; open journals in "
                "the process that uses them"
            )

    def _usable(self) -> None:
        if self._why:
            raise RuntimeError(
                f"this journal cannot go on ({self._why}); what is on disk is whole: close it, see to the cause, open "
                "it again and resume"
            )
        if self._inner.rounds != self._rounds:
            raise RuntimeError(
                f"the learner in this journal has taken {self._inner.rounds - self._rounds} rounds behind its back; "
                "give rounds to what start returned, close this and resume"
            )

    def _end(self, why: str, last: Callable[[], None] | None = None) -> None:
        """Allow nothing more, after bringing everything to the disk if there is something to do last."""
        with self._turn:
            self._refuse_inside()
            try:
                self._inside = True
                if last is not None and not self._why:
                    self._usable()
                    self._checkpoint()
            finally:
                self._inside = False
                self._why = self._why or why
                if last is not None:
                    last()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: a journal has one writer."""
        raise TypeError("a learner in a journal cannot be copied or pickled; close the journal, and resume it there")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: where the learner stands, as far as it is on disk, and what is promised."""
        plan = self._inner.plan
        rows = [("decision", "not known: this journal cannot go on" if self._why else numbers(self._x))]
        rows += [("rounds on disk", f"{self._rounds:,}"), ("waiting", f"{self.waiting:,}")]
        rows += [("switches", f"{self._switches:,}"), *claim_rows(plan, ", of the sequence of decisions")]
        return card(f"Journaled {type(self._inner).__name__} of {self._inner.loss!r}", rows, system=plan.system)

    def __repr__(self) -> str:
        """Say where the learner stands, as far as it is on disk."""
        waiting = f", {self.waiting} waiting" if self.waiting else ""
        frozen = ", frozen: the decision stays" if self._frozen else ""
        at = f"{self._rounds} rounds on disk{waiting}, {self._switches} switches{frozen}"
        return f"<Journaled {type(self._inner).__name__} {self._inner.loss!r}: {at}>"


def _records(first: int, pieces: Iterable[Rounds]) -> Iterator[Record]:
    """Yield the records of a block, one at a time: a long one is not in memory twice."""
    for piece in pieces:
        for taken, body in piece.bodies(first):
            first += taken
            yield Record(ROUNDS, first, body)
