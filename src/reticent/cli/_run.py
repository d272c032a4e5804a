"""`reticent run`: a file, standard input or a named stream through a learner, decisions out as they change."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from reticent._core._errors import WorkLimitError
from reticent.cli import _options as options
from reticent.cli._options import GOAL, OUTPUT, PROBLEM, WORK
from reticent.cli._run_source import check_stream, columns_of, flows, is_file, limits_of
from reticent.cli._specs import choice_of, horizon_of, system_of
from reticent.lab._kept import about
from reticent.systems._texts import DOMAINS, LOSSES, count_of

if TYPE_CHECKING:
    from reticent._core._check import Array
    from reticent.cli._interrupts import Interrupts
    from reticent.cli._run_source import Piece, Problem
    from reticent.lab import Best, Recorder
    from reticent.learners import Learner, Trace
    from reticent.planning import BasePlan


@dataclass
class Outcome:
    """How a run went: the decision after the last block, bad rows left out, rounds left out or scaled down, the end."""

    decision: Array
    bad: int = 0
    steep: int = 0
    seconds: float = 0.0
    stopped: Exception | None = None
    interrupted: bool = False

    @property
    def unread(self) -> bool:
        """Whether whoever read the decisions has gone."""
        return isinstance(self.stopped, BrokenPipeError)


def go(
    learner: Learner,
    problem: Problem,
    interrupts: Interrupts,
    *,
    horizon: int | None,
    most: int,
    taken: Callable[[Trace], None],
    step: Callable[[float], None],
) -> Outcome:
    """Send the rounds of a problem through a learner, piece by piece, and say how that went.

    `taken` sees the trace of every piece right after it; whatever stops the run, pieces before have been seen. `step`
    hears how much of the source has been read since the last time.
    """
    outcome, begin, shown = Outcome(learner.decision), time.perf_counter(), 0.0
    try:
        with closing(problem.pieces(most)) as pieces:
            while True:
                with interrupts.waiting():
                    piece = next(pieces, None)
                if piece is None:
                    break
                left = len(piece) if horizon is None else min(len(piece), horizon - learner.rounds)
                trace = learner.observe_many(*piece.first(left).block) if left else None
                outcome.bad, outcome.steep = int(piece.bad[left]), int(piece.steep[left])
                if trace is not None:
                    outcome.decision = trace.final
                    taken(trace)
                if left < len(piece):
                    raise _beyond(piece, left, horizon)
                now = problem.source.done()
                step(now - shown)
                shown = now
    except KeyboardInterrupt:
        outcome.interrupted = True
    except (ValueError, OSError, WorkLimitError) as error:
        outcome.stopped = error
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _beyond(piece: Piece, left: int, horizon: int | None) -> ValueError:
    return ValueError(
        f"{piece.where(left)}: more rounds than the horizon of {horizon:,}; those within it were taken and their "
        "decisions are written; what is promised ends there, so run again with a larger --horizon"
    )


# Decisions as they change, as CSV or JSON lines: of a private run, exactly what may be published.


class Decisions:
    """Writes each decision with the first round in which it is in play; rounds are counted from 1."""

    def __init__(self, file: IO[str], name: str, names: Sequence[str], as_json: bool) -> None:
        """Begin a file, whose name is for messages; CSV starts with a line of names."""
        self._file, self._name, self._json = file, name, as_json
        self._csv = csv.writer(file, lineterminator="\n")
        self._last: Any = None
        if not as_json:
            self._csv.writerow(["round", *names])

    def first(self, point: Array) -> None:
        """Write the decision that is in play before any data."""
        self._write([1], point[None])

    def add(self, trace: Trace) -> None:
        """Write the changes of a block, one right after its last round included, and pass them on at once."""
        import numpy as np

        goes_on = int(np.array_equal(trace.points[0], self._last))
        starts, points = trace.starts[goes_on:] + (trace.first + 1), trace.points[goes_on:]
        if not np.array_equal(trace.points[-1], trace.final):
            starts = np.append(starts, trace.first + trace.rounds + 1)
            points = np.concatenate([points, trace.final[None]])
        if len(starts):
            self._write(starts.tolist(), points)

    def _write(self, rounds: list[int], points: Array) -> None:
        rows = points.tolist()
        with about(self._name):
            if self._json:
                lines = (json.dumps({"round": t, "decision": row}) for t, row in zip(rounds, rows, strict=True))
                self._file.write("".join(line + "\n" for line in lines))
            else:
                self._csv.writerows([t, *row] for t, row in zip(rounds, rows, strict=True))
            self._file.flush()
        self._last = points[-1]


# What is said at the end of a run: counts, promises, and what was measured on the data (which is not private).

NOT_PRIVATE = "not private: computed from the data"


def summary(
    learner: Learner,
    system: str,
    problem: Problem,
    outcome: Outcome,
    recorder: Recorder,
    best: Best | None,
    seed: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """Return the numbers of a run by name; those under `not_private` are computed from the data."""
    from reticent.privacy._meaning import guessed

    plan, rounds = learner.plan, recorder.rounds
    measured: dict[str, Any] = {"mean_loss": recorder.total / rounds if rounds else None}
    measured |= {"bad_rows_skipped": outcome.bad, "steep_rounds": outcome.steep}
    measured |= {"seconds": outcome.seconds, "rounds_per_second": rounds / outcome.seconds if outcome.seconds else None}
    if best is not None:
        regret = recorder.total - best.value
        measured |= {"regret_at_least": regret, "regret_at_most": regret + best.gap, "best_fixed_decision": best.point}
    return {
        "source": problem.source.name,
        "system": system,
        "horizon": plan.horizon,
        "lipschitz": plan.lipschitz,
        "rounds": rounds,
        "switches": recorder.switches,
        "expected_switches": plan.expected_switches,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "epsilon_spent": (learner.spent() if learner.rounds else 0.0) if plan.private else None,
        "attacker": guessed(plan) if plan.private else None,
        "regret_bound": plan.regret_bound,
        "vacuous": bool(plan.vacuous),
        "decision": outcome.decision.tolist(),
        "ended": _ending(outcome),
        "seed": seed,
        "notes": notes,
        "not_private": measured,
    }


def _ending(outcome: Outcome) -> str:
    if outcome.interrupted:
        return "interrupted"
    return "whole" if outcome.stopped is None else "stopped"


def in_words(found: dict[str, Any], clipped: bool) -> str:
    """Return a summary as lines of text."""
    from reticent.systems._words import labelled

    measured, rounds = found["not_private"], found["rounds"]
    rows = [("system", found["system"]), ("rounds", _rounds(found))]
    expected = found["expected_switches"]
    promised = "" if expected is None else f" (for the whole horizon at most {expected:,.0f} are expected)"
    rows.append(("switches", f"{found['switches']:,}{promised}"))
    if found["epsilon"] is not None:
        spent = "" if found["epsilon_spent"] is None else f"{found['epsilon_spent']:.4g} of "
        rows.append(("privacy", f"epsilon {spent}{found['epsilon']:g} spent at delta {found['delta']:g}"))
        rows.append(("attacker", found["attacker"]))
    else:
        rows.append(("privacy", "none promised"))
    rows.append(("decision now", ", ".join(f"{x:.6g}" for x in found["decision"][:8])))
    if measured["bad_rows_skipped"]:
        rows.append(("bad rows skipped", f"{measured['bad_rows_skipped']:,} ({NOT_PRIVATE})"))
    if measured["steep_rounds"]:
        what = "scaled down" if clipped else "left out"
        rows.append(("steep rounds", f"{measured['steep_rounds']:,} {what} ({NOT_PRIVATE})"))
    about = f"{NOT_PRIVATE}, of the scaled-down rounds" if clipped and measured["steep_rounds"] else NOT_PRIVATE
    if rounds:
        rows.append(("mean loss", f"{measured['mean_loss']:.6g} ({about})"))
    if "regret_at_most" in measured:
        rows.append(("regret a round", f"{measured['regret_at_most'] / rounds:.4g} ({about}{_certified(found)})"))
    speed = measured["rounds_per_second"]
    rows.append(("time", f"{measured['seconds']:.1f} s" + (f", {speed:,.0f} rounds a second" if speed else "")))
    return labelled(rows)


def _certified(found: dict[str, Any]) -> str:
    """Say what was certified; that is for the whole horizon, wherever the run ended."""
    if found["regret_bound"] is None:
        return ""
    if found["vacuous"]:
        return "; the certificate is vacuous"
    return f"; certified {found['regret_bound'] / found['horizon']:.4g} over the whole horizon"


def _rounds(found: dict[str, Any]) -> str:
    if found["horizon"] is None:
        return f"{found['rounds']:,}, in doubling epochs"
    return f"{found['rounds']:,} of a horizon of {found['horizon']:,}"


class Command:
    """A run with everything decided."""

    def __init__(
        self,
        problem: Problem,
        plan: BasePlan,
        system: str,
        switches: int | None,
        seed: int | None,
        on_steep: str,
        most: int,
        json: bool,
        quiet: bool,
        interrupts: Interrupts,
    ) -> None:
        self.problem, self.plan, self.system, self.seed = problem, plan, system, seed
        self.switches = switches
        self.on_steep, self.most = on_steep, most
        self.json, self.quiet = json, quiet
        self.interrupts = interrupts

    def go(self, out: Path | None) -> tuple[Learner, Recorder, Outcome]:
        """Run; decisions are written on the way."""
        from reticent.cli._show import progress, say
        from reticent.lab import Recorder
        from reticent.learners import make

        problem = self.problem
        learner, recorder = make(self.plan, problem.loss, self.seed, on_steep=self.on_steep), Recorder(problem.loss)
        if not self.quiet:
            for note in problem.notes:
                say(note)
        outcome: Outcome | None = None
        try:
            with _opened(out) as file, progress(1.0, "running", quiet=self.quiet) as step:
                decisions = Decisions(file, _name(out), problem.decision, self.json)
                decisions.first(learner.decision)

                def taken(trace: Any) -> None:
                    recorder.add(trace)  # first: what was taken in counts, whether or not it can be written
                    decisions.add(trace)

                outcome = go(
                    learner,
                    problem,
                    self.interrupts,
                    horizon=self.plan.horizon,
                    most=self.most,
                    taken=taken,
                    step=step,
                )
        except OSError as error:
            # What could not be written is met again when the file is closed; the rounds before it are not lost.
            if outcome is None:
                raise
            outcome.stopped = outcome.stopped or error
        if not recorder.rounds and outcome.stopped is None and not outcome.interrupted:
            found = [(outcome.bad, "bad"), (outcome.steep, "too steep")]
            only = " and ".join(f"{count:,} {what} ones" for count, what in found if count)
            outcome.stopped = ValueError(f"{problem.source.name} has no rows to run on{only and f', only {only}'}")
        return learner, recorder, outcome

    def hindsight(self, recorder: Recorder, outcome: Outcome) -> Best | None:
        """Return the best fixed decision for the rounds that were taken in; none if Ctrl-C ends the search for it."""
        from reticent.cli._show import busy
        from reticent.lab import hindsight

        try:
            with self.interrupts.waiting(), busy("looking for the best fixed decision in hindsight"):
                return hindsight(self.problem.stream(recorder.rounds))
        except KeyboardInterrupt:
            outcome.interrupted = True
            return None

    def notes(self, recorder: Recorder, outcome: Outcome) -> list[str]:
        """Return what a reader of the numbers has to know."""
        from reticent.cli._run_source import left_out, scaled_down

        steep = outcome.steep if self.on_steep == "clip" else 0
        notes = self.problem.notes + left_out(outcome.bad)
        return notes + scaled_down(steep, recorder.rounds, self.problem.lipschitz) + _end(recorder.rounds, outcome)

    def tell(self, learner: Learner, recorder: Recorder, outcome: Outcome, best: Best | None) -> None:
        """Say how it went: the last line of JSON, or words on standard error."""
        from json import dumps

        from reticent.cli._show import plain, say

        notes = self.notes(recorder, outcome)
        found = summary(learner, self.system, self.problem, outcome, recorder, best, self.seed, notes)
        if self.json and not outcome.unread:
            try:
                print(dumps({"summary": plain(found)}), flush=True)
                return
            except BrokenPipeError as error:
                outcome.stopped = outcome.stopped or error
        if not self.quiet:
            say(in_words(found, self.on_steep == "clip"))
            if outcome.interrupted:
                say("interrupted; the decisions so far are written")
            if outcome.unread:
                say("stopped: whoever read the output has gone")

    def keep(
        self,
        recorder: Recorder,
        outcome: Outcome,
        best: Best | None,
        save: Path | None,
        report: Path | None,
        words: str,
    ) -> None:
        """Write the study and the report that were asked for, of what was done."""
        from dataclasses import replace

        from reticent.cli._show import busy, say
        from reticent.lab import Study, plan_facts, stream_facts

        if (save is None and report is None) or not recorder.rounds:
            return
        plan = self.plan
        facts = plan_facts(plan, spent=plan.horizon is not None and plan.epsilon is not None)
        done = recorder.run(self.system, self.seed, facts, outcome.seconds)
        if best is not None:
            done = replace(done, regret=done.total - best.value + best.gap)
        goal = {"epsilon": plan.epsilon, "delta": plan.delta, "max_switches": self.switches}
        stream = stream_facts(self.problem.stream(recorder.rounds))
        title = f"{self.system} on {stream['name']}"
        study = Study(title, "run", stream, goal, [done], best, command=words, notes=self.notes(recorder, outcome))
        if save is not None:
            study.save(save)
            say(f"Study: {save}")
        if report is not None:
            from reticent.lab.report import write_report

            with busy("writing the report"):
                say(f"Report: {write_report(study, report)}")


def _end(rounds: int, outcome: Outcome) -> list[str]:
    """Return a note for a run that did not come to the end of its rounds."""
    from reticent.cli._main import sentence

    if outcome.interrupted:
        return [f"interrupted after {rounds:,} rounds"]
    return [] if outcome.stopped is None else [f"stopped after {rounds:,} rounds: {sentence(outcome.stopped)}"]


def _name(out: Path | None) -> str:
    return "standard output" if out is None else str(out)


@contextlib.contextmanager
def _opened(out: Path | None) -> Any:
    """Give the file that decisions go to; standard output stays open."""
    if out is None:
        yield sys.stdout
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with about(out), out.open("w", encoding="utf-8", newline="") as file:
        yield file


# `reticent run`: a file, standard input or a named stream through a learner, decisions out as they change.

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
            help="Rounds; all of a file unless given, unknown (any number) for standard input.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    max_switches: options.MaxSwitches = None,
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
    block: Annotated[str, typer.Option(help="Rounds taken in together at most.", rich_help_panel=WORK)] = "65536",
    out: Annotated[
        Path | None, typer.Option(help="Write decisions here, not to standard output.", rich_help_panel=OUTPUT)
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
    from reticent.cli._run_source import SKIP, SKIPPING, STOP, FileSource, file_problem, stream_problem
    from reticent.cli._show import check_outputs
    from reticent.lab.files import Layout

    check_outputs(source, out=out, save=save, report=report)
    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    choice_of("on-steep", on_steep, ("clip", "raise"))
    claim = options.claim(epsilon, delta)
    switches = None if max_switches is None else count_of(max_switches, "max-switches", least=0)
    most = count_of(block, "block")
    _check_ledger(ledger, population, since, seed)
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
        name = plan.system if system in (None, "best") else system_of(str(system))
        close = _entered(ledger, population, since, plan, source, quiet)
        # From the first round to the last file kept, Ctrl-C waits for a place where nothing is lost.
        interrupts = files.enter_context(Interrupts().heard())
        command = Command(problem, plan, name, switches, seed, on_steep, most, json, quiet, interrupts)
        learner, recorder, outcome = command.go(out)
        close()
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
    entry = book.spend(population, plan, note=f"reticent run {source}", since=since)
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
        return planned(wanted, chosen, hard=False)
