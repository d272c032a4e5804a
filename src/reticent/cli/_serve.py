"""`reticent serve`: learners and fleets over HTTP, with a dashboard."""

from __future__ import annotations

from typing import Annotated

import typer

from reticent.cli import _options as options
from reticent.cli._options import number
from reticent.cli._show import say

EXAMPLES = options.examples(
    "reticent serve",
    "reticent serve --store service.db --ledger privacy.db --port 8000",
    "reticent serve --store postgresql+psycopg://reticent@db/reticent --guard /var/lib/reticent/guard",
)
LIMITS = "Limits"


def serve(
    store: Annotated[
        str, typer.Option(help="Where all is kept: a file, or a URL of SQLAlchemy.", envvar="RETICENT_STORE")
    ] = "service.db",
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A ledger that learners are charged in: a file, or a URL.",
            envvar="RETICENT_LEDGER",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; TLS and the world belong in front of it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for one that is free.", min=0, max=65_535)] = 8000,
    guard: Annotated[
        str | None,
        typer.Option(
            help="A folder outside of the store that finds old copies of it.",
            envvar="RETICENT_GUARD",
            show_default="STORE.guard",
        ),
    ] = None,
    public_clock: Annotated[
        bool,
        typer.Option("--public-clock", help="When and how often rounds come is no secret: count them in /metrics."),
    ] = False,
    new_admin_key: Annotated[bool, typer.Option("--new-admin-key", help="Print another key that administers.")] = False,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Allow known seeds, for tests: nothing is private then.")
    ] = False,
    rate: Annotated[
        float, typer.Option(help="Requests a second for one API key.", parser=number, rich_help_panel=LIMITS)
    ] = 20_000.0,
    body_megabytes: Annotated[
        float, typer.Option(help="The largest body of a request.", parser=number, rich_help_panel=LIMITS)
    ] = 16.0,
    seconds: Annotated[
        float, typer.Option(help="How long a request may take to arrive.", parser=number, rich_help_panel=LIMITS)
    ] = 20.0,
    remember_hours: Annotated[
        float,
        typer.Option(
            help="How long receipts are kept, for requests sent again.", parser=number, rich_help_panel=LIMITS
        ),
    ] = 24.0,
) -> int:
    """Serve learners and fleets over HTTP until a signal comes.

    The first start prints the key of an administrator, once. The dashboard is at the address itself.

    A learner has one writer: a second server on the same store reads all, and writes those that are free.
    """
    from reticent.service import Settings
    from reticent.service._run import serve as run

    settings = Settings(
        store,
        ledger=ledger,
        guard=guard,
        public_clock=public_clock,
        seeds=seeds,
        rate=rate,
        burst=max(1, int(2 * rate)),
        body_bytes=int(body_megabytes * (1 << 20)),
        body_seconds=seconds,
        remember_seconds=3600 * remember_hours,
    )
    if settings.guard_folder() is None:
        say("warning: no --guard, so that an old copy of this store would not be found; see docs/guarantees/service.md")
    return run(settings, host, port, said=_said, new_key=new_admin_key)


def _said(address: str, key: str | None) -> None:
    """Print where the server is, and what to do first."""
    if key is None:
        print(f"Listening at {address}; the dashboard is there too.", flush=True)
        return
    print(f"Listening at {address}.", flush=True)
    print(f"\nThe key of the administrator, shown this once:\n\n  {key}\n")
    print(f"Dashboard:\n\n  {address}/#key={key}\n")
    print("A first learner, and some rounds:\n")
    print(f"  export KEY={key}")
    make = '{"id": "p95", "spec": {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1}}'
    for path, name, body in (
        ("/v1/learners", "make-p95", make),
        ("/v1/learners/p95/rounds", "first", '{"columns": {"values": [212.5, 180.0, 260.1]}}'),
    ):
        print(f'  curl {address}{path} -H "Authorization: Bearer $KEY" -H "Idempotency-Key: {name}" --json \'{body}\'')
    print(f'  curl {address}/v1/learners/p95/decision -H "Authorization: Bearer $KEY"', flush=True)
