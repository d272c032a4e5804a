"""A stream: rounds that come in blocks, with the problem that they are rounds of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from reticent._check import integer
from reticent.domains import Domain
from reticent.losses import Loss

Block = tuple[Any, ...]
"""Rounds as `observe_many` takes them: one array of gradients, or features and targets."""

BLOCK = 65536


@dataclass(frozen=True)
class Stream:
    """Rounds of one loss over one domain, the same ones every time, and what they are about.

    `pieces` returns the rounds from the first on, fresh at every call, in pieces of any length, at least `rounds` of
    them. `name` is what `get` takes to make the stream again. `decision` says what each coordinate of a decision means,
    `scaling` by which public bounds the rows were scaled, and `why` what somebody may want of decisions here, which
    `best_for` sums up.

    >>> from reticent.lab import streams
    >>> stream = streams.get("iid:rounds=10,dim=2")
    >>> [len(gradients) for (gradients,) in stream.blocks(size=4)]
    [4, 4, 2]
    >>> stream.head(3).block()[0].shape
    (3, 2)
    """

    name: str
    title: str
    why: str
    source: str
    domain: Domain
    loss: Loss
    lipschitz: float
    rounds: int
    decision: tuple[str, ...]
    scaling: str
    best_for: Literal["private", "lazy"]
    pieces: Callable[[], Iterable[Block]] = field(repr=False, compare=False)

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """Yield all rounds in blocks of `size`, the last perhaps shorter; which rounds come does not depend on it."""
        wanted = integer("size", size, least=1)
        held: list[Block] = []
        count, left = 0, self.rounds
        for piece in self.pieces():
            held.append(piece)
            count += len(piece[0])
            while left and count >= min(wanted, left):
                whole = _joined(held)
                now = min(wanted, left)
                # Copies: what a caller does to a block must not reach the next pass over the data.
                yield tuple(np.array(part[:now]) for part in whole)
                held, count, left = [tuple(part[now:] for part in whole)], count - now, left - now
            if not left:
                return
        raise ValueError(
            f"the stream {self.name} must have {self.rounds:,} rounds, got {self.rounds - left + count:,}; "
            "its source is not the one it was described from"
        )

    def block(self) -> Block:
        """Return all rounds at once."""
        return next(self.blocks(self.rounds))

    def head(self, rounds: int) -> Stream:
        """Return the stream that stops after so many rounds."""
        count = integer("rounds", rounds, least=1)
        if count > self.rounds:
            raise ValueError(f"rounds must be at most {self.rounds:,}, all that {self.name} has, got {rounds:,}")
        return self if count == self.rounds else replace(self, name=_renamed(self.name, count), rounds=count)


def _joined(held: list[Block]) -> Block:
    return held[0] if len(held) == 1 else tuple(np.concatenate(parts) for parts in zip(*held, strict=True))


def _renamed(name: str, rounds: int) -> str:
    """Return a name with another number of rounds, which stands first among the settings."""
    base, _, settings = name.partition(":")
    others = [one for one in settings.split(",") if one and not one.startswith("rounds=")]
    return f"{base}:{','.join([f'rounds={rounds}', *others])}"
