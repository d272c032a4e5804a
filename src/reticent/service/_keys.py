"""API keys: random texts of which only the digest is kept, each with what it allows and for how long."""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, update

from reticent.service._problems import Problem
from reticent.service._shelf import Shelf
from reticent.service._tables import KEYS

SCOPES = ("read", "write", "admin")
"""Read decisions, plans and the ledger; write rounds; administer: make learners and keys (and all of the others)."""
FRESH = 2.0  # seconds from one reading of the keys to the next: so soon a key that another server revokes ends here
STALE = 60.0  # seconds without a reading after which nobody is let in
_PREFIX = "rt_"


@dataclass(frozen=True)
class Grant:
    """What a key allows: some scopes, for all learners or those named, until it expires."""

    id: str
    name: str
    scopes: frozenset[str]
    only: frozenset[str] | None
    expires: datetime | None

    def check(self, scope: str, resource: str | None = None) -> None:
        """Refuse what the key does not allow."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Problem("not-allowed", f"this needs a key with the scope {scope!r}, and yours has not got it")
        if self.only is not None and (resource is None or resource not in self.only):
            raise Problem("not-allowed", "this key is for other learners or fleets only")


def digest(key: str) -> str:
    """Return what is kept of a key: keys are long and random, so one hash without salt is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


class Keys:
    """The keys of a store, read again every `FRESH` seconds by whoever owns this: asking costs little."""

    def __init__(self, shelf: Shelf) -> None:
        """Start with none; `refresh` reads them."""
        self._shelf = shelf
        self._grants: dict[str, Grant] = {}
        self._read = -math.inf

    def make(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        only: Iterable[str] | None = None,
        days: float | None = None,
    ) -> tuple[str, Grant]:
        """Return a new key, which is shown this once, and what it allows."""
        wanted = [scope for scope in SCOPES if scope in set(scopes)]
        key = _PREFIX + secrets.token_urlsafe(32)
        expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
        grant = Grant(secrets.token_hex(6), name, frozenset(wanted), None if only is None else frozenset(only), expires)
        row = {
            "id": grant.id,
            "digest": digest(key),
            "name": name,
            "scopes": " ".join(wanted),
            "only": None if only is None else " ".join(sorted(set(only))),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "expires": None if expires is None else expires.isoformat(timespec="seconds"),
            "revoked": None,
        }
        with self._shelf.writing() as connection:
            connection.execute(insert(KEYS).values(row))
        self.refresh()
        return key, grant

    def revoke(self, name: str) -> bool:
        """End a key by its id; say whether there was one."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        change = update(KEYS).where(KEYS.c.id == name, KEYS.c.revoked.is_(None)).values(revoked=now)
        with self._shelf.writing() as connection:
            found = connection.execute(change).rowcount
        self.refresh()
        return bool(found)

    def listed(self) -> list[dict[str, Any]]:
        """Return all keys, without what would let anybody in."""
        wanted = select(*(column for column in KEYS.c if column.name != "digest")).order_by(KEYS.c.created, KEYS.c.id)
        with self._shelf.reading() as connection:
            rows = [dict(row) for row in connection.execute(wanted).mappings()]
        for row in rows:
            row["scopes"] = row["scopes"].split()
            row["only"] = None if row["only"] is None else row["only"].split()
        return rows

    def known(self, key: str) -> Grant | None:
        """Return what a key allows; None for one that is unknown, revoked or too old."""
        if time.monotonic() - self._read > STALE:
            raise Problem("store", "API keys cannot be read from the store at the moment; ask again")
        grant = self._grants.get(digest(key))
        if grant is not None and grant.expires is not None and grant.expires <= datetime.now(UTC):
            return None
        return grant

    def any_admin(self) -> bool:
        """Say whether somebody can administer."""
        self.refresh()
        return any("admin" in grant.scopes for grant in self._grants.values())

    def refresh(self) -> None:
        """Read them again."""
        begun = time.monotonic()
        with self._shelf.reading() as connection:
            rows = connection.execute(select(KEYS).where(KEYS.c.revoked.is_(None))).mappings().all()
        self._grants = {
            row["digest"]: Grant(
                row["id"],
                row["name"],
                frozenset(row["scopes"].split()),
                None if row["only"] is None else frozenset(row["only"].split()),
                None if row["expires"] is None else datetime.fromisoformat(row["expires"]),
            )
            for row in rows
        }
        self._read = begun
