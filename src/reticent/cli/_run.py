"""`reticent run`: a file, standard input or a named stream through a learner, decisions out as they change."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli import _options as options
from reticent.cli._options import GOAL, OUTPUT, PROBLEM, WORK
from reticent.cli._sources import check_stream, columns_of, flows, is_file, limits_of
from reticent.cli._specs import DOMAINS, LOSSES, choice_of, count_of, horizon_of, system_of

if TYPE_CHECKING:
    from reticent.cli._run_source import Problem
    from reticent.planning._goal import AnyPlan

EXAMPLES = options.examples(
    "reticent run phishing --epsilon 1",
    "reticent run people.csv --features age,income --bounds age=0:120,income=0:1e6 --target sick --loss logistic "
    "--domain ball:2:5 --epsilon 1",
    "reticent run - --target seconds --bounds seconds=0:10 --loss pinball:0.99 --epsilon 0.5 < times.csv",
)


def run(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, - for CSV on standard input, or the name of a stream.")
    ],
    features: options.Features = "",
    target: options.Target = None,
    intercept: options.Intercept = False,
    bounds: options.Bounds = "",
    positive: options.Positive = None,
    separator: options.Separator = ",",
    no_header: options.NoHeader = False,
    bad_rows: options.BadRows = "stop",
    loss: Annotated[str | None, typer.Option(help=f"What a round charges: {LOSSES}.", rich_help_panel=PROBLEM)] = None,
    domain: Annotated[
        str | None,
        typer.Option(help=f"Where decisions live: {DOMAINS}; the unit ball unless given.", rich_help_panel=PROBLEM),
    ] = None,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            help="How steep a round can be; what loss and bounds imply unless given, or 1.", rich_help_panel=PROBLEM
        ),
    ] = None,
    on_steep: Annotated[
        str, typer.Option(help="A steeper round: clip it, or raise (a bad row).", rich_help_panel=PROBLEM)
    ] = "clip",
    horizon: Annotated[
        str | None,
        typer.Option(
            help="Rounds; all of a file unless given, unknown (doubling epochs) for standard input.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    max_switches: options.MaxSwitches = None,
    system: Annotated[
        str | None,
        typer.Option(help="A system by a part of its name, or best; P-COMW unless given.", rich_help_panel=GOAL),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For experiments only: privacy is void.", rich_help_panel=WORK)
    ] = None,
    block: Annotated[str, typer.Option(help="Rounds taken in together at most.", rich_help_panel=WORK)] = "65536",
    out: Annotated[
        Path | None, typer.Option(help="Write decisions here, not to standard output.", rich_help_panel=OUTPUT)
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the run as JSON, for reticent report.", rich_help_panel=OUTPUT)
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report as one HTML file.", rich_help_panel=OUTPUT)
    ] = None,
    regret: Annotated[
        bool | None,
        typer.Option(
            "--regret/--no-regret",
            help="Find the best fixed decision in more passes; done for named streams.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: options.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing beside.", rich_help_panel=OUTPUT)] = False,
) -> int:
    """Send a stream through a learner: decisions out as they change, a summary at the end.

    Decisions come as lines "round, decision", the first round in which each is in play. Of a private run exactly these
    are private; the summary also has numbers computed from the data, and says which.
    """
    from reticent.cli._interrupts import Interrupts
    from reticent.cli._main import INTERRUPTED, UNREAD
    from reticent.cli._outputs import check_outputs
    from reticent.cli._run_command import Command
    from reticent.cli._run_source import SKIPPING, FileSource, file_problem, stream_problem
    from reticent.cli._run_steep import SKIP, STOP
    from reticent.lab.files import Layout

    check_outputs(source, out=out, save=save, report=report)
    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    choice_of("on-steep", on_steep, ("clip", "raise"))
    claim = options.claim(epsilon, delta)
    switches = None if max_switches is None else count_of(max_switches, "max-switches", least=0)
    most = count_of(block, "block")
    if regret and flows(source):
        raise ValueError(f"regret needs more passes over the data, and {source!r} allows one; write it to a file first")
    layout = Layout(columns_of(features), target, intercept, limits_of(bounds), positive)
    with contextlib.ExitStack() as files:
        if is_file(source):
            file = files.enter_context(contextlib.closing(FileSource(source, layout, separator, not no_header, skip)))
            problem = file_problem(file, domain, loss, lipschitz)
            problem.notes += _hidden(source)
        else:
            check_stream(source)
            if layout != Layout():
                raise ValueError(f"a named stream has its own columns; leave the options of columns out for {source!r}")
            problem = stream_problem(source, domain, loss, lipschitz)
        if skip and epsilon is not None and (is_file(source) or on_steep == "raise"):
            problem.notes.append(SKIPPING)
        if on_steep == "raise":
            problem.policy = SKIP if skip else STOP
        length = _horizon(problem, horizon, source)
        plan = _plan(problem, length, claim, switches, system)
        if seed is not None:
            problem.notes.append(f"seed {seed}: whoever knows it can repeat the draws, so nothing of this is private")
        name = str(getattr(plan, "system", "P-COMW")) if system in (None, "best") else system_of(str(system))
        # From the first round to the last file kept, Ctrl-C waits for a place where nothing is lost.
        interrupts = files.enter_context(Interrupts().heard())
        command = Command(problem, plan, name, switches, seed, on_steep, most, json, quiet, interrupts)
        learner, recorder, outcome = command.go(out)
        wanted = regret if regret is not None else not is_file(source)
        looks = wanted and recorder.rounds and not outcome.interrupted and not outcome.unread
        best = command.hindsight(recorder, outcome) if looks else None
        command.tell(learner, recorder, outcome, best)
        command.keep(recorder, outcome, best, save, report, options.words(context))
    if outcome.unread:
        return UNREAD
    if outcome.stopped is not None:
        raise _stopped(outcome.stopped, spent=learner.plan.private and learner.rounds > 0)
    return INTERRUPTED if outcome.interrupted or interrupts.asked else 0


def _hidden(source: str) -> list[str]:
    """Return a note if a file hides a stream of its name."""
    from reticent.lab.streams import names

    hidden = source in names()
    return [f"{source} is read as a file; there is a stream of that name, too"] if hidden else []


def _stopped(error: Exception, spent: bool) -> Exception:
    """Return what ended a run, with what has to be known before another one."""
    from reticent.cli._main import sentence

    if not spent:
        return error
    return ValueError(
        f"{sentence(error)}; the decisions so far count against epsilon, and another run on the same rounds spends "
        "again"
    )


def _horizon(problem: Problem, horizon: str | None, source: str) -> int | None:
    """Return the rounds to plan for: those asked for, or all there are, which then count as public."""
    from reticent.cli._run_source import FileSource

    if horizon is not None:
        return horizon_of(horizon)
    if not isinstance(problem.source, FileSource):
        return problem.source.rounds
    rounds = None if flows(source) else problem.source.count()
    if rounds == 0:
        raise ValueError(f"{problem.source.name} has names of columns but no rows; there is nothing to run on")
    if rounds is not None:
        problem.notes.append(
            f"horizon {rounds:,}, the number of rows of {problem.source.name}, which is taken as public (--horizon "
            "gives another)"
        )
    return rounds


def _plan(
    problem: Problem,
    horizon: int | None,
    claim: tuple[float, float] | tuple[None, None],
    switches: int | None,
    system: str | None,
) -> AnyPlan:
    """Return the plan: P-COMW's unless another is asked for; gradient descent where nothing is promised."""
    from reticent.cli._goal import planned
    from reticent.cli._show import busy

    epsilon, delta = claim
    finite = problem.domain.finite
    chosen = system or ("best" if finite else "P-COMW")
    if epsilon is None and switches is None:
        if horizon is None:
            raise ValueError(
                "a run of unknown length needs a goal; give --epsilon or --max-switches, or --horizon for one without"
            )
        if system is None:
            chosen = "best" if finite else "online gradient descent"
            problem.notes.append(
                "neither --epsilon nor --max-switches: a baseline that promises neither privacy nor few changes"
            )
    wanted = {
        "domain": problem.domain,
        "horizon": horizon,
        "lipschitz": problem.lipschitz,
        "loss": problem.loss,
        "epsilon": epsilon,
        "delta": delta,
        "max_switches": switches,
        "neighbors": "replace",
        "adversary": "adaptive",
    }
    with busy("planning"):
        return planned(wanted, chosen, hard=False)
