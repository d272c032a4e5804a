"""Learners behind the gate, and their walks: a block's gradients add up in integers until the block is released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Objects, Rows
from reticent.saving import refuse_unless
from reticent.systems._decider import Changes
from reticent.systems._learner import SystemLearner
from reticent.systems.gate._release import BlockRelease, Integers

_TOGETHER = 1 << 20  # rows that are added up together, at most


class BlockWalk(ABC):
    """Sums the gradients of a block, at the decision in play, in integers; what happens at its end subclasses say.

    `release` is the grid of the present block, which ends after round `due`.
    """

    _moves: ClassVar[tuple[str, ...]] = ("done", "torn", "u", "open")

    frozen = False
    release: BlockRelease

    def __init__(self, domain: Domain, loss: Loss, rng: np.random.Generator) -> None:
        """Start at the centre."""
        self.domain, self.loss, self.rng = domain, loss, rng
        self.done, self.torn = 0, False
        self.u: Array = np.zeros(domain.chart_dim)
        self.open: Integers = np.zeros(domain.chart_dim, dtype=np.int64)  # the sum of the open block: secret

    @property
    @abstractmethod
    def due(self) -> int:
        """How many rounds will have been taken in when the block ends."""

    def _check_open(self, rounds: int) -> None:
        """Refuse an open sum, from a file, that so many rounds cannot have brought."""
        within = int(np.abs(self.open).max()) <= rounds * self.release.largest
        refuse_unless(within, "its open block holds more than its rounds can have brought")

    @abstractmethod
    def _release(self) -> Array:
        """Release the open sum, once, commit the release to the walk, and return where to go in the chart."""

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, and release the blocks that end among them; changes of decision are added."""
        start = 0
        while start < len(rows):
            # A custom loss may raise: only rounds whose gradients are there are taken in.
            most, end = 1 if isinstance(rows, Objects) else _TOGETHER, self.due
            stop = min(len(rows), start + most, start + end - self.done)
            part = self.release.summed(*self._gradients(rows[start:stop]))
            self.torn = True
            self.open += part
            self.done += stop - start
            if self.done == end:
                # What is released is in the walk before it is used; an interrupt from here on leaves it torn.
                self._go(self._release(), changes)
            self.torn = False
            start = stop

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

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It is 0 until the first block is over, and the same ever after.
        """
        if self.plan.horizon is not None:
            return super().spent(delta)
        return float(self.plan.account(self._rounds).epsilon(self._level(delta)))

    def __repr__(self) -> str:
        """Say where the learner stands."""
        if self.plan.horizon is not None:
            return super().__repr__()
        return f"<{type(self).__name__} {self.loss!r}: {self._rounds} rounds, {self._switches} switches>"
