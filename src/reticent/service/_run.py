"""Runs the application under uvicorn: sockets, signals, and what is written to the log."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from reticent.service._app import create_app
from reticent.service._hub import Hub
from reticent.service._limits import impatient
from reticent.service._settings import Settings

_GRACE = 20  # seconds that requests under way get to finish after a signal
_TURN = 0.001  # seconds that a thread which commits may keep the one that answers waiting


def serve(
    settings: Settings,
    host: str,
    port: int,
    *,
    said: Callable[[str, str | None], None],
    new_key: bool = False,
    connections: int = 2000,
) -> int:
    """Answer requests until a signal comes; return the exit code.

    `said` hears the address once the server listens, and the key of a new administrator if there was none, or another
    one is wanted. Requests are not written to the log: their times are those of rounds.
    """
    hub = Hub(settings)  # what is wrong with the store, the ledger or the guard is told before anything listens
    app = create_app(settings, hub)
    config = uvicorn.Config(
        app,
        http=impatient(settings.body_seconds),
        ws="none",
        lifespan="on",
        access_log=False,
        # To the handlers that are there: uvicorn's own settings would close those of everybody else in the process.
        log_config=None,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=connections,
    )
    server = _Server(config, hub, lambda address: _told(hub, address, new_key, said))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listens = socket.create_server((host, port), family=family, backlog=1024)
    sys.setswitchinterval(_TURN)
    # uvicorn stops at this signal, and then gives it to whoever was there before: that is the end of a good run.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listens])
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0 if server.started else 2


def _told(hub: Hub, address: str, new_key: bool, said: Callable[[str, str | None], None]) -> None:
    wanted = new_key or not hub.keys.any_admin()
    key = hub.keys.make("administrator", ["admin"])[0] if wanted else None
    said(address, key)


class _Server(uvicorn.Server):
    """A server that says when it listens, and wakes those who wait for changes when it stops."""

    def __init__(self, config: uvicorn.Config, hub: Hub, listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._hub, self._listening = hub, listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            bound = self.servers[0].sockets[0].getsockname()
            host = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
            self._listening(f"http://{host}:{bound[1]}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.wake()
        await super().shutdown(sockets)
