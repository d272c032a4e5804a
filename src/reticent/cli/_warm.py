"""`reticent warm`: what learners compile on first use, compiled now."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from reticent.cli import _options as options
from reticent.cli._options import WORK

EXAMPLES = options.examples("reticent warm", "reticent warm --only experts", "reticent warm --list")


def warm(
    only: Annotated[list[str] | None, typer.Option(help="A kind; may be repeated.", rich_help_panel=WORK)] = None,
    jobs: options.Jobs = 1,
    which: Annotated[bool, typer.Option("--list", help="Show the kinds, and compile nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Compile now what learners would compile on first use, and keep it: for once after installing.

    The front door and the trackers compile nothing; the exact samplers and the long walks do, for half a second to half
    a minute each. What is compiled already is loaded, which takes no time.
    """
    from reticent.cli._show import print_json, progress, table
    from reticent.warming import KINDS
    from reticent.warming import warm as compile_ahead

    if which:
        if json:
            print_json({name: kind.title for name, kind in KINDS.items()})
        else:
            table(["kind", "what it is for"], [[name, kind.title] for name, kind in KINDS.items()])
        return
    workers = options.workers(jobs)
    begin = time.perf_counter()
    total = len(set(only)) if only else len(KINDS)
    with progress(total, "compiling", quiet=json) as step:
        seconds = compile_ahead(
            only or None,
            jobs=os.cpu_count() or 1 if workers < 0 else workers,
            progress=lambda name, took: step(1, f"compiled {name}"),
        )
    if json:
        print_json(seconds)
        return
    table(["kind", "seconds", "what it is for"], [[name, f"{s:.1f}", KINDS[name].title] for name, s in seconds.items()])
    print(f"All is compiled, in {time.perf_counter() - begin:.0f} s.")
