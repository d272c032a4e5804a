"""`reticent example`: a small file of made-up rows, to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli import _options as options
from reticent.cli._options import OUTPUT
from reticent.lab.example import KINDS
from reticent.systems._texts import count_of

EXAMPLES = options.examples(
    "reticent example people.csv", "reticent example times.csv --rows 500", "reticent example visits.csv"
)


def example(
    path: Annotated[Path, typer.Argument(help="people.csv, visits.csv or times.csv, in any folder.")],
    rows: Annotated[str | None, typer.Option(help="So many rows.", rich_help_panel=OUTPUT)] = None,
    json: options.Json = False,
) -> None:
    """Write a file of made-up people, their visits, or waiting times, which is the same for everybody.

    Nobody's data is in it: examples of help and documentation run on it as they stand.
    """
    from reticent.cli._show import print_json, say
    from reticent.lab._kept import write_whole

    if path.stem not in KINDS or path.suffix != ".csv":
        known = "; ".join(f"{name}.csv ({about})" for name, (_, _, about) in KINDS.items())
        raise ValueError(f"there are examples called {known}, got {str(path)!r}")
    if path.exists():
        raise ValueError(f"{path} is there already, and nothing was written; give another folder, or remove it")
    lines, usual, _ = KINDS[path.stem]
    count = usual if rows is None else count_of(rows, "rows", most=10_000_000)
    write_whole(path, "".join(f"{line}\n" for line in lines(count)))
    if json:
        print_json({"path": str(path), "rows": count, "columns": next(lines(0)).split(",")})
        return
    say(f"{count:,} made-up rows written to {path}: {next(lines(0)).replace(',', ', ')}")
