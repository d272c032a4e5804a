"""What a caller is told when something is wrong: problems by RFC 9457, in words that hold no row and no loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class Kind(NamedTuple):
    """One sort of problem: the status it is answered with, and what it is called."""

    status: int
    title: str


KINDS = {
    "malformed": Kind(400, "The request cannot be read"),
    "no-idempotency-key": Kind(400, "An Idempotency-Key is needed"),
    "no-key": Kind(401, "An API key is needed"),
    "wrong-key": Kind(401, "The API key is not known here"),
    "not-allowed": Kind(403, "The API key does not allow this"),
    "not-found": Kind(404, "There is nothing here"),
    "wrong-method": Kind(405, "This cannot be done here"),
    "too-slow": Kind(408, "The request took too long to arrive"),
    "exists": Kind(409, "There is another one of this name"),
    "over-budget": Kind(409, "The ledger refuses it"),
    "old-copy": Kind(409, "The store is an old copy"),
    "retired": Kind(410, "It takes no more rounds"),
    "round-closed": Kind(410, "The round is closed"),
    "too-large": Kind(413, "The request is too large"),
    "wrong-type": Kind(415, "The body is of a type that is not read here"),
    "refused": Kind(422, "The rounds were refused"),
    "key-reused": Kind(422, "The Idempotency-Key was used for something else"),
    "too-many": Kind(429, "Too many requests"),
    "internal": Kind(500, "Something went wrong here"),
    "held-elsewhere": Kind(503, "Another server writes it"),
    "store": Kind(503, "The store does not answer"),
    "stopping": Kind(503, "The server is stopping"),
}
"""All problems there are, by the last word of their type."""

MEDIA = "application/problem+json"
PREFIX = "urn:reticent:problem:"


class Problem(Exception):
    """A request that is answered with a problem; `detail` is one sentence that says what to do.

    >>> problem = Problem("held-elsewhere", "the lease is held; ask again", headers={"Retry-After": "1"})
    >>> problem.status, problem.body()["type"]
    (503, 'urn:reticent:problem:held-elsewhere')
    """

    def __init__(self, kind: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers, self.more = kind, detail, headers or {}, more

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.kind].status

    def body(self) -> dict[str, Any]:
        """Return what is sent."""
        known = KINDS[self.kind]
        found = {"type": PREFIX + self.kind, "title": known.title, "status": known.status, "detail": self.detail}
        return {**found, **self.more}

    def encoded(self) -> bytes:
        """Return what is sent, as JSON."""
        return msgspec.json.encode(self.body())


def by_status(status: int) -> str:
    """Return the kind that stands for a status which the framework has chosen itself.

    >>> by_status(404), by_status(418)
    ('not-found', 'malformed')
    """
    return {404: "not-found", 405: "wrong-method", 413: "too-large"}.get(
        status, "internal" if status >= 500 else "malformed"
    )
