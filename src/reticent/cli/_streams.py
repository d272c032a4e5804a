"""`reticent streams`: what named streams there are, and what one of them is about."""

from __future__ import annotations

from typing import Annotated

import typer

from reticent.cli import _options as options

EXAMPLES = options.examples("reticent streams", "reticent streams phishing")


def streams(
    name: Annotated[
        str | None,
        typer.Argument(help="One of them, with settings where it has some: drifting:rounds=1000,dim=5."),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the named streams, or describe one: its reason, its scaling, its loss and its body."""
    from reticent.cli._show import print_json, table
    from reticent.lab.streams import describe

    if name is not None:
        _one(name, json)
        return
    found = describe()
    if json:
        heads = ("name", "kind", "title", "rounds", "dim", "extra")
        print_json([dict(zip(heads, row, strict=True)) for row in found])
        return
    rows = [
        [one, kind, title, f"{rounds:,}", str(dim), f"reticent[{extra}]" if extra else ""]
        for one, kind, title, rounds, dim, extra in found
    ]
    table(("name", "kind", "about", "rounds", "dim", "needs"), rows, left=(0, 1, 2, 5))


def _one(name: str, json: bool) -> None:
    from reticent.cli._show import print_json
    from reticent.lab import stream_facts
    from reticent.lab.streams import get
    from reticent.systems._words import labelled

    facts = stream_facts(get(name))
    if json:
        print_json(facts)
        return
    shown = {
        "stream": facts["name"],
        "about": facts["title"],
        "why": facts["why"],
        "source": facts["source"],
        "rounds": f"{facts['rounds']:,}",
        "loss": f"{facts['loss']}, no steeper than {facts['lipschitz']:g}",
        "decisions in": facts["domain"],
        "they mean": ", ".join(facts["decision"]),
        "scaling": facts["scaling"],
    }
    print(labelled(list(shown.items())))
