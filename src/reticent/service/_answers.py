"""What the service answers, as typed structures: decisions, changes, what was spent, and nothing else of the data."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

Point = float | list[float]


class ProblemBody(Struct):
    """A problem, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


class Promise(Struct):
    """What is promised, in numbers and in words."""

    system: str
    epsilon: float | None
    delta: float | None
    neighbors: str | None
    words: list[str]


class PlanFacts(Struct):
    """A plan and its certificate: what is promised, line by line and explained."""

    system: str
    epsilon: float | None
    delta: float | None
    neighbors: str | None
    horizon: int | None
    rows: list[list[str]]
    explained: str


class Resource(Struct):
    """A learner or a fleet, and what is promised of it."""

    id: str
    kind: str
    name: str
    state: str
    created: str
    spec: dict[str, Any]
    columns: list[str]
    population: str | None
    max_keys: int | None
    feedback_lag: int | None
    promise: Promise
    plan: PlanFacts


class Learners(Struct):
    """All learners that the key may see."""

    learners: list[Resource]


class Fleets(Struct):
    """All fleets that the key may see."""

    fleets: list[Resource]


class Receipt(Struct):
    """What became of rounds: how many were taken in, and whose decision changed."""

    rounds: int
    changed: list[str]


class Shown(Struct):
    """A decision in play, how often it has changed, and since which round it is this one."""

    decision: Point
    version: int
    since: int


class History(Struct):
    """The decisions in their order, each with the round from which on it was in play."""

    rounds: list[int]
    decisions: list[Point]
    more: bool
    until: int | None = None
    """How many rounds there were, where that is public."""


class Spent(Struct):
    """The epsilon that the rounds so far may have cost, at a delta."""

    epsilon: float | None
    delta: float | None


class KeyLine(Struct):
    """A key of a fleet, with its decision."""

    key: str
    decision: Point
    version: int


class KeyPage(Struct):
    """Some keys of a fleet, in the order in which they came."""

    keys: list[KeyLine]
    more: bool


class Standing(Struct):
    """How a population stands in the ledger."""

    name: str
    epsilon: float
    delta: float
    neighbors: str
    unit: str
    window: float | None
    entries: int
    spent: float
    left_epsilon: float
    left_mu: float
    total_epsilon: float


class Entry(Struct):
    """An entry of the ledger."""

    number: int
    time: str
    population: str
    what: str
    note: str


class Books(Struct):
    """The ledger, if there is one: how populations stand, and the last entries."""

    configured: bool
    populations: list[Standing]
    entries: list[Entry]


class GrantLine(Struct):
    """An API key, without what would let anybody in."""

    id: str
    name: str
    scopes: list[str]
    only: list[str] | None
    created: str
    expires: str | None
    revoked: str | None


class Grants(Struct):
    """All API keys."""

    keys: list[GrantLine]


class MadeKey(Struct):
    """A new API key, shown this once."""

    id: str
    key: str
    scopes: list[str]


class Me(Struct):
    """What the key of this request allows."""

    name: str
    scopes: list[str]
    only: list[str] | None


class Health(Struct):
    """That the server answers."""

    status: str
