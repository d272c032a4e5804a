"""Learners and fleets of a service as objects, with the calls of those that run here."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reticent.client._http import Connection
from reticent.client._values import Decision, History, Receipt, Spent

_JSON = {"Content-Type": "application/json"}
_RAW = {"Content-Type": "application/octet-stream"}


class Client:
    """A service at an address, with an API key: makes learners and fleets, and finds them.

    Requests that get no answer are sent again for `patience` seconds, with the Idempotency-Key that they had: a server
    that is killed and comes back takes nothing in twice. One client may serve several threads.

    >>> client = Client("http://127.0.0.1:8000", "rt_key")
    >>> client.learner("p95")
    <learner 'p95'>
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0, patience: float = 30.0) -> None:
        """Take the address of a service and a key; nothing is asked yet."""
        self._wire = Connection(url, key, timeout, patience)

    def make_learner(
        self, spec: Mapping[str, Any], *, id: str | None = None, again: str | None = None, **options: Any
    ) -> Learner:
        """Return a new learner; `spec` is as `rt.fleet.Spec.to_json` writes it.

        `options` are `name`, `population` (charged in the ledger first), `feedback_lag` and `seed`. `again` is an
        Idempotency-Key of your own, for programs that may be started again.
        """
        return Learner(self._wire, self._make("learners", spec, id, again, options)["id"])

    def make_fleet(
        self, spec: Mapping[str, Any], *, id: str | None = None, again: str | None = None, **options: Any
    ) -> Fleet:
        """Return a new fleet; `options` are `name`, `population`, `max_keys` and `seed`."""
        return Fleet(self._wire, self._make("fleets", spec, id, again, options)["id"])

    def _make(
        self, kind: str, spec: Mapping[str, Any], id: str | None, again: str | None, options: dict[str, Any]
    ) -> dict[str, Any]:
        body = {"spec": dict(spec), **({} if id is None else {"id": id}), **options}
        headers = {**_JSON, "Idempotency-Key": again or secrets.token_hex(16)}
        found: dict[str, Any] = self._wire.ask("POST", f"/v1/{kind}", json.dumps(body).encode(), headers).json()
        return found

    def learner(self, id: str) -> Learner:
        """Return the learner of an id; nothing is asked yet."""
        return Learner(self._wire, id)

    def fleet(self, id: str) -> Fleet:
        """Return the fleet of an id; nothing is asked yet."""
        return Fleet(self._wire, id)

    def learners(self) -> list[dict[str, Any]]:
        """Return what is known of all learners that the key may see."""
        found: list[dict[str, Any]] = self._wire.ask("GET", "/v1/learners").json()["learners"]
        return found

    def fleets(self) -> list[dict[str, Any]]:
        """Return what is known of all fleets that the key may see."""
        found: list[dict[str, Any]] = self._wire.ask("GET", "/v1/fleets").json()["fleets"]
        return found

    def make_key(
        self, name: str, scopes: Sequence[str], *, only: Iterable[str] | None = None, days: float | None = None
    ) -> str:
        """Return a new API key with the scopes read, write or admin; it is shown this once."""
        body = {"name": name, "scopes": list(scopes), "only": None if only is None else list(only), "days": days}
        return str(self._wire.ask("POST", "/v1/keys", json.dumps(body).encode(), _JSON).json()["key"])

    def close(self) -> None:
        """Let go of the connection of this thread."""
        self._wire.close()

    def __enter__(self) -> Client:
        """Return the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the connection."""
        self.close()


class _Decides:
    """What has a decision: a learner, or a key of a fleet."""

    def __init__(self, wire: Connection, path: str) -> None:
        self._wire, self._path = wire, path
        self._seen: tuple[str, Decision] | None = None

    def decision(self) -> Decision:
        """Return the decision in play; where it has not changed since the last time, hardly anything is sent."""
        return self._decision("", {} if self._seen is None else {"If-None-Match": self._seen[0]}, 0.0)

    def wait(self, seconds: float = 30.0) -> Decision:
        """Return the decision as soon as it is another one than the last that was returned here, or after so long."""
        headers = {} if self._seen is None else {"If-None-Match": self._seen[0]}
        return self._decision(f"?wait={seconds:g}", headers, seconds)

    def _decision(self, query: str, headers: Mapping[str, str], longer: float) -> Decision:
        answer = self._wire.ask("GET", f"{self._path}/decision{query}", headers=headers, longer=longer)
        if answer.status == 304 and self._seen is not None:
            return self._seen[1]
        found = Decision.of(answer.json())
        self._seen = answer.headers["etag"], found
        return found

    def history(self, limit: int = 1000) -> History:
        """Return the last decisions, with the rounds at which they came."""
        return History.of(self._wire.ask("GET", f"{self._path}/history?limit={limit:d}").json())

    def spent(self) -> Spent:
        """Return the epsilon spent so far."""
        found = self._wire.ask("GET", f"{self._path}/spent").json()
        return Spent(found["epsilon"], found["delta"])


class Learner(_Decides):
    """One learner of a service."""

    def __init__(self, wire: Connection, id: str) -> None:
        super().__init__(wire, f"/v1/learners/{quote(id, safe='')}")
        self.id = id

    def observe(self, *, again: str | None = None, **columns: Any) -> Receipt:
        """Take in rounds, given as columns of equal length: `observe(values=[...])`, or `features=` and `targets=`.

        `again` is an Idempotency-Key of your own; the same one again has no effect and returns the same receipt.
        """
        return _observe(self._wire, self._path, {"columns": _plain(columns)}, again)

    def observe_raw(self, rows: bytes, *, again: str | None = None) -> Receipt:
        """Take in rounds as little-endian float64, row by row: `np.asarray(rows, "<f8").tobytes()`."""
        return _post(self._wire, self._path, rows, {**_RAW, "Idempotency-Key": again or secrets.token_hex(16)})

    def open(self, round: str, features: Sequence[float]) -> None:
        """Begin a round whose target comes later; the same one again has no effect."""
        _observe(self._wire, self._path, {"round": round, "open": list(map(float, features))}, f"open {round}")

    def close(self, round: str, target: float) -> None:
        """End a round that was opened; the same one again has no effect."""
        _observe(self._wire, self._path, {"round": round, "close": float(target)}, f"close {round}")

    def plan(self) -> dict[str, Any]:
        """Return what is promised."""
        found: dict[str, Any] = self._wire.ask("GET", f"{self._path}/plan").json()
        return found

    def __repr__(self) -> str:
        """Name it."""
        return f"<learner {self.id!r}>"


class Fleet:
    """One fleet of a service."""

    def __init__(self, wire: Connection, id: str) -> None:
        self._wire, self._path, self.id = wire, f"/v1/fleets/{quote(id, safe='')}", id

    def observe(self, keys: Iterable[str], *, again: str | None = None, **columns: Any) -> Receipt:
        """Take in rounds, one for each of the keys, given as columns of equal length."""
        return _observe(self._wire, self._path, {"keys": [str(key) for key in keys], "columns": _plain(columns)}, again)

    def key(self, key: str) -> _Decides:
        """Return what decides for a key."""
        return _Decides(self._wire, f"{self._path}/keys/{quote(str(key), safe='')}")

    def plan(self) -> dict[str, Any]:
        """Return what is promised of every key."""
        found: dict[str, Any] = self._wire.ask("GET", f"{self._path}/plan").json()
        return found

    def __repr__(self) -> str:
        """Name it."""
        return f"<fleet {self.id!r}>"


def _plain(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as lists; arrays have a method for that."""
    return {name: given.tolist() if hasattr(given, "tolist") else list(given) for name, given in columns.items()}


def _observe(wire: Connection, path: str, body: dict[str, Any], again: str | None) -> Receipt:
    headers = {**_JSON, "Idempotency-Key": again or secrets.token_hex(16)}
    return _post(wire, path, json.dumps(body).encode(), headers)


def _post(wire: Connection, path: str, body: bytes, headers: Mapping[str, str]) -> Receipt:
    answer = wire.ask("POST", f"{path}/rounds", body, headers)
    found = answer.json()
    return Receipt(found["rounds"], tuple(found["changed"]), answer.headers.get("idempotency-replayed") == "true")
