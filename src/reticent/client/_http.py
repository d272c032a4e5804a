"""Requests that are tried again until they are answered: safe, because each has an Idempotency-Key or only reads."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_AGAIN = {408, 429, 502, 503, 504}  # a server that stops, is busy, or does not hold the learner yet
_LONGEST = 10.0  # seconds between two tries at most
_jitter = random.SystemRandom()


class ServiceError(Exception):
    """A request that the service has answered with a problem: its status, its kind, and a sentence."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        """Take what the answer says."""
        super().__init__(f"{detail} ({status}, {kind})")
        self.status, self.kind, self.detail = status, kind, detail


@dataclass(frozen=True)
class Answer:
    """A status, headers by their names in small letters, and a body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as values."""
        return json.loads(self.body)


class Connection:
    """One address and one key; every thread has a connection of its own, which stays open."""

    def __init__(self, url: str, key: str, timeout: float, patience: float) -> None:
        """Take the address of a service; nothing is asked yet."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url must be the address of a service, such as http://127.0.0.1:8000, got {url!r}")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._key, self._timeout, self._patience = key, timeout, patience
        self._local = threading.local()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        longer: float = 0.0,
    ) -> Answer:
        """Return the answer; try again, up to the patience, where there is none or the service is not ready."""
        until, pause = time.monotonic() + self._patience, 0.05
        wanted = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        while True:
            try:
                answer = self._once(method, self._path + path, body, wanted, longer)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() + pause > until:
                    raise ConnectionError(f"no answer from {self._host} within {self._patience:g} seconds") from error
            else:
                if answer.status not in _AGAIN or time.monotonic() + pause > until:
                    return _checked(answer)
                pause = max(pause, _seconds(answer.headers.get("retry-after")))
            time.sleep(pause * (0.5 + _jitter.random() / 2))
            pause = min(2 * pause, _LONGEST)

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], longer: float) -> Answer:
        wire = getattr(self._local, "wire", None)
        if wire is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            wire = self._local.wire = kind(self._host, self._port, timeout=self._timeout + longer)
        wire.timeout = self._timeout + longer
        if wire.sock is not None:
            wire.sock.settimeout(wire.timeout)
        wire.request(method, path, body=body, headers=dict(headers))
        got = wire.getresponse()
        return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())

    def close(self) -> None:
        """Let go of the connection of this thread."""
        wire = getattr(self._local, "wire", None)
        if wire is not None:
            wire.close()
            self._local.wire = None


def _seconds(text: str | None) -> float:
    return min(float(text), _LONGEST) if text is not None and text.isdecimal() else 0.0


def _checked(answer: Answer) -> Answer:
    if answer.status < 400:
        return answer
    try:
        found = answer.json()
        kind, detail = str(found["type"]).rpartition(":")[2], str(found.get("detail") or found["title"])
    except (ValueError, KeyError, TypeError):
        kind, detail = "unknown", "the answer is none of a reticent service; is something else at this address?"
    raise ServiceError(answer.status, kind, detail)
