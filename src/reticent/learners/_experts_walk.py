"""Walks over finite sets: rounds go in as vectors of losses, the expert in play comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array
from reticent.losses import Rows

from ._changes import Changes

Experts = NDArray[np.int64]


class ExpertsWalk(ABC):
    """Follows one expert at a time; subclasses have one compiled loop, `_play`, over the losses of all experts."""

    def __init__(self, n: int, rng: np.random.Generator, batch: int = 1) -> None:
        """Start with nothing observed; the subclass puts its first expert in play by `_start`."""
        self.n, self.rng, self.batch = n, rng, batch
        self.done = 0
        self.torn = False
        self.sums: Array = np.zeros(n)
        self._start(0)

    def _start(self, expert: int) -> None:
        self.expert = expert
        self.u = one_hot(np.array([expert]), self.n)[0]

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next: at the end of the batch."""
        return (self.done // self.batch + 1) * self.batch

    @abstractmethod
    def _play(self, vectors: Array, after: Experts) -> None:
        """Take in rounds and write the expert in play after round i into `after[i]`."""

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        after = np.empty(len(rows), dtype=np.int64)
        self.torn = True
        self._play(np.ascontiguousarray(rows.vectors), after)
        places = np.flatnonzero(np.diff(after, prepend=self.expert))
        if places.size:
            changes.add_many(places + self.done + 1, one_hot(after[places], self.n))
            self._start(int(after[-1]))
        self.done += len(after)
        self.torn = False


def one_hot(experts: Experts, n: int) -> Array:
    """Return the decisions that follow these experts, one row each.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    rows = np.zeros((len(experts), n))
    rows[np.arange(len(experts)), experts] = 1.0
    return rows


class Dartboard(ExpertsWalk):
    """Draws from the weights exp(-beta sums); a coin after each batch says when. Hedge is the case p = 1."""

    def __init__(
        self, n: int, rng: np.random.Generator, *, beta: float, p: float, batch: int = 1, budget: int | None = None
    ) -> None:
        """Draw the first expert; it is no draw of the budget, for no loss has been seen."""
        super().__init__(n, rng, batch)
        self.beta, self.p = beta, p
        self.budget = (1 << 62) if budget is None else budget
        self._start(int(rng.integers(n)))
        self.state = np.array([self.expert, 0, 0])
        self.own = np.zeros(1)

    @property
    def draws(self) -> int:
        """How often an expert has been drawn since the first, the same one again included."""
        return int(self.state[2])

    @property
    def frozen(self) -> bool:
        """Whether the budget of draws is spent."""
        return self.draws >= self.budget

    def _play(self, vectors: Array, after: Experts) -> None:
        from ._experts_kernel import dartboard  # numba loads on first use

        dartboard(
            self.rng,
            self.beta,
            self.p,
            self.batch,
            self.budget,
            vectors,
            self.sums,
            self.state,
            self.own,
            after,
        )
