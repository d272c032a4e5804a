"""`reticent compare`: systems side by side on one stream, over seeds, with spread."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli import _options as options
from reticent.cli._options import GOAL, OUTPUT, PROBLEM, WORK, number
from reticent.cli._specs import counts_of, floats_of
from reticent.systems._texts import DOMAINS, LOSSES, count_of

if TYPE_CHECKING:
    from reticent.cli._contest import Field
    from reticent.lab import Study
    from reticent.lab._compare import Contest

INTERRUPTED = 130
EXAMPLES = options.examples(
    "reticent compare phishing --epsilon 0.5,1,3 --seeds 5",
    "reticent compare bananas --rounds 2000 --max-switches 50,500 --seeds 2",
    "reticent compare iid:rounds=5000 --epsilon 1 --systems pcomw,dp-ftrl-linear",
)


def compare(
    context: typer.Context,
    stream: Annotated[str, typer.Argument(help="A named stream (`reticent streams`), or a CSV or Parquet file.")],
    epsilon: Annotated[
        str | None, typer.Option(help="One or more epsilons, such as 0.5,1,3.", rich_help_panel=GOAL)
    ] = None,
    delta: options.Delta = None,
    max_switches: Annotated[
        str | None, typer.Option(help="One or more numbers of switches, such as 100,1e3.", rich_help_panel=GOAL)
    ] = None,
    neighbors: options.Neighbors = "replace",
    adversary: options.Adversary = "adaptive",
    systems: Annotated[
        str, typer.Option(help="Parts of names, such as pcomw,dp-ftrl; usual or all.", rich_help_panel=GOAL)
    ] = "usual",
    seeds: Annotated[int, typer.Option(help="Runs of every system that uses randomness.", rich_help_panel=WORK)] = 5,
    rounds: Annotated[str | None, typer.Option(help="Only so many, from the first on.", rich_help_panel=WORK)] = None,
    jobs: options.Jobs = -1,
    patience: Annotated[
        float, typer.Option(help="Seconds after which a run is given up.", parser=number, rich_help_panel=WORK)
    ] = 60.0,
    save: options.Save = None,
    report: options.Report = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw it: this PNG, and an SVG beside it.", rich_help_panel=OUTPUT)
    ] = None,
    json: options.Json = False,
    loss: Annotated[
        str | None, typer.Option(help=f"For a file, what a round charges: {LOSSES}.", rich_help_panel=PROBLEM)
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help=f"For a file, where decisions live: {DOMAINS}; else one that suits scoring.", rich_help_panel=PROBLEM
        ),
    ] = None,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            help="For a file, how steep a round can be; else what bounds imply.", parser=number, rich_help_panel=PROBLEM
        ),
    ] = None,
    features: options.Features = "",
    target: options.Target = None,
    intercept: options.Intercept = False,
    bounds: options.Bounds = "",
    labels: options.Labels = None,
    positive: options.Positive = None,
    categories: options.Categories = "",
    fill: options.Fill = "",
    unit_rows: options.UnitRows = False,
    separator: options.Separator = ",",
    no_header: options.NoHeader = False,
    bad_rows: options.BadRows = "stop",
) -> int:
    """Run systems side by side on one stream, and say where ours loses, and to whom.

    Regret, losses and accuracy are computed from the data: they are not private, and neither is this comparison.
    """
    from reticent.cli._columns import Columns
    from reticent.cli._contest import describe, enter, facts, ground_of, show, study_of
    from reticent.cli._show import busy, check_outputs, out, print_json, say
    from reticent.lab import hindsight

    check_outputs(stream, save=save, report=report, picture=picture)
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    if not patience > 0:
        raise ValueError(f"patience must be a number of seconds above 0, got {patience:g}")
    workers = options.workers(jobs)
    epsilons = () if epsilon is None else floats_of(epsilon, "epsilon")
    switches = () if max_switches is None else counts_of(max_switches, "max-switches")
    if not epsilons and not switches:
        raise ValueError(
            "a comparison needs a goal: give --epsilon 0.5,1,3 for private systems, --max-switches, or both"
        )
    _, small = options.claim(epsilons[0] if epsilons else None, delta)
    columns = Columns(
        features, target, intercept, bounds, labels, positive, categories, fill, unit_rows, separator, no_header
    )
    most = None if rounds is None else count_of(rounds, "rounds")
    found = ground_of(stream, columns, bad_rows, loss, domain, lipschitz, most, bool(epsilons))
    for note in found.notes:
        say(note)
    with busy("planning"):
        field = enter(found, epsilons, small, switches, neighbors, adversary, systems)
    with busy("looking for the best fixed decision in hindsight"):
        best = hindsight(found.stream)
    contest = field.contest(best)
    interrupted = _go(contest, seeds, patience, workers, json)
    study = study_of(field, contest, options.words(context))
    if not study.runs and (save or report or picture):
        say("no run was finished, so nothing is saved or drawn")
    elif save is not None:
        say(f"Study: {study.save(save)}")
    if json:
        print_json(facts(field, contest))
    else:
        show(field, contest)
        for line in describe(field, contest):
            print(textwrap.fill(line, out().width, subsequent_indent="  ", break_on_hyphens=False))
    _draw(study, field, picture, report)
    if interrupted:
        say("interrupted; what was finished is shown")
    return INTERRUPTED if interrupted else 0


def _go(contest: Contest, seeds: int, patience: float, jobs: int, quiet: bool) -> bool:
    """Run it all; return whether Ctrl-C came before the end."""
    from reticent.cli._show import progress

    numbers = list(range(seeds))
    with progress(contest.pieces(numbers), "running", quiet=quiet) as step:
        try:
            contest.go(numbers, patience=patience, jobs=jobs, report=lambda name: step(1, name))
        except KeyboardInterrupt:
            return True
    return False


def _draw(study: Study, field: Field, picture: Path | None, report: Path | None) -> None:
    from reticent.cli._show import busy, say

    if not study.runs:
        return
    if picture is not None:
        from reticent.lab import pictures

        draw = pictures.regret_over_time
        if len(field.switches) > 1:
            draw = pictures.against_switches
        elif len(field.epsilons) > 1:
            draw = pictures.against_epsilon
        say(f"Picture: {pictures.save(draw(study), picture)[0]}")
    if report is not None:
        from reticent.lab.report import write_report

        with busy("writing the report"):
            path = write_report(study, report)
        say(f"Report: {path}")
