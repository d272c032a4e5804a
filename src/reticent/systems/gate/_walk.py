"""Learners behind the gate, and their walks: a block's gradients add up in integers until the block is released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Objects, Rows
from reticent.saving import refuse_unless
from reticent.systems._decider import NEVER, Changes
from reticent.systems._learner import Admitted, SystemLearner
from reticent.systems._persons import Owned
from reticent.systems.gate._base import GatePlan
from reticent.systems.gate._people import OpenBlock
from reticent.systems.gate._release import BlockRelease, Integers

_TOGETHER = 1 << 20  # rows that are added up together, at most


class BlockWalk(ABC):
    """Sums the gradients of a block, at the decision in play, in integers; what happens at its end subclasses say.

    `release` is the grid of the present block, which ends after round `due`, or on a clock when it is closed. With
    `people`, the sums of its persons are clipped as rows are.
    """

    _moves: ClassVar[tuple[str, ...]] = ("done", "torn", "u", "open", "people", "closed", "since")

    frozen = False
    release: BlockRelease
    plan: GatePlan
    people: OpenBlock | None = None
    """The open block by persons, if the plan is about them; then `open` is 0 until it ends."""
    closed, since = 0, 0
    """On a clock: blocks that are over, and the rounds that were taken in by then."""

    def __init__(self, plan: GatePlan, loss: Loss, rng: np.random.Generator) -> None:
        """Start at the centre."""
        domain: Domain = plan.domain
        self.plan, self.domain, self.loss, self.rng = plan, domain, loss, rng
        self.done, self.torn = 0, False
        self.u: Array = np.zeros(domain.chart_dim)
        self.open: Integers = np.zeros(domain.chart_dim, dtype=np.int64)  # the sum of the open block: secret
        if plan.max_rows is not None:
            self.people = OpenBlock(domain.chart_dim)
        if plan.clock:
            self.closed = self.since = 0

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the block ends."""
        return NEVER if self.plan.clock else self.plan.block_end(self.done + 1)

    @property
    def over(self) -> int:
        """What epochs count: rounds taken in, or on a clock the blocks that are over."""
        return self.closed if self.plan.clock else self.done

    @property
    def room(self) -> int:
        """How many more rounds the open block can hold."""
        return self.plan.most_rows - (self.done - self.since) if self.plan.clock else NEVER

    def _check_moved(self) -> None:
        """Refuse an open block, from a file, that its rounds cannot have brought."""
        begun = self.since if self.plan.clock else self.plan.block_start(self.done)
        rounds = self.done - begun
        room = self.plan.most_rows if self.plan.clock else NEVER
        refuse_unless(begun >= 0 and 0 <= rounds <= room and self.closed >= 0, f"its open block has {rounds} rounds")
        alone = 0 if self.people is not None else rounds
        within = int(np.abs(self.open).max()) <= alone * self.release.largest
        refuse_unless(within, "its open block holds more than its rounds can have brought")
        if self.people is not None:
            self.people.check(rounds, self.release.largest)

    @abstractmethod
    def _release(self) -> Array:
        """Release the open sum, once, commit the release to the walk, and return where to go in the chart."""

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, and release the blocks that end among them; changes of decision are added."""
        start, custom = 0, isinstance(rows.rows if isinstance(rows, Owned) else rows, Objects)
        while start < len(rows):
            # A custom loss may raise: only rounds whose gradients are there are taken in.
            most, end = 1 if custom else _TOGETHER, self.due
            stop = min(len(rows), start + most, start + end - self.done)
            part = self._summed(rows[start:stop])
            self.torn = True
            if isinstance(part, tuple):
                assert self.people is not None
                self.people.add(*part)
            else:
                self.open += part
            self.done += stop - start
            if self.done == end:
                # What is released is in the walk before it is used; an interrupt from here on leaves it torn.
                self._end(changes)
            self.torn = False
            start = stop
        if self.people is not None:
            self.torn = True
            self.people.settle()
            self.torn = False

    def close(self, changes: Changes) -> None:
        """Release the open block, whatever it holds: a clock has struck."""
        with np.errstate(all="ignore"):
            self.torn = True
            self.closed, self.since = self.closed + 1, self.done
            self._end(changes)
            self.torn = False

    def _summed(self, rows: Any) -> Any:
        """Return the sum of rounds in integers; of those of persons whose they are, and their rows."""
        if not isinstance(rows, Owned):
            return self.release.summed(*self._gradients(rows))
        owners, counted = rows.counted()
        if not owners.size:
            return owners, np.zeros((0, self.u.size), dtype=np.int64)
        return owners, self.release.whole(*self._gradients(counted))

    def _end(self, changes: Changes) -> None:
        """Release the open block; what is released is in the walk before it is used."""
        if self.people is not None:
            self.open = self.people.close(self.release)
        self._go(self._release(), changes)

    def _gradients(self, rows: Any) -> tuple[Array, Array]:
        """Return gradients at the decision in play as vectors and slopes; each whatever the others are, to the bit."""
        if isinstance(rows, Objects):
            assert isinstance(self.loss, Custom)
            # Whatever its slope is: the gate clips it, and a round that is refused would move all later ones.
            _, slope = self.loss.look(self.domain, self.domain.from_chart(self.u), rows.items[0], np.inf)
            return self.domain.pull(rows.scales[0] * slope[None])[0], np.ones(1)
        assert isinstance(rows, Rows)
        return rows.vectors, slopes(self.loss, rows, self.u)

    def _go(self, aim: Array, changes: Changes) -> None:
        """Put the point of the domain nearest to `aim` in play."""
        before = self.domain._from_chart(self.u)
        x = self.domain._project(self.domain._from_chart(aim))
        self.u = self.domain._to_chart(x)
        # As the caller sees them: points of the chart that differ may be one decision.
        if not np.array_equal(before, self.domain._from_chart(self.u)):
            changes.add(self.done, self.u)


def slopes(loss: Loss, rows: Rows, u: Array) -> Array:
    """Return the slope of each row at the point `u` of the chart, or at the one of `u` that is its own."""
    if isinstance(loss, Linear):
        return np.ones(len(rows))
    assert isinstance(loss, GeneralisedLinear)
    # Row by row: the sums of a matrix product depend on how many rows there are.
    margins = np.einsum("ij,ij->i", rows.vectors, np.broadcast_to(u, rows.vectors.shape))
    return loss.dphi(margins + rows.offsets)


class GateLearner(SystemLearner):
    """A learner that sees data through the gate only; its account is the same for any number of rounds."""

    _by_person = True
    _walk: BlockWalk

    def close_block(self) -> bool:
        """End the block: release it, and say whether the decision has changed. For plans with `clock=`.

        Call it when a public clock strikes, whatever has come since, and never because of what came: then a round put
        in or left out changes one block by one row, and is covered (docs/theory, R15). Persons are counted anew when a
        window is over.
        """
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            self._check_clock()
            self._flush()
            return len(self._close()) > 0
        finally:
            self._busy = False

    def _close(self) -> Changes:
        """Release the open block; return the change of decision, if there is one."""
        changes, before = Changes(), self._walk.u.copy()
        try:
            self._walk.close(changes)
            if self._roll is not None and self.plan.window is not None:
                self._roll.torn = True
                if self._walk.closed - self._roll.opened >= self.plan.window:
                    self._roll.forget(self._walk.closed)
                self._roll.torn = False
        finally:
            self._switches += len(changes)
            self._stand(moved=not np.array_equal(before, self._walk.u))
        return changes

    def _most_switches(self) -> int:
        # On a clock a block may end, and the decision change, where no round has come.
        return self._walk.closed if self.plan.clock else super()._most_switches()

    def _admit(self, *given: Any, **named: Any) -> Admitted:
        found = super()._admit(*given, **named)
        self._check_room(sum(len(part) for part in found.parts))
        return found

    def _owner(self, person: Any) -> int | None:
        self._check_room(1)
        return super()._owner(person)

    def _check_room(self, count: int) -> None:
        """Refuse rounds for which the open block has no room, on a clock."""
        room = self._walk.room - self._inbox.count
        if count > room:
            raise ValueError(
                f"a block on the clock holds at most {self.plan.most_rows:,} rounds, and the open one has room for "
                f"{room:,}, got {count:,} more; call close_block() more often. Nothing was recorded, and no promise "
                "covers this message"
            )

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It is 0 until the first block is over, and the same ever after.
        """
        if self.plan.horizon is not None:
            return super().spent(delta)
        if self.plan.clock and not self._walk.closed:
            return 0.0
        return float(self.plan.account(self._rounds).epsilon(self._level(delta)))

    def __repr__(self) -> str:
        """Say where the learner stands."""
        if self.plan.horizon is not None:
            return super().__repr__()
        return f"<{type(self).__name__} {self.loss!r}: {self._rounds} rounds, {self._switches} switches>"
