"""`reticent report`: a study as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli import _options as options

EXAMPLES = options.examples(
    "reticent compare bananas --rounds 2000 --epsilon 1 --seeds 2 --save study.json",
    "reticent report study.json -o study.html",
)


def report(
    study: Annotated[Path, typer.Argument(help="A study, as run and compare write it with --save.", metavar="STUDY")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The HTML file; beside the study unless given.", metavar="FILE"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write one self-contained HTML file: goal, certificate in plain words, pictures, tables, how to repeat it."""
    from reticent.cli._show import check_outputs, print_json, say
    from reticent.lab import Study
    from reticent.lab.report import write_report

    target = study.with_suffix(".html") if output is None else output
    check_outputs(str(study), output=target)
    kept = Study.load(study)
    if not kept.runs:
        raise ValueError(f"{study} has no runs to report on; make it again with a system that applies")
    found = write_report(kept, target)
    if json:
        print_json({"report": str(found)})
    else:
        say("Losses and regret in it are computed from the data, and are not private.")
        print(found)
