"""What a server is started with: its store, its limits, and what counts as public."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reticent._core._check import integer, positive


@dataclass(frozen=True)
class Settings:
    """Where a service keeps things, and what it puts up with.

    `store` is a path or a URL of SQLAlchemy; `guard` a folder outside of it that remembers how far every learner has
    come, so that an old copy of the store is found (docs/guarantees/service.md); without one, a store that is a file
    has it beside itself. `ledger` is the URL of a ledger that learners may be charged to. `public_clock` says that when
    and how often rounds come may be known to readers: only then are they counted in `/metrics` and shown to them.
    `seeds` allows learners with a seed, for tests: they are not private.

    >>> Settings("service.db").guard_folder().name
    'service.db.guard'
    """

    store: str
    ledger: str | None = None
    guard: str | None = None
    public_clock: bool = False
    seeds: bool = False
    body_bytes: int = 16 << 20
    body_seconds: float = 20.0
    """How long a body may take to arrive, and the head of a request before it."""
    rate: float = 20_000.0
    """Requests a second that one API key may make for long."""
    burst: int = 40_000
    """Requests that it may make at once."""
    waiting: int = 1000
    """Long polls and event streams at the same time, and writes that wait for a learner."""
    wait_seconds: float = 60.0
    """The longest wait of one long poll."""
    resident: int = 100_000
    """Keys of a fleet that stay in memory."""
    remember_seconds: float = 86_400.0
    """How long receipts are kept: a request that is sent again after that counts anew."""
    lease_seconds: float = 60.0
    """How long another server waits for this one, if it is on another machine and does not answer."""

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        for name in ("body_seconds", "rate", "wait_seconds", "remember_seconds", "lease_seconds"):
            positive(name, getattr(self, name))
        for name in ("body_bytes", "burst", "waiting", "resident"):
            integer(name, getattr(self, name), least=1)

    def guard_folder(self) -> Path | None:
        """Return the folder of the guard; None for a store that is no file, where none was given."""
        if self.guard is not None:
            return Path(self.guard)
        where = self.store.removeprefix("sqlite:///") if self.store.startswith("sqlite:") else self.store
        return None if "://" in where else Path(f"{where}.guard")
