"""`reticent run`: a file, standard input or a named stream through a learner, decisions out as they change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._columns import Columns
from reticent.cli._options import GOAL, OUTPUT, PROBLEM, WORK
from reticent.cli._run_command import Command
from reticent.cli._run_source import check_stream, flows, is_file
from reticent.cli._specs import choice_of, horizon_of, system_of
from reticent.cli._units import Units
from reticent.systems._texts import DOMAINS, LOSSES, count_of

if TYPE_CHECKING:
    from reticent.cli._run_check import Checked
    from reticent.cli._run_source import Problem
    from reticent.planning import BasePlan

UNHARMED = "nothing was run or spent"


EXAMPLES = options.examples(
    "reticent run phishing --epsilon 1",
    "reticent run people.csv --features age,income --bounds age=0:120,income=0:2e5 --intercept --target sick "
    "--labels no,yes --loss logistic --epsilon 1",
    "reticent run visits.csv --features age --bounds age=0:120 --intercept --target back --labels no,yes --loss "
    "logistic --epsilon 1 --person id --max-rows 3 --time at --every 1h --window 7d",
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
    labels: options.Labels = None,
    positive: options.Positive = None,
    categories: options.Categories = "",
    fill: options.Fill = "",
    unit_rows: options.UnitRows = False,
    separator: options.Separator = ",",
    no_header: options.NoHeader = False,
    bad_rows: options.BadRows = "stop",
    loss: Annotated[str | None, typer.Option(help=f"What a round charges: {LOSSES}.", rich_help_panel=PROBLEM)] = None,
    domain: Annotated[
        str | None,
        typer.Option(help=f"Where decisions live: {DOMAINS}; else one that suits scoring.", rich_help_panel=PROBLEM),
    ] = None,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            help="How steep a round can be; what loss and bounds imply unless given.", rich_help_panel=PROBLEM
        ),
    ] = None,
    on_steep: Annotated[
        str, typer.Option(help="A steeper round: clip it, or raise (a bad row).", rich_help_panel=PROBLEM)
    ] = "clip",
    horizon: Annotated[
        str | None,
        typer.Option(
            help="Rounds; all of a file unless given, unknown (any number) for standard input.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    max_switches: options.MaxSwitches = None,
    max_rows: options.MaxRows = None,
    person: options.Person = None,
    window: options.Window = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="End blocks by a public clock, such as 1h: then rows may also be there or not.", rich_help_panel=GOAL
        ),
    ] = None,
    time: options.Time = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="When the clock starts; with the first row unless given.", rich_help_panel=GOAL),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="When the clock ends; with the last row unless given.", rich_help_panel=GOAL),
    ] = None,
    usual_rows: Annotated[
        str | None,
        typer.Option(
            help="About how many rows come between two strokes: a public guess; 100 unless given.",
            rich_help_panel=GOAL,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="A system by a part of its name, or best; the one for ordinary data unless given.",
            rich_help_panel=GOAL,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For experiments only: privacy is void.", rich_help_panel=WORK)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read and check everything, and run nothing.", rich_help_panel=WORK)
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(help="Keep every round in this file first: a crash then loses nothing.", rich_help_panel=WORK),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the journal.", rich_help_panel=WORK)
    ] = False,
    block: Annotated[str, typer.Option(help="Rounds taken in together at most.", rich_help_panel=WORK)] = "65536",
    out: Annotated[
        Path | None, typer.Option(help="Write decisions here: x.csv, or x.jsonl.", rich_help_panel=OUTPUT)
    ] = None,
    scorer: Annotated[
        Path | None,
        typer.Option(help="Write the last decision as a score, for reticent score.", rich_help_panel=OUTPUT),
    ] = None,
    save: options.Save = None,
    report: options.Report = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Ask this ledger first (a file, or a URL), and enter the run.", rich_help_panel=GOAL),
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="Whose budget in the ledger the run is charged to.", rich_help_panel=GOAL)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="For a ledger with a window: no older data enters (now, or a time).", rich_help_panel=GOAL),
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
    from reticent.cli._run_check import check_clock, check_horizon
    from reticent.cli._run_source import SKIP, SKIPPING, STOP, FileSource, file_problem, stream_problem
    from reticent.cli._show import check_outputs, say

    check_outputs(source, out=out, save=save, report=report, scorer=scorer, journal=journal)
    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    choice_of("on-steep", on_steep, ("clip", "raise"))
    claim = options.claim(epsilon, delta)
    switches = None if max_switches is None else count_of(max_switches, "max-switches", least=0)
    most, length = count_of(block, "block"), None if horizon is None else horizon_of(horizon)
    _check_goal(claim, system)
    units = Units(person, max_rows, window, time, every, start, until, usual_rows)
    units.check(epsilon)
    _check_clock(units, horizon, journal)
    _check_ledger(ledger, population, since, seed)
    if regret and flows(source):
        raise ValueError(f"regret needs more passes over the data, and {source!r} allows one; write it to a file first")
    _check_journal(journal, resume, ledger)
    columns = Columns(
        features, target, intercept, bounds, labels, positive, categories, fill, unit_rows, separator, no_header
    )
    columns.layout()  # what is typed wrong is found before anything is opened
    with ExitStack() as files:
        if is_file(source):
            columns = columns.settled(source, once=flows(source))
            file = files.enter_context(contextlib.closing(FileSource(source, columns, skip, units)))
            problem = file_problem(file, domain, loss, lipschitz)
            problem.notes += _hidden(source)
        else:
            check_stream(source)
            columns.check_none(source)
            if units.named:
                raise ValueError(
                    "a named stream has neither persons nor times; leave --person, --every and what goes with them "
                    f"out for {source!r}"
                )
            problem = stream_problem(source, domain, loss, lipschitz)
        if skip and epsilon is not None and (is_file(source) or on_steep == "raise"):
            problem.notes.append(SKIPPING)
        if on_steep == "raise" or problem.unit_rows:
            problem.policy = SKIP if skip else STOP
        _check_scorer(problem, scorer)
        # Everything that can be found wrong is, before anything is planned, compiled, entered or spent.
        found = _checked(problem, columns, skip, check, quiet)
        if not units.on_clock:
            length = _horizon(problem, length if horizon else _known(journal, resume), horizon, found)
        check_horizon(problem, found, length, UNHARMED)
        check_clock(problem, found, units.plan()["clock"], UNHARMED)
        if check:
            return _told(problem, found, length, claim, units, json)
        plan = _plan(problem, length, claim, switches, system, units)
        if seed is not None:
            problem.notes.append(f"seed {seed}: whoever knows it can repeat the draws, so nothing of this is private")
        if not quiet:
            for note in problem.notes:
                say(note)
        name = plan.system if system in (None, "best") else system_of(str(system))
        close = _entered(ledger, population, since, plan, source, quiet)
        # From the first round to the last file kept, Ctrl-C waits for a place where nothing is lost.
        interrupts = files.enter_context(Interrupts().heard())
        command = Command(problem, plan, name, switches, seed, on_steep, most, json, quiet, interrupts, journal, resume)
        learner, recorder, outcome = command.go(out, files)
        close()
        wanted = regret if regret is not None else not is_file(source)
        looks = wanted and recorder.rounds and not outcome.interrupted and not outcome.unread
        best = command.hindsight(recorder, outcome) if looks else None
        command.tell(learner, recorder, outcome, best)
        command.publish(learner, recorder, outcome, scorer)
        command.keep(recorder, outcome, best, save, report, options.words(context))
    if outcome.unread:
        return UNREAD
    if outcome.stopped is not None:
        raise _stopped(outcome.stopped, learner.plan.private and recorder.rounds > 0, journal)
    return INTERRUPTED if outcome.interrupted or interrupts.asked else 0


def _check_goal(claim: tuple[float, float] | tuple[None, None], system: str | None) -> None:
    """Refuse a claim that is none and a system that is unknown, before a file is read."""
    from reticent.systems._checks import check_claim

    if claim[0] is not None:
        check_claim(*claim)
    if system not in (None, "best"):
        system_of(str(system))


def _check_clock(units: Units, horizon: str | None, journal: Path | None) -> None:
    """Refuse what does not go with a clock, before a file is read."""
    if units.every is None:
        return
    if horizon not in (None, "unknown"):
        raise ValueError(
            f"on a clock any number of rows may come, got --horizon {horizon}; leave it out (--until gives an end)"
        )
    if journal is not None:
        raise ValueError(
            f"runs on a clock cannot be resumed here, so a journal would be of little use, got --journal {journal}; "
            "leave it out (in Python, rt.Journal keeps such a learner, strokes of the clock included)"
        )


def _check_journal(journal: Path | None, resume: bool, ledger: str | None) -> None:
    """Refuse to start where a run has begun, and to resume where none has."""
    if journal is None:
        if resume:
            raise ValueError("--resume goes on with the run in a journal; give --journal PATH, as when it was started")
        return
    begun = _begun(journal)
    if resume and begun is None:
        raise ValueError(f"there is no run in {journal} to go on with; leave --resume out to start one")
    if not resume and begun is not None:
        raise ValueError(
            f"{journal} has a run of {begun:,} rounds already; --resume goes on with it, and a new run needs a new path"
        )
    if resume and ledger is not None:
        raise ValueError("a run is entered in a ledger once, when it is started; leave --ledger out with --resume")


def _begun(journal: Path) -> int | None:
    """Return the number of rounds of the run in a journal, None if there is none."""
    from reticent.journal import Reader

    if not journal.exists():
        return None
    try:
        with Reader(journal) as reader:
            return reader.rounds
    except ValueError as why:
        if "no learner was started" in str(why):
            return None
        raise


def _known(journal: Path | None, resume: bool) -> int | None:
    """Return the horizon of the run in a journal: a file may have grown since."""
    from reticent.journal import Reader

    if journal is None or not resume:
        return None
    with Reader(journal) as reader:
        horizon: int | None = reader.facts["plan"].horizon
    return horizon


def _check_scorer(problem: Problem, scorer: Path | None) -> None:
    """Refuse to write a score where a decision is none."""
    from reticent.cli._run_source import FileSource

    source = problem.source
    if scorer is not None and not (
        isinstance(source, FileSource) and source.bound.features and not source.bound.linear
    ):
        raise ValueError("a decision is a score where a file has features and a target; leave --scorer out here")


def _checked(problem: Problem, columns: Columns, skip: bool, check: bool, quiet: bool) -> Checked | None:
    """Read a file to its end and refuse what is wrong with it; None for what cannot be read beforehand."""
    from reticent.cli._run_check import check_steep, look, refuse, remarks
    from reticent.cli._run_source import FileSource
    from reticent.cli._show import progress

    source = problem.source
    if not isinstance(source, FileSource):
        return None
    if source.live:
        if check:
            raise ValueError(f"{source.name} is read once, so it cannot be checked first; write it to a file")
        problem.notes.append(
            f"{source.name} cannot be checked first: a bad row will stop the run there, with what is spent spent"
        )
        return None
    with progress(1.0, "checking", quiet=quiet) as step:
        found = look(problem, step=step)
    if not skip:
        refuse(problem, found, columns, UNHARMED)
    if found.seen == 0:
        raise ValueError(f"{source.name} has names of columns but no rows; there is nothing to run on")
    if found.rows == 0:
        raise ValueError(f"{source.name} has no rows to run on, only {found.bad:,} bad ones, such as {found.told[0]}")
    check_steep(problem, found, UNHARMED)
    problem.notes += remarks(problem, found)
    return found


def _told(
    problem: Problem, found: Checked | None, length: int | None, claim: tuple[Any, Any], units: Units, json: bool
) -> int:
    """Say what a check has found."""
    from reticent.cli import _run_check
    from reticent.cli._show import print_json, say

    said = _run_check.report(problem, found, length, claim, units.in_words())
    if json:
        print_json(said)
    else:
        for note in problem.notes:
            say(note)
        print(_run_check.in_words(said))
    return 0


def _check_ledger(ledger: str | None, population: str | None, since: str | None, seed: int | None) -> None:
    if since is not None and ledger is None:
        raise ValueError(f"--since {since} is for a ledger; give --ledger and --population, or leave it out")
    if (ledger is None) != (population is None):
        raise ValueError(
            f"ledger and population go together, got --ledger {ledger} and --population {population}; give both"
        )
    if ledger is not None and seed is not None:
        raise ValueError(
            f"a run with --seed {seed} can be repeated, so nothing of it is private, and a ledger must not say "
            "otherwise; leave --seed out"
        )


def _entered(
    ledger: str | None, population: str | None, since: str | None, plan: BasePlan, source: str, quiet: bool
) -> Callable[[], None]:
    """Enter a run before its first round, and return what ends the entry; a ledger may refuse."""
    if ledger is None or population is None:
        return lambda: None
    from reticent.cli._show import say
    from reticent.ledger import Ledger

    book = Ledger(ledger, create=False)
    try:
        entry = book.spend(population, plan, note=f"reticent run {source}", since=since)
    except ValueError as error:  # which may give advice to somebody who writes Python
        said, asked, _ = str(error).partition("give factor=")
        if not asked:
            raise
        wanted = "leave --window out" if plan.window is not None else "give --person COLUMN and --max-rows K"
        raise ValueError(f"{said}{wanted}, or take a population for it") from error
    if not quiet:
        say(
            f"ledger: entry {entry.number} for {population}, {book.standing(population).left:.1%} of its budget is left"
        )
    return lambda: book.end(entry)


def _hidden(source: str) -> list[str]:
    """Return a note if a file hides a stream of its name."""
    from reticent.lab.streams import names

    hidden = source in names()
    return [f"{source} is read as a file; there is a stream of that name, too"] if hidden else []


def _stopped(error: Exception, spent: bool, journal: Path | None) -> Exception:
    """Return what ended a run, with what has to be known before another one."""
    from reticent.cli._main import sentence

    if not spent:
        return error
    if journal is not None:
        return ValueError(
            f"{sentence(error)}; the rounds so far are in {journal}: once that is corrected, the same command with "
            "--resume goes on after them, and spends nothing twice"
        )
    return ValueError(
        f"{sentence(error)}; the decisions so far count against epsilon, and another run on the same rounds spends "
        "again (with --journal, --resume goes on instead)"
    )


def _horizon(problem: Problem, length: int | None, asked: str | None, found: Checked | None) -> int | None:
    """Return the rounds to plan for: those asked for, or all there are, which then count as public."""
    if asked is not None or length is not None:
        return length
    if found is None:
        return problem.source.rounds
    rounds = found.seen
    problem.notes.append(
        f"horizon {rounds:,}, the number of rows of {problem.source.name}, which is taken as public (--horizon gives "
        "another)"
    )
    return rounds


def _plan(
    problem: Problem,
    horizon: int | None,
    claim: tuple[float, float] | tuple[None, None],
    switches: int | None,
    system: str | None,
    units: Units,
) -> BasePlan:
    """Return the plan: for ordinary data unless another is asked for; gradient descent where nothing is promised."""
    from reticent._core._names import BUDGETED, FILTERED
    from reticent.cli._goal import planned
    from reticent.cli._show import busy

    epsilon, delta = claim
    finite = problem.domain.finite
    chosen = system or ("best" if finite else BUDGETED if epsilon is None else FILTERED)
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
        return planned(wanted, chosen, hard=False, units=units.plan())
