"""What `/metrics` counts: releases, and requests of readers; of rounds only where the clock is public.

The registry is one of its own: the default one of prometheus_client tells processor time and memory, in which the
running time of draws shows, and that is not private (docs/guarantees/service.md).
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]  # when something was first counted is a time of its own


class Metrics:
    """Counters of one server since its start."""

    def __init__(self, public_clock: bool) -> None:
        """Start at zero; `public_clock` says that the times of rounds may be known."""
        self.public_clock = public_clock
        self.registry = CollectorRegistry(auto_describe=True)
        self._requests = Counter(
            "reticent_requests", "Answers by route and status.", ["route", "status"], registry=self.registry
        )
        self._changes = Counter("reticent_changes", "Changes of decisions, of all keys.", registry=self.registry)
        self._held = Gauge("reticent_held", "Learners and fleets that this server writes.", registry=self.registry)
        self._rounds = (
            Counter("reticent_rounds", "Rounds taken in, of all keys.", registry=self.registry)
            if public_clock
            else None
        )
        self._children: dict[tuple[str, str], Counter] = {}

    def answered(self, route: str, writes: bool, status: int) -> None:
        """Count an answer; one to a writer tells that rounds came, and counts only where that is public.

        How a writer was answered does not: whether a row was refused depends on the row.
        """
        if writes and not self.public_clock:
            return
        told = "any" if writes else str(status)
        child = self._children.get((route, told))
        if child is None:
            child = self._children[route, told] = self._requests.labels(route, told)
        child.inc()

    def took(self, rounds: int, changes: int) -> None:
        """Count rounds that were committed, and the changes of decision that they brought."""
        if self._rounds is not None:
            self._rounds.inc(rounds)
        if changes:
            self._changes.inc(changes)

    def holds(self, count: int) -> None:
        """Tell how many learners and fleets are held."""
        self._held.set(count)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self.registry)
