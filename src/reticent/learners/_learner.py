"""The face that all learners share: one decision in play, rounds in, a trace out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, NoReturn, Protocol

import numpy as np

from reticent._check import Array
from reticent._random import Seed, generator
from reticent.domains._body import read_only
from reticent.losses import Loss
from reticent.losses._gate import Gate

from ._changes import Changes
from ._inbox import Inbox
from ._trace import Trace

NEVER = 1 << 62
"""A round that never comes."""


class Decider(Protocol):
    """The part of a learner that decides: rounds in normal form go in, changes of decision come out.

    It uses randomness at places that depend on the rounds only, never on how they are cut into blocks.
    """

    done: int
    """Rounds taken in."""
    due: int
    """How many rounds will have been taken in when the decision may change next."""
    torn: bool
    """Whether an interrupt has left rounds half taken in."""
    u: Array
    """The decision in play, in the chart."""

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added, counted from the walk's first round."""


class Learner(ABC):
    """Plays decisions, observes losses, and keeps the promises of its plan.

    `decision` is in play; `observe` takes one round, `observe_many` a block with the same result to the last bit; a
    round that is refused leaves no mark. `rounds` and `switches` count, `plan` says what is promised, `spent(delta)`
    what a private run may have cost so far. A learner can be saved (`save`, `rt.load`) or pickled, and resumed once.

    One thread at a time: a call that comes while another is at work is refused and leaves no mark. `rt.Journal` lets
    threads take turns.
    """

    _or_else = ""
    """What else can be done where the horizon of a plan ends, for the message that says so."""
    _busy = False
    """Whether a call is at work. No other thread can come between looking at it and setting it (and no lock is there
    to be left locked by an interrupt): the interpreter changes threads at calls and loops only."""

    def __init__(self, plan: Any, loss: Loss, seed: Seed = None, *, on_steep: str = "raise") -> None:
        """Put the first decision in play.

        `seed` None is a cryptographic generator, as privacy needs; a number is for tests and experiments. Rounds
        steeper than `plan.lipschitz` are refused, or scaled down to it with `on_steep="clip"`.
        """
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
        self.plan, self.loss = plan, loss
        self._on_steep = on_steep
        self._rng = generator(seed)
        self._switches = 0
        self._rounds = 0  # taken from the caller: those in the inbox included
        self._gate = self._new_gate()
        self._inbox = Inbox(plan.domain, loss, plan.lipschitz)
        self._walk: Any  # a Decider
        self._last = NEVER  # the rounds that the plan's promises last for
        self._begin()
        self._stand()

    @abstractmethod
    def _begin(self) -> None:
        """Make the walk and say how long the promises last."""

    def _new_gate(self) -> Gate:
        return Gate(self.plan.domain, self.loss, self.plan.lipschitz, self._on_steep)

    @property
    def decision(self) -> Array:
        """The decision in play: a point of the domain (read-only)."""
        return self._x

    @property
    def rounds(self) -> int:
        """The number of rounds observed."""
        return self._rounds

    @property
    def switches(self) -> int:
        """How often the decision has changed."""
        return self._switches

    @abstractmethod
    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It holds at a time that is fixed in advance (docs/theory.md, Q7).
        """

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what the whole run reveals, for composing with others."""
        return self.plan.dp_event()

    def _level(self, delta: float | None) -> float:
        level = self.plan.delta if delta is None else delta
        if level is None:
            raise ValueError("delta must be given for a plan that makes no privacy claim, got None")
        return float(level)

    def observe(self, *row: Any) -> None:
        """Take one round: a gradient for `Linear`, (features, target) or one object for the others.

        A round that is refused leaves the learner as it was.
        """
        if self._busy:
            self._refuse_overlap()
        try:
            self._busy = True
            if self._rounds >= self._last or self._torn():
                self._refuse(1)
            if self._inbox.push(row):
                if self._rounds + 1 < self._wake:
                    self._rounds += 1
                else:
                    self._empty()
                return
            # Not plainly good: the full check, before anything changes.
            parts = self._gate.prepare_one(*row)
            self._flush()
            self._take(parts)
        finally:
            self._busy = False

    def observe_many(self, *block: Any) -> Trace:
        """Take a block of rounds, with the same result to the last bit as one at a time, and return its trace.

        If any round is refused, none is taken. Arrays may be mapped from disk; the trace refers to them.
        """
        if self._busy:
            self._refuse_overlap()
        try:
            self._busy = True
            self._flush()
            return self._play(block, self._admit(block))
        finally:
            self._busy = False

    def _admit(self, block: tuple[Any, ...]) -> list[Any]:
        """Return a block in prepared parts; refuse it, with nothing changed, if any round is bad or one too many."""
        parts = self._gate.prepare(*block)
        count = sum(len(part) for part in parts)
        if count > self._last - self._rounds or self._torn():
            self._refuse(count)
        return parts

    def _play(self, block: tuple[Any, ...], parts: list[Any]) -> Trace:
        """Take in a block that was admitted."""
        first, begin = self._rounds, self._walk.u.copy()
        try:
            return self._record(block, parts, first, begin, self._take(parts))
        except BaseException as error:
            count = sum(len(part) for part in parts)
            error.add_note(f"{self._rounds - first} of the {count} rounds of this block had been taken in.")
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, from which `rt.load(path)` makes a learner that goes on bit for bit.

        The file appears whole or not at all, with a checksum, and only its owner can read it (mode 0600): **it is as
        sensitive as the data**, because it holds past rounds and the random generator. Resume it once, and destroy it:
        two learners with the same randomness break privacy. The learner itself must not go on either, once the
        file is resumed. `rt.Journal` keeps a learner on disk all the time.
        """
        from reticent._saving import save_learner

        save_learner(self, path)

    def _record(self, block: tuple[Any, ...], parts: list[Any], first: int, begin: Array, changes: Changes) -> Trace:
        u = np.concatenate([begin[None], changes.points(begin.size)])
        return Trace.record(
            self.plan.domain,
            self.loss,
            lipschitz=self.plan.lipschitz,
            on_steep=self._on_steep,
            first=first,
            starts=np.concatenate([[0], changes.places() - first]),
            chart_points=u,
            points=self.plan.domain.from_chart(u),
            final=self._x,
            parts=parts,
            data=block,
        )

    def _refuse_overlap(self) -> NoReturn:
        raise RuntimeError(
            "this learner is at work in another call, of another thread or of a loss function, and this one was "
            "refused; nothing of it was recorded: let threads take turns with a lock, or use rt.Journal"
        )

    def _refuse(self, count: int) -> None:
        self._refuse_torn()
        raise ValueError(
            f"{count} more rounds were given, but this private plan has {self._last - self._rounds} of its "
            f"horizon={self.plan.horizon} left; nothing was recorded. What it certifies ends there: plan a longer "
            f"horizon before a run starts{self._or_else}; a new learner on new data has a privacy budget of its own"
        )

    def _torn(self) -> bool:
        """Say whether an interrupt has left rounds half taken in, or taken in and not counted, or counted and lost."""
        return bool(self._walk.torn) or self._rounds != self._done() + self._inbox.count

    def _refuse_torn(self) -> None:
        if self._torn():
            raise RuntimeError(
                "this learner was interrupted while it took in rounds, and nobody knows how many are in: resume a "
                "saved one, or make a new one"
            )

    def _flush(self) -> None:
        """Take in the rounds that wait."""
        self._refuse_torn()
        self._empty()

    def _empty(self) -> None:
        self._take(self._inbox.take())

    def _take(self, parts: list[Any]) -> Changes:
        """Take in prepared rounds; return the changes of decision, counted from the learner's first round."""
        changes = Changes()
        try:
            for rows in parts:
                self._walk.take(rows, changes)
        finally:
            self._switches += len(changes)
            self._stand()
        return changes

    def _done(self) -> int:
        """Return the rounds taken in by the walk, counted from the learner's first."""
        return int(self._walk.done)

    def _due(self) -> int:
        """Return the round, counted so, at which the walk has to be asked next."""
        return int(self._walk.due)

    def _stand(self) -> None:
        """Bring what the caller sees up to date with the walk; the count, which tells of an interrupt, comes last."""
        done = self._done()
        self._x = read_only(self.plan.domain._from_chart(self._walk.u))
        # Rounds can wait in the inbox until the decision may change, or it is full.
        self._wake = min(self._due(), done + self._inbox.capacity)
        self._rounds = max(done, self._rounds)  # fewer than were acknowledged: some were lost on the way

    def __copy__(self) -> NoReturn:
        """Refuse: two learners would share one walk, and neither would know of the other's rounds."""
        raise TypeError("a learner cannot be copied, only moved: pickle it, and resume one of the two")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with nothing in the inbox; the state is as secret as the data."""
        if self._busy:
            self._refuse_overlap()
        try:
            self._busy = True
            self._flush()
        finally:
            self._busy = False
        return dict(vars(self))
