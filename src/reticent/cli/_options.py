"""Options that several commands share, and the examples under their help."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer


def number(text: str | float) -> float:
    """Return the number that an option is given, or refuse the text by name.

    >>> number("1e-6")
    1e-06
    """
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


GOAL, PROBLEM, OUTPUT, WORK = "Goal", "Problem", "Output", "Work"

Epsilon = Annotated[
    float | None,
    typer.Option(help="Privacy: the epsilon of the whole sequence of decisions.", parser=number, rich_help_panel=GOAL),
]
Delta = Annotated[
    float | None,
    typer.Option(help="Privacy: the delta that goes with it; 1e-6 unless given.", parser=number, rich_help_panel=GOAL),
]
MaxSwitches = Annotated[
    str | None, typer.Option(help="Laziness: so many changes of decision, such as 1000.", rich_help_panel=GOAL)
]
Neighbors = Annotated[
    str, typer.Option(help="Streams that look alike: replace or zero-out one round.", rich_help_panel=GOAL)
]
Adversary = Annotated[
    str, typer.Option(help="Privacy against losses that react (adaptive) or not (oblivious).", rich_help_panel=GOAL)
]
Smoothness = Annotated[
    float | None,
    typer.Option(
        help="A bound on second derivatives, for systems that need one.", parser=number, rich_help_panel=PROBLEM
    ),
]
StrongConvexity = Annotated[
    float | None,
    typer.Option(
        help="The least second derivative of every round's loss, for systems that need one; with --smoothness.",
        parser=number,
        rich_help_panel=PROBLEM,
    ),
]
MaxOperations = Annotated[
    float | None,
    typer.Option(
        help="Work: the most operations of a run that best may choose; --all marks more; 1e13 unless given; inf: any.",
        parser=number,
        rich_help_panel=GOAL,
    ),
]
Save = Annotated[Path | None, typer.Option(help="Keep it as JSON, for reticent report.", rich_help_panel=OUTPUT)]
Report = Annotated[Path | None, typer.Option(help="Write a report as one HTML file.", rich_help_panel=OUTPUT)]
MaxRows = Annotated[
    str | None,
    typer.Option(help="Protect a person, not a row: so many rows of each count.", rich_help_panel=GOAL),
]
Window = Annotated[
    str | None,
    typer.Option(
        help="Count them anew in each window: rows, or with --every a time such as 30d.", rich_help_panel=GOAL
    ),
]
COLUMNS = "Columns of a file"
Person = Annotated[
    str | None,
    typer.Option(help="Whose each row is, for --max-rows; never a feature.", rich_help_panel=COLUMNS),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="When each row came, for --every: 2026-11-17T08:30 or seconds since 1970.", rich_help_panel=COLUMNS
    ),
]
Features = Annotated[
    str, typer.Option(help="Columns by name or number, with commas; none: the constant 1.", rich_help_panel=COLUMNS)
]
Target = Annotated[str | None, typer.Option(help="The column to predict.", rich_help_panel=COLUMNS)]
Intercept = Annotated[bool, typer.Option(help="Add a feature that is always 1.", rich_help_panel=COLUMNS)]
Bounds = Annotated[
    str, typer.Option(help="Public limits of numbers or dates: age=0:120,income=0:1e6.", rich_help_panel=COLUMNS)
]
Labels = Annotated[
    str | None,
    typer.Option(help="Both labels, the one to predict last: no,yes. Others are bad rows.", rich_help_panel=COLUMNS),
]
Positive = Annotated[
    str | None,
    typer.Option(help="The label to predict, of a column that has one other.", rich_help_panel=COLUMNS),
]
Categories = Annotated[
    str, typer.Option(help="Public texts of a column: city=Paris|Lyon|other.", rich_help_panel=COLUMNS)
]
Fill = Annotated[
    str, typer.Option(help="Public values of empty cells, such as age=40,city=other.", rich_help_panel=COLUMNS)
]
UnitRows = Annotated[
    bool,
    typer.Option("--unit-rows", help="In place of bounds: rows have length 1 at most.", rich_help_panel=COLUMNS),
]
Separator = Annotated[str, typer.Option(help="Between the fields of a CSV line.", rich_help_panel=COLUMNS)]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row already.", rich_help_panel=COLUMNS)
]
BadRows = Annotated[str, typer.Option(help="Rows that cannot be read: stop, or skip them.", rich_help_panel=COLUMNS)]
Lipschitz = Annotated[float, typer.Option(help="How steep a loss can be.", parser=number, rich_help_panel=PROBLEM)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.", rich_help_panel=OUTPUT)
]
Jobs = Annotated[int, typer.Option(help="Processes at work; -1 for one on every core.", rich_help_panel=WORK)]

DELTA = 1e-6


def claim(epsilon: float | None, delta: float | None) -> tuple[float, float] | tuple[None, None]:
    """Return the privacy asked for: delta has a default, but says nothing by itself.

    >>> claim(1.0, None), claim(None, None)
    ((1.0, 1e-06), (None, None))
    """
    if epsilon is None:
        if delta is not None:
            raise ValueError(f"delta goes with an epsilon, got --delta {delta:g} alone; give --epsilon too")
        return None, None
    return epsilon, DELTA if delta is None else delta


def workers(jobs: int) -> int:
    """Return a number of processes; refuse what is none.

    >>> workers(2), workers(-1)
    (2, -1)
    """
    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs must be a number of processes, or -1 for one on every core, got {jobs}")
    return jobs


def words(context: typer.Context) -> str:
    """Return the command line as one would type it again."""
    return shlex.join(["reticent", *(context.obj or [])])


def examples(*lines: str) -> str:
    """Return the end of a help: commands that run as they stand, each on a line of its own.

    >>> examples("reticent streams", "reticent demo")
    'Examples:\\n\\nreticent streams\\n\\nreticent demo'
    """
    return "\n\n".join(["Examples:", *lines])
