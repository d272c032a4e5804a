"""What a service answers, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """A decision in play: one number or several, how often it has changed, and since which round it is this one.

    >>> Decision.of({"decision": [1.0, 2.0], "version": 3, "since": 40}).value
    (1.0, 2.0)
    """

    value: float | tuple[float, ...]
    version: int
    since: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Decision:
        """Return that of an answer."""
        given = found["decision"]
        value = tuple(map(float, given)) if isinstance(given, list) else float(given)
        return cls(value, int(found["version"]), int(found["since"]))


@dataclass(frozen=True)
class Receipt:
    """What became of rounds: how many were taken in, and the keys whose decision changed (of a learner: itself)."""

    rounds: int
    changed: tuple[str, ...]
    repeated: bool
    """Whether the rounds had been taken in before, under the same Idempotency-Key, and this is the receipt of then."""


@dataclass(frozen=True)
class Spent:
    """The epsilon spent so far at a delta; None where nothing is claimed."""

    epsilon: float | None
    delta: float | None


@dataclass(frozen=True)
class History:
    """The decisions in their order, each with the round from which on it was in play."""

    rounds: tuple[int, ...]
    decisions: tuple[float | tuple[float, ...], ...]
    more: bool
    """Whether there are earlier ones that were not asked for."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> History:
        """Return that of an answer."""
        points = (tuple(map(float, one)) if isinstance(one, list) else float(one) for one in found["decisions"])
        return cls(tuple(map(int, found["rounds"])), tuple(points), bool(found["more"]))
