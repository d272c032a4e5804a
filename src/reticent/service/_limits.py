"""Limits on what callers send: how often, how much and how slowly; and connections that never finish their head."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reticent.service._problems import Problem

_CLOSE = {"Connection": "close"}  # what was not read of a body must not be taken for the next request


class Buckets:
    """So many requests a second for each key, and a burst; what is above waits, and is told how long.

    >>> buckets = Buckets(rate=1.0, burst=2)
    >>> buckets.take("a", now=0.0), buckets.take("a", now=0.0), buckets.take("a", now=0.0), buckets.take("b", now=0.0)
    (0.0, 0.0, 1.0, 0.0)
    """

    def __init__(self, rate: float, burst: int) -> None:
        """Give every key a full bucket."""
        self._rate, self._burst = rate, float(burst)
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str, now: float | None = None) -> float:
        """Take one; return 0, or the seconds to wait where there is none left."""
        at = time.monotonic() if now is None else now
        left, before = self._left.get(key, (self._burst, at))
        left = min(self._burst, left + (at - before) * self._rate)
        self._left[key] = (left - 1 if left >= 1 else left, at)
        return 0.0 if left >= 1 else (1 - left) / self._rate


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """Return the body of a request; refuse it while it arrives once it is too long, or takes too long."""
    said = request.headers.get("content-length")
    if said is not None and said.isdecimal() and int(said) > most:
        raise _too_large(most)
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise Problem("too-slow", f"a body must arrive within {seconds:g} seconds", headers=_CLOSE) from None
    except ClientDisconnect:
        raise Problem("malformed", "the connection ended before the body did", headers=_CLOSE) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem("too-large", f"a body may have {most:,} bytes; send fewer rounds at once", headers=_CLOSE)


def impatient(seconds: float) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol, which lets go of connections whose request has no complete head after so long."""

    class Impatient(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._start()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._start()

        def on_headers_complete(self) -> None:
            self._stop()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _start(self) -> None:
            self._stop()
            self._timer = self.loop.call_later(seconds, self._give_up)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            transport: Any = self.transport
            if not transport.is_closing():
                transport.abort()

    return Impatient
