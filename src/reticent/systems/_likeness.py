"""Plans tried on public data: what each would have cost there, so that the one for ordinary streams can be chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from reticent._core._check import integer
from reticent.domains import Domain
from reticent.hindsight._trace import suffered
from reticent.losses import Loss
from reticent.losses._gate import Gate
from reticent.systems._learner import make
from reticent.systems._plan import BasePlan

SEEDS = 3
"""Runs of every plan, with the same seeds for all: enough to tell apart what differs by more than its own scatter."""

_BLOCK = 1 << 16  # rounds that are read at a time


@runtime_checkable
class Blocks(Protocol):
    """What yields rounds in blocks as `observe_many` takes them: a stream of the lab, say."""

    def blocks(self, size: int) -> Iterator[tuple[Any, ...]]:
        """Yield all rounds from the first on, anew at every call."""


class Tried(NamedTuple):
    """How a plan did on public data: means over seeds."""

    loss: float
    """The mean loss a round."""
    switches: float
    """Changes of decision over all rounds."""
    rounds: int
    seeds: int


def tried(plan: BasePlan, loss: Loss, like: Any, seeds: int = SEEDS) -> Tried:
    """Return how a plan does on rounds that are alike; steep ones are scaled down, those beyond its horizon left out.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Ball(2), 100, 1.0)
    >>> found = tried(plan, rt.Linear(), np.tile([0.6, 0.8], (150, 1)))
    >>> found.rounds, found.loss < -0.8
    (100, True)
    """
    integer("seeds", seeds, least=1)
    total, switches, rounds = 0.0, 0, 0
    for seed in range(seeds):
        learner = make(plan, loss, seed, on_steep="clip")
        for block in _blocks(like):
            left = len(block[0]) if plan.horizon is None else min(len(block[0]), plan.horizon - learner.rounds)
            if not left:
                break
            total += float(learner.observe_many(*(part[:left] for part in block)).losses.sum())
        switches, rounds = switches + learner.switches, rounds + learner.rounds
    if not rounds:
        raise ValueError("like must hold one round at least, got none")
    return Tried(total / rounds, switches / seeds, rounds // seeds, seeds)


def resting(domain: Domain, loss: Loss, lipschitz: float, like: Any) -> float:
    """Return the mean loss a round of a decision that stays at the centre, for comparison."""
    gate, total, rounds = Gate(domain, loss, lipschitz, "clip"), 0.0, 0
    centre = np.zeros((1, domain.chart_dim))
    for block in _blocks(like):
        for part in gate.prepare(*block):
            total += float(suffered(loss, domain, part, np.zeros(1, dtype=np.int64), centre).sum())
            rounds += len(part)
    return total / rounds


def _blocks(like: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rounds: of a stream, or of arrays as `observe_many` takes them."""
    if isinstance(like, Blocks):
        return like.blocks(_BLOCK)
    return iter([tuple(like) if isinstance(like, tuple | list) else (np.asarray(like),)])
