"""Walks of methods that may change their decision after every round, or every batch of a fixed length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, Loss, Objects

from ._changes import Changes
from ._rounds import LINEAR, Reader, gradient_at


class StepWalk(ABC):
    """Takes gradient steps in the chart; subclasses have one compiled loop, `_play`, over rounds in normal form.

    Custom losses are read through the caller's functions: each round becomes a linear one, its subgradient at the
    decision in play, and takes the same compiled step. So `_play` must depend on a round through its gradient at the
    decision in play only; a method that reads more of a loss refuses custom losses in its plan's `check_loss`.
    """

    def __init__(self, domain: Domain, loss: Loss, batch: int = 1) -> None:
        """Start at the centre."""
        self.domain, self.loss, self.batch = domain, loss, batch
        self.reader = Reader(loss)
        self.done = 0
        self.torn = False
        self.u: Array = np.zeros(domain.chart_dim)

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next: at the end of the batch."""
        return (self.done // self.batch + 1) * self.batch

    @abstractmethod
    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        """Take in rounds and write the decision in play after round i into `after[i]`; leave `self.u` to the caller.

        `code` is that of the loss (`self.reader.code`, or LINEAR for subgradients of custom losses); `offsets` are
        reckoned from the kink. State other than the decision is the subclass's own.
        """

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        if isinstance(rows, Objects):
            for i in range(len(rows)):
                assert isinstance(self.loss, Custom)
                gradient = gradient_at(self.domain, self.loss, rows, i, self.u)
                self._advance(LINEAR, np.ascontiguousarray(gradient[None]), np.zeros(1), changes)
        else:
            self._advance(self.reader.code, *self.reader.plain(rows), changes)

    def _advance(self, code: int, vectors: Array, offsets: Array, changes: Changes) -> None:
        after = np.empty((len(offsets), self.u.size))
        self.torn = True
        self._play(code, vectors, offsets, after)
        self._note(after, changes)
        self.torn = False

    def _note(self, after: Array, changes: Changes) -> None:
        """Write down where the decision changed."""
        # As the caller sees them: with a centre far off, points of the chart that differ may be one decision.
        shown = self.domain.from_chart(np.concatenate([self.u[None], after]))
        places = np.flatnonzero((shown[1:] != shown[:-1]).any(axis=1))
        if places.size:
            changes.add_many(places + self.done + 1, after[places])
        self.u = after[-1].copy()
        self.done += len(after)
