"""Taking rounds in: for the first time, and again from a journal, with the decisions checked against those recorded."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent._core._errors import WorkLimitError
from reticent.journal._blocks import Block, Rounds
from reticent.journal._store import Record, Store, damaged
from reticent.learners import Learner, Trace
from reticent.losses import Custom, Loss
from reticent.saving._format import body_of, check_whole, thing_of
from reticent.systems._decider import Places
from reticent.systems._grid import largest_step
from reticent.systems._saved import unpack_learner

_ROUNDING = 1e-9  # of the diameter: what another order of additions may make of a decision

START, ROUNDS, STATE = "start", "rounds", "state"
"""The kinds of records: the learner as it began, rounds, and the learner as it was after them."""


class Taken:
    """What came of a block that was admitted: changes of decision, a trace if it is asked for, and maybe an error."""

    def __init__(self, learner: Learner, block: Block, parts: list[Any], *, trace: bool = False) -> None:
        self.trace: Trace | None = None
        self.error: Exception | None = None
        first, begin, shown = learner.rounds, learner._u.copy(), learner.decision
        self.places: Places
        self.points: Array
        try:
            changes = learner._take(parts)
            self.places = changes.places()
            self.points = learner.plan.domain.from_chart(changes.points(begin.size))
            if trace:
                self.trace = learner._record(block, parts, first, begin, changes)
        except Exception as error:
            if learner._torn() or not _may_fail(error, learner.loss):
                raise
            # A draw or a loss function has failed, between two rounds: the learner can go on from there.
            self.error = error
            now = learner.decision
            self.places = np.full(int(not np.array_equal(shown, now)), learner.rounds, dtype=np.int64)
            self.points = np.tile(now, (self.places.size, 1))
        self.count = learner.rounds - first


def _may_fail(error: Exception, loss: Loss) -> bool:
    """Say whether an error is one of a draw or of the caller's loss: others may come from anywhere, at any point."""
    if isinstance(error, WorkLimitError):
        return True
    if not isinstance(loss, Custom) or isinstance(error, MemoryError):
        return False
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    return not any(frame.f_code in handlers for frame, _ in walk_tb(error.__traceback__))


def first_facts(learner: Learner) -> bytes:
    """Return the content of the first record: what a reader wants to know before any round."""
    facts = {
        "learner": type(learner).__name__,
        "loss": repr(learner.loss),
        "plan": learner.plan,
        "rounds": learner.rounds,
        "switches": learner.switches,
        "decision": learner.decision,
    }
    return b"".join(body_of(START, facts))


def read_facts(body: bytes) -> dict[str, Any]:
    """Return what the first record says."""
    found: dict[str, Any] = thing_of(START, memoryview(body))
    return found


def recovered(store: Store, loss: Loss | None) -> Learner:
    """Return the learner of a journal as it was when the last round was written.

    Every record is checked; from the last state on, rounds are taken in again.
    """
    return _walked(store, loss, store.latest_state())


def replayed(store: Store, loss: Loss | None) -> Learner:
    """Return that learner after taking in all rounds again from the first on, and checking every decision."""
    return _walked(store, loss, 1)


def _walked(store: Store, loss: Loss | None, begin: int) -> Learner:
    learner: Learner | None = None
    latest = store.latest_state()
    for number, record in store.records():
        if number == 1 and record.kind != START:
            raise ValueError(damaged(store.path, "it does not begin with a learner"))
        if number == begin:
            learner = _state(store, number, record, loss)
        elif number == latest:
            _state(store, number, record, loss)
        elif learner is not None and record.kind == ROUNDS:
            _again(store.path, learner, Rounds.read(record.body))
            if learner.rounds != record.rounds:
                raise ValueError(damaged(store.path, f"record {number} should end at round {record.rounds}"))
    if learner is None:
        raise ValueError(damaged(store.path, "the state of its learner is missing"))
    return learner


def _state(store: Store, number: int, record: Record, loss: Loss | None) -> Learner:
    learner = unpack_learner(_checked(store, number, record), f"the state in {store.path}", loss, store.key)
    if learner.rounds != record.rounds:
        raise ValueError(_not_written(store, number))
    return learner


def check_states(store: Store) -> None:
    """Refuse a journal of which a state was changed: the first, which only a check from the beginning reads, too."""
    for number in {1, store.latest_state()} - {0}:
        _checked(store, number, store.record(number))


def _checked(store: Store, number: int, record: Record) -> bytes:
    state = store.state(number)
    if not state:
        raise ValueError(damaged(store.path, "the state of its learner is missing"))
    if _seal(state) != _seal_in(record):
        raise ValueError(_not_written(store, number))
    try:
        check_whole(state, "it", store.key)
    except ValueError as error:
        raise ValueError(_not_written(store, number)) from error
    return state


def _not_written(store: Store, number: int) -> str:
    return damaged(store.path, f"the state kept with record {number} is not the one that was written")


def _seal(state: bytes) -> bytes:
    """Return the checksum that a state ends with: it is in the chain, and the state, which may be replaced, is not."""
    return state[-32:]


def _seal_in(record: Record) -> bytes:
    return record.body[-32:]


def with_seal(body: bytes, state: bytes) -> bytes:
    """Return the content of a record that a state is kept with."""
    return body + _seal(state)


def _again(path: str, learner: Learner, rounds: Rounds) -> None:
    """Take in the rounds of a record again; refuse decisions that are not those recorded."""
    first = learner.rounds
    taken = Taken(learner, rounds.block, learner._admit(rounds.block))
    if not _same(learner, taken, rounds) or taken.count != rounds.taken or (taken.error is not None) != rounds.failed:
        raise ValueError(
            f"the decisions of {path} after round {first} are not those that its rounds lead to here; resume it with "
            "the versions of reticent, numpy and numba, and on the kind of processor, that wrote it, and release "
            "nothing"
        ) from taken.error


def _same(learner: Learner, taken: Taken, rounds: Rounds) -> bool:
    """Say whether rounds have led to the decisions recorded.

    Journals of version 1 were written before sums had twice the precision and private decisions were on a grid: there
    it is enough that they agree to rounding, or to a few steps of the grid where what is recorded is on none.
    """
    if not np.array_equal(taken.places, rounds.places):
        return False
    if np.array_equal(taken.points, rounds.points):
        return True
    plan, gap = learner.plan, float(np.abs(taken.points - rounds.points).max())
    little = _ROUNDING * plan.domain.diameter
    if not plan.on_grid:
        return bool(gap <= little)
    recorded = plan.domain.to_chart(rounds.points)
    off = np.abs(plan.released(recorded) - recorded).max(axis=1) > little
    return bool(off.any() and gap <= 4 * largest_step(plan.comparators))


def rounds_of(store: Store) -> Iterator[tuple[Record, Rounds]]:
    """Yield the records of rounds."""
    for _, record in store.records():
        if record.kind == ROUNDS:
            yield record, Rounds.read(record.body)
